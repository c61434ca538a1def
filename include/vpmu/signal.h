/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Signals: what happens in a CPU and can be counted. Each has a total, 64-bit
 * and monotone, kept apart by bank (ring and nesting). The execution engine
 * owns the totals; the core pulls them (ops.h).
 */
#ifndef VPMU_SIGNAL_H
#define VPMU_SIGNAL_H

#include <vpmu/platform.h>

/*
 * A retired branch belongs to exactly one of the kinds JCC_TAKEN .. FAR, so
 * BRANCHES is their sum; it stands apart because an engine can often supply
 * it without telling the kinds apart.
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
	VPMU_SIGNAL_COUNT
};

/* Banks: which ring the signal happened in, and whether under a nested guest. */
enum vpmu_bank {
	VPMU_BANK_KERNEL,        /* CPL 0 */
	VPMU_BANK_USER,          /* CPL 1, 2, 3 */
	VPMU_BANK_NESTED_KERNEL, /* CPL 0 of a guest that this guest runs (SVM) */
	VPMU_BANK_NESTED_USER,   /* CPL 1, 2, 3 of such a guest */
	VPMU_BANK_COUNT
};

#define VPMU_SIGNAL_BIT(s)	((uint64_t)1 << (s))
#define VPMU_SIGNALS_ALL	(VPMU_SIGNAL_BIT(VPMU_SIGNAL_COUNT) - 1)
#define VPMU_BANK_BIT(b)	(1u << (b))
#define VPMU_BANKS_KERNEL	(VPMU_BANK_BIT(VPMU_BANK_KERNEL) | \
				 VPMU_BANK_BIT(VPMU_BANK_NESTED_KERNEL))
#define VPMU_BANKS_USER		(VPMU_BANK_BIT(VPMU_BANK_USER) | \
				 VPMU_BANK_BIT(VPMU_BANK_NESTED_USER))

/* No deadline. */
#define VPMU_NEVER		UINT64_MAX

/* One 64-bit word per signal and bank: totals, or occurrences left. */
struct vpmu_signal_words {
	uint64_t word[VPMU_SIGNAL_COUNT][VPMU_BANK_COUNT];
};

#endif /* VPMU_SIGNAL_H */
