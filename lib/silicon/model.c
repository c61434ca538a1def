// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The list of models, the choice of one by family and model number, and the
 * check of a model's data.
 */
#include <vpmu/lbr.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>

#include "models/models.h"

/* The fixed counters' events: the architectural ones, or REF_TSC (00/03). */
static const uint16_t fixed_event[] = { 0x00c0, 0x003c, 0x0300, 0x01a4 };

/* Cycles, instructions, branches, mispredicted branches: all AMD CPUs have these. */
static const uint16_t amd_event[] = { 0x0076, 0x00c0, 0x00c2, 0x00c3 };

/* The generic models come last: the first match wins. */
static const struct vpmu_model *const model_all[] = {
	&vpmu_model_bonnell,
	&vpmu_model_broadwell,
	&vpmu_model_core2,
	&vpmu_model_core_duo,
	&vpmu_model_goldmont,
	&vpmu_model_haswell,
	&vpmu_model_icelake_server,
	&vpmu_model_ivy_bridge,
	&vpmu_model_knights,
	&vpmu_model_nehalem,
	&vpmu_model_sandy_bridge,
	&vpmu_model_sapphire_rapids,
	&vpmu_model_skylake_client,
	&vpmu_model_granite_rapids,
	&vpmu_model_clearwater_forest,
	&vpmu_model_skylake_server,
	&vpmu_model_tremont,
	&vpmu_model_westmere,
	&vpmu_model_zen2,
	&vpmu_model_zen3,
	&vpmu_model_zen4,
	&vpmu_model_generic,
	&vpmu_model_generic_amd,
};

const struct vpmu_model *vpmu_model_at(size_t i)
{
	return i < COUNT_OF(model_all) ? model_all[i] : NULL;
}

static bool model_matches(const struct vpmu_model *m, enum vpmu_vendor vendor,
		    uint8_t family, uint8_t model)
{
	unsigned int i;

	if (m->vendor != vendor || (m->family && m->family != family))
		return false;
	for (i = 0; i < m->n_models; i++)
		if (m->models[i] == model)
			return true;
	return !m->n_models;
}

const struct vpmu_model *vpmu_model_find(enum vpmu_vendor vendor, uint8_t family,
					 uint8_t model)
{
	size_t i;

	for (i = 0; i < COUNT_OF(model_all); i++)
		if (model_matches(model_all[i], vendor, family, model))
			return model_all[i];
	return NULL;
}

