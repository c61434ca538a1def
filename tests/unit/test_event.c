/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "unit.h"

#include <vpmu/model.h>
#include <vpmu/msr.h>

#define S(name)		VPMU_SIGNAL_BIT(VPMU_SIGNAL_##name)
#define NO_CLOCK	(VPMU_SIGNALS_ALL & ~S(CYCLES))
#define USER		VPMU_BANKS_USER
#define CMASK(n)	((uint64_t)(n) << VPMU_EVTSEL_CMASK_SHIFT)
#define KINDS		(S(JCC_TAKEN) | S(JCC_NOT_TAKEN) | S(JMP) | S(CALL) | S(RET) | \
			 S(JMP_INDIRECT) | S(CALL_INDIRECT) | S(FAR))

static const struct vpmu_model *icelake(void)
{
	return vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
}

static void test_every_model_is_sound(void **state)
{
	const struct vpmu_model *m;
	size_t i, bad;

	(void)state;
	for (i = 0; (m = vpmu_model_at(i)); i++) {
		const char *wrong = vpmu_model_check(m, &bad);

		if (wrong)
			fail_msg("%s, event %zu: %s", m->name, bad, wrong);
	}
	assert_true(i >= 4);
	assert_null(vpmu_model_at(SIZE_MAX));
}

