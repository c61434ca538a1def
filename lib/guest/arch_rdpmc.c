// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* RDPMC. */
#include "arch_event.h"
#include "arch_internal.h"
#include "arch_topdown.h"

/* ECX[31:16]. */
#define RDPMC_TYPE_GP		0x0000u
#define RDPMC_TYPE_FIXED	0x4000u
#define RDPMC_METRICS		0x20000000u

/*
 * RDPMC user disable: the counter reads 0 outside of ring 0. Source: Linux,
 * arch/x86/events/intel/core.c; Intel's ISE reference, "RDPMC User Disable".
 */
static bool rdpmc_hidden(const struct vpmu_arch *v, uint32_t pmc)
{
	if (pmc < v->n_gp)
		return v->r.evtsel[pmc] & v->valid.evtsel_hidden;
	return v->r.fixed_ctrl & v->valid.fixed_hidden << (4 * (pmc - v->n_gp));
}

/*
 * Bit 31 ("fast") is only defined for CPUs without architectural perfmon; here
 * it makes an unknown type. Source: SDM vol. 2, "RDPMC".
 */
enum vpmu_result vpmu_arch_rdpmc(struct vpmu_arch *v, uint32_t rdpmc_idx, bool user,
				 uint64_t *value)
{
	uint32_t pmc = rdpmc_idx & 0xffff, n = v->n_gp;

	if (rdpmc_idx == RDPMC_METRICS && v->topdown_fields) {
		*value = arch_topdown_value(v);
		goto out;
	}
	if (rdpmc_idx >> 16 == RDPMC_TYPE_FIXED)
		n = v->n_fixed;
	else if (rdpmc_idx >> 16 != RDPMC_TYPE_GP)
		return VPMU_FAULT;
	if (pmc >= n)
		return VPMU_FAULT;
	pmc = (uint32_t)vpmu_index_nospec(pmc, n);
	if (rdpmc_idx >> 16 == RDPMC_TYPE_FIXED)
		pmc += v->n_gp;
	*value = user && rdpmc_hidden(v, pmc) ? 0 : arch_event_read(v, pmc);
out:
	vpmu_trace(&v->ops, v->ctx, VPMU_TRACE_EXIT, 0, VPMU_TRACE_RDPMC,
		   rdpmc_idx, *value);
	return VPMU_HANDLED;
}
