// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Counters and branch records that a guest has lost, and gets back without doing anything:
 * vpmu_arch_config.regain. First against a provider that does what the test says, then
 * beside events of the host's perf.
 */
#include "unit.h"

#include <vpmu/arch.h>
#include <vpmu/vcpu.h>

#include "fake.h"
#include "script.h"

#define GENERATION	0x56504d00u
#define LOST		0x56504d01u
#define ENABLED(pmc)	(0x56504d10u + 4 * (pmc))
#define RUNNING(pmc)	(0x56504d11u + 4 * (pmc))

static struct fake *fake_new_regain(void)
{
	struct fake *f = fake_new_loss(5, 8, 3, true);
	struct vpmu_arch_config cfg;

	fake_config(f, &cfg);
	cfg.version = 5;
	cfg.n_gp = 8;
	cfg.n_fixed = 3;
	cfg.capabilities = FAKE_CAPS;
	cfg.cpuid_base = FAKE_BASE;
	cfg.regain = true;
	assert_int_equal(vpmu_arch_init(f->v, &cfg, NULL), 0);
	return f;
}

static void tick(struct fake *f, uint64_t n)
{
	fake_tick(f, VPMU_BANK_USER, n);
}

static void take(struct fake *f, uint32_t pmcs)
{
	unsigned int pmc;

	f->taken |= pmcs;
	for (pmc = 0; pmc < 11; pmc++)
		if (pmcs >> pmc & 1)
			fake_lose(f, pmc, VPMU_EVENT_ERROR);
	fake_service(f);
}

/* Count, times and the rest of the period go on; no event of others is touched. */
static void test_goes_on(void **state)
{
	struct fake *f = fake_new_regain();

	(void)state;
	fake_wr(f, GLOBAL, BIT(32) | 3);
	fake_wr(f, A_PMC, MASK48 - 99); /* 100 occurrences from its overflow */
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL | INT);
	fake_wr(f, EVTSEL + 1, BRANCHES | EN_ALL);
	fake_wr(f, FIXED_CTRL, 3);
	tick(f, 30);
	take(f, BIT(0) | BIT(8));
	tick(f, 50);
	assert_true(vpmu_arch_slice(f->v)); /* none is regained */
	assert_int_equal(fake_rd(f, LOST), BIT(32) | 1);
	assert_int_equal(fake_rd(f, GENERATION), 2);
	f->taken = 0;
	assert_true(vpmu_arch_slice(f->v));
	assert_int_equal(fake_rd(f, LOST), 0);
	assert_int_equal(fake_rd(f, GENERATION), 4);
	assert_int_equal(f->n_create, 3 + 4);
	tick(f, 69);
	assert_int_equal(fake_rd(f, A_PMC), MASK48);
	assert_int_equal(fake_rd(f, A_PMC + 1), 149);
	assert_int_equal(fake_rd(f, FIXED), 99);
	assert_int_equal(f->n_pmi, 0);
	tick(f, 1);
	assert_int_equal(f->n_pmi, 1);
	assert_int_equal(fake_rd(f, ENABLED(0)), 150);
	assert_int_equal(fake_rd(f, RUNNING(0)), 100);
	assert_int_equal(fake_rd(f, RUNNING(1)), 150);
	fake_free(f);
}

/* Slices in which it is tried, from the first one after the loss: the 1st, 2nd, 4th ... */
static void test_pauses(void **state)
{
	static const unsigned int tries[] = { 1, 2, 4, 8, 16, 32, 64, 96, 128 };
	struct fake *f = fake_new_regain();
	unsigned int slice, i, round;

	(void)state;
	fake_wr(f, GLOBAL, 1);
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL);
	for (round = 0; round < 2; round++) {
		take(f, 1);
		i = 0;
		for (slice = 1; slice <= 128; slice++) {
			uint32_t n = f->n_create;

			assert_true(vpmu_arch_slice(f->v));
			n = f->n_create - n;
			if (n != (i < COUNT_OF(tries) && tries[i] == slice))
				fail_msg("round %u, slice %u: %u tries", round, slice, n);
			i += n;
		}
		assert_int_equal(i, COUNT_OF(tries));
		f->taken = 0;
		for (slice = 0; slice < 32; slice++)
			(void)vpmu_arch_slice(f->v);
		assert_int_equal(fake_rd(f, LOST), 0);
		assert_true(vpmu_arch_slice(f->v)); /* until nothing is enabled */
	}
	fake_free(f);
}

