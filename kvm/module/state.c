// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VM's state is saved, and loaded into another VM. The vCPUs' mutexes, which KVM_RUN
 * takes, keep the VM unchanged meanwhile; a busy vCPU is not waited for. All vCPUs are
 * unbound from their threads first, and bound again when they run.
 *
 * If a page of guest memory has to be brought in, the caller of LOAD waits for it, and
 * can be killed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "vpmu-kvm-module.h"
#include "vpmu_kvm.h"

static void vk_unlock_all(struct kvm *kvm)
{
	vk_unlock_vcpus(kvm, ULONG_MAX);
}

/*
 * Allocate @state for a copy of the state, of @bytes. -ENOSPC if that is more than @room.
 */
static int vk_save_vm(struct kvm *kvm, size_t room, void **state, size_t *bytes,
		      struct vpmu_error *why)
{
	struct vk_vm *vm = vk_attach_all(kvm, false, why);
	int ret;

	if (IS_ERR(vm))
		return PTR_ERR(vm);
	vk_unbind_all(vm);
	ret = vpmu_pv_vm_save(vm->pv, NULL, 0, bytes);
	if (ret || room < *bytes)
		return ret ?: -ENOSPC;
	*state = vk_fails() ? NULL : kvzalloc(*bytes, GFP_KERNEL_ACCOUNT);
	if (!*state)
		return -ENOMEM;
	return vpmu_pv_vm_save(vm->pv, *state, *bytes, bytes);
}

int vk_save(struct kvm *kvm, struct vpmu_kvm_state *io, struct vpmu_error *why)
{
	void *state = NULL;
	size_t bytes = 0;
	int ret = vk_lock_vcpus(kvm, why);

	if (ret)
		return ret;
	ret = vk_save_vm(kvm, io->bytes, &state, &bytes, why);
	vk_unlock_all(kvm);
	if (!ret && copy_to_user(u64_to_user_ptr(io->data), state, bytes))
		ret = -EFAULT;
	io->bytes = bytes;
	kvfree(state);
	return ret;
}

static int vk_load_vm(struct kvm *kvm, const void *state, size_t bytes, struct vpmu_error *why)
{
	struct vk_vm *vm = vk_attach_all(kvm, true, why);
	int idx, ret;

	if (IS_ERR(vm))
		return PTR_ERR(vm);
	if (!mmget_not_zero(kvm->mm))
		return -ESRCH;
	vk_unbind_all(vm);
	idx = srcu_read_lock(&kvm->srcu);
	vk_filter_sync(vm);
	ret = vpmu_pv_vm_load(vm->pv, state, bytes);
	srcu_read_unlock(&kvm->srcu, idx);
	mmput(kvm->mm);
	if (ret)
		*why = *vpmu_pv_vm_refused(vm->pv);
	vk_loaded(vm);
	return ret;
}

int vk_load(struct kvm *kvm, const struct vpmu_kvm_state *io, struct vpmu_error *why)
{
	void *state;
	int ret;

	if (!io->bytes || io->bytes > VPMU_KVM_STATE_MAX) {
		*why = (struct vpmu_error){ .what = "bytes of a state", .asked = io->bytes,
					    .available = VPMU_KVM_STATE_MAX };
		return -EINVAL;
	}
	state = vk_fails() ? ERR_PTR(-ENOMEM) : vmemdup_user(u64_to_user_ptr(io->data), io->bytes);
	if (IS_ERR(state))
		return PTR_ERR(state);
	ret = vk_lock_vcpus(kvm, why);
	if (!ret) {
		ret = vk_load_vm(kvm, state, io->bytes, why);
		vk_unlock_all(kvm);
	}
	kvfree(state);
	if (ret)
		pr_warn_ratelimited("process %d: the state of its guest's PMU is not loaded (%d): "
				    "%s, %llu of %llu\n", kvm->userspace_pid, ret,
				    why->what ?: "memory", why->asked, why->available);
	return ret;
}
