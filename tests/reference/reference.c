/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The reference model. Sources: SDM vol. 3, "Architectural Performance
 * Monitoring" (versions 1 to 5), "Freezing LBR and Performance Counters on PMI",
 * "Freeze on SMI"; SDM vol. 2, "RDPMC", "CPUID". Register numbers and bits stand
 * here as the manual prints them, on purpose: a wrong constant in the library's
 * headers must not hide itself.
 */
#include "reference.h"

#include <string.h>

#define BIT(n) ((uint64_t)1 << (n))

/* What the configuration says --------------------------------------------- */

static uint64_t counter_mask(const struct ref_pmu *p)
{
	return BIT(p->cfg.width_bits) - 1;
}

static uint64_t gp_bits(const struct ref_pmu *p)
{
	return BIT(p->cfg.n_gp) - 1;
}

static uint64_t fixed_bits(const struct ref_pmu *p)
{
	return (BIT(p->cfg.n_fixed) - 1) << 32;
}

static bool has_any_thread(const struct ref_pmu *p)
{
	return p->cfg.version == 3 || p->cfg.version == 4;
}

static bool has_smm_freeze(const struct ref_pmu *p)
{
	return p->cfg.version >= 2 && (p->cfg.capabilities & BIT(12));
}

static bool has_full_width(const struct ref_pmu *p)
{
	return p->cfg.capabilities & BIT(13);
}

static uint64_t evtsel_accepted(const struct ref_pmu *p)
{
	uint64_t bits = 0;
	int i;

	for (i = 0; i < 32; i++)
		if (i != 21 || has_any_thread(p))
			bits |= BIT(i);
	return bits;
}

static uint64_t fixed_ctrl_accepted(const struct ref_pmu *p)
{
	uint64_t bits = 0;
	unsigned int i;

	for (i = 0; i < p->cfg.n_fixed; i++) {
		bits |= BIT(4 * i + 0);
		bits |= BIT(4 * i + 1);
		if (has_any_thread(p))
			bits |= BIT(4 * i + 2);
		bits |= BIT(4 * i + 3);
	}
	return bits;
}

static uint64_t status_reset_accepted(const struct ref_pmu *p)
{
	uint64_t bits = gp_bits(p) | fixed_bits(p) | BIT(62) | BIT(63);

	if (p->cfg.version >= 3)
		bits |= BIT(61);
	if (p->cfg.version >= 4)
		bits |= BIT(58) | BIT(59) | BIT(60);
	return bits;
}

static uint64_t status_set_accepted(const struct ref_pmu *p)
{
	return gp_bits(p) | fixed_bits(p) | BIT(58) | BIT(59) | BIT(60) | BIT(61) | BIT(62);
}

/* What an instruction is --------------------------------------------------- */

static bool is_branch(enum ref_kind k)
{
	return k != REF_PLAIN;
}

static bool is_conditional(enum ref_kind k)
{
	return k == REF_JCC_TAKEN || k == REF_JCC_NOT_TAKEN;
}

static bool is_near_taken(enum ref_kind k)
{
	return k == REF_JCC_TAKEN || k == REF_JMP || k == REF_CALL || k == REF_RET ||
	       k == REF_JMP_INDIRECT || k == REF_CALL_INDIRECT;
}

static bool in_user(enum ref_bank b)
{
	return b == REF_USER || b == REF_NESTED_USER;
}

/* Events ------------------------------------------------------------------- */

enum ref_event {
	EV_NOBODY, /* not counted */
	EV_NEVER,  /* counted, and never happens */
	EV_INSTRUCTIONS,
	EV_CYCLES,
	EV_CRYSTAL,
	EV_BRANCHES,
	EV_COND,
	EV_COND_TAKEN,
	EV_COND_NOT_TAKEN,
	EV_NEAR_CALL,
	EV_NEAR_RETURN,
	EV_NEAR_TAKEN,
	EV_FAR,
	EV_INDIRECT,
};

static enum ref_event branch_event_skylake(unsigned int umask)
{
	switch (umask) {
	case 0x00:
		return EV_BRANCHES;
	case 0x01:
		return EV_COND;
	case 0x02:
		return EV_NEAR_CALL;
	case 0x04:
		return EV_BRANCHES;
	case 0x08:
		return EV_NEAR_RETURN;
	case 0x10:
		return EV_COND_NOT_TAKEN;
	case 0x20:
		return EV_NEAR_TAKEN;
	case 0x40:
		return EV_FAR;
	}
	return EV_NOBODY;
}

