// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Slots and topdown metrics of Intel's, from groups of events that the VMM lends. */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch.h"

/* Loans: slots, and the classes of the CPU. */

#define SLOTS		(VPMU_MSR_FIXED_CTR0 + 3)
#define TOPDOWN		(1ull << 35 | VPMU_STATUS_METRICS)
#define USER		2ull
#define KERNEL		1ull

#define HEAVY_OPS	"/sys/bus/event_source/devices/cpu/events/topdown-heavy-ops"

/* Slots, and the classes of the CPU: perf takes those that it lacks for other events. */
static unsigned int most_events(void)
{
	return access(HEAVY_OPS, F_OK) ? 5 : VPMU_KVM_LEND_MAX;
}

/* The number of events, or 0: this host counts no slots. */
static unsigned int open_group(struct vpmu_kvm_lend *l, uint64_t rings, uint32_t flags)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW, .size = sizeof(attr), .config = 0x400, .disabled = 1,
		.exclude_host = !(flags & 1), .exclude_user = !(rings & USER),
		.exclude_kernel = !(rings & KERNEL), .inherit = flags >> 1 & 1,
	};
	const unsigned int most = most_events();

	for (l->n_events = 0; l->n_events < most; l->n_events++) {
		l->event[l->n_events] = (int)syscall(SYS_perf_event_open, &attr, 0, -1,
			l->n_events ? l->event[0] : -1, PERF_FLAG_FD_CLOEXEC);
		if (l->event[l->n_events] < 0)
			break;
		attr.config = 0x8000 + 0x100 * l->n_events;
		attr.disabled = 0;
	}
	return l->n_events;
}

static void close_group(const struct vpmu_kvm_lend *l)
{
	for (unsigned int i = 0; i < l->n_events; i++)
		close(l->event[i]);
}

static const char *refused_group(struct vmm *vm, uint64_t rings, uint32_t flags, int error)
{
	struct vpmu_kvm_lend l = { 0 };

	open_group(&l, rings, flags);
	CHECK(vmm_lend(vm, &l), error);
	CHECK(!l.why[0], false);
	close_group(&l);
	return NULL;
}

static const char *wrong_loans(struct vmm *vm)
{
	struct vpmu_kvm_lend l = { 0 };
	int swapped;

	TRY(refused_group(vm, USER | KERNEL, 1, EINVAL));
	TRY(refused_group(vm, USER | KERNEL, 2, EINVAL));
	open_group(&l, USER | KERNEL, 0);
	l.n_events--;
	CHECK(vmm_lend(vm, &l), EINVAL);
	CHECK(l.available, l.asked + 1);
	l.n_events++;
	swapped = l.event[1];
	l.event[1] = l.event[2];
	CHECK(vmm_lend(vm, &l), EINVAL);
	l.event[1] = vm->fd;
	CHECK(vmm_lend(vm, &l), EBADF);
	l.event[1] = swapped;
	l.reserved = 1;
	CHECK(vmm_lend(vm, &l), EINVAL);
	l.reserved = 0;
	l.vcpu = 99;
	CHECK(vmm_lend(vm, &l), ENOENT);
	close_group(&l);
	return NULL;
}

static const char *lend(struct vmm *vm, uint64_t rings)
{
	struct vpmu_kvm_lend l = { 0 };

	open_group(&l, rings, 0);
	CHECK(vmm_lend(vm, &l), 0);
	CHECK(vmm_lend(vm, &l), EEXIST);
	close_group(&l);
	return NULL;
}

/* This thread never runs the vCPU, and ends. */
static void *lend_elsewhere(void *arg)
{
	struct vpmu_kvm_lend l = { .vcpu = 1 };

	open_group(&l, USER | KERNEL, 0);
	if (vmm_lend(arg, &l))
		return (void *)"VPMU_KVM_LEND";
	close_group(&l);
	return NULL;
}

static const char *lent_elsewhere(struct vmm *vm)
{
	pthread_t thread;
	void *wrong;

	if (pthread_create(&thread, NULL, lend_elsewhere, vm) || pthread_join(thread, &wrong))
		vmm_die("pthread_create");
	return wrong;
}

static const char *count_slots(struct vmm_vcpu *v, uint64_t rings, uint64_t from, uint64_t turns)
{
	CHECK(vmm_wrmsr(v, GLOBAL, 0), 0);
	CHECK(vmm_wrmsr(v, VPMU_MSR_FIXED_CTR_CTRL, (rings | 8) << 12), 0);
	CHECK(vmm_wrmsr(v, SLOTS, from), 0);
	CHECK(vmm_wrmsr(v, VPMU_MSR_PERF_METRICS, 0), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, TOPDOWN), 0);
	CHECK(vmm_loop(v, turns), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 0), 0);
	return NULL;
}

/* Each turn has two instructions, whose slots retire. A field's unit is a 255th of the slots. */
static const char *of_loop(struct vmm_vcpu *v, uint64_t turns)
{
	uint64_t slots = msr(v, SLOTS), fields = msr(v, VPMU_MSR_PERF_METRICS), pmc;
	uint64_t retiring = slots * (fields & 0xff) / 255, unit = slots / 255 + 1;

	CHECK((fields & 0xff) + (fields >> 8 & 0xff) + (fields >> 16 & 0xff) +
	      (fields >> 24 & 0xff), 255);
	CHECK(retiring + unit >= 2 * turns && retiring <= 2 * turns + unit, true);
	CHECK(vmm_rdpmc(v, 1u << 29, &pmc), 0);
	CHECK(pmc, fields);
	CHECK(msr(v, STATUS), 0);
	return NULL;
}

