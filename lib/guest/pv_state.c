// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Saving and loading of the paravirtual PMU.
 *
 * Body of the section VPMU_STATE_PV, version 1:
 *   u32 n_events, n_slots (of the configuration); u32 events; u32 n_uncounted
 *   events times, by rising index, 96 bytes each:
 *     u32 index, id; u8 abi, slot, throttled, loss; u32 vcpu + 1, or 0
 *     u32 type, flags; u64 config; u32 index of its leader + 1, or 0; u32 overflows
 *     u64 count, enabled, running, period, left, address of a version 1 struct
 *     u16 generation; u8 bytes of that struct; u8 0; u32 branches that it suppresses
 *   n_uncounted times u64 select, times
 *
 * Body of the section VPMU_STATE_PV_VCPU, version 1, one for each vCPU by rising
 * number:
 *   u32 number, vector; u64 address of its page, or 0; u32 n_slots; u32 bytes
 *   n_slots times u32 seq, overflows in this slice, overflows not serviced yet; u32 0
 *   bytes of the provider's own state, where no vpmu_arch saves it
 *   in version 2 of it, where there is a page of branch records: u64 its address; u32
 *     seq; u32 [0] recording [1] frozen; while recording 32 times u64 from, to, info,
 *     the newest first
 *
 * Parked events of the provider are not saved: one is made when its event is enabled.
 */
#include "pv_batch.h"
#include "pv_branch.h"
#include "pv_counter.h"
#include "pv_event.h"
#include "pv_memory.h"
#include "pv_slot.h"

#define PV_STATE_VERSION	1
#define PV_STATE_VCPU_BRANCHES	2  /* version of a vCPU's section with branch records */
#define PV_STATE_HEAD_BYTES	16
#define PV_STATE_TOTAL_AT	8
#define PV_STATE_SECTION_BYTES	16
#define PV_STATE_FIXED_BYTES	16
#define PV_STATE_EVENT_BYTES	96
#define PV_STATE_PAIR_BYTES	((size_t)16) /* each of n_uncounted */
#define PV_STATE_VCPU_BYTES	24
#define PV_STATE_SLOT_BYTES	((size_t)16)
#define PV_STATE_ID_AT		4  /* in an event: id, then abi and slot, then the vCPU */
#define PV_STATE_WHERE_AT	8
#define PV_STATE_TIME_MAX	((uint64_t)1 << 62)

/* An event of a saved state. */
struct pv_state_event {
	struct pv_event ev;
	uint32_t index;
	uint8_t throttled, zero;
};

#define PV_STATE_FIELD(field) { offsetof(struct pv_state_event, field), \
				sizeof(((struct pv_state_event *)NULL)->field) }

/* Its fields, in the order in which they are saved, each in as many bytes as it has. */
static const struct pv_state_field {
	uint16_t at;
	uint8_t bytes;
} pv_state_fields[] = {
	PV_STATE_FIELD(index),
	PV_STATE_FIELD(ev.id),
	PV_STATE_FIELD(ev.abi),
	PV_STATE_FIELD(ev.slot),
	PV_STATE_FIELD(throttled),
	PV_STATE_FIELD(ev.loss),
	PV_STATE_FIELD(ev.vcpu),
	PV_STATE_FIELD(ev.what.type),
	PV_STATE_FIELD(ev.what.flags),
	PV_STATE_FIELD(ev.what.config),
	PV_STATE_FIELD(ev.leader),
	PV_STATE_FIELD(ev.overflows),
	PV_STATE_FIELD(ev.count),
	PV_STATE_FIELD(ev.enabled),
	PV_STATE_FIELD(ev.running),
	PV_STATE_FIELD(ev.period),
	PV_STATE_FIELD(ev.left),
	PV_STATE_FIELD(ev.gpa),
	PV_STATE_FIELD(ev.generation),
	PV_STATE_FIELD(ev.at_bytes),
	PV_STATE_FIELD(zero),
	PV_STATE_FIELD(ev.what.suppress),
};

#define PV_STATE_FIELDS (sizeof(pv_state_fields) / sizeof(pv_state_fields[0]))

/* A saved state: where its parts are, and how far it has been checked. */
struct pv_state_image {
	const uint8_t *events, *uncounted;
	uint32_t n_events, n_uncounted;
	bool seen;
	uint32_t n_vcpus;     /* sections so far */
	uint32_t last_vcpu;   /* number of the last one */
	struct vpmu_error *refused;
};

