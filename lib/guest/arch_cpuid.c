// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * CPUID. The bits that are ours are resolved at init, as values and as masks of what the
 * caller's leaf keeps.
 */
#include "arch_cpuid.h"
#include "arch_internal.h"

#define ARCH_CPUID_EXT_LEAF	0x23
#define ARCH_CPUID_PDCM		(1u << 15) /* leaf 1, ECX */
#define ARCH_CPUID_DTES64	(1u << 2)  /* likewise; and DS, leaf 1 EDX */
#define ARCH_CPUID_DS		(1u << 21)
#define ARCH_CPUID_LBR		(1u << 19) /* leaf 7, EDX */
#define ARCH_CPUID_IBS		(1u << 10) /* leaf 80000001H, ECX */
#define ARCH_CPUID_EXT_CORE	(1u << 23)
#define ARCH_CPUID_EXT_NB	(1u << 24)
#define ARCH_CPUID_EXT_LLC	(1u << 28)
#define ARCH_CPUID_BRS		(1u << 31) /* leaf 80000008H, EBX */
#define ARCH_CPUID_PERFMON_EXT	(1u << 8)  /* leaf 7.1, EAX */

static struct arch_leaf *leaf_new(struct vpmu_arch *v, uint32_t leaf, uint32_t subleaf)
{
	struct arch_leaf *l = &v->leaf[v->n_leaf++];

	vpmu_assert(v->n_leaf <= ARCH_LEAVES);
	l->leaf = leaf;
	l->subleaf = subleaf;
	return l;
}

/* A leaf that is ours whole, to be filled. */
static struct vpmu_cpuid *leaf_whole(struct vpmu_arch *v, uint32_t leaf)
{
	return &leaf_new(v, leaf, ARCH_SUBLEAF_ANY)->set;
}

/* A leaf of which nothing is ours yet. */
static struct arch_leaf *leaf_part(struct vpmu_arch *v, uint32_t leaf)
{
	struct arch_leaf *l = leaf_new(v, leaf, ARCH_SUBLEAF_ANY);

	memset(&l->keep, 0xff, sizeof(l->keep));
	return l;
}

/* A sub-leaf of leaf 23H, to be filled; the others are the leaf's own. */
static struct vpmu_cpuid *leaf_ext(struct vpmu_arch *v, uint32_t subleaf)
{
	return &leaf_new(v, ARCH_CPUID_EXT_LEAF, subleaf)->set;
}

/* AMD has no PDCM and no leaf 0AH; leaf 80000001H and, of v2, 80000022H take their place. */
static void cpuid_amd(struct vpmu_arch *v)
{
	struct vpmu_cpuid *set;
	struct arch_leaf *l;

	leaf_part(v, 1)->keep.ecx = ~ARCH_CPUID_PDCM;
	(void)leaf_whole(v, 0xa);
	l = leaf_part(v, 0x80000001);
	l->keep.ecx = ~(ARCH_CPUID_IBS | ARCH_CPUID_EXT_CORE | ARCH_CPUID_EXT_NB |
			ARCH_CPUID_EXT_LLC);
	if (v->capabilities & VPMU_CAP_AMD_EXT_CORE)
		l->set.ecx = ARCH_CPUID_EXT_CORE;
	leaf_part(v, 0x80000008)->keep.ebx = ~ARCH_CPUID_BRS;
	set = leaf_whole(v, 0x80000022);
	if (v->version < 2)
		return;
	set->eax = 1u << 0; /* PerfMonV2 */
	if (v->capabilities & VPMU_CAP_AMD_FREEZE)
		set->eax |= 1u << 2; /* LbrAndPmcFreeze */
	set->ebx = v->n_gp;
	if (v->lbr.kind) {
		set->eax |= 1u << 1; /* LbrExtV2 */
		set->ebx |= (uint32_t)v->lbr.depth << 4;
	}
}

