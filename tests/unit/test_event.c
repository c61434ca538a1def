// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Events: tables of selectors and the recipes that they resolve to. */
#include "unit.h"

#include <vpmu/model.h>
#include <vpmu/msr.h>

#define S(name)		VPMU_SIGNAL_BIT(VPMU_SIGNAL_##name)
#define NO_CLOCK	(VPMU_SIGNALS_ALL & ~VPMU_SIGNALS_UARCH)
#define USER		VPMU_BANKS_USER
#define CMASK(n)	((uint64_t)(n) << VPMU_EVTSEL_CMASK_SHIFT)
#define KINDS		(S(JCC_TAKEN) | S(JCC_NOT_TAKEN) | S(JMP) | S(CALL) | S(RET) | \
			 S(JMP_INDIRECT) | S(CALL_INDIRECT) | S(FAR))

static const struct vpmu_model *icelake(void)
{
	return vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
}

static void test_every_model_is_sound(void **state)
{
	const struct vpmu_model *m;
	size_t i, bad;

	(void)state;
	for (i = 0; (m = vpmu_model_at(i)); i++) {
		const char *wrong = vpmu_model_check(m, &bad);

		if (wrong)
			fail_msg("%s, event %zu: %s", m->name, bad, wrong);
	}
	assert_true(i >= 21);
	assert_null(vpmu_model_at(SIZE_MAX));
}

