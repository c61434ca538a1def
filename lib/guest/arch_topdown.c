// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * PERF_METRICS: the issue slots that fixed counter 3 has counted, split by class in
 * 255ths. The register is computed from counts of slots by class; a value that a guest
 * writes is turned into such counts by the counter's value, so it writes the counter first.
 *
 * The classes go on while the counter does and GLOBAL_CTRL.EN_PERF_METRICS is set. When
 * the counter has lost its hardware they stand still.
 *
 * Source: SDM vol. 3, "Performance Metrics"; Linux, intel_update_topdown_event().
 */
#include <vpmu/state.h>

#include "arch_event.h"
#include "arch_internal.h"
#include "arch_topdown.h"

#define METRICS_ONE	255u /* all slots */
#define METRICS_SMALL	24u  /* bits of what is divided, so that 32 suffice */

static unsigned int topdown_pmc(const struct vpmu_arch *v)
{
	return v->n_gp + ARCH_FIXED_SLOTS;
}

static bool topdown_provided(const struct vpmu_provider_ops *p)
{
	return p->size >= offsetof(struct vpmu_provider_ops, topdown) + sizeof(p->topdown) &&
	       p->topdown;
}

bool arch_topdown_counted(const struct vpmu_arch_config *cfg)
{
	struct vpmu_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.banks = ARCH_BANKS;
	attr.pinned = true;
	attr.fixed = ARCH_FIXED_SLOTS;
	attr.slot = -1;
	return cfg->provider->ops->quality(cfg->provider, &attr) != VPMU_QUALITY_NONE;
}

void arch_topdown_resolve(struct vpmu_arch *v)
{
	if (v->n_fixed <= ARCH_FIXED_SLOTS || !v->capabilities || !v->model->topdown ||
	    !topdown_provided(v->provider->ops))
		return;
	v->topdown_fields = v->model->topdown;
	v->capabilities |= VPMU_CAP_METRICS;
	v->has[ARCH_HAS_METRICS] = 1;
	v->valid.global_ctrl |= VPMU_STATUS_METRICS;
	v->valid.status |= VPMU_STATUS_METRICS;
	if (v->valid.status_set)
		v->valid.status_set |= VPMU_STATUS_METRICS;
}

bool arch_topdown_is(const struct vpmu_arch *v, unsigned int pmc)
{
	return v->topdown_fields && pmc == topdown_pmc(v);
}

void arch_topdown_made(struct vpmu_arch *v)
{
	vpmu_assert(v->made >> topdown_pmc(v) & 1);
	memset(v->topdown.base, 0, sizeof(v->topdown.base));
}

void arch_topdown_look(struct vpmu_arch *v)
{
	struct arch_topdown *t = &v->topdown;
	uint64_t now[VPMU_TOPDOWN];
	unsigned int i;

	if (!v->topdown_fields || !(v->made >> topdown_pmc(v) & 1))
		return;
	v->provider->ops->topdown(arch_event_of(v, topdown_pmc(v)), now);
	for (i = 0; i < VPMU_TOPDOWN; i++) {
		if (v->r.global_ctrl & VPMU_STATUS_METRICS)
			t->slots[i] += now[i] - t->base[i];
		t->base[i] = now[i];
	}
}

static uint64_t topdown_all(const struct arch_topdown *t)
{
	uint64_t all = 0;
	unsigned int i;

	for (i = 0; i < VPMU_TOPDOWN_CLASSES; i++)
		all += t->slots[i];
	return all;
}

/* @part of @all in 255ths, to the nearest. */
static uint32_t topdown_field(uint64_t part, uint64_t all)
{
	while (all >> METRICS_SMALL) {
		all >>= 1;
		part >>= 1;
	}
	if (part > all)
		part = all;
	return ((uint32_t)part * METRICS_ONE + (uint32_t)all / 2) / (uint32_t)all;
}

