// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The cells: runs each class of event against each other one, for each resource
 * and policy, and tries what brings the loser back.
 */
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

/* One cell's world, with its two sides. */
struct cell_run {
	struct contention_world w;
	struct actor incumbent, newcomer;
};

/* Arrival -------------------------------------------------------------------- */

static const char *const titles[] = {
	[VPMU_CPU_PINNED] = "CPU-pinned",
	[VPMU_TASK_PINNED] = "task-pinned",
	[VPMU_CPU_FLEXIBLE] = "CPU-flexible",
	[VPMU_TASK_FLEXIBLE] = "task-flexible",
};

static void arrive(struct contention_world *w, struct actor *a)
{
	const char *s = a->n == 1 ? "" : "s";
	char number[16] = "a";

	if (a->n > 1)
		snprintf(number, sizeof(number), "%u", a->n);
	if (a->kind == ACTOR_HOST && w->policy == VPMU_POLICY_DIRECT) {
		if (w->n_actors < WORLD_ACTORS)
			w->actor[w->n_actors++] = a;
		world_log(w, "%s: the host would open %s %s event%s, and has no perf", a->name,
			  number, titles[a->class], s);
		return;
	}
	world_open(w, a);
	if (a->kind == ACTOR_HOST)
		world_log(w, "%s: the host opens %s %s event%s", a->name, number,
			  titles[a->class], s);
	else if (a->kind == ACTOR_COUNTER)
		world_log(w, "%s: the guest enables %s counter%s", a->name, number, s);
	else
		world_log(w, "%s: the guest turns the facility on", a->name);
}

/*
 * TP is also the guest's class, since its counter is a task-pinned event of its vCPU's
 * thread; for TP against TP the incumbent is such an event that the host opened.
 */
static void make_side(struct actor *a, const char *name, enum vpmu_perf_class class,
		      const struct contention_cell_id *id, unsigned int n, bool guest)
{
	if (!guest)
		actor_host(a, name, class, id->resource, n);
	else if (id->resource == CONTENTION_LBR || id->resource == CONTENTION_METRICS)
		actor_facility(a, name, id->resource);
	else
		actor_counter(a, name, id->resource, n);
	a->attr.exclude_guest = id->policy == VPMU_POLICY_MEDIATED && !guest;
}

/* Is one of the sides the guest's? */
static bool involves_guest(const struct contention_cell_id *id)
{
	return id->incumbent == VPMU_TASK_PINNED || id->newcomer == VPMU_TASK_PINNED;
}

const char *contention_cell_kernel(const struct contention_cell_id *id)
{
	if (id->policy == VPMU_POLICY_DIRECT || !involves_guest(id))
		return NULL;
	if (id->resource == CONTENTION_METRICS)
		return "KVM offers its guests no PERF_METRICS";
	if (id->resource != CONTENTION_LBR)
		return NULL;
	if (id->policy == VPMU_POLICY_MEDIATED)
		return "KVM offers no branch records with a mediated vPMU";
	return "both are active: the guest's needs nothing but the fake counter 58 "
	       "(intel_vlbr_constraints()), and the host's records stay empty "
	       "(vlbr_exclude_host())";
}

static void make_sides(struct cell_run *r, const struct contention_cell_id *id)
{
	bool guest = id->newcomer == VPMU_TASK_PINNED;
	unsigned int n = id->resource == CONTENTION_GP ? 8 : 1;

	make_side(&r->newcomer, "newcomer", id->newcomer, id, 1, guest);
	make_side(&r->incumbent, "incumbent", id->incumbent, id, n,
		  !guest && id->incumbent == VPMU_TASK_PINNED);
}

static bool has_guest(const struct cell_run *r)
{
	return r->incumbent.kind != ACTOR_HOST || r->newcomer.kind != ACTOR_HOST;
}

/* Open both sides; the steps are logged if @log. */
static void start(struct cell_run *r, const struct contention_cell_id *id,
		  struct contention_log *log)
{
	struct contention_world *w = &r->w;

