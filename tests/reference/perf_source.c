// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Operations on a host's events, from random numbers or from a fuzzer's bytes.
 */
#include <string.h>

#include "perf_pair.h"

#define BIT(n)	((uint64_t)1 << (n))

/* splitmix64 */
static uint64_t random_word(struct perf_source *s)
{
	uint64_t x = s->seed += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t draw(struct perf_source *s, size_t bytes)
{
	uint64_t x = 0;

	if (!s->data)
		return random_word(s) >> (64 - 8 * bytes);
	if (bytes > s->size)
		bytes = s->size;
	memcpy(&x, s->data, bytes);
	s->data += bytes;
	s->size -= bytes;
	return x;
}

/* 0 .. n - 1 */
static unsigned int upto(struct perf_source *s, unsigned int n)
{
	return (unsigned int)(draw(s, n <= 16 ? 1 : 2) % n);
}

static bool chance(struct perf_source *s, unsigned int in_sixteen)
{
	return upto(s, 16) < in_sixteen;
}

/* The machine ----------------------------------------------------------------- */

static uint64_t some_signals(struct perf_source *s)
{
	static const uint64_t signals[] = {
		BIT(VPMU_SIGNAL_INSTRUCTIONS), BIT(VPMU_SIGNAL_INSTRUCTIONS),
		BIT(VPMU_SIGNAL_BRANCHES), BIT(VPMU_SIGNAL_JCC_TAKEN), BIT(VPMU_SIGNAL_RET),
		BIT(VPMU_SIGNAL_CYCLES), BIT(VPMU_SIGNAL_FAR) | BIT(VPMU_SIGNAL_JMP),
		BIT(VPMU_SIGNAL_INSTRUCTIONS) | BIT(VPMU_SIGNAL_BRANCHES),
	};

	return signals[upto(s, sizeof(signals) / sizeof(signals[0]))];
}

static void some_model(struct perf_source *s, struct perf_config *cfg)
{
	unsigned int i, all;

	cfg->n_gp = (uint8_t)(chance(s, 3) ? 1 : 2 + upto(s, chance(s, 4) ? 3 : 2));
	cfg->n_fixed = (uint8_t)(chance(s, 8) ? 0 : upto(s, 3));
	all = (1u << cfg->n_gp) - 1;
	for (i = 0; i < PERF_ROWS; i++) {
		cfg->row[i].signals = some_signals(s);
		cfg->row[i].fixed = (int8_t)(i < cfg->n_fixed ? (int)i : -1);
		cfg->row[i].gp_mask = (uint16_t)all;
		if (chance(s, 9))
			cfg->row[i].gp_mask = (uint16_t)(1 + upto(s, all));
		if (i < cfg->n_fixed && chance(s, 4))
			cfg->row[i].gp_mask = 0;
	}
}

static uint8_t some_policy(struct perf_source *s, unsigned int bias)
{
	return (uint8_t)(chance(s, bias) ? PERF_MEDIATED : PERF_SHARED);
}

void perf_source_config(struct perf_source *s, struct perf_config *cfg)
{
	unsigned int bias = chance(s, 8) ? 0 : chance(s, 12) ? 16 : 8, i;

	memset(cfg, 0, sizeof(*cfg));
	cfg->real = chance(s, 1);
	some_model(s, cfg);
	cfg->n_cpus = (uint8_t)(1 + chance(s, 4));
	cfg->lazy = chance(s, 6);
	cfg->hold = chance(s, 8);
	cfg->mux_cycles = (uint16_t)(chance(s, 1) ? 0 : 1 + upto(s, chance(s, 4) ? 50 : 12));
	cfg->policy[1] = some_policy(s, bias);
	cfg->policy[2] = some_policy(s, bias);
	if (chance(s, 2))
		cfg->policy[1 + upto(s, 2)] = PERF_PLAIN;
	for (i = 0; i < PERF_CPUS; i++)
		s->task[i] = PERF_NONE;
	memcpy(s->policy, cfg->policy, sizeof(s->policy));
}

/* Operations ------------------------------------------------------------------ */

static bool any_mediated(const struct perf_source *s)
{
	return s->policy[1] == PERF_MEDIATED || s->policy[2] == PERF_MEDIATED;
}

static uint64_t some_select(struct perf_source *s, const struct perf_config *cfg)
{
	static const uint16_t real[] = {
		0x00c0, 0x003c, 0x00c4, 0x01c4, 0x02c4, 0x08c4, 0x20c4, 0x01c0, 0x01a4,
	};
	uint64_t select = PERF_SELECT + upto(s, PERF_ROWS);

	if (cfg->real)
		select = real[upto(s, sizeof(real) / sizeof(real[0]))];
	if (chance(s, 1))
		select |= draw(s, 4) & (BIT(18) | BIT(23) | BIT(24) | BIT(25));
	if (chance(s, 1) && chance(s, 4))
		select ^= 0x80;
	return select;
}

static int any_open(struct perf_source *s)
{
	unsigned int at = upto(s, PERF_EVENTS), i;

	for (i = 0; i < PERF_EVENTS; i++)
		if (s->open[(at + i) % PERF_EVENTS])
			return (int)((at + i) % PERF_EVENTS);
	return PERF_NONE;
}

static int any_free(struct perf_source *s)
{
	unsigned int at = upto(s, PERF_EVENTS), i;

	for (i = 0; i < PERF_EVENTS; i++)
		if (!s->open[(at + i) % PERF_EVENTS])
			return (int)((at + i) % PERF_EVENTS);
	return PERF_NONE;
}

static void what_to_count(struct perf_source *s, const struct perf_config *cfg,
			  struct perf_op *op)
{
	static const uint8_t banks[] = {
		VPMU_BANKS_KERNEL | VPMU_BANKS_USER, VPMU_BANKS_KERNEL | VPMU_BANKS_USER,
		VPMU_BANKS_KERNEL, VPMU_BANKS_USER,
		VPMU_BANK_BIT(VPMU_BANK_USER) | VPMU_BANK_BIT(VPMU_BANK_KERNEL),
	};

	op->banks = banks[upto(s, sizeof(banks))];
	op->fixed = -1;
	op->select = some_select(s, cfg);
	if (cfg->n_fixed && !cfg->real && chance(s, 3)) {
		op->fixed = (int8_t)upto(s, cfg->n_fixed);
		op->select = 0;
	}
	if (chance(s, 5)) {
		op->shared = (uint8_t)(chance(s, 5) ? upto(s, VPMU_SHARED_COUNT) :
				       chance(s, 8) ? VPMU_SHARED_LBR : VPMU_SHARED_OFFCORE_RSP);
		op->extra = chance(s, 2) ? VPMU_SHARED_ALONE : upto(s, 3);
		if (chance(s, 4))
			op->flags |= PERF_NO_COUNTER;
	}
	op->value = chance(s, 8) ? 0 : 1 + upto(s, 20);
}

/* The context of a task, rather of the one that is on @cpu. */
static uint8_t some_task(struct perf_source *s, unsigned int cpu)
{
	unsigned int task = upto(s, PERF_TASKS);

	if (s->task[cpu] != PERF_NONE && chance(s, 11))
		task = (unsigned int)s->task[cpu];
	return (uint8_t)(PERF_CPUS + task);
}

static void open_op(struct perf_source *s, const struct perf_config *cfg, struct perf_op *op)
{
	int ev = any_free(s), leader;

	if (ev == PERF_NONE)
		return;
	op->kind = PERF_OPEN;
	op->ev = (uint8_t)ev;
	op->ctx = op->cpu;
	if (chance(s, 9))
		op->ctx = some_task(s, op->cpu);
	op->leader = PERF_NONE;
	op->only = (int8_t)(op->ctx >= PERF_CPUS && chance(s, 3) ? (int)upto(s, PERF_CPUS) : -1);
	what_to_count(s, cfg, op);
	if (chance(s, 7))
		op->flags |= PERF_PINNED;
	if (chance(s, 3))
		op->flags |= PERF_DISABLED;
	if (chance(s, 1))
		op->flags |= PERF_EXCLUSIVE;
	if (chance(s, 2))
		op->flags |= PERF_EXCLUDE_HOST;
	if (chance(s, any_mediated(s) ? 15 : 3))
		op->flags |= PERF_EXCLUDE_GUEST;
	leader = any_open(s);
	if (leader != PERF_NONE && s->leader[leader] == leader && chance(s, 7)) {
		op->leader = (int8_t)leader;
		if (!chance(s, 1))
			op->ctx = s->ctx[leader];
		if (!chance(s, 1))
			op->flags &= (uint8_t)~(PERF_PINNED | PERF_EXCLUSIVE);
	}
	s->open[ev] = true;
	s->ctx[ev] = op->ctx;
	s->leader[ev] = op->leader == PERF_NONE ? ev : op->leader;
}

static void create_op(struct perf_source *s, const struct perf_config *cfg, struct perf_op *op)
{
	int ev = any_free(s);

	if (ev == PERF_NONE)
		return;
	op->kind = PERF_CREATE;
	op->ev = (uint8_t)ev;
	op->ctx = some_task(s, op->cpu);
	if (op->ctx == PERF_CPUS)
		op->ctx += 1 + chance(s, 8);
	op->leader = PERF_NONE;
	what_to_count(s, cfg, op);
	op->flags |= PERF_PINNED | PERF_DISABLED | PERF_EXCLUDE_HOST;
	op->slot = (int8_t)upto(s, cfg->real ? 8u : (unsigned int)(cfg->n_gp + cfg->n_fixed));
	op->only = -1;
	s->open[ev] = true;
	s->ctx[ev] = op->ctx;
	s->leader[ev] = PERF_NONE;
}

static void event_op(struct perf_source *s, struct perf_op *op, enum perf_op_kind kind)
{
	int ev = any_open(s), i;

	if (ev == PERF_NONE)
		return;
	op->kind = (uint8_t)kind;
	op->ev = (uint8_t)ev;
	op->value = 1 + upto(s, 20);
	if (kind != PERF_CLOSE)
		return;
	s->open[ev] = false;
	for (i = 0; i < PERF_EVENTS; i++)
		if (s->leader[i] == ev)
			s->leader[i] = i;
}

static void batch_op(struct perf_source *s, struct perf_op *op)
{
	int *depth = &s->batch[op->cpu];

	op->kind = *depth && !chance(s, 3) ? PERF_COMMIT : PERF_BEGIN;
	*depth += op->kind == PERF_BEGIN ? 1 : -1;
}

static void switch_op(struct perf_source *s, struct perf_op *op)
{
	unsigned int cpu = op->cpu, t = upto(s, PERF_TASKS);

	if (s->batch[cpu])
		return;
	if (s->task[cpu] == PERF_NONE) {
		op->kind = PERF_SCHED_IN;
		op->ctx = (uint8_t)(PERF_CPUS + t);
		if (s->task[!cpu] != (int)t)
			s->task[cpu] = (int)t;
	} else if (s->guest[cpu]) {
		op->kind = PERF_EXIT;
		s->guest[cpu] = false;
	} else {
		op->kind = PERF_SCHED_OUT;
		s->task[cpu] = PERF_NONE;
	}
}

static void guest_op(struct perf_source *s, struct perf_op *op)
{
	if (s->task[op->cpu] <= 0 || s->batch[op->cpu]) {
		switch_op(s, op);
		return;
	}
	op->kind = s->guest[op->cpu] ? PERF_EXIT : PERF_ENTER;
	s->guest[op->cpu] = op->kind == PERF_ENTER;
}

static void vcpu_op(struct perf_source *s, struct perf_op *op)
{
	unsigned int t = 1 + upto(s, PERF_TASKS - 1);

	op->ctx = (uint8_t)(PERF_CPUS + t);
	op->policy = some_policy(s, 8);
	op->kind = s->policy[t] == PERF_PLAIN ? PERF_INIT : PERF_FINI;
	s->policy[t] = op->kind == PERF_INIT ? op->policy : (uint8_t)PERF_PLAIN;
}

static void retire_op(struct perf_source *s, struct perf_op *op)
{
	static const uint8_t bank[] = {
		VPMU_BANK_USER, VPMU_BANK_KERNEL, VPMU_BANK_USER, VPMU_BANK_NESTED_USER,
	};

	op->kind = PERF_RETIRE;
	op->bank = bank[upto(s, sizeof(bank))];
	op->n = (uint8_t)(1 + upto(s, chance(s, 3) ? 60 : 12));
	op->value = draw(s, 8);
}

void perf_source_op(struct perf_source *s, const struct perf_config *cfg, struct perf_op *op)
{
	unsigned int what = upto(s, 128);

	memset(op, 0, sizeof(*op));
	op->kind = PERF_READ;
	op->cpu = (uint8_t)upto(s, cfg->n_cpus);
	if (s->batch[op->cpu] && chance(s, 3))
		batch_op(s, op);
	else if (what < 30)
		open_op(s, cfg, op);
	else if (what < 40)
		create_op(s, cfg, op);
	else if (what < 48)
		event_op(s, op, PERF_CLOSE);
	else if (what < 68)
		event_op(s, op, PERF_ENABLE);
	else if (what < 75)
		event_op(s, op, PERF_DISABLE);
	else if (what < 79)
		event_op(s, op, PERF_ARM);
	else if (what < 81)
		op->kind = PERF_READ;
	else if (what < 85)
		batch_op(s, op);
	else if (what < 96)
		switch_op(s, op);
	else if (what < 105)
		guest_op(s, op);
	else if (what < 107)
		vcpu_op(s, op);
	else
		retire_op(s, op);
}
