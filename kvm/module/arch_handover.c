// SPDX-License-Identifier: GPL-2.0-only
/*
 * Until a vCPU has its architectural PMU, KVM's own answers its VMM, as when a snapshot is
 * restored. What the VMM has written there goes over to ours, and is cleared in KVM's, which
 * would count beside ours otherwise: it would take counters of the host, and its interrupts
 * would be the guest's.
 */
#include <linux/module.h>

#include "arch.h"
#include "vpmu_kvm.h"

static bool vk_own_read(struct kvm_vcpu *vcpu, u32 index, u64 *value)
{
	struct msr_data msr = { .index = index, .host_initiated = true };

	if (!static_call(vk_kvm_pmu_knows)(vcpu, index) || static_call(vk_kvm_pmu_get)(vcpu, &msr))
		return false;
	*value = msr.data;
	return true;
}

static void vk_own_add(struct vk_own *own, u32 index, u64 value)
{
	if (WARN_ON_ONCE(own->n == ARRAY_SIZE(own->msr)))
		return;
	own->msr[own->n].index = index;
	own->msr[own->n++].value = value;
}

/*
 * GLOBAL_CTRL is none of those that show that a VMM has restored something: KVM's value after
 * RESET is not 0.
 */
void vk_own_find(struct kvm_vcpu *vcpu, const struct vk_vendor *vendor, struct vk_own *own)
{
	const struct vk_msrs *r;
	u64 value;
	u32 i;

	own->n = 0;
	for (r = vendor->msrs; r->n; r++)
		for (i = 0; i < r->n; i++)
			if (vk_own_read(vcpu, r->first + i, &value) && value)
				vk_own_add(own, r->first + i, value);
	if (own->n && vk_own_read(vcpu, vendor->global_ctrl, &value))
		vk_own_add(own, vendor->global_ctrl, value);
}

void vk_own_clear(struct kvm_vcpu *vcpu, const struct vk_own *own)
{
	struct msr_data msr = { .host_initiated = true };
	unsigned int i;

	for (i = 0; i < own->n; i++) {
		msr.index = own->msr[i].index;
		(void)static_call(vk_kvm_pmu_set)(vcpu, &msr);
	}
}
