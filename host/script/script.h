/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The scripted engine: a CPU that retires exactly what its caller says, and keeps every
 * deadline to the occurrence. For tests and for `vpmu contention`.
 *
 *	struct vpmu_script sc;
 *	struct vpmu_direct d;
 *
 *	vpmu_script_init(&sc, VPMU_SCRIPT_SUPPLIED);
 *	cfg.ops = &sc.ops, cfg.ctx = &sc, cfg.supplied = sc.supplied;
 *	vpmu_direct_init(&d, &cfg);
 *	sc.silicon = &d.silicon;
 *	sc.service = my_service, sc.arg = vcpu;
 *	...
 *	vpmu_script_retire(&sc, VPMU_SIGNAL_INSTRUCTIONS, VPMU_BANK_USER, 1000);
 *	assert(!sc.broken);
 *
 * It plays the strictest embedder that ops.h allows: totals of signals that are not
 * demanded stand still, and words that a pull did not ask for are overwritten with
 * rubbish. The core's first breach of ops.h is noted in `broken`.
 */
#ifndef VPMU_SCRIPT_H
#define VPMU_SCRIPT_H

#include <vpmu/ops.h>
#include <vpmu/silicon.h>

/* It has no model, so it supplies no CYCLES: one instruction is one cycle. */
#define VPMU_SCRIPT_SUPPLIED \
	(VPMU_SIGNALS_ALL & ~VPMU_SIGNALS_UARCH)

#define VPMU_SCRIPT_PMIS 64 /* number of PMIs that are remembered one by one */

struct vpmu_script {
	struct vpmu_ops ops;             /* ready to be passed on, with ctx = this */
	uint64_t supplied;               /* signals that this engine can supply */

	/* Set by the caller before anything retires. */
	struct vpmu_silicon *silicon;    /* called at a deadline, or NULL */
	void (*service)(void *arg);      /* second half after a kick, or NULL */
	void *arg;

	/* Occurrences, demanded or not; and the totals that pull returns. */
	struct vpmu_signal_words truth;
	struct vpmu_signal_words total;

	/* The deadlines in force, as totals; VPMU_NEVER: none. */
	struct vpmu_signal_words target;
	struct vpmu_signal_words read; /* the totals that were read last */
	uint64_t demand;                 /* signals that count now */

	struct vpmu_lbr lbr;             /* branch records */
	bool record;                     /* some filter looks at branches for them */
	bool watch;                      /* keep instructions, for PEBS */

	bool kicked;                     /* service is due */
	bool lvtpc_masked;               /* mask bit of the LVTPC entry */
	bool in_hook;

	/* PMIs: delivered ones with the instructions retired by then. */
	uint32_t n_pmi;                  /* all delivered */
	uint32_t n_pmi_lost;             /* raised while LVTPC was masked */
	uint64_t pmi_at[VPMU_SCRIPT_PMIS];

	/* Calls of each hook. */
	uint32_t n_read, n_deadline, n_demand, n_kick;
	uint32_t n_expire;               /* vpmu_silicon_expire() calls */

	const char *broken;              /* the first breach of ops.h, or NULL */
};

/**
 * Set up an engine at total 0 that supplies @supplied (bitmap of signals).
 */
void vpmu_script_init(struct vpmu_script *sc, uint64_t supplied);

/**
 * Let @n occurrences of @signal happen in @bank, stopping at each deadline to
 * call vpmu_silicon_expire(), and the second half after each kick.
 */
void vpmu_script_retire(struct vpmu_script *sc, enum vpmu_signal signal,
			enum vpmu_bank bank, uint64_t n);

/**
 * Retire one instruction: INSTRUCTIONS and, when @kind is a kind of branch
 * (JCC_TAKEN .. FAR), BRANCHES and @kind, all at one instant.
 * @kind: VPMU_SIGNAL_INSTRUCTIONS for an instruction that is no branch
 */
void vpmu_script_step(struct vpmu_script *sc, enum vpmu_bank bank,
		      enum vpmu_signal kind);

/** Retire @n instructions that are no branches. */
void vpmu_script_run(struct vpmu_script *sc, enum vpmu_bank bank, uint64_t n);

/**
 * A branch retires, with its addresses: for records only, count it with the functions
 * above. @user: it ends in a ring above 0.
 */
void vpmu_script_branch(struct vpmu_script *sc, enum vpmu_branch_type type, bool user,
			uint64_t from, uint64_t to);

/** Call the second half if it is due (after a WRMSR, say). */
void vpmu_script_service(struct vpmu_script *sc);

/** The count that a recipe's counter would have if it had always been running. */
uint64_t vpmu_script_truth(const struct vpmu_script *sc, const struct vpmu_recipe *r);

#endif /* VPMU_SCRIPT_H */
