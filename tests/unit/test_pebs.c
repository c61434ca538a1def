// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * PEBS: registers, what a wrap and the next occurrence do, each record's layout, and
 * DS save areas that are nothing of the kind. Register numbers, bits and offsets stand
 * here as the manual prints them.
 */
#include "pebs_rig.h"

#include <vpmu/perf.h>
#include <vpmu/vcpu.h>

#define BIT(n)		((uint64_t)1 << (n))
#define MASK48		(BIT(48) - 1)
#define EVTSEL		0x186
#define DEBUGCTL	0x1d9
#define FIXED		0x309
#define FIXED_CTRL	0x38d
#define STATUS		0x38e
#define GLOBAL		0x38f
#define OVF_CTRL	0x390
#define INUSE		0x392
#define PEBS_ENABLE	0x3f1
#define DATA_CFG	0x3f2
#define A_PMC		0x4c1
#define DS_AREA		0x600

#define INSTRUCTIONS	0xc0
#define BRANCHES	0xc4
#define ON		(BIT(22) | BIT(17) | BIT(16))
#define INT		BIT(20)
#define ADAPTIVE	BIT(34)
#define OVFBUF		BIT(62)
#define CHANGED		BIT(63)

#define DS		(RIG_LINEAR + 0x800)
#define BUFFER		(RIG_LINEAR + 2 * RIG_PAGE - 40) /* most records cross a page */
#define STATE_MAX	8192

/* A DS save area: index, one past the end, threshold. */
static void ds_set(struct pebs_rig *r, uint64_t index, uint64_t max, uint64_t threshold)
{
	pebs_rig_store(r, DS + 0x20, BUFFER);
	pebs_rig_store(r, DS + 0x28, index);
	pebs_rig_store(r, DS + 0x30, max);
	pebs_rig_store(r, DS + 0x38, threshold);
	wr(r, DS_AREA, DS);
}

static uint64_t ds_index(const struct pebs_rig *r)
{
	return pebs_rig_load(r, DS + 0x28);
}

/* GP counter @i counts instructions, and wraps after @left of them. */
static void count(struct pebs_rig *r, unsigned int i, uint64_t left, uint64_t reset)
{
	wr(r, EVTSEL + i, INSTRUCTIONS | ON | ADAPTIVE);
	wr(r, A_PMC + i, -left & MASK48);
	pebs_rig_store(r, DS + 0x40 + 8 * i, -reset & MASK48);
}

/* One counter, PEBS on, room for all. */
static struct pebs_rig *sampling(uint64_t left, uint64_t reset)
{
	struct pebs_rig *r = pebs_rig_new(4, 0, NULL);

	ds_set(r, BUFFER, BUFFER + 4 * RIG_PAGE, BUFFER + 4 * RIG_PAGE);
	count(r, 0, left, reset);
	wr(r, PEBS_ENABLE, 1);
	wr(r, GLOBAL, 1);
	return r;
}

/* Registers ----------------------------------------------------------------- */

static void test_offered(void **state)
{
	unsigned int format;

	(void)state;
	for (format = 0; format <= 5; format++) {
		struct pebs_rig *r = pebs_rig_new(format, 0, NULL);
		struct vpmu_cpuid c = { 0, 0, 0, 0 };
		uint64_t enable = format >= 4 ? 0xff | 0xfull << 32
				: format ? 0xf | 0xfull << 32 : 0xf;
		unsigned int bit;
		uint64_t value;

		assert_true(vpmu_arch_cpuid(r->v, 1, 0, &c));
		assert_int_equal(c.ecx, BIT(15) | BIT(2));
		assert_int_equal(c.edx, BIT(21));
		assert_int_equal(vpmu_arch_misc_enable(r->v), BIT(7) | BIT(11));
		for (bit = 0; bit < 64; bit++) {
			assert_int_equal(wr_faults(r, PEBS_ENABLE, BIT(bit)),
					 !(enable >> bit & 1));
			assert_int_equal(wr_faults(r, DATA_CFG, BIT(bit)),
					 format < 4 || !(0xff00000full >> bit & 1));
			assert_int_equal(wr_faults(r, DS_AREA, BIT(bit)), bit >= 47);
		}
		assert_int_equal(wr_faults(r, EVTSEL, BIT(34)), format < 4);
		assert_int_equal(wr_faults(r, FIXED_CTRL, BIT(40)), format < 4);
		assert_false(wr_faults(r, DS_AREA, 0xffff800000000000));
		wr(r, PEBS_ENABLE, enable);
		assert_int_equal(rd(r, PEBS_ENABLE), enable);
		assert_int_equal(rd(r, DS_AREA), 0xffff800000000000);
		assert_int_equal(rd(r, INUSE) >> 63, 1);
		assert_int_equal(vpmu_arch_rdmsr(r->v, DATA_CFG, &value),
				 format < 4 ? VPMU_FAULT : VPMU_HANDLED);
		vpmu_arch_reset(r->v, false);
		assert_int_equal(rd(r, PEBS_ENABLE) | rd(r, DS_AREA), 0);
		done(r);
	}
}