struct pv_state_vcpu {
	uint32_t number, n_slots, bytes;
	uint8_t vector;
	uint64_t page_gpa, branches_gpa;
	const uint8_t *slots, *provider;
	struct vpmu_state_cursor branches; /* or no data */
};

/* Save */

static uint64_t pv_state_field_get(const struct pv_state_field *f,
				   const struct pv_state_event *e)
{
	const uint8_t *at = (const uint8_t *)e + f->at;
	uint16_t two;
	uint32_t four;
	uint64_t eight;

	switch (f->bytes) {
	case 1:
		return *at;
	case 2:
		memcpy(&two, at, 2);
		return two;
	case 4:
		memcpy(&four, at, 4);
		return four;
	default:
		memcpy(&eight, at, 8);
		return eight;
	}
}

static void pv_state_field_set(const struct pv_state_field *f, struct pv_state_event *e,
			       uint64_t value)
{
	uint8_t *at = (uint8_t *)e + f->at;
	uint16_t two = (uint16_t)value;
	uint32_t four = (uint32_t)value;

	switch (f->bytes) {
	case 1:
		*at = (uint8_t)value;
		break;
	case 2:
		memcpy(at, &two, 2);
		break;
	case 4:
		memcpy(at, &four, 4);
		break;
	default:
		memcpy(at, &value, 8);
		break;
	}
}

static void pv_state_put_event(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c, uint32_t i)
{
	const struct pv_event *ev = pv_event_at(vm, i);
	const struct pv_event *leader = vpmu_pv_event_leader(vm, ev);
	struct pv_state_event e;
	unsigned int f;

	memset(&e, 0, sizeof(e));
	e.ev = *ev;
	e.index = i;
	e.throttled = ev->throttled;
	if (ev->vcpu)
		(void)vpmu_pv_counter_late(pv_vcpus(vm)[ev->vcpu - 1], ev, &e.ev.left);
	else
		e.ev.slot = 0;
	e.ev.leader = leader ? pv_index(vm, leader) + 1 : 0;
	if (ev->running > ev->enabled)
		e.ev.running = ev->enabled;
	for (f = 0; f < PV_STATE_FIELDS; f++)
		vpmu_state_put(c, pv_state_field_get(&pv_state_fields[f], &e),
			       pv_state_fields[f].bytes);
}

static int pv_state_put_vm(struct vpmu_pv_vm *vm, uint32_t unit, struct vpmu_state_cursor *c)
{
	uint32_t i, n = 0;

	for (i = 0; i < vm->n_events; i++)
		n += pv_event_at(vm, i)->abi != 0;
	vpmu_state_put(c, vm->n_events, 4);
	vpmu_state_put(c, vm->n_slots, 4);
	vpmu_state_put(c, n, 4);
	vpmu_state_put(c, vm->n_uncounted, 4);
	for (i = 0; i < vm->n_events; i++)
		if (pv_event_at(vm, i)->abi)
			pv_state_put_event(vm, c, i);
	for (i = 0; i < vm->n_uncounted; i++) {
		vpmu_state_put(c, vm->uncounted[i].select, 8);
		vpmu_state_put(c, vm->uncounted[i].times, 8);
	}
	return 0;
}

static bool pv_state_saves_provider(const struct vpmu_pv *v)
{
	return v->vm->alone && v->provider->ops->save && v->provider->ops->load;
}

static int pv_state_provider_save(struct vpmu_pv *v, uint8_t *at, size_t room, size_t *used)
{
	*used = 0;
	if (!pv_state_saves_provider(v))
		return 0;
	return v->provider->ops->save(v->provider, at, room, used);
}

static int pv_state_put_vcpu(struct vpmu_pv_vm *vm, uint32_t unit, struct vpmu_state_cursor *c)
{
	struct vpmu_pv *v = pv_vcpus(vm)[unit];
	uint32_t n_slots = vm->n_slots, s, late;
	size_t bytes;
	uint64_t left;
	int ret = pv_state_provider_save(v, NULL, 0, &bytes);

	if (ret)
		return ret;
	vpmu_state_put(c, v->number, 4);
	vpmu_state_put(c, v->vector, 4);
	vpmu_state_put(c, v->page_gpa, 8);
	vpmu_state_put(c, n_slots, 4);
	vpmu_state_put(c, bytes, 4);
	for (s = 0; s < n_slots; s++) {
		const struct pv_slot *sl = &v->slot[s];

		late = 0;
		if (sl->event)
			late = vpmu_pv_counter_late(v, pv_event_at(v->vm, sl->event - 1), &left);
		vpmu_state_put(c, v->page.slots ? sl->seq : 0, 4);
		vpmu_state_put(c, sl->event ? sl->n_over : 0, 4);
		vpmu_state_put(c, late, 4);
		vpmu_state_put(c, 0, 4);
	}
	if (c->data)
		ret = pv_state_provider_save(v, c->data + c->pos, c->size - c->pos, &bytes);
	c->pos += bytes;
	if (v->branches_gpa)
		vpmu_pv_branch_put(v, c);
	return ret;
}

