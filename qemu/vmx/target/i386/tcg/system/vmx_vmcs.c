/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMX under TCG: the instructions that make, choose and change a VMCS.
 *
 * A VMCS is in guest memory, always: nothing is cached, so VMCLEAR has nothing
 * to write back and migration nothing to save.
 *
 * Source: SDM vol. 3, "VMX Instruction Reference".
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "exec/cputlb.h"
#include "vmx-internal.h"

enum { WIDTH_16, WIDTH_64, WIDTH_32, WIDTH_NATURAL };
enum { TYPE_CONTROL, TYPE_READ_ONLY, TYPE_GUEST, TYPE_HOST };

#define FIELD_IS_HIGH(field) ((field) & 1)
#define FIELD_INDEX(field)   (((field) >> 1) & 0x1ff)
#define FIELD_TYPE(field)    (((field) >> 10) & 3)
#define FIELD_WIDTH(field)   (((field) >> 13) & 3)

/* The fields that exist, a bit for each index, by width and type */
static const uint32_t fields[4][4] = {
    [WIDTH_16] = {
        [TYPE_CONTROL] = 0x00000001,    /* VPID */
        [TYPE_GUEST] = 0x000000ff,
        [TYPE_HOST] = 0x0000007f,
    },
    [WIDTH_64] = {
        [TYPE_CONTROL] = 0x0000217f,    /* no PML, no APIC pages */
        [TYPE_READ_ONLY] = 0x00000001,
        [TYPE_GUEST] = 0x000001ff,
        [TYPE_HOST] = 0x00000007,
    },
    [WIDTH_32] = {
        [TYPE_CONTROL] = 0x0000bfff,    /* no TPR threshold, no PLE */
        [TYPE_READ_ONLY] = 0x000000ff,
        [TYPE_GUEST] = 0x00bfffff,
        [TYPE_HOST] = 0x00000001,
    },
    [WIDTH_NATURAL] = {
        [TYPE_CONTROL] = 0x000000ff,
        [TYPE_READ_ONLY] = 0x0000003f,
        [TYPE_GUEST] = 0x000fffff,
        [TYPE_HOST] = 0x00000fff,
    },
};

/*
 * A field has 8 bytes, at a place that its encoding gives.  The first 256
 * bytes are the header: 16-bit read-only fields, whose place that would be, do
 * not exist.
 */
static hwaddr field_offset(uint32_t field)
{
    int row = FIELD_WIDTH(field) << 2 | (FIELD_TYPE(field) ^ TYPE_READ_ONLY);

    return (row * 32 + FIELD_INDEX(field)) * 8;
}

static bool field_exists(uint64_t field)
{
    return !(field & ~0x6fffull) && FIELD_INDEX(field) < 32 &&
           (fields[FIELD_WIDTH(field)][FIELD_TYPE(field)] &
            (1u << FIELD_INDEX(field))) &&
           (!FIELD_IS_HIGH(field) || FIELD_WIDTH(field) == WIDTH_64);
}

uint64_t vmx_read(CPUX86State *env, uint32_t field)
{
    return x86_ldq_phys(env_cpu(env), env->vmx.vmcs + field_offset(field));
}

void vmx_write(CPUX86State *env, uint32_t field, uint64_t value)
{
    x86_stq_phys(env_cpu(env), env->vmx.vmcs + field_offset(field), value);
}

bool vmx_address_ok(CPUX86State *env, uint64_t addr, uint64_t align)
{
    return !(addr & (align - 1)) && !(addr >> env_archcpu(env)->phys_bits);
}

void vmx_result(CPUX86State *env, int error)
{
    uint32_t flags = 0;

    if (error && (error == VMX_FAIL_INVALID || env->vmx.vmcs == VMX_NO_VMCS)) {
        flags = CC_C;
    } else if (error) {
        vmx_write(env, VMX_INSTRUCTION_ERROR, error);
        flags = CC_Z;
    }
    env->cc_src = flags;
    env->cc_op = CC_OP_EFLAGS;
}

static bool cr_ok(CPUX86State *env)
{
    return !(VMX_CR0_FIXED0 & ~env->cr[0]) && !(VMX_CR4_FIXED0 & ~env->cr[4]);
}

static int vmxon(CPUX86State *env, uint64_t region)
{
    if (!vmx_address_ok(env, region, 4096) ||
        x86_ldl_phys(env_cpu(env), region + VMX_REGION_REVISION) !=
        VMX_REVISION) {
        return VMX_FAIL_INVALID;
    }
    env->vmx = (VMXState) {
        .on = true,
        .region = region,
        .vmcs = VMX_NO_VMCS,
    };
    return VMX_OK;
}

