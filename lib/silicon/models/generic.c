// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Any other Intel CPU: only the events that the architecture defines for all of them. */
#include "models.h"

static const struct vpmu_event_def generic_events[] = {
	CLOCK(0x00, 0x03, "CPU_CLK_UNHALTED.REF_TSC", 2, 0, 0),
	TOLD(0x2e, 0x41, "LONGEST_LAT_CACHE.MISS", GP8, MODELLED, DRAM),
	TOLD(0x2e, 0x4f, "LONGEST_LAT_CACHE.REFERENCE", GP8, MODELLED, L2_MISSES),
	CLOCK(0x3c, 0x00, "CPU_CLK_UNHALTED.THREAD_P", 1, GP8, 0),
	CLOCK(0x3c, 0x01, "CPU_CLK_UNHALTED.REF_TSC_P", -1, GP8, 0),
	TOLD(0xa4, 0x01, "TOPDOWN.SLOTS_P", GP8, MODELLED, SLOTS),
	ROW(0xc0, 0x00, "INST_RETIRED.ANY_P", 0, GP8, S(INSTRUCTIONS)),
	ROW(0xc4, 0x00, "BR_INST_RETIRED.ALL_BRANCHES", -1, GP8, S(BRANCHES)),
	TOLD(0xc5, 0x00, "BR_MISP_RETIRED.ALL_BRANCHES", GP8, MODELLED, MISP_ALL),
};

const struct vpmu_model vpmu_model_generic = {
	.name = "generic",
	.title = "Intel, architectural events only",
	.vendor = VPMU_VENDOR_INTEL,
	.family = 6,
	.version = 5,
	.n_gp = 8,
	.n_fixed = 3,
	.width_bits = 48,
	.n_arch_events = 8,
	.capabilities = VPMU_CAP_SMM_FREEZE | VPMU_CAP_FULL_WIDTH,
	.events = generic_events,
	.n_events = COUNT_OF(generic_events),
};
