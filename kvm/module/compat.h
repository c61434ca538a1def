/* SPDX-License-Identifier: GPL-2.0-only */
/* The differences between kernels from 6.1 on. */
#ifndef VPMU_KVM_COMPAT_H
#define VPMU_KVM_COMPAT_H

#include <linux/version.h>

#ifndef CONFIG_X86_64
#error "vpmu_kvm is for 64-bit kernels"
#endif
#if !IS_ENABLED(CONFIG_KVM)
#error "vpmu_kvm needs a kernel with KVM"
#endif
#ifndef CONFIG_DYNAMIC_FTRACE_WITH_ARGS
#error "vpmu_kvm needs a kernel with CONFIG_DYNAMIC_FTRACE_WITH_ARGS"
#endif
#ifndef CONFIG_PERF_EVENTS
#error "vpmu_kvm needs a kernel with CONFIG_PERF_EVENTS"
#endif

/* The module loads on another kernel only if params.h can check the types. */
#define VK_KERNEL_WAS_TRIED					\
	(LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0) ||	\
	 (LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0) &&	\
	  LINUX_VERSION_CODE < KERNEL_VERSION(7, 4, 0)))
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "vpmu_kvm is for kernels 6.1 and newer: docs/KVM-HOST.md, \"Kernels tried\""
#endif

#include <linux/kvm_host.h>
#include <linux/mm.h>

/* The older one has no second parameter, and does not mind one. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define VK_KICK		"__kvm_vcpu_kick"
#define VK_KICK_PARAMS	"vi"
#else
#define VK_KICK		"kvm_vcpu_kick"
#define VK_KICK_PARAMS	"v"
#endif

/*
 * From 6.3 on KVM keeps filters in a form of its own, in which all entries are masked
 * ones; since 7.3 it does so in private, and params.h checks this.
 */
#define VK_FILTER_IS_PRIVATE (LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0))
#define VK_FILTER_MEMBERS "iiiiiippa"
#if VK_FILTER_IS_PRIVATE
struct kvm_x86_pmu_event_filter {
	u32 action, nevents, fixed_counter_bitmap, flags, nr_includes, nr_excludes;
	u64 *includes, *excludes;
	u64 events[];
};
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
typedef struct kvm_x86_pmu_event_filter vk_kvm_filter;
#define vk_filter_flags(filter) 1u /* VPMU_FILTER_MASKED */
#else
typedef struct kvm_pmu_event_filter vk_kvm_filter;
#define vk_filter_flags(filter) ((filter)->flags)
#endif

/*
 * KVM says that it has executed an instruction for the guest, and whether that was a branch:
 * until 6.11 by an event of perf's, until 6.17 by the event select of the host's perf (retired
 * branches: AMD C2H, Intel C4H), and since then by two functions.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define VK_RETIRED	"kvm_pmu_instruction_retired"
#define VK_RETIRED_BRANCH "kvm_pmu_branch_retired"
#define VK_RETIRED_PARAMS "v"
#define vk_is_branch(what) false
#else
#define VK_RETIRED	"kvm_pmu_trigger_event"
#define VK_RETIRED_PARAMS "vl"
static inline bool vk_is_branch(u64 what)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	return what == PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
#else
	return (what & 0xff) == 0xc2 || (what & 0xff) == 0xc4;
#endif
}
#endif

/* While such a VM lives, perf makes no other events that count in guests. */
static inline bool vk_is_mediated(const struct kvm *kvm)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
	return kvm->arch.created_mediated_pmu;
#else
	return false;
#endif
}

static inline void vk_hrtimer_init(struct hrtimer *timer,
				   enum hrtimer_restart (*function)(struct hrtimer *timer))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = function;
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

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#define VK_REG_CR4	VCPU_REG_CR4
#else
#define VK_REG_CR4	VCPU_EXREG_CR4
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
