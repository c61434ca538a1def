// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/vpmu_kvm: a VM's state is saved, and loaded into another one. Who asks has the VM's
 * file, and so may do to it whatever its VMM may. The vCPUs' mutexes, which KVM_RUN holds,
 * keep the VM as it is meanwhile; nobody who can be waited for long is waited for.
 *
 * Guest memory is mapped on a thread of our own, which has the VM's, as whoever asks may
 * be another process.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "vpmu-kvm-module.h"
#include "vpmu_kvm.h"

struct vk_load {
	struct work_struct work;
	struct kvm *kvm;
	struct vk_vm *vm;
	const void *state;
	size_t bytes;
	int ret;
};

static void vk_unlock_vcpus(struct kvm *kvm, unsigned long n)
{
	struct kvm_vcpu *vcpu;
	unsigned long i;

	kvm_for_each_vcpu(i, vcpu, kvm) {
		if (i == n)
			break;
		mutex_unlock(&vcpu->mutex);
	}
	mutex_unlock(&kvm->lock);
}

/* None runs, and none is made. */
static int vk_lock_vcpus(struct kvm *kvm, struct vpmu_error *why)
{
	struct kvm_vcpu *vcpu;
	unsigned long i;

	mutex_lock(&kvm->lock);
	kvm_for_each_vcpu(i, vcpu, kvm) {
		if (mutex_trylock(&vcpu->mutex))
			continue;
		why->what = "the guest runs; stop it first";
		vk_unlock_vcpus(kvm, i);
		return -EBUSY;
	}
	return 0;
}

static void vk_unlock_all(struct kvm *kvm)
{
	vk_unlock_vcpus(kvm, ULONG_MAX);
}

/* A copy of the state in @state, of @bytes, if there is @room for so many. */
static int vk_save_vm(struct kvm *kvm, size_t room, void **state, size_t *bytes,
		      struct vpmu_error *why)
{
	struct vk_vm *vm = vk_attach_all(kvm, false, why);
	int ret;

	if (IS_ERR(vm))
		return PTR_ERR(vm);
	ret = vpmu_pv_vm_save(vm->pv, NULL, 0, bytes);
	if (ret || room < *bytes)
		return ret ?: -ENOSPC;
	*state = vk_fails() ? NULL : kvzalloc(*bytes, GFP_KERNEL_ACCOUNT);
	if (!*state)
		return -ENOMEM;
	return vpmu_pv_vm_save(vm->pv, *state, *bytes, bytes);
}

static int vk_save(struct kvm *kvm, struct vpmu_kvm_state *io, struct vpmu_error *why)
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

static void vk_load_work(struct work_struct *work)
{
	struct vk_load *l = container_of(work, struct vk_load, work);
	int idx;

	kthread_use_mm(l->kvm->mm);
	idx = srcu_read_lock(&l->kvm->srcu);
	l->ret = vpmu_pv_vm_load(l->vm->pv, l->state, l->bytes);
	srcu_read_unlock(&l->kvm->srcu, idx);
	kthread_unuse_mm(l->kvm->mm);
}

static int vk_load_vm(struct kvm *kvm, const void *state, size_t bytes, struct vpmu_error *why)
{
	struct vk_load l = { .kvm = kvm, .state = state, .bytes = bytes };

	l.vm = vk_attach_all(kvm, true, why);
	if (IS_ERR(l.vm))
		return PTR_ERR(l.vm);
	if (!mmget_not_zero(kvm->mm))
		return -ESRCH;
	vk_loading(l.vm);
	INIT_WORK_ONSTACK(&l.work, vk_load_work);
	queue_work(system_unbound_wq, &l.work);
	flush_work(&l.work);
	destroy_work_on_stack(&l.work);
	mmput(kvm->mm);
	if (l.ret)
		*why = *vpmu_pv_vm_refused(l.vm->pv);
	vk_loaded(l.vm);
	return l.ret;
}

static int vk_load(struct kvm *kvm, const struct vpmu_kvm_state *io, struct vpmu_error *why)
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

static int vk_state_of(unsigned int cmd, struct vpmu_kvm_state *io, struct vpmu_error *why)
{
	struct file *file = fget(io->vm);
	int ret = -EINVAL;

	if (!file) {
		why->what = "no such file is open";
		return -EBADF;
	}
	if (!file_is_kvm(file))
		why->what = "this is no file of a VM";
	else if (cmd == VPMU_KVM_SAVE)
		ret = vk_save(file->private_data, io, why);
	else
		ret = vk_load(file->private_data, io, why);
	fput(file);
	return ret;
}

static long vk_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vpmu_error why = { };
	struct vpmu_kvm_state io;
	int ret;

	if (cmd != VPMU_KVM_SAVE && cmd != VPMU_KVM_LOAD)
		return -ENOTTY;
	if (copy_from_user(&io, (void __user *)arg, sizeof(io)))
		return -EFAULT;
	if (io.size != sizeof(io))
		return -EINVAL;
	ret = vk_state_of(cmd, &io, &why);
	io.asked = why.asked;
	io.available = why.available;
	memset(io.why, 0, sizeof(io.why));
	if (ret && why.what)
		strscpy(io.why, why.what, sizeof(io.why));
	if (copy_to_user((void __user *)arg, &io, sizeof(io)) && !ret)
		ret = -EFAULT;
	return ret;
}

static const struct file_operations vk_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = vk_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice vk_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KBUILD_MODNAME,
	.fops = &vk_fops,
	.mode = 0600,
};

int vk_state_init(void)
{
	int ret = misc_register(&vk_device);

	if (ret)
		pr_err("/dev/" KBUILD_MODNAME " cannot be made: %d\n", ret);
	return ret;
}

void vk_state_exit(void)
{
	misc_deregister(&vk_device);
}
