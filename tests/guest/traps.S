/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Traps and faults: INT3 and INT 80H retire, as far branches; UD2, a division by
 * zero, an INT without a right to its gate, HLT and RDPMC at CPL 3, a far return
 * to nowhere and an IRET to nowhere do not.
 */
#include "guest.h"
#define N	100
#define FAULTS	7

	/* a turn's own, its handlers, their returns */
	EXPECT	insns=(4 * 6 + 1 + N * (25 + (1 + FAULTS) * (3 + 2)) + 3), \
		taken=(N - 1), not_taken=1, ret=(N * (1 + FAULTS)), \
		far=(4 + N * (2 + 1 + FAULTS) + 1)

	.globl	_start
_start:	SIGACTION SIGTRAP, action
	SIGACTION SIGILL, action
	SIGACTION SIGFPE, action
	SIGACTION SIGSEGV, action
	mov	$N, %ebx
1:	xor	%ebp, %ebp		/* bytes that the handler skips */
	int3
	mov	$2, %ebp
	nop
	ud2
	xor	%ecx, %ecx
	div	%ecx
	nop
	int	$0x21
	nop
	mov	$1, %ebp
	hlt
	nop
	mov	$2, %ebp
	xor	%ecx, %ecx
	rdpmc
	nop
	push	$0x1235
	push	$0
	nop
	lretq				/* two bytes */
	nop
	iretq				/* two bytes */
	pop	%rax
	pop	%rax
	mov	$20, %eax		/* getpid of 32-bit programs */
	int	$0x80
	nop
	nop
	nop
	dec	%ebx
	jnz	1b
	EXIT

handler:
	add	%rbp, UC_RIP(%rdx)
	nop
	ret
	RESTORER
	ACTION	action, handler
