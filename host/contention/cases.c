// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The scenarios with names. K is a guest's counter as the host sees it: a pinned event of
 * the vCPU's thread. V is the same for the branch records.
 */
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

/* Parts that several scenarios share -------------------------------------------- */

/* Put a vCPU on the CPU, in its guest. */
static void boot(struct contention_world *w)
{
	world_create_vcpu(w);
	world_load(w, 0);
	world_guest(w, true);
	world_log(w, "a vCPU runs its guest");
}

static struct actor *host(struct contention_world *w, const char *name,
			  enum vpmu_perf_class class, enum contention_resource resource,
			  unsigned int n)
{
	struct actor *a = world_cast(w);

	actor_host(a, name, class, resource, n);
	return a;
}

static struct actor *counters(struct contention_world *w, const char *name,
			      enum contention_resource resource, unsigned int n)
{
	struct actor *a = world_cast(w);

	actor_counter(a, name, resource, n);
	return a;
}

static struct actor *records(struct contention_world *w)
{
	struct actor *a = world_cast(w);

	actor_facility(a, "V", CONTENTION_LBR);
	return a;
}

/* Events that write records: PEBS is the host's or the guest's. */
static struct actor *host_precise(struct contention_world *w, const char *name,
				  enum vpmu_perf_class class)
{
	struct actor *a = host(w, name, class, CONTENTION_GP, 1);

	a->attr.event.shared = VPMU_SHARED_PEBS;
	return a;
}

static struct actor *guest_precise(struct contention_world *w)
{
	struct actor *a = world_cast(w);

	actor_facility(a, "P", CONTENTION_GP);
	a->attr.event.shared = VPMU_SHARED_PEBS;
	a->attr.event.extra = VPMU_SHARED_ALONE;
	return a;
}

/* A host's event that prefers fixed counter 1, as the NMI watchdog's does. */
static struct actor *watchdog(struct contention_world *w)
{
	struct actor *a = host(w, "watchdog", VPMU_CPU_PINNED, CONTENTION_GP, 1);

	a->attr.event.select = 0x003c; /* CPU_CLK_UNHALTED.THREAD */
	return a;
}

static void run(struct contention_world *w, unsigned int n)
{
	world_run(w, n);
	world_log(w, "%u branches retire in the %s", n, w->in_guest ? "guest" : "host");
}

static void turns(struct contention_world *w, unsigned int n)
{
	world_run(w, n * WORLD_MUX);
	world_log(w, "%u multiplexing intervals pass", n);
}

static void switch_out(struct contention_world *w)
{
	world_put(w);
	world_log(w, "the vCPU's thread is switched out");
}

static void switch_in(struct contention_world *w, unsigned int vcpu)
{
	world_load(w, vcpu);
	world_log(w, "the thread of vCPU %u is switched in", vcpu);
}

static void enable(struct contention_world *w, struct actor *k)
{
	world_open(w, k);
	world_log(w, "the guest enables %s", k->name);
}

static void enable_again(struct contention_world *w, struct actor *k)
{
	world_disable(w, k, 0);
	world_enable(w, k, 0);
	world_log(w, "the guest disables and enables %s", k->name);
}

static void come(struct contention_world *w, struct actor *a, const char *what)
{
	world_open(w, a);
	world_log(w, "the host opens %s", what);
}

static void go(struct contention_world *w, struct actor *a, const char *what)
{
	world_close(w, a);
	world_log(w, "the host closes %s", what);
}

static void result_state(struct contention_world *w, const char *key, const struct actor *a)
{
	struct contention_side side;

	actor_side(w, a, &side);
	world_result(w, key, "%s", contention_state_name(side.state));
}

static void result_states(struct contention_world *w, const struct actor *a)
{
	struct contention_side side;
	unsigned int s, n = 0;
	char text[48] = "";

	actor_side(w, a, &side);
	for (s = 0; s < CONTENTION_STATES; s++)
		if (side.count[s])
			n += (unsigned int)snprintf(text + n, sizeof(text) - n, "%s%u %s",
						    n ? ", " : "", side.count[s],
						    contention_state_name(s));
	world_result(w, a->name, "%s", text);
}

