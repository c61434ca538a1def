/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A host's perf subsystem, with the rules of Linux: events live in contexts,
 * one per CPU and one per task; a context has pinned and flexible groups.
 * Priority: CPU pinned, task pinned, CPU flexible, task flexible; within a
 * class, older first. A group counts as a whole or not at all. A pinned group
 * that finds no counter is in ERROR until it is enabled again; flexible ones
 * wait and take turns.
 *
 * Contexts: calls that concern a CPU, its context and the task on it are made
 * on that CPU, or while it is stopped, and do not block; calls that concern a
 * task that is on no CPU are made by its owner. Only vpmu_perf_system is
 * shared.
 *
 * Sources: Linux, kernel/events/core.c (ctx_resched, merge_sched_in,
 * perf_rotate_context), arch/x86/events/core.c (x86_schedule_events), as facts;
 * perf_event_open(2).
 */
#ifndef VPMU_PERF_H
#define VPMU_PERF_H

#include <vpmu/provider.h>
#include <vpmu/silicon.h>

struct vpmu_perf_cpu;
struct vpmu_perf_task;
struct vpmu_perf_event;

/* In order of priority. */
enum vpmu_perf_class {
	VPMU_CPU_PINNED,
	VPMU_TASK_PINNED,
	VPMU_CPU_FLEXIBLE,
	VPMU_TASK_FLEXIBLE,
	VPMU_PERF_CLASSES
};

/* State that all CPUs of a host share. The caller owns the memory. */
struct vpmu_perf_system {
	const struct vpmu_model *model;
	/*
	 * Signals, as in vpmu_silicon_config: an engine need not count what it
	 * cannot.
	 */
	uint64_t supplied;
	/*
	 * Rate of the modelled clock, which providers pass on to guests; 0:
	 * unknown.
	 */
	uint64_t time_hz;
	/*
	 * Multiplexing interval on that clock; 0: no rotation. A short one
	 * shares counters more evenly, at the cost of more switches.
	 */
	uint64_t mux_cycles;
	/*
	 * Private, atomics only. Above 0: number of events that count guests;
	 * below 0: number of mediated vCPUs. They exclude each other.
	 */
	int32_t guests;
};

struct vpmu_perf_attr {
	uint32_t size;                /* sizeof(struct vpmu_perf_attr) */
	/*
	 * Event, banks, pinned, period; its slot is not used, and its leader is
	 * an event of the same context.
	 */
	struct vpmu_event_attr event;
	/*
	 * Stays off until it is enabled; set it to open events of a group
	 * before any counts.
	 */
	bool disabled;
	/*
	 * Its group has the PMU to itself; set it if other events would disturb
	 * the measurement.
	 */
	bool exclusive;
	bool exclude_host;            /* counts only while a guest runs */
	/*
	 * Counts only while no guest runs; needed to exist beside mediated VMs.
	 */
	bool exclude_guest;
	bool exclude_idle;            /* accepted; x86 has no such filter */
	/* Task events: count only on the CPU of this number; -1: on any. */
	int16_t cpu;
	uint32_t id;                  /* shown in the trace and in queries */
};

/* Groups that could be scheduled, by age: a self-balancing tree. */
struct vpmu_perf_groups {
	struct vpmu_perf_event *root;
	uint32_t n_all; /* number of groups, including those that are off or in error */
};

struct vpmu_perf_context {
	struct vpmu_perf_cpu *cpu;         /* CPU that it is scheduled in on, or NULL */
	struct vpmu_perf_groups groups[2]; /* flexible, pinned */
	/*
	 * Time spent scheduled in, until stamp, except that of a mediated
	 * guest.
	 */
	uint64_t time, stamp;
	uint64_t next_index;               /* age of the next group */
	uint32_t n_timed;                  /* number of events whose time advances */
	bool task;
	bool frozen;                       /* a mediated guest runs: time stands still */
	bool rotate;                       /* some flexible group did not fit */
};