static enum ref_event branch_event_icelake(unsigned int umask)
{
	switch (umask) {
	case 0x00:
		return EV_BRANCHES;
	case 0x01:
		return EV_COND_TAKEN;
	case 0x02:
		return EV_NEAR_CALL;
	case 0x08:
		return EV_NEAR_RETURN;
	case 0x10:
		return EV_COND_NOT_TAKEN;
	case 0x11:
		return EV_COND;
	case 0x20:
		return EV_NEAR_TAKEN;
	case 0x40:
		return EV_FAR;
	case 0x80:
		return EV_INDIRECT;
	}
	return EV_NOBODY;
}

static enum ref_event plain_event(const struct ref_pmu *p, uint64_t evtsel)
{
	unsigned int select = evtsel & 0xff;
	unsigned int umask = (evtsel >> 8) & 0xff;

	if (select == 0xc0 && umask == 0x00)
		return EV_INSTRUCTIONS;
	/* INST_RETIRED.PREC_DIST, until Sapphire Rapids */
	if (select == 0xc0 && umask == 0x01 && p->cfg.prec_dist)
		return EV_INSTRUCTIONS;
	if (select == 0x3c && umask == 0x00)
		return EV_CYCLES;
	if (select == 0x3c && umask == 0x01)
		return EV_CRYSTAL;
	if (select != 0xc4)
		return EV_NOBODY;
	if (p->cfg.umasks == REF_UMASKS_SKYLAKE)
		return branch_event_skylake(umask);
	if (p->cfg.umasks == REF_UMASKS_ICELAKE)
		return branch_event_icelake(umask);
	return umask == 0x00 ? EV_BRANCHES : EV_NOBODY;
}

/* One instruction is one cycle, so no event happens twice in a cycle. */
static enum ref_event selected_event(const struct ref_pmu *p, uint64_t evtsel)
{
	enum ref_event e = plain_event(p, evtsel);
	unsigned int cmask = (evtsel >> 24) & 0xff;
	bool inv = evtsel & BIT(23);
	bool edge = evtsel & BIT(18);

	if (e == EV_NOBODY || edge)
		return EV_NOBODY;
	if (cmask == 0)
		return e;
	if (cmask == 1)
		return inv ? EV_NOBODY : e;
	return inv ? EV_CYCLES : EV_NEVER;
}

/* @before: cycles so far in the banks that the counter counts in. */
static bool happens(const struct ref_pmu *p, enum ref_event e, enum ref_kind k, uint64_t before)
{
	uint64_t parts = BIT(p->cfg.crystal_shift);

	switch (e) {
	case EV_NOBODY:
	case EV_NEVER:
		return false;
	case EV_INSTRUCTIONS:
	case EV_CYCLES:
		return true;
	case EV_CRYSTAL:
		return (before + 1) / parts != before / parts;
	case EV_BRANCHES:
		return is_branch(k);
	case EV_COND:
		return is_conditional(k);
	case EV_COND_TAKEN:
		return k == REF_JCC_TAKEN;
	case EV_COND_NOT_TAKEN:
		return k == REF_JCC_NOT_TAKEN;
	case EV_NEAR_CALL:
		return k == REF_CALL || k == REF_CALL_INDIRECT;
	case EV_NEAR_RETURN:
		return k == REF_RET;
	case EV_NEAR_TAKEN:
		return is_near_taken(k);
	case EV_FAR:
		return k == REF_FAR;
	case EV_INDIRECT:
		return k == REF_JMP_INDIRECT || k == REF_CALL_INDIRECT;
	}
	return false;
}

static uint64_t cycles_in(const struct ref_pmu *p, bool os, bool usr)
{
	uint64_t sum = 0;

	if (os)
		sum += p->cycles[REF_KERNEL] + p->cycles[REF_NESTED_KERNEL];
	if (usr)
		sum += p->cycles[REF_USER] + p->cycles[REF_NESTED_USER];
	return sum;
}

/* Counting ------------------------------------------------------------------ */

