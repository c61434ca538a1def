/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Saving and loading. Counter numbers of the saved PMU and of the one that loads
 * may differ (it may have more GP counters), so sets of counters are saved in the
 * registers' layout.
 *
 * Body of the section VPMU_STATE_ARCH, version 2:
 *   u8 version, n_gp, n_fixed, width_bits; u32 vendor; u64 capabilities
 *   u64 fixed_ctrl, global_ctrl, status, debugctl, smm_global_ctrl, pending
 *   u32 [0] smm_frozen, [1] EFER.SVME as it was last told; u32 n_told
 *   n_gp times u64 evtsel
 *   n_gp + n_fixed times u64 counter, u64: [7:0] banks of its event (0: has none),
 *     [8] touched since the last slice (version 1: 0)
 *   n_told times u64 select, times
 *
 * Body of the section VPMU_STATE_LOSS, version 1, behind it and only where the
 * loss block is offered; without it a PMU begins with a block of zeros:
 *   u8 n_gp, n_fixed; u16 0; u32 a PMI is due; u64 LOSS_CTRL, generation
 *   n_gp + n_fixed times u64 enabled, running; u32 generation; u8 reason, last; u16 0
 *
 * Parked events are saved too: what they count stays demanded, and so keeps the
 * phase of scaled events. Times are totals; a clock's origin is nobody's business.
 */
#include <vpmu/state.h>

#include "arch_internal.h"

#define ARCH_SECTION_VERSION	2
#define LOSS_SECTION_VERSION	1
#define ARCH_TOUCHED		(1u << 8)
#define ARCH_SMM_FROZEN		(1u << 0)
#define ARCH_SVME		(1u << 1)
#define LOSS_TIME_MAX		((uint64_t)1 << 62) /* no clock gets there */
#define STATE_HEAD_BYTES	16
#define STATE_TOTAL_AT		8 /* where the header keeps its total */
#define SECTION_HEAD_BYTES	16

/* What a saved state says, before any of it is used. */
struct arch_image {
	struct arch_regs r;
	struct arch_told told;
	uint64_t pending; /* in the registers' layout */
	uint8_t n_gp, n_fixed;
	uint8_t banks[ARCH_PMC_MAX]; /* by pmc: of its event, 0: has none */
	uint32_t touched;
	struct arch_loss loss;
	bool has_arch, has_loss;
	const uint8_t *provider; /* its body, or NULL */
	size_t provider_bytes;
};

static void put_arch(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	unsigned int i;

	vpmu_state_put(c, v->version, 1);
	vpmu_state_put(c, v->n_gp, 1);
	vpmu_state_put(c, v->n_fixed, 1);
	vpmu_state_put(c, v->model->width_bits, 1);
	vpmu_state_put(c, v->model->vendor, 4);
	vpmu_state_put(c, v->capabilities, 8);
	vpmu_state_put(c, v->r.fixed_ctrl, 8);
	vpmu_state_put(c, v->r.global_ctrl, 8);
	vpmu_state_put(c, v->r.status, 8);
	vpmu_state_put(c, v->r.debugctl, 8);
	vpmu_state_put(c, v->r.smm_global_ctrl, 8);
	vpmu_state_put(c, vpmu_pmc_bits(v, vpmu_atomic_read(&v->pending)), 8);
	vpmu_state_put(c, (v->r.smm_frozen ? ARCH_SMM_FROZEN : 0) |
			  (v->r.svme ? ARCH_SVME : 0), 4);
	vpmu_state_put(c, v->told.n, 4);
	for (i = 0; i < v->n_gp; i++)
		vpmu_state_put(c, v->r.evtsel[i], 8);
	for (i = 0; i < v->n_pmc; i++) {
		vpmu_state_put(c, vpmu_pmc_read(v, i), 8);
		vpmu_state_put(c, (v->made >> i & 1 ? v->event[i].banks : 0u) |
				  (v->touched >> i & 1 ? ARCH_TOUCHED : 0), 8);
	}
	for (i = 0; i < v->told.n; i++) {
		vpmu_state_put(c, v->told.row[i].select, 8);
		vpmu_state_put(c, v->told.row[i].times, 8);
	}
}

static void put_loss(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const struct arch_loss *l = &v->loss;
	size_t head;
	unsigned int i;

	head = vpmu_state_section_begin(c, VPMU_STATE_LOSS, LOSS_SECTION_VERSION,
					VPMU_STATE_MANDATORY);
	vpmu_state_put(c, v->n_gp, 1);
	vpmu_state_put(c, v->n_fixed, 1);
	vpmu_state_put(c, 0, 2);
	vpmu_state_put(c, l->pmi, 4);
	vpmu_state_put(c, l->ctrl, 8);
	vpmu_state_put(c, l->generation, 8);
	for (i = 0; i < v->n_pmc; i++) {
		vpmu_state_put(c, vpmu_loss_enabled(v, i), 8);
		vpmu_state_put(c, vpmu_loss_running(v, i), 8);
		vpmu_state_put(c, l->pmc[i].generation, 4);
		vpmu_state_put(c, l->pmc[i].reason, 1);
		vpmu_state_put(c, l->pmc[i].last, 1);
		vpmu_state_put(c, 0, 2);
	}
	vpmu_state_section_end(c, head);
}

