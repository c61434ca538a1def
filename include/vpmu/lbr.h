/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Branch records (LBR): one stack per CPU, which the engine fills. It lies in a
 * ring, of which the newest VPMU_LBR_ENTRIES are the stack; registers of every
 * format are views of it.
 *
 * An act says how a branch is handled, by the ring that it ends in and by its
 * type. Filters, freezing and disabling change a few such bytes and no
 * translated code.
 */
#ifndef VPMU_LBR_H
#define VPMU_LBR_H

#include <vpmu/platform.h>

#define VPMU_LBR_ENTRIES 32 /* a power of two */
#define VPMU_LBR_RING (2 * VPMU_LBR_ENTRIES)

/* The first six are what architectural LBR calls BR_TYPE. */
enum vpmu_branch_type {
	VPMU_BRANCH_JCC,           /* conditional, taken */
	VPMU_BRANCH_JMP_INDIRECT,  /* near jump through register or memory */
	VPMU_BRANCH_JMP,           /* near direct jump */
	VPMU_BRANCH_CALL_INDIRECT, /* near call through register or memory */
	VPMU_BRANCH_CALL,          /* near direct call */
	VPMU_BRANCH_RET,           /* near return */
	VPMU_BRANCH_FAR,           /* far transfers, interrupts, exceptions */
	VPMU_BRANCH_TYPES = 8
};

struct vpmu_lbr_entry {
	uint64_t from, to; /* instruction pointers, not linear */
	uint64_t info;     /* VPMU_LBR_INFO() or VPMU_LBR_NEAR(), as the engine wrote it */
	uint64_t unused;
};

/*
 * Translated code needs no jump for the first two: it writes any branch to the
 * next entry, and then advances by the act.
 */
enum vpmu_branch_act {
	VPMU_BRANCH_DROP = 0,
	VPMU_BRANCH_PUSH = sizeof(struct vpmu_lbr_entry),
	VPMU_BRANCH_POP = 1, /* a return, in call-stack mode: removes the newest entry */
};

/* BR_TYPE in info: its place in registers, and its value for far branches. */
#define VPMU_LBR_TYPE_SHIFT	56
#define VPMU_LBR_TYPE_OTHER	8u
/* An engine may add these to an entry, in the form of vpmu_lbr_at(): see ops->finish_lbr. */
#define VPMU_LBR_MISPREDICTED	(1ull << 63)
#define VPMU_LBR_TIMED		(1ull << 60)
#define VPMU_LBR_CYCLES		0xffffull /* since the entry before, this at most */
/* Counts of the first four counters since the entry before: two bits for each. */
#define VPMU_LBR_LOG_SHIFT	32
#define VPMU_LBR_LOG_COUNTERS	4
#define VPMU_LBR_LOG		(0xffull << VPMU_LBR_LOG_SHIFT)
/*
 * The engine's place for it: small enough for an immediate of a host's
 * instruction.
 */
#define VPMU_LBR_ENGINE_SHIFT	16
#define VPMU_LBR_INFO(type) \
	((uint64_t)((type) < VPMU_BRANCH_FAR ? (type) : VPMU_LBR_TYPE_OTHER) << \
	 VPMU_LBR_ENGINE_SHIFT)
/*
 * Replaces that and `to` for a branch by less than 64 MB, @by bytes from its
 * own address. As an int it is extended to info's 64 bits.
 */
#define VPMU_LBR_NEAR_BITS	27
#define VPMU_LBR_NEAR_MARK	(1 << 20)
#define VPMU_LBR_NEAR(type, by) \
	((int32_t)((uint32_t)(by) >> 16 << 21 | VPMU_LBR_NEAR_MARK | \
		   (uint32_t)(type) << VPMU_LBR_ENGINE_SHIFT | ((uint32_t)(by) & 0xffff)))

/*
 * The engine's memory. The engine writes entries and next, for branches that
 * retire; the core does so while the CPU is outside of guest code. A pop clears
 * the entry that becomes the oldest of the stack.
 */
