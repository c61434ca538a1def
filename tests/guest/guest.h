/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Macros that the guest programs share. Each program is static, without libc, and says
 * with EXPECT how much of what it retires in user mode from its first instruction to the
 * SYSCALL that ends it; tests/guest/count compares the PMU with that. Exit status 0 says
 * that the program itself noticed no error.
 */
#define SYS_mmap		9
#define SYS_munmap		11
#define SYS_rt_sigaction	13
#define SYS_rt_sigreturn	15
#define SYS_getpid		39
#define SYS_clone		56
#define SYS_exit		60
#define SYS_wait4		61
#define SYS_kill		62

#define SIGILL			4
#define SIGTRAP			5
#define SIGFPE			8
#define SIGUSR1			10
#define SIGSEGV			11

#define UC_RIP			168	/* offset in the ucontext that a handler gets */

/*
 * Retired instructions, and retired branches by kind. SYSCALL, INT n and INT3
 * are far branches; what faults retires only when it is run again.
 */
.macro EXPECT insns:req, taken=0, not_taken=0, jmp=0, call=0, ret=0, jmp_ind=0, call_ind=0, far=0
	.pushsection .expect, "", @progbits
	.quad	\insns, \taken, \not_taken, \jmp, \call, \ret, \jmp_ind, \call_ind, \far
	.popsection
.endm

/* 3 instructions, 1 far */
.macro EXIT
#ifdef __i386__
	mov	$1, %eax
	xor	%ebx, %ebx
	int	$0x80
#else
	mov	$SYS_exit, %eax
	xor	%edi, %edi
	syscall
#endif
.endm

/* The way out when a program finds something wrong: never run otherwise. */
.macro FAIL
fail:	mov	$SYS_exit, %eax
	mov	$1, %edi
	syscall
.endm

/* Anonymous memory, its address in RAX: 7 instructions, 1 far */
.macro MMAP bytes:req
	mov	$SYS_mmap, %eax
	xor	%edi, %edi
	mov	$(\bytes), %esi
	mov	$3, %edx
	mov	$0x22, %r10d
	or	$-1, %r8
	syscall
.endm

/* 4 instructions, 1 far */
.macro MUNMAP addr:req, bytes:req
	mov	$SYS_munmap, %eax
	mov	\addr, %rdi
	mov	$(\bytes), %esi
	syscall
.endm

/* 6 instructions, 1 far */
.macro SIGACTION signal:req, action:req
	mov	$SYS_rt_sigaction, %eax
	mov	$\signal, %edi
	lea	\action(%rip), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
.endm

/* The action of a handler; SA_SIGINFO | SA_RESTORER | SA_NODEFER. */
.macro ACTION name:req, handler:req
	.pushsection .data
	.balign	8
\name:	.quad	\handler, 0x44000004, restorer, 0
	.popsection
.endm

/* The code that handlers return to: 2 instructions, 1 far */
.macro RESTORER
restorer:
	mov	$SYS_rt_sigreturn, %eax
	syscall
.endm
