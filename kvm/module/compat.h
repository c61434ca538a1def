/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between kernels 6.1 and 6.12, and which others are refused. */
#ifndef VPMU_KVM_COMPAT_H
#define VPMU_KVM_COMPAT_H

#include <linux/version.h>

#ifndef CONFIG_X86_64
#error "vpmu_kvm is for 64-bit kernels"
#endif
#if !IS_ENABLED(CONFIG_KVM)
#error "vpmu_kvm needs a kernel with KVM"
#endif
#ifndef CONFIG_DYNAMIC_FTRACE_WITH_REGS
#error "vpmu_kvm needs a kernel with CONFIG_DYNAMIC_FTRACE_WITH_REGS"
#endif
#ifndef CONFIG_PERF_EVENTS
#error "vpmu_kvm needs a kernel with CONFIG_PERF_EVENTS"
#endif

/*
 * What the module relies on inside of KVM is in docs/KVM-HOST.md, "Where it hooks".
 * Who has read another kernel's source for that can build with VPMU_KVM_ANY_KERNEL=1.
 */
#ifndef VPMU_KVM_ANY_KERNEL
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#error "vpmu_kvm has been tried with kernels 6.1 and 6.12 only: docs/KVM-HOST.md, \"Other kernels\""
#endif
#endif

#endif /* VPMU_KVM_COMPAT_H */
