// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The slots of a vCPU: events are enabled in them and disabled, and their overflows and losses
 * are found.
 */
#include "pv_counter.h"
#include "pv_event.h"
#include "pv_page.h"
#include "pv_slot.h"

static uint64_t pv_slot_take(uint32_t *words)
{
	uint64_t low = vpmu_atomic_read(&words[0]) ? vpmu_atomic_take(&words[0]) : 0;
	uint64_t high = vpmu_atomic_read(&words[1]) ? vpmu_atomic_take(&words[1]) : 0;

	return low | high << 32;
}

/* Does it count? For providers that do not say for how long. @ev is folded. */
static void pv_slot_runs(struct vpmu_pv *v, struct pv_slot *sl, const struct pv_event *ev)
{
	pv_assert_locked(v);
	sl->runs = v->clock && !v->running && sl->made && !ev->loss && !ev->throttled;
}

/* Overflows and losses */

/* @ev is folded. */
static void pv_slot_trace_loss(struct vpmu_pv *v, unsigned int s, const struct pv_event *ev)
{
	pv_trace(v, ev->loss ? VPMU_TRACE_PV_LOST : VPMU_TRACE_PV_FOUND, s, ev->loss,
		 ev->enabled, ev->running);
}

static void pv_slot_news(struct vpmu_pv *v, unsigned int s, struct pv_event *ev)
{
	ev->generation++;
	if (ev->abi != VPMU_PV_ABI_2)
		return;
	v->dirty |= PV_BIT(s);
	v->news |= PV_BIT(s);
}

void vpmu_pv_slot_throttle(struct vpmu_pv *v, struct pv_event *ev, bool throttled)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	struct vpmu_event *own = pv_slot_event(v, ev->slot);

	pv_assert_locked(v);
	vpmu_pv_counter_fold(v, ev);
	pv_trace(v, VPMU_TRACE_PV_THROTTLE, ev->slot, throttled, ev->id, 0);
	ev->throttled = throttled;
	if (throttled) {
		pv_ops(v)->disable(own);
	} else {
		if (sl->made && pv_ops(v)->enable(own) < 0)
			v->look = true;
		v->fresh |= PV_BIT(ev->slot);
	}
	pv_slot_runs(v, sl, ev);
	pv_slot_news(v, ev->slot, ev);
	v->look = true; /* members stand still with their leader */
}

static void pv_slot_collect_slot(struct vpmu_pv *v, unsigned int s)
{
	struct pv_slot *sl = &v->slot[s];
	struct pv_event *ev = pv_attached(v, s);
	uint32_t hits = vpmu_atomic_take(&sl->hits), n = sl->late;

	sl->late = 0;
	if (vpmu_pv_counter_overflows(sl, ev, hits))
		n += vpmu_pv_counter_advance(v, ev, hits);
	if (!ev || !n)
		return;
	ev->overflows += n;
	sl->n_over += n;
	pv_trace(v, VPMU_TRACE_PV_OVERFLOW, s, n < 0xffff ? n : 0xffff, ev->id,
		 ev->overflows);
	if (ev->abi == VPMU_PV_ABI_1) {
		vpmu_pv_counter_fold(v, ev);
		vpmu_pv_page_write_1(v, ev, n);
		v->nmi = true;
	} else {
		v->dirty |= PV_BIT(s);
		v->over |= PV_BIT(s);
		v->lbr.due |= pv_wants_branches(ev);
	}
	if (sl->n_over > v->vm->overflows_max && !ev->throttled && sl->made)
		vpmu_pv_slot_throttle(v, ev, true);
}

void vpmu_pv_slot_collect(struct vpmu_pv *v)
{
	uint64_t slots = pv_slot_take(v->pending);
	unsigned int s;

	pv_assert_locked(v);
	for (s = 0; slots >> s; s++)
		if (slots >> s & 1)
			pv_slot_collect_slot(v, s);
}

static enum vpmu_loss pv_slot_loss(struct vpmu_pv *v, unsigned int s, const struct pv_event *ev)
{
	const struct pv_slot *sl = &v->slot[s];

	if (!sl->made)
		return (enum vpmu_loss)sl->why;
	if (ev->throttled || pv_ops(v)->state(pv_slot_event(v, s)) == VPMU_EVENT_ACTIVE)
		return VPMU_LOSS_NONE;
	return VPMU_LOSS_LOST;
}

