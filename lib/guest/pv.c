// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The paravirtual PMU: configuration, RESET, queries. */
#include "pv_batch.h"
#include "pv_close.h"
#include "pv_counter.h"
#include "pv_event.h"
#include "pv_memory.h"
#include "pv_page.h"
#include "pv_slot.h"

#define PV_EVENTS	512u
#define PV_OVERFLOWS	1000u
#define PV_VCPUS_MAX	65535u
#define PV_FEATURES	(VPMU_PV_HAS_GROUPS | VPMU_PV_HAS_VECTOR | VPMU_PV_HAS_NESTED | \
			 VPMU_PV_HAS_DOORBELL | VPMU_PV_HAS_BRANCHES | VPMU_PV_HAS_TOPDOWN)

/* The part of struct vpmu_provider_ops that is needed. */
#define PV_PROVIDER_SIZE (offsetof(struct vpmu_provider_ops, load) + sizeof(void *))

static int pv_refuse(struct vpmu_error *err, const char *what, uint64_t asked,
		     uint64_t available)
{
	if (err) {
		err->what = what;
		err->asked = asked;
		err->available = available;
	}
	return -VPMU_EINVAL;
}

static int pv_check_provider(const struct vpmu_provider_ops *p, struct vpmu_error *err)
{
	if (!p || p->size < PV_PROVIDER_SIZE)
		return pv_refuse(err, "provider's ops' size", p ? p->size : 0,
				 PV_PROVIDER_SIZE);
	if (p->event_size < sizeof(struct vpmu_event) || p->event_size % 8)
		return pv_refuse(err, "provider's event size, a multiple of 8",
				 p->event_size, sizeof(struct vpmu_event));
	return 0;
}

static int pv_check_limits(const struct vpmu_pv_config *cfg, struct vpmu_error *err)
{
	const uint32_t abis = VPMU_PV_ABI_1 | VPMU_PV_ABI_2;

	if (!cfg->abi || cfg->abi & ~abis)
		return pv_refuse(err, "abi", cfg->abi, abis);
	if (!cfg->n_vcpus || cfg->n_vcpus > PV_VCPUS_MAX)
		return pv_refuse(err, "n_vcpus, at least 1", cfg->n_vcpus, PV_VCPUS_MAX);
	if (cfg->n_events > VPMU_PV_EVENTS_MAX)
		return pv_refuse(err, "n_events", cfg->n_events, VPMU_PV_EVENTS_MAX);
	if (cfg->n_slots > VPMU_PV_SLOTS)
		return pv_refuse(err, "n_slots", cfg->n_slots, VPMU_PV_SLOTS);
	if (cfg->features & ~PV_FEATURES)
		return pv_refuse(err, "features", cfg->features, PV_FEATURES);
	if (cfg->no_hypercall && !(cfg->features & VPMU_PV_HAS_DOORBELL))
		return pv_refuse(err, "features, without a hypercall", cfg->features,
				 VPMU_PV_HAS_DOORBELL);
	if (cfg->period_min > VPMU_PV_LEFT_MAX)
		return pv_refuse(err, "period_min", cfg->period_min, VPMU_PV_LEFT_MAX);
	if (cfg->filter && vpmu_filter_check(cfg->filter))
		return pv_refuse(err, "event filter's entries, action and flags",
				 cfg->filter->n_events, VPMU_FILTER_EVENTS_MAX);
	return 0;
}

static int pv_check(const struct vpmu_pv_config *cfg, const struct vpmu_provider_ops *provider,
		    struct vpmu_error *err)
{
	int ret;

	if (!cfg || cfg->size < sizeof(*cfg))
		return pv_refuse(err, "config's size", cfg ? cfg->size : 0, sizeof(*cfg));
	if (!cfg->model || !vpmu_pv_event_names(cfg->model))
		return pv_refuse(err, "model's vendor, limited to Intel and AMD",
				 cfg->model ? cfg->model->vendor : 0, VPMU_VENDOR_AMD);
	ret = pv_check_provider(provider, err);
	return ret ? ret : pv_check_limits(cfg, err);
}

