// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The architectural PMU: configuration, power-on state, CPUID, PMI, SMM, queries. */
#include "arch_cpuid.h"
#include "arch_event.h"
#include "arch_extra.h"
#include "arch_internal.h"
#include "arch_lbr.h"
#include "arch_loss.h"
#include "arch_pebs.h"
#include "arch_pmc.h"
#include "arch_topdown.h"

/* A configuration with its defaults filled in. */
struct arch_plan {
	uint8_t version, n_gp, n_fixed;
	uint8_t lbr; /* enum arch_lbr_kind */
	struct vpmu_ops ops;
};

static int arch_refuse(struct vpmu_error *err, int code, const char *what,
		       uint64_t asked, uint64_t available)
{
	if (err) {
		err->what = what;
		err->asked = asked;
		err->available = available;
	}
	return code;
}

#define ARCH_PROVIDER_OPS_SIZE \
	(offsetof(struct vpmu_provider_ops, load) + sizeof(void *))

static int arch_check_pointers(const struct vpmu_arch_config *cfg,
			       struct arch_plan *plan, struct vpmu_error *err)
{
	const struct vpmu_provider_ops *p;

	if (!cfg || cfg->size < sizeof(*cfg))
		return arch_refuse(err, -VPMU_EINVAL, "config's size",
				   cfg ? cfg->size : 0, sizeof(*cfg));
	if (!cfg->model || !cfg->provider || !cfg->provider->ops)
		return arch_refuse(err, -VPMU_EINVAL,
				   "model and provider must be given", 0, 1);
	if (cfg->ops)
		vpmu_ops_copy(&plan->ops, cfg->ops);
	if (!cfg->ops || !plan->ops.kick || !plan->ops.raise_pmi)
		return arch_refuse(err, -VPMU_EINVAL,
				   "ops, with kick and raise_pmi within its size",
				   cfg->ops ? cfg->ops->size : 0, sizeof(plan->ops));
	p = cfg->provider->ops;
	if (p->size < ARCH_PROVIDER_OPS_SIZE)
		return arch_refuse(err, -VPMU_EINVAL, "provider's ops' size",
				   p->size, ARCH_PROVIDER_OPS_SIZE);
	if (p->event_size < sizeof(struct vpmu_event) || p->event_size % 8)
		return arch_refuse(err, -VPMU_EINVAL,
				   "provider's event size, a multiple of 8",
				   p->event_size, sizeof(struct vpmu_event));
	if (cfg->provider->model != cfg->model)
		return arch_refuse(err, -VPMU_EINVAL,
				   "provider understands another model's events",
				   0, 0);
	return 0;
}

static int arch_check_model(const struct vpmu_model *m, struct vpmu_error *err)
{
	uint8_t versions = m->vendor == VPMU_VENDOR_AMD ? 2 : 6;

	if (m->vendor > VPMU_VENDOR_AMD)
		return arch_refuse(err, -VPMU_EOPNOTSUPP,
				   "model's vendor, limited to Intel and AMD",
				   m->vendor, VPMU_VENDOR_AMD);
	if (m->version < 1 || m->version > versions || m->version_most > versions)
		return arch_refuse(err, -VPMU_EINVAL, "model's version",
				   m->version, versions);
	if (m->vendor == VPMU_VENDOR_AMD && (m->n_fixed || m->n_gp < ARCH_K7_PMCS))
		return arch_refuse(err, -VPMU_EINVAL,
				   "AMD model's n_gp, and no fixed counters",
				   m->n_gp, ARCH_K7_PMCS);
	if (m->n_gp < 1 || m->n_gp > ARCH_GP_MAX)
		return arch_refuse(err, -VPMU_EINVAL, "model's n_gp",
				   m->n_gp, ARCH_GP_MAX);
	if (m->width_bits < 32 || m->width_bits > 63)
		return arch_refuse(err, -VPMU_EINVAL, "model's width_bits",
				   m->width_bits, 63);
	return 0;
}

