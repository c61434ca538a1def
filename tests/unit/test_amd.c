// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * AMD's PMU over the direct provider and the scripted engine: K7's four counters,
 * PerfCtrExtCore's six, PerfMonV2; what differs from Intel's is what is tested.
 *
 * Register numbers and bits as the manual prints them, not as msr.h has them: a
 * wrong constant there must not hide itself.
 */
#include "unit.h"

#include <script.h>
#include <vpmu/arch.h>
#include <vpmu/direct.h>
#include <vpmu/state.h>
#include <vpmu/vcpu.h>

#define BIT(n)		((uint64_t)1 << (n))
#define MASK48		(BIT(48) - 1)

#define K7_CTL		0xc0010000u
#define K7_CTR		0xc0010004u
#define CTL(n)		(0xc0010200u + 2 * (n))
#define CTR(n)		(0xc0010201u + 2 * (n))
#define STATUS		0xc0000300u
#define GLOBAL		0xc0000301u
#define STATUS_CLR	0xc0000302u
#define STATUS_SET	0xc0000303u
#define DEBUGCTL	0x1d9u

#define USR		BIT(16)
#define OS		BIT(17)
#define EDGE		BIT(18)
#define INT		BIT(20)
#define EN		BIT(22)
#define GUEST_ONLY	BIT(40)
#define HOST_ONLY	BIT(41)
#define EN_USR		(EN | USR)
#define EN_ALL		(EN | USR | OS)
#define SEL12(select)	(((select) & 0xff) | ((uint64_t)(select) & 0xf00) << 24)

#define CYCLES		0x76
#define INSTRUCTIONS	0xc0
#define BRANCHES	0xc2
#define TAKEN		0xc4
#define UNCONDITIONAL	SEL12(0x1c9)

#define EXT		BIT(32)
#define FREEZE		BIT(33)
#define SVM		BIT(34)
#define AMD_LBR		VPMU_CAP_AMD_LBR
#define LOSS_BASE	0x40000100u

/* Machines ------------------------------------------------------------------ */

struct machine {
	struct vpmu_script script;
	struct vpmu_direct direct;
	struct vpmu_arch *v;
	const struct vpmu_model *model;
};

/* A PMU that a guest can be given. */
struct shape {
	uint8_t version, n_gp;
	uint64_t caps;
};

static const struct shape shapes[] = {
	{ 1, 4, 0 }, { 1, 4, SVM }, { 1, 6, EXT }, { 1, 6, EXT | SVM },
	{ 2, 6, EXT }, { 2, 6, EXT | SVM }, { 2, 6, EXT | FREEZE },
	{ 2, 6, EXT | FREEZE | SVM }, { 2, 2, EXT | FREEZE | SVM }, { 2, 1, EXT },
	{ 2, 5, EXT | SVM },
};

static const struct shape full = { 2, 6, EXT | FREEZE | SVM };

static const struct vpmu_model *zen4(void)
{
	return vpmu_model_find(VPMU_VENDOR_AMD, 25, 17);
}

static void service(void *arg)
{
	vpmu_arch_service(arg);
}

static void machine_config(struct machine *m, const struct shape *s,
			   struct vpmu_arch_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->size = sizeof(*cfg);
	cfg->model = m->model;
	cfg->version = s->version;
	cfg->n_gp = s->n_gp;
	cfg->n_fixed = 0;
	cfg->capabilities = s->caps;
	cfg->provider = &m->direct.provider;
	cfg->ops = &m->script.ops;
	cfg->ctx = &m->script;
}

static struct machine *machine_make(const struct vpmu_model *model, const struct shape *s,
				    uint32_t cpuid_base)
{
	struct vpmu_silicon_config sc = { .size = sizeof(sc) };
	struct machine *m = test_calloc(1, sizeof(*m));
	struct vpmu_arch_config cfg;
	struct vpmu_error err;
	size_t size;

	m->model = model;
	vpmu_script_init(&m->script, VPMU_SCRIPT_SUPPLIED);
	sc.model = model;
	sc.supplied = VPMU_SCRIPT_SUPPLIED;
	sc.ops = &m->script.ops;
	sc.ctx = &m->script;
	assert_int_equal(vpmu_direct_init(&m->direct, &sc), 0);
	m->script.silicon = &m->direct.silicon;
	machine_config(m, s, &cfg);
	cfg.cpuid_base = cpuid_base;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), 0);
	m->v = test_malloc(size);
	memset(m->v, 0xa5, size);
	assert_int_equal(vpmu_arch_init(m->v, &cfg, &err), 0);
	m->script.service = service;
	m->script.arg = m->v;
	return m;
}

static struct machine *machine_new(const struct shape *s)
{
	return machine_make(zen4(), s, 0);
}

static void machine_free(struct machine *m)
{
	vpmu_arch_reset(m->v, false);
	assert_int_equal(m->script.demand, 0);
	if (m->script.broken)
		fail_msg("%s", m->script.broken);
	test_free(m->v);
	test_free(m);
}

/* An access that must be handled, then what it has left to do. */
static void wr(struct machine *m, uint32_t msr, uint64_t value)
{
	if (vpmu_arch_wrmsr(m->v, msr, value) != VPMU_HANDLED)
		fail_msg("WRMSR %x", msr);
	vpmu_script_service(&m->script);
}

static uint64_t rd(struct machine *m, uint32_t msr)
{
	uint64_t value = 0;

	if (vpmu_arch_rdmsr(m->v, msr, &value) != VPMU_HANDLED)
		fail_msg("RDMSR %x", msr);
	return value;
}

static void run(struct machine *m, enum vpmu_bank bank, unsigned int n)
{
	while (n--)
		vpmu_script_step(&m->script, bank, VPMU_SIGNAL_INSTRUCTIONS);
}

/* Configuration ------------------------------------------------------------- */

static void test_refusals(void **state)
{
	static const struct {
		int line;
		uint8_t family, model;
		struct shape shape;
		int8_t n_fixed;
		int ret;
		uint64_t asked, available;
	} row[] = {
		{ __LINE__, 25, 17, { 0, 0, EXT }, -1, 0, 0, 0 },
		{ __LINE__, 25, 17, { 2, 1, EXT | FREEZE | SVM }, 0, 0, 0, 0 },
		{ __LINE__, 25, 17, { 1, 0, 0 }, -1, 0, 0, 0 },
		{ __LINE__, 25, 17, { 1, 4, 0 }, -1, 0, 0, 0 },
		{ __LINE__, 25, 1, { 0, 0, EXT | SVM }, -1, 0, 0, 0 },
		{ __LINE__, 25, 1, { 0, 6, EXT }, -1, 0, 0, 0 },
		{ __LINE__, 15, 107, { 1, 0, 0 }, -1, 0, 0, 0 },
		/* Version 2 is all of it, and more than a Zen 3 has. */
		{ __LINE__, 25, 17, { 0, 0, 0 }, -1, -VPMU_EINVAL, 2, 1 },
		{ __LINE__, 25, 17, { 2, 4, SVM }, -1, -VPMU_EINVAL, 2, 1 },
		{ __LINE__, 25, 17, { 3, 0, EXT }, -1, -VPMU_EOPNOTSUPP, 3, 2 },
		{ __LINE__, 25, 1, { 2, 0, EXT }, -1, -VPMU_EOPNOTSUPP, 2, 1 },
		{ __LINE__, 25, 1, { 1, 0, EXT | FREEZE }, -1, -VPMU_EOPNOTSUPP,
		  EXT | FREEZE, EXT | SVM },
		/* Nothing tells the guest of another number of counters. */
		{ __LINE__, 25, 17, { 1, 5, EXT }, -1, -VPMU_EOPNOTSUPP, 5, 6 },
		{ __LINE__, 25, 17, { 1, 4, EXT }, -1, -VPMU_EOPNOTSUPP, 4, 6 },
		{ __LINE__, 25, 17, { 1, 6, 0 }, -1, -VPMU_EOPNOTSUPP, 6, 4 },
		{ __LINE__, 25, 17, { 1, 3, 0 }, -1, -VPMU_EOPNOTSUPP, 3, 4 },
		{ __LINE__, 25, 17, { 2, 7, EXT }, -1, -VPMU_EOPNOTSUPP, 7, 6 },
		{ __LINE__, 25, 17, { 2, 6, EXT }, 1, -VPMU_EOPNOTSUPP, 1, 0 },
		{ __LINE__, 25, 17, { 2, 6, EXT | BIT(13) }, -1, -VPMU_EOPNOTSUPP,
		  EXT | BIT(13), EXT | FREEZE | SVM | AMD_LBR },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		struct machine m = { .model = vpmu_model_find(VPMU_VENDOR_AMD, row[i].family,
							      row[i].model) };
		struct vpmu_error err = { NULL, 0, 0 };
		struct vpmu_arch_config cfg;
		size_t size;
		int ret;

		vpmu_script_init(&m.script, VPMU_SCRIPT_SUPPLIED);
		m.direct.provider.ops = &vpmu_direct_ops;
		m.direct.provider.model = m.model;
		m.direct.provider.n_gp = 6;
		machine_config(&m, &row[i].shape, &cfg);
		cfg.n_fixed = row[i].n_fixed;
		ret = vpmu_arch_size(&cfg, &size, &err);
		if (ret != row[i].ret || err.asked != row[i].asked ||
		    err.available != row[i].available || !err.what != !ret)
			fail_msg("line %d: %d, %s: asked %llx, available %llx", row[i].line, ret,
				 err.what ? err.what : "-", (unsigned long long)err.asked,
				 (unsigned long long)err.available);
	}
}