/* Report the numbers of the guest's counters that are enabled and do not count. */
static void result_frozen(struct contention_world *w, const struct actor *a)
{
	unsigned int i, n = 0;
	char text[48] = "";

	for (i = 0; i < a->n; i++)
		if (actor_state(w, a, i) != CONTENTION_ACTIVE)
			n += (unsigned int)snprintf(text + n, sizeof(text) - n, "%s%u",
						    n ? "," : "", a->pmc + i);
	world_result(w, "frozen", "%s", n ? text : "none");
}

static void result_count(struct contention_world *w, const char *key, struct actor *a,
			 unsigned int i)
{
	world_result(w, key, "%llu", (unsigned long long)actor_count(w, a, i));
}

/* Counters (the document's 3.2, and what its review requested) ------------------- */

static void counter_1(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);

	boot(w);
	come(w, cp, "CPU-pinned events for all 8 counters");
	enable(w, k);
	run(w, 1000);
	world_report(w, k);
	world_disable(w, k, 0);
	vpmu_arch_wrmsr(w->guest[0].arch, VPMU_MSR_A_PMC0, 777);
	world_enable(w, k, 0);
	world_log(w, "the guest disables K, writes 777 and enables it");
	run(w, 1000);
	result_count(w, "reads_written", k, 0);
}

static void counter_2(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);

	boot(w);
	come(w, cp, "CPU-pinned events for all 8 counters");
	enable(w, k);
	run(w, 1000);
	go(w, cp, "them");
	result_state(w, "after_release", k);
	turns(w, 4);
	result_state(w, "after_timer", k);
	switch_out(w);
	switch_in(w, 0);
	result_state(w, "after_switch", k);
	enable_again(w, k);
	run(w, 1000);
	world_report(w, k);
}

static void counter_3(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);

	boot(w);
	enable(w, k);
	run(w, 1000);
	come(w, cp, "CPU-pinned events for all 8 counters");
	run(w, 1000);
	world_report(w, k);
}

static void counter_4(struct contention_world *w)
{
	struct actor *cf = host(w, "CF", VPMU_CPU_FLEXIBLE, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);

	boot(w);
	come(w, cf, "CPU-flexible events for all 8 counters");
	enable(w, k);
	result_states(w, cf);
	run(w, 1000);
	world_report(w, k);
}

static void counter_5(struct contention_world *w)
{
	struct actor *cf = host(w, "CF", VPMU_CPU_FLEXIBLE, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);

	boot(w);
	enable(w, k);
	run(w, 1000);
	come(w, cf, "CPU-flexible events for all 8 counters");
	result_states(w, cf);
	run(w, 1000);
	world_report(w, k);
}

static void counter_6(struct contention_world *w)
{
	struct actor *k = counters(w, "K", CONTENTION_GP, 8);
	struct actor *tp = host(w, "TP", VPMU_TASK_PINNED, CONTENTION_GP, 1);

	boot(w);
	enable(w, k);
	run(w, 1000);
	come(w, tp, "a task-pinned event on the vCPU's thread");
	run(w, 1000);
	result_state(w, "TP", tp);
	world_report(w, k);
}

static void counter_7(struct contention_world *w)
{
	struct actor *tp = host(w, "TP", VPMU_TASK_PINNED, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);

	boot(w);
	come(w, tp, "task-pinned events on the vCPU's thread for all 8 counters");
	enable(w, k);
	run(w, 1000);
	result_state(w, "TP", tp);
	world_report(w, k);
}

static void kept_older(struct contention_world *w)
{
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);
	struct actor *tp = host(w, "TP", VPMU_TASK_PINNED, CONTENTION_GP, 8);

	boot(w);
	enable(w, k);
	world_disable(w, k, 0);
	world_log(w, "the guest disables K, whose event is kept");
	come(w, tp, "task-pinned events on the vCPU's thread for all 8 counters");
	world_enable(w, k, 0);
	world_log(w, "the guest enables K");
	run(w, 1000);
	result_states(w, tp);
	world_report(w, k);
}

