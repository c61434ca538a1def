/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMX under TCG: what its files share.
 *
 *   vmx_msr.c        capabilities; the MSR lists of VM entries and exits
 *   vmx_vmcs.c       VMXON to VMXOFF, the fields of a VMCS, INVEPT and INVVPID
 *   vmx_check.c      the checks of a VM entry
 *   vmx_entry.c      VMLAUNCH and VMRESUME
 *   vmx_exit.c       the way back
 *   vmx_intercept.c  what makes a guest exit
 *   vmx_ept.c.inc    extended page tables, a part of excp_helper.c
 */
#ifndef I386_VMX_INTERNAL_H
#define I386_VMX_INTERNAL_H

#include "cpu.h"
#include "tcg/release.h"
#include "tcg/helper-tcg.h"
#include "tcg/vmx-tcg.h"

/* Encodings of VMCS fields, SDM vol. 3 appendix B, "Field Encoding in VMCS" */
enum {
    VMX_VPID = 0x0000,
    VMX_GUEST_ES_SELECTOR = 0x0800,     /* ES CS SS DS FS GS LDTR TR */
    VMX_HOST_ES_SELECTOR = 0x0c00,      /* ES CS SS DS FS GS TR */

    VMX_IO_BITMAP_A = 0x2000,
    VMX_IO_BITMAP_B = 0x2002,
    VMX_MSR_BITMAP = 0x2004,
    VMX_EXIT_STORE_LIST = 0x2006,
    VMX_EXIT_LOAD_LIST = 0x2008,
    VMX_ENTRY_LOAD_LIST = 0x200a,
    VMX_TSC_OFFSET = 0x2010,
    VMX_EPT_POINTER = 0x201a,
    VMX_GUEST_PHYSICAL_ADDRESS = 0x2400,
    VMX_LINK_POINTER = 0x2800,
    VMX_GUEST_DEBUGCTL = 0x2802,
    VMX_GUEST_PAT = 0x2804,
    VMX_GUEST_EFER = 0x2806,
    VMX_GUEST_PERF_GLOBAL_CTRL = 0x2808,
    VMX_GUEST_PDPTE0 = 0x280a,
    VMX_HOST_PAT = 0x2c00,
    VMX_HOST_EFER = 0x2c02,
    VMX_HOST_PERF_GLOBAL_CTRL = 0x2c04,

    VMX_PIN_CONTROLS = 0x4000,
    VMX_PROC_CONTROLS = 0x4002,
    VMX_EXCEPTION_BITMAP = 0x4004,
    VMX_PF_MASK = 0x4006,
    VMX_PF_MATCH = 0x4008,
    VMX_CR3_TARGET_COUNT = 0x400a,
    VMX_EXIT_CONTROLS = 0x400c,
    VMX_EXIT_STORE_COUNT = 0x400e,
    VMX_EXIT_LOAD_COUNT = 0x4010,
    VMX_ENTRY_CONTROLS = 0x4012,
    VMX_ENTRY_LOAD_COUNT = 0x4014,
    VMX_ENTRY_INFO = 0x4016,
    VMX_ENTRY_ERROR_CODE = 0x4018,
    VMX_ENTRY_LENGTH = 0x401a,
    VMX_PROC2_CONTROLS = 0x401e,
    VMX_INSTRUCTION_ERROR = 0x4400,
    VMX_EXIT_REASON = 0x4402,
    VMX_EXIT_INFO = 0x4404,
    VMX_EXIT_ERROR_CODE = 0x4406,
    VMX_VECTORING_INFO = 0x4408,
    VMX_VECTORING_ERROR_CODE = 0x440a,
    VMX_EXIT_LENGTH = 0x440c,
    VMX_EXIT_INSTRUCTION = 0x440e,
    VMX_GUEST_ES_LIMIT = 0x4800,
    VMX_GUEST_GDTR_LIMIT = 0x4810,
    VMX_GUEST_IDTR_LIMIT = 0x4812,
    VMX_GUEST_ES_RIGHTS = 0x4814,
    VMX_GUEST_INTERRUPTIBILITY = 0x4824,
    VMX_GUEST_ACTIVITY = 0x4826,
    VMX_GUEST_SYSENTER_CS = 0x482a,
    VMX_PREEMPTION_TIMER = 0x482e,
    VMX_HOST_SYSENTER_CS = 0x4c00,

