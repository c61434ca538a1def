// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Which events fit together. Linux places events one by one, those with the fewest
 * counters first, and backtracks a little; here an event that finds no free
 * counter makes others move as far as it takes, so that it is refused only when
 * there is no assignment at all.
 */
#include "perf_internal.h"

/* The index in set->shared where a kind is free, or -1; NONE is always free. */
static int shared_place(const struct vpmu_perf_set *set, const struct vpmu_event_attr *attr)
{
	int at[2] = { attr->shared, attr->shared }, i;

	if (attr->shared == VPMU_SHARED_OFFCORE_RSP)
		at[1] = VPMU_SHARED_COUNT;
	for (i = 0; i < 2; i++)
		if (set->shared[at[i]].users && attr->extra != VPMU_SHARED_ALONE &&
		    set->shared[at[i]].extra == attr->extra)
			return at[i];
	for (i = 0; i < 2; i++)
		if (!set->shared[at[i]].users)
			return at[i];
	return -1;
}

static void shared_take(struct vpmu_perf_set *set, const struct vpmu_perf_event *ev, int at)
{
	if (!ev->attr.event.shared)
		return;
	set->shared[at].extra = ev->attr.event.extra;
	set->shared[at].users++;
}

static int lowest(uint32_t slots)
{
	int i = 0;

	while (!(slots >> i & 1))
		i++;
	return i;
}

static uint32_t slots_taken(const struct vpmu_perf_set *set)
{
	uint32_t taken = 0;
	unsigned int i;

	for (i = 0; i < VPMU_SLOTS_MAX; i++)
		if (set->slot[i])
			taken |= 1u << i;
	return taken;
}

/* A fixed counter first, then where it was, then any; of free ones. */
static int slot_choose(const struct vpmu_perf_event *ev, uint32_t free, uint32_t gp)
{
	uint32_t can = ev->allowed & free;

	if (can & ~gp)
		return lowest(can & ~gp);
	if (ev->slot >= 0 && can >> ev->slot & 1)
		return ev->slot;
	return can ? lowest(can) : -1;
}

/*
 * Search for a chain of moves that ends at a free counter: breadth first over
 * counters, each reached from the one whose event would move to it.
 */
static bool slot_augment(struct vpmu_perf_set *set, struct vpmu_perf_event *ev,
			 uint32_t free, uint32_t gp)
{
	int8_t from[VPMU_SLOTS_MAX];
	uint8_t queue[VPMU_SLOTS_MAX];
	uint32_t seen = 0, n = 0, next = 0;
	const struct vpmu_perf_event *mover = ev;
	int at = -1, to;

	for (;;) {
		uint32_t reach = mover->allowed & ~seen;

		seen |= reach;
		for (; reach; reach &= ~(1u << to)) {
			to = lowest(reach & ~gp ? reach & ~gp : reach);
			from[to] = (int8_t)at;
			if (free >> to & 1)
				goto found;
			queue[n++] = (uint8_t)to;
		}
		if (next == n)
			return false;
		at = queue[next++];
		mover = set->slot[at];
	}
found:
	for (; from[to] >= 0; to = from[to])
		set->slot[to] = set->slot[from[to]];
	set->slot[to] = ev;
	return true;
}

bool vpmu_set_add(struct vpmu_perf_set *set, struct vpmu_perf_event *ev,
		  const struct vpmu_model *model)
{
	uint32_t gp = (1u << model->n_gp) - 1, free = ~slots_taken(set);
	int shared = 0, slot;

	if (set->n_events == VPMU_PERF_ACTIVE_MAX)
		return false;
	if (ev->attr.event.shared)
		shared = shared_place(set, &ev->attr.event);
	if (shared < 0)
		return false;
	if (ev->allowed) {
		slot = slot_choose(ev, free, gp);
		if (slot >= 0)
			set->slot[slot] = ev;
		else if (!slot_augment(set, ev, free, gp))
			return false;
	}
	shared_take(set, ev, shared);
	set->event[set->n_events++] = ev;
	return true;
}

void vpmu_set_keep(struct vpmu_perf_set *set, struct vpmu_perf_event *ev)
{
	if (ev->allowed)
		set->slot[ev->slot] = ev;
	shared_take(set, ev, shared_place(set, &ev->attr.event));
	set->event[set->n_events++] = ev;
}

void vpmu_set_remove(struct vpmu_perf_set *set, struct vpmu_perf_event *ev)
{
	unsigned int i;

	for (i = 0; i < set->n_events && set->event[i] != ev; i++)
		;
	for (set->n_events--; i < set->n_events; i++)
		set->event[i] = set->event[i + 1];
	if (ev->allowed)
		set->slot[ev->slot] = NULL;
}