static void counter_8(struct contention_world *w)
{
	struct actor *k0 = counters(w, "K0", CONTENTION_GP, 8);
	struct actor *k1 = counters(w, "K1", CONTENTION_GP, 8);

	k1->vcpu = 1;
	boot(w);
	world_create_vcpu(w);
	enable(w, k0);
	run(w, 1000);
	switch_out(w);
	switch_in(w, 1);
	enable(w, k1);
	run(w, 500);
	result_states(w, k1);
	switch_out(w);
	switch_in(w, 0);
	result_states(w, k0);
	run(w, 1000);
	result_count(w, "reads_0", k0, 0);
	result_count(w, "reads_1", k1, 0);
}

static void counter_9(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);

	boot(w);
	enable(w, k);
	result_state(w, "on_cpu", k);
	switch_out(w);
	result_state(w, "off_cpu", k);
	switch_in(w, 0);
	result_state(w, "on_cpu_again", k);
	come(w, cp, "CPU-pinned events for all 8 counters");
	result_state(w, "lost", k);
	switch_out(w);
	result_state(w, "lost_off_cpu", k);
}

static void counter_10(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);

	boot(w);
	enable(w, k);
	run(w, 1000);
	switch_out(w);
	come(w, cp, "CPU-pinned events for all 8 counters");
	go(w, cp, "them");
	switch_in(w, 0);
	result_state(w, "not_in_error", k);
	come(w, cp, "them again");
	switch_out(w);
	go(w, cp, "them");
	switch_in(w, 0);
	result_state(w, "in_error", k);
	result_count(w, "reads", k, 0);
}

static void counter_11(struct contention_world *w)
{
	struct actor *dog = watchdog(w);
	struct actor *gp = counters(w, "GP", CONTENTION_GP, 8);
	struct actor *fixed = counters(w, "fixed1", CONTENTION_GP, 1);

	fixed->pmc = 9;
	come(w, dog, "its NMI watchdog, cycles on fixed counter 1");
	boot(w);
	enable(w, gp);
	enable(w, fixed);
	run(w, 1000);
	result_state(w, "watchdog", dog);
	result_states(w, gp);
	result_count(w, "reads_gp", gp, 7);
	world_report(w, fixed);
}

static void counter_12(struct contention_world *w)
{
	struct actor *cf = host(w, "CF", VPMU_CPU_FLEXIBLE, CONTENTION_GP, 1);
	struct actor *k = counters(w, "K", CONTENTION_GP, 7);
	struct actor *last = counters(w, "last", CONTENTION_GP, 1);

	cf->attr.exclude_guest = true;
	last->pmc = 7;
	boot(w);
	come(w, cf, "a CPU-flexible event that excludes guests");
	enable(w, k);
	run(w, 1000);
	result_states(w, k);
	result_state(w, "CF", cf);
	result_count(w, "CF_in_guest", cf, 0);
	world_guest(w, false);
	run(w, 500);
	result_count(w, "CF_in_host", cf, 0);
	world_guest(w, true);
	enable(w, last);
	result_state(w, "CF_when_full", cf);
	result_state(w, "last", last);
}

/* Branch records (the document's 4.2, and what its review requested) ------------- */

static void lbr_1(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_LBR, 1);
	struct actor *v = records(w);

	come(w, cp, "a CPU-pinned event with branch records");
	boot(w);
	enable(w, v);
	result_state(w, "CP", cp);
	world_report(w, v);
}

static void lbr_2(struct contention_world *w)
{
	struct actor *cf = host(w, "CF", VPMU_CPU_FLEXIBLE, CONTENTION_LBR, 1);
	struct actor *v = records(w);

	come(w, cf, "a CPU-flexible event with branch records");
	boot(w);
	enable(w, v);
	result_state(w, "CF", cf);
	world_report(w, v);
}

static void lbr_3(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_LBR, 1);
	struct actor *v = records(w);

	boot(w);
	enable(w, v);
	result_state(w, "V_before", v);
	come(w, cp, "a CPU-pinned event with branch records");
	result_state(w, "CP", cp);
	world_report(w, v);
}

