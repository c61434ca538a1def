// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The rules of the host's perf subsystem, case by case. States are strings, one
 * letter for each event in the order of opening: active, inactive, error, off.
 */
#include "perf_rig.h"

#define CP VPMU_CPU_PINNED
#define TP VPMU_TASK_PINNED
#define CF VPMU_CPU_FLEXIBLE
#define TF VPMU_TASK_FLEXIBLE

#define MUX 100

static struct rig *with_task(unsigned int n_gp)
{
	struct rig *r = rig_new(n_gp, MUX);

	vpmu_perf_sched_in(&r->cpu, &r->task);
	return r;
}

static struct vpmu_perf_value value_of(struct vpmu_perf_event *ev)
{
	struct vpmu_perf_value v;

	vpmu_perf_read(ev, &v);
	return v;
}

#define assert_states(r, text) assert_string_equal(rig_states(r), text)

/* The matrix of contention ------------------------------------------------------ */

enum resource {
	GP_COUNTER,
	FIXED_COUNTER,
	LBR,
	METRICS,
	RESOURCES
};

static struct vpmu_perf_attr wants(enum vpmu_perf_class class, enum resource resource)
{
	struct vpmu_perf_attr attr = rig_attr(class, resource == FIXED_COUNTER ? RIG_ONLY_FIXED :
					      resource == METRICS ? RIG_BRANCHES : RIG_FIRST);

	if (resource == LBR) {
		attr.event.no_counter = true;
		attr.event.shared = VPMU_SHARED_LBR;
		attr.event.extra = VPMU_SHARED_ALONE;
	} else if (resource == METRICS) {
		attr.event.shared = VPMU_SHARED_METRICS;
		attr.event.extra = VPMU_SHARED_ALONE;
	}
	return attr;
}

/*
 * Incumbent, newcomer: their states when the newcomer has been opened, a
 * multiplexing interval later, and when the one that is active has been closed.
 */
static const struct {
	enum vpmu_perf_class incumbent, newcomer;
	const char *opened, *later, *closed;
} contention[] = {
	{ CP, CP, "ae", "ae", "oe" }, { CP, TP, "ae", "ae", "oe" },
	{ CP, CF, "ai", "ai", "oi" }, { CP, TF, "ai", "ai", "oi" },
	{ TP, CP, "ea", "ea", "eo" }, { TP, TP, "ae", "ae", "oe" },
	{ TP, CF, "ai", "ai", "oi" }, { TP, TF, "ai", "ai", "oi" },
	{ CF, CP, "ia", "ia", "io" }, { CF, TP, "ia", "ia", "io" },
	{ CF, CF, "ai", "ia", "io" }, { CF, TF, "ai", "ai", "oi" },
	{ TF, CP, "ia", "ia", "io" }, { TF, TP, "ia", "ia", "io" },
	{ TF, CF, "ia", "ia", "io" }, { TF, TF, "ai", "ia", "io" },
};

static void contend(size_t i, enum resource resource)
{
	struct rig *r = with_task(4);
	struct vpmu_perf_attr attr = wants(contention[i].incumbent, resource);
	unsigned int loser;

	rig_open_attr(r, contention[i].incumbent, &attr);
	assert_states(r, "a");
	attr = wants(contention[i].newcomer, resource);
	rig_open_attr(r, contention[i].newcomer, &attr);
	assert_states(r, contention[i].opened);
	rig_run(r, MUX);
	assert_states(r, contention[i].later);
	loser = contention[i].later[0] == 'a';
	vpmu_perf_close(&r->ev[!loser]);
	assert_states(r, contention[i].closed);

	/* Waiting events come back by the timer, events in error by an enable only. */
	rig_run(r, MUX);
	vpmu_perf_sched_out(&r->cpu);
	vpmu_perf_sched_in(&r->cpu, &r->task);
	if (contention[i].closed[loser] == 'e') {
		assert_int_equal(vpmu_perf_state(&r->ev[loser]), ERROR);
		assert_int_equal(vpmu_perf_enable(&r->ev[loser]), 0);
	}
	assert_int_equal(vpmu_perf_state(&r->ev[loser]), ACTIVE);
	rig_free(r);
}

