/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The host side of the paravirtual PMU (pv_abi.h, docs/PV-ABI.md): events that
 * a guest opens by hypercall and that the vCPUs' providers count.
 *
 * One vpmu_pv_vm per VM holds the events by id; one vpmu_pv per vCPU holds
 * those that are enabled there, in slots. Everything that a guest can make grow
 * is in the memory that the configuration asked for.
 *
 * Contexts: hypercalls, service and slice on the vCPU's own CPU; they may block
 * where a provider may (create, release), and where gpa_read, gpa_write,
 * gpa_map and gpa_unmap do. vCPUs of one VM may call at the same time: shared
 * state, including guest memory that stays mapped, is accessed under ops->lock,
 * and calls that may block are made without it. The first half of an overflow
 * is as in provider.h; it ends in ops->kick, after which both
 * vpmu_arch_service(), if there is one, and vpmu_pv_service() are due.
 *
 * A vCPU may unmap what another vCPU has mapped: hooks for guest memory behave
 * the same for the ctx of any vCPU of the VM.
 */
#ifndef VPMU_PV_H
#define VPMU_PV_H

#include <vpmu/arch.h>
#include <vpmu/pv_abi.h>

struct vpmu_pv_vm;
struct vpmu_pv;

#define VPMU_PV_ABI_1 1u /* the interface of 2010; its feature bit is ASYNC_PF today */
#define VPMU_PV_ABI_2 2u

struct vpmu_pv_config {
	uint32_t size;              /* sizeof(struct vpmu_pv_config) */
	const struct vpmu_model *model; /* model whose events the generic ones are */
	/*
	 * VPMU_PV_ABI_1, VPMU_PV_ABI_2, or both. Offer version 1 only to guests
	 * that need it.
	 */
	uint32_t abi;
	/*
	 * Upper bound of vCPUs, 1 .. 65535; their numbers are below it. It
	 * sizes the VM's part.
	 */
	uint32_t n_vcpus;
	/*
	 * Events open at once in the VM, at most VPMU_PV_EVENTS_MAX; 0: 512. It
	 * bounds the memory that a guest can occupy.
	 */
	uint32_t n_events;
	/*
	 * Events enabled at once on a vCPU, at most VPMU_PV_SLOTS; 0:
	 * VPMU_PV_SLOTS. It bounds the host's events per vCPU.
	 */
	uint32_t n_slots;
	/*
	 * VPMU_PV_HAS_..., the features that the embedder supports: GROUPS if
	 * the provider honours leaders, VECTOR if ops->inject delivers
	 * vectors, DOORBELL if vpmu_pv_doorbell() is called, NESTED if the
	 * engine distinguishes nested guests, BRANCHES if ops->set_lbr exists
	 * and the provider arbitrates the branch records, TOPDOWN if the
	 * provider counts modelled events; guests have it if the CPU model has
	 * an event for each class.
	 */
	uint32_t features;
	/*
	 * Overflows of an event in a slice before it is throttled; 0: 1000. It
	 * bounds the time that the host spends on a guest's interrupts.
	 */
	uint32_t overflows_max;
	/*
	 * Minimum period: shorter ones are lengthened to it; 0: 1. Raise it
	 * where an overflow is expensive.
	 */
	uint64_t period_min;
	/*
	 * Events that a guest may count; owned by the caller as long as the VM
	 * lives; NULL: all. It may change under ops->lock, with its events: see
	 * vpmu_pv_refilter(). An event that it denies cannot be opened.
	 */
	const struct vpmu_filter *filter;
	/*
	 * No vpmu_arch uses the vCPUs' providers too, so their state is saved
	 * and loaded here.
	 */
	bool alone;
	/*
	 * Version 2 has only the doorbell; for a VMM that does not see
	 * hypercalls.
	 */
	bool no_hypercall;
};
#define VPMU_PV_EVENTS_MAX 8192u

