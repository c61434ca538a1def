/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMX under TCG: the checks of a VM entry.
 *
 * Source: SDM vol. 3, "Checks on VMX Controls and Host-State Area" and
 * "Checking and Loading Guest State"; the functions follow its order.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "vmx-internal.h"

#define CHECK(condition)      \
    do {                      \
        if (!(condition)) {   \
            return false;     \
        }                     \
    } while (0)

static uint64_t rd(CPUX86State *env, uint32_t field)
{
    return vmx_read(env, field);
}

bool vmx_has_error_code(int vector)
{
    return vector == EXCP08_DBLE ||
           (vector >= EXCP0A_TSS && vector <= EXCP0E_PAGE) ||
           vector == EXCP11_ALGN;
}

static bool is_64_host(CPUX86State *env)
{
    return env->vmx.exit & VMX_VM_EXIT_HOST_ADDR_SPACE_SIZE;
}

static bool is_64_guest(CPUX86State *env)
{
    return env->vmx.entry & VMX_VM_ENTRY_IA32E_MODE;
}

static bool unrestricted(CPUX86State *env)
{
    return env->vmx.proc2 & VMX_SECONDARY_EXEC_UNRESTRICTED_GUEST;
}

/* --- controls --- */

bool vmx_eptp_ok(CPUX86State *env, uint64_t eptp)
{
    uint64_t caps = env->features[FEAT_VMX_EPT_VPID_CAPS];
    uint64_t reserved = 0xf80;

    CHECK((eptp & 7) == 0 || (eptp & 7) == 6);          /* UC or WB */
    CHECK(((eptp >> 3) & 7) == 3);                      /* four levels */
    if (!(caps & MSR_VMX_EPT_AD_BITS)) {
        reserved |= 0x40;
    }
    return !(eptp & reserved) && vmx_address_ok(env, eptp & ~0xfffull, 4096);
}

static bool execution_ok(CPUX86State *env)
{
    VMXState *v = &env->vmx;

    CHECK(vmx_control_ok(env, FEAT_VMX_PINBASED_CTLS, v->pin));
    CHECK(vmx_control_ok(env, FEAT_VMX_PROCBASED_CTLS, v->proc));
    CHECK(vmx_control_ok(env, FEAT_VMX_SECONDARY_CTLS, v->proc2));
    CHECK(v->n_cr3_targets <= ARRAY_SIZE(v->cr3_target));
    if (v->proc & VMX_CPU_BASED_USE_IO_BITMAPS) {
        CHECK(vmx_address_ok(env, v->io_bitmap[0], 4096));
        CHECK(vmx_address_ok(env, v->io_bitmap[1], 4096));
    }
    if (v->proc & VMX_CPU_BASED_USE_MSR_BITMAPS) {
        CHECK(vmx_address_ok(env, v->msr_bitmap, 4096));
    }
    CHECK((v->pin & VMX_PIN_BASED_NMI_EXITING) ||
          !(v->pin & VMX_PIN_BASED_VIRTUAL_NMIS));
    CHECK((v->pin & VMX_PIN_BASED_VIRTUAL_NMIS) ||
          !(v->proc & VMX_CPU_BASED_VIRTUAL_NMI_PENDING));
    CHECK(!(v->proc2 & VMX_SECONDARY_EXEC_ENABLE_VPID) || rd(env, VMX_VPID));
    if (v->proc2 & VMX_SECONDARY_EXEC_ENABLE_EPT) {
        return vmx_eptp_ok(env, v->eptp);
    }
    return !unrestricted(env);
}

static bool msr_list_ok(CPUX86State *env, uint32_t list, uint32_t count)
{
    uint64_t addr = rd(env, list), n = rd(env, count);

    return !n || (vmx_address_ok(env, addr, 16) &&
                  vmx_address_ok(env, addr + 16 * n - 1, 1));
}

static bool exit_controls_ok(CPUX86State *env)
{
    VMXState *v = &env->vmx;

    CHECK(vmx_control_ok(env, FEAT_VMX_EXIT_CTLS, v->exit));
    CHECK((v->pin & VMX_PIN_BASED_VMX_PREEMPTION_TIMER) ||
          !(v->exit & VMX_VM_EXIT_SAVE_VMX_PREEMPTION_TIMER));
    return msr_list_ok(env, VMX_EXIT_STORE_LIST, VMX_EXIT_STORE_COUNT) &&
           msr_list_ok(env, VMX_EXIT_LOAD_LIST, VMX_EXIT_LOAD_COUNT);
}

