// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Branch records as the guest sees them. Formats are views of silicon's stack
 * (lbr.h): the legacy ones show its ring and its top, architectural LBR shows
 * entry 0 as the newest.
 *
 * The facility has one owner. The guest's claim is an event of the provider that
 * needs no counter, made at the first access and given back when the guest has
 * not used it for a slice. While that event is active the guest's accesses reach
 * the stack. While it is not they reach a copy, which holds what the guest writes
 * and into which nothing is recorded, and the loss block says so. At a loss the copy
 * begins empty, and when the facility comes back the stack begins as the copy is.
 *
 * Where the embedder has the records, it makes the claim and says whether it succeeded. The
 * guest's accesses come here only while it has not, so there is nothing but the copy.
 *
 * Source: SDM vol. 3, "Last Branch Records", "LBR Stack", "Freezing LBR and
 * Performance Counters on PMI", "Filtering of Last Branch Records", "Call-Stack
 * Profiling"; Linux, arch/x86/events/intel/lbr.c and arch/x86/events/amd/lbr.c.
 */
#include <vpmu/state.h>

#include "arch_event.h"
#include "arch_internal.h"
#include "arch_lbr.h"
#include "arch_loss.h"

#define LBR_SELECT_VALID	0x1ffull
#define LBR_SELECT_STACK	(1ull << 9)

/* In the info of an AMD's entry: FROM and TO are as the guest has written them. */
#define LBR_AMD_WRITTEN		1ull
#define LBR_AMD_MISPREDICTED	(1ull << 63) /* FROM */
#define LBR_AMD_VALID		(1ull << 63) /* TO */
#define LBR_AMD_TO		((1ull << 61) - 1)

/* The first formats have addresses only, and no filter. */
static void lbr_resolve_legacy(struct vpmu_arch *v)
{
	uint64_t format = v->capabilities & VPMU_CAP_LBR;
	struct arch_lbr *b = &v->lbr;

	b->address = format == VPMU_CAP_LBR_FLAGS ? UINT64_MAX >> 1 :
		     format == VPMU_CAP_LBR_FLAGS2 ? UINT64_MAX >> 3 : UINT64_MAX;
	v->valid.debugctl |= VPMU_DEBUGCTL_LBR;
	v->has[ARCH_HAS_LBR_TOS] = 1;
	if (format < VPMU_CAP_LBR_FLAGS) {
		v->has[ARCH_HAS_LBR_OLD] = b->depth;
		return;
	}
	b->marks = VPMU_LBR_MISPREDICTED;
	v->has[ARCH_HAS_LBR] = b->depth;
	v->has[ARCH_HAS_LBR_SELECT] = 1;
	b->valid = LBR_SELECT_VALID | (format > VPMU_CAP_LBR_FLAGS ? LBR_SELECT_STACK : 0);
	if (format == VPMU_CAP_LBR_INFO) {
		b->info = 7ull << 61 | VPMU_LBR_CYCLES;
		b->marks |= VPMU_LBR_CYCLES;
		v->has[ARCH_HAS_LBR_INFO] = b->depth;
	}
}

static void lbr_resolve_amd(struct vpmu_arch *v)
{
	struct arch_lbr *b = &v->lbr;

	b->valid = LBR_SELECT_VALID;
	b->info = LBR_AMD_WRITTEN;
	b->marks = VPMU_LBR_MISPREDICTED;
	v->has[ARCH_HAS_AMD_LBR] = 2 * b->depth;
	v->has[ARCH_HAS_AMD_LBR_CTL] = 2;
	if (v->valid.debugctl & VPMU_DEBUGCTL_FREEZE_LBRS) {
		v->valid.status |= VPMU_STATUS_LBR_FRZ;
		v->valid.status_set |= VPMU_STATUS_LBR_FRZ;
	}
}

