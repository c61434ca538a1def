// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Counts and overflows of the architectural PMU of a real KVM, over a time in which the guest
 * is moved from one VMM to another. A loop's count follows from those of two short ones:
 * without an overflow, and with one, whose handler is counted too.
 *
 * Command line: turns=N of each long loop, of two instructions each; rounds=N of these;
 * overflows=N of each.
 */
#include "bare.h"

#define SHORT	100000u
#define WIDTH	0xffffffffffffull

/* Counter 0 counts instructions; counter 1 does, too, and overflows. */
static uint32_t select[2], counter[2], global, reset;
static uint64_t event, period;
static volatile uint64_t n_nmis;

static void arm(void)
{
	wrmsr(counter[1], -period & WIDTH);
}

bool on_trap(struct frame *f)
{
	if (f->vector != 2)
		return false;
	n_nmis++;
	wrmsr(reset, 2);
	arm();
	apic_write(APIC_LVTPC, LVT_NMI);
	return true;
}

static bool version_2(void)
{
	uint32_t a = 0, b, c = 0, d;

	cpuid(0, &a, &b, &c, &d);
	if (b == 0x68747541) { /* "Auth" */
		cpuid(0x80000022, &a, &b, &c, &d);
		if (!(a & 1))
			return false;
		for (unsigned int i = 0; i < 2; i++) {
			select[i] = 0xc0010200 + 2 * i;
			counter[i] = 0xc0010201 + 2 * i;
		}
		global = 0xc0000301;
		reset = 0xc0000302;
		event = EVTSEL_ON | 0xc0;
		return true;
	}
	cpuid(10, &a, &b, &c, &d);
	for (unsigned int i = 0; i < 2; i++) {
		select[i] = MSR_EVTSEL0 + i;
		counter[i] = 0x4c1 + i; /* full width */
	}
	global = MSR_GLOBAL;
	reset = MSR_RESET;
	event = EVTSEL_ON | 0xc0;
	return (a & 0xff) >= 2;
}

/* Returns the count of @turns with an overflow each @after instructions. */
static uint64_t loop(uint64_t turns, uint64_t after)
{
	n_nmis = 0;
	period = after;
	wrmsr(counter[0], 0);
	arm();
	wrmsr(global, 3);
	asm volatile("1: dec %0; jnz 1b" : "+r" (turns));
	wrmsr(global, 0);
	return rdmsr(counter[0]);
}

int main(const char *line)
{
	uint64_t turns = option(line, "turns", 10000000), rounds = option(line, "rounds", 1);
	uint64_t overflows = option(line, "overflows", 8), after = 2 * turns / overflows;
	uint64_t none, one, all;

	if (!version_2()) {
		print("not ok carried: a PMU of version 2 is needed\n");
		return 0x22;
	}
	apic_write(APIC_SVR, 0x1ff);
	apic_write(APIC_LVTPC, LVT_NMI);
	wrmsr(global, 0);
	wrmsr(select[0], event);
	wrmsr(select[1], event);
	none = loop(SHORT, 4 * SHORT);
	expect("no overflow before", n_nmis, 0);
	one = loop(SHORT, SHORT + SHORT / 2);
	expect("an overflow before", n_nmis, 1);
	while (rounds--) {
		/*
		 * The loop ends in the middle between the last one and the next, as long as all
		 * handlers together have fewer instructions than half a period.
		 */
		all = loop(turns, after - after / overflows / 2);
		expect("count", all, none + 2 * (turns - SHORT) + overflows * (one - none));
		expect("NMIs", n_nmis, overflows);
		quiet = true;
	}
	return 0x21;
}