static bool event_vector_ok(int type, int vector)
{
    switch (type) {
    case VMX_EVENT_NMI:
        return vector == EXCP02_NMI;
    case VMX_EVENT_EXCEPTION:
        return vector < 32;
    case 1: /* reserved */
    case VMX_EVENT_OTHER: /* the monitor trap flag, which there is not */
        return false;
    default:
        return true;
    }
}

static bool event_ok(CPUX86State *env, uint32_t info)
{
    int type = VMX_INFO_TYPE(info), vector = info & 0xff;
    uint64_t length = rd(env, VMX_ENTRY_LENGTH);
    bool protected = !unrestricted(env) ||
                     (rd(env, VMX_GUEST_CR0) & CR0_PE_MASK);
    bool has_code = type == VMX_EVENT_EXCEPTION && protected &&
                    vmx_has_error_code(vector);

    if (!(info & VMX_INFO_VALID)) {
        return true;
    }
    CHECK(event_vector_ok(type, vector));
    CHECK(!!(info & VMX_INFO_ERROR_CODE) == has_code);
    CHECK(!(info & 0x7ffff000));
    CHECK(!has_code || !(rd(env, VMX_ENTRY_ERROR_CODE) & 0xffff0000));
    return type < VMX_EVENT_INT_N ||
           (length <= 15 && (length || (env->features[FEAT_VMX_MISC] &
                                        MSR_VMX_MISC_ZERO_LEN_INJECT)));
}

int vmx_check_controls(CPUX86State *env)
{
    bool ok = execution_ok(env) && exit_controls_ok(env) &&
              vmx_control_ok(env, FEAT_VMX_ENTRY_CTLS, env->vmx.entry) &&
              event_ok(env, rd(env, VMX_ENTRY_INFO)) &&
              msr_list_ok(env, VMX_ENTRY_LOAD_LIST, VMX_ENTRY_LOAD_COUNT);

    return ok ? VMX_OK : VMX_FAIL_CONTROLS;
}

/* --- registers that both have --- */

static bool pat_ok(uint64_t pat)
{
    int i;

    for (i = 0; i < 64; i += 8) {
        uint64_t type = (pat >> i) & 0xff;

        CHECK(type <= 1 || (type >= 4 && type <= 7));
    }
    return true;
}

static bool efer_ok(CPUX86State *env, uint64_t efer)
{
    uint64_t valid = 0;

    if (env->features[FEAT_8000_0001_EDX] & CPUID_EXT2_SYSCALL) {
        valid |= MSR_EFER_SCE;
    }
    if (env->features[FEAT_8000_0001_EDX] & CPUID_EXT2_LM) {
        valid |= MSR_EFER_LME | MSR_EFER_LMA;
    }
    if (env->features[FEAT_8000_0001_EDX] & CPUID_EXT2_NX) {
        valid |= MSR_EFER_NXE;
    }
    if (env->features[FEAT_8000_0001_EDX] & CPUID_EXT2_FFXSR) {
        valid |= MSR_EFER_FFXSR;
    }
    return !(efer & ~valid);
}

/* A bit for each counter, and for the metrics, as CPUID describes them */
static bool perf_global_ctrl_ok(CPUX86State *env, uint64_t value)
{
    const uint32_t has_metrics = 1 << 15;
    uint64_t capabilities = env->features[FEAT_PERF_CAPABILITIES], valid;
    uint32_t eax, ebx, ecx, edx;

    x86_vpmu_save_msr(env, MSR_IA32_PERF_CAPABILITIES, &capabilities);
    cpu_x86_cpuid(env, 0xa, 0, &eax, &ebx, &ecx, &edx);
    valid = (1ull << MIN(32, extract32(eax, 8, 8))) - 1;
    valid |= (ecx | ((1ull << extract32(edx, 0, 5)) - 1)) << 32;
    if (capabilities & has_metrics) {
        valid |= 1ull << 48;
    }
    return !(value & ~valid);
}

static bool cr4_ok(CPUX86State *env, uint64_t cr4)
{
    return !(VMX_CR4_FIXED0 & ~cr4) && !(cr4 & cr4_reserved_bits(env)) &&
           !(cr4 >> 32);
}

/* --- the host's state --- */

