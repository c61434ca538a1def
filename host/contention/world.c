// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The scripted host of the contention scenarios: a CPU, vCPUs, actors with
 * their events, and the log of what happens to them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

#define BANKS		(VPMU_BANKS_KERNEL | VPMU_BANKS_USER)
#define CPUID_BASE	0x40000100u
#define SERVICES_MAX	100 /* services at one instant; more are an endless loop */

static void broken(struct contention_world *w, const char *what)
{
	if (!w->broken)
		w->broken = what;
}

/*
 * The CPU enters and leaves the guest: each operation of the host is preceded by an exit.
 */

static void leave(struct contention_world *w)
{
	if (!w->in_guest)
		return;
	w->in_guest = false;
	if (w->policy != VPMU_POLICY_DIRECT)
		vpmu_vcpu_exit(&w->guest[w->on].vcpu);
}

/* Note the events of a guest's counters once they have one, which they keep. */
static void look_for(struct contention_world *w, struct actor *a)
{
	const struct vpmu_perf_event *ev;
	unsigned int slot;

	for (slot = 0; slot < VPMU_SLOTS_MAX; slot++) {
		ev = vpmu_perf_owner(&w->cpu, slot);
		if (ev && ev->head.owner == w->guest[a->vcpu].arch &&
		    ev->head.index - a->pmc < a->n)
			a->seen[ev->head.index - a->pmc] = ev;
	}
}

static void look(struct contention_world *w)
{
	unsigned int i;

	if (w->policy == VPMU_POLICY_DIRECT)
		return;
	for (i = 0; i < w->n_actors; i++)
		if (w->actor[i]->kind == ACTOR_COUNTER)
			look_for(w, w->actor[i]);
}

static void settle(struct contention_world *w)
{
	w->n_service = 0;
	vpmu_script_service(&w->script);
	if (w->on >= 0 && w->runs && !w->in_guest) {
		vpmu_arch_service(w->guest[w->on].arch);
		w->in_guest = true;
		if (w->policy != VPMU_POLICY_DIRECT)
			vpmu_vcpu_enter(&w->guest[w->on].vcpu);
	}
	look(w);
}

/* The second half of a kick. An interrupt leaves the guest, which continues after it. */
static void service(void *arg)
{
	struct contention_world *w = arg;
	bool back = w->in_guest;

	if (++w->n_service > SERVICES_MAX) {
		broken(w, "each service asks for the next one");
		return;
	}
	leave(w);
	if (w->policy != VPMU_POLICY_DIRECT)
		vpmu_perf_service(&w->cpu);
	if (w->on >= 0)
		vpmu_arch_service(w->guest[w->on].arch);
	if (!back)
		return;
	w->in_guest = true;
	if (w->policy != VPMU_POLICY_DIRECT)
		vpmu_vcpu_enter(&w->guest[w->on].vcpu);
}

/*
 * Icelake's events, and a slots counter that follows cycles, as there is no model of the
 * micro-architecture that supplies slots.
 */
static void make_model(struct contention_world *w)
{
	static const struct vpmu_event_def slots = {
		.name = "TOPDOWN.SLOTS",
		.select = 0x00,
		.umask = 0x04,
		.fixed = 3,
		.quality = VPMU_QUALITY_DEFINED,
		.signals = VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES),
	};
	const struct vpmu_model *base = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
	unsigned int i, n = 0;

	w->model = *base;
	w->events = calloc(base->n_events + 1u, sizeof(*w->events));
	if (!w->events) {
		broken(w, "no memory");
		return;
	}
	for (i = 0; i < base->n_events; i++) {
		const struct vpmu_event_def *def = &base->events[i];

		if (i == n && (def->select << 8 | def->umask) > slots.umask)
			w->events[n++] = slots;
		w->events[n] = *def;
		if (def->fixed == slots.fixed)
			w->events[n].fixed = -1;
		n++;
	}
	w->model.n_fixed = 4;
	w->model.events = w->events;
	w->model.n_events = (uint16_t)n;
}