struct vpmu_perf_task {
	struct vpmu_perf_context ctx;
	struct vpmu_perf_system *system;
	struct vpmu_vcpu *vcpu;  /* vCPU of the thread, or NULL */
};

#define VPMU_PERF_ACTIVE_MAX (VPMU_SLOTS_MAX + 8) /* events without a counter too */

/*
 * Owners of counters and shared resources: a set of events that fit together.
 */
struct vpmu_perf_set {
	struct vpmu_perf_event *slot[VPMU_SLOTS_MAX];
	struct vpmu_perf_event *event[VPMU_PERF_ACTIVE_MAX];
	uint32_t n_events;
	struct {
		uint64_t extra;
		uint32_t users;
	} shared[VPMU_SHARED_COUNT + 1]; /* the last is the second OFFCORE_RSP */
};

/* A CPU. The caller owns the memory; fields are private to lib/perf. */
struct vpmu_perf_cpu {
	struct vpmu_silicon silicon;
	struct vpmu_perf_system *system;
	struct vpmu_ops ops;
	void *ops_ctx;
	uint32_t number;
	struct vpmu_perf_context ctx;
	struct vpmu_perf_task *task;  /* scheduled in, or NULL */
	struct vpmu_perf_set active;  /* events that count */
	struct vpmu_perf_set plan, undo; /* while scheduling */
	struct vpmu_perf_event *held[VPMU_SLOTS_MAX]; /* event for which a slot is configured */
	uint32_t batch;      /* depth of begin/commit */
	uint32_t resched;    /* classes to be scheduled at commit */
	bool guest;          /* a guest runs */
	bool timer;          /* the multiplexing timer runs */
	uint32_t tick;       /* the timer went off; atomics only */
	bool failed;         /* an event went to ERROR in this batch */
};

/* An event. The caller owns the memory; fields are private to lib/perf. */
struct vpmu_perf_event {
	struct vpmu_event head;          /* overflowed, owner, index belong to the owner */
	struct vpmu_perf_attr attr;
	struct vpmu_recipe recipe;
	struct vpmu_perf_context *ctx;
	struct vpmu_perf_event *leader;  /* itself, if it leads */
	struct vpmu_perf_event *sibling; /* list of siblings, beginning at the leader */
	struct vpmu_perf_event *up, *child[2]; /* in the tree of groups */
	uint64_t index;                  /* age in its context */
	uint32_t allowed;                /* slots that can count it */
	int8_t slot;                     /* last slot, -1: none yet */
	uint8_t state;                   /* enum vpmu_event_state */
	bool queued;                     /* in the tree */
	bool planned;                    /* in the plan, while scheduling */
	bool missed;                     /* its owner has been told that it does not count */
	uint64_t base;                   /* count, except that of a held slot */
	uint64_t topdown[VPMU_TOPDOWN];  /* likewise, for slots by class */
	uint64_t left;                   /* distance to its overflow, while it holds no slot */
	uint64_t overflows;
	uint64_t stamp, enabled, running; /* times, until stamp, on its context's clock */
};

/**
 * Fill in a system. @supplied, @time_hz, @mux_cycles: see struct vpmu_perf_system.
 */
void vpmu_perf_system_init(struct vpmu_perf_system *sys, const struct vpmu_model *model,
			   uint64_t supplied, uint64_t time_hz, uint64_t mux_cycles);

/**
 * Set up CPU number @number with an idle PMU and no task.
 *
 * @ops: pull and deadline at least; kick is called when vpmu_perf_service() is due
 * @ctx: passed to each hook
 *
 * Returns 0, or what vpmu_silicon_init() returns; @cpu is then unusable.
 */
int vpmu_perf_cpu_init(struct vpmu_perf_cpu *cpu, struct vpmu_perf_system *sys,
		       uint32_t number, const struct vpmu_ops *ops, void *ctx);

void vpmu_perf_task_init(struct vpmu_perf_task *task, struct vpmu_perf_system *sys);