static void test_model_find(void **state)
{
	static const struct {
		uint8_t vendor, family, model;
		const char *name;
	} row[] = {
		{ VPMU_VENDOR_INTEL, 6, 106, "icelake-server" },
		{ VPMU_VENDOR_INTEL, 6, 108, "icelake-server" },
		{ VPMU_VENDOR_INTEL, 6, 143, "sapphire-rapids" },
		{ VPMU_VENDOR_INTEL, 6, 207, "sapphire-rapids" },
		{ VPMU_VENDOR_INTEL, 6, 85, "skylake-server" },
		{ VPMU_VENDOR_INTEL, 6, 1, "generic" },
		{ VPMU_VENDOR_INTEL, 6, 255, "generic" },
		{ VPMU_VENDOR_INTEL, 15, 106, NULL },
		{ VPMU_VENDOR_AMD, 6, 106, NULL },
		{ VPMU_VENDOR_AMD, 25, 17, NULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		const struct vpmu_model *m = vpmu_model_find(row[i].vendor, row[i].family,
							     row[i].model);

		if (row[i].name)
			assert_string_equal(m->name, row[i].name);
		else
			assert_null(m);
	}
}

/* Binary search against looking at every row, for every selector there is. */
static void test_find_everything(void **state)
{
	const struct vpmu_model *m;
	size_t i, k;
	uint32_t code;

	(void)state;
	for (i = 0; (m = vpmu_model_at(i)); i++)
		for (code = 0; code <= 0xffff; code++) {
			const struct vpmu_event_def *expect = NULL;

			for (k = 0; k < m->n_events; k++)
				if (m->events[k].select == (code & 0xff) &&
				    m->events[k].umask == code >> 8)
					expect = &m->events[k];
			assert_ptr_equal(vpmu_event_find(m, code, -1), expect);
			assert_ptr_equal(vpmu_event_find(m, ~(uint64_t)0xffff | code, -1),
					 expect);
		}
}

struct resolved {
	uint8_t model;     /* Intel family 6 */
	uint64_t select;
	int fixed;
	uint64_t signals;  /* without a clock; 0 and quality NONE: not counted */
	uint8_t shift;
	uint8_t quality;
};

#define EXACT	VPMU_QUALITY_EXACT
#define DEFINED	VPMU_QUALITY_DEFINED
#define NONE	VPMU_QUALITY_NONE

static const struct resolved resolved[] = {
	/* The architectural events and the fixed counters. */
	{ 106, 0x003c, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x00c0, -1, S(INSTRUCTIONS), 0, EXACT },
	{ 106, 0x013c, -1, S(INSTRUCTIONS), 4, DEFINED },
	{ 143, 0x013c, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 85, 0x013c, -1, S(INSTRUCTIONS), 4, DEFINED },
	{ 1, 0x013c, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x4f2e, -1, 0, 0, NONE },
	{ 106, 0x412e, -1, 0, 0, NONE },
	{ 106, 0x00c4, -1, S(BRANCHES), 0, EXACT },
	{ 106, 0x00c5, -1, 0, 0, NONE },
	{ 106, 0x01a4, -1, 0, 0, NONE },
	{ 106, 0, 0, S(INSTRUCTIONS), 0, EXACT },
	{ 106, 0, 1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0, 2, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0, 3, 0, 0, NONE },
	{ 85, 0, 2, S(INSTRUCTIONS), 0, DEFINED },
	/* @select is not used with a fixed counter, whatever it holds. */
	{ 106, 0x00c4 | VPMU_EVTSEL_EDGE | CMASK(7), 0, S(INSTRUCTIONS), 0, EXACT },
	/* A fixed counter's event that no GP counter can count; nothing at all. */
	{ 106, 0x0300, -1, 0, 0, NONE },
	{ 106, 0x0000, -1, 0, 0, NONE },
	{ 106, 0xffff, -1, 0, 0, NONE },
	/* Branch kinds of Icelake-SP and Sapphire Rapids. */
	{ 106, 0x11c4, -1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), 0, EXACT },
	{ 106, 0x01c4, -1, S(JCC_TAKEN), 0, EXACT },
	{ 106, 0x10c4, -1, S(JCC_NOT_TAKEN), 0, EXACT },
	{ 106, 0x02c4, -1, S(CALL) | S(CALL_INDIRECT), 0, EXACT },
	{ 106, 0x08c4, -1, S(RET), 0, EXACT },
	{ 106, 0x20c4, -1, KINDS & ~(S(JCC_NOT_TAKEN) | S(FAR)), 0, EXACT },
	{ 106, 0x40c4, -1, S(FAR), 0, EXACT },
	{ 106, 0x80c4, -1, S(JMP_INDIRECT) | S(CALL_INDIRECT), 0, EXACT },
	{ 106, 0x04c4, -1, 0, 0, NONE },
	{ 143, 0x11c4, -1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), 0, EXACT },
	{ 143, 0x80c4, -1, S(JMP_INDIRECT) | S(CALL_INDIRECT), 0, EXACT },
	/* Skylake-SP's differ. */
	{ 85, 0x01c4, -1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), 0, EXACT },
	{ 85, 0x10c4, -1, S(JCC_NOT_TAKEN), 0, EXACT },
	{ 85, 0x04c4, -1, S(BRANCHES), 0, EXACT },
	{ 85, 0x11c4, -1, 0, 0, NONE },
	{ 85, 0x80c4, -1, 0, 0, NONE },
	{ 1, 0x00c4, -1, S(BRANCHES), 0, EXACT },
	{ 1, 0x20c4, -1, 0, 0, NONE },
	{ 106, 0x01c0, -1, S(INSTRUCTIONS), 0, EXACT },
	{ 85, 0x01c0, -1, S(INSTRUCTIONS), 0, EXACT },
	/* Bits that do not matter. */
	{ 106, 0x00c0 | VPMU_EVTSEL_USR | VPMU_EVTSEL_INT | VPMU_EVTSEL_EN, -1,
	  S(INSTRUCTIONS), 0, EXACT },
	{ 106, 0xffffffff00000000ull | 0x00c0, -1, S(INSTRUCTIONS), 0, EXACT },
	/* One instruction is one cycle: cmask, inv, edge. */
	{ 106, 0x00c0 | CMASK(1), -1, S(INSTRUCTIONS), 0, EXACT },
	{ 106, 0x00c4 | CMASK(1), -1, S(BRANCHES), 0, EXACT },
	{ 106, 0x013c | CMASK(1), -1, S(INSTRUCTIONS), 4, DEFINED },
	{ 106, 0x00c0 | CMASK(2), -1, 0, 0, DEFINED },
	{ 106, 0x20c4 | CMASK(255), -1, 0, 0, DEFINED },
	{ 106, 0x00c0 | CMASK(16) | VPMU_EVTSEL_INV, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x00c4 | CMASK(2) | VPMU_EVTSEL_INV, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x013c | CMASK(2) | VPMU_EVTSEL_INV, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x00c0 | CMASK(1) | VPMU_EVTSEL_INV, -1, 0, 0, NONE },
	{ 106, 0x00c0 | VPMU_EVTSEL_INV, -1, S(INSTRUCTIONS), 0, EXACT },
	{ 106, 0x003c | VPMU_EVTSEL_EDGE | CMASK(1), -1, 0, 0, NONE },
	{ 106, 0x00c4 | VPMU_EVTSEL_EDGE, -1, 0, 0, NONE },
	{ 106, 0x412e | CMASK(2), -1, 0, 0, NONE },
	{ 106, 0x412e | CMASK(2) | VPMU_EVTSEL_INV, -1, 0, 0, NONE },
};

