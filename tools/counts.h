/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The counts in a file that perf stat wrote. */
#ifndef VPMU_TOOLS_COUNTS_H
#define VPMU_TOOLS_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line that begins with this names the program of the rows after it. */
#define COUNTS_TITLE "# vpmu bench: "

struct count {
	char *name;		/* the event's, after its program's if the file has one */
	char *program, *event;	/* the parts; program may be NULL */
	unsigned int turn;	/* rows of the same name before it */
	uint64_t value;
	bool counted;
	double share;		/* part of its time that it was on a counter, in percent */
};
struct counts {
	const char *path;
	struct count *list;
	size_t n;
};

/*
 * Read a file in any of perf stat's forms: the default, -x, or -j. Times and metrics are
 * left out. A row that is neither ends the program, as does a file without a count.
 */
void counts_read(struct counts *c, const char *path);

/* The row of this name and turn, or NULL. */
const struct count *counts_find(const struct counts *c, const char *name, unsigned int turn);

#endif
