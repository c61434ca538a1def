/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Branch records of a guest. Without any, nothing here does anything. */
#ifndef VPMU_ARCH_LBR_H
#define VPMU_ARCH_LBR_H

#include <vpmu/arch.h>
#include <vpmu/lbr.h>
#include <vpmu/state.h>

#include "arch_regs.h"

#define ARCH_LBR_INDEX	31	/* the branch records' event */

enum arch_lbr_kind {
	ARCH_LBR_NONE,
	ARCH_LBR_LEGACY,
	ARCH_LBR_ARCH,
	ARCH_LBR_AMD,
};

struct arch_lbr {
	uint8_t kind;          /* enum arch_lbr_kind; the first eight are resolved at init */
	uint8_t depth;         /* entries that the guest sees, a power of two */
	bool elsewhere;        /* the embedder has them, while @owned; @kind is legacy */
	uint64_t valid;        /* bits of ctl */
	uint64_t address;      /* bits of FROM that are address; the rest reads 0 */
	uint64_t info;         /* bits of an entry's info that are kept */
	uint64_t marks;        /* of these the ones that ops->finish_lbr writes */
	struct vpmu_lbr *stack; /* the engine's; @elsewhere it is `kept` */
	uint64_t told;         /* bits of DEBUGCTL that the embedder was told last, @elsewhere */
	uint64_t ctl;          /* LBR_SELECT or LBR_CTL */
	uint32_t changed;      /* the event's state has; atomics only, any thread */
	uint32_t generation;   /* changes of reason */
	uint8_t reason, last;  /* enum vpmu_loss: now, and of the latest loss */
	bool made;             /* the event exists */
	bool owned;            /* it was active when last looked at: the guest's registers
				  are the stack; otherwise they are in `kept` */
	bool used;             /* accessed since the last slice */
	bool demand;           /* the engine was last told to record */
	bool smm;              /* in SMM: nothing is recorded */
	bool enabled;          /* AMD: DBG_EXTN_CFG.LBRV2EN */
	uint8_t loggable;      /* counters that entries can log; resolved at init */
	uint8_t logged;        /* counters that they log now */
	uint64_t log_inserted; /* entries that have their counts, as vpmu_lbr_inserted() has it */
	struct {
		uint64_t seen;   /* the count of its event when that was last looked at */
		uint8_t waiting; /* counts for the next entry, 3 at most */
	} log[VPMU_LBR_LOG_COUNTERS];
	uint64_t finished;     /* entries that have their marks, as vpmu_lbr_inserted() has it */
	struct vpmu_lbr kept;
};

/** The kind of records, and whether provider and embedder can have any. */
enum arch_lbr_kind arch_lbr_kind(const struct vpmu_model *m, uint64_t capabilities);
bool arch_lbr_possible(struct vpmu_provider *p, const struct vpmu_ops *ops);

/** Formats and masks; @v->lbr.kind is set. */
void arch_lbr_resolve(struct vpmu_arch *v);

/** Bring recording in line with the registers that decide about it. */
void arch_lbr_apply(struct vpmu_arch *v);
/** DEBUGCTL was written. */
void arch_lbr_debugctl(struct vpmu_arch *v, uint64_t value);
/** A PMI freezes: marks v->marked.lbr. */
void arch_lbr_freeze(struct vpmu_arch *v);
void arch_lbr_smm(struct vpmu_arch *v, bool entered);
/** Find out whether the records were lost, or found again. */
void arch_lbr_look(struct vpmu_arch *v);
/** Give the facility back; what is recorded is kept. */
void arch_lbr_release(struct vpmu_arch *v);
bool arch_lbr_slice(struct vpmu_arch *v);
/** Whether recording is on without the facility; and a try to get it, by a new claim. */
bool arch_lbr_lost(const struct vpmu_arch *v);
void arch_lbr_regain(struct vpmu_arch *v);
void arch_lbr_reset(struct vpmu_arch *v, bool init);

/**
 * The body of its section: save; check without using it; use it, after a release.
 * @c: without data there is no section; NULL: go on, @claimed as before.
 */
void arch_lbr_put(struct vpmu_arch *v, struct vpmu_state_cursor *c);
int arch_lbr_check(struct vpmu_arch *v, struct vpmu_state_cursor *c);
void arch_lbr_resume(struct vpmu_arch *v, struct vpmu_state_cursor *c, bool claimed);

/** LBR_CTL, LBR_DEPTH, and the three of LER, which are zeros if not owned. */
void arch_lbr_words(const struct vpmu_arch *v, uint64_t words[5]);

/** Complete the newest entries, by the engine. Call this before they are read. */
void arch_lbr_finish(struct vpmu_arch *v);

/** Bring logging in line with the selectors; counts of an event that is about to be released. */
void arch_lbr_log_apply(struct vpmu_arch *v, bool recording);
void arch_lbr_log_released(struct vpmu_arch *v, unsigned int pmc);
/** Counts that wait for an entry, two bits for each counter: to save; to go on with. */
uint64_t arch_lbr_log_waiting(struct vpmu_arch *v);
void arch_lbr_log_resume(struct vpmu_arch *v, uint64_t bits);

/** Entry @age, the newest being 0, as its registers show it; zeros if not owned. */
void arch_lbr_entry(const struct vpmu_arch *v, unsigned int age, uint64_t entry[3]);

arch_read_fn arch_lbr_from_read, arch_lbr_to_read, arch_lbr_info_read,
	     arch_lbr_select_read, arch_lbr_ctl_read, arch_lbr_ler_read,
	     arch_lbr_ler_info_read, arch_lbr_loss_read, arch_lbr_tos_read,
	     arch_lbr_amd_read, arch_lbr_amd_ctl_read;
arch_write_fn arch_lbr_from_write, arch_lbr_to_write, arch_lbr_info_write,
	      arch_lbr_select_write, arch_lbr_ctl_write, arch_lbr_ler_write,
	      arch_lbr_ler_info_write, arch_lbr_tos_write, arch_lbr_amd_write,
	      arch_lbr_amd_ctl_write;

#endif /* VPMU_ARCH_LBR_H */
