/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMX under TCG: the way from a guest to its hypervisor.
 *
 * vmx_vmexit() notes why and leaves the guest's code; the main loop then calls
 * vmx_do_vmexit(), which does what is left.
 *
 * Source: SDM vol. 3, "VM Exits".
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "system/runstate.h"
#include "cpu.h"
#include "exec/cputlb.h"
#include "vmx-internal.h"

#define ENTRY_FAILURE (1u << 31)

static G_NORETURN void leave(CPUX86State *env, uint32_t reason,
                             uint64_t qualification)
{
    CPUState *cs = env_cpu(env);

    qemu_log_mask(CPU_LOG_INT, "vmexit %08x qualification %" PRIx64
                  " rip " TARGET_FMT_lx "\n", reason, qualification, env->eip);
    env->vmx.exit_reason = reason;
    env->vmx.exit_qualification = qualification;
    env->old_exception = -1;
    cs->exception_index = EXCP_VMEXIT;
    cpu_loop_exit(cs);
}

G_NORETURN void vmx_vmexit(CPUX86State *env, uint32_t reason,
                           uint64_t qualification, uintptr_t ra)
{
    cpu_restore_state(env_cpu(env), ra);
    leave(env, reason, qualification);
}

G_NORETURN void vmx_entry_failure(CPUX86State *env, uint32_t reason,
                                  uint64_t qualification)
{
    leave(env, reason | ENTRY_FAILURE, qualification);
}

/*
 * The processor cannot go on.  Hardware shuts down until it is reset, as after
 * a triple fault.
 */
static void vmx_abort(CPUX86State *env, uint32_t indicator)
{
    CPUState *cs = env_cpu(env);

    qemu_log_mask(LOG_GUEST_ERROR, "VMX abort %u\n", indicator);
    x86_stl_phys(cs, env->vmx.vmcs + VMX_REGION_ABORT, indicator);
    env->vmx.on = false;
    cs->halted = 1;
    qemu_system_reset_request(SHUTDOWN_CAUSE_GUEST_RESET);
}

enum {
    ABORT_MSR_STORE = 1,
    ABORT_HOST_STATE = 2,       /* the PDPTEs, says hardware */
    ABORT_MSR_LOAD = 4,
};

/* --- why --- */

static void record(CPUX86State *env)
{
    VMXState *v = &env->vmx;

    vmx_write(env, VMX_EXIT_REASON, v->exit_reason);
    vmx_write(env, VMX_EXIT_QUALIFICATION, v->exit_qualification);
    if (v->exit_reason & ENTRY_FAILURE) {
        return;
    }
    vmx_write(env, VMX_EXIT_INFO, v->exit_info);
    vmx_write(env, VMX_EXIT_ERROR_CODE, v->exit_error);
    vmx_write(env, VMX_VECTORING_INFO, v->vectoring);
    vmx_write(env, VMX_VECTORING_ERROR_CODE, v->vectoring_error);
    vmx_write(env, VMX_EXIT_LENGTH, vmx_insn_length(v->insn));
    vmx_write(env, VMX_EXIT_INSTRUCTION, (uint32_t)v->insn & ~VMX_INSN_PRIVATE);
    vmx_write(env, VMX_GUEST_PHYSICAL_ADDRESS, v->exit_gpa);
    vmx_write(env, VMX_GUEST_LINEAR_ADDRESS, v->exit_gla);
    vmx_write(env, VMX_ENTRY_INFO,
              vmx_read(env, VMX_ENTRY_INFO) & ~VMX_INFO_VALID);
}

/* --- the guest's state --- */

static void save_segment(CPUX86State *env, int n, const SegmentCache *sc,
                         uint32_t more)
{
    uint32_t rights = ((sc->flags >> 8) & 0xf0ff) | more;

    if (!(sc->flags & DESC_P_MASK)) {
        rights |= VMX_UNUSABLE;
    }
    vmx_write(env, VMX_GUEST_ES_SELECTOR + 2 * n, sc->selector);
    vmx_write(env, VMX_GUEST_ES_BASE + 2 * n, sc->base);
    vmx_write(env, VMX_GUEST_ES_LIMIT + 2 * n, sc->limit);
    vmx_write(env, VMX_GUEST_ES_RIGHTS + 2 * n, rights);
}

