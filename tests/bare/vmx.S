/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * VM entries and exits, and guests of known length.
 */
	.set	HOST_RSP, 0x6c14
	.set	HOST_RIP, 0x6c16
	.set	GLOBAL, 0x38f

	.macro	enter
	.irp	r, rbx, rbp, r12, r13, r14, r15
	push	%\r
	.endr
	mov	$HOST_RSP, %eax
	vmwrite	%rsp, %rax
	.endm
	.macro	quit
	.irp	r, r15, r14, r13, r12, rbp, rbx
	pop	%\r
	.endr
	ret
	.endm

	.text
/* uint64_t vmx_enter(uint64_t resume): 0 after an exit, else the flags of VMfail. */
	.globl	vmx_enter
vmx_enter:
	enter
	mov	$HOST_RIP, %eax
	mov	$exited, %ecx
	vmwrite	%rcx, %rax
	test	%rdi, %rdi
	jnz	1f
	vmlaunch
	jmp	2f
1:	vmresume
2:	pushf
	pop	%rax
	jmp	3f
exited:	xor	%eax, %eax
3:	quit

/*
 * void vmx_round(uint64_t on): what GLOBAL_CTRL = @on counts of a host that enters a guest
 * and of the guest.
 */
	.globl	vmx_round
vmx_round:
	enter
	mov	$HOST_RIP, %eax
	mov	$round_exited, %ecx
	vmwrite	%rcx, %rax
	mov	%edi, %eax
	mov	%rdi, %rdx
	shr	$32, %rdx
	mov	$GLOBAL, %ecx
	wrmsr				/* 1: it retires when it has enabled */
	vmlaunch			/* 2 */
	jmp	1f			/* refused */
round_exited:
	mov	$GLOBAL, %ecx		/* 3 */
	xor	%eax, %eax		/* 4 */
	xor	%edx, %edx		/* 5 */
	wrmsr				/* not: it has disabled */
1:	quit

/* A guest of vmx_guest_length instructions; VMCALL exits and does not retire. */
	.set	TURNS, 1000
	.globl	vmx_guest, vmx_guest_length
	.set	vmx_guest_length, 1 + 3 * TURNS + 5
vmx_guest:
	mov	$TURNS, %ecx		/* 1 */
1:	nop				/* TURNS times 3 */
	dec	%ecx
	jnz	1b
	push	%rcx			/* 5 */
	pop	%rcx
	call	2f
2:	pop	%rcx
	nop
	vmcall
	hlt

/* A guest that counts by counter 0 from its fourth instruction on, which it does not count. */
	.globl	vmx_switch
vmx_switch:
	mov	$GLOBAL, %ecx		/* 1 */
	mov	$1, %eax		/* 2 */
	xor	%edx, %edx		/* 3 */
	wrmsr
	vmcall
	hlt

/* A guest whose interrupt window opens with STI's next instruction. */
	.globl	vmx_window
vmx_window:
	xor	%eax, %eax
	mov	%rax, %cr8
	sti
	nop
	vmcall
	hlt

/*
 * Guests that load an address that is not canonical, one every 64 bytes; then one that only
 * exits. They need vmx_gdt and CR4.FSGSBASE.
 */
	.set	BAD, 0xaaaaaaaaaaaaaaaa
	.macro	bad insn
	.balign	64, 0x90
	movabs	$BAD, %rax
	mov	$BAD & 0xffffffff, %edx
	\insn
	vmcall
	.endm
	.balign	64, 0x90
	.globl	vmx_bad, vmx_bad_end
vmx_bad:
	.irp	insn, "lgdt table", "lidt table", "wrfsbase %rax", "wrgsbase %rax", "jmp *%rax"
	bad	"\insn"
	.endr
	.irp	msr, 0x175, 0x176, 0xc0000082, 0xc0000083, 0xc0000100, 0xc0000101, 0xc0000102
	bad	"mov $\msr, %ecx; mov %edx, %eax; wrmsr"
	.endr
	.irp	insn, "mov $0x8, %eax; ltr %ax", "mov $0x18, %eax; lldt %ax"
	bad	"\insn"
	.endr
	.balign	64, 0x90
vmx_bad_end:
	vmcall
	.pushsection .data
	.balign	8
	.globl	vmx_gdt
vmx_gdt: .quad	0, 0xaa0089aaaaaa0067, BAD >> 32, 0xaa0082aaaaaa0067, BAD >> 32
table:	.word	0xff
	.quad	BAD
	.popsection

/* int vmx_try(unsigned int what, void *memory, uint64_t number): 1 if it faults. */
	.globl	vmx_try
vmx_try:
	movq	$9f, recover
	mov	%rdx, %rax
	lea	1f(, %rdi, 8), %rcx
	mov	(%rcx), %rcx
	jmp	*%rcx
	.pushsection .data
	.balign	8
1:	.quad	try_on, try_clear, try_load, try_store
	.quad	try_ept, try_vpid, try_read, try_write, try_off
	.popsection
try_on:	vmxon	(%rsi)
	jmp	8f
try_clear:
	vmclear	(%rsi)
	jmp	8f
try_load:
	vmptrld	(%rsi)
	jmp	8f
try_store:
	vmptrst	(%rsi)
	jmp	8f
try_ept:
	invept	(%rsi), %rax
	jmp	8f
try_vpid:
	invvpid	(%rsi), %rax
	jmp	8f
try_read:
	vmread	%rax, (%rsi)
	jmp	8f
try_write:
	vmwrite	(%rsi), %rax
	jmp	8f
try_off:
	vmxoff
8:	movq	$0, recover
	xor	%eax, %eax
	ret
9:	mov	$1, %eax
	ret

/* A guest may do these at any of its addresses; an exit or the next of them follows. */
	.balign	16
	.globl	vmx_wild, vmx_wild_end
vmx_wild:
	.irp	insn, cpuid, rdmsr, wrmsr, rdpmc, rdtsc, rdtscp, hlt, pause, \
		vmcall, vmxoff, vmlaunch, vmresume, ud2, int3, ".byte 0xf1", \
		invd, wbinvd, sti, cli, pushfq, popfq, iretq, clts, swapgs, xsetbv, \
		"mov %cr0, %rax", "mov %rax, %cr0", "mov %rax, %cr3", \
		"mov %cr3, %rax", "mov %rax, %cr4", "mov %cr8, %rax", \
		"mov %rax, %cr8", "mov %rax, %db7", "mov %db6, %rax", \
		"invlpg (%rax)", "in %dx, %al", "out %al, %dx", "rep insb", \
		"rep outsl", "lmsw %ax", "smsw %ax", "mov %eax, %ss", \
		"mov %eax, %ds", "int $0x30", "vmread %rax, %rax", \
		"vmwrite %rax, %rax", "vmptrld 8(%rsp,%rbx,4)", "vmxon (%rax)", \
		"invept (%rax), %rcx", "lgdt (%rax)", "ltr %ax", \
		"mov (%rax), %ecx", "mov %ecx, (%rax)", "jmp *%rax"
	\insn
	.balign	8, 0x90
	.endr
	jmp	vmx_wild
	.balign	16, 0x90
vmx_wild_end:
