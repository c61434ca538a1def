// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Saving and loading the architectural PMU: over the fake provider for refusals, over the
 * direct one and the scripted engine for exact continuation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <vpmu/direct.h>

#include "fake.h"
#include "script.h"

#define SAVED_MAX	4096

static uint64_t rng_state;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static size_t save(struct vpmu_arch *v, uint8_t *buf)
{
	size_t need, used;

	assert_int_equal(vpmu_arch_save(v, NULL, 0, &need), 0);
	assert_true(need <= SAVED_MAX);
	assert_int_equal(vpmu_arch_save(v, buf, need - 1, &used), -VPMU_E2BIG);
	assert_int_equal(used, need);
	assert_int_equal(vpmu_arch_save(v, buf, SAVED_MAX, &used), 0);
	assert_int_equal(used, need);
	assert_int_equal(vpmu_arch_save(v, buf, need, &used), 0);
	return used;
}

/* A PMU with something in every register. */
static struct fake *busy(int version, int n_gp, int n_fixed, uint64_t caps)
{
	struct fake *f = fake_new(version, n_gp, n_fixed, caps);
	int i;

	f->tag = 0x1234;
	for (i = 0; i < n_gp; i++) {
		fake_wr(f, 0xc1 + i, 0xfffffff0 + i);
		fake_wr(f, 0x186 + i, (i & 1 ? 0xc4 : 0xc0) | 0x530000);
	}
	fake_wr(f, 0x186 + n_gp - 1, 0x412e | 0x530000);
	fake_wr(f, 0x186, 0x1300c0); /* parked */
	if (version > 1) {
		fake_wr(f, 0x1d9, caps & BIT(12) ? 0x5000 : 0x1000);
		fake_wr(f, 0x38d, n_fixed ? 0xb : 0);
		fake_wr(f, 0x38f, (BIT(n_gp) - 1) | (n_fixed ? BIT(32) : 0));
	}
	fake_tick(f, VPMU_BANK_USER, 100);
	return f;
}

