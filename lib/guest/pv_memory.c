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
		pages->slots = v->ops->gpa_map(v->ctx, gpa, PV_PAGE);
	if (branches)
		pages->branches = v->ops->gpa_map(v->ctx, branches, PV_PAGE);
	if (!gpa == !pages->slots && !branches == !pages->branches)
		return true;
	vpmu_pv_memory_unmap(v, pages);
	return false;
}

void vpmu_pv_memory_unmap(struct vpmu_pv *v, const struct pv_pages *pages)
{
	if (pages->slots)
		v->ops->gpa_unmap(v->ctx, pages->slots, PV_PAGE);
	if (pages->branches)
		v->ops->gpa_unmap(v->ctx, pages->branches, PV_PAGE);
}

void vpmu_pv_memory_dirtied(struct vpmu_pv *v, void *at, uint32_t bytes)
{
	pv_assert_locked(v);
	if (v->ops->gpa_dirty)
		v->ops->gpa_dirty(v->ctx, at, bytes);
}
