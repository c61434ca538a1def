// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The PMU with PEBS and its memory; pebs_rig.h describes them. */
#include "pebs_rig.h"

#include <vpmu/result.h>

static int rig_translate(void *ctx, uint64_t address, bool write, uint64_t *gpa)
{
	struct pebs_rig *r = ctx;
	uint64_t at = address - RIG_LINEAR;
	uint8_t map;

	r->n_hook++;
	if (at >= RIG_RAM)
		return -VPMU_EFAULT;
	map = r->map[at / RIG_PAGE];
	if (map == RIG_UNMAPPED || (write && map == RIG_READ_ONLY))
		return -VPMU_EFAULT;
	*gpa = at ^ RIG_PAGE;
	return 0;
}

/* NULL: not within a page of RAM. */
static uint8_t *rig_at(struct pebs_rig *r, uint64_t gpa, uint32_t size)
{
	uint64_t at = gpa ^ RIG_PAGE;

	r->n_hook++;
	if (at >= RIG_RAM)
		return NULL;
	if (!size || at % RIG_PAGE + size > RIG_PAGE) {
		r->script.broken = "an access beyond one page";
		return NULL;
	}
	return r->map[at / RIG_PAGE] == RIG_MMIO ? NULL : r->ram + at;
}

static int rig_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	uint8_t *at = rig_at(ctx, gpa, size);

	if (!at)
		return -VPMU_EFAULT;
	memcpy(buf, at, size);
	return 0;
}

static int rig_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size)
{
	struct pebs_rig *r = ctx;
	uint8_t *at = rig_at(r, gpa, size);

	if (!at)
		return -VPMU_EFAULT;
	if (r->map[(at - r->ram) / RIG_PAGE] != RIG_WRITABLE)
		r->script.broken = "a write to what is not writable";
	memcpy(at, buf, size);
	return 0;
}

uint64_t pebs_rig_count(const struct pebs_rig *r)
{
	const uint64_t *word = r->script.truth.word[VPMU_SIGNAL_INSTRUCTIONS];

	return word[0] + word[1] + word[2] + word[3];
}

void pebs_rig_sample(const struct pebs_rig *r, struct vpmu_sample *s)
{
	uint64_t n = pebs_rig_count(r) - 1;
	unsigned int i;

	s->ip = RIG_CODE + 4 * n;
	s->next_ip = s->ip + 4;
	s->flags = 0x202;
	s->code64 = true;
	for (i = 0; i < VPMU_SAMPLE_GPRS; i++)
		s->gpr[i] = n << 8 | i;
	s->address = 0x7000 + 8 * n;
	s->tsc = 1000000 + n;
	for (i = 0; i < VPMU_SAMPLE_XMMS; i++) {
		s->xmm[i][0] = n << 16 | i;
		s->xmm[i][1] = n << 16 | 0x8000 | i;
	}
	s->modelled = r->uarch;
	s->latency = r->access.latency;
	s->level = r->access.level;
	s->tlb = r->access.tlb;
	s->store = r->access.store;
	s->locked = r->access.locked;
}

static void rig_set_load_latency(void *ctx, uint32_t cycles)
{
	struct pebs_rig *r = ctx;

	r->threshold = cycles;
}

static void rig_counter_restarted(void *ctx)
{
	struct pebs_rig *r = ctx;

	r->n_restarted++;
}

static void rig_get_sample(void *ctx, struct vpmu_sample *s)
{
	struct pebs_rig *r = ctx;

	if (!r->script.watch)
		r->script.broken = "sample of what was not watched";
	pebs_rig_sample(r, s);
}

static void rig_raise_pmi(void *ctx, bool mask)
{
	struct pebs_rig *r = ctx;

	(void)mask;
	r->n_pmi++;
}

static void rig_service(void *arg)
{
	struct pebs_rig *r = arg;

	vpmu_arch_service(r->v);
}

void (*pebs_rig_hooks)(struct vpmu_ops *ops);

