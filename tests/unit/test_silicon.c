// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Silicon: counts, deadlines and overflows to the exact occurrence. */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <script.h>

#include <vpmu/silicon.h>

#define S(name)	VPMU_SIGNAL_BIT(VPMU_SIGNAL_##name)
#define USER	VPMU_BANK_USER
#define KERNEL	VPMU_BANK_KERNEL
#define N_SLOTS	11 /* Icelake-Server: 8 GP, 3 fixed */

struct overflow {
	unsigned int slot;
	struct vpmu_signal_words truth; /* when it came */
};

struct rig {
	struct vpmu_script sc;
	struct vpmu_silicon_config cfg;
	struct vpmu_silicon s;
	size_t n;                   /* overflows so far */
	struct overflow log[512];
};

static void on_overflow(void *owner, unsigned int slot)
{
	struct rig *r = owner;

	if (r->n < COUNT_OF(r->log)) {
		r->log[r->n].slot = slot;
		r->log[r->n].truth = r->sc.truth;
	}
	r->n++;
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct vpmu_silicon_config cfg = {
		.size = sizeof(cfg),
		.model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106),
		.supplied = VPMU_SCRIPT_SUPPLIED,
		.ops = &r->sc.ops,
		.ctx = &r->sc,
		.overflow = on_overflow,
		.owner = r,
	};

	vpmu_script_init(&r->sc, VPMU_SCRIPT_SUPPLIED);
	r->sc.silicon = &r->s;
	*state = r;
	r->cfg = cfg;
	return vpmu_silicon_init(&r->s, &cfg);
}

static int teardown(void **state)
{
	struct rig *r = *state;

	const char *broken = r->sc.broken;

	if (broken)
		print_error("against ops.h: %s\n", broken);
	free(r);
	return broken ? -1 : 0;
}

static struct vpmu_recipe recipe(uint64_t signals, unsigned int banks, unsigned int shift)
{
	struct vpmu_recipe r = {
		.signals = signals,
		.banks = (uint8_t)banks,
		.shift = (uint8_t)shift,
		.quality = VPMU_QUALITY_EXACT,
	};

	return r;
}

static void use(struct rig *r, unsigned int slot, uint64_t signals, unsigned int banks,
		unsigned int shift)
{
	struct vpmu_recipe rec = recipe(signals, banks, shift);

	vpmu_silicon_configure(&r->s, slot, &rec);
}

static void test_init(void **state)
{
	struct rig *r = *state;
	struct vpmu_silicon_config good = r->cfg, bad;
	struct vpmu_model big = *good.model;
	struct vpmu_ops ops = r->sc.ops;
	struct vpmu_silicon s, before;

	memset(&s, 0x5a, sizeof(s));
	before = s;
	bad = good, bad.size--;
	assert_int_equal(vpmu_silicon_init(&s, &bad), -VPMU_EINVAL);
	bad = good, bad.model = NULL;
	assert_int_equal(vpmu_silicon_init(&s, &bad), -VPMU_EINVAL);
	bad = good, bad.ops = NULL;
	assert_int_equal(vpmu_silicon_init(&s, &bad), -VPMU_EINVAL);
	bad = good, bad.ops = &ops;
	ops.read_totals = NULL;
	assert_int_equal(vpmu_silicon_init(&s, &bad), -VPMU_EINVAL);
	ops = r->sc.ops, ops.set_deadlines = NULL;
	assert_int_equal(vpmu_silicon_init(&s, &bad), -VPMU_EINVAL);
	ops = r->sc.ops, ops.size = offsetof(struct vpmu_ops, set_deadlines);
	assert_int_equal(vpmu_silicon_init(&s, &bad), -VPMU_EINVAL);
	bad = good, bad.model = &big;
	big.n_gp = 13, big.n_fixed = 4;
	assert_int_equal(vpmu_silicon_init(&s, &bad), -VPMU_EINVAL);
	assert_memory_equal(&s, &before, sizeof(s));
	assert_int_equal(vpmu_silicon_init(&s, &good), 0);
	assert_int_equal(r->sc.n_read + r->sc.n_deadline + r->sc.n_demand, 0);
}

