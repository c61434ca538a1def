/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A hypervisor's round: it enters a guest twice, and both do what a program does. A
 * table says of each instruction, in the order in which they retire, where it goes
 * and what it is; what is intercepted, as VMMCALL, does not retire.
 */
#define BRANCH	1
#define TAKEN	2
#define GUEST	4
#define USER	8
#define JUMP	(BRANCH | TAKEN)

#define VMCB_EXIT_CODE	(vmcb + 0x70)
#define VMCB_RIP	(vmcb + 0x578)
#define EXIT_NMI	0x61
#define EXIT_VMMCALL	0x81

/* An instruction that goes to @next. */
.macro E next:req, what:req
	.pushsection .data
	.quad	\next, \what
	.popsection
.endm
.macro J what:req, next:req, insn:vararg
	\insn
	E	\next, \what
.endm
.macro I what:req, insn:vararg
	\insn
	E	1001f, \what
1001:
.endm

	.data
	.balign	16
	.globl	svm_path, svm_path_end, round_msr, round_on, round_exits, round_rip, round_wrong
	.globl	vmcb, hsave, msrpm, iopm, guest_stack, guest_1, guest_inject, guest_stores
	.globl	guest_int, guest_ud, guest_cr8
	.globl	svm_round, svm_once, svm_efer
round_msr: .quad 0
round_on: .quad	0
round_exits: .quad 0		/* #VMEXIT by NMI, and where the guest was then */
round_rip: .quad 0
round_wrong: .quad 0		/* or by what was not expected */
saved:	.quad	0
buffer:	.skip	128
svm_path:

	.macro	enter
	.irp	r, rbx, rbp, r12, r13, r14, r15
	push	%\r
	.endr
	mov	%rsp, saved
	mov	round_msr, %ecx
	mov	round_on, %eax
	mov	round_on + 4, %edx
	.endm
	.macro	quit
	mov	saved, %rsp
	.irp	r, r15, r14, r13, r12, rbp, rbx
	pop	%\r
	.endr
	ret
	.endm

	.text
/* void svm_round(void): with the counter on by WRMSR(round_msr, round_on), off by 0. */
svm_round:
	enter
	I	0, wrmsr
	I	0, nop
	J	JUMP, 1f, jmp 1f
1:	I	0, mov $vmcb, %eax
run_1:	vmrun	%rax
	E	guest_1, 0		/* it counts for the host */

	.pushsection .text.guest, "ax"
guest_1:
	I	GUEST, nop
	J	GUEST + JUMP, 1f, call 1f
1:	I	GUEST, pop %rdx
	I	GUEST, xor %eax, %eax
	J	GUEST + JUMP, 2f, jz 2f
2:	J	GUEST + BRANCH, 3f, jnz 4f
3:	I	GUEST, mov $100, %ecx
4:	I	GUEST, mov $buffer, %edi
	I	GUEST, rep stosb
	I	GUEST, cpuid
	I	GUEST, xor %ecx, %ecx
	I	GUEST, rdpmc
	I	GUEST, mov $0x1b, %ecx
	I	GUEST, rdmsr
	J	GUEST + JUMP, guest_int, int $0x90
	.pushsection .text.handler, "ax"
guest_int:
	I	GUEST, nop
	J	GUEST + JUMP, 5f, iretq
	.popsection
5:	I	GUEST, sti
	I	GUEST, nop
	I	GUEST, cli
	ud2				/* faults, and the handler continues after it */
	.pushsection .text.handler, "ax"
guest_ud:
	I	GUEST, addq $2, (%rsp)
	J	GUEST + JUMP, 6f, iretq
	.popsection
6:	I	GUEST, push $0x23
	I	GUEST, push $guest_stack
	I	GUEST, push $2
	I	GUEST, push $0x2b
	I	GUEST, push $7f
	J	GUEST + JUMP, 7f, iretq
7:	I	GUEST + USER, nop
	J	GUEST + USER + JUMP, 8f, jmp 8f
8:	vmmcall
	.popsection

	I	0, stgi
	I	0, cmpl $EXIT_VMMCALL, VMCB_EXIT_CODE
	J	BRANCH, 2f, jne again_1
2:	I	0, addq $3, VMCB_RIP
	I	0, mov $vmcb, %eax
run_2:	vmrun	%rax
	E	guest_2, 0

	.pushsection .text.guest, "ax"
guest_2:
	I	GUEST + USER, nop
	I	GUEST + USER, xor %eax, %eax
	J	GUEST + USER + BRANCH, 9f, jnz 9f
9:	vmmcall
	.popsection

	I	0, stgi
	I	0, cmpl $EXIT_VMMCALL, VMCB_EXIT_CODE
	J	BRANCH, 3f, jne again_2
3:	I	0, mov round_msr, %ecx
	I	0, xor %eax, %eax
	I	0, xor %edx, %edx
	wrmsr				/* disabled when it retires: does not count */
	quit
again_1:
	call	interrupted
	jmp	run_1
again_2:
	call	interrupted
	jmp	run_2
interrupted:
	cmpl	$EXIT_NMI, VMCB_EXIT_CODE
	jne	1f
	incq	round_exits
	mov	VMCB_RIP, %rax
	mov	%rax, round_rip
	mov	$vmcb, %eax
	ret
1:	incq	round_wrong
	quit

/* void svm_once(void): the same, with one entry and whatever exit: 8 of the host. */
svm_once:
	enter
	wrmsr
	mov	$vmcb, %eax
	vmrun	%rax
	stgi
	mov	round_msr, %ecx
	xor	%eax, %eax
	xor	%edx, %edx
	nop
	wrmsr
	quit

/*
 * An event that VMRUN injects runs guest_int and returns here: 3 instructions, 1 branch.
 */
	.pushsection .text.guest, "ax"
guest_inject:
	nop
	vmmcall
	.popsection

/*
 * An injected interrupt: 2 of the handler, then 1 + 3 * 1000 of stores into a page of
 * code, each of which costs a QEMU with more than one CPU extra work.
 */
	.pushsection .text.guest, "ax"
guest_stores:
	mov	$1000, %ecx
1:	movb	$0x90, 2f
	dec	%ecx
	jnz	1b
	vmmcall
	.skip	64			/* not in the block that stores */
2:	nop
	.popsection

/*
 * A virtual interrupt that waits for the task priority: 4, and 2 of the handler. It comes
 * after STI's next instruction.
 */
	.pushsection .text.guest, "ax"
guest_cr8:
	mov	$2, %eax
	mov	%rax, %cr8
	sti
	nop
	vmmcall
	.popsection

/*
 * void svm_efer(uint32_t off, uint32_t on): EFER's low half set to these by turns,
 * while the counter is on. 5 before SVM is off, 4 while it is, and 5 more, of which
 * the WRMSR that sets it again is one.
 */
svm_efer:
	enter
	mov	%esi, %r8d
	mov	%edi, %r9d
	wrmsr
	mov	$0xc0000080, %ecx
	rdmsr
	mov	%r9d, %eax
	nop
	wrmsr				/* SVM is off when it retires */
	nop
	nop
	mov	%r8d, %eax
	wrmsr
	nop
	mov	round_msr, %ecx
	xor	%eax, %eax
	xor	%edx, %edx
	wrmsr
	quit

	.data
svm_path_end:

	.bss
	.balign	4096
vmcb:	.skip	4096
hsave:	.skip	4096
msrpm:	.skip	2 * 4096
iopm:	.skip	4 * 4096
	.skip	4096
guest_stack:
	.skip	16
