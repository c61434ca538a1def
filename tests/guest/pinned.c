// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * In a guest: eight pinned counters on kinds of branches of a loop in which each
 * happens a known number of times.
 *
 *   pinned MS TURNS
 *
 * Turns for MS milliseconds; after each TURNS of them it sleeps, so that the kernel
 * switches all counters off and on, at once: then a host gives back what it took.
 * It does not switch them off itself: that goes one by one, and one that was lost
 * would count while another is off already. Prints "looping", and at the end a line
 * for each: the counter that it had, what it counted, what happened.
 */
#define _GNU_SOURCE
#include <err.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EVENTS	8

/* BR_INST_RETIRED of Icelake, and how often each happens in one turn. */
static const struct {
	const char *name;
	uint16_t config;
	unsigned int per_turn;
} kind[EVENTS] = {
	{ "all_branches", 0x00c4, 6 }, { "cond_taken", 0x01c4, 1 },
	{ "cond_ntaken", 0x10c4, 1 },  { "cond", 0x11c4, 2 },
	{ "near_taken", 0x20c4, 5 },   { "near_call", 0x02c4, 1 },
	{ "near_return", 0x08c4, 1 },  { "indirect", 0x80c4, 1 },
};

__attribute__((noinline)) static void turn(uint64_t n)
{
	asm volatile("1: call 3f\n\t"
		     "lea 2f(%%rip), %%rax\n\t"
		     "jmp *%%rax\n\t"
		     "2: jmp 4f\n\t"
		     "3: ret\n\t"
		     "4: test %%rax, %%rax\n\t"
		     "jz 3b\n\t"	/* never */
		     "dec %[n]\n\t"
		     "jnz 1b\n\t"	/* taken, but for the last one */
		     : [n] "+r" (n) : : "rax", "memory", "cc");
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static int open_event(uint16_t config)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_RAW,
		.config = config,
		.exclude_kernel = 1,
		.pinned = 1,
		.disabled = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		err(2, "perf_event_open");
	return fd;
}

int main(int argc, char **argv)
{
	uint64_t turns = 0, step, until, count;
	struct perf_event_mmap_page *page[EVENTS];
	int fd[EVENTS], pmc[EVENTS];

	if (argc != 3)
		return 2;
	step = strtoull(argv[2], NULL, 10);
	for (int i = 0; i < EVENTS; i++) {
		fd[i] = open_event(kind[i].config);
		page[i] = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd[i], 0);
		if (page[i] == MAP_FAILED)
			err(2, "mmap");
	}
	puts("looping");
	fflush(stdout);
	prctl(PR_TASK_PERF_EVENTS_ENABLE);
	for (int i = 0; i < EVENTS; i++)
		pmc[i] = page[i]->index - 1;
	until = now_ms() + strtoull(argv[1], NULL, 10);
	do {
		turn(step);
		turns += step;
		usleep(1);
	} while (now_ms() < until);
	for (int i = 0; i < EVENTS; i++) {
		if (read(fd[i], &count, sizeof(count)) != sizeof(count))
			errx(2, "%s: in error in the guest itself", kind[i].name);
		printf("%d %s %llu %llu\n", pmc[i], kind[i].name, (unsigned long long)count,
		       (unsigned long long)(turns * kind[i].per_turn));
	}
	return 0;
}
