// SPDX-License-Identifier: GPL-2.0-only
/*
 * Branch records of Intel's guests. They stay KVM's own, since no event of perf's records in
 * guest mode: VM entry loads the guest's DEBUGCTL, and KVM has an event, of which perf knows
 * that it has the registers. While that event is active KVM hands the guest the registers
 * themselves; otherwise they read 0, and what is written is gone. It is made at the first
 * access, and one that has failed stays in error.
 *
 * So here a guest is told that it has lost its records; arch_lbr.c of the library has a copy of
 * the registers for it, and KVM's event is released, so that the next access makes another one.
 * Such a try is made when the guest writes LBR_SELECT or sets DEBUGCTL.LBR, and after slices of
 * time if lost counters are tried again (the module's parameter).
 */
#include <linux/perf_event.h>

#include "arch.h"
#include "compat.h"
#include "lbr.h"
#include "vpmu_kvm.h"

#define VK_LBR_IDLE	16 /* times that a vCPU came back to a CPU */

static const struct vk_msrs vk_lbr_msrs[] = {
	{ VPMU_MSR_LBR_SELECT, 1 }, { VPMU_MSR_LBR_TOS, 1 },
	{ VPMU_MSR_LBR_FROM, VPMU_LBR_ENTRIES }, { VPMU_MSR_LBR_TO, VPMU_LBR_ENTRIES },
	{ VPMU_MSR_LBR_INFO, VPMU_LBR_ENTRIES }, { },
};

bool vk_is_lbr(u32 index)
{
	const struct vk_msrs *m;

	for (m = vk_lbr_msrs; m->n; m++)
		if (index - m->first < m->n)
			return true;
	return false;
}

bool vk_lbr_is_kvms(const struct vk_vcpu *c, u32 index)
{
	return c->has_lbr && vk_is_lbr(index);
}

static u64 vk_lbr_get(struct vk_vcpu *c, u32 index)
{
	u64 value;

	return static_call(vk_kvm_get_any)(c->vcpu, index, &value, true) ? 0 : value;
}

static void vk_lbr_set(struct vk_vcpu *c, u32 index, u64 value)
{
	(void)static_call(vk_kvm_set_any)(c->vcpu, index, value, true);
}

/*
 * KVM has branch records for guests whose CPU is the host's model, in the host's format, and no
 * architectural ones. Few VMMs ask for them: we do.
 */
bool vk_lbr_offered(struct kvm_vcpu *vcpu, u64 format)
{
	u64 caps;

	if (static_call(vk_kvm_get_any)(vcpu, VPMU_MSR_PERF_CAPABILITIES, &caps, true))
		return false;
	if ((caps & VPMU_CAP_LBR) == format)
		return static_call(vk_kvm_pmu_knows)(vcpu, VPMU_MSR_LBR_TOS);
	if (static_call(vk_kvm_set_any)(vcpu, VPMU_MSR_PERF_CAPABILITIES, caps | format, true))
		return false;
	if (static_call(vk_kvm_pmu_knows)(vcpu, VPMU_MSR_LBR_TOS))
		return true;
	(void)static_call(vk_kvm_set_any)(vcpu, VPMU_MSR_PERF_CAPABILITIES, caps, true);
	return false;
}

/*
 * Would the CPU take @value? KVM writes what it is given, and the host would complain. Old
 * formats have flags above an address; of the other registers the library knows the bits.
 */
static bool vk_lbr_takes(const struct vk_vcpu *c, u32 index, u64 value)
{
	bool info = (c->vm->arch->capabilities & VPMU_CAP_LBR) >= VPMU_CAP_LBR_INFO;

	return index < VPMU_MSR_LBR_FROM || index - VPMU_MSR_LBR_INFO < VPMU_LBR_ENTRIES ||
	       __is_canonical_address(info ? value : sign_extend64(value, 60),
				      boot_cpu_data.x86_virt_bits);
}

/*
 * While KVM has no event the library's copy is what the registers hold. Perf empties them for the
 * first user of a CPU's alone: beside an event of the host they would be the host's records.
 */
static void vk_lbr_begin(struct vk_vcpu *c)
{
	const struct vk_msrs *m;
	u64 value;
	u32 i;

	c->lbr_released = false;
	for (m = vk_lbr_msrs; m->n; m++)
		for (i = 0; i < m->n; i++)
			if (vpmu_arch_rdmsr(c->arch, m->first + i, &value) == VPMU_HANDLED)
				vk_lbr_set(c, m->first + i,
					   vk_lbr_takes(c, m->first + i, value) ? value : 0);
}

static void vk_lbr_keep(struct vk_vcpu *c, u32 index)
{
	(void)vpmu_arch_wrmsr(c->arch, index, vk_lbr_get(c, index));
}

/*
 * When a vCPU comes back to a CPU and is not recording, KVM releases its event, and the next one
 * begins with zeros. But guests stop recording first and then read, and choose what to record
 * before they begin. So they keep the registers themselves for a while, and then what these hold.
 */