/* Models that no validator would pass. */
static void test_bad_models(void **state)
{
	struct vpmu_model model = *zen4();
	struct machine m = { .model = &model };
	struct vpmu_arch_config cfg;
	size_t size;

	(void)state;
	vpmu_script_init(&m.script, VPMU_SCRIPT_SUPPLIED);
	m.direct.provider.ops = &vpmu_direct_ops;
	m.direct.provider.model = &model;
	m.direct.provider.n_gp = 6;
	machine_config(&m, &full, &cfg);
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), 0);
	model.n_fixed = 1;
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), -VPMU_EINVAL);
	model.n_fixed = 0;
	model.n_gp = 3;
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), -VPMU_EINVAL);
	model.n_gp = 6;
	model.version = 3;
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), -VPMU_EINVAL);
}

static void expect_leaf(struct machine *m, uint32_t leaf, const struct vpmu_cpuid *clear,
			const struct vpmu_cpuid *set)
{
	struct vpmu_cpuid ones = { ~0u, ~0u, ~0u, ~0u }, zeros = { 0, 0, 0, 0 };

	assert_true(vpmu_arch_cpuid(m->v, leaf, 0, &ones));
	assert_true(vpmu_arch_cpuid(m->v, leaf, 3, &zeros));
	assert_int_equal(zeros.eax, set->eax);
	assert_int_equal(zeros.ebx, set->ebx);
	assert_int_equal(zeros.ecx, set->ecx);
	assert_int_equal(zeros.edx, set->edx);
	assert_int_equal(ones.eax, ~clear->eax | set->eax);
	assert_int_equal(ones.ebx, ~clear->ebx | set->ebx);
	assert_int_equal(ones.ecx, ~clear->ecx | set->ecx);
	assert_int_equal(ones.edx, ~clear->edx | set->edx);
}

static void test_cpuid(void **state)
{
	static const struct vpmu_cpuid none, whole = { ~0u, ~0u, ~0u, ~0u };
	static const struct vpmu_cpuid pdcm = { 0, 0, BIT(15), 0 };
	static const struct vpmu_cpuid brs = { 0, BIT(31), 0, 0 };
	static const struct vpmu_cpuid core = { 0, 0, BIT(10) | BIT(23) | BIT(24) | BIT(28), 0 };
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT_OF(shapes); i++) {
		struct machine *m = machine_new(&shapes[i]);
		struct vpmu_cpuid set = none, r = none;

		expect_leaf(m, 1, &pdcm, &none);
		expect_leaf(m, 0xa, &whole, &none);
		expect_leaf(m, 0x80000008, &brs, &none);
		set.ecx = shapes[i].caps & EXT ? BIT(23) : 0;
		expect_leaf(m, 0x80000001, &core, &set);
		set = none;
		if (shapes[i].version == 2) {
			set.eax = 1 | (shapes[i].caps & FREEZE ? 4 : 0);
			set.ebx = shapes[i].n_gp;
		}
		expect_leaf(m, 0x80000022, &whole, &set);
		assert_false(vpmu_arch_cpuid(m->v, 0x80000000, 0, &r));
		assert_false(vpmu_arch_cpuid(m->v, 0x8000000a, 0, &r));
		assert_false(vpmu_arch_cpuid(m->v, 0x8000001b, 0, &r));
		assert_false(vpmu_arch_cpuid(m->v, 7, 0, &r));
		assert_int_equal(vpmu_arch_misc_enable(m->v), 0);
		machine_free(m);
	}
}

/* Registers ----------------------------------------------------------------- */

enum access { OTHERS, ABSENT, KEPT, DROPPED, PICKY };

/*
 * The manual's rule for a register: KEPT stores those of @bits that exist and ignores the
 * rest; DROPPED accepts everything and reads 0 (or the former value); PICKY faults on the
 * rest.
 */
static enum access expect(uint32_t msr, const struct shape *s, uint64_t *bits)
{
	uint64_t evtsel = 0xfffffffffull & ~(BIT(19) | BIT(21));
	unsigned int k7 = s->n_gp < 4 ? s->n_gp : 4;

	if (s->caps & SVM)
		evtsel |= GUEST_ONLY | HOST_ONLY;
	*bits = evtsel;
	if (msr >= K7_CTL && msr < K7_CTL + 4)
		return msr < K7_CTL + k7 ? KEPT : ABSENT;
	if (msr >= CTL(0) && msr < CTL(8) && !(msr & 1))
		return s->caps & EXT && msr < CTL(s->n_gp) ? KEPT : ABSENT;
	*bits = MASK48;
	if (msr >= K7_CTR && msr < K7_CTR + 4)
		return msr < K7_CTR + k7 ? KEPT : ABSENT;
	if (msr >= CTL(0) && msr < CTL(8))
		return s->caps & EXT && msr < CTL(s->n_gp) ? KEPT : ABSENT;
	if (msr >= STATUS && msr <= STATUS_SET) {
		*bits = BIT(s->n_gp) - 1;
		if (s->version < 2)
			return ABSENT;
		return msr == GLOBAL ? KEPT : DROPPED;
	}
	if (msr == DEBUGCTL) {
		*bits = s->version == 2 && s->caps & FREEZE ? BIT(11) | BIT(12) : 0;
		return PICKY;
	}
	/* Intel's, L3, northbridge, LBR v2, IBS. */
	if ((msr >= 0xc1 && msr <= 0xc8) || (msr >= 0x186 && msr <= 0x18d) || msr == 0x309 ||
	    msr == 0x345 || (msr >= 0x38d && msr <= 0x392) || msr == 0x4c1 ||
	    msr == 0x3f1 || msr == 0x600 || msr == 0x1900 || msr == 0x680)
		return ABSENT;
	if ((msr >= 0xc0010230 && msr < 0xc001023c) || (msr >= 0xc0010240 && msr < 0xc0010248) ||
	    msr == 0xc000010e || msr == 0xc000010f || (msr >= 0xc0010300 && msr < 0xc0010320) ||
	    (msr >= 0xc0011030 && msr < 0xc001103e))
		return ABSENT;
	return OTHERS;
}

