// SPDX-License-Identifier: GPL-2.0-only
/*
 * The provider on the kernel's perf: events of the vCPU's thread that count in guest
 * mode only. All but the first half is called on that thread, or when it cannot be in
 * here, under vk_vm.lock or not, and may sleep.
 *
 * Time is the thread's, on a CPU, in ns. It stands still in a batch, so that what was
 * enabled in one and disabled in another has run for as long as the guest is told that
 * it was enabled, unless perf says that it had no counter for some of that time.
 *
 * A saved state is loaded while no vCPU runs, so that no event of perf could say whether
 * it has a counter, and before one has run, so that its thread is not known. What is made
 * then has no event of perf until it is bound, and counts nothing in no time. What perf
 * does not make then is in error.
 */
#include <linux/perf_event.h>

#include "vpmu_kvm.h"

#include "trace.h"

struct vk_event {
	struct vpmu_event head;
	struct list_head list;       /* of vk_perf.events */
	struct perf_event *pe;       /* NULL: not bound, or perf has not made it */
	struct vpmu_event_attr attr;
	u64 left;                    /* for pe, when it is made: of its first period; 0: all */
	bool enabled;
	u8 told;                     /* enum vpmu_event_state that the owner knows of */
	u64 since;                   /* the clock when it was enabled */
	u64 ran;                     /* before that */
	u64 seen;                    /* what was said last: never goes back */
	u64 enabled_ns, running_ns;  /* perf's, as of the last read */
	u64 enabled_base, running_base; /* and when it was enabled */
};

static struct vk_perf *vk_perf_of(struct vpmu_provider *p)
{
	return container_of(p, struct vk_perf, provider);
}

static struct vk_event *vk_event_of(const struct vpmu_event *ev)
{
	return container_of(ev, struct vk_event, head);
}

/*
 * From NMI. Who overflows too often is throttled by the library, which tells the
 * guest; perf, which does not, has to count from the beginning each time.
 */
static void vk_overflow(struct perf_event *pe, struct perf_sample_data *data,
			struct pt_regs *regs)
{
	struct vk_event *e = pe->overflow_handler_context;
	struct vk_vcpu *c = container_of(vk_perf_of(e->head.provider), struct vk_vcpu, perf);

	pe->hw.interrupts = 0;
	atomic64_inc(&c->n_overflows);
	trace_vpmu_kvm_overflow(c, e->head.index);
	if (e->head.overflowed)
		e->head.overflowed(&e->head);
}

static struct perf_event *vk_perf_create(struct task_struct *task,
					 const struct vpmu_event_attr *attr,
					 struct vk_event *e)
{
	struct perf_event_attr pa = {
		.type = PERF_TYPE_RAW,
		.size = sizeof(pa),
		.config = attr->select,
		.sample_period = attr->period,
		.disabled = 1,
		.pinned = attr->pinned,
		.exclude_user = !(attr->banks & VPMU_BANKS_USER),
		.exclude_kernel = !(attr->banks & VPMU_BANKS_KERNEL),
		.exclude_host = 1,
	};

	if (attr->leader)
		return ERR_PTR(-EOPNOTSUPP);
	if (attr->fixed >= 0) {
		/* The only one that has no encoding of its own: reference cycles. */
		if (attr->fixed != 2)
			return ERR_PTR(-ENOENT);
		pa.type = PERF_TYPE_HARDWARE;
		pa.config = PERF_COUNT_HW_REF_CPU_CYCLES;
	}
	if (vk_fails())
		return ERR_PTR(-ENOSPC);
	return perf_event_create_kernel_counter(&pa, -1, task, vk_overflow, e);
}

int vk_perf_probe(void)
{
	struct vpmu_event_attr attr = { .banks = VPMU_BANKS_USER, .fixed = -1 };
	struct perf_event *pe;

	attr.select = vk_model->vendor == VPMU_VENDOR_INTEL ? vpmu_arch_event[1] : 0xc0;
	pe = vk_perf_create(current, &attr, NULL);
	if (IS_ERR(pe))
		return PTR_ERR(pe);
	perf_event_release_kernel(pe);
	return 0;
}

static enum vpmu_quality vk_quality(struct vpmu_provider *provider,
				    const struct vpmu_event_attr *attr)
{
	struct task_struct *task = vk_perf_of(provider)->task;
	struct perf_event *pe = vk_perf_create(task ?: current, attr, NULL);

	if (IS_ERR(pe)) {
		atomic64_inc(&vk_n_refused);
		return VPMU_QUALITY_NONE;
	}
	perf_event_release_kernel(pe);
	return VPMU_QUALITY_EXACT;
}