static bool host_selectors_ok(CPUX86State *env)
{
    int i;

    for (i = 0; i < 7; i++) {
        CHECK(!(rd(env, VMX_HOST_ES_SELECTOR + 2 * i) & 7));
    }
    return rd(env, VMX_HOST_ES_SELECTOR + 2 * R_CS) &&
           rd(env, VMX_HOST_ES_SELECTOR + 2 * 6) &&
           (is_64_host(env) || rd(env, VMX_HOST_ES_SELECTOR + 2 * R_SS));
}

static bool host_mode_ok(CPUX86State *env)
{
    uint64_t cr4 = rd(env, VMX_HOST_CR4), rip = rd(env, VMX_HOST_RIP);

    if (is_64_host(env)) {
        return (cr4 & CR4_PAE_MASK) && cpu_x86_canonical(env, rip);
    }
    return !is_64_guest(env) && !(cr4 & CR4_PCIDE_MASK) && !(rip >> 32);
}

static bool host_ok(CPUX86State *env)
{
    static const uint16_t linear[] = {
        VMX_HOST_SYSENTER_ESP, VMX_HOST_SYSENTER_EIP, VMX_HOST_FS_BASE,
        VMX_HOST_GS_BASE, VMX_HOST_GDTR_BASE, VMX_HOST_IDTR_BASE,
        VMX_HOST_TR_BASE,
    };
    uint64_t cr0 = rd(env, VMX_HOST_CR0), efer = rd(env, VMX_HOST_EFER);
    int i;

    CHECK(!(VMX_CR0_FIXED0 & ~cr0) && !(cr0 >> 32));
    CHECK(cr4_ok(env, rd(env, VMX_HOST_CR4)));
    CHECK(vmx_address_ok(env, rd(env, VMX_HOST_CR3), 1));
    for (i = 0; i < ARRAY_SIZE(linear); i++) {
        CHECK(cpu_x86_canonical(env, rd(env, linear[i])));
    }
    if (env->vmx.exit & VMX_VM_EXIT_LOAD_IA32_PERF_GLOBAL_CTRL) {
        CHECK(perf_global_ctrl_ok(env, rd(env, VMX_HOST_PERF_GLOBAL_CTRL)));
    }
    if (env->vmx.exit & VMX_VM_EXIT_LOAD_IA32_PAT) {
        CHECK(pat_ok(rd(env, VMX_HOST_PAT)));
    }
    if (env->vmx.exit & VMX_VM_EXIT_LOAD_IA32_EFER) {
        CHECK(efer_ok(env, efer) &&
              !!(efer & MSR_EFER_LMA) == is_64_host(env) &&
              !!(efer & MSR_EFER_LME) == is_64_host(env));
    }
    return host_selectors_ok(env) && host_mode_ok(env);
}

int vmx_check_host(CPUX86State *env)
{
    return host_ok(env) ? VMX_OK : VMX_FAIL_HOST_STATE;
}

/* --- the guest's state --- */

static bool guest_control_registers_ok(CPUX86State *env)
{
    uint64_t cr0 = rd(env, VMX_GUEST_CR0), cr4 = rd(env, VMX_GUEST_CR4);
    uint64_t fixed = VMX_CR0_FIXED0;

    if (unrestricted(env)) {
        fixed &= ~(CR0_PE_MASK | CR0_PG_MASK);
    }
    CHECK(!(fixed & ~cr0) && !(cr0 >> 32));
    CHECK(!(cr0 & CR0_PG_MASK) || (cr0 & CR0_PE_MASK));
    CHECK(cr4_ok(env, cr4));
    if (is_64_guest(env)) {
        CHECK((cr0 & CR0_PG_MASK) && (cr4 & CR4_PAE_MASK));
    } else {
        CHECK(!(cr4 & CR4_PCIDE_MASK));
    }
    return vmx_address_ok(env, rd(env, VMX_GUEST_CR3), 1);
}