static void test_resolve(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(resolved); i++) {
		const struct resolved *t = &resolved[i];
		const struct vpmu_model *m = vpmu_model_find(VPMU_VENDOR_INTEL, 6, t->model);
		struct vpmu_recipe r = { .signals = 99, .quality = 99, .shift = 99 };
		int err = vpmu_event_resolve(m, t->select, t->fixed, USER, NO_CLOCK, &r);

		if (err != (t->quality == NONE ? -VPMU_ENOENT : 0) ||
		    r.signals != t->signals || r.shift != t->shift ||
		    r.quality != t->quality || r.banks != USER)
			fail_msg("row %zu (%s %llx): %d, signals %llx >> %d, quality %d", i,
				 m->name, (unsigned long long)t->select, err,
				 (unsigned long long)r.signals, r.shift, r.quality);
	}
}

/* With a clock of the engine's own, cycles are its, and cmask has no definition. */
static void test_resolve_with_clock(void **state)
{
	const struct vpmu_model *m = icelake();
	struct vpmu_recipe r;

	(void)state;
	assert_int_equal(vpmu_event_resolve(m, 0x3c, -1, USER, VPMU_SIGNALS_ALL, &r), 0);
	assert_true(r.signals == S(CYCLES));
	assert_int_equal(r.quality, DEFINED);
	assert_int_equal(vpmu_event_resolve(m, 0x3c | CMASK(2) | VPMU_EVTSEL_INV, -1, USER,
					    VPMU_SIGNALS_ALL, &r), 0);
	assert_true(r.signals == S(CYCLES));
	assert_int_equal(vpmu_event_resolve(m, 0x3c | CMASK(2), -1, USER,
					    VPMU_SIGNALS_ALL, &r), 0);
	assert_true(r.signals == 0);
	assert_int_equal(vpmu_event_resolve(m, 0xc0 | CMASK(1), -1, USER,
					    VPMU_SIGNALS_ALL, &r), -VPMU_ENOENT);
	assert_int_equal(vpmu_event_resolve(m, 0xc0, -1, USER, VPMU_SIGNALS_ALL, &r), 0);
	assert_true(r.signals == S(INSTRUCTIONS));
}

