// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <vpmu/direct.h>

#include "totals.h"

struct direct_event {
	struct vpmu_event head;
	uint64_t period; /* its attr's */
	uint32_t slot;   /* or DIRECT_FREE */
	bool enabled;    /* without a slot */
};

#define DIRECT_FREE	VPMU_SLOTS_MAX

static struct vpmu_direct *direct_of(struct vpmu_provider *p)
{
	return (struct vpmu_direct *)p; /* provider is its first member */
}

static struct direct_event *direct_event(struct vpmu_event *ev)
{
	return (struct direct_event *)ev;
}

static void direct_overflow(void *owner, unsigned int slot)
{
	struct vpmu_direct *d = owner;
	struct vpmu_event *ev = d->event[slot];

	if (ev && ev->overflowed)
		ev->overflowed(ev);
}

int vpmu_direct_init(struct vpmu_direct *d, const struct vpmu_silicon_config *cfg)
{
	struct vpmu_silicon_config own = *cfg;
	int err;

	own.overflow = direct_overflow;
	own.owner = d;
	err = vpmu_silicon_init(&d->silicon, &own);
	if (err)
		return err;
	memset(d->event, 0, sizeof(d->event));
	d->enabled = 0;
	d->provider.ops = &vpmu_direct_ops;
	d->provider.model = cfg->model;
	d->provider.n_gp = cfg->model->n_gp;
	d->provider.n_fixed = cfg->model->n_fixed;
	return 0;
}

static int direct_resolve(const struct vpmu_direct *d,
			  const struct vpmu_event_attr *attr, struct vpmu_recipe *recipe)
{
	return vpmu_attr_resolve(d->provider.model, attr, d->silicon.cfg.supplied, recipe);
}

static enum vpmu_quality direct_quality(struct vpmu_provider *p,
					const struct vpmu_event_attr *attr)
{
	struct vpmu_recipe recipe;

	if (attr->no_counter)
		return VPMU_QUALITY_EXACT;
	direct_resolve(direct_of(p), attr, &recipe);
	return recipe.quality;
}

/*
 * The slot of an event that resolves. The guest's own counter is taken whatever
 * the table's mask says: what hardware counts there is not documented.
 */
static int find_slot(const struct vpmu_direct *d, const struct vpmu_event_attr *attr)
{
	const struct vpmu_model *model = d->provider.model;
	int i, n = model->n_gp + model->n_fixed;
	uint32_t allowed;

	if (attr->slot >= n)
		return -VPMU_EINVAL;
	if (attr->slot >= 0)
		return d->event[attr->slot] ? -VPMU_EBUSY : attr->slot;
	allowed = vpmu_event_slots(model, attr->select, attr->fixed);
	for (i = 0; i < n; i++)
		if (allowed >> i & 1 && !d->event[i])
			return i;
	return -VPMU_EBUSY;
}

/* An event without a counter: the guest is alone, so it counts whenever it is enabled. */
static int direct_create_free(struct vpmu_provider *p, struct vpmu_event *ev,
			      const struct vpmu_event_attr *attr)
{
	if (!attr->shared)
		return -VPMU_EINVAL;
	ev->provider = p;
	ev->quality = VPMU_QUALITY_EXACT;
	direct_event(ev)->slot = DIRECT_FREE;
	direct_event(ev)->enabled = false;
	return 0;
}

static int direct_create(struct vpmu_provider *p, struct vpmu_event *ev,
			 const struct vpmu_event_attr *attr)
{
	struct direct_event *own = direct_event(ev);
	struct vpmu_direct *d = direct_of(p);
	struct vpmu_recipe recipe;
	int slot, err;

	if (attr->size < sizeof(*attr))
		return -VPMU_EINVAL;
	if (attr->no_counter)
		return direct_create_free(p, ev, attr);
	err = direct_resolve(d, attr, &recipe);
	if (err)
		return err;
	slot = find_slot(d, attr);
	if (slot < 0)
		return slot;
	ev->provider = p;
	ev->quality = recipe.quality;
	own->period = attr->period;
	own->slot = (uint32_t)slot;
	own->enabled = false;
	d->event[slot] = ev;
	vpmu_silicon_configure(&d->silicon, own->slot, &recipe);
	return 0;
}

