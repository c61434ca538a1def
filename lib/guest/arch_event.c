// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The provider's events of one vCPU: batches, values, deadlines. */
#include "arch_event.h"
#include "arch_internal.h"

void arch_event_begin(struct vpmu_arch *v)
{
	v->batch++;
	if (v->provider->ops->begin)
		v->provider->ops->begin(v->provider);
}

bool arch_event_end(struct vpmu_arch *v)
{
	vpmu_assert(v->batch);
	/* An event that could not be placed stands still; its state says so. */
	if (v->provider->ops->commit && v->provider->ops->commit(v->provider) < 0)
		v->unplaced = true;
	return !--v->batch;
}

struct vpmu_event *arch_event_of(struct vpmu_arch *v, unsigned int pmc)
{
	uint8_t *events = (uint8_t *)(v + 1);

	vpmu_assert(pmc < v->n_pmc || (v->lbr.kind && pmc == v->n_pmc));
	return (struct vpmu_event *)(void *)
		(events + (size_t)pmc * v->provider->ops->event_size);
}

uint64_t arch_event_read(struct vpmu_arch *v, unsigned int pmc)
{
	uint64_t value = v->r.counter[pmc];

	if (v->made & 1u << pmc) {
		value += v->provider->ops->read(arch_event_of(v, pmc));
		value -= v->event[pmc].base;
	}
	return value & v->valid.counter;
}

void arch_event_arm(struct vpmu_arch *v, unsigned int pmc, uint64_t value)
{
	uint64_t left = v->eager >> pmc & 1 ? 1 : v->valid.counter + 1 - value;

	vpmu_assert(v->batch && v->made >> pmc & 1);
	v->provider->ops->arm(arch_event_of(v, pmc), left);
}

void arch_event_rearm(struct vpmu_arch *v, uint32_t pmcs)
{
	unsigned int pmc;

	if (!(pmcs & v->made))
		return;
	arch_event_begin(v);
	for (pmc = 0; pmc < v->n_pmc; pmc++)
		if (pmcs & v->made & 1u << pmc)
			arch_event_arm(v, pmc, arch_event_read(v, pmc));
	(void)arch_event_end(v);
}

void arch_event_put(struct vpmu_arch *v, unsigned int pmc, uint64_t value)
{
	vpmu_assert(!(value & ~v->valid.counter));
	if (!(v->made & 1u << pmc)) {
		v->r.counter[pmc] = value;
		return;
	}
	arch_event_begin(v);
	v->r.counter[pmc] = value;
	v->event[pmc].base = v->provider->ops->read(arch_event_of(v, pmc));
	arch_event_arm(v, pmc, value);
	(void)arch_event_end(v);
}

/* A reload value is 32 bits, sign-extended, like a write to the legacy address. */
static uint64_t event_reload_value(const struct vpmu_arch *v, unsigned int pmc)
{
	uint64_t value = v->reload.value[pmc];

	if (value >> 31 & 1)
		value |= ~(uint64_t)UINT32_MAX;
	return value & v->valid.counter;
}

uint32_t arch_event_reloaded(const struct vpmu_arch *v, uint32_t pmcs)
{
	uint32_t reloaded = 0;
	unsigned int pmc;

	for (pmc = 0; pmc < v->n_pmc; pmc++)
		if (v->reload.by[pmc] & pmcs)
			reloaded |= 1u << pmc;
	return reloaded;
}

void arch_event_reload(struct vpmu_arch *v, uint32_t pmcs)
{
	unsigned int pmc;

	if (!pmcs)
		return;
	arch_event_begin(v);
	for (pmc = 0; pmc < v->n_pmc; pmc++)
		if (pmcs >> pmc & 1)
			arch_event_put(v, pmc, event_reload_value(v, pmc));
	(void)arch_event_end(v);
}

void arch_raise_status(struct vpmu_arch *v, uint64_t bits)
{
	bits &= v->valid.status;
	if (bits & ~v->r.status)
		v->r.status |= bits | (VPMU_STATUS_CHANGED & v->valid.status);
}
