// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Runs an operation on lib/perf and on its model, and compares states, counts,
 * overflows and times.
 */
#include "perf_pair.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"

/* An event of the library, in memory of its own. */
struct lib_event {
	uint32_t overflows, changes; /* calls of its first halves */
	bool counts;                 /* state that its owner was told */
	struct vpmu_perf_event ev;
};

/* The engine of a CPU, with what the trace says of its counters. */
struct engine {
	struct vpmu_script script; /* first: hooks get a pointer to it */
	struct perf_pair *pair;
	int owner[VPMU_SLOTS_MAX];
};

struct perf_pair {
	const struct perf_config *cfg;
	struct perf_failure *failure;
	bool failed;

	struct vpmu_model own;      /* the small model, if it is that */
	struct vpmu_event_def row[PERF_ROWS];
	const struct vpmu_model *model;

	struct vpmu_perf_system sys;
	struct engine engine[PERF_CPUS];
	struct vpmu_perf_cpu cpu[PERF_CPUS];
	struct vpmu_perf_task task; /* task 0 */
	struct vpmu_vcpu vcpu[PERF_TASKS];
	struct lib_event *event[PERF_EVENTS];
	uint32_t batch[PERF_CPUS];   /* bitmap of events that this batch enabled */

	struct perf_model m;

	/* States before this operation. */
	enum vpmu_event_state before[PERF_EVENTS];
	uint32_t changes[PERF_EVENTS], passes[PERF_CPUS];
	bool retiring;
	uint32_t touched;           /* bitmap of events that it opened, closed, enabled */
};

__attribute__((format(printf, 2, 3)))
static void differ(struct perf_pair *p, const char *format, ...)
{
	va_list ap;

	if (p->failed)
		return;
	p->failed = true;
	va_start(ap, format);
	vsnprintf(p->failure->text, sizeof(p->failure->text), format, ap);
	va_end(ap);
}

static const char *state_name(enum vpmu_event_state state)
{
	static const char *const name[] = { "off", "active", "inactive", "error" };

	return (unsigned int)state < 4 ? name[state] : "rubbish";
}

/* Set-up ---------------------------------------------------------------------- */

static void make_model(struct perf_pair *p)
{
	const struct perf_config *c = p->cfg;
	int i;

	p->model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
	if (c->real)
		return;
	for (i = 0; i < PERF_ROWS; i++) {
		p->row[i].name = "ROW";
		p->row[i].select = (uint16_t)(PERF_SELECT + (unsigned int)i);
		p->row[i].fixed = c->row[i].fixed;
		p->row[i].quality = VPMU_QUALITY_EXACT;
		p->row[i].gp_mask = c->row[i].gp_mask;
		p->row[i].signals = c->row[i].signals;
	}
	p->own.name = "small";
	p->own.title = "for tests";
	p->own.vendor = VPMU_VENDOR_INTEL;
	p->own.family = 6;
	p->own.version = 5;
	p->own.n_gp = c->n_gp;
	p->own.n_fixed = c->n_fixed;
	p->own.width_bits = 48;
	p->own.events = p->row;
	p->own.n_events = PERF_ROWS;
	p->model = &p->own;
}

/* Each counter is assigned while it is free, and released by whom it belongs to. */
static void engine_trace(void *ctx, const struct vpmu_trace_record *r)
{
	struct engine *engine = ctx;
	struct perf_pair *p = engine->pair;
	bool assign = r->type == VPMU_TRACE_ASSIGN;
	const struct perf_model_event *e;

	if (!assign && r->type != VPMU_TRACE_RELEASE)
		return;
	if (r->pmc >= VPMU_SLOTS_MAX || r->a >= PERF_EVENTS) {
		differ(p, "trace: counter %u, event %" PRIu64, r->pmc, r->a);
		return;
	}
	e = &p->m.event[r->a];
	if (r->what != (e->guests ? VPMU_TRACE_GUEST : VPMU_TRACE_HOST))
		differ(p, "trace: event %" PRIu64 " has another owner", r->a);
	if (engine->owner[r->pmc] != (assign ? PERF_NONE : (int)r->a))
		differ(p, "trace: counter %u %s event %" PRIu64 ", and was event %d's", r->pmc,
		       assign ? "to" : "from", r->a, engine->owner[r->pmc]);
	if (!p->retiring && r->b != e->count)
		differ(p, "trace: event %" PRIu64 " at %" PRIu64 " instead of %" PRIu64, r->a,
		       r->b, e->count);
	engine->owner[r->pmc] = assign ? (int)r->a : PERF_NONE;
}

