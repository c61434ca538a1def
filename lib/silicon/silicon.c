// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The counters of a PMU as differences of signal totals, and their overflows as
 * deadlines of the engine.
 */
#include <vpmu/silicon.h>

_Static_assert(VPMU_SIGNAL_COUNT < 64, "signals are bits of a word");

/*
 * `raw` is a sum of signal totals, `scaled` the same after the recipe's shift;
 * a slot's value and everything it is compared with is scaled.
 */

/* The next used slot from @i on; the clock's comes last. */
static unsigned int next_used(const struct vpmu_silicon *s, unsigned int i)
{
	while (i <= VPMU_SLOT_CLOCK && !s->slot[i].used)
		i++;
	return i;
}

/* The lowest of @signals, in halves: for 64 bits at once 32-bit CPUs need a library. */
static unsigned int first_of(uint64_t signals)
{
	uint32_t low = (uint32_t)signals;

	return low ? (unsigned int)__builtin_ctz(low)
		   : 32u + (unsigned int)__builtin_ctz((uint32_t)(signals >> 32));
}

#define for_each_used(s, i) \
	for ((i) = next_used((s), 0); (i) <= VPMU_SLOT_CLOCK; (i) = next_used((s), (i) + 1))

int vpmu_silicon_init(struct vpmu_silicon *s, const struct vpmu_silicon_config *cfg)
{
	struct vpmu_ops ops;

	if (cfg->size < sizeof(*cfg) || !cfg->model || !cfg->ops)
		return -VPMU_EINVAL;
	vpmu_ops_copy(&ops, cfg->ops);
	if (!ops.read_totals || !ops.set_deadlines)
		return -VPMU_EINVAL;
	if (cfg->model->n_gp + cfg->model->n_fixed > VPMU_SLOTS_MAX)
		return -VPMU_EINVAL;
	memset(s, 0, sizeof(*s));
	s->cfg = *cfg;
	s->cfg.size = sizeof(s->cfg);
	s->cfg.ops = NULL; /* the embedder's may be gone */
	s->ops = ops;
	memset(&s->left, 0xff, sizeof(s->left));
	return 0;
}

/* Ask for the totals of @signals, in addition to those asked for before. */
static void read_totals(struct vpmu_silicon *s, uint64_t signals)
{
	uint64_t rest;
	unsigned int i, b;

	signals |= s->fresh;
	s->ops.read_totals(s->cfg.ctx, signals, &s->now);
	for (rest = signals; rest; rest &= rest - 1) {
		i = first_of(rest);
		for (b = 0; b < VPMU_BANK_COUNT; b++)
			s->now.word[i][b] += s->offset.word[i][b];
	}
	s->fresh = signals;
}

/* Open a batch in which the totals of @signals are those of this instant. */
static void batch_open(struct vpmu_silicon *s, uint64_t signals)
{
	if (!s->batch++)
		s->fresh = 0;
	if (signals & ~s->fresh)
		read_totals(s, signals);
}

void vpmu_silicon_begin(struct vpmu_silicon *s)
{
	batch_open(s, s->demand);
}

static uint64_t raw_total(const struct vpmu_silicon *s, const struct vpmu_recipe *r)
{
	uint64_t sum = 0, rest;
	unsigned int b;

	for (rest = r->signals; rest; rest &= rest - 1)
		for (b = 0; b < VPMU_BANK_COUNT; b++)
			if (r->banks & VPMU_BANK_BIT(b))
				sum += s->now.word[first_of(rest)][b];
	return sum;
}

/* Are slots the model's? If they are instructions, each of them retires. */
static bool classed(const struct vpmu_recipe *r)
{
	return r->topdown && r->signals & VPMU_SIGNALS_SLOTS;
}

/* The signals that have to be counted for a slot. */
static uint64_t demanded(const struct vpmu_recipe *r)
{
	return r->signals | (classed(r) ? VPMU_SIGNALS_TOPDOWN : 0);
}

static uint64_t class_total(const struct vpmu_silicon *s, const struct vpmu_recipe *r,
			    unsigned int i)
{
	struct vpmu_recipe one = *r;

	if (classed(r))
		one.signals = VPMU_SIGNAL_BIT(VPMU_SIGNAL_OF(VPMU_UARCH_RETIRING + i));
	else if (i)
		return 0;
	return raw_total(s, &one);
}

