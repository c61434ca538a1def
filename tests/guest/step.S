/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A bit of everything, few enough to be run step by step under ptrace. */
#include "guest.h"
#define N 20

	EXPECT	insns=(6 + 1 + N * (2 + 2 + 3 + 1 + 2 + 2 + 2) + 3), \
		taken=(N - 1), not_taken=1, call=N, ret=(2 * N), far=(1 + 2 * N + 1)

	.globl	_start
_start:	SIGACTION SIGILL, action
	mov	$N, %ebx
1:	mov	$SYS_getpid, %eax
	syscall
	call	f
	lea	room(%rip), %rdi
	mov	$5, %ecx
	rep stosb			/* each repetition traps, one retires */
	rdtsc
	ud2
	dec	%ebx
	jnz	1b
	EXIT

f:	ret
handler:
	addq	$2, UC_RIP(%rdx)
	ret
	RESTORER
	ACTION	action, handler

	.bss
room:	.skip	8