static void check_register(struct machine *m, const struct shape *s, uint32_t msr)
{
	uint64_t bits, value = 0x1234, before;
	enum access access = expect(msr, s, &bits);
	enum vpmu_result result = access == OTHERS ? VPMU_NOT_MINE :
				  access == ABSENT ? VPMU_FAULT : VPMU_HANDLED;
	int bit;

	assert_int_equal(vpmu_arch_knows(m->v, msr), result != VPMU_NOT_MINE);
	if (vpmu_arch_rdmsr(m->v, msr, &value) != result)
		fail_msg("v%d n%d caps %llx: RDMSR %x", s->version, s->n_gp,
			 (unsigned long long)s->caps, msr);
	if (result != VPMU_HANDLED) {
		assert_int_equal(value, 0x1234);
		assert_int_equal(vpmu_arch_wrmsr(m->v, msr, 0), result);
		assert_int_equal(vpmu_arch_wrmsr(m->v, msr, ~(uint64_t)0), result);
		return;
	}
	before = value;
	for (bit = 0; bit < 64; bit++) {
		bool picky = access == PICKY && !(BIT(bit) & (bits | 0x3f));

		result = vpmu_arch_wrmsr(m->v, msr, BIT(bit));
		vpmu_script_service(&m->script);
		if (result != (picky ? VPMU_FAULT : VPMU_HANDLED))
			fail_msg("v%d n%d caps %llx: WRMSR %x bit %d", s->version, s->n_gp,
				 (unsigned long long)s->caps, msr, bit);
		value = access == DROPPED ? before : BIT(bit) & bits;
		if (!picky && rd(m, msr) != value)
			fail_msg("v%d n%d caps %llx: MSR %x bit %d", s->version, s->n_gp,
				 (unsigned long long)s->caps, msr, bit);
		if (!picky && access != DROPPED)
			wr(m, msr, before);
		/* A bit set in the status does not stay. */
		if (s->version == 2)
			wr(m, STATUS_CLR, ~(uint64_t)0);
	}
}

static void test_registers(void **state)
{
	static const struct {
		uint32_t first, last;
	} range[] = {
		{ 0xc0, 0xc9 }, { 0x185, 0x18e }, { 0x1d8, 0x1da }, { 0x309, 0x309 },
		{ 0x345, 0x345 }, { 0x38c, 0x393 }, { 0x3f1, 0x3f1 }, { 0x4c1, 0x4c1 },
		{ 0x600, 0x600 }, { 0x680, 0x680 }, { 0x1900, 0x1900 },
		{ 0x56504d00, 0x56504dff }, { 0xc0000080, 0xc0000080 },
		{ 0xc000010d, 0xc000010f }, { 0xc00002ff, 0xc0000304 },
		{ 0xc000ffff, 0xc0010010 }, { 0xc00101ff, 0xc0010330 },
		{ 0xc001102f, 0xc001103f }, { 0xffffffff, 0xffffffff },
	};
	unsigned int i, k;
	uint32_t msr;

	(void)state;
	for (i = 0; i < COUNT_OF(shapes); i++)
		for (k = 0; k < COUNT_OF(range); k++)
			for (msr = range[k].first; msr - range[k].first <=
			     range[k].last - range[k].first; msr++) {
				struct machine *m = machine_new(&shapes[i]);

				check_register(m, &shapes[i], msr);
				machine_free(m);
			}
}

/* AMD's registers are none of an Intel's. */
static void test_not_intels(void **state)
{
	static const struct shape shape = { 5, 8, 0x3000 };
	struct machine *m = machine_make(vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106), &shape, 0);
	static const uint32_t msr[] = { K7_CTL, K7_CTR, CTL(0), CTR(5), STATUS, GLOBAL,
					STATUS_CLR, STATUS_SET, 0xc000010e, 0xc0010240,
					0xc0011030 };
	uint64_t value;
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT_OF(msr); i++) {
		assert_int_equal(vpmu_arch_rdmsr(m->v, msr[i], &value), VPMU_NOT_MINE);
		assert_int_equal(vpmu_arch_wrmsr(m->v, msr[i], 0), VPMU_NOT_MINE);
		assert_false(vpmu_arch_knows(m->v, msr[i]));
	}
	vpmu_arch_svme(m->v, true);
	assert_int_equal(vpmu_arch_wrmsr(m->v, 0x186, GUEST_ONLY), VPMU_FAULT);
	machine_free(m);
}

/* The first four counters have two addresses. */
static void test_aliases(void **state)
{
	struct machine *m = machine_new(&full);
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		wr(m, K7_CTL + i, SEL12(0x1c9) | i << 8);
		assert_int_equal(rd(m, CTL(i)), SEL12(0x1c9) | i << 8);
		wr(m, CTL(i), INSTRUCTIONS | HOST_ONLY);
		assert_int_equal(rd(m, K7_CTL + i), INSTRUCTIONS | HOST_ONLY);
		wr(m, K7_CTR + i, 0xf00000000 + i);
		assert_int_equal(rd(m, CTR(i)), 0xf00000000 + i);
		wr(m, CTR(i), 77 + i);
		assert_int_equal(rd(m, K7_CTR + i), 77 + i);
	}
	assert_int_equal(rd(m, CTR(4)), 0);
	assert_int_equal(rd(m, CTL(5)), 0);
	machine_free(m);
}

/* All 48 bits, no sign extension; bits above are ignored. */
static void test_width(void **state)
{
	struct machine *m = machine_new(&full);

	(void)state;
	wr(m, CTR(0), 0x80000000);
	assert_int_equal(rd(m, CTR(0)), 0x80000000);
	wr(m, K7_CTR, 0xffffffff);
	assert_int_equal(rd(m, CTR(0)), 0xffffffff);
	wr(m, K7_CTR, 0xffff123456789abc);
	assert_int_equal(rd(m, CTR(0)), 0x123456789abc);
	wr(m, CTR(0), ~(uint64_t)0xffff); /* Linux's check of its hardware */
	assert_int_equal(rd(m, CTR(0)), MASK48 & ~(uint64_t)0xffff);
	machine_free(m);
}

static void test_rdpmc(void **state)
{
	static const uint32_t bad[] = { 0x40000000, 0x80000000, 0x40000001, 0x10000, 0x20000000,
					0xffffffff, 64, 7 };
	unsigned int i, k;

	(void)state;
	for (i = 0; i < COUNT_OF(shapes); i++) {
		struct machine *m = machine_new(&shapes[i]);
		uint64_t value = 99;

		for (k = 0; k < 16; k++) {
			enum vpmu_result result = vpmu_arch_rdpmc(m->v, k, false, &value);

			assert_int_equal(result, k < shapes[i].n_gp ? VPMU_HANDLED : VPMU_FAULT);
		}
		for (k = 0; k < COUNT_OF(bad); k++)
			assert_int_equal(vpmu_arch_rdpmc(m->v, bad[k], false, &value), VPMU_FAULT);
		wr(m, K7_CTR, ~(uint64_t)0);
		wr(m, K7_CTL, INSTRUCTIONS | EN_USR);
		assert_int_equal(vpmu_arch_rdpmc(m->v, 0, false, &value), VPMU_HANDLED);
		assert_int_equal(value, MASK48);
		run(m, VPMU_BANK_USER, 5);
		assert_int_equal(vpmu_arch_rdpmc(m->v, 0, false, &value), VPMU_HANDLED);
		assert_int_equal(value, 4);
		machine_free(m);
	}
}

/* Counting ------------------------------------------------------------------ */

/* Each ring; each event that is counted, over one instruction of each kind. */
static void test_events(void **state)
{
	static const struct {
		uint64_t select;
		uint64_t expect;
	} row[] = {
		{ CYCLES, 9 }, { INSTRUCTIONS, 9 }, { BRANCHES, 8 }, { TAKEN, 7 },
		{ 0xc6, 1 }, { 0xc8, 1 }, { 0xcc, 2 }, { 0xd1, 2 }, { UNCONDITIONAL, 5 },
		{ SEL12(0x120) | 0x0100, 9 }, { 0xc3, 0 }, { 0x1f03, 0 },
		{ 0x0120, 0 }, { SEL12(0x2c0), 0 }, { INSTRUCTIONS | EDGE, 0 },
		{ INSTRUCTIONS | 2 << 24, 0 }, { INSTRUCTIONS | 2 << 24 | BIT(23), 9 },
	};
	static const uint8_t kinds[] = {
		VPMU_SIGNAL_INSTRUCTIONS, VPMU_SIGNAL_JCC_TAKEN, VPMU_SIGNAL_JCC_NOT_TAKEN,
		VPMU_SIGNAL_JMP, VPMU_SIGNAL_CALL, VPMU_SIGNAL_RET, VPMU_SIGNAL_JMP_INDIRECT,
		VPMU_SIGNAL_CALL_INDIRECT, VPMU_SIGNAL_FAR,
	};
	static const uint64_t ring[] = { 0, USR, OS, USR | OS };
	unsigned int i, r, k, bank;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++)
		for (r = 0; r < COUNT_OF(ring); r++) {
			struct machine *m = machine_new(&full);
			uint64_t expected = row[i].expect *
					    (2 * !!(ring[r] & USR) + 2 * !!(ring[r] & OS));

			wr(m, CTL(5), row[i].select | ring[r] | EN);
			for (bank = 0; bank < VPMU_BANK_COUNT; bank++)
				for (k = 0; k < COUNT_OF(kinds); k++)
					vpmu_script_step(&m->script, bank, kinds[k]);
			if (rd(m, CTR(5)) != expected)
				fail_msg("row %u, ring %u: %llu", i, r,
					 (unsigned long long)rd(m, CTR(5)));
			machine_free(m);
		}
}

