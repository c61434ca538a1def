// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Saving and loading. Counter numbers of the saved PMU and of the one that loads
 * may differ (it may have more GP counters), so sets of counters are saved in the
 * registers' layout.
 *
 * Body of the section VPMU_STATE_ARCH, version 2:
 *   u8 version, n_gp, n_fixed, width_bits; u32 vendor; u64 capabilities
 *   u64 fixed_ctrl, global_ctrl, status, debugctl, smm_global_ctrl, pending
 *   u32 [0] smm_frozen, [1] EFER.SVME as it was last reported; u32 n_uncounted
 *   n_gp times u64 evtsel
 *   n_gp + n_fixed times u64 counter, u64: [7:0] banks of its event (0: has none),
 *     [8] touched since the last slice (version 1: 0)
 *   n_uncounted times u64 select, times
 *
 * Body of the section VPMU_STATE_LOSS, version 1, after that one and only where the
 * loss block is offered; without it a PMU begins with a block of zeros:
 *   u8 n_gp, n_fixed; u16 0; u32 a PMI is due; u64 LOSS_CTRL, generation
 *   n_gp + n_fixed times u64 enabled, running; u32 generation; u8 reason, last; u16 0
 *
 * Body of the section VPMU_STATE_RELOAD, version 1, after VPMU_STATE_ARCH and only
 * where auto counter reload is offered, or architectural PEBS; without it a PMU begins
 * with zeros:
 *   u8 n_gp, n_fixed; u16 0; u32 0
 *   n_gp + n_fixed times u64 CFG_B, CFG_C's reload value
 *
 * Body of the section VPMU_STATE_LBR, version 1, only where branch records are
 * offered; without it a PMU begins with none:
 *   u8 kind (1 legacy, 2 architectural, 3 AMD), tos, reason, last; u32 generation
 *   u64 [0] claimed, [1] owned, [2] used since the last slice, [3] in SMM,
 *     [4] demanded of the engine, [5] AMD's DBG_EXTN_CFG.LBRV2EN, [15:8] counts that wait
 *     for a record that logs them; u64 LBR_SELECT or LBR_CTL; u64 LER from, to, info
 *   32 times u64 from, to, info: the ring
 *
 * Body of the section VPMU_STATE_PEBS, version 1, only where PEBS is offered; without
 * it a PMU begins with it off:
 *   u8 format, u8 0, u16 0, u32 0
 *   u64 PEBS_ENABLE, DATA_CFG, DS_AREA
 *   u64 counters whose next occurrence is recorded, those that claim the facility
 *     (layout of PEBS_ENABLE)
 *
 * Body of the section VPMU_STATE_ARCH_PEBS, version 1, after VPMU_STATE_ARCH and only
 * where architectural PEBS is offered; without it a PMU begins with it off:
 *   u8 n_gp, n_fixed; u16 0; u32 0
 *   u64 PEBS_BASE, PEBS_INDEX
 *   u64 counters whose next occurrence is recorded, those that claim the facility
 *     (layout of GLOBAL_CTRL)
 *   n_gp + n_fixed times u64 CFG_C, without its reload value
 *
 * Body of the section VPMU_STATE_EXTRA, version 1, only where the guest has one of the
 * registers; without it a PMU begins with zeros:
 *   u64 OFFCORE_RSP_0, OFFCORE_RSP_1, PEBS_LD_LAT
 *
 * Body of the section VPMU_STATE_TOPDOWN, version 1, only where PERF_METRICS is offered;
 * without it a PMU begins with zeros:
 *   u64 the register as it was written; 8 times u64 slots, by class
 *
 * Body of the section VPMU_STATE_MODEL, version 1, not mandatory: the model's name,
 * as bytes. With it, a PMU of another model refuses the state.
 *
 * Parked events are saved too: what they count stays demanded, and so keeps the
 * phase of scaled events. Times are totals, so a clock's origin does not matter.
 */
#include "arch_event.h"
#include "arch_extra.h"
#include "arch_internal.h"
#include "arch_lbr.h"
#include "arch_loss.h"
#include "arch_pebs.h"
#include "arch_pmc.h"
#include "arch_state.h"
#include "arch_topdown.h"

