/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Loops of which each access to memory is known. In %rdi how often; KERNEL says what a
 * turn of it loads, stores and locks.
 */
#define DATA 0x1600000

.macro KERNEL name, loads, stores, locked=0, setup
	.pushsection .rodata.kernels, "a"
	.quad	run_\name, 8f, \loads, \stores, \locked
	.popsection
	.pushsection .rodata.names, "a"
8:	.asciz	"\name"
	.popsection
	.globl	run_\name
run_\name:
	mov	$DATA, %rsi
	mov	$DATA + 0x10000, %r8
	test	%rdi, %rdi
	jz	done
.endm
.macro AGAIN
	dec	%rdi
	jnz	1b
	ret
.endm

	.pushsection .rodata.kernels, "a"
	.globl	kernels, kernels_end
	.balign 8
kernels:
	.popsection

	.text
done:	ret

KERNEL nothing 0, 0
1:	nop
	AGAIN
KERNEL load 1, 0
1:	mov	(%rsi), %rax
	AGAIN
KERNEL store 0, 1
1:	mov	%rax, (%rsi)
	AGAIN
KERNEL add_to_register 1, 0
1:	add	8(%rsi), %rax
	AGAIN
KERNEL modify 1, 1
1:	incq	(%rsi)
	AGAIN
KERNEL locked 1, 1, 1
1:	lock incq (%rsi)
	AGAIN
KERNEL exchange 1, 1, 1
1:	xchg	%rax, (%rsi)
	AGAIN
KERNEL cmpxchg16b 1, 1, 1
1:	lock cmpxchg16b (%rsi)
	AGAIN
KERNEL push_pop 1, 1
1:	push	%rax
	pop	%rax
	AGAIN
KERNEL call_ret 1, 1
1:	call	done
	AGAIN
KERNEL push_memory 2, 2
1:	pushq	(%rsi)
	popq	8(%rsi)
	AGAIN
KERNEL sse 1, 1
1:	movups	3(%rsi), %xmm0
	movaps	%xmm0, 32(%rsi)
	AGAIN
KERNEL movsq 1, 1
	mov	%rdi, %rdx
1:	mov	%r8, %rdi
	movsq
	sub	$8, %rsi
	dec	%rdx
	jnz	1b
	ret
KERNEL rep_movsb 1, 1
	mov	%rdi, %rcx
	mov	%r8, %rdi
	rep movsb
	ret
KERNEL rep_stosb 0, 1
	mov	%rdi, %rcx
	mov	%r8, %rdi
	rep stosb
	ret
KERNEL repe_cmpsb 2, 0
	mov	%rdi, %rcx
	mov	%rsi, %rdi
	repe cmpsb
	ret
KERNEL fld_fstp 1, 1
1:	fldt	(%rsi)
	fstpt	16(%rsi)
	AGAIN
KERNEL fxsave 8, 8
1:	fxsave	(%rsi)
	fxrstor	(%rsi)
	AGAIN
KERNEL enter 2, 3
	mov	%rbp, %r9
1:	mov	%rsp, %rbp
	enter	$0, $2
	leave
	dec	%rdi
	jnz	1b
	mov	%r9, %rbp
	ret

	.pushsection .rodata.kernels, "a"
kernels_end:
	.popsection
