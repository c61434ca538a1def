/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Children: their work is counted if events are inherited. */
#include "guest.h"
#define N	10
#define TURNS	20000

	EXPECT	insns=(1 + 9 * N + 1 + 5 * N + 3 + N * (2 + 1 + 2 * TURNS + 3)), \
		taken=(N + N * (TURNS - 1) + N - 1 + N - 1), \
		not_taken=(N + N + 1 + 1), far=(3 * N + 1)

	.globl	_start
_start:	mov	$N, %ebx
1:	mov	$SYS_clone, %eax	/* like fork() */
	mov	$17, %edi
	xor	%esi, %esi
	xor	%edx, %edx
	syscall
	test	%eax, %eax
	jz	child
	dec	%ebx
	jnz	1b

	mov	$N, %ebx
2:	mov	$SYS_wait4, %eax
	or	$-1, %edi
	syscall
	dec	%ebx
	jnz	2b
	EXIT

child:	mov	$TURNS, %ecx
1:	dec	%ecx
	jnz	1b
	EXIT