static void lbr_4(struct contention_world *w)
{
	struct actor *cf = host(w, "CF", VPMU_CPU_FLEXIBLE, CONTENTION_LBR, 1);
	struct actor *v = records(w);

	boot(w);
	enable(w, v);
	come(w, cf, "a CPU-flexible event with branch records");
	turns(w, 4);
	result_state(w, "CF", cf);
	world_report(w, v);
}

static void lbr_5(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_LBR, 1);
	struct actor *v = records(w);

	boot(w);
	come(w, cp, "a CPU-pinned event with branch records");
	enable(w, v);
	result_state(w, "V_before", v);
	go(w, cp, "it");
	result_state(w, "after_release", v);
	enable_again(w, v);
	result_state(w, "after_enable", v);
}

static void lbr_6(struct contention_world *w)
{
	struct actor *tp = host(w, "TP", VPMU_TASK_PINNED, CONTENTION_LBR, 1);
	struct actor *v = records(w);

	boot(w);
	enable(w, v);
	come(w, tp, "a task-pinned event with branch records on the vCPU's thread");
	result_state(w, "TP", tp);
	world_report(w, v);
}

static void lbr_7(struct contention_world *w)
{
	struct actor *tp = host(w, "TP", VPMU_TASK_PINNED, CONTENTION_LBR, 1);
	struct actor *v = records(w);

	boot(w);
	come(w, tp, "a task-pinned event with branch records on the vCPU's thread");
	enable(w, v);
	result_state(w, "TP", tp);
	world_report(w, v);
}

static void lbr_8(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_LBR, 1);
	struct actor *v = records(w);

	boot(w);
	come(w, cp, "a CPU-pinned event with branch records");
	enable(w, v);
	go(w, cp, "it");
	run(w, 1000);
	turns(w, 4);
	switch_out(w);
	switch_in(w, 0);
	world_report(w, v);
}

static void lbr_cascade(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_FIXED, 1);
	struct actor *k = counters(w, "K", CONTENTION_FIXED, 1);
	struct actor *v = records(w);

	boot(w);
	enable(w, k);
	enable(w, v);
	result_state(w, "V_before", v);
	come(w, cp, "a CPU-pinned event for K's fixed counter, without branch records");
	result_state(w, "K", k);
	result_state(w, "V", v);
}

static void lbr_equal(struct contention_world *w)
{
	struct actor *a = host(w, "equal", VPMU_CPU_FLEXIBLE, CONTENTION_LBR, 3);
	struct actor *b = host(w, "other", VPMU_CPU_FLEXIBLE, CONTENTION_LBR, 1);

	come(w, a, "three CPU-flexible events with branch records and one filter");
	come(w, b, "one with another filter");
	result_state(w, "equal", a);
	result_state(w, "other", b);
	turns(w, 3);
	result_state(w, "equal_then", a);
	result_state(w, "other_then", b);
}

/* Order, enables, switches ------------------------------------------------------ */

static void equal_pinned(struct contention_world *w)
{
	struct actor *a = host(w, "older", VPMU_CPU_PINNED, CONTENTION_FIXED, 1);
	struct actor *b = host(w, "younger", VPMU_CPU_PINNED, CONTENTION_FIXED, 1);

	come(w, a, "a CPU-pinned event for a fixed counter");
	come(w, b, "another one for it");
	result_state(w, "older", a);
	result_state(w, "younger", b);
	world_enable(w, b, 0);
	world_log(w, "the younger is enabled again");
	result_state(w, "younger_enabled_again", b);
	world_create(w, a, 0);
	world_log(w, "the older is closed and opened again, so it is the younger one now");
	result_state(w, "older_recreated", a);
	result_state(w, "younger_left_in_error", b);
	world_enable(w, b, 0);
	world_log(w, "the other is enabled again, and is the older one now");
	result_state(w, "recreated_then", a);
	result_state(w, "other_then", b);
}

