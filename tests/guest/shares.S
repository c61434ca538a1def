/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Two functions, one of which executes three quarters of all instructions; as many
 * times over as there are words on the command line, its name included.
 */
#include "guest.h"
#define TURNS	250
#define HEAVY	3000
#define LIGHT	1000
#define TURN	(4 + 2 + 2 * HEAVY + 2 + 2 * LIGHT)

	EXPECT	insns=(2 + TURNS * TURN + 3), taken=(TURNS * (HEAVY + LIGHT - 1) - 1), \
		not_taken=(2 * TURNS + 1), call=(2 * TURNS), ret=(2 * TURNS), far=1

	.globl	_start, heavy, light
_start:	mov	(%rsp), %eax
	imul	$TURNS, %eax, %ebx
1:	call	heavy
	call	light
	dec	%ebx
	jnz	1b
	EXIT

	.type	heavy, @function
heavy:	mov	$HEAVY, %ecx
1:	dec	%ecx
	jnz	1b
	ret
	.size	heavy, . - heavy

	.type	light, @function
light:	mov	$LIGHT, %ecx
1:	dec	%ecx
	jnz	1b
	ret
	.size	light, . - light