/* Whether events are made at once. */
static bool vk_bound(const struct vk_perf *p)
{
	return p->here && p->clock;
}

/* Its event of perf, off. Returns 0, or perf's error. */
static int vk_make(struct vk_perf *p, struct vk_event *e)
{
	struct perf_event *pe = vk_perf_create(p->task, &e->attr, e);

	if (IS_ERR(pe))
		return PTR_ERR(pe);
	if (e->left)
		local64_set(&pe->hw.period_left, e->left);
	e->pe = pe;
	return 0;
}

static int vk_create(struct vpmu_provider *provider, struct vpmu_event *ev,
		     const struct vpmu_event_attr *attr)
{
	struct vk_perf *p = vk_perf_of(provider);
	struct vk_event *e = vk_event_of(ev);
	int ret;

	memset((char *)e + sizeof(e->head), 0, sizeof(*e) - sizeof(e->head));
	if (atomic_inc_return(&vk_n_counters) > vk_max_counters) {
		atomic_dec(&vk_n_counters);
		return -VPMU_EBUSY;
	}
	e->head.provider = provider;
	e->head.quality = VPMU_QUALITY_EXACT;
	e->attr = *attr;
	ret = vk_bound(p) ? vk_make(p, e) : 0;
	if (ret) {
		atomic_dec(&vk_n_counters);
		return ret == -ENOENT ? -VPMU_ENOENT : -VPMU_EINVAL;
	}
	list_add(&e->list, &p->events);
	return 0;
}

static enum vpmu_event_state vk_state(const struct vpmu_event *ev)
{
	const struct vk_event *e = vk_event_of(ev);
	int state;

	if (!e->enabled)
		return VPMU_EVENT_OFF;
	if (!e->pe)
		return vk_perf_of(ev->provider)->here ? VPMU_EVENT_ERROR : VPMU_EVENT_ACTIVE;
	state = READ_ONCE(e->pe->state);
	if (state == PERF_EVENT_STATE_ACTIVE)
		return VPMU_EVENT_ACTIVE;
	return state == PERF_EVENT_STATE_INACTIVE ? VPMU_EVENT_INACTIVE : VPMU_EVENT_ERROR;
}

static uint64_t vk_read(struct vpmu_event *ev)
{
	struct vk_event *e = vk_event_of(ev);

	return e->pe ? perf_event_read_value(e->pe, &e->enabled_ns, &e->running_ns) : 0;
}

/* Since it was enabled, as of the last read. Perf's time enabled ends with an error. */
static u64 vk_ran(const struct vk_perf *p, const struct vk_event *e, bool error)
{
	u64 enabled = e->enabled_ns - e->enabled_base, running = e->running_ns - e->running_base;
	u64 all = p->now - e->since, lost = enabled - running;

	if (error)
		return min(all, running);
	return lost < all ? all - lost : 0;
}

static uint64_t vk_running(struct vpmu_event *ev)
{
	struct vk_event *e = vk_event_of(ev);
	u64 ran = e->ran;

	if (e->enabled)
		ran += vk_ran(vk_perf_of(ev->provider), e, vk_state(ev) == VPMU_EVENT_ERROR);
	e->seen = max(e->seen, ran);
	return e->seen;
}

static void vk_disable(struct vpmu_event *ev)
{
	struct vk_perf *p = vk_perf_of(ev->provider);
	struct vk_event *e = vk_event_of(ev);
	bool error = vk_state(ev) == VPMU_EVENT_ERROR;

	if (!e->enabled)
		return;
	if (e->pe)
		perf_event_disable(e->pe);
	vk_read(ev);
	e->ran += vk_ran(p, e, error);
	e->enabled = false;
	p->n_enabled--;
}

/* It is on, as far as its owner goes: perf's event too, from here on. */
static void vk_go(struct vk_perf *p, struct vk_event *e)
{
	vk_read(&e->head);
	e->enabled_base = e->enabled_ns;
	e->running_base = e->running_ns;
	e->since = p->now;
	if (e->pe)
		perf_event_enable(e->pe);
}

