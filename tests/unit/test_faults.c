// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Whatever call of a hook or of the provider fails, the first, the second and so on, or
 * all from one on: the guest gets what the documents name, no count is wrong that is not
 * told to be, and once calls succeed again the guest's next try is exact.
 */
#include "unit.h"

#include <vpmu/loss.h>
#include <vpmu/result.h>

#include "faults.h"
#include "pebs_rig.h"
#include "pv_rig.h"

#define ENOMEM_HERE	12 /* an errno of the host's that the core knows nothing of */
#define CALLS_MAX	2000
#define STATE_MAX	16384

/* Run @test with each call failing in turn; the last time none did. */
static void each_call(void (*test)(void))
{
	static const int codes[] = { -VPMU_EBUSY, -VPMU_ENOENT, -ENOMEM_HERE };
	unsigned int i, on, at, hits = 0;

	for (i = 0; i < COUNT_OF(codes); i++)
		for (on = 0; on < 2; on++)
			for (at = 1;; at++) {
				memset(&faults, 0, sizeof(faults));
				faults.at = at;
				faults.on = on;
				faults.code = codes[i];
				test();
				if (!faults.hit[0])
					break;
				hits++;
				assert_true(at < CALLS_MAX);
			}
	assert_true(hits > 0);
	faults.at = 0;
}

/* Says where a test has ended that did not end well. */
static int tell(void **state)
{
	(void)state;
	if (faults.at)
		print_message("call %u%s, %s, create says %d\n", faults.at,
			      faults.on ? " and all behind it" : "",
			      faults.hit[0] ? faults.hit[0] : "none", faults.code);
	faults.at = 0;
	return 0;
}

static void calls_succeed(void)
{
	faults.at = 0;
}

/* No more has gone wrong than commits, whose word is checked before it is believed. */
static bool harmless(void)
{
	return !faults_hit_other("commit");
}

/* The architectural PMU ------------------------------------------------------------ */

#define EVTSEL		0x186
#define A_PMC		0x4c1
#define FIXED		0x309
#define FIXED_CTRL	0x38d
#define GLOBAL		0x38f
#define LOSS		VPMU_MSR_LOSS
#define INSTRUCTIONS	0x4300c0ull /* in both rings */
#define BRANCHES	0x4300c4ull
#define INT		(1ull << 20)
#define MASK48		(((uint64_t)1 << 48) - 1)
#define FIXED_0		8 /* its number among an Icelake's counters */