static void config(struct pebs_rig *r, uint64_t caps, struct vpmu_arch_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->size = sizeof(*cfg);
	cfg->model = &r->model;
	cfg->n_fixed = -1;
	cfg->capabilities = caps;
	cfg->provider = &r->direct.provider;
	cfg->ops = &r->script.ops;
	cfg->ctx = r;
}

static int ask(struct pebs_rig *r, uint64_t caps, uint8_t version)
{
	struct vpmu_error err = { NULL, 0, 0 };
	struct vpmu_arch_config cfg;
	size_t size;
	int ret;

	config(r, caps, &cfg);
	cfg.version = version;
	ret = vpmu_arch_size(&cfg, &size, &err);
	assert_int_equal(!err.what, !ret);
	return ret;
}

/* Another PMU in place of the rig's. */
static void replace(struct pebs_rig *r, const struct vpmu_arch_config *cfg)
{
	free(r->v);
	assert_int_equal(vpmu_arch_size(cfg, &r->size, NULL), 0);
	r->v = malloc(r->size);
	assert_int_equal(vpmu_arch_init(r->v, cfg, NULL), 0);
}

/* The width of an address, in the register and in a saved state. */
static void test_linear(void **state)
{
	static const struct { uint8_t given, bits; } row[] = { { 0, 48 }, { 48, 48 }, { 57, 57 } };
	uint8_t buf[STATE_MAX];
	struct vpmu_arch_config cfg;
	struct pebs_rig *r;
	unsigned int i, bit;
	size_t used;

	(void)state;
	for (i = 0; i < 3; i++) {
		r = pebs_rig_new(4, 0, NULL);
		config(r, r->model.capabilities, &cfg);
		cfg.linear_bits = row[i].given;
		replace(r, &cfg);
		for (bit = 0; bit < 64; bit++) {
			bool wide = bit >= row[i].bits - 1u;

			assert_int_equal(wr_faults(r, DS_AREA, BIT(bit)), wide);
			assert_int_equal(wr_faults(r, DS_AREA, ~BIT(bit)), wide);
			assert_int_equal(wr_faults(r, DS_AREA, -BIT(bit)), bit >= row[i].bits);
		}
		done(r);
	}
	for (i = 0; i < 256; i++) {
		r = pebs_rig_new(4, 0, NULL);
		config(r, r->model.capabilities, &cfg);
		cfg.linear_bits = (uint8_t)i;
		assert_int_equal(vpmu_arch_size(&cfg, &used, NULL),
				 !i || i == 48 || i == 57 ? 0 : -VPMU_EINVAL);
		done(r);
	}
	r = pebs_rig_new(4, 0, NULL);
	config(r, r->model.capabilities, &cfg);
	cfg.linear_bits = 57;
	replace(r, &cfg);
	wr(r, DS_AREA, BIT(50));
	assert_int_equal(vpmu_arch_save(r->v, buf, sizeof(buf), &used), 0);
	assert_int_equal(vpmu_arch_load(r->v, buf, used), 0);
	done(r);
	r = pebs_rig_new(4, 0, NULL);
	assert_int_equal(vpmu_arch_load(r->v, buf, used), -VPMU_EINVAL);
	done(r);
}

static void test_refused(void **state)
{
	struct pebs_rig *r = pebs_rig_new(4, 0, NULL);
	uint64_t caps = r->model.capabilities;
	struct vpmu_ops ops = r->script.ops;
	struct vpmu_cpuid c = { 0, 0, ~0u, ~0u };
	struct vpmu_arch_config cfg;
	uint64_t value;

	(void)state;
	assert_int_equal(ask(r, caps, 0), 0);
	assert_int_equal(ask(r, caps, 2), 0);
	assert_int_equal(ask(r, caps, 1), -VPMU_EOPNOTSUPP);
	assert_int_equal(ask(r, caps & ~BIT(14), 0), -VPMU_EOPNOTSUPP);
	assert_int_equal(ask(r, caps & ~BIT(6), 0), -VPMU_EOPNOTSUPP);
	assert_int_equal(ask(r, caps | BIT(8), 0), -VPMU_EOPNOTSUPP);
#define WITHOUT(hook) do { \
	r->script.ops.hook = NULL; \
	assert_int_equal(ask(r, caps, 0), -VPMU_EOPNOTSUPP); \
	r->script.ops = ops; \
} while (0)
	WITHOUT(gva_to_gpa);
	WITHOUT(set_sampling);
	WITHOUT(get_sample);
	WITHOUT(gpa_read);
	WITHOUT(gpa_write);
	r->script.ops.size = offsetof(struct vpmu_ops, get_sample);
	assert_int_equal(ask(r, caps, 0), -VPMU_EOPNOTSUPP);
	done(r);

	/* and where it is not asked for, none of it is there */
	r = pebs_rig_new(4, 0, NULL);
	config(r, caps & ~VPMU_CAP_PEBS, &cfg);
	replace(r, &cfg);
	assert_true(vpmu_arch_cpuid(r->v, 1, 0, &c));
	assert_int_equal(c.ecx, ~(uint32_t)BIT(2));
	assert_int_equal(c.edx, ~(uint32_t)BIT(21));
	assert_int_equal(vpmu_arch_misc_enable(r->v) >> 12 & 1, 1);
	assert_true(wr_faults(r, PEBS_ENABLE, 0));
	assert_true(wr_faults(r, DATA_CFG, 0));
	assert_true(wr_faults(r, DS_AREA, 0));
	assert_true(wr_faults(r, EVTSEL, BIT(34)));
	assert_int_equal(vpmu_arch_rdmsr(r->v, DS_AREA, &value), VPMU_FAULT);
	done(r);
}

