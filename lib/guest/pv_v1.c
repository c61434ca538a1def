// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Operations of the interface of 2010. What its text leaves open is decided in
 * docs/PV-ABI.md. Source: Linux mailing list, "The x86 kvm paravirt perf event
 * interface", June 2010.
 */
#include "pv_call.h"
#include "pv_close.h"
#include "pv_counter.h"
#include "pv_event.h"
#include "pv_memory.h"
#include "pv_page.h"
#include "pv_slot.h"

/* Two registers make an address, in any mode. */
static uint64_t pv1_address(const struct vpmu_hypercall *call)
{
	return (uint32_t)call->arg[1] | (uint64_t)(uint32_t)call->arg[2] << 32;
}

static int pv1_read(struct vpmu_pv *v, uint64_t gpa, void *buf, uint32_t size)
{
	if (!vpmu_pv_range(gpa, size, 4))
		return -VPMU_EFAULT;
	return v->ops.gpa_read(v->ctx, gpa, buf, size);
}

/* A 32-bit guest's struct has no holes. */
static void pv1_widen(const uint8_t *narrow, struct vpmu_pv1_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	memcpy(&attr->type, narrow, 4);
	memcpy(&attr->config, narrow + 4, 8);
	memcpy(&attr->sample_period, narrow + 12, 8);
	memcpy(&attr->sample_type, narrow + 20, 8);
	memcpy(&attr->read_format, narrow + 28, 8);
	memcpy(&attr->flags, narrow + 36, 8);
}

static int pv1_read_attr(struct vpmu_pv *v, uint64_t gpa, bool wide,
			 struct vpmu_pv1_attr *attr)
{
	uint8_t narrow[VPMU_PV1_ATTR_BYTES_32];
	int ret;

	if (wide)
		return pv1_read(v, gpa, attr, VPMU_PV1_ATTR_BYTES);
	ret = pv1_read(v, gpa, narrow, sizeof(narrow));
	if (!ret)
		pv1_widen(narrow, attr);
	return ret;
}

