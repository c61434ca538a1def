/* SPDX-License-Identifier: GPL-2.0-only */
/* Do KVM's functions and structures have the types that the module takes them to have? */
#ifndef VPMU_KVM_PARAMS_H
#define VPMU_KVM_PARAMS_H

/**
 * Find what vk_check_params() needs. Without it, kernels that were tried pass its check and
 * others do not. May sleep.
 */
void vk_params_init(void);

/**
 * Compare the parameters of a function of the kernel or of KVM with @params, a letter for
 * each: v a vCPU, k a VM, m a struct msr_data, p another pointer, a an array, i a word of 32
 * bits or less, l one of 64 bits. NULL: the compiler has compared them. Returns 0, or
 * -EPROTO. May sleep.
 * Source: BTF, as Documentation/bpf/btf.rst of the kernel describes it.
 */
int vk_check_params(const char *function, const char *params);

/** The same for the members of a structure. */
int vk_check_members(const char *structure, const char *members);

#endif /* VPMU_KVM_PARAMS_H */