static void test_difference(void **state)
{
	struct rig *r = *state;

	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
	use(r, 1, S(INSTRUCTIONS), VPMU_BANKS_USER | VPMU_BANKS_KERNEL, 0);
	vpmu_script_run(&r->sc, USER, 5);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_silicon_start(&r->s, 1);
	vpmu_script_run(&r->sc, USER, 100);
	vpmu_script_run(&r->sc, KERNEL, 10);
	vpmu_script_run(&r->sc, VPMU_BANK_NESTED_USER, 1);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 101);
	assert_int_equal(vpmu_silicon_read(&r->s, 1), 111);
	vpmu_silicon_stop(&r->s, 0);
	vpmu_silicon_stop(&r->s, 0);
	vpmu_script_run(&r->sc, USER, 1000);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 101);
	assert_int_equal(vpmu_silicon_read(&r->s, 1), 1111);
	vpmu_silicon_start(&r->s, 0);
	vpmu_script_run(&r->sc, USER, 1);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 102);
	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
	vpmu_script_run(&r->sc, USER, 1);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 0);
	/* No deadline was wanted. */
	assert_int_equal(r->sc.n_deadline, 0);
}

/* A recipe without signals stands still at 0, and is never due. */
static void test_no_signal(void **state)
{
	struct rig *r = *state;

	use(r, 3, 0, VPMU_BANKS_USER, 0);
	vpmu_silicon_arm(&r->s, 3, 1, 1);
	vpmu_silicon_start(&r->s, 3);
	vpmu_script_run(&r->sc, USER, 1000);
	assert_int_equal(vpmu_silicon_read(&r->s, 3), 0);
	assert_int_equal(r->n, 0);
}

static void test_demand(void **state)
{
	struct rig *r = *state;

	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
	assert_true(r->sc.demand == S(INSTRUCTIONS));
	use(r, 1, S(INSTRUCTIONS), VPMU_BANKS_KERNEL, 0);
	vpmu_silicon_start(&r->s, 0);
	assert_int_equal(r->sc.n_demand, 1);
	use(r, 2, S(CALL) | S(RET), VPMU_BANKS_USER, 0);
	assert_true(r->sc.demand == (S(INSTRUCTIONS) | S(CALL) | S(RET)));
	vpmu_silicon_free(&r->s, 0);
	assert_int_equal(r->sc.n_demand, 2);
	vpmu_silicon_free(&r->s, 1);
	assert_true(r->sc.demand == (S(CALL) | S(RET)));
	/* Within a batch a slot that changes hands is not noticed outside. */
	vpmu_silicon_begin(&r->s);
	vpmu_silicon_free(&r->s, 2);
	use(r, 5, S(RET) | S(CALL), VPMU_BANKS_USER, 0);
	vpmu_silicon_commit(&r->s);
	assert_int_equal(r->sc.n_demand, 3);
	vpmu_silicon_free(&r->s, 5);
	assert_true(r->sc.demand == 0);
}

/* Occurrences of a signal that was not demanded count for no slot. */
static void test_not_demanded_stands_still(void **state)
{
	struct rig *r = *state;

	vpmu_script_retire(&r->sc, VPMU_SIGNAL_RET, USER, 7);
	use(r, 0, S(RET), VPMU_BANKS_USER, 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_script_retire(&r->sc, VPMU_SIGNAL_RET, USER, 3);
	vpmu_silicon_free(&r->s, 0);
	vpmu_script_retire(&r->sc, VPMU_SIGNAL_RET, USER, 7);
	use(r, 0, S(RET), VPMU_BANKS_USER, 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_script_retire(&r->sc, VPMU_SIGNAL_RET, USER, 2);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 2);
}

/* Slots configured and started in one batch count from one instant. */
static void test_batch_is_one_instant(void **state)
{
	struct rig *r = *state;
	unsigned int i;

	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_script_run(&r->sc, USER, 10);
	vpmu_silicon_begin(&r->s);
	vpmu_silicon_begin(&r->s);
	for (i = 1; i < 8; i++) {
		use(r, i, VPMU_SIGNAL_BIT(i), VPMU_BANKS_USER, 0);
		vpmu_silicon_start(&r->s, i);
		vpmu_silicon_arm(&r->s, i, 5, 0);
	}
	vpmu_silicon_stop(&r->s, 0);
	vpmu_silicon_commit(&r->s);
	assert_int_equal(r->sc.n_deadline, 0);
	vpmu_silicon_commit(&r->s);
	assert_int_equal(r->sc.n_deadline, 1);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 10);
	for (i = 1; i < 8; i++)
		assert_int_equal(vpmu_silicon_read(&r->s, i), 0);
	for (i = 1; i < 8; i++)
		vpmu_script_retire(&r->sc, (enum vpmu_signal)i, USER, 4);
	assert_int_equal(r->n, 0);
	for (i = 1; i < 8; i++)
		vpmu_script_retire(&r->sc, (enum vpmu_signal)i, USER, 1);
	assert_int_equal(r->n, 7);
}

