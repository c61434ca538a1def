// SPDX-License-Identifier: GPL-2.0-only
/*
 * The architectural PMU of a VM: lib/guest/arch*.c on perf.c's events, in place of KVM's
 * own. A VM has it from before its first vCPU enters its guest until KVM frees it, and a
 * guest never loses it: each such VM holds a reference to the module.
 *
 * A vCPU's MSRs, RDPMC and CPUID are handled on its thread, or by an ioctl of its VMM;
 * always under vcpu->mutex, and here under vk_perf.lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include "arch.h"
#include "compat.h"
#include "loan.h"
#include "trace.h"
#include "vpmu-kvm-module.h"
#include "vpmu_kvm.h"

/* A vCPU's own copy, as the VM's may change before this vCPU's next service. */
struct vk_arch_filter {
	struct vpmu_filter head;
	u64 events[];
};

static const struct vpmu_filter vk_deny_all = {
	.size = sizeof(vk_deny_all),
	.action = VPMU_FILTER_ALLOW,
};

static const struct vk_vendor *vk_vendor;     /* the host's; NULL: no guest can have it */
static struct vpmu_model vk_arch_model;       /* the host's, as its guests see it */
static struct x86_pmu_capability vk_host;

DEFINE_STATIC_CALL_NULL(vk_kvm_deliver_pmi, vk_void_fn);
DEFINE_STATIC_CALL_NULL(vk_kvm_process_nmi, vk_void_fn);
DEFINE_STATIC_CALL_NULL(vk_kvm_pmu_knows, vk_pmu_knows_fn);
DEFINE_STATIC_CALL_NULL(vk_kvm_pmu_get, vk_pmu_msr_fn);
DEFINE_STATIC_CALL_NULL(vk_kvm_pmu_set, vk_pmu_msr_fn);
DEFINE_STATIC_CALL_NULL(vk_kvm_get_cpl, vk_int_fn);
DEFINE_STATIC_CALL_NULL(vk_kvm_cache_reg, vk_cache_reg_fn);

static const struct vk_function vk_arch_functions[] = {
	VK_FUNCTION(vk_kvm_deliver_pmi, "kvm_pmu_deliver_pmi", "v"),
	VK_FUNCTION(vk_kvm_process_nmi, "process_nmi", "v"),
	VK_FUNCTION(vk_kvm_pmu_knows, "kvm_pmu_is_valid_msr", "vi"),
	VK_FUNCTION(vk_kvm_pmu_get, "kvm_pmu_get_msr", "vm"),
	VK_FUNCTION(vk_kvm_pmu_set, "kvm_pmu_set_msr", "vm"),
};

/* Hooks of the library */

/*
 * The local APIC gets the interrupt, and KVM sees its NMI, before KVM looks for other
 * interrupts. KVM_REQ_PMI would do that since 6.7 only: before, KVM looks at NMIs first,
 * and the sample of an interrupted instruction would name an interrupt's handler.
 */
static void vk_raise_pmi(void *ctx, bool mask)
{
	struct vk_vcpu *c = ctx;

	if (!c->vcpu || static_call(vk_kvm_running_vcpu)() != c->vcpu)
		return;
	c->n_nmis++;
	trace_vpmu_kvm_nmi(c);
	static_call(vk_kvm_deliver_pmi)(c->vcpu);
	static_call(vk_kvm_process_nmi)(c->vcpu);
}

static void vk_set_debugctl(void *ctx, uint64_t bits)
{
	struct vk_vcpu *c = ctx;

	c->lbr_told = bits;
	c->lbr_again = bits & VPMU_DEBUGCTL_LBR && (c->lbr_lost || c->lbr_released);
	if (c->lbr_again)
		vk_kick(c); /* not from here: this is a hook of the library's */
	vk_vendor->settle_lbr(c);
}

