// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Branch records: registers of both kinds, filters, freezing, ownership, state. */
#include "unit.h"

#include <vpmu/arch.h>
#include <vpmu/vcpu.h>

#include "script.h"

#define DEBUGCTL	0x1d9
#define STATUS		0x38e
#define RESET		0x390
#define SELECT		0x1c8
#define TOS		0x1c9
#define LOSS		0x56504d00u

/* A vCPU under the shared policy, on a host that has events of its own. */
struct machine {
	struct vpmu_script script;
	struct vpmu_perf_system sys;
	struct vpmu_perf_cpu cpu;
	struct vpmu_vcpu vcpu;
	struct vpmu_perf_event host;
	struct vpmu_arch *v;
	bool arch;
};

static void service(void *arg)
{
	vpmu_arch_service(((struct machine *)arg)->v);
}

static struct machine *machine_of(const struct vpmu_model *model, int version);

/* An engine that knows predictions: all of its entries were mispredicted, and took 7 cycles. */
static bool knows;
static bool elsewhere;
static bool regains;
static bool lost;        /* only then may the same bits come again */
static uint64_t outside; /* the last argument of ops->set_debugctl */
static unsigned int again; /* calls with the same argument as the one before */

static void set_debugctl(void *ctx, uint64_t bits)
{
	(void)ctx;
	assert_true(bits != outside || lost);
	again += bits == outside;
	outside = bits;
}

static void finish(void *ctx, struct vpmu_lbr_entry *const *entries, unsigned int n)
{
	struct vpmu_script *sc = ctx;

	assert_true(n && n <= VPMU_LBR_ENTRIES);
	while (n--) {
		assert_true(entries[n] == vpmu_lbr_at(&sc->lbr, n));
		entries[n]->info |= VPMU_LBR_MISPREDICTED | VPMU_LBR_TIMED | 7;
	}
}

/* @model: as displayed; 106 has the legacy kind, 143 the architectural one. */
static struct machine *machine_new(uint8_t model, int version)
{
	struct machine *m = machine_of(vpmu_model_find(VPMU_VENDOR_INTEL, 6, model), version);

	m->arch = model == 143;
	return m;
}

static struct machine *machine_of(const struct vpmu_model *model, int version)
{
	struct machine *m = test_calloc(1, sizeof(*m));
	struct vpmu_arch_config cfg = { .size = sizeof(cfg), .n_fixed = -1 };
	struct vpmu_error err;
	size_t size;

	vpmu_script_init(&m->script, VPMU_SCRIPT_SUPPLIED);
	cfg.model = model;
	vpmu_perf_system_init(&m->sys, cfg.model, VPMU_SCRIPT_SUPPLIED, 1000000, 1000);
	assert_int_equal(vpmu_perf_cpu_init(&m->cpu, &m->sys, 0, &m->script.ops, &m->script), 0);
	assert_int_equal(vpmu_vcpu_init(&m->vcpu, &m->sys, VPMU_POLICY_SHARED), 0);
	vpmu_vcpu_load(&m->vcpu, &m->cpu);
	vpmu_vcpu_enter(&m->vcpu);
	m->script.silicon = &m->cpu.silicon;
	m->script.service = service;
	m->script.arg = m;
	m->script.ops.finish_lbr = knows ? finish : NULL;
	cfg.version = (uint8_t)version;
	cfg.capabilities = cfg.model->capabilities;
	cfg.provider = &m->vcpu.provider;
	cfg.ops = &m->script.ops;
	cfg.ctx = &m->script;
	cfg.cpuid_base = 0x40000100;
	cfg.lbr_elsewhere = elsewhere;
	cfg.regain = regains;
	m->script.ops.set_debugctl = elsewhere ? set_debugctl : NULL;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), 0);
	m->v = test_malloc(size);
	assert_int_equal(vpmu_arch_init(m->v, &cfg, &err), 0);
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

static void faults(struct machine *m, uint32_t msr, uint64_t value)
{
	assert_int_equal(vpmu_arch_wrmsr(m->v, msr, value), VPMU_FAULT);
}

/* Refused by us, or by the owner of registers that are not ours. */
static void refused(struct machine *m, uint32_t msr)
{
	assert_int_not_equal(vpmu_arch_wrmsr(m->v, msr, 0), VPMU_HANDLED);
}

/* Entry @age, 0 the newest. */
static uint64_t from(struct machine *m, unsigned int age)
{
	return rd(m, m->arch ? 0x1500 + age : 0x680 + ((uint32_t)rd(m, TOS) - age) % 32);
}

static void start(struct machine *m)
{
	if (m->arch)
		wr(m, 0x14ce, 0x7f0007);
	else
		wr(m, DEBUGCTL, 1);
}

static void go(struct machine *m, unsigned int n)
{
	while (n--)
		vpmu_script_branch(&m->script, VPMU_BRANCH_JMP, true, 0x1000 + n, 0x2000 + n);
}

static const uint8_t kinds[] = { 106, 143 };

#define for_each_kind(m, i) \
	for ((i) = 0; (i) < COUNT_OF(kinds) && ((m) = machine_new(kinds[i], 0)); (i)++, \
	     machine_free(m))

