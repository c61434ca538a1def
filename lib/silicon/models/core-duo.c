// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Core Duo and Core Solo: version 1, so neither fixed counters nor global control. */
#include "models.h"

static const struct vpmu_event_def core_duo_events[] = {
	TOLD(0x2e, 0x41, "LAST_LEVEL_CACHE_MISSES", GP2, MODELLED, DRAM),
	TOLD(0x2e, 0x4f, "LAST_LEVEL_CACHE_REFERENCES", GP2, MODELLED, L2_MISSES),
	CLOCK(0x3c, 0x00, "CPU_CLK_UNHALTED.CORE_P", -1, GP2, 0),
	CLOCK(0x3c, 0x01, "CPU_CLK_UNHALTED.NONHLT_REF_CYCLES", -1, GP2, BUS),
	TOLD(0x40, 0x01, "DCACHE_CACHE_LD.I_STATE", GP2, MODELLED, READ),
	TOLD(0x40, 0x0f, "DCACHE_CACHE_LD.MESI", GP2, MODELLED, U(LOADS)),
	TOLD(0x41, 0x01, "DCACHE_CACHE_ST.I_STATE", GP2, MODELLED, RFO),
	TOLD(0x41, 0x0f, "DCACHE_CACHE_ST.MESI", GP2, MODELLED, U(STORES)),
	TOLD(0x45, 0x0f, "DCACHE_REPL", GP2, MODELLED, DATA),
	ROW(0xc0, 0x00, "INSTR_RET", -1, GP2, S(INSTRUCTIONS)),
	TOLD(0xc2, 0x00, "UOPS_RET", GP2, MODELLED, U(RETIRING)),
	ROW(0xc4, 0x00, "BR_INSTR_RET", -1, GP2, S(BRANCHES)),
	TOLD(0xc5, 0x00, "BR_MISPRED_RET", GP2, MODELLED, MISP_ALL),
	MEANT(0xc9, 0x00, "BR_TAKEN_RET", GP2, TAKEN),
	TOLD(0xca, 0x00, "BR_MISPRED_TAKEN_RET", GP2, MODELLED, MISP_NEAR_TAKEN),
};

static const uint8_t core_duo_models[] = { 14 };

const struct vpmu_model vpmu_model_core_duo = {
	.name = "core-duo",
	.title = "Intel Core Duo, Core Solo",
	.vendor = VPMU_VENDOR_INTEL,
	.family = 6,
	.models = core_duo_models,
	.n_models = COUNT_OF(core_duo_models),
	.version = 1,
	.n_gp = 2,
	.width_bits = 40,
	.n_arch_events = 7,
	.events = core_duo_events,
	.n_events = COUNT_OF(core_duo_events),
};