void arch_lbr_resolve(struct vpmu_arch *v)
{
	struct arch_lbr *b = &v->lbr;

	b->depth = v->model->lbr_entries ? v->model->lbr_entries : VPMU_LBR_ENTRIES;
	b->address = UINT64_MAX;
	switch (b->kind) {
	case ARCH_LBR_LEGACY:
		lbr_resolve_legacy(v);
		break;
	case ARCH_LBR_AMD:
		lbr_resolve_amd(v);
		break;
	default:
		b->valid = VPMU_LBR_CTL_VALID;
		b->info = 0xffull << 56 | VPMU_LBR_CYCLES;
		b->marks = VPMU_LBR_MISPREDICTED | VPMU_LBR_TIMED | VPMU_LBR_CYCLES;
		if (v->ops.watch_lbr && v->model->lbr_counters) {
			b->loggable = v->model->lbr_counters & ((1u << v->n_gp) - 1);
			b->info |= VPMU_LBR_LOG;
		}
		v->has[ARCH_HAS_ARCH_LBR] = b->depth;
		v->has[ARCH_HAS_ARCH_LBR_CTL] = 2;
		v->has[ARCH_HAS_LER_INFO] = 1;
		v->known |= 1ull << ARCH_HAS_LER_INFO;
		break;
	}
	if (!v->ops.finish_lbr && !b->elsewhere)
		b->marks = 0;
	b->info |= b->marks;
}

/*
 * The engine knows more than some formats have room for. After pops, the newest entries may be
 * ones that the guest has written: their other bits stay.
 */
void arch_lbr_finish(struct vpmu_arch *v)
{
	const uint64_t all = VPMU_LBR_MISPREDICTED | VPMU_LBR_TIMED | VPMU_LBR_CYCLES;
	struct vpmu_lbr_entry *newest[VPMU_LBR_ENTRIES];
	struct vpmu_lbr *l = v->lbr.stack;
	unsigned int i, n;
	uint64_t new;

	if (!v->lbr.marks || l->user != VPMU_LBR_ARCH)
		return;
	new = vpmu_lbr_inserted(l, &v->lbr.finished);
	n = new < VPMU_LBR_ENTRIES ? (unsigned int)new : VPMU_LBR_ENTRIES;
	if (!n)
		return;
	for (i = 0; i < n; i++)
		newest[i] = vpmu_lbr_at(l, i);
	v->ops.finish_lbr(v->ctx, newest, n);
	for (i = 0; i < n; i++)
		newest[i]->info &= ~all | v->lbr.marks;
}

static const struct vpmu_lbr_filter *lbr_filter(const struct vpmu_arch *v)
{
	return v->lbr.kind == ARCH_LBR_ARCH ? &vpmu_lbr_ctl : &vpmu_lbr_select;
}

static struct vpmu_event *lbr_event(struct vpmu_arch *v)
{
	return arch_event_of(v, v->n_pmc); /* after those of the counters */
}

/* True if the guest has switched recording on; it may be frozen all the same. */
static bool lbr_enabled(const struct vpmu_arch *v)
{
	if (v->lbr.kind == ARCH_LBR_ARCH)
		return v->lbr.ctl & VPMU_LBR_CTL_EN;
	if (v->lbr.kind == ARCH_LBR_AMD)
		return v->lbr.enabled;
	return v->r.debugctl & VPMU_DEBUGCTL_LBR;
}

/* The engine makes records as long as they may be wanted again soon. */
static void lbr_demand(struct vpmu_arch *v, bool on)
{
	if (on == v->lbr.demand || v->lbr.elsewhere)
		return;
	v->lbr.demand = on;
	if (on || v->lbr.stack->user != VPMU_LBR_PV)
		(void)v->ops.set_lbr(v->ctx, on);
}

/* Tell the embedder that has the branch records when to record. */
static void lbr_have_recorded(struct vpmu_arch *v, uint64_t bits)
{
	if (bits == v->lbr.told)
		return;
	v->lbr.told = bits;
	v->ops.set_debugctl(v->ctx, bits);
}