static void test_reserved(void **state)
{
	struct machine *m = machine_new(106, 0);
	uint64_t value;

	(void)state;
	wr(m, SELECT, 0x3ff);
	assert_int_equal(rd(m, SELECT), 0x3ff);
	faults(m, SELECT, 0x400);
	wr(m, TOS, 31);
	faults(m, TOS, 32);
	faults(m, 0x1500, 0);
	faults(m, 0x14ce, 0);
	assert_int_equal(vpmu_arch_rdmsr(m->v, 0x40, &value), VPMU_FAULT);
	wr(m, DEBUGCTL, 0x801);
	assert_int_equal(rd(m, DEBUGCTL), 0x801);
	wr(m, 0xdc3, UINT64_MAX);
	assert_int_equal(rd(m, 0xdc3), 7ull << 61 | 0xffff);
	machine_free(m);

	m = machine_new(143, 0);
	wr(m, 0x14ce, 0x7f000f);
	faults(m, 0x14ce, 0x10);
	faults(m, 0x14ce, 1u << 23);
	assert_int_equal(rd(m, 0x14cf), 32);
	faults(m, 0x14cf, 16);
	faults(m, 0x14cf, 0);
	faults(m, 0x680, 0);
	faults(m, SELECT, 0);
	wr(m, DEBUGCTL, 0x801); /* bit 0 belongs to the other kind */
	assert_int_equal(rd(m, DEBUGCTL), 0x800);
	machine_free(m);
}

static void test_cpuid(void **state)
{
	struct vpmu_cpuid r = { 0, 0, 0, 0 };
	struct machine *m = machine_new(143, 0);

	(void)state;
	assert_true(vpmu_arch_cpuid(m->v, 7, 0, &r));
	assert_int_equal(r.edx, 1u << 19);
	assert_true(vpmu_arch_cpuid(m->v, 0x1c, 0, &r));
	assert_int_equal(r.eax, 8);
	assert_int_equal(r.ebx, 7);
	assert_int_equal(r.ecx, 4);
	assert_int_equal(rd(m, 0x345) & 0x3f, 0x3f);
	machine_free(m);
	m = machine_new(106, 0);
	assert_int_equal(rd(m, 0x345) & 0x3f, 5);
	machine_free(m);
}

/* The newest come first, the oldest are gone; DEPTH forgets them. */
static void test_order(void **state)
{
	struct machine *m;
	unsigned int i, k;

	(void)state;
	for_each_kind(m, i) {
		start(m);
		go(m, 40);
		for (k = 0; k < 32; k++)
			assert_int_equal(from(m, k), 0x1000 + k);
		if (!m->arch)
			continue;
		assert_int_equal(rd(m, 0x1200) >> 56, VPMU_BRANCH_JMP);
		wr(m, 0x14cf, 32);
		for (k = 0; k < 32; k++)
			assert_int_equal(from(m, k), 0);
	}
}

/* Each format shows what it has room for; an entry that the guest writes is as it writes it. */
static void test_marks(void **state)
{
	struct vpmu_cpuid r = { 0, 0, 0, 0 };
	uint64_t wrong = VPMU_LBR_MISPREDICTED;
	struct machine *m;

	(void)state;
	knows = true;
	m = machine_new(143, 0);
	assert_true(vpmu_arch_cpuid(m->v, 0x1c, 0, &r));
	assert_int_equal(r.ecx, 7);
	start(m);
	go(m, 40);
	assert_int_equal(rd(m, 0x1200),
			 wrong | VPMU_LBR_TIMED | (uint64_t)VPMU_BRANCH_JMP << 56 | 7);
	wr(m, 0x1200, 3);
	assert_int_equal(rd(m, 0x1200), 3);
	go(m, 1);
	assert_int_equal(rd(m, 0x1201), 3);
	assert_int_equal(rd(m, 0x1200) & 0xffff, 7);
	machine_free(m);

	m = machine_new(106, 0); /* INFO */
	start(m);
	go(m, 1);
	assert_int_equal(rd(m, 0xdc0 + (uint32_t)rd(m, TOS)), wrong | 7);
	assert_int_equal(from(m, 0), 0x1000);
	machine_free(m);

	m = machine_new(106, 0); /* after a pop, a bit that the guest wrote */
	wr(m, SELECT, 0x3c5);
	start(m);
	vpmu_script_branch(&m->script, VPMU_BRANCH_CALL, true, 1, 2);
	wr(m, 0xdc0 + (uint32_t)rd(m, TOS), 1ull << 61);
	vpmu_script_branch(&m->script, VPMU_BRANCH_CALL, true, 3, 4);
	vpmu_script_branch(&m->script, VPMU_BRANCH_RET, true, 5, 6);
	assert_int_equal(rd(m, 0xdc0 + (uint32_t)rd(m, TOS)) & 1ull << 61, 1ull << 61);
	machine_free(m);

	m = machine_new(60, 0); /* Haswell: a flag of FROM */
	start(m);
	go(m, 1);
	assert_int_equal(rd(m, 0x680 + (uint32_t)rd(m, TOS)), wrong | 0x1000);
	wr(m, 0x680, 0x4000);
	assert_int_equal(rd(m, 0x680), 0x4000);
	wr(m, 0x680, wrong | 0x4000);
	assert_int_equal(rd(m, 0x680), wrong | 0x4000);
	machine_free(m);

	m = machine_of(vpmu_model_find(VPMU_VENDOR_AMD, 0x19, 0x11), 0);
	wr(m, 0xc000010f, 0x40);
	go(m, 1);
	assert_int_equal(rd(m, 0xc0010300), wrong | 0x1000);
	assert_int_equal(rd(m, 0xc0010301), 1ull << 63 | 0x2000);
	wr(m, 0xc0010300, 0x5000);
	assert_int_equal(rd(m, 0xc0010300), 0x5000);
	machine_free(m);
	knows = false;
}

