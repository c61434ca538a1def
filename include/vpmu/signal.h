/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Signals: occurrences in a CPU that can be counted. Each has a total, 64-bit
 * and monotone, kept separately per bank (ring and nesting). The execution
 * engine owns the totals; the core reads them (ops.h).
 */
#ifndef VPMU_SIGNAL_H
#define VPMU_SIGNAL_H

#include <vpmu/platform.h>

/*
 * Counts of a micro-architecture model (uarch.h), each in the bank of the block
 * in which it happened. All are signals, beginning with cycles.
 */
enum vpmu_uarch_count {
	VPMU_UARCH_CYCLES,
	/* Each slot of each cycle is in exactly one of the next four. */
	VPMU_UARCH_RETIRING,        /* uops issued on the right path */
	VPMU_UARCH_BAD_SPECULATION,
	VPMU_UARCH_FRONTEND_BOUND,
	VPMU_UARCH_BACKEND_BOUND,
	/* Parts of these. */
	VPMU_UARCH_HEAVY,           /* retiring: of instructions of several uops */
	VPMU_UARCH_MISPREDICT,      /* bad speculation: all of it but clears */
	VPMU_UARCH_FETCH_LATENCY,   /* frontend: no uop was delivered at all */
	VPMU_UARCH_MEMORY_BOUND,    /* backend: loads, stores and walks */
	VPMU_UARCH_STALLS,          /* cycles in which nothing was issued; by cause: */
	VPMU_UARCH_STALL_L1D,       /* waiting for a load that missed L1D */
	VPMU_UARCH_STALL_L2,        /*   ... that missed L2 too */
	VPMU_UARCH_STALL_LLC,       /*   ... that missed the last level too */
	VPMU_UARCH_STALL_STORES,    /* the store buffer was full */
	VPMU_UARCH_STALL_DIVIDER,
	VPMU_UARCH_STALL_FETCH,     /* nothing was fetched */
	VPMU_UARCH_RECOVERY,        /* after a misprediction or a clear */
	VPMU_UARCH_CLEARS,          /* interrupts and faults */
	/* Branches that went another way than predicted, by kind. */
	VPMU_UARCH_MISP_TAKEN,      /* conditional and taken */
	VPMU_UARCH_MISP_NOT_TAKEN,
	VPMU_UARCH_MISP_RET,
	VPMU_UARCH_MISP_JMP,        /* indirect */
	VPMU_UARCH_MISP_CALL,       /* indirect */
	VPMU_UARCH_RESTEER,         /* direct and taken, unknown to the BTB */
	/* Retired accesses. */
	VPMU_UARCH_LOADS,
	VPMU_UARCH_STORES,
	VPMU_UARCH_LOCKED,          /* loads of locked instructions */
	VPMU_UARCH_SPLIT_LOADS,     /* across a line */
	VPMU_UARCH_SPLIT_STORES,
	VPMU_UARCH_LOAD_SLOW,       /* loads of more cycles than vpmu_uarch_threshold() */
	/*
	 * Level at which a load found its (first) line; they add up to LOADS.
	 */
	VPMU_UARCH_LOAD_L1,
	VPMU_UARCH_LOAD_FB,         /* missed L1D, and the line was in flight */
	VPMU_UARCH_LOAD_L2,
	VPMU_UARCH_LOAD_LLC,
	VPMU_UARCH_LOAD_DRAM,
	VPMU_UARCH_L1I_HIT,         /* lines that were fetched and hit */
	/*
	 * Level that had a line that the first level lacked: of data to be
	 * read, of data to be written, of code.
	 */
	VPMU_UARCH_READ_L2,
	VPMU_UARCH_READ_LLC,
	VPMU_UARCH_READ_DRAM,
	VPMU_UARCH_RFO_L2,
	VPMU_UARCH_RFO_LLC,
	VPMU_UARCH_RFO_DRAM,
	VPMU_UARCH_CODE_L2,
	VPMU_UARCH_CODE_LLC,
	VPMU_UARCH_CODE_DRAM,
	VPMU_UARCH_PREFETCH,        /* lines that a prefetch has put into L2 */
	/* Translations. */
	VPMU_UARCH_DTLB_LOAD_L2,    /* missed the first level, hit the second */
	VPMU_UARCH_DTLB_LOAD_WALK,
	VPMU_UARCH_DTLB_STORE_L2,
	VPMU_UARCH_DTLB_STORE_WALK,
	VPMU_UARCH_ITLB_L2,
	VPMU_UARCH_ITLB_WALK,
	VPMU_UARCH_COUNTS
};

