/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Page faults in the middle of straight code: loads, stores, LOCK, pushes and
 * the push of a call, each the first to touch its page.
 */
#include "guest.h"
#define PAGE	4096
#define N	50
#define SIZE	(7 * PAGE * N)

	EXPECT	insns=(7 + 3 + 20 * N + 4 + 1 + 3), taken=(N - 1), not_taken=1, \
		call=N, far=3

	.globl	_start
_start:	MMAP	SIZE
	mov	%rax, %rbx
	mov	%rax, %r15
	mov	$N, %ecx
1:	nop
	movb	$1, (%rbx)
	nop
	mov	PAGE(%rbx), %al
	nop
	lock incl 2 * PAGE(%rbx)
	nop
	movups	%xmm0, 4 * PAGE - 8(%rbx)	/* two fresh pages */
	nop
	lea	6 * PAGE(%rbx), %rsp
	push	%rcx
	nop
	lea	7 * PAGE(%rbx), %rsp
	nop
	call	2f
2:	pop	%rdx
	nop
	add	$7 * PAGE, %rbx
	dec	%ecx
	jnz	1b
	MUNMAP	%r15, SIZE
	nop
	EXIT
