/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A 32-bit program in compatibility mode. */
#include "guest.h"
#define N 5000

	EXPECT	insns=(1 + N * (4 + 5 + 4 + 2 + 2) + 3), taken=(N - 1), not_taken=1, \
		call=N, ret=N, call_ind=0, far=(N + 1)

	.globl	_start
_start:	mov	$N, %esi
1:	xor	%eax, %eax
	into				/* no overflow: no branch */
	pusha
	popa
	mov	$room, %edi
	mov	$5, %ecx
	rep stosb
	daa
	lahf
	call	f
	enter	$8, $0
	leave
	mov	$20, %eax
	int	$0x80
	dec	%esi
	jnz	1b
	mov	$1, %eax
	xor	%ebx, %ebx
	int	$0x80
f:	ret

	.bss
room:	.skip	8
