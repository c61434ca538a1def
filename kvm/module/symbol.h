/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses by name. */
#ifndef VPMU_KVM_SYMBOL_H
#define VPMU_KVM_SYMBOL_H

/**
 * The address of what the kernel or KVM exports to any module, or NULL. It stays valid: the
 * module is linked with kvm_put_kvm(), so KVM stays loaded. May sleep.
 */
void *vk_exported(const char *name);

/** Also that of a function which is not exported; not to be called indirectly (kvm.h). */
void *vk_symbol(const char *name);

#endif /* VPMU_KVM_SYMBOL_H */
