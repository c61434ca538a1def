// SPDX-License-Identifier: GPL-2.0-only
/*
 * The architectural PMU of a vCPU: what is Intel's. Of PERF_CAPABILITIES it offers writes of
 * whole counters, and branch records; topdown metrics come with what is lent (loan.c). PEBS
 * cannot be had from perf by a module, and is not enumerated.
 *
 * Branch records are in lbr.c.
 *
 * KVM answers two MSRs before it asks its PMU, so these are taken from it here:
 *
 *	IA32_PERF_CAPABILITIES  The guest reads ours. Its VMM goes on to write KVM's.
 *	IA32_DEBUGCTL           Bits 2 (bus locks) and 15 (RTM) are KVM's, all others ours. KVM
 *	                        is told of bits 0 and 11 as arch_lbr.c of the library has them.
 */
#include <linux/module.h>
#include <linux/perf_event.h>

#include "arch.h"
#include "compat.h"
#include "hook.h"
#include "lbr.h"
#include "loan.h"
#include "vpmu_kvm.h"

DEFINE_STATIC_CALL_NULL(vk_kvm_get_any, vk_any_get_fn);
DEFINE_STATIC_CALL_NULL(vk_kvm_set_any, vk_any_set_fn);

/* kvm_intel.ko has the first two, which is there when a VM is. */
static const struct vk_function vk_intel_functions[] = {
	VK_FUNCTION(vk_kvm_get_cpl, "vmx_get_cpl", "v"),
	VK_FUNCTION(vk_kvm_cache_reg, "vmx_cache_reg", "vi"),
	VK_FUNCTION(vk_kvm_get_any, VK_GET_MSR, "vipi"),
	VK_FUNCTION(vk_kvm_set_any, VK_SET_MSR, "vili"),
};

static bool vk_intel_is(u32 ebx)
{
	return ebx == 0x756e6547; /* "Genu" */
}

/* The host's records have the format that its CPU says, whatever its model. */
static const char *vk_intel_find_host(const struct x86_pmu_capability *host,
				      struct vpmu_model *m)
{
	u32 caps = 0, high;

	if (boot_cpu_has(X86_FEATURE_PDCM))
		(void)rdmsr_safe(VPMU_MSR_PERF_CAPABILITIES, &caps, &high);
	m->capabilities = (m->capabilities & ~VPMU_CAP_LBR) | (caps & VPMU_CAP_LBR);
	return host->version < 2 ?
		"this host's CPUs have architectural perfmon of version 1, or none" : NULL;
}

/*
 * Version 6 has selectors that today's perf does not take. lbr.c knows branch records with a
 * filter, but not the architectural ones.
 */
static void vk_intel_most(struct vk_arch *most, const struct x86_pmu_capability *host,
			  const struct vpmu_model *m)
{
	u64 format = m->capabilities & VPMU_CAP_LBR;

	most->version = min(5, (int)m->version);
	most->capabilities = m->capabilities & VPMU_CAP_FULL_WIDTH;
	if (format >= VPMU_CAP_LBR_FLAGS && format != VPMU_CAP_LBR_ARCH)
		most->capabilities |= format;
	most->n_gp = min(host->num_counters_gp, (int)m->n_gp);
	most->n_fixed = min3(host->num_counters_fixed, (int)m->n_fixed,
			     VK_FIXED_SLOTS + !!m->topdown);
}

static bool vk_is_perfctr(const struct vk_vcpu *c, u32 index)
{
	return index - VPMU_MSR_PMC0 < c->vm->arch->n_gp &&
	       c->vm->arch->capabilities & VPMU_CAP_FULL_WIDTH;
}

/*
 * A VMM restores whole counters by their old names, and the status by the name that is
 * read-only for guests. It has no need to clear bits of the status.
 */
static enum vpmu_result vk_intel_host_wrmsr(struct vk_vcpu *c, u32 index, u64 value)
{
	switch (index) {
	case VPMU_MSR_GLOBAL_STATUS:
		return vpmu_arch_restore_status(c->arch, value);
	case VPMU_MSR_GLOBAL_OVF_CTRL:
	case VPMU_MSR_GLOBAL_STATUS_SET:
		return VPMU_HANDLED;
	default:
		if (vk_is_perfctr(c, index))
			index += VPMU_MSR_A_PMC0 - VPMU_MSR_PMC0;
		return vpmu_arch_wrmsr(c->arch, index, value);
	}
}

static const struct vk_msrs vk_intel_msrs[] = {
	{ VPMU_MSR_PERFEVTSEL0, 18 }, { VPMU_MSR_PMC0, 18 },
	{ VPMU_MSR_FIXED_CTR_CTRL, 1 }, { VPMU_MSR_FIXED_CTR0, 3 },
	{ VPMU_MSR_GLOBAL_STATUS, 1 }, { },
};

/*
 * KVM loads GLOBAL_CTRL at entries to a guest's guest and at its exits, from fields that it
 * has checked against its own number of counters; it warns if it is refused.
 */