/* Without PerfMonV2 the selector's enable is all there is; with it, two gates. */
static void test_gates(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT_OF(shapes); i++) {
		struct machine *m = machine_new(&shapes[i]);
		bool v2 = shapes[i].version == 2;

		if (v2) /* after a reset all counters are enabled there */
			assert_int_equal(rd(m, GLOBAL), BIT(shapes[i].n_gp) - 1);
		wr(m, K7_CTL, INSTRUCTIONS | EN_USR);
		run(m, VPMU_BANK_USER, 3);
		wr(m, K7_CTL, INSTRUCTIONS | USR);
		run(m, VPMU_BANK_USER, 5);
		wr(m, K7_CTL, INSTRUCTIONS | EN_USR);
		run(m, VPMU_BANK_KERNEL, 7);
		if (v2) {
			wr(m, GLOBAL, ~(uint64_t)1);
			run(m, VPMU_BANK_USER, 11);
			wr(m, GLOBAL, ~(uint64_t)0);
		}
		run(m, VPMU_BANK_USER, 13);
		assert_int_equal(rd(m, K7_CTR), 16);
		machine_free(m);
	}
}

/*
 * At the very instruction, and every 2^48; LVTPC stays unmasked, so the next one is
 * delivered too. There is a status only with PerfMonV2, and no CondChgd.
 */
static void test_overflow(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT_OF(shapes); i++) {
		struct machine *m = machine_new(&shapes[i]);
		bool v2 = shapes[i].version == 2;

		wr(m, K7_CTR, -(uint64_t)10);
		wr(m, K7_CTL, INSTRUCTIONS | EN_USR | INT);
		run(m, VPMU_BANK_USER, 9);
		assert_int_equal(m->script.n_pmi, 0);
		run(m, VPMU_BANK_USER, 1);
		assert_int_equal(m->script.n_pmi, 1);
		assert_int_equal(m->script.pmi_at[0], 10);
		assert_false(m->script.lvtpc_masked);
		assert_int_equal(rd(m, K7_CTR), 0); /* bit 47 is what Linux looks at */
		if (v2) {
			assert_int_equal(rd(m, STATUS), 1);
			wr(m, STATUS, 0);
			wr(m, STATUS_CLR, ~(uint64_t)1);
			assert_int_equal(rd(m, STATUS), 1);
			wr(m, STATUS_CLR, 1);
			assert_int_equal(rd(m, STATUS), 0);
		}
		wr(m, K7_CTR, MASK48 - 1);
		run(m, VPMU_BANK_USER, 2);
		assert_int_equal(m->script.n_pmi, 2);
		assert_int_equal(m->script.pmi_at[1], 12);
		assert_int_equal(m->script.n_pmi_lost, 0);
		/* Without INT a status and no interrupt. */
		wr(m, K7_CTL, INSTRUCTIONS | EN_USR);
		if (v2)
			wr(m, STATUS_CLR, 1);
		wr(m, K7_CTR, MASK48);
		run(m, VPMU_BANK_USER, 2);
		assert_int_equal(m->script.n_pmi, 2);
		if (v2)
			assert_int_equal(rd(m, STATUS), 1);
		assert_int_equal(rd(m, K7_CTR), 1);
		machine_free(m);
	}
}

/* Several at once: one PMI, each with its bit; SET sets without one. */
static void test_status(void **state)
{
	struct machine *m = machine_new(&full);
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++) {
		wr(m, CTR(i), MASK48 - i / 3);
		wr(m, CTL(i), INSTRUCTIONS | EN_USR | INT);
	}
	run(m, VPMU_BANK_USER, 1);
	assert_int_equal(m->script.n_pmi, 1);
	assert_int_equal(rd(m, STATUS), 7);
	run(m, VPMU_BANK_USER, 1);
	assert_int_equal(m->script.n_pmi, 2);
	assert_int_equal(rd(m, STATUS), 0x3f);
	wr(m, STATUS_CLR, 0x2a);
	assert_int_equal(rd(m, STATUS), 0x15);
	wr(m, STATUS_SET, BIT(63) | BIT(58) | BIT(6) | 2);
	assert_int_equal(rd(m, STATUS), 0x17);
	assert_int_equal(rd(m, STATUS_SET), 0);
	assert_int_equal(rd(m, STATUS_CLR), 0);
	assert_int_equal(vpmu_arch_restore_status(m->v, BIT(59) | 8), VPMU_HANDLED);
	assert_int_equal(rd(m, STATUS), BIT(59) | 8);
	assert_int_equal(vpmu_arch_restore_status(m->v, BIT(6)), VPMU_FAULT);
	assert_int_equal(rd(m, STATUS), BIT(59) | 8);
	assert_int_equal(m->script.n_pmi, 2);
	run(m, VPMU_BANK_USER, 20); /* nothing counts in a frozen one */
	assert_int_equal(rd(m, CTR(0)), 1);
	assert_int_equal(vpmu_arch_restore_status(m->v, 0), VPMU_HANDLED);
	run(m, VPMU_BANK_USER, 20);
	assert_int_equal(rd(m, CTR(0)), 21);
	machine_free(m);
}

/* PMC freeze: the status' bit 59 holds all counters until it is cleared. */
static void test_freeze(void **state)
{
	static const struct shape cold = { 2, 6, EXT };
	struct machine *m = machine_new(&full);

	(void)state;
	wr(m, DEBUGCTL, BIT(12));
	wr(m, CTL(0), INSTRUCTIONS | EN_USR | INT);
	wr(m, CTL(1), INSTRUCTIONS | EN_USR);
	wr(m, CTR(1), MASK48); /* without INT it freezes nothing */
	wr(m, CTR(0), MASK48 - 4);
	run(m, VPMU_BANK_USER, 1);
	assert_int_equal(rd(m, STATUS), 2);
	run(m, VPMU_BANK_USER, 20);
	assert_int_equal(m->script.n_pmi, 1);
	assert_int_equal(rd(m, STATUS), BIT(59) | 3);
	assert_int_equal(rd(m, GLOBAL), 0x3f);
	assert_int_equal(rd(m, CTR(0)), 0);
	assert_int_equal(rd(m, CTR(1)), 4);
	wr(m, STATUS_CLR, 3);
	run(m, VPMU_BANK_USER, 20);
	assert_int_equal(rd(m, CTR(1)), 4);
	wr(m, STATUS_CLR, BIT(59));
	run(m, VPMU_BANK_USER, 20);
	assert_int_equal(rd(m, CTR(0)), 20);
	assert_int_equal(rd(m, CTR(1)), 24);
	wr(m, STATUS_SET, BIT(59));
	run(m, VPMU_BANK_USER, 20);
	assert_int_equal(rd(m, CTR(1)), 24);
	machine_free(m);

	m = machine_new(&cold);
	assert_int_equal(vpmu_arch_wrmsr(m->v, DEBUGCTL, BIT(12)), VPMU_FAULT);
	wr(m, STATUS_SET, BIT(59));
	assert_int_equal(rd(m, STATUS), 0);
	wr(m, CTL(0), INSTRUCTIONS | EN_USR | INT);
	wr(m, CTR(0), MASK48);
	run(m, VPMU_BANK_USER, 20);
	assert_int_equal(rd(m, STATUS), 1);
	assert_int_equal(rd(m, CTR(0)), 19);
	machine_free(m);
}

