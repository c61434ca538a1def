// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Events: finds a selector's row in a model's table, and the signals that count
 * it.
 */
#include <vpmu/event.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>

const uint16_t vpmu_arch_event[VPMU_ARCH_EVENTS] = {
	0x003c, /* unhalted core cycles */
	0x00c0, /* instructions retired */
	0x013c, /* unhalted reference cycles */
	0x4f2e, /* last-level cache references */
	0x412e, /* last-level cache misses */
	0x00c4, /* branch instructions retired */
	0x00c5, /* branch misses retired */
	0x01a4, /* topdown slots */
};

/* Rows are sorted by this: event select, unit mask, UnitMask2. */
static uint32_t row_key(const struct vpmu_event_def *def)
{
	return (uint32_t)def->select << 16 | (uint32_t)def->umask << 8 | def->umask2;
}

/* AMD's event select continues in bits 35:32. */
static uint32_t selector_key(const struct vpmu_model *model, uint64_t select)
{
	uint32_t event = (uint32_t)(select & VPMU_EVTSEL_EVENT);

	select &= vpmu_event_name_bits(model);
	if (model->vendor == VPMU_VENDOR_AMD)
		event |= (uint32_t)(select >> 24) & 0xf00;
	return event << 16 | (uint32_t)(select & VPMU_EVTSEL_UMASK) |
	       (uint32_t)((select & VPMU_EVTSEL_UMASK2) >> 40);
}

static const struct vpmu_event_def *find_fixed(const struct vpmu_model *model, int fixed)
{
	unsigned int i;

	for (i = 0; i < model->n_events; i++)
		if (model->events[i].fixed == fixed)
			return &model->events[i];
	return NULL;
}

/* The bits of a selector that a row's `when` is compared with. */
static uint16_t selector_when(uint64_t select)
{
	return (uint16_t)((select & VPMU_EVTSEL_CONDITION) >> 16);
}

const struct vpmu_event_def *vpmu_event_find(const struct vpmu_model *model,
					     uint64_t select, int fixed)
{
	uint32_t key = selector_key(model, select);
	unsigned int low = 0, high = model->n_events, i;

	if (fixed >= 0)
		return find_fixed(model, fixed);
	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (row_key(&model->events[mid]) < key)
			low = mid + 1;
		else
			high = mid;
	}
	for (i = low; i < model->n_events && row_key(&model->events[i]) == key; i++)
		if (model->events[i].when == selector_when(select))
			return &model->events[i];
	return i > low ? &model->events[low] : NULL;
}

/*
 * If the engine has no clock, one retired instruction is one cycle, and if it has no
 * pipeline, one slot.
 */
static uint64_t clocked(uint64_t signals, uint64_t supplied)
{
	const uint64_t cycles = VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES);
	const uint64_t instructions = VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS);

	if (signals == VPMU_SIGNALS_SLOTS && !(signals & supplied))
		return instructions;
	if (!(signals & cycles) || supplied & cycles)
		return signals;
	return (signals & ~cycles) | instructions;
}

#define SLOTS_FIXED 3

/* above the occurrences in a cycle of any CPU */
#define CMASK_NEVER	16

/*
 * Apply edge, inv, cmask and EQ to a recipe of an event of which at most one happens
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
		return !(select & VPMU_EVTSEL_EQ);
	if (!single && cmask < CMASK_NEVER)
		return false;
	if (cmask == 1)
		return !inv;
	r->signals = inv ? clocked(VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES), supplied) : 0;
	r->shift = 0;
	r->quality = VPMU_QUALITY_DEFINED;
	return true;
}

/* EQ, where the model has it. */
static uint64_t condition_bits(const struct vpmu_model *model)
{
	return VPMU_EVTSEL_CONDITION |
	       (model->extensions & VPMU_EXT_EQ ? VPMU_EVTSEL_EQ : 0);
}

#define EVENT_UOPS_RETIRED	0xc2
#define CYCLE_MOST		16

/*
 * In no cycle do 16 instructions retire, or 16 of their operations: so the cycles with
 * fewer are all cycles. Linux samples this event precisely in place of cycles.
 */
