/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Register numbers and bits of the architectural PMU.
 * Source: SDM vol. 4, "Architectural MSRs"; AMD64 APM vol. 2, "Performance
 * Monitoring Counters"; facts by section title where used.
 */
#ifndef VPMU_MSR_H
#define VPMU_MSR_H

#include <vpmu/platform.h>

#define VPMU_MSR_PMC0			0x0c1u	/* legacy counter, sign-extending writes */
#define VPMU_MSR_PERFEVTSEL0		0x186u
#define VPMU_MSR_MISC_ENABLE		0x1a0u
#define VPMU_MSR_DEBUGCTL		0x1d9u
#define VPMU_MSR_FIXED_CTR0		0x309u
#define VPMU_MSR_PERF_METRICS		0x329u
#define VPMU_MSR_PERF_CAPABILITIES	0x345u
#define VPMU_MSR_FIXED_CTR_CTRL		0x38du
#define VPMU_MSR_GLOBAL_STATUS		0x38eu
#define VPMU_MSR_GLOBAL_CTRL		0x38fu
#define VPMU_MSR_GLOBAL_OVF_CTRL	0x390u	/* v4: GLOBAL_STATUS_RESET */
#define VPMU_MSR_GLOBAL_STATUS_SET	0x391u	/* v4 */
#define VPMU_MSR_GLOBAL_INUSE		0x392u	/* v4, read-only */
#define VPMU_MSR_A_PMC0			0x4c1u	/* full-width counter */

/* AMD's. A selector and its counter stand side by side from AMD_PERF_CTL0 on. */
#define VPMU_MSR_AMD_GLOBAL_STATUS	0xc0000300u /* PerfMonV2 */
#define VPMU_MSR_AMD_GLOBAL_CTRL	0xc0000301u
#define VPMU_MSR_AMD_GLOBAL_STATUS_CLR	0xc0000302u
#define VPMU_MSR_AMD_GLOBAL_STATUS_SET	0xc0000303u
#define VPMU_MSR_K7_EVTSEL0		0xc0010000u /* four selectors, then */
#define VPMU_MSR_K7_PERFCTR0		0xc0010004u /* four counters */
#define VPMU_MSR_AMD_PERF_CTL0		0xc0010200u /* PerfCtrExtCore */

#define VPMU_EVTSEL_EVENT		0xffull
#define VPMU_EVTSEL_UMASK		0xff00ull
#define VPMU_EVTSEL_USR			(1ull << 16)
#define VPMU_EVTSEL_OS			(1ull << 17)
#define VPMU_EVTSEL_EDGE		(1ull << 18)
#define VPMU_EVTSEL_PIN			(1ull << 19)
#define VPMU_EVTSEL_INT			(1ull << 20)
#define VPMU_EVTSEL_ANY			(1ull << 21)
#define VPMU_EVTSEL_EN			(1ull << 22)
#define VPMU_EVTSEL_INV			(1ull << 23)
#define VPMU_EVTSEL_CMASK_SHIFT		24
#define VPMU_EVTSEL_CMASK		(0xffull << VPMU_EVTSEL_CMASK_SHIFT)
#define VPMU_EVTSEL_CONDITION		(VPMU_EVTSEL_EDGE | VPMU_EVTSEL_INV | VPMU_EVTSEL_CMASK)
#define VPMU_EVTSEL_EVENT_HIGH		(0xfull << 32) /* AMD: select 11:8 */
#define VPMU_EVTSEL_GUEST_ONLY		(1ull << 40)   /* AMD: under nested guests */
#define VPMU_EVTSEL_HOST_ONLY		(1ull << 41)   /* AMD: outside of them */

#define VPMU_FIXED_OS			1u	/* in the counter's four bits */
#define VPMU_FIXED_USR			2u
#define VPMU_FIXED_ANY			4u
#define VPMU_FIXED_PMI			8u

#define VPMU_STATUS_FIXED_SHIFT		32	/* bit of fixed counter 0 */
#define VPMU_STATUS_METRICS		(1ull << 48)
#define VPMU_STATUS_TRACE		(1ull << 55)
#define VPMU_STATUS_LBR_FRZ		(1ull << 58)
#define VPMU_STATUS_CTR_FRZ		(1ull << 59)
#define VPMU_STATUS_ASCI		(1ull << 60)
#define VPMU_STATUS_UNCORE		(1ull << 61)
#define VPMU_STATUS_BUFFER		(1ull << 62)
#define VPMU_STATUS_CHANGED		(1ull << 63)

#define VPMU_CAP_SMM_FREEZE		(1ull << 12)
#define VPMU_CAP_FULL_WIDTH		(1ull << 13)

/* What AMD's CPUs have is told by CPUID bits; these stand for them. */
#define VPMU_CAP_AMD_EXT_CORE		(1ull << 32) /* PerfCtrExtCore */
#define VPMU_CAP_AMD_FREEZE		(1ull << 33) /* LbrAndPmcFreeze, version 2 */
#define VPMU_CAP_AMD_SVM		(1ull << 34) /* SVM: GuestOnly and HostOnly */

#define VPMU_DEBUGCTL_LBR		(1ull << 0)
#define VPMU_DEBUGCTL_BTF		(1ull << 1)
#define VPMU_DEBUGCTL_PINS		(0xfull << 2) /* AMD: breakpoint pins */
#define VPMU_DEBUGCTL_FREEZE_LBRS	(1ull << 11)
#define VPMU_DEBUGCTL_FREEZE_PERFMON	(1ull << 12)
#define VPMU_DEBUGCTL_FREEZE_SMM	(1ull << 14)

#define VPMU_MISC_ENABLE_PERFMON	(1ull << 7)	/* read-only: available */
#define VPMU_MISC_ENABLE_NO_BTS		(1ull << 11)
#define VPMU_MISC_ENABLE_NO_PEBS	(1ull << 12)

#endif /* VPMU_MSR_H */