/**
 * Bytes of a VM's part and of a vCPU's part (multiples of 8; memory aligned to
 * 8), or the reason why the configuration is refused.
 *
 * @provider: of every vCPU; only its event_size matters here
 * @err:      filled on failure
 *
 * Pure. Returns 0, or -VPMU_EINVAL.
 */
int vpmu_pv_size(const struct vpmu_pv_config *cfg, const struct vpmu_provider_ops *provider,
		 size_t *vm_bytes, size_t *vcpu_bytes, struct vpmu_error *err);

/** Set up a VM in memory of that size. Returns and fails like vpmu_pv_size(). */
int vpmu_pv_vm_init(struct vpmu_pv_vm *vm, const struct vpmu_pv_config *cfg,
		    const struct vpmu_provider_ops *provider, struct vpmu_error *err);

/**
 * Set up vCPU number @number, in memory of vpmu_pv_size(), aligned to 8.
 *
 * @provider: of the ops and the model that the VM was set up with
 * @ops:      kick, interrupt, gpa_read, gpa_write, gpa_map and gpa_unmap (lock
 *            and unlock if vCPUs run at the same time; branches for branch
 *            records)
 * @ctx:      for hooks
 *
 * Other vCPUs of the VM may be in calls meanwhile if ops->lock is given, but
 * none is reset, saved or loaded. Takes the lock. Returns 0; -VPMU_EINVAL for a
 * missing hook, another provider, or a number that is out of range or in use.
 */
int vpmu_pv_init(struct vpmu_pv *v, struct vpmu_pv_vm *vm, uint32_t number,
		 struct vpmu_provider *provider, const struct vpmu_ops *ops, void *ctx);

/**
 * The host stops serving a guest that continues to run: all events that are
 * enabled on the vCPU stop, and their numbers are written a last time; version
 * 2 reports LOST, as no counter counts them. The guest is not interrupted. Call
 * it while no vCPU of the VM calls; then vpmu_pv_vm_reset().
 */
void vpmu_pv_withdraw(struct vpmu_pv *v);

/**
 * Remove a vCPU for good, while no other one runs: like vpmu_pv_reset(), and
 * its number is free again.
 */
void vpmu_pv_fini(struct vpmu_pv *v);

struct vpmu_hypercall {
	uint64_t nr, arg[4];  /* RAX; RBX, RCX, RDX, RSI */
	int64_t result;       /* for RAX, when handled */
	bool long_mode;       /* 64-bit mode: else 32 bits of each count */
	uint8_t cpl;
};

/**
 * A guest's hypercall, whose instruction has not retired yet: the event that an
 * ENABLE enables counts it, the one that a DISABLE disables does not.
 *
 * Bounded work: at most VPMU_PV_BATCH_MAX operations. May call every hook but
 * pmi. Returns VPMU_HANDLED with @call->result, or VPMU_NOT_MINE for numbers
 * that are not offered. Never VPMU_FAULT.
 */
enum vpmu_result vpmu_pv_hypercall(struct vpmu_pv *v, struct vpmu_hypercall *call);

/**
 * A guest's WRMSR of @value to VPMU_PV_MSR_DOORBELL, from ring 0, not retired
 * yet: version 2's hypercall with its registers in guest memory.
 *
 * Hooks and bounds are those of vpmu_pv_hypercall(). Returns VPMU_HANDLED;
 * VPMU_NOT_MINE if it is not offered; VPMU_FAULT for an address that is
 * misaligned or not writable RAM: then nothing has been done.
 */
enum vpmu_result vpmu_pv_doorbell(struct vpmu_pv *v, uint64_t value);

/**
 * Fill in the leaves of pv (loss.h, pv_abi.h) at @base. Call it with the @regs
 * that vpmu_arch_cpuid() has filled, or zeros: the loss block's part stays as
 * it is. Nothing changes if version 2 is not offered. Pure. Returns true if the
 * leaf is one of the block's.
 */