void arch_lbr_apply(struct vpmu_arch *v)
{
	struct vpmu_lbr *l = v->lbr.stack;
	bool frozen = v->lbr.smm || v->r.status & VPMU_STATUS_LBR_FRZ;

	if (!v->lbr.kind)
		return;
	if (v->lbr.elsewhere) {
		lbr_have_recorded(v, frozen ? 0 : v->r.debugctl &
				     (VPMU_DEBUGCTL_LBR | VPMU_DEBUGCTL_FREEZE_LBRS));
		return;
	}
	arch_lbr_finish(v);
	if (!lbr_enabled(v) || !v->lbr.owned || frozen) {
		vpmu_lbr_stop(l, VPMU_LBR_ARCH);
		arch_lbr_log_apply(v, false);
		return;
	}
	vpmu_lbr_start(l, VPMU_LBR_ARCH, lbr_filter(v), v->lbr.ctl);
	arch_lbr_log_apply(v, true);
	lbr_demand(v, true);
}

/* First half of a loss, or of its end: from anywhere. */
static void lbr_state_changed(struct vpmu_event *ev)
{
	struct vpmu_arch *v = ev->owner;

	vpmu_atomic_or(&v->lbr.changed, 1u);
	v->ops.kick(v->ctx);
}

static void lbr_tell(struct vpmu_arch *v, uint8_t reason)
{
	struct arch_lbr *b = &v->lbr;

	if (reason == b->reason)
		return;
	b->reason = reason;
	b->generation++;
	v->loss.generation++;
	if (reason)
		b->last = reason;
	if (reason && v->loss.ctrl & VPMU_LOSS_CTRL_PMI) {
		v->loss.pmi = true;
		v->ops.kick(v->ctx);
	}
	vpmu_trace(&v->ops, v->ctx, reason ? VPMU_TRACE_LOST : VPMU_TRACE_FOUND,
		   v->n_pmc, reason, 0, 0);
}

/*
 * The guest has the facility, or has lost it. At a loss the records are empty: a guest
 * that is not looking for losses would take older ones for those before its next sample.
 * The controls stay, so that recording goes on as the guest has set it.
 */
static void lbr_settle(struct vpmu_arch *v, bool owned)
{
	struct arch_lbr *b = &v->lbr;

	arch_lbr_finish(v);
	if (owned && !b->owned && !b->elsewhere)
		vpmu_lbr_copy(b->stack, &b->kept);
	else if (!owned && b->owned)
		memset(&b->kept, 0, sizeof(b->kept));
	b->owned = owned;
	if (!owned)
		lbr_demand(v, false);
	arch_lbr_apply(v);
	lbr_tell(v, owned ? VPMU_LOSS_NONE : VPMU_LOSS_LOST);
}

void vpmu_arch_lbr_elsewhere(struct vpmu_arch *v, bool owned)
{
	vpmu_assert(arch_at_rest(v));
	if (v->lbr.elsewhere)
		lbr_settle(v, owned);
}

void arch_lbr_look(struct vpmu_arch *v)
{
	(void)vpmu_atomic_take(&v->lbr.changed);
	if (v->lbr.made)
		lbr_settle(v, v->provider->ops->state(lbr_event(v)) == VPMU_EVENT_ACTIVE);
}

/* The claim to the facility, which needs no counter. */
static void lbr_attr(struct vpmu_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->banks = ARCH_BANKS;
	attr->pinned = true;
	attr->fixed = -1;
	attr->slot = -1;
	attr->shared = VPMU_SHARED_LBR;
	attr->extra = VPMU_SHARED_ALONE;
	attr->no_counter = true;
}

static void lbr_make(struct vpmu_arch *v)
{
	struct vpmu_event *ev = lbr_event(v);
	struct vpmu_event_attr attr;

	vpmu_assert(v->batch && !v->lbr.made);
	ev->overflowed = NULL;
	ev->changed = lbr_state_changed;
	ev->owner = v;
	ev->index = ARCH_LBR_INDEX;
	lbr_attr(&attr);
	if (v->provider->ops->create(v->provider, ev, &attr))
		return;
	v->lbr.made = true;
}

/*
 * Claim the facility before an access. @again: also when an earlier claim has failed,
 * for registers that guests write at each switch of tasks. Returns true if the guest has it.
 */
