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
#define VPMU_MSR_LBR_SELECT		0x1c8u	/* legacy branch records */
#define VPMU_MSR_LBR_TOS		0x1c9u
#define VPMU_MSR_DEBUGCTL		0x1d9u
#define VPMU_MSR_LER_FROM		0x1ddu	/* then TO */
#define VPMU_MSR_LER_INFO		0x1e0u	/* architectural branch records */
#define VPMU_MSR_FIXED_CTR0		0x309u
#define VPMU_MSR_PERF_METRICS		0x329u
#define VPMU_MSR_OFFCORE_RSP_0		0x1a6u
#define VPMU_MSR_PEBS_LD_LAT		0x3f6u
#define VPMU_MSR_PERF_CAPABILITIES	0x345u
#define VPMU_MSR_FIXED_CTR_CTRL		0x38du
#define VPMU_MSR_GLOBAL_STATUS		0x38eu
#define VPMU_MSR_GLOBAL_CTRL		0x38fu
#define VPMU_MSR_GLOBAL_OVF_CTRL	0x390u	/* v4: GLOBAL_STATUS_RESET */
#define VPMU_MSR_GLOBAL_STATUS_SET	0x391u	/* v4 */
#define VPMU_MSR_GLOBAL_INUSE		0x392u	/* v4, read-only */
#define VPMU_MSR_PEBS_ENABLE		0x3f1u	/* then PEBS_DATA_CFG */
#define VPMU_MSR_PEBS_BASE		0x3f4u	/* architectural PEBS; then PEBS_INDEX */
#define VPMU_MSR_A_PMC0			0x4c1u	/* full-width counter */
#define VPMU_MSR_DS_AREA		0x600u
#define VPMU_MSR_LBR_FROM		0x680u	/* legacy branch records */
#define VPMU_MSR_LBR_TO			0x6c0u
#define VPMU_MSR_LBR_INFO		0xdc0u
#define VPMU_MSR_ARCH_LBR_INFO		0x1200u	/* architectural ones */
#define VPMU_MSR_ARCH_LBR_CTL		0x14ceu	/* then DEPTH */
#define VPMU_MSR_ARCH_LBR_FROM		0x1500u
#define VPMU_MSR_ARCH_LBR_TO		0x1600u

/* Version 6: four for each counter, enum vpmu_pmc_msr. */
#define VPMU_MSR_PMC_GP(n)		(0x1900u + 4u * (n))
#define VPMU_MSR_PMC_FX(n)		(0x1980u + 4u * (n))

enum vpmu_pmc_msr {
	VPMU_PMC_CTR,   /* the counter in full width */
	VPMU_PMC_CFG_A, /* PERFEVTSEL; fixed counters have none */
	VPMU_PMC_CFG_B, /* auto counter reload: counters that cause it */
	VPMU_PMC_CFG_C, /* ... and the value, bits 31:0; above them, PEBS (pebs.h) */
	VPMU_PMC_STRIDE
};

/* AMD's. A selector and its counter stand side by side from AMD_PERF_CTL0 on. */
#define VPMU_MSR_AMD_LBR_SELECT		0xc000010eu /* LbrExtV2; then DBG_EXTN_CFG */
#define VPMU_MSR_AMD_GLOBAL_STATUS	0xc0000300u /* PerfMonV2 */
#define VPMU_MSR_AMD_GLOBAL_CTRL	0xc0000301u
#define VPMU_MSR_AMD_GLOBAL_STATUS_CLR	0xc0000302u
#define VPMU_MSR_AMD_GLOBAL_STATUS_SET	0xc0000303u
#define VPMU_MSR_K7_EVTSEL0		0xc0010000u /* four selectors, then */
#define VPMU_MSR_K7_PERFCTR0		0xc0010004u /* four counters */
#define VPMU_MSR_AMD_PERF_CTL0		0xc0010200u /* PerfCtrExtCore */
#define VPMU_MSR_AMD_LBR_FROM		0xc0010300u /* LbrExtV2: FROM and TO, side by side */

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
#define VPMU_EVTSEL_ADAPTIVE		(1ull << 34)   /* PEBS: record as DATA_CFG says */
#define VPMU_EVTSEL_LBR_LOG		(1ull << 35)   /* counts are logged in branch records */
#define VPMU_EVTSEL_EQ			(1ull << 36)   /* version 6 */
#define VPMU_EVTSEL_RDPMC_USER		(1ull << 37)   /* version 6: RDPMC disabled */
#define VPMU_EVTSEL_UMASK2		(0xffull << 40) /* version 6 */
#define VPMU_EVTSEL_GUEST_ONLY		(1ull << 40)   /* AMD: under nested guests */
#define VPMU_EVTSEL_HOST_ONLY		(1ull << 41)   /* AMD: outside of them */

#define VPMU_FIXED_OS			1u	/* in the counter's four bits */
#define VPMU_FIXED_USR			2u
#define VPMU_FIXED_ANY			4u
#define VPMU_FIXED_PMI			8u
#define VPMU_FIXED_ADAPTIVE		(1ull << 32)   /* like VPMU_EVTSEL_ADAPTIVE */
#define VPMU_FIXED_RDPMC_USER		(1ull << 33)   /* version 6: RDPMC disabled */

