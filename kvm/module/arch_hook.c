// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the architectural PMU takes the place of KVM's own:
 *
 *	kvm_vcpu_reset         An INIT of a vCPU.
 *	VK_RETIRED             KVM has executed an instruction for the guest.
 *	kvm_pmu_rdpmc          RDPMC.
 *	kvm_set_msr_common,    MSRs of counters, of guests and of VMMs: a whole question less
 *	kvm_get_msr_common     than the next three take.
 *	kvm_pmu_set_msr,       The other MSRs that KVM itself does not know, if the second and
 *	kvm_pmu_get_msr,       third say so,
 *	kvm_pmu_is_valid_msr   which this one decides.
 *	kvm_cpuid              CPUID; the last, so that no guest finds what does not answer yet.
 *
 * arch_intel.c has two more, for MSRs that KVM itself knows.
 *
 * They are hooked while there is a VM that has that PMU. Other VMs' calls go on to KVM's
 * functions. Such a VM keeps the module loaded, so its calls are not counted by vk_enter().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "compat.h"
#include "hook.h"
#include "kvm.h"
#include "vpmu_kvm.h"

/*
 * These run in place of KVM's functions, as do vk_arch_rdmsr(), vk_arch_wrmsr() and
 * vk_arch_rdpmc(). But for vk_cpuid(), their first argument is our vCPU in place of KVM's.
 */

static bool vk_is_valid_msr(struct vk_vcpu *c, u32 msr)
{
	return true;
}

static bool vk_cpuid(struct kvm_vcpu *vcpu, u32 *eax, u32 *ebx, u32 *ecx, u32 *edx, bool exact)
{
	u32 leaf = *eax, subleaf = *ecx;
	struct vpmu_cpuid regs;
	bool found = static_call(vk_kvm_cpuid)(vcpu, eax, ebx, ecx, edx, exact);

	regs = (struct vpmu_cpuid){ *eax, *ebx, *ecx, *edx };
	vk_arch_cpuid(vk_arch_find(vcpu), leaf, subleaf, &regs, &found);
	*eax = regs.eax;
	*ebx = regs.ebx;
	*ecx = regs.ecx;
	*edx = regs.edx;
	return found;
}

/* The vCPU stays: its thread, or a VMM's that has its mutex, is in KVM. */
static struct vk_vcpu *vk_on_vcpu(struct pt_regs *regs)
{
	return vk_arch_find((struct kvm_vcpu *)regs->di);
}

/* Ftrace gives @function the arguments that @regs has. */
static void notrace vk_go_on(struct pt_regs *regs, void *function, struct vk_vcpu *c)
{
	regs->di = (unsigned long)c;
	regs->ip = (unsigned long)function;
}

static bool vk_is_ours(struct vk_vcpu *c, u32 msr)
{
	const struct vk_vendor *vendor;

	if (!c || !vpmu_arch_knows(c->arch, msr))
		return false;
	vendor = c->vm->arch->vendor;
	return !vendor->is_kvms || !vendor->is_kvms(c, msr);
}

/*
 * KVM itself has no case for these, or asks its PMU there, and tasks' switches write them. A
 * counter that is missing here is found by the hooks on KVM's PMU.
 */
static bool vk_is_counters(u32 msr)
{
	switch (msr) {
	case VPMU_MSR_PMC0 ... VPMU_MSR_PMC0 + 7:
	case VPMU_MSR_PERFEVTSEL0 ... VPMU_MSR_PERFEVTSEL0 + 7:
	case VPMU_MSR_FIXED_CTR0 ... VPMU_MSR_FIXED_CTR0 + 3:
	case VPMU_MSR_FIXED_CTR_CTRL ... VPMU_MSR_GLOBAL_STATUS_SET:
	case VPMU_MSR_A_PMC0 ... VPMU_MSR_A_PMC0 + 7:
	case VPMU_MSR_AMD_GLOBAL_STATUS ... VPMU_MSR_AMD_GLOBAL_STATUS_SET:
	case VPMU_MSR_K7_EVTSEL0 ... VPMU_MSR_K7_PERFCTR0 + 3:
	case VPMU_MSR_AMD_PERF_CTL0 ... VPMU_MSR_AMD_PERF_CTL0 + 15:
		return true;
	}
	return false;
}

static void notrace vk_on_reset(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
				struct ftrace_regs *fregs)
{
	struct pt_regs *regs = vk_regs(fregs);
	struct vk_vcpu *c = vk_on_vcpu(regs);

	if (!c || !(u8)regs->si)
		return;
	WRITE_ONCE(c->paging, false);
	WRITE_ONCE(c->init, true);
	kvm_make_request(KVM_REQ_PMU, c->vcpu);
}

/* Nothing counts an instruction while no event is enabled, which is most of a task's switch. */
static __always_inline void vk_note_retired(struct pt_regs *regs, bool branch)
{
	struct vk_vcpu *c = vk_on_vcpu(regs);

	if (c && READ_ONCE(c->perf.n_enabled))
		vk_arch_emulated(c, branch);
}

static void notrace vk_on_retired(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
				  struct ftrace_regs *fregs)
{
	struct pt_regs *regs = vk_regs(fregs);

