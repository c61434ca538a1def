/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside of the architectural PMU. What differs between vendors, versions and
 * configurations is resolved once, at init, into the masks and counts of
 * struct vpmu_arch; nothing else looks at the vendor or the version.
 *
 * A set of counters is a 32-bit bitmap by `pmc` (GP from 0, then fixed). The
 * registers have a layout of their own (GP from bit 0, fixed from bit 32):
 * arch_pmc_set() and arch_pmc_bits() convert.
 */
#ifndef VPMU_ARCH_INTERNAL_H
#define VPMU_ARCH_INTERNAL_H

#include <vpmu/arch.h>
#include <vpmu/state.h>

#define ARCH_GP_MAX	8
#define ARCH_FIXED_MAX	4
#define ARCH_FIXED_SLOTS	3	/* of which PERF_METRICS says where they went */
#define ARCH_PMC_MAX	(ARCH_GP_MAX + ARCH_FIXED_MAX)
#define ARCH_LBR_INDEX	31	/* of the branch records' event */
#define ARCH_K7_PMCS	4	/* AMD: counters with legacy addresses */
#define ARCH_LEAVES	10	/* CPUID leaves that are ours in part */

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
	ARCH_HAS_BLOCK_GP,     /* version 6: four for each counter */
	ARCH_HAS_BLOCK_FIXED,
	ARCH_HAS_CAPABILITIES, /* PDCM */
	ARCH_HAS_LBR,          /* legacy branch records: entries */
	ARCH_HAS_LBR_OLD,      /* ... of the first formats, at other places */
	ARCH_HAS_LBR_INFO,
	ARCH_HAS_LBR_SELECT,
	ARCH_HAS_LBR_TOS,
	ARCH_HAS_ARCH_LBR,     /* architectural ones: entries */
	ARCH_HAS_ARCH_LBR_CTL, /* ... LBR_CTL and LBR_DEPTH */
	ARCH_HAS_PEBS,         /* PEBS_ENABLE, with baseline also DATA_CFG */
	ARCH_HAS_DS,           /* DS_AREA */
	ARCH_HAS_OFFCORE,      /* OFFCORE_RSP_0, _1 */
	ARCH_HAS_LDLAT,        /* PEBS_LD_LAT */
	ARCH_HAS_METRICS,      /* PERF_METRICS */
	/* From here on no register of ours at all, unless vpmu_arch.known says so. */
	ARCH_HAS_K7,           /* AMD: the first four counters' legacy addresses */
	ARCH_HAS_AMD,          /* PerfCtrExtCore: two for each counter */
	ARCH_HAS_AMD_GLOBAL,   /* PerfMonV2 */
	ARCH_HAS_AMD_LBR,      /* LbrExtV2: two for each entry */
	ARCH_HAS_AMD_LBR_CTL,  /* ... LBR_SELECT and DBG_EXTN_CFG */
	ARCH_HAS_AMD_NONE,     /* of features that are not offered: none */
	ARCH_HAS_LER,          /* FROM and TO */
	ARCH_HAS_LER_INFO,
	ARCH_HAS_LOSS,
	ARCH_HAS_LOSS_LBR,
	ARCH_HAS_LOSS_PMC,     /* four for each counter */
	ARCH_HAS_LOSS_NONE,
	ARCH_HAS_COUNT
};

/* Bits that a guest may set, by register; any other bit is a fault, or dropped. */
struct arch_valid {
	uint64_t counter;      /* all ones in a counter's width */
	uint64_t evtsel;
	uint64_t evtsel_hidden; /* of evtsel: RDPMC user disable */
	uint64_t fixed_ctrl;
	uint64_t fixed_hidden; /* likewise, of fixed counter 0 */
	uint64_t reload_by;    /* 0: no auto counter reload */
	uint64_t reload;
	uint64_t global_ctrl;
	uint64_t status;       /* may be set in GLOBAL_STATUS, and reset */
	uint64_t status_set;
	uint64_t debugctl;     /* kept */
	uint64_t debugctl_dropped; /* accepted, and read as 0 */
};

/* The register file: plain data. */
struct arch_regs {
	uint64_t evtsel[ARCH_GP_MAX];
	uint64_t counter[ARCH_PMC_MAX]; /* by pmc; see arch_event_read() */
	uint64_t fixed_ctrl;
	uint64_t global_ctrl;
	uint64_t status;
	uint64_t debugctl;
	uint64_t smm_global_ctrl; /* GLOBAL_CTRL as it was before SMM */
	bool smm_frozen;          /* in SMM with FREEZE_WHILE_SMM */
	bool svme;                /* EFER.SVME, where something depends on it */
};

