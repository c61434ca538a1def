// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Counters that are logged in branch records: an entry's info says how often each of the first
 * counters has counted since the entry before it, 3 standing for more.
 *
 * The engine comes here at the boundary after each record. What has been counted by then
 * belongs to that record; if there are several, to the oldest, as no instruction was between
 * them. A counter that gets another event meanwhile keeps what it has not logged yet.
 *
 * Source: Linux, arch/x86/events/intel/lbr.c and core.c, arch/x86/include/asm/msr-index.h,
 * "branch counters logging".
 */
#include "arch_event.h"
#include "arch_internal.h"
#include "arch_lbr.h"

#define LOG_MOST	3u /* of two bits */

static void log_add(struct vpmu_arch *v, unsigned int pmc, uint64_t n)
{
	uint8_t *waiting = &v->lbr.log[pmc].waiting;

	*waiting = n < LOG_MOST - *waiting ? (uint8_t)(*waiting + n) : LOG_MOST;
}

/* Get the count of the counter's event, 0 if there is none. */
static uint64_t log_counted(struct vpmu_arch *v, unsigned int pmc)
{
	return v->made >> pmc & 1 ? v->provider->ops->read(arch_event_of(v, pmc)) : 0;
}

/* Take over what the counter has counted since it was last looked at. */
static void log_look(struct vpmu_arch *v, unsigned int pmc)
{
	uint64_t now = log_counted(v, pmc);

	log_add(v, pmc, now - v->lbr.log[pmc].seen);
	v->lbr.log[pmc].seen = now;
}

void arch_lbr_log_released(struct vpmu_arch *v, unsigned int pmc)
{
	if (!(v->lbr.logged >> pmc & 1))
		return;
	log_look(v, pmc);
	v->lbr.log[pmc].seen = 0; /* where the next event begins */
}

void arch_lbr_log_apply(struct vpmu_arch *v, bool recording)
{
	struct arch_lbr *b = &v->lbr;
	uint32_t logged = 0;
	unsigned int pmc;

	for (pmc = 0; recording && b->loggable >> pmc; pmc++)
		if (arch_evtsel_logs(v, pmc, v->r.evtsel[pmc]))
			logged |= 1u << pmc;
	if (logged == b->logged)
		return;
	if (!b->logged)
		(void)vpmu_lbr_inserted(b->stack, &b->log_inserted);
	for (pmc = 0; logged >> pmc; pmc++) {
		if (!(logged & ~b->logged & 1u << pmc))
			continue;
		b->log[pmc].seen = log_counted(v, pmc);
		b->log[pmc].waiting = 0;
	}
	if (!logged != !b->logged)
		v->ops.watch_lbr(v->ctx, logged);
	b->logged = logged;
}

uint64_t arch_lbr_log_waiting(struct vpmu_arch *v)
{
	uint64_t bits = 0;
	unsigned int pmc;

	for (pmc = 0; v->lbr.logged >> pmc; pmc++) {
		if (!(v->lbr.logged >> pmc & 1))
			continue;
		log_look(v, pmc);
		bits |= (uint64_t)v->lbr.log[pmc].waiting << (2 * pmc);
	}
	return bits;
}

void vpmu_arch_branched(struct vpmu_arch *v)
{
	struct arch_lbr *b = &v->lbr;
	struct vpmu_lbr_entry *e;
	unsigned int pmc;
	uint64_t n;

	vpmu_assert(arch_at_rest(v));
	if (!b->logged)
		return;
	n = vpmu_lbr_inserted(b->stack, &b->log_inserted);
	if (!n || n > VPMU_LBR_ENTRIES)
		return;
	e = vpmu_lbr_at(b->stack, (unsigned int)n - 1);
	e->info |= arch_lbr_log_waiting(v) << VPMU_LBR_LOG_SHIFT;
	for (pmc = 0; pmc < VPMU_LBR_LOG_COUNTERS; pmc++)
		b->log[pmc].waiting = 0;
}

void arch_lbr_log_resume(struct vpmu_arch *v, uint64_t bits)
{
	unsigned int pmc;

	for (pmc = 0; v->lbr.logged >> pmc; pmc++)
		log_add(v, pmc, bits >> (2 * pmc) & LOG_MOST);
}