/*
 * Architectural LBR records what it is asked for: without a filter nothing, which Linux
 * asks for with a boot's first instructions:ppp, and after it at once.
 */
static void test_no_filter(void **state)
{
	struct machine *m = machine_new(143, 0);

	(void)state;
	wr(m, 0x14ce, 1);
	go(m, 3);
	assert_int_equal(from(m, 0), 0);
	wr(m, 0x14ce, 0x7f0005);
	go(m, 3);
	assert_int_equal(from(m, 0), 0x1000);
	assert_int_equal(from(m, 2), 0x1002);
	assert_int_equal(from(m, 3), 0);
	machine_free(m);
}

/* An engine's entry of a branch that is not far, written by hand. */
static void test_near(void **state)
{
	static const int32_t by[] = {
		0, 1, -1, 0xffff, 0x10000, -0xffff, -0x10000, -0x10001, 0x3ffffff, -0x4000000,
	};
	struct vpmu_lbr l = { .next = 0 };
	unsigned int i, type;

	(void)state;
	for (i = 0; i < COUNT_OF(by); i++)
		for (type = VPMU_BRANCH_JCC; type < VPMU_BRANCH_FAR; type++) {
			struct vpmu_lbr_entry *e = &l.entry[l.next / sizeof(*e) % VPMU_LBR_RING];

			e->from = 0xffffffff81000000;
			e->to = 0x5a;
			e->info = (uint64_t)(int64_t)VPMU_LBR_NEAR(type, by[i]);
			l.next += VPMU_BRANCH_PUSH;
			assert_ptr_equal(vpmu_lbr_at(&l, 0), e);
			assert_int_equal(e->from, 0xffffffff81000000);
			assert_int_equal(e->to - e->from, (uint64_t)by[i]);
			assert_int_equal(e->info, (uint64_t)type << 56);
			assert_ptr_equal(vpmu_lbr_at(&l, 0), e);
			assert_int_equal(e->info, (uint64_t)type << 56);
		}
}

#define EVTSEL		0x186
#define INSERTS		0x20cc	/* MISC_RETIRED.LBR_INSERTS */

/*
 * Pushes count; dropped, removed and written entries do not. The overflow comes at the
 * push that it has to be.
 */
static void test_inserts(void **state)
{
	struct machine *m;
	unsigned int i, k, pmis;

	(void)state;
	for_each_kind(m, i) {
		uint64_t any = m->arch ? 0x7f0007 : 0, stack = m->arch ? 0x38000d : 0x3c5;
		uint32_t ctl = m->arch ? 0x14ce : SELECT;

		wr(m, EVTSEL, INSERTS | 1 << 20 | 1 << 22 | 1 << 16); /* interrupt, user */
		wr(m, 0x38f, 1);
		go(m, 5);
		assert_int_equal(rd(m, 0xc1), 0);
		start(m);
		go(m, 100);
		vpmu_script_branch(&m->script, VPMU_BRANCH_JMP, false, 1, 2);
		assert_int_equal(rd(m, 0xc1), 100);
		wr(m, ctl, stack);
		go(m, 1);
		for (k = 0; k < 50; k++)
			vpmu_script_branch(&m->script, VPMU_BRANCH_CALL, true, 3, 4);
		for (k = 0; k < 60; k++)
			vpmu_script_branch(&m->script, VPMU_BRANCH_RET, true, 5, 6);
		assert_int_equal(rd(m, 0xc1), 150);
		assert_int_equal(from(m, 0), 0);
		if (!m->arch)
			wr(m, TOS, 7);
		wr(m, ctl, any);
		assert_int_equal(rd(m, 0xc1), 150);
		wr(m, 0xc1, (uint32_t)-3);
		pmis = m->script.n_pmi;
		go(m, 2);
		assert_int_equal(m->script.n_pmi, pmis);
		go(m, 1);
		assert_int_equal(m->script.n_pmi, pmis + 1);
		assert_int_equal(rd(m, 0xc1), 0);
	}
}

