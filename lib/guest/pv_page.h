/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The memory of a vCPU that the guest reads. Under the lock. */
#ifndef VPMU_PV_PAGE_H
#define VPMU_PV_PAGE_H

#include "pv_vm.h"

/* The pages that a guest registers, and where it has them. */
struct pv_setup {
	struct pv_pages pages;
	uint64_t gpa, branches; /* 0: none */
	uint8_t vector;
};

/** Write the numbers of a version 1 event, and more overflows, into its struct. */
void vpmu_pv_page_write_1(struct vpmu_pv *v, struct pv_event *ev, uint32_t overflows);

/** Write the numbers of a version 2 event into the entry of its slot. */
void vpmu_pv_page_write_2(struct vpmu_pv *v, unsigned int s, const struct pv_event *ev,
			  bool enabled);

/** Write what the batch has made dirty: slots, branch records, then the bitmaps. */
void vpmu_pv_page_flush(struct vpmu_pv *v);

/** The vCPU has no pages any longer. Returns those it had, for vpmu_pv_memory_unmap(). */
struct pv_pages vpmu_pv_page_forget(struct vpmu_pv *whose);

/**
 * The vCPU gets other pages, which are cleared; no event of version 2 is enabled. Returns
 * those it had.
 */
struct pv_pages vpmu_pv_page_replace(struct vpmu_pv *v, const struct pv_setup *with);

#endif /* VPMU_PV_PAGE_H */
