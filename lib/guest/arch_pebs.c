// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Precise event-based sampling. A counter that PEBS is enabled for sets no status bit
 * and raises no interrupt when it wraps: that arms it, and its next occurrence has a
 * record written into the guest's buffer, and gives the counter a new value. The DS save
 * area describes the buffer and has the values; of architectural PEBS, registers do.
 *
 * Guest memory is hostile. What the DS save area says is read once, before anything
 * is written; a record whose place is not writable memory, or not inside of the
 * buffer, is lost, without a fault, and the counter goes on. Work is bounded: at most
 * two records per occurrence, of architectural PEBS one per counter, each within two
 * pages.
 *
 * Source: SDM vol. 3, "Processor Event Based Sampling (PEBS)", "Adaptive PEBS",
 * "DS Save Area"; vol. 2, "CPUID", leaf 23H; Linux, arch/x86/events/intel/ds.c and
 * core.c.
 */
#include <vpmu/state.h>

#include "arch_event.h"
#include "arch_internal.h"
#include "arch_pebs.h"
#include "arch_record.h"

#define PEBS_GP_OLD		4	/* counters with PEBS, formats to 3 */
#define PEBS_DATA_CFG_VALID	(0xffull << VPMU_PEBS_LBRS_SHIFT | 0xf)
#define PEBS_LOAD_LATENCY	(0xfull << 32) /* formats 1 to 3: kept, nothing is
						  measured */
#define PEBS_LINEAR_BITS	48
#define PEBS_PHYSICAL_BITS	52
#define PEBS_INDEX_VALID	(VPMU_PEBS_INDEX_WR | VPMU_PEBS_INDEX_FULL | VPMU_PEBS_INDEX_EN | \
				 VPMU_PEBS_INDEX_WR << VPMU_PEBS_INDEX_THRESHOLD_SHIFT)
#define PEBS_FIXED_TAIL		0x90u	/* what formats 1 to 3 have more than 0 */

/* Fields of the DS save area, read when a record is due. */
struct pebs_ds {
	uint64_t index, max, threshold;
	uint64_t reset[ARCH_PMC_MAX]; /* reload values of the counters that are due */
};

bool arch_pebs_possible(struct vpmu_provider *p, const struct vpmu_ops *ops)
{
	struct vpmu_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.banks = VPMU_BANKS_KERNEL | VPMU_BANKS_USER;
	attr.pinned = true;
	attr.fixed = -1;
	attr.slot = -1;
	attr.select = vpmu_arch_event[1]; /* instructions */
	attr.period = 1;
	attr.shared = VPMU_SHARED_PEBS;
	return ops->gva_to_gpa && ops->set_sampling && ops->get_sample && ops->gpa_read &&
	       ops->gpa_write && p->ops->quality(p, &attr) != VPMU_QUALITY_NONE;
}

static bool pebs_adaptive(const struct arch_pebs *p)
{
	return p->format >= 4;
}

/* MISC_ENABLE goes on saying that there is no PEBS of the other kind. */
static void pebs_resolve_arch(struct vpmu_arch *v, uint8_t physical_bits)
{
	struct arch_pebs *p = &v->pebs;

	p->status = VPMU_STATUS_PEBS;
	p->valid_base = (1ull << (physical_bits ? physical_bits : PEBS_PHYSICAL_BITS)) -
			ARCH_RECORD_PAGE + VPMU_PEBS_BASE_SIZE;
	p->valid_groups = VPMU_CFG_C_EN | VPMU_CFG_C_AUX | VPMU_CFG_C_GPR | VPMU_CFG_C_XMM |
			  VPMU_CFG_C_ALLOW | VPMU_CFG_C_CNTR_GP;
	if (v->n_fixed)
		p->valid_groups |= VPMU_CFG_C_CNTR_FIXED;
	if (v->lbr.kind)
		p->valid_groups |= VPMU_CFG_C_LBR;
	v->has[ARCH_HAS_ARCH_PEBS] = 2;
	v->valid.reload = UINT32_MAX;
	v->valid.status |= VPMU_STATUS_PEBS;
	v->valid.status_set |= VPMU_STATUS_PEBS;
}