/* Calls push, returns pop what reads 0 then; more returns than calls do no harm. */
static void test_call_stack(void **state)
{
	struct machine *m;
	unsigned int i, k;

	(void)state;
	for_each_kind(m, i) {
		if (m->arch)
			wr(m, 0x14ce, 0x38000d);
		else
			wr(m, SELECT, 0x3c5);
		start(m);
		if (m->arch)
			wr(m, 0x14ce, 0x38000d);
		for (k = 0; k < 50; k++)
			vpmu_script_branch(&m->script, VPMU_BRANCH_CALL, true, 100 + k, 1);
		for (k = 0; k < 20; k++)
			vpmu_script_branch(&m->script, VPMU_BRANCH_RET, true, 7, 8);
		go(m, 5);
		for (k = 0; k < 32; k++)
			assert_int_equal(from(m, k), k < 12 ? 129 - k : 0);
		for (k = 0; k < 20; k++)
			vpmu_script_branch(&m->script, VPMU_BRANCH_RET, true, 7, 8);
		vpmu_script_branch(&m->script, VPMU_BRANCH_CALL, true, 55, 1);
		assert_int_equal(from(m, 0), 55);
		assert_int_equal(from(m, 1), 0);
	}
}

/* An overflow freezes: by the status from version 4 on, before by DEBUGCTL. */
static void test_freeze(void **state)
{
	int version;

	(void)state;
	for (version = 2; version <= 5; version++) {
		struct machine *m = machine_new(106, version);

		wr(m, DEBUGCTL, 0x801);
		wr(m, 0xc1, 0xffffffff);
		wr(m, 0x186, 0x5300c0);
		wr(m, 0x38f, 1);
		go(m, 1);
		vpmu_script_run(&m->script, VPMU_BANK_USER, 1);
		assert_int_equal(m->script.n_pmi, 1);
		assert_int_equal(rd(m, STATUS) >> 58 & 1, version >= 4);
		assert_int_equal(rd(m, DEBUGCTL), version >= 4 ? 0x801 : 0x800);
		go(m, 2);
		assert_int_equal(from(m, 0), 0x1000);
		assert_int_equal(from(m, 1), 0);
		wr(m, RESET, rd(m, STATUS));
		wr(m, DEBUGCTL, 0x801);
		go(m, 2);
		assert_int_equal(from(m, 1), 0x1001);
		machine_free(m);
	}
}

static void open_host(struct machine *m, bool pinned)
{
	struct vpmu_perf_attr attr = { .size = sizeof(attr), .cpu = -1 };

	attr.event.size = sizeof(attr.event);
	attr.event.banks = VPMU_BANKS_KERNEL | VPMU_BANKS_USER;
	attr.event.fixed = -1;
	attr.event.slot = -1;
	attr.event.select = 0xc0;
	attr.event.pinned = pinned;
	attr.event.shared = VPMU_SHARED_LBR;
	attr.event.extra = 1;
	assert_int_equal(vpmu_perf_open(&m->host, &attr, &m->cpu, NULL), 0);
	vpmu_script_service(&m->script);
}

/* Lost: empty but for what is written, told; found again when the guest writes a control. */
static void test_lost(void **state)
{
	struct machine *m;
	unsigned int i;

	(void)state;
	for_each_kind(m, i) {
		start(m);
		go(m, 3);
		assert_int_equal(rd(m, LOSS + 3), 0);
		open_host(m, true);
		assert_int_equal(from(m, 0), 0);
		wr(m, m->arch ? 0x1503 : 0x683, 7);
		go(m, 3);
		assert_int_equal(rd(m, m->arch ? 0x1503 : 0x683), 7);
		assert_int_equal(rd(m, LOSS), 1);
		assert_int_equal(rd(m, LOSS + 1), 1ull << 58);
		assert_int_equal(rd(m, LOSS + 3), 1ull << 32 | 0x101);
		assert_false(m->script.record);

		vpmu_perf_close(&m->host);
		assert_int_equal(from(m, 0), 0); /* reading does not try again */
		assert_int_equal(rd(m, LOSS + 3) & 0xff, 1);
		start(m);
		go(m, 2);
		assert_int_equal(from(m, 1), 0x1001);
		assert_int_equal(from(m, 2), 0);
		assert_int_equal(rd(m, m->arch ? 0x1505 : 0x683), 7);
		assert_int_equal(rd(m, LOSS + 3), 2ull << 32 | 0x100);
	}
}

/* Case 1 and case 2: who was there first does not matter, only its class. */
static void test_host_first(void **state)
{
	struct machine *m;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		m = machine_new(106, 0);
		open_host(m, i == 0);
		start(m);
		go(m, 1);
		assert_int_equal(from(m, 0), i == 0 ? 0 : 0x1000);
		assert_int_equal(rd(m, LOSS + 1) >> 58, i == 0);
		assert_int_equal(vpmu_perf_state(&m->host), i == 0 ? VPMU_EVENT_ACTIVE
								  : VPMU_EVENT_INACTIVE);
		vpmu_arch_reset(m->v, false);
		vpmu_perf_close(&m->host);
		machine_free(m);
	}
}

/* Given back after a slice without use, with what is recorded kept. */
static void test_slice(void **state)
{
	struct machine *m;
	unsigned int i;

	(void)state;
	for_each_kind(m, i) {
		start(m);
		go(m, 1);
		assert_false(vpmu_arch_slice(m->v));
		assert_non_null(vpmu_perf_shared_owner(&m->cpu, VPMU_SHARED_LBR));
		wr(m, m->arch ? 0x14ce : DEBUGCTL, 0);
		assert_true(m->script.record);
		assert_true(vpmu_arch_slice(m->v));
		assert_false(vpmu_arch_slice(m->v));
		assert_null(vpmu_perf_shared_owner(&m->cpu, VPMU_SHARED_LBR));
		assert_false(m->script.record);
		memset(m->script.lbr.entry, 0x5a, sizeof(m->script.lbr.entry));
		assert_int_equal(from(m, 0), 0x1000);
		assert_int_equal(rd(m, LOSS + 3), 0);
	}
}