/* SMM freezes nothing. */
static void test_smm(void **state)
{
	struct machine *m = machine_new(&full);

	(void)state;
	wr(m, CTL(0), INSTRUCTIONS | EN_ALL);
	vpmu_arch_smm(m->v, true);
	run(m, VPMU_BANK_KERNEL, 5);
	vpmu_arch_smm(m->v, false);
	assert_int_equal(rd(m, CTR(0)), 5);
	machine_free(m);
}

/* Nesting ------------------------------------------------------------------- */

/* Every combination of the two bits, rings and SVME; 1, 10, 100, 1000 by bank. */
static void test_nesting(void **state)
{
	static const uint64_t only[] = { 0, GUEST_ONLY, HOST_ONLY, GUEST_ONLY | HOST_ONLY };
	unsigned int o, r, svme;

	(void)state;
	for (o = 0; o < 4; o++)
		for (r = 0; r < 4; r++)
			for (svme = 0; svme < 2; svme++) {
				struct machine *m = machine_new(&full);
				bool outside = !only[o] || (svme && only[o] & HOST_ONLY);
				bool inside = !only[o] || (svme && only[o] & GUEST_ONLY);
				uint64_t expected = (outside && r & 2 ? 1 : 0) +
						    (outside && r & 1 ? 10 : 0) +
						    (inside && r & 2 ? 100 : 0) +
						    (inside && r & 1 ? 1000 : 0);

				vpmu_arch_svme(m->v, svme);
				wr(m, CTL(3), INSTRUCTIONS | EN | (uint64_t)r << 16 | only[o]);
				run(m, VPMU_BANK_KERNEL, 1);
				run(m, VPMU_BANK_USER, 10);
				run(m, VPMU_BANK_NESTED_KERNEL, 100);
				run(m, VPMU_BANK_NESTED_USER, 1000);
				if (rd(m, CTR(3)) != expected)
					fail_msg("%u %u %u: %llu", o, r, svme,
						 (unsigned long long)rd(m, CTR(3)));
				machine_free(m);
			}
}

/* While it counts: SVME goes on and off, and the bits change. */
static void test_nesting_changes(void **state)
{
	struct machine *m = machine_new(&full);
	struct vpmu_pmc_info info;

	(void)state;
	wr(m, CTL(0), INSTRUCTIONS | EN_ALL | HOST_ONLY);
	wr(m, CTL(1), INSTRUCTIONS | EN_ALL | GUEST_ONLY | INT);
	wr(m, CTL(2), INSTRUCTIONS | EN_ALL);
	wr(m, CTR(1), MASK48 - 99);
	assert_true(vpmu_arch_pmc_info(m->v, 0, &info));
	assert_false(info.enabled);
	run(m, VPMU_BANK_KERNEL, 1);
	vpmu_arch_svme(m->v, true);
	vpmu_arch_svme(m->v, true);
	run(m, VPMU_BANK_KERNEL, 20);
	run(m, VPMU_BANK_NESTED_USER, 99);
	assert_int_equal(m->script.n_pmi, 0);
	run(m, VPMU_BANK_KERNEL, 300);
	run(m, VPMU_BANK_NESTED_KERNEL, 1);
	assert_int_equal(m->script.n_pmi, 1); /* at the very instruction */
	assert_int_equal(m->script.pmi_at[0], 1 + 20 + 99 + 300 + 1);
	assert_int_equal(rd(m, STATUS), 2);
	assert_int_equal(rd(m, CTR(0)), 320);
	assert_int_equal(rd(m, CTR(1)), 0);
	vpmu_arch_svme(m->v, false);
	run(m, VPMU_BANK_KERNEL, 4000);
	assert_int_equal(rd(m, CTR(0)), 320);
	vpmu_arch_svme(m->v, true);
	run(m, VPMU_BANK_KERNEL, 5);
	assert_int_equal(rd(m, CTR(0)), 325);
	wr(m, CTL(0), INSTRUCTIONS | EN_ALL | HOST_ONLY | GUEST_ONLY);
	run(m, VPMU_BANK_NESTED_USER, 7);
	run(m, VPMU_BANK_USER, 8);
	assert_int_equal(rd(m, CTR(0)), 340);
	assert_int_equal(rd(m, CTR(1)), 7);
	assert_int_equal(rd(m, CTR(2)), 1 + 20 + 99 + 300 + 1 + 4000 + 5 + 15);
	/* INIT clears EFER, and leaves selectors alone. */
	vpmu_arch_reset(m->v, true);
	run(m, VPMU_BANK_KERNEL, 100);
	assert_int_equal(rd(m, CTL(0)), INSTRUCTIONS | EN_ALL | HOST_ONLY | GUEST_ONLY);
	assert_int_equal(rd(m, CTR(0)), 340);
	vpmu_arch_svme(m->v, true);
	run(m, VPMU_BANK_KERNEL, 1);
	assert_int_equal(rd(m, CTR(0)), 341);
	/* RESET clears both. */
	vpmu_arch_reset(m->v, false);
	wr(m, CTL(0), INSTRUCTIONS | EN_ALL | HOST_ONLY);
	run(m, VPMU_BANK_KERNEL, 1);
	assert_int_equal(rd(m, CTR(0)), 0);
	machine_free(m);
}

/* Without SVM there are no such bits, and nothing to tell. */
static void test_no_svm(void **state)
{
	static const struct shape shape = { 2, 6, EXT };
	struct machine *m = machine_new(&shape);

	(void)state;
	vpmu_arch_svme(m->v, true);
	wr(m, CTL(0), INSTRUCTIONS | EN_ALL | GUEST_ONLY);
	assert_int_equal(rd(m, CTL(0)), INSTRUCTIONS | EN_ALL);
	run(m, VPMU_BANK_KERNEL, 3);
	assert_int_equal(rd(m, CTR(0)), 3);
	machine_free(m);
}

/* Told, filtered, lost ------------------------------------------------------- */

/* Linux's pair for a wide event: neither half counts, and both are told. */
static void test_merge(void **state)
{
	struct machine *m = machine_new(&full);
	struct vpmu_uncounted uncounted;

	(void)state;
	wr(m, CTR(3), 0xffff);
	wr(m, CTL(3), 0xf004000ff);
	wr(m, CTL(2), 0x1f03 | EN_USR | INT);
	wr(m, CTR(2), MASK48);
	run(m, VPMU_BANK_USER, 100);
	assert_int_equal(rd(m, CTL(3)), 0xf004000ff);
	assert_int_equal(rd(m, CTR(3)), 0xffff);
	assert_int_equal(rd(m, CTR(2)), MASK48);
	assert_int_equal(m->script.n_pmi, 0);
	assert_true(vpmu_arch_uncounted(m->v, 0, &uncounted));
	assert_int_equal(uncounted.select, 0x1f03);
	assert_string_equal(uncounted.name, "FP_RET_SSE_AVX_OPS.ALL");
	assert_null(uncounted.needs);
	/* Its selector has no ring, as Linux writes it, so it enables nothing. */
	assert_false(vpmu_arch_uncounted(m->v, 1, &uncounted));
	wr(m, CTL(3), 0xf004000ff | USR);
	assert_true(vpmu_arch_uncounted(m->v, 1, &uncounted));
	assert_int_equal(uncounted.select, 0xf000000ff);
	assert_string_equal(uncounted.name, "MERGE");
	assert_int_equal(uncounted.times, 1);
	machine_free(m);
}

