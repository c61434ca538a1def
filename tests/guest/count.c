// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Runs programs and holds what the PMU counted in user mode against what each
 * says of itself (guest.h, EXPECT). One line per program and set of events:
 * "ok NAME: counts", or "not ok NAME: run, event, found, expected".
 *
 *   count [-r RUNS] [-b NEIGHBOURS] [-e EXTRA] [-k] [-s] PROGRAM...
 *   count -x PROGRAM...
 *
 *   -r  runs of each program (1)
 *   -b  processes that keep the CPUs busy meanwhile (0)
 *   -e  added to each expected number, to see this test fail (0)
 *   -k  all kinds of branches, in groups of as many events as there are counters
 *   -s  single-stepped through
 *   -x  only print PROGRAM, its instructions and its branches
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <elf.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_EVENTS 16

/* Kinds in the order in which guest.h's EXPECT writes them. */
enum { INSNS, TAKEN, NOT_TAKEN, JMP, CALL, RET, JMP_IND, CALL_IND, FAR, KINDS };

#define BIT(kind)	(1u << (kind))
#define COND		(BIT(TAKEN) | BIT(NOT_TAKEN))
#define CALLS		(BIT(CALL) | BIT(CALL_IND))
#define INDIRECT	(BIT(JMP_IND) | BIT(CALL_IND))
#define NEAR_TAKEN	(BIT(TAKEN) | BIT(JMP) | BIT(RET) | BIT(JMP_IND) | CALLS)
#define BRANCHES	(BIT(FAR) | NEAR_TAKEN | BIT(NOT_TAKEN))

struct event {
	const char *name;
	uint32_t type;
	uint64_t config;
	unsigned int kinds;	/* kinds that add up to the event */
};

static const struct event instructions = {
	"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, BIT(INSNS)
};
static const struct event branches = {
	"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, BRANCHES
};

static const struct event icelake[] = {
	{ "cond_taken", PERF_TYPE_RAW, 0x01c4, BIT(TAKEN) },
	{ "call", PERF_TYPE_RAW, 0x02c4, CALLS },
	{ "return", PERF_TYPE_RAW, 0x08c4, BIT(RET) },
	{ "cond_ntaken", PERF_TYPE_RAW, 0x10c4, BIT(NOT_TAKEN) },
	{ "near_taken", PERF_TYPE_RAW, 0x20c4, NEAR_TAKEN },
	{ "far", PERF_TYPE_RAW, 0x40c4, BIT(FAR) },
	{ "indirect", PERF_TYPE_RAW, 0x80c4, INDIRECT },
	{ "branches", PERF_TYPE_RAW, 0x00c4, BRANCHES },
	{ "cond", PERF_TYPE_RAW, 0x11c4, COND },
	{ NULL, 0, 0, 0 }
};
static const struct event skylake[] = {
	{ "cond", PERF_TYPE_RAW, 0x01c4, COND },
	{ "call", PERF_TYPE_RAW, 0x02c4, CALLS },
	{ "return", PERF_TYPE_RAW, 0x08c4, BIT(RET) },
	{ "not_taken", PERF_TYPE_RAW, 0x10c4, BIT(NOT_TAKEN) },
	{ "near_taken", PERF_TYPE_RAW, 0x20c4, NEAR_TAKEN },
	{ "far", PERF_TYPE_RAW, 0x40c4, BIT(FAR) },
	{ "branches", PERF_TYPE_RAW, 0x00c4, BRANCHES },
	{ NULL, 0, 0, 0 }
};

