/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Branch records (LBR): one stack per CPU, which the engine fills. It lies in a ring,
 * of which the newest VPMU_LBR_ENTRIES are the stack; registers of every format are
 * views of it.
 *
 * What becomes of a branch is looked up by the ring that it ends in and by its
 * type, so that filters, freezing and switching off change a few bytes and no
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
	uint64_t info;     /* of the engine's VPMU_LBR_INFO(), or VPMU_LBR_NEAR() */
	uint64_t unused;
};

/*
 * Translated code needs no jump for the first two: it writes any branch to where the
 * next entry goes, and then moves that on by the act.
 */
enum vpmu_branch_act {
	VPMU_BRANCH_DROP = 0,
	VPMU_BRANCH_PUSH = sizeof(struct vpmu_lbr_entry),
	VPMU_BRANCH_POP = 1, /* a return, in call-stack mode: takes the newest away */
};

/* BR_TYPE in info: where registers have it, and what far branches have there. */
#define VPMU_LBR_TYPE_SHIFT	56
#define VPMU_LBR_TYPE_OTHER	8u
/* The engine has it elsewhere: small enough to be part of a host's instruction. */
#define VPMU_LBR_ENGINE_SHIFT	16
#define VPMU_LBR_INFO(type) \
	((uint64_t)((type) < VPMU_BRANCH_FAR ? (type) : VPMU_LBR_TYPE_OTHER) << \
	 VPMU_LBR_ENGINE_SHIFT)
/*
 * Instead of that, and of `to`: a branch by less than 64 MB, @by bytes from its own
 * address. As an int it is extended to info's 64 bits.
 */
#define VPMU_LBR_NEAR_BITS	27
#define VPMU_LBR_NEAR_MARK	(1 << 20)
#define VPMU_LBR_NEAR(type, by) \
	((int32_t)((uint32_t)(by) >> 16 << 21 | VPMU_LBR_NEAR_MARK | \
		   (uint32_t)(type) << VPMU_LBR_ENGINE_SHIFT | ((uint32_t)(by) & 0xffff)))

/*
 * The engine's memory. It writes entries and next, for branches that retire; the
 * core does while the CPU is outside of guest code. A pop makes the entry all 0 that
 * becomes the oldest of the stack.
 */
struct vpmu_lbr {
	struct vpmu_lbr_entry entry[VPMU_LBR_RING];
	uint64_t ler_from, ler_to, ler_info; /* the newest before the last interrupt
						or exception */
	uint64_t next; /* where the next entry goes: bytes, modulo the ring's size */
	uint8_t act[2][VPMU_BRANCH_TYPES]; /* enum vpmu_branch_act, for branches that
					      end in ring 0, and in others; the core
					      sets them */
	uint32_t on;                     /* some act is not DROP */
	uint32_t user;                   /* enum vpmu_lbr_user; the core's */
	uint64_t more; /* a pop adds what it takes from next, so that the sum of both
			  is how many entries were pushed, in bytes; it may wrap */
};

/* Whose acts are in force: front doors of one CPU share its memory. */
enum vpmu_lbr_user {
	VPMU_LBR_NOBODY,
	VPMU_LBR_ARCH,
	VPMU_LBR_PV,
};

/* How a register says what is to be recorded. */
struct vpmu_lbr_filter {
	uint64_t suppress; /* its bits that suppress; others capture */
	uint64_t stack;    /* call-stack mode; 0: there is none */
	uint8_t ring[2];   /* bit: ending in ring 0, in others */
	uint8_t type[VPMU_BRANCH_FAR + 1]; /* bit, by enum vpmu_branch_type */
};

/* LBR_SELECT of Intel and AMD, and IA32_LBR_CTL. */
extern const struct vpmu_lbr_filter vpmu_lbr_select, vpmu_lbr_ctl;

/** Record for @user what @value of a register like @f lets through. */
void vpmu_lbr_start(struct vpmu_lbr *l, enum vpmu_lbr_user user,
		    const struct vpmu_lbr_filter *f, uint64_t value);

/** Record nothing, unless it is for somebody else. */
void vpmu_lbr_stop(struct vpmu_lbr *l, enum vpmu_lbr_user user);

/**
 * What the engine does at a branch that retires, unless translated code does it.
 *
 * @user: whether it ends in a ring above 0
 *
 * vCPU's CPU, in guest code. Does not block.
 */
void vpmu_lbr_record(struct vpmu_lbr *l, enum vpmu_branch_type type, bool user,
		     uint64_t from, uint64_t to);

/** The same for an interrupt or exception that was delivered. */
void vpmu_lbr_interrupt(struct vpmu_lbr *l, bool user, uint64_t from, uint64_t to);

/** Forget all entries; tos stays. */
void vpmu_lbr_clear(struct vpmu_lbr *l);

/** Number the newest entry @tos: whatever else there was is forgotten. */
void vpmu_lbr_restart(struct vpmu_lbr *l, uint64_t tos);

/** Entries, their numbers and LER of @from; what was pushed, and the acts, stay. */
void vpmu_lbr_copy(struct vpmu_lbr *to, const struct vpmu_lbr *from);

/** Entry @age, 0 being the newest, with all its fields as registers have them. */
struct vpmu_lbr_entry *vpmu_lbr_at(struct vpmu_lbr *l, unsigned int age);

/** The newest's number in a ring of @n, a power of two and at most the stack's. */
static inline unsigned int vpmu_lbr_tos(const struct vpmu_lbr *l, unsigned int n)
{
	return (unsigned int)l->next / VPMU_BRANCH_PUSH % n;
}

/** How many entries were pushed since @seen, which then is now; at first it is 0. */
static inline uint64_t vpmu_lbr_inserted(const struct vpmu_lbr *l, uint64_t *seen)
{
	uint64_t before = *seen;

	*seen = l->next + l->more;
	return (*seen - before) / VPMU_BRANCH_PUSH;
}

#endif /* VPMU_LBR_H */
