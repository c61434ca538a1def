// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Architectural PEBS: leaf 23H, registers, what a wrap and the next occurrence do, each
 * group of a record, and buffers that are nothing of the kind. Register numbers, bits and
 * offsets stand here as the manual and Linux have them.
 */
#include "pebs_rig.h"

#include <vpmu/state.h>

#define BIT(n)		((uint64_t)1 << (n))
#define MASK48		(BIT(48) - 1)
#define DEBUGCTL	0x1d9
#define FIXED_CTRL	0x38d
#define STATUS		0x38e
#define GLOBAL		0x38f
#define OVF_CTRL	0x390
#define STATUS_SET	0x391
#define INUSE		0x392
#define BASE		0x3f4
#define INDEX		0x3f5
#define GP(n)		(0x1900u + 4 * (n))
#define FX(n)		(0x1980u + 4 * (n))
#define CFG_A		1
#define CFG_B		2
#define CFG_C		3

#define ON		(0xc0 | BIT(22) | BIT(17) | BIT(16)) /* instructions */
#define EN		BIT(63)
#define AUX		BIT(62)
#define GPR		BIT(61)
#define XMM		BIT(49)
#define LBR(n)		((uint64_t)(n) << 40)
#define CNTR_FIXED	BIT(37)
#define CNTR_GP		BIT(36)
#define ALLOW		BIT(35)
#define GROUPS		(EN | AUX | GPR | XMM | LBR(3) | CNTR_FIXED | CNTR_GP | ALLOW)
#define THRESHOLD	BIT(54)
#define CHANGED		BIT(63)
#define FULL		BIT(31)
#define THRESHOLD_AT(n)	(BIT(32) | (uint64_t)(n) << 32) /* EN, and bytes */

#define BUFFER		0x2000ull /* physical; two pages that are no neighbours in ram[] */
#define BASIC		64ull
#define STATE_MAX	8192

static const struct vpmu_model *clearwater(void)
{
	return vpmu_model_find(VPMU_VENDOR_INTEL, 6, 221);
}

static struct pebs_rig *rig(void)
{
	return pebs_rig_new_model(clearwater(), 0, 0);
}

/* Guest memory by physical address. */
static uint64_t mem(const struct pebs_rig *r, uint64_t gpa)
{
	return pebs_rig_load(r, RIG_LINEAR + (gpa ^ RIG_PAGE));
}

/* GP counter @i counts instructions, wraps after @left of them, and then begins at -@reset. */
static void count(struct pebs_rig *r, unsigned int i, uint64_t left, uint32_t reset,
		  uint64_t groups)
{
	wr(r, GP(i) + CFG_A, ON);
	wr(r, GP(i), -left & MASK48);
	wr(r, GP(i) + CFG_C, groups | (uint32_t)-reset);
}

/* Counter 0 with @groups, and a buffer of two pages without a threshold. */
static struct pebs_rig *sampling(uint64_t left, uint32_t reset, uint64_t groups)
{
	struct pebs_rig *r = rig();

	wr(r, BASE, BUFFER | 1);
	count(r, 0, left, reset, EN | groups);
	wr(r, GLOBAL, 1);
	return r;
}

/* Registers ----------------------------------------------------------------- */

static void expect_leaf(struct pebs_rig *r, uint32_t subleaf, uint32_t eax, uint32_t ebx,
			uint32_t ecx, uint32_t edx)
{
	struct vpmu_cpuid c = { 5, 6, 7, 8 };

	assert_true(vpmu_arch_cpuid(r->v, 0x23, subleaf, &c));
	if (c.eax != eax || c.ebx != ebx || c.ecx != ecx || c.edx != edx)
		fail_msg("23H.%u: %x %x %x %x", subleaf, c.eax, c.ebx, c.ecx, c.edx);
}

static void test_offered(void **state)
{
	struct pebs_rig *r = rig();
	struct vpmu_cpuid c = { 0, 0, ~0u, ~0u };

	(void)state;
	expect_leaf(r, 0, 0x3f, 3, 0, 0);
	expect_leaf(r, 4, 0, BIT(30) | BIT(29) | BIT(17) | 3u << 8 | 7u << 3, 0, 0);
	expect_leaf(r, 5, 0xff, 3, 7, 1);
	expect_leaf(r, 6, 0, 0, 0, 0);
	/* nothing of the DS save area */
	assert_true(vpmu_arch_cpuid(r->v, 1, 0, &c));
	assert_int_equal(c.ecx, ~(uint32_t)BIT(2));
	assert_int_equal(c.edx, ~(uint32_t)BIT(21));
	assert_int_equal(vpmu_arch_misc_enable(r->v), BIT(7) | BIT(11) | BIT(12));
	assert_int_equal(rd(r, 0x345) & 0x4fc0, 0xf00);
	assert_true(wr_faults(r, 0x3f1, 0) && wr_faults(r, 0x3f2, 0) && wr_faults(r, 0x600, 0));
	assert_true(wr_faults(r, GP(0) + CFG_A, BIT(34)) && wr_faults(r, FIXED_CTRL, BIT(32)));
	done(r);
}

