// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The event filter: the rules of KVM_SET_PMU_EVENT_FILTER one by one, then what it
 * does to a guest's counters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "fake.h"

#define ALLOW	0
#define DENY	1
#define MASKED	1

/* An entry as the kernel's documentation draws it, not by VPMU_FILTER_ENTRY(). */
#define ENTRY(select, mask, match, exclude) \
	((uint64_t)(mask) << 56 | (uint64_t)(exclude) << 55 | \
	 ((uint64_t)(select) >> 8) << 32 | (uint64_t)(match) << 8 | ((select) & 0xff))

static struct vpmu_filter filter(uint32_t action, uint32_t flags, uint32_t n,
				 const uint64_t *events)
{
	struct vpmu_filter f = { .size = sizeof(f) };

	f.action = action;
	f.flags = flags;
	f.n_events = n;
	f.events = events;
	return f;
}

static void test_check(void **state)
{
	static uint64_t events[301];
	static const struct {
		int line;
		uint32_t action, flags, n;
		uint64_t first;
		int ret;
	} row[] = {
		{ __LINE__, ALLOW, 0, 0, 0, 0 },
		{ __LINE__, DENY, MASKED, 0, 0, 0 },
		{ __LINE__, 2, 0, 0, 0, -VPMU_EINVAL },
		{ __LINE__, ALLOW, 2, 0, 0, -VPMU_EINVAL },
		{ __LINE__, ALLOW, 3, 0, 0, -VPMU_EINVAL },
		{ __LINE__, ALLOW, BIT(31), 0, 0, -VPMU_EINVAL },
		{ __LINE__, ALLOW, 0, 300, 0xc0, 0 },
		{ __LINE__, DENY, MASKED, 300, 0xc0, 0 },
		{ __LINE__, ALLOW, 0, 301, 0xc0, -VPMU_E2BIG },
		{ __LINE__, ALLOW, MASKED, UINT32_MAX, 0xc0, -VPMU_E2BIG },
		/* an entry that cannot match is no error, unless entries are masked */
		{ __LINE__, ALLOW, 0, 1, ~0ull, 0 },
		{ __LINE__, ALLOW, MASKED, 1, ~0ull, -VPMU_EINVAL },
		{ __LINE__, ALLOW, MASKED, 1, 0xff80000f0000ffffull, 0 },
		{ __LINE__, ALLOW, MASKED, 1, BIT(16), -VPMU_EINVAL },
		{ __LINE__, ALLOW, MASKED, 1, BIT(31), -VPMU_EINVAL },
		{ __LINE__, ALLOW, MASKED, 1, BIT(36), -VPMU_EINVAL },
		{ __LINE__, ALLOW, MASKED, 1, BIT(54), -VPMU_EINVAL },
		{ __LINE__, DENY, MASKED, 300, BIT(22), -VPMU_EINVAL },
	};
	struct vpmu_filter f;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(row); i++) {
		events[0] = row[i].first;
		f = filter(row[i].action, row[i].flags, row[i].n, events);
		if (vpmu_filter_check(&f) != row[i].ret)
			fail_msg("line %d: %d", row[i].line, vpmu_filter_check(&f));
	}
	events[0] = 0;
	events[299] = BIT(40);
	f = filter(ALLOW, MASKED, 300, events);
	assert_int_equal(vpmu_filter_check(&f), -VPMU_EINVAL);
	f = filter(ALLOW, 0, 1, NULL);
	assert_int_equal(vpmu_filter_check(&f), -VPMU_EINVAL);
	f = filter(ALLOW, 0, 0, NULL);
	assert_int_equal(vpmu_filter_check(&f), 0);
	f.size--;
	assert_int_equal(vpmu_filter_check(&f), -VPMU_EINVAL);
	assert_int_equal(VPMU_FILTER_ENTRY(0x1c0, 0xf1, 0x2a, 7), ENTRY(0x1c0, 0xf1, 0x2a, 1));
	assert_int_equal(VPMU_FILTER_ENTRY(0xc4, 0, 0xff, 0), ENTRY(0xc4, 0, 0xff, 0));
}

