/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Faults that a program handles itself: a load that is skipped does not retire,
 * a REP string whose memory arrives in its middle retires once.
 */
#include "guest.h"
#define N	200
#define PAGE	4096

	EXPECT	insns=(6 + 1 + N * (6 + 4) + 6 + 7 + 6 + 3 + 1 + 8 + 5 + 3), \
		taken=(N - 1), not_taken=3, ret=(N + 1), far=(2 + N + 2 + 2 + 1)

	.globl	_start
_start:	SIGACTION SIGSEGV, skip
	mov	$N, %ebx
1:	nop
	nop
	mov	0, %eax			/* seven bytes; never retires */
	nop
	nop
	dec	%ebx
	jnz	1b

	SIGACTION SIGSEGV, unlock
	MMAP	(3 * PAGE)
	mov	%rax, %r12
	mov	$10, %eax		/* mprotect(the page in the middle) */
	lea	PAGE(%r12), %rdi
	mov	$PAGE, %esi
	xor	%edx, %edx
	syscall
	mov	%r12, %rdi
	mov	$3 * PAGE, %ecx
	mov	$0x55, %eax
	rep stosb
	test	%rcx, %rcx
	jnz	fail
	cmpb	$0x55, 3 * PAGE - 1(%r12)
	jne	fail
	nop
	EXIT
	FAIL

	/* 2 instructions, and 2 of the restorer */
skipper:
	addq	$7, UC_RIP(%rdx)
	ret

	/* 6 instructions, 1 far, and 2 of the restorer */
unlocker:
	mov	$10, %eax
	lea	PAGE(%r12), %rdi
	mov	$PAGE, %esi
	mov	$3, %edx
	syscall
	ret
	RESTORER
	ACTION	skip, skipper
	ACTION	unlock, unlocker
