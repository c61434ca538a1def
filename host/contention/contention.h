/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Contention of a host and a guest for the same counter: scenarios that run the library
 * on the scripted engine, and their outcomes. Nothing here is a table of outcomes.
 *
 * A cell is one incumbent class against one newcomer class for one resource under one
 * policy. A case is a scenario with a name. docs/CONTENTION.md describes both.
 */
#ifndef VPMU_CONTENTION_H
#define VPMU_CONTENTION_H

#include <vpmu/vcpu.h>

enum contention_resource {
	CONTENTION_GP,      /* an event that fits all GP counters; all are taken */
	CONTENTION_FIXED,   /* an event that fits only a fixed counter, which is taken */
	/* An event that fits fixed counter 0 and GP counters; the fixed one is taken. */
	CONTENTION_MOVABLE,
	CONTENTION_LBR,     /* the branch records */
	CONTENTION_METRICS, /* PERF_METRICS, with the slots counter */
	CONTENTION_RESOURCES
};

/* An occasion on which the loser may get the resource. */
enum contention_trigger {
	CONTENTION_RELEASE, /* only the winner's release */
	CONTENTION_TIMER,   /* the multiplexing timer, as often as there are events */
	CONTENTION_SWITCH,  /* the task is switched out and in */
	CONTENTION_ENABLE,  /* the loser is disabled and enabled */
	CONTENTION_CREATE,  /* the loser is closed and opened again */
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
	/*
	 * State right after the newcomer was opened; in guest mode if one side is the
	 * guest's.
	 */
	struct contention_side incumbent, newcomer;
	enum contention_loser loser;
	/* Loser came back while the winner stayed: 1, 0; -1: not tried. */
	int8_t held[CONTENTION_TRIGGERS];
	int8_t released[CONTENTION_TRIGGERS]; /* loser came back after the winner's release */

	/* Mediated: both sides, and with host events that count guests. */
	struct contention_side incumbent_host, newcomer_host;   /* in host mode */
	struct contention_side incumbent_guest, newcomer_guest; /* in guest mode */
	/*
	 * Counting guests: -VPMU_EBUSY: the VM is refused; -VPMU_EOPNOTSUPP: the event is
	 * refused; 0: the side is the guest's.
	 */
	int incumbent_error;
	int newcomer_error;
};

#define CONTENTION_STEPS 128
#define CONTENTION_VALUES 32

/* The steps of a scenario, and the state after each. */
struct contention_log {
	unsigned int n;
	/*
	 * Number of a cell's steps before the first trigger; each trigger starts again
	 * from there.
	 */
	unsigned int base;
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
	const char *source; /* source of the expectation */
	/* Linux's behaviour if it differs, with the function responsible; or NULL. */
	const char *kernel;
	void (*run)(struct contention_world *w);
	enum vpmu_policy policy;
};

/* The behaviour of a real kernel in a case. */
struct contention_measured {
	const char *id;      /* the case */
	const char *kernels; /* versions of the kernels, between spaces */
	const char *result;  /* "KEY: VALUE; KEY: VALUE", keys as in the case's result */
};

/** Names for input and output: "shared", "gp", "CP", "timer", "error". */
const char *contention_policy_name(enum vpmu_policy policy);
const char *contention_resource_name(enum contention_resource resource);
const char *contention_class_name(enum vpmu_perf_class class);
const char *contention_trigger_name(enum contention_trigger trigger);
const char *contention_state_name(enum contention_state state);
const char *contention_loser_name(enum contention_loser loser);

/** Find the cell of a name such as shared/gp/CP/TP. Returns false if there is none. */
bool contention_cell_find(const char *name, struct contention_cell_id *id);

/** Its name, of at most CONTENTION_NAME - 1 characters. */
#define CONTENTION_NAME 40
void contention_cell_name(const struct contention_cell_id *id, char name[CONTENTION_NAME]);

/** Linux's behaviour if it differs, with the function responsible; or NULL. */
const char *contention_cell_kernel(const struct contention_cell_id *id);

/**
 * Run a cell: once for the outcome, and once for each trigger.
 *
 * @log: filled, or NULL
 *
 * Returns NULL, or the contract that the library broke; a static string.
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