static void test_reserved(void **state)
{
	const uint64_t index = 0x7fffff0 | FULL | BIT(32) | 0x7fffffull << 36;
	struct pebs_rig *r = rig();
	unsigned int bit;

	(void)state;
	for (bit = 0; bit < 64; bit++) {
		bool base = bit < 4 || (bit >= 12 && bit < 52);

		assert_int_equal(wr_faults(r, BASE, BIT(bit)), !base);
		assert_int_equal(wr_faults(r, INDEX, BIT(bit)), !(index >> bit & 1));
		assert_int_equal(wr_faults(r, GP(7) + CFG_C, BIT(bit)),
				 bit >= 32 && !(GROUPS >> bit & 1));
		assert_int_equal(wr_faults(r, FX(2) + CFG_C, BIT(bit)),
				 bit >= 32 && !(GROUPS >> bit & 1));
	}
	wr(r, BASE, 0xffffffffff00f);
	wr(r, INDEX, index);
	wr(r, GP(3) + CFG_C, GROUPS | 0x12345678);
	assert_int_equal(rd(r, BASE), 0xffffffffff00f);
	assert_int_equal(rd(r, INDEX), index);
	assert_int_equal(rd(r, GP(3) + CFG_C), GROUPS | 0x12345678);
	assert_int_equal(rd(r, INUSE) >> 63, 1);
	wr(r, STATUS_SET, THRESHOLD);
	assert_int_equal(rd(r, STATUS), THRESHOLD);
	/* INIT leaves them, RESET does not */
	vpmu_arch_reset(r->v, true);
	assert_int_equal(rd(r, INDEX), index);
	vpmu_arch_reset(r->v, false);
	assert_int_equal(rd(r, BASE) | rd(r, INDEX) | rd(r, GP(3) + CFG_C) | rd(r, STATUS), 0);
	assert_int_equal(rd(r, INUSE), 0);
	done(r);
}

static void config(struct pebs_rig *r, struct vpmu_arch_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->size = sizeof(*cfg);
	cfg->model = &r->model;
	cfg->n_fixed = -1;
	cfg->capabilities = r->model.capabilities;
	cfg->provider = &r->direct.provider;
	cfg->ops = &r->script.ops;
	cfg->ctx = r;
}

/* Another PMU in place of the rig's. */
static void replace(struct pebs_rig *r, const struct vpmu_arch_config *cfg)
{
	free(r->v);
	assert_int_equal(vpmu_arch_size(cfg, &r->size, NULL), 0);
	r->v = malloc(r->size);
	assert_int_equal(vpmu_arch_init(r->v, cfg, NULL), 0);
}

static void test_configurations(void **state)
{
	struct vpmu_arch_config cfg;
	struct pebs_rig *r = rig();
	unsigned int bits;
	size_t size, bad;

	(void)state;
	config(r, &cfg);
	for (bits = 0; bits < 256; bits++) {
		cfg.physical_bits = (uint8_t)bits;
		assert_int_equal(vpmu_arch_size(&cfg, &size, NULL),
				 !bits || (bits >= 32 && bits <= 52) ? 0 : -VPMU_EINVAL);
	}
	cfg.physical_bits = 40;
	replace(r, &cfg);
	assert_false(wr_faults(r, BASE, BIT(39)));
	assert_true(wr_faults(r, BASE, BIT(40)));
	/* it comes with version 6, and version 6 with no other kind */
	cfg.version = 5;
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), -VPMU_EOPNOTSUPP);
	cfg.version = 0;
	cfg.capabilities ^= BIT(8);
	assert_int_equal(vpmu_arch_size(&cfg, &size, NULL), -VPMU_EOPNOTSUPP);
	/* without any, and without branch records */
	cfg.capabilities &= ~(uint64_t)0xf00;
	replace(r, &cfg);
	expect_leaf(r, 0, 0xf, 3, 0, 0);
	expect_leaf(r, 4, 0, 0, 0, 0);
	expect_leaf(r, 5, 0, 0, 0, 0);
	assert_true(wr_faults(r, BASE, 0) && wr_faults(r, INDEX, 0));
	assert_true(wr_faults(r, GP(0) + CFG_C, EN));
	assert_true(wr_faults(r, STATUS_SET, THRESHOLD));
	config(r, &cfg);
	cfg.capabilities &= ~(uint64_t)0x3f;
	cfg.n_gp = 2;
	cfg.n_fixed = 0;
	replace(r, &cfg);
	expect_leaf(r, 4, 0, BIT(30) | BIT(29) | BIT(17) | BIT(4) | BIT(3), 0, 0);
	expect_leaf(r, 5, 3, 3, 0, 0);
	assert_true(wr_faults(r, GP(0) + CFG_C, LBR(1)) && wr_faults(r, GP(0) + CFG_C, CNTR_FIXED));
	/* a model's data */
	r->model.version = 5;
	r->model.extensions = 0;
	assert_string_equal(vpmu_model_check(&r->model, &bad), "PEBS of another version");
	r->model.capabilities = VPMU_CAP_PEBS_ADAPTIVE;
	assert_string_equal(vpmu_model_check(&r->model, &bad),
			    "counters that branch records cannot log");
	r->model.lbr_counters = 0;
	assert_string_equal(vpmu_model_check(&r->model, &bad), "PDIST without architectural PEBS");
	r->model.version = 6;
	r->model.pdist = 0;
	assert_string_equal(vpmu_model_check(&r->model, &bad), "PEBS of another version");
	r->model.capabilities = VPMU_CAP_PEBS_ARCH | VPMU_CAP_PEBS_BASELINE;
	assert_string_equal(vpmu_model_check(&r->model, &bad), "unknown format of PEBS records");
	done(r);
}

