/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A loop of which each instruction's access to memory is known, for PEBS: ACCESS says
 * for the next instruction where its first one goes, an address in this file, or 0.
 * Registers hold what follows from their names (tests/guest/precise).
 */
#include "guest.h"
#define N 20011

.macro ACCESS to=0
	.pushsection .access, "", @progbits
	.quad	9f, \to
	.popsection
9:
.endm

	EXPECT	insns=(9 + 30 * N + 3), taken=(N - 1), not_taken=1, jmp=N, call=N, ret=N, far=1

	.bss
	.balign	64
slot:	.skip	256
source:	.skip	16
target:	.skip	16
	.skip	4096
top:	.skip	64

	.text
	.globl	_start
_start:	ACCESS
	lea	top, %rsp
	ACCESS
	mov	$0x1122334455667788, %r8
	ACCESS
	mov	$0x0fedcba987654321, %r15
	ACCESS
	movq	%r8, %xmm3
	ACCESS
	movq	%r15, %xmm15
	ACCESS
	punpcklqdq %xmm15, %xmm3
	ACCESS
	mov	$N, %ebp
	ACCESS
	lea	slot, %rbx
	ACCESS
	cld
loop:	ACCESS	slot
	mov	slot, %rax
	ACCESS	slot+8
	mov	%rax, 8(%rbx)
	ACCESS	slot+16
	addq	$1, 16(%rbx)
	ACCESS	slot+24
	lock incq 24(%rbx)
	ACCESS	slot+32
	xchg	%rax, 32(%rbx)
	ACCESS	slot+40
	lock cmpxchg %rcx, 40(%rbx)
	ACCESS	slot+48
	lock cmpxchg16b 48(%rbx)
	ACCESS	slot+64
	movaps	64(%rbx), %xmm0
	ACCESS	slot+80
	movaps	%xmm0, 80(%rbx)
	ACCESS	top-8
	push	%r8
	ACCESS	top-8
	pop	%rdx
	ACCESS	slot+96
	pushq	96(%rbx)
	ACCESS	top-8
	popq	104(%rbx)
	ACCESS
	lea	source, %rsi
	ACCESS
	lea	target, %rdi
	ACCESS	source
	movsb
	ACCESS	source+1
	lodsb
	ACCESS	target+1
	stosb
	ACCESS
	mov	$5, %ecx
	ACCESS	target+6
	rep stosb
	ACCESS	target+7
	scasb
	ACCESS
	xor	%ecx, %ecx
	ACCESS
	rep movsb
	ACCESS	top-8
call:	call	1f
	ACCESS
jmp:	jmp	2f
1:	ACCESS	top-8
ret:	ret
2:	ACCESS	slot+112
	cmpl	$0, 112(%rbx)
	ACCESS
	nop
	ACCESS
	dec	%ebp
	ACCESS
jnz:	jnz	loop
	EXIT
