// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The architectural PMU over an engine that feeds a model of the micro-architecture. */
#include "pebs_rig.h"

#include <vpmu/state.h>

#include <vpmu/uarch.h>

#define OF(name)	VPMU_SIGNAL_OF(VPMU_UARCH_##name)
#define USER		VPMU_BANK_USER
#define EVTSEL		VPMU_MSR_PERFEVTSEL0
#define EN_ALL		(VPMU_EVTSEL_EN | VPMU_EVTSEL_OS | VPMU_EVTSEL_USR)
#define ICELAKE		106
#define SAPPHIRE	143

static void happen(struct pebs_rig *r, enum vpmu_signal signal, uint64_t n)
{
	vpmu_script_retire(&r->script, signal, USER, n);
}

/* Saved and loaded into another one. */
static struct pebs_rig *moved(struct pebs_rig *r, uint8_t model)
{
	struct pebs_rig *other = pebs_rig_new_uarch(model);
	static uint8_t buf[65536];
	size_t used;

	assert_int_equal(vpmu_arch_save(r->v, buf, sizeof(buf), &used), 0);
	assert_int_equal(vpmu_arch_load(other->v, buf, used), 0);
	pebs_rig_free(r);
	return other;
}

/* All architectural events are there, and count. */
static void test_architectural(void **state)
{
	struct pebs_rig *r = pebs_rig_new_uarch(ICELAKE);
	struct vpmu_cpuid regs = { 0 };

	(void)state;
	vpmu_arch_cpuid(r->v, 0xa, 0, &regs);
	assert_int_equal(regs.ebx, 0);
	wr(r, EVTSEL, 0x412e | EN_ALL);
	wr(r, EVTSEL + 1, 0x00c5 | EN_ALL);
	wr(r, EVTSEL + 2, 0x04a3 | 4u << 24 | EN_ALL);
	wr(r, VPMU_MSR_GLOBAL_CTRL, 7);
	happen(r, OF(READ_DRAM), 3);
	happen(r, OF(CODE_DRAM), 2);
	happen(r, OF(READ_LLC), 50);
	happen(r, OF(MISP_RET), 4);
	happen(r, OF(STALLS), 9);
	assert_int_equal(rd(r, VPMU_MSR_PMC0), 5);
	assert_int_equal(rd(r, VPMU_MSR_PMC0 + 1), 4);
	assert_int_equal(rd(r, VPMU_MSR_PMC0 + 2), 9);
	assert_null(r->script.broken);
	pebs_rig_free(r);
}

