// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The guest of vpmu bench counts commands, and samples those whose counts have grown. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "growth.h"
#include "vpmu.h"

#define PROGRAMS "PATH=/usr/local/bin:/usr/bin:/bin"
#define ENVIRONMENT \
	"env -i " PROGRAMS " HOME=/ LC_ALL=C.UTF-8 PYTHONHASHSEED=0 "
/* A bundle's perf is in no directory of those. */
#define FIND_PROGRAMS \
	"perf=$(command -v perf) || perf=perf\n" \
	"(" PROGRAMS "; command -v setarch) >/dev/null || {\n" \
	"	echo 'vpmu: found no setarch, which fixes addresses:' \\\n" \
	"		'it is in package util-linux' >&2\n" \
	"	exit 125\n" \
	"}\n"
#define RUN_OR_FAIL \
	"</dev/null >/dev/null || {\n" \
	"		echo \"vpmu: $1: status $?\" >&2\n" \
	"		exit 125\n" \
	"	}\n"

/* [NAME EVENTS COMMAND]...; the counts are its output. */
static const char count_script[] =
	FIND_PROGRAMS
	"out=/tmp/vpmu-bench.$$\n"
	"while [ $# -gt 0 ]; do\n"
	"	printf '" COUNTS_TITLE "%s\\n' \"$1\" >>\"$out\"\n"
	"	events=$2\n"
	"	eval \"" ENVIRONMENT "setarch -R \\\"\\$perf\\\" stat -x, --append \\\n"
	"		-o \\\"\\$out\\\" -e \\\"\\$events\\\" -- $3\" " RUN_OR_FAIL
	"	shift 3\n"
	"done\n"
	"cat \"$out\"\n";

/*
 * [NAME EVENT COMMAND PERIOD]...; samples are its output. Node tells perf the names of its
 * functions when it is asked to.
 */
static const char sample_script[] =
	FIND_PROGRAMS
	"out=/tmp/vpmu-bench.$$\n"
	"while [ $# -gt 0 ]; do\n"
	"	printf '" COUNTS_TITLE "%s\\n' \"$1\"\n"
	"	event=$2 period=$4\n"
	"	eval \"" ENVIRONMENT "NODE_OPTIONS=--perf-basic-prof \\\n"
	"		setarch -R \\\"\\$perf\\\" record -q -o \\\"\\$out\\\" \\\n"
	"		-c \\\"\\$period\\\" -e \\\"\\$event\\\" -- $3\" " RUN_OR_FAIL
	"	perf script -G -F " GROWTH_FIELDS " -i \"$out\" || exit\n"
	"	shift 4\n"
	"done\n";

/* A script of the guest, with its arguments. */
struct work {
	const struct bench_plan *p;
	const char *script;
	char **arg;
	size_t n, each;		/* those of one command */
};

static struct work new_work(const struct bench_plan *p, const char *script, size_t each,
			    size_t most)
{
	return (struct work){ p, script, xalloc(most * each * sizeof(char *)), 0, each };
}

static int run_work(void *ctx)
{
	const struct work *w = ctx;
	const struct bench_plan *p = w->p;
	char **argv = xalloc((p->n_more + w->n + 8) * sizeof(*argv));
	int argc = 0;

	argv[argc++] = "run";
	if (p->repeat)
		argv[argc++] = "--repeat";
	for (size_t i = 0; i < p->n_more; i++)
		argv[argc++] = p->more[i];
	argv[argc++] = "--";
	argv[argc++] = "sh";
	argv[argc++] = "-c";
	argv[argc++] = (char *)w->script;
	argv[argc++] = "bench";
	for (size_t i = 0; i < w->n; i++)
		argv[argc++] = w->arg[i];
	return verb_run(argc, argv);
}

/*
 * Write what the script prints to @out. Returns vpmu run's status.
 *
 * A run that repeats has one command: what others do before it, such as taking random
 * numbers, is no part of its counts, and a new line in the file changes no other's.
 */
static int do_work(const struct work *w, FILE *out)
{
	struct work one = *w;
	int status = 0;

	if (!w->p->repeat)
		return in_child(run_work, &one, NULL, out);
	one.n = w->each;
	for (; one.arg < w->arg + w->n && !status; one.arg += w->each)
		status = in_child(run_work, &one, NULL, out);
	return status;
}

static FILE *new_file(void)
{
	FILE *file = tmpfile();

	if (!file)
		fail(EXIT_VPMU, "no temporary file: %s", strerror(errno));
	return file;
}

int bench_count(const struct benches *b, const struct bench_plan *p, struct counts *now)
{
	struct work w = new_work(p, count_script, 3, b->n);
	FILE *out = new_file();
	char *path = xprintf("/proc/self/fd/%d", fileno(out));
	int status;

	for (const struct bench *one = b->list; one < b->list + b->n; one++) {
		if (!one->chosen)
			continue;
		w.arg[w.n++] = one->name;
		w.arg[w.n++] = (char *)p->events;
		w.arg[w.n++] = one->command;
	}
	status = do_work(&w, out);
	if (!status)
		counts_read(now, path);
	fclose(out);
	free(path);
	free(w.arg);
	return status;
}

bool bench_sample(const struct bench_sampled *list, size_t n, const struct bench_plan *p,
		  struct buffer *text)
{
	struct work w = new_work(p, sample_script, 4, n);
	FILE *out = new_file();
	char block[4096];
	size_t size;
	bool done;

	for (size_t i = 0; i < n; i++) {
		w.arg[w.n++] = list[i].of->name;
		w.arg[w.n++] = (char *)list[i].event;
		w.arg[w.n++] = list[i].of->command;
		w.arg[w.n++] = xprintf("%" PRIu64, list[i].period);
	}
	done = !do_work(&w, out) && !fseek(out, 0, SEEK_SET);
	while (done && (size = fread(block, 1, sizeof(block), out)))
		buffer_add(text, block, size);
	for (size_t i = 3; i < w.n; i += w.each)
		free(w.arg[i]);
	fclose(out);
	free(w.arg);
	return done && text->data;
}
