/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The direct provider: the guest owns the counters of a silicon of its own.
 * An event of the guest's counter n sits in slot n, without arbitration.
 */
#ifndef VPMU_DIRECT_H
#define VPMU_DIRECT_H

#include <vpmu/provider.h>
#include <vpmu/silicon.h>

/* The caller owns the memory; fields are private to lib/perf/direct.c. */
struct vpmu_direct {
	struct vpmu_provider provider;
	struct vpmu_silicon silicon;
	struct vpmu_event *event[VPMU_SLOTS_MAX]; /* event in each slot */
	uint32_t enabled;                         /* bitmap of slots */
};

extern const struct vpmu_provider_ops vpmu_direct_ops;

/**
 * Set up a direct provider and its silicon.
 *
 * @cfg: as for vpmu_silicon_init(), but overflow and owner are not used
 *
 * Returns 0 or what vpmu_silicon_init() returns; @d is then unusable.
 */
int vpmu_direct_init(struct vpmu_direct *d, const struct vpmu_silicon_config *cfg);

#endif /* VPMU_DIRECT_H */
