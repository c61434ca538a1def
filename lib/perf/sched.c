// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The scheduler: which events count on a CPU. It makes a plan from the events that stay and
 * from the lists that are to be scheduled again, then changes only the differences: an event
 * that keeps its counter is not touched.
 *
 * Source: facts of Linux's kernel/events/core.c, by function: ctx_resched (what an
 * enable reschedules), merge_sched_in and group_can_go_on (one list),
 * perf_event_context_sched_in (switches), perf_rotate_context (the timer),
 * perf_load_guest_context (mediated).
 */
#include "perf_internal.h"

/* For each class, the classes that an enable of one of its events schedules again. */
static const uint8_t sched_reach[VPMU_PERF_CLASSES] = {
	[VPMU_CPU_PINNED] = PERF_CLASSES_ALL,
	[VPMU_TASK_PINNED] = PERF_CLASSES_ALL & ~PERF_CLASS_BIT(VPMU_CPU_PINNED),
	[VPMU_CPU_FLEXIBLE] = PERF_CLASS_BIT(VPMU_CPU_FLEXIBLE) |
			      PERF_CLASS_BIT(VPMU_TASK_FLEXIBLE),
	[VPMU_TASK_FLEXIBLE] = PERF_CLASS_BIT(VPMU_TASK_FLEXIBLE),
};

/* Is the event meant for this CPU, and for the guest or host that runs on it? */
static bool sched_matches(const struct vpmu_perf_cpu *cpu, const struct vpmu_perf_event *ev)
{
	if (ev->ctx->task && ev->attr.cpu >= 0 && (uint32_t)ev->attr.cpu != cpu->number)
		return false;
	return !perf_mediated(cpu) || perf_of_guest(ev) == cpu->guest;
}

/* Does an event that has its counter count in the CPU's mode? */
static bool sched_counts(const struct vpmu_perf_cpu *cpu, const struct vpmu_perf_event *ev)
{
	return cpu->guest ? !ev->attr.exclude_guest : !ev->attr.exclude_host;
}

static void sched_trace(struct vpmu_perf_cpu *cpu, unsigned int type,
			struct vpmu_perf_event *ev, unsigned int slot)
{
	if (!cpu->ops.trace)
		return;
	vpmu_trace(&cpu->ops, cpu->ops_ctx, type, slot,
		   perf_of_guest(ev) ? VPMU_TRACE_GUEST : VPMU_TRACE_HOST, ev->attr.id,
		   vpmu_perf_count(ev));
}

/* Call the owner when the event stops counting, and when it counts again. */
static void sched_tell(struct vpmu_perf_event *ev)
{
	bool missed = ev->state != VPMU_EVENT_ACTIVE;

	if (!missed && !ev->missed)
		return;
	ev->missed = missed;
	if (ev->head.changed)
		ev->head.changed(&ev->head);
}

/* Lists */

static bool plan_has_exclusive(const struct vpmu_perf_set *plan)
{
	return plan->n_events && plan->event[0]->leader->attr.exclusive;
}

static bool plan_group(struct vpmu_perf_cpu *cpu, struct vpmu_perf_event *leader)
{
	struct vpmu_perf_set *plan = &cpu->plan;
	const struct vpmu_model *model = cpu->system->model;
	struct vpmu_perf_event *ev;

	if (plan_has_exclusive(plan) || (leader->attr.exclusive && plan->n_events))
		return false;
	if (leader->sibling)
		cpu->undo = *plan;
	perf_for_each_member(ev, leader) {
		if (!perf_runnable(ev))
			continue;
		if (!vpmu_set_add(plan, ev, model))
			break;
		ev->planned = true;
	}
	if (!ev)
		return true;
	if (!leader->sibling)
		return false;
	*plan = cpu->undo;
	perf_for_each_member(ev, leader)
		ev->planned = false;
	return false;
}

/* Only an enable ends the error. */
static void sched_fail(struct vpmu_perf_cpu *cpu, struct vpmu_perf_event *leader)
{
	vpmu_event_set_state(leader, VPMU_EVENT_ERROR);
	vpmu_event_queue(leader);
	cpu->failed = true;
	sched_tell(leader);
}

