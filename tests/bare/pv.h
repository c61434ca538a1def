/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Calling the paravirtual PMU, in 64-bit and in 32-bit programs. */
#ifndef PV_H
#define PV_H

#include <vpmu/pv_abi.h>

#define PV_CALL(insn)							\
	long result;							\
									\
	asm volatile(insn : "=a" (result)				\
		     : "a" ((unsigned long)nr), "b" ((unsigned long)a0), \
		       "c" ((unsigned long)a1), "d" ((unsigned long)a2) : "memory"); \
	return result

/* What pv_call() calls by. KVM on AMD replaces a VMCALL in the program by the other. */
#ifndef PV_VMCALL
#define PV_VMCALL "vmcall"
#endif

static inline int64_t pv_call(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	PV_CALL(PV_VMCALL);
}

static inline int64_t pv_vmmcall(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	PV_CALL("vmmcall");
}

/* The hypervisor's CPUID leaves with that signature of 12 bytes, or 0. */
static inline uint32_t pv_base(const char *signature)
{
	uint32_t leaf, s[3], a;

	for (leaf = 0x40000000; leaf < 0x40010000; leaf += 0x100) {
		asm volatile("cpuid" : "=a" (a), "=b" (s[0]), "=c" (s[1]), "=d" (s[2])
			     : "a" (leaf), "c" (0));
		if (!__builtin_memcmp(s, signature, 12))
			return leaf;
	}
	return 0;
}

#endif