    VMX_CR0_MASK = 0x6000,
    VMX_CR4_MASK = 0x6002,
    VMX_CR0_SHADOW = 0x6004,
    VMX_CR4_SHADOW = 0x6006,
    VMX_CR3_TARGET0 = 0x6008,
    VMX_EXIT_QUALIFICATION = 0x6400,
    VMX_GUEST_LINEAR_ADDRESS = 0x640a,
    VMX_GUEST_CR0 = 0x6800,
    VMX_GUEST_CR3 = 0x6802,
    VMX_GUEST_CR4 = 0x6804,
    VMX_GUEST_ES_BASE = 0x6806,
    VMX_GUEST_GDTR_BASE = 0x6816,
    VMX_GUEST_IDTR_BASE = 0x6818,
    VMX_GUEST_DR7 = 0x681a,
    VMX_GUEST_RSP = 0x681c,
    VMX_GUEST_RIP = 0x681e,
    VMX_GUEST_RFLAGS = 0x6820,
    VMX_GUEST_PENDING_DEBUG = 0x6822,
    VMX_GUEST_SYSENTER_ESP = 0x6824,
    VMX_GUEST_SYSENTER_EIP = 0x6826,
    VMX_HOST_CR0 = 0x6c00,
    VMX_HOST_CR3 = 0x6c02,
    VMX_HOST_CR4 = 0x6c04,
    VMX_HOST_FS_BASE = 0x6c06,
    VMX_HOST_GS_BASE = 0x6c08,
    VMX_HOST_TR_BASE = 0x6c0a,
    VMX_HOST_GDTR_BASE = 0x6c0c,
    VMX_HOST_IDTR_BASE = 0x6c0e,
    VMX_HOST_SYSENTER_ESP = 0x6c10,
    VMX_HOST_SYSENTER_EIP = 0x6c12,
    VMX_HOST_RSP = 0x6c14,
    VMX_HOST_RIP = 0x6c16,
};

/* LDTR and TR come after QEMU's six segment registers */
enum { VMX_LDTR = 6, VMX_TR = 7 };

/* Access rights: a segment that cannot be used, whatever else they say */
#define VMX_UNUSABLE (1u << 16)

/* VM-instruction errors, SDM vol. 3 "VM-Instruction Error Numbers" */
enum {
    VMX_FAIL_INVALID = -1,              /* there is no current VMCS */
    VMX_OK = 0,
    VMX_FAIL_VMCLEAR_ADDRESS = 2,
    VMX_FAIL_VMCLEAR_VMXON = 3,
    VMX_FAIL_LAUNCHED = 4,
    VMX_FAIL_NOT_LAUNCHED = 5,
    VMX_FAIL_CONTROLS = 7,
    VMX_FAIL_HOST_STATE = 8,
    VMX_FAIL_VMPTRLD_ADDRESS = 9,
    VMX_FAIL_VMPTRLD_VMXON = 10,
    VMX_FAIL_VMPTRLD_REVISION = 11,
    VMX_FAIL_NO_FIELD = 12,
    VMX_FAIL_READ_ONLY = 13,
    VMX_FAIL_VMXON_IN_ROOT = 15,
    VMX_FAIL_MOV_SS = 26,
    VMX_FAIL_INVALIDATE = 28,
};

/* Interruption information of entries and exits */
#define VMX_INFO_VALID      (1u << 31)
#define VMX_INFO_ERROR_CODE (1u << 11)
#define VMX_INFO_TYPE(info) (((info) >> 8) & 7)
#define VMX_INFO(type, vector) (VMX_INFO_VALID | (type) << 8 | (vector))
enum {
    VMX_EVENT_INTERRUPT = 0,
    VMX_EVENT_NMI = 2,
    VMX_EVENT_EXCEPTION = 3,
    VMX_EVENT_INT_N = 4,
    VMX_EVENT_ICEBP = 5,                /* privileged software exception */
    VMX_EVENT_INT3_INTO = 6,
    VMX_EVENT_OTHER = 7,
};

/* Interruptibility state */
#define VMX_BLOCKED_BY_STI    1u
#define VMX_BLOCKED_BY_MOV_SS 2u
#define VMX_BLOCKED_BY_SMI    4u
#define VMX_BLOCKED_BY_NMI    8u

