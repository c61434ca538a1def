// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The reference model. Sources: SDM vol. 3, "Architectural Performance
 * Monitoring" (versions 1 to 6), "Auto Counter Reload", "Freezing LBR and
 * Performance Counters on PMI", "Freeze on SMI"; SDM vol. 2, "RDPMC", "CPUID".
 * Register numbers and bits stand here as the manual prints them, on purpose: a
 * wrong constant in the library's headers must not hide itself.
 */
#include "reference.h"

#include <string.h>

#define BIT(n) ((uint64_t)1 << (n))

/* Properties of the configuration ------------------------------------------ */

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

static bool has_block(const struct ref_pmu *p)
{
	return p->cfg.version >= 6;
}

static bool has_reload(const struct ref_pmu *p)
{
	return has_block(p) && p->cfg.reloads;
}

static bool hides(const struct ref_pmu *p)
{
	return has_block(p) && p->cfg.hides;
}

static uint64_t evtsel_accepted(const struct ref_pmu *p)
{
	uint64_t bits = 0;
	int i;

	for (i = 0; i < 32; i++)
		if (i != 21 || has_any_thread(p))
			bits |= BIT(i);
	if (!has_block(p))
		return bits;
	bits &= ~BIT(19);
	if (p->cfg.eq)
		bits |= BIT(36);
	if (p->cfg.hides)
		bits |= BIT(37);
	if (p->cfg.umask2)
		bits |= (uint64_t)0xff << 40;
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
		if (hides(p))
			bits |= BIT(4 * i + 33);
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
	return gp_bits(p) | fixed_bits(p) | (uint64_t)0x3f << 58;
}

/* Kinds of instructions ---------------------------------------------------- */

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
	EV_TAKEN, /* far ones too */
	EV_JMP,
	EV_JMP_INDIRECT,
	EV_CALL_DIRECT,
	EV_CALL_INDIRECT,
	EV_ANY_JMP,
	EV_INDIRECT_OR_RETURN,
};

static enum ref_event branch_event_core2(unsigned int umask)
{
	return umask == 0x00 ? EV_BRANCHES : umask == 0x0c ? EV_TAKEN : EV_NOBODY;
}

/* Event 88 of the first Atoms: the types of branches. */
static enum ref_event branch_type_bonnell(unsigned int umask)
{
	switch (umask) {
	case 0x01:
		return EV_COND;
	case 0x02:
		return EV_JMP;
	case 0x04:
		return EV_JMP_INDIRECT;
	case 0x08:
		return EV_NEAR_RETURN;
	case 0x10:
		return EV_CALL_DIRECT;
	case 0x20:
		return EV_CALL_INDIRECT;
	case 0x41:
		return EV_COND_TAKEN;
	}
	return EV_NOBODY;
}

static enum ref_event branch_event_nehalem(unsigned int umask)
{
	switch (umask) {
	case 0x00:
	case 0x04:
		return EV_BRANCHES;
	case 0x01:
		return EV_COND;
	case 0x02:
		return EV_NEAR_CALL;
	}
	return EV_NOBODY;
}

/* A clear bit is a kind that counts. */
static enum ref_event branch_event_atom(unsigned int umask)
{
	switch (umask) {
	case 0x00:
		return EV_BRANCHES;
	case 0x7e:
		return EV_COND;
	case 0xbf:
		return EV_FAR;
	case 0xeb:
		return EV_INDIRECT;
	case 0xf7:
		return EV_NEAR_RETURN;
	case 0xf9:
		return EV_NEAR_CALL;
	case 0xfb:
		return EV_CALL_INDIRECT;
	case 0xfd:
		return EV_CALL_DIRECT;
	case 0xfe:
		return EV_COND_TAKEN;
	}
	return EV_NOBODY;
}