/* Load what is refused: nothing changes. */
static void refused(struct fake *f, const void *buf, size_t size, int ret)
{
	uint8_t before[SAVED_MAX], after[SAVED_MAX];
	struct fake_snap a, b;
	unsigned int events = fake_events(f);
	size_t used = save(f->v, before);
	int got;

	fake_snap(f->v, &a);
	got = vpmu_arch_load(f->v, buf, size);
	if (got != ret)
		fail_msg("load gives %d, not %d", got, ret);
	fake_snap(f->v, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(save(f->v, after), used);
	assert_memory_equal(before, after, used);
	assert_int_equal(fake_events(f), events);
	assert_int_equal(f->batch, 0);
}

static void test_save_load_save(void **state)
{
	int version, n_gp, n_fixed;

	(void)state;
	for (version = 1; version <= 5; version++)
		for (n_gp = 1; n_gp <= 8; n_gp += 7)
			for (n_fixed = 0; n_fixed <= (version > 1 ? 3 : 0); n_fixed++) {
				struct fake *f = busy(version, n_gp, n_fixed, FAKE_CAPS);
				struct fake *g = fake_new(version, n_gp, n_fixed, FAKE_CAPS);
				uint8_t one[SAVED_MAX], two[SAVED_MAX];
				struct fake_snap a, b;
				size_t used = save(f->v, one);

				assert_int_equal(vpmu_arch_load(g->v, one, used), 0);
				assert_int_equal(g->tag, 0x1234);
				assert_int_equal(fake_events(f), fake_events(g));
				assert_int_equal(save(g->v, two), used);
				assert_memory_equal(one, two, used);
				fake_snap(f->v, &a);
				fake_snap(g->v, &b);
				assert_memory_equal(&a, &b, sizeof(a));
				fake_tick(f, VPMU_BANK_USER, 17);
				fake_tick(g, VPMU_BANK_USER, 17);
				fake_snap(f->v, &a);
				fake_snap(g->v, &b);
				assert_memory_equal(&a, &b, sizeof(a));
				fake_free(f);
				fake_free(g);
			}
}

/* Reading every register changes nothing, and neither does saving. */
static void test_read_changes_nothing(void **state)
{
	struct fake *f = busy(5, 8, 3, FAKE_CAPS);
	uint8_t before[SAVED_MAX], after[SAVED_MAX];
	size_t used = save(f->v, before);
	uint64_t value;
	uint32_t msr;

	(void)state;
	for (msr = 0; msr < 0x2000; msr++) {
		vpmu_arch_rdmsr(f->v, msr, &value);
		vpmu_arch_rdpmc(f->v, msr << 20 | msr, false, &value);
	}
	assert_int_equal(save(f->v, after), used);
	assert_memory_equal(before, after, used);
	fake_free(f);
}

/* A pending overflow and the told table travel; a kick asks for the service. */
static void test_pending_and_uncounted(void **state)
{
	struct fake *f = busy(5, 4, 3, FAKE_CAPS);
	struct fake *g = fake_new(5, 8, 3, FAKE_CAPS);
	uint8_t buf[SAVED_MAX];
	struct vpmu_uncounted told;
	size_t used;

	(void)state;
	fake_wr(f, 0x38d, 0x8bb);
	fake_wr(f, 0x390, fake_rd(f, 0x38e));
	f->event[5]->head.overflowed(&f->event[5]->head); /* fixed counter 1 */
	used = save(f->v, buf);
	assert_int_equal(vpmu_arch_load(g->v, buf, used), 0);
	assert_int_equal(fake_rd(g, 0x38e), 0);
	assert_true(g->kicked);
	fake_service(g);
	assert_int_equal(g->n_pmi, 1);
	assert_int_equal(fake_rd(g, 0x38e), BIT(63) | BIT(59) | BIT(33));
	assert_true(vpmu_arch_uncounted(g->v, 0, &told));
	assert_int_equal(told.select, 0x412e);
	assert_int_equal(told.times, 1);
	assert_false(vpmu_arch_uncounted(g->v, 1, &told));
	fake_free(f);
	fake_free(g);
}

/* Into a larger one, never into a smaller or another one. */
static void test_configurations(void **state)
{
	static const struct {
		int line, version, n_gp, n_fixed;
		uint64_t caps;
		int ret;
	} row[] = {
		{ __LINE__, 4, 4, 2, BIT(13), 0 },
		{ __LINE__, 4, 8, 2, BIT(13), 0 },
		{ __LINE__, 4, 4, 3, BIT(13), 0 },
		{ __LINE__, 4, 8, 3, FAKE_CAPS, 0 },
		{ __LINE__, 4, 3, 2, BIT(13), -VPMU_EINVAL },
		{ __LINE__, 4, 4, 1, BIT(13), -VPMU_EINVAL },
		{ __LINE__, 4, 4, 2, 0, -VPMU_EINVAL },
		{ __LINE__, 4, 4, 2, BIT(12), -VPMU_EINVAL },
		{ __LINE__, 3, 4, 2, BIT(13), -VPMU_EINVAL },
		{ __LINE__, 5, 4, 2, BIT(13), -VPMU_EINVAL },
	};
	struct fake *f = busy(4, 4, 2, BIT(13));
	uint8_t buf[SAVED_MAX];
	size_t used = save(f->v, buf);
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(row); i++) {
		struct fake *g = fake_new(row[i].version, row[i].n_gp, row[i].n_fixed,
					  row[i].caps);

		if (row[i].ret) {
			refused(g, buf, used, row[i].ret);
		} else {
			assert_int_equal(vpmu_arch_load(g->v, buf, used), 0);
			assert_int_equal(fake_rd(g, 0x38f), fake_rd(f, 0x38f));
			assert_int_equal(fake_rd(g, 0xc4), fake_rd(f, 0xc4));
			assert_int_equal(fake_rd(g, 0x309), fake_rd(f, 0x309));
		}
		fake_free(g);
	}
	fake_free(f);
}

static void put(uint8_t *p, uint64_t value, int bytes)
{
	while (bytes--) {
		*p++ = (uint8_t)value;
		value >>= 8;
	}
}

