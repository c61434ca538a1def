/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMX under TCG: capability MSRs, and the MSR lists of VM entries and exits.
 *
 * Source: SDM vol. 3 appendix A, "VMX Capability Reporting Facility", and
 * "Loading MSRs" of the chapters on VM entries and exits.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/cpu-common.h"
#include "vmx-internal.h"

/* Controls that are 1 unless a TRUE capability MSR says that they may be 0 */
static uint32_t default1(FeatureWord word)
{
    switch (word) {
    case FEAT_VMX_PINBASED_CTLS:
        return 0x00000016;
    case FEAT_VMX_PROCBASED_CTLS:
        return 0x0401e172;
    case FEAT_VMX_EXIT_CTLS:
        return 0x00036dff;
    case FEAT_VMX_ENTRY_CTLS:
        return 0x000011ff;
    default:
        return 0;
    }
}

/* A bit of a feature word says that a control may be 0 and may be 1 */
static uint32_t features_of(CPUX86State *env, FeatureWord word)
{
    uint32_t features = env->features[word];

    if (word == FEAT_VMX_EXIT_CTLS &&
        (env->features[FEAT_8000_0001_EDX] & CPUID_EXT2_LM)) {
        features |= VMX_VM_EXIT_HOST_ADDR_SPACE_SIZE;
    }
    return features;
}

uint32_t vmx_may_be_set(CPUX86State *env, FeatureWord word)
{
    return features_of(env, word) | default1(word);
}

static uint32_t must_be_set(CPUX86State *env, FeatureWord word)
{
    return default1(word) & ~features_of(env, word);
}

bool vmx_control_ok(CPUX86State *env, FeatureWord word, uint32_t value)
{
    return !(must_be_set(env, word) & ~value) &&
           !(value & ~vmx_may_be_set(env, word));
}

static uint64_t controls(CPUX86State *env, FeatureWord word, bool is_true)
{
    uint32_t low = is_true ? must_be_set(env, word) : default1(word);

    return low | (uint64_t)vmx_may_be_set(env, word) << 32;
}

static bool capability(CPUX86State *env, uint32_t index, uint64_t *value)
{
    switch (index) {
    case MSR_IA32_VMX_BASIC:
        *value = env->features[FEAT_VMX_BASIC] | VMX_REVISION |
                 4096ull << 32 | 6ull << 50;
        return true;
    case MSR_IA32_VMX_PINBASED_CTLS:
    case MSR_IA32_VMX_TRUE_PINBASED_CTLS:
        *value = controls(env, FEAT_VMX_PINBASED_CTLS,
                          index == MSR_IA32_VMX_TRUE_PINBASED_CTLS);
        return true;
    case MSR_IA32_VMX_PROCBASED_CTLS:
    case MSR_IA32_VMX_TRUE_PROCBASED_CTLS:
        *value = controls(env, FEAT_VMX_PROCBASED_CTLS,
                          index == MSR_IA32_VMX_TRUE_PROCBASED_CTLS);
        return true;
    case MSR_IA32_VMX_EXIT_CTLS:
    case MSR_IA32_VMX_TRUE_EXIT_CTLS:
        *value = controls(env, FEAT_VMX_EXIT_CTLS,
                          index == MSR_IA32_VMX_TRUE_EXIT_CTLS);
        return true;
    case MSR_IA32_VMX_ENTRY_CTLS:
    case MSR_IA32_VMX_TRUE_ENTRY_CTLS:
        *value = controls(env, FEAT_VMX_ENTRY_CTLS,
                          index == MSR_IA32_VMX_TRUE_ENTRY_CTLS);
        return true;
    case MSR_IA32_VMX_PROCBASED_CTLS2:
        *value = controls(env, FEAT_VMX_SECONDARY_CTLS, true);
        return true;
    case MSR_IA32_VMX_MISC:
        *value = env->features[FEAT_VMX_MISC] | VMX_TIMER_SHIFT |
                 ARRAY_SIZE(env->vmx.cr3_target) << 16;
        return true;
    case MSR_IA32_VMX_CR0_FIXED0:
        *value = VMX_CR0_FIXED0;
        return true;
    case MSR_IA32_VMX_CR0_FIXED1:
        *value = UINT32_MAX;
        return true;
    case MSR_IA32_VMX_CR4_FIXED0:
        *value = VMX_CR4_FIXED0;
        return true;
    case MSR_IA32_VMX_CR4_FIXED1:
        *value = (uint32_t)~cr4_reserved_bits(env);
        return true;
    case MSR_IA32_VMX_VMCS_ENUM:
        *value = VMX_PREEMPTION_TIMER & 0x3fe; /* the highest index */
        return true;
    case MSR_IA32_VMX_EPT_VPID_CAP:
        *value = env->features[FEAT_VMX_EPT_VPID_CAPS];
        if (*value & MSR_VMX_EPT_PAGE_WALK_LENGTH_4) {
            *value |= MSR_VMX_EPT_UC | MSR_VMX_EPT_WB;
        }
        return true;
    default:
        return false;
    }
}

