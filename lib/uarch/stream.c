// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The stream of what a modelled CPU executes. Most of it hits: a block that ran before
 * (struct ua_known_block), a line at the front (struct ua_front), a branch that goes
 * where it was predicted. For these only sums are kept here, which are booked when
 * something takes time or the batch is over; everything else takes the slow path
 * (memory.c, account.c). Both paths count the same.
 */
#include "predict.h"

#define UA_AT_ONCE 4096u /* words per batch, so that sums have 32 bits and ua_settle() is exact */

struct ua_sums {
	uint32_t uops, load;      /* for ua_settle() */
	uint32_t heavy, loads, stores, lines;
	uint64_t usual;           /* the bits of UA_RARE that most blocks have */
	struct ua_last last;
	uint64_t hit;             /* the last access, if it was quick; 0 */
};

static struct ua_sums ua_no_sums(const struct vpmu_uarch *u, struct ua_last last, uint64_t hit)
{
	return (struct ua_sums){
		.usual = VPMU_UARCH_B_BANK(u->bank), .last = last, .hit = hit,
	};
}

/* Call this before any use of the account. */
static UA_INLINE void ua_settle_sums(struct vpmu_uarch *u, struct ua_sums *s)
{
	ua_settle(u, s->uops, s->load);
	s->uops = 0;
	s->load = 0;
}

/* Book the sums, which belong to one bank. */
static void ua_book(struct vpmu_uarch *u, struct ua_sums s)
{
	bool slow = u->params->l1d_cycles > u->threshold;

	ua_settle(u, s.uops, s.load);
	ua_count(u, VPMU_UARCH_HEAVY, s.heavy);
	ua_count(u, VPMU_UARCH_LOADS, s.loads);
	ua_count(u, VPMU_UARCH_LOAD_L1, s.loads);
	ua_count(u, VPMU_UARCH_LOAD_SLOW, slow ? s.loads : 0);
	ua_count(u, VPMU_UARCH_STORES, s.stores);
	ua_count(u, VPMU_UARCH_L1I_HIT, s.lines);
}

/* ---- accesses ---- */

/* Is it an access within one line, which is at the front? */
static UA_INLINE bool ua_quick_access(const struct vpmu_uarch *u, uint64_t word)
{
	const struct ua_memory *m = &u->memory;

	return ua_in_front(&m->data, word) <= m->room[word >> 3 & 7];
}

static UA_INLINE void ua_quick_load(struct ua_sums *s)
{
	s->load = s->uops + 1;
	s->loads++;
}

/* A load whose address comes out of another load, which may still be waiting. */
static UA_INLINE bool ua_quick_chain(struct vpmu_uarch *u, struct ua_sums *s)
{
	struct ua_account *a = &u->account;
	uint32_t hit = u->params->l1d_cycles;
	uint64_t chain = s->load ? ua_now(a, s->load - 1) + hit : a->chain;

	if (chain <= ua_now(a, s->uops)) {
		ua_quick_load(s);
		return true;
	}
	if (a->waiting == UA_WAITS)
		return false;
	s->loads++;
	a->chain = chain + hit;
	s->load = 0;
	ua_wait_push(a, &(struct ua_wait){
		.done = a->chain, .uop = a->uops + s->uops, .level = VPMU_UARCH_AT_L1,
	});
	return true;
}