static int init_direct(struct contention_world *w, struct guest *g)
{
	struct vpmu_silicon_config cfg = {
		.size = sizeof(cfg),
		.model = &w->model,
		.supplied = w->script.supplied,
		.ops = &w->script.ops,
		.ctx = &w->script,
	};

	w->script.silicon = &g->direct.silicon;
	g->provider = &g->direct.provider;
	return vpmu_direct_init(&g->direct, &cfg);
}

static int init_arch(struct contention_world *w, struct guest *g)
{
	struct vpmu_arch_config cfg = {
		.size = sizeof(cfg),
		.model = &w->model,
		.n_fixed = 3,
		.capabilities = VPMU_CAP_FULL_WIDTH,
		.provider = g->provider,
		.ops = &w->script.ops,
		.ctx = &w->script,
		.cpuid_base = CPUID_BASE,
	};
	struct vpmu_error err;
	size_t size;
	int ret = vpmu_arch_size(&cfg, &size, &err);

	if (ret)
		return ret;
	g->arch = calloc(1, size);
	if (!g->arch)
		return -VPMU_EINVAL;
	ret = vpmu_arch_init(g->arch, &cfg, &err);
	if (ret)
		return ret;
	/* A guest that uses its counters enables the global control once. */
	if (vpmu_arch_wrmsr(g->arch, VPMU_MSR_GLOBAL_CTRL, 0x7000000ffull) != VPMU_HANDLED)
		return -VPMU_EINVAL;
	return 0;
}

int world_create_vcpu(struct contention_world *w)
{
	struct guest *g = &w->guest[w->n_guests];
	int err;

	leave(w);
	if (w->policy == VPMU_POLICY_DIRECT) {
		err = init_direct(w, g);
	} else {
		err = vpmu_vcpu_init(&g->vcpu, &w->system, w->policy);
		g->provider = &g->vcpu.provider;
	}
	if (!err) {
		err = init_arch(w, g);
		if (err)
			broken(w, "the guest's PMU cannot be set up");
		w->n_guests++;
		settle(w);
		return err;
	}
	settle(w);
	world_log(w, "a VM is created: refused, %s",
		  err == -VPMU_EBUSY ? "EBUSY" : err == -VPMU_EOPNOTSUPP ? "EOPNOTSUPP" : "?");
	return err;
}

void world_init(struct contention_world *w, enum vpmu_policy policy)
{
	struct contention_log *log = w->log;
	struct contention_result *result = w->result;

	memset(w, 0, sizeof(*w));
	w->log = log;
	w->result = result;
	w->policy = policy;
	w->on = -1;
	make_model(w);
	vpmu_script_init(&w->script, VPMU_SCRIPT_SUPPLIED);
	w->script.service = service;
	w->script.arg = w;
	if (policy == VPMU_POLICY_DIRECT)
		return;
	vpmu_perf_system_init(&w->system, &w->model, w->script.supplied, 0, WORLD_MUX);
	if (vpmu_perf_cpu_init(&w->cpu, &w->system, 0, &w->script.ops, &w->script))
		broken(w, "the CPU cannot be set up");
	w->script.silicon = &w->cpu.silicon;
}

void world_fini(struct contention_world *w)
{
	struct contention_log *log = w->log;
	unsigned int i;

	w->log = NULL;
	w->runs = false;
	leave(w);
	for (i = 0; i < w->n_actors; i++) {
		world_close(w, w->actor[i]);
		free(w->actor[i]->facility);
		w->actor[i]->facility = NULL;
	}
	for (i = 0; i < w->n_guests; i++)
		vpmu_arch_reset(w->guest[i].arch, false);
	if (w->on >= 0)
		world_put(w);
	for (i = 0; i < w->n_guests; i++) {
		free(w->guest[i].arch);
		if (w->policy != VPMU_POLICY_DIRECT)
			vpmu_vcpu_fini(&w->guest[i].vcpu);
	}
	free(w->events);
	w->events = NULL;
	w->n_actors = 0;
	w->n_guests = 0;
	w->log = log;
	if (w->script.broken)
		broken(w, w->script.broken);
}

