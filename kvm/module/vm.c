// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMs and vCPUs: they are created by their first hypercall, and freed when KVM frees
 * theirs.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "loan.h"
#include "vpmu_kvm.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static struct workqueue_struct *vk_wq;  /* frees VMs */

DEFINE_MUTEX(vk_mutex);
LIST_HEAD(vk_all);
unsigned int vk_n_vms;

/* Hooks of the library */

/* On the vCPU's thread, outside of the guest. */
static void vk_inject(void *ctx, uint8_t vector)
{
	struct vk_vcpu *c = ctx;

	if (!c->vcpu)
		return;
	c->n_nmis++;
	trace_vpmu_kvm_nmi(c);
	atomic_inc(&c->vcpu->arch.nmi_queued);
	kvm_make_request(KVM_REQ_NMI, c->vcpu);
}

static void vk_lock(void *ctx)
{
	struct vk_vcpu *c = ctx;

	mutex_lock(&c->vm->lock);
}

static void vk_unlock(void *ctx)
{
	struct vk_vcpu *c = ctx;

	mutex_unlock(&c->vm->lock);
}

static const struct vpmu_ops vk_ops = {
	.size = sizeof(vk_ops),
	.kick = vk_kick,
	.gpa_read = vk_gpa_read,
	.gpa_write = vk_gpa_write,
	.gpa_map = vk_gpa_map,
	.gpa_unmap = vk_gpa_unmap,
	.gpa_dirty = vk_gpa_dirty,
	.inject = vk_inject,
	.lock = vk_lock,
	.unlock = vk_unlock,
	.trace = vk_stats_trace,
	.traced = VK_STATS_TRACED,
};

/* Creation of VMs and vCPUs */

static struct vpmu_pv_config vk_config(const struct kvm *kvm)
{
	const u64 slices = NSEC_PER_SEC / VK_SLICE_NS;

	return (struct vpmu_pv_config) {
		.size = sizeof(struct vpmu_pv_config),
		.model = vk_model,
		.abi = VPMU_PV_ABI_2,
		.n_vcpus = kvm->max_vcpus,
		.n_events = vk_max_events,
		.n_slots = vk_max_slots,
		.overflows_max = max_t(u64, vk_max_rate / slices, 1),
		.period_min = vk_min_period,
		.alone = true,
		.features = vk_counts_slots() ? VPMU_PV_HAS_TOPDOWN : 0,
	};
}

static void vk_vm_end_work(struct work_struct *work);

/* A limit that is read without vk_mutex may be out of date; vk_vm_publish() asks again under it. */
static bool vk_vm_room(struct vpmu_error *why)
{
	unsigned int n = READ_ONCE(vk_n_vms);

	if (n < vk_max_vms)
		return true;
	*why = (struct vpmu_error){ .what = "vms", .asked = n + 1, .available = vk_max_vms };
	return false;
}

static int vk_vm_init_pv(struct vk_vm *vm, struct vpmu_pv_config *cfg, struct vpmu_error *why)
{
	size_t vm_bytes, vcpu_bytes;

	cfg->filter = &vm->filter;
	if (vpmu_pv_size(cfg, &vk_perf_ops, &vm_bytes, &vcpu_bytes, why))
		return -EINVAL;
	vm->pv = vk_fails() ? NULL : kvzalloc(vm_bytes, GFP_KERNEL_ACCOUNT);
	if (!vm->pv)
		return -ENOMEM;
	return vpmu_pv_vm_init(vm->pv, cfg, &vk_perf_ops, why) ? -EINVAL : 0;
}

void vk_arch_free(struct vk_arch *a)
{
	if (!a)
		return;
	kfree(a);
	vk_arch_hooks_put();
	module_put(THIS_MODULE);
}

static void vk_vm_free(struct vk_vm *vm)
{
	vk_arch_free(vm->arch);
	vk_loans_free(&vm->loans);
	kvfree(vm->pv);
	kvfree(vm);
}

/* Allocate a VM, which is not in vk_vms yet. @allow, @arch: it has a PMU. */
static struct vk_vm *vk_vm_alloc(struct kvm *kvm, bool allow, struct vk_arch *arch,
				 struct vpmu_error *why)
{
	struct vpmu_pv_config cfg = vk_config(kvm);
	unsigned int n_vcpus = allow || arch ? cfg.n_vcpus : 0;
	struct vk_vm *vm = vk_fails() ? NULL :
		kvzalloc(struct_size(vm, vcpu, n_vcpus), GFP_KERNEL_ACCOUNT);