static bool lbr_own(struct vpmu_arch *v, bool again)
{
	struct arch_lbr *b = &v->lbr;

	b->used = true;
	if (b->elsewhere)
		return b->owned;
	if (!b->made || (again && !b->owned)) {
		arch_event_begin(v);
		if (!b->made)
			lbr_make(v);
		if (b->made)
			(void)v->provider->ops->enable(lbr_event(v));
		arch_loss_clock(v);
		(void)arch_event_end(v);
		if (!b->made)
			lbr_settle(v, false);
	}
	if (!b->owned || vpmu_atomic_read(&b->changed))
		arch_lbr_look(v);
	return b->owned;
}

void arch_lbr_release(struct vpmu_arch *v)
{
	struct arch_lbr *b = &v->lbr;

	if (!b->made)
		return;
	arch_lbr_finish(v);
	if (b->owned)
		vpmu_lbr_copy(&b->kept, b->stack);
	b->owned = false;
	arch_lbr_apply(v);
	lbr_demand(v, false);
	arch_event_begin(v);
	v->provider->ops->release(lbr_event(v));
	b->made = false;
	arch_loss_clock(v);
	(void)arch_event_end(v);
}

bool arch_lbr_slice(struct vpmu_arch *v)
{
	struct arch_lbr *b = &v->lbr;
	bool used = b->used;

	b->used = false;
	if (b->elsewhere) {
		if (!used && !lbr_enabled(v))
			lbr_tell(v, VPMU_LOSS_NONE);
		return lbr_enabled(v) || b->reason != VPMU_LOSS_NONE;
	}
	if (!b->made || lbr_enabled(v))
		return false;
	if (used)
		return true;
	arch_lbr_release(v);
	lbr_tell(v, VPMU_LOSS_NONE);
	return false;
}

bool arch_lbr_lost(const struct vpmu_arch *v)
{
	return v->lbr.kind && lbr_enabled(v) && !v->lbr.owned;
}

void arch_lbr_regain(struct vpmu_arch *v)
{
	bool used = v->lbr.used;

	if (v->lbr.elsewhere) {
		v->ops.set_debugctl(v->ctx, v->lbr.told);
		return;
	}
	arch_lbr_release(v);
	(void)lbr_own(v, true);
	v->lbr.used = used;
}

void arch_lbr_reset(struct vpmu_arch *v, bool init)
{
	struct arch_lbr *b = &v->lbr;

	if (!b->kind)
		return;
	if (init) {
		b->ctl &= b->kind == ARCH_LBR_ARCH ? ~VPMU_LBR_CTL_EN : UINT64_MAX;
		b->enabled = false;
		arch_lbr_apply(v);
		return;
	}
	arch_lbr_release(v);
	(void)vpmu_atomic_take(&b->changed);
	memset(&b->kept, 0, sizeof(b->kept));
	if (!b->elsewhere)
		vpmu_lbr_copy(b->stack, &b->kept);
	b->ctl = 0;
	b->enabled = false;
	b->smm = false;
	arch_lbr_apply(v);
	b->used = false;
	b->reason = 0;
	b->last = 0;
	b->generation = 0;
}

/* Versions from 4 on say so in the status, until it is acknowledged. */
void arch_lbr_freeze(struct vpmu_arch *v)
{
	if (!(v->r.debugctl & VPMU_DEBUGCTL_FREEZE_LBRS))
		return;
	if (v->valid.status & VPMU_STATUS_LBR_FRZ)
		arch_raise_status(v, VPMU_STATUS_LBR_FRZ);
	else
		v->r.debugctl &= ~VPMU_DEBUGCTL_LBR;
	v->marked.lbr = true;
}

void arch_lbr_debugctl(struct vpmu_arch *v, uint64_t value)
{
	if (v->lbr.elsewhere && !v->lbr.owned && value & v->lbr.told & VPMU_DEBUGCTL_LBR)
		arch_lbr_regain(v);
	else if (v->lbr.kind == ARCH_LBR_LEGACY && value & VPMU_DEBUGCTL_LBR)
		(void)lbr_own(v, true);
	v->lbr.used |= v->lbr.made;
	v->marked.lbr = true;
}

