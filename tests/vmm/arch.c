// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The architectural PMU that vpmu_kvm.ko serves, and what a VMM and its guest may do to it:
 * arch [CASE...]. A line for each, "ok CASE" or "not ok CASE: why". A case whose name has a
 * parameter of the module runs only when it is named.
 *
 * Under KVM a WRMSR and the OUT by which a guest comes back do not retire; KVM adds them.
 */
#include "vmm.h"

#include <cpuid.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vpmu-kvm-module.h>
#include <vpmu/msr.h>

/* Registers of the host's vendor, which is the guest's. */
static const struct pmu {
	bool intel;
	uint32_t ctl, ctr, step, global, status, clear;
	uint64_t branches;
	unsigned int n, version;
	uint32_t none;       /* no guest has this register */
	uint32_t lacks;      /* nor this one, which other PMUs have */
	uint32_t random[8];  /* the first of 16 each, some of which are a PMU's */
} amd = {
	.ctl = VPMU_MSR_AMD_PERF_CTL0, .ctr = VPMU_MSR_AMD_PERF_CTL0 + 1, .step = 2,
	.global = VPMU_MSR_AMD_GLOBAL_CTRL, .status = VPMU_MSR_AMD_GLOBAL_STATUS,
	.clear = VPMU_MSR_AMD_GLOBAL_STATUS_CLR, .branches = 0x4300c2, .n = 6, .version = 2,
	.none = 0xc0011030, /* IBS */
	.lacks = 0xc001020c,
	.random = {
		VPMU_MSR_AMD_PERF_CTL0, VPMU_MSR_AMD_GLOBAL_STATUS, VPMU_MSR_K7_EVTSEL0,
		0x56504d00, 0xc0010230, 0xc0010300, 0xc0011030, 0xc000010e,
	},
}, intel = {
	.intel = true, .ctl = VPMU_MSR_PERFEVTSEL0, .ctr = VPMU_MSR_A_PMC0, .step = 1,
	.global = VPMU_MSR_GLOBAL_CTRL, .status = VPMU_MSR_GLOBAL_STATUS,
	.clear = VPMU_MSR_GLOBAL_OVF_CTRL, .branches = 0x4300c4, .n = 8, .version = 5,
	.none = VPMU_MSR_DS_AREA, .lacks = VPMU_MSR_PERF_METRICS,
	.random = {
		VPMU_MSR_PERFEVTSEL0, VPMU_MSR_FIXED_CTR0, VPMU_MSR_FIXED_CTR_CTRL, 0x56504d00,
		VPMU_MSR_A_PMC0, VPMU_MSR_PEBS_ENABLE, VPMU_MSR_DEBUGCTL, 0x340,
	},
};
static const struct pmu *pmu = &amd;

#define CTL(i)		(pmu->ctl + pmu->step * (i))
#define CTR(i)		(pmu->ctr + pmu->step * (i))
#define GLOBAL		pmu->global
#define STATUS		pmu->status
#define INSTRUCTIONS	0x4300c0ull /* both rings, enabled */
#define BRANCHES	pmu->branches
#define LOSS_REASON(i)	(0x56504d10u + 4 * (i) + 2)

static char why[300];

#define FAIL(...) return snprintf(why, sizeof(why), __VA_ARGS__), why
#define CHECK(what, want)						\
	do {								\
		int64_t got_ = (what), want_ = (want);			\
									\
		if (got_ != want_)					\
			FAIL("line %d: %s is %lld, not %lld", __LINE__, #what, \
			     (long long)got_, (long long)want_);	\
	} while (0)
#define TRY(call)							\
	do {								\
		const char *wrong_ = (call);				\
									\
		if (wrong_)						\
			FAIL("line %d: %s", __LINE__, strdup(wrong_));	\
	} while (0)

/* @capabilities: 0 for all that there are. */
static struct vmm *given_of(unsigned int n_vcpus, uint64_t capabilities)
{
	struct vmm *vm = vmm_new(n_vcpus, 0);
	struct vpmu_kvm_arch a = { .capabilities = capabilities };
	int ret = vmm_arch(vm, &a);

	if (ret)
		vmm_die("VPMU_KVM_ARCH: %s: %s", strerror(ret), a.why);
	return vm;
}

static struct vmm *given(unsigned int n_vcpus)
{
	return given_of(n_vcpus, 0);
}

/* The CPU may have branch records, which these do not get. */
static struct vmm *without_records(void)
{
	return given_of(1, VPMU_CAP_FULL_WIDTH);
}

static uint64_t msr(struct vmm_vcpu *v, uint32_t index)
{
	uint64_t value;

	return vmm_rdmsr(v, index, &value) ? ~0ull : value;
}

