// SPDX-License-Identifier: GPL-2.0-only
/* Requests of services, and a vCPU's state that decides about them. */
#include "compat.h"
#include "kvm.h"
#include "vpmu_kvm.h"

void vk_ask(struct vk_vcpu *c, int why, bool wake)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&c->lock, flags);
	if (c->vcpu) {
		atomic_or(why, &c->pending);
		kvm_make_request(KVM_REQ_PMU, c->vcpu);
		/* With no NMI queued, this request only makes a HLT look. */
		if (wake)
			kvm_make_request(KVM_REQ_NMI, c->vcpu);
		/*
		 * Pairs with the barrier in KVM after vcpu->mode is set: the requests are
		 * visible before the mode is read. Either KVM sees the requests, or
		 * IN_GUEST_MODE is seen here.
		 */
		smp_mb__after_atomic();
		if (wake || READ_ONCE(c->vcpu->mode) == IN_GUEST_MODE)
			static_call(vk_kvm_kick)(c->vcpu, false);
	}
	raw_spin_unlock_irqrestore(&c->lock, flags);
}

static void vk_kick_work(struct irq_work *work)
{
	struct vk_vcpu *c = container_of(work, struct vk_vcpu, kick);

	vk_ask(c, VK_SERVE, xchg(&c->wake, false));
}

static enum hrtimer_restart vk_slice_over(struct hrtimer *timer)
{
	vk_ask(container_of(timer, struct vk_vcpu, slice), VK_SLICE, false);
	return HRTIMER_NORESTART;
}

/* While vk_slice_over() returns on another CPU, the timer is active, but not queued. */
void vk_start_slice(struct vk_vcpu *c)
{
	if (!hrtimer_is_queued(&c->slice))
		hrtimer_start(&c->slice, ns_to_ktime(VK_SLICE_NS), HRTIMER_MODE_REL);
}

void vk_kick(void *ctx)
{
	struct vk_vcpu *c = ctx;

	irq_work_queue(&c->kick);
}

void vk_requests_init(struct vk_vcpu *c)
{
	raw_spin_lock_init(&c->lock);
	init_irq_work(&c->kick, vk_kick_work);
	vk_hrtimer_init(&c->slice, vk_slice_over);
}

/* In SMM, and while a vCPU runs a nested guest, its CR0 is not that of its system. */
bool vk_in_system(const struct kvm_vcpu *vcpu)
{
	return !(vcpu->arch.hflags & (HF_GUEST_MASK | HF_SMM_MASK));
}
