/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* registers.c: names, numbers and fields of a PMU's registers and CPUID leaves. */
#ifndef VPMU_TOOLS_REGISTERS_H
#define VPMU_TOOLS_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The meaning of a field's bits. */
enum field_kind {
	FIELD_FLAG,		/* one bit */
	FIELD_NUMBER,
	FIELD_HEX,
	FIELD_COUNTERS,		/* a bit for each counter */
	FIELD_FIXED,		/* a bit for each fixed counter */
	FIELD_EVENT,		/* event of a selector: the whole value names it */
	FIELD_RINGS,		/* four bits of FIXED_CTR_CTRL, for each fixed counter */
	FIELD_PERCENT,		/* n of 255 */
	FIELD_COUNT,		/* value of a counter */
	FIELD_LESS_ONE,		/* a number, stored less one */
	FIELD_BRANCH,		/* enum vpmu_branch_type */
	FIELD_EVENTS_NOT,	/* a bit for each architectural event, set if it is missing */
	FIELD_EVENTS,		/* a bit for each architectural event, set if it is there */
	FIELD_DEPTHS,		/* bit n: 8 * (n + 1) entries */
	FIELD_LOSS,		/* enum vpmu_loss */
};

struct field {
	uint8_t low, bits;
	uint8_t kind;
	const char *name, *meaning;
};

struct reg {
	const char *name;	/* name; an index is appended if there are several */
	const char *tail;	/* suffix after the index, or NULL */
	const struct field *fields;	/* a name of NULL ends them */
	uint32_t first, n, stride;	/* numbers of MSRs; n is 0: CPUID */
	bool amd;
};

extern const struct reg registers[];
extern const size_t n_registers;

/* Find the register of an MSR number, and in @index its place among its kind; or NULL. */
const struct reg *register_at(uint32_t msr, uint32_t *index);
/* Name of the register, a new string: "IA32_PMC3", or "msr 0x10" for an unknown one. */
char *register_name(uint32_t msr);

#endif