static int pv1_what(const struct vpmu_pv1_attr *attr, struct pv_what *what)
{
	static const struct {
		uint64_t one;
		uint32_t two;
	} same[] = {
		{ VPMU_PV1_FLAG_PINNED, VPMU_PV_EVENT_PINNED },
		{ VPMU_PV1_FLAG_EXCLUDE_USER, VPMU_PV_EVENT_EXCLUDE_USER },
		{ VPMU_PV1_FLAG_EXCLUDE_KERNEL, VPMU_PV_EVENT_EXCLUDE_KERNEL },
		{ VPMU_PV1_FLAG_EXCLUDE_HOST, VPMU_PV_EVENT_EXCLUDE_HOST },
		{ VPMU_PV1_FLAG_EXCLUDE_GUEST, VPMU_PV_EVENT_EXCLUDE_GUEST },
	};
	unsigned int i;

	memset(what, 0, sizeof(*what));
	what->type = attr->type;
	what->config = attr->config;
	for (i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (attr->flags & same[i].one)
			what->flags |= same[i].two;
	if (attr->flags & ~VPMU_PV1_FLAGS_KNOWN || attr->flags & VPMU_PV1_FLAG_FREQ ||
	    attr->sample_period > VPMU_PV_LEFT_MAX)
		return -VPMU_PV_EINVAL;
	return attr->flags & VPMU_PV1_FLAG_PRECISE ? -VPMU_PV_EOPNOTSUPP : 0;
}

static int64_t pv1_insert(struct vpmu_pv *v, const struct pv_what *what, uint32_t id,
			  uint64_t period, const struct pv_event *at)
{
	struct pv_event *ev;
	int64_t ret = 0;

	pv_lock(v);
	if (vpmu_pv_event_find(v->vm, VPMU_PV_ABI_1, id)) {
		ret = -VPMU_PV_EEXIST;
	} else {
		ev = vpmu_pv_event_take(v->vm, VPMU_PV_ABI_1, id, what);
		if (!ev) {
			ret = -VPMU_PV_ENOSPC;
		} else {
			ev->period = pv_period(v->vm, period);
			ev->left = ev->period;
			ev->gpa = at->gpa;
			ev->at = at->at;
			ev->at_bytes = at->at_bytes;
		}
	}
	pv_unlock(v);
	return ret;
}

static int64_t pv1_open(struct vpmu_pv *v, const struct vpmu_hypercall *call)
{
	struct vpmu_pv1_params params;
	struct vpmu_pv1_attr attr;
	struct pv_event at;
	struct pv_what what;
	uint16_t wrong;
	int64_t ret;

	memset(&params, 0, sizeof(params));
	if (pv1_read(v, pv1_address(call), &params, VPMU_PV1_PARAMS_BYTES))
		return -VPMU_PV_EFAULT;
	if (pv1_read_attr(v, params.attr, call->long_mode, &attr))
		return -VPMU_PV_ENXIO;
	ret = pv1_what(&attr, &what);
	if (!ret)
		ret = vpmu_pv_event_check(v, &what, &wrong);
	if (ret)
		return ret;
	memset(&at, 0, sizeof(at));
	at.gpa = params.event;
	at.at_bytes = call->long_mode ? VPMU_PV1_EVENT_BYTES : VPMU_PV1_EVENT_BYTES_32;
	if (vpmu_pv_range(at.gpa, at.at_bytes, 4) && vpmu_pv_in_page(at.gpa, at.at_bytes))
		at.at = v->ops.gpa_map(v->ctx, at.gpa, at.at_bytes);
	if (!at.at)
		return -VPMU_PV_EADDRNOTAVAIL;
	ret = pv1_insert(v, &what, (uint32_t)params.id, attr.sample_period, &at);
	if (ret)
		v->ops.gpa_unmap(v->ctx, at.at, at.at_bytes);
	return ret;
}

static int64_t pv1_enable(struct vpmu_pv *v, struct pv_event *ev)
{
	int slot;

	pv_assert_locked(v);
	if (pv_here(v, ev)) { /* no change, but for one that was lost or throttled */
		ev->left = vpmu_pv_counter_left(v, ev);
		vpmu_pv_slot_enable(v, ev, ev->slot, false);
		return 0;
	}
	slot = vpmu_pv_slot_choose(v, ev);
	if (slot < 0)
		return -VPMU_PV_ENOSPC;
	vpmu_pv_slot_enable(v, ev, (unsigned int)slot, false);
	return 0;
}

static int64_t pv1_sync(struct vpmu_pv *v, struct pv_event *ev)
{
	pv_assert_locked(v);
	if (pv_here(v, ev))
		vpmu_pv_counter_fold(v, ev);
	vpmu_pv_page_write_1(v, ev, 0);
	return 0;
}

static int64_t pv1_disable(struct vpmu_pv *v, struct pv_event *ev)
{
	pv_assert_locked(v);
	if (!pv_here(v, ev))
		return pv1_sync(v, ev);
	vpmu_pv_slot_disable(v, ev);
	return 0;
}

/* An operation on an open event. */
static int64_t pv1_event(struct vpmu_pv *v, uint64_t op, uint32_t id)
{
	struct pv_event *ev;
	uint32_t bytes = 0;
	void *at = NULL;
	int64_t ret;

	pv_lock(v);
	ev = vpmu_pv_event_find(v->vm, VPMU_PV_ABI_1, id);
	if (!ev)
		ret = -VPMU_PV_ENOENT;
	else if (op == VPMU_PV1_CLOSE)
		ret = vpmu_pv_close(v, ev, &at, &bytes);
	else if (ev->vcpu && !pv_here(v, ev))
		ret = -VPMU_PV_EBUSY;
	else if (op == VPMU_PV1_ENABLE)
		ret = pv1_enable(v, ev);
	else if (op == VPMU_PV1_DISABLE)
		ret = pv1_disable(v, ev);
	else
		ret = pv1_sync(v, ev);
	pv_unlock(v);
	if (at)
		v->ops.gpa_unmap(v->ctx, at, bytes);
	return ret;
}

int64_t vpmu_pv1_call(struct vpmu_pv *v, const struct vpmu_hypercall *call)
{
	switch (call->arg[0]) {
	case VPMU_PV1_OPEN:
		return pv1_open(v, call);
	case VPMU_PV1_CLOSE:
	case VPMU_PV1_ENABLE:
	case VPMU_PV1_DISABLE:
	case VPMU_PV1_READ:
		return pv1_event(v, call->arg[0], (uint32_t)call->arg[1]);
	default:
		return -VPMU_PV_ENOSYS;
	}
}