static void jumps(struct pebs_rig *r, unsigned int n)
{
	while (n--) {
		vpmu_script_branch(&r->script, VPMU_BRANCH_JMP, true, 0x1000 + n, 0x2000 + n);
		vpmu_script_step(&r->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
	}
}

static struct pebs_rig *machine(uint8_t vendor, uint16_t family, uint16_t model)
{
	struct pebs_rig *r = pebs_rig_new_model(vpmu_model_find(vendor, family, model), 0,
						0x40000100);

	faults_provider(&r->direct.provider);
	return r;
}

static struct pebs_rig *icelake(void)
{
	return machine(VPMU_VENDOR_INTEL, 6, 106);
}

static void machine_done(struct pebs_rig *r)
{
	assert_null(r->script.broken);
	vpmu_arch_reset(r->v, false);
	assert_int_equal(r->script.demand, 0); /* nothing is left that counts */
	pebs_rig_free(r);
}

static void select_events(struct pebs_rig *r)
{
	wr(r, EVTSEL, 0);
	wr(r, EVTSEL + 1, 0);
	wr(r, FIXED_CTRL, 0);
	wr(r, EVTSEL, INSTRUCTIONS);
	wr(r, EVTSEL + 1, BRANCHES | INT);
	wr(r, FIXED_CTRL, 3);
}

/* The values of a counter and its registers of losses. */
struct counted {
	uint64_t count, enabled, running;
	uint8_t latest;
};

static struct counted counted(struct pebs_rig *r, unsigned int p)
{
	struct counted c;

	c.count = p == FIXED_0 ? rd(r, FIXED) : rd(r, A_PMC + p);
	c.enabled = rd(r, LOSS + 0x10 + 4 * p);
	c.running = rd(r, LOSS + 0x11 + 4 * p);
	c.latest = (uint8_t)(rd(r, LOSS + 0x12 + 4 * p) >> 8);
	return c;
}

static void count(void)
{
	static const unsigned int used[] = { 0, 1, FIXED_0 };
	struct pebs_rig *r = icelake();
	struct counted was[3], now;
	unsigned int i;

	wr(r, A_PMC + 1, -(uint64_t)50 & MASK48);
	select_events(r);
	wr(r, GLOBAL, 3 | 1ull << 32);
	jumps(r, 200);
	wr(r, GLOBAL, 0);
	for (i = 0; i < 3; i++) {
		was[i] = counted(r, used[i]);
		if (used[i] == 1)
			was[i].count = (was[i].count + 50) & MASK48;
		/* One instruction is one cycle: what was counted is how long. */
		assert_int_equal(was[i].enabled, 200);
		assert_int_equal(was[i].running, was[i].count);
		assert_int_equal(was[i].latest != 0, was[i].running != 200);
		if (harmless())
			assert_int_equal(was[i].count, 200);
	}
	assert_int_equal(r->n_pmi, was[1].count > 50);

	calls_succeed();
	select_events(r);
	wr(r, GLOBAL, 3 | 1ull << 32);
	jumps(r, 100);
	wr(r, GLOBAL, 0);
	for (i = 0; i < 3; i++) {
		now = counted(r, used[i]);
		if (used[i] == 1)
			now.count = (now.count + 50) & MASK48;
		assert_int_equal(now.enabled - was[i].enabled, 100);
		assert_int_equal(now.running - was[i].running, 100);
		assert_int_equal(now.count - was[i].count, 100);
	}
	machine_done(r);
}

static void test_count(void **state)
{
	(void)state;
	each_call(count);
}

/* Each kind's registers: where it starts, FROM of the newest. */
static const struct lbr_kind {
	uint8_t vendor;
	uint16_t family, model;
	uint32_t start, from, step;
	uint64_t value;
} lbr_kinds[] = {
	{ VPMU_VENDOR_INTEL, 6, 106, 0x1d9, 0x680, 1, 1 },
	{ VPMU_VENDOR_INTEL, 6, 143, 0x14ce, 0x1500, 1, 0x7f0007 },
	{ VPMU_VENDOR_AMD, 25, 17, 0xc000010f, 0xc0010300, 2, 1 << 6 },
};

static const struct lbr_kind *lbr_kind = lbr_kinds;

static uint32_t newest(struct pebs_rig *r)
{
	return lbr_kind->from + (lbr_kind == lbr_kinds ? (uint32_t)rd(r, 0x1c9) : 0);
}

/* Records between two equal readings of LOSS_LBR without a reason are the guest's own. */
static void records(void)
{
	struct pebs_rig *r = machine(lbr_kind->vendor, lbr_kind->family, lbr_kind->model);
	uint64_t before, from;
	unsigned int turn;

	for (turn = 0; turn < 2; turn++) {
		wr(r, lbr_kind->start, 0);
		wr(r, lbr_kind->start, lbr_kind->value);
		before = rd(r, VPMU_MSR_LOSS_LBR);
		jumps(r, 40);
		from = rd(r, newest(r));
		if (before & 0xff || rd(r, VPMU_MSR_LOSS_LBR) != before)
			assert_int_equal(from, 0);
		else
			assert_int_equal(from, 0x1000);
		if (harmless() || turn)
			assert_int_equal(from, 0x1000);
		calls_succeed();
	}
	wr(r, lbr_kind->start, 0);
	machine_done(r);
}

static void test_records(void **state)
{
	(void)state;
	for (lbr_kind = lbr_kinds; lbr_kind < lbr_kinds + COUNT_OF(lbr_kinds); lbr_kind++)
		each_call(records);
	lbr_kind = lbr_kinds;
}

/* PEBS */

#define DS		(RIG_LINEAR + 0x800)
#define BUFFER		(RIG_LINEAR + 2 * RIG_PAGE - 40) /* the second one crosses a page */
#define BUFFER_END	(BUFFER + RIG_PAGE)
#define RECORD		32u /* the basic group */

static void pebs_start(struct pebs_rig *r)
{
	wr(r, GLOBAL, 0);
	pebs_rig_store(r, DS + 0x20, BUFFER);
	pebs_rig_store(r, DS + 0x28, BUFFER);
	pebs_rig_store(r, DS + 0x30, BUFFER_END);
	pebs_rig_store(r, DS + 0x38, BUFFER_END);
	pebs_rig_store(r, DS + 0x40, -(uint64_t)7 & MASK48);
	wr(r, 0x600, DS);
	wr(r, 0x3f1, 0);
	wr(r, EVTSEL, 0);
	wr(r, A_PMC, -(uint64_t)7 & MASK48);
	wr(r, EVTSEL, INSTRUCTIONS);
	wr(r, 0x3f1, 1);
	wr(r, GLOBAL, 1);
}

/* Published are complete records, of instructions that ran. Returns their number. */
static unsigned int pebs_check(const struct pebs_rig *r, uint64_t first)
{
	uint64_t index = pebs_rig_load(r, DS + 0x28), at, ip;
	unsigned int n = 0;

	assert_true(index >= BUFFER && index <= BUFFER_END && (index - BUFFER) % RECORD == 0);
	for (at = BUFFER; at < index; at += RECORD, n++) {
		ip = pebs_rig_load(r, at + 8);
		assert_int_equal(pebs_rig_load(r, at), (uint64_t)RECORD << 48);
		assert_true(ip >= RIG_CODE + 4 * first);
		assert_true(ip < RIG_CODE + 4 * pebs_rig_count(r));
		assert_int_equal(pebs_rig_load(r, at + 16), 1);
	}
	return n;
}

/* Outside of the buffer and of its index nothing is written. */
static void pebs_only(const struct pebs_rig *r, const uint8_t *before)
{
	const size_t index = DS + 0x28 - RIG_LINEAR, from = BUFFER - RIG_LINEAR,
		     to = BUFFER_END - RIG_LINEAR;

	assert_memory_equal(r->ram, before, index);
	assert_memory_equal(r->ram + index + 8, before + index + 8, from - index - 8);
	assert_memory_equal(r->ram + to, before + to, RIG_RAM - to);
}

static void samples(void)
{
	struct pebs_rig *r = pebs_rig_new(4, 0, NULL);
	static uint8_t before[RIG_RAM];
	uint64_t start;
	unsigned int n;

	faults_provider(&r->direct.provider);
	pebs_start(r);
	memcpy(before, r->ram, RIG_RAM);
	pebs_rig_run(r, 40);
	n = pebs_check(r, 0);
	pebs_only(r, before);
	/* At 8, 16, ...: the instruction after the one that wraps. */
	if (harmless())
		assert_int_equal(n, 5);
	else
		assert_true(n <= 5);
	assert_int_equal(r->n_pmi, 0);

	calls_succeed();
	pebs_start(r);
	start = pebs_rig_count(r);
	pebs_rig_run(r, 40);
	assert_int_equal(pebs_check(r, start), 5);
	assert_int_equal(pebs_rig_load(r, BUFFER + 8), RIG_CODE + 4 * (start + 7));
	machine_done(r);
}

static void test_samples(void **state)
{
	(void)state;
	each_call(samples);
}

/* Saving tells that it failed, and changes nothing. */
static void arch_save(void)
{
	static uint8_t state[STATE_MAX];
	struct pebs_rig *r;
	size_t used;
	int ret;
	uint32_t at = faults.at;

	calls_succeed();
	r = icelake();
	select_events(r);
	wr(r, GLOBAL, 3 | 1ull << 32);
	jumps(r, 30);
	faults.n = 0;
	faults.at = at;
	ret = vpmu_arch_save(r->v, state, sizeof(state), &used);
	assert_int_equal(ret != 0, faults_hit("save"));
	calls_succeed();
	jumps(r, 30);
	assert_int_equal(rd(r, A_PMC), 60);
	assert_int_equal(rd(r, A_PMC + 1), 60);
	machine_done(r);
}

static void test_arch_save(void **state)
{
	(void)state;
	each_call(arch_save);
}

/*
 * Into a PMU that counts something else. Refused, it has the registers that it had;
 * loaded, it has the others, and what cannot be counted is told.
 */
static void arch_load(void)
{
	static uint8_t state[STATE_MAX];
	struct pebs_rig *r, *from;
	struct counted c;
	uint32_t at = faults.at;
	size_t used;
	int ret;

	calls_succeed();
	from = icelake();
	select_events(from);
	wr(from, GLOBAL, 3 | 1ull << 32);
	wr(from, 0x1d9, 1);
	jumps(from, 30);
	assert_int_equal(vpmu_arch_save(from->v, state, sizeof(state), &used), 0);
	machine_done(from);
	r = icelake();
	wr(r, EVTSEL + 1, INSTRUCTIONS);
	wr(r, GLOBAL, 2);
	jumps(r, 5);
	faults.n = 0;
	faults.at = at;
	ret = vpmu_arch_load(r->v, state, used);
	vpmu_script_service(&r->script);
	assert_int_equal(ret != 0, faults_hit("load"));
	assert_int_equal(rd(r, EVTSEL), ret ? 0 : INSTRUCTIONS);
	assert_int_equal(rd(r, EVTSEL + 1), ret ? INSTRUCTIONS : BRANCHES | INT);
	assert_int_equal(rd(r, GLOBAL), ret ? 2 : (3 | 1ull << 32));
	assert_int_equal(rd(r, A_PMC), ret ? 0 : 30);
	assert_int_equal(rd(r, A_PMC + 1), ret ? 5 : 30);
	assert_int_equal(rd(r, FIXED), ret ? 0 : 30);
	jumps(r, 10);
	c = counted(r, 1);
	assert_int_equal(c.enabled, ret ? 15 : 40);
	assert_int_equal(c.count, c.running);
	assert_int_equal(c.latest != 0, c.running != c.enabled);

	calls_succeed();
	select_events(r);
	wr(r, GLOBAL, 0);
	wr(r, GLOBAL, 3 | 1ull << 32);
	jumps(r, 10);
	assert_int_equal(rd(r, A_PMC + 1), c.count + 10);
	machine_done(r);
}

static void test_arch_load(void **state)
{
	(void)state;
	each_call(arch_load);
}

/* While it is set up: refused with a reason, or what is not there is not offered. */
static void set_up(void)
{
	struct pebs_rig *r = pebs_rig_new_model(vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106), 0,
						0);
	struct vpmu_arch_config cfg = { .size = sizeof(cfg) };
	struct vpmu_error err = { NULL, 0, 0 };
	struct vpmu_cpuid regs = { 0, 0, 0, 0 };
	size_t size;
	int ret;

	faults_provider(&r->direct.provider);
	cfg.model = &r->model;
	cfg.n_fixed = -1;
	cfg.capabilities = r->model.capabilities;
	cfg.provider = &r->direct.provider;
	cfg.ops = &r->script.ops;
	cfg.ctx = r;
	ret = vpmu_arch_size(&cfg, &size, &err);
	if (!ret) {
		free(r->v);
		r->v = malloc(size);
		ret = vpmu_arch_init(r->v, &cfg, &err);
	}
	if (ret) {
		assert_non_null(err.what);
		calls_succeed();
		assert_int_equal(vpmu_arch_init(r->v, &cfg, &err), 0);
	}
	calls_succeed();
	assert_true(vpmu_arch_cpuid(r->v, 0xa, 0, &regs));
	/* Instructions are not offered, or they count. */
	if (!(regs.ebx >> 1 & 1)) {
		wr(r, EVTSEL, INSTRUCTIONS);
		wr(r, GLOBAL, 1);
		jumps(r, 10);
		assert_int_equal(rd(r, A_PMC), 10);
	}
	machine_done(r);
}

