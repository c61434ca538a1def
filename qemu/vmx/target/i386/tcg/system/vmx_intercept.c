/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMX under TCG: what makes a guest exit.
 *
 * SVM's points of interception serve VMX as well, so most of this translates
 * from SVM's exit codes.
 *
 * Source: SDM vol. 3, "VMX Non-Root Operation", and "Basic VM-Exit
 * Information" for the qualifications.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "vmx-internal.h"

uint64_t vmx_operand(CPUX86State *env)
{
    uint64_t insn = env->vmx.insn, displacement = (int64_t)VMX_INSN_HIGH(insn);

    if (insn & VMX_INSN_IS_REGISTER) {
        return 0;
    }
    if (insn & VMX_INSN_RIP_RELATIVE) {
        displacement += env->eip + vmx_insn_length(insn);
    }
    return displacement;
}

/* @offset, in the instruction's address size, within a segment */
static uint64_t linear_address(CPUX86State *env, int seg, uint64_t offset)
{
    switch (VMX_INSN_ADDRESS(env->vmx.insn)) {
    case 0:
        offset = (uint16_t)offset;
        break;
    case 1:
        offset = (uint32_t)offset;
        break;
    }
    if (!(env->hflags & HF_CS64_MASK)) {
        return (uint32_t)(env->segs[seg].base + offset);
    }
    return seg >= R_FS ? env->segs[seg].base + offset : offset;
}

/* The linear address of that operand */
static uint64_t linear_operand(CPUX86State *env)
{
    uint64_t insn = env->vmx.insn, offset = vmx_operand(env);
    int seg = VMX_INSN_SEGMENT(insn);

    if (!(insn & VMX_INSN_NO_BASE) && !(insn & VMX_INSN_RIP_RELATIVE)) {
        offset += env->regs[VMX_INSN_BASE(insn)];
    }
    if (!(insn & VMX_INSN_NO_INDEX)) {
        offset += env->regs[VMX_INSN_INDEX(insn)] << VMX_INSN_SCALE(insn);
    }
    return linear_address(env, seg, offset);
}

/* --- instructions --- */

static bool msr_exits(CPUX86State *env, uint32_t index, bool is_write)
{
    hwaddr at = env->vmx.msr_bitmap + (is_write ? 2048 : 0);

    if (!(env->vmx.proc & VMX_CPU_BASED_USE_MSR_BITMAPS)) {
        return true;
    }
    if (index >= 0xc0000000 && index <= 0xc0001fff) {
        at += 1024;
        index -= 0xc0000000;
    } else if (index > 0x1fff) {
        return true;
    }
    return x86_ldub_phys(env_cpu(env), at + index / 8) & (1 << (index & 7));
}

/* Instructions that exit always, or by one bit of a control */
static const struct plain_exit {
    uint32_t svm;
    uint16_t reason;
    uint32_t proc, proc2;
} plain_exits[] = {
    { SVM_EXIT_CPUID, VMX_EXIT_CPUID },
    { SVM_EXIT_INVD, VMX_EXIT_INVD },
    { SVM_EXIT_XSETBV, VMX_EXIT_XSETBV },
    { SVM_EXIT_SHUTDOWN, VMX_EXIT_TRIPLE_FAULT },
    { SVM_EXIT_HLT, VMX_EXIT_HLT, VMX_CPU_BASED_HLT_EXITING },
    { SVM_EXIT_RDPMC, VMX_EXIT_RDPMC, VMX_CPU_BASED_RDPMC_EXITING },
    { SVM_EXIT_RDTSC, VMX_EXIT_RDTSC, VMX_CPU_BASED_RDTSC_EXITING },
    { SVM_EXIT_MWAIT, VMX_EXIT_MWAIT, VMX_CPU_BASED_MWAIT_EXITING },
    { SVM_EXIT_MONITOR, VMX_EXIT_MONITOR, VMX_CPU_BASED_MONITOR_EXITING },
    { SVM_EXIT_PAUSE, VMX_EXIT_PAUSE, VMX_CPU_BASED_PAUSE_EXITING },
    { SVM_EXIT_WBINVD, VMX_EXIT_WBINVD, 0, VMX_SECONDARY_EXEC_WBINVD_EXITING },
};