static void equal_flexible(struct contention_world *w)
{
	struct actor *a = host(w, "older", VPMU_CPU_FLEXIBLE, CONTENTION_FIXED, 1);
	struct actor *b = host(w, "younger", VPMU_CPU_FLEXIBLE, CONTENTION_FIXED, 1);
	struct vpmu_perf_value value;

	come(w, a, "a CPU-flexible event for a fixed counter");
	come(w, b, "another one for it");
	result_state(w, "older", a);
	result_state(w, "younger", b);
	turns(w, 1);
	result_state(w, "older_next", a);
	result_state(w, "younger_next", b);
	turns(w, 9);
	vpmu_perf_read(&a->event[0], &value);
	world_result(w, "older_running_percent", "%llu",
		     (unsigned long long)(value.running * 100 / value.enabled));
	vpmu_perf_read(&b->event[0], &value);
	world_result(w, "younger_running_percent", "%llu",
		     (unsigned long long)(value.running * 100 / value.enabled));
}

static void reenable_older(struct contention_world *w)
{
	struct actor *tp = host(w, "TP", VPMU_TASK_PINNED, CONTENTION_FIXED, 1);
	struct actor *k = counters(w, "K", CONTENTION_FIXED, 1);

	boot(w);
	come(w, tp, "a task-pinned event on the vCPU's thread for a fixed counter");
	world_disable(w, tp, 0);
	world_log(w, "the host disables it");
	enable(w, k);
	result_state(w, "K_before", k);
	run(w, 1000);
	world_enable(w, tp, 0);
	world_log(w, "the host enables its event, which is older");
	run(w, 1000);
	result_state(w, "TP", tp);
	world_report(w, k);
}

static void reenable_error(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);

	boot(w);
	enable(w, k);
	run(w, 1000);
	come(w, cp, "CPU-pinned events for all 8 counters");
	run(w, 1000);
	enable_again(w, k);
	result_state(w, "while_held", k);
	go(w, cp, "them");
	enable_again(w, k);
	run(w, 1000);
	world_report(w, k);
}

static void switch_lost(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);

	boot(w);
	enable(w, k);
	run(w, 1000);
	switch_out(w);
	come(w, cp, "CPU-pinned events for all 8 counters");
	result_state(w, "off_cpu", k);
	switch_in(w, 0);
	run(w, 1000);
	world_report(w, k);
}

static void surplus_three(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_GP, 3);
	struct actor *k = counters(w, "K", CONTENTION_GP, 8);

	boot(w);
	enable(w, k);
	run(w, 1000);
	come(w, cp, "three CPU-pinned events on branches");
	run(w, 1000);
	result_state(w, "CP", cp);
	result_states(w, k);
	result_frozen(w, k);
	result_count(w, "reads_0", k, 0);
	result_count(w, "reads_7", k, 7);
}

static void cascade(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_FIXED, 1);
	struct actor *fixed = counters(w, "fixed2", CONTENTION_FIXED, 1);
	struct actor *gp = counters(w, "GP", CONTENTION_GP, 1);

	boot(w);
	enable(w, fixed);
	enable(w, gp);
	run(w, 1000);
	come(w, cp, "a CPU-pinned event for fixed counter 2 alone");
	run(w, 1000);
	result_state(w, "fixed2", fixed);
	world_report(w, gp);
}

/* The other policies ------------------------------------------------------------- */

static const char *error_name(int error)
{
	switch (error) {
	case 0:
		return "none";
	case -VPMU_EBUSY:
		return "EBUSY";
	case -VPMU_EOPNOTSUPP:
		return "EOPNOTSUPP";
	default:
		return "another";
	}
}

static void mediated_vm(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_GP, 1);

	come(w, cp, "an event that counts guests");
	world_result(w, "vm", "%s", error_name(world_create_vcpu(w)));
	go(w, cp, "it");
	world_result(w, "vm_then", "%s", error_name(world_create_vcpu(w)));
	world_log(w, "a VM is created");
}