#define ARCH_TOUCHED		(1u << 8)
#define ARCH_SMM_FROZEN		(1u << 0)
#define ARCH_SVME		(1u << 1)
#define LOSS_TIME_MAX		((uint64_t)1 << 62) /* no clock gets there */
#define STATE_HEAD_BYTES	16
#define STATE_TOTAL_AT		8 /* where the header keeps its total */
#define SECTION_HEAD_BYTES	16

static void regs_put(struct vpmu_arch *v, struct vpmu_state_cursor *c)
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
	vpmu_state_put(c, arch_pmc_bits(v, vpmu_atomic_read(&v->pending)), 8);
	vpmu_state_put(c, (v->r.smm_frozen ? ARCH_SMM_FROZEN : 0) |
			  (v->r.svme ? ARCH_SVME : 0), 4);
	vpmu_state_put(c, v->uncounted_events.n, 4);
	for (i = 0; i < v->n_gp; i++)
		vpmu_state_put(c, v->r.evtsel[i], 8);
	for (i = 0; i < v->n_pmc; i++) {
		vpmu_state_put(c, arch_event_read(v, i), 8);
		vpmu_state_put(c, (v->made >> i & 1 ? v->event[i].banks : 0u) |
				  (v->touched >> i & 1 ? ARCH_TOUCHED : 0), 8);
	}
	for (i = 0; i < v->uncounted_events.n; i++) {
		vpmu_state_put(c, v->uncounted_events.row[i].select, 8);
		vpmu_state_put(c, v->uncounted_events.row[i].times, 8);
	}
}

static void loss_put(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const struct arch_loss *l = &v->loss;
	unsigned int i;

	vpmu_state_put(c, v->n_gp, 1);
	vpmu_state_put(c, v->n_fixed, 1);
	vpmu_state_put(c, 0, 2);
	vpmu_state_put(c, l->pmi, 4);
	vpmu_state_put(c, l->ctrl, 8);
	vpmu_state_put(c, l->generation, 8);
	for (i = 0; i < v->n_pmc; i++) {
		vpmu_state_put(c, arch_loss_enabled(v, i), 8);
		vpmu_state_put(c, arch_loss_running(v, i), 8);
		vpmu_state_put(c, l->pmc[i].generation, 4);
		vpmu_state_put(c, l->pmc[i].reason, 1);
		vpmu_state_put(c, l->pmc[i].last, 1);
		vpmu_state_put(c, 0, 2);
	}
}

static void reload_put(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	unsigned int i;

	vpmu_state_put(c, v->n_gp, 1);
	vpmu_state_put(c, v->n_fixed, 1);
	vpmu_state_put(c, 0, 6);
	for (i = 0; i < v->n_pmc; i++) {
		vpmu_state_put(c, arch_pmc_bits(v, v->reload.by[i]), 8);
		vpmu_state_put(c, v->reload.value[i], 8);
	}
}

static void provider_put(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	uint8_t *at = c->data ? c->data + c->pos : NULL;
	size_t used = 0;

	c->error = v->provider->ops->save(v->provider, at, at ? c->size - c->pos : 0, &used);
	if (!c->error)
		c->pos += used;
}

static void model_put(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const char *name;

	for (name = v->model->name; *name; name++)
		vpmu_state_put(c, (uint8_t)*name, 1);
}

/* Name a feature that the saved PMU had and this one has not. */
static int unfit(struct arch_image *im, const char *what, uint64_t asked, uint64_t available)
{
	im->refused.what = what;
	im->refused.asked = asked;
	im->refused.available = available;
	return -VPMU_EINVAL;
}

static int newer(struct arch_image *im, const char *what, uint64_t asked, uint64_t available)
{
	(void)unfit(im, what, asked, available);
	return -VPMU_ENOSYS;
}

