// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * vpmu bench: counts each command of a file in one guest, and holds the counts to a baseline
 * beside the file. What makes a program's counts differ from run to run is taken away as far
 * as can be: the environment, randomised addresses, the kinds of its streams; with --repeat,
 * all of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "growth.h"
#include "verdict.h"
#include "vpmu.h"

static const char usage[] =
"Usage: vpmu bench [options] FILE [OPTION-OF-RUN...]\n"
"\n"
"Counts each command of FILE in a guest, and holds the counts to those in FILE.baseline. A\n"
"line of FILE is a name, a colon and a command with its arguments. Exit status 1: a count\n"
"has grown.\n"
"\n"
"  echo 'sort: sort -n numbers' >bench\n"
"  vpmu bench --update --functions bench     # then commit bench, bench.baseline, bench.functions\n"
"  vpmu bench bench\n";

static const struct bench *find(const struct benches *b, const char *name)
{
	for (size_t i = 0; i < b->n; i++)
		if (!strcmp(b->list[i].name, name))
			return &b->list[i];
	return NULL;
}

/* The first character outside of quotes that would begin another command, or NULL. */
static const char *second_command(const char *command)
{
	char quote = '\0';

	for (const char *c = command; *c; c++) {
		if (*c == '\\' && quote != '\'' && c[1])
			c++;
		else if (quote)
			quote = *c == quote ? '\0' : quote;
		else if (*c == '\'' || *c == '"')
			quote = *c;
		else if (strchr(";|", *c) || (*c == '&' && (c == command || !strchr("<>", c[-1]))))
			return c;
	}
	return NULL;
}

/* "sort: sort -n numbers" */
static void take_line(struct benches *b, char *line, size_t number)
{
	char *colon = strstr(line, ": ");
	const char *second;

	line[strcspn(line, "\n")] = '\0';
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return;
	if (!colon || colon == line || !colon[2 + strspn(colon + 2, " \t")])
		fail(EXIT_VPMU, "%s:%zu: found '%s', needed a name, a colon and a command", b->path,
		     number, line);
	*colon = '\0';
	second = second_command(colon + 2);
	if (second)
		fail(EXIT_VPMU, "%s:%zu: found '%c' outside of quotes, needed one command; "
		     "sh -c '...' runs several", b->path, number, *second);
	if (find(b, line))
		fail(EXIT_VPMU, "%s:%zu: found a second %s", b->path, number, line);
	b->list = reallocarray(b->list, b->n + 1, sizeof(*b->list));
	if (!b->list)
		fail(EXIT_VPMU, "out of memory");
	b->list[b->n++] = (struct bench){ xprintf("%s", line), xprintf("%s", colon + 2), true };
}

static void read_benches(struct benches *b, const char *path)
{
	size_t size = 0, number = 0;
	FILE *in = fopen(path, "re");
	char *line = NULL;

	b->path = path;
	if (!in)
		fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
	while (getline(&line, &size, in) > 0)
		take_line(b, line, ++number);
	if (ferror(in))
		fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
	free(line);
	fclose(in);
	if (!b->n)
		fail(EXIT_VPMU, "%s: found no command", path);
}

/* "2/8": the second, tenth, ... of the commands. */
static void choose(struct benches *b, const char *shard)
{
	char *slash, *end = "";
	unsigned long k = strtoul(shard, &slash, 10), n = *slash == '/' ?
			  strtoul(slash + 1, &end, 10) : 0;

	if (*end || !k || k > n || n > 1000000)
		fail(EXIT_VPMU, "--shard %s: K/N is needed, with K from 1 to N", shard);
	for (size_t i = 0; i < b->n; i++)
		b->list[i].chosen = i % n == k - 1;
}

/* ---- the counts */

/* Write the rows as perf stat -x, does, but for what differs in each run. */
static void write_counts(const struct counts *c, const char *path)
{
	FILE *out = fopen(path, "we");

	for (size_t i = 0; out && i < c->n; i++) {
		const struct count *one = &c->list[i];

		if (!i || strcmp(one->program, one[-1].program))
			fprintf(out, COUNTS_TITLE "%s\n", one->program);
		if (one->counted)
			fprintf(out, "%" PRIu64 ",,%s,0,%.2f,,\n", one->value, one->event,
				one->share);
		else
			fprintf(out, "<not counted>,,%s,0,0.00,,\n", one->event);
	}
	if (!out || ferror(out) | fclose(out))
		fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
}

/* A full disk must not make a baseline of some of the commands. */
static void check_complete(const struct counts *now, const struct benches *b)
{
	for (const struct bench *one = b->list; one < b->list + b->n; one++) {
		size_t i = 0;

		while (i < now->n && strcmp(now->list[i].program, one->name))
			i++;
		if (one->chosen && i == now->n)
			fail(EXIT_VPMU, "%s: perf stat has written no count", one->name);
	}
}

/* Leave out of the baseline what another machine counts. */
static void leave_out(struct counts *base, const struct benches *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < base->n; i++) {
		const char *program = base->list[i].program;
		const struct bench *of = program ? find(b, program) : NULL;

		if (!of || of->chosen)
			base->list[kept++] = base->list[i];
	}
	base->n = kept;
}

/* ---- the functions */

/*
 * The period before and now is the same, since it follows from the baseline's count. Shorter
 * ones say no more of a program that takes so few instructions.
 */
#define SAMPLES		10000
#define SHORTEST_PERIOD	1009
/* Below this many periods, what a count grew by is lost in the chance of where samples fall. */
#define LEAST_GROWTH	10

static uint64_t period_of(const struct count *base)
{
	uint64_t period = base->value / SAMPLES | 1;

	return period < SHORTEST_PERIOD ? SHORTEST_PERIOD : period;
}

