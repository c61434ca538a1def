/* SPDX-License-Identifier: GPL-2.0-only */
/* The differences between kernels 6.1 and 6.12, and a check that refuses all others. */
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
 * docs/KVM-HOST.md, "Where it hooks", lists what the module relies on inside KVM. Once
 * you have checked that against the source of another kernel, build with
 * VPMU_KVM_ANY_KERNEL=1.
 */
#ifndef VPMU_KVM_ANY_KERNEL
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#error "vpmu_kvm has been tried with kernels 6.1 and 6.12 only: docs/KVM-HOST.md, \"Other kernels\""
#endif
#endif

#include <linux/kvm_host.h>
#include <linux/mm.h>

/* KVM's parameter: can guests have KVM's own PMU at all? */
extern bool enable_pmu;

/* KVM exports it, and no header that is installed declares it. */
bool kvm_cpuid(struct kvm_vcpu *vcpu, u32 *eax, u32 *ebx, u32 *ecx, u32 *edx, bool exact_only);

/*
 * From 6.3 on KVM keeps filters in a form of its own, in which all entries are masked
 * ones.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
typedef struct kvm_x86_pmu_event_filter vk_kvm_filter;
#define vk_filter_flags(filter) 1u /* VPMU_FILTER_MASKED */
#else
typedef struct kvm_pmu_event_filter vk_kvm_filter;
#define vk_filter_flags(filter) ((filter)->flags)
#endif

/*
 * What kvm_pmu_trigger_event() is told: until 6.11 an event of perf's, since then the event
 * select of the host's perf, that of retired branches (AMD C2H, Intel C4H) or of instructions.
 */
static inline bool vk_is_branch(u64 what)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	return what == PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
#else
	return (what & 0xff) == 0xc2 || (what & 0xff) == 0xc4;
#endif
}

/*
 * KVM's functions for any MSR of guests and of VMMs: (vcpu, index, value or pointer, host).
 * Which of them the compiler has not inlined depends on the release.
 */
#define VK_GET_MSR	"__kvm_get_msr"
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define VK_SET_MSR	"kvm_set_msr_ignored_check"
#else
#define VK_SET_MSR	"__kvm_set_msr"
#endif

/* A KVM that is built without SMM does not define this flag. */
#ifndef HF_SMM_MASK
#define HF_SMM_MASK 0
#endif

/*
 * Pin a page of a VM's process, which need not be the caller's. Returns 1, or an error.
 * If the page has to be brought in first (userfaultfd), wait for it until a signal kills
 * the caller. Before 6.5 no call that pins pages for long does that.
 */
static inline long vk_pin_page(struct mm_struct *mm, unsigned long at, struct page **page)
{
	long n;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	int locked = 1;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	n = pin_user_pages_remote(mm, at, 1, FOLL_WRITE | FOLL_LONGTERM, page, &locked);
	if (locked)
		mmap_read_unlock(mm);
#else
	int locked = 1;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	n = get_user_pages_remote(mm, at, 1, FOLL_WRITE, page, NULL, &locked);
	if (n == 1)
		put_page(*page);
	if (!locked && mmap_read_lock_killable(mm))
		return -EINTR;
	if (n == 1)
		n = pin_user_pages_remote(mm, at, 1, FOLL_WRITE | FOLL_LONGTERM, page, NULL,
					  NULL);
	mmap_read_unlock(mm);
#endif
	return n;
}

#endif /* VPMU_KVM_COMPAT_H */