void arch_lbr_smm(struct vpmu_arch *v, bool entered)
{
	v->lbr.smm = entered;
	arch_lbr_apply(v);
}

/* Source: SDM vol. 3, "Monitoring Branches, Exceptions, and Interrupts". */
void vpmu_arch_debug_exception(struct vpmu_arch *v)
{
	v->r.debugctl &= ~VPMU_DEBUGCTL_LBR;
	arch_lbr_apply(v);
}

/* Registers */

/* The entry of register @i: by age, or by its place in a ring that may be smaller. */
static struct vpmu_lbr_entry *lbr_place(const struct vpmu_arch *v, struct vpmu_lbr *l,
					unsigned int i)
{
	unsigned int n = v->lbr.depth;

	if (v->lbr.kind == ARCH_LBR_LEGACY)
		i = (vpmu_lbr_tos(l, n) - i) % n;
	return vpmu_lbr_at(l, i);
}

/* For an access by the guest: claims the facility first. */
static struct vpmu_lbr *lbr_registers(struct vpmu_arch *v)
{
	if (!lbr_own(v, false))
		return &v->lbr.kept;
	arch_lbr_finish(v);
	return v->lbr.stack;
}

static struct vpmu_lbr_entry *lbr_reach(struct vpmu_arch *v, unsigned int i)
{
	return lbr_place(v, lbr_registers(v), i);
}

enum vpmu_result arch_lbr_from_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	const struct vpmu_lbr_entry *e = lbr_reach(v, i);

	*value = e->from & v->lbr.address;
	/* Formats without INFO have it here. */
	if (v->lbr.address != UINT64_MAX)
		*value |= e->info & v->lbr.marks & VPMU_LBR_MISPREDICTED;
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_from_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	struct vpmu_lbr_entry *e = lbr_reach(v, i);

	e->from = value;
	if (v->lbr.address != UINT64_MAX)
		e->info = (e->info & ~VPMU_LBR_MISPREDICTED) |
			  (value & v->lbr.marks & VPMU_LBR_MISPREDICTED);
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_to_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	*value = lbr_reach(v, i)->to;
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_to_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	lbr_reach(v, i)->to = value;
	return VPMU_HANDLED;
}

/* Fields that are not defined do not fault; they read 0. */
enum vpmu_result arch_lbr_info_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	*value = lbr_reach(v, i)->info & v->lbr.info;
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_info_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	lbr_reach(v, i)->info = value & v->lbr.info;
	return VPMU_HANDLED;
}

/* LER: FROM, TO; and INFO, where there is one. */
static uint64_t *lbr_ler(struct vpmu_arch *v, unsigned int i)
{
	struct vpmu_lbr *l = lbr_registers(v);

	return i == 0 ? &l->ler_from : i == 1 ? &l->ler_to : &l->ler_info;
}

enum vpmu_result arch_lbr_ler_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	*value = *lbr_ler(v, i);
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_ler_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	*lbr_ler(v, i) = value;
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_ler_info_read(struct vpmu_arch *v, unsigned int i,
					uint64_t *value)
{
	return arch_lbr_ler_read(v, 2, value);
}

enum vpmu_result arch_lbr_ler_info_write(struct vpmu_arch *v, unsigned int i,
					 uint64_t value)
{
	return arch_lbr_ler_write(v, 2, value & v->lbr.info);
}

/* LBR_SELECT */
enum vpmu_result arch_lbr_select_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	(void)lbr_own(v, false);
	*value = v->lbr.ctl;
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_select_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	if (value & ~v->lbr.valid)
		return VPMU_FAULT;
	(void)lbr_own(v, true);
	v->lbr.ctl = value;
	v->marked.lbr = true;
	return VPMU_HANDLED;
}

