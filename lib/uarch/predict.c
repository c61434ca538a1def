// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The branch predictor's tables, and the transitions of its counters; predict.h uses
 * them.
 */
#include "predict.h"

static uint32_t ua_directions(const struct vpmu_uarch_params *p)
{
	return 1u << p->history_bits;
}

size_t ua_predict_words(const struct vpmu_uarch_params *p)
{
	size_t targets = ((size_t)1 << p->btb_bits) + ((size_t)1 << (p->btb_bits - UA_PATH_LESS));

	return (size_t)2 * ua_directions(p) / sizeof(uint64_t) +
	       targets * sizeof(struct ua_target) / sizeof(uint64_t);
}

static uint32_t ua_step(uint32_t counter, bool up)
{
	return up ? counter + (counter < 3) : counter - (counter > 0);
}

/* Tabulate each state's successor by outcome, and whether the outcome was predicted. */
static void ua_learn_init(struct ua_predict *b)
{
	uint32_t i;

	for (i = 0; i < sizeof(b->learn); i++) {
		uint32_t habit = i & 3, choice = i >> 2 & 3, global = i >> 4 & 3;
		bool taken = i >> 6, by_habit = habit > 1, by_global = global > 1;
		bool right = (choice > 1 ? by_global : by_habit) == taken;

		if (by_habit != by_global)
			choice = ua_step(choice, by_global == taken);
		b->learn[i] = (uint8_t)UA_LEARN(UA_OWN(ua_step(habit, taken), choice),
						 ua_step(global, taken), (uint32_t)right);
	}
}

uint64_t *ua_predict_init(struct vpmu_uarch *u, uint64_t *words)
{
	const struct vpmu_uarch_params *p = u->params;
	struct ua_predict *b = &u->predict;
	uint64_t *end = words + ua_predict_words(p);
	size_t n = ua_directions(p);

	memset(words, 0, ua_predict_words(p) * sizeof(*words));
	ua_learn_init(b);
	b->mask = ua_directions(p) - 1;
	b->btb_mask = (1u << p->btb_bits) - 1;
	b->depth_mask = p->returns - 1u;
	b->own = (uint8_t *)words;
	b->global = b->own + n;
	b->btb = (struct ua_target *)(words + 2 * n / sizeof(uint64_t));
	b->path = b->btb + ((size_t)1 << p->btb_bits);
	memset(b->own, UA_OWN(1, 1), n); /* weakly not taken, weakly preferring habit */
	memset(b->global, 1, n);
	return end;
}
