// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Branch records of a legacy format, which are KVM's own, and their loss. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"

#define LOSS_LBR	0x56504d03u

static bool has_records(struct vmm_vcpu *v)
{
	return msr(v, VPMU_MSR_PERF_CAPABILITIES) & VPMU_CAP_LBR;
}

/* The last branch that was recorded is that of the loop. */
static const char *recorded(struct vmm_vcpu *v)
{
	uint64_t loop = VMM_CODE + (uint64_t)(guest_loop - guest_code), tos;

	CHECK(vmm_loop(v, 10), 0);
	tos = msr(v, VPMU_MSR_LBR_TOS) & 31;
	CHECK(msr(v, VPMU_MSR_LBR_FROM + (uint32_t)tos), loop + 3);
	CHECK(msr(v, VPMU_MSR_LBR_TO + (uint32_t)tos), loop);
	return NULL;
}

static struct vmm *napping;

static void wake(int signal_number)
{
	(void)signal_number;
	(void)vmm_msi(napping, 0, VMM_MSI_NMI);
}

/* The guest's first vCPU halts, and its thread sleeps in KVM, at least @n times. */
static const char *nap(struct vmm *vm, long n)
{
	struct itimerval often = { { 0, 3000 }, { 0, 3000 } }, never = { 0 };
	struct rusage before, now;
	int ret;

	napping = vm;
	signal(SIGALRM, wake);
	getrusage(RUSAGE_SELF, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	do {
		ret = vmm_run(&vm->vcpu[0], guest_halt, 0, 0, 1, 0, 0);
		getrusage(RUSAGE_SELF, &now);
	} while (!ret && now.ru_nvcsw < before.ru_nvcsw + n);
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(ret, 0);
	return NULL;
}

/* The guest has stopped recording. It keeps its records, also when KVM has released its event. */
static const char *kept(struct vmm_vcpu *v)
{
	const uint64_t select = 2; /* not those of user mode */
	uint64_t tos = msr(v, VPMU_MSR_LBR_TOS), from;

	from = msr(v, VPMU_MSR_LBR_FROM + (uint32_t)tos);
	CHECK(vmm_wrmsr(v, VPMU_MSR_LBR_SELECT, select), 0);
	TRY(nap(v->vm, 5));
	CHECK(msr(v, VPMU_MSR_LBR_TOS), tos);
	CHECK(msr(v, VPMU_MSR_LBR_FROM + (uint32_t)tos), from);
	TRY(nap(v->vm, 40));
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_LBR), 0);
	CHECK(msr(v, VPMU_MSR_LBR_SELECT), select);
	TRY(recorded(v));
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, 0), 0);
	tos = msr(v, VPMU_MSR_LBR_TOS);
	CHECK(msr(v, VPMU_MSR_LBR_FROM + (uint32_t)tos), from);
	TRY(nap(v->vm, 40));
	CHECK(msr(v, VPMU_MSR_LBR_TOS), tos);
	CHECK(msr(v, VPMU_MSR_LBR_FROM + (uint32_t)tos), from);
	CHECK(msr(v, VPMU_MSR_LBR_SELECT), select);
	return NULL;
}

/* A VMM gets the registers, and sets them in another VM, whose guest goes on with them. */
static const char *carried(struct vmm_vcpu *from)
{
	uint32_t tos = (uint32_t)msr(from, VPMU_MSR_LBR_TOS);
	const uint32_t moved[] = {
		VPMU_MSR_LBR_SELECT, VPMU_MSR_LBR_TOS,
		VPMU_MSR_LBR_FROM + tos, VPMU_MSR_LBR_TO + tos,
	};
	struct vmm_vcpu *v;
	uint64_t value[4];

	for (unsigned int i = 0; i < 4; i++) {
		CHECK(vmm_get_msr(from, moved[i], &value[i]), 0);
		CHECK(msr(from, moved[i]), value[i]);
	}
	CHECK(value[2] != 0, true);
	vmm_free(from->vm);
	v = &given(1)->vcpu[0];
	CHECK(vmm_loop(v, 1), 0); /* it has its PMU from now on */
	for (unsigned int i = 0; i < 4; i++)
		CHECK(vmm_set_msr(v, moved[i], value[i]), 0);
	for (unsigned int i = 0; i < 4; i++)
		CHECK(msr(v, moved[i]), value[i]);
	vmm_free(v->vm);
	return NULL;
}

