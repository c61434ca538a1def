// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The model of a host's perf subsystem; perf_model.h describes it. */
#include "perf_model.h"

#include <string.h>

#define SLOTS		16
#define CLASS_BIT(c)	(1u << (c))
#define ALL_CLASSES	(CLASS_BIT(VPMU_PERF_CLASSES) - 1)

/* IA32_PERFEVTSELx, as the manual numbers its bits */
#define EDGE		((uint64_t)1 << 18)
#define INVERT		((uint64_t)1 << 23)
#define CMASK(select)	((select) >> 24 & 0xff)

void perf_model_init(struct perf_model *m, const struct vpmu_model *model, int n_cpus,
		     uint64_t mux_cycles)
{
	int i;

	memset(m, 0, sizeof(*m));
	m->model = model;
	m->n_cpus = n_cpus;
	m->mux_cycles = mux_cycles;
	for (i = 0; i < PERF_CPUS; i++)
		m->cpu[i].task = PERF_NONE;
	for (i = 0; i < PERF_TASKS; i++)
		m->task[i].cpu = PERF_NONE;
}

/* Contexts and states --------------------------------------------------------- */

static bool is_task(int ctx)
{
	return ctx >= PERF_CPUS;
}

/* The CPU on which a context is scheduled in, or PERF_NONE. */
static int cpu_of_ctx(const struct perf_model *m, int ctx)
{
	return is_task(ctx) ? m->task[ctx - PERF_CPUS].cpu : ctx;
}

int perf_model_cpu_of(const struct perf_model *m, int i)
{
	return cpu_of_ctx(m, m->event[i].ctx);
}

enum vpmu_event_state perf_model_state(const struct perf_model *m, int i)
{
	const struct perf_model_event *e = &m->event[i];
	enum vpmu_event_state leader = m->event[e->leader].state;

	if (leader == VPMU_EVENT_OFF || leader == VPMU_EVENT_ERROR)
		return leader == VPMU_EVENT_OFF && e->state == VPMU_EVENT_ERROR ?
			VPMU_EVENT_ERROR : leader;
	return e->state;
}

enum vpmu_perf_class perf_model_class(const struct perf_model *m, int i)
{
	const struct perf_model_event *leader = &m->event[m->event[i].leader];

	if (leader->attr.event.pinned)
		return is_task(leader->ctx) ? VPMU_TASK_PINNED : VPMU_CPU_PINNED;
	return is_task(leader->ctx) ? VPMU_TASK_FLEXIBLE : VPMU_CPU_FLEXIBLE;
}

/* A guest whose counters are its own runs on this CPU. */
static bool mediated_guest(const struct perf_model *m, int cpu)
{
	return m->cpu[cpu].guest && m->task[m->cpu[cpu].task].policy == PERF_MEDIATED;
}

bool perf_model_matches(const struct perf_model *m, int i, int cpu)
{
	const struct perf_model_event *e = &m->event[m->event[i].leader];

	if (is_task(e->ctx) && e->attr.cpu >= 0 && e->attr.cpu != cpu)
		return false;
	if (e->guests && m->task[e->ctx - PERF_CPUS].policy == PERF_MEDIATED)
		return m->cpu[cpu].guest;
	return !mediated_guest(m, cpu);
}

/* Resources ------------------------------------------------------------------- */

static bool find_counter(const struct perf_model *m, int i, int owner[SLOTS], bool seen[SLOTS])
{
	int s;

	for (s = 0; s < SLOTS; s++) {
		if (!(m->event[i].allowed >> s & 1) || seen[s])
			continue;
		seen[s] = true;
		if (owner[s] == PERF_NONE || find_counter(m, owner[s], owner, seen)) {
			owner[s] = i;
			return true;
		}
	}
	return false;
}

/* Two events cannot have @shared at once. */
static bool clash(const struct vpmu_event_attr *a, const struct vpmu_event_attr *b)
{
	return a->extra != b->extra || a->extra == VPMU_SHARED_ALONE;
}

static bool shared_fits(const struct perf_model *m, const bool set[PERF_EVENTS],
			enum vpmu_shared shared)
{
	int i, k, settings = 0;