static const struct vpmu_ops vk_arch_ops = {
	.size = sizeof(vk_arch_ops),
	.kick = vk_kick,
	.raise_pmi = vk_raise_pmi,
	.set_debugctl = vk_set_debugctl,
	.trace = vk_stats_trace,
	.traced = VK_STATS_TRACED,
};

/* The PMU that a VM is given */

static struct vpmu_arch_config vk_arch_config(const struct vk_arch *a, struct vpmu_provider *p,
					      void *ctx)
{
	return (struct vpmu_arch_config) {
		.size = sizeof(struct vpmu_arch_config),
		.model = &vk_arch_model,
		.version = a->version,
		.n_gp = a->n_gp,
		.n_fixed = a->n_fixed,
		.capabilities = a->capabilities,
		.lbr_elsewhere = a->capabilities & VPMU_CAP_LBR,
		.provider = p,
		.ops = &vk_arch_ops,
		.ctx = ctx,
		.regain = READ_ONCE(vk_regain),
	};
}

static bool vk_over(u64 want, u64 most, const char *what, struct vpmu_error *why)
{
	if (want <= most)
		return false;
	*why = (struct vpmu_error){ what, want, most };
	return true;
}

int vk_arch_plan(struct vk_arch *a, const struct vpmu_kvm_arch *want, struct vpmu_error *why)
{
	struct vk_perf p = { };
	struct vk_arch most = { };
	struct vpmu_arch_config cfg;
	size_t bytes;

	vk_vendor->most(&most, &vk_host, &vk_arch_model);
	*why = (struct vpmu_error){ "capabilities", want->capabilities, most.capabilities };
	if (want->capabilities & ~most.capabilities)
		return -EOPNOTSUPP;
	*why = (struct vpmu_error){ };
	if (vk_over(want->n_gp, most.n_gp, "n_gp", why) ||
	    vk_over(want->n_fixed, most.n_fixed, "n_fixed", why) ||
	    vk_over(want->version, most.version, "version", why))
		return -EOPNOTSUPP;
	a->version = want->version ?: most.version;
	a->capabilities = want->capabilities ?: most.capabilities;
	a->n_gp = want->n_gp ?: most.n_gp;
	a->topdown = vk_arch_model.topdown;
	/* Only a VMM that asks for the fourth lends what it takes. */
	a->n_fixed = want->n_fixed ?: a->version < 2 ? 0 : min(most.n_fixed, (u8)VK_FIXED_SLOTS);
	vk_perf_init(&p);
	p.provider.model = &vk_arch_model;
	p.planned = true;
	cfg = vk_arch_config(a, &p.provider, NULL);
	if (vpmu_arch_size(&cfg, &bytes, why))
		return -EOPNOTSUPP;
	a->vendor = vk_vendor;
	if (!vk_find_functions(vk_vendor->functions, vk_vendor->n_functions))
		return 0;
	why->what = "functions of KVM's module are not found, or kprobes are locked";
	return -EOPNOTSUPP;
}

/* The first block of a hypervisor's leaves that neither KVM nor the VMM uses. */
static u32 vk_free_leaves(struct kvm_vcpu *vcpu)
{
	u32 base, eax, ebx, ecx, edx;

	for (base = 0x40000100; base < 0x40001000; base += 0x100) {
		eax = base;
		ecx = 0;
		if (!static_call(vk_kvm_cpuid)(vcpu, &eax, &ebx, &ecx, &edx, true))
			return base;
	}
	return 0;
}

#define VK_MISC_ENABLE_PMU \
	(VPMU_MISC_ENABLE_PERFMON | VPMU_MISC_ENABLE_NO_BTS | VPMU_MISC_ENABLE_NO_PEBS)

/* Intel's guests cannot write these bits, and a VMM's RESET does not know ours. */
static void vk_set_misc_enable(struct vk_vcpu *c)
{
	if (vk_arch_model.vendor != VPMU_VENDOR_INTEL)
		return;
	c->vcpu->arch.ia32_misc_enable_msr &= ~VK_MISC_ENABLE_PMU;
	c->vcpu->arch.ia32_misc_enable_msr |= vpmu_arch_misc_enable(c->arch);
}

