// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The architectural PMU that vpmu_kvm.ko serves, and what a VMM and its guest may do to it:
 * arch [CASE...]. A line for each, "ok CASE" or "not ok CASE: why". A case whose name has a
 * parameter of the module runs only when it is named.
 *
 * Under KVM a WRMSR and the OUT by which a guest comes back do not retire; KVM adds them.
 */
#include "arch.h"

#include <cpuid.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct pmu amd = {
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
const struct pmu *pmu = &amd;

struct vmm *given_of(unsigned int n_vcpus, uint64_t capabilities)
{
	struct vmm *vm = vmm_new(n_vcpus, 0);
	struct vpmu_kvm_arch a = { .capabilities = capabilities };
	int ret = vmm_arch(vm, &a);

	if (ret)
		vmm_die("VPMU_KVM_ARCH: %s: %s", strerror(ret), a.why);
	return vm;
}

struct vmm *given(unsigned int n_vcpus)
{
	return given_of(n_vcpus, 0);
}

uint64_t msr(struct vmm_vcpu *v, uint32_t index)
{
	uint64_t value;

	return vmm_rdmsr(v, index, &value) ? ~0ull : value;
}

const char *loop(struct vmm_vcpu *v, unsigned int i, uint64_t select, uint64_t turns,
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
	a = (struct vpmu_kvm_arch){ .n_fixed = pmu->intel ? 5 : 1 };
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
	{ "lost branch records", t_intel_lost_records, false, true },
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
