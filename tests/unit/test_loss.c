// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The report of its losses to a guest: the block's leaves and registers, times to the
 * tick, reasons, generations, the PMI, retries, saving and loading.
 *
 * The fake's clock is arbitrary while it is not held, so that a time that is taken
 * without holding it shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <vpmu/direct.h>

#include "fake.h"
#include "script.h"
#include "unit.h"

/* Numbers as docs/GUEST-LOSS.md prints them. */
#define GENERATION	0x56504d00u
#define LOST		0x56504d01u
#define CTRL		0x56504d02u
#define ENABLED(pmc)	(0x56504d10u + 4 * (pmc))
#define RUNNING(pmc)	(0x56504d11u + 4 * (pmc))
#define REASON(pmc)	(0x56504d12u + 4 * (pmc))
#define END		0x56504e00u

#define SAVED_MAX	4096

/* The block ----------------------------------------------------------------------- */

static void test_cpuid(void **state)
{
	struct fake *f = fake_new_loss(5, 6, 2, true);
	struct fake *plain = fake_new(5, 6, 2, FAKE_CAPS);
	struct vpmu_cpuid r = { 1, 2, 3, 4 };
	uint32_t leaf;

	(void)state;
	f->provider.time_hz = 0x123456789aull; /* the embedder's, after init */
	assert_true(vpmu_arch_cpuid(f->v, FAKE_BASE, 0, &r));
	assert_int_equal(r.eax, FAKE_BASE + 2);
	assert_memory_equal(&r.ebx, "VPMUforGuest", 12);
	assert_true(vpmu_arch_cpuid(f->v, FAKE_BASE + 1, 0, &r));
	assert_int_equal(r.eax, 1);
	assert_int_equal(r.ebx | r.ecx | r.edx, 0);
	assert_true(vpmu_arch_cpuid(f->v, FAKE_BASE + 2, 9, &r));
	assert_int_equal(r.eax, 0x020601);
	assert_int_equal(r.ebx, GENERATION);
	assert_int_equal(r.ecx, 0x3456789a);
	assert_int_equal(r.edx, 0x12);
	assert_false(vpmu_arch_cpuid(f->v, FAKE_BASE + 3, 0, &r));
	assert_false(vpmu_arch_cpuid(f->v, FAKE_BASE - 1, 0, &r));
	assert_false(vpmu_arch_cpuid(f->v, 0x40000000, 0, &r));
	for (leaf = 0; leaf < 4; leaf++)
		assert_false(vpmu_arch_cpuid(plain->v, FAKE_BASE + leaf, 0, &r));
	assert_false(vpmu_arch_cpuid(plain->v, 0, 0, &r));
	fake_free(f);
	fake_free(plain);
}

static void test_config(void **state)
{
	static const struct {
		int line;
		uint32_t base;
		int ret;
	} row[] = {
		{ __LINE__, 0, 0 },
		{ __LINE__, 0x40000100, 0 },
		{ __LINE__, 0x4000ff00, 0 },
		{ __LINE__, 0x40000000, -VPMU_EINVAL }, /* the hypervisor's own */
		{ __LINE__, 0x40000110, -VPMU_EINVAL },
		{ __LINE__, 0x40010000, -VPMU_EINVAL },
		{ __LINE__, 0x3fffff00, -VPMU_EINVAL },
		{ __LINE__, 1, -VPMU_EINVAL },
	};
	struct fake *f = fake_new_loss(5, 8, 3, true);
	struct vpmu_arch_config cfg;
	struct vpmu_error err = { 0 };
	unsigned int i;
	size_t size;

	(void)state;
	fake_config(f, &cfg);
	for (i = 0; i < ARRAY_SIZE(row); i++) {
		cfg.cpuid_base = row[i].base;
		if (vpmu_arch_size(&cfg, &size, &err) != row[i].ret)
			fail_msg("line %d", row[i].line);
		assert_int_equal(!row[i].ret, !err.what);
	}
	cfg.cpuid_base = FAKE_BASE;
	f->provider_ops.clock = NULL;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), -VPMU_EOPNOTSUPP);
	assert_non_null(strstr(err.what, "clock"));
	assert_int_equal(err.asked, FAKE_BASE);
	cfg.cpuid_base = 0;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), 0);
	/* a provider of before there was a clock */
	cfg.cpuid_base = FAKE_BASE;
	f->provider_ops.clock = (uint64_t (*)(struct vpmu_provider *, bool))1;
	f->provider_ops.size = offsetof(struct vpmu_provider_ops, clock);
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), -VPMU_EOPNOTSUPP);
	fake_free(f);
}

/* Every register that there is, and a fault at each that there is not. */
static void test_registers(void **state)
{
	static const struct { int n_gp, n_fixed; } shape[] = { { 1, 0 }, { 4, 3 }, { 8, 3 } };
	struct fake *plain = fake_new(5, 8, 3, FAKE_CAPS);
	uint64_t value;
	unsigned int i;
	uint32_t msr;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(shape); i++) {
		struct fake *f = fake_new_loss(5, shape[i].n_gp, shape[i].n_fixed, i & 1);
		uint32_t end = ENABLED(shape[i].n_gp + shape[i].n_fixed);

		for (msr = GENERATION - 16; msr < END + 16; msr++) {
			bool in = msr >= GENERATION && msr < END;
			bool counter = msr >= ENABLED(0) && msr < end && (msr & 3) != 3;
			int rd = !in ? VPMU_NOT_MINE :
				 msr <= CTRL || counter ? VPMU_HANDLED : VPMU_FAULT;
			int wr = !in ? VPMU_NOT_MINE : msr == CTRL ? VPMU_HANDLED : VPMU_FAULT;

			value = 0xdead;
			if ((int)vpmu_arch_rdmsr(f->v, msr, &value) != rd ||
			    (int)vpmu_arch_wrmsr(f->v, msr, 0) != wr)
				fail_msg("MSR %x", msr);
			assert_int_equal(value, rd == VPMU_HANDLED ? 0 : 0xdead);
			assert_int_equal(vpmu_arch_rdmsr(plain->v, msr, &value), VPMU_NOT_MINE);
			assert_int_equal(vpmu_arch_wrmsr(plain->v, msr, 1), VPMU_NOT_MINE);
		}
		for (msr = 1; msr < 64; msr++)
			assert_int_equal(vpmu_arch_wrmsr(f->v, CTRL, BIT(msr) | 1), VPMU_FAULT);
		assert_int_equal(fake_rd(f, CTRL), 0);
		fake_wr(f, CTRL, 1);
		assert_int_equal(fake_rd(f, CTRL), 1);
		vpmu_arch_reset(f->v, true);
		assert_int_equal(fake_rd(f, CTRL), 1);
		vpmu_arch_reset(f->v, false);
		assert_int_equal(fake_rd(f, CTRL), 0);
		fake_free(f);
	}
	fake_free(plain);
}

