// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Core 2 and its Xeons. libpfm4 knows its events; Intel publishes no list. */
#include "models.h"

static const struct vpmu_event_def core2_events[] = {
	CLOCK(0x00, 0x03, "CPU_CLK_UNHALTED.REF", 2, 0, 0),
	TOLD(0x08, 0x01, "DTLB_MISSES.ANY", GP2, MODELLED, DTLB_LOADS | DTLB_STORES),
	TOLD(0x08, 0x02, "DTLB_MISSES.MISS_LD", GP2, MODELLED, DTLB_LOADS),
	TOLD(0x08, 0x08, "DTLB_MISSES.MISS_ST", GP2, MODELLED, DTLB_STORES),
	TOLD(0x2e, 0x41, "LAST_LEVEL_CACHE_MISSES", GP2, MODELLED, DRAM),
	TOLD(0x2e, 0x4f, "LAST_LEVEL_CACHE_REFERENCES", GP2, MODELLED, L2_MISSES),
	CLOCK(0x3c, 0x00, "CPU_CLK_UNHALTED.CORE_P", 1, GP2, 0),
	CLOCK(0x3c, 0x01, "CPU_CLK_UNHALTED.BUS", -1, GP2, BUS),
	TOLD(0x40, 0x01, "L1D_CACHE_LD.I_STATE", GP2, MODELLED, READ),
	TOLD(0x40, 0x0f, "L1D_CACHE_LD.MESI", GP2, MODELLED, U(LOADS)),
	TOLD(0x41, 0x01, "L1D_CACHE_ST.I_STATE", GP2, MODELLED, RFO),
	TOLD(0x41, 0x0f, "L1D_CACHE_ST.MESI", GP2, MODELLED, U(STORES)),
	TOLD(0x45, 0x0f, "L1D_REPL", GP2, MODELLED, DATA),
	NAMED(0x4e, 0x10, "L1D_PREFETCH.REQUESTS", GP2),
	TOLD(0x80, 0x00, "L1I_READS", GP2, MODELLED, U(L1I_HIT) | CODE),
	TOLD(0x81, 0x00, "L1I_MISSES", GP2, MODELLED, CODE),
	TOLD(0x82, 0x12, "ITLB.MISSES", GP2, MODELLED, U(ITLB_L2) | U(ITLB_WALK)),
	ROW(0xc0, 0x00, "INST_RETIRED.ANY_P", 0, GP2, S(INSTRUCTIONS)),
	TOLD(0xc0, 0x01, "INST_RETIRED.LOADS", GP2, EXACT, U(LOADS)),
	TOLD(0xc0, 0x02, "INST_RETIRED.STORES", GP2, EXACT, U(STORES)),
	TOLD(0xc2, 0x0f, "UOPS_RETIRED.ANY", GP2, MODELLED, U(RETIRING)),
	ROW(0xc4, 0x00, "BR_INST_RETIRED.ANY", -1, GP2, S(BRANCHES)),
	NAMED(0xc4, 0x01, "BR_INST_RETIRED.PRED_NOT_TAKEN", GP2),
	TOLD(0xc4, 0x02, "BR_INST_RETIRED.MISPRED_NOT_TAKEN", GP2, MODELLED, U(MISP_NOT_TAKEN)),
	NAMED(0xc4, 0x04, "BR_INST_RETIRED.PRED_TAKEN", GP2),
	TOLD(0xc4, 0x08, "BR_INST_RETIRED.MISPRED_TAKEN", GP2, MODELLED, MISP_NEAR_TAKEN),
	MEANT(0xc4, 0x0c, "BR_INST_RETIRED.TAKEN", GP2, TAKEN),
	TOLD(0xc5, 0x00, "BR_INST_RETIRED_MISPRED", GP2, MODELLED, MISP_ALL),
};

static const uint8_t core2_models[] = { 15, 22, 23, 29 };

const struct vpmu_model vpmu_model_core2 = {
	.name = "core2",
	.title = "Intel Core 2, Xeon of the same cores",
	.vendor = VPMU_VENDOR_INTEL,
	.family = 6,
	.models = core2_models,
	.n_models = COUNT_OF(core2_models),
	.version = 2,
	.n_gp = 2,
	.n_fixed = 3,
	.width_bits = 40,
	.n_arch_events = 7,
	.capabilities = VPMU_CAP_PEBS_FIXED(0) | VPMU_CAP_LBR_LIP,
	.lbr_entries = 4,
	.events = core2_events,
	.n_events = COUNT_OF(core2_events),
};
