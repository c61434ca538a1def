// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Counters over the provider's events.
 *
 * An event is made when the counter's own register enables it, so that what it
 * counts stays demanded while GLOBAL_CTRL toggles, which guests do at every
 * context switch. When its own enable is cleared it is parked: disabled, and
 * used again if the same selector comes back. Parked events whose registers
 * were not written for a slice are given back, so that an idle PMU costs nothing.
 *
 * Changes go one way. A register is stored and its counters are marked; pmc_want()
 * then says what each of them is to count, pmc_plan_make() compares that with the
 * events that exist, and pmc_plan_apply() changes those that differ.
 */
#include "arch_event.h"
#include "arch_extra.h"
#include "arch_internal.h"
#include "arch_lbr.h"
#include "arch_loss.h"
#include "arch_pebs.h"
#include "arch_pmc.h"
#include "arch_topdown.h"

/* All of a guest's counters share PEBS with each other, and with no other user of it. */
#define PMC_PEBS_OURS	1

/* The registers, the filter and the features want this of a counter. */
struct pmc_want {
	uint64_t select; /* bits of its selector that choose what is counted; fixed: 0 */
	uint64_t extra;  /* value of what it shares */
	uint8_t banks;   /* in which it counts, 0: none */
	uint8_t shared;  /* enum vpmu_shared */
	bool own;        /* its own register enables it */
	bool denied;     /* by the filter */
	bool stale;      /* it has an event for something else */
};

/* The changes to events that follow, by counter. */
struct pmc_plan {
	uint32_t own, filtered, on; /* as they will be in struct vpmu_arch */
	uint32_t release, stop, make, start;
	bool moves;                 /* anything but releases */
	struct pmc_want want[ARCH_PMC_MAX]; /* for counters that are marked or to be made */
};

/*
 * The sides of nesting that a selector is for. With both bits it counts on both sides,
 * but only while EFER.SVME is set, as with one of them.
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

/* The value that an event shares, if it is not the same for all of the guest's events. */
static uint64_t pmc_response(const struct pmc_want *w)
{
	return w->shared == VPMU_SHARED_OFFCORE_RSP ? w->extra : 0;
}

/* True if the counter's event, which exists, does not count what is wanted. */
static bool pmc_stale(const struct vpmu_arch *v, unsigned int pmc, const struct pmc_want *w)
{
	const struct arch_made *made = &v->event[pmc];

	if (w->denied || (w->shared == VPMU_SHARED_PEBS && !(v->pebs.claimed >> pmc & 1)))
		return true;
	/* A guest also stops a counter by clearing both ring bits: the event is kept. */
	return made->select != w->select || made->extra != pmc_response(w) ||
	       (w->banks && made->banks != w->banks);
}

static void pmc_want(const struct vpmu_arch *v, unsigned int pmc, struct pmc_want *w)
{
	bool gp = pmc < v->n_gp;

	memset(w, 0, sizeof(*w));
	w->banks = pmc_banks(v, pmc);
	w->own = w->banks && (!gp || v->r.evtsel[pmc] & VPMU_EVTSEL_EN);
	if (gp)
		w->select = v->r.evtsel[pmc] & v->select;
	w->denied = !vpmu_filter_allows(v->filter, w->select, gp ? -1 : (int)(pmc - v->n_gp));
	if (gp && arch_extra_offcore(v, w->select, &w->extra)) {
		w->shared = VPMU_SHARED_OFFCORE_RSP;
	} else if (arch_pebs_enabled(v) >> pmc & 1) {
		w->shared = VPMU_SHARED_PEBS;
		w->extra = PMC_PEBS_OURS;
	}
	w->stale = v->made >> pmc & 1 && pmc_stale(v, pmc, w);
	if (w->shared)
		return;
	/* Guests switch PEBS off for moments: a claim to it stays with the event. */
	if (v->pebs.claimed >> pmc & 1 && !w->stale) {
		w->shared = VPMU_SHARED_PEBS;
		w->extra = PMC_PEBS_OURS;
	} else if (arch_topdown_is(v, pmc)) {
		w->shared = VPMU_SHARED_METRICS;
		w->extra = VPMU_SHARED_ALONE;
	}
}

