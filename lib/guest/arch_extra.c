// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Registers that say more of events than a selector can: which offcore responses are
 * counted, and from which latency on a load is sampled. They exist where a model of the
 * micro-architecture counts their events.
 *
 * Source: SDM vol. 3, "Off-core Response Performance Monitoring", "Load Latency
 * Performance Monitoring Facility"; Linux, intel_snb_extra_regs[].
 */
#include <vpmu/state.h>

#include "arch_event.h"
#include "arch_extra.h"
#include "arch_internal.h"

#define EXTRA_LDLAT_VALID	0xffffull

static const struct vpmu_event_def *extra_row(const struct vpmu_model *m, uint8_t extra)
{
	unsigned int i;

	for (i = 0; i < m->n_events; i++)
		if (m->events[i].extra == extra)
			return &m->events[i];
	return NULL;
}

/* True if the provider counts the event that a register belongs to. */
static bool extra_counted(const struct vpmu_arch *v, uint8_t extra)
{
	const struct vpmu_event_def *def = extra_row(v->model, extra);
	struct vpmu_event_attr attr;

	if (!def)
		return false;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.banks = ARCH_BANKS;
	attr.pinned = true;
	attr.fixed = -1;
	attr.slot = -1;
	attr.select = def->select | (uint64_t)def->umask << 8;
	return v->provider->ops->quality(v->provider, &attr) != VPMU_QUALITY_NONE;
}

void arch_extra_resolve(struct vpmu_arch *v)
{
	if (v->model->offcore && extra_counted(v, VPMU_EXTRA_OFFCORE_0))
		v->has[ARCH_HAS_OFFCORE] = 2;
	if (v->pebs.on && v->ops.set_load_latency && extra_counted(v, VPMU_EXTRA_LDLAT))
		v->has[ARCH_HAS_LDLAT] = 1;
}

bool arch_extra_any(const struct vpmu_arch *v)
{
	return v->has[ARCH_HAS_OFFCORE] || v->has[ARCH_HAS_LDLAT];
}

bool arch_extra_offcore(const struct vpmu_arch *v, uint64_t select, uint64_t *value)
{
	const struct vpmu_event_def *def;

	if (!v->has[ARCH_HAS_OFFCORE])
		return false;
	def = vpmu_event_find(v->model, select, -1);
	if (!def || def->extra < VPMU_EXTRA_OFFCORE_0 || def->extra > VPMU_EXTRA_OFFCORE_1)
		return false;
	*value = v->extra.offcore[def->extra - VPMU_EXTRA_OFFCORE_0];
	return true;
}

static void extra_set_ldlat(struct vpmu_arch *v, uint64_t ldlat)
{
	if (ldlat == v->extra.ldlat)
		return;
	v->extra.ldlat = ldlat;
	v->ops.set_load_latency(v->ctx, (uint32_t)ldlat);
}

void arch_extra_clear(struct vpmu_arch *v)
{
	vpmu_assert(!v->made);
	memset(v->extra.offcore, 0, sizeof(v->extra.offcore));
	extra_set_ldlat(v, 0);
}

enum vpmu_result arch_extra_offcore_read(struct vpmu_arch *v, unsigned int i,
					 uint64_t *value)
{
	*value = v->extra.offcore[i];
	return VPMU_HANDLED;
}

/* Counters of offcore responses may count other ones from now on. */
enum vpmu_result arch_extra_offcore_write(struct vpmu_arch *v, unsigned int i,
					  uint64_t value)
{
	uint64_t response;
	unsigned int pmc;

	if (value & ~v->model->offcore)
		return VPMU_FAULT;
	if (value == v->extra.offcore[i])
		return VPMU_HANDLED;
	v->extra.offcore[i] = value;
	for (pmc = 0; pmc < v->n_gp; pmc++)
		if (arch_extra_offcore(v, v->r.evtsel[pmc] & v->select, &response))
			arch_mark(v, 1u << pmc);
	return VPMU_HANDLED;
}

enum vpmu_result arch_extra_ldlat_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	*value = v->extra.ldlat;
	return VPMU_HANDLED;
}

enum vpmu_result arch_extra_ldlat_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	if (value & ~EXTRA_LDLAT_VALID)
		return VPMU_FAULT;
	arch_event_begin(v);
	extra_set_ldlat(v, value);
	(void)arch_event_end(v);
	return VPMU_HANDLED;
}

void arch_extra_put(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	vpmu_state_put(c, v->extra.offcore[0], 8);
	vpmu_state_put(c, v->extra.offcore[1], 8);
	vpmu_state_put(c, v->extra.ldlat, 8);
}

int arch_extra_check(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	uint64_t offcore = v->has[ARCH_HAS_OFFCORE] ? v->model->offcore : 0;
	uint64_t ldlat = v->has[ARCH_HAS_LDLAT] ? EXTRA_LDLAT_VALID : 0;
	uint64_t bad;

	bad = vpmu_state_get(c, 8) & ~offcore;
	bad |= vpmu_state_get(c, 8) & ~offcore;
	bad |= vpmu_state_get(c, 8) & ~ldlat;
	return bad || c->error ? -VPMU_EINVAL : 0;
}

void arch_extra_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	if (!c->data) {
		arch_extra_clear(v);
		return;
	}
	v->extra.offcore[0] = vpmu_state_get(c, 8);
	v->extra.offcore[1] = vpmu_state_get(c, 8);
	extra_set_ldlat(v, vpmu_state_get(c, 8));
}
