/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The architectural PMU over a provider under the test's control. Register
 * numbers and bits stand here as numbers, so that a wrong constant in the headers
 * does not hide itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "fake.h"

#define BIT(n)		((uint64_t)1 << (n))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MASK48		(BIT(48) - 1)

#define PMC		0x0c1
#define EVTSEL		0x186
#define DEBUGCTL	0x1d9
#define FIXED		0x309
#define CAPS		0x345
#define FIXED_CTRL	0x38d
#define STATUS		0x38e
#define GLOBAL		0x38f
#define OVF_CTRL	0x390
#define STATUS_SET	0x391
#define INUSE		0x392
#define A_PMC		0x4c1

/* EN, and USR or OS or both */
#define EN_USR		(BIT(22) | BIT(16))
#define EN_OS		(BIT(22) | BIT(17))
#define EN_ALL		(BIT(22) | BIT(16) | BIT(17))
#define INT		BIT(20)
#define INSTRUCTIONS	0xc0
#define BRANCHES	0xc4
#define LLC_MISS	0x412e

/* Run @test for every configuration. */
static void each_config(void (*test)(struct fake *f, int version, int n_gp,
				     int n_fixed, uint64_t caps))
{
	static const uint8_t gp[] = { 1, 2, 4, 7, 8 };
	static const uint64_t caps[] = { 0, BIT(12), BIT(13), BIT(12) | BIT(13) };
	int version, n_fixed;
	unsigned int g, c;

	for (version = 1; version <= 5; version++)
		for (g = 0; g < ARRAY_SIZE(gp); g++)
			for (n_fixed = 0; n_fixed <= (version > 1 ? 3 : 0); n_fixed++)
				for (c = 0; c < ARRAY_SIZE(caps); c++) {
					struct fake *f = fake_new(version, gp[g],
								  n_fixed, caps[c]);

					test(f, version, gp[g], n_fixed, caps[c]);
					fake_free(f);
				}
}

/* Configuration ------------------------------------------------------------ */

static void test_refusals(void **state)
{
	static const struct {
		int line, version, n_gp, n_fixed;
		uint64_t caps;
		uint32_t p_gp, p_fixed;
		int ret;
		uint64_t asked, available;
	} row[] = {
		{ __LINE__, 6, 8, 3, 0, 8, 3, -VPMU_EOPNOTSUPP, 6, 5 },
		{ __LINE__, 5, 9, 3, 0, 8, 3, -VPMU_EOPNOTSUPP, 9, 8 },
		{ __LINE__, 5, 8, 4, 0, 8, 3, -VPMU_EOPNOTSUPP, 4, 3 },
		{ __LINE__, 1, 8, 1, 0, 8, 3, -VPMU_EOPNOTSUPP, 1, 0 },
		{ __LINE__, 5, 8, -2, 0, 8, 3, -VPMU_EINVAL, (uint64_t)-2, 3 },
		{ __LINE__, 5, 8, 3, BIT(0), 8, 3, -VPMU_EOPNOTSUPP, BIT(0), 0x3000 },
		{ __LINE__, 5, 8, 3, 0x7000, 8, 3, -VPMU_EOPNOTSUPP, 0x7000, 0x3000 },
		{ __LINE__, 5, 8, 3, 0, 4, 3, -VPMU_EOPNOTSUPP, 8, 4 },
		{ __LINE__, 5, 4, 3, 0, 4, 2, -VPMU_EOPNOTSUPP, 3, 2 },
		{ __LINE__, 5, 4, -1, 0, 4, 2, -VPMU_EOPNOTSUPP, 3, 2 },
		{ __LINE__, 0, 0, -1, 0x3000, 8, 3, 0, 0, 0 },
		{ __LINE__, 1, 1, -1, 0, 1, 0, 0, 0, 0 },
		{ __LINE__, 2, 1, 0, 0, UINT32_MAX, UINT32_MAX, 0, 0, 0 },
	};
	struct fake *f = fake_new(0, 0, -1, 0);
	struct vpmu_arch_config cfg;
	unsigned int i;
	size_t size;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(row); i++) {
		struct vpmu_error err = { NULL, 0, 0 };
		int ret;

		fake_config(f, &cfg);
		cfg.version = row[i].version;
		cfg.n_gp = row[i].n_gp;
		cfg.n_fixed = row[i].n_fixed;
		cfg.capabilities = row[i].caps;
		f->provider.n_gp = row[i].p_gp;
		f->provider.n_fixed = row[i].p_fixed;
		ret = vpmu_arch_size(&cfg, &size, &err);
		if (ret != row[i].ret || err.asked != row[i].asked ||
		    err.available != row[i].available || !err.what != !ret)
			fail_msg("line %d: %d, %s: asked %llu, available %llu",
				 row[i].line, ret, err.what ? err.what : "-",
				 (unsigned long long)err.asked,
				 (unsigned long long)err.available);
		assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), ret);
	}
	fake_free(f);
}

static void test_bad_pointers(void **state)
{
	struct fake *f = fake_new(0, 0, -1, 0);
	struct vpmu_provider_ops p = *f->provider.ops;
	struct vpmu_model model = fake_model;
	struct vpmu_provider provider = f->provider;
	struct vpmu_arch_config good, cfg;
	struct vpmu_error err = { NULL, 0, 0 };
	size_t size;

	(void)state;
	fake_config(f, &good);
#define REFUSED(change) do { \
	cfg = good; \
	change; \
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), -VPMU_EINVAL); \
	assert_non_null(err.what); \
} while (0)
	REFUSED(cfg.size--);
	REFUSED(cfg.model = NULL);
	REFUSED(cfg.provider = NULL);
	REFUSED(cfg.ops = NULL);
	REFUSED(cfg.model = &model);
	f->ops.size -= 8;
	REFUSED((void)0);
	f->ops.size += 8;
	f->ops.kick = NULL;
	REFUSED((void)0);
	provider.ops = &p;
	p.size -= 8;
	REFUSED(cfg.provider = &provider);
	p.size += 8;
	p.event_size = 4;
	REFUSED(cfg.provider = &provider);
	p.event_size = sizeof(struct vpmu_event) + 4;
	REFUSED(cfg.provider = &provider);
