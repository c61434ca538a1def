/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A slow and obvious model of a host's perf subsystem, written apart from
 * lib/perf: it takes no function of it, looks at every event at every instruction,
 * and keeps no list, no time stamp and no register.
 *
 * Events, tasks and CPUs are numbers. A context is a number too: first those of
 * the CPUs, then those of the tasks.
 */
#ifndef PERF_MODEL_H
#define PERF_MODEL_H

#include <vpmu/perf.h>
#include <vpmu/vcpu.h>

#define PERF_CPUS	2
#define PERF_TASKS	3 /* task 0 is a plain one, the others are vCPUs' threads */
#define PERF_CONTEXTS	(PERF_CPUS + PERF_TASKS)
#define PERF_EVENTS	12
#define PERF_NONE	(-1)

enum perf_policy {
	PERF_PLAIN,    /* no guest ever runs in it */
	PERF_SHARED,
	PERF_MEDIATED,
};

/* Why an event cannot be opened; several may be true. */
#define PERF_UNCOUNTED	1u /* -VPMU_ENOENT */
#define PERF_INVALID	2u /* -VPMU_EINVAL */
#define PERF_REFUSED	4u /* -VPMU_EOPNOTSUPP */

struct perf_model_event {
	bool open;
	bool guests;            /* belongs to a guest's PMU ("K") */
	struct vpmu_perf_attr attr;
	int ctx;
	int leader;             /* number of its leader, or its own */
	uint64_t age, order;    /* age of its group in the context; order among siblings */
	enum vpmu_event_state state; /* its own, whatever its leader's is */
	uint64_t signals;
	uint32_t allowed;       /* slots */
	uint64_t count, overflows, enabled, running;
	bool armed;
	int64_t left;           /* until its overflow */
};

struct perf_model {
	const struct vpmu_model *model;
	uint64_t mux_cycles;
	int n_cpus;
	struct {
		int task;           /* on it, or PERF_NONE */
		bool guest;
		uint64_t clock;
		bool timer;
		uint64_t timer_at;
		int batch;
		uint32_t resched;   /* classes */
		uint32_t passes;    /* scheduler passes so far */
	} cpu[PERF_CPUS];
	struct {
		enum perf_policy policy;
		int cpu;            /* it is on, or PERF_NONE */
		uint64_t guest_time;
	} task[PERF_TASKS];
	bool rotate[PERF_CONTEXTS];
	uint64_t next;              /* age or order of whatever comes next */
	struct perf_model_event event[PERF_EVENTS];
};

void perf_model_init(struct perf_model *m, const struct vpmu_model *model, int n_cpus,
		     uint64_t mux_cycles);

/**
 * Open event @i in context @ctx. attr->event.leader is not used, but @leader.
 *
 * @guests: a guest's own; @attr then is what perf.h's rules make of it
 *
 * Returns 0, or why not (PERF_UNCOUNTED, ...).
 */
uint32_t perf_model_open(struct perf_model *m, int i, const struct vpmu_perf_attr *attr,
			 int ctx, int leader, bool guests);
void perf_model_close(struct perf_model *m, int i);
void perf_model_enable(struct perf_model *m, int i);
void perf_model_disable(struct perf_model *m, int i);
void perf_model_arm(struct perf_model *m, int i, uint64_t left);

void perf_model_sched_in(struct perf_model *m, int cpu, int task);
void perf_model_sched_out(struct perf_model *m, int cpu);
void perf_model_guest(struct perf_model *m, int cpu, bool entered);
void perf_model_begin(struct perf_model *m, int cpu);
void perf_model_commit(struct perf_model *m, int cpu);

/** One instruction, which is a branch of kind @kind unless that is INSTRUCTIONS. */
void perf_model_retire(struct perf_model *m, int cpu, enum vpmu_bank bank,
		       enum vpmu_signal kind);

/**
 * Call this after anything but an instruction: the clock may stop if no event's time
 * advances, and the multiplexing timer with it; a wish to rotate outlives it. @held:
 * vCPUs hold their clocks, which run in any case.
 */
void perf_model_idle(struct perf_model *m, int cpu, bool held);

/** False: refused (-VPMU_EBUSY). */
bool perf_model_vcpu_init(struct perf_model *m, int task, enum perf_policy policy);
void perf_model_vcpu_fini(struct perf_model *m, int task);

/* Queries. */
enum vpmu_event_state perf_model_state(const struct perf_model *m, int i);
enum vpmu_perf_class perf_model_class(const struct perf_model *m, int i);
int perf_model_cpu_of(const struct perf_model *m, int i); /* CPU where it could count now */
bool perf_model_matches(const struct perf_model *m, int i, int cpu);
bool perf_model_fits(const struct perf_model *m, const bool set[PERF_EVENTS]);

#endif /* PERF_MODEL_H */