/* Load: first everything is checked */

/* The guest has had something that it does not have here. */
static int pv_state_unfit(const struct pv_state_image *im, const char *what, uint64_t asked,
			  uint64_t available)
{
	im->refused->what = what;
	im->refused->asked = asked;
	im->refused->available = available;
	return -VPMU_EINVAL;
}

static int pv_state_newer(const struct pv_state_image *im, const char *what, uint64_t asked,
			  uint64_t available)
{
	(void)pv_state_unfit(im, what, asked, available);
	return -VPMU_ENOSYS;
}

static uint64_t pv_state_peek(const uint8_t *at, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | at[bytes];
	return value;
}

static void pv_state_cursor(struct vpmu_state_cursor *c, const uint8_t *at, size_t size)
{
	memset(c, 0, sizeof(*c));
	c->data = (uint8_t *)at;
	c->size = size;
}

/* Number @n of the events of a saved state; false: reserved bytes are in use. */
static bool pv_state_get_event(const struct pv_state_image *im, uint32_t n,
			       struct pv_state_event *out)
{
	struct vpmu_state_cursor c;
	unsigned int f;

	memset(out, 0, sizeof(*out));
	pv_state_cursor(&c, im->events + (size_t)n * PV_STATE_EVENT_BYTES, PV_STATE_EVENT_BYTES);
	for (f = 0; f < PV_STATE_FIELDS; f++)
		pv_state_field_set(&pv_state_fields[f], out,
				   vpmu_state_get(&c, pv_state_fields[f].bytes));
	out->ev.throttled = out->throttled;
	return out->throttled <= 1 && !out->zero;
}

/* The event of a saved state with @index; they rise. */
static bool pv_state_find_event(const struct pv_state_image *im, uint32_t index,
				struct pv_state_event *out)
{
	uint32_t low = 0, high = im->n_events;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		uint64_t here = pv_state_peek(im->events + (size_t)mid * PV_STATE_EVENT_BYTES, 4);

		if (here == index)
			return pv_state_get_event(im, mid, out);
		if (here < index)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

static bool pv_state_check_version(const struct vpmu_pv_vm *vm, const struct pv_state_event *e)
{
	const struct pv_event *ev = &e->ev;

	if (ev->abi == VPMU_PV_ABI_2)
		return vm->abi & VPMU_PV_ABI_2 && ev->id == e->index + 1 && !ev->gpa &&
		       !ev->at_bytes;
	if (ev->abi != VPMU_PV_ABI_1 || !(vm->abi & VPMU_PV_ABI_1) || ev->leader)
		return false;
	return (ev->at_bytes == VPMU_PV1_EVENT_BYTES ||
		ev->at_bytes == VPMU_PV1_EVENT_BYTES_32) &&
	       vpmu_pv_range(ev->gpa, ev->at_bytes, 4) &&
	       vpmu_pv_in_page(ev->gpa, ev->at_bytes);
}

/* The event need not be countable here, but it must be one that an OPEN could have made. */
static bool pv_state_check_what(const struct vpmu_pv_vm *vm, const struct pv_event *ev)
{
	const uint32_t rings = VPMU_PV_EVENT_EXCLUDE_USER | VPMU_PV_EVENT_EXCLUDE_KERNEL;
	const uint32_t whose = VPMU_PV_EVENT_EXCLUDE_HOST | VPMU_PV_EVENT_EXCLUDE_GUEST;
	const struct pv_what *w = &ev->what;
	bool branches = w->flags & VPMU_PV_EVENT_BRANCHES;

	if (branches && (ev->abi != VPMU_PV_ABI_2 || !(vm->features & VPMU_PV_HAS_BRANCHES)))
		return false;
	if (w->suppress & ~(branches ? VPMU_PV_SUPPRESS_ALL : 0u))
		return false;
	if (w->flags & ~PV_EVENT_FLAGS || (w->flags & rings) == rings ||
	    (w->flags & whose) == whose || (ev->leader && w->flags & VPMU_PV_EVENT_PINNED))
		return false;
	return w->type == VPMU_PV_TYPE_HARDWARE || w->type == VPMU_PV_TYPE_HW_CACHE ||
	       (w->type == VPMU_PV_TYPE_RAW && !(w->config & ~vm->select));
}

static bool pv_state_check_numbers(const struct pv_event *ev)
{
	return ev->enabled <= PV_STATE_TIME_MAX && ev->running <= ev->enabled &&
	       ev->period <= VPMU_PV_LEFT_MAX && ev->left <= VPMU_PV_LEFT_MAX &&
	       (ev->left || !ev->period) && ev->loss <= VPMU_LOSS_NOT_COUNTED;
}

static bool pv_state_check_place(const struct vpmu_pv_vm *vm, const struct pv_state_image *im,
				 const struct pv_event *ev)
{
	struct pv_state_event leader;

	if (ev->leader) {
		if (!pv_state_find_event(im, ev->leader - 1, &leader) || leader.ev.leader ||
		    leader.ev.abi != VPMU_PV_ABI_2 ||
		    (ev->vcpu && leader.ev.vcpu != ev->vcpu))
			return false;
	}
	if (!ev->vcpu)
		return !ev->slot && !ev->throttled && !ev->loss;
	return ev->vcpu <= vm->n_vcpus && ev->slot < vm->n_slots;
}

/* No other event before number @n has its id (version 1), or its slot. */
static bool pv_state_check_alone(const struct pv_state_image *im, uint32_t n,
				 const struct pv_event *ev)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint8_t *at = im->events + (size_t)i * PV_STATE_EVENT_BYTES;