/* Each field out of its range, one at a time. */
static void test_fields(void **state)
{
	enum { HEAD = 16, BODY = 32, SELECTORS = BODY + 72, COUNTER = SELECTORS + 64,
	       TOLD = COUNTER + 11 * 16 };
	static const struct {
		int line, at, bytes;
		uint64_t value;
		int ret;
	} row[] = {
		{ __LINE__, 0, 4, 0x12345678, -VPMU_EINVAL },
		{ __LINE__, 4, 4, 2, -VPMU_ENOSYS },
		{ __LINE__, 4, 4, 0, -VPMU_EINVAL },
		{ __LINE__, 8, 4, 0xffffffff, -VPMU_EINVAL },
		{ __LINE__, 8, 4, 8, -VPMU_EINVAL },
		{ __LINE__, 12, 4, 0, -VPMU_EINVAL },
		{ __LINE__, 12, 4, 1, -VPMU_EINVAL },
		{ __LINE__, 12, 4, 2, -VPMU_EINVAL },
		{ __LINE__, 12, 4, 4, -VPMU_EINVAL },
		{ __LINE__, 12, 4, 0xffffffff, -VPMU_EINVAL },
		{ __LINE__, HEAD, 4, 99, -VPMU_ENOSYS },
		{ __LINE__, HEAD, 4, 2, -VPMU_ENOSYS }, /* the provider's, of another version */
		{ __LINE__, HEAD + 4, 2, 3, -VPMU_ENOSYS },
		{ __LINE__, HEAD + 8, 4, 0xfffffff9, -VPMU_EINVAL },
		{ __LINE__, HEAD + 8, 4, 8, -VPMU_EINVAL },
		{ __LINE__, HEAD + 12, 4, 1, -VPMU_EINVAL },
		{ __LINE__, BODY, 1, 6, -VPMU_EINVAL },
		{ __LINE__, BODY + 1, 1, 0, -VPMU_EINVAL },
		{ __LINE__, BODY + 1, 1, 255, -VPMU_EINVAL },
		{ __LINE__, BODY + 2, 1, 255, -VPMU_EINVAL },
		{ __LINE__, BODY + 3, 1, 40, -VPMU_EINVAL },
		{ __LINE__, BODY + 4, 4, 1, -VPMU_EINVAL },
		{ __LINE__, BODY + 8, 8, 1, -VPMU_EINVAL },          /* capabilities */
		{ __LINE__, BODY + 16, 8, 4, -VPMU_EINVAL },         /* FIXED_CTRL */
		{ __LINE__, BODY + 24, 8, BIT(8), -VPMU_EINVAL },    /* GLOBAL_CTRL */
		{ __LINE__, BODY + 32, 8, BIT(48), -VPMU_EINVAL },   /* STATUS */
		{ __LINE__, BODY + 40, 8, 1, -VPMU_EINVAL },         /* DEBUGCTL */
		{ __LINE__, BODY + 48, 8, 1, -VPMU_EINVAL },         /* SMM's, outside */
		{ __LINE__, BODY + 56, 8, BIT(35), -VPMU_EINVAL },   /* pending */
		{ __LINE__, BODY + 64, 4, 2, -VPMU_EINVAL },         /* frozen */
		{ __LINE__, BODY + 68, 4, 17, -VPMU_EINVAL },        /* n_uncounted */
		{ __LINE__, BODY + 68, 4, 2, -VPMU_EINVAL },
		{ __LINE__, SELECTORS + 8, 8, BIT(21), -VPMU_EINVAL },
		{ __LINE__, SELECTORS + 8, 8, BIT(32), -VPMU_EINVAL },
		{ __LINE__, COUNTER, 8, BIT(48), -VPMU_EINVAL },
		{ __LINE__, COUNTER + 10 * 16, 8, BIT(48), -VPMU_EINVAL },
		{ __LINE__, COUNTER + 8, 8, BIT(4), -VPMU_EINVAL },  /* banks */
		{ __LINE__, COUNTER + 8, 8, BIT(9), -VPMU_EINVAL },
		{ __LINE__, TOLD, 8, BIT(16), -VPMU_EINVAL },
		{ __LINE__, TOLD + 8, 8, 0, -VPMU_EINVAL },
		{ __LINE__, TOLD + 16 + 16 + 4, 1, 1, -VPMU_EINVAL }, /* provider's */
	};
	struct fake *f = busy(5, 8, 3, FAKE_CAPS);
	struct fake *g = busy(5, 8, 3, FAKE_CAPS);
	uint8_t good[SAVED_MAX], buf[SAVED_MAX];
	size_t used = save(f->v, good);
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(row); i++) {
		memcpy(buf, good, used);
		put(buf + row[i].at, row[i].value, row[i].bytes);
		refused(g, buf, used, row[i].ret);
	}
	/* a section of a later library is skipped if it may be */
	memcpy(buf, good, used);
	put(buf + TOLD + 16, 99, 4);
	refused(g, buf, used, -VPMU_ENOSYS);
	put(buf + TOLD + 16 + 6, 0, 2);
	assert_int_equal(vpmu_arch_load(g->v, buf, used), 0);
	fake_free(f);
	fake_free(g);
}

/* A body longer than its fields, and a state of SMM that cannot have been. */
static void test_sections(void **state)
{
	struct fake *f = fake_new(1, 1, 0, 0);
	uint8_t good[SAVED_MAX], buf[SAVED_MAX];
	size_t used = save(f->v, good), body;

	(void)state;
	memcpy(buf, good, used);
	body = buf[24] | (size_t)buf[25] << 8;
	memmove(buf + 32 + body + 8, buf + 32 + body, used - 32 - body);
	put(buf + 8, used + 8, 4);
	put(buf + 24, body + 8, 4);
	refused(f, buf, used + 8, -VPMU_EINVAL);

	memcpy(buf, good, used);
	put(buf + 32 + 64, 1, 4);
	refused(f, buf, used, -VPMU_EINVAL);
	fake_free(f);
}