/* The guest names its events after its CPU, and the host's perf counts those of its own. */
bool vk_arch_fits(struct kvm_vcpu *vcpu, struct vpmu_error *why)
{
	u32 eax = 0, ebx, ecx = 0, edx;

	static_call(vk_kvm_cpuid)(vcpu, &eax, &ebx, &ecx, &edx, false);
	if (vcpu->arch.guest_state_protected)
		why->what = "the registers of its vCPUs are encrypted";
	else if (vk_vendor && !vk_vendor->is(ebx))
		why->what = "its CPU is of another vendor than the host's";
	return !why->what;
}

/* KVM's own PMU has it no longer. No other thread can find @c yet. */
static void vk_take_over(struct vk_vcpu *c, const struct vk_own *own)
{
	unsigned int i;

	vk_own_clear(c->vcpu, own);
	for (i = 0; i < own->n; i++)
		(void)vk_vendor->host_wrmsr(c, own->msr[i].index, own->msr[i].value);
}

int vk_arch_vcpu_init(struct vk_vcpu *c, struct vpmu_error *why)
{
	struct vpmu_arch_config cfg = vk_arch_config(c->vm->arch, &c->perf.provider, c);
	struct vpmu_arch *arch;
	struct vk_own own;
	size_t bytes;

	if (!vk_arch_fits(c->vcpu, why))
		return -EINVAL;
	vk_own_find(c->vcpu, vk_vendor, &own); /* KVM may forget it below */
	c->perf.provider.model = &vk_arch_model;
	c->perf.emulates = true;
	cfg.cpuid_base = vk_free_leaves(c->vcpu);
	vk_loans_move(c->vm, c->vcpu->vcpu_idx, &c->perf.loans);
	if (!vk_loan_has(&c->perf.loans, VPMU_BANKS_USER | VPMU_BANKS_KERNEL))
		cfg.n_fixed = min(cfg.n_fixed, VK_FIXED_SLOTS);
	if (cfg.lbr_elsewhere && !vk_vendor->has_lbr(c->vcpu, cfg.capabilities & VPMU_CAP_LBR)) {
		cfg.capabilities &= ~VPMU_CAP_LBR;
		cfg.lbr_elsewhere = false;
	}
	if (vpmu_arch_size(&cfg, &bytes, why))
		return -EINVAL;
	arch = vk_fails() ? NULL : kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!arch)
		return -ENOMEM;
	if (vpmu_arch_init(arch, &cfg, why)) {
		kvfree(arch);
		return -EINVAL;
	}
	c->arch = arch;
	c->has_lbr = cfg.lbr_elsewhere;
	c->lbr_released = true;
	vk_set_misc_enable(c);
	vk_take_over(c, &own);
	return 0;
}

void vk_arch_vcpu_fini(struct vk_vcpu *c)
{
	kvfree(c->arch);
	kvfree(c->filter);
}

/* Services */

/* See vk_check_reset(). An INIT clears c->paging first. */
static bool vk_was_reset(const struct vk_vcpu *c)
{
	return READ_ONCE(c->paging) && vk_in_system(c->vcpu) && !(c->vcpu->arch.cr0 & X86_CR0_PG);
}

bool vk_arch_due(const struct vk_vcpu *c)
{
	return vk_filter_due(c->vm) || c->filter_changes != READ_ONCE(c->vm->filter_changes) ||
	       vk_was_reset(c) || READ_ONCE(c->init) ||
	       (c->vcpu->arch.pmu.need_cleanup && !c->lbr_released) ||
	       READ_ONCE(c->lbr_bits) != READ_ONCE(c->lbr_set);
}