/* Counter @i counts @select in a loop of @turns. */
static const char *loop(struct vmm_vcpu *v, unsigned int i, uint64_t select, uint64_t turns,
			uint64_t want)
{
	CHECK(vmm_wrmsr(v, GLOBAL, 0), 0);
	CHECK(vmm_wrmsr(v, CTL(i), select), 0);
	CHECK(vmm_wrmsr(v, CTR(i), 0), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 1 << i), 0);
	CHECK(vmm_loop(v, turns), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 0), 0);
	CHECK(msr(v, CTR(i)), want);
	return NULL;
}

/* The enabling WRMSR, the OUTs after it and after the loop. */
#define AROUND 3

static const char *t_exact(void)
{
	struct vmm_vcpu *v = &given(1)->vcpu[0];

	for (unsigned int i = 0; i < pmu->n; i++) {
		TRY(loop(v, i, INSTRUCTIONS, 1000 + i, 2000 + 2 * i + AROUND));
		TRY(loop(v, i, BRANCHES, 1000 + i, 1000 + i));
	}
	TRY(loop(v, 0, INSTRUCTIONS, 20000000, 40000000 + AROUND));
	vmm_free(v->vm);
	return NULL;
}

static const char *leaves_amd(struct vmm_vcpu *v)
{
	uint32_t r[4];

	CHECK(vmm_cpuid(v, 0x80000022, r), 0);
	CHECK(r[0], 1);
	CHECK(r[1], 6);
	CHECK(vmm_cpuid(v, 0x80000000, r), 0);
	CHECK(r[0] >= 0x80000022, true);
	CHECK(vmm_cpuid(v, 0x80000001, r), 0);
	CHECK(r[2] >> 23 & 1, 1); /* PerfCtrExtCore */
	CHECK(r[2] >> 2 & 1, 0);  /* SVM */
	CHECK(vmm_cpuid(v, 0x8000000a, r), 0);
	CHECK(r[0] | r[1] | r[3], 0);
	return NULL;
}

static const char *leaves_intel(struct vmm_vcpu *v)
{
	uint32_t r[4];

	CHECK(vmm_cpuid(v, 0, r), 0);
	CHECK(r[0] >= 0xa, true);
	CHECK(vmm_cpuid(v, 0xa, r), 0);
	CHECK(r[0] & 0xffffff, 48 << 16 | 8 << 8 | 5);
	CHECK(r[2], 7);
	CHECK(r[3] & 0x1f, 3);
	CHECK(vmm_cpuid(v, 1, r), 0);
	CHECK(r[2] >> 15 & 1, 1); /* PDCM */
	CHECK(r[2] >> 2 & 1, 0);  /* DTES64 */
	CHECK(r[3] >> 21 & 1, 0); /* DS */
	CHECK(vmm_cpuid(v, 7, r), 0);
	CHECK(r[3] >> 19 & 1, 0); /* architectural LBR */
	CHECK(vmm_cpuid(v, 0x1c, r), 0);
	CHECK(r[0] | r[1] | r[2] | r[3], 0);
	return NULL;
}

/* Number @i, in a loop that is 2 instructions and 1 branch a turn. */
static const char *fixed(struct vmm_vcpu *v, unsigned int i, uint64_t turns, uint64_t want)
{
	CHECK(vmm_wrmsr(v, GLOBAL, 0), 0);
	CHECK(vmm_wrmsr(v, VPMU_MSR_FIXED_CTR_CTRL, 3 << 4 * i), 0);
	CHECK(vmm_wrmsr(v, VPMU_MSR_FIXED_CTR0 + i, 0), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 1ull << (32 + i)), 0);
	CHECK(vmm_loop(v, turns), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 0), 0);
	CHECK(msr(v, VPMU_MSR_FIXED_CTR0 + i), want);
	return NULL;
}

/* KVM would answer some of these MSRs itself; and fixed counters. */
static const char *t_intel(void)
{
	struct vmm *vm = without_records();
	struct vmm_vcpu *v = &vm->vcpu[0];
	uint64_t value;

	TRY(fixed(v, 0, 20000, 40000 + AROUND));
	CHECK(msr(v, VPMU_MSR_PERF_CAPABILITIES), VPMU_CAP_FULL_WIDTH);
	CHECK(msr(v, VPMU_MSR_MISC_ENABLE) >> 7 & 1, 1);
	CHECK(msr(v, VPMU_MSR_MISC_ENABLE) >> 11 & 3, 3);
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_FREEZE_PERFMON), 0);
	CHECK(msr(v, VPMU_MSR_DEBUGCTL), VPMU_DEBUGCTL_FREEZE_PERFMON);
	CHECK(vmm_get_msr(v, VPMU_MSR_DEBUGCTL, &value), 0);
	CHECK(value, VPMU_DEBUGCTL_FREEZE_PERFMON);
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_LBR | VPMU_DEBUGCTL_BTF), 0);
	CHECK(msr(v, VPMU_MSR_DEBUGCTL), 0);
	/* An overflow freezes all counters: version 4 and later. */
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_FREEZE_PERFMON), 0);
	CHECK(vmm_wrmsr(v, CTL(0), INSTRUCTIONS | 1 << 20), 0);
	CHECK(vmm_wrmsr(v, CTL(1), INSTRUCTIONS), 0);
	CHECK(vmm_wrmsr(v, CTR(0), (1ull << 48) - 100), 0);
	CHECK(vmm_wrmsr(v, CTR(1), 0), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 3), 0);
	CHECK(vmm_loop(v, 100000), 0);
	CHECK(msr(v, STATUS) & ~VPMU_STATUS_CHANGED, VPMU_STATUS_CTR_FRZ | 1);
	value = msr(v, CTR(1));
	CHECK(vmm_loop(v, 1000), 0);
	CHECK(msr(v, CTR(1)) - value, 0);
	CHECK(vmm_wrmsr(v, pmu->clear, VPMU_STATUS_CTR_FRZ | 1), 0);
	CHECK(vmm_loop(v, 1000), 0);
	CHECK(msr(v, CTR(1)) - value >= 2000, true);
	/* A VMM's whole counter by its old name. */
	CHECK(vmm_set_msr(v, VPMU_MSR_PMC0 + 2, 0x800000000123), 0);
	CHECK(msr(v, CTR(2)), 0x800000000123);
	vmm_free(vm);
	return NULL;
}

