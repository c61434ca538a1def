// SPDX-License-Identifier: GPL-2.0-only
/* The interface to perf: struct pmu. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/idr.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <asm/cpufeature.h>
#include <asm/perf_event.h>

#include "compat.h"
#include "vpmu_guest.h"

static DEFINE_IDA(vg_ids);
static u32 vg_next_id = 1;

/*
 * Number of opened events that are not copies of others: if it changes, a set of events
 * that used to fit may not.
 */
static atomic_t vg_generation = ATOMIC_INIT(0);

static bool vg_ours(const struct perf_event *event)
{
	return event->pmu == vg.pmu;
}

/* Slots */

void vg_mark(struct vg_cpu *c, enum vg_context x, unsigned int slot)
{
	c->dirty[x] |= BIT_ULL(slot);
}

void vg_free_slot(struct vg_cpu *c, unsigned int slot)
{
	struct vg_event *ev = c->slot[slot].ev;

	c->slot[slot].ev = NULL;
	barrier(); /* after this, the NMI handler does not find the slot */
	if (ev) {
		ev->slot = -1;
		ev->event->hw.state |= PERF_HES_UPTODATE;
	}
	memset(&c->slot[slot], 0, sizeof(c->slot[slot]));
	c->used &= ~BIT_ULL(slot);
}

/*
 * Prefer the slot that the event had, as the host keeps an event there for a while.
 * Otherwise take the one that was freed longest ago, so that tasks that alternate have
 * different slots.
 */
static int vg_take_slot(struct vg_cpu *c, struct vg_event *ev)
{
	u64 free = ~c->used & GENMASK_ULL(vg.n_slots - 1, 0);
	u64 after = free & ~(BIT_ULL(c->next) - 1);
	int slot = ev->last;

	if (!free)
		return -1;
	if (slot < 0 || !(free & BIT_ULL(slot))) {
		slot = __ffs64(after ?: free);
		c->next = slot + 1; /* at most 63, which is no slot */
	}
	memset(&c->slot[slot], 0, sizeof(c->slot[slot]));
	c->used |= BIT_ULL(slot);
	ev->slot = slot;
	ev->last = slot;
	barrier(); /* the NMI handler finds a complete slot */
	c->slot[slot].ev = ev;
	return slot;
}

/* Numbers */

void vg_update(struct vg_cpu *c, struct vg_event *ev)
{
	struct hw_perf_event *hwc = &ev->event->hw;
	struct vg_numbers n;
	u64 prev;

	if (ev->slot < 0 || ev->stale || !c->slot[ev->slot].host)
		return;
	/* The NMI handler may do the same meanwhile. */
	do {
		prev = local64_read(&hwc->prev_count);
		if (!vg.abi->look(c, ev, &n))
			return;
	} while (local64_cmpxchg(&hwc->prev_count, prev, n.count) != prev);
	local64_add(n.count - prev, &ev->event->count);
	local64_sub(n.count - prev, &hwc->period_left);
	if (!in_nmi() && vg.abi->version == 2)
		vg_times_update(&ev->times, ev->event, n.enabled, n.running,
				n.flags & VPMU_PV_SLOT_LOST);
}

void vg_begin(struct vg_event *ev)
{
	local64_set(&ev->event->hw.prev_count, 0);
	ev->overflows = 0;
	ev->times.enabled = 0;
	ev->times.running = 0;
}

/* Request the numbers of all samplers of this CPU, once per bracket. */
static void vg_refresh(struct vg_cpu *c)
{
	u64 slots = c->used;
	unsigned int s;

	if (c->fresh)
		return;
	for (s = 0; slots >> s; s++) {
		struct vg_slot *sl = &c->slot[s];

		if (!(slots >> s & 1) || !sl->host || !sl->want ||
		    !is_sampling_event(sl->ev->event))
			continue;
		sl->read = true;
		vg_mark(c, VG_TASK, s);
	}
	vg.abi->flush(c, VG_TASK);
	c->fresh = c->disabled;
}

