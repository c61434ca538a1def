// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest memory. Copies are made on the vCPU's thread, with KVM's memory slots and its
 * dirty log. What stays mapped is pinned: what is in the guest at that address stays that
 * page, or the guest, or its VMM, has itself to blame.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "vpmu_kvm.h"

/* A page, mapped once; there may be more of the same page. */
struct vk_map {
	struct hlist_node node;
	struct page *page;
	gfn_t gfn;
};

static bool vk_running(const struct vk_vcpu *c)
{
	return c->vcpu && kvm_get_running_vcpu() == c->vcpu;
}

/*
 * Guest memory may let its vCPU wait for as long as its VMM likes: meanwhile another vCPU
 * that comes to the thread where this one was bound may have to unbind it. Not in the load
 * or the end of a VM, where its vCPUs have no thread.
 */
static void vk_memory_begin(struct vk_vcpu *c)
{
	if (vk_running(c))
		mutex_unlock(&c->perf.lock);
}

static void vk_memory_end(struct vk_vcpu *c)
{
	if (vk_running(c))
		mutex_lock(&c->perf.lock);
}

/*
 * KVM's dirty ring has room for 64 pages of an exit, and a page is in it as often as it
 * is logged. So a call's or service's pages are logged at its end, once each.
 */
static void vk_log_dirty(struct vk_vcpu *c, gfn_t gfn)
{
	unsigned int i;

	/* KVM's log is kept by vCPUs that run, and the end of a VM has none. */
	if (!vk_running(c))
		return;
	for (i = 0; i < c->n_dirty; i++)
		if (c->dirty[i] == gfn)
			return;
	if (c->n_dirty == ARRAY_SIZE(c->dirty))
		vk_flush_dirty(c);
	c->dirty[c->n_dirty++] = gfn;
}

void vk_flush_dirty(struct vk_vcpu *c)
{
	while (c->n_dirty)
		kvm_vcpu_mark_page_dirty(c->vcpu, c->dirty[--c->n_dirty]);
}

int vk_gpa_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	struct vk_vcpu *c = ctx;
	int ret;

	if (vk_fails())
		return -VPMU_EFAULT;
	vk_memory_begin(c);
	ret = kvm_vcpu_read_guest(c->vcpu, gpa, buf, size);
	vk_memory_end(c);
	return ret ? -VPMU_EFAULT : 0;
}

/* In one page. Where KVM does not let a guest write, there is no address. */
static int vk_write_page(struct vk_vcpu *c, gpa_t gpa, const void *buf, unsigned long size)
{
	unsigned long hva = kvm_vcpu_gfn_to_hva(c->vcpu, gpa >> PAGE_SHIFT);

	if (kvm_is_error_hva(hva) ||
	    __copy_to_user((void __user *)(hva + offset_in_page(gpa)), buf, size))
		return -VPMU_EFAULT;
	return 0;
}

int vk_gpa_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size)
{
	struct vk_vcpu *c = ctx;
	int ret = 0;

	if (vk_fails())
		return -VPMU_EFAULT;
	while (size && !ret) {
		uint32_t part = min_t(uint32_t, size, PAGE_SIZE - offset_in_page(gpa));

		vk_memory_begin(c);
		ret = vk_write_page(c, gpa, buf, part);
		vk_memory_end(c);
		if (!ret)
			vk_log_dirty(c, gpa >> PAGE_SHIFT);
		gpa += part;
		buf += part;
		size -= part;
	}
	return ret;
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
	bool pinned;
	void *at;

	if (kvm_is_error_hva(hva))
		return NULL;
	m = vk_fails() ? NULL : kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return NULL;
	vk_memory_begin(c);
	pinned = !vk_fails() && vk_pin_page(c->vcpu->kvm->mm, hva, &m->page) == 1;
	vk_memory_end(c);
	if (!pinned) {
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
	vk_memory_begin(c);
	unpin_user_pages_dirty_lock(&m->page, 1, true);
	vk_memory_end(c);
	kfree(m);
}