bool vk_arch_quiet(struct vk_vcpu *c)
{
	const struct kvm_pmu *pmu = &c->vcpu->arch.pmu;

	if (pmu->need_cleanup && vk_vendor->release_lbr)
		vk_vendor->release_lbr(c);
	return bitmap_empty(pmu->reprogram_pmi, X86_PMC_IDX_MAX) && !pmu->need_cleanup;
}

/* NULL: nothing is denied. An error pointer if there is no memory. */
static struct vk_arch_filter *vk_filter_new(struct vk_vm *vm)
{
	struct vk_arch_filter *f = NULL;

	mutex_lock(&vm->lock);
	if (vm->filter.action != VPMU_FILTER_DENY || vm->filter.n_events ||
	    vm->filter.fixed_bitmap) {
		f = vk_fails() ? NULL :
			kvmalloc(struct_size(f, events, vm->filter.n_events), GFP_KERNEL_ACCOUNT);
		if (f) {
			f->head = vm->filter;
			f->head.events = f->events;
			memcpy(f->events, vm->filter_events, vm->filter.n_events * sizeof(u64));
		}
		f = f ?: ERR_PTR(-ENOMEM);
	}
	mutex_unlock(&vm->lock);
	return f;
}

/*
 * Before 6.2 KVM does not even request anything when it gets a filter. Where one cannot be
 * put in force, nothing counts.
 */
static void vk_arch_heed_filter(struct vk_vcpu *c)
{
	unsigned int changes = vk_filter_sync(c->vm);
	struct vk_arch_filter *f;

	if (c->filter_changes == changes)
		return;
	c->filter_changes = changes;
	f = vk_filter_new(c->vm);
	if (IS_ERR(f) || vpmu_arch_filter(c->arch, f ? &f->head : NULL)) {
		(void)vpmu_arch_filter(c->arch, &vk_deny_all);
		if (!IS_ERR_OR_NULL(f))
			kvfree(f);
		f = NULL;
	}
	kvfree(c->filter);
	c->filter = f;
}

static void vk_note_paging(struct vk_vcpu *c)
{
	if (vk_in_system(c->vcpu) && c->vcpu->arch.cr0 & X86_CR0_PG)
		WRITE_ONCE(c->paging, true);
}

/* An INIT is found here, by whichever access comes first. */
static void vk_heed_init(struct vk_vcpu *c)
{
	lockdep_assert_held(&c->perf.lock);
	if (READ_ONCE(c->init) && xchg(&c->init, false))
		vpmu_arch_reset(c->arch, true);
}

int vk_arch_save(struct vk_vcpu *c, void *state, size_t room, size_t *bytes)
{
	int ret;

	mutex_lock(&c->perf.lock);
	vk_heed_init(c);
	ret = vpmu_arch_save(c->arch, state, room, bytes);
	mutex_unlock(&c->perf.lock);
	return ret;
}

bool vk_arch_serve(struct vk_vcpu *c, int why)
{
	bool again;

	lockdep_assert_held(&c->perf.lock);
	if (vk_was_reset(c)) {
		WRITE_ONCE(c->paging, false);
		trace_vpmu_kvm_reset(c);
		c->lbr_released = true;
		vpmu_arch_reset(c->arch, false);
		vk_set_misc_enable(c);
	}
	vk_heed_init(c);
	if (vk_vendor->settle_lbr)
		vk_vendor->settle_lbr(c);
	vk_note_paging(c);
	vk_arch_heed_filter(c);
	vk_perf_settle(&c->perf);
	vk_perf_poll(&c->perf);
	vpmu_arch_service(c->arch);
	again = why & VK_SLICE && vpmu_arch_slice(c->arch);
	if (vk_vendor->look_lbr)
		vk_vendor->look_lbr(c);
	return again;
}

/* In place of KVM's functions */