/* Begin to split a slot's topdown counts at these totals, or end it. */
static void slot_topdown(const struct vpmu_silicon *s, struct vpmu_slot *slot, bool start)
{
	unsigned int i;

	for (i = 0; slot->recipe.topdown && i < VPMU_TOPDOWN; i++)
		if (start)
			slot->topdown[i] -= class_total(s, &slot->recipe, i);
		else
			slot->topdown[i] += class_total(s, &slot->recipe, i);
}

static uint64_t slot_value(const struct vpmu_silicon *s, const struct vpmu_slot *slot)
{
	if (!slot->running)
		return slot->count;
	return slot->count + (raw_total(s, &slot->recipe) >> slot->recipe.shift);
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a > VPMU_NEVER - b ? VPMU_NEVER : a + b;
}

/* Remainder without a 64-bit division; an engine is hardly ever that late. */
static uint64_t modulo(uint64_t a, uint64_t b)
{
	uint64_t part = b;

	while (part <= a >> 1)
		part <<= 1;
	for (; part >= b; part >>= 1)
		if (a >= part)
			a -= part;
	return a;
}

/*
 * Note an overflow that has passed, and go on to the next one: several at once are one.
 */
static void slot_settle(struct vpmu_silicon *s, unsigned int i)
{
	struct vpmu_slot *slot = &s->slot[i];
	uint64_t value = slot_value(s, slot);
	uint64_t ahead;

	if (!slot->used || value < slot->next || slot->next == VPMU_NEVER)
		return;
	s->wrapped |= 1u << i;
	s->changed = true;
	if (!slot->period) {
		slot->next = VPMU_NEVER;
		return;
	}
	ahead = slot->period - modulo(value - slot->next, slot->period);
	slot->next = add_saturated(value, ahead);
}

/* Occurrences of all its signals together until the slot overflows. */
static uint64_t raw_left(const struct vpmu_silicon *s, const struct vpmu_slot *slot)
{
	const struct vpmu_recipe *r = &slot->recipe;
	uint64_t left = slot->next - slot_value(s, slot);
	uint64_t phase = raw_total(s, r) & ((1ull << r->shift) - 1);

	if (left > VPMU_NEVER >> r->shift)
		return VPMU_NEVER;
	return (left << r->shift) - phase;
}

/*
 * The banks among which a deadline is split: all but nested ones in which no signal of it
 * has happened yet. Those get deadline 1, at no cost to the others.
 */
static unsigned int awake_banks(const struct vpmu_silicon *s, const struct vpmu_recipe *r)
{
	unsigned int banks = 0, b;

	for (b = 0; b < VPMU_BANK_COUNT; b++) {
		struct vpmu_recipe here = *r;

		here.banks = r->banks & VPMU_BANK_BIT(b);
		if (b < VPMU_BANK_NESTED_KERNEL || raw_total(s, &here))
			banks |= here.banks;
	}
	return banks;
}

static unsigned int count_bits(uint64_t bits)
{
	unsigned int n = 0;

	for (; bits; bits &= bits - 1)
		n++;
	return n;
}

/*
 * Split @left occurrences among @n words: while every word is short of its share, the sum
 * is short of @left. So no share is late, and an early one is followed by smaller ones.
 */
static uint64_t share(uint64_t left, unsigned int n)
{
	unsigned int log2 = 0;

	if (n < 2)
		return left;
	while (1u << log2 < n)
		log2++;
	left = add_saturated(left, n - 1) >> log2;
	return left ? left : 1;
}

static void slot_deadline(const struct vpmu_silicon *s, const struct vpmu_slot *slot,
			  struct vpmu_signal_words *left)
{
	const struct vpmu_recipe *r = &slot->recipe;
	unsigned int awake = awake_banks(s, r), i, b;
	uint64_t each = share(raw_left(s, slot), count_bits(awake) * count_bits(r->signals));
	uint64_t rest;

	for (rest = r->signals; rest; rest &= rest - 1) {
		i = first_of(rest);
		for (b = 0; b < VPMU_BANK_COUNT; b++) {
			uint64_t here = awake & VPMU_BANK_BIT(b) ? each : 1;

			if (r->banks & VPMU_BANK_BIT(b) && here < left->word[i][b])
				left->word[i][b] = here;
		}
	}
}

uint64_t vpmu_silicon_counting(const struct vpmu_silicon *s)
{
	uint64_t signals = 0;
	unsigned int i;

	for (i = 0; i < VPMU_SLOTS_MAX; i++)
		if (s->slot[i].used && s->slot[i].running)
			signals |= demanded(&s->slot[i].recipe);
	return signals;
}