/* The most fixed counters that there can be; @what says what limits them. */
static uint32_t arch_fixed_limit(const struct vpmu_arch_config *cfg,
				 uint8_t version, const char **what)
{
	if (version < 2) {
		*what = "n_fixed, limited by version 1";
		return 0;
	}
	*what = "n_fixed, limited by the model";
	if (cfg->model->n_fixed <= ARCH_FIXED_SLOTS)
		return cfg->model->n_fixed;
	if (arch_topdown_counted(cfg))
		return ARCH_FIXED_MAX;
	*what = "n_fixed, limited by the provider, which counts no slots";
	return ARCH_FIXED_SLOTS;
}

static int arch_plan_fixed(const struct vpmu_arch_config *cfg,
			   struct arch_plan *plan, struct vpmu_error *err)
{
	const char *what;
	uint32_t limit = arch_fixed_limit(cfg, plan->version, &what);

	if (cfg->n_fixed < -1)
		return arch_refuse(err, -VPMU_EINVAL, "n_fixed",
				   (uint64_t)(int64_t)cfg->n_fixed, limit);
	plan->n_fixed = cfg->n_fixed < 0 ? limit : (uint8_t)cfg->n_fixed;
	if (plan->n_fixed > limit)
		return arch_refuse(err, -VPMU_EOPNOTSUPP, what,
				   plan->n_fixed, limit);
	if (plan->n_fixed > cfg->provider->n_fixed)
		return arch_refuse(err, -VPMU_EOPNOTSUPP,
				   "n_fixed, limited by the provider",
				   plan->n_fixed, cfg->provider->n_fixed);
	return 0;
}

/* The bits of a selector that choose what is counted. */
static uint64_t arch_select(const struct vpmu_model *m)
{
	return vpmu_event_name_bits(m) | VPMU_EVTSEL_CONDITION;
}

/* Bits 35:32 of an event select are AMD's; KVM refuses them as we do. */
static int arch_check_filter(const struct vpmu_filter *f, uint64_t select)
{
	int ret = f ? vpmu_filter_check(f) : 0;
	uint32_t i;

	if (ret || !f || !(f->flags & VPMU_FILTER_MASKED))
		return ret;
	for (i = 0; i < f->n_events; i++)
		if (f->events[i] & VPMU_EVTSEL_EVENT_HIGH & ~select)
			return -VPMU_EINVAL;
	return 0;
}

#define ARCH_CPUID_FIRST	0x40000100u
#define ARCH_CPUID_LAST		0x4000ff00u

static bool arch_has_clock(const struct vpmu_provider_ops *p)
{
	return p->size >= offsetof(struct vpmu_provider_ops, clock) + sizeof(p->clock) &&
	       p->clock;
}

static int arch_check_loss(const struct vpmu_arch_config *cfg, struct vpmu_error *err)
{
	uint32_t base = cfg->cpuid_base;
	int ret = arch_check_filter(cfg->filter, arch_select(cfg->model));

	if (ret)
		return arch_refuse(err, ret, "event filter's entries, action and flags",
				   cfg->filter->n_events, VPMU_FILTER_EVENTS_MAX);
	if (!base)
		return 0;
	if (base < ARCH_CPUID_FIRST || base > ARCH_CPUID_LAST || base & 0xff)
		return arch_refuse(err, -VPMU_EINVAL,
				   "cpuid_base, a multiple of 100H from 40000100H",
				   base, ARCH_CPUID_LAST);
	if (!arch_has_clock(cfg->provider->ops))
		return arch_refuse(err, -VPMU_EOPNOTSUPP,
				   "cpuid_base, limited by the provider without a clock",
				   base, 0);
	return 0;
}

/*
 * Only PerfMonV2 tells an AMD guest how many counters there are; without it their
 * number follows from PerfCtrExtCore.
 */
static int arch_plan_gp(const struct vpmu_arch_config *cfg, struct arch_plan *plan,
			struct vpmu_error *err)
{
	const struct vpmu_model *m = cfg->model;
	bool ext = cfg->capabilities & VPMU_CAP_AMD_EXT_CORE;
	bool amd = m->vendor == VPMU_VENDOR_AMD;
	uint8_t most = amd && !ext ? ARCH_K7_PMCS : m->n_gp;

