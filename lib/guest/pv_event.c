// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The VM's events by id, and the meaning of what the guest asks for. */
#include "pv_event.h"

#define PV_EVENT_WRONG(field)	((uint16_t)offsetof(struct vpmu_pv_op, u.open.field))

/* perf's generic events as a vendor's CPUs encode them. */
struct pv_event_code {
	uint64_t select; /* 0: they have none */
	int8_t fixed;    /* or the event of this fixed counter; -1 */
};

#define PV_EVENT_HARDWARE	10u /* PERF_COUNT_HW_MAX */
#define PV_EVENT_CACHES	7u /* PERF_COUNT_HW_CACHE_MAX, _OP_MAX, _RESULT_MAX */
#define PV_EVENT_CACHE_OPS	3u
#define PV_EVENT_CACHE_RESULTS 2u

struct pv_event_cache {
	uint32_t config; /* cache | operation << 8 | result << 16 */
	uint16_t select;
};

struct pv_names {
	struct pv_event_code hardware[PV_EVENT_HARDWARE]; /* by PERF_COUNT_HW_... */
	const struct pv_event_cache *cache;
	unsigned int n_caches;
};

/* The ones that every model's table has with the same meaning. */
static const struct pv_event_cache pv_event_cache_intel[] = {
	{ 0x000000, 0x81d0 }, /* L1D read access: retired loads */
	{ 0x010000, 0x0151 }, /* L1D read miss: lines replaced */
	{ 0x000100, 0x82d0 }, /* L1D write access: retired stores */
	{ 0x000003, 0x81d0 }, /* DTLB read access */
	{ 0x000103, 0x82d0 }, /* DTLB write access */
	{ 0x000005, 0x00c4 }, /* BPU read access: branches */
	{ 0x010005, 0x00c5 }, /* BPU read miss: mispredicted ones */
};

/* From Zen on. A model has only those that are in its table. */
static const struct pv_event_cache pv_event_cache_amd[] = {
	{ 0x000000, 0x0040 }, /* L1D read access */
	{ 0x010000, 0xc860 }, /* L1D read miss: requests to L2 */
	{ 0x000001, 0x0080 }, /* L1I read access */
	{ 0x010001, 0x0081 }, /* L1I read miss */
	{ 0x000003, 0xff45 }, /* DTLB read access: misses of its first level */
	{ 0x010003, 0xf045 }, /* DTLB read miss: of both */
	{ 0x000004, 0x0084 }, /* ITLB read access: likewise */
	{ 0x010004, 0xff85 }, /* ITLB read miss */
	{ 0x000005, 0x00c2 }, /* BPU read access: branches */
	{ 0x010005, 0x00c3 }, /* BPU read miss: mispredicted ones */
};

#define PV_EVENT_COUNT(table)	(sizeof(table) / sizeof((table)[0]))

/* By enum vpmu_vendor. */
static const struct pv_names pv_event_names[] = {
	{
		.hardware = {
			{ 0x003c, -1 }, /* CPU_CYCLES */
			{ 0x00c0, -1 }, /* INSTRUCTIONS */
			{ 0x4f2e, -1 }, /* CACHE_REFERENCES */
			{ 0x412e, -1 }, /* CACHE_MISSES */
			{ 0x00c4, -1 }, /* BRANCH_INSTRUCTIONS */
			{ 0x00c5, -1 }, /* BRANCH_MISSES */
			{ 0x013c, -1 }, /* BUS_CYCLES */
			{ 0, -1 },      /* STALLED_CYCLES_FRONTEND */
			{ 0, -1 },      /* STALLED_CYCLES_BACKEND */
			{ 0, 2 },       /* REF_CPU_CYCLES */
		},
		.cache = pv_event_cache_intel,
		.n_caches = PV_EVENT_COUNT(pv_event_cache_intel),
	},
	{
		.hardware = {
			{ 0x0076, -1 },
			{ 0x00c0, -1 },
			{ 0xff60, -1 },
			{ 0x0964, -1 },
			{ 0x00c2, -1 },
			{ 0x00c3, -1 },
			{ 0, -1 },
			{ 0, -1 },
			{ 0, -1 },
			{ 0x100000120, -1 }, /* from Zen 4 on */
		},
		.cache = pv_event_cache_amd,
		.n_caches = PV_EVENT_COUNT(pv_event_cache_amd),
	},
};