/* Periods */

/* Normalize the occurrences that are left to 1 .. sample_period. */
static void vg_arm(struct hw_perf_event *hwc)
{
	s64 period = hwc->sample_period;
	s64 left = local64_read(&hwc->period_left);

	if (left <= -period)
		left = period;
	else if (left <= 0)
		left += period;
	local64_set(&hwc->period_left, left);
	hwc->last_period = period;
}

/* Change the length of the current period, which keeps its beginning. */
static void vg_rearm(struct vg_event *ev)
{
	struct hw_perf_event *hwc = &ev->event->hw;
	s64 left = local64_read(&hwc->period_left);

	if (left > 0 && !ev->far && ev->period) {
		left += hwc->sample_period - ev->period;
		local64_set(&hwc->period_left, max_t(s64, left, 1));
	}
	vg_arm(hwc);
}

/*
 * Perf keeps a frequency by a small change of the period at each sample. Each change
 * costs a hypercall, so small ones are deferred. A sample reports the period that it had.
 */
bool vg_other_period(const struct vg_event *ev)
{
	const struct hw_perf_event *hwc = &ev->event->hw;
	u64 period = hwc->sample_period;

	if (ev->far || !local64_read(&hwc->period_left) || period > VPMU_PV_LEFT_MAX)
		return true;
	if (!ev->event->attr.freq)
		return period != ev->period;
	return max(period, ev->period) - min(period, ev->period) > ev->period / 16;
}

void vg_distance(struct vg_event *ev, u64 *left, u64 *period)
{
	struct hw_perf_event *hwc = &ev->event->hw;

	*left = 0;
	*period = 0;
	if (!is_sampling_event(ev->event))
		return;
	if (hwc->state & PERF_HES_STOPPED) {
		*left = VPMU_PV_LEFT_MAX;
		return;
	}
	*left = clamp_t(s64, local64_read(&hwc->period_left), 1, VPMU_PV_LEFT_MAX);
	if (hwc->sample_period <= VPMU_PV_LEFT_MAX)
		*period = hwc->sample_period;
}

void vg_repeat(struct vg_cpu *c, struct vg_event *ev)
{
	if (c->slot[ev->slot].reload || !vg_other_period(ev))
		return;
	vg_rearm(ev);
	c->slot[ev->slot].reload = true;
	vg_mark(c, vg_context(), ev->slot);
}

/* Callbacks: on the event's CPU with interrupts off, or from an NMI */

static void vg_start(struct perf_event *event, int flags)
{
	struct vg_cpu *c = this_cpu_ptr(vg_cpus);
	struct vg_event *ev = vg_event(event);
	enum vg_context x = vg_context();
	struct vg_slot *sl;

	if (WARN_ON_ONCE(ev->slot < 0))
		return;
	event->hw.state = 0;
	if (!is_sampling_event(event))
		return;
	sl = &c->slot[ev->slot];
	sl->reload = false;
	if (sl->host) {
		vg_repeat(c, ev);
	} else {
		vg_arm(&event->hw);
		vg_mark(c, x, ev->slot);
	}
	if (x == VG_TASK ? !c->disabled : !c->nmi_busy)
		vg.abi->flush(c, x);
	perf_event_update_userpage(event);
}

/*
 * When perf stops an event without removing it, it wants to throttle it or to change its
 * period: the event continues to count, without overflows. The host would disable the
 * members with a leader.
 */
