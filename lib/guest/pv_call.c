// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Hypercalls and the doorbell: their registers and answers. */
#include "pv_batch.h"
#include "pv_call.h"
#include "pv_memory.h"

/* Outside of 64-bit mode a register has no upper half. */
static uint64_t call_register(const struct vpmu_hypercall *call, uint64_t value)
{
	return call->long_mode ? value : (uint32_t)value;
}

static void call_trace(struct vpmu_pv *v, uint64_t nr, uint64_t op, int64_t result)
{
	bool batch = nr == VPMU_PV_HYPERCALL && op == VPMU_PV_OP_BATCH && result > 0;

	vpmu_trace(&v->ops, v->ctx, VPMU_TRACE_HYPERCALL, batch ? (unsigned int)result : 0,
		   op < 0xffff ? (unsigned int)op : 0xffff, nr, (uint64_t)result);
}

enum vpmu_result vpmu_pv_hypercall(struct vpmu_pv *v, struct vpmu_hypercall *call)
{
	uint64_t nr = call_register(call, call->nr);
	struct vpmu_hypercall local = *call;
	uint32_t abi = 0;
	unsigned int i;

	if (nr == VPMU_PV1_HYPERCALL)
		abi = VPMU_PV_ABI_1;
	if (nr == VPMU_PV_HYPERCALL && !v->vm->no_hypercall)
		abi = VPMU_PV_ABI_2;
	if (!(v->vm->abi & abi))
		return VPMU_NOT_MINE;
	if (call->cpl) {
		call->result = -VPMU_PV_EPERM;
		return VPMU_HANDLED;
	}
	for (i = 0; i < 4; i++)
		local.arg[i] = call_register(call, call->arg[i]);
	vpmu_pv_batch_begin(v);
	call->result = abi == VPMU_PV_ABI_1 ? vpmu_pv1_call(v, &local)
					    : vpmu_pv2_call(v, &local);
	vpmu_pv_batch_end(v);
	call_trace(v, nr, local.arg[0], call->result);
	return VPMU_HANDLED;
}

/* Write the answer; the guest reads the first one if no other follows. */
static bool call_answer(struct vpmu_pv *v, uint64_t gpa, int64_t result)
{
	return !v->ops.gpa_write(v->ctx, gpa + offsetof(struct vpmu_pv_call, result), &result,
				  sizeof(result));
}

enum vpmu_result vpmu_pv_doorbell(struct vpmu_pv *v, uint64_t value)
{
	struct vpmu_hypercall call;
	struct vpmu_pv_call in;

	if (!(v->vm->abi & VPMU_PV_ABI_2) || !(v->vm->features & VPMU_PV_HAS_DOORBELL))
		return VPMU_NOT_MINE;
	if (!vpmu_pv_range(value, sizeof(in), sizeof(in)) ||
	    v->ops.gpa_read(v->ctx, value, &in, sizeof(in)) ||
	    !call_answer(v, value, -VPMU_PV_EINVAL))
		return VPMU_FAULT;
	if (in.size != sizeof(in) || in.zero)
		return VPMU_HANDLED;
	memset(&call, 0, sizeof(call));
	call.nr = VPMU_PV_HYPERCALL;
	call.arg[0] = in.op;
	call.arg[1] = in.a1;
	call.arg[2] = in.a2;
	vpmu_pv_batch_begin(v);
	call.result = vpmu_pv2_call(v, &call);
	vpmu_pv_batch_end(v);
	(void)call_answer(v, value, call.result); /* it was writable before the call */
	return VPMU_HANDLED;
}
