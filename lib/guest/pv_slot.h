/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A vCPU's slots. On the vCPU, or while it is stopped; in a batch; under the lock. */
#ifndef VPMU_PV_SLOT_H
#define VPMU_PV_SLOT_H

#include "pv_vm.h"

/**
 * Attach @ev to slot @s, or enable it again where it is. @keep: a throttled one stays
 * throttled. Releases the lock and takes it again.
 */
void vpmu_pv_slot_enable(struct vpmu_pv *v, struct pv_event *ev, unsigned int s, bool keep);

/* The part of a saved state that is about an event that was enabled here. */
struct pv_restore {
	uint32_t n_over, late;
	bool throttled;
	uint8_t loss;
};

/** Attach @ev to slot @s as it was. Releases the lock and takes it again. */
void vpmu_pv_slot_restore(struct vpmu_pv *v, struct pv_event *ev, unsigned int s,
			  const struct pv_restore *was);

/**
 * Detach @ev, which is enabled here, and before it the members that it leads; their
 * slots are written.
 */
void vpmu_pv_slot_disable(struct vpmu_pv *v, struct pv_event *ev);

/** Disable all events of @abi (both bits: all) that are enabled here. */
void vpmu_pv_slot_disable_all(struct vpmu_pv *v, uint32_t abi);

/** Are members that @ev leads enabled on @v? From any vCPU. */
bool vpmu_pv_slot_leads(struct vpmu_pv *v, const struct pv_event *ev);

/** The slot for a version 1 event: where it was, else an empty one, else any; or -1. */
int vpmu_pv_slot_choose(struct vpmu_pv *v, const struct pv_event *ev);

/** Begin or end to throttle @ev, which is enabled here. */
void vpmu_pv_slot_throttle(struct vpmu_pv *v, struct pv_event *ev, bool throttled);

/** An enabled event stops, for a reason that its slot will say; its numbers stay. */
void vpmu_pv_slot_stop(struct vpmu_pv *v, unsigned int s, struct pv_event *ev);

/** The slot is unused again if another vCPU has detached its event. */
void vpmu_pv_slot_abandon(struct vpmu_pv *v, unsigned int s);

/** Find overflows. */
void vpmu_pv_slot_collect(struct vpmu_pv *v);

/** Find out which events do not count. */
void vpmu_pv_slot_settle(struct vpmu_pv *v);

#endif /* VPMU_PV_SLOT_H */