/* Registers of auto counter reload, apart as most PMUs have none. */
struct arch_reload {
	uint32_t by[ARCH_PMC_MAX];    /* set of counters whose overflow reloads it */
	uint32_t value[ARCH_PMC_MAX]; /* what with: bits 31:0, sign-extended */
};

#define ARCH_SUBLEAF_ANY	UINT32_MAX

/* A CPUID leaf of which bits are ours: what the caller's keep, and what ours are. */
struct arch_leaf {
	uint32_t leaf, subleaf;
	struct vpmu_cpuid keep, set;
};

/* Selectors that the guest enabled and no provider counts; survives reset, as it is for the host. */
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
	uint64_t extra; /* of its attr, where it has an offcore response */
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
	uint64_t clock; /* the provider's, as it was last asked */
	uint64_t now;   /* the same, but that it never goes back */
	uint32_t on, run; /* counters whose times go on */
	uint32_t lost, filtered, uncounted; /* those that are on and do not count */
	bool held; /* the clock is */
	bool pmi;  /* due */
};

enum arch_lbr_kind {
	ARCH_LBR_NONE,
	ARCH_LBR_LEGACY,
	ARCH_LBR_ARCH,
	ARCH_LBR_AMD,
};

/* Branch records: see arch_lbr.c. */
struct arch_lbr {
	uint8_t kind;          /* enum arch_lbr_kind; the first six are resolved at init */
	uint8_t depth;         /* entries that the guest sees, a power of two */
	uint64_t valid;        /* bits of ctl */
	uint64_t address;      /* of FROM, what is address; the rest reads 0 */
	uint64_t info;         /* bits of an entry's info that are kept */
	struct vpmu_lbr *stack; /* the engine's */
	uint64_t ctl;          /* LBR_SELECT or LBR_CTL */
	uint32_t changed;      /* the event's state has; atomics only, any thread */
	uint32_t generation;   /* changes of reason */
	uint8_t reason, last;  /* enum vpmu_loss: now, and of the latest loss */
	bool made;             /* the event exists */
	bool owned;            /* it was active when last looked at: the stack is the
				  guest's; else what the guest has is kept */
	bool used;             /* accessed since the last slice */
	bool demand;           /* last told the engine */
	bool smm;              /* in SMM: nothing is recorded */
	bool enabled;          /* AMD: DBG_EXTN_CFG.LBRV2EN */
	struct vpmu_lbr kept;
};

/* PEBS: see arch_pebs.c. What comes before the registers is resolved at init. */
struct arch_pebs {
	bool on;               /* the guest has it */
	uint8_t format;        /* of records, 0 to 5 */
	uint8_t linear_bits;   /* of addresses */
	uint16_t reset_fixed;  /* offset in the DS save area */
	uint64_t valid_enable, valid_cfg;
	uint64_t enable, data_cfg, ds_area; /* the registers */
	uint32_t wrapped;      /* counters whose next occurrence writes a record, where
				  they are enabled then */
	uint32_t claimed;      /* those whose event shares the facility */
	bool watch;            /* last told the engine */
};

/* Registers that say more of events: see arch_extra.c. */
struct arch_extra {
	uint64_t offcore[2];
	uint64_t ldlat;
};

/* PERF_METRICS: see arch_topdown.c. */
struct arch_topdown {
	uint64_t raw;                  /* as written, until a slot has been counted since */
	uint64_t slots[VPMU_TOPDOWN];  /* by class, without those since: */
	uint64_t base[VPMU_TOPDOWN];   /* the event's when they were last looked at */
};

/* What a saved state says, before any of it is used: too much for the stack. */
struct arch_image {
	struct arch_regs r;
	struct arch_told told;
	uint64_t pending; /* in the registers' layout */
	uint8_t n_gp, n_fixed;
	uint8_t banks[ARCH_PMC_MAX]; /* by pmc: of its event, 0: has none */
	uint32_t touched;
	struct arch_loss loss;
	struct arch_extra extra;
	struct arch_topdown topdown;
	bool has_arch, has_loss, has_lbr, has_pebs, has_extra, has_topdown;
	struct vpmu_state_cursor lbr, pebs; /* over their bodies, checked; or no data */
	const uint8_t *provider, *reload; /* their bodies, or NULL */
	size_t provider_bytes, reload_bytes;
	struct vpmu_error refused; /* why, if it was; what is NULL: not said */
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
	uint32_t extensions;    /* VPMU_EXT_*, from version 6 on */
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
	uint64_t known;         /* kinds of registers, by enum arch_has, that fault
				   where they are not offered */
	bool svm;               /* GuestOnly and HostOnly exist */
	bool pmi_mask;          /* a PMI masks LVTPC */
	uint32_t cpuid_base;    /* of our own leaves, 0: none */
	/* The provider's; clock NULL: no times are kept. */
	uint64_t (*clock)(struct vpmu_provider *p, bool hold);
	uint64_t (*running)(struct vpmu_event *ev);