static void test_contention(void **state)
{
	size_t i;
	unsigned int resource;

	(void)state;
	for (i = 0; i < COUNT_OF(contention); i++)
		for (resource = 0; resource < RESOURCES; resource++)
			contend(i, (enum resource)resource);
}

/* Pinned ------------------------------------------------------------------------ */

static void test_older_wins(void **state)
{
	struct rig *r = with_task(1);

	(void)state;
	rig_open(r, TP, RIG_BRANCHES);
	rig_open(r, TP, RIG_BRANCHES);
	assert_states(r, "ae");
	vpmu_perf_disable(&r->ev[0]);
	assert_states(r, "oe");
	assert_int_equal(vpmu_perf_enable(&r->ev[1]), 0);
	assert_states(r, "oa");
	/* Enabling does not change the age. */
	assert_int_equal(vpmu_perf_enable(&r->ev[0]), 0);
	assert_states(r, "ae");
	assert_int_equal(vpmu_perf_enable(&r->ev[1]), -VPMU_EBUSY);
	vpmu_perf_close(&r->ev[0]);
	assert_int_equal(vpmu_perf_enable(&r->ev[1]), 0);
	assert_states(r, "oa");
	rig_free(r);
}

/* After one that fails, all later ones of its list do; other lists do not care. */
static void test_failure_blocks_list(void **state)
{
	struct rig *r = with_task(2);

	(void)state;
	rig_open(r, CP, RIG_FIRST);
	vpmu_perf_begin(&r->cpu);
	rig_open(r, TP, RIG_FIRST);
	rig_open(r, TP, RIG_SECOND);
	rig_open(r, CF, RIG_FIRST);
	rig_open(r, CF, RIG_SECOND);
	rig_open(r, TF, RIG_SECOND);
	assert_states(r, "aiiiii");
	assert_int_equal(vpmu_perf_commit(&r->cpu), -VPMU_EBUSY);
	assert_states(r, "aeeiia");
	rig_run(r, MUX); /* the first of CF goes to the end of its list */
	assert_states(r, "aeeiai");
	rig_run(r, MUX); /* ... and the one that counted after it */
	assert_states(r, "aeeiia");
	rig_free(r);
}

static void test_error_stays(void **state)
{
	struct rig *r = with_task(1);
	struct vpmu_perf_event *ev;

	(void)state;
	rig_open(r, CP, RIG_BRANCHES);
	ev = rig_open(r, TP, RIG_BRANCHES);
	assert_true(r->changes[1] > 0);
	vpmu_perf_close(&r->ev[0]);
	vpmu_perf_disable(ev);
	assert_states(r, "oe");
	vpmu_perf_sched_out(&r->cpu);
	vpmu_perf_sched_in(&r->cpu, &r->task);
	assert_states(r, "oe");
	rig_run(r, 10);
	assert_int_equal(value_of(ev).enabled, 0);
	assert_int_equal(vpmu_perf_enable(ev), 0);
	rig_run(r, 7);
	assert_int_equal(value_of(ev).count, 7);
	assert_int_equal(value_of(ev).enabled, 7);
	rig_free(r);
}

/* A newcomer may move another event rather than fail. */
static void test_moves(void **state)
{
	struct rig *r = with_task(2);

	(void)state;
	rig_open(r, CP, RIG_INSTRUCTIONS);
	assert_ptr_equal(vpmu_perf_owner(&r->cpu, 2), &r->ev[0]);
	rig_open(r, CP, RIG_INSTRUCTIONS);
	rig_open(r, TP, RIG_BRANCHES);
	rig_run(r, 5);
	vpmu_perf_close(&r->ev[1]);
	rig_open(r, TP, RIG_FIRST);
	assert_states(r, "aoaa");
	rig_run(r, 6);
	assert_int_equal(vpmu_perf_count(&r->ev[0]), 11);
	assert_int_equal(vpmu_perf_count(&r->ev[2]), 11);
	assert_int_equal(vpmu_perf_count(&r->ev[3]), 6);
	rig_free(r);
}

