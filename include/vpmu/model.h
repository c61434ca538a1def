/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* CPU models: data only, one file per model in lib/silicon/models. */
#ifndef VPMU_MODEL_H
#define VPMU_MODEL_H

#include <vpmu/event.h>

enum vpmu_vendor {
	VPMU_VENDOR_INTEL,
	VPMU_VENDOR_AMD,
};

struct vpmu_model {
	const char *name;       /* name in `vpmu list`: "icelake-server" */
	const char *title;      /* for display: "Intel Icelake-SP" */
	uint8_t vendor;         /* enum vpmu_vendor */
	uint8_t family;         /* displayed family (CPUID.1, extended included);
				   0: any (generic) */
	const uint8_t *models;  /* displayed models */
	uint8_t n_models;       /* entries of @models; 0: any (generic) */
	uint8_t version;        /* highest perfmon version, CPUID.0AH:EAX[7:0];
				   AMD: 2 with PerfMonV2, else 1 */
	uint8_t n_gp;           /* general-purpose counters, at most 8 */
	uint8_t n_fixed;        /* fixed counters, at most 4 */
	uint8_t width_bits;     /* width of every counter */
	uint8_t n_arch_events;  /* CPUID.0AH:EAX[31:24] */
	uint64_t capabilities;  /* IA32_PERF_CAPABILITIES bits that vpmu can offer;
				   AMD: VPMU_CAP_AMD_* */
	const struct vpmu_event_def *events; /* sorted by select, umask, umask2 */
	uint16_t n_events;
	/*
	 * Highest version that may be requested, if above the CPU's, so that
	 * drivers for it can be tested; 0: version.
	 */
	uint8_t version_most;
	uint32_t extensions;    /* VPMU_EXT_* from version 6 on */
	uint64_t offcore;       /* bits of MSR_OFFCORE_RSP_0 and _1; 0: none */
	uint8_t topdown;        /* fields of PERF_METRICS: 0, 4 or 8 */
	bool two_latencies;     /* PEBS reports the cache's latency separately, in bits 47:32 */
	uint8_t lbr_entries;    /* branch records, of those that have any: a power of two,
				   at most VPMU_LBR_ENTRIES, which 0 stands for */
	uint8_t lbr_counters;   /* set of the counters that architectural branch records can
				   log, CPUID.1CH:ECX[19:16] */
	uint64_t pdist;         /* counters whose architectural PEBS has PDIST, CPUID.23H.5;
				   laid out as GLOBAL_CTRL */
};

/**
 * The model of a CPU.
 *
 * @vendor, @family, @model: as CPUID.1 displays them (extended fields included)
 *
 * Pure. If no model matches, returns the vendor's generic model, or NULL if
 * there is none for this vendor or family.
 */
const struct vpmu_model *vpmu_model_find(enum vpmu_vendor vendor, uint8_t family,
					 uint8_t model);

/** The model number @i of all, or NULL after the last. Pure. */
const struct vpmu_model *vpmu_model_at(size_t i);

/**
 * Check a model's data: order of the table, ranges, masks, fixed counters,
 * architectural events and their encodings, events that each CPU of its vendor
 * has, known signals.
 *
 * @bad: on failure the index of the offending event, or n_events
 *
 * Pure. Returns NULL, or a static string that describes the error.
 */
const char *vpmu_model_check(const struct vpmu_model *model, size_t *bad);

/*
 * The architectural events in the order of CPUID.0AH:EBX: select in bits 7:0,
 * unit mask in bits 15:8.
 * Source: SDM vol. 3, "Pre-defined Architectural Performance Events".
 */
#define VPMU_ARCH_EVENTS 8
extern const uint16_t vpmu_arch_event[VPMU_ARCH_EVENTS];

/* An error in a text that names events, of a host (spec.h) or of a filter (filter.h). */
struct vpmu_spec_error {
	size_t at, length;  /* place of the error in the text: bytes, from 0 */
	const char *what;   /* description of the error */
	const char *needed; /* text that is allowed there */
};

#endif /* VPMU_MODEL_H */
