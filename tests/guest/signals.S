/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Signals to oneself, with a handler that returns. */
#include "guest.h"
#define N 500

	EXPECT	insns=(6 + 4 + N * (6 + 2 + 2) + 2 + 3), \
		taken=(N - 1), not_taken=2, ret=N, far=(1 + 1 + 2 * N + 1)

	.globl	_start
_start:	SIGACTION SIGUSR1, action
	mov	$SYS_getpid, %eax
	syscall
	mov	%eax, %r12d
	mov	$N, %ebx
1:	mov	$SYS_kill, %eax
	mov	%r12d, %edi
	mov	$SIGUSR1, %esi
	syscall
	dec	%ebx
	jnz	1b
	cmpl	$N, seen(%rip)
	jne	fail
	EXIT
	FAIL

handler:
	incl	seen(%rip)
	ret
	RESTORER
	ACTION	action, handler

	.bss
seen:	.skip	8
