/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The paravirtual PMU for a virtual machine monitor on Linux' KVM. It needs no module on
 * the host and no patch. The guest rings the doorbell (docs/PV-ABI.md), which KVM hands
 * to the VMM; events are perf_event_open(2)'s on the vCPU's thread, counted while it
 * executes the guest; overflows come back as NMIs. docs/VMM.md explains it with a short
 * example, examples/kvm-doorbell.c is a whole VMM.
 *
 * A VMM adds five calls:
 *
 *	vpmu_kvm_vm_new()       after KVM_CREATE_VM
 *	vpmu_kvm_vcpu_new()     on each vCPU's thread, after KVM_CREATE_VCPU
 *	vpmu_kvm_cpuid()        before KVM_SET_CPUID2
 *	vpmu_kvm_enter()        before each KVM_RUN
 *	vpmu_kvm_msr()          when KVM_RUN returns with KVM_EXIT_X86_RDMSR or _WRMSR
 *
 * All functions of a vCPU are called on its thread, or while that thread does not run.
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
	int vm_fd;                  /* file of KVM_CREATE_VM */
	uint32_t n_vcpus;           /* upper bound of vCPUs; their numbers are below it */
	/*
	 * Memory that the guest may name; unchanged as long as the VM lives. NULL: use
	 * ops.
	 */
	const struct vpmu_kvm_ram *ram;
	size_t n_ram;
	/*
	 * If ram is NULL: gpa_read, gpa_write, gpa_map, gpa_unmap and, if pages are
	 * tracked, gpa_dirty.
	 */
	const struct vpmu_ops *ops;
	void *ctx;                  /* context of ops */
	/*
	 * Base of the guest's leaves; 0: 40000100H. Another one avoids leaves of the
	 * VMM's own.
	 */
	uint32_t cpuid_base;
	/*
	 * The VMM has its own MSR filter and routes VPMU_PV_MSR_DOORBELL to
	 * vpmu_kvm_msr().
	 */
	bool no_filter;
	/*
	 * Signal that ends KVM_RUN on the thread that receives it, even right before the
	 * call: its handler sets the vCPU's kvm_run.immediate_exit. 0: SIGRTMIN + 7, with
	 * the library's handler. Set it if the VMM uses that number.
	 */
	int signal;
	/* Limits on what is counted; 0 or NULL selects the default */
	/*
	 * CPU whose events the guest is offered; the host's. Set it to offer the same on
	 * unlike hosts
	 */
	const struct vpmu_model *model;
	/*
	 * Maps its selectors to the host's events, where the host is another CPU than the
	 * model.
	 */
	const struct vpmu_linux_map *map;
	size_t n_map;
	const struct vpmu_filter *filter; /* as in vpmu_pv_config, like the next two */
	uint32_t n_events, n_slots;
	/*
	 * Overflows of an event in 10 ms before it is throttled; 250. Lower it to bound
	 * the exits.
	 */
	uint32_t overflows_max;
	/*
	 * Shortest period; 1000. Each overflow costs an exit, and a guest that asks for
	 * period 1 would do nothing else.
	 */
	uint64_t period_min;
};

#define VPMU_KVM_WHY 256 /* size of a buffer that has room for any reason */

/**
 * Create a VM. This asks KVM to exit for the doorbell's MSR and opens a trial event on
 * the host, so that an unsupported host is reported at once.
 *
 * @why: on failure the cause, the requirement and the cure; VPMU_KVM_WHY bytes
 *
 * Returns 0 or a negative errno.
 */
int vpmu_kvm_vm_new(const struct vpmu_kvm_config *cfg, struct vpmu_kvm_vm **vm, char *why);

/** Free a VM whose vCPUs have all been freed. */
void vpmu_kvm_vm_free(struct vpmu_kvm_vm *vm);

/** Reset the machine, while no vCPU runs: events are closed, pages forgotten. */
void vpmu_kvm_vm_reset(struct vpmu_kvm_vm *vm);

/**
 * Create vCPU number @number, whose KVM_RUN is called on this thread. @run: its shared
 * page.
 *
 * Returns 0 or a negative errno; -EINVAL for a number that is out of range or in use.
 */