static const char *freeze_then_init(struct vmm_vcpu *v, void *state, size_t *bytes)
{
	struct kvm_mp_state mp;

	vmm_long_mode(v);
	CHECK(vmm_wrmsr(v, VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_FREEZE_PERFMON), 0);
	CHECK(vmm_wrmsr(v, CTL(3), INSTRUCTIONS), 0);
	if (state)
		CHECK(vmm_save(v->vm, state, bytes), 0);
	CHECK(vmm_msi(v->vm, v->number, VMM_MSI_INIT), 0);
	/* KVM does what is pending before it answers. */
	if (ioctl(v->fd, KVM_GET_MP_STATE, &mp))
		vmm_die("KVM_GET_MP_STATE");
	CHECK(mp.mp_state, KVM_MP_STATE_INIT_RECEIVED);
	return NULL;
}

static const char *debugctl_and_ctl3(struct vmm_vcpu *v, uint64_t debugctl)
{
	uint64_t value;

	CHECK(vmm_get_msr(v, VPMU_MSR_DEBUGCTL, &value), 0);
	CHECK(value, debugctl);
	CHECK(vmm_get_msr(v, CTL(3), &value), 0);
	CHECK(value, INSTRUCTIONS);
	return NULL;
}

/*
 * INIT clears DEBUGCTL and leaves the counters, as the VMM sees at once, and as a saved state
 * has. One that came before a state is loaded does not change what is loaded.
 */
static const char *t_intel_init(void)
{
	struct vmm *vm = given(2), *to = given(2);
	struct vmm_vcpu *v = &vm->vcpu[1];
	static char state[1 << 16];
	size_t bytes = sizeof(state);

	TRY(freeze_then_init(v, NULL, NULL));
	TRY(debugctl_and_ctl3(v, 0));
	TRY(freeze_then_init(v, NULL, NULL));
	CHECK(vmm_save(vm, state, &bytes), 0);
	CHECK(vmm_load(to, state, bytes), 0);
	TRY(debugctl_and_ctl3(&to->vcpu[1], 0));
	bytes = sizeof(state);
	TRY(freeze_then_init(v, state, &bytes));
	CHECK(vmm_load(vm, state, bytes), 0);
	TRY(debugctl_and_ctl3(v, VPMU_DEBUGCTL_FREEZE_PERFMON));
	vmm_free(vm);
	vmm_free(to);
	return NULL;
}

/* INIT leaves the PMU: a counter goes on where it was. */
static const char *t_init(void)
{
	struct vmm *vm = given(2);
	struct vmm_vcpu *v = &vm->vcpu[1];
	struct kvm_mp_state mp;
	uint64_t value;

	vmm_long_mode(v);
	CHECK(vmm_wrmsr(v, GLOBAL, 0), 0);
	CHECK(vmm_wrmsr(v, CTL(1), INSTRUCTIONS), 0);
	CHECK(vmm_wrmsr(v, CTR(1), 5), 0);
	CHECK(vmm_msi(vm, v->number, VMM_MSI_INIT), 0);
	/* KVM does what is pending before it answers. */
	if (ioctl(v->fd, KVM_GET_MP_STATE, &mp))
		vmm_die("KVM_GET_MP_STATE");
	CHECK(mp.mp_state, KVM_MP_STATE_INIT_RECEIVED);
	CHECK(vmm_get_msr(v, CTL(1), &value), 0);
	CHECK(value, INSTRUCTIONS);
	CHECK(vmm_get_msr(v, CTR(1), &value), 0);
	CHECK(value, 5);
	CHECK(vmm_get_msr(v, GLOBAL, &value), 0);
	CHECK(value, 0);
	vmm_free(vm);
	return NULL;
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

/* The guest has stopped recording. It keeps its records for a while, and LBR_SELECT for good. */
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
	TRY(nap(v->vm, 40));
	CHECK(msr(v, VPMU_MSR_LBR_FROM + (uint32_t)tos), 0); /* KVM has released them */
	CHECK(msr(v, VPMU_MSR_LBR_SELECT), select);
	return NULL;
}