/* Times -------------------------------------------------------------------------------- */

static void expect_times(int line, struct fake *f, unsigned int pmc, uint64_t enabled,
			 uint64_t running)
{
	uint64_t e = fake_rd(f, ENABLED(pmc)), r = fake_rd(f, RUNNING(pmc));
	struct vpmu_pmc_info info;

	if (e != enabled || r != running)
		fail_msg("line %d: enabled %llu, running %llu", line, (unsigned long long)e,
			 (unsigned long long)r);
	assert_true(vpmu_arch_pmc_info(f->v, pmc, &info));
	assert_int_equal(info.time_enabled, e);
	assert_int_equal(info.time_running, r);
}
#define TIMES(pmc, enabled, running) expect_times(__LINE__, f, pmc, enabled, running)

static void expect_loss(int line, struct fake *f, unsigned int pmc, unsigned int now,
			unsigned int last, uint32_t generation)
{
	uint64_t value = fake_rd(f, REASON(pmc));
	struct vpmu_pmc_info info;

	if (value != (now | last << 8 | (uint64_t)generation << 32))
		fail_msg("line %d: %llx", line, (unsigned long long)value);
	assert_true(vpmu_arch_pmc_info(f->v, pmc, &info));
	assert_int_equal(info.loss, now);
	assert_int_equal(info.generation, generation);
}
#define LOSS(pmc, now, last, generation) expect_loss(__LINE__, f, pmc, now, last, generation)

/* The test of each kind of provider: one that knows how long, one that does not. */
static void both(void (*test)(struct fake *f))
{
	int running;

	for (running = 0; running < 2; running++) {
		struct fake *f = fake_new_loss(5, 8, 3, running);

		test(f);
		fake_free(f);
	}
}

static void tick(struct fake *f, uint64_t n)
{
	fake_tick(f, VPMU_BANK_USER, n);
}

static void lose(struct fake *f, unsigned int pmc, enum vpmu_event_state s)
{
	fake_lose(f, pmc, s);
	fake_service(f);
}

/* The provider sees nothing of a guest's switch of tasks but the gate. */
static void switches(struct fake *f)
{
	uint32_t batches, clocks;

	fake_wr(f, GLOBAL, 0);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR);
	fake_wr(f, GLOBAL, 1);
	tick(f, 7);
	fake_wr(f, GLOBAL, 0);
	batches = f->n_begin;
	clocks = f->n_clock;
	fake_wr(f, EVTSEL, (INSTRUCTIONS | EN_USR) & ~BIT(22));
	tick(f, 1000);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR);
	assert_int_equal(f->n_begin, batches);
	assert_int_equal(f->n_clock, clocks);
	fake_wr(f, GLOBAL, 1);
	tick(f, 3);
	TIMES(0, 10, 10);
	assert_int_equal(fake_rd(f, PMC), 10);
	fake_wr(f, GLOBAL, 0);
	fake_wr(f, EVTSEL, (INSTRUCTIONS | EN_USR) & ~BIT(22));
	fake_wr(f, GLOBAL, 1);
	tick(f, 5);
	TIMES(0, 10, 10);
	assert_int_equal(fake_rd(f, PMC), 10);
}

/* Enabled is what the guest's enable bits say. */
static void gates(struct fake *f)
{
	fake_wr(f, GLOBAL, 0);
	tick(f, 1000);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR);
	tick(f, 10);
	TIMES(0, 0, 0);
	fake_wr(f, GLOBAL, 3);
	TIMES(0, 0, 0);
	tick(f, 7);
	TIMES(0, 7, 7);
	TIMES(1, 0, 0);
	fake_tick(f, VPMU_BANK_KERNEL, 5); /* time passes where nothing is counted */
	TIMES(0, 12, 12);
	assert_int_equal(fake_rd(f, PMC), 7);
	fake_wr(f, EVTSEL + 1, INSTRUCTIONS | EN_ALL);
	tick(f, 1);
	fake_wr(f, GLOBAL, 2);
	tick(f, 1);
	fake_wr(f, GLOBAL, 0);
	assert_true(f->held); /* a context switch */
	tick(f, 1000);
	TIMES(0, 13, 13);
	TIMES(1, 2, 2);
	fake_wr(f, EVTSEL + 1, 0);
	fake_wr(f, EVTSEL, INSTRUCTIONS);
	assert_true(f->held); /* it clears these as well */
	tick(f, 1000);
	TIMES(0, 13, 13);
	assert_true(vpmu_arch_slice(f->v));
	assert_true(f->held);
	assert_false(vpmu_arch_slice(f->v));
	assert_false(f->held); /* no event is left */
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_USR);
	tick(f, 1000);
	fake_wr(f, GLOBAL, 1);
	assert_true(f->held);
	tick(f, 1);
	TIMES(0, 14, 14);
	fake_wr(f, STATUS_SET, BIT(59)); /* frozen */
	tick(f, 100);
	TIMES(0, 14, 14);
	fake_wr(f, OVF_CTRL, BIT(59));
	tick(f, 1);
	fake_wr(f, DEBUGCTL, BIT(14));
	vpmu_arch_smm(f->v, true);
	tick(f, 100);
	TIMES(0, 15, 15);
	vpmu_arch_smm(f->v, false);
	tick(f, 1);
	TIMES(0, 16, 16);
	fake_wr(f, EVTSEL, INSTRUCTIONS | BIT(22)); /* no ring */
	tick(f, 100);
	TIMES(0, 16, 16);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_OS);
	tick(f, 1);
	TIMES(0, 17, 17);
	fake_wr(f, EVTSEL, INSTRUCTIONS);
	assert_true(vpmu_arch_slice(f->v));
	assert_false(vpmu_arch_slice(f->v));
	assert_false(f->held);
	tick(f, 100);
	TIMES(0, 17, 17);
	fake_wr(f, GLOBAL, BIT(34));
	fake_wr(f, FIXED_CTRL, 0x200);
	tick(f, 4);
	TIMES(10, 4, 4);
	vpmu_arch_reset(f->v, true); /* INIT: the counters go on, so does time */
	tick(f, 4);
	TIMES(10, 8, 8);
	vpmu_arch_reset(f->v, false);
	tick(f, 4);
	TIMES(10, 0, 0);
	TIMES(0, 0, 0);
	assert_false(f->held);
}

