/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring unit as a part of a CPU under TCG: the choice of
 * a PMU by vendor, family and properties; CPUID; realize, unrealize and
 * reset; migration.
 */

#include "qemu/osdep.h"
#include "qemu/units.h"
#include "qemu/error-report.h"
#include "qapi/error.h"
#include "migration/vmstate.h"
#include "system/kvm.h"
#include "system/tcg.h"
#include "kvm/vpmu-kvm-glue.h"
#include "tcg/helper-tcg.h"
#include "vpmu-internal.h"

/*
 * Frequency of the crystal in CPUID: QEMU's local APIC timer runs at this
 * rate
 */
#define VPMU_CRYSTAL_HZ 1000000000u
#define VPMU_RATE_UNIT_HZ 200000000u

/* Configuration */

static bool vpmu_is_amd(const CPUX86State *env)
{
    char vendor[CPUID_VENDOR_SZ + 1];

    x86_cpu_vendor_words2str(vendor, env->cpuid_vendor1, env->cpuid_vendor2,
                             env->cpuid_vendor3);
    return IS_AMD_CPU(env) || !strcmp(vendor, CPUID_VENDOR_HYGON);
}

static uint32_t vpmu_family(const CPUX86State *env)
{
    uint32_t family = (env->cpuid_version >> 8) & 0xf;

    return family < 0xf ? family : family + ((env->cpuid_version >> 20) & 0xff);
}

static const struct vpmu_model *vpmu_model_of(const CPUX86State *env)
{
    uint32_t family = vpmu_family(env);
    uint32_t model = (env->cpuid_version >> 4) & 0xf;
    enum vpmu_vendor vendor;

    if (vpmu_is_amd(env)) {
        vendor = VPMU_VENDOR_AMD;
    } else if (IS_INTEL_CPU(env)) {
        vendor = VPMU_VENDOR_INTEL;
    } else {
        return NULL;
    }
    if (family < 6 || family > UINT8_MAX) {
        return NULL; /* no CPU of the vendor had a PMU before */
    }
    model |= (env->cpuid_version >> 12) & 0xf0;
    return vpmu_model_find(vendor, family, model);
}

bool x86_vpmu_wanted(const X86CPU *cpu)
{
    const char *pv = vpmu_given(cpu->vpmu_props.pv);

    return tcg_enabled() && (cpu->enable_pmu || (pv && strcmp(pv, "off")));
}

/* The model whose architectural PMU this CPU is to have, or NULL */
static const struct vpmu_model *vpmu_arch_model(const X86CPU *cpu)
{
    return tcg_enabled() && cpu->enable_pmu ? vpmu_model_of(&cpu->env) : NULL;
}

/*
 * The format of branch records: lbr-fmt if it was given, else the model's; 0:
 * none
 */
static uint64_t vpmu_lbr_format(const X86CPU *cpu,
                                const struct vpmu_model *model)
{
    return cpu->lbr_fmt != ~PERF_CAP_LBR_FMT
               ? cpu->lbr_fmt & VPMU_CAP_LBR
               : model->capabilities & VPMU_CAP_LBR;
}

/* PEBS in the DS save area, which CPUID announces by two bits of leaf 1 */
static bool vpmu_ds_pebs(const struct vpmu_model *model)
{
    uint64_t pebs = model->capabilities & VPMU_CAP_PEBS;

    return model->vendor == VPMU_VENDOR_INTEL && pebs &&
           pebs != VPMU_CAP_PEBS_ARCH;
}

uint64_t x86_vpmu_features(X86CPU *cpu, FeatureWord w)
{
    const struct vpmu_model *model = vpmu_arch_model(cpu);
    bool amd = vpmu_is_amd(&cpu->env);

    if (!model) {
        return 0;
    }
    switch (w) {
    case FEAT_1_EDX:
        return vpmu_ds_pebs(model) ? CPUID_DTS : 0;
    case FEAT_1_ECX:
        return amd ? 0 : CPUID_EXT_PDCM |
                         (vpmu_ds_pebs(model) ? CPUID_EXT_DTES64 : 0);
    case FEAT_7_0_EDX:
        return vpmu_lbr_format(cpu, model) == VPMU_CAP_LBR_ARCH
                   ? CPUID_7_0_EDX_ARCH_LBR : 0;
    case FEAT_PERF_CAPABILITIES:
        return amd ? 0 : (model->capabilities & ~VPMU_CAP_LBR) |
                         vpmu_lbr_format(cpu, model);
    case FEAT_8000_0001_ECX:
        return model->capabilities & VPMU_CAP_AMD_EXT_CORE
                   ? CPUID_EXT3_PERFCORE : 0;
    case FEAT_8000_0022_EAX:
        return amd && model->version > 1 ? CPUID_8000_0022_EAX_PERFMON_V2 : 0;
    default:
        return 0;
    }
}

