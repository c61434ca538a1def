// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The guest with a paravirtual PMU; pv_rig.h describes it. */
#include <stdlib.h>

#include "pv_rig.h"

#define ROW(sel, mask, sig, how) \
	{ .name = "ROW", .select = sel, .fixed = -1, .gp_mask = mask, \
	  .signals = sig, .quality = VPMU_QUALITY_##how }

#define ROWS(mask) { \
	ROW(PV_INSTRUCTIONS, mask, VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS), EXACT), \
	ROW(PV_BRANCHES, mask, VPMU_SIGNAL_BIT(VPMU_SIGNAL_BRANCHES), EXACT), \
	{ .name = "UNCOUNTED", .select = PV_UNCOUNTED, .fixed = -1, .gp_mask = mask, \
	  .quality = VPMU_QUALITY_MODELLED, .needs = "--uarch on" }, \
}

static const struct vpmu_event_def rows[4][3] = { ROWS(1), ROWS(3), ROWS(7), ROWS(15) };

static struct pv_rig_vcpu *vcpu_of(void *ctx)
{
	return ctx;
}

static void broken(struct pv_rig *r, const char *what)
{
	if (!r->broken)
		r->broken = what;
}

/* Check a write, and do what another CPU of the guest does then. */
static void noted(struct pv_rig *r, uint64_t gpa, uint32_t size)
{
	if (r->shadow)
		memcpy(r->shadow + gpa, r->ram + gpa, size);
	if (r->meddle)
		r->meddle(r);
}

/* Hooks */

static int rig_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	struct pv_rig *r = vcpu_of(ctx)->rig;

	if (r->locked)
		broken(r, "gpa_read under the lock");
	if (gpa > PV_RIG_RAM || size > PV_RIG_RAM - gpa)
		return -VPMU_EFAULT;
	memcpy(buf, r->ram + gpa, size);
	noted(r, 0, 0);
	return 0;
}

static int rig_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size)
{
	struct pv_rig *r = vcpu_of(ctx)->rig;

	if (r->locked)
		broken(r, "gpa_write under the lock");
	if (gpa > PV_RIG_ROM || size > PV_RIG_ROM - gpa)
		return -VPMU_EFAULT;
	memcpy(r->ram + gpa, buf, size);
	noted(r, gpa, size);
	return 0;
}

static void *rig_map(void *ctx, uint64_t gpa, uint32_t size)
{
	struct pv_rig *r = vcpu_of(ctx)->rig;
	unsigned int i;

	if (r->locked)
		broken(r, "gpa_map under the lock");
	if (!size || gpa % PV_RIG_PAGE + size > PV_RIG_PAGE)
		broken(r, "gpa_map across pages");
	if (gpa > PV_RIG_ROM || size > PV_RIG_ROM - gpa)
		return NULL;
	for (i = 0; i < PV_RIG_MAPS && r->map[i].at; i++)
		;
	if (i == PV_RIG_MAPS)
		return NULL;
	r->map[i].at = r->ram + gpa;
	r->map[i].size = size;
	r->n_maps++;
	return r->map[i].at;
}

static void rig_unmap(void *ctx, void *at, uint32_t size)
{
	struct pv_rig *r = vcpu_of(ctx)->rig;
	unsigned int i;

	if (r->locked)
		broken(r, "gpa_unmap under the lock");
	for (i = 0; i < PV_RIG_MAPS; i++)
		if (r->map[i].at == at && r->map[i].size == size)
			break;
	if (i == PV_RIG_MAPS) {
		broken(r, "gpa_unmap of what is not mapped");
		return;
	}
	r->map[i].at = NULL;
	r->n_maps--;
}

static void rig_dirty(void *ctx, void *at, uint32_t size)
{
	struct pv_rig *r = vcpu_of(ctx)->rig;
	uint8_t *p = at;
	unsigned int i;

	if (!r->locked)
		broken(r, "a write to mapped memory without the lock");
	for (i = 0; i < PV_RIG_MAPS; i++) {
		uint8_t *map = r->map[i].at;

		if (map && p >= map && p + size <= map + r->map[i].size) {
			noted(r, (uint64_t)(p - r->ram), size);
			return;
		}
	}
	broken(r, "a write to memory that is not mapped");
}