void helper_vmxon(CPUX86State *env, target_ulong addr)
{
    const uint32_t enabled = FEATURE_CONTROL_LOCKED |
                             FEATURE_CONTROL_VMXON_ENABLED_OUTSIDE_SMX;
    uintptr_t ra = GETPC();

    if (env->vmx.on) {
        vmx_begin(env, VMX_EXIT_VMXON, ra);
        vmx_result(env, VMX_FAIL_VMXON_IN_ROOT);
        return;
    }
    if (!(env->cr[4] & CR4_VMXE_MASK) || !vmx_mode_ok(env)) {
        raise_exception_ra(env, EXCP06_ILLOP, ra);
    }
    if ((env->hflags & HF_CPL_MASK) || !cr_ok(env) ||
        (env->msr_ia32_feature_control & enabled) != enabled) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
    vmx_result(env, vmxon(env, cpu_ldq_data_ra(env, addr, ra)));
}

void helper_vmxoff(CPUX86State *env)
{
    vmx_begin(env, VMX_EXIT_VMXOFF, GETPC());
    vmx_result(env, VMX_OK);
    env->vmx.on = false;
}

void helper_vmclear(CPUX86State *env, target_ulong addr)
{
    uintptr_t ra = GETPC();
    uint64_t vmcs;
    int error = VMX_OK;

    vmx_begin(env, VMX_EXIT_VMCLEAR, ra);
    vmcs = cpu_ldq_data_ra(env, addr, ra);
    if (!vmx_address_ok(env, vmcs, 4096)) {
        error = VMX_FAIL_VMCLEAR_ADDRESS;
    } else if (vmcs == env->vmx.region) {
        error = VMX_FAIL_VMCLEAR_VMXON;
    } else {
        x86_stl_phys(env_cpu(env), vmcs + VMX_REGION_LAUNCHED, 0);
    }
    vmx_result(env, error);
    if (!error && vmcs == env->vmx.vmcs) {
        env->vmx.vmcs = VMX_NO_VMCS;
    }
}

void helper_vmptrld(CPUX86State *env, target_ulong addr)
{
    uintptr_t ra = GETPC();
    uint64_t vmcs;
    int error = VMX_OK;

    vmx_begin(env, VMX_EXIT_VMPTRLD, ra);
    vmcs = cpu_ldq_data_ra(env, addr, ra);
    if (!vmx_address_ok(env, vmcs, 4096)) {
        error = VMX_FAIL_VMPTRLD_ADDRESS;
    } else if (vmcs == env->vmx.region) {
        error = VMX_FAIL_VMPTRLD_VMXON;
    } else if (x86_ldl_phys(env_cpu(env), vmcs + VMX_REGION_REVISION) !=
               VMX_REVISION) {
        error = VMX_FAIL_VMPTRLD_REVISION;
    }
    vmx_result(env, error);
    if (!error) {
        env->vmx.vmcs = vmcs;
    }
}

void helper_vmptrst(CPUX86State *env, target_ulong addr)
{
    uintptr_t ra = GETPC();

    vmx_begin(env, VMX_EXIT_VMPTRST, ra);
    cpu_stq_data_ra(env, addr, env->vmx.vmcs, ra);
    vmx_result(env, VMX_OK);
}

static int vmread(CPUX86State *env, uint64_t field, uint64_t *value)
{
    if (env->vmx.vmcs == VMX_NO_VMCS) {
        return VMX_FAIL_INVALID;
    }
    if (!field_exists(field)) {
        return VMX_FAIL_NO_FIELD;
    }
    *value = vmx_read(env, field);
    if (FIELD_IS_HIGH(field)) {
        *value >>= 32;
    }
    return VMX_OK;
}

/* To a register, which keeps its value when this fails */
target_ulong helper_vmread(CPUX86State *env, target_ulong field,
                           target_ulong old)
{
    uint64_t value = old;

    vmx_begin(env, VMX_EXIT_VMREAD, GETPC());
    vmx_result(env, vmread(env, field, &value));
    return value;
}

void helper_vmread_mem(CPUX86State *env, target_ulong field, target_ulong addr,
                       uint32_t is_64)
{
    uintptr_t ra = GETPC();
    uint64_t value;
    int error;

    vmx_begin(env, VMX_EXIT_VMREAD, ra);
    error = vmread(env, field, &value);
    if (!error && is_64) {
        cpu_stq_data_ra(env, addr, value, ra);
    } else if (!error) {
        cpu_stl_data_ra(env, addr, value, ra);
    }
    vmx_result(env, error);
}

