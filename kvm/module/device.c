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

#include "vpmu-kvm-module.h"
#include "vpmu_kvm.h"

static int vk_do(unsigned int cmd, struct kvm *kvm, struct vpmu_kvm_state *io,
		 struct vpmu_error *why)
{
	switch (cmd) {
	case VPMU_KVM_SAVE:
		return vk_save(kvm, io, why);
	case VPMU_KVM_LOAD:
		return vk_load(kvm, io, why);
	case VPMU_KVM_ALLOW:
		return vk_decide(kvm, true, why);
	case VPMU_KVM_REFUSE:
		return vk_decide(kvm, false, why);
	default:
		return -ENOTTY;
	}
}

static int vk_do_file(unsigned int cmd, struct vpmu_kvm_state *io, struct vpmu_error *why)
{
	struct file *file = fget(io->vm);
	int ret = -EINVAL;

	if (!file) {
		why->what = "no such file is open";
		return -EBADF;
	}
	if (!file_is_kvm(file))
		why->what = "this is no file of a VM";
	else
		ret = vk_do(cmd, file->private_data, io, why);
	fput(file);
	return ret;
}

static long vk_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vpmu_error why = { };
	struct vpmu_kvm_state io;
	int ret;

	if (_IOC_TYPE(cmd) != 'V' || _IOC_SIZE(cmd) != sizeof(io))
		return -ENOTTY;
	if (copy_from_user(&io, (void __user *)arg, sizeof(io)))
		return -EFAULT;
	if (io.size != sizeof(io))
		return -EINVAL;
	ret = vk_do_file(cmd, &io, &why);
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