/* An event counts if and only if all of its signals are supplied. */
static void test_resolve_missing_signals(void **state)
{
	const struct vpmu_model *m = icelake();
	unsigned int i, k;

	(void)state;
	for (k = 0; k < m->n_events; k++) {
		const struct vpmu_event_def *def = &m->events[k];
		uint64_t select = (uint64_t)def->umask << 8 | def->select;
		struct vpmu_recipe full, part;

		if (vpmu_event_resolve(m, select, def->fixed, USER, NO_CLOCK, &full))
			continue;
		for (i = 0; i < VPMU_SIGNAL_COUNT; i++) {
			uint64_t supplied = NO_CLOCK & ~VPMU_SIGNAL_BIT(i);
			int err = vpmu_event_resolve(m, select, def->fixed, USER, supplied,
						     &part);

			if (full.signals & VPMU_SIGNAL_BIT(i)) {
				assert_int_equal(err, -VPMU_ENOENT);
				assert_true(part.signals == 0);
				assert_int_equal(part.quality, NONE);
			} else {
				assert_int_equal(err, 0);
				assert_true(part.signals == full.signals);
			}
		}
	}
}

/* What the architecture says about the kinds, whatever the encodings. */
static void test_kinds_add_up(void **state)
{
	static const uint16_t cond = 0x11c4, taken = 0x01c4, not_taken = 0x10c4;
	const struct vpmu_model *m = icelake();
	uint64_t all = 0;
	unsigned int i;

	(void)state;
	assert_true(vpmu_event_find(m, cond, -1)->signals ==
		    (vpmu_event_find(m, taken, -1)->signals |
		     vpmu_event_find(m, not_taken, -1)->signals));
	for (i = 0; i < m->n_events; i++)
		if (m->events[i].select == 0xc4 && m->events[i].umask)
			all |= m->events[i].signals;
	assert_true(all == KINDS);
}

static void test_told(void **state)
{
	const struct vpmu_event_def *def = vpmu_event_find(icelake(), 0x412e, -1);

	(void)state;
	assert_string_equal(def->name, "LONGEST_LAT_CACHE.MISS");
	assert_string_equal(def->needs, "--uarch on");
	assert_int_equal(def->quality, VPMU_QUALITY_MODELLED);
	def = vpmu_event_find(icelake(), 0x81d0, -1);
	assert_string_equal(def->name, "MEM_INST_RETIRED.ALL_LOADS");
	assert_int_equal(def->quality, VPMU_QUALITY_EXACT);
}

/* AMD's event select has four more bits, above; Intel's has not. */
static void test_amd_select(void **state)
{
	static const struct vpmu_event_def events[] = {
		{ "EX_RET_INSTR", 0xc0, 0, -1, 0, EXACT, 0x3f, S(INSTRUCTIONS), NULL },
		{ "EX_RET_FUSED_INSTR", 0x1d0, 0, -1, 0, EXACT, 0x3f, S(BRANCHES), NULL },
	};
	struct vpmu_model m = {
		.name = "zen", .title = "Zen", .vendor = VPMU_VENDOR_AMD, .family = 25,
		.version = 2, .n_gp = 6, .width_bits = 48, .events = events, .n_events = 2,
	};
	size_t bad;

	(void)state;
	assert_null(vpmu_model_check(&m, &bad));
	assert_ptr_equal(vpmu_event_find(&m, 0xc0, -1), &events[0]);
	assert_ptr_equal(vpmu_event_find(&m, 0xc0 | 1ull << 22, -1), &events[0]);
	assert_ptr_equal(vpmu_event_find(&m, 1ull << 32 | 0xd0, -1), &events[1]);
	assert_null(vpmu_event_find(&m, 0xd0, -1));
	m.vendor = VPMU_VENDOR_INTEL;
	assert_string_equal(vpmu_model_check(&m, &bad), "event select out of range");
	assert_int_equal(bad, 1);
}

/* Deliberate breakages: a sound model, one thing changed. */
struct broken {
	struct vpmu_model m;
	struct vpmu_event_def e[9];
};

static void sound(struct broken *b)
{
	const struct vpmu_model *m = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 0);
	size_t bad;

	b->m = *m;
	assert_int_equal(m->n_events, COUNT_OF(b->e));
	memcpy(b->e, m->events, sizeof(b->e));
	b->m.events = b->e;
	assert_null(vpmu_model_check(&b->m, &bad));
}