/* KVM's branch records, where it has some for this CPU, end and begin as DEBUGCTL says. */
static const char *t_intel_records(void)
{
	const uint64_t on = VPMU_DEBUGCTL_LBR | VPMU_DEBUGCTL_FREEZE_LBRS;
	struct vmm *vm = given(2), *to = given(2);
	struct vmm_vcpu *v = &vm->vcpu[0], *w = &to->vcpu[0];
	static char frozen[1 << 16], going[1 << 16];
	size_t bytes = sizeof(frozen), going_bytes = sizeof(going);
	uint64_t tos;

	if (!(msr(v, VPMU_MSR_PERF_CAPABILITIES) & VPMU_CAP_LBR)) {
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
	TRY(recorded(w));
	vmm_free(to);
	return NULL;
}

/* A VMM restores the status of versions that cannot set its bits themselves. */
static const char *t_intel_older(void)
{
	for (unsigned int version = 2; version <= 3; version++) {
		struct vpmu_kvm_arch a = { .version = version };
		struct vmm *vm = vmm_new(1, 0);
		struct vmm_vcpu *v = &vm->vcpu[0];
		uint64_t value;

		CHECK(vmm_arch(vm, &a), 0);
		TRY(loop(v, 0, INSTRUCTIONS, 1000, 2000 + AROUND));
		CHECK(vmm_set_msr(v, STATUS, 1 | 1ull << 32), 0);
		CHECK(msr(v, STATUS), 1 | 1ull << 32);
		CHECK(vmm_set_msr(v, STATUS, VPMU_STATUS_CTR_FRZ), EIO);
		CHECK(vmm_set_msr(v, STATUS, 0), 0);
		CHECK(vmm_get_msr(v, STATUS, &value), 0);
		CHECK(value, 0);
		vmm_free(vm);
	}
	return NULL;
}

/*
 * KVM writes GLOBAL_CTRL at a nested entry, and warns if that is refused: a guest in VMX
 * operation sets what there is of it.
 */
static const char *t_vmx(void)
{
	struct vpmu_kvm_arch a = { .n_gp = 4 };
	struct vmm *vm = vmm_new(1, 0);
	struct vmm_vcpu *v = &vm->vcpu[0];
	struct kvm_sregs s;

	CHECK(vmm_arch(vm, &a), 0);
	CHECK(vmm_loop(v, 1), 0);
	if (ioctl(v->fd, KVM_GET_SREGS, &s))
		vmm_die("KVM_GET_SREGS");
	s.cr4 |= 1 << 13;
	if (ioctl(v->fd, KVM_SET_SREGS, &s))
		vmm_die("KVM_SET_SREGS");
	CHECK(vmm_wrmsr(v, GLOBAL, ~0ull), 0);
	CHECK(msr(v, GLOBAL), 0x70000000f);
	s.cr4 &= ~(1ull << 13);
	if (ioctl(v->fd, KVM_SET_SREGS, &s))
		vmm_die("KVM_SET_SREGS");
	vmm_quiet = true;
	CHECK(vmm_wrmsr(v, GLOBAL, ~0ull), EIO);
	vmm_free(vm);
	return NULL;
}

/* These end the guest by a fault. */
static const char *t_intel_faults(void)
{
	static const struct { uint32_t msr; uint64_t value; } writes[] = {
		{ VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_FREEZE_SMM },
		{ VPMU_MSR_DEBUGCTL, VPMU_DEBUGCTL_FREEZE_LBRS }, { VPMU_MSR_DEBUGCTL, 1ull << 40 },
		{ VPMU_MSR_PERF_CAPABILITIES, VPMU_CAP_FULL_WIDTH },
		{ VPMU_MSR_GLOBAL_CTRL, 1ull << 35 },
		{ VPMU_MSR_GLOBAL_STATUS, 1 }, { VPMU_MSR_FIXED_CTR_CTRL, 1 << 12 },
		{ VPMU_MSR_PEBS_ENABLE, 1 }, { VPMU_MSR_PERF_METRICS, 0 }, { VPMU_MSR_LBR_TOS, 0 },
	};

	vmm_quiet = true;
	for (unsigned int i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		struct vmm_vcpu *v = &without_records()->vcpu[0];
		uint64_t before, after;

		CHECK(vmm_loop(v, 1), 0);
		CHECK(vmm_get_msr(v, VPMU_MSR_DEBUGCTL, &before), 0);
		if (vmm_wrmsr(v, writes[i].msr, writes[i].value) != EIO)
			FAIL("write %u, MSR %#x", i, writes[i].msr);
		CHECK(vmm_get_msr(v, VPMU_MSR_DEBUGCTL, &after), 0);
		CHECK(after, before);
		vmm_free(v->vm);
	}
	return NULL;
}

static const char *t_cpuid(void)
{
	struct vmm_vcpu *v = &given(1)->vcpu[0], *not = &vmm_new(1, 0)->vcpu[0];
	uint32_t r[4];

	TRY(pmu->intel ? leaves_intel(v) : leaves_amd(v));
	CHECK(vmm_cpuid(v, 0x40000100, r), 0);
	CHECK(r[1], 0x554d5056);
	/* The other one has KVM's. */
	CHECK(vmm_cpuid(not, 0x40000100, r), 0);
	CHECK(r[1] != 0x554d5056, true);
	vmm_free(v->vm);
	vmm_free(not->vm);
	return NULL;
}

static const char *t_asked(void)
{
	struct vpmu_kvm_arch a = { .version = pmu->version + 1 };
	struct vmm *vm = vmm_new(1, 0);

	CHECK(vmm_arch(vm, &a), EOPNOTSUPP);
	CHECK(a.asked, pmu->version + 1);
	CHECK(a.available, pmu->version);
	a = (struct vpmu_kvm_arch){ .n_gp = pmu->n + 1 };
	CHECK(vmm_arch(vm, &a), EOPNOTSUPP);
	a = (struct vpmu_kvm_arch){ .n_fixed = pmu->intel ? 4 : 1 };
	CHECK(vmm_arch(vm, &a), EOPNOTSUPP);
	a = (struct vpmu_kvm_arch){ .capabilities = VPMU_CAP_AMD_SVM };
	CHECK(vmm_arch(vm, &a), EOPNOTSUPP);
	a = (struct vpmu_kvm_arch){ .capabilities = VPMU_CAP_PEBS };
	CHECK(vmm_arch(vm, &a), EOPNOTSUPP);
	a = (struct vpmu_kvm_arch){ .reserved = 1 };
	CHECK(vmm_arch(vm, &a), EINVAL);
	a = (struct vpmu_kvm_arch){ .version = 2, .n_gp = 4 };
	CHECK(vmm_arch(vm, &a), 0);
	CHECK(a.n_gp, 4);
	a = (struct vpmu_kvm_arch){ 0 };
	CHECK(vmm_arch(vm, &a), 0);
	CHECK(a.version, 2);
	CHECK(a.n_gp, 4);
	a = (struct vpmu_kvm_arch){ .n_gp = 6 };
	CHECK(vmm_arch(vm, &a), EBUSY);
	vmm_quiet = true;
	CHECK(vmm_wrmsr(&vm->vcpu[0], CTL(4), 0), EIO);
	vmm_free(vm);
	return NULL;
}

static const char *t_late(void)
{
	struct vmm *ran = vmm_new(1, 0), *none = vmm_new(1, 0), *pv = vmm_new(1, 0), *vm = given(1);
	struct vpmu_kvm_arch a = { 0 };

	CHECK(vmm_loop(&ran->vcpu[0], 10), 0);
	CHECK(vmm_arch(ran, &a), EBUSY);
	CHECK(vmm_decide(none, VPMU_KVM_REFUSE), 0);
	CHECK(vmm_arch(none, &a), EBUSY);
	CHECK(vmm_decide(pv, VPMU_KVM_ALLOW), 0);
	CHECK(vmm_arch(pv, &a), EBUSY);
	CHECK(vmm_decide(vm, VPMU_KVM_ALLOW), EBUSY);
	CHECK(vmm_decide(vm, VPMU_KVM_REFUSE), EBUSY);
	CHECK(vmm_call(&vm->vcpu[0], VPMU_PV_OP_VERSION, 0), -VPMU_PV_ENOSYS);
	vmm_free(ran);
	vmm_free(none);
	vmm_free(pv);
	vmm_free(vm);
	return NULL;
}

static const char *t_filter(void)
{
	const uint64_t instructions = 0xc0;
	struct vmm_vcpu *v = &given(1)->vcpu[0];
	uint64_t before;

	CHECK(vmm_filter(v->vm, KVM_PMU_EVENT_DENY, 1, &instructions), 0);
	TRY(loop(v, 0, INSTRUCTIONS, 1000, 0));
	TRY(loop(v, 1, BRANCHES, 1000, 1000));
	CHECK(vmm_filter(v->vm, KVM_PMU_EVENT_ALLOW, 1, &instructions), 0);
	TRY(loop(v, 0, INSTRUCTIONS, 1000, 2000 + AROUND));
	TRY(loop(v, 1, BRANCHES, 1000, 0));
	CHECK(vmm_filter(v->vm, KVM_PMU_EVENT_ALLOW, 0, NULL), 0);
	TRY(loop(v, 0, INSTRUCTIONS, 1000, 0));
	/* Behind the guest's back, and taken back. */
	CHECK(vmm_filter(v->vm, KVM_PMU_EVENT_DENY, 0, NULL), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 1), 0);
	CHECK(vmm_filter(v->vm, KVM_PMU_EVENT_DENY, 1, &instructions), 0);
	CHECK(vmm_loop(v, 10), 0);
	before = msr(v, CTR(0));
	CHECK(vmm_loop(v, 1000), 0);
	CHECK(msr(v, CTR(0)) - before, 0);
	CHECK(msr(v, LOSS_REASON(0)) & 0xff, 2);
	CHECK(vmm_filter(v->vm, KVM_PMU_EVENT_DENY, 0, NULL), 0);
	TRY(loop(v, 0, INSTRUCTIONS, 1000, 2000 + AROUND));
	vmm_free(v->vm);
	return NULL;
}