static const struct event nehalem[] = {
	{ "any_p", PERF_TYPE_RAW, 0x01c0, BIT(INSNS) },
	{ "cond", PERF_TYPE_RAW, 0x01c4, COND },
	{ "call", PERF_TYPE_RAW, 0x02c4, CALLS },
	{ "branches", PERF_TYPE_RAW, 0x04c4, BRANCHES },
	{ NULL, 0, 0, 0 }
};
static const struct event core2[] = {
	{ "taken", PERF_TYPE_RAW, 0x0cc4, NEAR_TAKEN | BIT(FAR) },
	{ "branches", PERF_TYPE_RAW, 0x00c4, BRANCHES },
	{ NULL, 0, 0, 0 }
};
static const struct event core_duo[] = {
	{ "branches", PERF_TYPE_RAW, 0x00c4, BRANCHES },
	{ "taken", PERF_TYPE_RAW, 0x00c9, NEAR_TAKEN | BIT(FAR) },
	{ NULL, 0, 0, 0 }
};
static const struct event bonnell[] = {
	{ "cond", PERF_TYPE_RAW, 0x0188, COND },
	{ "uncond", PERF_TYPE_RAW, 0x0288, BIT(JMP) },
	{ "indirect_jmp", PERF_TYPE_RAW, 0x0488, BIT(JMP_IND) },
	{ "return", PERF_TYPE_RAW, 0x0888, BIT(RET) },
	{ "direct_call", PERF_TYPE_RAW, 0x1088, BIT(CALL) },
	{ "indirect_call", PERF_TYPE_RAW, 0x2088, BIT(CALL_IND) },
	{ "cond_taken", PERF_TYPE_RAW, 0x4188, BIT(TAKEN) },
	{ "taken", PERF_TYPE_RAW, 0x0cc4, NEAR_TAKEN | BIT(FAR) },
	{ NULL, 0, 0, 0 }
};
static const struct event atom[] = {
	{ "cond", PERF_TYPE_RAW, 0x7ec4, COND },
	{ "far", PERF_TYPE_RAW, 0xbfc4, BIT(FAR) },
	{ "indirect", PERF_TYPE_RAW, 0xebc4, INDIRECT },
	{ "return", PERF_TYPE_RAW, 0xf7c4, BIT(RET) },
	{ "call", PERF_TYPE_RAW, 0xf9c4, CALLS },
	{ "indirect_call", PERF_TYPE_RAW, 0xfbc4, BIT(CALL_IND) },
	{ "direct_call", PERF_TYPE_RAW, 0xfdc4, BIT(CALL) },
	{ "cond_taken", PERF_TYPE_RAW, 0xfec4, BIT(TAKEN) },
	{ NULL, 0, 0, 0 }
};

static const struct event darkmont[] = {
	{ "cond_taken", PERF_TYPE_RAW, 0x03c4, BIT(TAKEN) },
	{ "cond_ntaken", PERF_TYPE_RAW, 0x04c4, BIT(NOT_TAKEN) },
	{ "cond", PERF_TYPE_RAW, 0x07c4, COND },
	{ "return", PERF_TYPE_RAW, 0x08c4, BIT(RET) },
	{ "indirect_call", PERF_TYPE_RAW, 0x10c4, BIT(CALL_IND) },
	{ "direct_call", PERF_TYPE_RAW, 0x20c4, BIT(CALL) },
	{ "indirect_jmp", PERF_TYPE_RAW, 0x40c4, BIT(JMP_IND) },
	{ "indirect_or_return", PERF_TYPE_RAW, 0x58c4, INDIRECT | BIT(RET) },
	{ "direct_jmp", PERF_TYPE_RAW, 0x80c4, BIT(JMP) },
	{ "near_taken", PERF_TYPE_RAW, 0xfbc4, NEAR_TAKEN },
	{ NULL, 0, 0, 0 }
};

/* Event names by the model that CPUID displays; all other models have icelake's. */
static const struct {
	const struct event *events;
	uint8_t models[8];
} tables[] = {
	{ core_duo, { 14 } },
	{ core2, { 15, 23 } },
	{ nehalem, { 26, 44 } },
	{ bonnell, { 28 } },
	{ atom, { 87, 95, 133, 134 } },
	{ darkmont, { 221 } },
	{ skylake, { 42, 58, 60, 61, 85, 94 } },
};

static const struct event zen[] = {
	{ "branches", PERF_TYPE_RAW, 0xc2, BRANCHES },
	{ "taken", PERF_TYPE_RAW, 0xc4, NEAR_TAKEN | BIT(FAR) },
	{ "far", PERF_TYPE_RAW, 0xc6, BIT(FAR) },
	{ "near_return", PERF_TYPE_RAW, 0xc8, BIT(RET) },
	{ "cond", PERF_TYPE_RAW, 0xd1, COND },
	{ NULL, 0, 0, 0 }
};

