/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring unit of a vCPU under TCG: libvpmu's hooks, and
 * the functions that translated code calls.
 */

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "qemu/main-loop.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "exec/translation-block.h"
#include "hw/i386/apic.h"
#include "system/cpu-timers.h"
#include "system/tcg.h"
#include "tcg/helper-tcg.h"
#include "accel/tcg/internal-common.h"
#include "target/i386/trace.h"
#include "vpmu-internal.h"

/* A deadline that a branch kind's word can hold without reaching it */
#define VPMU_KIND_NEVER (INT64_MAX / 2)

/*
 * Deadlines nearer than this are watched by code; it is longer than any slice
 */
#define VPMU_KIND_NEAR (1 << 20)

#define VPMU_KINDS_SUPPLIED                                       \
    (VPMU_SUPPLIED & ~(VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS) | \
                       VPMU_SIGNAL_BIT(VPMU_SIGNAL_BRANCHES) | \
                       VPMU_SIGNAL_BIT(VPMU_SIGNAL_LBR_INSERTS)))

QEMU_BUILD_BUG_ON(X86_VPMU_BANKS != VPMU_BANK_COUNT);
QEMU_BUILD_BUG_ON(X86_VPMU_KINDS !=
                  VPMU_SIGNAL_FAR - VPMU_SIGNAL_JCC_TAKEN + 1);

QEMU_BUILD_BUG_ON(sizeof(X86VPMULbr) != sizeof(struct vpmu_lbr) ||
                  sizeof(X86VPMULbrEntry) != sizeof(struct vpmu_lbr_entry) ||
                  offsetof(X86VPMULbrEntry, info) !=
                  offsetof(struct vpmu_lbr_entry, info) ||
                  offsetof(X86VPMULbr, next) !=
                  offsetof(struct vpmu_lbr, next) ||
                  offsetof(X86VPMULbr, act) != offsetof(struct vpmu_lbr, act) ||
                  offsetof(X86VPMULbr, on) != offsetof(struct vpmu_lbr, on) ||
                  offsetof(X86VPMULbr, more) !=
                  offsetof(struct vpmu_lbr, more) ||
                  X86_VPMU_LBR_ENTRIES != VPMU_LBR_ENTRIES ||
                  X86_VPMU_LBR_POP != VPMU_BRANCH_POP ||
                  X86_VPMU_LBR_INFO(1) != VPMU_LBR_INFO(1) ||
                  X86_VPMU_LBR_NEAR_BITS != VPMU_LBR_NEAR_BITS ||
                  X86_VPMU_LBR_NEAR(5, -0x12345) !=
                  VPMU_LBR_NEAR(5, -0x12345) ||
                  X86_VPMU_LBR_NEAR(5, 0x312345) !=
                  VPMU_LBR_NEAR(5, 0x312345) ||
                  (int)X86_VPMU_BRANCH_RET != (int)VPMU_BRANCH_RET ||
                  (int)X86_VPMU_BRANCH_FAR != (int)VPMU_BRANCH_FAR);

static X86VPMU *vpmu_of(CPUX86State *env)
{
    return env_archcpu(env)->vpmu;
}

/*
 * Add the branch records that were made since the last call. After a change
 * of the bank this has to be called before another record is made.
 */
static void vpmu_fold_inserts(X86VPMU *v)
{
    CPUX86State *env = &v->cpu->env;

    v->total.word[VPMU_SIGNAL_LBR_INSERTS][v->lbr_bank] +=
        vpmu_lbr_inserted(vpmu_lbr_of(env), &v->lbr_seen);
    v->lbr_bank = X86_VPMU_BANK(env->hflags);
}

/*
 * Compute what a bank's words have counted of each signal since they were
 * armed
 */
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
    int64_t n[VPMU_SIGNAL_UARCH] = { };

    vpmu_stream_drain(v);
    vpmu_fold_inserts(v);
    for (int b = 0; b < X86_VPMU_BANKS; b++) {
        if (env->vpmu.left[b] == v->armed[b] << shift &&
            !memcmp(v->kind_armed[b], env->vpmu.kind[b],
                    sizeof(v->kind_armed[b]))) {
            continue;
        }
        vpmu_counted(v, b, n);
        for (int s = 0; s < VPMU_SIGNAL_UARCH; s++) {
            v->total.word[s][b] += n[s];
        }
        v->armed[b] -= n[VPMU_SIGNAL_INSTRUCTIONS];
        env->vpmu.left[b] = v->armed[b] << shift;
        memcpy(v->kind_armed[b], env->vpmu.kind[b],
               sizeof(v->kind_armed[b]));
    }
}

