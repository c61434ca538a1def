// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* An event as it is now: its class, state, time and count. Below the scheduler. */
#include "perf_internal.h"

enum vpmu_perf_class vpmu_perf_class(const struct vpmu_perf_event *ev)
{
	bool pinned = ev->leader->attr.event.pinned;

	if (ev->ctx->task)
		return pinned ? VPMU_TASK_PINNED : VPMU_TASK_FLEXIBLE;
	return pinned ? VPMU_CPU_PINNED : VPMU_CPU_FLEXIBLE;
}

enum vpmu_event_state vpmu_perf_state(const struct vpmu_perf_event *ev)
{
	return perf_runnable(ev->leader) ? ev->state : ev->leader->state;
}

uint64_t vpmu_context_time(const struct vpmu_perf_context *ctx)
{
	if (!ctx->cpu || ctx->frozen)
		return ctx->time;
	return ctx->time + vpmu_silicon_clock(&ctx->cpu->silicon) - ctx->stamp;
}

uint64_t vpmu_vcpu_time(const struct vpmu_vcpu *v)
{
	struct vpmu_perf_cpu *cpu = v->task.ctx.cpu;

	if (!cpu || !cpu->guest)
		return v->time;
	return v->time + vpmu_silicon_clock(&cpu->silicon) - v->stamp;
}

/* A guest's events live in its time; the host's in that of their context. */
uint64_t vpmu_event_clock(const struct vpmu_perf_event *ev)
{
	const struct vpmu_vcpu *vcpu;

	if (!perf_of_guest(ev))
		return vpmu_context_time(ev->ctx);
	vcpu = (const struct vpmu_vcpu *)ev->head.provider; /* its first member */
	return vpmu_vcpu_time(vcpu);
}

void vpmu_event_update_time(struct vpmu_perf_event *ev)
{
	enum vpmu_event_state state = vpmu_perf_state(ev);
	uint64_t now = vpmu_event_clock(ev), passed = now - ev->stamp;

	if (state == VPMU_EVENT_ACTIVE || state == VPMU_EVENT_INACTIVE)
		ev->enabled += passed;
	if (state == VPMU_EVENT_ACTIVE)
		ev->running += passed;
	ev->stamp = now;
}

/* A leader's state decides about its siblings' time too, so theirs is brought up first. */
void vpmu_event_set_state(struct vpmu_perf_event *ev, enum vpmu_event_state state)
{
	struct vpmu_perf_event *member;
	bool timed = perf_runnable(ev);

	if (ev->leader == ev)
		perf_for_each_member(member, ev)
			vpmu_event_update_time(member);
	else
		vpmu_event_update_time(ev);
	ev->state = (uint8_t)state;
	ev->ctx->n_timed += (uint32_t)perf_runnable(ev) - (uint32_t)timed;
}

void vpmu_event_queue(struct vpmu_perf_event *leader)
{
	struct vpmu_perf_groups *groups = &leader->ctx->groups[leader->attr.event.pinned];

	if (leader->queued == perf_runnable(leader))
		return;
	if (leader->queued)
		vpmu_groups_remove(groups, leader);
	else
		vpmu_groups_insert(groups, leader);
}

uint64_t vpmu_perf_count(struct vpmu_perf_event *ev)
{
	struct vpmu_perf_cpu *cpu = ev->ctx->cpu;

	if (!cpu || ev->slot < 0 || cpu->held[ev->slot] != ev)
		return ev->base;
	return ev->base + vpmu_silicon_read(&cpu->silicon, (unsigned int)ev->slot);
}

void vpmu_perf_topdown(struct vpmu_perf_event *ev, uint64_t *classes)
{
	struct vpmu_perf_cpu *cpu = ev->ctx->cpu;
	unsigned int i;

	memset(classes, 0, VPMU_TOPDOWN * sizeof(*classes));
	if (cpu && ev->slot >= 0 && cpu->held[ev->slot] == ev)
		vpmu_silicon_topdown(&cpu->silicon, (unsigned int)ev->slot, classes);
	for (i = 0; i < VPMU_TOPDOWN; i++)
		classes[i] += ev->topdown[i];
}