	for (i = 0; i < PERF_EVENTS; i++) {
		const struct vpmu_event_attr *a = &m->event[i].attr.event;
		bool another = true;

		if (!set[i] || a->shared != shared)
			continue;
		for (k = 0; k < i; k++)
			if (set[k] && m->event[k].attr.event.shared == shared &&
			    !clash(a, &m->event[k].attr.event))
				another = false;
		settings += another;
	}
	return settings <= (shared == VPMU_SHARED_OFFCORE_RSP ? 2 : 1);
}

bool perf_model_fits(const struct perf_model *m, const bool set[PERF_EVENTS])
{
	int owner[SLOTS], i, s;

	for (s = 0; s < SLOTS; s++)
		owner[s] = PERF_NONE;
	for (i = 0; i < PERF_EVENTS; i++) {
		bool seen[SLOTS] = { false };

		if (set[i] && !m->event[i].attr.event.no_counter &&
		    !find_counter(m, i, owner, seen))
			return false;
	}
	for (s = VPMU_SHARED_NONE + 1; s < VPMU_SHARED_COUNT; s++)
		if (!shared_fits(m, set, (enum vpmu_shared)s))
			return false;
	return true;
}

/* Scheduling ------------------------------------------------------------------ */

static bool in_context(const struct perf_model *m, int i, int ctx)
{
	return m->event[i].open && m->event[i].ctx == ctx;
}

static bool leads(const struct perf_model *m, int i)
{
	return m->event[i].open && m->event[i].leader == i;
}

/* Everything that counts on @cpu. */
static int active_on(const struct perf_model *m, int cpu, bool set[PERF_EVENTS])
{
	int i, n = 0;

	for (i = 0; i < PERF_EVENTS; i++) {
		set[i] = m->event[i].open && m->event[i].state == VPMU_EVENT_ACTIVE &&
			 perf_model_cpu_of(m, i) == cpu;
		n += set[i];
	}
	return n;
}

static bool group_try(struct perf_model *m, int cpu, int leader)
{
	bool set[PERF_EVENTS];
	int others = active_on(m, cpu, set), i;

	if (others && m->event[leader].attr.exclusive)
		return false;
	for (i = 0; i < PERF_EVENTS; i++)
		if (set[i] && leads(m, i) && m->event[i].attr.exclusive)
			return false;
	for (i = 0; i < PERF_EVENTS; i++)
		if (m->event[i].open && m->event[i].leader == leader &&
		    m->event[i].state != VPMU_EVENT_OFF)
			set[i] = true;
	if (!perf_model_fits(m, set))
		return false;
	for (i = 0; i < PERF_EVENTS; i++)
		if (set[i])
			m->event[i].state = VPMU_EVENT_ACTIVE;
	return true;
}

static int ctx_of_class(const struct perf_model *m, int cpu, enum vpmu_perf_class class)
{
	if (class == VPMU_CPU_PINNED || class == VPMU_CPU_FLEXIBLE)
		return cpu;
	return m->cpu[cpu].task == PERF_NONE ? PERF_NONE : PERF_CPUS + m->cpu[cpu].task;
}

/* The group of a class that comes next after age @after, or PERF_NONE. */
static int next_group(const struct perf_model *m, int cpu, enum vpmu_perf_class class,
		      uint64_t after)
{
	int ctx = ctx_of_class(m, cpu, class), i, best = PERF_NONE;

	for (i = 0; ctx != PERF_NONE && i < PERF_EVENTS; i++) {
		if (!in_context(m, i, ctx) || !leads(m, i) || perf_model_class(m, i) != class)
			continue;
		if (m->event[i].age > after &&
		    (best == PERF_NONE || m->event[i].age < m->event[best].age))
			best = i;
	}
	return best;
}

static void start_timer(struct perf_model *m, int cpu)
{
	if (!m->mux_cycles || m->cpu[cpu].timer)
		return;
	m->cpu[cpu].timer = true;
	m->cpu[cpu].timer_at = m->cpu[cpu].clock + m->mux_cycles;
}

