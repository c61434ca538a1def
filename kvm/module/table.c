// SPDX-License-Identifier: GPL-2.0-only
/* The table of VMs: which of them, and which of their vCPUs, the module knows. */
#include <linux/spinlock.h>

#include "vpmu_kvm.h"

DEFINE_HASHTABLE(vk_vms, 6);
DEFINE_SPINLOCK(vk_vms_lock);

struct vk_vm *vk_vm_find(const struct kvm *kvm)
{
	struct vk_vm *vm;

	hash_for_each_possible_rcu(vk_vms, vm, node, (unsigned long)kvm)
		if (vm->kvm == kvm)
			return vm;
	return NULL;
}

struct vk_vcpu *vk_find_vcpu(struct kvm_vcpu *vcpu)
{
	struct vk_vm *vm = vk_vm_find(vcpu->kvm);

	if (!vm || vcpu->vcpu_idx >= vm->n_vcpus)
		return NULL;
	return smp_load_acquire(&vm->vcpu[vcpu->vcpu_idx]);
}

struct vk_vcpu *vk_arch_find(struct kvm_vcpu *vcpu)
{
	struct vk_vcpu *c;

	rcu_read_lock_sched_notrace();
	c = vk_find_vcpu(vcpu);
	rcu_read_unlock_sched_notrace();
	return c && c->arch ? c : NULL;
}

struct vk_vcpu *vk_find(struct kvm_vcpu *vcpu)
{
	struct vk_vcpu *c;

	rcu_read_lock();
	c = vk_find_vcpu(vcpu);
	rcu_read_unlock();
	return c;
}

struct vk_vm *vk_vm_of(const struct kvm *kvm)
{
	struct vk_vm *vm;

	rcu_read_lock();
	vm = vk_vm_find(kvm);
	rcu_read_unlock();
	return vm;
}
