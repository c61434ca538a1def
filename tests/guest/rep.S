/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* REP strings: each is one instruction, however often it repeats. */
#include "guest.h"
#define MAX	131077			/* two times 65536, and 5 */
#define COUNTS	0, 1, 2, 255, 256, 65535, 65536, 65537, MAX

	.set	cases, 0

/* @insn with @count, after which RCX must be @left: 7 instructions, 1 not taken */
.macro CASE insn:req, count:req, left=0
	lea	source(%rip), %rsi
	lea	target(%rip), %rdi
	xor	%eax, %eax
	mov	$(\count), %ecx
	\insn
	cmp	$(\left), %rcx
	jne	fail
	.set	cases, cases + 1
.endm

	.globl	_start
_start:
	.irp	count, COUNTS
	CASE	"rep movsb", \count
	CASE	"rep movsq", \count
	CASE	"rep stosb", \count
	CASE	"rep stosq", \count
	CASE	"rep lodsb", \count
	CASE	"repe scasb", \count
	CASE	"repe cmpsb", \count
	.endr
	/* and those that end early: at the first element, in the middle */
	.irp	count, 1, 2, 65537, MAX
	CASE	"repne scasb", \count, (\count - 1)
	CASE	"repne cmpsb", \count, (\count - 1)
	.endr
	movb	$1, target + 70000(%rip)
	CASE	"repe scasb", MAX, (MAX - 70001)
	CASE	"repe cmpsb", MAX, (MAX - 70001)
	EXIT
	FAIL

	EXPECT	insns=(cases * 7 + 1 + 3), not_taken=cases, far=1

	.bss
source:	.skip	8 * MAX
target:	.skip	8 * MAX
