// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The paravirtual PMU, by AMD's hypercall, on a host some of whose calls fail. For each
 * "r" on the serial port: RESET, and two events are set up, opened, enabled, counted with
 * and disabled, of which one overflows. Each answer is a documented one, what is enabled
 * counts exactly or says that it is lost and counts nothing. Then comes a line: "whole",
 * or "less" where something was refused or lost. "q" ends it.
 */
#include "bare.h"
#include "pv.h"

#define TURNS	50000u /* turns of two instructions */

static struct pv_two batch __attribute__((aligned(4096)));
static volatile struct vpmu_pv_page page __attribute__((aligned(4096)));
static volatile uint64_t n_nmis;
static bool less, wrong;
static uint64_t known[2]; /* the counts without an overflow, and with one */

bool on_trap(struct frame *f)
{
	n_nmis += f->vector == 2;
	return f->vector == 2;
}

static int64_t call(uint64_t op, const void *at)
{
	return pv_vmmcall(VPMU_PV_HYPERCALL, op, (uintptr_t)at, 0);
}

static void fail(const char *what, int64_t found)
{
	wrong = true;
	print("not ok ");
	print(what);
	print(found < 0 ? ": -" : ": ");
	print_number(found < 0 ? -found : found, 10);
	print("\n");
}

/* It is as it should be; or else one of the others, which are positive. */
static bool is(const char *what, int64_t found, int64_t due, int a, int b, int c)
{
	if (found == due)
		return true;
	less = true;
	if (found >= 0 || (found != -a && found != -b && found != -c))
		fail(what, found);
	return false;
}

static bool answered(const char *what, int64_t answer)
{
	return is(what, answer, 2, VPMU_PV_EFAULT, VPMU_PV_ENOSYS, VPMU_PV_ENOSYS);
}

/* The outcome of a round's ENABLE and DISABLE. */
struct counted {
	int64_t enable, disable;
	int32_t enabled[2], disabled[2];
	bool lost[2];
};

/*
 * The instructions between the two calls are the same each time, whatever the calls
 * answer.
 */
static void count(uint64_t period, struct counted *c)
{
	uint64_t turns = TURNS;

	pv_two_write(&batch, VPMU_PV_ENABLE, period);
	c->enable = call(VPMU_PV_OP_BATCH, &batch);
	for (int i = 0; i < 2; i++) {
		c->enabled[i] = batch.op[i].result;
		c->lost[i] = page.slot[i].flags & VPMU_PV_SLOT_LOST;
	}
	asm volatile("1: dec %0; jnz 1b" : "+r" (turns));
	pv_two_write(&batch, VPMU_PV_DISABLE, 0);
	c->disable = call(VPMU_PV_OP_BATCH, &batch);
	for (int i = 0; i < 2; i++)
		c->disabled[i] = batch.op[i].result;
}

static void check(unsigned int i, bool lost, uint64_t found)
{
	if (lost)
		less = true;
	if (lost ? found : known[n_nmis != 0] && found != known[n_nmis != 0])
		fail(lost ? "count of a lost event" : "count", found);
	if (!lost && !known[n_nmis != 0])
		known[n_nmis != 0] = found;
	if (i && n_nmis != page.slot[i].overflows)
		fail("overflows and NMIs differ", n_nmis);
}

static void round(uint64_t period)
{
	struct vpmu_pv_setup setup = { .size = sizeof(setup), .page = (uintptr_t)&page };
	struct counted c;
	bool ready, on, off;

	less = false;
	n_nmis = 0;
	is("RESET", call(VPMU_PV_OP_RESET, NULL), 0, VPMU_PV_ENOSYS, VPMU_PV_ENOSYS,
	   VPMU_PV_ENOSYS);
	ready = is("SETUP", call(VPMU_PV_OP_SETUP, &setup), 0, VPMU_PV_ENOSYS, VPMU_PV_EFAULT,
		   VPMU_PV_EADDRNOTAVAIL);
	pv_two_write(&batch, VPMU_PV_OPEN, 0);
	if (answered("OPEN", call(VPMU_PV_OP_BATCH, &batch)))
		for (int i = 0; i < 2; i++)
			is("OPEN's", batch.op[i].result, 0, VPMU_PV_ENOENT, VPMU_PV_ENOENT,
			   VPMU_PV_ENOENT);
	count(period, &c);
	on = answered("ENABLE", c.enable);
	off = answered("DISABLE", c.disable); /* or it counts until the next RESET */
	for (int i = 0; i < 2; i++) {
		if (off)
			is("DISABLE's", c.disabled[i], 0, VPMU_PV_ENOENT, VPMU_PV_ENOENT,
			   VPMU_PV_ENOENT);
		if (on && is("ENABLE's", c.enabled[i], 0, VPMU_PV_ENOENT, VPMU_PV_EINVAL,
			     VPMU_PV_EINVAL) && ready && off)
			check(i, c.lost[i], page.slot[i].count);
	}
}

int main(const char *line)
{
	char c;

	(void)line;
	for (;;) {
		while (!(inb(0x3fd) & 1))
			;
		c = inb(0x3f8);
		if (c == 'q')
			return wrong ? 0x22 : 0x21;
		round(c == 'n' ? 8 * TURNS : 3 * TURNS / 2);
		print(less ? "less\n" : "whole\n");
	}
}
