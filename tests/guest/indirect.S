/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Jumps and calls through registers and memory. */
#include "guest.h"
#define N 4000				/* a multiple of 4 */

	EXPECT	insns=(1 + N * (3 + 1 + 5 + 2 + 2) + 6 * N / 4 + 3), \
		taken=(N - 1), not_taken=1, jmp=(N), ret=(2 * N), \
		jmp_ind=(2 * N), call_ind=(2 * N), far=1

	.globl	_start
_start:	mov	$N, %ebx
1:	mov	%ebx, %eax
	and	$3, %eax
	jmp	*table(, %rax, 8)
	/* 0, 1, 2 or 3 NOPs: 6 in four turns */
t0:	jmp	2f
t3:	nop
t2:	nop
t1:	nop
	jmp	2f
2:	lea	f(%rip), %rdx
	call	*%rdx
	call	*pointer(%rip)
	lea	3f(%rip), %rdx
	jmp	*%rdx
	ud2
3:	dec	%ebx
	jnz	1b
	EXIT

f:	ret

	.data
	.balign	8
table:	.quad	t0, t1, t2, t3
pointer: .quad	f
