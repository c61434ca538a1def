/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Event selectors and event tables. A selector is the image of an IA32_PERFEVTSEL
 * register; a model's table (model.h) says which signals an event counts.
 */
#ifndef VPMU_EVENT_H
#define VPMU_EVENT_H

#include <vpmu/signal.h>

struct vpmu_model;

/* The quality of a number, which is always shown with it. */
enum vpmu_quality {
	VPMU_QUALITY_NONE,     /* not counted: reads 0, which guest and host can find out */
	VPMU_QUALITY_EXACT,    /* equals what the architecture defines */
	VPMU_QUALITY_DEFINED,  /* exact by a documented definition (cycles) */
	VPMU_QUALITY_MODELLED, /* from the micro-architecture model */
};

/*
 * Facilities that events share beside counters: one owner at a time, or several that want
 * it set the same way (the event's `extra`).
 */
enum vpmu_shared {
	VPMU_SHARED_NONE,
	VPMU_SHARED_LBR,         /* the branch records; extra: their filter */
	VPMU_SHARED_METRICS,     /* PERF_METRICS, with SLOTS on fixed counter 3 */
	VPMU_SHARED_PEBS,        /* the DS area and its configuration */
	VPMU_SHARED_OFFCORE_RSP, /* MSR_OFFCORE_RSP_0 or _1, the one that is free */
	VPMU_SHARED_LDLAT,       /* MSR_PEBS_LD_LAT */
	VPMU_SHARED_FRONTEND,    /* MSR_PEBS_FRONTEND */
	VPMU_SHARED_COUNT
};
#define VPMU_SHARED_ALONE UINT64_MAX /* as `extra`: equal to no value, not even itself */

/* A register that says more of what an event counts. */
enum vpmu_extra {
	VPMU_EXTRA_NONE,
	VPMU_EXTRA_OFFCORE_0, /* MSR_OFFCORE_RSP_0: the requests, and what answered them */
	VPMU_EXTRA_OFFCORE_1, /* MSR_OFFCORE_RSP_1: likewise */
	VPMU_EXTRA_LDLAT,     /* MSR_PEBS_LD_LAT: the threshold of ops->set_load_latency */
};

/* One row of a model's event table. Sorted by select, umask, umask2, when. */
struct vpmu_event_def {
	const char *name;    /* the vendor's name, upper case */
	uint16_t select;     /* event select, 8 bits (AMD: 12) */
	uint8_t umask;       /* unit mask */
	uint8_t umask2;      /* UnitMask2, where the model has it; else 0 */
	int8_t fixed;        /* fixed counter that counts it too, -1: none */
	uint8_t shift;       /* counts floor(sum of signals / 2^shift) */
	uint8_t quality;     /* enum vpmu_quality, with all that it needs present;
				NONE: it only has a name (no signals, no needs) */
	uint16_t gp_mask;    /* GP counters that may count it, bit n = counter n */
	uint64_t signals;    /* bitmap of VPMU_SIGNAL_BIT, summed; 0: not counted */
	const char *needs;   /* option by which the engine supplies them ("--uarch on"),
				or NULL */
	uint16_t when;       /* edge, inv and cmask that make it, bits 31:16 of a selector;
				0: any, as far as they have a definition */
	uint8_t extra;       /* enum vpmu_extra */
	bool stores;         /* counts stores: PEBS says of one whether it hit L1, and no
				other data source */
};

/* A selector as silicon counts it: (sum of signals over banks) >> shift. */
struct vpmu_recipe {
	uint64_t signals; /* bitmap of signals, summed; 0: stands still */
	uint8_t banks;    /* bitmap of VPMU_BANK_BIT, summed */
	uint8_t shift;    /* right shift of the sum, 0..15 */
	uint8_t quality;  /* enum vpmu_quality */
	bool topdown;     /* slots, of which each class is counted too; if `signals` has
			     none of them, all retire */
};

/**
 * Look up what a selector counts.
 *
 * @model:    whose table
 * @select:   IA32_PERFEVTSEL image; event select (AMD: with bits 35:32), unit
 *            mask, edge, inv and cmask matter, where the model has them
 *            UnitMask2 and EQ; every other bit is ignored
 * @fixed:    fixed counter whose event is meant, then @select is not used; or -1
 * @banks:    bitmap of VPMU_BANK_BIT to count in
 * @supplied: bitmap of the signals that the engine supplies
 * @recipe:   filled on success and on failure (signals 0, quality NONE)
 *
 * A row that is for a condition counts with that one; for the rest: where the engine
 * supplies no cycles, one instruction is one cycle, and where it supplies no slots, one
 * slot, which retires. No event then happens more than once a cycle, so cmask 1 changes
 * nothing, cmask 2 and above never count, and inverted they count every cycle. Conditions
 * without such a definition (edge, inverted cmask 1) are not counted. inv without cmask is
 * ignored, as on hardware. EQ compares for being equal: with a cmask that is the
 * same for what happens at most once a cycle; without one it would count cycles in
 * which nothing happens, and is not counted. Where the engine has cycles of its own, a
 * cmask above what can happen in one cycle is defined too: it never counts.
 *
 * Pure; callable from anywhere. Returns 0, or -VPMU_ENOENT when it is not counted.
 * Source: SDM vol. 3, "Pre-defined Architectural Performance Events".
 */
int vpmu_event_resolve(const struct vpmu_model *model, uint64_t select, int fixed,
		       uint8_t banks, uint64_t supplied, struct vpmu_recipe *recipe);

/**
 * Limit an offcore response event's @recipe to what @response, an image of
 * MSR_OFFCORE_RSP_0, asks for: demand reads, RFOs and code reads (bits 2:0), with any
 * answer (bit 16), by the last level (bits 21:18), by this node's memory (bit 26).
 *
 * Pure. Returns 0, or -VPMU_ENOENT for requests that are not counted, and then @recipe
 * is as after a failure of vpmu_event_resolve().
 * Source: Intel's event lists, "offcore"; Linux, arch/x86/events/intel/core.c.
 */
int vpmu_event_offcore(uint64_t response, struct vpmu_recipe *recipe);

/**
 * The table row of a selector, whether counted or not.
 *
 * @model:  whose table
 * @select: IA32_PERFEVTSEL image; what names an event matters
 * @fixed:  fixed counter whose event is meant, or -1
 *
 * Pure. Returns NULL when the table has no such row.
 */
const struct vpmu_event_def *vpmu_event_find(const struct vpmu_model *model,
					     uint64_t select, int fixed);

/**
 * The bits of a selector that name an event of this model: event select, unit mask
 * and UnitMask2, without VPMU_EVTSEL_CONDITION. Pure.
 */
uint64_t vpmu_event_name_bits(const struct vpmu_model *model);

/**
 * The counters that can count a selector: bitmap of silicon's slots, GP counters
 * from 0, then the fixed ones. A fixed counter has no edge, inv and cmask.
 * Arguments as for vpmu_event_find(). Pure. 0 when the table has no such row.
 */
uint32_t vpmu_event_slots(const struct vpmu_model *model, uint64_t select, int fixed);

#endif /* VPMU_EVENT_H */