void arch_pebs_resolve(struct vpmu_arch *v, const struct vpmu_arch_config *cfg)
{
	struct arch_pebs *p = &v->pebs;
	unsigned int i;

	if (!(v->capabilities & VPMU_CAP_PEBS))
		return;
	p->on = true;
	p->format = (v->capabilities >> VPMU_CAP_PEBS_FORMAT_SHIFT) & 0xf;
	if (p->format == ARCH_PEBS_FORMAT) {
		pebs_resolve_arch(v, cfg->physical_bits);
		return;
	}
	p->status = VPMU_STATUS_BUFFER;
	p->linear_bits = cfg->linear_bits ? cfg->linear_bits : PEBS_LINEAR_BITS;
	p->reset_fixed = p->format >= 5 ? VPMU_DS_PEBS_RESET_FIXED_5
					: VPMU_DS_PEBS_RESET_FIXED;
	v->misc_enable &= ~VPMU_MISC_ENABLE_NO_PEBS;
	v->has[ARCH_HAS_DS] = 1;
	v->has[ARCH_HAS_PEBS] = pebs_adaptive(p) ? 2 : 1;
	if (!pebs_adaptive(p)) {
		p->valid_enable = arch_pmc_bits(v, (1u << v->n_gp) - 1) &
				  ((1u << PEBS_GP_OLD) - 1);
		if (p->format)
			p->valid_enable |= PEBS_LOAD_LATENCY;
		return;
	}
	p->valid_enable = arch_pmc_bits(v, (1u << v->n_pmc) - 1);
	p->valid_cfg = PEBS_DATA_CFG_VALID;
	v->valid.evtsel |= VPMU_EVTSEL_ADAPTIVE;
	for (i = 0; i < v->n_fixed; i++)
		v->valid.fixed_ctrl |= VPMU_FIXED_ADAPTIVE << (4 * i);
}

uint32_t arch_pebs_enabled(const struct vpmu_arch *v)
{
	uint64_t enable = v->pebs.enable;

	if (!pebs_adaptive(&v->pebs))
		enable &= ~PEBS_LOAD_LATENCY;
	return arch_pmc_set(v, enable);
}

/* v->eager is always those of pebs.wrapped that PEBS is enabled for. */
static void pebs_enabled_changed(struct vpmu_arch *v)
{
	v->eager = v->pebs.wrapped & arch_pebs_enabled(v);
}

void arch_pebs_disarm(struct vpmu_arch *v, uint32_t pmcs)
{
	v->pebs.wrapped &= ~pmcs;
	v->eager &= ~pmcs;
}

void arch_pebs_set_sampling(struct vpmu_arch *v)
{
	bool sampling = v->eager & v->on & v->made;

	if (sampling == v->pebs.sampling)
		return;
	v->pebs.sampling = sampling;
	v->ops.set_sampling(v->ctx, sampling);
}

void arch_pebs_clear(struct vpmu_arch *v)
{
	vpmu_assert(!v->made);
	v->pebs.enable = 0;
	v->pebs.data_cfg = 0;
	v->pebs.ds_area = 0;
	v->pebs.base = 0;
	v->pebs.index = 0;
	memset(v->pebs.groups, 0, sizeof(v->pebs.groups));
	v->pebs.claimed = 0;
	arch_pebs_disarm(v, UINT32_MAX);
	arch_pebs_set_sampling(v);
}

/* Guest memory ---------------------------------------------------------------- */

/* Within two pages. */
static bool pebs_read(struct vpmu_arch *v, uint64_t address, void *buf, uint32_t size)
{
	uint32_t first = arch_record_page_left(address);
	uint64_t gpa;

	if (first > size)
		first = size;
	if (address + size < address || v->ops.gva_to_gpa(v->ctx, address, false, &gpa) ||
	    v->ops.gpa_read(v->ctx, gpa, buf, first))
		return false;
	if (first == size)
		return true;
	return !v->ops.gva_to_gpa(v->ctx, address + first, false, &gpa) &&
	       !v->ops.gpa_read(v->ctx, gpa, (uint8_t *)buf + first, size - first);
}

