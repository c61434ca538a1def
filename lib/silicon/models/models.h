/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Short names for signals and rows, which the model files share.
 *
 * Encodings and counter masks are from Intel's event lists, github.com/intel/perfmon; for
 * AMD they and the names are from Linux's tools/perf/pmu-events. tests/fast/models.py
 * compares the tables with Intel's lists and with libpfm4.
 */
#ifndef VPMU_MODELS_H
#define VPMU_MODELS_H

#include <vpmu/model.h>
#include <vpmu/msr.h>

#define S(name)		VPMU_SIGNAL_BIT(VPMU_SIGNAL_##name)

#define COND		(S(JCC_TAKEN) | S(JCC_NOT_TAKEN))
#define CALLS		(S(CALL) | S(CALL_INDIRECT))
#define INDIRECT	(S(JMP_INDIRECT) | S(CALL_INDIRECT))
#define UNCOND		(S(JMP) | S(RET) | S(JMP_INDIRECT) | CALLS)
#define NEAR_TAKEN	(S(JCC_TAKEN) | UNCOND)
#define TAKEN		(NEAR_TAKEN | S(FAR))

/* Names for the signals that a model of the micro-architecture counts. */
#define U(name)		VPMU_SIGNAL_BIT(VPMU_SIGNAL_OF(VPMU_UARCH_##name))

#define SLOTS		VPMU_SIGNALS_SLOTS
#define STALLED_BACKEND	(U(STALL_L1D) | U(STALL_STORES) | U(STALL_DIVIDER))
#define MISP_COND	(U(MISP_TAKEN) | U(MISP_NOT_TAKEN))
#define MISP_INDIRECT	(U(MISP_JMP) | U(MISP_CALL))
#define MISP_NEAR_TAKEN	(U(MISP_TAKEN) | U(MISP_RET) | MISP_INDIRECT)
#define MISP_ALL	(U(MISP_NOT_TAKEN) | MISP_NEAR_TAKEN)
/* Lines that the first level lacked, by purpose; by the level that had them. */
#define READ		(U(READ_L2) | U(READ_LLC) | U(READ_DRAM))
#define RFO		(U(RFO_L2) | U(RFO_LLC) | U(RFO_DRAM))
#define CODE		(U(CODE_L2) | U(CODE_LLC) | U(CODE_DRAM))
#define DATA		(READ | RFO)
#define L2_HITS		(U(READ_L2) | U(RFO_L2) | U(CODE_L2))
#define DRAM		(U(READ_DRAM) | U(RFO_DRAM) | U(CODE_DRAM))
#define L2_MISSES	(U(READ_LLC) | U(RFO_LLC) | U(CODE_LLC) | DRAM)
#define DTLB_LOADS	(U(DTLB_LOAD_L2) | U(DTLB_LOAD_WALK))
#define DTLB_STORES	(U(DTLB_STORE_L2) | U(DTLB_STORE_WALK))

#define UARCH		"--uarch on"

/* Masks of the GP counters that can count an event. */
#define GP8		0xff
#define GP6		0x3f
#define GP4		0x0f
#define GP2		0x03
#define EVEN6		0x15 /* AMD: the odd neighbour would hold the upper half */

/*
 * Shift of events that count a 25 MHz crystal: a cycle is by definition a tick of the
 * guest's TSC, which has 400 MHz.
 */
#define CRYSTAL		4

/* Shift of events that count the bus clock, 100 MHz, before Skylake. */
#define BUS		2

/*
 * ROW: counted from signals. MEANT: likewise, by a definition of ours if the vendor's is
 * wider or unclear (docs/EVENTS.md). CLOCK: cycles and events derived from them.
 * TOLD: needs the micro-architecture model, which counts it exactly (EXACT) or by its
 * model (MODELLED). STORES: likewise, and it counts stores. WHEN: likewise, and it has
 * another meaning without the condition that is given. NAMED: no counter counts it, but it
 * has a name. A trailing 2: with a UnitMask2.
 */
#define ROW(event, mask, title, fix, gp, sum)                                  \
	{ .name = title, .select = event, .umask = mask, .fixed = fix,         \
	  .quality = VPMU_QUALITY_EXACT, .gp_mask = gp, .signals = sum }
#define MEANT(event, mask, title, gp, sum)                                     \
	{ .name = title, .select = event, .umask = mask, .fixed = -1,          \
	  .quality = VPMU_QUALITY_DEFINED, .gp_mask = gp, .signals = sum }
