/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMX under TCG: VMLAUNCH and VMRESUME.
 *
 * Source: SDM vol. 3, "VM Entries".
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "exec/cputlb.h"
#include "vmx-internal.h"

bool vmx_mode_ok(CPUX86State *env)
{
    return (env->cr[0] & CR0_PE_MASK) && !(env->eflags & VM_MASK) &&
           (!(env->efer & MSR_EFER_LMA) || (env->hflags & HF_CS64_MASK)) &&
           !(env->hflags & HF_SMM_MASK) &&
           (env->vmx.guest || !(env->hflags & HF_GUEST_MASK));
}

void vmx_begin(CPUX86State *env, uint32_t reason, uintptr_t ra)
{
    if (!env->vmx.on || !vmx_mode_ok(env)) {
        raise_exception_ra(env, EXCP06_ILLOP, ra);
    }
    if (env->vmx.guest) {
        cpu_restore_state(env_cpu(env), ra);
        vmx_vmexit(env, reason, vmx_operand(env), 0);
    }
    if (env->hflags & HF_CPL_MASK) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
}

void vmx_set_guest(CPUX86State *env, bool guest)
{
    env->vmx.guest = guest;
    env->hflags &= ~HF_GUEST_MASK;
    env->hflags2 &= ~HF2_NPT_MASK;
    if (guest) {
        env->hflags |= HF_GUEST_MASK;
        if (env->vmx.proc2 & VMX_SECONDARY_EXEC_ENABLE_EPT) {
            env->hflags2 |= HF2_NPT_MASK;
        }
    }
    /* No entry says whose it is, so none may stay */
    tlb_flush(env_cpu(env));
}

void vmx_smm(CPUX86State *env, bool entered)
{
    if (entered && env->vmx.guest) {
        vmx_set_guest(env, false);
        env->vmx.smm_guest = true;
    } else if (!entered && env->vmx.smm_guest) {
        env->vmx.smm_guest = false;
        vmx_set_guest(env, true);
    }
}

/* --- the preemption timer --- */

bool vmx_timer_expired(CPUX86State *env)
{
    return (env->vmx.pin & VMX_PIN_BASED_VMX_PREEMPTION_TIMER) &&
           cpu_get_tsc(env) >= env->vmx.timer_end;
}

/*
 * The TSC need not have the rate of a clock of QEMU's: guess by how far both
 * have come, and look again if that was too early.
 */
static void timer_set(X86CPU *cpu)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    uint64_t tsc = cpu_get_tsc(&cpu->env), left = cpu->env.vmx.timer_end - tsc;
    double ns = tsc ? (double)left * now / tsc : 0;

    timer_mod(cpu->vmx_timer, now + 1 + (int64_t)MIN(ns, 1e15));
}

static void timer_fired(void *opaque)
{
    X86CPU *cpu = opaque;

    if (vmx_timer_expired(&cpu->env)) {
        cpu_interrupt(CPU(cpu), CPU_INTERRUPT_VIRQ);
    } else {
        timer_set(cpu);
    }
}

void vmx_timer_arm(CPUX86State *env)
{
    X86CPU *cpu = env_archcpu(env);

    if (!(env->vmx.pin & VMX_PIN_BASED_VMX_PREEMPTION_TIMER) ||
        vmx_timer_expired(env)) {
        return;
    }
    if (!cpu->vmx_timer) {
        cpu->vmx_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, timer_fired, cpu);
    }
    timer_set(cpu);
}

void vmx_timer_stop(CPUX86State *env)
{
    if (env_archcpu(env)->vmx_timer) {
        timer_del(env_archcpu(env)->vmx_timer);
    }
}

static void timer_start(CPUX86State *env)
{
    if (env->vmx.pin & VMX_PIN_BASED_VMX_PREEMPTION_TIMER) {
        env->vmx.timer_end = cpu_get_tsc(env) +
                             (vmx_read(env, VMX_PREEMPTION_TIMER) <<
                              VMX_TIMER_SHIFT);
        vmx_timer_arm(env);
    }
}

/* --- the controls and the guest's state --- */