/* Fields are little-endian, as the host of every embedder so far is. */
static bool pebs_ds_read(struct vpmu_arch *v, uint32_t pmcs, struct pebs_ds *ds)
{
	uint64_t field[3];
	unsigned int pmc;

	if (!pebs_read(v, v->pebs.ds_area + VPMU_DS_PEBS_INDEX, field, sizeof(field)))
		return false;
	ds->index = field[0];
	ds->max = field[1];
	ds->threshold = field[2];
	for (pmc = 0; pmc < v->n_pmc; pmc++) {
		uint32_t at = pmc < v->n_gp ? VPMU_DS_PEBS_RESET + 8 * pmc
				: v->pebs.reset_fixed + 8 * (pmc - v->n_gp);

		if (pmcs >> pmc & 1 &&
		    !pebs_read(v, v->pebs.ds_area + at, &ds->reset[pmc], 8))
			return false;
	}
	return true;
}

/* Records --------------------------------------------------------------------- */

/* The groups of a counter's records. */
static uint64_t pebs_groups(const struct vpmu_arch *v, unsigned int pmc)
{
	bool adaptive = pmc < v->n_gp
		? v->r.evtsel[pmc] & VPMU_EVTSEL_ADAPTIVE
		: v->r.fixed_ctrl >> (4 * (pmc - v->n_gp)) & VPMU_FIXED_ADAPTIVE;

	return adaptive ? v->pebs.data_cfg : 0;
}

/* One record for @pmcs, which want the same groups. False: it is lost. */
static bool pebs_record(struct vpmu_arch *v, struct pebs_ds *ds,
			const struct vpmu_sample *s, uint32_t pmcs, uint64_t cfg)
{
	uint32_t size = arch_record_size(v, cfg);
	struct arch_place at, index;

	if (ds->index > ds->max || ds->max - ds->index < size ||
	    size > ARCH_RECORD_PAGE + arch_record_page_left(ds->index) ||
	    !arch_record_place(v, ds->index, size, &at) ||
	    !arch_record_place(v, v->pebs.ds_area + VPMU_DS_PEBS_INDEX, 8, &index))
		return false;
	arch_record_write(v, &at, s, cfg, arch_pmc_bits(v, pmcs));
	if (at.failed)
		return false;
	ds->index += size;
	arch_record_put(v, &index, &ds->index, 8);
	return !index.failed;
}

unsigned int vpmu_arch_record_places(struct vpmu_arch *v, uint64_t linear[4])
{
	uint32_t size = arch_record_size(v, v->pebs.data_cfg);
	struct pebs_ds ds;

	if (!v->pebs.sampling || v->pebs.format == ARCH_PEBS_FORMAT)
		return 0;
	linear[0] = v->pebs.ds_area + VPMU_DS_PEBS_INDEX;
	linear[1] = v->pebs.ds_area + v->pebs.reset_fixed + 8ull * (v->n_pmc - v->n_gp) - 1;
	memset(&ds, 0, sizeof(ds));
	if (!pebs_ds_read(v, 0, &ds) || ds.index > ds.max || ds.max - ds.index < size)
		return 2;
	linear[2] = ds.index;
	linear[3] = ds.index + size - 1;
	return 4;
}

/* Counters that want the same record share one; there are at most two kinds. */
static bool pebs_records(struct vpmu_arch *v, struct pebs_ds *ds, uint32_t pmcs)
{
	struct vpmu_sample s;
	uint64_t cfg[2] = { v->pebs.data_cfg, 0 };
	bool written = false;
	unsigned int i, pmc;

	memset(&s, 0, sizeof(s));
	v->ops.get_sample(v->ctx, &s);
	for (i = 0; i < 2 && pmcs; i++) {
		uint32_t same = 0;

		for (pmc = 0; pmc < v->n_pmc; pmc++)
			if (pmcs >> pmc & 1 && pebs_groups(v, pmc) == cfg[i])
				same |= 1u << pmc;
		pmcs &= ~same;
		if (same)
			written |= pebs_record(v, ds, &s, same, cfg[i]);
	}
	return written;
}