	vk_note_retired(regs, vk_is_branch(regs->si));
}

#ifdef VK_RETIRED_BRANCH
static void notrace vk_on_retired_branch(unsigned long ip, unsigned long parent,
					 struct ftrace_ops *op, struct ftrace_regs *fregs)
{
	vk_note_retired(vk_regs(fregs), true);
}
#endif

/* VMware's, which some VMMs allow, are KVM's. */
#define VK_VMWARE_PMCS	0x10000

static void notrace vk_on_rdpmc(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
				struct ftrace_regs *fregs)
{
	struct pt_regs *regs = vk_regs(fregs);
	struct vk_vcpu *c = vk_on_vcpu(regs);

	if (c && (u32)regs->si - VK_VMWARE_PMCS > 2)
		vk_go_on(regs, vk_arch_rdpmc, c);
}

/* Let @access have a register that is ours, with @counters only one of vk_is_counters(). */
static __always_inline void vk_on_msr(struct ftrace_regs *fregs, bool counters, void *access)
{
	struct pt_regs *regs = vk_regs(fregs);
	u32 msr = ((struct msr_data *)regs->si)->index;
	struct vk_vcpu *c;

	if (counters && !vk_is_counters(msr))
		return;
	c = vk_on_vcpu(regs);
	if (vk_is_ours(c, msr))
		vk_go_on(regs, access, c);
}

static void notrace vk_on_set_common(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
				     struct ftrace_regs *fregs)
{
	vk_on_msr(fregs, true, vk_arch_wrmsr);
}

static void notrace vk_on_get_common(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
				     struct ftrace_regs *fregs)
{
	vk_on_msr(fregs, true, vk_arch_rdmsr);
}

static void notrace vk_on_set(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
			      struct ftrace_regs *fregs)
{
	vk_on_msr(fregs, false, vk_arch_wrmsr);
}

static void notrace vk_on_get(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
			      struct ftrace_regs *fregs)
{
	vk_on_msr(fregs, false, vk_arch_rdmsr);
}

static void notrace vk_on_is_valid(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
				   struct ftrace_regs *fregs)
{
	struct pt_regs *regs = vk_regs(fregs);
	struct vk_vcpu *c = vk_on_vcpu(regs);

	if (vk_is_ours(c, (u32)regs->si))
		vk_go_on(regs, vk_is_valid_msr, c);
}

static void notrace vk_on_cpuid(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
				struct ftrace_regs *fregs)
{
	struct pt_regs *regs = vk_regs(fregs);

	if (!within_module(parent, THIS_MODULE) && vk_on_vcpu(regs))
		regs->ip = (unsigned long)vk_cpuid;
}

static struct vk_hook vk_arch_hooks[] = {
	VK_WATCH("kvm_vcpu_reset", "vi", vk_on_reset),
	VK_WATCH(VK_RETIRED, VK_RETIRED_PARAMS, vk_on_retired),
#ifdef VK_RETIRED_BRANCH
	VK_WATCH(VK_RETIRED_BRANCH, VK_RETIRED_PARAMS, vk_on_retired_branch),
#endif
	VK_REDIRECT("kvm_pmu_rdpmc", "vip", vk_on_rdpmc),
	VK_REDIRECT("kvm_set_msr_common", "vm", vk_on_set_common),
	VK_REDIRECT("kvm_get_msr_common", "vm", vk_on_get_common),
	VK_REDIRECT("kvm_pmu_set_msr", "vm", vk_on_set),
	VK_REDIRECT("kvm_pmu_get_msr", "vm", vk_on_get),
	VK_REDIRECT("kvm_pmu_is_valid_msr", "vi", vk_on_is_valid),
	VK_REDIRECT("kvm_cpuid", "vppppi", vk_on_cpuid),
};

static int vk_arch_hook(void)
{
	const struct vk_vendor *v = vk_arch_vendor();
	int ret = vk_hooks_on(v->hooks, v->n_hooks);

	return ret ?: vk_hooks_on(vk_arch_hooks, ARRAY_SIZE(vk_arch_hooks));
}

static void vk_arch_unhook(void)
{
	const struct vk_vendor *v = vk_arch_vendor();

	vk_hooks_off(vk_arch_hooks, ARRAY_SIZE(vk_arch_hooks));
	vk_hooks_off(v->hooks, v->n_hooks);
}

static DEFINE_MUTEX(vk_arch_hooks_lock); /* protects the table and the number of users */
static unsigned int vk_arch_users;

int vk_arch_hooks_get(void)
{
	int ret = 0;

	mutex_lock(&vk_arch_hooks_lock);
	if (!vk_arch_users)
		ret = vk_arch_hook();
	if (ret)
		vk_arch_unhook();
	else
		vk_arch_users++;
	mutex_unlock(&vk_arch_hooks_lock);
	return ret;
}

void vk_arch_hooks_put(void)
{
	mutex_lock(&vk_arch_hooks_lock);
	if (!--vk_arch_users)
		vk_arch_unhook();
	mutex_unlock(&vk_arch_hooks_lock);
}
