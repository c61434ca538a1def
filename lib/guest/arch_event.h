/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The provider's events of one vCPU: batches, values, deadlines. The lowest layer of the
 * architectural PMU; nothing here knows what an event is for.
 */
#ifndef VPMU_ARCH_EVENT_H
#define VPMU_ARCH_EVENT_H

#include <vpmu/provider.h>

struct vpmu_arch;

/* The attributes that a counter's event was made with. */
struct arch_made {
	uint64_t select;
	uint64_t extra; /* its attr's, where it has an offcore response */
	uint64_t base;  /* event's count at which counter[pmc] was the value */
	uint8_t banks;
};

/**
 * Bracket changes, so that they happen at one instant. They nest. End returns true when it
 * ends the outermost batch, and sets v->unplaced when the provider could not place an event.
 */
void arch_event_begin(struct vpmu_arch *v);
bool arch_event_end(struct vpmu_arch *v);

/** The memory of @pmc's event, or with n_pmc that of branch records. */
struct vpmu_event *arch_event_of(struct vpmu_arch *v, unsigned int pmc);

/** A counter's value as the guest reads it, and a write of it (within width). */
uint64_t arch_event_read(struct vpmu_arch *v, unsigned int pmc);
void arch_event_put(struct vpmu_arch *v, unsigned int pmc, uint64_t value);

/** Arm the event of a counter whose value is @value. In a batch. */
void arch_event_arm(struct vpmu_arch *v, unsigned int pmc, uint64_t value);

/** Arm those of @pmcs that have an event again: v->eager has changed. */
void arch_event_rearm(struct vpmu_arch *v, uint32_t pmcs);

/** The counters that overflows of @pmcs reload; and @pmcs take their reload values. */
uint32_t arch_event_reloaded(const struct vpmu_arch *v, uint32_t pmcs);
void arch_event_reload(struct vpmu_arch *v, uint32_t pmcs);

/** Set status bits; any that was clear also sets CondChgd, which is Intel's. */
void arch_raise_status(struct vpmu_arch *v, uint64_t bits);

#endif /* VPMU_ARCH_EVENT_H */