	if (amd && plan->version >= 2 && !ext)
		return arch_refuse(err, -VPMU_EINVAL,
				   "version 2 of AMD, which needs PerfCtrExtCore",
				   plan->version, 1);
	plan->n_gp = cfg->n_gp ? cfg->n_gp : most;
	if (plan->n_gp > m->n_gp)
		return arch_refuse(err, -VPMU_EOPNOTSUPP,
				   "n_gp, limited by the model",
				   plan->n_gp, m->n_gp);
	if (amd && plan->version < 2 && plan->n_gp != most)
		return arch_refuse(err, -VPMU_EOPNOTSUPP,
				   "n_gp, given by PerfCtrExtCore without PerfMonV2",
				   plan->n_gp, most);
	if (plan->n_gp > cfg->provider->n_gp)
		return arch_refuse(err, -VPMU_EOPNOTSUPP,
				   "n_gp, limited by the provider",
				   plan->n_gp, cfg->provider->n_gp);
	return 0;
}

/* A format is one number, so it has to be the model's. */
static int arch_plan_lbr(const struct vpmu_arch_config *cfg, struct arch_plan *plan,
			 struct vpmu_error *err)
{
	uint64_t asked = cfg->capabilities & VPMU_CAP_LBR;

	plan->lbr = (uint8_t)arch_lbr_kind(cfg->model, cfg->capabilities);
	if (cfg->lbr_elsewhere && (plan->lbr != ARCH_LBR_LEGACY || !plan->ops.set_debugctl))
		return arch_refuse(err, -VPMU_EINVAL, "lbr_elsewhere, with a legacy format and "
				   "ops->set_debugctl", asked, 0);
	if (!plan->lbr)
		return 0;
	if (cfg->model->vendor == VPMU_VENDOR_AMD) {
		if (!(cfg->model->capabilities & VPMU_CAP_AMD_LBR) || plan->version < 2)
			return arch_refuse(err, -VPMU_EOPNOTSUPP,
					   "LbrExtV2, limited by the model and the version",
					   VPMU_CAP_AMD_LBR, 0);
	} else if (asked != (cfg->model->capabilities & VPMU_CAP_LBR)) {
		return arch_refuse(err, -VPMU_EOPNOTSUPP,
				   "format of branch records, limited by the model",
				   asked, cfg->model->capabilities & VPMU_CAP_LBR);
	}
	if (!cfg->lbr_elsewhere && !arch_lbr_possible(cfg->provider, &plan->ops))
		return arch_refuse(err, -VPMU_EOPNOTSUPP,
				   "format of branch records, limited by the provider and "
				   "ops->set_lbr", asked, 0);
	return 0;
}

/*
 * Formats 4 and 5 come with baseline here, earlier ones without. Architectural PEBS has a
 * format of its own, and version 6 no other.
 */
static int arch_plan_pebs(const struct vpmu_arch_config *cfg,
			  const struct arch_plan *plan, struct vpmu_error *err)
{
	uint64_t asked = cfg->capabilities & VPMU_CAP_PEBS;

	if (!asked || cfg->model->vendor != VPMU_VENDOR_INTEL)
		return 0;
	if (asked != (cfg->model->capabilities & VPMU_CAP_PEBS))
		return arch_refuse(err, -VPMU_EOPNOTSUPP, "PEBS, limited by the model",
				   asked, cfg->model->capabilities & VPMU_CAP_PEBS);
	if (plan->version < 2 || (plan->version > 5) != (asked == VPMU_CAP_PEBS_ARCH))
		return arch_refuse(err, -VPMU_EOPNOTSUPP, "PEBS, limited by the version",
				   asked, 0);
	if (cfg->linear_bits && cfg->linear_bits != 48 && cfg->linear_bits != 57)
		return arch_refuse(err, -VPMU_EINVAL, "linear_bits, 48 or 57",
				   cfg->linear_bits, 57);
	if (cfg->physical_bits && (cfg->physical_bits < 32 || cfg->physical_bits > 52))
		return arch_refuse(err, -VPMU_EINVAL, "physical_bits, 32 to 52",
				   cfg->physical_bits, 52);
	if (!arch_pebs_possible(cfg->provider, &plan->ops))
		return arch_refuse(err, -VPMU_EOPNOTSUPP, "PEBS, limited by the provider "
				   "and the hooks for guest memory and samples",
				   asked, 0);
	return 0;
}