/* Wrap, and what comes next --------------------------------------------------- */

static void test_sequence(void **state)
{
	struct pebs_rig *r = sampling(3, 5);
	uint64_t start = pebs_rig_count(r);

	(void)state;
	pebs_rig_run(r, 3);
	assert_int_equal(rd(r, A_PMC), 0);
	assert_int_equal(ds_index(r), BUFFER);
	assert_int_equal(rd(r, STATUS), 0);
	assert_true(r->script.watch);
	pebs_rig_run(r, 1);
	assert_int_equal(ds_index(r), BUFFER + 32);
	assert_int_equal(pebs_rig_load(r, BUFFER + 8), RIG_CODE + 4 * (start + 3));
	assert_int_equal(pebs_rig_load(r, BUFFER + 16), 1);
	assert_int_equal(rd(r, A_PMC), -(uint64_t)5 & MASK48);
	assert_int_equal(rd(r, STATUS), 0);
	assert_false(r->script.watch);
	/* and so on, every sixth */
	pebs_rig_run(r, 60);
	assert_int_equal(ds_index(r), BUFFER + 11 * 32);
	assert_int_equal(pebs_rig_load(r, BUFFER + 10 * 32 + 8),
			 RIG_CODE + 4 * (start + 63));
	assert_int_equal(r->n_pmi, 0);
	done(r);
}

/* The place of a record is known while it is awaited. */
static void test_places(void **state)
{
	struct pebs_rig *r = sampling(3, 5);
	uint64_t at[4] = { 0 };

	(void)state;
	assert_int_equal(vpmu_arch_record_places(r->v, at), 0);
	pebs_rig_run(r, 3);
	assert_int_equal(vpmu_arch_record_places(r->v, at), 4);
	assert_int_equal(at[0], DS + 0x28);
	assert_in_range(at[1], DS + 0x80, DS + 0x100);
	assert_int_equal(at[2], BUFFER);
	assert_int_equal(at[3], BUFFER + 31);
	r->map[0] = RIG_UNMAPPED;
	assert_int_equal(vpmu_arch_record_places(r->v, at), 2);
	r->map[0] = RIG_WRITABLE;
	pebs_rig_store(r, DS + 0x30, BUFFER + 31);
	assert_int_equal(vpmu_arch_record_places(r->v, at), 2);
	pebs_rig_store(r, DS + 0x30, BUFFER + 32);
	pebs_rig_run(r, 1);
	assert_int_equal(ds_index(r), BUFFER + 32);
	assert_int_equal(vpmu_arch_record_places(r->v, at), 0);
	done(r);
}

static void test_threshold(void **state)
{
	struct pebs_rig *r = sampling(1, 1);

	(void)state;
	ds_set(r, BUFFER, BUFFER + 96, BUFFER + 64);
	wr(r, DEBUGCTL, BIT(12));
	pebs_rig_run(r, 2);
	assert_int_equal(r->n_pmi, 0);
	assert_int_equal(rd(r, STATUS), 0);
	pebs_rig_run(r, 2);
	assert_int_equal(r->n_pmi, 1);
	assert_int_equal(rd(r, STATUS), OVFBUF | CHANGED | BIT(59));
	pebs_rig_run(r, 10); /* frozen */
	assert_int_equal(ds_index(r), BUFFER + 64);
	wr(r, OVF_CTRL, rd(r, STATUS));
	wr(r, DEBUGCTL, 0);
	/* the last one fits, and interrupts; then nothing more does */
	pebs_rig_run(r, 2);
	assert_int_equal(r->n_pmi, 2);
	assert_int_equal(rd(r, STATUS) & OVFBUF, OVFBUF);
	wr(r, OVF_CTRL, rd(r, STATUS));
	pebs_rig_run(r, 10);
	assert_int_equal(ds_index(r), BUFFER + 96);
	assert_int_equal(r->n_pmi, 2);
	assert_int_equal(rd(r, STATUS), 0);
	done(r);
}