/* Each row under both actions: listed under allow is not under deny. */
static void test_events(void **state)
{
	static const struct {
		int line;
		uint32_t flags;
		uint64_t event;
		uint64_t entry[3];
		bool listed;
	} row[] = {
		/* not masked: select and unit mask are the same */
		{ __LINE__, 0, 0x00c4, { 0x00c4 }, true },
		{ __LINE__, 0, 0x01c4, { 0x00c4 }, false },
		{ __LINE__, 0, 0x00c4, { 0x01c4 }, false },
		{ __LINE__, 0, 0x00c4, { 0x01c4, 0x02c4, 0x00c4 }, true },
		{ __LINE__, 0, 0x00c5, { 0x00c4 }, false },
		/* other bits of the guest's selector do not matter */
		{ __LINE__, 0, 0xffff00c4, { 0x00c4 }, true },
		{ __LINE__, 0, 0xfff0000000000000ull | 0x00c4, { 0x00c4 }, true },
		/* other bits of an entry do: it matches nothing */
		{ __LINE__, 0, 0x00c4, { 0x4000c4 }, false },
		{ __LINE__, 0, 0x4000c4, { 0x4000c4 }, false },
		{ __LINE__, 0, 0x00c4, { 0xff000000000000c4ull }, false },
		/* AMD's select has twelve bits */
		{ __LINE__, 0, 0x1000000c4ull, { 0xc4 }, false },
		{ __LINE__, 0, 0x1000000c4ull, { 0x1000000c4ull }, true },
		/* masked: unit mask & mask is match */
		{ __LINE__, MASKED, 0x20c4, { ENTRY(0xc4, 0xff, 0x20, 0) }, true },
		{ __LINE__, MASKED, 0x21c4, { ENTRY(0xc4, 0xff, 0x20, 0) }, false },
		{ __LINE__, MASKED, 0x21c4, { ENTRY(0xc4, 0xfe, 0x20, 0) }, true },
		{ __LINE__, MASKED, 0x21c4, { ENTRY(0xc4, 0x00, 0x00, 0) }, true },
		{ __LINE__, MASKED, 0x21c5, { ENTRY(0xc4, 0x00, 0x00, 0) }, false },
		{ __LINE__, MASKED, 0x21c4, { ENTRY(0x1c4, 0x00, 0x00, 0) }, false },
		{ __LINE__, MASKED, 0x1000021c4ull, { ENTRY(0x1c4, 0, 0, 0) }, true },
		/* a match outside of the mask never is */
		{ __LINE__, MASKED, 0x21c4, { ENTRY(0xc4, 0x01, 0x21, 0) }, false },
		/* without a mask of its own an entry is select and no match */
		{ __LINE__, MASKED, 0x00c4, { 0x00c4 }, true },
		{ __LINE__, MASKED, 0x03c4, { 0x00c4 }, true },
		{ __LINE__, MASKED, 0x03c4, { 0x03c4 }, false },
		/* an exclusion goes before any inclusion, wherever it stands */
		{ __LINE__, MASKED, 0x40c4, { ENTRY(0xc4, 0, 0, 0), ENTRY(0xc4, 0xff, 0x40, 1) },
		  false },
		{ __LINE__, MASKED, 0x40c4, { ENTRY(0xc4, 0xff, 0x40, 1), ENTRY(0xc4, 0, 0, 0),
		  ENTRY(0xc4, 0xff, 0x40, 0) }, false },
		{ __LINE__, MASKED, 0x41c4, { ENTRY(0xc4, 0, 0, 0), ENTRY(0xc4, 0xff, 0x40, 1) },
		  true },
		{ __LINE__, MASKED, 0x40c4, { ENTRY(0xc4, 0, 0, 0), ENTRY(0xc5, 0xff, 0x40, 1) },
		  true },
		/* exclusions alone include nothing */
		{ __LINE__, MASKED, 0x41c4, { ENTRY(0xc4, 0xff, 0x40, 1) }, false },
	};
	unsigned int i, action;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(row); i++)
		for (action = 0; action < 2; action++) {
			struct vpmu_filter f = filter(action, row[i].flags, 0, row[i].entry);

			while (f.n_events < 3 && row[i].entry[f.n_events])
				f.n_events++;
			f.fixed_bitmap = i & 1 ? ~0u : 0; /* without meaning here */
			assert_int_equal(vpmu_filter_check(&f), 0);
			if (vpmu_filter_allows(&f, row[i].event, -1) !=
			    (row[i].listed == (action == ALLOW)))
				fail_msg("line %d, action %u", row[i].line, action);
		}
	assert_true(vpmu_filter_allows(NULL, 0xc4, -1));
	assert_true(vpmu_filter_allows(NULL, 0, 2));
}

/* Fixed counters go by the bitmap alone, whatever events are listed. */
static void test_fixed(void **state)
{
	static const uint64_t events[] = { 0x00c0, 0x003c, 0x0300 };
	unsigned int action, flags, i;

	(void)state;
	for (action = 0; action < 2; action++)
		for (flags = 0; flags < 2; flags++)
			for (i = 0; i < 32; i++) {
				struct vpmu_filter f = filter(action, flags, 3, events);

				assert_int_equal(vpmu_filter_allows(&f, 0xc0, i), action == DENY);
				f.fixed_bitmap = 1u << i;
				assert_int_equal(vpmu_filter_allows(&f, 0x55, i), action == ALLOW);
				f.fixed_bitmap = ~f.fixed_bitmap;
				assert_int_equal(vpmu_filter_allows(&f, 0xc0, i), action == DENY);
			}
}

/* In a PMU -------------------------------------------------------------------- */

static void expect_loss(struct fake *f, unsigned int pmc, unsigned int reason,
			uint32_t generation)
{
	struct vpmu_pmc_info info;

	assert_true(vpmu_arch_pmc_info(f->v, pmc, &info));
	assert_int_equal(info.loss, reason);
	assert_int_equal(info.generation, generation);
}

/* Denied at once, and allowed again at once; parked events too. */
static void test_at_run_time(void **state)
{
	static const uint64_t branches[] = { 0x00c4 };
	struct vpmu_filter deny = filter(DENY, 0, 1, branches);
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);
	struct vpmu_uncounted told;

	(void)state;
	deny.fixed_bitmap = 1;
	fake_wr(f, GLOBAL, 0x1000000ff);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	fake_wr(f, EVTSEL + 1, BRANCHES | EN_ALL);
	fake_wr(f, EVTSEL + 2, BRANCHES | EN_ALL);
	fake_wr(f, EVTSEL + 2, BRANCHES);
	fake_wr(f, EVTSEL + 3, LLC_MISS | EN_ALL);
	fake_wr(f, FIXED_CTRL, 0x3);
	fake_tick(f, VPMU_BANK_USER, 10);
	assert_int_equal(fake_events(f), 4);

	assert_int_equal(vpmu_arch_filter(f->v, &deny), 0);
	assert_int_equal(f->batch, 0);
	assert_int_equal(fake_events(f), 1);
	fake_tick(f, VPMU_BANK_USER, 5);
	assert_int_equal(fake_rd(f, PMC), 15);
	assert_int_equal(fake_rd(f, PMC + 1), 10);
	assert_int_equal(fake_rd(f, FIXED), 10);
	expect_loss(f, 0, VPMU_LOSS_NONE, 0);
	expect_loss(f, 1, VPMU_LOSS_FILTERED, 1);
	expect_loss(f, 2, VPMU_LOSS_NONE, 0);
	expect_loss(f, 3, VPMU_LOSS_NOT_COUNTED, 1);
	expect_loss(f, 8, VPMU_LOSS_FILTERED, 1);

	/* a filter that fails leaves it in force; so do gates, values and retries */
	deny.size--;
	assert_int_equal(vpmu_arch_filter(f->v, &deny), -VPMU_EINVAL);
	deny.size++;
	fake_wr(f, PMC + 1, 7);
	fake_wr(f, GLOBAL, 0);
	fake_wr(f, GLOBAL, 0x1000000ff);
	fake_wr(f, EVTSEL + 1, BRANCHES | EN_ALL | INT);
	fake_wr(f, EVTSEL + 2, BRANCHES | EN_ALL);
	fake_tick(f, VPMU_BANK_USER, 5);
	assert_int_equal(fake_rd(f, PMC + 1), 7);
	assert_int_equal(fake_events(f), 1);
	expect_loss(f, 2, VPMU_LOSS_FILTERED, 1);

	/*
	 * no denied event was reported as uncounted, nor is an uncounted one reported
	 * twice
	 */
	assert_true(vpmu_arch_uncounted(f->v, 0, &told));
	assert_int_equal(told.select, LLC_MISS);
	assert_int_equal(told.times, 1);
	assert_false(vpmu_arch_uncounted(f->v, 1, &told));

	assert_int_equal(vpmu_arch_filter(f->v, NULL), 0);
	assert_int_equal(fake_events(f), 4);
	expect_loss(f, 1, VPMU_LOSS_NONE, 4);
	expect_loss(f, 8, VPMU_LOSS_NONE, 4);
	fake_tick(f, VPMU_BANK_USER, 5);
	assert_int_equal(fake_rd(f, PMC), 25);
	assert_int_equal(fake_rd(f, PMC + 1), 12);
	assert_int_equal(fake_rd(f, FIXED), 15);
	vpmu_arch_uncounted(f->v, 0, &told);
	assert_int_equal(told.times, 1);
	fake_free(f);
}

/* From one selector to another: to a denied one, to an uncounted one. */
static void test_selectors(void **state)
{
	static const uint64_t only[] = { ENTRY(0xc0, 0xff, 0, 0), ENTRY(0x2e, 0, 0, 0) };
	struct vpmu_filter allow = filter(ALLOW, MASKED, 2, only);
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);
	struct vpmu_uncounted told;

	(void)state;
	assert_int_equal(vpmu_arch_filter(f->v, &allow), 0);
	fake_wr(f, EVTSEL, LLC_MISS | EN_ALL);
	expect_loss(f, 0, VPMU_LOSS_NOT_COUNTED, 1);
	fake_wr(f, EVTSEL, 0x11c5 | EN_ALL); /* denied, and not looked for */
	expect_loss(f, 0, VPMU_LOSS_FILTERED, 2);
	assert_false(vpmu_arch_uncounted(f->v, 1, &told));
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	expect_loss(f, 0, VPMU_LOSS_NONE, 3);
	fake_tick(f, VPMU_BANK_USER, 3);
	fake_wr(f, EVTSEL, BRANCHES | EN_ALL);
	expect_loss(f, 0, VPMU_LOSS_FILTERED, 4);
	fake_tick(f, VPMU_BANK_USER, 3);
	assert_int_equal(fake_rd(f, PMC), 3);
	assert_int_equal(fake_events(f), 0);
	fake_free(f);
}

/* The destination's filter is asked before a parked event is made again. */
static void test_load(void **state)
{
	static const uint64_t branches[] = { 0x00c4 };
	struct vpmu_filter deny = filter(DENY, 0, 1, branches);
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS), *g = fake_new(5, 8, 3, FAKE_CAPS);
	uint8_t buf[2048];
	size_t used;

	(void)state;
	fake_wr(f, EVTSEL, BRANCHES | EN_ALL);
	fake_tick(f, VPMU_BANK_USER, 10);
	fake_wr(f, EVTSEL, BRANCHES);
	fake_wr(f, EVTSEL + 1, BRANCHES | EN_ALL);
	assert_int_equal(vpmu_arch_save(f->v, buf, sizeof(buf), &used), 0);
	assert_int_equal(vpmu_arch_filter(g->v, &deny), 0);
	assert_int_equal(vpmu_arch_load(g->v, buf, used), 0);
	assert_int_equal(g->n_create, 0);
	assert_int_equal(fake_rd(g, PMC), 10);
	expect_loss(g, 1, VPMU_LOSS_FILTERED, 1);
	fake_free(f);
	fake_free(g);
}

/* At init, and Intel's event select of eight bits. */
static void test_config(void **state)
{
	static const uint64_t amd[] = { ENTRY(0xc0, 0, 0, 0), ENTRY(0x1c0, 0, 0, 0) };
	struct vpmu_filter f = filter(ALLOW, MASKED, 1, amd);
	struct fake *fake = fake_new(5, 8, 3, FAKE_CAPS);
	struct vpmu_arch_config cfg;
	struct vpmu_error err = { 0 };
	size_t size;

	(void)state;
	fake_config(fake, &cfg);
	cfg.capabilities = FAKE_CAPS;
	cfg.filter = &f;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), 0);
	assert_int_equal(vpmu_arch_init(fake->v, &cfg, &err), 0);
	fake_wr(fake, EVTSEL, BRANCHES | EN_ALL);
	fake_wr(fake, EVTSEL + 1, INSTRUCTIONS | EN_ALL);
	assert_int_equal(fake_events(fake), 1);
	vpmu_arch_reset(fake->v, false); /* it is the VM's, not the guest's */
	fake_wr(fake, EVTSEL, BRANCHES | EN_ALL);
	assert_int_equal(fake_events(fake), 0);

	f.n_events = 301;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), -VPMU_E2BIG);
	assert_non_null(err.what);
	assert_int_equal(err.asked, 301);
	assert_int_equal(err.available, 300);
	f.n_events = 2;
	assert_int_equal(vpmu_filter_check(&f), 0);
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), -VPMU_EINVAL);
	assert_int_equal(vpmu_arch_filter(fake->v, &f), -VPMU_EINVAL);
	f.flags = 0; /* it only cannot match */
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), 0);
	fake_free(fake);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_at_run_time),
		cmocka_unit_test(test_selectors),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_config),
	};

	return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