/*
 * After a group that does not fit no other one of the list is tried: pinned groups all go to
 * ERROR then, flexible ones wait for their turn.
 */
static void plan_list(struct vpmu_perf_cpu *cpu, struct vpmu_perf_context *ctx, bool pinned)
{
	struct vpmu_perf_event *ev, *next;
	bool can_add = true;

	for (ev = vpmu_groups_first(&ctx->groups[pinned]); ev; ev = next) {
		next = vpmu_groups_next(ev);
		if (!sched_matches(cpu, ev))
			continue;
		if (can_add && plan_group(cpu, ev))
			continue;
		can_add = false;
		if (!pinned) {
			ctx->rotate = true;
			return;
		}
		sched_fail(cpu, ev);
	}
}

/* Plans */

void vpmu_sched_evict(struct vpmu_perf_event *ev)
{
	struct vpmu_perf_cpu *cpu = ev->ctx->cpu;
	unsigned int slot = (unsigned int)ev->slot;
	uint64_t classes[VPMU_TOPDOWN];

	if (!cpu || ev->slot < 0 || cpu->held[slot] != ev)
		return;
	ev->base += vpmu_silicon_read(&cpu->silicon, slot);
	vpmu_perf_topdown(ev, classes);
	memcpy(ev->topdown, classes, sizeof(classes));
	ev->left = vpmu_silicon_left(&cpu->silicon, slot);
	vpmu_silicon_free(&cpu->silicon, slot);
	cpu->held[slot] = NULL;
}

/* Configure the counter for @ev, which goes on where it left its last counter. */
static void sched_take(struct vpmu_perf_cpu *cpu, unsigned int slot,
		       struct vpmu_perf_event *ev)
{
	if (cpu->held[slot] == ev)
		return;
	if (cpu->held[slot])
		vpmu_sched_evict(cpu->held[slot]);
	vpmu_sched_evict(ev);
	vpmu_silicon_configure(&cpu->silicon, slot, &ev->recipe);
	if (ev->left != VPMU_NEVER)
		vpmu_silicon_arm(&cpu->silicon, slot, ev->left, ev->attr.event.period);
	cpu->held[slot] = ev;
	ev->slot = (int8_t)slot;
}

static void sched_release(struct vpmu_perf_cpu *cpu, unsigned int slot)
{
	vpmu_silicon_stop(&cpu->silicon, slot);
	sched_trace(cpu, VPMU_TRACE_RELEASE, cpu->active.slot[slot], slot);
}

/* Start and stop counters for the CPU's mode, guest or host. */
static void sched_mode(struct vpmu_perf_cpu *cpu)
{
	const struct vpmu_perf_event *ev;
	unsigned int i;

	for (i = 0; i < VPMU_SLOTS_MAX; i++) {
		ev = cpu->active.slot[i];
		if (!ev)
			continue;
		if (sched_counts(cpu, ev))
			vpmu_silicon_start(&cpu->silicon, i);
		else
			vpmu_silicon_stop(&cpu->silicon, i);
	}
}

static void plan_apply(struct vpmu_perf_cpu *cpu)
{
	struct vpmu_perf_set *old = &cpu->active, *plan = &cpu->plan;
	struct vpmu_perf_event *ev;
	unsigned int i;

	for (i = 0; i < VPMU_SLOTS_MAX; i++)
		if (old->slot[i] && old->slot[i] != plan->slot[i])
			sched_release(cpu, i);
	for (i = 0; i < old->n_events; i++) {
		ev = old->event[i];
		if (ev->planned)
			continue;
		if (ev->state == VPMU_EVENT_ACTIVE)
			vpmu_event_set_state(ev, VPMU_EVENT_INACTIVE);
		/* A guest that has been left has lost nothing. */
		if (!perf_of_guest(ev) || sched_matches(cpu, ev))
			sched_tell(ev);
	}
	for (i = 0; i < VPMU_SLOTS_MAX; i++) {
		ev = plan->slot[i];
		if (!ev || old->slot[i] == ev)
			continue;
		sched_take(cpu, i, ev);
		sched_trace(cpu, VPMU_TRACE_ASSIGN, ev, i);
	}
	for (i = 0; i < plan->n_events; i++) {
		ev = plan->event[i];
		ev->planned = false;
		if (ev->state == VPMU_EVENT_ACTIVE)
			continue;
		vpmu_event_set_state(ev, VPMU_EVENT_ACTIVE);
		sched_tell(ev);
	}
	*old = *plan;
	sched_mode(cpu);
}