static void send_demand(struct vpmu_silicon *s)
{
	uint64_t demand = 0;
	unsigned int i;

	for_each_used(s, i)
		demand |= demanded(&s->slot[i].recipe);
	if (demand == s->demand)
		return;
	s->demand = demand;
	if (s->ops.set_demand)
		s->ops.set_demand(s->cfg.ctx, demand);
}

/*
 * Deadlines are relative to the totals just read, so all of them are sent again, unless
 * there were and are none.
 */
static void send_deadlines(struct vpmu_silicon *s)
{
	uint64_t armed = 0, rest;
	unsigned int i;

	for_each_used(s, i) {
		const struct vpmu_slot *slot = &s->slot[i];

		if (slot->running && slot->next != VPMU_NEVER)
			armed |= slot->recipe.signals;
	}
	if (!armed && !s->armed)
		return;
	for (rest = armed | s->armed; rest; rest &= rest - 1)
		memset(s->left.word[first_of(rest)], 0xff, sizeof(s->left.word[0]));
	s->armed = armed;
	for_each_used(s, i) {
		const struct vpmu_slot *slot = &s->slot[i];

		if (slot->running && slot->next != VPMU_NEVER)
			slot_deadline(s, slot, &s->left);
	}
	s->ops.set_deadlines(s->cfg.ctx, &s->left);
}

static void report_wrapped(struct vpmu_silicon *s)
{
	uint32_t wrapped = s->wrapped;
	unsigned int i;

	s->wrapped = 0;
	for (i = 0; wrapped >> i; i++)
		if (wrapped >> i & 1 && s->cfg.overflow)
			s->cfg.overflow(s->cfg.owner, i);
}

void vpmu_silicon_commit(struct vpmu_silicon *s)
{
	unsigned int i;

	vpmu_assert(s->batch);
	if (s->batch == 1 && s->changed) {
		for_each_used(s, i)
			slot_settle(s, i);
		report_wrapped(s);
		send_demand(s);
		send_deadlines(s);
		s->changed = false;
	}
	s->batch--;
}

void vpmu_silicon_configure(struct vpmu_silicon *s, unsigned int slot,
			    const struct vpmu_recipe *recipe)
{
	struct vpmu_slot *p = &s->slot[slot];

	vpmu_assert(slot <= VPMU_SLOT_CLOCK);
	batch_open(s, s->demand | demanded(recipe));
	memset(p, 0, sizeof(*p));
	p->recipe = *recipe;
	p->used = true;
	p->next = VPMU_NEVER;
	s->wrapped &= ~(1u << slot);
	s->changed = true;
	vpmu_silicon_commit(s);
}

void vpmu_silicon_free(struct vpmu_silicon *s, unsigned int slot)
{
	vpmu_assert(slot <= VPMU_SLOT_CLOCK);
	batch_open(s, s->demand);
	memset(&s->slot[slot], 0, sizeof(s->slot[slot]));
	s->wrapped &= ~(1u << slot);
	s->changed = true;
	vpmu_silicon_commit(s);
}

void vpmu_silicon_start(struct vpmu_silicon *s, unsigned int slot)
{
	struct vpmu_slot *p = &s->slot[slot];

	vpmu_assert(slot <= VPMU_SLOT_CLOCK);
	if (!p->used || p->running)
		return;
	batch_open(s, s->demand);
	p->count -= raw_total(s, &p->recipe) >> p->recipe.shift;
	slot_topdown(s, p, true);
	p->running = true;
	if (p->next != VPMU_NEVER)
		s->changed = true;
	vpmu_silicon_commit(s);
}

void vpmu_silicon_stop(struct vpmu_silicon *s, unsigned int slot)
{
	struct vpmu_slot *p = &s->slot[slot];

	vpmu_assert(slot <= VPMU_SLOT_CLOCK);
	if (!p->running)
		return;
	batch_open(s, s->demand);
	p->count = slot_value(s, p);
	slot_topdown(s, p, false);
	p->running = false;
	if (p->next != VPMU_NEVER)
		s->changed = true;
	vpmu_silicon_commit(s);
}

uint64_t vpmu_silicon_read(struct vpmu_silicon *s, unsigned int slot)
{
	const struct vpmu_slot *p = &s->slot[slot];
	uint64_t value;

	vpmu_assert(slot <= VPMU_SLOT_CLOCK);
	batch_open(s, p->running ? p->recipe.signals : 0);
	value = slot_value(s, p);
	vpmu_silicon_commit(s);
	return value;
}

