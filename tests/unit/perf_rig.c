// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The CPU with a small PMU; perf_rig.h describes it. */
#include "perf_rig.h"

#define ROW(sel, mask, fix, sig) \
	{ .name = "ROW", .select = sel, .fixed = fix, .gp_mask = mask, \
	  .signals = VPMU_SIGNAL_BIT(VPMU_SIGNAL_##sig), .quality = VPMU_QUALITY_EXACT }

static const struct vpmu_event_def rig_table[] = {
	ROW(RIG_INSTRUCTIONS, 0xf, 0, INSTRUCTIONS),
	ROW(RIG_BRANCHES, 0xf, -1, BRANCHES),
	ROW(RIG_FIRST, 0x1, -1, BRANCHES),
	ROW(RIG_SECOND, 0x2, -1, BRANCHES),
	ROW(RIG_ONLY_FIXED, 0, 1, INSTRUCTIONS),
};

/* Rows of models with fewer counters than four. */
static struct vpmu_event_def rig_rows[4][COUNT_OF(rig_table)];

static void rig_service(void *arg)
{
	vpmu_perf_service(arg);
}

struct rig *rig_new(unsigned int n_gp, uint64_t mux)
{
	struct rig *r = test_calloc(1, sizeof(*r));
	struct vpmu_event_def *row = rig_rows[n_gp - 1];
	unsigned int i;

	memcpy(row, rig_table, sizeof(rig_table));
	for (i = 0; i < COUNT_OF(rig_table); i++)
		row[i].gp_mask &= (uint16_t)((1u << n_gp) - 1);
	r->model.name = "rig";
	r->model.vendor = VPMU_VENDOR_INTEL;
	r->model.version = 5;
	r->model.n_gp = (uint8_t)n_gp;
	r->model.n_fixed = 2;
	r->model.width_bits = 48;
	r->model.events = row;
	r->model.n_events = COUNT_OF(rig_table);
	vpmu_perf_system_init(&r->sys, &r->model, VPMU_SCRIPT_SUPPLIED, 0, mux);
	vpmu_script_init(&r->script, VPMU_SCRIPT_SUPPLIED);
	assert_int_equal(vpmu_perf_cpu_init(&r->cpu, &r->sys, 0, &r->script.ops, &r->script), 0);
	r->script.silicon = &r->cpu.silicon;
	r->script.service = rig_service;
	r->script.arg = &r->cpu;
	vpmu_perf_task_init(&r->task, &r->sys);
	return r;
}

void rig_free(struct rig *r)
{
	assert_null(r->script.broken);
	test_free(r);
}

struct vpmu_perf_attr rig_attr(enum vpmu_perf_class class, uint64_t select)
{
	struct vpmu_perf_attr attr = { .size = sizeof(attr), .cpu = -1 };

	attr.event.size = sizeof(attr.event);
	attr.event.banks = RIG_ALL;
	attr.event.fixed = select == RIG_ONLY_FIXED ? 1 : -1;
	attr.event.slot = -1;
	attr.event.select = select == RIG_ONLY_FIXED ? 0 : select;
	attr.event.pinned = class == VPMU_CPU_PINNED || class == VPMU_TASK_PINNED;
	return attr;
}

static void rig_overflowed(struct vpmu_event *head)
{
	((struct rig *)head->owner)->overflows[head->index]++;
}

static void rig_changed(struct vpmu_event *head)
{
	((struct rig *)head->owner)->changes[head->index]++;
}

struct vpmu_perf_event *rig_event(struct rig *r)
{
	struct vpmu_perf_event *ev = &r->ev[r->n];

	assert_true(r->n < RIG_EVENTS);
	memset(ev, 0xa5, sizeof(*ev));
	ev->head.overflowed = rig_overflowed;
	ev->head.changed = rig_changed;
	ev->head.owner = r;
	ev->head.index = r->n++;
	return ev;
}

struct vpmu_perf_event *rig_open_attr(struct rig *r, enum vpmu_perf_class class,
				      const struct vpmu_perf_attr *attr)
{
	bool task = class == VPMU_TASK_PINNED || class == VPMU_TASK_FLEXIBLE;
	struct vpmu_perf_event *ev = rig_event(r);

	assert_int_equal(vpmu_perf_open(ev, attr, task ? NULL : &r->cpu,
					task ? &r->task : NULL), 0);
	return ev;
}

struct vpmu_perf_event *rig_open(struct rig *r, enum vpmu_perf_class class, uint64_t select)
{
	struct vpmu_perf_attr attr = rig_attr(class, select);

	return rig_open_attr(r, class, &attr);
}

struct vpmu_perf_event *rig_sibling(struct rig *r, struct vpmu_perf_event *leader,
				    uint64_t select)
{
	enum vpmu_perf_class class = vpmu_perf_class(leader);
	struct vpmu_perf_attr attr = rig_attr(class, select);

	attr.event.pinned = false;
	attr.event.leader = &leader->head;
	return rig_open_attr(r, class, &attr);
}

void rig_run(struct rig *r, uint64_t n)
{
	while (n--)
		vpmu_script_step(&r->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
}

const char *rig_states(struct rig *r)
{
	static char text[RIG_EVENTS + 1];
	unsigned int i;

	for (i = 0; i < r->n; i++)
		text[i] = "oaie"[vpmu_perf_state(&r->ev[i])];
	text[i] = 0;
	return text;
}
