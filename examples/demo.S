/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What `make demo` measures. Without libc, so that what it retires in user mode
 * follows from the source, instructions and branches:
 *
 *	fibonacci(15)  986 * 15 + 987 * 7          = 21,699
 *	               986 * 4 + 987 * 2           = 5,918
 *	hash           6 + 3,000 * 7               = 21,006
 *	               3,000 + 1                   = 3,001
 *	turn           7 + fibonacci + hash        = 42,712
 *	               3 + fibonacci + hash        = 8,922
 *	all            5 + 1,000 * (3 + turn)      = 42,715,005
 *	               1 + 1,000 * (2 + turn)      = 8,924,001
 *
 * fibonacci(15) is 1,973 calls: 986 that make two more, and 987 that end.
 */
#define SYS_exit	60

	.globl	_start
	.type	_start, @function
_start:	xor	%ebp, %ebp
	mov	$1000, %ebx
1:	call	turn
	dec	%ebx
	jnz	1b
	mov	$SYS_exit, %eax
	xor	%edi, %edi
	syscall
	.size	_start, . - _start

	.type	turn, @function
turn:	push	%rbp
	mov	%rsp, %rbp
	mov	$15, %edi
	call	fibonacci
	call	hash
	pop	%rbp
	ret
	.size	turn, . - turn

/* Fibonacci number EDI into RAX, by recursion. */
	.type	fibonacci, @function
fibonacci:
	push	%rbp
	mov	%rsp, %rbp
	cmp	$2, %edi
	jb	1f
	push	%rdi
	dec	%edi
	call	fibonacci
	pop	%rdi
	push	%rax
	sub	$2, %edi
	call	fibonacci
	pop	%rdx
	add	%rdx, %rax
	pop	%rbp
	ret
1:	mov	%edi, %eax
	pop	%rbp
	ret
	.size	fibonacci, . - fibonacci

	.type	hash, @function
hash:	push	%rbp
	mov	%rsp, %rbp
	mov	$3000, %ecx
	mov	$5381, %eax
1:	imul	$33, %eax, %eax
	add	%ecx, %eax
	mov	%eax, %edx
	shr	$15, %edx
	xor	%edx, %eax
	dec	%ecx
	jnz	1b
	pop	%rbp
	ret
	.size	hash, . - hash

	.section .note.GNU-stack, "", @progbits
