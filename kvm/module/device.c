// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/vpmu_kvm: decides which VMs have a PMU, and saves and loads its state. The caller
 * has the VM's file open, so it may do to the VM whatever its VMM may.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/uaccess.h>

#include "kvm.h"
#include "vpmu-kvm-module.h"
#include "vpmu_kvm.h"

/* Arguments of an ioctl, and its answer. Both begin with size and vm. */
union vk_io {
	struct vpmu_kvm_state state;
	struct vpmu_kvm_arch arch;
	struct vpmu_kvm_lend lend;
};

static int vk_do(unsigned int cmd, struct kvm *kvm, union vk_io *io, struct vpmu_error *why)
{
	switch (cmd) {
	case VPMU_KVM_SAVE:
		return vk_save(kvm, &io->state, why);
	case VPMU_KVM_LOAD:
		return vk_load(kvm, &io->state, why);
	case VPMU_KVM_ALLOW:
		return vk_decide(kvm, true, why);
	case VPMU_KVM_REFUSE:
		return vk_decide(kvm, false, why);
	case VPMU_KVM_ARCH:
		return io->arch.reserved ? -EINVAL : vk_arch_decide(kvm, &io->arch, why);
	case VPMU_KVM_LEND:
		return io->lend.reserved ? -EINVAL : vk_lend(kvm, &io->lend, why);
	default:
		return -ENOTTY;
	}
}

static int vk_do_file(unsigned int cmd, union vk_io *io, struct vpmu_error *why)
{
	struct file *file = fget(io->state.vm);
	int ret = -EINVAL;

	if (!file) {
		why->what = "no such file is open";
		return -EBADF;
	}
	if (!static_call(vk_kvm_owns_file)(file))
		why->what = "this is no file of a VM";
	else
		ret = vk_do(cmd, file->private_data, io, why);
	fput(file);
	return ret;
}

static void vk_say_why(const struct vpmu_error *why, bool failed, u64 *asked, u64 *available,
		       char *text, size_t size)
{
	*asked = why->asked;
	*available = why->available;
	memset(text, 0, size);
	if (failed && why->what)
		strscpy(text, why->what, size);
}

static size_t vk_io_size(unsigned int cmd)
{
	switch (cmd) {
	case VPMU_KVM_ARCH:
		return sizeof(struct vpmu_kvm_arch);
	case VPMU_KVM_LEND:
		return sizeof(struct vpmu_kvm_lend);
	default:
		return sizeof(struct vpmu_kvm_state);
	}
}

static long vk_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	size_t size = vk_io_size(cmd);
	struct vpmu_error why = { };
	union vk_io io;
	int ret;

	if (_IOC_TYPE(cmd) != 'V' || _IOC_SIZE(cmd) != size)
		return -ENOTTY;
	if (copy_from_user(&io, (void __user *)arg, size))
		return -EFAULT;
	if (io.state.size != size)
		return -EINVAL;
	ret = vk_do_file(cmd, &io, &why);
	if (cmd == VPMU_KVM_ARCH)
		vk_say_why(&why, ret, &io.arch.asked, &io.arch.available, io.arch.why,
			   sizeof(io.arch.why));
	else if (cmd == VPMU_KVM_LEND)
		vk_say_why(&why, ret, &io.lend.asked, &io.lend.available, io.lend.why,
			   sizeof(io.lend.why));
	else
		vk_say_why(&why, ret, &io.state.asked, &io.state.available, io.state.why,
			   sizeof(io.state.why));
	if (copy_to_user((void __user *)arg, &io, size) && !ret)
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

int vk_device_init(void)
{
	int ret = misc_register(&vk_device);

	if (ret)
		pr_err("/dev/" KBUILD_MODNAME " cannot be made: %d\n", ret);
	return ret;
}

void vk_device_exit(void)
{
	misc_deregister(&vk_device);
}
