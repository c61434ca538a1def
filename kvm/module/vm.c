// SPDX-License-Identifier: GPL-2.0-only
/* VMs and vCPUs: they come with their first hypercall and go with KVM's. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "vpmu_kvm.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static DEFINE_HASHTABLE(vk_vms, 6);     /* by vk_vm.kvm; RCU to read */
static DEFINE_SPINLOCK(vk_vms_lock);    /* to write */
static struct workqueue_struct *vk_wq;  /* ends of VMs */

DEFINE_MUTEX(vk_mutex);
LIST_HEAD(vk_all);
unsigned int vk_n_vms;

static struct vk_vm *vk_vm_find(const struct kvm *kvm)
{
	struct vk_vm *vm;

	hash_for_each_possible_rcu(vk_vms, vm, node, (unsigned long)kvm)
		if (vm->kvm == kvm)
			return vm;
	return NULL;
}

/* What is found stays as long as the vCPU's thread is in here. */
static struct vk_vcpu *vk_find(struct kvm_vcpu *vcpu)
{
	struct vk_vcpu *c = NULL;
	struct vk_vm *vm;

	rcu_read_lock();
	vm = vk_vm_find(vcpu->kvm);
	if (vm && vcpu->vcpu_idx < vm->n_vcpus)
		c = smp_load_acquire(&vm->vcpu[vcpu->vcpu_idx]);
	rcu_read_unlock();
	return c;
}

/* Services */

/* From anywhere but NMI. */
static void vk_ask(struct vk_vcpu *c, int why)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&c->lock, flags);
	if (c->vcpu) {
		atomic_or(why, &c->pending);
		kvm_make_request(KVM_REQ_PMU, c->vcpu);
		smp_mb__after_atomic(); /* it looks for requests, or is seen in there */
		/* One that sleeps need not wake up for that. */
		if (READ_ONCE(c->vcpu->mode) == IN_GUEST_MODE)
			kvm_vcpu_kick(c->vcpu);
	}
	raw_spin_unlock_irqrestore(&c->lock, flags);
}

static void vk_kick_work(struct irq_work *work)
{
	vk_ask(container_of(work, struct vk_vcpu, kick), VK_SERVE);
}

static enum hrtimer_restart vk_slice_over(struct hrtimer *timer)
{
	vk_ask(container_of(timer, struct vk_vcpu, slice), VK_SLICE);
	return HRTIMER_NORESTART;
}

static void vk_start_slice(struct vk_vcpu *c)
{
	if (!hrtimer_active(&c->slice))
		hrtimer_start(&c->slice, ns_to_ktime(VK_SLICE_NS), HRTIMER_MODE_REL);
}

bool vk_due(struct kvm_vcpu *vcpu)
{
	struct vk_vcpu *c = vk_find(vcpu);

	return c && atomic_read(&c->pending);
}

/*
 * A VMM that resets a machine does not tell the kernel so. But no guest with paging
 * goes back to none, except through a reset of the machine, or an INIT.
 */
static bool vk_check_reset(struct vk_vcpu *c)
{
	struct vpmu_hypercall reset = {
		.nr = VPMU_PV_HYPERCALL, .arg = { VPMU_PV_OP_RESET }, .long_mode = true,
	};

	if (!c->paging || c->vcpu->arch.cr0 & X86_CR0_PG)
		return false;
	c->paging = false;
	trace_vpmu_kvm_reset(c);
	if (c->vcpu->vcpu_id == c->vcpu->kvm->arch.bsp_vcpu_id)
		vpmu_pv_hypercall(c->pv, &reset);
	else
		vpmu_pv_reset(c->pv);
	return true;
}

void vk_serve(struct kvm_vcpu *vcpu)
{
	struct vk_vcpu *c = vk_find(vcpu);
	bool again = false;
	int why;

	if (!c)
		return;
	why = atomic_xchg(&c->pending, 0);
	down_read(&c->vm->sem);
	c->n_services++;
	(void)vk_perf_bind(&c->perf); /* else what is on is in error */
	if (!vk_check_reset(c)) {
		vk_perf_poll(&c->perf);
		vpmu_pv_service(c->pv);
		if (why & VK_SLICE)
			again = vpmu_pv_slice(c->pv);
	}
	up_read(&c->vm->sem);
	if (again || c->perf.n_enabled)
		vk_start_slice(c);
}

/* Hooks of the library */

static void vk_kick(void *ctx)
{
	struct vk_vcpu *c = ctx;

	irq_work_queue(&c->kick);
}

