/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Far transfers within user mode; pointers of 64 bits and a selector (Intel only). */
#include "guest.h"
#define N	1000
#define CS	0x33
#define SS	0x2b

	EXPECT	insns=(1 + N * (4 + 7 + 1 + 1 + 1 + 2) + 3), taken=(N - 1), not_taken=1, \
		far=(N * (1 + 1 + 1 + 2) + 1)

	.globl	_start
_start:	mov	$N, %ebx
1:	push	$CS
	lea	2f(%rip), %rax
	push	%rax
	lretq
2:	mov	%rsp, %rcx
	push	$SS
	push	%rcx
	pushfq
	push	$CS
	push	$3f
	iretq
3:	ljmp	*there(%rip)
	ud2
4:	rex64 lcall *function(%rip)
	dec	%ebx
	jnz	1b
	EXIT

f:	lretq

	.data
	.balign	8
there:	.long	4b
	.short	CS
	.balign	8
function: .quad	f
	.short	CS
