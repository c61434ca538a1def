// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Saving and loading of the paravirtual PMU.
 *
 * Body of the section VPMU_STATE_PV, version 1:
 *   u32 n_events, n_slots (of the configuration); u32 events; u32 n_told
 *   events times, by rising index, 96 bytes each:
 *     u32 index, id; u8 abi, slot, throttled, loss; u32 vcpu + 1, or 0
 *     u32 type, flags; u64 config; u32 index of its leader + 1, or 0; u32 overflows
 *     u64 count, enabled, running, period, left, address of a version 1 struct
 *     u16 generation; u8 bytes of that struct; u8 0; u32 branches that it suppresses
 *   n_told times u64 select, times
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
 * What was parked is not saved: it is made when it is enabled.
 */
#include "pv_batch.h"
#include "pv_branch.h"
#include "pv_counter.h"
#include "pv_event.h"
#include "pv_memory.h"
#include "pv_slot.h"

#define PV_STATE_VERSION		1
#define PV_STATE_VCPU_BRANCHES	2  /* version of a vCPU's section with branch records */
#define PV_STATE_HEAD_BYTES		16
#define PV_STATE_TOTAL_AT		8
#define PV_STATE_SECTION_BYTES	16
#define PV_STATE_FIXED_BYTES	16
#define PV_STATE_EVENT_BYTES	96
#define PV_STATE_TOLD_BYTES		((size_t)16)
#define PV_STATE_VCPU_BYTES		24
#define PV_STATE_SLOT_BYTES		((size_t)16)
#define PV_STATE_ID_AT		4  /* in an event: id, then abi and slot, then the vCPU */
#define PV_STATE_WHERE_AT		8
#define PV_STATE_TIME_MAX		((uint64_t)1 << 62)

/* An event of a saved state. */
struct pv_state_event {
	struct pv_event ev;
	uint32_t index;
};

/* Where a saved state has what. */
struct pv_state_image {
	const uint8_t *events, *told;
	uint32_t n_events, n_told;
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

static void pv_state_put_event(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c, uint32_t i)
{
	const struct pv_event *ev = pv_event_at(vm, i);
	const struct pv_event *leader = vpmu_pv_event_leader(vm, ev);
	uint64_t left = ev->left;

	if (ev->vcpu)
		(void)vpmu_pv_counter_late(pv_vcpus(vm)[ev->vcpu - 1], ev, &left);
	vpmu_state_put(c, i, 4);
	vpmu_state_put(c, ev->id, 4);
	vpmu_state_put(c, ev->abi, 1);
	vpmu_state_put(c, ev->vcpu ? ev->slot : 0u, 1);
	vpmu_state_put(c, ev->throttled, 1);
	vpmu_state_put(c, ev->loss, 1);
	vpmu_state_put(c, ev->vcpu, 4);
	vpmu_state_put(c, ev->what.type, 4);
	vpmu_state_put(c, ev->what.flags, 4);
	vpmu_state_put(c, ev->what.config, 8);
	vpmu_state_put(c, leader ? pv_index(vm, leader) + 1 : 0, 4);
	vpmu_state_put(c, ev->overflows, 4);
	vpmu_state_put(c, ev->count, 8);
	vpmu_state_put(c, ev->enabled, 8);
	vpmu_state_put(c, ev->running < ev->enabled ? ev->running : ev->enabled, 8);
	vpmu_state_put(c, ev->period, 8);
	vpmu_state_put(c, left, 8);
	vpmu_state_put(c, ev->gpa, 8);
	vpmu_state_put(c, ev->generation, 2);
	vpmu_state_put(c, ev->at_bytes, 1);
	vpmu_state_put(c, 0, 1);
	vpmu_state_put(c, ev->what.suppress, 4);
}

static void pv_state_put_vm(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c)
{
	size_t head = vpmu_state_section_begin(c, VPMU_STATE_PV, PV_STATE_VERSION,
					       VPMU_STATE_MANDATORY);
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
	vpmu_state_section_end(c, head);
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

static int pv_state_put_vcpu(struct vpmu_pv *v, struct vpmu_state_cursor *c)
{
	unsigned int version = v->branches_gpa ? PV_STATE_VCPU_BRANCHES : PV_STATE_VERSION;
	size_t head = vpmu_state_section_begin(c, VPMU_STATE_PV_VCPU, version,
					       VPMU_STATE_MANDATORY);
	uint32_t n_slots = v->vm->n_slots, s, late;
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
	vpmu_state_section_end(c, head);
	return ret;
}

static int pv_state_put_all(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c)
{
	uint32_t i, n = 0;
	size_t end;
	int ret;

	for (i = 0; i < vm->n_vcpus; i++)
		n += pv_vcpus(vm)[i] != NULL;
	vpmu_state_put(c, VPMU_STATE_MAGIC, 4);
	vpmu_state_put(c, VPMU_STATE_VERSION, 4);
	vpmu_state_put(c, 0, 4);
	vpmu_state_put(c, n + 1, 4);
	pv_state_put_vm(vm, c);
	for (i = 0; i < vm->n_vcpus; i++) {
		if (!pv_vcpus(vm)[i])
			continue;
		ret = pv_state_put_vcpu(pv_vcpus(vm)[i], c);
		if (ret)
			return ret;
	}
	end = c->pos;
	c->pos = PV_STATE_TOTAL_AT;
	vpmu_state_put(c, end, 4);
	c->pos = end;
	return c->error;
}

/* Bracket the whole, so that all is of one instant; totals up to now. */
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
	return ret;
}

/* Load: first everything is checked */

/* Says what the guest has had and does not have here. */
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
	struct pv_event *ev = &out->ev;
	struct vpmu_state_cursor c;
	uint64_t throttled;