/* Likewise, at the place that PEBS_BASE and PEBS_INDEX say. */
static bool pebs_arch_record(struct vpmu_arch *v, const struct vpmu_sample *s,
			     uint32_t pmcs, uint64_t groups)
{
	uint64_t room = (uint64_t)ARCH_RECORD_PAGE << (v->pebs.base & VPMU_PEBS_BASE_SIZE);
	uint64_t offset = v->pebs.index & VPMU_PEBS_INDEX_WR;
	uint32_t size = arch_record_size(v, groups);
	struct arch_place at;

	if (room > VPMU_PEBS_INDEX_WR) /* the largest buffer: the offset is to be a number */
		room = VPMU_PEBS_INDEX_WR;
	if (offset > room || room - offset < size)
		v->pebs.index |= VPMU_PEBS_INDEX_FULL;
	if (v->pebs.index & VPMU_PEBS_INDEX_FULL)
		return false;
	arch_record_physical((v->pebs.base & ~VPMU_PEBS_BASE_SIZE) + offset, &at);
	arch_record_write(v, &at, s, groups, arch_pmc_bits(v, pmcs));
	if (at.failed)
		return false;
	v->pebs.index += size;
	return true;
}

/* Counters that want the same groups share a record. */
static bool pebs_arch_records(struct vpmu_arch *v, uint32_t pmcs)
{
	struct vpmu_sample s;
	bool written = false;
	unsigned int i, pmc;

	memset(&s, 0, sizeof(s));
	v->ops.get_sample(v->ctx, &s);
	for (pmc = 0; pmc < v->n_pmc; pmc++) {
		uint64_t groups = v->pebs.groups[pmc] & ~VPMU_CFG_C_ALLOW;
		uint32_t same = 0;

		if (!(pmcs >> pmc & 1))
			continue;
		for (i = pmc; i < v->n_pmc; i++)
			if (pmcs >> i & 1 &&
			    (v->pebs.groups[i] & ~VPMU_CFG_C_ALLOW) == groups)
				same |= 1u << i;
		pmcs &= ~same;
		written |= pebs_arch_record(v, &s, same, groups);
	}
	return written;
}

static void pebs_arch_occurred(struct vpmu_arch *v, uint32_t pmcs, bool *buffer)
{
	uint64_t index;

	if (pebs_arch_records(v, pmcs)) {
		index = v->pebs.index;
		*buffer = index & VPMU_PEBS_INDEX_EN &&
			  (index & VPMU_PEBS_INDEX_WR) >=
			  (index >> VPMU_PEBS_INDEX_THRESHOLD_SHIFT & VPMU_PEBS_INDEX_WR);
	}
	arch_event_reload(v, pmcs);
	arch_pebs_reload(v, pmcs);
}

/* Counters whose reset values cannot be read go on as they are. */
static void pebs_occurred(struct vpmu_arch *v, uint32_t pmcs, bool *buffer)
{
	struct pebs_ds ds;
	unsigned int pmc;

	arch_pebs_disarm(v, pmcs);
	v->r.status &= ~arch_pmc_bits(v, pmcs);
	if (v->pebs.format == ARCH_PEBS_FORMAT) {
		pebs_arch_occurred(v, pmcs, buffer);
		return;
	}
	memset(&ds, 0, sizeof(ds));
	if (!pebs_ds_read(v, pmcs, &ds)) {
		arch_event_rearm(v, pmcs);
		return;
	}
	if (pebs_records(v, &ds, pmcs) && ds.index >= ds.threshold)
		*buffer = true;
	arch_event_begin(v);
	for (pmc = 0; pmc < v->n_pmc; pmc++)
		if (pmcs >> pmc & 1)
			arch_event_put(v, pmc, ds.reset[pmc] & v->valid.counter);
	(void)arch_event_end(v);
}

