/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Ten instructions over and over; four are branches, of which three conditional,
 * three taken, two both. A period that is a multiple of these is always full at
 * the same place: instruction number 10n is DEC, since one stands before the
 * loop, and branch number 4n is the last JNZ, as is each other one.
 */
#include "guest.h"
#ifndef N
#define N 300007
#endif

	EXPECT	insns=(1 + 10 * N + 3), taken=(2 * N - 1), not_taken=(N + 1), jmp=N, far=1

	.globl	_start, branch, instruction
_start:	mov	$N, %ecx
branch:	xor	%eax, %eax
	jnz	1f
	inc	%edx
1:	test	%eax, %eax
	jz	2f
	nop
2:	jmp	3f
3:	nop
	nop
	dec	%ecx
instruction:
	jnz	branch
	EXIT