static void cpu_service(void *arg)
{
	vpmu_perf_service(arg);
}

static struct vpmu_perf_task *task_of(struct perf_pair *p, int t)
{
	return t ? &p->vcpu[t].task : &p->task;
}

static void init_vcpu(struct perf_pair *p, int t, enum perf_policy policy)
{
	int err = vpmu_vcpu_init(&p->vcpu[t], &p->sys, policy == PERF_SHARED ?
				 VPMU_POLICY_SHARED : VPMU_POLICY_MEDIATED);
	int expected = perf_model_vcpu_init(&p->m, t, policy) ? 0 : -VPMU_EBUSY;

	if (err != expected)
		differ(p, "vpmu_vcpu_init(): library %d, reference %d", err, expected);
	else if (!err && p->cfg->hold)
		p->vcpu[t].provider.ops->clock(&p->vcpu[t].provider, true);
}

static void set_up(struct perf_pair *p)
{
	int i, k;

	make_model(p);
	perf_model_init(&p->m, p->model, p->cfg->n_cpus, p->cfg->mux_cycles);
	vpmu_perf_system_init(&p->sys, p->model, VPMU_SCRIPT_SUPPLIED, 0, p->cfg->mux_cycles);
	for (i = 0; i < p->cfg->n_cpus; i++) {
		struct vpmu_script *sc = &p->engine[i].script;

		p->engine[i].pair = p;
		for (k = 0; k < VPMU_SLOTS_MAX; k++)
			p->engine[i].owner[k] = PERF_NONE;
		vpmu_script_init(sc, VPMU_SCRIPT_SUPPLIED);
		sc->ops.trace = engine_trace;
		if (vpmu_perf_cpu_init(&p->cpu[i], &p->sys, (uint32_t)i, &sc->ops, sc))
			differ(p, "vpmu_perf_cpu_init() fails");
		sc->silicon = &p->cpu[i].silicon;
		sc->service = cpu_service;
		sc->arg = &p->cpu[i];
	}
	vpmu_perf_task_init(&p->task, &p->sys);
	for (i = 1; i < PERF_TASKS; i++)
		if (p->cfg->policy[i] != PERF_PLAIN)
			init_vcpu(p, i, (enum perf_policy)p->cfg->policy[i]);
}

/* The library's events -------------------------------------------------------- */

static void overflowed(struct vpmu_event *head)
{
	((struct lib_event *)head->owner)->overflows++;
}

static void changed(struct vpmu_event *head)
{
	((struct lib_event *)head->owner)->changes++;
}

static void perf_attr_of(const struct perf_op *op, struct vpmu_perf_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->event.size = sizeof(attr->event);
	attr->event.banks = op->banks;
	attr->event.pinned = op->flags & PERF_PINNED;
	attr->event.fixed = op->fixed;
	attr->event.slot = op->kind == PERF_CREATE ? op->slot : -1;
	attr->event.select = op->select;
	attr->event.extra = op->extra;
	attr->event.period = op->value;
	attr->event.shared = op->shared;
	attr->event.no_counter = op->flags & PERF_NO_COUNTER;
	attr->disabled = op->flags & PERF_DISABLED;
	attr->exclusive = op->flags & PERF_EXCLUSIVE;
	attr->exclude_host = op->flags & PERF_EXCLUDE_HOST;
	attr->exclude_guest = op->flags & PERF_EXCLUDE_GUEST;
	attr->cpu = op->only;
	attr->id = op->ev;
}

static struct lib_event *new_event(int i)
{
	struct lib_event *e = malloc(sizeof(*e));

	if (!e)
		abort();
	memset(e, 0xa5, sizeof(*e));
	e->overflows = 0;
	e->changes = 0;
	e->counts = true;
	e->ev.head.overflowed = overflowed;
	e->ev.head.changed = changed;
	e->ev.head.owner = e;
	e->ev.head.index = (uint32_t)i;
	return e;
}

static void compare_opened(struct perf_pair *p, int i, int err, uint32_t why)
{
	bool agree = !why ? !err :
		(err == -VPMU_ENOENT && why & PERF_UNCOUNTED) ||
		(err == -VPMU_EINVAL && why & PERF_INVALID) ||
		(err == -VPMU_EOPNOTSUPP && why & PERF_REFUSED);

	if (!agree)
		differ(p, "opening event %d: library %d, reference %s%s%s%s", i, err,
		       why ? "" : "0", why & PERF_UNCOUNTED ? "-ENOENT " : "",
		       why & PERF_INVALID ? "-EINVAL " : "",
		       why & PERF_REFUSED ? "-EOPNOTSUPP" : "");
	p->touched |= 1u << i;
	if (!err)
		return;
	free(p->event[i]);
	p->event[i] = NULL;
}