static void pmc_attr(const struct vpmu_arch *v, unsigned int pmc, const struct pmc_want *w,
		     struct vpmu_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->banks = w->banks;
	attr->pinned = true;
	attr->fixed = pmc < v->n_gp ? -1 : (int8_t)(pmc - v->n_gp);
	attr->slot = (int8_t)pmc;
	attr->select = w->select;
	attr->extra = w->extra;
	attr->period = v->valid.counter + 1;
	attr->shared = w->shared;
}

uint8_t arch_pmc_quality(struct vpmu_arch *v, unsigned int pmc)
{
	struct vpmu_event_attr attr;
	struct pmc_want want;

	if (v->made >> pmc & 1)
		return arch_event_of(v, pmc)->quality;
	pmc_want(v, pmc, &want);
	pmc_attr(v, pmc, &want, &attr);
	return (uint8_t)v->provider->ops->quality(v->provider, &attr);
}

/* First half of an overflow: from anywhere, NMI and other threads included. */
static void pmc_overflowed(struct vpmu_event *ev)
{
	struct vpmu_arch *v = ev->owner;

	vpmu_atomic_or(&v->pending, 1u << ev->index);
	v->ops.kick(v->ctx);
}

/* First half of a loss, or of its end: likewise. */
static void pmc_state_changed(struct vpmu_event *ev)
{
	struct vpmu_arch *v = ev->owner;

	vpmu_atomic_or(&v->changed, 1u << ev->index);
	v->ops.kick(v->ctx);
}

static void pmc_restarted(struct vpmu_arch *v)
{
	if (v->ops.counter_restarted)
		v->ops.counter_restarted(v->ctx);
}

