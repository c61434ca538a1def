/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Conditional branches of every form, taken and not, in patterns of eight. */
#include "guest.h"
#ifdef __i386__
#define jrcxz jecxz
#endif
#define N 8000

	EXPECT	insns=(1 + 28 * N + N / 2 + N / 4 + N / 2 + 3), \
		taken=(N / 2 + 3 * N / 4 + N / 2 + N / 2 + 2 * N + 3 * N + N - 1), \
		not_taken=(N / 2 + N / 4 + N / 2 + N / 2 + N + N + N + 1), \
		jmp=(N / 2 + N), far=1

	.globl	_start
_start:	xor	%ebx, %ebx
1:	test	$1, %bl
	jz	2f			/* every second */
	nop				/* N / 2 */
2:	test	$3, %bl
	jnz	3f			/* three of four */
	nop				/* N / 4 */
3:	bt	$2, %ebx
	jc	4f			/* four of eight */
	jmp	5f			/* the other four */
4:	nop
5:	jmp	6f
	ud2
6:	mov	%ebx, %ecx
	and	$1, %ecx
	jrcxz	7f			/* every second */
	nop				/* N / 2 */
7:	mov	$3, %ecx
8:	loop	8b			/* twice of three times */
	mov	$4, %ecx
	xor	%eax, %eax
9:	loope	9b			/* three of four times */
	mov	$4, %ecx
	test	%eax, %eax
	loopne	9b			/* never */
	cmovz	%eax, %edx
	inc	%ebx
	cmp	$N, %ebx
	jb	1b
	EXIT
