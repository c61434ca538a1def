/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The commands of vpmu bench, and what its guest does with them. */
#ifndef VPMU_TOOLS_BENCH_H
#define VPMU_TOOLS_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "counts.h"

struct buffer;

struct bench {
	char *name, *command;
	bool chosen;
};
struct benches {
	const char *path;
	struct bench *list;
	size_t n;
};

/* They run like this. */
struct bench_plan {
	const char *events;
	char *const *more;	/* options of vpmu run */
	size_t n_more;
	bool repeat;		/* each command has a guest of its own, which repeats */
};

/* Count the commands that are chosen. Returns vpmu run's status. */
int bench_count(const struct benches *b, const struct bench_plan *p, struct counts *now);

/* An event of a command, of which each @period-th is a sample. */
struct bench_sampled {
	const struct bench *of;
	const char *event;
	uint64_t period;
};

/*
 * Sample them, and add the samples to @text, as growth_add() takes them. Returns false if there
 * are none.
 */
bool bench_sample(const struct bench_sampled *list, size_t n, const struct bench_plan *p,
		  struct buffer *text);

#endif
