/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The report to a guest that a counter of its PMU did not count: a block of
 * read-only MSRs per vCPU, found by CPUID. docs/GUEST-LOSS.md specifies it.
 */
#ifndef VPMU_LOSS_H
#define VPMU_LOSS_H

#include <vpmu/platform.h>

/*
 * vpmu's CPUID leaves: a hypervisor's block, at 40000000H + n * 100H. Its first
 * leaf answers EAX = last leaf of the block, EBX, ECX, EDX = "VPMUforGuest".
 */
#define VPMU_CPUID_SIGNATURE_EBX	0x554d5056u /* "VPMU" */
#define VPMU_CPUID_SIGNATURE_ECX	0x47726f66u /* "forG" */
#define VPMU_CPUID_SIGNATURE_EDX	0x74736575u /* "uest" */
#define VPMU_CPUID_FEATURES		1u /* leaf: EAX = features, others 0 */
#define VPMU_CPUID_FEATURE_LOSS		1u /* EAX bit 0: the block below */
#define VPMU_CPUID_FEATURE_LOSS_LBR	2u /* EAX bit 1: with LOSS_LBR */
#define VPMU_CPUID_LOSS			2u /* leaf: EAX[7:0] version, [15:8] GP
					      counters, [23:16] fixed counters; EBX first
					      MSR; EDX:ECX Hz of the time unit */
#define VPMU_LOSS_VERSION		1u

/*
 * The block. It lies outside of MSR bitmaps: a hypervisor always sees an
 * access.
 */
#define VPMU_MSR_LOSS			0x56504d00u /* "VPM\0" */
#define VPMU_MSR_LOSS_GENERATION	(VPMU_MSR_LOSS + 0) /* changes of any reason */
#define VPMU_MSR_LOSS_STATUS		(VPMU_MSR_LOSS + 1) /* GLOBAL_STATUS layout:
							       enabled and not counting */
#define VPMU_MSR_LOSS_CTRL		(VPMU_MSR_LOSS + 2) /* the only writable register */
#define VPMU_LOSS_CTRL_PMI		1ull /* bit 0: a PMI when a counter is lost */
#define VPMU_MSR_LOSS_LBR		(VPMU_MSR_LOSS + 3) /* branch records: layout of
							       LOSS_REASON */
#define VPMU_LOSS_STATUS_LBR		(1ull << 58) /* in LOSS_STATUS */
/* + 8 is VPMU_PV_MSR_DOORBELL of pv_abi.h. */
#define VPMU_MSR_LOSS_PMC(pmc)		(VPMU_MSR_LOSS + 0x10 + 4 * (pmc))
#define VPMU_LOSS_ENABLED		0u /* + this: time enabled */
#define VPMU_LOSS_RUNNING		1u /* + this: time running, at most enabled */
#define VPMU_LOSS_REASON		2u /* + this: [7:0] enum vpmu_loss now, [15:8]
					      of the latest loss, [63:32] generation:
					      changes of [7:0] */
#define VPMU_MSR_LOSS_END		(VPMU_MSR_LOSS + 0x100)

/* The reason why an enabled counter does not count. */
enum vpmu_loss {
	VPMU_LOSS_NONE,        /* it counts, or is disabled */
	VPMU_LOSS_LOST,        /* the host has taken its counter */
	VPMU_LOSS_FILTERED,    /* the VM's event filter denies its event */
	VPMU_LOSS_NOT_COUNTED, /* no counter here counts its event */
};

#endif /* VPMU_LOSS_H */
