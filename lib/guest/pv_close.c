// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Events are closed, by any vCPU of the VM. If one is enabled on another vCPU, that vCPU releases
 * the provider's event at its next service.
 */
#include "pv_close.h"
#include "pv_memory.h"
#include "pv_page.h"
#include "pv_slot.h"

/* The event is enabled on another vCPU, which finds its slot empty at its next service. */
static void pv_close_detach(struct vpmu_pv_vm *vm, struct pv_event *ev)
{
	struct vpmu_pv *owner = pv_vcpus(vm)[ev->vcpu - 1];

	pv_assert_vm_locked(vm);
	owner->slot[ev->slot].event = 0;
	ev->vcpu = 0;
	vpmu_atomic_or(&owner->detached, 1u);
	owner->ops.kick(owner->ctx);
}

int vpmu_pv_close(struct vpmu_pv *v, struct pv_event *ev, void **at, uint32_t *bytes)
{
	pv_assert_locked(v);
	if (pv_here(v, ev)) {
		vpmu_pv_slot_disable(v, ev);
		vpmu_atomic_or(&v->detached, 1u); /* what is parked goes at the end */
	} else if (ev->vcpu) {
		if (vpmu_pv_slot_leads(pv_vcpus(v->vm)[ev->vcpu - 1], ev))
			return -VPMU_PV_EBUSY;
		pv_close_detach(v->vm, ev);
	}
	*at = ev->at;
	*bytes = ev->at_bytes;
	memset(ev, 0, sizeof(*ev));
	return 0;
}

static void pv_close_one(struct vpmu_pv *v, struct pv_event *ev)
{
	void *at = NULL, *none;
	uint32_t bytes = 0;

	pv_lock(v);
	if (ev->abi) {
		at = ev->at;
		bytes = ev->at_bytes;
		ev->at = NULL;
		if (ev->vcpu && !pv_here(v, ev))
			pv_close_detach(v->vm, ev);
		(void)vpmu_pv_close(v, ev, &none, &bytes);
	}
	pv_unlock(v);
	if (at)
		v->ops.gpa_unmap(v->ctx, at, bytes);
}

/* vCPU number @i, or NULL; another thread may be setting it up. */
static struct vpmu_pv *pv_close_vcpu(struct vpmu_pv *v, uint32_t i)
{
	struct vpmu_pv *who;

	pv_lock(v);
	who = pv_vcpus(v->vm)[i];
	pv_unlock(v);
	return who;
}

static void pv_close_page(struct vpmu_pv *v, struct vpmu_pv *whose)
{
	struct pv_pages pages;

	pv_lock(v);
	pages = vpmu_pv_page_forget(whose);
	pv_unlock(v);
	vpmu_pv_memory_unmap(v, &pages);
}

void vpmu_pv_close_all(struct vpmu_pv *v)
{
	struct vpmu_pv_vm *vm = v->vm;
	struct vpmu_pv *who;
	uint32_t i;

	for (i = 0; i < vm->n_vcpus; i++) {
		who = pv_close_vcpu(v, i);
		if (who)
			pv_close_page(v, who);
	}
	for (i = 0; i < vm->n_events; i++)
		pv_close_one(v, pv_event_at(vm, i));
	for (i = 0; i < vm->n_vcpus; i++) {
		who = pv_close_vcpu(v, i);
		if (!who)
			continue;
		vpmu_atomic_or(&who->detached, 1u); /* its parked events are released */
		who->ops.kick(who->ctx);
	}
}
