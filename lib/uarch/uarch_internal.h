/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The parts of a modelled CPU. Each file has one; uarch.c puts them together. */
#ifndef VPMU_UARCH_INTERNAL_H
#define VPMU_UARCH_INTERNAL_H

#include <vpmu/uarch.h>

/* What each word of the stream goes through: calls would take a tenth of the time. */
#define UA_INLINE inline __attribute__((always_inline))
/* Which way the compiler lays out without a jump: jumps that are taken are most of what
 * the common case costs. */
#define UA_MOSTLY(x) __builtin_expect(!!(x), 1)
#define UA_RARELY(x) __builtin_expect(!!(x), 0)

/* ---- array.c: tags ---- */

/* A tag is (key + 1) << 1 | mark: never 0, which is an empty way. */
struct ua_array {
	uint64_t *tag;        /* sets times ways */
	uint64_t *value;      /* one for each tag, with marks instead of LRU; or NULL */
	uint32_t set_mask, ways;
	uint8_t size;         /* of pages, in TLBs: what was found last */
};

size_t ua_array_words(const struct vpmu_uarch_geometry *g, bool values);
uint64_t *ua_array_init(struct ua_array *a, const struct vpmu_uarch_geometry *g,
			bool values, uint64_t *words);

/* Finds @key and makes it the most recent. Whether it was marked goes to *@marked, which
 * may be NULL; else the mark goes. */
bool ua_array_find(struct ua_array *a, uint64_t key, bool *marked);
/*
 * The same of the most recent of its set, where nothing has to move; false says nothing.
 * A word at a time, as another thread may change it (array.c).
 */
static inline bool ua_array_front(const struct ua_array *a, uint64_t key)
{
	size_t at = (size_t)(key & a->set_mask) * a->ways;

	return a->ways && *(const volatile uint64_t *)&a->tag[at] == (key + 1) << 1;
}

/* With marks instead of LRU: find @key and mark it; put it in an unmarked one's place. */
bool ua_marked_find(struct ua_array *a, uint64_t key, uint64_t *value);
void ua_marked_put(struct ua_array *a, uint64_t key, uint64_t value);

/* Whether @key is there; changes nothing. */
bool ua_array_has(const struct ua_array *a, uint64_t key);
/* Puts @key, which is not there, in place of the least recent of its set. */
void ua_array_put(struct ua_array *a, uint64_t key, bool marked);
void ua_array_drop(struct ua_array *a, uint64_t key);
void ua_array_clear(struct ua_array *a);

/* ---- account.c: where each slot goes ---- */

#define UA_FILLS_MAX	32u
#define UA_WAITS	64u
#define UA_STORES_MAX	128u	/* a power of two: n_stores wraps */
#define UA_COMING	32u	/* lines that the prefetcher has asked for */

/* A load whose value is not there yet. */
struct ua_wait {
	uint64_t done;        /* when it will be */
	uint64_t uop;         /* issued before it */
	uint64_t line;
	uint8_t level;        /* enum vpmu_uarch_level */
};

struct ua_account {
	uint64_t now;         /* cycles */
	uint64_t uops;        /* issued */
	uint64_t chain;       /* when the latest load has its value */
	uint64_t memory_free; /* when memory can begin with another line */
	uint32_t part;        /* slots of this cycle that are gone, below width */
	uint64_t per_slot;    /* cycles, times 2^32, to multiply instead of dividing */
	uint32_t first, waiting; /* of @wait, a ring */
	uint64_t coming_lines; /* a bit for each of @wait that has missed, by its line */
	struct ua_wait wait[UA_WAITS];
	uint64_t fill[UA_FILLS_MAX];   /* when each fill buffer is free; a ring */
	uint64_t store[UA_STORES_MAX]; /* when each store leaves; a ring */
	uint64_t store_last;
	uint32_t next_fill, n_stores, next_coming;
	struct {
		uint64_t line, done;
	} coming[UA_COMING];
};

enum ua_why {
	UA_MISPREDICT,
	UA_CLEAR,
	UA_FETCH,     /* of a line, or from another place */
	UA_MEMORY,    /* a load */
	UA_STORE,
	UA_DIVIDE,
	UA_DRAIN,
};

