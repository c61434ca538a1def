// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A vCPU's slots: the events that are enabled there, over the provider's.
 *
 * What is disabled is parked: its event of the provider stays, and is used again
 * when the same comes back. What was parked for a whole slice is given back.
 */
#include "pv_internal.h"

#define PVS_BIT(s)	((uint64_t)1 << (s))
#define PVS_LATE_MAX	64 /* overflows that one service can find to be overdue */

#define PVS_WORD(field)	(offsetof(struct vpmu_pv_page, field) / 4)
#define PVS_SLOT_WORDS	(sizeof(struct vpmu_pv_slot) / 4)
#define PVS_SLOT_USED	(offsetof(struct vpmu_pv_slot, zero) / 4)

static void pvs_trace(struct vpmu_pv *v, unsigned int type, unsigned int s,
		      unsigned int what, uint64_t a, uint64_t b)
{
	vpmu_trace(v->ops, v->ctx, type, s, what, a, b);
}

/* First halves: from anywhere. */

static void pvs_overflowed(struct vpmu_event *head)
{
	struct vpmu_pv *v = head->owner;

	vpmu_atomic_add(&v->slot[head->index].hits, 1u);
	vpmu_atomic_fence(); /* whoever takes the bit sees the hit */
	vpmu_atomic_or(&v->pending[head->index / 32], 1u << head->index % 32);
	v->ops->kick(v->ctx);
}

static void pvs_state_changed(struct vpmu_event *head)
{
	struct vpmu_pv *v = head->owner;

	vpmu_atomic_or(&v->changed[head->index / 32], 1u << head->index % 32);
	v->ops->kick(v->ctx);
}

static uint64_t pvs_take(uint32_t *words)
{
	uint64_t low = vpmu_atomic_read(&words[0]) ? vpmu_atomic_take(&words[0]) : 0;
	uint64_t high = vpmu_atomic_read(&words[1]) ? vpmu_atomic_take(&words[1]) : 0;

	return low | high << 32;
}

/* Numbers */

static const struct vpmu_provider_ops *pvs_ops(const struct vpmu_pv *v)
{
	return v->provider->ops;
}

/* A clock that goes back has stood still: times only grow. */
static void pvs_clock(struct vpmu_pv *v)
{
	uint64_t clock;

	if (!v->clock)
		return;
	clock = v->clock(v->provider, v->n_used != 0);
	if ((int64_t)(clock - v->clock_was) > 0)
		v->now += clock - v->clock_was;
	v->clock_was = clock;
}

static struct pv_event *pvs_attached(struct vpmu_pv *v, unsigned int s)
{
	uint32_t event = v->slot[s].event;

	return event ? pv_event_at(v->vm, event - 1) : NULL;
}

void vpmu_pvs_fold(struct vpmu_pv *v, struct pv_event *ev)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	struct vpmu_event *own = pv_slot_event(v, ev->slot);
	uint64_t count, running;

	pvs_clock(v);
	ev->enabled += v->now - ev->stamp;
	if (sl->runs)
		ev->running += v->now - ev->stamp;
	ev->stamp = v->now;
	if (!sl->made)
		return;
	count = pvs_ops(v)->read(own);
	ev->count += count - sl->base;
	sl->base = count;
	if (!v->clock || !v->running)
		return;
	running = v->running(own);
	if (running > sl->run_base)
		ev->running += running - sl->run_base;
	sl->run_base = running;
}

uint64_t vpmu_pvs_left(struct vpmu_pv *v, const struct pv_event *ev)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	uint64_t count;

	if (!sl->made)
		return ev->left;
	if (!sl->next)
		return 0;
	count = pvs_ops(v)->read(pv_slot_event(v, ev->slot));
	return count < sl->next ? sl->next - count : 1;
}

/* Counts, for providers that do not say how long. L, folded. */
static void pvs_runs(struct vpmu_pv *v, struct pv_slot *sl, const struct pv_event *ev)
{
	sl->runs = v->clock && !v->running && sl->made && !ev->loss && !ev->throttled;
}

