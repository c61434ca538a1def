// SPDX-License-Identifier: GPL-2.0-only
/* sys/kernel/debug/vpmu_kvm: the VMs, their vCPUs and the resources that they use. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "vpmu_kvm.h"

static struct dentry *vk_dir;

static void vk_show_events(struct seq_file *m, struct vk_vm *vm, struct vk_vcpu *c)
{
	struct vpmu_pv_info info;
	unsigned int i;

	for (i = 0; i < vk_max_events; i++) {
		if (!vpmu_pv_event_info(c->pv, i, &info))
			continue;
		seq_printf(m, "  event %u type %u config %#llx", info.id, info.type, info.config);
		if (info.vcpu >= 0)
			seq_printf(m, " vcpu %d%s%s", info.vcpu, info.loss ? " lost" : "",
				   info.throttled ? " throttled" : "");
		seq_printf(m, " count %llu overflows %u enabled %llu running %llu\n", info.count,
			   info.overflows, info.time_enabled, info.time_running);
	}
}

/* These numbers are of one vCPU or of all. */
struct vk_total {
	u64 calls, services, overflows, nmis, throttles, rdmsr, wrmsr, rdpmc;
	u64 losses[VPMU_LOSS_NOT_COUNTED + 1];
};

static struct vk_total vk_kept; /* VMs that have ended had these; vk_mutex protects them */

void vk_stats_trace(void *ctx, const struct vpmu_trace_record *r)
{
	struct vk_vcpu *c = ctx;

	if (r->type == VPMU_TRACE_PV_THROTTLE)
		c->n_throttles += r->what;
	else if ((r->type == VPMU_TRACE_LOST || r->type == VPMU_TRACE_PV_LOST) &&
		 r->what < ARRAY_SIZE(c->n_losses))
		c->n_losses[r->what]++;
}

static void vk_add(struct vk_total *t, const struct vk_vcpu *c)
{
	unsigned int i;

	t->calls += c->n_calls;
	t->services += c->n_services;
	t->overflows += atomic64_read(&c->n_overflows);
	t->nmis += c->n_nmis;
	t->throttles += c->n_throttles;
	t->rdmsr += c->n_rdmsr;
	t->wrmsr += c->n_wrmsr;
	t->rdpmc += c->n_rdpmc;
	for (i = 0; i < ARRAY_SIZE(t->losses); i++)
		t->losses[i] += c->n_losses[i];
}

static struct vk_vcpu *vk_vcpu_at(const struct vk_vm *vm, unsigned int i)
{
	/* Pairs with smp_store_release() in vk_vcpu_new(). */
	return smp_load_acquire(&vm->vcpu[i]);
}

static void vk_add_vm(struct vk_total *t, const struct vk_vm *vm)
{
	unsigned int i;

	for (i = 0; i < vm->n_vcpus; i++)
		if (vk_vcpu_at(vm, i))
			vk_add(t, vk_vcpu_at(vm, i));
}

void vk_stats_keep(const struct vk_vm *vm)
{
	lockdep_assert_held(&vk_mutex);
	vk_add_vm(&vk_kept, vm);
}

/* vpmu kvm metrics reads these words, in any order. */
static void vk_show_total(struct seq_file *m, const struct vk_total *t)
{
	seq_printf(m, " calls %llu services %llu overflows %llu nmis %llu", t->calls,
		   t->services, t->overflows, t->nmis);
	seq_printf(m, " lost %llu filtered %llu uncounted %llu throttles %llu",
		   t->losses[VPMU_LOSS_LOST], t->losses[VPMU_LOSS_FILTERED],
		   t->losses[VPMU_LOSS_NOT_COUNTED], t->throttles);
	seq_printf(m, " rdmsr %llu wrmsr %llu rdpmc %llu\n", t->rdmsr, t->wrmsr, t->rdpmc);
}

static void vk_show_vm(struct seq_file *m, struct vk_vm *vm)
{
	struct vk_vcpu *any = NULL;
	unsigned int i;

	lockdep_assert_held(&vk_mutex);
	seq_printf(m, "vm %d%s\n", vm->pid, vm->arch ? " architectural" : "");
	for (i = 0; i < vm->n_vcpus; i++) {
		struct vk_vcpu *c = vk_vcpu_at(vm, i);
		struct vk_total t = { };

		if (!c)
			continue;
		vk_add(&t, c);
		seq_printf(m, "  vcpu %u", i);
		vk_show_total(m, &t);
		if (c->pv)
			any = c;
	}
	if (any)
		vk_show_events(m, vm, any);
}

static int vms_show(struct seq_file *m, void *unused)
{
	struct vk_total all;
	struct vk_vm *vm;

	mutex_lock(&vk_mutex);
	seq_printf(m, "vms %u of %u, counters %u of %u, events refused %llu\n", vk_n_vms,
		   vk_max_vms, atomic_read(&vk_n_counters), vk_max_counters,
		   (u64)atomic64_read(&vk_n_refused));
	all = vk_kept;
	list_for_each_entry(vm, &vk_all, list)
		vk_add_vm(&all, vm);
	seq_puts(m, "total");
	vk_show_total(m, &all);
	list_for_each_entry(vm, &vk_all, list)
		vk_show_vm(m, vm);
	mutex_unlock(&vk_mutex);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(vms);

void vk_stats_init(void)
{
	vk_dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("vms", 0400, vk_dir, NULL, &vms_fops);
}

void vk_stats_exit(void)
{
	debugfs_remove(vk_dir);
}
