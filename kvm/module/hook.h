/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables of ftrace hooks on KVM's functions. */
#ifndef VPMU_KVM_HOOK_H
#define VPMU_KVM_HOOK_H

#include <linux/ftrace.h>

struct vk_hook {
	const char *name, *params;   /* of KVM's function, as vk_check_params() has them */
	ftrace_func_t func;
	unsigned long flags;         /* of ops, to begin with */
	struct ftrace_ops ops;
	bool on;
};

/* The callback only looks, or it may redirect the call to a function of the same type. */
#define VK_WATCH(function, params, callback) \
	{ (function), (params), (callback), FTRACE_OPS_FL_PERMANENT }
#define VK_REDIRECT(function, params, callback) \
	{ (function), (params), (callback), FTRACE_OPS_FL_PERMANENT | FTRACE_OPS_FL_IPMODIFY }

/*
 * In a callback: the arguments of KVM's function and the instruction pointer, which may be changed.
 * The other registers are not there: to have ftrace save all of them makes each call dearer.
 */
static inline struct pt_regs *vk_regs(struct ftrace_regs *fregs)
{
#ifdef arch_ftrace_regs /* since 6.13 */
	return &arch_ftrace_regs(fregs)->regs;
#else
	return &fregs->regs;
#endif
}

/**
 * Register hooks in the table's order. Returns 0, or a negative errno after a pr_err; then
 * vk_hooks_off() removes those that were registered. May sleep.
 */
int vk_hooks_on(struct vk_hook *hooks, unsigned int n);

/** Remove those that are registered, in the reverse order. May sleep. */
void vk_hooks_off(struct vk_hook *hooks, unsigned int n);

#endif /* VPMU_KVM_HOOK_H */
