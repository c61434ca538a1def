/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who gets what when a host and a guest want the same counter: scenarios that run
 * the library on the scripted engine, and what came of them. Nothing here is a
 * table of outcomes.
 *
 * A cell is one incumbent class against one newcomer class for one resource under
 * one policy. A case is a scenario with a name. docs/CONTENTION.md describes both.
 */
#ifndef VPMU_CONTENTION_H
#define VPMU_CONTENTION_H

#include <vpmu/vcpu.h>

enum contention_resource {
	CONTENTION_GP,      /* an event that every GP counter counts; all are taken */
	CONTENTION_FIXED,   /* one that only a fixed counter counts; it is taken */
	CONTENTION_MOVABLE, /* one that fixed counter 0 and GP counters count; the fixed
			       one is taken */
	CONTENTION_LBR,     /* the branch records */
	CONTENTION_METRICS, /* PERF_METRICS, with the slots counter */
	CONTENTION_RESOURCES
};

/* What may bring the loser back. */
enum contention_trigger {
	CONTENTION_RELEASE, /* nothing beside the winner's release */
	CONTENTION_TIMER,   /* the multiplexing timer, as often as there are events */
	CONTENTION_SWITCH,  /* the task is switched out and in */
	CONTENTION_ENABLE,  /* the loser is disabled and enabled */
	CONTENTION_CREATE,  /* the loser is closed and opened anew */
	CONTENTION_EXIT,    /* the CPU leaves the guest; mediated only */
	CONTENTION_TRIGGERS
};

/* The worst state of any event of a side; events are counted by it. */
enum contention_state {
	CONTENTION_ACTIVE,
	CONTENTION_INACTIVE,
	CONTENTION_ERROR,
	CONTENTION_OFF,
	CONTENTION_REFUSED, /* could not be opened: contention_side.error */
	CONTENTION_NONE,    /* there are no such events under this policy */
	CONTENTION_STATES
};

struct contention_side {
	bool guest;         /* a counter of the guest's, else an event of the host's */
	unsigned int n;     /* events */
	unsigned int count[CONTENTION_STATES];
	enum contention_state state;
	int error;          /* negative errno value when refused */
};

enum contention_loser {
	CONTENTION_NOBODY,
	CONTENTION_INCUMBENT,
	CONTENTION_NEWCOMER,
	CONTENTION_BOTH,
};

struct contention_cell_id {
	enum vpmu_policy policy;
	enum contention_resource resource;
	enum vpmu_perf_class incumbent, newcomer;
};

struct contention_cell {
	struct contention_cell_id id;
	struct contention_side incumbent, newcomer; /* right after the newcomer came; in
						       guest mode when one is the guest's */
	enum contention_loser loser;
	int8_t held[CONTENTION_TRIGGERS];     /* came back while the winner stayed: 1, 0;
						 -1: not asked */
	int8_t released[CONTENTION_TRIGGERS]; /* ... after the winner's release */

	/* Mediated: both sides, and with host events that count guests. */
	struct contention_side incumbent_host, newcomer_host;   /* in host mode */
	struct contention_side incumbent_guest, newcomer_guest; /* in guest mode */
	int incumbent_error; /* counting guests: -VPMU_EBUSY, the VM is refused;
				-VPMU_EOPNOTSUPP, the event is; 0: it is the guest's */
	int newcomer_error;
};

#define CONTENTION_STEPS 128
#define CONTENTION_VALUES 32

/* What was done, and in what state that left everyone. */
struct contention_log {
	unsigned int n;
	unsigned int base; /* of a cell: steps before the first trigger, each of which
			      begins anew after them */
	struct {
		char done[160];
		char after[200];
	} step[CONTENTION_STEPS];
};

struct contention_result {
	unsigned int n;
	struct {
		char key[32];
		char value[48];
	} row[CONTENTION_VALUES];
};

struct contention_world;

struct contention_case {
	const char *id;
	const char *title;
	const char *source; /* who expects what */
	const char *kernel; /* what Linux does, where it is something else, with the
			       function that does it; or NULL */
	void (*run)(struct contention_world *w);
	enum vpmu_policy policy;
};

/* What a real kernel did in a case. */
struct contention_measured {
	const char *id;      /* the case */
	const char *kernels; /* their versions, between spaces */
	const char *result;  /* "KEY: VALUE; KEY: VALUE", keys as in the case's result */
};

/** Names as they are typed and printed: "shared", "gp", "CP", "timer", "error". */
const char *contention_policy_name(enum vpmu_policy policy);
const char *contention_resource_name(enum contention_resource resource);
const char *contention_class_name(enum vpmu_perf_class class);
const char *contention_trigger_name(enum contention_trigger trigger);
const char *contention_state_name(enum contention_state state);
const char *contention_loser_name(enum contention_loser loser);

/** The cell of a name such as shared/gp/CP/TP. Returns whether there is one. */
bool contention_cell_find(const char *name, struct contention_cell_id *id);

/** Its name, of at most CONTENTION_NAME - 1 characters. */
#define CONTENTION_NAME 40
void contention_cell_name(const struct contention_cell_id *id, char name[CONTENTION_NAME]);

/** What Linux does where it is something else, with the function; or NULL. */
const char *contention_cell_kernel(const struct contention_cell_id *id);

/**
 * Run a cell: once for the outcome, and once for each trigger.
 *
 * @log: filled, or NULL
 *
 * Returns NULL, or what the library did that it must not do; a static string.
 */
const char *contention_cell_run(const struct contention_cell_id *id,
				struct contention_cell *cell, struct contention_log *log);

/** Case number @i, or NULL after the last. */
const struct contention_case *contention_case_at(size_t i);

/** Measurement number @i of KVM in the case @id, or NULL after the last. */
const struct contention_measured *contention_measured_at(const char *id, size_t i);

/** Run a case. @log: filled, or NULL. Returns as contention_cell_run() does. */
const char *contention_case_run(const struct contention_case *c,
				struct contention_result *result,
				struct contention_log *log);

#endif /* VPMU_CONTENTION_H */