/* Saved, loaded into another, saved: the states are equal; and it continues. */
static void test_state(void **state)
{
	struct machine *m, *other;
	unsigned int i, k;

	(void)state;
	for_each_kind(m, i) {
		uint8_t a[8192], b[8192];
		size_t n, n_b;

		start(m);
		go(m, 37);
		assert_int_equal(vpmu_arch_save(m->v, a, sizeof(a), &n), 0);
		other = machine_new(kinds[i], 0);
		assert_int_equal(vpmu_arch_load(other->v, a, n), 0);
		assert_int_equal(vpmu_arch_save(other->v, b, sizeof(b), &n_b), 0);
		assert_int_equal(n, n_b);
		assert_memory_equal(a, b, n);
		go(other, 2);
		for (k = 0; k < 32; k++)
			assert_int_equal(from(other, k), 0x1000 + (k < 2 ? k : k - 2));
		machine_free(other);
		other = machine_new(kinds[!i], 0);
		assert_int_equal(vpmu_arch_load(other->v, a, n), -VPMU_EINVAL);
		machine_free(other);
	}
}

static void test_reset(void **state)
{
	struct machine *m;
	unsigned int i;

	(void)state;
	for_each_kind(m, i) {
		start(m);
		go(m, 1);
		vpmu_arch_reset(m->v, true);
		go(m, 1);
		assert_int_equal(from(m, 1), 0);
		assert_int_equal(from(m, 0), 0x1000);
		vpmu_arch_reset(m->v, false);
		assert_int_equal(from(m, 0), 0);
	}
}

/*
 * Older formats: number of entries, address of the first, address bits of FROM, SELECT's
 * bits.
 */
static const struct old {
	uint8_t model;
	unsigned int n;
	uint32_t from, to;
	uint64_t address, select;
} olds[] = {
	{ 15, 4, 0x40, 0x60, UINT64_MAX, 0 },
	{ 28, 8, 0x40, 0x60, UINT64_MAX, 0 },
	{ 26, 16, 0x680, 0x6c0, UINT64_MAX >> 1, 0x1ff },
	{ 37, 16, 0x680, 0x6c0, UINT64_MAX >> 1, 0x1ff },
	{ 42, 16, 0x680, 0x6c0, UINT64_MAX >> 1, 0x1ff },
	{ 58, 16, 0x680, 0x6c0, UINT64_MAX >> 1, 0x1ff },
	{ 60, 16, 0x680, 0x6c0, UINT64_MAX >> 3, 0x3ff },
	{ 61, 16, 0x680, 0x6c0, UINT64_MAX >> 3, 0x3ff },
	{ 95, 32, 0x680, 0x6c0, UINT64_MAX, 0x3ff },
};

#define OLD_AT	0xffffffff81000000ull

static void check_old(struct machine *m, const struct old *o, unsigned int newest)
{
	unsigned int tos = (unsigned int)rd(m, TOS), age;

	for (age = 0; age < o->n; age++) {
		unsigned int i = (tos - age) % o->n;

		assert_int_equal(rd(m, o->from + i), (OLD_AT + newest - age) & o->address);
		assert_int_equal(rd(m, o->to + i), OLD_AT + 0x1000 + newest - age);
	}
}

static void test_old(void **state)
{
	const struct old *o;
	struct machine *m;
	unsigned int n;
	uint64_t tos;

	(void)state;
	for (o = olds; o < olds + COUNT_OF(olds); o++) {
		m = machine_new(o->model, 0);
		wr(m, DEBUGCTL, 1);
		for (n = 1; n <= o->n + 3; n++)
			vpmu_script_branch(&m->script, VPMU_BRANCH_CALL, true, OLD_AT + n,
					   OLD_AT + 0x1000 + n);
		check_old(m, o, o->n + 3);
		tos = rd(m, TOS);
		assert_int_equal(tos, (o->n + 3) % o->n);
		faults(m, TOS, o->n);
		refused(m, o->from + o->n);
		refused(m, o->to + o->n);
		refused(m, o->from == 0x40 ? 0x680 : 0x40);
		if (o->model != 95)
			faults(m, 0xdc0, 0);
		if (!o->select)
			faults(m, SELECT, 0);
		else
			faults(m, SELECT, o->select + 1);
		/* Only the top moves when it is written. */
		wr(m, DEBUGCTL, 0);
		wr(m, o->from + tos % o->n, 0x123);
		wr(m, TOS, (tos + 2) % o->n);
		assert_int_equal(rd(m, TOS), (tos + 2) % o->n);
		assert_int_equal(rd(m, o->from + tos % o->n), 0x123);
		wr(m, o->from + tos % o->n, OLD_AT + o->n + 3);
		wr(m, TOS, tos);
		check_old(m, o, o->n + 3);
		machine_free(m);
	}
}