		if (ev->abi == VPMU_PV_ABI_1 && at[PV_STATE_WHERE_AT] == VPMU_PV_ABI_1 &&
		    pv_state_peek(at + PV_STATE_ID_AT, 4) == ev->id)
			return false;
		if (ev->vcpu && at[PV_STATE_WHERE_AT + 1] == ev->slot &&
		    pv_state_peek(at + PV_STATE_WHERE_AT + 4, 4) == ev->vcpu)
			return false;
	}
	return true;
}

static int pv_state_check_events(const struct vpmu_pv_vm *vm, const struct pv_state_image *im)
{
	struct pv_state_event e;
	uint32_t n, next = 0;

	for (n = 0; n < im->n_events; n++) {
		if (!pv_state_get_event(im, n, &e))
			return -VPMU_EINVAL;
		if (e.ev.abi & ~vm->abi)
			return pv_state_unfit(im, "versions of the interface", e.ev.abi,
					      vm->abi);
		if (e.index < next || e.index >= vm->n_events ||
		    !pv_state_check_version(vm, &e) || !pv_state_check_what(vm, &e.ev) ||
		    !pv_state_check_numbers(&e.ev) || !pv_state_check_place(vm, im, &e.ev) ||
		    !pv_state_check_alone(im, n, &e.ev))
			return -VPMU_EINVAL;
		next = e.index + 1;
	}
	return 0;
}

static int pv_state_check_vm(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c,
			     uint64_t version, struct pv_state_image *im)
{
	uint64_t n_events = vpmu_state_get(c, 4), n_slots = vpmu_state_get(c, 4);
	uint32_t i;

	im->n_events = (uint32_t)vpmu_state_get(c, 4);
	im->n_uncounted = (uint32_t)vpmu_state_get(c, 4);
	if (n_events > vm->n_events)
		return pv_state_unfit(im, "events of a VM", n_events, vm->n_events);
	if (n_slots > vm->n_slots)
		return pv_state_unfit(im, "events enabled on a vCPU", n_slots,
				      vm->n_slots);
	if (c->error || im->seen || im->n_events > n_events ||
	    im->n_uncounted > VPMU_UNCOUNTED_MAX ||
	    c->size != PV_STATE_FIXED_BYTES + (size_t)im->n_events * PV_STATE_EVENT_BYTES +
	    im->n_uncounted * PV_STATE_PAIR_BYTES)
		return -VPMU_EINVAL;
	im->seen = true;
	im->events = c->data + c->pos;
	im->uncounted = im->events + (size_t)im->n_events * PV_STATE_EVENT_BYTES;
	for (i = 0; i < im->n_uncounted; i++)
		if (pv_state_peek(im->uncounted + i * PV_STATE_PAIR_BYTES, 8) & ~vm->select)
			return -VPMU_EINVAL;
	return pv_state_check_events(vm, im);
}

/* The fields of a vCPU's section, which is whole. */
static bool pv_state_get_vcpu(struct vpmu_state_cursor *c, uint64_t version,
			      struct pv_state_vcpu *out)
{
	size_t fixed;
	uint64_t vector;

