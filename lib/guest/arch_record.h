/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Records of PEBS: their places in guest memory, and the layouts of all formats. */
#ifndef VPMU_ARCH_RECORD_H
#define VPMU_ARCH_RECORD_H

#include <vpmu/arch.h>

#define ARCH_RECORD_PAGE	4096u

/* A place in guest memory: on one page, or on two. */
struct arch_place {
	uint64_t gpa[2];
	uint32_t first; /* bytes on the first page */
	uint32_t pos;
	bool failed;
};

/** Bytes from @address to the end of its page. */
uint32_t arch_record_page_left(uint64_t address);

/**
 * The place of @size bytes at a linear address; false if they may not be written. Both
 * pages are asked for before anything is written to one.
 */
bool arch_record_place(struct vpmu_arch *v, uint64_t address, uint32_t size,
		       struct arch_place *at);

/** That of a physical address, within two pages of memory that follow each other. */
void arch_record_physical(uint64_t gpa, struct arch_place *at);

/** Write what follows at a place; at->failed says whether all of it could be written. */
void arch_record_put(struct vpmu_arch *v, struct arch_place *at, const void *data,
		     uint32_t size);

/**
 * Bytes of a record of this PMU's format, and the record itself.
 *
 * @groups: what a guest has selected: DATA_CFG, or CFG_C's bits from 32 on, without ALLOW;
 *          0 of formats without groups
 * @pmcs:   the counters that it is of, in the layout of PEBS_ENABLE
 */
uint32_t arch_record_size(const struct vpmu_arch *v, uint64_t groups);
void arch_record_write(struct vpmu_arch *v, struct arch_place *at,
		       const struct vpmu_sample *s, uint64_t groups, uint64_t pmcs);

#endif /* VPMU_ARCH_RECORD_H */