static void save_segments(CPUX86State *env)
{
    int i;

    /* Loading a descriptor marks it as accessed, which QEMU does not */
    for (i = 0; i < 6; i++) {
        save_segment(env, i, &env->segs[i],
                     env->segs[i].flags & DESC_P_MASK ? DESC_A_MASK >> 8 : 0);
    }
    save_segment(env, VMX_LDTR, &env->ldt, 0);
    save_segment(env, VMX_TR, &env->tr, DESC_TSS_BUSY_MASK >> 8);
    vmx_write(env, VMX_GUEST_GDTR_BASE, env->gdt.base);
    vmx_write(env, VMX_GUEST_GDTR_LIMIT, env->gdt.limit);
    vmx_write(env, VMX_GUEST_IDTR_BASE, env->idt.base);
    vmx_write(env, VMX_GUEST_IDTR_LIMIT, env->idt.limit);
}

static void save_msrs(CPUX86State *env)
{
    uint32_t exit = env->vmx.exit;
    uint64_t debugctl = 0, global = 0;

    if (exit & VMX_VM_EXIT_SAVE_DEBUG_CONTROLS) {
        x86_vpmu_save_msr(env, VMX_MSR_DEBUGCTL, &debugctl);
        vmx_write(env, VMX_GUEST_DEBUGCTL, debugctl);
        vmx_write(env, VMX_GUEST_DR7, env->dr[7]);
    }
    if (exit & VMX_VM_EXIT_SAVE_IA32_PERF_GLOBAL_CTRL) {
        x86_vpmu_save_msr(env, MSR_CORE_PERF_GLOBAL_CTRL, &global);
        vmx_write(env, VMX_GUEST_PERF_GLOBAL_CTRL, global);
    }
    if (exit & VMX_VM_EXIT_SAVE_IA32_PAT) {
        vmx_write(env, VMX_GUEST_PAT, env->pat);
    }
    if (exit & VMX_VM_EXIT_SAVE_IA32_EFER) {
        vmx_write(env, VMX_GUEST_EFER, env->efer);
    }
    vmx_write(env, VMX_GUEST_SYSENTER_CS, env->sysenter_cs);
    vmx_write(env, VMX_GUEST_SYSENTER_ESP, env->sysenter_esp);
    vmx_write(env, VMX_GUEST_SYSENTER_EIP, env->sysenter_eip);
}

/* An unrestricted guest changes its mode without an exit */
static void save_mode(CPUX86State *env)
{
    uint32_t entry = vmx_read(env, VMX_ENTRY_CONTROLS);

    entry &= ~VMX_VM_ENTRY_IA32E_MODE;
    if (env->efer & MSR_EFER_LMA) {
        entry |= VMX_VM_ENTRY_IA32E_MODE;
    }
    vmx_write(env, VMX_ENTRY_CONTROLS, entry);
}

static void save_pdptes(CPUX86State *env)
{
    int i;

    if (!(env->vmx.proc2 & VMX_SECONDARY_EXEC_ENABLE_EPT) ||
        !(env->cr[0] & CR0_PG_MASK) || !(env->cr[4] & CR4_PAE_MASK) ||
        (env->efer & MSR_EFER_LMA)) {
        return;
    }
    if (env->vmx.pdptes) {
        return; /* the fields still hold them */
    }
    for (i = 0; i < 4; i++) {
        uint64_t *pdpte;
        hwaddr at = (env->cr[3] & 0xffffffe0) + 8 * i;
        int flags = probe_access_full_mmu(env, at, 0, MMU_DATA_LOAD,
                                          MMU_NESTED_IDX, (void **)&pdpte,
                                          NULL);

        if (!(flags & TLB_INVALID_MASK) && pdpte) {
            vmx_write(env, VMX_GUEST_PDPTE0 + 2 * i, ldq_p(pdpte));
        }
    }
}