static const char *capability_name(uint64_t missing)
{
	static const struct {
		uint64_t mask;
		const char *name;
	} names[] = {
		{ VPMU_CAP_LBR, "branch records, or of this format" },
		{ VPMU_CAP_PEBS, "PEBS, or of this format" },
		{ VPMU_CAP_SMM_FREEZE, "FREEZE_WHILE_SMM" },
		{ VPMU_CAP_METRICS, "PERF_METRICS" },
		{ VPMU_CAP_FULL_WIDTH, "full-width writes of counters" },
		{ VPMU_CAP_AMD_EXT_CORE, "PerfCtrExtCore" },
		{ VPMU_CAP_AMD_FREEZE, "LbrAndPmcFreeze" },
		{ VPMU_CAP_AMD_SVM, "GuestOnly and HostOnly" },
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (missing & names[i].mask)
			return names[i].name;
	return "IA32_PERF_CAPABILITIES";
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
	if (vendor != v->model->vendor)
		return unfit(im, "vendor of the CPU", vendor, v->model->vendor);
	if (version != v->version)
		return unfit(im, "version of perfmon", version, v->version);
	if (width != v->model->width_bits)
		return unfit(im, "width of a counter", width, v->model->width_bits);
	if (im->n_gp > v->n_gp)
		return unfit(im, "general-purpose counters", im->n_gp, v->n_gp);
	if (im->n_fixed > v->n_fixed)
		return unfit(im, "fixed counters", im->n_fixed, v->n_fixed);
	if (capabilities & ~v->capabilities)
		return unfit(im, capability_name(capabilities & ~v->capabilities),
			     capabilities, v->capabilities);
	return im->n_gp ? 0 : -VPMU_EINVAL;
}

static int get_uncounted(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
			 struct arch_uncounted *events)
{
	uint32_t i, j;

	for (i = 0; i < events->n; i++) {
		events->row[i].select = vpmu_state_get(c, 8);
		events->row[i].times = vpmu_state_get(c, 8);
		if ((events->row[i].select & ~v->select) || !events->row[i].times)
			return -VPMU_EINVAL;
		for (j = 0; j < i; j++)
			if (events->row[j].select == events->row[i].select)
				return -VPMU_EINVAL;
	}
	return c->error;
}

/* A counter, and the banks of its event, if it has one. */
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
		l->uncounted |= 1u << pmc;
	return 0;
}

static int loss_check(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const struct arch_image *im = &v->image;
	struct arch_loss *l = &v->image.loss;
	uint64_t n_gp = vpmu_state_get(c, 1), n_fixed = vpmu_state_get(c, 1);
	uint64_t zero = vpmu_state_get(c, 2), pmi = vpmu_state_get(c, 4);
	unsigned int i;
	int ret = 0;

	l->ctrl = vpmu_state_get(c, 8);
	l->generation = vpmu_state_get(c, 8);
	if (!im->body[ARCH_SECTION_REGS].data || n_gp != im->n_gp || n_fixed != im->n_fixed ||
	    zero || pmi > 1 || (l->ctrl & ~VPMU_LOSS_CTRL_PMI) || (pmi && !l->ctrl))
		return -VPMU_EINVAL;
	l->pmi = pmi;
	for (i = 0; !ret && i < im->n_gp; i++)
		ret = get_loss_pmc(c, l, i);
	for (i = 0; !ret && i < im->n_fixed; i++)
		ret = get_loss_pmc(c, l, v->n_gp + i);
	return ret ? ret : c->error;
}

/* Into @to, or NULL: only checked. */
static int reload_get(const struct vpmu_arch *v, struct vpmu_state_cursor *c,
		      struct arch_reload *to)
{
	const struct arch_image *im = &v->image;
	uint64_t n_gp, n_fixed, zero, by, value;
	unsigned int i;

	n_gp = vpmu_state_get(c, 1);
	n_fixed = vpmu_state_get(c, 1);
	zero = vpmu_state_get(c, 6);
	if (!im->body[ARCH_SECTION_REGS].data || n_gp != im->n_gp || n_fixed != im->n_fixed ||
	    zero)
		return -VPMU_EINVAL;
	for (i = 0; i < im->n_gp + im->n_fixed; i++) {
		unsigned int pmc = arch_image_pmc(im, i, v->n_gp);

		by = vpmu_state_get(c, 8);
		value = vpmu_state_get(c, 8);
		if (by & ~v->valid.reload_by || value & ~v->valid.reload)
			return -VPMU_EINVAL;
		if (!to)
			continue;
		to->by[pmc] = arch_pmc_set(v, by);
		to->value[pmc] = (uint32_t)value;
	}
	return c->error;
}