static bool guest_msrs_ok(CPUX86State *env)
{
    uint32_t entry = env->vmx.entry;
    uint64_t efer = rd(env, VMX_GUEST_EFER);

    if (entry & VMX_VM_ENTRY_LOAD_DEBUG_CONTROLS) {
        CHECK(!(rd(env, VMX_GUEST_DEBUGCTL) & ~0xffc7ull));
        CHECK(!(rd(env, VMX_GUEST_DR7) >> 32));
    }
    CHECK(cpu_x86_canonical(env, rd(env, VMX_GUEST_SYSENTER_ESP)));
    CHECK(cpu_x86_canonical(env, rd(env, VMX_GUEST_SYSENTER_EIP)));
    if (entry & VMX_VM_ENTRY_LOAD_IA32_PERF_GLOBAL_CTRL) {
        CHECK(perf_global_ctrl_ok(env, rd(env, VMX_GUEST_PERF_GLOBAL_CTRL)));
    }
    if (entry & VMX_VM_ENTRY_LOAD_IA32_PAT) {
        CHECK(pat_ok(rd(env, VMX_GUEST_PAT)));
    }
    if (entry & VMX_VM_ENTRY_LOAD_IA32_EFER) {
        CHECK(efer_ok(env, efer));
        CHECK(!!(efer & MSR_EFER_LMA) == is_64_guest(env));
        CHECK(!(rd(env, VMX_GUEST_CR0) & CR0_PG_MASK) ||
              !!(efer & MSR_EFER_LME) == is_64_guest(env));
    }
    return true;
}

/* A segment as the VMCS has it */
struct segment {
    uint16_t selector;
    uint32_t limit, rights;
    uint64_t base;
    bool usable;
};

static struct segment segment(CPUX86State *env, int n)
{
    struct segment s = {
        .selector = rd(env, VMX_GUEST_ES_SELECTOR + 2 * n),
        .limit = rd(env, VMX_GUEST_ES_LIMIT + 2 * n),
        .rights = rd(env, VMX_GUEST_ES_RIGHTS + 2 * n),
        .base = rd(env, VMX_GUEST_ES_BASE + 2 * n),
    };

    s.usable = !(s.rights & VMX_UNUSABLE);
    return s;
}

#define TYPE(s)    ((s).rights & 15)
#define CODE(s)    ((s).rights & (1 << 4))      /* code or data: S */
#define DPL(s)     (((s).rights >> 5) & 3)
#define PRESENT(s) ((s).rights & (1 << 7))
#define LONG(s)    ((s).rights & (1 << 13))
#define DB(s)      ((s).rights & (1 << 14))
#define GRANULAR(s) ((s).rights & (1 << 15))
#define RPL(s)     ((s).selector & 3)
#define TI(s)      ((s).selector & 4)

static bool limit_fits(const struct segment *s)
{
    return !((s->limit & 0xfff) != 0xfff && GRANULAR(*s)) &&
           !((s->limit & 0xfff00000) && !GRANULAR(*s));
}

static bool no_reserved_rights(const struct segment *s)
{
    return !(s->rights & 0xfffe0f00);
}

static bool vm86_segments_ok(CPUX86State *env)
{
    int i;

    for (i = 0; i < 6; i++) {
        struct segment s = segment(env, i);

        CHECK(s.base == (uint64_t)s.selector << 4);
        CHECK(s.limit == 0xffff && s.rights == 0xf3);
    }
    return true;
}

static bool cs_ok(CPUX86State *env, const struct segment *cs,
                  const struct segment *ss)
{
    CHECK(!(cs->base >> 32));
    switch (TYPE(*cs)) {
    case 3:
        CHECK(unrestricted(env) && DPL(*cs) == 0);
        break;
    case 9:
    case 11:
        CHECK(DPL(*cs) == DPL(*ss));
        break;
    case 13:
    case 15:
        CHECK(DPL(*cs) <= DPL(*ss));
        break;
    default:
        return false;
    }
    CHECK(CODE(*cs) && PRESENT(*cs) && no_reserved_rights(cs));
    CHECK(!(is_64_guest(env) && LONG(*cs) && DB(*cs)));
    return limit_fits(cs);
}

static bool ss_ok(CPUX86State *env, const struct segment *ss,
                  const struct segment *cs)
{
    CHECK(unrestricted(env) || RPL(*ss) == RPL(*cs));
    CHECK(unrestricted(env) || DPL(*ss) == RPL(*ss));
    if (TYPE(*cs) == 3 || !(rd(env, VMX_GUEST_CR0) & CR0_PE_MASK)) {
        CHECK(DPL(*ss) == 0);
    }
    if (!ss->usable) {
        return true;
    }
    CHECK(TYPE(*ss) == 3 || TYPE(*ss) == 7);
    CHECK(!(ss->base >> 32));
    return CODE(*ss) && PRESENT(*ss) && no_reserved_rights(ss) &&
           limit_fits(ss);
}