/* Requests, and who answered, as Linux writes them for its generic cache events. */
static void test_offcore(void **state)
{
	static const struct {
		uint8_t model;
		uint64_t event, response;
		/*
		 * Sum of 1 for each read from the last level, 10 from memory, 100 and
		 * 1000 for writes, 10000 and 100000 for code.
		 */
		uint64_t want;
	} row[] = {
		{ ICELAKE, 0x01b7, 0x3fc0010001, 11 },
		{ ICELAKE, 0x01bb, 0x3ffc020001, 10 },
		{ ICELAKE, 0x01b7, 0x3fc0010002, 1100 },
		{ ICELAKE, 0x01b7, 0x3ffc020002, 1000 },
		{ ICELAKE, 0x01b7, 0x1fc4000001, 10 },
		{ ICELAKE, 0x01b7, 0x1ff8000001, 0 },
		{ SAPPHIRE, 0x012a, 0x10001, 11 },
		{ SAPPHIRE, 0x012b, 0x3fbfc00001, 10 },
		{ SAPPHIRE, 0x012a, 0x3f3ffc0002, 1100 },
		{ SAPPHIRE, 0x012a, 0x3f3fc00002, 1000 },
		{ SAPPHIRE, 0x012a, 0x10004, 110000 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		struct pebs_rig *r = pebs_rig_new_uarch(row[i].model);
		uint32_t msr = VPMU_MSR_OFFCORE_RSP_0 + (row[i].event == 0x01bb ||
							 row[i].event == 0x012b);

		wr(r, msr, row[i].response);
		wr(r, EVTSEL, row[i].event | EN_ALL);
		wr(r, VPMU_MSR_GLOBAL_CTRL, 1);
		happen(r, OF(READ_LLC), 1);
		happen(r, OF(READ_DRAM), 10);
		happen(r, OF(READ_L2), 7);
		happen(r, OF(RFO_LLC), 100);
		r = moved(r, row[i].model);
		happen(r, OF(RFO_DRAM), 1000);
		happen(r, OF(CODE_LLC), 10000);
		happen(r, OF(CODE_DRAM), 100000);
		if (rd(r, VPMU_MSR_PMC0) != row[i].want)
			fail_msg("row %zu: %llu", i, (unsigned long long)rd(r, VPMU_MSR_PMC0));
		assert_true(rd(r, msr) == row[i].response);
		/* Something else from now on, with the selector as it is. */
		wr(r, VPMU_MSR_PMC0, 0);
		wr(r, msr, 0x10004);
		happen(r, OF(CODE_DRAM), 5);
		happen(r, OF(READ_DRAM), 6);
		assert_int_equal(rd(r, VPMU_MSR_PMC0), 5);
		assert_int_equal(vpmu_arch_wrmsr(r->v, msr, 1ull << 40), VPMU_FAULT);
		assert_null(r->script.broken);
		pebs_rig_free(r);
	}
}

/* Without a model there are none of these registers. */
static void test_without_model(void **state)
{
	static const uint32_t msr[] = { VPMU_MSR_OFFCORE_RSP_0, VPMU_MSR_OFFCORE_RSP_0 + 1,
					VPMU_MSR_PEBS_LD_LAT };
	struct pebs_rig *r = pebs_rig_new(4, 5, NULL);
	uint64_t value;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(msr); i++) {
		assert_int_equal(vpmu_arch_rdmsr(r->v, msr[i], &value), VPMU_FAULT);
		assert_int_equal(vpmu_arch_wrmsr(r->v, msr[i], 0), VPMU_FAULT);
	}
	pebs_rig_free(r);
}

#define DS	RIG_LINEAR
#define BUFFER	(RIG_LINEAR + RIG_PAGE)

static void one_record(struct pebs_rig *r, uint64_t event, enum vpmu_signal signal)
{
	pebs_rig_store(r, DS + VPMU_DS_PEBS_INDEX, BUFFER);
	pebs_rig_store(r, DS + VPMU_DS_PEBS_MAX, BUFFER + 2048);
	pebs_rig_store(r, DS + VPMU_DS_PEBS_THRESHOLD, BUFFER + 2048);
	pebs_rig_store(r, DS + VPMU_DS_PEBS_RESET + 8, (uint64_t)-100);
	wr(r, VPMU_MSR_GLOBAL_CTRL, 0);
	wr(r, EVTSEL + 1, 0);
	wr(r, VPMU_MSR_DS_AREA, DS);
	wr(r, VPMU_MSR_PEBS_ENABLE + 1, VPMU_PEBS_MEMORY);
	wr(r, VPMU_MSR_PEBS_ENABLE, 2);
	wr(r, VPMU_MSR_A_PMC0 + 1, 0xffffffffffff);
	wr(r, EVTSEL + 1, event | EN_ALL | VPMU_EVTSEL_ADAPTIVE);
	wr(r, VPMU_MSR_GLOBAL_CTRL, 2);
	pebs_rig_run(r, 1);
	happen(r, signal, 2);
	assert_int_equal(pebs_rig_load(r, DS + VPMU_DS_PEBS_INDEX), BUFFER + 64);
	assert_null(r->script.broken);
}

