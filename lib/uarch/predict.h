/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Branch prediction. The direction comes from a branch's own habit or from the history
 * before it, whichever has been right more often there; the target from the last one, for
 * indirect branches from the path that led there; returns from a stack. All of it is
 * inline, as every block ends in a branch.
 *
 * Source: McFarling, "Combining branch predictors" (1993).
 */
#ifndef VPMU_UARCH_PREDICT_H
#define VPMU_UARCH_PREDICT_H

#include "uarch_internal.h"

#define UA_PATH_LESS 2u	/* bits of btb_bits by which the table of paths is smaller */

/* Instructions have odd addresses too, and distant ones must not coincide. */
static inline uint32_t ua_hash(uint64_t a)
{
	a *= 0x9e3779b97f4a7c15ull;
	return (uint32_t)(a >> 32);
}

/*
 * The state of a conditional branch: its own habit, and the choice between habit and
 * history; and the prediction by history. All are counters from 0 to 3.
 */
#define UA_OWN(habit, choice)	((habit) | (choice) << 2)
#define UA_LEARN(own, global, taken) ((own) | (global) << 4 | (taken) << 6)

/* A conditional branch: was its direction predicted? */
static inline bool ua_direction(struct ua_predict *b, uint32_t hash, bool taken)
{
	uint8_t *own = &b->own[hash & b->mask];
	uint8_t *global = &b->global[(hash ^ (uint32_t)b->history) & b->mask];
	uint32_t learnt = b->learn[UA_LEARN(*own, *global, (uint32_t)taken)];

	*own = learnt & 15;
	*global = learnt >> 4 & 3;
	b->history = b->history << 1 | taken;
	return learnt >> 6;
}

/* Did the BTB know the target? It does from now on. */
static inline bool ua_known(struct ua_predict *b, uint32_t hash, uint64_t next, uint64_t to)
{
	struct ua_target *t = &b->btb[hash & b->btb_mask];

	if (UA_MOSTLY(t->from == next && t->to == to))
		return true;
	t->from = next;
	t->to = to;
	return false;
}

static inline bool ua_indirect(struct ua_predict *b, uint32_t hash, uint64_t next, uint64_t to)
{
	uint64_t who = next ^ b->taken;
	struct ua_target *t = &b->path[ua_hash(who) & b->btb_mask >> UA_PATH_LESS];
	bool by_path = t->from == who, known = ua_known(b, hash, next, to);
	bool right = by_path ? t->to == to : known;

	t->from = who;
	t->to = to;
	return right;
}

/*
 * The branch at the end of @from has gone to @to. Returns the count that it adds to, and
 * which costs time (CLEARS: it is never predicted); or VPMU_UARCH_COUNTS: it was
 * predicted.
 */
static UA_INLINE enum vpmu_uarch_count ua_branch(struct ua_predict *b,
						 const struct ua_last *from, uint64_t to)
{
	enum vpmu_uarch_branch kind = (enum vpmu_uarch_branch)from->branch;
	uint32_t hash = from->hash;
	uint64_t next = from->next;
	enum vpmu_uarch_count wrong = VPMU_UARCH_COUNTS;
	bool taken = kind != VPMU_UARCH_JCC || to != next;

	switch (kind) {
	case VPMU_UARCH_JCC:
		if (UA_RARELY(!ua_direction(b, hash, taken)))
			wrong = taken ? VPMU_UARCH_MISP_TAKEN : VPMU_UARCH_MISP_NOT_TAKEN;
		else if (taken && !ua_known(b, hash, next, to))
			wrong = VPMU_UARCH_RESTEER;
		if (!taken)
			return wrong;
		break;
	case VPMU_UARCH_CALL:
	case VPMU_UARCH_JMP:
		if (kind == VPMU_UARCH_CALL)
			b->returns[b->top++ & b->depth_mask] = next;
		if (!ua_known(b, hash, next, to))
			wrong = VPMU_UARCH_RESTEER;
		break;
	case VPMU_UARCH_CALL_INDIRECT:
		b->returns[b->top++ & b->depth_mask] = next;
		if (!ua_indirect(b, hash, next, to))
			wrong = VPMU_UARCH_MISP_CALL;
		break;
	case VPMU_UARCH_JMP_INDIRECT:
		if (!ua_indirect(b, hash, next, to))
			wrong = VPMU_UARCH_MISP_JMP;
		break;
	case VPMU_UARCH_RET:
		if (UA_RARELY(b->returns[--b->top & b->depth_mask] != to))
			wrong = VPMU_UARCH_MISP_RET;
		break;
	case VPMU_UARCH_FAR:
		return VPMU_UARCH_CLEARS;
	case VPMU_UARCH_NO_BRANCH:
		return wrong;
	}
	b->taken = b->taken << 5 ^ to;
	return wrong;
}

#endif /* VPMU_UARCH_PREDICT_H */