static UA_INLINE bool ua_quick_store(struct vpmu_uarch *u, struct ua_sums *s)
{
	struct ua_account *a = &u->account;
	uint64_t now = ua_now(a, s->uops);

	/*
	 * No two stores leave in the same cycle, so there is room if the last one leaves
	 * soon.
	 */
	if (UA_RARELY(a->store_last >= now + u->params->stores))
		return false;
	ua_leave(a, now);
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

static UA_INLINE uint64_t ua_line(const struct ua_memory *m, uint64_t linear)
{
	return linear >> m->line_shift << m->line_shift;
}

/*
 * The number of lines from @first to @last, which may be at the end of the address space;
 * 0 for a block of no bytes.
 */
static UA_INLINE uint32_t ua_lines(const struct ua_memory *m, uint64_t first, uint64_t last)
{
	return (uint32_t)((last - first) >> m->line_shift) + 1;
}

static UA_INLINE void ua_fetch(struct vpmu_uarch *u, struct ua_sums *s, uint64_t first,
			       uint64_t last)
{
	struct ua_memory *m = &u->memory;
	uint32_t n = ua_lines(m, first, last);
	uint64_t bytes = 1ull << m->line_shift, line = first;

	if (!n)
		return;
	if (line == m->fetched) {
		line += bytes;
		n--;
	}
	for (; n--; line += bytes) {
		if (UA_MOSTLY(ua_in_front(&m->code, VPMU_UARCH_WORD(line, 0)) == 0)) {
			s->lines++;
		} else {
			ua_settle_sums(u, s);
			ua_fetch_line(u, line);
		}
	}
	m->fetched = last;
}

/* A branch was mispredicted, or is of a kind that is never predicted. */
static void ua_turned(struct vpmu_uarch *u, enum vpmu_uarch_count wrong)
{
	const struct vpmu_uarch_params *p = u->params;

	if (wrong == VPMU_UARCH_CLEARS) {
		ua_drain(u);
		ua_stall(u, UA_DRAIN, p->clear_cycles);
		return;
	}
	ua_count(u, wrong, 1);
	if (wrong == VPMU_UARCH_RESTEER)
		ua_stall(u, UA_FETCH, p->resteer_cycles);
	else
		ua_stall(u, UA_MISPREDICT, p->mispredict_cycles);
}

/* Note a branch, if the records have it, too. @wrong: as ua_branch() returns it. */
static void ua_note(struct vpmu_uarch *u, struct ua_last from, uint64_t to, bool user,
		    enum vpmu_uarch_count wrong, uint64_t now)
{
	static const uint8_t types[] = {
		[VPMU_UARCH_JCC] = VPMU_BRANCH_JCC, [VPMU_UARCH_JMP] = VPMU_BRANCH_JMP,
		[VPMU_UARCH_CALL] = VPMU_BRANCH_CALL, [VPMU_UARCH_RET] = VPMU_BRANCH_RET,
		[VPMU_UARCH_JMP_INDIRECT] = VPMU_BRANCH_JMP_INDIRECT,
		[VPMU_UARCH_CALL_INDIRECT] = VPMU_BRANCH_CALL_INDIRECT,
		[VPMU_UARCH_FAR] = VPMU_BRANCH_FAR,
	};
	struct ua_noted *newest = &u->noted[u->n_noted % VPMU_LBR_RING];
	uint32_t branch = u->interrupted ? VPMU_UARCH_FAR : from.branch;
	uint64_t cycles = now - u->noted_at;
	uint8_t act;

	u->interrupted = false;
	if (branch == VPMU_UARCH_NO_BRANCH || (branch == VPMU_UARCH_JCC && to == from.next))
		return;
	act = u->record->act[user][types[branch]];
	if (act == VPMU_BRANCH_POP) {
		u->n_noted--;
		u->noted[(u->n_noted - VPMU_LBR_ENTRIES) % VPMU_LBR_RING].there = false;
	}
	if (act != VPMU_BRANCH_PUSH)
		return;
	*newest = (struct ua_noted){
		.to = to, .there = true,
		.cycles = (uint16_t)(cycles < VPMU_LBR_CYCLES ? cycles : VPMU_LBR_CYCLES),
		.wrong = wrong != VPMU_UARCH_COUNTS && wrong != VPMU_UARCH_RESTEER &&
			 wrong != VPMU_UARCH_CLEARS,
	};
	u->n_noted++;
	u->noted_at = now;
}

/*
 * The next block is known, and with it the target of the last branch. @user: its ring is
 * above 0.
 */
static UA_INLINE void ua_arrive(struct vpmu_uarch *u, struct ua_sums *s, uint64_t address,
				bool user)
{
	enum vpmu_uarch_count wrong = ua_branch(&u->predict, &s->last, address);

	if (UA_RARELY(u->record))
		ua_note(u, s->last, address, user, wrong, ua_now(&u->account, s->uops));
	if (UA_RARELY(wrong != VPMU_UARCH_COUNTS)) {
		ua_settle_sums(u, s);
		ua_turned(u, wrong);
	}
}

/*
 * Bits that are rare in a block: another bank than the last one's, more uops than
 * instructions, divides.
 */
#define UA_RARE (VPMU_UARCH_B_BANK(3) | VPMU_UARCH_B_UOPS(4095) | VPMU_UARCH_B_DIVIDES(255))

static UA_INLINE void ua_rare(struct vpmu_uarch *u, struct ua_sums *s, uint64_t more)
{
	uint32_t bank = more >> 27 & 3, heavy = more >> 32 & 4095;
	uint64_t *epoch = &u->memory.code.epoch;

	if (bank != u->bank) {
		ua_book(u, *s);
		u->bank = (uint8_t)bank;
		*epoch = *epoch / VPMU_BANK_COUNT * VPMU_BANK_COUNT + bank;
		*s = ua_no_sums(u, s->last, s->hit);
	}
	s->uops += heavy;
	s->heavy += heavy;
}

/* Wait for loads that are still waiting when the window is full. */
static UA_INLINE void ua_retire(struct vpmu_uarch *u, struct ua_sums *s)
{
	struct ua_account *a = &u->account;

	while (UA_RARELY(a->waiting)) {
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

/*
 * Run a block that is not known in this epoch. Its lines may replace each other; then it
 * is not known afterwards either.
 */
static UA_INLINE void ua_new_block(struct vpmu_uarch *u, struct ua_sums *s,
				   struct ua_known_block *k, uint64_t begin, uint64_t more)
{
	struct ua_memory *m = &u->memory;
	uint64_t next = begin + (more >> 10 & 16383), epoch;
	uint64_t first = ua_line(m, begin), last = ua_line(m, next - 1);
	bool rare = (more ^ s->usual) & UA_RARE;

	s->last = (struct ua_last){ .next = next, .hash = ua_hash(next),
				    .branch = more >> 24 & 7 };
	if (rare)
		ua_rare(u, s, more);
	epoch = m->code.epoch;
	ua_fetch(u, s, first, last);
	if (!rare && next != begin && !m->code.off && m->code.epoch == epoch)
		*k = (struct ua_known_block){
			.begin = begin, .more = more, .epoch = epoch, .as_last = s->last,
			.first = first, .last = last, .lines = ua_lines(m, first, last),
			.insns = more & 1023,
		};
	s->uops += more & 1023;
	ua_retire(u, s);
	if (more & VPMU_UARCH_B_DIVIDES(255)) {
		ua_settle_sums(u, s);
		ua_stall(u, UA_DIVIDE, (more >> 44 & 255) * u->params->divide_cycles);
	}
}

static UA_INLINE void ua_block(struct vpmu_uarch *u, struct ua_sums *s, uint64_t begin,
			       uint64_t more)
{
	struct ua_known_block *k = &u->known[(begin ^ begin >> 10) % UA_KNOWN];
	struct ua_memory *m = &u->memory;

	ua_arrive(u, s, begin, more >> 27 & 1);
	if (UA_RARELY(k->begin != begin || k->more != more || k->epoch != m->code.epoch)) {
		ua_new_block(u, s, k, begin, more);
		return;
	}
	s->last.next = k->as_last.next; /* one by one, otherwise they are not kept in registers */
	s->last.hash = k->as_last.hash;
	s->last.branch = k->as_last.branch;
	s->lines += k->lines - (k->first == m->fetched);
	m->fetched = k->last;
	s->uops += k->insns;
	ua_retire(u, s);
}

/* ---- the stream ---- */

/* Run a word that is neither a block nor quick. */
static void ua_word(struct vpmu_uarch *u, uint64_t word)
{
	uint64_t address = VPMU_UARCH_ADDRESS(word);

	switch ((enum vpmu_uarch_kind)(word & VPMU_UARCH_KIND)) {
	case VPMU_UARCH_LOAD:
	case VPMU_UARCH_STORE:
	case VPMU_UARCH_MODIFY:
		ua_access(u, word);
		break;
	case VPMU_UARCH_SOFT_PREFETCH:
		if (word & VPMU_UARCH_FLUSH)
			ua_flush(u, address);
		else
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

/*
 * Run an access that changes only sums and the most recent line of a set. Returns false
 * if it is not of that kind.
 */
static UA_INLINE bool ua_quick(struct vpmu_uarch *u, struct ua_sums *s, uint64_t word)
{
	uint32_t kind = word & (VPMU_UARCH_KIND | VPMU_UARCH_DEPENDENT);

	if (UA_RARELY(!ua_quick_access(u, word)) &&
	    ((word & VPMU_UARCH_KIND) > VPMU_UARCH_MODIFY || !ua_to_front(u, word)))
		return false;
	if (kind == VPMU_UARCH_LOAD) {
		ua_quick_load(s);
		return true;
	}
	if (kind == VPMU_UARCH_STORE)
		return ua_quick_store(u, s);
	if (kind == (VPMU_UARCH_LOAD | VPMU_UARCH_DEPENDENT))
		return ua_quick_chain(u, s);
	if (kind != VPMU_UARCH_MODIFY || !ua_quick_store(u, s))
		return false;
	ua_quick_load(s);
	return true;
}

/* Passed by value, so that the sums stay in registers elsewhere. */
static struct ua_sums ua_slow(struct vpmu_uarch *u, struct ua_sums s, uint64_t word)
{
	uint32_t kind = word & VPMU_UARCH_KIND;

	if (kind <= VPMU_UARCH_MODIFY)
		s.hit = 0;
	if (kind == VPMU_UARCH_EVENT) {
		ua_arrive(u, &s, VPMU_UARCH_ADDRESS(word), word & VPMU_UARCH_USER);
		s.last.branch = VPMU_UARCH_NO_BRANCH;
		u->interrupted = u->record;
	}
	ua_settle_sums(u, &s);
	ua_word(u, word);
	return s;
}

/* A single loop, so that inlined code exists once. */
static void ua_batch(struct vpmu_uarch *u, const uint64_t *words, const uint64_t *end)
{
	struct ua_sums s = ua_no_sums(u, u->last_block, 0);
	uint64_t word, begin;

	begin = u->half_begin;
	if (u->half) {
		u->half = false;
		goto half;
	}
	while (words < end) {
		word = *words++;
		if ((word & VPMU_UARCH_KIND) == VPMU_UARCH_BLOCK) {
			begin = VPMU_UARCH_ADDRESS(word);
			if (UA_RARELY(words == end)) {
				u->half_begin = begin;
				u->half = true;
				break;
			}
half:
			ua_block(u, &s, begin, *words++);
		} else if (UA_MOSTLY(ua_quick(u, &s, word))) {
			s.hit = word;
		} else {
			s = ua_slow(u, s, word);
		}
	}
	u->last_block = s.last;
	ua_book(u, s);
	if (s.hit)
		ua_hit(u, s.hit);
}

void vpmu_uarch_run(struct vpmu_uarch *u, const uint64_t *words, size_t n)
{
	size_t now;

	for (; n; n -= now, words += now) {
		now = n < UA_AT_ONCE ? n : UA_AT_ONCE;
		ua_batch(u, words, words + now);
	}
}

void vpmu_uarch_record(struct vpmu_uarch *u, const struct vpmu_lbr *l)
{
	u->record = l;
	u->interrupted = false;
	u->n_noted = 0;
	u->noted_at = ua_now(&u->account, 0);
	memset(u->noted, 0, sizeof(u->noted));
}

/*
 * The newest note, from the one of age @back on, of a branch to @to; @back is then behind it. A
 * branch that only the records have is passed over.
 */
static const struct ua_noted *ua_noted_to(const struct vpmu_uarch *u, uint64_t to,
					  unsigned int *back)
{
	const struct ua_noted *noted;
	unsigned int at;

	for (at = *back; at < VPMU_LBR_ENTRIES; at++) {
		noted = &u->noted[(u->n_noted - 1 - at) % VPMU_LBR_RING];
		if (noted->there && noted->to == to) {
			*back = at + 1;
			return noted;
		}
	}
	return NULL;
}

void vpmu_uarch_finish(struct vpmu_uarch *u, struct vpmu_lbr_entry *const *entries, unsigned int n,
		       uint64_t base, uint64_t next, bool user)
{
	struct ua_sums s = ua_no_sums(u, u->last_block, 0);
	unsigned int age, back = 0;

	if (!u->record)
		return;
	ua_arrive(u, &s, next, user);
	s.last.branch = VPMU_UARCH_NO_BRANCH;
	u->last_block = s.last;
	ua_book(u, s);
	for (age = 0; age < n; age++) {
		struct vpmu_lbr_entry *e = entries[age];
		const struct ua_noted *noted = ua_noted_to(u, base + e->to, &back);

		if (!noted)
			continue;
		e->info &= ~(VPMU_LBR_MISPREDICTED | VPMU_LBR_CYCLES);
		e->info |= VPMU_LBR_TIMED | noted->cycles |
			   (noted->wrong ? VPMU_LBR_MISPREDICTED : 0);
	}
}