	if (!vm)
		return NULL;
	vm->kvm = kvm;
	vm->pid = kvm->userspace_pid;
	vm->n_vcpus = n_vcpus;
	INIT_LIST_HEAD(&vm->list);
	mutex_init(&vm->lock);
	hash_init(vm->maps);
	INIT_LIST_HEAD(&vm->loans);
	INIT_WORK(&vm->end, vk_vm_end_work);
	vk_filter_init(vm);
	vm->arch = arch;
	if (allow && vk_vm_init_pv(vm, &cfg, why)) {
		vk_vm_free(vm);
		return NULL;
	}
	return vm;
}

/*
 * Publish a VM: vk_vm_of() finds it from now on. Returns 0, or -EEXIST; or -ENOSPC, with
 * @why.
 */
static int vk_vm_publish(struct vk_vm *vm, struct vpmu_error *why)
{
	int ret = 0;

	mutex_lock(&vk_mutex);
	if (vk_vm_of(vm->kvm))
		ret = -EEXIST;
	else if (vm->n_vcpus && !vk_vm_room(why))
		ret = -ENOSPC;
	if (!ret && vm->n_vcpus) {
		list_add_tail(&vm->list, &vk_all);
		WRITE_ONCE(vk_n_vms, vk_n_vms + 1);
	}
	if (!ret) {
		spin_lock(&vk_vms_lock);
		hash_add_rcu(vk_vms, &vm->node, (unsigned long)vm->kvm);
		spin_unlock(&vk_vms_lock);
	}
	mutex_unlock(&vk_mutex);
	return ret;
}

/*
 * The VM of @kvm, created if there is none. Memory is allocated without a lock, so a VM
 * that has to wait for memory blocks no other VM. Returns NULL on failure, with @why if a
 * limit was reached.
 */
static struct vk_vm *vk_vm_get(struct kvm *kvm, bool allow, struct vpmu_error *why)
{
	struct vk_vm *vm = vk_vm_of(kvm);
	int ret;

	if (vm || (allow && !vk_vm_room(why)))
		return vm;
	vm = vk_vm_alloc(kvm, allow, NULL, why);
	if (!vm)
		return NULL;
	ret = vk_vm_publish(vm, why);
	if (!ret)
		return vm;
	vk_vm_free(vm);
	return ret == -EEXIST ? vk_vm_of(kvm) : NULL;
}

int vk_vm_give(struct kvm *kvm, struct vk_arch *arch, struct vpmu_error *why)
{
	struct vk_vm *vm = vk_vm_room(why) ? vk_vm_alloc(kvm, false, arch, why) : NULL;
	int ret;

	if (!vm)
		return why->what ? -ENOSPC : -ENOMEM;
	ret = vk_vm_publish(vm, why);
	if (ret) {
		vm->arch = NULL;
		vk_vm_free(vm);
	}
	return ret;
}

static void vk_vcpu_free(struct vk_vcpu *c)
{
	vk_arch_vcpu_fini(c);
	vk_perf_fini(&c->perf);
	kvfree(c->pv);
	kfree_rcu(c, rcu);
}

static int vk_pv_vcpu_init(struct vk_vcpu *c, struct vpmu_error *why)
{
	struct vpmu_pv_config cfg = vk_config(c->vcpu->kvm);
	size_t vm_bytes, vcpu_bytes;

	if (vpmu_pv_size(&cfg, &vk_perf_ops, &vm_bytes, &vcpu_bytes, why))
		return -EINVAL;
	c->pv = vk_fails() ? NULL : kvzalloc(vcpu_bytes, GFP_KERNEL_ACCOUNT);
	if (!c->pv)
		return -ENOMEM;
	return vpmu_pv_init(c->pv, c->vm->pv, c->number, &c->perf.provider, &vk_ops, c);
}

/* vcpu->mutex is held, so there is one such call at a time for each vCPU. */
struct vk_vcpu *vk_vcpu_new(struct vk_vm *vm, struct kvm_vcpu *vcpu, bool bind,
			    struct vpmu_error *why)
{
	struct vk_vcpu *c;