static void test_set_up(void **state)
{
	(void)state;
	each_call(set_up);
}

/* The paravirtual PMU -------------------------------------------------------------- */

static const struct vpmu_pv_config config = {
	.features = VPMU_PV_HAS_GROUPS | VPMU_PV_HAS_VECTOR | VPMU_PV_HAS_BRANCHES, .alone = true,
};

static struct pv_rig *guest(void)
{
	struct pv_rig *r = pv_rig_new(4, &config);
	unsigned int i;

	assert_non_null(r);
	for (i = 0; i < PV_RIG_VCPUS; i++)
		faults_provider(&r->vcpu[i].vcpu.provider);
	return r;
}

static void guest_done(struct pv_rig *r)
{
	const char *bad = pv_rig_free(r);

	if (bad)
		fail_msg("%s", bad);
}

/* A result of an operation that the table of them names. */
static void documented(const struct vpmu_pv_op *op)
{
	switch (-op->result) {
	case 0:
	case VPMU_PV_ENOENT:
		return;
	case VPMU_PV_EEXIST: /* it had been done, and could not be answered */
	case VPMU_PV_EACCES:
	case VPMU_PV_ENOSPC:
		assert_int_equal(op->op, VPMU_PV_OPEN);
		return;
	case VPMU_PV_EINVAL:
	case VPMU_PV_EBUSY:
		assert_int_not_equal(op->op, VPMU_PV_DISABLE);
		return;
	default:
		fail_msg("operation %u says %d", op->op, op->result);
	}
}