/* An event that is not enabled, is denied or not counted, or could not be created. */
static void test_which(void **state)
{
	static const uint64_t branches[] = { 0xc4 };
	static const struct vpmu_filter deny = { .size = sizeof(deny),
		.action = VPMU_FILTER_DENY, .n_events = 1, .events = branches };
	struct fake *f = fake_new_regain();
	uint32_t n;

	(void)state;
	assert_int_equal(vpmu_arch_filter(f->v, &deny), 0);
	fake_wr(f, GLOBAL, 0xf);
	fake_wr(f, EVTSEL, BRANCHES | EN_ALL);
	fake_wr(f, EVTSEL + 1, LLC_MISS | EN_ALL);
	fake_wr(f, EVTSEL + 2, INSTRUCTIONS | EN_ALL);
	assert_int_equal(fake_rd(f, LOST), 3);
	n = f->n_create;
	assert_true(vpmu_arch_slice(f->v));
	assert_int_equal(f->n_create, n);
	/* a closed gate: the guest opens it, which tries again */
	take(f, 4);
	fake_wr(f, GLOBAL, 0);
	assert_true(vpmu_arch_slice(f->v));
	assert_int_equal(f->n_create, n);
	fake_wr(f, EVTSEL, 0);
	fake_wr(f, EVTSEL + 1, 0);
	fake_wr(f, EVTSEL + 2, 0);
	(void)vpmu_arch_slice(f->v);
	assert_false(vpmu_arch_slice(f->v)); /* nothing to come back to */
	f->taken = 0;
	/* there was no memory, or no counter of the VM's share */
	fake_wr(f, GLOBAL, 0xf);
	f->fail_create = 1;
	f->fail_code = -VPMU_EBUSY;
	fake_wr(f, EVTSEL + 3, INSTRUCTIONS | EN_ALL);
	assert_int_equal(fake_rd(f, LOST), 8);
	assert_true(vpmu_arch_slice(f->v));
	assert_int_equal(fake_rd(f, LOST), 0);
	tick(f, 7);
	assert_int_equal(fake_rd(f, A_PMC + 3), 7);
	fake_free(f);
}

/* Beside the host's events ------------------------------------------------------------- */

struct machine {
	struct vpmu_script script; /* first: the ctx of the hooks */
	struct vpmu_perf_system sys;
	struct vpmu_perf_cpu cpu;
	struct vpmu_vcpu vcpu;
	struct vpmu_perf_event host[8];
	struct vpmu_arch *v;
};

static void service(void *arg)
{
	struct machine *m = arg;

	vpmu_perf_service(&m->cpu);
	vpmu_arch_service(m->v);
}

static struct machine *machine_new(uint8_t model)
{
	struct machine *m = test_calloc(1, sizeof(*m));
	struct vpmu_arch_config cfg = { .size = sizeof(cfg), .n_fixed = -1, .regain = true };
	size_t size;

	vpmu_script_init(&m->script, VPMU_SCRIPT_SUPPLIED);
	cfg.model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, model);
	vpmu_perf_system_init(&m->sys, cfg.model, VPMU_SCRIPT_SUPPLIED, 1000000, 0);
	assert_int_equal(vpmu_perf_cpu_init(&m->cpu, &m->sys, 0, &m->script.ops, &m->script), 0);
	assert_int_equal(vpmu_vcpu_init(&m->vcpu, &m->sys, VPMU_POLICY_SHARED), 0);
	vpmu_vcpu_load(&m->vcpu, &m->cpu);
	vpmu_vcpu_enter(&m->vcpu);
	m->script.silicon = &m->cpu.silicon;
	m->script.service = service;
	m->script.arg = m;
	cfg.capabilities = cfg.model->capabilities;
	cfg.provider = &m->vcpu.provider;
	cfg.ops = &m->script.ops;
	cfg.ctx = &m->script;
	cfg.cpuid_base = 0x40000100;
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), 0);
	m->v = test_malloc(size);
	assert_int_equal(vpmu_arch_init(m->v, &cfg, NULL), 0);
	return m;
}

static void machine_free(struct machine *m)
{
	assert_null(m->script.broken);
	vpmu_arch_reset(m->v, false);
	assert_false(m->script.record);
	test_free(m->v);
	test_free(m);
}

static void wr(struct machine *m, uint32_t msr, uint64_t value)
{
	assert_int_equal(vpmu_arch_wrmsr(m->v, msr, value), VPMU_HANDLED);
	vpmu_script_service(&m->script);
}

static uint64_t rd(struct machine *m, uint32_t msr)
{
	uint64_t value = 0;

	assert_int_equal(vpmu_arch_rdmsr(m->v, msr, &value), VPMU_HANDLED);
	return value;
}

/* Pinned to the CPU, or to the vCPU's thread. Returns its state. */
static enum vpmu_event_state host_opens(struct machine *m, unsigned int i,
					enum vpmu_perf_class class, uint8_t shared)
{
	struct vpmu_perf_attr attr = { .size = sizeof(attr), .cpu = -1 };
	bool cpu = class == VPMU_CPU_PINNED;

	attr.event.size = sizeof(attr.event);
	attr.event.select = 0xc4;
	attr.event.banks = VPMU_BANKS_USER | VPMU_BANKS_KERNEL;
	attr.event.pinned = true;
	attr.event.fixed = -1;
	attr.event.slot = -1;
	attr.event.shared = shared;
	attr.event.extra = shared ? VPMU_SHARED_ALONE : 0;
	attr.event.no_counter = shared;
	assert_int_equal(vpmu_perf_open(&m->host[i], &attr, cpu ? &m->cpu : NULL,
					cpu ? NULL : &m->vcpu.task), 0);
	vpmu_script_service(&m->script);
	return vpmu_perf_state(&m->host[i]);
}

static void slices(struct machine *m)
{
	unsigned int i;

	for (i = 0; i < 33; i++) {
		(void)vpmu_arch_slice(m->v);
		vpmu_script_service(&m->script);
	}
}

static void go(struct machine *m, unsigned int n)
{
	while (n--) {
		vpmu_script_step(&m->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
		vpmu_script_branch(&m->script, VPMU_BRANCH_JMP, true, 0x1000 + n, 0x2000 + n);
	}
}

/*
 * The host takes all counters, closes its events, and a debugger counts on the vCPU's
 * thread. The guest gets one of those that are free, and takes none.
 */
static void test_counters(void **state)
{
	struct machine *m = machine_new(106);
	unsigned int i;

	(void)state;
	wr(m, GLOBAL, 1);
	wr(m, EVTSEL, 0xc4 | EN_ALL);
	go(m, 10);
	for (i = 0; i < 8; i++)
		assert_int_equal(host_opens(m, i, VPMU_CPU_PINNED, 0), VPMU_EVENT_ACTIVE);
	assert_int_equal(rd(m, LOST), 1);
	slices(m);
	go(m, 10);
	assert_int_equal(rd(m, LOST), 1);
	for (i = 0; i < 8; i++)
		assert_int_equal(vpmu_perf_state(&m->host[i]), VPMU_EVENT_ACTIVE);
	/* younger than the guest's first event, older than those that replace it */
	vpmu_perf_close(&m->host[7]);
	assert_int_equal(host_opens(m, 7, VPMU_TASK_PINNED, 0), VPMU_EVENT_ACTIVE);
	slices(m);
	assert_int_equal(rd(m, LOST), 1);
	assert_int_equal(vpmu_perf_state(&m->host[7]), VPMU_EVENT_ACTIVE);
	vpmu_perf_close(&m->host[0]);
	slices(m);
	assert_int_equal(rd(m, LOST), 0);
	assert_int_equal(vpmu_perf_state(&m->host[7]), VPMU_EVENT_ACTIVE);
	go(m, 10);
	assert_int_equal(rd(m, A_PMC), 20);
	for (i = 1; i < 8; i++)
		vpmu_perf_close(&m->host[i]);
	machine_free(m);
}

/*
 * The host leaves too few counters, but not the fixed one. Perf looks for no counter after
 * the first event that has found none.
 */
static void test_one_by_one(void **state)
{
	struct machine *m = machine_new(106);
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(host_opens(m, i, VPMU_CPU_PINNED, 0), VPMU_EVENT_ACTIVE);
	wr(m, GLOBAL, 0);
	for (i = 0; i < 7; i++)
		wr(m, EVTSEL + i, 0xc4 | EN_ALL);
	wr(m, FIXED_CTRL, 3);
	wr(m, GLOBAL, BIT(32) | 0x7f);
	assert_int_equal(rd(m, LOST), BIT(32) | 0x60);
	slices(m);
	assert_int_equal(rd(m, LOST), 0x60);
	go(m, 10);
	assert_int_equal(rd(m, FIXED), 10);
	for (i = 0; i < 3; i++)
		vpmu_perf_close(&m->host[i]);
	machine_free(m);
}

/* Records begin again, as the guest has set them up. */
static void test_branch_records(void **state)
{
	static const uint8_t models[] = { 106, 143 };
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT_OF(models); i++) {
		struct machine *m = machine_new(models[i]);
		uint32_t from = models[i] == 143 ? 0x1500 : 0x681;

		if (models[i] == 143)
			wr(m, 0x14ce, 0x7f0007);
		else
			wr(m, DEBUGCTL, 1);
		go(m, 3);
		assert_int_equal(host_opens(m, 0, VPMU_CPU_PINNED, VPMU_SHARED_LBR),
				 VPMU_EVENT_ACTIVE);
		go(m, 3);
		assert_true(vpmu_arch_slice(m->v));
		assert_int_equal(rd(m, LOST), BIT(58));
		assert_false(m->script.record);
		vpmu_perf_close(&m->host[0]);
		slices(m);
		assert_int_equal(rd(m, LOST), 0);
		assert_true(m->script.record);
		go(m, 1);
		assert_int_equal(rd(m, from), 0x1000);
		machine_free(m);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_which),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_one_by_one),
		cmocka_unit_test(test_branch_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