/* The chain of moves may be long: each of four counters is the only one for one. */
static void test_assignment(void **state)
{
	struct rig *r = with_task(2);

	(void)state;
	rig_open(r, CP, RIG_BRANCHES);
	rig_open(r, CP, RIG_INSTRUCTIONS);
	rig_open(r, CP, RIG_INSTRUCTIONS);
	rig_open(r, CP, RIG_ONLY_FIXED);
	assert_states(r, "aaaa");
	rig_open(r, CP, RIG_BRANCHES);
	assert_states(r, "aaaae");
	vpmu_perf_close(&r->ev[2]);
	rig_open(r, CF, RIG_SECOND);
	rig_open(r, CF, RIG_FIRST);
	assert_states(r, "aaoaeai");
	assert_ptr_equal(vpmu_perf_owner(&r->cpu, 1), &r->ev[5]);
	assert_ptr_equal(vpmu_perf_owner(&r->cpu, 0), &r->ev[0]);
	rig_free(r);
}

/* Flexible ---------------------------------------------------------------------- */

/* Three on one counter: each has a third of the time. */
static void test_rotation(void **state)
{
	struct rig *r = with_task(1);
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		rig_open(r, CF, RIG_BRANCHES);
	assert_states(r, "aii");
	rig_run(r, MUX - 1);
	assert_states(r, "aii");
	rig_run(r, 1);
	assert_states(r, "iai");
	rig_run(r, MUX);
	assert_states(r, "iia");
	rig_run(r, 28 * MUX);
	for (i = 0; i < 3; i++) {
		struct vpmu_perf_value v = value_of(&r->ev[i]);

		assert_int_equal(v.enabled, 30 * MUX);
		assert_int_equal(v.running, 10 * MUX);
		assert_int_equal(v.count, 10 * MUX);
	}
	rig_free(r);
}

/* A task with a pinned event, even one that is off, lets CPU flexible ones go out. */
static void test_switch_reschedules_flexible(void **state)
{
	struct vpmu_perf_attr attr = rig_attr(TP, RIG_BRANCHES);
	struct rig *r = rig_new(1, 0);

	(void)state;
	rig_open(r, CF, RIG_BRANCHES);
	rig_open(r, CF, RIG_BRANCHES);
	vpmu_perf_close(&r->ev[0]);
	vpmu_perf_sched_in(&r->cpu, &r->task);
	assert_states(r, "oi");
	attr.disabled = true;
	rig_open_attr(r, TP, &attr);
	assert_states(r, "oio");
	vpmu_perf_sched_out(&r->cpu);
	vpmu_perf_sched_in(&r->cpu, &r->task);
	assert_states(r, "oao");
	rig_free(r);
}

static void test_task_out(void **state)
{
	struct rig *r = with_task(1);
	struct vpmu_perf_event *ev = rig_open(r, TP, RIG_BRANCHES);

	(void)state;
	rig_open(r, CF, RIG_BRANCHES);
	rig_run(r, 5);
	vpmu_perf_sched_out(&r->cpu);
	assert_states(r, "ii"); /* nothing comes in its place */
	rig_run(r, 50);
	vpmu_perf_sched_in(&r->cpu, &r->task);
	rig_run(r, 6);
	assert_int_equal(value_of(ev).count, 11);
	assert_int_equal(value_of(ev).enabled, 11);
	assert_int_equal(value_of(&r->ev[1]).enabled, 61);
	assert_int_equal(value_of(&r->ev[1]).running, 0);
	rig_free(r);
}

/* Groups ------------------------------------------------------------------------ */

static void test_group_all_or_nothing(void **state)
{
	struct rig *r = with_task(2);
	struct vpmu_perf_event *leader, *sibling;

	(void)state;
	rig_open(r, CP, RIG_FIRST);
	leader = rig_open(r, CF, RIG_SECOND);
	sibling = rig_sibling(r, leader, RIG_FIRST);
	assert_states(r, "aii");
	vpmu_perf_disable(sibling); /* needs no counter then, but nothing is scheduled */
	assert_states(r, "aio");
	rig_run(r, MUX);
	assert_states(r, "aao");
	assert_int_equal(vpmu_perf_enable(sibling), 0);
	assert_states(r, "aii");
	vpmu_perf_close(leader); /* its sibling goes on alone */
	assert_states(r, "aoi");
	vpmu_perf_close(&r->ev[0]);
	rig_run(r, MUX);
	assert_states(r, "ooa");
	rig_free(r);
}

