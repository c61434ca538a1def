/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A plain loop. */
#include "guest.h"
#define N 100000

	EXPECT	insns=(1 + 2 * N + 3), taken=(N - 1), not_taken=1, far=1

	.globl	_start
_start:	mov	$N, %ecx
1:	dec	%ecx
	jnz	1b
	EXIT
