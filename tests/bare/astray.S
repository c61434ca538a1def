/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Jumps to where there is no memory: KVM has no instruction to execute, and gives up. */
	.section .note.pvh, "a", @note
	.balign	4
	.long	4, 4, 18		/* XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz	"Xen"
	.long	start

	.text
	.globl	start
start:
	mov	$0xd0000000, %eax
	jmp	*%eax
