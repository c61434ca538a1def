// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * vpmu kvm: guests whose PMU the host's module serves: decides which one they have, saves
 * and loads its state, and shows the module's statistics.
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
	"       vpmu kvm refuse PID\n"
	"       vpmu kvm arch PID\n"
	"       vpmu kvm metrics [-o FILE] [--from FILE]\n\n"
	"On a host whose vpmu_kvm.ko counts for guests. PID is the VMM's.\n\n"
	"save and load: the state of a guest's PMU to a file, or from it into another\n"
	"process's guest, which is stopped and has the other one's memory and registers\n"
	"already. See docs/KVM-HOST.md, \"Live migration\".\n\n"
	"allow and refuse: the guest has a PMU, or has none, as long as its VM lives; before\n"
	"the guest uses it. See docs/KVM-HOST.md, \"Who has a PMU\".\n\n"
	"arch: the guest has an architectural PMU in place of KVM's own, before its first\n"
	"vCPU runs (qemu-system-x86_64 -S). See docs/KVM-HOST.md, \"The architectural PMU\".\n\n"
	"metrics: the module's statistics as OpenMetrics text, as for node_exporter's textfile\n"
	"collector. See docs/KVM-HOST.md, \"Metrics\".\n\n";

/* The descriptor in @dir that is a VM; -1: none, -2: more than one. */
static int find_vm_in(DIR *dir)
{
	struct dirent *entry;
	int found = -1;
	char target[64];
	ssize_t n;

	while ((entry = readdir(dir))) {
		n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		if (strcmp(target, "anon_inode:kvm-vm"))
			continue;
		if (found >= 0)
			return -2;
		found = (int)strtol(entry->d_name, NULL, 10);
	}
	return found;
}

/* Find the descriptor under which a process has its VM; there is one. */
static int find_vm(pid_t pid, char **error)
{
	char *folder = xprintf("/proc/%d/fd", pid);
	DIR *dir = opendir(folder);
	int found = -1;

	if (!dir && errno == ENOENT) {
		*error = xprintf("there is no process %d", pid);
	} else if (!dir) {
		*error = xprintf("%s: %s; its owner or root may ask", folder, strerror(errno));
	} else {
		found = find_vm_in(dir);
		if (found < 0)
			*error = xprintf("process %d has %s VM on KVM", pid,
					 found == -2 ? "more than one" : "no");
		closedir(dir);
	}
	free(folder);
	return found;
}

/* Open the same file in this process. Returns -1 with @error as a new string. */
static int open_vm(pid_t pid, char **error)
{
	int process, vm = -1, number = find_vm(pid, error);

	if (number < 0)
		return -1;
	process = syscall(SYS_pidfd_open, pid, 0);
	if (process < 0) {
		*error = xprintf("process %d: %s", pid, strerror(errno));
		return -1;
	}
	vm = syscall(SYS_pidfd_getfd, process, number, 0);
	if (vm < 0)
		*error = xprintf("process %d: its VM cannot be had: %s; who may trace it may ask",
				 pid, strerror(errno));
	close(process);
	return vm;
}

static int take_vm(const char *text)
{
	char *end, *error = NULL;
	long pid = strtol(text, &end, 10);
	int vm;

	if (end == text || *end || pid < 1 || pid > INT_MAX)
		fail(EXIT_VPMU, "PID %s: the number of a VMM's process is needed", text);
	vm = open_vm((pid_t)pid, &error);
	if (vm < 0)
		fail(EXIT_VPMU, "%s", error);
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

/* Ask for the PMU @a, and learn which one it is. Returns NULL, or why not as a new string. */
static char *ask_arch(int device, struct vpmu_kvm_arch *a)
{
	if (!ioctl(device, VPMU_KVM_ARCH, a))
		return NULL;
	if (errno == ENOTTY)
		return strdup("the vpmu_kvm.ko that is loaded is older than this command: load "
			      "this one's, which make modules builds");
	if (a->asked || a->available)
		return xprintf("%s: asked for %llu, available %llu", a->why,
			       (unsigned long long)a->asked, (unsigned long long)a->available);
	return strdup(a->why[0] ? a->why : strerror(errno));
}

static char *name_arch(const struct vpmu_kvm_arch *a)
{
	return xprintf("version %u, %u counters", a->version, a->n_gp + a->n_fixed);
}

/* The most that there is: with topdown metrics, if events can be lent. */
static char *ask_all(int device, int vm, pid_t pid, struct vpmu_kvm_arch *a)
{
	struct vcpus *vcpus = lend_find(pid);
	char *error = NULL;

	*a = (struct vpmu_kvm_arch){ .size = sizeof(*a), .vm = vm, .n_fixed = 4 };
	if (vcpus)
		error = ask_arch(device, a);
	if (vcpus && !error)
		lend_all(vcpus, device, vm);
	if (!vcpus || error) {
		free(error);
		*a = (struct vpmu_kvm_arch){ .size = sizeof(*a), .vm = vm };
		error = ask_arch(device, a);
	}
	free(vcpus);
	return error;
}

static void arch(int device, struct vpmu_kvm_state *s, const char *pid)
{
	struct vpmu_kvm_arch a = { 0 };
	char *error = ask_all(device, s->vm, (pid_t)strtol(pid, NULL, 10), &a);

	if (error)
		fail(EXIT_VPMU, "an architectural PMU cannot be had: %s", error);
	say("the guest has an architectural PMU: %s", name_arch(&a));
}

bool kvm_module_there(void)
{
	return !access(VPMU_KVM_DEVICE, R_OK | W_OK);
}

char *kvm_give_arch(pid_t pid, char **error)
{
	int device = open(VPMU_KVM_DEVICE, O_RDWR | O_CLOEXEC), vm;
	struct vpmu_kvm_arch a = { 0 };

	*error = NULL;
	if (device < 0) {
		*error = xprintf(VPMU_KVM_DEVICE ": %s", strerror(errno));
		return NULL;
	}
	vm = open_vm(pid, error);
	if (vm >= 0) {
		*error = ask_all(device, vm, pid, &a);
		close(vm);
	}
	close(device);
	return *error ? NULL : name_arch(&a);
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
	{ "arch", 2, arch },
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
	const char *output = NULL, *from = NULL;
	const struct option_def defs[] = {
		{ "output", 'o', "FILE", "metrics: replace FILE, whole, instead of printing",
		  &output },
		{ "from", 0, "FILE", "metrics: a copy of the module's statistics", &from },
		{ NULL, 0, NULL, NULL, NULL },
	};
	struct vpmu_kvm_state s = { .size = sizeof(s) };
	int first = options_parse(argc, argv, defs, usage), device;
	const struct verb *verb;

	if (first < argc && !strcmp(argv[first], "metrics")) {
		argc -= first;
		argv += first;
		first = options_parse(argc, argv, defs, usage);
		if (first == argc)
			return kvm_metrics(from, output);
	}
	verb = find_verb(argc - first, argv + first);
	if (!verb || output || from) {
		fputs(usage, stderr);
		return EXIT_VPMU;
	}
	device = open_device();
	s.vm = take_vm(argv[first + 1]);
	verb->perform(device, &s, argv[argc - 1]);
	return 0;
}
