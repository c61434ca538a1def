/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Every way to leave straight code, and a table of all of them in the order in
 * which they retire: from where to where, of which type, in which ring it ends,
 * and whether it is a branch instruction.
 */
#define DATA		0x1600000	/* large pages that are mapped upon a fault */
#define STACK		0x1800000
#define CODE		0x1a00000

#define JCC		0	/* architectural LBR's BR_TYPE */
#define JMP_IND		1
#define JMP		2
#define CALL_IND	3
#define CALL		4
#define RET		5
#define FAR		8
#define NOT_TAKEN	0xff

.macro row from:req, type:req, to:req, ring:req, counted:req
	.pushsection .data
	.quad	\from, \to
	.byte	\type, \ring, \counted
	.balign	8
	.popsection
.endm
/* The branch @insn goes to @to; k: and ends in ring 0, u: in ring 3. */
.macro k type:req, to:req, insn:vararg
.Lk\@:	\insn
	row	.Lk\@, \type, \to, 0, 1
.endm
.macro u type:req, to:req, insn:vararg
.Lu\@:	\insn
	row	.Lu\@, \type, \to, 1, 1
.endm
/* @insn faults, its handler goes back to @to. */
.macro faults ring:req, stub:req, to:req, insn:vararg
.Lf\@:	\insn
	row	.Lf\@, FAR, \stub, 0, 0
	row	\stub\()_iret, FAR, \to, \ring, 1
.endm

	.data
	.balign	16
	.globl	path, path_end
	.globl	lbr_msr, lbr_on, counter_on, to_18
	.globl	branch_pf, branch_gp, branch_ud, branch_int, branch_leave, branch_syscall
lbr_msr: .quad	0
lbr_on:	.quad	0
counter_on: .quad 0
saved:	.quad	0
to_10:	.quad	10f
to_12:	.quad	12f
to_18:	.quad	18f
to_far:	.long	14f
	.short	0x08
	.balign	8
path:

	.text
/* void branches(void): recording and the counter are on from its first lines. */
	.globl	branches
branches:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r15
	mov	%rsp, saved
	mov	lbr_msr, %ecx
	mov	lbr_on, %eax
	xor	%edx, %edx
	wrmsr
	mov	$0x186, %ecx
	mov	counter_on, %eax
	mov	counter_on + 4, %edx
	wrmsr

	k	JMP, 1f, .byte 0xeb, 1		/* short, over a byte */
	nop
1:	k	JMP, 2f, .byte 0xe9, 2, 0, 0, 0	/* near */
	nop
	nop
2:	xor	%eax, %eax
	k	NOT_TAKEN, 0, jnz 3f
	k	JCC, 3f, jz 3f
	nop
3:	mov	$3, %ecx
4:
	row	4b, JCC, 4b, 0, 1
	row	4b, JCC, 4b, 0, 1
	row	4b, NOT_TAKEN, 0, 0, 1
	loop	4b
	k	JCC, 5f, jrcxz 5f
	nop
5:	k	CALL, 6f, call 6f
	row	61f, RET, 5f, 0, 1
5:	k	CALL, 7f, call 7f
	row	7f, RET, 71f, 0, 1
71:	k	JMP, 8f, jmp 8f
6:	pop	%rax
	push	$5b
61:	ret
7:	ret
8:	mov	$9f, %eax
	k	JMP_IND, 9f, jmp *%rax
	nop
9:	k	JMP_IND, 10f, jmp *to_10
	nop
10:	mov	$11f, %eax
	k	CALL_IND, 11f, call *%rax
	nop
11:	k	CALL_IND, 12f, call *to_12
	nop
12:	mov	saved, %rsp
	push	$0x08
	push	$13f
	k	FAR, 13f, lretq
13:	k	FAR, 14f, ljmpl *to_far
	nop
14:

	/* Calls that return: each entry goes when its return comes. */
	.macro	recurse n, ring, label
	row	.Lcall\label, CALL, .Lrec\label, \ring, 1
	.rept	\n
	row	.Ljz\label, NOT_TAKEN, 0, \ring, 1
	row	.Lin\label, CALL, .Lrec\label, \ring, 1
	.endr
	row	.Ljz\label, JCC, .Lend\label, \ring, 1
	.rept	\n
	row	.Lend\label, RET, .Lback\label, \ring, 1
	.endr
	row	.Lend\label, RET, .Lout\label, \ring, 1
	mov	$\n + 1, %ecx