/* One word to watch: one call for each overflow, at its occurrence. */
static void test_exact_single(void **state)
{
	struct rig *r = *state;
	uint64_t seed = 3;
	unsigned int round;
	size_t i;

	for (round = 0; round < 50; round++) {
		uint64_t period = 1 + random_below(&seed, round % 2 ? 20 : 100000);
		uint64_t first = 1 + random_below(&seed, 2 * period);
		uint64_t start = r->sc.truth.word[VPMU_SIGNAL_BRANCHES][USER];

		r->n = 0;
		use(r, 0, S(BRANCHES), VPMU_BANKS_USER, 0);
		vpmu_silicon_start(&r->s, 0);
		vpmu_silicon_arm(&r->s, 0, first, period);
		r->sc.n_expire = 0;
		vpmu_script_retire(&r->sc, VPMU_SIGNAL_BRANCHES, USER, first + 20 * period);
		assert_int_equal(r->n, 21);
		assert_int_equal(r->sc.n_expire, 21);
		for (i = 0; i < r->n; i++)
			assert_true(r->log[i].truth.word[VPMU_SIGNAL_BRANCHES][USER] ==
				    start + first + i * period);
	}
}

static void test_once(void **state)
{
	struct rig *r = *state;

	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_silicon_arm(&r->s, 0, 10, 0);
	vpmu_script_run(&r->sc, USER, 100);
	assert_int_equal(r->n, 1);
	vpmu_silicon_arm(&r->s, 0, 10, 10);
	vpmu_silicon_arm(&r->s, 0, VPMU_NEVER, 10);
	vpmu_script_run(&r->sc, USER, 100);
	assert_int_equal(r->n, 1);
}

static uint64_t raw_sum(const struct vpmu_signal_words *w, const struct vpmu_recipe *rec)
{
	uint64_t sum = 0;
	unsigned int s, b;

	for (s = 0; s < VPMU_SIGNAL_COUNT; s++)
		for (b = 0; b < VPMU_BANK_COUNT; b++)
			if (rec->signals & VPMU_SIGNAL_BIT(s) && rec->banks & VPMU_BANK_BIT(b))
				sum += w->word[s][b];
	return sum;
}

/*
 * The plain way: a counter that is looked at after every single occurrence. It
 * works on a copy of the engine's totals and foretells the overflows.
 */
struct plain {
	struct vpmu_recipe rec;
	bool used, running;
	uint64_t value, next, period;
};

struct foretold {
	size_t n;
	struct overflow log[512];
};

static void plain_occur(struct plain p[N_SLOTS], struct vpmu_signal_words *total,
			uint64_t demand, unsigned int signal, unsigned int bank)
{
	unsigned int i;

	if (!(demand & VPMU_SIGNAL_BIT(signal)))
		return;
	total->word[signal][bank]++;
	for (i = 0; i < N_SLOTS; i++)
		if (p[i].used && p[i].running &&
		    p[i].rec.signals & VPMU_SIGNAL_BIT(signal) &&
		    p[i].rec.banks & VPMU_BANK_BIT(bank) &&
		    !(raw_sum(total, &p[i].rec) & ((1u << p[i].rec.shift) - 1)))
			p[i].value++;
}