/* An install reschedules even when the leader waits; an enable does not. */
static void test_sibling_of_waiting_leader(void **state)
{
	struct rig *r = with_task(2);
	struct vpmu_perf_event *leader;

	(void)state;
	rig_open(r, CP, RIG_FIRST);
	leader = rig_open(r, CF, RIG_FIRST);
	rig_sibling(r, leader, RIG_SECOND);
	vpmu_perf_disable(&r->ev[2]);
	vpmu_perf_close(&r->ev[0]);
	assert_int_equal(vpmu_perf_enable(&r->ev[2]), 0);
	assert_states(r, "oii");
	rig_sibling(r, leader, RIG_ONLY_FIXED);
	assert_states(r, "oaaa");

	/* Not so when the leader is off. */
	vpmu_perf_disable(leader);
	rig_open(r, CF, RIG_FIRST);
	rig_open(r, CF, RIG_FIRST);
	vpmu_perf_close(&r->ev[4]);
	rig_sibling(r, leader, RIG_INSTRUCTIONS);
	assert_states(r, "ooooo" "io");
	rig_free(r);
}

static void test_sibling_of_error(void **state)
{
	struct rig *r = with_task(1);
	struct vpmu_perf_event *leader, *sibling;

	(void)state;
	rig_open(r, CP, RIG_BRANCHES);
	leader = rig_open(r, TP, RIG_BRANCHES);
	sibling = rig_sibling(r, leader, RIG_INSTRUCTIONS);
	assert_states(r, "aee");
	/* Asked once or twice, the answer is the same. */
	vpmu_perf_disable(sibling);
	assert_int_equal(vpmu_perf_enable(sibling), -VPMU_EBUSY);
	assert_int_equal(vpmu_perf_enable(sibling), -VPMU_EBUSY);
	rig_run(r, 5);
	assert_int_equal(value_of(sibling).enabled, 0);
	vpmu_perf_close(&r->ev[0]);
	assert_int_equal(vpmu_perf_enable(leader), 0);
	assert_states(r, "oaa");
	rig_free(r);
}

static void test_exclusive(void **state)
{
	struct vpmu_perf_attr attr = rig_attr(CF, RIG_BRANCHES);
	struct rig *r = with_task(4);

	(void)state;
	attr.exclusive = true;
	rig_open_attr(r, CF, &attr);
	rig_open(r, CF, RIG_BRANCHES);
	rig_open(r, TF, RIG_BRANCHES);
	assert_states(r, "aii");
	rig_run(r, MUX);
	assert_states(r, "iaa");
	rig_open(r, TP, RIG_ONLY_FIXED);
	assert_states(r, "iaaa");
	rig_free(r);
}

/* Shared resources -------------------------------------------------------------- */

static void test_shared_values(void **state)
{
	static const struct {
		uint8_t shared;
		uint64_t extra[3];
		const char *states;
	} table[] = {
		{ VPMU_SHARED_LBR, { 1, 1, 1 }, "aaa" },
		{ VPMU_SHARED_LBR, { 1, 2, 1 }, "aea" },
		{ VPMU_SHARED_LDLAT, { 3, 4, 4 }, "aee" },
		{ VPMU_SHARED_FRONTEND, { 0, 0, 1 }, "aae" },
		{ VPMU_SHARED_OFFCORE_RSP, { 1, 2, 1 }, "aaa" },
		{ VPMU_SHARED_OFFCORE_RSP, { 1, 2, 3 }, "aae" },
		{ VPMU_SHARED_OFFCORE_RSP, { VPMU_SHARED_ALONE, VPMU_SHARED_ALONE, 1 }, "aae" },
		{ VPMU_SHARED_PEBS, { VPMU_SHARED_ALONE, VPMU_SHARED_ALONE, 1 }, "aee" },
		{ VPMU_SHARED_NONE, { 1, 2, 3 }, "aaa" },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < COUNT_OF(table); i++) {
		struct rig *r = with_task(4);

		for (k = 0; k < 3; k++) {
			struct vpmu_perf_attr attr = rig_attr(CP, RIG_BRANCHES);

			attr.event.shared = table[i].shared;
			attr.event.extra = table[i].extra[k];
			rig_open_attr(r, CP, &attr);
		}
		assert_states(r, table[i].states);
		assert_ptr_equal(vpmu_perf_shared_owner(&r->cpu, VPMU_SHARED_LBR),
				 table[i].shared == VPMU_SHARED_LBR ? &r->ev[0] : NULL);
		rig_free(r);
	}
}

