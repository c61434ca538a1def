// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Counters that branch records log: which can be, what an entry has, what becomes of counts
 * that wait for an entry. Over the direct provider and the scripted engine. Register numbers
 * and bits stand here as the kernel has them (asm/msr-index.h, asm/perf_event.h).
 */
#include "unit.h"

#include <vpmu/arch.h>
#include <vpmu/direct.h>

#include "script.h"

#define BIT(n)		((uint64_t)1 << (n))
#define PMC(n)		(0xc1u + (n))
#define EVTSEL(n)	(0x186u + (n))
#define STATUS		0x38e
#define GLOBAL		0x38f
#define RESET		0x390
#define DEBUGCTL	0x1d9
#define CTL		0x14ceu
#define INFO(n)		(0x1200u + (n))
#define INSTRUCTIONS	0xc0
#define BRANCHES	0xc4
#define COND_NTAKEN	0x4c4
#define ON		(BIT(22) | BIT(17)) /* EN, OS */
#define INT		BIT(20)
#define LOG		BIT(35)
#define RECORD		0x7f0007
#define LOGGED(a, b)	((uint64_t)(a) << 32 | (uint64_t)(b) << 34)
#define STATE_MAX	8192

struct machine {
	struct vpmu_script script; /* first: hooks get a pointer to it */
	struct vpmu_direct direct;
	struct vpmu_arch *v;
	bool watched;
	unsigned int n_watch;
};

static void watch(void *ctx, bool on)
{
	struct machine *m = ctx;

	assert_true(on != m->watched);
	m->watched = on;
	m->n_watch++;
}

static void service(void *arg)
{
	vpmu_arch_service(((struct machine *)arg)->v);
}

/* @able: the engine can be asked to stop at each record. */
static struct machine *machine_new(uint8_t model, uint8_t n_gp, bool able)
{
	struct machine *m = test_calloc(1, sizeof(*m));
	struct vpmu_silicon_config silicon = { .size = sizeof(silicon) };
	struct vpmu_arch_config cfg = { .size = sizeof(cfg), .n_gp = n_gp, .n_fixed = -1 };
	size_t size;

	vpmu_script_init(&m->script, VPMU_SCRIPT_SUPPLIED);
	m->script.ops.watch_lbr = able ? watch : NULL;
	m->script.silicon = &m->direct.silicon;
	m->script.service = service;
	m->script.arg = m;
	silicon.model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, model);
	silicon.supplied = VPMU_SCRIPT_SUPPLIED;
	silicon.ops = &m->script.ops;
	silicon.ctx = m;
	assert_int_equal(vpmu_direct_init(&m->direct, &silicon), 0);
	cfg.model = silicon.model;
	cfg.capabilities = cfg.model->capabilities & ~VPMU_CAP_PEBS; /* there is no memory */
	cfg.provider = &m->direct.provider;
	cfg.ops = &m->script.ops;
	cfg.ctx = m;
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), 0);
	m->v = test_malloc(size);
	assert_int_equal(vpmu_arch_init(m->v, &cfg, NULL), 0);
	return m;
}

static struct machine *clearwater(void)
{
	return machine_new(221, 0, true);
}

static void machine_free(struct machine *m)
{
	assert_null(m->script.broken);
	vpmu_arch_reset(m->v, false);
	assert_false(m->watched);
	test_free(m->v);
	test_free(m);
}

static uint64_t rd(struct machine *m, uint32_t msr)
{
	uint64_t value = 0xdead;

	assert_int_equal(vpmu_arch_rdmsr(m->v, msr, &value), VPMU_HANDLED);
	return value;
}

static void wr(struct machine *m, uint32_t msr, uint64_t value)
{
	assert_int_equal(vpmu_arch_wrmsr(m->v, msr, value), VPMU_HANDLED);
	vpmu_script_service(&m->script);
}

static bool faults(struct machine *m, uint32_t msr, uint64_t value)
{
	return vpmu_arch_wrmsr(m->v, msr, value) == VPMU_FAULT;
}

static uint64_t logged(struct machine *m, unsigned int age)
{
	return rd(m, INFO(age)) & 0xffull << 32;
}

