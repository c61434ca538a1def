// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A vCPU's thread, and the provider of its guest's PMU: each of the guest's
 * counters is a task-pinned event of the thread that excludes the host.
 */
#include "perf_internal.h"
#include "totals.h"

static struct vpmu_vcpu *vcpu_of(struct vpmu_provider *p)
{
	return (struct vpmu_vcpu *)p; /* provider is its first member */
}

static struct vpmu_perf_event *vcpu_event(struct vpmu_event *ev)
{
	return (struct vpmu_perf_event *)ev; /* head is its first member */
}

static struct vpmu_perf_cpu *vcpu_cpu(const struct vpmu_vcpu *v)
{
	return v->task.ctx.cpu;
}

int vpmu_vcpu_init(struct vpmu_vcpu *v, struct vpmu_perf_system *sys,
		   enum vpmu_policy policy)
{
	if (policy != VPMU_POLICY_SHARED && policy != VPMU_POLICY_MEDIATED)
		return -VPMU_EINVAL;
	if (policy == VPMU_POLICY_MEDIATED && !vpmu_guests_get(sys, PERF_MEDIATED_VCPU))
		return -VPMU_EBUSY;
	memset(v, 0, sizeof(*v));
	vpmu_perf_task_init(&v->task, sys);
	v->task.vcpu = v;
	v->policy = (uint8_t)policy;
	v->provider.ops = &vpmu_vcpu_ops;
	v->provider.model = sys->model;
	v->provider.n_gp = sys->model->n_gp;
	v->provider.n_fixed = sys->model->n_fixed;
	v->provider.time_hz = sys->time_hz;
	return 0;
}

void vpmu_vcpu_fini(struct vpmu_vcpu *v)
{
	if (v->policy == VPMU_POLICY_MEDIATED)
		vpmu_guests_put(v->task.system, PERF_MEDIATED_VCPU);
	v->policy = VPMU_POLICY_DIRECT;
}

void vpmu_vcpu_load(struct vpmu_vcpu *v, struct vpmu_perf_cpu *cpu)
{
	vpmu_perf_sched_in(cpu, &v->task);
}

void vpmu_vcpu_put(struct vpmu_vcpu *v)
{
	if (vcpu_cpu(v))
		vpmu_perf_sched_out(vcpu_cpu(v));
}

void vpmu_vcpu_enter(struct vpmu_vcpu *v)
{
	if (vcpu_cpu(v))
		vpmu_perf_guest(vcpu_cpu(v), true);
}

void vpmu_vcpu_exit(struct vpmu_vcpu *v)
{
	if (vcpu_cpu(v))
		vpmu_perf_guest(vcpu_cpu(v), false);
}

/* The provider */

static enum vpmu_quality vcpu_quality(struct vpmu_provider *p,
				      const struct vpmu_event_attr *attr)
{
	const struct vpmu_perf_system *sys = vcpu_of(p)->task.system;
	struct vpmu_recipe recipe;

	if (attr->no_counter)
		return VPMU_QUALITY_EXACT;
	(void)vpmu_attr_resolve(sys->model, attr, sys->supplied, &recipe);
	return recipe.quality;
}

/* In a mediated VM the guest's counter is the hardware's of the same number. */
static int vcpu_create(struct vpmu_provider *p, struct vpmu_event *ev,
		       const struct vpmu_event_attr *attr)
{
	struct vpmu_vcpu *v = vcpu_of(p);
	struct vpmu_perf_attr perf;
	int slot = -1;

	if (attr->size < sizeof(*attr) ||
	    attr->slot >= p->model->n_gp + p->model->n_fixed)
		return -VPMU_EINVAL;
	if (v->policy == VPMU_POLICY_MEDIATED)
		slot = attr->slot;
	memset(&perf, 0, sizeof(perf));
	perf.size = sizeof(perf);
	perf.event = *attr;
	perf.disabled = true;
	perf.exclude_host = true;
	perf.exclude_idle = true;
	perf.cpu = -1;
	perf.id = ev->index;
	return vpmu_event_open(vcpu_event(ev), &perf, &v->task.ctx, v->task.system, p, slot);
}

static void vcpu_release(struct vpmu_event *ev)
{
	vpmu_perf_close(vcpu_event(ev));
}

static int vcpu_enable(struct vpmu_event *ev)
{
	return vpmu_perf_enable(vcpu_event(ev));
}

static void vcpu_disable(struct vpmu_event *ev)
{
	vpmu_perf_disable(vcpu_event(ev));
}

