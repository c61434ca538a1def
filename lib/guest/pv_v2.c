// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Operations of version 2. Source: docs/PV-ABI.md. */
#include "pv_branch.h"
#include "pv_call.h"
#include "pv_close.h"
#include "pv_event.h"
#include "pv_memory.h"
#include "pv_page.h"
#include "pv_slot.h"

#define PV2_AT(field)	((uint16_t)offsetof(struct vpmu_pv_op, field))

static uint64_t pv2_address(const struct vpmu_hypercall *call)
{
	return (uint32_t)call->arg[1] | (uint64_t)(uint32_t)call->arg[2] << 32;
}

static bool pv2_zero(const void *at, size_t bytes)
{
	const uint8_t *p = at;
	uint8_t any = 0;
	size_t i;

	for (i = 0; i < bytes; i++)
		any |= p[i];
	return !any;
}

/* The answer to VERSION is never negative, in 32 bits either. */
static int64_t pv2_version(struct vpmu_pv *v, uint64_t word)
{
	struct vpmu_cpuid regs;

	memset(&regs, 0, sizeof(regs));
	(void)vpmu_pv_cpuid(v, 0, VPMU_CPUID_PV, &regs);
	switch (word) {
	case 0:
		return VPMU_PV_MAGIC;
	case 1:
		return regs.eax;
	case 2:
		return regs.ebx;
	case 3:
		return regs.ecx;
	case 4:
		return v->provider->time_hz & 0x7fffffff;
	case 5:
		return v->provider->time_hz >> 31 & 0x7fffffff;
	default:
		return -VPMU_PV_EINVAL;
	}
}

/* Events of version 2 are disabled first, and written into the page that goes. */
static int pv2_share(struct vpmu_pv *v, struct pv_setup *with)
{
	struct pv_pages old;

	if (!vpmu_pv_memory_map(v, with->gpa, with->branches, &with->pages))
		return -VPMU_PV_EADDRNOTAVAIL;
	pv_lock(v);
	vpmu_pv_slot_disable_all(v, VPMU_PV_ABI_2);
	old = vpmu_pv_page_replace(v, with);
	pv_unlock(v);
	vpmu_pv_memory_unmap(v, &old);
	return 0;
}

static int64_t pv2_setup(struct vpmu_pv *v, uint64_t gpa)
{
	const uint32_t more = sizeof(struct vpmu_pv_setup_branches);
	bool has_more = v->vm->features & VPMU_PV_HAS_BRANCHES;
	struct pv_setup with = { .branches = 0 };
	struct vpmu_pv_setup setup;

	if (!vpmu_pv_range(gpa, sizeof(setup), 8) ||
	    v->ops.gpa_read(v->ctx, gpa, &setup, sizeof(setup)))
		return -VPMU_PV_EFAULT;
	if (setup.size != sizeof(setup) && (!has_more || setup.size != more))
		return -VPMU_PV_EINVAL;
	if (setup.size == more &&
	    (!vpmu_pv_range(gpa, more, 8) ||
	     v->ops.gpa_read(v->ctx, gpa + sizeof(setup), &with.branches,
			      sizeof(with.branches))))
		return -VPMU_PV_EFAULT;
	if (setup.vector && !(v->vm->features & VPMU_PV_HAS_VECTOR))
		return -VPMU_PV_EOPNOTSUPP;
	if (setup.vector && (setup.vector < 32 || setup.vector > 255))
		return -VPMU_PV_ERANGE;
	if (!vpmu_pv_range(setup.page, PV_PAGE, PV_PAGE) ||
	    !vpmu_pv_range(with.branches, PV_PAGE, PV_PAGE))
		return -VPMU_PV_EADDRNOTAVAIL;
	with.gpa = setup.page;
	with.vector = (uint8_t)setup.vector;
	return pv2_share(v, &with);
}

static int pv2_insert(struct vpmu_pv *v, const struct vpmu_pv_op *op,
		      const struct pv_what *what, uint16_t *wrong)
{
	struct pv_event *leader = NULL, *ev;

	pv_assert_locked(v);
	*wrong = PV2_AT(u.open.leader);
	if (op->u.open.leader) {
		leader = vpmu_pv_event_find(v->vm, VPMU_PV_ABI_2, op->u.open.leader);
		if (!leader || leader->leader)
			return -VPMU_PV_EINVAL;
	}
	*wrong = PV2_AT(id);
	if (vpmu_pv_event_find(v->vm, VPMU_PV_ABI_2, op->id))
		return -VPMU_PV_EEXIST;
	ev = vpmu_pv_event_take(v->vm, VPMU_PV_ABI_2, op->id, what);
	if (!ev)
		return -VPMU_PV_ENOSPC;
	if (leader) {
		ev->leader = pv_index(v->vm, leader) + 1;
		ev->leader_serial = leader->serial;
	}
	return 0;
}