/* The threshold reaches the model; records say where data was, and how long it took. */
static void test_latency(void **state)
{
	struct pebs_rig *r = pebs_rig_new_uarch(ICELAKE);

	(void)state;
	wr(r, VPMU_MSR_PEBS_LD_LAT, 30);
	assert_int_equal(r->threshold, 30);
	assert_int_equal(vpmu_arch_wrmsr(r->v, VPMU_MSR_PEBS_LD_LAT, 1ull << 16), VPMU_FAULT);
	r = moved(r, ICELAKE);
	assert_int_equal(r->threshold, 30);
	assert_int_equal(rd(r, VPMU_MSR_PEBS_LD_LAT), 30);
	r->access.latency = 250;
	r->access.level = VPMU_UARCH_AT_DRAM;
	r->access.tlb = 2;
	one_record(r, 0x01cd, OF(LOAD_SLOW));
	assert_int_equal(pebs_rig_load(r, BUFFER + 40), 0x1a);
	assert_int_equal(pebs_rig_load(r, BUFFER + 48), 250);
	r->access.level = VPMU_UARCH_AT_L1;
	r->access.tlb = 1;
	r->access.locked = true;
	one_record(r, 0x21d0, OF(LOCKED));
	assert_int_equal(pebs_rig_load(r, BUFFER + 40), 0x21);
	/* A store says whether it hit. */
	one_record(r, 0x82d0, OF(STORES));
	assert_int_equal(pebs_rig_load(r, BUFFER + 40), 0x21);
	r->access.level = VPMU_UARCH_AT_L2;
	one_record(r, 0x82d0, OF(STORES));
	assert_int_equal(pebs_rig_load(r, BUFFER + 40), 0x20);
	vpmu_arch_reset(r->v, false);
	assert_int_equal(r->threshold, 0);
	pebs_rig_free(r);

	r = pebs_rig_new_uarch(SAPPHIRE);
	r->access.latency = 70000;
	r->access.level = VPMU_UARCH_AT_LLC;
	one_record(r, 0x01cd, OF(LOAD_SLOW));
	assert_int_equal(pebs_rig_load(r, BUFFER + 40), 4);
	assert_int_equal(pebs_rig_load(r, BUFFER + 48), 0xffff0000ffff);
	pebs_rig_free(r);
}

#define METRICS		VPMU_MSR_PERF_METRICS
#define SLOTS_CTR	(VPMU_MSR_FIXED_CTR0 + 3)
#define EN_METRICS	(1ull << 48)
#define EN_SLOTS	(1ull << 35)

static uint64_t rdpmc(struct pebs_rig *r, uint32_t idx)
{
	uint64_t value = 0;

	assert_int_equal(vpmu_arch_rdpmc(r->v, idx, false, &value), VPMU_HANDLED);
	return value;
}

/* Linux begins like this: it zeroes the counter and the metrics, in that order. */
static void topdown_begin(struct pebs_rig *r)
{
	wr(r, VPMU_MSR_FIXED_CTR_CTRL, 0xb000);
	wr(r, SLOTS_CTR, 0);
	wr(r, METRICS, 0);
	wr(r, VPMU_MSR_GLOBAL_CTRL, EN_METRICS | EN_SLOTS);
}

static void classes(struct pebs_rig *r, uint64_t retiring, uint64_t bad, uint64_t frontend,
		    uint64_t backend)
{
	happen(r, OF(RETIRING), retiring);
	happen(r, OF(BAD_SPECULATION), bad);
	happen(r, OF(FRONTEND_BOUND), frontend);
	happen(r, OF(BACKEND_BOUND), backend);
}