static void batch(struct pv_rig *r, struct vpmu_pv_op *op, unsigned int n)
{
	int64_t ret = pv_rig_batch(r, 0, op, n);
	unsigned int i;

	if (!faults.at)
		assert_int_equal(ret, n);
	if (ret == -VPMU_PV_EFAULT)
		return;
	assert_int_equal(ret, n);
	for (i = 0; i < n; i++) {
		documented(&op[i]);
		if (!faults.at)
			assert_int_equal(op[i].result, 0);
	}
}

static void set_page(struct pv_rig *r, bool branches)
{
	int64_t ret = branches ? pv_rig_setup_branches(r, 0)
			       : pv_rig_setup(r, 0, PV_RIG_SLOTS(0), 0);

	if (!faults.at)
		assert_int_equal(ret, 0);
	else
		assert_true(!ret || ret == -VPMU_PV_EFAULT || ret == -VPMU_PV_EADDRNOTAVAIL);
}

/* A sampler and a group; 55 branches. */
static void open_all(struct pv_rig *r)
{
	struct vpmu_pv_op op[3];

	op[0] = pv_rig_open(1, 0, PV_INSTRUCTIONS);
	op[1] = pv_rig_open(2, 0, PV_BRANCHES);
	op[2] = pv_rig_open(3, 0, PV_INSTRUCTIONS);
	op[2].u.open.leader = 2;
	batch(r, op, 3);
	op[0] = pv_rig_enable(1, 0, 10, 10);
	op[1] = pv_rig_enable(2, 1, 0, 0);
	op[2] = pv_rig_enable(3, 2, 0, 0);
	batch(r, op, 3);
}