static int arch_plan_make(const struct vpmu_arch_config *cfg,
			  struct arch_plan *plan, struct vpmu_error *err)
{
	const struct vpmu_model *m;
	int ret = arch_check_pointers(cfg, plan, err);
	uint8_t most;

	if (!ret)
		ret = arch_check_model(cfg->model, err);
	if (!ret)
		ret = arch_check_loss(cfg, err);
	if (ret)
		return ret;
	m = cfg->model;
	most = m->version_most > m->version ? m->version_most : m->version;
	plan->version = cfg->version ? cfg->version : m->version;
	if (plan->version > most)
		return arch_refuse(err, -VPMU_EOPNOTSUPP,
				   "version, limited by the model",
				   plan->version, most);
	ret = arch_plan_gp(cfg, plan, err);
	if (ret)
		return ret;
	if (cfg->capabilities & ~m->capabilities)
		return arch_refuse(err, -VPMU_EOPNOTSUPP,
				   "capabilities, limited by the model",
				   cfg->capabilities, m->capabilities);
	ret = arch_plan_lbr(cfg, plan, err);
	if (!ret)
		ret = arch_plan_pebs(cfg, plan, err);
	if (ret)
		return ret;
	return arch_plan_fixed(cfg, plan, err);
}

int vpmu_arch_size(const struct vpmu_arch_config *cfg, size_t *size,
		   struct vpmu_error *err)
{
	struct arch_plan plan;
	int ret = arch_plan_make(cfg, &plan, err);

	if (ret)
		return ret;
	*size = sizeof(struct vpmu_arch) + (size_t)(plan.n_gp + plan.n_fixed + !!plan.lbr) *
					   cfg->provider->ops->event_size;
	return 0;
}

/* A selector's bits that AMD's registers keep: all but 19 and 21, up to 35:32. */
#define ARCH_EVTSEL_AMD	(UINT32_MAX & ~(VPMU_EVTSEL_PIN | VPMU_EVTSEL_ANY))

/*
 * Without PerfMonV2 there are only selectors and counters.
 * Source: AMD64 APM vol. 2, "Performance Monitoring Counters", "Last-Branch Record
 * and PMC Freeze"; Linux, arch/x86/events/amd/core.c.
 */
static void arch_resolve_amd(struct vpmu_arch *v)
{
	struct arch_valid *m = &v->valid;
	uint64_t counters = (1ull << v->n_gp) - 1;
	bool ext = v->capabilities & VPMU_CAP_AMD_EXT_CORE, v2 = v->version >= 2;

	v->svm = v->capabilities & VPMU_CAP_AMD_SVM;
	m->counter = (1ull << v->model->width_bits) - 1;
	m->evtsel = ARCH_EVTSEL_AMD | VPMU_EVTSEL_EVENT_HIGH |
		    (v->svm ? ARCH_EVTSEL_ONLY : 0);
	m->debugctl_dropped = VPMU_DEBUGCTL_LBR | VPMU_DEBUGCTL_BTF | VPMU_DEBUGCTL_PINS;
	v->known |= 1ull << ARCH_HAS_K7 | 1ull << ARCH_HAS_AMD | 1ull << ARCH_HAS_AMD_GLOBAL |
		    1ull << ARCH_HAS_AMD_LBR | 1ull << ARCH_HAS_AMD_LBR_CTL |
		    1ull << ARCH_HAS_AMD_NONE;
	v->has[ARCH_HAS_ALWAYS] = 1;
	v->has[ARCH_HAS_K7] = v->n_gp < ARCH_K7_PMCS ? v->n_gp : ARCH_K7_PMCS;
	v->has[ARCH_HAS_AMD] = ext ? 2 * v->n_gp : 0;
	v->has[ARCH_HAS_AMD_GLOBAL] = v2;
	if (!v2) {
		v->ungated = (uint32_t)counters;
		return;
	}
	m->global_ctrl = counters;
	v->global_ctrl_reset = counters;
	m->status = counters;
	if (v->capabilities & VPMU_CAP_AMD_FREEZE) {
		m->debugctl = VPMU_DEBUGCTL_FREEZE_LBRS | VPMU_DEBUGCTL_FREEZE_PERFMON;
		m->status |= VPMU_STATUS_CTR_FRZ;
		v->freeze_keeps = UINT64_MAX;
		v->freeze_status = VPMU_STATUS_CTR_FRZ;
	}
	m->status_set = m->status;
}