bool vpmu_pv_cpuid(const struct vpmu_pv *v, uint32_t base, uint32_t leaf,
		   struct vpmu_cpuid *regs);

/**
 * Second half after ops->kick: writes counts, overflows and losses to guest
 * memory, and injects the NMI or vector; releases events that were closed from
 * elsewhere.
 */
void vpmu_pv_service(struct vpmu_pv *v);

/**
 * A slice of time has passed: ends throttling, and gives back events that have
 * been disabled for a whole slice. Call it on the vCPU about every
 * VPMU_SLICE_CYCLES while it returns true; after it has returned false, from
 * the next hypercall on.
 */
bool vpmu_pv_slice(struct vpmu_pv *v);

/**
 * Apply the VM's filter, which has changed, to the vCPU's events: enabled
 * events that the filter now denies stop and are lost (VPMU_LOSS_FILTERED). An
 * event that the filter allows again counts from its next ENABLE on.
 *
 * On the vCPU, for each vCPU of the VM; OPEN and ENABLE apply the new filter at
 * once. May call every hook but pmi.
 */
void vpmu_pv_refilter(struct vpmu_pv *v);

/**
 * RESET or INIT of the vCPU, or RESET of the VM (all vCPUs are stopped). A
 * vCPU's page is forgotten and its events are disabled, as if the guest did so;
 * a VM's are closed.
 */
void vpmu_pv_reset(struct vpmu_pv *v);
void vpmu_pv_vm_reset(struct vpmu_pv_vm *vm);

/** An open event, for queries by the host. */
struct vpmu_pv_info {
	uint32_t id;          /* id that the guest chose */
	uint8_t abi;          /* VPMU_PV_ABI_... */
	uint8_t loss;         /* enum vpmu_loss, while it is enabled */
	bool throttled;
	int32_t vcpu;         /* vCPU on which it is enabled, or -1 */
	uint32_t type;        /* VPMU_PV_TYPE_... */
	uint64_t config;
	uint64_t count;       /* count that the guest was told last; likewise the next ones */
	uint64_t time_enabled, time_running;
	uint32_t overflows;
};

/**
 * Event number @i, below the limit; returns false if it is not open. From any
 * thread that may take the lock (by @v's hooks).
 */
bool vpmu_pv_event_info(struct vpmu_pv *v, uint32_t i, struct vpmu_pv_info *info);

/**
 * Number @i of the selectors that were refused because they cannot be counted,
 * or that lost their counter while a version 1 event was enabled, which cannot
 * report it. See vpmu_arch_uncounted().
 */
bool vpmu_pv_uncounted(struct vpmu_pv *v, size_t i, struct vpmu_uncounted *row);

/**
 * Save everything that the guest can see and everything needed to continue, of
 * the VM and its vCPUs, which are stopped. See vpmu_arch_save().
 */
int vpmu_pv_vm_save(struct vpmu_pv_vm *vm, void *buf, size_t size, size_t *used);

/**
 * Load the state that vpmu_pv_vm_save() wrote, into a VM of the same or a
 * larger configuration whose vCPUs have all been set up and are stopped; after
 * guest memory and, if the vCPUs have one, after vpmu_arch_load(). An event
 * that cannot be created here is lost, and its guest is told.
 *
 * Returns 0; -VPMU_EINVAL for malformed data or values that this configuration
 * does not allow, -VPMU_ENOSYS for a newer version: then nothing has changed;
 * -VPMU_EFAULT for addresses that are not RAM here, or the result of the
 * provider's load: the VM is then as after vpmu_pv_vm_reset().
 */
int vpmu_pv_vm_load(struct vpmu_pv_vm *vm, const void *buf, size_t size);

/**
 * The reason why the last vpmu_pv_vm_load() failed; see vpmu_arch_refused().
 */
const struct vpmu_error *vpmu_pv_vm_refused(const struct vpmu_pv_vm *vm);

#endif /* VPMU_PV_H */
