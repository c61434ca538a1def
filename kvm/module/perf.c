// SPDX-License-Identifier: GPL-2.0-only
/*
 * The provider on the kernel's perf: events of the vCPU's thread that count in guest mode
 * only. All functions but the NMI's first half are called on that thread, or while it
 * cannot be in the module; with or without vk_vm.lock; and may sleep.
 *
 * Time is the time that the thread has been on a CPU, in ns. It stands still in a batch.
 * So an event that is enabled in one batch and disabled in another has run for as long as
 * the guest is told that it was enabled, unless perf says that the event had no counter
 * for some of that time.
 *
 * Perf events exist while the vCPU is bound to a thread: vk_perf.task. The vCPU is
 * unbound while another vCPU has its thread (thread.c), and while a state is saved or
 * loaded. Meanwhile an event keeps its count, its times and the rest of its period, and
 * neither counts nor runs. An event that perf does not create at the next bind is in
 * error.
 */
#include <linux/perf_event.h>

#include "kvm.h"
#include "loan.h"
#include "vpmu_kvm.h"

#include "trace.h"

/*
 * Events for what KVM executes in a guest's place, and of fixed counters.
 * Source: PPR for AMD Family 19h, PMCx0C0 and PMCx0C2; SDM vol. 3, "Pre-defined
 * Architectural Performance Events".
 */
#define VK_EVENT_INSTRUCTIONS	0xc0
#define VK_EVENT_BRANCHES_AMD	0xc2
#define VK_EVENT_BRANCHES_INTEL	0xc4
#define VK_EVENT_CYCLES		0x3c

/* hw.interrupts has this value while perf throttles the event. */
#define VK_THROTTLED	(~0ULL)

struct vk_event {
	struct vpmu_event head;
	struct list_head list;       /* entry of vk_perf.events */
	struct perf_event *pe;       /* NULL: not bound, or perf has not made it */
	struct vk_loan *loan;        /* pe is its leader; NULL: pe is this event's own */
	u64 slots;                   /* sum of the loan when it became pe */
	/* Sums of the loan that stand for 0; while pe is NULL, what has been counted. */
	u64 classes[VPMU_TOPDOWN];
	u64 deadline;                /* count at which the loan overflows */
	struct vpmu_event_attr attr;
	/* Rest of the first period of pe, once it is created; 0: a whole period. */
	u64 left;
	u64 count;                   /* count of the perf events before pe */
	u64 counted;                 /* by pe, as of the last read */
	bool still;                  /* pe, not lent, is disabled since that read or longer */
	bool enabled;
	/* Takes a counter of its VM's share, else one of those beyond the shares. */
	bool own;
	bool stopped;                /* perf has throttled pe, in NMI */
	u8 told;                     /* enum vpmu_event_state that was last reported to the owner */
	u64 since;                   /* clock when it was enabled */
	u64 ran;                     /* time that it had run before that */
	u64 seen;                    /* value that was reported last: the count never goes back */
	u64 enabled_ns, running_ns;  /* perf's times, as of the last read */
	u64 enabled_base, running_base; /* perf's times when it was enabled */
	/* Which of vk_perf.emulated it counts, their sum as last seen, and what it counted. */
	u8 emulated;
	u64 emulated_seen, emulated_count;
	u64 debt;                    /* of these what the rest of its period does not know of */
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
 * The overflow handler, in NMI. The library throttles an event that overflows too often,
 * and reports that to its guest. Perf reports its own throttling to the host only, so
 * perf's count of interrupts is cleared here. If perf's limit is one interrupt per tick,
 * the least that it can be, perf has already decided, and stops the event when this
 * function returns, until the next tick. vk_perf_poll() starts the event again before the
 * guest runs; perf then finds the mark in hw.interrupts.
 */
static void vk_overflow(struct perf_event *pe, struct perf_sample_data *data,
			struct pt_regs *regs)
{
	struct vk_event *e = pe->overflow_handler_context;
	struct vk_vcpu *c = container_of(vk_perf_of(e->head.provider), struct vk_vcpu, perf);