/* Guest memory: L */

/* A count that does not tear where the machine can help it; each half otherwise. */
void vpmu_pvs_write_1(struct vpmu_pv *v, struct pv_event *ev, uint32_t overflows)
{
	uint32_t *at = ev->at;

	if (!at)
		return;
	if (sizeof(void *) == sizeof(uint64_t) && !((uintptr_t)at % sizeof(uint64_t))) {
		vpmu_atomic_put((uint64_t *)ev->at, ev->count);
	} else {
		vpmu_atomic_put(&at[0], (uint32_t)ev->count);
		vpmu_atomic_put(&at[1], (uint32_t)(ev->count >> 32));
	}
	vpmu_atomic_fence();
	if (overflows)
		vpmu_atomic_add(&at[2], overflows);
	vpmu_pvs_dirtied(v, at, ev->at_bytes);
}

static uint32_t pvs_flags(const struct pv_event *ev, bool enabled)
{
	uint32_t flags = (uint32_t)ev->generation << VPMU_PV_SLOT_GENERATION_SHIFT;

	if (!enabled)
		return flags;
	flags |= VPMU_PV_SLOT_ENABLED | (uint32_t)ev->loss << VPMU_PV_SLOT_REASON_SHIFT;
	flags |= ev->loss ? VPMU_PV_SLOT_LOST : 0;
	return flags | (ev->throttled ? VPMU_PV_SLOT_THROTTLED : 0);
}

static void pvs_write_2(struct vpmu_pv *v, unsigned int s, const struct pv_event *ev,
			bool enabled)
{
	uint32_t words[PVS_SLOT_WORDS], i, *at;
	struct pv_slot *sl = &v->slot[s];
	struct vpmu_pv_slot w;

	if (!v->page.slots)
		return;
	memset(&w, 0, sizeof(w));
	w.id = ev->id;
	w.count = ev->count;
	w.enabled = ev->enabled;
	w.running = ev->running < ev->enabled ? ev->running : ev->enabled;
	w.overflows = ev->overflows;
	w.flags = pvs_flags(ev, enabled);
	memcpy(words, &w, sizeof(w));
	at = v->page.slots + PVS_WORD(slot) + s * PVS_SLOT_WORDS;
	vpmu_atomic_put(&at[0], sl->seq + 1);
	vpmu_atomic_fence();
	for (i = 1; i < PVS_SLOT_USED; i++)
		vpmu_atomic_put(&at[i], words[i]);
	sl->seq += 2;
	vpmu_atomic_set(&at[0], sl->seq);
	vpmu_pvs_dirtied(v, at, sizeof(w));
}

/* Slots before bitmaps, and those before an interrupt. */
static void pvs_set_bits(struct vpmu_pv *v, uint32_t *words, uint64_t bits)
{
	if (!bits)
		return;
	vpmu_atomic_fence();
	if ((uint32_t)bits)
		vpmu_atomic_or(&words[0], (uint32_t)bits);
	if (bits >> 32)
		vpmu_atomic_or(&words[1], (uint32_t)(bits >> 32));
	vpmu_pvs_dirtied(v, words, 8);
}

static void pvs_flush(struct vpmu_pv *v)
{
	struct pv_event *ev;
	unsigned int s;

	for (s = 0; v->dirty >> s; s++) {
		ev = v->dirty >> s & 1 ? pvs_attached(v, s) : NULL;
		if (!ev || ev->abi != VPMU_PV_ABI_2)
			continue;
		vpmu_pvs_fold(v, ev);
		pvs_write_2(v, s, ev, true);
	}
	vpmu_pvb_write(v);
	if (!v->page.slots)
		return;
	pvs_set_bits(v, v->page.slots + PVS_WORD(overflowed), v->over);
	pvs_set_bits(v, v->page.slots + PVS_WORD(changed), v->news);
}

/* Overflows and losses: L */