	memset(out, 0, sizeof(*out));
	out->number = (uint32_t)vpmu_state_get(c, 4);
	vector = vpmu_state_get(c, 4);
	out->vector = (uint8_t)vector;
	out->page_gpa = vpmu_state_get(c, 8);
	out->n_slots = (uint32_t)vpmu_state_get(c, 4);
	out->bytes = (uint32_t)vpmu_state_get(c, 4);
	if (c->error || vector > 255 || out->n_slots > VPMU_PV_SLOTS)
		return false;
	fixed = PV_STATE_VCPU_BYTES + out->n_slots * PV_STATE_SLOT_BYTES;
	if (c->size < fixed || out->bytes > c->size - fixed)
		return false;
	fixed += out->bytes;
	if (version == PV_STATE_VERSION && c->size != fixed)
		return false;
	if (version == PV_STATE_VCPU_BRANCHES) {
		pv_state_cursor(&out->branches, c->data + fixed, c->size - fixed);
		out->branches_gpa = vpmu_state_get(&out->branches, 8);
		out->branches.pos = 0;
	}
	out->slots = c->data + c->pos;
	out->provider = out->slots + out->n_slots * PV_STATE_SLOT_BYTES;
	return true;
}

/* Can every event that is enabled on this vCPU be there? */
static bool pv_state_check_attached(const struct pv_state_image *im,
				    const struct pv_state_vcpu *vcpu)
{
	struct pv_state_event e;
	uint32_t n;

	for (n = 0; n < im->n_events; n++) {
		if (!pv_state_get_event(im, n, &e) || e.ev.vcpu != vcpu->number + 1)
			continue;
		if (e.ev.slot >= vcpu->n_slots ||
		    (e.ev.abi == VPMU_PV_ABI_2 && !vcpu->page_gpa))
			return false;
	}
	return true;
}

static bool pv_state_check_branches(const struct vpmu_pv_vm *vm, const struct pv_state_vcpu *vcpu)
{
	struct vpmu_state_cursor c = vcpu->branches;

	return !c.data || (vm->features & VPMU_PV_HAS_BRANCHES && vcpu->branches_gpa &&
			   vpmu_pv_branch_check(&c));
}

static int pv_state_check_vcpu(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c,
			       uint64_t version, struct pv_state_image *im)
{
	struct pv_state_vcpu vcpu;
	const struct vpmu_pv *v;
	uint32_t s;

	if (!im->seen || !pv_state_get_vcpu(c, version, &vcpu) ||
	    (im->n_vcpus && vcpu.number <= im->last_vcpu))
		return -VPMU_EINVAL;
	v = vcpu.number < vm->n_vcpus ? pv_vcpus(vm)[vcpu.number] : NULL;
	if (!v)
		return pv_state_unfit(im, "a vCPU of this number", vcpu.number, vm->n_vcpus);
	if (vcpu.n_slots > vm->n_slots || (vcpu.bytes && !pv_state_saves_provider(v)))
		return -VPMU_EINVAL;
	if (vcpu.vector && !(vm->features & VPMU_PV_HAS_VECTOR))
		return pv_state_unfit(im, "an interrupt vector of the guest's choice",
				      vcpu.vector, 0);
	if (vcpu.page_gpa && !(vm->abi & VPMU_PV_ABI_2))
		return pv_state_unfit(im, "versions of the interface", VPMU_PV_ABI_2, vm->abi);
	if (vcpu.vector && (vcpu.vector < 32 || !vcpu.page_gpa))
		return -VPMU_EINVAL;
	if (!vpmu_pv_range(vcpu.page_gpa, PV_PAGE, PV_PAGE))
		return -VPMU_EINVAL;
	for (s = 0; s < vcpu.n_slots; s++)
		if (pv_state_peek(vcpu.slots + s * PV_STATE_SLOT_BYTES, 1) & 1 ||
		    pv_state_peek(vcpu.slots + s * PV_STATE_SLOT_BYTES + 12, 4))
			return -VPMU_EINVAL;
	if (!pv_state_check_attached(im, &vcpu) || !pv_state_check_branches(vm, &vcpu))
		return -VPMU_EINVAL;
	im->n_vcpus++;
	im->last_vcpu = vcpu.number;
	return 0;
}

/* Then it is put in place; failures from here on leave a VM as after RESET */