void vpmu_silicon_topdown(struct vpmu_silicon *s, unsigned int slot, uint64_t *classes)
{
	const struct vpmu_slot *p = &s->slot[slot];
	unsigned int i;

	vpmu_assert(slot <= VPMU_SLOT_CLOCK);
	batch_open(s, p->running ? demanded(&p->recipe) : 0);
	for (i = 0; i < VPMU_TOPDOWN; i++) {
		classes[i] = p->topdown[i];
		if (p->running && p->recipe.topdown)
			classes[i] += class_total(s, &p->recipe, i);
	}
	vpmu_silicon_commit(s);
}

void vpmu_silicon_arm(struct vpmu_silicon *s, unsigned int slot, uint64_t left,
		      uint64_t period)
{
	struct vpmu_slot *p = &s->slot[slot];

	vpmu_assert(slot <= VPMU_SLOT_CLOCK && left);
	batch_open(s, s->demand);
	slot_settle(s, slot);
	if (p->next != VPMU_NEVER || left != VPMU_NEVER)
		s->changed = true;
	p->next = add_saturated(slot_value(s, p), left);
	p->period = period;
	vpmu_silicon_commit(s);
}

uint64_t vpmu_silicon_left(struct vpmu_silicon *s, unsigned int slot)
{
	struct vpmu_slot *p = &s->slot[slot];
	uint64_t left = VPMU_NEVER;

	vpmu_assert(slot <= VPMU_SLOT_CLOCK);
	batch_open(s, s->demand);
	slot_settle(s, slot);
	if (p->next != VPMU_NEVER)
		left = p->next - slot_value(s, p);
	vpmu_silicon_commit(s);
	return left;
}

/* The clock counts the engine's cycles, or instructions where it has none. */
static struct vpmu_recipe clock_recipe(const struct vpmu_silicon *s)
{
	const uint64_t cycles = VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES);
	struct vpmu_recipe r;

	memset(&r, 0, sizeof(r));
	r.signals = s->cfg.supplied & cycles ? cycles
					     : VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS);
	r.banks = VPMU_BANKS_KERNEL | VPMU_BANKS_USER;
	r.quality = VPMU_QUALITY_DEFINED;
	return r;
}

uint64_t vpmu_silicon_clock(struct vpmu_silicon *s)
{
	struct vpmu_recipe r = clock_recipe(s);
	uint64_t now;

	batch_open(s, r.signals);
	now = raw_total(s, &r);
	vpmu_silicon_commit(s);
	return now;
}

void vpmu_silicon_hold_clock(struct vpmu_silicon *s, bool hold)
{
	struct vpmu_recipe r = clock_recipe(s);

	if (hold == s->slot[VPMU_SLOT_CLOCK].used)
		return;
	if (!hold) {
		vpmu_silicon_free(s, VPMU_SLOT_CLOCK);
		return;
	}
	vpmu_silicon_begin(s);
	vpmu_silicon_configure(s, VPMU_SLOT_CLOCK, &r);
	vpmu_silicon_start(s, VPMU_SLOT_CLOCK);
	vpmu_silicon_commit(s);
}

void vpmu_silicon_timer(struct vpmu_silicon *s, uint64_t left)
{
	vpmu_assert(s->slot[VPMU_SLOT_CLOCK].used || left == VPMU_NEVER);
	vpmu_silicon_arm(s, VPMU_SLOT_CLOCK, left, 0);
}

void vpmu_silicon_expire(struct vpmu_silicon *s)
{
	vpmu_assert(!s->batch);
	batch_open(s, s->demand);
	s->changed = true;
	vpmu_silicon_commit(s);
}

uint64_t vpmu_silicon_total(struct vpmu_silicon *s, enum vpmu_signal signal,
			    enum vpmu_bank bank)
{
	uint64_t bit = VPMU_SIGNAL_BIT(signal), total;

	if (!(s->cfg.supplied & bit))
		return s->offset.word[signal][bank];
	batch_open(s, bit);
	total = s->now.word[signal][bank];
	vpmu_silicon_commit(s);
	return total;
}

void vpmu_silicon_rebase(struct vpmu_silicon *s, enum vpmu_signal signal,
			 enum vpmu_bank bank, uint64_t total)
{
	vpmu_assert(next_used(s, 0) > VPMU_SLOT_CLOCK);
	s->offset.word[signal][bank] += total - vpmu_silicon_total(s, signal, bank);
	s->fresh &= ~VPMU_SIGNAL_BIT(signal);
}