static void plain_wrap(struct plain p[N_SLOTS], struct foretold *f,
		       const struct vpmu_signal_words *truth)
{
	unsigned int i;

	for (i = 0; i < N_SLOTS; i++) {
		if (!p[i].used || p[i].value < p[i].next)
			continue;
		if (f->n < COUNT_OF(f->log)) {
			f->log[f->n].slot = i;
			f->log[f->n].truth = *truth;
		}
		f->n++;
		/* At most one instant later: an instruction is 1 for each signal. */
		p[i].next = p[i].period ? p[i].next + p[i].period : VPMU_NEVER;
		while (p[i].next <= p[i].value)
			p[i].next += p[i].period;
	}
}

/* One operation on both: configure, free, start, stop, arm. */
static void random_op(struct rig *r, struct plain p[N_SLOTS], uint64_t *seed)
{
	unsigned int i = (unsigned int)random_below(seed, N_SLOTS);
	unsigned int shift = random_below(seed, 3) ? 0 : (unsigned int)random_below(seed, 5);
	uint64_t left;

	switch (random_below(seed, 6)) {
	case 0:
		p[i] = (struct plain){ .used = true, .next = VPMU_NEVER };
		p[i].rec = recipe(random_next(seed) & random_next(seed) & VPMU_SCRIPT_SUPPLIED,
				  (unsigned int)random_below(seed, 16), shift);
		vpmu_silicon_configure(&r->s, i, &p[i].rec);
		break;
	case 1:
		if (random_below(seed, 4))
			break;
		p[i] = (struct plain){ 0 };
		vpmu_silicon_free(&r->s, i);
		break;
	case 2:
	case 3:
		p[i].running = p[i].used;
		vpmu_silicon_start(&r->s, i);
		break;
	case 4:
		p[i].running = false;
		vpmu_silicon_stop(&r->s, i);
		break;
	default:
		if (!p[i].used)
			break;
		left = 1 + random_below(seed, random_below(seed, 2) ? 5 : 200);
		p[i].period = random_below(seed, 4) ? 1 + random_below(seed, 50) : 0;
		p[i].next = p[i].value + left;
		vpmu_silicon_arm(&r->s, i, left, p[i].period);
	}
}

static void random_ops(struct rig *r, struct plain p[N_SLOTS], uint64_t *seed)
{
	unsigned int n = (unsigned int)random_below(seed, 6);
	bool batch = random_below(seed, 2);

	if (batch)
		vpmu_silicon_begin(&r->s);
	while (n--)
		random_op(r, p, seed);
	if (batch)
		vpmu_silicon_commit(&r->s);
}

/* Many occurrences of one word at once, or one instruction. */
static void random_progress(struct rig *r, struct plain p[N_SLOTS], struct foretold *f,
			    uint64_t *seed)
{
	unsigned int bank = (unsigned int)random_below(seed, random_below(seed, 4) ? 2 : 4);
	unsigned int signal = (unsigned int)random_below(seed, VPMU_SIGNAL_CYCLES);
	struct vpmu_signal_words total = r->sc.total, truth = r->sc.truth;
	uint64_t n = random_below(seed, 150), i;

	if (random_below(seed, 2)) {
		for (i = 0; i < n; i++) {
			plain_occur(p, &total, r->sc.demand, signal, bank);
			truth.word[signal][bank]++;
			plain_wrap(p, f, &truth);
		}
		vpmu_script_retire(&r->sc, (enum vpmu_signal)signal, (enum vpmu_bank)bank, n);
		return;
	}
	plain_occur(p, &total, r->sc.demand, VPMU_SIGNAL_INSTRUCTIONS, bank);
	truth.word[VPMU_SIGNAL_INSTRUCTIONS][bank]++;
	if (signal >= VPMU_SIGNAL_JCC_TAKEN) {
		plain_occur(p, &total, r->sc.demand, VPMU_SIGNAL_BRANCHES, bank);
		plain_occur(p, &total, r->sc.demand, signal, bank);
		truth.word[VPMU_SIGNAL_BRANCHES][bank]++;
		truth.word[signal][bank]++;
	}
	plain_wrap(p, f, &truth);
	vpmu_script_step(&r->sc, (enum vpmu_bank)bank, (enum vpmu_signal)signal);
}

