/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A model of a micro-architecture: caches, TLBs, branch prediction and an
 * account of cycles, fed with the stream that a vCPU has executed. It is
 * deterministic: the same stream gives the same numbers. No part of it is exact
 * for any real CPU; a program that shows a number of it has to say "modelled".
 *
 * One vpmu_uarch per vCPU; a vpmu_uarch_llc may be shared by several, which may
 * then run at the same time: another thread may see an access to it half done,
 * which costs at most a wrong hit or miss.
 *
 * Contexts: any thread, one call at a time on each vpmu_uarch; none blocks. So
 * an embedder may run a full buffer while the vCPU fills the next one.
 */
#ifndef VPMU_UARCH_H
#define VPMU_UARCH_H

#include <vpmu/lbr.h>
#include <vpmu/signal.h>
#include <vpmu/result.h>

struct vpmu_uarch;
struct vpmu_uarch_llc;

struct vpmu_uarch_counts {
	uint64_t word[VPMU_UARCH_COUNTS][VPMU_BANK_COUNT];
};

/*
 * A set-associative array. l1d, l2 and llc replace the least recently used way;
 * l1i and the TLBs the first one that has not been used since all others of its
 * set were.
 */
struct vpmu_uarch_geometry {
	uint32_t sets;        /* a power of two */
	uint32_t ways;        /* 1 to 32; for l2, llc and stlb also 0: there is none */
	/*
	 * Bytes of a line, a power of two; 0 in TLBs, whose pages have sizes of
	 * their own.
	 */
	uint32_t unit_bytes;
};

/*
 * A CPU; all data. Latencies are in cycles from issue until the value is
 * available.
 */
struct vpmu_uarch_params {
	uint32_t size;        /* sizeof(struct vpmu_uarch_params) */
	const char *name;
	/* All have the same line size; llc is not used if one is shared. */
	struct vpmu_uarch_geometry l1i, l1d, l2, llc;
	struct vpmu_uarch_geometry itlb, dtlb, stlb;
	uint8_t width;        /* slots per cycle, 1 to 16 */
	uint16_t window;      /* uops between the oldest that waits and the youngest */
	uint16_t fills;       /* lines in flight to L1D at once, 1 to 32 */
	uint16_t stores;      /* store buffer, 1 to 128 */
	uint16_t l1d_cycles, l2_cycles, llc_cycles, dram_cycles;
	uint16_t line_cycles; /* memory bandwidth: cycles per line */
	uint16_t stlb_cycles, walk_cycles; /* in addition */
	uint16_t mispredict_cycles, resteer_cycles, clear_cycles;
	uint16_t divide_cycles;
	uint8_t history_bits; /* size of the direction predictor, 4 to 20 */
	uint8_t btb_bits;     /* log2 of its entries, 4 to 16 */
	uint8_t returns;      /* depth of the return stack, power of two up to 64 */
	uint8_t prefetch;     /* lines that a stream is kept ahead, 0: no prefetcher */
};

/**
 * Parameters of a CPU model by its name (model.h), or of the most similar one;
 * never NULL. Pure.
 */
const struct vpmu_uarch_params *vpmu_uarch_params(const char *model);

/**
 * Check parameters. Pure. Returns NULL, or a static string that describes the
 * error.
 */
const char *vpmu_uarch_check(const struct vpmu_uarch_params *params);

struct vpmu_uarch_config {
	uint32_t size;        /* sizeof(struct vpmu_uarch_config) */
	const struct vpmu_uarch_params *params; /* unchanged as long as the model lives */
	/*
	 * Last level that several models share, as cores of one CPU do; NULL:
	 * one of its own.
	 */
	struct vpmu_uarch_llc *llc;
	/*
	 * Physical address of @linear, with log2 of its page's bytes in @shift
	 * (12, 21, 30). Called by vpmu_uarch_run() on its thread, on a miss of
	 * the modelled TLBs only. NULL: caches are looked up by linear
	 * addresses, in pages of 4 KiB, which is faster and does not depend on
	 * the guest's placement of pages.
	 */
	uint64_t (*translate)(void *ctx, uint64_t linear, uint8_t *shift);
	void *ctx;
};

/** Bytes (a multiple of 8; aligned to 8, to the host's cache lines it is faster), or 0 when
 * the parameters are wrong. Pure. */
size_t vpmu_uarch_size(const struct vpmu_uarch_config *cfg);
size_t vpmu_uarch_llc_size(const struct vpmu_uarch_params *params);

/** Set up in memory of that size: everything is cold. Returns 0, or -VPMU_EINVAL. */
int vpmu_uarch_init(struct vpmu_uarch *u, const struct vpmu_uarch_config *cfg);
int vpmu_uarch_llc_init(struct vpmu_uarch_llc *llc, const struct vpmu_uarch_params *params);

/*
 * The stream: 64-bit words in program order, which generated code can store
 * inline. Bits 63:7 are a linear address, bits 2:0 the kind of word.
 */