/* Truncated anywhere, or with any byte changed: loaded whole or not at all. */
static void test_hostile(void **state)
{
	struct fake *f = busy(5, 8, 3, FAKE_CAPS);
	struct fake *g = busy(5, 8, 3, FAKE_CAPS);
	uint8_t good[SAVED_MAX], buf[SAVED_MAX];
	size_t used = save(f->v, good), i;

	(void)state;
	for (i = 0; i < used; i++) {
		uint8_t *exact = test_malloc(i ? i : 1);

		memcpy(exact, good, i);
		refused(g, exact, i, -VPMU_EINVAL);
		if (i >= 16) {
			put(exact + 8, i, 4); /* a state that claims to end here */
			refused(g, exact, i, -VPMU_EINVAL);
		}
		test_free(exact);
	}
	rng_state = 88172645463325252ull;
	for (i = 0; i < used * 20; i++) {
		memcpy(buf, good, used);
		buf[i % used] ^= (uint8_t)(rng() | 1);
		if (vpmu_arch_load(g->v, buf, used)) {
			refused(g, buf, used, vpmu_arch_load(g->v, buf, used));
			continue;
		}
		fake_tick(g, VPMU_BANK_USER, 3);
		fake_service(g);
		assert_int_equal(vpmu_arch_load(g->v, good, used), 0);
	}
	fake_free(f);
	fake_free(g);
}

/* Exact going on, over the direct provider ----------------------------------- */

struct machine {
	struct vpmu_script script;
	struct vpmu_direct direct;
	struct vpmu_arch *v;
};

static void machine_service(void *arg)
{
	vpmu_arch_service(((struct machine *)arg)->v);
}

static struct machine *machine_new(const struct vpmu_model *model, int version,
				   int n_gp, int n_fixed)
{
	struct machine *m = test_calloc(1, sizeof(*m));
	struct vpmu_silicon_config sc = { .size = sizeof(sc) };
	struct vpmu_arch_config cfg = { .size = sizeof(cfg) };
	struct vpmu_error err;
	size_t size;

	vpmu_script_init(&m->script, VPMU_SCRIPT_SUPPLIED);
	sc.model = model;
	sc.supplied = VPMU_SCRIPT_SUPPLIED;
	sc.ops = &m->script.ops;
	sc.ctx = &m->script;
	assert_int_equal(vpmu_direct_init(&m->direct, &sc), 0);
	m->script.silicon = &m->direct.silicon;
	m->script.service = machine_service;
	m->script.arg = m;
	cfg.model = model;
	cfg.version = version;
	cfg.n_gp = n_gp;
	cfg.n_fixed = n_fixed;
	cfg.capabilities = model->capabilities;
	if (version == 1 || version > 5)
		cfg.capabilities &= ~VPMU_CAP_PEBS;
	cfg.provider = &m->direct.provider;
	cfg.ops = &m->script.ops;
	cfg.ctx = &m->script;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), 0);
	m->v = test_malloc(size);
	assert_int_equal(vpmu_arch_init(m->v, &cfg, &err), 0);
	return m;
}

static void machine_free(struct machine *m)
{
	assert_null(m->script.broken);
	vpmu_arch_reset(m->v, false);
	assert_int_equal(m->script.demand, 0);
	test_free(m->v);
	test_free(m);
}

/* A random value that a register mostly takes. */
static uint64_t any_value(uint32_t msr)
{
	static const uint16_t event[] = { 0xc0, 0x3c, 0x13c, 0xc4, 0x2c4, 0x20c4, 0x2e, 0xc5 };
	uint64_t r = rng();

	if (r % 16 == 0)
		return rng();
	if (msr >= 0x186 && msr < 0x18e)
		return event[r >> 8 & 7] | (r & 0xf30000) |
		       (r % 3 ? BIT(22) | BIT(16) : 0) | (r % 11 ? 0 : 2u << 24);
	if (msr == 0x38d)
		return r >> 8 & 0xbbb;
	if (msr == 0x38f)
		return r % 3 ? 0x7000000ff & r >> 4 : 0x3;
	if (msr == 0x1d9)
		return r >> 8 & 0x5003;
	if (msr == 0x390 || msr == 0x391)
		return (r >> 8 & 0x70000000f) | (rng() & BIT(59)) | (r & BIT(63));
	return r % 3 ? (0xffffffffffff & (uint64_t)-(int64_t)(r >> 8 & 0x3f)) : r & 0xfff;
}