static void load_controls(CPUX86State *env)
{
    VMXState *v = &env->vmx;
    int i;

    v->pin = vmx_read(env, VMX_PIN_CONTROLS);
    v->proc = vmx_read(env, VMX_PROC_CONTROLS);
    v->proc2 = 0;
    if (v->proc & VMX_CPU_BASED_ACTIVATE_SECONDARY_CONTROLS) {
        v->proc2 = vmx_read(env, VMX_PROC2_CONTROLS);
    }
    v->exit = vmx_read(env, VMX_EXIT_CONTROLS);
    v->entry = vmx_read(env, VMX_ENTRY_CONTROLS);
    v->exceptions = vmx_read(env, VMX_EXCEPTION_BITMAP);
    v->pf_mask = vmx_read(env, VMX_PF_MASK);
    v->pf_match = vmx_read(env, VMX_PF_MATCH);
    v->cr0_mask = vmx_read(env, VMX_CR0_MASK);
    v->cr4_mask = vmx_read(env, VMX_CR4_MASK);
    v->cr0_shadow = vmx_read(env, VMX_CR0_SHADOW);
    v->cr4_shadow = vmx_read(env, VMX_CR4_SHADOW);
    v->n_cr3_targets = vmx_read(env, VMX_CR3_TARGET_COUNT);
    for (i = 0; i < ARRAY_SIZE(v->cr3_target); i++) {
        v->cr3_target[i] = vmx_read(env, VMX_CR3_TARGET0 + 2 * i);
    }
    v->io_bitmap[0] = vmx_read(env, VMX_IO_BITMAP_A);
    v->io_bitmap[1] = vmx_read(env, VMX_IO_BITMAP_B);
    v->msr_bitmap = vmx_read(env, VMX_MSR_BITMAP);
    v->eptp = vmx_read(env, VMX_EPT_POINTER);
}

static void load_segment(CPUX86State *env, int n, SegmentCache *sc)
{
    uint32_t rights = vmx_read(env, VMX_GUEST_ES_RIGHTS + 2 * n);

    sc->selector = vmx_read(env, VMX_GUEST_ES_SELECTOR + 2 * n);
    sc->base = vmx_read(env, VMX_GUEST_ES_BASE + 2 * n);
    sc->limit = vmx_read(env, VMX_GUEST_ES_LIMIT + 2 * n);
    sc->flags = (rights & 0xff) << 8 | (rights & 0xf000) << 8;
    /* The privilege level of SS counts in 64-bit mode even so */
    if (rights & VMX_UNUSABLE) {
        sc->flags &= ~DESC_P_MASK;
    }
}

static void load_segments(CPUX86State *env)
{
    SegmentCache sc;
    int i;

    for (i = 0; i < 6; i++) {
        load_segment(env, i, &sc);
        cpu_x86_load_seg_cache(env, i, sc.selector, sc.base, sc.limit,
                               sc.flags);
    }
    load_segment(env, VMX_LDTR, &env->ldt);
    load_segment(env, VMX_TR, &env->tr);
    /* LTR caches the type of a TSS that is not busy, and so do others */
    env->tr.flags &= ~DESC_TSS_BUSY_MASK;
    env->gdt.base = vmx_read(env, VMX_GUEST_GDTR_BASE);
    env->gdt.limit = vmx_read(env, VMX_GUEST_GDTR_LIMIT);
    env->idt.base = vmx_read(env, VMX_GUEST_IDTR_BASE);
    env->idt.limit = vmx_read(env, VMX_GUEST_IDTR_LIMIT);
}

static uint64_t guest_efer(CPUX86State *env, uint64_t cr0)
{
    uint64_t efer = env->efer & ~(uint64_t)MSR_EFER_LMA;

    if (env->vmx.entry & VMX_VM_ENTRY_LOAD_IA32_EFER) {
        return vmx_read(env, VMX_GUEST_EFER);
    }
    if (env->vmx.entry & VMX_VM_ENTRY_IA32E_MODE) {
        return efer | MSR_EFER_LMA | MSR_EFER_LME;
    }
    return cr0 & CR0_PG_MASK ? efer & ~(uint64_t)MSR_EFER_LME : efer;
}