#define CLOCK(event, mask, title, fix, gp, by)                                 \
	{ .name = title, .select = event, .umask = mask, .fixed = fix,         \
	  .shift = by, .quality = VPMU_QUALITY_DEFINED, .gp_mask = gp,         \
	  .signals = S(CYCLES) }
#define TOLD2(event, mask, mask2, title, gp, how, sum)                         \
	{ .name = title, .select = event, .umask = mask, .umask2 = mask2,      \
	  .fixed = -1, .quality = VPMU_QUALITY_##how, .gp_mask = gp,           \
	  .signals = sum, .needs = UARCH }
#define TOLD(event, mask, title, gp, how, sum)                                 \
	TOLD2(event, mask, 0, title, gp, how, sum)
#define STORES(event, mask, title, gp, how, sum)                               \
	{ .name = title, .select = event, .umask = mask, .fixed = -1,          \
	  .quality = VPMU_QUALITY_##how, .gp_mask = gp, .signals = sum,        \
	  .needs = UARCH, .stores = true }
#define CMASK(n)	((n) << 8)
#define EDGE		(VPMU_EVTSEL_EDGE >> 16)
#define INV		(VPMU_EVTSEL_INV >> 16)
#define WHEN(event, mask, condition, title, gp, sum)                           \
	{ .name = title, .select = event, .umask = mask, .fixed = -1,          \
	  .when = condition, .quality = VPMU_QUALITY_MODELLED, .gp_mask = gp,  \
	  .signals = sum, .needs = UARCH }
/* Selected by another register. */
#define EXTRA(event, mask, title, gp, by, sum)                                 \
	{ .name = title, .select = event, .umask = mask, .fixed = -1,          \
	  .quality = VPMU_QUALITY_MODELLED, .gp_mask = gp, .signals = sum,     \
	  .needs = UARCH, .extra = VPMU_EXTRA_##by }

/* The architectural event of fixed counter 3. */
#define TOPDOWN(event, mask, title, gp)                                        \
	{ .name = title, .select = event, .umask = mask, .fixed = 3,           \
	  .quality = VPMU_QUALITY_MODELLED, .gp_mask = gp, .signals = SLOTS,   \
	  .needs = UARCH }

#define NAMED2(event, mask, mask2, title, gp)                                  \
	{ .name = title, .select = event, .umask = mask, .umask2 = mask2,      \
	  .fixed = -1, .quality = VPMU_QUALITY_NONE, .gp_mask = gp }
#define NAMED(event, mask, title, gp)                                          \
	NAMED2(event, mask, 0, title, gp)

#define COUNT_OF(table)	(sizeof(table) / sizeof((table)[0]))

extern const struct vpmu_model vpmu_model_bonnell;
extern const struct vpmu_model vpmu_model_broadwell;
extern const struct vpmu_model vpmu_model_core2;
extern const struct vpmu_model vpmu_model_core_duo;
extern const struct vpmu_model vpmu_model_generic;
extern const struct vpmu_model vpmu_model_generic_amd;
extern const struct vpmu_model vpmu_model_goldmont;
extern const struct vpmu_model vpmu_model_haswell;
extern const struct vpmu_model vpmu_model_clearwater_forest;
extern const struct vpmu_model vpmu_model_generic;
extern const struct vpmu_model vpmu_model_generic_amd;
extern const struct vpmu_model vpmu_model_granite_rapids;
extern const struct vpmu_model vpmu_model_icelake_server;
extern const struct vpmu_model vpmu_model_ivy_bridge;
extern const struct vpmu_model vpmu_model_knights;
extern const struct vpmu_model vpmu_model_nehalem;
extern const struct vpmu_model vpmu_model_sandy_bridge;
extern const struct vpmu_model vpmu_model_sapphire_rapids;
extern const struct vpmu_model vpmu_model_skylake_client;
extern const struct vpmu_model vpmu_model_skylake_server;
extern const struct vpmu_model vpmu_model_tremont;
extern const struct vpmu_model vpmu_model_westmere;
extern const struct vpmu_model vpmu_model_zen2;
extern const struct vpmu_model vpmu_model_zen3;
extern const struct vpmu_model vpmu_model_zen4;

#endif /* VPMU_MODELS_H */