static const char *t_host(void)
{
	struct vmm_vcpu *v = &given(1)->vcpu[0];
	uint64_t value;

	CHECK(vmm_loop(v, 1), 0); /* it has its PMU from now on */
	CHECK(vmm_set_msr(v, CTL(2), INSTRUCTIONS), 0);
	CHECK(vmm_set_msr(v, CTR(2), 1000000), 0);
	CHECK(vmm_set_msr(v, STATUS, 2), 0);
	CHECK(vmm_get_msr(v, STATUS, &value), 0);
	CHECK(value, 2);
	CHECK(vmm_set_msr(v, pmu->clear, 2), 0);
	CHECK(vmm_get_msr(v, STATUS, &value), 0);
	CHECK(value, 2);
	CHECK(vmm_set_msr(v, STATUS, 0), 0);
	CHECK(vmm_get_msr(v, STATUS, &value), 0);
	CHECK(value, 0);
	CHECK(vmm_set_msr(v, GLOBAL, 4), 0);
	CHECK(vmm_loop(v, 1000), 0);
	CHECK(vmm_set_msr(v, GLOBAL, 0), 0);
	CHECK(vmm_get_msr(v, CTR(2), &value), 0);
	CHECK(value, 1002001); /* an OUT is completed by the next KVM_RUN */
	/* A register that this PMU lacks takes only a zero. */
	CHECK(vmm_set_msr(v, pmu->lacks, 0), 0);
	CHECK(vmm_set_msr(v, pmu->lacks, 1), EIO);
	vmm_free(v->vm);
	return NULL;
}