/* Wrap, and what comes next --------------------------------------------------- */

static void test_sequence(void **state)
{
	struct pebs_rig *r = sampling(3, 5, 0);
	uint64_t start = pebs_rig_count(r), linear[4];

	(void)state;
	pebs_rig_run(r, 3);
	assert_int_equal(rd(r, GP(0)), 0);
	assert_int_equal(rd(r, INDEX), 0);
	assert_int_equal(rd(r, STATUS), 0);
	assert_true(r->script.watch);
	assert_int_equal(vpmu_arch_record_places(r->v, linear), 0);
	pebs_rig_run(r, 1);
	assert_int_equal(rd(r, INDEX), BASIC);
	assert_int_equal(mem(r, BUFFER), EN | BIT(30) | BASIC);
	assert_int_equal(mem(r, BUFFER + 16), RIG_CODE + 4 * (start + 3));
	assert_int_equal(mem(r, BUFFER + 24), 1);
	assert_int_equal(rd(r, GP(0)), -(uint64_t)5 & MASK48);
	assert_false(r->script.watch);
	/* and so on, every sixth, across the page's end */
	pebs_rig_run(r, 6 * 70);
	assert_int_equal(rd(r, INDEX), 71 * BASIC);
	assert_int_equal(mem(r, BUFFER + 70 * BASIC + 16), RIG_CODE + 4 * (start + 3 + 6 * 70));
	assert_int_equal(rd(r, STATUS), 0);
	assert_int_equal(r->n_pmi, 0);
	done(r);
}

/* CFG_C's lower half, sign-extended; a fixed counter's; and what GLOBAL_CTRL holds up. */
static void test_values(void **state)
{
	struct pebs_rig *r = sampling(1, 100, 0);

	(void)state;
	wr(r, GP(7) + CFG_A, ON);
	wr(r, GP(7), MASK48);
	wr(r, GP(7) + CFG_C, EN | 0x7fffffff);
	wr(r, FX(0), MASK48);
	wr(r, FX(0) + CFG_C, EN | 0x80000000);
	wr(r, FIXED_CTRL, 3);
	wr(r, GLOBAL, BIT(0) | BIT(7) | BIT(32));
	pebs_rig_run(r, 1);
	assert_true(r->script.watch);
	wr(r, GLOBAL, 0);
	assert_false(r->script.watch);
	pebs_rig_run(r, 10);
	wr(r, GLOBAL, BIT(0) | BIT(7) | BIT(32));
	pebs_rig_run(r, 1);
	/* at one instruction: one record for all three */
	assert_int_equal(rd(r, INDEX), BASIC);
	assert_int_equal(mem(r, BUFFER + 24), BIT(0) | BIT(7) | BIT(32));
	assert_int_equal(rd(r, GP(0)), -(uint64_t)100 & MASK48);
	assert_int_equal(rd(r, GP(7)), 0x7fffffff);
	assert_int_equal(rd(r, FX(0)), 0xffff80000000);
	/* a value that the guest writes begins a new measurement */
	wr(r, GP(0), MASK48);
	pebs_rig_run(r, 1);
	wr(r, GP(0), -(uint64_t)2 & MASK48);
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), BASIC);
	pebs_rig_run(r, 1);
	assert_int_equal(rd(r, INDEX), 2 * BASIC);
	/* without EN an overflow is an ordinary one */
	wr(r, GP(0), MASK48);
	wr(r, GP(0) + CFG_C, AUX);
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), 2 * BASIC);
	assert_int_equal(rd(r, STATUS), 1 | CHANGED);
	done(r);
}