static void save_non_registers(CPUX86State *env)
{
    bool btf = vmx_read(env, VMX_GUEST_DEBUGCTL) & VMX_DEBUGCTL_BTF;
    uint32_t blocked = 0, pending = 0;

    if (env->hflags & HF_INHIBIT_IRQ_MASK) {
        /* Only MOV SS does so while interrupts are off */
        blocked = env->eflags & IF_MASK ? VMX_BLOCKED_BY_STI
                                        : VMX_BLOCKED_BY_MOV_SS;
    }
    if ((blocked || env->vmx.halted) && (env->eflags & TF_MASK) && !btf) {
        pending = VMX_DEBUG_BS;
    }
    if (env->hflags2 & HF2_NMI_MASK) {
        blocked |= VMX_BLOCKED_BY_NMI;
    }
    vmx_write(env, VMX_GUEST_INTERRUPTIBILITY, blocked);
    vmx_write(env, VMX_GUEST_ACTIVITY, env->vmx.halted);
    vmx_write(env, VMX_GUEST_PENDING_DEBUG, pending);
    if (env->vmx.exit & VMX_VM_EXIT_SAVE_VMX_PREEMPTION_TIMER) {
        uint64_t now = cpu_get_tsc(env), end = env->vmx.timer_end;

        vmx_write(env, VMX_PREEMPTION_TIMER,
                  now < end ? (end - now) >> VMX_TIMER_SHIFT : 0);
    }
}

static void save_guest(CPUX86State *env)
{
    vmx_write(env, VMX_GUEST_CR0, env->cr[0]);
    vmx_write(env, VMX_GUEST_CR3, env->cr[3]);
    vmx_write(env, VMX_GUEST_CR4, env->cr[4]);
    vmx_write(env, VMX_GUEST_RIP, env->eip);
    vmx_write(env, VMX_GUEST_RSP, env->regs[R_ESP]);
    vmx_write(env, VMX_GUEST_RFLAGS, cpu_compute_eflags(env));
    save_segments(env);
    save_msrs(env);
    save_mode(env);
    save_pdptes(env);
    save_non_registers(env);
}

/* --- the host's state --- */

static bool is_64_host(CPUX86State *env)
{
    return env->vmx.exit & VMX_VM_EXIT_HOST_ADDR_SPACE_SIZE;
}

static uint64_t host_efer(CPUX86State *env)
{
    uint64_t efer = env->efer & ~(uint64_t)(MSR_EFER_LMA | MSR_EFER_LME);

    if (env->vmx.exit & VMX_VM_EXIT_LOAD_IA32_EFER) {
        return vmx_read(env, VMX_HOST_EFER);
    }
    return is_64_host(env) ? efer | MSR_EFER_LMA | MSR_EFER_LME : efer;
}

static void load_registers(CPUX86State *env)
{
    uint32_t exit = env->vmx.exit;

    cpu_x86_update_dr7(env, DR7_FIXED_1);
    vmx_set_msr(env, VMX_MSR_DEBUGCTL, 0);
    if (exit & VMX_VM_EXIT_LOAD_IA32_PERF_GLOBAL_CTRL) {
        vmx_set_msr(env, MSR_CORE_PERF_GLOBAL_CTRL,
                    vmx_read(env, VMX_HOST_PERF_GLOBAL_CTRL));
    }
    if (exit & VMX_VM_EXIT_LOAD_IA32_PAT) {
        env->pat = vmx_read(env, VMX_HOST_PAT);
    }
    env->sysenter_cs = vmx_read(env, VMX_HOST_SYSENTER_CS);
    env->sysenter_esp = vmx_read(env, VMX_HOST_SYSENTER_ESP);
    env->sysenter_eip = vmx_read(env, VMX_HOST_SYSENTER_EIP);

    cpu_x86_update_cr0(env, vmx_read(env, VMX_HOST_CR0));
    cpu_x86_update_cr4(env, vmx_read(env, VMX_HOST_CR4));
    cpu_x86_update_cr3(env, vmx_read(env, VMX_HOST_CR3));
    cpu_load_efer(env, host_efer(env));

    env->eflags = 0;
    cpu_load_eflags(env, 0, ~(CC_O | CC_S | CC_Z | CC_A | CC_P | CC_C |
                              DF_MASK));
    env->eip = vmx_read(env, VMX_HOST_RIP);
    env->regs[R_ESP] = vmx_read(env, VMX_HOST_RSP);
}

