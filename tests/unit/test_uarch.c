// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The modelled CPU against what theory says of programs that are understood, and its
 * caches against a second simulation that shares no code with it.
 */
#include "unit.h"

#include <vpmu/uarch.h>

#define LINE	64u
#define PAGE	4096u

struct rig {
	struct vpmu_uarch_params params;
	struct vpmu_uarch_config cfg;
	struct vpmu_uarch *u;
	uint64_t word[4096];
	size_t n;
};

/* Small enough that a test can fill it: L1D 4 KiB, L2 32 KiB, last level 256 KiB. */
static const struct vpmu_uarch_params small = {
	.size = sizeof(small), .name = "small",
	.l1i = { 16, 4, LINE }, .l1d = { 16, 4, LINE }, .l2 = { 64, 8, LINE },
	.llc = { 256, 16, LINE },
	.itlb = { 4, 4, 0 }, .dtlb = { 4, 4, 0 }, .stlb = { 16, 8, 0 },
	.width = 4, .window = 128, .fills = 8, .stores = 16,
	.l1d_cycles = 4, .l2_cycles = 12, .llc_cycles = 40, .dram_cycles = 200,
	.line_cycles = 10, .stlb_cycles = 7, .walk_cycles = 20,
	.mispredict_cycles = 15, .resteer_cycles = 5, .clear_cycles = 20,
	.divide_cycles = 10, .history_bits = 12, .btb_bits = 8, .returns = 16,
};

static void flush(struct rig *r)
{
	vpmu_uarch_run(r->u, r->word, r->n);
	r->n = 0;
}

static void push(struct rig *r, uint64_t word)
{
	if (r->n == COUNT_OF(r->word))
		flush(r);
	r->word[r->n++] = word;
}

static void block(struct rig *r, uint64_t at, uint32_t insns, uint32_t bytes,
		  enum vpmu_uarch_branch branch)
{
	push(r, VPMU_UARCH_WORD(at, VPMU_UARCH_BLOCK));
	push(r, VPMU_UARCH_B_INSNS(insns) | VPMU_UARCH_B_LENGTH(bytes) |
		VPMU_UARCH_B_BRANCH(branch) | VPMU_UARCH_B_BANK(VPMU_BANK_USER));
}

static void load(struct rig *r, uint64_t at, uint32_t flags)
{
	push(r, VPMU_UARCH_WORD(at, VPMU_UARCH_LOAD) | VPMU_UARCH_BYTES(3) | flags);
}

static void store(struct rig *r, uint64_t at)
{
	push(r, VPMU_UARCH_WORD(at, VPMU_UARCH_STORE) | VPMU_UARCH_BYTES(3));
}

static uint64_t count(struct rig *r, enum vpmu_uarch_count c);

/* The sum of consecutive counts. */
static uint64_t sum(struct rig *r, enum vpmu_uarch_count first, enum vpmu_uarch_count last)
{
	uint64_t n = 0;
	int c;

	for (c = (int)first; c <= (int)last; c++)
		n += count(r, (enum vpmu_uarch_count)c);
	return n;
}

static uint64_t count(struct rig *r, enum vpmu_uarch_count c)
{
	flush(r);
	return vpmu_uarch_counts(r->u)->word[c][VPMU_BANK_USER];
}

static void again(struct rig *r)
{
	free(r->u);
	r->n = 0;
	r->cfg.size = sizeof(r->cfg);
	r->cfg.params = &r->params;
	r->u = calloc(1, vpmu_uarch_size(&r->cfg));
	assert_non_null(r->u);
	assert_int_equal(vpmu_uarch_init(r->u, &r->cfg), 0);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	r->params = small;
	again(r);
	*state = r;
	return 0;
}

/* Whatever was run: each slot is in one class, each load at one level. */
static int teardown(void **state)
{
	struct rig *r = *state;
	uint64_t slots, classes, part;

	slots = count(r, VPMU_UARCH_CYCLES) * r->params.width;
	classes = count(r, VPMU_UARCH_RETIRING) + count(r, VPMU_UARCH_BAD_SPECULATION) +
		  count(r, VPMU_UARCH_FRONTEND_BOUND) + count(r, VPMU_UARCH_BACKEND_BOUND);
	assert_true(classes >= slots);
	assert_true(classes - slots < r->params.width);
	assert_int_equal(count(r, VPMU_UARCH_STALLS),
			 count(r, VPMU_UARCH_CYCLES) -
			 count(r, VPMU_UARCH_RETIRING) / r->params.width);
	part = count(r, VPMU_UARCH_HEAVY);
	assert_true(part <= count(r, VPMU_UARCH_RETIRING));
	part = count(r, VPMU_UARCH_MISPREDICT);
	assert_true(part <= count(r, VPMU_UARCH_BAD_SPECULATION));
	part = count(r, VPMU_UARCH_FETCH_LATENCY);
	assert_true(part <= count(r, VPMU_UARCH_FRONTEND_BOUND));
	part = count(r, VPMU_UARCH_MEMORY_BOUND);
	assert_true(part <= count(r, VPMU_UARCH_BACKEND_BOUND));
	assert_int_equal(count(r, VPMU_UARCH_LOADS),
			 count(r, VPMU_UARCH_LOAD_L1) + count(r, VPMU_UARCH_LOAD_FB) +
			 count(r, VPMU_UARCH_LOAD_L2) + count(r, VPMU_UARCH_LOAD_LLC) +
			 count(r, VPMU_UARCH_LOAD_DRAM));
	free(r->u);
	free(r);
	return 0;
}

/* ---- parameters ---- */

