/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The parts of a modelled CPU: one file each, which uarch.c puts together. */
#ifndef VPMU_UARCH_INTERNAL_H
#define VPMU_UARCH_INTERNAL_H

#include <vpmu/uarch.h>

/* Functions that each word of the stream passes: calls would take a tenth of the time. */
#define UA_INLINE inline __attribute__((always_inline))
/*
 * The branch that the compiler lays out without a jump: taken jumps are most of the cost
 * of the common case.
 */
#define UA_MOSTLY(x) __builtin_expect(!!(x), 1)
#define UA_RARELY(x) __builtin_expect(!!(x), 0)

/* ---- array.c: tags ---- */

/* A tag is (key + 1) << 1 | mark: never 0, which is an empty way. */
struct ua_array {
	uint64_t *tag;        /* sets times ways */
	uint64_t *value;      /* one per tag, with marks instead of LRU; or NULL */
	uint32_t set_mask, ways;
	uint8_t size;         /* TLBs: page size found last */
};

size_t ua_array_words(const struct vpmu_uarch_geometry *g, bool values);
uint64_t *ua_array_init(struct ua_array *a, const struct vpmu_uarch_geometry *g,
			bool values, uint64_t *words);

/*
 * Find @key and make it the most recent. *@marked gets its mark, which is then cleared;
 * with @marked NULL the mark stays.
 */
bool ua_array_find(struct ua_array *a, uint64_t key, bool *marked);
/*
 * Is @key the most recent of its set, so that nothing has to move? False says nothing. It
 * reads one word, as another thread may change the set (array.c).
 */
static inline bool ua_array_front(const struct ua_array *a, uint64_t key)
{
	size_t at = (size_t)(key & a->set_mask) * a->ways;

	return a->ways && *(const volatile uint64_t *)&a->tag[at] == (key + 1) << 1;
}

/*
 * With marks instead of LRU: find @key and mark it; or put it in place of an unmarked
 * one.
 */
bool ua_marked_find(struct ua_array *a, uint64_t key, uint64_t *value);
void ua_marked_put(struct ua_array *a, uint64_t key, uint64_t value);

/* Is @key there? Changes nothing. */
bool ua_array_has(const struct ua_array *a, uint64_t key);
/* Put @key, which is not there, in place of the least recent of its set. */
void ua_array_put(struct ua_array *a, uint64_t key, bool marked);
void ua_array_drop(struct ua_array *a, uint64_t key);
void ua_array_clear(struct ua_array *a);

/* ---- account.c: the use of each slot ---- */

#define UA_FILLS_MAX	32u
#define UA_WAITS	64u
#define UA_STORES_MAX	128u	/* a power of two: n_stores wraps */
#define UA_COMING	32u	/* lines that the prefetcher has asked for */

/* A load whose value is not available yet. */
struct ua_wait {
	uint64_t done;        /* time when it is */
	uint64_t uop;         /* uops issued before it */
	uint64_t line;
	uint8_t level;        /* enum vpmu_uarch_level */
};

struct ua_account {
	uint64_t now;         /* cycles */
	uint64_t uops;        /* uops issued */
	uint64_t chain;       /* time of the latest load's value */
	uint64_t memory_free; /* time at which memory can start another line */
	uint32_t part;        /* slots of this cycle that are used, below width */
	uint64_t per_slot;    /* cycles per slot, times 2^32, to multiply instead of dividing */
	uint32_t first, waiting; /* ring in @wait */
	uint64_t coming_lines; /* misses in @wait, a bit each, by the line modulo 64 */
	struct ua_wait wait[UA_WAITS];
	uint64_t fill[UA_FILLS_MAX];   /* time when each fill buffer is free; a ring */
	uint64_t store[UA_STORES_MAX]; /* time when each store leaves; a ring */
	uint64_t store_last;
	uint32_t next_fill, n_stores, next_coming;
	struct {
		uint64_t line, done;
	} coming[UA_COMING];
};

enum ua_why {
	UA_MISPREDICT,
	UA_CLEAR,
	UA_FETCH,     /* fetch of a line, or a resteer */
	UA_MEMORY,    /* a load */
	UA_STORE,
	UA_DIVIDE,
	UA_DRAIN,
};

void ua_account_init(struct vpmu_uarch *u);
void ua_stall(struct vpmu_uarch *u, enum ua_why why, uint64_t cycles);
/*
 * Issue @uops, those since the last call. @load is the number of them before the last
 * load that hit, plus 1; 0: none.
 */
void ua_settle(struct vpmu_uarch *u, uint32_t uops, uint32_t load);
/* Wait until the oldest waiting load has its value. */
void ua_wait_first(struct vpmu_uarch *u);
/* A load finds its line at @level. Returns the cycles until its value is available. */
uint32_t ua_load(struct vpmu_uarch *u, uint64_t line, enum vpmu_uarch_level *level,
		 uint32_t walk, bool dependent);
void ua_store(struct vpmu_uarch *u, enum vpmu_uarch_level level);
/* The prefetcher requests a line, from memory or not. */
void ua_coming(struct vpmu_uarch *u, uint64_t line, bool dram);
/* Wait for everything in flight. */
void ua_drain(struct vpmu_uarch *u);

