// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The only program of a guest with the paravirtual PMU, its init, from an initramfs: it
 * tests what a guest with a root over virtio-9p cannot do. The machine suspends while
 * events count, and the kernel starts another one by kexec while they do. In /:
 * vpmu_guest.ko; kexec, vmlinux and second (an initramfs) only in the first kernel.
 *
 * Cases go to the serial port; "look" there asks the host to see whether events of the
 * old kernel are left, and to answer with a byte.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS	1000000u

static int event(uint64_t config, pid_t pid, int cpu, uint64_t period)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_HARDWARE, .config = config,
		.exclude_kernel = pid == 0, .exclude_guest = 1, .sample_period = period,
	};

	return syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);
}

static uint64_t count(int fd)
{
	uint64_t n = 0;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		return -1;
	return n;
}

/* Two instructions each. */
__attribute__((noinline)) static void turns(uint64_t n)
{
	asm volatile("1: dec %0\n\tjnz 1b" : "+r" (n) : : "cc");
}

/* The count from one reading to the next, with @n turns between: always the same. */
__attribute__((noinline)) static uint64_t between(int fd, uint64_t n)
{
	uint64_t from = count(fd);

	turns(n);
	return count(fd) - from;
}

static void result(const char *name, const char *why)
{
	if (*why)
		printf("not ok %s: %s\n", name, why);
	else
		printf("ok %s\n", name);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("# %s: %s: %s\n", path, text, strerror(errno));
	close(fd);
}

static void exact(const char *name)
{
	int fd = event(PERF_COUNT_HW_INSTRUCTIONS, 0, -1, 0);
	uint64_t one = between(fd, TURNS), two = between(fd, 2 * TURNS);
	char why[100] = "";

	if (two - one != 2 * TURNS)
		snprintf(why, sizeof(why), "%llu more, not %u", (long long)(two - one), 2 * TURNS);
	result(name, why);
	close(fd);
}

/* An event of this task, and one of all that CPU 1 does, which samples. */
static void suspend(const char *level, const char *state)
{
	int mine = event(PERF_COUNT_HW_INSTRUCTIONS, 0, -1, 0);
	int all = event(PERF_COUNT_HW_INSTRUCTIONS, -1, 1, 50000);
	uint64_t before = between(mine, TURNS), after, all_before = count(all);
	char why[160] = "", name[64];

	put("/sys/power/pm_test", level);
	put("/sys/power/state", state);
	after = between(mine, TURNS);
	sleep(1);
	if (after != before)
		snprintf(why, sizeof(why), "%llu instructions before, %llu after",
			 (long long)before, (long long)after);
	else if (count(all) <= all_before)
		snprintf(why, sizeof(why), "CPU 1 counts no more: %llu", (long long)all_before);
	snprintf(name, sizeof(name), "suspend %s %s", state, level);
	result(name, why);
	close(mine);
	close(all);
}

static void next_kernel(void)
{
	static char *const load[] = {
		"/kexec", "-c", "-l", "--args-linux", "/vmlinux", "--initrd=/second",
		"--append=console=ttyS0 panic=-1 mitigations=off second", NULL
	};
	int status = -1;

	if (!fork()) {
		execv(load[0], load);
		_exit(127);
	}
	wait(&status);
	if (status) {
		printf("\nnot ok kexec: kexec -l: status %d\n", status);
		return;
	}
	/* Left open: a count and a sampler on each CPU. */
	for (int cpu = 0; cpu < 2; cpu++) {
		event(PERF_COUNT_HW_INSTRUCTIONS, -1, cpu, 0);
		event(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, -1, cpu, 20000);
	}
	fflush(stdout);
	reboot(RB_KEXEC);
	printf("not ok kexec: %s\n", strerror(errno));
}

static void load(void)
{
	int fd = open("/vpmu_guest.ko", O_RDONLY);

	result("loads", fd < 0 || syscall(SYS_finit_module, fd, "", 0) ? strerror(errno) : "");
	close(fd);
}

int main(void)
{
	char line[1024] = "", byte;
	int fd;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("none", "/proc", "proc", 0, NULL);
	mount("none", "/sys", "sysfs", 0, NULL);
	mount("none", "/dev", "devtmpfs", 0, NULL);
	fd = open("/dev/ttyS0", O_RDWR);
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	setvbuf(stdout, NULL, _IOLBF, 0);
	fd = open("/proc/cmdline", O_RDONLY);
	if (read(fd, line, sizeof(line) - 1) < 0)
		line[0] = 0;
	if (strstr(line, " second")) {
		printf("look\n");
		if (read(0, &byte, 1) != 1)
			printf("# nobody answers\n");
		load();
		exact("exact after kexec");
	} else {
		load();
		exact("exact");
		suspend("core", "mem");
		suspend("core", "disk");
		suspend("devices", "freeze");
		exact("exact after suspend");
		if (!access("/kexec", X_OK))
			next_kernel();
	}
	printf("end\n");
	fflush(stdout);
	reboot(RB_AUTOBOOT);
	return 0;
}