void ua_account_init(struct vpmu_uarch *u);
void ua_stall(struct vpmu_uarch *u, enum ua_why why, uint64_t cycles);
/* @uops have been issued since it was called last. @load is how many of them before the
 * last load of a line that was there, plus 1; 0: none. */
void ua_settle(struct vpmu_uarch *u, uint32_t uops, uint32_t load);
/* The oldest load that waits: until its value is there. */
void ua_wait_first(struct vpmu_uarch *u);
/* A load finds its line at @level. Returns the cycles until its value is there. */
uint32_t ua_load(struct vpmu_uarch *u, uint64_t line, enum vpmu_uarch_level *level,
		 uint32_t walk, bool dependent);
void ua_store(struct vpmu_uarch *u, enum vpmu_uarch_level level);
/* The prefetcher has asked for a line, of memory or not. */
void ua_coming(struct vpmu_uarch *u, uint64_t line, bool dram);
/* All that is on its way is waited for. */
void ua_drain(struct vpmu_uarch *u);

/* ---- memory.c: translation, caches, the prefetcher ---- */

struct vpmu_uarch_llc {
	struct ua_array array;
};

#define UA_STREAMS 16u
#define UA_PAGE_SHIFT 12u
#define UA_IN_PAGE ((1ull << UA_PAGE_SHIFT) - 1)
#define UA_NOWHERE (1ull << 62) /* no address has 63 bits */

/* Translations of all sizes share an array; the size is part of the key, above what
 * says which set. */
#define UA_KEY_SIZE 56
static const uint8_t ua_shifts[] = { 12, 21, 30 };

static inline uint64_t ua_page_key(uint64_t linear, uint32_t size)
{
	return linear >> ua_shifts[size] | (uint64_t)size << UA_KEY_SIZE;
}

struct ua_stream {
	uint64_t page;        /* of 4 KiB, by lines; plus 1, 0: free */
	uint32_t used;        /* when: the least is replaced */
	uint8_t last, ahead;  /* lines of the page */
	int8_t step;          /* 0, 1, -1 */
	uint8_t steady;       /* how often that way already */
};

#define UA_FRONT 64u	/* sets of a first level, and of its TLB, that are told apart */
#define UA_FRONT_WAYS 8u
#define UA_FRONT_LINE 64u /* bytes: what today's CPUs have; nothing is known with others */

/* A page of 4 KiB that is marked in its TLB while the epoch is this. */
#define UA_PAGES 64u
struct ua_known_page {
	uint64_t linear, physical, epoch;
	uint32_t set;             /* of the TLB */
};

/*
 * Lines of a first level by their linear addresses that another access would find there,
 * change nothing by that, and take no time beyond a hit's: each is the most recent of its
 * set or marked, is not on its way, and its page is marked.
 */
struct ua_front {
	struct ua_known_page page[UA_PAGES];
	uint64_t page_epoch;      /* another one when a mark may have gone; never 0 */
	uint64_t line[UA_FRONT * UA_FRONT_WAYS]; /* as VPMU_UARCH_WORD() of its first byte */
	uint64_t by_page[UA_FRONT]; /* sets of lines, by the TLB's set of their page */
	uint32_t mask;
	uint32_t set_mask;
	uint64_t epoch;           /* another one when a line goes; modulo VPMU_BANK_COUNT it is
				     the bank, of code */
	bool off;                 /* the geometry allows no lookup by linear addresses */
};

struct ua_memory {
	struct ua_front data;     /* LRU: one line of each set */
	struct ua_front code;
	struct ua_array l1i, l1d, l2, itlb, dtlb, stlb;
	struct vpmu_uarch_llc *llc, own;
	uint64_t fetched;     /* the line that was fetched last, by its first byte */
	uint8_t line_shift;
	uint64_t room[8];     /* where in its line an access may begin, by its size's code */
	uint32_t streams_used;
	struct ua_stream stream[UA_STREAMS];
};

size_t ua_memory_words(const struct vpmu_uarch_params *p, bool llc);
uint64_t *ua_memory_init(struct vpmu_uarch *u, struct vpmu_uarch_llc *llc, uint64_t *words);
void ua_fetch_line(struct vpmu_uarch *u, uint64_t linear);
void ua_access(struct vpmu_uarch *u, uint64_t word);
/* An access to one line that is in L1D, and whose page is marked: it is at the front now. */
bool ua_to_front(struct vpmu_uarch *u, uint64_t word);
void ua_soft_prefetch(struct vpmu_uarch *u, uint64_t linear);
void ua_unmap(struct vpmu_uarch *u, uint64_t linear, bool all);