	const struct vpmu_filter *filter; /* the VM's, or NULL */
	struct arch_regs r;
	struct arch_reload reload;
	struct arch_told told;
	struct arch_loss loss;
	struct arch_lbr lbr;
	struct arch_pebs pebs;
	struct arch_extra extra;
	uint8_t topdown_fields; /* of PERF_METRICS, 0: none; resolved at init */
	struct arch_topdown topdown;
	uint32_t pending; /* counters that overflowed; atomics only, any thread */
	uint32_t changed; /* those whose event's state has changed; likewise */

	/* Derived from the registers: sets of counters. */
	uint32_t own;  /* enabled by their own register */
	uint32_t made; /* have an event of the provider, enabled or parked */
	uint32_t on;   /* enabled by every gate */
	uint32_t uncounted; /* no provider counts their selector: not to be tried again */
	uint32_t filtered; /* the filter denies their selector */
	uint32_t touched;  /* written to since the last slice */
	uint32_t batch;    /* depth of arch_event_begin() */
	bool settle;       /* at the end of the batch, losses are to be looked for */
	bool unplaced;     /* some event could not be enabled */
	struct arch_image image; /* vpmu_arch_load()'s */
	struct arch_made event[ARCH_PMC_MAX];
	/* The provider's events follow, each of event_size bytes; last, that of branch
	   records. */
};

static inline uint32_t arch_pmc_set(const struct vpmu_arch *v, uint64_t bits)
{
	uint32_t gp = (1u << v->n_gp) - 1, fixed = (1u << v->n_fixed) - 1;

	return ((uint32_t)bits & gp) |
	       ((uint32_t)(bits >> VPMU_STATUS_FIXED_SHIFT) & fixed) << v->n_gp;
}

static inline uint64_t arch_pmc_bits(const struct vpmu_arch *v, uint32_t pmcs)
{
	uint32_t gp = (1u << v->n_gp) - 1;

	return (pmcs & gp) |
	       (uint64_t)(pmcs >> v->n_gp) << VPMU_STATUS_FIXED_SHIFT;
}

/* FIXED_CTR_CTRL's four bits of fixed counter @i. */
static inline unsigned int arch_pmc_fixed_bits(const struct vpmu_arch *v,
					       unsigned int i)
{
	return (unsigned int)(v->r.fixed_ctrl >> (4 * i)) & 0xf;
}

/* arch_pmc.c: counters over the provider's events. */

/** Bracket changes, so that they happen at one instant. They nest. */
void arch_event_begin(struct vpmu_arch *v);
void arch_pmc_commit(struct vpmu_arch *v);

/** A counter's value as the guest reads it, and a write of it (within width). */
uint64_t arch_event_read(struct vpmu_arch *v, unsigned int pmc);
void arch_pmc_write(struct vpmu_arch *v, unsigned int pmc, uint64_t value);

/** The same, by the PMU itself. */
void arch_event_put(struct vpmu_arch *v, unsigned int pmc, uint64_t value);

/** The second half of overflows of @pmcs: counters that they reload. */
void arch_event_reload(struct vpmu_arch *v, uint32_t pmcs);

/** The selectors, filters or own enable bits of @pmcs have changed. */
void arch_pmc_changed(struct vpmu_arch *v, uint32_t pmcs);

/** A gate has changed: GLOBAL_CTRL, CTR_FRZ. */
void arch_pmc_gate(struct vpmu_arch *v);

/** Give all events back; counters keep their values. */
void arch_pmc_release_all(struct vpmu_arch *v);

/**
 * Make the events of a register file that has just been put in place. @parked:
 * counters that had one (event[].banks: for which rings), enabled or not.
 */
void arch_pmc_resume(struct vpmu_arch *v, uint32_t parked);

/** What the provider is asked to count for @pmc. */
void arch_pmc_attr(const struct vpmu_arch *v, unsigned int pmc,
		   struct vpmu_event_attr *attr);