static const char *lent_topdown(void)
{
	struct vpmu_kvm_arch a = { .n_fixed = 4 };
	struct vmm *vm = vmm_new(2, 0), *to = vmm_new(2, 0), *none = vmm_new(1, 0);
	struct vmm *twin = vmm_new(1, 0);
	struct vmm_vcpu *v = &vm->vcpu[0];
	const uint64_t turns = 1000000;
	struct vpmu_kvm_lend l = { 0 };
	static char state[1 << 16];
	size_t bytes = sizeof(state);
	uint64_t value;
	uint32_t r[4];

	if (!open_group(&l, USER | KERNEL, 0)) {
		CHECK(vmm_arch(vm, &a), EOPNOTSUPP);
		return NULL;
	}
	CHECK(vmm_lend(vm, &l), ENOENT);
	close_group(&l);
	CHECK(vmm_arch(vm, &a), 0);
	CHECK(vmm_arch(to, &a), 0);
	TRY(wrong_loans(vm));
	TRY(lend(vm, USER | KERNEL));
	TRY(lend(vm, USER));
	open_group(&l, USER | KERNEL, 0);
	CHECK(vmm_lend(to, &l), 0);
	TRY(lent_elsewhere(vm));
	TRY(lent_elsewhere(to));
	CHECK(vmm_cpuid(v, 0xa, r), 0);
	CHECK(r[3] & 0x1f, 4);
	CHECK(msr(v, VPMU_MSR_PERF_CAPABILITIES) & VPMU_CAP_METRICS, VPMU_CAP_METRICS);
	TRY(refused_group(vm, KERNEL, 0, EBUSY));
	TRY(count_slots(v, USER | KERNEL, 0, turns));
	TRY(of_loop(v, turns));
	CHECK(vmm_save(vm, state, &bytes), 0);
	CHECK(vmm_load(to, state, bytes), 0);
	TRY(of_loop(&to->vcpu[0], turns));
	CHECK(vmm_wrmsr(&to->vcpu[0], GLOBAL, TOPDOWN), 0);
	CHECK(vmm_loop(&to->vcpu[0], turns), 0);
	TRY(of_loop(&to->vcpu[0], 2 * turns));
	/* Another VM of this thread has been lent the same group. */
	CHECK(vmm_arch(twin, &a), 0);
	CHECK(vmm_lend(twin, &l), 0);
	TRY(count_slots(&twin->vcpu[0], USER | KERNEL, 0, 3 * turns));
	TRY(of_loop(&twin->vcpu[0], 3 * turns));
	TRY(of_loop(&to->vcpu[0], 2 * turns));
	vmm_free(twin);
	/* The VMM has kept the files. What a guest has counted does not go back. */
	CHECK(ioctl(l.event[0], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP), 0);
	TRY(of_loop(&to->vcpu[0], 2 * turns));
	close_group(&l);
	/* It has been lent a group of user mode's slots, where this loop has none, and no other. */
	TRY(count_slots(v, USER, 0, turns));
	CHECK(msr(v, SLOTS), 0);
	CHECK(msr(v, LOSS_REASON(pmu->n + 3)), 0);
	TRY(count_slots(v, KERNEL, 0, turns));
	CHECK(msr(v, SLOTS), 0);
	CHECK(!msr(v, LOSS_REASON(pmu->n + 3)), false);
	/* While nothing counts, it is data. */
	value = most_events() > 5 ? 0x0102030405060708 : 0x05060708;
	CHECK(vmm_wrmsr(v, VPMU_MSR_PERF_METRICS, value), 0);
	CHECK(msr(v, VPMU_MSR_PERF_METRICS), value);
	CHECK(vmm_wrmsr(v, VPMU_MSR_PERF_METRICS, 1ull << 32) == 0, most_events() > 5);
	TRY(count_slots(v, USER | KERNEL, (1ull << 48) - 1000, turns));
	CHECK(msr(v, STATUS) >> 35 & 1, 1);
	/* Seldom is there a service between this overflow and the end of counting. */
	CHECK(vmm_wrmsr(v, VPMU_MSR_GLOBAL_OVF_CTRL, 1ull << 35), 0);
	CHECK(msr(v, STATUS) >> 35 & 1, 0);
	TRY(count_slots(v, USER | KERNEL, (1ull << 48) - 1000, 1000));
	CHECK(msr(v, STATUS) >> 35 & 1, 1);
	TRY(count_slots(&vm->vcpu[1], USER | KERNEL, 0, turns));
	CHECK(msr(&vm->vcpu[1], SLOTS), 0);
	CHECK(!msr(&vm->vcpu[1], LOSS_REASON(pmu->n + 3)), false);
	/* A vCPU that has been lent nothing has three fixed counters. */
	CHECK(vmm_arch(none, &a), 0);
	CHECK(vmm_cpuid(&none->vcpu[0], 0xa, r), 0);
	CHECK(r[3] & 0x1f, 3);
	CHECK(vmm_rdmsr(&none->vcpu[0], SLOTS, &value), EIO);
	vmm_free(none);
	vmm_free(vm);
	vmm_free(to);
	return NULL;
}

/* Perf saves the classes in 255ths at each switch of tasks, of which there are few in real time. */
const char *t_topdown(void)
{
	const struct sched_param first = { .sched_priority = 1 }, none = { 0 };
	const char *wrong;

	CHECK(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	wrong = lent_topdown();
	CHECK(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	return wrong;
}