static void the_cpus_are_sound(void **state)
{
	static const char *const name[] = { "icelake-server", "sapphire-rapids", "amd-zen4" };
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(name); i++) {
		assert_null(vpmu_uarch_check(vpmu_uarch_params(name[i])));
		assert_string_equal(vpmu_uarch_params(name[i])->name, name[i]);
	}
	assert_non_null(vpmu_uarch_params("no such CPU"));
}

static void wrong_parameters_are_refused(void **state)
{
	struct rig *r = *state;
	struct vpmu_uarch_params *p = &r->params;
	size_t i;

	for (i = 0; i < 26; i++) {
		*p = small;
		switch (i) {
		case 0: p->size--; break;
		case 1: p->l1d.sets = 3; break;
		case 2: p->l1d.ways = 0; break;
		case 3: p->l2.ways = 33; break;
		case 4: p->llc.unit_bytes = 128; break;
		case 5: p->dtlb.unit_bytes = 4096; break;
		case 6: p->width = 0; break;
		case 7: p->width = 17; break;
		case 8: p->window = 3; break;
		case 9: p->fills = 0; break;
		case 10: p->fills = 33; break;
		case 11: p->stores = 129; break;
		case 12: p->history_bits = 21; break;
		case 13: p->btb_bits = 3; break;
		case 14: p->returns = 12; break;
		case 15: p->l1i.sets = p->l1d.sets = 0; break;
		case 16: p->l1d.unit_bytes = 24; break;
		case 17: p->l1d.unit_bytes = 8; break;
		case 18: p->l1i.ways = 0; break;
		case 19: p->itlb.ways = 0; break;
		case 20: p->dtlb.ways = 0; break;
		case 21: p->window = 0; break;
		case 22: p->stores = 0; break;
		case 23: p->history_bits = 3; break;
		case 24: p->btb_bits = 17; break;
		case 25: p->l1d.sets = 1u << 23; break;
		}
		assert_non_null(vpmu_uarch_check(p));
		assert_int_equal(vpmu_uarch_size(&r->cfg), 0);
		assert_int_equal(vpmu_uarch_init(r->u, &r->cfg), -VPMU_EINVAL);
		assert_int_equal(vpmu_uarch_llc_size(p), 0);
		assert_int_equal(vpmu_uarch_llc_init(NULL, p), -VPMU_EINVAL);
	}
	*p = small;
	assert_int_equal(vpmu_uarch_size(NULL), 0);
	assert_int_equal(vpmu_uarch_llc_size(NULL), 0);
}

/* ---- caches against another simulation ---- */

/* A cache by the book: who was used when. */
struct book {
	uint32_t sets, ways;
	uint64_t line[8192], when[8192], clock;
};

static bool book_access(struct book *b, uint64_t line)
{
	uint64_t *set = &b->line[line % b->sets * b->ways];
	uint64_t *when = &b->when[line % b->sets * b->ways];
	uint32_t i, oldest = 0;
	bool hit = false;

	for (i = 0; i < b->ways && !hit; i++)
		if (when[i] && set[i] == line) {
			hit = true;
			oldest = i;
		}
	for (i = 0; i < b->ways && !hit; i++)
		if (when[i] < when[oldest])
			oldest = i;
	set[oldest] = line;
	when[oldest] = ++b->clock;
	return hit;
}

static void caches_agree_with_another_simulation(void **state)
{
	struct rig *r = *state;
	struct book *l1 = calloc(3, sizeof(*l1)), *l2 = l1 + 1, *llc = l1 + 2;
	uint64_t seed = 1, at = 0, miss1 = 0, miss2 = 0, miss3 = 0, i;

	*l1 = (struct book){ .sets = small.l1d.sets, .ways = small.l1d.ways };
	*l2 = (struct book){ .sets = small.l2.sets, .ways = small.l2.ways };
	*llc = (struct book){ .sets = small.llc.sets, .ways = small.llc.ways };
	block(r, 0x400000, 1, 4, VPMU_UARCH_NO_BRANCH);
	flush(r);
	/* A fetched line is in L2 and beyond. */
	book_access(l2, 0x400000 / LINE);
	book_access(llc, 0x400000 / LINE);
	for (i = 0; i < 200000; i++) {
		/* near, less near, anywhere in 1 MiB */
		switch (random_below(&seed, 8)) {
		case 0: at = random_below(&seed, 1 << 20); break;
		case 1: at += random_below(&seed, 1 << 14); break;
		default: at += random_below(&seed, 128); break;
		}
		at &= ~7ull & ((1 << 20) - 1);
		if (random_below(&seed, 3))
			load(r, at, 0);
		else
			store(r, at);
		if (book_access(l1, at / LINE))
			continue;
		miss1++;
		if (book_access(l2, at / LINE))
			continue;
		miss2++;
		if (!book_access(llc, at / LINE))
			miss3++;
	}
	assert_int_equal(sum(r, VPMU_UARCH_READ_L2, VPMU_UARCH_RFO_DRAM), miss1);
	assert_int_equal(sum(r, VPMU_UARCH_READ_LLC, VPMU_UARCH_READ_DRAM) +
			 sum(r, VPMU_UARCH_RFO_LLC, VPMU_UARCH_RFO_DRAM),
			 miss2);
	assert_int_equal(count(r, VPMU_UARCH_READ_DRAM) + count(r, VPMU_UARCH_RFO_DRAM) +
			 count(r, VPMU_UARCH_CODE_DRAM) - 1, miss3);
	assert_true(miss3 && miss2 > miss3 && miss1 > miss2 && miss1 < 200000);
	free(l1);
}

/* ---- a chain of loads through memory of each size ---- */