const struct pv_names *vpmu_pv_event_names(const struct vpmu_model *model)
{
	if (model->vendor >= PV_EVENT_COUNT(pv_event_names))
		return NULL;
	return &pv_event_names[model->vendor];
}

static int pv_event_hardware(const struct vpmu_pv_vm *vm, struct pv_what *what)
{
	const struct pv_event_code *code;

	if (what->config >= PV_EVENT_HARDWARE)
		return -VPMU_PV_EINVAL;
	code = &vm->names->hardware[vpmu_index_nospec((size_t)what->config, PV_EVENT_HARDWARE)];
	if (!code->select && code->fixed < 0)
		return -VPMU_PV_ENOENT;
	what->select = code->select;
	what->fixed = code->fixed;
	return 0;
}

static int pv_event_hw_cache(const struct vpmu_pv_vm *vm, struct pv_what *what)
{
	const struct pv_event_cache *cache = vm->names->cache;
	unsigned int i, n = vm->names->n_caches;

	if (what->config >> 24 || (what->config & 0xff) >= PV_EVENT_CACHES ||
	    (what->config >> 8 & 0xff) >= PV_EVENT_CACHE_OPS ||
	    (what->config >> 16 & 0xff) >= PV_EVENT_CACHE_RESULTS)
		return -VPMU_PV_EINVAL;
	for (i = 0; i < n; i++)
		if (cache[i].config == what->config)
			break;
	if (i == n || !vpmu_event_find(vm->model, cache[i].select, -1))
		return -VPMU_PV_ENOENT;
	what->select = cache[i].select;
	return 0;
}

/*
 * Slots and topdown classes by Linux's encodings, which stand for fixed counter 3 and for
 * fields of PERF_METRICS: no CPU counts them by these. Here they are events of any counter
 * that count the same. Source: Linux, arch/x86/events/intel/core.c, "topdown-retiring".
 */
static const struct {
	uint16_t config, select;
	uint8_t classes; /* bitmap, by field of PERF_METRICS */
} pv_event_topdown[] = {
	{ VPMU_PV_RAW_SLOTS, 0x01a4, 0xf },    /* TOPDOWN.SLOTS_P */
	{ VPMU_PV_RAW_CLASS(0), 0x02c2, 0x1 }, /* UOPS_RETIRED.SLOTS */
	{ VPMU_PV_RAW_CLASS(1), 0x04a4, 0x2 }, /* TOPDOWN.BAD_SPEC_SLOTS */
	{ VPMU_PV_RAW_CLASS(2), 0x019c, 0x4 }, /* IDQ_UOPS_NOT_DELIVERED.CORE */
	{ VPMU_PV_RAW_CLASS(3), 0x02a4, 0x8 }, /* TOPDOWN.BACKEND_BOUND_SLOTS */
};

bool vpmu_pv_event_has_topdown(const struct vpmu_model *model)
{
	const unsigned int first = VPMU_SIGNAL_OF(VPMU_UARCH_RETIRING);
	const struct vpmu_event_def *def;
	unsigned int i;

	for (i = 0; i < PV_EVENT_COUNT(pv_event_topdown); i++) {
		def = vpmu_event_find(model, pv_event_topdown[i].select, -1);
		if (!def || def->signals != (uint64_t)pv_event_topdown[i].classes << first)
			return false;
	}
	return true;
}

static int pv_event_raw(const struct vpmu_pv_vm *vm, struct pv_what *what)
{
	unsigned int i;

	what->select = what->config;
	if (vm->features & VPMU_PV_HAS_TOPDOWN)
		for (i = 0; i < PV_EVENT_COUNT(pv_event_topdown); i++)
			if (what->config == pv_event_topdown[i].config)
				what->select = pv_event_topdown[i].select;
	return what->config & ~vm->select ? -VPMU_PV_EINVAL : 0;
}

