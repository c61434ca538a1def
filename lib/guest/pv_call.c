// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Hypercalls: registers, and ranges of guest memory. */
#include "pv_internal.h"

bool vpmu_pv_range(uint64_t gpa, uint32_t size, uint32_t align)
{
	return !(gpa & (align - 1)) && gpa <= UINT64_MAX - size;
}

bool vpmu_pv_in_page(uint64_t gpa, uint32_t size)
{
	return (gpa & (PV_PAGE - 1)) + size <= PV_PAGE;
}

/* Outside of 64-bit mode the upper halves of registers are none. */
static uint64_t call_register(const struct vpmu_hypercall *call, uint64_t value)
{
	return call->long_mode ? value : (uint32_t)value;
}

enum vpmu_result vpmu_pv_hypercall(struct vpmu_pv *v, struct vpmu_hypercall *call)
{
	uint64_t nr = call_register(call, call->nr);
	struct vpmu_hypercall local = *call;
	uint32_t abi = 0;
	unsigned int i;

	if (nr == VPMU_PV1_HYPERCALL)
		abi = VPMU_PV_ABI_1;
	if (nr == VPMU_PV_HYPERCALL)
		abi = VPMU_PV_ABI_2;
	if (!(v->vm->abi & abi))
		return VPMU_NOT_MINE;
	if (call->cpl) {
		call->result = -VPMU_PV_EPERM;
		return VPMU_HANDLED;
	}
	for (i = 0; i < 4; i++)
		local.arg[i] = call_register(call, call->arg[i]);
	vpmu_pvs_begin(v);
	call->result = abi == VPMU_PV_ABI_1 ? vpmu_pv1_call(v, &local)
					    : vpmu_pv2_call(v, &local);
	vpmu_pvs_end(v);
	return VPMU_HANDLED;
}
