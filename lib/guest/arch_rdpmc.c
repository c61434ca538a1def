/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* RDPMC. */
#include "arch_internal.h"

/* ECX[31:16]; topdown's metrics (2000H) are not offered. */
#define RDPMC_TYPE_GP		0x0000u
#define RDPMC_TYPE_FIXED	0x4000u

/*
 * Bit 31 ("fast") is only defined for CPUs without architectural perfmon; here
 * it makes an unknown type. Source: SDM vol. 2, "RDPMC"; facts sheet
 * arch-perfmon, "RDPMC".
 */
enum vpmu_result vpmu_arch_rdpmc(struct vpmu_arch *v, uint32_t rdpmc_idx,
				 uint64_t *value)
{
	uint32_t i = rdpmc_idx & 0xffff;

	switch (rdpmc_idx >> 16) {
	case RDPMC_TYPE_GP:
		if (i >= v->n_gp)
			return VPMU_FAULT;
		*value = vpmu_pmc_read(v, i);
		return VPMU_HANDLED;
	case RDPMC_TYPE_FIXED:
		if (i >= v->n_fixed)
			return VPMU_FAULT;
		*value = vpmu_pmc_read(v, v->n_gp + i);
		return VPMU_HANDLED;
	default:
		return VPMU_FAULT;
	}
}
