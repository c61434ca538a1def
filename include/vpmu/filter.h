/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The event filter of a VM, with the meaning and the encoding of
 * KVM_SET_PMU_EVENT_FILTER, so that a VMM can pass on what it has.
 * Source: Linux, Documentation/virt/kvm/api.rst, 4.120 KVM_SET_PMU_EVENT_FILTER.
 *
 * Its text form, with EVENT as in spec.h:
 *
 *	filter:      allow|deny[:ENTRY]...
 *	ENTRY        EVENT (rHEX of event select and unit mask only) | fixedN |
 *	             mask=SELECT/MASK/MATCH, event selects and unit masks in hex |
 *	             except=SELECT/MASK/MATCH, after an entry of the same select
 *
 * An event that only a fixed counter counts stands in a filter for that counter;
 * any other one for the general-purpose counters only, as in KVM.
 * Grammar with examples: docs/HOST-EVENTS.md.
 */
#ifndef VPMU_FILTER_H
#define VPMU_FILTER_H

#include <vpmu/model.h>

#define VPMU_FILTER_ALLOW	0u /* only listed events count */
#define VPMU_FILTER_DENY	1u /* listed events do not count */

#define VPMU_FILTER_MASKED	1u /* entries are masked ones */

#define VPMU_FILTER_EVENTS_MAX	300u

struct vpmu_filter {
	uint32_t size;          /* sizeof(struct vpmu_filter) */
	uint32_t action;        /* VPMU_FILTER_ALLOW or VPMU_FILTER_DENY */
	uint32_t flags;         /* 0 or VPMU_FILTER_MASKED */
	uint32_t fixed_bitmap;  /* fixed counters that are listed */
	uint32_t n_events;      /* at most VPMU_FILTER_EVENTS_MAX */
	/*
	 * Owned by the caller, unchanged while it is in force: event select 7:0
	 * and 35:32, unit mask 15:8; or VPMU_FILTER_ENTRY()s.
	 */
	const uint64_t *events;
};

/*
 * A masked entry: matches events with this select whose unit mask, under @mask,
 * is @match; with @exclude such events are excepted.
 */
#define VPMU_FILTER_ENTRY(select, mask, match, exclude)           \
	(((uint64_t)(select) & 0xff) |                            \
	 ((uint64_t)(select) & 0xf00) << 24 |                     \
	 ((uint64_t)(mask) & 0xff) << 56 |                        \
	 ((uint64_t)(match) & 0xff) << 8 | (uint64_t)!!(exclude) << 55)

/**
 * Check a filter. Pure. Returns 0; -VPMU_E2BIG for too many events; -VPMU_EINVAL
 * for another size, an unknown action or flag, no events where there should be
 * some, or a masked entry with reserved bits set. An entry that is not masked and
 * has other bits set is no error: it matches nothing.
 */
int vpmu_filter_check(const struct vpmu_filter *f);

/**
 * May a guest count this event?
 *
 * @f:      checked; NULL allows everything
 * @select: event select 7:0 and 35:32, unit mask 15:8; other bits are ignored
 * @fixed:  fixed counter, then @select is not used; or -1
 *
 * Pure.
 */
bool vpmu_filter_allows(const struct vpmu_filter *f, uint64_t select, int fixed);

/**
 * Parse an event filter.
 *
 * @model:  model whose event names are known
 * @out:    filled on success
 * @events: room for VPMU_FILTER_EVENTS_MAX entries, used by @out afterwards
 * @err:    filled on failure
 *
 * Pure. Returns 0, or -VPMU_EINVAL.
 */
int vpmu_spec_filter(const char *text, const struct vpmu_model *model,
		     struct vpmu_filter *out, uint64_t *events,
		     struct vpmu_spec_error *err);

#endif /* VPMU_FILTER_H */
