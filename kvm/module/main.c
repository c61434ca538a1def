// SPDX-License-Identifier: GPL-2.0-only
/* Loading and unloading the module; its parameters and limits. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/module.h>
#include <asm/processor.h>

#include "compat.h"
#include "kvm.h"
#include "selftest.h"
#include "vpmu_kvm.h"

unsigned int vk_max_vms = 256;
module_param_named(vms, vk_max_vms, uint, 0644);
MODULE_PARM_DESC(vms, "VMs that can have a PMU at the same time (256)");

unsigned int vk_max_counters = 4096;
module_param_named(counters, vk_max_counters, uint, 0644);
MODULE_PARM_DESC(counters, "perf events of all VMs together (4096)");

unsigned int vk_share = 8;
module_param_named(share, vk_share, uint, 0444);
MODULE_PARM_DESC(share, "perf events of these that each VM has for sure (8)");

bool vk_opt_in;
module_param_named(opt_in, vk_opt_in, bool, 0644);
MODULE_PARM_DESC(opt_in, "only VMs whose VMM asks for it have a PMU (N)");

bool vk_regain = true;
module_param_named(regain, vk_regain, bool, 0644);
MODULE_PARM_DESC(regain, "architectural PMUs get lost counters back by themselves (Y)");

bool vk_pin;
module_param_named(pin, vk_pin, bool, 0644);
MODULE_PARM_DESC(pin, "guests' events go before the host's that are not pinned (N)");

unsigned int vk_max_events = 512;
module_param_named(events, vk_max_events, uint, 0444);
MODULE_PARM_DESC(events, "events that a VM can have open (512)");

unsigned int vk_max_slots = VPMU_PV_SLOTS;
module_param_named(slots, vk_max_slots, uint, 0444);
MODULE_PARM_DESC(slots, "events that a vCPU can have enabled (63)");

unsigned int vk_max_rate = 50000;
module_param_named(rate, vk_max_rate, uint, 0444);
MODULE_PARM_DESC(rate, "overflows of an event in a second before it is throttled (50000)");

unsigned int vk_min_period = 100;
module_param_named(period, vk_min_period, uint, 0444);
MODULE_PARM_DESC(period, "shortest period; shorter ones are lengthened to it (100)");

const struct vpmu_model *vk_model;
atomic_t vk_n_counters = ATOMIC_INIT(0);
atomic_t vk_n_common = ATOMIC_INIT(0);
atomic64_t vk_n_refused = ATOMIC64_INIT(0);

static const struct vpmu_model *vk_find_model(void)
{
	const struct cpuinfo_x86 *cpu = &boot_cpu_data;

	switch (cpu->x86_vendor) {
	case X86_VENDOR_INTEL:
		return vpmu_model_find(VPMU_VENDOR_INTEL, cpu->x86, cpu->x86_model);
	case X86_VENDOR_AMD:
	case X86_VENDOR_HYGON:
		return vpmu_model_find(VPMU_VENDOR_AMD, cpu->x86, cpu->x86_model);
	default:
		return NULL;
	}
}

/* A parameter out of range fails the load, before any guest depends on it. */
static int vk_check_limits(void)
{
	const struct vpmu_pv_config cfg = {
		.size = sizeof(cfg),
		.model = vk_model,
		.abi = VPMU_PV_ABI_2,
		.n_vcpus = 1,
		.n_events = vk_max_events,
		.n_slots = vk_max_slots,
		.period_min = vk_min_period,
	};
	struct vpmu_error why = { };
	size_t vm, vcpu;
	int ret = vpmu_pv_size(&cfg, &vk_perf_ops, &vm, &vcpu, &why);

	if (ret)
		pr_err("%s is %llu, and can be at most %llu\n", why.what, why.asked,
		       why.available);
	return ret;
}

static int vk_check_host(void)
{
	int ret;

	vk_model = vk_find_model();
	if (!vk_model) {
		pr_err("the events of this CPU (%s, family %u, model %u) are not known\n",
		       boot_cpu_data.x86_vendor_id, boot_cpu_data.x86, boot_cpu_data.x86_model);
		return -ENODEV;
	}
	ret = vk_perf_probe();
	if (ret)
		pr_err("this host's perf cannot count instructions of guests (%d): it has no PMU "
		       "to share (try perf stat -e instructions true), or a VM has KVM's mediated "
		       "one\n", ret);
	return ret ? ret : vk_check_limits();
}

static int __init vk_init(void)
{
	int ret = vpmu_selftest();

	if (ret) {
		pr_err("self-test failed (%d), not loaded\n", ret);
		return ret;
	}
	ret = vk_kvm_init() ?: vk_check_host();
	if (ret)
		return ret;
	vk_threads_init();
	ret = vk_vms_init();
	if (ret)
		return ret;
	ret = vk_hook();
	if (ret)
		goto err_vms;
	ret = vk_arch_init();
	if (ret)
		goto err_hook;
	/* Registered last: nothing below may fail once user space can open it. */
	ret = vk_device_init();
	if (ret)
		goto err_arch;
	vk_arch_begin();
	vk_stats_init();
	pr_info("guests have a PMU (%s): %u events in a VM, %u at once on a vCPU\n",
		vk_model->title, vk_max_events, vk_max_slots);
	return 0;

err_arch:
	vk_arch_exit();
err_hook:
	vk_unhook();
	vk_vms_exit();
	vk_unwatch();
err_vms:
	vk_vms_free();
	return ret;
}

static void __exit vk_exit(void)
{
	vk_stats_exit();
	vk_device_exit();
	vk_arch_exit();
	vk_unhook();
	vk_vms_exit();
	vk_unwatch();
	vk_vms_free();
}

module_init(vk_init);
module_exit(vk_exit);

MODULE_DESCRIPTION("Paravirtual performance monitoring unit for KVM's guests");
MODULE_LICENSE("GPL");