#define AMD_SELECT	0xc000010eu
#define AMD_CFG		0xc000010fu
#define AMD_FROM(i)	(0xc0010300u + 2 * (i))
#define AMD_TO(i)	(0xc0010301u + 2 * (i))
#define AMD_VALID	(1ull << 63)

static void test_amd(void **state)
{
	struct machine *m = machine_of(vpmu_model_find(VPMU_VENDOR_AMD, 0x19, 0x11), 0);
	struct vpmu_cpuid regs = { 0, 0, 0, 0 };
	uint8_t buf[8192];
	size_t used;
	unsigned int i;

	(void)state;
	vpmu_arch_cpuid(m->v, 0x80000022, 0, &regs);
	assert_int_equal(regs.eax & 7, 7);
	assert_int_equal(regs.ebx >> 4 & 0x3f, 16);
	faults(m, AMD_SELECT, 0x200);
	faults(m, AMD_CFG, 1);
	wr(m, DEBUGCTL, 0x800);
	wr(m, AMD_CFG, 0x40);
	assert_int_equal(rd(m, AMD_CFG), 0x40);
	for (i = 1; i <= 20; i++)
		vpmu_script_branch(&m->script, VPMU_BRANCH_RET, true, OLD_AT + i, 0x1000 + i);
	for (i = 0; i < 16; i++) {
		assert_int_equal(rd(m, AMD_FROM(i)), (OLD_AT + 20 - i) & ~AMD_VALID);
		assert_int_equal(rd(m, AMD_TO(i)), AMD_VALID | (0x1000 + 20 - i));
	}
	/* Frozen until acknowledged. */
	wr(m, 0xc0000303, 1ull << 58);
	go(m, 1);
	assert_int_equal(rd(m, AMD_TO(0)), AMD_VALID | 0x1014);
	wr(m, 0xc0000302, 1ull << 58);
	assert_int_equal(rd(m, 0xc0000300), 0);
	go(m, 1);
	assert_int_equal(rd(m, AMD_TO(0)), AMD_VALID | 0x2000);
	/* A written value can be read; one half leaves the other. */
	wr(m, AMD_FROM(1), AMD_VALID | 5);
	assert_int_equal(rd(m, AMD_FROM(1)), AMD_VALID | 5);
	assert_int_equal(rd(m, AMD_TO(1)), AMD_VALID | 0x1014);
	wr(m, AMD_TO(1), 0);
	wr(m, AMD_FROM(1), 0);
	assert_int_equal(rd(m, AMD_TO(1)), 0);
	/* Suppressed. */
	wr(m, AMD_SELECT, 1u << 7);
	go(m, 1);
	assert_int_equal(rd(m, AMD_TO(0)), AMD_VALID | 0x2000);
	wr(m, AMD_SELECT, 0);
	/* After saving and loading it continues. */
	assert_int_equal(vpmu_arch_save(m->v, buf, sizeof(buf), &used), 0);
	wr(m, AMD_CFG, 0);
	go(m, 1);
	assert_int_equal(rd(m, AMD_TO(0)), AMD_VALID | 0x2000);
	assert_int_equal(vpmu_arch_load(m->v, buf, used), 0);
	assert_int_equal(rd(m, AMD_CFG), 0x40);
	go(m, 3);
	assert_int_equal(rd(m, AMD_TO(3)), AMD_VALID | 0x2000);
	assert_int_equal(rd(m, AMD_TO(4)), 0);
	machine_free(m);
}

/*
 * While a host's event, pinned to the CPU, has the records, registers hold what the
 * guest writes, as Linux expects when it looks for them at boot; they hold it in a
 * saved state, too, and when the guest gets the facility.
 */
struct not_owned {
	uint8_t vendor;
	uint16_t family, model;
	uint32_t msr[8]; /* the first one is a control */
	uint64_t on;
};

static void check_written(struct machine *m, const struct not_owned *row)
{
	unsigned int k;

	for (k = 0; row->msr[k]; k++)
		assert_int_equal(rd(m, row->msr[k]), k ? k : row->on);
}

static void test_not_owned(void **state)
{
	static const struct not_owned row[] = {
		{ VPMU_VENDOR_INTEL, 6, 106,
		  { SELECT, TOS, 0x680, 0x6c0, 0xdc0, 0x1dd, 0x1de }, 1 },
		{ VPMU_VENDOR_INTEL, 6, 143,
		  { 0x14ce, 0x1500, 0x1600, 0x1200, 0x1dd, 0x1de, 0x1e0 }, 1 },
		{ VPMU_VENDOR_AMD, 0x19, 0x11,
		  { AMD_CFG, AMD_SELECT, AMD_FROM(3), AMD_TO(3) }, 0x40 },
	};
	struct machine *m, *other;
	uint8_t buf[8192];
	unsigned int i, k;
	size_t used;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		const struct vpmu_model *model = vpmu_model_find(
			row[i].vendor, (uint8_t)row[i].family, (uint8_t)row[i].model);

		m = machine_of(model, 0);
		open_host(m, true);
		vpmu_lbr_record(&m->script.lbr, VPMU_BRANCH_JMP, true, 0xbad, 0xbad);
		for (k = 0; row[i].msr[k]; k++) {
			if (k)
				assert_int_equal(rd(m, row[i].msr[k]), 0);
			wr(m, row[i].msr[k], k ? k : row[i].on);
		}
		go(m, 3);
		check_written(m, &row[i]);
		assert_int_equal(rd(m, LOSS + 1), 1ull << 58);

		assert_int_equal(vpmu_arch_save(m->v, buf, sizeof(buf), &used), 0);
		other = machine_of(model, 0);
		open_host(other, true);
		assert_int_equal(vpmu_arch_load(other->v, buf, used), 0);
		check_written(other, &row[i]);
		assert_int_equal(rd(other, LOSS + 1), 1ull << 58);
		vpmu_perf_close(&other->host);
		machine_free(other);

		vpmu_perf_close(&m->host);
		wr(m, row[i].msr[0], row[i].on);
		check_written(m, &row[i]);
		assert_int_equal(rd(m, LOSS + 1), 0);
		machine_free(m);
	}
}