#define VPMU_STATUS_FIXED_SHIFT		32	/* bit of fixed counter 0 */
#define VPMU_STATUS_METRICS		(1ull << 48)
#define VPMU_STATUS_PEBS		(1ull << 54)	/* architectural PEBS: threshold */
#define VPMU_STATUS_TRACE		(1ull << 55)
#define VPMU_STATUS_LBR_FRZ		(1ull << 58)
#define VPMU_STATUS_CTR_FRZ		(1ull << 59)
#define VPMU_STATUS_ASCI		(1ull << 60)
#define VPMU_STATUS_UNCORE		(1ull << 61)
#define VPMU_STATUS_BUFFER		(1ull << 62)
#define VPMU_STATUS_CHANGED		(1ull << 63)

#define VPMU_CAP_LBR			0x3full	/* format of branch records, 0: none */
#define VPMU_CAP_LBR_LIP		1ull	/* ... addresses, linear; from 40H on */
#define VPMU_CAP_LBR_FLAGS		3ull	/* ... FROM's bit 63 is no address */
#define VPMU_CAP_LBR_FLAGS2		4ull	/* ... nor are its bits 62 and 61 */
#define VPMU_CAP_LBR_INFO		5ull	/* ... addresses, and INFO registers */
#define VPMU_CAP_LBR_ARCH		0x3full	/* ... architectural */
#define VPMU_CAP_PEBS_TRAP		(1ull << 6) /* registers as after the instruction */
#define VPMU_CAP_PEBS_REGS		(1ull << 7) /* they are in the record */
#define VPMU_CAP_PEBS_FORMAT_SHIFT	8
#define VPMU_CAP_PEBS_FORMAT(n)		((uint64_t)(n) << VPMU_CAP_PEBS_FORMAT_SHIFT)
#define VPMU_CAP_PEBS_BASELINE		(1ull << 14) /* adaptive records, any counter */
#define VPMU_CAP_PEBS			(VPMU_CAP_PEBS_TRAP | VPMU_CAP_PEBS_REGS | \
					 VPMU_CAP_PEBS_FORMAT(0xf) | VPMU_CAP_PEBS_BASELINE)
#define VPMU_CAP_PEBS_ADAPTIVE		(VPMU_CAP_PEBS_TRAP | VPMU_CAP_PEBS_REGS | \
					 VPMU_CAP_PEBS_FORMAT(4) | VPMU_CAP_PEBS_BASELINE)
#define VPMU_CAP_PEBS_FIXED(n)		(VPMU_CAP_PEBS_TRAP | VPMU_CAP_PEBS_REGS | \
					 VPMU_CAP_PEBS_FORMAT(n)) /* n to 3 */
#define VPMU_CAP_PEBS_ARCH		VPMU_CAP_PEBS_FORMAT(0xf) /* architectural; version 6 */
#define VPMU_CAP_SMM_FREEZE		(1ull << 12)
#define VPMU_CAP_FULL_WIDTH		(1ull << 13)
#define VPMU_CAP_METRICS		(1ull << 15) /* PERF_METRICS */

/* Extensions of version 6: bits of CPUID.23H.0:EBX, and one of ours. */
#define VPMU_EXT_UMASK2			(1u << 0)
#define VPMU_EXT_EQ			(1u << 1)
#define VPMU_EXT_RDPMC_USER		(1u << 2)
#define VPMU_EXT_RELOAD			(1u << 31) /* auto counter reload, CPUID.23H.2 */

/* AMD's features, which CPUID bits announce; these stand for them. */
#define VPMU_CAP_AMD_EXT_CORE		(1ull << 32) /* PerfCtrExtCore */
#define VPMU_CAP_AMD_FREEZE		(1ull << 33) /* LbrAndPmcFreeze, version 2 */
#define VPMU_CAP_AMD_SVM		(1ull << 34) /* SVM: GuestOnly and HostOnly */
#define VPMU_CAP_AMD_LBR		(1ull << 35) /* LbrExtV2, version 2 */

#define VPMU_DEBUGCTL_LBR		(1ull << 0)
#define VPMU_DEBUGCTL_BTF		(1ull << 1)
#define VPMU_DEBUGCTL_PINS		(0xfull << 2) /* AMD: breakpoint pins */
#define VPMU_DEBUGCTL_FREEZE_LBRS	(1ull << 11)
#define VPMU_DEBUGCTL_FREEZE_PERFMON	(1ull << 12)
#define VPMU_DEBUGCTL_FREEZE_SMM	(1ull << 14)

#define VPMU_DBG_EXTN_CFG_LBR		(1ull << 6)	/* AMD: LBRV2EN */
#define VPMU_LBR_CTL_EN			(1ull << 0)
#define VPMU_LBR_CTL_STACK		(1ull << 3)
#define VPMU_LBR_CTL_VALID		0x7f000full

#define VPMU_MISC_ENABLE_PERFMON	(1ull << 7)	/* read-only: available */
#define VPMU_MISC_ENABLE_NO_BTS		(1ull << 11)
#define VPMU_MISC_ENABLE_NO_PEBS	(1ull << 12)

#endif /* VPMU_MSR_H */