int vk_arch_rdmsr(struct vk_vcpu *c, struct msr_data *msr)
{
	enum vpmu_result result;
	u64 value = 0;

	c->n_rdmsr++;
	mutex_lock(&c->perf.lock);
	if (!msr->host_initiated)
		(void)vk_perf_bind(&c->perf);
	vk_heed_init(c);
	result = vpmu_arch_rdmsr(c->arch, msr->index, &value);
	mutex_unlock(&c->perf.lock);
	msr->data = value;
	/* VMMs save what KVM lists, which the guest's PMU may not have. */
	return result != VPMU_HANDLED && !msr->host_initiated;
}

/* VMMs restore what KVM lists: zeros where the guest has no such register. */
static enum vpmu_result vk_host_wrmsr(struct vk_vcpu *c, u32 index, u64 value)
{
	enum vpmu_result result = c->vm->arch->vendor->host_wrmsr(c, index, value);

	return value ? result : VPMU_HANDLED;
}

int vk_arch_wrmsr(struct vk_vcpu *c, struct msr_data *msr)
{
	enum vpmu_result result;
	bool busy;

	c->n_wrmsr++;
	mutex_lock(&c->perf.lock);
	vk_heed_init(c);
	if (msr->host_initiated) {
		result = vk_host_wrmsr(c, msr->index, msr->data);
	} else {
		(void)vk_perf_bind(&c->perf);
		vk_note_paging(c);
		vk_arch_heed_filter(c);
		result = vpmu_arch_wrmsr(c->arch, msr->index,
					 c->vm->arch->vendor->guest_value(c, msr));
	}
	busy = !list_empty(&c->perf.events) || c->lbr_told;
	mutex_unlock(&c->perf.lock);
	if (busy)
		vk_start_slice(c);
	return result != VPMU_HANDLED;
}

/* A guest may write CR4.PCE without an exit. */
static bool vk_user_may_rdpmc(struct kvm_vcpu *vcpu)
{
	static_call_cond(vk_kvm_cache_reg)(vcpu, VK_REG_CR4);
	return vcpu->arch.cr4 & X86_CR4_PCE || !(vcpu->arch.cr0 & X86_CR0_PE);
}

int vk_arch_rdpmc(struct vk_vcpu *c, unsigned int idx, u64 *data)
{
	struct kvm_vcpu *vcpu = c->vcpu;
	bool user = static_call(vk_kvm_get_cpl)(vcpu);
	enum vpmu_result result;

	if (user && !vk_user_may_rdpmc(vcpu))
		return 1;
	c->n_rdpmc++;
	mutex_lock(&c->perf.lock);
	result = vpmu_arch_rdpmc(c->arch, idx, user, data);
	mutex_unlock(&c->perf.lock);
	return result != VPMU_HANDLED;
}

void vk_arch_cpuid(struct vk_vcpu *c, u32 leaf, u32 subleaf, struct vpmu_cpuid *regs,
		   bool *found)
{
	if (vpmu_arch_cpuid(c->arch, leaf, subleaf, regs))
		*found = true;
	c->vm->arch->vendor->cpuid(c->vm->arch, leaf, regs);
}

/* The ring is that after the instruction, as for KVM's own PMU. */
void vk_arch_emulated(struct vk_vcpu *c, bool branch)
{
	if (!vk_perf_emulated(&c->perf, branch, !static_call(vk_kvm_get_cpl)(c->vcpu)))
		return;
	atomic_or(VK_SERVE, &c->pending);
	kvm_make_request(KVM_REQ_PMU, c->vcpu);
}

const struct vk_vendor *vk_arch_vendor(void)
{
	return vk_vendor;
}

const char *vk_arch_find_host(const struct vk_vendor *vendor)
{
	const char *none;

	static_call(vk_host_pmu)(&vk_host);
	vk_arch_model = *vk_model;
	none = vendor->find_host(&vk_host, &vk_arch_model);
	if (none)
		return none;
	if (vk_find_functions(vk_arch_functions, ARRAY_SIZE(vk_arch_functions)))
		return "KVM's functions are not found, or kprobes are locked";
	vk_vendor = vendor;
	return NULL;
}