static void class_in(struct perf_model *m, int cpu, enum vpmu_perf_class class)
{
	bool can_add = true;
	uint64_t after = 0;
	int g;

	while ((g = next_group(m, cpu, class, after)) != PERF_NONE) {
		struct perf_model_event *e = &m->event[g];

		after = e->age;
		if (e->state != VPMU_EVENT_INACTIVE || !perf_model_matches(m, g, cpu))
			continue;
		if (can_add && group_try(m, cpu, g))
			continue;
		can_add = false;
		if (e->attr.event.pinned) {
			e->state = VPMU_EVENT_ERROR;
		} else {
			m->rotate[e->ctx] = true;
			start_timer(m, cpu);
		}
	}
}

static void class_out(struct perf_model *m, int cpu, enum vpmu_perf_class class)
{
	int ctx = ctx_of_class(m, cpu, class), i;

	if (ctx == PERF_NONE)
		return;
	for (i = 0; i < PERF_EVENTS; i++)
		if (in_context(m, i, ctx) && perf_model_class(m, i) == class &&
		    m->event[i].state == VPMU_EVENT_ACTIVE)
			m->event[i].state = VPMU_EVENT_INACTIVE;
	if (class == VPMU_CPU_FLEXIBLE || class == VPMU_TASK_FLEXIBLE)
		m->rotate[ctx] = false;
}

static void schedule(struct perf_model *m, int cpu, uint32_t classes)
{
	int c;

	m->cpu[cpu].passes++;
	for (c = 0; c < VPMU_PERF_CLASSES; c++)
		if (classes & CLASS_BIT(c))
			class_out(m, cpu, (enum vpmu_perf_class)c);
	for (c = 0; c < VPMU_PERF_CLASSES; c++)
		if (classes & CLASS_BIT(c))
			class_in(m, cpu, (enum vpmu_perf_class)c);
}

/* Reschedule after an install or enable of a class. */
static void reschedule(struct perf_model *m, int i)
{
	static const uint32_t classes[VPMU_PERF_CLASSES] = {
		[VPMU_CPU_PINNED] = ALL_CLASSES,
		[VPMU_TASK_PINNED] = ALL_CLASSES & ~CLASS_BIT(VPMU_CPU_PINNED),
		[VPMU_CPU_FLEXIBLE] = CLASS_BIT(VPMU_CPU_FLEXIBLE) |
				      CLASS_BIT(VPMU_TASK_FLEXIBLE),
		[VPMU_TASK_FLEXIBLE] = CLASS_BIT(VPMU_TASK_FLEXIBLE),
	};
	int cpu = perf_model_cpu_of(m, i);

	if (cpu == PERF_NONE)
		return;
	if (m->cpu[cpu].batch)
		m->cpu[cpu].resched |= classes[perf_model_class(m, i)];
	else
		schedule(m, cpu, classes[perf_model_class(m, i)]);
}

void perf_model_begin(struct perf_model *m, int cpu)
{
	m->cpu[cpu].batch++;
}

void perf_model_commit(struct perf_model *m, int cpu)
{
	uint32_t classes = m->cpu[cpu].resched;

	if (--m->cpu[cpu].batch)
		return;
	m->cpu[cpu].resched = 0;
	if (classes)
		schedule(m, cpu, classes);
}

void perf_model_sched_in(struct perf_model *m, int cpu, int task)
{
	uint32_t classes = CLASS_BIT(VPMU_TASK_PINNED) | CLASS_BIT(VPMU_TASK_FLEXIBLE);
	int i;

	m->cpu[cpu].task = task;
	m->task[task].cpu = cpu;
	for (i = 0; i < PERF_EVENTS; i++)
		if (in_context(m, i, PERF_CPUS + task) && leads(m, i) &&
		    m->event[i].attr.event.pinned)
			classes |= CLASS_BIT(VPMU_CPU_FLEXIBLE);
	schedule(m, cpu, classes);
}