static void test_threshold(void **state)
{
	struct pebs_rig *r = sampling(1, 1, 0);

	(void)state;
	wr(r, INDEX, THRESHOLD_AT(2 * BASIC));
	wr(r, DEBUGCTL, BIT(12));
	pebs_rig_run(r, 2);
	assert_int_equal(r->n_pmi, 0);
	assert_int_equal(rd(r, STATUS), 0);
	pebs_rig_run(r, 2);
	assert_int_equal(r->n_pmi, 1);
	assert_int_equal(rd(r, STATUS), THRESHOLD | CHANGED | BIT(59));
	pebs_rig_run(r, 10); /* frozen */
	assert_int_equal(rd(r, INDEX), THRESHOLD_AT(2 * BASIC) | 2 * BASIC);
	wr(r, OVF_CTRL, rd(r, STATUS));
	assert_int_equal(rd(r, STATUS), 0);
	/* each record past it interrupts again; none does without EN */
	wr(r, DEBUGCTL, 0);
	pebs_rig_run(r, 2);
	assert_int_equal(r->n_pmi, 2);
	wr(r, OVF_CTRL, rd(r, STATUS));
	wr(r, INDEX, 0);
	pebs_rig_run(r, 20);
	assert_int_equal(rd(r, INDEX), 10 * BASIC);
	assert_int_equal(r->n_pmi, 2);
	assert_int_equal(rd(r, STATUS), 0);
	done(r);
}

/* A buffer that is full says so and takes no more, until software has emptied it. */
static void test_full(void **state)
{
	struct pebs_rig *r = sampling(1, 1, 0);

	(void)state;
	wr(r, BASE, BUFFER);
	wr(r, INDEX, THRESHOLD_AT(0x1000) | (0x1000 - BASIC));
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), THRESHOLD_AT(0x1000) | 0x1000);
	assert_int_equal(r->n_pmi, 1);
	wr(r, OVF_CTRL, rd(r, STATUS));
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), THRESHOLD_AT(0x1000) | 0x1000 | FULL);
	assert_int_equal(r->n_pmi, 1);
	assert_int_equal(rd(r, GP(0)), MASK48); /* and the counter goes on */
	wr(r, INDEX, FULL);
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), FULL);
	wr(r, INDEX, 0);
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), BASIC);
	/* the largest one ends where an offset is no number of the register's */
	wr(r, BASE, 15);
	wr(r, INDEX, 0x7ffffc0);
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), 0x7ffffc0 | FULL);
	done(r);
}

/* Auto counter reload: by a record, and of a counter that has wrapped. */
static void test_reload(void **state)
{
	struct pebs_rig *r = sampling(3, 5, 0);

	(void)state;
	wr(r, GP(1) + CFG_A, ON);
	wr(r, GP(1) + CFG_B, 1);
	wr(r, GP(1) + CFG_C, 50);
	wr(r, GLOBAL, 3);
	pebs_rig_run(r, 3);
	assert_int_equal(rd(r, GP(1)), 3);
	pebs_rig_run(r, 1);
	assert_int_equal(rd(r, GP(1)), 50);
	assert_int_equal(rd(r, INDEX), BASIC);
	/* counter 1 overflows while counter 0 waits for its record, and reloads it */
	wr(r, GP(0), -(uint64_t)3 & MASK48);
	wr(r, GP(0) + CFG_B, 2);
	wr(r, GP(1) + CFG_B, 0);
	wr(r, GP(1), -(uint64_t)4 & MASK48);
	pebs_rig_run(r, 3);
	assert_true(r->script.watch);
	wr(r, GP(1), MASK48);
	wr(r, GP(0) + CFG_C, 0); /* PEBS is off for a moment: no record is due now */
	pebs_rig_run(r, 1);
	wr(r, GP(0) + CFG_C, EN);
	assert_false(r->script.watch);
	pebs_rig_run(r, 10);
	assert_int_equal(rd(r, INDEX), BASIC);
	done(r);
}

/* Layouts --------------------------------------------------------------------- */