static void note_enabled(struct perf_pair *p, int i)
{
	int cpu = perf_model_cpu_of(&p->m, i);

	p->touched |= 1u << i;
	if (cpu != PERF_NONE)
		p->batch[cpu] |= 1u << i;
}

static void open_event(struct perf_pair *p, const struct perf_op *op)
{
	int i = op->ev, leader = op->leader, task = op->ctx - PERF_CPUS, err;
	struct vpmu_perf_attr attr;
	uint32_t why;

	perf_attr_of(op, &attr);
	p->event[i] = new_event(i);
	if (leader != PERF_NONE) {
		attr.event.leader = &p->event[leader]->ev.head;
		attr.cpu = p->m.event[leader].attr.cpu;
	}
	why = perf_model_open(&p->m, i, &attr, op->ctx, leader, false);
	err = task < 0 ? vpmu_perf_open(&p->event[i]->ev, &attr, &p->cpu[op->ctx], NULL)
		       : vpmu_perf_open(&p->event[i]->ev, &attr, NULL, task_of(p, task));
	compare_opened(p, i, err, why);
	if (!why && !attr.disabled)
		note_enabled(p, i);
}

static void create_event(struct perf_pair *p, const struct perf_op *op)
{
	struct vpmu_provider *provider = &p->vcpu[op->ctx - PERF_CPUS].provider;
	struct vpmu_perf_attr attr;
	int i = op->ev, err;
	uint32_t why;

	perf_attr_of(op, &attr);
	if (provider->ops->event_size > sizeof(p->event[i]->ev)) {
		differ(p, "a guest's event needs %u bytes", provider->ops->event_size);
		return;
	}
	p->event[i] = new_event(i);
	why = perf_model_open(&p->m, i, &attr, op->ctx, PERF_NONE, true);
	err = provider->ops->create(provider, &p->event[i]->ev.head, &attr.event);
	compare_opened(p, i, err, why);
}

static const struct vpmu_provider_ops *guest_ops(struct perf_pair *p, int i)
{
	return p->m.event[i].guests ? &vpmu_vcpu_ops : NULL;
}

static void close_event(struct perf_pair *p, int i)
{
	const struct vpmu_provider_ops *ops = guest_ops(p, i);

	p->touched |= 1u << i;
	if (ops)
		ops->release(&p->event[i]->ev.head);
	else
		vpmu_perf_close(&p->event[i]->ev);
	free(p->event[i]);
	p->event[i] = NULL;
	perf_model_close(&p->m, i);
}

static void enable_event(struct perf_pair *p, int i)
{
	const struct vpmu_provider_ops *ops = guest_ops(p, i);
	int cpu = perf_model_cpu_of(&p->m, i);
	bool batch = cpu != PERF_NONE && p->m.cpu[cpu].batch;
	int err, expected = 0;

	if (perf_model_state(&p->m, i) != VPMU_EVENT_INACTIVE)
		p->event[i]->counts = true;
	err = ops ? ops->enable(&p->event[i]->ev.head) : vpmu_perf_enable(&p->event[i]->ev);
	perf_model_enable(&p->m, i);
	note_enabled(p, i);
	if (perf_model_state(&p->m, i) == VPMU_EVENT_ERROR)
		expected = -VPMU_EBUSY;
	if (!batch && err != expected)
		differ(p, "enabling event %d: library %d, reference %d", i, err, expected);
}

static void disable_event(struct perf_pair *p, int i)
{
	const struct vpmu_provider_ops *ops = guest_ops(p, i);

	if (ops)
		ops->disable(&p->event[i]->ev.head);
	else
		vpmu_perf_disable(&p->event[i]->ev);
	perf_model_disable(&p->m, i);
}

static void arm_event(struct perf_pair *p, int i, uint64_t left)
{
	const struct vpmu_provider_ops *ops = guest_ops(p, i);

	if (ops)
		ops->arm(&p->event[i]->ev.head, left);
	else
		vpmu_perf_arm(&p->event[i]->ev, left);
	perf_model_arm(&p->m, i, left);
}

