// SPDX-License-Identifier: GPL-2.0-only
/* The module: the core, which proves itself or is refused. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/module.h>

#include "selftest.h"

static int __init vpmu_core_init(void)
{
	int err = vpmu_selftest();

	if (err)
		pr_err("self-test failed (%d), not loaded\n", err);
	return err;
}

static void __exit vpmu_core_exit(void)
{
}

module_init(vpmu_core_init);
module_exit(vpmu_core_exit);

MODULE_DESCRIPTION("A performance monitoring unit for guests");
MODULE_LICENSE("GPL");