static u64 vk_intel_guest_value(const struct vk_vcpu *c, const struct msr_data *msr)
{
	const struct vk_arch *a = c->vm->arch;
	u64 known = (BIT_ULL(a->n_gp) - 1) | (BIT_ULL(a->n_fixed) - 1) << 32;

	if (a->n_fixed > VK_FIXED_SLOTS)
		known |= VPMU_STATUS_METRICS;
	if (msr->index != VPMU_MSR_GLOBAL_CTRL || !(c->vcpu->arch.cr4 & X86_CR4_VMXE))
		return msr->data;
	return msr->data & known;
}

static void vk_intel_cpuid(const struct vk_arch *a, u32 leaf, struct vpmu_cpuid *regs)
{
	if (leaf == 0)
		regs->eax = max(regs->eax, 0xau);
}

/* In place of KVM's functions. */

static int vk_debugctl_read(struct vk_vcpu *c, u64 *data, bool host)
{
	struct msr_data msr = { .index = VPMU_MSR_DEBUGCTL, .host_initiated = host };
	int ret = static_call(vk_kvm_get_any)(c->vcpu, msr.index, data, host);

	if (ret || vk_arch_rdmsr(c, &msr))
		return 1;
	*data = (*data & VK_DEBUGCTL_KVM) | msr.data;
	return 0;
}

static int vk_debugctl_write(struct vk_vcpu *c, u64 data, bool host)
{
	struct msr_data old = { .index = VPMU_MSR_DEBUGCTL, .host_initiated = host };
	struct msr_data msr = old;

	msr.data = data & ~VK_DEBUGCTL_KVM;
	if (vk_arch_rdmsr(c, &old) || vk_arch_wrmsr(c, &msr))
		return 1;
	if (!vk_debugctl_set(c, data & VK_DEBUGCTL_KVM, host))
		return 0;
	(void)vk_arch_wrmsr(c, &old);
	return 1;
}

static int vk_get_msr(struct kvm_vcpu *vcpu, u32 index, u64 *data, bool host)
{
	struct vk_vcpu *c = vk_arch_find(vcpu);
	struct msr_data msr = { .index = index };
	int ret;

	if (index == VPMU_MSR_DEBUGCTL)
		return vk_debugctl_read(c, data, host);
	if (vk_is_lbr(index))
		return vk_lbr_read(c, index, data, host);
	ret = vk_arch_rdmsr(c, &msr);
	*data = msr.data;
	return ret;
}

static int vk_set_msr(struct kvm_vcpu *vcpu, u32 index, u64 data, bool host)
{
	struct vk_vcpu *c = vk_arch_find(vcpu);
	struct msr_data msr = { .index = index, .data = data };

	if (index == VPMU_MSR_DEBUGCTL)
		return vk_debugctl_write(c, data, host);
	if (vk_is_lbr(index))
		return vk_lbr_write(c, index, data, host);
	return vk_arch_wrmsr(c, &msr);
}

static bool vk_is_ours(struct pt_regs *regs, unsigned long parent)
{
	u32 index = regs->si;
	bool host = (u8)regs->cx, lbr = vk_is_lbr(index);
	const struct vk_vcpu *c;

	if (!lbr && index != VPMU_MSR_DEBUGCTL && (index != VPMU_MSR_PERF_CAPABILITIES || host))
		return false;
	c = within_module(parent, THIS_MODULE) ? NULL : vk_arch_find((struct kvm_vcpu *)regs->di);
	return c && (!lbr || c->has_lbr);
}

static void notrace vk_on_get(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
			      struct ftrace_regs *fregs)
{
	struct pt_regs *regs = vk_regs(fregs);

	if (vk_is_ours(regs, parent))
		regs->ip = (unsigned long)vk_get_msr;
}

static void notrace vk_on_set(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
			      struct ftrace_regs *fregs)
{
	struct pt_regs *regs = vk_regs(fregs);

	if (vk_is_ours(regs, parent))
		regs->ip = (unsigned long)vk_set_msr;
}

static struct vk_hook vk_intel_hooks[] = {
	VK_REDIRECT(VK_GET_MSR, "vipi", vk_on_get),
	VK_REDIRECT(VK_SET_MSR, "vili", vk_on_set),
};

const struct vk_vendor vk_intel = {
	.functions = vk_intel_functions,
	.n_functions = ARRAY_SIZE(vk_intel_functions),
	.hooks = vk_intel_hooks,
	.n_hooks = ARRAY_SIZE(vk_intel_hooks),
	.is = vk_intel_is,
	.find_host = vk_intel_find_host,
	.most = vk_intel_most,
	.host_wrmsr = vk_intel_host_wrmsr,
	.has_lbr = vk_lbr_offered,
	.settle_lbr = vk_lbr_settle,
	.release_lbr = vk_lbr_release,
	.look_lbr = vk_lbr_look,
	.is_kvms = vk_lbr_is_kvms,
	.msrs = vk_intel_msrs,
	.global_ctrl = VPMU_MSR_GLOBAL_CTRL,
	.guest_value = vk_intel_guest_value,
	.cpuid = vk_intel_cpuid,
};
