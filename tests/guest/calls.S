/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Calls and returns: a binary tree by recursion, and returns that pop. */
#include "guest.h"
#define DEPTH	12
#define INNER	((1 << DEPTH) - 1)
#define LEAVES	(1 << DEPTH)
#define N	5000

	EXPECT	insns=(2 + 7 * INNER + 3 * LEAVES + 1 + N * (2 + 3 + 2) + 3), \
		taken=(LEAVES + N - 1), not_taken=(INNER + 1), \
		call=(INNER + LEAVES + N), ret=(INNER + LEAVES + N), far=1

	.globl	_start
_start:	mov	$DEPTH, %edi
	call	tree
	mov	$N, %ecx
1:	push	%rcx
	call	pops
	dec	%ecx
	jnz	1b
	EXIT

tree:	test	%edi, %edi
	jz	1f
	dec	%edi
	call	tree
	call	tree
	inc	%edi
1:	ret

pops:	enter	$16, $0
	leave
	ret	$8
