// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu VERB: gives guests a performance monitoring unit. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vpmu.h"

#ifndef VPMU_VERSION
#define VPMU_VERSION "0"
#endif

static const struct verb {
	const char *name;
	int (*call)(int argc, char **argv);
	const char *help;
} verbs[] = {
	{ "run", verb_run, "run a command in a guest that has a PMU" },
	{ "qemu", verb_qemu, "the QEMU that has the PMU, with your arguments" },
	{ "check", verb_check, "can this machine, can a guest count?" },
	{ "list", verb_list, "what a guest can count, and what each number is worth" },
	{ "contention", verb_contention, "who gets a counter that host and guest both want" },
	{ "bench", verb_bench, "count the commands of a file, and hold them to a baseline" },
	{ "compare", verb_compare, "counts against a baseline, for CI" },
	{ "flame", verb_flame, "draw the call chains of perf record -g" },
	{ "timeline", verb_timeline, "draw what vpmu run --trace wrote" },
	{ "decode", verb_decode, "a register's value in words" },
	{ "lost", verb_lost, "inside a guest: which of its counters counted all the time" },
	{ "kvm", verb_kvm, "on a KVM host: who has a PMU; save and load its state" },
};

#define N_VERBS		(sizeof(verbs) / sizeof(verbs[0]))

static void print_help(FILE *to)
{
	fprintf(to, "Usage: vpmu VERB [options]\n\n"
		"Gives every x86 guest a performance monitoring unit.\n\n");
	for (size_t i = 0; i < N_VERBS; i++)
		fprintf(to, "  vpmu %-10s %s\n", verbs[i].name, verbs[i].help);
	fprintf(to, "\nvpmu help VERB says more. For a start:\n\n"
		"  vpmu run -- perf stat -e instructions,branches ./program\n");
}

int verb_qemu(int argc, char **argv)
{
	struct qemu qemu;
	char **args = xalloc((argc + 3) * sizeof(*args));
	int n = 0;

	if (argc > 1 && !strcmp(argv[1], "--help")) {
		printf("Usage: vpmu qemu ARGUMENT...\n\n"
		       "Runs vpmu's qemu-system-x86_64 with these arguments;\n"
		       "vpmu qemu -help shows QEMU's own help.\n");
		return 0;
	}
	qemu_find(&qemu, false);
	args[n++] = qemu.binary;
	if (qemu.firmware) {
		args[n++] = "-L";
		args[n++] = qemu.firmware;
	}
	memcpy(args + n, argv + 1, (argc - 1) * sizeof(*args));
	execv(qemu.binary, args);
	fail(EXIT_VPMU, "%s: %s", qemu.binary, strerror(errno));
}

static int unknown_verb(const char *name)
{
	const char *names[N_VERBS + 1], *found;

	for (size_t i = 0; i < N_VERBS; i++)
		names[i] = verbs[i].name;
	names[N_VERBS] = NULL;
	found = nearest(name, names);
	if (found)
		fail(EXIT_VPMU, "unknown verb '%s'; did you mean %s? "
		     "(vpmu --help lists them)", name, found);
	fail(EXIT_VPMU, "unknown verb '%s' (vpmu --help lists them)", name);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return EXIT_VPMU;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    (!strcmp(argv[1], "help") && argc == 2)) {
		print_help(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("vpmu %s\n", VPMU_VERSION);
		return 0;
	}
	if (!strcmp(argv[1], "help")) {
		argv[1] = argv[2];
		argv[2] = "--help";
	}
	for (size_t i = 0; i < N_VERBS; i++)
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].call(argc - 1, argv + 1);
	return unknown_verb(argv[1]);
}