/* Cycles that one load of a chain through @bytes takes in the long run. */
static double chase(struct rig *r, uint64_t bytes, uint32_t flags)
{
	uint64_t lines = bytes / LINE, i, at, before, round;

	again(r);
	for (round = 0, before = 0; round < 8; round++) {
		if (round == 4)
			before = count(r, VPMU_UARCH_CYCLES);
		for (i = 0, at = 0; i < lines; i++) {
			block(r, 0x400000, 3, 10, VPMU_UARCH_JCC);
			load(r, 0x100000 + at * LINE, flags);
			at = (at + PAGE / LINE + 1) % lines; /* each line once; other pages */
		}
	}
	return (double)(count(r, VPMU_UARCH_CYCLES) - before) / (double)(4 * lines);
}

static void close_to(double is, double want, double share)
{
	if (is < want * (1 - share) || is > want * (1 + share))
		fail_msg("%.2f is not within %.0f %% of %.2f", is, share * 100, want);
}

static void a_chain_costs_the_latency_of_its_level(void **state)
{
	struct rig *r = *state;

	/* Beyond the TLB's reach (128 pages of the second level) a walk comes on top
	 * of those of the first level (16 pages). 1/50 is for the start of a round. */
	close_to(chase(r, 2 << 10, VPMU_UARCH_DEPENDENT), 4, 0.02);
	close_to(chase(r, 16 << 10, VPMU_UARCH_DEPENDENT), 12, 0.02);
	close_to(chase(r, 128 << 10, VPMU_UARCH_DEPENDENT), 40 + 7, 0.02);
	close_to(chase(r, 2 << 20, VPMU_UARCH_DEPENDENT), 200 + 7 + 20, 0.02);
	assert_true(count(r, VPMU_UARCH_MEMORY_BOUND) > 9 * count(r, VPMU_UARCH_CYCLES) / 10 *
						       r->params.width);
}

static void independent_misses_overlap(void **state)
{
	struct rig *r = *state;
	double one = chase(r, 2 << 20, VPMU_UARCH_DEPENDENT), many = chase(r, 2 << 20, 0);

	/* Eight at once, by the number of fill buffers; memory takes 10 cycles a line. */
	close_to(one / many, 8, 0.1);
}

static void a_stream_runs_at_the_speed_of_memory(void **state)
{
	struct rig *r = *state;
	uint64_t i, lines = 1 << 16;

	r->params.prefetch = 24; /* more than the 20 lines that are on their way at once */
	again(r);
	for (i = 0; i < lines * 8; i++) {
		if (!(i % 8))
			block(r, 0x400000, 16, 40, VPMU_UARCH_JCC);
		load(r, 0x1000000 + i * 8, 0);
	}
	/*
	 * 10 cycles a line; at the start of each page (of 64 lines) the stream is found
	 * again, by two misses, and nothing comes for the 200 cycles of one
	 */
	close_to((double)count(r, VPMU_UARCH_CYCLES) / (double)lines, 10 + 200. / 64, 0.1);
	assert_int_equal(count(r, VPMU_UARCH_LOAD_L1) + count(r, VPMU_UARCH_LOAD_FB), 7 * lines);
	/* code is one more */
	assert_in_range(count(r, VPMU_UARCH_READ_DRAM), lines / 64 * 2, lines / 64 * 3 + 1);
	assert_in_range(count(r, VPMU_UARCH_PREFETCH), lines / 64 * 61, lines / 64 * 62);
}

static void stores_wait_only_for_room(void **state)
{
	struct rig *r = *state;
	uint64_t i;

	for (i = 0; i < 16; i++) {
		block(r, 0x400000, 4, 10, VPMU_UARCH_JCC);
		store(r, 0x100000 + i * LINE);
	}
	assert_int_equal(count(r, VPMU_UARCH_STALL_STORES), 0);
	for (i = 0; i < 20000; i++) {
		block(r, 0x400000, 4, 10, VPMU_UARCH_JCC);
		store(r, 0x200000 + i * LINE);
	}
	/* then as fast as fill buffers come free: 8 in 200 cycles (and a bit for walks,
	 * which a store buffer hides) */
	close_to((double)count(r, VPMU_UARCH_CYCLES) / 20000, 25, 0.05);
	assert_true(count(r, VPMU_UARCH_STALL_STORES) > count(r, VPMU_UARCH_CYCLES) / 2);
}

static void a_line_on_its_way_is_a_hit_in_a_fill_buffer(void **state)
{
	struct rig *r = *state;

	block(r, 0x400000, 4, 16, VPMU_UARCH_NO_BRANCH);
	load(r, 0x100000, 0);
	load(r, 0x100008, 0);
	assert_int_equal(count(r, VPMU_UARCH_LOAD_DRAM), 1);
	assert_int_equal(count(r, VPMU_UARCH_LOAD_FB), 1);
	assert_int_equal(vpmu_uarch_last(r->u)->level, VPMU_UARCH_AT_FB);
	push(r, VPMU_UARCH_SERIALIZE);
	load(r, 0x100010, 0);
	assert_int_equal(count(r, VPMU_UARCH_LOAD_L1), 1);
	assert_int_equal(vpmu_uarch_last(r->u)->cycles, 4);
}

/* ---- the front end ---- */

/* A loop of @bytes of code, in blocks of a line that jump to the next one. */
static double fetch(struct rig *r, uint64_t bytes)
{
	uint64_t i, round, before = 0, lines = bytes / LINE;

	again(r);
	for (round = 0; round < 8; round++) {
		if (round == 4)
			before = count(r, VPMU_UARCH_CYCLES);
		for (i = 0; i < lines; i++)
			block(r, 0x400000 + i * LINE, 16, LINE, VPMU_UARCH_NO_BRANCH);
	}
	return (double)(count(r, VPMU_UARCH_CYCLES) - before) / (double)(4 * lines);
}

