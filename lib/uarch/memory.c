// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Translation and caches. Caches are looked up by physical address; a level is filled
 * from the next one at once, and what that costs is account.c's. No level includes
 * another; lines that are written back cost nothing.
 */
#include "uarch_internal.h"

#define UA_PAGE_SHIFT	12u
#define UA_IN_PAGE	((1ull << UA_PAGE_SHIFT) - 1)

size_t ua_memory_words(const struct vpmu_uarch_params *p, bool llc)
{
	return ua_array_words(&p->l1i, false) + ua_array_words(&p->l1d, false) +
	       ua_array_words(&p->l2, false) + ua_array_words(&p->itlb, true) +
	       ua_array_words(&p->dtlb, true) + ua_array_words(&p->stlb, true) +
	       (llc ? ua_array_words(&p->llc, false) : 0);
}

uint64_t *ua_memory_init(struct vpmu_uarch *u, struct vpmu_uarch_llc *llc, uint64_t *words)
{
	const struct vpmu_uarch_params *p = u->params;
	struct ua_memory *m = &u->memory;

	words = ua_array_init(&m->l1i, &p->l1i, false, words);
	words = ua_array_init(&m->l1d, &p->l1d, false, words);
	words = ua_array_init(&m->l2, &p->l2, false, words);
	words = ua_array_init(&m->itlb, &p->itlb, true, words);
	words = ua_array_init(&m->dtlb, &p->dtlb, true, words);
	words = ua_array_init(&m->stlb, &p->stlb, true, words);
	m->llc = llc ? llc : &m->own;
	if (!llc)
		words = ua_array_init(&m->own.array, &p->llc, false, words);
	while (1u << m->line_shift < p->l1d.unit_bytes)
		m->line_shift++;
	m->line_mask = p->l1d.unit_bytes - 1u;
	return words;
}

/* ---- translation ---- */

static const uint8_t ua_shifts[] = { 12, 21, 30 };

/* Translations of all sizes share an array; the size is part of the key, above what
 * says which set. */
#define UA_KEY_SIZE	56

static uint64_t ua_page_key(uint64_t linear, uint32_t size)
{
	return linear >> ua_shifts[size] | (uint64_t)size << UA_KEY_SIZE;
}

static bool ua_tlb_find(struct ua_array *tlb, uint64_t linear, uint64_t *key, uint64_t *base)
{
	uint32_t size, n;

	/* No two sizes have the same address, so the order makes no difference. */
	*key = ua_page_key(linear, tlb->size);
	if (ua_array_front(tlb, *key, base))
		return true;
	for (n = 0; n < 3; n++) {
		size = (tlb->size + n) % 3;
		*key = ua_page_key(linear, size);
		if (ua_array_find(tlb, *key, base, NULL)) {
			tlb->size = (uint8_t)size;
			return true;
		}
	}
	return false;
}

struct ua_place {
	uint64_t physical;
	uint8_t tlb;          /* 0 first level, 1 second level, 2 walked */
	uint32_t cycles;      /* that it took beyond the first level */
};

static struct ua_place ua_translate(struct vpmu_uarch *u, struct ua_array *first,
				    uint64_t linear)
{
	struct ua_memory *m = &u->memory;
	struct ua_place place = { 0 };
	uint64_t key, base;
	uint8_t shift = UA_PAGE_SHIFT;
	uint32_t size;

	if (ua_tlb_find(first, linear, &key, &base))
		goto out;
	place.cycles = u->params->stlb_cycles;
	if (ua_tlb_find(&m->stlb, linear, &key, &base)) {
		place.tlb = 1;
	} else {
		place.tlb = 2;
		place.cycles += u->params->walk_cycles;
		base = u->translate ? u->translate(u->ctx, linear, &shift) : linear;
		size = shift >= 30 ? 2 : shift >= 21 ? 1 : 0;
		base &= ~((1ull << ua_shifts[size]) - 1);
		key = ua_page_key(linear, size);
		ua_array_put(&m->stlb, key, base, false);
	}
	ua_array_put(first, key, base, false);
out:
	place.physical = base | (linear & ((1ull << ua_shifts[key >> UA_KEY_SIZE]) - 1));
	return place;
}

/* The page that was translated last is the most recent one, so nothing would move. */
static struct ua_place ua_data_place(struct vpmu_uarch *u, uint64_t linear)
{
	struct ua_memory *m = &u->memory;
	struct ua_place place = { .physical = m->data_physical | (linear & UA_IN_PAGE) };

