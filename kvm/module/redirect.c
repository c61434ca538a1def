// SPDX-License-Identifier: GPL-2.0-only
/* Registers and removes the hooks of a table. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "hook.h"
#include "params.h"
#include "symbol.h"

static void vk_hook_off(struct vk_hook *h)
{
	if (!h->on)
		return;
	h->on = false;
	unregister_ftrace_function(&h->ops);
	ftrace_free_filter(&h->ops);
}

/*
 * By a name ftrace compares the names of all functions of the kernel: a VM's request took 4.75e9
 * instructions of Linux 7.3, by address 0.17e9. Without kprobes there is no other way.
 */
static int vk_filter(struct vk_hook *h)
{
	void *at = vk_symbol(h->name);

	return at ? ftrace_set_filter_ip(&h->ops, (unsigned long)at, 0, 0) :
		    ftrace_set_filter(&h->ops, (unsigned char *)h->name, strlen(h->name), 0);
}

static int vk_hook_on(struct vk_hook *h)
{
	int ret = vk_check_params(h->name, h->params);

	if (ret) {
		pr_err("this kernel's KVM has other parameters of %s, or does not tell: "
		       "docs/KVM-HOST.md names the kernels that were tried\n", h->name);
		return -EOPNOTSUPP;
	}
	/* Ftrace leaves pointers to what it has freed after the last time. */
	h->ops = (struct ftrace_ops){ .func = h->func, .flags = h->flags };
	ret = vk_filter(h);
	if (ret) {
		pr_err("this kernel's KVM has no function %s that ftrace could hook (%d): "
		       "docs/KVM-HOST.md names the kernels that were tried\n", h->name, ret);
		return ret == -EINVAL ? -EOPNOTSUPP : ret;
	}
	ret = register_ftrace_function(&h->ops);
	h->on = !ret;
	if (ret == -EBUSY)
		pr_err("%s cannot be hooked: something else has redirected it (a live patch?), "
		       "or ftrace is off (sysctl kernel.ftrace_enabled)\n", h->name);
	else if (ret)
		pr_err("%s cannot be hooked: %d\n", h->name, ret);
	if (ret)
		ftrace_free_filter(&h->ops);
	return ret;
}

void vk_hooks_off(struct vk_hook *hooks, unsigned int n)
{
	while (n)
		vk_hook_off(&hooks[--n]);
}

int vk_hooks_on(struct vk_hook *hooks, unsigned int n)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < n && !ret; i++)
		ret = vk_hook_on(&hooks[i]);
	return ret;
}