static void mediated_event(struct contention_world *w)
{
	struct actor *bad = host(w, "counting", VPMU_CPU_PINNED, CONTENTION_GP, 1);
	struct actor *good = host(w, "excluding", VPMU_CPU_PINNED, CONTENTION_GP, 1);

	good->attr.exclude_guest = true;
	boot(w);
	come(w, bad, "an event that counts guests");
	world_result(w, "counting", "%s", error_name(bad->error));
	come(w, good, "an event that excludes guests");
	result_state(w, "in_guest", good);
	run(w, 1000);
	world_guest(w, false);
	world_log(w, "the CPU leaves the guest");
	run(w, 500);
	result_state(w, "in_host", good);
	result_count(w, "count", good, 0);
}

static void pebs_1(struct contention_world *w)
{
	struct actor *cp = host_precise(w, "CP", VPMU_CPU_PINNED);
	struct actor *k = counters(w, "K", CONTENTION_GP, 1);
	struct actor *p = guest_precise(w);

	boot(w);
	enable(w, k);
	enable(w, p);
	result_state(w, "P_before", p);
	come(w, cp, "a CPU-pinned event with PEBS");
	result_state(w, "CP", cp);
	result_state(w, "P", p);
	result_state(w, "K", k);
	go(w, cp, "it");
	enable_again(w, p);
	result_state(w, "P_enabled_again", p);
}

static void pebs_2(struct contention_world *w)
{
	struct actor *cf = host_precise(w, "CF", VPMU_CPU_FLEXIBLE);
	struct actor *p = guest_precise(w);

	boot(w);
	come(w, cf, "a CPU-flexible event with PEBS");
	enable(w, p);
	turns(w, 4);
	result_state(w, "CF", cf);
	result_state(w, "P", p);
}

static void mediated_keeps(struct contention_world *w)
{
	struct actor *cp = host(w, "CP", VPMU_CPU_PINNED, CONTENTION_GP, 8);
	struct actor *k = counters(w, "K", CONTENTION_GP, 8);

	cp->attr.exclude_guest = true;
	boot(w);
	enable(w, k);
	run(w, 1000);
	come(w, cp, "CPU-pinned events for all 8 counters, that exclude guests");
	run(w, 1000);
	result_states(w, cp);
	world_report(w, k);
	world_guest(w, false);
	world_log(w, "the CPU leaves the guest");
	run(w, 500);
	result_count(w, "CP_count", cp, 0);
	world_guest(w, true);
	result_count(w, "reads_then", k, 0);
}

static void direct_keeps(struct contention_world *w)
{
	struct actor *k = counters(w, "K", CONTENTION_GP, 8);

	boot(w);
	enable(w, k);
	run(w, 1000);
	switch_out(w);
	switch_in(w, 0);
	run(w, 1000);
	world_report(w, k);
}

#define DOC_COUNTERS	"vPMU document, 3.2 "
#define DOC_LBR		"vPMU document, 4.2 "
#define REVIEW		"review of the vPMU document: "
#define VLBR_FAKE	"intel_vlbr_constraints() gives V the fake counter 58 before "        \
			"intel_shared_regs_constraints() looks at the filter: V is "

#define PEBS_HOST	"both are active, but none of the guest's PEBS counters counts while " \
			"the host's does (intel_guest_get_msrs())"