	if (pe->hw.interrupts == VK_THROTTLED)
		WRITE_ONCE(e->stopped, true);
	else
		pe->hw.interrupts = 0;
	WRITE_ONCE(c->wake, true);
	atomic64_inc(&c->n_overflows);
	trace_vpmu_kvm_overflow(c, e->head.index);
	if (e->head.overflowed)
		e->head.overflowed(&e->head);
}

/*
 * Perf takes any raw event, and one that this CPU says it has not counts nothing.
 * Source: SDM vol. 2, "CPUID", leaf 0AH, EBX.
 */
static bool vk_cpu_lacks(const struct vpmu_event_attr *attr)
{
	struct x86_pmu_capability cap;
	unsigned int i;

	if (vk_model->vendor != VPMU_VENDOR_INTEL)
		return false;
	static_call(vk_host_pmu)(&cap);
	for (i = 0; i < VPMU_ARCH_EVENTS; i++)
		if (cap.events_mask >> i & 1 && (attr->select & 0xffff) == vpmu_arch_event[i])
			return true;
	return false;
}

/* A CPU whose fixed counter 3 counts slots has an event of them for the others. */
bool vk_counts_slots(void)
{
	struct x86_pmu_capability cap;

	static_call(vk_host_pmu)(&cap);
	return vk_model->vendor == VPMU_VENDOR_INTEL && cap.num_counters_fixed > VK_FIXED_SLOTS;
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
		.pinned = attr->pinned || READ_ONCE(vk_pin),
		.exclude_user = !(attr->banks & VPMU_BANKS_USER),
		.exclude_kernel = !(attr->banks & VPMU_BANKS_KERNEL),
		.exclude_host = 1,
	};

