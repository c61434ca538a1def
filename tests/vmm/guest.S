/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The code of a guest: each piece is entered by the VMM with its registers set, and ends
 * with an OUT, which comes back to the VMM. Neither the OUT nor the VMMCALL retires under
 * KVM, so that a call counts 0 instructions and a loop of n turns 2 * n.
 */
#define DONE	0x10
#define FAULT	0x11
#define CODE	0x8000
#define EXIT_NMI 0x61

	.section .rodata
	.globl	guest_code, guest_code_end, guest_call, guest_loop, guest_store, guest_halt
	.globl	guest_nested, guest_real, guest_paged, guest_nmi, guest_fault
	.globl	guest_smm, guest_smm_end, guest_wrmsr, guest_rdmsr, guest_rdpmc, guest_cpuid

	.code64
guest_code:

/* A hypercall, whose number and arguments are in the registers. */
guest_call:
	vmmcall
	out	%al, $DONE

/* One instruction; what it reads is in the registers. */
guest_wrmsr:
	wrmsr
	out	%al, $DONE
guest_rdmsr:
	rdmsr
	out	%al, $DONE
guest_rdpmc:
	rdpmc
	out	%al, $DONE
guest_cpuid:
	cpuid
	out	%al, $DONE

/* RCX turns of 2 instructions. */
guest_loop:
	dec	%rcx
	jnz	guest_loop
	out	%al, $DONE

/* A byte into each of RCX pages from RDI on: 4 instructions each. */
guest_store:
	incb	(%rdi)
	add	$4096, %rdi
	dec	%rcx
	jnz	guest_store
	out	%al, $DONE

/* The loop, and then a sleep until an NMI comes; one that has come right before HLT skips it. */
guest_halt:
	dec	%rcx
	jnz	guest_halt
sleep:	hlt
	out	%al, $DONE

/* RAX: the VMCB of a guest of its own, which makes RCX turns. */
guest_nested:
	vmrun	%rax
	stgi
	cmpl	$EXIT_NMI, 0x70(%rax)
	je	guest_nested
	out	%al, $DONE

guest_paged:
	dec	%rcx
	jnz	guest_paged
	vmmcall

/* GS has the vCPU's count of NMIs. 4 instructions, but before the HLT. */
guest_nmi:
	incq	%gs:0
	cmpq	$CODE + sleep - guest_code, (%rsp)
	jne	1f
	incq	(%rsp)
1:	iretq

guest_fault:
	out	%al, $FAULT

	.code16
guest_real:
	decl	%ecx
	jnz	guest_real
	vmmcall
guest_code_end:

/* At SMBASE + 0x8000: as many turns as 0x7000 says, counts itself at 0x7004. */
guest_smm:
	movl	0x7000, %ecx
1:	decl	%ecx
	jnz	1b
	incl	0x7004
	rsm
guest_smm_end:

	.section .note.GNU-stack, "", @progbits