/* A write of the depth clears the records, with or without the facility. */
static void test_depth(void **state)
{
	struct machine *m = machine_new(143, 0);

	(void)state;
	open_host(m, true);
	wr(m, 0x1500, 7);
	wr(m, 0x14cf, 32);
	assert_int_equal(rd(m, 0x1500), 0);
	vpmu_perf_close(&m->host);
	machine_free(m);
}

/* Loaded where it does not have the facility, a guest that had it has lost it. */
static void test_lost_by_loading(void **state)
{
	struct machine *m, *other;
	uint8_t buf[8192];
	unsigned int i;
	size_t used;

	(void)state;
	for_each_kind(m, i) {
		start(m);
		go(m, 3);
		assert_int_equal(vpmu_arch_save(m->v, buf, sizeof(buf), &used), 0);
		other = machine_new(kinds[i], 0);
		open_host(other, true);
		assert_int_equal(vpmu_arch_load(other->v, buf, used), 0);
		assert_int_equal(from(other, 0), 0);
		assert_int_equal(rd(other, LOSS + 1), 1ull << 58);
		vpmu_perf_close(&other->host);
		start(other);
		go(other, 1);
		assert_int_equal(from(other, 0), 0x1000);
		assert_int_equal(from(other, 1), 0);
		machine_free(other);
	}
}

/* A loss of the records is worth a PMI where the guest has asked for one. */
static void test_pmi(void **state)
{
	struct machine *m = machine_new(106, 0);

	(void)state;
	wr(m, LOSS + 2, 1);
	start(m);
	assert_int_equal(m->script.n_pmi, 0);
	open_host(m, true);
	assert_int_equal(m->script.n_pmi, 1);
	assert_int_equal(rd(m, STATUS), 0);
	vpmu_perf_close(&m->host);
	machine_free(m);
}

/* Recording ends at a PMI, and goes on when the status is acknowledged or DEBUGCTL is written. */
static void test_elsewhere_freezes(void **state)
{
	static const int versions[] = { 2, 4, 5 };
	struct machine *m;

	(void)state;
	for (unsigned int i = 0; i < COUNT_OF(versions); i++) {
		elsewhere = true;
		m = machine_new(106, versions[i]);
		elsewhere = false;
		wr(m, DEBUGCTL, 1 | 1 << 11);
		assert_int_equal(outside, 1 | 1 << 11);
		wr(m, 0x4c1, UINT64_MAX >> 16);
		wr(m, 0x186, 0x5300c0); /* instructions, with PMI */
		wr(m, 0x38f, 1);
		vpmu_script_run(&m->script, VPMU_BANK_USER, 1);
		assert_int_equal(m->script.n_pmi, 1);
		assert_int_equal(outside & 1, 0);
		assert_int_equal(rd(m, DEBUGCTL) & 1, versions[i] >= 4);
		if (versions[i] >= 4)
			wr(m, RESET, rd(m, STATUS));
		else
			wr(m, DEBUGCTL, 1 | 1 << 11);
		assert_int_equal(outside, 1 | 1 << 11);
		wr(m, 0x186, 0);
		vpmu_arch_reset(m->v, versions[i] == 2); /* an INIT once, else a RESET */
		assert_int_equal(outside, 0);
		machine_free(m);
	}
}

/* A state that is loaded says whether to record. */
static void test_elsewhere_moves(void **state)
{
	struct machine *m, *to;
	uint8_t saved[8192];
	size_t bytes;

	(void)state;
	elsewhere = true;
	m = machine_new(106, 0);
	to = machine_new(106, 0);
	elsewhere = false;
	wr(m, DEBUGCTL, 1);
	assert_int_equal(vpmu_arch_save(m->v, saved, sizeof(saved), &bytes), 0);
	wr(m, DEBUGCTL, 0);
	assert_int_equal(outside, 0);
	assert_int_equal(vpmu_arch_load(to->v, saved, bytes), 0);
	assert_int_equal(outside, 1);
	assert_int_equal(rd(to, DEBUGCTL), 1);
	wr(to, DEBUGCTL, 0);
	machine_free(m);
	machine_free(to);
}

