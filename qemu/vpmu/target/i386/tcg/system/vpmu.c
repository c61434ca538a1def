/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring unit of a vCPU under TCG: libvpmu's hooks, and
 * what translated code needs of it.
 */

#include "qemu/osdep.h"
#include "qemu/units.h"
#include "qemu/timer.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "exec/exec-all.h"
#include "exec/helper-proto.h"
#include "system/cpu-timers.h"
#include "exec/translation-block.h"
#include "hw/i386/apic.h"
#include "migration/vmstate.h"
#include "system/tcg.h"
#include "tcg/helper-tcg.h"
#include "accel/tcg/internal-common.h"
#include "vpmu-internal.h"

/* What CPUID calls the crystal: QEMU's local APIC timer runs at this rate */
#define VPMU_CRYSTAL_HZ 1000000000u
#define VPMU_RATE_UNIT_HZ 200000000u

/* A deadline that a branch kind's word can hold without reaching it */
#define VPMU_KIND_NEVER (INT64_MAX / 2)

/* Nearer than this code has to watch it; farther than any slice */
#define VPMU_KIND_NEAR (1 << 20)

#define VPMU_KINDS_SUPPLIED                                       \
    (VPMU_SUPPLIED & ~(VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS) | \
                       VPMU_SIGNAL_BIT(VPMU_SIGNAL_BRANCHES)))

QEMU_BUILD_BUG_ON(X86_VPMU_BANKS != VPMU_BANK_COUNT);
QEMU_BUILD_BUG_ON(X86_VPMU_KINDS !=
                  VPMU_SIGNAL_FAR - VPMU_SIGNAL_JCC_TAKEN + 1);

static X86VPMU *vpmu_of(CPUX86State *env)
{
    return env_archcpu(env)->vpmu;
}

/* What a bank's words have counted of each signal since they were armed */
static void vpmu_counted(const X86VPMU *v, int b, int64_t *n)
{
    const X86VPMUHot *hot = &v->cpu->env.vpmu;
    int64_t *kind = n + VPMU_SIGNAL_JCC_TAKEN;
    int64_t left = hot->left[b];
    int shift = x86_vpmu_insn_shift(v->mode);

    for (int k = 0; k < X86_VPMU_KINDS; k++) {
        kind[k] = v->kind_armed[b][k] - hot->kind[b][k];
    }
    n[VPMU_SIGNAL_INSTRUCTIONS] = v->armed[b] - (left >> shift);
    n[VPMU_SIGNAL_BRANCHES] = left & ((1ll << shift) - 1);
    if (v->mode == X86_VPMU_COUNT_KINDS) {
        kind[X86_VPMU_JCC_NOT_TAKEN] += X86_VPMU_FIELD(left, 0) -
                                        kind[X86_VPMU_JCC_TAKEN];
        kind[X86_VPMU_CALL] += X86_VPMU_FIELD(left, 1);
        kind[X86_VPMU_RET] += X86_VPMU_FIELD(left, 2);
        n[VPMU_SIGNAL_BRANCHES] = 0;
        for (int k = 0; k < X86_VPMU_KINDS; k++) {
            n[VPMU_SIGNAL_BRANCHES] += kind[k];
        }
    }
}

/* Move what the hot words have counted into the totals. */
static void vpmu_fold(X86VPMU *v)
{
    CPUX86State *env = &v->cpu->env;
    int shift = x86_vpmu_insn_shift(v->mode);
    int64_t n[VPMU_SIGNAL_COUNT] = { };

    for (int b = 0; b < X86_VPMU_BANKS; b++) {
        vpmu_counted(v, b, n);
        for (int s = 0; s < VPMU_SIGNAL_COUNT; s++) {
            v->total.word[s][b] += n[s];
        }
        v->armed[b] -= n[VPMU_SIGNAL_INSTRUCTIONS];
        env->vpmu.left[b] = v->armed[b] << shift;
        memcpy(v->kind_armed[b], env->vpmu.kind[b],
               sizeof(v->kind_armed[b]));
    }
}

