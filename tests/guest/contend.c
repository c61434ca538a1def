// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * In a guest, as root: eight pinned counters on kinds of branches, which the test
 * outside takes away and gives back. Reads commands, answers each with one line:
 *
 *   open       opens the eight events        ok
 *   run N      a loop of N turns             what each event counted of it
 *   busy MS    turns for MS ms               ok
 *   again      switches all off and on       ok
 *   spin MS N  turns for MS ms, with all     what each event counted, what it should
 *              off and on every N of them    have, time enabled and running of each
 *   block      the loss block                counter, enabled, running, reason and
 *                                            generation of each
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <err.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EVENTS	8

/* BR_INST_RETIRED of Icelake, and how often each happens in one turn. */
static const struct {
	uint16_t config;
	uint64_t turn;
} kind[EVENTS] = {
	{ 0x00c4, 7 }, /* all */
	{ 0x01c4, 2 }, /* conditional, taken */
	{ 0x10c4, 1 }, /* conditional, not taken */
	{ 0x11c4, 3 }, /* conditional */
	{ 0x20c4, 6 }, /* near, taken */
	{ 0x02c4, 1 }, /* call */
	{ 0x08c4, 1 }, /* return */
	{ 0x80c4, 1 }, /* indirect, no return */
};

static struct event {
	int fd;
	struct perf_event_mmap_page *page;
} event[EVENTS];
static int msr;
static uint32_t base;

/* Its last conditional branch is not taken, which a run of one turn has too. */
__attribute__((noinline)) static void turns(uint64_t n)
{
	asm volatile("1: call 3f\n\t"
		     "lea 2f(%%rip), %%rax\n\t"
		     "jmp *%%rax\n\t"
		     "ud2\n\t"
		     "2: jmp 4f\n\t"
		     "3: ret\n\t"
		     "4: test %%rax, %%rax\n\t"
		     "jz 5f\n\t"
		     "jnz 5f\n\t"
		     "ud2\n\t"
		     "5: dec %[n]\n\t"
		     "jnz 1b\n\t"
		     : [n] "+r" (n) : : "rax", "memory", "cc");
}

static void open_all(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_RAW,
		.exclude_kernel = 1,
		.pinned = 1,
	};

	for (int i = 0; i < EVENTS; i++) {
		attr.config = kind[i].config;
		event[i].fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
		if (event[i].fd < 0)
			err(1, "perf_event_open of %x", kind[i].config);
		event[i].page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED,
				     event[i].fd, 0);
		if (event[i].page == MAP_FAILED)
			err(1, "mmap");
	}
}

static void read_all(uint64_t *value)
{
	for (int i = 0; i < EVENTS; i++)
		if (read(event[i].fd, &value[i], sizeof(value[i])) != sizeof(value[i]))
			errx(1, "event %d is in the guest's own error state", i);
}

static void again(void)
{
	for (int i = 0; i < EVENTS; i++)
		ioctl(event[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	for (int i = 0; i < EVENTS; i++)
		ioctl(event[i].fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void count_run(uint64_t n, uint64_t *count)
{
	uint64_t before[EVENTS], after[EVENTS];

	read_all(before);
	turns(n);
	read_all(after);
	for (int i = 0; i < EVENTS; i++)
		count[i] = after[i] - before[i];
}

static uint64_t get_msr(uint32_t number)
{
	uint64_t value;

	if (pread(msr, &value, sizeof(value), number) != sizeof(value))
		err(1, "MSR %x", number);
	return value;
}

/* Register @which of the block for the counter that event @i is on. */
static uint64_t loss(int i, unsigned int which)
{
	return get_msr(base + 0x10 + 4 * (event[i].page->index - 1) + which);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static void read_times(uint64_t *enabled, uint64_t *running)
{
	for (int i = 0; i < EVENTS; i++) {
		enabled[i] = loss(i, 0);
		running[i] = loss(i, 1);
	}
}

static void busy(uint64_t ms)
{
	uint64_t end = now_ms() + ms;

	while (now_ms() < end)
		turns(1000000);
	puts("ok");
}

static void spin(uint64_t ms, uint64_t n)
{
	uint64_t enabled[2][EVENTS], running[2][EVENTS];
	uint64_t before[EVENTS], after[EVENTS];
	uint64_t done = 0, end = now_ms() + ms;

	read_times(enabled[0], running[0]);
	read_all(before);
	while (now_ms() < end) {
		turns(n);
		done += n;
		again();
	}
	read_all(after);
	read_times(enabled[1], running[1]);
	for (int i = 0; i < EVENTS; i++)
		printf("%llu %llu %llu %llu ", (unsigned long long)(after[i] - before[i]),
		       (unsigned long long)(done * kind[i].turn),
		       (unsigned long long)(enabled[1][i] - enabled[0][i]),
		       (unsigned long long)(running[1][i] - running[0][i]));
	puts("");
}

/*
 * The count around a loop is always the same, if the counter counts; the difference
 * between N + 1 turns and one is printed: turn * N, or 0.
 */
static void run(uint64_t n)
{
	uint64_t one[EVENTS], many[EVENTS];

	count_run(1, one);
	count_run(n + 1, many);
	for (int i = 0; i < EVENTS; i++)
		printf("%llu/%llu ", (unsigned long long)(many[i] - one[i]),
		       (unsigned long long)(n * kind[i].turn));
	puts("");
}

static void block(void)
{
	uint64_t enabled[EVENTS], running[EVENTS];

	read_times(enabled, running);
	for (int i = 0; i < EVENTS; i++) {
		uint64_t why = loss(i, 2);

		printf("%u %llu %llu %u %u ", event[i].page->index - 1,
		       (unsigned long long)enabled[i], (unsigned long long)running[i],
		       (unsigned int)(why & 0xff), (unsigned int)(why >> 32));
	}
	puts("");
}

static void find_block(void)
{
	uint32_t eax, ebx, ecx, edx;

	for (uint32_t leaf = 0x40000000; leaf < 0x40010000; leaf += 0x100) {
		__cpuid(leaf, eax, ebx, ecx, edx);
		if (ebx != 0x554d5056 || ecx != 0x47726f66 || edx != 0x74736575)
			continue;
		__cpuid(leaf + 2, eax, base, ecx, edx);
		msr = open("/dev/cpu/0/msr", O_RDONLY);
		if (msr < 0)
			err(1, "/dev/cpu/0/msr");
		return;
	}
	errx(1, "CPUID tells of no loss block");
}

int main(void)
{
	char line[80];
	unsigned long long a, b;

	setvbuf(stdout, NULL, _IOLBF, 0);
	find_block();
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "open\n"))
			open_all(), puts("ok");
		else if (!strcmp(line, "again\n"))
			again(), puts("ok");
		else if (!strcmp(line, "block\n"))
			block();
		else if (sscanf(line, "busy %llu", &a) == 1)
			busy(a);
		else if (sscanf(line, "run %llu", &a) == 1)
			run(a);
		else if (sscanf(line, "spin %llu %llu", &a, &b) == 2)
			spin(a, b);
		else
			errx(1, "no command: %s", line);
	}
	return 0;
}
