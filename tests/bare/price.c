// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Calls the paravirtual PMU's host again and again, so that the cost can be measured
 * (bench/run --only-kvm).
 *
 * Command line: turns=N of VERSION, or with events=M of two batches, one that enables M
 * events and one that disables them; bell=1: by the doorbell.
 */
#include "bare.h"
#include "pv.h"

#define EVENTS_MAX 32

static struct vpmu_pv_call ring __attribute__((aligned(32)));
static struct {
	struct vpmu_pv_batch head;
	struct vpmu_pv_op op[EVENTS_MAX];
} on __attribute__((aligned(4096))), off __attribute__((aligned(4096)));
static struct vpmu_pv_page page __attribute__((aligned(4096)));
static bool bell;

bool on_trap(struct frame *f)
{
	(void)f;
	return false;
}

static int64_t call(uint64_t op, const void *at)
{
	if (!bell)
		return pv_vmmcall(VPMU_PV_HYPERCALL, op, (uintptr_t)at, 0);
	ring = (struct vpmu_pv_call){ .size = sizeof(ring), .op = op, .a1 = (uintptr_t)at };
	asm volatile("wrmsr" : : "a" (&ring), "d" (0), "c" (VPMU_PV_MSR_DOORBELL) : "memory");
	return ring.result;
}

/* Open them, and leave the batches as they will be used. */
static bool prepare(uint32_t n)
{
	struct vpmu_pv_setup s = { .size = sizeof(s), .page = (uintptr_t)&page };
	uint32_t i;

	on.head.size = off.head.size = sizeof(on.head) + n * sizeof(on.op[0]);
	on.head.n_ops = off.head.n_ops = n;
	for (i = 0; i < n; i++) {
		on.op[i].op = VPMU_PV_OPEN;
		off.op[i].op = VPMU_PV_DISABLE;
		on.op[i].id = off.op[i].id = i + 1;
		on.op[i].u.open.config = 1; /* instructions */
	}
	if (call(VPMU_PV_OP_SETUP, &s) || call(VPMU_PV_OP_BATCH, &on) != n)
		return false;
	for (i = 0; i < n; i++) {
		if (on.op[i].result)
			return false;
		on.op[i].op = VPMU_PV_ENABLE;
		on.op[i].slot = i;
		memset(&on.op[i].u, 0, sizeof(on.op[i].u));
	}
	return true;
}

/* Each of the events must have counted: else it was not this that was paid for. */
static bool counted(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (on.op[i].result || off.op[i].result || !page.slot[i].count)
			return false;
	return true;
}

int main(const char *line)
{
	uint64_t turns = option(line, "turns", 1000), n = option(line, "events", 0), i;

	bell = option(line, "bell", 0);
	if (n > EVENTS_MAX || (n && !prepare(n))) {
		print("not ok price: no such events\n");
		return 0x22;
	}
	for (i = 0; i < turns; i++) {
		call(n ? VPMU_PV_OP_BATCH : VPMU_PV_OP_VERSION, n ? &on : NULL);
		if (n)
			call(VPMU_PV_OP_BATCH, &off);
	}
	if (!counted(n)) {
		print("not ok price: an event has not counted\n");
		return 0x22;
	}
	return 0x21;
}
