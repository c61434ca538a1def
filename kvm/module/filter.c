// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VMM limits its guest: the module obeys KVM_SET_PMU_EVENT_FILTER and
 * KVM_CAP_PMU_CAPABILITY as KVM's own PMU does. KVM does not report a new filter, but
 * requests KVM_REQ_PMU of each vCPU; so each call and each service compares the filter
 * with the one that it saw last.
 */
#include <linux/string.h>

#include "compat.h"
#include "kvm.h"
#include "vpmu_kvm.h"

bool vk_vmm_declines(const struct kvm *kvm)
{
	/* With enable_pmu=0 every VM looks like this, although no VMM asked for it. */
	return *vk_kvm_enable_pmu && !kvm->arch.enable_pmu;
}

static bool vk_filter_equal(const struct vpmu_filter *ours, const vk_kvm_filter *kvms)
{
	if (!kvms)
		return ours->action == VPMU_FILTER_DENY && !ours->n_events &&
		       !ours->fixed_bitmap;
	return ours->action == kvms->action && ours->n_events == kvms->nevents &&
	       ours->fixed_bitmap == kvms->fixed_counter_bitmap &&
	       ours->flags == vk_filter_flags(kvms) &&
	       !memcmp(ours->events, kvms->events, kvms->nevents * sizeof(u64));
}

/* Under vk_vm.lock. A filter of KVM's that does not fit into ours allows nothing. */
static void vk_filter_copy(struct vk_vm *vm, const vk_kvm_filter *kvms)
{
	struct vpmu_filter *ours = &vm->filter;

	lockdep_assert_held(&vm->lock);
	ours->action = kvms ? kvms->action : VPMU_FILTER_DENY;
	ours->fixed_bitmap = kvms ? kvms->fixed_counter_bitmap : 0;
	ours->flags = kvms ? vk_filter_flags(kvms) : 0;
	ours->n_events = kvms ? kvms->nevents : 0;
	if (ours->action > VPMU_FILTER_DENY || ours->n_events > VPMU_FILTER_EVENTS_MAX) {
		ours->action = VPMU_FILTER_ALLOW;
		ours->fixed_bitmap = 0;
		ours->n_events = 0;
	}
	if (kvms)
		memcpy(vm->filter_events, kvms->events, ours->n_events * sizeof(u64));
}

void vk_filter_init(struct vk_vm *vm)
{
	vm->filter.size = sizeof(vm->filter);
	vm->filter.events = vm->filter_events;
	mutex_lock(&vm->lock);
	vk_filter_copy(vm, NULL);
	mutex_unlock(&vm->lock);
}

bool vk_filter_due(const struct vk_vm *vm)
{
	return rcu_access_pointer(vm->kvm->arch.pmu_event_filter) != READ_ONCE(vm->filter_seen);
}

unsigned int vk_filter_sync(struct vk_vm *vm)
{
	const vk_kvm_filter *kvms = srcu_dereference(vm->kvm->arch.pmu_event_filter,
						     &vm->kvm->srcu);

	/* The most frequent case: the VM has no filter and had none. */
	if (!kvms && !READ_ONCE(vm->filter_seen))
		return READ_ONCE(vm->filter_changes);
	mutex_lock(&vm->lock);
	if (!vk_filter_equal(&vm->filter, kvms)) {
		vk_filter_copy(vm, kvms);
		WRITE_ONCE(vm->filter_changes, vm->filter_changes + 1);
	}
	WRITE_ONCE(vm->filter_seen, kvms);
	mutex_unlock(&vm->lock);
	return READ_ONCE(vm->filter_changes);
}