static void load_segment(CPUX86State *env, int n, uint64_t base, uint32_t flags)
{
    uint16_t selector = vmx_read(env, VMX_HOST_ES_SELECTOR + 2 * n);

    cpu_x86_load_seg_cache(env, n, selector, base, UINT32_MAX,
                           selector ? flags : 0);
}

static void load_segments(CPUX86State *env)
{
    const uint32_t common = DESC_G_MASK | DESC_P_MASK | DESC_S_MASK |
                            DESC_A_MASK;
    const uint32_t data = common | DESC_B_MASK | DESC_W_MASK;
    const uint32_t code = common | DESC_CS_MASK | DESC_R_MASK;

    load_segment(env, R_CS, 0,
                 code | (is_64_host(env) ? DESC_L_MASK : DESC_B_MASK));
    load_segment(env, R_SS, 0, data);
    load_segment(env, R_DS, 0, data);
    load_segment(env, R_ES, 0, data);
    load_segment(env, R_FS, vmx_read(env, VMX_HOST_FS_BASE), data);
    load_segment(env, R_GS, vmx_read(env, VMX_HOST_GS_BASE), data);
    env->ldt = (SegmentCache) { };
    env->tr = (SegmentCache) {
        .selector = vmx_read(env, VMX_HOST_ES_SELECTOR + 2 * 6),
        .base = vmx_read(env, VMX_HOST_TR_BASE),
        .limit = 0x67,
        .flags = DESC_P_MASK | 9 << DESC_TYPE_SHIFT,
    };
    env->gdt.base = vmx_read(env, VMX_HOST_GDTR_BASE);
    env->gdt.limit = 0xffff;
    env->idt.base = vmx_read(env, VMX_HOST_IDTR_BASE);
    env->idt.limit = 0xffff;
}

/*
 * NMIs are blocked after an exit that one of them caused.  Otherwise the
 * guest's blocking was a virtual one, or it goes on.
 */
static void block_nmis(CPUX86State *env)
{
    VMXState *v = &env->vmx;

    if (v->exit_reason == VMX_EXIT_EXCEPTION &&
        VMX_INFO_TYPE(v->exit_info) == VMX_EVENT_NMI) {
        env->hflags2 |= HF2_NMI_MASK;
    } else if (v->pin & VMX_PIN_BASED_VIRTUAL_NMIS) {
        env->hflags2 &= ~HF2_NMI_MASK;
    }
}

void vmx_do_vmexit(CPUX86State *env)
{
    CPUState *cs = env_cpu(env);
    VMXState *v = &env->vmx;
    bool failure = v->exit_reason & ENTRY_FAILURE;

    record(env);
    if (!failure) {
        save_guest(env);
        /* A list stores the TSC as the host has it */
        env->tsc_offset = 0;
        if (vmx_store_msrs(env, vmx_read(env, VMX_EXIT_STORE_LIST),
                           vmx_read(env, VMX_EXIT_STORE_COUNT))) {
            vmx_abort(env, ABORT_MSR_STORE);
            return;
        }
        block_nmis(env);
    }
    vmx_timer_stop(env);
    cs->halted = 0;
    cs->interrupt_request &= ~CPU_INTERRUPT_VIRQ;
    env->hflags &= ~HF_INHIBIT_IRQ_MASK;
    env->tsc_offset = 0;
    v->halted = false;
    v->pdptes = false;
    v->vectoring = 0;
    v->exit_info = 0;
    vmx_set_guest(env, false);

    /* Another CPU may have written to it since the entry's checks */
    if (vmx_check_host(env)) {
        vmx_abort(env, ABORT_HOST_STATE);
        return;
    }
    load_registers(env);
    load_segments(env);
    if (vmx_load_msrs(env, vmx_read(env, VMX_EXIT_LOAD_LIST),
                      vmx_read(env, VMX_EXIT_LOAD_COUNT))) {
        vmx_abort(env, ABORT_MSR_LOAD);
    }
}