void world_load(struct contention_world *w, unsigned int vcpu)
{
	w->on = (int)vcpu;
	if (w->policy != VPMU_POLICY_DIRECT)
		vpmu_vcpu_load(&w->guest[vcpu].vcpu, &w->cpu);
	settle(w);
}

void world_put(struct contention_world *w)
{
	leave(w);
	if (w->policy != VPMU_POLICY_DIRECT)
		vpmu_vcpu_put(&w->guest[w->on].vcpu);
	w->on = -1;
	settle(w);
}

void world_guest(struct contention_world *w, bool runs)
{
	leave(w);
	w->runs = runs;
	settle(w);
}

void world_run(struct contention_world *w, unsigned int n)
{
	while (n--) {
		w->n_service = 0;
		vpmu_script_step(&w->script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
	}
}

void world_attr(enum contention_resource resource, uint64_t alone,
		struct vpmu_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->banks = BANKS;
	attr->fixed = -1;
	attr->slot = -1;
	switch (resource) {
	case CONTENTION_LBR:
		attr->shared = VPMU_SHARED_LBR;
		attr->extra = alone;
		/* fall through */
	case CONTENTION_GP:
		attr->select = 0x00c4; /* BR_INST_RETIRED.ALL_BRANCHES */
		break;
	case CONTENTION_FIXED:
		attr->fixed = 2; /* CPU_CLK_UNHALTED.REF_TSC */
		break;
	case CONTENTION_MOVABLE:
		attr->select = 0x00c0; /* INST_RETIRED.ANY_P */
		break;
	case CONTENTION_METRICS:
		attr->fixed = 3; /* TOPDOWN.SLOTS */
		attr->shared = VPMU_SHARED_METRICS;
		attr->extra = alone;
		break;
	case CONTENTION_RESOURCES:
		break;
	}
}

struct actor *world_cast(struct contention_world *w)
{
	if (w->n_cast == WORLD_ACTORS) {
		broken(w, "more actors than the world holds");
		w->n_cast--;
	}
	return &w->cast[w->n_cast++];
}

/* Actors --------------------------------------------------------------------- */

static bool pinned(enum vpmu_perf_class class)
{
	return class == VPMU_CPU_PINNED || class == VPMU_TASK_PINNED;
}

static bool of_task(enum vpmu_perf_class class)
{
	return class == VPMU_TASK_PINNED || class == VPMU_TASK_FLEXIBLE;
}

void actor_host(struct actor *a, const char *name, enum vpmu_perf_class class,
		enum contention_resource resource, unsigned int n)
{
	memset(a, 0, sizeof(*a));
	a->name = name;
	a->kind = ACTOR_HOST;
	a->class = class;
	a->n = n;
	a->attr.size = sizeof(a->attr);
	a->attr.cpu = -1;
	world_attr(resource, 0, &a->attr.event);
	a->attr.event.pinned = pinned(class);
}

void actor_counter(struct actor *a, const char *name, enum contention_resource resource,
		   unsigned int n)
{
	static const unsigned int first[CONTENTION_RESOURCES] = {
		[CONTENTION_FIXED] = 10,
		[CONTENTION_MOVABLE] = 8,
	};

	memset(a, 0, sizeof(*a));
	a->name = name;
	a->kind = ACTOR_COUNTER;
	a->class = VPMU_TASK_PINNED;
	a->n = n;
	a->pmc = first[resource];
}

void actor_facility(struct actor *a, const char *name, enum contention_resource resource)
{
	memset(a, 0, sizeof(*a));
	a->name = name;
	a->kind = ACTOR_FACILITY;
	a->class = VPMU_TASK_PINNED;
	a->n = 1;
	world_attr(resource, VPMU_SHARED_ALONE, &a->attr.event);
	a->attr.event.pinned = true;
	a->attr.event.no_counter = resource == CONTENTION_LBR;
}

static struct guest *guest_of(struct contention_world *w, const struct actor *a)
{
	return &w->guest[a->vcpu];
}

static int host_open(struct contention_world *w, struct actor *a, unsigned int i)
{
	struct vpmu_perf_task *task = NULL;

	if (of_task(a->class))
		task = &guest_of(w, a)->vcpu.task;
	memset(&a->event[i], 0, sizeof(a->event[i]));
	return vpmu_perf_open(&a->event[i], &a->attr, task ? NULL : &w->cpu, task);
}

static void wrmsr(struct contention_world *w, const struct actor *a, uint32_t msr,
		  uint64_t value)
{
	if (vpmu_arch_wrmsr(guest_of(w, a)->arch, msr, value) != VPMU_HANDLED)
		broken(w, "a guest's WRMSR was not handled");
}

static uint64_t rdmsr(struct contention_world *w, const struct actor *a, uint32_t msr)
{
	uint64_t value = 0;

	if (vpmu_arch_rdmsr(guest_of(w, a)->arch, msr, &value) != VPMU_HANDLED)
		broken(w, "a guest's RDMSR was not handled");
	return value;
}

#define N_GP 8

enum counter_setting {
	COUNTER_DISABLED,
	COUNTER_ENABLED,
};

static void counter_set(struct contention_world *w, struct actor *a, unsigned int i,
			enum counter_setting setting)
{
	static const uint64_t fixed_bits[] = { 0, VPMU_FIXED_OS | VPMU_FIXED_USR };
	const uint64_t all = 0x00c4 | VPMU_EVTSEL_USR | VPMU_EVTSEL_OS;
	const uint64_t gp_bits[] = { all, all | VPMU_EVTSEL_EN };
	unsigned int pmc = a->pmc + i, shift;
	uint64_t ctrl;

	if (pmc < N_GP) {
		wrmsr(w, a, VPMU_MSR_PERFEVTSEL0 + pmc, gp_bits[setting]);
		return;
	}
	shift = 4 * (pmc - N_GP);
	ctrl = rdmsr(w, a, VPMU_MSR_FIXED_CTR_CTRL) & ~((uint64_t)0xf << shift);
	wrmsr(w, a, VPMU_MSR_FIXED_CTR_CTRL, ctrl | fixed_bits[setting] << shift);
}

static int facility_open(struct contention_world *w, struct actor *a)
{
	struct vpmu_provider *p = guest_of(w, a)->provider;
	int err;

	if (!a->facility)
		a->facility = calloc(1, p->ops->event_size);
	if (!a->facility)
		return -VPMU_EINVAL;
	memset(a->facility, 0, p->ops->event_size);
	err = p->ops->create(p, a->facility, &a->attr.event);
	if (!err)
		(void)p->ops->enable(a->facility); /* the event's state shows the outcome */
	return err;
}

static int open_one(struct contention_world *w, struct actor *a, unsigned int i)
{
	int err = 0;

	leave(w);
	switch (a->kind) {
	case ACTOR_HOST:
		err = host_open(w, a, i);
		break;
	case ACTOR_COUNTER:
		counter_set(w, a, i, COUNTER_ENABLED);
		break;
	case ACTOR_FACILITY:
		err = facility_open(w, a);
		break;
	}
	if (!err)
		a->open |= 1u << i;
	a->error = err;
	settle(w);
	return err;
}

static void close_one(struct contention_world *w, struct actor *a, unsigned int i)
{
	if (!(a->open & 1u << i))
		return;
	leave(w);
	a->open &= ~(1u << i);
	switch (a->kind) {
	case ACTOR_HOST:
		vpmu_perf_close(&a->event[i]);
		break;
	case ACTOR_COUNTER:
		/* A counter is given back when it was not touched for a slice. */
		counter_set(w, a, i, COUNTER_DISABLED);
		(void)vpmu_arch_slice(guest_of(w, a)->arch);
		(void)vpmu_arch_slice(guest_of(w, a)->arch);
		break;
	case ACTOR_FACILITY:
		a->facility->provider->ops->release(a->facility);
		break;
	}
	settle(w);
}

int world_open(struct contention_world *w, struct actor *a)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < w->n_actors; i++)
		if (w->actor[i] == a)
			break;
	if (i == w->n_actors)
		w->actor[w->n_actors++] = a;
	/* Each event needs a setting of its own, so that nothing is shared. */
	if (a->kind == ACTOR_HOST && a->attr.event.shared)
		a->attr.event.extra = 1 + i;
	for (i = 0; i < a->n && !err; i++)
		err = open_one(w, a, i);
	return err;
}