#define VPMU_UARCH_WORD(address, kind)	(((uint64_t)(address) << 7) | (kind))
#define VPMU_UARCH_ADDRESS(word)	((uint64_t)((int64_t)(word) >> 7))
#define VPMU_UARCH_KIND			7u
enum vpmu_uarch_kind {
	/*
	 * Begin of a block of consecutive instructions; the next word has its
	 * properties (below).
	 */
	VPMU_UARCH_BLOCK = 0,
	VPMU_UARCH_LOAD = 1,     /* with VPMU_UARCH_BYTES, _DEPENDENT */
	VPMU_UARCH_STORE = 2,    /* with VPMU_UARCH_BYTES */
	VPMU_UARCH_MODIFY = 3,   /* a load and a store, with VPMU_UARCH_BYTES, _DEPENDENT
				    meaning locked */
	VPMU_UARCH_SOFT_PREFETCH = 4, /* or, with VPMU_UARCH_FLUSH, CLFLUSH of that line */
	/* An interrupt or a fault, before the instruction at this address: VPMU_UARCH_USER */
	VPMU_UARCH_EVENT = 5,
	/*
	 * Translations of this page are invalid; with VPMU_UARCH_BYTES(0) those
	 * of all pages.
	 */
	VPMU_UARCH_UNMAP = 6,
	VPMU_UARCH_SERIALIZE = 7, /* an instruction that waits for all earlier ones */
};
/* log2 of an access's bytes plus 1, 1 to 7 */
#define VPMU_UARCH_BYTES(log2)		((((log2) + 1u) & 7u) << 3)
#define VPMU_UARCH_DEPENDENT		(1u << 6) /* its address came out of a load */
#define VPMU_UARCH_FLUSH		(1u << 6) /* of SOFT_PREFETCH: the line leaves all caches */
#define VPMU_UARCH_USER			(1u << 6) /* of EVENT: in a ring above 0 */

/* The second word of a block, which is known when the block is translated. */
#define VPMU_UARCH_B_INSNS(n)		((uint64_t)(n))          /* 0 to 1023 */
#define VPMU_UARCH_B_LENGTH(bytes)	((uint64_t)(bytes) << 10) /* 0 to 16383 */
#define VPMU_UARCH_B_BRANCH(kind)	((uint64_t)(kind) << 24) /* enum vpmu_uarch_branch */
#define VPMU_UARCH_B_BANK(bank)		((uint64_t)(bank) << 27) /* enum vpmu_bank */
#define VPMU_UARCH_B_UOPS(n)		((uint64_t)(n) << 32)    /* 0 to 4095: beyond one
								    for each instruction */
#define VPMU_UARCH_B_DIVIDES(n)		((uint64_t)(n) << 44)    /* 0 to 255 */

/*
 * The last instruction of a block. Its target is the beginning of the next
 * block.
 */
enum vpmu_uarch_branch {
	VPMU_UARCH_NO_BRANCH,
	VPMU_UARCH_JCC,
	VPMU_UARCH_JMP,
	VPMU_UARCH_CALL,
	VPMU_UARCH_RET,
	VPMU_UARCH_JMP_INDIRECT,
	VPMU_UARCH_CALL_INDIRECT,
	VPMU_UARCH_FAR,          /* never predicted: it serializes */
};

/**
 * Run @n words of the stream. A block's two words may come in two calls; the
 * words of its accesses follow them. It never fails: words that make no sense
 * are skipped. The work is bounded by n.
 */
void vpmu_uarch_run(struct vpmu_uarch *u, const uint64_t *words, size_t n);

/** Counts since it was set up; monotone. */
const struct vpmu_uarch_counts *vpmu_uarch_counts(const struct vpmu_uarch *u);

/** A count's name, "load-l1"; NULL for none. Pure. */
const char *vpmu_uarch_name(enum vpmu_uarch_count count);

/** From now on loads of more than @cycles count as VPMU_UARCH_LOAD_SLOW; at first 0. */
void vpmu_uarch_threshold(struct vpmu_uarch *u, uint32_t cycles);

/**
 * From now on the model notes prediction and time of the branches that @l records, by the acts
 * of @l at the time of vpmu_uarch_run(); NULL: of none. The acts change between two runs only.
 */
void vpmu_uarch_record(struct vpmu_uarch *u, const struct vpmu_lbr *l);

/**
 * Write what was noted into @entries, the newest @n, as ops->finish_lbr has them; an entry of a
 * branch that was not in the stream stays as it is. All that has retired was run.
 *
 * @base: what was added to instruction pointers to make the stream's addresses
 * @next: the stream's address of the next instruction, to which the last branch has gone
 * @user: its ring is above 0
 */
void vpmu_uarch_finish(struct vpmu_uarch *u, struct vpmu_lbr_entry *const *entries, unsigned int n,
		       uint64_t base, uint64_t next, bool user);

/* Level at which the last access was served. */
enum vpmu_uarch_level {
	VPMU_UARCH_AT_L1,
	VPMU_UARCH_AT_FB,
	VPMU_UARCH_AT_L2,
	VPMU_UARCH_AT_LLC,
	VPMU_UARCH_AT_DRAM,
};

struct vpmu_uarch_access {
	uint64_t address;     /* linear */
	uint32_t cycles;      /* cycles until its value was available */
	uint8_t level;        /* enum vpmu_uarch_level */
	uint8_t tlb;          /* 0 first level, 1 second level, 2 walked */
	bool store, locked, split;
};
const struct vpmu_uarch_access *vpmu_uarch_last(const struct vpmu_uarch *u);

/** The bank of the block that runs: 0 before the first. */
enum vpmu_bank vpmu_uarch_bank(const struct vpmu_uarch *u);

#endif /* VPMU_UARCH_H */
