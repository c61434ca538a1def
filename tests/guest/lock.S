/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* LOCK: within a word, across lines, across pages, and where pages are fresh. */
#include "guest.h"
#define N	200
#define ROUNDS	30
#define PAGE	4096

	EXPECT	insns=(4 + 15 * N + 1 + ROUNDS * (7 + 3 + 4 + 2) + 3), \
		taken=(N - 1 + ROUNDS - 1), not_taken=2, far=(2 * ROUNDS + 1)

	.globl	_start
_start:	mov	$N, %esi
	lea	page + PAGE(%rip), %rdi
	xor	%ebx, %ebx
	xor	%ecx, %ecx
1:	lock incl (%rdi)
	lock xadd %rbx, 8(%rdi)
	xchg	%ebx, (%rdi)
	lock cmpxchg %ecx, (%rdi)
	lock cmpxchg8b (%rdi)
	lock cmpxchg16b (%rdi)
	lock btsl $3, (%rdi)
	lock negl (%rdi)
	lock incl 62(%rdi)		/* two lines */
	lock incl -2(%rdi)		/* two pages */
	lock addq $5, -7(%rdi)
	xchg	%rcx, -1(%rdi)
	nop
	dec	%esi
	jnz	1b

	mov	$ROUNDS, %ebx
2:	MMAP	(4 * PAGE)
	mov	%rax, %r12
	lock incq PAGE - 3(%rax)	/* two fresh pages */
	lock incq 3 * PAGE - 3(%rax)
	MUNMAP	%r12, (4 * PAGE)
	dec	%ebx
	jnz	2b
	EXIT

	.bss
	.balign	PAGE
page:	.skip	2 * PAGE