static void not_taken(struct machine *m, unsigned int n)
{
	while (n--)
		vpmu_script_step(&m->script, VPMU_BANK_KERNEL, VPMU_SIGNAL_JCC_NOT_TAKEN);
}

/* A branch that is recorded if its type is asked for, as an engine makes it. */
static void branch(struct machine *m, enum vpmu_signal kind, enum vpmu_branch_type type)
{
	vpmu_script_step(&m->script, VPMU_BANK_KERNEL, kind);
	vpmu_script_branch(&m->script, type, false, 0x1000, 0x2000);
	vpmu_arch_branched(m->v);
}

static void jump(struct machine *m)
{
	branch(m, VPMU_SIGNAL_JMP, VPMU_BRANCH_JMP);
}

static void start(struct machine *m, uint64_t ctl)
{
	wr(m, EVTSEL(0), ON | BRANCHES | LOG);
	wr(m, EVTSEL(1), ON | COND_NTAKEN | LOG);
	wr(m, GLOBAL, 3);
	wr(m, CTL, ctl);
}

static void test_which(void **state)
{
	static const struct {
		uint8_t model, n_gp;
		bool able;
		uint8_t counters;
	} table[] = {
		{ 221, 0, true, 0xf }, { 221, 2, true, 3 }, { 221, 0, false, 0 },
		{ 143, 0, true, 0 }, { 106, 0, true, 0 },
	};
	unsigned int i, pmc;

	(void)state;
	for (i = 0; i < COUNT_OF(table); i++) {
		struct machine *m = machine_new(table[i].model, table[i].n_gp, table[i].able);
		struct vpmu_cpuid r = { 0, 0, 0, 0 };
		unsigned int n_gp = table[i].n_gp ? table[i].n_gp : 8;

		assert_true(vpmu_arch_cpuid(m->v, 0x1c, 0, &r));
		assert_int_equal(r.ecx >> 16, table[i].counters);
		for (pmc = 0; pmc < n_gp; pmc++) {
			assert_int_equal(faults(m, EVTSEL(pmc), LOG),
					 !(table[i].counters >> pmc & 1));
			assert_int_equal(rd(m, EVTSEL(pmc)),
					 table[i].counters >> pmc & 1 ? LOG : 0);
		}
		if (table[i].model != 106) {
			wr(m, INFO(5), UINT64_MAX);
			assert_int_equal(logged(m, 5), table[i].counters ? 0xffull << 32 : 0);
		}
		assert_int_equal(m->n_watch, 0); /* nothing is recorded */
		machine_free(m);
	}
}

static void test_counts(void **state)
{
	struct machine *m = clearwater();

	(void)state;
	start(m, RECORD);
	assert_true(m->watched);
	not_taken(m, 1);
	jump(m);
	jump(m);
	not_taken(m, 2);
	jump(m);
	not_taken(m, 7);
	jump(m);
	vpmu_arch_branched(m->v); /* nothing is new */
	assert_int_equal(logged(m, 0), LOGGED(3, 3)); /* and more */
	assert_int_equal(logged(m, 1), LOGGED(3, 2));
	assert_int_equal(logged(m, 2), LOGGED(1, 0));
	assert_int_equal(logged(m, 3), LOGGED(2, 1));
	/* A value that the guest writes is no count. */
	wr(m, PMC(0), 0x1000);
	jump(m);
	assert_int_equal(logged(m, 0), LOGGED(1, 0));
	assert_int_equal(rd(m, PMC(0)), 0x1001);
	/* Only counters that are to be logged are. */
	wr(m, EVTSEL(0), ON | BRANCHES);
	jump(m);
	assert_int_equal(logged(m, 0), LOGGED(0, 0));
	wr(m, EVTSEL(0), ON | BRANCHES | LOG);
	assert_int_equal(m->n_watch, 1);
	not_taken(m, 1);
	jump(m);
	assert_int_equal(logged(m, 0), LOGGED(2, 1));
	wr(m, EVTSEL(0), ON | BRANCHES);
	wr(m, EVTSEL(1), 0);
	assert_false(m->watched);
	jump(m);
	assert_int_equal(logged(m, 0), 0);
	machine_free(m);
}