static void commit(struct perf_pair *p, int cpu)
{
	int err = vpmu_perf_commit(&p->cpu[cpu]), i, expected = 0;

	perf_model_commit(&p->m, cpu);
	if (p->m.cpu[cpu].batch)
		return;
	for (i = 0; i < PERF_EVENTS; i++)
		if (p->event[i] && p->before[i] != VPMU_EVENT_ERROR &&
		    perf_model_state(&p->m, i) == VPMU_EVENT_ERROR)
			expected = -VPMU_EBUSY;
	if (err != expected)
		differ(p, "commit: library %d, reference %d", err, expected);
}

/* Comparing ------------------------------------------------------------------- */

static void compare_states(struct perf_pair *p)
{
	int i;

	for (i = 0; i < PERF_EVENTS; i++) {
		enum vpmu_event_state lib, ref;

		if (!p->event[i])
			continue;
		lib = vpmu_perf_state(&p->event[i]->ev);
		ref = perf_model_state(&p->m, i);
		if (lib != ref)
			differ(p, "event %d: library %s, reference %s", i, state_name(lib),
			       state_name(ref));
		if (vpmu_perf_class(&p->event[i]->ev) != perf_model_class(&p->m, i))
			differ(p, "event %d: class: library %d, reference %d", i,
			       vpmu_perf_class(&p->event[i]->ev), perf_model_class(&p->m, i));
	}
}

static void compare_number(struct perf_pair *p, int i, const char *what, uint64_t lib,
			   uint64_t ref)
{
	if (lib != ref)
		differ(p, "event %d: %s: library %" PRIu64 ", reference %" PRIu64, i, what, lib,
		       ref);
}

static void compare_event(struct perf_pair *p, int i)
{
	const struct perf_model_event *ref = &p->m.event[i];
	const struct vpmu_provider_ops *ops = guest_ops(p, i);
	struct lib_event *lib = p->event[i];
	struct vpmu_perf_value v = { 0 };

	vpmu_perf_read(&lib->ev, &v);
	compare_number(p, i, "count", v.count, ref->count);
	compare_number(p, i, "count alone", vpmu_perf_count(&lib->ev), ref->count);
	compare_number(p, i, "time enabled", v.enabled, ref->enabled);
	compare_number(p, i, "time running", v.running, ref->running);
	compare_number(p, i, "overflows", v.overflows, ref->overflows);
	compare_number(p, i, "overflows told", lib->overflows, ref->overflows);
	compare_number(p, i, "state read", v.state, perf_model_state(&p->m, i));
	if (!ops)
		return;
	compare_number(p, i, "guest's count", ops->read(&lib->ev.head), ref->count);
	compare_number(p, i, "guest's time running", ops->running(&lib->ev.head), ref->running);
}

static void compare_numbers(struct perf_pair *p)
{
	int i;

	for (i = 0; i < PERF_EVENTS; i++)
		if (p->event[i])
			compare_event(p, i);
	for (i = 1; i < PERF_TASKS; i++)
		if (p->m.task[i].policy != PERF_PLAIN && p->cfg->hold)
			compare_number(p, i, "its vCPU's clock",
				       vpmu_vcpu_ops.clock(&p->vcpu[i].provider, true),
				       p->m.task[i].guest_time);
}

/* Whom a counter belongs to, by number. */
static int owner_of(struct perf_pair *p, int cpu, unsigned int slot)
{
	const struct vpmu_perf_event *ev = vpmu_perf_owner(&p->cpu[cpu], slot);
	int i;

	for (i = 0; ev && i < PERF_EVENTS; i++)
		if (p->event[i] && ev == &p->event[i]->ev)
			return i;
	if (ev)
		differ(p, "CPU %d: counter %u belongs to nobody who is open", cpu, slot);
	return PERF_NONE;
}