struct functions {
	const struct benches *b;
	const struct bench_plan *p;
	const struct counts *base;
	const char *path;
};

/* Sample the commands of these rows, but for those that grew by too little. */
static bool sample(const struct functions *f, const struct count *const *row, size_t n,
		   struct buffer *text)
{
	struct bench_sampled *list = xalloc(n * sizeof(*list));
	size_t kept = 0;
	bool done;

	for (size_t i = 0; i < n; i++) {
		const struct count *base = counts_find(f->base, row[i]->name, 0);
		const struct bench *of = row[i]->program ? find(f->b, row[i]->program) : NULL;
		uint64_t period = base ? period_of(base) : 0;

		if (base && of && (base == row[i] ||
				   row[i]->value >= base->value + LEAST_GROWTH * period))
			list[kept++] = (struct bench_sampled){ of, base->event, period };
	}
	done = !kept || bench_sample(list, kept, f->p, text);
	free(list);
	return done;
}

/* Samples of the functions of all rows, by their sums; growth_add() takes them, too. */
static void write_functions(const struct functions *f)
{
	const struct count **row = xalloc(f->base->n * sizeof(const struct count *));
	struct growths sums = { 0 };
	struct buffer text = { 0 };
	size_t program = 0;
	FILE *out;

	for (size_t i = 0; i < f->base->n; i++)
		row[i] = &f->base->list[i];
	if (!sample(f, row, f->base->n, &text))
		fail(EXIT_VPMU, "%s: perf record has taken no sample", f->path);
	growth_add(&sums, text.data, true);
	growth_sum(&sums);
	out = fopen(f->path, "we");
	for (const struct growth *g = sums.list; out && g < sums.list + sums.n; g++) {
		const char *event = (char *)memrchr(g->count, ' ', strlen(g->count)) + 1;

		if (g == sums.list || program != (size_t)(event - 2 - g->count) ||
		    strncmp(g->count, g[-1].count, program + 2)) {
			program = event - 2 - g->count;
			fprintf(out, COUNTS_TITLE "%.*s\n", (int)program, g->count);
		}
		fprintf(out, "%" PRIu64 " %s: - %s (-)\n", g->base, event, g->function);
	}
	if (!out || ferror(out) | fclose(out))
		fail(EXIT_VPMU, "%s: %s", f->path, strerror(errno));
	buffer_free(&text);
	free(row);
}

static void name_functions(const struct verdict_options *o, const struct count *const *failed,
			   size_t n, struct growths *functions)
{
	const struct functions *f = o->of_functions;
	struct buffer base = { 0 }, now = { 0 };
	FILE *in = fopen(f->path, "re");
	size_t size = 0;
	char *line = NULL;

	if (!in)
		fail(EXIT_VPMU, "%s: %s", f->path, strerror(errno));
	while (getline(&line, &size, in) > 0)
		buffer_string(&base, line);
	if (ferror(in))
		fail(EXIT_VPMU, "%s: %s", f->path, strerror(errno));
	fclose(in);
	free(line);
	if (!sample(f, failed, n, &now))
		say("perf record has taken no sample to name functions by");
	growth_add(functions, base.data, true);
	growth_add(functions, now.data, false);
	buffer_free(&base);
	buffer_free(&now);
}

int verb_bench(int argc, char **argv)
{
	struct bench_plan p = { .events = "instructions:u" };
	const char *shard = NULL, *output = NULL;
	struct verdict_options o = { 0 };
	bool update = false, functions = false;
	const struct option_def defs[] = {
		{ "events", 'e', "LIST", "what perf stat counts (instructions:u)", &p.events },
		{ "repeat", 0, NULL, "each command in a run that repeats: any program, any count",
		  &p.repeat },
		{ "update", 0, NULL, "write FILE.baseline instead", &update },
		{ "functions", 0, NULL, "with --update: keep their sums, to name those that grew",
		  &functions },
		{ "shard", 0, "K/N", "the K-th part of N, for a machine of several", &shard },
		{ "output", 'o', "FILE", "keep the counts, for vpmu compare", &output },
		VERDICT_OPTIONS(&o),
		{ NULL, 0, NULL, NULL, NULL },
	};
	int at = options_parse(argc, argv, defs, usage), status;
	struct counts base = { 0 }, now = { 0 };
	struct benches b = { 0 };
	struct functions f = { &b, &p, &base, NULL };
	char *baseline;

	if (at == argc)
		fail(EXIT_VPMU, "bench takes a file of commands (vpmu bench --help)");
	read_benches(&b, argv[at]);
	if (shard)
		choose(&b, shard);
	if (shard && update)
		fail(EXIT_VPMU, "--update counts all commands; needed: no --shard");
	if (functions && !update)
		fail(EXIT_VPMU, "--functions needs --update; without it %s.functions says whether "
		     "functions are named", argv[at]);
	baseline = xprintf("%s.baseline", argv[at]);
	if (!update && access(baseline, R_OK))
		fail(EXIT_VPMU, "%s: %s; vpmu bench --update %s writes it", baseline,
		     strerror(errno), argv[at]);
	p.more = argv + at + 1;
	p.n_more = argc - at - 1;
	f.path = xprintf("%s.functions", argv[at]);
	status = bench_count(&b, &p, &now);
	if (status)
		return status;
	check_complete(&now, &b);
	if (output)
		write_counts(&now, output);
	if (update) {
		write_counts(&now, baseline);
		f.base = &now;
		if (functions || !access(f.path, F_OK))
			write_functions(&f);
		return 0;
	}
	counts_read(&base, baseline);
	leave_out(&base, &b);
	if (!access(f.path, F_OK)) {
		o.name_functions = name_functions;
		o.of_functions = &f;
	}
	return verdict(&base, &now, &o);
}