/* Counts of branches that are not recorded are the next record's. */
static void test_filter(void **state)
{
	struct machine *m = clearwater();

	(void)state;
	start(m, 3 | BIT(19)); /* calls */
	jump(m);
	not_taken(m, 1);
	branch(m, VPMU_SIGNAL_CALL, VPMU_BRANCH_CALL);
	branch(m, VPMU_SIGNAL_CALL, VPMU_BRANCH_CALL);
	assert_int_equal(logged(m, 0), LOGGED(1, 0));
	assert_int_equal(logged(m, 1), LOGGED(3, 1));
	/* Two records without a boundary in between: all is the older one's. */
	vpmu_script_step(&m->script, VPMU_BANK_KERNEL, VPMU_SIGNAL_CALL);
	vpmu_script_branch(&m->script, VPMU_BRANCH_CALL, false, 1, 2);
	vpmu_script_branch(&m->script, VPMU_BRANCH_CALL, false, 3, 4);
	vpmu_arch_branched(m->v);
	assert_int_equal(logged(m, 0), LOGGED(0, 0));
	assert_int_equal(logged(m, 1), LOGGED(1, 0));
	machine_free(m);
}

/* A counter that gets another event, or none for a while, loses nothing that it has counted. */
static void test_events(void **state)
{
	struct machine *m = clearwater();

	(void)state;
	start(m, RECORD);
	not_taken(m, 1);
	wr(m, EVTSEL(1), ON | INSTRUCTIONS | LOG);
	jump(m);
	assert_int_equal(logged(m, 0), LOGGED(2, 2)); /* one each of the old and the new event */
	wr(m, GLOBAL, 1);
	not_taken(m, 3);
	wr(m, GLOBAL, 3);
	jump(m);
	assert_int_equal(logged(m, 0), LOGGED(3, 1));
	/* Counts from before recording began belong to no record. */
	wr(m, CTL, 0);
	assert_false(m->watched);
	jump(m);
	wr(m, CTL, RECORD);
	jump(m);
	assert_int_equal(logged(m, 0), LOGGED(1, 1));
	machine_free(m);
}

/* An overflow freezes the records: with the branch that overflowed, and its counts. */
static void test_frozen(void **state)
{
	struct machine *m = clearwater();

	(void)state;
	wr(m, DEBUGCTL, 0x800);
	wr(m, PMC(0), (uint32_t)-3);
	start(m, RECORD);
	wr(m, EVTSEL(0), ON | INT | BRANCHES | LOG);
	jump(m);
	not_taken(m, 1);
	assert_true(m->watched);
	/* The engine tells of the record first. */
	vpmu_script_branch(&m->script, VPMU_BRANCH_JMP, false, 1, 2);
	vpmu_arch_branched(m->v);
	vpmu_script_step(&m->script, VPMU_BANK_KERNEL, VPMU_SIGNAL_JMP);
	assert_int_equal(rd(m, STATUS) >> 58 & 1, 1);
	assert_false(m->watched);
	jump(m);
	assert_int_equal(logged(m, 1), LOGGED(1, 0));
	assert_int_equal(logged(m, 0), LOGGED(1, 1));
	wr(m, RESET, BIT(58) | 1);
	assert_true(m->watched);
	jump(m);
	assert_int_equal(logged(m, 0), LOGGED(1, 0));
	machine_free(m);
}

/* Counts that wait for a record move with the guest. */
static void test_state(void **state)
{
	struct machine *m = clearwater(), *to = clearwater(), *older = machine_new(221, 0, false);
	uint8_t buf[STATE_MAX];
	size_t used;

	(void)state;
	start(m, RECORD);
	jump(m);
	not_taken(m, 2);
	assert_int_equal(vpmu_arch_save(m->v, buf, sizeof(buf), &used), 0);
	assert_int_equal(vpmu_arch_load(to->v, buf, used), 0);
	assert_true(to->watched);
	jump(to);
	jump(m);
	assert_int_equal(logged(m, 0), LOGGED(3, 2));
	assert_int_equal(logged(to, 0), LOGGED(3, 2));
	assert_int_equal(logged(to, 1), LOGGED(1, 0));
	/* One that cannot log refuses what does. */
	assert_int_equal(vpmu_arch_load(older->v, buf, used), -VPMU_EINVAL);
	machine_free(m);
	machine_free(to);
	machine_free(older);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
