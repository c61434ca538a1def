// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The life of an event: open, enable, disable, close. */
#include "perf_internal.h"

void vpmu_perf_system_init(struct vpmu_perf_system *sys, const struct vpmu_model *model,
			   uint64_t supplied, uint64_t time_hz, uint64_t mux_cycles)
{
	memset(sys, 0, sizeof(*sys));
	sys->model = model;
	sys->supplied = supplied;
	sys->time_hz = time_hz;
	sys->mux_cycles = mux_cycles;
}

void vpmu_perf_task_init(struct vpmu_perf_task *task, struct vpmu_perf_system *sys)
{
	memset(task, 0, sizeof(*task));
	task->system = sys;
	task->ctx.task = true;
}

/* A batch, for a context that may be on no CPU. */
static void event_begin(const struct vpmu_perf_context *ctx)
{
	if (ctx->cpu)
		vpmu_perf_begin(ctx->cpu);
}

static void event_commit(const struct vpmu_perf_context *ctx)
{
	if (ctx->cpu)
		(void)vpmu_perf_commit(ctx->cpu);
}

/* Open and close */

/* Does @ev count what a guest does, for an owner outside of that guest? */
static bool counts_guests(const struct vpmu_perf_event *ev)
{
	return !perf_of_guest(ev) && !ev->attr.exclude_guest;
}

bool vpmu_guests_get(struct vpmu_perf_system *sys, int32_t who)
{
	int32_t guests = vpmu_atomic_read(&sys->guests);

	do {
		if (who > 0 ? guests < 0 : guests > 0)
			return false;
	} while (!vpmu_atomic_cas(&sys->guests, &guests, guests + who));
	return true;
}

void vpmu_guests_put(struct vpmu_perf_system *sys, int32_t who)
{
	int32_t guests = vpmu_atomic_read(&sys->guests);

	while (!vpmu_atomic_cas(&sys->guests, &guests, guests - who))
		;
}

static int event_resolve(struct vpmu_perf_event *ev, const struct vpmu_perf_system *sys)
{
	const struct vpmu_event_attr *attr = &ev->attr.event;
	int err;

	if (attr->shared >= VPMU_SHARED_COUNT || (attr->no_counter && !attr->shared))
		return -VPMU_EINVAL;
	if (attr->no_counter) {
		ev->head.quality = VPMU_QUALITY_EXACT;
		return 0;
	}
	err = vpmu_attr_resolve(sys->model, attr, sys->supplied, &ev->recipe);
	ev->head.quality = ev->recipe.quality;
	ev->allowed = vpmu_event_slots(sys->model, attr->select, attr->fixed);
	/* Only the counter of SLOTS feeds the metrics. */
	if (attr->shared == VPMU_SHARED_METRICS && ev->recipe.topdown)
		ev->allowed &= ~((1u << sys->model->n_gp) - 1);
	if (!err && !ev->allowed)
		err = -VPMU_ENOENT;
	return err;
}

/* Does the group of @leader, with @ev, fit on an empty PMU? */
static bool group_fits(const struct vpmu_perf_system *sys, struct vpmu_perf_event *leader,
		       struct vpmu_perf_event *ev)
{
	struct vpmu_perf_event *member;
	struct vpmu_perf_set set;

	memset(&set, 0, sizeof(set));
	if (leader)
		perf_for_each_member(member, leader)
			if (!vpmu_set_add(&set, member, sys->model))
				return false;
	return vpmu_set_add(&set, ev, sys->model);
}

static int event_check_leader(const struct vpmu_perf_event *leader,
			      const struct vpmu_perf_attr *attr,
			      const struct vpmu_perf_context *ctx)
{
	if (!leader)
		return 0;
	if (leader->ctx != ctx || leader->leader != leader ||
	    attr->event.pinned || attr->exclusive || attr->cpu != leader->attr.cpu)
		return -VPMU_EINVAL;
	return 0;
}

static void event_link(struct vpmu_perf_event *ev, struct vpmu_perf_event *leader)
{
	struct vpmu_perf_event *last;

	if (leader) {
		for (last = leader; last->sibling; last = last->sibling)
			;
		last->sibling = ev;
		ev->leader = leader;
		return;
	}
	ev->leader = ev;
	ev->index = ev->ctx->next_index++;
	ev->ctx->groups[ev->attr.event.pinned].n_all++;
}

/* Leaves the owner's fields of the head as they are. */
static void event_clear(struct vpmu_perf_event *ev, struct vpmu_provider *provider)
{
	struct vpmu_event head = ev->head;

	memset(ev, 0, sizeof(*ev));
	ev->head = head;
	ev->head.provider = provider;
	ev->slot = -1;
	ev->left = VPMU_NEVER;
}

int vpmu_event_open(struct vpmu_perf_event *ev, const struct vpmu_perf_attr *attr,
		    struct vpmu_perf_context *ctx, struct vpmu_perf_system *sys,
		    struct vpmu_provider *provider, int slot)
{
	/* An event's head is the first member of ours. */
	struct vpmu_perf_event *leader = (struct vpmu_perf_event *)attr->event.leader;
	int err;