/* KVM's branch records, where it has some for this CPU, end and begin as DEBUGCTL says. */
const char *t_intel_records(void)
{
	const uint64_t on = VPMU_DEBUGCTL_LBR | VPMU_DEBUGCTL_FREEZE_LBRS;
	struct vmm *vm = given(2), *to = given(2);
	struct vmm_vcpu *v = &vm->vcpu[0], *w = &to->vcpu[0];
	static char frozen[1 << 16], going[1 << 16];
	size_t bytes = sizeof(frozen), going_bytes = sizeof(going);
	uint64_t tos;

	if (!has_records(v)) {
		vmm_free(vm);
		vmm_free(to);
		return NULL;
	}
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, on | VPMU_DEBUGCTL_FREEZE_PERFMON), 0);
	CHECK(msr(v, VPMU_MSR_DEBUGCTL), on | VPMU_DEBUGCTL_FREEZE_PERFMON);
	TRY(recorded(v));
	/* A PMI freezes them until the status is cleared. */
	CHECK(vmm_wrmsr(v, CTL(0), INSTRUCTIONS | 1 << 20), 0);
	CHECK(vmm_wrmsr(v, CTR(0), (1ull << 48) - 1), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 1), 0);
	CHECK(vmm_loop(v, 10), 0);
	CHECK(msr(v, STATUS) >> 58 & 1, 1);
	tos = msr(v, VPMU_MSR_LBR_TOS);
	CHECK(vmm_loop(v, 5), 0);
	CHECK(msr(v, VPMU_MSR_LBR_TOS), tos);
	CHECK(vmm_save(vm, frozen, &bytes), 0);
	CHECK(vmm_wrmsr(v, pmu->clear, msr(v, STATUS)), 0);
	TRY(recorded(v));
	CHECK(vmm_save(vm, going, &going_bytes), 0);
	vmm_free(vm); /* while it records: this thread's records are one VM's */
	CHECK(vmm_load(to, frozen, bytes), 0);
	CHECK(msr(w, VPMU_MSR_DEBUGCTL), on | VPMU_DEBUGCTL_FREEZE_PERFMON);
	CHECK(vmm_wrmsr(w, pmu->clear, msr(w, STATUS)), 0);
	TRY(recorded(w));
	CHECK(vmm_wrmsr(w, VPMU_MSR_DEBUGCTL, 0), 0);
	tos = msr(w, VPMU_MSR_LBR_TOS);
	CHECK(vmm_loop(w, 5), 0);
	CHECK(msr(w, VPMU_MSR_LBR_TOS), tos);
	TRY(kept(w));
	CHECK(vmm_load(to, going, going_bytes), 0);
	CHECK(msr(w, VPMU_MSR_LBR_SELECT), 0); /* of this state, not the last one's */
	TRY(recorded(w));
	CHECK(vmm_wrmsr(w, VPMU_MSR_DEBUGCTL, 0), 0);
	return carried(w);
}

/* Without the records their registers are a copy, into which nothing is recorded. */
static const char *copied(struct vmm_vcpu *v)
{
	CHECK(vmm_wrmsr(v, VPMU_MSR_LBR_SELECT, 2), 0);
	CHECK(msr(v, LOSS_LBR), 1ull << 32 | 0x101);
	CHECK(msr(v, VPMU_MSR_LBR_SELECT), 2);
	CHECK(vmm_wrmsr(v, VPMU_MSR_LBR_TOS, 3), 0);
	CHECK(vmm_wrmsr(v, VPMU_MSR_LBR_FROM + 3, 0x1000), 0);
	CHECK(vmm_wrmsr(v, VPMU_MSR_LBR_TO + 31, 0x2000), 0);
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_LBR), 0);
	CHECK(msr(v, VPMU_MSR_DEBUGCTL), VPMU_DEBUGCTL_LBR);
	CHECK(vmm_loop(v, 10), 0);
	CHECK(msr(v, VPMU_MSR_LBR_TOS), 3);
	CHECK(msr(v, VPMU_MSR_LBR_FROM + 3), 0x1000);
	CHECK(msr(v, VPMU_MSR_LBR_TO + 31), 0x2000);
	CHECK(msr(v, LOSS_LBR), 1ull << 32 | 0x101);
	return NULL;
}