void arch_pmc_write(struct vpmu_arch *v, unsigned int pmc, uint64_t value)
{
	if (!(v->own >> pmc & 1) && value != arch_event_read(v, pmc))
		pmc_restarted(v);
	v->touched |= 1u << pmc;
	arch_pebs_disarm(v, 1u << pmc);
	arch_event_put(v, pmc, value);
	arch_pebs_set_sampling(v);
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

/* Note that the guest has enabled what no provider counts. */
static void pmc_note(struct vpmu_arch *v, const struct vpmu_event_attr *attr)
{
	const struct vpmu_event_def *def;
	uint64_t select = attr->select;
	uint32_t i;

	if (attr->fixed >= 0) {
		def = vpmu_event_find(v->model, 0, attr->fixed);
		if (def)
			select = def->select | (uint64_t)def->umask << 8;
	}
	for (i = 0; i < v->uncounted_events.n; i++)
		if (v->uncounted_events.row[i].select == select)
			break;
	if (i == VPMU_UNCOUNTED_MAX)
		return;
	if (i == v->uncounted_events.n) {
		v->uncounted_events.row[i].select = select;
		v->uncounted_events.row[i].times = 0;
		v->uncounted_events.n++;
	}
	v->uncounted_events.row[i].times++;
}

static void pmc_make(struct vpmu_arch *v, unsigned int pmc, const struct pmc_want *want)
{
	struct vpmu_event *ev = arch_event_of(v, pmc);
	struct vpmu_event_attr attr;
	int err;

	vpmu_assert(v->batch && !(v->made >> pmc & 1) && !want->denied);
	pmc_attr(v, pmc, want, &attr);
	if (!attr.banks) /* it was parked without a bank when its state was saved */
		attr.banks = v->event[pmc].banks;
	ev->overflowed = pmc_overflowed;
	ev->changed = pmc_state_changed;
	ev->owner = v;
	ev->index = pmc;
	err = v->provider->ops->create(v->provider, ev, &attr);
	if (err == -VPMU_ENOENT) {
		v->uncounted |= 1u << pmc;
		pmc_note(v, &attr);
	}
	if (err)
		return;
	v->made |= 1u << pmc;
	v->event[pmc].select = attr.select;
	v->event[pmc].banks = attr.banks;
	v->event[pmc].base = 0;
	v->event[pmc].extra = pmc_response(want);
	if (arch_topdown_is(v, pmc))
		arch_topdown_made(v);
	if (attr.shared == VPMU_SHARED_PEBS)
		v->pebs.claimed |= 1u << pmc;
	arch_event_arm(v, pmc, v->r.counter[pmc]);
}

static void pmc_release(struct vpmu_arch *v, unsigned int pmc)
{
	struct vpmu_event *ev = arch_event_of(v, pmc);

	vpmu_assert(v->batch && v->made >> pmc & 1);
	v->r.counter[pmc] = arch_event_read(v, pmc);
	arch_lbr_log_released(v, pmc);
	if (arch_topdown_is(v, pmc))
		arch_topdown_look(v);
	if (v->clock && v->running)
		v->loss.pmc[pmc].running += v->running(ev);
	v->provider->ops->release(ev);
	v->made &= ~(1u << pmc);
	v->pebs.claimed &= ~(1u << pmc);
}

static void pmc_release_set(struct vpmu_arch *v, uint32_t pmcs)
{
	unsigned int pmc;

	for (pmc = 0; pmcs >> pmc; pmc++)
		if (pmcs >> pmc & 1)
			pmc_release(v, pmc);
}

void arch_pmc_release_all(struct vpmu_arch *v)
{
	if (!v->made)
		return;
	arch_event_begin(v);
	pmc_release_set(v, v->made);
	(void)arch_event_end(v);
}

static uint32_t pmc_gates(const struct vpmu_arch *v)
{
	if (v->r.status & VPMU_STATUS_CTR_FRZ)
		return 0;
	return v->ungated | arch_pmc_set(v, v->r.global_ctrl);
}

bool arch_pmc_toggle(struct vpmu_arch *v, unsigned int pmc)
{
	uint32_t bit = 1u << pmc;

	if (!(v->made & bit) || pmc_gates(v) & bit)
		return false;
	v->own &= ~bit;
	if (v->r.evtsel[pmc] & VPMU_EVTSEL_EN && pmc_banks(v, pmc))
		v->own |= bit;
	return true;
}

/*
 * Events of marked counters are made even while a gate is closed. An event that failed
 * for want of a counter is tried again when it is marked, or when its gate opens.
 */
static void pmc_plan_make(const struct vpmu_arch *v, const struct arch_marks *marks,
			  struct pmc_plan *p)
{
	uint32_t marked = marks->pmcs, kept, more, retry;
	unsigned int pmc;

	vpmu_assert(!(marked >> v->n_pmc));
	p->release = marks->renew & v->made;
	p->own = v->own & ~marked;
	p->filtered = v->filtered & ~marked;
	for (pmc = 0; marked >> pmc; pmc++) {
		uint32_t bit = 1u << pmc;

		if (!(marked & bit))
			continue;
		pmc_want(v, pmc, &p->want[pmc]);
		p->own |= p->want[pmc].own ? bit : 0;
		p->filtered |= p->want[pmc].denied ? bit : 0;
		p->release |= p->want[pmc].stale ? bit : 0;
	}
	kept = v->made & ~p->release;
	p->on = p->own & pmc_gates(v);
	p->stop = v->on & ~p->on & kept;
	p->start = p->on & ~(v->on & ~p->release);
	p->make = ((marked & p->own) | p->start) & ~(kept | v->uncounted | p->filtered);
	retry = marked & p->on & v->loss.lost;
	p->start = (p->start | retry | p->make) & p->on & (kept | p->make);
	p->moves = p->make | p->stop | p->start || p->on != v->loss.on ||
		   (v->loss.held && !(p->own | kept));
	more = p->make & ~marked;
	for (pmc = 0; more >> pmc; pmc++)
		if (more >> pmc & 1)
			pmc_want(v, pmc, &p->want[pmc]);
}

static void pmc_plan_apply(struct vpmu_arch *v, const struct pmc_plan *p)
{
	const struct vpmu_provider_ops *ops = v->provider->ops;
	uint32_t all = p->stop | p->make | p->start;
	unsigned int pmc;

	pmc_release_set(v, p->release);
	if (!p->moves)
		return;
	arch_loss_clock(v);
	for (pmc = 0; all >> pmc; pmc++) {
		uint32_t bit = 1u << pmc;

		if (p->stop & bit)
			ops->disable(arch_event_of(v, pmc));
		if (p->make & bit)
			pmc_make(v, pmc, &p->want[pmc]);
		if (p->start & v->made & bit && ops->enable(arch_event_of(v, pmc)) < 0)
			v->unplaced = true;
	}
}

/* End a batch in which events were made or enabled, and look for losses. */
static void pmc_commit(struct vpmu_arch *v)
{
	bool look;

	if (!arch_event_end(v) || !v->settle)
		return;
	look = v->unplaced;
	v->settle = false;
	v->unplaced = false;
	arch_loss_settle(v, look);
}

static void pmc_sync(struct vpmu_arch *v, const struct arch_marks *marked)
{
	struct pmc_plan plan;
	bool told;

	pmc_plan_make(v, marked, &plan);
	/* The guest is told another reason why a counter that is on does not count. */
	told = (v->filtered ^ plan.filtered) & plan.on;
	v->own = plan.own;
	v->filtered = plan.filtered;
	v->on = plan.on;
	if (!plan.moves && !plan.release && !told) {
		arch_event_rearm(v, marked->rearm);
	} else {
		arch_event_begin(v);
		arch_event_rearm(v, marked->rearm);
		pmc_plan_apply(v, &plan);
		v->settle = true;
		pmc_commit(v);
	}
	arch_pebs_set_sampling(v);
}

void arch_sync(struct vpmu_arch *v)
{
	struct arch_marks marked = v->marked;

	memset(&v->marked, 0, sizeof(v->marked));
	if (marked.pmcs | marked.rearm || marked.gates)
		pmc_sync(v, &marked);
	if (marked.lbr)
		arch_lbr_apply(v);
}

void arch_pmc_resume(struct vpmu_arch *v, uint32_t parked)
{
	struct pmc_want want;
	unsigned int pmc;

	vpmu_assert(!v->made);
	v->own = 0;
	v->on = 0;
	v->uncounted = 0;
	arch_event_begin(v);
	for (pmc = 0; pmc < v->n_pmc; pmc++) {
		if (!(parked >> pmc & 1))
			continue;
		pmc_want(v, pmc, &want);
		if (!want.denied)
			pmc_make(v, pmc, &want);
	}
	v->uncounted = 0;
	v->marked.pmcs = (1u << v->n_pmc) - 1;
	arch_sync(v);
	v->settle = true;
	v->unplaced = true;
	pmc_commit(v);
}

bool arch_pmc_slice(struct vpmu_arch *v)
{
	uint32_t idle = v->made & ~v->own & ~v->touched;

	v->touched = 0;
	if (idle) {
		arch_event_begin(v);
		pmc_release_set(v, idle);
		if (!(v->own | v->made))
			arch_loss_clock(v);
		(void)arch_event_end(v);
	}
	return v->made & ~v->own;
}

/* One by one: after a pinned event that finds no counter perf enables none that follows it. */
void arch_pmc_regain(struct vpmu_arch *v)
{
	uint32_t lost, one;

	for (lost = v->on & v->loss.lost; lost; lost &= ~one) {
		one = lost & -lost;
		arch_mark(v, one);
		v->marked.renew = one;
		arch_sync(v);
	}
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