static void code_that_does_not_fit_starves_the_back_end(void **state)
{
	struct rig *r = *state;

	close_to(fetch(r, 2 << 10), 4, 0.02);
	assert_int_equal(sum(r, VPMU_UARCH_CODE_L2, VPMU_UARCH_CODE_DRAM), 32);
	close_to(fetch(r, 16 << 10), 4 + 12, 0.02);
	assert_true(count(r, VPMU_UARCH_FRONTEND_BOUND) > count(r, VPMU_UARCH_BACKEND_BOUND));
	assert_true(count(r, VPMU_UARCH_FRONTEND_BOUND) > count(r, VPMU_UARCH_RETIRING));
	assert_int_equal(sum(r, VPMU_UARCH_CODE_L2, VPMU_UARCH_CODE_DRAM), 8 * 256);
}

/* ---- prediction ---- */

/* @n conditional branches at one place; returns the share that was mispredicted. */
static double branches(struct rig *r, uint32_t n, int (*taken)(uint32_t i, uint64_t *seed))
{
	uint64_t seed = 99;
	uint32_t i;

	again(r);
	for (i = 0; i < n; i++) {
		block(r, 0x400000, 4, 16, VPMU_UARCH_JCC);
		if (taken(i, &seed))
			block(r, 0x400040, 4, 16, VPMU_UARCH_NO_BRANCH);
		else
			block(r, 0x400010, 4, 16, VPMU_UARCH_NO_BRANCH);
	}
	return (double)(count(r, VPMU_UARCH_MISP_TAKEN) + count(r, VPMU_UARCH_MISP_NOT_TAKEN)) /
	       (double)n;
}

static int always(uint32_t i, uint64_t *seed) { return (void)i, (void)seed, 1; }
static int never(uint32_t i, uint64_t *seed) { return (void)i, (void)seed, 0; }
static int by_turns(uint32_t i, uint64_t *seed) { return (void)seed, i & 1; }
static int of_ten(uint32_t i, uint64_t *seed) { return (void)seed, i % 10 != 9; }
static int by_chance(uint32_t i, uint64_t *seed) { return (void)i, random_next(seed) >> 63; }
static int mostly(uint32_t i, uint64_t *seed) { return (void)i, random_below(seed, 10) != 0; }

static void what_can_be_predicted_is(void **state)
{
	struct rig *r = *state;

	assert_true(branches(r, 10000, always) < 0.001);
	assert_int_equal(count(r, VPMU_UARCH_MISP_NOT_TAKEN), 0);
	assert_true(branches(r, 10000, never) < 0.001);
	assert_true(branches(r, 10000, by_turns) < 0.005); /* while it learns */
	assert_true(branches(r, 10000, of_ten) < 0.02);
}

static void what_cannot_is_not(void **state)
{
	struct rig *r = *state;

	close_to(branches(r, 40000, by_chance), 0.5, 0.03); /* six standard deviations */
	assert_true(count(r, VPMU_UARCH_BAD_SPECULATION) > count(r, VPMU_UARCH_RETIRING));
	assert_int_equal(count(r, VPMU_UARCH_RECOVERY),
			 15 * (count(r, VPMU_UARCH_MISP_TAKEN) +
			       count(r, VPMU_UARCH_MISP_NOT_TAKEN)));
	/* never better than 1 of 10; one that follows the last ones is right in 82 % */
	assert_in_range((uint64_t)(branches(r, 40000, mostly) * 1000), 95, 180);
}

static void returns_come_from_a_stack(void **state)
{
	struct rig *r = *state;
	uint32_t depth, i, round;

	for (depth = 8; depth <= 24; depth += 8) {
		again(r);
		for (round = 0; round < 10; round++) {
			for (i = 0; i < depth; i++)
				block(r, 0x400000 + i * 256, 4, 16, VPMU_UARCH_CALL);
			block(r, 0x400000 + depth * 256, 4, 16, VPMU_UARCH_RET);
			for (i = depth; --i; )
				block(r, 0x400000 + i * 256 + 16, 4, 16, VPMU_UARCH_RET);
			block(r, 0x400010, 4, 16, VPMU_UARCH_NO_BRANCH);
		}
		/* the stack has 16: what is deeper has been pushed out */
		assert_int_equal(count(r, VPMU_UARCH_MISP_RET), depth > 16 ? 10 * (depth - 16) : 0);
	}
}

static void indirect_branches_learn_the_path(void **state)
{
	struct rig *r = *state;
	uint32_t i;

	/* an interpreter of four operations in turn: no last target is ever right */
	for (i = 0; i < 4000; i++) {
		block(r, 0x400000, 4, 16, VPMU_UARCH_JMP_INDIRECT);
		block(r, 0x400100 + i % 4 * 64, 4, 16, VPMU_UARCH_JMP);
	}
	assert_true(count(r, VPMU_UARCH_MISP_JMP) < 100);
	assert_int_equal(count(r, VPMU_UARCH_MISP_CALL), 0);
	assert_int_equal(count(r, VPMU_UARCH_RESTEER), 4);
}

static void an_interrupt_is_not_a_branch(void **state)
{
	struct rig *r = *state;
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		block(r, 0x400000, 4, 16, VPMU_UARCH_JCC);
		if (i % 10 == 9) {
			/* the loop's branch was taken; then a handler ran */
			push(r, VPMU_UARCH_WORD(0x400000, VPMU_UARCH_EVENT));
			block(r, 0x800000, 4, 16, VPMU_UARCH_FAR);
		}
	}
	assert_true(count(r, VPMU_UARCH_MISP_TAKEN) + count(r, VPMU_UARCH_MISP_NOT_TAKEN) < 20);
}

/* ---- branch records ---- */

/* The engine's part: a branch of that type, in user mode, as the block before has made it. */
static void record(struct vpmu_lbr *l, enum vpmu_branch_type type, uint64_t from, uint64_t to)
{
	vpmu_lbr_record(l, type, true, from, to);
}