int vpmu_kvm_vcpu_new(struct vpmu_kvm_vm *vm, uint32_t number, int vcpu_fd, struct kvm_run *run,
		      struct vpmu_kvm_vcpu **vcpu);

/** Free a vCPU, while no other vCPU of the VM runs: on its own thread, or after that has ended. */
void vpmu_kvm_vcpu_free(struct vpmu_kvm_vcpu *vcpu);

/** RESET or INIT of a vCPU: its page is forgotten and its events are disabled. */
void vpmu_kvm_vcpu_reset(struct vpmu_kvm_vcpu *vcpu);

/**
 * Add the guest's leaves to those for KVM_SET_CPUID2, and set the hypervisor bit of leaf
 * 1. A guest does not find the PMU without them.
 *
 * @capacity: entries that @cpuid has room for; at least four more than it has
 *
 * Returns 0, or -E2BIG, and then nothing has changed.
 */
int vpmu_kvm_cpuid(struct vpmu_kvm_vcpu *vcpu, struct kvm_cpuid2 *cpuid, uint32_t capacity);

/**
 * Call this before each KVM_RUN: it delivers overflows to the guest. It costs few
 * instructions while no event is enabled.
 */
void vpmu_kvm_enter(struct vpmu_kvm_vcpu *vcpu);

/**
 * Call this when KVM_RUN returns with an MSR access. Returns true for the doorbell, which
 * is then done, and kvm_run.msr.error is set; false if the access is the VMM's own.
 */
bool vpmu_kvm_msr(struct vpmu_kvm_vcpu *vcpu);

/**
 * Ring the doorbell, in a VMM that has unpacked the exit itself: VPMU_FAULT is #GP for
 * the guest.
 */
enum vpmu_result vpmu_kvm_doorbell(struct vpmu_kvm_vcpu *vcpu, uint64_t value);

/**
 * Load the state that vpmu_pv_vm_save() of vpmu_kvm_pv_vm() wrote, on this or another
 * host: after guest memory, when all vCPUs exist, before one runs. From any thread.
 *
 * @buf, @size: the state, and its size in bytes
 * @why: on failure the part that does not fit; VPMU_KVM_WHY bytes
 *
 * Returns like vpmu_pv_vm_load(), which says what has been loaded on failure.
 */
int vpmu_kvm_vm_load(struct vpmu_kvm_vm *vm, const void *buf, size_t size, char *why);

/** The VM, for vpmu_pv_vm_save() while no vCPU runs, and for vpmu_pv_event_info(). */
struct vpmu_pv_vm *vpmu_kvm_pv_vm(struct vpmu_kvm_vm *vm);
struct vpmu_pv *vpmu_kvm_pv(struct vpmu_kvm_vcpu *vcpu);

/** Statistics of a vCPU; from any thread, perhaps a little old. */
struct vpmu_kvm_stats {
	uint64_t doorbells; /* exits for doorbells */
	uint64_t nmis;
	uint64_t services;  /* entries that delivered something */
};
void vpmu_kvm_stats(const struct vpmu_kvm_vcpu *vcpu, struct vpmu_kvm_stats *stats);

/*
 * Topdown metrics of the architectural PMU that vpmu_kvm.ko serves, for VMMs that ask for it
 * by VPMU_KVM_ARCH; they need none of the functions above.
 */

/** Can this host's perf count the topdown classes of guests, for this user? */
bool vpmu_kvm_topdown(void);

/**
 * Lend a vCPU what counts its slots and topdown classes in all rings, and in each alone:
 * after VPMU_KVM_ARCH with n_fixed of 4 and KVM_CREATE_VCPU, before the first KVM_RUN.
 *
 * @device: the open file of VPMU_KVM_DEVICE
 * @vm: that of KVM_CREATE_VM
 * @vcpu: the id that KVM_CREATE_VCPU was given
 * @thread: the thread that runs the vCPU; 0: this one
 * @why: on failure the module's reason, or empty; VPMU_KVM_WHY bytes
 *
 * Returns 0, or the negative errno of VPMU_KVM_LEND; then the guest of this vCPU has three
 * fixed counters, or is told a loss where it counts one ring alone.
 */
int vpmu_kvm_lend(int device, int vm, uint32_t vcpu, pid_t thread, char *why);

#endif /* VPMU_KVM_H */
