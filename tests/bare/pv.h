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

/*
 * The instructions of pv_call() and pv_vmmcall(). KVM replaces a VMCALL in the program by
 * VMMCALL on AMD, and the other way about on Intel.
 */
#ifndef PV_VMMCALL
#define PV_VMMCALL "vmmcall"
#endif
#ifndef PV_VMCALL
#define PV_VMCALL "vmcall"
#endif

static inline int64_t pv_call(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	PV_CALL(PV_VMCALL);
}

static inline int64_t pv_vmmcall(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	PV_CALL(PV_VMMCALL);
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

/* A batch of two operations, of events 1 and 2. */
struct pv_two {
	struct vpmu_pv_batch head;
	struct vpmu_pv_op op[2];
};

/* OPEN is of instructions; ENABLE's second event overflows each @period. */
static inline void pv_two_write(struct pv_two *batch, uint16_t code, uint64_t period)
{
	__builtin_memset(batch, 0, sizeof(*batch));
	batch->head.size = sizeof(*batch);
	batch->head.n_ops = 2;
	for (unsigned int i = 0; i < 2; i++) {
		batch->op[i].op = code;
		batch->op[i].id = i + 1;
		if (code == VPMU_PV_OPEN)
			batch->op[i].u.open.config = 1; /* instructions */
		if (code == VPMU_PV_ENABLE) {
			batch->op[i].slot = i;
			batch->op[i].u.enable.left = i ? period : 0;
			batch->op[i].u.enable.period = i ? period : 0;
		}
	}
}

#endif
