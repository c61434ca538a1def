/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside of the perf subsystem, from the bottom to the top: a file calls those above it in
 * this list.
 *
 *	groups.c  the groups of a context that could be scheduled, by age
 *	assign.c  which events fit together, and on which counters
 *	event.c   an event as it is now: class, state, time, count
 *	sched.c   which events count: classes, rotation, switches, guests
 *	perf.c    the life of an event: open, enable, disable, close
 *	vcpu.c    a vCPU's thread, and the provider of its guest
 */
#ifndef VPMU_PERF_INTERNAL_H
#define VPMU_PERF_INTERNAL_H

#include <vpmu/vcpu.h>

#define PERF_CLASS_BIT(c)	(1u << (c))
#define PERF_CLASSES_ALL	((1u << VPMU_PERF_CLASSES) - 1)

/* The group of @leader: first itself, then its siblings. */
#define perf_for_each_member(ev, leader) \
	for ((ev) = (leader); (ev); (ev) = (ev)->sibling)

static inline bool perf_runnable(const struct vpmu_perf_event *ev)
{
	return ev->state == VPMU_EVENT_ACTIVE || ev->state == VPMU_EVENT_INACTIVE;
}

/* Created by a front door, for a guest's counter. */
static inline bool perf_of_guest(const struct vpmu_perf_event *ev)
{
	return ev->head.provider != NULL;
}

/* groups.c */
void vpmu_groups_insert(struct vpmu_perf_groups *g, struct vpmu_perf_event *leader);
void vpmu_groups_remove(struct vpmu_perf_groups *g, struct vpmu_perf_event *leader);
struct vpmu_perf_event *vpmu_groups_first(const struct vpmu_perf_groups *g);
struct vpmu_perf_event *vpmu_groups_next(const struct vpmu_perf_event *leader);

/* assign.c */

/** Put an event in, or change nothing and return false. */
bool vpmu_set_add(struct vpmu_perf_set *set, struct vpmu_perf_event *ev,
		  const struct vpmu_model *model);
/** Put an event that counts now in, where it is. */
void vpmu_set_keep(struct vpmu_perf_set *set, struct vpmu_perf_event *ev);
/** Take an event out of those that count; what it shared is free at the next plan. */
void vpmu_set_remove(struct vpmu_perf_set *set, struct vpmu_perf_event *ev);

/* event.c */

/** The time that @ev's times are counted in, until now: the guest's or its context's. */
uint64_t vpmu_event_clock(const struct vpmu_perf_event *ev);

/** Bring the times enabled and running up to now. */
void vpmu_event_update_time(struct vpmu_perf_event *ev);

/** Change the state, with the times of the group's members up to date. */
void vpmu_event_set_state(struct vpmu_perf_event *ev, enum vpmu_event_state state);

/** Set the group's place among those that could be scheduled by its state. */
void vpmu_event_queue(struct vpmu_perf_event *leader);

/** Time spent scheduled in, until now. */
uint64_t vpmu_context_time(const struct vpmu_perf_context *ctx);

/** Time spent in the guest, until now. */
uint64_t vpmu_vcpu_time(const struct vpmu_vcpu *v);

/* sched.c */

/** At the next commit, schedule as after an enable of an event of @ev's class. */
void vpmu_sched_enabled(struct vpmu_perf_event *ev);

/** Stop an event that counts, if it does; the members of its group, if it leads. */
void vpmu_sched_stop(struct vpmu_perf_event *ev);

/** Give up the counter that @ev was configured on; its count stays its own. */
void vpmu_sched_evict(struct vpmu_perf_event *ev);

/** Hold silicon's clock while an event's time runs; let go of it otherwise. */
void vpmu_sched_hold(struct vpmu_perf_cpu *cpu);

/** Schedule all classes at the next commit. */
void vpmu_sched_all(struct vpmu_perf_cpu *cpu);

/* perf.c */

/** Open for a guest's counter (@provider, and @slot in a mediated VM) or the host. */
int vpmu_event_open(struct vpmu_perf_event *ev, const struct vpmu_perf_attr *attr,
		    struct vpmu_perf_context *ctx, struct vpmu_perf_system *sys,
		    struct vpmu_provider *provider, int slot);

/*
 * Events that count guests and mediated vCPUs exclude each other: false where the
 * others are. From any thread.
 */
#define PERF_COUNTS_GUESTS	1
#define PERF_MEDIATED_VCPU	(-1)
bool vpmu_guests_get(struct vpmu_perf_system *sys, int32_t who);
void vpmu_guests_put(struct vpmu_perf_system *sys, int32_t who);

static inline bool perf_mediated(const struct vpmu_perf_cpu *cpu)
{
	return cpu->task && cpu->task->vcpu &&
	       cpu->task->vcpu->policy == VPMU_POLICY_MEDIATED;
}

#endif /* VPMU_PERF_INTERNAL_H */