/* Branches where another event than C4 has them, or where C4 is an older one's. */
static enum ref_event older_branch_event(const struct ref_pmu *p, unsigned int select,
					 unsigned int umask)
{
	switch (p->cfg.umasks) {
	case REF_UMASKS_CORE_DUO:
		if (umask)
			return EV_NOBODY;
		return select == 0xc4 ? EV_BRANCHES : select == 0xc9 ? EV_TAKEN : EV_NOBODY;
	case REF_UMASKS_BONNELL:
		if (select == 0x88)
			return branch_type_bonnell(umask);
		if (select == 0xc4 && umask == 0x0f)
			return EV_BRANCHES;
		return select == 0xc4 ? branch_event_core2(umask) : EV_NOBODY;
	case REF_UMASKS_CORE2:
		return select == 0xc4 ? branch_event_core2(umask) : EV_NOBODY;
	case REF_UMASKS_NEHALEM:
		return select == 0xc4 ? branch_event_nehalem(umask) : EV_NOBODY;
	case REF_UMASKS_ATOM:
		/* Goldmont alone counts what is taken */
		if (umask == 0x80 && p->cfg.all_taken)
			return select == 0xc4 ? EV_TAKEN : EV_NOBODY;
		return select == 0xc4 ? branch_event_atom(umask) : EV_NOBODY;
	default:
		return EV_NOBODY;
	}
}

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

static enum ref_event branch_event_darkmont(unsigned int umask)
{
	switch (umask) {
	case 0x00:
		return EV_BRANCHES;
	case 0x03:
		return EV_COND_TAKEN;
	case 0x04:
		return EV_COND_NOT_TAKEN;
	case 0x07:
		return EV_COND;
	case 0x08:
		return EV_NEAR_RETURN;
	case 0x10:
		return EV_CALL_INDIRECT;
	case 0x20:
		return EV_CALL_DIRECT;
	case 0x30:
		return EV_NEAR_CALL;
	case 0x40:
		return EV_JMP_INDIRECT;
	case 0x50:
		return EV_INDIRECT;
	case 0x58:
		return EV_INDIRECT_OR_RETURN;
	case 0x80:
		return EV_JMP;
	case 0xc0:
		return EV_ANY_JMP;
	case 0xfb:
		return EV_NEAR_TAKEN;
	}
	return EV_NOBODY;
}

static enum ref_event plain_event(const struct ref_pmu *p, uint64_t evtsel)
{
	unsigned int select = evtsel & 0xff;
	unsigned int umask = (evtsel >> 8) & 0xff;

	if (evtsel >> 40 & 0xff)
		return EV_NOBODY;
	if (select == 0xc0 && umask == 0x00)
		return EV_INSTRUCTIONS;
	/* INST_RETIRED.PREC_DIST, until Sapphire Rapids */
	if (select == 0xc0 && umask == 0x01 && p->cfg.prec_dist)
		return EV_INSTRUCTIONS;
	if (select == 0x3c && umask == 0x00)
		return EV_CYCLES;
	if (select == 0x3c && umask == 0x01)
		return EV_CRYSTAL;
	/* a cycle has one slot */
	if (select == 0xa4 && umask == 0x01 && p->cfg.n_arch_events >= 8)
		return EV_CYCLES;
	if (p->cfg.umasks >= REF_UMASKS_CORE_DUO && p->cfg.umasks <= REF_UMASKS_ATOM)
		return older_branch_event(p, select, umask);
	if (select != 0xc4)
		return EV_NOBODY;
	if (p->cfg.umasks == REF_UMASKS_SKYLAKE)
		return branch_event_skylake(umask);
	if (p->cfg.umasks == REF_UMASKS_ICELAKE)
		return branch_event_icelake(umask);
	if (p->cfg.umasks == REF_UMASKS_DARKMONT)
		return branch_event_darkmont(umask);
	return umask == 0x00 ? EV_BRANCHES : EV_NOBODY;
}

/* One instruction is one cycle, so no event happens twice in a cycle. */
static enum ref_event selected_event(const struct ref_pmu *p, uint64_t evtsel)
{
	enum ref_event e = plain_event(p, evtsel);
	unsigned int cmask = (evtsel >> 24) & 0xff;
	bool inv = evtsel & BIT(23);
	bool edge = evtsel & BIT(18);
	bool eq = evtsel & BIT(36);