/* Entries and selectors have event select bits 35:32. */
static void test_filter(void **state)
{
	static const uint64_t plain[] = { SEL12(0x1c9), BRANCHES };
	static const uint64_t masked[] = { VPMU_FILTER_ENTRY(0x1c9, 0xff, 0, 0) };
	struct vpmu_filter f = { .size = sizeof(f), .action = VPMU_FILTER_DENY,
				 .n_events = 2, .events = plain };
	struct machine *m = machine_make(zen4(), &full, LOSS_BASE);
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		f.flags = i ? VPMU_FILTER_MASKED : 0;
		f.n_events = i ? 1 : 2;
		f.events = i ? masked : plain;
		assert_int_equal(vpmu_arch_filter(m->v, &f), 0);
		wr(m, CTL(0), UNCONDITIONAL | EN_USR);
		wr(m, CTL(1), 0xc9 | EN_USR); /* not the same */
		wr(m, CTL(2), INSTRUCTIONS | EN_USR);
		vpmu_script_step(&m->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
		assert_int_equal(rd(m, CTR(0)), i);
		assert_int_equal(rd(m, CTR(2)), 1 + 2 * i);
		assert_int_equal(rd(m, 0x56504d01), 3); /* both do not count */
		assert_int_equal(rd(m, 0x56504d12) & 0xff, VPMU_LOSS_FILTERED);
		assert_int_equal(rd(m, 0x56504d16) & 0xff, VPMU_LOSS_NOT_COUNTED);
		assert_int_equal(vpmu_arch_filter(m->v, NULL), 0);
		vpmu_script_step(&m->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
		assert_int_equal(rd(m, CTR(0)), 1 + i);
	}
	machine_free(m);
}

/* The loss block beside AMD's registers, its leaves beside AMD's. */
static void test_loss(void **state)
{
	struct machine *m = machine_make(zen4(), &full, LOSS_BASE);
	struct vpmu_cpuid r;
	uint64_t value;

	(void)state;
	assert_true(vpmu_arch_cpuid(m->v, LOSS_BASE + 2, 0, &r));
	assert_int_equal(r.eax, 1 | 6 << 8);
	assert_true(vpmu_arch_cpuid(m->v, 0x80000022, 0, &r));
	assert_int_equal(r.ebx, 6);
	wr(m, CTL(5), INSTRUCTIONS | EN_USR);
	wr(m, CTL(4), 0xc3 | EN_USR);
	run(m, VPMU_BANK_USER, 10);
	wr(m, GLOBAL, 0);
	run(m, VPMU_BANK_USER, 10);
	assert_int_equal(rd(m, 0x56504d10 + 4 * 5), 10);
	assert_int_equal(rd(m, 0x56504d11 + 4 * 5), 10);
	assert_int_equal(rd(m, 0x56504d10 + 4 * 4), 10);
	assert_int_equal(rd(m, 0x56504d11 + 4 * 4), 0);
	assert_int_equal(vpmu_arch_rdmsr(m->v, 0x56504d10 + 4 * 6, &value), VPMU_FAULT);
	machine_free(m);
}

/* A counter that is disabled and not written to is given back after a slice. */
static void test_slice(void **state)
{
	struct machine *m = machine_new(&full);

	(void)state;
	wr(m, CTL(0), INSTRUCTIONS | EN_USR);
	run(m, VPMU_BANK_USER, 3);
	wr(m, CTL(0), INSTRUCTIONS | USR);
	assert_true(m->script.demand);
	assert_true(vpmu_arch_slice(m->v));
	assert_false(vpmu_arch_slice(m->v));
	assert_int_equal(m->script.demand, 0);
	assert_int_equal(rd(m, CTR(0)), 3);
	machine_free(m);
}

/* A host of AMD's, and a guest that shares its counters. */
struct shared {
	struct vpmu_script script;
	struct vpmu_perf_system host;
	struct vpmu_perf_cpu cpu;
	struct vpmu_vcpu vcpu;
	struct vpmu_arch *v;
};

static void shared_service(void *arg)
{
	struct shared *s = arg;

	vpmu_perf_service(&s->cpu);
	vpmu_arch_service(s->v);
}

static uint64_t shared_rd(struct shared *s, uint32_t msr)
{
	uint64_t value = 0;

	assert_int_equal(vpmu_arch_rdmsr(s->v, msr, &value), VPMU_HANDLED);
	vpmu_script_service(&s->script);
	return value;
}

/*
 * Six counters against two of the host, one of a 12-bit select: exactly two are
 * lost, the guest is told by a PMI that leaves LVTPC alone, and the others count.
 */
static void test_shared(void **state)
{
	struct vpmu_perf_attr attr = { .size = sizeof(attr), .cpu = -1, .event = {
		.size = sizeof(attr.event), .fixed = -1, .slot = -1, .select = UNCONDITIONAL,
		.banks = VPMU_BANKS_USER, .pinned = true } };
	struct shared *s = test_calloc(1, sizeof(*s));
	struct vpmu_arch_config cfg = { .size = sizeof(cfg), .model = zen4(),
		.capabilities = full.caps, .provider = &s->vcpu.provider,
		.ops = &s->script.ops, .ctx = &s->script, .cpuid_base = LOSS_BASE };
	struct vpmu_perf_event host[2];
	uint64_t status, sum = 0;
	unsigned int i;
	size_t size;

	(void)state;
	vpmu_script_init(&s->script, VPMU_SCRIPT_SUPPLIED);
	vpmu_perf_system_init(&s->host, zen4(), s->script.supplied, 400000000, 1600000);
	assert_int_equal(vpmu_perf_cpu_init(&s->cpu, &s->host, 0, &s->script.ops, &s->script), 0);
	assert_int_equal(vpmu_vcpu_init(&s->vcpu, &s->host, VPMU_POLICY_SHARED), 0);
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), 0);
	s->v = test_malloc(size);
	assert_int_equal(vpmu_arch_init(s->v, &cfg, NULL), 0);
	s->script.silicon = &s->cpu.silicon;
	s->script.service = shared_service;
	s->script.arg = s;
	vpmu_vcpu_load(&s->vcpu, &s->cpu);
	vpmu_vcpu_enter(&s->vcpu);

	assert_int_equal(vpmu_arch_wrmsr(s->v, 0x56504d02, 1), VPMU_HANDLED);
	for (i = 0; i < 6; i++)
		assert_int_equal(vpmu_arch_wrmsr(s->v, CTL(i), UNCONDITIONAL | EN_USR),
				 VPMU_HANDLED);
	for (i = 0; i < 10; i++)
		vpmu_script_step(&s->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
	for (i = 0; i < 6; i++)
		assert_int_equal(shared_rd(s, CTR(i)), 10);
	assert_int_equal(shared_rd(s, 0x56504d01), 0);

	for (i = 0; i < 2; i++)
		assert_int_equal(vpmu_perf_open(&host[i], &attr, &s->cpu, NULL), 0);
	vpmu_script_service(&s->script);
	for (i = 0; i < 100; i++)
		vpmu_script_step(&s->script, VPMU_BANK_USER, VPMU_SIGNAL_RET);
	status = shared_rd(s, 0x56504d01);
	assert_int_equal(__builtin_popcountll(status), 2);
	assert_true(s->script.n_pmi);
	assert_false(s->script.lvtpc_masked);
	for (i = 0; i < 6; i++) {
		bool lost = status >> i & 1;

		assert_int_equal(shared_rd(s, CTR(i)), lost ? 10 : 110);
		assert_int_equal(shared_rd(s, 0x56504d12 + 4 * i) & 0xff,
				 lost ? VPMU_LOSS_LOST : VPMU_LOSS_NONE);
		assert_int_equal(shared_rd(s, 0x56504d10 + 4 * i), 110);
		sum += shared_rd(s, 0x56504d11 + 4 * i);
	}
	assert_int_equal(sum, 4 * 110 + 2 * 10);

	for (i = 0; i < 2; i++)
		vpmu_perf_close(&host[i]);
	/* The driver of PerfMonV2 does this: a failed event is enabled again. */
	assert_int_equal(vpmu_arch_wrmsr(s->v, GLOBAL, 0), VPMU_HANDLED);
	assert_int_equal(vpmu_arch_wrmsr(s->v, GLOBAL, 0x3f), VPMU_HANDLED);
	vpmu_script_step(&s->script, VPMU_BANK_USER, VPMU_SIGNAL_RET);
	assert_int_equal(shared_rd(s, 0x56504d01), 0);
	vpmu_arch_reset(s->v, false);
	vpmu_vcpu_exit(&s->vcpu);
	vpmu_vcpu_put(&s->vcpu);
	vpmu_vcpu_fini(&s->vcpu);
	if (s->script.broken)
		fail_msg("%s", s->script.broken);
	test_free(s->v);
	test_free(s);
}

/* State --------------------------------------------------------------------- */

