// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The architectural PMU over a provider under the test's control: what counts
 * when, overflow, freezing, reset, SMM, what cannot be counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "fake.h"

/* Counting ------------------------------------------------------------------ */

static void test_gates(void **state)
{
	/* count of each counter after 10 kernel and 1 user occurrences */
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

	/*
	 * another selector, another ring: the event is created again, the value continues
	 */
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
	/* the last own enable goes: nothing is left after two slices */
	fake_wr(f, EVTSEL, BRANCHES | BIT(17));
	assert_int_equal(fake_events(f), 2);
	fake_wr(f, EVTSEL + 1, BRANCHES | BIT(16));
	assert_int_equal(fake_events(f), 2);
	assert_true(vpmu_arch_slice(f->v));
	assert_int_equal(fake_events(f), 2);
	assert_false(vpmu_arch_slice(f->v));
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

/*
 * A parked event goes after a whole slice in which neither its counter nor its selector
 * was written; reads do not keep it, gates do not matter.
 */
static void test_slice(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);
	uint64_t value;

	(void)state;
	assert_false(vpmu_arch_slice(f->v));
	fake_wr(f, GLOBAL, 0);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR);
	fake_wr(f, FIXED_CTRL, 0x333);
	assert_false(vpmu_arch_slice(f->v)); /* enabled: gates do not matter */
	assert_false(vpmu_arch_slice(f->v));
	assert_int_equal(fake_events(f), 4);

	fake_wr(f, EVTSEL, INSTRUCTIONS);
	fake_wr(f, FIXED_CTRL, 0x003);
	assert_true(vpmu_arch_slice(f->v));
	assert_int_equal(fake_events(f), 4);
	fake_wr(f, PMC, 5);               /* the counter */
	fake_wr(f, FIXED + 1, 6);
	fake_rd(f, FIXED + 2);
	vpmu_arch_rdpmc(f->v, 0x40000002, false, &value);
	fake_wr(f, FIXED_CTRL, 0x001);    /* fixed counter 0's own */
	assert_true(vpmu_arch_slice(f->v));
	assert_int_equal(fake_events(f), 3);
	fake_wr(f, EVTSEL, INSTRUCTIONS); /* the selector, changed or not */
	fake_rd(f, FIXED + 1);
	assert_true(vpmu_arch_slice(f->v));
	assert_int_equal(fake_events(f), 2);
	fake_rd(f, EVTSEL);
	f->n_begin = 0;
	assert_false(vpmu_arch_slice(f->v));
	assert_int_equal(fake_events(f), 1);
	assert_int_equal(f->n_begin, 1);
	assert_false(vpmu_arch_slice(f->v));
	assert_int_equal(f->n_begin, 1);
	assert_int_equal(fake_rd(f, PMC), 5);
	assert_int_equal(fake_rd(f, FIXED + 1), 6);

	/* used again in time, it stays; too late, it is created again and continues */
	fake_wr(f, FIXED_CTRL, 0x000);
	assert_true(vpmu_arch_slice(f->v));
	fake_wr(f, GLOBAL, BIT(32) | 1);
	f->n_create = 0;
	fake_wr(f, FIXED_CTRL, 0x001);
	assert_int_equal(f->n_create, 0);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR);
	assert_int_equal(f->n_create, 1);
	fake_tick(f, VPMU_BANK_USER, 3);
	assert_int_equal(fake_rd(f, PMC), 8);
	assert_false(vpmu_arch_slice(f->v));
	fake_free(f);
}

/* A value is written without a new event. */
static void test_value_only(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);
	int i;

	(void)state;
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	f->n_create = f->n_release = f->n_enable = f->n_disable = f->n_arm = 0;
	for (i = 1; i <= 5; i++) {
		fake_wr(f, A_PMC, MASK48 - 10 * i);
		assert_int_equal(f->event[0]->left, 10 * i + 1);
	}
	assert_int_equal(f->n_arm, 5);
	assert_int_equal(f->n_create + f->n_release + f->n_enable + f->n_disable, 0);
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
	fake_each_config(overflow_one);
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
	fake_wr(f, STATUS_SET, BIT(63) | 1); /* KVM restores it so */
	assert_int_equal(fake_rd(f, STATUS), BIT(63) | 0xd);
	fake_wr(f, OVF_CTRL, BIT(63) | 0xc);
	assert_int_equal(fake_rd(f, STATUS), 1);
	assert_int_equal(vpmu_arch_restore_status(f->v, BIT(63) | 2), VPMU_HANDLED);
	assert_int_equal(fake_rd(f, STATUS), BIT(63) | 2);
	assert_int_equal(vpmu_arch_restore_status(f->v, BIT(20)), VPMU_FAULT);
	assert_int_equal(fake_rd(f, STATUS), BIT(63) | 2);
	assert_int_equal(vpmu_arch_restore_status(f->v, 1), VPMU_HANDLED);
	assert_int_equal(f->n_pmi, 0);

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
	fake_each_config(reset_one);
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

	/* counters that the handler enables count until RSM */
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

/* Uncounted events ----------------------------------------------------------- */

static void test_uncounted(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);
	struct vpmu_uncounted uncounted;
	int i;

	(void)state;
	assert_false(vpmu_arch_uncounted(f->v, 0, &uncounted));
	fake_wr(f, EVTSEL, LLC_MISS | EN_ALL);
	fake_wr(f, EVTSEL, LLC_MISS | EN_ALL | INT); /* unchanged: not reported again */
	fake_wr(f, GLOBAL, 0);
	fake_wr(f, GLOBAL, 1);
	assert_int_equal(f->n_create, 1);
	fake_wr(f, EVTSEL, LLC_MISS);
	fake_wr(f, EVTSEL, LLC_MISS | EN_USR);
	fake_wr(f, EVTSEL + 1, 0x0103ff | BIT(18) | BIT(23) | 5u << 24 | EN_ALL);
	assert_true(vpmu_arch_uncounted(f->v, 0, &uncounted));
	assert_int_equal(uncounted.select, LLC_MISS);
	assert_int_equal(uncounted.times, 2);
	assert_string_equal(uncounted.name, "LLC_MISS");
	assert_string_equal(uncounted.needs, "--uarch on");
	assert_true(vpmu_arch_uncounted(f->v, 1, &uncounted));
	assert_int_equal(uncounted.select, 0x03ff | BIT(18) | BIT(23) | 5u << 24);
	assert_int_equal(uncounted.times, 1);
	assert_null(uncounted.name);
	assert_null(uncounted.needs);
	assert_false(vpmu_arch_uncounted(f->v, 2, &uncounted));

	/* a fixed counter goes by its event's encoding */
	f->no_fixed = true;
	fake_wr(f, FIXED_CTRL, 0x020);
	assert_true(vpmu_arch_uncounted(f->v, 2, &uncounted));
	assert_int_equal(uncounted.select, 0x3c);
	assert_string_equal(uncounted.name, "CYCLES");

	/* at most sixteen; those that are known go on being counted; reset keeps them */
	for (i = 0; i < 40; i++)
		fake_wr(f, EVTSEL + 2, 0x1000 + ((uint64_t)i << 8) + 0x11 + EN_ALL);
	fake_wr(f, EVTSEL, 0);
	fake_wr(f, EVTSEL, LLC_MISS | EN_ALL);
	vpmu_arch_reset(f->v, false);
	assert_true(vpmu_arch_uncounted(f->v, 15, &uncounted));
	assert_int_equal(uncounted.select, 0x1000 + (12 << 8) + 0x11);
	assert_false(vpmu_arch_uncounted(f->v, 16, &uncounted));
	assert_true(vpmu_arch_uncounted(f->v, 0, &uncounted));
	assert_int_equal(uncounted.times, 3);
	fake_free(f);
}

/* From an uncounted selector straight to a counted one. */
static void test_uncounted_then_counted(void **state)
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
			struct vpmu_uncounted uncounted;

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
			assert_false(vpmu_arch_uncounted(f->v, 0, &uncounted));

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

/* An event that cannot be enabled is tried again when its gate opens again. */
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
		cmocka_unit_test(test_gates),
		cmocka_unit_test(test_event_life),
		cmocka_unit_test(test_slice),
		cmocka_unit_test(test_value_only),
		cmocka_unit_test(test_fixed_parked),
		cmocka_unit_test(test_running_write),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_one_pmi),
		cmocka_unit_test(test_freeze),
		cmocka_unit_test(test_status_set_and_inuse),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_smm),
		cmocka_unit_test(test_smm_freeze),
		cmocka_unit_test(test_uncounted),
		cmocka_unit_test(test_uncounted_then_counted),
		cmocka_unit_test(test_nth_create_fails),
		cmocka_unit_test(test_enable_fails),
	};

	return cmocka_run_group_tests_name("arch-count", tests, NULL, NULL);
}
