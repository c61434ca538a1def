/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The parts of a modelled CPU. Each file has one; uarch.c puts them together. */
#ifndef VPMU_UARCH_INTERNAL_H
#define VPMU_UARCH_INTERNAL_H

#include <vpmu/uarch.h>

/* ---- array.c: tags, the most recently used of a set first ---- */

/* A tag is (key + 1) << 1 | mark: never 0, which is an empty way. */
struct ua_array {
	uint64_t *tag;        /* sets times ways */
	uint64_t *value;      /* one for each tag, or NULL */
	uint32_t set_mask, ways;
	uint8_t size;         /* of pages, in TLBs: what was found last */
};

size_t ua_array_words(const struct vpmu_uarch_geometry *g, bool values);
uint64_t *ua_array_init(struct ua_array *a, const struct vpmu_uarch_geometry *g,
			bool values, uint64_t *words);

/* Finds @key and makes it the most recent. Its value goes to *@value, and whether it
 * was marked to *@marked, whose mark goes; each may be NULL. */
bool ua_array_find(struct ua_array *a, uint64_t key, uint64_t *value, bool *marked);
/*
 * The same of the most recent of its set, where nothing has to move; false says nothing.
 * A word at a time, as another thread may change it (array.c).
 */
static inline bool ua_array_front(const struct ua_array *a, uint64_t key, uint64_t *value)
{
	size_t at = (size_t)(key & a->set_mask) * a->ways;

	if (!a->ways || *(const volatile uint64_t *)&a->tag[at] != (key + 1) << 1)
		return false;
	if (value)
		*value = a->value[at];
	return true;
}

/* Whether @key is there; changes nothing. */
bool ua_array_has(const struct ua_array *a, uint64_t key);
/* Puts @key, which is not there, in place of the least recent of its set. */
void ua_array_put(struct ua_array *a, uint64_t key, uint64_t value, bool marked);
void ua_array_drop(struct ua_array *a, uint64_t key);
void ua_array_clear(struct ua_array *a);

/* ---- account.c: where each slot goes ---- */

#define UA_FILLS_MAX	32u
#define UA_WAITS	64u
#define UA_STORES_MAX	128u
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
	uint32_t next_fill, next_store, next_coming;
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
void ua_issue(struct vpmu_uarch *u, uint32_t uops, uint32_t heavy);
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

struct ua_stream {
	uint64_t page;        /* of 4 KiB, by lines; plus 1, 0: free */
	uint32_t used;        /* when: the least is replaced */
	uint8_t last, ahead;  /* lines of the page */
	int8_t step;          /* 0, 1, -1 */
	uint8_t steady;       /* how often that way already */
};

struct ua_memory {
	struct ua_array l1i, l1d, l2, itlb, dtlb, stlb;
	struct vpmu_uarch_llc *llc, own;
	uint64_t fetched;     /* the line that was fetched last, plus 1 */
	uint64_t code_page;   /* of 4 KiB, that it is in, plus 1, and where that is */
	uint64_t code_physical;
	uint64_t data_page;   /* likewise, of the access that was translated last */
	uint64_t data_physical;
	uint8_t line_shift;
	uint32_t line_mask;
	uint32_t streams_used;
	struct ua_stream stream[UA_STREAMS];
};

size_t ua_memory_words(const struct vpmu_uarch_params *p, bool llc);
uint64_t *ua_memory_init(struct vpmu_uarch *u, struct vpmu_uarch_llc *llc, uint64_t *words);
void ua_fetch(struct vpmu_uarch *u, uint64_t linear, uint32_t bytes);
void ua_access(struct vpmu_uarch *u, uint64_t word, bool load, bool store);
/* The same of a load and of a store, sooner. */
void ua_access_load(struct vpmu_uarch *u, uint64_t word);
void ua_access_store(struct vpmu_uarch *u, uint64_t word);
void ua_soft_prefetch(struct vpmu_uarch *u, uint64_t linear);
void ua_unmap(struct vpmu_uarch *u, uint64_t linear, bool all);

/* ---- predict.c: where a branch will go ---- */

struct ua_target {
	uint64_t from, to;
};

struct ua_predict {
	uint8_t *bimodal, *global, *choice; /* 2-bit counters */
	struct ua_target *btb;    /* the last target of a branch */
	struct ua_target *path;   /* of an indirect one, after the same history */
	uint64_t returns[64];
	uint64_t history;         /* of directions */
	uint64_t taken;           /* of targets, the last dozen */
	uint32_t top;
};

size_t ua_predict_words(const struct vpmu_uarch_params *p);
uint64_t *ua_predict_init(struct vpmu_uarch *u, uint64_t *words);
/* A branch whose next instruction in memory is @next has gone to @to. */
void ua_branch(struct vpmu_uarch *u, enum vpmu_uarch_branch kind, uint64_t next, uint64_t to);

struct vpmu_uarch {
	const struct vpmu_uarch_params *params;
	uint64_t (*translate)(void *ctx, uint64_t linear, uint8_t *shift);
	void *ctx;
	uint32_t threshold;       /* cycles */
	uint8_t bank;
	/* A block whose second word has not come yet, and a branch that has not gone
	 * anywhere yet. */
	bool half;
	uint8_t pending;          /* enum vpmu_uarch_branch */
	uint64_t begin, next;
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

#endif /* VPMU_UARCH_INTERNAL_H */