#define SAVED_MAX	4096

static size_t save(struct machine *m, uint8_t *buf)
{
	size_t used;

	assert_int_equal(vpmu_arch_save(m->v, buf, SAVED_MAX, &used), 0);
	return used;
}

/* The section with the model's name becomes an unknown one. */
static void forget_model(uint8_t *buf, size_t used)
{
	size_t at = 16;

	while (at < used && buf[at] != VPMU_STATE_MODEL)
		at += 16 + (buf[at + 8] + 256u * buf[at + 9] + 7) / 8 * 8;
	assert_true(at < used);
	buf[at] = 99;
}

/* Same vendor and model only; at most what there is. */
static void test_load_shapes(void **state)
{
	static const struct {
		struct shape from, to;
		int ret;
	} row[] = {
		{ { 1, 4, 0 }, { 1, 4, 0 }, 0 },
		{ { 1, 4, 0 }, { 1, 6, EXT | SVM }, 0 },
		{ { 1, 6, EXT }, { 1, 4, 0 }, -VPMU_EINVAL },
		{ { 1, 6, EXT }, { 2, 6, EXT }, -VPMU_EINVAL },
		{ { 2, 2, EXT }, { 2, 6, EXT | FREEZE | SVM }, 0 },
		{ { 2, 6, EXT }, { 2, 2, EXT }, -VPMU_EINVAL },
		{ { 2, 6, EXT | FREEZE }, { 2, 6, EXT }, -VPMU_EINVAL },
		{ { 2, 6, EXT | SVM }, { 2, 6, EXT | FREEZE }, -VPMU_EINVAL },
	};
	static const struct shape intel = { 2, 6, 0 };
	uint8_t buf[SAVED_MAX];
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		struct machine *a = machine_new(&row[i].from), *b = machine_new(&row[i].to);
		size_t used;
		int ret;

		wr(a, K7_CTL, UNCONDITIONAL | EN_USR);
		wr(a, K7_CTR, 12345);
		used = save(a, buf);
		ret = vpmu_arch_load(b->v, buf, used);
		if (ret != row[i].ret)
			fail_msg("row %u: %d", i, ret);
		assert_int_equal(rd(b, K7_CTR), ret ? 0 : 12345);
		if (!ret)
			vpmu_script_step(&b->script, VPMU_BANK_USER, VPMU_SIGNAL_RET);
		assert_int_equal(rd(b, K7_CTR), ret ? 0 : 12346);
		machine_free(a);
		machine_free(b);
	}
	/* An Intel of the same numbers is another thing, both ways. */
	for (i = 0; i < 2; i++) {
		static const struct shape amd = { 2, 6, EXT };
		struct machine *a = machine_new(&amd);
		struct machine *b = machine_make(vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106),
						 &intel, 0);
		size_t used = save(i ? b : a, buf);

		/* Capabilities would tell them apart too: not here. */
		memset(buf + 16 + 16 + 8, 0, 8);
		assert_int_equal(vpmu_arch_load(i ? a->v : b->v, buf, used), -VPMU_EINVAL);
		buf[16 + 16 + 4] ^= 1;
		assert_int_equal(vpmu_arch_load(i ? a->v : b->v, buf, used), -VPMU_EINVAL);
		assert_non_null(strstr(vpmu_arch_refused(i ? a->v : b->v)->what, "model"));
		forget_model(buf, used);
		assert_int_equal(vpmu_arch_load(i ? a->v : b->v, buf, used), 0);
		machine_free(a);
		machine_free(b);
	}
}

/* EFER.SVME as it was told is part of the state; no other flag is known. */
static void test_load_svme(void **state)
{
	static const struct shape plain = { 2, 6, EXT };
	struct machine *a = machine_new(&full), *b = machine_new(&full);
	uint8_t buf[SAVED_MAX], *flags = buf + 16 + 16 + 8 + 8 + 6 * 8;
	size_t used;

	(void)state;
	vpmu_arch_svme(a->v, true);
	wr(a, CTL(0), INSTRUCTIONS | EN_USR | GUEST_ONLY);
	run(a, VPMU_BANK_NESTED_USER, 5);
	used = save(a, buf);
	assert_int_equal(*flags, 2);
	assert_int_equal(vpmu_arch_load(b->v, buf, used), 0);
	run(b, VPMU_BANK_NESTED_USER, 5);
	run(b, VPMU_BANK_USER, 5);
	assert_int_equal(rd(b, CTR(0)), 10);
	vpmu_arch_svme(b->v, false);
	run(b, VPMU_BANK_NESTED_USER, 5);
	assert_int_equal(rd(b, CTR(0)), 10);
	/*
	 * The state becomes that of a PMU that was not told of SVME: its counter is
	 * parked.
	 */
	*flags = 0;
	assert_int_equal(vpmu_arch_load(b->v, buf, used), 0);
	run(b, VPMU_BANK_NESTED_USER, 5);
	assert_int_equal(rd(b, CTR(0)), 5);
	vpmu_arch_svme(b->v, true);
	run(b, VPMU_BANK_NESTED_USER, 5);
	assert_int_equal(rd(b, CTR(0)), 10);
	*flags = 1; /* in SMM, frozen */
	assert_int_equal(vpmu_arch_load(b->v, buf, used), -VPMU_EINVAL);
	*flags = 6;
	assert_int_equal(vpmu_arch_load(b->v, buf, used), -VPMU_EINVAL);
	machine_free(b);
	machine_free(a);

	a = machine_new(&plain);
	used = save(a, buf);
	*flags = 2;
	assert_int_equal(vpmu_arch_load(a->v, buf, used), -VPMU_EINVAL);
	*flags = 0;
	buf[16 + 16 + 8 + 8 + 6 * 8 + 8 + 5] = 1; /* GuestOnly of counter 0 */
	assert_int_equal(vpmu_arch_load(a->v, buf, used), -VPMU_EINVAL);
	machine_free(a);
}

/* Random guests -------------------------------------------------------------- */

/*
 * Slow and obvious: registers and counters by themselves, one instruction at a
 * time. It knows nothing of events, deadlines and demand.
 */
struct oracle {
	struct shape s;
	uint64_t ctl[6], ctr[6], global, status, debugctl;
	bool svme;
	uint32_t n_pmi;
};

static const uint64_t selects[] = {
	CYCLES, INSTRUCTIONS, BRANCHES, TAKEN, 0xc6, 0xc8, 0xcc, 0xd1, UNCONDITIONAL,
	0xc9, 0xc3, 0xf000000ff, INSTRUCTIONS | 2 << 24 | BIT(23), SEL12(0x120) | 0x100,
};

static bool oracle_hit(uint64_t ctl, enum vpmu_signal kind)
{
	bool branch = kind >= VPMU_SIGNAL_JCC_TAKEN && kind <= VPMU_SIGNAL_FAR;
	bool jcc = kind == VPMU_SIGNAL_JCC_TAKEN || kind == VPMU_SIGNAL_JCC_NOT_TAKEN;

	switch (ctl & 0xfff84ffffull & ~(BIT(16) | BIT(17))) {
	case CYCLES:
	case INSTRUCTIONS:
	case INSTRUCTIONS | 2 << 24 | BIT(23):
	case SEL12(0x120) | 0x100:
		return true;
	case BRANCHES:
		return branch;
	case TAKEN:
		return branch && kind != VPMU_SIGNAL_JCC_NOT_TAKEN;
	case 0xc6:
		return kind == VPMU_SIGNAL_FAR;
	case 0xc8:
		return kind == VPMU_SIGNAL_RET;
	case 0xcc:
		return kind == VPMU_SIGNAL_JMP_INDIRECT || kind == VPMU_SIGNAL_CALL_INDIRECT;
	case 0xd1:
		return jcc;
	case UNCONDITIONAL:
		return branch && !jcc && kind != VPMU_SIGNAL_FAR;
	}
	return false;
}