struct vpmu_event *arch_event_of(struct vpmu_arch *v, unsigned int pmc);

/** Bring everything in line with v->filter, which has changed. */
void arch_pmc_filter(struct vpmu_arch *v);

/** Give back what is parked and was not written to in a slice; see arch.h. */
bool arch_pmc_slice(struct vpmu_arch *v);

/** Counters of which an overflow sets no status bit: those that reload themselves. */
uint32_t arch_pmc_silent(const struct vpmu_arch *v);

/** Deadlines of @pmcs anew: whether their next occurrence is wanted has changed. */
void arch_event_rearm(struct vpmu_arch *v, uint32_t pmcs);

/* Counters whose overflow raises a PMI (INT, or the fixed counter's PMI bit). */
uint32_t arch_pmc_interrupting(const struct vpmu_arch *v);

/* arch.c */

/** Set status bits; any that was clear also sets CondChgd, which is Intel's. */
void arch_raise_status(struct vpmu_arch *v, uint64_t bits);

/* arch_lbr.c: branch records. Nothing happens where there are none. */

struct vpmu_state_cursor;

/** Which kind, and whether provider and embedder can have any. */
enum arch_lbr_kind arch_lbr_kind(const struct vpmu_model *m, uint64_t capabilities);
bool arch_lbr_possible(const struct vpmu_arch_config *cfg);

/** Formats and masks; @v->lbr.kind is set. */
void arch_lbr_resolve(struct vpmu_arch *v);

/** What decides about recording has changed: GLOBAL_STATUS, DEBUGCTL. */
void arch_lbr_apply(struct vpmu_arch *v);
/** DEBUGCTL was written. */
void arch_lbr_debugctl(struct vpmu_arch *v, uint64_t value);
/** A PMI freezes. */
void arch_lbr_freeze(struct vpmu_arch *v);
void arch_lbr_smm(struct vpmu_arch *v, bool entered);
/** Find out whether the records were lost, or found again. */
void arch_lbr_look(struct vpmu_arch *v);
/** Give the facility back; what is recorded is kept. */
void arch_lbr_release(struct vpmu_arch *v);
bool arch_lbr_slice(struct vpmu_arch *v);
void arch_lbr_reset(struct vpmu_arch *v, bool init);

/**
 * The body of its section: save; check without using it; use it, after a release.
 * @c: no data: begin with none; NULL: go on, @claimed as before.
 */
void arch_lbr_put(struct vpmu_arch *v, struct vpmu_state_cursor *c);
int arch_lbr_check(const struct vpmu_arch *v, struct vpmu_state_cursor *c);
void arch_lbr_resume(struct vpmu_arch *v, struct vpmu_state_cursor *c, bool claimed);

/** Entry @age, the newest being 0, as its registers show it; zeros if not owned. */
void arch_lbr_entry(const struct vpmu_arch *v, unsigned int age, uint64_t entry[3]);

/* Handlers of registers; see arch_msr.c. */
typedef enum vpmu_result arch_read_fn(struct vpmu_arch *v, unsigned int i,
				      uint64_t *value);
typedef enum vpmu_result arch_write_fn(struct vpmu_arch *v, unsigned int i,
				       uint64_t value);
arch_read_fn arch_lbr_from_read, arch_lbr_to_read, arch_lbr_info_read,
	     arch_lbr_select_read, arch_lbr_ctl_read, arch_lbr_ler_read,
	     arch_lbr_ler_info_read, arch_lbr_loss_read, arch_lbr_tos_read,
	     arch_lbr_amd_read, arch_lbr_amd_ctl_read;
arch_write_fn arch_lbr_from_write, arch_lbr_to_write, arch_lbr_info_write,
	      arch_lbr_select_write, arch_lbr_ctl_write, arch_lbr_ler_write,
	      arch_lbr_ler_info_write, arch_lbr_tos_write, arch_lbr_amd_write,
	      arch_lbr_amd_ctl_write;

/* arch_pebs.c: precise event-based sampling. Nothing happens where there is none. */

bool arch_pebs_possible(const struct vpmu_arch_config *cfg);
void arch_pebs_resolve(struct vpmu_arch *v, uint8_t linear_bits);

/** Counters that PEBS is enabled for, and those whose next occurrence is recorded. */
uint32_t arch_pebs_enabled(const struct vpmu_arch *v);
uint32_t arch_pebs_armed(const struct vpmu_arch *v);