static void load_registers(CPUX86State *env)
{
    uint32_t entry = env->vmx.entry;
    uint64_t cr0 = vmx_read(env, VMX_GUEST_CR0);
    uint64_t efer = guest_efer(env, cr0);

    if (entry & VMX_VM_ENTRY_LOAD_DEBUG_CONTROLS) {
        vmx_set_msr(env, VMX_MSR_DEBUGCTL,
                    vmx_read(env, VMX_GUEST_DEBUGCTL));
        cpu_x86_update_dr7(env, vmx_read(env, VMX_GUEST_DR7));
    }
    if (entry & VMX_VM_ENTRY_LOAD_IA32_PERF_GLOBAL_CTRL) {
        vmx_set_msr(env, MSR_CORE_PERF_GLOBAL_CTRL,
                    vmx_read(env, VMX_GUEST_PERF_GLOBAL_CTRL));
    }
    if (entry & VMX_VM_ENTRY_LOAD_IA32_PAT) {
        env->pat = vmx_read(env, VMX_GUEST_PAT);
    }
    env->sysenter_cs = vmx_read(env, VMX_GUEST_SYSENTER_CS);
    env->sysenter_esp = vmx_read(env, VMX_GUEST_SYSENTER_ESP);
    env->sysenter_eip = vmx_read(env, VMX_GUEST_SYSENTER_EIP);

    cpu_x86_update_cr0(env, cr0);
    cpu_x86_update_cr4(env, vmx_read(env, VMX_GUEST_CR4));
    cpu_x86_update_cr3(env, vmx_read(env, VMX_GUEST_CR3));
    /* After CR0, whose change makes LMA of LME by itself */
    cpu_load_efer(env, efer);

    env->eflags = 0;
    cpu_load_eflags(env, vmx_read(env, VMX_GUEST_RFLAGS),
                    ~(CC_O | CC_S | CC_Z | CC_A | CC_P | CC_C | DF_MASK));
    env->eip = vmx_read(env, VMX_GUEST_RIP);
    env->regs[R_ESP] = vmx_read(env, VMX_GUEST_RSP);
}

static void load_pdptes(CPUX86State *env)
{
    VMXState *v = &env->vmx;
    int i;

    v->pdptes = (v->proc2 & VMX_SECONDARY_EXEC_ENABLE_EPT) &&
                (env->cr[0] & CR0_PG_MASK) && (env->cr[4] & CR4_PAE_MASK) &&
                !(env->efer & MSR_EFER_LMA);
    for (i = 0; v->pdptes && i < ARRAY_SIZE(v->pdpte); i++) {
        v->pdpte[i] = vmx_read(env, VMX_GUEST_PDPTE0 + 2 * i);
    }
}

static void load_non_registers(CPUX86State *env)
{
    uint32_t blocked = vmx_read(env, VMX_GUEST_INTERRUPTIBILITY);

    env->hflags &= ~HF_INHIBIT_IRQ_MASK;
    if (blocked & (VMX_BLOCKED_BY_STI | VMX_BLOCKED_BY_MOV_SS)) {
        env->hflags |= HF_INHIBIT_IRQ_MASK;
    }
    env->hflags2 &= ~HF2_NMI_MASK;
    if (blocked & VMX_BLOCKED_BY_NMI) {
        env->hflags2 |= HF2_NMI_MASK;
    }
    env->tsc_offset = 0;
    if (env->vmx.proc & VMX_CPU_BASED_USE_TSC_OFFSETING) {
        env->tsc_offset = vmx_read(env, VMX_TSC_OFFSET);
    }
    env->vmx.halted = vmx_read(env, VMX_GUEST_ACTIVITY) == 1;
}

/* --- the first event --- */

/*
 * Deliver the event of the VM-entry interruption information.  Does not return
 * but for an external interrupt, which needs no more than this.
 */
static void inject(CPUX86State *env, uint32_t info)
{
    CPUState *cs = env_cpu(env);
    int type = VMX_INFO_TYPE(info), vector = info & 0xff;
    uint32_t length = vmx_read(env, VMX_ENTRY_LENGTH);

    env->vmx.halted = false;
    env->vmx.vectoring = info;
    env->vmx.vectoring_error = vmx_read(env, VMX_ENTRY_ERROR_CODE);
    if (type == VMX_EVENT_INTERRUPT) {
        do_interrupt_x86_hardirq(env, vector, 1);
        return;
    }
    if (type == VMX_EVENT_NMI) {
        env->hflags2 |= HF2_NMI_MASK;
    }
    env->vmx.insn = (uint64_t)length << VMX_INSN_LENGTH_SHIFT;
    env->error_code = env->vmx.vectoring_error;
    env->exception_is_int = type >= VMX_EVENT_INT_N;
    env->exception_next_eip = env->eip + length;
    /* A fault of the delivery may have to become a double fault */
    if (type == VMX_EVENT_EXCEPTION &&
        (vector == EXCP00_DIVZ || (vmx_has_error_code(vector) &&
                                   vector != EXCP11_ALGN))) {
        env->old_exception = vector;
    }
    cs->exception_index = vector;
    cpu_loop_exit(cs);
}

