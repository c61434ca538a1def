// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The block that tells the guest which of its enabled counters do not count, and why.
 * Times are added up only where a set of counters changes: those that are on, and
 * of them those that run. Source: docs/GUEST-LOSS.md.
 */
#include "arch_event.h"
#include "arch_internal.h"
#include "arch_loss.h"

/* One counter's registers in the block; the fourth does not exist. */
#define LOSS_STRIDE	4

/* A clock that goes back counts as one that stands still: times only grow. */
static void loss_time(struct vpmu_arch *v, bool hold)
{
	uint64_t clock = v->clock(v->provider, hold);
	struct arch_loss *l = &v->loss;

	if ((int64_t)(clock - l->clock) > 0)
		l->now += clock - l->clock;
	l->clock = clock;
	l->held = hold;
}

/*
 * The clock is held as long as events are, also while a gate is closed or the guest has
 * disabled them: its context switch must not change what is demanded. A claim to the branch
 * records holds it, too, so that the slice comes at which it is given back.
 */
void arch_loss_clock(struct vpmu_arch *v)
{
	struct arch_loss *l = &v->loss;
	uint32_t changed = l->on ^ v->on;
	unsigned int pmc;

	l->on = v->on;
	if (!v->clock)
		return;
	loss_time(v, (v->own | v->made) != 0 || v->lbr.made);
	for (pmc = 0; changed >> pmc; pmc++) {
		if (!(changed >> pmc & 1))
			continue;
		if (l->on >> pmc & 1)
			l->pmc[pmc].enabled -= l->now;
		else
			l->pmc[pmc].enabled += l->now;
	}
}

/* For a provider that does not say how long its events have counted. */
static void loss_run(struct vpmu_arch *v, uint32_t run)
{
	struct arch_loss *l = &v->loss;
	uint32_t changed = l->run ^ run;
	unsigned int pmc;

	l->run = run;
	for (pmc = 0; changed >> pmc; pmc++) {
		if (!(changed >> pmc & 1))
			continue;
		if (run >> pmc & 1)
			l->pmc[pmc].running -= l->now;
		else
			l->pmc[pmc].running += l->now;
	}
}

uint64_t arch_loss_enabled(struct vpmu_arch *v, unsigned int pmc)
{
	const struct arch_loss *l = &v->loss;

	return l->pmc[pmc].enabled + (l->on >> pmc & 1 ? l->now : 0);
}

/*
 * Never more than enabled, also where the provider stops its clock a moment later
 * than we stopped ours.
 */
uint64_t arch_loss_running(struct vpmu_arch *v, unsigned int pmc)
{
	const struct arch_loss *l = &v->loss;
	uint64_t enabled = arch_loss_enabled(v, pmc);
	uint64_t running = l->pmc[pmc].running;

	if (v->clock && v->running && v->made >> pmc & 1)
		running += v->running(arch_event_of(v, pmc));
	else if (l->run >> pmc & 1)
		running += l->now;
	return running < enabled ? running : enabled;
}

static uint8_t loss_reason(const struct arch_loss *l, unsigned int pmc)
{
	if (l->filtered >> pmc & 1)
		return VPMU_LOSS_FILTERED;
	if (l->uncounted >> pmc & 1)
		return VPMU_LOSS_NOT_COUNTED;
	return l->lost >> pmc & 1 ? VPMU_LOSS_LOST : VPMU_LOSS_NONE;
}

static void loss_tell(struct vpmu_arch *v, unsigned int pmc)
{
	struct arch_loss *l = &v->loss;
	struct arch_loss_pmc *p = &l->pmc[pmc];

	p->reason = loss_reason(l, pmc);
	p->generation++;
	l->generation++;
	if (p->reason)
		p->last = p->reason;
	if (p->reason == VPMU_LOSS_LOST && l->ctrl & VPMU_LOSS_CTRL_PMI) {
		l->pmi = true;
		v->ops.kick(v->ctx);
	}
	vpmu_trace(&v->ops, v->ctx, p->reason ? VPMU_TRACE_LOST : VPMU_TRACE_FOUND,
		   pmc, p->reason, arch_loss_enabled(v, pmc), arch_loss_running(v, pmc));
}

