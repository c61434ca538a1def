/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Losses: the block that tells a guest which counters do not count, and why. */
#ifndef VPMU_ARCH_LOSS_H
#define VPMU_ARCH_LOSS_H

#include "arch_regs.h"

/* One counter's registers in the block. */
struct arch_loss_pmc {
	uint64_t enabled; /* time; minus the clock when last switched on, while on */
	uint64_t running; /* likewise; where the provider knows: of past events */
	uint32_t generation;
	uint8_t reason, last; /* enum vpmu_loss: now, and of the latest loss */
};

/* The guest's registers first, then what they follow from. */
struct arch_loss {
	struct arch_loss_pmc pmc[ARCH_PMC_MAX];
	uint64_t generation;
	uint64_t ctrl;
	uint64_t clock; /* the provider's, as it was last asked */
	uint64_t now;   /* the same, except that it never goes back */
	uint32_t on, run; /* counters whose times go on */
	uint32_t lost, filtered, uncounted; /* those that are on and do not count */
	bool held; /* the clock is */
	bool pmi;  /* due */
};

/** Take the time: after v->on has changed and before the events follow. */
void arch_loss_clock(struct vpmu_arch *v);

/**
 * Find out why counters that are on do not count. @look: ask the provider for the
 * states of their events, too; else those that exist are taken to count.
 */
void arch_loss_settle(struct vpmu_arch *v, bool look);

/** Do the same at any other time, so that the next read is up to date. */
void arch_loss_poll(struct vpmu_arch *v);

/** Stop all times, for events to be released; the next arch_loss_clock() resumes. */
void arch_loss_stop(struct vpmu_arch *v);

/** RESET: every event has been released, and nothing is on. */
void arch_loss_reset(struct vpmu_arch *v);

/** Totals as of the last time that was taken. */
uint64_t arch_loss_enabled(struct vpmu_arch *v, unsigned int pmc);
uint64_t arch_loss_running(struct vpmu_arch *v, unsigned int pmc);

arch_read_fn arch_loss_ctrl_read, arch_loss_pmc_read;
arch_write_fn arch_loss_ctrl_write;

#endif /* VPMU_ARCH_LOSS_H */
