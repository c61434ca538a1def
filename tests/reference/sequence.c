// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Guest operations, from random numbers or from a fuzzer's bytes. */
#include "sequence.h"

#include <string.h>

#include <vpmu/msr.h>

#define BIT(n)		((uint64_t)1 << (n))

/* splitmix64 */
static uint64_t random64(struct sequence *s)
{
	uint64_t x = s->seed += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t take(struct sequence *s, size_t bytes)
{
	uint64_t x = 0;

	if (!s->data)
		return random64(s);
	if (bytes > s->size)
		bytes = s->size;
	memcpy(&x, s->data, bytes);
	s->data += bytes;
	s->size -= bytes;
	return x;
}

/* 0 .. n - 1 */
static uint32_t below(struct sequence *s, uint32_t n)
{
	return take(s, n <= 256 ? 1 : 4) % n;
}

static bool one_in(struct sequence *s, uint32_t n)
{
	return below(s, n) == n - 1;
}

static uint64_t flag(struct sequence *s, unsigned int bit, uint32_t in_eight)
{
	return below(s, 8) < in_eight ? BIT(bit) : 0;
}

/* Values ---------------------------------------------------------------------- */

static uint64_t any_value(struct sequence *s)
{
	switch (below(s, 4)) {
	case 0:
		return 0;
	case 1:
		return BIT(below(s, 64));
	case 2:
		return BIT(below(s, 64)) - 1;
	default:
		return take(s, 8);
	}
}

static uint64_t counter_value(struct sequence *s)
{
	switch (below(s, 8)) {
	case 0:
		return 0;
	case 1:
		return any_value(s);
	case 2:
		return BIT(31) - 1 + below(s, 3);
	case 3:
		return (BIT(48) - 1) + below(s, 3);
	case 4: /* near the wrap, with bits above the width: faults, or is cut */
		return -(uint64_t)(1 + below(s, 40));
	default:
		return BIT(one_in(s, 3) ? 40 : 48) - 1 - below(s, 200);
	}
}

static uint64_t evtsel_value(struct sequence *s)
{
	static const uint16_t event[] = {
		0x00c0, 0x00c0, 0x003c, 0x013c, 0x00c4, 0x01c4, 0x02c4, 0x04c4, 0x08c4,
		0x10c4, 0x11c4, 0x20c4, 0x40c4, 0x80c4, 0x09c4, 0x01c0, 0x00c5, 0x4f2e,
		0x412e, 0x01a4, 0x0300, 0x0100, 0x0000, 0x0cc4, 0x0fc4, 0x7ec4, 0xebc4, 0xf9c4,
		0xfdc4, 0xfec4, 0x00c9, 0x0188, 0x0288, 0x0488, 0x1088, 0x4188,
	};
	uint64_t v = event[below(s, sizeof(event) / sizeof(event[0]))];

	v |= flag(s, 16, 6) | flag(s, 17, 6) | flag(s, 19, 1) | flag(s, 20, 5) | flag(s, 22, 7);
	if (one_in(s, 6))
		v |= flag(s, 18, 3) | flag(s, 23, 4) | (uint64_t)below(s, 4) << 24;
	if (one_in(s, 12))
		v |= BIT(21);
	if (one_in(s, 20))
		v |= BIT(18 + below(s, 46));
	return v;
}

/* Set the bits that version 6 adds, mostly so that a counter then counts nothing. */
static uint64_t evtsel_v6(struct sequence *s)
{
	uint64_t v = flag(s, 37, 4);

	if (one_in(s, 6))
		v |= flag(s, 36, 4);
	if (one_in(s, 12))
		v |= (uint64_t)below(s, 256) << 40;
	return v;
}

static uint64_t fixed_ctrl_value(struct sequence *s, const struct pair_config *cfg)
{
	uint64_t v = take(s, 2) & 0xbbb;

	if (cfg->version >= 6)
		v |= (take(s, 2) & 0x222) << 32;

	if (one_in(s, 8))
		v |= BIT(below(s, 64));
	return v;
}

static uint64_t bits_value(struct sequence *s, const struct pair_config *cfg)
{
	uint64_t gp = BIT(cfg->n_gp) - 1, fixed = (BIT(cfg->n_fixed) - 1) << 32;

	switch (below(s, 8)) {
	case 0:
		return any_value(s);
	case 1:
		return (gp | fixed) ^ BIT(below(s, 64));
	case 2:
	case 3:
		return take(s, 8) & (gp | fixed);
	default:
		return gp | fixed;
	}
}

static uint64_t status_value(struct sequence *s, const struct pair_config *cfg)
{
	uint64_t high = cfg->version >= 4 ? BIT(59) | BIT(62) : BIT(62);

	if (one_in(s, 4))
		return BIT(below(s, 64));
	return (bits_value(s, cfg) & take(s, 8)) | (below(s, 2) ? high : 0) |
	       (one_in(s, 3) ? BIT(63) : 0);
}

static void block_op(struct sequence *s, const struct pair_config *cfg, struct pair_op *op)
{
	uint32_t gp = below(s, cfg->n_gp + one_in(s, 10));
	uint32_t fixed = below(s, cfg->n_fixed + 1 - (cfg->n_fixed && !one_in(s, 10)));
	bool is_gp = below(s, 3);

	op->reg = (is_gp ? 0x1900 + 4 * gp : 0x1980 + 4 * fixed) + below(s, 4);
	switch (op->reg % 4) {
	case 0:
		op->value = counter_value(s);
		break;
	case 1:
		op->value = evtsel_value(s) | evtsel_v6(s);
		break;
	case 2: /* causes: mostly some, and itself */
		op->value = bits_value(s, cfg) & take(s, 8);
		if (below(s, 2))
			op->value |= is_gp ? BIT(gp) : BIT(32 + fixed);
		break;
	default: /* short periods, any, and sometimes too much */
		op->value = below(s, 8) ? (uint32_t)-(1 + below(s, 60)) : any_value(s);
		break;
	}
}

static uint64_t debugctl_value(struct sequence *s)
{
	uint64_t v = flag(s, 0, 4) | flag(s, 1, 1) | flag(s, 11, 3) | flag(s, 12, 4) |
		     flag(s, 14, 2);

	if (one_in(s, 10))
		v |= BIT(below(s, 64));
	return v;
}

/* Filters that let something through, call stacks, or anything. */
static void lbr_op(struct sequence *s, const struct pair_config *cfg, struct pair_op *op)
{
	static const uint32_t select[] = { 0, 1, 2, 0x3c4, 0x3c5, 0x3c6, 0x1fb, 0x0e5 };
	static const uint32_t ctl[] = {
		0x7f0007, 0x7f0005, 0x7f0003, 0x38000f, 0x38000d, 0x10007,
	};
	static const uint16_t base[][3] = {
		{ 0x680, 0x6c0, 0xdc0 }, { 0x1500, 0x1600, 0x1200 },
	};
	bool arch = (cfg->capabilities & VPMU_CAP_LBR) == VPMU_CAP_LBR_ARCH;

	switch (below(s, 4)) {
	case 0:
	case 1:
		op->reg = arch ? 0x14ce : 0x1c8;
		op->value = arch ? ctl[below(s, 6)] : select[below(s, 8)];
		if (one_in(s, 4))
			op->value ^= BIT(below(s, 32));
		break;
	case 2:
		op->reg = arch ? 0x14cf : 0x1c9;
		op->value = below(s, 34);
		break;
	default:
		op->reg = base[arch][below(s, 3)] + below(s, 33);
		op->value = any_value(s);
		break;
	}
}

/* Operations ------------------------------------------------------------------ */

static uint32_t any_msr(struct sequence *s)
{
	static const uint32_t near[] = {
		0x0c0, 0x0c9, 0x185, 0x18e, 0x1a0, 0x1d9, 0x308, 0x345, 0x38c, 0x393,
		0x4c0, 0x4c9, 0x319, 0x329, 0x3f1, 0x600, 0x010, 0x01b, 0x834, 0xc0000080,
	};

	if (below(s, 2))
		return near[below(s, sizeof(near) / sizeof(near[0]))];
	return 0x38d + below(s, 6);
}

static void write_op(struct sequence *s, const struct pair_config *cfg, struct pair_op *op)
{
	/* one more than there are, sometimes */
	uint32_t gp = below(s, cfg->n_gp + one_in(s, 10)) % 8;
	uint32_t fixed = below(s, cfg->n_fixed + 1 - (cfg->n_fixed && !one_in(s, 10)));

	op->kind = PAIR_WRMSR;
	if (cfg->version >= 6 && below(s, 3) == 0) {
		block_op(s, cfg, op);
		return;
	}
	if (cfg->capabilities & VPMU_CAP_LBR && one_in(s, 6)) {
		lbr_op(s, cfg, op);
		return;
	}
	switch (below(s, 32)) {
	case 0: case 1: case 2: case 3: case 4: case 5:
		op->reg = 0x186 + gp;
		op->value = evtsel_value(s) | (cfg->version >= 6 ? evtsel_v6(s) : 0);
		break;
	case 6: case 7: case 8: case 9: case 10: case 11:
		op->reg = (below(s, 2) ? 0x4c1 : 0x0c1) + gp;
		op->value = counter_value(s);
		break;
	case 12: case 13: case 14: case 15:
		op->reg = 0x309 + fixed;
		op->value = counter_value(s);
		break;
	case 16: case 17: case 18:
		op->reg = 0x38d;
		op->value = fixed_ctrl_value(s, cfg);
		break;
	case 19: case 20: case 21: case 22:
		op->reg = 0x38f;
		op->value = bits_value(s, cfg);
		break;
	case 23: case 24: case 25: case 26:
		op->reg = 0x390;
		op->value = status_value(s, cfg);
		break;
	case 27:
		op->reg = 0x391;
		op->value = status_value(s, cfg);
		break;
	case 28: case 29:
		op->reg = 0x1d9;
		op->value = debugctl_value(s);
		break;
	default:
		op->reg = any_msr(s);
		op->value = any_value(s);
		break;
	}
}

static uint32_t read_msr(struct sequence *s)
{
	static const uint32_t first[] = { 0x0c1, 0x186, 0x4c1, 0x309 };

	if (one_in(s, 4))
		return 0x1900 + below(s, 256);

	if (one_in(s, 3))
		return any_msr(s);
	return first[below(s, 4)] + below(s, 8);
}

static uint32_t read_rdpmc_idx(struct sequence *s)
{
	static const uint32_t type[] = {
		0, 0, 0, 0x40000000, 0x40000000, 0x20000000, 0x80000000, 0xc0000000, 0x10000,
	};

	if (one_in(s, 20))
		return take(s, 4);
	return type[below(s, sizeof(type) / sizeof(type[0]))] + below(s, 9);
}

static void run_op(struct sequence *s, struct pair_op *op)
{
	static const uint8_t bank[] = {
		REF_KERNEL, REF_USER, REF_KERNEL, REF_USER, REF_NESTED_KERNEL, REF_NESTED_USER,
	};

	op->kind = PAIR_RUN;
	op->bank = bank[below(s, sizeof(bank))];
	op->count = 1 + below(s, one_in(s, 8) ? 256 : 16);
	op->value = take(s, 8);
}

void sequence_op(struct sequence *s, const struct pair_config *cfg, struct pair_op *op)
{
	uint32_t what = below(s, 128);

	memset(op, 0, sizeof(*op));
	if (what < 56) {
		write_op(s, cfg, op);
	} else if (what < 100) {
		run_op(s, op);
	} else if (what < 108) {
		op->kind = PAIR_RDMSR;
		op->reg = read_msr(s);
	} else if (what < 114) {
		op->kind = PAIR_RDPMC;
		op->bank = below(s, REF_BANKS);
		op->reg = read_rdpmc_idx(s);
	} else if (what < 118) {
		op->kind = PAIR_COMPARE;
	} else if (what < 121) {
		op->kind = PAIR_MIGRATE;
	} else if (what < 125) {
		op->kind = PAIR_SMM;
	} else if (what < 126) {
		op->kind = one_in(s, 4) ? PAIR_RESET : PAIR_INIT;
	} else {
		op->kind = PAIR_CPUID;
		op->reg = below(s, 2) ? 0x23 : below(s, 16);
		op->value = below(s, 7);
	}
}

static const struct vpmu_model *choose_model(struct sequence *s)
{
	const struct vpmu_model *model[32];
	uint32_t n = 0;
	size_t i;

	for (i = 0; n < 32 && vpmu_model_at(i); i++)
		if (vpmu_model_at(i)->vendor == VPMU_VENDOR_INTEL)
			model[n++] = vpmu_model_at(i);
	return n ? model[below(s, n)] : NULL;
}

bool sequence_config(struct sequence *s, struct pair_config *cfg)
{
	const struct vpmu_model *m = choose_model(s);
	uint8_t n_fixed, most;
	uint64_t lbr;

	if (!m)
		return false;
	n_fixed = m->n_fixed < REF_FIXED_MAX ? m->n_fixed : REF_FIXED_MAX;
	cfg->model = m;
	/* the newest as often as all others */
	most = m->version_most > m->version ? m->version_most : m->version;
	cfg->version = below(s, 2) ? most : 1 + below(s, most);
	cfg->n_gp = below(s, 2) ? m->n_gp : 1 + below(s, m->n_gp);
	cfg->n_fixed = below(s, 2) ? n_fixed : below(s, n_fixed + 1);
	if (cfg->version == 1)
		cfg->n_fixed = 0;
	/* The reference has no PEBS, and branch records of two kinds: others have tests of
	   their own. */
	cfg->capabilities = m->capabilities & ~(uint64_t)0x4fff;
	cfg->capabilities &= below(s, 2) ? ~(uint64_t)0 : take(s, 8);
	lbr = m->capabilities & VPMU_CAP_LBR;
	if ((lbr == VPMU_CAP_LBR_INFO || lbr == VPMU_CAP_LBR_ARCH) && below(s, 4))
		cfg->capabilities |= lbr;
	return true;
}