static void compare(struct rig *r, struct plain p[N_SLOTS], struct foretold *f,
		    unsigned int round)
{
	unsigned int i;
	size_t k;

	if (r->n != f->n)
		fail_msg("round %u: %zu overflows, expected %zu", round, r->n, f->n);
	assert_true(f->n <= COUNT_OF(f->log));
	for (k = 0; k < f->n; k++) {
		assert_int_equal(r->log[k].slot, f->log[k].slot);
		assert_memory_equal(&r->log[k].truth, &f->log[k].truth,
				    sizeof(f->log[k].truth));
	}
	for (i = 0; i < N_SLOTS; i++)
		if (vpmu_silicon_read(&r->s, i) != p[i].value)
			fail_msg("round %u: slot %u reads %llu, expected %llu", round, i,
				 (unsigned long long)vpmu_silicon_read(&r->s, i),
				 (unsigned long long)p[i].value);
	r->n = f->n = 0;
}

static void against_plain(struct rig *r, uint64_t seed, unsigned int rounds)
{
	struct plain p[N_SLOTS] = { 0 };
	struct foretold *f = calloc(1, sizeof(*f));
	unsigned int round;

	for (round = 0; round < rounds; round++) {
		random_ops(r, p, &seed);
		random_progress(r, p, f, &seed);
		compare(r, p, f, round);
		if (r->sc.broken)
			fail_msg("round %u: %s", round, r->sc.broken);
	}
	free(f);
}

static void test_against_plain_counter(void **state)
{
	against_plain(*state, 1, 60000);
}

/* The comparison again, with totals that a load has moved. */
static void test_against_plain_counter_rebased(void **state)
{
	struct rig *r = *state;
	unsigned int s, b;
	uint64_t seed = 5;

	for (s = 0; s < VPMU_SIGNAL_COUNT; s++)
		for (b = 0; b < VPMU_BANK_COUNT; b++)
			vpmu_silicon_rebase(&r->s, s, b,
					    random_next(&seed) >> 8 & ~(uint64_t)0x1f);
	against_plain(r, 2, 5000);
}

/*
 * A slot over many words: exact as well, and the calls that turn out to be early
 * stay few: 6 signals in 2 banks split a deadline by 16, so each takes a
 * sixteenth off what is left.
 */