static struct {
	long runs, neighbours, extra;
	bool kinds, stepping, print;
} opt = { .runs = 1 };

/* ---- what is expected */

static bool expectation(const char *path, uint64_t *expect)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const Elf64_Ehdr *e64;
	const Elf32_Ehdr *e32;
	const char *base, *names;
	bool found = false;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		err(2, "%s", path);
	base = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (base == MAP_FAILED)
		err(2, "%s", path);
	e64 = (const void *)base;
	e32 = (const void *)base;
	if (base[EI_CLASS] == ELFCLASS64) {
		const Elf64_Shdr *s = (const void *)(base + e64->e_shoff);

		names = base + s[e64->e_shstrndx].sh_offset;
		for (int i = 0; i < e64->e_shnum && !found; i++, s++)
			if (!strcmp(names + s->sh_name, ".expect")) {
				memcpy(expect, base + s->sh_offset, KINDS * 8);
				found = true;
			}
	} else {
		const Elf32_Shdr *s = (const void *)(base + e32->e_shoff);

		names = base + s[e32->e_shstrndx].sh_offset;
		for (int i = 0; i < e32->e_shnum && !found; i++, s++)
			if (!strcmp(names + s->sh_name, ".expect")) {
				memcpy(expect, base + s->sh_offset, KINDS * 8);
				found = true;
			}
	}
	munmap((void *)base, st.st_size);
	close(fd);
	return found;
}

static uint64_t expected(const uint64_t *expect, unsigned int kinds)
{
	uint64_t sum = opt.extra;

	for (int i = 0; i < KINDS; i++)
		if (kinds & BIT(i))
			sum += expect[i];
	return sum;
}

/* ---- events */

