// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Topdown metrics for guests of a VMM that lends none itself (kvm/vmm/lend.c): QEMU names its
 * vCPUs' threads "CPU 0/KVM" and so on with -name debug-threads=on, and their files tell the
 * vCPUs' ids.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vpmu-kvm.h>

#include "vpmu.h"

#define LEND_VCPUS 1024

struct vcpus {
	size_t n_ids, n_threads;
	unsigned int id[LEND_VCPUS];
	pid_t thread[LEND_VCPUS]; /* by number; 0: not found */
};

static int by_value(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

/* Reads the number of @text, which is between @before and @after. */
static bool number_of(const char *text, const char *before, char after, unsigned int *number)
{
	size_t length = strlen(before);
	char *end;

	if (strncmp(text, before, length))
		return false;
	*number = (unsigned int)strtoul(text + length, &end, 10);
	return end > text + length && *end == after;
}

static void add_id(struct vcpus *v, int dir, const char *name)
{
	char target[64];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0 || v->n_ids == LEND_VCPUS)
		return;
	target[n] = 0;
	if (number_of(target, "anon_inode:kvm-vcpu:", '\0', &v->id[v->n_ids]))
		v->n_ids++;
}

static void add_thread(struct vcpus *v, int dir, const char *name)
{
	char *path = xprintf("%s/comm", name), comm[32] = "";
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	unsigned int number;

	free(path);
	if (fd < 0)
		return;
	if (read(fd, comm, sizeof(comm) - 1) > 0 && number_of(comm, "CPU ", '/', &number) &&
	    number < LEND_VCPUS && !v->thread[number]) {
		v->thread[number] = (pid_t)strtol(name, NULL, 10);
		v->n_threads++;
	}
	close(fd);
}

static void each_of(struct vcpus *v, pid_t pid, const char *what,
		    void (*add)(struct vcpus *v, int dir, const char *name))
{
	char *path = xprintf("/proc/%d/%s", pid, what);
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			add(v, dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
	free(path);
}

struct vcpus *lend_find(pid_t pid)
{
	struct vcpus *v = xalloc(sizeof(*v));
	size_t i;

	memset(v, 0, sizeof(*v));
	each_of(v, pid, "fd", add_id);
	each_of(v, pid, "task", add_thread);
	qsort(v->id, v->n_ids, sizeof(v->id[0]), by_value);
	for (i = 0; i < v->n_ids && v->thread[i]; i++)
		;
	if (v->n_ids && i == v->n_ids && i == v->n_threads && vpmu_kvm_topdown())
		return v;
	free(v);
	return NULL;
}

void lend_all(struct vcpus *v, int device, int vm)
{
	char why[VPMU_KVM_WHY];
	size_t i;

	for (i = 0; i < v->n_ids; i++) {
		int ret = vpmu_kvm_lend(device, vm, v->id[i], v->thread[i], why);

		if (ret && ret != -EEXIST)
			say("vCPU %u has no topdown metrics: %s", v->id[i],
			    why[0] ? why : strerror(-ret));
	}
}