/* More than can be active at once: the last one finds no place. */
static void test_places(void **state)
{
	struct vpmu_perf_attr attr = wants(CP, LBR);
	struct rig *r = with_task(1);
	unsigned int i;

	(void)state;
	attr.event.extra = 7;
	for (i = 0; i < VPMU_PERF_ACTIVE_MAX; i++)
		rig_open_attr(r, CP, &attr);
	rig_open(r, CP, RIG_BRANCHES);
	for (i = 0; i < VPMU_PERF_ACTIVE_MAX; i++)
		assert_int_equal(vpmu_perf_state(&r->ev[i]), ACTIVE);
	assert_int_equal(vpmu_perf_state(&r->ev[i]), ERROR);
	rig_free(r);
}

/* Counting ---------------------------------------------------------------------- */

static void test_overflow_survives(void **state)
{
	struct vpmu_perf_attr attr = rig_attr(CF, RIG_BRANCHES);
	struct rig *r = with_task(1);
	struct vpmu_perf_event *ev;

	(void)state;
	attr.event.period = 10;
	ev = rig_open_attr(r, CF, &attr);
	rig_run(r, 7);
	vpmu_perf_disable(ev);
	rig_run(r, 50);
	vpmu_perf_enable(ev);
	rig_open(r, TP, RIG_BRANCHES);
	rig_run(r, 30);
	assert_int_equal(r->overflows[0], 0);
	vpmu_perf_close(&r->ev[1]);
	rig_open(r, CP, RIG_ONLY_FIXED); /* reschedules */
	rig_run(r, 2);
	assert_int_equal(r->overflows[0], 0);
	rig_run(r, 1);
	assert_int_equal(r->overflows[0], 1);
	vpmu_perf_arm(ev, 3);
	rig_run(r, 3 + 10);
	assert_int_equal(r->overflows[0], 3);
	assert_int_equal(value_of(ev).overflows, 3);
	assert_int_equal(value_of(ev).count, 23);
	rig_free(r);
}

static void test_banks(void **state)
{
	struct vpmu_perf_attr attr = rig_attr(CP, RIG_INSTRUCTIONS);
	struct rig *r = with_task(4);

	(void)state;
	attr.event.banks = VPMU_BANKS_USER;
	rig_open_attr(r, CP, &attr);
	attr.event.banks = VPMU_BANKS_KERNEL;
	rig_open_attr(r, CP, &attr);
	attr.event.banks = RIG_ALL;
	attr.exclude_host = true;
	rig_open_attr(r, CP, &attr);
	attr.exclude_host = false;
	attr.exclude_guest = true;
	rig_open_attr(r, CP, &attr);
	vpmu_script_run(&r->script, VPMU_BANK_USER, 3);
	vpmu_script_run(&r->script, VPMU_BANK_KERNEL, 5);
	vpmu_perf_guest(&r->cpu, true);
	vpmu_script_run(&r->script, VPMU_BANK_KERNEL, 11);
	vpmu_perf_guest(&r->cpu, false);
	assert_int_equal(vpmu_perf_count(&r->ev[0]), 3);
	assert_int_equal(vpmu_perf_count(&r->ev[1]), 16);
	assert_int_equal(vpmu_perf_count(&r->ev[2]), 11);
	assert_int_equal(vpmu_perf_count(&r->ev[3]), 8);
	rig_free(r);
}

/* Arguments --------------------------------------------------------------------- */

static int try_open(struct rig *r, const struct vpmu_perf_attr *attr, bool task)
{
	int err = vpmu_perf_open(rig_event(r), attr, task ? NULL : &r->cpu,
				 task ? &r->task : NULL);

	r->n--;
	return err;
}

