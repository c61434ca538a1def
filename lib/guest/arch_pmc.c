// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Counters over the provider's events.
 *
 * An event is made when the counter's own register enables it, so that what it
 * counts stays demanded while GLOBAL_CTRL toggles, which guests do at every
 * context switch. When its own enable is cleared it is parked: disabled, and
 * used again if the same selector comes back. What is parked and whose registers
 * were not written for a slice is given back, so that an idle PMU costs nothing.
 */
#include "arch_internal.h"

void arch_event_begin(struct vpmu_arch *v)
{
	v->batch++;
	if (v->provider->ops->begin)
		v->provider->ops->begin(v->provider);
}

void arch_pmc_commit(struct vpmu_arch *v)
{
	bool look;

	/* What could not be placed stands still; the event's state says so. */
	if (v->provider->ops->commit && v->provider->ops->commit(v->provider) < 0)
		v->unplaced = true;
	if (--v->batch || !v->settle)
		return;
	look = v->unplaced;
	v->settle = false;
	v->unplaced = false;
	arch_loss_settle(v, look);
}

struct vpmu_event *arch_event_of(struct vpmu_arch *v, unsigned int pmc)
{
	uint8_t *events = (uint8_t *)(v + 1);

	return (struct vpmu_event *)(void *)
		(events + (size_t)pmc * v->provider->ops->event_size);
}

/*
 * Which side of nesting a selector is for. With both bits set it counts on both,
 * but like with one of them only while EFER.SVME is set.
 */
static uint8_t pmc_nesting(const struct vpmu_arch *v, uint64_t evtsel)
{
	if (!v->svm || !(evtsel & ARCH_EVTSEL_ONLY))
		return ARCH_BANKS;
	if (!v->r.svme)
		return 0;
	return (evtsel & VPMU_EVTSEL_GUEST_ONLY ? ARCH_BANKS_NESTED : 0) |
	       (evtsel & VPMU_EVTSEL_HOST_ONLY ? ARCH_BANKS & ~ARCH_BANKS_NESTED : 0);
}

static uint8_t pmc_banks(const struct vpmu_arch *v, unsigned int pmc)
{
	uint8_t nesting = ARCH_BANKS;
	bool os, usr;

	if (pmc < v->n_gp) {
		nesting = pmc_nesting(v, v->r.evtsel[pmc]);
		os = v->r.evtsel[pmc] & VPMU_EVTSEL_OS;
		usr = v->r.evtsel[pmc] & VPMU_EVTSEL_USR;
	} else {
		os = arch_pmc_fixed_bits(v, pmc - v->n_gp) & VPMU_FIXED_OS;
		usr = arch_pmc_fixed_bits(v, pmc - v->n_gp) & VPMU_FIXED_USR;
	}
	return nesting & ((os ? VPMU_BANKS_KERNEL : 0) | (usr ? VPMU_BANKS_USER : 0));
}

/* All of a guest's counters share PEBS with each other, and with nobody else. */
#define PMC_PEBS_OURS	1

void arch_pmc_attr(const struct vpmu_arch *v, unsigned int pmc,
		   struct vpmu_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->banks = pmc_banks(v, pmc);
	attr->pinned = true;
	attr->slot = (int8_t)pmc;
	attr->period = v->valid.counter + 1;
	if ((arch_pebs_enabled(v) | v->pebs.claimed) >> pmc & 1) {
		attr->shared = VPMU_SHARED_PEBS;
		attr->extra = PMC_PEBS_OURS;
	}
	if (pmc < v->n_gp) {
		attr->fixed = -1;
		attr->select = v->r.evtsel[pmc] & v->select;
	} else {
		attr->fixed = (int8_t)(pmc - v->n_gp);
	}
	arch_extra_attr(v, pmc, attr);
	if (arch_topdown_is(v, pmc) && !attr->shared) {
		attr->shared = VPMU_SHARED_METRICS;
		attr->extra = VPMU_SHARED_ALONE;
	}
}

/* What of an attr's `extra` is not the same for all of the guest's events. */
static uint64_t pmc_extra(const struct vpmu_event_attr *attr)
{
	return attr->shared == VPMU_SHARED_OFFCORE_RSP ? attr->extra : 0;
}

