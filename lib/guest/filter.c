// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The event filter. Source of its meaning: Linux, Documentation/virt/kvm/api.rst,
 * KVM_SET_PMU_EVENT_FILTER, and KVM's use of it.
 */
#include <vpmu/filter.h>

#define FILTER_SELECT	0x0000000f000000ffull
#define FILTER_UMASK	0x000000000000ff00ull /* an event's; in a masked entry its match */
#define FILTER_EXCLUDE	(1ull << 55)
#define FILTER_MASK	(0xffull << 56)
#define FILTER_MASK_TO_UMASK (56 - 8)

int vpmu_filter_check(const struct vpmu_filter *f)
{
	const uint64_t used = FILTER_SELECT | FILTER_UMASK | FILTER_EXCLUDE | FILTER_MASK;
	uint32_t i;

	if (f->size < sizeof(*f) || f->action > VPMU_FILTER_DENY ||
	    (f->flags & ~VPMU_FILTER_MASKED))
		return -VPMU_EINVAL;
	if (f->n_events > VPMU_FILTER_EVENTS_MAX)
		return -VPMU_E2BIG;
	if (f->n_events && !f->events)
		return -VPMU_EINVAL;
	if (!(f->flags & VPMU_FILTER_MASKED))
		return 0;
	for (i = 0; i < f->n_events; i++)
		if (f->events[i] & ~used)
			return -VPMU_EINVAL;
	return 0;
}

/* An entry that is not masked and has other bits set can match nothing. */
static bool filter_has(const struct vpmu_filter *f, uint64_t event)
{
	uint32_t i;

	for (i = 0; i < f->n_events; i++)
		if (f->events[i] == event)
			return true;
	return false;
}

/* Some entry includes @event, and none excludes it. */
static bool filter_has_masked(const struct vpmu_filter *f, uint64_t event)
{
	bool included = false;
	uint32_t i;

	for (i = 0; i < f->n_events; i++) {
		uint64_t entry = f->events[i];
		uint64_t mask = entry >> FILTER_MASK_TO_UMASK & FILTER_UMASK;

		if ((entry ^ event) & FILTER_SELECT ||
		    (event & mask) != (entry & FILTER_UMASK))
			continue;
		if (entry & FILTER_EXCLUDE)
			return false;
		included = true;
	}
	return included;
}

bool vpmu_filter_allows(const struct vpmu_filter *f, uint64_t select, int fixed)
{
	uint64_t event = select & (FILTER_SELECT | FILTER_UMASK);
	bool listed;

	if (!f)
		return true;
	if (fixed >= 0)
		listed = fixed < 32 && f->fixed_bitmap >> fixed & 1;
	else if (f->flags & VPMU_FILTER_MASKED)
		listed = filter_has_masked(f, event);
	else
		listed = filter_has(f, event);
	return listed == (f->action == VPMU_FILTER_ALLOW);
}
