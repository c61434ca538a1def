// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The account of cycles, in the manner of interval analysis: uops are issued at full
 * width until something blocks them, and each unused slot is charged to the cause. A load
 * that misses blocks nothing until the window after it is full, so independent misses
 * overlap.
 *
 * Source: Eyerman, Eeckhout, Karkhanis, Smith, "A mechanistic performance model for
 * superscalar out-of-order processors" (2009); Yasin, "A top-down method" (2014).
 */
#include "uarch_internal.h"

/* Cycles in which nothing is issued; @why says what the slots are charged to. */
void ua_stall(struct vpmu_uarch *u, enum ua_why why, uint64_t cycles)
{
	/* Class of the slots, its part, cause of the stalled cycles; COUNTS: none */
	static const struct {
		uint8_t top, part, stalled;
	} book[] = {
		[UA_MISPREDICT] = { VPMU_UARCH_BAD_SPECULATION, VPMU_UARCH_MISPREDICT,
				    VPMU_UARCH_RECOVERY },
		[UA_CLEAR] = { VPMU_UARCH_BAD_SPECULATION, VPMU_UARCH_COUNTS,
			       VPMU_UARCH_RECOVERY },
		[UA_FETCH] = { VPMU_UARCH_FRONTEND_BOUND, VPMU_UARCH_FETCH_LATENCY,
			       VPMU_UARCH_STALL_FETCH },
		[UA_MEMORY] = { VPMU_UARCH_BACKEND_BOUND, VPMU_UARCH_MEMORY_BOUND,
				VPMU_UARCH_COUNTS },
		[UA_STORE] = { VPMU_UARCH_BACKEND_BOUND, VPMU_UARCH_MEMORY_BOUND,
			       VPMU_UARCH_STALL_STORES },
		[UA_DIVIDE] = { VPMU_UARCH_BACKEND_BOUND, VPMU_UARCH_COUNTS,
				VPMU_UARCH_STALL_DIVIDER },
		[UA_DRAIN] = { VPMU_UARCH_BACKEND_BOUND, VPMU_UARCH_COUNTS,
			       VPMU_UARCH_COUNTS },
	};
	uint64_t slots = cycles * u->params->width;

	u->account.now += cycles;
	ua_count(u, VPMU_UARCH_CYCLES, cycles);
	ua_count(u, VPMU_UARCH_STALLS, cycles);
	ua_count(u, book[why].top, slots);
	if (book[why].part != VPMU_UARCH_COUNTS)
		ua_count(u, book[why].part, slots);
	if (book[why].stalled != VPMU_UARCH_COUNTS)
		ua_count(u, book[why].stalled, cycles);
}

void ua_wait_first(struct vpmu_uarch *u)
{
	struct ua_account *a = &u->account;
	const struct ua_wait *w = &a->wait[a->first];

	if (w->done > a->now) {
		uint64_t cycles = w->done - a->now;

		ua_stall(u, UA_MEMORY, cycles);
		if (w->level != VPMU_UARCH_AT_L1)
			ua_count(u, VPMU_UARCH_STALL_L1D, cycles);
		if (w->level >= VPMU_UARCH_AT_LLC)
			ua_count(u, VPMU_UARCH_STALL_L2, cycles);
		if (w->level >= VPMU_UARCH_AT_DRAM)
			ua_count(u, VPMU_UARCH_STALL_LLC, cycles);
	}
	ua_wait_pop(a);
}

/* Rounded up, so that the product is exact for as many uops as are settled at once. */
void ua_account_init(struct vpmu_uarch *u)
{
	u->account.per_slot = UINT32_MAX / u->params->width + 1u;
}

void ua_settle(struct vpmu_uarch *u, uint32_t uops, uint32_t load)
{
	struct ua_account *a = &u->account;
	uint32_t cycles;

	if (load)
		a->chain = ua_now(a, load - 1) + u->params->l1d_cycles;
	a->uops += uops;
	a->part += uops;
	cycles = (uint32_t)(a->part * a->per_slot >> 32);
	a->part -= cycles * u->params->width;
	a->now += cycles;
	ua_count(u, VPMU_UARCH_CYCLES, cycles);
	ua_count(u, VPMU_UARCH_RETIRING, uops);
}

/*
 * Returns the time at which a line that is requested at @start arrives in a fill buffer.
 */