static void test_exact_many(void **state)
{
	struct rig *r = *state;
	const uint64_t period = 100000;
	uint64_t seed = 9, retired;
	unsigned int k;

	use(r, 0, S(JCC_TAKEN) | S(JMP) | S(CALL) | S(RET) | S(JMP_INDIRECT) | S(CALL_INDIRECT),
	    VPMU_BANKS_USER | VPMU_BANKS_KERNEL, 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_silicon_arm(&r->s, 0, period, period);
	for (retired = 0; retired < 10 * period;) {
		enum vpmu_signal kind = (enum vpmu_signal)(VPMU_SIGNAL_JCC_TAKEN +
							   random_below(&seed, 8));

		vpmu_script_step(&r->sc, random_below(&seed, 3) ? USER : KERNEL, kind);
		retired += kind != VPMU_SIGNAL_JCC_NOT_TAKEN && kind != VPMU_SIGNAL_FAR;
		assert_int_equal(r->n, retired / period);
	}
	for (k = 0; k < r->n; k++)
		assert_int_equal(raw_sum(&r->log[k].truth, &r->s.slot[0].recipe), (k + 1) * period);
	if (r->sc.n_expire > 10 * 400)
		fail_msg("%u calls for 10 overflows", r->sc.n_expire);
}

/* A nested bank in which nothing happens costs no early calls. */
static void test_sleeping_nested_bank(void **state)
{
	struct rig *r = *state;

	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_silicon_arm(&r->s, 0, 1000, 1000);
	vpmu_script_run(&r->sc, USER, 10000);
	assert_int_equal(r->n, 10);
	assert_int_equal(r->sc.n_expire, 10);
	vpmu_script_run(&r->sc, VPMU_BANK_NESTED_USER, 999);
	assert_int_equal(r->n, 10);
	vpmu_script_run(&r->sc, VPMU_BANK_NESTED_USER, 1);
	assert_int_equal(r->n, 11);
	/* Awake, it shares: each early call halves what is left. */
	r->sc.n_expire = 0;
	vpmu_script_run(&r->sc, VPMU_BANK_NESTED_USER, 1000);
	assert_int_equal(r->n, 12);
	assert_in_range(r->sc.n_expire, 2, 11);
}

/* Floor of the total, so that the phase does not depend on when a slot starts. */
static void test_shift_keeps_phase(void **state)
{
	struct rig *r = *state;

	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 4);
	vpmu_script_run(&r->sc, USER, 15);
	vpmu_silicon_start(&r->s, 0);
	vpmu_silicon_arm(&r->s, 0, 1, 2);
	vpmu_script_run(&r->sc, USER, 1);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 1);
	assert_int_equal(r->n, 1);
	vpmu_script_run(&r->sc, USER, 31);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 2);
	assert_int_equal(r->n, 1);
	vpmu_script_run(&r->sc, USER, 1);
	assert_int_equal(r->n, 2);

	/* Loaded totals go on with their own phase. */
	vpmu_script_run(&r->sc, USER, 3);
	assert_int_equal(vpmu_silicon_total(&r->s, VPMU_SIGNAL_INSTRUCTIONS, USER), 51);
	vpmu_silicon_free(&r->s, 0);
	vpmu_silicon_rebase(&r->s, VPMU_SIGNAL_INSTRUCTIONS, USER, 16 * 1000 + 14);
	vpmu_silicon_rebase(&r->s, VPMU_SIGNAL_CYCLES, USER, 77);
	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 4);
	vpmu_silicon_start(&r->s, 0);
	vpmu_script_run(&r->sc, USER, 2);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 1);
	assert_int_equal(vpmu_silicon_total(&r->s, VPMU_SIGNAL_INSTRUCTIONS, USER),
			 16 * 1000 + 16);
	assert_int_equal(vpmu_silicon_total(&r->s, VPMU_SIGNAL_CYCLES, USER), 77);
}

/* Two runs, one of which reads all the time: nothing differs, no deadline moves. */
static void test_read_changes_nothing(void **state)
{
	struct rig *r = *state, *other;
	unsigned int i, k;

	assert_int_equal(setup((void **)&other), 0);
	for (i = 0; i < 3; i++) {
		struct rig *each[] = { r, other };

		for (k = 0; k < 2; k++) {
			use(each[k], i, S(INSTRUCTIONS) | S(RET), VPMU_BANKS_USER, i);
			vpmu_silicon_start(&each[k]->s, i);
			vpmu_silicon_arm(&each[k]->s, i, 17 + i, 23);
		}
	}
	for (i = 0; i < 3000; i++) {
		unsigned int sent = r->sc.n_deadline;

		for (k = 0; k < N_SLOTS; k++)
			vpmu_silicon_read(&r->s, k);
		vpmu_silicon_begin(&r->s);
		vpmu_silicon_read(&r->s, 0);
		vpmu_silicon_commit(&r->s);
		assert_int_equal(r->sc.n_deadline, sent);
		vpmu_script_step(&r->sc, USER, i % 7 ? VPMU_SIGNAL_INSTRUCTIONS : VPMU_SIGNAL_RET);
		vpmu_script_step(&other->sc, USER,
				 i % 7 ? VPMU_SIGNAL_INSTRUCTIONS : VPMU_SIGNAL_RET);
		assert_int_equal(r->n, other->n);
	}
	assert_int_equal(r->sc.n_deadline, other->sc.n_deadline);
	for (k = 0; k < N_SLOTS; k++)
		assert_true(vpmu_silicon_read(&r->s, k) == vpmu_silicon_read(&other->s, k));
	assert_memory_equal(&r->sc.target, &other->sc.target, sizeof(r->sc.target));
	free(other);
}