/* Each active event has one counter, which may count it. */
static void check_counters(struct perf_pair *p, int cpu)
{
	unsigned int slots = (unsigned int)p->model->n_gp + p->model->n_fixed, s;
	int has[PERF_EVENTS], i, owner[VPMU_SLOTS_MAX] = { 0 };
	bool set[PERF_EVENTS] = { false };

	for (i = 0; i < PERF_EVENTS; i++)
		has[i] = PERF_NONE;
	for (s = 0; s < slots; s++) {
		i = owner[s] = owner_of(p, cpu, s);
		if (i != p->engine[cpu].owner[s])
			differ(p, "CPU %d: counter %u is event %d's, and event %d's in the trace",
			       cpu, s, i, p->engine[cpu].owner[s]);
		if (i == PERF_NONE)
			continue;
		if (has[i] != PERF_NONE)
			differ(p, "event %d has counters %d and %u", i, has[i], s);
		if (!(p->m.event[i].allowed >> s & 1))
			differ(p, "event %d has counter %u, which cannot count it", i, s);
		has[i] = (int)s;
	}
	for (i = 0; i < PERF_EVENTS; i++) {
		uint32_t fixed = p->m.event[i].allowed >> p->model->n_gp;

		set[i] = p->event[i] && perf_model_cpu_of(&p->m, i) == cpu &&
			 vpmu_perf_state(&p->event[i]->ev) == VPMU_EVENT_ACTIVE;
		if ((has[i] != PERF_NONE) !=
		    (set[i] && !p->m.event[i].attr.event.no_counter))
			differ(p, "event %d is %sactive and has counter %d", i,
			       set[i] ? "" : "not ", has[i]);
		if (!set[i] || p->before[i] == VPMU_EVENT_ACTIVE || !fixed ||
		    has[i] >= p->model->n_gp)
			continue;
		for (s = p->model->n_gp; s < slots; s++)
			if (p->m.event[i].allowed >> s & 1 && owner[s] == PERF_NONE)
				differ(p, "event %d is not on fixed counter %u, which is free",
				       i, s - p->model->n_gp);
	}
	if (!perf_model_fits(&p->m, set))
		differ(p, "CPU %d: what is active does not fit together", cpu);
}

static void check_shared(struct perf_pair *p, int cpu)
{
	int s, i;

	for (s = VPMU_SHARED_NONE + 1; s < VPMU_SHARED_COUNT; s++) {
		const struct vpmu_perf_event *ev =
			vpmu_perf_shared_owner(&p->cpu[cpu], (enum vpmu_shared)s);
		bool any = false, found = false;

		for (i = 0; i < PERF_EVENTS; i++) {
			const struct perf_model_event *e = &p->m.event[i];
			bool uses = p->event[i] && e->state == VPMU_EVENT_ACTIVE &&
				    perf_model_cpu_of(&p->m, i) == cpu &&
				    e->attr.event.shared == s;

			any |= uses;
			found |= uses && ev == &p->event[i]->ev;
		}
		if (any != (ev != NULL) || any != found)
			differ(p, "CPU %d: shared %d: library has %s owner", cpu, s,
			       ev ? "another" : "no");
	}
}

/* An older group of CPU @cpu, or this one itself, was opened, closed or enabled. */
static bool older_touched(const struct perf_pair *p, int i)
{
	int k;

	for (k = 0; k < PERF_EVENTS; k++)
		if (p->touched >> k & 1 && p->m.event[k].ctx == p->m.event[i].ctx &&
		    p->m.event[p->m.event[k].leader].age <= p->m.event[i].age)
			return true;
	return false;
}

/* Check conditions that hold whatever the model says. */
static void check_invariants(struct perf_pair *p)
{
	int i;

	for (i = 0; i < PERF_EVENTS; i++) {
		int cpu = perf_model_cpu_of(&p->m, i);
		enum vpmu_event_state state;

		if (!p->event[i])
			continue;
		state = vpmu_perf_state(&p->event[i]->ev);
		if (p->event[i]->changes != p->changes[i])
			p->event[i]->counts = state == VPMU_EVENT_ACTIVE;
		if (state == VPMU_EVENT_ERROR && p->before[i] == VPMU_EVENT_ACTIVE &&
		    p->event[i]->changes == p->changes[i])
			differ(p, "event %d lost its counter, and nobody was told", i);
		if (p->m.event[i].leader == i && p->m.event[i].attr.event.pinned &&
		    (state == VPMU_EVENT_ERROR || state == VPMU_EVENT_ACTIVE) &&
		    p->event[i]->counts != (state == VPMU_EVENT_ACTIVE))
			differ(p, "event %d is %s, and nobody was told", i, state_name(state));
		if (cpu == PERF_NONE || p->m.cpu[cpu].batch)
			continue;
		if (p->m.event[i].leader == i && p->m.event[i].attr.event.pinned &&
		    state == VPMU_EVENT_INACTIVE && perf_model_matches(&p->m, i, cpu))
			differ(p, "event %d is pinned and waits", i);
		if (perf_model_class(&p->m, i) == VPMU_CPU_PINNED && p->m.event[i].leader == i &&
		    p->before[i] == VPMU_EVENT_ACTIVE && state == VPMU_EVENT_ERROR &&
		    !older_touched(p, i))
			differ(p, "event %d was displaced by no older one", i);
	}
}

