/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The provider's event of a slot. On the vCPU, or while it is stopped. */
#ifndef VPMU_PV_COUNTER_H
#define VPMU_PV_COUNTER_H

#include "pv_vm.h"

/* An event that is to be made for a slot. */
struct pv_counter_job {
	struct pv_what what;
	uint64_t serial, period;
	uint32_t index;
	int leader;      /* its slot, or -1 */
	uint8_t refused; /* enum vpmu_loss: it must not be made at all */
	bool samples;
};

/** Bring the vCPU's clock up to now, and hold it while a slot is used. */
void vpmu_pv_counter_clock(struct vpmu_pv *v);

/** Bring the totals of @ev, which is enabled here, up to now. Under the lock. */
void vpmu_pv_counter_fold(struct vpmu_pv *v, struct pv_event *ev);

/** Occurrences until @ev's next overflow; 0: none. It is enabled here. Under the lock. */
uint64_t vpmu_pv_counter_left(struct vpmu_pv *v, const struct pv_event *ev);

/** Do @hits of the provider stand for overflows of @ev, which is in the slot, or NULL? */
bool vpmu_pv_counter_overflows(const struct pv_slot *sl, const struct pv_event *ev,
			       uint32_t hits);

/** @hits of the provider are serviced: returns overflows of @ev. Under the lock. */
uint32_t vpmu_pv_counter_advance(struct vpmu_pv *v, struct pv_event *ev, uint32_t hits);

/**
 * Overflows of @ev that are not serviced yet, and in @left what is left to the next one after
 * those. It is enabled here. Under the lock.
 */
uint32_t vpmu_pv_counter_late(struct vpmu_pv *v, const struct pv_event *ev, uint64_t *left);

/** Has the slot an event of the provider that was made for @job? */
bool vpmu_pv_counter_made_for(const struct vpmu_pv *v, const struct pv_slot *sl,
			      const struct pv_counter_job *job);

/** Make it; or the slot says why not. Not under the lock. */
void vpmu_pv_counter_make(struct vpmu_pv *v, unsigned int s,
			  const struct pv_counter_job *job);

/** Release a slot's event, which is made. Not under the lock. */
void vpmu_pv_counter_release(struct vpmu_pv *v, unsigned int s);

/** Release all that are parked. Not under the lock. */
void vpmu_pv_counter_release_parked(struct vpmu_pv *v);

#endif /* VPMU_PV_COUNTER_H */
