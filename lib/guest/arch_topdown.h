/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* PERF_METRICS: the issue slots that fixed counter 3 has counted, by class. */
#ifndef VPMU_ARCH_TOPDOWN_H
#define VPMU_ARCH_TOPDOWN_H

#include <vpmu/arch.h>
#include <vpmu/state.h>

#include "arch_regs.h"

struct arch_topdown {
	uint64_t raw;                  /* as written, until a slot has been counted since */
	uint64_t slots[VPMU_TOPDOWN];  /* by class, up to when the event's count was base */
	uint64_t base[VPMU_TOPDOWN];
};

/** True if the provider counts issue slots. */
bool arch_topdown_counted(const struct vpmu_arch_config *cfg);
void arch_topdown_resolve(struct vpmu_arch *v);
/** True if @pmc is the slots counter and PERF_METRICS goes with it. */
bool arch_topdown_is(const struct vpmu_arch *v, unsigned int pmc);
/** Its event was made. */
void arch_topdown_made(struct vpmu_arch *v);
/** Its event is about to be released, or GLOBAL_CTRL to change. */
void arch_topdown_look(struct vpmu_arch *v);
/** The second half of an overflow of it: more bits for GLOBAL_STATUS. */
uint64_t arch_topdown_overflow(struct vpmu_arch *v);
/** RDPMC, and the register. */
uint64_t arch_topdown_value(struct vpmu_arch *v);

/** The body of its section: save; check; use what was checked (no data: zeros). */
void arch_topdown_put(struct vpmu_arch *v, struct vpmu_state_cursor *c);
int arch_topdown_check(struct vpmu_arch *v, struct vpmu_state_cursor *c);
void arch_topdown_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c);

arch_read_fn arch_topdown_read;
arch_write_fn arch_topdown_write;

#endif /* VPMU_ARCH_TOPDOWN_H */