#undef REFUSED
	model.vendor = VPMU_VENDOR_AMD;
	provider = f->provider;
	provider.model = &model;
	cfg = good;
	cfg.model = &model;
	cfg.provider = &provider;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), -VPMU_EINVAL);
	f->ops.kick = (void (*)(void *))1;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), -VPMU_EOPNOTSUPP);
	fake_free(f);
}

static void cpuid_one(struct fake *f, int version, int n_gp, int n_fixed, uint64_t caps)
{
	struct vpmu_cpuid r = { 1, 2, ~0u, 4 };

	assert_true(vpmu_arch_cpuid(f->v, 1, 0, &r));
	assert_int_equal(r.ecx, caps ? ~0u : ~0x8000u);
	assert_int_equal(r.eax + r.ebx + r.edx, 1 + 2 + 4);
	r.ecx = 0;
	assert_true(vpmu_arch_cpuid(f->v, 1, 0, &r));
	assert_int_equal(r.ecx, caps ? 0x8000 : 0);

	assert_true(vpmu_arch_cpuid(f->v, 0xa, 7, &r));
	assert_int_equal(r.eax, 0x08300000 | n_gp << 8 | version);
	/* LLC references and misses, branch misses, slots */
	assert_int_equal(r.ebx, 0xd8);
	assert_int_equal(r.ecx, version == 5 ? (1 << n_fixed) - 1 : 0);
	assert_int_equal(r.edx, version == 1 ? 0 :
			 (version == 5 ? 0x8000 : 0) | 48 << 5 | n_fixed);
	assert_false(vpmu_arch_cpuid(f->v, 0x23, 0, &r));
	assert_false(vpmu_arch_cpuid(f->v, 7, 0, &r));
	assert_int_equal(vpmu_arch_misc_enable(f->v), BIT(7) | BIT(11) | BIT(12));
}

static void test_cpuid(void **state)
{
	(void)state;
	each_config(cpuid_one);
}

/* Registers ----------------------------------------------------------------- */

enum access { NONE, READ_ONLY, READ_WRITE, WRITE_ONLY };

/* What the manual says of a register: is it there, and which bits it accepts. */
static enum access expect(uint32_t msr, int version, int n_gp, int n_fixed,
			  uint64_t caps, uint64_t *bits)
{
	uint64_t counters = (BIT(n_gp) - 1) | (BIT(n_fixed) - 1) << 32;
	int any = version == 3 || version == 4, i;

	*bits = 0;
	if (msr >= PMC && msr < PMC + 8u) {
		*bits = ~(uint64_t)0;
		return msr < PMC + (uint32_t)n_gp ? READ_WRITE : NONE;
	}
	if (msr >= EVTSEL && msr < EVTSEL + 8u) {
		*bits = any ? 0xffffffff : 0xffdfffff;
		return msr < EVTSEL + (uint32_t)n_gp ? READ_WRITE : NONE;
	}
	if (msr >= A_PMC && msr < A_PMC + 8u) {
		*bits = MASK48;
		return (caps & BIT(13)) && msr < A_PMC + (uint32_t)n_gp ? READ_WRITE : NONE;
	}
	if (msr >= FIXED && msr < FIXED + 16u) {
		*bits = MASK48;
		return msr < FIXED + (uint32_t)n_fixed ? READ_WRITE : NONE;
	}
	switch (msr) {
	case DEBUGCTL:
		*bits = 3 | (version > 1 ? BIT(12) | (caps & BIT(12) ? BIT(14) : 0) : 0);
		return READ_WRITE;
	case CAPS:
		return caps ? READ_ONLY : NONE;
	case FIXED_CTRL:
		for (i = 0; i < n_fixed; i++)
			*bits |= (uint64_t)(any ? 0xf : 0xb) << 4 * i;
		return version > 1 ? READ_WRITE : NONE;
	case STATUS:
		return version > 1 ? READ_ONLY : NONE;
	case GLOBAL:
		*bits = counters;
		return version > 1 ? READ_WRITE : NONE;
	case OVF_CTRL:
		*bits = counters | BIT(62) | BIT(63);
		if (version >= 3)
			*bits |= BIT(61);
		if (version >= 4)
			*bits |= BIT(58) | BIT(59) | BIT(60);
		return version > 1 ? WRITE_ONLY : NONE;
	case STATUS_SET:
		*bits = counters | (uint64_t)0x1f << 58;
		return version > 3 ? WRITE_ONLY : NONE;
	case INUSE:
		return version > 3 ? READ_ONLY : NONE;
	}
	return NONE;
}

