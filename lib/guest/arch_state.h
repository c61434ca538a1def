/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A saved state, between its check and its use: too much for the stack. */
#ifndef VPMU_ARCH_STATE_H
#define VPMU_ARCH_STATE_H

#include <vpmu/state.h>

#include "arch_loss.h"
#include "arch_pmc.h"
#include "arch_regs.h"

/* Sections, in the order in which they are saved. */
enum arch_section {
	ARCH_SECTION_REGS,
	ARCH_SECTION_RELOAD,
	ARCH_SECTION_PROVIDER,
	ARCH_SECTION_LOSS,
	ARCH_SECTION_LBR,
	ARCH_SECTION_PEBS,
	ARCH_SECTION_ARCH_PEBS,
	ARCH_SECTION_EXTRA,
	ARCH_SECTION_TOPDOWN,
	ARCH_SECTION_MODEL,
	ARCH_SECTIONS
};

struct arch_image {
	struct arch_regs r;
	struct arch_uncounted uncounted_events;
	struct arch_loss loss;
	uint64_t pending; /* in the registers' layout */
	uint8_t n_gp, n_fixed;
	uint8_t banks[ARCH_PMC_MAX]; /* by pmc: of its event, 0: has none */
	uint32_t touched;
	struct vpmu_state_cursor body[ARCH_SECTIONS]; /* checked; no data: absent */
	struct vpmu_error refused; /* why, if it was; `what` NULL: not said */
};

/** The pmc of the image's counter @i on a PMU with @n_gp GP counters, as many or more. */
static inline unsigned int arch_image_pmc(const struct arch_image *im, unsigned int i,
					  unsigned int n_gp)
{
	return i < im->n_gp ? i : n_gp + i - im->n_gp;
}

#endif /* VPMU_ARCH_STATE_H */