void perf_model_sched_out(struct perf_model *m, int cpu)
{
	class_out(m, cpu, VPMU_TASK_PINNED);
	class_out(m, cpu, VPMU_TASK_FLEXIBLE);
	m->task[m->cpu[cpu].task].cpu = PERF_NONE;
	m->cpu[cpu].task = PERF_NONE;
}

/* Entering and leaving, everything goes out, and what matches then comes in. */
void perf_model_guest(struct perf_model *m, int cpu, bool entered)
{
	m->cpu[cpu].guest = entered;
	if (m->task[m->cpu[cpu].task].policy == PERF_MEDIATED)
		schedule(m, cpu, ALL_CLASSES);
}

/* Multiplexing ---------------------------------------------------------------- */

/* The first active group of a flexible list, else the first that could be, goes last. */
static bool rotate(struct perf_model *m, int cpu, enum vpmu_perf_class class)
{
	int g, first = PERF_NONE, first_active = PERF_NONE;
	uint64_t after = 0;

	while ((g = next_group(m, cpu, class, after)) != PERF_NONE) {
		after = m->event[g].age;
		if (m->event[g].state == VPMU_EVENT_ACTIVE && first_active == PERF_NONE)
			first_active = g;
		if (m->event[g].state == VPMU_EVENT_INACTIVE && first == PERF_NONE &&
		    perf_model_matches(m, g, cpu))
			first = g;
	}
	if (first_active != PERF_NONE)
		first = first_active;
	if (first != PERF_NONE)
		m->event[first].age = ++m->next;
	return first != PERF_NONE;
}

static void tick(struct perf_model *m, int cpu)
{
	int task = ctx_of_class(m, cpu, VPMU_TASK_FLEXIBLE);
	bool cpu_rotates = false, task_rotates = false;

	if (m->rotate[cpu])
		cpu_rotates = rotate(m, cpu, VPMU_CPU_FLEXIBLE);
	m->rotate[cpu] = false;
	if (task != PERF_NONE && m->rotate[task])
		task_rotates = rotate(m, cpu, VPMU_TASK_FLEXIBLE);
	if (task != PERF_NONE)
		m->rotate[task] = false;
	m->cpu[cpu].timer = cpu_rotates || task_rotates;
	if (!m->cpu[cpu].timer)
		return;
	m->cpu[cpu].timer_at = m->cpu[cpu].clock + m->mux_cycles;
	schedule(m, cpu, CLASS_BIT(VPMU_TASK_FLEXIBLE) |
			 (cpu_rotates ? CLASS_BIT(VPMU_CPU_FLEXIBLE) : 0));
}

/* The clock runs for some event's time, or because a vCPU holds it. */
static bool clock_goes(const struct perf_model *m, int cpu, bool held)
{
	int i;

	for (i = 0; i < PERF_EVENTS; i++)
		if (m->event[i].open && perf_model_cpu_of(m, i) == cpu &&
		    (m->event[i].state == VPMU_EVENT_ACTIVE ||
		     m->event[i].state == VPMU_EVENT_INACTIVE))
			return true;
	return held && m->cpu[cpu].task > 0;
}

void perf_model_idle(struct perf_model *m, int cpu, bool held)
{
	int task = ctx_of_class(m, cpu, VPMU_TASK_FLEXIBLE);

	if (m->cpu[cpu].batch)
		return;
	if (!clock_goes(m, cpu, held))
		m->cpu[cpu].timer = false;
	else if (m->rotate[cpu] || (task != PERF_NONE && m->rotate[task]))
		start_timer(m, cpu);
}

/* Counting -------------------------------------------------------------------- */

static void occur(struct perf_model_event *e, int64_t n)
{
	e->count += (uint64_t)n;
	if (!e->armed)
		return;
	e->left -= n;
	if (e->left > 0)
		return;
	e->overflows++;
	while (e->left <= 0)
		e->left += (int64_t)e->attr.event.period;
}

/* Time in which a mediated guest runs exists for it alone. */
static void time_passes(struct perf_model *m, int i, int cpu)
{
	struct perf_model_event *e = &m->event[i];
	enum vpmu_event_state state = perf_model_state(m, i);

	if (e->guests ? !m->cpu[cpu].guest : mediated_guest(m, cpu))
		return;
	if (state == VPMU_EVENT_ACTIVE)
		e->running++;
	if (state == VPMU_EVENT_ACTIVE || state == VPMU_EVENT_INACTIVE)
		e->enabled++;
}