/* A VMM that restores a guest writes its MSRs before it enters it for the first time. */
static const char *t_restored(void)
{
	struct vmm_vcpu *v = &given(1)->vcpu[0];
	const uint32_t ctr = pmu->intel ? VPMU_MSR_PMC0 : CTR(0);
	uint64_t value;

	CHECK(vmm_set_msr(v, CTL(1), INSTRUCTIONS), 0);
	CHECK(vmm_set_msr(v, ctr + pmu->step, 1000000), 0);
	if (pmu->intel)
		CHECK(vmm_set_msr(v, GLOBAL, 2), 0);
	CHECK(vmm_loop(v, 1000), 0);
	CHECK(vmm_get_msr(v, CTL(1), &value), 0);
	CHECK(value, INSTRUCTIONS);
	CHECK(vmm_get_msr(v, CTR(1), &value), 0);
	CHECK(value, 1002000); /* as in "host's MSRs", without the OUT before the loop */
	if (pmu->intel)
		CHECK(msr(v, GLOBAL), 2);
	vmm_free(v->vm);
	return NULL;
}

static const char *t_faults(void)
{
	struct vmm_vcpu *v = &given(1)->vcpu[0];
	uint64_t value;

	CHECK(vmm_wrmsr(v, CTL(0), INSTRUCTIONS), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 1), 0);
	CHECK(vmm_rdpmc(v, pmu->n - 1, &value), 0);
	CHECK(value, 0);
	vmm_quiet = true;
	CHECK(vmm_rdpmc(v, pmu->n, &value), EIO);
	vmm_free(v->vm);
	v = &given(1)->vcpu[0];
	CHECK(vmm_rdmsr(v, pmu->none, &value), EIO);
	vmm_free(v->vm);
	return NULL;
}

/* Two VMs on one thread, neither of which counts the other's. */
static const char *t_pool(void)
{
	struct vmm_vcpu *a = &given(1)->vcpu[0], *b = &given(1)->vcpu[0];

	for (unsigned int i = 0; i < 3; i++) {
		struct vmm_vcpu *v = i & 1 ? b : a, *other = i & 1 ? a : b;

		CHECK(vmm_wrmsr(v, GLOBAL, 0), 0);
		CHECK(vmm_wrmsr(v, CTL(0), INSTRUCTIONS), 0);
		CHECK(vmm_wrmsr(v, CTR(0), 0), 0);
		CHECK(vmm_wrmsr(v, GLOBAL, 1), 0);
		CHECK(vmm_loop(v, 1000), 0);
		TRY(loop(other, 1, INSTRUCTIONS, 100000, 200000 + AROUND));
		CHECK(vmm_loop(v, 1000), 0);
		CHECK(vmm_wrmsr(v, GLOBAL, 0), 0);
		CHECK(msr(v, CTR(0)), 4000 + AROUND + 1);
	}
	vmm_free(a->vm);
	vmm_free(b->vm);
	return NULL;
}