static int vmwrite(CPUX86State *env, uint64_t field, uint64_t value)
{
    if (env->vmx.vmcs == VMX_NO_VMCS) {
        return VMX_FAIL_INVALID;
    }
    if (!field_exists(field)) {
        return VMX_FAIL_NO_FIELD;
    }
    if (FIELD_TYPE(field) == TYPE_READ_ONLY &&
        !(env->features[FEAT_VMX_MISC] & MSR_VMX_MISC_VMWRITE_VMEXIT)) {
        return VMX_FAIL_READ_ONLY;
    }
    if (FIELD_IS_HIGH(field)) {
        value = (uint32_t)vmx_read(env, field) | value << 32;
    } else if (FIELD_WIDTH(field) == WIDTH_16) {
        value = (uint16_t)value;
    } else if (FIELD_WIDTH(field) == WIDTH_32) {
        value = (uint32_t)value;
    }
    vmx_write(env, field, value);
    return VMX_OK;
}

void helper_vmwrite(CPUX86State *env, target_ulong field, target_ulong value)
{
    vmx_begin(env, VMX_EXIT_VMWRITE, GETPC());
    vmx_result(env, vmwrite(env, field, value));
}

/* The source is read only after everything that could make this exit */
void helper_vmwrite_mem(CPUX86State *env, target_ulong field, target_ulong addr,
                        uint32_t is_64)
{
    uintptr_t ra = GETPC();

    vmx_begin(env, VMX_EXIT_VMWRITE, ra);
    vmx_result(env, vmwrite(env, field,
                            is_64 ? cpu_ldq_data_ra(env, addr, ra)
                                  : cpu_ldl_data_ra(env, addr, ra)));
}

void helper_invept(CPUX86State *env, target_ulong type, target_ulong addr)
{
    uint64_t caps = env->features[FEAT_VMX_EPT_VPID_CAPS], eptp, reserved;
    uintptr_t ra = GETPC();
    int error = VMX_OK;

    if (!(caps & MSR_VMX_EPT_INVEPT)) {
        raise_exception_ra(env, EXCP06_ILLOP, ra);
    }
    vmx_begin(env, VMX_EXIT_INVEPT, ra);
    eptp = cpu_ldq_data_ra(env, addr, ra);
    reserved = cpu_ldq_data_ra(env, addr + 8, ra);
    if (type == 1 && (caps & MSR_VMX_EPT_INVEPT_SINGLE_CONTEXT)) {
        if (reserved || !vmx_eptp_ok(env, eptp)) {
            error = VMX_FAIL_INVALIDATE;
        }
    } else if (type != 2 || !(caps & MSR_VMX_EPT_INVEPT_ALL_CONTEXT) ||
               reserved) {
        error = VMX_FAIL_INVALIDATE;
    }
    if (!error) {
        tlb_flush(env_cpu(env));
    }
    vmx_result(env, error);
}

static bool invvpid_ok(CPUX86State *env, uint64_t type, uint64_t vpid,
                       uint64_t linear)
{
    uint64_t caps = env->features[FEAT_VMX_EPT_VPID_CAPS];

    if (type > 3 || !(caps & (MSR_VMX_EPT_INVVPID_SINGLE_ADDR << type)) ||
        vpid > UINT16_MAX) {
        return false;
    }
    return (vpid || type == 2) && (type || cpu_x86_canonical(env, linear));
}

/* By address, context, all contexts, or context but for global pages */
void helper_invvpid(CPUX86State *env, target_ulong type, target_ulong addr)
{
    uintptr_t ra = GETPC();
    uint64_t vpid, linear;
    int error = VMX_OK;

    if (!(env->features[FEAT_VMX_EPT_VPID_CAPS] & MSR_VMX_EPT_INVVPID)) {
        raise_exception_ra(env, EXCP06_ILLOP, ra);
    }
    vmx_begin(env, VMX_EXIT_INVVPID, ra);
    vpid = cpu_ldq_data_ra(env, addr, ra);
    linear = cpu_ldq_data_ra(env, addr + 8, ra);
    if (!invvpid_ok(env, type, vpid, linear)) {
        error = VMX_FAIL_INVALIDATE;
    }
    /* Nothing of a guest outlasts its exit: vmx_set_guest() flushes */
    vmx_result(env, error);
}
