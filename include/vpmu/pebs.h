/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Precise event-based sampling (PEBS): the data of an instruction that the
 * engine reports, the DS save area in guest memory, and architectural PEBS, which has
 * registers in its place.
 */
#ifndef VPMU_PEBS_H
#define VPMU_PEBS_H

#include <vpmu/platform.h>

#define VPMU_SAMPLE_GPRS 16
#define VPMU_SAMPLE_XMMS 16

/*
 * The last instruction that has retired, and the registers after it. Addresses
 * are linear.
 */
struct vpmu_sample {
	uint64_t ip;      /* address of that instruction */
	uint64_t next_ip; /* address of the next one */
	uint64_t flags;   /* RFLAGS */
	/*
	 * In the order of instruction encodings: AX, CX, DX, BX, SP, BP, SI,
	 * DI, R8 ...
	 */
	uint64_t gpr[VPMU_SAMPLE_GPRS];
	/*
	 * Address of its first access to memory (of a repeated string
	 * instruction: in its last iteration); 0: none is known.
	 */
	uint64_t address;
	uint64_t tsc;     /* TSC that the guest would read */
	uint64_t xmm[VPMU_SAMPLE_XMMS][2]; /* low half first */
	/* Properties of that access by a model (uarch.h); all 0 without one. */
	bool modelled;
	uint32_t latency; /* cycles until its value was available */
	uint8_t level;    /* enum vpmu_uarch_level */
	uint8_t tlb;      /* 0 first level, 1 second level, 2 walked */
	bool store, locked, split;
	bool code64;      /* it is 64-bit code, by the code segment after it */
};

/* The DS save area, at IA32_DS_AREA: 64-bit fields, byte offsets. */
#define VPMU_DS_PEBS_BASE	0x20u /* software's */
#define VPMU_DS_PEBS_INDEX	0x28u /* address of the next record */
#define VPMU_DS_PEBS_MAX	0x30u /* one past the end */
#define VPMU_DS_PEBS_THRESHOLD	0x38u /* an index at or past it interrupts */
#define VPMU_DS_PEBS_RESET	0x40u /* counters' values after a record: GP ones */
#define VPMU_DS_PEBS_RESET_FIXED	0x80u  /* fixed ones, record formats to 4 */
#define VPMU_DS_PEBS_RESET_FIXED_5	0x140u /* ... from 5 on */

/* MSR_PEBS_DATA_CFG: groups of an adaptive record, besides the basic one. */
#define VPMU_PEBS_MEMORY	(1ull << 0)
#define VPMU_PEBS_GPRS		(1ull << 1)
#define VPMU_PEBS_XMMS		(1ull << 2)
#define VPMU_PEBS_LBRS		(1ull << 3)
#define VPMU_PEBS_LBRS_SHIFT	24 /* entries less one, 8 bits */

/*
 * Architectural PEBS. A counter's CFG_C selects the groups of its records; a record begins
 * with the same bits, and CPUID.23H.4:EBX has bits 62:32 of what there is.
 * Source: SDM vol. 2, "CPUID", leaf 23H; Linux, arch/x86/include/asm/perf_event.h.
 */
#define VPMU_CFG_C_ALLOW	(1ull << 35) /* others' records may have this counter */
#define VPMU_CFG_C_CNTR_GP	(1ull << 36) /* counters that allow it, GP and fixed */
#define VPMU_CFG_C_CNTR_FIXED	(1ull << 37)
#define VPMU_CFG_C_LBR_SHIFT	40	     /* 1: 8 entries, 2: 16, 3: as LBR_DEPTH says */
#define VPMU_CFG_C_LBR		(3ull << VPMU_CFG_C_LBR_SHIFT)
#define VPMU_CFG_C_XMM		(1ull << 49)
#define VPMU_CFG_C_GPR		(1ull << 61)
#define VPMU_CFG_C_AUX		(1ull << 62) /* address, source, latency */
#define VPMU_CFG_C_EN		(1ull << 63) /* PEBS is enabled; in a record: basic group */

/* IA32_PEBS_BASE: the buffer's physical address, and 4 KiB << SIZE are its bytes. */
#define VPMU_PEBS_BASE_SIZE	0xfull

/* IA32_PEBS_INDEX. Both offsets are bytes, and multiples of 16. */
#define VPMU_PEBS_INDEX_WR	0x7fffff0ull /* offset of the next record */
#define VPMU_PEBS_INDEX_FULL	(1ull << 31) /* one did not fit */
#define VPMU_PEBS_INDEX_EN	(1ull << 32) /* the threshold interrupts */
#define VPMU_PEBS_INDEX_THRESHOLD_SHIFT 32   /* offset at or past which it does */

#endif /* VPMU_PEBS_H */
