/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * lib/perf on scripted engines and its model side by side: a sequence of what
 * happens to a host's events is run on both, and states, counts, overflows and
 * times are compared, with what must be true of any scheduler.
 */
#ifndef PERF_PAIR_H
#define PERF_PAIR_H

#include <stdio.h>

#include "perf_model.h"

enum perf_op_kind {
	PERF_OPEN,      /* ev, ctx, leader, flags, and what is to be counted */
	PERF_CREATE,    /* create a guest's event, of vCPU ctx */
	PERF_CLOSE,     /* ev; a guest's are released */
	PERF_ENABLE,    /* ev */
	PERF_DISABLE,   /* ev */
	PERF_ARM,       /* ev, value: distance */
	PERF_READ,      /* everything */
	PERF_BEGIN,     /* cpu */
	PERF_COMMIT,    /* cpu */
	PERF_SCHED_IN,  /* cpu, ctx: the task's context */
	PERF_SCHED_OUT, /* cpu */
	PERF_ENTER,     /* cpu: its vCPU enters guest mode */
	PERF_EXIT,      /* cpu */
	PERF_RETIRE,    /* cpu, bank, n instructions of the kinds in value's digits */
	PERF_INIT,      /* ctx: a vCPU's, policy */
	PERF_FINI,      /* ctx: a vCPU's */
	PERF_OP_KINDS
};

#define PERF_PINNED		0x01u
#define PERF_DISABLED		0x02u
#define PERF_EXCLUSIVE		0x04u
#define PERF_EXCLUDE_HOST	0x08u
#define PERF_EXCLUDE_GUEST	0x10u
#define PERF_NO_COUNTER		0x20u

/* An operation that is not possible at its place in a sequence is skipped. */
struct perf_op {
	uint8_t kind;
	uint8_t ev, cpu, ctx;
	int8_t leader;     /* number of an event, or PERF_NONE */
	uint8_t flags;
	uint8_t banks;
	uint8_t shared;
	int8_t fixed, slot;
	int8_t only;       /* attr.cpu */
	uint8_t policy;
	uint8_t bank;
	uint8_t n;
	uint64_t select, extra, value;
};

#define PERF_ROWS 6

struct perf_config {
	bool real;          /* icelake-server; else what follows */
	uint8_t n_gp, n_fixed;
	struct {
		uint16_t gp_mask;
		int8_t fixed;
		uint64_t signals;
	} row[PERF_ROWS];   /* event select PERF_SELECT + number */
	uint8_t n_cpus;
	bool lazy;          /* compare numbers only at PERF_READ and at the end */
	bool hold;          /* the vCPUs' clocks */
	uint8_t policy[PERF_TASKS];
	uint16_t mux_cycles;
};

#define PERF_SELECT 0x10u

struct perf_failure {
	size_t op;
	char text[256];
};

bool perf_pair_run(const struct perf_config *cfg, const struct perf_op *op, size_t n,
		   struct perf_failure *f);
size_t perf_pair_shrink(const struct perf_config *cfg, struct perf_op *op, size_t n);
void perf_pair_print(FILE *to, const struct perf_config *cfg, const struct perf_op *op,
		     size_t n);

/* Sequences out of random numbers, or of a fuzzer's bytes. */
struct perf_source {
	uint64_t seed;       /* state of the generator, if data is NULL */
	const uint8_t *data; /* a fuzzer's bytes; zeros follow them */
	size_t size;

	/* The state that the operations so far should have produced. */
	bool open[PERF_EVENTS];
	int leader[PERF_EVENTS];
	uint8_t ctx[PERF_EVENTS];
	int task[PERF_CPUS];
	bool guest[PERF_CPUS];
	int batch[PERF_CPUS];
	uint8_t policy[PERF_TASKS];
};

void perf_source_config(struct perf_source *s, struct perf_config *cfg);
void perf_source_op(struct perf_source *s, const struct perf_config *cfg,
		    struct perf_op *op);

#endif /* PERF_PAIR_H */
