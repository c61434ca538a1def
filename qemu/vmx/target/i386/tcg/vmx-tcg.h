/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMX under TCG: what the other parts of the emulation call.
 *
 * Everything here asks env->vmx.guest first or is called when it is set.
 */
#ifndef I386_VMX_TCG_H
#define I386_VMX_TCG_H

/* Basic exit reasons, SDM vol. 3 appendix C */
enum {
    VMX_EXIT_EXCEPTION = 0,
    VMX_EXIT_INTERRUPT = 1,
    VMX_EXIT_TRIPLE_FAULT = 2,
    VMX_EXIT_INIT = 3,
    VMX_EXIT_INTERRUPT_WINDOW = 7,
    VMX_EXIT_NMI_WINDOW = 8,
    VMX_EXIT_TASK_SWITCH = 9,
    VMX_EXIT_CPUID = 10,
    VMX_EXIT_HLT = 12,
    VMX_EXIT_INVD = 13,
    VMX_EXIT_INVLPG = 14,
    VMX_EXIT_RDPMC = 15,
    VMX_EXIT_RDTSC = 16,
    VMX_EXIT_VMCALL = 18,
    VMX_EXIT_VMCLEAR = 19,
    VMX_EXIT_VMLAUNCH = 20,
    VMX_EXIT_VMPTRLD = 21,
    VMX_EXIT_VMPTRST = 22,
    VMX_EXIT_VMREAD = 23,
    VMX_EXIT_VMRESUME = 24,
    VMX_EXIT_VMWRITE = 25,
    VMX_EXIT_VMXOFF = 26,
    VMX_EXIT_VMXON = 27,
    VMX_EXIT_CR = 28,
    VMX_EXIT_DR = 29,
    VMX_EXIT_IO = 30,
    VMX_EXIT_RDMSR = 31,
    VMX_EXIT_WRMSR = 32,
    VMX_EXIT_GUEST_STATE = 33,
    VMX_EXIT_MSR_LOAD = 34,
    VMX_EXIT_MWAIT = 36,
    VMX_EXIT_MONITOR = 39,
    VMX_EXIT_PAUSE = 40,
    VMX_EXIT_EPT_VIOLATION = 48,
    VMX_EXIT_EPT_MISCONFIGURATION = 49,
    VMX_EXIT_INVEPT = 50,
    VMX_EXIT_RDTSCP = 51,
    VMX_EXIT_PREEMPTION_TIMER = 52,
    VMX_EXIT_INVVPID = 53,
    VMX_EXIT_WBINVD = 54,
    VMX_EXIT_XSETBV = 55,
};

/*
 * The instruction that may exit, as translated code describes it: the low half
 * is the VM-exit instruction information, and these bits of it that no
 * instruction of VMX uses; the high half the displacement of its memory
 * operand, or its opcode if it has no ModRM byte.
 */
#define VMX_INSN_RIP_RELATIVE (1u << 2)
#define VMX_INSN_LENGTH_SHIFT 11
#define VMX_INSN_PRIVATE      (VMX_INSN_RIP_RELATIVE | \
                               15u << VMX_INSN_LENGTH_SHIFT)
#define VMX_INSN_REG1(insn)   (((insn) >> 3) & 15)
#define VMX_INSN_REG2(insn)   (((insn) >> 28) & 15)
#define VMX_INSN_ADDRESS(insn) (((insn) >> 7) & 7)
#define VMX_INSN_IS_REGISTER  (1u << 10)
#define VMX_INSN_SEGMENT(insn) (((insn) >> 15) & 7)
#define VMX_INSN_SCALE(insn)  ((insn) & 3)
#define VMX_INSN_INDEX(insn)  (((insn) >> 18) & 15)
#define VMX_INSN_NO_INDEX     (1u << 22)
#define VMX_INSN_BASE(insn)   (((insn) >> 23) & 15)
#define VMX_INSN_NO_BASE      (1u << 27)
#define VMX_INSN_HIGH(insn)   ((int32_t)((insn) >> 32))

static inline uint32_t vmx_insn_length(uint64_t insn)
{
    return (insn >> VMX_INSN_LENGTH_SHIFT) & 15;
}