/* First half of an overflow: from anywhere, NMI and other threads included. */
static void pmc_overflowed(struct vpmu_event *ev)
{
	struct vpmu_arch *v = ev->owner;

	vpmu_atomic_or(&v->pending, 1u << ev->index);
	v->ops->kick(v->ctx);
}

/* First half of a loss, or of its end: likewise. */
static void pmc_state_changed(struct vpmu_event *ev)
{
	struct vpmu_arch *v = ev->owner;

	vpmu_atomic_or(&v->changed, 1u << ev->index);
	v->ops->kick(v->ctx);
}

uint64_t arch_event_read(struct vpmu_arch *v, unsigned int pmc)
{
	uint64_t value = v->r.counter[pmc];

	if (v->made & 1u << pmc) {
		value += v->provider->ops->read(arch_event_of(v, pmc));
		value -= v->event[pmc].base;
	}
	return value & v->valid.counter;
}

/* After how many more occurrences it is to be looked at. */
static uint64_t pmc_left(const struct vpmu_arch *v, unsigned int pmc, uint64_t value)
{
	return arch_pebs_armed(v) >> pmc & 1 ? 1 : v->valid.counter + 1 - value;
}

void arch_event_rearm(struct vpmu_arch *v, uint32_t pmcs)
{
	unsigned int pmc;

	if (!(pmcs & v->made))
		return;
	arch_event_begin(v);
	for (pmc = 0; pmc < v->n_pmc; pmc++)
		if (pmcs & v->made & 1u << pmc)
			v->provider->ops->arm(arch_event_of(v, pmc),
					      pmc_left(v, pmc, arch_event_read(v, pmc)));
	arch_pmc_commit(v);
}

void arch_event_put(struct vpmu_arch *v, unsigned int pmc, uint64_t value)
{
	struct vpmu_event *ev = arch_event_of(v, pmc);
	const struct vpmu_provider_ops *ops = v->provider->ops;

	if (!(v->made & 1u << pmc)) {
		v->r.counter[pmc] = value;
		return;
	}
	arch_event_begin(v);
	v->r.counter[pmc] = value;
	v->event[pmc].base = ops->read(ev);
	ops->arm(ev, pmc_left(v, pmc, value));
	arch_pmc_commit(v);
}

static void pmc_restarted(struct vpmu_arch *v)
{
	if (v->ops->size > offsetof(struct vpmu_ops, restarted) && v->ops->restarted)
		v->ops->restarted(v->ctx);
}

void arch_pmc_write(struct vpmu_arch *v, unsigned int pmc, uint64_t value)
{
	if (!(v->own >> pmc & 1) && value != arch_event_read(v, pmc))
		pmc_restarted(v);
	v->touched |= 1u << pmc;
	v->pebs.wrapped &= ~(1u << pmc);
	arch_event_put(v, pmc, value);
	arch_pebs_watch(v);
}

/* Like a write to the legacy address. */
static uint64_t pmc_reload_value(const struct vpmu_arch *v, unsigned int pmc)
{
	uint64_t value = v->reload.value[pmc];

	if (value >> 31 & 1)
		value |= ~(uint64_t)UINT32_MAX;
	return value & v->valid.counter;
}

void arch_event_reload(struct vpmu_arch *v, uint32_t pmcs)
{
	unsigned int pmc;

	if (!v->valid.reload_by)
		return;
	arch_event_begin(v);
	for (pmc = 0; pmc < v->n_pmc; pmc++)
		if (v->reload.by[pmc] & pmcs)
			arch_event_put(v, pmc, pmc_reload_value(v, pmc));
	arch_pmc_commit(v);
}

uint32_t arch_pmc_silent(const struct vpmu_arch *v)
{
	uint32_t pmcs = 0;
	unsigned int pmc;

	for (pmc = 0; pmc < v->n_pmc; pmc++)
		if (v->reload.by[pmc] & 1u << pmc)
			pmcs |= 1u << pmc;
	return pmcs;
}

static void pmc_tell(struct vpmu_arch *v, const struct vpmu_event_attr *attr)
{
	const struct vpmu_event_def *def;
	uint64_t select = attr->select;
	uint32_t i;

	if (attr->fixed >= 0) {
		def = vpmu_event_find(v->model, 0, attr->fixed);
		if (def)
			select = def->select | (uint64_t)def->umask << 8;
	}
	for (i = 0; i < v->told.n; i++)
		if (v->told.row[i].select == select)
			break;
	if (i == VPMU_TOLD_MAX)
		return;
	if (i == v->told.n) {
		v->told.row[i].select = select;
		v->told.row[i].times = 0;
		v->told.n++;
	}
	v->told.row[i].times++;
}

