/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Loops of which each access to memory is known. In %rdi how often; KERNEL says what a
 * turn of it loads, stores, locks, divides and prefetches, and how many slots the backend
 * loses by it at least.
 */
#define DATA 0x1600000

.macro KERNEL name, loads, stores, locked=0, divides=0, prefetches=0, slots=0
	.pushsection .rodata.kernels, "a"
	.quad	run_\name, 8f, \loads, \stores, \locked, \divides, \prefetches, \slots
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

KERNEL divide 0, 0, divides=2
1:	mov	$1, %ecx
	xor	%edx, %edx
	div	%ecx
	cltd
	idiv	%ecx
	AGAIN
KERNEL divide_sse 0, 0, divides=3
1:	divsd	%xmm1, %xmm0
	divps	%xmm1, %xmm2
	sqrtss	%xmm3, %xmm3
	AGAIN
KERNEL divide_x87 1, 0, divides=4
	fld1
1:	fdiv	%st(0), %st
	fdivr	%st(0), %st
	fsqrt
	fmul	%st(0), %st
	fidivl	64(%rsi)
	fld1
	fstp	%st(1)
	dec	%rdi
	jnz	1b
	fstp	%st(0)
	ret

/* Access a new line each time, in the kernel's later runs too. */
.macro AHEAD insn
	mov	next(%rip), %rsi
1:	\insn
	add	$64, %rsi
	dec	%rdi
	jnz	1b
	mov	%rsi, next(%rip)
	ret
.endm
KERNEL prefetch 0, 0, prefetches=1
	AHEAD "prefetcht0 (%rsi)"
KERNEL prefetch_to_write 0, 0, prefetches=1
	AHEAD "prefetchw (%rsi)"
KERNEL reserved_nop 0, 0
	AHEAD ".byte 0x0f, 0x18, 0x26"	/* group 16, of (%rsi), but none of its four */

/*
 * A load takes 5 cycles; an instruction that waits for it loses 4 of them, with 5 slots
 * each.
 */
KERNEL lfence 1, 0, slots=20
1:	mov	(%rsi), %rax
	lfence
	AGAIN
KERNEL mfence 1, 0, slots=20
1:	mov	(%rsi), %rax
	mfence
	AGAIN
KERNEL cpuid 1, 0, slots=20
	mov	%rbx, %r9
1:	mov	(%rsi), %r10
	xor	%eax, %eax
	cpuid
	dec	%rdi
	jnz	1b
	mov	%r9, %rbx
	ret
KERNEL cr4 1, 0, slots=20
	mov	%cr4, %rdx
1:	mov	(%rsi), %rax
	mov	%rdx, %cr4
	AGAIN
KERNEL wrmsr 1, 0, slots=20
	mov	$0x174, %ecx		/* IA32_SYSENTER_CS */
	xor	%edx, %edx
1:	mov	(%rsi), %r10
	xor	%eax, %eax
	wrmsr
	AGAIN

/* Its translation is an entry of a table that lies in a device: see uarch.c. QEMU loads
 * the entry as it loads a program's data, so that is a load, too. */
KERNEL device_table 2, 1
	mov	$0x40021000, %rsi
1:	incq	(%rsi)
	invlpg	(%rsi)
	AGAIN

	.data
	.balign 8
next:	.quad	DATA + 0x100000
	.text

	.pushsection .rodata.kernels, "a"
kernels_end:
	.popsection