static int put_provider(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	size_t head, used = 0, room = 0;
	uint8_t *at = NULL;
	int ret;

	head = vpmu_state_section_begin(c, VPMU_STATE_PROVIDER, 1,
					VPMU_STATE_MANDATORY);
	if (c->data) {
		at = c->data + c->pos;
		room = c->size - c->pos;
	}
	ret = v->provider->ops->save(v->provider, at, room, &used);
	if (ret)
		return ret;
	c->pos += used;
	vpmu_state_section_end(c, head);
	return 0;
}

static int put_all(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	bool provider = v->provider->ops->save != NULL;
	size_t head, end;
	int ret = 0;

	vpmu_state_put(c, VPMU_STATE_MAGIC, 4);
	vpmu_state_put(c, VPMU_STATE_VERSION, 4);
	vpmu_state_put(c, 0, 4);
	vpmu_state_put(c, 1 + provider + (v->clock != NULL), 4);
	head = vpmu_state_section_begin(c, VPMU_STATE_ARCH, ARCH_SECTION_VERSION,
					VPMU_STATE_MANDATORY);
	put_arch(v, c);
	vpmu_state_section_end(c, head);
	if (provider)
		ret = put_provider(v, c);
	if (ret)
		return ret;
	if (v->clock)
		put_loss(v, c);
	end = c->pos;
	c->pos = STATE_TOTAL_AT;
	vpmu_state_put(c, end, 4);
	c->pos = end;
	return c->error;
}

int vpmu_arch_save(struct vpmu_arch *v, void *buf, size_t size, size_t *used)
{
	struct vpmu_state_cursor c;
	int ret;

	memset(&c, 0, sizeof(c));
	vpmu_pmc_begin(v);
	if (v->on)
		vpmu_loss_clock(v);
	ret = put_all(v, &c);
	*used = c.pos;
	if (!ret && buf) {
		ret = -VPMU_E2BIG;
		if (size >= c.pos) {
			memset(&c, 0, sizeof(c));
			c.data = buf;
			c.size = size;
			ret = put_all(v, &c);
		}
	}
	vpmu_pmc_commit(v);
	return ret;
}

/* The saving PMU must look to the guest like part of this one. */
static int get_shape(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
		     struct arch_image *im)
{
	uint64_t version = vpmu_state_get(c, 1);
	uint64_t width, vendor, capabilities;

	im->n_gp = (uint8_t)vpmu_state_get(c, 1);
	im->n_fixed = (uint8_t)vpmu_state_get(c, 1);
	width = vpmu_state_get(c, 1);
	vendor = vpmu_state_get(c, 4);
	capabilities = vpmu_state_get(c, 8);
	if (c->error)
		return c->error;
	/* Another vendor or version would freeze and fault differently. */
	if (vendor != v->model->vendor || version != v->version ||
	    width != v->model->width_bits || !im->n_gp || im->n_gp > v->n_gp ||
	    im->n_fixed > v->n_fixed || (capabilities & ~v->capabilities))
		return -VPMU_EINVAL;
	return 0;
}

static int get_told(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
		    struct arch_told *told)
{
	uint32_t i, j;

	for (i = 0; i < told->n; i++) {
		told->row[i].select = vpmu_state_get(c, 8);
		told->row[i].times = vpmu_state_get(c, 8);
		if ((told->row[i].select & ~v->select) || !told->row[i].times)
			return -VPMU_EINVAL;
		for (j = 0; j < i; j++)
			if (told->row[j].select == told->row[i].select)
				return -VPMU_EINVAL;
	}
	return c->error;
}

/* A counter and its event, which counts in what rings its filter names, if any. */
static int get_counter(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
		       struct arch_image *im, unsigned int pmc)
{
	uint64_t event;

	im->r.counter[pmc] = vpmu_state_get(c, 8);
	event = vpmu_state_get(c, 8);
	if ((im->r.counter[pmc] & ~v->valid.counter) ||
	    (event & ~(uint64_t)(VPMU_BANKS_KERNEL | VPMU_BANKS_USER | ARCH_TOUCHED)))
		return -VPMU_EINVAL;
	im->banks[pmc] = (uint8_t)event;
	if (event & ARCH_TOUCHED)
		im->touched |= 1u << pmc;
	return 0;
}

