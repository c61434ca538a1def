/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMX under TCG: migration.
 *
 * The VMCS is in the guest's memory, which moves by itself.  This is the rest
 * of what a CPU in VMX operation knows.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "cpu.h"
#include "migration/cpu.h"
#include "vmx-internal.h"

static bool vmx_needed(void *opaque)
{
    X86CPU *cpu = opaque;

    return tcg_enabled() && cpu->env.vmx.on;
}

/* HF_GUEST_MASK and HF2_NPT_MASK say the same of any guest, or nothing holds */
static int vmx_post_load(void *opaque, int version_id)
{
    X86CPU *cpu = opaque;
    CPUX86State *env = &cpu->env;

    if (!cpu_has_vmx(env) || (env->vmx.guest && env->vmx.smm_guest) ||
        env->vmx.guest != !!(env->hflags & HF_GUEST_MASK) ||
        env->vmx.n_cr3_targets > ARRAY_SIZE(env->vmx.cr3_target)) {
        return -EINVAL;
    }
    if (env->vmx.guest) {
        vmx_timer_arm(env);
        if (vmx_timer_expired(env) ||
            (env->vmx.proc & (VMX_CPU_BASED_VIRTUAL_INTR_PENDING |
                              VMX_CPU_BASED_VIRTUAL_NMI_PENDING))) {
            cpu_interrupt(CPU(cpu), CPU_INTERRUPT_VIRQ);
        }
    }
    return 0;
}

const VMStateDescription vmstate_vmx_tcg = {
    .name = "cpu/vmx_tcg",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = vmx_needed,
    .post_load = vmx_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(env.vmx.on, X86CPU),
        VMSTATE_BOOL(env.vmx.guest, X86CPU),
        VMSTATE_BOOL(env.vmx.halted, X86CPU),
        VMSTATE_BOOL(env.vmx.smm_guest, X86CPU),
        VMSTATE_UINT64(env.vmx.region, X86CPU),
        VMSTATE_UINT64(env.vmx.vmcs, X86CPU),
        VMSTATE_UINT32(env.vmx.pin, X86CPU),
        VMSTATE_UINT32(env.vmx.proc, X86CPU),
        VMSTATE_UINT32(env.vmx.proc2, X86CPU),
        VMSTATE_UINT32(env.vmx.exit, X86CPU),
        VMSTATE_UINT32(env.vmx.entry, X86CPU),
        VMSTATE_UINT32(env.vmx.exceptions, X86CPU),
        VMSTATE_UINT32(env.vmx.pf_mask, X86CPU),
        VMSTATE_UINT32(env.vmx.pf_match, X86CPU),
        VMSTATE_UINT64(env.vmx.cr0_mask, X86CPU),
        VMSTATE_UINT64(env.vmx.cr0_shadow, X86CPU),
        VMSTATE_UINT64(env.vmx.cr4_mask, X86CPU),
        VMSTATE_UINT64(env.vmx.cr4_shadow, X86CPU),
        VMSTATE_UINT64_ARRAY(env.vmx.cr3_target, X86CPU, 4),
        VMSTATE_UINT32(env.vmx.n_cr3_targets, X86CPU),
        VMSTATE_UINT64_ARRAY(env.vmx.io_bitmap, X86CPU, 2),
        VMSTATE_UINT64(env.vmx.msr_bitmap, X86CPU),
        VMSTATE_UINT64(env.vmx.eptp, X86CPU),
        VMSTATE_UINT64_ARRAY(env.vmx.pdpte, X86CPU, 4),
        VMSTATE_BOOL(env.vmx.pdptes, X86CPU),
        VMSTATE_UINT64(env.vmx.timer_end, X86CPU),
        VMSTATE_UINT32(env.vmx.vectoring, X86CPU),
        VMSTATE_UINT32(env.vmx.vectoring_error, X86CPU),
        VMSTATE_END_OF_LIST()
    }
};

void vmx_unrealize(X86CPU *cpu)
{
    if (cpu->vmx_timer) {
        timer_free(cpu->vmx_timer);
        cpu->vmx_timer = NULL;
    }
}