/* Schedule the classes in @out again; the others keep their counters. */
static void sched_run(struct vpmu_perf_cpu *cpu, uint32_t out)
{
	struct vpmu_perf_task *task = cpu->task;
	struct vpmu_perf_event *ev;
	unsigned int i;

	memset(&cpu->plan, 0, sizeof(cpu->plan));
	for (i = 0; i < cpu->active.n_events; i++) {
		ev = cpu->active.event[i];
		if (out & PERF_CLASS_BIT(vpmu_perf_class(ev)))
			continue;
		vpmu_set_keep(&cpu->plan, ev);
		ev->planned = true;
	}
	if (out & PERF_CLASS_BIT(VPMU_CPU_FLEXIBLE))
		cpu->ctx.rotate = false;
	if (task && out & PERF_CLASS_BIT(VPMU_TASK_FLEXIBLE))
		task->ctx.rotate = false;
	if (out & PERF_CLASS_BIT(VPMU_CPU_PINNED))
		plan_list(cpu, &cpu->ctx, true);
	if (task && out & PERF_CLASS_BIT(VPMU_TASK_PINNED))
		plan_list(cpu, &task->ctx, true);
	if (out & PERF_CLASS_BIT(VPMU_CPU_FLEXIBLE))
		plan_list(cpu, &cpu->ctx, false);
	if (task && out & PERF_CLASS_BIT(VPMU_TASK_FLEXIBLE))
		plan_list(cpu, &task->ctx, false);
	plan_apply(cpu);
}

void vpmu_sched_enabled(struct vpmu_perf_event *ev)
{
	struct vpmu_perf_cpu *cpu = ev->ctx->cpu;

	if (cpu)
		cpu->resched |= sched_reach[vpmu_perf_class(ev)];
}

void vpmu_sched_all(struct vpmu_perf_cpu *cpu)
{
	cpu->resched = PERF_CLASSES_ALL;
}

static void sched_stop_one(struct vpmu_perf_cpu *cpu, struct vpmu_perf_event *ev)
{
	if (ev->state != VPMU_EVENT_ACTIVE)
		return;
	if (ev->allowed)
		sched_release(cpu, (unsigned int)ev->slot);
	vpmu_set_remove(&cpu->active, ev);
	vpmu_event_set_state(ev, VPMU_EVENT_INACTIVE);
}

void vpmu_sched_stop(struct vpmu_perf_event *ev)
{
	struct vpmu_perf_cpu *cpu = ev->ctx->cpu;
	struct vpmu_perf_event *member;

	if (!cpu)
		return;
	if (ev->leader != ev) {
		sched_stop_one(cpu, ev);
		return;
	}
	perf_for_each_member(member, ev)
		sched_stop_one(cpu, member);
}

/* Time */

void vpmu_sched_hold(struct vpmu_perf_cpu *cpu)
{
	const struct vpmu_perf_task *task = cpu->task;
	bool hold = cpu->ctx.n_timed;

	if (task)
		hold |= task->ctx.n_timed || (task->vcpu && task->vcpu->hold);
	vpmu_silicon_hold_clock(&cpu->silicon, hold);
	if (!hold)
		cpu->timer = false; /* it has stopped with the clock */
}

static void sched_timer(struct vpmu_perf_cpu *cpu)
{
	bool rotate = cpu->ctx.rotate || (cpu->task && cpu->task->ctx.rotate);

	if (!rotate || cpu->timer || !cpu->system->mux_cycles ||
	    !cpu->silicon.slot[VPMU_SLOT_CLOCK].used)
		return;
	cpu->timer = true;
	vpmu_silicon_timer(&cpu->silicon, cpu->system->mux_cycles);
}