static bool oracle_on(const struct oracle *o, unsigned int i, enum vpmu_bank bank)
{
	bool user = bank == VPMU_BANK_USER || bank == VPMU_BANK_NESTED_USER;
	bool nested = bank == VPMU_BANK_NESTED_KERNEL || bank == VPMU_BANK_NESTED_USER;
	uint64_t ctl = o->ctl[i];

	if (!(ctl & EN) || !(ctl & (user ? USR : OS)) || o->status & BIT(59))
		return false;
	if (o->s.version == 2 && !(o->global >> i & 1))
		return false;
	if (!(ctl & (GUEST_ONLY | HOST_ONLY)))
		return true;
	return o->svme && ctl & (nested ? GUEST_ONLY : HOST_ONLY);
}

static void oracle_step(struct oracle *o, enum vpmu_bank bank, enum vpmu_signal kind)
{
	uint32_t wrapped = 0;
	bool pmi = false;
	unsigned int i;

	for (i = 0; i < o->s.n_gp; i++) {
		if (!oracle_on(o, i, bank) || !oracle_hit(o->ctl[i], kind))
			continue;
		o->ctr[i] = (o->ctr[i] + 1) & MASK48;
		if (o->ctr[i])
			continue;
		wrapped |= 1u << i;
		pmi |= o->ctl[i] & INT;
	}
	if (o->s.version == 2)
		o->status |= wrapped;
	o->n_pmi += pmi;
	if (pmi && o->debugctl & BIT(12))
		o->status |= BIT(59);
}

static enum vpmu_result oracle_write(struct oracle *o, uint32_t msr, uint64_t value)
{
	uint64_t bits, status = (BIT(o->s.n_gp) - 1) | (o->s.caps & FREEZE ? BIT(59) : 0);
	enum access access = expect(msr, &o->s, &bits);

	if (access == ABSENT || (access == PICKY && value & ~(bits | 0x3f)))
		return VPMU_FAULT;
	if (msr >= K7_CTL && msr < K7_CTL + 4)
		o->ctl[msr - K7_CTL] = value & bits;
	else if (msr >= K7_CTR && msr < K7_CTR + 4)
		o->ctr[msr - K7_CTR] = value & bits;
	else if (msr >= CTL(0) && msr < CTL(6) && msr & 1)
		o->ctr[(msr - CTL(0)) / 2] = value & bits;
	else if (msr >= CTL(0) && msr < CTL(6))
		o->ctl[(msr - CTL(0)) / 2] = value & bits;
	else if (msr == GLOBAL)
		o->global = value & bits;
	else if (msr == STATUS_CLR)
		o->status &= ~(value & status);
	else if (msr == STATUS_SET)
		o->status |= value & status;
	else if (msr == DEBUGCTL)
		o->debugctl = value & bits;
	return VPMU_HANDLED;
}

static void oracle_init(struct oracle *o, const struct shape *s)
{
	memset(o, 0, sizeof(*o));
	o->s = *s;
	o->global = s->version == 2 ? BIT(s->n_gp) - 1 : 0;
}

static void oracle_compare(const struct oracle *o, struct machine *m)
{
	bool ext = o->s.caps & EXT;
	unsigned int i;
	uint64_t value;

	for (i = 0; i < o->s.n_gp; i++) {
		assert_int_equal(rd(m, ext ? CTL(i) : K7_CTL + i), o->ctl[i]);
		assert_int_equal(vpmu_arch_rdpmc(m->v, i, false, &value), VPMU_HANDLED);
		assert_int_equal(value, o->ctr[i]);
	}
	if (o->s.version == 2) {
		assert_int_equal(rd(m, GLOBAL), o->global);
		assert_int_equal(rd(m, STATUS), o->status);
	}
	assert_int_equal(rd(m, DEBUGCTL), o->debugctl);
	assert_int_equal(m->script.n_pmi + m->script.n_pmi_lost, o->n_pmi);
}

static uint64_t rng_state;

static uint64_t rng(void)
{
	return random_next(&rng_state) >> 16;
}

static uint32_t any_msr(const struct shape *s)
{
	switch (rng() % 8) {
	case 0:
		return K7_CTL + rng() % 8;
	case 1:
		return STATUS + rng() % 4;
	case 2:
		return rng() % 4 ? GLOBAL : DEBUGCTL;
	default:
		if (!(s->caps & EXT))
			return K7_CTL + rng() % 8;
		return CTL(0) + rng() % (2 * s->n_gp + 1);
	}
}

static uint64_t any_value(uint32_t msr)
{
	static const uint64_t only[] = { 0, 0, 0, GUEST_ONLY, HOST_ONLY, GUEST_ONLY | HOST_ONLY };
	bool ctl = msr < K7_CTR || (msr >= CTL(0) && !(msr & 1));

	if (rng() % 16 == 0)
		return rng() << 20 ^ rng();
	if (msr == DEBUGCTL)
		return rng() % 2 ? BIT(12) : 0;
	if (msr >= STATUS && msr <= STATUS_SET)
		return rng() % 3 ? ~(uint64_t)0 : (rng() & 0x3f) | (rng() & 1) << 59;
	if (!ctl)
		return rng() % 3 ? MASK48 - rng() % 40 : rng() % 1000;
	return selects[rng() % COUNT_OF(selects)] | only[rng() % COUNT_OF(only)] |
	       (rng() % 4) << 16 | (rng() & 1) << 20 | (rng() % 4 ? EN : 0);
}

static void random_op(struct oracle *o, struct machine *m)
{
	enum vpmu_signal kind = VPMU_SIGNAL_INSTRUCTIONS + rng() % VPMU_SIGNAL_CYCLES;
	enum vpmu_bank bank = rng() % VPMU_BANK_COUNT;
	uint32_t msr = any_msr(&o->s);
	uint64_t value = any_value(msr), n = rng() % 40;
	unsigned int op = rng() % 32;

	if (kind == VPMU_SIGNAL_BRANCHES)
		kind = VPMU_SIGNAL_CALL;
	if (op < 14) {
		assert_int_equal(vpmu_arch_wrmsr(m->v, msr, value), oracle_write(o, msr, value));
		vpmu_script_service(&m->script);
	} else if (op < 28) {
		while (n--) {
			vpmu_script_step(&m->script, bank, kind);
			oracle_step(o, bank, kind);
		}
	} else if (op < 30) {
		vpmu_arch_svme(m->v, n & 1);
		o->svme = n & 1 && o->s.caps & SVM;
	} else if (op < 31) {
		(void)vpmu_arch_slice(m->v);
	} else if (n < 2) {
		uint32_t n_pmi = o->n_pmi;

		vpmu_arch_reset(m->v, false);
		oracle_init(o, &(struct shape){ o->s.version, o->s.n_gp, o->s.caps });
		o->n_pmi = n_pmi;
	} else if (n < 4) {
		vpmu_arch_reset(m->v, true);
		o->svme = false;
		o->debugctl = 0;
	}
}

/* Saved and loaded now and then, too. */
static struct machine *moved(struct machine *m, const struct shape *s)
{
	struct machine *to = machine_new(s);
	uint8_t buf[SAVED_MAX], again[SAVED_MAX];
	size_t used = save(m, buf);

	assert_int_equal(vpmu_arch_load(to->v, buf, used), 0);
	assert_int_equal(save(to, again), used);
	assert_memory_equal(buf, again, used);
	to->script.n_pmi = m->script.n_pmi + m->script.n_pmi_lost;
	machine_free(m);
	return to;
}

static void test_random(void **state)
{
	unsigned int turn, i;

	(void)state;
	for (turn = 0; turn < 60 * COUNT_OF(shapes); turn++) {
		const struct shape *s = &shapes[turn % COUNT_OF(shapes)];
		struct machine *m = machine_new(s);
		struct oracle o;

		oracle_init(&o, s);
		rng_state = 0x9e3779b97f4a7c15ull + turn;
		for (i = 0; i < 200; i++) {
			random_op(&o, m);
			if (rng() % 16 == 0)
				m = moved(m, s);
			oracle_compare(&o, m);
		}
		machine_free(m);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_bad_models),
		cmocka_unit_test(test_cpuid),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_not_intels),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_rdpmc),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_gates),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_freeze),
		cmocka_unit_test(test_smm),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_nesting_changes),
		cmocka_unit_test(test_no_svm),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_slice),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_load_shapes),
		cmocka_unit_test(test_load_svme),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("amd", tests, NULL, NULL);
}
