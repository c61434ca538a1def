/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside of the architectural PMU. What differs between vendors, versions and
 * configurations is resolved once, at init, into the masks and counts of
 * struct vpmu_arch; nothing else looks at the vendor or the version.
 *
 * A set of counters is a 32-bit bitmap by `pmc` (GP from 0, then fixed). The
 * registers have a layout of their own (GP from bit 0, fixed from bit 32):
 * vpmu_pmc_set() and vpmu_pmc_bits() convert.
 */
#ifndef VPMU_ARCH_INTERNAL_H
#define VPMU_ARCH_INTERNAL_H

#include <vpmu/arch.h>

#define ARCH_GP_MAX	8
#define ARCH_FIXED_MAX	3	/* until topdown adds SLOTS */
#define ARCH_PMC_MAX	(ARCH_GP_MAX + ARCH_FIXED_MAX)
#define ARCH_K7_PMCS	4	/* AMD: counters with legacy addresses */
#define ARCH_LEAVES	5	/* CPUID leaves that are ours in part */

/* AMD's bits of a selector that tell nested guests from the rest. */
#define ARCH_EVTSEL_ONLY	(VPMU_EVTSEL_GUEST_ONLY | VPMU_EVTSEL_HOST_ONLY)

#define ARCH_BANKS_NESTED	(VPMU_BANK_BIT(VPMU_BANK_NESTED_KERNEL) | \
				 VPMU_BANK_BIT(VPMU_BANK_NESTED_USER))
#define ARCH_BANKS		(VPMU_BANKS_KERNEL | VPMU_BANKS_USER)

/* Kinds of registers by what they depend on: vpmu_arch.has[] tells how many. */
enum arch_has {
	ARCH_HAS_NONE,         /* of features that are not offered: none */
	ARCH_HAS_ALWAYS,
	ARCH_HAS_GP,
	ARCH_HAS_GP_FULL,      /* full-width aliases */
	ARCH_HAS_FIXED,
	ARCH_HAS_GLOBAL,       /* version 2 */
	ARCH_HAS_STREAMLINED,  /* version 4 */
	ARCH_HAS_CAPABILITIES, /* PDCM */
	/* From here on no register of ours at all, unless vpmu_arch.known says so. */
	ARCH_HAS_K7,           /* AMD: the first four counters' legacy addresses */
	ARCH_HAS_AMD,          /* PerfCtrExtCore: two for each counter */
	ARCH_HAS_AMD_GLOBAL,   /* PerfMonV2 */
	ARCH_HAS_AMD_NONE,     /* of features that are not offered: none */
	ARCH_HAS_LOSS,
	ARCH_HAS_LOSS_PMC,     /* four for each counter */
	ARCH_HAS_LOSS_NONE,
	ARCH_HAS_COUNT
};

/* Bits that a guest may set, by register; any other bit is a fault, or dropped. */
struct arch_valid {
	uint64_t counter;      /* all ones in a counter's width */
	uint64_t evtsel;
	uint64_t fixed_ctrl;
	uint64_t global_ctrl;
	uint64_t status;       /* may be set in GLOBAL_STATUS, and reset */
	uint64_t status_set;
	uint64_t debugctl;     /* kept */
	uint64_t debugctl_dropped; /* accepted, and read as 0 */
};

/* The register file: plain data. */
struct arch_regs {
	uint64_t evtsel[ARCH_GP_MAX];
	uint64_t counter[ARCH_PMC_MAX]; /* by pmc; see vpmu_pmc_read() */
	uint64_t fixed_ctrl;
	uint64_t global_ctrl;
	uint64_t status;
	uint64_t debugctl;
	uint64_t smm_global_ctrl; /* GLOBAL_CTRL as it was before SMM */
	bool smm_frozen;          /* in SMM with FREEZE_WHILE_SMM */
	bool svme;                /* EFER.SVME, where something depends on it */
};

/* A CPUID leaf of which bits are ours: what the caller's keep, and what ours are. */
struct arch_leaf {
	uint32_t leaf;
	struct vpmu_cpuid keep, set;
};

