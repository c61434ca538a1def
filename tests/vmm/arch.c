// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The architectural PMU that vpmu_kvm.ko serves, and what a VMM and its guest may do to it:
 * arch [CASE...]. A line for each, "ok CASE" or "not ok CASE: why". A case whose name has a
 * parameter of the module runs only when it is named.
 *
 * Under KVM a WRMSR and the OUT by which a guest comes back do not retire; KVM adds them.
 */
#include "vmm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vpmu-kvm-module.h>
#include <vpmu/msr.h>

#define CTL(i)		(VPMU_MSR_AMD_PERF_CTL0 + 2 * (i))
#define CTR(i)		(VPMU_MSR_AMD_PERF_CTL0 + 2 * (i) + 1)
#define GLOBAL		VPMU_MSR_AMD_GLOBAL_CTRL
#define STATUS		VPMU_MSR_AMD_GLOBAL_STATUS
#define INSTRUCTIONS	0x4300c0ull /* both rings, enabled */
#define BRANCHES	0x4300c2ull
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

static struct vmm *given(unsigned int n_vcpus)
{
	struct vmm *vm = vmm_new(n_vcpus, 0);
	struct vpmu_kvm_arch a = { 0 };
	int ret = vmm_arch(vm, &a);

	if (ret)
		vmm_die("VPMU_KVM_ARCH: %s: %s", strerror(ret), a.why);
	return vm;
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

	for (unsigned int i = 0; i < 6; i++) {
		TRY(loop(v, i, INSTRUCTIONS, 1000 + i, 2000 + 2 * i + AROUND));
		TRY(loop(v, i, BRANCHES, 1000 + i, 1000 + i));
	}
	TRY(loop(v, 0, INSTRUCTIONS, 20000000, 40000000 + AROUND));
	vmm_free(v->vm);
	return NULL;
}

static const char *t_cpuid(void)
{
	struct vmm_vcpu *v = &given(1)->vcpu[0], *not = &vmm_new(1, 0)->vcpu[0];
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
	struct vpmu_kvm_arch a = { .version = 3 };
	struct vmm *vm = vmm_new(1, 0);

	CHECK(vmm_arch(vm, &a), EOPNOTSUPP);
	CHECK(a.asked, 3);
	CHECK(a.available, 2);
	a = (struct vpmu_kvm_arch){ .n_gp = 7 };
	CHECK(vmm_arch(vm, &a), EOPNOTSUPP);
	a = (struct vpmu_kvm_arch){ .n_fixed = 1 };
	CHECK(vmm_arch(vm, &a), EOPNOTSUPP);
	a = (struct vpmu_kvm_arch){ .capabilities = VPMU_CAP_AMD_SVM };
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
	CHECK(vmm_set_msr(v, VPMU_MSR_AMD_GLOBAL_STATUS_CLR, 2), 0);
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
	CHECK(vmm_set_msr(v, 0xc001020c, 0), EIO);
	vmm_free(v->vm);
	return NULL;
}

static const char *t_faults(void)
{
	struct vmm_vcpu *v = &given(1)->vcpu[0];
	uint64_t value;

	CHECK(vmm_wrmsr(v, CTL(0), INSTRUCTIONS), 0);
	CHECK(vmm_wrmsr(v, GLOBAL, 1), 0);
	CHECK(vmm_rdpmc(v, 5, &value), 0);
	CHECK(value, 0);
	vmm_quiet = true;
	CHECK(vmm_rdpmc(v, 6, &value), EIO);
	vmm_free(v->vm);
	v = &given(1)->vcpu[0];
	CHECK(vmm_rdmsr(v, 0xc0011030, &value), EIO); /* IBS */
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
	static const uint32_t first[] = {
		VPMU_MSR_AMD_PERF_CTL0, VPMU_MSR_AMD_GLOBAL_STATUS, VPMU_MSR_K7_EVTSEL0, 0x56504d00,
		0xc0010230, 0xc0010300, 0xc0011030, 0xc000010e,
	};
	struct vmm_vcpu *v = &given(1)->vcpu[0];
	uint64_t state = 4711, value;

	vmm_quiet = true;
	CHECK(vmm_loop(v, 1), 0);
	for (unsigned int i = 0; i < 30000; i++) {
		uint32_t index;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		index = first[state >> 60 & 7] + (state >> 50 & 15);
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
	for (unsigned int i = 0; i < 6; i++)
		CHECK(vmm_set_msr(v, CTL(i), 0), 0);
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
	uint32_t r[4];

	TRY(loop(&vm->vcpu[0], 0, INSTRUCTIONS, 1000, 2000 + AROUND));
	CHECK(vmm_cpuid(&no_pmu->vcpu[0], 0x40000100, r), 0);
	CHECK(r[1] != 0x554d5056, true);
	CHECK(vmm_decide(none, VPMU_KVM_REFUSE), 0);
	CHECK(vmm_cpuid(&none->vcpu[0], 0x40000100, r), 0);
	CHECK(r[1] != 0x554d5056, true);
	vmm_free(vm);
	vmm_free(no_pmu);
	vmm_free(none);
	return NULL;
}

static const struct {
	const char *name;
	const char *(*run)(void);
	bool named;
} cases[] = {
	{ "exact", t_exact, false },
	{ "cpuid", t_cpuid, false },
	{ "asked", t_asked, false },
	{ "late", t_late, false },
	{ "filter", t_filter, false },
	{ "host's MSRs", t_host, false },
	{ "faults", t_faults, false },
	{ "pool", t_pool, false },
	{ "reset", t_reset, false },
	{ "random", t_random, false },
	{ "moved", t_moved, false },
	{ "arch=1", t_parameter, true },
};

static void run(unsigned int i)
{
	const char *wrong;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(120);
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
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool wanted = argc == 1 && !cases[i].named;

		for (int a = 1; a < argc; a++)
			wanted |= !strcmp(cases[i].name, argv[a]);
		if (wanted)
			run(i);
	}
	return 0;
}
