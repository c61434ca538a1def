// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The stream of what a modelled CPU executes. Most of it finds all where it was: a line
 * that is at the front (struct ua_front), a branch that goes where it was foreseen. Of
 * that only sums are kept here, which are booked when something takes time or the batch
 * is over; the rest goes the long way (memory.c, account.c). Both count the same.
 */
#include "predict.h"

#define UA_AT_ONCE 4096u /* words, so that sums have 32 bits and ua_settle() is exact */

struct ua_sums {
	uint32_t uops, load;      /* for ua_settle() */
	uint32_t heavy, loads, stores, lines;
};

/* Before anything that looks at the account. */
static UA_INLINE void ua_settle_sums(struct vpmu_uarch *u, struct ua_sums *s)
{
	ua_settle(u, s->uops, s->load);
	s->uops = 0;
	s->load = 0;
}

/* Of one bank. */
static void ua_book(struct vpmu_uarch *u, const struct ua_sums *s)
{
	bool slow = u->params->l1d_cycles > u->threshold;

	ua_settle(u, s->uops, s->load);
	ua_count(u, VPMU_UARCH_HEAVY, s->heavy);
	ua_count(u, VPMU_UARCH_LOADS, s->loads);
	ua_count(u, VPMU_UARCH_LOAD_L1, s->loads);
	ua_count(u, VPMU_UARCH_LOAD_SLOW, slow ? s->loads : 0);
	ua_count(u, VPMU_UARCH_STORES, s->stores);
	ua_count(u, VPMU_UARCH_L1I_HIT, s->lines);
}

/* ---- accesses ---- */

/* To one line, which is at the front? */
static UA_INLINE bool ua_quick_access(const struct vpmu_uarch *u, uint64_t word)
{
	const struct ua_memory *m = &u->memory;
	uint64_t linear = VPMU_UARCH_ADDRESS(word);

	return (linear & m->line_mask) <= m->room[word >> 3 & 7] &&
	       ua_at_front(&m->data, linear >> m->line_shift);
}

/* By an address that comes out of a load? Its value may not be there yet. */
static UA_INLINE bool ua_quick_chain(struct vpmu_uarch *u, struct ua_sums *s)
{
	struct ua_account *a = &u->account;
	uint32_t hit = u->params->l1d_cycles;
	uint64_t chain = s->load ? ua_now(a, s->load - 1) + hit : a->chain;

	if (chain <= ua_now(a, s->uops)) {
		s->load = s->uops + 1;
		return true;
	}
	if (a->waiting == UA_WAITS)
		return false;
	a->chain = chain + hit;
	s->load = 0;
	ua_wait_push(a, &(struct ua_wait){
		.done = a->chain, .uop = a->uops + s->uops, .level = VPMU_UARCH_AT_L1,
	});
	return true;
}

static UA_INLINE bool ua_quick_load(struct vpmu_uarch *u, struct ua_sums *s, uint64_t word)
{
	if (!(word & VPMU_UARCH_DEPENDENT))
		s->load = s->uops + 1;
	else if (!ua_quick_chain(u, s))
		return false;
	s->loads++;
	return true;
}

static UA_INLINE bool ua_quick_store(struct vpmu_uarch *u, struct ua_sums *s)
{
	struct ua_account *a = &u->account;
	uint64_t now = ua_now(a, s->uops);

	if (a->store[a->next_store] > now)
		return false;
	ua_leave(a, now, u->params->stores);
	s->stores++;
	return true;
}

static void ua_hit(struct vpmu_uarch *u, uint64_t word)
{
	u->last = (struct vpmu_uarch_access){
		.address = VPMU_UARCH_ADDRESS(word), .cycles = u->params->l1d_cycles,
		.level = VPMU_UARCH_AT_L1, .store = word & 2,
	};
}

/* ---- blocks ---- */

static UA_INLINE void ua_fetch(struct vpmu_uarch *u, struct ua_sums *s, uint64_t linear,
			       uint32_t bytes)
{
	struct ua_memory *m = &u->memory;
	uint32_t shift = m->line_shift;
	uint64_t line = linear >> shift, end = (linear + bytes - 1) >> shift;

	line += line == m->fetched;
	for (; line <= end; line++) {
		m->fetched = line;
		if (ua_at_front(&m->code, line)) {
			s->lines++;
		} else {
			ua_settle_sums(u, s);
			ua_fetch_line(u, line << shift);
		}
	}
}

/* A branch did not go where it was foreseen to. */
static void ua_turned(struct vpmu_uarch *u, enum vpmu_uarch_count wrong)
{
	const struct vpmu_uarch_params *p = u->params;

	ua_count(u, wrong, 1);
	if (wrong == VPMU_UARCH_RESTEER)
		ua_stall(u, UA_FETCH, p->resteer_cycles);
	else
		ua_stall(u, UA_MISPREDICT, p->mispredict_cycles);
}

/* What runs next is known: so is where the last branch went. */
static UA_INLINE void ua_arrive(struct vpmu_uarch *u, struct ua_sums *s, uint64_t address)
{
	enum vpmu_uarch_branch kind = u->more >> 24 & 7;
	enum vpmu_uarch_count wrong;

	if (kind == VPMU_UARCH_FAR) {
		ua_settle_sums(u, s);
		ua_drain(u);
		ua_stall(u, UA_DRAIN, u->params->clear_cycles);
		return;
	}
	wrong = ua_branch(&u->predict, kind, u->begin + (u->more >> 10 & 16383), address);
	if (wrong != VPMU_UARCH_COUNTS) {
		ua_settle_sums(u, s);
		ua_turned(u, wrong);
	}
}