void vpmu_pv_slot_settle(struct vpmu_pv *v)
{
	uint64_t slots = pv_slot_take(v->changed) | v->fresh;
	struct pv_event *ev;
	enum vpmu_loss loss;
	unsigned int s;

	pv_assert_locked(v);
	for (s = 0; s < v->vm->n_slots; s++) {
		ev = pv_attached(v, s);
		if (!ev || !(v->look || slots >> s & 1 || ev->loss))
			continue;
		loss = pv_slot_loss(v, s, ev);
		if (loss != ev->loss || v->fresh >> s & 1) {
			bool other = loss != ev->loss;

			vpmu_pv_counter_fold(v, ev);
			if (other)
				pv_slot_news(v, s, ev);
			/* Version 1 cannot report a loss to the guest: the host does. */
			if (other && loss && ev->abi == VPMU_PV_ABI_1)
				vpmu_pv_event_uncounted(v->vm, &ev->what);
			ev->loss = (uint8_t)loss;
			if (other)
				pv_slot_trace_loss(v, s, ev);
			pv_slot_runs(v, &v->slot[s], ev);
		}
	}
}

/* Enable and disable */

void vpmu_pv_slot_stop(struct vpmu_pv *v, unsigned int s, struct pv_event *ev)
{
	pv_assert_locked(v);
	if (v->slot[s].made)
		pv_ops(v)->disable(pv_slot_event(v, s));
	vpmu_pv_counter_fold(v, ev);
	if (ev->abi == VPMU_PV_ABI_1)
		vpmu_pv_page_write_1(v, ev, 0);
	ev->throttled = false;
}

void vpmu_pv_slot_abandon(struct vpmu_pv *v, unsigned int s)
{
	struct pv_slot *sl = &v->slot[s];

	pv_assert_locked(v);
	if (!sl->used || sl->event)
		return;
	if (sl->made)
		pv_ops(v)->disable(pv_slot_event(v, s));
	sl->used = false;
	v->n_used--;
	vpmu_pv_counter_clock(v);
	pv_trace(v, VPMU_TRACE_PV_DISABLE, s, 0, 0, 0);
}

static void pv_slot_attach(struct vpmu_pv *v, struct pv_event *ev, unsigned int s)
{
	struct pv_slot *sl = &v->slot[s];

	pv_assert_locked(v);
	vpmu_pv_slot_abandon(v, s);
	sl->event = pv_index(v->vm, ev) + 1;
	sl->used = true;
	sl->runs = false;
	sl->n_over = 0;
	sl->late = 0;
	v->n_used++;
	ev->vcpu = v->number + 1;
	ev->slot = (uint8_t)s;
	ev->loss = VPMU_LOSS_NONE;
	ev->throttled = false;
	v->lbr.fresh |= pv_wants_branches(ev);
	vpmu_pv_counter_clock(v);
	ev->stamp = v->now;
	pv_trace(v, VPMU_TRACE_PV_ENABLE, s, ev->abi, ev->id, ev->count);
}

/* The event of the provider is made, and off or on. */
static void pv_slot_start(struct vpmu_pv *v, struct pv_event *ev, bool keep)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	struct vpmu_event *own = pv_slot_event(v, ev->slot);

	pv_assert_locked(v);
	if (sl->samples) {
		sl->next = pv_ops(v)->read(own) + ev->left;
		pv_ops(v)->arm(own, ev->left);
	}
	if (ev->throttled && !keep)
		vpmu_pv_slot_throttle(v, ev, false);
	else if (!ev->throttled && pv_ops(v)->enable(own) < 0)
		v->look = true;
}

/* The filter may have changed since the event was opened or loaded. */
static uint8_t pv_slot_refused(const struct vpmu_pv_vm *vm, const struct pv_event *ev)
{
	pv_assert_vm_locked(vm);
	if (!vpmu_pv_event_allowed(vm, &ev->what))
		return VPMU_LOSS_FILTERED;
	return ev->reason == VPMU_LOSS_FILTERED ? VPMU_LOSS_NONE : ev->reason;
}

void vpmu_pv_slot_enable(struct vpmu_pv *v, struct pv_event *ev, unsigned int s, bool keep)
{
	const struct pv_event *leader = vpmu_pv_event_leader(v->vm, ev);
	struct pv_slot *sl = &v->slot[s];
	struct pv_counter_job job;
	bool known = pv_here(v, ev);

	pv_assert_locked(v);
	job.what = ev->what;
	job.serial = ev->serial;
	job.index = pv_index(v->vm, ev);
	job.samples = ev->left != 0;
	job.period = ev->period ? ev->period : ev->left;
	job.leader = leader ? leader->slot : -1;
	job.refused = pv_slot_refused(v->vm, ev);
	if (!known)
		pv_slot_attach(v, ev, s);
	if (!vpmu_pv_counter_made_for(v, sl, &job)) {
		if (known)
			vpmu_pv_counter_fold(v, ev);
		pv_unlock(v);
		vpmu_pv_counter_make(v, s, &job);
		pv_lock(v);
	}
	/* Meanwhile another vCPU may have closed the event, and a third one opened it again. */
	if (sl->event != job.index + 1)
		return;
	v->fresh |= PV_BIT(s);
	v->dirty |= PV_BIT(s);
	if (sl->made)
		pv_slot_start(v, ev, keep);
}

