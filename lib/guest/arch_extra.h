/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Registers that say more of events than a selector: OFFCORE_RSP_0 and _1, PEBS_LD_LAT. */
#ifndef VPMU_ARCH_EXTRA_H
#define VPMU_ARCH_EXTRA_H

#include <vpmu/state.h>

#include "arch_regs.h"

struct arch_extra {
	uint64_t offcore[2];
	uint64_t ldlat;
};

/** Find out which there are, with this provider; before CPUID is resolved. */
void arch_extra_resolve(struct vpmu_arch *v);
/** True if there is any. */
bool arch_extra_any(const struct vpmu_arch *v);
/** True if @select counts offcore responses; @value is set to those that it counts. */
bool arch_extra_offcore(const struct vpmu_arch *v, uint64_t select, uint64_t *value);
/** Set them as after RESET, when no event exists. */
void arch_extra_clear(struct vpmu_arch *v);

/** The body of their section: save; check; use what was checked (no data: as after RESET). */
void arch_extra_put(struct vpmu_arch *v, struct vpmu_state_cursor *c);
int arch_extra_check(struct vpmu_arch *v, struct vpmu_state_cursor *c);
void arch_extra_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c);

arch_read_fn arch_extra_offcore_read, arch_extra_ldlat_read;
arch_write_fn arch_extra_offcore_write, arch_extra_ldlat_write;

#endif /* VPMU_ARCH_EXTRA_H */