static void test_topdown(void **state)
{
	struct pebs_rig *r = pebs_rig_new_uarch(ICELAKE);
	struct vpmu_cpuid regs = { 0 };
	uint64_t value, sum;
	unsigned int i;

	(void)state;
	vpmu_arch_cpuid(r->v, 0xa, 0, &regs);
	assert_int_equal(regs.edx & 0x1f, 4);
	assert_true(rd(r, VPMU_MSR_PERF_CAPABILITIES) & VPMU_CAP_METRICS);
	topdown_begin(r);
	assert_int_equal(rdpmc(r, 0x20000000), 0);
	classes(r, 50, 10, 15, 25);
	assert_int_equal(rdpmc(r, 0x40000003), 100);
	/* 127.5 and so on, rounded as sums: 128, 153, 191, 255 */
	assert_int_equal(rdpmc(r, 0x20000000), 128 | 25 << 8 | 38 << 16 | 64ull << 24);
	assert_int_equal(rd(r, METRICS), rdpmc(r, 0x20000000));
	r = moved(r, ICELAKE);
	assert_int_equal(rd(r, METRICS), 128 | 25 << 8 | 38 << 16 | 64ull << 24);
	/* Disabled, both stand still; with the counter alone, so do the metrics. */
	wr(r, VPMU_MSR_GLOBAL_CTRL, 0);
	classes(r, 1000, 0, 0, 0);
	wr(r, VPMU_MSR_GLOBAL_CTRL, EN_SLOTS);
	classes(r, 0, 1000, 0, 0);
	assert_int_equal(rd(r, SLOTS_CTR), 1100);
	assert_int_equal(rd(r, METRICS), 128 | 25 << 8 | 38 << 16 | 64ull << 24);
	/* After a new begin any split adds up to 255. */
	for (i = 1; i < 40; i++) {
		topdown_begin(r);
		classes(r, i * 7919 % 101, i * 104729 % 97, i * 1299709 % 89, i);
		value = rd(r, METRICS);
		sum = (value & 0xff) + (value >> 8 & 0xff) + (value >> 16 & 0xff) + (value >> 24);
		assert_int_equal(sum, 255);
	}
	/* Values that a guest restores continue from there. */
	wr(r, VPMU_MSR_GLOBAL_CTRL, 0);
	wr(r, SLOTS_CTR, 255000);
	wr(r, METRICS, 200 | 55ull << 24);
	assert_int_equal(rd(r, METRICS), 200 | 55ull << 24);
	wr(r, VPMU_MSR_GLOBAL_CTRL, EN_METRICS | EN_SLOTS);
	classes(r, 0, 255000, 0, 0);
	assert_int_equal(rd(r, METRICS), 100 | 128 << 8 | 27ull << 24);
	assert_int_equal(vpmu_arch_wrmsr(r->v, METRICS, 1ull << 32), VPMU_FAULT);
	assert_null(r->script.broken);
	pebs_rig_free(r);
}

/* Without a model each instruction has a slot, and retires; it is of no class of level 2. */
static void test_topdown_defined(void **state)
{
	struct pebs_rig *r = pebs_rig_new_model(vpmu_model_find(VPMU_VENDOR_INTEL, 6, SAPPHIRE),
						5, 0);
	struct vpmu_cpuid regs = { 0 };

	(void)state;
	vpmu_arch_cpuid(r->v, 0xa, 0, &regs);
	assert_int_equal(regs.edx & 0x1f, 4);
	assert_int_equal(regs.ebx & 0x80, 0);
	assert_true(rd(r, VPMU_MSR_PERF_CAPABILITIES) & VPMU_CAP_METRICS);
	topdown_begin(r);
	happen(r, VPMU_SIGNAL_INSTRUCTIONS, 1000);
	assert_int_equal(rdpmc(r, 0x40000003), 1000);
	assert_int_equal(rdpmc(r, 0x20000000), 255);
	/* Values that a guest writes are diluted by what follows. */
	wr(r, VPMU_MSR_GLOBAL_CTRL, 0);
	wr(r, SLOTS_CTR, 255000);
	wr(r, METRICS, 55 | 200 << 8);
	wr(r, VPMU_MSR_GLOBAL_CTRL, EN_METRICS | EN_SLOTS);
	happen(r, VPMU_SIGNAL_INSTRUCTIONS, 255000);
	assert_int_equal(rd(r, METRICS), 155 | 100 << 8);
	assert_int_equal(rd(r, SLOTS_CTR), 510000);
	assert_null(r->script.broken);
	pebs_rig_free(r);
}

/* Level 2 is part of level 1. */
static void test_topdown_2(void **state)
{
	struct pebs_rig *r = pebs_rig_new_uarch(SAPPHIRE);

	(void)state;
	topdown_begin(r);
	classes(r, 51, 51, 51, 102);
	happen(r, OF(HEAVY), 10);
	happen(r, OF(MISPREDICT), 20);
	happen(r, OF(FETCH_LATENCY), 51);
	happen(r, OF(MEMORY_BOUND), 100);
	assert_true(rd(r, METRICS) == (51 | 51 << 8 | 51 << 16 | 102ull << 24 | 10ull << 32 |
				       20ull << 40 | 51ull << 48 | 100ull << 56));
	pebs_rig_free(r);
}

