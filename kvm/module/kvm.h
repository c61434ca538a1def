/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KVM's functions that the module calls. Since 6.18 kernels export them to KVM's own modules
 * only, and some were never exported, so none is linked: each is looked up by its name and
 * becomes a static call. That is a direct one. With CONFIG_X86_KERNEL_IBT an indirect call
 * has to meet an ENDBR64, and the kernel removes it from functions that nobody points to.
 */
#ifndef VPMU_KVM_KVM_H
#define VPMU_KVM_KVM_H

#include <linux/static_call.h>

#include <asm/perf_event.h>

#include "compat.h"

/* Those that no installed header declares, or not in all kernels. */
typedef bool vk_cpuid_fn(struct kvm_vcpu *vcpu, u32 *eax, u32 *ebx, u32 *ecx, u32 *edx,
			 bool exact_only);
typedef int vk_int_fn(struct kvm_vcpu *vcpu);
typedef void vk_void_fn(struct kvm_vcpu *vcpu);
typedef void vk_kick_fn(struct kvm_vcpu *vcpu, bool wait);
typedef void vk_cache_reg_fn(struct kvm_vcpu *vcpu, enum kvm_reg reg);
typedef int vk_any_get_fn(struct kvm_vcpu *vcpu, u32 index, u64 *data, bool host);
typedef int vk_any_set_fn(struct kvm_vcpu *vcpu, u32 index, u64 data, bool host);
typedef bool vk_pmu_knows_fn(struct kvm_vcpu *vcpu, u32 index);
typedef int vk_pmu_msr_fn(struct kvm_vcpu *vcpu, struct msr_data *msr);

/* Found when the module is loaded. */
DECLARE_STATIC_CALL(vk_kvm_emulate_hypercall, vk_int_fn);
DECLARE_STATIC_CALL(vk_kvm_cpuid, vk_cpuid_fn);
DECLARE_STATIC_CALL(vk_kvm_running_vcpu, kvm_get_running_vcpu);
DECLARE_STATIC_CALL(vk_kvm_kick, vk_kick_fn);
DECLARE_STATIC_CALL(vk_kvm_owns_file, file_is_kvm);
DECLARE_STATIC_CALL(vk_kvm_read_guest, kvm_vcpu_read_guest);
DECLARE_STATIC_CALL(vk_kvm_gfn_to_hva, kvm_vcpu_gfn_to_hva);
DECLARE_STATIC_CALL(vk_kvm_mark_page_dirty, kvm_vcpu_mark_page_dirty);
DECLARE_STATIC_CALL(vk_host_pmu, perf_get_x86_pmu_capability);

/* KVM's parameter: can guests have KVM's own PMU at all? */
extern const bool *vk_kvm_enable_pmu;

/* A function whose name and parameters (vk_check_params()) are known. */
struct vk_function {
	const char *name, *params;
	struct static_call_key *key;
	void *trampoline;
};

#define VK_FUNCTION(call, name, params) \
	{ (name), (params), &STATIC_CALL_KEY(call), STATIC_CALL_TRAMP_ADDR(call) }

/**
 * Have these static calls call KVM's functions. Returns NULL, or the name of the first that
 * is not found or has other parameters. May sleep.
 */
const char *vk_find_functions(const struct vk_function *functions, unsigned int n);

/** Find what the module cannot do without. Returns 0, or -EOPNOTSUPP after a pr_err. */
int vk_kvm_init(void);

#endif /* VPMU_KVM_KVM_H */