/*
 * AnyThread (versions 3 and 4; deprecated in 5) is accepted and counts the same:
 * a vCPU has no SMT sibling here.
 */
static void arch_resolve_masks(struct vpmu_arch *v)
{
	struct arch_valid *m = &v->valid;
	bool any = v->version == 3 || v->version == 4;
	uint64_t counters = arch_pmc_bits(v, (1u << v->n_pmc) - 1);
	unsigned int i;

	m->counter = (1ull << v->model->width_bits) - 1;
	m->evtsel = UINT32_MAX & ~(any ? 0 : VPMU_EVTSEL_ANY);
	m->debugctl_dropped = VPMU_DEBUGCTL_LBR | VPMU_DEBUGCTL_BTF;
	if (v->version < 2)
		return;
	for (i = 0; i < v->n_fixed; i++)
		m->fixed_ctrl |= (uint64_t)(any ? 0xf : 0xb) << (4 * i);
	m->global_ctrl = counters;
	m->status = counters | VPMU_STATUS_BUFFER | VPMU_STATUS_CHANGED;
	if (v->version >= 3)
		m->status |= VPMU_STATUS_UNCORE;
	if (v->version >= 4) {
		m->status |= VPMU_STATUS_LBR_FRZ | VPMU_STATUS_CTR_FRZ |
			     VPMU_STATUS_ASCI;
		/* KVM writes CondChgd back with all else that it has read. Source: Linux 7.3. */
		m->status_set = m->status;
	}
	m->debugctl = VPMU_DEBUGCTL_FREEZE_PERFMON;
	if (v->capabilities & VPMU_CAP_SMM_FREEZE)
		m->debugctl |= VPMU_DEBUGCTL_FREEZE_SMM;
}

/*
 * Pin control is reserved from here on. Source: Linux, arch/x86/include/asm/perf_event.h
 * and arch/x86/events/intel/core.c; SDM vol. 3, "Architectural Performance Monitoring
 * Version 6", "Auto Counter Reload".
 */
static void arch_resolve_v6(struct vpmu_arch *v)
{
	uint32_t ext = v->model->extensions;
	struct arch_valid *m = &v->valid;
	unsigned int i;

	if (v->version < 6)
		return;
	v->extensions = ext;
	v->has[ARCH_HAS_BLOCK_GP] = (uint8_t)(VPMU_PMC_STRIDE * v->n_gp);
	v->has[ARCH_HAS_BLOCK_FIXED] = (uint8_t)(VPMU_PMC_STRIDE * v->n_fixed);
	m->evtsel &= ~VPMU_EVTSEL_PIN;
	if (ext & VPMU_EXT_UMASK2)
		m->evtsel |= VPMU_EVTSEL_UMASK2;
	if (ext & VPMU_EXT_EQ) {
		m->evtsel |= VPMU_EVTSEL_EQ;
		v->select |= VPMU_EVTSEL_EQ;
	}
	if (ext & VPMU_EXT_RDPMC_USER) {
		m->evtsel_hidden = VPMU_EVTSEL_RDPMC_USER;
		m->evtsel |= m->evtsel_hidden;
		m->fixed_hidden = VPMU_FIXED_RDPMC_USER;
		for (i = 0; i < v->n_fixed; i++)
			m->fixed_ctrl |= m->fixed_hidden << (4 * i);
	}
	if (ext & VPMU_EXT_RELOAD) {
		m->reload_by = arch_pmc_bits(v, (1u << v->n_pmc) - 1);
		m->reload = UINT32_MAX;
	}
}

