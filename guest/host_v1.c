// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's interface, version 1, of 2010: one hypercall per change and no shared page.
 * It cannot report that an event is not counted, nor change the period of an open event.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/io.h>
#include <linux/percpu.h>

#include "vpmu_guest.h"

/* struct vpmu_pv1_attr as this kernel's compiler lays it out: 32-bit ones leave no holes. */
struct v1_attr {
	u32 type;
	u64 config;
	u64 sample_period;
	u64 sample_type;
	u64 read_format;
	u64 flags;
	u32 bp_type;
	u64 bp_addr;
	u64 bp_len;
};

static_assert(sizeof(struct v1_attr) == (IS_ENABLED(CONFIG_64BIT) ? VPMU_PV1_ATTR_BYTES
								 : VPMU_PV1_ATTR_BYTES_32));

static int v1_call(struct vg_event *ev, unsigned long op)
{
	return vg_hypercall(vg.hypercall, op, ev->id, 0);
}

static u64 v1_attr_flags(const struct perf_event *event)
{
	static const struct {
		u32 two;
		u64 one;
	} same[] = {
		{ VPMU_PV_EVENT_PINNED, VPMU_PV1_FLAG_PINNED },
		{ VPMU_PV_EVENT_EXCLUDE_USER, VPMU_PV1_FLAG_EXCLUDE_USER },
		{ VPMU_PV_EVENT_EXCLUDE_KERNEL, VPMU_PV1_FLAG_EXCLUDE_KERNEL },
		{ VPMU_PV_EVENT_EXCLUDE_HOST, VPMU_PV1_FLAG_EXCLUDE_HOST },
		{ VPMU_PV_EVENT_EXCLUDE_GUEST, VPMU_PV1_FLAG_EXCLUDE_GUEST },
	};
	u32 flags = vg_flags(event);
	unsigned int i;
	u64 ret = 0;

	for (i = 0; i < ARRAY_SIZE(same); i++)
		if (flags & same[i].two)
			ret |= same[i].one;
	return ret;
}

static int v1_open_at(void *page, struct vg_event *ev)
{
	struct perf_event *event = ev->event;
	struct vpmu_pv1_params *params = page;
	struct v1_attr *attr = (void *)(params + 1);

	memset(&ev->shared, 0, sizeof(ev->shared));
	memset(params, 0, sizeof(*params));
	memset(attr, 0, sizeof(*attr));
	ev->period = 0;
	if (is_sampling_event(event))
		ev->period = min_t(u64, event->hw.sample_period + ev->stretch, VPMU_PV_LEFT_MAX);
	ev->stretch = 0; /* each period has this length, as there is no other way */
	attr->type = vg_type(event);
	attr->config = event->attr.config;
	attr->sample_period = ev->period;
	attr->sample_type = event->attr.sample_type;
	attr->read_format = event->attr.read_format;
	attr->flags = v1_attr_flags(event);
	params->attr = virt_to_phys(attr);
	params->event = virt_to_phys(&ev->shared);
	params->id = ev->id;
	return vg_hypercall_at(vg.hypercall, VPMU_PV1_OPEN, params);
}

static int v1_open(struct vg_cpu *c, struct vg_event *ev)
{
	return v1_open_at(c->batch[VG_TASK], ev);
}

static int v1_close(struct vg_cpu *c, struct vg_event *ev)
{
	return v1_call(ev, VPMU_PV1_CLOSE);
}

static bool v1_look(struct vg_cpu *c, struct vg_event *ev, struct vg_numbers *n)
{
	memset(n, 0, sizeof(*n));
	/*
	 * A 32-bit kernel reads the count in halves, and an overflow may come between
	 * them.
	 */
	do
		n->count = READ_ONCE(ev->shared.count);
	while (!IS_ENABLED(CONFIG_64BIT) && n->count != READ_ONCE(ev->shared.count));
	return true;
}

static u32 v1_take(struct vg_cpu *c, struct vg_event *ev)
{
	int old = READ_ONCE(ev->shared.overflows);

	while (!try_cmpxchg(&ev->shared.overflows, &old, 0))
		;
	return old;
}

static u64 v1_overflowed(struct vg_cpu *c)
{
	u64 slots = 0;
	unsigned int s;

	for (s = 0; c->used >> s; s++) {
		struct vg_event *ev = READ_ONCE(c->slot[s].ev);

		if (ev && READ_ONCE(ev->shared.overflows))
			slots |= BIT_ULL(s);
	}
	return slots;
}

