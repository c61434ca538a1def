// SPDX-License-Identifier: GPL-2.0-only
/* The architectural PMU of a vCPU: what is AMD's. */
#include <linux/perf_event.h>

#include "arch.h"
#include "compat.h"
#include "vpmu_kvm.h"

/* kvm_amd.ko has it. KVM knows CR4 without asking. */
static const struct vk_function vk_amd_functions[] = {
	VK_FUNCTION(vk_kvm_get_cpl, "svm_get_cpl", "v"),
};

static bool vk_amd_is(u32 ebx)
{
	return ebx == 0x68747541 || ebx == 0x6f677948; /* "Auth", "Hygo" */
}

/* PerfMonV2 needs no more of the host than its counters. */
static const char *vk_amd_find_host(const struct x86_pmu_capability *host, struct vpmu_model *m)
{
	m->version_most = 2;
	return host->num_counters_gp < 4 ? "this host's CPUs have fewer than four counters" : NULL;
}

/*
 * A guest that counts on more counters than the CPU has would fault: RDPMC checks the
 * number before it exits. So there are only four unless the CPU has all six.
 */
static void vk_amd_most(struct vk_arch *most, const struct x86_pmu_capability *host,
			const struct vpmu_model *m)
{
	bool ext = host->num_counters_gp >= 6 && m->capabilities & VPMU_CAP_AMD_EXT_CORE;

	most->version = ext ? 2 : 1;
	most->capabilities = ext ? VPMU_CAP_AMD_EXT_CORE : 0;
	most->n_gp = ext ? min(6, (int)m->n_gp) : 4;
}

/* A VMM restores the status, and has no need to clear bits of it. */
static enum vpmu_result vk_amd_host_wrmsr(struct vk_vcpu *c, u32 index, u64 value)
{
	switch (index) {
	case VPMU_MSR_AMD_GLOBAL_STATUS:
		return vpmu_arch_restore_status(c->arch, value);
	case VPMU_MSR_AMD_GLOBAL_STATUS_CLR:
	case VPMU_MSR_AMD_GLOBAL_STATUS_SET:
		return VPMU_HANDLED;
	default:
		return vpmu_arch_wrmsr(c->arch, index, value);
	}
}

/* KVM's guests have the second ones alone if their CPU has no PerfCtrExtCore. */
static const struct vk_msrs vk_amd_msrs[] = {
	{ VPMU_MSR_AMD_PERF_CTL0, 12 }, { VPMU_MSR_K7_EVTSEL0, 8 },
	{ VPMU_MSR_AMD_GLOBAL_STATUS, 1 }, { },
};

static u64 vk_amd_guest_value(const struct vk_vcpu *c, const struct msr_data *msr)
{
	return msr->data;
}

#define CPUID_SVM	BIT(2) /* leaf 80000001H, ECX */

/*
 * Perf cannot tell a guest from its guests, which GuestOnly and HostOnly ask for. Where
 * there is no SVM a guest has no use for them.
 */
static void vk_amd_cpuid(const struct vk_arch *a, u32 leaf, struct vpmu_cpuid *regs)
{
	switch (leaf) {
	case 0x80000000:
		if (a->version >= 2)
			regs->eax = max(regs->eax, 0x80000022u);
		break;
	case 0x80000001:
		regs->ecx &= ~CPUID_SVM;
		break;
	case 0x8000000a:
		*regs = (struct vpmu_cpuid){ };
		break;
	}
}

const struct vk_vendor vk_amd = {
	.functions = vk_amd_functions,
	.n_functions = ARRAY_SIZE(vk_amd_functions),
	.is = vk_amd_is,
	.find_host = vk_amd_find_host,
	.most = vk_amd_most,
	.host_wrmsr = vk_amd_host_wrmsr,
	.msrs = vk_amd_msrs,
	.global_ctrl = VPMU_MSR_AMD_GLOBAL_CTRL,
	.guest_value = vk_amd_guest_value,
	.cpuid = vk_amd_cpuid,
};