/*
 * A retired branch belongs to exactly one of the kinds JCC_TAKEN .. FAR, so
 * BRANCHES is their sum; it is a signal of its own because an engine can often
 * supply it without distinguishing the kinds.
 */
enum vpmu_signal {
	VPMU_SIGNAL_INSTRUCTIONS,  /* retired; a REP string instruction is one */
	VPMU_SIGNAL_BRANCHES,      /* retired branch instructions of any kind */
	VPMU_SIGNAL_JCC_TAKEN,     /* conditional (Jcc, JrCXZ, LOOPcc), taken */
	VPMU_SIGNAL_JCC_NOT_TAKEN, /* conditional, not taken */
	VPMU_SIGNAL_JMP,           /* near direct jump */
	VPMU_SIGNAL_CALL,          /* near direct call */
	VPMU_SIGNAL_RET,           /* near return */
	VPMU_SIGNAL_JMP_INDIRECT,  /* near jump through register or memory */
	VPMU_SIGNAL_CALL_INDIRECT, /* near call through register or memory */
	VPMU_SIGNAL_FAR,           /* far transfers: far jump, call, return, IRET,
				      INT n, INT3, INTO taken, SYSCALL, SYSRET,
				      SYSENTER, SYSEXIT; no interrupt, no fault */
	VPMU_SIGNAL_CYCLES,        /* unhalted cycles, from an engine or model that
				      has its own clock; else see silicon.h */
	/* The model's counts, in the order of enum vpmu_uarch_count. */
	VPMU_SIGNAL_UARCH = VPMU_SIGNAL_CYCLES,
	VPMU_SIGNAL_LBR_INSERTS = VPMU_SIGNAL_UARCH + (int)VPMU_UARCH_COUNTS,
				   /*
				    * branch records that were made, in the bank
				    * in which the branch ends
				    */
	VPMU_SIGNAL_COUNT
};
#define VPMU_SIGNAL_OF(count)	((enum vpmu_signal)(VPMU_SIGNAL_UARCH + (int)(count)))

/*
 * Topdown classes of slots, in the order of PERF_METRICS' fields: four, of
 * which each slot is in exactly one, and a part of each.
 */
#define VPMU_TOPDOWN		8
#define VPMU_TOPDOWN_CLASSES	4

/*
 * Banks: the ring in which the signal happened, and whether under a nested
 * guest.
 */
enum vpmu_bank {
	VPMU_BANK_KERNEL,        /* CPL 0 */
	VPMU_BANK_USER,          /* CPL 1, 2, 3 */
	VPMU_BANK_NESTED_KERNEL, /* CPL 0 of a guest that this guest runs (SVM) */
	VPMU_BANK_NESTED_USER,   /* CPL 1, 2, 3 of such a guest */
	VPMU_BANK_COUNT
};

#define VPMU_SIGNAL_BIT(s)	((uint64_t)1 << (s))
#define VPMU_SIGNALS_ALL	(VPMU_SIGNAL_BIT(VPMU_SIGNAL_COUNT) - 1) /* at most 63 */
#define VPMU_SIGNALS_UARCH	(VPMU_SIGNAL_BIT(VPMU_SIGNAL_LBR_INSERTS) - \
				 VPMU_SIGNAL_BIT(VPMU_SIGNAL_UARCH))
#define VPMU_BANK_BIT(b)	(1u << (b))
#define VPMU_BANKS_KERNEL	(VPMU_BANK_BIT(VPMU_BANK_KERNEL) | \
				 VPMU_BANK_BIT(VPMU_BANK_NESTED_KERNEL))
#define VPMU_BANKS_USER		(VPMU_BANK_BIT(VPMU_BANK_USER) | \
				 VPMU_BANK_BIT(VPMU_BANK_NESTED_USER))

#define VPMU_SIGNALS_TOPDOWN \
	((VPMU_SIGNAL_BIT(VPMU_TOPDOWN) - 1) << VPMU_SIGNAL_OF(VPMU_UARCH_RETIRING))
#define VPMU_SIGNALS_SLOTS \
	((VPMU_SIGNAL_BIT(VPMU_TOPDOWN_CLASSES) - 1) << VPMU_SIGNAL_OF(VPMU_UARCH_RETIRING))

/* No deadline. */
#define VPMU_NEVER		UINT64_MAX

/* One 64-bit word per signal and bank: totals, or occurrences left. */
struct vpmu_signal_words {
	uint64_t word[VPMU_SIGNAL_COUNT][VPMU_BANK_COUNT];
};

#endif /* VPMU_SIGNAL_H */
