// SPDX-License-Identifier: GPL-2.0-only
/*
 * Losses of an architectural PMU, shown by the kernel's own driver for it. The host's loss
 * block (docs/GUEST-LOSS.md) says how long each counter was enabled and how long it really
 * counted; perf's times of an event are made to agree.
 *
 * Some functions of the kernel's struct pmu are replaced. A CPU's table has the events that
 * perf has added there. All but vg_loss_read() run on that CPU with interrupts off, and in
 * an NMI that one leaves the table alone.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/barrier.h>
#include <asm/msr.h>
#include <asm/perf_event.h>

#include <vpmu/loss.h>

#include "compat.h"
#include "vpmu_guest.h"

#define VG_LOSS_EVENTS	64 /* at once on a CPU: perf's masks of counters have as many bits */

struct vg_lossy {
	struct perf_event *event;
	int idx;           /* its counter as perf numbers it, -1: none yet */
	bool removed;      /* until the end of the bracket */
	bool losing;       /* at the last update; not while its gate is closed */
	u32 generation;    /* the block's, as of the last update */
	u32 changes;       /* the counter's */
	struct vg_times times;
};

struct vg_loss_cpu {
	unsigned int n;
	struct vg_lossy event[VG_LOSS_EVENTS];
};

static DEFINE_PER_CPU(struct vg_loss_cpu, vg_loss_cpus);

static struct {
	struct pmu *pmu;   /* NULL: nothing is replaced */
	u32 first;         /* MSR */
	unsigned int n_gp, n_fixed;
	void (*enable)(struct pmu *pmu);
	int (*add)(struct perf_event *event, int flags);
	void (*del)(struct perf_event *event, int flags);
	void (*read)(struct perf_event *event);
} vg_loss;

static u64 vg_loss_rd(u32 reg)
{
	u32 low, high;

	rdmsr(vg_loss.first + reg - VPMU_MSR_LOSS, low, high);
	return (u64)high << 32 | low;
}

/* The number in the block of perf's counter @idx; negative: it has none. */
static int vg_loss_pmc(int idx)
{
	if (idx < INTEL_PMC_IDX_FIXED)
		return idx < (int)vg_loss.n_gp ? idx : -1;
	idx -= INTEL_PMC_IDX_FIXED;
	return idx < (int)vg_loss.n_fixed ? idx + (int)vg_loss.n_gp : -1;
}

/*
 * The order makes time running the smaller one for a counter that counts meanwhile: that
 * error is no loss, and only a counter that has lost something comes here.
 */
static void vg_loss_look(const struct vg_lossy *l, u64 *enabled, u64 *running)
{
	u32 msr = VPMU_MSR_LOSS_PMC(vg_loss_pmc(l->idx));

	*running = vg_loss_rd(msr + VPMU_LOSS_RUNNING);
	*enabled = vg_loss_rd(msr + VPMU_LOSS_ENABLED);
}

/* The event has another counter from now on, or one at all. */
static void vg_loss_begin(struct vg_lossy *l, u32 generation)
{
	u64 reason;

	l->idx = l->event->hw.idx;
	l->generation = generation;
	l->losing = false;
	if (vg_loss_pmc(l->idx) < 0)
		return;
	reason = vg_loss_rd(VPMU_MSR_LOSS_PMC(vg_loss_pmc(l->idx)) + VPMU_LOSS_REASON);
	l->changes = reason >> 32;
	l->losing = reason & 0xff;
	memset(&l->times, 0, sizeof(l->times));
	l->times.seen = l->event->total_time_running;
	vg_loss_look(l, &l->times.enabled, &l->times.running);
	if (l->losing && is_sampling_event(l->event))
		atomic64_inc(&l->event->lost_samples);
}

/* A sampler that lost its counter lost a sample at least. */
static void vg_loss_note(struct vg_lossy *l, bool losing)
{
	if (!l->losing && is_sampling_event(l->event))
		atomic64_inc(&l->event->lost_samples);
	l->losing = losing;
}

/* Bring the event's time running up to date. @generation: the block's, just read. */
static void vg_loss_settle(struct vg_lossy *l, u32 generation)
{
	bool due = l->losing || l->times.more_enabled; /* perf's times had not moved */
	int pmc = vg_loss_pmc(l->idx);
	u64 reason, enabled, running;

	if (pmc < 0 || (generation == l->generation && !due))
		return;
	l->generation = generation;
	reason = vg_loss_rd(VPMU_MSR_LOSS_PMC(pmc) + VPMU_LOSS_REASON);
	if (l->changes == reason >> 32 && !due)
		return;
	l->changes = reason >> 32;
	vg_loss_look(l, &enabled, &running);
	if (enabled < l->times.enabled || running < l->times.running) {
		l->times.enabled = enabled; /* the machine was reset */
		l->times.running = running;
	}
	vg_loss_note(l, reason & 0xff);
	vg_times_update(&l->times, l->event, enabled, running, true);
}

static u32 vg_loss_generation(void)
{
	return vg_loss_rd(VPMU_MSR_LOSS_GENERATION);
}

static struct vg_lossy *vg_loss_find(struct vg_loss_cpu *c, const struct perf_event *event)
{
	unsigned int i;