	if (attr->size < sizeof(*attr) || attr->event.size < sizeof(attr->event))
		return -VPMU_EINVAL;
	event_clear(ev, provider);
	ev->attr = *attr;
	ev->ctx = ctx;
	err = event_resolve(ev, sys);
	if (!err)
		err = event_check_leader(leader, attr, ctx);
	if (err)
		return err;
	if (slot >= 0 && !attr->event.no_counter)
		ev->allowed = 1u << slot;
	if (!group_fits(sys, leader, ev))
		return -VPMU_EINVAL;
	if (counts_guests(ev) && !vpmu_guests_get(sys, PERF_COUNTS_GUESTS))
		return -VPMU_EOPNOTSUPP;
	event_begin(ctx);
	event_link(ev, leader);
	ev->stamp = vpmu_event_clock(ev);
	if (attr->event.period && !provider)
		ev->left = attr->event.period;
	if (!attr->disabled) {
		(void)vpmu_perf_enable(ev);
		/* Unlike an enable also if the leader waits: __perf_install_in_context */
		if (vpmu_perf_state(ev) != VPMU_EVENT_OFF)
			vpmu_sched_enabled(ev);
	}
	event_commit(ctx);
	return 0;
}

int vpmu_perf_open(struct vpmu_perf_event *ev, const struct vpmu_perf_attr *attr,
		   struct vpmu_perf_cpu *cpu, struct vpmu_perf_task *task)
{
	if (!cpu && !task)
		return -VPMU_EINVAL;
	return vpmu_event_open(ev, attr, task ? &task->ctx : &cpu->ctx,
			       task ? task->system : cpu->system, NULL, -1);
}

static void event_unlink(struct vpmu_perf_event *ev)
{
	struct vpmu_perf_event *at = ev->leader;

	while (at->sibling != ev)
		at = at->sibling;
	at->sibling = ev->sibling;
}

/* A group loses its leader: each sibling is one of its own, the youngest so far. */
static void event_disband(struct vpmu_perf_event *leader)
{
	struct vpmu_perf_event *ev, *next;

	if (leader->queued)
		vpmu_groups_remove(&leader->ctx->groups[leader->attr.event.pinned], leader);
	leader->ctx->groups[leader->attr.event.pinned].n_all--;
	for (ev = leader->sibling; ev; ev = next) {
		next = ev->sibling;
		vpmu_event_update_time(ev);
		ev->sibling = NULL;
		event_link(ev, NULL);
		vpmu_event_queue(ev);
	}
	leader->sibling = NULL;
}

static struct vpmu_perf_system *event_system(const struct vpmu_perf_event *ev)
{
	/* A task's context is the first member of the task. */
	if (ev->ctx->task)
		return ((struct vpmu_perf_task *)ev->ctx)->system;
	return ev->ctx->cpu->system;
}

void vpmu_perf_close(struct vpmu_perf_event *ev)
{
	const struct vpmu_perf_context *ctx = ev->ctx;

	event_begin(ctx);
	if (ev->leader == ev)
		event_disband(ev);
	else
		event_unlink(ev);
	vpmu_sched_stop(ev);
	vpmu_sched_evict(ev);
	vpmu_event_set_state(ev, VPMU_EVENT_OFF);
	event_commit(ctx);
	if (counts_guests(ev))
		vpmu_guests_put(event_system(ev), PERF_COUNTS_GUESTS);
}

/* Enable, disable, read */

static int enabled_result(const struct vpmu_perf_event *ev)
{
	return vpmu_perf_state(ev) == VPMU_EVENT_ERROR ? -VPMU_EBUSY : 0;
}

int vpmu_perf_enable(struct vpmu_perf_event *ev)
{
	if (perf_runnable(ev)) /* a sibling's leader may be in error */
		return enabled_result(ev);
	event_begin(ev->ctx);
	vpmu_event_set_state(ev, VPMU_EVENT_INACTIVE);
	if (!ev->leader->attr.event.pinned) {
		/* It may have to wait: its owner is called now, and again when it counts. */
		ev->missed = true;
		if (ev->head.changed)
			ev->head.changed(&ev->head);
	}
	if (ev->leader == ev)
		vpmu_event_queue(ev);
	if (ev->leader == ev || ev->leader->state == VPMU_EVENT_ACTIVE)
		vpmu_sched_enabled(ev);
	event_commit(ev->ctx);
	return enabled_result(ev);
}

void vpmu_perf_disable(struct vpmu_perf_event *ev)
{
	if (!perf_runnable(ev))
		return;
	event_begin(ev->ctx);
	vpmu_sched_stop(ev);
	vpmu_event_set_state(ev, VPMU_EVENT_OFF);
	ev->missed = false;
	if (ev->leader == ev)
		vpmu_event_queue(ev);
	event_commit(ev->ctx);
}

void vpmu_perf_arm(struct vpmu_perf_event *ev, uint64_t left)
{
	struct vpmu_perf_cpu *cpu = ev->ctx->cpu;

	if (!ev->attr.event.period)
		left = VPMU_NEVER;
	ev->left = left;
	if (cpu && ev->slot >= 0 && cpu->held[ev->slot] == ev)
		vpmu_silicon_arm(&cpu->silicon, (unsigned int)ev->slot, left,
				 ev->attr.event.period);
}

void vpmu_perf_read(struct vpmu_perf_event *ev, struct vpmu_perf_value *value)
{
	event_begin(ev->ctx);
	vpmu_event_update_time(ev);
	value->count = vpmu_perf_count(ev);
	value->enabled = ev->enabled;
	value->running = ev->running;
	value->overflows = ev->overflows;
	value->state = vpmu_perf_state(ev);
	event_commit(ev->ctx);
}
