/* SPDX-License-Identifier: GPL-2.0-only */
/* Branch records of Intel's guests, of a legacy format. */
#ifndef VPMU_KVM_LBR_H
#define VPMU_KVM_LBR_H

#include <linux/bits.h>

#include "kvm.h"

struct vk_vcpu;

#define VK_DEBUGCTL_KVM	(BIT_ULL(2) | BIT_ULL(15)) /* bus locks, RTM: no part of it */

/** Is @index one of these registers? */
bool vk_is_lbr(u32 index);

/* vk_vendor's functions of these names. All but the first may sleep. */
bool vk_lbr_is_kvms(const struct vk_vcpu *c, u32 index);
bool vk_lbr_offered(struct kvm_vcpu *vcpu, u64 format);
void vk_lbr_settle(struct vk_vcpu *c);
void vk_lbr_look(struct vk_vcpu *c);
void vk_lbr_release(struct vk_vcpu *c);

/**
 * A guest, or its VMM (@host), accesses register @index. Returns 0; else the guest gets #GP. May
 * sleep, as the next function.
 */
int vk_lbr_read(struct vk_vcpu *c, u32 index, u64 *data, bool host);
int vk_lbr_write(struct vk_vcpu *c, u32 index, u64 data, bool host);

/** Write KVM's DEBUGCTL: @kvms of VK_DEBUGCTL_KVM, and when to record. Returns KVM's error. */
int vk_debugctl_set(struct vk_vcpu *c, u64 kvms, bool host);

#endif /* VPMU_KVM_LBR_H */