	if (attr->leader)
		return ERR_PTR(-EOPNOTSUPP);
	switch (attr->fixed) {
	case -1:
		if (vk_cpu_lacks(attr))
			return ERR_PTR(-ENOENT);
		break;
	case 0:
		pa.config = VK_EVENT_INSTRUCTIONS;
		break;
	case 1:
		pa.config = VK_EVENT_CYCLES;
		break;
	case 2: /* these have no encoding of their own */
		pa.type = PERF_TYPE_HARDWARE;
		pa.config = PERF_COUNT_HW_REF_CPU_CYCLES;
		break;
	default:
		return ERR_PTR(-ENOENT);
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
	const struct vk_perf *p = vk_perf_of(provider);
	struct perf_event *pe;

	if (attr->fixed == VK_FIXED_SLOTS)
		return p->planned || vk_loan_has(&p->loans, attr->banks) ?
			VPMU_QUALITY_EXACT : VPMU_QUALITY_NONE;
	pe = vk_perf_create(p->task ?: current, attr, NULL);
	if (IS_ERR(pe)) {
		atomic64_inc(&vk_n_refused);
		return VPMU_QUALITY_NONE;
	}
	perf_event_release_kernel(pe);
	return VPMU_QUALITY_EXACT;
}

/* Are events of perf made at once? */
static bool vk_bound(const struct vk_perf *p)
{
	return p->task && p->clock;
}

/*
 * A VM's share of the counters is reserved, so that other VMs cannot take all of them.
 * The counters beyond all shares are for any VM.
 */
static bool vk_take_counter(struct vk_vm *vm, struct vk_event *e)
{
	unsigned int all = READ_ONCE(vk_max_counters), vms = READ_ONCE(vk_max_vms);
	unsigned int share = min(vk_share, all / max(vms, 1u));

	e->own = atomic_inc_return(&vm->n_own) <= share;
	if (!e->own) {
		atomic_dec(&vm->n_own);
		if (atomic_inc_return(&vk_n_common) > all - share * vms) {
			atomic_dec(&vk_n_common);
			return false;
		}
	}
	atomic_inc(&vk_n_counters);
	return true;
}

static void vk_put_counter(struct vk_vm *vm, const struct vk_event *e)
{
	atomic_dec(e->own ? &vm->n_own : &vk_n_common);
	atomic_dec(&vk_n_counters);
}

static struct vk_vm *vk_vm_of_perf(struct vk_perf *p)
{
	return container_of(p, struct vk_vcpu, perf)->vm;
}

static u64 vk_loan_slots(struct vk_event *e)
{
	return vk_loan_read(e->loan, 0, &e->enabled_ns, &e->running_ns);
}

/* Between what has been counted and the sums that stand for 0, either way. */
static void vk_turn_classes(struct vk_event *e)
{
	u64 enabled, running;
	unsigned int i;

	for (i = 0; i < VPMU_TOPDOWN; i++)
		e->classes[i] = vk_loan_read(e->loan, 1 + i, &enabled, &running) - e->classes[i];
}

/* A loan counts on one thread. Meanwhile it may have counted for another vCPU. */
static int vk_make_of_loan(struct vk_perf *p, struct vk_event *e)
{
	struct perf_event *pe = vk_loan_leader(e->loan);

	if (pe->hw.target != p->task)
		return -ESRCH;
	perf_event_disable(pe);
	e->slots = vk_loan_slots(e);
	vk_turn_classes(e);
	e->pe = pe;
	return 0;
}

/* Create the perf event of @e, disabled. Returns 0, or perf's error. */
static int vk_make(struct vk_perf *p, struct vk_event *e)
{
	struct perf_event *pe;

	if (e->loan)
		return vk_make_of_loan(p, e);
	pe = vk_perf_create(p->task, &e->attr, e);
	if (IS_ERR(pe))
		return PTR_ERR(pe);
	if (e->left)
		local64_set(&pe->hw.period_left, max_t(s64, e->left - e->debt, 1));
	e->debt = 0;
	e->pe = pe;
	e->counted = 0;
	e->still = true;
	return 0;
}

/* Which of vk_perf.emulated the event counts: KVM knows instructions and branches. */
static u8 vk_emulated_mask(const struct vk_perf *p, const struct vpmu_event_attr *attr)
{
	u64 select = attr->select &
		     (vpmu_event_name_bits(p->provider.model) | VPMU_EVTSEL_CONDITION);
	u64 branches = p->provider.model->vendor == VPMU_VENDOR_AMD ?
		VK_EVENT_BRANCHES_AMD : VK_EVENT_BRANCHES_INTEL;
	u8 rings = 0;

	if (attr->banks & VPMU_BANKS_USER)
		rings |= 1;
	if (attr->banks & VPMU_BANKS_KERNEL)
		rings |= 2;
	if (!p->emulates || attr->fixed > 0)
		return 0;
	if (!attr->fixed || select == VK_EVENT_INSTRUCTIONS)
		return rings << VK_EMULATED_INSTRUCTIONS;
	return select == branches ? rings << VK_EMULATED_BRANCHES : 0;
}

static void vk_drop(struct vk_event *e)
{
	if (e->pe && !e->loan)
		perf_event_release_kernel(e->pe);
	e->pe = NULL;
}

static int vk_take_loan(struct vk_perf *p, struct vk_event *e)
{
	e->loan = vk_loan_take(&p->loans, e->attr.banks);
	if (!e->loan)
		return -ENOENT;
	e->deadline = e->attr.period;
	return 0;
}

static int vk_create(struct vpmu_provider *provider, struct vpmu_event *ev,
		     const struct vpmu_event_attr *attr)
{
	struct vk_perf *p = vk_perf_of(provider);
	struct vk_event *e = vk_event_of(ev);
	int ret;

	memset((char *)e + sizeof(e->head), 0, sizeof(*e) - sizeof(e->head));
	if (!vk_take_counter(vk_vm_of_perf(p), e))
		return -VPMU_EBUSY;
	e->head.provider = provider;
	e->head.quality = VPMU_QUALITY_EXACT;
	e->attr = *attr;
	e->emulated = vk_emulated_mask(p, attr);
	ret = attr->fixed == VK_FIXED_SLOTS ? vk_take_loan(p, e) : 0;
	if (!ret && vk_bound(p))
		ret = vk_make(p, e);
	if (ret) {
		if (e->loan)
			vk_loan_return(e->loan);
		vk_put_counter(vk_vm_of_perf(p), e);
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
		return vk_perf_of(ev->provider)->task ? VPMU_EVENT_ERROR : VPMU_EVENT_ACTIVE;
	state = READ_ONCE(e->pe->state);
	if (state == PERF_EVENT_STATE_ACTIVE)
		return VPMU_EVENT_ACTIVE;
	return state == PERF_EVENT_STATE_INACTIVE ? VPMU_EVENT_INACTIVE : VPMU_EVENT_ERROR;
}

static u64 vk_emulated_sum(const struct vk_perf *p, const struct vk_event *e)
{
	u64 sum = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(p->emulated); i++)
		if (e->emulated >> i & 1)
			sum += READ_ONCE(p->emulated[i]);
	return sum;
}

/*
 * Count the instructions that KVM has executed for the guest since the last look, unless
 * the event has no counter. While its thread is off the CPU every event is inactive.
 */
static void vk_take_emulated(struct vk_perf *p, struct vk_event *e)
{
	enum vpmu_event_state state;
	u64 sum, n;

	if (!e->emulated)
		return;
	sum = vk_emulated_sum(p, e);
	n = sum - e->emulated_seen;
	if (!n)
		return;
	e->emulated_seen = sum;
	state = vk_state(&e->head);
	if (state != VPMU_EVENT_ACTIVE && (state != VPMU_EVENT_INACTIVE || p->task == current))
		return;
	e->emulated_count += n;
	e->debt += n;
}

/* A guest reads an event most often while that is disabled: perf need not be asked then. */
static uint64_t vk_read(struct vpmu_event *ev)
{
	struct vk_event *e = vk_event_of(ev);

	vk_take_emulated(vk_perf_of(ev->provider), e);
	if (!e->pe)
		return e->count + e->emulated_count;
	if (e->loan)
		return e->count + vk_loan_slots(e) - e->slots;
	if (!e->still)
		e->counted = perf_event_read_value(e->pe, &e->enabled_ns, &e->running_ns);
	return e->count + e->emulated_count + e->counted;
}

/* Disable pe and read it. Perf changes the times of a disabled event as little as its count. */
static void vk_pause(struct vk_event *e)
{
	if (e->loan) {
		perf_event_disable(e->pe);
		(void)vk_loan_slots(e);
	} else if (!e->still) {
		e->counted = perf_event_pause(e->pe, false);
		e->enabled_ns = e->pe->total_time_enabled;
		e->running_ns = e->pe->total_time_running;
		e->still = true;
	}
}

static void vk_resume(struct vk_event *e)
{
	e->still = false;
	perf_event_enable(e->pe);
}

static void vk_tick(struct vk_perf *p)
{
	u64 enabled, running;

	p->ticked = true;
	if (!p->clock)
		return;
	perf_event_read_value(p->clock, &enabled, &running);
	p->now = p->before + enabled;
}

/* Most batches need no time: the first use of it in a batch looks at the clock. */
static u64 vk_now(struct vk_perf *p)
{
	if (!p->ticked)
		vk_tick(p);
	return p->now;
}

/*
 * Time that the event has run since it was enabled, as of the last read. Perf's time
 * enabled ends when the event is in error.
 */
static u64 vk_ran(struct vk_perf *p, const struct vk_event *e, bool error)
{
	u64 enabled = e->enabled_ns - e->enabled_base, running = e->running_ns - e->running_base;
	u64 all = vk_now(p) - e->since, lost = enabled - running;

	if (error)
		return min(all, running);
	return lost < all ? all - lost : 0;
}

static uint64_t vk_running(struct vpmu_event *ev)
{
	struct vk_event *e = vk_event_of(ev);
	u64 ran = e->ran;

	if (e->enabled && !vk_perf_of(ev->provider)->depth)
		(void)vk_read(ev);
	if (e->enabled)
		ran += vk_ran(vk_perf_of(ev->provider), e, vk_state(ev) == VPMU_EVENT_ERROR);
	e->seen = max(e->seen, ran);
	return e->seen;
}

/* Perf does not say when what is lent overflows. */
static void vk_look_at_loan(struct vk_event *e)
{
	if (!e->loan || !e->enabled || !e->attr.period || vk_read(&e->head) < e->deadline)
		return;
	e->deadline += e->attr.period;
	if (e->head.overflowed)
		e->head.overflowed(&e->head);
}

static void vk_disable(struct vpmu_event *ev)
{
	struct vk_perf *p = vk_perf_of(ev->provider);
	struct vk_event *e = vk_event_of(ev);
	bool error = vk_state(ev) == VPMU_EVENT_ERROR;

	if (!e->enabled)
		return;
	vk_take_emulated(p, e);
	if (e->pe)
		vk_pause(e);
	vk_look_at_loan(e);
	e->ran += vk_ran(p, e, error);
	e->enabled = false;
	WRITE_ONCE(p->n_enabled, p->n_enabled - 1);
}

/* An overflow that is farther away than this is not brought about by KVM's instructions. */
#define VK_NEAR	(1ll << 40)

static void vk_note_near(struct vk_perf *p, const struct vk_event *e)
{
	if (e->emulated && e->pe && e->attr.period &&
	    local64_read(&e->pe->hw.period_left) < VK_NEAR)
		p->near |= e->emulated;
}

/* The event is enabled for its owner; enable the perf event too. */
static void vk_go(struct vk_perf *p, struct vk_event *e)
{
	e->emulated_seen = vk_emulated_sum(p, e);
	vk_read(&e->head);
	e->enabled_base = e->enabled_ns;
	e->running_base = e->running_ns;
	e->since = vk_now(p);
	vk_note_near(p, e);
	if (e->pe)
		vk_resume(e);
}

static int vk_enable(struct vpmu_event *ev)
{
	struct vk_perf *p = vk_perf_of(ev->provider);
	struct vk_event *e = vk_event_of(ev);

	if (e->enabled && vk_state(ev) != VPMU_EVENT_ERROR)
		return 0;
	vk_disable(ev);
	if (!e->pe && vk_bound(p))
		(void)vk_make(p, e); /* otherwise its state is an error */
	e->enabled = true;
	WRITE_ONCE(p->n_enabled, p->n_enabled + 1);
	vk_go(p, e);
	e->told = vk_state(ev);
	return e->told == VPMU_EVENT_ERROR ? -VPMU_EBUSY : 0;
}

/* Perf continues with the rest of a period when it starts an event. */
static void vk_arm(struct vpmu_event *ev, uint64_t left)
{
	struct vk_event *e = vk_event_of(ev);

	if (!e->attr.period)
		return;
	if (e->loan) {
		vk_look_at_loan(e);
		e->deadline = vk_read(ev) + left;
		return;
	}
	vk_take_emulated(vk_perf_of(ev->provider), e);
	e->debt = 0;
	if (!e->pe) {
		e->left = left;
		return;
	}
	if (e->enabled)
		perf_event_disable(e->pe);
	local64_set(&e->pe->hw.period_left, left);
	vk_note_near(vk_perf_of(ev->provider), e);
	if (e->enabled)
		perf_event_enable(e->pe);
}

static void vk_release(struct vpmu_event *ev)
{
	struct vk_event *e = vk_event_of(ev);

	vk_disable(ev);
	list_del(&e->list);
	vk_drop(e);
	if (e->loan)
		vk_loan_return(e->loan);
	vk_put_counter(vk_vm_of_perf(vk_perf_of(ev->provider)), e);
}

static void vk_begin(struct vpmu_provider *provider)
{
	struct vk_perf *p = vk_perf_of(provider);

	if (!p->depth++)
		p->ticked = false;
}

static int vk_commit(struct vpmu_provider *provider)
{
	vk_perf_of(provider)->depth--;
	return 0;
}

static uint64_t vk_clock(struct vpmu_provider *provider, bool hold)
{
	struct vk_perf *p = vk_perf_of(provider);

	if (!p->depth || !p->ticked)
		vk_tick(p);
	if (hold == p->held)
		return p->now;
	p->held = hold;
	if (p->clock && hold)
		perf_event_enable(p->clock);
	else if (p->clock)
		perf_event_disable(p->clock);
	return p->now;
}

static void vk_topdown(struct vpmu_event *ev, uint64_t *classes)
{
	struct vk_event *e = vk_event_of(ev);
	u64 enabled, running;
	unsigned int i;

	memcpy(classes, e->classes, sizeof(e->classes));
	for (i = 0; e->pe && i < VPMU_TOPDOWN; i++)
		classes[i] = vk_loan_read(e->loan, 1 + i, &enabled, &running) - e->classes[i];
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
	.topdown = vk_topdown,
};

/* Perf clears its throttle when it schedules an event in. */
static void vk_restart(struct vk_event *e)
{
	WRITE_ONCE(e->stopped, false);
	if (!e->pe || !e->enabled)
		return;
	perf_event_disable(e->pe);
	perf_event_enable(e->pe);
}

void vk_perf_poll(struct vk_perf *p)
{
	struct vk_event *e;

	list_for_each_entry(e, &p->events, list) {
		u8 state;

		if (READ_ONCE(e->stopped))
			vk_restart(e);
		vk_look_at_loan(e);
		state = vk_state(&e->head);

		if (!e->enabled || state == e->told)
			continue;
		e->told = state;
		if (e->head.changed)
			e->head.changed(&e->head);
	}
}

bool vk_perf_emulated(struct vk_perf *p, bool branch, bool kernel)
{
	unsigned int i = (branch ? VK_EMULATED_BRANCHES : VK_EMULATED_INSTRUCTIONS) + kernel;

	WRITE_ONCE(p->emulated[i], p->emulated[i] + 1);
	return READ_ONCE(p->near) >> i & 1;
}

/* An instruction that KVM has executed for the guest brings the event's overflow nearer. */
static void vk_pay(struct vk_event *e)
{
	s64 left;

	perf_event_disable(e->pe);
	left = local64_read(&e->pe->hw.period_left) - (s64)e->debt;
	e->debt = 0;
	if (left <= 0) {
		left = max_t(s64, left + e->attr.period, 1);
		if (e->head.overflowed)
			e->head.overflowed(&e->head);
	}
	local64_set(&e->pe->hw.period_left, left);
	perf_event_enable(e->pe);
}

void vk_perf_settle(struct vk_perf *p)
{
	struct vk_event *e;

	if (!p->near)
		return;
	WRITE_ONCE(p->near, 0);
	list_for_each_entry(e, &p->events, list) {
		if (!e->emulated || !e->enabled || !e->pe || !e->attr.period)
			continue;
		vk_take_emulated(p, e);
		if (e->debt && vk_state(&e->head) == VPMU_EVENT_ACTIVE &&
		    local64_read(&e->pe->hw.period_left) < VK_NEAR)
			vk_pay(e);
		vk_note_near(p, e);
	}
}

void vk_perf_init(struct vk_perf *p)
{
	mutex_init(&p->lock);
	INIT_LIST_HEAD(&p->events);
	INIT_LIST_HEAD(&p->loans);
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

int vk_perf_move(struct vk_perf *p)
{
	struct vk_event *e;
	int ret = 0;

	if (p->task != current) {
		vk_perf_unbind(p);
		/* KVM has executed more since, as on its way here; an unbound event counts that. */
		list_for_each_entry(e, &p->events, list)
			vk_take_emulated(p, e);
		p->task = get_task_struct(current);
		vk_thread_join(p);
	}
	ret = vk_make_clock(p); /* no event can be created without it */
	list_for_each_entry(e, &p->events, list)
		if (!ret && !e->pe && !vk_make(p, e) && e->enabled)
			vk_go(p, e);
	vk_perf_poll(p);
	return ret;
}

/* End the perf event of @e. The rest of its period is kept for the next one. */
static void vk_unmake(struct vk_perf *p, struct vk_event *e)
{
	bool error = vk_state(&e->head) == VPMU_EVENT_ERROR;

	vk_take_emulated(p, e);
	vk_pause(e);
	vk_look_at_loan(e);
	e->count = vk_read(&e->head);
	e->emulated_count = 0;
	if (e->loan)
		vk_turn_classes(e);
	if (e->enabled) {
		e->ran += vk_ran(p, e, error);
		e->since = vk_now(p);
	}
	if (e->attr.period && !e->loan)
		e->left = max_t(s64, local64_read(&e->pe->hw.period_left) - (s64)e->debt, 1);
	e->debt = 0;
	vk_drop(e);
	e->stopped = false;
	e->enabled_ns = e->enabled_base = 0;
	e->running_ns = e->running_base = 0;
}

void vk_perf_unbind(struct vk_perf *p)
{
	struct vk_event *e;

	if (!p->task)
		return;
	vk_tick(p);
	list_for_each_entry(e, &p->events, list)
		if (e->pe)
			vk_unmake(p, e);
	if (p->clock)
		perf_event_release_kernel(p->clock);
	p->clock = NULL;
	p->before = p->now;
	vk_thread_leave(p);
	put_task_struct(p->task);
	WRITE_ONCE(p->task, NULL);
}

void vk_perf_evict(const struct kvm_vcpu *vcpu)
{
	struct vk_vcpu *c = vk_thread_get(vcpu);
	struct kvm *kvm;

	if (!c)
		return;
	kvm = c->vm->kvm;
	mutex_lock(&c->perf.lock);
	if (c->perf.task == current)
		vk_perf_unbind(&c->perf);
	mutex_unlock(&c->perf.lock);
	kvm_put_kvm(kvm);
}

void vk_perf_fini(struct vk_perf *p)
{
	vk_perf_unbind(p);
	vk_loans_free(&p->loans);
}