void vk_lbr_release(struct vk_vcpu *c)
{
	const struct vk_msrs *m;
	u32 i;

	if (c->lbr_released)
		return;
	if (c->lbr_bits || ++c->lbr_idle < VK_LBR_IDLE) {
		c->vcpu->arch.pmu.need_cleanup = false;
		return;
	}
	mutex_lock(&c->perf.lock);
	for (m = vk_lbr_msrs; m->n; m++)
		for (i = 0; i < m->n; i++)
			vk_lbr_keep(c, m->first + i);
	c->lbr_released = true;
	mutex_unlock(&c->perf.lock);
}

int vk_debugctl_set(struct vk_vcpu *c, u64 kvms, bool host)
{
	c->lbr_set = c->lbr_bits;
	return static_call(vk_kvm_set_any)(c->vcpu, VPMU_MSR_DEBUGCTL, kvms | c->lbr_set, host);
}

/* Only while the vCPU is loaded can KVM reach what the CPU loads. */
void vk_lbr_settle(struct vk_vcpu *c)
{
	u64 data;

	WRITE_ONCE(c->lbr_bits, c->lbr_lost || c->lbr_released ? 0 : c->lbr_told);
	if (c->lbr_set == c->lbr_bits || !c->vcpu ||
	    static_call(vk_kvm_running_vcpu)() != c->vcpu)
		return;
	if (!static_call(vk_kvm_get_any)(c->vcpu, VPMU_MSR_DEBUGCTL, &data, true))
		(void)vk_debugctl_set(c, data & VK_DEBUGCTL_KVM, true);
}

/* Registers that hold what is written are KVM's. */
static bool vk_lbr_holds(struct vk_vcpu *c)
{
	bool holds;

	if (vk_lbr_get(c, VPMU_MSR_LBR_TOS))
		return true;
	vk_lbr_set(c, VPMU_MSR_LBR_TOS, 1);
	holds = vk_lbr_get(c, VPMU_MSR_LBR_TOS);
	vk_lbr_set(c, VPMU_MSR_LBR_TOS, 0);
	return holds;
}

/* KVM releases its event in this service or the next. */
static void vk_lbr_missed(struct vk_vcpu *c)
{
	c->lbr_released = true;
	c->vcpu->arch.pmu.need_cleanup = true;
	kvm_make_request(KVM_REQ_PMU, c->vcpu);
}

/* Find out whether KVM has them for the guest, and say so. Returns whether it has. */
static bool vk_lbr_find(struct vk_vcpu *c)
{
	bool holds;

	lockdep_assert_held(&c->perf.lock);
	c->lbr_again = false;
	c->lbr_idle = 0;
	if (c->lbr_released)
		vk_lbr_begin(c);
	holds = vk_lbr_holds(c);
	if (holds)
		vk_lbr_keep(c, VPMU_MSR_LBR_SELECT); /* also beyond a loss */
	else
		vk_lbr_missed(c);
	vpmu_arch_lbr_elsewhere(c->arch, holds);
	c->lbr_lost = !holds;
	vk_lbr_settle(c);
	return holds;
}

void vk_lbr_look(struct vk_vcpu *c)
{
	if (c->lbr_again || (c->lbr_bits && c->lbr_set == c->lbr_bits))
		(void)vk_lbr_find(c);
}

/*
 * Is the access KVM's, or the library's copy's? KVM's event counts for the thread that makes it,
 * so that of a VMM must not.
 */
static bool vk_lbr_access(struct vk_vcpu *c, u32 index, bool host, bool write)
{
	bool kvms;

	if (c->lbr_lost && !(write && index == VPMU_MSR_LBR_SELECT))
		return false;
	if (host && c->lbr_released)
		return false;
	preempt_disable();
	kvms = host && vk_thread_has(c->vcpu) != VK_THREAD_OWN;
	preempt_enable();
	if (kvms)
		return true;
	mutex_lock(&c->perf.lock);
	kvms = vk_lbr_find(c);
	mutex_unlock(&c->perf.lock);
	return kvms;
}

int vk_lbr_read(struct vk_vcpu *c, u32 index, u64 *data, bool host)
{
	struct msr_data msr = { .index = index, .host_initiated = host };
	int ret;

	if (vk_lbr_access(c, index, host, false))
		return static_call(vk_kvm_get_any)(c->vcpu, index, data, host);
	ret = vk_arch_rdmsr(c, &msr);
	*data = msr.data;
	return ret;
}

/* The library says what is valid, so it has the value, too, which is of no use to it then. */
int vk_lbr_write(struct vk_vcpu *c, u32 index, u64 data, bool host)
{
	struct msr_data msr = { .index = index, .data = data, .host_initiated = host };
	bool kvms;

	if (!vk_lbr_takes(c, index, data))
		return 1;
	kvms = vk_lbr_access(c, index, host, true);
	if (vk_arch_wrmsr(c, &msr))
		return 1;
	if (!kvms)
		return 0;
	(void)vk_arch_rdmsr(c, &msr); /* without bits that are not kept */
	return static_call(vk_kvm_set_any)(c->vcpu, index, msr.data, host);
}