/* Each counter's own reset value, GP and fixed, of both layouts of the area. */
static void test_reset_values(void **state)
{
	unsigned int format;

	(void)state;
	for (format = 4; format <= 5; format++) {
		struct pebs_rig *r = pebs_rig_new(format, 0, NULL);
		uint64_t fixed = format == 5 ? 0x140 : 0x80;

		ds_set(r, BUFFER, BUFFER + RIG_PAGE, BUFFER + RIG_PAGE);
		count(r, 0, 1, 100);
		count(r, 7, 1, 700);
		pebs_rig_store(r, DS + fixed, -900ull); /* 64 bits: cut to width */
		wr(r, FIXED, -(uint64_t)1 & MASK48);
		wr(r, FIXED_CTRL, 3);
		wr(r, PEBS_ENABLE, BIT(0) | BIT(7) | BIT(32));
		wr(r, GLOBAL, BIT(0) | BIT(7) | BIT(32));
		pebs_rig_run(r, 2);
		/* at one instruction: one record for all three */
		assert_int_equal(ds_index(r), BUFFER + 32);
		assert_int_equal(pebs_rig_load(r, BUFFER + 16), BIT(0) | BIT(7) | BIT(32));
		assert_int_equal(rd(r, A_PMC), -(uint64_t)100 & MASK48);
		assert_int_equal(rd(r, A_PMC + 7), -(uint64_t)700 & MASK48);
		assert_int_equal(rd(r, FIXED), -(uint64_t)900 & MASK48);
		done(r);
	}
}

/* Only counters that have wrapped are in a record and take a new value. */
static void test_applicable(void **state)
{
	struct pebs_rig *r = sampling(3, 50);

	(void)state;
	count(r, 1, 4, 60);
	wr(r, PEBS_ENABLE, 3);
	wr(r, GLOBAL, 3);
	pebs_rig_run(r, 4);
	assert_int_equal(pebs_rig_load(r, BUFFER + 16), 1);
	assert_int_equal(rd(r, A_PMC + 1), 0); /* it has wrapped: the next is its own */
	pebs_rig_run(r, 1);
	assert_int_equal(pebs_rig_load(r, BUFFER + 32 + 16), 2);
	assert_int_equal(rd(r, A_PMC), -(uint64_t)49 & MASK48);
	assert_int_equal(rd(r, A_PMC + 1), -(uint64_t)60 & MASK48);
	done(r);
}

/* Counters that want different groups have a record each. */
static void test_two_kinds(void **state)
{
	struct pebs_rig *r = sampling(1, 9);

	(void)state;
	wr(r, DATA_CFG, 1);
	count(r, 1, 1, 9);
	wr(r, EVTSEL + 1, INSTRUCTIONS | ON);
	wr(r, PEBS_ENABLE, 3);
	wr(r, GLOBAL, 3);
	pebs_rig_run(r, 2);
	assert_int_equal(ds_index(r), BUFFER + 64 + 32);
	assert_int_equal(pebs_rig_load(r, BUFFER), (uint64_t)64 << 48 | 1);
	assert_int_equal(pebs_rig_load(r, BUFFER + 16), 1);
	assert_int_equal(pebs_rig_load(r, BUFFER + 64), (uint64_t)32 << 48);
	assert_int_equal(pebs_rig_load(r, BUFFER + 64 + 16), 2);
	done(r);
}

