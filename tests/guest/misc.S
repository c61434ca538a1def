/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Instructions that end blocks, exit to helpers, hide in prefixes or seem to do nothing.
 */
#include "guest.h"
#define N	2000

	EXPECT	insns=(1 + N * (23 + 2 + 2) + 3), taken=(N - 1), not_taken=1, \
		call=(2 * N), ret=(2 * N), far=1

	.globl	_start
_start:	mov	$N, %esi
1:	xor	%eax, %eax
	cpuid
	rdtsc
	rdtscp
	pause
	lfence
	mfence
	sfence
	clflush	room(%rip)
	prefetcht0 room(%rip)
	nopw	0x1234(%rax, %rax, 4)
	endbr64
	xchg	%ax, %ax
	mov	%ds, %eax
	mov	%eax, %ds		/* a segment register */
	pushfq
	popfq
	sahf
	cld
	call	f
	call	g
	dec	%esi
	jnz	1b
	EXIT

f:	nop
	repz ret
g:	nop
	ret

	.bss
room:	.skip	64
