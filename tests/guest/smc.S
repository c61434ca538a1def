/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Code that writes code: ahead in its own block, and in another page. */
#include "guest.h"
#define N 1000				/* even */

	EXPECT	insns=(2 + 16 * N + N / 2 + 3), \
		taken=(N / 2 + N - 1), not_taken=(2 * N + N / 2 + 1), \
		call=N, ret=N, far=1

	.section .smc, "awx", @progbits
	.globl	_start
_start:	mov	$N, %ecx
	xor	%ebx, %ebx
1:	inc	%ebx
	incl	2f + 1(%rip)		/* the next instruction's operand */
2:	mov	$0, %eax
	cmp	%ebx, %eax
	jne	fail
	xorb	$1, 3f(%rip)		/* JZ becomes JNZ and back */
	cmp	%eax, %eax
3:	jnz	4f
	nop				/* every second turn */
4:	mov	%ebx, other + 1(%rip)
	call	other
	cmp	%ebx, %eax
	jne	fail
	dec	%ecx
	jnz	1b
	EXIT
	FAIL

	.balign	4096
other:	mov	$0, %eax
	ret
	.balign	4096