static void test_refusals(void **state)
{
	struct rig *r = with_task(2);
	struct vpmu_perf_event *leader = rig_open(r, CF, RIG_FIRST);
	struct vpmu_perf_attr attr;

	(void)state;
	rig_sibling(r, leader, RIG_SECOND);
	attr = rig_attr(CF, 0x55);
	assert_int_equal(try_open(r, &attr, false), -VPMU_ENOENT);
	attr = rig_attr(CF, RIG_BRANCHES);
	attr.size--;
	assert_int_equal(try_open(r, &attr, false), -VPMU_EINVAL);
	attr = rig_attr(CF, RIG_BRANCHES);
	attr.event.size--;
	assert_int_equal(try_open(r, &attr, false), -VPMU_EINVAL);
	attr = rig_attr(CF, RIG_BRANCHES);
	attr.event.shared = VPMU_SHARED_COUNT;
	assert_int_equal(try_open(r, &attr, false), -VPMU_EINVAL);
	attr = rig_attr(CF, RIG_BRANCHES);
	attr.event.no_counter = true;
	assert_int_equal(try_open(r, &attr, false), -VPMU_EINVAL);
	attr = rig_attr(CF, RIG_BRANCHES);
	attr.event.leader = &leader->head;
	assert_int_equal(try_open(r, &attr, false), -VPMU_EINVAL); /* no third counter */
	attr = rig_attr(CF, RIG_INSTRUCTIONS);
	attr.event.leader = &leader->head;
	assert_int_equal(try_open(r, &attr, true), -VPMU_EINVAL); /* another context */
	attr.event.pinned = true;
	assert_int_equal(try_open(r, &attr, false), -VPMU_EINVAL);
	attr.event.pinned = false;
	attr.exclusive = true;
	assert_int_equal(try_open(r, &attr, false), -VPMU_EINVAL);
	attr.exclusive = false;
	attr.cpu = 1;
	assert_int_equal(try_open(r, &attr, false), -VPMU_EINVAL);
	attr.cpu = -1;
	attr.event.leader = &r->ev[1].head; /* leads nothing */
	assert_int_equal(try_open(r, &attr, false), -VPMU_EINVAL);
	assert_int_equal(vpmu_perf_open(rig_event(r), &attr, NULL, NULL), -VPMU_EINVAL);
	r->n--;
	assert_states(r, "aa");
	rig_free(r);
}

/* Events of a task that are meant for another CPU neither fail nor block. */
static void test_other_cpu(void **state)
{
	struct vpmu_perf_attr attr = rig_attr(TP, RIG_BRANCHES);
	struct rig *r = with_task(1);

	(void)state;
	attr.cpu = 1;
	rig_open_attr(r, TP, &attr);
	attr.cpu = 0;
	rig_open_attr(r, TP, &attr);
	assert_states(r, "ia");
	rig_free(r);
}

/*
 * Operations of a batch are scheduled once: the older event wins, in whatever order they
 * came.
 */
static void test_batch(void **state)
{
	struct rig *r = with_task(1);
	uint32_t deadlines;

	(void)state;
	rig_open(r, CP, RIG_BRANCHES);
	rig_open(r, CF, RIG_BRANCHES);
	deadlines = r->script.n_demand;
	vpmu_perf_begin(&r->cpu);
	vpmu_perf_begin(&r->cpu);
	vpmu_perf_disable(&r->ev[0]);
	assert_states(r, "oi");
	assert_int_equal(vpmu_perf_enable(&r->ev[0]), 0);
	assert_states(r, "ii");
	assert_int_equal(vpmu_perf_commit(&r->cpu), 0);
	assert_states(r, "ii");
	assert_int_equal(vpmu_perf_commit(&r->cpu), 0);
	assert_states(r, "ai");
	assert_int_equal(r->script.n_demand, deadlines);
	rig_free(r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contention),
		cmocka_unit_test(test_older_wins),
		cmocka_unit_test(test_failure_blocks_list),
		cmocka_unit_test(test_error_stays),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_assignment),
		cmocka_unit_test(test_rotation),
		cmocka_unit_test(test_switch_reschedules_flexible),
		cmocka_unit_test(test_task_out),
		cmocka_unit_test(test_group_all_or_nothing),
		cmocka_unit_test(test_sibling_of_waiting_leader),
		cmocka_unit_test(test_sibling_of_error),
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_shared_values),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_overflow_survives),
		cmocka_unit_test(test_banks),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_other_cpu),
		cmocka_unit_test(test_batch),
	};

	return cmocka_run_group_tests_name("perf", tests, NULL, NULL);
}
