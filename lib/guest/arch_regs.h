/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Registers of the architectural PMU: their kinds, their bits, their handlers.
 *
 * A set of counters is a 32-bit bitmap by `pmc` (GP from 0, then fixed). The
 * registers have a layout of their own (GP from bit 0, fixed from bit 32):
 * arch_pmc_set() and arch_pmc_bits() convert (arch_internal.h).
 */
#ifndef VPMU_ARCH_REGS_H
#define VPMU_ARCH_REGS_H

#include <vpmu/msr.h>
#include <vpmu/result.h>
#include <vpmu/signal.h>

struct vpmu_arch;

#define ARCH_GP_MAX	8
#define ARCH_FIXED_MAX	4
#define ARCH_FIXED_SLOTS	3	/* the fixed counter that PERF_METRICS splits */
#define ARCH_PMC_MAX	(ARCH_GP_MAX + ARCH_FIXED_MAX)
#define ARCH_ROWS	32	/* of registers that are found at once */
#define ARCH_K7_PMCS	4	/* AMD: counters with legacy addresses */

/* AMD's bits of a selector that tell nested guests from the rest. */
#define ARCH_EVTSEL_ONLY	(VPMU_EVTSEL_GUEST_ONLY | VPMU_EVTSEL_HOST_ONLY)

#define ARCH_BANKS_NESTED	(VPMU_BANK_BIT(VPMU_BANK_NESTED_KERNEL) | \
				 VPMU_BANK_BIT(VPMU_BANK_NESTED_USER))
#define ARCH_BANKS		(VPMU_BANKS_KERNEL | VPMU_BANKS_USER)

/* Kinds of registers by what they depend on: vpmu_arch.has[] tells how many. */
enum arch_has {
	ARCH_HAS_NONE,         /* features that are not offered: none */
	ARCH_HAS_ALWAYS,
	ARCH_HAS_GP,
	ARCH_HAS_GP_FULL,      /* full-width aliases */
	ARCH_HAS_FIXED,
	ARCH_HAS_GLOBAL,       /* version 2 */
	ARCH_HAS_STREAMLINED,  /* version 4 */
	ARCH_HAS_BLOCK_GP,     /* version 6: four for each counter */
	ARCH_HAS_BLOCK_FIXED,
	ARCH_HAS_CAPABILITIES, /* PDCM */
	ARCH_HAS_LBR,          /* legacy branch records: entries */
	ARCH_HAS_LBR_OLD,      /* ... of the first formats, at other places */
	ARCH_HAS_LBR_INFO,
	ARCH_HAS_LBR_SELECT,
	ARCH_HAS_LBR_TOS,
	ARCH_HAS_ARCH_LBR,     /* architectural ones: entries */
	ARCH_HAS_ARCH_LBR_CTL, /* ... LBR_CTL and LBR_DEPTH */
	ARCH_HAS_PEBS,         /* PEBS_ENABLE, with baseline also DATA_CFG */
	ARCH_HAS_ARCH_PEBS,    /* PEBS_BASE and _INDEX */
	ARCH_HAS_DS,           /* DS_AREA */
	ARCH_HAS_OFFCORE,      /* OFFCORE_RSP_0, _1 */
	ARCH_HAS_LDLAT,        /* PEBS_LD_LAT */
	ARCH_HAS_METRICS,      /* PERF_METRICS */
	/* From here on no register of ours at all, unless vpmu_arch.known says so. */
	ARCH_HAS_K7,           /* AMD: the first four counters' legacy addresses */
	ARCH_HAS_AMD,          /* PerfCtrExtCore: two for each counter */
	ARCH_HAS_AMD_GLOBAL,   /* PerfMonV2 */
	ARCH_HAS_AMD_LBR,      /* LbrExtV2: two for each entry */
	ARCH_HAS_AMD_LBR_CTL,  /* ... LBR_SELECT and DBG_EXTN_CFG */
	ARCH_HAS_AMD_NONE,     /* features that are not offered: none */
	ARCH_HAS_LER,          /* FROM and TO */
	ARCH_HAS_LER_INFO,
	ARCH_HAS_LOSS,
	ARCH_HAS_LOSS_LBR,
	ARCH_HAS_LOSS_PMC,     /* four for each counter */
	ARCH_HAS_LOSS_NONE,
	ARCH_HAS_COUNT
};

/* Bits that a guest may set, by register; any other bit is a fault, or dropped. */
struct arch_valid {
	uint64_t counter;      /* all ones in a counter's width */
	uint64_t evtsel;
	uint64_t evtsel_hidden; /* bits of evtsel: RDPMC user disable */
	uint64_t fixed_ctrl;
	uint64_t fixed_hidden; /* likewise, of fixed counter 0 */
	uint64_t reload_by;    /* 0: no auto counter reload */
	uint64_t reload;
	uint64_t global_ctrl;
	uint64_t status;       /* may be set in GLOBAL_STATUS, and reset */
	uint64_t status_set;
	uint64_t debugctl;     /* kept */
	uint64_t debugctl_dropped; /* accepted, and read as 0 */
};

/* The register file: plain data. */
struct arch_regs {
	uint64_t evtsel[ARCH_GP_MAX];
	uint64_t counter[ARCH_PMC_MAX]; /* by pmc; see arch_event_read() */
	uint64_t fixed_ctrl;
	uint64_t global_ctrl;
	uint64_t status;
	uint64_t debugctl;
	uint64_t smm_global_ctrl; /* GLOBAL_CTRL as it was before SMM */
	bool smm_frozen;          /* in SMM with FREEZE_WHILE_SMM */
	bool svme;                /* EFER.SVME, where something depends on it */
};

/* Registers of auto counter reload, apart as most PMUs have none. */
struct arch_reload {
	uint32_t by[ARCH_PMC_MAX];    /* set of counters whose overflow reloads it */
	uint32_t value[ARCH_PMC_MAX]; /* what with: bits 31:0, sign-extended */
};

/*
 * Handlers of register @i of a kind; see arch_msr.c. A write handler checks, stores and
 * marks in struct arch_marks what has to follow.
 */
typedef enum vpmu_result arch_read_fn(struct vpmu_arch *v, unsigned int i,
				      uint64_t *value);
typedef enum vpmu_result arch_write_fn(struct vpmu_arch *v, unsigned int i,
				       uint64_t value);

#endif /* VPMU_ARCH_REGS_H */
