/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The host side of the paravirtual PMU (pv_abi.h, docs/PV-ABI.md): events that a
 * guest opens by hypercall and that the vCPUs' providers count.
 *
 * One vpmu_pv_vm per VM holds the events by id; one vpmu_pv per vCPU holds those
 * that are enabled there, in slots. Everything that a guest can make grow is in the
 * memory that the configuration asked for.
 *
 * Contexts: hypercalls and service on the vCPU's own CPU; they may block where a
 * provider may (create, release). vCPUs of one VM may call at the same time: what
 * they share is taken under ops->lock. The first half of an overflow is as
 * provider.h says.
 */
#ifndef VPMU_PV_H
#define VPMU_PV_H

#include <vpmu/filter.h>
#include <vpmu/ops.h>
#include <vpmu/provider.h>
#include <vpmu/pv_abi.h>
#include <vpmu/result.h>

struct vpmu_pv_vm;
struct vpmu_pv;

#define VPMU_PV_ABI_1 1u /* the interface of 2010; its feature bit is ASYNC_PF today */
#define VPMU_PV_ABI_2 2u

struct vpmu_pv_config {
	uint32_t size;              /* sizeof(struct vpmu_pv_config) */
	const struct vpmu_model *model; /* generic events are those of this model */
	uint32_t abi;               /* VPMU_PV_ABI_1, VPMU_PV_ABI_2, or both */
	uint32_t n_vcpus;           /* most there will be; numbers are below it */
	uint32_t n_events;          /* open at once in the VM; 0: 512 */
	uint32_t n_slots;           /* enabled at once on a vCPU, at most
				       VPMU_PV_SLOTS; 0: VPMU_PV_SLOTS */
	uint64_t period_min;        /* shorter periods are lengthened to it; 0: 1 */
	uint32_t overflows_max;     /* interrupts of an event in a slice before it is
				       throttled; 0: 1000 */
	const struct vpmu_filter *filter; /* see vpmu_arch_filter(); NULL: none */
};

/** Bytes of a VM's part and of a vCPU's part (multiples of 8). Pure.
 * Returns 0, -VPMU_EINVAL, or -VPMU_EOPNOTSUPP, with @err filled. */
int vpmu_pv_size(const struct vpmu_pv_config *cfg, const struct vpmu_provider_ops *provider,
		 size_t *vm_bytes, size_t *vcpu_bytes, struct vpmu_error *err);

/** Set up a VM in memory of that size. Returns like vpmu_pv_size(). */
int vpmu_pv_vm_init(struct vpmu_pv_vm *vm, const struct vpmu_pv_config *cfg,
		    const struct vpmu_provider_ops *provider, struct vpmu_error *err);

/**
 * Set up vCPU number @number. @ops: kick, interrupt, gpa_read, gpa_write, gpa_map and
 * gpa_unmap (lock and unlock where vCPUs run at the same time); @ctx: for hooks.
 * Returns 0 or -VPMU_EINVAL.
 */
int vpmu_pv_init(struct vpmu_pv *v, struct vpmu_pv_vm *vm, uint32_t number,
		 struct vpmu_provider *provider, const struct vpmu_ops *ops, void *ctx);

struct vpmu_hypercall {
	uint64_t nr, arg[4];  /* RAX; RBX, RCX, RDX, RSI */
	int64_t result;       /* for RAX, when handled */
	bool long_mode;       /* 64-bit mode: else 32 bits of each count */
	uint8_t cpl;
};

/**
 * A guest's hypercall. Returns VPMU_HANDLED with @call->result, or VPMU_NOT_MINE
 * for numbers that are not offered. Never VPMU_FAULT.
 */
enum vpmu_result vpmu_pv_hypercall(struct vpmu_pv *v, struct vpmu_hypercall *call);

/** Leaves of pv (loss.h, pv_abi.h), as vpmu_arch_cpuid(). Pure. */
bool vpmu_pv_cpuid(const struct vpmu_pv_vm *vm, uint32_t base, uint32_t leaf,
		   uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx);

/**
 * Second half after ops->kick: counts, overflows and losses into guest memory, NMI
 * or vector; releases what was closed from elsewhere.
 */
void vpmu_pv_service(struct vpmu_pv *v);

/** As vpmu_arch_slice(): ends throttling, gives idle events back. */
bool vpmu_pv_slice(struct vpmu_pv *v);

/** RESET of the vCPU (its page is forgotten, its events end), or of the VM. */
void vpmu_pv_reset(struct vpmu_pv *v);
void vpmu_pv_vm_reset(struct vpmu_pv_vm *vm);

/** Save and load, as vpmu_arch_save(); all vCPUs are stopped. */
int vpmu_pv_vm_save(struct vpmu_pv_vm *vm, void *buf, size_t size, size_t *used);
int vpmu_pv_vm_load(struct vpmu_pv_vm *vm, const void *buf, size_t size);

#endif /* VPMU_PV_H */
