// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * vpmu run --repeat --twice: where two runs of a command part. Each is recorded by perf in
 * its guest: system calls with their results, page faults, switches and ticks, with times that
 * are numbers of instructions. The first line in which the two logs differ is the answer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vpmu.h"

/* COMMAND...; the log is its output. Buffers of 4 MB lose no event of a guest without load. */
static const char script[] =
	"log=/tmp/vpmu-twice.$$\n"
	"perf record -q -a -m 4M -o $log -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit \\\n"
	"	-e sched:sched_switch -e exceptions:page_fault_user \\\n"
	"	-e irq_vectors:local_timer_entry -- \"$@\" >/dev/null 2>&1\n"
	"status=$?\n"
	"perf script -i $log --ns -F comm,tid,time,event,trace 2>/dev/null\n"
	"exit $status\n";

static const char *const syscalls[] = {
#include "syscalls.h"
};

static const char *syscall_name(unsigned long number)
{
	return number < sizeof(syscalls) / sizeof(syscalls[0]) && syscalls[number] ?
	       syscalls[number] : "?";
}

/* "wc 87 2.762347123: raw_syscalls:sys_exit: NR 257 = -2", with the call's name. */
static void print_event(const char *which, const char *line)
{
	const char *call = strstr(line, "raw_syscalls:"), *number = strstr(line, ": NR ");
	unsigned long n;
	char *rest;

	if (!line[0]) {
		say("%s: has ended", which);
	} else if (call && number && call < number) {
		n = strtoul(number + 5, &rest, 10);
		say("%s: %.*s%s%s", which, (int)(call - line), line, syscall_name(n), rest);
	} else {
		say("%s: %s", which, line);
	}
}

/* Each run of blanks becomes one. */
static void squeeze(char *line)
{
	char *to = line;

	for (const char *from = line + strspn(line, " \t"); *from && *from != '\n'; from++)
		if ((*from != ' ' && *from != '\t') || (from[1] != ' ' && from[1] != '\t'))
			*to++ = *from == '\t' ? ' ' : *from;
	*to = '\0';
}

struct log {
	FILE *file;
	char *line;		/* the last one that was read, "" at the end */
	size_t size;
};

static void next(struct log *log)
{
	if (getline(&log->line, &log->size, log->file) > 0)
		squeeze(log->line);
	else if (log->line)
		log->line[0] = '\0';
}

static void say_parting(const char *before, const struct log *a, const struct log *b,
			unsigned long n)
{
	say("the two runs part after %lu events; times are the guest's, in instructions:", n);
	print_event("both", before);
	print_event("1st", a->line);
	print_event("2nd", b->line);
	say("the usual causes: a file that the first run has left behind or that something else "
	    "has changed, and how old files are that were written just before");
}

/* Returns true if they are equal, and says where they are not. */
static bool compare(FILE *first, FILE *second)
{
	struct log a = { .file = first }, b = { .file = second };
	char *before = NULL;
	unsigned long n = 0;
	bool same;

	rewind(first);
	rewind(second);
	for (next(&a), next(&b); a.line && b.line && a.line[0] && !strcmp(a.line, b.line); n++) {
		free(before);
		before = strdup(a.line);
		next(&a);
		next(&b);
	}
	if (!before || !a.line || !b.line) {
		free(before);
		fail(EXIT_VPMU, "--twice: perf in the guest has recorded nothing");
	}
	same = !a.line[0] && !b.line[0];
	if (same)
		say("both runs are the same: %lu events", n);
	else
		say_parting(before, &a, &b, n);
	free(before);
	free(a.line);
	free(b.line);
	return same;
}

/* Both runs read the same standard input, from its start. */
static FILE *keep_input(void)
{
	FILE *input = tmpfile();
	char data[65536];
	ssize_t n = 0;

	while (input && !isatty(0) && (n = read(0, data, sizeof(data))) > 0)
		if (fwrite(data, 1, n, input) != (size_t)n) {
			n = -1;
			break;
		}
	if (!input || n < 0 || fflush(input))
		fail(EXIT_VPMU, "standard input: %s", strerror(errno));
	return input;
}

int twice(int (*run)(void *ctx), void *ctx)
{
	FILE *input = keep_input(), *log[2] = { tmpfile(), tmpfile() };
	int status = 0;

	if (!log[0] || !log[1])
		fail(EXIT_VPMU, "no temporary file: %s", strerror(errno));
	for (int i = 0; i < 2; i++) {
		lseek(fileno(input), 0, SEEK_SET);
		status = in_child(run, ctx, input, log[i]);
		if (status == EXIT_VPMU)
			return status;
	}
	return compare(log[0], log[1]) ? status : EXIT_VPMU;
}

char **twice_command(char **command)
{
	char *shell[] = { "sh", "-c", (char *)script, "sh" }, **logged;
	size_t n = 0;

	while (command[n])
		n++;
	logged = xalloc((n + 5) * sizeof(*logged));
	memcpy(logged, shell, sizeof(shell));
	memcpy(logged + 4, command, (n + 1) * sizeof(*logged));
	return logged;
}