	w->log = log;
	world_init(w, id->policy);
	make_sides(r, id);
	world_create_vcpu(w);
	world_load(w, 0);
	world_guest(w, has_guest(r));
	arrive(w, &r->incumbent);
	arrive(w, &r->newcomer);
}

/* Triggers ------------------------------------------------------------------- */

struct cell_loser {
	struct actor *actor, *winner;
	unsigned int i;
};

static bool is_back(const struct cell_run *r, const struct cell_loser *l)
{
	return actor_state(&r->w, l->actor, l->i) == CONTENTION_ACTIVE;
}

/* Flexible events take turns: each gets one within twice as many as there are. */
static unsigned int wait_turns(struct cell_run *r, const struct cell_loser *l)
{
	unsigned int turns, most = 2 * (r->incumbent.n + r->newcomer.n);

	for (turns = 1; turns <= most; turns++) {
		world_run(&r->w, WORLD_MUX);
		if (is_back(r, l))
			break;
	}
	return turns <= most ? turns : most;
}

static void log_trigger(struct cell_run *r, const struct cell_loser *l, const char *when,
			const char *what)
{
	world_log(&r->w, "%s: %s: %s", when, what, is_back(r, l) ? "it is back" : "not back");
}

static void pull_trigger(struct cell_run *r, const struct cell_loser *l,
			 enum contention_trigger trigger, const char *when)
{
	struct contention_world *w = &r->w;
	char text[64];
	unsigned int turns;

	switch (trigger) {
	case CONTENTION_RELEASE:
		log_trigger(r, l, when, "nothing else happens");
		break;
	case CONTENTION_TIMER:
		turns = wait_turns(r, l);
		snprintf(text, sizeof(text), "%u multiplexing interval%s pass%s", turns,
			 turns == 1 ? "" : "s", turns == 1 ? "es" : "");
		log_trigger(r, l, when, text);
		break;
	case CONTENTION_SWITCH:
		world_put(w);
		world_log(w, "%s: the task is switched out", when);
		world_load(w, 0);
		log_trigger(r, l, when, "the task is switched in");
		break;
	case CONTENTION_ENABLE:
		world_disable(w, l->actor, l->i);
		world_enable(w, l->actor, l->i);
		log_trigger(r, l, when, "the loser is disabled and enabled");
		break;
	case CONTENTION_CREATE:
		world_create(w, l->actor, l->i);
		log_trigger(r, l, when, "the loser is closed and opened again");
		break;
	case CONTENTION_EXIT:
		world_guest(w, false);
		log_trigger(r, l, when, "the CPU leaves the guest");
		break;
	case CONTENTION_TRIGGERS:
		break;
	}
}

static const char *try_trigger(struct cell_run *r, const struct contention_cell_id *id,
			       bool released, enum contention_trigger trigger,
			       const struct cell_loser *l, struct contention_log *log,
			       int8_t *back)
{
	start(r, id, NULL);
	r->w.log = log;
	if (released)
		world_close(&r->w, l->winner);
	pull_trigger(r, l, trigger, released ? "after the winner's release" :
					       "while the winner stays");
	*back = is_back(r, l);
	world_fini(&r->w);
	return r->w.broken;
}

static const char *try_triggers(struct cell_run *r, const struct contention_cell_id *id,
				const struct cell_loser *l, struct contention_log *log,
				struct contention_cell *cell)
{
	const char *broken = NULL;
	unsigned int t;

	for (t = CONTENTION_TIMER; t < CONTENTION_TRIGGERS && !broken; t++) {
		if (t == CONTENTION_EXIT && (id->policy != VPMU_POLICY_MEDIATED || !has_guest(r)))
			continue;
		broken = try_trigger(r, id, false, t, l, log, &cell->held[t]);
	}
	for (t = 0; t < CONTENTION_TRIGGERS && !broken && l->winner; t++) {
		if (cell->held[t] < 0 && t != CONTENTION_RELEASE)
			continue;
		broken = try_trigger(r, id, true, t, l, log, &cell->released[t]);
	}
	return broken;
}

/* Outcome -------------------------------------------------------------------- */

static bool lost(const struct contention_side *side)
{
	return side->count[CONTENTION_INACTIVE] || side->count[CONTENTION_ERROR] ||
	       side->count[CONTENTION_OFF];
}

