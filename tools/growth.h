/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Which functions grew, of samples before and now. */
#ifndef VPMU_TOOLS_GROWTH_H
#define VPMU_TOOLS_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct growth {
	char *count;		/* what was sampled: "instructions:u", "sort: instructions:u" */
	char *function;
	uint64_t base, now;	/* the sums of its samples' periods */
	uint64_t period;	/* the longest of those in @now */
};
struct growths {
	struct growth *list;
	size_t n, room;
};

/* These are the fields of perf script -F. */
#define GROWTH_FIELDS	"event,period,ip,sym,dso"

/*
 * Return the name in "name (file)", which is changed, as a new string. A function without one
 * is called by its file: "[unknown] of app".
 */
char *growth_function(char *function);

/*
 * Add the samples in @text, which is changed: lines as perf script -F GROWTH_FIELDS writes
 * them. A line that begins with COUNTS_TITLE names the program of those after it.
 */
void growth_add(struct growths *g, char *text, bool is_base);

/* Add the samples of a file of perf record. One that perf script cannot read ends the program. */
void growth_add_profile(struct growths *g, const char *path, bool is_base);

/* Sum the samples of each function. */
void growth_sum(struct growths *g);

/*
 * Leave those that grew, by two periods at least, and by a quarter of the one of the same
 * count that grew most: the rest may be chance. The most come first. They are summed before.
 */
void growth_leave_grown(struct growths *g);

#endif
