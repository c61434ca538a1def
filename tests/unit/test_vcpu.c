// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A guest's counters ("K") as events of a host's perf subsystem: the cases of the
 * vPMU document and its review, for counters and for branch records, and the
 * mediated policy. States as in test_perf.c.
 */
#include "perf_rig.h"

#define CP VPMU_CPU_PINNED
#define TP VPMU_TASK_PINNED
#define CF VPMU_CPU_FLEXIBLE

#define assert_states(r, text) assert_string_equal(rig_states(r), text)

static struct vpmu_vcpu *vcpu_new(struct rig *r, enum vpmu_policy policy)
{
	struct vpmu_vcpu *v = test_malloc(sizeof(*v));

	memset(v, 0xa5, sizeof(*v));
	assert_int_equal(vpmu_vcpu_init(v, &r->sys, policy), 0);
	return v;
}

static void vcpu_free(struct rig *r, struct vpmu_vcpu *v)
{
	unsigned int i;

	for (i = 0; i < r->n; i++)
		if (r->ev[i].head.provider == &v->provider)
			vpmu_vcpu_ops.release(&r->ev[i].head);
	vpmu_vcpu_put(v);
	vpmu_vcpu_fini(v);
	test_free(v);
}

/* Attributes like a front door's: pinned, off, with the guest's own counter number. */
static struct vpmu_event_attr k_attr(uint64_t select, int slot)
{
	struct vpmu_event_attr attr = rig_attr(TP, select).event;

	attr.slot = (int8_t)slot;
	return attr;
}

static struct vpmu_event *k_create(struct rig *r, struct vpmu_vcpu *v,
				   const struct vpmu_event_attr *attr)
{
	struct vpmu_event *k = &rig_event(r)->head;

	assert_true(vpmu_vcpu_ops.event_size <= sizeof(struct vpmu_perf_event));
	assert_int_equal(vpmu_vcpu_ops.create(&v->provider, k, attr), 0);
	assert_ptr_equal(k->provider, &v->provider);
	return k;
}

static struct vpmu_event *k_counter(struct rig *r, struct vpmu_vcpu *v, uint64_t select,
				    int slot)
{
	struct vpmu_event_attr attr = k_attr(select, slot);

	return k_create(r, v, &attr);
}

/* An event on the vCPU's thread that is not the guest's. */
static int host_on_thread(struct rig *r, struct vpmu_vcpu *v, enum vpmu_perf_class class,
			  uint64_t select)
{
	struct vpmu_perf_attr attr = rig_attr(class, select);

	return vpmu_perf_open(rig_event(r), &attr, NULL, &v->task);
}

static void guest_runs(struct rig *r, struct vpmu_vcpu *v, uint64_t n)
{
	vpmu_vcpu_enter(v);
	rig_run(r, n);
	vpmu_vcpu_exit(v);
}

static int k_enable(struct vpmu_event *k)
{
	return vpmu_vcpu_ops.enable(k);
}

static uint64_t k_read(struct vpmu_event *k)
{
	return vpmu_vcpu_ops.read(k);
}

/* Counters, shared policy ------------------------------------------------------- */

