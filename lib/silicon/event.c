// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <vpmu/event.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>

/* Rows are sorted by this: event select, then unit mask. */
static uint32_t row_key(const struct vpmu_event_def *def)
{
	return (uint32_t)def->select << 8 | def->umask;
}

/* AMD's event select goes on in bits 35:32. */
static uint32_t selector_key(const struct vpmu_model *model, uint64_t select)
{
	uint32_t event = (uint32_t)(select & VPMU_EVTSEL_EVENT);

	if (model->vendor == VPMU_VENDOR_AMD)
		event |= (uint32_t)(select >> 24) & 0xf00;
	return event << 8 | (uint32_t)(select & VPMU_EVTSEL_UMASK) >> 8;
}

static const struct vpmu_event_def *find_fixed(const struct vpmu_model *model, int fixed)
{
	unsigned int i;

	for (i = 0; i < model->n_events; i++)
		if (model->events[i].fixed == fixed)
			return &model->events[i];
	return NULL;
}

const struct vpmu_event_def *vpmu_event_find(const struct vpmu_model *model,
					     uint64_t select, int fixed)
{
	uint32_t key = selector_key(model, select);
	unsigned int low = 0, high = model->n_events;

	if (fixed >= 0)
		return find_fixed(model, fixed);
	while (low < high) {
		unsigned int mid = (low + high) / 2;
		uint32_t here = row_key(&model->events[mid]);

		if (here == key)
			return &model->events[mid];
		if (here < key)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Without a clock of the engine's own, one retired instruction is one cycle. */
static uint64_t clocked(uint64_t signals, uint64_t supplied)
{
	const uint64_t cycles = VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES);

	if (!(signals & cycles) || supplied & cycles)
		return signals;
	return (signals & ~cycles) | VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS);
}

/*
 * Apply edge, inv and cmask to a recipe of an event of which at most one happens
 * in a cycle (@single). Returns false when the combination has no definition.
 */
static bool condition(struct vpmu_recipe *r, uint64_t select, uint64_t supplied,
		      bool single)
{
	unsigned int cmask = (select & VPMU_EVTSEL_CMASK) >> VPMU_EVTSEL_CMASK_SHIFT;
	bool inv = select & VPMU_EVTSEL_INV;

	if (select & VPMU_EVTSEL_EDGE)
		return false;
	if (!cmask)
		return true;
	if (!single)
		return false;
	if (cmask == 1)
		return !inv;
	r->signals = inv ? clocked(VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES), supplied) : 0;
	r->shift = 0;
	r->quality = VPMU_QUALITY_DEFINED;
	return true;
}

int vpmu_event_resolve(const struct vpmu_model *model, uint64_t select, int fixed,
		       uint8_t banks, uint64_t supplied, struct vpmu_recipe *recipe)
{
	const uint64_t cycles = VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES);
	const struct vpmu_event_def *def = vpmu_event_find(model, select, fixed);
	struct vpmu_recipe r = { .banks = banks };

	*recipe = r;
	if (!def || !def->signals || (fixed < 0 && !def->gp_mask))
		return -VPMU_ENOENT;
	r.signals = clocked(def->signals, supplied);
	r.shift = def->shift;
	r.quality = r.signals == def->signals ? def->quality : VPMU_QUALITY_DEFINED;
	if (fixed < 0 && !condition(&r, select, supplied,
				    !(supplied & cycles) || def->signals == cycles))
		return -VPMU_ENOENT;
	if (r.signals & ~supplied)
		return -VPMU_ENOENT;
	*recipe = r;
	return 0;
}

uint64_t vpmu_event_name_bits(const struct vpmu_model *model)
{
	uint64_t high = model->vendor == VPMU_VENDOR_AMD ? VPMU_EVTSEL_EVENT_HIGH : 0;

	return VPMU_EVTSEL_EVENT | VPMU_EVTSEL_UMASK | high;
}

uint32_t vpmu_event_slots(const struct vpmu_model *model, uint64_t select, int fixed)
{
	const struct vpmu_event_def *def = vpmu_event_find(model, select, fixed);
	uint32_t slots;

	if (!def)
		return 0;
	slots = def->gp_mask;
	if (def->fixed >= 0 && (fixed >= 0 || !(select & VPMU_EVTSEL_CONDITION)))
		slots |= 1u << (model->n_gp + (unsigned int)def->fixed);
	return slots;
}