/* A machine's RESET: paging is off. */
static const char *t_reset(void)
{
	struct vmm_vcpu *v = &given(1)->vcpu[0];
	struct kvm_sregs saved, s;

	TRY(loop(v, 0, INSTRUCTIONS, 1000, 2000 + AROUND));
	if (ioctl(v->fd, KVM_GET_SREGS, &saved))
		vmm_die("KVM_GET_SREGS");
	s = saved;
	s.cr0 &= ~0x80000000ull;
	s.efer &= ~0x500ull;
	s.cs.l = 0;
	s.cs.db = 1;
	if (ioctl(v->fd, KVM_SET_SREGS, &s))
		vmm_die("KVM_SET_SREGS");
	CHECK(vmm_loop(v, 10), 0);
	if (ioctl(v->fd, KVM_SET_SREGS, &saved))
		vmm_die("KVM_SET_SREGS");
	CHECK(msr(v, CTL(0)), 0);
	CHECK(msr(v, CTR(0)), 0);
	vmm_free(v->vm);
	return NULL;
}

/* All registers of PMUs, of the guest and of the VMM, with random values. */
static const char *t_random(void)
{
	struct vmm_vcpu *v = &given(1)->vcpu[0];
	uint64_t state = 4711, value;

	vmm_quiet = true;
	CHECK(vmm_loop(v, 1), 0);
	for (unsigned int i = 0; i < 30000; i++) {
		uint32_t index;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		index = pmu->random[state >> 60 & 7] + (state >> 50 & 15);
		value = state >> 40 & 1 ? state * state : -(state >> 56);
		if (state >> 41 & 1)
			value = INSTRUCTIONS | (state & 0xff00) | 1 << 20;
		if (state >> 42 & 1)
			(void)vmm_set_msr(v, index, value);
		else
			(void)vmm_get_msr(v, index, &value);
		if (!(i % 50))
			(void)vmm_loop(v, 1000);
	}
	/* And nothing of it is left. */
	for (unsigned int i = 0; i < pmu->n; i++)
		CHECK(vmm_set_msr(v, CTL(i), 0), 0);
	CHECK(vmm_set_msr(v, STATUS, 0), 0);
	TRY(loop(v, 0, INSTRUCTIONS, 1000, 2000 + AROUND));
	vmm_free(v->vm);
	return NULL;
}

/* In mid-count, to another VM with the same memory and registers but RIP. */
static const char *t_moved(void)
{
	struct vmm *from = given(2), *to = given(2), *other = vmm_new(2, 0);
	struct vmm_vcpu *v = &from->vcpu[0], *w = &to->vcpu[0];
	static char state[1 << 16];
	size_t bytes = sizeof(state);

	CHECK(vmm_wrmsr(v, GLOBAL, 0), 0); /* all are on after RESET */
	CHECK(vmm_wrmsr(v, CTL(3), INSTRUCTIONS), 0);
	CHECK(vmm_wrmsr(v, CTR(3), 5), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 8), 0);
	CHECK(vmm_loop(v, 1000), 0);
	CHECK(vmm_save(from, state, &bytes), 0);
	CHECK(vmm_load(to, state, bytes), 0);
	CHECK(vmm_loop(w, 1000), 0);
	CHECK(vmm_wrmsr(w, GLOBAL, 0), 0);
	/* The last OUT before the save is not completed anywhere. */
	CHECK(msr(w, CTR(3)), 5 + 2 + 2000 + 2000 + 1);
	CHECK(msr(w, CTL(3)), INSTRUCTIONS);
	/* The VM that was saved goes on as well. */
	CHECK(vmm_wrmsr(v, GLOBAL, 0), 0);
	CHECK(msr(v, CTR(3)), 5 + 2000 + AROUND);
	/* A damaged state, or one that does not fit, is refused. */
	CHECK(vmm_load(to, state, bytes - 8), EINVAL);
	CHECK(vmm_load(to, state, bytes / 2), EINVAL);
	state[0] ^= 1;
	CHECK(vmm_load(to, state, bytes), EINVAL);
	CHECK(msr(w, CTL(3)), 0);
	state[0] ^= 1;
	CHECK(vmm_load(other, state, bytes) != 0, true);
	TRY(loop(w, 0, INSTRUCTIONS, 1000, 2000 + AROUND));
	vmm_free(from);
	vmm_free(to);
	vmm_free(other);
	return NULL;
}