static void remember(struct perf_pair *p)
{
	int i;

	p->touched = 0;
	for (i = 0; i < PERF_CPUS; i++) {
		if (!p->m.cpu[i].batch)
			p->batch[i] = 0;
		p->touched |= p->batch[i];
	}
	for (i = 0; i < PERF_EVENTS; i++) {
		p->before[i] = p->event[i] ? vpmu_perf_state(&p->event[i]->ev) : VPMU_EVENT_OFF;
		p->changes[i] = p->event[i] ? p->event[i]->changes : 0;
	}
}

static void check(struct perf_pair *p)
{
	int cpu;

	for (cpu = 0; cpu < p->cfg->n_cpus; cpu++)
		perf_model_idle(&p->m, cpu, p->cfg->hold);
	compare_states(p);
	for (cpu = 0; cpu < p->cfg->n_cpus && !p->failed; cpu++) {
		check_counters(p, cpu);
		check_shared(p, cpu);
		if (p->engine[cpu].script.broken)
			differ(p, "ops.h is broken: %s", p->engine[cpu].script.broken);
	}
	if (!p->failed)
		check_invariants(p);
	if (!p->cfg->lazy && !p->failed)
		compare_numbers(p);
}

/* Operations ------------------------------------------------------------------ */

static void sched_in(struct perf_pair *p, int cpu, int t)
{
	if (t)
		vpmu_vcpu_load(&p->vcpu[t], &p->cpu[cpu]);
	else
		vpmu_perf_sched_in(&p->cpu[cpu], &p->task);
	perf_model_sched_in(&p->m, cpu, t);
}

static void sched_out(struct perf_pair *p, int cpu)
{
	int t = p->m.cpu[cpu].task;

	if (t)
		vpmu_vcpu_put(&p->vcpu[t]);
	else
		vpmu_perf_sched_out(&p->cpu[cpu]);
	perf_model_sched_out(&p->m, cpu);
}

static void guest(struct perf_pair *p, int cpu, bool entered)
{
	struct vpmu_vcpu *v = &p->vcpu[p->m.cpu[cpu].task];

	if (entered)
		vpmu_vcpu_enter(v);
	else
		vpmu_vcpu_exit(v);
	perf_model_guest(&p->m, cpu, entered);
}

static void retire(struct perf_pair *p, const struct perf_op *op)
{
	uint64_t digits = op->value;
	unsigned int i;

	p->retiring = true;
	for (i = 0; i < op->n && !p->failed; i++) {
		unsigned int kind = digits & 15;

		/* plain ones are numbered like INSTRUCTIONS */
		if (kind < VPMU_SIGNAL_JCC_TAKEN || kind > VPMU_SIGNAL_FAR)
			kind = VPMU_SIGNAL_INSTRUCTIONS;
		vpmu_script_step(&p->engine[op->cpu].script, (enum vpmu_bank)op->bank,
				 (enum vpmu_signal)kind);
		perf_model_retire(&p->m, op->cpu, (enum vpmu_bank)op->bank,
				  (enum vpmu_signal)kind);
		digits = digits >> 4 | digits << 60;
	}
	p->retiring = false;
}

/* A context that exists. */
static bool context(const struct perf_pair *p, int ctx)
{
	if (ctx < PERF_CPUS)
		return ctx < p->cfg->n_cpus;
	return ctx == PERF_CPUS || (ctx < PERF_CONTEXTS &&
				    p->m.task[ctx - PERF_CPUS].policy != PERF_PLAIN);
}

static bool empty(const struct perf_pair *p, int ctx)
{
	int i;

	for (i = 0; i < PERF_EVENTS; i++)
		if (p->event[i] && p->m.event[i].ctx == ctx)
			return false;
	return true;
}

/* Is an operation possible now? */
static bool possible(const struct perf_pair *p, const struct perf_op *op)
{
	int cpu = op->cpu, task = op->ctx - PERF_CPUS, on = p->m.cpu[cpu].task;
	int batch = p->m.cpu[cpu].batch;

	switch ((enum perf_op_kind)op->kind) {
	case PERF_OPEN:
		return !p->event[op->ev] && context(p, op->ctx) &&
		       (op->leader == PERF_NONE || p->event[op->leader]);
	case PERF_CREATE:
		return !p->event[op->ev] && task > 0 && context(p, op->ctx) &&
		       op->slot < p->model->n_gp + p->model->n_fixed;
	case PERF_CLOSE:
	case PERF_ENABLE:
	case PERF_DISABLE:
	case PERF_ARM:
		return p->event[op->ev];
	case PERF_BEGIN:
		return batch < 3;
	case PERF_COMMIT:
		return batch;
	case PERF_SCHED_IN:
		return !batch && on == PERF_NONE && task >= 0 && context(p, op->ctx) &&
		       p->m.task[task].cpu == PERF_NONE;
	case PERF_SCHED_OUT:
		return !batch && on != PERF_NONE && !p->m.cpu[cpu].guest;
	case PERF_ENTER:
		return !batch && on > 0 && !p->m.cpu[cpu].guest;
	case PERF_EXIT:
		return !batch && p->m.cpu[cpu].guest;
	case PERF_RETIRE:
		return !batch;
	case PERF_INIT:
		return task > 0 && p->m.task[task].policy == PERF_PLAIN;
	case PERF_FINI:
		return task > 0 && context(p, op->ctx) && p->m.task[task].cpu == PERF_NONE &&
		       empty(p, op->ctx);
	case PERF_READ:
		return true;
	case PERF_OP_KINDS:
		break;
	}
	return false;
}