/* @bit: the counter's place in GLOBAL_CTRL. */
static bool globally_enabled(const struct ref_pmu *p, unsigned int bit)
{
	if (p->cfg.version == 1)
		return true;
	if (p->cfg.version >= 4 && (p->global_status & BIT(59)))
		return false;
	return p->global_ctrl & BIT(bit);
}

static bool gp_counts(const struct ref_pmu *p, unsigned int n, enum ref_kind k, enum ref_bank b)
{
	uint64_t s = p->evtsel[n];
	bool usr = s & BIT(16), os = s & BIT(17), en = s & BIT(22);

	if (!en || !globally_enabled(p, n))
		return false;
	if (in_user(b) ? !usr : !os)
		return false;
	return happens(p, selected_event(p, s), k, cycles_in(p, os, usr));
}

static bool fixed_counts(const struct ref_pmu *p, unsigned int i, enum ref_bank b)
{
	uint64_t s = p->fixed_ctrl >> (4 * i);
	bool os = s & BIT(0), usr = s & BIT(1);

	if (!globally_enabled(p, 32 + i))
		return false;
	/* 0 instructions, 1 cycles, 2 reference cycles: each 1 per instruction */
	return in_user(b) ? usr : os;
}

static bool increment(const struct ref_pmu *p, uint64_t *counter)
{
	*counter = (*counter + 1) & counter_mask(p);
	return *counter == 0;
}

static void set_status(struct ref_pmu *p, unsigned int bit)
{
	if (p->cfg.version == 1)
		return;
	if (!(p->global_status & BIT(bit)))
		p->global_status |= BIT(bit) | BIT(63);
}

static void raise_pmi(struct ref_pmu *p)
{
	p->pmis++;
	p->pmi_at = p->instructions;

	if (!(p->debugctl & BIT(12)))
		return;
	if (p->cfg.version >= 4) {
		set_status(p, 59);
	} else {
		p->global_ctrl = 0;
		/* frozen stays frozen when SMM is left */
		p->smm_global_ctrl = 0;
	}
}

void ref_instruction(struct ref_pmu *p, enum ref_kind kind, enum ref_bank bank)
{
	bool gp[REF_GP_MAX] = { false }, fixed[REF_FIXED_MAX] = { false };
	bool pmi = false;
	unsigned int i;

	/* who counts it is decided before anything of it takes effect */
	for (i = 0; i < p->cfg.n_gp; i++)
		gp[i] = gp_counts(p, i, kind, bank);
	for (i = 0; i < p->cfg.n_fixed; i++)
		fixed[i] = fixed_counts(p, i, bank);

	p->instructions++;
	p->cycles[bank]++;

	for (i = 0; i < p->cfg.n_gp; i++) {
		if (gp[i] && increment(p, &p->pmc[i])) {
			set_status(p, i);
			if (p->evtsel[i] & BIT(20))
				pmi = true;
		}
	}
	for (i = 0; i < p->cfg.n_fixed; i++) {
		if (fixed[i] && increment(p, &p->fixed[i])) {
			set_status(p, 32 + i);
			if (p->fixed_ctrl & BIT(4 * i + 3))
				pmi = true;
		}
	}
	if (pmi)
		raise_pmi(p);
}

/* Accesses ------------------------------------------------------------------ */

static bool within(uint32_t msr, uint32_t first, uint32_t n)
{
	return msr >= first && msr < first + n;
}

/*
 * A PMU register of some model: what is not there faults, it is not foreign.
 * GLOBAL_CTRL has room for 16 fixed counters. What belongs to LBR, PEBS, topdown,
 * extra registers and version 6 is never there in this model.
 */
static bool is_pmu_register(uint32_t msr)
{
	static const struct {
		uint32_t first, n;
	} range[] = {
		{ 0x040, 8 },    { 0x060, 8 },    { 0x0c1, 8 },    { 0x186, 8 },
		{ 0x1a6, 2 },    { 0x1c8, 2 },    { 0x1d9, 1 },    { 0x309, 16 },
		{ 0x329, 1 },    { 0x345, 1 },    { 0x38d, 6 },    { 0x3f1, 2 },
		{ 0x3f6, 2 },    { 0x4c1, 8 },    { 0x600, 1 },    { 0x680, 32 },
		{ 0x6c0, 32 },   { 0xdc0, 32 },   { 0x1200, 32 },  { 0x14ce, 2 },
		{ 0x1500, 32 },  { 0x1600, 32 },  { 0x1900, 192 },
	};
	size_t i;

	for (i = 0; i < sizeof(range) / sizeof(range[0]); i++)
		if (within(msr, range[i].first, range[i].n))
			return true;
	return false;
}

