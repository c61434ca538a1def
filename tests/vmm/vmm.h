/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A VMM for tests of vpmu_kvm.ko. It keeps the guest's program on its own side: a guest
 * does one thing (a hypercall, a loop, a halt, a guest of its own) for each vmm_run(), in
 * long mode and ring 0, and comes back. What goes wrong in the VMM itself ends the process
 * by vmm_die(); what KVM or the module answers is returned.
 */
#ifndef VMM_H
#define VMM_H

#include <linux/kvm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <vpmu/pv_abi.h>

#define VMM_BYTES	(8u << 20) /* size of guest memory, which begins at address 0 */
#define VMM_SPARE	(4u << 20) /* nothing is in the guest's memory from here on */
#define VMM_CODE	0x8000u    /* guest_code's place */
#define VMM_SMM_TURNS	0x7000
#define VMM_SMM_COUNT	0x7004
#define VMM_RING	4096u      /* bytes of a dirty ring: 256 entries */

struct vmm;

struct vmm_vcpu {
	struct vmm *vm;
	unsigned int number;
	int fd;
	struct kvm_run *run;
	struct kvm_dirty_gfn *ring;
	unsigned int reaped;         /* entries of the ring that have been taken */
	volatile bool stop;          /* vmm_run() comes back at the next signal */
};

struct vmm {
	int fd;
	unsigned int n_vcpus;
	uint8_t *mem;
	uint8_t logged[VMM_BYTES / 4096]; /* pages that a ring or a bitmap has named */
	struct vmm_vcpu vcpu[];
};

/* Offsets in a vCPU's own area. */
enum {
	VMM_PAGE = 0x0000,  /* page of slots */
	VMM_BATCH = 0x1000,
	VMM_SETUP = 0x2000,
	VMM_VMCB = 0x3000,
	VMM_HSAVE = 0x4000,
	VMM_STACK = 0x6000, /* its end */
	VMM_GS = 0x6000,
};
uint64_t vmm_area(const struct vmm_vcpu *v);

#define VMM_DIRTY_LOG	1u /* the memory's slot is logged */
#define VMM_DIRTY_RING	2u /* by rings */
#define VMM_NO_PMU	4u /* KVM_PMU_CAP_DISABLE */
#define VMM_FOREIGN	8u /* CPUs of a vendor that the host's is not of */

extern bool vmm_quiet;       /* errors are expected, and are not printed */
__attribute__((format(printf, 1, 2), noreturn)) void vmm_die(const char *form, ...);

struct vmm *vmm_new(unsigned int n_vcpus, unsigned int flags);
void vmm_free(struct vmm *vm);
/* KVM_SET_USER_MEMORY_REGION; with 0 bytes the memory goes. 0, or an errno. */
int vmm_memory(struct vmm *vm, uint32_t flags, uint64_t bytes);

/*
 * Enters the guest at @entry with RAX, RBX, RCX, RDX and RDI, until it is done. 0, or an
 * errno: EINTR when @stop is set, EAGAIN when the vCPU waits for a start, EIO for all that
 * the guest should not have come to.
 */
int vmm_run(struct vmm_vcpu *v, const char *entry, uint64_t rax, uint64_t rbx, uint64_t rcx,
	    uint64_t rdx, uint64_t rdi);
int vmm_resume(struct vmm_vcpu *v);
void vmm_long_mode(struct vmm_vcpu *v);

int64_t vmm_call(struct vmm_vcpu *v, uint32_t op, uint64_t arg);
int vmm_loop(struct vmm_vcpu *v, uint64_t turns);
int vmm_store(struct vmm_vcpu *v, uint64_t at, uint64_t pages);
/* A guest's guest by SVM, which a guest on VMX does not have */
bool vmm_has_svm(void);
int vmm_nested(struct vmm_vcpu *v, bool paging, uint64_t turns);

/* Writes @n operations into the batch's page, calls, and copies the results back. */
int64_t vmm_batch(struct vmm_vcpu *v, struct vpmu_pv_op *op, unsigned int n);
int64_t vmm_setup(struct vmm_vcpu *v);

/* One operation, or the same of events @id, @id + 1, ... in slots 0, 1, ...; the first
   result that is not 0. */
int64_t vmm_open(struct vmm_vcpu *v, uint32_t id, unsigned int n, uint64_t config);
int64_t vmm_enable(struct vmm_vcpu *v, uint32_t id, unsigned int n, uint64_t period);
int64_t vmm_op(struct vmm_vcpu *v, uint16_t code, uint32_t id, unsigned int n);

volatile struct vpmu_pv_slot *vmm_slot(struct vmm_vcpu *v, unsigned int slot);
uint64_t vmm_nmis(struct vmm_vcpu *v);

/* Takes what the ring has; pages go into vm->logged. The number of entries. */
unsigned int vmm_reap(struct vmm_vcpu *v);
void vmm_reset_rings(struct vmm *vm);
void vmm_dirty_log(struct vmm *vm);

/* KVM_SET_PMU_EVENT_FILTER with @n raw encodings. */
int vmm_filter(struct vmm *vm, uint32_t action, unsigned int n, const uint64_t *event);
int vmm_smi(struct vmm_vcpu *v);
void vmm_leave_smm(struct vmm_vcpu *v); /* if it is in SMM */
int vmm_msi(struct vmm *vm, unsigned int vcpu, uint32_t data);
#define VMM_MSI_INIT	0x500u
#define VMM_MSI_NMI	0x400u

int vmm_save(struct vmm *vm, void *data, size_t *bytes); /* or an errno */
int vmm_load(struct vmm *vm, const void *data, size_t bytes);
int vmm_decide(struct vmm *vm, unsigned long what); /* VPMU_KVM_ALLOW, VPMU_KVM_REFUSE */

struct vpmu_kvm_arch;
int vmm_arch(struct vmm *vm, struct vpmu_kvm_arch *a); /* VPMU_KVM_ARCH; 0, or an errno */
struct vpmu_kvm_lend;
int vmm_lend(struct vmm *vm, struct vpmu_kvm_lend *l); /* VPMU_KVM_LEND; likewise */

/* By an instruction of the guest: 0, or EIO for a fault. */
int vmm_wrmsr(struct vmm_vcpu *v, uint32_t msr, uint64_t value);
int vmm_rdmsr(struct vmm_vcpu *v, uint32_t msr, uint64_t *value);
int vmm_rdpmc(struct vmm_vcpu *v, uint32_t index, uint64_t *value);
int vmm_cpuid(struct vmm_vcpu *v, uint32_t leaf, uint32_t regs[4]);

/* By the VMM: 0, or EIO. */
int vmm_set_msr(struct vmm_vcpu *v, uint32_t msr, uint64_t value);
int vmm_get_msr(struct vmm_vcpu *v, uint32_t msr, uint64_t *value);

extern const char guest_code[], guest_code_end[], guest_call[], guest_loop[], guest_store[],
	guest_halt[], guest_nested[], guest_real[], guest_paged[], guest_nmi[], guest_fault[],
	guest_smm[], guest_smm_end[], guest_wrmsr[], guest_rdmsr[], guest_rdpmc[], guest_cpuid[];

#endif
