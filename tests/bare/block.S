/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A block of all that ends, leaves or interrupts straight code, and a table of
 * where each of its instructions goes when it retires, in the order in which they
 * do. An interrupt upon the k-th event must find that address.
 */
/* Large pages that are mapped upon a fault: code over two of them, and data. */
#define far_0		0x11ffffe
#define far_1		0x11fffff
#define far_2		0x1200000
#define far_3		0x1200001
#define DATA		0x1400000

/* An instruction that goes to @next; @branch: it is one. */
.macro E next:req, branch:req
	.pushsection .data
	.quad	\next, \branch
	.popsection
.endm
.macro J next:req, insn:vararg
	\insn
	E	\next, 1
.endm
.macro I insn:vararg
	\insn
	E	1001f, 0
1001:
.endm

/* The instructions that each of the handlers below retires before it jumps to @next. */
.macro FAULTS_GP next:req
	E	gp_1, 0
	E	gp_2, 0
	E	\next, 1
.endm
.macro FAULTS_UD next:req
	E	ud_1, 0
	E	\next, 1
.endm
.macro FAULTS_PF next:req
	.irp	n, 1, 2, 3, 4, 5, 6, 7
	E	pf_\n, 0
	.endr
	E	\next, 1
.endm

	.data
	.balign	16
	.globl	path, path_end, pf_stub, gp_stub, ud_stub, int_stub, leave_stub, syscall_stub
	.globl	block, block_msr, block_on, block_bad, far_code, far_code_end
block_msr: .quad 0
block_on: .quad	0
block_bad: .quad 0x38e		/* a register that faults when written */
saved:	.quad	0
buffer:	.skip	128
path:

	.text
/* void block(void): with the counter on by WRMSR(block_msr, block_on), off by 0. */
block:	push	%rbx
	push	%rbp
	push	%r12
	push	%r15
	mov	%rsp, saved
	mov	block_msr, %ecx
	mov	block_on, %eax
	mov	block_on + 4, %edx
	I	wrmsr				/* counts, for it has enabled when it retires */
	I	nop
	I	add $1, %rbx
	J	1f, call 1f
1:	I	pop %rax
	I	push $2f
	J	2f, ret
2:	J	3f, jmp 3f
3:	I	xor %eax, %eax
	J	4f, jz 4f
4:	J	5f, jnz 6f
5:	I	mov $100, %ecx
6:	I	mov $buffer, %edi
	I	rep stosb
	I	rep movsb
	I	cpuid
	I	rdtsc
	I	mov $0x1b, %ecx
	I	rdmsr
	I	xor %ecx, %ecx
	I	rdpmc
	I	mov %cr3, %rax
	I	mov %rax, %cr3
	I	invlpg (%rax)
	I	lock incl buffer
	I	pushfq
	I	popfq
	I	sti
	I	nop
	I	cli
	I	wbinvd
	I	in $0x61, %al
	I	pause
	I	fninit
	I	mov %cr0, %rax
	I	mov %rax, %cr0
	I	clts

	/* an interrupt by instruction; handlers stand elsewhere, for IRET comes here */
	J	int_stub, int $0x90
	.pushsection .text.stubs, "ax"
int_stub:
	I	nop
	J	7f, iretq
	.popsection
7:	I	nop

	/* faults: the instruction retires only when it is run again, or never */
	I	mov block_bad, %ecx
	wrmsr
	FAULTS_GP 8f
8:	ud2
	FAULTS_UD 9f
9:	mov	DATA, %rax
	FAULTS_PF 9b
	E	10f, 0
10:	I	mov $11f, %r15d
	J	far_0, jmp *far_entry
	FAULTS_PF far_0			/* the jump's target is not mapped */
	E	far_1, 0			/* NOP */
	E	far_2, 0			/* NOP, and on into the next page */
	FAULTS_PF far_2
	E	far_3, 0			/* NOP */
	E	11f, 1				/* JMP *%r15 */

	/* user mode, and system calls */
11:	I	push $0x23
	I	push %rsp
	I	push $2
	I	push $0x2b
	I	push $12f
	J	12f, iretq
12:	I	nop
	J	syscall_stub, syscall
	.pushsection .text.stubs, "ax"
syscall_stub:
	I	nop
	J	13f, sysretq
	.popsection
13:	wrmsr					/* faults: CPL 3 */
	FAULTS_GP 14f
14:	I	nop
	J	leave_stub, int $0x91
leave_stub:
	I	mov saved, %rsp

	I	mov block_msr, %ecx
	I	xor %eax, %eax
	I	xor %edx, %edx
	wrmsr					/* disabled when it retires: does not count */
	pop	%r15
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret

gp_stub: addq	$2, 8(%rsp)
gp_1:	add	$8, %rsp
gp_2:	iretq

ud_stub: addq	$2, (%rsp)
ud_1:	iretq

pf_stub: push	%rax
pf_1:	mov	%cr2, %rax
pf_2:	shr	$21, %rax
pf_3:	orb	$1, low(, %rax, 8)
pf_4:	pop	%rax
pf_5:	add	$8, %rsp
pf_6:	nop
pf_7:	iretq

	.data
path_end:
far_entry: .quad far_0
	/* for far_0: its third byte is in the next page */
far_code:
	nop
	nop
	nop
	jmp	*%r15
far_code_end:
