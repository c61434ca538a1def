// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A guest learns nothing of its host and its neighbours, except that it has lost a
 * counter and for how long. A guest does the same things alone, and beside another
 * guest's vCPU on its CPU and a host that counts; everything that it can read is
 * compared.
 */
#include "unit.h"

#include <vpmu/arch.h>
#include <vpmu/loss.h>
#include <vpmu/vcpu.h>

#include "script.h"

#define EVTSEL		0x186
#define A_PMC		0x4c1
#define FIXED_CTRL	0x38d
#define GLOBAL		0x38f

struct guest {
	struct vpmu_ops ops;
	struct vpmu_vcpu vcpu;
	struct vpmu_arch *v;
	struct host *host;
	uint32_t n_pmi;
};

struct host {
	struct vpmu_script script; /* first: the ctx of silicon's hooks */
	struct vpmu_perf_system sys;
	struct vpmu_perf_cpu cpu;
	struct guest guest[2];
	struct vpmu_perf_event event[8]; /* the host's own */
};

static void guest_kick(void *ctx)
{
	((struct guest *)ctx)->host->script.kicked = true;
}

static void guest_raise_pmi(void *ctx, bool mask)
{
	(void)mask;
	((struct guest *)ctx)->n_pmi++;
}

static void service(void *arg)
{
	struct host *h = arg;

	vpmu_perf_service(&h->cpu);
	vpmu_arch_service(h->guest[0].v);
	vpmu_arch_service(h->guest[1].v);
}

/* @fill: what is in memory that the library is given. */
static void guest_init(struct host *h, unsigned int n, int fill)
{
	const struct vpmu_model *model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
	struct vpmu_arch_config cfg = { .size = sizeof(cfg), .n_fixed = -1 };
	struct guest *g = &h->guest[n];
	size_t size;

	g->host = h;
	g->ops = h->script.ops;
	g->ops.kick = guest_kick;
	g->ops.raise_pmi = guest_raise_pmi;
	assert_int_equal(vpmu_vcpu_init(&g->vcpu, &h->sys, VPMU_POLICY_SHARED), 0);
	cfg.model = model;
	cfg.capabilities = model->capabilities & VPMU_CAP_FULL_WIDTH;
	cfg.provider = &g->vcpu.provider;
	cfg.ops = &g->ops;
	cfg.ctx = g;
	cfg.cpuid_base = 0x40000100;
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), 0);
	g->v = test_malloc(size);
	memset(g->v, fill, size);
	assert_int_equal(vpmu_arch_init(g->v, &cfg, NULL), 0);
}

static struct host *host_new(int fill)
{
	struct host *h = test_calloc(1, sizeof(*h));

	vpmu_script_init(&h->script, VPMU_SCRIPT_SUPPLIED);
	vpmu_perf_system_init(&h->sys, vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106),
			      VPMU_SCRIPT_SUPPLIED, 1000000, 0);
	assert_int_equal(vpmu_perf_cpu_init(&h->cpu, &h->sys, 0, &h->script.ops, h), 0);
	h->script.silicon = &h->cpu.silicon;
	h->script.service = service;
	h->script.arg = h;
	guest_init(h, 0, fill);
	guest_init(h, 1, fill);
	return h;
}

static void host_free(struct host *h)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		vpmu_arch_reset(h->guest[i].v, false);
		vpmu_vcpu_fini(&h->guest[i].vcpu);
		test_free(h->guest[i].v);
	}
	assert_null(h->script.broken);
	test_free(h);
}

static void wr(struct host *h, unsigned int n, uint32_t msr, uint64_t value)
{
	assert_int_equal(vpmu_arch_wrmsr(h->guest[n].v, msr, value), VPMU_HANDLED);
	vpmu_script_service(&h->script);
}

static uint64_t rd(struct host *h, uint32_t msr)
{
	uint64_t value = 0;

	assert_int_equal(vpmu_arch_rdmsr(h->guest[0].v, msr, &value), VPMU_HANDLED);
	return value;
}

/* The host executes something itself, before the vCPU is entered. */
static void turn_of(struct host *h, unsigned int n, unsigned int before)
{
	vpmu_vcpu_load(&h->guest[n].vcpu, &h->cpu);
	while (before--)
		vpmu_script_step(&h->script, VPMU_BANK_KERNEL, VPMU_SIGNAL_JMP);
	vpmu_vcpu_enter(&h->guest[n].vcpu);
}

static void turn_ends(struct host *h, unsigned int n)
{
	vpmu_vcpu_exit(&h->guest[n].vcpu);
	vpmu_vcpu_put(&h->guest[n].vcpu);
}

/* Another guest on the same CPU, as long as @seed says, with counters of its own. */
static void neighbour(struct host *h, uint64_t *seed)
{
	uint64_t n = random_below(seed, 300);

	turn_of(h, 1, 11);
	wr(h, 1, EVTSEL + (uint32_t)random_below(seed, 3), 0x4300c0 | random_below(seed, 2) << 2 |
	   1u << 20);
	wr(h, 1, A_PMC + (uint32_t)random_below(seed, 3),
	   -random_below(seed, 500) & 0xffffffffffff);
	wr(h, 1, FIXED_CTRL, random_below(seed, 16) & 0xb);
	wr(h, 1, GLOBAL, random_below(seed, 8) | random_below(seed, 2) << 32);
	while (n--)
		vpmu_script_step(&h->script, n % 2 ? VPMU_BANK_USER : VPMU_BANK_KERNEL,
				 n % 3 ? VPMU_SIGNAL_JMP : VPMU_SIGNAL_INSTRUCTIONS);
	turn_ends(h, 1);
}

static void host_open(struct host *h, unsigned int i, bool pinned)
{
	struct vpmu_perf_attr attr = { .size = sizeof(attr) };

	attr.event.size = sizeof(attr.event);
	attr.event.banks = VPMU_BANKS_KERNEL | VPMU_BANKS_USER;
	attr.event.fixed = -1;
	attr.event.slot = -1;
	attr.event.select = 0xc4;
	attr.event.pinned = pinned;
	assert_int_equal(vpmu_perf_open(&h->event[i], &attr, &h->cpu, NULL), 0);
}

#define SEEN_MAX	1024

struct seen {
	uint32_t n;
	uint64_t word[SEEN_MAX];
};

/* All registers that guest 0 can read; faults too. */
static void look(struct host *h, struct seen *s)
{
	static const struct { uint32_t first, n; } range[] = {
		{ 0xc1, 8 }, { EVTSEL, 8 }, { 0x1d9, 1 }, { 0x309, 4 }, { 0x345, 1 },
		{ FIXED_CTRL, 6 }, { A_PMC, 8 }, { VPMU_MSR_LOSS, 0x40 },
	};
	unsigned int i, k;

	for (i = 0; i < COUNT_OF(range); i++)
		for (k = 0; k < range[i].n; k++) {
			uint64_t value = 0xdead;

			assert_true(s->n + 2 <= SEEN_MAX);
			s->word[s->n++] = vpmu_arch_rdmsr(h->guest[0].v, range[i].first + k,
							  &value);
			s->word[s->n++] = value;
		}
	s->word[s->n++] = h->guest[0].n_pmi;
}

/*
 * The actions of guest 0, always the same; @seed: actions of the others in between, or
 * NULL.
 */
static void life(struct host *h, uint64_t *seed, struct seen *s)
{
	unsigned int turn, i;

	s->n = 0;
	for (turn = 0; turn < 4; turn++) {
		if (seed)
			neighbour(h, seed);
		turn_of(h, 0, seed ? 17 : 0);
		if (!turn) {
			wr(h, 0, A_PMC + 1, 0xffffffffffd0);
			wr(h, 0, EVTSEL, 0x4300c0);
			wr(h, 0, EVTSEL + 1, 0x5300c4);
			wr(h, 0, FIXED_CTRL, 0x3);
			wr(h, 0, GLOBAL, 3 | 1ull << 32);
		}
		for (i = 0; i < 60; i++)
			vpmu_script_step(&h->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
		look(h, s);
		turn_ends(h, 0);
	}
}

/* Not one bit differs, whatever else runs and whatever memory held before. */
static void test_nothing_of_others(void **state)
{
	struct seen *s = test_calloc(2, sizeof(*s));
	uint64_t seed = 1;
	unsigned int run;
	struct host *h;

	(void)state;
	h = host_new(0);
	life(h, NULL, &s[0]);
	assert_int_equal(h->guest[0].n_pmi, 1);
	host_free(h);
	for (run = 0; run < 50; run++) {
		h = host_new(run % 2 ? 0xa5 : 0xff);
		host_open(h, 0, true);
		host_open(h, 1, false);
		life(h, &seed, &s[1]);
		assert_int_equal(s[0].n, s[1].n);
		assert_memory_equal(s[0].word, s[1].word, s[0].n * sizeof(s[0].word[0]));
		vpmu_perf_close(&h->event[0]);
		vpmu_perf_close(&h->event[1]);
		host_free(h);
	}
	test_free(s);
}

/*
 * A loss to the host is reported, with its duration; the count is the guest's own part.
 */
static void test_losses_only(void **state)
{
	struct host *h = host_new(0xa5);
	unsigned int i;

	(void)state;
	turn_of(h, 0, 5);
	wr(h, 0, EVTSEL, 0x4300c4);
	wr(h, 0, GLOBAL, 1);
	for (i = 0; i < 30; i++)
		vpmu_script_step(&h->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
	for (i = 0; i < 8; i++)
		host_open(h, i, true);
	vpmu_script_service(&h->script);
	for (i = 0; i < 50; i++)
		vpmu_script_step(&h->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
	assert_int_equal(rd(h, A_PMC), 30);
	assert_int_equal(rd(h, VPMU_MSR_LOSS + 0x10), 80);
	assert_int_equal(rd(h, VPMU_MSR_LOSS + 0x11), 30);
	for (i = 0; i < 8; i++)
		vpmu_perf_close(&h->event[i]);
	turn_ends(h, 0);
	host_free(h);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_of_others),
		cmocka_unit_test(test_losses_only),
	};

	return cmocka_run_group_tests_name("isolation", tests, NULL, NULL);
}