static int get_loss_pmc(struct vpmu_state_cursor *c, struct arch_loss *l,
			unsigned int pmc)
{
	struct arch_loss_pmc *p = &l->pmc[pmc];
	uint64_t zero;

	p->enabled = vpmu_state_get(c, 8);
	p->running = vpmu_state_get(c, 8);
	p->generation = (uint32_t)vpmu_state_get(c, 4);
	p->reason = (uint8_t)vpmu_state_get(c, 1);
	p->last = (uint8_t)vpmu_state_get(c, 1);
	zero = vpmu_state_get(c, 2);
	if (p->enabled > LOSS_TIME_MAX || p->running > p->enabled || zero ||
	    p->last > VPMU_LOSS_NOT_COUNTED || (p->reason && p->reason != p->last))
		return -VPMU_EINVAL;
	if (p->reason == VPMU_LOSS_LOST)
		l->lost |= 1u << pmc;
	if (p->reason == VPMU_LOSS_FILTERED)
		l->filtered |= 1u << pmc;
	if (p->reason == VPMU_LOSS_NOT_COUNTED)
		l->vain |= 1u << pmc;
	return 0;
}

static int get_loss(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
		    struct arch_image *im)
{
	struct arch_loss *l = &im->loss;
	uint64_t n_gp = vpmu_state_get(c, 1), n_fixed = vpmu_state_get(c, 1);
	uint64_t zero = vpmu_state_get(c, 2), pmi = vpmu_state_get(c, 4);
	unsigned int i;
	int ret = 0;

	l->ctrl = vpmu_state_get(c, 8);
	l->generation = vpmu_state_get(c, 8);
	if (!v->clock || !im->has_arch || n_gp != im->n_gp || n_fixed != im->n_fixed ||
	    zero || pmi > 1 || (l->ctrl & ~VPMU_LOSS_CTRL_PMI) || (pmi && !l->ctrl))
		return -VPMU_EINVAL;
	l->pmi = pmi;
	for (i = 0; !ret && i < im->n_gp; i++)
		ret = get_loss_pmc(c, l, i);
	for (i = 0; !ret && i < im->n_fixed; i++)
		ret = get_loss_pmc(c, l, v->n_gp + i);
	return ret ? ret : c->error;
}

static int get_arch(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
		    struct arch_image *im)
{
	uint64_t flags, n_told;
	unsigned int i;
	int ret = get_shape(v, c, im);

	if (ret)
		return ret;
	im->r.fixed_ctrl = vpmu_state_get(c, 8);
	im->r.global_ctrl = vpmu_state_get(c, 8);
	im->r.status = vpmu_state_get(c, 8);
	im->r.debugctl = vpmu_state_get(c, 8);
	im->r.smm_global_ctrl = vpmu_state_get(c, 8);
	im->pending = vpmu_state_get(c, 8);
	flags = vpmu_state_get(c, 4);
	n_told = vpmu_state_get(c, 4);
	if (flags > (ARCH_SMM_FROZEN | ARCH_SVME) || n_told > VPMU_TOLD_MAX)
		return -VPMU_EINVAL;
	im->r.smm_frozen = flags & ARCH_SMM_FROZEN;
	im->r.svme = flags & ARCH_SVME;
	im->told.n = (uint32_t)n_told;
	for (i = 0; i < im->n_gp; i++)
		im->r.evtsel[i] = vpmu_state_get(c, 8);
	for (i = 0; !ret && i < im->n_gp; i++)
		ret = get_counter(v, c, im, i);
	for (i = 0; !ret && i < im->n_fixed; i++)
		ret = get_counter(v, c, im, v->n_gp + i);
	return ret ? ret : get_told(v, c, &im->told);
}

/* Whether registers hold only what the guest could have put there. */
static bool regs_valid(const struct vpmu_arch *v, const struct arch_image *im)
{
	const struct arch_valid *m = &v->valid;
	uint64_t counters = vpmu_pmc_bits(v, (1u << v->n_pmc) - 1);
	uint64_t bad = 0;
	unsigned int i;

	for (i = 0; i < v->n_gp; i++)
		bad |= im->r.evtsel[i] & ~m->evtsel;
	bad |= im->r.fixed_ctrl & ~m->fixed_ctrl;
	bad |= im->r.global_ctrl & ~m->global_ctrl;
	bad |= im->r.status & ~m->status;
	bad |= im->r.debugctl & ~m->debugctl;
	bad |= im->r.smm_global_ctrl & ~m->global_ctrl;
	bad |= im->pending & ~counters;
	if (im->r.svme && !v->svm)
		return false;
	if (im->r.smm_frozen)
		return !bad && (m->debugctl & VPMU_DEBUGCTL_FREEZE_SMM);
	return !bad && !im->r.smm_global_ctrl;
}