static void direct_release(struct vpmu_event *ev)
{
	struct vpmu_direct *d = direct_of(ev->provider);
	uint32_t slot = direct_event(ev)->slot;

	if (slot == DIRECT_FREE)
		return;
	d->event[slot] = NULL;
	d->enabled &= ~(1u << slot);
	vpmu_silicon_free(&d->silicon, slot);
}

static int direct_enable(struct vpmu_event *ev)
{
	struct vpmu_direct *d = direct_of(ev->provider);
	uint32_t slot = direct_event(ev)->slot;

	direct_event(ev)->enabled = true;
	if (slot == DIRECT_FREE)
		return 0;
	d->enabled |= 1u << slot;
	vpmu_silicon_start(&d->silicon, slot);
	return 0;
}

static void direct_disable(struct vpmu_event *ev)
{
	struct vpmu_direct *d = direct_of(ev->provider);
	uint32_t slot = direct_event(ev)->slot;

	direct_event(ev)->enabled = false;
	if (slot == DIRECT_FREE)
		return;
	d->enabled &= ~(1u << slot);
	vpmu_silicon_stop(&d->silicon, slot);
}

static uint64_t direct_read(struct vpmu_event *ev)
{
	uint32_t slot = direct_event(ev)->slot;

	return slot == DIRECT_FREE ? 0
		: vpmu_silicon_read(&direct_of(ev->provider)->silicon, slot);
}

static void direct_arm(struct vpmu_event *ev, uint64_t left)
{
	struct direct_event *own = direct_event(ev);

	if (own->slot == DIRECT_FREE)
		return;
	vpmu_silicon_arm(&direct_of(ev->provider)->silicon, own->slot,
			 own->period ? left : VPMU_NEVER, own->period);
}

static enum vpmu_event_state direct_state(const struct vpmu_event *ev)
{
	const struct direct_event *own = (const struct direct_event *)ev;

	return own->enabled ? VPMU_EVENT_ACTIVE : VPMU_EVENT_OFF;
}

static void direct_begin(struct vpmu_provider *p)
{
	vpmu_silicon_begin(&direct_of(p)->silicon);
}

static int direct_commit(struct vpmu_provider *p)
{
	vpmu_silicon_commit(&direct_of(p)->silicon);
	return 0;
}

static int direct_save(struct vpmu_provider *p, void *buf, size_t size, size_t *used)
{
	return vpmu_totals_save(&direct_of(p)->silicon, buf, size, used);
}

static int direct_load(struct vpmu_provider *p, const void *buf, size_t size)
{
	struct vpmu_direct *d = direct_of(p);
	unsigned int i;

	for (i = 0; i < VPMU_SLOTS_MAX; i++)
		if (d->event[i])
			return -VPMU_EBUSY;
	return vpmu_totals_load(&d->silicon, buf, size);
}

/* Held before it is read, and read before it is let go. */
static uint64_t direct_clock(struct vpmu_provider *p, bool hold)
{
	struct vpmu_silicon *s = &direct_of(p)->silicon;
	uint64_t now;

	vpmu_silicon_begin(s);
	if (hold)
		vpmu_silicon_hold_clock(s, true);
	now = vpmu_silicon_clock(s);
	if (!hold)
		vpmu_silicon_hold_clock(s, false);
	vpmu_silicon_commit(s);
	return now;
}

static void direct_topdown(struct vpmu_event *ev, uint64_t *classes)
{
	vpmu_silicon_topdown(&direct_of(ev->provider)->silicon, direct_event(ev)->slot, classes);
}

const struct vpmu_provider_ops vpmu_direct_ops = {
	.size = sizeof(struct vpmu_provider_ops),
	.event_size = (sizeof(struct direct_event) + 7) & ~7u,
	.name = "direct",
	.quality = direct_quality,
	.create = direct_create,
	.release = direct_release,
	.enable = direct_enable,
	.disable = direct_disable,
	.read = direct_read,
	.arm = direct_arm,
	.state = direct_state,
	.begin = direct_begin,
	.commit = direct_commit,
	.save = direct_save,
	.load = direct_load,
	.clock = direct_clock,
	.topdown = direct_topdown,
};