/* The first flexible group that counts, to be moved to the end; clears ctx->rotate. */
static struct vpmu_perf_event *rotate_whom(const struct vpmu_perf_cpu *cpu,
					   struct vpmu_perf_context *ctx)
{
	struct vpmu_perf_event *ev, *waits = NULL;

	ctx->rotate = false;
	for (ev = vpmu_groups_first(&ctx->groups[false]); ev; ev = vpmu_groups_next(ev)) {
		if (!sched_matches(cpu, ev))
			continue;
		if (ev->state == VPMU_EVENT_ACTIVE)
			return ev;
		if (!waits)
			waits = ev;
	}
	return waits;
}

static void rotate_to_end(struct vpmu_perf_event *leader)
{
	struct vpmu_perf_groups *groups = &leader->ctx->groups[false];

	vpmu_groups_remove(groups, leader);
	leader->index = leader->ctx->next_index++;
	vpmu_groups_insert(groups, leader);
}

static bool sched_rotate(struct vpmu_perf_cpu *cpu)
{
	struct vpmu_perf_event *of_cpu = NULL, *of_task = NULL;

	if (cpu->ctx.rotate)
		of_cpu = rotate_whom(cpu, &cpu->ctx);
	if (cpu->task && cpu->task->ctx.rotate)
		of_task = rotate_whom(cpu, &cpu->task->ctx);
	if (of_cpu) {
		rotate_to_end(of_cpu);
		cpu->resched |= PERF_CLASS_BIT(VPMU_CPU_FLEXIBLE);
	}
	if (of_task)
		rotate_to_end(of_task);
	if (of_cpu || of_task)
		cpu->resched |= PERF_CLASS_BIT(VPMU_TASK_FLEXIBLE);
	return of_cpu || of_task;
}

void vpmu_perf_service(struct vpmu_perf_cpu *cpu)
{
	if (!vpmu_atomic_take(&cpu->tick))
		return;
	vpmu_perf_begin(cpu);
	cpu->timer = false;
	if (sched_rotate(cpu)) {
		vpmu_trace(&cpu->ops, cpu->ops_ctx, VPMU_TRACE_ROTATE, 0, 0, 0, 0);
		cpu->timer = true;
		vpmu_silicon_timer(&cpu->silicon, cpu->system->mux_cycles);
	}
	(void)vpmu_perf_commit(cpu);
}

/* Batches */

void vpmu_perf_begin(struct vpmu_perf_cpu *cpu)
{
	vpmu_silicon_begin(&cpu->silicon);
	if (!cpu->batch++)
		cpu->failed = false;
}

int vpmu_perf_commit(struct vpmu_perf_cpu *cpu)
{
	uint32_t out = cpu->resched;

	if (cpu->batch == 1) {
		cpu->resched = 0;
		if (out)
			sched_run(cpu, out);
		vpmu_sched_hold(cpu);
		sched_timer(cpu);
	}
	cpu->batch--;
	vpmu_silicon_commit(&cpu->silicon);
	return cpu->failed ? -VPMU_EBUSY : 0;
}

/* Switches */

void vpmu_perf_sched_in(struct vpmu_perf_cpu *cpu, struct vpmu_perf_task *task)
{
	struct vpmu_perf_context *ctx = &task->ctx;

	vpmu_perf_begin(cpu);
	cpu->task = task;
	ctx->cpu = cpu;
	ctx->stamp = vpmu_silicon_clock(&cpu->silicon);
	cpu->resched |= PERF_CLASS_BIT(VPMU_TASK_PINNED) | PERF_CLASS_BIT(VPMU_TASK_FLEXIBLE);
	if (ctx->groups[true].n_all)
		cpu->resched |= PERF_CLASS_BIT(VPMU_CPU_FLEXIBLE);
	(void)vpmu_perf_commit(cpu);
}