static void stop_all(struct pv_rig *r)
{
	struct vpmu_pv_op op[3];
	uint32_t id;

	for (id = 1; id <= 3; id++)
		op[id - 1] = pv_rig_op(VPMU_PV_DISABLE, id);
	batch(r, op, 3);
}

/* One instruction is one cycle, so what was counted is the time running. */
static void slots(struct pv_rig *r)
{
	unsigned int s;

	for (s = 0; s < 3; s++) {
		const struct vpmu_pv_slot *slot = pv_rig_slot(r, 0, s);

		assert_int_equal(slot->count, slot->running);
		assert_true(slot->running <= slot->enabled && slot->enabled <= 55);
		if (!harmless() && faults.at)
			continue;
		assert_int_equal(slot->count, 55);
		assert_int_equal(slot->enabled, 55);
		assert_int_equal(slot->overflows, s ? 0 : 7);
		assert_int_equal(slot->flags & 0xffff, 0);
	}
}

static void version_2(struct pv_rig *r)
{
	struct vpmu_pv_op op[3];
	uint32_t id;

	set_page(r, false);
	open_all(r);
	pv_rig_run_branches(r, 0, 35);
	op[0] = pv_rig_op(VPMU_PV_READ, 1);
	op[1] = pv_rig_op(VPMU_PV_PERIOD, 1);
	op[1].u.enable.left = 5;
	op[1].u.enable.period = 5;
	batch(r, op, 2);
	pv_rig_run_branches(r, 0, 20);
	stop_all(r);
	slots(r);
	vpmu_pv_slice(r->vcpu[0].pv);
	vpmu_pv_slice(r->vcpu[0].pv);
	for (id = 1; id <= 3; id++)
		op[id - 1] = pv_rig_op(VPMU_PV_CLOSE, id);
	batch(r, op, 3);
}

static void reset_all(struct pv_rig *r)
{
	assert_int_equal(pv_rig_call(r, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0), 0);
	memset(pv_rig_page(r, 0), 0, PV_RIG_PAGE);
	memset(pv_rig_branches(r, 0), 0, PV_RIG_PAGE);
}

static void pv_2(void)
{
	struct pv_rig *r = guest();

	version_2(r);
	calls_succeed();
	reset_all(r);
	version_2(r);
	guest_done(r);
}

static void test_pv_2(void **state)
{
	(void)state;
	each_call(pv_2);
}

/* In version 1 the guest only learns the error codes. */
static void documented_1(int64_t ret, bool open)
{
	if (!faults.at)
		assert_int_equal(ret, 0);
	if (ret && open)
		assert_true(ret == -VPMU_PV_EFAULT || ret == -VPMU_PV_ENXIO ||
			    ret == -VPMU_PV_ENOENT || ret == -VPMU_PV_EADDRNOTAVAIL);
	else if (ret)
		assert_int_equal(ret, -VPMU_PV_ENOENT);
}

static void version_1(struct pv_rig *r)
{
	uint32_t all[4];
	uint64_t count;
	int i;

	for (i = 0; i < 2; i++) {
		memset(pv_rig_event_1(r, i), 0, 16);
		documented_1(pv_rig_open_1(r, 0, i, i ? PV_BRANCHES : PV_INSTRUCTIONS,
					   i ? 0 : 10, 0), true);
		documented_1(pv_rig_do_1(r, 0, VPMU_PV1_ENABLE, i), false);
	}
	pv_rig_run_branches(r, 0, 35);
	for (i = 0; i < 2; i++) {
		documented_1(pv_rig_do_1(r, 0, VPMU_PV1_READ, i), false);
		documented_1(pv_rig_do_1(r, 0, VPMU_PV1_ENABLE, i), false);
	}
	pv_rig_run_branches(r, 0, 20);
	for (i = 0; i < 2; i++) {
		documented_1(pv_rig_do_1(r, 0, VPMU_PV1_DISABLE, i), false);
		/* All, or the part before or after the second ENABLE, or nothing. */
		count = pv_rig_event_1(r, i)->count;
		assert_true(count == 55 || ((!harmless() && faults.at) &&
					    (count == 35 || count == 20 || count == 0)));
		assert_int_equal(pv_rig_event_1(r, i)->overflows, i ? 0 : count / 10);
		documented_1(pv_rig_do_1(r, 0, VPMU_PV1_CLOSE, i), false);
	}
	memcpy(all, pv_rig_event_1(r, 0), 16);
	pv_rig_run_branches(r, 0, 35);
	assert_memory_equal(all, pv_rig_event_1(r, 0), 16);
}