static int vk_enable(struct vpmu_event *ev)
{
	struct vk_perf *p = vk_perf_of(ev->provider);
	struct vk_event *e = vk_event_of(ev);

	if (e->enabled && vk_state(ev) != VPMU_EVENT_ERROR)
		return 0;
	vk_disable(ev);
	if (!e->pe && vk_bound(p))
		(void)vk_make(p, e); /* else its state is an error */
	e->enabled = true;
	p->n_enabled++;
	vk_go(p, e);
	e->told = vk_state(ev);
	return e->told == VPMU_EVENT_ERROR ? -VPMU_EBUSY : 0;
}

/* Perf goes on with what is left of a period when it starts an event. */
static void vk_arm(struct vpmu_event *ev, uint64_t left)
{
	struct vk_event *e = vk_event_of(ev);

	if (!e->attr.period)
		return;
	if (!e->pe) {
		e->left = left;
		return;
	}
	if (e->enabled)
		perf_event_disable(e->pe);
	local64_set(&e->pe->hw.period_left, left);
	if (e->enabled)
		perf_event_enable(e->pe);
}

static void vk_release(struct vpmu_event *ev)
{
	struct vk_event *e = vk_event_of(ev);

	vk_disable(ev);
	list_del(&e->list);
	if (e->pe)
		perf_event_release_kernel(e->pe);
	atomic_dec(&vk_n_counters);
}

static void vk_begin(struct vpmu_provider *provider)
{
	struct vk_perf *p = vk_perf_of(provider);
	u64 enabled, running;

	if (p->depth++ || !p->clock)
		return;
	perf_event_read_value(p->clock, &enabled, &running);
	p->now = enabled;
}

static int vk_commit(struct vpmu_provider *provider)
{
	vk_perf_of(provider)->depth--;
	return 0;
}

static uint64_t vk_clock(struct vpmu_provider *provider, bool hold)
{
	struct vk_perf *p = vk_perf_of(provider);

	if (hold == p->held)
		return p->now;
	p->held = hold;
	if (p->clock && hold)
		perf_event_enable(p->clock);
	else if (p->clock)
		perf_event_disable(p->clock);
	return p->now;
}

const struct vpmu_provider_ops vk_perf_ops = {
	.size = sizeof(vk_perf_ops),
	.event_size = round_up(sizeof(struct vk_event), 8),
	.name = "kernel's perf",
	.quality = vk_quality,
	.create = vk_create,
	.release = vk_release,
	.enable = vk_enable,
	.disable = vk_disable,
	.read = vk_read,
	.arm = vk_arm,
	.state = vk_state,
	.begin = vk_begin,
	.commit = vk_commit,
	.clock = vk_clock,
	.running = vk_running,
};

void vk_perf_poll(struct vk_perf *p)
{
	struct vk_event *e;

	list_for_each_entry(e, &p->events, list) {
		u8 state = vk_state(&e->head);

		if (!e->enabled || state == e->told)
			continue;
		e->told = state;
		if (e->head.changed)
			e->head.changed(&e->head);
	}
}

void vk_perf_init(struct vk_perf *p)
{
	INIT_LIST_HEAD(&p->events);
	p->provider.ops = &vk_perf_ops;
	p->provider.model = vk_model;
	p->provider.n_gp = UINT32_MAX;
	p->provider.n_fixed = UINT32_MAX;
	p->provider.time_hz = NSEC_PER_SEC;
}

static int vk_make_clock(struct vk_perf *p)
{
	struct perf_event_attr pa = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(pa),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
	};
	struct perf_event *clock = vk_fails() ? ERR_PTR(-ENOMEM) :
		perf_event_create_kernel_counter(&pa, -1, p->task, NULL, NULL);

	if (IS_ERR(clock))
		return PTR_ERR(clock);
	p->clock = clock;
	if (p->held)
		perf_event_enable(clock);
	return 0;
}

int vk_perf_bind(struct vk_perf *p)
{
	struct vk_event *e;
	int ret = 0;

	if (vk_bound(p))
		return 0;
	p->here = true;
	if (!p->task)
		p->task = get_task_struct(current);
	if (!p->clock)
		ret = vk_make_clock(p); /* without which there are no events */
	list_for_each_entry(e, &p->events, list)
		if (!ret && !e->pe && !vk_make(p, e) && e->enabled)
			vk_go(p, e);
	vk_perf_poll(p);
	return ret;
}

void vk_perf_unbind(struct vk_perf *p)
{
	p->here = false;
}

void vk_perf_fini(struct vk_perf *p)
{
	if (p->clock)
		perf_event_release_kernel(p->clock);
	if (p->task)
		put_task_struct(p->task);
}
