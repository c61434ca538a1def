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
 * The architectural PMUs' states follow each other in the order of the vCPUs; each has its
 * size in its header (vpmu/state.h). @state NULL: @bytes only.
 */
static int vk_save_arch(struct vk_vm *vm, u8 *state, size_t room, size_t *bytes)
{
	unsigned int i;
	size_t used;
	int ret = 0;

	*bytes = 0;
	for (i = 0; i < vm->n_vcpus && !ret; i++) {
		if (!vm->vcpu[i])
			continue;
		used = 0;
		ret = vk_arch_save(vm->vcpu[i], state ? state + *bytes : NULL,
				   state ? room - *bytes : 0, &used);
		if (!state)
			ret = 0; /* it is measured */
		*bytes += used;
	}
	return ret;
}

static int vk_save_any(struct vk_vm *vm, void *state, size_t room, size_t *bytes)
{
	if (vm->arch)
		return vk_save_arch(vm, state, room, bytes);
	return vpmu_pv_vm_save(vm->pv, state, room, bytes);
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
	ret = vk_save_any(vm, NULL, 0, bytes);
	if (ret || room < *bytes)
		return ret ?: -ENOSPC;
	*state = vk_fails() ? NULL : kvzalloc(*bytes, GFP_KERNEL_ACCOUNT);
	if (!*state)
		return -ENOMEM;
	return vk_save_any(vm, *state, *bytes, bytes);
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

/* An INIT that came before changes nothing of what is loaded. */
static int vk_load_one(struct vk_vcpu *c, const u8 **state, size_t *bytes, struct vpmu_error *why)
{
	u32 size = 0;
	int ret;

	if (*bytes >= 12)
		memcpy(&size, *state + 8, sizeof(size));
	if (!size || size > *bytes) {
		*why = (struct vpmu_error){ "bytes of a vCPU's state", size, *bytes };
		return -EINVAL;
	}
	WRITE_ONCE(c->init, false);
	ret = vpmu_arch_load(c->arch, *state, size);
	if (ret)
		*why = *vpmu_arch_refused(c->arch);
	*state += size;
	*bytes -= size;
	return ret;
}

/* If one does not fit, those before it have changed, and all are as after RESET. */
static int vk_load_arch(struct vk_vm *vm, const u8 *state, size_t bytes, struct vpmu_error *why)
{
	unsigned int i;
	int ret = 0;

	/* KVM's branch records, if it has some, belong to the old state. */
	for (i = 0; i < vm->n_vcpus; i++)
		if (vm->vcpu[i])
			vm->vcpu[i]->lbr_released = true;
	for (i = 0; i < vm->n_vcpus && !ret; i++)
		if (vm->vcpu[i])
			ret = vk_load_one(vm->vcpu[i], &state, &bytes, why);
	if (!ret && bytes) {
		*why = (struct vpmu_error){ "bytes beyond the state of the last vCPU", bytes, 0 };
		ret = -EINVAL;
	}
	for (i = 0; i < vm->n_vcpus && ret; i++)
		if (vm->vcpu[i])
			vpmu_arch_reset(vm->vcpu[i]->arch, false);
	return ret;
}

static int vk_load_vm(struct kvm *kvm, const void *state, size_t bytes, struct vpmu_error *why)
{
	int idx, ret = vk_arch_give_default(kvm, why);
	struct vk_vm *vm;

	if (ret)
		return ret;
	vm = vk_attach_all(kvm, true, why);
	if (IS_ERR(vm))
		return PTR_ERR(vm);
	if (!mmget_not_zero(kvm->mm))
		return -ESRCH;
	vk_unbind_all(vm);
	idx = srcu_read_lock(&kvm->srcu);
	vk_filter_sync(vm);
	ret = vm->arch ? vk_load_arch(vm, state, bytes, why) :
			 vpmu_pv_vm_load(vm->pv, state, bytes);
	srcu_read_unlock(&kvm->srcu, idx);
	mmput(kvm->mm);
	if (ret && vm->pv)
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