static int reload_check(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	return reload_get(v, c, NULL);
}

static int regs_check(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	struct arch_image *im = &v->image;
	uint64_t flags, n_uncounted;
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
	n_uncounted = vpmu_state_get(c, 4);
	if (flags > (ARCH_SMM_FROZEN | ARCH_SVME) || n_uncounted > VPMU_UNCOUNTED_MAX)
		return -VPMU_EINVAL;
	im->r.smm_frozen = flags & ARCH_SMM_FROZEN;
	im->r.svme = flags & ARCH_SVME;
	im->uncounted_events.n = (uint32_t)n_uncounted;
	for (i = 0; i < im->n_gp; i++)
		im->r.evtsel[i] = vpmu_state_get(c, 8);
	for (i = 0; !ret && i < im->n_gp; i++)
		ret = get_counter(v, c, im, i);
	for (i = 0; !ret && i < im->n_fixed; i++)
		ret = get_counter(v, c, im, v->n_gp + i);
	return ret ? ret : get_uncounted(v, c, &im->uncounted_events);
}

/* True if the registers hold only values that the guest could have put there. */
static bool regs_valid(const struct vpmu_arch *v, const struct arch_image *im)
{
	const struct arch_valid *m = &v->valid;
	uint64_t counters = arch_pmc_bits(v, (1u << v->n_pmc) - 1);
	uint64_t bad = 0;
	unsigned int i;

	for (i = 0; i < v->n_gp; i++)
		bad |= !arch_evtsel_valid(v, i, im->r.evtsel[i]);
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

static int provider_check(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	c->pos = c->size; /* the provider's to check */
	return v->provider->ops->load ? 0 : -VPMU_EINVAL;
}

static int model_check(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const char *name = v->model->name;
	bool same = true;
	size_t n;

	for (n = 0; name[n]; n++)
		same &= n < c->size && (uint8_t)name[n] == c->data[n];
	c->pos = c->size;
	if (!same || n != c->size)
		return unfit(&v->image, "another model's events, whose name's length is",
			     c->size, n);
	return 0;
}

static void regs_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const struct arch_image *im = &v->image;
	unsigned int i;

	v->r = im->r;
	(void)vpmu_atomic_take(&v->pending);
	vpmu_atomic_or(&v->pending, arch_pmc_set(v, im->pending));
	for (i = 0; i < v->n_pmc; i++)
		v->event[i].banks = im->banks[i];
}

static void reload_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	memset(&v->reload, 0, sizeof(v->reload));
	if (c->data)
		(void)reload_get(v, c, &v->reload);
}

static void loss_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	v->loss = v->image.loss;
}

static bool has_all(const struct vpmu_arch *v)
{
	return true;
}

static bool has_reload(const struct vpmu_arch *v)
{
	return v->valid.reload;
}

static bool has_provider(const struct vpmu_arch *v)
{
	return v->provider->ops->save;
}

static bool has_loss(const struct vpmu_arch *v)
{
	return v->clock;
}

static bool has_lbr(const struct vpmu_arch *v)
{
	return v->lbr.kind;
}

static bool has_pebs(const struct vpmu_arch *v)
{
	return v->has[ARCH_HAS_DS];
}

static bool has_arch_pebs(const struct vpmu_arch *v)
{
	return v->has[ARCH_HAS_ARCH_PEBS];
}

static bool has_topdown(const struct vpmu_arch *v)
{
	return v->topdown_fields;
}

struct section {
	uint32_t id;       /* enum vpmu_state_id */
	uint16_t version;  /* the newest that is known; written */
	uint16_t flags;    /* MANDATORY: it stands once */
	const char *name;  /* the feature that it belongs to, or NULL */
	bool (*offered)(const struct vpmu_arch *v); /* it is saved, and may be loaded */
	void (*put)(struct vpmu_arch *v, struct vpmu_state_cursor *c);
	/* May fill v->image and changes nothing else. */
	int (*check)(struct vpmu_arch *v, struct vpmu_state_cursor *c);
	/*
	 * After all are checked, while no event exists; @c without data where there is no
	 * such section. NULL: vpmu_arch_load() has a time of its own for it.
	 */
	void (*adopt)(struct vpmu_arch *v, struct vpmu_state_cursor *c);
};

