// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu check: shows what works on this machine, and how to make the rest work. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include "vpmu.h"

static const char usage[] =
"Usage: vpmu check [options]\n"
"\n"
"Says in one line each what works on this machine, and what cures the rest.\n"
"Exits with 1 when something FAILs, and with 77 when no guest can be run yet.\n";

/* See loop.S. */
#define LOOP_INSTRUCTIONS	"2000004"

static int failed, skipped;

static void result(const char *verdict, const char *what, char *text)
{
	printf("%-5s %-14s %s\n", verdict, what, text);
	fflush(stdout);
	failed += !strcmp(verdict, "FAIL");
	skipped += !strcmp(verdict, "SKIP");
	free(text);
}

static bool check_qemu(void)
{
	struct qemu qemu;

	if (!qemu_find(&qemu, true)) {
		result("SKIP", "QEMU", xprintf("not built yet; the first vpmu run builds it "
					       "(2 to 4 minutes), or now: make qemu"));
		return false;
	}
	if (!qemu.patched) {
		result("FAIL", "QEMU", xprintf("%s has no PMU; unset VPMU_QEMU", qemu.binary));
		return true;
	}
	result("PASS", "QEMU", xprintf("%s", qemu.binary));
	return true;
}

/* The size that an ELF file has at least, by its headers; 0 if it is not one of 64 bits. */
static uint64_t elf_size(int fd)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	Elf64_Shdr s;
	uint64_t size;

	if (pread(fd, &e, sizeof(e), 0) != sizeof(e) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	size = MAX(e.e_phoff + e.e_phnum * sizeof(p), e.e_shoff + e.e_shnum * sizeof(s));
	for (int i = 0; i < e.e_phnum; i++)
		if (pread(fd, &p, sizeof(p), e.e_phoff + i * sizeof(p)) == sizeof(p))
			size = MAX(size, p.p_offset + p.p_filesz);
	for (int i = 0; i < e.e_shnum; i++)
		if (pread(fd, &s, sizeof(s), e.e_shoff + i * sizeof(s)) == sizeof(s) &&
		    s.sh_type != SHT_NOBITS)
			size = MAX(size, s.sh_offset + s.sh_size);
	return size;
}

/* A full disk, or a copy of a cache that was interrupted, leaves a kernel truncated. */
static char *kernel_fault(const struct kernel *kernel)
{
	int fd = open(kernel->vmlinux, O_RDONLY | O_CLOEXEC);
	char *fault = NULL;
	uint64_t size;
	struct stat s;

	if (fd < 0 || fstat(fd, &s))
		return xprintf("%s: %s", kernel->vmlinux, strerror(errno));
	size = elf_size(fd);
	if (!size)
		fault = xprintf("%s is not an ELF file of 64 bits", kernel->vmlinux);
	else if ((uint64_t)s.st_size < size)
		fault = xprintf("%s has %lld bytes, and at least %llu by its headers",
				kernel->vmlinux, (long long)s.st_size, (unsigned long long)size);
	close(fd);
	return fault;
}

static bool check_kernel(const char *which)
{
	struct kernel kernel;
	char *fault;

	if (!kernel_cached(&kernel, which)) {
		result("SKIP", "guest kernel", xprintf("not fetched yet; the first vpmu run "
						       "fetches it (10 to 30 seconds)"));
		return false;
	}
	fault = kernel_fault(&kernel);
	if (fault) {
		result("FAIL", "guest kernel", kernel.bundled ?
		       xprintf("%s; unpack the bundle again", fault) :
		       xprintf("%s; rm -r %s, the next vpmu run makes it again", fault,
			       kernel.dir));
		free(fault);
		return false;
	}
	result("PASS", "guest kernel", xprintf("%s, in %s", kernel.release, kernel.dir));
	return true;
}

static bool check_perf(void)
{
	struct perf perf;

	perf_find(&perf);
	if (!perf.path) {
		result("FAIL", "perf", xprintf("not found; " PERF_CURE));
		return false;
	}
	result("PASS", "perf", perf.over ?
	       xprintf("%s (in guests in place of the script %s)", perf.path, perf.over) :
	       xprintf("%s", perf.path));
	return true;
}

static void check_host(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1, .exclude_hv = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		result("PASS", "host counters", xprintf("this machine has a PMU of its own"));
	else if (errno == EACCES || errno == EPERM)
		result("SKIP", "host counters", xprintf("not permitted; sysctl -w "
							"kernel.perf_event_paranoid=2"));
	else
		result("PASS", "host counters", xprintf("<not supported> (%s): guests of vpmu "
							"have them", strerror(errno)));
	if (fd >= 0)
		close(fd);
}