static void check_plain(CPUX86State *env, uint32_t type, uintptr_t ra)
{
    int i;

    for (i = 0; i < ARRAY_SIZE(plain_exits); i++) {
        const struct plain_exit *e = &plain_exits[i];

        if (e->svm == type && ((!e->proc && !e->proc2) ||
                               (env->vmx.proc & e->proc) ||
                               (env->vmx.proc2 & e->proc2))) {
            vmx_vmexit(env, e->reason, 0, ra);
        }
    }
}

static void check_read_cr(CPUX86State *env, int reg, uintptr_t ra)
{
    uint32_t wanted = reg == 3 ? VMX_CPU_BASED_CR3_STORE_EXITING :
                      reg == 8 ? VMX_CPU_BASED_CR8_STORE_EXITING : 0;

    if (env->vmx.proc & wanted) {
        cpu_restore_state(env_cpu(env), ra);
        vmx_vmexit(env, VMX_EXIT_CR,
                   reg | 1 << 4 | VMX_INSN_REG1(env->vmx.insn) << 8, 0);
    }
}

static void check_dr(CPUX86State *env, int reg, bool is_read, uintptr_t ra)
{
    if (env->vmx.proc & VMX_CPU_BASED_MOV_DR_EXITING) {
        cpu_restore_state(env_cpu(env), ra);
        vmx_vmexit(env, VMX_EXIT_DR,
                   reg | is_read << 4 | VMX_INSN_REG1(env->vmx.insn) << 8, 0);
    }
}

void vmx_check_intercept(CPUX86State *env, uint32_t type, uint64_t param,
                         uintptr_t ra)
{
    switch (type) {
    case SVM_EXIT_READ_CR0 ... SVM_EXIT_READ_CR0 + 8:
        check_read_cr(env, type - SVM_EXIT_READ_CR0, ra);
        break;
    case SVM_EXIT_READ_DR0 ... SVM_EXIT_READ_DR0 + 7:
        check_dr(env, type - SVM_EXIT_READ_DR0, true, ra);
        break;
    case SVM_EXIT_WRITE_DR0 ... SVM_EXIT_WRITE_DR0 + 7:
        check_dr(env, type - SVM_EXIT_WRITE_DR0, false, ra);
        break;
    case SVM_EXIT_MSR:
        if (msr_exits(env, env->regs[R_ECX], param)) {
            vmx_vmexit(env, param ? VMX_EXIT_WRMSR : VMX_EXIT_RDMSR, 0, ra);
        }
        break;
    case SVM_EXIT_ICEBP:
        if (vmx_intercepts(env, EXCP01_DB, 0)) {
            env->vmx.exit_info = VMX_INFO(VMX_EVENT_ICEBP, EXCP01_DB);
            vmx_vmexit(env, VMX_EXIT_EXCEPTION, 0, ra);
        }
        break;
    case SVM_EXIT_INIT:
        env_cpu(env)->interrupt_request &= ~CPU_INTERRUPT_INIT;
        vmx_vmexit(env, VMX_EXIT_INIT, 0, ra);
    default:
        check_plain(env, type, ra);
    }
}

static bool io_exits(CPUX86State *env, uint32_t port, int size)
{
    int i;

    if (!(env->vmx.proc & VMX_CPU_BASED_USE_IO_BITMAPS)) {
        return env->vmx.proc & VMX_CPU_BASED_UNCOND_IO_EXITING;
    }
    for (i = 0; i < size; i++) {
        uint32_t p = port + i;
        hwaddr bitmap;

        if (p > 0xffff) {
            return true;
        }
        bitmap = env->vmx.io_bitmap[p >> 15] + (p & 0x7fff) / 8;
        if (x86_ldub_phys(env_cpu(env), bitmap) & (1 << (p & 7))) {
            return true;
        }
    }
    return false;
}

/* The linear address that INS is about to store to, or OUTS to load from */
static uint64_t string_address(CPUX86State *env, bool is_in)
{
    return is_in ? linear_address(env, R_ES, env->regs[R_EDI])
                 : linear_address(env, VMX_INSN_SEGMENT(env->vmx.insn),
                                  env->regs[R_ESI]);
}

