// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection for tests (VPMU_KVM_FAULTS=1 kvm/module/build): the Nth call fails
 * among those that ask for memory, for guest memory or for a perf event.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "vpmu_kvm.h"

static atomic_t vk_calls = ATOMIC_INIT(0);
static unsigned int vk_fail_nth;
static bool vk_fail_on;

/* Setting the parameter restarts the count of calls. */
static int vk_set_nth(const char *text, const struct kernel_param *kp)
{
	int ret = param_set_uint(text, kp);

	atomic_set(&vk_calls, 0);
	return ret;
}

static const struct kernel_param_ops vk_nth_ops = {
	.set = vk_set_nth,
	.get = param_get_uint,
};
module_param_cb(fail_nth, &vk_nth_ops, &vk_fail_nth, 0600);
MODULE_PARM_DESC(fail_nth, "Number of the call, counted from now on, that fails; 0: none");
module_param_named(fail_on, vk_fail_on, bool, 0600);
MODULE_PARM_DESC(fail_on, "Each later call fails too");

static int vk_get_calls(char *text, const struct kernel_param *kp)
{
	return sysfs_emit(text, "%d\n", atomic_read(&vk_calls));
}

static const struct kernel_param_ops vk_calls_ops = { .get = vk_get_calls };
module_param_cb(fail_calls, &vk_calls_ops, NULL, 0400);
MODULE_PARM_DESC(fail_calls, "Calls since fail_nth was written");

bool vk_fails(void)
{
	unsigned int n = atomic_inc_return(&vk_calls), nth = READ_ONCE(vk_fail_nth);

	return nth && (n == nth || (vk_fail_on && n > nth));
}