/* LASTBRANCH_TOS */
enum vpmu_result arch_lbr_tos_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	*value = vpmu_lbr_tos(lbr_registers(v), v->lbr.depth);
	return VPMU_HANDLED;
}

/*
 * The other registers stay as they are. So the oldest entry becomes the newest, for
 * each step; a ring has room for it, since it is twice as long as the stack. Entries
 * that no register reaches become empty.
 */
enum vpmu_result arch_lbr_tos_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	unsigned int n = v->lbr.depth;
	struct vpmu_lbr_entry oldest;
	struct vpmu_lbr *l;

	if (value >= n)
		return VPMU_FAULT;
	l = lbr_registers(v);
	while (vpmu_lbr_tos(l, n) != value) {
		oldest = *vpmu_lbr_at(l, n - 1);
		l->next += VPMU_BRANCH_PUSH;
		l->more -= VPMU_BRANCH_PUSH;
		*vpmu_lbr_at(l, 0) = oldest;
	}
	for (i = n; i < VPMU_LBR_RING; i++)
		memset(vpmu_lbr_at(l, i), 0, sizeof(oldest));
	return VPMU_HANDLED;
}

/* AMD: an entry of the engine's is valid. */
static uint64_t lbr_amd_view(const struct vpmu_lbr_entry *e, bool to)
{
	uint64_t word = to ? e->to : e->from;

	if (e->info & LBR_AMD_WRITTEN || (!e->from && !e->to))
		return word;
	return to ? (word & LBR_AMD_TO) | LBR_AMD_VALID :
		    (word & ~LBR_AMD_MISPREDICTED) | (e->info & LBR_AMD_MISPREDICTED);
}

enum vpmu_result arch_lbr_amd_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	*value = lbr_amd_view(lbr_reach(v, i / 2), i % 2);
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_amd_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	struct vpmu_lbr_entry *e = lbr_reach(v, i / 2);
	uint64_t from = lbr_amd_view(e, false);

	e->to = i % 2 ? value : lbr_amd_view(e, true);
	e->from = i % 2 ? from : value;
	e->info = LBR_AMD_WRITTEN;
	return VPMU_HANDLED;
}

/* LBR_SELECT, DBG_EXTN_CFG */
enum vpmu_result arch_lbr_amd_ctl_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	if (!i)
		return arch_lbr_select_read(v, i, value);
	(void)lbr_own(v, false);
	*value = v->lbr.enabled ? VPMU_DBG_EXTN_CFG_LBR : 0;
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_amd_ctl_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	if (!i)
		return arch_lbr_select_write(v, i, value);
	if (value & ~VPMU_DBG_EXTN_CFG_LBR)
		return VPMU_FAULT;
	(void)lbr_own(v, true);
	v->lbr.enabled = value;
	v->marked.lbr = true;
	return VPMU_HANDLED;
}

/* LBR_CTL, LBR_DEPTH. Any write of the depth, which is always the same, clears. */
enum vpmu_result arch_lbr_ctl_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	if (!i)
		return arch_lbr_select_read(v, i, value);
	*value = VPMU_LBR_ENTRIES;
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_ctl_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	if (i ? value != VPMU_LBR_ENTRIES : (value & ~v->lbr.valid) != 0)
		return VPMU_FAULT;
	(void)lbr_own(v, true);
	if (i) {
		vpmu_lbr_clear(lbr_registers(v));
		return VPMU_HANDLED;
	}
	v->lbr.ctl = value;
	v->marked.lbr = true;
	return VPMU_HANDLED;
}

enum vpmu_result arch_lbr_loss_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	arch_lbr_look(v);
	*value = v->lbr.reason | (uint32_t)v->lbr.last << 8 |
		 (uint64_t)v->lbr.generation << 32;
	return VPMU_HANDLED;
}

bool vpmu_arch_lbr_info(struct vpmu_arch *v, struct vpmu_lbr_info *info)
{
	if (!v->lbr.kind)
		return false;
	arch_lbr_look(v);
	info->owned = v->lbr.owned;
	info->loss = v->lbr.reason;
	info->generation = v->lbr.generation;
	return true;
}

