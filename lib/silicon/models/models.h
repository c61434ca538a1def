/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the model files share: short names for signals and rows.
 *
 * Encodings and counter masks: Intel's event lists, github.com/intel/perfmon;
 * tests/fast/models.py holds the tables against them.
 */
#ifndef VPMU_MODELS_H
#define VPMU_MODELS_H

#include <vpmu/model.h>
#include <vpmu/msr.h>

#define S(name)		VPMU_SIGNAL_BIT(VPMU_SIGNAL_##name)

#define COND		(S(JCC_TAKEN) | S(JCC_NOT_TAKEN))
#define CALLS		(S(CALL) | S(CALL_INDIRECT))
#define INDIRECT	(S(JMP_INDIRECT) | S(CALL_INDIRECT))
#define NEAR_TAKEN	(S(JCC_TAKEN) | S(JMP) | S(RET) | S(JMP_INDIRECT) | CALLS)

#define UARCH		"--uarch on"

/* Which GP counters can count an event. */
#define GP8		0xff
#define GP4		0x0f

/*
 * Shift of events that count a 25 MHz crystal: a cycle is by definition a tick of
 * the guest's TSC, and that is 400 MHz.
 */
#define CRYSTAL		4

/*
 * ROW: counted from signals. CLOCK: cycles and what is derived from them.
 * TOLD: needs the micro-architecture model, which counts it exactly (EXACT) or
 * by its model (MODELLED). NAMED: nobody counts it, but it has a name.
 */
#define ROW(event, mask, title, fix, gp, sum)                                  \
	{ .name = title, .select = event, .umask = mask, .fixed = fix,         \
	  .quality = VPMU_QUALITY_EXACT, .gp_mask = gp, .signals = sum }
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
extern const struct vpmu_model vpmu_model_icelake_server;
extern const struct vpmu_model vpmu_model_sapphire_rapids;
extern const struct vpmu_model vpmu_model_skylake_server;

#endif /* VPMU_MODELS_H */
