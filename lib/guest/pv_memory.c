// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Ranges of guest memory, and the pages of it that stay mapped. */
#include "pv_memory.h"

bool vpmu_pv_range(uint64_t gpa, uint32_t size, uint32_t align)
{
	return !(gpa & (align - 1)) && gpa <= UINT64_MAX - size;
}

bool vpmu_pv_in_page(uint64_t gpa, uint32_t size)
{
	return (gpa & (PV_PAGE - 1)) + size <= PV_PAGE;
}

bool vpmu_pv_memory_map(struct vpmu_pv *v, uint64_t gpa, uint64_t branches, struct pv_pages *pages)
{
	memset(pages, 0, sizeof(*pages));
	if (gpa)
		pages->slots = v->ops.gpa_map(v->ctx, gpa, PV_PAGE);
	if (branches)
		pages->branches = v->ops.gpa_map(v->ctx, branches, PV_PAGE);
	if (!gpa == !pages->slots && !branches == !pages->branches)
		return true;
	vpmu_pv_memory_unmap(v, pages);
	return false;
}

void vpmu_pv_memory_unmap(struct vpmu_pv *v, const struct pv_pages *pages)
{
	if (pages->slots)
		v->ops.gpa_unmap(v->ctx, pages->slots, PV_PAGE);
	if (pages->branches)
		v->ops.gpa_unmap(v->ctx, pages->branches, PV_PAGE);
}

void vpmu_pv_memory_dirtied(struct vpmu_pv *v, void *at, uint32_t bytes)
{
	pv_assert_locked(v);
	if (v->ops.gpa_dirty)
		v->ops.gpa_dirty(v->ctx, at, bytes);
}

/*
 * An entry of the page of slots, and the page of branch records, are words that the guest may
 * read while they are written:
 *
 *	at[0]            at[1] ... at[n - 1]
 *	2k               of one instant
 *	2k + 1           being written
 *	2k + 2           of the next instant
 *
 * Invariant: while at[0] is even, the words are of one instant, and at[0] is *seq. Only this
 * function breaks it, under the lock, and restores it before it returns. The guest takes the
 * words if at[0] was the same even number before and after it has read them. What a guest
 * writes there itself misleads only that guest: the counter that is stored is ours.
 */
void vpmu_pv_memory_publish(struct vpmu_pv *v, uint32_t *at, const uint32_t *words,
			    unsigned int n, uint32_t *seq)
{
	unsigned int i;

	pv_assert_locked(v);
	vpmu_atomic_put(&at[0], *seq + 1);
	/*
	 * Pairs with the second smp_rmb() in v2_look() and in vg_branch_read() of the guest's
	 * driver: the odd counter is visible before any new word.
	 */
	vpmu_atomic_fence();
	for (i = 1; i < n; i++)
		vpmu_atomic_put(&at[i], words[i]);
	*seq += 2;
	/* Pairs with the first smp_rmb() there: all words are visible before the even counter. */
	vpmu_atomic_set(&at[0], *seq);
}