uint64_t vpmu_left(const X86VPMU *v, int signal, int bank)
{
    uint64_t until = v->until.word[signal][bank];
    uint64_t total = v->total.word[signal][bank];

    return until == VPMU_NEVER ? VPMU_NEVER
                               : until > total ? until - total : 0;
}

/*
 * Is the modelled CPU to be fed? Blocks then count instructions in any case
 */
static bool vpmu_streaming(const X86VPMU *v)
{
    return v->uarch.model && (v->vm->uarch->always || v->uarch.recording ||
                              (v->silicon->demand & VPMU_SIGNALS_UARCH));
}

/* @nearest: occurrences of any kind of branch until its deadline */
static X86VPMUMode vpmu_mode(const X86VPMU *v, int64_t nearest)
{
    uint64_t demand = v->silicon->demand;

    if (v->lbr_watched) {
        return X86_VPMU_WATCH_KINDS;
    }
    if (!demand && !vpmu_streaming(v)) {
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

        word[k] = v->lbr_watched && k != X86_VPMU_JCC_NOT_TAKEN
                      ? MIN(left, 1) : MIN(left, VPMU_KIND_NEVER);
        v->kind_armed[b][k] = word[k];
        nearest = MIN(nearest, word[k]);
    }
    return nearest;
}

/*
 * Set the hot words so that no deadline is passed.  A branch is an
 * instruction, so a deadline in branches, or in records of them, is guarded
 * by that number of instructions, and approached again from there.
 */
void vpmu_arm(X86VPMU *v)
{
    CPUX86State *env = &v->cpu->env;
    int64_t nearest = VPMU_KIND_NEVER;

    vpmu_fold(v);
    for (int b = 0; b < X86_VPMU_BANKS; b++) {
        int64_t near = vpmu_arm_kinds(v, b);

        if (!vpmu_asleep(v, b)) {
            nearest = MIN(nearest, near);
        }
    }
    v->mode = vpmu_mode(v, nearest);
    vpmu_stream_switch(v, vpmu_streaming(v));
    vpmu_stream_arm(v);
    for (int b = 0; b < X86_VPMU_BANKS; b++) {
        uint64_t insns = MIN(vpmu_left(v, VPMU_SIGNAL_INSTRUCTIONS, b),
                             vpmu_left(v, VPMU_SIGNAL_BRANCHES, b));

        insns = MIN(insns, vpmu_left(v, VPMU_SIGNAL_LBR_INSERTS, b));
        if (vpmu_asleep(v, b)) {
            insns = MIN(insns, 1);
        }
        v->armed[b] = MIN(insns, x86_vpmu_slice(v->mode));
        env->vpmu.left[b] = v->armed[b] << x86_vpmu_insn_shift(v->mode);
    }
    env->hflags &= ~HF_VPMU_MASK;
    env->hflags |= v->mode << HF_VPMU_SHIFT;
}

