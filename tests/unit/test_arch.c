// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The architectural PMU over a provider under the test's control: configuration,
 * CPUID, registers bit by bit, RDPMC.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "fake.h"

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
	void (*kick)(void *ctx);
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
	f->ops.size = offsetof(struct vpmu_ops, raise_pmi);
	REFUSED((void)0);
	f->ops.size = sizeof(f->ops);
	kick = f->ops.kick;
	f->ops.kick = NULL;
	REFUSED((void)0);
	f->ops.kick = kick;
	provider.ops = &p;
	p.size = offsetof(struct vpmu_provider_ops, clock) - 1;
	REFUSED(cfg.provider = &provider);
	p.size++;
	cfg = good;
	cfg.provider = &provider;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), 0);
	p.event_size = 4;
	REFUSED(cfg.provider = &provider);
	p.event_size = sizeof(struct vpmu_event) + 4;
	REFUSED(cfg.provider = &provider);
#undef REFUSED
	model.vendor = 2;
	provider = f->provider;
	provider.model = &model;
	cfg = good;
	cfg.model = &model;
	cfg.provider = &provider;
	p.event_size = f->provider_ops.event_size;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), -VPMU_EOPNOTSUPP);
	fake_free(f);
}

static void cpuid_one(struct fake *f, int version, int n_gp, int n_fixed, uint64_t caps)
{
	struct vpmu_cpuid r = { 1, 2, ~0u, 4 };
	unsigned int sub;

	assert_true(vpmu_arch_cpuid(f->v, 1, 0, &r));
	assert_int_equal(r.ecx, caps ? ~4u : ~0x8004u);
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
	for (sub = 0; sub < 5; sub++) {
		struct vpmu_cpuid none = { ~0u, ~0u, ~0u, ~0u };

		assert_true(vpmu_arch_cpuid(f->v, 0x23, sub, &none));
		assert_int_equal(none.eax | none.ebx | none.ecx | none.edx, 0);
	}
	r.eax = ~0u;
	assert_true(vpmu_arch_cpuid(f->v, 7, 1, &r));
	assert_int_equal(r.eax, ~0x100u);
	assert_true(vpmu_arch_cpuid(f->v, 0x1c, 0, &r));
	assert_int_equal(r.eax | r.ebx | r.ecx | r.edx, 0);
	r.edx = ~0u;
	assert_true(vpmu_arch_cpuid(f->v, 7, 0, &r));
	assert_int_equal(r.eax | r.ebx | r.ecx, 0);
	assert_int_equal(r.edx, ~0x80000u);
	assert_int_equal(vpmu_arch_misc_enable(f->v), BIT(7) | BIT(11) | BIT(12));
}

static void test_cpuid(void **state)
{
	(void)state;
	fake_each_config(cpuid_one);
}

/* Registers ----------------------------------------------------------------- */

enum access { NONE, READ_ONLY, READ_WRITE, WRITE_ONLY };

/* The manual's rule for a register: whether it exists, and the bits it accepts. */
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
		*bits = counters | (uint64_t)0x3f << 58;
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
	fake_each_config(registers_one);
}

/* Registers of features that are not offered, and those that are not ours. */
static void test_ranges(void **state)
{
	static const struct {
		uint32_t first, n;
	} fault[] = {
		{ 0x40, 8 }, { 0x60, 8 }, { 0x1a6, 2 }, { 0x1c8, 2 }, { 0x30c, 13 },
		{ 0x329, 1 }, { 0x3f1, 2 }, { 0x3f4, 4 }, { 0x600, 1 }, { 0x680, 32 },
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

			r = vpmu_arch_rdpmc(f->v, type[t] << 16 | (unsigned int)i, false, &value);
			assert_int_equal(r, i < n ? VPMU_HANDLED : VPMU_FAULT);
			assert_int_equal(value, i >= n ? 7 : type[t] ? 200 + i : 100 + i);
		}
}

static void test_rdpmc(void **state)
{
	(void)state;
	fake_each_config(rdpmc_one);
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
	};

	return cmocka_run_group_tests_name("arch", tests, NULL, NULL);
}