	if (m->data_page == (linear >> UA_PAGE_SHIFT) + 1)
		return place;
	place = ua_translate(u, &m->dtlb, linear);
	m->data_page = (linear >> UA_PAGE_SHIFT) + 1;
	m->data_physical = place.physical & ~UA_IN_PAGE;
	return place;
}

void ua_unmap(struct vpmu_uarch *u, uint64_t linear, bool all)
{
	struct ua_array *const tlb[] = { &u->memory.itlb, &u->memory.dtlb, &u->memory.stlb };
	uint32_t i, size;

	for (i = 0; i < 3; i++) {
		if (all)
			ua_array_clear(tlb[i]);
		for (size = 0; size < 3 && !all; size++)
			ua_array_drop(tlb[i], ua_page_key(linear, size));
	}
	u->memory.fetched = 0;
	u->memory.code_page = 0;
	u->memory.data_page = 0;
}

/* ---- the prefetcher: streams of lines within a page, into L2 ---- */

static void ua_prefetch(struct vpmu_uarch *u, uint64_t line)
{
	struct ua_memory *m = &u->memory;
	bool dram;

	if (ua_array_has(&m->l2, line))
		return;
	dram = !ua_array_find(&m->llc->array, line, NULL, NULL);
	if (dram)
		ua_array_put(&m->llc->array, line, 0, false);
	ua_array_put(&m->l2, line, 0, true);
	ua_count(u, VPMU_UARCH_PREFETCH, 1);
	ua_coming(u, line, dram);
}

static struct ua_stream *ua_stream_of(struct ua_memory *m, uint64_t page, uint8_t at)
{
	struct ua_stream *s, *oldest = m->stream;

	for (s = m->stream; s < m->stream + UA_STREAMS; s++) {
		if (s->page == page + 1)
			return s;
		if (s->used < oldest->used)
			oldest = s;
	}
	*oldest = (struct ua_stream){ .page = page + 1, .last = at };
	return oldest;
}

/* Data has been asked of L2. */
static void ua_train(struct vpmu_uarch *u, uint64_t line)
{
	struct ua_memory *m = &u->memory;
	uint32_t shift = UA_PAGE_SHIFT - m->line_shift, per_page = 1u << shift, n;
	uint8_t at = line & (per_page - 1);
	struct ua_stream *s;
	int step, next;

	if (!u->params->prefetch)
		return;
	s = ua_stream_of(m, line >> shift, at);
	s->used = ++m->streams_used;
	step = at > s->last ? 1 : at < s->last ? -1 : 0;
	if (!step)
		return;
	if (step != s->step) {
		s->step = (int8_t)step;
		s->steady = 0;
		s->ahead = at;
	} else if (s->steady < 2) {
		s->steady++;
	}
	s->last = at;
	if (!s->steady)
		return;
	if ((s->ahead - at) * step < 0)
		s->ahead = at;
	for (n = 0; n < u->params->prefetch; n++) {
		next = s->ahead + step;
		if (next < 0 || next >= (int)per_page ||
		    (next - at) * step > u->params->prefetch)
			break;
		s->ahead = (uint8_t)next;
		ua_prefetch(u, line - at + (uint64_t)next);
	}
}

/* ---- caches ---- */

enum ua_use { UA_READ, UA_WRITE, UA_CODE };

/* A line that the first level has not: where it is found. It is in L2 after that. */
static enum vpmu_uarch_level ua_beyond(struct vpmu_uarch *u, uint64_t line, enum ua_use use)
{
	static const uint8_t found[] = { VPMU_UARCH_READ_L2, VPMU_UARCH_RFO_L2,
					 VPMU_UARCH_CODE_L2 };
	struct ua_memory *m = &u->memory;
	bool marked;

	if (ua_array_find(&m->l2, line, NULL, &marked)) {
		ua_count(u, found[use], 1);
		return VPMU_UARCH_AT_L2;
	}
	ua_array_put(&m->l2, line, 0, false);
	if (ua_array_find(&m->llc->array, line, NULL, NULL)) {
		ua_count(u, found[use] + 1, 1);
		return VPMU_UARCH_AT_LLC;
	}
	ua_count(u, found[use] + 2, 1);
	ua_array_put(&m->llc->array, line, 0, false);
	return VPMU_UARCH_AT_DRAM;
}

