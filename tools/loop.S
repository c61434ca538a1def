/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A program whose counts are known: vpmu check runs it under perf stat.
 *
 *   instructions:u   1 + 2 * 1000000 + 3 = 2000004
 */
	.globl	_start
	.text
_start:
	movl	$1000000, %ecx
1:	decl	%ecx
	jnz	1b
	movl	$60, %eax		/* exit */
	xorl	%edi, %edi
	syscall

	.section .note.GNU-stack, "", @progbits