/* Pending debug exceptions, and the qualification of a #DB */
#define VMX_DEBUG_TRAPS   0xfu
#define VMX_DEBUG_ENABLED (1u << 12)
#define VMX_DEBUG_BD      (1u << 13)
#define VMX_DEBUG_BS      (1u << 14)

/* INIT, RDMSR and the entry checks have to agree upon these */
#define VMX_REVISION 0x11
#define VMX_CR0_FIXED0 (CR0_PE_MASK | CR0_NE_MASK | CR0_PG_MASK)
#define VMX_CR4_FIXED0 CR4_VMXE_MASK
/* The preemption timer counts down by one in 1 << this of the TSC's ticks */
#define VMX_TIMER_SHIFT 5
#define VMX_MSR_DEBUGCTL 0x1d9
#define VMX_DEBUGCTL_BTF 2
/* Entries of an MSR list; one more is an error */
#define VMX_MSR_LIST_MAX 512

/* The part of a VMCS region that is not fields */
enum {
    VMX_REGION_REVISION = 0,
    VMX_REGION_ABORT = 4,
    VMX_REGION_LAUNCHED = 8,
};

/*
 * Fields of the current VMCS.  The field must exist; what stands there is
 * whatever software or another CPU has written.
 */
uint64_t vmx_read(CPUX86State *env, uint32_t field);
void vmx_write(CPUX86State *env, uint32_t field, uint64_t value);

/* How an instruction of VMX ends, by one of VMX_FAIL_INVALID, VMX_OK... */
void vmx_result(CPUX86State *env, int error);

/* An address of a structure in memory: aligned, and within the CPU's width */
bool vmx_address_ok(CPUX86State *env, uint64_t addr, uint64_t align);

/*
 * The exit qualification of an instruction: the displacement of its memory
 * operand, RIP included where that is the base; 0 without one
 */
uint64_t vmx_operand(CPUX86State *env);

/* vmx_msr.c: the capability MSRs and IA32_FEATURE_CONTROL */
uint32_t vmx_may_be_set(CPUX86State *env, FeatureWord word);
bool vmx_control_ok(CPUX86State *env, FeatureWord word, uint32_t value);
/*
 * Load or store a list of MSRs.  Returns 0, or the number, from 1, of the
 * entry that fails; those before it have taken effect.
 */
uint32_t vmx_load_msrs(CPUX86State *env, hwaddr list, uint32_t n);
uint32_t vmx_store_msrs(CPUX86State *env, hwaddr list, uint32_t n);
/* MSRs that an entry or exit sets by a field of the VMCS */
void vmx_set_msr(CPUX86State *env, uint32_t index, uint64_t value);

/* vmx_check.c: what is wrong with the current VMCS */
int vmx_check_controls(CPUX86State *env);
int vmx_check_host(CPUX86State *env);
bool vmx_eptp_ok(CPUX86State *env, uint64_t eptp);
/* 0, or the exit qualification + 1 */
int vmx_check_guest(CPUX86State *env);
/* Does the vector of an exception have an error code? */
bool vmx_has_error_code(int vector);

/* vmx_entry.c */
/*
 * What comes before any instruction of VMX but VMXON does anything: #UD, an
 * exit by @reason, or #GP(0).
 */
void vmx_begin(CPUX86State *env, uint32_t reason, uintptr_t ra);
/* Protected or 64-bit mode, and neither SMM nor a guest of SVM */
bool vmx_mode_ok(CPUX86State *env);
/*
 * Enter or leave non-root operation, as far as translated code and addresses
 * are concerned.
 */
void vmx_set_guest(CPUX86State *env, bool guest);
/* The preemption timer: its end is in vmx.timer_end */
void vmx_timer_arm(CPUX86State *env);
void vmx_timer_stop(CPUX86State *env);
bool vmx_timer_expired(CPUX86State *env);

/* vmx_exit.c */
/* End a guest; @ra as for cpu_restore_state(), or 0 */
G_NORETURN void vmx_vmexit(CPUX86State *env, uint32_t reason,
                           uint64_t qualification, uintptr_t ra);
/* A VM entry fails after it has begun: the host's state is to be loaded */
G_NORETURN void vmx_entry_failure(CPUX86State *env, uint32_t reason,
                                  uint64_t qualification);

#endif
