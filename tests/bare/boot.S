/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * From PVH's 32-bit entry to main() in long mode: 1 GiB mapped as it is, open to
 * user mode, and the local APIC; 256 gates; a stack of its own for NMIs.
 */
#define KERNEL_CS	0x08
#define KERNEL_SS	0x10
#define USER_SS		0x23
#define USER_CS		0x2b
#define TSS		0x30
#define PAGE		4096

	.section .note.pvh, "a", @note
	.balign	4
	.long	4, 4, 18		/* XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz	"Xen"
	.long	start32

	.text
	.code32
	.globl	start32
start32:
	cli
	mov	%ebx, start_info
	mov	$pml4, %eax
	mov	%eax, %cr3
	mov	$0x620, %eax		/* PAE, OSFXSR, OSXMMEXCPT */
	mov	%eax, %cr4
	mov	$0xc0000080, %ecx
	rdmsr
	or	$0x101, %eax		/* LME, SCE */
	wrmsr
	mov	$0x80000033, %eax	/* PG, NE, ET, MP, PE */
	mov	%eax, %cr0
	lgdt	gdt_pointer
	ljmp	$KERNEL_CS, $start64

	.code64
start64:
	mov	$KERNEL_SS, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	mov	$stack_top, %rsp
	/* the gates' addresses, and the TSS's, are known only now */
	mov	$idt, %rdi
	mov	$stubs, %rax
	mov	$256, %ecx
1:	mov	%ax, (%rdi)
	mov	%eax, %edx
	shr	$16, %edx
	mov	%dx, 6(%rdi)
	add	$16, %rax
	add	$16, %rdi
	dec	%ecx
	jnz	1b
	movb	$1, idt + 2 * 16 + 4	/* NMIs: IST 1 */
	mov	$tss, %eax
	mov	%ax, gdt + TSS + 2
	shr	$16, %eax
	mov	%al, gdt + TSS + 4
	mov	%ah, gdt + TSS + 7
	lidt	idt_pointer
	mov	$TSS, %eax
	ltr	%ax
	mov	start_info, %edi
	mov	24(%rdi), %rdi		/* the command line */
	call	main
	mov	%eax, %edi
	call	leave

/* Gates: [error] vector, then trap(frame). */
	.balign	16
stubs:
	.set	vector, 0
	.rept	256
	.balign	16
	.if	!(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21)
	push	$0
	.endif
	push	$vector
	jmp	common
	.set	vector, vector + 1
	.endr

common:	cld
	.irp	r, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	push	%\r
	.endr
	mov	%rsp, %rdi
	call	trap
	.irp	r, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
	pop	%\r
	.endr
	add	$16, %rsp
	iretq

/* void user_call(void (*f)(uint64_t), uint64_t arg): f(arg) at CPL 3. */
	.globl	user_call, user_left
user_call:
	.irp	r, rbx, rbp, r12, r13, r14, r15
	push	%\r
	.endr
	pushfq
	mov	%rsp, user_resume
	mov	$user_stack_top - 8, %rdx
	movq	$user_return, (%rdx)
	pushq	$USER_SS
	push	%rdx
	pushfq
	pushq	$USER_CS
	push	%rdi
	mov	%rsi, %rdi
	iretq
user_return:
	int	$0x81
	/* trap() comes here at CPL 0, on the stack that was left */
user_left:
	popfq
	.irp	r, r15, r14, r13, r12, rbp, rbx
	pop	%\r
	.endr
	ret

/* An access that may fault: returns 1 when it did. */
	.globl	try_rdmsr, try_wrmsr, try_rdpmc
try_rdmsr:				/* (index, value *) */
	movq	$2f, recover
	mov	%edi, %ecx
	rdmsr
	jmp	1f
try_rdpmc:
	movq	$2f, recover
	mov	%edi, %ecx
	rdpmc
1:	movq	$0, recover
	shl	$32, %rdx
	mov	%eax, %eax
	or	%rdx, %rax
	mov	%rax, (%rsi)
	xor	%eax, %eax
	ret
try_wrmsr:				/* (index, value) */
	movq	$2f, recover
	mov	%edi, %ecx
	mov	%esi, %eax
	mov	%rsi, %rdx
	shr	$32, %rdx
	wrmsr
	movq	$0, recover
	xor	%eax, %eax
	ret
2:	movq	$0, recover
	mov	$1, %eax
	ret

	.data
	.balign	PAGE
pml4:	.quad	pdpt + 7
	.skip	PAGE - 8
pdpt:	.quad	low + 7, 0, 0, high + 7
	.skip	PAGE - 4 * 8
	.globl	low
low:	.set	page, 0
	.rept	512
	.quad	(page << 21) + 0x87
	.set	page, page + 1
	.endr
high:	.skip	503 * 8
	.quad	0xfee0009f		/* the local APIC, uncached */
	.skip	8 * 8
	.balign	16
	.globl	gdt, idt
gdt:	.quad	0
	.quad	0x00af9b000000ffff	/* 08: code, 64 bits */
	.quad	0x00cf93000000ffff	/* 10: data */
	.quad	0x00cffb000000ffff	/* 18: user's code, 32 bits */
	.quad	0x00cff3000000ffff	/* 20: user's data */
	.quad	0x00affb000000ffff	/* 28: user's code, 64 bits */
	.quad	0x0000890000000067, 0	/* 30: TSS */
gdt_pointer:
	.short	. - gdt - 1
	.quad	gdt
	.balign	16
idt:	.set	vector, 0
	.rept	256
	.short	0, KERNEL_CS
	.byte	0
	.if	vector < 0x20 && vector != 3
	.byte	0x8e
	.else
	.byte	0xee			/* DPL 3 */
	.endif
	.short	0
	.quad	0
	.set	vector, vector + 1
	.endr
idt_pointer:
	.short	. - idt - 1
	.quad	idt
	.balign	16
tss:	.long	0
	.quad	trap_stack_top, 0, 0
	.quad	0
	.quad	nmi_stack_top
	.skip	64

	.bss
	.globl	recover, user_resume
	.balign	16
start_info: .skip 8
recover: .skip	8
user_resume: .skip 8
	.balign	PAGE
	.skip	16 * PAGE
stack_top:
	.skip	16 * PAGE
trap_stack_top:
	.skip	16 * PAGE
nmi_stack_top:
	.skip	16 * PAGE
user_stack_top:
