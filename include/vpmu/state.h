/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Saved state: plain data, little-endian, versioned.
 *
 * A saved state is a header {u32 magic "VPMU", u32 version, u32 total bytes,
 * u32 sections} and sections {u32 id, u16 version, u16 flags, u32 body bytes,
 * u32 zero, body padded to 8}. Unknown sections are skipped, or refused when
 * their MANDATORY flag is set.
 */
#ifndef VPMU_STATE_H
#define VPMU_STATE_H

#include <vpmu/platform.h>

#define VPMU_STATE_MAGIC	0x554d5056u /* "VPMU" */
#define VPMU_STATE_VERSION	1u
#define VPMU_STATE_MANDATORY	1u

enum vpmu_state_id {
	VPMU_STATE_ARCH = 1,     /* architectural register file */
	VPMU_STATE_PROVIDER = 2, /* the provider's own section; those that count on
				    silicon write the same (direct.c) and load each
				    other's */
	VPMU_STATE_LOSS = 3,     /* the loss block, where the guest has one */
	VPMU_STATE_PV = 4,       /* the paravirtual PMU's events, of a VM */
	VPMU_STATE_PV_VCPU = 5,  /* events that are enabled on one vCPU */
	VPMU_STATE_RELOAD = 6,   /* auto counter reload, where the guest has it */
	VPMU_STATE_LBR = 7,      /* branch records, where the guest has them */
	VPMU_STATE_PEBS = 8,     /* PEBS, where the guest has it */
	VPMU_STATE_MODEL = 9,    /* name of the model whose events they are; optional */
	VPMU_STATE_EXTRA = 10,   /* registers that modify events, if there are any */
	VPMU_STATE_TOPDOWN = 11, /* PERF_METRICS, where the guest has it */
	VPMU_STATE_ARCH_PEBS = 12, /* architectural PEBS, where the guest has it */
};

/* A cursor over a caller's buffer; once an access failed, `error` stays set. */
struct vpmu_state_cursor {
	uint8_t *data;  /* start of the buffer; only read by readers; NULL: measure */
	size_t size;    /* bytes of the buffer */
	size_t pos;     /* next byte */
	int error;      /* 0, or negative errno of the first failure */
};

void vpmu_state_put(struct vpmu_state_cursor *c, uint64_t value, unsigned int bytes);
uint64_t vpmu_state_get(struct vpmu_state_cursor *c, unsigned int bytes);

/* Begin writes a section's head and returns its position for end. */
size_t vpmu_state_section_begin(struct vpmu_state_cursor *c, uint32_t id,
				uint16_t version, uint16_t flags);
void vpmu_state_section_end(struct vpmu_state_cursor *c, size_t head);

#endif /* VPMU_STATE_H */