/* A body of one of our own sections, once and whole. */
static int get_body(const struct vpmu_arch *v, struct vpmu_state_cursor *body,
		    struct arch_image *im, uint64_t id)
{
	bool *has = id == VPMU_STATE_ARCH ? &im->has_arch : &im->has_loss;
	int ret;

	if (*has)
		return -VPMU_EINVAL;
	ret = id == VPMU_STATE_ARCH ? get_arch(v, body, im) : get_loss(v, body, im);
	*has = true;
	if (!ret && body->pos != body->size)
		ret = -VPMU_EINVAL;
	return ret;
}

/* One section at the cursor, which is moved behind it. */
static int get_section(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
		       struct arch_image *im)
{
	struct vpmu_state_cursor body;
	uint64_t id = vpmu_state_get(c, 4);
	uint64_t version = vpmu_state_get(c, 2);
	uint64_t flags = vpmu_state_get(c, 2);
	uint64_t bytes = vpmu_state_get(c, 4);
	uint64_t zero = vpmu_state_get(c, 4);
	uint64_t padded = (bytes + 7) / 8 * 8;

	if (c->error || zero || padded > c->size - c->pos)
		return -VPMU_EINVAL;
	memset(&body, 0, sizeof(body));
	body.data = c->data + c->pos;
	body.size = (size_t)bytes;
	c->pos += (size_t)padded;
	switch (id) {
	case VPMU_STATE_ARCH:
		if (version > ARCH_SECTION_VERSION)
			return -VPMU_ENOSYS;
		return get_body(v, &body, im, id);
	case VPMU_STATE_LOSS:
		if (version > LOSS_SECTION_VERSION)
			return -VPMU_ENOSYS;
		return get_body(v, &body, im, id);
	case VPMU_STATE_PROVIDER:
		if (im->provider || !v->provider->ops->load)
			return -VPMU_EINVAL;
		im->provider = body.data;
		im->provider_bytes = body.size;
		return 0;
	default:
		return flags & VPMU_STATE_MANDATORY ? -VPMU_ENOSYS : 0;
	}
}

static int get_all(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
		   struct arch_image *im)
{
	uint64_t magic = vpmu_state_get(c, 4);
	uint64_t version = vpmu_state_get(c, 4);
	uint64_t total = vpmu_state_get(c, 4);
	uint64_t sections = vpmu_state_get(c, 4);
	int ret;

	if (c->error || magic != VPMU_STATE_MAGIC)
		return -VPMU_EINVAL;
	if (version > VPMU_STATE_VERSION)
		return -VPMU_ENOSYS;
	if (!version || total > c->size || total < STATE_HEAD_BYTES ||
	    sections > (total - STATE_HEAD_BYTES) / SECTION_HEAD_BYTES)
		return -VPMU_EINVAL;
	c->size = (size_t)total;
	while (sections--) {
		ret = get_section(v, c, im);
		if (ret)
			return ret;
	}
	if (!im->has_arch || c->pos != c->size || !regs_valid(v, im))
		return -VPMU_EINVAL;
	return 0;
}

/* Put an image in place; no event exists. */
static void arch_adopt(struct vpmu_arch *v, const struct arch_image *im)
{
	unsigned int i;

	v->r = im->r;
	v->loss = im->loss;
	(void)vpmu_atomic_take(&v->pending);
	vpmu_atomic_or(&v->pending, vpmu_pmc_set(v, im->pending));
	for (i = 0; i < v->n_pmc; i++)
		v->event[i].banks = im->banks[i];
}

static uint32_t arch_parked(const struct arch_image *im)
{
	uint32_t pmcs = 0;
	unsigned int i;

	for (i = 0; i < ARCH_PMC_MAX; i++)
		if (im->banks[i])
			pmcs |= 1u << i;
	return pmcs;
}

int vpmu_arch_load(struct vpmu_arch *v, const void *buf, size_t size)
{
	struct vpmu_state_cursor c;
	struct arch_image im;
	uint32_t parked, touched;
	int ret;

	memset(&c, 0, sizeof(c));
	memset(&im, 0, sizeof(im));
	c.data = (uint8_t *)buf;
	c.size = size;
	ret = get_all(v, &c, &im);
	if (ret)
		return ret;
	/* A provider loads without events: if it refuses they are made again. */
	parked = v->made;
	touched = v->touched;
	vpmu_loss_stop(v);
	vpmu_pmc_release_all(v);
	if (im.provider)
		ret = v->provider->ops->load(v->provider, im.provider,
					     im.provider_bytes);
	if (ret) {
		im.told = v->told;
	} else {
		arch_adopt(v, &im);
		parked = arch_parked(&im);
		touched = im.touched;
	}
	vpmu_pmc_resume(v, parked);
	v->told = im.told; /* making events told again what was told before */
	v->touched = touched;
	if (vpmu_atomic_read(&v->pending) || v->loss.pmi)
		v->ops->kick(v->ctx);
	return ret;
}