static uint64_t info(struct vpmu_lbr *l, unsigned int age)
{
	return vpmu_lbr_at(l, age)->info;
}

static void records_finish(struct rig *r, struct vpmu_lbr *l, unsigned int n, uint64_t next)
{
	struct vpmu_lbr_entry *newest[VPMU_LBR_ENTRIES];
	unsigned int i;

	for (i = 0; i < n; i++)
		newest[i] = vpmu_lbr_at(l, i);
	vpmu_uarch_finish(r->u, newest, n, 0, next, true);
}

#define MARKS	(VPMU_LBR_MISPREDICTED | VPMU_LBR_TIMED)

static struct vpmu_lbr *lbr_new(struct rig *r, uint64_t select)
{
	struct vpmu_lbr *l = test_calloc(1, sizeof(*l));

	vpmu_lbr_start(l, VPMU_LBR_ARCH, &vpmu_lbr_select, select);
	vpmu_uarch_record(r->u, l);
	return l;
}

/* Forty instructions a turn are ten cycles; the first turns and the exit are mispredicted. */
static void records_say_what_was_mispredicted(void **state)
{
	struct rig *r = *state;
	struct vpmu_lbr *l = lbr_new(r, 0);
	uint32_t i;

	for (i = 0; i < 60; i++) {
		block(r, 0x400000, 40, 160, VPMU_UARCH_JCC);
		record(l, VPMU_BRANCH_JCC, 0x40009e, 0x400000);
	}
	block(r, 0x400000, 40, 160, VPMU_UARCH_JCC);
	block(r, 0x4000a0, 4, 16, VPMU_UARCH_JMP_INDIRECT);
	record(l, VPMU_BRANCH_JMP_INDIRECT, 0x4000ae, 0x500000);
	flush(r);
	/* Nobody has been there: the last branch's end is the next instruction's address. */
	records_finish(r, l, 32, 0x500000);
	assert_true((info(l, 0) & MARKS) == MARKS);
	for (i = 1; i < 32; i++) {
		assert_true((info(l, i) & MARKS) == VPMU_LBR_TIMED);
		assert_int_equal(info(l, i) & VPMU_LBR_CYCLES, 10);
	}
	/* The exit's penalty and its block lie before the jump. */
	assert_int_equal(info(l, 0) & VPMU_LBR_CYCLES, 10 + small.mispredict_cycles + 1);
	test_free(l);
}

/* Neither has a branch that the acts drop, or a call that has returned. */
static void records_and_notes_agree_on_filters(void **state)
{
	struct rig *r = *state;
	struct vpmu_lbr *l = lbr_new(r, 1 << 9 | 1 << 2 | 1 << 6 | 1 << 7); /* calls, a stack */
	uint32_t i;

	for (i = 0; i < 40; i++) {
		block(r, 0x400000 + 16 * i, 4, 8, VPMU_UARCH_CALL);
		record(l, VPMU_BRANCH_CALL, 0x400006 + 16 * i, 0x600000);
		block(r, 0x600000, 4, 8, VPMU_UARCH_JMP);
		record(l, VPMU_BRANCH_JMP, 0x600006, 0x600100);
		block(r, 0x600100, 4, 8, VPMU_UARCH_RET);
		record(l, VPMU_BRANCH_RET, 0x600106, 0x400008 + 16 * i);
		block(r, 0x400008 + 16 * i, 4, 8, VPMU_UARCH_NO_BRANCH);
	}
	block(r, 0x500000, 4, 8, VPMU_UARCH_CALL);
	record(l, VPMU_BRANCH_CALL, 0x500006, 0x700000);
	flush(r);
	records_finish(r, l, 32, 0x700000);
	assert_true(vpmu_lbr_at(l, 0)->to == 0x700000);
	assert_true((info(l, 0) & MARKS) == VPMU_LBR_TIMED);
	for (i = 1; i < 32; i++)
		assert_true(!(info(l, i) & MARKS));
	test_free(l);
}

/* An entry whose branch the model has not seen stays as it is. */
static void records_of_others_stay(void **state)
{
	struct rig *r = *state;
	struct vpmu_lbr *l = lbr_new(r, 0);

	record(l, VPMU_BRANCH_JMP, 0x1000, 0x2000);
	block(r, 0x400000, 4, 8, VPMU_UARCH_JMP);
	record(l, VPMU_BRANCH_JMP, 0x400006, 0x500000);
	record(l, VPMU_BRANCH_JMP, 0x1000, 0x3000);
	flush(r);
	records_finish(r, l, 3, 0x500000);
	assert_true(!(info(l, 0) & MARKS));
	assert_true(info(l, 1) & VPMU_LBR_TIMED);
	assert_true(!(info(l, 2) & MARKS));
	vpmu_uarch_record(r->u, NULL);
	block(r, 0x500000, 4, 8, VPMU_UARCH_JMP);
	record(l, VPMU_BRANCH_JMP, 0x500006, 0x600000);
	flush(r);
	records_finish(r, l, 1, 0x600000);
	assert_true(!(info(l, 0) & MARKS));
	test_free(l);
}

/* A return to a program that is interrupted at once ends in the program, too. */
static void records_of_a_return_to_nothing(void **state)
{
	struct rig *r = *state;
	struct vpmu_lbr *l = lbr_new(r, 1); /* none that ends in ring 0 */

	push(r, VPMU_UARCH_WORD(0x900000, VPMU_UARCH_BLOCK));
	push(r, VPMU_UARCH_B_INSNS(4) | VPMU_UARCH_B_LENGTH(8) |
		VPMU_UARCH_B_BRANCH(VPMU_UARCH_FAR) | VPMU_UARCH_B_BANK(VPMU_BANK_KERNEL));
	record(l, VPMU_BRANCH_FAR, 0x900006, 0x400000);
	push(r, VPMU_UARCH_WORD(0x400000, VPMU_UARCH_EVENT) | VPMU_UARCH_USER);
	flush(r);
	records_finish(r, l, 1, 0x900100);
	assert_true((info(l, 0) & MARKS) == VPMU_LBR_TIMED);
	test_free(l);
}