void vg_stop(struct perf_event *event, int flags)
{
	struct vg_cpu *c = this_cpu_ptr(vg_cpus);
	struct vg_event *ev = vg_event(event);
	enum vg_context x = vg_context();

	if (ev->slot < 0)
		return;
	if (flags & PERF_EF_UPDATE) {
		if (x == VG_TASK)
			vg_refresh(c);
		vg_update(c, ev);
	}
	if (event->hw.state & PERF_HES_STOPPED)
		return;
	event->hw.state |= PERF_HES_STOPPED;
	if (is_sampling_event(event)) {
		c->slot[ev->slot].reload = true;
		vg_mark(c, x, ev->slot);
	}
	if (x == VG_TASK ? !c->disabled : !c->nmi_busy)
		vg.abi->flush(c, x);
}

/* The event may have failed to open because the host's limit was reached. */
static bool vg_open_again(struct vg_cpu *c, struct vg_event *ev);

static int vg_add(struct perf_event *event, int flags)
{
	struct vg_cpu *c = this_cpu_ptr(vg_cpus);
	struct vg_event *ev = vg_event(event);

	if (!c->up || c->n_want >= vg.n_counters)
		return -EAGAIN;
	if (!ev->opened && !vg_open_again(c, ev))
		return -EAGAIN;
	/*
	 * An event that still has its slot was removed in this same bracket: no time has
	 * passed.
	 */
	if (ev->slot < 0) {
		if (vg_take_slot(c, ev) < 0) {
			/* Frees the slots of events that are being removed. */
			vg.abi->flush(c, VG_TASK);
			if (vg_take_slot(c, ev) < 0)
				return -EAGAIN;
		}
		ev->times.seen = event->total_time_running;
	}
	c->slot[ev->slot].want = true;
	c->n_want++;
	c->added |= BIT_ULL(ev->slot);
	vg_mark(c, VG_TASK, ev->slot);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		vg_start(event, PERF_EF_RELOAD);
	if (!c->disabled)
		vg.abi->flush(c, VG_TASK);
	return 0;
}

/* Its count is read at the end of the bracket, in the same critical section. */
static void vg_del(struct perf_event *event, int flags)
{
	struct vg_cpu *c = this_cpu_ptr(vg_cpus);
	struct vg_event *ev = vg_event(event);

	if (ev->slot < 0)
		return;
	event->hw.state |= PERF_HES_STOPPED;
	c->slot[ev->slot].want = false;
	c->n_want--;
	c->added &= ~BIT_ULL(ev->slot);
	vg_mark(c, VG_TASK, ev->slot);
	if (!c->disabled)
		vg.abi->flush(c, VG_TASK);
}

/*
 * Perf takes a sample and asks for the events of its group, one by one: read all of them
 * with one call, once for each sample. The sampled event itself has just been read.
 */
static void vg_read_group(struct vg_cpu *c, struct vg_event *ev)
{
	u32 leader = ev->leader ? ev->leader : ev->id;
	u64 slots = 0;
	unsigned int s;

	if (c->nmi_read & BIT_ULL(ev->slot))
		return;
	for (s = 0; c->used >> s; s++) {
		const struct vg_event *member = c->slot[s].ev;

		if (c->used >> s & 1 && member &&
		    (member == ev || member->leader == leader || member->id == leader))
			slots |= BIT_ULL(s);
	}
	slots &= ~c->nmi_read;
	c->nmi_read |= slots;
	vg.abi->read(c, slots);
}

void vg_read(struct perf_event *event)
{
	struct vg_cpu *c = this_cpu_ptr(vg_cpus);
	struct vg_event *ev = vg_event(event);
	enum vg_context x = vg_context();

	if (ev->slot < 0)
		return;
	if (x == VG_NMI && c->nmi_busy) {
		vg_read_group(c, ev);
		return;
	}
	c->slot[ev->slot].read = true;
	vg_mark(c, x, ev->slot);
	if (x == VG_TASK && c->txn & PERF_PMU_TXN_READ)
		return;
	vg.abi->flush(c, x);
}

static void vg_pmu_disable(struct pmu *pmu)
{
	this_cpu_ptr(vg_cpus)->disabled = true;
}