static uint64_t expect(const struct pebs_rig *r, uint64_t at, uint64_t value)
{
	uint64_t is = mem(r, at);

	if (is != value)
		fail_msg("at %llx: %llx, expected %llx", (unsigned long long)(at - BUFFER),
			 (unsigned long long)is, (unsigned long long)value);
	return at + 8;
}

static uint64_t expect_zeros(const struct pebs_rig *r, uint64_t at, unsigned int n)
{
	while (n--)
		at = expect(r, at, 0);
	return at;
}

static void expect_record(struct pebs_rig *r, uint64_t groups)
{
	unsigned int lbrs = groups >> 40 & 3, size = BASIC, i;
	uint64_t start = BUFFER + 0x1000 - 48, at = start;
	struct vpmu_sample s;

	lbrs = lbrs == 3 ? 32 : 8 * lbrs;
	size += (groups & AUX ? 64 : 0) + (groups & GPR ? 160 : 0) + (groups & XMM ? 272 : 0) +
		(lbrs ? 48 + 24 * lbrs : 0);
	pebs_rig_sample(r, &s);
	assert_int_equal(rd(r, INDEX), 0x1000 - 48 + size);
	at = expect(r, at, EN | groups | BIT(30) | size);
	at = expect(r, at, 0);
	at = expect(r, at, s.ip);
	at = expect(r, at, 1);
	at = expect(r, at, s.tsc);
	at = expect_zeros(r, at, 3);
	if (groups & AUX) {
		at = expect(r, at, s.address);
		at = expect_zeros(r, at, 7);
	}
	if (groups & GPR) {
		at = expect(r, at, s.flags);
		at = expect(r, at, s.next_ip);
		for (i = 0; i < 16; i++) /* ax cx dx bx sp bp si di r8 .. r15 */
			at = expect(r, at, s.gpr[i]);
		at = expect_zeros(r, at, 2); /* the shadow stack's pointer */
	}
	if (groups & XMM) {
		at = expect(r, at, 2); /* component SSE of XSAVE's */
		at = expect(r, at, 0);
		for (i = 0; i < 32; i++)
			at = expect(r, at, s.xmm[i / 2][i % 2]);
	}
	if (lbrs) {
		at = expect_zeros(r, at, 2);
		at = expect(r, at, 32); /* LBR_DEPTH */
		at = expect_zeros(r, at, 3 + 3 * lbrs);
	}
	assert_int_equal(at, start + size);
	expect(r, at, ~(uint64_t)0); /* and not a byte more */
}

static void test_groups(void **state)
{
	unsigned int i, lbr;

	(void)state;
	for (i = 0; i < 8; i++)
		for (lbr = 0; lbr < 4; lbr++) {
			uint64_t groups = (i & 1 ? AUX : 0) | (i & 2 ? GPR : 0) |
					  (i & 4 ? XMM : 0) | LBR(lbr);
			struct pebs_rig *r = sampling(1, 1000, groups);

			memset(r->ram, 0xff, sizeof(r->ram));
			wr(r, INDEX, 0x1000 - 48); /* each crosses a page */
			pebs_rig_run(r, 2);
			expect_record(r, groups);
			done(r);
		}
}

/* The guest's own entries, newest first, after LBR_CTL, LBR_DEPTH and LER. */
static void test_branches(void **state)
{
	struct pebs_rig *r = sampling(1, 1000, LBR(1));
	uint64_t at = BUFFER + BASIC;

	(void)state;
	wr(r, 0x14ce, 0x7f0007);
	vpmu_script_branch(&r->script, VPMU_BRANCH_JMP, false, 0x1000, 0x2000);
	vpmu_script_branch(&r->script, VPMU_BRANCH_RET, false, 0x3000, 0x4000);
	wr(r, 0x1dd, 0x5000);
	wr(r, 0x1de, 0x6000);
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), BASIC + 48 + 8 * 24);
	at = expect_zeros(r, at, 1);
	at = expect(r, at, 0x7f0007);
	at = expect(r, at, 32);
	at = expect(r, at, 0x5000);
	at = expect(r, at, 0x6000);
	at = expect_zeros(r, at, 1);
	at = expect(r, at, 0x3000);
	at = expect(r, at, 0x4000);
	at = expect(r, at, rd(r, 0x1200));
	at = expect(r, at, 0x1000);
	at = expect(r, at, 0x2000);
	at = expect(r, at, rd(r, 0x1201));
	(void)expect_zeros(r, at, 18);
	done(r);
}