/* ---- translation ---- */

static uint64_t huge(void *ctx, uint64_t linear, uint8_t *shift)
{
	++*(uint32_t *)ctx;
	*shift = linear < 1 << 30 ? 12 : 21;
	return linear ^ 0x4000000000;
}

static void large_pages_reach_further(void **state)
{
	struct rig *r = *state;
	uint32_t walks = 0, i, round;

	r->cfg.translate = huge;
	r->cfg.ctx = &walks;
	again(r);
	for (round = 0; round < 4; round++)
		for (i = 0; i < 1024; i++)
			load(r, 0x10000000 + i * PAGE, 0);
	assert_int_equal(count(r, VPMU_UARCH_COUNTS - 1), 0); /* nothing was fetched */
	flush(r);
	assert_int_equal(walks, 4 * 1024); /* 128 entries, LRU, in order: none survives */
	walks = 0;
	for (round = 0; round < 4; round++)
		for (i = 0; i < 1024; i++)
			load(r, 0x40000000 + i * PAGE, 0);
	flush(r);
	assert_int_equal(walks, 2);
	push(r, VPMU_UARCH_WORD(0x40000000, VPMU_UARCH_UNMAP));
	load(r, 0x40000000, 0);
	load(r, 0x40200000, 0);
	flush(r);
	assert_int_equal(walks, 3);
	push(r, VPMU_UARCH_WORD(0, VPMU_UARCH_UNMAP) | VPMU_UARCH_BYTES(0));
	load(r, 0x40000000, 0);
	load(r, 0x40200000, 0);
	flush(r);
	assert_int_equal(walks, 5);
}

/* ---- the stream ---- */

static void random_words(struct rig *r, uint32_t n, uint64_t seed)
{
	uint64_t word;

	while (n--) {
		word = random_next(&seed);
		/* mostly near, so that things hit too */
		if (random_below(&seed, 4))
			word = (word & 0x7ffffff) | 1 << 28;
		push(r, word);
	}
	flush(r);
}

static void any_stream_is_gone_through_alike(void **state)
{
	struct rig *r = *state;
	struct vpmu_uarch_counts first;
	uint64_t seed = 5, word;
	uint32_t i;

	r->params.prefetch = 4;
	again(r);
	random_words(r, 300000, 5);
	first = *vpmu_uarch_counts(r->u);
	again(r);
	random_words(r, 300000, 5);
	assert_memory_equal(&first, vpmu_uarch_counts(r->u), sizeof(first));
	/* and word by word */
	again(r);
	for (i = 0; i < 300000; i++) {
		word = random_next(&seed);
		if (random_below(&seed, 4))
			word = (word & 0x7ffffff) | 1 << 28;
		vpmu_uarch_run(r->u, &word, 1);
	}
	assert_memory_equal(&first, vpmu_uarch_counts(r->u), sizeof(first));
	again(r);
}

/*
 * A program of hot and of colder places, where one load of @dependent waits for the one
 * before, or one of nothing but such loads, if that is 1. @forget has the model forget
 * its known lines and blocks before each word, by unmapping an unused page, so that it
 * looks up each. Adjacent blocks are on lines of their own, one or two, as forgetting
 * fetches a line once more.
 */
static void a_program(struct rig *r, uint32_t blocks, uint32_t dependent, bool forget)
{
	static const uint32_t spans[] = { 256, 2048, 8192, 300000 };
	uint64_t seed = 11, at;
	uint32_t i, n, kind;

	for (i = 0; i < blocks; i++) {
		uint64_t place, more;

		n = spans[dependent == 1 ? 0 : random_below(&seed, 16) ? 2 : 3];
		at = 0x400000 + 4 * LINE * random_below(&seed, n / (4 * LINE)) + 2 * LINE * (i & 1);
		place = random_below(&seed, 8) ? at : i; /* the usual target, or another one */
		more = VPMU_UARCH_B_INSNS(1 + random_below(&place, 9)) |
		       VPMU_UARCH_B_LENGTH(4 + random_below(&place, 2 * LINE - 4)) |
		       VPMU_UARCH_B_BRANCH(dependent > 1 ? random_below(&place, 6)
							 : VPMU_UARCH_NO_BRANCH) |
		       VPMU_UARCH_B_BANK(random_below(&seed, 50) ? VPMU_BANK_USER
								 : VPMU_BANK_KERNEL);
		if (!random_below(&place, 30))
			more |= VPMU_UARCH_B_UOPS(random_below(&place, 40)) |
				VPMU_UARCH_B_DIVIDES(random_below(&place, 3));
		if (forget)
			push(r, VPMU_UARCH_WORD(1ull << 40, VPMU_UARCH_UNMAP));
		push(r, VPMU_UARCH_WORD(at, VPMU_UARCH_BLOCK));
		push(r, more);
		for (n = random_below(&seed, 6); n; n--) {
			uint32_t span = spans[random_below(&seed, 20) ? random_below(&seed, 3) : 3];
			uint64_t address = random_below(&seed, span);

			kind = VPMU_UARCH_LOAD + random_below(&seed, 3);
			if (!random_below(&seed, 16))
				push(r, VPMU_UARCH_WORD(0x10000000 + address,
							VPMU_UARCH_SOFT_PREFETCH));
			if (random_below(&seed, 8))
				address &= ~7ull;
			if (random_below(&seed, 2))
				address += address & ~(uint64_t)(PAGE - 1); /* each other page */
			if (forget)
				push(r, VPMU_UARCH_WORD(1ull << 40, VPMU_UARCH_UNMAP));
			push(r, VPMU_UARCH_WORD(0x10000000 + address, kind) |
				VPMU_UARCH_BYTES(random_below(&seed, 4)) |
				(random_below(&seed, kind == VPMU_UARCH_MODIFY ? 50 : dependent)
				 ? 0 : VPMU_UARCH_DEPENDENT));
		}
	}
	flush(r);
}