static void vg_pmu_enable(struct pmu *pmu)
{
	struct vg_cpu *c = this_cpu_ptr(vg_cpus);

	vg.abi->flush(c, VG_TASK);
	c->disabled = false;
	c->fresh = false;
	if (c->lost) {
		/* Assume for a while that nothing fits, so that perf rotates. */
		c->lost = false;
		c->n_fit = 0;
		c->careful = jiffies + HZ;
	}
}

static void vg_start_txn(struct pmu *pmu, unsigned int flags)
{
	struct vg_cpu *c = this_cpu_ptr(vg_cpus);

	c->txn = flags;
	c->added = 0;
}

static bool vg_may_not_fit(struct vg_cpu *c)
{
	unsigned int generation = atomic_read(&vg_generation);

	if (c->generation != generation) {
		c->generation = generation;
		c->n_fit = 0;
	}
	return c->n_want > c->n_fit || time_before(jiffies, c->careful);
}

/*
 * A group for which the host has no counter now must fail, since perf only rotates on
 * failure. The test costs a hypercall per group, so as many events as have fitted before
 * are assumed to fit.
 */
static int vg_commit_added(struct vg_cpu *c)
{
	if (!c->added || vg.abi->version == 1 || !vg_may_not_fit(c))
		return 0;
	vg.abi->flush(c, VG_TASK);
	if (c->lost) {
		c->lost = false;
		return -EAGAIN;
	}
	c->n_fit = max(c->n_fit, c->n_want);
	return 0;
}

static int vg_commit_txn(struct pmu *pmu)
{
	struct vg_cpu *c = this_cpu_ptr(vg_cpus);
	unsigned int flags = c->txn;

	c->txn = 0;
	if (flags & PERF_PMU_TXN_READ)
		vg.abi->flush(c, VG_TASK);
	else if (flags == PERF_PMU_TXN_ADD)
		return vg_commit_added(c);
	return 0;
}

static void vg_cancel_txn(struct pmu *pmu)
{
	this_cpu_ptr(vg_cpus)->txn = 0;
}

/* Opening */

u32 vg_type(const struct perf_event *event)
{
	switch (event->attr.type) {
	case PERF_TYPE_HARDWARE:
		return VPMU_PV_TYPE_HARDWARE;
	case PERF_TYPE_HW_CACHE:
		return VPMU_PV_TYPE_HW_CACHE;
	default:
		return VPMU_PV_TYPE_RAW;
	}
}

/*
 * This guest may run guests of its own. If it cannot, it need not exclude them, or
 * itself.
 */
static bool vg_may_have_guests(void)
{
	return boot_cpu_has(X86_FEATURE_VMX) || boot_cpu_has(X86_FEATURE_SVM);
}

u32 vg_flags(const struct perf_event *event)
{
	const struct perf_event_attr *attr = &event->attr;
	u32 flags = 0;

	if (attr->pinned && event->group_leader == event)
		flags |= VPMU_PV_EVENT_PINNED;
	if (attr->exclude_user)
		flags |= VPMU_PV_EVENT_EXCLUDE_USER;
	if (attr->exclude_kernel)
		flags |= VPMU_PV_EVENT_EXCLUDE_KERNEL;
	if (attr->exclude_host)
		flags |= VPMU_PV_EVENT_EXCLUDE_HOST;
	if (attr->exclude_guest && vg_may_have_guests())
		flags |= VPMU_PV_EVENT_EXCLUDE_GUEST;
	return flags;
}

/* The host's id of the event's leader, or 0. */
static u32 vg_leader(const struct perf_event *event)
{
	struct perf_event *leader = event->group_leader;

	if (!(vg.features & VPMU_PV_HAS_GROUPS) || leader == event || !vg_ours(leader) ||
	    !vg_event(leader) || !vg_event(leader)->opened)
		return 0;
	return vg_event(leader)->id;
}