/* ---- predict.c: where a branch will go ---- */

struct ua_target {
	uint64_t from, to;
};

struct ua_predict {
	uint8_t *own, *global;    /* counters (predict.c) */
	struct ua_target *btb;    /* the last target of a branch */
	struct ua_target *path;   /* of an indirect one, after the same history */
	uint32_t mask, btb_mask, depth_mask;
	uint32_t top;
	uint64_t history;         /* of directions */
	uint64_t taken;           /* of targets, the last dozen */
	uint64_t returns[64];
	uint8_t learn[128];       /* what counters become */
};

size_t ua_predict_words(const struct vpmu_uarch_params *p);
uint64_t *ua_predict_init(struct vpmu_uarch *u, uint64_t *words);

/* ---- stream.c ---- */

/* The block that ran last, whose branch goes to the next one. */
struct ua_last {
	uint64_t next;        /* where it ends */
	uint32_t hash;        /* ua_hash() of that */
	uint32_t branch;      /* enum vpmu_uarch_branch; NO_BRANCH also when it is known
				 where that went */
};

/*
 * A block as it ran before: of its second word nothing is rare (stream.c), and to fetch
 * its lines would find them all and change nothing while the epoch is this.
 */
struct ua_known_block {
	uint64_t begin, more;     /* its words */
	uint64_t epoch;           /* of struct ua_front */
	struct ua_last as_last;
	uint64_t first, last;     /* lines, by their first bytes */
	uint32_t lines, insns;
};
#define UA_KNOWN 2048u

struct vpmu_uarch {
	struct ua_known_block known[UA_KNOWN]; /* each in one line of the host's cache */
	const struct vpmu_uarch_params *params;
	uint64_t (*translate)(void *ctx, uint64_t linear, uint8_t *shift);
	void *ctx;
	uint32_t threshold;       /* cycles */
	uint8_t bank;
	bool half;                /* of a block that began here the second word has not come */
	uint64_t half_begin;
	struct ua_last last_block;
	struct ua_account account;
	struct ua_memory memory;
	struct ua_predict predict;
	struct vpmu_uarch_access last;
	struct vpmu_uarch_counts counts;
};

static inline void ua_count(struct vpmu_uarch *u, enum vpmu_uarch_count c, uint64_t n)
{
	u->counts.word[c][u->bank] += n;
}

/* ---- what most of the stream is, inline ---- */

/* Now, when @uops more have been issued. */
static inline uint64_t ua_now(const struct ua_account *a, uint32_t uops)
{
	return a->now + ((a->part + uops) * a->per_slot >> 32);
}

/* The ring is not full. */
static inline void ua_wait_push(struct ua_account *a, const struct ua_wait *w)
{
	a->wait[(a->first + a->waiting++) % UA_WAITS] = *w;
}

/* The oldest load has its value. */
static inline void ua_wait_pop(struct ua_account *a)
{
	a->first = (a->first + 1) % UA_WAITS;
	if (!--a->waiting)
		a->coming_lines = 0;
}

/* A store is done at @done, if those before it are: one leaves in a cycle. */
static inline void ua_leave(struct ua_account *a, uint64_t done)
{
	uint64_t last = a->store_last + 1;

	if (last < done)
		last = done;
	a->store_last = last;
	a->store[a->n_stores++ % UA_STORES_MAX] = last;
}

/* When the store buffer, of so many, has room for another one. */
static inline uint64_t ua_room(const struct ua_account *a, uint32_t stores)
{
	return a->store[(a->n_stores - stores) % UA_STORES_MAX];
}

/* How far it is behind the beginning of the line at the front that it may be in; all as
 * words of the stream, whose other bits come to less than a byte. */
static inline uint64_t ua_in_front(const struct ua_front *f, uint64_t word)
{
	return word - f->line[word / VPMU_UARCH_WORD(UA_FRONT_LINE, 0) & f->mask];
}

#endif /* VPMU_UARCH_INTERNAL_H */
