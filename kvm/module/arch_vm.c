// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which VMs have the architectural PMU: those whose VMM asks for it, or with arch=1 all that
 * are created while the module is there. Each holds a reference to the module.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>

#include "compat.h"
#include "kvm.h"
#include "vpmu-kvm-module.h"
#include "vpmu_kvm.h"

static bool vk_arch_param;
module_param_named(arch, vk_arch_param, bool, 0444);
MODULE_PARM_DESC(arch, "VMs have the architectural PMU, without their VMM's asking (N)");

bool vk_arch_default;
static const char *vk_arch_none; /* why there is none on this host; or NULL */

/* A VM exists, so KVM's module for this CPU stays. */
static struct vk_arch *vk_arch_new(const struct vpmu_kvm_arch *want, struct vpmu_error *why)
{
	struct vk_arch *a;
	int ret;

	why->what = vk_arch_none;
	if (vk_arch_none)
		return ERR_PTR(-EOPNOTSUPP);
	a = vk_fails() ? NULL : kzalloc(sizeof(*a), GFP_KERNEL_ACCOUNT);
	if (!a)
		return ERR_PTR(-ENOMEM);
	ret = vk_arch_plan(a, want, why);
	if (ret)
		goto err_free;
	ret = -ENODEV;
	why->what = "the module is being unloaded";
	if (!try_module_get(THIS_MODULE))
		goto err_free;
	why->what = "KVM's functions cannot be hooked";
	ret = vk_arch_hooks_get();
	if (ret)
		goto err_module;
	why->what = NULL;
	return a;

err_module:
	module_put(THIS_MODULE);
err_free:
	kfree(a);
	return ERR_PTR(ret);
}

static bool vk_has_run(struct kvm *kvm)
{
	struct kvm_vcpu *vcpu;
	unsigned long i;

	kvm_for_each_vcpu(i, vcpu, kvm)
		if (READ_ONCE(vcpu->arch.last_vmentry_cpu) != -1)
			return true;
	return false;
}

static bool vk_arch_has(const struct vk_arch *a, const struct vpmu_kvm_arch *want)
{
	return (!want->version || want->version == a->version) &&
	       (!want->n_gp || want->n_gp == a->n_gp) &&
	       (!want->n_fixed || want->n_fixed == a->n_fixed) &&
	       !(want->capabilities & ~a->capabilities);
}

/* @a becomes the VM's, or remains the caller's. */
static int vk_arch_decide_locked(struct kvm *kvm, struct vk_arch **a, struct vpmu_kvm_arch *io,
				 struct vpmu_error *why)
{
	struct vk_vm *vm = vk_vm_of(kvm);
	int ret;

	if (!vm && vk_has_run(kvm)) {
		why->what = "the guest runs already";
		return -EBUSY;
	}
	if (!vm && vk_is_mediated(kvm)) {
		why->what = vk_mediated;
		return -EBUSY;
	}
	if (!vm) {
		ret = vk_vm_give(kvm, *a, why);
		if (ret && ret != -EEXIST) /* another decision has just been made */
			return ret;
		if (!ret)
			*a = NULL;
		vm = vk_vm_of(kvm);
	}
	if (!vm->arch || !vk_arch_has(vm->arch, io)) {
		why->what = vm->arch ? "the guest has another architectural PMU already" :
			    vm->pv ? "the guest has a paravirtual PMU already" :
				     "the guest has been refused a PMU already";
		return -EBUSY;
	}
	io->version = vm->arch->version;
	io->n_gp = vm->arch->n_gp;
	io->n_fixed = vm->arch->n_fixed;
	io->capabilities = vm->arch->capabilities;
	return 0;
}

/* KVM's functions are hooked before the VM is locked. */
int vk_arch_decide(struct kvm *kvm, struct vpmu_kvm_arch *io, struct vpmu_error *why)
{
	struct vk_arch *a = vk_arch_new(io, why);
	int ret;

	if (IS_ERR(a))
		return PTR_ERR(a);
	ret = vk_lock_vcpus(kvm, why);
	if (!ret) {
		ret = vk_arch_decide_locked(kvm, &a, io, why);
		vk_unlock_vcpus(kvm, ULONG_MAX);
	}
	vk_arch_free(a);
	return ret;
}

/* A vCPU gets it */

bool vk_arch_wanted(const struct vk_vm *vm, const struct kvm_vcpu *vcpu)
{
	if (vm ? !vm->arch : !READ_ONCE(vk_arch_default))
		return false;
	return vcpu->arch.last_vmentry_cpu == -1;
}

/* By the module's parameter. */
static int vk_arch_give(struct kvm *kvm, struct vpmu_error *why)
{
	static const struct vpmu_kvm_arch any;
	struct vk_arch *a = vk_arch_new(&any, why);
	int ret;

	if (IS_ERR(a))
		return PTR_ERR(a);
	ret = vk_vm_give(kvm, a, why);
	if (ret)
		vk_arch_free(a);
	return ret;
}

int vk_arch_give_default(struct kvm *kvm, struct vpmu_error *why)
{
	if (!vk_arch_default || vk_vm_of(kvm) || vk_has_run(kvm))
		return 0;
	return vk_may_have(kvm, why) ? vk_arch_give(kvm, why) : -EACCES;
}

struct vk_vcpu *vk_arch_attach(struct kvm_vcpu *vcpu)
{
	struct vk_vm *vm = vk_vm_of(vcpu->kvm);
	struct vpmu_error why = { };
	struct vk_vcpu *c = NULL;

	if (!vm && vk_has_run(vcpu->kvm))
		return NULL; /* since before the module was there */
	if (vk_arch_fits(vcpu, &why) && !vm && vk_may_have(vcpu->kvm, &why)) {
		(void)vk_arch_give(vcpu->kvm, &why);
		vm = vk_vm_of(vcpu->kvm);
	}
	if (!why.what && vm && vm->arch)
		c = vk_vcpu_new(vm, vcpu, true, &why);
	if (!c)
		vk_warn(&why);
	return c;
}

/* Load and unload */

int vk_arch_init(void)
{
	int ret;

	vk_arch_none = vk_arch_find_host(vk_model->vendor == VPMU_VENDOR_AMD ? &vk_amd : &vk_intel);
	if (!vk_arch_param)
		return 0;
	ret = vk_arch_none ? -EOPNOTSUPP : vk_arch_hooks_get();
	if (ret)
		pr_err("arch=1: %s\n", vk_arch_none ?: "KVM's functions cannot be hooked");
	return ret;
}

void vk_arch_begin(void)
{
	WRITE_ONCE(vk_arch_default, vk_arch_param);
}

void vk_arch_exit(void)
{
	WRITE_ONCE(vk_arch_default, false);
	if (vk_arch_param)
		vk_arch_hooks_put();
}
