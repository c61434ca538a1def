// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's interface, version 2. One batch tells the host how a CPU's slots differ from
 * what it has enabled, in this order: disable, enable leaders, then members, periods,
 * reads.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/percpu.h>

#include "vpmu_guest.h"

#define V2_SEQ_TRIES	1000 /* the host updates a slot in almost no time */
#define V2_FLUSH_TRIES	3    /* rounds in which events had to be opened again */

static struct vpmu_pv_op *v2_ops(struct vpmu_pv_batch *b)
{
	return (struct vpmu_pv_op *)(b + 1);
}

/* Begin operation @n of a batch; @n is below VPMU_PV_BATCH_MAX. */
static struct vpmu_pv_op *v2_op(struct vpmu_pv_batch *b, unsigned int n, u16 code, u32 id)
{
	struct vpmu_pv_op *op = v2_ops(b) + n;

	memset(op, 0, sizeof(*op));
	op->op = code;
	op->id = id;
	op->result = -VPMU_PV_ENOSYS; /* remains if the host does not reach it */
	return op;
}

static long v2_call(struct vpmu_pv_batch *b, unsigned int n)
{
	long ret;

	memset(b, 0, sizeof(*b));
	b->size = sizeof(*b) + n * sizeof(struct vpmu_pv_op);
	b->n_ops = n;
	ret = vg_call(VPMU_PV_OP_BATCH, virt_to_phys(b));
	if (ret != n)
		pr_warn_once("a batch of %u operations: %ld\n", n, ret);
	return ret;
}

static bool v2_look(struct vg_cpu *c, struct vg_event *ev, struct vg_numbers *n)
{
	const struct vpmu_pv_slot *at = &c->page->slot[ev->slot];
	unsigned int i;
	u32 seq, id;

	for (i = 0; i < V2_SEQ_TRIES; i++) {
		seq = READ_ONCE(at->seq);
		/*
		 * Pairs with the host's barrier before it stores an even seq: the
		 * numbers of that seq are visible.
		 */
		smp_rmb();
		id = READ_ONCE(at->id);
		n->count = READ_ONCE(at->count);
		n->enabled = READ_ONCE(at->enabled);
		n->running = READ_ONCE(at->running);
		n->flags = READ_ONCE(at->flags);
		/*
		 * Pairs with the host's barrier after it stores an odd seq: if newer
		 * numbers were read, seq has changed.
		 */
		smp_rmb();
		if (!(seq & 1) && READ_ONCE(at->seq) == seq)
			return id == ev->id;
	}
	return false;
}

static u32 v2_take(struct vg_cpu *c, struct vg_event *ev)
{
	u32 overflows = READ_ONCE(c->page->slot[ev->slot].overflows);
	u32 n = overflows - ev->overflows;

	ev->overflows = overflows;
	return n;
}

static u64 v2_overflowed(struct vg_cpu *c)
{
	u32 *word = c->page->overflowed;
	u64 slots = 0;

	if (READ_ONCE(word[0]))
		slots = xchg(&word[0], 0);
	if (READ_ONCE(word[1]))
		slots |= (u64)xchg(&word[1], 0) << 32;
	return slots & GENMASK_ULL(VPMU_PV_SLOTS - 1, 0);
}

static void v2_fill_open(struct vpmu_pv_op *op, const struct vg_event *ev)
{
	op->u.open.type = vg_type(ev->event);
	op->u.open.flags = vg_flags(ev->event);
	op->u.open.config = ev->event->attr.config;
	op->u.open.leader = ev->leader;
	if (!has_branch_stack(ev->event))
		return;
	op->u.open.flags |= VPMU_PV_EVENT_BRANCHES;
	op->u.open.suppress = vg_branch_suppress(ev->event);
}

static int v2_open(struct vg_cpu *c, struct vg_event *ev)
{
	struct vpmu_pv_batch *b = c->batch[VG_TASK];
	struct vpmu_pv_op *op = v2_op(b, 0, VPMU_PV_OPEN, ev->id);

	v2_fill_open(op, ev);
	v2_call(b, 1);
	return READ_ONCE(op->result);
}

static int v2_close(struct vg_cpu *c, struct vg_event *ev)
{
	struct vpmu_pv_batch *b = c->batch[VG_TASK];
	struct vpmu_pv_op *op = v2_op(b, 0, VPMU_PV_CLOSE, ev->id);

	v2_call(b, 1);
	return READ_ONCE(op->result);
}

/* Results */

static void v2_forgotten(struct vg_cpu *c, unsigned int s)
{
	struct vg_slot *sl = &c->slot[s];

	sl->host = false;
	sl->reopen = true;
	vg_mark(c, VG_TASK, s);
}

/* The host disables a leader's members with it; perf may keep them enabled. */
static void v2_orphans(struct vg_cpu *c, u32 leader)
{
	unsigned int s;

	for (s = 0; s < vg.n_slots; s++) {
		struct vg_slot *sl = &c->slot[s];

		if (!sl->ev || !sl->host || !sl->want || sl->ev->leader != leader)
			continue;
		vg_update(c, sl->ev);
		sl->ev->leader = 0;
		v2_forgotten(c, s);
	}
}

