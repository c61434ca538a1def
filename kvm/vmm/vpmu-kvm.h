/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The paravirtual PMU for a virtual machine monitor on Linux' KVM: no module on the
 * host, no patch. The guest rings the doorbell (docs/PV-ABI.md), which KVM hands to
 * the VMM; events are perf_event_open(2)'s on the vCPU's thread, counted while it
 * executes the guest; overflows come back as NMIs. docs/VMM.md has a screenful of it,
 * examples/kvm-doorbell.c a whole VMM.
 *
 * A VMM does five things more than before:
 *
 *	vpmu_kvm_vm_new()       after KVM_CREATE_VM
 *	vpmu_kvm_vcpu_new()     on each vCPU's thread, after KVM_CREATE_VCPU
 *	vpmu_kvm_cpuid()        before KVM_SET_CPUID2
 *	vpmu_kvm_enter()        before each KVM_RUN
 *	vpmu_kvm_msr()          when KVM_RUN returns with KVM_EXIT_X86_RDMSR or _WRMSR
 *
 * All of a vCPU's functions are called on its thread, or while that does not run.
 * vCPUs may run at the same time.
 */
#ifndef VPMU_KVM_H
#define VPMU_KVM_H

#include <linux/kvm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vpmu/pv.h>

#include "perf_event.h"

struct vpmu_kvm_vm;
struct vpmu_kvm_vcpu;

/* Guest memory that is there as long as the VM. */
struct vpmu_kvm_ram {
	uint64_t gpa, size;  /* bytes */
	void *at;
	bool readonly;
};

struct vpmu_kvm_config {
	uint32_t size;              /* sizeof(struct vpmu_kvm_config) */
	int vm_fd;                  /* of KVM_CREATE_VM */
	uint32_t n_vcpus;           /* most there will be; numbers are below it */
	const struct vpmu_kvm_ram *ram; /* what the guest may name; unchanged as long as
				       the VM lives. NULL: ops has it */
	size_t n_ram;
	const struct vpmu_ops *ops; /* where ram is NULL: gpa_read, gpa_write, gpa_map,
				       gpa_unmap and, if it is needed, gpa_dirty */
	void *ctx;                  /* for them */
	uint32_t cpuid_base;        /* of the guest's leaves; 0: 40000100H */
	bool no_filter;             /* the VMM sees to it that accesses to
				       VPMU_PV_MSR_DOORBELL come to vpmu_kvm_msr() */
	int signal;                 /* ends KVM_RUN on the thread that gets it, also when
				       it comes right before: the handler sets the
				       vCPU's kvm_run.immediate_exit. 0: SIGRTMIN + 7,
				       and a handler of the library's own */
	/* What may be counted: 0 or NULL for the defaults */
	const struct vpmu_model *model; /* whose events the guest is told of; the host's */
	const struct vpmu_linux_map *map; /* of its selectors onto the host's events,
				       instead of the host's PMU itself */
	size_t n_map;
	const struct vpmu_filter *filter; /* as in vpmu_pv_config, as the next */
	uint32_t n_events, n_slots;
	uint32_t overflows_max;     /* of an event in 10 ms; 250 */
	uint64_t period_min;        /* 1000: each overflow costs an exit, and a guest that asks
				       for period 1 would do nothing else */
};

#define VPMU_KVM_WHY 256 /* bytes that any reason has room in */

/**
 * A VM. Asks KVM for the exits of the doorbell's MSR and the host's kernel for an
 * event: so it says at once what will not work.
 *
 * @why: on failure what was found, what is needed, and the cure; VPMU_KVM_WHY bytes
 *
 * Returns 0 or a negative errno.
 */
int vpmu_kvm_vm_new(const struct vpmu_kvm_config *cfg, struct vpmu_kvm_vm **vm, char *why);

/** The end of a VM whose vCPUs have all been freed. */
void vpmu_kvm_vm_free(struct vpmu_kvm_vm *vm);

/** A reset of the machine, while no vCPU runs: events are closed, pages forgotten. */
void vpmu_kvm_vm_reset(struct vpmu_kvm_vm *vm);

/**
 * vCPU number @number, whose KVM_RUN is called on this thread. @run: its shared page.
 *
 * Returns 0 or a negative errno; -EINVAL for a number that is out of range or in use.
 */
int vpmu_kvm_vcpu_new(struct vpmu_kvm_vm *vm, uint32_t number, int vcpu_fd, struct kvm_run *run,
		      struct vpmu_kvm_vcpu **vcpu);

/** A vCPU goes, while no other one of the VM runs. */
void vpmu_kvm_vcpu_free(struct vpmu_kvm_vcpu *vcpu);

/** RESET or INIT of a vCPU: its page is forgotten and its events are disabled. */
void vpmu_kvm_vcpu_reset(struct vpmu_kvm_vcpu *vcpu);

/**
 * Add the guest's leaves to what KVM_SET_CPUID2 will get, and set the hypervisor's
 * bit of leaf 1. A guest finds nothing of the rest without them.
 *
 * @capacity: entries that @cpuid has room for; four more than it has, at least
 *
 * Returns 0, or -E2BIG, and then nothing has changed.
 */
int vpmu_kvm_cpuid(struct vpmu_kvm_vcpu *vcpu, struct kvm_cpuid2 *cpuid, uint32_t capacity);

/**
 * Before each KVM_RUN: what has overflowed goes to the guest. Few instructions where
 * nothing is enabled.
 */
void vpmu_kvm_enter(struct vpmu_kvm_vcpu *vcpu);

/**
 * KVM_RUN has returned with an MSR access. True when it was the doorbell: it is done,
 * and kvm_run.msr.error is set. False: it is the VMM's.
 */
bool vpmu_kvm_msr(struct vpmu_kvm_vcpu *vcpu);

/** The same, where the VMM has unpacked it: VPMU_FAULT is #GP for the guest. */
enum vpmu_result vpmu_kvm_doorbell(struct vpmu_kvm_vcpu *vcpu, uint64_t value);

/**
 * Load what vpmu_pv_vm_save() of vpmu_kvm_pv_vm() wrote, here or on another host: after guest
 * memory, when all vCPUs are there, before one runs. From any thread.
 *
 * @buf, @size: it, and how many bytes it has
 * @why: on failure what does not fit; VPMU_KVM_WHY bytes
 *
 * Returns 0, or what vpmu_pv_vm_load() does, which says what is left then.
 */
int vpmu_kvm_vm_load(struct vpmu_kvm_vm *vm, const void *buf, size_t size, char *why);

/** For vpmu_pv_vm_save(), while nothing runs, and vpmu_pv_event_info(). */
struct vpmu_pv_vm *vpmu_kvm_pv_vm(struct vpmu_kvm_vm *vm);
struct vpmu_pv *vpmu_kvm_pv(struct vpmu_kvm_vcpu *vcpu);

/** What has happened on a vCPU; from any thread, a little old. */
struct vpmu_kvm_stats {
	uint64_t doorbells; /* exits for them */
	uint64_t nmis;
	uint64_t services;  /* entries that had something to do */
};
void vpmu_kvm_stats(const struct vpmu_kvm_vcpu *vcpu, struct vpmu_kvm_stats *stats);

#endif /* VPMU_KVM_H */
