// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * All that a call or a service does on a vCPU happens at one instant, between begin and end:
 * the end finds out which events do not count, writes results for the guest, and interrupts it.
 */
#include "pv_batch.h"
#include "pv_branch.h"
#include "pv_counter.h"
#include "pv_event.h"
#include "pv_page.h"
#include "pv_slot.h"

/*
 * Release what was made for events that are closed. "detached" only says that it is worth
 * looking: the lock orders what the other vCPU has done to the slots.
 */
static void pv_batch_reap(struct vpmu_pv *v)
{
	uint64_t gone = 0;
	unsigned int s;

	if (!vpmu_atomic_read(&v->detached) || !vpmu_atomic_take(&v->detached))
		return;
	pv_lock(v);
	for (s = 0; s < v->vm->n_slots; s++) {
		const struct pv_slot *sl = &v->slot[s];

		vpmu_pv_slot_abandon(v, s);
		if (sl->made && !sl->used &&
		    pv_event_at(v->vm, sl->index)->serial != sl->serial)
			gone |= PV_BIT(s);
	}
	pv_unlock(v);
	for (s = 0; gone >> s; s++)
		if (gone >> s & 1)
			vpmu_pv_counter_release(v, s);
}

void vpmu_pv_batch_begin(struct vpmu_pv *v)
{
	if (pv_ops(v)->begin)
		pv_ops(v)->begin(v->provider);
	v->fresh = 0;
	v->dirty = 0;
	v->over = 0;
	v->news = 0;
	v->look = false;
	v->nmi = false;
	v->lbr.due = false;
	pv_batch_reap(v);
	pv_lock(v);
	vpmu_pv_slot_collect(v);
	pv_unlock(v);
}

void vpmu_pv_batch_end(struct vpmu_pv *v)
{
	uint8_t vector;
	bool over;

	pv_batch_reap(v);
	if (pv_ops(v)->commit && pv_ops(v)->commit(v->provider) < 0)
		v->look = true;
	pv_lock(v);
	vpmu_pv_slot_settle(v);
	vpmu_pv_page_flush(v);
	vpmu_pv_branch_apply(v);
	vector = v->vector;
	over = v->over && v->page.slots; /* else the guest would find no reason */
	pv_unlock(v);
	if (v->nmi || (over && !vector))
		v->ops.inject(v->ctx, 0);
	if (over && vector)
		v->ops.inject(v->ctx, vector);
}

/* Second halves */

void vpmu_pv_service(struct vpmu_pv *v)
{
	if (!(vpmu_atomic_read(&v->pending[0]) | vpmu_atomic_read(&v->pending[1]) |
	      vpmu_atomic_read(&v->changed[0]) | vpmu_atomic_read(&v->changed[1]) |
	      vpmu_atomic_read(&v->detached)))
		return;
	vpmu_pv_batch_begin(v);
	vpmu_pv_batch_end(v);
}

/* One slot at the end of a slice; @idle: those to be released. */
static bool pv_batch_slice_slot(struct vpmu_pv *v, unsigned int s, uint64_t *idle)
{
	struct pv_slot *sl = &v->slot[s];
	struct pv_event *ev = pv_attached(v, s);
	bool touched = sl->touched;

	pv_assert_locked(v);
	sl->n_over = 0;
	sl->touched = false;
	if (ev) {
		if (ev->throttled)
			vpmu_pv_slot_throttle(v, ev, false);
		return sl->samples;
	}
	if (sl->made && !sl->used && !touched) {
		*idle |= PV_BIT(s);
		return false;
	}
	return sl->made;
}

bool vpmu_pv_slice(struct vpmu_pv *v)
{
	uint64_t idle = 0;
	bool again = false;
	unsigned int s;

	vpmu_pv_batch_begin(v);
	pv_lock(v);
	for (s = 0; s < v->vm->n_slots; s++)
		again |= pv_batch_slice_slot(v, s, &idle);
	pv_unlock(v);
	for (s = 0; idle >> s; s++)
		if (idle >> s & 1)
			vpmu_pv_counter_release(v, s);
	vpmu_pv_batch_end(v);
	return again;
}

/* Events that lose their counter */

/* Does the filter deny @ev, or the leader without which it cannot be made? */
static bool pv_batch_denied(const struct vpmu_pv *v, const struct pv_event *ev)
{
	const struct pv_event *leader = vpmu_pv_event_leader(v->vm, ev);

	pv_assert_locked(v);
	return !vpmu_pv_event_allowed(v->vm, &ev->what) ||
	       (leader && !vpmu_pv_event_allowed(v->vm, &leader->what));
}

void vpmu_pv_refilter(struct vpmu_pv *v)
{
	uint64_t denied = 0;
	struct pv_event *ev;
	unsigned int s;

	vpmu_pv_batch_begin(v);
	pv_lock(v);
	for (s = 0; s < v->vm->n_slots; s++) {
		ev = pv_attached(v, s);
		if (!ev || !v->slot[s].made || !pv_batch_denied(v, ev))
			continue;
		vpmu_pv_slot_stop(v, s, ev);
		denied |= PV_BIT(s);
	}
	pv_unlock(v);
	for (s = 0; denied >> s; s++) {
		if (!(denied >> s & 1))
			continue;
		vpmu_pv_counter_release(v, s);
		v->slot[s].why = VPMU_LOSS_FILTERED;
	}
	v->look = true;
	vpmu_pv_batch_end(v);
}

void vpmu_pv_withdraw(struct vpmu_pv *v)
{
	struct pv_event *ev;
	unsigned int s;

	vpmu_pv_batch_begin(v);
	pv_lock(v);
	for (s = 0; s < v->vm->n_slots; s++) {
		ev = pv_attached(v, s);
		if (ev)
			vpmu_pv_slot_stop(v, s, ev);
	}
	pv_unlock(v);
	for (s = 0; s < v->vm->n_slots; s++) {
		if (v->slot[s].made)
			vpmu_pv_counter_release(v, s);
		v->slot[s].why = VPMU_LOSS_NOT_COUNTED;
	}
	v->look = true;
	v->nmi = false;
	v->over = 0;
	vpmu_pv_batch_end(v);
}
