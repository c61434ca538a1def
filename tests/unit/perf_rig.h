/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A CPU with a small PMU, on the scripted engine, and events with short names. */
#ifndef PERF_RIG_H
#define PERF_RIG_H

#include "unit.h"

#include <vpmu/perf.h>
#include <vpmu/vcpu.h>

#include "script.h"

/* Event selects of the small model. */
#define RIG_INSTRUCTIONS	0xc0u /* any GP counter, or fixed 0 */
#define RIG_BRANCHES		0xc4u /* any GP counter */
#define RIG_FIRST		0xd0u /* branches, on GP counter 0 only */
#define RIG_SECOND		0xd1u /* branches, on GP counter 1 only */
#define RIG_ONLY_FIXED		0xd2u /* instructions, on fixed 1 only; not by select */
#define RIG_ALL			(VPMU_BANKS_KERNEL | VPMU_BANKS_USER)

#define OFF	VPMU_EVENT_OFF
#define ACTIVE	VPMU_EVENT_ACTIVE
#define WAITS	VPMU_EVENT_INACTIVE
#define ERROR	VPMU_EVENT_ERROR

#define RIG_EVENTS 32

struct rig {
	struct vpmu_model model;
	struct vpmu_perf_system sys;
	struct vpmu_script script;
	struct vpmu_perf_cpu cpu;
	struct vpmu_perf_task task;
	struct vpmu_perf_event ev[RIG_EVENTS]; /* in the order of opening */
	uint32_t overflows[RIG_EVENTS], changes[RIG_EVENTS];
	unsigned int n;
};

/* @n_gp counters, 2 fixed ones, a multiplexing interval of @mux cycles (0: none). */
struct rig *rig_new(unsigned int n_gp, uint64_t mux);
void rig_free(struct rig *r);

/* An attr of the class for @select, in all banks. */
struct vpmu_perf_attr rig_attr(enum vpmu_perf_class class, uint64_t select);

/* The next event's memory, with its head filled in. */
struct vpmu_perf_event *rig_event(struct rig *r);

/* Open with what must work: of the CPU, or of rig.task. */
struct vpmu_perf_event *rig_open_attr(struct rig *r, enum vpmu_perf_class class,
				      const struct vpmu_perf_attr *attr);
struct vpmu_perf_event *rig_open(struct rig *r, enum vpmu_perf_class class, uint64_t select);
struct vpmu_perf_event *rig_sibling(struct rig *r, struct vpmu_perf_event *leader,
				    uint64_t select);

/* @n instructions, each a direct jump. */
void rig_run(struct rig *r, uint64_t n);

/* The states of all events as a string: "a", "i", "e", "o". */
const char *rig_states(struct rig *r);

#endif /* PERF_RIG_H */