static void bit_by_bit(struct fake *f, uint32_t msr, enum access access, uint64_t bits)
{
	struct fake_snap before, after;
	uint64_t value = 0x5a5a;
	int b;

	assert_int_equal(vpmu_arch_rdmsr(f->v, msr, &value),
			 access == NONE ? VPMU_FAULT : VPMU_HANDLED);
	if (access == NONE)
		assert_int_equal(value, 0x5a5a);
	for (b = 0; b < 64; b++) {
		bool good = (access == READ_WRITE || access == WRITE_ONLY) &&
			    (bits & BIT(b));

		fake_snap(f->v, &before);
		if (vpmu_arch_wrmsr(f->v, msr, BIT(b)) !=
		    (good ? VPMU_HANDLED : VPMU_FAULT))
			fail_msg("msr %x bit %d: accepted is %d", msr, b, !good);
		if (good)
			continue;
		fake_snap(f->v, &after);
		assert_memory_equal(&before, &after, sizeof(before));
	}
	if (access == READ_WRITE || access == WRITE_ONLY)
		assert_int_equal(vpmu_arch_wrmsr(f->v, msr, 0), VPMU_HANDLED);
	else
		assert_int_equal(vpmu_arch_wrmsr(f->v, msr, 0), VPMU_FAULT);
	if (access == READ_WRITE && !(bits >> 63) && msr != DEBUGCTL) {
		fake_wr(f, msr, bits);
		assert_int_equal(fake_rd(f, msr), bits);
		fake_wr(f, msr, 0);
	}
	if (access == WRITE_ONLY)
		assert_int_equal(fake_rd(f, msr), 0);
}

static void registers_one(struct fake *f, int version, int n_gp, int n_fixed, uint64_t caps)
{
	static const struct {
		uint32_t first, n;
	} range[] = {
		{ PMC, 8 }, { EVTSEL, 8 }, { DEBUGCTL, 1 }, { FIXED, 16 },
		{ CAPS, 1 }, { FIXED_CTRL, 6 }, { A_PMC, 8 },
	};
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(range); i++)
		for (k = 0; k < range[i].n; k++) {
			uint32_t msr = range[i].first + k;
			uint64_t bits;
			enum access a = expect(msr, version, n_gp, n_fixed, caps, &bits);

			bit_by_bit(f, msr, a, bits);
		}
}

static void test_registers(void **state)
{
	(void)state;
	each_config(registers_one);
}

/* Registers of features that are not offered, and those that are not ours. */
static void test_ranges(void **state)
{
	static const struct {
		uint32_t first, n;
	} fault[] = {
		{ 0x40, 8 }, { 0x60, 8 }, { 0x1a6, 2 }, { 0x1c8, 2 }, { 0x30c, 13 },
		{ 0x329, 1 }, { 0x3f1, 2 }, { 0x3f6, 2 }, { 0x600, 1 }, { 0x680, 32 },
		{ 0x6c0, 32 }, { 0xdc0, 32 }, { 0x1200, 32 }, { 0x14ce, 2 },
		{ 0x1500, 32 }, { 0x1600, 32 }, { 0x1900, 192 },
	}, ours[] = {
		{ PMC, 8 }, { EVTSEL, 8 }, { DEBUGCTL, 1 }, { FIXED, 3 },
		{ CAPS, 1 }, { FIXED_CTRL, 6 }, { A_PMC, 8 },
	};
	struct fake *f = fake_new(0, 0, -1, FAKE_CAPS);
	uint32_t msr;
	unsigned int i;

	(void)state;
	for (msr = 0; msr < 0x3000; msr++) {
		enum vpmu_result want = VPMU_NOT_MINE;
		uint64_t value = 0;

		for (i = 0; i < ARRAY_SIZE(fault); i++)
			if (msr - fault[i].first < fault[i].n)
				want = VPMU_FAULT;
		for (i = 0; i < ARRAY_SIZE(ours); i++)
			if (msr - ours[i].first < ours[i].n)
				want = VPMU_HANDLED;
		if (vpmu_arch_rdmsr(f->v, msr, &value) != want)
			fail_msg("rdmsr %x is not %d", msr, want);
		if (want == VPMU_HANDLED && (msr == CAPS || msr == STATUS || msr == INUSE))
			want = VPMU_FAULT;
		if (vpmu_arch_wrmsr(f->v, msr, 0) != want)
			fail_msg("wrmsr %x is not %d", msr, want);
	}
	for (msr = 0xc0000000; msr < 0xc0000400; msr++) {
		uint64_t value;

		assert_int_equal(vpmu_arch_rdmsr(f->v, msr, &value), VPMU_NOT_MINE);
	}
	assert_int_equal(vpmu_arch_wrmsr(f->v, 0xffffffff, 0), VPMU_NOT_MINE);
	assert_int_equal(vpmu_arch_wrmsr(f->v, 0x1a0, 0), VPMU_NOT_MINE);
	fake_free(f);
}

static void test_write_width(void **state)
{
	static const struct {
		int line;
		uint32_t msr;
		uint64_t value;
		enum vpmu_result result;
		uint64_t read;
	} row[] = {
		{ __LINE__, PMC, 0x00000000, VPMU_HANDLED, 0 },
		{ __LINE__, PMC, 0x7fffffff, VPMU_HANDLED, 0x7fffffff },
		{ __LINE__, PMC, 0x80000000, VPMU_HANDLED, 0xffff80000000 },
		{ __LINE__, PMC, 0xff0123456789, VPMU_HANDLED, 0x23456789 },
		{ __LINE__, PMC, 0xffffff0187654321, VPMU_HANDLED, 0xffff87654321 },
		{ __LINE__, PMC, ~0ull, VPMU_HANDLED, MASK48 },
		{ __LINE__, A_PMC, 0xff0123456789, VPMU_HANDLED, 0xff0123456789 },
		{ __LINE__, A_PMC, 0xffffff0123456789, VPMU_FAULT, 0xff0123456789 },
		{ __LINE__, A_PMC, MASK48, VPMU_HANDLED, MASK48 },
		{ __LINE__, A_PMC, BIT(48), VPMU_FAULT, MASK48 },
		{ __LINE__, FIXED + 1, 0xff0187654321, VPMU_HANDLED, 0xff0187654321 },
		{ __LINE__, FIXED + 1, BIT(48), VPMU_FAULT, 0xff0187654321 },
	};
	unsigned int i, running;

	(void)state;
	for (running = 0; running < 2; running++) {
		struct fake *f = fake_new(0, 0, -1, FAKE_CAPS);

		if (running) {
			fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR);
			fake_wr(f, FIXED_CTRL, 0x20);
			fake_wr(f, GLOBAL, 0x200000001);
			fake_tick(f, VPMU_BANK_USER, 5);
		}
		for (i = 0; i < ARRAY_SIZE(row); i++) {
			if (vpmu_arch_wrmsr(f->v, row[i].msr, row[i].value) != row[i].result)
				fail_msg("line %d: not %d", row[i].line, row[i].result);
			if (fake_rd(f, row[i].msr) != row[i].read)
				fail_msg("line %d: reads %llx", row[i].line,
					 (unsigned long long)fake_rd(f, row[i].msr));
			if (row[i].msr != FIXED + 1)
				assert_int_equal(fake_rd(f, PMC), fake_rd(f, A_PMC));
		}
		fake_free(f);
	}
}

