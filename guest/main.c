// SPDX-License-Identifier: GPL-2.0-only
/* Loading and unloading the driver; CPU hotplug; suspend; reboot. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpuhotplug.h>
#include <linux/gfp.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/reboot.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "compat.h"
#include "vpmu_guest.h"

static unsigned int counters;
module_param(counters, uint, 0444);
MODULE_PARM_DESC(counters,
		 "events enabled at once on a CPU (0: what the host says; version 1 cannot: 4)");

struct vg vg;
struct vg_cpu __percpu *vg_cpus;
static enum cpuhp_state vg_hotplug;

static int vg_cpu_up(unsigned int cpu)
{
	struct vg_cpu *c = per_cpu_ptr(vg_cpus, cpu);
	unsigned long flags;
	int ret;

	local_irq_save(flags);
	ret = vg.abi->up(c);
	c->up = !ret;
	local_irq_restore(flags);
	return ret;
}

static int vg_cpu_down(unsigned int cpu)
{
	struct vg_cpu *c = per_cpu_ptr(vg_cpus, cpu);
	unsigned long flags;

	local_irq_save(flags);
	c->up = false;
	vg.abi->down(c);
	local_irq_restore(flags);
	return 0;
}

/* All other CPUs are down; after the resume the host may be another one. */
static int vg_suspend(void)
{
	return vg_cpu_down(smp_processor_id());
}

static void vg_resume(void)
{
	vg_cpu_up(smp_processor_id());
}

static void vg_nothing(void *unused)
{
}

/*
 * The next kernel must not inherit events of this one, nor the host write to its pages.
 */
static int vg_reboot(struct notifier_block *nb, unsigned long action, void *data)
{
	WRITE_ONCE(vg.dead, true);
	on_each_cpu(vg_nothing, NULL, 1); /* batches in progress have ended on return */
	vg.abi->reset();
	return NOTIFY_DONE;
}

static struct notifier_block vg_reboot_nb = {
	.notifier_call = vg_reboot,
};

static void vg_free_cpus(void)
{
	unsigned int cpu, x;

	for_each_possible_cpu(cpu) {
		struct vg_cpu *c = per_cpu_ptr(vg_cpus, cpu);

		free_page((unsigned long)c->page);
		free_page((unsigned long)c->branches);
		kfree(c->brstack);
		kfree(c->call);
		for (x = 0; x < VG_CONTEXTS; x++)
			free_page((unsigned long)c->batch[x]);
	}
	free_percpu(vg_cpus);
}

static int vg_alloc_cpus(void)
{
	unsigned int cpu, x;

	vg_cpus = alloc_percpu(struct vg_cpu);
	if (!vg_cpus)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct vg_cpu *c = per_cpu_ptr(vg_cpus, cpu);
		bool all;

		c->careful = jiffies;
		c->page = (void *)get_zeroed_page(GFP_KERNEL);
		/* kcalloc() aligns to the size, which is a power of two. */
		c->call = kcalloc(VG_CONTEXTS, sizeof(*c->call), GFP_KERNEL);
		c->branches = (void *)get_zeroed_page(GFP_KERNEL);
		c->brstack = kzalloc(struct_size(c->brstack, entries, VPMU_PV_BRANCH_ENTRIES),
				     GFP_KERNEL);
		all = c->page && c->call && c->branches && c->brstack;
		for (x = 0; x < VG_CONTEXTS; x++) {
			c->batch[x] = (void *)get_zeroed_page(GFP_KERNEL);
			all = all && c->batch[x];
		}
		if (!all) {
			vg_free_cpus();
			return -ENOMEM;
		}
	}
	return 0;
}

/* The paravirtual PMU, which vg_detect() has found. */
static int __init vg_pv_init(void)
{
	int ret;

	BUILD_BUG_ON(sizeof(struct vpmu_pv_page) != VPMU_PV_PAGE_BYTES);
	BUILD_BUG_ON(sizeof(struct vpmu_pv_branches) > VPMU_PV_PAGE_BYTES);
	BUILD_BUG_ON(sizeof(struct vpmu_pv_op) != 64);
	BUILD_BUG_ON(sizeof(struct vpmu_pv_batch) +
		     VPMU_PV_BATCH_MAX * sizeof(struct vpmu_pv_op) > PAGE_SIZE);
	BUILD_BUG_ON(sizeof(struct vpmu_pv_call) != 32 || VG_CONTEXTS != 2);
	BUILD_BUG_ON(sizeof(struct vpmu_pv1_attr) != VPMU_PV1_ATTR_BYTES);
	ret = vg_alloc_cpus();
	if (ret)
		return ret;
	vg.abi->reset(); /* close the events of a kernel that crashed */
	ret = vg_overflow_init();
	if (ret)
		goto err_cpus;
	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "perf/x86/vpmu:online", vg_cpu_up,
				vg_cpu_down);
	if (ret < 0)
		goto err_nmi;
	vg_hotplug = ret;
	ret = vg_pmu_register();
	if (ret) {
		pr_err("perf takes no PMU: %d\n", ret);
		goto err_hotplug;
	}
	ret = vg_selftest();
	if (ret)
		goto err_pmu;
	vg_compat_syscore_register(vg_suspend, vg_resume);
	register_reboot_notifier(&vg_reboot_nb);
	pr_info("version %u, PMU \"%s\", %u events at once on a CPU, %u in all\n",
		vg.abi->version, vg.pmu->name, vg.n_counters, vg.n_ids);
	return 0;

err_pmu:
	vg_pmu_unregister();
err_hotplug:
	cpuhp_remove_state(vg_hotplug);
err_nmi:
	vg_overflow_exit();
	vg.abi->reset();
err_cpus:
	vg_free_cpus();
	return ret;
}

static void vg_pv_exit(void)
{
	unregister_reboot_notifier(&vg_reboot_nb);
	vg_compat_syscore_unregister();
	vg_pmu_unregister();
	cpuhp_remove_state(vg_hotplug);
	vg_overflow_exit();
	vg.abi->reset();
	vg_free_cpus();
}

/* A host may offer either PMU, or both. */
static int __init vg_init(void)
{
	bool losses;
	int ret;

	if (!boot_cpu_has(X86_FEATURE_HYPERVISOR)) {
		pr_err("no hypervisor: this driver is for guests\n");
		return -ENODEV;
	}
	losses = !vg_loss_init();
	vg.found = !vg_detect(counters);
	if (!losses && !vg.found) {
		pr_err("this host offers no paravirtual PMU of vpmu, and no loss block\n");
		return -ENODEV;
	}
	ret = vg.found ? vg_pv_init() : 0;
	if (ret)
		vg_loss_exit();
	return ret;
}

static void __exit vg_exit(void)
{
	if (vg.found)
		vg_pv_exit();
	vg_loss_exit();
}

module_init(vg_init);
module_exit(vg_exit);

MODULE_DESCRIPTION("Paravirtual performance monitoring unit of vpmu guests");
MODULE_LICENSE("GPL");