static const char *t_parameter(void)
{
	struct vmm *vm = vmm_new(1, 0), *no_pmu = vmm_new(1, VMM_NO_PMU), *none = vmm_new(1, 0);
	struct vmm *to = vmm_new(1, 0), *foreign = vmm_new(1, VMM_FOREIGN);
	static char state[1 << 16];
	size_t bytes = sizeof(state);
	uint32_t r[4];

	TRY(loop(&vm->vcpu[0], 0, INSTRUCTIONS, 1000, 2000 + AROUND));
	CHECK(vmm_cpuid(&no_pmu->vcpu[0], 0x40000100, r), 0);
	CHECK(r[1] != 0x554d5056, true);
	CHECK(vmm_decide(none, VPMU_KVM_REFUSE), 0);
	CHECK(vmm_cpuid(&none->vcpu[0], 0x40000100, r), 0);
	CHECK(r[1] != 0x554d5056, true);
	/* A VM that has not run yet takes a state, unless its CPU is another vendor's. */
	CHECK(vmm_save(vm, state, &bytes), 0);
	CHECK(vmm_load(to, state, bytes), 0);
	TRY(loop(&to->vcpu[0], 0, INSTRUCTIONS, 1000, 2000 + AROUND));
	CHECK(vmm_load(foreign, state, bytes), EINVAL);
	CHECK(vmm_cpuid(&foreign->vcpu[0], 0x40000100, r), 0);
	CHECK(r[1] != 0x554d5056, true);
	vmm_free(vm);
	vmm_free(no_pmu);
	vmm_free(none);
	vmm_free(to);
	vmm_free(foreign);
	return NULL;
}

/* Loans: slots, and the classes of the CPU. */

#define SLOTS		(VPMU_MSR_FIXED_CTR0 + 3)
#define TOPDOWN		(1ull << 35 | VPMU_STATUS_METRICS)
#define USER		2ull
#define KERNEL		1ull

/* The number of events, or 0: this host counts no slots. */
static unsigned int open_group(struct vpmu_kvm_lend *l, uint64_t rings, uint32_t flags)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW, .size = sizeof(attr), .config = 0x400, .disabled = 1,
		.exclude_host = !(flags & 1), .exclude_user = !(rings & USER),
		.exclude_kernel = !(rings & KERNEL), .inherit = flags >> 1 & 1,
	};

	for (l->n_events = 0; l->n_events < VPMU_KVM_LEND_MAX; l->n_events++) {
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

static const char *t_topdown(void)
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
	CHECK(vmm_wrmsr(v, VPMU_MSR_PERF_METRICS, 0x0102030405060708), 0);
	CHECK(msr(v, VPMU_MSR_PERF_METRICS), 0x0102030405060708);
	TRY(count_slots(v, USER | KERNEL, (1ull << 48) - 1000, turns));
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

static const struct {
	const char *name;
	const char *(*run)(void);
	bool named, intel;
} cases[] = {
	{ "exact", t_exact, false, false },
	{ "cpuid", t_cpuid, false, false },
	{ "asked", t_asked, false, false },
	{ "late", t_late, false, false },
	{ "filter", t_filter, false, false },
	{ "host's MSRs", t_host, false, false },
	{ "restored", t_restored, false, false },
	{ "faults", t_faults, false, false },
	{ "pool", t_pool, false, false },
	{ "reset", t_reset, false, false },
	{ "INIT", t_init, false, false },
	{ "random", t_random, false, false },
	{ "moved", t_moved, false, false },
	{ "arch=1", t_parameter, true, false },
	{ "Intel's", t_intel, false, true },
	{ "Intel's faults", t_intel_faults, false, true },
	{ "Intel's INIT", t_intel_init, false, true },
	{ "Intel's older versions", t_intel_older, false, true },
	{ "Intel's branch records", t_intel_records, false, true },
	{ "topdown", t_topdown, false, true },
	{ "VMX", t_vmx, false, true },
};

static void run(unsigned int i)
{
	const char *wrong;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(300); /* ten VMs, seconds each on a busy machine */
		wrong = cases[i].run();
		printf("%s %s%s%s\n", wrong ? "not ok" : "ok", cases[i].name, wrong ? ": " : "",
		       wrong ? wrong : "");
		fflush(stdout);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		printf("not ok %s: its process ended with %#x\n", cases[i].name, status);
}

int main(int argc, char **argv)
{
	uint32_t eax = 0, ebx, ecx, edx;

	__cpuid(0, eax, ebx, ecx, edx);
	if (ebx == 0x756e6547) /* "Genu" */
		pmu = &intel;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool wanted = argc == 1 && !cases[i].named && (pmu->intel || !cases[i].intel);

		for (int a = 1; a < argc; a++)
			wanted |= !strcmp(cases[i].name, argv[a]);
		if (wanted)
			run(i);
	}
	return 0;
}