static bool pv_state_load_event(struct vpmu_pv *v, const struct pv_state_event *e)
{
	struct vpmu_pv_vm *vm = v->vm;
	struct pv_event *ev = pv_event_at(vm, e->index);
	uint16_t wrong;

	*ev = e->ev;
	ev->serial = ++vm->serial;
	ev->vcpu = 0;
	ev->slot = 0;
	ev->throttled = false;
	ev->loss = VPMU_LOSS_NONE;
	if (vpmu_pv_event_translate(vm, &ev->what, &wrong))
		ev->reason = VPMU_LOSS_NOT_COUNTED;
	else
		ev->reason = (uint8_t)vpmu_pv_event_refused(v, &ev->what);
	if (ev->abi != VPMU_PV_ABI_1)
		return true;
	ev->at = v->ops.gpa_map(v->ctx, ev->gpa, ev->at_bytes);
	return ev->at;
}

static int pv_state_adopt_vm(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c,
			     uint64_t version, struct pv_state_image *im)
{
	struct pv_state_event e;
	struct vpmu_pv *v = NULL;
	uint32_t i;

	for (i = 0; i < vm->n_vcpus && !v; i++)
		v = pv_vcpus(vm)[i];
	for (i = 0; i < im->n_events; i++)
		if (!v || !pv_state_get_event(im, i, &e) || !pv_state_load_event(v, &e))
			return -VPMU_EFAULT;
	for (i = 0; i < vm->n_events; i++)
		if (pv_event_at(vm, i)->leader)
			pv_event_at(vm, i)->leader_serial =
				pv_event_at(vm, pv_event_at(vm, i)->leader - 1)->serial;
	vm->n_uncounted = im->n_uncounted;
	for (i = 0; i < im->n_uncounted; i++) {
		const uint8_t *pair = im->uncounted + i * PV_STATE_PAIR_BYTES;

		vm->uncounted[i].select = pv_state_peek(pair, 8);
		vm->uncounted[i].times = pv_state_peek(pair + 8, 8);
	}
	return 0;
}

/* Leaders (@members false), and then the others. */
static void pv_state_attach(struct vpmu_pv *v, const struct pv_state_image *im,
			    const struct pv_state_vcpu *vcpu, bool members)
{
	struct pv_restore was;
	struct pv_state_event e;
	uint32_t n;

	for (n = 0; n < im->n_events; n++) {
		const uint8_t *slot;

		if (!pv_state_get_event(im, n, &e) || e.ev.vcpu != v->number + 1 ||
		    (e.ev.leader != 0) != members)
			continue;
		slot = vcpu->slots + e.ev.slot * PV_STATE_SLOT_BYTES;
		was.n_over = (uint32_t)pv_state_peek(slot + 4, 4);
		was.late = (uint32_t)pv_state_peek(slot + 8, 4);
		was.throttled = e.ev.throttled;
		was.loss = e.ev.loss;
		vpmu_pv_slot_restore(v, pv_event_at(v->vm, e.index), e.ev.slot, &was);
		if (was.late)
			v->ops.kick(v->ctx);
	}
}

static int pv_state_load_vcpu(struct vpmu_pv *v, const struct pv_state_image *im,
			      struct pv_state_vcpu *vcpu)
{
	uint32_t s;
	int ret;

	if (vcpu->bytes) {
		ret = v->provider->ops->load(v->provider, vcpu->provider, vcpu->bytes);
		if (ret)
			return ret;
	}
	if (!vpmu_pv_memory_map(v, vcpu->page_gpa, vcpu->branches_gpa, &v->page)) {
		memset(&v->page, 0, sizeof(v->page));
		return -VPMU_EFAULT;
	}
	v->page_gpa = vcpu->page_gpa;
	v->branches_gpa = vcpu->branches_gpa;
	v->vector = vcpu->vector;
	for (s = 0; s < vcpu->n_slots; s++)
		v->slot[s].seq = (uint32_t)pv_state_peek(vcpu->slots + s * PV_STATE_SLOT_BYTES, 4);
	vpmu_pv_batch_begin(v);
	pv_lock(v);
	pv_state_attach(v, im, vcpu, false);
	pv_state_attach(v, im, vcpu, true);
	pv_unlock(v);
	vpmu_pv_batch_end(v);
	if (vcpu->branches.data) {
		pv_lock(v);
		vpmu_pv_branch_load(v, &vcpu->branches);
		pv_unlock(v);
	}
	return 0;
}

static int pv_state_adopt_vcpu(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c,
			       uint64_t version, struct pv_state_image *im)
{
	struct pv_state_vcpu vcpu;

	if (!pv_state_get_vcpu(c, version, &vcpu))
		return -VPMU_EINVAL;
	return pv_state_load_vcpu(pv_vcpus(vm)[vcpu.number], im, &vcpu);
}

/* Sections */