	/* cycles in which not as many as 16 operations retire: all */
	if ((evtsel & 0xffff) == 0x01c2 && p->cfg.uops && !(evtsel >> 40 & 0xff) && inv &&
	    cmask >= 16 && !edge && !eq)
		return EV_CYCLES;
	if (e == EV_NOBODY || edge)
		return EV_NOBODY;
	/* cycles in which it does not happen, or does not "not happen" */
	if (cmask == 0 && eq)
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
	case EV_TAKEN:
		return is_near_taken(k) || k == REF_FAR;
	case EV_JMP:
		return k == REF_JMP;
	case EV_JMP_INDIRECT:
		return k == REF_JMP_INDIRECT;
	case EV_CALL_DIRECT:
		return k == REF_CALL;
	case EV_CALL_INDIRECT:
		return k == REF_CALL_INDIRECT;
	case EV_ANY_JMP:
		return k == REF_JMP || k == REF_JMP_INDIRECT;
	case EV_INDIRECT_OR_RETURN:
		return k == REF_JMP_INDIRECT || k == REF_CALL_INDIRECT || k == REF_RET;
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

	if (p->debugctl & BIT(11)) {
		if (p->cfg.version >= 4)
			set_status(p, 58);
		else
			p->debugctl &= ~BIT(0);
	}
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

static uint64_t sign_extended(const struct ref_pmu *p, uint64_t value)
{
	uint64_t low = value & 0xffffffff;

	if (low & BIT(31))
		low |= 0xffffffff00000000;
	return low & counter_mask(p);
}

/* @wrapped: the counters that did at this instruction, as in GLOBAL_STATUS. */
static void reload(struct ref_pmu *p, uint64_t wrapped)
{
	unsigned int i;

	for (i = 0; i < p->cfg.n_gp; i++)
		if (p->gp_cfg_b[i] & wrapped)
			p->pmc[i] = sign_extended(p, p->gp_cfg_c[i]);
	for (i = 0; i < p->cfg.n_fixed; i++)
		if (p->fixed_cfg_b[i] & wrapped)
			p->fixed[i] = sign_extended(p, p->fixed_cfg_c[i]);
}

void ref_instruction(struct ref_pmu *p, enum ref_kind kind, enum ref_bank bank)
{
	bool gp[REF_GP_MAX] = { false }, fixed[REF_FIXED_MAX] = { false };
	uint64_t wrapped = 0;
	bool pmi = false;
	unsigned int i;

	/* the counters that count it are determined before it takes effect */
	for (i = 0; i < p->cfg.n_gp; i++)
		gp[i] = gp_counts(p, i, kind, bank);
	for (i = 0; i < p->cfg.n_fixed; i++)
		fixed[i] = fixed_counts(p, i, bank);

	p->instructions++;
	p->cycles[bank]++;

	for (i = 0; i < p->cfg.n_gp; i++) {
		if (gp[i] && increment(p, &p->pmc[i])) {
			wrapped |= BIT(i);
			if (!(p->gp_cfg_b[i] & BIT(i)))
				set_status(p, i);
			if (p->evtsel[i] & BIT(20))
				pmi = true;
		}
	}
	for (i = 0; i < p->cfg.n_fixed; i++) {
		if (fixed[i] && increment(p, &p->fixed[i])) {
			wrapped |= BIT(32 + i);
			if (!(p->fixed_cfg_b[i] & BIT(32 + i)))
				set_status(p, 32 + i);
			if (p->fixed_ctrl & BIT(4 * i + 3))
				pmi = true;
		}
	}
	reload(p, wrapped);
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
 * GLOBAL_CTRL has room for 16 fixed counters. What belongs to PEBS, topdown, and extra
 * registers is never there in this model.
 */
static bool is_pmu_register(uint32_t msr)
{
	static const struct {
		uint32_t first, n;
	} range[] = {
		{ 0x040, 8 },    { 0x060, 8 },    { 0x0c1, 8 },    { 0x186, 8 },
		{ 0x1a6, 2 },    { 0x1c8, 2 },    { 0x1d9, 1 },    { 0x309, 16 },
		{ 0x329, 1 },    { 0x345, 1 },    { 0x38d, 6 },    { 0x3f1, 2 },
		{ 0x3f4, 4 },    { 0x4c1, 8 },    { 0x600, 1 },    { 0x680, 32 },
		{ 0x6c0, 32 },   { 0xdc0, 32 },   { 0x1200, 32 },  { 0x14ce, 2 },
		{ 0x1500, 32 },  { 0x1600, 32 },  { 0x1900, 192 },
	};
	size_t i;

	for (i = 0; i < sizeof(range) / sizeof(range[0]); i++)
		if (within(msr, range[i].first, range[i].n))
			return true;
	return false;
}

/* Version 6's block: four registers for each counter. */
enum block { BLOCK_NONE, BLOCK_COUNTER, BLOCK_EVTSEL, BLOCK_CAUSES, BLOCK_RELOAD };

static enum block gp_block(const struct ref_pmu *p, uint32_t msr)
{
	if (!has_block(p) || !within(msr, 0x1900, 4 * p->cfg.n_gp))
		return BLOCK_NONE;
	return BLOCK_COUNTER + msr % 4;
}

static enum block fixed_block(const struct ref_pmu *p, uint32_t msr)
{
	if (!has_block(p) || !within(msr, 0x1980, 4 * p->cfg.n_fixed))
		return BLOCK_NONE;
	return BLOCK_COUNTER + msr % 4;
}

static bool block_exists(const struct ref_pmu *p, enum block b, bool fixed)
{
	switch (b) {
	case BLOCK_NONE:
		return false;
	case BLOCK_COUNTER:
		return true;
	case BLOCK_EVTSEL:
		return !fixed;
	case BLOCK_CAUSES:
	case BLOCK_RELOAD:
		return has_reload(p);
	}
	return false;
}

/* The register of the block with this number, if it exists. */
static uint64_t *block_register(struct ref_pmu *p, uint32_t msr)
{
	unsigned int i = msr % 0x80 / 4;

	switch (gp_block(p, msr)) {
	case BLOCK_COUNTER:
		return &p->pmc[i];
	case BLOCK_EVTSEL:
		return &p->evtsel[i];
	case BLOCK_CAUSES:
		return &p->gp_cfg_b[i];
	case BLOCK_RELOAD:
		return &p->gp_cfg_c[i];
	case BLOCK_NONE:
		break;
	}
	switch (fixed_block(p, msr)) {
	case BLOCK_COUNTER:
		return &p->fixed[i];
	case BLOCK_CAUSES:
		return &p->fixed_cfg_b[i];
	case BLOCK_RELOAD:
		return &p->fixed_cfg_c[i];
	case BLOCK_EVTSEL:
	case BLOCK_NONE:
		break;
	}
	return NULL;
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
	return ref_lbr_exists(p, msr) || block_exists(p, gp_block(p, msr), false) ||
	       block_exists(p, fixed_block(p, msr), true);
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
	if (block_register((struct ref_pmu *)p, msr))
		return *block_register((struct ref_pmu *)p, msr);
	if (ref_lbr_exists(p, msr))
		return ref_lbr_read(p, msr);

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

static uint64_t block_accepted(const struct ref_pmu *p, enum block b)
{
	switch (b) {
	case BLOCK_COUNTER:
		return counter_mask(p);
	case BLOCK_EVTSEL:
		return evtsel_accepted(p);
	case BLOCK_CAUSES:
		return gp_bits(p) | fixed_bits(p);
	case BLOCK_RELOAD:
		return 0xffffffff;
	case BLOCK_NONE:
		break;
	}
	return 0;
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
	if (gp_block(p, msr) || fixed_block(p, msr))
		return block_accepted(p, gp_block(p, msr) + fixed_block(p, msr));

	switch (msr) {
	case 0x1d9:
		return BIT(0) | BIT(1) | (p->cfg.version >= 2 ? BIT(12) : 0) |
		       (p->cfg.lbr != REF_LBR_NONE ? BIT(11) : 0) |
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
	if (block_register(p, msr)) {
		*block_register(p, msr) = value;
		return;
	}

	switch (msr) {
	case 0x1d9: /* BTF is dropped, there is none, and LBR where that is elsewhere */
		p->debugctl = value & (BIT(11) | BIT(12) | BIT(14) |
				       (p->cfg.lbr == REF_LBR_INFO ? BIT(0) : 0));
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
	if (ref_lbr_exists(p, msr))
		return ref_lbr_write(p, msr, value) ? VPMU_HANDLED : VPMU_FAULT;
	if (value & ~accepted(p, msr))
		return VPMU_FAULT;
	store(p, msr, value);
	return VPMU_HANDLED;
}

enum vpmu_result ref_rdpmc(const struct ref_pmu *p, uint32_t rdpmc_idx, bool user,
			   uint64_t *value)
{
	uint32_t type = rdpmc_idx >> 16;
	uint32_t index = rdpmc_idx & 0xffff;

	if (type == 0x0000 && index < p->cfg.n_gp) {
		*value = p->pmc[index];
		if (user && hides(p) && (p->evtsel[index] & BIT(37)))
			*value = 0;
		return VPMU_HANDLED;
	}
	if (type == 0x4000 && index < p->cfg.n_fixed) {
		*value = p->fixed[index];
		if (user && hides(p) && (p->fixed_ctrl & BIT(33 + 4 * index)))
			*value = 0;
		return VPMU_HANDLED;
	}
	return VPMU_FAULT;
}

/* Bitmaps where leaf 0AH has numbers, and events that are available. */
static void leaf_23(const struct ref_pmu *p, uint32_t subleaf, uint32_t available,
		    struct ref_cpuid *regs)
{
	const struct ref_config *c = &p->cfg;

	if (!has_block(p))
		return;
	switch (subleaf) {
	case 0:
		regs->eax = 0xb | (c->reloads ? 4 : 0);
		regs->ebx = (c->umask2 ? 1 : 0) | (c->eq ? 2 : 0) | (c->hides ? 4 : 0);
		break;
	case 1:
		regs->eax = gp_bits(p);
		regs->ebx = fixed_bits(p) >> 32;
		break;
	case 2:
		if (!c->reloads)
			break;
		regs->eax = gp_bits(p);
		regs->ebx = fixed_bits(p) >> 32;
		regs->ecx = regs->eax;
		regs->edx = regs->ebx;
		break;
	case 3:
		regs->eax = available;
		break;
	}
}

bool ref_cpuid(const struct ref_pmu *p, uint32_t leaf, uint32_t subleaf,
	       struct ref_cpuid *regs)
{
	/* LLC references, LLC misses and branch misses are not counted */
	uint32_t unavailable = BIT(3) | BIT(4) | BIT(6);
	const struct ref_config *c = &p->cfg;

	if (leaf == 1) {
		regs->ecx &= ~(uint32_t)(BIT(15) | BIT(2)); /* no DS */
		regs->edx &= ~(uint32_t)BIT(21);
		if (c->capabilities)
			regs->ecx |= BIT(15);
		return true;
	}
	if (leaf == 7 && subleaf == 1) {
		regs->eax &= ~(uint32_t)BIT(8);
		if (has_block(p))
			regs->eax |= BIT(8);
		return true;
	}
	if (leaf == 7 && !subleaf) {
		regs->edx &= ~(uint32_t)BIT(19);
		if (c->lbr == REF_LBR_ARCH)
			regs->edx |= BIT(19);
		return true;
	}
	if (leaf != 0xa && leaf != 0x1c && leaf != 0x23)
		return false;

	memset(regs, 0, sizeof(*regs));
	if (leaf == 0x1c) {
		if (c->lbr == REF_LBR_ARCH) {
			regs->eax = BIT(3); /* 32 */
			regs->ebx = 7;      /* by ring and type, call stack */
			regs->ecx = BIT(2); /* types */
		}
		return true;
	}
	if (leaf == 0x23) {
		leaf_23(p, subleaf, ~unavailable & (BIT(c->n_arch_events) - 1), regs);
		return true;
	}
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
	p->in_smm = entered;
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
	if (init) {
		if (p->cfg.lbr == REF_LBR_ARCH)
			p->lbr.filter &= ~BIT(0);
		return;
	}
	memset(&p->lbr, 0, sizeof(p->lbr));
	p->in_smm = false;
	memset(p->evtsel, 0, sizeof(p->evtsel));
	memset(p->pmc, 0, sizeof(p->pmc));
	memset(p->fixed, 0, sizeof(p->fixed));
	memset(p->gp_cfg_b, 0, sizeof(p->gp_cfg_b));
	memset(p->gp_cfg_c, 0, sizeof(p->gp_cfg_c));
	memset(p->fixed_cfg_b, 0, sizeof(p->fixed_cfg_b));
	memset(p->fixed_cfg_c, 0, sizeof(p->fixed_cfg_c));
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