/* Folded. */
static void pvs_trace_loss(struct vpmu_pv *v, unsigned int s, const struct pv_event *ev)
{
	pvs_trace(v, ev->loss ? VPMU_TRACE_PV_LOST : VPMU_TRACE_PV_FOUND, s, ev->loss,
		  ev->enabled, ev->running);
}

static void pvs_news(struct vpmu_pv *v, unsigned int s, struct pv_event *ev)
{
	ev->generation++;
	if (ev->abi != VPMU_PV_ABI_2)
		return;
	v->dirty |= PVS_BIT(s);
	v->news |= PVS_BIT(s);
}

static void pvs_throttle(struct vpmu_pv *v, struct pv_event *ev, bool throttled)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	struct vpmu_event *own = pv_slot_event(v, ev->slot);

	vpmu_pvs_fold(v, ev);
	pvs_trace(v, VPMU_TRACE_PV_THROTTLE, ev->slot, throttled, ev->id, 0);
	ev->throttled = throttled;
	if (throttled) {
		pvs_ops(v)->disable(own);
	} else {
		if (sl->made && pvs_ops(v)->enable(own) < 0)
			v->look = true;
		v->fresh |= PVS_BIT(ev->slot);
	}
	pvs_runs(v, sl, ev);
	pvs_news(v, ev->slot, ev);
	v->look = true; /* members stand still with their leader */
}

/*
 * How many overflows @hits of the provider are at @count, and the place of the next
 * one in @next. An event that was made with another period overflows at places of
 * its own after the first.
 */
static uint32_t pvs_passed(const struct pv_slot *sl, const struct pv_event *ev,
			   uint32_t hits, uint64_t count, uint64_t *next)
{
	uint32_t n = 1;

	*next = 0;
	if (!ev->period)
		return 1;
	if (ev->period == sl->period) {
		*next = sl->next + hits * ev->period;
		return hits;
	}
	*next = sl->next + ev->period;
	for (; *next <= count && n < PVS_LATE_MAX; n++)
		*next += ev->period;
	if (*next <= count)
		*next = count + ev->period;
	return n;
}

static uint32_t pvs_advance(struct vpmu_pv *v, struct pv_event *ev, uint32_t hits)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	struct vpmu_event *own = pv_slot_event(v, ev->slot);
	uint64_t count = pvs_ops(v)->read(own), next;
	uint32_t n = pvs_passed(sl, ev, hits, count, &next);

	sl->next = next;
	if (ev->period != sl->period)
		pvs_ops(v)->arm(own, sl->next ? sl->next - count : PV_FAR);
	return n;
}

/* Whether there is something to be counted: overflows of an event that is enabled. */
static bool pvs_overflows(const struct pv_slot *sl, const struct pv_event *ev, uint32_t hits)
{
	return hits && ev && sl->made && sl->next;
}

uint32_t vpmu_pvs_late(struct vpmu_pv *v, const struct pv_event *ev, uint64_t *left)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	uint32_t hits = vpmu_atomic_read(&sl->hits), n;
	uint64_t count, next;

	*left = vpmu_pvs_left(v, ev);
	if (!pvs_overflows(sl, ev, hits))
		return sl->late;
	count = pvs_ops(v)->read(pv_slot_event(v, ev->slot));
	n = pvs_passed(sl, ev, hits, count, &next);
	*left = 0;
	if (next)
		*left = next > count ? next - count : 1;
	return sl->late + n;
}

