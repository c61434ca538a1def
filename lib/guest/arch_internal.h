/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside of the architectural PMU. What differs between vendors, versions and
 * configurations is resolved once, at init, into the masks and counts of
 * struct vpmu_arch; nothing else looks at the vendor or the version.
 */
#ifndef VPMU_ARCH_INTERNAL_H
#define VPMU_ARCH_INTERNAL_H

#include <vpmu/arch.h>

#include "arch_cpuid.h"
#include "arch_event.h"
#include "arch_extra.h"
#include "arch_lbr.h"
#include "arch_loss.h"
#include "arch_pebs.h"
#include "arch_pmc.h"
#include "arch_regs.h"
#include "arch_state.h"
#include "arch_topdown.h"

/* Changes by the access that is being emulated, which arch_sync() has not followed yet. */
struct arch_marks {
	uint32_t pmcs;  /* counters that may count something else */
	uint32_t renew; /* of these, those whose event is to be replaced by a new one */
	uint32_t rearm; /* counters whose deadline may be another one */
	bool gates;     /* GLOBAL_CTRL or CTR_FRZ */
	bool lbr;       /* what decides about recording branches */
};

struct vpmu_arch {
	/* Resolved at init, never changed. */
	const struct vpmu_model *model;
	struct vpmu_provider *provider;
	struct vpmu_ops ops;
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
	/* Rows of arch_msr.c's table that were accessed last, each in @known, which stays as it
	   is from init on; atomics only, any thread reads. */
	const struct arch_msr *row[ARCH_ROWS];
	bool svm;               /* GuestOnly and HostOnly exist */
	bool pmi_mask;          /* a PMI masks LVTPC */
	bool regain;            /* slices try lost counters again */
	uint32_t cpuid_base;    /* our own leaves, 0: none */
	/* The provider's; clock NULL: no times are kept. */
	uint64_t (*clock)(struct vpmu_provider *p, bool hold);
	uint64_t (*running)(struct vpmu_event *ev);

	const struct vpmu_filter *filter; /* the VM's, or NULL */
	struct arch_regs r;
	struct arch_reload reload;
	struct arch_uncounted uncounted_events;
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
	uint32_t eager;    /* their deadline is the next occurrence, not the overflow */
	uint32_t tries;    /* at lost counters, since there was none */
	uint32_t pause;    /* slices until the next one */
	struct arch_marks marked; /* empty between the calls of arch.h */
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

/* True if bits of general-purpose counter @i's selector say that records log it. */
static inline bool arch_evtsel_logs(const struct vpmu_arch *v, unsigned int i, uint64_t bits)
{
	return v->lbr.loggable >> i & 1 && bits & VPMU_EVTSEL_LBR_LOG;
}

static inline bool arch_evtsel_valid(const struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	if (arch_evtsel_logs(v, i, value))
		value &= ~VPMU_EVTSEL_LBR_LOG;
	return !(value & ~v->valid.evtsel);
}

/* True between the calls of arch.h: no batch is open, nothing is marked. */
static inline bool arch_at_rest(const struct vpmu_arch *v)
{
	return !v->batch && !v->marked.pmcs && !v->marked.rearm && !v->marked.gates &&
	       !v->marked.lbr;
}

/* Counters @pmcs may count something else: also those that the provider has refused. */
static inline void arch_mark(struct vpmu_arch *v, uint32_t pmcs)
{
	v->marked.pmcs |= pmcs;
	v->uncounted &= ~pmcs;
}

#endif /* VPMU_ARCH_INTERNAL_H */
