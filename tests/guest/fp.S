/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* x87, MMX and SSE; FWAIT is an instruction of its own. */
#include "guest.h"
#define N	2000
#define BODY	46

	EXPECT	insns=(1 + N * (BODY + 2) + 3), taken=(N - 1), not_taken=1, far=1

	.globl	_start
_start:	mov	$N, %ecx
1:	fninit
	fldpi
	fld1
	fsincos
	fxch
	fsqrt
	fpatan
	fmulp
	f2xm1
	fldl2e
	fyl2x
	fabs
	fchs
	fildl	integer(%rip)
	faddp
	frndint
	fistpll	room(%rip)
	fnstcw	room(%rip)
	fldcw	room(%rip)
	fwait
	fnstsw	%ax
	fnsave	room(%rip)
	frstor	room(%rip)
	emms
	fninit
	fxsave	room(%rip)
	fxrstor	room(%rip)
	movaps	vector(%rip), %xmm0
	movaps	%xmm0, %xmm1
	addps	%xmm1, %xmm0
	mulpd	%xmm1, %xmm0
	divss	%xmm1, %xmm0
	sqrtpd	%xmm1, %xmm2
	cvtsi2sd %ecx, %xmm3
	cvttsd2si %xmm3, %eax
	pshufd	$0x1b, %xmm0, %xmm1
	pmuludq %xmm0, %xmm1
	pcmpeqb	%xmm2, %xmm2
	pmovmskb %xmm2, %eax
	stmxcsr	room(%rip)
	ldmxcsr	room(%rip)
	movdq2q	%xmm0, %mm0
	paddb	%mm0, %mm0
	emms
	movntdq	%xmm0, room(%rip)
	movups	%xmm0, room + 5(%rip)
	dec	%ecx
	jnz	1b
	EXIT

	.data
	.balign	64
vector:	.float	1.5, 2.5, 3.5, 4.5
integer: .long	42
	.balign	64
room:	.skip	512