/* On the thread, outside of the guest. */
static void vk_interrupt(void *ctx, uint8_t vector)
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
	.interrupt = vk_interrupt,
	.lock = vk_lock,
	.unlock = vk_unlock,
};

/* They come */

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
	};
}

static void vk_vm_end_work(struct work_struct *work);

/* vk_mutex */
static struct vk_vm *vk_vm_new(struct kvm *kvm, struct vpmu_error *why)
{
	struct vpmu_pv_config cfg = vk_config(kvm);
	size_t vm_bytes, vcpu_bytes;
	struct vk_vm *vm;

	if (vk_n_vms >= vk_max_vms) {
		why->what = "vms";
		why->asked = vk_n_vms + 1;
		why->available = vk_max_vms;
		return NULL;
	}
	if (vpmu_pv_size(&cfg, &vk_perf_ops, &vm_bytes, &vcpu_bytes, why))
		return NULL;
	vm = vk_fails() ? NULL : kvzalloc(struct_size(vm, vcpu, cfg.n_vcpus), GFP_KERNEL_ACCOUNT);
	if (!vm)
		return NULL;
	vm->pv = vk_fails() ? NULL : kvzalloc(vm_bytes, GFP_KERNEL_ACCOUNT);
	if (!vm->pv || vpmu_pv_vm_init(vm->pv, &cfg, &vk_perf_ops, why)) {
		kvfree(vm->pv);
		kvfree(vm);
		return NULL;
	}
	vm->kvm = kvm;
	vm->pid = kvm->userspace_pid;
	vm->n_vcpus = cfg.n_vcpus;
	init_rwsem(&vm->sem);
	mutex_init(&vm->lock);
	hash_init(vm->maps);
	INIT_WORK(&vm->end, vk_vm_end_work);
	list_add_tail(&vm->list, &vk_all);
	vk_n_vms++;
	spin_lock(&vk_vms_lock);
	hash_add_rcu(vk_vms, &vm->node, (unsigned long)kvm);
	spin_unlock(&vk_vms_lock);
	return vm;
}

static void vk_vcpu_free(struct vk_vcpu *c)
{
	vk_perf_fini(&c->perf);
	kvfree(c->pv);
	kfree(c);
}

/* vk_mutex. @bind: on its thread; else that has yet to come. */
static struct vk_vcpu *vk_vcpu_new(struct vk_vm *vm, struct kvm_vcpu *vcpu, bool bind,
				   struct vpmu_error *why)
{
	struct vpmu_pv_config cfg = vk_config(vcpu->kvm);
	size_t vm_bytes, vcpu_bytes;
	struct vk_vcpu *c;
	int ret;

	if (vcpu->vcpu_idx >= vm->n_vcpus ||
	    vpmu_pv_size(&cfg, &vk_perf_ops, &vm_bytes, &vcpu_bytes, why))
		return NULL;
	c = vk_fails() ? NULL : kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	if (!c)
		return NULL;
	c->vm = vm;
	c->vcpu = vcpu;
	c->number = vcpu->vcpu_idx;
	raw_spin_lock_init(&c->lock);
	init_irq_work(&c->kick, vk_kick_work);
	hrtimer_init(&c->slice, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	c->slice.function = vk_slice_over;
	vk_perf_init(&c->perf);
	c->pv = vk_fails() ? NULL : kvzalloc(vcpu_bytes, GFP_KERNEL_ACCOUNT);
	if (!c->pv || (bind && vk_perf_bind(&c->perf))) {
		vk_vcpu_free(c);
		return NULL;
	}
	down_write(&vm->sem);
	ret = vpmu_pv_init(c->pv, vm->pv, c->number, &c->perf.provider, &vk_ops, c);
	if (!ret)
		smp_store_release(&vm->vcpu[c->number], c);
	up_write(&vm->sem);
	if (ret) {
		vk_vcpu_free(c);
		return NULL;
	}
	trace_vpmu_kvm_attach(c);
	return c;
}

static struct vk_vm *vk_vm_of(const struct kvm *kvm)
{
	struct vk_vm *vm;

	rcu_read_lock();
	vm = vk_vm_find(kvm);
	rcu_read_unlock();
	return vm;
}

static struct vk_vcpu *vk_attach(struct kvm_vcpu *vcpu)
{
	struct vpmu_error why = { };
	struct vk_vcpu *c = NULL;
	struct vk_vm *vm;