static int pv_event_banks(const struct vpmu_pv_vm *vm, struct pv_what *what)
{
	const uint8_t nested = VPMU_BANK_BIT(VPMU_BANK_NESTED_KERNEL) |
			       VPMU_BANK_BIT(VPMU_BANK_NESTED_USER);
	const uint32_t whose = VPMU_PV_EVENT_EXCLUDE_HOST | VPMU_PV_EVENT_EXCLUDE_GUEST;
	uint8_t banks = VPMU_BANKS_KERNEL | VPMU_BANKS_USER;

	if (what->flags & ~PV_EVENT_FLAGS)
		return -VPMU_PV_EINVAL;
	if (what->flags & whose && !(vm->features & VPMU_PV_HAS_NESTED))
		return -VPMU_PV_EOPNOTSUPP;
	if (what->flags & VPMU_PV_EVENT_EXCLUDE_USER)
		banks &= (uint8_t)~VPMU_BANKS_USER;
	if (what->flags & VPMU_PV_EVENT_EXCLUDE_KERNEL)
		banks &= (uint8_t)~VPMU_BANKS_KERNEL;
	if (what->flags & VPMU_PV_EVENT_EXCLUDE_HOST)
		banks &= nested;
	if (what->flags & VPMU_PV_EVENT_EXCLUDE_GUEST)
		banks &= (uint8_t)~nested;
	what->banks = banks;
	return banks ? 0 : -VPMU_PV_EINVAL;
}

static int pv_event_branches(const struct vpmu_pv_vm *vm, const struct pv_what *what,
			     uint16_t *wrong)
{
	bool wanted = what->flags & VPMU_PV_EVENT_BRANCHES;

	if (wanted && !(vm->features & VPMU_PV_HAS_BRANCHES))
		return -VPMU_PV_EOPNOTSUPP;
	*wrong = PV_EVENT_WRONG(suppress);
	return what->suppress & ~(wanted ? VPMU_PV_SUPPRESS_ALL : 0u) ? -VPMU_PV_EINVAL : 0;
}

int vpmu_pv_event_translate(const struct vpmu_pv_vm *vm, struct pv_what *what, uint16_t *wrong)
{
	int ret;

	what->select = 0;
	what->fixed = -1;
	*wrong = PV_EVENT_WRONG(flags);
	ret = pv_event_banks(vm, what);
	if (!ret)
		ret = pv_event_branches(vm, what, wrong);
	if (ret)
		return ret;
	*wrong = PV_EVENT_WRONG(config);
	switch (what->type) {
	case VPMU_PV_TYPE_HARDWARE:
		return pv_event_hardware(vm, what);
	case VPMU_PV_TYPE_HW_CACHE:
		return pv_event_hw_cache(vm, what);
	case VPMU_PV_TYPE_RAW:
		return pv_event_raw(vm, what);
	default:
		*wrong = PV_EVENT_WRONG(type);
		return -VPMU_PV_EOPNOTSUPP;
	}
}

void vpmu_pv_event_attr(const struct pv_what *what, struct vpmu_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->banks = what->banks;
	attr->pinned = what->flags & VPMU_PV_EVENT_PINNED;
	attr->fixed = what->fixed;
	attr->slot = -1;
	attr->select = what->select;
	if (what->flags & VPMU_PV_EVENT_BRANCHES) {
		attr->shared = VPMU_SHARED_LBR;
		attr->extra = what->suppress;
	}
}

bool vpmu_pv_event_allowed(const struct vpmu_pv_vm *vm, const struct pv_what *what)
{
	pv_assert_vm_locked(vm);
	return vpmu_filter_allows(vm->filter, what->select, what->fixed);
}

enum vpmu_loss vpmu_pv_event_refused(struct vpmu_pv *v, const struct pv_what *what)
{
	struct vpmu_event_attr attr;
	bool allowed;