void world_close(struct contention_world *w, struct actor *a)
{
	unsigned int i;

	for (i = 0; i < a->n; i++)
		close_one(w, a, i);
}

void world_create(struct contention_world *w, struct actor *a, unsigned int i)
{
	close_one(w, a, i);
	open_one(w, a, i);
}

void world_disable(struct contention_world *w, struct actor *a, unsigned int i)
{
	leave(w);
	switch (a->kind) {
	case ACTOR_HOST:
		vpmu_perf_disable(&a->event[i]);
		break;
	case ACTOR_COUNTER:
		counter_set(w, a, i, COUNTER_DISABLED);
		break;
	case ACTOR_FACILITY:
		a->facility->provider->ops->disable(a->facility);
		break;
	}
	settle(w);
}

void world_enable(struct contention_world *w, struct actor *a, unsigned int i)
{
	leave(w);
	switch (a->kind) {
	case ACTOR_HOST:
		(void)vpmu_perf_enable(&a->event[i]); /* the event's state shows the outcome */
		break;
	case ACTOR_COUNTER:
		counter_set(w, a, i, COUNTER_ENABLED);
		break;
	case ACTOR_FACILITY:
		(void)a->facility->provider->ops->enable(a->facility);
		break;
	}
	settle(w);
}

enum contention_state actor_state(const struct contention_world *w, const struct actor *a,
				  unsigned int i)
{
	static const enum contention_state states[] = {
		[VPMU_EVENT_OFF] = CONTENTION_OFF,
		[VPMU_EVENT_ACTIVE] = CONTENTION_ACTIVE,
		[VPMU_EVENT_INACTIVE] = CONTENTION_INACTIVE,
		[VPMU_EVENT_ERROR] = CONTENTION_ERROR,
	};
	struct vpmu_pmc_info info = { 0 };
	enum contention_state state;

	if (a->kind == ACTOR_HOST && w->policy == VPMU_POLICY_DIRECT)
		return CONTENTION_NONE;
	if (!(a->open & 1u << i))
		return a->error ? CONTENTION_REFUSED : CONTENTION_OFF;
	switch (a->kind) {
	case ACTOR_HOST:
		return states[vpmu_perf_state(&a->event[i])];
	case ACTOR_FACILITY:
		if (w->policy != VPMU_POLICY_DIRECT) /* an event's head comes first */
			return states[vpmu_perf_state((struct vpmu_perf_event *)a->facility)];
		return states[a->facility->provider->ops->state(a->facility)];
	case ACTOR_COUNTER:
		break;
	}
	/* The state of the event on the host says why an enabled counter waits. */
	vpmu_arch_pmc_info(w->guest[a->vcpu].arch, a->pmc + i, &info);
	state = states[info.state];
	if (state == CONTENTION_ACTIVE && a->seen[i])
		state = states[vpmu_perf_state(a->seen[i])];
	return state;
}

