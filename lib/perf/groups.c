// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Groups by age: a binary search tree that is a heap by a hash of the key (a
 * treap), so that it is balanced whatever the order of insertions.
 */
#include "perf_internal.h"

static uint64_t group_weight(const struct vpmu_perf_event *ev)
{
	uint64_t h = (ev->index + 1) * 0x9e3779b97f4a7c15ull;

	return h ^ h >> 29;
}

static unsigned int group_side(const struct vpmu_perf_event *ev)
{
	return ev->up->child[1] == ev;
}

static void group_link(struct vpmu_perf_groups *g, struct vpmu_perf_event *up,
		       unsigned int side, struct vpmu_perf_event *ev)
{
	if (up)
		up->child[side] = ev;
	else
		g->root = ev;
	if (ev)
		ev->up = up;
}

/* @ev takes the place of the node above it, which becomes its child. */
static void group_rotate_up(struct vpmu_perf_groups *g, struct vpmu_perf_event *ev)
{
	struct vpmu_perf_event *up = ev->up, *top = up->up;
	unsigned int side = group_side(ev);
	unsigned int top_side = top ? group_side(up) : 0;

	group_link(g, up, side, ev->child[!side]);
	group_link(g, ev, !side, up);
	group_link(g, top, top_side, ev);
}

void vpmu_groups_insert(struct vpmu_perf_groups *g, struct vpmu_perf_event *leader)
{
	struct vpmu_perf_event *up = NULL, *at = g->root;
	unsigned int side = 0;

	while (at) {
		up = at;
		side = leader->index > at->index;
		at = at->child[side];
	}
	leader->child[0] = NULL;
	leader->child[1] = NULL;
	group_link(g, up, side, leader);
	while (leader->up && group_weight(leader) > group_weight(leader->up))
		group_rotate_up(g, leader);
	leader->queued = true;
}

void vpmu_groups_remove(struct vpmu_perf_groups *g, struct vpmu_perf_event *leader)
{
	struct vpmu_perf_event **child = leader->child;

	while (child[0] && child[1])
		group_rotate_up(g, group_weight(child[0]) > group_weight(child[1])
					   ? child[0] : child[1]);
	group_link(g, leader->up, leader->up ? group_side(leader) : 0,
		   child[0] ? child[0] : child[1]);
	leader->queued = false;
}

static struct vpmu_perf_event *group_outermost(struct vpmu_perf_event *ev)
{
	while (ev && ev->child[0])
		ev = ev->child[0];
	return ev;
}

struct vpmu_perf_event *vpmu_groups_first(const struct vpmu_perf_groups *g)
{
	return group_outermost(g->root);
}

struct vpmu_perf_event *vpmu_groups_next(const struct vpmu_perf_event *leader)
{
	if (leader->child[1])
		return group_outermost(leader->child[1]);
	while (leader->up && group_side(leader))
		leader = leader->up;
	return leader->up;
}