/*
 * First families of AMD's CPUs with these: Bulldozer; all of Zen 5 (Zen 4 is
 * a model)
 */
#define VPMU_FAMILY_PERFCORE  0x15
#define VPMU_FAMILY_PERFMONV2 0x1a

uint64_t x86_vpmu_defaults(X86CPU *cpu, FeatureWord w)
{
    const struct vpmu_model *model = vpmu_arch_model(cpu);
    uint32_t family = vpmu_family(&cpu->env);

    if (w == FEAT_8000_0001_ECX && family < VPMU_FAMILY_PERFCORE) {
        return 0;
    }
    if (w == FEAT_8000_0022_EAX && family < VPMU_FAMILY_PERFMONV2 &&
        model && !model->family) {
        return 0; /* the features of its silicon are unknown */
    }
    return x86_vpmu_features(cpu, w);
}

/* Leaves 15H and 16H have the clock rates, 23H version 6's bitmaps */
uint32_t x86_vpmu_level(const X86CPU *cpu)
{
    const struct vpmu_model *model = vpmu_arch_model(cpu);

    if (!x86_vpmu_wanted(cpu) || !IS_INTEL_CPU(&cpu->env)) {
        return 0;
    }
    if (model && (cpu->vpmu_props.version ?: model->version) > 5) {
        return 0x23;
    }
    return model && vpmu_lbr_format(cpu, model) == VPMU_CAP_LBR_ARCH ? 0x1c
                                                                     : 0x16;
}

uint32_t x86_vpmu_xlevel(const X86CPU *cpu)
{
    return vpmu_arch_model(cpu) && (cpu->env.features[FEAT_8000_0022_EAX] &
                                    CPUID_8000_0022_EAX_PERFMON_V2)
               ? 0x80000022 : 0;
}

/* The counting part: the whole PMU of the modelled host, or the host's perf */

static void vpmu_init_direct(X86VPMU *v, struct vpmu_provider **provider)
{
    struct vpmu_silicon_config cfg = {
        .size = sizeof(cfg),
        .model = v->vm->system.model,
        .supplied = vpmu_supplied(v->vm),
        .ops = &v->vm->ops,
        .ctx = v,
    };

    if (vpmu_direct_init(&v->direct, &cfg)) {
        g_assert_not_reached();
    }
    v->direct.provider.time_hz = VPMU_TSC_HZ;
    v->silicon = &v->direct.silicon;
    *provider = &v->direct.provider;
}

/* Under TCG a vCPU's thread has a CPU of its own, and only runs the guest. */
static bool vpmu_init_perf(X86VPMU *v, struct vpmu_provider **provider,
                           Error **errp)
{
    VPMUVm *vm = v->vm;
    int ret;

    if (vpmu_perf_cpu_init(&v->host, &vm->system, CPU(v->cpu)->cpu_index,
                           &vm->ops, v)) {
        g_assert_not_reached();
    }
    ret = vpmu_vcpu_init(&v->vcpu, &vm->system, (enum vpmu_policy)vm->policy);
    if (ret) {
        error_setg_errno(errp, -ret, "pmu-policy=mediated: found host events "
                         "that count guests, needed none: remove them first");
        return false;
    }
    vpmu_vcpu_load(&v->vcpu, &v->host);
    vpmu_vcpu_enter(&v->vcpu);
    v->silicon = &v->host.silicon;
    *provider = &v->vcpu.provider;
    return true;
}

static void vpmu_fini_perf(X86VPMU *v)
{
    vpmu_vcpu_exit(&v->vcpu);
    vpmu_vcpu_put(&v->vcpu);
    vpmu_vcpu_fini(&v->vcpu);
}

/*
 * PerfMonV2 follows PerfCtrExtCore. If it was asked for by name without that,
 * libvpmu refuses it.
 */