static int open_event(const struct event *e, pid_t pid, int leader)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = e->type,
		.config = e->config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = leader < 0,
		.pinned = leader < 0,
		.enable_on_exec = leader < 0,
	};

	return syscall(SYS_perf_event_open, &attr, pid, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

static const char *read_event(int fd, uint64_t *value)
{
	uint64_t v[3];
	ssize_t n = read(fd, v, sizeof(v));

	if (n == 0)
		return "not counted: its pinned group has no counter";
	if (n != sizeof(v))
		return strerror(errno);
	if (!v[1])
		return "not counted: enabled for 0 ns, the guest's clock is too coarse";
	if (v[1] != v[2])
		return "not counted all the time";
	*value = v[0];
	return NULL;
}

/* ---- one run */

/* A child that waits for the pipe to close and becomes the program. */
static pid_t start(const char *path, int *gate)
{
	int fds[2];
	pid_t pid;
	char c;

	if (pipe2(fds, O_CLOEXEC))
		err(2, "pipe");
	pid = fork();
	if (pid < 0)
		err(2, "fork");
	if (!pid) {
		close(fds[1]);
		if (opt.stepping)
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		if (read(fds[0], &c, 1) == 0)
			execl(path, path, NULL);
		_exit(127);
	}
	close(fds[0]);
	*gate = fds[1];
	return pid;
}

static int finish(pid_t pid)
{
	int status, sig;

	for (;;) {
		if (waitpid(pid, &status, 0) != pid)
			err(2, "waitpid");
		if (!WIFSTOPPED(status))
			return status;
		sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		ptrace(PTRACE_SINGLESTEP, pid, NULL, sig);
	}
}

/* Returns what is wrong, or NULL and the values. */
static const char *run(const char *path, const struct event *const *events, int n,
		       uint64_t *values)
{
	static char why[160];
	const char *bad = NULL;
	int fds[MAX_EVENTS], gate, status, i;
	pid_t pid = start(path, &gate);

	for (i = 0; i < n; i++) {
		fds[i] = open_event(events[i], pid, i ? fds[0] : -1);
		if (fds[i] < 0) {
			snprintf(why, sizeof(why), "%s:u cannot be opened: %s",
				 events[i]->name, strerror(errno));
			kill(pid, SIGKILL);
			bad = why;
			n = i;
		}
	}
	close(gate);
	status = finish(pid);
	if (!bad && status) {
		snprintf(why, sizeof(why), "the program ended with %s %d",
			 WIFSIGNALED(status) ? "signal" : "status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		bad = why;
	}
	for (i = 0; i < n; i++) {
		const char *wrong = read_event(fds[i], &values[i]);

		if (wrong && !bad) {
			snprintf(why, sizeof(why), "%s:u is %s", events[i]->name, wrong);
			bad = why;
		}
		close(fds[i]);
	}
	return bad;
}

/* ---- all runs of one program */

static void check(const char *path, const char *name, const uint64_t *expect,
		  const struct event *const *events, int n)
{
	uint64_t values[MAX_EVENTS];
	const char *bad;

	for (long r = 1; r <= opt.runs; r++) {
		bad = run(path, events, n, values);
		if (bad) {
			printf("not ok %s: run %ld: %s\n", name, r, bad);
			return;
		}
		for (int i = 0; i < n; i++) {
			uint64_t want = expected(expect, events[i]->kinds);

			if (values[i] == want)
				continue;
			printf("not ok %s: run %ld of %ld: %s:u is %llu, not %llu\n", name, r,
			       opt.runs, events[i]->name, (unsigned long long)values[i],
			       (unsigned long long)want);
			return;
		}
	}
	printf("ok %s: %ld runs:", name, opt.runs);
	for (int i = 0; i < n; i++)
		printf(" %s=%llu", events[i]->name, (unsigned long long)values[i]);
	putchar('\n');
}

static const struct event *kinds_of(unsigned int model)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (memchr(tables[i].models, model, sizeof(tables[i].models)))
			return tables[i].events;
	return icelake;
}

static void check_program(const char *path)
{
	unsigned int eax = 0, ebx, ecx, edx, model, counters, vendor = 0;
	const char *name = strrchr(path, '/');
	const struct event *events[MAX_EVENTS] = { &instructions, &branches };
	const struct event *e;
	uint64_t expect[KINDS];
	unsigned int n;

	name = name ? name + 1 : path;
	if (!expectation(path, expect)) {
		printf("not ok %s: says nothing of what it retires\n", name);
		return;
	}
	if (opt.print) {
		printf("%s %llu %llu\n", path, (unsigned long long)expected(expect, BIT(INSNS)),
		       (unsigned long long)expected(expect, BRANCHES));
		return;
	}
	if (!opt.kinds) {
		check(path, name, expect, events, 2);
		return;
	}
	__get_cpuid(0x0a, &eax, &ebx, &ecx, &edx);
	counters = eax >> 8 & 0xff;
	if (!counters) /* a paravirtual PMU: four events at least */
		counters = 3;
	__get_cpuid(0, &eax, &vendor, &ecx, &edx);
	__get_cpuid(1, &eax, &ebx, &ecx, &edx);
	model = (eax >> 4 & 0xf) | (eax >> 12 & 0xf0);
	e = vendor == signature_AMD_ebx ? zen : kinds_of(model);
	while (e->name) {
		for (n = 1; n <= counters && n < MAX_EVENTS && e->name; n++)
			events[n] = e++;
		check(path, name, expect, events, n);
	}
}

/* Neighbours compute and call the kernel by turns. */
static void start_neighbours(void)
{
	for (long i = 0; i < opt.neighbours; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			for (volatile int k = 0; k < 10000; k++)
				;
			getppid();
		}
	}
}

int main(int argc, char **argv)
{
	int c;

	/* A line at a time: what is there when a guest dies is whole. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt(argc, argv, "r:b:e:ksx")) >= 0) {
		switch (c) {
		case 'r': opt.runs = atol(optarg); break;
		case 'b': opt.neighbours = atol(optarg); break;
		case 'e': opt.extra = atol(optarg); break;
		case 'k': opt.kinds = true; break;
		case 's': opt.stepping = true; break;
		case 'x': opt.print = true; break;
		default: return 2;
		}
	}
	start_neighbours();
	for (; optind < argc; optind++)
		check_program(argv[optind]);
	return 0;
}
