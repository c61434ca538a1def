/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * uint64_t calls(uint32_t n): Fibonacci's numbers the long way. Four
 * instructions to a branch: calls, returns, and a condition that is hard to
 * foresee. In assembly, since compilers unroll it beyond recognition.
 */
	.text
	.globl	calls
	.type	calls, @function
calls:
	cmpl	$2, %edi
	jb	1f
	pushq	%rbx
	movl	%edi, %ebx
	decl	%edi
	call	calls
	pushq	%rax
	leal	-2(%rbx), %edi
	call	calls
	popq	%rcx
	addq	%rcx, %rax
	popq	%rbx
	ret
1:	movl	%edi, %eax
	ret
	.size	calls, . - calls
	.section .note.GNU-stack, "", @progbits
