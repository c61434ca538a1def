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

static void vk_show_arch(struct seq_file *m, const struct vk_vcpu *c)
{
	seq_printf(m, "  vcpu %u rdmsr %llu wrmsr %llu rdpmc %llu", c->number, c->n_rdmsr,
		   c->n_wrmsr, c->n_rdpmc);
	seq_printf(m, " services %llu overflows %llu pmis %llu\n", c->n_services,
		   (u64)atomic64_read(&c->n_overflows), c->n_nmis);
}

static void vk_show_vm(struct seq_file *m, struct vk_vm *vm)
{
	struct vk_vcpu *any = NULL;
	unsigned int i;

	lockdep_assert_held(&vk_mutex);
	seq_printf(m, "vm %d%s\n", vm->pid, vm->arch ? " architectural" : "");
	for (i = 0; i < vm->n_vcpus; i++) {
		/* Pairs with smp_store_release() in vk_vcpu_new(). */
		struct vk_vcpu *c = smp_load_acquire(&vm->vcpu[i]);

		if (!c)
			continue;
		if (c->arch) {
			vk_show_arch(m, c);
			continue;
		}
		any = c;
		seq_printf(m, "  vcpu %u calls %llu services %llu overflows %llu nmis %llu\n", i,
			   c->n_calls, c->n_services, (u64)atomic64_read(&c->n_overflows),
			   c->n_nmis);
	}
	if (any)
		vk_show_events(m, vm, any);
}

static int vms_show(struct seq_file *m, void *unused)
{
	struct vk_vm *vm;

	mutex_lock(&vk_mutex);
	seq_printf(m, "vms %u of %u, counters %u of %u, events refused %llu\n", vk_n_vms,
		   vk_max_vms, atomic_read(&vk_n_counters), vk_max_counters,
		   (u64)atomic64_read(&vk_n_refused));
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