/* Architectural events that the provider does not count are unavailable. */
static uint32_t cpuid_unavailable(const struct vpmu_arch *v)
{
	const struct vpmu_provider_ops *ops = v->provider->ops;
	struct vpmu_event_attr attr;
	uint32_t unavailable = 0;
	unsigned int i;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.banks = VPMU_BANKS_KERNEL | VPMU_BANKS_USER;
	attr.pinned = true;
	attr.fixed = -1;
	attr.slot = -1;
	attr.period = v->valid.counter + 1;
	for (i = 0; i < v->model->n_arch_events && i < 32; i++) {
		attr.select = i < VPMU_ARCH_EVENTS ? vpmu_arch_event[i] : 0;
		if (i >= VPMU_ARCH_EVENTS ||
		    ops->quality(v->provider, &attr) == VPMU_QUALITY_NONE)
			unavailable |= 1u << i;
	}
	return unavailable;
}

/* Sub-leaves 4 and 5: groups of architectural PEBS, and counters that have it and PDIST. */
static void cpuid_ext_pebs(struct vpmu_arch *v)
{
	uint32_t gp = (1u << v->n_gp) - 1, fixed = (1u << v->n_fixed) - 1;
	struct vpmu_cpuid *set;

	leaf_ext(v, 4)->ebx = (uint32_t)((v->pebs.valid_groups & ~VPMU_CFG_C_EN) >> 32);
	set = leaf_ext(v, 5);
	set->eax = gp;
	set->ebx = (uint32_t)v->model->pdist & gp;
	set->ecx = fixed;
	set->edx = (uint32_t)(v->model->pdist >> VPMU_STATUS_FIXED_SHIFT) & fixed;
}

/*
 * Sub-leaf 3 has a bit for each event that is available, leaf 0AH one for each that is
 * not. Sub-leaves that are not offered, and those of earlier versions, are zeros.
 */
static void cpuid_ext(struct vpmu_arch *v, uint32_t unavailable)
{
	uint32_t gp = (1u << v->n_gp) - 1, fixed = (1u << v->n_fixed) - 1;
	struct arch_leaf *l = leaf_part(v, 7);
	struct vpmu_cpuid *set;

	l->subleaf = 1;
	l->keep.eax = ~ARCH_CPUID_PERFMON_EXT;
	if (v->version >= 6) {
		l->set.eax = ARCH_CPUID_PERFMON_EXT;
		set = leaf_ext(v, 0);
		set->eax = 1u << 0 | 1u << 1 | 1u << 3 |
			   (v->pebs.valid_groups ? 1u << 4 | 1u << 5 : 0);
		set->ebx = v->extensions & ~VPMU_EXT_RELOAD;
		if (v->extensions & VPMU_EXT_RELOAD) {
			set->eax |= 1u << 2;
			set = leaf_ext(v, 2);
			set->eax = gp; /* can be reloaded */
			set->ebx = fixed;
			set->ecx = gp; /* can cause it */
			set->edx = fixed;
		}
		set = leaf_ext(v, 1);
		set->eax = gp;
		set->ebx = fixed;
		leaf_ext(v, 3)->eax = ~unavailable & ((1u << v->model->n_arch_events) - 1);
		if (v->pebs.valid_groups)
			cpuid_ext_pebs(v);
	}
	(void)leaf_whole(v, ARCH_CPUID_EXT_LEAF);
}

