// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Sums the samples of perf record by function. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "growth.h"
#include "vpmu.h"

struct sums {
	struct growth *list;
	size_t n, room;
};

static void add(struct sums *s, const struct growth *one)
{
	if (s->n == s->room) {
		s->room = 2 * s->room + 1024;
		s->list = reallocarray(s->list, s->room, sizeof(*s->list));
		if (!s->list)
			fail(EXIT_VPMU, "out of memory");
	}
	s->list[s->n++] = *one;
}

/* "     41020 instructions:u:            40100c _start" */
static void take_sample(struct sums *s, char *line, bool is_base)
{
	char *event, *address, *function;
	uint64_t period = strtoull(line, &event, 10);
	struct growth one = { .base = is_base ? period : 0, .now = is_base ? 0 : period };

	event += strspn(event, " ");
	address = strstr(event, ": ");
	if (!period || !address)
		return;
	function = address + 1 + strspn(address + 1, " ");
	function += strcspn(function, " ");
	one.function = xprintf("%.*s: %s", (int)(address - event), event,
			       function + strspn(function, " "));
	add(s, &one);
}

static void read_samples(struct sums *s, const char *path, bool is_base)
{
	char *const argv[] = { "/usr/bin/env", "perf", "script", "-G", "-F", "event,period,ip,sym",
			       "-i", (char *)path, NULL };
	struct buffer out = { 0 };
	size_t before = s->n;
	char *line, *rest;

	if (run_script(argv, &out))
		fail(EXIT_VPMU, "%s: perf script cannot read it; perf record -o %s writes one",
		     path, path);
	rest = out.data;
	while ((line = strsep(&rest, "\n")))
		take_sample(s, line, is_base);
	buffer_free(&out);
	if (s->n == before)
		fail(EXIT_VPMU, "%s: found no sample", path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct growth *)a)->function, ((const struct growth *)b)->function);
}

static int by_growth(const void *a, const void *b)
{
	const struct growth *x = a, *y = b;
	uint64_t of_x = x->now - x->base, of_y = y->now - y->base;

	return of_x != of_y ? (of_x < of_y ? 1 : -1) : by_name(a, b);
}

/* One for each function, of those that grew. */
static size_t merge(struct growth *list, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n;) {
		struct growth one = list[i];

		for (i++; i < n && !by_name(&one, &list[i]); i++) {
			one.base += list[i].base;
			one.now += list[i].now;
			free(list[i].function);
		}
		if (one.now > one.base)
			list[kept++] = one;
		else
			free(one.function);
	}
	return kept;
}

size_t growth_read(const char *base, const char *now, struct growth **found)
{
	struct sums s = { 0 };

	read_samples(&s, base, true);
	read_samples(&s, now, false);
	qsort(s.list, s.n, sizeof(*s.list), by_name);
	s.n = merge(s.list, s.n);
	qsort(s.list, s.n, sizeof(*s.list), by_growth);
	*found = s.list;
	return s.n;
}