/* The next occurrence is of the event: what happens in between is not named. */
static void test_branches(void **state)
{
	struct pebs_rig *r = sampling(1, 1000);
	uint64_t n;

	(void)state;
	wr(r, EVTSEL, BRANCHES | ON | ADAPTIVE);
	wr(r, A_PMC, MASK48);
	pebs_rig_run(r, 7);
	vpmu_script_step(&r->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
	assert_true(r->script.watch);
	pebs_rig_run(r, 7);
	assert_int_equal(ds_index(r), BUFFER);
	n = pebs_rig_count(r);
	vpmu_script_step(&r->script, VPMU_BANK_KERNEL, VPMU_SIGNAL_RET);
	assert_int_equal(pebs_rig_load(r, BUFFER + 8), RIG_CODE + 4 * n);
	done(r);
}

/* Without PEBS_ENABLE an overflow is an ordinary one. */
static void test_off(void **state)
{
	struct pebs_rig *r = sampling(3, 5);

	(void)state;
	wr(r, EVTSEL, INSTRUCTIONS | ON | ADAPTIVE | INT);
	pebs_rig_run(r, 2);
	wr(r, PEBS_ENABLE, 0);
	pebs_rig_run(r, 1);
	assert_int_equal(rd(r, STATUS), 1 | CHANGED);
	assert_int_equal(r->n_pmi, 1);
	pebs_rig_run(r, 9);
	assert_int_equal(ds_index(r), BUFFER);
	done(r);
}

/* A guest switches PEBS off and on around whatever it does to its PMU. */
static void test_off_for_a_moment(void **state)
{
	struct pebs_rig *r = sampling(3, 5);
	uint64_t n;

	(void)state;
	pebs_rig_run(r, 3);
	wr(r, GLOBAL, 0);
	assert_false(r->script.watch);
	wr(r, PEBS_ENABLE, 0);
	pebs_rig_run(r, 10);
	wr(r, PEBS_ENABLE, 1);
	wr(r, GLOBAL, 1);
	assert_true(r->script.watch);
	n = pebs_rig_count(r);
	pebs_rig_run(r, 1);
	assert_int_equal(ds_index(r), BUFFER + 32);
	assert_int_equal(pebs_rig_load(r, BUFFER + 8), RIG_CODE + 4 * n);
	/* a value that it writes begins a new measurement */
	pebs_rig_run(r, 5);
	assert_true(r->script.watch);
	wr(r, A_PMC, -(uint64_t)2 & MASK48);
	assert_false(r->script.watch);
	pebs_rig_run(r, 2);
	assert_int_equal(ds_index(r), BUFFER + 32);
	pebs_rig_run(r, 1);
	assert_int_equal(ds_index(r), BUFFER + 64);
	done(r);
}

/* Layouts --------------------------------------------------------------------- */

static unsigned int expect(const struct pebs_rig *r, uint64_t at, uint64_t value)
{
	uint64_t is = pebs_rig_load(r, at);

	if (is != value)
		fail_msg("at %llx: %llx, expected %llx", (unsigned long long)(at - BUFFER),
			 (unsigned long long)is, (unsigned long long)value);
	return 8;
}

static void expect_adaptive(struct pebs_rig *r, uint64_t cfg, unsigned int lbrs)
{
	unsigned int size = 32 + (cfg & 1 ? 32 : 0) + (cfg & 2 ? 144 : 0) +
			    (cfg & 4 ? 256 : 0) + (cfg & 8 ? 24 * lbrs : 0), i;
	uint64_t at = BUFFER;
	struct vpmu_sample s;

	pebs_rig_sample(r, &s);
	assert_int_equal(ds_index(r), BUFFER + size);
	at += expect(r, at, (uint64_t)size << 48 | cfg);
	at += expect(r, at, s.ip);
	at += expect(r, at, 1);
	at += expect(r, at, s.tsc);
	if (cfg & 1) {
		at += expect(r, at, s.address);
		for (i = 0; i < 3; i++)
			at += expect(r, at, 0);
	}
	if (cfg & 2) {
		at += expect(r, at, 0x202);
		at += expect(r, at, s.ip + 4);
		for (i = 0; i < 16; i++) /* ax cx dx bx sp bp si di r8 .. r15 */
			at += expect(r, at, s.gpr[i]);
	}
	for (i = 0; cfg & 4 && i < 32; i++)
		at += expect(r, at, s.xmm[i / 2][i % 2]);
	for (i = 0; cfg & 8 && i < 3 * lbrs; i++)
		at += expect(r, at, 0);
	assert_int_equal(at, BUFFER + size);
	expect(r, at, ~(uint64_t)0); /* and not a byte more */
}

static void test_adaptive(void **state)
{
	unsigned int groups, i;

	(void)state;
	for (groups = 0; groups < 16; groups++)
		for (i = 0; i < 3; i++) {
			unsigned int lbrs = i * 15 + 1 + i / 2;
			uint64_t cfg = groups | (uint64_t)(lbrs - 1) << 24;
			struct pebs_rig *r = sampling(1, 1000);

			memset(r->ram + (BUFFER - RIG_LINEAR), 0xff, 3 * RIG_PAGE);
			wr(r, DATA_CFG, cfg);
			pebs_rig_run(r, 2);
			expect_adaptive(r, cfg, lbrs);
			done(r);
		}
}

static void test_fixed_formats(void **state)
{
	static const unsigned int size[] = { 144, 176, 192, 200 };
	unsigned int format, i;

	(void)state;
	for (format = 0; format < 4; format++) {
		struct pebs_rig *r = pebs_rig_new(format, 0, NULL);
		uint64_t at = BUFFER;
		struct vpmu_sample s;

		memset(r->ram + (BUFFER - RIG_LINEAR), 0xff, RIG_PAGE);
		ds_set(r, BUFFER, BUFFER + RIG_PAGE, BUFFER + RIG_PAGE);
		wr(r, EVTSEL + 2, INSTRUCTIONS | ON);
		wr(r, A_PMC + 2, MASK48);
		wr(r, 0x391, 2); /* counter 1 has overflowed before */
		wr(r, PEBS_ENABLE, 4);
		wr(r, GLOBAL, 4);
		pebs_rig_run(r, 2);
		pebs_rig_sample(r, &s);
		assert_int_equal(ds_index(r), BUFFER + size[format]);
		at += expect(r, at, s.flags);
		at += expect(r, at, s.next_ip);
		at += expect(r, at, s.gpr[0]); /* ax */
		at += expect(r, at, s.gpr[3]); /* bx */
		at += expect(r, at, s.gpr[1]); /* cx */
		at += expect(r, at, s.gpr[2]); /* dx */
		at += expect(r, at, s.gpr[6]); /* si */
		at += expect(r, at, s.gpr[7]); /* di */
		at += expect(r, at, s.gpr[5]); /* bp */
		at += expect(r, at, s.gpr[4]); /* sp */
		for (i = 8; i < 16; i++)
			at += expect(r, at, s.gpr[i]);
		if (format >= 1) {
			at += expect(r, at, format < 3 ? 6 : 4);
			at += expect(r, at, s.address);
			at += expect(r, at, 0);
			at += expect(r, at, 0);
		}
		if (format >= 2) {
			at += expect(r, at, s.ip);
			at += expect(r, at, 0);
		}
		if (format >= 3)
			at += expect(r, at, s.tsc);
		expect(r, at, ~(uint64_t)0);
		done(r);
	}
}

/* Entries are the guest's own, newest first. */
static void test_lbr_group(void **state)
{
	struct pebs_rig *r = sampling(1, 1000);

	(void)state;
	wr(r, DEBUGCTL, 1);
	vpmu_script_branch(&r->script, VPMU_BRANCH_JMP, false, 0x1000, 0x2000);
	vpmu_script_branch(&r->script, VPMU_BRANCH_RET, false, 0x3000, 0x4000);
	wr(r, DATA_CFG, 8 | 2ull << 24);
	pebs_rig_run(r, 2);
	assert_int_equal(ds_index(r), BUFFER + 32 + 3 * 24);
	expect(r, BUFFER + 32, 0x3000);
	expect(r, BUFFER + 40, 0x4000);
	expect(r, BUFFER + 56, 0x1000);
	expect(r, BUFFER + 64, 0x2000);
	expect(r, BUFFER + 80, 0);
	done(r);
}

/* Hostile memory ---------------------------------------------------------------- */

/* One record at @index: is it written, and is the counter's value taken? */
static void lost(uint64_t ds, uint64_t index, uint64_t max, int page, enum rig_map map,
		 bool written, bool reset)
{
	struct pebs_rig *r = pebs_rig_new(4, 0, NULL);
	uint8_t *before = test_malloc(RIG_RAM);
	unsigned int i, changed = 0;

	if (ds - RIG_LINEAR <= RIG_RAM - 0x48) {
		pebs_rig_store(r, ds + 0x28, index);
		pebs_rig_store(r, ds + 0x30, max);
		pebs_rig_store(r, ds + 0x38, ~(uint64_t)0);
		pebs_rig_store(r, ds + 0x40, 77);
	}
	wr(r, DS_AREA, ds);
	wr(r, EVTSEL, INSTRUCTIONS | ON);
	wr(r, A_PMC, MASK48);
	wr(r, PEBS_ENABLE, 1);
	wr(r, GLOBAL, 1);
	if (page >= 0)
		r->map[page] = (uint8_t)map;
	memcpy(before, r->ram, RIG_RAM);
	pebs_rig_run(r, 1);
	r->n_hook = 0;
	pebs_rig_run(r, 1);
	assert_true(r->n_hook <= 40);
	for (i = 0; i < RIG_RAM; i++)
		changed += r->ram[i] != before[i];
	if (!changed != !written)
		fail_msg("ds %llx, index %llx, page %d: %u bytes changed",
			 (unsigned long long)ds, (unsigned long long)index, page, changed);
	assert_int_equal(rd(r, A_PMC), reset ? 77 : 1);
	assert_int_equal(rd(r, STATUS) | r->n_pmi, 0);
	test_free(before);
	done(r);
}

static void test_hostile(void **state)
{
	uint64_t end = RIG_LINEAR + RIG_RAM;

	(void)state;
	lost(DS, BUFFER, end, -1, RIG_WRITABLE, true, true);
	lost(DS + 3, BUFFER + 5, end, -1, RIG_WRITABLE, true, true);
	lost(DS, BUFFER, BUFFER + 32, -1, RIG_WRITABLE, true, true);
	lost(DS, BUFFER, BUFFER + 31, -1, RIG_WRITABLE, false, true);
	lost(DS, BUFFER, BUFFER - 1, -1, RIG_WRITABLE, false, true);
	lost(DS, ~(uint64_t)15, ~(uint64_t)0, -1, RIG_WRITABLE, false, true);
	lost(DS, ~(uint64_t)31, ~(uint64_t)0, -1, RIG_WRITABLE, false, true);
	/* the buffer's pages, its second one too */
	lost(DS, BUFFER, end, 1, RIG_UNMAPPED, false, true);
	lost(DS, BUFFER, end, 1, RIG_READ_ONLY, false, true);
	lost(DS, BUFFER, end, 1, RIG_MMIO, false, true);
	lost(DS, BUFFER + 16, end, 2, RIG_UNMAPPED, false, true);
	lost(DS, BUFFER + 16, end, 2, RIG_READ_ONLY, false, true);
	/* an address without anything */
	lost(DS, end, ~(uint64_t)0, -1, RIG_WRITABLE, false, true);
	lost(DS, 0x8000000000000000, ~(uint64_t)0, -1, RIG_WRITABLE, false, true);
	/* the area itself */
	lost(DS, BUFFER, end, 0, RIG_UNMAPPED, false, false);
	lost(DS, BUFFER, end, 0, RIG_MMIO, false, false);
	lost(DS, BUFFER, end, 0, RIG_READ_ONLY, false, true);
	lost(RIG_LINEAR + 4 * RIG_PAGE - 0x2c, BUFFER, end, 4, RIG_UNMAPPED, false, false);
	lost(RIG_LINEAR + 4 * RIG_PAGE - 0x2c, BUFFER, end, 4, RIG_READ_ONLY, false, true);
	lost(end, BUFFER, end, -1, RIG_WRITABLE, false, false);
	lost(0, BUFFER, end, -1, RIG_WRITABLE, false, false);
	lost(~(uint64_t)0x2f, BUFFER, end, -1, RIG_WRITABLE, false, false);
	/* a record over the area: what was read before counts, then the index */
	lost(DS, DS + 0x18, end, -1, RIG_WRITABLE, true, true);
}

/* An index that its own record has just overwritten. */
static void test_overlap(void **state)
{
	struct pebs_rig *r = sampling(1, 5);

	(void)state;
	ds_set(r, DS + 0x20, RIG_LINEAR + RIG_RAM, 0);
	pebs_rig_run(r, 2);
	assert_int_equal(ds_index(r), DS + 0x40);
	assert_int_equal(pebs_rig_load(r, DS + 0x20), (uint64_t)32 << 48);
	assert_int_equal(r->n_pmi, 1);
	pebs_rig_run(r, 600); /* whatever comes of it is bounded */
	done(r);
}

/* State, filter, arbitration ------------------------------------------------------ */

static void test_state(void **state)
{
	uint8_t buf[STATE_MAX], again[STATE_MAX];
	struct pebs_rig *a = sampling(3, 5), *b;
	size_t used, more, i;
	unsigned int left;

	(void)state;
	for (left = 0; left < 12; left++) {
		pebs_rig_run(a, 1);
		assert_int_equal(vpmu_arch_save(a->v, buf, sizeof(buf), &used), 0);
		b = pebs_rig_new(4, 0, NULL);
		memcpy(b->ram, a->ram, RIG_RAM);
		b->script.truth = a->script.truth;
		assert_int_equal(vpmu_arch_load(b->v, buf, used), 0);
		assert_int_equal(b->script.watch, a->script.watch);
		assert_int_equal(vpmu_arch_save(b->v, again, sizeof(again), &more), 0);
		assert_int_equal(more, used);
		assert_memory_equal(buf, again, used);
		pebs_rig_run(b, 14);
		pebs_rig_free(a);
		a = sampling(3, 5);
		pebs_rig_run(a, left + 1 + 14);
		assert_memory_equal(a->ram + RIG_PAGE, b->ram + RIG_PAGE, RIG_RAM - RIG_PAGE);
		assert_int_equal(ds_index(a), ds_index(b));
		done(b);
		pebs_rig_free(a);
		a = sampling(3, 5);
		pebs_rig_run(a, left + 1);
	}
	/* a modified state is refused, or is valid; it is never loaded in part */
	for (i = 0; i < used; i++) {
		buf[i] ^= 0x81;
		b = pebs_rig_new(4, 0, NULL);
		(void)vpmu_arch_load(b->v, buf, used);
		pebs_rig_run(b, 3);
		done(b);
		buf[i] ^= 0x81;
	}
	/* another format is another layout */
	b = pebs_rig_new(5, 0, NULL);
	assert_int_equal(vpmu_arch_load(b->v, buf, used), -VPMU_EINVAL);
	done(b);
	done(a);
}

static void test_filtered(void **state)
{
	static const uint64_t entry = INSTRUCTIONS;
	struct vpmu_filter f = { .size = sizeof(f) };
	struct pebs_rig *r = sampling(3, 5);

	(void)state;
	f.action = VPMU_FILTER_DENY;
	f.n_events = 1;
	f.events = &entry;
	pebs_rig_run(r, 3);
	assert_int_equal(vpmu_arch_filter(r->v, &f), 0);
	pebs_rig_run(r, 100);
	assert_int_equal(ds_index(r), BUFFER);
	assert_false(r->script.watch);
	assert_int_equal(vpmu_arch_filter(r->v, NULL), 0);
	pebs_rig_run(r, 1);
	assert_int_equal(ds_index(r), BUFFER + 32);
	done(r);
}

static void perf_service(void *arg)
{
	struct pebs_rig *r = arg;

	vpmu_arch_service(r->v);
}

/* @msr: the register by which counter 0 gets PEBS, with its bit @enable */
static void arbitrate(struct pebs_rig *r, uint32_t msr, unsigned int enable)
{
	struct vpmu_arch_config cfg = { .size = sizeof(cfg) };
	struct vpmu_perf_attr attr = { .size = sizeof(attr), .cpu = -1 };
	struct vpmu_perf_cpu *cpu = test_calloc(1, sizeof(*cpu));
	struct vpmu_perf_event host;
	struct vpmu_perf_system sys;
	struct vpmu_pmc_info info;
	struct vpmu_vcpu vcpu;

	vpmu_perf_system_init(&sys, &r->model, VPMU_SCRIPT_SUPPLIED, 0, 0);
	vpmu_script_init(&r->script, VPMU_SCRIPT_SUPPLIED);
	r->script.service = perf_service;
	r->script.arg = r;
	assert_int_equal(vpmu_perf_cpu_init(cpu, &sys, 0, &r->script.ops, r), 0);
	r->script.silicon = &cpu->silicon;
	assert_int_equal(vpmu_vcpu_init(&vcpu, &sys, VPMU_POLICY_SHARED), 0);
	vpmu_vcpu_load(&vcpu, cpu);
	vpmu_vcpu_enter(&vcpu);
	free(r->v);
	cfg.model = &r->model;
	cfg.n_fixed = -1;
	cfg.capabilities = r->model.capabilities;
	cfg.provider = &vcpu.provider;
	cfg.ops = &r->script.ops;
	cfg.ctx = r;
	cfg.cpuid_base = 0x40000300;
	assert_int_equal(vpmu_arch_size(&cfg, &r->size, NULL), 0);
	r->v = malloc(r->size);
	assert_int_equal(vpmu_arch_init(r->v, &cfg, NULL), 0);

	attr.event.size = sizeof(attr.event);
	attr.event.banks = VPMU_BANKS_KERNEL | VPMU_BANKS_USER;
	attr.event.fixed = -1;
	attr.event.slot = -1;
	attr.event.pinned = true;
	attr.event.select = BRANCHES;
	attr.event.shared = VPMU_SHARED_PEBS;
	attr.event.extra = VPMU_SHARED_ALONE;
	memset(&host, 0, sizeof(host));
	assert_int_equal(vpmu_perf_open(&host, &attr, cpu, NULL), 0);

	wr(r, EVTSEL, INSTRUCTIONS | ON);
	wr(r, EVTSEL + 1, INSTRUCTIONS | ON);
	wr(r, GLOBAL, 3);
	pebs_rig_run(r, 10);
	assert_int_equal(rd(r, A_PMC), 10);
	wr(r, msr, BIT(enable));
	pebs_rig_run(r, 10);
	assert_true(vpmu_arch_pmc_info(r->v, 0, &info));
	assert_int_equal(info.loss, VPMU_LOSS_LOST);
	assert_true(vpmu_arch_pmc_info(r->v, 1, &info));
	assert_int_equal(info.loss, VPMU_LOSS_NONE);
	vpmu_perf_close(&host);
	wr(r, GLOBAL, 0);
	wr(r, GLOBAL, 3);
	assert_true(vpmu_arch_pmc_info(r->v, 0, &info));
	assert_int_equal(info.loss, VPMU_LOSS_NONE);
	assert_ptr_not_equal(vpmu_perf_shared_owner(cpu, VPMU_SHARED_PEBS), NULL);
	vpmu_arch_reset(r->v, false);
	vpmu_vcpu_exit(&vcpu);
	vpmu_vcpu_put(&vcpu);
	vpmu_vcpu_fini(&vcpu);
	assert_null(r->script.broken);
	free(r->v);
	free(r);
	test_free(cpu);
}

/* A host that samples precisely has PEBS; the guest's plain counters still count. */
static void test_arbitration(void **state)
{
	(void)state;
	arbitrate(pebs_rig_new(4, 0, NULL), PEBS_ENABLE, 0);
	arbitrate(pebs_rig_new_model(vpmu_model_find(VPMU_VENDOR_INTEL, 6, 221), 0, 0), 0x1903,
		  63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offered),
		cmocka_unit_test(test_linear),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_reset_values),
		cmocka_unit_test(test_applicable),
		cmocka_unit_test(test_two_kinds),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_off_for_a_moment),
		cmocka_unit_test(test_adaptive),
		cmocka_unit_test(test_fixed_formats),
		cmocka_unit_test(test_lbr_group),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_filtered),
		cmocka_unit_test(test_arbitration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
