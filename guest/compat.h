/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between kernels 6.1 and 6.12, and between 6.12s, all of it. */
#ifndef VPMU_GUEST_COMPAT_H
#define VPMU_GUEST_COMPAT_H

#include <linux/perf_event.h>

/*
 * 6.1 has one context for all hardware PMUs and complains of a second one, be it
 * that of an earlier load, unless the machine is heterogeneous.
 */
#ifdef PERF_PMU_CAP_HETEROGENEOUS_CPUS
#define VG_PMU_CAPABILITIES PERF_PMU_CAP_HETEROGENEOUS_CPUS
#else
#define VG_PMU_CAPABILITIES 0
#endif

/* Branch records of a sample, of an event that has asked for them. */
void vg_compat_brstack(struct perf_sample_data *data, struct perf_event *event,
		       struct perf_branch_stack *stack);

/* A struct pmu has been unregistered: free it, or keep what perf still looks at. */
void vg_compat_pmu_gone(struct pmu *pmu);

/* From then on the kernel calls both, on the last CPU that is up. */
void vg_compat_syscore_register(int (*suspend)(void), void (*resume)(void));
void vg_compat_syscore_unregister(void);

#endif /* VPMU_GUEST_COMPAT_H */