static void v2_disabled(struct vg_cpu *c, unsigned int s, const struct vpmu_pv_op *op)
{
	struct vg_slot *sl = &c->slot[s];
	int result = READ_ONCE(op->result);

	if (!result)
		vg_update(c, sl->ev);
	else if (result != -VPMU_PV_ENOENT)
		pr_warn_once("the host does not disable an event: %d\n", result);
	sl->host = false;
	if (result == -VPMU_PV_ENOENT)
		sl->reopen = true;
	if (!sl->ev->leader)
		v2_orphans(c, sl->ev->id);
}

static void v2_enabled(struct vg_cpu *c, unsigned int s, const struct vpmu_pv_op *op)
{
	u32 flags = READ_ONCE(c->page->slot[s].flags);
	int result = READ_ONCE(op->result);
	struct vg_slot *sl = &c->slot[s];

	if (!result) {
		sl->ev->stale = false;
		if (flags & VPMU_PV_SLOT_LOST &&
		    (flags & VPMU_PV_SLOT_REASON) >> VPMU_PV_SLOT_REASON_SHIFT == VPMU_LOSS_LOST)
			c->lost = true;
		return;
	}
	sl->host = false;
	if (result == -VPMU_PV_ENOENT) {
		v2_forgotten(c, s);
	} else if (sl->ev->leader) { /* a leader that is not enabled here */
		sl->ev->leader = 0;
		v2_forgotten(c, s);
	} else {
		pr_warn_once("the host does not enable an event: %d\n", result);
	}
}

static void v2_result(struct vg_cpu *c, unsigned int s, const struct vpmu_pv_op *op)
{
	struct vg_slot *sl = &c->slot[s];
	int result = READ_ONCE(op->result);

	switch (op->op) {
	case VPMU_PV_DISABLE:
		v2_disabled(c, s, op);
		break;
	case VPMU_PV_ENABLE:
		v2_enabled(c, s, op);
		break;
	case VPMU_PV_RESUME:
		break;
	default:
		if (result == -VPMU_PV_ENOENT)
			v2_forgotten(c, s);
		else if (!result && op->op == VPMU_PV_READ)
			vg_update(c, sl->ev);
		break;
	}
}

static void v2_send(struct vg_cpu *c, enum vg_context x)
{
	struct vpmu_pv_batch *b = c->batch[x];
	unsigned int i, n = c->batch_n[x];

	if (!n)
		return;
	c->batch_n[x] = 0;
	v2_call(b, n);
	for (i = 0; i < n; i++)
		v2_result(c, c->batch_slot[x][i], &v2_ops(b)[i]);
}

static struct vpmu_pv_op *v2_push(struct vg_cpu *c, enum vg_context x, unsigned int s, u16 code)
{
	unsigned int n;

	if (c->batch_n[x] == VPMU_PV_BATCH_MAX)
		v2_send(c, x);
	n = c->batch_n[x]++;
	c->batch_slot[x][n] = s;
	return v2_op(c->batch[x], n, code, c->slot[s].ev->id);
}

/* RESUME has no event, so it uses slot 0, and its result is ignored. */
static void v2_push_resume(struct vg_cpu *c, enum vg_context x)
{
	unsigned int n;

	if (x != VG_NMI || !c->frozen)
		return;
	c->frozen = false;
	if (c->batch_n[x] == VPMU_PV_BATCH_MAX)
		v2_send(c, x);
	n = c->batch_n[x]++;
	c->batch_slot[x][n] = 0;
	v2_op(c->batch[x], n, VPMU_PV_RESUME, 0);
}

/* Differences */

static void v2_push_enable(struct vg_cpu *c, enum vg_context x, unsigned int s, u16 code)
{
	struct vpmu_pv_op *op = v2_push(c, x, s, code);
	struct vg_slot *sl = &c->slot[s];
	struct vg_event *ev = sl->ev;
	u64 left, period;

	vg_distance(ev, &left, &period);
	op->slot = s;
	op->u.enable.left = left;
	op->u.enable.period = period;
	ev->period = period;
	ev->far = is_sampling_event(ev->event) && ev->event->hw.state & PERF_HES_STOPPED;
	sl->reload = false;
	sl->host = true; /* an NMI may come before the result is looked at */
}

enum v2_pass {
	V2_DISABLE,
	V2_LEADERS,
	V2_MEMBERS,
	V2_REST,
	V2_PASSES
};

static void v2_difference(struct vg_cpu *c, enum vg_context x, unsigned int s, enum v2_pass pass)
{
	struct vg_slot *sl = &c->slot[s];

	switch (pass) {
	case V2_DISABLE:
		if (sl->host && !sl->want)
			v2_push(c, x, s, VPMU_PV_DISABLE);
		break;
	case V2_LEADERS:
	case V2_MEMBERS:
		if (!sl->host && sl->want && !sl->ev->leader == (pass == V2_LEADERS))
			v2_push_enable(c, x, s, VPMU_PV_ENABLE);
		break;
	default:
		if (!sl->host || !sl->want)
			break;
		if (sl->reload)
			v2_push_enable(c, x, s, VPMU_PV_PERIOD);
		if (sl->read)
			v2_push(c, x, s, VPMU_PV_READ);
		sl->read = false;
		break;
	}
}