static bool model_name_ok(const char *name)
{
	const char *p;

	if (!name || !*name)
		return false;
	for (p = name; *p; p++)
		if (!((*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
		      *p == '_' || *p == '.'))
			return false;
	return true;
}

/* Only PerfMonV2 is a version; there are at least four counters, and none is fixed. */
static const char *check_amd(const struct vpmu_model *m)
{
	const uint64_t known = VPMU_CAP_AMD_EXT_CORE | VPMU_CAP_AMD_FREEZE |
			       VPMU_CAP_AMD_SVM | VPMU_CAP_AMD_LBR;

	if (m->version > 2)
		return "version out of range";
	if (m->n_gp < 4 || (m->n_gp > 4 && !(m->capabilities & VPMU_CAP_AMD_EXT_CORE)))
		return "number of GP counters out of range";
	if (m->n_fixed)
		return "number of fixed counters out of range";
	if (m->width_bits != 48)
		return "width out of range";
	if (m->n_arch_events)
		return "number of architectural events out of range";
	if (m->version_most || m->extensions)
		return "extension of another vendor";
	if (m->capabilities & ~known)
		return "unknown capability";
	if (m->capabilities & (VPMU_CAP_AMD_FREEZE | VPMU_CAP_AMD_LBR) && m->version < 2)
		return "capability of a later version";
	if (m->version == 2 && !(m->capabilities & VPMU_CAP_AMD_EXT_CORE))
		return "version without its capability";
	return NULL;
}

static const char *check_intel(const struct vpmu_model *m)
{
	uint64_t lbr = m->capabilities & VPMU_CAP_LBR;
	uint64_t pebs = m->capabilities & VPMU_CAP_PEBS;
	uint64_t format = (pebs & VPMU_CAP_PEBS_FORMAT(0xf)) >> VPMU_CAP_PEBS_FORMAT_SHIFT;

	if (m->capabilities & ~(VPMU_CAP_LBR | VPMU_CAP_PEBS | VPMU_CAP_SMM_FREEZE |
				VPMU_CAP_FULL_WIDTH))
		return "unknown capability";
	if (m->version_most && (m->version_most <= m->version || m->version_most > 6))
		return "version to be asked for out of range";
	if (m->extensions & ~(VPMU_EXT_UMASK2 | VPMU_EXT_EQ | VPMU_EXT_RDPMC_USER |
			      VPMU_EXT_RELOAD))
		return "unknown extension";
	if (m->extensions && m->version < 6 && m->version_most < 6)
		return "extension of a later version";
	if (lbr > VPMU_CAP_LBR_INFO && lbr != VPMU_CAP_LBR_ARCH)
		return "unknown format of branch records";
	if (pebs != VPMU_CAP_PEBS_ARCH &&
	    (format > 5 || !(pebs & VPMU_CAP_PEBS_BASELINE) != (format < 4)))
		return "unknown format of PEBS records";
	if (m->lbr_counters >> (lbr == VPMU_CAP_LBR_ARCH ? VPMU_LBR_LOG_COUNTERS : 0))
		return "counters that branch records cannot log";
	if (m->pdist && pebs != VPMU_CAP_PEBS_ARCH)
		return "PDIST without architectural PEBS";
	if (m->topdown && (m->n_fixed < 4 || (m->topdown != 4 && m->topdown != 8)))
		return "fields of PERF_METRICS out of range";
	if (pebs && (m->version < 2 || (m->version > 5) != (pebs == VPMU_CAP_PEBS_ARCH)))
		return "PEBS of another version";
	return NULL;
}

static bool entries_ok(uint8_t n)
{
	return n <= VPMU_LBR_ENTRIES && !(n & (n - 1u));
}

static const char *check_head(const struct vpmu_model *m)
{
	if (!m->name || !m->title)
		return "no name";
	if (m->vendor > VPMU_VENDOR_AMD)
		return "unknown vendor";
	if (m->n_models && !m->models)
		return "no list of models";
	if (m->version < 1 || m->version > 6)
		return "version out of range";
	if (m->n_gp < 1 || m->n_gp > 8)
		return "number of GP counters out of range";
	if (m->n_fixed > 4 || (m->version < 2 && m->n_fixed))
		return "number of fixed counters out of range";
	if (m->width_bits < 32 || m->width_bits > 63)
		return "width out of range";
	if (m->n_arch_events > VPMU_ARCH_EVENTS)
		return "number of architectural events out of range";
	if (m->lbr_entries && !entries_ok(m->lbr_entries))
		return "number of branch records out of range";
	if (!m->events || !m->n_events)
		return "no events";
	return m->vendor == VPMU_VENDOR_AMD ? check_amd(m) : check_intel(m);
}

/* An event is counted, perhaps only with an option, or it is never counted. */
static const char *check_source(const struct vpmu_event_def *def)
{
	if (def->signals & ~VPMU_SIGNALS_ALL)
		return "unknown signal";
	if (def->quality > VPMU_QUALITY_MODELLED)
		return "unknown quality";
	if (def->quality == VPMU_QUALITY_NONE && (def->signals || def->needs))
		return "counted, but of no quality";
	if (def->quality != VPMU_QUALITY_NONE && !def->signals && !def->needs)
		return "not counted, but of a quality";
	if (def->needs && !*def->needs)
		return "empty option";
	if (!def->needs && def->signals & VPMU_SIGNALS_UARCH & ~S(CYCLES))
		return "modelled without an option";
	if (def->when & ~(VPMU_EVTSEL_CONDITION >> 16))
		return "condition out of range";
	if (def->shift > 15 || (def->shift && !def->signals))
		return "shift out of range";
	return NULL;
}

static const char *check_row(const struct vpmu_model *m, const struct vpmu_event_def *def)
{
	if (!model_name_ok(def->name))
		return "bad name";
	if (def->select > (m->vendor == VPMU_VENDOR_AMD ? 0xfff : 0xff))
		return "event select out of range";
	if (def->umask2 && !(m->extensions & VPMU_EXT_UMASK2))
		return "UnitMask2 that the model does not have";
	if (def->gp_mask >> m->n_gp)
		return "mask names a GP counter that the model does not have";
	if (def->fixed < -1 || def->fixed >= m->n_fixed)
		return "fixed counter that the model does not have";
	if (!def->gp_mask && def->fixed < 0)
		return "no counter can count it";
	return check_source(def);
}

static bool sorted(const struct vpmu_event_def *a, const struct vpmu_event_def *b)
{
	if (a->select != b->select)
		return a->select < b->select;
	if (a->umask != b->umask)
		return a->umask < b->umask;
	return a->umask2 < b->umask2 || (a->umask2 == b->umask2 && a->when < b->when);
}

static uint16_t encoding(const struct vpmu_event_def *def)
{
	return (uint16_t)(def->umask << 8 | def->select);
}

static bool fixed_ok(const struct vpmu_event_def *def)
{
	return encoding(def) == fixed_event[def->fixed] && !def->umask2;
}

static const char *check_rows(const struct vpmu_model *m, size_t *bad)
{
	const char *wrong = NULL;
	size_t i;

	for (i = 0; i < m->n_events && !wrong; i++) {
		const struct vpmu_event_def *def = &m->events[i];

		*bad = i;
		wrong = check_row(m, def);
		if (!wrong && i && !sorted(def - 1, def))
			wrong = "not sorted, or twice";
		if (!wrong && def->fixed >= 0 && m->vendor == VPMU_VENDOR_INTEL &&
		    !fixed_ok(def))
			wrong = "not the event of its fixed counter";
	}
	return wrong;
}

static const char *check_arch_events(const struct vpmu_model *m)
{
	unsigned int i;

	for (i = 0; i < m->n_arch_events; i++)
		if (!vpmu_event_find(m, vpmu_arch_event[i], -1))
			return "architectural event missing";
	for (i = 0; i < m->n_fixed; i++)
		if (!vpmu_event_find(m, 0, (int)i))
			return "event of a fixed counter missing";
	for (i = 0; m->vendor == VPMU_VENDOR_AMD && i < COUNT_OF(amd_event); i++)
		if (!vpmu_event_find(m, amd_event[i], -1))
			return "event of all of the vendor's CPUs missing";
	return NULL;
}

const char *vpmu_model_check(const struct vpmu_model *model, size_t *bad)
{
	const char *wrong = check_head(model);

	*bad = model->n_events;
	if (!wrong)
		wrong = check_rows(model, bad);
	if (!wrong) {
		*bad = model->n_events;
		wrong = check_arch_events(model);
	}
	return wrong;
}