static void test_model_find(void **state)
{
	static const struct {
		uint8_t vendor, family, model;
		const char *name;
	} row[] = {
		{ VPMU_VENDOR_INTEL, 6, 106, "icelake-server" },
		{ VPMU_VENDOR_INTEL, 6, 108, "icelake-server" },
		{ VPMU_VENDOR_INTEL, 6, 143, "sapphire-rapids" },
		{ VPMU_VENDOR_INTEL, 6, 207, "sapphire-rapids" },
		{ VPMU_VENDOR_INTEL, 6, 173, "granite-rapids" },
		{ VPMU_VENDOR_INTEL, 6, 174, "granite-rapids" },
		{ VPMU_VENDOR_INTEL, 6, 221, "clearwater-forest" },
		{ VPMU_VENDOR_INTEL, 6, 85, "skylake-server" },
		{ VPMU_VENDOR_INTEL, 6, 14, "core-duo" },
		{ VPMU_VENDOR_INTEL, 6, 15, "core2" },
		{ VPMU_VENDOR_INTEL, 6, 23, "core2" },
		{ VPMU_VENDOR_INTEL, 6, 28, "bonnell" },
		{ VPMU_VENDOR_INTEL, 6, 26, "nehalem" },
		{ VPMU_VENDOR_INTEL, 6, 44, "westmere" },
		{ VPMU_VENDOR_INTEL, 6, 42, "sandy-bridge" },
		{ VPMU_VENDOR_INTEL, 6, 58, "ivy-bridge" },
		{ VPMU_VENDOR_INTEL, 6, 60, "haswell" },
		{ VPMU_VENDOR_INTEL, 6, 61, "broadwell" },
		{ VPMU_VENDOR_INTEL, 6, 94, "skylake-client" },
		{ VPMU_VENDOR_INTEL, 6, 133, "knights" },
		{ VPMU_VENDOR_INTEL, 6, 95, "goldmont" },
		{ VPMU_VENDOR_INTEL, 6, 134, "tremont" },
		{ VPMU_VENDOR_INTEL, 6, 1, "generic" },
		{ VPMU_VENDOR_INTEL, 6, 255, "generic" },
		{ VPMU_VENDOR_INTEL, 15, 106, NULL },
		{ VPMU_VENDOR_AMD, 23, 49, "zen2" },
		{ VPMU_VENDOR_AMD, 23, 113, "zen2" },
		{ VPMU_VENDOR_AMD, 25, 1, "zen3" },
		{ VPMU_VENDOR_AMD, 25, 33, "zen3" },
		{ VPMU_VENDOR_AMD, 25, 17, "zen4" },
		{ VPMU_VENDOR_AMD, 25, 97, "zen4" },
		{ VPMU_VENDOR_AMD, 23, 1, "generic-amd" },  /* Zen 1 */
		{ VPMU_VENDOR_AMD, 25, 255, "generic-amd" },
		{ VPMU_VENDOR_AMD, 26, 2, "generic-amd" },  /* Zen 5 */
		{ VPMU_VENDOR_AMD, 15, 107, "generic-amd" },
		{ VPMU_VENDOR_AMD, 6, 106, "generic-amd" },
		{ 2, 6, 106, NULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		const struct vpmu_model *m = vpmu_model_find(row[i].vendor, row[i].family,
							     row[i].model);

		if (row[i].name)
			assert_string_equal(m->name, row[i].name);
		else
			assert_null(m);
	}
}

/*
 * Binary search against every row by its place, for every selector there is: an
 * event select of 8 bits, of 12 with AMD, and a unit mask.
 */
static void test_find_everything(void **state)
{
	static const struct vpmu_event_def *row[1 << 20];
	const struct vpmu_model *m;
	size_t i, k;
	uint32_t code;

	(void)state;
	for (i = 0; (m = vpmu_model_at(i)); i++) {
		bool amd = m->vendor == VPMU_VENDOR_AMD;
		uint64_t other = amd ? ~0xf0000ffffull : ~0xffffull;

		if (m->extensions & VPMU_EXT_UMASK2)
			other &= ~(0xffull << 40);
		memset(row, 0, sizeof(row));
		for (k = 0; k < m->n_events; k++)
			if (!m->events[k].umask2 &&
			    (!k || m->events[k].select != m->events[k - 1].select ||
			     m->events[k].umask != m->events[k - 1].umask))
				row[m->events[k].select << 8 | m->events[k].umask] = &m->events[k];
		for (code = 0; code < (amd ? 1u << 20 : 1u << 16); code++) {
			uint64_t select = (code >> 8 & 0xff) | (code & 0xff) << 8 |
					  (uint64_t)(code >> 16) << 32;

			if (vpmu_event_find(m, select, -1) != row[code] ||
			    vpmu_event_find(m, select | other, -1) != row[code])
				fail_msg("%s %llx", m->name, (unsigned long long)select);
		}
	}
}

/*
 * Intel's names say which of the events with a data source, those of select D0H, count
 * stores. Knights Landing counts stores by another select.
 */
static void test_stores(void **state)
{
	const struct vpmu_model *m;
	unsigned int n = 0;
	size_t i, k;

	(void)state;
	for (i = 0; (m = vpmu_model_at(i)); i++)
		for (k = 0; k < m->n_events; k++) {
			const char *name = m->events[k].name;
			bool stores = m->vendor == VPMU_VENDOR_INTEL &&
				      m->events[k].select == 0xd0 && strstr(name, "STORES");

			if (m->events[k].stores != stores)
				fail_msg("%s: %s", m->name, name);
			n += stores;
		}
	assert_true(n > 20);
}

/* Every UnitMask2 of each select and unit mask that has a row, by looking at them all. */
static void test_find_umask2(void **state)
{
	const struct vpmu_event_def *want, *def;
	const struct vpmu_model *m;
	unsigned int umask2, found = 0;
	size_t i, k, n;

	(void)state;
	for (i = 0; (m = vpmu_model_at(i)); i++) {
		if (!(m->extensions & VPMU_EXT_UMASK2))
			continue;
		for (k = 0; k < m->n_events * 256u; k++) {
			def = &m->events[k / 256];
			umask2 = k % 256;
			want = NULL;
			for (n = 0; n < m->n_events; n++)
				if (m->events[n].select == def->select &&
				    m->events[n].umask == def->umask &&
				    m->events[n].umask2 == umask2 && !want)
					want = &m->events[n];
			assert_ptr_equal(vpmu_event_find(m, def->select | def->umask << 8 |
							 (uint64_t)umask2 << 40, -1), want);
			found += want == def && umask2;
		}
	}
	assert_int_equal(found, 5); /* Clearwater Forest's */
}

struct resolved {
	uint8_t model;     /* Intel family 6 */
	uint64_t select;
	int fixed;
	uint64_t signals;  /* without a clock; 0 and quality NONE: not counted */
	uint8_t shift;
	uint8_t quality;
};

#define EXACT	VPMU_QUALITY_EXACT
#define DEFINED	VPMU_QUALITY_DEFINED
#define MODELLED VPMU_QUALITY_MODELLED
#define NONE	VPMU_QUALITY_NONE

static const struct resolved resolved[] = {
	/* The architectural events and the fixed counters. */
	{ 106, 0x003c, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x00c0, -1, S(INSTRUCTIONS), 0, EXACT },
	{ 106, 0x013c, -1, S(INSTRUCTIONS), 4, DEFINED },
	{ 143, 0x013c, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 85, 0x013c, -1, S(INSTRUCTIONS), 4, DEFINED },
	{ 1, 0x013c, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x4f2e, -1, 0, 0, NONE },
	{ 106, 0x412e, -1, 0, 0, NONE },
	{ 106, 0x00c4, -1, S(BRANCHES), 0, EXACT },
	{ 106, 0x00c5, -1, 0, 0, NONE },
	{ 106, 0x01a4, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0, 0, S(INSTRUCTIONS), 0, EXACT },
	{ 106, 0, 1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0, 2, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0, 3, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x02c2, -1, 0, 0, NONE }, /* a class alone */
	{ 85, 0, 2, S(INSTRUCTIONS), 0, DEFINED },
	/* @select is not used with a fixed counter, whatever it holds. */
	{ 106, 0x00c4 | VPMU_EVTSEL_EDGE | CMASK(7), 0, S(INSTRUCTIONS), 0, EXACT },
	/* A fixed counter's event that no GP counter can count; nothing at all. */
	{ 106, 0x0300, -1, 0, 0, NONE },
	{ 106, 0x0000, -1, 0, 0, NONE },
	{ 106, 0xffff, -1, 0, 0, NONE },
	/* Branch kinds of Icelake-SP and Sapphire Rapids. */
	{ 106, 0x11c4, -1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), 0, EXACT },
	{ 106, 0x01c4, -1, S(JCC_TAKEN), 0, EXACT },
	{ 106, 0x10c4, -1, S(JCC_NOT_TAKEN), 0, EXACT },
	{ 106, 0x02c4, -1, S(CALL) | S(CALL_INDIRECT), 0, EXACT },
	{ 106, 0x08c4, -1, S(RET), 0, EXACT },
	{ 106, 0x20c4, -1, KINDS & ~(S(JCC_NOT_TAKEN) | S(FAR)), 0, EXACT },
	{ 106, 0x40c4, -1, S(FAR), 0, EXACT },
	{ 106, 0x80c4, -1, S(JMP_INDIRECT) | S(CALL_INDIRECT), 0, EXACT },
	{ 106, 0x04c4, -1, 0, 0, NONE },
	{ 143, 0x11c4, -1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), 0, EXACT },
	{ 143, 0x80c4, -1, S(JMP_INDIRECT) | S(CALL_INDIRECT), 0, EXACT },
	/* Skylake-SP's differ. */
	{ 85, 0x01c4, -1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), 0, EXACT },
	{ 85, 0x10c4, -1, S(JCC_NOT_TAKEN), 0, EXACT },
	{ 85, 0x04c4, -1, S(BRANCHES), 0, EXACT },
	{ 85, 0x11c4, -1, 0, 0, NONE },
	{ 85, 0x80c4, -1, 0, 0, NONE },
	{ 1, 0x00c4, -1, S(BRANCHES), 0, EXACT },
	{ 1, 0x20c4, -1, 0, 0, NONE },
	/* From Sandy Bridge to Skylake they are the same, with a bus clock at first. */
	{ 42, 0x013c, -1, S(INSTRUCTIONS), 2, DEFINED },
	{ 94, 0x013c, -1, S(INSTRUCTIONS), 4, DEFINED },
	{ 42, 0x01c4, -1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), 0, EXACT },
	{ 58, 0x20c4, -1, KINDS & ~(S(JCC_NOT_TAKEN) | S(FAR)), 0, EXACT },
	{ 60, 0x02c4, -1, S(CALL) | S(CALL_INDIRECT), 0, EXACT },
	{ 61, 0x08c4, -1, S(RET), 0, EXACT },
	{ 94, 0x40c4, -1, S(FAR), 0, EXACT },
	/* Nehalem's have unit masks where later ones have none, and none for many. */
	{ 26, 0x01c0, -1, S(INSTRUCTIONS), 0, EXACT },
	{ 44, 0x04c4, -1, S(BRANCHES), 0, EXACT },
	{ 44, 0x01c4, -1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), 0, EXACT },
	{ 26, 0x20c4, -1, 0, 0, NONE },
	/* Core 2 and Core Duo; the latter is of version 1. */
	{ 15, 0, 2, S(INSTRUCTIONS), 0, DEFINED },
	{ 15, 0x013c, -1, S(INSTRUCTIONS), 2, DEFINED },
	{ 15, 0x0cc4, -1, KINDS & ~S(JCC_NOT_TAKEN), 0, DEFINED },
	{ 15, 0x01c4, -1, 0, 0, NONE },
	{ 14, 0x00c9, -1, KINDS & ~S(JCC_NOT_TAKEN), 0, DEFINED },
	{ 14, 0, 0, 0, 0, NONE },
	/* Atoms say what they leave out, and the first one has an event for its types. */
	{ 28, 0x0188, -1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), 0, EXACT },
	{ 28, 0x2088, -1, S(CALL_INDIRECT), 0, EXACT },
	{ 95, 0x7ec4, -1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), 0, EXACT },
	{ 95, 0xf9c4, -1, S(CALL) | S(CALL_INDIRECT), 0, EXACT },
	{ 134, 0xebc4, -1, S(JMP_INDIRECT) | S(CALL_INDIRECT), 0, EXACT },
	{ 134, 0xfec4, -1, S(JCC_TAKEN), 0, EXACT },
	{ 133, 0xbfc4, -1, S(FAR), 0, EXACT },
	{ 106, 0x01c0, -1, S(INSTRUCTIONS), 0, EXACT },
	{ 85, 0x01c0, -1, S(INSTRUCTIONS), 0, EXACT },
	/* Bits that do not matter. */
	{ 106, 0x00c0 | VPMU_EVTSEL_USR | VPMU_EVTSEL_INT | VPMU_EVTSEL_EN, -1,
	  S(INSTRUCTIONS), 0, EXACT },
	{ 106, 0xffffffff00000000ull | 0x00c0, -1, S(INSTRUCTIONS), 0, EXACT },
	/* One instruction is one cycle: cmask, inv, edge. */
	{ 106, 0x00c0 | CMASK(1), -1, S(INSTRUCTIONS), 0, EXACT },
	{ 106, 0x00c4 | CMASK(1), -1, S(BRANCHES), 0, EXACT },
	{ 106, 0x013c | CMASK(1), -1, S(INSTRUCTIONS), 4, DEFINED },
	{ 106, 0x00c0 | CMASK(2), -1, 0, 0, DEFINED },
	{ 106, 0x20c4 | CMASK(255), -1, 0, 0, DEFINED },
	{ 106, 0x00c0 | CMASK(16) | VPMU_EVTSEL_INV, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x00c4 | CMASK(2) | VPMU_EVTSEL_INV, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x013c | CMASK(2) | VPMU_EVTSEL_INV, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 106, 0x00c0 | CMASK(1) | VPMU_EVTSEL_INV, -1, 0, 0, NONE },
	/* the event that Linux uses for cycles with PEBS */
	{ 60, 0x01c2 | CMASK(16) | VPMU_EVTSEL_INV, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 85, 0x01c0 | CMASK(32) | VPMU_EVTSEL_INV, -1, S(INSTRUCTIONS), 0, DEFINED },
	{ 60, 0x01c2 | CMASK(15) | VPMU_EVTSEL_INV, -1, 0, 0, NONE },
	{ 60, 0x01c2 | CMASK(16), -1, 0, 0, NONE },
	{ 60, 0x01c2 | CMASK(16) | VPMU_EVTSEL_INV | VPMU_EVTSEL_EDGE, -1, 0, 0, NONE },
	{ 60, 0x02c2 | CMASK(16) | VPMU_EVTSEL_INV, -1, 0, 0, NONE },
	{ 106, 0x00c0 | VPMU_EVTSEL_INV, -1, S(INSTRUCTIONS), 0, EXACT },
	{ 106, 0x003c | VPMU_EVTSEL_EDGE | CMASK(1), -1, 0, 0, NONE },
	{ 106, 0x00c4 | VPMU_EVTSEL_EDGE, -1, 0, 0, NONE },
	{ 106, 0x412e | CMASK(2), -1, 0, 0, NONE },
	{ 106, 0x412e | CMASK(2) | VPMU_EVTSEL_INV, -1, 0, 0, NONE },
};

static void test_resolve(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(resolved); i++) {
		const struct resolved *t = &resolved[i];
		const struct vpmu_model *m = vpmu_model_find(VPMU_VENDOR_INTEL, 6, t->model);
		struct vpmu_recipe r = { .signals = 99, .quality = 99, .shift = 99 };
		int err = vpmu_event_resolve(m, t->select, t->fixed, USER, NO_CLOCK, &r);

		if (err != (t->quality == NONE ? -VPMU_ENOENT : 0) ||
		    r.signals != t->signals || r.shift != t->shift ||
		    r.quality != t->quality || r.banks != USER)
			fail_msg("row %zu (%s %llx): %d, signals %llx >> %d, quality %d", i,
				 m->name, (unsigned long long)t->select, err,
				 (unsigned long long)r.signals, r.shift, r.quality);
	}
}

#define U(name)	VPMU_SIGNAL_BIT(VPMU_SIGNAL_OF(VPMU_UARCH_##name))
#define INV	VPMU_EVTSEL_INV

/* Events that a model of the micro-architecture adds. */
static const struct resolved modelled[] = {
	{ 106, 0x412e, -1, U(READ_DRAM) | U(RFO_DRAM) | U(CODE_DRAM), 0, MODELLED },
	{ 106, 0x4f2e, -1, U(READ_LLC) | U(RFO_LLC) | U(CODE_LLC) | U(READ_DRAM) |
	  U(RFO_DRAM) | U(CODE_DRAM), 0, MODELLED },
	{ 106, 0x00c5, -1, U(MISP_TAKEN) | U(MISP_NOT_TAKEN) | U(MISP_RET) | U(MISP_JMP) |
	  U(MISP_CALL), 0, MODELLED },
	{ 106, 0x01a4, -1, U(RETIRING) | U(BAD_SPECULATION) | U(FRONTEND_BOUND) |
	  U(BACKEND_BOUND), 0, MODELLED },
	{ 106, 0x81d0, -1, U(LOADS), 0, EXACT },
	{ 106, 0x10d1, -1, U(LOAD_LLC) | U(LOAD_DRAM), 0, MODELLED },
	{ 106, 0x003c, -1, S(CYCLES), 0, MODELLED },
	{ 106, 0x0000, 2, S(CYCLES), 0, MODELLED },
	{ 106, 0x0000, 0, S(INSTRUCTIONS), 0, EXACT },
	{ 143, 0x10a4, -1, U(MEMORY_BOUND), 0, MODELLED },
	/* With a condition, as another event; no other condition has a definition. */
	{ 106, 0x04a3 | CMASK(4), -1, U(STALLS), 0, MODELLED },
	{ 106, 0x04a3, -1, 0, 0, NONE },
	{ 106, 0x04a3 | CMASK(5), -1, 0, 0, NONE },
	{ 106, 0x04a3 | CMASK(4) | INV, -1, 0, 0, NONE },
	{ 106, 0x010e, -1, U(RETIRING), 0, MODELLED },
	{ 106, 0x010e | CMASK(1) | INV, -1, U(STALLS), 0, MODELLED },
	{ 106, 0x010e | CMASK(1), -1, 0, 0, NONE },
	{ 106, 0x010d | CMASK(1) | VPMU_EVTSEL_EDGE, -1, U(MISP_TAKEN) | U(MISP_NOT_TAKEN) |
	  U(MISP_RET) | U(MISP_JMP) | U(MISP_CALL) | U(CLEARS), 0, MODELLED },
	{ 143, 0x0947 | CMASK(9), -1, U(STALL_LLC), 0, MODELLED },
	/* More than a cycle has: never, or always. */
	{ 106, 0x00c0 | CMASK(16), -1, 0, 0, DEFINED },
	{ 106, 0x00c0 | CMASK(16) | INV, -1, S(CYCLES), 0, MODELLED },
	{ 106, 0x00c0 | CMASK(15) | INV, -1, 0, 0, NONE },
	/* still not counted */
	{ 106, 0x01c3, -1, 0, 0, NONE },
	{ 106, 0x04d3, -1, 0, 0, NONE },
};