/**
 * Open an event, of @cpu if @task is NULL, else of @task.
 *
 * @ev: memory of the caller until vpmu_perf_close(); head.overflowed, changed,
 *      owner and index are filled in
 *
 * Unless attr->disabled it is scheduled at once (at commit, in a batch), which
 * may leave it INACTIVE or in ERROR: that is no failure. Returns 0;
 * -VPMU_ENOENT if no counter counts it; -VPMU_EINVAL for a bad attr, a leader
 * of another context, a pinned or exclusive sibling, or a group that does not
 * fit even on an empty PMU; -VPMU_EOPNOTSUPP if it would count guests and a
 * mediated VM exists. On failure nothing has changed.
 */
int vpmu_perf_open(struct vpmu_perf_event *ev, const struct vpmu_perf_attr *attr,
		   struct vpmu_perf_cpu *cpu, struct vpmu_perf_task *task);

/**
 * Close an event. No other event is scheduled in its place until the next
 * timer, switch or enable. The siblings of a leader become groups of their own.
 */
void vpmu_perf_close(struct vpmu_perf_event *ev);

/**
 * Enable an event that is off or in error; otherwise nothing happens. Returns
 * 0; or, outside of a batch, -VPMU_EBUSY if it then is in ERROR.
 */
int vpmu_perf_enable(struct vpmu_perf_event *ev);

/**
 * Disable an event; one in ERROR stays there, and no other event is scheduled.
 */
void vpmu_perf_disable(struct vpmu_perf_event *ev);

struct vpmu_perf_value {
	uint64_t count;
	/*
	 * Times as read(2) of a perf event returns them; while a mediated guest
	 * runs they stand still.
	 */
	uint64_t enabled, running;
	uint64_t overflows;
	enum vpmu_event_state state; /* a sibling's is at most its leader's */
};
void vpmu_perf_read(struct vpmu_perf_event *ev, struct vpmu_perf_value *value);

/** The number of occurrences; see read() in provider.h. */
uint64_t vpmu_perf_count(struct vpmu_perf_event *ev);

/**
 * Split the slots that the event has counted by topdown class: VPMU_TOPDOWN
 * words.
 */
void vpmu_perf_topdown(struct vpmu_perf_event *ev, uint64_t *classes);

/** Set the next overflow; see arm() in provider.h. */
void vpmu_perf_arm(struct vpmu_perf_event *ev, uint64_t left);

/** The state of an event; a sibling's is at most its leader's. Pure. */
enum vpmu_event_state vpmu_perf_state(const struct vpmu_perf_event *ev);

enum vpmu_perf_class vpmu_perf_class(const struct vpmu_perf_event *ev);

/**
 * A task switch: @task is scheduled in, or out. At most one task is on a CPU,
 * and a task on at most one CPU.
 */
void vpmu_perf_sched_in(struct vpmu_perf_cpu *cpu, struct vpmu_perf_task *task);
void vpmu_perf_sched_out(struct vpmu_perf_cpu *cpu);

/** The CPU enters and leaves a guest, whose vCPU thread is the task on it. */
void vpmu_perf_guest(struct vpmu_perf_cpu *cpu, bool entered);

/**
 * Operations between begin and commit happen at one instant, and are scheduled
 * once, at the outermost commit. Returns 0, or -VPMU_EBUSY when it has put an event
 * into ERROR.
 */
void vpmu_perf_begin(struct vpmu_perf_cpu *cpu);
int vpmu_perf_commit(struct vpmu_perf_cpu *cpu);

/** Second half after ops->kick: the multiplexing timer. */
void vpmu_perf_service(struct vpmu_perf_cpu *cpu);

/** The event that counts on counter @slot now, or NULL. Pure. */
const struct vpmu_perf_event *vpmu_perf_owner(const struct vpmu_perf_cpu *cpu,
					      unsigned int slot);

/** The event that has @shared now (the first, if several), or NULL. Pure. */
const struct vpmu_perf_event *vpmu_perf_shared_owner(const struct vpmu_perf_cpu *cpu,
						     enum vpmu_shared shared);

#endif /* VPMU_PERF_H */