void actor_side(const struct contention_world *w, const struct actor *a,
		struct contention_side *side)
{
	static const unsigned int badness[CONTENTION_STATES] = {
		[CONTENTION_ACTIVE] = 0,
		[CONTENTION_OFF] = 1,
		[CONTENTION_INACTIVE] = 2,
		[CONTENTION_ERROR] = 3,
		[CONTENTION_REFUSED] = 4,
		[CONTENTION_NONE] = 5,
	};
	enum contention_state state;
	unsigned int i;

	memset(side, 0, sizeof(*side));
	side->guest = a->kind != ACTOR_HOST;
	side->n = a->n;
	side->error = a->error;
	for (i = 0; i < a->n; i++) {
		state = actor_state(w, a, i);
		side->count[state]++;
		if (badness[state] > badness[side->state])
			side->state = state;
	}
}

uint64_t actor_count(struct contention_world *w, struct actor *a, unsigned int i)
{
	unsigned int pmc = a->pmc + i;

	switch (a->kind) {
	case ACTOR_HOST:
		return vpmu_perf_count(&a->event[i]);
	case ACTOR_FACILITY:
		return a->facility->provider->ops->read(a->facility);
	case ACTOR_COUNTER:
		break;
	}
	return rdmsr(w, a, pmc < N_GP ? VPMU_MSR_PMC0 + pmc : VPMU_MSR_FIXED_CTR0 + pmc - N_GP);
}

