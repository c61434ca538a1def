/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A saved state, between its check and its use: too much for the stack. */
#ifndef VPMU_ARCH_STATE_H
#define VPMU_ARCH_STATE_H

#include <vpmu/state.h>

#include "arch_extra.h"
#include "arch_loss.h"
#include "arch_pmc.h"
#include "arch_regs.h"
#include "arch_topdown.h"

struct arch_image {
	struct arch_regs r;
	struct arch_told told;
	uint64_t pending; /* in the registers' layout */
	uint8_t n_gp, n_fixed;
	uint8_t banks[ARCH_PMC_MAX]; /* by pmc: of its event, 0: has none */
	uint32_t touched;
	struct arch_loss loss;
	struct arch_extra extra;
	struct arch_topdown topdown;
	bool has_arch, has_loss, has_lbr, has_pebs, has_extra, has_topdown;
	struct vpmu_state_cursor lbr, pebs; /* over their bodies, checked; or no data */
	const uint8_t *provider, *reload; /* their bodies, or NULL */
	size_t provider_bytes, reload_bytes;
	struct vpmu_error refused; /* why, if it was; `what` NULL: not said */
};

#endif /* VPMU_ARCH_STATE_H */
