/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The program that `make demo` measures. It has no libc, so the source tells what it
 * retires in user mode; instructions, and below them branches:
 *
 *	swap     7
 *	         1
 *	encode   5 + 2,000 * (3 + swap)     = 20,005
 *	         1 + 2,000 * (2 + swap)     = 6,001
 *	hash     6 + 3,000 * 7              = 21,006
 *	         1 + 3,000                  = 3,001
 *	turn     6 + encode + hash          = 41,017
 *	         3 + encode + hash          = 9,005
 *	all      5 + 1,000 * (3 + turn)     = 41,020,005
 *	         1 + 1,000 * (2 + turn)     = 9,007,001
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
	call	encode
	call	hash
	pop	%rbp
	ret
	.size	turn, . - turn

	.type	encode, @function
encode:	push	%rbp
	mov	%rsp, %rbp
	mov	$2000, %ecx
1:	call	swap
	dec	%ecx
	jnz	1b
	pop	%rbp
	ret
	.size	encode, . - encode

	.type	swap, @function
swap:	push	%rbp
	mov	%rsp, %rbp
	bswap	%eax
	rol	$5, %eax
	xor	%ecx, %eax
	pop	%rbp
	ret
	.size	swap, . - swap

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