/* They come by themselves while the guest records, with what it has written. */
static const char *found(struct vmm_vcpu *v)
{
	for (unsigned int i = 0; i < 1000 && msr(v, LOSS_LBR) & 0xff; i++)
		CHECK(vmm_loop(v, 1000000), 0);
	CHECK(msr(v, LOSS_LBR), 2ull << 32 | 0x100);
	CHECK(msr(v, VPMU_MSR_LBR_SELECT), 2);
	CHECK(msr(v, VPMU_MSR_LBR_FROM + 3) == 0x1000, msr(v, VPMU_MSR_LBR_TO + 31) == 0x2000);
	CHECK(vmm_loop(v, 100), 0);
	CHECK(msr(v, VPMU_MSR_LBR_TO + 31) == 0x2000, false);
	TRY(recorded(v));
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, 0), 0);
	return NULL;
}

/* Opens an event of the host's with records of @kinds, on the CPU that the program stays on. */
static int host_records(uint64_t kinds)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .size = sizeof(attr), .pinned = 1,
		.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS, .sample_period = 1ull << 40,
		.sample_type = PERF_SAMPLE_BRANCH_STACK,
		.branch_sample_type = kinds,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
}

static const char *stay(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one), 0);
	return NULL;
}

/* A guest that begins beside the host's records finds none of them. */
static const char *no_leak(void)
{
	static const uint32_t first[] = {
		VPMU_MSR_LBR_FROM, VPMU_MSR_LBR_TO, VPMU_MSR_LBR_INFO,
	};
	struct vmm_vcpu *v;
	int fd;

	TRY(stay());
	fd = host_records(PERF_SAMPLE_BRANCH_ANY);
	CHECK(fd >= 0, true);
	v = &given(1)->vcpu[0];
	for (uint32_t i = 0; i < 96; i++)
		CHECK(msr(v, first[i / 32] + i % 32), 0);
	CHECK(msr(v, VPMU_MSR_LBR_SELECT), 0);
	CHECK(msr(v, VPMU_MSR_LBR_TOS), 0);
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_LBR), 0);
	TRY(recorded(v));
	CHECK(msr(v, LOSS_LBR), 0);
	vmm_free(v->vm);
	close(fd);
	return NULL;
}

/* The CPU has one filter. While the thread is off it, that of the host's event is in force. */
static const char *beside_a_filter(void)
{
	struct vmm_vcpu *v = &given(1)->vcpu[0];
	struct rusage before, now;
	pid_t other;
	int fd;

	TRY(stay());
	CHECK(vmm_wrmsr(v, VPMU_MSR_LBR_SELECT, 2), 0);
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_LBR), 0);
	TRY(recorded(v));
	fd = host_records(PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_USER);
	CHECK(fd >= 0, true);
	other = fork();
	if (!other)
		for (alarm(60);;)
			;
	getrusage(RUSAGE_SELF, &before);
	for (unsigned int i = 0; i < 1000; i++) {
		CHECK(vmm_loop(v, 100000), 0);
		getrusage(RUSAGE_SELF, &now);
		if (now.ru_nivcsw >= before.ru_nivcsw + 10)
			break;
	}
	CHECK(now.ru_nivcsw >= before.ru_nivcsw + 10, true);
	CHECK(msr(v, VPMU_MSR_LBR_SELECT), 2);
	TRY(recorded(v));
	CHECK(kill(other, SIGKILL), 0);
	CHECK(waitpid(other, NULL, 0), other);
	close(fd);
	vmm_free(v->vm);
	return NULL;
}