	if (vcpu->vcpu_idx >= vm->n_vcpus)
		return NULL;
	c = vk_fails() ? NULL : kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	if (!c)
		return NULL;
	c->vm = vm;
	c->vcpu = vcpu;
	c->number = vcpu->vcpu_idx;
	vk_requests_init(c);
	vk_perf_init(&c->perf);
	if ((bind && vk_perf_bind(&c->perf)) ||
	    (vm->arch ? vk_arch_vcpu_init(c, why) : vk_pv_vcpu_init(c, why))) {
		vk_vcpu_free(c);
		return NULL;
	}
	/*
	 * Pairs with smp_load_acquire() in vk_find_vcpu(): *c is visible before its
	 * pointer.
	 */
	smp_store_release(&vm->vcpu[c->number], c);
	trace_vpmu_kvm_attach(c);
	return c;
}

const char vk_mediated[] = "KVM has given it the mediated PMU (enable_mediated_pmu)";

bool vk_may_have(const struct kvm *kvm, struct vpmu_error *why)
{
	if (vk_opt_in)
		why->what = "its VMM has not asked for one, which opt_in demands";
	else if (vk_vmm_declines(kvm))
		why->what = "its VMM has taken the PMU away (KVM_CAP_PMU_CAPABILITY)";
	else if (vk_is_mediated(kvm))
		why->what = vk_mediated;
	return !why->what;
}

void vk_warn(const struct vpmu_error *why)
{
	if (why->asked || why->available)
		pr_warn_ratelimited("process %d gets no PMU for its guest: %s, %llu of %llu\n",
				    task_tgid_nr(current), why->what, why->asked,
				    why->available);
	else
		pr_warn_ratelimited("process %d gets no PMU for its guest: %s\n",
				    task_tgid_nr(current), why->what ?: "no memory");
}

struct vk_vcpu *vk_attach(struct kvm_vcpu *vcpu)
{
	struct vk_vm *vm = vk_vm_of(vcpu->kvm);
	struct vpmu_error why = { };
	struct vk_vcpu *c = NULL;

	if (vm && !vm->pv)
		return NULL; /* by REFUSE or ARCH, and its caller knows that */
	if (vm || vk_may_have(vcpu->kvm, &why))
		vm = vk_vm_get(vcpu->kvm, true, &why);
	if (vm && vm->pv)
		c = vk_vcpu_new(vm, vcpu, true, &why);
	if (!c)
		vk_warn(&why);
	return c;
}

/*
 * A saved state has all vCPUs, including those that never made a call. If one of them
 * cannot be created, the guest cannot see the ones created before; they are freed with
 * the VM.
 */
struct vk_vm *vk_attach_all(struct kvm *kvm, bool make, struct vpmu_error *why)
{
	struct vk_vm *vm = vk_vm_of(kvm);
	struct kvm_vcpu *vcpu;
	unsigned long i;

	lockdep_assert_held(&kvm->lock);
	if (!vm && !make) {
		why->what = "the guest has not used its PMU";
		return ERR_PTR(-ENOENT);
	}
	if (!vm && !vk_may_have(kvm, why))
		return ERR_PTR(-EACCES);
	vm = vk_vm_get(kvm, true, why);
	if (!vm)
		return ERR_PTR(why->what ? -ENOSPC : -ENOMEM);
	if (!vm->n_vcpus) {
		why->what = "the guest is refused a PMU";
		return ERR_PTR(-EACCES);
	}
	kvm_for_each_vcpu(i, vcpu, kvm)
		if (!vk_find(vcpu) && !vk_vcpu_new(vm, vcpu, false, why))
			return ERR_PTR(why->what ? -EINVAL : -ENOMEM);
	return vm;
}

int vk_decide(struct kvm *kvm, bool allow, struct vpmu_error *why)
{
	struct vk_vm *vm = vk_vm_get(kvm, allow, why);

	if (!vm)
		return why->what ? -ENOSPC : -ENOMEM;
	if (!vm->arch && !vm->pv == !allow)
		return 0;
	why->what = vm->arch ? "the guest has an architectural PMU already" :
		    allow ? "the guest has been refused a PMU already" :
			    "the guest has a PMU already";
	return -EBUSY;
}

