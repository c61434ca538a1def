// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Translation and caches. Caches are looked up by physical address; a level is filled
 * from the next one at once, and account.c accounts for the time. No level includes
 * another; writing lines back costs nothing.
 */
#include "uarch_internal.h"

size_t ua_memory_words(const struct vpmu_uarch_params *p, bool llc)
{
	return ua_array_words(&p->l1i, false) + ua_array_words(&p->l1d, false) +
	       ua_array_words(&p->l2, false) + ua_array_words(&p->itlb, true) +
	       ua_array_words(&p->dtlb, true) + ua_array_words(&p->stlb, true) +
	       (llc ? ua_array_words(&p->llc, false) : 0);
}

/*
 * A tag that matches no address that maps to @at (of a disabled front: no address at
 * all).
 */
static uint64_t ua_front_none(const struct ua_front *f, uint32_t at)
{
	return VPMU_UARCH_WORD((uint64_t)(at ^ 1) * UA_FRONT_LINE,
			       f->off ? VPMU_UARCH_SERIALIZE : VPMU_UARCH_BLOCK);
}

static void ua_front_clear(struct ua_front *f)
{
	uint32_t i;

	f->epoch += VPMU_BANK_COUNT;
	f->page_epoch++;
	for (i = 0; i < UA_FRONT * UA_FRONT_WAYS; i++)
		f->line[i] = ua_front_none(f, i);
	for (i = 0; i < UA_FRONT; i++)
		f->by_page[i] = 0;
}

/*
 * Linear addresses can index the front only if the set depends on the offset in a page
 * alone.
 */
static void ua_front_init(struct ua_front *f, const struct vpmu_uarch_geometry *g, uint32_t ways)
{
	f->off = g->unit_bytes != UA_FRONT_LINE || g->sets > UA_FRONT || g->sets * ways < 2 ||
		 g->sets * g->unit_bytes > 1u << UA_PAGE_SHIFT;
	f->set_mask = f->off ? 0 : g->sets - 1;
	f->mask = f->off ? 0 : g->sets * ways - 1;
}

/* Forget the lines of a set. */
static void ua_front_drop(struct ua_front *f, uint32_t set)
{
	f->epoch += VPMU_BANK_COUNT;
	for (; set <= f->mask; set += f->set_mask + 1)
		f->line[set] = ua_front_none(f, set);
}

/*
 * Put a line at the front: it is in its set, and another access to it would change
 * nothing.
 */
static UA_INLINE void ua_front_put(struct ua_front *f, uint64_t line, uint32_t tlb_set)
{
	if (f->off)
		return;
	f->line[line & f->mask] = VPMU_UARCH_WORD(line * UA_FRONT_LINE, 0);
	f->by_page[tlb_set % UA_FRONT] |= 1ull << (line & f->set_mask);
}

/* Marks in this set of the TLB may have been cleared: forget its pages' lines. */
static void ua_front_page(struct ua_front *f, uint32_t tlb_set)
{
	uint64_t *sets = &f->by_page[tlb_set % UA_FRONT];
	uint32_t set;

	f->page_epoch++;
	for (set = 0; set < UA_FRONT && *sets >> set; set++)
		if (*sets >> set & 1)
			ua_front_drop(f, set);
	*sets = 0;
}

static void ua_nowhere(struct ua_memory *m)
{
	m->fetched = UA_NOWHERE;
	ua_front_clear(&m->data);
	ua_front_clear(&m->code);
}

uint64_t *ua_memory_init(struct vpmu_uarch *u, struct vpmu_uarch_llc *llc, uint64_t *words)
{
	const struct vpmu_uarch_params *p = u->params;
	struct ua_memory *m = &u->memory;
	uint32_t i;

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
	ua_front_init(&m->data, &p->l1d, 1);
	ua_front_init(&m->code, &p->l1i, UA_FRONT_WAYS);
	for (i = 0; i < 8; i++)
		m->room[i] = m->data.off ? 0 :
			     VPMU_UARCH_WORD(UA_FRONT_LINE - (i ? 1u << (i - 1) : 1), 127);
	ua_nowhere(m);
	return words;
}

/* ---- translation ---- */

static bool ua_tlb_find(struct ua_array *tlb, uint64_t linear, uint64_t *key, uint64_t *base)
{
	uint32_t size, n;

	/* No two sizes have the same address, so the order does not matter. */
	for (n = 0; n < 3; n++) {
		size = (tlb->size + n) % 3;
		*key = ua_page_key(linear, size);
		if (ua_marked_find(tlb, *key, base)) {
			tlb->size = (uint8_t)size;
			return true;
		}
	}
	return false;
}