	pv_lock(v);
	allowed = vpmu_pv_event_allowed(v->vm, what);
	pv_unlock(v);
	if (!allowed)
		return VPMU_LOSS_FILTERED;
	vpmu_pv_event_attr(what, &attr);
	if (v->provider->ops->quality(v->provider, &attr) == VPMU_QUALITY_NONE)
		return VPMU_LOSS_NOT_COUNTED;
	return VPMU_LOSS_NONE;
}

void vpmu_pv_event_uncounted(struct vpmu_pv_vm *vm, const struct pv_what *what)
{
	const struct vpmu_event_def *def;
	uint64_t select = what->select;
	uint32_t i;

	pv_assert_vm_locked(vm);
	if (what->fixed >= 0) {
		def = vpmu_event_find(vm->model, 0, what->fixed);
		if (def)
			select = def->select | (uint64_t)def->umask << 8;
	}
	for (i = 0; i < vm->n_uncounted; i++)
		if (vm->uncounted[i].select == select)
			break;
	if (i == VPMU_UNCOUNTED_MAX)
		return;
	if (i == vm->n_uncounted) {
		vm->uncounted[i].select = select;
		vm->uncounted[i].times = 0;
		vm->n_uncounted++;
	}
	vm->uncounted[i].times++;
}

int vpmu_pv_event_check(struct vpmu_pv *v, struct pv_what *what, uint16_t *wrong)
{
	int ret = vpmu_pv_event_translate(v->vm, what, wrong);

	if (ret)
		return ret;
	switch (vpmu_pv_event_refused(v, what)) {
	case VPMU_LOSS_NONE:
		*wrong = 0;
		return 0;
	case VPMU_LOSS_FILTERED:
		return -VPMU_PV_EACCES;
	default:
		pv_lock(v);
		vpmu_pv_event_uncounted(v->vm, what);
		pv_unlock(v);
		return -VPMU_PV_ENOENT;
	}
}

struct pv_event *vpmu_pv_event_find(struct vpmu_pv_vm *vm, uint32_t abi, uint32_t id)
{
	struct pv_event *ev;
	uint32_t i;

	pv_assert_vm_locked(vm);
	if (abi == VPMU_PV_ABI_2) {
		if (!id || id > vm->n_events)
			return NULL;
		ev = pv_event_at(vm, (uint32_t)vpmu_index_nospec(id - 1, vm->n_events));
		return ev->abi == abi ? ev : NULL;
	}
	for (i = 0; i < vm->n_events; i++) {
		ev = pv_event_at(vm, i);
		if (ev->abi == abi && ev->id == id)
			return ev;
	}
	return NULL;
}

/* Version 1 takes entries from the end of the table, where version 2 rarely has its ids. */
struct pv_event *vpmu_pv_event_take(struct vpmu_pv_vm *vm, uint32_t abi, uint32_t id,
				    const struct pv_what *what)
{
	struct pv_event *ev = NULL;
	uint32_t i = vm->n_events;

	pv_assert_vm_locked(vm);
	if (abi == VPMU_PV_ABI_2)
		ev = pv_event_at(vm, (uint32_t)vpmu_index_nospec(id - 1, vm->n_events));
	while (abi == VPMU_PV_ABI_1 && i && (!ev || ev->abi))
		ev = pv_event_at(vm, --i);
	if (!ev || ev->abi)
		return NULL;
	memset(ev, 0, sizeof(*ev));
	ev->abi = (uint8_t)abi;
	ev->id = id;
	ev->serial = ++vm->serial;
	ev->what = *what;
	return ev;
}

struct pv_event *vpmu_pv_event_leader(struct vpmu_pv_vm *vm, const struct pv_event *ev)
{
	struct pv_event *leader;

	pv_assert_vm_locked(vm);
	if (!ev->leader)
		return NULL;
	leader = pv_event_at(vm, ev->leader - 1);
	return leader->serial == ev->leader_serial ? leader : NULL;
}