/* ---- memory.c: translation, caches, the prefetcher ---- */

struct vpmu_uarch_llc {
	struct ua_array array;
};

#define UA_STREAMS 16u
#define UA_PAGE_SHIFT 12u
#define UA_IN_PAGE ((1ull << UA_PAGE_SHIFT) - 1)
#define UA_NOWHERE (1ull << 62) /* no address has 63 bits */

/*
 * Translations of all sizes share an array; the size is part of the key, above the bits
 * that select a set.
 */
#define UA_KEY_SIZE 56
static const uint8_t ua_shifts[] = { 12, 21, 30 };

static inline uint64_t ua_page_key(uint64_t linear, uint32_t size)
{
	return linear >> ua_shifts[size] | (uint64_t)size << UA_KEY_SIZE;
}

struct ua_stream {
	uint64_t page;        /* number of the 4 KiB page, plus 1; 0: free */
	uint32_t used;        /* time of the last use: the oldest is replaced */
	uint8_t last, ahead;  /* lines of the page */
	int8_t step;          /* 0, 1, -1 */
	uint8_t steady;       /* number of steps in that direction */
};

#define UA_FRONT 64u	/* sets of a first level, and of its TLB, that are distinguished */
#define UA_FRONT_WAYS 8u
#define UA_FRONT_LINE 64u /* bytes, as in today's CPUs; with others the front is off */

/* A page of 4 KiB whose translation is marked in its TLB while the epoch is unchanged. */
#define UA_PAGES 64u
struct ua_known_page {
	uint64_t linear, physical, epoch;
	uint32_t set;             /* set of the TLB */
};

/*
 * The front of a first level: an index, by linear address, of lines whose next access is
 * known to have no effect but on sums. Most accesses end here, without a TLB or a cache.
 *
 *	word of an access:   linear address << 7 | size | kind
 *	                              |
 *	                              | number of the line & mask
 *	                              v
 *	line[]        ... | first byte of a line, as a word | ...   hit: the access is within
 *	                              |
 *	                              | set of the TLB that has its page
 *	                              v
 *	by_page[]     ... | a bit for each set of lines | ...
 *
 *	page[]        ... | linear, physical, epoch | ...           pages with a mark
 *
 * Invariant: a line is in line[] only while another access to it would find it in the
 * first level, leave the order of its set as it is (it is the most recent one, or marked),
 * not wait for it (it is not in flight), and find its page marked in the TLB.
 *
 * The long way breaks that, and says so: an access that makes another line the most recent
 * one, or waits for it, replaces or drops the entry (ua_accessed()); a fetch that replaces
 * a line drops its set (ua_fetch_line()); a translation that is put into the TLB drops all
 * lines of the pages in its set, as their marks may have been cleared (ua_front_page());
 * unmapping clears everything (ua_unmap()). Entries come back by the same functions, and
 * by ua_to_front(), with ua_front_put(). page[] needs no clearing: an entry is valid while
 * its epoch is page_epoch.
 */
struct ua_front {
	struct ua_known_page page[UA_PAGES];
	uint64_t page_epoch;      /* changes when a mark may have been cleared; never 0 */
	uint64_t line[UA_FRONT * UA_FRONT_WAYS]; /* VPMU_UARCH_WORD() of the line's first byte */
	/* Bitmap of the sets of lines, by the TLB's set of their page. */
	uint64_t by_page[UA_FRONT];
	uint32_t mask;
	uint32_t set_mask;
	/* Code: changes when a line is dropped; modulo VPMU_BANK_COUNT it is the bank. */
	uint64_t epoch;
	bool off;                 /* the geometry allows no lookup by linear addresses */
};

struct ua_memory {
	struct ua_front data;     /* LRU: one line per set */
	struct ua_front code;
	struct ua_array l1i, l1d, l2, itlb, dtlb, stlb;
	struct vpmu_uarch_llc *llc, own;
	uint64_t fetched;     /* last line fetched, by its first byte */
	uint8_t line_shift;
	/* Room in a line for the beginning of an access, by the code of its size. */
	uint64_t room[8];
	uint32_t streams_used;
	struct ua_stream stream[UA_STREAMS];
};

size_t ua_memory_words(const struct vpmu_uarch_params *p, bool llc);
uint64_t *ua_memory_init(struct vpmu_uarch *u, struct vpmu_uarch_llc *llc, uint64_t *words);
void ua_fetch_line(struct vpmu_uarch *u, uint64_t linear);
void ua_access(struct vpmu_uarch *u, uint64_t word);
/*
 * Put the line of an access within one line at the front. Returns false if it is not in
 * L1D, or its page is not marked.
 */
bool ua_to_front(struct vpmu_uarch *u, uint64_t word);
void ua_soft_prefetch(struct vpmu_uarch *u, uint64_t linear);

/* No cache has the line any more; of other CPUs' only the last level's is looked at. */
void ua_flush(struct vpmu_uarch *u, uint64_t linear);
void ua_unmap(struct vpmu_uarch *u, uint64_t linear, bool all);

