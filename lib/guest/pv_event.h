/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The VM's events by id, and what they count. */
#ifndef VPMU_PV_EVENT_H
#define VPMU_PV_EVENT_H

#include "pv_vm.h"

/** The vendor's encodings of generic events; NULL: unknown. */
const struct pv_names *vpmu_pv_event_names(const struct vpmu_model *model);

/** Does this model have an event for slots, and for each topdown class of level 1? */
bool vpmu_pv_event_has_topdown(const struct vpmu_model *model);

/**
 * Fill in what @what (type, config, flags) means on this model. Pure.
 * Returns 0, or a negative result with the offset in struct vpmu_pv_op in @wrong.
 */
int vpmu_pv_event_translate(const struct vpmu_pv_vm *vm, struct pv_what *what,
			    uint16_t *wrong);

/** Does the filter, as it is now, allow @what? Under the lock. */
bool vpmu_pv_event_allowed(const struct vpmu_pv_vm *vm, const struct pv_what *what);

/**
 * VPMU_LOSS_NONE if the filter and @v's provider let @what count, or the reason why they
 * do not. Not under the lock.
 */
enum vpmu_loss vpmu_pv_event_refused(struct vpmu_pv *v, const struct pv_what *what);

/** The attributes of the provider's event for @what. */
void vpmu_pv_event_attr(const struct pv_what *what, struct vpmu_event_attr *attr);

/**
 * Translate @what, and refuse and record what cannot be counted. Results as those of
 * vpmu_pv_event_translate(). Not under the lock.
 */
int vpmu_pv_event_check(struct vpmu_pv *v, struct pv_what *what, uint16_t *wrong);

/** Record that an event was not counted, for vpmu_pv_uncounted(). Under the lock. */
void vpmu_pv_event_uncounted(struct vpmu_pv_vm *vm, const struct pv_what *what);

/** The open event of @abi with @id, or NULL. Under the lock. */
struct pv_event *vpmu_pv_event_find(struct vpmu_pv_vm *vm, uint32_t abi, uint32_t id);

/**
 * An entry for a new event: its own in version 2, any free one in version 1; NULL: none is
 * free. Under the lock.
 */
struct pv_event *vpmu_pv_event_take(struct vpmu_pv_vm *vm, uint32_t abi, uint32_t id,
				    const struct pv_what *what);

/** The leader of a group member that is still open, or NULL. Under the lock. */
struct pv_event *vpmu_pv_event_leader(struct vpmu_pv_vm *vm, const struct pv_event *ev);

/** A period that this VM may have. */
static inline uint64_t pv_period(const struct vpmu_pv_vm *vm, uint64_t period)
{
	return period && period < vm->period_min ? vm->period_min : period;
}

#endif /* VPMU_PV_EVENT_H */
