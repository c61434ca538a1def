// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Xeon Phi: Knights Landing and Knights Mill. */
#include "models.h"

static const struct vpmu_event_def knights_events[] = {
	CLOCK(0x00, 0x03, "CPU_CLK_UNHALTED.REF_TSC", 2, 0, 0),
	TOLD(0x04, 0x40, "MEM_UOPS_RETIRED.ALL_LOADS", GP2, MODELLED, U(LOADS)),
	TOLD(0x04, 0x80, "MEM_UOPS_RETIRED.ALL_STORES", GP2, MODELLED, U(STORES)),
	NAMED(0x05, 0x01, "PAGE_WALKS.D_SIDE_CYCLES", GP2),
	TOLD(0x2e, 0x41, "L2_REQUESTS.MISS", GP2, MODELLED, L2_MISSES),
	TOLD(0x2e, 0x4f, "L2_REQUESTS.REFERENCE", GP2, MODELLED, L2_HITS | L2_MISSES),
	CLOCK(0x3c, 0x00, "CPU_CLK_UNHALTED.THREAD_P", 1, GP2, 0),
	CLOCK(0x3c, 0x01, "CPU_CLK_UNHALTED.REF", -1, GP2, BUS),
	TOLD(0x80, 0x02, "ICACHE.MISSES", GP2, MODELLED, CODE),
	TOLD(0x80, 0x03, "ICACHE.ACCESSES", GP2, MODELLED, U(L1I_HIT) | CODE),
	ROW(0xc0, 0x00, "INST_RETIRED.ANY_P", 0, GP2, S(INSTRUCTIONS)),
	TOLD(0xc2, 0x10, "UOPS_RETIRED.ALL", GP2, MODELLED, U(RETIRING)),
	ROW(0xc4, 0x00, "BR_INST_RETIRED.ALL_BRANCHES", -1, GP2, S(BRANCHES)),
	ROW(0xc4, 0x7e, "BR_INST_RETIRED.JCC", -1, GP2, COND),
	ROW(0xc4, 0xbf, "BR_INST_RETIRED.FAR_BRANCH", -1, GP2, S(FAR)),
	ROW(0xc4, 0xeb, "BR_INST_RETIRED.NON_RETURN_IND", -1, GP2, INDIRECT),
	ROW(0xc4, 0xf7, "BR_INST_RETIRED.RETURN", -1, GP2, S(RET)),
	ROW(0xc4, 0xf9, "BR_INST_RETIRED.CALL", -1, GP2, CALLS),
	ROW(0xc4, 0xfb, "BR_INST_RETIRED.IND_CALL", -1, GP2, S(CALL_INDIRECT)),
	ROW(0xc4, 0xfd, "BR_INST_RETIRED.REL_CALL", -1, GP2, S(CALL)),
	ROW(0xc4, 0xfe, "BR_INST_RETIRED.TAKEN_JCC", -1, GP2, S(JCC_TAKEN)),
	TOLD(0xc5, 0x00, "BR_MISP_RETIRED.ALL_BRANCHES", GP2, MODELLED, MISP_ALL),
	TOLD(0xc5, 0x7e, "BR_MISP_RETIRED.JCC", GP2, MODELLED, MISP_COND),
	NAMED(0xc5, 0xbf, "BR_MISP_RETIRED.FAR_BRANCH", GP2),
	TOLD(0xc5, 0xeb, "BR_MISP_RETIRED.NON_RETURN_IND", GP2, MODELLED, MISP_INDIRECT),
	TOLD(0xc5, 0xf7, "BR_MISP_RETIRED.RETURN", GP2, MODELLED, U(MISP_RET)),
	TOLD(0xc5, 0xf9, "BR_MISP_RETIRED.CALL", GP2, MODELLED, U(MISP_CALL)),
	TOLD(0xc5, 0xfb, "BR_MISP_RETIRED.IND_CALL", GP2, MODELLED, U(MISP_CALL)),
	NAMED(0xc5, 0xfd, "BR_MISP_RETIRED.REL_CALL", GP2),
	TOLD(0xc5, 0xfe, "BR_MISP_RETIRED.TAKEN_JCC", GP2, MODELLED, U(MISP_TAKEN)),
};

static const uint8_t knights_models[] = { 87, 133 };

const struct vpmu_model vpmu_model_knights = {
	.name = "knights",
	.title = "Intel Xeon Phi (Knights Landing, Knights Mill)",
	.vendor = VPMU_VENDOR_INTEL,
	.family = 6,
	.models = knights_models,
	.n_models = COUNT_OF(knights_models),
	.version = 3,
	.n_gp = 2,
	.n_fixed = 3,
	.width_bits = 40,
	.n_arch_events = 7,
	.capabilities = VPMU_CAP_SMM_FREEZE | VPMU_CAP_FULL_WIDTH,
	.events = knights_events,
	.n_events = COUNT_OF(knights_events),
};