/* Reopen events that the host does not know, or whose leader it does not know. */
static void v2_reopen(struct vg_cpu *c, unsigned int s)
{
	struct vpmu_pv_batch *b = c->batch[VG_TASK];
	struct vg_event *ev = c->slot[s].ev;
	struct vpmu_pv_op *op;

	c->slot[s].reopen = false;
	ev->stale = true;
	v2_op(b, 0, VPMU_PV_CLOSE, ev->id);
	op = v2_op(b, 1, VPMU_PV_OPEN, ev->id);
	v2_fill_open(op, ev);
	v2_call(b, 2);
	if (READ_ONCE(op->result) && ev->leader) {
		ev->leader = 0;
		v2_fill_open(op, ev);
		v2_call(b, 2);
	}
	if (READ_ONCE(op->result)) {
		pr_warn_once("the host has lost an event and does not open it again: %d\n",
			     READ_ONCE(op->result));
		ev->opened = false;
	}
	vg_begin(ev);
}

static void v2_flush_once(struct vg_cpu *c, enum vg_context x, u64 dirty)
{
	unsigned int pass, s;

	for (s = 0; x == VG_TASK && dirty >> s; s++)
		if (dirty >> s & 1 && c->slot[s].ev && c->slot[s].reopen)
			v2_reopen(c, s);
	for (pass = 0; pass < V2_PASSES; pass++)
		for (s = 0; dirty >> s; s++)
			if (dirty >> s & 1 && c->slot[s].ev)
				v2_difference(c, x, s, pass);
	v2_push_resume(c, x);
	v2_send(c, x);
	for (s = 0; x == VG_TASK && dirty >> s; s++)
		if (dirty >> s & 1 && c->slot[s].ev && !c->slot[s].want)
			vg_free_slot(c, s);
}

/* The NMI handler's batch is still empty here: it sends its other operations at its end. */
static void v2_read(struct vg_cpu *c, u64 slots)
{
	unsigned int s;

	for (s = 0; slots >> s && !vg.dead; s++)
		if (slots >> s & 1 && c->slot[s].ev && c->slot[s].host)
			v2_push(c, VG_NMI, s, VPMU_PV_READ);
	v2_send(c, VG_NMI);
}

static void v2_flush(struct vg_cpu *c, enum vg_context x)
{
	unsigned int tries, s;
	u64 dirty;

	for (tries = 0; (c->dirty[x] || (x == VG_NMI && c->frozen)) && tries < V2_FLUSH_TRIES;
	     tries++) {
		dirty = c->dirty[x];
		c->dirty[x] = 0;
		if (!vg.dead) {
			v2_flush_once(c, x, dirty);
			continue;
		}
		for (s = 0; dirty >> s; s++)
			if (dirty >> s & 1 && c->slot[s].ev && !c->slot[s].want)
				vg_free_slot(c, s);
	}
}

/* CPUs */

static int v2_setup(struct vg_cpu *c, const struct vpmu_pv_page *page)
{
	struct vpmu_pv_setup_branches *more = (void *)c->batch[VG_TASK];
	struct vpmu_pv_setup *setup = &more->setup;

	memset(more, 0, sizeof(*more));
	setup->size = sizeof(*setup);
	setup->page = page ? virt_to_phys((void *)page) : 0;
	if (vg.features & VPMU_PV_HAS_BRANCHES) {
		setup->size = sizeof(*more);
		more->branches = page ? virt_to_phys(c->branches) : 0;
	}
	c->branch_seq = 0;
	c->frozen = false;
	return vg_call(VPMU_PV_OP_SETUP, virt_to_phys(setup));
}

static int v2_up(struct vg_cpu *c)
{
	unsigned int s;
	int ret;

	ret = v2_setup(c, c->page);
	if (ret) {
		pr_err("the host refuses the page of a CPU: %d\n", ret);
		return -EIO;
	}
	/* Enable again what was enabled before a suspend. */
	for (s = 0; s < vg.n_slots; s++)
		if (c->slot[s].ev)
			vg_mark(c, VG_TASK, s);
	v2_flush(c, VG_TASK);
	return 0;
}

static void v2_down(struct vg_cpu *c)
{
	unsigned int s;

	v2_setup(c, NULL);
	for (s = 0; s < vg.n_slots; s++) {
		if (!c->slot[s].ev || !c->slot[s].host)
			continue;
		vg_update(c, c->slot[s].ev);
		c->slot[s].host = false;
	}
}

static void v2_reset(void)
{
	unsigned long flags;

	local_irq_save(flags);
	vg_call(VPMU_PV_OP_RESET, 0);
	local_irq_restore(flags);
}

const struct vg_abi vg_abi_2 = {
	.version = 2,
	.up = v2_up,
	.down = v2_down,
	.reset = v2_reset,
	.open = v2_open,
	.close = v2_close,
	.flush = v2_flush,
	.read = v2_read,
	.overflowed = v2_overflowed,
	.take = v2_take,
	.look = v2_look,
};