/* Case 1: host CP events hold everything. Case 2: they leave. */
static void test_host_pinned_first(void **state)
{
	struct rig *r = rig_new(1, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	struct vpmu_event *k;

	(void)state;
	vpmu_vcpu_load(v, &r->cpu);
	rig_open(r, CP, RIG_BRANCHES);
	k = k_counter(r, v, RIG_BRANCHES, 0);
	assert_states(r, "ao");
	assert_int_equal(k_enable(k), -VPMU_EBUSY);
	assert_states(r, "ae");
	assert_true(r->changes[1] > 0);
	guest_runs(r, v, 10);
	assert_int_equal(k_read(k), 0);
	vpmu_perf_close(&r->ev[0]);
	vpmu_vcpu_put(v);
	vpmu_vcpu_load(v, &r->cpu);
	guest_runs(r, v, 10);
	assert_states(r, "oe");
	assert_int_equal(k_read(k), 0);
	assert_int_equal(k_enable(k), 0);
	assert_states(r, "oa");
	guest_runs(r, v, 10);
	assert_int_equal(k_read(k), 10);
	vcpu_free(r, v);
	rig_free(r);
}

/* Case 3: K counts, a host CP event comes. Case 10: it left while K was away. */
static void test_host_pinned_second(void **state)
{
	struct rig *r = rig_new(1, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	struct vpmu_event *k;

	(void)state;
	vpmu_vcpu_load(v, &r->cpu);
	k = k_counter(r, v, RIG_BRANCHES, 0);
	assert_int_equal(k_enable(k), 0);
	guest_runs(r, v, 10);
	rig_open(r, CP, RIG_BRANCHES);
	assert_states(r, "ea");
	assert_true(r->changes[0] > 0);
	guest_runs(r, v, 10);
	assert_int_equal(k_read(k), 10); /* frozen */
	assert_int_equal(vpmu_vcpu_ops.running(k), 10);

	vpmu_perf_close(&r->ev[1]);
	assert_int_equal(k_enable(k), 0);
	vpmu_vcpu_put(v);
	rig_open(r, CP, RIG_BRANCHES);
	assert_states(r, "ioa");
	vpmu_perf_close(&r->ev[2]);
	vpmu_vcpu_load(v, &r->cpu);
	assert_states(r, "aoo");
	vcpu_free(r, v);
	rig_free(r);
}

/* Cases 4 and 5: flexible events of the host, before and after. */
static void test_host_flexible(void **state)
{
	struct rig *r = rig_new(1, 20);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	struct vpmu_event *k;

	(void)state;
	vpmu_vcpu_load(v, &r->cpu);
	rig_open(r, CF, RIG_BRANCHES);
	assert_int_equal(host_on_thread(r, v, VPMU_TASK_FLEXIBLE, RIG_BRANCHES), 0);
	k = k_counter(r, v, RIG_BRANCHES, 0);
	assert_int_equal(k_enable(k), 0);
	assert_states(r, "iia");
	rig_open(r, CF, RIG_BRANCHES);
	assert_states(r, "iiai");
	guest_runs(r, v, 100);
	assert_states(r, "iiai");
	assert_int_equal(k_read(k), 100);
	vcpu_free(r, v);
	rig_free(r);
}

/* Cases 6 and 7: another TP event on the thread, younger and older than K. */
static void test_thread_pinned(void **state)
{
	struct rig *r = rig_new(1, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	struct vpmu_event *k;

	(void)state;
	vpmu_vcpu_load(v, &r->cpu);
	k = k_counter(r, v, RIG_BRANCHES, 0);
	assert_int_equal(k_enable(k), 0);
	assert_int_equal(host_on_thread(r, v, TP, RIG_BRANCHES), 0);
	assert_states(r, "ae");
	vpmu_vcpu_ops.disable(k);
	assert_int_equal(vpmu_perf_enable(&r->ev[1]), 0);
	assert_int_equal(k_enable(k), 0); /* older, so the other goes */
	assert_states(r, "ae");
	vpmu_vcpu_ops.release(k);
	assert_int_equal(vpmu_perf_enable(&r->ev[1]), 0);
	k = k_counter(r, v, RIG_BRANCHES, 0); /* younger now */
	assert_int_equal(k_enable(k), -VPMU_EBUSY);
	assert_states(r, "oae");
	r->ev[0].head.provider = NULL;
	vcpu_free(r, v);
	rig_free(r);
}

/* Case 8: two vCPUs on one CPU do not meet. */
static void test_two_vcpus(void **state)
{
	struct rig *r = rig_new(1, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	struct vpmu_vcpu *w = vcpu_new(r, VPMU_POLICY_SHARED);
	struct vpmu_event *k, *l;
	int i;

	(void)state;
	k = k_counter(r, v, RIG_BRANCHES, 0);
	l = k_counter(r, w, RIG_BRANCHES, 0);
	assert_int_equal(k_enable(k), 0);
	assert_int_equal(k_enable(l), 0);
	for (i = 0; i < 3; i++) {
		vpmu_vcpu_load(v, &r->cpu);
		assert_states(r, "ai");
		guest_runs(r, v, 10);
		vpmu_vcpu_put(v);
		vpmu_vcpu_load(w, &r->cpu);
		assert_states(r, "ia");
		guest_runs(r, w, 7);
		vpmu_vcpu_put(w);
	}
	assert_int_equal(k_read(k), 30);
	assert_int_equal(k_read(l), 21);
	assert_int_equal(vpmu_vcpu_ops.running(k), 30);
	vcpu_free(r, v);
	vcpu_free(r, w);
	rig_free(r);
}

/* Case 11: more K events than counters are left: by age, and none after a failure. */
static void test_too_many(void **state)
{
	struct rig *r = rig_new(4, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	unsigned int i;

	(void)state;
	vpmu_vcpu_load(v, &r->cpu);
	rig_open(r, CP, RIG_BRANCHES);
	rig_open(r, CP, RIG_BRANCHES);
	vpmu_vcpu_ops.begin(&v->provider);
	for (i = 0; i < 4; i++)
		k_enable(k_counter(r, v, RIG_BRANCHES, (int)i));
	k_enable(k_counter(r, v, RIG_INSTRUCTIONS, 4));
	assert_int_equal(vpmu_vcpu_ops.commit(&v->provider), -VPMU_EBUSY);
	assert_states(r, "aaaaeee");
	/* Alone the last one fits: on its fixed counter. */
	assert_int_equal(k_enable(&r->ev[6].head), 0);
	assert_states(r, "aaaaeea");
	vcpu_free(r, v);
	rig_free(r);
}

/* Case 12: what excludes guests holds its counter all the same. */
static void test_host_excludes_guests(void **state)
{
	struct vpmu_perf_attr attr = rig_attr(CP, RIG_BRANCHES);
	struct rig *r = rig_new(1, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	struct vpmu_event *k;

	(void)state;
	vpmu_vcpu_load(v, &r->cpu);
	attr.exclude_guest = true;
	rig_open_attr(r, CP, &attr);
	k = k_counter(r, v, RIG_BRANCHES, 0);
	assert_int_equal(k_enable(k), -VPMU_EBUSY);
	guest_runs(r, v, 10);
	rig_run(r, 3);
	assert_int_equal(vpmu_perf_count(&r->ev[0]), 3);
	vcpu_free(r, v);
	rig_free(r);
}

/* A guest's time is the time in the guest, loaded or not, whatever else counts. */
static void test_guest_time(void **state)
{
	struct rig *r = rig_new(1, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	struct vpmu_perf_value value;
	struct vpmu_event *k;

	(void)state;
	assert_int_equal(vpmu_vcpu_ops.clock(&v->provider, true), 0);
	vpmu_vcpu_load(v, &r->cpu);
	guest_runs(r, v, 5);
	k = k_counter(r, v, RIG_BRANCHES, 0);
	k_enable(k);
	rig_run(r, 100);
	guest_runs(r, v, 10);
	vpmu_vcpu_put(v);
	rig_run(r, 100);
	assert_int_equal(vpmu_vcpu_ops.clock(&v->provider, true), 15);
	vpmu_perf_read(&r->ev[0], &value);
	assert_int_equal(value.enabled, 10);
	assert_int_equal(value.running, 10);
	assert_int_equal(value.count, 10);
	vcpu_free(r, v);
	rig_free(r);
}

static void test_overflow(void **state)
{
	struct vpmu_event_attr attr = k_attr(RIG_BRANCHES, 0);
	struct rig *r = rig_new(1, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	struct vpmu_event *k;

	(void)state;
	vpmu_vcpu_load(v, &r->cpu);
	attr.period = 8;
	k = k_create(r, v, &attr);
	k_enable(k);
	guest_runs(r, v, 20);
	assert_int_equal(r->overflows[0], 0); /* not armed yet */
	vpmu_vcpu_ops.arm(k, 3);
	guest_runs(r, v, 2);
	rig_run(r, 50);
	vpmu_vcpu_put(v);
	rig_run(r, 50);
	vpmu_vcpu_load(v, &r->cpu);
	assert_int_equal(r->overflows[0], 0);
	guest_runs(r, v, 1);
	assert_int_equal(r->overflows[0], 1);
	guest_runs(r, v, 8);
	assert_int_equal(r->overflows[0], 2);
	vcpu_free(r, v);
	rig_free(r);
}

/* Branch records ----------------------------------------------------------------- */

static struct vpmu_perf_attr lbr_attr(enum vpmu_perf_class class, uint64_t filter)
{
	struct vpmu_perf_attr attr = rig_attr(class, RIG_BRANCHES);

	attr.event.shared = VPMU_SHARED_LBR;
	attr.event.extra = filter;
	return attr;
}

static struct vpmu_event *v_create(struct rig *r, struct vpmu_vcpu *v)
{
	struct vpmu_event_attr attr = k_attr(0, -1);

	attr.no_counter = true;
	attr.shared = VPMU_SHARED_LBR;
	attr.extra = VPMU_SHARED_ALONE;
	return k_create(r, v, &attr);
}

/* Cases 1 and 5, and 8: a host CP event has them, and leaves. */
static void test_lbr_host_pinned_first(void **state)
{
	struct vpmu_perf_attr attr = lbr_attr(CP, 1);
	struct rig *r = rig_new(4, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	struct vpmu_event *lbr;

	(void)state;
	vpmu_vcpu_load(v, &r->cpu);
	rig_open_attr(r, CP, &attr);
	lbr = v_create(r, v);
	assert_int_equal(k_enable(lbr), -VPMU_EBUSY);
	assert_states(r, "ae");
	assert_ptr_equal(vpmu_perf_shared_owner(&r->cpu, VPMU_SHARED_LBR), &r->ev[0]);
	vpmu_perf_close(&r->ev[0]);
	guest_runs(r, v, 10);
	assert_states(r, "oe");
	assert_int_equal(k_enable(lbr), 0);
	assert_ptr_equal(vpmu_perf_shared_owner(&r->cpu, VPMU_SHARED_LBR), &r->ev[1]);
	vcpu_free(r, v);
	rig_free(r);
}

/* Case 2: flexible ones give way. Cases 3, 4 and 6: newcomers. Case 7: an older one. */
static void test_lbr_others(void **state)
{
	static const struct {
		bool newcomer;
		enum vpmu_perf_class class;
		const char *states; /* states of the guest's events, and of the host's */
	} table[] = {
		{ false, CF, "ai" }, { false, TP, "ea" }, { false, CP, "ea" },
		{ true, CP, "ea" }, { true, CF, "ai" }, { true, TP, "ae" },
		{ true, VPMU_TASK_FLEXIBLE, "ai" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(table); i++) {
		struct vpmu_perf_attr attr = lbr_attr(table[i].class, 1);
		bool thread = table[i].class == TP || table[i].class == VPMU_TASK_FLEXIBLE;
		struct rig *r = rig_new(4, 0);
		struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
		struct vpmu_event *lbr = NULL;
		struct vpmu_perf_event *host;

		vpmu_vcpu_load(v, &r->cpu);
		if (table[i].newcomer) {
			lbr = v_create(r, v);
			assert_int_equal(k_enable(lbr), 0);
		}
		host = rig_event(r);
		assert_int_equal(vpmu_perf_open(host, &attr, thread ? NULL : &r->cpu,
						thread ? &v->task : NULL), 0);
		if (!lbr) {
			lbr = v_create(r, v);
			k_enable(lbr);
		}
		assert_int_equal("oaie"[vpmu_vcpu_ops.state(lbr)], table[i].states[0]);
		assert_int_equal("oaie"[vpmu_perf_state(host)], table[i].states[1]);
		vcpu_free(r, v);
		rig_free(r);
	}
}

/* Mediated ----------------------------------------------------------------------- */

static struct vpmu_perf_attr host_only(enum vpmu_perf_class class, uint64_t select)
{
	struct vpmu_perf_attr attr = rig_attr(class, select);

	attr.exclude_guest = true;
	return attr;
}

static void test_mediated_refusals(void **state)
{
	struct vpmu_perf_attr attr = rig_attr(CP, RIG_BRANCHES);
	struct rig *r = rig_new(2, 0);
	struct vpmu_vcpu *s = vcpu_new(r, VPMU_POLICY_SHARED), *v;
	struct vpmu_vcpu w;

	(void)state;
	assert_int_equal(vpmu_vcpu_init(&w, &r->sys, VPMU_POLICY_DIRECT), -VPMU_EINVAL);
	rig_open_attr(r, CP, &attr);
	assert_int_equal(vpmu_vcpu_init(&w, &r->sys, VPMU_POLICY_MEDIATED), -VPMU_EBUSY);
	vpmu_perf_close(&r->ev[0]);
	k_counter(r, s, RIG_BRANCHES, 0); /* a guest's own do not matter */
	v = vcpu_new(r, VPMU_POLICY_MEDIATED);
	assert_int_equal(vpmu_perf_open(rig_event(r), &attr, &r->cpu, NULL), -VPMU_EOPNOTSUPP);
	r->n--;
	k_counter(r, s, RIG_BRANCHES, 1);
	attr = host_only(CP, RIG_BRANCHES);
	rig_open_attr(r, CP, &attr);
	vcpu_free(r, v);
	attr.exclude_guest = false;
	rig_open_attr(r, CP, &attr);
	vcpu_free(r, s);
	rig_free(r);
}

/* The guest's counters are its own while it runs, and the host's all wait. */
static void test_mediated(void **state)
{
	struct rig *r = rig_new(2, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_MEDIATED);
	struct vpmu_perf_attr attr = host_only(CP, RIG_FIRST);
	struct vpmu_event *k, *l;

	(void)state;
	vpmu_vcpu_load(v, &r->cpu);
	rig_open_attr(r, CP, &attr);
	attr = host_only(CF, RIG_SECOND);
	rig_open_attr(r, CF, &attr);
	k = k_counter(r, v, RIG_INSTRUCTIONS, 1);
	l = k_counter(r, v, RIG_FIRST, 0);
	assert_int_equal(k_enable(k), 0);
	assert_int_equal(k_enable(l), 0);
	assert_states(r, "aaii");
	rig_run(r, 5);
	vpmu_vcpu_enter(v);
	assert_states(r, "iiaa");
	assert_ptr_equal(vpmu_perf_owner(&r->cpu, 1), k);
	assert_ptr_equal(vpmu_perf_owner(&r->cpu, 0), l);
	rig_run(r, 7);
	attr = host_only(CP, RIG_SECOND);
	rig_open_attr(r, CP, &attr);
	assert_states(r, "iiaai"); /* pinned, and not in error */
	vpmu_vcpu_exit(v);
	assert_states(r, "aiiia");
	rig_run(r, 11);
	assert_int_equal(vpmu_perf_count(&r->ev[0]), 16);
	assert_int_equal(vpmu_perf_count(&r->ev[1]), 5);
	assert_int_equal(k_read(k), 7);
	assert_int_equal(k_read(l), 7);
	vcpu_free(r, v);
	rig_free(r);
}

/* An exit and a switch take the counters from a guest that does not run: no loss. */
static void test_away(void **state)
{
	static const enum vpmu_policy policies[] = {
		VPMU_POLICY_SHARED, VPMU_POLICY_MEDIATED,
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct rig *r = rig_new(1, 0);
		struct vpmu_vcpu *v = vcpu_new(r, policies[i]);
		struct vpmu_event *k;

		vpmu_vcpu_load(v, &r->cpu);
		k = k_counter(r, v, RIG_BRANCHES, 0);
		assert_int_equal(vpmu_vcpu_ops.state(k), VPMU_EVENT_OFF);
		assert_int_equal(k_enable(k), 0);
		assert_int_equal(vpmu_vcpu_ops.state(k), VPMU_EVENT_ACTIVE);
		guest_runs(r, v, 10);
		guest_runs(r, v, 10);
		assert_int_equal(vpmu_vcpu_ops.state(k), VPMU_EVENT_ACTIVE);
		vpmu_vcpu_put(v);
		assert_int_equal(vpmu_vcpu_ops.state(k), VPMU_EVENT_ACTIVE);
		assert_states(r, "i");
		vpmu_vcpu_load(v, &r->cpu);
		guest_runs(r, v, 10);
		assert_int_equal(k_read(k), 30);
		assert_int_equal(r->changes[0], 0); /* nothing to tell, and no kick */
		vcpu_free(r, v);
		rig_free(r);
	}
}

/* A switch to a mediated vCPU is one like any other. */
static void test_mediated_switch(void **state)
{
	struct rig *r = rig_new(1, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_MEDIATED);
	struct vpmu_perf_attr attr = host_only(CF, RIG_BRANCHES);

	(void)state;
	rig_open_attr(r, CF, &attr);
	rig_open_attr(r, CF, &attr);
	vpmu_perf_close(&r->ev[0]);
	vpmu_vcpu_load(v, &r->cpu);
	assert_states(r, "oi"); /* it has no pinned events: nothing is scheduled */
	vcpu_free(r, v);
	rig_free(r);
}

/* Branch records need no counter, whatever number they come with. */
static void test_mediated_lbr(void **state)
{
	struct rig *r = rig_new(2, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_MEDIATED);
	struct vpmu_event_attr attr = k_attr(0, 1);
	struct vpmu_event *lbr, *k;

	(void)state;
	attr.no_counter = true;
	attr.shared = VPMU_SHARED_LBR;
	vpmu_vcpu_load(v, &r->cpu);
	lbr = k_create(r, v, &attr);
	k = k_counter(r, v, RIG_BRANCHES, 1);
	assert_int_equal(k_enable(lbr), 0);
	assert_int_equal(k_enable(k), 0);
	vpmu_vcpu_enter(v);
	assert_states(r, "aa");
	assert_ptr_equal(vpmu_perf_owner(&r->cpu, 1), k);
	vcpu_free(r, v);
	rig_free(r);
}

/* A vCPU whose thread is on no CPU: what is enabled there counts when it is on one. */
static void test_on_no_cpu(void **state)
{
	struct rig *r = rig_new(1, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	const struct vpmu_provider_ops *o = &vpmu_vcpu_ops;
	struct vpmu_event_attr bad = k_attr(RIG_BRANCHES, 0);
	uint8_t none[64], buf[8192];
	struct vpmu_event *k;
	size_t n, used;

	(void)state;
	guest_runs(r, v, 3);
	vpmu_vcpu_put(v);
	o->begin(&v->provider);
	k = k_counter(r, v, RIG_BRANCHES, 0);
	assert_int_equal(k_enable(k), 0);
	assert_int_equal(o->commit(&v->provider), 0);
	assert_int_equal(o->state(k), ACTIVE);
	assert_int_equal(o->clock(&v->provider, true), 0);
	assert_int_equal(o->save(&v->provider, none, sizeof(none), &n), 0);
	assert_int_equal(n, 8); /* no signal's totals */
	bad.size--;
	assert_int_equal(o->create(&v->provider, &rig_event(r)->head, &bad), -VPMU_EINVAL);
	bad.size++;
	bad.slot = 3; /* one counter and two fixed ones */
	assert_int_equal(o->create(&v->provider, &rig_event(r)->head, &bad), -VPMU_EINVAL);
	r->n -= 2;

	vpmu_vcpu_load(v, &r->cpu);
	guest_runs(r, v, 10);
	assert_int_equal(k_read(k), 10);
	assert_int_equal(o->save(&v->provider, buf, sizeof(buf), &used), 0);
	vpmu_vcpu_put(v);
	assert_int_equal(o->load(&v->provider, buf, used), 0);
	assert_int_equal(o->load(&v->provider, buf, used - 1), -VPMU_EINVAL);
	assert_int_equal(o->load(&v->provider, buf, 4), -VPMU_EINVAL);
	assert_int_equal(o->load(&v->provider, none, n), 0);
	assert_int_equal(k_read(k), 10);
	vcpu_free(r, v);
	rig_free(r);
}

static uint64_t branches_of(struct rig *r)
{
	struct vpmu_silicon *s = &r->cpu.silicon;
	uint64_t n;

	vpmu_silicon_begin(s);
	n = vpmu_silicon_total(s, VPMU_SIGNAL_BRANCHES, VPMU_BANK_USER);
	vpmu_silicon_commit(s);
	return n;
}

/* Totals are the CPU's: they are loaded if no other event depends on them. */
static void test_load_totals(void **state)
{
	struct rig *r = rig_new(2, 0);
	struct vpmu_vcpu *v = vcpu_new(r, VPMU_POLICY_SHARED);
	const struct vpmu_provider_ops *o = &vpmu_vcpu_ops;
	struct vpmu_perf_event *host;
	uint8_t buf[8192];
	struct vpmu_event *k;
	size_t used;

	(void)state;
	vpmu_vcpu_load(v, &r->cpu);
	k = k_counter(r, v, RIG_BRANCHES, 0);
	assert_int_equal(k_enable(k), 0);
	guest_runs(r, v, 10);
	assert_int_equal(o->save(&v->provider, buf, sizeof(buf), &used), 0);
	guest_runs(r, v, 5);
	o->disable(k);
	host = rig_open(r, CP, RIG_BRANCHES);
	rig_run(r, 7);
	assert_int_equal(o->load(&v->provider, buf, used), 0);
	assert_int_equal(branches_of(r), 22);
	assert_int_equal(vpmu_perf_count(host), 7);
	vpmu_perf_close(host);
	assert_int_equal(o->load(&v->provider, buf, used), 0);
	assert_int_equal(branches_of(r), 10);
	assert_int_equal(k_read(k), 15);
	k_enable(k);
	guest_runs(r, v, 4);
	assert_int_equal(k_read(k), 19);
	vcpu_free(r, v);
	rig_free(r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_no_cpu),
		cmocka_unit_test(test_load_totals),
		cmocka_unit_test(test_host_pinned_first),
		cmocka_unit_test(test_host_pinned_second),
		cmocka_unit_test(test_host_flexible),
		cmocka_unit_test(test_thread_pinned),
		cmocka_unit_test(test_two_vcpus),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_host_excludes_guests),
		cmocka_unit_test(test_guest_time),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_lbr_host_pinned_first),
		cmocka_unit_test(test_lbr_others),
		cmocka_unit_test(test_mediated_refusals),
		cmocka_unit_test(test_mediated),
		cmocka_unit_test(test_away),
		cmocka_unit_test(test_mediated_switch),
		cmocka_unit_test(test_mediated_lbr),
	};

	return cmocka_run_group_tests_name("vcpu", tests, NULL, NULL);
}
