// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest memory. Copies go through KVM, on the vCPU's thread, with its memory slots and
 * its dirty log; a saved state maps on a thread of ours that has the VM's memory. What
 * stays mapped is pinned: what is in the guest at that address stays that page, or the
 * guest, or its VMM, has itself to blame.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "vpmu_kvm.h"

/* A page, mapped once; there may be more of the same page. */
struct vk_map {
	struct hlist_node node;
	struct page *page;
	gfn_t gfn;
};

int vk_gpa_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	struct vk_vcpu *c = ctx;

	return vk_fails() || kvm_vcpu_read_guest(c->vcpu, gpa, buf, size) ? -VPMU_EFAULT : 0;
}

int vk_gpa_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size)
{
	struct vk_vcpu *c = ctx;

	return vk_fails() || kvm_vcpu_write_guest(c->vcpu, gpa, buf, size) ? -VPMU_EFAULT : 0;
}

static unsigned long vk_map_key(const void *at)
{
	return (unsigned long)at >> PAGE_SHIFT;
}

void *vk_gpa_map(void *ctx, uint64_t gpa, uint32_t size)
{
	struct vk_vcpu *c = ctx;
	unsigned long hva = kvm_vcpu_gfn_to_hva(c->vcpu, gpa >> PAGE_SHIFT);
	struct vk_map *m;
	void *at;

	if (kvm_is_error_hva(hva))
		return NULL;
	m = vk_fails() ? NULL : kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return NULL;
	if (vk_fails() ||
	    pin_user_pages_fast(hva, 1, FOLL_WRITE | FOLL_LONGTERM, &m->page) != 1) {
		kfree(m);
		return NULL;
	}
	m->gfn = gpa >> PAGE_SHIFT;
	at = page_address(m->page);
	mutex_lock(&c->vm->lock);
	hash_add(c->vm->maps, &m->node, vk_map_key(at));
	mutex_unlock(&c->vm->lock);
	return at + offset_in_page(gpa);
}

static struct vk_map *vk_map_find(struct vk_vm *vm, void *at)
{
	struct vk_map *m;

	hash_for_each_possible(vm->maps, m, node, vk_map_key(at))
		if (page_address(m->page) == (void *)((unsigned long)at & PAGE_MASK))
			return m;
	return NULL;
}

/* KVM's log is kept by vCPUs that run, and whoever ends a VM is none. */
static void vk_log_dirty(struct vk_vcpu *c, gfn_t gfn)
{
	if (c->vcpu && kvm_get_running_vcpu() == c->vcpu)
		kvm_vcpu_mark_page_dirty(c->vcpu, gfn);
}

/* Under the lock. */
void vk_gpa_dirty(void *ctx, void *at, uint32_t size)
{
	struct vk_vcpu *c = ctx;
	struct vk_map *m = vk_map_find(c->vm, at);

	if (m)
		vk_log_dirty(c, m->gfn);
}

void vk_gpa_unmap(void *ctx, void *at, uint32_t size)
{
	struct vk_vcpu *c = ctx;
	struct vk_map *m;

	mutex_lock(&c->vm->lock);
	m = vk_map_find(c->vm, at);
	if (m)
		hash_del(&m->node);
	mutex_unlock(&c->vm->lock);
	if (WARN_ON_ONCE(!m))
		return;
	vk_log_dirty(c, m->gfn);
	unpin_user_pages_dirty_lock(&m->page, 1, true);
	kfree(m);
}