/* Sums are rounded, not classes, so that the four fields are 255 together. */
uint64_t arch_topdown_value(struct vpmu_arch *v)
{
	const struct arch_topdown *t = &v->topdown;
	uint64_t all, sum = 0, value = 0;
	uint32_t before = 0, upto, field[VPMU_TOPDOWN_CLASSES];
	unsigned int i;

	arch_topdown_look(v);
	all = topdown_all(t);
	if (!all)
		return t->raw;
	for (i = 0; i < VPMU_TOPDOWN_CLASSES; i++) {
		sum += t->slots[i];
		upto = topdown_field(sum, all);
		field[i] = upto - before;
		before = upto;
		value |= (uint64_t)field[i] << (8 * i);
	}
	for (; i < v->topdown_fields; i++) {
		upto = topdown_field(t->slots[i], all);
		before = field[i - VPMU_TOPDOWN_CLASSES];
		value |= (uint64_t)(upto < before ? upto : before) << (8 * i);
	}
	return value;
}

/* @field 255ths of @slots, by digits, as 32-bit CPUs divide 32 bits. */
static uint64_t topdown_slots(uint64_t slots, uint64_t field)
{
	uint64_t product = slots * field, quotient = 0;
	uint32_t rest = 0;
	int shift;

	for (shift = 48; shift >= 0; shift -= 16) {
		rest = rest << 16 | (uint32_t)(product >> shift & 0xffff);
		quotient = quotient << 16 | rest / METRICS_ONE;
		rest %= METRICS_ONE;
	}
	return quotient;
}

enum vpmu_result arch_topdown_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	*value = arch_topdown_value(v);
	return VPMU_HANDLED;
}

enum vpmu_result arch_topdown_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	struct arch_topdown *t = &v->topdown;
	uint64_t slots = arch_event_read(v, topdown_pmc(v));

	if (v->topdown_fields < VPMU_TOPDOWN && value >> (8 * v->topdown_fields))
		return VPMU_FAULT;
	arch_topdown_look(v);
	t->raw = value;
	for (i = 0; i < VPMU_TOPDOWN; i++)
		t->slots[i] = topdown_slots(slots, value >> (8 * i) & 0xff);
	v->touched |= 1u << topdown_pmc(v);
	return VPMU_HANDLED;
}

/*
 * The classes have as many bits as the counter. When they can no longer hold the slots,
 * the status says so, and they go on with the same fractions of half the slots.
 */
uint64_t arch_topdown_overflow(struct vpmu_arch *v)
{
	unsigned int i;

	arch_topdown_look(v);
	if (topdown_all(&v->topdown) <= v->valid.counter)
		return 0;
	for (i = 0; i < VPMU_TOPDOWN; i++)
		v->topdown.slots[i] >>= 1;
	return VPMU_STATUS_METRICS;
}

void arch_topdown_put(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	unsigned int i;

	arch_topdown_look(v);
	vpmu_state_put(c, v->topdown.raw, 8);
	for (i = 0; i < VPMU_TOPDOWN; i++)
		vpmu_state_put(c, v->topdown.slots[i], 8);
}

int arch_topdown_check(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	uint64_t raw = vpmu_state_get(c, 8), bad = 0;
	unsigned int i;

	if (v->topdown_fields < VPMU_TOPDOWN)
		bad = raw >> (8 * v->topdown_fields);
	for (i = 0; i < VPMU_TOPDOWN; i++)
		bad |= vpmu_state_get(c, 8) >> 60;
	return bad || c->error ? -VPMU_EINVAL : 0;
}

void arch_topdown_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	unsigned int i;

	memset(&v->topdown, 0, sizeof(v->topdown));
	if (!c->data)
		return;
	v->topdown.raw = vpmu_state_get(c, 8);
	for (i = 0; i < VPMU_TOPDOWN; i++)
		v->topdown.slots[i] = vpmu_state_get(c, 8);
}