static void vpmu_amd_settings(X86CPU *cpu, struct vpmu_arch_config *arch)
{
    uint64_t *features = cpu->env.features;
    bool core = features[FEAT_8000_0001_ECX] & CPUID_EXT3_PERFCORE;
    uint64_t v2 = features[FEAT_8000_0022_EAX] & CPUID_8000_0022_EAX_PERFMON_V2;

    if (!core) {
        v2 &= cpu->env.user_features[FEAT_8000_0022_EAX];
    }
    if (!arch->version) {
        arch->version = v2 ? 2 : 1;
    }
    if (arch->version < 2) {
        features[FEAT_8000_0022_EAX] &= ~CPUID_8000_0022_EAX_PERFMON_V2;
    } else {
        arch->capabilities |= VPMU_CAP_AMD_FREEZE & arch->model->capabilities;
        if (cpu->lbr_fmt) { /* lbr-fmt was not given, or is not 0 */
            arch->capabilities |= VPMU_CAP_AMD_LBR & arch->model->capabilities;
        }
    }
    if (core) {
        arch->capabilities |= VPMU_CAP_AMD_EXT_CORE;
    }
    if (features[FEAT_8000_0001_ECX] & CPUID_EXT3_SVM) {
        arch->capabilities |= VPMU_CAP_AMD_SVM;
    }
}

/* Version 6 has architectural PEBS, earlier ones that of the DS save area */
static bool vpmu_has_pebs(const struct vpmu_arch_config *arch,
                          const uint64_t *features)
{
    uint8_t version = arch->version ?: arch->model->version;

    if ((arch->capabilities & VPMU_CAP_PEBS) == VPMU_CAP_PEBS_ARCH) {
        return version > 5;
    }
    return version > 1 && version < 6 && features[FEAT_1_EDX] & CPUID_DTS &&
           features[FEAT_1_ECX] & CPUID_EXT_DTES64;
}

static void vpmu_arch_settings(X86VPMU *v, struct vpmu_arch_config *arch)
{
    X86CPU *cpu = v->cpu;
    uint64_t *features = cpu->env.features;

    arch->model = v->vm->system.model;
    arch->version = cpu->vpmu_props.version;
    arch->n_gp = cpu->vpmu_props.n_gp;
    arch->n_fixed = cpu->vpmu_props.n_fixed == UINT8_MAX ? -1
                                                : cpu->vpmu_props.n_fixed;
    if (vpmu_is_amd(&cpu->env)) {
        vpmu_amd_settings(cpu, arch);
    } else if (features[FEAT_1_ECX] & CPUID_EXT_PDCM) {
        arch->capabilities = features[FEAT_PERF_CAPABILITIES];
        if ((arch->capabilities & VPMU_CAP_LBR) == VPMU_CAP_LBR_ARCH &&
            !(features[FEAT_7_0_EDX] & CPUID_7_0_EDX_ARCH_LBR)) {
            arch->capabilities &= ~VPMU_CAP_LBR;
        }
        if (!vpmu_has_pebs(arch, features)) {
            arch->capabilities &= ~VPMU_CAP_PEBS;
        }
    }
    arch->ops = &v->vm->ops;
    arch->ctx = v;
    /* With hypervisor=off the guest gets only what bare metal has */
    arch->cpuid_base = features[FEAT_1_ECX] & CPUID_EXT_HYPERVISOR
                           ? X86_VPMU_CPUID_BASE : 0;
    arch->filter = v->vm->filter ? &v->vm->filter->filter : NULL;
    arch->regain = cpu->vpmu_props.regain;
    /*
     * The widest linear address of the CPU; the paging mode in force is
     * irrelevant
     */
    arch->linear_bits = features[FEAT_7_0_ECX] & CPUID_7_0_ECX_LA57 ? 57 : 48;
    arch->physical_bits = cpu->phys_bits ?: TCG_PHYS_ADDR_BITS;
}

static bool vpmu_init_arch(X86VPMU *v, struct vpmu_provider *provider,
                           Error **errp)
{
    struct vpmu_arch_config arch = { .size = sizeof(arch) };
    struct vpmu_error err = { };
    size_t size;

    arch.provider = provider;
    vpmu_arch_settings(v, &arch);
    if (vpmu_arch_size(&arch, &size, &err)) {
        error_setg(errp, "pmu=on: %s: asked 0x%" PRIx64 ", available 0x%"
                   PRIx64, err.what, err.asked, err.available);
        return false;
    }
    v->arch = g_malloc0(size);
    if (vpmu_arch_init(v->arch, &arch, &err)) {
        g_assert_not_reached();
    }
    return true;
}

static bool vpmu_init(X86VPMU *v, Error **errp)
{
    struct vpmu_provider *provider;
    bool direct = vpmu_is_direct(v);

    for (int s = 0; s < VPMU_SIGNAL_COUNT; s++) {
        for (int b = 0; b < X86_VPMU_BANKS; b++) {
            v->until.word[s][b] = VPMU_NEVER;
        }
    }
    if (direct) {
        vpmu_init_direct(v, &provider);
    } else if (!vpmu_init_perf(v, &provider, errp)) {
        return false;
    }
    vpmu_arm(v);
    if ((!v->vm->arch || vpmu_init_arch(v, provider, errp)) &&
        (!v->vm->pv_abi || vpmu_pv_attach(v, provider, errp))) {
        return true;
    }
    if (v->arch) {
        vpmu_arch_reset(v->arch, false);
        g_free(v->arch);
    }
    if (!direct) {
        vpmu_fini_perf(v);
    }
    return false;
}