void vk_unbind_all(struct vk_vm *vm)
{
	unsigned int i;

	lockdep_assert_held(&vm->kvm->lock);
	for (i = 0; i < vm->n_vcpus; i++) {
		struct vk_vcpu *c = vm->vcpu[i];

		if (!c)
			continue;
		mutex_lock(&c->perf.lock);
		vk_perf_unbind(&c->perf);
		mutex_unlock(&c->perf.lock);
	}
}

void vk_loaded(struct vk_vm *vm)
{
	unsigned int i;

	lockdep_assert_held(&vm->kvm->lock);
	for (i = 0; i < vm->n_vcpus; i++) {
		struct vk_vcpu *c = vm->vcpu[i];

		if (!c)
			continue;
		c->paging = vk_in_system(c->vcpu) && c->vcpu->arch.cr0 & X86_CR0_PG;
		vk_ask(c, VK_SERVE, false);
	}
}

/* End of VMs and vCPUs */

/*
 * Free a VM of which no code runs and which no lookup finds. @tell: its guest continues
 * to run, and is told.
 */
static void vk_vm_end(struct vk_vm *vm, bool tell)
{
	unsigned int i;

	mutex_lock(&vk_mutex);
	if (vm->n_vcpus) {
		list_del(&vm->list);
		vk_stats_keep(vm);
		WRITE_ONCE(vk_n_vms, vk_n_vms - 1);
	}
	mutex_unlock(&vk_mutex);
	for (i = 0; i < vm->n_vcpus; i++) {
		struct vk_vcpu *c = vm->vcpu[i];

		if (!c)
			continue;
		hrtimer_cancel(&c->slice);
		if (tell && c->pv)
			vpmu_pv_withdraw(c->pv);
		if (c->arch)
			vpmu_arch_reset(c->arch, false); /* releases its events */
		trace_vpmu_kvm_detach(c);
	}
	if (vm->pv)
		vpmu_pv_vm_reset(vm->pv);
	for (i = 0; i < vm->n_vcpus; i++) {
		struct vk_vcpu *c = vm->vcpu[i];

		if (!c)
			continue;
		irq_work_sync(&c->kick); /* a vCPU's end may have kicked another one */
		vk_vcpu_free(c);
	}
	vk_vm_free(vm);
}

static void vk_vm_end_work(struct work_struct *work)
{
	struct vk_vm *vm = container_of(work, struct vk_vm, end);

	synchronize_rcu(); /* RCU readers that walk this bucket may still hold a pointer to vm. */
	vk_vm_end(vm, false);
}

static void vk_vm_hide(struct vk_vm *vm)
{
	unsigned long flags;
	unsigned int i;

	lockdep_assert_held(&vk_vms_lock);
	hash_del_rcu(&vm->node);
	for (i = 0; i < vm->n_vcpus; i++) {
		struct vk_vcpu *c = vm->vcpu[i];

		if (!c)
			continue;
		raw_spin_lock_irqsave(&c->lock, flags);
		c->vcpu = NULL;
		raw_spin_unlock_irqrestore(&c->lock, flags);
	}
}

void vk_vm_gone(struct kvm *kvm)
{
	struct vk_vm *vm;

	spin_lock(&vk_vms_lock);
	vm = vk_vm_find(kvm);
	if (vm) {
		vk_vm_hide(vm);
		queue_work(vk_wq, &vm->end);
	}
	spin_unlock(&vk_vms_lock);
}

/* Take the next VM out of vk_vms, so that the caller alone can reach it. */
static struct vk_vm *vk_vm_take(void)
{
	struct vk_vm *vm;
	int bucket;

	spin_lock(&vk_vms_lock);
	hash_for_each(vk_vms, bucket, vm, node) {
		vk_vm_hide(vm);
		spin_unlock(&vk_vms_lock);
		return vm;
	}
	spin_unlock(&vk_vms_lock);
	return NULL;
}

int vk_vms_init(void)
{
	vk_wq = alloc_workqueue("vpmu_kvm", WQ_UNBOUND, 0);
	return vk_wq ? 0 : -ENOMEM;
}

void vk_vms_exit(void)
{
	struct vk_vm *vm;

	while ((vm = vk_vm_take())) {
		synchronize_rcu();
		vk_vm_end(vm, true);
	}
	flush_workqueue(vk_wq);
}

void vk_vms_free(void)
{
	destroy_workqueue(vk_wq);
}