void vmx_check_io(CPUX86State *env, uint32_t port, uint32_t param,
                  uintptr_t ra)
{
    int size = (param >> SVM_IOIO_SIZE_SHIFT) & 7;
    bool is_in = param & SVM_IOIO_TYPE_MASK;
    uint64_t qualification = (size - 1) | is_in << 3 | (uint64_t)port << 16;

    if (!io_exits(env, port, size)) {
        return;
    }
    cpu_restore_state(env_cpu(env), ra);
    if (param & SVM_IOIO_STR_MASK) {
        qualification |= 1 << 4;
        env->vmx.exit_gla = string_address(env, is_in);
    } else if (VMX_INSN_HIGH(env->vmx.insn) < 0xec) { /* IN, OUT imm8 */
        qualification |= 1 << 6;
    }
    if (param & SVM_IOIO_REP_MASK) {
        qualification |= 1 << 5;
    }
    vmx_vmexit(env, VMX_EXIT_IO, qualification, 0);
}

void helper_vmx_invlpg(CPUX86State *env, target_ulong addr)
{
    if (env->vmx.guest && (env->vmx.proc & VMX_CPU_BASED_INVLPG_EXITING)) {
        vmx_vmexit(env, VMX_EXIT_INVLPG, addr, GETPC());
    }
}

/* RDTSCP and RDPID are undefined unless a control enables them */
void helper_vmx_rdtscp(CPUX86State *env, uint32_t reads_tsc)
{
    if (!env->vmx.guest) {
        return;
    }
    if (!(env->vmx.proc2 & VMX_SECONDARY_EXEC_RDTSCP)) {
        raise_exception_ra(env, EXCP06_ILLOP, GETPC());
    }
    if (reads_tsc && (env->vmx.proc & VMX_CPU_BASED_RDTSC_EXITING)) {
        vmx_vmexit(env, VMX_EXIT_RDTSCP, 0, GETPC());
    }
}

/*
 * The preemption timer comes by way of another thread.  No guest reads that it
 * should have exited before.
 */
void vmx_check_tsc(CPUX86State *env, uint64_t tsc, uintptr_t ra)
{
    if ((env->vmx.pin & VMX_PIN_BASED_VMX_PREEMPTION_TIMER) &&
        tsc >= env->vmx.timer_end) {
        vmx_vmexit(env, VMX_EXIT_PREEMPTION_TIMER, 0, ra);
    }
}

G_NORETURN void vmx_vmcall_exit(CPUX86State *env, uintptr_t ra)
{
    vmx_vmexit(env, VMX_EXIT_VMCALL, 0, ra);
}

G_NORETURN void vmx_task_switch_exit(CPUX86State *env, uint16_t selector,
                                     int source, uintptr_t ra)
{
    vmx_vmexit(env, VMX_EXIT_TASK_SWITCH, selector | (uint64_t)source << 30,
               ra);
}

/* --- control registers --- */

target_ulong helper_vmx_read_cr(CPUX86State *env, uint32_t reg)
{
    VMXState *v = &env->vmx;
    uint64_t mask = reg ? v->cr4_mask : v->cr0_mask;
    uint64_t shadow = reg ? v->cr4_shadow : v->cr0_shadow;

    if (!v->guest) {
        return env->cr[reg];
    }
    return (env->cr[reg] & ~mask) | (shadow & mask);
}

static void check_cr3(CPUX86State *env, target_ulong value, uintptr_t ra)
{
    VMXState *v = &env->vmx;
    int i;

    if (!(v->proc & VMX_CPU_BASED_CR3_LOAD_EXITING)) {
        return;
    }
    for (i = 0; i < v->n_cr3_targets; i++) {
        if (v->cr3_target[i] == value) {
            return;
        }
    }
    cpu_restore_state(env_cpu(env), ra);
    vmx_vmexit(env, VMX_EXIT_CR, 3 | VMX_INSN_REG1(v->insn) << 8, 0);
}

static void check_cr8(CPUX86State *env, uintptr_t ra)
{
    if (env->vmx.proc & VMX_CPU_BASED_CR8_LOAD_EXITING) {
        cpu_restore_state(env_cpu(env), ra);
        vmx_vmexit(env, VMX_EXIT_CR, 8 | VMX_INSN_REG1(env->vmx.insn) << 8, 0);
    }
}