/* Configuration */

bool arch_lbr_possible(struct vpmu_provider *p, const struct vpmu_ops *ops)
{
	struct vpmu_event_attr attr;

	lbr_attr(&attr);
	return ops->set_lbr && p->ops->quality(p, &attr) != VPMU_QUALITY_NONE;
}

enum arch_lbr_kind arch_lbr_kind(const struct vpmu_model *m, uint64_t capabilities)
{
	if (m->vendor == VPMU_VENDOR_AMD)
		return capabilities & VPMU_CAP_AMD_LBR ? ARCH_LBR_AMD : ARCH_LBR_NONE;
	if (!(capabilities & VPMU_CAP_LBR))
		return ARCH_LBR_NONE;
	return (capabilities & VPMU_CAP_LBR) == VPMU_CAP_LBR_ARCH ? ARCH_LBR_ARCH
								  : ARCH_LBR_LEGACY;
}

/* Saved state; the layout is in arch_state.c. */

#define LBR_MADE		1u
#define LBR_OWNED		2u
#define LBR_USED		4u
#define LBR_SMM			8u
#define LBR_DEMAND		16u
#define LBR_ENABLED		32u /* AMD */
#define LBR_WAITING_SHIFT	8

void arch_lbr_put(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	struct arch_lbr *b = &v->lbr;
	struct vpmu_lbr *l = b->owned ? b->stack : &b->kept;
	unsigned int i, tos = vpmu_lbr_tos(l, VPMU_LBR_ENTRIES);
	const struct vpmu_lbr_entry *e;

	if (b->owned)
		arch_lbr_finish(v);
	vpmu_state_put(c, b->kind, 1);
	vpmu_state_put(c, tos, 1);
	vpmu_state_put(c, b->reason, 1);
	vpmu_state_put(c, b->last, 1);
	vpmu_state_put(c, b->generation, 4);
	vpmu_state_put(c, (b->made ? LBR_MADE : 0) | (b->made && b->owned ? LBR_OWNED : 0) |
			  (b->used ? LBR_USED : 0) | (b->smm ? LBR_SMM : 0) |
			  (b->demand ? LBR_DEMAND : 0) |
			  (b->enabled ? LBR_ENABLED : 0) |
			  arch_lbr_log_waiting(v) << LBR_WAITING_SHIFT, 8);
	vpmu_state_put(c, b->ctl, 8);
	vpmu_state_put(c, l->ler_from, 8);
	vpmu_state_put(c, l->ler_to, 8);
	vpmu_state_put(c, l->ler_info, 8);
	for (i = 0; i < VPMU_LBR_ENTRIES; i++) {
		e = vpmu_lbr_at(l, (tos - i) % VPMU_LBR_ENTRIES);
		vpmu_state_put(c, e->from, 8);
		vpmu_state_put(c, e->to, 8);
		vpmu_state_put(c, e->info, 8);
	}
}

/* The section without the stack's entries. */
struct lbr_head {
	uint64_t tos, flags, ctl;
	uint32_t generation;
	uint8_t reason, last;
};

static int lbr_get_head(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
			struct lbr_head *h)
{
	uint64_t kind = vpmu_state_get(c, 1);
	bool ok;

	h->tos = vpmu_state_get(c, 1);
	h->reason = (uint8_t)vpmu_state_get(c, 1);
	h->last = (uint8_t)vpmu_state_get(c, 1);
	h->generation = (uint32_t)vpmu_state_get(c, 4);
	h->flags = vpmu_state_get(c, 8);
	h->ctl = vpmu_state_get(c, 8);
	ok = kind && kind == v->lbr.kind && h->tos < VPMU_LBR_ENTRIES &&
	     !(h->flags & ~(LBR_MADE | LBR_OWNED | LBR_USED | LBR_SMM | LBR_DEMAND |
			    (kind == ARCH_LBR_AMD ? LBR_ENABLED : 0) |
			    (v->lbr.loggable ? 0xffull << LBR_WAITING_SHIFT : 0))) &&
	     !(h->flags & LBR_OWNED && !(h->flags & LBR_MADE)) &&
	     !(h->flags & LBR_DEMAND && !(h->flags & LBR_OWNED)) &&
	     !(h->reason && h->flags & LBR_OWNED) &&
	     h->last <= VPMU_LOSS_LOST && (!h->reason || h->reason == h->last) &&
	     !(h->ctl & ~v->lbr.valid);
	return ok && !c->error ? 0 : -VPMU_EINVAL;
}