static void rig_inject(void *ctx, uint8_t vector)
{
	struct pv_rig_vcpu *v = vcpu_of(ctx);

	if (v->rig->locked)
		broken(v->rig, "an interrupt under the lock");
	v->vector = vector;
	if (vector)
		v->n_irq++;
	else
		v->n_nmi++;
	v->nmi_at = v->script.truth.word[VPMU_SIGNAL_INSTRUCTIONS][VPMU_BANK_USER];
}

static void rig_lock(void *ctx)
{
	struct pv_rig *r = vcpu_of(ctx)->rig;

	if (r->locked++)
		broken(r, "the lock nests");
}

static void rig_unlock(void *ctx)
{
	struct pv_rig *r = vcpu_of(ctx)->rig;

	if (--r->locked)
		broken(r, "the lock was not held");
}

static void rig_both_services(void *arg)
{
	struct pv_rig_vcpu *v = arg;

	if (!v->rig->direct)
		vpmu_perf_service(&v->cpu);
	vpmu_pv_service(v->pv);
}

/* Set up */

static struct vpmu_provider *rig_direct(struct pv_rig_vcpu *v)
{
	struct vpmu_silicon_config silicon = { .size = sizeof(silicon) };

	silicon.model = &v->rig->model;
	silicon.supplied = VPMU_SCRIPT_SUPPLIED;
	silicon.ops = &v->ops;
	silicon.ctx = v;
	if (vpmu_direct_init(&v->direct, &silicon))
		return NULL;
	v->script.silicon = &v->direct.silicon;
	return &v->direct.provider;
}

static struct vpmu_provider *rig_perf(struct pv_rig_vcpu *v, unsigned int n)
{
	if (vpmu_perf_cpu_init(&v->cpu, &v->rig->sys, n, &v->ops, v) ||
	    vpmu_vcpu_init(&v->vcpu, &v->rig->sys, VPMU_POLICY_SHARED))
		return NULL;
	v->script.silicon = &v->cpu.silicon;
	vpmu_vcpu_load(&v->vcpu, &v->cpu);
	vpmu_vcpu_enter(&v->vcpu);
	return &v->vcpu.provider;
}

void (*pv_rig_hooks)(struct vpmu_ops *ops);

static int rig_vcpu(struct pv_rig *r, unsigned int n, size_t bytes)
{
	struct pv_rig_vcpu *v = &r->vcpu[n];
	struct vpmu_provider *provider;

	vpmu_script_init(&v->script, VPMU_SCRIPT_SUPPLIED);
	v->rig = r;
	v->ops = v->script.ops;
	v->ops.size = sizeof(v->ops);
	v->ops.gpa_read = rig_read;
	v->ops.gpa_write = rig_write;
	v->ops.gpa_map = rig_map;
	v->ops.gpa_unmap = rig_unmap;
	v->ops.gpa_dirty = rig_dirty;
	v->ops.inject = rig_inject;
	v->ops.lock = rig_lock;
	v->ops.unlock = rig_unlock;
	if (pv_rig_hooks)
		pv_rig_hooks(&v->ops);
	provider = r->direct ? rig_direct(v) : rig_perf(v, n);
	v->script.service = rig_both_services;
	v->script.arg = v;
	v->pv = calloc(1, bytes);
	return vpmu_pv_init(v->pv, r->vm, n, provider, &v->ops, v);
}

static void rig_model(struct vpmu_model *m, unsigned int n_gp)
{
	m->name = "rig";
	m->vendor = VPMU_VENDOR_INTEL;
	m->version = 5;
	m->n_gp = (uint8_t)n_gp;
	m->width_bits = 48;
	m->events = rows[n_gp - 1];
	m->n_events = 3;
}