static void test_switches(void **state)
{
	(void)state;
	both(switches);
}

static void test_gates(void **state)
{
	(void)state;
	both(gates);
}

/* A freezing PMI stops time with the counters. */
static void freeze(struct fake *f)
{
	fake_wr(f, DEBUGCTL, BIT(12));
	fake_wr(f, GLOBAL, 3);
	fake_wr(f, PMC, 0xfffffffd);
	fake_wr(f, EVTSEL + 1, LLC_MISS | EN_ALL);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL | INT);
	tick(f, 3);
	assert_int_equal(f->n_pmi, 1);
	tick(f, 50);
	TIMES(0, 3, 3);
	TIMES(1, 3, 0);
	LOSS(1, 0, 3, 2);
	fake_wr(f, OVF_CTRL, BIT(59));
	tick(f, 1);
	TIMES(0, 4, 4);
	TIMES(1, 4, 0);
	LOSS(1, 3, 3, 3);
}

static void test_freeze(void **state)
{
	(void)state;
	both(freeze);
}

/* Totals survive whatever becomes of events, as enabled survives their loss. */
static void events(struct fake *f)
{
	struct vpmu_pmc_info info;

	fake_wr(f, GLOBAL, 1);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	tick(f, 7);
	lose(f, 0, VPMU_EVENT_INACTIVE);
	tick(f, 5);
	TIMES(0, 12, 7);
	lose(f, 0, VPMU_EVENT_ACTIVE);
	tick(f, 3);
	TIMES(0, 15, 10);
	lose(f, 0, VPMU_EVENT_ERROR);
	tick(f, 2);
	TIMES(0, 17, 10);
	/* created again for another event, which counts */
	fake_wr(f, EVTSEL, BRANCHES | EN_ALL);
	TIMES(0, 17, 10);
	tick(f, 3);
	TIMES(0, 20, 13);
	assert_int_equal(f->n_release, 1);
	/* an uncounted one: enabled all the same */
	fake_wr(f, EVTSEL, LLC_MISS | EN_ALL);
	tick(f, 10);
	TIMES(0, 30, 13);
	/* none can be had */
	f->fail_create = 1;
	f->fail_code = -VPMU_EBUSY;
	fake_wr(f, EVTSEL, BRANCHES | EN_ALL);
	tick(f, 10);
	TIMES(0, 40, 13);
	LOSS(0, 1, 1, 6);
	/* parked, given back, made again */
	fake_wr(f, GLOBAL, 0);
	fake_wr(f, GLOBAL, 1);
	tick(f, 1);
	fake_wr(f, EVTSEL, BRANCHES);
	assert_true(vpmu_arch_slice(f->v));
	TIMES(0, 41, 14);
	assert_false(vpmu_arch_slice(f->v));
	TIMES(0, 41, 14);
	fake_wr(f, EVTSEL, BRANCHES | EN_ALL);
	tick(f, 1);
	TIMES(0, 42, 15);
	/* lost without a word: seen when the guest looks, not the host */
	f->event[0]->lost = VPMU_EVENT_INACTIVE;
	assert_true(vpmu_arch_pmc_info(f->v, 0, &info));
	assert_int_equal(info.loss, VPMU_LOSS_NONE);
	assert_int_equal(info.state, VPMU_EVENT_INACTIVE);
	LOSS(0, 1, 1, 8);
	tick(f, 6);
	TIMES(0, 48, 15);
	/* a provider that stops its clock later than we do */
	f->event[0]->ran += 100;
	TIMES(0, 48, f->provider_ops.running ? 48 : 15);
}

static void test_events(void **state)
{
	(void)state;
	both(events);
}

/* A context switch of six counters asks for the time once, and for no state. */
static void test_cheap(void **state)
{
	struct fake *f = fake_new_loss(5, 8, 3, true);
	int i;

	(void)state;
	fake_wr(f, GLOBAL, 0);
	for (i = 0; i < 6; i++)
		fake_wr(f, EVTSEL + i, INSTRUCTIONS | EN_ALL);
	f->n_clock = f->n_state = f->n_begin = 0;
	for (i = 0; i < 10; i++) {
		fake_wr(f, GLOBAL, 0x3f);
		tick(f, 2);
		fake_rd(f, PMC + 3);
		fake_wr(f, GLOBAL, 0);
		tick(f, 2);
	}
	assert_int_equal(f->n_clock, 20);
	assert_int_equal(f->n_begin, 20);
	assert_int_equal(f->n_state, 0);
	assert_int_equal(f->n_kick, 0);
	TIMES(5, 20, 20);
	/* with nothing on, nothing at all */
	f->n_clock = f->n_state = f->n_begin = 0;
	fake_rd(f, ENABLED(0));
	fake_rd(f, LOST);
	vpmu_arch_service(f->v);
	fake_wr(f, EVTSEL, BRANCHES);
	assert_int_equal(f->n_clock + f->n_state, 0);
	/* nor does an uncounted one hold the clock that was off before */
	fake_wr(f, GLOBAL, BIT(32));
	for (i = 0; i < 6; i++)
		fake_wr(f, EVTSEL + i, 0);
	fake_wr(f, EVTSEL + 1, LLC_MISS | EN_ALL);
	fake_wr(f, GLOBAL, 2);
	fake_wr(f, GLOBAL, 0);
	assert_true(f->held);
	fake_wr(f, EVTSEL + 1, LLC_MISS);
	assert_false(f->held);
	/* without the block no time is ever asked for */
	fake_free(f);
	f = fake_new(5, 8, 3, FAKE_CAPS);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	fake_wr(f, GLOBAL, 0);
	assert_int_equal(f->n_clock + f->n_state, 0);
	fake_free(f);
}

/* Reasons ------------------------------------------------------------------------------ */

/* Each change of a reason is one generation, the counter's and that of all. */
static void reasons(struct fake *f)
{
	static const uint64_t branches[] = { 0xc4 };
	struct vpmu_filter deny = { .size = sizeof(deny), .action = VPMU_FILTER_DENY,
				    .n_events = 1, .events = branches };

	assert_int_equal(vpmu_arch_filter(f->v, &deny), 0);
	fake_wr(f, GLOBAL, BIT(33) | 0xff);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	LOSS(0, 0, 0, 0);
	assert_int_equal(fake_rd(f, GENERATION), 0);
	assert_int_equal(fake_rd(f, LOST), 0);
	fake_wr(f, EVTSEL + 2, LLC_MISS | EN_ALL);
	fake_wr(f, EVTSEL + 7, BRANCHES | EN_ALL);
	fake_wr(f, FIXED_CTRL, 0x33);
	lose(f, 0, VPMU_EVENT_ERROR);
	lose(f, 9, VPMU_EVENT_INACTIVE);
	LOSS(0, 1, 1, 1);
	LOSS(2, 3, 3, 1);
	LOSS(7, 2, 2, 1);
	LOSS(8, 0, 0, 0); /* its gate is closed */
	LOSS(9, 1, 1, 1);
	assert_int_equal(fake_rd(f, GENERATION), 4);
	assert_int_equal(fake_rd(f, LOST), BIT(33) | BIT(7) | BIT(2) | BIT(0));
	/* reported twice it is no change */
	lose(f, 0, VPMU_EVENT_INACTIVE);
	lose(f, 9, VPMU_EVENT_ERROR);
	fake_wr(f, EVTSEL + 2, LLC_MISS | EN_ALL | INT);
	fake_wr(f, EVTSEL + 2, 0x1234 | EN_ALL);
	fake_wr(f, PMC + 7, 1);
	assert_int_equal(fake_rd(f, GENERATION), 4);
	/* from one reason straight to another, and to none */
	fake_wr(f, EVTSEL + 2, BRANCHES | EN_ALL);
	LOSS(2, 2, 2, 2);
	fake_wr(f, EVTSEL + 2, INSTRUCTIONS | EN_ALL);
	LOSS(2, 0, 2, 3);
	lose(f, 0, VPMU_EVENT_ACTIVE);
	LOSS(0, 0, 1, 2);
	assert_int_equal(fake_rd(f, LOST), BIT(33) | BIT(7));
	assert_int_equal(fake_rd(f, GENERATION), 7);
	/* disabled: no reason, but the last one stays */
	fake_wr(f, GLOBAL, 0);
	LOSS(7, 0, 2, 2);
	LOSS(9, 0, 1, 2);
	assert_int_equal(fake_rd(f, LOST), 0);
	assert_int_equal(fake_rd(f, GENERATION), 9);
	assert_int_equal(fake_rd(f, STATUS), 0);
	vpmu_arch_reset(f->v, false);
	LOSS(7, 0, 0, 0);
	assert_int_equal(fake_rd(f, GENERATION), 0);
}

static void test_reasons(void **state)
{
	(void)state;
	both(reasons);
}

/* However a provider says that it has no counter. */
static void test_no_counter(void **state)
{
	unsigned int how;

	(void)state;
	for (how = 0; how < 4; how++) {
		struct fake *f = fake_new_loss(5, 8, 3, true);

		fake_wr(f, GLOBAL, 0xff);
		if (how == 0) {
			f->fail_create = 2;
			f->fail_code = -VPMU_EBUSY;
		} else {
			f->taken = 2; /* enable says so, or another does */
			f->by_commit = how == 2;
			f->by_change = how == 3;
		}
		fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
		fake_trace(f); /* found at once, before anybody asks */
		fake_wr(f, EVTSEL + 1, INSTRUCTIONS | EN_ALL);
		assert_int_equal(f->n_trace, 2);
		assert_int_equal(f->trace[0].type, VPMU_TRACE_LOST);
		assert_int_equal(f->trace[0].pmc, 1);
		f->tracing = false;
		LOSS(1, 1, 1, 1);
		LOSS(0, 0, 0, 0);
		tick(f, 5);
		TIMES(1, 5, 0);
		TIMES(0, 5, 5);
		fake_free(f);
	}
}

/* A lost event comes back by the guest's doing, never of its own accord. */
static void retry(struct fake *f)
{
	uint32_t n, how;

	fake_wr(f, GLOBAL, BIT(32) | 1);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	fake_wr(f, FIXED_CTRL, 0x3);
	for (how = 0; how < 5; how++) {
		unsigned int pmc = how < 3 ? 0 : 8;

		f->taken = 1u << pmc;
		lose(f, pmc, VPMU_EVENT_ERROR);
		f->taken = 0;
		n = f->n_enable;
		tick(f, 10);
		fake_rd(f, LOST);
		fake_rd(f, PMC);
		fake_wr(f, PMC, 5);
		fake_wr(f, GLOBAL, BIT(32) | 1); /* no gate opens */
		fake_wr(f, EVTSEL, fake_rd(f, EVTSEL));
		fake_wr(f, FIXED_CTRL, fake_rd(f, FIXED_CTRL));
		fake_wr(f, EVTSEL + 3, INSTRUCTIONS | EN_ALL);
		fake_wr(f, EVTSEL + 3, INSTRUCTIONS);
		vpmu_arch_slice(f->v);
		vpmu_arch_service(f->v);
		assert_int_equal(f->n_enable, n);
		assert_int_equal(fake_rd(f, LOST), pmc ? BIT(32) : 1);
		switch (how) {
		case 0: /* a gate */
			fake_wr(f, GLOBAL, BIT(32));
			fake_wr(f, GLOBAL, BIT(32) | 1);
			break;
		case 1: /* its own enable */
			fake_wr(f, EVTSEL, INSTRUCTIONS);
			fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
			break;
		case 2: /* anything in its register */
			fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL | INT);
			break;
		case 3:
			fake_wr(f, FIXED_CTRL, 0xb);
			break;
		case 4:
			fake_wr(f, STATUS_SET, BIT(59));
			fake_wr(f, OVF_CTRL, BIT(59));
			break;
		}
		assert_int_equal(fake_rd(f, LOST), 0);
		assert_int_equal(fake_events(f), 3);
	}
	/* an event that could not be created comes back in the same ways */
	f->fail_create = 1;
	f->fail_code = -VPMU_EBUSY;
	fake_wr(f, EVTSEL, BRANCHES | EN_ALL);
	n = f->n_create;
	tick(f, 10);
	fake_rd(f, LOST);
	fake_wr(f, EVTSEL, BRANCHES | EN_ALL);
	fake_wr(f, PMC, 0);
	assert_int_equal(f->n_create, n);
	fake_wr(f, EVTSEL, BRANCHES | EN_ALL | INT);
	assert_int_equal(f->n_create, n + 1);
	assert_int_equal(fake_rd(f, LOST), 0);
	tick(f, 10);
	assert_int_equal(fake_rd(f, PMC), 10);
}

static void test_retry(void **state)
{
	(void)state;
	both(retry);
}

/* The PMI -------------------------------------------------------------------------------- */

static void pmi(struct fake *f)
{
	fake_wr(f, GLOBAL, 7);
	fake_wr(f, DEBUGCTL, BIT(12)); /* freezing is for overflows */
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	fake_wr(f, EVTSEL + 1, INSTRUCTIONS | EN_ALL);
	lose(f, 0, VPMU_EVENT_ERROR);
	assert_int_equal(f->n_pmi, 0); /* not asked for */
	fake_wr(f, CTRL, 1);
	fake_service(f);
	assert_int_equal(f->n_pmi, 0); /* and not for what was before */
	lose(f, 1, VPMU_EVENT_INACTIVE);
	assert_int_equal(f->n_pmi, 1);
	assert_true(f->pmi_mask);
	assert_int_equal(fake_rd(f, STATUS), 0);
	assert_int_equal(fake_rd(f, LOST), 3);
	lose(f, 1, VPMU_EVENT_ACTIVE);
	assert_int_equal(f->n_pmi, 1);
	/* two at once are one */
	lose(f, 0, VPMU_EVENT_ACTIVE);
	fake_lose(f, 0, VPMU_EVENT_ERROR);
	fake_lose(f, 1, VPMU_EVENT_ERROR);
	fake_service(f);
	assert_int_equal(f->n_pmi, 2);
	/* at once with an overflow too */
	fake_wr(f, PMC, 0xffffffff);
	fake_wr(f, GLOBAL, 4);
	fake_wr(f, GLOBAL, 7);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL | INT);
	f->event[0]->head.overflowed(&f->event[0]->head);
	fake_lose(f, 1, VPMU_EVENT_ERROR);
	fake_service(f);
	assert_int_equal(f->n_pmi, 3);
	assert_int_equal(fake_rd(f, STATUS), BIT(63) | BIT(59) | 1);
	fake_wr(f, OVF_CTRL, BIT(63) | BIT(59) | 1);
	/* found by looking, and by enabling: at the next entry */
	f->event[0]->lost = VPMU_EVENT_ERROR;
	assert_int_equal(fake_rd(f, LOST), 1);
	assert_int_equal(f->n_pmi, 3);
	fake_service(f);
	assert_int_equal(f->n_pmi, 4);
	f->taken = 4;
	fake_wr(f, EVTSEL + 2, INSTRUCTIONS | EN_ALL);
	fake_service(f);
	assert_int_equal(f->n_pmi, 5);
	/* an uncounted or denied event is no loss of this kind */
	fake_wr(f, EVTSEL + 2, LLC_MISS | EN_ALL);
	fake_service(f);
	assert_int_equal(f->n_pmi, 5);
	/* given up before it came */
	fake_lose(f, 1, VPMU_EVENT_ERROR);
	fake_rd(f, LOST);
	fake_wr(f, CTRL, 0);
	fake_service(f);
	assert_int_equal(f->n_pmi, 5);
}

static void test_pmi(void **state)
{
	(void)state;
	both(pmi);
}

/* Saving and loading ------------------------------------------------------------------ */

static size_t save(struct fake *f, uint8_t *buf)
{
	size_t need, used;

	assert_int_equal(vpmu_arch_save(f->v, NULL, 0, &need), 0);
	assert_true(need <= SAVED_MAX);
	assert_int_equal(vpmu_arch_save(f->v, buf, need - 1, &used), -VPMU_E2BIG);
	assert_int_equal(vpmu_arch_save(f->v, buf, need, &used), 0);
	assert_int_equal(used, need);
	return used;
}

static void same_block(struct fake *f, struct fake *g)
{
	uint32_t msr;

	for (msr = GENERATION; msr < END; msr++) {
		uint64_t a = 0, b = 0;

		assert_int_equal(vpmu_arch_rdmsr(f->v, msr, &a), vpmu_arch_rdmsr(g->v, msr, &b));
		if (a != b)
			fail_msg("MSR %x: %llx, %llx", msr, (unsigned long long)a,
				 (unsigned long long)b);
	}
}

/* Something in every field: lost, denied, not counted, disabled, found again. */
static struct fake *busy(int n_gp, int n_fixed, bool running)
{
	static const uint64_t branches[] = { 0xc4 };
	static const struct vpmu_filter deny = { .size = sizeof(deny),
		.action = VPMU_FILTER_DENY, .n_events = 1, .events = branches };
	struct fake *f = fake_new_loss(5, n_gp, n_fixed, running);

	assert_int_equal(vpmu_arch_filter(f->v, &deny), 0);
	fake_wr(f, GLOBAL, (BIT(n_gp) - 1) | BIT(32));
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	fake_wr(f, EVTSEL + 1, LLC_MISS | EN_ALL);
	fake_wr(f, EVTSEL + 2, BRANCHES | EN_ALL);
	fake_wr(f, EVTSEL + 3, INSTRUCTIONS | EN_ALL);
	fake_wr(f, FIXED_CTRL, 0x3);
	tick(f, 100);
	fake_wr(f, CTRL, 1);
	lose(f, 3, VPMU_EVENT_ERROR);
	tick(f, 10);
	lose(f, n_gp, VPMU_EVENT_INACTIVE);
	tick(f, 10);
	lose(f, n_gp, VPMU_EVENT_ACTIVE);
	fake_wr(f, EVTSEL, INSTRUCTIONS);
	tick(f, 10);
	return f;
}

/* If the same counter is taken, nothing has changed; if it is free, it is found. */
static void test_save_load(void **state)
{
	uint8_t one[SAVED_MAX], two[SAVED_MAX];
	int from, to;

	(void)state;
	for (from = 0; from < 2; from++)
		for (to = 0; to < 2; to++) {
			struct fake *f = busy(4, 3, from);
			struct fake *g = busy(4, 3, to);
			size_t used = save(f, one);

			vpmu_arch_reset(g->v, false);
			tick(g, 12345); /* another origin */
			g->taken = 1u << 3;
			assert_int_equal(vpmu_arch_load(g->v, one, used), 0);
			assert_int_equal(save(g, two), used);
			assert_memory_equal(one, two, used);
			same_block(f, g);
			tick(f, 17);
			tick(g, 17);
			same_block(f, g);
			assert_int_equal(fake_rd(g, ENABLED(3)), 147);
			assert_int_equal(fake_rd(g, RUNNING(3)), 100);
			assert_int_equal(fake_rd(g, RUNNING(4)), 137);
			fake_service(g);
			assert_int_equal(g->n_pmi, 2); /* its own of before */
			fake_wr(f, GLOBAL, 0);
			fake_wr(g, GLOBAL, 0);
			same_block(f, g);
			tick(f, 9);
			fake_wr(f, GLOBAL, 0x8);
			g->taken = 0;
			used = save(f, one);
			assert_int_equal(vpmu_arch_load(g->v, one, used), 0);
			assert_int_equal(fake_rd(f, LOST), 0);
			same_block(f, g);

			f->taken = 8; /* found by the load */
			lose(f, 3, VPMU_EVENT_ERROR);
			used = save(f, one);
			assert_int_equal(vpmu_arch_load(g->v, one, used), 0);
			assert_int_equal(fake_rd(g, LOST), 0);
			assert_int_equal(fake_rd(g, GENERATION), fake_rd(f, GENERATION) + 1);
			fake_free(f);
			fake_free(g);
		}
}