static void arch_resolve_behaviour(struct vpmu_arch *v)
{
	bool full = v->capabilities & VPMU_CAP_FULL_WIDTH;

	v->pmi_mask = true;
	v->misc_enable = VPMU_MISC_ENABLE_PERFMON | VPMU_MISC_ENABLE_NO_BTS |
			 VPMU_MISC_ENABLE_NO_PEBS;
	v->has[ARCH_HAS_ALWAYS] = 1;
	v->has[ARCH_HAS_GP] = v->n_gp;
	v->has[ARCH_HAS_GP_FULL] = full ? v->n_gp : 0;
	v->has[ARCH_HAS_FIXED] = v->n_fixed;
	v->has[ARCH_HAS_GLOBAL] = v->version >= 2;
	v->has[ARCH_HAS_STREAMLINED] = v->version >= 4;
	v->has[ARCH_HAS_CAPABILITIES] = v->capabilities != 0;
	if (v->version < 2)
		v->ungated = (1u << v->n_gp) - 1;
	else
		v->global_ctrl_reset = (1u << v->n_gp) - 1;
	if (v->version >= 4) {
		v->freeze_keeps = UINT64_MAX;
		v->freeze_status = VPMU_STATUS_CTR_FRZ;
	}
}

static void arch_resolve_loss(struct vpmu_arch *v, const struct vpmu_arch_config *cfg)
{
	const struct vpmu_provider_ops *p = cfg->provider->ops;

	v->filter = cfg->filter;
	v->cpuid_base = cfg->cpuid_base;
	if (!v->cpuid_base)
		return;
	v->clock = p->clock;
	if (p->size >= offsetof(struct vpmu_provider_ops, running) + sizeof(p->running))
		v->running = p->running;
	v->known |= 1ull << ARCH_HAS_LOSS | 1ull << ARCH_HAS_LOSS_PMC | 1ull << ARCH_HAS_LOSS_NONE;
	v->has[ARCH_HAS_LOSS] = VPMU_MSR_LOSS_CTRL - VPMU_MSR_LOSS;
	v->has[ARCH_HAS_LOSS_PMC] = 4 * v->n_pmc;
	v->known |= 1ull << ARCH_HAS_LOSS_LBR;
	v->has[ARCH_HAS_LOSS_LBR] = v->lbr.kind != ARCH_LBR_NONE;
}

static void arch_resolve_lbr(struct vpmu_arch *v, enum arch_lbr_kind kind, bool elsewhere)
{
	v->lbr.kind = kind;
	if (!kind)
		return;
	v->lbr.elsewhere = elsewhere;
	v->lbr.owned = elsewhere;
	v->lbr.stack = elsewhere ? &v->lbr.kept : v->ops.set_lbr(v->ctx, false);
	arch_lbr_resolve(v);
	if (kind == ARCH_LBR_AMD)
		return;
	v->valid.debugctl |= VPMU_DEBUGCTL_FREEZE_LBRS;
	if (elsewhere)
		return;
	v->known |= 1ull << ARCH_HAS_LER;
	v->has[ARCH_HAS_LER] = 2;
}

int vpmu_arch_init(struct vpmu_arch *v, const struct vpmu_arch_config *cfg,
		   struct vpmu_error *err)
{
	struct arch_plan plan;
	int ret = arch_plan_make(cfg, &plan, err);

	if (ret)
		return ret;
	memset(v, 0, sizeof(*v));
	v->model = cfg->model;
	v->provider = cfg->provider;
	v->ops = plan.ops;
	v->ctx = cfg->ctx;
	v->capabilities = cfg->capabilities;
	v->version = plan.version;
	v->n_gp = plan.n_gp;
	v->n_fixed = plan.n_fixed;
	v->n_pmc = plan.n_gp + plan.n_fixed;
	v->regain = cfg->regain;
	v->select = arch_select(v->model);
	v->known = (1ull << ARCH_HAS_K7) - 1;
	if (v->model->vendor == VPMU_VENDOR_AMD) {
		arch_resolve_amd(v);
		arch_resolve_lbr(v, plan.lbr, false);
	} else {
		arch_resolve_masks(v);
		arch_resolve_behaviour(v);
		arch_resolve_v6(v);
		arch_resolve_lbr(v, plan.lbr, cfg->lbr_elsewhere);
		arch_pebs_resolve(v, cfg);
		arch_extra_resolve(v);
		arch_topdown_resolve(v);
	}
	arch_cpuid_resolve(v);
	arch_resolve_loss(v, cfg);
	vpmu_arch_reset(v, false);
	return 0;
}