static void perform(struct perf_pair *p, const struct perf_op *op)
{
	switch ((enum perf_op_kind)op->kind) {
	case PERF_OPEN:
		open_event(p, op);
		break;
	case PERF_CREATE:
		create_event(p, op);
		break;
	case PERF_CLOSE:
		close_event(p, op->ev);
		break;
	case PERF_ENABLE:
		enable_event(p, op->ev);
		break;
	case PERF_DISABLE:
		disable_event(p, op->ev);
		break;
	case PERF_ARM:
		arm_event(p, op->ev, op->value);
		break;
	case PERF_BEGIN:
		vpmu_perf_begin(&p->cpu[op->cpu]);
		perf_model_begin(&p->m, op->cpu);
		break;
	case PERF_COMMIT:
		commit(p, op->cpu);
		break;
	case PERF_SCHED_IN:
		sched_in(p, op->cpu, op->ctx - PERF_CPUS);
		break;
	case PERF_SCHED_OUT:
		sched_out(p, op->cpu);
		break;
	case PERF_ENTER:
		guest(p, op->cpu, true);
		break;
	case PERF_EXIT:
		guest(p, op->cpu, false);
		break;
	case PERF_RETIRE:
		retire(p, op);
		break;
	case PERF_INIT:
		init_vcpu(p, op->ctx - PERF_CPUS, (enum perf_policy)op->policy);
		break;
	case PERF_FINI:
		vpmu_vcpu_fini(&p->vcpu[op->ctx - PERF_CPUS]);
		perf_model_vcpu_fini(&p->m, op->ctx - PERF_CPUS);
		break;
	case PERF_READ:
		compare_numbers(p);
		break;
	case PERF_OP_KINDS:
		break;
	}
}

/* Take everything down, which must work from any state. */
static void tear_down(struct perf_pair *p)
{
	int i;

	for (i = 0; i < p->cfg->n_cpus; i++)
		while (p->m.cpu[i].batch && !p->failed) {
			remember(p);
			commit(p, i);
		}
	if (!p->failed)
		compare_numbers(p);
	for (i = 0; i < PERF_EVENTS; i++) {
		if (p->event[i] && !p->failed)
			close_event(p, i);
		free(p->event[i]);
	}
	for (i = 0; i < p->cfg->n_cpus && !p->failed; i++) {
		if (p->m.cpu[i].guest)
			guest(p, i, false);
		if (p->m.cpu[i].task != PERF_NONE)
			sched_out(p, i);
	}
	for (i = 1; i < PERF_TASKS && !p->failed; i++)
		if (p->m.task[i].policy != PERF_PLAIN)
			vpmu_vcpu_fini(&p->vcpu[i]);
}

bool perf_pair_run(const struct perf_config *cfg, const struct perf_op *op, size_t n,
		   struct perf_failure *f)
{
	static struct perf_pair p;
	size_t i;

	memset(&p, 0, sizeof(p));
	p.cfg = cfg;
	p.failure = f;
	f->op = 0;
	set_up(&p);
	for (i = 0; i < n && !p.failed; i++) {
		if (!possible(&p, &op[i]))
			continue;
		f->op = i;
		remember(&p);
		perform(&p, &op[i]);
		if (!p.failed)
			check(&p);
	}
	tear_down(&p);
	return !p.failed;
}

/* Showing --------------------------------------------------------------------- */