struct ua_place {
	uint64_t physical;
	uint32_t set;         /* set of the first level that has the page */
	uint8_t tlb;          /* 0 first level, 1 second level, 2 walked */
	uint32_t cycles;      /* cycles in addition to the first level's */
};

static struct ua_place ua_translate(struct vpmu_uarch *u, struct ua_array *first,
				    struct ua_front *front, uint64_t linear)
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
		ua_marked_put(&m->stlb, key, base);
	}
	ua_marked_put(first, key, base);
	ua_front_page(front, key & first->set_mask);
out:
	place.set = key & first->set_mask;
	place.physical = base | (linear & ((1ull << ua_shifts[key >> UA_KEY_SIZE]) - 1));
	return place;
}

static UA_INLINE struct ua_known_page *ua_page(struct ua_front *f, uint64_t linear)
{
	return &f->page[(linear >> UA_PAGE_SHIFT) % UA_PAGES];
}

/* Returns NULL if the page may be unmarked. */
static UA_INLINE struct ua_known_page *ua_known_page(struct ua_front *f, uint64_t linear)
{
	struct ua_known_page *k = ua_page(f, linear);

	return (linear ^ k->linear) <= UA_IN_PAGE && k->epoch == f->page_epoch ? k : NULL;
}

static UA_INLINE struct ua_place ua_place(struct vpmu_uarch *u, struct ua_array *tlb,
					  struct ua_front *front, uint64_t linear)
{
	const struct ua_known_page *k = ua_known_page(front, linear);
	struct ua_place place;

	if (k)
		return (struct ua_place){
			.physical = k->physical | (linear & UA_IN_PAGE), .set = k->set,
		};
	place = ua_translate(u, tlb, front, linear);
	*ua_page(front, linear) = (struct ua_known_page){
		.linear = linear & ~UA_IN_PAGE, .physical = place.physical & ~UA_IN_PAGE,
		.epoch = front->page_epoch, .set = place.set,
	};
	return place;
}

static UA_INLINE struct ua_place ua_data_place(struct vpmu_uarch *u, uint64_t linear)
{
	return ua_place(u, &u->memory.dtlb, &u->memory.data, linear);
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
	ua_nowhere(&u->memory);
}

/* ---- the prefetcher: streams of lines within a page, into L2 ---- */

static void ua_prefetch(struct vpmu_uarch *u, uint64_t line)
{
	struct ua_memory *m = &u->memory;
	bool dram;

	if (ua_array_has(&m->l2, line))
		return;
	dram = !ua_array_find(&m->llc->array, line, NULL);
	if (dram)
		ua_array_put(&m->llc->array, line, false);
	ua_array_put(&m->l2, line, true);
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

/* Train the prefetcher with a line that is requested from L2. */
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

/* Find a line that the first level lacks; it is in L2 afterwards. */
static enum vpmu_uarch_level ua_beyond(struct vpmu_uarch *u, uint64_t line, enum ua_use use)
{
	static const uint8_t found[] = { VPMU_UARCH_READ_L2, VPMU_UARCH_RFO_L2,
					 VPMU_UARCH_CODE_L2 };
	struct ua_memory *m = &u->memory;
	bool marked;

	if (ua_array_find(&m->l2, line, &marked)) {
		ua_count(u, found[use], 1);
		return VPMU_UARCH_AT_L2;
	}
	ua_array_put(&m->l2, line, false);
	if (ua_array_find(&m->llc->array, line, NULL)) {
		ua_count(u, found[use] + 1, 1);
		return VPMU_UARCH_AT_LLC;
	}
	ua_count(u, found[use] + 2, 1);
	ua_array_put(&m->llc->array, line, false);
	return VPMU_UARCH_AT_DRAM;
}

static UA_INLINE enum vpmu_uarch_level ua_data(struct vpmu_uarch *u, uint64_t line, bool write)
{
	struct ua_memory *m = &u->memory;
	enum vpmu_uarch_level level;

	if (ua_array_front(&m->l1d, line) || ua_array_find(&m->l1d, line, NULL))
		return VPMU_UARCH_AT_L1;
	level = ua_beyond(u, line, write ? UA_WRITE : UA_READ);
	ua_array_put(&m->l1d, line, false);
	ua_train(u, line);
	return level;
}

/*
 * Update the front after an access whose line, found at @level, is now the most recent of
 * its set.
 */
static UA_INLINE void ua_accessed(struct vpmu_uarch *u, uint64_t linear,
				  const struct ua_place *place, enum vpmu_uarch_level level)
{
	struct ua_memory *m = &u->memory;
	uint64_t line = place->physical >> m->line_shift;

	if (level == VPMU_UARCH_AT_L1 && !(u->account.coming_lines >> (line & 63) & 1))
		ua_front_put(&m->data, linear >> m->line_shift, place->set);
	else
		ua_front_drop(&m->data, line & m->data.set_mask);
}

static UA_INLINE void ua_count_walks(struct vpmu_uarch *u, uint8_t tlb, bool load, bool store)
{
	if (load && tlb)
		ua_count(u, tlb == 1 ? VPMU_UARCH_DTLB_LOAD_L2 : VPMU_UARCH_DTLB_LOAD_WALK, 1);
	if (store && tlb)
		ua_count(u, tlb == 1 ? VPMU_UARCH_DTLB_STORE_L2 : VPMU_UARCH_DTLB_STORE_WALK, 1);
}

void ua_access(struct vpmu_uarch *u, uint64_t word)
{
	static const uint8_t found[] = {
		[VPMU_UARCH_AT_L1] = VPMU_UARCH_LOAD_L1, [VPMU_UARCH_AT_FB] = VPMU_UARCH_LOAD_FB,
		[VPMU_UARCH_AT_L2] = VPMU_UARCH_LOAD_L2, [VPMU_UARCH_AT_LLC] = VPMU_UARCH_LOAD_LLC,
		[VPMU_UARCH_AT_DRAM] = VPMU_UARCH_LOAD_DRAM,
	};
	struct ua_memory *m = &u->memory;
	uint32_t code = (uint32_t)word >> 3 & 7, bytes = code ? 1u << (code - 1) : 1;
	uint64_t linear = VPMU_UARCH_ADDRESS(word), end = linear + bytes - 1, line;
	bool load = word & VPMU_UARCH_LOAD, store = word & VPMU_UARCH_STORE;
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
	ua_accessed(u, linear, &place, load ? level : VPMU_UARCH_AT_L1);
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
		ua_accessed(u, end, &place, load ? level : VPMU_UARCH_AT_L1);
	}
	if (u->last.locked)
		ua_drain(u);
}

