// SPDX-License-Identifier: GPL-2.0-only
/* Looks up what the module calls in KVM, and has the static calls for it. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "kvm.h"
#include "params.h"
#include "symbol.h"

DEFINE_STATIC_CALL_NULL(vk_kvm_emulate_hypercall, vk_int_fn);
DEFINE_STATIC_CALL_NULL(vk_kvm_cpuid, vk_cpuid_fn);
DEFINE_STATIC_CALL_NULL(vk_kvm_running_vcpu, kvm_get_running_vcpu);
DEFINE_STATIC_CALL_NULL(vk_kvm_kick, vk_kick_fn);
DEFINE_STATIC_CALL_NULL(vk_kvm_owns_file, file_is_kvm);
DEFINE_STATIC_CALL_NULL(vk_kvm_read_guest, kvm_vcpu_read_guest);
DEFINE_STATIC_CALL_NULL(vk_kvm_gfn_to_hva, kvm_vcpu_gfn_to_hva);
DEFINE_STATIC_CALL_NULL(vk_kvm_mark_page_dirty, kvm_vcpu_mark_page_dirty);
DEFINE_STATIC_CALL_NULL(vk_host_pmu, perf_get_x86_pmu_capability);

const bool *vk_kvm_enable_pmu;

/* The compiler has checked those that a header declares. */
static const struct vk_function vk_functions[] = {
	VK_FUNCTION(vk_kvm_emulate_hypercall, "kvm_emulate_hypercall", "v"),
	VK_FUNCTION(vk_kvm_cpuid, "kvm_cpuid", "vppppi"),
	VK_FUNCTION(vk_kvm_running_vcpu, "kvm_get_running_vcpu", NULL),
	VK_FUNCTION(vk_kvm_kick, VK_KICK, VK_KICK_PARAMS),
	VK_FUNCTION(vk_kvm_owns_file, "file_is_kvm", NULL),
	VK_FUNCTION(vk_kvm_read_guest, "kvm_vcpu_read_guest", NULL),
	VK_FUNCTION(vk_kvm_gfn_to_hva, "kvm_vcpu_gfn_to_hva", NULL),
	VK_FUNCTION(vk_kvm_mark_page_dirty, "kvm_vcpu_mark_page_dirty", NULL),
	VK_FUNCTION(vk_host_pmu, "perf_get_x86_pmu_capability", NULL),
};

const char *vk_find_functions(const struct vk_function *functions, unsigned int n)
{
	const struct vk_function *f;
	void *at;

	for (f = functions; f < functions + n; f++) {
		at = vk_symbol(f->name);
		if (!at || vk_check_params(f->name, f->params))
			return f->name;
		__static_call_update(f->key, f->trampoline, at);
	}
	return NULL;
}

int vk_kvm_init(void)
{
	const char *missing;

	vk_params_init();
	missing = vk_find_functions(vk_functions, ARRAY_SIZE(vk_functions));
	vk_kvm_enable_pmu = vk_exported("enable_pmu");
	if (!missing && !vk_kvm_enable_pmu)
		missing = "enable_pmu";
	if (!missing && VK_FILTER_IS_PRIVATE &&
	    vk_check_members("kvm_x86_pmu_event_filter", VK_FILTER_MEMBERS))
		missing = "struct kvm_x86_pmu_event_filter";
	if (!missing)
		return 0;
	pr_err("this kernel's KVM has no %s as the module knows it: docs/KVM-HOST.md names the "
	       "kernels that were tried\n", missing);
	return -EOPNOTSUPP;
}
