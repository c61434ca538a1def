// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Version 6 of architectural perfmon: leaf 23H, the registers from 1900H on,
 * UnitMask2 and EQ, RDPMC user disable, auto counter reload. Over the direct provider
 * and the scripted engine, so that counts are those of what retires. Register numbers
 * and bits stand here as the manual prints them.
 */
#include "unit.h"

#include <vpmu/arch.h>
#include <vpmu/direct.h>

#include "script.h"

#define BIT(n)		((uint64_t)1 << (n))
#define MASK48		(BIT(48) - 1)

#define DEBUGCTL	0x1d9
#define FIXED_CTRL	0x38d
#define STATUS		0x38e
#define GLOBAL		0x38f
#define RESET		0x390
#define GP(n)		(0x1900u + 4 * (n))
#define FX(n)		(0x1980u + 4 * (n))
#define CFG_A		1
#define CFG_B		2
#define CFG_C		3

#define INSTRUCTIONS	0xc0
#define BRANCHES	0xc4
#define ON		(BIT(22) | BIT(17)) /* EN, OS */
#define INT		BIT(20)
#define ALL		(0xffull | 7ull << 32)

#define STATE_MAX	8192

struct machine {
	struct vpmu_script script; /* first: hooks get a pointer to it */
	struct vpmu_direct direct;
	struct vpmu_arch *v;
	unsigned int n_pmi;
};

static void machine_raise_pmi(void *ctx, bool mask)
{
	struct machine *m = ctx;

	assert_true(mask);
	m->n_pmi++;
}

static void machine_service(void *arg)
{
	struct machine *m = arg;

	vpmu_arch_service(m->v);
}

static const struct vpmu_model *intel(uint8_t model)
{
	return vpmu_model_find(VPMU_VENDOR_INTEL, 6, model);
}

#define GRANITE		intel(173)
#define CLEARWATER	intel(221)
#define SAPPHIRE	intel(143)

static struct machine *machine_of(const struct vpmu_model *model, uint8_t version,
				  uint8_t n_gp, int8_t n_fixed)
{
	struct machine *m = test_calloc(1, sizeof(*m));
	struct vpmu_silicon_config silicon = { .size = sizeof(silicon) };
	struct vpmu_arch_config cfg = { .size = sizeof(cfg) };
	size_t size;

	vpmu_script_init(&m->script, VPMU_SCRIPT_SUPPLIED);
	m->script.ops.raise_pmi = machine_raise_pmi;
	m->script.silicon = &m->direct.silicon;
	m->script.service = machine_service;
	m->script.arg = m;
	silicon.model = model;
	silicon.supplied = VPMU_SCRIPT_SUPPLIED;
	silicon.ops = &m->script.ops;
	silicon.ctx = m;
	assert_int_equal(vpmu_direct_init(&m->direct, &silicon), 0);
	cfg.model = model;
	cfg.version = version;
	cfg.n_gp = n_gp;
	cfg.n_fixed = n_fixed;
	cfg.capabilities = model->capabilities & ~VPMU_CAP_PEBS; /* there is no memory */
	cfg.provider = &m->direct.provider;
	cfg.ops = &m->script.ops;
	cfg.ctx = m;
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), 0);
	m->v = test_malloc(size);
	assert_int_equal(vpmu_arch_init(m->v, &cfg, NULL), 0);
	return m;
}

static struct machine *granite(void)
{
	return machine_of(GRANITE, 6, 0, -1);
}

static void machine_free(struct machine *m)
{
	assert_null(m->script.broken);
	vpmu_arch_reset(m->v, false);
	test_free(m->v);
	test_free(m);
}

static void wr(struct machine *m, uint32_t msr, uint64_t value)
{
	if (vpmu_arch_wrmsr(m->v, msr, value) != VPMU_HANDLED)
		fail_msg("WRMSR %x %llx faults", msr, (unsigned long long)value);
	vpmu_script_service(&m->script);
}

static uint64_t rd(struct machine *m, uint32_t msr)
{
	uint64_t value = 0;

	if (vpmu_arch_rdmsr(m->v, msr, &value) != VPMU_HANDLED)
		fail_msg("RDMSR %x faults", msr);
	return value;
}

static bool faults(struct machine *m, uint32_t msr, uint64_t value)
{
	return vpmu_arch_wrmsr(m->v, msr, value) == VPMU_FAULT;
}

/* @n instructions of one kind in ring 0. */
static void retire(struct machine *m, enum vpmu_signal kind, unsigned int n)
{
	while (n--)
		vpmu_script_step(&m->script, VPMU_BANK_KERNEL, kind);
}

static void plain(struct machine *m, unsigned int n)
{
	retire(m, VPMU_SIGNAL_INSTRUCTIONS, n);
}

/* Configuration, CPUID --------------------------------------------------------- */

