/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Counters: what the registers want of the provider, compared with the events that exist.
 * Registers are stored and marked (struct arch_marks); arch_sync() does the rest.
 */
#ifndef VPMU_ARCH_PMC_H
#define VPMU_ARCH_PMC_H

#include <vpmu/arch.h>
#include <vpmu/provider.h>

#include "arch_regs.h"

/* Selectors that the guest enabled and no provider counts. For the host: survives RESET. */
struct arch_uncounted {
	uint32_t n;
	struct {
		uint64_t select;
		uint64_t times;
	} row[VPMU_UNCOUNTED_MAX];
};

/**
 * Bring the provider's events, then branch records, in line with the registers that are
 * marked in v->marked. Afterwards nothing is marked.
 */
void arch_sync(struct vpmu_arch *v);

/** The guest writes counter @pmc: @value is within its width. */
void arch_pmc_write(struct vpmu_arch *v, unsigned int pmc, uint64_t value);

/**
 * Only the enable bit of general-purpose counter @pmc's selector has changed. At each switch
 * of tasks guests clear and set it while the gate is closed, where its event stays as it is.
 * Returns false, and has done nothing, if there is more to do: the counter is to be marked.
 */
bool arch_pmc_toggle(struct vpmu_arch *v, unsigned int pmc);

/** Give all events back; counters keep their values. */
void arch_pmc_release_all(struct vpmu_arch *v);

/**
 * Make the events of a register file that has just been put in place. @parked:
 * counters that had one (event[].banks: in which banks), enabled or not.
 */
void arch_pmc_resume(struct vpmu_arch *v, uint32_t parked);

/** Give back events that are parked and were not written to in a slice; see arch.h. */
bool arch_pmc_slice(struct vpmu_arch *v);

/**
 * Try again to count with the counters that are lost. Their events are replaced: as the
 * youngest they take no counter from a pinned event of the host, also of one that came
 * while they were lost.
 */
void arch_pmc_regain(struct vpmu_arch *v);

/** The quality with which the provider counts @pmc, or would count it. */
uint8_t arch_pmc_quality(struct vpmu_arch *v, unsigned int pmc);

/** Counters of which an overflow sets no status bit: those that reload themselves. */
uint32_t arch_pmc_silent(const struct vpmu_arch *v);

/** Counters whose overflow raises a PMI (INT, or the fixed counter's PMI bit). */
uint32_t arch_pmc_interrupting(const struct vpmu_arch *v);

#endif /* VPMU_ARCH_PMC_H */