/* Traps that were pending when the guest last exited */
static void pending_debug(CPUX86State *env)
{
    uint32_t pending = vmx_read(env, VMX_GUEST_PENDING_DEBUG);
    uint32_t bits = pending & (VMX_DEBUG_TRAPS | VMX_DEBUG_BS);

    if (!(pending & (VMX_DEBUG_ENABLED | VMX_DEBUG_BS)) ||
        (env->hflags & HF_INHIBIT_IRQ_MASK)) {
        return;
    }
    vmx_check_debug(env, env->dr[6], bits, 0);
    env->dr[6] = (env->dr[6] & ~VMX_DEBUG_TRAPS) | bits;
    raise_exception(env, EXCP01_DB);
}

static void first_event(CPUX86State *env)
{
    CPUState *cs = env_cpu(env);
    uint32_t info = vmx_read(env, VMX_ENTRY_INFO);

    if ((env->vmx.proc & (VMX_CPU_BASED_VIRTUAL_INTR_PENDING |
                          VMX_CPU_BASED_VIRTUAL_NMI_PENDING)) ||
        vmx_timer_expired(env)) {
        bql_lock();
        cpu_interrupt(cs, CPU_INTERRUPT_VIRQ);
        bql_unlock();
    }
    if (info & VMX_INFO_VALID) {
        inject(env, info);
        return;
    }
    pending_debug(env);
    vmx_check_record(env);
    if (env->vmx.halted) {
        cs->halted = 1;
        cs->exception_index = EXCP_HLT;
        cpu_loop_exit(cs);
    }
}

static void enter(CPUX86State *env)
{
    VMXState *v = &env->vmx;
    int wrong = vmx_check_guest(env);
    uint32_t entry;

    v->vectoring = 0;
    v->exit_info = 0;
    env->old_exception = -1;
    if (wrong) {
        vmx_entry_failure(env, VMX_EXIT_GUEST_STATE, wrong - 1);
    }
    load_registers(env);
    load_segments(env);
    load_pdptes(env);
    load_non_registers(env);
    entry = vmx_load_msrs(env, vmx_read(env, VMX_ENTRY_LOAD_LIST),
                          vmx_read(env, VMX_ENTRY_LOAD_COUNT));
    if (entry) {
        vmx_entry_failure(env, VMX_EXIT_MSR_LOAD, entry);
    }
    x86_stl_phys(env_cpu(env), v->vmcs + VMX_REGION_LAUNCHED, 1);
    vmx_set_guest(env, true);
    timer_start(env);
    first_event(env);
}

static int check(CPUX86State *env, bool resume)
{
    bool launched;
    int error;

    if (env->vmx.vmcs == VMX_NO_VMCS) {
        return VMX_FAIL_INVALID;
    }
    if (env->hflags & HF_INHIBIT_IRQ_MASK) {
        return VMX_FAIL_MOV_SS;
    }
    launched = x86_ldl_phys(env_cpu(env), env->vmx.vmcs + VMX_REGION_LAUNCHED);
    if (launched != resume) {
        return resume ? VMX_FAIL_NOT_LAUNCHED : VMX_FAIL_LAUNCHED;
    }
    load_controls(env);
    error = vmx_check_controls(env);
    return error ? error : vmx_check_host(env);
}

void helper_vmx_enter(CPUX86State *env, uint32_t resume, uint32_t length)
{
    int error;

    vmx_begin(env, resume ? VMX_EXIT_VMRESUME : VMX_EXIT_VMLAUNCH, GETPC());
    error = check(env, resume);
    if (!error) {
        enter(env);
        return;
    }
    qemu_log_mask(LOG_GUEST_ERROR, "VM entry refused: error %d\n", error);
    vmx_result(env, error);
    env->eip += length;
    do_end_instruction(env);
}