static const struct section sections[ARCH_SECTIONS] = {
	[ARCH_SECTION_REGS] = {
		VPMU_STATE_ARCH, 2, VPMU_STATE_MANDATORY, NULL,
		has_all, regs_put, regs_check, regs_adopt },
	[ARCH_SECTION_RELOAD] = {
		VPMU_STATE_RELOAD, 1, VPMU_STATE_MANDATORY, "auto counter reload",
		has_reload, reload_put, reload_check, reload_adopt },
	[ARCH_SECTION_PROVIDER] = {
		VPMU_STATE_PROVIDER, 1, VPMU_STATE_MANDATORY, NULL,
		has_provider, provider_put, provider_check, NULL },
	[ARCH_SECTION_LOSS] = {
		VPMU_STATE_LOSS, 1, VPMU_STATE_MANDATORY, "what tells the guest of losses",
		has_loss, loss_put, loss_check, loss_adopt },
	[ARCH_SECTION_LBR] = {
		VPMU_STATE_LBR, 1, VPMU_STATE_MANDATORY, "branch records",
		has_lbr, arch_lbr_put, arch_lbr_check, NULL },
	[ARCH_SECTION_PEBS] = {
		VPMU_STATE_PEBS, 1, VPMU_STATE_MANDATORY, "PEBS",
		has_pebs, arch_pebs_put, arch_pebs_check, arch_pebs_adopt },
	[ARCH_SECTION_ARCH_PEBS] = {
		VPMU_STATE_ARCH_PEBS, 1, VPMU_STATE_MANDATORY, "architectural PEBS",
		has_arch_pebs, arch_pebs_arch_put, arch_pebs_arch_check,
		arch_pebs_arch_adopt },
	[ARCH_SECTION_EXTRA] = {
		VPMU_STATE_EXTRA, 1, VPMU_STATE_MANDATORY, "a model of the micro-architecture",
		arch_extra_any, arch_extra_put, arch_extra_check, arch_extra_adopt },
	[ARCH_SECTION_TOPDOWN] = {
		VPMU_STATE_TOPDOWN, 1, VPMU_STATE_MANDATORY, "PERF_METRICS",
		has_topdown, arch_topdown_put, arch_topdown_check, arch_topdown_adopt },
	[ARCH_SECTION_MODEL] = {
		VPMU_STATE_MODEL, 1, 0, NULL,
		has_all, model_put, model_check, NULL },
};

static int put_all(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const struct section *s;
	size_t head, end;
	uint32_t n = 0;

	for (s = sections; s < sections + ARCH_SECTIONS; s++)
		n += s->offered(v);
	vpmu_state_put(c, VPMU_STATE_MAGIC, 4);
	vpmu_state_put(c, VPMU_STATE_VERSION, 4);
	vpmu_state_put(c, 0, 4);
	vpmu_state_put(c, n, 4);
	for (s = sections; s < sections + ARCH_SECTIONS; s++) {
		if (!s->offered(v))
			continue;
		head = vpmu_state_section_begin(c, s->id, s->version, s->flags);
		s->put(v, c);
		if (c->error)
			return c->error;
		vpmu_state_section_end(c, head);
	}
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

	vpmu_assert(arch_at_rest(v));
	memset(&c, 0, sizeof(c));
	arch_event_begin(v);
	if (v->on)
		arch_loss_clock(v);
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
	(void)arch_event_end(v);
	return ret;
}

static const struct section *section_find(uint64_t id)
{
	const struct section *s;

	for (s = sections; s < sections + ARCH_SECTIONS; s++)
		if (s->id == id)
			return s;
	return NULL;
}

/* The body of section @s, at the start of @body. */
static int get_body(struct vpmu_arch *v, const struct section *s,
		    struct vpmu_state_cursor *body)
{
	struct vpmu_state_cursor *keep = &v->image.body[s - sections];
	int ret;

	if (s->name && !s->offered(v))
		return unfit(&v->image, s->name, 1, 0);
	if (s->flags & VPMU_STATE_MANDATORY && keep->data)
		return -VPMU_EINVAL;
	*keep = *body;
	ret = s->check(v, body);
	return !ret && body->pos != body->size ? -VPMU_EINVAL : ret;
}

