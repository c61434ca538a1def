/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Code over many pages, so that fetching faults: after jumps, when running on
 * into the next page, and in the middle of an instruction that lies across.
 */
#include "guest.h"
#define PAGES	128
#define ROUNDS	3

	EXPECT	insns=(1 + ROUNDS * (PAGES * 6 + 4) + 3), taken=(ROUNDS - 1), not_taken=1, \
		jmp=(ROUNDS * (PAGES + 2)), far=1

	.globl	_start
_start:	mov	$ROUNDS, %ecx
1:	jmp	pages
next:	dec	%ecx
	jnz	1b
	EXIT

	/* By turns the boundary lies one and four bytes into the MOV, and in the INC. */
	.balign	4096
pages:
	.set	page, 0
	.rept	PAGES
	inc	%eax
	jmp	2f
	.org	pages + 4096 * (page + 1) - 3 - (page % 3) * 3, 0xf4
2:	nop
	nop
	mov	$0x12345678, %edx
	nop
	.set	page, page + 1
	.endr
	jmp	next
	.balign	4096