/* Selectors programmed in vain; survives reset, as it is for the host. */
struct arch_told {
	uint32_t n;
	struct {
		uint64_t select;
		uint64_t times;
	} row[VPMU_TOLD_MAX];
};

/* What an existing event of the provider was made for. */
struct arch_made {
	uint64_t select;
	uint64_t base;  /* event's count at which counter[pmc] was the value */
	uint8_t banks;
};

/* What the guest is told of a counter. */
struct arch_loss_pmc {
	uint64_t enabled; /* time; minus the clock when last switched on, while on */
	uint64_t running; /* likewise; where the provider knows: of past events */
	uint32_t generation;
	uint8_t reason, last; /* enum vpmu_loss: now, and of the latest loss */
};

/* Losses: what the guest can read first, then what it follows from. */
struct arch_loss {
	struct arch_loss_pmc pmc[ARCH_PMC_MAX];
	uint64_t generation;
	uint64_t ctrl;
	uint64_t now; /* the provider's clock, as it was last asked */
	uint32_t on, run; /* counters whose times go on */
	uint32_t lost, filtered, vain; /* those that are on and do not count */
	bool held; /* the clock is */
	bool pmi;  /* due */
};

struct vpmu_arch {
	/* Resolved at init, never changed. */
	const struct vpmu_model *model;
	struct vpmu_provider *provider;
	const struct vpmu_ops *ops;
	void *ctx;
	struct arch_valid valid;
	uint64_t capabilities;
	uint64_t select;        /* bits of a selector that choose what is counted,
				   without ring and nesting */
	uint64_t misc_enable;   /* IA32_MISC_ENABLE's PMU bits */
	uint64_t global_ctrl_reset;
	uint64_t freeze_keeps;  /* GLOBAL_CTRL bits that a freezing PMI leaves */
	uint64_t freeze_status; /* GLOBAL_STATUS bits that it sets */
	uint32_t ungated;       /* counters that GLOBAL_CTRL does not gate */
	struct arch_leaf leaf[ARCH_LEAVES];
	uint8_t n_leaf;
	uint8_t version;
	uint8_t n_gp, n_fixed, n_pmc;
	uint8_t has[ARCH_HAS_COUNT];
	uint32_t known;         /* kinds of registers, by enum arch_has, that fault
				   where they are not offered */
	bool svm;               /* GuestOnly and HostOnly exist */
	bool pmi_mask;          /* a PMI masks LVTPC */
	uint32_t cpuid_base;    /* of our own leaves, 0: none */
	/* The provider's; clock NULL: no times are kept. */
	uint64_t (*clock)(struct vpmu_provider *p, bool hold);
	uint64_t (*running)(struct vpmu_event *ev);

	const struct vpmu_filter *filter; /* the VM's, or NULL */
	struct arch_regs r;
	struct arch_told told;
	struct arch_loss loss;
	uint32_t pending; /* counters that overflowed; atomics only, any thread */
	uint32_t changed; /* those whose event's state has changed; likewise */

	/* Derived from the registers: sets of counters. */
	uint32_t own;  /* enabled by their own register */
	uint32_t made; /* have an event of the provider, enabled or parked */
	uint32_t on;   /* enabled by every gate */
	uint32_t vain; /* nobody counts their selector: not to be tried again */
	uint32_t filtered; /* the filter denies their selector */
	uint32_t touched;  /* written to since the last slice */
	uint32_t batch;    /* depth of vpmu_pmc_begin() */
	bool settle;       /* at the end of the batch, losses are to be looked for */
	bool unplaced;     /* some event could not be enabled */
	struct arch_made event[ARCH_PMC_MAX];
	/* The provider's events follow, each of event_size bytes. */
};

static inline uint32_t vpmu_pmc_set(const struct vpmu_arch *v, uint64_t bits)
{
	uint32_t gp = (1u << v->n_gp) - 1, fixed = (1u << v->n_fixed) - 1;

	return ((uint32_t)bits & gp) |
	       ((uint32_t)(bits >> VPMU_STATUS_FIXED_SHIFT) & fixed) << v->n_gp;
}