#ifndef CONFIG_USER_ONLY
/* EXCP_VMEXIT in a guest of VMX: leave it, with the lock held */
void vmx_do_vmexit(CPUX86State *env);

/*
 * The points at which SVM intercepts, for a guest of VMX: does not return if
 * the guest exits.
 */
void vmx_check_intercept(CPUX86State *env, uint32_t type, uint64_t param,
                         uintptr_t ra);
/* @param as helper_svm_check_io() has it */
void vmx_check_io(CPUX86State *env, uint32_t port, uint32_t param,
                  uintptr_t ra);
/*
 * An exception or software interrupt; @length is that of the instruction if
 * @is_int.  A page fault's address is in vmx.fault_address.
 */
void vmx_check_exception(CPUX86State *env, int vector, bool is_int,
                         int error_code, int length, uintptr_t ra);
/* Would this exception exit?  Then it changes neither CR2 nor DR6. */
bool vmx_intercepts(CPUX86State *env, int vector, int error_code);
/*
 * A debug exception has set DR6 from @dr6 to what it is, for @bits.  If the
 * guest's hypervisor has asked for it, DR6 becomes what it was, and the guest
 * exits.
 */
void vmx_check_debug(CPUX86State *env, target_ulong dr6, uint32_t bits,
                     uintptr_t ra);
G_NORETURN void vmx_vmcall_exit(CPUX86State *env, uintptr_t ra);
/* The guest is about to see the TSC at @tsc, before the VMCS's offset */
void vmx_check_tsc(CPUX86State *env, uint64_t tsc, uintptr_t ra);
/* @source as the exit qualification has it: CALL, IRET, JMP, task gate */
G_NORETURN void vmx_task_switch_exit(CPUX86State *env, uint16_t selector, int source,
                           uintptr_t ra);
/*
 * MOV to a control register in VMX operation: the value that it takes.  May
 * exit, or raise #GP(0).
 */
target_ulong vmx_write_cr(CPUX86State *env, int reg, target_ulong value,
                          uintptr_t ra);
/* False: CLTS changes nothing */
bool vmx_clts(CPUX86State *env, uintptr_t ra);

/* An event is delivered through the guest's IDT */
void vmx_event_begin(CPUX86State *env, int vector, bool is_int, int error_code,
                     bool is_hw);
void vmx_event_end(CPUX86State *env);
/*
 * An interrupt that vmx_pending_interrupt() has chosen: exits, or returns
 * false if the guest takes it itself, or true if it has gone.  The lock is
 * held.
 */
bool vmx_interrupt(CPUX86State *env, int request);

/* SMM begins (then the guest's banks and tables are not in force) and ends */
void vmx_smm(CPUX86State *env, bool entered);

/*
 * MSRs of VMX and those that a guest sees otherwise.  rdmsr: false if it is
 * another one; wrmsr: 0 another one, 1 done, -1 #GP(0).
 */
bool vmx_rdmsr(CPUX86State *env, uint32_t index, uint64_t *value);
int vmx_wrmsr(CPUX86State *env, uint32_t index, uint64_t value);

/*
 * A PEBS record is awaited: exits, before the instruction that it will be of,
 * if a page that it will be written to is not there for EPT.
 */
void vmx_check_record(CPUX86State *env);
/* A second-stage fault that a store by the guest's kernel would meet */
typedef struct VMXFault {
    int error;                  /* as vmx_ept_fault()'s */
    uint64_t gpa;
    bool is_final;
} VMXFault;
bool vmx_store_faults(CPUX86State *env, uint64_t linear, VMXFault *fault);

/* The walk that faulted, in vmx_ept_fault()'s @error */
#define VMX_EPT_MISCONFIGURED (1 << 16)
/*
 * @error: access and permissions as in the exit qualification of an EPT
 * violation; @linear is only valid with @translated, and @is_final when the
 * access is not that to a table of the guest.
 */
G_NORETURN void vmx_ept_fault(CPUX86State *env, int error, uint64_t gpa,
                              uint64_t linear, bool is_final, uintptr_t ra);
#endif

#endif