.Lcall\label:
	call	.Lrec\label
.Lout\label:
	nop
	.pushsection .text.stubs, "ax"
.Lrec\label:
	dec	%ecx
.Ljz\label:
	jz	.Lend\label
.Lin\label:
	call	.Lrec\label
.Lback\label:
.Lend\label:
	ret
	.popsection
	.endm

	/* Two calls are open while others come and go, and stay open. */
	.macro	open ring, letter, label
	\letter	CALL, 1f, call 1f
1:	mov	$2f, %eax
	\letter	CALL_IND, 2f, call *%rax
2:	nop
	.endm

	open	0, k, a
	recurse	5, 0, 0
	recurse	45, 0, 1		/* deeper than the stack of records */
	open	0, k, b
	mov	saved, %rsp

	/* Interrupts and faults. What faults leaves no record of its own. */
	row	15f, FAR, branch_int, 0, 1
	row	branch_int_iret, FAR, 16f, 0, 1
15:	int	$0x90
16:	faults	0, branch_ud, 17f, ud2
17:
	row	17f, FAR, branch_pf, 0, 0
	row	branch_pf_iret, FAR, 17f, 0, 1
17:	k	CALL_IND, 18f, call *DATA	/* its pointer is not mapped */
	nop
18:	mov	$21f, %r15d
	mov	$CODE, %eax
	k	JMP_IND, CODE, jmp *%rax	/* its target is not mapped */
	row	CODE, FAR, branch_pf, 0, 0
	row	branch_pf_iret, FAR, CODE, 0, 1
	row	CODE, JMP_IND, 21f, 0, 1	/* jmp *%r15 */
21:

	/* User mode. */
	push	$0x23
	push	%rsp
	push	$2
	push	$0x2b
	push	$22f
	u	FAR, 22f, iretq
22:	u	JMP, 23f, .byte 0xeb, 1
	nop
23:	mov	$24f, %eax
	u	JMP_IND, 24f, jmp *%rax
	nop
24:	xor	%eax, %eax
	u	NOT_TAKEN, 0, jnz 25f
	u	JCC, 25f, jz 25f
	nop
25:	row	25f, FAR, branch_syscall, 0, 1
	row	branch_syscall_ret, FAR, 26f, 1, 1
25:	syscall
26:	mov	$STACK + 2048, %esp
	row	19f, FAR, branch_pf, 0, 0
	row	branch_pf_iret, FAR, 19f, 1, 1
19:	u	CALL, 20f, call 20f		/* its stack is not mapped */
	nop
20:	open	1, u, c
	recurse	3, 1, 2
	faults	1, branch_gp, 27f, wrmsr
27:	recurse	60, 1, 3
	open	1, u, d
	row	28f, FAR, branch_leave, 0, 1
28:	int	$0x91
	.pushsection .text.stubs, "ax"
branch_syscall:
	nop
branch_syscall_ret:
	sysretq
branch_leave:
	mov	saved, %rsp
	k	JMP, 29f, jmp 29f
	.popsection
29:
	.pushsection .data
path_end:
	.popsection

	xor	%eax, %eax
	xor	%edx, %edx
	mov	lbr_msr, %ecx
	wrmsr
	mov	$0x186, %ecx
	wrmsr
	pop	%r15
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret

	.section .text.stubs, "ax"
branch_int:
	nop
branch_int_iret:
	iretq
branch_ud:
	addq	$2, (%rsp)
branch_ud_iret:
	iretq
branch_gp:
	add	$8, %rsp
	addq	$2, (%rsp)
branch_gp_iret:
	iretq
branch_pf:
	push	%rax
	mov	%cr2, %rax
	shr	$21, %rax
	orb	$1, low(, %rax, 8)
	pop	%rax
	add	$8, %rsp
branch_pf_iret:
	iretq

/* void calls(uint64_t): at CPL 3, two open calls and a third that is done, again
   and again; ends with the two open, by the LEAVE interrupt. */
	.text
	.globl	calls, call_1, call_2, call_1_to, call_2_to
calls:
	mov	%rdi, %r8
call_1:	call	call_1_to
call_1_to:
call_2:	call	call_2_to
call_2_to:
1:	mov	$20, %ecx
	call	2f
	dec	%r8
	jnz	1b
	int	$0x81
2:	dec	%ecx
	jz	3f
	call	2b
3:	ret