void vpmu_arch_reset(struct vpmu_arch *v, bool init)
{
	v->r.debugctl = 0;
	if (init) {
		arch_lbr_reset(v, true);
		vpmu_arch_svme(v, false);
		return;
	}
	arch_lbr_reset(v, false);
	arch_pmc_release_all(v);
	(void)vpmu_atomic_take(&v->pending);
	(void)vpmu_atomic_take(&v->changed);
	memset(&v->r, 0, sizeof(v->r));
	memset(&v->reload, 0, sizeof(v->reload));
	arch_pebs_clear(v);
	arch_extra_clear(v);
	memset(&v->topdown, 0, sizeof(v->topdown));
	v->r.global_ctrl = v->global_ctrl_reset;
	v->own = 0;
	v->on = 0;
	v->uncounted = 0;
	v->touched = 0;
	arch_loss_reset(v);
}

uint64_t vpmu_arch_misc_enable(const struct vpmu_arch *v)
{
	return v->misc_enable;
}

/*
 * Source: SDM vol. 3, "Freezing LBR and Performance Counters on PMI". The legacy
 * way clears GLOBAL_CTRL, also what SMM put aside; the streamlined one sets
 * CTR_FRZ.
 */
static void arch_freeze(struct vpmu_arch *v)
{
	v->r.global_ctrl &= v->freeze_keeps;
	v->r.smm_global_ctrl &= v->freeze_keeps;
	arch_raise_status(v, v->freeze_status);
	v->marked.gates = true;
}

/*
 * A PMI for a loss has no status bit and freezes nothing: a guest that does not look
 * at the loss block would never acknowledge it.
 */
void vpmu_arch_service(struct vpmu_arch *v)
{
	uint32_t pmcs = vpmu_atomic_take(&v->pending);
	bool buffer = false, pmi;

	vpmu_assert(arch_at_rest(v));
	if (vpmu_atomic_read(&v->changed))
		arch_loss_poll(v);
	if (vpmu_atomic_read(&v->lbr.changed))
		arch_lbr_look(v);
	pmi = v->loss.pmi;
	v->loss.pmi = false;
	if (pmcs && v->pebs.on)
		pmcs = arch_pebs_overflow(v, pmcs, &buffer);
	if (buffer)
		arch_raise_status(v, v->pebs.status);
	if (pmcs) {
		arch_pebs_reload(v, pmcs);
		arch_raise_status(v, arch_pmc_bits(v, pmcs & ~arch_pmc_silent(v)));
		if (v->topdown_fields && pmcs >> (v->n_gp + ARCH_FIXED_SLOTS) & 1)
			arch_raise_status(v, arch_topdown_overflow(v));
	}
	if (buffer || pmcs & arch_pmc_interrupting(v)) {
		pmi = true;
		if (v->r.debugctl & VPMU_DEBUGCTL_FREEZE_PERFMON)
			arch_freeze(v);
		arch_lbr_freeze(v);
		arch_sync(v);
	}
	if (!pmi)
		return;
	vpmu_trace(&v->ops, v->ctx, VPMU_TRACE_PMI, 0, 0, v->r.status, 0);
	v->ops.raise_pmi(v->ctx, v->pmi_mask);
}

/*
 * The CPU clears GLOBAL_CTRL on the way in and restores it at RSM. The handler
 * can see that, and may set it to count itself.
 * Source: SDM vol. 3, "IA32_DEBUGCTL MSR", FREEZE_WHILE_SMM_EN.
 */