/* An engine that is late: one overflow for several periods, and the grid stays. */
static void test_late_engine(void **state)
{
	struct rig *r = *state;

	r->sc.silicon = NULL; /* deadlines pass unheard */
	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_silicon_arm(&r->s, 0, 10, 100);
	r->sc.target.word[VPMU_SIGNAL_INSTRUCTIONS][USER] = VPMU_NEVER;
	vpmu_script_run(&r->sc, USER, 350);
	assert_int_equal(r->n, 0);
	vpmu_silicon_expire(&r->s);
	assert_int_equal(r->n, 1);
	assert_true(r->sc.target.word[VPMU_SIGNAL_INSTRUCTIONS][USER] == 410);
	vpmu_silicon_expire(&r->s);
	assert_int_equal(r->n, 1);
	assert_true(r->sc.target.word[VPMU_SIGNAL_INSTRUCTIONS][USER] == 410);
	r->sc.silicon = &r->s;
	vpmu_script_run(&r->sc, USER, 60);
	assert_int_equal(r->n, 2);
	assert_int_equal(r->log[1].truth.word[VPMU_SIGNAL_INSTRUCTIONS][USER], 410);
}

/* A wrap is reported, whatever operation comes before the engine's call. */
static void test_late_engine_loses_nothing(void **state)
{
	struct rig *r = *state;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		r->n = 0;
		r->sc.silicon = NULL;
		use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
		vpmu_silicon_start(&r->s, 0);
		vpmu_silicon_arm(&r->s, 0, 10, 0);
		r->sc.target.word[VPMU_SIGNAL_INSTRUCTIONS][USER] = VPMU_NEVER;
		vpmu_script_run(&r->sc, USER, 10 + i);
		if (i == 0)
			vpmu_silicon_stop(&r->s, 0);
		else if (i == 1)
			vpmu_silicon_arm(&r->s, 0, 5, 5);
		else if (i == 2)
			vpmu_silicon_arm(&r->s, 0, VPMU_NEVER, 0);
		else if (i == 3)
			vpmu_silicon_free(&r->s, 0);
		else
			use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
		/* A slot that is freed or configured again gets no report of its past. */
		assert_int_equal(r->n, i < 3 ? 1 : 0);
		vpmu_silicon_expire(&r->s);
		assert_int_equal(r->n, i < 3 ? 1 : 0);
		r->sc.silicon = &r->s;
		vpmu_script_run(&r->sc, USER, 5);
		assert_int_equal(r->n, i < 3 ? 1 + (i == 1) : 0);
	}
}

static void test_early_engine(void **state)
{
	struct rig *r = *state;
	unsigned int i;

	use(r, 0, S(INSTRUCTIONS) | S(RET), VPMU_BANKS_USER, 1);
	vpmu_silicon_start(&r->s, 0);
	vpmu_silicon_arm(&r->s, 0, 100, 100);
	for (i = 1; i <= 1000; i++) {
		vpmu_script_run(&r->sc, USER, 1);
		vpmu_silicon_expire(&r->s);
		vpmu_silicon_expire(&r->s);
		assert_int_equal(r->n, i / 200);
	}
}

