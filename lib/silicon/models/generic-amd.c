// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Any other AMD CPU: only the events that all of them count, from the K7 on. */
#include "models.h"

static const struct vpmu_event_def common_events[] = {
	CLOCK(0x76, 0x00, "LS_NOT_HALTED_CYC", -1, GP6, 0),
	ROW(0xc0, 0x00, "EX_RET_INSTR", -1, GP6, S(INSTRUCTIONS)),
	TOLD(0xc1, 0x00, "EX_RET_OPS", GP6, MODELLED, U(RETIRING)),
	MEANT(0xc2, 0x00, "EX_RET_BRN", GP6, S(BRANCHES)),
	TOLD(0xc3, 0x00, "EX_RET_BRN_MISP", GP6, MODELLED, MISP_ALL),
	MEANT(0xc4, 0x00, "EX_RET_BRN_TKN", GP6, TAKEN),
	TOLD(0xc5, 0x00, "EX_RET_BRN_TKN_MISP", GP6, MODELLED, MISP_NEAR_TAKEN),
	MEANT(0xc6, 0x00, "EX_RET_BRN_FAR", GP6, S(FAR)),
};

const struct vpmu_model vpmu_model_generic_amd = {
	.name = "generic-amd",
	.title = "AMD, common events only",
	.vendor = VPMU_VENDOR_AMD,
	.version = 2,
	.n_gp = 6,
	.width_bits = 48,
	.capabilities = VPMU_CAP_AMD_EXT_CORE | VPMU_CAP_AMD_FREEZE | VPMU_CAP_AMD_SVM,
	.events = common_events,
	.n_events = COUNT_OF(common_events),
};
