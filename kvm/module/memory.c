// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest memory. Copies are made on the vCPU's thread, through KVM's memory slots and its
 * dirty log. A mapped page is pinned. The guest address keeps referring to that page
 * unless the guest or its VMM changes the mapping, and then only that guest is affected.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "kvm.h"
#include "vpmu_kvm.h"

/* A mapped page. Several maps may refer to the same page. */
struct vk_map {
	struct hlist_node node;
	struct page *page;
	gfn_t gfn;
};

static bool vk_running(const struct vk_vcpu *c)
{
	return c->vcpu && static_call(vk_kvm_running_vcpu)() == c->vcpu;
}

/*
 * An access to guest memory may block for as long as the guest's VMM likes. Meanwhile
 * another vCPU that runs on the thread to which this one was bound may have to unbind
 * this one. A VM that is being loaded or ends has no vCPU threads, so there is nothing to
 * release.
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
 * KVM's dirty ring has room for 64 pages per exit, and a page takes a place each time it
 * is logged. So the pages of a call or service are logged at its end, once each.
 */
static void vk_log_dirty(struct vk_vcpu *c, gfn_t gfn)
{
	unsigned int i;

	/* KVM's log is kept per running vCPU, and no vCPU runs when a VM ends. */
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
		static_call(vk_kvm_mark_page_dirty)(c->vcpu, c->dirty[--c->n_dirty]);
}

int vk_gpa_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	struct vk_vcpu *c = ctx;
	int ret;

	if (vk_fails())
		return -VPMU_EFAULT;
	vk_memory_begin(c);
	ret = static_call(vk_kvm_read_guest)(c->vcpu, gpa, buf, size);
	vk_memory_end(c);
	return ret ? -VPMU_EFAULT : 0;
}

/* Writes within one page. KVM gives no address where the guest may not write. */
static int vk_write_page(struct vk_vcpu *c, gpa_t gpa, const void *buf, unsigned long size)
{
	unsigned long hva = static_call(vk_kvm_gfn_to_hva)(c->vcpu, gpa >> PAGE_SHIFT);

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
	unsigned long hva = static_call(vk_kvm_gfn_to_hva)(c->vcpu, gpa >> PAGE_SHIFT);
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

	lockdep_assert_held(&vm->lock);
	hash_for_each_possible(vm->maps, m, node, vk_map_key(at))
		if (page_address(m->page) == (void *)((unsigned long)at & PAGE_MASK))
			return m;
	return NULL;
}

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