static void pvs_collect_slot(struct vpmu_pv *v, unsigned int s)
{
	struct pv_slot *sl = &v->slot[s];
	struct pv_event *ev = pvs_attached(v, s);
	uint32_t hits = vpmu_atomic_take(&sl->hits), n = sl->late;

	sl->late = 0;
	if (pvs_overflows(sl, ev, hits))
		n += pvs_advance(v, ev, hits);
	if (!ev || !n)
		return;
	ev->overflows += n;
	sl->n_over += n;
	pvs_trace(v, VPMU_TRACE_PV_OVERFLOW, s, n < 0xffff ? n : 0xffff, ev->id,
		  ev->overflows);
	if (ev->abi == VPMU_PV_ABI_1) {
		vpmu_pvs_fold(v, ev);
		vpmu_pvs_write_1(v, ev, n);
		v->nmi = true;
	} else {
		v->dirty |= PVS_BIT(s);
		v->over |= PVS_BIT(s);
		v->lbr.due |= pv_wants_branches(ev);
	}
	if (sl->n_over > v->vm->overflows_max && !ev->throttled && sl->made)
		pvs_throttle(v, ev, true);
}

static void pvs_collect(struct vpmu_pv *v)
{
	uint64_t slots = pvs_take(v->pending);
	unsigned int s;

	for (s = 0; slots >> s; s++)
		if (slots >> s & 1)
			pvs_collect_slot(v, s);
}

static enum vpmu_loss pvs_loss(struct vpmu_pv *v, unsigned int s, const struct pv_event *ev)
{
	const struct pv_slot *sl = &v->slot[s];

	if (!sl->made)
		return (enum vpmu_loss)sl->why;
	if (ev->throttled || pvs_ops(v)->state(pv_slot_event(v, s)) == VPMU_EVENT_ACTIVE)
		return VPMU_LOSS_NONE;
	return VPMU_LOSS_LOST;
}

/* Find out which events do not count. */
static void pvs_settle(struct vpmu_pv *v)
{
	uint64_t slots = pvs_take(v->changed) | v->fresh;
	struct pv_event *ev;
	enum vpmu_loss loss;
	unsigned int s;

	for (s = 0; s < v->vm->n_slots; s++) {
		ev = pvs_attached(v, s);
		if (!ev || !(v->look || slots >> s & 1 || ev->loss))
			continue;
		loss = pvs_loss(v, s, ev);
		if (loss != ev->loss || v->fresh >> s & 1) {
			bool other = loss != ev->loss;

			vpmu_pvs_fold(v, ev);
			if (other)
				pvs_news(v, s, ev);
			/* Version 1 cannot report a loss to the guest: the host does. */
			if (other && loss && ev->abi == VPMU_PV_ABI_1)
				vpmu_pve_tell(v->vm, &ev->what);
			ev->loss = (uint8_t)loss;
			if (other)
				pvs_trace_loss(v, s, ev);
			pvs_runs(v, &v->slot[s], ev);
		}
	}
}

/* The provider's events */

static void pvs_release(struct vpmu_pv *v, unsigned int s)
{
	v->slot[s].made = false;
	pvs_ops(v)->release(pv_slot_event(v, s));
}

void vpmu_pvs_release_parked(struct vpmu_pv *v)
{
	unsigned int s;

	for (s = 0; s < v->vm->n_slots; s++)
		if (v->slot[s].made && !v->slot[s].used)
			pvs_release(v, s);
}

/* An enabled event stops, for a reason that its slot will say; its numbers stay. L */
static void pvs_stop(struct vpmu_pv *v, unsigned int s, struct pv_event *ev)
{
	if (v->slot[s].made)
		pvs_ops(v)->disable(pv_slot_event(v, s));
	vpmu_pvs_fold(v, ev);
	if (ev->abi == VPMU_PV_ABI_1)
		vpmu_pvs_write_1(v, ev, 0);
	ev->throttled = false;
}

/* Does the filter deny @ev, or the leader without which it cannot be made? L */
static bool pvs_denied(const struct vpmu_pv *v, const struct pv_event *ev)
{
	const struct pv_event *leader = vpmu_pve_leader(v->vm, ev);

	return !vpmu_pve_allowed(v->vm, &ev->what) ||
	       (leader && !vpmu_pve_allowed(v->vm, &leader->what));
}