/* The log -------------------------------------------------------------------- */

static int describe(const struct contention_world *w, const struct actor *a, char *text,
		    size_t size)
{
	struct contention_side side;
	unsigned int s;
	int n;

	actor_side(w, a, &side);
	if (a->n == 1)
		return snprintf(text, size, "%s %s", a->name, contention_state_name(side.state));
	n = snprintf(text, size, "%s", a->name);
	for (s = 0; s < CONTENTION_STATES && n < (int)size; s++)
		if (side.count[s])
			n += snprintf(text + n, size - (size_t)n, " %u %s", side.count[s],
				      contention_state_name(s));
	return n;
}

void world_log(struct contention_world *w, const char *format, ...)
{
	struct contention_log *log = w->log;
	char *after;
	size_t size;
	unsigned int i;
	va_list ap;
	int n = 0;

	if (!log)
		return;
	if (log->n == CONTENTION_STEPS) {
		broken(w, "more steps than the log holds");
		return;
	}
	va_start(ap, format);
	vsnprintf(log->step[log->n].done, sizeof(log->step[0].done), format, ap);
	va_end(ap);
	after = log->step[log->n].after;
	size = sizeof(log->step[0].after);
	after[0] = 0;
	for (i = 0; i < w->n_actors && n < (int)size; i++) {
		if (!w->actor[i]->open && !w->actor[i]->error &&
		    w->policy != VPMU_POLICY_DIRECT)
			continue;
		if (n)
			n += snprintf(after + n, size - (size_t)n, ", ");
		if (n < (int)size)
			n += describe(w, w->actor[i], after + n, size - (size_t)n);
	}
	log->n++;
}

void world_result(struct contention_world *w, const char *key, const char *format, ...)
{
	struct contention_result *r = w->result;
	unsigned int i;
	va_list ap;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->row[i].key, key))
			broken(w, "a result is given twice");
	if (r->n == CONTENTION_VALUES) {
		broken(w, "more results than there is room for");
		return;
	}
	snprintf(r->row[r->n].key, sizeof(r->row[0].key), "%s", key);
	va_start(ap, format);
	vsnprintf(r->row[r->n].value, sizeof(r->row[0].value), format, ap);
	va_end(ap);
	r->n++;
}

/* Report the first counter, with times if the guest can read any. */
static void report_counter(struct contention_world *w, struct actor *a)
{
	static const char *const reasons[] = {
		[VPMU_LOSS_NONE] = "none",
		[VPMU_LOSS_LOST] = "lost",
		[VPMU_LOSS_FILTERED] = "filtered",
		[VPMU_LOSS_NOT_COUNTED] = "not counted",
	};
	uint32_t block = VPMU_MSR_LOSS_PMC(a->pmc);
	uint64_t reason;

	world_result(w, "reads", "%llu", (unsigned long long)actor_count(w, a, 0));
	reason = rdmsr(w, a, block + VPMU_LOSS_REASON) & 0xff;
	world_result(w, "reason", "%s",
		     reason < sizeof(reasons) / sizeof(reasons[0]) ? reasons[reason] : "?");
	if (!guest_of(w, a)->provider->ops->clock)
		return;
	world_result(w, "enabled", "%llu",
		     (unsigned long long)rdmsr(w, a, block + VPMU_LOSS_ENABLED));
	world_result(w, "running", "%llu",
		     (unsigned long long)rdmsr(w, a, block + VPMU_LOSS_RUNNING));
}

void world_report(struct contention_world *w, struct actor *a)
{
	struct contention_side side;

	actor_side(w, a, &side);
	world_result(w, a->name, "%s", contention_state_name(side.state));
	if (a->kind == ACTOR_COUNTER)
		report_counter(w, a);
}