/* Is the register there in this configuration? */
static bool exists(const struct ref_pmu *p, uint32_t msr)
{
	unsigned int version = p->cfg.version;

	if (within(msr, 0x0c1, p->cfg.n_gp) || within(msr, 0x186, p->cfg.n_gp))
		return true;
	if (within(msr, 0x4c1, p->cfg.n_gp))
		return has_full_width(p);
	if (within(msr, 0x309, p->cfg.n_fixed))
		return true;
	if (msr == 0x345)
		return p->cfg.capabilities != 0;
	if (msr == 0x1d9)
		return true;
	if (within(msr, 0x38d, 4))
		return version >= 2;
	if (within(msr, 0x391, 2))
		return version >= 4;
	return false;
}

static uint64_t global_inuse(const struct ref_pmu *p)
{
	uint64_t inuse = 0;
	unsigned int i;

	for (i = 0; i < p->cfg.n_gp; i++) {
		if (p->evtsel[i] & 0xff)
			inuse |= BIT(i);
		if (p->evtsel[i] & BIT(20))
			inuse |= BIT(63);
	}
	for (i = 0; i < p->cfg.n_fixed; i++) {
		if ((p->fixed_ctrl >> (4 * i)) & 3)
			inuse |= BIT(32 + i);
		if (p->fixed_ctrl & BIT(4 * i + 3))
			inuse |= BIT(63);
	}
	return inuse;
}

static uint64_t register_value(const struct ref_pmu *p, uint32_t msr)
{
	if (within(msr, 0x0c1, p->cfg.n_gp))
		return p->pmc[msr - 0x0c1];
	if (within(msr, 0x4c1, p->cfg.n_gp))
		return p->pmc[msr - 0x4c1];
	if (within(msr, 0x186, p->cfg.n_gp))
		return p->evtsel[msr - 0x186];
	if (within(msr, 0x309, p->cfg.n_fixed))
		return p->fixed[msr - 0x309];

	switch (msr) {
	case 0x1d9:
		return p->debugctl;
	case 0x345:
		return p->cfg.capabilities;
	case 0x38d:
		return p->fixed_ctrl;
	case 0x38e:
		return p->global_status;
	case 0x38f:
		return p->global_ctrl;
	case 0x392:
		return global_inuse(p);
	}
	return 0; /* 390H and 391H are written only */
}

enum vpmu_result ref_rdmsr(const struct ref_pmu *p, uint32_t msr, uint64_t *value)
{
	if (!is_pmu_register(msr))
		return VPMU_NOT_MINE;
	if (!exists(p, msr))
		return VPMU_FAULT;
	*value = register_value(p, msr);
	return VPMU_HANDLED;
}

/* The bits that a write may have set; ~0: any. */
static uint64_t accepted(const struct ref_pmu *p, uint32_t msr)
{
	if (within(msr, 0x0c1, p->cfg.n_gp))
		return ~(uint64_t)0;
	if (within(msr, 0x4c1, p->cfg.n_gp) || within(msr, 0x309, p->cfg.n_fixed))
		return counter_mask(p);
	if (within(msr, 0x186, p->cfg.n_gp))
		return evtsel_accepted(p);

	switch (msr) {
	case 0x1d9:
		return BIT(0) | BIT(1) | (p->cfg.version >= 2 ? BIT(12) : 0) |
		       (has_smm_freeze(p) ? BIT(14) : 0);
	case 0x38d:
		return fixed_ctrl_accepted(p);
	case 0x38f:
		return gp_bits(p) | fixed_bits(p);
	case 0x390:
		return status_reset_accepted(p);
	case 0x391:
		return status_set_accepted(p);
	}
	return 0;
}

static bool read_only(uint32_t msr)
{
	return msr == 0x345 || msr == 0x38e || msr == 0x392;
}

static uint64_t sign_extended(const struct ref_pmu *p, uint64_t value)
{
	uint64_t low = value & 0xffffffff;

	if (low & BIT(31))
		low |= 0xffffffff00000000;
	return low & counter_mask(p);
}

