/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Guest memory. */
#ifndef VPMU_PV_MEMORY_H
#define VPMU_PV_MEMORY_H

#include "pv_vm.h"

/** Is [@gpa, @gpa + @size) a range, aligned to @align, a power of two? */
bool vpmu_pv_range(uint64_t gpa, uint32_t size, uint32_t align);

/** Is it in one page? */
bool vpmu_pv_in_page(uint64_t gpa, uint32_t size);

/**
 * Map both pages, of slots at @gpa and of branch records at @branches (0: none); false: none
 * of them is mapped. Not under the lock.
 */
bool vpmu_pv_memory_map(struct vpmu_pv *v, uint64_t gpa, uint64_t branches,
			struct pv_pages *pages);

/** Not under the lock. */
void vpmu_pv_memory_unmap(struct vpmu_pv *v, const struct pv_pages *pages);

/**
 * Write words 1 to @n - 1 of @words to @at in mapped memory, with a sequence counter in word 0;
 * @seq: its value, even. Under the lock.
 */
void vpmu_pv_memory_publish(struct vpmu_pv *v, uint32_t *at, const uint32_t *words,
			    unsigned int n, uint32_t *seq);

/** @bytes of mapped memory were written. Under the lock. */
void vpmu_pv_memory_dirtied(struct vpmu_pv *v, void *at, uint32_t bytes);

#endif /* VPMU_PV_MEMORY_H */