void vpmu_pv_refilter(struct vpmu_pv *v)
{
	uint64_t denied = 0;
	struct pv_event *ev;
	unsigned int s;

	vpmu_pvs_begin(v);
	pv_lock(v);
	for (s = 0; s < v->vm->n_slots; s++) {
		ev = pvs_attached(v, s);
		if (!ev || !v->slot[s].made || !pvs_denied(v, ev))
			continue;
		pvs_stop(v, s, ev);
		denied |= PVS_BIT(s);
	}
	pv_unlock(v);
	for (s = 0; denied >> s; s++) {
		if (!(denied >> s & 1))
			continue;
		pvs_release(v, s);
		v->slot[s].why = VPMU_LOSS_FILTERED;
	}
	v->look = true;
	vpmu_pvs_end(v);
}

void vpmu_pvs_withdraw(struct vpmu_pv *v)
{
	struct pv_event *ev;
	unsigned int s;

	pv_lock(v);
	for (s = 0; s < v->vm->n_slots; s++) {
		ev = pvs_attached(v, s);
		if (ev)
			pvs_stop(v, s, ev);
	}
	pv_unlock(v);
	for (s = 0; s < v->vm->n_slots; s++) {
		if (v->slot[s].made)
			pvs_release(v, s);
		v->slot[s].why = VPMU_LOSS_NOT_COUNTED;
	}
	v->look = true;
}

/* What was detached by another vCPU. L */
static void pvs_abandon(struct vpmu_pv *v, unsigned int s)
{
	struct pv_slot *sl = &v->slot[s];

	if (!sl->used || sl->event)
		return;
	if (sl->made)
		pvs_ops(v)->disable(pv_slot_event(v, s));
	sl->used = false;
	v->n_used--;
	pvs_clock(v);
	pvs_trace(v, VPMU_TRACE_PV_DISABLE, s, 0, 0, 0);
}

/* Give back what was made for events that are closed. */
static void pvs_reap(struct vpmu_pv *v)
{
	uint64_t gone = 0;
	unsigned int s;

	if (!vpmu_atomic_read(&v->detached) || !vpmu_atomic_take(&v->detached))
		return;
	pv_lock(v);
	for (s = 0; s < v->vm->n_slots; s++) {
		const struct pv_slot *sl = &v->slot[s];

		pvs_abandon(v, s);
		if (sl->made && !sl->used &&
		    pv_event_at(v->vm, sl->index)->serial != sl->serial)
			gone |= PVS_BIT(s);
	}
	pv_unlock(v);
	for (s = 0; gone >> s; s++)
		if (gone >> s & 1)
			pvs_release(v, s);
}

void vpmu_pvs_begin(struct vpmu_pv *v)
{
	if (pvs_ops(v)->begin)
		pvs_ops(v)->begin(v->provider);
	v->fresh = 0;
	v->dirty = 0;
	v->over = 0;
	v->news = 0;
	v->look = false;
	v->nmi = false;
	v->lbr.due = false;
	pvs_reap(v);
	pv_lock(v);
	pvs_collect(v);
	pv_unlock(v);
}

void vpmu_pvs_end(struct vpmu_pv *v)
{
	uint8_t vector;
	bool over;

	pvs_reap(v);
	if (pvs_ops(v)->commit && pvs_ops(v)->commit(v->provider) < 0)
		v->look = true;
	pv_lock(v);
	pvs_settle(v);
	pvs_flush(v);
	vpmu_pvb_apply(v);
	vector = v->vector;
	over = v->over && v->page.slots; /* else the guest would find no reason */
	pv_unlock(v);
	if (v->nmi || (over && !vector))
		v->ops->interrupt(v->ctx, 0);
	if (over && vector)
		v->ops->interrupt(v->ctx, vector);
}

/* Enable and disable */

/* What a slot's event has to be made for. */
struct pvs_job {
	struct pv_what what;
	uint64_t serial, period;
	uint32_t index;
	int leader;      /* its slot, or -1 */
	uint8_t refused; /* enum vpmu_loss: it must not be made at all */
	bool samples;
};