bool vmx_rdmsr(CPUX86State *env, uint32_t index, uint64_t *value)
{
    if (!cpu_has_vmx(env)) {
        return false;
    }
    if (index == MSR_IA32_FEATURE_CONTROL) {
        *value = env->msr_ia32_feature_control;
        return true;
    }
    return capability(env, index, value);
}

int vmx_wrmsr(CPUX86State *env, uint32_t index, uint64_t value)
{
    const uint64_t valid = FEATURE_CONTROL_LOCKED |
                           FEATURE_CONTROL_VMXON_ENABLED_OUTSIDE_SMX;

    if (!cpu_has_vmx(env)) {
        return 0;
    }
    if (index == MSR_IA32_FEATURE_CONTROL) {
        if ((env->msr_ia32_feature_control & FEATURE_CONTROL_LOCKED) ||
            (value & ~valid)) {
            return -1;
        }
        env->msr_ia32_feature_control = value;
        return 1;
    }
    return index >= MSR_IA32_VMX_BASIC && index <= MSR_IA32_VMX_VMFUNC ? -1 : 0;
}

/* MSRs that no list may contain, whatever WRMSR does with them */
static bool list_excludes(uint32_t index, bool load)
{
    if (index >> 8 == MSR_APIC_START >> 8) {
        return true;
    }
    switch (index) {
    case MSR_FSBASE:
    case MSR_GSBASE:
    case 0x79: /* IA32_BIOS_UPDT_TRIG */
        return load;
    case 0x9b: /* IA32_SMM_MONITOR_CTL */
    case 0x9e: /* IA32_SMBASE */
        return true;
    default:
        return false;
    }
}

static bool set_msr(CPUX86State *env, uint32_t index, uint64_t value)
{
    int done = x86_vpmu_load_msr(env, index, value);

    return done ? done > 0 : x86_msr_write(env, index, value);
}

void vmx_set_msr(CPUX86State *env, uint32_t index, uint64_t value)
{
    set_msr(env, index, value);
}

uint32_t vmx_load_msrs(CPUX86State *env, hwaddr list, uint32_t n)
{
    CPUState *cs = env_cpu(env);
    uint32_t i;

    for (i = 0; i < n; i++, list += 16) {
        uint64_t index = x86_ldq_phys(cs, list);

        if (i == VMX_MSR_LIST_MAX || index > UINT32_MAX ||
            list_excludes(index, true) ||
            !set_msr(env, index, x86_ldq_phys(cs, list + 8))) {
            return i + 1;
        }
    }
    return 0;
}

uint32_t vmx_store_msrs(CPUX86State *env, hwaddr list, uint32_t n)
{
    CPUState *cs = env_cpu(env);
    uint32_t i;

    for (i = 0; i < n; i++, list += 16) {
        uint64_t index = x86_ldq_phys(cs, list), value;

        if (i == VMX_MSR_LIST_MAX || index > UINT32_MAX ||
            list_excludes(index, false) ||
            !(x86_vpmu_save_msr(env, index, &value) ||
              x86_msr_read(env, index, &value))) {
            return i + 1;
        }
        x86_stq_phys(cs, list + 8, value);
    }
    return 0;
}