	memset(out, 0, sizeof(*out));
	pv_state_cursor(&c, im->events + (size_t)n * PV_STATE_EVENT_BYTES, PV_STATE_EVENT_BYTES);
	out->index = (uint32_t)vpmu_state_get(&c, 4);
	ev->id = (uint32_t)vpmu_state_get(&c, 4);
	ev->abi = (uint8_t)vpmu_state_get(&c, 1);
	ev->slot = (uint8_t)vpmu_state_get(&c, 1);
	throttled = vpmu_state_get(&c, 1);
	ev->throttled = throttled;
	ev->loss = (uint8_t)vpmu_state_get(&c, 1);
	ev->vcpu = (uint32_t)vpmu_state_get(&c, 4);
	ev->what.type = (uint32_t)vpmu_state_get(&c, 4);
	ev->what.flags = (uint32_t)vpmu_state_get(&c, 4);
	ev->what.config = vpmu_state_get(&c, 8);
	ev->leader = (uint32_t)vpmu_state_get(&c, 4);
	ev->overflows = (uint32_t)vpmu_state_get(&c, 4);
	ev->count = vpmu_state_get(&c, 8);
	ev->enabled = vpmu_state_get(&c, 8);
	ev->running = vpmu_state_get(&c, 8);
	ev->period = vpmu_state_get(&c, 8);
	ev->left = vpmu_state_get(&c, 8);
	ev->gpa = vpmu_state_get(&c, 8);
	ev->generation = (uint16_t)vpmu_state_get(&c, 2);
	ev->at_bytes = (uint8_t)vpmu_state_get(&c, 1);
	if (throttled > 1 || vpmu_state_get(&c, 1))
		return false;
	ev->what.suppress = (uint32_t)vpmu_state_get(&c, 4);
	return true;
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

/* What it counts need not be counted here, but must be something once opened. */
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

static int pv_state_get_vm(const struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c,
			   struct pv_state_image *im)
{
	uint64_t n_events = vpmu_state_get(c, 4), n_slots = vpmu_state_get(c, 4);
	uint32_t i;