static uint64_t vcpu_read(struct vpmu_event *ev)
{
	return vpmu_perf_count(vcpu_event(ev));
}

static void vcpu_arm(struct vpmu_event *ev, uint64_t left)
{
	vpmu_perf_arm(vcpu_event(ev), left);
}

/* Away from its guest an event waits for nothing but the vCPU. */
static enum vpmu_event_state vcpu_state(const struct vpmu_event *ev)
{
	const struct vpmu_vcpu *v = (const struct vpmu_vcpu *)ev->provider;
	enum vpmu_event_state state = vpmu_perf_state((const struct vpmu_perf_event *)ev);
	const struct vpmu_perf_cpu *cpu = vcpu_cpu(v);

	if (state == VPMU_EVENT_INACTIVE &&
	    (!cpu || (v->policy == VPMU_POLICY_MEDIATED && !cpu->guest)))
		return VPMU_EVENT_ACTIVE;
	return state;
}

static void vcpu_begin(struct vpmu_provider *p)
{
	if (vcpu_cpu(vcpu_of(p)))
		vpmu_perf_begin(vcpu_cpu(vcpu_of(p)));
}

static int vcpu_commit(struct vpmu_provider *p)
{
	struct vpmu_perf_cpu *cpu = vcpu_cpu(vcpu_of(p));

	return cpu ? vpmu_perf_commit(cpu) : 0;
}

static uint64_t vcpu_clock(struct vpmu_provider *p, bool hold)
{
	struct vpmu_vcpu *v = vcpu_of(p);
	struct vpmu_perf_cpu *cpu = vcpu_cpu(v);

	if (v->hold != hold) {
		v->hold = hold;
		if (cpu && !cpu->batch)
			vpmu_sched_hold(cpu);
	}
	return vpmu_vcpu_time(v);
}

static uint64_t vcpu_running(struct vpmu_event *ev)
{
	struct vpmu_perf_value value;

	vpmu_perf_read(vcpu_event(ev), &value);
	return value.running;
}

/*
 * The totals of the CPU it is on, for the phase of scaled events. On a CPU that
 * others use at the time of loading the phase is left as it is: it belongs to all.
 */
static int vcpu_save(struct vpmu_provider *p, void *buf, size_t size, size_t *used)
{
	struct vpmu_perf_cpu *cpu = vcpu_cpu(vcpu_of(p));

	return vpmu_totals_save(cpu ? &cpu->silicon : NULL, buf, size, used);
}

static bool vcpu_alone(const struct vpmu_perf_cpu *cpu)
{
	unsigned int i;

	for (i = 0; i < VPMU_SLOTS_MAX; i++)
		if (cpu->held[i])
			return false;
	return !cpu->ctx.n_timed && !cpu->task->ctx.n_timed;
}

static int vcpu_load(struct vpmu_provider *p, const void *buf, size_t size)
{
	struct vpmu_vcpu *v = vcpu_of(p);
	struct vpmu_perf_cpu *cpu = vcpu_cpu(v);
	uint64_t time = vpmu_vcpu_time(v);
	int err;

	if (!cpu || !vcpu_alone(cpu))
		return vpmu_totals_load(NULL, buf, size);
	cpu->ctx.time = vpmu_context_time(&cpu->ctx);
	v->task.ctx.time = vpmu_context_time(&v->task.ctx);
	err = vpmu_totals_load(&cpu->silicon, buf, size);
	cpu->ctx.stamp = vpmu_silicon_clock(&cpu->silicon);
	v->task.ctx.stamp = cpu->ctx.stamp;
	v->stamp = cpu->ctx.stamp;
	v->time = time;
	return err;
}

static void vcpu_topdown(struct vpmu_event *ev, uint64_t *classes)
{
	vpmu_perf_topdown(vcpu_event(ev), classes);
}

const struct vpmu_provider_ops vpmu_vcpu_ops = {
	.size = sizeof(struct vpmu_provider_ops),
	.event_size = (sizeof(struct vpmu_perf_event) + 7) & ~7u,
	.name = "perf",
	.quality = vcpu_quality,
	.create = vcpu_create,
	.release = vcpu_release,
	.enable = vcpu_enable,
	.disable = vcpu_disable,
	.read = vcpu_read,
	.arm = vcpu_arm,
	.state = vcpu_state,
	.begin = vcpu_begin,
	.commit = vcpu_commit,
	.save = vcpu_save,
	.load = vcpu_load,
	.clock = vcpu_clock,
	.running = vcpu_running,
	.topdown = vcpu_topdown,
};