/* The counter's overflow comes with the metrics' where they are as full. */
static void test_topdown_overflow(void **state)
{
	struct pebs_rig *r = pebs_rig_new_uarch(ICELAKE);

	(void)state;
	topdown_begin(r);
	wr(r, SLOTS_CTR, 0xffffffffff00);
	classes(r, 0x100, 0, 0, 0);
	assert_true(rd(r, VPMU_MSR_GLOBAL_STATUS) == (EN_SLOTS | 1ull << 63));
	assert_int_equal(r->n_pmi, 1);
	wr(r, VPMU_MSR_GLOBAL_OVF_CTRL, EN_SLOTS | 1ull << 63);
	wr(r, SLOTS_CTR, 0xffffffffff00);
	wr(r, METRICS, 255);
	classes(r, 0x100, 0, 0, 0);
	assert_true(rd(r, VPMU_MSR_GLOBAL_STATUS) == (EN_SLOTS | EN_METRICS | 1ull << 63));
	assert_int_equal(r->n_pmi, 2);
	wr(r, VPMU_MSR_GLOBAL_OVF_CTRL, EN_METRICS);
	assert_true(rd(r, VPMU_MSR_GLOBAL_STATUS) == (EN_SLOTS | 1ull << 63));
	assert_int_equal(rd(r, METRICS), 255);
	pebs_rig_free(r);
}

/*
 * A disabled counter that gets another value begins a new measurement; one that continues
 * does not.
 */
static void test_restarted(void **state)
{
	struct pebs_rig *r = pebs_rig_new_uarch(ICELAKE);

	(void)state;
	wr(r, VPMU_MSR_GLOBAL_CTRL, 1);
	wr(r, VPMU_MSR_PMC0, 0x80000001);
	assert_int_equal(r->n_restarted, 1);
	wr(r, EVTSEL, 0x412e | EN_ALL);
	happen(r, OF(READ_DRAM), 3);
	wr(r, EVTSEL, 0x412e);
	wr(r, VPMU_MSR_PMC0, 0x80000004);
	assert_int_equal(r->n_restarted, 1);
	wr(r, EVTSEL, 0x412e | EN_ALL);
	wr(r, VPMU_MSR_PMC0, 0x80000001);
	assert_int_equal(r->n_restarted, 1);
	wr(r, EVTSEL, 0x412e);
	wr(r, VPMU_MSR_PMC0, 0x80000002);
	assert_int_equal(r->n_restarted, 2);
	pebs_rig_free(r);
}

/* Sections of a saved state: fields that cannot have been, too little and too much. */
static size_t find_section(const uint8_t *state, size_t size, uint32_t id, uint32_t *bytes)
{
	size_t at = 16;
	uint32_t here;

	for (;;) {
		assert_true(at + 16 <= size);
		memcpy(&here, state + at, 4);
		memcpy(bytes, state + at + 8, 4);
		if (here == id)
			return at + 16;
		at += 16 + (*bytes + 7) / 8 * 8;
	}
}