static void pmc_make(struct vpmu_arch *v, unsigned int pmc)
{
	struct vpmu_event *ev = arch_event_of(v, pmc);
	const struct vpmu_provider_ops *ops = v->provider->ops;
	struct vpmu_event_attr attr;
	int err;

	arch_pmc_attr(v, pmc, &attr);
	if (!attr.banks) /* parked without a bank, by load */
		attr.banks = v->event[pmc].banks;
	ev->overflowed = pmc_overflowed;
	ev->changed = pmc_state_changed;
	ev->owner = v;
	ev->index = pmc;
	err = ops->create(v->provider, ev, &attr);
	if (err == -VPMU_ENOENT) {
		v->uncounted |= 1u << pmc;
		pmc_tell(v, &attr);
	}
	if (err)
		return;
	v->made |= 1u << pmc;
	v->event[pmc].select = attr.select;
	v->event[pmc].banks = attr.banks;
	v->event[pmc].base = 0;
	v->event[pmc].extra = pmc_extra(&attr);
	if (arch_topdown_is(v, pmc))
		arch_topdown_made(v);
	if (attr.shared == VPMU_SHARED_PEBS)
		v->pebs.claimed |= 1u << pmc;
	ops->arm(ev, pmc_left(v, pmc, v->r.counter[pmc]));
}

static void pmc_release(struct vpmu_arch *v, unsigned int pmc)
{
	struct vpmu_event *ev = arch_event_of(v, pmc);

	v->r.counter[pmc] = arch_event_read(v, pmc);
	if (arch_topdown_is(v, pmc))
		arch_topdown_look(v);
	if (v->clock && v->running)
		v->loss.pmc[pmc].running += v->running(ev);
	v->provider->ops->release(ev);
	v->made &= ~(1u << pmc);
	v->pebs.claimed &= ~(1u << pmc);
	v->on &= ~(1u << pmc);
}

static void pmc_release_set(struct vpmu_arch *v, uint32_t pmcs)
{
	unsigned int pmc;

	for (pmc = 0; pmc < v->n_pmc; pmc++)
		if (pmcs & 1u << pmc)
			pmc_release(v, pmc);
}

void arch_pmc_release_all(struct vpmu_arch *v)
{
	if (!v->made)
		return;
	arch_event_begin(v);
	pmc_release_set(v, v->made);
	arch_pmc_commit(v);
}

static bool pmc_stale(const struct vpmu_arch *v, unsigned int pmc)
{
	struct vpmu_event_attr attr;

	arch_pmc_attr(v, pmc, &attr);
	/* Guests switch PEBS off for moments: a claim to it stays with the event. */
	if (attr.shared == VPMU_SHARED_PEBS && !(v->pebs.claimed >> pmc & 1))
		return true;
	/* No bank at all is another way to stop: the event may come back. */
	return v->event[pmc].select != attr.select || v->event[pmc].extra != pmc_extra(&attr) ||
	       (attr.banks && v->event[pmc].banks != attr.banks);
}

static bool pmc_own_enable(const struct vpmu_arch *v, unsigned int pmc)
{
	if (pmc < v->n_gp && !(v->r.evtsel[pmc] & VPMU_EVTSEL_EN))
		return false;
	return pmc_banks(v, pmc);
}

static uint32_t pmc_gates(const struct vpmu_arch *v)
{
	if (v->r.status & VPMU_STATUS_CTR_FRZ)
		return 0;
	return v->ungated | arch_pmc_set(v, v->r.global_ctrl);
}

static bool pmc_denied(const struct vpmu_arch *v, unsigned int pmc)
{
	if (pmc < v->n_gp)
		return !vpmu_filter_allows(v->filter, v->r.evtsel[pmc] & v->select, -1);
	return !vpmu_filter_allows(v->filter, 0, (int)(pmc - v->n_gp));
}

