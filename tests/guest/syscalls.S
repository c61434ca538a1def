/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Into the kernel and back. */
#include "guest.h"
#define N 5000

	EXPECT	insns=(1 + 4 * N + 3), taken=(N - 1), not_taken=1, far=(N + 1)

	.globl	_start
_start:	mov	$N, %ebx
1:	mov	$SYS_getpid, %eax
	syscall
	dec	%ebx
	jnz	1b
	EXIT
