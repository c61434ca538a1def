/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A vCPU's thread on a host with a perf subsystem (perf.h), and the provider of
 * its guest's PMU. The third policy, direct, needs no host: direct.h.
 */
#ifndef VPMU_VCPU_H
#define VPMU_VCPU_H

#include <vpmu/perf.h>

enum vpmu_policy {
	VPMU_POLICY_DIRECT,   /* no host perf: the guest owns the counters */
	VPMU_POLICY_SHARED,   /* a guest's counter is a task-pinned event of its vCPU,
				 which the host's CPU-pinned events can take away */
	/*
	 * The guest owns every counter while it runs; events that count guests
	 * from outside are refused.
	 */
	VPMU_POLICY_MEDIATED,
};

/* The caller owns the memory; fields are private to lib/perf/vcpu.c. */
struct vpmu_vcpu {
	struct vpmu_provider provider;
	struct vpmu_perf_task task; /* its thread: perf events of the host may be
				       opened on it */
	uint64_t time, stamp;       /* time spent in the guest, until stamp */
	uint8_t policy;
	bool hold;                  /* the guest's side needs the clock */
};

extern const struct vpmu_provider_ops vpmu_vcpu_ops;

/**
 * Set up a vCPU that is on no CPU.
 *
 * @policy: VPMU_POLICY_SHARED or VPMU_POLICY_MEDIATED
 *
 * Returns 0; -VPMU_EINVAL for another policy; -VPMU_EBUSY when a mediated VM is
 * refused because events exist that count guests; @v is then unusable.
 */
int vpmu_vcpu_init(struct vpmu_vcpu *v, struct vpmu_perf_system *sys,
		   enum vpmu_policy policy);

/**
 * Tear down a vCPU whose events have all been released, and which is on no CPU.
 */
void vpmu_vcpu_fini(struct vpmu_vcpu *v);

/** The vCPU's thread is scheduled in on @cpu, and out. */
void vpmu_vcpu_load(struct vpmu_vcpu *v, struct vpmu_perf_cpu *cpu);
void vpmu_vcpu_put(struct vpmu_vcpu *v);

/** The vCPU, which is loaded, enters and leaves guest mode. */
void vpmu_vcpu_enter(struct vpmu_vcpu *v);
void vpmu_vcpu_exit(struct vpmu_vcpu *v);

#endif /* VPMU_VCPU_H */