static uint64_t vpmu_left(const X86VPMU *v, int signal, int bank)
{
    uint64_t until = v->until.word[signal][bank];
    uint64_t total = v->total.word[signal][bank];

    return until == VPMU_NEVER ? VPMU_NEVER
                               : until > total ? until - total : 0;
}

/* @nearest: occurrences of any kind of branch until its deadline */
static X86VPMUMode vpmu_mode(const X86VPMU *v, int64_t nearest)
{
    uint64_t demand = v->silicon->demand;

    if (!demand) {
        return X86_VPMU_OFF;
    }
    if (!(demand & VPMU_KINDS_SUPPLIED)) {
        return X86_VPMU_COUNT;
    }
    return nearest > VPMU_KIND_NEAR ? X86_VPMU_COUNT_KINDS
                                    : X86_VPMU_WATCH_KINDS;
}

static int64_t vpmu_arm_kinds(X86VPMU *v, int b)
{
    int64_t *word = v->cpu->env.vpmu.kind[b];
    int64_t nearest = VPMU_KIND_NEVER;

    for (int k = 0; k < X86_VPMU_KINDS; k++) {
        uint64_t left = vpmu_left(v, VPMU_SIGNAL_JCC_TAKEN + k, b);

        word[k] = MIN(left, VPMU_KIND_NEVER);
        v->kind_armed[b][k] = word[k];
        nearest = MIN(nearest, word[k]);
    }
    return nearest;
}

/*
 * Set the hot words so that no deadline is passed.  A branch is an instruction,
 * so a deadline in branches is kept by at most as many instructions, and
 * approached from there.
 */
void vpmu_arm(X86VPMU *v)
{
    CPUX86State *env = &v->cpu->env;
    int64_t nearest = VPMU_KIND_NEVER;

    vpmu_fold(v);
    for (int b = 0; b < X86_VPMU_BANKS; b++) {
        int64_t near = vpmu_arm_kinds(v, b);

        /*
         * In a nested bank where nothing has happened yet a deadline of 1 is
         * only libvpmu's way to hear of it: the end of the slice will do.
         */
        if (b < VPMU_BANK_NESTED_KERNEL ||
            v->total.word[VPMU_SIGNAL_INSTRUCTIONS][b]) {
            nearest = MIN(nearest, near);
        }
    }
    v->mode = vpmu_mode(v, nearest);
    for (int b = 0; b < X86_VPMU_BANKS; b++) {
        uint64_t insns = MIN(vpmu_left(v, VPMU_SIGNAL_INSTRUCTIONS, b),
                             vpmu_left(v, VPMU_SIGNAL_BRANCHES, b));

        v->armed[b] = MIN(insns, x86_vpmu_slice(v->mode));
        env->vpmu.left[b] = v->armed[b] << x86_vpmu_insn_shift(v->mode);
    }
    env->hflags &= ~HF_VPMU_MASK;
    env->hflags |= v->mode << HF_VPMU_SHIFT;
}