static void rdpmc_one(struct fake *f, int version, int n_gp, int n_fixed, uint64_t caps)
{
	static const uint32_t type[] = {
		0x0000, 0x0001, 0x1000, 0x2000, 0x4000, 0x4001, 0x6000, 0x8000, 0xc000,
		0xffff,
	};
	unsigned int t;
	int i;

	(void)version;
	(void)caps;
	for (i = 0; i < n_gp; i++)
		fake_wr(f, PMC + i, 100 + i);
	for (i = 0; i < n_fixed; i++)
		fake_wr(f, FIXED + i, 200 + i);
	for (t = 0; t < ARRAY_SIZE(type); t++)
		for (i = 0; i < 80; i++) {
			int n = type[t] == 0 ? n_gp : type[t] == 0x4000 ? n_fixed : 0;
			uint64_t value = 7;
			enum vpmu_result r;

			r = vpmu_arch_rdpmc(f->v, type[t] << 16 | (unsigned int)i, &value);
			assert_int_equal(r, i < n ? VPMU_HANDLED : VPMU_FAULT);
			assert_int_equal(value, i >= n ? 7 : type[t] ? 200 + i : 100 + i);
		}
}

static void test_rdpmc(void **state)
{
	(void)state;
	each_config(rdpmc_one);
}

/* Counting ------------------------------------------------------------------ */

static void test_gates(void **state)
{
	/* what each counter counts after 10 kernel and 1 user occurrences */
	static const struct {
		int line, version;
		uint64_t evtsel, fixed_ctrl, global, status_set;
		uint64_t gp, fixed;
	} row[] = {
		{ __LINE__, 1, INSTRUCTIONS | EN_ALL, 0, 0, 0, 11, 0 },
		{ __LINE__, 1, INSTRUCTIONS | EN_USR, 0, 0, 0, 1, 0 },
		{ __LINE__, 1, INSTRUCTIONS | EN_OS, 0, 0, 0, 10, 0 },
		{ __LINE__, 1, INSTRUCTIONS | BIT(22), 0, 0, 0, 0, 0 },
		{ __LINE__, 1, INSTRUCTIONS | BIT(16), 0, 0, 0, 0, 0 },
		{ __LINE__, 2, INSTRUCTIONS | EN_ALL, 0x3, 0x100000001, 0, 11, 11 },
		{ __LINE__, 2, INSTRUCTIONS | EN_ALL, 0x3, 0x000000001, 0, 11, 0 },
		{ __LINE__, 2, INSTRUCTIONS | EN_ALL, 0x1, 0x100000000, 0, 0, 10 },
		{ __LINE__, 2, INSTRUCTIONS | EN_ALL, 0x2, 0x100000002, 0, 0, 1 },
		{ __LINE__, 2, INSTRUCTIONS | EN_ALL, 0x8, 0x100000001, 0, 11, 0 },
		{ __LINE__, 3, INSTRUCTIONS | EN_OS | BIT(21), 0x7, 0x100000001, 0, 10, 11 },
		{ __LINE__, 4, INSTRUCTIONS | EN_OS, 0x2, 0x100000001, BIT(58), 10, 1 },
		{ __LINE__, 4, INSTRUCTIONS | EN_OS, 0x2, 0x100000001, BIT(59), 0, 0 },
		{ __LINE__, 5, INSTRUCTIONS | EN_ALL | BIT(19), 0xb, 0x100000001, 0, 11, 11 },
		{ __LINE__, 5, LLC_MISS | EN_ALL, 0x3, 0x100000001, 0, 0, 11 },
	};
	unsigned int i, order;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(row); i++)
		for (order = 0; order < 2; order++) {
			struct fake *f = fake_new(row[i].version, 0, -1, FAKE_CAPS);
			uint64_t fixed = 0;

			if (row[i].version > 1)
				fake_wr(f, GLOBAL, order ? row[i].global : 0);
			fake_wr(f, EVTSEL, row[i].evtsel);
			if (row[i].version > 1)
				fake_wr(f, FIXED_CTRL, row[i].fixed_ctrl);
			if (row[i].status_set)
				fake_wr(f, STATUS_SET, row[i].status_set);
			if (row[i].version > 1)
				fake_wr(f, GLOBAL, row[i].global);
			fake_tick(f, VPMU_BANK_KERNEL, 3);
			fake_tick(f, VPMU_BANK_NESTED_KERNEL, 7);
			fake_tick(f, VPMU_BANK_NESTED_USER, 1);
			if (row[i].version > 1)
				fixed = fake_rd(f, FIXED);
			if (fake_rd(f, PMC) != row[i].gp || fixed != row[i].fixed)
				fail_msg("line %d: %llu %llu", row[i].line,
					 (unsigned long long)fake_rd(f, PMC),
					 (unsigned long long)fixed);
			fake_free(f);
		}
}

/* The event stays while GLOBAL_CTRL toggles, is parked, used again, given back. */
static void test_event_life(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);

	(void)state;
	fake_wr(f, GLOBAL, 0);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR | INT);
	fake_wr(f, EVTSEL + 1, BRANCHES | EN_USR | INT);
	assert_int_equal(f->n_create, 2);
	assert_int_equal(f->n_enable, 0);

	fake_wr(f, GLOBAL, 3);
	assert_int_equal(f->n_enable, 2);
	fake_wr(f, GLOBAL, 1);
	assert_int_equal(f->n_disable, 1);
	fake_wr(f, GLOBAL, 3);
	assert_int_equal(f->n_enable, 3);
	fake_wr(f, GLOBAL, 3);
	fake_wr(f, GLOBAL, 0xf3);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR | INT);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR);
	assert_int_equal(f->n_enable + f->n_disable + f->n_create, 3 + 1 + 2);

	/* parked, used again */
	fake_wr(f, EVTSEL, INSTRUCTIONS | BIT(16));
	assert_int_equal(fake_events(f), 2);
	fake_tick(f, VPMU_BANK_USER, 9);
	assert_int_equal(fake_rd(f, PMC), 0);
	assert_int_equal(fake_rd(f, PMC + 1), 9);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR);
	assert_int_equal(f->n_create, 2);
	fake_tick(f, VPMU_BANK_USER, 9);
	assert_int_equal(fake_rd(f, PMC), 9);

	/* another selector, another ring: made anew, the value goes on */
	fake_wr(f, EVTSEL, BRANCHES | EN_USR);
	fake_wr(f, EVTSEL, BRANCHES | EN_OS);
	assert_int_equal(f->n_create, 4);
	assert_int_equal(fake_events(f), 2);
	fake_tick(f, VPMU_BANK_KERNEL, 1);
	assert_int_equal(fake_rd(f, PMC), 10);

	/* parked under another selector, it is given back at once */
	fake_wr(f, EVTSEL, INSTRUCTIONS);
	assert_int_equal(fake_events(f), 1);
	fake_wr(f, EVTSEL, BRANCHES | EN_OS);
	/* the last own enable goes: nothing is left */
	fake_wr(f, EVTSEL, BRANCHES | BIT(17));
	assert_int_equal(fake_events(f), 2);
	fake_wr(f, EVTSEL + 1, BRANCHES | BIT(16));
	assert_int_equal(fake_events(f), 0);
	assert_int_equal(fake_rd(f, PMC), 10);
	assert_int_equal(fake_rd(f, PMC + 1), 18);

	/* a write that changes nothing asks for nothing */
	f->n_begin = 0;
	fake_wr(f, EVTSEL + 1, BRANCHES | BIT(16));
	fake_wr(f, FIXED_CTRL, 0);
	fake_wr(f, GLOBAL, 0xf3);
	fake_wr(f, GLOBAL, 0x7000000ff);
	fake_wr(f, PMC, 77);
	assert_int_equal(f->n_begin, 0);
	fake_free(f);
}

static void test_fixed_parked(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);

	(void)state;
	fake_wr(f, GLOBAL, 0x700000000);
	fake_wr(f, FIXED_CTRL, 0x3b2);
	assert_int_equal(f->n_create, 3);
	fake_wr(f, FIXED_CTRL, 0x302);
	assert_int_equal(fake_events(f), 3);
	fake_wr(f, FIXED_CTRL, 0x3b2);
	assert_int_equal(f->n_create, 3);
	fake_wr(f, FIXED_CTRL, 0x302);
	fake_wr(f, FIXED_CTRL, 0x312);
	assert_int_equal(f->n_create, 4);
	fake_tick(f, VPMU_BANK_KERNEL, 2);
	fake_tick(f, VPMU_BANK_USER, 3);
	assert_int_equal(fake_rd(f, FIXED), 3);
	assert_int_equal(fake_rd(f, FIXED + 1), 2);
	assert_int_equal(fake_rd(f, FIXED + 2), 5);
	fake_free(f);
}

/* A counter that is written while it runs goes on from there. */
static void test_running_write(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);

	(void)state;
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL | INT);
	fake_tick(f, VPMU_BANK_USER, 1000);
	fake_wr(f, PMC, 0);
	fake_tick(f, VPMU_BANK_USER, 3);
	assert_int_equal(fake_rd(f, PMC), 3);
	fake_wr(f, A_PMC, MASK48);
	assert_int_equal(fake_rd(f, STATUS), 0);
	assert_int_equal(f->n_pmi, 0);
	fake_tick(f, VPMU_BANK_USER, 1);
	assert_int_equal(fake_rd(f, PMC), 0);
	assert_int_equal(fake_rd(f, STATUS), BIT(63) | 1);
	assert_int_equal(f->n_pmi, 1);
	assert_true(f->pmi_mask);
	/* again only a full round later */
	fake_tick(f, VPMU_BANK_USER, BIT(48) - 1);
	assert_int_equal(f->n_pmi, 1);
	fake_tick(f, VPMU_BANK_USER, 1);
	assert_int_equal(f->n_pmi, 2);
	fake_free(f);
}

/* Overflow ------------------------------------------------------------------ */

static void overflow_one(struct fake *f, int version, int n_gp, int n_fixed, uint64_t caps)
{
	int pmc;

	(void)caps;
	for (pmc = 0; pmc < n_gp + n_fixed; pmc++) {
		int i = pmc < n_gp ? pmc : pmc - n_gp;
		bool gp = pmc < n_gp, intr = pmc & 1;
		uint64_t bit = gp ? BIT(i) : BIT(32 + i);
		uint32_t pmis = f->n_pmi;

		if (version > 1)
			fake_wr(f, GLOBAL, bit);
		if (gp)
			fake_wr(f, EVTSEL + i, INSTRUCTIONS | EN_ALL | (intr ? INT : 0));
		else
			fake_wr(f, FIXED_CTRL, (uint64_t)(intr ? 0xb : 3) << 4 * i);
		fake_wr(f, gp ? PMC + i : FIXED + i, gp ? 0xfffffffe : MASK48 - 1);
		fake_tick(f, VPMU_BANK_KERNEL, 1);
		assert_int_equal(f->n_pmi, pmis);
		fake_tick(f, VPMU_BANK_USER, 3);
		assert_int_equal(f->n_pmi, pmis + intr);
		assert_int_equal(fake_rd(f, gp ? PMC + i : FIXED + i), 2);
		if (version > 1) {
			assert_int_equal(fake_rd(f, STATUS), bit | BIT(63));
			fake_wr(f, OVF_CTRL, BIT(63));
			assert_int_equal(fake_rd(f, STATUS), bit);
			fake_wr(f, OVF_CTRL, bit);
			assert_int_equal(fake_rd(f, STATUS), 0);
		}
		fake_wr(f, gp ? EVTSEL + i : FIXED_CTRL, 0);
	}
}

static void test_overflow(void **state)
{
	(void)state;
	each_config(overflow_one);
}

/* Several at once are one PMI; a bit that is set already changes nothing. */
static void test_one_pmi(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);
	int i;

	(void)state;
	fake_wr(f, GLOBAL, 0x7);
	for (i = 0; i < 3; i++) {
		fake_wr(f, PMC + i, 0xffffffff);
		fake_wr(f, EVTSEL + i, INSTRUCTIONS | EN_ALL | INT);
	}
	fake_tick(f, VPMU_BANK_USER, 1);
	assert_int_equal(f->n_pmi, 1);
	assert_int_equal(fake_rd(f, STATUS), BIT(63) | 7);
	fake_wr(f, OVF_CTRL, BIT(63));
	fake_wr(f, PMC, 0xffffffff);
	fake_tick(f, VPMU_BANK_USER, 1);
	assert_int_equal(f->n_pmi, 2);
	assert_int_equal(fake_rd(f, STATUS), 7);
	f->kicked = true; /* without need */
	fake_service(f);
	assert_int_equal(f->n_pmi, 2);
	fake_free(f);
}

static void test_freeze(void **state)
{
	int version, intr;

	(void)state;
	for (version = 2; version <= 5; version++)
		for (intr = 0; intr < 2; intr++) {
			struct fake *f = fake_new(version, 8, 3, FAKE_CAPS);
			uint64_t frozen = intr && version >= 4 ? BIT(59) : 0;
			uint64_t ctrl = intr && version < 4 ? 0 : 0x100000003;

			fake_wr(f, DEBUGCTL, BIT(12));
			fake_wr(f, GLOBAL, 0x100000003);
			fake_wr(f, FIXED_CTRL, 3);
			fake_wr(f, PMC, 0xffffffff);
			fake_wr(f, EVTSEL + 1, BRANCHES | EN_ALL);
			fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL | (intr ? INT : 0));
			fake_tick(f, VPMU_BANK_USER, 1);
			assert_int_equal(f->n_pmi, intr);
			assert_int_equal(fake_rd(f, STATUS), BIT(63) | frozen | 1);
			assert_int_equal(fake_rd(f, GLOBAL), ctrl);
			fake_tick(f, VPMU_BANK_USER, 10);
			assert_int_equal(fake_rd(f, PMC + 1), intr ? 1 : 11);
			assert_int_equal(fake_rd(f, FIXED), intr ? 1 : 11);

			/* the handler's acknowledgement lets it go on, or GLOBAL_CTRL */
			fake_wr(f, OVF_CTRL, fake_rd(f, STATUS));
			assert_int_equal(fake_rd(f, STATUS), 0);
			if (version < 4)
				fake_wr(f, GLOBAL, 0x100000003);
			fake_tick(f, VPMU_BANK_USER, 10);
			assert_int_equal(fake_rd(f, PMC + 1), intr ? 11 : 21);
			assert_int_equal(fake_rd(f, FIXED), intr ? 11 : 21);
			fake_free(f);
		}
}

static void test_status_set_and_inuse(void **state)
{
	struct fake *f = fake_new(4, 4, 3, FAKE_CAPS);
	struct vpmu_pmc_info info;

	(void)state;
	fake_wr(f, STATUS_SET, 0x5);
	fake_wr(f, STATUS_SET, 0x8);
	assert_int_equal(fake_rd(f, STATUS), 0xd);
	assert_int_equal(f->n_pmi, 0);
	fake_wr(f, OVF_CTRL, 0xc);
	assert_int_equal(fake_rd(f, STATUS), 1);

	assert_int_equal(fake_rd(f, INUSE), 0);
	fake_wr(f, EVTSEL + 2, INSTRUCTIONS);
	fake_wr(f, EVTSEL + 3, 0xff00); /* unit mask alone is no use */
	fake_wr(f, FIXED_CTRL, 0x840 | 0x002);
	assert_int_equal(fake_rd(f, INUSE), BIT(63) | BIT(32) | BIT(2));
	fake_wr(f, FIXED_CTRL, 0x100);
	assert_int_equal(fake_rd(f, INUSE), BIT(34) | BIT(2));
	fake_wr(f, EVTSEL, INT);
	assert_int_equal(fake_rd(f, INUSE), BIT(63) | BIT(34) | BIT(2));

	/* the host's view */
	fake_wr(f, EVTSEL + 1, LLC_MISS | EN_ALL);
	assert_true(vpmu_arch_pmc_info(f->v, 1, &info));
	assert_int_equal(info.select, LLC_MISS | EN_ALL);
	assert_int_equal(info.quality, VPMU_QUALITY_NONE);
	assert_int_equal(info.state, VPMU_EVENT_OFF);
	fake_wr(f, GLOBAL, BIT(34));
	fake_tick(f, VPMU_BANK_KERNEL, 5);
	assert_true(vpmu_arch_pmc_info(f->v, 6, &info));
	assert_int_equal(info.select, 1);
	assert_int_equal(info.value, 5);
	assert_int_equal(info.enabled, 1);
	assert_int_equal(info.state, VPMU_EVENT_ACTIVE);
	assert_int_equal(info.quality, VPMU_QUALITY_EXACT);
	assert_false(vpmu_arch_pmc_info(f->v, 7, &info));
	fake_free(f);
}