static enum contention_loser who_lost(const struct contention_cell *cell)
{
	if (lost(&cell->incumbent))
		return lost(&cell->newcomer) ? CONTENTION_BOTH : CONTENTION_INCUMBENT;
	return lost(&cell->newcomer) ? CONTENTION_NEWCOMER : CONTENTION_NOBODY;
}

static void find_loser(struct cell_run *r, enum contention_loser who, struct cell_loser *l)
{
	memset(l, 0, sizeof(*l));
	l->actor = &r->newcomer;
	if (who == CONTENTION_NEWCOMER)
		l->winner = &r->incumbent;
	if (who != CONTENTION_INCUMBENT)
		return;
	l->actor = &r->incumbent;
	l->winner = &r->newcomer;
	while (actor_state(&r->w, l->actor, l->i) == CONTENTION_ACTIVE)
		l->i++;
}

/* Mediated: the outcome differs between host mode and guest mode. */
static void look_at_modes(struct cell_run *r, struct contention_cell *cell)
{
	world_guest(&r->w, true);
	actor_side(&r->w, &r->incumbent, &cell->incumbent_guest);
	actor_side(&r->w, &r->newcomer, &cell->newcomer_guest);
	if (!has_guest(r))
		world_log(&r->w, "the CPU enters the guest");
	world_guest(&r->w, false);
	actor_side(&r->w, &r->incumbent, &cell->incumbent_host);
	actor_side(&r->w, &r->newcomer, &cell->newcomer_host);
	world_log(&r->w, "the CPU leaves the guest");
}

/* Open one host event that counts guests, before the VM or after it. */
static const char *try_counting_guests(struct cell_run *r, struct actor *a, bool first,
				       struct contention_log *log, int *error)
{
	struct contention_world *w = &r->w;

	if (a->kind != ACTOR_HOST)
		return NULL;
	w->log = log;
	world_init(w, VPMU_POLICY_MEDIATED);
	a->attr.exclude_guest = false;
	if (!first)
		world_create_vcpu(w);
	*error = world_open(w, a);
	world_log(w, "were it to count guests: the host opens the %s", a->name);
	if (first)
		*error = world_create_vcpu(w);
	world_fini(w);
	return w->broken;
}

static const char *counting_guests(struct cell_run *r, const struct contention_cell_id *id,
				   struct contention_log *log, struct contention_cell *cell)
{
	bool first = id->incumbent == VPMU_CPU_PINNED || id->incumbent == VPMU_CPU_FLEXIBLE;
	const char *broken;

	make_sides(r, id);
	broken = try_counting_guests(r, &r->incumbent, first, log, &cell->incumbent_error);
	if (broken)
		return broken;
	make_sides(r, id);
	return try_counting_guests(r, &r->newcomer, false, log, &cell->newcomer_error);
}

const char *contention_cell_run(const struct contention_cell_id *id,
				struct contention_cell *cell, struct contention_log *log)
{
	struct cell_run *r = calloc(1, sizeof(*r));
	const char *broken;
	struct cell_loser l;

	if (!r)
		return "no memory";
	memset(cell, 0, sizeof(*cell));
	memset(cell->held, -1, sizeof(cell->held));
	memset(cell->released, -1, sizeof(cell->released));
	cell->id = *id;
	if (log)
		memset(log, 0, sizeof(*log));
	start(r, id, log);
	actor_side(&r->w, &r->incumbent, &cell->incumbent);
	actor_side(&r->w, &r->newcomer, &cell->newcomer);
	cell->loser = who_lost(cell);
	find_loser(r, cell->loser, &l);
	if (id->policy == VPMU_POLICY_MEDIATED)
		look_at_modes(r, cell);
	world_fini(&r->w);
	broken = r->w.broken;
	if (log)
		log->base = log->n;
	if (!broken && cell->loser != CONTENTION_NOBODY)
		broken = try_triggers(r, id, &l, log, cell);
	if (!broken && id->policy == VPMU_POLICY_MEDIATED)
		broken = counting_guests(r, id, log, cell);
	free(r);
	return broken;
}