static int ask(const struct vpmu_model *model, uint8_t version, struct vpmu_error *err)
{
	struct machine *m = machine_of(model, 0, 0, -1);
	struct vpmu_arch_config cfg = { .size = sizeof(cfg), .n_fixed = -1 };
	size_t size;
	int ret;

	cfg.model = model;
	cfg.version = version;
	cfg.provider = &m->direct.provider;
	cfg.ops = &m->script.ops;
	ret = vpmu_arch_size(&cfg, &size, err);
	machine_free(m);
	return ret;
}

static void test_versions(void **state)
{
	struct vpmu_error err = { NULL, 0, 0 };
	struct vpmu_cpuid r;
	struct machine *m;

	(void)state;
	assert_int_equal(ask(GRANITE, 6, &err), 0);
	assert_int_equal(ask(GRANITE, 7, &err), -VPMU_EOPNOTSUPP);
	assert_int_equal(err.available, 6);
	assert_int_equal(ask(CLEARWATER, 6, &err), 0);
	assert_int_equal(ask(CLEARWATER, 7, &err), -VPMU_EOPNOTSUPP);
	assert_int_equal(ask(SAPPHIRE, 6, &err), -VPMU_EOPNOTSUPP);
	assert_int_equal(err.available, 5);
	m = machine_of(GRANITE, 0, 0, -1); /* features of the CPU */
	assert_true(vpmu_arch_cpuid(m->v, 0xa, 0, &r));
	assert_int_equal(r.eax & 0xff, 5);
	machine_free(m);
	m = machine_of(CLEARWATER, 0, 0, -1);
	assert_true(vpmu_arch_cpuid(m->v, 0xa, 0, &r));
	assert_int_equal(r.eax, 0x07300806);
	assert_int_equal(r.ecx, 7);
	assert_int_equal(r.edx, 0x8603);
	machine_free(m);
}

static void expect_leaf(struct machine *m, uint32_t subleaf, uint32_t eax, uint32_t ebx,
			uint32_t ecx, uint32_t edx)
{
	struct vpmu_cpuid r = { 5, 6, 7, 8 };

	assert_true(vpmu_arch_cpuid(m->v, 0x23, subleaf, &r));
	if (r.eax != eax || r.ebx != ebx || r.ecx != ecx || r.edx != edx)
		fail_msg("23H.%u: %x %x %x %x", subleaf, r.eax, r.ebx, r.ecx, r.edx);
}

static void expect_uncounted(struct machine *m, bool told)
{
	struct vpmu_cpuid r = { 0xaa55, 6, 7, 8 };

	assert_true(vpmu_arch_cpuid(m->v, 7, 1, &r));
	assert_int_equal(r.eax, told ? 0xab55 : 0xaa55);
	assert_int_equal(r.ebx + r.ecx + r.edx, 6 + 7 + 8);
	assert_false(vpmu_arch_cpuid(m->v, 7, 2, &r));
}

/* Cycles, instructions, reference cycles, branches and slots are counted. */
static void test_leaf(void **state)
{
	struct machine *m = granite();
	uint32_t i;

	(void)state;
	expect_leaf(m, 0, 0xf, 7, 0, 0);
	expect_leaf(m, 1, 0xff, 0xf, 0, 0);
	expect_leaf(m, 2, 0xff, 0xf, 0xff, 0xf);
	expect_leaf(m, 3, 0xa7, 0, 0, 0);
	for (i = 4; i < 8; i++)
		expect_leaf(m, i, 0, 0, 0, 0);
	expect_uncounted(m, true);
	machine_free(m);
	m = machine_of(GRANITE, 6, 3, 1);
	expect_leaf(m, 1, 7, 1, 0, 0);
	expect_leaf(m, 2, 7, 1, 7, 1);
	machine_free(m);
	m = machine_of(CLEARWATER, 6, 0, -1);
	expect_leaf(m, 0, 0xf, 3, 0, 0);
	machine_free(m);
	m = machine_of(GRANITE, 5, 0, -1);
	for (i = 0; i < 4; i++)
		expect_leaf(m, i, 0, 0, 0, 0);
	expect_uncounted(m, false);
	machine_free(m);
}

/* Registers -------------------------------------------------------------------- */

/* Both ways through each alias, and through the register that it is one of. */
static void test_aliases(void **state)
{
	struct machine *m = granite();
	uint32_t i;

	(void)state;
	for (i = 0; i < 8; i++) {
		wr(m, GP(i), 0x123456789000 + i);
		assert_int_equal(rd(m, 0x4c1 + i), 0x123456789000 + i);
		wr(m, 0xc1 + i, 0x80000000 + i);
		assert_int_equal(rd(m, GP(i)), 0xffff80000000 + i);
		wr(m, GP(i) + CFG_A, INSTRUCTIONS | i << 8);
		assert_int_equal(rd(m, 0x186 + i), INSTRUCTIONS | i << 8);
		wr(m, 0x186 + i, BRANCHES | i << 24);
		assert_int_equal(rd(m, GP(i) + CFG_A), BRANCHES | i << 24);
	}
	for (i = 0; i < 3; i++) {
		wr(m, FX(i), 0x876543210000 + i);
		assert_int_equal(rd(m, 0x309 + i), 0x876543210000 + i);
		wr(m, 0x309 + i, 77 + i);
		assert_int_equal(rd(m, FX(i)), 77 + i);
	}
	machine_free(m);
}

/* A running counter is the same through both addresses. */
static void test_alias_runs(void **state)
{
	struct machine *m = granite();

	(void)state;
	wr(m, GP(2) + CFG_A, INSTRUCTIONS | ON | INT);
	wr(m, GP(2), MASK48 - 9);
	wr(m, GLOBAL, ALL);
	plain(m, 9);
	assert_int_equal(rd(m, GP(2)), MASK48);
	assert_int_equal(m->n_pmi, 0);
	plain(m, 1);
	assert_int_equal(m->n_pmi, 1);
	assert_int_equal(rd(m, STATUS), BIT(2) | BIT(63));
	plain(m, 4);
	assert_int_equal(rd(m, 0xc3), 4);
	machine_free(m);
}

/* The bits that a write may have set, and whether the register exists. */
static bool block_bits(uint32_t msr, unsigned int n_gp, unsigned int n_fixed,
		       uint64_t evtsel, uint64_t *bits)
{
	bool gp = msr < 0x1980;
	uint64_t counters = (BIT(n_gp) - 1) | (BIT(n_fixed) - 1) << 32;

	if (gp ? msr - 0x1900 >= 4 * n_gp : msr - 0x1980 >= 4 * n_fixed)
		return false;
	switch (msr % 4) {
	case 0:
		*bits = MASK48;
		return true;
	case CFG_A:
		*bits = evtsel;
		return gp;
	case CFG_B:
		*bits = counters;
		return true;
	default:
		*bits = 0xffffffff;
		return true;
	}
}

static void check_block(struct machine *m, unsigned int n_gp, unsigned int n_fixed,
			uint64_t evtsel)
{
	uint64_t bits = 0, value;
	uint32_t msr;
	int b;

	for (msr = 0x1900; msr < 0x19c0; msr++) {
		if (!block_bits(msr, n_gp, n_fixed, evtsel, &bits)) {
			assert_int_equal(vpmu_arch_rdmsr(m->v, msr, &value), VPMU_FAULT);
			assert_true(faults(m, msr, 0));
			continue;
		}
		for (b = 0; b < 64; b++) {
			if (faults(m, msr, BIT(b)) != !(bits & BIT(b)))
				fail_msg("%x bit %d", msr, b);
			if (bits & BIT(b))
				assert_int_equal(rd(m, msr), BIT(b));
		}
		wr(m, msr, 0);
	}
	assert_int_equal(vpmu_arch_rdmsr(m->v, 0x18ff, &value), VPMU_NOT_MINE);
	assert_int_equal(vpmu_arch_rdmsr(m->v, 0x19c0, &value), VPMU_NOT_MINE);
}

/* Not pin control, bit 19, and not AnyThread, bit 21. */
static void test_block(void **state)
{
	const uint64_t v6 = 0xffd7ffff | BIT(36) | (uint64_t)0xff << 40;
	struct machine *m;

	(void)state;
	m = granite();
	check_block(m, 8, 4, v6 | BIT(37));
	machine_free(m);
	m = machine_of(GRANITE, 6, 2, 1);
	check_block(m, 2, 1, v6 | BIT(37));
	machine_free(m);
	m = machine_of(CLEARWATER, 6, 0, -1);
	check_block(m, 8, 3, v6);
	machine_free(m);
	m = machine_of(GRANITE, 5, 0, -1);
	check_block(m, 0, 0, 0);
	assert_true(faults(m, 0x186, BIT(36)));
	assert_false(faults(m, 0x186, BIT(19)));
	assert_true(faults(m, FIXED_CTRL, BIT(33)));
	machine_free(m);
}

static void test_fixed_ctrl(void **state)
{
	struct machine *m = granite();
	int b;

	(void)state;
	for (b = 0; b < 64; b++)
		assert_int_equal(faults(m, FIXED_CTRL, BIT(b)),
				 !((0xbbbb | BIT(33) | BIT(37) | BIT(41) | BIT(45)) & BIT(b)));
	machine_free(m);
	m = machine_of(CLEARWATER, 6, 0, -1);
	assert_true(faults(m, FIXED_CTRL, BIT(33)));
	machine_free(m);
}

/* Extensions that are not offered: neither bits nor registers. */
static void test_without(void **state)
{
	struct vpmu_model model = *GRANITE;
	struct machine *m;
	uint64_t value;

	(void)state;
	model.extensions = 0;
	m = machine_of(&model, 6, 0, -1);
	expect_leaf(m, 0, 0xb, 0, 0, 0);
	expect_leaf(m, 2, 0, 0, 0, 0);
	assert_true(faults(m, GP(0) + CFG_A, BIT(36)));
	assert_true(faults(m, GP(0) + CFG_A, BIT(37)));
	assert_true(faults(m, GP(0) + CFG_A, BIT(40)));
	assert_int_equal(vpmu_arch_rdmsr(m->v, GP(0) + CFG_B, &value), VPMU_FAULT);
	assert_int_equal(vpmu_arch_rdmsr(m->v, FX(0) + CFG_C, &value), VPMU_FAULT);
	assert_true(faults(m, GP(0) + CFG_B, 0));
	assert_true(faults(m, GP(0) + CFG_C, 0));
	wr(m, GP(0), 5);
	wr(m, FX(0), 6);
	machine_free(m);
}

/* Selectors -------------------------------------------------------------------- */

/* A row of which only UnitMask2 differs; its low bits are AMD's for nested guests. */
static void test_umask2(void **state)
{
	static const struct vpmu_event_def events[] = {
		{ .name = "ONE", .select = 0xc4, .fixed = -1, .gp_mask = 0xff,
		  .quality = VPMU_QUALITY_EXACT,
		  .signals = VPMU_SIGNAL_BIT(VPMU_SIGNAL_BRANCHES) },
		{ .name = "TWO", .select = 0xc4, .umask2 = 3, .fixed = -1, .gp_mask = 0xff,
		  .quality = VPMU_QUALITY_EXACT,
		  .signals = VPMU_SIGNAL_BIT(VPMU_SIGNAL_CALL) },
	};
	struct vpmu_model model = *CLEARWATER;
	struct vpmu_uncounted told;
	struct machine *m;

	(void)state;
	model.events = events;
	model.n_events = 2;
	m = machine_of(&model, 6, 0, 0);
	wr(m, GP(0) + CFG_A, BRANCHES | ON);
	wr(m, GP(1) + CFG_A, BRANCHES | ON | (uint64_t)3 << 40);
	wr(m, GP(2) + CFG_A, BRANCHES | ON | (uint64_t)0x80 << 40);
	wr(m, GLOBAL, 7);
	retire(m, VPMU_SIGNAL_CALL, 5);
	retire(m, VPMU_SIGNAL_JMP, 3);
	assert_int_equal(rd(m, GP(0)), 8);
	assert_int_equal(rd(m, GP(1)), 5);
	assert_int_equal(rd(m, GP(2)), 0);
	assert_true(vpmu_arch_uncounted(m->v, 0, &told));
	assert_int_equal(told.select, BRANCHES | (uint64_t)0x80 << 40);
	assert_null(told.name);
	assert_false(vpmu_arch_uncounted(m->v, 1, &told));
	wr(m, GP(1) + CFG_A, BRANCHES | ON); /* only UnitMask2 changes */
	retire(m, VPMU_SIGNAL_JMP, 3);
	assert_int_equal(rd(m, GP(1)), 8);
	machine_free(m);
}

static void test_eq(void **state)
{
	static const struct {
		int line;
		uint64_t select; /* selector of branches */
		uint64_t count;  /* number of 10 branches in 30 instructions */
		bool told;
	} row[] = {
		{ __LINE__, 0, 10, false },
		{ __LINE__, BIT(36), 0, true },
		{ __LINE__, BIT(36) | BIT(23), 0, true },
		{ __LINE__, BIT(36) | BIT(24), 10, false },
		{ __LINE__, BIT(36) | BIT(24) | BIT(23), 0, true },
		{ __LINE__, BIT(36) | BIT(25), 0, false },
		{ __LINE__, BIT(36) | BIT(25) | BIT(23), 30, false },
		{ __LINE__, BIT(36) | BIT(24) | BIT(18), 0, true },
	};
	struct vpmu_uncounted told;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		struct machine *m = granite();

		wr(m, GP(0) + CFG_A, BRANCHES | ON | row[i].select);
		wr(m, GLOBAL, 1);
		plain(m, 20);
		retire(m, VPMU_SIGNAL_CALL, 10);
		if (rd(m, GP(0)) != row[i].count ||
		    vpmu_arch_uncounted(m->v, 0, &told) != row[i].told ||
		    (row[i].told && told.select != (BRANCHES | row[i].select)))
			fail_msg("line %d: %llu", row[i].line,
				 (unsigned long long)rd(m, GP(0)));
		machine_free(m);
	}
}

/* RDPMC user disable ------------------------------------------------------------ */

static uint64_t rdpmc(struct machine *m, uint32_t index, bool user)
{
	uint64_t value = ~0ull;

	assert_int_equal(vpmu_arch_rdpmc(m->v, index, user, &value), VPMU_HANDLED);
	return value;
}

static void test_hidden(void **state)
{
	struct machine *m = granite();
	uint64_t value;

	(void)state;
	wr(m, GP(0), 1000);
	wr(m, GP(1), 1001);
	wr(m, FX(0), 2000);
	wr(m, FX(2), 2002);
	wr(m, GP(1) + CFG_A, INSTRUCTIONS | BIT(37));
	wr(m, FIXED_CTRL, BIT(41));
	assert_int_equal(rdpmc(m, 0, true), 1000);
	assert_int_equal(rdpmc(m, 1, true), 0);
	assert_int_equal(rdpmc(m, 1, false), 1001);
	assert_int_equal(rdpmc(m, 0x40000000, true), 2000);
	assert_int_equal(rdpmc(m, 0x40000002, true), 0);
	assert_int_equal(rdpmc(m, 0x40000002, false), 2002);
	assert_int_equal(rd(m, GP(1)), 1001);
	assert_int_equal(rd(m, FX(2)), 2002);
	assert_int_equal(vpmu_arch_rdpmc(m->v, 8, true, &value), VPMU_FAULT);
	wr(m, FIXED_CTRL, 0);
	assert_int_equal(rdpmc(m, 0x40000002, true), 2002);
	machine_free(m);
}

/* It counts all the same, and hiding does not disturb it. */
static void test_hidden_counts(void **state)
{
	struct machine *m = granite();

	(void)state;
	wr(m, GP(0) + CFG_A, INSTRUCTIONS | ON);
	wr(m, FIXED_CTRL, 1);
	wr(m, GLOBAL, ALL);
	plain(m, 10);
	wr(m, GP(0) + CFG_A, INSTRUCTIONS | ON | BIT(37));
	wr(m, FIXED_CTRL, 1 | BIT(33));
	plain(m, 10);
	assert_int_equal(rdpmc(m, 0, true), 0);
	assert_int_equal(rdpmc(m, 0, false), 20);
	assert_int_equal(rdpmc(m, 0x40000000, true), 0);
	assert_int_equal(rdpmc(m, 0x40000000, false), 20);
	machine_free(m);
}

/* Auto counter reload ------------------------------------------------------------ */

#define LESS(n) ((uint32_t)-(n))

/* A period by itself: never a status bit, a PMI only where INT asks for it. */
static void test_reload_self(void **state)
{
	unsigned int with_int, i;

	(void)state;
	for (with_int = 0; with_int < 2; with_int++) {
		struct machine *m = granite();

		wr(m, GP(0) + CFG_A, INSTRUCTIONS | ON | (with_int ? INT : 0));
		wr(m, GP(0) + CFG_B, BIT(0));
		wr(m, GP(0) + CFG_C, LESS(7));
		wr(m, GP(0), MASK48 - 2);
		wr(m, GLOBAL, 1);
		plain(m, 2);
		assert_int_equal(rd(m, GP(0)), MASK48);
		for (i = 0; i < 70; i++) {
			plain(m, 1);
			assert_int_equal(rd(m, GP(0)), MASK48 + 1 - 7 + i % 7);
			assert_int_equal(m->n_pmi, with_int ? 1 + i / 7 : 0);
			assert_int_equal(rd(m, STATUS), 0);
		}
		machine_free(m);
	}
}

/* Another one's overflow; its own status is as ever. */
static void test_reload_other(void **state)
{
	struct machine *m = granite();

	(void)state;
	wr(m, GP(0) + CFG_A, INSTRUCTIONS | ON | INT);
	wr(m, GP(3) + CFG_A, BRANCHES | ON | INT);
	wr(m, GP(3) + CFG_B, BIT(0));
	wr(m, GP(3) + CFG_C, 50);
	wr(m, GP(0), MASK48 - 9);
	wr(m, GLOBAL, ALL);
	retire(m, VPMU_SIGNAL_CALL, 9);
	assert_int_equal(rd(m, GP(3)), 9);
	retire(m, VPMU_SIGNAL_CALL, 1); /* counts, and then is overwritten */
	assert_int_equal(rd(m, GP(3)), 50);
	assert_int_equal(rd(m, GP(0)), 0);
	assert_int_equal(rd(m, STATUS), BIT(0) | BIT(63));
	assert_int_equal(m->n_pmi, 1);
	retire(m, VPMU_SIGNAL_CALL, 5);
	assert_int_equal(rd(m, GP(3)), 55);
	wr(m, GP(3), MASK48); /* its own overflow reloads nothing */
	retire(m, VPMU_SIGNAL_CALL, 3);
	assert_int_equal(rd(m, GP(3)), 2);
	assert_int_equal(rd(m, STATUS), BIT(0) | BIT(3) | BIT(63));
	assert_int_equal(m->n_pmi, 2);
	machine_free(m);
}

/* Fixed counters cause it and are reloaded; several causes; two at one instruction. */
static void test_reload_fixed(void **state)
{
	struct machine *m = granite();

	(void)state;
	wr(m, FIXED_CTRL, 0x11);
	wr(m, GP(1) + CFG_A, BRANCHES | ON);
	wr(m, GP(1) + CFG_B, BIT(32) | BIT(33));
	wr(m, GP(1) + CFG_C, 0x80000000);
	wr(m, FX(1) + CFG_B, BIT(1) | BIT(32));
	wr(m, FX(1) + CFG_C, LESS(100));
	wr(m, FX(0), MASK48 - 4);
	wr(m, FX(1), MASK48 - 4);
	wr(m, GLOBAL, ALL);
	retire(m, VPMU_SIGNAL_JMP, 5); /* both fixed ones wrap */
	assert_int_equal(rd(m, FX(0)), 0);
	assert_int_equal(rd(m, FX(1)), MASK48 + 1 - 100);
	assert_int_equal(rd(m, GP(1)), 0xffff80000000);
	assert_int_equal(rd(m, STATUS), BIT(32) | BIT(33) | BIT(63));
	wr(m, RESET, rd(m, STATUS));
	wr(m, GP(1), MASK48);
	retire(m, VPMU_SIGNAL_JMP, 1);
	assert_int_equal(rd(m, GP(1)), 0);
	assert_int_equal(rd(m, FX(1)), MASK48 + 1 - 100);
	assert_int_equal(rd(m, FX(0)), 1);
	assert_int_equal(rd(m, STATUS), BIT(1) | BIT(63));
	assert_int_equal(m->n_pmi, 0);
	machine_free(m);
}

/* A counter that is off is reloaded too, and goes on from there. */
static void test_reload_off(void **state)
{
	struct machine *m = granite();

	(void)state;
	wr(m, GP(0) + CFG_A, INSTRUCTIONS | ON);
	wr(m, GP(5) + CFG_A, INSTRUCTIONS);
	wr(m, GP(5) + CFG_B, BIT(0));
	wr(m, GP(5) + CFG_C, 17);
	wr(m, GP(0), MASK48);
	wr(m, GP(5), 4711);
	wr(m, GLOBAL, 1);
	plain(m, 1);
	assert_int_equal(rd(m, GP(5)), 17);
	wr(m, GP(5) + CFG_A, INSTRUCTIONS | ON);
	wr(m, GLOBAL, BIT(0) | BIT(5));
	plain(m, 3);
	assert_int_equal(rd(m, GP(5)), 20);
	wr(m, GP(5) + CFG_B, 0);
	wr(m, GP(0), MASK48);
	plain(m, 1);
	assert_int_equal(rd(m, GP(5)), 21);
	machine_free(m);
}

/* A PMI that freezes does so after the reload. */
static void test_reload_freeze(void **state)
{
	struct machine *m = granite();

	(void)state;
	wr(m, DEBUGCTL, BIT(12));
	wr(m, GP(0) + CFG_A, INSTRUCTIONS | ON | INT);
	wr(m, GP(0) + CFG_B, BIT(0));
	wr(m, GP(0) + CFG_C, LESS(5));
	wr(m, GP(0), MASK48);
	wr(m, GLOBAL, 1);
	plain(m, 4);
	assert_int_equal(m->n_pmi, 1);
	assert_int_equal(rd(m, GP(0)), MASK48 + 1 - 5);
	assert_int_equal(rd(m, STATUS), BIT(59) | BIT(63));
	wr(m, RESET, BIT(59) | BIT(63));
	plain(m, 2);
	assert_int_equal(rd(m, GP(0)), MASK48 + 1 - 3);
	machine_free(m);
}

/*
 * The use of reloading, as Linux programs it: a sample when of 100 branches at least 20
 * are calls. Branches reload both; calls, which sample, reload branches.
 */
static void test_reload_rate(void **state)
{
	struct machine *m = granite();
	unsigned int i;

	(void)state;
	wr(m, GP(0) + CFG_A, 0x02c4 | ON | INT);
	wr(m, GP(0) + CFG_B, BIT(1));
	wr(m, GP(0) + CFG_C, LESS(20));
	wr(m, GP(1) + CFG_A, BRANCHES | ON);
	wr(m, GP(1) + CFG_B, BIT(0) | BIT(1));
	wr(m, GP(1) + CFG_C, LESS(100));
	wr(m, GP(0), MASK48 + 1 - 20);
	wr(m, GP(1), MASK48 + 1 - 100);
	wr(m, GLOBAL, 3);
	for (i = 0; i < 1000; i++) { /* 19 of 100: never */
		retire(m, VPMU_SIGNAL_CALL, 19);
		retire(m, VPMU_SIGNAL_JMP, 81);
	}
	assert_int_equal(m->n_pmi, 0);
	assert_int_equal(rd(m, STATUS), 0);
	assert_int_equal(rd(m, GP(0)), MASK48 + 1 - 20);
	assert_int_equal(rd(m, GP(1)), MASK48 + 1 - 100);
	retire(m, VPMU_SIGNAL_JMP, 79);
	retire(m, VPMU_SIGNAL_CALL, 19);
	assert_int_equal(m->n_pmi, 0);
	retire(m, VPMU_SIGNAL_CALL, 1); /* the 20th of 99 */
	assert_int_equal(m->n_pmi, 1);
	assert_int_equal(rd(m, STATUS), BIT(0) | BIT(63));
	assert_int_equal(rd(m, GP(0)), 0);
	assert_int_equal(rd(m, GP(1)), MASK48 + 1 - 100);
	machine_free(m);
}

static void test_reload_reset(void **state)
{
	struct machine *m = granite();
	uint32_t i;

	(void)state;
	for (i = 0; i < 8; i++) {
		wr(m, GP(i) + CFG_B, 0xff);
		wr(m, GP(i) + CFG_C, 0x55);
	}
	wr(m, FX(2) + CFG_B, BIT(34));
	vpmu_arch_reset(m->v, true);
	assert_int_equal(rd(m, GP(3) + CFG_B), 0xff);
	vpmu_arch_reset(m->v, false);
	for (i = 0; i < 8; i++)
		assert_int_equal(rd(m, GP(i) + CFG_B) | rd(m, GP(i) + CFG_C), 0);
	assert_int_equal(rd(m, FX(2) + CFG_B), 0);
	machine_free(m);
}

/* State -------------------------------------------------------------------------- */

static size_t save(struct machine *m, uint8_t *buf)
{
	size_t used;

	assert_int_equal(vpmu_arch_save(m->v, buf, STATE_MAX, &used), 0);
	return used;
}

static struct machine *busy(uint8_t n_gp)
{
	struct machine *m = machine_of(GRANITE, 6, n_gp, -1);

	wr(m, GP(0) + CFG_A, INSTRUCTIONS | ON);
	wr(m, GP(0) + CFG_B, BIT(0));
	wr(m, GP(0) + CFG_C, LESS(7));
	wr(m, GP(1) + CFG_A, BRANCHES | ON | BIT(36) | BIT(24) | BIT(37));
	wr(m, GP(1) + CFG_B, BIT(34));
	wr(m, GP(1) + CFG_C, 3);
	wr(m, GP(2) + CFG_A, BRANCHES | ON | (uint64_t)7 << 40);
	wr(m, FX(2), MASK48 - 50);
	wr(m, FX(2) + CFG_B, BIT(1) | BIT(34));
	wr(m, FX(2) + CFG_C, LESS(30));
	wr(m, FIXED_CTRL, 0x100 | BIT(41));
	wr(m, GLOBAL, 7 | BIT(34));
	retire(m, VPMU_SIGNAL_CALL, 5);
	return m;
}

/* Also into a PMU with more counters, where the fixed ones have other numbers. */
static void test_state(void **state)
{
	static const uint8_t into[] = { 3, 8 };
	uint8_t one[STATE_MAX], two[STATE_MAX];
	size_t i, used;
	uint32_t k;

	(void)state;
	for (i = 0; i < COUNT_OF(into); i++) {
		struct machine *m = busy(3), *n = machine_of(GRANITE, 6, into[i], -1);

		used = save(m, one);
		assert_int_equal(vpmu_arch_load(n->v, one, used), 0);
		if (into[i] == 3) {
			assert_int_equal(save(n, two), used);
			assert_memory_equal(one, two, used);
		}
		for (k = 0; k < 12; k++) {
			if (k != 3 && k < 12)
				assert_int_equal(rd(m, GP(0) + k), rd(n, GP(0) + k));
			if (k % 4 != 1)
				assert_int_equal(rd(m, FX(0) + k), rd(n, FX(0) + k));
		}
		for (k = 0; k < 200; k++) {
			retire(m, k % 3 ? VPMU_SIGNAL_CALL : VPMU_SIGNAL_INSTRUCTIONS, 1);
			retire(n, k % 3 ? VPMU_SIGNAL_CALL : VPMU_SIGNAL_INSTRUCTIONS, 1);
			assert_int_equal(rd(m, GP(0)), rd(n, GP(0)));
			assert_int_equal(rd(m, GP(1)), rd(n, GP(1)));
			assert_int_equal(rd(m, FX(2)), rd(n, FX(2)));
			assert_int_equal(rd(m, STATUS), rd(n, STATUS));
		}
		machine_free(m);
		machine_free(n);
	}
}

static uint32_t get32(const uint8_t *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put32(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)value;
	p[1] = (uint8_t)(value >> 8);
	p[2] = (uint8_t)(value >> 16);
	p[3] = (uint8_t)(value >> 24);
}

/* The section of auto counter reload, id 6: where its head is. */
static uint8_t *reload_section(uint8_t *buf, size_t size)
{
	uint8_t *p = buf + 16;

	while (p < buf + size && get32(p) != 6)
		p += 16 + (get32(p + 8) + 7) / 8 * 8;
	assert_true(p < buf + size);
	return p;
}

/* Without the section, as a version without the feature would save: zeros. */
static void test_state_without(void **state)
{
	struct machine *m = busy(8), *n = granite();
	uint8_t buf[STATE_MAX], *p;
	size_t used = save(m, buf), bytes;

	(void)state;
	p = reload_section(buf, used);
	bytes = 16 + get32(p + 8);
	memmove(p, p + bytes, (size_t)(buf + used - p) - bytes);
	put32(buf + 8, (uint32_t)(used - bytes));
	put32(buf + 12, get32(buf + 12) - 1);
	wr(n, GP(4) + CFG_B, 1);
	assert_int_equal(vpmu_arch_load(n->v, buf, used - bytes), 0);
	assert_int_equal(rd(n, GP(0) + CFG_B), 0);
	assert_int_equal(rd(n, GP(4) + CFG_B), 0);
	assert_int_equal(rd(n, GP(1) + CFG_A), rd(m, GP(1) + CFG_A));
	machine_free(m);
	machine_free(n);
}

static void test_state_refused(void **state)
{
	static const struct {
		int line;
		size_t at;   /* from the section's head */
		uint8_t xor;
		int ret;
	} row[] = {
		{ __LINE__, 4, 1 ^ 2, -VPMU_ENOSYS },  /* its version */
		{ __LINE__, 8, 8, -VPMU_EINVAL },      /* bytes */
		{ __LINE__, 16, 1, -VPMU_EINVAL },     /* n_gp */
		{ __LINE__, 17, 1, -VPMU_EINVAL },     /* n_fixed */
		{ __LINE__, 18, 1, -VPMU_EINVAL },     /* zero */
		{ __LINE__, 23, 1, -VPMU_EINVAL },
		{ __LINE__, 24 + 1, 1, -VPMU_EINVAL }, /* CFG_B: counter 8 */
		{ __LINE__, 24 + 4, 16, -VPMU_EINVAL }, /* ... fixed counter 4 */
		{ __LINE__, 24 + 8 + 4, 1, -VPMU_EINVAL }, /* CFG_C: bit 32 */
		{ __LINE__, 24 + 16 * 11 + 8 + 7, 0x80, -VPMU_EINVAL }, /* the last one's */
		{ __LINE__, 24, 1, 0 },
		{ __LINE__, 24 + 8, 1, 0 },
	};
	struct machine *m = busy(8), *n = granite();
	uint8_t good[STATE_MAX], buf[STATE_MAX], after[STATE_MAX];
	size_t used = save(m, good), i;
	int ret;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		memcpy(buf, good, used);
		reload_section(buf, used)[row[i].at] ^= row[i].xor;
		assert_int_equal(vpmu_arch_load(n->v, good, used), 0);
		ret = vpmu_arch_load(n->v, buf, used);
		if (ret != row[i].ret)
			fail_msg("line %d: %d", row[i].line, ret);
		assert_int_equal(save(n, after), used);
		assert_memory_equal(after, ret ? good : buf, used);
	}
	/* a PMU that has none, and one of another version */
	machine_free(n);
	n = machine_of(GRANITE, 5, 0, -1);
	assert_int_equal(vpmu_arch_load(n->v, good, used), -VPMU_EINVAL);
	machine_free(n);
	/* CLEARWATER lacks what hides counters, and busy() uses it */
	n = machine_of(CLEARWATER, 6, 0, -1);
	assert_int_equal(vpmu_arch_load(n->v, good, used), -VPMU_EINVAL);
	machine_free(n);
	machine_free(m);
}

/* A model's data --------------------------------------------------------------- */

static void test_models(void **state)
{
	struct vpmu_event_def events[128];
	struct vpmu_model model = *CLEARWATER;
	size_t bad, n = model.n_events;

	(void)state;
	model.capabilities &= ~VPMU_CAP_PEBS;
	model.pdist = 0;
	assert_true(n <= COUNT_OF(events));
	memcpy(events, model.events, n * sizeof(events[0]));
	model.events = events;
	assert_null(vpmu_model_check(&model, &bad));
	model.extensions = VPMU_EXT_RELOAD;
	assert_string_equal(vpmu_model_check(&model, &bad),
			    "UnitMask2 that the model does not have");
	model.extensions = 1u << 3;
	assert_string_equal(vpmu_model_check(&model, &bad), "unknown extension");
	model.extensions = VPMU_EXT_UMASK2;
	model.version = 5;
	assert_string_equal(vpmu_model_check(&model, &bad), "extension of a later version");
	model.version_most = 6;
	assert_null(vpmu_model_check(&model, &bad));
	model.version_most = 5;
	assert_non_null(vpmu_model_check(&model, &bad));
	model.version_most = 7;
	assert_non_null(vpmu_model_check(&model, &bad));
	model.version_most = 6;
	events[0].umask2 = 1; /* a fixed counter's event */
	assert_string_equal(vpmu_model_check(&model, &bad),
			    "not the event of its fixed counter");
	model = *vpmu_model_find(VPMU_VENDOR_AMD, 25, 17);
	model.extensions = VPMU_EXT_EQ;
	assert_string_equal(vpmu_model_check(&model, &bad), "extension of another vendor");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_leaf),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_alias_runs),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_fixed_ctrl),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_umask2),
		cmocka_unit_test(test_eq),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_hidden_counts),
		cmocka_unit_test(test_reload_self),
		cmocka_unit_test(test_reload_other),
		cmocka_unit_test(test_reload_fixed),
		cmocka_unit_test(test_reload_off),
		cmocka_unit_test(test_reload_freeze),
		cmocka_unit_test(test_reload_rate),
		cmocka_unit_test(test_reload_reset),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_state_without),
		cmocka_unit_test(test_state_refused),
		cmocka_unit_test(test_models),
	};

	return cmocka_run_group_tests_name("v6", tests, NULL, NULL);
}
