// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Sums the samples of perf record by function. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "growth.h"
#include "vpmu.h"

static void add(struct growths *g, const struct growth *one)
{
	if (g->n == g->room) {
		g->room = 2 * g->room + 1024;
		g->list = reallocarray(g->list, g->room, sizeof(*g->list));
		if (!g->list)
			fail(EXIT_VPMU, "out of memory");
	}
	g->list[g->n++] = *one;
}

char *growth_function(char *function)
{
	static const char unknown[] = "[unknown]";
	char *deleted = strstr(function, " (deleted))"), *file, *slash;

	if (deleted)
		strcpy(deleted, ")");
	file = memrchr(function, '(', strlen(function));
	if (!file || file == function || file[-1] != ' ')
		return xprintf("%s", function);
	file[-1] = '\0';
	if (strcmp(function, unknown))
		return xprintf("%s", function);
	file[strcspn(file, ")")] = '\0';
	slash = strrchr(file, '/');
	return xprintf("%s of %s", unknown, slash ? slash + 1 : file + 1);
}

/* "     41020 instructions:u:            40100c _start (/usr/bin/app)" */
static void take_sample(struct growths *g, const char *program, char *line, bool is_base)
{
	char *event, *address, *function;
	uint64_t period = strtoull(line, &event, 10);
	struct growth one = { .base = is_base ? period : 0, .now = is_base ? 0 : period,
			      .period = is_base ? 0 : period };

	event += strspn(event, " ");
	address = strstr(event, ": ");
	if (!period || !address)
		return;
	function = address + 1 + strspn(address + 1, " ");
	function += strcspn(function, " ");
	one.count = xprintf("%s%s%.*s", program ? program : "", program ? ": " : "",
			    (int)(address - event), event);
	one.function = growth_function(function + strspn(function, " "));
	add(g, &one);
}

void growth_add(struct growths *g, char *text, bool is_base)
{
	const char *program = NULL;
	char *line;

	while ((line = strsep(&text, "\n")))
		if (!strncmp(line, COUNTS_TITLE, strlen(COUNTS_TITLE)))
			program = line + strlen(COUNTS_TITLE);
		else
			take_sample(g, program, line, is_base);
}

void growth_add_profile(struct growths *g, const char *path, bool is_base)
{
	char *const argv[] = { "/usr/bin/env", "perf", "script", "-G", "-F", GROWTH_FIELDS,
			       "-i", (char *)path, NULL };
	struct buffer out = { 0 };
	size_t before = g->n;

	if (run_script(argv, &out))
		fail(EXIT_VPMU, "%s: perf script cannot read it; perf record -o %s writes one",
		     path, path);
	growth_add(g, out.data, is_base);
	buffer_free(&out);
	if (g->n == before)
		fail(EXIT_VPMU, "%s: found no sample", path);
}

static int by_name(const void *a, const void *b)
{
	const struct growth *x = a, *y = b;
	int order = strcmp(x->count, y->count);

	return order ? order : strcmp(x->function, y->function);
}

static int by_growth(const void *a, const void *b)
{
	const struct growth *x = a, *y = b;
	uint64_t of_x = x->now - x->base, of_y = y->now - y->base;

	return of_x != of_y ? (of_x < of_y ? 1 : -1) : by_name(a, b);
}

static void drop(struct growth *one)
{
	free(one->count);
	free(one->function);
}

void growth_sum(struct growths *g)
{
	size_t kept = 0;

	if (g->n)
		qsort(g->list, g->n, sizeof(*g->list), by_name);
	for (size_t i = 0; i < g->n; i++) {
		struct growth *one = &g->list[i], *to = kept ? &g->list[kept - 1] : NULL;

		if (!to || by_name(to, one)) {
			g->list[kept++] = *one;
			continue;
		}
		to->base += one->base;
		to->now += one->now;
		if (to->period < one->period)
			to->period = one->period;
		drop(one);
	}
	g->n = kept;
}

static void swap(struct growth *a, struct growth *b)
{
	const struct growth was = *a;

	*a = *b;
	*b = was;
}

void growth_leave_grown(struct growths *g)
{
	size_t grown = 0, kept = 0, most;

	for (size_t i = 0; i < g->n; i++)
		if (g->list[i].now > g->list[i].base &&
		    g->list[i].now - g->list[i].base >= 2 * g->list[i].period)
			swap(&g->list[grown++], &g->list[i]);
	if (grown)
		qsort(g->list, grown, sizeof(*g->list), by_growth);
	for (size_t i = 0; i < grown; i++) {
		const struct growth *one = &g->list[i], *first = g->list;

		for (most = 0; most < kept && strcmp(first->count, one->count); most++)
			first++;
		if (most == kept || one->now - one->base >= (first->now - first->base) / 4)
			swap(&g->list[kept++], &g->list[i]);
	}
	for (size_t i = kept; i < g->n; i++)
		drop(&g->list[i]);
	g->n = kept;
}