static void test_resolve_modelled(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(modelled); i++) {
		const struct resolved *t = &modelled[i];
		const struct vpmu_model *m = vpmu_model_find(VPMU_VENDOR_INTEL, 6, t->model);
		struct vpmu_recipe r;
		int err = vpmu_event_resolve(m, t->select, t->fixed, USER, VPMU_SIGNALS_ALL, &r);

		if (err != (t->quality == NONE ? -VPMU_ENOENT : 0) ||
		    r.signals != t->signals || r.shift != t->shift || r.quality != t->quality)
			fail_msg("row %zu (%s %llx): %d, signals %llx, quality %d", i, m->name,
				 (unsigned long long)t->select, err,
				 (unsigned long long)r.signals, r.quality);
	}
}

/* Slots have classes if the engine supplies all of these, or none. */
static void test_resolve_slots(void **state)
{
	static const struct { uint64_t supplied, signals; int err; bool topdown; } row[] = {
		{ VPMU_SIGNALS_ALL, VPMU_SIGNALS_SLOTS, 0, true },
		{ VPMU_SIGNALS_ALL & ~U(HEAVY), VPMU_SIGNALS_SLOTS, 0, false },
		{ VPMU_SIGNALS_ALL & ~U(RETIRING), 0, -VPMU_ENOENT, false },
		{ NO_CLOCK, S(INSTRUCTIONS), 0, true },
		{ NO_CLOCK | S(CYCLES), S(INSTRUCTIONS), 0, true },
	};
	struct vpmu_recipe r;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		assert_int_equal(vpmu_event_resolve(icelake(), 0, 3, USER, row[i].supplied, &r),
				 row[i].err);
		assert_true(r.signals == row[i].signals);
		assert_int_equal(r.topdown, row[i].topdown);
	}
}

/* With a clock of the engine's own, cycles are its, and cmask has no definition. */
static void test_resolve_with_clock(void **state)
{
	const struct vpmu_model *m = icelake();
	struct vpmu_recipe r;

	(void)state;
	assert_int_equal(vpmu_event_resolve(m, 0x3c, -1, USER, VPMU_SIGNALS_ALL, &r), 0);
	assert_true(r.signals == S(CYCLES));
	assert_int_equal(r.quality, MODELLED);
	assert_int_equal(vpmu_event_resolve(m, 0x3c, -1, USER, NO_CLOCK | S(CYCLES), &r), 0);
	assert_true(r.signals == S(CYCLES));
	assert_int_equal(r.quality, DEFINED);
	assert_int_equal(vpmu_event_resolve(m, 0x3c | CMASK(2) | VPMU_EVTSEL_INV, -1, USER,
					    VPMU_SIGNALS_ALL, &r), 0);
	assert_true(r.signals == S(CYCLES));
	assert_int_equal(vpmu_event_resolve(m, 0x3c | CMASK(2), -1, USER,
					    VPMU_SIGNALS_ALL, &r), 0);
	assert_true(r.signals == 0);
	assert_int_equal(vpmu_event_resolve(m, 0xc0 | CMASK(1), -1, USER,
					    VPMU_SIGNALS_ALL, &r), -VPMU_ENOENT);
	assert_int_equal(vpmu_event_resolve(m, 0xc0 | CMASK(15) | VPMU_EVTSEL_INV, -1, USER,
					    VPMU_SIGNALS_ALL, &r), -VPMU_ENOENT);
	assert_int_equal(vpmu_event_resolve(m, 0xc0 | CMASK(16) | VPMU_EVTSEL_INV, -1, USER,
					    VPMU_SIGNALS_ALL, &r), 0);
	assert_true(r.signals == S(CYCLES));
	assert_int_equal(vpmu_event_resolve(m, 0xc0, -1, USER, VPMU_SIGNALS_ALL, &r), 0);
	assert_true(r.signals == S(INSTRUCTIONS));
}

/* An event counts if and only if all of its signals are supplied. */
static void test_resolve_missing_signals(void **state)
{
	const struct vpmu_model *m = icelake();
	unsigned int i, k;

	(void)state;
	for (k = 0; k < m->n_events; k++) {
		const struct vpmu_event_def *def = &m->events[k];
		uint64_t select = (uint64_t)def->umask << 8 | def->select;
		struct vpmu_recipe full, part;

		if (vpmu_event_resolve(m, select, def->fixed, USER, NO_CLOCK, &full))
			continue;
		for (i = 0; i < VPMU_SIGNAL_COUNT; i++) {
			uint64_t supplied = NO_CLOCK & ~VPMU_SIGNAL_BIT(i);
			int err = vpmu_event_resolve(m, select, def->fixed, USER, supplied,
						     &part);

			if (full.signals & VPMU_SIGNAL_BIT(i)) {
				assert_int_equal(err, -VPMU_ENOENT);
				assert_true(part.signals == 0);
				assert_int_equal(part.quality, NONE);
			} else {
				assert_int_equal(err, 0);
				assert_true(part.signals == full.signals);
			}
		}
	}
}

/* Check the architecture's rules about the kinds, whatever the encodings. */
static void test_kinds_add_up(void **state)
{
	static const uint16_t cond = 0x11c4, taken = 0x01c4, not_taken = 0x10c4;
	const struct vpmu_model *m = icelake();
	uint64_t all = 0;
	unsigned int i;

	(void)state;
	assert_true(vpmu_event_find(m, cond, -1)->signals ==
		    (vpmu_event_find(m, taken, -1)->signals |
		     vpmu_event_find(m, not_taken, -1)->signals));
	for (i = 0; i < m->n_events; i++)
		if (m->events[i].select == 0xc4 && m->events[i].umask)
			all |= m->events[i].signals;
	assert_true(all == KINDS);
}

static void test_uncounted(void **state)
{
	const struct vpmu_event_def *def = vpmu_event_find(icelake(), 0x412e, -1);

	(void)state;
	assert_string_equal(def->name, "LONGEST_LAT_CACHE.MISS");
	assert_string_equal(def->needs, "--uarch on");
	assert_int_equal(def->quality, VPMU_QUALITY_MODELLED);
	def = vpmu_event_find(icelake(), 0x81d0, -1);
	assert_string_equal(def->name, "MEM_INST_RETIRED.ALL_LOADS");
	assert_int_equal(def->quality, VPMU_QUALITY_EXACT);
}

/* A sound model of AMD, one thing changed. */
struct broken_amd {
	struct vpmu_model m;
	struct vpmu_event_def e[5];
};

static void sound_amd(struct broken_amd *b)
{
	static const struct vpmu_event_def events[] = {
		{ "LS_NOT_HALTED_CYC", 0x76, 0, 0, -1, 0, DEFINED, 0x3f, S(CYCLES), NULL, 0, 0, 0 },
		{ "EX_RET_INSTR", 0xc0, 0, 0, -1, 0, EXACT, 0x3f, S(INSTRUCTIONS), NULL, 0, 0, 0 },
		{ "EX_RET_BRN", 0xc2, 0, 0, -1, 0, DEFINED, 0x3f, S(BRANCHES), NULL, 0, 0, 0 },
		{ "EX_RET_BRN_MISP", 0xc3, 0, 0, -1, 0, NONE, 0x3f, 0, NULL, 0, 0, 0 },
		{ "EX_RET_FUSED_INSTR", 0x1d0, 0, 0, -1, 0, EXACT, 0x3f, S(BRANCHES),
		  NULL, 0, 0, 0 },
	};
	size_t bad;

	memset(b, 0, sizeof(*b));
	memcpy(b->e, events, sizeof(b->e));
	b->m.name = "zen";
	b->m.title = "Zen";
	b->m.vendor = VPMU_VENDOR_AMD;
	b->m.version = 2;
	b->m.n_gp = 6;
	b->m.width_bits = 48;
	b->m.capabilities = VPMU_CAP_AMD_EXT_CORE | VPMU_CAP_AMD_FREEZE;
	b->m.events = b->e;
	b->m.n_events = COUNT_OF(b->e);
	assert_null(vpmu_model_check(&b->m, &bad));
}

static void expect_wrong_amd(struct broken_amd *b, const char *what, size_t where)
{
	size_t bad = 12345;
	const char *wrong = vpmu_model_check(&b->m, &bad);

	assert_non_null(wrong);
	assert_string_equal(wrong, what);
	assert_int_equal(bad, where);
	sound_amd(b);
}

/* AMD's event select has four more bits, above; Intel's has not. */
static void test_amd_select(void **state)
{
	struct broken_amd b;

	(void)state;
	sound_amd(&b);
	assert_ptr_equal(vpmu_event_find(&b.m, 0xc0, -1), &b.e[1]);
	assert_ptr_equal(vpmu_event_find(&b.m, 0xc0 | 1ull << 22, -1), &b.e[1]);
	assert_ptr_equal(vpmu_event_find(&b.m, 1ull << 32 | 0xd0, -1), &b.e[4]);
	assert_null(vpmu_event_find(&b.m, 0xd0, -1));
	b.m.vendor = VPMU_VENDOR_INTEL;
	b.m.capabilities = 0;
	expect_wrong_amd(&b, "event select out of range", 4);
	b.e[4].select = 0x1000;
	expect_wrong_amd(&b, "event select out of range", 4);
}

static void test_broken_amd(void **state)
{
	struct broken_amd b;

	(void)state;
	sound_amd(&b);
	b.m.version = 3, expect_wrong_amd(&b, "version out of range", 5);
	b.m.n_gp = 3, expect_wrong_amd(&b, "number of GP counters out of range", 5);
	b.m.n_fixed = 1, expect_wrong_amd(&b, "number of fixed counters out of range", 5);
	b.m.width_bits = 40, expect_wrong_amd(&b, "width out of range", 5);
	b.m.n_arch_events = 7;
	expect_wrong_amd(&b, "number of architectural events out of range", 5);
	b.m.capabilities |= VPMU_CAP_FULL_WIDTH;
	expect_wrong_amd(&b, "unknown capability", 5);
	b.m.version = 1, expect_wrong_amd(&b, "capability of a later version", 5);
	b.m.version = 1, b.m.capabilities = 0;
	expect_wrong_amd(&b, "number of GP counters out of range", 5);
	b.m.n_gp = 4, b.m.capabilities = 0;
	expect_wrong_amd(&b, "version without its capability", 5);
	b.e[4].gp_mask = 0x40;
	expect_wrong_amd(&b, "mask names a GP counter that the model does not have", 4);
	b.e[0].select = 0x75;
	expect_wrong_amd(&b, "event of all of the vendor's CPUs missing", 5);
	b.m.events++, b.m.n_events--;
	expect_wrong_amd(&b, "event of all of the vendor's CPUs missing", 4);
}

/* Counts of AMD's events, on CPUs that have them. */
static void test_amd_resolve(void **state)
{
	static const struct {
		uint8_t family, model;
		uint64_t select, signals;
		uint8_t quality;
	} t[] = {
		{ 23, 49, 0x0076, S(INSTRUCTIONS), DEFINED },
		{ 23, 49, 0x00c0, S(INSTRUCTIONS), EXACT },
		{ 23, 49, 0x00c2, S(BRANCHES), DEFINED },
		{ 25, 1, 0x00c4, KINDS & ~S(JCC_NOT_TAKEN), DEFINED },
		{ 25, 1, 0x00c6, S(FAR), DEFINED },
		{ 25, 1, 0x00c8, S(RET), EXACT },
		{ 25, 1, 0x00cc, S(JMP_INDIRECT) | S(CALL_INDIRECT), DEFINED },
		{ 25, 1, 0x00d1, S(JCC_TAKEN) | S(JCC_NOT_TAKEN), EXACT },
		{ 25, 17, 0x0120, 0, NONE },
		{ 25, 17, 1ull << 32 | 0xc9,
		  KINDS & ~(S(FAR) | S(JCC_TAKEN) | S(JCC_NOT_TAKEN)), DEFINED },
		{ 25, 17, 1ull << 32 | 0x0120, S(INSTRUCTIONS), DEFINED },
		{ 25, 1, 1ull << 32 | 0x0120, 0, NONE },
		{ 25, 17, 0x00c3, 0, NONE },
		{ 25, 17, 0x0964, 0, NONE },
		/* FLOPS and the Merge event that would widen their counter. */
		{ 25, 17, 0x1f03, 0, NONE },
		{ 25, 17, 0xf000000ff, 0, NONE },
		{ 25, 17, 0x00ff, 0, NONE },
		{ 23, 1, 0x00c0, S(INSTRUCTIONS), EXACT },
		{ 23, 1, 0x00c8, 0, NONE },
		{ 25, 17, 0x00c0 | CMASK(2), 0, DEFINED },
		{ 25, 17, 0x00c0 | VPMU_EVTSEL_EDGE, 0, NONE },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(t); i++) {
		const struct vpmu_model *m = vpmu_model_find(VPMU_VENDOR_AMD, t[i].family,
							     t[i].model);
		struct vpmu_recipe r;
		int err = vpmu_event_resolve(m, t[i].select, -1, USER, NO_CLOCK, &r);

		if (err != (t[i].quality == NONE ? -VPMU_ENOENT : 0) ||
		    r.signals != t[i].signals || r.quality != t[i].quality)
			fail_msg("row %zu (%s %llx): %d, signals %llx, quality %d", i, m->name,
				 (unsigned long long)t[i].select, err,
				 (unsigned long long)r.signals, r.quality);
	}
}

/* A wide event's upper half would take the odd neighbour. */
static void test_amd_even(void **state)
{
	const struct vpmu_model *m = vpmu_model_find(VPMU_VENDOR_AMD, 25, 17);

	(void)state;
	assert_int_equal(vpmu_event_slots(m, 0x1f03, -1), 0x15);
	assert_int_equal(vpmu_event_slots(m, 0x00c0, -1), 0x3f);
	assert_string_equal(vpmu_event_find(m, 0xf000000ff, -1)->name, "MERGE");
}

