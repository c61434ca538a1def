// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ftrace hooks on KVM's functions, in tables. These four are the module's entry points:
 *
 *	kvm_emulate_hypercall  A call with our number is redirected to a function of ours,
 *	                       which calls KVM's first: that refuses rings above 0, skips
 *	                       the instruction and answers -1000. We replace that answer.
 *	kvm_pmu_handle_event   KVM calls it for KVM_REQ_PMU on the way into the guest. We
 *	                       request our services by that request. A service runs in
 *	                       place of KVM's function and then makes the request again.
 *	kvm_arch_vcpu_ioctl_run says which thread a vCPU is about to run on.
 *	kvm_arch_destroy_vm    says that a VM is about to be freed.
 *
 * arch_hook.c has the table of the architectural PMU, which is hooked on demand.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "hook.h"
#include "kvm.h"
#include "vpmu_kvm.h"

#define VK_ENOSYS	(-(long)VPMU_PV_ENOSYS)

static atomic_t vk_inside = ATOMIC_INIT(0); /* calls and services in progress */
static bool vk_closed;                      /* no call or service may begin */

static bool vk_enter(void)
{
	atomic_inc(&vk_inside);
	/*
	 * Pairs with wait_var_event() in vk_unhook(): vk_inside is raised before
	 * vk_closed is read, so either that function waits for this call, or this call
	 * sees vk_closed.
	 */
	smp_mb__after_atomic();
	if (!READ_ONCE(vk_closed))
		return true;
	if (atomic_dec_and_test(&vk_inside))
		wake_up_var(&vk_inside);
	return false;
}

static void vk_leave(void)
{
	if (atomic_dec_and_test(&vk_inside))
		wake_up_var(&vk_inside);
}

/*
 * These run in place of KVM's functions. Each ends with vk_leave(), so it makes no tail
 * call.
 */

static int vk_emulate_hypercall(struct kvm_vcpu *vcpu)
{
	unsigned long *regs = vcpu->arch.regs;
	struct vpmu_hypercall call = {
		.nr = regs[VCPU_REGS_RAX],
		.arg = { regs[VCPU_REGS_RBX], regs[VCPU_REGS_RCX], regs[VCPU_REGS_RDX],
			 regs[VCPU_REGS_RSI] },
	};
	int ret = static_call(vk_kvm_emulate_hypercall)(vcpu);

	/* KVM answers -1000 to ring 0 only, in 32 or 64 bits by the guest's mode. */
	call.long_mode = regs[VCPU_REGS_RAX] == (unsigned long)VK_ENOSYS;
	if (call.long_mode || regs[VCPU_REGS_RAX] == (u32)VK_ENOSYS) {
		call.result = VK_ENOSYS;
		vk_call(vcpu, &call);
		regs[VCPU_REGS_RAX] = call.long_mode ? (u64)call.result : (u32)call.result;
	}
	vk_leave();
	return ret;
}

/* KVM has cleared the request: it is made again for KVM's own function. */
static void vk_handle_event(struct kvm_vcpu *vcpu)
{
	if (vk_serve(vcpu))
		kvm_make_request(KVM_REQ_PMU, vcpu);
	vk_leave();
}

/*
 * Reject calls from L2, which belong to L1, and from SEV and TDX guests, whose memory we
 * cannot read.
 */
static bool vk_may_call(const struct kvm_vcpu *vcpu)
{
	return !(vcpu->arch.hflags & HF_GUEST_MASK) && !vcpu->arch.guest_state_protected;
}

static void notrace vk_on_hypercall(unsigned long ip, unsigned long parent,
				    struct ftrace_ops *op, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = vk_regs(fregs);
	struct kvm_vcpu *vcpu = (struct kvm_vcpu *)regs->di;

	if (within_module(parent, THIS_MODULE) ||
	    (u32)vcpu->arch.regs[VCPU_REGS_RAX] != VPMU_PV_HYPERCALL || !vk_may_call(vcpu))
		return;
	if (vk_enter())
		regs->ip = (unsigned long)vk_emulate_hypercall;
}

/* Ftrace leaves preemption as it is in KVM when it calls these functions. */

static void notrace vk_on_event(unsigned long ip, unsigned long parent,
				struct ftrace_ops *op, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = vk_regs(fregs);
	bool due;

	preempt_disable_notrace();
	due = vk_due((struct kvm_vcpu *)regs->di);
	preempt_enable_notrace();
	if (due && vk_enter())
		regs->ip = (unsigned long)vk_handle_event;
}

static void notrace vk_on_run(unsigned long ip, unsigned long parent,
			      struct ftrace_ops *op, struct ftrace_regs *fregs)
{
	preempt_disable_notrace();
	vk_run((struct kvm_vcpu *)vk_regs(fregs)->di);
	preempt_enable_notrace();
}

static void notrace vk_on_destroy(unsigned long ip, unsigned long parent,
				  struct ftrace_ops *op, struct ftrace_regs *fregs)
{
	vk_vm_gone((struct kvm *)vk_regs(fregs)->di);
}

enum { VK_DESTROY, VK_EVENT, VK_RUN, VK_HYPERCALL };

static struct vk_hook vk_hooks[] = { /* registered in this order, removed in the reverse one */
	[VK_DESTROY] = VK_WATCH("kvm_arch_destroy_vm", "k", vk_on_destroy),
	[VK_EVENT] = VK_REDIRECT("kvm_pmu_handle_event", "v", vk_on_event),
	[VK_RUN] = VK_WATCH("kvm_arch_vcpu_ioctl_run", "v", vk_on_run),
	[VK_HYPERCALL] = VK_REDIRECT("kvm_emulate_hypercall", "v", vk_on_hypercall),
};

void vk_unhook(void)
{
	WRITE_ONCE(vk_closed, true);
	vk_hooks_off(&vk_hooks[VK_EVENT], ARRAY_SIZE(vk_hooks) - VK_EVENT);
	wait_var_event(&vk_inside, !atomic_read(&vk_inside));
	/* A task may have left vk_leave() but not yet the module's text. */
	synchronize_rcu_tasks();
}

void vk_unwatch(void)
{
	vk_hooks_off(vk_hooks, 1);
}

int vk_hook(void)
{
	int ret = vk_hooks_on(vk_hooks, ARRAY_SIZE(vk_hooks));

	if (ret) {
		vk_unhook();
		vk_vms_exit(); /* a guest may have called already */
		vk_unwatch();
	}
	return ret;
}