/*
 * Bring the provider's events in line with the registers. @fresh: counters whose
 * own register has just been written; their events are made even while a gate
 * is closed. What failed for want of a counter is tried again whenever its gate
 * opens or its register is written, and never of its own accord.
 */
static void pmc_update(struct vpmu_arch *v, uint32_t fresh)
{
	const struct vpmu_provider_ops *ops = v->provider->ops;
	uint32_t on = v->own & pmc_gates(v);
	uint32_t start = on & ~v->on, stop = v->on & ~on & v->made;
	uint32_t make = ((fresh & v->own) | start) & ~(v->made | v->uncounted | v->filtered);
	uint32_t again = start | (fresh & on & v->loss.lost);
	unsigned int pmc;

	v->on = on;
	if (!(make | stop | (again & v->made)) && on == v->loss.on &&
	    (v->own || !v->loss.held))
		return;
	arch_event_begin(v);
	arch_loss_clock(v);
	for (pmc = 0; pmc < v->n_pmc; pmc++) {
		uint32_t bit = 1u << pmc;

		if (stop & bit)
			ops->disable(arch_event_of(v, pmc));
		if (make & bit)
			pmc_make(v, pmc);
		if ((again | make) & on & v->made & bit &&
		    ops->enable(arch_event_of(v, pmc)) < 0)
			v->unplaced = true;
	}
	v->settle = true;
	arch_pmc_commit(v);
	arch_pebs_watch(v);
}

void arch_pmc_gate(struct vpmu_arch *v)
{
	pmc_update(v, 0);
}

/* What the registers of @pmcs, or the filter, say now. */
static void pmc_adapt(struct vpmu_arch *v, uint32_t pmcs)
{
	uint32_t stale = 0;
	unsigned int pmc;

	for (pmc = 0; pmc < v->n_pmc; pmc++) {
		uint32_t bit = 1u << pmc;

		if (!(pmcs & bit))
			continue;
		v->own &= ~bit;
		v->filtered &= ~bit;
		if (pmc_own_enable(v, pmc))
			v->own |= bit;
		if (pmc_denied(v, pmc))
			v->filtered |= bit;
		if ((v->made & bit) && (v->filtered & bit || pmc_stale(v, pmc)))
			stale |= bit;
	}
	if (!((v->own | v->made | v->on) & pmcs) && (v->own || !v->loss.held))
		return;
	arch_event_begin(v);
	pmc_release_set(v, stale);
	v->settle = true;
	pmc_update(v, pmcs);
	arch_pmc_commit(v);
	arch_pebs_watch(v);
}

void arch_pmc_changed(struct vpmu_arch *v, uint32_t pmcs)
{
	v->uncounted &= ~pmcs;
	pmc_adapt(v, pmcs);
}

/* What nobody counts is not tried, and told, once more. */
void arch_pmc_filter(struct vpmu_arch *v)
{
	pmc_adapt(v, (1u << v->n_pmc) - 1);
}

void arch_pmc_resume(struct vpmu_arch *v, uint32_t parked)
{
	unsigned int pmc;

	v->own = 0;
	v->on = 0;
	v->uncounted = 0;
	arch_event_begin(v);
	for (pmc = 0; pmc < v->n_pmc; pmc++)
		if (parked & 1u << pmc && !pmc_denied(v, pmc))
			pmc_make(v, pmc);
	arch_pmc_changed(v, (1u << v->n_pmc) - 1);
	v->settle = true;
	v->unplaced = true;
	arch_pmc_commit(v);
}

bool arch_pmc_slice(struct vpmu_arch *v)
{
	uint32_t idle = v->made & ~v->own & ~v->touched;

	v->touched = 0;
	if (idle) {
		arch_event_begin(v);
		pmc_release_set(v, idle);
		arch_pmc_commit(v);
	}
	return v->made & ~v->own;
}

uint32_t arch_pmc_interrupting(const struct vpmu_arch *v)
{
	uint32_t pmcs = 0;
	unsigned int i;

	for (i = 0; i < v->n_gp; i++)
		if (v->r.evtsel[i] & VPMU_EVTSEL_INT)
			pmcs |= 1u << i;
	for (i = 0; i < v->n_fixed; i++)
		if (arch_pmc_fixed_bits(v, i) & VPMU_FIXED_PMI)
			pmcs |= 1u << (v->n_gp + i);
	return pmcs;
}
