// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Counts and overflows of the paravirtual PMU, over a time in which the guest is moved
 * from one VMM to another. A loop's count follows from those of two short ones: without
 * an overflow, and with one, whose handler is counted too.
 *
 * Command line: turns=N of the long loop, of two instructions each; bell=0: not by the
 * doorbell, by AMD's hypercall; lost=MASK: the new host has nothing for event 1 (1), 2
 * (2).
 */
#include "bare.h"
#include "pv.h"

#define SHORT	100000u
#define OVERFLOWS 8

static struct vpmu_pv_call ring __attribute__((aligned(32)));
static struct pv_two batch __attribute__((aligned(4096)));
static struct vpmu_pv_page page __attribute__((aligned(4096)));
static uint64_t n_nmis;
static bool bell;

bool on_trap(struct frame *f)
{
	n_nmis += f->vector == 2;
	return f->vector == 2;
}

static int64_t call(uint64_t op, const void *at)
{
	if (!bell)
		return pv_vmmcall(VPMU_PV_HYPERCALL, op, (uintptr_t)at, 0);
	ring = (struct vpmu_pv_call){ .size = sizeof(ring), .op = op, .a1 = (uintptr_t)at };
	asm volatile("wrmsr" : : "a" (&ring), "d" (0), "c" (VPMU_PV_MSR_DOORBELL) : "memory");
	return ring.result;
}

/* Two operations, of event 1 and of event 2. */
static bool both(uint16_t code, uint64_t period)
{
	pv_two_write(&batch, code, period);
	return call(VPMU_PV_OP_BATCH, &batch) == 2 && !batch.op[0].result && !batch.op[1].result;
}

/* Returns the count of @turns. */
static uint64_t loop(uint64_t turns, uint64_t period)
{
	uint64_t before = page.slot[0].count;

	n_nmis = 0;
	page.slot[1].overflows = 0;
	if (!both(VPMU_PV_ENABLE, period))
		return 0;
	asm volatile("1: dec %0; jnz 1b" : "+r" (turns));
	return both(VPMU_PV_DISABLE, 0) ? page.slot[0].count - before : 0;
}

/* Some are lost, until they are enabled again; others go on. */
static void lose(uint32_t lost, uint64_t turns, uint64_t none)
{
	const volatile struct vpmu_pv_slot *slot = page.slot;
	uint64_t count[2] = { slot[0].count, slot[1].count }, behind[2];
	uint64_t all = none + 2 * (turns - SHORT);

	loop(turns, 4 * turns);
	expect("lost, which", page.changed[0], lost);
	for (unsigned int i = 0; i < 2; i++) {
		count[i] = slot[i].count - count[i];
		behind[i] = slot[i].enabled - slot[i].running;
		/* The provider gets a clock before the guest continues. */
		if (!(lost >> i & 1) || lost == 3) {
			expect("not lost, count", count[i], all);
			expect("not lost, time", behind[i], 0);
			continue;
		}
		expect("lost, it counted until then", count[i] > 0, 1);
		expect("lost, and no more", count[i] < all, 1);
		expect("lost, time", behind[i] > 0, 1);
	}
	for (unsigned int i = 0; i < 2; i++)
		count[i] = slot[i].count;
	loop(SHORT, 4 * SHORT);
	for (unsigned int i = 0; i < 2; i++) {
		expect("found, count", slot[i].count - count[i], none);
		expect("found, time", slot[i].enabled - slot[i].running, behind[i]);
	}
}

int main(const char *line)
{
	struct vpmu_pv_setup setup = { .size = sizeof(setup), .page = (uintptr_t)&page };
	uint64_t turns = option(line, "turns", 10000000), none, one, all;

	bell = option(line, "bell", 1);
	if (call(VPMU_PV_OP_SETUP, &setup) || !both(VPMU_PV_OPEN, 0)) {
		print("not ok moved: no such events\n");
		return 0x22;
	}
	none = loop(SHORT, 4 * SHORT);
	one = loop(SHORT, SHORT + SHORT / 2);
	expect("moved, an overflow before", n_nmis, 1);
	if (option(line, "lost", 0)) {
		lose(option(line, "lost", 0), turns, none);
		return 0x21;
	}
	all = loop(turns, 2 * turns / OVERFLOWS - SHORT);
	expect("moved, count", all, none + 2 * (turns - SHORT) + OVERFLOWS * (one - none));
	expect("moved, overflows", page.slot[1].overflows, OVERFLOWS + 1);
	expect("moved, NMIs", n_nmis, OVERFLOWS);
	return 0x21;
}
