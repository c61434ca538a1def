// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * vpmu kvm: guests whose PMU the host's module serves: lists them, and saves and loads
 * their state.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../kvm/module/vpmu-kvm-module.h"
#include "vpmu.h"

static const char usage[] =
	"Usage: vpmu kvm save PID FILE\n"
	"       vpmu kvm load PID FILE\n"
	"       vpmu kvm allow PID\n"
	"       vpmu kvm refuse PID\n\n"
	"On a host whose vpmu_kvm.ko counts for guests. PID is the VMM's.\n\n"
	"save and load: the state of a guest's PMU to a file, or from it into another\n"
	"process's guest, which is stopped and has the other one's memory and registers\n"
	"already. See docs/KVM-HOST.md, \"Live migration\".\n\n"
	"allow and refuse: the guest has a PMU, or has none, as long as its VM lives; before\n"
	"the guest uses it. See docs/KVM-HOST.md, \"Who has a PMU\".\n\n";

static const struct option_def defs[] = {
	{ NULL },
};

/* Find the descriptor under which a process has its VM; there is one. */
static int find_vm(pid_t pid)
{
	char *folder = xprintf("/proc/%d/fd", pid), target[64];
	struct dirent *entry;
	DIR *dir = opendir(folder);
	int found = -1, at;
	ssize_t n;

	if (!dir && errno == ENOENT)
		fail(EXIT_VPMU, "there is no process %d", pid);
	if (!dir || (at = dirfd(dir)) < 0)
		fail(EXIT_VPMU, "%s: %s; its owner or root may ask", folder, strerror(errno));
	while ((entry = readdir(dir))) {
		n = readlinkat(at, entry->d_name, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		if (strcmp(target, "anon_inode:kvm-vm"))
			continue;
		if (found >= 0)
			fail(EXIT_VPMU, "process %d has more than one VM on KVM", pid);
		found = (int)strtol(entry->d_name, NULL, 10);
	}
	closedir(dir);
	free(folder);
	if (found < 0)
		fail(EXIT_VPMU, "process %d has no VM on KVM", pid);
	return found;
}

/* Open the same file in this process. */
static int take_vm(const char *text)
{
	int process, vm, number;
	char *end;
	long pid = strtol(text, &end, 10);

	if (end == text || *end || pid < 1 || pid > INT_MAX)
		fail(EXIT_VPMU, "PID %s: the number of a VMM's process is needed", text);
	number = find_vm(pid);
	process = syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (process < 0)
		fail(EXIT_VPMU, "process %ld: %s", pid, strerror(errno));
	vm = syscall(SYS_pidfd_getfd, process, number, 0);
	if (vm < 0)
		fail(EXIT_VPMU, "process %ld: its VM cannot be had: %s; who may trace it may ask",
		     pid, strerror(errno));
	close(process);
	return vm;
}

static int open_device(void)
{
	int fd = open(VPMU_KVM_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		fail(EXIT_SKIP, VPMU_KVM_DEVICE " is not there: on a host whose guests count, "
		     "insmod vpmu_kvm.ko");
	if (fd < 0)
		fail(EXIT_VPMU, VPMU_KVM_DEVICE ": %s; sudo vpmu kvm", strerror(errno));
	return fd;
}

static void failed(const char *what, const struct vpmu_kvm_state *s, int error)
{
	const char *why = s->why[0] ? s->why : strerror(error);

	if (s->asked || s->available)
		fail(EXIT_VPMU, "the PMU's state cannot be %s: %s: found %llu, available %llu",
		     what, why, (unsigned long long)s->asked, (unsigned long long)s->available);
	fail(EXIT_VPMU, "the PMU's state cannot be %s: %s", what, why);
}

static void put(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	const char *at = data;
	ssize_t n;

	if (fd < 0)
		fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
	for (; size; at += n, size -= n) {
		n = write(fd, at, size);
		if (n < 0 && errno == EINTR)
			n = 0;
		if (n < 0)
			fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
	}
	if (close(fd))
		fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
}

static void save(int device, struct vpmu_kvm_state *s, const char *path)
{
	char *data = NULL;

	/*
	 * The first call returns the size, which does not grow while the guest is
	 * stopped.
	 */
	while (ioctl(device, VPMU_KVM_SAVE, s)) {
		if (errno != ENOSPC || s->why[0] || data)
			failed("saved", s, errno);
		data = xalloc(s->bytes);
		s->data = (uintptr_t)data;
	}
	put(path, data, s->bytes);
	free(data);
}

static void load(int device, struct vpmu_kvm_state *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buffer b = { 0 };
	char part[65536];
	ssize_t n = 1;

	if (fd < 0)
		fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
	while (n && b.len <= VPMU_KVM_STATE_MAX) {
		n = read(fd, part, sizeof(part));
		if (n < 0 && errno != EINTR)
			fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
		if (n > 0)
			buffer_add(&b, part, n);
	}
	close(fd);
	s->data = (uintptr_t)b.data;
	s->bytes = b.len;
	if (ioctl(device, VPMU_KVM_LOAD, s))
		failed("loaded", s, errno);
	buffer_free(&b);
}

static void decide(int device, struct vpmu_kvm_state *s, bool allow)
{
	const char *what = allow ? "allowed" : "refused";

	if (!ioctl(device, allow ? VPMU_KVM_ALLOW : VPMU_KVM_REFUSE, s))
		return;
	if (errno == ENOTTY)
		fail(EXIT_VPMU, "the vpmu_kvm.ko that is loaded is older than this command: "
		     "load this one's, which make modules builds");
	fail(EXIT_VPMU, "a PMU cannot be %s: %s", what, s->why[0] ? s->why : strerror(errno));
}

static void allow(int device, struct vpmu_kvm_state *s, const char *none)
{
	decide(device, s, true);
}

static void refuse(int device, struct vpmu_kvm_state *s, const char *none)
{
	decide(device, s, false);
}

static const struct verb {
	const char *name;
	int n_args;
	void (*perform)(int device, struct vpmu_kvm_state *s, const char *path);
} verbs[] = {
	{ "save", 3, save }, { "load", 3, load }, { "allow", 2, allow }, { "refuse", 2, refuse },
};

static const struct verb *find_verb(int n_args, char **args)
{
	size_t i;

	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (n_args == verbs[i].n_args && !strcmp(args[0], verbs[i].name))
			return &verbs[i];
	return NULL;
}

int verb_kvm(int argc, char **argv)
{
	struct vpmu_kvm_state s = { .size = sizeof(s) };
	int first = options_parse(argc, argv, defs, usage), device;
	const struct verb *verb = find_verb(argc - first, argv + first);

	if (!verb) {
		fputs(usage, stderr);
		return EXIT_VPMU;
	}
	device = open_device();
	s.vm = take_vm(argv[first + 1]);
	verb->perform(device, &s, argv[first + 2]);
	return 0;
}
