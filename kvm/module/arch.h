/* SPDX-License-Identifier: GPL-2.0-only */
/* KVM's functions that only the architectural PMU calls. */
#ifndef VPMU_KVM_ARCH_H
#define VPMU_KVM_ARCH_H

#include "kvm.h"

/* Found when the module is loaded. */
DECLARE_STATIC_CALL(vk_kvm_deliver_pmi, vk_void_fn);
DECLARE_STATIC_CALL(vk_kvm_process_nmi, vk_void_fn);
DECLARE_STATIC_CALL(vk_kvm_pmu_knows, vk_pmu_knows_fn);
DECLARE_STATIC_CALL(vk_kvm_pmu_get, vk_pmu_msr_fn);
DECLARE_STATIC_CALL(vk_kvm_pmu_set, vk_pmu_msr_fn);

/* Found by vk_vendor.functions. AMD's hosts have the first alone. */
DECLARE_STATIC_CALL(vk_kvm_get_cpl, vk_int_fn);
DECLARE_STATIC_CALL(vk_kvm_cache_reg, vk_cache_reg_fn);
DECLARE_STATIC_CALL(vk_kvm_get_any, vk_any_get_fn);
DECLARE_STATIC_CALL(vk_kvm_set_any, vk_any_set_fn);

#endif /* VPMU_KVM_ARCH_H */