static void store(struct ref_pmu *p, uint32_t msr, uint64_t value)
{
	if (within(msr, 0x0c1, p->cfg.n_gp)) {
		p->pmc[msr - 0x0c1] = sign_extended(p, value);
		return;
	}
	if (within(msr, 0x4c1, p->cfg.n_gp)) {
		p->pmc[msr - 0x4c1] = value;
		return;
	}
	if (within(msr, 0x186, p->cfg.n_gp)) {
		p->evtsel[msr - 0x186] = value;
		return;
	}
	if (within(msr, 0x309, p->cfg.n_fixed)) {
		p->fixed[msr - 0x309] = value;
		return;
	}

	switch (msr) {
	case 0x1d9: /* LBR and BTF are dropped: there is no LBR and no BTF */
		p->debugctl = value & (BIT(12) | BIT(14));
		break;
	case 0x38d:
		p->fixed_ctrl = value;
		break;
	case 0x38f:
		p->global_ctrl = value;
		break;
	case 0x390:
		p->global_status &= ~value;
		break;
	case 0x391:
		p->global_status |= value;
		break;
	}
}

enum vpmu_result ref_wrmsr(struct ref_pmu *p, uint32_t msr, uint64_t value)
{
	if (!is_pmu_register(msr))
		return VPMU_NOT_MINE;
	if (!exists(p, msr) || read_only(msr))
		return VPMU_FAULT;
	if (value & ~accepted(p, msr))
		return VPMU_FAULT;
	store(p, msr, value);
	return VPMU_HANDLED;
}

enum vpmu_result ref_rdpmc(const struct ref_pmu *p, uint32_t rdpmc_idx, uint64_t *value)
{
	uint32_t type = rdpmc_idx >> 16;
	uint32_t index = rdpmc_idx & 0xffff;

	if (type == 0x0000 && index < p->cfg.n_gp) {
		*value = p->pmc[index];
		return VPMU_HANDLED;
	}
	if (type == 0x4000 && index < p->cfg.n_fixed) {
		*value = p->fixed[index];
		return VPMU_HANDLED;
	}
	return VPMU_FAULT;
}

bool ref_cpuid(const struct ref_pmu *p, uint32_t leaf, struct ref_cpuid *regs)
{
	/* LLC references, LLC misses, branch misses and slots: nobody counts them */
	uint32_t unavailable = BIT(3) | BIT(4) | BIT(6) | BIT(7);
	const struct ref_config *c = &p->cfg;

	if (leaf == 1) {
		regs->ecx &= ~(uint32_t)BIT(15);
		if (c->capabilities)
			regs->ecx |= BIT(15);
		return true;
	}
	if (leaf != 0xa)
		return false;

	memset(regs, 0, sizeof(*regs));
	regs->eax = c->version | c->n_gp << 8 | c->width_bits << 16 | c->n_arch_events << 24;
	regs->ebx = unavailable & (BIT(c->n_arch_events) - 1);
	if (c->version >= 2)
		regs->edx = c->n_fixed | c->width_bits << 5;
	if (c->version >= 5) {
		regs->ecx = BIT(c->n_fixed) - 1;
		regs->edx |= BIT(15);
	}
	return true;
}

/* Modes --------------------------------------------------------------------- */

void ref_smm(struct ref_pmu *p, bool entered)
{
	if (entered) {
		if (p->debugctl & BIT(14)) {
			p->smm_frozen = true;
			p->smm_global_ctrl = p->global_ctrl;
			p->global_ctrl = 0;
		}
	} else if (p->smm_frozen) {
		p->smm_frozen = false;
		p->global_ctrl = p->smm_global_ctrl;
	}
}

void ref_reset(struct ref_pmu *p, bool init)
{
	p->debugctl = 0;
	if (init)
		return;
	memset(p->evtsel, 0, sizeof(p->evtsel));
	memset(p->pmc, 0, sizeof(p->pmc));
	memset(p->fixed, 0, sizeof(p->fixed));
	p->fixed_ctrl = 0;
	p->global_ctrl = gp_bits(p);
	p->global_status = 0;
	p->smm_frozen = false;
	p->smm_global_ctrl = 0;
}

void ref_init(struct ref_pmu *p, const struct ref_config *cfg)
{
	memset(p, 0, sizeof(*p));
	p->cfg = *cfg;
	ref_reset(p, false);
}