static void pv_1(void)
{
	struct pv_rig *r = guest();

	version_1(r);
	calls_succeed();
	reset_all(r);
	version_1(r);
	guest_done(r);
}

static void test_pv_1(void **state)
{
	(void)state;
	each_call(pv_1);
}

/* Records are all there, or the page says that there are none. */
static void branches(struct pv_rig *r)
{
	const struct vpmu_pv_branches *b = pv_rig_branches(r, 0);
	struct vpmu_pv_op op = pv_rig_open(1, VPMU_PV_EVENT_BRANCHES, PV_BRANCHES);
	uint64_t i;

	set_page(r, true);
	batch(r, &op, 1);
	op = pv_rig_enable(1, 0, 5, 0);
	batch(r, &op, 1);
	for (i = 1; i <= 12; i++) {
		vpmu_script_branch(&r->vcpu[0].script, VPMU_BRANCH_JMP, true, i, 100 + i);
		pv_rig_run_branches(r, 0, 1);
	}
	assert_int_equal(b->seq % 2, 0);
	if (b->n || !faults.at) {
		assert_int_equal(b->n, 5);
		for (i = 0; i < 5; i++)
			assert_int_equal(b->entry[i].from, 5 - i);
	}
	op = pv_rig_op(VPMU_PV_DISABLE, 1);
	batch(r, &op, 1);
}

static void pv_branches(void)
{
	struct pv_rig *r = guest();

	branches(r);
	calls_succeed();
	reset_all(r);
	branches(r);
	guest_done(r);
}

static void test_pv_branches(void **state)
{
	(void)state;
	each_call(pv_branches);
}

/* Saved with a failing call, and loaded with one: refused it is as after RESET. */
static void pv_move(void)
{
	static uint8_t state[STATE_MAX];
	struct pv_rig *a, *b;
	uint32_t at = faults.at, calls;
	size_t used;
	int ret;

	calls_succeed();
	a = guest();
	set_page(a, true);
	open_all(a);
	assert_int_equal(pv_rig_open_1(a, 0, 5, PV_INSTRUCTIONS, 0, 0), 0);
	assert_int_equal(pv_rig_do_1(a, 0, VPMU_PV1_ENABLE, 5), 0);
	pv_rig_run_branches(a, 0, 35);
	b = guest();
	faults.n = 0;
	faults.at = at;
	ret = vpmu_pv_vm_save(a->vm, state, sizeof(state), &used);
	assert_int_equal(ret != 0, faults_hit("save"));
	calls = faults.n;
	calls_succeed();
	assert_int_equal(vpmu_pv_vm_save(a->vm, state, sizeof(state), &used), 0);
	memcpy(b->ram, a->ram, PV_RIG_RAM);
	faults.n = calls;
	faults.at = at;
	ret = vpmu_pv_vm_load(b->vm, state, used);
	assert_int_equal(ret != 0, faults_hit("load") || faults_hit("gpa_map"));
	if (ret)
		assert_non_null(vpmu_pv_vm_refused(b->vm)->what);
	memcpy(a->ram, b->ram, PV_RIG_RAM);
	pv_rig_service(b, 0);
	pv_rig_run_branches(b, 0, 20);
	if (ret) /* nothing is mapped now */
		assert_memory_equal(a->ram, b->ram, PV_RIG_RAM);
	calls_succeed();
	if (!ret) {
		const struct vpmu_pv_slot *slot = pv_rig_slot(b, 0, 1);
		uint32_t generation = slot->flags >> 16;

		stop_all(b);
		assert_int_equal(slot->enabled, 55);
		assert_int_equal(slot->count, slot->running);
		/* Not all counted: the guest was told before. */
		if (slot->count != 55)
			assert_true(generation && pv_rig_page(b, 0)->changed[0] & 2);
	}
	reset_all(b);
	version_2(b);
	guest_done(a);
	guest_done(b);
}

static void test_pv_move(void **state)
{
	(void)state;
	each_call(pv_move);
}

/*
 * Failing providers and clocks, with correct calls ------------------------------------
 */

