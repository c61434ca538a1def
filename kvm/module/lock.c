// SPDX-License-Identifier: GPL-2.0-only
/* A VM stands still while all its vCPUs are locked. */
#include "vpmu_kvm.h"

/*
 * Lockdep tracks 48 locks per task, and a VM has up to thousands of vCPUs. To lockdep the
 * first vCPU's mutex stands for all. They are only tried, never waited for, so they need
 * no order.
 */
void vk_unlock_vcpus(struct kvm *kvm, unsigned long n)
{
	struct kvm_vcpu *vcpu;
	unsigned long i;

	kvm_for_each_vcpu(i, vcpu, kvm) {
		if (i == n)
			break;
		if (i)
			mutex_acquire(&vcpu->mutex.dep_map, 0, 1, _THIS_IP_);
		mutex_unlock(&vcpu->mutex);
	}
	mutex_unlock(&kvm->lock);
}

int vk_lock_vcpus(struct kvm *kvm, struct vpmu_error *why)
{
	struct kvm_vcpu *vcpu;
	unsigned long i;

	if (mutex_lock_killable(&kvm->lock))
		return -EINTR;
	kvm_for_each_vcpu(i, vcpu, kvm) {
		if (!mutex_trylock(&vcpu->mutex)) {
			why->what = "the guest runs; stop it first";
			vk_unlock_vcpus(kvm, i);
			return -EBUSY;
		}
		if (i)
			mutex_release(&vcpu->mutex.dep_map, _THIS_IP_);
	}
	return 0;
}
