// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Skylake-SP and Cascade Lake-SP, with hyper-threading: four GP counters. */
#include "models.h"

static const struct vpmu_event_def skylake_events[] = {
	CLOCK(0x00, 0x03, "CPU_CLK_UNHALTED.REF_TSC", 2, 0, 0),
	TOLD(0x2e, 0x41, "LONGEST_LAT_CACHE.MISS", GP4, MODELLED, DRAM),
	TOLD(0x2e, 0x4f, "LONGEST_LAT_CACHE.REFERENCE", GP4, MODELLED, L2_MISSES),
	CLOCK(0x3c, 0x00, "CPU_CLK_UNHALTED.THREAD_P", 1, GP4, 0),
	CLOCK(0x3c, 0x01, "CPU_CLK_UNHALTED.REF_XCLK", -1, GP4, CRYSTAL),
	ROW(0xc0, 0x00, "INST_RETIRED.ANY_P", 0, GP4, S(INSTRUCTIONS)),
	ROW(0xc0, 0x01, "INST_RETIRED.PREC_DIST", -1, 0x02, S(INSTRUCTIONS)),
	ROW(0xc4, 0x00, "BR_INST_RETIRED.ALL_BRANCHES", -1, GP4, S(BRANCHES)),
	ROW(0xc4, 0x01, "BR_INST_RETIRED.CONDITIONAL", -1, GP4, COND),
	ROW(0xc4, 0x02, "BR_INST_RETIRED.NEAR_CALL", -1, GP4, CALLS),
	ROW(0xc4, 0x04, "BR_INST_RETIRED.ALL_BRANCHES_PEBS", -1, GP4, S(BRANCHES)),
	ROW(0xc4, 0x08, "BR_INST_RETIRED.NEAR_RETURN", -1, GP4, S(RET)),
	ROW(0xc4, 0x10, "BR_INST_RETIRED.NOT_TAKEN", -1, GP4, S(JCC_NOT_TAKEN)),
	ROW(0xc4, 0x20, "BR_INST_RETIRED.NEAR_TAKEN", -1, GP4, NEAR_TAKEN),
	ROW(0xc4, 0x40, "BR_INST_RETIRED.FAR_BRANCH", -1, GP4, S(FAR)),
	TOLD(0xc5, 0x00, "BR_MISP_RETIRED.ALL_BRANCHES", GP4, MODELLED, MISP_ALL),
	TOLD(0xc5, 0x01, "BR_MISP_RETIRED.CONDITIONAL", GP4, MODELLED, MISP_COND),
	TOLD(0xc5, 0x02, "BR_MISP_RETIRED.NEAR_CALL", GP4, MODELLED, U(MISP_CALL)),
	TOLD(0xc5, 0x04, "BR_MISP_RETIRED.ALL_BRANCHES_PEBS", GP4, MODELLED, MISP_ALL),
	TOLD(0xc5, 0x08, "BR_MISP_RETIRED.RET", GP4, MODELLED, U(MISP_RET)),
	TOLD(0xc5, 0x20, "BR_MISP_RETIRED.NEAR_TAKEN", GP4, MODELLED, MISP_NEAR_TAKEN),
};

static const uint8_t skylake_models[] = { 85 };

const struct vpmu_model vpmu_model_skylake_server = {
	.name = "skylake-server",
	.title = "Intel Skylake-SP, Cascade Lake-SP",
	.vendor = VPMU_VENDOR_INTEL,
	.family = 6,
	.models = skylake_models,
	.n_models = COUNT_OF(skylake_models),
	.version = 4,
	.n_gp = 4,
	.n_fixed = 3,
	.width_bits = 48,
	.n_arch_events = 7,
	.capabilities = VPMU_CAP_LBR_INFO | VPMU_CAP_PEBS_FIXED(3) |
			VPMU_CAP_SMM_FREEZE | VPMU_CAP_FULL_WIDTH,
	.events = skylake_events,
	.n_events = COUNT_OF(skylake_events),
};
