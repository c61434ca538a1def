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

static void lend_close(const struct vpmu_kvm_lend *l)
{
	uint32_t i;

	for (i = 0; i < l->n_events; i++)
		close(l->event[i]);
}

/* Opens as many as the CPU has: 5, 9, or less if it has no topdown metrics. */
static void lend_open(struct vpmu_kvm_lend *l, pid_t thread, bool user, bool kernel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW, .size = sizeof(attr), .config = LEND_SLOTS, .disabled = 1,
		.exclude_user = !user, .exclude_kernel = !kernel, .exclude_host = 1,
	};

	for (l->n_events = 0; l->n_events < VPMU_KVM_LEND_MAX; l->n_events++) {
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

	lend_open(&l, 0, true, true);
	lend_close(&l);
	return l.n_events >= 5;
}

int vpmu_kvm_lend(int device, int vm, uint32_t vcpu, pid_t thread, char *why)
{
	unsigned int rings;

	*why = '\0';
	for (rings = 3; rings; rings--) {
		struct vpmu_kvm_lend l = { .size = sizeof(l), .vm = vm, .vcpu = vcpu };
		int error;

		lend_open(&l, thread, rings & 1, rings & 2);
		error = ioctl(device, VPMU_KVM_LEND, &l) ? errno : 0;
		lend_close(&l);
		if (error) {
			snprintf(why, VPMU_KVM_WHY, "%s", l.why);
			return -error;
		}
	}
	return 0;
}