static enum vpmu_uarch_level ua_data(struct vpmu_uarch *u, uint64_t line, bool write)
{
	struct ua_memory *m = &u->memory;
	enum vpmu_uarch_level level;

	if (ua_array_front(&m->l1d, line, NULL) || ua_array_find(&m->l1d, line, NULL, NULL))
		return VPMU_UARCH_AT_L1;
	level = ua_beyond(u, line, write ? UA_WRITE : UA_READ);
	ua_array_put(&m->l1d, line, 0, false);
	ua_train(u, line);
	return level;
}

static void ua_count_walks(struct vpmu_uarch *u, uint8_t tlb, bool load, bool store)
{
	if (load && tlb)
		ua_count(u, tlb == 1 ? VPMU_UARCH_DTLB_LOAD_L2 : VPMU_UARCH_DTLB_LOAD_WALK, 1);
	if (store && tlb)
		ua_count(u, tlb == 1 ? VPMU_UARCH_DTLB_STORE_L2 : VPMU_UARCH_DTLB_STORE_WALK, 1);
}

void ua_access(struct vpmu_uarch *u, uint64_t word, bool load, bool store)
{
	static const uint8_t found[] = {
		[VPMU_UARCH_AT_L1] = VPMU_UARCH_LOAD_L1, [VPMU_UARCH_AT_FB] = VPMU_UARCH_LOAD_FB,
		[VPMU_UARCH_AT_L2] = VPMU_UARCH_LOAD_L2, [VPMU_UARCH_AT_LLC] = VPMU_UARCH_LOAD_LLC,
		[VPMU_UARCH_AT_DRAM] = VPMU_UARCH_LOAD_DRAM,
	};
	struct ua_memory *m = &u->memory;
	uint32_t code = (uint32_t)word >> 3 & 7, bytes = code ? 1u << (code - 1) : 1;
	uint64_t linear = VPMU_UARCH_ADDRESS(word), end = linear + bytes - 1, line;
	bool flag = word & VPMU_UARCH_DEPENDENT, both = load && store;
	struct ua_place place = ua_data_place(u, linear);
	bool split = linear >> m->line_shift != end >> m->line_shift;
	enum vpmu_uarch_level level;

	line = place.physical >> m->line_shift;
	level = ua_data(u, line, store);
	u->last.address = linear;
	u->last.tlb = place.tlb;
	u->last.store = store;
	u->last.locked = both && flag;
	u->last.split = split;
	u->last.cycles = u->params->l1d_cycles;
	ua_count_walks(u, place.tlb, load, store);
	if (load) {
		u->last.cycles = ua_load(u, line, &level, place.cycles, flag && !store);
		ua_count(u, VPMU_UARCH_LOADS, 1);
		ua_count(u, VPMU_UARCH_LOAD_SLOW, u->last.cycles > u->threshold);
		ua_count(u, VPMU_UARCH_SPLIT_LOADS, split);
		ua_count(u, VPMU_UARCH_LOCKED, u->last.locked);
		ua_count(u, found[level], 1);
	}
	u->last.level = level;
	if (store) {
		ua_store(u, load ? VPMU_UARCH_AT_L1 : level);
		ua_count(u, VPMU_UARCH_STORES, 1);
		ua_count(u, VPMU_UARCH_SPLIT_STORES, split);
	}
	if (split) {
		place = ua_data_place(u, end);
		level = ua_data(u, place.physical >> m->line_shift, store);
		if (load)
			ua_load(u, place.physical >> m->line_shift, &level, place.cycles, false);
	}
	if (u->last.locked)
		ua_drain(u);
}

/*
 * What most accesses are: to one line that is the most recent of its set, in a page that
 * is. Returns that line plus 1, or 0, which says nothing; changes nothing.
 */
static inline uint64_t ua_front(const struct vpmu_uarch *u, uint64_t word)
{
	const struct ua_memory *m = &u->memory;
	uint32_t code = (uint32_t)word >> 3 & 7, bytes = code ? 1u << (code - 1) : 1;
	uint64_t linear = VPMU_UARCH_ADDRESS(word), in_page = UA_IN_PAGE;
	uint64_t base = m->data_physical, line;

	if ((linear & m->line_mask) + bytes > m->line_mask + 1)
		return 0;
	if (m->data_page != (linear >> UA_PAGE_SHIFT) + 1) {
		in_page = (1ull << ua_shifts[m->dtlb.size]) - 1;
		if (!ua_array_front(&m->dtlb, ua_page_key(linear, m->dtlb.size), &base))
			return 0;
	}
	line = (base | (linear & in_page)) >> m->line_shift;
	return ua_array_front(&m->l1d, line, NULL) ? line + 1 : 0;
}