/* The bits that the hypervisor keeps stay; writing another value to them exits */
static target_ulong guest_writes(CPUX86State *env, int reg, target_ulong value,
                                 uintptr_t ra)
{
    uint64_t mask = reg ? env->vmx.cr4_mask : env->vmx.cr0_mask;
    uint64_t shadow = reg ? env->vmx.cr4_shadow : env->vmx.cr0_shadow;

    if ((value ^ shadow) & mask) {
        cpu_restore_state(env_cpu(env), ra);
        vmx_vmexit(env, VMX_EXIT_CR,
                   reg | VMX_INSN_REG1(env->vmx.insn) << 8, 0);
    }
    return (env->cr[reg] & mask) | (value & ~mask);
}

/* VMX operation fixes some bits; an unrestricted guest may do without two */
static bool fixed_bits_ok(CPUX86State *env, int reg, target_ulong value)
{
    uint64_t fixed = reg ? VMX_CR4_FIXED0 : VMX_CR0_FIXED0;

    if (!reg && env->vmx.guest &&
        (env->vmx.proc2 & VMX_SECONDARY_EXEC_UNRESTRICTED_GUEST)) {
        fixed &= ~(uint64_t)(CR0_PE_MASK | CR0_PG_MASK);
    }
    return !(fixed & ~value);
}

target_ulong vmx_write_cr(CPUX86State *env, int reg, target_ulong value,
                          uintptr_t ra)
{
    bool guest = env->vmx.guest;

    switch (reg) {
    case 0:
    case 4:
        if (guest) {
            value = guest_writes(env, reg, value, ra);
        }
        if (!fixed_bits_ok(env, reg, value)) {
            raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
        }
        env->vmx.pdptes = false;
        break;
    case 3:
        if (guest) {
            check_cr3(env, value, ra);
        }
        env->vmx.pdptes = false;
        break;
    case 8:
        if (guest) {
            check_cr8(env, ra);
        }
        break;
    }
    return value;
}

/*
 * LMSW exits where it would set a kept bit to another value; it cannot clear
 * PE, whether the host keeps that bit or not.
 */
void helper_vmx_lmsw(CPUX86State *env, target_ulong source)
{
    const uint64_t bits = CR0_PE_MASK | CR0_MP_MASK | CR0_EM_MASK | CR0_TS_MASK;
    uint64_t mask = env->vmx.cr0_mask & bits, cr0 = env->cr[0];
    uint64_t changes = (source ^ env->vmx.cr0_shadow) & mask;
    uintptr_t ra = GETPC();

    if (!(source & CR0_PE_MASK)) {
        changes &= ~(uint64_t)CR0_PE_MASK;
    }
    if (env->vmx.guest && changes) {
        bool is_memory;

        cpu_restore_state(env_cpu(env), ra);
        is_memory = !(env->vmx.insn & VMX_INSN_IS_REGISTER);
        if (is_memory) {
            env->vmx.exit_gla = linear_operand(env);
        }
        vmx_vmexit(env, VMX_EXIT_CR, 3 << 4 | is_memory << 6 |
                   (source & 0xffff) << 16, 0);
    }
    if (!env->vmx.guest) {
        mask = 0;
    }
    source |= cr0 & CR0_PE_MASK;
    cpu_x86_update_cr0(env, (cr0 & (mask | ~bits)) | (source & bits & ~mask));
}

bool vmx_clts(CPUX86State *env, uintptr_t ra)
{
    if (!(env->vmx.cr0_mask & CR0_TS_MASK)) {
        return true;
    }
    if (env->vmx.cr0_shadow & CR0_TS_MASK) {
        vmx_vmexit(env, VMX_EXIT_CR, 2 << 4, ra);
    }
    return false;
}

/* --- exceptions --- */

bool vmx_intercepts(CPUX86State *env, int vector, int error_code)
{
    VMXState *v = &env->vmx;
    bool exits = v->exceptions & (1u << vector);

    if (vector == EXCP0E_PAGE &&
        (error_code & v->pf_mask) != v->pf_match) {
        exits = !exits;
    }
    return exits;
}

static G_NORETURN void exception_exit(CPUX86State *env, uint32_t info,
                                      uint64_t qualification)
{
    env->vmx.exit_info = info;
    vmx_vmexit(env, VMX_EXIT_EXCEPTION, qualification, 0);
}