static void rig_engine(struct pebs_rig *r)
{
	struct vpmu_silicon_config silicon = { .size = sizeof(silicon) };
	struct vpmu_ops *ops = &r->script.ops;

	vpmu_script_init(&r->script, r->uarch ? VPMU_SIGNALS_ALL : VPMU_SCRIPT_SUPPLIED);
	if (r->uarch) {
		ops->set_load_latency = rig_set_load_latency;
		ops->counter_restarted = rig_counter_restarted;
	}
	ops->raise_pmi = rig_raise_pmi;
	ops->gpa_read = rig_read;
	ops->gpa_write = rig_write;
	ops->gva_to_gpa = rig_translate;
	ops->get_sample = rig_get_sample;
	if (pebs_rig_hooks)
		pebs_rig_hooks(ops);
	r->script.silicon = &r->direct.silicon;
	r->script.service = rig_service;
	r->script.arg = r;
	silicon.model = &r->model;
	silicon.supplied = r->script.supplied;
	silicon.ops = ops;
	silicon.ctx = r;
	if (vpmu_direct_init(&r->direct, &silicon))
		abort();
}

static struct pebs_rig *rig_new(const struct vpmu_model *model, uint8_t version,
				const struct vpmu_filter *filter, uint32_t cpuid_base,
				bool uarch)
{
	struct pebs_rig *r = calloc(1, sizeof(*r));
	struct vpmu_arch_config cfg = { .size = sizeof(cfg) };

	if (!r)
		abort();
	r->model = *model;
	r->uarch = uarch;
	rig_engine(r);
	cfg.model = &r->model;
	cfg.version = version;
	cfg.n_fixed = -1;
	cfg.cpuid_base = cpuid_base;
	cfg.capabilities = r->model.capabilities;
	cfg.provider = &r->direct.provider;
	cfg.ops = &r->script.ops;
	cfg.ctx = r;
	cfg.filter = filter;
	if (vpmu_arch_size(&cfg, &r->size, NULL))
		abort();
	r->v = malloc(r->size);
	if (!r->v || vpmu_arch_init(r->v, &cfg, NULL))
		abort();
	return r;
}

struct pebs_rig *pebs_rig_new_model(const struct vpmu_model *model, uint8_t version,
				    uint32_t cpuid_base)
{
	return rig_new(model, version, NULL, cpuid_base, false);
}

struct pebs_rig *pebs_rig_new_uarch(uint8_t model)
{
	return rig_new(vpmu_model_find(VPMU_VENDOR_INTEL, 6, model), 0, NULL, 0, true);
}

struct pebs_rig *pebs_rig_new(unsigned int format, uint8_t version,
			      const struct vpmu_filter *filter)
{
	struct vpmu_model model = *vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);

	model.capabilities &= ~VPMU_CAP_PEBS;
	model.capabilities |= VPMU_CAP_PEBS_TRAP | VPMU_CAP_PEBS_REGS |
			      VPMU_CAP_PEBS_FORMAT(format) |
			      (format >= 4 ? VPMU_CAP_PEBS_BASELINE : 0);
	return rig_new(&model, version, filter, 0, false);
}

void pebs_rig_free(struct pebs_rig *r)
{
	vpmu_arch_reset(r->v, false);
	free(r->v);
	free(r);
}

void pebs_rig_run(struct pebs_rig *r, unsigned int n)
{
	while (n--)
		vpmu_script_step(&r->script, VPMU_BANK_KERNEL, VPMU_SIGNAL_INSTRUCTIONS);
}

uint64_t pebs_rig_load(const struct pebs_rig *r, uint64_t address)
{
	uint64_t value;

	memcpy(&value, r->ram + (address - RIG_LINEAR), 8);
	return value;
}

void pebs_rig_store(struct pebs_rig *r, uint64_t address, uint64_t value)
{
	memcpy(r->ram + (address - RIG_LINEAR), &value, 8);
}
