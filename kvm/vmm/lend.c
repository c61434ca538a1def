// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Topdown metrics for a guest of vpmu_kvm.ko: the kernel makes no groups of events for its
 * modules, so the VMM lends it some.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vpmu-kvm-module.h>

#include "vpmu-kvm.h"

/* Source: Linux, arch/x86/events/intel/core.c: the events "slots" and "topdown-retiring". */
#define LEND_SLOTS	0x400u
#define LEND_CLASS	0x8000u
#define LEND_STEP	0x100u
#define LEND_LEAST	5u /* slots, and the classes of level 1 */

static void lend_close(const struct vpmu_kvm_lend *l)
{
	uint32_t i;

	for (i = 0; i < l->n_events; i++)
		close(l->event[i]);
}

/*
 * Opens @most events: 5, 9, or less if the CPU has no topdown metrics. Perf takes a class
 * that the CPU lacks for another event.
 */
static void lend_open(struct vpmu_kvm_lend *l, uint32_t most, pid_t thread, bool user,
		      bool kernel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW, .size = sizeof(attr), .config = LEND_SLOTS, .disabled = 1,
		.exclude_user = !user, .exclude_kernel = !kernel, .exclude_host = 1,
	};

	for (l->n_events = 0; l->n_events < most; l->n_events++) {
		int leader = l->n_events ? l->event[0] : -1;
		long fd = syscall(SYS_perf_event_open, &attr, thread, -1, leader,
				  PERF_FLAG_FD_CLOEXEC);

		if (fd < 0)
			return;
		l->event[l->n_events] = (int)fd;
		attr.config = LEND_CLASS + LEND_STEP * l->n_events;
		attr.disabled = 0;
	}
}

bool vpmu_kvm_topdown(void)
{
	struct vpmu_kvm_lend l = { .size = sizeof(l) };

	lend_open(&l, LEND_LEAST, 0, true, true);
	lend_close(&l);
	return l.n_events == LEND_LEAST;
}

/* Returns an error number, or 0. The module keeps the events, so the files are closed. */
static int lend_group(int device, struct vpmu_kvm_lend *l, uint32_t most, pid_t thread,
		      unsigned int rings)
{
	int error;

	lend_open(l, most, thread, rings & 1, rings & 2);
	error = ioctl(device, VPMU_KVM_LEND, l) ? errno : 0;
	lend_close(l);
	return error;
}

int vpmu_kvm_lend(int device, int vm, uint32_t vcpu, pid_t thread, char *why)
{
	uint32_t most = VPMU_KVM_LEND_MAX;
	unsigned int rings;

	*why = '\0';
	for (rings = 3; rings; rings--) {
		struct vpmu_kvm_lend l = { .size = sizeof(l), .vm = vm, .vcpu = vcpu };
		int error = lend_group(device, &l, most, thread, rings);

		/* The module knows how many the CPU has. */
		if (error == EINVAL && l.available >= LEND_LEAST && l.available < most) {
			most = (uint32_t)l.available;
			error = lend_group(device, &l, most, thread, rings);
		}
		if (error) {
			snprintf(why, VPMU_KVM_WHY, "%s", l.why);
			return -error;
		}
	}
	return 0;
}