static uint32_t pv_or(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

int vpmu_pv_size(const struct vpmu_pv_config *cfg, const struct vpmu_provider_ops *provider,
		 size_t *vm_bytes, size_t *vcpu_bytes, struct vpmu_error *err)
{
	int ret = pv_check(cfg, provider, err);

	if (ret)
		return ret;
	*vm_bytes = sizeof(struct vpmu_pv_vm) + pv_vcpus_bytes(cfg->n_vcpus) +
		    pv_or(cfg->n_events, PV_EVENTS) * sizeof(struct pv_event);
	*vcpu_bytes = sizeof(struct vpmu_pv) +
		      (size_t)pv_or(cfg->n_slots, VPMU_PV_SLOTS) * provider->event_size;
	return 0;
}

int vpmu_pv_vm_init(struct vpmu_pv_vm *vm, const struct vpmu_pv_config *cfg,
		    const struct vpmu_provider_ops *provider, struct vpmu_error *err)
{
	size_t vm_bytes, vcpu_bytes;
	int ret = vpmu_pv_size(cfg, provider, &vm_bytes, &vcpu_bytes, err);

	if (ret)
		return ret;
	memset(vm, 0, vm_bytes);
	vm->model = cfg->model;
	vm->names = vpmu_pv_event_names(cfg->model);
	vm->select = vpmu_event_name_bits(cfg->model) | VPMU_EVTSEL_CONDITION;
	vm->filter = cfg->filter;
	vm->provider = provider;
	vm->period_min = cfg->period_min;
	vm->abi = cfg->abi;
	vm->features = cfg->features;
	if (!vpmu_pv_event_has_topdown(cfg->model))
		vm->features &= ~VPMU_PV_HAS_TOPDOWN;
	vm->n_vcpus = cfg->n_vcpus;
	vm->n_events = pv_or(cfg->n_events, PV_EVENTS);
	vm->n_slots = pv_or(cfg->n_slots, VPMU_PV_SLOTS);
	vm->overflows_max = pv_or(cfg->overflows_max, PV_OVERFLOWS);
	vm->alone = cfg->alone;
	vm->no_hypercall = cfg->no_hypercall;
	return 0;
}

static bool pv_has_hooks(const struct vpmu_ops *ops, uint32_t features)
{
	return ops->kick && ops->inject && ops->gpa_read && ops->gpa_write &&
	       ops->gpa_map && ops->gpa_unmap && !ops->lock == !ops->unlock &&
	       (!(features & VPMU_PV_HAS_BRANCHES) || ops->set_lbr);
}

int vpmu_pv_init(struct vpmu_pv *v, struct vpmu_pv_vm *vm, uint32_t number,
		 struct vpmu_provider *provider, const struct vpmu_ops *ops, void *ctx)
{
	const struct vpmu_provider_ops *p;
	struct vpmu_ops hooks;

	if (!ops)
		return -VPMU_EINVAL;
	vpmu_ops_copy(&hooks, ops);
	if (!pv_has_hooks(&hooks, vm->features) || number >= vm->n_vcpus || pv_vcpus(vm)[number])
		return -VPMU_EINVAL; /* no other thread sets up this number */
	if (!provider || provider->ops != vm->provider || provider->model != vm->model)
		return -VPMU_EINVAL;
	p = provider->ops;
	memset(v, 0, sizeof(*v));
	v->vm = vm;
	v->provider = provider;
	v->ops = hooks;
	v->ctx = ctx;
	v->number = number;
	if (p->size >= offsetof(struct vpmu_provider_ops, clock) + sizeof(p->clock))
		v->clock = p->clock;
	if (p->size >= offsetof(struct vpmu_provider_ops, running) + sizeof(p->running))
		v->running = p->running;
	if (vm->features & VPMU_PV_HAS_BRANCHES) {
		v->lbr.stack = hooks.set_lbr(ctx, false);
		vpmu_lbr_stop(v->lbr.stack, VPMU_LBR_PV);
	}
	/* Calls of other vCPUs find it complete, or not at all. */
	pv_lock(v);
	pv_vcpus(vm)[number] = v;
	pv_unlock(v);
	return 0;
}

/* Everything is released; nothing more is written into a page. */
static void pv_stop(struct vpmu_pv *v)
{
	struct pv_pages pages;

	vpmu_pv_batch_begin(v);
	pv_lock(v);
	pages = vpmu_pv_page_forget(v);
	vpmu_pv_slot_disable_all(v, VPMU_PV_ABI_1 | VPMU_PV_ABI_2);
	pv_unlock(v);
	v->nmi = false;
	vpmu_pv_batch_end(v);
	vpmu_pv_counter_release_parked(v);
	vpmu_pv_memory_unmap(v, &pages);
}

void vpmu_pv_reset(struct vpmu_pv *v)
{
	pv_stop(v);
}

void vpmu_pv_fini(struct vpmu_pv *v)
{
	pv_stop(v);
	pv_vcpus(v->vm)[v->number] = NULL;
}

void vpmu_pv_vm_reset(struct vpmu_pv_vm *vm)
{
	struct vpmu_pv *v = NULL;
	uint32_t i;

	for (i = 0; i < vm->n_vcpus && !v; i++)
		v = pv_vcpus(vm)[i];
	if (!v) /* without a vCPU no event can have been opened */
		return;
	vpmu_pv_close_all(v);
	for (i = 0; i < vm->n_vcpus; i++)
		if (pv_vcpus(vm)[i])
			pv_stop(pv_vcpus(vm)[i]);
}

bool vpmu_pv_event_info(struct vpmu_pv *v, uint32_t i, struct vpmu_pv_info *info)
{
	const struct pv_event *ev;
	bool open;

	if (i >= v->vm->n_events)
		return false;
	pv_lock(v);
	ev = pv_event_at(v->vm, i);
	open = ev->abi;
	info->id = ev->id;
	info->abi = ev->abi;
	info->loss = ev->loss;
	info->throttled = ev->throttled;
	info->vcpu = (int32_t)ev->vcpu - 1;
	info->type = ev->what.type;
	info->config = ev->what.config;
	info->count = ev->count;
	info->time_enabled = ev->enabled;
	info->time_running = ev->running < ev->enabled ? ev->running : ev->enabled;
	info->overflows = ev->overflows;
	pv_unlock(v);
	return open;
}

bool vpmu_pv_uncounted(struct vpmu_pv *v, size_t i, struct vpmu_uncounted *row)
{
	const struct vpmu_event_def *def;
	bool any;

	pv_lock(v);
	any = i < v->vm->n_uncounted;
	if (any) {
		row->select = v->vm->uncounted[i].select;
		row->times = v->vm->uncounted[i].times;
	}
	pv_unlock(v);
	if (!any)
		return false;
	def = vpmu_event_find(v->vm->model, row->select, -1);
	row->name = def ? def->name : NULL;
	row->needs = def ? def->needs : NULL;
	return true;
}