void vpmu_arch_smm(struct vpmu_arch *v, bool entered)
{
	arch_lbr_smm(v, entered);
	if (entered == v->r.smm_frozen)
		return;
	if (entered && !(v->r.debugctl & VPMU_DEBUGCTL_FREEZE_SMM))
		return;
	v->r.smm_frozen = entered;
	if (entered) {
		v->r.smm_global_ctrl = v->r.global_ctrl;
		v->r.global_ctrl = 0;
	} else {
		v->r.global_ctrl = v->r.smm_global_ctrl;
		v->r.smm_global_ctrl = 0;
	}
	v->marked.gates = true;
	arch_sync(v);
}

void vpmu_arch_svme(struct vpmu_arch *v, bool on)
{
	unsigned int i;

	if (!v->svm || on == v->r.svme)
		return;
	v->r.svme = on;
	for (i = 0; i < v->n_gp; i++)
		if (v->r.evtsel[i] & ARCH_EVTSEL_ONLY)
			arch_mark(v, 1u << i);
	arch_sync(v);
}

int vpmu_arch_filter(struct vpmu_arch *v, const struct vpmu_filter *f)
{
	int ret = arch_check_filter(f, v->select);

	if (ret)
		return ret;
	v->filter = f;
	/*
	 * Selectors that the provider has refused are not tried again, so they are not
	 * reported twice.
	 */
	v->marked.pmcs = (1u << v->n_pmc) - 1;
	arch_sync(v);
	return 0;
}

/* Tries at lost counters are 1, 2, 4 slices apart, and so on, but never more than this. */
#define ARCH_REGAIN_PAUSE 32

static void arch_regain(struct vpmu_arch *v)
{
	bool pmcs = v->on & v->loss.lost, lbr = arch_lbr_lost(v);

	if (!pmcs && !lbr) {
		v->tries = 0;
		v->pause = 0;
		return;
	}
	if (v->pause && --v->pause)
		return;
	v->pause = 1u << v->tries;
	if (v->pause < ARCH_REGAIN_PAUSE)
		v->tries++;
	if (pmcs)
		arch_pmc_regain(v);
	if (lbr)
		arch_lbr_regain(v);
}

bool vpmu_arch_slice(struct vpmu_arch *v)
{
	bool again;

	vpmu_assert(arch_at_rest(v));
	if (v->regain)
		arch_regain(v);
	again = arch_pmc_slice(v);
	again |= arch_lbr_slice(v);
	return again || (v->regain && (v->own || arch_lbr_lost(v)));
}

bool vpmu_arch_uncounted(const struct vpmu_arch *v, size_t i, struct vpmu_uncounted *row)
{
	const struct vpmu_event_def *def;
	struct vpmu_recipe recipe;

	if (i >= v->uncounted_events.n)
		return false;
	def = vpmu_event_find(v->model, v->uncounted_events.row[i].select, -1);
	row->select = v->uncounted_events.row[i].select;
	row->times = v->uncounted_events.row[i].times;
	row->name = def ? def->name : NULL;
	row->needs = def ? def->needs : NULL;
	/* The option that counts the event does not count it with this condition. */
	if (def && def->signals && vpmu_event_resolve(v->model, row->select, -1, ARCH_BANKS,
						      VPMU_SIGNALS_ALL, &recipe))
		row->needs = NULL;
	return true;
}

bool vpmu_arch_pmc_info(struct vpmu_arch *v, unsigned int pmc,
			struct vpmu_pmc_info *info)
{
	const struct vpmu_provider_ops *ops = v->provider->ops;

	if (pmc >= v->n_pmc)
		return false;
	if (v->on)
		arch_loss_clock(v); /* times up to now; reasons are the service's to find */
	info->select = pmc < v->n_gp ? v->r.evtsel[pmc]
				     : arch_pmc_fixed_bits(v, pmc - v->n_gp);
	info->value = arch_event_read(v, pmc);
	info->enabled = v->on >> pmc & 1;
	info->state = v->made >> pmc & 1 ? ops->state(arch_event_of(v, pmc)) : VPMU_EVENT_OFF;
	info->quality = arch_pmc_quality(v, pmc);
	info->loss = v->loss.pmc[pmc].reason;
	info->generation = v->loss.pmc[pmc].generation;
	info->time_enabled = v->clock ? arch_loss_enabled(v, pmc) : 0;
	info->time_running = v->clock ? arch_loss_running(v, pmc) : 0;
	return true;
}
