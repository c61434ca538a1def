// SPDX-License-Identifier: GPL-2.0-only
/*
 * A self-test at load: counts a loop of known length through perf. A PMU that counts
 * wrong is worse than none.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/preempt.h>
#include <linux/smp.h>

#include "vpmu_guest.h"

#define ROUNDS		100000u
#define IN_A_ROUND	2u    /* instructions of a round */
/*
 * Instructions between the two readings, besides the loop: 200 were seen, and 6,100 where
 * KCSAN delays some accesses for microseconds.
 */
#define BESIDE_MAX	(IS_ENABLED(CONFIG_KCSAN) ? 100000u : 2000u)

static void loop(void)
{
	unsigned long rounds = ROUNDS;

	asm volatile("1: dec %0\n\tjnz 1b" : "+r" (rounds));
}

/* Read the event. Interrupts are off, and the event is on this CPU. */
static u64 count(struct perf_event *event)
{
	vg_read(event);
	return local64_read(&event->count);
}

/* Returns the reason why the test is not conclusive, or NULL and the loop's count. */
static const char *count_loop(struct perf_event *event, u64 *counted)
{
	const char *why = NULL;
	unsigned long flags;
	u64 before, running;

	local_irq_save(flags);
	if (READ_ONCE(event->oncpu) != smp_processor_id()) {
		why = "no counter is free";
	} else {
		before = count(event);
		running = vg_event(event)->times.running;
		loop();
		*counted = count(event) - before;
		if (vg.abi->version == 2 && vg.hz && vg_event(event)->times.running == running)
			why = "the host has no counter";
	}
	local_irq_restore(flags);
	return why;
}

static int check(struct perf_event *event)
{
	const u64 least = ROUNDS * IN_A_ROUND;
	u64 counted = 0, before, after, enabled, running;
	const char *why = count_loop(event, &counted);

	if (why) {
		pr_info("the self-test was left out: %s\n", why);
		return 0;
	}
	if (counted < least || counted > least + BESIDE_MAX) {
		pr_err("self-test: a loop of %llu instructions was counted as %llu\n",
		       least, counted);
		return -EIO;
	}
	perf_event_disable(event);
	before = perf_event_read_value(event, &enabled, &running);
	loop();
	after = perf_event_read_value(event, &enabled, &running);
	if (before != after) {
		pr_err("self-test: a disabled event counts, from %llu to %llu\n", before, after);
		return -EIO;
	}
	perf_event_enable(event);
	why = count_loop(event, &counted);
	if (!why && (counted < least || counted > least + BESIDE_MAX)) {
		pr_err("self-test: enabled again, %llu instructions were counted as %llu\n",
		       least, counted);
		return -EIO;
	}
	return 0;
}

int vg_selftest(void)
{
	struct perf_event_attr attr = {
		.type = vg.raw ? PERF_TYPE_HARDWARE : vg.pmu->type,
		.config = vg.raw ? PERF_COUNT_HW_INSTRUCTIONS : 0xc0,
		.size = sizeof(attr),
		.exclude_user = 1,
	};
	struct perf_event *event;
	int ret;

	migrate_disable();
	event = perf_event_create_kernel_counter(&attr, smp_processor_id(), NULL, NULL, NULL);
	if (IS_ERR(event)) {
		ret = PTR_ERR(event);
		if (ret == -ENOENT) {
			pr_info("the self-test was left out: instructions are not counted\n");
			ret = 0;
		} else {
			pr_err("self-test: no event: %d\n", ret);
		}
	} else {
		ret = check(event);
		perf_event_release_kernel(event);
	}
	migrate_enable();
	return ret;
}
