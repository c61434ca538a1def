/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Precise event-based sampling of a guest. Without it, nothing here does anything. */
#ifndef VPMU_ARCH_PEBS_H
#define VPMU_ARCH_PEBS_H

#include <vpmu/arch.h>
#include <vpmu/state.h>

#include "arch_regs.h"

#define ARCH_PEBS_FORMAT	15	/* of architectural PEBS */

/* The fields before the registers are resolved at init. */
struct arch_pebs {
	bool on;               /* the guest has it */
	uint8_t format;        /* records' format, 0 to 5, or ARCH_PEBS_FORMAT */
	uint8_t linear_bits;   /* width of addresses */
	uint16_t reset_fixed;  /* offset in the DS save area */
	uint64_t status;       /* bit of GLOBAL_STATUS that the threshold sets */
	uint64_t valid_enable, valid_cfg;
	uint64_t valid_base, valid_groups; /* architectural PEBS: PEBS_BASE, and CFG_C's
					      bits from 32 on */
	uint64_t enable, data_cfg, ds_area; /* the registers; architectural PEBS: enable
					       has the counters whose groups have EN */
	uint64_t base, index;
	uint64_t groups[ARCH_PMC_MAX]; /* by pmc: CFG_C's bits from 32 on */
	uint32_t wrapped;      /* counters whose next occurrence writes a record, where
				  they are enabled then */
	uint32_t claimed;      /* those whose event shares the facility */
	bool sampling;         /* what the engine was told last */
};

bool arch_pebs_possible(struct vpmu_provider *p, const struct vpmu_ops *ops);
void arch_pebs_resolve(struct vpmu_arch *v, const struct vpmu_arch_config *cfg);

/** Counters that PEBS is enabled for. */
uint32_t arch_pebs_enabled(const struct vpmu_arch *v);

/** The next occurrence of @pmcs is no longer recorded. */
void arch_pebs_disarm(struct vpmu_arch *v, uint32_t pmcs);

/**
 * Counters @pmcs overflowed: arm, or write records. @buffer: set when the buffer
 * is full to its threshold. Returns those that have overflowed in the ordinary way.
 */
uint32_t arch_pebs_overflow(struct vpmu_arch *v, uint32_t pmcs, bool *buffer);

/** Counters @pmcs overflowed: reload those that have them in their CFG_B. */
void arch_pebs_reload(struct vpmu_arch *v, uint32_t pmcs);

/** CFG_C of counter @pmc was written; @groups: its bits from 32 on, within valid_groups. */
void arch_pebs_configure(struct vpmu_arch *v, unsigned int pmc, uint64_t groups);

/** Bring the engine's sampling in line with the armed counters and their gates. */
void arch_pebs_set_sampling(struct vpmu_arch *v);
/** Set the registers as after RESET, when no event exists. */
void arch_pebs_clear(struct vpmu_arch *v);

/** The body of its section: save; check; use what was checked (no data: as after RESET). */
void arch_pebs_put(struct vpmu_arch *v, struct vpmu_state_cursor *c);
int arch_pebs_check(struct vpmu_arch *v, struct vpmu_state_cursor *c);
void arch_pebs_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c);

/** Likewise of architectural PEBS, whose section comes after that of the registers. */
void arch_pebs_arch_put(struct vpmu_arch *v, struct vpmu_state_cursor *c);
int arch_pebs_arch_check(struct vpmu_arch *v, struct vpmu_state_cursor *c);
void arch_pebs_arch_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c);

arch_read_fn arch_pebs_read, arch_pebs_ds_read, arch_pebs_arch_read;
arch_write_fn arch_pebs_write, arch_pebs_ds_write, arch_pebs_arch_write;

#endif /* VPMU_ARCH_PEBS_H */