void perf_model_retire(struct perf_model *m, int cpu, enum vpmu_bank bank,
		       enum vpmu_signal kind)
{
	uint64_t happened = VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS) |
			    VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES);
	bool guest = m->cpu[cpu].guest;
	int i, s;

	if (kind != VPMU_SIGNAL_INSTRUCTIONS)
		happened |= VPMU_SIGNAL_BIT(VPMU_SIGNAL_BRANCHES) | VPMU_SIGNAL_BIT(kind);
	m->cpu[cpu].clock++;
	if (guest)
		m->task[m->cpu[cpu].task].guest_time++;
	for (i = 0; i < PERF_EVENTS; i++) {
		struct perf_model_event *e = &m->event[i];
		int64_t n = 0;

		if (!e->open || perf_model_cpu_of(m, i) != cpu)
			continue;
		time_passes(m, i, cpu);
		if (perf_model_state(m, i) != VPMU_EVENT_ACTIVE)
			continue;
		if (guest ? e->attr.exclude_guest : e->attr.exclude_host)
			continue;
		if (!(e->attr.event.banks >> bank & 1))
			continue;
		for (s = 0; s < VPMU_SIGNAL_COUNT; s++)
			n += (e->signals & happened) >> s & 1;
		if (n)
			occur(e, n);
	}
	if (m->cpu[cpu].timer && m->cpu[cpu].clock >= m->cpu[cpu].timer_at)
		tick(m, cpu);
}

/* Events ---------------------------------------------------------------------- */

static const struct vpmu_event_def *find_row(const struct perf_model *m,
					     const struct vpmu_event_attr *a)
{
	int i;

	for (i = 0; i < m->model->n_events; i++) {
		const struct vpmu_event_def *def = &m->model->events[i];

		if (a->fixed >= 0 ? def->fixed == a->fixed :
		    def->select == (a->select & 0xff) && def->umask == (a->select >> 8 & 0xff))
			return def;
	}
	return NULL;
}

/* Each instruction has one. */
static bool is_slots(const struct vpmu_event_def *def)
{
	return def->select == 0xa4 && def->umask == 1;
}

/* The signals and banks of an event; false if no counter counts it. */
static bool resolve(const struct perf_model *m, struct perf_model_event *e)
{
	const struct vpmu_event_attr *a = &e->attr.event;
	const struct vpmu_event_def *def;
	uint64_t cmask = CMASK(a->select);

	if (a->no_counter)
		return true;
	def = find_row(m, a);
	if (!def || !def->signals || (def->needs && !is_slots(def)))
		return false;
	e->signals = is_slots(def) ? VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES) : def->signals;
	e->allowed = def->gp_mask;
	if (a->fixed >= 0) {
		e->allowed |= 1u << (m->model->n_gp + def->fixed);
		return true;
	}
	if (!def->gp_mask || a->select & EDGE)
		return false;
	if (cmask == 1 && a->select & INVERT)
		return false;
	if (cmask > 1) /* never two at once; always less than two */
		e->signals = a->select & INVERT ? VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES) : 0;
	if (def->fixed >= 0 && !cmask && !(a->select & INVERT))
		e->allowed |= 1u << (m->model->n_gp + def->fixed);
	return true;
}

/* The whole group of @leader, with @i in it, on a PMU of its own. */
static bool group_possible(struct perf_model *m, int i, int leader)
{
	bool set[PERF_EVENTS] = { false };
	int k;

	for (k = 0; k < PERF_EVENTS; k++)
		set[k] = m->event[k].open && m->event[k].leader == leader;
	set[i] = true;
	return perf_model_fits(m, set);
}

static bool any_mediated(const struct perf_model *m)
{
	int t;

	for (t = 0; t < PERF_TASKS; t++)
		if (m->task[t].policy == PERF_MEDIATED)
			return true;
	return false;
}