/* Numbers at the edge of 64 bits mean never, and never soon. */
static void test_saturates(void **state)
{
	static const uint64_t edge[] = {
		VPMU_NEVER, VPMU_NEVER - 1, VPMU_NEVER - 100, (uint64_t)1 << 63,
		((uint64_t)1 << 60) - 1, (uint64_t)1 << 60, ((uint64_t)1 << 60) + 1,
	};
	static const unsigned int shift[] = { 0, 4, 15 };
	static const uint64_t signals[] = { S(INSTRUCTIONS), VPMU_SCRIPT_SUPPLIED };
	struct rig *r = *state;
	unsigned int i, k, n;

	for (i = 0; i < COUNT_OF(edge); i++)
		for (k = 0; k < COUNT_OF(shift); k++)
			for (n = 0; n < COUNT_OF(signals); n++) {
				use(r, 0, signals[n], 15, shift[k]);
				vpmu_silicon_start(&r->s, 0);
				vpmu_script_run(&r->sc, USER, 1 << 16);
				vpmu_silicon_arm(&r->s, 0, edge[i], edge[i]);
				vpmu_script_run(&r->sc, USER, 1000);
				assert_int_equal(r->n, 0);
			}
	for (i = 0; i < COUNT_OF(edge); i++) {
		use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
		vpmu_silicon_start(&r->s, 0);
		vpmu_silicon_arm(&r->s, 0, 3, edge[i]);
		vpmu_script_run(&r->sc, USER, 1000);
		assert_int_equal(r->n, 1);
		r->n = 0;
	}
	/* A total near its end must not make a deadline of the engine's wrap. */
	r->sc.total.word[VPMU_SIGNAL_INSTRUCTIONS][USER] = VPMU_NEVER - 2000;
	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_silicon_arm(&r->s, 0, 5000, 1);
	vpmu_script_run(&r->sc, USER, 1000);
	assert_int_equal(r->n, 0);
}

/* An engine that always counts all need not know of demands. */
static void test_without_demand_hook(void **state)
{
	struct rig *r = *state;

	r->sc.ops.set_demand = NULL;
	assert_int_equal(vpmu_silicon_init(&r->s, &r->cfg), 0);
	r->sc.demand = r->sc.supplied;
	vpmu_script_run(&r->sc, USER, 10);
	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
	vpmu_silicon_start(&r->s, 0);
	vpmu_silicon_arm(&r->s, 0, 5, 5);
	vpmu_script_run(&r->sc, USER, 10);
	assert_int_equal(vpmu_silicon_read(&r->s, 0), 10);
	assert_int_equal(r->n, 2);
}

static void commit_without_begin(struct rig *r)
{
	vpmu_silicon_commit(&r->s);
}

static void expire_in_a_batch(struct rig *r)
{
	vpmu_silicon_begin(&r->s);
	vpmu_silicon_expire(&r->s);
}

static void slot_behind_the_clock(struct rig *r)
{
	vpmu_silicon_free(&r->s, VPMU_SLOT_CLOCK + 1);
}

static void timer_without_clock(struct rig *r)
{
	vpmu_silicon_timer(&r->s, 1);
}

static void rebase_in_use(struct rig *r)
{
	use(r, 0, S(INSTRUCTIONS), VPMU_BANKS_USER, 0);
	vpmu_silicon_rebase(&r->s, VPMU_SIGNAL_INSTRUCTIONS, USER, 1);
}

/* vpmu_assert() stops a caller that breaks a contract. Coverage is measured without it. */
static void test_contracts(void **state)
{
	static void (*const breach[])(struct rig *r) = {
		commit_without_begin, expire_in_a_batch, slot_behind_the_clock,
		timer_without_clock, rebase_in_use,
	};
	unsigned int i;
	int status;

#ifndef VPMU_ASSERT
	skip();
#endif
	for (i = 0; i < COUNT_OF(breach); i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child) {
			signal(SIGILL, SIG_DFL);
			breach[i](*state);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL);
	}
}

#define CASE(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_init),
		CASE(test_difference),
		CASE(test_no_signal),
		CASE(test_demand),
		CASE(test_not_demanded_stands_still),
		CASE(test_batch_is_one_instant),
		CASE(test_exact_single),
		CASE(test_once),
		CASE(test_against_plain_counter),
		CASE(test_against_plain_counter_rebased),
		CASE(test_exact_many),
		CASE(test_sleeping_nested_bank),
		CASE(test_shift_keeps_phase),
		CASE(test_read_changes_nothing),
		CASE(test_late_engine),
		CASE(test_late_engine_loses_nothing),
		CASE(test_early_engine),
		CASE(test_saturates),
		CASE(test_without_demand_hook),
		CASE(test_contracts),
	};

	return cmocka_run_group_tests_name("silicon", tests, NULL, NULL);
}