/* Has silicon's deadline come, in any word? */
static bool vpmu_reached(const X86VPMU *v)
{
    for (int s = 0; s < VPMU_SIGNAL_COUNT; s++) {
        for (int b = 0; b < X86_VPMU_BANKS; b++) {
            if (vpmu_left(v, s, b) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Hooks of libvpmu */

static void vpmu_op_pull(void *ctx, uint64_t signals,
                         struct vpmu_signal_words *totals)
{
    X86VPMU *v = ctx;

    vpmu_fold(v);
    for (int s = 0; s < VPMU_SIGNAL_COUNT; s++) {
        if (signals & VPMU_SIGNAL_BIT(s)) {
            memcpy(totals->word[s], v->total.word[s], sizeof(totals->word[s]));
        }
    }
}

static void vpmu_op_deadline(void *ctx, const struct vpmu_signal_words *left)
{
    X86VPMU *v = ctx;

    vpmu_fold(v);
    for (int s = 0; s < VPMU_SIGNAL_COUNT; s++) {
        for (int b = 0; b < X86_VPMU_BANKS; b++) {
            uint64_t n = left->word[s][b];
            uint64_t total = v->total.word[s][b];

            v->until.word[s][b] = n > VPMU_NEVER - total ? VPMU_NEVER
                                                         : total + n;
        }
    }
    vpmu_arm(v);
}

static void vpmu_op_demand(void *ctx, uint64_t signals)
{
    vpmu_arm(ctx);
}

/* From the vCPU's thread; from another one's when that closes its events */
static void vpmu_op_kick(void *ctx)
{
    X86VPMU *v = ctx;

    qatomic_set(&v->service, true);
    qatomic_set(&v->due, true);
    if (!qemu_cpu_is_self(CPU(v->cpu))) {
        qatomic_set(&CPU(v->cpu)->neg.icount_decr.u16.high, -1);
    }
}

static void vpmu_op_pmi(void *ctx, bool mask)
{
    X86VPMU *v = ctx;

    v->n_pmis++;
    if (v->cpu->apic_state) {
        BQL_LOCK_GUARD();
        apic_deliver_pmi(v->cpu->apic_state, mask);
    }
}

static const struct vpmu_ops vpmu_tcg_ops = {
    .size = sizeof(struct vpmu_ops),
    .pull = vpmu_op_pull,
    .deadline = vpmu_op_deadline,
    .demand = vpmu_op_demand,
    .kick = vpmu_op_kick,
    .pmi = vpmu_op_pmi,
};

void vpmu_serve(X86VPMU *v)
{
    while (qatomic_read(&v->service)) {
        qatomic_set_mb(&v->service, false);
        if (!vpmu_is_direct(v)) {
            vpmu_perf_service(&v->host);
        }
        if (v->arch) {
            vpmu_arch_service(v->arch);
        }
        if (v->pv) {
            vpmu_pv_service(v->pv);
        }
    }
}

/* Slices for libvpmu: they end with those of the hot words, or later. */

static uint64_t vpmu_insns(const X86VPMU *v)
{
    const uint64_t *word = v->total.word[VPMU_SIGNAL_INSTRUCTIONS];

    return word[0] + word[1] + word[2] + word[3];
}

static bool vpmu_slice_over(const X86VPMU *v)
{
    return v->slicing && vpmu_insns(v) - v->slice_start >= VPMU_SLICE_CYCLES;
}

static void vpmu_slice_begin(X86VPMU *v)
{
    if (!v->slicing) {
        v->slicing = true;
        v->slice_start = vpmu_insns(v);
    }
}

static void vpmu_slice_end(X86VPMU *v)
{
    bool again = false;

    if (vpmu_slice_over(v)) {
        v->slice_start = vpmu_insns(v);
        if (v->arch) {
            again |= vpmu_arch_slice(v->arch);
        }
        if (v->pv) {
            again |= vpmu_pv_slice(v->pv);
        }
        v->slicing = again;
    }
}

/* Called from the execution loop */

void x86_vpmu_boundary(CPUX86State *env)
{
    X86VPMU *v = vpmu_of(env);
    X86VPMUHot *hot = &env->vpmu;
    int64_t least;

    if (!v || (!(env->hflags & HF_VPMU_MASK) && !v->due)) {
        return;
    }
    least = MIN(MIN(hot->left[0], hot->left[1]),
                MIN(hot->left[2], hot->left[3]));
    if (likely(least >> x86_vpmu_insn_shift(X86_VPMU_MODE(env->hflags)) > 0 &&
               !v->due)) {
        return;
    }
    qatomic_set_mb(&v->due, false);
    vpmu_fold(v);
    if (vpmu_reached(v)) {
        v->n_expired++;
        vpmu_silicon_expire(v->silicon);
    } else {
        vpmu_arm(v);
    }
    vpmu_slice_end(v);
    vpmu_serve(v);
}

bool x86_vpmu_exec_boundary(CPUState *cs)
{
    CPUX86State *env = cpu_env(cs);
    uint32_t hflags = env->hflags;

    x86_vpmu_boundary(env);
    return (env->hflags ^ hflags) & HF_VPMU_MASK;
}

bool x86_vpmu_fetch_boundary(CPUX86State *env)
{
    x86_vpmu_boundary(env);
    return (env_cpu(env)->interrupt_request & CPU_INTERRUPT_NMI) &&
           !(env->hflags2 & HF2_NMI_MASK) && (env->hflags2 & HF2_GIF_MASK);
}

/*
 * A block asked for more instructions than are left: either only the slice is
 * used up, or a shorter block must run that ends exactly at the deadline.
 */
bool x86_vpmu_tb_expired(CPUState *cs, const TranslationBlock *tb)
{
    CPUX86State *env = cpu_env(cs);
    X86VPMU *v = vpmu_of(env);
    int bank = X86_VPMU_BANK(tb->flags);
    int64_t left;

    if (!v || !(tb->flags & HF_VPMU_MASK)) {
        return false;
    }
    vpmu_fold(v);
    if (!vpmu_reached(v)) {
        vpmu_arm(v);
        if (vpmu_slice_over(v)) {
            qatomic_set(&v->due, true);
        }
    }
    left = env->vpmu.left[bank] >>
           x86_vpmu_insn_shift(X86_VPMU_MODE(env->hflags));
    if (left > 0 && left < tb->icount) {
        assert(left <= CF_COUNT_MASK);
        cs->cflags_next_tb = (curr_cflags(cs) & ~CF_COUNT_MASK) | left;
    }
    return true;
}

void x86_vpmu_uncount(CPUState *cs, const TranslationBlock *tb, int insns_left)
{
    CPUX86State *env = cpu_env(cs);

    if (tb->flags & HF_VPMU_MASK) {
        env->vpmu.left[X86_VPMU_BANK(tb->flags)] -=
            x86_vpmu_words(tb->flags, insns_left, tb->branch);
    }
}

/* Helpers of translated code */

void helper_vpmu_kind_due(CPUX86State *env)
{
    vpmu_of(env)->due = true;
    /* Leave before the next block, through x86_vpmu_exec_boundary() */
    qatomic_set(&env_cpu(env)->neg.icount_decr.u16.high, -1);
}

/* @branch: the kind + 1, or 0 */
static void vpmu_retire(CPUX86State *env, int bank, int branch)
{
    if (!(env->hflags & HF_VPMU_MASK)) {
        return;
    }
    env->vpmu.left[bank] += x86_vpmu_words(env->hflags, 1, branch);
    if (branch && --env->vpmu.kind[bank][branch - 1] <= 0) {
        vpmu_of(env)->due = true;
    }
}

void x86_vpmu_retire_int(CPUX86State *env, int bank)
{
    vpmu_retire(env, bank, X86_VPMU_FAR + 1);
}

void x86_vpmu_uncount_insn(CPUX86State *env)
{
    if (env->hflags & HF_VPMU_MASK) {
        env->vpmu.left[X86_VPMU_BANK(env->hflags)] -=
            x86_vpmu_words(env->hflags, 1, 0);
    }
}

/*
 * An instruction that accesses the PMU ends its block, so it is all of the
 * block that has been counted but not retired: take it back, and let it retire
 * under the setting that it leaves behind.
 */
static bool vpmu_result(CPUX86State *env, enum vpmu_result r, uintptr_t ra)
{
    vpmu_retire(env, X86_VPMU_BANK(env->hflags), 0);
    if (r == VPMU_FAULT) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
    return r == VPMU_HANDLED;
}

bool x86_vpmu_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val,
                    uintptr_t ra)
{
    X86VPMU *v = vpmu_of(env);
    enum vpmu_result r;

    if (!v || !v->arch) {
        return false;
    }
    x86_vpmu_uncount_insn(env);
    r = vpmu_arch_rdmsr(v->arch, msr, val);
    v->n_exits[VPMU_TRACE_RDMSR] += r != VPMU_NOT_MINE;
    vpmu_serve(v);
    return vpmu_result(env, r, ra);
}

bool x86_vpmu_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val, uintptr_t ra)
{
    X86VPMU *v = vpmu_of(env);
    enum vpmu_result r;

    if (!v || !v->arch) {
        return false;
    }
    x86_vpmu_uncount_insn(env);
    r = vpmu_arch_wrmsr(v->arch, msr, val);
    if (r == VPMU_HANDLED) {
        vpmu_slice_begin(v);
    }
    v->n_exits[VPMU_TRACE_WRMSR] += r != VPMU_NOT_MINE;
    vpmu_serve(v);
    return vpmu_result(env, r, ra);
}

bool x86_vpmu_rdpmc(CPUX86State *env, uint32_t idx, uint64_t *val,
                    uintptr_t ra)
{
    X86VPMU *v = vpmu_of(env);
    enum vpmu_result r;

    if (!v || !v->arch) {
        return false;
    }
    x86_vpmu_uncount_insn(env);
    r = vpmu_arch_rdpmc(v->arch, idx, val);
    v->n_exits[VPMU_TRACE_RDPMC] += r != VPMU_NOT_MINE;
    vpmu_serve(v);
    return vpmu_result(env, r, ra);
}

uint64_t x86_vpmu_misc_enable(CPUX86State *env)
{
    X86VPMU *v = vpmu_of(env);

    return v && v->arch ? vpmu_arch_misc_enable(v->arch) : 0;
}

/* As KVM answers, where the number is nobody's */
static int64_t vpmu_no_call(const struct vpmu_hypercall *call)
{
    return call->cpl ? -VPMU_PV_EPERM : -VPMU_PV_ENOSYS;
}

bool x86_vpmu_hypercall(CPUX86State *env)
{
    X86VPMU *v = vpmu_of(env);
    struct vpmu_hypercall call = {
        .nr = env->regs[R_EAX],
        .arg = { env->regs[R_EBX], env->regs[R_ECX],
                 env->regs[R_EDX], env->regs[R_ESI] },
        .long_mode = env->hflags & HF_CS64_MASK,
        .cpl = env->hflags & HF_CPL_MASK,
    };

    if (!v || !v->pv || (env->hflags & HF_GUEST_MASK)) {
        return false;
    }
    x86_vpmu_uncount_insn(env);
    if (vpmu_pv_hypercall(v->pv, &call) == VPMU_NOT_MINE) {
        call.result = vpmu_no_call(&call);
    }
    v->n_calls[vpmu_pv_call(&call)]++;
    vpmu_slice_begin(v);
    vpmu_serve(v);
    vpmu_retire(env, X86_VPMU_BANK(env->hflags), 0);
    env->regs[R_EAX] = call.long_mode ? (uint64_t)call.result
                                      : (uint32_t)call.result;
    return true;
}

void x86_vpmu_smm(CPUX86State *env, bool entered)
{
    X86VPMU *v = vpmu_of(env);

    if (v && v->arch) {
        vpmu_arch_smm(v->arch, entered);
        vpmu_serve(v);
    }
}

uint64_t x86_vpmu_tsc(void)
{
    return muldiv64(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), VPMU_TSC_HZ,
                    NANOSECONDS_PER_SECOND);
}

/* Configuration */

static const struct vpmu_model *vpmu_model_of(CPUX86State *env)
{
    uint32_t ver = env->cpuid_version;
    uint32_t family = (ver >> 8) & 0xf;
    uint32_t model = (ver >> 4) & 0xf;

    if (family == 0xf) {
        family += (ver >> 20) & 0xff;
    }
    if (family >= 6) {
        model |= (ver >> 12) & 0xf0;
    }
    if (!IS_INTEL_CPU(env)) {
        return NULL;
    }
    return vpmu_model_find(VPMU_VENDOR_INTEL, family, model);
}

bool x86_vpmu_wanted(const X86CPU *cpu)
{
    const char *pv = vpmu_given(cpu->vpmu_props.pv);

    return tcg_enabled() && (cpu->enable_pmu || (pv && strcmp(pv, "off")));
}

uint64_t x86_vpmu_features(X86CPU *cpu, FeatureWord w)
{
    const struct vpmu_model *model;

    if (!tcg_enabled() || !cpu->enable_pmu) {
        return 0;
    }
    model = vpmu_model_of(&cpu->env);
    if (!model) {
        return 0;
    }
    switch (w) {
    case FEAT_1_ECX:
        return CPUID_EXT_PDCM;
    case FEAT_PERF_CAPABILITIES:
        return model->capabilities;
    default:
        return 0;
    }
}

/* What counts for the guest: the whole PMU of the modelled host, or its perf */

static void vpmu_init_direct(X86VPMU *v, struct vpmu_provider **provider)
{
    struct vpmu_silicon_config cfg = {
        .size = sizeof(cfg),
        .model = v->vm->system.model,
        .supplied = VPMU_SUPPLIED,
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

static void vpmu_arch_settings(X86VPMU *v, struct vpmu_arch_config *arch)
{
    X86CPU *cpu = v->cpu;
    uint64_t *features = cpu->env.features;

    arch->model = v->vm->system.model;
    arch->version = cpu->vpmu_props.version;
    arch->n_gp = cpu->vpmu_props.n_gp;
    arch->n_fixed = cpu->vpmu_props.n_fixed == UINT8_MAX ? -1
                                                : cpu->vpmu_props.n_fixed;
    arch->capabilities = features[FEAT_1_ECX] & CPUID_EXT_PDCM
                             ? features[FEAT_PERF_CAPABILITIES] : 0;
    arch->ops = &v->vm->ops;
    arch->ctx = v;
    /* hypervisor=off: nothing that bare metal does not have */
    arch->cpuid_base = features[FEAT_1_ECX] & CPUID_EXT_HYPERVISOR
                           ? X86_VPMU_CPUID_BASE : 0;
    arch->filter = v->vm->filter ? &v->vm->filter->filter : NULL;
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

static bool vpmu_unwanted(const X86VPMUProps *p, Error **errp)
{
    const char *name = vpmu_given(p->policy) ? "pmu-policy"
                       : vpmu_given(p->filter) ? "pmu-filter"
                       : vpmu_given(p->trace) ? "pmu-trace"
                       : vpmu_given(p->pv) && strcmp(p->pv, "off") ? "pmu-pv"
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

    if (!x86_vpmu_wanted(cpu)) {
        return !vpmu_unwanted(&cpu->vpmu_props, errp);
    }
    if (!model) {
        error_setg(errp, "%s: no PMU for this vendor and family under TCG; "
                   "Intel family 6 has one (try -cpu Icelake-Server-v6)",
                   asked);
        return false;
    }
    if (icount_enabled()) {
        error_setg(errp, "%s cannot be combined with -icount or "
                   "record/replay: the PMU counts instructions itself", asked);
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
    if (!vpmu_init(v, errp)) {
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
        /* CPU reset has cleared hflags, whatever the demand still is */
        vpmu_arm(v);
    }
}

/* The PMUs' own leaves */
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
    struct vpmu_cpuid regs = { };

    if (!cpu->vpmu) {
        return false;
    }
    switch (leaf) {
    case 0x15:
        /* TSC and the APIC's timer, in which guests count the crystal */
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
    int ret = vpmu_arch_load(v->arch, cpu->vpmu_state, cpu->vpmu_state_size);

    if (ret) {
        error_report("vpmu: the state does not fit this PMU (pmu-version, "
                     "pmu-gp, pmu-fixed or the CPU model differ): %s",
                     strerror(-ret));
        return ret;
    }
    /* hflags came without the PMU's bits */
    vpmu_arm(v);
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