static int pv2_open(struct vpmu_pv *v, const struct vpmu_pv_op *op, uint16_t *wrong)
{
	struct pv_what what;
	int ret;

	*wrong = PV2_AT(id);
	if (!op->id || op->id > v->vm->n_events)
		return -VPMU_PV_EINVAL;
	*wrong = PV2_AT(u.open.config1);
	if (op->u.open.config1)
		return -VPMU_PV_EINVAL;
	*wrong = PV2_AT(u.open.zero);
	if (!pv2_zero(op->u.open.zero, sizeof(op->u.open.zero)))
		return -VPMU_PV_EINVAL;
	*wrong = PV2_AT(u.open.leader);
	if (op->u.open.leader && !(v->vm->features & VPMU_PV_HAS_GROUPS))
		return -VPMU_PV_EOPNOTSUPP;
	*wrong = PV2_AT(u.open.flags);
	if (op->u.open.leader && op->u.open.flags & VPMU_PV_EVENT_PINNED)
		return -VPMU_PV_EINVAL;
	memset(&what, 0, sizeof(what));
	what.type = op->u.open.type;
	what.flags = op->u.open.flags;
	what.suppress = op->u.open.suppress;
	what.config = op->u.open.config;
	ret = vpmu_pv_event_check(v, &what, wrong);
	if (ret)
		return ret;
	pv_lock(v);
	ret = pv2_insert(v, op, &what, wrong);
	pv_unlock(v);
	return ret;
}

static int pv2_check_period(const struct vpmu_pv_op *op, uint16_t *wrong)
{
	*wrong = PV2_AT(u.enable.left);
	if (op->u.enable.left > VPMU_PV_LEFT_MAX || (!op->u.enable.left && op->u.enable.period))
		return -VPMU_PV_EINVAL;
	*wrong = PV2_AT(u.enable.period);
	if (op->u.enable.period > VPMU_PV_LEFT_MAX)
		return -VPMU_PV_EINVAL;
	*wrong = PV2_AT(u.enable.zero);
	return pv2_zero(op->u.enable.zero, sizeof(op->u.enable.zero)) ? 0 : -VPMU_PV_EINVAL;
}

/* The slot that the guest names, after its check. */
static uint32_t pv2_slot(const struct vpmu_pv *v, const struct vpmu_pv_op *op)
{
	return (uint32_t)vpmu_index_nospec(op->slot, v->vm->n_slots);
}

/* May @ev come into the slot that the guest names? */
static int pv2_check_slot(struct vpmu_pv *v, const struct pv_event *ev,
			  const struct vpmu_pv_op *op, uint16_t *wrong)
{
	const struct pv_event *leader = vpmu_pv_event_leader(v->vm, ev);

	pv_assert_locked(v);
	*wrong = PV2_AT(slot);
	if (op->slot >= v->vm->n_slots || !v->page.slots)
		return -VPMU_PV_EINVAL;
	if (pv_here(v, ev) ? ev->slot != op->slot : v->slot[pv2_slot(v, op)].event != 0)
		return -VPMU_PV_EBUSY;
	*wrong = PV2_AT(id);
	if (leader && !pv_here(v, leader))
		return leader->vcpu ? -VPMU_PV_EBUSY : -VPMU_PV_EINVAL;
	return 0;
}

static int pv2_enable(struct vpmu_pv *v, struct pv_event *ev, const struct vpmu_pv_op *op,
		      uint16_t *wrong)
{
	int ret = pv2_check_period(op, wrong);

	pv_assert_locked(v);
	if (!ret)
		ret = pv2_check_slot(v, ev, op, wrong);
	if (ret)
		return ret;
	ev->left = op->u.enable.left;
	ev->period = pv_period(v->vm, op->u.enable.period);
	vpmu_pv_slot_enable(v, ev, pv2_slot(v, op), false);
	return 0;
}

static int pv2_period(struct vpmu_pv *v, struct pv_event *ev, const struct vpmu_pv_op *op,
		      uint16_t *wrong)
{
	int ret = pv2_check_period(op, wrong);

	pv_assert_locked(v);
	if (ret)
		return ret;
	*wrong = PV2_AT(id);
	if (!pv_here(v, ev))
		return -VPMU_PV_EINVAL;
	ev->left = op->u.enable.left;
	ev->period = pv_period(v->vm, op->u.enable.period);
	vpmu_pv_slot_enable(v, ev, ev->slot, true);
	return 0;
}