static uint64_t pvs_leader_make(const struct vpmu_pv *v, const struct pvs_job *job)
{
	return job->leader < 0 ? 0 : v->slot[job->leader].make;
}

static bool pvs_made_for(const struct vpmu_pv *v, const struct pv_slot *sl,
			 const struct pvs_job *job)
{
	return sl->made && !job->refused && sl->index == job->index &&
	       sl->serial == job->serial && sl->samples == job->samples &&
	       sl->leader_make == pvs_leader_make(v, job);
}

static int pvs_create(struct vpmu_pv *v, unsigned int s, const struct pvs_job *job)
{
	struct vpmu_event *own = pv_slot_event(v, s);
	struct vpmu_event_attr attr;

	vpmu_pve_attr(&job->what, &attr);
	attr.period = job->samples ? job->period : 0;
	if (job->leader >= 0)
		attr.leader = pv_slot_event(v, (unsigned int)job->leader);
	memset(own, 0, sizeof(*own));
	own->overflowed = pvs_overflowed;
	own->changed = pvs_state_changed;
	own->owner = v;
	own->index = s;
	return pvs_ops(v)->create(v->provider, own, &attr);
}

/* Parked events may have what this one needs; they come back when they are needed. */
static void pvs_make(struct vpmu_pv *v, unsigned int s, const struct pvs_job *job)
{
	struct pv_slot *sl = &v->slot[s];
	int ret;

	if (sl->made)
		pvs_release(v, s);
	sl->why = job->refused ? job->refused : VPMU_LOSS_LOST;
	if (job->refused || (job->leader >= 0 && !v->slot[job->leader].made))
		return;
	ret = pvs_create(v, s, job);
	if (ret == -VPMU_EBUSY) {
		vpmu_pvs_release_parked(v);
		ret = pvs_create(v, s, job);
	}
	if (ret == -VPMU_ENOENT)
		sl->why = VPMU_LOSS_NOT_COUNTED;
	if (ret)
		return;
	(void)vpmu_atomic_take(&sl->hits);
	sl->made = true;
	sl->samples = job->samples;
	sl->period = job->period;
	sl->index = job->index;
	sl->serial = job->serial;
	sl->make = ++v->makes;
	sl->leader_make = pvs_leader_make(v, job);
	sl->base = 0;
	sl->run_base = 0;
	sl->next = 0;
}

/* L */
static void pvs_attach(struct vpmu_pv *v, struct pv_event *ev, unsigned int s)
{
	struct pv_slot *sl = &v->slot[s];

	pvs_abandon(v, s);
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
	pvs_clock(v);
	ev->stamp = v->now;
	pvs_trace(v, VPMU_TRACE_PV_ENABLE, s, ev->abi, ev->id, ev->count);
}

/* Its event of the provider is there, and off or on. L */
static void pvs_start(struct vpmu_pv *v, struct pv_event *ev, bool keep)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	struct vpmu_event *own = pv_slot_event(v, ev->slot);

	if (sl->samples) {
		sl->next = pvs_ops(v)->read(own) + ev->left;
		pvs_ops(v)->arm(own, ev->left);
	}
	if (ev->throttled && !keep)
		pvs_throttle(v, ev, false);
	else if (!ev->throttled && pvs_ops(v)->enable(own) < 0)
		v->look = true;
}

/* The filter may have changed since the event was opened or loaded. L */
static uint8_t pvs_refused(const struct vpmu_pv_vm *vm, const struct pv_event *ev)
{
	if (!vpmu_pve_allowed(vm, &ev->what))
		return VPMU_LOSS_FILTERED;
	return ev->reason == VPMU_LOSS_FILTERED ? VPMU_LOSS_NONE : ev->reason;
}