static void expect_wrong(struct broken *b, size_t where)
{
	size_t bad = 12345;

	assert_non_null(vpmu_model_check(&b->m, &bad));
	assert_int_equal(bad, where);
	sound(b);
}

static void test_broken_head(void **state)
{
	struct broken b;

	(void)state;
	sound(&b);
	b.m.name = NULL, expect_wrong(&b, 9);
	b.m.title = NULL, expect_wrong(&b, 9);
	b.m.vendor = 2, expect_wrong(&b, 9);
	b.m.n_models = 1, expect_wrong(&b, 9);
	b.m.version = 0, expect_wrong(&b, 9);
	b.m.version = 7, expect_wrong(&b, 9);
	b.m.version = 1, expect_wrong(&b, 9);
	b.m.n_gp = 0, expect_wrong(&b, 9);
	b.m.n_gp = 9, expect_wrong(&b, 9);
	b.m.n_fixed = 5, expect_wrong(&b, 9);
	b.m.width_bits = 31, expect_wrong(&b, 9);
	b.m.width_bits = 64, expect_wrong(&b, 9);
	b.m.n_arch_events = 9, expect_wrong(&b, 9);
	b.m.capabilities |= 1, expect_wrong(&b, 9);
	b.m.events = NULL, expect_wrong(&b, 9);
	b.m.n_events = 0, expect_wrong(&b, 0);
	b.m.n_fixed = 4, expect_wrong(&b, 9);   /* no event for fixed counter 3 */
	b.m.n_events = 8, expect_wrong(&b, 8);  /* branch misses missing */
}

static void test_broken_rows(void **state)
{
	struct vpmu_event_def swap;
	struct broken b;

	(void)state;
	sound(&b);
	b.e[1].name = NULL, expect_wrong(&b, 1);
	b.e[1].name = "", expect_wrong(&b, 1);
	b.e[1].name = "lower case", expect_wrong(&b, 1);
	b.e[8].select = 0x100, expect_wrong(&b, 8);
	b.e[3].gp_mask = 0x100, expect_wrong(&b, 3);
	b.e[4].gp_mask = 0, expect_wrong(&b, 4);
	b.e[4].fixed = -2, expect_wrong(&b, 4);
	b.e[4].fixed = 3, expect_wrong(&b, 4);
	b.e[4].fixed = 1, expect_wrong(&b, 4);
	b.e[6].fixed = -1, expect_wrong(&b, 9);
	b.e[6].signals = VPMU_SIGNAL_BIT(VPMU_SIGNAL_COUNT), expect_wrong(&b, 6);
	b.e[6].quality = 4, expect_wrong(&b, 6);
	b.e[6].quality = NONE, expect_wrong(&b, 6);
	b.e[6].signals = 0, expect_wrong(&b, 6);
	b.e[6].shift = 16, expect_wrong(&b, 6);
	b.e[1].needs = NULL, expect_wrong(&b, 1);
	b.e[1].needs = "", expect_wrong(&b, 1);
	b.e[1].shift = 1, expect_wrong(&b, 1);
	b.e[2].umask = 0x41, expect_wrong(&b, 2);  /* twice */
	b.e[2].umask = 0x40, expect_wrong(&b, 2);  /* not sorted */
	b.e[2].umask = 0x4e, expect_wrong(&b, 9);  /* architectural event missing */
	swap = b.e[7], b.e[7] = b.e[8], b.e[8] = swap, expect_wrong(&b, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_model_is_sound),
		cmocka_unit_test(test_model_find),
		cmocka_unit_test(test_find_everything),
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_resolve_with_clock),
		cmocka_unit_test(test_resolve_missing_signals),
		cmocka_unit_test(test_kinds_add_up),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_amd_select),
		cmocka_unit_test(test_broken_head),
		cmocka_unit_test(test_broken_rows),
	};

	return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