/* An operation on an open event. */
static int pv2_event(struct vpmu_pv *v, const struct vpmu_pv_op *op, uint16_t *wrong)
{
	struct pv_event *ev = vpmu_pv_event_find(v->vm, VPMU_PV_ABI_2, op->id);
	uint32_t bytes;
	void *at; /* events of version 2 have none */

	pv_assert_locked(v);
	*wrong = PV2_AT(id);
	if (!ev)
		return -VPMU_PV_ENOENT;
	if (op->op == VPMU_PV_CLOSE)
		return vpmu_pv_close(v, ev, &at, &bytes);
	if (ev->vcpu && !pv_here(v, ev))
		return -VPMU_PV_EBUSY;
	switch (op->op) {
	case VPMU_PV_ENABLE:
		return pv2_enable(v, ev, op, wrong);
	case VPMU_PV_PERIOD:
		return pv2_period(v, ev, op, wrong);
	case VPMU_PV_DISABLE:
		if (ev->vcpu)
			vpmu_pv_slot_disable(v, ev);
		return 0;
	default: /* READ */
		if (!ev->vcpu)
			return -VPMU_PV_EINVAL;
		pv_slot_dirty(v, ev->slot);
		return 0;
	}
}

static int pv2_resume(struct vpmu_pv *v, uint16_t *wrong)
{
	*wrong = 0;
	if (!(v->vm->features & VPMU_PV_HAS_BRANCHES))
		return -VPMU_PV_EOPNOTSUPP;
	pv_lock(v);
	vpmu_pv_branch_resume(v);
	pv_unlock(v);
	return 0;
}

static int pv2_op(struct vpmu_pv *v, const struct vpmu_pv_op *op, uint16_t *wrong)
{
	int ret;

	switch (op->op) {
	case VPMU_PV_OPEN:
		return pv2_open(v, op, wrong);
	case VPMU_PV_CLOSE:
	case VPMU_PV_ENABLE:
	case VPMU_PV_DISABLE:
	case VPMU_PV_READ:
	case VPMU_PV_PERIOD:
		pv_lock(v);
		ret = pv2_event(v, op, wrong);
		pv_unlock(v);
		return ret;
	case VPMU_PV_RESUME:
		return pv2_resume(v, wrong);
	default:
		*wrong = 0;
		return -VPMU_PV_ENOSYS;
	}
}

/* The operation is copied once: what the guest has in the page now is what is done. */
static bool pv2_do(struct vpmu_pv *v, uint64_t gpa)
{
	struct vpmu_pv_op op;
	uint16_t wrong = 0;

	if (v->ops.gpa_read(v->ctx, gpa, &op, sizeof(op)))
		return false;
	op.result = pv2_op(v, &op, &wrong);
	op.wrong = op.result ? wrong : 0;
	return !v->ops.gpa_write(v->ctx, gpa + PV2_AT(wrong), &op.wrong,
				  sizeof(op.wrong) + sizeof(op.result));
}

/* Nothing is done that could not be answered. */
static bool pv2_writable(struct vpmu_pv *v, uint64_t gpa)
{
	static const uint8_t none[sizeof(uint16_t) + sizeof(int32_t)];

	return !v->ops.gpa_write(v->ctx, gpa + PV2_AT(wrong), none, sizeof(none));
}

static int64_t pv2_batch(struct vpmu_pv *v, uint64_t gpa)
{
	struct vpmu_pv_batch head;
	uint32_t i;

	if (!vpmu_pv_range(gpa, sizeof(head), 8) || !vpmu_pv_in_page(gpa, sizeof(head)) ||
	    v->ops.gpa_read(v->ctx, gpa, &head, sizeof(head)))
		return -VPMU_PV_EFAULT;
	if (!head.n_ops || head.n_ops > VPMU_PV_BATCH_MAX)
		return -VPMU_PV_E2BIG;
	if (head.size != sizeof(head) + head.n_ops * sizeof(struct vpmu_pv_op) ||
	    !pv2_zero(head.zero, sizeof(head.zero)))
		return -VPMU_PV_EINVAL;
	if (!vpmu_pv_in_page(gpa, head.size) || !pv2_writable(v, gpa + sizeof(head)))
		return -VPMU_PV_EFAULT;
	for (i = 0; i < head.n_ops; i++)
		if (!pv2_do(v, gpa + sizeof(head) + i * sizeof(struct vpmu_pv_op)))
			return -VPMU_PV_EFAULT;
	return head.n_ops;
}

int64_t vpmu_pv2_call(struct vpmu_pv *v, const struct vpmu_hypercall *call)
{
	switch (call->arg[0]) {
	case VPMU_PV_OP_VERSION:
		return pv2_version(v, call->arg[1]);
	case VPMU_PV_OP_SETUP:
		return pv2_setup(v, pv2_address(call));
	case VPMU_PV_OP_BATCH:
		return pv2_batch(v, pv2_address(call));
	case VPMU_PV_OP_RESET:
		vpmu_pv_close_all(v);
		return 0;
	default:
		return -VPMU_PV_ENOSYS;
	}
}