	mutex_lock(&vk_mutex);
	vm = vk_vm_of(vcpu->kvm) ?: vk_vm_new(vcpu->kvm, &why);
	if (vm)
		c = vk_vcpu_new(vm, vcpu, true, &why);
	mutex_unlock(&vk_mutex);
	if (!c)
		pr_warn_ratelimited("process %d gets no PMU for its guest: %s, %llu of %llu\n",
				    task_tgid_nr(current), why.what ?: "memory", why.asked,
				    why.available);
	return c;
}

/*
 * All vCPUs are in a saved state, those too that have never called. What was made here
 * before one could not be is nothing that a guest can see, and goes with the VM.
 */
struct vk_vm *vk_attach_all(struct kvm *kvm, bool make, struct vpmu_error *why)
{
	struct kvm_vcpu *vcpu;
	struct vk_vm *vm;
	unsigned long i;
	int ret = 0;

	mutex_lock(&vk_mutex);
	vm = vk_vm_of(kvm);
	if (!vm && make)
		vm = vk_vm_new(kvm, why);
	else if (!vm)
		ret = -ENOENT;
	if (!vm && !ret)
		ret = why->what ? -ENOSPC : -ENOMEM;
	kvm_for_each_vcpu(i, vcpu, kvm)
		if (!ret && !vk_find(vcpu) && !vk_vcpu_new(vm, vcpu, false, why))
			ret = -ENOMEM;
	mutex_unlock(&vk_mutex);
	if (ret == -ENOENT)
		why->what = "the guest has not used its PMU";
	return ret ? ERR_PTR(ret) : vm;
}

void vk_loading(struct vk_vm *vm)
{
	unsigned int i;

	for (i = 0; i < vm->n_vcpus; i++)
		if (vm->vcpu[i])
			vk_perf_unbind(&vm->vcpu[i]->perf);
}

void vk_loaded(struct vk_vm *vm)
{
	unsigned int i;

	for (i = 0; i < vm->n_vcpus; i++) {
		struct vk_vcpu *c = vm->vcpu[i];

		if (!c)
			continue;
		c->paging = c->vcpu->arch.cr0 & X86_CR0_PG;
		vk_ask(c, VK_SERVE);
	}
}

void vk_call(struct kvm_vcpu *vcpu, struct vpmu_hypercall *call)
{
	struct vk_vcpu *c;

	/* Not for one that has but the lower half of our number. */
	if (call->long_mode && call->nr != VPMU_PV_HYPERCALL)
		return;
	c = vk_find(vcpu) ?: vk_attach(vcpu);
	if (!c)
		return;
	down_read(&c->vm->sem);
	(void)vk_perf_bind(&c->perf);
	vk_check_reset(c);
	c->paging = vcpu->arch.cr0 & X86_CR0_PG;
	c->n_calls++;
	vpmu_pv_hypercall(c->pv, call);
	trace_vpmu_kvm_call(c, call);
	up_read(&c->vm->sem);
	if (c->perf.n_enabled || !list_empty(&c->perf.events))
		vk_start_slice(c);
}

/* They go */

/* Nothing of it runs any more, and nobody finds it. @tell: its guest lives on. */
static void vk_vm_end(struct vk_vm *vm, bool tell)
{
	unsigned int i;

	mutex_lock(&vk_mutex);
	list_del(&vm->list);
	vk_n_vms--;
	mutex_unlock(&vk_mutex);
	for (i = 0; i < vm->n_vcpus; i++) {
		struct vk_vcpu *c = vm->vcpu[i];

		if (!c)
			continue;
		hrtimer_cancel(&c->slice);
		if (tell)
			vpmu_pv_withdraw(c->pv);
		trace_vpmu_kvm_detach(c);
	}
	vpmu_pv_vm_reset(vm->pv);
	for (i = 0; i < vm->n_vcpus; i++) {
		struct vk_vcpu *c = vm->vcpu[i];

		if (!c)
			continue;
		irq_work_sync(&c->kick); /* a vCPU's end may have kicked another one */
		vk_vcpu_free(c);
	}
	kvfree(vm->pv);
	kvfree(vm);
}

static void vk_vm_end_work(struct work_struct *work)
{
	struct vk_vm *vm = container_of(work, struct vk_vm, end);

	synchronize_rcu(); /* who looks for another one may stand here */
	vk_vm_end(vm, false);
}

/* vk_vms_lock */
static void vk_vm_hide(struct vk_vm *vm)
{
	unsigned long flags;
	unsigned int i;

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

/* The next one that is still there, for nobody else to find. */
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