static struct pv_rig *rig_new(unsigned int n_gp, const struct vpmu_pv_config *cfg,
			      const struct vpmu_provider_ops *provider)
{
	struct pv_rig *r = calloc(1, sizeof(*r));
	struct vpmu_error err;
	size_t vm_bytes, vcpu_bytes;
	unsigned int i;
	int ret = 0;

	r->direct = provider == &vpmu_direct_ops;
	r->ram = aligned_alloc(PV_RIG_PAGE, PV_RIG_RAM);
	memset(r->ram, 0, PV_RIG_RAM);
	if (cfg && cfg->model)
		r->model = *cfg->model;
	else
		rig_model(&r->model, n_gp);
	vpmu_perf_system_init(&r->sys, &r->model, VPMU_SCRIPT_SUPPLIED, 1000000000, 0);
	if (cfg)
		r->cfg = *cfg;
	r->cfg.size = sizeof(r->cfg);
	r->cfg.model = &r->model;
	r->cfg.n_vcpus = PV_RIG_VCPUS;
	if (!r->cfg.abi)
		r->cfg.abi = VPMU_PV_ABI_1 | VPMU_PV_ABI_2;
	if (!cfg)
		r->cfg.features = VPMU_PV_HAS_GROUPS | VPMU_PV_HAS_VECTOR;
	if (!vpmu_pv_size(&r->cfg, provider, &vm_bytes, &vcpu_bytes, &err)) {
		r->vm = calloc(1, vm_bytes);
		ret = vpmu_pv_vm_init(r->vm, &r->cfg, provider, &err);
		for (i = 0; !ret && i < PV_RIG_VCPUS; i++)
			ret = rig_vcpu(r, i, vcpu_bytes);
		if (!ret)
			return r;
	}
	free(r->vm);
	free(r->ram);
	free(r);
	return NULL;
}

struct pv_rig *pv_rig_new(unsigned int n_gp, const struct vpmu_pv_config *cfg)
{
	return rig_new(n_gp, cfg, &vpmu_vcpu_ops);
}

struct pv_rig *pv_rig_new_direct(unsigned int n_gp, const struct vpmu_pv_config *cfg)
{
	return rig_new(n_gp, cfg, &vpmu_direct_ops);
}

static bool rig_has_events(const struct pv_rig_vcpu *v)
{
	unsigned int i, n = 0;

	for (i = 0; i < VPMU_SLOTS_MAX; i++)
		n += v->direct.event[i] != NULL;
	return n || v->vcpu.task.ctx.groups[0].n_all || v->vcpu.task.ctx.groups[1].n_all;
}

const char *pv_rig_free(struct pv_rig *r)
{
	const char *bad = r->broken;
	unsigned int i;

	vpmu_pv_vm_reset(r->vm);
	for (i = 0; i < PV_RIG_VCPUS; i++) {
		struct pv_rig_vcpu *v = &r->vcpu[i];

		vpmu_pv_fini(v->pv);
		if (rig_has_events(v))
			bad = "events of the provider are left";
		if (!bad)
			bad = v->script.broken;
		free(v->pv);
	}
	if (r->n_maps)
		bad = "memory is left mapped";
	if (r->locked)
		bad = "the lock is held";
	if (!bad)
		bad = r->broken;
	free(r->vm);
	free(r->ram);
	free(r);
	return bad;
}

/* The guest */

void pv_rig_run(struct pv_rig *r, unsigned int vcpu, uint64_t n)
{
	vpmu_script_run(&r->vcpu[vcpu].script, VPMU_BANK_USER, n);
}

