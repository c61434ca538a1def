// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Branch prediction: the direction from a branch's own habit or from what came before
 * it, whichever has been right more often there; the target from the last one, for
 * indirect branches from the path that led there; returns from a stack.
 *
 * Source: McFarling, "Combining branch predictors" (1993).
 */
#include "uarch_internal.h"

#define UA_PATH_LESS 2u	/* of btb_bits: the table of paths is so much smaller */

static uint32_t ua_directions(const struct vpmu_uarch_params *p)
{
	return 1u << p->history_bits;
}

size_t ua_predict_words(const struct vpmu_uarch_params *p)
{
	size_t targets = ((size_t)1 << p->btb_bits) + ((size_t)1 << (p->btb_bits - UA_PATH_LESS));

	return 3 * ua_directions(p) / sizeof(uint64_t) +
	       targets * sizeof(struct ua_target) / sizeof(uint64_t);
}

uint64_t *ua_predict_init(struct vpmu_uarch *u, uint64_t *words)
{
	const struct vpmu_uarch_params *p = u->params;
	struct ua_predict *b = &u->predict;
	uint64_t *end = words + ua_predict_words(p);
	size_t n = ua_directions(p);

	memset(words, 0, ua_predict_words(p) * sizeof(*words));
	b->bimodal = (uint8_t *)words;
	b->global = b->bimodal + n;
	b->choice = b->global + n;
	b->btb = (struct ua_target *)(words + 3 * n / sizeof(uint64_t));
	b->path = b->btb + ((size_t)1 << p->btb_bits);
	memset(b->bimodal, 1, 2 * n); /* weakly not taken */
	memset(b->choice, 1, n);      /* weakly by habit */
	return end;
}

/* Instructions are at odd addresses too; far ones must not fall together. */
static uint32_t ua_hash(uint64_t a)
{
	a *= 0x9e3779b97f4a7c15ull;
	return (uint32_t)(a >> 32);
}

static void ua_learn(uint8_t *counter, bool up)
{
	if (up)
		*counter += *counter < 3;
	else
		*counter -= *counter > 0;
}

/* A conditional branch: was its direction predicted? */
static bool ua_direction(struct vpmu_uarch *u, uint64_t next, bool taken)
{
	struct ua_predict *b = &u->predict;
	uint32_t mask = ua_directions(u->params) - 1, hash = ua_hash(next);
	uint8_t *habit = &b->bimodal[hash & mask];
	uint8_t *global = &b->global[(hash ^ (uint32_t)b->history) & mask];
	uint8_t *choice = &b->choice[hash & mask];
	bool by_habit = *habit > 1, by_global = *global > 1;
	bool right = (*choice > 1 ? by_global : by_habit) == taken;

	if (by_habit != by_global)
		ua_learn(choice, by_global == taken);
	ua_learn(habit, taken);
	ua_learn(global, taken);
	b->history = b->history << 1 | taken;
	return right;
}

/* Did the BTB know the target? It does from now on. */
static bool ua_known(struct vpmu_uarch *u, uint64_t next, uint64_t to)
{
	struct ua_target *t = &u->predict.btb[ua_hash(next) & ((1u << u->params->btb_bits) - 1)];
	bool known = t->from == next && t->to == to;

	t->from = next;
	t->to = to;
	return known;
}

static bool ua_indirect(struct vpmu_uarch *u, uint64_t next, uint64_t to)
{
	struct ua_predict *b = &u->predict;
	uint32_t mask = (1u << (u->params->btb_bits - UA_PATH_LESS)) - 1;
	uint64_t who = next ^ b->taken;
	struct ua_target *t = &b->path[ua_hash(who) & mask];
	bool by_path = t->from == who, known = ua_known(u, next, to);
	bool right = by_path ? t->to == to : known;

	t->from = who;
	t->to = to;
	return right;
}

static void ua_mispredicted(struct vpmu_uarch *u, enum vpmu_uarch_count which)
{
	ua_count(u, which, 1);
	ua_stall(u, UA_MISPREDICT, u->params->mispredict_cycles);
}

void ua_branch(struct vpmu_uarch *u, enum vpmu_uarch_branch kind, uint64_t next, uint64_t to)
{
	struct ua_predict *b = &u->predict;
	uint32_t depth_mask = u->params->returns - 1u;
	bool taken = kind != VPMU_UARCH_JCC || to != next;

	switch (kind) {
	case VPMU_UARCH_JCC:
		if (!ua_direction(u, next, taken))
			ua_mispredicted(u, taken ? VPMU_UARCH_MISP_TAKEN :
						   VPMU_UARCH_MISP_NOT_TAKEN);
		else if (taken && !ua_known(u, next, to))
			goto resteer;
		break;
	case VPMU_UARCH_CALL:
	case VPMU_UARCH_JMP:
		if (kind == VPMU_UARCH_CALL)
			b->returns[b->top++ & depth_mask] = next;
		if (!ua_known(u, next, to))
			goto resteer;
		break;
	case VPMU_UARCH_CALL_INDIRECT:
	case VPMU_UARCH_JMP_INDIRECT:
		if (kind == VPMU_UARCH_CALL_INDIRECT)
			b->returns[b->top++ & depth_mask] = next;
		if (!ua_indirect(u, next, to))
			ua_mispredicted(u, kind == VPMU_UARCH_JMP_INDIRECT ?
					   VPMU_UARCH_MISP_JMP : VPMU_UARCH_MISP_CALL);
		break;
	case VPMU_UARCH_RET:
		if (b->returns[--b->top & depth_mask] != to)
			ua_mispredicted(u, VPMU_UARCH_MISP_RET);
		break;
	case VPMU_UARCH_FAR:
		ua_drain(u);
		ua_stall(u, UA_DRAIN, u->params->clear_cycles);
		return;
	case VPMU_UARCH_NO_BRANCH:
		return;
	}
	if (taken)
		b->taken = b->taken << 5 ^ to;
	return;
resteer:
	ua_count(u, VPMU_UARCH_RESTEER, 1);
	ua_stall(u, UA_FETCH, u->params->resteer_cycles);
	b->taken = b->taken << 5 ^ to;
}