static inline void ua_hit(struct vpmu_uarch *u, uint64_t word, bool store)
{
	u->last = (struct vpmu_uarch_access){
		.address = VPMU_UARCH_ADDRESS(word), .cycles = u->params->l1d_cycles,
		.level = VPMU_UARCH_AT_L1, .store = store,
	};
}

/* Only for speed: the long way counts the same. */
void ua_access_load(struct vpmu_uarch *u, uint64_t word)
{
	struct ua_account *a = &u->account;
	uint64_t line = ua_front(u, word);

	if (!line || a->coming_lines >> ((line - 1) & 63) & 1 ||
	    ((word & VPMU_UARCH_DEPENDENT) && a->chain > a->now)) {
		ua_access(u, word, true, false);
		return;
	}
	a->chain = a->now + u->params->l1d_cycles;
	ua_count(u, VPMU_UARCH_LOADS, 1);
	ua_count(u, VPMU_UARCH_LOAD_SLOW, u->params->l1d_cycles > u->threshold);
	ua_count(u, VPMU_UARCH_LOAD_L1, 1);
	ua_hit(u, word, false);
}

void ua_access_store(struct vpmu_uarch *u, uint64_t word)
{
	struct ua_account *a = &u->account;

	if (a->store[a->next_store] > a->now || !ua_front(u, word)) {
		ua_access(u, word, false, true);
		return;
	}
	ua_store(u, VPMU_UARCH_AT_L1);
	ua_count(u, VPMU_UARCH_STORES, 1);
	ua_hit(u, word, true);
}

void ua_soft_prefetch(struct vpmu_uarch *u, uint64_t linear)
{
	struct ua_place place = ua_data_place(u, linear);

	ua_prefetch(u, place.physical >> u->memory.line_shift);
}

/* The page that was fetched from last is the most recent one, so nothing moves. */
static struct ua_place ua_code_place(struct vpmu_uarch *u, uint64_t linear)
{
	struct ua_memory *m = &u->memory;
	struct ua_place place = { .physical = m->code_physical | (linear & UA_IN_PAGE) };

	if (m->code_page == (linear >> UA_PAGE_SHIFT) + 1)
		return place;
	place = ua_translate(u, &m->itlb, linear);
	m->code_page = (linear >> UA_PAGE_SHIFT) + 1;
	m->code_physical = place.physical & ~UA_IN_PAGE;
	if (place.tlb)
		ua_count(u, place.tlb == 1 ? VPMU_UARCH_ITLB_L2 : VPMU_UARCH_ITLB_WALK, 1);
	return place;
}

static void ua_fetch_line(struct vpmu_uarch *u, uint64_t linear)
{
	struct ua_memory *m = &u->memory;
	const struct vpmu_uarch_params *p = u->params;
	struct ua_place place = ua_code_place(u, linear);
	uint64_t line = place.physical >> m->line_shift;
	uint32_t cycles = place.cycles;
	enum vpmu_uarch_level level;

	if (ua_array_front(&m->l1i, line, NULL) || ua_array_find(&m->l1i, line, NULL, NULL)) {
		ua_count(u, VPMU_UARCH_L1I_HIT, 1);
	} else {
		level = ua_beyond(u, line, UA_CODE);
		ua_array_put(&m->l1i, line, 0, false);
		cycles += level == VPMU_UARCH_AT_L2 ? p->l2_cycles :
			  level == VPMU_UARCH_AT_LLC ? p->llc_cycles : p->dram_cycles;
	}
	if (cycles)
		ua_stall(u, UA_FETCH, cycles);
}

void ua_fetch(struct vpmu_uarch *u, uint64_t linear, uint32_t bytes)
{
	struct ua_memory *m = &u->memory;
	uint64_t line = linear >> m->line_shift, end = (linear + bytes - 1) >> m->line_shift;

	for (; line <= end; line++) {
		if (m->fetched == line + 1)
			continue;
		m->fetched = line + 1;
		ua_fetch_line(u, line << m->line_shift);
	}
}