	im->n_events = (uint32_t)vpmu_state_get(c, 4);
	im->n_told = (uint32_t)vpmu_state_get(c, 4);
	if (n_events > vm->n_events)
		return pv_state_unfit(im, "events of a VM", n_events, vm->n_events);
	if (n_slots > vm->n_slots)
		return pv_state_unfit(im, "events enabled on a vCPU", n_slots,
				      vm->n_slots);
	if (c->error || im->seen || im->n_events > n_events || im->n_told > VPMU_TOLD_MAX ||
	    c->size != PV_STATE_FIXED_BYTES + (size_t)im->n_events * PV_STATE_EVENT_BYTES +
	    im->n_told * PV_STATE_TOLD_BYTES)
		return -VPMU_EINVAL;
	im->seen = true;
	im->events = c->data + c->pos;
	im->told = im->events + (size_t)im->n_events * PV_STATE_EVENT_BYTES;
	for (i = 0; i < im->n_told; i++)
		if (pv_state_peek(im->told + i * PV_STATE_TOLD_BYTES, 8) & ~vm->select)
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

/* Whether every event that is enabled on this vCPU can be there. */
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

static int pv_state_check_vcpu(const struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c,
			       uint64_t version, struct pv_state_image *im)
{
	struct pv_state_vcpu vcpu;
	const struct vpmu_pv *v;
	uint32_t s;

	if (!im->seen || !pv_state_get_vcpu(c, version, &vcpu) ||
	    (im->n_vcpus && vcpu.number <= im->last_vcpu))
		return -VPMU_EINVAL;
	v = vcpu.number < vm->n_vcpus ? pv_vcpus((struct vpmu_pv_vm *)vm)[vcpu.number] : NULL;
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
	ev->at = v->ops->gpa_map(v->ctx, ev->gpa, ev->at_bytes);
	return ev->at;
}

static bool pv_state_load_events(struct vpmu_pv_vm *vm, const struct pv_state_image *im)
{
	struct pv_state_event e;
	struct vpmu_pv *v = NULL;
	uint32_t i;

	for (i = 0; i < vm->n_vcpus && !v; i++)
		v = pv_vcpus(vm)[i];
	for (i = 0; i < im->n_events; i++)
		if (!v || !pv_state_get_event(im, i, &e) || !pv_state_load_event(v, &e))
			return false;
	for (i = 0; i < vm->n_events; i++)
		if (pv_event_at(vm, i)->leader)
			pv_event_at(vm, i)->leader_serial =
				pv_event_at(vm, pv_event_at(vm, i)->leader - 1)->serial;
	vm->n_uncounted = im->n_told;
	for (i = 0; i < im->n_told; i++) {
		vm->uncounted[i].select = pv_state_peek(im->told + i * PV_STATE_TOLD_BYTES, 8);
		vm->uncounted[i].times = pv_state_peek(im->told + i * PV_STATE_TOLD_BYTES + 8, 8);
	}
	return true;
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
			v->ops->kick(v->ctx);
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
	if (vcpu->branches.data)
		vpmu_pv_branch_load(v, &vcpu->branches);
	return 0;
}

/* One section at the cursor, which is moved behind it: checked, or (@load) put in place. */
static int pv_state_section(struct vpmu_pv_vm *vm, struct vpmu_state_cursor *c,
			    struct pv_state_image *im, bool load)
{
	struct vpmu_state_cursor body;
	struct pv_state_vcpu vcpu;
	uint64_t id = vpmu_state_get(c, 4);
	uint64_t version = vpmu_state_get(c, 2);
	uint64_t flags = vpmu_state_get(c, 2);
	uint64_t bytes = vpmu_state_get(c, 4);
	uint64_t zero = vpmu_state_get(c, 4);
	uint64_t padded = (bytes + 7) / 8 * 8, known;

	if (c->error || zero || padded > c->size - c->pos)
		return -VPMU_EINVAL;
	pv_state_cursor(&body, c->data + c->pos, (size_t)bytes);
	c->pos += (size_t)padded;
	im->refused->asked = id; /* where the damage is, if it is that */
	if (id != VPMU_STATE_PV && id != VPMU_STATE_PV_VCPU)
		return flags & VPMU_STATE_MANDATORY ?
		       pv_state_newer(im, "a feature that is not known here, section", id, 0) : 0;
	known = id == VPMU_STATE_PV ? PV_STATE_VERSION : PV_STATE_VCPU_BRANCHES;
	if (version > known)
		return pv_state_newer(im, "version of a section", version, known);
	if (!load)
		return id == VPMU_STATE_PV ? pv_state_get_vm(vm, &body, im)
					   : pv_state_check_vcpu(vm, &body, version, im);
	if (id == VPMU_STATE_PV)
		return pv_state_load_events(vm, im) ? 0 : -VPMU_EFAULT;
	if (!pv_state_get_vcpu(&body, version, &vcpu))
		return -VPMU_EINVAL;
	return pv_state_load_vcpu(pv_vcpus(vm)[vcpu.number], im, &vcpu);
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
