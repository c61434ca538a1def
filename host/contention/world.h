/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A host with one CPU, up to two vCPUs that share it, and the actors that compete for
 * counters. Operations log themselves, and the states after them.
 */
#ifndef VPMU_CONTENTION_WORLD_H
#define VPMU_CONTENTION_WORLD_H

#include <vpmu/arch.h>
#include <vpmu/direct.h>
#include <vpmu/vcpu.h>

#include "script.h"
#include "contention.h"

#define WORLD_VCPUS	2
#define WORLD_ACTORS	8
#define ACTOR_EVENTS	8
#define WORLD_MUX	100 /* cycles between two rotations */

enum actor_kind {
	ACTOR_HOST,     /* events of the host, on the CPU or on a vCPU's thread */
	ACTOR_COUNTER,  /* counters that a guest programs */
	ACTOR_FACILITY, /* facilities that a guest's PMU requests from its provider itself */
};

struct actor {
	const char *name;
	enum actor_kind kind;
	enum vpmu_perf_class class;
	unsigned int n;
	unsigned int vcpu;           /* vCPU of the thread or guest */
	unsigned int pmc;            /* the guest's first counter */
	struct vpmu_perf_attr attr;  /* unused for a guest's counter */
	int error;                   /* error of the last open, or 0 */
	uint32_t open;               /* bitmap of open events */
	struct vpmu_perf_event event[ACTOR_EVENTS]; /* the host's events */
	/* Events of a guest's counters, once they have counted. */
	const struct vpmu_perf_event *seen[ACTOR_EVENTS];
	struct vpmu_event *facility; /* size: the provider's event_size */
};

struct guest {
	struct vpmu_vcpu vcpu;
	struct vpmu_direct direct;
	struct vpmu_provider *provider;
	struct vpmu_arch *arch;
};

struct contention_world {
	enum vpmu_policy policy;
	struct vpmu_model model;
	struct vpmu_event_def *events; /* the model's events, with SLOTS */
	struct vpmu_script script;
	struct vpmu_perf_system system;
	struct vpmu_perf_cpu cpu;
	struct guest guest[WORLD_VCPUS];
	unsigned int n_guests;
	int on;            /* the vCPU whose thread is on the CPU, or -1 */
	bool runs;         /* that vCPU executes its guest whenever it can */
	bool in_guest;
	unsigned int n_service; /* services since an instruction retired */
	struct actor *actor[WORLD_ACTORS]; /* actors that were opened, in that order */
	unsigned int n_actors;
	struct actor cast[WORLD_ACTORS];   /* for scenarios: world_cast() */
	unsigned int n_cast;
	struct contention_log *log;  /* or NULL */
	struct contention_result *result;
	const char *broken; /* the first breach of a contract */
};

/** Set up a CPU, and for policy direct its guest too. */
void world_init(struct contention_world *w, enum vpmu_policy policy);
/** Close everything and check; broken is final after it. */
void world_fini(struct contention_world *w);

/** Log a step, and the states after it. */
void world_log(struct contention_world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void world_result(struct contention_world *w, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/** Report result NAME and, for a counter, the values that its guest reads. */
void world_report(struct contention_world *w, struct actor *a);

/** Create another vCPU (a VM of its own), on no CPU. Returns init's result. */
int world_create_vcpu(struct contention_world *w);
void world_load(struct contention_world *w, unsigned int vcpu);
void world_put(struct contention_world *w);
/** Set whether the loaded vCPU executes its guest from now on. */
void world_guest(struct contention_world *w, bool runs);
/** Let @n instructions retire, all of them branches, wherever the CPU is. */
void world_run(struct contention_world *w, unsigned int n);

/** The attributes that request a resource; @alone: a setting that no other event has. */
void world_attr(enum contention_resource resource, uint64_t alone,
		struct vpmu_event_attr *attr);

/** An actor that lives as long as the world. */
struct actor *world_cast(struct contention_world *w);

/** Fill in an actor of @n events that are not open yet. */
void actor_host(struct actor *a, const char *name, enum vpmu_perf_class class,
		enum contention_resource resource, unsigned int n);
void actor_counter(struct actor *a, const char *name, enum contention_resource resource,
		   unsigned int n);
void actor_facility(struct actor *a, const char *name, enum contention_resource resource);

/** Open all its events, enabled, one after another; stops at the first refusal. */
int world_open(struct contention_world *w, struct actor *a);
void world_close(struct contention_world *w, struct actor *a);
void world_disable(struct contention_world *w, struct actor *a, unsigned int i);
void world_enable(struct contention_world *w, struct actor *a, unsigned int i);
void world_create(struct contention_world *w, struct actor *a, unsigned int i);

enum contention_state actor_state(const struct contention_world *w, const struct actor *a,
				  unsigned int i);
void actor_side(const struct contention_world *w, const struct actor *a,
		struct contention_side *side);
/** Count of the host's event @i, or what the guest reads of its counter. */
uint64_t actor_count(struct contention_world *w, struct actor *a, unsigned int i);

#endif /* VPMU_CONTENTION_WORLD_H */
