// SPDX-License-Identifier: GPL-2.0-only
/* The NMI by which the host reports that events have overflowed. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/nmi.h>

#include "compat.h"
#include "vpmu_guest.h"

#define VG_NMI_NAME	"vpmu"
/*
 * Time after an NMI in which another one may arrive for the same overflows: the vCPU may
 * lose its CPU in between.
 */
#define VG_LATE_NS	NSEC_PER_SEC
/* The NMI handler may use at most 1/VG_STRETCH of the time. */
#define VG_STRETCH	4u

/* perf_event_overflow(), which modules cannot link to; NULL: not found. */
static int (*vg_perf_overflow)(struct perf_event *event, struct perf_sample_data *data,
			       struct pt_regs *regs);

/*
 * Samples per tick where perf cannot throttle: the initial value of perf's own limit. The
 * time is taken from the clock, as ticks are late where the vCPU's timers are.
 */
#define VG_SAMPLES_MAX	max(100000 / HZ, 1)

static DEFINE_PER_CPU(u64, vg_since);
static DEFINE_PER_CPU(unsigned int, vg_samples);

/* Returns true if the event is to be stopped. */
static bool vg_sample(struct perf_event *event, struct perf_sample_data *data,
		      struct pt_regs *regs)
{
	u64 now;

	if (vg_perf_overflow)
		return vg_perf_overflow(event, data, regs);
	now = local_clock();
	if (now - __this_cpu_read(vg_since) >= TICK_NSEC) {
		__this_cpu_write(vg_since, now);
		__this_cpu_write(vg_samples, 0);
	}
	if (__this_cpu_inc_return(vg_samples) <= VG_SAMPLES_MAX)
		READ_ONCE(event->overflow_handler)(event, data, regs);
	return false;
}

/*
 * An event that counts the kernel counts this handler too. If it keeps overflowing in
 * here, the guest would do nothing else; so its next overflow is put off.
 */
static void vg_stretch(struct vg_cpu *c, struct vg_event *ev, u32 n)
{
	struct hw_perf_event *hwc = &ev->event->hw;
	u64 period = ev->period ?: hwc->sample_period;
	u64 left = min_t(u64, (u64)n * VG_STRETCH * period, VPMU_PV_LEFT_MAX);

	ev->stretch = left - min(left, hwc->sample_period);
	local64_set(&hwc->period_left, left);
	c->slot[ev->slot].reload = true;
	vg_mark(c, VG_NMI, ev->slot);
}

/*
 * Perf aims at a number of samples per second, whatever a sample costs. If one is too
 * expensive (on a host that is itself a guest), the guest would do nothing else.
 */
static void vg_slow_down(const struct vg_cpu *c, struct vg_event *ev)
{
	struct hw_perf_event *hwc = &ev->event->hw;

	if (c->crowded && ev->event->attr.freq)
		hwc->sample_period = max_t(u64, hwc->sample_period,
					   min_t(u64, 2 * ev->period, VPMU_PV_LEFT_MAX));
}

/* Discard overflows from within the handler, before the host knew of the new distance. */
static void vg_drop(struct vg_cpu *c, u64 slots)
{
	unsigned int s;

	for (s = 0; slots >> s; s++) {
		struct vg_event *ev = c->slot[s].ev;

		if (slots >> s & 1 && ev && ev->stretch && vg.abi->take(c, ev))
			c->late = true;
	}
}

/*
 * Perf has stopped the event, and would tell the host at the end of the bracket. Until
 * then the event counts this handler; if its period is shorter, the guest makes no
 * progress.
 */
static void vg_stop_now(struct vg_cpu *c, unsigned int slot)
{
	if (c->slot[slot].want)
		c->slot[slot].reload = true;
	vg_mark(c, VG_NMI, slot);
}