/* Counters that allow it, before the one that is sampled takes its new value. */
static void test_counters(void **state)
{
	struct pebs_rig *r = sampling(3, 1000, CNTR_GP | ALLOW);
	uint64_t at = BUFFER + BASIC;

	(void)state;
	wr(r, GP(5) + CFG_A, ON);
	wr(r, GP(5) + CFG_C, ALLOW);
	wr(r, GP(6) + CFG_A, ON);
	wr(r, FX(1), 77);
	wr(r, FX(1) + CFG_C, ALLOW);
	wr(r, GLOBAL, BIT(0) | BIT(5) | BIT(6));
	pebs_rig_run(r, 4);
	assert_int_equal(rd(r, INDEX), BASIC + 16 + 16);
	expect(r, BUFFER, EN | CNTR_GP | BIT(30) | (BASIC + 32));
	at = expect(r, at, 0x21);
	at = expect(r, at, 0);
	at = expect(r, at, 1);
	(void)expect(r, at, 4);
	assert_int_equal(rd(r, GP(0)), -(uint64_t)1000 & MASK48);
	/* fixed ones too: an odd number, padded */
	memset(r->ram, 0xff, sizeof(r->ram));
	wr(r, INDEX, 0);
	wr(r, GP(0), MASK48);
	wr(r, GP(0) + CFG_C, EN | CNTR_GP | CNTR_FIXED);
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), BASIC + 16 + 16);
	at = BUFFER + BASIC;
	at = expect(r, at, BIT(5) | BIT(33));
	at = expect(r, at, 0);
	at = expect(r, at, 6);
	at = expect(r, at, 77);
	(void)expect(r, at, ~(uint64_t)0);
	wr(r, GP(0), MASK48);
	wr(r, GP(0) + CFG_C, EN | CNTR_FIXED);
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), 2 * (BASIC + 32));
	at = BUFFER + 2 * BASIC + 32;
	at = expect(r, at, BIT(33));
	at = expect(r, at, 0);
	at = expect(r, at, 77);
	at = expect(r, at, 0);
	(void)expect(r, at, ~(uint64_t)0);
	done(r);
}

/* Counters that want different groups have a record each, those that want the same share. */
static void test_kinds(void **state)
{
	struct pebs_rig *r = sampling(1, 9, AUX);

	(void)state;
	count(r, 1, 1, 9, EN);
	count(r, 2, 1, 9, EN | AUX | ALLOW);
	count(r, 3, 1, 9, EN | GPR);
	wr(r, GLOBAL, 0xf);
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), 3 * BASIC + 64 + 160);
	assert_int_equal(mem(r, BUFFER + 24), 5);
	assert_int_equal(mem(r, BUFFER + 128 + 24), 2);
	assert_int_equal(mem(r, BUFFER + 192 + 24), 8);
	done(r);
}

/* The access by a model: its level, its walk, whether it locked, and both latencies. */
static void test_modelled(void **state)
{
	static const uint8_t source[] = { 1, 2, 3, 4, 0xa };
	unsigned int level;

	(void)state;
	for (level = 0; level < COUNT_OF(source); level++) {
		struct pebs_rig *r = pebs_rig_new_uarch(221);

		wr(r, BASE, BUFFER);
		count(r, 0, 1, 9, EN | AUX);
		/* stores are told as loads are */
		wr(r, GP(0) + CFG_A, 0x82d0 | BIT(22) | BIT(17)); /* MEM_UOPS_RETIRED.ALL_STORES */
		r->access.level = (uint8_t)level;
		r->access.tlb = level % 2 ? 2 : 1;
		r->access.locked = level == 4;
		r->access.latency = level == 4 ? 0x12345 : 30 + level;
		wr(r, GLOBAL, 1);
		vpmu_script_retire(&r->script, VPMU_SIGNAL_OF(VPMU_UARCH_STORES),
				   VPMU_BANK_KERNEL, 2);
		assert_int_equal(rd(r, INDEX), 128);
		expect(r, BUFFER + BASIC + 40, source[level] | (level % 2 ? BIT(6) : 0) |
					       (level == 4 ? BIT(5) : 0));
		expect(r, BUFFER + BASIC + 48, level == 4 ? 0xffff0000ffff
							  : (30 + level) * (BIT(32) | 1));
		done(r);
	}
}

/* Memory that is nothing of the kind ------------------------------------------- */

/* No record is written, memory stays as it is but where @torn, and the counter goes on. */
static void lost(uint64_t base, uint64_t index, int mmio, bool torn, bool full)
{
	struct pebs_rig *r = sampling(1, 5, GPR);
	uint8_t before[RIG_RAM];

	wr(r, BASE, base);
	wr(r, INDEX, index);
	if (mmio >= 0)
		r->map[(unsigned int)mmio ^ 1] = RIG_MMIO;
	memcpy(before, r->ram, RIG_RAM);
	pebs_rig_run(r, 2);
	assert_int_equal(rd(r, INDEX), index | (full ? FULL : 0));
	assert_int_equal(memcmp(before, r->ram, RIG_RAM) != 0, torn);
	assert_int_equal(rd(r, GP(0)), -(uint64_t)5 & MASK48);
	assert_int_equal(rd(r, STATUS), 0);
	assert_int_equal(r->n_pmi, 0);
	pebs_rig_run(r, 60);
	done(r);
}

