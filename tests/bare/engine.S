/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Loops that stand for the work of an emulator. In %rdi how often, at least once; WORK says of how
 * many instructions a turn is.
 */
#define DATA	0x1600000
#define PAGE	4096

.macro WORK name, instructions
	.pushsection .rodata.works, "a"
	.quad	work_\name, 8f, \instructions
	.popsection
	.pushsection .rodata.names, "a"
8:	.asciz	"\name"
	.popsection
work_\name:
	mov	$DATA, %esi
.endm
.macro AGAIN
	dec	%rdi
	jnz	1b
	ret
.endm

	.pushsection .rodata.works, "a"
	.globl	works, works_end
	.balign 8
works:
	.popsection

	.text
WORK arithmetic 8
1:	add	%rdx, %rax
	imul	$77, %rax, %rdx
	xor	%rdx, %rax
	lea	5(%rax,%rdx,2), %rdx
	shr	$3, %rdx
	sub	%rdx, %rax
	AGAIN

WORK memory 7
1:	mov	(%rsi), %rax
	add	8(%rsi), %rax
	mov	%rax, 16(%rsi)
	mov	PAGE(%rsi), %rdx
	mov	%rdx, PAGE + 8(%rsi)
	AGAIN

WORK floating 6
	mov	$3, %eax
	cvtsi2sd %rax, %xmm1
	movapd	%xmm1, %xmm0
	movapd	%xmm1, %xmm2
1:	addsd	%xmm1, %xmm0
	mulsd	%xmm2, %xmm0
	divsd	%xmm1, %xmm0
	subsd	%xmm2, %xmm0
	AGAIN

WORK calls 5
1:	call	2f
	AGAIN
2:	add	$1, %eax
	ret

/* A branch whose target is in memory, as an interpreter's loop has one; four targets in turn. */
WORK dispatch 5
	xor	%eax, %eax
1:	inc	%eax
	and	$3, %eax
	jmp	*targets(,%rax,8)
	.pushsection .rodata.targets, "a"
	.balign	8
targets:
	.popsection
	.rept	4
2:	AGAIN
	.pushsection .rodata.targets, "a"
	.quad	2b
	.popsection
	.endr

/* An access to one of 8192 pages. */
WORK pages 5
	xor	%eax, %eax
1:	mov	(%rsi,%rax), %rdx
	add	$33 * PAGE, %eax
	and	$0x1fff000, %eax
	AGAIN

/* A process after the other, with three pages each. */
WORK processes 7
1:	mov	%cr3, %rax
	mov	%rax, %cr3
	mov	(%rsi), %rdx
	mov	PAGE(%rsi), %rdx
	mov	2 * PAGE(%rsi), %rdx
	AGAIN

	.pushsection .rodata.works, "a"
works_end:
	.popsection