/* Returns the number of overflows. */
static u32 vg_overflow(struct vg_cpu *c, unsigned int slot, struct pt_regs *regs)
{
	struct vg_event *ev = c->slot[slot].ev;
	struct perf_sample_data data;
	struct hw_perf_event *hwc;
	u32 n;

	if (!ev || !c->slot[slot].host || ev->stale)
		return 0;
	hwc = &ev->event->hw;
	vg_update(c, ev);
	n = vg.abi->take(c, ev);
	if (!n || ev->far)
		return n;
	if (!c->slot[slot].want || hwc->state & PERF_HES_STOPPED) {
		vg_stop_now(c, slot);
		return n;
	}
	hwc->last_period = hwc->sample_period;
	if (ev->period) {
		hwc->last_period = n * ev->period + ev->stretch;
		ev->stretch = 0;
		local64_add(hwc->last_period, &hwc->period_left);
	} else if (local64_read(&hwc->period_left) > 0) {
		/* The host counts a longer period in parts; this was one. */
		vg_repeat(c, ev);
		return n;
	}
	perf_sample_data_init(&data, 0, hwc->last_period);
	c->nmi_read = BIT_ULL(slot);
	if (has_branch_stack(ev->event))
		vg_compat_brstack(&data, ev->event, vg_branch_read(c, ev->event));
	if (vg_sample(ev->event, &data, regs))
		vg_stop(ev->event, 0);
	if (hwc->state & PERF_HES_STOPPED)
		return n;
	vg_slow_down(c, ev);
	if (n > 1 && !ev->event->attr.exclude_kernel)
		vg_stretch(c, ev, n);
	else
		vg_repeat(c, ev);
	return n;
}

/*
 * An NMI that was already pending when its overflows were handled. If it were not
 * claimed, the kernel would report a hardware fault. It follows when several overflows
 * were handled at once. It may also follow an overflow within an NMI handler, a late one
 * or another driver's, before the slots were read; then it arrives before another
 * instruction executes.
 */
static int vg_late(struct vg_cpu *c, const struct pt_regs *regs)
{
	bool late = (c->late || c->late_ip == regs->ip) && local_clock() < c->late_until;

	c->late = false;
	c->late_ip = 0;
	return late ? NMI_HANDLED : NMI_DONE;
}

static int vg_nmi(unsigned int cmd, struct pt_regs *regs)
{
	struct vg_cpu *c = this_cpu_ptr(vg_cpus);
	u64 slots = vg.abi->overflowed(c), start = local_clock();
	unsigned int s;
	u32 handled = 0;

	if (!slots)
		return vg_late(c, regs);
	c->crowded = start - c->nmi_end < VG_STRETCH * c->nmi_took;
	c->nmi_busy = true;
	for (s = 0; s < VPMU_PV_SLOTS; s++)
		if (slots >> s & 1)
			handled += max(vg_overflow(c, s, regs), 1u);
	c->nmi_busy = false;
	c->late = handled > 1;
	vg_branch_thaw(c);
	vg.abi->flush(c, VG_NMI);
	vg_drop(c, slots);
	c->late_ip = regs->ip;
	c->nmi_end = local_clock();
	c->nmi_took = c->nmi_end - start;
	c->late_until = c->nmi_end + VG_LATE_NS;
	return handled;
}

#define VG_ENDBR	0xfa1e0ff3u

/* The address at which to probe the function at @at, or 0. */
static unsigned long vg_entry(unsigned long at)
{
	u32 before;

	/* A probe is placed after the ENDBR of an indirect call's target. */
	if (!get_kernel_nofault(before, (u32 *)(at - sizeof(before))) && before == VG_ENDBR)
		return at - sizeof(before);
	return cpu_feature_enabled(X86_FEATURE_IBT) ? 0 : at;
}

static bool kprobes = true;
module_param(kprobes, bool, 0444);
MODULE_PARM_DESC(kprobes, "find perf_event_overflow() with a kprobe; N: perf does not throttle");

static void vg_find_overflow(void)
{
	struct kprobe kp = { .symbol_name = "perf_event_overflow" };

	if (kprobes && !register_kprobe(&kp)) {
		vg_perf_overflow = (void *)vg_entry((unsigned long)kp.addr);
		unregister_kprobe(&kp);
	}
	if (!vg_perf_overflow)
		pr_info("perf_event_overflow() was not found: perf does not throttle\n");
}

int vg_overflow_init(void)
{
	vg_find_overflow();
	return register_nmi_handler(NMI_LOCAL, vg_nmi, 0, VG_NMI_NAME);
}

void vg_overflow_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, VG_NMI_NAME);
}