int arch_lbr_check(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	uint64_t left = VPMU_LBR_ENTRIES * 3 + 3, info = 0;
	struct lbr_head h;
	int ret = lbr_get_head(v, c, &h);

	while (!ret && left--) {
		info = vpmu_state_get(c, 8);
		/* info is the third word of each; in the engine's entries it has the type. */
		if (left % 3 == 0 && info & ~(v->lbr.info | 0xfull << 56))
			ret = -VPMU_EINVAL;
	}
	return ret ? ret : c->error;
}

static void lbr_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c, uint64_t *flags)
{
	struct arch_lbr *b = &v->lbr;
	struct vpmu_lbr *l = &b->kept;
	struct vpmu_lbr_entry *e;
	struct lbr_head h;
	unsigned int i;

	(void)lbr_get_head(v, c, &h);
	*flags = h.flags;
	b->ctl = h.ctl;
	b->reason = h.reason;
	b->last = h.last;
	b->generation = h.generation;
	vpmu_lbr_restart(l, h.tos);
	l->ler_from = vpmu_state_get(c, 8);
	l->ler_to = vpmu_state_get(c, 8);
	l->ler_info = vpmu_state_get(c, 8);
	for (i = 0; i < VPMU_LBR_ENTRIES; i++) {
		e = vpmu_lbr_at(l, (unsigned int)(h.tos - i) % VPMU_LBR_ENTRIES);
		e->from = vpmu_state_get(c, 8);
		e->to = vpmu_state_get(c, 8);
		e->info = vpmu_state_get(c, 8);
	}
	b->smm = *flags & LBR_SMM;
	b->enabled = *flags & LBR_ENABLED;
}

void arch_lbr_resume(struct vpmu_arch *v, struct vpmu_state_cursor *c, bool claimed)
{
	uint64_t flags = (claimed ? LBR_MADE : 0) | (v->lbr.used ? LBR_USED : 0);

	if (!v->lbr.kind)
		return;
	if (c) {
		flags = 0;
		arch_lbr_reset(v, false);
	}
	if (c && c->data)
		lbr_adopt(v, c, &flags);
	if (flags & LBR_MADE && !lbr_own(v, false) && flags & LBR_OWNED)
		memset(&v->lbr.kept, 0, sizeof(v->lbr.kept)); /* as lbr_settle() does */
	v->lbr.used = flags & LBR_USED;
	arch_lbr_apply(v);
	if (flags & LBR_DEMAND && v->lbr.owned)
		lbr_demand(v, true);
	arch_lbr_log_resume(v, flags >> LBR_WAITING_SHIFT);
}

void arch_lbr_words(const struct vpmu_arch *v, uint64_t words[5])
{
	const struct vpmu_lbr *l = v->lbr.stack;

	memset(words, 0, 5 * sizeof(words[0]));
	words[0] = v->lbr.ctl;
	words[1] = v->lbr.depth;
	if (!v->lbr.owned)
		return;
	words[2] = l->ler_from;
	words[3] = l->ler_to;
	words[4] = l->ler_info;
}

void arch_lbr_entry(const struct vpmu_arch *v, unsigned int age, uint64_t entry[3])
{
	const struct vpmu_lbr_entry *e;

	memset(entry, 0, 3 * sizeof(entry[0]));
	if (!v->lbr.kind || !v->lbr.owned || age >= VPMU_LBR_ENTRIES)
		return;
	e = vpmu_lbr_at(v->lbr.stack, age);
	entry[0] = e->from;
	entry[1] = e->to;
	entry[2] = e->info & v->lbr.info;
}