size_t perf_pair_shrink(const struct perf_config *cfg, struct perf_op *op, size_t n)
{
	struct perf_op *trial = malloc((n + 1) * sizeof(*op));
	struct perf_failure f;
	size_t part, at;

	if (!trial || perf_pair_run(cfg, op, n, &f))
		goto out;
	n = f.op < n ? f.op + 1 : n;
	for (part = n; part; part /= 2) {
		for (at = 0; at + part <= n;) {
			memcpy(trial, op, at * sizeof(*op));
			memcpy(trial + at, op + at + part, (n - at - part) * sizeof(*op));
			if (perf_pair_run(cfg, trial, n - part, &f)) {
				at += part;
				continue;
			}
			n -= part;
			memcpy(op, trial, n * sizeof(*op));
		}
	}
out:
	free(trial);
	return n;
}

static void print_config(FILE *to, const struct perf_config *c)
{
	static const char *const policy[] = { "none", "shared", "mediated" };
	int i;

	if (c->real)
		fprintf(to, "icelake-server");
	else
		fprintf(to, "%u GP, %u fixed", c->n_gp, c->n_fixed);
	fprintf(to, ", %u CPUs, multiplexing every %u cycles, vCPUs %s and %s%s%s\n", c->n_cpus,
		c->mux_cycles, policy[c->policy[1]], policy[c->policy[2]],
		c->lazy ? ", lazy" : "", c->hold ? ", clocks held" : "");
	for (i = 0; i < PERF_ROWS && !c->real; i++)
		fprintf(to, "     event %x: GP mask %x, fixed %d, signals %" PRIx64 "\n",
			PERF_SELECT + (unsigned int)i, c->row[i].gp_mask, c->row[i].fixed,
			c->row[i].signals);
}

static const char *context_name(int ctx)
{
	static const char *const name[] = { "cpu0", "cpu1", "task", "vcpu1", "vcpu2" };

	return name[ctx];
}

static void print_open(FILE *to, const struct perf_op *op)
{
	static const char *const flag[] = {
		"pinned", "disabled", "exclusive", "exclude_host", "exclude_guest", "no_counter",
	};
	unsigned int i;

	fprintf(to, " %u of %s", op->ev, context_name(op->ctx));
	if (op->leader != PERF_NONE)
		fprintf(to, " in the group of %d", op->leader);
	if (op->fixed >= 0)
		fprintf(to, ", fixed %d", op->fixed);
	else
		fprintf(to, ", event %" PRIx64, op->select);
	fprintf(to, " banks %x", op->banks);
	if (op->kind == PERF_CREATE)
		fprintf(to, " counter %d", op->slot);
	if (op->value)
		fprintf(to, " period %" PRIu64, op->value);
	if (op->only >= 0)
		fprintf(to, " only on CPU %d", op->only);
	if (op->shared)
		fprintf(to, " shared %u=%" PRIx64, op->shared, op->extra);
	for (i = 0; i < 6; i++)
		if (op->flags >> i & 1)
			fprintf(to, " %s", flag[i]);
}

void perf_pair_print(FILE *to, const struct perf_config *cfg, const struct perf_op *op,
		     size_t n)
{
	static const char *const name[] = {
		"open", "create", "close", "enable", "disable", "arm", "read", "begin", "commit",
		"sched in", "sched out", "enter", "exit", "retire", "init", "fini",
	};
	size_t i;

	print_config(to, cfg);
	for (i = 0; i < n; i++) {
		fprintf(to, "%4zu %s", i, name[op[i].kind]);
		switch ((enum perf_op_kind)op[i].kind) {
		case PERF_OPEN:
		case PERF_CREATE:
			print_open(to, &op[i]);
			break;
		case PERF_CLOSE:
		case PERF_ENABLE:
		case PERF_DISABLE:
			fprintf(to, " %u", op[i].ev);
			break;
		case PERF_ARM:
			fprintf(to, " %u left %" PRIu64, op[i].ev, op[i].value);
			break;
		case PERF_SCHED_IN:
			fprintf(to, " %s on cpu%u", context_name(op[i].ctx), op[i].cpu);
			break;
		case PERF_BEGIN:
		case PERF_COMMIT:
		case PERF_SCHED_OUT:
		case PERF_ENTER:
		case PERF_EXIT:
			fprintf(to, " cpu%u", op[i].cpu);
			break;
		case PERF_RETIRE:
			fprintf(to, " %u on cpu%u, bank %u, kinds %016" PRIx64, op[i].n,
				op[i].cpu, op[i].bank, op[i].value);
			break;
		case PERF_INIT:
			fprintf(to, " %s %s", context_name(op[i].ctx),
				op[i].policy == PERF_SHARED ? "shared" : "mediated");
			break;
		case PERF_FINI:
			fprintf(to, " %s", context_name(op[i].ctx));
			break;
		default:
			break;
		}
		fprintf(to, "\n");
	}
}
