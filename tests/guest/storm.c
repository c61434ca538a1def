// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * In a guest, as root: many overflows at the worst moments.
 *
 *   storm SECONDS SEED
 *
 * First one event after the other is enabled and disabled, with all periods that end
 * while perf handles it; an overflow that perf has no time for must not recur at once.
 * Then two processes on each of two CPUs open, group, enable, disable, change and close
 * sampling events with short periods that count the kernel too, so that their own
 * handlers overflow them and NMIs find each other's reasons. SysRq l sends NMIs of
 * another kind to both CPUs in between. Nothing is read; the kernel's messages about
 * unknown NMIs afterwards are the result.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVENTS	12
#define CPUS	2
#define TASKS	2

static uint64_t state;

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % n;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static uint64_t period(void)
{
	return 200 + below(below(4) ? 3000 : 100000);
}

static int event(int cpu, int leader)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_HARDWARE,
		.config = below(2) ? PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
		.sample_period = period(), .sample_type = PERF_SAMPLE_IP,
		.disabled = below(2), .exclude_user = !below(4), .pinned = leader < 0 && !below(4),
		.wakeup_events = 1000000, .exclude_guest = 1,
	};
	int task = below(2) ? 0 : -1;

	if (leader >= 0) {	/* opened with its leader's kind, or refused */
		int fd = syscall(SYS_perf_event_open, &attr, 0, -1, leader, 0);

		return fd >= 0 ? fd : (int)syscall(SYS_perf_event_open, &attr, -1, cpu, leader, 0);
	}
	return syscall(SYS_perf_event_open, &attr, task, task ? cpu : -1, -1, 0);
}

static void task(int cpu, double end)
{
	int fd[EVENTS], sysrq = open("/proc/sysrq-trigger", O_WRONLY);
	unsigned long turns = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %d", cpu);
	memset(fd, -1, sizeof(fd));
	while (now() < end) {
		int *at = &fd[below(EVENTS)];
		uint64_t p = period();

		if (*at < 0) {
			*at = event(cpu, below(2) ? fd[below(EVENTS)] : -1);
			continue;
		}
		switch (below(8)) {
		case 0:
			close(*at);
			*at = -1;
			break;
		case 1: case 2:
			ioctl(*at, PERF_EVENT_IOC_DISABLE, below(2) ? PERF_IOC_FLAG_GROUP : 0);
			break;
		case 3:
			ioctl(*at, PERF_EVENT_IOC_PERIOD, &p);
			break;
		case 4:
			sched_yield();
			break;
		default:
			ioctl(*at, PERF_EVENT_IOC_ENABLE, below(2) ? PERF_IOC_FLAG_GROUP : 0);
			break;
		}
		if (++turns % 512 == 0 && cpu == 0 && write(sysrq, "l", 1) != 1)
			err(1, "/proc/sysrq-trigger");
	}
	exit(0);
}

static void sweep(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS, .sample_type = PERF_SAMPLE_IP,
		.disabled = 1, .wakeup_events = 1000000,
	};

	for (int p = 100; p < 4000; p += 3) {
		int fd;

		attr.sample_period = p;
		fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);

		if (fd < 0)
			err(1, "perf_event_open");
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	int status, bad = 0;
	double end;

	if (argc != 3)
		errx(1, "usage: storm SECONDS SEED");
	sweep();
	end = now() + atof(argv[1]);
	for (int i = 0; i < CPUS * TASKS; i++) {
		state = strtoull(argv[2], NULL, 0) * 16 + i + 1;
		for (int k = 0; k < 16; k++)
			below(1);
		if (!fork())
			task(i % CPUS, end);
	}
	while (wait(&status) > 0)
		bad |= status;
	return bad != 0;
}