/* Under KVM the PMU is vpmu_kvm.ko's or the paravirtual one of KVM's code */
static bool vpmu_unwanted(const X86VPMUProps *p, Error **errp)
{
    const char *pv = kvm_enabled() ? vpmu_given(p->pv) : NULL;
    const char *call = vpmu_given(p->pv_call);
    const char *name;

    if (pv && strcmp(pv, "off") &&
        (strcmp(pv, "v2") || (call && strcmp(call, "doorbell")))) {
        error_setg(errp, "pmu-pv=%s%s%s: needed with -accel kvm: pmu-pv=v2, "
                   "which is called by the doorbell", pv,
                   call ? ",pmu-pv-call=" : "", call ? call : "");
        return true;
    }
    name = !p->regain ? "pmu-regain"
           : p->version && !p->arch ? "pmu-version"
           : p->n_gp && !p->arch ? "pmu-gp"
           : p->n_fixed != UINT8_MAX && !p->arch ? "pmu-fixed"
           : vpmu_given(p->policy) ? "pmu-policy"
           : vpmu_given(p->filter) ? "pmu-filter"
           : vpmu_given(p->trace) ? "pmu-trace"
           : vpmu_given(p->uarch) && strcmp(p->uarch, "off") ? "pmu-uarch"
           : vpmu_given(p->uarch_params) ? "pmu-uarch-params"
           : !pv && vpmu_given(p->pv) && strcmp(p->pv, "off") ? "pmu-pv"
           : NULL;

    if (name) {
        error_setg(errp, "%s: found no PMU under TCG, needed pmu=on with "
                   "-accel tcg, or pmu-pv", name);
    }
    return name;
}

bool x86_vpmu_realize(X86CPU *cpu, Error **errp)
{
    const struct vpmu_model *model = vpmu_model_of(&cpu->env);
    const char *asked = cpu->enable_pmu ? "pmu=on" : "pmu-pv";
    X86VPMU *v;

    if (cpu->vpmu_props.arch && !kvm_enabled()) {
        error_setg(errp, "pmu-arch: found no KVM, needed -accel kvm; with "
                   "-accel tcg the architectural PMU is pmu=on");
        return false;
    }
    if (!x86_vpmu_wanted(cpu)) {
        if (vpmu_unwanted(&cpu->vpmu_props, errp)) {
            return false;
        }
        return !kvm_enabled() || x86_vpmu_kvm_realize(cpu, errp);
    }
    if (!model) {
        error_setg(errp, "%s: no PMU for this vendor and family under TCG; "
                   "Intel family 6 and AMD from K7 on have one (try -cpu "
                   "Icelake-Server-v6 or EPYC-Milan)", asked);
        return false;
    }
    if (HOST_LONG_BITS != 64) {
        error_setg(errp, "%s needs a 64-bit host", asked);
        return false;
    }

    v = g_new0(X86VPMU, 1);
    v->cpu = cpu;
    v->vm = vpmu_vm_get(cpu, model, &vpmu_tcg_ops, errp);
    if (!v->vm) {
        g_free(v);
        return false;
    }
    vpmu_uarch_attach(v);
    if (!vpmu_init(v, errp)) {
        vpmu_uarch_detach(v);
        vpmu_vm_put(v->vm);
        g_free(v);
        return false;
    }
    cpu->vpmu = v;
    return true;
}

void x86_vpmu_unrealize(X86CPU *cpu)
{
    X86VPMU *v = cpu->vpmu;

    if (kvm_enabled()) {
        x86_vpmu_kvm_destroy(cpu);
    }
    if (!v) {
        return;
    }
    vpmu_host_events_close(v);
    if (v->pv) {
        vpmu_pv_detach(v);
    }
    if (v->arch) {
        vpmu_arch_reset(v->arch, false);
    }
    if (!vpmu_is_direct(v)) {
        vpmu_fini_perf(v);
    }
    cpu->vpmu = NULL;
    vpmu_uarch_detach(v);
    vpmu_vm_put(v->vm);
    g_free(v->arch);
    g_free(v);
    g_free(cpu->vpmu_state);
    cpu->vpmu_state = NULL;
}