/**
 * Counters @pmcs overflowed: arm, or write records. @buffer: set when the DS area
 * is full to its threshold. Returns those that have overflowed in the ordinary way.
 */
uint32_t arch_pebs_overflow(struct vpmu_arch *v, uint32_t pmcs, bool *buffer);

/** What decides about watching may have changed: armed counters, gates. */
void arch_pebs_watch(struct vpmu_arch *v);
/** Registers as after RESET, when no event exists. */
void arch_pebs_clear(struct vpmu_arch *v);

/** The body of its section: save; check; use what was checked. */
void arch_pebs_put(const struct vpmu_arch *v, struct vpmu_state_cursor *c);
int arch_pebs_check(const struct vpmu_arch *v, struct vpmu_state_cursor *c);
void arch_pebs_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c);

arch_read_fn arch_pebs_read, arch_pebs_ds_read;
arch_write_fn arch_pebs_write, arch_pebs_ds_write;

/* arch_extra.c: registers that say more of events. */

/** Which there are, with this provider; before CPUID is resolved. */
void arch_extra_resolve(struct vpmu_arch *v);
/** Whether there is any. */
bool arch_extra_any(const struct vpmu_arch *v);
/** What they say of @pmc's event, into its attr. */
void arch_extra_attr(const struct vpmu_arch *v, unsigned int pmc, struct vpmu_event_attr *attr);
/** As after RESET, or as loaded, where no event exists. */
void arch_extra_set(struct vpmu_arch *v, const struct arch_extra *e);

/** The body of their section: save; check and take. */
void arch_extra_put(const struct vpmu_arch *v, struct vpmu_state_cursor *c);
int arch_extra_get(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
		   struct arch_extra *e);

arch_read_fn arch_extra_offcore_read, arch_extra_ldlat_read;
arch_write_fn arch_extra_offcore_write, arch_extra_ldlat_write;

/* arch_topdown.c: PERF_METRICS, of the slots counter. */

bool arch_topdown_counted(const struct vpmu_arch_config *cfg);
void arch_topdown_resolve(struct vpmu_arch *v);
/** Whether @pmc is the slots counter and PERF_METRICS goes with it. */
bool arch_topdown_is(const struct vpmu_arch *v, unsigned int pmc);
/** Its event was made; is about to be released; GLOBAL_CTRL is about to change. */
void arch_topdown_made(struct vpmu_arch *v);
void arch_topdown_look(struct vpmu_arch *v);
/** The second half of an overflow of it: more bits for GLOBAL_STATUS. */
uint64_t arch_topdown_overflow(struct vpmu_arch *v);
/** RDPMC, and the register. */
uint64_t arch_topdown_value(struct vpmu_arch *v);
void arch_topdown_put(struct vpmu_arch *v, struct vpmu_state_cursor *c);
int arch_topdown_get(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
		     struct arch_topdown *t);
arch_read_fn arch_topdown_read;
arch_write_fn arch_topdown_write;

/* arch_loss.c: what the guest is told. */

/** Take the time: in a batch, after v->on has changed and before events follow. */
void arch_loss_clock(struct vpmu_arch *v);

/**
 * Find out why counters that are on do not count. @look: ask the provider for the
 * states of their events, too; else those that exist are taken to count.
 */
void arch_loss_settle(struct vpmu_arch *v, bool look);

/** The same at any other time, so that what is read next is as of now. */
void arch_loss_poll(struct vpmu_arch *v);

/** Stop all times, for events to be released; the next arch_loss_clock() resumes. */
void arch_loss_stop(struct vpmu_arch *v);

/** RESET: every event has been released, and nothing is on. */
void arch_loss_reset(struct vpmu_arch *v);

/** Totals as of the last time that was taken. */
uint64_t arch_loss_enabled(struct vpmu_arch *v, unsigned int pmc);
uint64_t arch_loss_running(struct vpmu_arch *v, unsigned int pmc);

/* Handlers of the block's registers; see arch_msr.c. */
enum vpmu_result arch_loss_read(struct vpmu_arch *v, unsigned int i, uint64_t *value);
enum vpmu_result arch_loss_ctrl_read(struct vpmu_arch *v, unsigned int i,
				     uint64_t *value);
enum vpmu_result arch_loss_ctrl_write(struct vpmu_arch *v, unsigned int i,
				      uint64_t value);
enum vpmu_result arch_loss_pmc_read(struct vpmu_arch *v, unsigned int i,
				    uint64_t *value);

#endif /* VPMU_ARCH_INTERNAL_H */