static u32 vg_new_id(gfp_t gfp)
{
	int id = ida_alloc_range(&vg_ids, READ_ONCE(vg_next_id), vg.n_ids, gfp);

	if (id < 0)
		id = ida_alloc_range(&vg_ids, 1, vg.n_ids, gfp);
	if (id < 0)
		return 0;
	WRITE_ONCE(vg_next_id, id < vg.n_ids ? id + 1 : 1);
	return id;
}

/* Open an event. Interrupts are off. Returns 0, or the host's error. */
static int vg_open(struct vg_cpu *c, struct vg_event *ev)
{
	int ret;

	if (!ev->id)
		ev->id = vg_new_id(GFP_ATOMIC);
	if (!ev->id || READ_ONCE(vg.dead))
		return -VPMU_PV_ENOSPC;
	ret = vg.abi->open(c, ev);
	if (!ret) {
		ev->opened = true;
		vg_begin(ev);
	}
	return ret;
}

static bool vg_open_again(struct vg_cpu *c, struct vg_event *ev)
{
	if (time_before(jiffies, ev->retry))
		return false;
	ev->retry = jiffies + HZ / 4 + 1;
	return !vg_open(c, ev);
}

static int vg_open_first(struct vg_event *ev)
{
	unsigned long flags;
	int ret;

	if (ev->event->group_leader != ev->event)
		ev->leader = vg_leader(ev->event);
	local_irq_save(flags);
	ret = vg_open(this_cpu_ptr(vg_cpus), ev);
	local_irq_restore(flags);
	switch (ret) {
	case 0:
		if (!ev->event->parent)
			atomic_inc(&vg_generation);
		return 0;
	case -VPMU_PV_ENOSPC:
		/*
		 * The event is not counted for now; perf shows that as one that never
		 * ran.
		 */
		ev->retry = jiffies + HZ / 4 + 1;
		return 0;
	case -VPMU_PV_ENOENT:
	case -VPMU_PV_EACCES:
	case -VPMU_PV_ENOSYS: /* the host has taken the PMU away */
		return -ENOENT;
	case -VPMU_PV_EOPNOTSUPP:
		/* On EINVAL perf tries again without the flag. */
		return vg_flags(ev->event) & VPMU_PV_EVENT_EXCLUDE_GUEST ? -EINVAL : -EOPNOTSUPP;
	case -VPMU_PV_EINVAL:
		return -EINVAL;
	default:
		pr_warn_once("the host refuses to open an event: %d\n", ret);
		return -EIO;
	}
}

/*
 * The first period of an event with a frequency. Perf would begin with 1, which floods
 * the guest until perf finds a better one. A rate is assumed; perf corrects it within
 * some samples if they are too many, and at each tick if they are too few.
 */
static void vg_first_period(struct perf_event *event)
{
	struct hw_perf_event *hwc = &event->hw;
	u64 rate = (vg.hz ?: NSEC_PER_SEC) / 64;

	if (!event->attr.freq || !event->attr.sample_freq)
		return;
	if (event->attr.type == PERF_TYPE_HARDWARE &&
	    (event->attr.config == PERF_COUNT_HW_CPU_CYCLES ||
	     event->attr.config == PERF_COUNT_HW_INSTRUCTIONS))
		rate *= 32;
	hwc->sample_period = max_t(u64, div64_u64(rate, event->attr.sample_freq), 1);
	hwc->last_period = hwc->sample_period;
	local64_set(&hwc->period_left, hwc->sample_period);
}

/* Is a group too large ever to be enabled as a whole? */
static bool vg_group_too_large(struct perf_event *event)
{
	struct perf_event *leader = event->group_leader, *member;
	unsigned int n = 1;

	if (leader == event)
		return false;
	n += vg_ours(leader);
	for_each_sibling_event(member, leader)
		n += vg_ours(member);
	return n > vg.n_counters;
}