void vpmu_pv_slot_restore(struct vpmu_pv *v, struct pv_event *ev, unsigned int s,
			  const struct pv_restore *was)
{
	struct pv_slot *sl = &v->slot[s];

	pv_assert_locked(v);
	vpmu_pv_slot_enable(v, ev, s, true);
	v->dirty &= ~PV_BIT(s); /* the guest has it already */
	ev->loss = was->loss;
	if (ev->loss)
		pv_slot_trace_loss(v, s, ev);
	ev->throttled = was->throttled;
	if (was->throttled && sl->made)
		pv_ops(v)->disable(pv_slot_event(v, s));
	sl->n_over = was->n_over;
	sl->late = was->late;
	if (was->late)
		vpmu_atomic_or(&v->pending[s / 32], 1u << s % 32);
}

static void pv_slot_detach_one(struct vpmu_pv *v, struct pv_event *ev)
{
	unsigned int s = ev->slot;
	struct pv_slot *sl = &v->slot[s];

	pv_assert_locked(v);
	if (sl->made)
		pv_ops(v)->disable(pv_slot_event(v, s));
	pv_slot_collect_slot(v, s);
	ev->left = vpmu_pv_counter_left(v, ev);
	vpmu_pv_counter_fold(v, ev);
	sl->event = 0;
	sl->used = false;
	sl->touched = true;
	v->n_used--;
	vpmu_pv_counter_clock(v);
	ev->vcpu = 0;
	if (ev->loss || ev->throttled)
		ev->generation++;
	if (ev->loss) {
		ev->loss = VPMU_LOSS_NONE;
		pv_slot_trace_loss(v, s, ev);
	}
	ev->throttled = false;
	pv_trace(v, VPMU_TRACE_PV_DISABLE, s, ev->abi, ev->id, ev->count);
	v->dirty &= ~PV_BIT(s);
	v->fresh &= ~PV_BIT(s);
	v->news &= ~PV_BIT(s);
	if (ev->abi == VPMU_PV_ABI_1)
		vpmu_pv_page_write_1(v, ev, 0);
	else
		vpmu_pv_page_write_2(v, s, ev, false);
}

static bool pv_slot_is_member(struct vpmu_pv_vm *vm, const struct pv_event *ev,
			      const struct pv_event *leader)
{
	return ev && vpmu_pv_event_leader(vm, ev) == leader;
}

bool vpmu_pv_slot_leads(struct vpmu_pv *v, const struct pv_event *ev)
{
	unsigned int s;

	pv_assert_vm_locked(v->vm);
	for (s = 0; s < v->vm->n_slots; s++)
		if (pv_slot_is_member(v->vm, pv_attached(v, s), ev))
			return true;
	return false;
}

void vpmu_pv_slot_disable(struct vpmu_pv *v, struct pv_event *ev)
{
	unsigned int s;

	pv_assert_locked(v);
	for (s = 0; s < v->vm->n_slots; s++)
		if (pv_slot_is_member(v->vm, pv_attached(v, s), ev))
			pv_slot_detach_one(v, pv_attached(v, s));
	pv_slot_detach_one(v, ev);
}

void vpmu_pv_slot_disable_all(struct vpmu_pv *v, uint32_t abi)
{
	struct pv_event *ev;
	unsigned int s;

	pv_assert_locked(v);
	for (s = 0; s < v->vm->n_slots; s++) {
		ev = pv_attached(v, s);
		if (ev && ev->abi & abi)
			vpmu_pv_slot_disable(v, ev);
	}
}

int vpmu_pv_slot_choose(struct vpmu_pv *v, const struct pv_event *ev)
{
	uint32_t index = pv_index(v->vm, ev);
	int empty = -1, any = -1;
	unsigned int s;

	pv_assert_locked(v);
	for (s = v->vm->n_slots; s-- > 0;) {
		const struct pv_slot *sl = &v->slot[s];

		if (sl->event)
			continue;
		if (sl->made && sl->index == index && sl->serial == ev->serial)
			return (int)s;
		any = (int)s;
		if (!sl->made)
			empty = (int)s;
	}
	return empty >= 0 ? empty : any;
}