/* One section at the cursor, which is moved to its end. */
static int get_section(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	struct arch_image *im = &v->image;
	struct vpmu_state_cursor body;
	const struct section *s;
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
	im->refused.asked = id; /* names the damaged section, if it is damaged */
	s = section_find(id);
	if (!s && !(flags & VPMU_STATE_MANDATORY))
		return 0;
	if (!s)
		return newer(im, "a feature that is not known here, section", id, 0);
	if (version > s->version)
		return newer(im, "version of a section", version, s->version);
	return get_body(v, s, &body);
}

static int get_all(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	struct arch_image *im = &v->image;
	uint64_t magic = vpmu_state_get(c, 4);
	uint64_t version = vpmu_state_get(c, 4);
	uint64_t total = vpmu_state_get(c, 4);
	uint64_t sections = vpmu_state_get(c, 4);
	int ret;

	if (c->error || magic != VPMU_STATE_MAGIC)
		return -VPMU_EINVAL;
	if (version > VPMU_STATE_VERSION)
		return newer(im, "version of the format", version, VPMU_STATE_VERSION);
	if (!version || total > c->size || total < STATE_HEAD_BYTES ||
	    sections > (total - STATE_HEAD_BYTES) / SECTION_HEAD_BYTES)
		return -VPMU_EINVAL;
	c->size = (size_t)total;
	while (sections--) {
		ret = get_section(v, c);
		if (ret)
			return ret;
	}
	if (!im->body[ARCH_SECTION_REGS].data || c->pos != c->size || !regs_valid(v, im))
		return -VPMU_EINVAL;
	return 0;
}

/* Put an image in place. */
static void adopt_all(struct vpmu_arch *v)
{
	const struct section *s;

	vpmu_assert(!v->made && !v->lbr.made);
	for (s = sections; s < sections + ARCH_SECTIONS; s++)
		if (s->adopt)
			s->adopt(v, &v->image.body[s - sections]);
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

const struct vpmu_error *vpmu_arch_refused(const struct vpmu_arch *v)
{
	return &v->image.refused;
}

/* Without a named feature the state is damaged; `asked` is the section. */
static int load_refused(struct arch_image *im, int ret)
{
	if (!im->refused.what)
		im->refused.what = "the state is damaged, in section";
	return ret;
}

int vpmu_arch_load(struct vpmu_arch *v, const void *buf, size_t size)
{
	struct arch_image *im = &v->image;
	const struct vpmu_state_cursor *totals = &im->body[ARCH_SECTION_PROVIDER];
	struct vpmu_state_cursor c;
	uint32_t parked, touched, shared;
	bool claimed;
	int ret;

	vpmu_assert(arch_at_rest(v));
	memset(&c, 0, sizeof(c));
	memset(im, 0, sizeof(*im));
	c.data = (uint8_t *)buf;
	c.size = size;
	ret = get_all(v, &c);
	if (ret)
		return load_refused(im, ret);
	/* A provider loads without events: if it refuses they are made again. */
	parked = v->made;
	touched = v->touched;
	claimed = v->lbr.made;
	shared = v->pebs.claimed;
	arch_lbr_release(v);
	arch_loss_stop(v);
	arch_pmc_release_all(v);
	if (totals->data)
		ret = v->provider->ops->load(v->provider, totals->data, totals->size);
	if (ret) {
		(void)unfit(im, "the host's totals are damaged, bytes", totals->size, 0);
		im->uncounted_events = v->uncounted_events;
		v->pebs.claimed = shared;
	} else {
		adopt_all(v);
		parked = arch_parked(im);
		touched = im->touched;
	}
	arch_pmc_resume(v, parked);
	arch_lbr_resume(v, ret ? NULL : &im->body[ARCH_SECTION_LBR], claimed);
	/* Making events has reported their selectors once more. */
	v->uncounted_events = im->uncounted_events;
	v->touched = touched;
	arch_pebs_set_sampling(v);
	if (vpmu_atomic_read(&v->pending) || v->loss.pmi)
		v->ops.kick(v->ctx);
	return ret;
}
