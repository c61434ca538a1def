// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The reference's branch records, of the kinds that are 32 deep: those in which INFO
 * has its registers, from Skylake to Ice Lake, and architectural ones.
 */
#include "reference.h"

#include <string.h>

#define BIT(n)	((uint64_t)1 << (n))
#define DEPTH	REF_LBR_DEPTH

/* By kind of branch: LBR_SELECT's bit, LBR_CTL's, and BR_TYPE. */
static const struct {
	uint8_t select, ctl, type;
} branch[REF_KINDS] = {
	[REF_JCC_TAKEN] = { 2, 16, 0 },
	[REF_JMP] = { 7, 17, 2 },
	[REF_CALL] = { 3, 19, 4 },
	[REF_RET] = { 5, 21, 5 },
	[REF_JMP_INDIRECT] = { 6, 18, 1 },
	[REF_CALL_INDIRECT] = { 4, 20, 3 },
	[REF_FAR] = { 8, 22, 8 },
};

static bool is_recording(const struct ref_pmu *p)
{
	if (p->in_smm || p->global_status & BIT(58))
		return false;
	return p->cfg.lbr == REF_LBR_ARCH ? p->lbr.filter & 1 : p->debugctl & 1;
}

static bool passes(const struct ref_pmu *p, enum ref_kind kind, bool user)
{
	uint64_t f = p->lbr.filter;

	if (p->cfg.lbr == REF_LBR_ARCH)
		return (f & BIT(user ? 2 : 1)) && (f & BIT(branch[kind].ctl));
	return !(f & BIT(user ? 1 : 0)) && !(f & BIT(branch[kind].select));
}

void ref_lbr_branch(struct ref_pmu *p, enum ref_kind kind, bool user, uint64_t from,
		    uint64_t to)
{
	struct ref_lbr *l = &p->lbr;
	bool chain = l->filter & BIT(p->cfg.lbr == REF_LBR_ARCH ? 3 : 9);

	if (p->cfg.lbr == REF_LBR_NONE || !branch[kind].select || !is_recording(p) ||
	    !passes(p, kind, user))
		return;
	if (kind == REF_RET && chain) {
		l->from[l->tos] = l->to[l->tos] = l->info[l->tos] = 0;
		l->tos = (l->tos + DEPTH - 1) % DEPTH;
		return;
	}
	l->tos = (l->tos + 1) % DEPTH;
	l->from[l->tos] = from;
	l->to[l->tos] = to;
	l->info[l->tos] = p->cfg.lbr == REF_LBR_ARCH ? (uint64_t)branch[kind].type << 56 : 0;
}

/* A place in the ring; architectural records are numbered from the newest. */
static uint64_t *entry(const struct ref_pmu *p, uint32_t msr)
{
	struct ref_lbr *l = (struct ref_lbr *)&p->lbr;
	bool arch = p->cfg.lbr == REF_LBR_ARCH;
	uint32_t first[] = { arch ? 0x1500 : 0x680, arch ? 0x1600 : 0x6c0,
			     arch ? 0x1200 : 0xdc0 };
	uint64_t *of[] = { l->from, l->to, l->info };
	unsigned int i, n;

	for (i = 0; i < 3; i++) {
		n = msr - first[i];
		if (msr >= first[i] && n < DEPTH)
			return &of[i][arch ? (l->tos + DEPTH - n) % DEPTH : n];
	}
	return NULL;
}

static uint32_t filter_msr(const struct ref_pmu *p)
{
	return p->cfg.lbr == REF_LBR_ARCH ? 0x14ce : 0x1c8;
}

bool ref_lbr_exists(const struct ref_pmu *p, uint32_t msr)
{
	if (p->cfg.lbr == REF_LBR_NONE)
		return false;
	return msr == filter_msr(p) || msr == filter_msr(p) + 1 || entry(p, msr);
}

uint64_t ref_lbr_read(const struct ref_pmu *p, uint32_t msr)
{
	if (msr == filter_msr(p))
		return p->lbr.filter;
	if (msr == filter_msr(p) + 1)
		return p->cfg.lbr == REF_LBR_ARCH ? DEPTH : p->lbr.tos;
	return *entry(p, msr);
}

bool ref_lbr_write(struct ref_pmu *p, uint32_t msr, uint64_t value)
{
	bool arch = p->cfg.lbr == REF_LBR_ARCH;
	struct ref_lbr *l = &p->lbr;

	if (msr == filter_msr(p)) {
		if (value & ~(arch ? (uint64_t)0x7f000f : (uint64_t)0x3ff))
			return false;
		l->filter = value;
	} else if (msr == filter_msr(p) + 1) {
		if (arch ? value != DEPTH : value >= DEPTH)
			return false;
		if (arch)
			memset(l->from, 0, 3 * sizeof(l->from));
		else
			l->tos = (unsigned int)value;
	} else if (msr >= 0xdc0 && entry(p, msr) >= l->info) {
		/* undefined bits are dropped */
		*entry(p, msr) = value & (arch ? 0xff0000000000ffff : 0xe00000000000ffff);
	} else {
		*entry(p, msr) = value;
	}
	return true;
}