uint32_t arch_pebs_overflow(struct vpmu_arch *v, uint32_t pmcs, bool *buffer)
{
	uint32_t ours = pmcs & arch_pebs_enabled(v);
	uint32_t due = ours & v->pebs.wrapped;

	if (!ours)
		return pmcs;
	if (due)
		pebs_occurred(v, due, buffer);
	v->pebs.wrapped |= ours & ~due;
	v->eager |= ours & ~due;
	arch_event_rearm(v, ours & ~due);
	arch_pebs_set_sampling(v);
	return pmcs & ~ours;
}

/* A counter that is given a new value has not wrapped. */
void arch_pebs_reload(struct vpmu_arch *v, uint32_t pmcs)
{
	uint32_t reloaded = arch_event_reloaded(v, pmcs);

	arch_pebs_disarm(v, reloaded);
	arch_event_reload(v, reloaded);
	arch_pebs_set_sampling(v);
}

/* Registers ------------------------------------------------------------------- */

enum vpmu_result arch_pebs_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	*value = i ? v->pebs.data_cfg : v->pebs.enable;
	return VPMU_HANDLED;
}

/* Guests switch PEBS off for moments: a counter that has wrapped stays so. */
static void pebs_enable(struct vpmu_arch *v, uint64_t value)
{
	uint32_t before = arch_pebs_enabled(v), changed;

	v->pebs.enable = value;
	pebs_enabled_changed(v);
	changed = before ^ arch_pebs_enabled(v);
	v->marked.rearm |= changed & v->pebs.wrapped;
	v->marked.pmcs |= changed & ~before & v->made & ~v->pebs.claimed;
}

enum vpmu_result arch_pebs_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	if (value & ~(i ? v->pebs.valid_cfg : v->pebs.valid_enable))
		return VPMU_FAULT;
	if (i)
		v->pebs.data_cfg = value;
	else if (value != v->pebs.enable)
		pebs_enable(v, value);
	return VPMU_HANDLED;
}

void arch_pebs_configure(struct vpmu_arch *v, unsigned int pmc, uint64_t groups)
{
	uint64_t bit = arch_pmc_bits(v, 1u << pmc);

	v->pebs.groups[pmc] = groups;
	pebs_enable(v, groups & VPMU_CFG_C_EN ? v->pebs.enable | bit : v->pebs.enable & ~bit);
}

enum vpmu_result arch_pebs_arch_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	*value = i ? v->pebs.index : v->pebs.base;
	return VPMU_HANDLED;
}

enum vpmu_result arch_pebs_arch_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	if (value & ~(i ? PEBS_INDEX_VALID : v->pebs.valid_base))
		return VPMU_FAULT;
	if (i)
		v->pebs.index = value;
	else
		v->pebs.base = value;
	return VPMU_HANDLED;
}

enum vpmu_result arch_pebs_ds_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	*value = v->pebs.ds_area;
	return VPMU_HANDLED;
}

static bool pebs_canonical(const struct vpmu_arch *v, uint64_t address)
{
	uint64_t high = address >> (v->pebs.linear_bits - 1);

	return !high || high == UINT64_MAX >> (v->pebs.linear_bits - 1);
}

enum vpmu_result arch_pebs_ds_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	if (!pebs_canonical(v, value))
		return VPMU_FAULT;
	v->pebs.ds_area = value;
	return VPMU_HANDLED;
}

/* State ----------------------------------------------------------------------- */

void arch_pebs_put(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const struct arch_pebs *p = &v->pebs;

	vpmu_state_put(c, p->format, 1);
	vpmu_state_put(c, 0, 7);
	vpmu_state_put(c, p->enable, 8);
	vpmu_state_put(c, p->data_cfg, 8);
	vpmu_state_put(c, p->ds_area, 8);
	vpmu_state_put(c, arch_pmc_bits(v, p->wrapped), 8);
	vpmu_state_put(c, arch_pmc_bits(v, p->claimed), 8);
}