/* A PMI that was due is due; more counters are zeros; a state of before is zeros. */
static void test_load_more(void **state)
{
	struct fake *f = busy(4, 1, true), *g = fake_new_loss(5, 8, 3, true);
	struct fake *plain = fake_new(5, 4, 1, FAKE_CAPS);
	uint8_t buf[SAVED_MAX], before[SAVED_MAX];
	size_t used;

	(void)state;
	f->event[4]->lost = VPMU_EVENT_ERROR;
	assert_int_equal(fake_rd(f, LOST), BIT(32) | 0xe);
	used = save(f, buf);
	g->taken = BIT(8) | BIT(3);
	assert_int_equal(vpmu_arch_load(g->v, buf, used), 0);
	assert_true(g->kicked);
	fake_service(g);
	assert_int_equal(g->n_pmi, 1);
	assert_int_equal(fake_rd(g, CTRL), 1);
	assert_int_equal(fake_rd(g, ENABLED(3)), fake_rd(f, ENABLED(3)));
	assert_int_equal(fake_rd(g, ENABLED(8)), fake_rd(f, ENABLED(4)));
	assert_int_equal(fake_rd(g, RUNNING(8)), fake_rd(f, RUNNING(4)));
	assert_int_equal(fake_rd(g, ENABLED(4)), 0);
	/* the filter is the destination's: what it allows is found */
	assert_int_equal(fake_rd(g, LOST), BIT(32) | 0xa);

	/* the guest would miss the block */
	assert_int_equal(vpmu_arch_load(plain->v, buf, used), -VPMU_EINVAL);
	fake_wr(plain, GLOBAL, 1);
	fake_wr(plain, EVTSEL, LLC_MISS | EN_ALL);
	used = save(plain, before);
	assert_int_equal(vpmu_arch_load(g->v, before, used), 0);
	assert_int_equal(fake_rd(g, CTRL), 0);
	assert_int_equal(fake_rd(g, ENABLED(3)), 0);
	tick(g, 5);
	assert_int_equal(fake_rd(g, ENABLED(0)), 5);
	assert_int_equal(fake_rd(g, REASON(0)), BIT(32) | 0x303);
	fake_free(f);
	fake_free(g);
	fake_free(plain);
}

static void put(uint8_t *p, uint64_t value, int bytes)
{
	while (bytes--) {
		*p++ = (uint8_t)value;
		value >>= 8;
	}
}

/* Each field out of its range, one at a time; and truncated anywhere. */
static void test_fields(void **state)
{
	/* A size and two offsets; the model follows the section's head. */
	enum { BYTES = 24 + 5 * 24, PMC3 = 24 + 3 * 24, MODEL = 16 + 8 };
	static const struct {
		int line, at, bytes;
		uint64_t value;
		int ret;
	} row[] = {
		{ __LINE__, -16, 4, 1, -VPMU_EINVAL },      /* the register file twice */
		{ __LINE__, -16, 4, 99, -VPMU_ENOSYS },
		{ __LINE__, -12, 2, 2, -VPMU_ENOSYS },
		{ __LINE__, -8, 4, BYTES - 8, -VPMU_EINVAL },
		{ __LINE__, 0, 1, 5, -VPMU_EINVAL },
		{ __LINE__, 1, 1, 0, -VPMU_EINVAL },
		{ __LINE__, 2, 2, 1, -VPMU_EINVAL },
		{ __LINE__, 4, 4, 2, -VPMU_EINVAL },
		{ __LINE__, 8, 8, 2, -VPMU_EINVAL },
		{ __LINE__, PMC3, 8, BIT(62) + 1, -VPMU_EINVAL },
		{ __LINE__, PMC3, 8, 99, -VPMU_EINVAL },     /* less than running */
		{ __LINE__, PMC3 + 8, 8, 131, -VPMU_EINVAL },
		{ __LINE__, PMC3 + 20, 1, 2, -VPMU_EINVAL }, /* not the last one */
		{ __LINE__, PMC3 + 20, 2, 0x0404, -VPMU_EINVAL },
		{ __LINE__, PMC3 + 21, 1, 0, -VPMU_EINVAL },
		{ __LINE__, 24 + 21, 1, 4, -VPMU_EINVAL },
		{ __LINE__, PMC3 + 22, 2, 1, -VPMU_EINVAL },
		{ __LINE__, PMC3, 8, 1ull << 62, 0 },
		{ __LINE__, PMC3 + 8, 8, 130, 0 },
		{ __LINE__, PMC3 + 16, 4, UINT32_MAX, 0 },
		{ __LINE__, 16, 8, UINT64_MAX, 0 },
		{ __LINE__, 4, 4, 1, 0 },
	};
	struct fake *f = busy(4, 1, true), *g = busy(4, 1, false);
	uint8_t good[SAVED_MAX], buf[SAVED_MAX], a[SAVED_MAX], b[SAVED_MAX];
	size_t used = save(f, good), body = used - BYTES - MODEL, i, before;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(row); i++) {
		memcpy(buf, good, used);
		put(buf + body + row[i].at, row[i].value, row[i].bytes);
		before = save(g, a);
		if (vpmu_arch_load(g->v, buf, used) != row[i].ret)
			fail_msg("line %d: %d", row[i].line, vpmu_arch_load(g->v, buf, used));
		if (row[i].ret) {
			assert_int_equal(save(g, b), before);
			assert_memory_equal(a, b, before);
		}
		assert_int_equal(g->batch, 0);
	}
	/* a due PMI that was not requested */
	memcpy(buf, good, used);
	put(buf + body + 4, 1, 4);
	put(buf + body + 8, 0, 8);
	assert_int_equal(vpmu_arch_load(g->v, buf, used), -VPMU_EINVAL);
	/* ahead of the register file, whose counters it names */
	memcpy(buf, good, 16);
	memcpy(buf + 16, good + body - 16, BYTES + 16);
	memcpy(buf + 16 + BYTES + 16, good + 16, body - 16 - 16);
	assert_int_equal(vpmu_arch_load(g->v, buf, used), -VPMU_EINVAL);
	/* ... or none at all */
	put(buf + 16 + 8, 24, 4);
	put(buf + 32, 0, 2);
	memcpy(buf + 16 + 40, good + 16, body - 16 - 16);
	put(buf + 8, used - MODEL - 5 * 24, 4);
	assert_int_equal(vpmu_arch_load(g->v, buf, used - MODEL - 5 * 24), -VPMU_EINVAL);
	/* the provider refuses: times and reasons go on as they were */
	g->taken = 8;
	assert_int_equal(vpmu_arch_load(g->v, good, used), 0);
	before = save(g, a);
	memcpy(buf, good, used);
	put(buf + body - 16 - 4, 1, 4); /* the end of the provider's eight bytes */
	assert_int_equal(vpmu_arch_load(g->v, buf, used), -VPMU_EINVAL);
	assert_int_equal(save(g, b), before);
	assert_memory_equal(a, b, before);
	tick(g, 3);
	assert_int_equal(fake_rd(g, ENABLED(4)), 133);
	assert_int_equal(fake_rd(g, RUNNING(4)), 123);
	fake_free(f);
	fake_free(g);
}

/* Truncated anywhere, or with any bytes changed: loaded whole or not at all. */
static void test_hostile(void **state)
{
	struct fake *f = busy(4, 3, true), *g = busy(4, 3, false);
	uint8_t good[SAVED_MAX], buf[SAVED_MAX], a[SAVED_MAX], b[SAVED_MAX];
	size_t used = save(f, good), i, before;
	uint64_t rng = 4711;
	unsigned int pmc;

	(void)state;
	for (i = 0; i < used; i++) {
		uint8_t *exact = malloc(i ? i : 1);

		memcpy(exact, good, i);
		if (i >= 12)
			put(exact + 8, i, 4); /* a state that claims to end here */
		assert_int_equal(vpmu_arch_load(g->v, exact, i), -VPMU_EINVAL);
		free(exact);
	}
	for (i = 0; i < used * 30; i++) {
		memcpy(buf, good, used);
		buf[random_below(&rng, used)] = (uint8_t)random_next(&rng);
		buf[i % used] ^= (uint8_t)(random_next(&rng) | 1);
		before = save(g, a);
		if (vpmu_arch_load(g->v, buf, used)) {
			assert_int_equal(save(g, b), before);
			assert_memory_equal(a, b, before);
			continue;
		}
		tick(g, 3);
		for (pmc = 0; pmc < 7; pmc++)
			assert_true(fake_rd(g, RUNNING(pmc)) <= fake_rd(g, ENABLED(pmc)));
	}
	fake_free(f);
	fake_free(g);
}

/* At random, against what the registers and the fake say ------------------------------ */

struct model {
	uint64_t enabled[7], running[7], generation;
	uint32_t gen[7];
	uint8_t reason[7], last[7];
};

static bool model_on(struct fake *f, unsigned int pmc)
{
	uint64_t bits;

	if (fake_rd(f, STATUS) & BIT(59))
		return false;
	if (pmc < 4) {
		bits = fake_rd(f, EVTSEL + pmc);
		return bits & BIT(22) && bits & (BIT(16) | BIT(17)) &&
		       fake_rd(f, GLOBAL) >> pmc & 1;
	}
	return fake_rd(f, FIXED_CTRL) >> 4 * (pmc - 4) & 3 &&
	       fake_rd(f, GLOBAL) >> (32 + pmc - 4) & 1;
}

static uint8_t model_reason(struct fake *f, unsigned int pmc)
{
	if (!model_on(f, pmc))
		return 0;
	if (pmc < 4 && (fake_rd(f, EVTSEL + pmc) & 0xffff) == LLC_MISS)
		return 3;
	return f->event[pmc] && f->event[pmc]->enabled && !f->event[pmc]->lost ? 0 : 1;
}

static void model_check(struct fake *f, struct model *m, unsigned int step)
{
	unsigned int pmc;
	uint64_t status = 0;

	for (pmc = 0; pmc < 7; pmc++) {
		uint8_t reason = model_reason(f, pmc);

		if (reason != m->reason[pmc]) {
			m->gen[pmc]++;
			m->generation++;
			m->reason[pmc] = reason;
			if (reason)
				m->last[pmc] = reason;
		}
		if (reason)
			status |= pmc < 4 ? BIT(pmc) : BIT(32 + pmc - 4);
		if (fake_rd(f, ENABLED(pmc)) != m->enabled[pmc] ||
		    fake_rd(f, RUNNING(pmc)) != m->running[pmc])
			fail_msg("step %u, counter %u: %llu of %llu, not %llu of %llu", step, pmc,
				 (unsigned long long)fake_rd(f, RUNNING(pmc)),
				 (unsigned long long)fake_rd(f, ENABLED(pmc)),
				 (unsigned long long)m->running[pmc],
				 (unsigned long long)m->enabled[pmc]);
		if (fake_rd(f, REASON(pmc)) !=
		    (reason | m->last[pmc] << 8 | (uint64_t)m->gen[pmc] << 32))
			fail_msg("step %u, counter %u: reason %llx, not %x, %u", step, pmc,
				 (unsigned long long)fake_rd(f, REASON(pmc)),
				 reason | m->last[pmc] << 8, m->gen[pmc]);
	}
	assert_int_equal(fake_rd(f, LOST), status);
	assert_int_equal(fake_rd(f, GENERATION), m->generation);
}

static void model_tick(struct fake *f, struct model *m, uint64_t n)
{
	unsigned int pmc;

	for (pmc = 0; pmc < 7; pmc++)
		if (model_on(f, pmc)) {
			m->enabled[pmc] += n;
			m->running[pmc] += model_reason(f, pmc) ? 0 : n;
		}
	tick(f, n);
}

static void random_step(struct fake *f, struct model *m, uint64_t *rng)
{
	static const uint64_t event[] = { INSTRUCTIONS, BRANCHES, LLC_MISS };
	static const uint64_t en[] = { 0, EN_ALL, EN_ALL, EN_USR, BIT(22), EN_ALL | INT };
	unsigned int i = random_below(rng, 4), pmc = random_below(rng, 7);

	switch (random_below(rng, 10)) {
	case 0:
		fake_wr(f, EVTSEL + i, event[random_below(rng, 3)] | en[random_below(rng, 6)]);
		break;
	case 1:
		fake_wr(f, FIXED_CTRL, random_next(rng) & 0x3bb);
		break;
	case 2:
		fake_wr(f, GLOBAL, random_next(rng) & 0x70000000f);
		break;
	case 3:
		fake_wr(f, random_below(rng, 3) ? OVF_CTRL : STATUS_SET, BIT(59));
		break;
	case 4:
		f->taken = (uint32_t)(random_next(rng) & random_next(rng) & 0x7f);
		f->by_commit = random_below(rng, 2);
		break;
	case 5:
		f->fail_create = random_below(rng, 3) ? 0 : 1 + random_below(rng, 3);
		f->fail_code = -VPMU_EBUSY;
		break;
	case 6:
		vpmu_arch_slice(f->v);
		break;
	case 7:
		if (f->event[pmc] && f->event[pmc]->enabled)
			lose(f, pmc, random_below(rng, 3) + VPMU_EVENT_ACTIVE);
		break;
	default:
		model_tick(f, m, random_below(rng, 50));
		break;
	}
	fake_service(f);
}

/*
 * Events that are lost at the source come back at the destination, which the model
 * sees as any other change.
 */
static struct fake *random_move(struct fake *f, bool running)
{
	struct fake *g = fake_new_loss(5, 4, 3, running);
	uint8_t buf[SAVED_MAX];
	size_t used = save(f, buf);

	g->taken = f->taken;
	g->by_commit = f->by_commit;
	assert_int_equal(vpmu_arch_load(g->v, buf, used), 0);
	fake_free(f);
	return g;
}

static void test_random(void **state)
{
	unsigned int run, i;

	(void)state;
	for (run = 0; run < 60; run++) {
		struct fake *f = fake_new_loss(5, 4, 3, run & 1);
		uint64_t rng = 0x9e3779b97f4a7c15ull + run;
		struct model m = { 0 };

		for (i = 0; i < 400; i++) {
			random_step(f, &m, &rng);
			model_check(f, &m, i);
			if (random_below(&rng, 40) == 0)
				f = random_move(f, random_below(&rng, 2));
			model_check(f, &m, i);
		}
		fake_free(f);
	}
}

/* Over the direct provider ------------------------------------------------------------ */

/* Nothing is ever lost; the clock is cycles, held as long as events are. */
static void test_direct(void **state)
{
	static uint64_t memory[1024];
	struct vpmu_silicon_config sc = { .size = sizeof(sc) };
	struct vpmu_arch_config cfg = { .size = sizeof(cfg), .n_fixed = -1 };
	struct vpmu_arch *v = (void *)memory;
	struct vpmu_script script;
	struct vpmu_direct direct;
	struct vpmu_error err;
	uint64_t value;
	size_t size;
	int i;

	(void)state;
	vpmu_script_init(&script, VPMU_SCRIPT_SUPPLIED);
	sc.model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
	sc.supplied = VPMU_SCRIPT_SUPPLIED;
	sc.ops = &script.ops;
	sc.ctx = &script;
	assert_int_equal(vpmu_direct_init(&direct, &sc), 0);
	script.silicon = &direct.silicon;
	cfg.model = sc.model;
	cfg.provider = &direct.provider;
	cfg.ops = &script.ops;
	cfg.ctx = &script;
	cfg.cpuid_base = 0x40000100;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), 0);
	assert_true(size <= sizeof(memory));
	assert_int_equal(vpmu_arch_init(v, &cfg, &err), 0);
	assert_int_equal(vpmu_arch_wrmsr(v, EVTSEL, 0xc4 | EN_USR), VPMU_HANDLED);
	assert_int_equal(vpmu_arch_wrmsr(v, EVTSEL + 1, 0x412e | EN_USR), VPMU_HANDLED);
	assert_int_equal(vpmu_arch_wrmsr(v, GLOBAL, 3), VPMU_HANDLED);
	for (i = 0; i < 30; i++)
		vpmu_script_step(&script, i % 3 ? VPMU_BANK_USER : VPMU_BANK_KERNEL,
				 VPMU_SIGNAL_INSTRUCTIONS);
	assert_int_equal(vpmu_arch_wrmsr(v, GLOBAL, 0), VPMU_HANDLED);
	for (i = 0; i < 30; i++)
		vpmu_script_step(&script, VPMU_BANK_USER, VPMU_SIGNAL_INSTRUCTIONS);
	assert_int_equal(vpmu_arch_wrmsr(v, GLOBAL, 1), VPMU_HANDLED);
	vpmu_script_step(&script, VPMU_BANK_USER, VPMU_SIGNAL_INSTRUCTIONS);
	assert_int_equal(vpmu_arch_rdmsr(v, ENABLED(0), &value), VPMU_HANDLED);
	assert_int_equal(value, 31);
	assert_int_equal(vpmu_arch_rdmsr(v, RUNNING(0), &value), VPMU_HANDLED);
	assert_int_equal(value, 31);
	assert_int_equal(vpmu_arch_rdmsr(v, ENABLED(1), &value), VPMU_HANDLED);
	assert_int_equal(value, 30);
	assert_int_equal(vpmu_arch_rdmsr(v, RUNNING(1), &value), VPMU_HANDLED);
	assert_int_equal(value, 0);
	vpmu_arch_reset(v, false);
	assert_int_equal(script.demand, 0);
	assert_null(script.broken);
}

/* A clock that goes back has stood still meanwhile; one that leaps is believed. */
static void test_clock_jumps(void **state)
{
	static const int64_t jump[] = { -1000000000, 1000000 };
	unsigned int i, running;
	uint64_t enabled;

	(void)state;
	for (i = 0; i < 2; i++)
		for (running = 0; running < 2; running++) {
			struct fake *f = fake_new_loss(5, 8, 3, running);

			fake_wr(f, GLOBAL, 1);
			fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
			fake_tick(f, VPMU_BANK_USER, 100);
			assert_int_equal(fake_rd(f, ENABLED(0)), 100);
			f->time += (uint64_t)jump[i];
			fake_tick(f, VPMU_BANK_USER, 50);
			enabled = fake_rd(f, ENABLED(0));
			assert_int_equal(enabled, i ? 1000150 : 100);
			assert_int_equal(fake_rd(f, RUNNING(0)),
					 running && i ? 150 : enabled);
			fake_tick(f, VPMU_BANK_USER, 30);
			assert_int_equal(fake_rd(f, ENABLED(0)), enabled + 30);
			assert_int_equal(fake_rd(f, PMC), 180);
			fake_free(f);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpuid),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_gates),
		cmocka_unit_test(test_freeze),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_cheap),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_no_counter),
		cmocka_unit_test(test_retry),
		cmocka_unit_test(test_pmi),
		cmocka_unit_test(test_save_load),
		cmocka_unit_test(test_load_more),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_clock_jumps),
	};

	return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