static void what_is_known_of_places_changes_no_count(void **state)
{
	static const struct {
		uint32_t fills, stores, window, dependent;
		uint32_t l1i_sets, itlb_sets;
	} cpu[] = {
		{ 8, 16, 128, 3, 16, 4 },
		{ 2, 1, 16, 3, 1, 1 },      /* a block may take the place of itself */
		{ 32, 128, 4000, 1, 16, 4 },
		{ 8, 16, 128, 3, 128, 1 },  /* more sets than can be known */
	};
	struct rig *r = *state;
	struct vpmu_uarch_counts first;
	uint32_t i;

	for (i = 0; i < COUNT_OF(cpu); i++) {
		r->params.fills = (uint16_t)cpu[i].fills;
		r->params.stores = (uint16_t)cpu[i].stores;
		r->params.window = (uint16_t)cpu[i].window;
		r->params.l1i.sets = cpu[i].l1i_sets;
		r->params.itlb.sets = cpu[i].itlb_sets;
		r->params.prefetch = i ? 0 : 4;
		again(r);
		a_program(r, 100000, cpu[i].dependent, false);
		first = *vpmu_uarch_counts(r->u);
		again(r);
		a_program(r, 100000, cpu[i].dependent, true);
		assert_memory_equal(&first, vpmu_uarch_counts(r->u), sizeof(first));
	}
	again(r); /* its clean-up looks at one bank */
}

/* Two blocks of each of two lines, in turns: where the line is another one it is fetched. */
static void a_line_is_fetched_once_until_another_one_is(void **state)
{
	struct rig *r = *state;
	uint32_t i, fetched = 0;

	for (i = 0; i < 400; i++) {
		uint32_t line = i / 4 % 2; /* four times in the same one */

		block(r, 0x400000 + line * LINE + i % 2 * 16, 2, 16, VPMU_UARCH_NO_BRANCH);
		fetched += i % 4 == 0;
	}
	assert_int_equal(count(r, VPMU_UARCH_L1I_HIT) +
			 sum(r, VPMU_UARCH_CODE_L2, VPMU_UARCH_CODE_DRAM), fetched);
	assert_int_equal(count(r, VPMU_UARCH_ITLB_WALK), 1);
	push(r, VPMU_UARCH_WORD(0, VPMU_UARCH_UNMAP) | VPMU_UARCH_BYTES(0));
	for (i = 0; i < 4; i++)
		block(r, 0x400000, 2, 16, VPMU_UARCH_NO_BRANCH);
	assert_int_equal(count(r, VPMU_UARCH_L1I_HIT) +
			 sum(r, VPMU_UARCH_CODE_L2, VPMU_UARCH_CODE_DRAM), fetched + 1);
	assert_int_equal(count(r, VPMU_UARCH_ITLB_WALK), 2);
	for (i = 0; i < 4; i++) /* with no instruction retired, no line is fetched */
		block(r, 0x400000, 0, 0, VPMU_UARCH_NO_BRANCH);
	block(r, 0x400000, 2, 16, VPMU_UARCH_NO_BRANCH);
	assert_int_equal(count(r, VPMU_UARCH_L1I_HIT) +
			 sum(r, VPMU_UARCH_CODE_L2, VPMU_UARCH_CODE_DRAM), fetched + 1);
}

static void a_flushed_line_comes_from_memory_again(void **state)
{
	struct rig *r = *state;
	uint32_t i;

	for (i = 0; i < 100; i++) {
		block(r, 0x400000, 4, 16, VPMU_UARCH_JCC);
		load(r, 0x800000, 0);
		load(r, 0x800008, 0);
		push(r, VPMU_UARCH_WORD(0x400004, VPMU_UARCH_SOFT_PREFETCH) | VPMU_UARCH_FLUSH);
		push(r, VPMU_UARCH_WORD(0x800030, VPMU_UARCH_SOFT_PREFETCH) | VPMU_UARCH_FLUSH);
	}
	assert_int_equal(count(r, VPMU_UARCH_CODE_DRAM), 100);
	assert_int_equal(count(r, VPMU_UARCH_READ_DRAM), 100);
	/* Others stay where they are. */
	block(r, 0x400000, 4, 16, VPMU_UARCH_JCC);
	load(r, 0x800000, 0);
	for (i = 0; i < 100; i++) {
		block(r, 0x400000, 4, 16, VPMU_UARCH_JCC);
		load(r, 0x800000, 0);
		push(r, VPMU_UARCH_WORD(0x900000, VPMU_UARCH_SOFT_PREFETCH) | VPMU_UARCH_FLUSH);
	}
	assert_int_equal(count(r, VPMU_UARCH_CODE_DRAM), 101);
	assert_int_equal(count(r, VPMU_UARCH_READ_DRAM), 101);
}

/* Whatever stands for no line is not taken for one. */
static void no_line_is_known_before_it_is_fetched(void **state)
{
	static const struct vpmu_uarch_geometry l1[] = {
		{ 16, 4, LINE }, { 1, 4, LINE }, { 2, 1, LINE }, { 128, 2, LINE },
	};
	struct rig *r = *state;
	uint32_t i;
	uint64_t at;

	for (i = 0; i < COUNT_OF(l1); i++) {
		r->params.l1i = r->params.l1d = l1[i];
		for (at = 0; at < 256 * LINE; at += LINE) {
			again(r);
			block(r, at, 1, 4, VPMU_UARCH_NO_BRANCH);
			load(r, at + 4, 0);
			assert_int_equal(count(r, VPMU_UARCH_CODE_DRAM), 1);
			assert_int_equal(count(r, VPMU_UARCH_LOAD_L1), 0);
		}
	}
	r->params = small;
	again(r);
}