int arch_pebs_check(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	uint64_t counters = arch_pmc_bits(v, (1u << v->n_pmc) - 1);
	uint64_t format = vpmu_state_get(c, 1), bad = vpmu_state_get(c, 7);

	bad |= vpmu_state_get(c, 8) & ~v->pebs.valid_enable;
	bad |= vpmu_state_get(c, 8) & ~v->pebs.valid_cfg;
	bad |= !pebs_canonical(v, vpmu_state_get(c, 8));
	bad |= vpmu_state_get(c, 8) & ~counters;
	bad |= vpmu_state_get(c, 8) & ~counters;
	if (bad || c->error || format != v->pebs.format)
		return -VPMU_EINVAL;
	return 0;
}

void arch_pebs_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	struct arch_pebs *p = &v->pebs;

	arch_pebs_clear(v);
	if (!c->data)
		return;
	(void)vpmu_state_get(c, 8);
	p->enable = vpmu_state_get(c, 8);
	p->data_cfg = vpmu_state_get(c, 8);
	p->ds_area = vpmu_state_get(c, 8);
	p->wrapped = arch_pmc_set(v, vpmu_state_get(c, 8));
	p->claimed = arch_pmc_set(v, vpmu_state_get(c, 8));
	pebs_enabled_changed(v);
}

void arch_pebs_arch_put(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const struct arch_pebs *p = &v->pebs;
	unsigned int pmc;

	vpmu_state_put(c, v->n_gp, 1);
	vpmu_state_put(c, v->n_fixed, 1);
	vpmu_state_put(c, 0, 6);
	vpmu_state_put(c, p->base, 8);
	vpmu_state_put(c, p->index, 8);
	vpmu_state_put(c, arch_pmc_bits(v, p->wrapped), 8);
	vpmu_state_put(c, arch_pmc_bits(v, p->claimed), 8);
	for (pmc = 0; pmc < v->n_pmc; pmc++)
		vpmu_state_put(c, p->groups[pmc], 8);
}

int arch_pebs_arch_check(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const struct arch_image *im = &v->image;
	uint64_t counters = arch_pmc_bits(v, (1u << v->n_pmc) - 1);
	uint64_t n_gp = vpmu_state_get(c, 1), n_fixed = vpmu_state_get(c, 1);
	uint64_t bad = vpmu_state_get(c, 6);
	unsigned int i;

	bad |= vpmu_state_get(c, 8) & ~v->pebs.valid_base;
	bad |= vpmu_state_get(c, 8) & ~PEBS_INDEX_VALID;
	bad |= vpmu_state_get(c, 8) & ~counters;
	bad |= vpmu_state_get(c, 8) & ~counters;
	for (i = 0; i < im->n_gp + im->n_fixed; i++)
		bad |= vpmu_state_get(c, 8) & ~v->pebs.valid_groups;
	if (bad || c->error || !im->body[ARCH_SECTION_REGS].data || n_gp != im->n_gp ||
	    n_fixed != im->n_fixed)
		return -VPMU_EINVAL;
	return 0;
}

/* After arch_pebs_adopt(), which has cleared everything. */
void arch_pebs_arch_adopt(struct vpmu_arch *v, struct vpmu_state_cursor *c)
{
	const struct arch_image *im = &v->image;
	struct arch_pebs *p = &v->pebs;
	unsigned int i;

	if (!c->data)
		return;
	(void)vpmu_state_get(c, 8);
	p->base = vpmu_state_get(c, 8);
	p->index = vpmu_state_get(c, 8);
	p->wrapped = arch_pmc_set(v, vpmu_state_get(c, 8));
	p->claimed = arch_pmc_set(v, vpmu_state_get(c, 8));
	for (i = 0; i < im->n_gp + im->n_fixed; i++) {
		unsigned int pmc = arch_image_pmc(im, i, v->n_gp);

		p->groups[pmc] = vpmu_state_get(c, 8);
		if (p->groups[pmc] & VPMU_CFG_C_EN)
			p->enable |= arch_pmc_bits(v, 1u << pmc);
	}
	pebs_enabled_changed(v);
}