static uint16_t pv_state_offered_vm(struct vpmu_pv_vm *vm, uint32_t unit)
{
	return unit ? 0 : PV_STATE_VERSION;
}

static uint16_t pv_state_offered_vcpu(struct vpmu_pv_vm *vm, uint32_t unit)
{
	const struct vpmu_pv *v = pv_vcpus(vm)[unit];

	if (!v)
		return 0;
	return v->branches_gpa ? PV_STATE_VCPU_BRANCHES : PV_STATE_VERSION;
}

/*
 * A state has, for each unit from 0 to n_vcpus - 1, the sections that are offered for it, in
 * this order. The VM's section counts for unit 0.
 */
static const struct pv_state_section {
	uint32_t id;
	uint16_t version; /* the newest that is known */
	uint16_t flags;
	/* The version to be written for the unit, the oldest that has room for it; 0: none. */
	uint16_t (*offered)(struct vpmu_pv_vm *vm, uint32_t unit);
	int (*put)(struct vpmu_pv_vm *vm, uint32_t unit, struct vpmu_state_cursor *c);
	/* A section of a saved state: check changes nothing but @im, adopt follows when all
	   sections are right. */
	int (*check)(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c, uint64_t version,
		     struct pv_state_image *im);
	int (*adopt)(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c, uint64_t version,
		     struct pv_state_image *im);
} pv_state_sections[] = {
	{ VPMU_STATE_PV, PV_STATE_VERSION, VPMU_STATE_MANDATORY, pv_state_offered_vm,
	  pv_state_put_vm, pv_state_check_vm, pv_state_adopt_vm },
	{ VPMU_STATE_PV_VCPU, PV_STATE_VCPU_BRANCHES, VPMU_STATE_MANDATORY, pv_state_offered_vcpu,
	  pv_state_put_vcpu, pv_state_check_vcpu, pv_state_adopt_vcpu },
};

#define PV_STATE_SECTIONS (sizeof(pv_state_sections) / sizeof(pv_state_sections[0]))

/* All of it */

static int pv_state_put_section(struct vpmu_pv_vm *vm, const struct pv_state_section *row,
				uint32_t unit, struct vpmu_state_cursor *c)
{
	size_t head = vpmu_state_section_begin(c, row->id, row->offered(vm, unit), row->flags);
	int ret = row->put(vm, unit, c);

	vpmu_state_section_end(c, head);
	return ret;
}

static int pv_state_put_all(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c)
{
	uint32_t unit, row, n = 0;
	size_t end;
	int ret;

	vpmu_state_put(c, VPMU_STATE_MAGIC, 4);
	vpmu_state_put(c, VPMU_STATE_VERSION, 4);
	vpmu_state_put(c, 0, 8); /* all bytes, and sections: see below */
	for (unit = 0; unit < vm->n_vcpus; unit++)
		for (row = 0; row < PV_STATE_SECTIONS; row++) {
			if (!pv_state_sections[row].offered(vm, unit))
				continue;
			ret = pv_state_put_section(vm, &pv_state_sections[row], unit, c);
			if (ret)
				return ret;
			n++;
		}
	end = c->pos;
	c->pos = PV_STATE_TOTAL_AT;
	vpmu_state_put(c, end, 4);
	vpmu_state_put(c, n, 4);
	c->pos = end;
	return c->error;
}

/* Bracket the whole, so that all of it is of one instant, with the totals up to now. */
static void pv_state_hold(struct vpmu_pv_vm *vm, bool hold)
{
	struct pv_event *ev;
	struct vpmu_pv *v;
	uint32_t i;

	for (i = 0; i < vm->n_vcpus; i++) {
		v = pv_vcpus(vm)[i];
		if (v && hold && v->provider->ops->begin)
			v->provider->ops->begin(v->provider);
		if (v && !hold && v->provider->ops->commit)
			(void)v->provider->ops->commit(v->provider);
	}
	for (i = 0; hold && i < vm->n_events; i++) {
		ev = pv_event_at(vm, i);
		if (ev->vcpu)
			vpmu_pv_counter_fold(pv_vcpus(vm)[ev->vcpu - 1], ev);
	}
}

int vpmu_pv_vm_save(struct vpmu_pv_vm *vm, void *buf, size_t size, size_t *used)
{
	struct vpmu_state_cursor c;
	int ret;

	memset(&c, 0, sizeof(c));
	pv_set_stopped(vm, true);
	pv_state_hold(vm, true);
	ret = pv_state_put_all(vm, &c);
	*used = c.pos;
	if (!ret && buf) {
		ret = -VPMU_E2BIG;
		if (size >= c.pos) {
			memset(&c, 0, sizeof(c));
			c.data = buf;
			c.size = size;
			ret = pv_state_put_all(vm, &c);
		}
	}
	pv_state_hold(vm, false);
	pv_set_stopped(vm, false);
	return ret;
}