static inline uint64_t vpmu_pmc_bits(const struct vpmu_arch *v, uint32_t pmcs)
{
	uint32_t gp = (1u << v->n_gp) - 1;

	return (pmcs & gp) |
	       (uint64_t)(pmcs >> v->n_gp) << VPMU_STATUS_FIXED_SHIFT;
}

/* FIXED_CTR_CTRL's four bits of fixed counter @i. */
static inline unsigned int vpmu_pmc_fixed_bits(const struct vpmu_arch *v,
					       unsigned int i)
{
	return (unsigned int)(v->r.fixed_ctrl >> (4 * i)) & 0xf;
}

/* arch_pmc.c: counters over the provider's events. */

/** Bracket changes, so that they happen at one instant. They nest. */
void vpmu_pmc_begin(struct vpmu_arch *v);
void vpmu_pmc_commit(struct vpmu_arch *v);

/** A counter's value as the guest reads it, and a write of it (within width). */
uint64_t vpmu_pmc_read(struct vpmu_arch *v, unsigned int pmc);
void vpmu_pmc_write(struct vpmu_arch *v, unsigned int pmc, uint64_t value);

/** The selectors, filters or own enable bits of @pmcs have changed. */
void vpmu_pmc_changed(struct vpmu_arch *v, uint32_t pmcs);

/** A gate has changed: GLOBAL_CTRL, CTR_FRZ. */
void vpmu_pmc_gate(struct vpmu_arch *v);

/** Give all events back; counters keep their values. */
void vpmu_pmc_release_all(struct vpmu_arch *v);

/**
 * Make the events of a register file that has just been put in place. @parked:
 * counters that had one (event[].banks: for which rings), enabled or not.
 */
void vpmu_pmc_resume(struct vpmu_arch *v, uint32_t parked);

/** What the provider is asked to count for @pmc. */
void vpmu_pmc_attr(const struct vpmu_arch *v, unsigned int pmc,
		   struct vpmu_event_attr *attr);
struct vpmu_event *vpmu_pmc_event(struct vpmu_arch *v, unsigned int pmc);

/** Bring everything in line with v->filter, which has changed. */
void vpmu_pmc_filter(struct vpmu_arch *v);

/** Give back what is parked and was not written to in a slice; see arch.h. */
bool vpmu_pmc_slice(struct vpmu_arch *v);

/* Counters whose overflow raises a PMI (INT, or the fixed counter's PMI bit). */
uint32_t vpmu_pmc_interrupting(const struct vpmu_arch *v);

/* arch_loss.c: what the guest is told. */

/** Take the time: in a batch, after v->on has changed and before events follow. */
void vpmu_loss_clock(struct vpmu_arch *v);

/**
 * Find out why counters that are on do not count. @look: ask the provider for the
 * states of their events, too; else those that exist are taken to count.
 */
void vpmu_loss_settle(struct vpmu_arch *v, bool look);

/** The same at any other time, so that what is read next is as of now. */
void vpmu_loss_poll(struct vpmu_arch *v);

/** Stop all times, for events to be released; the next vpmu_loss_clock() resumes. */
void vpmu_loss_stop(struct vpmu_arch *v);

/** RESET: every event has been released, and nothing is on. */
void vpmu_loss_reset(struct vpmu_arch *v);

/** Totals as of the last time that was taken. */
uint64_t vpmu_loss_enabled(struct vpmu_arch *v, unsigned int pmc);
uint64_t vpmu_loss_running(struct vpmu_arch *v, unsigned int pmc);

/* Handlers of the block's registers; see arch_msr.c. */
enum vpmu_result vpmu_loss_read(struct vpmu_arch *v, unsigned int i, uint64_t *value);
enum vpmu_result vpmu_loss_ctrl_read(struct vpmu_arch *v, unsigned int i,
				     uint64_t *value);
enum vpmu_result vpmu_loss_ctrl_write(struct vpmu_arch *v, unsigned int i,
				      uint64_t value);
enum vpmu_result vpmu_loss_pmc_read(struct vpmu_arch *v, unsigned int i,
				    uint64_t *value);

#endif /* VPMU_ARCH_INTERNAL_H */
