/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The paravirtual performance monitoring unit under KVM: the functions that
 * KVM's own code calls. All of them do nothing on a vCPU without pmu-pv, but
 * for the first, which also asks vpmu_kvm.ko for the PMU of pmu-arch=on.
 */
#ifndef I386_VPMU_KVM_GLUE_H
#define I386_VPMU_KVM_GLUE_H

#include <linux/kvm.h>
#include "cpu.h"

#define X86_VPMU_KVM_DOORBELL 0x56504d08

/*
 * Before the first vCPU is created: pmu=off with pmu-pv turns KVM's own PMU
 * off, and pmu-arch=on replaces it. Returns false with @errp set.
 */
bool x86_vpmu_kvm_realize(X86CPU *cpu, Error **errp);

/*
 * On the vCPU's thread, before @cpuid is given to KVM: adds the leaves.
 * Returns 1 for the first vCPU that has a PMU (the MSR has to be filtered
 * from then on), 0 for the others, or a negative errno after a message.
 */
int x86_vpmu_kvm_init(X86CPU *cpu, struct kvm_cpuid2 *cpuid,
                      uint32_t capacity);
/*
 * After the vCPU's thread has ended: on its own thread the one that waits for
 * that, a vCPU's too, could not be paused
 */
void x86_vpmu_kvm_destroy(X86CPU *cpu);
void x86_vpmu_kvm_reset(X86CPU *cpu);

/* Call this before KVM_RUN */
void x86_vpmu_kvm_enter(X86CPU *cpu);

/* An access to the filtered MSR; false: #GP */
bool x86_vpmu_kvm_rdmsr(X86CPU *cpu, uint32_t msr, uint64_t *val);
bool x86_vpmu_kvm_wrmsr(X86CPU *cpu, uint32_t msr, uint64_t val);

#endif /* I386_VPMU_KVM_GLUE_H */