static void cpuid_intel(struct vpmu_arch *v)
{
	struct arch_leaf *l = leaf_part(v, 1);
	struct vpmu_cpuid *set = leaf_whole(v, 0xa);

	l->keep.ecx = ~(ARCH_CPUID_PDCM | ARCH_CPUID_DTES64);
	l->keep.edx = ~ARCH_CPUID_DS;
	l->set.ecx = (v->capabilities ? ARCH_CPUID_PDCM : 0) |
		     (v->has[ARCH_HAS_DS] ? ARCH_CPUID_DTES64 : 0);
	l->set.edx = v->has[ARCH_HAS_DS] ? ARCH_CPUID_DS : 0;
	set->eax = v->version | (uint32_t)v->n_gp << 8 |
		   (uint32_t)v->model->width_bits << 16 |
		   (uint32_t)v->model->n_arch_events << 24;
	set->ebx = cpuid_unavailable(v);
	if (v->version >= 2)
		set->edx = v->n_fixed | (uint32_t)v->model->width_bits << 5;
	if (v->version >= 5) {
		set->ecx = (1u << v->n_fixed) - 1;
		set->edx |= 1u << 15; /* AnyThread deprecated */
	}
	cpuid_ext(v, set->ebx);
	l = leaf_part(v, 7);
	l->subleaf = 0;
	l->keep.edx = ~ARCH_CPUID_LBR;
	set = leaf_whole(v, 0x1c);
	if (v->lbr.kind != ARCH_LBR_ARCH)
		return;
	l->set.edx = ARCH_CPUID_LBR;
	set->eax = 1u << (VPMU_LBR_ENTRIES / 8 - 1); /* the depth; EIP, not linear */
	set->ebx = 7;       /* filters by ring and type, call-stack mode */
	set->ecx = 1u << 2 | /* types; predictions and cycle counts if the engine knows them */
		   (v->lbr.marks & VPMU_LBR_MISPREDICTED ? 1u : 0) |
		   (v->lbr.marks & VPMU_LBR_CYCLES ? 1u << 1 : 0) |
		   (uint32_t)v->lbr.loggable << 16;
}

void arch_cpuid_resolve(struct vpmu_arch *v)
{
	if (v->model->vendor == VPMU_VENDOR_AMD)
		cpuid_amd(v);
	else
		cpuid_intel(v);
}

/* Fill in @leaf if it is one of vpmu's own. */
static bool cpuid_own(const struct vpmu_arch *v, uint32_t leaf,
			   struct vpmu_cpuid *regs)
{
	if (!v->cpuid_base || leaf - v->cpuid_base > VPMU_CPUID_LOSS)
		return false;
	memset(regs, 0, sizeof(*regs));
	switch (leaf - v->cpuid_base) {
	case 0:
		regs->eax = v->cpuid_base + VPMU_CPUID_LOSS;
		regs->ebx = VPMU_CPUID_SIGNATURE_EBX;
		regs->ecx = VPMU_CPUID_SIGNATURE_ECX;
		regs->edx = VPMU_CPUID_SIGNATURE_EDX;
		break;
	case VPMU_CPUID_FEATURES:
		regs->eax = VPMU_CPUID_FEATURE_LOSS |
			    (v->lbr.kind ? VPMU_CPUID_FEATURE_LOSS_LBR : 0);
		break;
	default:
		regs->eax = VPMU_LOSS_VERSION | (uint32_t)v->n_gp << 8 |
			    (uint32_t)v->n_fixed << 16;
		regs->ebx = VPMU_MSR_LOSS;
		regs->ecx = (uint32_t)v->provider->time_hz;
		regs->edx = (uint32_t)(v->provider->time_hz >> 32);
		break;
	}
	return true;
}

bool vpmu_arch_cpuid(const struct vpmu_arch *v, uint32_t leaf, uint32_t subleaf,
		     struct vpmu_cpuid *regs)
{
	unsigned int i;

	if (cpuid_own(v, leaf, regs))
		return true;
	for (i = 0; i < v->n_leaf; i++) {
		const struct arch_leaf *l = &v->leaf[i];

		if (l->leaf != leaf ||
		    (l->subleaf != ARCH_SUBLEAF_ANY && l->subleaf != subleaf))
			continue;
		regs->eax = (regs->eax & l->keep.eax) | l->set.eax;
		regs->ebx = (regs->ebx & l->keep.ebx) | l->set.ebx;
		regs->ecx = (regs->ecx & l->keep.ecx) | l->set.ecx;
		regs->edx = (regs->edx & l->keep.edx) | l->set.edx;
		return true;
	}
	return false;
}
