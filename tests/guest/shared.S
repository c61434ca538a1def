/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Two tasks in one address space that contend for a word, and for one across pages. */
#include "guest.h"
#define N	500
#define PAGE	4096

	EXPECT	insns=(5 + 2 * (2 + 4 * N + 2) + 6 + 2 + 2 * 3), \
		taken=(2 * (N - 1) + 1), not_taken=(2 + 1 + 1), far=(2 + 2)

	.globl	_start
_start:	mov	$SYS_clone, %eax
	mov	$0x111, %edi		/* CLONE_VM, SIGCHLD */
	lea	page(%rip), %rsi	/* the child's stack */
	xor	%edx, %edx
	syscall
	/* from here both */
	mov	%eax, %r12d
	mov	$N, %ecx
1:	lock incl page(%rip)
	lock incl page + PAGE - 2(%rip)
	dec	%ecx
	jnz	1b
	test	%r12d, %r12d
	jz	child
	mov	$SYS_wait4, %eax
	or	$-1, %edi
	xor	%esi, %esi
	xor	%edx, %edx
	xor	%r10d, %r10d
	syscall
	cmpl	$2 * N, page + PAGE - 2(%rip)
	jne	fail
	EXIT
child:	EXIT
	FAIL

	.bss
	.balign	PAGE
	.skip	PAGE
page:	.skip	2 * PAGE