/* Reset, SMM ---------------------------------------------------------------- */

static void reset_one(struct fake *f, int version, int n_gp, int n_fixed, uint64_t caps)
{
	struct fake_snap power_on, before, after;

	fake_snap(f->v, &power_on);
	if (version > 1)
		assert_int_equal(fake_rd(f, GLOBAL), BIT(n_gp) - 1);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL | INT);
	fake_wr(f, PMC, 0xffffffff);
	if (n_fixed)
		fake_wr(f, FIXED_CTRL, 3);
	if (version > 1)
		fake_wr(f, GLOBAL, n_fixed ? 0x100000001 : 1);
	fake_tick(f, VPMU_BANK_USER, 5);

	fake_snap(f->v, &before);
	if (version > 1)
		fake_wr(f, DEBUGCTL, BIT(12) | (caps & BIT(12) ? BIT(14) : 0) | 3);
	vpmu_arch_reset(f->v, true);
	fake_snap(f->v, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	fake_tick(f, VPMU_BANK_USER, 5);
	assert_int_equal(fake_rd(f, PMC), 9);

	/* an overflow that has not been serviced does not outlive a reset */
	if (version > 1)
		fake_wr(f, DEBUGCTL, BIT(12));
	fake_wr(f, PMC, 0xffffffff);
	f->event[0]->head.overflowed(&f->event[0]->head);
	vpmu_arch_reset(f->v, false);
	fake_service(f);
	assert_int_equal(fake_events(f), 0);
	fake_snap(f->v, &after);
	assert_memory_equal(&power_on, &after, sizeof(before));
}

static void test_reset(void **state)
{
	(void)state;
	each_config(reset_one);
}

static void test_smm(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);

	(void)state;
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	fake_wr(f, GLOBAL, 1);
	vpmu_arch_smm(f->v, true);
	fake_tick(f, VPMU_BANK_KERNEL, 1);
	vpmu_arch_smm(f->v, false);
	assert_int_equal(fake_rd(f, PMC), 1);

	fake_wr(f, DEBUGCTL, BIT(14));
	vpmu_arch_smm(f->v, true);
	assert_int_equal(fake_rd(f, GLOBAL), 0);
	fake_tick(f, VPMU_BANK_KERNEL, 10);
	vpmu_arch_smm(f->v, true); /* twice: harmless */
	vpmu_arch_smm(f->v, false);
	assert_int_equal(fake_rd(f, GLOBAL), 1);
	fake_tick(f, VPMU_BANK_KERNEL, 1);
	assert_int_equal(fake_rd(f, PMC), 2);
	vpmu_arch_smm(f->v, false);
	assert_int_equal(fake_rd(f, GLOBAL), 1);

	/* what the handler sets counts until RSM */
	vpmu_arch_smm(f->v, true);
	fake_wr(f, GLOBAL, 1);
	fake_wr(f, DEBUGCTL, 0);
	fake_tick(f, VPMU_BANK_KERNEL, 1);
	vpmu_arch_smm(f->v, false);
	assert_int_equal(fake_rd(f, PMC), 3);
	assert_int_equal(fake_rd(f, GLOBAL), 1);

	/* reset in SMM */
	fake_wr(f, DEBUGCTL, BIT(14));
	vpmu_arch_smm(f->v, true);
	vpmu_arch_reset(f->v, false);
	vpmu_arch_smm(f->v, false);
	assert_int_equal(fake_rd(f, GLOBAL), 0xff);
	fake_free(f);
}

/* A freezing PMI of an overflow just before the SMI holds after RSM. */
static void test_smm_freeze(void **state)
{
	struct fake *f = fake_new(2, 8, 3, FAKE_CAPS);

	(void)state;
	fake_wr(f, DEBUGCTL, BIT(12) | BIT(14));
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL | INT);
	f->event[0]->head.overflowed(&f->event[0]->head);
	vpmu_arch_smm(f->v, true);
	fake_service(f);
	vpmu_arch_smm(f->v, false);
	assert_int_equal(fake_rd(f, GLOBAL), 0);
	fake_free(f);
}

/* What cannot be counted ---------------------------------------------------- */

