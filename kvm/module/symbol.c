// SPDX-License-Identifier: GPL-2.0-only
/* Looks up addresses by name. */
#include <linux/kprobes.h>
#include <linux/module.h>

#include "symbol.h"

void *vk_exported(const char *name)
{
	void *at = __symbol_get(name);

	if (at)
		__symbol_put(name);
	return at;
}

void *vk_symbol(const char *name)
{
	/* A disabled one changes no code. */
	struct kprobe kp = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	void *at = vk_exported(name);

	if (at)
		return at;
	if (register_kprobe(&kp))
		return NULL;
	unregister_kprobe(&kp);
	return kp.addr;
}