void vpmu_pvs_enable(struct vpmu_pv *v, struct pv_event *ev, unsigned int s, bool keep)
{
	const struct pv_event *leader = vpmu_pve_leader(v->vm, ev);
	struct pv_slot *sl = &v->slot[s];
	struct pvs_job job;
	bool known = pv_here(v, ev);

	job.what = ev->what;
	job.serial = ev->serial;
	job.index = pv_index(v->vm, ev);
	job.samples = ev->left != 0;
	job.period = ev->period ? ev->period : ev->left;
	job.leader = leader ? leader->slot : -1;
	job.refused = pvs_refused(v->vm, ev);
	if (!known)
		pvs_attach(v, ev, s);
	if (!pvs_made_for(v, sl, &job)) {
		if (known)
			vpmu_pvs_fold(v, ev);
		pv_unlock(v);
		pvs_make(v, s, &job);
		pv_lock(v);
	}
	/* Another vCPU may have closed it meanwhile, and more. */
	if (sl->event != job.index + 1)
		return;
	v->fresh |= PVS_BIT(s);
	v->dirty |= PVS_BIT(s);
	if (sl->made)
		pvs_start(v, ev, keep);
}

void vpmu_pvs_restore(struct vpmu_pv *v, struct pv_event *ev, unsigned int s,
		      const struct pv_restore *was)
{
	struct pv_slot *sl = &v->slot[s];

	vpmu_pvs_enable(v, ev, s, true);
	v->dirty &= ~PVS_BIT(s); /* the guest has it already */
	ev->loss = was->loss;
	if (ev->loss)
		pvs_trace_loss(v, s, ev);
	ev->throttled = was->throttled;
	if (was->throttled && sl->made)
		pvs_ops(v)->disable(pv_slot_event(v, s));
	sl->n_over = was->n_over;
	sl->late = was->late;
	if (was->late)
		vpmu_atomic_or(&v->pending[s / 32], 1u << s % 32);
}

/* L */
static void pvs_detach_one(struct vpmu_pv *v, struct pv_event *ev)
{
	unsigned int s = ev->slot;
	struct pv_slot *sl = &v->slot[s];

	if (sl->made)
		pvs_ops(v)->disable(pv_slot_event(v, s));
	pvs_collect_slot(v, s);
	ev->left = vpmu_pvs_left(v, ev);
	vpmu_pvs_fold(v, ev);
	sl->event = 0;
	sl->used = false;
	sl->touched = true;
	v->n_used--;
	pvs_clock(v);
	ev->vcpu = 0;
	if (ev->loss || ev->throttled)
		ev->generation++;
	if (ev->loss) {
		ev->loss = VPMU_LOSS_NONE;
		pvs_trace_loss(v, s, ev);
	}
	ev->throttled = false;
	pvs_trace(v, VPMU_TRACE_PV_DISABLE, s, ev->abi, ev->id, ev->count);
	v->dirty &= ~PVS_BIT(s);
	v->fresh &= ~PVS_BIT(s);
	v->news &= ~PVS_BIT(s);
	if (ev->abi == VPMU_PV_ABI_1)
		vpmu_pvs_write_1(v, ev, 0);
	else
		pvs_write_2(v, s, ev, false);
}

static bool pvs_is_member(struct vpmu_pv_vm *vm, const struct pv_event *ev,
			  const struct pv_event *leader)
{
	return ev && vpmu_pve_leader(vm, ev) == leader;
}

bool vpmu_pvs_leads(struct vpmu_pv *v, const struct pv_event *ev)
{
	unsigned int s;

	for (s = 0; s < v->vm->n_slots; s++)
		if (pvs_is_member(v->vm, pvs_attached(v, s), ev))
			return true;
	return false;
}

void vpmu_pvs_disable(struct vpmu_pv *v, struct pv_event *ev)
{
	unsigned int s;

	for (s = 0; s < v->vm->n_slots; s++)
		if (pvs_is_member(v->vm, pvs_attached(v, s), ev))
			pvs_detach_one(v, pvs_attached(v, s));
	pvs_detach_one(v, ev);
}

