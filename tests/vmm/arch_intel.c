// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Only Intel's architectural PMU has these: fixed counters, DEBUGCTL, a guest's own VMX. */
#include <errno.h>
#include <sys/ioctl.h>

#include "arch.h"

/* The CPU may have branch records, which these do not get. */
static struct vmm *without_records(void)
{
	return given_of(1, VPMU_CAP_FULL_WIDTH);
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
const char *t_intel(void)
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
const char *t_intel_init(void)
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

/* A VMM restores the status of versions that cannot set its bits themselves. */
const char *t_intel_older(void)
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
const char *t_vmx(void)
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
const char *t_intel_faults(void)
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
