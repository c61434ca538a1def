/* SPDX-License-Identifier: GPL-2.0-only */
/* The differences between kernels from 6.1 to 7.3, and among stable ones, in one place. */
#ifndef VPMU_GUEST_COMPAT_H
#define VPMU_GUEST_COMPAT_H

#include <linux/perf_event.h>
#ifdef VG_HAVE_CPUID_API
#include <asm/cpuid/api.h>
#else
#include <asm/processor.h>
#endif

/*
 * 6.1 has one context for all hardware PMUs. It complains of a second PMU, even of an
 * earlier load's, unless the machine is heterogeneous.
 */
#ifdef PERF_PMU_CAP_HETEROGENEOUS_CPUS
#define VG_PMU_CAPABILITIES PERF_PMU_CAP_HETEROGENEOUS_CPUS
#else
#define VG_PMU_CAPABILITIES 0
#endif

/* Add branch records to a sample of an event that has asked for them. */
void vg_compat_brstack(struct perf_sample_data *data, struct perf_event *event,
		       struct perf_branch_stack *stack);

/*
 * Free a struct pmu that has been unregistered, or keep it if perf may still access it.
 */
void vg_compat_pmu_gone(struct pmu *pmu);

/* Have both functions called from now on, on the last CPU that is up. */
void vg_compat_syscore_register(int (*suspend)(void), void (*resume)(void));
void vg_compat_syscore_unregister(void);

#endif /* VPMU_GUEST_COMPAT_H */
