/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* REP strings over fresh memory: a page fault in the middle for every page. */
#include "guest.h"
#define ROUNDS	4
#define PAGE	4096
#define SIZE	(24 * PAGE)
#define LEN	(SIZE - 777)

/* Two fresh areas in RSI and RDI, RCX elements of them: 20 instructions, 2 far */
.macro FRESH count:req
	MMAP	SIZE
	mov	%rax, %r12
	MMAP	SIZE
	mov	%rax, %r13
	lea	333(%r12), %rsi
	lea	333(%r13), %rdi
	xor	%eax, %eax
	mov	$(\count), %ecx
.endm

/* 10 instructions, 2 far, 1 not taken */
.macro DONE
	test	%rcx, %rcx
	jnz	fail
	MUNMAP	%r12, SIZE
	MUNMAP	%r13, SIZE
.endm

	/* 5 strings a round, two more direction flags and two LEAs for the last */
	EXPECT	insns=(1 + ROUNDS * (5 * (20 + 1 + 10) + 4 + 2) + 3), \
		taken=(ROUNDS - 1), not_taken=(5 * ROUNDS + 1), far=(5 * 4 * ROUNDS + 1)

	.globl	_start
_start:	mov	$ROUNDS, %ebx
1:	FRESH	LEN
	rep movsb
	DONE
	FRESH	(LEN / 8)
	rep stosq
	DONE
	FRESH	LEN
	repe scasb
	DONE
	FRESH	LEN
	repe cmpsb
	DONE
	FRESH	LEN
	lea	LEN - 1(%rsi), %rsi
	lea	LEN - 1(%rdi), %rdi
	std
	rep movsb
	cld
	DONE
	dec	%ebx
	jnz	1b
	EXIT
	FAIL
