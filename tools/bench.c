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

#include "counts.h"
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
"  vpmu bench --update bench     # then commit bench and bench.baseline\n"
"  vpmu bench bench\n";

/* EVENTS [NAME COMMAND]...; the counts are its output. */
static const char script[] =
	"out=/tmp/vpmu-bench.$$ events=$1\n"
	"shift 1\n"
	"while [ $# -gt 0 ]; do\n"
	"	printf '" COUNTS_TITLE "%s\\n' \"$1\" >>\"$out\"\n"
	"	eval \"env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/ LC_ALL=C.UTF-8 \\\n"
	"		PYTHONHASHSEED=0 setarch -R perf stat -x, --append -o \\\"\\$out\\\" \\\n"
	"		-e \\\"\\$events\\\" -- $2\" \\\n"
	"		</dev/null >/dev/null || {\n"
	"		echo \"vpmu: $1: status $?\" >&2\n"
	"		exit 125\n"
	"	}\n"
	"	shift 2\n"
	"done\n"
	"cat \"$out\"\n";

struct bench {
	char *name, *command;
	bool chosen;
};
struct benches {
	const char *path;
	struct bench *list;
	size_t n;
};

static const struct bench *find(const struct benches *b, const char *name)
{
	for (size_t i = 0; i < b->n; i++)
		if (!strcmp(b->list[i].name, name))
			return &b->list[i];
	return NULL;
}

/* "sort: sort -n numbers" */
static void take_line(struct benches *b, char *line, size_t number)
{
	char *colon = strstr(line, ": ");

	line[strcspn(line, "\n")] = '\0';
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return;
	if (!colon || colon == line || !colon[2 + strspn(colon + 2, " \t")])
		fail(EXIT_VPMU, "%s:%zu: found '%s', needed a name, a colon and a command", b->path,
		     number, line);
	*colon = '\0';
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

/* ---- the run */

struct plan {
	const char *events;
	char *const *more;	/* options of vpmu run */
	size_t n_more;
	bool repeat;		/* each command has a guest of its own, which repeats */
	FILE *counts;		/* what the guests print */
};

/* Commands @from to @to, without that one, of those that are chosen. */
struct part {
	const struct benches *b;
	const struct plan *p;
	size_t from, to;
};

static int run_part(void *ctx)
{
	const struct part *part = ctx;
	const struct plan *p = part->p;
	char **argv = xalloc((p->n_more + 8 + 2 * (part->to - part->from)) * sizeof(*argv));
	int argc = 0;

	argv[argc++] = "run";
	if (p->repeat)
		argv[argc++] = "--repeat";
	for (size_t i = 0; i < p->n_more; i++)
		argv[argc++] = p->more[i];
	argv[argc++] = "--";
	argv[argc++] = "sh";
	argv[argc++] = "-c";
	argv[argc++] = (char *)script;
	argv[argc++] = "bench";
	argv[argc++] = (char *)p->events;
	for (size_t i = part->from; i < part->to; i++) {
		const struct bench *one = &part->b->list[i];

		if (one->chosen) {
			argv[argc++] = one->name;
			argv[argc++] = one->command;
		}
	}
	return verb_run(argc, argv);
}

/*
 * A run that repeats has one command: what others do before it, such as taking random
 * numbers, is no part of its counts, and a new line in the file changes no other's.
 */
static int count(const struct benches *b, const struct plan *p)
{
	struct part part = { .b = b, .p = p, .to = b->n };
	int status = 0;

	if (!p->repeat)
		return in_child(run_part, &part, NULL, p->counts);
	for (size_t i = 0; i < b->n && !status; i++) {
		part.from = i;
		part.to = i + 1;
		if (b->list[i].chosen)
			status = in_child(run_part, &part, NULL, p->counts);
	}
	return status;
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

int verb_bench(int argc, char **argv)
{
	struct plan p = { .events = "instructions:u" };
	const char *shard = NULL, *output = NULL;
	struct verdict_options o = { 0 };
	bool update = false;
	const struct option_def defs[] = {
		{ "events", 'e', "LIST", "what perf stat counts (instructions:u)", &p.events },
		{ "repeat", 0, NULL, "each command in a run that repeats: any program, any count",
		  &p.repeat },
		{ "update", 0, NULL, "write FILE.baseline instead", &update },
		{ "shard", 0, "K/N", "the K-th part of N, for a machine of several", &shard },
		{ "output", 'o', "FILE", "keep the counts, for vpmu compare", &output },
		VERDICT_OPTIONS(&o),
		{ NULL, 0, NULL, NULL, NULL },
	};
	int at = options_parse(argc, argv, defs, usage), status;
	struct counts base = { 0 }, now = { 0 };
	struct benches b = { 0 };
	char *baseline, *kept;

	if (at == argc)
		fail(EXIT_VPMU, "bench takes a file of commands (vpmu bench --help)");
	read_benches(&b, argv[at]);
	if (shard)
		choose(&b, shard);
	if (shard && update)
		fail(EXIT_VPMU, "--update counts all commands; needed: no --shard");
	baseline = xprintf("%s.baseline", argv[at]);
	if (!update && access(baseline, R_OK))
		fail(EXIT_VPMU, "%s: %s; vpmu bench --update %s writes it", baseline,
		     strerror(errno), argv[at]);
	p.more = argv + at + 1;
	p.n_more = argc - at - 1;
	p.counts = tmpfile();
	if (!p.counts)
		fail(EXIT_VPMU, "no temporary file: %s", strerror(errno));
	status = count(&b, &p);
	if (status)
		return status;
	kept = xprintf("/proc/self/fd/%d", fileno(p.counts));
	counts_read(&now, kept);
	check_complete(&now, &b);
	if (output)
		write_counts(&now, output);
	if (update) {
		write_counts(&now, baseline);
		return 0;
	}
	counts_read(&base, baseline);
	leave_out(&base, &b);
	return verdict(&base, &now, &o);
}