/* Has silicon's deadline come, in any word? */
static bool vpmu_reached(const X86VPMU *v)
{
    uint64_t rest = v->waited & ~VPMU_SIGNALS_UARCH;

    if (vpmu_stream_reached(v)) {
        return true;
    }
    for (; rest; rest &= rest - 1) {
        for (int b = 0; b < X86_VPMU_BANKS; b++) {
            if (vpmu_left(v, ctz64(rest), b) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Hooks of libvpmu */

static void vpmu_op_read_totals(void *ctx, uint64_t signals,
                         struct vpmu_signal_words *totals)
{
    X86VPMU *v = ctx;

    vpmu_fold(v);
    if (v->uarch.model) {
        vpmu_uarch_pull(v, signals >> VPMU_SIGNAL_UARCH);
    }
    for (; signals; signals &= signals - 1) {
        int s = ctz64(signals);

        memcpy(totals->word[s], v->total.word[s], sizeof(totals->word[s]));
    }
}

static void vpmu_op_set_deadlines(void *ctx, const struct vpmu_signal_words *left)
{
    X86VPMU *v = ctx;

    vpmu_fold(v);
    if (v->uarch.model) {
        vpmu_uarch_pull(v, VPMU_SIGNALS_UARCH >> VPMU_SIGNAL_UARCH);
    }
    v->uarch.waited = 0;
    for (uint64_t rest = v->waited | v->silicon->armed; rest;
         rest &= rest - 1) {
        int s = ctz64(rest);

        for (int b = 0; b < X86_VPMU_BANKS; b++) {
            uint64_t n = left->word[s][b];
            uint64_t total = v->total.word[s][b];

            v->until.word[s][b] = n > VPMU_NEVER - total ? VPMU_NEVER
                                                         : total + n;
            if (s >= VPMU_SIGNAL_UARCH && v->until.word[s][b] != VPMU_NEVER) {
                v->uarch.waited |= 1ull << (s - VPMU_SIGNAL_UARCH);
            }
        }
    }
    v->waited = v->silicon->armed;
    vpmu_arm(v);
}

static void vpmu_op_set_demand(void *ctx, uint64_t signals)
{
    vpmu_arm(ctx);
}

/*
 * From the vCPU's thread, or from another one's that closes events of this
 * vCPU
 */
static void vpmu_op_kick(void *ctx)
{
    X86VPMU *v = ctx;

    qatomic_set(&v->service, true);
    qatomic_set(&v->due, true);
    if (!qemu_cpu_is_self(CPU(v->cpu))) {
        qatomic_set(&CPU(v->cpu)->neg.icount_decr.u16.high, -1);
    }
}

static void vpmu_op_raise_pmi(void *ctx, bool mask)
{
    X86VPMU *v = ctx;

    v->n_pmis++;
    trace_x86_vpmu_pmi(CPU(v->cpu)->cpu_index);
    if (v->cpu->apic_state) {
        BQL_LOCK_GUARD();
        apic_deliver_pmi(v->cpu->apic_state, mask);
    }
}

static struct vpmu_lbr *vpmu_op_set_lbr(void *ctx, bool record)
{
    X86VPMU *v = ctx;
    CPUState *cs = CPU(v->cpu);

    cs->tcg_cflags &= ~CF_TARGET;
    cs->tcg_cflags |= record ? CF_TARGET : 0;
    vpmu_uarch_lbr(v, record);
    return vpmu_lbr_of(&v->cpu->env);
}

static void vpmu_op_watch_lbr(void *ctx, bool on)
{
    X86VPMU *v = ctx;

    v->lbr_watched = on;
    vpmu_arm(v);
}

static void vpmu_op_finish_lbr(void *ctx, struct vpmu_lbr_entry *const *entries,
                               unsigned int n)
{
    vpmu_uarch_lbr_finish(ctx, entries, n);
}

/*
 * With supervisor rights, as for a CPU's own accesses, which EFLAGS.AC does
 * not affect.
 */
static int vpmu_op_gva_to_gpa(void *ctx, uint64_t address, bool write,
                          uint64_t *gpa)
{
    X86VPMU *v = ctx;
    CPUX86State *env = &v->cpu->env;
    bool lma = env->hflags & HF_LMA_MASK;
    int idx = (env->hflags & HF_SMAP_MASK ? MMU_KSMAP64_IDX
                                          : MMU_KNOSMAP64_IDX) + !lma;
    CPUTLBEntryFull *full;
    void *host;

    if (!lma && address > UINT32_MAX) {
        return -VPMU_EFAULT;
    }
    if (probe_access_full(env, address, 0,
                          write ? MMU_DATA_STORE : MMU_DATA_LOAD, idx, true,
                          &host, &full, 0) & TLB_INVALID_MASK) {
        return -VPMU_EFAULT;
    }
    *gpa = full->phys_addr | (address & ~TARGET_PAGE_MASK);
    return 0;
}

/*
 * Translate blocks of one instruction each, which keep what a record will
 * need. The next block is looked up in the main loop.
 */
static void vpmu_op_set_sampling(void *ctx, bool on)
{
    X86VPMU *v = ctx;
    CPUState *cs = CPU(v->cpu);

    cs->tcg_cflags &= ~(CF_TARGET_2 | CF_COUNT_MASK);
    cs->tcg_cflags |= on ? CF_TARGET_2 | 1 : 0;
    v->record_awaited = on;
}

static void vpmu_op_get_sample(void *ctx, struct vpmu_sample *s)
{
    X86VPMU *v = ctx;
    CPUX86State *env = &v->cpu->env;

    s->ip = env->vpmu.sample_ip;
    s->next_ip = env->segs[R_CS].base + env->eip;
    if (!(env->hflags & HF_CS64_MASK)) {
        s->next_ip = (uint32_t)s->next_ip;
    }
    s->flags = cpu_compute_eflags(env);
    s->address = env->vpmu.sample_address;
    s->tsc = cpu_get_tsc(env) + env->tsc_offset;
    for (int i = 0; i < MIN(CPU_NB_REGS, VPMU_SAMPLE_GPRS); i++) {
        s->gpr[i] = env->regs[i];
    }
    for (int i = 0; i < MIN(CPU_NB_REGS, VPMU_SAMPLE_XMMS); i++) {
        s->xmm[i][0] = env->xmm_regs[i].ZMM_Q(0);
        s->xmm[i][1] = env->xmm_regs[i].ZMM_Q(1);
    }
    s->code64 = env->hflags & HF_CS64_MASK;
    vpmu_uarch_sample(v, s);
}

static void vpmu_op_set_load_latency(void *ctx, uint32_t cycles)
{
    vpmu_uarch_threshold_set(ctx, cycles);
}

static void vpmu_op_counter_restarted(void *ctx)
{
    vpmu_uarch_restart(ctx);
}

const struct vpmu_ops vpmu_tcg_ops = {
    .size = sizeof(struct vpmu_ops),
    .read_totals = vpmu_op_read_totals,
    .set_deadlines = vpmu_op_set_deadlines,
    .set_demand = vpmu_op_set_demand,
    .kick = vpmu_op_kick,
    .raise_pmi = vpmu_op_raise_pmi,
    .set_lbr = vpmu_op_set_lbr,
    .finish_lbr = vpmu_op_finish_lbr,
    .gva_to_gpa = vpmu_op_gva_to_gpa,
    .set_sampling = vpmu_op_set_sampling,
    .get_sample = vpmu_op_get_sample,
    .set_load_latency = vpmu_op_set_load_latency,
    .counter_restarted = vpmu_op_counter_restarted,
    .watch_lbr = vpmu_op_watch_lbr,
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
    if (v->lbr_watched) {
        vpmu_arch_branched(v->arch);
    }
    if (vpmu_reached(v)) {
        v->n_expired++;
        vpmu_silicon_expire(v->silicon);
    } else {
        vpmu_arm(v);
    }
    vpmu_slice_end(v);
    vpmu_serve(v);
}

/*
 * A block that does not look at interrupts does not look at the budget of
 * -icount either.  Where that is used up, time goes on by one instruction.
 */
static void vpmu_reserve_icount(CPUState *cs)
{
    if (!icount_enabled() || cs->neg.icount_decr.u16.low) {
        return;
    }
    if (cs->icount_extra) {
        cs->icount_extra--;
    } else {
        cs->icount_budget++;
    }
    cs->neg.icount_decr.u16.low = 1;
}

/*
 * A counter has wrapped and its next occurrence is to be recorded.  If the
 * kernel ran in between, it might switch tasks and write another value to the
 * counter, and the record would be lost.  Interrupts are most frequent here,
 * as time has passed.  So interrupts of user mode wait for one more
 * instruction.
 */
static void vpmu_hold_interrupts(CPUState *cs)
{
    if ((cpu_env(cs)->hflags & HF_CPL_MASK) == 3) {
        cs->cflags_next_tb = (curr_cflags(cs) & ~CF_COUNT_MASK) | CF_NOIRQ | 1;
        vpmu_reserve_icount(cs);
        /* and take interrupts after it */
        qatomic_set(&cs->neg.icount_decr.u16.high, -1);
    }
}

bool x86_vpmu_exec_boundary(CPUState *cs)
{
    CPUX86State *env = cpu_env(cs);
    X86VPMU *v = vpmu_of(env);
    uint32_t hflags = env->hflags, cflags = cs->tcg_cflags;

    x86_vpmu_boundary(env);
    if (v && v->record_awaited) {
        v->record_awaited = false;
    }
    if (cs->tcg_cflags & ~cflags & CF_TARGET_2) {
        vpmu_hold_interrupts(cs);
    }
    return (env->hflags ^ hflags) & HF_VPMU_MASK || cs->tcg_cflags != cflags;
}

bool x86_vpmu_fetch_boundary(CPUX86State *env)
{
    x86_vpmu_boundary(env);
    return (env_cpu(env)->interrupt_request & CPU_INTERRUPT_NMI) &&
           !(env->hflags2 & HF2_NMI_MASK) && (env->hflags2 & HF2_GIF_MASK);
}

/*
 * A block needs more instructions than are left: either only the slice is
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
    /* The block's code looks at -icount's budget first */
    if (icount_enabled() && cs->neg.icount_decr.u16.low < tb->icount) {
        return false;
    }
    if (env->vpmu.left[bank] +
        x86_vpmu_words(tb->flags, tb->icount, tb->branch) >= 0) {
        /*
         * The stream is full, or near a deadline of one of the model's counts
         */
        if (!vpmu_stream_full(v)) {
            qatomic_set(&v->due, true);
        }
        return true;
    }
    vpmu_fold(v);
    if (vpmu_reached(v)) {
        qatomic_set(&v->due, true);
    } else {
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

void x86_vpmu_uncount(CPUState *cs, const TranslationBlock *tb, int insns_left,
                      const uint64_t *data)
{
    CPUX86State *env = cpu_env(cs);

    if (tb->flags & HF_VPMU_MASK) {
        env->vpmu.left[X86_VPMU_BANK(tb->flags)] -=
            x86_vpmu_words(tb->flags, insns_left, tb->branch);
        vpmu_stream_cut(vpmu_of(env), tb, insns_left, data);
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

/*
 * An interrupt that VMRUN injects is not an instruction; delivery clears the
 * field.
 */
int x86_vpmu_int_bank(CPUX86State *env)
{
    hwaddr field = env->vm_vmcb + offsetof(struct vmcb, control.event_inj);

    if (!env->exception_is_int || !(env->hflags & HF_VPMU_MASK)) {
        return -1;
    }
    if ((env->hflags & HF_GUEST_MASK) &&
        (x86_ldl_phys(env_cpu(env), field) & SVM_EVTINJ_VALID)) {
        return -1;
    }
    return X86_VPMU_BANK(env->hflags);
}

/*
 * Call this before a record of a far transfer: the ring may have changed, and
 * no word watches for the record.
 */
static void vpmu_before_far(CPUX86State *env)
{
    X86VPMU *v = vpmu_of(env);

    if (v) {
        vpmu_fold_inserts(v);
        if (v->lbr_watched ||
            (v->silicon->demand & VPMU_SIGNAL_BIT(VPMU_SIGNAL_LBR_INSERTS))) {
            helper_vpmu_kind_due(env);
        }
    }
}

/* A far transfer other than an interrupt has been made */
void helper_vpmu_far(CPUX86State *env, target_ulong from)
{
    vpmu_before_far(env);
    vpmu_lbr_record(vpmu_lbr_of(env), VPMU_BRANCH_FAR,
                    env->hflags & HF_CPL_MASK, from, env->eip);
}

void x86_vpmu_interrupting(CPUX86State *env, int intno)
{
    X86VPMU *v = vpmu_of(env);

    if (!v) {
        return;
    }
    /*
     * DEBUGCTL is the architectural PMU's; records may be the paravirtual
     * one's
     */
    if (intno == EXCP01_DB && v->arch) {
        vpmu_arch_debug_exception(v->arch);
    }
    vpmu_stream_event(v);
}

void x86_vpmu_interrupted(CPUX86State *env, int intno, uint64_t from)
{
    if (!env->vpmu.lbr.on) {
        return;
    }
    vpmu_before_far(env);
    vpmu_lbr_interrupt(vpmu_lbr_of(env), env->hflags & HF_CPL_MASK, from,
                       env->eip);
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
        vpmu_of(env)->uarch.in_progress = true;
    }
}

/*
 * VMRUN counts once, for the host, and is not a branch. If the guest's state
 * is refused, it has been taken back like an instruction that faults, but the
 * host continues after it.
 */
void x86_vpmu_retire_vmrun(CPUX86State *env)
{
    vpmu_retire(env, VPMU_BANK_KERNEL, 0);
}

void x86_vpmu_retire_insn(CPUX86State *env)
{
    X86VPMU *v = vpmu_of(env);

    vpmu_retire(env, X86_VPMU_BANK(env->hflags), 0);
    if (v) {
        v->uarch.in_progress = false;
    }
}

/*
 * An instruction that accesses the PMU ends its block, so it is the only one
 * of the block that has been counted but not retired. It has been taken back;
 * let it retire under the setting that it has made.
 */
static bool vpmu_result(CPUX86State *env, enum vpmu_result r, uintptr_t ra)
{
    x86_vpmu_retire_insn(env);
    if (r == VPMU_FAULT) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
    return r == VPMU_HANDLED;
}

/* A nested guest has no doorbell, as it has no hypercall */
static bool vpmu_is_doorbell(const X86VPMU *v, uint32_t msr)
{
    return v && v->pv && msr == VPMU_PV_MSR_DOORBELL &&
           (v->vm->pv_calls & VPMU_PV_CALL_DOORBELL) &&
           !(v->cpu->env.hflags & HF_GUEST_MASK);
}

bool x86_vpmu_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val,
                    uintptr_t ra)
{
    X86VPMU *v = vpmu_of(env);
    enum vpmu_result r;

    if (vpmu_is_doorbell(v, msr)) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
    if (!v || !v->arch) {
        return false;
    }
    x86_vpmu_uncount_insn(env);
    r = vpmu_arch_rdmsr(v->arch, msr, val);
    if (r == VPMU_HANDLED) {
        trace_x86_vpmu_rdmsr(CPU(v->cpu)->cpu_index, msr, *val);
        vpmu_slice_begin(v);
    }
    v->n_exits[VPMU_TRACE_RDMSR] += r != VPMU_NOT_MINE;
    vpmu_serve(v);
    return vpmu_result(env, r, ra);
}

int x86_vpmu_load_msr(CPUX86State *env, uint32_t msr, uint64_t val)
{
    X86VPMU *v = vpmu_of(env);
    enum vpmu_result r;

    if (!v || !v->arch) {
        return 0;
    }
    r = vpmu_arch_wrmsr(v->arch, msr, val);
    if (r == VPMU_HANDLED) {
        vpmu_slice_begin(v);
    }
    vpmu_serve(v);
    return r == VPMU_NOT_MINE ? 0 : r == VPMU_HANDLED ? 1 : -1;
}

bool x86_vpmu_save_msr(CPUX86State *env, uint32_t msr, uint64_t *val)
{
    X86VPMU *v = vpmu_of(env);
    bool mine;

    if (!v || !v->arch) {
        return false;
    }
    mine = vpmu_arch_rdmsr(v->arch, msr, val) == VPMU_HANDLED;
    vpmu_serve(v);
    return mine;
}

unsigned x86_vpmu_record_places(CPUX86State *env, uint64_t linear[4])
{
    X86VPMU *v = vpmu_of(env);

    return v && v->arch ? vpmu_arch_record_places(v->arch, linear) : 0;
}

static bool vpmu_doorbell(CPUX86State *env, uint64_t val, uintptr_t ra)
{
    X86VPMU *v = vpmu_of(env);
    enum vpmu_result r;

    x86_vpmu_uncount_insn(env);
    r = vpmu_pv_doorbell(v->pv, val);
    v->n_calls[VPMU_CALL_DOORBELL]++;
    vpmu_slice_begin(v);
    vpmu_serve(v);
    return vpmu_result(env, r, ra);
}

bool x86_vpmu_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val, uintptr_t ra)
{
    X86VPMU *v = vpmu_of(env);
    enum vpmu_result r;

    if (vpmu_is_doorbell(v, msr)) {
        return vpmu_doorbell(env, val, ra);
    }
    if (!v || !v->arch) {
        return false;
    }
    x86_vpmu_uncount_insn(env);
    r = vpmu_arch_wrmsr(v->arch, msr, val);
    if (r == VPMU_HANDLED) {
        trace_x86_vpmu_wrmsr(CPU(v->cpu)->cpu_index, msr, val);
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
    r = vpmu_arch_rdpmc(v->arch, idx, env->hflags & HF_CPL_MASK, val);
    v->n_exits[VPMU_TRACE_RDPMC] += r != VPMU_NOT_MINE;
    vpmu_serve(v);
    return vpmu_result(env, r, ra);
}

uint64_t x86_vpmu_misc_enable(CPUX86State *env)
{
    X86VPMU *v = vpmu_of(env);

    return v && v->arch ? vpmu_arch_misc_enable(v->arch) : 0;
}

/* The answer of KVM to an unknown number */
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
    x86_vpmu_retire_insn(env);
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

void x86_vpmu_efer(CPUX86State *env)
{
    X86VPMU *v = vpmu_of(env);

    if (v && v->arch) {
        vpmu_arch_svme(v->arch, env->efer & MSR_EFER_SVME);
        vpmu_serve(v);
    }
}

uint64_t x86_vpmu_tsc(void)
{
    return muldiv64(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), VPMU_TSC_HZ,
                    NANOSECONDS_PER_SECOND);
}
