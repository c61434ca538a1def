// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Branch records with overflows. Events that want the same records share the provider's
 * facility; while one of them counts, the engine records.
 *
 * At an overflow the records are written for the guest, and stand still until it has looked,
 * as LBRs do that are frozen upon a PMI. In call-stack mode they are not frozen: a handler
 * whose calls were not recorded would take away the interrupted program's entries as it returns.
 */
#include "pv_branch.h"
#include "pv_memory.h"

#define PV_BRANCH_HEAD	offsetof(struct vpmu_pv_branches, entry)
#define PV_BRANCH_ENTRY_WORDS	((size_t)6)
#define PV_BRANCH_WORDS	((unsigned int)sizeof(struct vpmu_pv_branches) / 4)
#define PV_BRANCH_INFO	(15ull << VPMU_PV_BRANCH_TYPE_SHIFT)

/* An event that counts here and wants records, or NULL. All such events want the same. */
static const struct pv_event *pv_branch_event(struct vpmu_pv *v)
{
	const struct pv_event *ev;
	unsigned int s;

	for (s = 0; s < v->vm->n_slots; s++) {
		if (!v->slot[s].event || !v->slot[s].made)
			continue;
		ev = pv_event_at(v->vm, v->slot[s].event - 1);
		if (pv_wants_branches(ev) && !ev->throttled &&
		    v->provider->ops->state(pv_slot_event(v, s)) == VPMU_EVENT_ACTIVE)
			return ev;
	}
	return NULL;
}

void vpmu_pv_branch_apply(struct vpmu_pv *v)
{
	struct pv_branches *b = &v->lbr;
	const struct pv_event *ev;

	pv_assert_locked(v);
	if (!b->stack || (!v->n_used && !b->on))
		return;
	ev = pv_branch_event(v);
	if (!ev) {
		if (b->on && b->stack->user != VPMU_LBR_ARCH)
			(void)v->ops.set_lbr(v->ctx, false);
		vpmu_lbr_stop(b->stack, VPMU_LBR_PV);
		b->on = false;
		b->frozen = false;
		return;
	}
	if (!b->on || b->fresh) {
		vpmu_lbr_clear(b->stack);
		b->frozen = false;
	}
	b->fresh = false;
	b->on = true;
	b->chain = ev->what.suppress & VPMU_PV_CALL_STACK;
	(void)v->ops.set_lbr(v->ctx, true);
	if (b->frozen)
		vpmu_lbr_stop(b->stack, VPMU_LBR_PV);
	else
		vpmu_lbr_start(b->stack, VPMU_LBR_PV, &vpmu_lbr_select, ev->what.suppress);
}

void vpmu_pv_branch_resume(struct vpmu_pv *v)
{
	pv_assert_locked(v);
	v->lbr.frozen = false;
}

/* All words of the guest's page but the sequence counter; returns their number, with it. */
static unsigned int pv_branch_words(const struct pv_branches *b, uint32_t flags, uint32_t *words)
{
	const struct vpmu_lbr_entry *e;
	uint64_t entry[3];
	unsigned int n;

	memset(words, 0, PV_BRANCH_HEAD);
	for (n = 0; b->on && n < VPMU_PV_BRANCH_ENTRIES; n++) {
		e = vpmu_lbr_at(b->stack, n);
		entry[0] = e->from;
		entry[1] = e->to;
		entry[2] = e->info & PV_BRANCH_INFO;
		if (!entry[0] && !entry[1])
			break;
		memcpy(&words[PV_BRANCH_HEAD / 4 + n * PV_BRANCH_ENTRY_WORDS], entry,
		       sizeof(entry));
	}
	words[offsetof(struct vpmu_pv_branches, n) / 4] = n;
	words[offsetof(struct vpmu_pv_branches, flags) / 4] = flags;
	return PV_BRANCH_HEAD / 4 + n * PV_BRANCH_ENTRY_WORDS;
}

void vpmu_pv_branch_write(struct vpmu_pv *v)
{
	struct pv_branches *b = &v->lbr;
	uint32_t words[PV_BRANCH_WORDS], *at = v->page.branches;
	bool freeze = b->on && !b->chain;
	unsigned int n;

	pv_assert_locked(v);
	if (!b->due || !at || b->frozen)
		return;
	n = pv_branch_words(b, freeze ? VPMU_PV_BRANCHES_FROZEN : 0, words);
	vpmu_pv_memory_publish(v, at, words, n, &b->seq);
	vpmu_pv_memory_dirtied(v, at, n * 4);
	b->frozen = freeze;
}

#define PV_BRANCH_ON		1u
#define PV_BRANCH_FROZEN	2u

void vpmu_pv_branch_put(const struct vpmu_pv *v, struct vpmu_state_cursor *c)
{
	const struct pv_branches *b = &v->lbr;
	const struct vpmu_lbr_entry *e;
	unsigned int i;

	vpmu_state_put(c, v->branches_gpa, 8);
	vpmu_state_put(c, b->seq, 4);
	vpmu_state_put(c, (b->on ? PV_BRANCH_ON : 0) | (b->frozen ? PV_BRANCH_FROZEN : 0), 4);
	for (i = 0; b->on && i < VPMU_PV_BRANCH_ENTRIES; i++) {
		e = vpmu_lbr_at(b->stack, i);
		vpmu_state_put(c, e->from, 8);
		vpmu_state_put(c, e->to, 8);
		vpmu_state_put(c, e->info, 8);
	}
}

bool vpmu_pv_branch_check(struct vpmu_state_cursor *c)
{
	uint64_t gpa = vpmu_state_get(c, 8), seq = vpmu_state_get(c, 4);
	uint64_t flags = vpmu_state_get(c, 4);
	unsigned int i;

	if (c->error || !vpmu_pv_range(gpa, PV_PAGE, PV_PAGE) || seq & 1 ||
	    flags > (PV_BRANCH_ON | PV_BRANCH_FROZEN) || flags == PV_BRANCH_FROZEN)
		return false;
	for (i = 0; flags & PV_BRANCH_ON && i < VPMU_PV_BRANCH_ENTRIES; i++) {
		(void)vpmu_state_get(c, 8);
		(void)vpmu_state_get(c, 8);
		if (vpmu_state_get(c, 8) & ~PV_BRANCH_INFO)
			return false;
	}
	return !c->error && c->pos == c->size;
}

void vpmu_pv_branch_load(struct vpmu_pv *v, struct vpmu_state_cursor *c)
{
	struct pv_branches *b = &v->lbr;
	struct vpmu_lbr_entry *e;
	uint64_t flags;
	unsigned int i;

	pv_assert_locked(v);
	(void)vpmu_state_get(c, 8);
	b->seq = (uint32_t)vpmu_state_get(c, 4);
	flags = vpmu_state_get(c, 4);
	if (!b->on || !(flags & PV_BRANCH_ON))
		return;
	for (i = 0; i < VPMU_PV_BRANCH_ENTRIES; i++) {
		e = vpmu_lbr_at(b->stack, i);
		e->from = vpmu_state_get(c, 8);
		e->to = vpmu_state_get(c, 8);
		e->info = vpmu_state_get(c, 8);
	}
	b->frozen = flags & PV_BRANCH_FROZEN;
	vpmu_pv_branch_apply(v);
}