/* What few blocks have: another bank than the last one, more uops than instructions. */
#define UA_RARE (VPMU_UARCH_B_BANK(3) | VPMU_UARCH_B_UOPS(4095))

static void ua_rare(struct vpmu_uarch *u, struct ua_sums *s, uint64_t more)
{
	uint32_t bank = more >> 27 & 3, heavy = more >> 32 & 4095;

	if (bank != u->bank) {
		ua_book(u, s);
		*s = (struct ua_sums){ 0 };
		u->bank = bank;
	}
	s->uops += heavy;
	s->heavy += heavy;
}

/* What has waited for longer than the window allows is waited for. */
static UA_INLINE void ua_retire(struct vpmu_uarch *u, struct ua_sums *s)
{
	struct ua_account *a = &u->account;

	while (a->waiting) {
		const struct ua_wait *w = &a->wait[a->first];

		if (w->done <= ua_now(a, s->uops)) {
			ua_wait_pop(a);
		} else if (a->uops + s->uops - w->uop < u->params->window) {
			break;
		} else {
			ua_settle_sums(u, s);
			ua_wait_first(u);
		}
	}
}

static UA_INLINE void ua_block(struct vpmu_uarch *u, struct ua_sums *s, uint64_t begin,
			       uint64_t more)
{
	ua_arrive(u, s, begin);
	u->begin = begin;
	u->more = more;
	if ((more & UA_RARE) != VPMU_UARCH_B_BANK(u->bank))
		ua_rare(u, s, more);
	ua_fetch(u, s, begin, more >> 10 & 16383);
	s->uops += more & 1023;
	ua_retire(u, s);
	if (more & VPMU_UARCH_B_DIVIDES(255)) {
		ua_settle_sums(u, s);
		ua_stall(u, UA_DIVIDE, (more >> 44 & 255) * u->params->divide_cycles);
	}
}

/* ---- the stream ---- */

/* What is no block, and not quick. */
static void ua_word(struct vpmu_uarch *u, uint64_t word)
{
	uint64_t address = VPMU_UARCH_ADDRESS(word);

	switch ((enum vpmu_uarch_kind)(word & VPMU_UARCH_KIND)) {
	case VPMU_UARCH_LOAD:
		ua_access(u, word, true, false);
		break;
	case VPMU_UARCH_STORE:
		ua_access(u, word, false, true);
		break;
	case VPMU_UARCH_MODIFY:
		ua_access(u, word, true, true);
		break;
	case VPMU_UARCH_SOFT_PREFETCH:
		ua_soft_prefetch(u, address);
		break;
	case VPMU_UARCH_EVENT:
		ua_count(u, VPMU_UARCH_CLEARS, 1);
		ua_stall(u, UA_CLEAR, u->params->clear_cycles);
		break;
	case VPMU_UARCH_UNMAP:
		ua_unmap(u, address, word & VPMU_UARCH_BYTES(0));
		break;
	case VPMU_UARCH_SERIALIZE:
		ua_drain(u);
		break;
	case VPMU_UARCH_BLOCK:
		break;
	}
}

/* What changes nothing but sums. */
static UA_INLINE bool ua_quick(struct vpmu_uarch *u, struct ua_sums *s, uint64_t word)
{
	uint32_t kind = word & VPMU_UARCH_KIND;

	if (kind > VPMU_UARCH_MODIFY || !ua_quick_access(u, word))
		return false;
	if (kind == VPMU_UARCH_LOAD)
		return ua_quick_load(u, s, word);
	if (kind == VPMU_UARCH_STORE)
		return ua_quick_store(u, s);
	return !(word & VPMU_UARCH_DEPENDENT) && ua_quick_store(u, s) &&
	       ua_quick_load(u, s, word);
}

/* One loop, so that what is inline is there once. */
static void ua_batch(struct vpmu_uarch *u, const uint64_t *words, const uint64_t *end)
{
	struct ua_sums s = { 0 };
	uint64_t word, begin, hit = 0;

	begin = u->half_begin;
	if (u->half) {
		u->half = false;
		goto half;
	}
	while (words < end) {
		word = *words++;
		if ((word & VPMU_UARCH_KIND) == VPMU_UARCH_BLOCK) {
			begin = VPMU_UARCH_ADDRESS(word);
			if (words == end) {
				u->half_begin = begin;
				u->half = true;
				break;
			}
half:
			ua_block(u, &s, begin, *words++);
		} else if (ua_quick(u, &s, word)) {
			hit = word;
		} else {
			if ((word & VPMU_UARCH_KIND) <= VPMU_UARCH_MODIFY)
				hit = 0;
			if ((word & VPMU_UARCH_KIND) == VPMU_UARCH_EVENT) {
				ua_arrive(u, &s, VPMU_UARCH_ADDRESS(word));
				u->more = 0;
			}
			ua_settle_sums(u, &s);
			ua_word(u, word);
		}
	}
	ua_book(u, &s);
	if (hit)
		ua_hit(u, hit);
}

void vpmu_uarch_run(struct vpmu_uarch *u, const uint64_t *words, size_t n)
{
	size_t now;

	for (; n; n -= now, words += now) {
		now = n < UA_AT_ONCE ? n : UA_AT_ONCE;
		ua_batch(u, words, words + now);
	}
}