void vmx_check_exception(CPUX86State *env, int vector, bool is_int,
                         int error_code, int length, uintptr_t ra)
{
    int type = is_int ? VMX_EVENT_INT3_INTO : VMX_EVENT_EXCEPTION;
    uint32_t info;

    if (is_int && vector != EXCP03_INT3 && vector != EXCP04_INTO) {
        return;
    }
    if (!vmx_intercepts(env, vector, error_code)) {
        /* It is delivered next, not what was being delivered when it came */
        env->vmx.vectoring = 0;
        return;
    }
    cpu_restore_state(env_cpu(env), ra);
    info = VMX_INFO(type, vector);
    if (is_int) {
        env->vmx.insn = (uint64_t)length << VMX_INSN_LENGTH_SHIFT;
    } else if ((env->cr[0] & CR0_PE_MASK) && vmx_has_error_code(vector)) {
        info |= VMX_INFO_ERROR_CODE;
        env->vmx.exit_error = error_code;
    }
    exception_exit(env, info, vector == EXCP0E_PAGE ? env->vmx.fault_address
                                                    : 0);
}

void vmx_check_debug(CPUX86State *env, target_ulong dr6, uint32_t bits,
                     uintptr_t ra)
{
    if (env->vmx.guest && vmx_intercepts(env, EXCP01_DB, 0)) {
        cpu_restore_state(env_cpu(env), ra);
        env->dr[6] = dr6;
        exception_exit(env, VMX_INFO(VMX_EVENT_EXCEPTION, EXCP01_DB), bits);
    }
}

/* --- delivery through the guest's IDT --- */

void vmx_event_begin(CPUX86State *env, int vector, bool is_int, int error_code,
                     bool is_hw)
{
    VMXState *v = &env->vmx;
    int type = VMX_EVENT_EXCEPTION;

    v->halted = false;
    if (v->vectoring & VMX_INFO_VALID) {
        return; /* VM entry has injected it */
    }
    if (is_int) {
        type = vector == EXCP03_INT3 || vector == EXCP04_INTO
               ? VMX_EVENT_INT3_INTO : VMX_EVENT_INT_N;
        v->insn = (uint64_t)(env->exception_next_eip - env->eip) <<
                  VMX_INSN_LENGTH_SHIFT;
    } else if (vector == EXCP02_NMI) {
        type = VMX_EVENT_NMI;
    } else if (is_hw) {
        type = VMX_EVENT_INTERRUPT;
    }
    v->vectoring = VMX_INFO(type, vector);
    if (type == VMX_EVENT_EXCEPTION && (env->cr[0] & CR0_PE_MASK) &&
        vmx_has_error_code(vector)) {
        v->vectoring |= VMX_INFO_ERROR_CODE;
        v->vectoring_error = error_code;
    }
}

void vmx_event_end(CPUX86State *env)
{
    env->vmx.vectoring = 0;
}

/* --- interrupts --- */

bool vmx_blocks_init(CPUX86State *env)
{
    return env->vmx.on && !env->vmx.guest;
}

static bool nmi_window(CPUX86State *env)
{
    return (env->vmx.proc & VMX_CPU_BASED_VIRTUAL_NMI_PENDING) &&
           !(env->hflags & HF_INHIBIT_IRQ_MASK) &&
           !(env->hflags2 & HF2_NMI_MASK);
}

static bool interrupt_window(CPUX86State *env)
{
    return (env->vmx.proc & VMX_CPU_BASED_VIRTUAL_INTR_PENDING) &&
           !(env->hflags & HF_INHIBIT_IRQ_MASK) && (env->eflags & IF_MASK);
}

/*
 * A guest's NMI mask is that of virtual NMIs if it has these, and then a real
 * one exits all the same.
 */
static bool takes_nmi(CPUX86State *env)
{
    return !(env->hflags2 & HF2_NMI_MASK) ||
           (env->vmx.pin & VMX_PIN_BASED_VIRTUAL_NMIS);
}

static bool takes_interrupt(CPUX86State *env)
{
    return (env->vmx.pin & VMX_PIN_BASED_EXT_INTR_MASK) ||
           ((env->eflags & IF_MASK) && !(env->hflags & HF_INHIBIT_IRQ_MASK));
}