/* ---- predict.c: targets of branches ---- */

struct ua_target {
	uint64_t from, to;
};

struct ua_predict {
	uint8_t *own, *global;    /* counters (predict.c) */
	struct ua_target *btb;    /* last target of a branch */
	struct ua_target *path;   /* target of an indirect branch, after the same history */
	uint32_t mask, btb_mask, depth_mask;
	uint32_t top;
	uint64_t history;         /* history of directions */
	uint64_t taken;           /* history of targets, the last dozen */
	uint64_t returns[64];
	uint8_t learn[128];       /* transitions of the counters */
};

size_t ua_predict_words(const struct vpmu_uarch_params *p);
uint64_t *ua_predict_init(struct vpmu_uarch *u, uint64_t *words);

/* ---- stream.c ---- */

/* The block that ran last, whose branch goes to the next one. */
struct ua_last {
	uint64_t next;        /* address of its end */
	uint32_t hash;        /* ua_hash() of next */
	/* enum vpmu_uarch_branch; NO_BRANCH also when its target is already known. */
	uint32_t branch;
};

/*
 * A block that ran before and costs nothing but sums when it runs again: its two words,
 * and what ua_new_block() would compute from them.
 *
 *	known[hash of begin]: | begin, more | epoch | as_last | first, last, lines, insns |
 *	                        the key: all three match
 *
 * Invariant: while the code front has this epoch, no bit of the second word is rare in the
 * current bank (UA_RARE), and fetching the lines would find all of them at the front.
 *
 * Each line that the code front drops breaks it, and so does another bank: both change
 * ua_front.epoch, the bank in its low bits. ua_new_block() records the block again when it
 * has run the long way and its own fetches have left the epoch as it was.
 */
struct ua_known_block {
	uint64_t begin, more;     /* its two words */
	uint64_t epoch;           /* ua_front.epoch of the code */
	struct ua_last as_last;
	uint64_t first, last;     /* lines, by their first bytes */
	uint32_t lines, insns;
};
#define UA_KNOWN 2048u

/* A branch that the records have, too. */
struct ua_noted {
	uint64_t to;
	uint16_t cycles;          /* since the one before */
	bool wrong;               /* it was mispredicted */
	bool there;               /* false: no branch, or one that was removed */
};

struct vpmu_uarch {
	struct ua_known_block known[UA_KNOWN]; /* each entry in one line of the host's cache */
	const struct vpmu_uarch_params *params;
	uint64_t (*translate)(void *ctx, uint64_t linear, uint8_t *shift);
	void *ctx;
	uint32_t threshold;       /* cycles */
	uint8_t bank;
	/* The second word of a block that began at half_begin is missing. */
	bool half;
	uint64_t half_begin;
	struct ua_last last_block;
	struct ua_account account;
	struct ua_memory memory;
	struct ua_predict predict;
	const struct vpmu_lbr *record; /* its branches are noted; NULL: none is */
	struct ua_noted noted[VPMU_LBR_RING];
	uint32_t n_noted;         /* those that were removed are not among them */
	bool interrupted;         /* the next block is the handler of an interrupt or fault */
	uint64_t noted_at;        /* time of the newest one */
	struct vpmu_uarch_access last;
	struct vpmu_uarch_counts counts;
};

static inline void ua_count(struct vpmu_uarch *u, enum vpmu_uarch_count c, uint64_t n)
{
	u->counts.word[c][u->bank] += n;
}

/* ---- the common part of the stream, inline ---- */

/* The time after @uops more are issued. */
static inline uint64_t ua_now(const struct ua_account *a, uint32_t uops)
{
	return a->now + ((a->part + uops) * a->per_slot >> 32);
}

/* The ring must not be full. */
static inline void ua_wait_push(struct ua_account *a, const struct ua_wait *w)
{
	a->wait[(a->first + a->waiting++) % UA_WAITS] = *w;
}

/* Remove the oldest load, which has its value. */
static inline void ua_wait_pop(struct ua_account *a)
{
	a->first = (a->first + 1) % UA_WAITS;
	if (!--a->waiting)
		a->coming_lines = 0;
}

/* A store leaves at @done, if those before it have left: one leaves per cycle. */
static inline void ua_leave(struct ua_account *a, uint64_t done)
{
	uint64_t last = a->store_last + 1;

	if (last < done)
		last = done;
	a->store_last = last;
	a->store[a->n_stores++ % UA_STORES_MAX] = last;
}

/* The time at which the store buffer, of @stores entries, has room for another one. */
static inline uint64_t ua_room(const struct ua_account *a, uint32_t stores)
{
	return a->store[(a->n_stores - stores) % UA_STORES_MAX];
}

/*
 * The distance from the beginning of the line that the front has in its place; all in
 * words of the stream, whose other bits amount to less than a byte.
 */
static inline uint64_t ua_in_front(const struct ua_front *f, uint64_t word)
{
	return word - f->line[word / VPMU_UARCH_WORD(UA_FRONT_LINE, 0) & f->mask];
}

#endif /* VPMU_UARCH_INTERNAL_H */