static void vg_destroy(struct perf_event *event)
{
	struct vg_event *ev = vg_event(event);
	unsigned long flags;
	int ret = 0;

	if (WARN_ON_ONCE(ev->slot >= 0))
		return;
	if (ev->opened) {
		local_irq_save(flags);
		ret = vg.abi->close(this_cpu_ptr(vg_cpus), ev);
		local_irq_restore(flags);
	}
	event->pmu_private = NULL;
	if (ret && ret != -VPMU_PV_ENOENT && ret != -VPMU_PV_ENOSYS) {
		/* Leak the event: the host may still write to it, or know its id. */
		pr_warn_once("the host does not close an event: %d\n", ret);
		return;
	}
	if (ev->id)
		ida_free(&vg_ids, ev->id);
	kfree(ev);
}

static int vg_is_ours(const struct perf_event *event)
{
	switch (event->attr.type) {
	case PERF_TYPE_RAW:
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
		return vg.raw ? 0 : -ENOENT;
	default:
		return event->attr.type == vg.pmu->type ? 0 : -ENOENT;
	}
}

static int vg_event_init(struct perf_event *event)
{
	struct vg_event *ev;
	int ret = vg_is_ours(event);

	if (ret)
		return ret;
	if (event->attr.precise_ip || event->attr.aux_output || vg_branch_init(event) ||
	    (event->attr.exclude_host && !vg_may_have_guests()))
		return -EOPNOTSUPP;
	if (event->attr.config1 || event->attr.config2 || vg_group_too_large(event))
		return -EINVAL;
	ev = kzalloc(sizeof(*ev), GFP_KERNEL);
	if (!ev)
		return -ENOMEM;
	ev->event = event;
	ev->slot = -1;
	ev->last = -1;
	ev->id = vg_new_id(GFP_KERNEL);
	vg_first_period(event);
	event->pmu_private = ev;
	ret = vg_open_first(ev);
	if (ret) {
		if (ev->id)
			ida_free(&vg_ids, ev->id);
		event->pmu_private = NULL;
		kfree(ev);
		return ret;
	}
	event->destroy = vg_destroy;
	return 0;
}

static const struct pmu vg_pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_hw_context,
	.capabilities = VG_PMU_CAPABILITIES,
	.pmu_enable = vg_pmu_enable,
	.pmu_disable = vg_pmu_disable,
	.event_init = vg_event_init,
	.add = vg_add,
	.del = vg_del,
	.start = vg_start,
	.stop = vg_stop,
	.read = vg_read,
	.start_txn = vg_start_txn,
	.commit_txn = vg_commit_txn,
	.cancel_txn = vg_cancel_txn,
};

/*
 * Another PMU counts raw events: the one that the kernel found. Kernels of 7.x export
 * what they found to KVM alone, so perf is asked for such an event.
 */
static bool vg_raw_taken(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW,
		.size = sizeof(attr),
		.disabled = 1,
	};
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, cpumask_first(cpu_online_mask), NULL,
						 NULL, NULL);
	if (IS_ERR(event))
		return PTR_ERR(event) != -ENOENT;
	perf_event_release_kernel(event);
	return true;
}

int vg_pmu_register(void)
{
	int ret;

	vg.raw = !vg_raw_taken();
	vg.pmu = kmemdup(&vg_pmu, sizeof(vg_pmu), GFP_KERNEL);
	if (!vg.pmu)
		return -ENOMEM;
	vg.pmu->attr_groups = vg_attr_groups();
	ret = vg.raw ? perf_pmu_register(vg.pmu, "cpu", PERF_TYPE_RAW)
		     : perf_pmu_register(vg.pmu, "vpmu", -1);
	if (ret) {
		kfree(vg.pmu);
		vg.pmu = NULL;
	}
	return ret;
}

void vg_pmu_unregister(void)
{
	perf_pmu_unregister(vg.pmu);
	vg_compat_pmu_gone(vg.pmu);
	vg.pmu = NULL;
	ida_destroy(&vg_ids);
}