/* Accesses come here while the embedder has lost the records. The guest is told. */
static void test_elsewhere_lost(void **state)
{
	static const uint32_t registers[] = { 0x680, 0x69f, 0x6c0, 0xdc0 };
	struct vpmu_lbr_info info;
	struct machine *m;

	(void)state;
	elsewhere = true;
	m = machine_new(106, 0);
	elsewhere = false;
	again = 0;
	lost = true;
	assert_int_equal(rd(m, LOSS + 3), 0);
	wr(m, DEBUGCTL, 1);
	vpmu_arch_lbr_elsewhere(m->v, true);
	assert_int_equal(rd(m, LOSS + 3), 0);
	vpmu_arch_lbr_elsewhere(m->v, false);
	assert_int_equal(rd(m, LOSS + 3), 1ull << 32 | 0x101);
	assert_int_equal(rd(m, LOSS + 1), 1ull << 58);
	assert_true(vpmu_arch_lbr_info(m->v, &info));
	assert_false(info.owned);
	wr(m, SELECT, 0x1c5);
	wr(m, TOS, 7);
	for (unsigned int i = 0; i < COUNT_OF(registers); i++) {
		assert_int_equal(rd(m, registers[i]), 0);
		wr(m, registers[i], 0x1000 + i);
		assert_int_equal(rd(m, registers[i]), 0x1000 + i);
	}
	assert_int_equal(again, 0);
	wr(m, DEBUGCTL, 1);
	assert_int_equal(again, 1); /* a try */
	wr(m, DEBUGCTL, 0);
	assert_int_equal(outside, 0);
	wr(m, DEBUGCTL, 1);
	assert_int_equal(outside, 1);
	vpmu_arch_lbr_elsewhere(m->v, true);
	assert_int_equal(rd(m, LOSS + 3), 2ull << 32 | 0x100);
	assert_int_equal(rd(m, SELECT), 0x1c5); /* the embedder reads them */
	assert_int_equal(rd(m, TOS), 7);
	assert_int_equal(rd(m, 0x69f), 0x1001);
	vpmu_arch_lbr_elsewhere(m->v, false);
	assert_int_equal(rd(m, 0x69f), 0);
	assert_int_equal(rd(m, SELECT), 0x1c5);
	wr(m, DEBUGCTL, 0);
	assert_true(vpmu_arch_slice(m->v)); /* an access */
	assert_int_equal(rd(m, LOSS + 3), 3ull << 32 | 0x101);
	assert_false(vpmu_arch_slice(m->v));
	assert_int_equal(rd(m, LOSS + 3), 4ull << 32 | 0x100);
	lost = false;
	machine_free(m);
}

/* While guests record without the records, each slice is a try, if lost counters have them. */
static void test_elsewhere_regains(void **state)
{
	struct machine *m;

	(void)state;
	elsewhere = true;
	regains = true;
	m = machine_new(106, 0);
	elsewhere = false;
	regains = false;
	again = 0;
	lost = true;
	wr(m, DEBUGCTL, 1);
	assert_true(vpmu_arch_slice(m->v));
	assert_int_equal(again, 0);
	vpmu_arch_lbr_elsewhere(m->v, false);
	assert_true(vpmu_arch_slice(m->v));
	assert_int_equal(again, 1);
	vpmu_arch_lbr_elsewhere(m->v, true);
	for (unsigned int i = 0; i < 40; i++)
		assert_true(vpmu_arch_slice(m->v));
	assert_int_equal(again, 1);
	wr(m, DEBUGCTL, 0);
	lost = false;
	machine_free(m);
}

/* The embedder has the legacy records, and this PMU no part in them but when to record. */
static void test_elsewhere(void **state)
{
	struct vpmu_arch_config cfg = { .size = sizeof(cfg), .lbr_elsewhere = true };
	struct machine *m;
	struct vpmu_error err;
	size_t size;

	(void)state;
	elsewhere = true;
	m = machine_new(106, 0);
	elsewhere = false;
	assert_int_equal(rd(m, 0x345) & VPMU_CAP_LBR, VPMU_CAP_LBR_INFO);
	wr(m, DEBUGCTL, 1 | 1 << 12);
	assert_int_equal(rd(m, DEBUGCTL), 1 | 1 << 12);
	assert_int_equal(outside, 1);
	assert_false(m->script.record);
	wr(m, DEBUGCTL, 0);
	faults(m, 0x14ce, 1);
	cfg.provider = &m->vcpu.provider;
	cfg.ops = &m->script.ops;
	cfg.ctx = &m->script;
	cfg.n_fixed = -1;
	cfg.model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 143);
	cfg.capabilities = cfg.model->capabilities;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), -VPMU_EINVAL);
	cfg.capabilities = 0;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), -VPMU_EINVAL);
	machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elsewhere), cmocka_unit_test(test_elsewhere_lost),
		cmocka_unit_test(test_elsewhere_regains),
		cmocka_unit_test(test_elsewhere_freezes), cmocka_unit_test(test_elsewhere_moves),
		cmocka_unit_test(test_old), cmocka_unit_test(test_amd),
		cmocka_unit_test(test_not_owned), cmocka_unit_test(test_depth),
		cmocka_unit_test(test_lost_by_loading), cmocka_unit_test(test_pmi),
		cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_cpuid),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_no_filter),
		cmocka_unit_test(test_call_stack),
		cmocka_unit_test(test_inserts),
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_freeze),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_host_first),
		cmocka_unit_test(test_slice),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
