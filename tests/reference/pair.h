/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The library and the reference model side by side: one sequence of guest
 * operations is run on both, and everything that a guest could notice is compared.
 */
#ifndef PAIR_H
#define PAIR_H

#include <stdio.h>

#include <vpmu/model.h>

#include "reference.h"

enum pair_kind {
	PAIR_WRMSR,   /* reg, value */
	PAIR_RDMSR,   /* reg */
	PAIR_RDPMC,   /* reg, bank */
	PAIR_CPUID,   /* reg: leaf; value: sub-leaf */
	PAIR_RUN,     /* count instructions, the kinds taken from value's digits; bank */
	PAIR_SMM,     /* into system management mode, or out of it */
	PAIR_RESET,
	PAIR_INIT,
	PAIR_MIGRATE, /* save, load into another instance on another engine */
	PAIR_COMPARE, /* every register */
	PAIR_KINDS
};

struct pair_op {
	uint8_t kind;   /* enum pair_kind */
	uint8_t bank;   /* enum ref_bank */
	uint16_t count;
	uint32_t reg;
	uint64_t value;
};

struct pair_config {
	const struct vpmu_model *model; /* an Intel CPU's model */
	uint8_t version, n_gp, n_fixed;
	uint64_t capabilities;
};

struct pair_failure {
	size_t op;      /* index of the operation after which they differ */
	char text[256]; /* description of the difference */
};

/**
 * Run @n operations. Returns true when both agree, false with @f filled.
 */
bool pair_run(const struct pair_config *cfg, const struct pair_op *op, size_t n,
	      struct pair_failure *f);

/** Leave out of a failing sequence what is not needed; returns its new length. */
size_t pair_shrink(const struct pair_config *cfg, struct pair_op *op, size_t n);

/** Print a sequence, one operation on a line. */
void pair_print(FILE *to, const struct pair_config *cfg, const struct pair_op *op, size_t n);

#endif /* PAIR_H */