bool ua_to_front(struct vpmu_uarch *u, uint64_t word)
{
	struct ua_memory *m = &u->memory;
	uint64_t linear = VPMU_UARCH_ADDRESS(word), line;
	const struct ua_known_page *k = ua_known_page(&m->data, linear);

	if (!k || (word & VPMU_UARCH_WORD(UA_FRONT_LINE - 1, 127)) > m->room[word >> 3 & 7])
		return false;
	line = (k->physical | (linear & UA_IN_PAGE)) >> m->line_shift;
	if (u->account.coming_lines >> (line & 63) & 1 || !ua_array_find(&m->l1d, line, NULL))
		return false;
	ua_front_put(&m->data, linear >> m->line_shift, k->set);
	return true;
}

void ua_soft_prefetch(struct vpmu_uarch *u, uint64_t linear)
{
	struct ua_place place = ua_data_place(u, linear);

	ua_prefetch(u, place.physical >> u->memory.line_shift);
}

void ua_flush(struct vpmu_uarch *u, uint64_t linear)
{
	struct ua_memory *m = &u->memory;
	uint64_t line = ua_data_place(u, linear).physical >> m->line_shift;

	ua_array_drop(&m->l1d, line);
	ua_array_drop(&m->l1i, line);
	ua_array_drop(&m->l2, line);
	ua_array_drop(&m->llc->array, line);
	ua_front_drop(&m->data, line & m->data.set_mask);
	ua_front_drop(&m->code, line & m->code.set_mask);
	m->fetched = UA_NOWHERE;
}

void ua_fetch_line(struct vpmu_uarch *u, uint64_t linear)
{
	struct ua_memory *m = &u->memory;
	const struct vpmu_uarch_params *p = u->params;
	struct ua_place place = ua_place(u, &m->itlb, &m->code, linear);
	uint64_t line = place.physical >> m->line_shift;
	uint32_t cycles = place.cycles;
	enum vpmu_uarch_level level;

	if (place.tlb)
		ua_count(u, place.tlb == 1 ? VPMU_UARCH_ITLB_L2 : VPMU_UARCH_ITLB_WALK, 1);
	if (ua_marked_find(&m->l1i, line, NULL)) {
		ua_count(u, VPMU_UARCH_L1I_HIT, 1);
	} else {
		level = ua_beyond(u, line, UA_CODE);
		ua_marked_put(&m->l1i, line, 0);
		ua_front_drop(&m->code, line & m->code.set_mask);
		cycles += level == VPMU_UARCH_AT_L2 ? p->l2_cycles :
			  level == VPMU_UARCH_AT_LLC ? p->llc_cycles : p->dram_cycles;
	}
	ua_front_put(&m->code, linear >> m->line_shift, place.set);
	if (cycles)
		ua_stall(u, UA_FETCH, cycles);
}