static void test_sections(void **state)
{
	static const struct {
		int line;
		uint32_t id;
		struct { uint32_t at, bytes; uint64_t value; } put[3];
		int ret;
	} row[] = {
		/* kind, top, reason now and latest, generation, flags, control */
		{ __LINE__, VPMU_STATE_LBR, { { 0, 1, 0 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_LBR, { { 0, 1, 3 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_LBR, { { 1, 1, 32 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_LBR, { { 2, 2, 0x200 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_LBR, { { 2, 2, 0x101 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_LBR, { { 2, 2, 1 }, { 8, 8, 1 }, { 16, 8, 0 } },
		  -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_LBR, { { 8, 8, 2 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_LBR, { { 8, 8, 17 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_LBR, { { 8, 8, 32 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_LBR, { { 16, 8, 1 << 10 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_LBR, { { 2, 2, 0x101 }, { 8, 8, 1 }, { 16, 8, 0 } }, 0 },
		{ __LINE__, VPMU_STATE_LBR, { { 2, 2, 0x101 }, { 8, 8, 1 }, { 16, 8, 1 } }, 0 },
		/* format, reserved, three registers, wrapped, claimed */
		{ __LINE__, VPMU_STATE_PEBS, { { 0, 1, 3 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_PEBS, { { 1, 1, 1 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_PEBS, { { 8, 8, 1ull << 63 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_PEBS, { { 16, 8, 1ull << 63 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_PEBS, { { 24, 8, 1ull << 63 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_PEBS, { { 32, 8, 1ull << 63 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_PEBS, { { 40, 8, 1ull << 63 } }, -VPMU_EINVAL },
		/* two offcore responses, load latency */
		{ __LINE__, VPMU_STATE_EXTRA, { { 0, 8, 1ull << 62 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_EXTRA, { { 8, 8, 1ull << 62 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_EXTRA, { { 16, 8, 0x10000 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_EXTRA, { { 16, 8, 0xffff } }, 0 },
		/* the register, slots of each class */
		{ __LINE__, VPMU_STATE_TOPDOWN, { { 0, 8, 1ull << 32 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_TOPDOWN, { { 64, 8, 1ull << 60 } }, -VPMU_EINVAL },
		{ __LINE__, VPMU_STATE_TOPDOWN, { { 64, 8, 1ull << 59 } }, 0 },
	};
	static const uint32_t ids[] = { VPMU_STATE_LBR, VPMU_STATE_PEBS, VPMU_STATE_EXTRA,
					VPMU_STATE_TOPDOWN };
	struct pebs_rig *r = pebs_rig_new_uarch(ICELAKE);
	static uint8_t good[8192], buf[8192];
	uint32_t bytes, other;
	unsigned int i, k;
	size_t used, at;

	(void)state;
	wr(r, 0x1d9, 1);
	assert_int_equal(vpmu_arch_save(r->v, good, sizeof(good), &used), 0);
	for (i = 0; i < COUNT_OF(row); i++) {
		memcpy(buf, good, used);
		at = find_section(buf, used, row[i].id, &bytes);
		for (k = 0; k < 3; k++)
			memcpy(buf + at + row[i].put[k].at, &row[i].put[k].value,
			       row[i].put[k].bytes);
		if (vpmu_arch_load(r->v, buf, used) != row[i].ret)
			fail_msg("line %d", row[i].line);
	}
	for (i = 0; i < COUNT_OF(ids); i++) {
		/* Eight bytes less: the state too; eight bytes more. */
		memcpy(buf, good, used);
		at = find_section(buf, used, ids[i], &bytes);
		memmove(buf + at + bytes - 8, buf + at + bytes, used - at - bytes);
		other = bytes - 8;
		memcpy(buf + at - 8, &other, 4);
		other = (uint32_t)used - 8;
		memcpy(buf + 8, &other, 4);
		assert_int_equal(vpmu_arch_load(r->v, buf, other), -VPMU_EINVAL);
		memcpy(buf, good, used);
		memmove(buf + at + bytes + 8, buf + at + bytes, used - at - bytes);
		other = bytes + 8;
		memcpy(buf + at - 8, &other, 4);
		other = (uint32_t)used + 8;
		memcpy(buf + 8, &other, 4);
		assert_int_equal(vpmu_arch_load(r->v, buf, other), -VPMU_EINVAL);
		/* Twice. */
		memcpy(buf, good, used);
		memcpy(buf + used, good + at - 16, 16 + bytes);
		other = (uint32_t)used + 16 + bytes;
		memcpy(buf + 8, &other, 4);
		buf[12]++;
		assert_int_equal(vpmu_arch_load(r->v, buf, other), -VPMU_EINVAL);
	}
	assert_int_equal(vpmu_arch_load(r->v, good, used), 0);
	assert_null(r->script.broken);
	pebs_rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_architectural),
		cmocka_unit_test(test_offcore),
		cmocka_unit_test(test_without_model),
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_topdown),
		cmocka_unit_test(test_topdown_2),
		cmocka_unit_test(test_topdown_defined),
		cmocka_unit_test(test_topdown_overflow),
		cmocka_unit_test(test_restarted),
	};

	return cmocka_run_group_tests_name("modelled", tests, NULL, NULL);
}