void x86_vpmu_reset(X86CPU *cpu, bool init)
{
    X86VPMU *v = cpu->vpmu;

    if (v) {
        if (v->arch) {
            vpmu_arch_reset(v->arch, init);
        }
        if (v->pv) {
            vpmu_pv_reset(v->pv);
        }
        if (v->uarch.model && !init) {
            vpmu_uarch_cold(v);
        }
        /* CPU reset has cleared hflags, but the demand may remain */
        vpmu_arm(v);
    }
}

/* The PMUs' own CPUID leaves */
static bool vpmu_cpuid(const X86VPMU *v, uint32_t leaf, uint32_t subleaf,
                       struct vpmu_cpuid *regs)
{
    bool mine = v->arch && vpmu_arch_cpuid(v->arch, leaf, subleaf, regs);

    if (v->pv) {
        mine |= vpmu_pv_cpuid(v->pv, X86_VPMU_CPUID_BASE, leaf, regs);
        mine |= vpmu_pv_kvm_cpuid(v, leaf, regs);
    }
    return mine;
}

bool x86_vpmu_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t subleaf,
                    uint32_t *eax, uint32_t *ebx,
                    uint32_t *ecx, uint32_t *edx)
{
    struct vpmu_cpuid regs = { *eax, *ebx, *ecx, *edx };

    if (!cpu->vpmu) {
        return false;
    }
    switch (leaf) {
    case 0x15:
        /*
         * The rates of the TSC and of the APIC's timer, which guests call the
         * crystal
         */
        *eax = VPMU_CRYSTAL_HZ / VPMU_RATE_UNIT_HZ;
        *ebx = VPMU_TSC_HZ / VPMU_RATE_UNIT_HZ;
        *ecx = VPMU_CRYSTAL_HZ;
        return true;
    case 0x16:
        *eax = VPMU_TSC_HZ / 1000000; /* MHz: base, maximum, bus */
        *ebx = VPMU_TSC_HZ / 1000000;
        *ecx = VPMU_CRYSTAL_HZ / 1000000;
        return true;
    default:
        if (!vpmu_cpuid(cpu->vpmu, leaf, subleaf, &regs)) {
            return false;
        }
        *eax = regs.eax;
        *ebx = regs.ebx;
        *ecx = regs.ecx;
        *edx = regs.edx;
        return true;
    }
}

/* Migration: libvpmu's own format in a buffer */

#define VPMU_STATE_SIZE_MAX (64 * KiB)

static bool vpmu_needed(void *opaque)
{
    X86CPU *cpu = opaque;

    return cpu->vpmu && cpu->vpmu->arch;
}

static int vpmu_pre_save(void *opaque)
{
    X86CPU *cpu = opaque;
    size_t size;

    vpmu_arch_save(cpu->vpmu->arch, NULL, 0, &size);
    g_free(cpu->vpmu_state);
    cpu->vpmu_state = g_malloc0(size);
    cpu->vpmu_state_size = size;
    return vpmu_arch_save(cpu->vpmu->arch, cpu->vpmu_state, size, &size);
}

static bool vpmu_size_ok(void *opaque, int version_id)
{
    X86CPU *cpu = opaque;

    return cpu->vpmu_state_size <= VPMU_STATE_SIZE_MAX;
}

static int vpmu_post_load(void *opaque, int version_id)
{
    X86CPU *cpu = opaque;
    X86VPMU *v = cpu->vpmu;
    const struct vpmu_error *why;
    int ret;

    if (!v || !v->arch) {
        error_report("vpmu: the guest has an architectural PMU, needed: "
                     "pmu=on");
        return -EINVAL;
    }
    ret = vpmu_arch_load(v->arch, cpu->vpmu_state, cpu->vpmu_state_size);
    if (ret) {
        why = vpmu_arch_refused(v->arch);
        error_report("vpmu: the guest's PMU does not fit this one: %s: found "
                     "0x%" PRIx64 ", available 0x%" PRIx64,
                     why->what, why->asked, why->available);
        return ret;
    }
    /* The incoming hflags lack the PMU's bits */
    vpmu_arm(v);
    x86_vpmu_efer(&cpu->env);
    return 0;
}

const VMStateDescription vmstate_x86_vpmu = {
    .name = "cpu/vpmu",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = vpmu_needed,
    .pre_save = vpmu_pre_save,
    .post_load = vpmu_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(vpmu_state_size, X86CPU),
        VMSTATE_VALIDATE("vpmu state size", vpmu_size_ok),
        VMSTATE_VBUFFER_ALLOC_UINT32(vpmu_state, X86CPU, 1, NULL,
                                     vpmu_state_size),
        VMSTATE_END_OF_LIST()
    }
};