static void test_hostile(void **state)
{
	(void)state;
	/* no room: by a byte, by far */
	lost(BUFFER, 0x1000 - BASIC - 160 + 16, -1, false, true);
	lost(BUFFER, 0x1000, -1, false, true);
	lost(BUFFER, 0x1010, -1, false, true);
	lost(BUFFER | 2, 0x7fffff0, -1, false, true);
	/* no RAM: a device, nothing, a page behind the last one, the address space's end */
	lost(BUFFER, 0, 2, false, false);
	lost((uint64_t)RIG_RAM, 0, -1, false, false);
	lost(0xffffffffff000, 0, -1, false, false);
	lost(0xffffffffff001, 0x1000 - 48, -1, false, false);
	lost(((uint64_t)RIG_RAM - RIG_PAGE) | 1, 0x1000 - 48, -1, true, false);
	lost(BUFFER | 1, 0x1000 - 48, 3, true, false);
}

/* State, filter ------------------------------------------------------------------- */

static size_t save(struct pebs_rig *r, uint8_t *buf)
{
	size_t used;

	assert_int_equal(vpmu_arch_save(r->v, buf, STATE_MAX, &used), 0);
	return used;
}

static struct pebs_rig *busy(unsigned int n)
{
	struct pebs_rig *r = sampling(3, 5, AUX | CNTR_GP | ALLOW);

	wr(r, FX(0) + CFG_C, EN | GPR | 0xfffffff0);
	wr(r, FX(0), -(uint64_t)6 & MASK48);
	wr(r, FIXED_CTRL, 3);
	wr(r, INDEX, THRESHOLD_AT(0x400));
	wr(r, GLOBAL, BIT(0) | BIT(32));
	pebs_rig_run(r, n);
	return r;
}

static void test_state(void **state)
{
	uint8_t buf[STATE_MAX], again[STATE_MAX];
	struct pebs_rig *a, *b;
	unsigned int n;
	size_t used;

	(void)state;
	for (n = 0; n < 24; n++) {
		a = busy(n);
		used = save(a, buf);
		b = rig();
		memcpy(b->ram, a->ram, RIG_RAM);
		b->script.truth = a->script.truth;
		assert_int_equal(vpmu_arch_load(b->v, buf, used), 0);
		assert_int_equal(b->script.watch, a->script.watch);
		assert_int_equal(save(b, again), used);
		assert_memory_equal(buf, again, used);
		pebs_rig_run(a, 60);
		pebs_rig_run(b, 60);
		assert_int_equal(rd(a, INDEX), rd(b, INDEX));
		assert_memory_equal(a->ram, b->ram, RIG_RAM);
		assert_int_equal(a->n_pmi, b->n_pmi);
		assert_int_equal(a->n_pmi > 0, true);
		done(a);
		done(b);
	}
}

/* The body of the section, in a saved state. */
static uint8_t *section(uint8_t *buf, size_t used)
{
	size_t at = 16;
	uint32_t id, bytes;

	for (; at < used; at += 16 + (bytes + 7) / 8 * 8) {
		memcpy(&id, buf + at, 4);
		memcpy(&bytes, buf + at + 8, 4);
		if (id == VPMU_STATE_ARCH_PEBS)
			return buf + at + 16;
	}
	fail_msg("there is no section");
	return NULL;
}