/* Four pages fill a set; of the fifth and sixth, which one goes is known. */
static void a_tlb_keeps_what_is_used_again(void **state)
{
	static const struct {
		uint32_t page;
		bool there;
	} use[] = {
		{ 0, false }, { 1, false }, { 2, false }, { 3, false }, { 2, true }, { 0, true },
		{ 4, false }, /* in place of 0, and all others have no mark now */
		{ 1, true }, { 5, false }, /* in place of 2 */
		{ 1, true }, { 3, true }, { 4, true }, { 5, true }, { 2, false },
	};
	struct rig *r = *state;
	uint64_t before, step = r->params.dtlb.sets * PAGE;
	uint32_t i;

	block(r, 0x400000, COUNT_OF(use), 64, VPMU_UARCH_NO_BRANCH);
	for (i = 0; i < COUNT_OF(use); i++) {
		before = sum(r, VPMU_UARCH_DTLB_LOAD_L2, VPMU_UARCH_DTLB_LOAD_WALK);
		load(r, 0x10000000 + use[i].page * step, 0);
		assert_int_equal(sum(r, VPMU_UARCH_DTLB_LOAD_L2, VPMU_UARCH_DTLB_LOAD_WALK),
				 before + !use[i].there);
	}
}

static void accesses_are_told_apart(void **state)
{
	struct rig *r = *state;

	block(r, 0x400000, 4, 16, VPMU_UARCH_NO_BRANCH);
	load(r, 0x10003c, 0);   /* 8 bytes across a line */
	store(r, 0x10007f);
	push(r, VPMU_UARCH_WORD(0x100200, VPMU_UARCH_MODIFY) | VPMU_UARCH_BYTES(2) |
		VPMU_UARCH_DEPENDENT);
	push(r, VPMU_UARCH_WORD(0x100204, VPMU_UARCH_MODIFY) | VPMU_UARCH_BYTES(2));
	assert_int_equal(count(r, VPMU_UARCH_LOADS), 3);
	assert_int_equal(count(r, VPMU_UARCH_STORES), 3);
	assert_int_equal(count(r, VPMU_UARCH_SPLIT_LOADS), 1);
	assert_int_equal(count(r, VPMU_UARCH_SPLIT_STORES), 1);
	assert_int_equal(count(r, VPMU_UARCH_LOCKED), 1);
	assert_int_equal(vpmu_uarch_last(r->u)->address, 0x100204);
}

static void two_cpus_share_a_last_level(void **state)
{
	struct rig *r = *state;
	struct rig other = { .params = small };
	struct vpmu_uarch_llc *llc = calloc(1, vpmu_uarch_llc_size(&small));

	assert_int_equal(vpmu_uarch_llc_init(llc, &small), 0);
	r->cfg.llc = other.cfg.llc = llc;
	again(r);
	again(&other);
	block(r, 0x400000, 4, 16, VPMU_UARCH_NO_BRANCH);
	block(&other, 0x400000, 4, 16, VPMU_UARCH_NO_BRANCH);
	load(r, 0x100000, 0);
	flush(r);
	load(&other, 0x100000, 0);
	assert_int_equal(count(r, VPMU_UARCH_LOAD_DRAM), 1);
	assert_int_equal(count(&other, VPMU_UARCH_LOAD_LLC), 1);
	free(other.u);
	again(r);
	r->cfg.llc = NULL;
	again(r);
	free(llc);
}

/* Pages of one size. */
static void a_tlb_holds_as_many_pages_as_it_has_entries(void **state)
{
	struct rig *r = *state;
	uint32_t i, entries = r->params.dtlb.sets * r->params.dtlb.ways;

	block(r, 0x400000, 1, 4, VPMU_UARCH_NO_BRANCH);
	for (i = 0; i < 2 * entries; i++)
		load(r, 0x10000000 + (uint64_t)(i % entries) * PAGE, 0);
	assert_int_equal(count(r, VPMU_UARCH_DTLB_LOAD_L2) + count(r, VPMU_UARCH_DTLB_LOAD_WALK),
			 entries);
}

int main(void)
{
#define T(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(the_cpus_are_sound),
		T(wrong_parameters_are_refused),
		T(caches_agree_with_another_simulation),
		T(a_chain_costs_the_latency_of_its_level),
		T(independent_misses_overlap),
		T(a_stream_runs_at_the_speed_of_memory),
		T(stores_wait_only_for_room),
		T(a_line_on_its_way_is_a_hit_in_a_fill_buffer),
		T(code_that_does_not_fit_starves_the_back_end),
		T(a_tlb_holds_as_many_pages_as_it_has_entries),
		T(what_can_be_predicted_is),
		T(what_cannot_is_not),
		T(returns_come_from_a_stack),
		T(indirect_branches_learn_the_path),
		T(an_interrupt_is_not_a_branch),
		T(records_say_what_was_mispredicted),
		T(records_and_notes_agree_on_filters),
		T(records_of_others_stay),
		T(records_of_a_return_to_nothing),
		T(large_pages_reach_further),
		T(any_stream_is_gone_through_alike),
		T(what_is_known_of_places_changes_no_count),
		T(a_line_is_fetched_once_until_another_one_is),
		T(a_flushed_line_comes_from_memory_again),
		T(no_line_is_known_before_it_is_fetched),
		T(a_tlb_keeps_what_is_used_again),
		T(accesses_are_told_apart),
		T(two_cpus_share_a_last_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
