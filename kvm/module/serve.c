// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls and services: what a vCPU's thread does in the module. A service follows a request,
 * and runs before the vCPU enters its guest.
 */
#include "compat.h"
#include "trace.h"
#include "vpmu_kvm.h"

/*
 * Called for each KVM_RUN of the host. Most VMs have no PMU, and most vCPUs one thread.
 */
void vk_run(struct kvm_vcpu *vcpu)
{
	enum vk_thread has = vk_thread_has(vcpu);
	struct vk_vcpu *c;

	if (has == VK_THREAD_OWN) {
		c = vk_find_vcpu(vcpu);
		if (!c || !c->arch || !vk_arch_due(c))
			return;
	} else if (has == VK_THREAD_FREE && !vk_find_vcpu(vcpu) &&
		   !vk_arch_wanted(vk_vm_find(vcpu->kvm), vcpu)) {
		return;
	}
	kvm_make_request(KVM_REQ_PMU, vcpu);
}

bool vk_due(struct kvm_vcpu *vcpu)
{
	enum vk_thread has = vk_thread_has(vcpu);
	struct vk_vcpu *c = vk_find_vcpu(vcpu);

	if (has == VK_THREAD_TAKEN)
		return true;
	if (!c)
		return vk_arch_wanted(vk_vm_find(vcpu->kvm), vcpu);
	if (c->arch && vk_arch_due(c))
		return true;
	return has == VK_THREAD_FREE || atomic_read(&c->pending) || vk_filter_due(c->vm);
}

/*
 * A VMM that resets a machine does not report that to the kernel. But a guest that has
 * enabled paging only loses it by a reset of the machine, or by an INIT.
 */
static bool vk_check_reset(struct vk_vcpu *c)
{
	struct vpmu_hypercall reset = {
		.nr = VPMU_PV_HYPERCALL, .arg = { VPMU_PV_OP_RESET }, .long_mode = true,
	};

	lockdep_assert_held(&c->perf.lock);
	if (!c->paging || !vk_in_system(c->vcpu) || c->vcpu->arch.cr0 & X86_CR0_PG)
		return false;
	c->paging = false;
	trace_vpmu_kvm_reset(c);
	if (c->vcpu->vcpu_id == c->vcpu->kvm->arch.bsp_vcpu_id)
		vpmu_pv_hypercall(c->pv, &reset);
	else
		vpmu_pv_reset(c->pv);
	return true;
}

static void vk_heed_filter(struct vk_vcpu *c)
{
	unsigned int changes = vk_filter_sync(c->vm);

	lockdep_assert_held(&c->perf.lock);
	if (c->filter_changes == changes)
		return;
	c->filter_changes = changes;
	vpmu_pv_refilter(c->pv);
}

/* The part of a service that is the paravirtual PMU's. Returns whether to start a slice. */
static bool vk_pv_serve(struct vk_vcpu *c, int why)
{
	lockdep_assert_held(&c->perf.lock);
	if (vk_check_reset(c))
		return false;
	vk_heed_filter(c);
	vk_perf_poll(&c->perf);
	vpmu_pv_service(c->pv);
	return why & VK_SLICE && vpmu_pv_slice(c->pv);
}

bool vk_serve(struct kvm_vcpu *vcpu)
{
	struct vk_vcpu *c = vk_find(vcpu);
	bool again;
	int why;

	vk_perf_evict(vcpu);
	if (!c && vk_arch_wanted(vk_vm_of(vcpu->kvm), vcpu)) {
		c = vk_arch_attach(vcpu);
		if (!c)
			return false; /* otherwise KVM would come here again at once */
	}
	if (!c)
		return true;
	why = atomic_xchg(&c->pending, 0);
	mutex_lock(&c->perf.lock);
	c->n_services++;
	(void)vk_perf_bind(&c->perf); /* otherwise enabled events are in error */
	again = c->arch ? vk_arch_serve(c, why) : vk_pv_serve(c, why);
	again |= c->perf.n_enabled;
	mutex_unlock(&c->perf.lock);
	vk_flush_dirty(c);
	if (again)
		vk_start_slice(c);
	return !c->arch || !vk_arch_quiet(c);
}

void vk_call(struct kvm_vcpu *vcpu, struct vpmu_hypercall *call)
{
	struct vk_vcpu *c;
	bool busy;

	/* A 64-bit caller's number has to match in all 64 bits. */
	if (call->long_mode && call->nr != VPMU_PV_HYPERCALL)
		return;
	c = vk_find(vcpu) ?: vk_attach(vcpu);
	if (!c || !c->pv)
		return;
	mutex_lock(&c->perf.lock);
	(void)vk_perf_bind(&c->perf);
	vk_check_reset(c);
	if (vk_in_system(vcpu))
		c->paging = vcpu->arch.cr0 & X86_CR0_PG;
	vk_heed_filter(c);
	c->n_calls++;
	vpmu_pv_hypercall(c->pv, call);
	trace_vpmu_kvm_call(c, call);
	busy = c->perf.n_enabled || !list_empty(&c->perf.events);
	mutex_unlock(&c->perf.lock);
	vk_flush_dirty(c);
	if (busy)
		vk_start_slice(c);
}