uint32_t perf_model_open(struct perf_model *m, int i, const struct vpmu_perf_attr *attr,
			 int ctx, int leader, bool guests)
{
	struct perf_model_event *e = &m->event[i];
	uint32_t why = 0;

	memset(e, 0, sizeof(*e));
	e->guests = guests;
	e->attr = *attr;
	e->ctx = ctx;
	e->leader = leader == PERF_NONE ? i : leader;
	if (!resolve(m, e))
		why |= PERF_UNCOUNTED;
	if (guests && m->task[ctx - PERF_CPUS].policy == PERF_MEDIATED &&
	    !attr->event.no_counter)
		e->allowed = 1u << attr->event.slot;
	if (attr->event.no_counter && !attr->event.shared) /* it needs nothing at all */
		why |= PERF_INVALID;
	if (e->leader != i &&
	    (m->event[leader].leader != leader || m->event[leader].ctx != ctx ||
	     attr->event.pinned || attr->exclusive))
		why |= PERF_INVALID;
	if (!(why & PERF_UNCOUNTED) && !group_possible(m, i, e->leader))
		why |= PERF_INVALID;
	if (!guests && !attr->exclude_guest && any_mediated(m))
		why |= PERF_REFUSED;
	if (why)
		return why;

	e->open = true;
	e->age = ++m->next;
	e->order = e->age;
	e->state = attr->disabled ? VPMU_EVENT_OFF : VPMU_EVENT_INACTIVE;
	e->armed = !guests && attr->event.period;
	e->left = (int64_t)attr->event.period;
	if (!attr->disabled && perf_model_state(m, i) != VPMU_EVENT_OFF)
		reschedule(m, i);
	return 0;
}

void perf_model_close(struct perf_model *m, int i)
{
	uint64_t after = 0;
	int k, next;

	m->event[i].open = false;
	do { /* its siblings in their order, each on its own from now on */
		next = PERF_NONE;
		for (k = 0; k < PERF_EVENTS; k++)
			if (m->event[k].open && m->event[k].leader == i &&
			    m->event[k].order > after &&
			    (next == PERF_NONE || m->event[k].order < m->event[next].order))
				next = k;
		if (next != PERF_NONE) {
			after = m->event[next].order;
			m->event[next].leader = next;
			m->event[next].age = ++m->next;
		}
	} while (next != PERF_NONE);
}

void perf_model_enable(struct perf_model *m, int i)
{
	struct perf_model_event *e = &m->event[i];

	if (e->state != VPMU_EVENT_OFF && e->state != VPMU_EVENT_ERROR)
		return;
	e->state = VPMU_EVENT_INACTIVE;
	if (e->leader == i || m->event[e->leader].state == VPMU_EVENT_ACTIVE)
		reschedule(m, i);
}

void perf_model_disable(struct perf_model *m, int i)
{
	int k;

	if (m->event[i].state == VPMU_EVENT_ERROR)
		return;
	for (k = 0; k < PERF_EVENTS; k++)
		if (m->event[k].open && m->event[k].leader == i &&
		    m->event[k].state == VPMU_EVENT_ACTIVE)
			m->event[k].state = VPMU_EVENT_INACTIVE;
	m->event[i].state = VPMU_EVENT_OFF;
}

void perf_model_arm(struct perf_model *m, int i, uint64_t left)
{
	if (!m->event[i].attr.event.period)
		return;
	m->event[i].armed = true;
	m->event[i].left = (int64_t)left;
}

bool perf_model_vcpu_init(struct perf_model *m, int task, enum perf_policy policy)
{
	int i;

	for (i = 0; i < PERF_EVENTS; i++)
		if (policy == PERF_MEDIATED && m->event[i].open && !m->event[i].guests &&
		    !m->event[i].attr.exclude_guest)
			return false;
	m->task[task].policy = policy;
	m->task[task].guest_time = 0;
	m->rotate[PERF_CPUS + task] = false;
	return true;
}

void perf_model_vcpu_fini(struct perf_model *m, int task)
{
	m->task[task].policy = PERF_PLAIN;
}