/* ---- the cache */

static uint64_t cache_bytes;

/* An entry that is being built or fetched disappears by itself. */
static bool passing(const char *name)
{
	return !strncmp(name, "build.", 6) || !strncmp(name, "fetch.", 6) ||
		!strncmp(name, "tmp.", 4);
}

static int add_size(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
	if (type == FTW_D && passing(path + ftw->base))
		return FTW_SKIP_SUBTREE;
	cache_bytes += (uint64_t)s->st_blocks * 512;
	return FTW_CONTINUE;
}

static void check_cache(void)
{
	const char *dir = cache_dir();
	unsigned long long mb;
	struct stat s;
	char age[32] = "";

	if (stat(dir, &s)) {
		result("PASS", "cache", xprintf("%s is empty", dir));
		return;
	}
	nftw(dir, add_size, 16, FTW_PHYS | FTW_ACTIONRETVAL);
	mb = cache_bytes >> 20;
	snprintf(age, sizeof(age), "%lld days",
		 (long long)(time(NULL) - s.st_mtime) / 86400);
	if (access(dir, W_OK))
		result("FAIL", "cache", xprintf("%s cannot be written; set XDG_CACHE_HOME", dir));
	else
		result("PASS", "cache", xprintf("%llu MB in %s, changed %s ago; it may be "
						"removed", mb, dir, age));
}

/* ---- a guest that counts */

static char *beside_us(const char *name)
{
	char self[4096], *path;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return NULL;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	path = xprintf("%s/%s", self, name);
	if (runs(path))
		return path;
	free(path);
	path = xprintf("%s/../libexec/vpmu/%s", self, name);
	return runs(path) ? path : NULL;
}

/* The first field of perf's line for @event, or NULL. */
static char *field_of(char *output, const char *event)
{
	char *line, *rest = output;

	while ((line = strsep(&rest, "\n")))
		if (strstr(line, event) && strchr(line, ','))
			return xprintf("%.*s", (int)strcspn(line, ","), line);
	return NULL;
}

static void check_guest(const char *cpu, const char *kernel)
{
	char *loop = beside_us("vpmu-loop"), *count, *lines;
	struct buffer out = { 0 };
	char *script, *argv[8] = { 0 };
	int status;

	if (!loop) {
		result("FAIL", "guest counts", xprintf("vpmu-loop is missing: run make"));
		return;
	}
	script = xprintf("exec /proc/%d/exe run --cpu \"$0\" ${2:+--kernel \"$2\"} -- "
			 "perf stat -x, -e instructions:u \"$1\" 2>&1", getpid());
	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = script;
	argv[3] = (char *)cpu;
	argv[4] = loop;
	argv[5] = (char *)kernel;
	status = run_script(argv, &out);
	lines = xprintf("%s", out.data);
	count = field_of(lines, "instructions");
	free(lines);
	if (count && !strcmp(count, LOOP_INSTRUCTIONS))
		result("PASS", "guest counts", xprintf("a loop of " LOOP_INSTRUCTIONS
						       " instructions was counted as that many"));
	else if (count)
		result("FAIL", "guest counts", xprintf("a loop of " LOOP_INSTRUCTIONS
						       " instructions was counted as %s", count));
	else
		result("FAIL", "guest counts", xprintf("vpmu run ended with status %d: %s",
						       status, out.data));
	free(count);
	free(script);
	free(loop);
	buffer_free(&out);
}

int verb_check(int argc, char **argv)
{
	const char *cpu = NULL, *kernel = NULL;
	bool brief = false, possible;
	const struct option_def defs[] = {
		{ "cpu", 0, "MODEL", "the guest's CPU (Icelake-Server)", &cpu },
		{ "kernel", 0, "FILE|SUITE", "the guest's kernel", &kernel },
		{ "no-guest", 0, NULL, "do not run a guest", &brief },
		{ NULL, 0, NULL, NULL, NULL },
	};

	if (options_parse(argc, argv, defs, usage) < argc)
		fail(EXIT_VPMU, "check takes no arguments (vpmu check --help)");
	possible = check_qemu();
	possible &= check_kernel(kernel ? kernel : getenv("VPMU_KERNEL"));
	check_host();
	check_cache();
	if (!check_perf() || brief)
		return failed ? 1 : 0;
	if (!possible) {
		result("SKIP", "guest counts", xprintf("needs what is missing above"));
		return failed ? 1 : EXIT_SKIP;
	}
	check_guest(cpu ? cpu : "Icelake-Server", kernel);
	return failed ? 1 : 0;
}