struct vpmu_lbr {
	struct vpmu_lbr_entry entry[VPMU_LBR_RING];
	uint64_t ler_from, ler_to, ler_info; /* the newest before the last interrupt
						or exception */
	uint64_t next; /* offset of the next entry, modulo the ring's size */
	uint8_t act[2][VPMU_BRANCH_TYPES]; /* enum vpmu_branch_act, for branches that
					      end in ring 0, and in others; the core
					      sets them */
	uint32_t on;                     /* some act is not DROP */
	uint32_t user;                   /* enum vpmu_lbr_user; the core's */
	/*
	 * A pop adds what it subtracts from next, so that the sum of both is
	 * the number of pushed entries, in bytes; it may wrap.
	 */
	uint64_t more;
};

/* The user whose acts are in force: front doors of one CPU share its memory. */
enum vpmu_lbr_user {
	VPMU_LBR_NOBODY,
	VPMU_LBR_ARCH,
	VPMU_LBR_PV,
};

/* The layout of a register that selects branches. */
struct vpmu_lbr_filter {
	uint64_t suppress; /* bits that suppress; the others capture */
	uint64_t stack;    /* call-stack mode; 0: there is none */
	uint8_t ring[2];   /* bit for branches that end in ring 0, in others */
	uint8_t type[VPMU_BRANCH_FAR + 1]; /* bit, by enum vpmu_branch_type */
};

/* LBR_SELECT of Intel and AMD, and IA32_LBR_CTL. */
extern const struct vpmu_lbr_filter vpmu_lbr_select, vpmu_lbr_ctl;

/** Record for @user the branches that @value of a register like @f admits. */
void vpmu_lbr_start(struct vpmu_lbr *l, enum vpmu_lbr_user user,
		    const struct vpmu_lbr_filter *f, uint64_t value);

/** Record nothing, unless another user records. */
void vpmu_lbr_stop(struct vpmu_lbr *l, enum vpmu_lbr_user user);

/**
 * Record a branch that retires, for an engine whose translated code does not.
 *
 * @user: it ends in a ring above 0
 *
 * vCPU's CPU, in guest code. Does not block.
 */
void vpmu_lbr_record(struct vpmu_lbr *l, enum vpmu_branch_type type, bool user,
		     uint64_t from, uint64_t to);

/** Record an interrupt or exception that was delivered. */
void vpmu_lbr_interrupt(struct vpmu_lbr *l, bool user, uint64_t from, uint64_t to);

/** Forget all entries; tos stays. */
void vpmu_lbr_clear(struct vpmu_lbr *l);

/** Number the newest entry @tos; all other entries are forgotten. */
void vpmu_lbr_restart(struct vpmu_lbr *l, uint64_t tos);

/**
 * Copy entries, their numbers and LER of @from; the number pushed, and the
 * acts, stay.
 */
void vpmu_lbr_copy(struct vpmu_lbr *to, const struct vpmu_lbr *from);

/**
 * Entry @age, 0 being the newest, with all its fields in the form of registers.
 */
struct vpmu_lbr_entry *vpmu_lbr_at(struct vpmu_lbr *l, unsigned int age);

/**
 * The newest entry's number in a ring of @n, a power of two and at most the
 * stack's.
 */
static inline unsigned int vpmu_lbr_tos(const struct vpmu_lbr *l, unsigned int n)
{
	return (unsigned int)l->next / VPMU_BRANCH_PUSH % n;
}

/**
 * The number of entries pushed since @seen, which is updated; it begins at 0.
 */
static inline uint64_t vpmu_lbr_inserted(const struct vpmu_lbr *l, uint64_t *seen)
{
	uint64_t before = *seen;

	*seen = l->next + l->more;
	return (*seen - before) / VPMU_BRANCH_PUSH;
}

#endif /* VPMU_LBR_H */