static uint32_t any_msr(void)
{
	static const uint32_t msr[] = { 0x38d, 0x38f, 0x390, 0x391, 0x1d9, 0x38f };
	uint64_t r = rng();

	switch (r & 7) {
	case 0:
		return 0xc1 + (r >> 8) % 3;
	case 1:
		return 0x4c1 + (r >> 8) % 3;
	case 2:
	case 3:
		return 0x186 + (r >> 8) % 3;
	case 4:
		return 0x309 + (r >> 8) % 3;
	default:
		return msr[(r >> 8) % 6];
	}
}

/* Do one operation on both. */
static void both(struct machine *a, struct machine *b)
{
	enum vpmu_signal kind = VPMU_SIGNAL_INSTRUCTIONS + rng() % 10;
	enum vpmu_bank bank = rng() % VPMU_BANK_COUNT;
	uint32_t msr = any_msr();
	uint64_t value = any_value(msr), n = rng() % 40;
	struct machine *m[2] = { a, b };
	unsigned int op = rng() % 8, i;
	enum vpmu_result r[2];

	if (kind == VPMU_SIGNAL_BRANCHES)
		kind = VPMU_SIGNAL_CALL;
	if (op == 7 && n > 4) /* rarely */
		op = 6;
	for (i = 0; i < 2; i++) {
		uint64_t k = n;

		r[i] = VPMU_HANDLED;
		switch (op) {
		case 0: case 1: case 2: case 3:
			r[i] = vpmu_arch_wrmsr(m[i]->v, msr, value);
			vpmu_script_service(&m[i]->script);
			break;
		case 4: case 5: case 6:
			while (k--)
				vpmu_script_step(&m[i]->script, bank, kind);
			break;
		case 7:
			if (n < 3)
				vpmu_arch_smm(m[i]->v, n & 1);
			else
				vpmu_arch_reset(m[i]->v, n & 1);
			break;
		}
	}
	assert_int_equal(r[0], r[1]);
}

static void same(struct machine *a, struct machine *b)
{
	struct fake_snap x, y;
	struct vpmu_uncounted s, t;
	unsigned int i;

	fake_snap(a->v, &x);
	fake_snap(b->v, &y);
	assert_memory_equal(&x, &y, sizeof(x));
	assert_int_equal(a->script.n_pmi + a->script.n_pmi_lost,
			 b->script.n_pmi + b->script.n_pmi_lost);
	assert_int_equal(a->script.demand, b->script.demand);
	for (i = 0; vpmu_arch_uncounted(a->v, i, &s); i++) {
		assert_true(vpmu_arch_uncounted(b->v, i, &t));
		assert_int_equal(s.select, t.select);
		assert_int_equal(s.times, t.times);
	}
	assert_false(vpmu_arch_uncounted(b->v, i, &t));
}

/*
 * One machine runs on; the other is saved and loaded into a new one again and again. They
 * cannot be told apart, phases of scaled events included.
 */
static void test_goes_on(void **state)
{
	unsigned int run, i;

	(void)state;
	for (run = 0; run < 150; run++) {
		const struct vpmu_model *model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
		int version = 1 + run % 5, n_gp = 2 + run % 7;
		int n_fixed = version > 1 ? run % 4 : 0;
		struct machine *a = machine_new(model, version, n_gp, n_fixed);
		struct machine *b = machine_new(model, version, n_gp, n_fixed);

		rng_state = 0x9e3779b97f4a7c15ull + run;
		for (i = 0; i < 400; i++) {
			both(a, b);
			if (rng() % 10 == 0) {
				struct machine *c = machine_new(model, version, n_gp, n_fixed);
				uint8_t buf[SAVED_MAX];
				size_t used = save(b->v, buf);

				c->script.n_pmi = b->script.n_pmi + b->script.n_pmi_lost;
				c->script.lvtpc_masked = b->script.lvtpc_masked;
				assert_int_equal(vpmu_arch_load(c->v, buf, used), 0);
				vpmu_script_service(&c->script);
				machine_free(b);
				b = c;
			}
			same(a, b);
		}
		machine_free(a);
		machine_free(b);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_save_load_save),
		cmocka_unit_test(test_read_changes_nothing),
		cmocka_unit_test(test_pending_and_uncounted),
		cmocka_unit_test(test_configurations),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_goes_on),
	};

	return cmocka_run_group_tests_name("arch-state", tests, NULL, NULL);
}