static bool data_ok(CPUX86State *env, int n)
{
    struct segment s = segment(env, n);

    if (n == R_FS || n == R_GS) {
        CHECK(cpu_x86_canonical(env, s.base));
    }
    if (!s.usable) {
        return true;
    }
    CHECK(n == R_FS || n == R_GS || !(s.base >> 32));
    CHECK(TYPE(s) & 1);
    CHECK(!(TYPE(s) & 8) || (TYPE(s) & 2));
    CHECK(unrestricted(env) || TYPE(s) > 11 || DPL(s) >= RPL(s));
    return CODE(s) && PRESENT(s) && no_reserved_rights(&s) && limit_fits(&s);
}

static bool system_segments_ok(CPUX86State *env)
{
    struct segment tr = segment(env, VMX_TR), ldt = segment(env, VMX_LDTR);

    CHECK(!TI(tr) && cpu_x86_canonical(env, tr.base) && tr.usable);
    CHECK(TYPE(tr) == 11 || (TYPE(tr) == 3 && !is_64_guest(env)));
    CHECK(!CODE(tr) && PRESENT(tr) && no_reserved_rights(&tr));
    CHECK(limit_fits(&tr));
    if (ldt.usable) {
        CHECK(!TI(ldt) && cpu_x86_canonical(env, ldt.base));
        CHECK(TYPE(ldt) == 2 && !CODE(ldt) && PRESENT(ldt));
        CHECK(no_reserved_rights(&ldt) && limit_fits(&ldt));
    }
    CHECK(cpu_x86_canonical(env, rd(env, VMX_GUEST_GDTR_BASE)));
    CHECK(cpu_x86_canonical(env, rd(env, VMX_GUEST_IDTR_BASE)));
    return !(rd(env, VMX_GUEST_GDTR_LIMIT) >> 16) &&
           !(rd(env, VMX_GUEST_IDTR_LIMIT) >> 16);
}

static bool segments_ok(CPUX86State *env)
{
    struct segment cs = segment(env, R_CS), ss = segment(env, R_SS);

    if (rd(env, VMX_GUEST_RFLAGS) & VM_MASK) {
        CHECK(vm86_segments_ok(env));
    } else {
        CHECK(cs_ok(env, &cs, &ss) && ss_ok(env, &ss, &cs));
        CHECK(data_ok(env, R_ES) && data_ok(env, R_DS));
        CHECK(data_ok(env, R_FS) && data_ok(env, R_GS));
    }
    return system_segments_ok(env);
}

/*
 * A CPU faults at a branch to an address that is not canonical, TCG at the
 * fetch from there: an exit may be in between, and the guest goes on to its
 * fault.
 */
static bool rip_and_flags_ok(CPUX86State *env)
{
    uint64_t rip = rd(env, VMX_GUEST_RIP), flags = rd(env, VMX_GUEST_RFLAGS);
    uint32_t info = rd(env, VMX_ENTRY_INFO);
    struct segment cs = segment(env, R_CS);

    CHECK((is_64_guest(env) && LONG(cs)) || !(rip >> 32));
    CHECK(!(flags & ~0x3f7fd7ull) && (flags & 2));
    CHECK(!(flags & VM_MASK) ||
          (!is_64_guest(env) && (rd(env, VMX_GUEST_CR0) & CR0_PE_MASK)));
    return !(info & VMX_INFO_VALID) ||
           VMX_INFO_TYPE(info) != VMX_EVENT_INTERRUPT || (flags & IF_MASK);
}

static bool activity_ok(CPUX86State *env, uint32_t blocked, uint32_t info)
{
    struct segment ss = segment(env, R_SS);
    uint64_t activity = rd(env, VMX_GUEST_ACTIVITY);
    int vector = info & 0xff;

    if (!activity) {
        return true;
    }
    CHECK(activity == 1 &&
          (env->features[FEAT_VMX_MISC] & MSR_VMX_MISC_ACTIVITY_HLT));
    CHECK(DPL(ss) == 0);
    CHECK(!(blocked & (VMX_BLOCKED_BY_STI | VMX_BLOCKED_BY_MOV_SS)));
    if (!(info & VMX_INFO_VALID)) {
        return true;
    }
    switch (VMX_INFO_TYPE(info)) {
    case VMX_EVENT_INTERRUPT:
    case VMX_EVENT_NMI:
        return true;
    case VMX_EVENT_EXCEPTION:
        return vector == EXCP01_DB || vector == EXCP12_MCHK;
    default:
        return false;
    }
}