static UA_INLINE uint64_t ua_fill(struct vpmu_uarch *u, uint64_t start, enum vpmu_uarch_level level,
			uint32_t walk)
{
	struct ua_account *a = &u->account;
	const struct vpmu_uarch_params *p = u->params;
	uint64_t *buffer = &a->fill[a->next_fill], done;

	if (*buffer > start)
		start = *buffer;
	if (++a->next_fill == p->fills)
		a->next_fill = 0;
	start += walk;
	switch (level) {
	case VPMU_UARCH_AT_L2:
		done = start + p->l2_cycles;
		break;
	case VPMU_UARCH_AT_LLC:
		done = start + p->llc_cycles;
		break;
	default:
		if (a->memory_free > start)
			start = a->memory_free;
		a->memory_free = start + p->line_cycles;
		done = start + p->dram_cycles;
	}
	*buffer = done;
	return done;
}

/* Returns the time at which a line in flight arrives, or 0 if it is not in flight. */
static UA_INLINE uint64_t ua_on_its_way(const struct ua_account *a, uint64_t line)
{
	uint32_t i, at;

	for (i = 0; i < a->waiting; i++) {
		at = (a->first + i) % UA_WAITS;
		if (a->wait[at].line == line && a->wait[at].level != VPMU_UARCH_AT_L1 &&
		    a->wait[at].done > a->now)
			return a->wait[at].done;
	}
	return 0;
}

static UA_INLINE uint64_t ua_prefetched(const struct ua_account *a, uint64_t line)
{
	uint32_t i;

	for (i = 0; i < UA_COMING; i++)
		if (a->coming[i].line == line + 1 && a->coming[i].done > a->now)
			return a->coming[i].done;
	return 0;
}

/* A load that is later than a hit blocks the window once that is full. */
static UA_INLINE void ua_wait_for(struct vpmu_uarch *u, uint64_t line, enum vpmu_uarch_level level,
			uint64_t done)
{
	struct ua_account *a = &u->account;

	if (a->waiting == UA_WAITS)
		ua_wait_first(u);
	if (level != VPMU_UARCH_AT_L1)
		a->coming_lines |= 1ull << (line & 63);
	ua_wait_push(a, &(struct ua_wait){
		.done = done, .uop = a->uops, .line = line, .level = level,
	});
}

uint32_t ua_load(struct vpmu_uarch *u, uint64_t line, enum vpmu_uarch_level *level,
		 uint32_t walk, bool dependent)
{
	struct ua_account *a = &u->account;
	uint64_t start = dependent && a->chain > a->now ? a->chain : a->now;
	uint64_t hit = start + walk + u->params->l1d_cycles, done = hit, coming = 0;

	if (*level != VPMU_UARCH_AT_L1) {
		done = ua_fill(u, start, *level, walk);
		if (*level == VPMU_UARCH_AT_L2)
			coming = ua_prefetched(a, line);
	} else if (a->coming_lines >> (line & 63) & 1) {
		coming = ua_on_its_way(a, line);
		if (coming)
			*level = VPMU_UARCH_AT_FB;
	}
	if (coming > done)
		done = coming;
	a->chain = done;
	if (*level != VPMU_UARCH_AT_FB && done > a->now + u->params->l1d_cycles)
		ua_wait_for(u, line, *level, done);
	return (uint32_t)(done - start);
}

void ua_store(struct vpmu_uarch *u, enum vpmu_uarch_level level)
{
	struct ua_account *a = &u->account;
	uint64_t entry = ua_room(a, u->params->stores), done = a->now;

	if (entry > a->now)
		ua_stall(u, UA_STORE, entry - a->now);
	if (level != VPMU_UARCH_AT_L1)
		done = ua_fill(u, a->now, level, 0);
	ua_leave(a, done);
}

void ua_coming(struct vpmu_uarch *u, uint64_t line, bool dram)
{
	struct ua_account *a = &u->account;
	uint64_t start = a->now;

	if (dram) {
		if (a->memory_free > start)
			start = a->memory_free;
		a->memory_free = start + u->params->line_cycles;
		start += u->params->dram_cycles;
	} else {
		start += u->params->llc_cycles;
	}
	a->coming[a->next_coming].line = line + 1;
	a->coming[a->next_coming].done = start;
	a->next_coming = (a->next_coming + 1) % UA_COMING;
}

void ua_drain(struct vpmu_uarch *u)
{
	struct ua_account *a = &u->account;

	while (a->waiting)
		ua_wait_first(u);
	if (a->chain > a->now)
		ua_stall(u, UA_DRAIN, a->chain - a->now);
	if (a->store_last > a->now)
		ua_stall(u, UA_STORE, a->store_last - a->now);
}