void pv_rig_run_branches(struct pv_rig *r, unsigned int vcpu, uint64_t n)
{
	while (n--)
		vpmu_script_step(&r->vcpu[vcpu].script, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
}

void pv_rig_service(struct pv_rig *r, unsigned int vcpu)
{
	vpmu_script_service(&r->vcpu[vcpu].script);
}

int64_t pv_rig_call(struct pv_rig *r, unsigned int vcpu, uint64_t nr, uint64_t a0,
		    uint64_t a1, uint64_t a2)
{
	struct vpmu_hypercall call = { .nr = nr, .arg = { a0, a1, a2 }, .long_mode = true };

	if (vpmu_pv_hypercall(r->vcpu[vcpu].pv, &call) != VPMU_HANDLED)
		return INT64_MIN;
	vpmu_script_service(&r->vcpu[vcpu].script);
	return call.result;
}

int64_t pv_rig_setup(struct pv_rig *r, unsigned int vcpu, uint64_t page, uint32_t vector)
{
	struct vpmu_pv_setup setup = { .size = sizeof(setup), .vector = vector, .page = page };

	memcpy(r->ram + PV_RIG_SETUP, &setup, sizeof(setup));
	return pv_rig_call(r, vcpu, VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, PV_RIG_SETUP, 0);
}

int64_t pv_rig_setup_branches(struct pv_rig *r, unsigned int vcpu)
{
	struct vpmu_pv_setup_branches setup = {
		.setup = { .size = sizeof(setup), .page = PV_RIG_SLOTS(vcpu) },
		.branches = PV_RIG_BRANCHES(vcpu),
	};

	memcpy(r->ram + PV_RIG_SETUP, &setup, sizeof(setup));
	return pv_rig_call(r, vcpu, VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, PV_RIG_SETUP, 0);
}

struct vpmu_pv_branches *pv_rig_branches(struct pv_rig *r, unsigned int vcpu)
{
	return (struct vpmu_pv_branches *)(void *)(r->ram + PV_RIG_BRANCHES(vcpu));
}

struct vpmu_pv_op pv_rig_op(enum vpmu_pv_op_code code, uint32_t id)
{
	struct vpmu_pv_op op;

	memset(&op, 0, sizeof(op));
	op.op = (uint16_t)code;
	op.id = id;
	return op;
}

struct vpmu_pv_op pv_rig_open(uint32_t id, uint32_t flags, uint64_t raw)
{
	struct vpmu_pv_op op = pv_rig_op(VPMU_PV_OPEN, id);

	op.u.open.type = VPMU_PV_TYPE_RAW;
	op.u.open.flags = flags;
	op.u.open.config = raw;
	return op;
}

struct vpmu_pv_op pv_rig_enable(uint32_t id, uint32_t slot, uint64_t left, uint64_t period)
{
	struct vpmu_pv_op op = pv_rig_op(VPMU_PV_ENABLE, id);

	op.slot = slot;
	op.u.enable.left = left;
	op.u.enable.period = period;
	return op;
}

int64_t pv_rig_batch(struct pv_rig *r, unsigned int vcpu, struct vpmu_pv_op *op,
		     unsigned int n)
{
	uint64_t at = PV_RIG_BATCH(vcpu);
	struct vpmu_pv_batch head;
	int64_t ret;

	memset(&head, 0, sizeof(head));
	head.n_ops = n;
	head.size = (uint32_t)(sizeof(head) + n * sizeof(*op));
	memcpy(r->ram + at, &head, sizeof(head));
	memcpy(r->ram + at + sizeof(head), op, n * sizeof(*op));
	ret = pv_rig_call(r, vcpu, VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, at, 0);
	memcpy(op, r->ram + at + sizeof(head), n * sizeof(*op));
	return ret;
}

int pv_rig_do(struct pv_rig *r, unsigned int vcpu, struct vpmu_pv_op op)
{
	return pv_rig_batch(r, vcpu, &op, 1) == 1 ? op.result : -4096;
}

struct vpmu_pv_page *pv_rig_page(struct pv_rig *r, unsigned int vcpu)
{
	return (struct vpmu_pv_page *)(void *)(r->ram + PV_RIG_SLOTS(vcpu));
}

struct vpmu_pv_slot *pv_rig_slot(struct pv_rig *r, unsigned int vcpu, unsigned int slot)
{
	return &pv_rig_page(r, vcpu)->slot[slot];
}

int64_t pv_rig_open_1(struct pv_rig *r, unsigned int vcpu, int n, uint64_t raw,
		      uint64_t period, uint64_t flags)
{
	struct vpmu_pv1_params params = {
		.attr = PV_RIG_ATTR, .event = PV_RIG_EVENT(n), .id = n };
	struct vpmu_pv1_attr attr = {
		.type = VPMU_PV_TYPE_RAW, .config = raw, .sample_period = period,
		.flags = flags };

	memcpy(r->ram + PV_RIG_PARAMS, &params, sizeof(params));
	memcpy(r->ram + PV_RIG_ATTR, &attr, sizeof(attr));
	return pv_rig_call(r, vcpu, VPMU_PV1_HYPERCALL, VPMU_PV1_OPEN, PV_RIG_PARAMS, 0);
}

int64_t pv_rig_do_1(struct pv_rig *r, unsigned int vcpu, unsigned int op, int id)
{
	return pv_rig_call(r, vcpu, VPMU_PV1_HYPERCALL, op, (uint64_t)(int64_t)id, 0);
}

struct vpmu_pv1_event *pv_rig_event_1(struct pv_rig *r, int n)
{
	return (struct vpmu_pv1_event *)(void *)(r->ram + PV_RIG_EVENT(n));
}