/* The host's events die: lost and told, and counting again when a gate opens. */
static void test_arch_dies(void **state)
{
	struct pebs_rig *r = icelake();
	struct counted c;

	(void)state;
	select_events(r);
	wr(r, GLOBAL, 3 | 1ull << 32);
	wr(r, 0x1d9, 1);
	jumps(r, 40);
	assert_int_equal(rd(r, newest(r)), 0x1000);
	faults_die();
	vpmu_script_service(&r->script);
	jumps(r, 30);
	assert_int_equal(rd(r, LOSS + 1), 3 | 1ull << 32 | VPMU_LOSS_STATUS_LBR);
	c = counted(r, 0);
	assert_int_equal(c.count, 40);
	assert_int_equal(c.running, 40);
	assert_int_equal(c.enabled, 70);
	assert_int_equal(c.latest, VPMU_LOSS_LOST);
	assert_int_equal(rd(r, newest(r)), 0);
	wr(r, GLOBAL, 0);
	wr(r, GLOBAL, 3 | 1ull << 32);
	wr(r, 0x1d9, 1);
	jumps(r, 30);
	assert_int_equal(rd(r, LOSS + 1), 0);
	assert_int_equal(rd(r, A_PMC), 70);
	assert_int_equal(rd(r, newest(r)), 0x1000);
	machine_done(r);
}

static void test_pv_dies(void **state)
{
	struct pv_rig *r = guest();
	const struct vpmu_pv_slot *slot = pv_rig_slot(r, 0, 1);
	struct vpmu_pv_op op = pv_rig_enable(2, 1, 0, 0);

	(void)state;
	set_page(r, false);
	open_all(r);
	pv_rig_run_branches(r, 0, 30);
	faults_die();
	pv_rig_service(r, 0);
	assert_int_equal(slot->flags & 0xffff, VPMU_PV_SLOT_ENABLED | VPMU_PV_SLOT_LOST |
			 VPMU_LOSS_LOST << VPMU_PV_SLOT_REASON_SHIFT);
	assert_int_equal(pv_rig_page(r, 0)->changed[0], 7);
	pv_rig_run_branches(r, 0, 10);
	batch(r, &op, 1);
	pv_rig_run_branches(r, 0, 15);
	stop_all(r);
	assert_int_equal(slot->count, 45);
	assert_int_equal(slot->running, 45);
	assert_int_equal(slot->enabled, 55);
	reset_all(r);
	version_2(r);
	guest_done(r);
}

/*
 * A throttled event cannot be enabled again when its slice is over: it is lost, and
 * reported so, until its guest's next try.
 */
static void throttled(struct pv_rig *r, struct vpmu_provider *provider, bool on)
{
	const struct vpmu_pv_slot *slot = pv_rig_slot(r, 0, 0);
	struct vpmu_pv_op op[] = {
		pv_rig_open(1, 0, PV_INSTRUCTIONS), pv_rig_enable(1, 0, 10, 10),
	};

	faults_provider(provider);
	set_page(r, false);
	batch(r, op, 2);
	pv_rig_run_branches(r, 0, 100);
	assert_int_equal(slot->overflows, 4);
	assert_true(slot->flags & VPMU_PV_SLOT_THROTTLED);
	memset(&faults, 0, sizeof(faults));
	faults.at = 1;
	faults.on = on;
	(void)vpmu_pv_slice(r->vcpu[0].pv);
	assert_true(faults_hit("enable"));
	calls_succeed();
	assert_int_equal(slot->flags & 0xffff, VPMU_PV_SLOT_ENABLED | VPMU_PV_SLOT_LOST |
			 VPMU_LOSS_LOST << VPMU_PV_SLOT_REASON_SHIFT);
	assert_int_equal(pv_rig_page(r, 0)->changed[0], 1);
	pv_rig_run_branches(r, 0, 30);
	(void)vpmu_pv_slice(r->vcpu[0].pv); /* which is no try of the guest's */
	op[0] = pv_rig_op(VPMU_PV_READ, 1);
	op[1] = pv_rig_enable(1, 0, 10, 10);
	batch(r, op, 2);
	assert_int_equal(slot->flags & 0xffff, VPMU_PV_SLOT_ENABLED);
	assert_int_equal(slot->overflows, 4);
	assert_int_equal(slot->count, 40);
	assert_int_equal(slot->running, 40);
	pv_rig_run_branches(r, 0, 15);
	op[0] = pv_rig_op(VPMU_PV_DISABLE, 1);
	batch(r, op, 1);
	assert_int_equal(slot->overflows, 5);
	assert_int_equal(slot->count, 55);
	assert_int_equal(slot->running, 55);
	assert_int_equal(slot->enabled, 145);
	guest_done(r);
}