static bool blocking_ok(CPUX86State *env, uint32_t blocked, uint32_t info)
{
    const uint32_t shadow = VMX_BLOCKED_BY_STI | VMX_BLOCKED_BY_MOV_SS;

    CHECK(!(blocked & ~0xfu));
    CHECK((blocked & shadow) != shadow);
    CHECK(!(blocked & VMX_BLOCKED_BY_STI) ||
          (rd(env, VMX_GUEST_RFLAGS) & IF_MASK));
    CHECK(!(blocked & VMX_BLOCKED_BY_SMI));
    if (!(info & VMX_INFO_VALID)) {
        return true;
    }
    if (VMX_INFO_TYPE(info) == VMX_EVENT_INTERRUPT) {
        return !(blocked & shadow);
    }
    if (VMX_INFO_TYPE(info) == VMX_EVENT_NMI) {
        CHECK(!(blocked & VMX_BLOCKED_BY_MOV_SS));
        return !(env->vmx.pin & VMX_PIN_BASED_VIRTUAL_NMIS) ||
               !(blocked & VMX_BLOCKED_BY_NMI);
    }
    return true;
}

static bool pending_debug_ok(CPUX86State *env, uint32_t blocked)
{
    const uint32_t shadow = VMX_BLOCKED_BY_STI | VMX_BLOCKED_BY_MOV_SS;
    uint64_t pending = rd(env, VMX_GUEST_PENDING_DEBUG);
    bool steps = (rd(env, VMX_GUEST_RFLAGS) & TF_MASK) &&
                 !(rd(env, VMX_GUEST_DEBUGCTL) & VMX_DEBUGCTL_BTF);

    CHECK(!(pending & ~(uint64_t)(VMX_DEBUG_TRAPS | VMX_DEBUG_ENABLED |
                                  VMX_DEBUG_BS)));
    if ((blocked & shadow) || rd(env, VMX_GUEST_ACTIVITY) == 1) {
        CHECK(!!(pending & VMX_DEBUG_BS) == steps);
    }
    return true;
}

static bool non_register_state_ok(CPUX86State *env)
{
    uint32_t blocked = rd(env, VMX_GUEST_INTERRUPTIBILITY);
    uint32_t info = rd(env, VMX_ENTRY_INFO);

    return activity_ok(env, blocked, info) && blocking_ok(env, blocked, info) &&
           pending_debug_ok(env, blocked);
}

static bool link_ok(CPUX86State *env)
{
    uint64_t link = rd(env, VMX_LINK_POINTER);

    return link == VMX_NO_VMCS ||
           (vmx_address_ok(env, link, 4096) && link != env->vmx.vmcs &&
            x86_ldl_phys(env_cpu(env), link) == VMX_REVISION);
}

/* Reserved bits of the entries that PAE paging loads with CR3 */
static bool pdptes_ok(CPUX86State *env)
{
    uint64_t reserved = 0x1e6 | ~MAKE_64BIT_MASK(0,
                                                 env_archcpu(env)->phys_bits);
    int i;

    if (is_64_guest(env) || !(rd(env, VMX_GUEST_CR0) & CR0_PG_MASK) ||
        !(rd(env, VMX_GUEST_CR4) & CR4_PAE_MASK)) {
        return true;
    }
    for (i = 0; i < 4; i++) {
        uint64_t pdpte;

        if (env->vmx.proc2 & VMX_SECONDARY_EXEC_ENABLE_EPT) {
            pdpte = rd(env, VMX_GUEST_PDPTE0 + 2 * i);
        } else {
            pdpte = x86_ldq_phys(env_cpu(env),
                                 (rd(env, VMX_GUEST_CR3) & 0xffffffe0) + 8 * i);
        }
        CHECK(!(pdpte & PG_PRESENT_MASK) || !(pdpte & reserved));
    }
    return true;
}

int vmx_check_guest(CPUX86State *env)
{
    enum { BAD_STATE = 1, BAD_PDPTE = 3, BAD_LINK = 5 };

    if (!guest_control_registers_ok(env) || !guest_msrs_ok(env) ||
        !segments_ok(env) || !rip_and_flags_ok(env) ||
        !non_register_state_ok(env)) {
        return BAD_STATE;
    }
    if (!link_ok(env)) {
        return BAD_LINK;
    }
    return pdptes_ok(env) ? 0 : BAD_PDPTE;
}