/* Deliberate breakages: a sound model, one thing changed. */
struct broken {
	struct vpmu_model m;
	struct vpmu_event_def e[9];
};

static void sound(struct broken *b)
{
	const struct vpmu_model *m = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 0);
	size_t bad;

	b->m = *m;
	assert_int_equal(m->n_events, COUNT_OF(b->e));
	memcpy(b->e, m->events, sizeof(b->e));
	b->m.events = b->e;
	assert_null(vpmu_model_check(&b->m, &bad));
}

static void expect_wrong(struct broken *b, size_t where)
{
	size_t bad = 12345;

	assert_non_null(vpmu_model_check(&b->m, &bad));
	assert_int_equal(bad, where);
	sound(b);
}

static void test_broken_head(void **state)
{
	struct broken b;

	(void)state;
	sound(&b);
	b.m.name = NULL, expect_wrong(&b, 9);
	b.m.title = NULL, expect_wrong(&b, 9);
	b.m.vendor = 2, expect_wrong(&b, 9);
	b.m.n_models = 1, expect_wrong(&b, 9);
	b.m.version = 0, expect_wrong(&b, 9);
	b.m.version = 7, expect_wrong(&b, 9);
	b.m.version = 1, expect_wrong(&b, 9);
	b.m.n_gp = 0, expect_wrong(&b, 9);
	b.m.n_gp = 9, expect_wrong(&b, 9);
	b.m.n_fixed = 5, expect_wrong(&b, 9);
	b.m.width_bits = 31, expect_wrong(&b, 9);
	b.m.width_bits = 64, expect_wrong(&b, 9);
	b.m.n_arch_events = 9, expect_wrong(&b, 9);
	b.m.capabilities |= 6, expect_wrong(&b, 9);
	b.m.lbr_entries = 12, expect_wrong(&b, 9);
	b.m.lbr_entries = 64, expect_wrong(&b, 9);
	b.m.events = NULL, expect_wrong(&b, 9);
	b.m.n_events = 0, expect_wrong(&b, 0);
	b.m.n_fixed = 4, expect_wrong(&b, 9);   /* no event for fixed counter 3 */
	b.m.n_events = 8, expect_wrong(&b, 8);  /* branch misses missing */
}

static void test_broken_rows(void **state)
{
	struct vpmu_event_def swap;
	struct broken b;

	(void)state;
	sound(&b);
	b.e[1].name = NULL, expect_wrong(&b, 1);
	b.e[1].name = "", expect_wrong(&b, 1);
	b.e[1].name = "lower case", expect_wrong(&b, 1);
	b.e[8].select = 0x100, expect_wrong(&b, 8);
	b.e[3].gp_mask = 0x100, expect_wrong(&b, 3);
	b.e[4].gp_mask = 0, expect_wrong(&b, 4);
	b.e[4].fixed = -2, expect_wrong(&b, 4);
	b.e[4].fixed = 3, expect_wrong(&b, 4);
	b.e[4].fixed = 1, expect_wrong(&b, 4);
	b.e[6].fixed = -1, expect_wrong(&b, 9);
	b.e[6].signals = VPMU_SIGNAL_BIT(VPMU_SIGNAL_COUNT), expect_wrong(&b, 6);
	b.e[6].quality = 4, expect_wrong(&b, 6);
	b.e[6].quality = NONE, expect_wrong(&b, 6);
	b.e[6].signals = 0, expect_wrong(&b, 6);
	b.e[6].shift = 16, expect_wrong(&b, 6);
	b.e[1].needs = NULL, expect_wrong(&b, 1);
	b.e[1].needs = "", expect_wrong(&b, 1);
	b.e[6].when = 1, expect_wrong(&b, 6);
	b.e[6].signals = U(LOADS), expect_wrong(&b, 6);
	b.e[1].signals = 0, b.e[1].shift = 1, expect_wrong(&b, 1);
	b.e[2].umask = 0x41, expect_wrong(&b, 2);  /* twice */
	b.e[2].umask = 0x40, expect_wrong(&b, 2);  /* not sorted */
	b.e[2].umask = 0x4e, expect_wrong(&b, 9);  /* architectural event missing */
	swap = b.e[7], b.e[7] = b.e[8], b.e[8] = swap, expect_wrong(&b, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_model_is_sound),
		cmocka_unit_test(test_model_find),
		cmocka_unit_test(test_find_everything),
		cmocka_unit_test(test_find_umask2),
		cmocka_unit_test(test_stores),
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_resolve_slots),
		cmocka_unit_test(test_resolve_with_clock),
		cmocka_unit_test(test_resolve_modelled),
		cmocka_unit_test(test_resolve_missing_signals),
		cmocka_unit_test(test_kinds_add_up),
		cmocka_unit_test(test_uncounted),
		cmocka_unit_test(test_amd_select),
		cmocka_unit_test(test_broken_amd),
		cmocka_unit_test(test_amd_resolve),
		cmocka_unit_test(test_amd_even),
		cmocka_unit_test(test_broken_head),
		cmocka_unit_test(test_broken_rows),
	};

	return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