static bool every_cycle(const struct vpmu_model *model, uint64_t select)
{
	const struct vpmu_event_def *def = vpmu_event_find(model, select, -1);
	uint64_t conditions = select & condition_bits(model);

	return def && model->vendor == VPMU_VENDOR_INTEL &&
	       (def->signals == VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS) ||
		(def->select == EVENT_UOPS_RETIRED && def->umask == 1)) &&
	       (conditions & ~VPMU_EVTSEL_CMASK) == VPMU_EVTSEL_INV &&
	       conditions >> VPMU_EVTSEL_CMASK_SHIFT >= CYCLE_MOST;
}

int vpmu_event_resolve(const struct vpmu_model *model, uint64_t select, int fixed,
		       uint8_t banks, uint64_t supplied, struct vpmu_recipe *recipe)
{
	const uint64_t cycles = VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES);
	const struct vpmu_event_def *def;
	struct vpmu_recipe r = { .banks = banks };

	*recipe = r;
	if (fixed < 0 && every_cycle(model, select))
		select = vpmu_arch_event[0];
	def = vpmu_event_find(model, select, fixed);
	if (!def || !def->signals || (fixed < 0 && !def->gp_mask))
		return -VPMU_ENOENT;
	r.signals = clocked(def->signals, supplied);
	r.shift = def->shift;
	r.quality = r.signals == def->signals ? def->quality : VPMU_QUALITY_DEFINED;
	if (r.signals & ~supplied || (def->when && def->when != selector_when(select)))
		return -VPMU_ENOENT;
	if (fixed < 0 && !def->when &&
	    !condition(&r, select & condition_bits(model), supplied,
		       !(supplied & cycles) || def->signals == cycles))
		return -VPMU_ENOENT;
	if (r.signals & cycles && !(VPMU_SIGNALS_UARCH & ~supplied))
		r.quality = VPMU_QUALITY_MODELLED;
	r.topdown = fixed == SLOTS_FIXED &&
		    (!(r.signals & VPMU_SIGNALS_SLOTS) || !(VPMU_SIGNALS_TOPDOWN & ~supplied));
	*recipe = r;
	return 0;
}

#define OFFCORE_ANY	(1ull << 16)
#define OFFCORE_LLC	(0xfull << 18)
#define OFFCORE_DRAM	(1ull << 26)

int vpmu_event_offcore(uint64_t response, struct vpmu_recipe *recipe)
{
	static const uint8_t beyond[] = { VPMU_UARCH_READ_LLC, VPMU_UARCH_RFO_LLC,
					  VPMU_UARCH_CODE_LLC };
	uint64_t signals = 0;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		if (!(response >> i & 1))
			continue;
		if (response & (OFFCORE_ANY | OFFCORE_LLC))
			signals |= VPMU_SIGNAL_BIT(VPMU_SIGNAL_OF(beyond[i]));
		if (response & (OFFCORE_ANY | OFFCORE_DRAM))
			signals |= VPMU_SIGNAL_BIT(VPMU_SIGNAL_OF(beyond[i] + 1));
	}
	recipe->signals &= signals;
	if (response & 7)
		return 0;
	recipe->quality = VPMU_QUALITY_NONE;
	return -VPMU_ENOENT;
}

uint64_t vpmu_event_name_bits(const struct vpmu_model *model)
{
	uint64_t high = model->vendor == VPMU_VENDOR_AMD ? VPMU_EVTSEL_EVENT_HIGH : 0;

	if (model->extensions & VPMU_EXT_UMASK2)
		high |= VPMU_EVTSEL_UMASK2;
	return VPMU_EVTSEL_EVENT | VPMU_EVTSEL_UMASK | high;
}

uint32_t vpmu_event_slots(const struct vpmu_model *model, uint64_t select, int fixed)
{
	const struct vpmu_event_def *def = vpmu_event_find(model, select, fixed);
	uint32_t slots;

	if (!def)
		return 0;
	slots = def->gp_mask;
	if (def->fixed >= 0 &&
	    (fixed >= 0 || !(select & condition_bits(model))))
		slots |= 1u << (model->n_gp + (unsigned int)def->fixed);
	return slots;
}