static void test_told(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);
	struct vpmu_told told;
	int i;

	(void)state;
	assert_false(vpmu_arch_told(f->v, 0, &told));
	fake_wr(f, EVTSEL, LLC_MISS | EN_ALL);
	fake_wr(f, EVTSEL, LLC_MISS | EN_ALL | INT); /* the same: not told again */
	fake_wr(f, GLOBAL, 0);
	fake_wr(f, GLOBAL, 1);
	assert_int_equal(f->n_create, 1);
	fake_wr(f, EVTSEL, LLC_MISS);
	fake_wr(f, EVTSEL, LLC_MISS | EN_USR);
	fake_wr(f, EVTSEL + 1, 0x0103ff | BIT(18) | BIT(23) | 5u << 24 | EN_ALL);
	assert_true(vpmu_arch_told(f->v, 0, &told));
	assert_int_equal(told.select, LLC_MISS);
	assert_int_equal(told.times, 2);
	assert_string_equal(told.name, "LLC_MISS");
	assert_string_equal(told.needs, "--uarch on");
	assert_true(vpmu_arch_told(f->v, 1, &told));
	assert_int_equal(told.select, 0x03ff | BIT(18) | BIT(23) | 5u << 24);
	assert_int_equal(told.times, 1);
	assert_null(told.name);
	assert_null(told.needs);
	assert_false(vpmu_arch_told(f->v, 2, &told));

	/* a fixed counter goes by its event's encoding */
	f->no_fixed = true;
	fake_wr(f, FIXED_CTRL, 0x020);
	assert_true(vpmu_arch_told(f->v, 2, &told));
	assert_int_equal(told.select, 0x3c);
	assert_string_equal(told.name, "CYCLES");

	/* at most sixteen; those that are known go on being counted; reset keeps them */
	for (i = 0; i < 40; i++)
		fake_wr(f, EVTSEL + 2, 0x1000 + ((uint64_t)i << 8) + 0x11 + EN_ALL);
	fake_wr(f, EVTSEL, 0);
	fake_wr(f, EVTSEL, LLC_MISS | EN_ALL);
	vpmu_arch_reset(f->v, false);
	assert_true(vpmu_arch_told(f->v, 15, &told));
	assert_int_equal(told.select, 0x1000 + (12 << 8) + 0x11);
	assert_false(vpmu_arch_told(f->v, 16, &told));
	assert_true(vpmu_arch_told(f->v, 0, &told));
	assert_int_equal(told.times, 3);
	fake_free(f);
}

/* From a selector that nobody counts straight to one that somebody does. */
static void test_told_then_counted(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);

	(void)state;
	fake_wr(f, EVTSEL, LLC_MISS | EN_ALL);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	fake_tick(f, VPMU_BANK_USER, 10);
	assert_int_equal(fake_rd(f, PMC), 10);
	fake_wr(f, EVTSEL, LLC_MISS | EN_ALL);
	fake_tick(f, VPMU_BANK_USER, 10);
	assert_int_equal(fake_rd(f, PMC), 10);
	assert_int_equal(fake_events(f), 0);
	fake_free(f);
}

/*
 * Whichever creation fails, the counter stands still and every other one counts;
 * the next enable tries again.
 */
static void test_nth_create_fails(void **state)
{
	unsigned int n, i, by_gate;

	(void)state;
	for (n = 1; n <= 11; n++)
		for (by_gate = 0; by_gate < 2; by_gate++) {
			struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);
			struct vpmu_told told;

			f->fail_create = n;
			f->fail_code = -VPMU_EBUSY;
			fake_wr(f, GLOBAL, 0x7000000ff);
			for (i = 0; i < 8; i++)
				fake_wr(f, EVTSEL + i, INSTRUCTIONS | EN_ALL);
			fake_wr(f, FIXED_CTRL, 0x333);
			assert_int_equal(f->n_create, 11);
			assert_int_equal(fake_events(f), 10);
			fake_tick(f, VPMU_BANK_USER, 10);
			for (i = 0; i < 8; i++)
				assert_int_equal(fake_rd(f, PMC + i), i + 1 == n ? 0 : 10);
			for (i = 0; i < 3; i++)
				assert_int_equal(fake_rd(f, FIXED + i), i + 9 == n ? 0 : 10);
			assert_false(vpmu_arch_told(f->v, 0, &told));

			if (by_gate || n > 8) {
				fake_wr(f, GLOBAL, 0);
				fake_wr(f, GLOBAL, 0x7000000ff);
			} else {
				fake_wr(f, EVTSEL + n - 1, INSTRUCTIONS);
				fake_wr(f, EVTSEL + n - 1, INSTRUCTIONS | EN_ALL);
			}
			assert_int_equal(fake_events(f), 11);
			fake_tick(f, VPMU_BANK_USER, 1);
			assert_int_equal(fake_rd(f, n > 8 ? FIXED + n - 9 : PMC + n - 1), 1);
			fake_free(f);
		}
}

/* An event that cannot be enabled is enabled anew when its gate opens again. */
static void test_enable_fails(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);

	(void)state;
	f->fail_enable = true;
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	fake_tick(f, VPMU_BANK_USER, 10);
	assert_int_equal(fake_rd(f, PMC), 0);
	f->fail_enable = false;
	fake_wr(f, GLOBAL, 0);
	fake_wr(f, GLOBAL, 1);
	fake_tick(f, VPMU_BANK_USER, 10);
	assert_int_equal(fake_rd(f, PMC), 10);
	fake_free(f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_bad_pointers),
		cmocka_unit_test(test_cpuid),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_write_width),
		cmocka_unit_test(test_rdpmc),
		cmocka_unit_test(test_gates),
		cmocka_unit_test(test_event_life),
		cmocka_unit_test(test_fixed_parked),
		cmocka_unit_test(test_running_write),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_one_pmi),
		cmocka_unit_test(test_freeze),
		cmocka_unit_test(test_status_set_and_inuse),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_smm),
		cmocka_unit_test(test_smm_freeze),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_told_then_counted),
		cmocka_unit_test(test_nth_create_fails),
		cmocka_unit_test(test_enable_fails),
	};

	return cmocka_run_group_tests_name("arch", tests, NULL, NULL);
}