static void test_throttled(void **state)
{
	const struct vpmu_pv_config cfg = { .overflows_max = 3 };
	struct pv_rig *r;
	unsigned int on;

	(void)state;
	for (on = 0; on < 2; on++) {
		r = pv_rig_new(2, &cfg);
		assert_non_null(r);
		throttled(r, &r->vcpu[0].vcpu.provider, on);
		r = pv_rig_new_direct(2, &cfg); /* it does not say how long it counted */
		assert_non_null(r);
		throttled(r, &r->vcpu[0].direct.provider, on);
	}
}

/*
 * Guest memory is gone but for what is mapped, which stays: overflows and losses are
 * still written there, calls are answered EFAULT and do nothing, RESET needs no memory.
 */
static void test_memory_gone(void **state)
{
	struct pv_rig *r = guest();
	struct vpmu_pv_op op = pv_rig_op(VPMU_PV_DISABLE, 1);

	(void)state;
	set_page(r, false);
	open_all(r);
	assert_int_equal(pv_rig_open_1(r, 0, 5, PV_INSTRUCTIONS, 10, 0), 0);
	assert_int_equal(pv_rig_do_1(r, 0, VPMU_PV1_ENABLE, 5), 0);
	memset(&faults, 0, sizeof(faults));
	faults.at = 1;
	faults.on = true;
	r->vcpu[0].vcpu.provider.ops = &vpmu_vcpu_ops; /* only memory fails */
	assert_int_equal(pv_rig_batch(r, 0, &op, 1), -VPMU_PV_EFAULT);
	assert_int_equal(pv_rig_setup(r, 0, PV_RIG_SLOTS(1), 0), -VPMU_PV_EFAULT);
	assert_int_equal(pv_rig_open_1(r, 0, 6, PV_INSTRUCTIONS, 0, 0), -VPMU_PV_EFAULT);
	pv_rig_run_branches(r, 0, 25);
	assert_int_equal(pv_rig_slot(r, 0, 0)->overflows, 2);
	assert_int_equal(pv_rig_slot(r, 0, 0)->count, 20);
	assert_int_equal(pv_rig_slot(r, 0, 0)->flags & 0xffff, VPMU_PV_SLOT_ENABLED);
	assert_int_equal(pv_rig_event_1(r, 5)->overflows, 2);
	assert_int_equal(pv_rig_do_1(r, 0, VPMU_PV1_READ, 5), 0);
	assert_int_equal(pv_rig_event_1(r, 5)->count, 25);
	reset_all(r);
	assert_int_equal(r->n_maps, 0);
	calls_succeed();
	version_2(r);
	guest_done(r);
}

/* A clock that goes back stands still for that time; one that leaps is believed. */
static void test_pv_clock(void **state)
{
	static const int64_t jump[] = { -1000000000, 1000000 };
	const struct vpmu_pv_slot *slot;
	struct vpmu_pv_op op = pv_rig_op(VPMU_PV_READ, 2);
	uint64_t enabled;
	struct pv_rig *r;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		r = guest();
		slot = pv_rig_slot(r, 0, 1);
		set_page(r, false);
		open_all(r);
		pv_rig_run_branches(r, 0, 100);
		batch(r, &op, 1);
		assert_int_equal(slot->enabled, 100);
		r->vcpu[0].vcpu.time += (uint64_t)jump[i];
		pv_rig_run_branches(r, 0, 50);
		batch(r, &op, 1);
		/* The sampler's tenth instruction asks for the time, and the jump is seen. */
		assert_int_equal(slot->enabled, i ? 1000150 : 140);
		assert_int_equal(slot->count, 150);
		assert_true(slot->running <= slot->enabled);
		enabled = slot->enabled;
		pv_rig_run_branches(r, 0, 30);
		batch(r, &op, 1);
		assert_int_equal(slot->enabled - enabled, 30);
		assert_int_equal(slot->count, 180);
		guest_done(r);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_count, tell),
		cmocka_unit_test_teardown(test_records, tell),
		cmocka_unit_test_teardown(test_samples, tell),
		cmocka_unit_test_teardown(test_arch_save, tell),
		cmocka_unit_test_teardown(test_arch_load, tell),
		cmocka_unit_test_teardown(test_set_up, tell),
		cmocka_unit_test_teardown(test_pv_2, tell),
		cmocka_unit_test_teardown(test_pv_1, tell),
		cmocka_unit_test_teardown(test_pv_branches, tell),
		cmocka_unit_test_teardown(test_pv_move, tell),
		cmocka_unit_test(test_arch_dies),
		cmocka_unit_test(test_pv_dies),
		cmocka_unit_test(test_throttled),
		cmocka_unit_test_teardown(test_memory_gone, tell),
		cmocka_unit_test(test_pv_clock),
	};

	pebs_rig_hooks = faults_ops;
	pv_rig_hooks = faults_ops;
	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
