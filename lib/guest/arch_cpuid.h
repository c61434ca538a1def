/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* CPUID of the architectural PMU. */
#ifndef VPMU_ARCH_CPUID_H
#define VPMU_ARCH_CPUID_H

#include <vpmu/arch.h>

#define ARCH_LEAVES		12	/* CPUID leaves that are ours in part */
#define ARCH_SUBLEAF_ANY	UINT32_MAX

/* A CPUID leaf of which bits are ours: those of the caller's that stay, and ours. */
struct arch_leaf {
	uint32_t leaf, subleaf;
	struct vpmu_cpuid keep, set;
};

/** Fill in v->leaf, after everything else is resolved. */
void arch_cpuid_resolve(struct vpmu_arch *v);

#endif /* VPMU_ARCH_CPUID_H */