void vpmu_pvs_disable_all(struct vpmu_pv *v, uint32_t abi)
{
	struct pv_event *ev;
	unsigned int s;

	for (s = 0; s < v->vm->n_slots; s++) {
		ev = pvs_attached(v, s);
		if (ev && ev->abi & abi)
			vpmu_pvs_disable(v, ev);
	}
}

/* The slot where it was, else an empty one, else any. */
int vpmu_pvs_choose(struct vpmu_pv *v, const struct pv_event *ev)
{
	uint32_t index = pv_index(v->vm, ev);
	int empty = -1, any = -1;
	unsigned int s;

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

struct pv_pages vpmu_pvs_forget(struct vpmu_pv *whose)
{
	struct pv_pages had = whose->page;

	memset(&whose->page, 0, sizeof(whose->page));
	whose->page_gpa = 0;
	whose->branches_gpa = 0;
	whose->vector = 0;
	return had;
}

/* L */
static void pvs_clear_page(struct vpmu_pv *v, uint32_t *page)
{
	if (!page)
		return;
	memset(page, 0, PV_PAGE);
	vpmu_pvs_dirtied(v, page, PV_PAGE);
}

int vpmu_pvs_page(struct vpmu_pv *v, uint64_t gpa, uint64_t branches, uint8_t vector)
{
	struct pv_pages pages, old;
	unsigned int s;

	if (!vpmu_pvs_map(v, gpa, branches, &pages))
		return -VPMU_PV_EADDRNOTAVAIL;
	pv_lock(v);
	vpmu_pvs_disable_all(v, VPMU_PV_ABI_2);
	old = vpmu_pvs_forget(v);
	v->page = pages;
	v->page_gpa = gpa;
	v->branches_gpa = branches;
	v->vector = gpa ? vector : 0;
	v->over = 0;
	v->lbr.seq = 0;
	for (s = 0; s < VPMU_PV_SLOTS; s++)
		v->slot[s].seq = 0;
	pvs_clear_page(v, pages.branches);
	pvs_clear_page(v, pages.slots);
	if (gpa) {
		pages.slots[PVS_WORD(version)] = VPMU_PV_VERSION;
		pages.slots[PVS_WORD(n_slots)] = v->vm->n_slots;
		vpmu_pvs_dirtied(v, pages.slots, 8);
	}
	pv_unlock(v);
	vpmu_pvs_unmap(v, &old);
	return 0;
}

/* Second halves */

void vpmu_pv_service(struct vpmu_pv *v)
{
	if (!(vpmu_atomic_read(&v->pending[0]) | vpmu_atomic_read(&v->pending[1]) |
	      vpmu_atomic_read(&v->changed[0]) | vpmu_atomic_read(&v->changed[1]) |
	      vpmu_atomic_read(&v->detached)))
		return;
	vpmu_pvs_begin(v);
	vpmu_pvs_end(v);
}

/* One slot at the end of a slice; @idle: those to be given back. L */
static bool pvs_slice_slot(struct vpmu_pv *v, unsigned int s, uint64_t *idle)
{
	struct pv_slot *sl = &v->slot[s];
	struct pv_event *ev = pvs_attached(v, s);
	bool touched = sl->touched;

	sl->n_over = 0;
	sl->touched = false;
	if (ev) {
		if (ev->throttled)
			pvs_throttle(v, ev, false);
		return sl->samples;
	}
	if (sl->made && !sl->used && !touched) {
		*idle |= PVS_BIT(s);
		return false;
	}
	return sl->made;
}

bool vpmu_pv_slice(struct vpmu_pv *v)
{
	uint64_t idle = 0;
	bool again = false;
	unsigned int s;

	vpmu_pvs_begin(v);
	pv_lock(v);
	for (s = 0; s < v->vm->n_slots; s++)
		again |= pvs_slice_slot(v, s, &idle);
	pv_unlock(v);
	for (s = 0; idle >> s; s++)
		if (idle >> s & 1)
			pvs_release(v, s);
	vpmu_pvs_end(v);
	return again;
}
