/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Recursion without frame pointers, with branches at its bottom; tests/guest/brstack
 * knows every branch of it.
 */
#include "guest.h"
#define ROUNDS	400
#define DEPTH	12
#define TURNS	200

	EXPECT	insns=(1 + ROUNDS * (4 + 4 * DEPTH + 2 * TURNS) + 3), \
		taken=(ROUNDS * (1 + TURNS - 1 + 1) - 1), \
		not_taken=(ROUNDS * (DEPTH - 1 + 1) + 1), \
		call=(ROUNDS * DEPTH), ret=(ROUNDS * DEPTH), far=1

	.globl	_start, outer, to_f, around, f, at_bottom, inner, after, bottom, turn, bottom_ret
	.type	_start, @function
_start:	mov	$ROUNDS, %r12d
outer:	mov	$DEPTH, %edi
to_f:	call	f
	dec	%r12d
around:	jnz	outer
	EXIT
	.size	_start, . - _start

	.type	f, @function
f:	dec	%edi
at_bottom: jz	bottom
inner:	call	f
after:	ret
bottom:	mov	$TURNS, %ecx
1:	dec	%ecx
turn:	jnz	1b
bottom_ret: ret
	.size	f, . - f
