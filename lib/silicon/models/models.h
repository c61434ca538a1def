/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the model files share: short names for signals and rows.
 *
 * Encodings and counter masks: Intel's event lists, github.com/intel/perfmon; for
 * AMD Linux's, tools/perf/pmu-events, and its names. tests/fast/models.py holds the
 * tables against Intel's lists and against libpfm4.
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

#define UARCH		"--uarch on"

/* Which GP counters can count an event. */
#define GP8		0xff
#define GP6		0x3f
#define GP4		0x0f
#define EVEN6		0x15 /* AMD: the odd neighbour would hold the upper half */

/*
 * Shift of events that count a 25 MHz crystal: a cycle is by definition a tick of
 * the guest's TSC, and that is 400 MHz.
 */
#define CRYSTAL		4

/*
 * ROW: counted from signals. MEANT: likewise, by a definition of ours where the
 * vendor's is wider or not clear (docs/EVENTS.md). CLOCK: cycles and what is derived
 * from them.
 * TOLD: needs the micro-architecture model, which counts it exactly (EXACT) or
 * by its model (MODELLED). NAMED: nobody counts it, but it has a name.
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
#define TOLD(event, mask, title, gp, how)                                      \
	{ .name = title, .select = event, .umask = mask, .fixed = -1,          \
	  .quality = VPMU_QUALITY_##how, .gp_mask = gp, .needs = UARCH }

#define NAMED(event, mask, title, gp)                                          \
	{ .name = title, .select = event, .umask = mask, .fixed = -1,          \
	  .quality = VPMU_QUALITY_NONE, .gp_mask = gp }

#define COUNT_OF(table)	(sizeof(table) / sizeof((table)[0]))

extern const struct vpmu_model vpmu_model_generic;
extern const struct vpmu_model vpmu_model_generic_amd;
extern const struct vpmu_model vpmu_model_icelake_server;
extern const struct vpmu_model vpmu_model_sapphire_rapids;
extern const struct vpmu_model vpmu_model_skylake_server;
extern const struct vpmu_model vpmu_model_zen2;
extern const struct vpmu_model vpmu_model_zen3;
extern const struct vpmu_model vpmu_model_zen4;

#endif /* VPMU_MODELS_H */
