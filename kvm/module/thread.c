// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads. A vCPU's events are perf events of the thread that runs it, and such an event
 * counts whatever guest that thread runs. So a thread has the events of at most one vCPU,
 * the one that it runs. When KVM_RUN begins with another vCPU, or on another thread, a
 * service is requested, which runs before the vCPU enters its guest:
 *
 *	the thread has another vCPU's events     vk_perf_evict() unbinds them
 *	another thread has the vCPU's events     vk_perf_bind() binds them to this one
 *
 * Counts, periods and times continue where they were, and no guest's work is counted for
 * another guest. A VMM with one thread per vCPU binds once.
 */
#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/rculist_nulls.h>
#include <linux/sched.h>

#include "vpmu_kvm.h"

#define VK_THREAD_BITS	8

/*
 * Hashed by vk_perf.task; RCU protects readers. An entry moves to another list when it is
 * bound to another thread, and takes its reader along: the nulls value at the end of a
 * list says which list it is.
 */
static struct hlist_nulls_head vk_threads[1 << VK_THREAD_BITS];
static DEFINE_SPINLOCK(vk_threads_lock); /* protects writers */

static unsigned int vk_thread_hash(const struct task_struct *task)
{
	return hash_ptr(task, VK_THREAD_BITS);
}

void vk_threads_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(vk_threads); i++)
		INIT_HLIST_NULLS_HEAD(&vk_threads[i], i);
}

void vk_thread_join(struct vk_perf *p)
{
	spin_lock(&vk_threads_lock);
	hlist_nulls_add_head_rcu(&p->node, &vk_threads[vk_thread_hash(p->task)]);
	spin_unlock(&vk_threads_lock);
}

void vk_thread_leave(struct vk_perf *p)
{
	spin_lock(&vk_threads_lock);
	hlist_nulls_del_rcu(&p->node);
	spin_unlock(&vk_threads_lock);
}

/* The vCPU whose events this thread has, or NULL. Under RCU. */
static struct vk_vcpu *vk_thread_vcpu(void)
{
	unsigned int hash = vk_thread_hash(current);
	struct hlist_nulls_node *node;
	struct vk_perf *p;

	do {
		hlist_nulls_for_each_entry_rcu(p, node, &vk_threads[hash], node)
			if (READ_ONCE(p->task) == current)
				return container_of(p, struct vk_vcpu, perf);
	} while (get_nulls_value(node) != hash);
	return NULL;
}

/* A VM that is going away has no vCPU: its events count for no guest. */
enum vk_thread vk_thread_has(const struct kvm_vcpu *vcpu)
{
	const struct vk_vcpu *c = vk_thread_vcpu();
	const struct kvm_vcpu *has = c ? READ_ONCE(c->vcpu) : NULL;

	if (!has)
		return VK_THREAD_FREE;
	return has == vcpu ? VK_THREAD_OWN : VK_THREAD_TAKEN;
}

struct vk_vcpu *vk_thread_get(const struct kvm_vcpu *vcpu)
{
	struct vk_vcpu *c;
	unsigned long flags;
	bool got = false;

	rcu_read_lock();
	c = vk_thread_vcpu();
	if (c) {
		raw_spin_lock_irqsave(&c->lock, flags);
		got = c->vcpu && c->vcpu != vcpu && kvm_get_kvm_safe(c->vcpu->kvm);
		raw_spin_unlock_irqrestore(&c->lock, flags);
	}
	rcu_read_unlock();
	return got ? c : NULL;
}