static void v1_disable(struct vg_cpu *c, unsigned int s)
{
	struct vg_slot *sl = &c->slot[s];

	if (v1_call(sl->ev, VPMU_PV1_DISABLE) == -VPMU_PV_ENOENT)
		sl->reopen = true;
	vg_update(c, sl->ev);
	sl->host = false;
}

/* The reopened event begins with a whole period. */
static void v1_reopen(struct vg_cpu *c, enum vg_context x, unsigned int s)
{
	struct vg_event *ev = c->slot[s].ev;
	int ret;

	c->slot[s].reopen = false;
	v1_call(ev, VPMU_PV1_CLOSE);
	/* The NMI of these overflows is pending while another event's is handled. */
	if (READ_ONCE(ev->shared.overflows))
		c->late = true;
	ret = v1_open_at(c->batch[x], ev);
	if (ret)
		pr_warn_once("the host does not open an event again: %d\n", ret);
	vg_begin(ev);
	if (is_sampling_event(ev->event))
		local64_set(&ev->event->hw.period_left, ev->period);
}

static void v1_enable(struct vg_cpu *c, enum vg_context x, unsigned int s)
{
	struct vg_slot *sl = &c->slot[s];
	int ret, tries;

	for (tries = 0; tries < 2; tries++) {
		if (sl->reopen)
			v1_reopen(c, x, s);
		sl->host = true; /* an NMI may come before the result is looked at */
		ret = v1_call(sl->ev, VPMU_PV1_ENABLE);
		if (!ret)
			return;
		sl->host = false;
		if (ret != -VPMU_PV_ENOENT)
			break;
		sl->reopen = true;
	}
	pr_warn_once("the host does not enable an event: %d\n", ret);
}

/*
 * Version 2 leaves such an event counting, with no overflow in reach; here it stands
 * still.
 */
static bool v1_wanted(const struct vg_slot *sl)
{
	return sl->want && !(is_sampling_event(sl->ev->event) &&
			     sl->ev->event->hw.state & PERF_HES_STOPPED);
}

static void v1_difference(struct vg_cpu *c, enum vg_context x, unsigned int s)
{
	struct vg_slot *sl = &c->slot[s];
	struct vg_event *ev = sl->ev;

	if (sl->host && (sl->reload || !v1_wanted(sl)))
		v1_disable(c, s);
	if (!sl->host && v1_wanted(sl)) {
		if (is_sampling_event(ev->event) && (ev->stretch || vg_other_period(ev)))
			sl->reopen = true;
		v1_enable(c, x, s);
	}
	if (sl->host && sl->read && !v1_call(ev, VPMU_PV1_READ))
		vg_update(c, ev);
	sl->read = false;
	sl->reload = false;
}

static void v1_read(struct vg_cpu *c, u64 slots)
{
	unsigned int s;

	for (s = 0; slots >> s && !vg.dead; s++) {
		struct vg_slot *sl = &c->slot[s];

		if (slots >> s & 1 && sl->ev && sl->host && !v1_call(sl->ev, VPMU_PV1_READ))
			vg_update(c, sl->ev);
	}
}

static void v1_flush(struct vg_cpu *c, enum vg_context x)
{
	u64 dirty = c->dirty[x];
	unsigned int s;

	c->dirty[x] = 0;
	for (s = 0; dirty >> s; s++) {
		if (!(dirty >> s & 1) || !c->slot[s].ev)
			continue;
		if (!vg.dead)
			v1_difference(c, x, s);
		if (!c->slot[s].want && x == VG_TASK)
			vg_free_slot(c, s);
	}
}

static int v1_up(struct vg_cpu *c)
{
	unsigned int s;

	for (s = 0; s < vg.n_slots; s++)
		if (c->slot[s].ev)
			vg_mark(c, VG_TASK, s);
	v1_flush(c, VG_TASK);
	return 0;
}

static void v1_down(struct vg_cpu *c)
{
	unsigned int s;

	for (s = 0; s < vg.n_slots; s++)
		if (c->slot[s].ev && c->slot[s].host)
			v1_disable(c, s);
}

/* Version 1 has no reset: close every id that an earlier kernel may have opened. */
static void v1_reset(void)
{
	u32 id;

	for (id = 1; id <= vg.n_ids; id++)
		vg_hypercall(vg.hypercall, VPMU_PV1_CLOSE, id, 0);
}

const struct vg_abi vg_abi_1 = {
	.version = 1,
	.up = v1_up,
	.down = v1_down,
	.reset = v1_reset,
	.open = v1_open,
	.close = v1_close,
	.flush = v1_flush,
	.read = v1_read,
	.overflowed = v1_overflowed,
	.take = v1_take,
	.look = v1_look,
};