/* One section at the cursor, which is moved past it: checked, or (@load) put in place. */
static int pv_state_section(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c,
			    struct pv_state_image *im, bool load)
{
	const struct pv_state_section *row = pv_state_sections;
	struct vpmu_state_cursor body;
	uint64_t id = vpmu_state_get(c, 4);
	uint64_t version = vpmu_state_get(c, 2);
	uint64_t flags = vpmu_state_get(c, 2);
	uint64_t bytes = vpmu_state_get(c, 4);
	uint64_t zero = vpmu_state_get(c, 4);
	uint64_t padded = (bytes + 7) / 8 * 8;

	if (c->error || zero || padded > c->size - c->pos)
		return -VPMU_EINVAL;
	pv_state_cursor(&body, c->data + c->pos, (size_t)bytes);
	c->pos += (size_t)padded;
	im->refused->asked = id; /* where the damage is, if it is that */
	while (row->id != id)
		if (++row == pv_state_sections + PV_STATE_SECTIONS)
			return flags & VPMU_STATE_MANDATORY ?
			       pv_state_newer(im, "a feature that is not known here, section", id,
					      0) : 0;
	if (version > row->version)
		return pv_state_newer(im, "version of a section", version, row->version);
	return (load ? row->adopt : row->check)(vm, &body, version, im);
}

static int pv_state_header(struct vpmu_state_cursor *c, const struct pv_state_image *im,
			   uint64_t *sections)
{
	uint64_t magic = vpmu_state_get(c, 4);
	uint64_t version = vpmu_state_get(c, 4);
	uint64_t total = vpmu_state_get(c, 4);

	*sections = vpmu_state_get(c, 4);
	if (c->error || magic != VPMU_STATE_MAGIC)
		return -VPMU_EINVAL;
	if (version > VPMU_STATE_VERSION)
		return pv_state_newer(im, "version of the format", version, VPMU_STATE_VERSION);
	if (!version || total > c->size || total < PV_STATE_HEAD_BYTES ||
	    *sections > (total - PV_STATE_HEAD_BYTES) / PV_STATE_SECTION_BYTES)
	    return -VPMU_EINVAL;
	c->size = (size_t)total;
	return 0;
}

static int pv_state_walk(struct vpmu_pv_vm *vm, const void *buf, size_t size,
			 struct pv_state_image *im, bool load)
{
	struct vpmu_state_cursor c;
	uint64_t sections;
	int ret;

	pv_state_cursor(&c, buf, size);
	ret = pv_state_header(&c, im, &sections);
	for (; !ret && sections; sections--)
		ret = pv_state_section(vm, &c, im, load);
	if (!ret && c.pos != c.size)
		ret = -VPMU_EINVAL;
	return ret;
}

/* Every vCPU on which something is enabled has its section. */
static bool pv_state_complete(const struct pv_state_image *im, const struct vpmu_pv_vm *vm)
{
	uint32_t i, n = 0;

	for (i = 0; i < vm->n_vcpus; i++)
		n += pv_vcpus((struct vpmu_pv_vm *)vm)[i] != NULL;
	return im->seen && im->n_vcpus == n;
}

const struct vpmu_error *vpmu_pv_vm_refused(const struct vpmu_pv_vm *vm)
{
	return &vm->refused;
}

int vpmu_pv_vm_load(struct vpmu_pv_vm *vm, const void *buf, size_t size)
{
	struct pv_state_image im;
	int ret;

	memset(&im, 0, sizeof(im));
	memset(&vm->refused, 0, sizeof(vm->refused));
	im.refused = &vm->refused;
	ret = pv_state_walk(vm, buf, size, &im, false);
	if (!ret && !pv_state_complete(&im, vm))
		ret = pv_state_unfit(&im, "vCPUs are in the state", im.n_vcpus, vm->n_vcpus);
	if (ret && !vm->refused.what)
		vm->refused.what = "the state is damaged, in section";
	if (ret)
		return ret;
	vpmu_pv_vm_reset(vm);
	ret = pv_state_walk(vm, buf, size, &im, true);
	if (ret) {
		(void)pv_state_unfit(&im,
				     "memory that the guest has shared, or the host's totals", 1,
				     0);
		vpmu_pv_vm_reset(vm);
	}
	return ret;
}