	for (i = 0; i < c->n; i++)
		if (c->event[i].event == event)
			return &c->event[i];
	return NULL;
}

/* In place of the PMU's functions */

static int vg_loss_add(struct perf_event *event, int flags)
{
	struct vg_loss_cpu *c = this_cpu_ptr(&vg_loss_cpus);
	int ret = vg_loss.add(event, flags);
	struct vg_lossy *l;

	if (ret)
		return ret;
	l = vg_loss_find(c, event);
	if (!l && c->n < VG_LOSS_EVENTS) {
		l = &c->event[c->n++];
		l->event = event;
		l->idx = -1;
	}
	if (l)
		l->removed = false;
	return 0;
}

static void vg_loss_del(struct perf_event *event, int flags)
{
	struct vg_lossy *l = vg_loss_find(this_cpu_ptr(&vg_loss_cpus), event);

	if (l)
		l->removed = true;
	vg_loss.del(event, flags);
}

static void vg_loss_read(struct perf_event *event)
{
	struct vg_lossy *l;

	vg_loss.read(event);
	if (in_nmi())
		return;
	l = vg_loss_find(this_cpu_ptr(&vg_loss_cpus), event);
	if (l)
		vg_loss_settle(l, vg_loss_generation());
}

/* The end of a bracket: nothing counts, and perf's times are up to date. */
static void vg_loss_enable(struct pmu *pmu)
{
	struct vg_loss_cpu *c = this_cpu_ptr(&vg_loss_cpus);
	unsigned int i = 0;
	u32 generation;

	if (!c->n) {
		vg_loss.enable(pmu);
		return;
	}
	generation = vg_loss_generation();
	while (i < c->n) {
		vg_loss_settle(&c->event[i], generation);
		if (c->event[i].removed)
			c->event[i] = c->event[--c->n];
		else
			i++;
	}
	vg_loss.enable(pmu);
	for (i = 0; i < c->n; i++)
		if (c->event[i].idx != c->event[i].event->hw.idx)
			vg_loss_begin(&c->event[i], generation);
}

/* Loading and unloading */

static void vg_loss_nothing(void *unused)
{
}

/* On return no CPU executes a function that has just been replaced. */
static void vg_loss_wait(void)
{
	synchronize_rcu();
	on_each_cpu(vg_loss_nothing, NULL, 1);
}

/* A table never has an event whose removal it would miss. */
static void vg_loss_replace(struct pmu *pmu)
{
	vg_loss.enable = pmu->pmu_enable;
	vg_loss.add = pmu->add;
	vg_loss.del = pmu->del;
	vg_loss.read = pmu->read;
	vg_loss.pmu = pmu;
	smp_store_release(&pmu->pmu_enable, vg_loss_enable);
	smp_store_release(&pmu->read, vg_loss_read);
	smp_store_release(&pmu->del, vg_loss_del);
	smp_store_release(&pmu->add, vg_loss_add);
}

/* Only vg_loss_enable() looks at events that are in a table. */
static void vg_loss_restore(struct pmu *pmu)
{
	WRITE_ONCE(pmu->pmu_enable, vg_loss.enable);
	vg_loss_wait();
	WRITE_ONCE(pmu->add, vg_loss.add);
	WRITE_ONCE(pmu->del, vg_loss.del);
	WRITE_ONCE(pmu->read, vg_loss.read);
	vg_loss_wait();
}

/* The kernel's PMU of the architectural counters, or NULL. */
static struct pmu *vg_loss_pmu(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.disabled = 1,
	};
	struct perf_event *event = perf_event_create_kernel_counter(&attr, 0, NULL, NULL, NULL);
	struct pmu *pmu;

	if (IS_ERR(event))
		return NULL;
	pmu = event->pmu;
	perf_event_release_kernel(event);
	return pmu->type == PERF_TYPE_RAW ? pmu : NULL;
}

int vg_loss_init(void)
{
	u32 eax, ebx, ecx, edx, low, high, last;
	u32 base = vg_find(VPMU_CPUID_SIGNATURE_EBX, VPMU_CPUID_SIGNATURE_ECX,
			   VPMU_CPUID_SIGNATURE_EDX, &last);
	struct pmu *pmu;

	if (!base || last < base + VPMU_CPUID_LOSS ||
	    !(cpuid_eax(base + VPMU_CPUID_FEATURES) & VPMU_CPUID_FEATURE_LOSS))
		return -ENODEV;
	cpuid(base + VPMU_CPUID_LOSS, &eax, &ebx, &ecx, &edx);
	if ((eax & 0xff) != VPMU_LOSS_VERSION || rdmsr_safe(ebx, &low, &high))
		return -ENODEV;
	pmu = vg_loss_pmu();
	if (!pmu)
		return -ENODEV;
	vg_loss.first = ebx;
	vg_loss.n_gp = eax >> 8 & 0xff;
	vg_loss.n_fixed = eax >> 16 & 0xff;
	vg_loss_replace(pmu);
	pr_info("perf's times of PMU \"%s\" tell of lost counters\n", pmu->name);
	return 0;
}

void vg_loss_exit(void)
{
	if (vg_loss.pmu)
		vg_loss_restore(vg_loss.pmu);
	vg_loss.pmu = NULL;
}
