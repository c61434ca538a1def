// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The event of the provider that counts for a slot.
 *
 * When the guest's event is disabled, the provider's is parked: it stays, and is used again when
 * the same event is enabled there. One that was parked for a whole slice is released.
 */
#include "pv_counter.h"
#include "pv_event.h"

/* Never, in practice: farther than a guest may ask for, and in range for any host. */
#define PV_FAR		((uint64_t)1 << 62)

#define PV_LATE_MAX	64 /* overflows that one service can find to be overdue */

/* First halves: from anywhere. */

static void pv_counter_overflowed(struct vpmu_event *head)
{
	struct vpmu_pv *v = head->owner;

	vpmu_atomic_add(&v->slot[head->index].hits, 1u);
	/* Pairs with vpmu_atomic_take() in pv_slot_take(): the hit is visible before the bit. */
	vpmu_atomic_fence();
	vpmu_atomic_or(&v->pending[head->index / 32], 1u << head->index % 32);
	v->ops.kick(v->ctx);
}

static void pv_counter_state_changed(struct vpmu_event *head)
{
	struct vpmu_pv *v = head->owner;

	vpmu_atomic_or(&v->changed[head->index / 32], 1u << head->index % 32);
	v->ops.kick(v->ctx);
}

/* Numbers */

/* Times only grow: a clock that has gone back counts as one that has stood still. */
void vpmu_pv_counter_clock(struct vpmu_pv *v)
{
	uint64_t clock;

	if (!v->clock)
		return;
	clock = v->clock(v->provider, v->n_used != 0);
	if ((int64_t)(clock - v->last_clock) > 0)
		v->now += clock - v->last_clock;
	v->last_clock = clock;
}

void vpmu_pv_counter_fold(struct vpmu_pv *v, struct pv_event *ev)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	struct vpmu_event *own = pv_slot_event(v, ev->slot);
	uint64_t count, running;

	pv_assert_locked(v);
	vpmu_pv_counter_clock(v);
	ev->enabled += v->now - ev->stamp;
	if (sl->runs)
		ev->running += v->now - ev->stamp;
	ev->stamp = v->now;
	if (!sl->made)
		return;
	count = pv_ops(v)->read(own);
	ev->count += count - sl->base;
	sl->base = count;
	if (!v->clock || !v->running)
		return;
	running = v->running(own);
	if (running > sl->run_base)
		ev->running += running - sl->run_base;
	sl->run_base = running;
}

uint64_t vpmu_pv_counter_left(struct vpmu_pv *v, const struct pv_event *ev)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	uint64_t count;

	pv_assert_locked(v);
	if (!sl->made)
		return ev->left;
	if (!sl->next)
		return 0;
	count = pv_ops(v)->read(pv_slot_event(v, ev->slot));
	return count < sl->next ? sl->next - count : 1;
}

/*
 * The number of overflows that @hits of the provider stand for at @count, and the place of
 * the next one in @next. An event that was made with another period has had only its first
 * overflow from the provider; the places of the others follow from its own period.
 */
static uint32_t pv_counter_passed(const struct pv_slot *sl, const struct pv_event *ev,
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
	for (; *next <= count && n < PV_LATE_MAX; n++)
		*next += ev->period;
	if (*next <= count)
		*next = count + ev->period;
	return n;
}

uint32_t vpmu_pv_counter_advance(struct vpmu_pv *v, struct pv_event *ev, uint32_t hits)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	struct vpmu_event *own = pv_slot_event(v, ev->slot);
	uint64_t count = pv_ops(v)->read(own), next;
	uint32_t n = pv_counter_passed(sl, ev, hits, count, &next);

	pv_assert_locked(v);
	sl->next = next;
	if (ev->period != sl->period)
		pv_ops(v)->arm(own, sl->next ? sl->next - count : PV_FAR);
	return n;
}

bool vpmu_pv_counter_overflows(const struct pv_slot *sl, const struct pv_event *ev, uint32_t hits)
{
	return hits && ev && sl->made && sl->next;
}

uint32_t vpmu_pv_counter_late(struct vpmu_pv *v, const struct pv_event *ev, uint64_t *left)
{
	struct pv_slot *sl = &v->slot[ev->slot];
	uint32_t hits = vpmu_atomic_read(&sl->hits), n;
	uint64_t count, next;

	pv_assert_locked(v);
	*left = vpmu_pv_counter_left(v, ev);
	if (!vpmu_pv_counter_overflows(sl, ev, hits))
		return sl->late;
	count = pv_ops(v)->read(pv_slot_event(v, ev->slot));
	n = pv_counter_passed(sl, ev, hits, count, &next);
	*left = 0;
	if (next)
		*left = next > count ? next - count : 1;
	return sl->late + n;
}

/* Made and released */

void vpmu_pv_counter_release(struct vpmu_pv *v, unsigned int s)
{
	v->slot[s].made = false;
	pv_ops(v)->release(pv_slot_event(v, s));
}

void vpmu_pv_counter_release_parked(struct vpmu_pv *v)
{
	unsigned int s;

	for (s = 0; s < v->vm->n_slots; s++)
		if (v->slot[s].made && !v->slot[s].used)
			vpmu_pv_counter_release(v, s);
}

static uint64_t pv_counter_leader_make(const struct vpmu_pv *v, const struct pv_counter_job *job)
{
	return job->leader < 0 ? 0 : v->slot[job->leader].make;
}

bool vpmu_pv_counter_made_for(const struct vpmu_pv *v, const struct pv_slot *sl,
			      const struct pv_counter_job *job)
{
	return sl->made && !job->refused && sl->index == job->index &&
	       sl->serial == job->serial && sl->samples == job->samples &&
	       sl->leader_make == pv_counter_leader_make(v, job);
}

static int pv_counter_create(struct vpmu_pv *v, unsigned int s, const struct pv_counter_job *job)
{
	struct vpmu_event *own = pv_slot_event(v, s);
	struct vpmu_event_attr attr;

	vpmu_pv_event_attr(&job->what, &attr);
	attr.period = job->samples ? job->period : 0;
	if (job->leader >= 0)
		attr.leader = pv_slot_event(v, (unsigned int)job->leader);
	memset(own, 0, sizeof(*own));
	own->overflowed = pv_counter_overflowed;
	own->changed = pv_counter_state_changed;
	own->owner = v;
	own->index = s;
	return pv_ops(v)->create(v->provider, own, &attr);
}

/* Parked events may have the counter that this one needs; they are made again on ENABLE. */
void vpmu_pv_counter_make(struct vpmu_pv *v, unsigned int s, const struct pv_counter_job *job)
{
	struct pv_slot *sl = &v->slot[s];
	int ret;

	if (sl->made)
		vpmu_pv_counter_release(v, s);
	sl->why = job->refused ? job->refused : VPMU_LOSS_LOST;
	if (job->refused || (job->leader >= 0 && !v->slot[job->leader].made))
		return;
	ret = pv_counter_create(v, s, job);
	if (ret == -VPMU_EBUSY) {
		vpmu_pv_counter_release_parked(v);
		ret = pv_counter_create(v, s, job);
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
	sl->leader_make = pv_counter_leader_make(v, job);
	sl->base = 0;
	sl->run_base = 0;
	sl->next = 0;
}
