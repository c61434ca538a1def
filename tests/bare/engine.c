// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Work of a known number of instructions, so that the emulator's own can be counted for each
 * (bench/run --only-engine).
 *
 * Command line: work=N, one of engine.S, or beyond them none; instructions=N, about; events=2:
 * instructions and branches; events=8: cycles and five kinds of branches, too; lbr=1: branch
 * records. Prints the name of the work and its instructions.
 */
#include "bare.h"

extern const struct {
	void (*run)(uint64_t turns);
	const char *name;
	uint64_t instructions; /* executed in each turn */
} works[], works_end[];

bool on_trap(struct frame *f)
{
	(void)f;
	return false;
}

static void count(uint64_t events)
{
	static const uint32_t branches[] = { 0x00c4, 0x11c4, 0x01c4, 0x02c4, 0x08c4 };
	uint32_t n = events == 8 ? 5 : 1;

	for (uint32_t i = 0; i < n; i++)
		wrmsr(MSR_EVTSEL0 + i, EVTSEL_ON | branches[i]);
	wrmsr(MSR_FIXED_CTRL, events == 8 ? 0x333 : 0x003);
	wrmsr(MSR_GLOBAL, (events == 8 ? 7ull : 1ull) << 32 | ((1ull << n) - 1));
}

int main(const char *line)
{
	uint64_t work = option(line, "work", 0), events = option(line, "events", 0);
	uint64_t turns, before = 0;

	if (work >= (uint64_t)(works_end - works))
		return 0x21;
	if (events)
		count(events);
	if (option(line, "lbr", 0))
		wrmsr(MSR_DEBUGCTL, 1);
	turns = option(line, "instructions", 4000000) / works[work].instructions;
	if (events)
		before = rdmsr(MSR_FIXED0);
	works[work].run(turns);
	/* Beside the turns there are the call, what stands before the loop, and RDMSR. */
	if (events && rdmsr(MSR_FIXED0) - before - turns * works[work].instructions > 32) {
		print("not ok engine: other than ");
		print_number(works[work].instructions, 10);
		print(" instructions a turn\n");
		return 0x22;
	}
	print(works[work].name);
	print(" ");
	print_number(turns * works[work].instructions, 10);
	print("\n");
	return 0x21;
}