/* The counters among @pmcs whose event does not count. */
static uint32_t loss_look(struct vpmu_arch *v, uint32_t pmcs)
{
	uint32_t lost = 0;
	unsigned int pmc;

	for (pmc = 0; pmcs >> pmc; pmc++)
		if (pmcs >> pmc & 1 &&
		    v->provider->ops->state(arch_event_of(v, pmc)) != VPMU_EVENT_ACTIVE)
			lost |= 1u << pmc;
	return lost;
}

void arch_loss_settle(struct vpmu_arch *v, bool look)
{
	struct arch_loss *l = &v->loss;
	uint32_t filtered = v->on & v->filtered;
	uint32_t uncounted = v->on & v->uncounted & ~filtered;
	uint32_t lost = v->on & ~(filtered | uncounted | v->made);
	uint32_t changed;
	unsigned int pmc;

	if (vpmu_atomic_read(&v->changed) && vpmu_atomic_take(&v->changed))
		look = true;
	if (look || l->lost)
		lost |= loss_look(v, v->on & v->made);
	changed = (l->filtered ^ filtered) | (l->uncounted ^ uncounted) | (l->lost ^ lost);
	l->filtered = filtered;
	l->uncounted = uncounted;
	l->lost = lost;
	if (v->clock && !v->running)
		loss_run(v, v->on & ~(filtered | uncounted | lost));
	for (pmc = 0; changed >> pmc; pmc++)
		if (changed >> pmc & 1)
			loss_tell(v, pmc);
}

void arch_loss_poll(struct vpmu_arch *v)
{
	if (!v->on) {
		(void)vpmu_atomic_take(&v->changed);
		return;
	}
	arch_loss_clock(v);
	arch_loss_settle(v, true);
}

void arch_loss_stop(struct vpmu_arch *v)
{
	struct arch_loss *l = &v->loss;
	unsigned int pmc;

	if (!l->on && !l->held)
		return;
	if (v->clock)
		loss_time(v, false);
	for (pmc = 0; v->clock && pmc < v->n_pmc; pmc++) {
		l->pmc[pmc].enabled += l->on >> pmc & 1 ? l->now : 0;
		l->pmc[pmc].running += l->run >> pmc & 1 ? l->now : 0;
	}
	l->on = 0;
	l->run = 0;
}

void arch_loss_reset(struct vpmu_arch *v)
{
	vpmu_assert(!v->made && !v->on);
	arch_loss_stop(v);
	arch_loss_settle(v, false);
	memset(&v->loss, 0, sizeof(v->loss));
}

enum vpmu_result arch_loss_ctrl_read(struct vpmu_arch *v, unsigned int i,
				     uint64_t *value)
{
	*value = v->loss.ctrl;
	return VPMU_HANDLED;
}

/* A PMI is for losses from now on, not for those that there are. */
enum vpmu_result arch_loss_ctrl_write(struct vpmu_arch *v, unsigned int i,
				      uint64_t value)
{
	if (value & ~VPMU_LOSS_CTRL_PMI)
		return VPMU_FAULT;
	arch_loss_poll(v);
	v->loss.ctrl = value;
	if (!(value & VPMU_LOSS_CTRL_PMI))
		v->loss.pmi = false;
	return VPMU_HANDLED;
}

enum vpmu_result arch_loss_pmc_read(struct vpmu_arch *v, unsigned int i,
				    uint64_t *value)
{
	unsigned int pmc = i / LOSS_STRIDE;
	const struct arch_loss_pmc *p = &v->loss.pmc[pmc];

	if (i % LOSS_STRIDE > VPMU_LOSS_REASON)
		return VPMU_FAULT;
	arch_loss_poll(v);
	switch (i % LOSS_STRIDE) {
	case VPMU_LOSS_ENABLED:
		*value = arch_loss_enabled(v, pmc);
		break;
	case VPMU_LOSS_RUNNING:
		*value = arch_loss_running(v, pmc);
		break;
	default:
		*value = p->reason | (uint32_t)p->last << 8 |
			 (uint64_t)p->generation << 32;
		break;
	}
	return VPMU_HANDLED;
}