static void test_state_refused(void **state)
{
	static const struct {
		int line;
		unsigned int at; /* byte of the section's body */
		uint8_t xor;
		int ret;
	} row[] = {
		{ __LINE__, 0, 1, -VPMU_EINVAL },         /* n_gp, n_fixed, zeros */
		{ __LINE__, 1, 1, -VPMU_EINVAL },
		{ __LINE__, 2, 1, -VPMU_EINVAL },
		{ __LINE__, 7, 0x80, -VPMU_EINVAL },
		{ __LINE__, 8, 1, 0 },                    /* PEBS_BASE */
		{ __LINE__, 8, 0x10, -VPMU_EINVAL },
		{ __LINE__, 14, 0x10, -VPMU_EINVAL },
		{ __LINE__, 16, 0x10, 0 },                /* PEBS_INDEX */
		{ __LINE__, 16, 1, -VPMU_EINVAL },
		{ __LINE__, 23, 8, -VPMU_EINVAL },
		{ __LINE__, 24, 1, 0 },                   /* counters that have wrapped */
		{ __LINE__, 25, 1, -VPMU_EINVAL },
		{ __LINE__, 28, 8, -VPMU_EINVAL },
		{ __LINE__, 33, 1, -VPMU_EINVAL },        /* those that claim PEBS */
		{ __LINE__, 40 + 7, 0x20, 0 },            /* CFG_C of the first, of the last */
		{ __LINE__, 40, 1, -VPMU_EINVAL },
		{ __LINE__, 40 + 4, 1, -VPMU_EINVAL },
		{ __LINE__, 40 + 8 * 10 + 5, 4, -VPMU_EINVAL },
	};
	uint8_t good[STATE_MAX], buf[STATE_MAX], after[STATE_MAX];
	struct pebs_rig *a = busy(4), *b = rig();
	struct vpmu_arch_config cfg;
	size_t used = save(a, good), i;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		memcpy(buf, good, used);
		section(buf, used)[row[i].at] ^= row[i].xor;
		assert_int_equal(vpmu_arch_load(b->v, good, used), 0);
		if (vpmu_arch_load(b->v, buf, used) != row[i].ret)
			fail_msg("line %d", row[i].line);
		assert_int_equal(save(b, after), used);
		if (row[i].ret)
			assert_memory_equal(after, good, used);
	}
	/* every other bit: refused, or a PMU that works */
	for (i = 0; i < used; i++) {
		memcpy(buf, good, used);
		buf[i] ^= 0x81;
		(void)vpmu_arch_load(b->v, buf, used);
		pebs_rig_run(b, 3);
	}
	/* fewer counters, another address, a PMU without it */
	config(b, &cfg);
	cfg.physical_bits = 32;
	replace(b, &cfg);
	wr(a, BASE, BIT(32));
	used = save(a, buf);
	assert_int_equal(vpmu_arch_load(b->v, buf, used), -VPMU_EINVAL);
	cfg.capabilities &= ~VPMU_CAP_PEBS;
	replace(b, &cfg);
	assert_int_equal(vpmu_arch_load(b->v, good, used), -VPMU_EINVAL);
	assert_string_equal(vpmu_arch_refused(b->v)->what, "PEBS, or of this format");
	/* and one that had none: it begins with PEBS off */
	used = save(b, buf);
	assert_int_equal(vpmu_arch_load(a->v, buf, used), 0);
	assert_int_equal(rd(a, BASE) | rd(a, INDEX) | rd(a, GP(0) + CFG_C), 0);
	done(a);
	done(b);
}

/* A PMU with fewer counters is loaded into a wider one: each register is its counter's again. */
static void test_state_wider(void **state)
{
	struct pebs_rig *a = rig(), *b = rig();
	struct vpmu_arch_config cfg;
	uint8_t buf[STATE_MAX];

	(void)state;
	config(a, &cfg);
	cfg.n_gp = 4;
	replace(a, &cfg);
	wr(a, BASE, BUFFER);
	wr(a, FX(0), MASK48);
	wr(a, FX(0) + CFG_C, EN | AUX | 0xfffffff0);
	wr(a, FIXED_CTRL, 3);
	wr(a, GLOBAL, BIT(32));
	pebs_rig_run(a, 1);
	b->script.truth = a->script.truth;
	assert_int_equal(vpmu_arch_load(b->v, buf, save(a, buf)), 0);
	assert_int_equal(rd(b, FX(0) + CFG_C), EN | AUX | 0xfffffff0);
	pebs_rig_run(b, 1);
	assert_int_equal(rd(b, INDEX), 128);
	assert_int_equal(mem(b, BUFFER + 24), BIT(32));
	done(a);
	done(b);
}

static void test_filtered(void **state)
{
	static const uint64_t entry = 0xc0;
	struct vpmu_filter f = { .size = sizeof(f) };
	struct pebs_rig *r = sampling(3, 5, 0);

	(void)state;
	f.action = VPMU_FILTER_DENY;
	f.n_events = 1;
	f.events = &entry;
	pebs_rig_run(r, 3);
	assert_int_equal(vpmu_arch_filter(r->v, &f), 0);
	pebs_rig_run(r, 100);
	assert_int_equal(rd(r, INDEX), 0);
	assert_false(r->script.watch);
	assert_int_equal(vpmu_arch_filter(r->v, NULL), 0);
	pebs_rig_run(r, 1);
	assert_int_equal(rd(r, INDEX), BASIC);
	done(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offered),
		cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_configurations),
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_modelled),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_state_refused),
		cmocka_unit_test(test_state_wider),
		cmocka_unit_test(test_filtered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