/* The records of a thread are one VM's. */
static const char *beside_another(void)
{
	struct vmm *first = given(1), *second = given(1);
	struct vmm_vcpu *v = &first->vcpu[0], *w = &second->vcpu[0];

	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_LBR), 0);
	TRY(recorded(v));
	CHECK(msr(v, LOSS_LBR), 0);
	TRY(copied(w));
	TRY(recorded(v));
	CHECK(msr(v, LOSS_LBR), 0);
	vmm_free(first);
	TRY(found(w));
	vmm_free(second);
	return NULL;
}

/* Events of the host's on this CPU, pinned, as many as it has counters. Returns their number. */
static unsigned int fill(int *fd, unsigned int room)
{
	static const struct { uint32_t type; uint64_t config; } events[] = {
		{ PERF_TYPE_RAW, 0x400 }, /* slots */
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES },
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	};
	struct perf_event_attr attr = { .size = sizeof(attr), .pinned = 1 };
	unsigned int n;
	uint64_t count;

	for (n = 0; n < room; n++) {
		const unsigned int kind = n < 3 ? n : 3;

		attr.type = events[kind].type;
		attr.config = events[kind].config;
		fd[n] = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
		if (fd[n] < 0)
			return n;
		if (read(fd[n], &count, sizeof(count)) == 0 && n > 3) {
			close(fd[n]);
			return n;
		}
	}
	return n;
}

/* Without room for another event of any kind, there is none for KVM's. */
static const char *beside_the_host(void)
{
	struct vmm *vm = given(1);
	struct vmm_vcpu *v = &vm->vcpu[0];
	int fd[32];
	unsigned int n;

	TRY(stay());
	n = fill(fd, 32);
	CHECK(n > 8, true); /* fixed counters, too */
	TRY(copied(v));
	while (n)
		close(fd[--n]);
	TRY(found(v));
	/* And while it has them. */
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_LBR), 0);
	TRY(recorded(v));
	n = fill(fd, 32);
	for (unsigned int i = 0; i < 1000 && !(msr(v, LOSS_LBR) & 0xff); i++)
		CHECK(vmm_loop(v, 1000000), 0);
	CHECK(msr(v, LOSS_LBR), 3ull << 32 | 0x101);
	CHECK(msr(v, VPMU_MSR_LBR_SELECT), 2);
	for (uint32_t i = 0; i < 32; i++)
		CHECK(msr(v, VPMU_MSR_LBR_FROM + i), 0);
	while (n)
		close(fd[--n]);
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_LBR), 0); /* a try */
	CHECK(msr(v, LOSS_LBR), 4ull << 32 | 0x100);
	TRY(recorded(v));
	vmm_free(vm);
	return NULL;
}

/* KVM would write what the CPU does not take, and the host's log would have it. */
static const char *invalid(void)
{
	static const struct { uint32_t msr; uint64_t value; } writes[] = {
		{ VPMU_MSR_LBR_TOS, 1ull << 60 }, { VPMU_MSR_LBR_TOS, 32 },
		{ VPMU_MSR_LBR_SELECT, 1ull << 40 }, { VPMU_MSR_LBR_FROM, 1ull << 62 },
		{ VPMU_MSR_LBR_TO + 31, 1ull << 62 },
	};
	struct vmm_vcpu *v;

	vmm_quiet = true;
	for (unsigned int i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		v = &given(1)->vcpu[0];
		CHECK(vmm_wrmsr(v, writes[i].msr, writes[i].value) != 0, true);
		CHECK(vmm_set_msr(v, writes[i].msr, writes[i].value), EIO);
		vmm_free(v->vm);
	}
	vmm_quiet = false;
	v = &given(1)->vcpu[0];
	CHECK(vmm_wrmsr(v, VPMU_MSR_LBR_FROM, ~0ull << 47), 0);
	CHECK(msr(v, VPMU_MSR_LBR_FROM), ~0ull << 47);
	vmm_free(v->vm);
	return NULL;
}

/* Whatever has cost KVM its event, the guest is told and keeps what it writes. */
const char *t_intel_lost_records(void)
{
	struct vmm *vm = given(1);
	bool has = has_records(&vm->vcpu[0]);

	vmm_free(vm);
	if (!has)
		return NULL;
	TRY(invalid());
	TRY(no_leak());
	TRY(beside_a_filter());
	TRY(beside_another());
	TRY(beside_the_host());
	return NULL;
}