static const struct contention_case cases[] = {
	{ "counter-1", "CPU-pinned events hold every counter, the guest enables one",
	  DOC_COUNTERS "item 1: K is not active and the guest reads 0; review: or an older value",
	  NULL, counter_1, VPMU_POLICY_SHARED },
	{ "counter-2", "the CPU-pinned events go while K is in error",
	  DOC_COUNTERS "item 2: K can claim a counter; review: by which event?",
	  "perf_event_release_kernel() schedules no event in; merge_sched_in() skips what is in "
	  "error; perf_event_enable() ends it, which KVM calls when the guest programs the counter",
	  counter_2, VPMU_POLICY_SHARED },
	{ "counter-3", "K is active, CPU-pinned events take every counter",
	  DOC_COUNTERS "item 3: K is in error and the guest reads the value of that moment",
	  NULL, counter_3, VPMU_POLICY_SHARED },
	{ "counter-4", "flexible events hold every counter, the guest enables one",
	  DOC_COUNTERS "item 4: K is active and correct", NULL, counter_4, VPMU_POLICY_SHARED },
	{ "counter-5", "K is active, flexible events want every counter",
	  DOC_COUNTERS "item 5: K keeps its counter", NULL, counter_5, VPMU_POLICY_SHARED },
	{ "counter-6", "equal priority: a task-pinned event comes when K has every counter",
	  REVIEW "an event of the same priority; ctx_resched(): the older one keeps it",
	  NULL, counter_6, VPMU_POLICY_SHARED },
	{ "counter-7", "equal priority: K comes when task-pinned events have every counter",
	  REVIEW "an event of the same priority; ctx_resched(): the older ones keep it",
	  NULL, counter_7, VPMU_POLICY_SHARED },
	{ "counter-8", "two vCPUs on one CPU, each with every counter",
	  REVIEW "all combinations; perf_event_context_sched_in(): contexts are switched",
	  NULL, counter_8, VPMU_POLICY_SHARED },
	{ "counter-9", "when is K inactive, and when in error?",
	  REVIEW "how about INACTIVE? Only while its thread is off the CPU", NULL,
	  counter_9, VPMU_POLICY_SHARED },
	{ "counter-10", "the vCPU is switched out, the CPU-pinned events go, it is switched in",
	  REVIEW "internal re-scheduling; ctx_sched_in(): only what is not in error comes back",
	  NULL, counter_10, VPMU_POLICY_SHARED },
	{ "counter-11", "eight counters of the guest, its cycles, and the host's NMI watchdog",
	  REVIEW "more events than counters; the youngest goes into error", NULL,
	  counter_11, VPMU_POLICY_SHARED },
	{ "counter-12", "a flexible event of the host that excludes guests",
	  REVIEW "all combinations; it occupies a counter in the guest too", NULL,
	  counter_12, VPMU_POLICY_SHARED },
	{ "lbr-1", "a CPU-pinned event has the branch records, the guest wants them",
	  DOC_LBR "item 1: the guest cannot use them",
	  VLBR_FAKE "active all the same, and the host's records stay empty (vlbr_exclude_host())",
	  lbr_1, VPMU_POLICY_SHARED },
	{ "lbr-2", "a flexible event has the branch records, the guest wants them",
	  DOC_LBR "item 2: V takes them",
	  "V is active, but the host's event stays active too, with empty records "
	  "(vlbr_exclude_host())", lbr_2, VPMU_POLICY_SHARED },
	{ "lbr-3", "V is active, a CPU-pinned event wants the branch records",
	  DOC_LBR "item 3: V loses them",
	  VLBR_FAKE "not pushed out; the host's event is active with empty records",
	  lbr_3, VPMU_POLICY_SHARED },
	{ "lbr-4", "V is active, a flexible event wants the branch records",
	  DOC_LBR "item 4: V keeps them",
	  "V keeps them; the host's event is active with empty records (vlbr_exclude_host())",
	  lbr_4, VPMU_POLICY_SHARED },
	{ "lbr-5", "the CPU-pinned event goes while V is in error",
	  DOC_LBR "item 5: V can become active; here by an enable, as for counters",
	  "KVM never calls perf_event_enable() for V; after intel_pmu_cleanup() has released it "
	  "the next access makes another (intel_pmu_create_guest_lbr_event())",
	  lbr_5, VPMU_POLICY_SHARED },
	{ "lbr-6", "V is active, a task-pinned event wants the branch records",
	  REVIEW "an event of the same priority; the older one keeps them",
	  VLBR_FAKE "not contended for; both are active", lbr_6, VPMU_POLICY_SHARED },
	{ "lbr-7", "a task-pinned event with another filter has the branch records",
	  REVIEW "an event of the same priority; the older one keeps them",
	  VLBR_FAKE "active all the same", lbr_7, VPMU_POLICY_SHARED },
	{ "lbr-8", "V is in error, the CPU-pinned event is gone, no event is enabled",
	  REVIEW "does it retry? Not by itself",
	  "the same, once V is in error; but the branch records do not bring that about "
	  "(intel_vlbr_constraints()), an older K does: lbr-cascade", lbr_8, VPMU_POLICY_SHARED },
	{ "lbr-cascade", "an older K loses its counter, and V the branch records",
	  "merge_sched_in(), can_add_hw: after one that does not fit none of the list is tried",
	  NULL, lbr_cascade, VPMU_POLICY_SHARED },
	{ "pebs-1", "P writes precise records, a CPU-pinned event wants PEBS",
	  "ctx_resched(), with PEBS as what two values cannot share", PEBS_HOST, pebs_1,
	  VPMU_POLICY_SHARED },
	{ "pebs-2", "a flexible event has PEBS, the guest wants it",
	  "ctx_resched(), with PEBS as what two values cannot share", PEBS_HOST, pebs_2,
	  VPMU_POLICY_SHARED },
	{ "lbr-equal", "events of the host with equal filters, and one with another",
	  "__intel_shared_reg_get_constraints(): equal values share", NULL,
	  lbr_equal, VPMU_POLICY_SHARED },
	{ "equal-pinned", "two CPU-pinned events, and who is the older one",
	  "add_event_to_groups(): age is that of the creation, an enable does not change it",
	  NULL, equal_pinned, VPMU_POLICY_SHARED },
	{ "equal-flexible", "two CPU-flexible events take turns",
	  "perf_rotate_context(): the first active one goes to the end of the list", NULL,
	  equal_flexible, VPMU_POLICY_SHARED },
	{ "kept-older", "K was on and off before task-pinned events took every counter",
	  "the front door, like KVM, keeps the event of a counter that is off, and its age", NULL,
	  kept_older, VPMU_POLICY_SHARED },
	{ "reenable-older", "an older event is enabled while the younger K has the counter",
	  "ctx_resched(): the list is scheduled again, oldest first", NULL, reenable_older,
	  VPMU_POLICY_SHARED },
	{ "reenable-error", "the guest enables K again, before and after the counters are free",
	  REVIEW "re-enable, re-create or re-schedule? Re-enable", NULL, reenable_error,
	  VPMU_POLICY_SHARED },
	{ "switch-lost", "CPU-pinned events come while the vCPU is off the CPU",
	  "merge_sched_in(): a pinned event that does not fit at a switch is in error", NULL,
	  switch_lost, VPMU_POLICY_SHARED },
	{ "surplus-three", "eight counters of the guest on branches, three events of the host",
	  "ctx_resched(): the list is scheduled again, the youngest do not fit", NULL,
	  surplus_three, VPMU_POLICY_SHARED },
	{ "cascade", "K loses a fixed counter, and a younger K its free one",
	  "merge_sched_in(), can_add_hw: after one that does not fit none of the list is tried",
	  NULL, cascade, VPMU_POLICY_SHARED },
	{ "mediated-vm", "a mediated VM, while an event counts guests",
	  "perf_create_mediated_pmu(): EBUSY", NULL, mediated_vm, VPMU_POLICY_MEDIATED },
	{ "mediated-event", "an event of the host, while a mediated VM exists",
	  "mediated_pmu_account_event(): EOPNOTSUPP, unless it excludes guests", NULL,
	  mediated_event, VPMU_POLICY_MEDIATED },
	{ "mediated-keeps", "a guest and a host that each want every counter",
	  "perf_load_guest_context(): the host's events leave at entry", NULL, mediated_keeps,
	  VPMU_POLICY_MEDIATED },
	{ "direct-keeps", "a guest without a host that has perf",
	  "there is no contention", NULL, direct_keeps, VPMU_POLICY_DIRECT },
};

const struct contention_case *contention_case_at(size_t i)
{
	return i < sizeof(cases) / sizeof(cases[0]) ? &cases[i] : NULL;
}

const char *contention_case_run(const struct contention_case *c,
				struct contention_result *result, struct contention_log *log)
{
	struct contention_world *w = calloc(1, sizeof(*w));
	const char *broken;

	if (!w)
		return "no memory";
	result->n = 0;
	if (log)
		memset(log, 0, sizeof(*log));
	w->log = log;
	w->result = result;
	world_init(w, c->policy);
	c->run(w);
	world_fini(w);
	broken = w->broken;
	free(w);
	return broken;
}