void vpmu_perf_sched_out(struct vpmu_perf_cpu *cpu)
{
	struct vpmu_perf_task *task = cpu->task;
	struct vpmu_perf_event *ev;
	unsigned int i;

	if (!task)
		return;
	vpmu_perf_guest(cpu, false);
	vpmu_perf_begin(cpu);
	for (i = cpu->active.n_events; i-- > 0;) {
		ev = cpu->active.event[i];
		if (ev->ctx == &task->ctx)
			sched_stop_one(cpu, ev);
	}
	for (i = 0; i < VPMU_SLOTS_MAX; i++)
		if (cpu->held[i] && cpu->held[i]->ctx == &task->ctx)
			vpmu_sched_evict(cpu->held[i]);
	task->ctx.time = vpmu_context_time(&task->ctx);
	task->ctx.rotate = false;
	task->ctx.cpu = NULL;
	cpu->task = NULL;
	(void)vpmu_perf_commit(cpu);
}

/* All events of the host exclude a mediated guest, and so does their time. */
static void sched_freeze(struct vpmu_perf_cpu *cpu, struct vpmu_perf_context *ctx, bool freeze)
{
	ctx->time = vpmu_context_time(ctx);
	ctx->stamp = vpmu_silicon_clock(&cpu->silicon);
	ctx->frozen = freeze;
}

void vpmu_perf_guest(struct vpmu_perf_cpu *cpu, bool entered)
{
	struct vpmu_vcpu *vcpu = cpu->task ? cpu->task->vcpu : NULL;

	if (cpu->guest == entered)
		return;
	vpmu_perf_begin(cpu);
	if (vcpu) {
		vcpu->time = vpmu_vcpu_time(vcpu);
		vcpu->stamp = vpmu_silicon_clock(&cpu->silicon);
	}
	cpu->guest = entered;
	if (perf_mediated(cpu)) {
		sched_freeze(cpu, &cpu->ctx, entered);
		sched_freeze(cpu, &cpu->task->ctx, entered);
		vpmu_sched_all(cpu);
	} else {
		sched_mode(cpu);
	}
	(void)vpmu_perf_commit(cpu);
}

/* Queries */

const struct vpmu_perf_event *vpmu_perf_owner(const struct vpmu_perf_cpu *cpu,
					      unsigned int slot)
{
	return cpu->active.slot[slot];
}

const struct vpmu_perf_event *vpmu_perf_shared_owner(const struct vpmu_perf_cpu *cpu,
						     enum vpmu_shared shared)
{
	const struct vpmu_perf_set *set = &cpu->active;
	unsigned int i;

	for (i = 0; i < set->n_events; i++)
		if (set->event[i]->attr.event.shared == shared)
			return set->event[i];
	return NULL;
}

static void sched_overflow(void *owner, unsigned int slot)
{
	struct vpmu_perf_cpu *cpu = owner;
	struct vpmu_perf_event *ev;

	if (slot == VPMU_SLOT_CLOCK) {
		vpmu_atomic_or(&cpu->tick, 1u);
		if (cpu->ops.kick)
			cpu->ops.kick(cpu->ops_ctx);
		return;
	}
	ev = cpu->held[slot];
	if (!ev)
		return;
	ev->overflows++;
	if (ev->head.overflowed)
		ev->head.overflowed(&ev->head);
}

int vpmu_perf_cpu_init(struct vpmu_perf_cpu *cpu, struct vpmu_perf_system *sys,
		       uint32_t number, const struct vpmu_ops *ops, void *ctx)
{
	struct vpmu_silicon_config silicon;
	int ret;

	memset(cpu, 0, sizeof(*cpu));
	memset(&silicon, 0, sizeof(silicon));
	silicon.size = sizeof(silicon);
	silicon.model = sys->model;
	silicon.supplied = sys->supplied;
	silicon.ops = ops;
	silicon.ctx = ctx;
	silicon.overflow = sched_overflow;
	silicon.owner = cpu;
	cpu->system = sys;
	cpu->ops_ctx = ctx;
	cpu->number = number;
	cpu->ctx.cpu = cpu;
	ret = vpmu_silicon_init(&cpu->silicon, &silicon);
	if (!ret)
		vpmu_ops_copy(&cpu->ops, ops);
	return ret;
}
