// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The memory that the guest reads: the page that it shares with a vCPU, and version 1's structs.
 *
 *	version | n_slots | overflowed[2] | changed[2] | ...
 *	slot[0]: seq | id | count | enabled | running | overflows | flags | ...
 *	slot[1]: ...
 *
 * Invariant: a bit of overflowed or changed is set after the entry that it is about has been
 * written, and before the interrupt. vpmu_pv_page_flush() alone sets bits, in that order; only
 * the guest clears them, by an exchange of the word. vpmu_pv_memory_publish() has the
 * invariant of an entry.
 */
#include "pv_branch.h"
#include "pv_counter.h"
#include "pv_memory.h"
#include "pv_page.h"

#define PV_WORD(field)	(offsetof(struct vpmu_pv_page, field) / 4)
#define PV_SLOT_WORDS	(sizeof(struct vpmu_pv_slot) / 4)
#define PV_SLOT_USED	(offsetof(struct vpmu_pv_slot, zero) / 4)

/* The count is stored at once where the machine can do that, and in halves otherwise. */
void vpmu_pv_page_write_1(struct vpmu_pv *v, struct pv_event *ev, uint32_t overflows)
{
	uint32_t *at = ev->at;

	pv_assert_locked(v);
	if (!at)
		return;
	if (sizeof(void *) == sizeof(uint64_t) && !((uintptr_t)at % sizeof(uint64_t))) {
		vpmu_atomic_put((uint64_t *)ev->at, ev->count);
	} else {
		vpmu_atomic_put(&at[0], (uint32_t)ev->count);
		vpmu_atomic_put(&at[1], (uint32_t)(ev->count >> 32));
	}
	/*
	 * Pairs with try_cmpxchg() in v1_take() of the guest's driver: the count is visible before
	 * its overflows.
	 */
	vpmu_atomic_fence();
	if (overflows)
		vpmu_atomic_add(&at[2], overflows);
	vpmu_pv_memory_dirtied(v, at, ev->at_bytes);
}

static uint32_t pv_page_flags(const struct pv_event *ev, bool enabled)
{
	uint32_t flags = (uint32_t)ev->generation << VPMU_PV_SLOT_GENERATION_SHIFT;

	if (!enabled)
		return flags;
	flags |= VPMU_PV_SLOT_ENABLED | (uint32_t)ev->loss << VPMU_PV_SLOT_REASON_SHIFT;
	flags |= ev->loss ? VPMU_PV_SLOT_LOST : 0;
	return flags | (ev->throttled ? VPMU_PV_SLOT_THROTTLED : 0);
}

void vpmu_pv_page_write_2(struct vpmu_pv *v, unsigned int s, const struct pv_event *ev,
			  bool enabled)
{
	uint32_t words[PV_SLOT_WORDS], *at;
	struct vpmu_pv_slot w;

	pv_assert_locked(v);
	if (!v->page.slots)
		return;
	memset(&w, 0, sizeof(w));
	w.id = ev->id;
	w.count = ev->count;
	w.enabled = ev->enabled;
	w.running = ev->running < ev->enabled ? ev->running : ev->enabled;
	w.overflows = ev->overflows;
	w.flags = pv_page_flags(ev, enabled);
	memcpy(words, &w, sizeof(w));
	at = v->page.slots + PV_WORD(slot) + s * PV_SLOT_WORDS;
	vpmu_pv_memory_publish(v, at, words, PV_SLOT_USED, &v->slot[s].seq);
	vpmu_pv_memory_dirtied(v, at, sizeof(w));
}

static void pv_page_set_bits(struct vpmu_pv *v, uint32_t *words, uint64_t bits)
{
	if (!bits)
		return;
	/*
	 * Pairs with the guest's exchange of the word, xchg() in v2_overflowed() of its driver:
	 * entries are visible before their bits.
	 */
	vpmu_atomic_fence();
	if ((uint32_t)bits)
		vpmu_atomic_or(&words[0], (uint32_t)bits);
	if (bits >> 32)
		vpmu_atomic_or(&words[1], (uint32_t)(bits >> 32));
	vpmu_pv_memory_dirtied(v, words, 8);
}

void vpmu_pv_page_flush(struct vpmu_pv *v)
{
	struct pv_event *ev;
	unsigned int s;

	pv_assert_locked(v);
	for (s = 0; v->dirty >> s; s++) {
		ev = v->dirty >> s & 1 ? pv_attached(v, s) : NULL;
		if (!ev || ev->abi != VPMU_PV_ABI_2)
			continue;
		vpmu_pv_counter_fold(v, ev);
		vpmu_pv_page_write_2(v, s, ev, true);
	}
	vpmu_pv_branch_write(v);
	if (!v->page.slots)
		return;
	pv_page_set_bits(v, v->page.slots + PV_WORD(overflowed), v->over);
	pv_page_set_bits(v, v->page.slots + PV_WORD(changed), v->news);
}

struct pv_pages vpmu_pv_page_forget(struct vpmu_pv *whose)
{
	struct pv_pages had = whose->page;

	pv_assert_vm_locked(whose->vm);
	memset(&whose->page, 0, sizeof(whose->page));
	whose->page_gpa = 0;
	whose->branches_gpa = 0;
	whose->vector = 0;
	return had;
}

static void pv_page_clear_page(struct vpmu_pv *v, uint32_t *page)
{
	if (!page)
		return;
	memset(page, 0, PV_PAGE);
	vpmu_pv_memory_dirtied(v, page, PV_PAGE);
}

struct pv_pages vpmu_pv_page_replace(struct vpmu_pv *v, const struct pv_setup *with)
{
	struct pv_pages old = vpmu_pv_page_forget(v);
	unsigned int s;

	pv_assert_locked(v);
	v->page = with->pages;
	v->page_gpa = with->gpa;
	v->branches_gpa = with->branches;
	v->vector = with->gpa ? with->vector : 0;
	v->over = 0;
	v->lbr.seq = 0;
	for (s = 0; s < VPMU_PV_SLOTS; s++)
		v->slot[s].seq = 0;
	pv_page_clear_page(v, v->page.branches);
	pv_page_clear_page(v, v->page.slots);
	if (v->page.slots) {
		v->page.slots[PV_WORD(version)] = VPMU_PV_VERSION;
		v->page.slots[PV_WORD(n_slots)] = v->vm->n_slots;
		vpmu_pv_memory_dirtied(v, v->page.slots, 8);
	}
	return old;
}
