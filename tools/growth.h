/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which functions grew, of two files of perf record. */
#ifndef VPMU_TOOLS_GROWTH_H
#define VPMU_TOOLS_GROWTH_H

#include <stddef.h>
#include <stdint.h>

struct growth {
	char *function;			/* after its event */
	uint64_t base, now;		/* the sum of its samples' periods */
};

/*
 * Those whose sum in the file @now is above that in the file @base, most first. Returns their
 * number. A file that perf script cannot read ends the program.
 */
size_t growth_read(const char *base, const char *now, struct growth **found);

#endif