/* In the order of their priorities */
int vmx_pending_interrupt(CPUX86State *env, int request)
{
    if (request & CPU_INTERRUPT_SMI) {
        return CPU_INTERRUPT_SMI;
    }
    if ((request & CPU_INTERRUPT_VIRQ) &&
        (vmx_timer_expired(env) || nmi_window(env))) {
        return CPU_INTERRUPT_VIRQ;
    }
    if ((request & CPU_INTERRUPT_NMI) && takes_nmi(env)) {
        return CPU_INTERRUPT_NMI;
    }
    if (request & CPU_INTERRUPT_MCE) {
        return CPU_INTERRUPT_MCE;
    }
    if ((request & CPU_INTERRUPT_VIRQ) && interrupt_window(env)) {
        return CPU_INTERRUPT_VIRQ;
    }
    if ((request & CPU_INTERRUPT_HARD) && takes_interrupt(env)) {
        return CPU_INTERRUPT_HARD;
    }
    return 0;
}

static void interrupt_exit(CPUX86State *env)
{
    CPUState *cs = env_cpu(env);

    if (env->vmx.exit & VMX_VM_EXIT_ACK_INTR_ON_EXIT) {
        int vector;

        cs->interrupt_request &= ~CPU_INTERRUPT_HARD;
        vector = cpu_get_pic_interrupt(env);
        if (vector < 0) {
            return; /* it has gone */
        }
        env->vmx.exit_info = VMX_INFO(VMX_EVENT_INTERRUPT, vector);
    }
    vmx_vmexit(env, VMX_EXIT_INTERRUPT, 0, 0);
}

bool vmx_interrupt(CPUX86State *env, int request)
{
    CPUState *cs = env_cpu(env);

    switch (request) {
    case CPU_INTERRUPT_NMI:
        if (!(env->vmx.pin & VMX_PIN_BASED_NMI_EXITING)) {
            return false;
        }
        cs->interrupt_request &= ~CPU_INTERRUPT_NMI;
        exception_exit(env, VMX_INFO(VMX_EVENT_NMI, EXCP02_NMI), 0);
    case CPU_INTERRUPT_VIRQ:
        if (vmx_timer_expired(env)) {
            vmx_vmexit(env, VMX_EXIT_PREEMPTION_TIMER, 0, 0);
        }
        vmx_vmexit(env, nmi_window(env) ? VMX_EXIT_NMI_WINDOW
                                        : VMX_EXIT_INTERRUPT_WINDOW, 0, 0);
    case CPU_INTERRUPT_HARD:
        if (!(env->vmx.pin & VMX_PIN_BASED_EXT_INTR_MASK)) {
            return false;
        }
        interrupt_exit(env);
        return true;
    default:
        return false;
    }
}

/* --- extended page tables --- */

/* Qualification: the exit is asynchronous to instructions */
#define EPT_ASYNCHRONOUS (1 << 16)

static uint64_t violation(CPUX86State *env, int error, uint64_t gpa,
                          uint64_t linear, bool is_final)
{
    env->vmx.exit_gpa = gpa;
    env->vmx.exit_gla = linear;
    return (error & 0x3f) | 1 << 7 | is_final << 8;
}

void vmx_check_record(CPUX86State *env)
{
    unsigned i, n;
    uint64_t linear[4];
    VMXFault fault;

    if (!(env->hflags2 & HF2_NPT_MASK)) {
        return;
    }
    n = x86_vpmu_record_places(env, linear);
    for (i = 0; i < n; i++) {
        if (!vmx_store_faults(env, linear[i], &fault)) {
            continue;
        }
        if (fault.error & VMX_EPT_MISCONFIGURED) {
            env->vmx.exit_gpa = fault.gpa;
            vmx_vmexit(env, VMX_EXIT_EPT_MISCONFIGURATION, 0, 0);
        }
        vmx_vmexit(env, VMX_EXIT_EPT_VIOLATION,
                   violation(env, fault.error, fault.gpa, linear[i],
                             fault.is_final) | EPT_ASYNCHRONOUS, 0);
    }
}

G_NORETURN void vmx_ept_fault(CPUX86State *env, int error, uint64_t gpa,
                              uint64_t linear, bool is_final, uintptr_t ra)
{
    if (error & VMX_EPT_MISCONFIGURED) {
        env->vmx.exit_gpa = gpa;
        vmx_vmexit(env, VMX_EXIT_EPT_MISCONFIGURATION, 0, ra);
    }
    vmx_vmexit(env, VMX_EXIT_EPT_VIOLATION,
               violation(env, error, gpa, linear, is_final), ra);
}
