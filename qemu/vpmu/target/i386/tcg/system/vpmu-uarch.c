/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modelled CPU of a vCPU under TCG: translated code stores a stream of
 * what it executes into a buffer (vpmu-stream.c.inc), and libvpmu's model
 * runs it in batches.
 *
 * In the middle of a block the words of its rest are not stored yet.  So the
 * buffer is run between two blocks, or within the last instruction of one.
 *
 * While no deadline is near, a thread of the model's own runs full buffers
 * and the vCPU fills another one.  The model belongs to that thread from
 * stream_hand() to stream_join(); any other access joins first, so the counts
 * are the same.
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/memalign.h"
#include "qemu/rcu.h"
#include "qapi/error.h"
#include "cpu.h"
#include "exec/translation-block.h"
#include "hw/boards.h"
#include "system/cpu-timers.h"
#include "tcg/helper-tcg.h"
#include "vpmu-internal.h"

#define STREAM_BYTES (2 * X86_STREAM_FULL)

QEMU_BUILD_BUG_ON(X86_STREAM_SPARE * 8 > X86_STREAM_FULL);

/* ---- the model's thread ---- */

/*
 * Full buffers wait in a queue.  The thread starts when half of the buffers
 * are full and runs until none is; a vCPU that has filled all waits until
 * half are free.  So neither sleeps often.  Everything is under @lock, except
 * the model while @running.
 */
typedef struct X86StreamThread {
    QemuThread thread;
    QemuMutex lock;
    QemuCond work, done;
    struct vpmu_uarch *model;
    struct {
        const uint64_t *words;
        size_t n;
    } job[X86_STREAM_BUFFERS];
    unsigned int first, queued;
    bool running;                      /* the thread runs the first job */
    /* The thread must not start another job. */
    bool joining;
    bool quit;
} X86StreamThread;

static void stream_job(X86StreamThread *t)
{
    vpmu_uarch_run(t->model, t->job[t->first].words, t->job[t->first].n);
}

static void stream_job_done(X86StreamThread *t)
{
    t->first = (t->first + 1) % X86_STREAM_BUFFERS;
    t->queued--;
}

static void *stream_thread(void *opaque)
{
    X86StreamThread *t = opaque;

    rcu_register_thread();
    qemu_mutex_lock(&t->lock);
    while (!t->quit) {
        if (t->joining || t->queued < X86_STREAM_BUFFERS / 2) {
            qemu_cond_wait(&t->work, &t->lock);
            continue;
        }
        while (t->queued && !t->joining) {
            t->running = true;
            qemu_mutex_unlock(&t->lock);
            stream_job(t);
            qemu_mutex_lock(&t->lock);
            t->running = false;
            stream_job_done(t);
            if (t->joining || t->queued == X86_STREAM_BUFFERS / 2) {
                qemu_cond_signal(&t->done);
            }
        }
    }
    qemu_mutex_unlock(&t->lock);
    rcu_unregister_thread();
    return NULL;
}

/* Return the model to the vCPU's own thread, with all counts up to date. */
static void stream_join(X86VPMU *v)
{
    X86StreamThread *t = v->uarch.thread;

    if (!v->uarch.handed) {
        return;
    }
    v->uarch.handed = 0;
    qemu_mutex_lock(&t->lock);
    t->joining = true;
    while (t->running) {
        qemu_cond_wait(&t->done, &t->lock);
    }
    for (; t->queued; stream_job_done(t)) {
        stream_job(t);
    }
    t->joining = false;
    qemu_mutex_unlock(&t->lock);
    vpmu_uarch_pull(v, v->uarch.waited);
}

static X86StreamThread *stream_thread_new(X86VPMU *v)
{
    X86StreamThread *t = g_new0(X86StreamThread, 1);

    t->model = v->uarch.model;
    qemu_mutex_init(&t->lock);
    qemu_cond_init(&t->work);
    qemu_cond_init(&t->done);
    qemu_thread_create(&t->thread, "vpmu-uarch", stream_thread, t,
                       QEMU_THREAD_JOINABLE);
    return t;
}

static void stream_thread_end(X86VPMU *v)
{
    X86StreamThread *t = v->uarch.thread;

    if (!t) {
        return;
    }
    stream_join(v);
    qemu_mutex_lock(&t->lock);
    t->quit = true;
    qemu_cond_signal(&t->work);
    qemu_mutex_unlock(&t->lock);
    qemu_thread_join(&t->thread);
    qemu_mutex_destroy(&t->lock);
    qemu_cond_destroy(&t->work);
    qemu_cond_destroy(&t->done);
    g_free(t);
    v->uarch.thread = NULL;
}

/*
 * Hand the buffer to the thread and go on with the next, as soon as one is
 * free.
 */
static void stream_hand(X86VPMU *v, const uint64_t *words, size_t n)
{
    X86StreamThread *t = v->uarch.thread;

    if (!t) {
        t = v->uarch.thread = stream_thread_new(v);
    }
    qemu_mutex_lock(&t->lock);
    t->job[v->uarch.filled].words = words;
    t->job[v->uarch.filled].n = n;
    if (++t->queued == X86_STREAM_BUFFERS / 2) {
        qemu_cond_signal(&t->work);
    }
    if (t->queued == X86_STREAM_BUFFERS) {
        while (t->queued > X86_STREAM_BUFFERS / 2) {
            qemu_cond_wait(&t->done, &t->lock);
        }
    }
    qemu_mutex_unlock(&t->lock);
    v->uarch.handed += n;
    v->uarch.filled = (v->uarch.filled + 1) % X86_STREAM_BUFFERS;
}

/* ---- the buffer ---- */

static uint64_t *stream_start(const X86VPMU *v, uint32_t words)
{
    return v->uarch.buffer[v->uarch.filled] + X86_STREAM_FULL / 8 - words;
}

static void stream_put(X86VPMU *v, uint64_t word)
{
    X86VPMUHot *hot = &v->cpu->env.vpmu;

    if (hot->stream_at < stream_start(v, 0) + (STREAM_BYTES - X86_STREAM_FULL) / 8) {
        *hot->stream_at++ = word;
    } else {
        v->uarch.n_lost++;
    }
}

/* Do blocks that are translated now store words? */
static bool stream_on(const X86VPMU *v)
{
    return CPU(v->cpu)->tcg_cflags & CF_TARGET_3;
}

/* Do the accesses of helpers belong to the stream now? */
static bool stream_hears(const X86VPMU *v)
{
    return stream_on(v) && x86_stream_wanted(&v->cpu->env,
                               v->cpu->env.hflags & HF_CPL_MASK);
}

bool x86_stream_wanted(CPUX86State *env, int cpl)
{
    const X86VPMU *v = env_archcpu(env)->vpmu;

    return v && v->uarch.model && (cpl || !v->vm->uarch->user_only);
}

static void stream_empty(X86VPMU *v)
{
    X86VPMUHot *hot = &v->cpu->env.vpmu;

    v->uarch.start = stream_start(v, v->uarch.batch);
    hot->stream_at = v->uarch.start;
    hot->stream_block = NULL;
}

/*
 * With user_only the model skips what runs while nothing is counted, and each
 * program and each measurement begins with a cold CPU.  So neither earlier
 * programs nor those that are switched to in between make a difference.
 */
static bool stream_passed_over(X86VPMU *v)
{
    uint64_t cr3 = v->cpu->env.cr[3];

    if (!v->vm->uarch->user_only) {
        return false;
    }
    if (!v->vm->uarch->always &&
        !(vpmu_silicon_counting(v->silicon) & VPMU_SIGNALS_UARCH)) {
        return true;
    }
    if (v->uarch.anew || v->uarch.cr3 != cr3) {
        v->uarch.anew = false;
        v->uarch.cr3 = cr3;
        vpmu_uarch_cold(v);
    }
    return false;
}

void vpmu_uarch_restart(X86VPMU *v)
{
    if (v->uarch.model && v->vm->uarch->user_only) {
        vpmu_stream_drain(v);
        v->uarch.anew = true;
    }
}

/*
 * An instruction that accesses the PMU has not retired yet.  It is the last
 * of its block: run all others of the block, and keep this one.
 */
static void stream_keep_last(X86VPMU *v, uint64_t *kept)
{
    X86VPMUHot *hot = &v->cpu->env.vpmu;
    uint64_t *block = hot->stream_block, more;

    if (!block) {
        return;
    }
    more = block[1];
    kept[0] = VPMU_UARCH_WORD(v->cpu->env.segs[R_CS].base + v->cpu->env.eip,
                              VPMU_UARCH_BLOCK);
    kept[1] = VPMU_UARCH_B_INSNS(1) | VPMU_UARCH_B_LENGTH(2) |
              VPMU_UARCH_B_BANK(more >> 27 & 3);
    if ((more & 1023) > 1) {
        block[1] = more - VPMU_UARCH_B_INSNS(1) - VPMU_UARCH_B_LENGTH(2);
    } else if (hot->stream_at == block + 2) {
        hot->stream_at = block;
    } else {
        block[1] = more - VPMU_UARCH_B_INSNS(1);
    }
}

void vpmu_stream_drain(X86VPMU *v)
{
    X86VPMUHot *hot = &v->cpu->env.vpmu;
    uint64_t kept[2] = { };

    if (!v->uarch.model) {
        return;
    }
    stream_join(v);
    if (hot->stream_at == v->uarch.start) {
        return;
    }
    if (v->uarch.in_progress && stream_hears(v)) {
        stream_keep_last(v, kept);
    }
    if (!stream_passed_over(v)) {
        vpmu_uarch_run(v->uarch.model, v->uarch.start,
                       hot->stream_at - v->uarch.start);
        vpmu_uarch_pull(v, v->uarch.waited);
    }
    stream_empty(v);
    if (kept[1]) {
        hot->stream_block = hot->stream_at;
        stream_put(v, kept[0]);
        stream_put(v, kept[1]);
    }
}

/*
 * Upper bound of what a word adds to a count, except for long blocks that are
 * cold
 */
static unsigned int stream_most_of_word(int count)
{
    switch (count) {
    case VPMU_UARCH_RETIRING ... VPMU_UARCH_MEMORY_BOUND:
        return 4096;                   /* slots */
    case VPMU_UARCH_CYCLES:
    case VPMU_UARCH_STALLS ... VPMU_UARCH_RECOVERY:
        return 512;                    /* cycles */
    case VPMU_UARCH_LOADS ... VPMU_UARCH_LOAD_DRAM:
    case VPMU_UARCH_READ_L2 ... VPMU_UARCH_RFO_DRAM:
    case VPMU_UARCH_DTLB_LOAD_L2 ... VPMU_UARCH_DTLB_STORE_WALK:
        return 2;                      /* lines of one access */
    default:
        return 64;                     /* lines of a block, and prefetches */
    }
}

bool vpmu_stream_reached(const X86VPMU *v)
{
    for (uint64_t rest = v->uarch.waited; rest; rest &= rest - 1) {
        for (int b = 0; b < X86_VPMU_BANKS; b++) {
            if (!vpmu_left(v, VPMU_SIGNAL_UARCH + ctz64(rest), b)) {
                return true;
            }
        }
    }
    return false;
}

/* Number of words that can run before any count can reach its deadline */
static uint64_t stream_before_deadline(const X86VPMU *v)
{
    uint64_t words = UINT64_MAX;

    for (uint64_t rest = v->uarch.waited; rest; rest &= rest - 1) {
        int c = ctz64(rest);

        for (int b = 0; b < X86_VPMU_BANKS; b++) {
            if (!vpmu_asleep(v, b)) {
                words = MIN(words, vpmu_left(v, VPMU_SIGNAL_UARCH + c, b) /
                                   stream_most_of_word(c));
            }
        }
    }
    return words;
}

/* The nearer a deadline, the shorter a batch, down to one block. */
void vpmu_stream_arm(X86VPMU *v)
{
    X86VPMUHot *hot = &v->cpu->env.vpmu;
    uint64_t batch, *start;
    ptrdiff_t words;

    if (!v->uarch.model) {
        return;
    }
    stream_join(v);
    batch = MIN(X86_STREAM_BATCH, stream_before_deadline(v));
    start = stream_start(v, MAX(batch, 1));
    words = hot->stream_at - v->uarch.start;
    memmove(start, v->uarch.start, words * sizeof(*start));
    if (hot->stream_block) {
        hot->stream_block += start - v->uarch.start;
    }
    v->uarch.start = start;
    v->uarch.batch = MAX(batch, 1);
    hot->stream_at = start + words;
}

/*
 * The buffer is full, between two blocks.  Another one is filled while this
 * one runs, unless any may reach a deadline.
 */
bool vpmu_stream_full(X86VPMU *v)
{
    uint64_t *words = v->uarch.start;
    size_t n = v->cpu->env.vpmu.stream_at - words;

    if (!v->vm->uarch->threads || v->uarch.in_progress ||
        stream_before_deadline(v) <
        v->uarch.handed + n + X86_STREAM_BATCH + X86_STREAM_SPARE) {
        vpmu_stream_drain(v);
        if (vpmu_stream_reached(v)) {
            return false;
        }
        vpmu_stream_arm(v);
        return true;
    }
    if (!stream_passed_over(v)) {
        stream_hand(v, words, n);
    }
    v->uarch.batch = X86_STREAM_BATCH;
    stream_empty(v);
    return true;
}

/*
 * The block is left before its last @insns_left instructions: drop their
 * words, and keep those of a repeated instruction's iterations and of
 * helpers.
 */
void vpmu_stream_cut(X86VPMU *v, const TranslationBlock *tb, int insns_left,
                     const uint64_t *data)
{
    X86VPMUHot *hot = &v->cpu->env.vpmu;
    uint64_t *block = hot->stream_block, more;
    uint32_t insns = tb->icount - insns_left, words = data[1] >> 32 & 4095;
    uint32_t loose, had, length;

    if (!(tb_cflags(tb) & CF_TARGET_3) || !block ||
        !x86_stream_wanted(&v->cpu->env, tb->flags & HF_CPL_MASK)) {
        return;
    }
    more = block[1];
    had = more >> 52;
    loose = hot->stream_at - (block + 2 + had);
    memmove(block + 2 + words, block + 2 + had, loose * sizeof(*block));
    hot->stream_at = block + 2 + words + loose;
    if (!insns && !loose) {
        hot->stream_at = block;
    }
    length = (data[0] - VPMU_UARCH_ADDRESS(block[0])) & ~TARGET_PAGE_MASK;
    block[1] = VPMU_UARCH_B_INSNS(insns) | VPMU_UARCH_B_LENGTH(length) |
               VPMU_UARCH_B_BANK(more >> 27 & 3) |
               VPMU_UARCH_B_UOPS(data[1] >> 44 & 4095) |
               VPMU_UARCH_B_DIVIDES(data[1] >> 56);
    hot->stream_block = NULL;
}

/* ---- accesses of helpers, and events ---- */

static void stream_access(X86VPMU *v, vaddr addr, int log2, MMUAccessType type)
{
    stream_put(v, VPMU_UARCH_WORD(addr, type == MMU_DATA_STORE
                                            ? VPMU_UARCH_STORE
                                            : VPMU_UARCH_LOAD) |
                  VPMU_UARCH_BYTES(log2));
}

void x86_stream_accessed(CPUState *cs, vaddr addr, unsigned size,
                         MMUAccessType type, uintptr_t ra)
{
    X86VPMU *v = X86_CPU(cs)->vpmu;

    if (ra && stream_hears(v)) {
        stream_access(v, addr, ctz32(size), type);
    }
}

/* One access per line: a wide CPU accesses a whole line at once */
void x86_stream_area(CPUX86State *env, vaddr addr, unsigned size,
                     MMUAccessType type, uintptr_t ra)
{
    X86VPMU *v = env_archcpu(env)->vpmu;
    vaddr end = addr + size;

    if (!ra || !stream_hears(v)) {
        return;
    }
    for (; addr < end; addr = ROUND_UP(addr + 1, 64)) {
        stream_access(v, addr, 0, type);
    }
}

void x86_stream_unmap(CPUX86State *env, vaddr addr, bool all)
{
    X86VPMU *v = env_archcpu(env)->vpmu;

    if (!v || !v->uarch.model || !stream_on(v)) {
        return;
    }
    /* Earlier words belong to the former program and translation */
    vpmu_stream_drain(v);
    if (!v->vm->uarch->linear) {
        stream_put(v, VPMU_UARCH_WORD(addr, VPMU_UARCH_UNMAP) |
                      (all ? VPMU_UARCH_BYTES(0) : 0));
    }
}

/* An interrupt, or an exception that is not an instruction's purpose */
void vpmu_stream_event(X86VPMU *v)
{
    CPUX86State *env = &v->cpu->env;
    uint64_t ip = env->segs[R_CS].base + env->eip;
    int bank = X86_VPMU_BANK(env->hflags);

    if (!v->uarch.model || v->vm->uarch->user_only || !stream_hears(v)) {
        return;
    }
    if (env->exception_is_int) {
        stream_put(v, VPMU_UARCH_WORD(ip, VPMU_UARCH_BLOCK));
        stream_put(v, VPMU_UARCH_B_INSNS(1) | VPMU_UARCH_B_LENGTH(2) |
                      VPMU_UARCH_B_BRANCH(VPMU_UARCH_FAR) |
                      VPMU_UARCH_B_BANK(bank));
    } else {
        stream_put(v, VPMU_UARCH_WORD(ip, VPMU_UARCH_EVENT) |
                      (env->hflags & HF_CPL_MASK ? VPMU_UARCH_USER : 0));
    }
}

/* ---- translation ---- */

/*
 * Read a table's entry, and return whether it is present.  Only RAM is read:
 * a device would need the BQL, and its holder may wait for the model's
 * thread.
 */
static bool stream_entry(X86VPMU *v, uint64_t address, unsigned bytes,
                         uint64_t *entry)
{
    CPUX86State *env = &v->cpu->env;
    MemTxAttrs attrs = cpu_get_mem_attrs(env);
    hwaddr offset, len = bytes;
    MemoryRegion *mr;

    RCU_READ_LOCK_GUARD();
    mr = address_space_translate(cpu_addressspace(CPU(v->cpu), attrs),
                                 address & x86_get_a20_mask(env), &offset,
                                 &len, false, attrs);
    if (!memory_access_is_direct(mr, false, attrs) || len < bytes) {
        return false;
    }
    *entry = ldn_le_p(memory_region_get_ram_ptr(mr) + offset, bytes);
    return *entry & PG_PRESENT_MASK;
}

/* Tables of 512 or 1024 entries, beginning at @level */
static bool stream_walk(X86VPMU *v, uint64_t table, int level, unsigned bytes,
                        uint64_t linear, uint64_t *page, uint8_t *shift)
{
    int bits = bytes == 8 ? 9 : 10;
    bool large = bytes == 8 || (v->cpu->env.cr[4] & CR4_PSE_MASK);
    uint64_t entry;

    for (;; level--) {
        int from = TARGET_PAGE_BITS + bits * level;

        if (!stream_entry(v, table + extract64(linear, from, bits) * bytes,
                          bytes, &entry)) {
            return false;
        }
        table = entry & PG_ADDRESS_MASK & TARGET_PAGE_MASK;
        if (!level || (level <= 2 && large && (entry & PG_PSE_MASK))) {
            *shift = from;
            *page = deposit64(table, 0, from, linear);
            return true;
        }
    }
}

/*
 * Walk the guest's tables without changing them.  If another vCPU has changed
 * them so that the address is no longer mapped, it is used untranslated.
 */
static uint64_t stream_translate(void *ctx, uint64_t linear, uint8_t *shift)
{
    X86VPMU *v = ctx;
    CPUX86State *env = &v->cpu->env;
    uint64_t cr3 = env->cr[3], page;
    bool done;

    if (!(env->cr[0] & CR0_PG_MASK)) {
        done = false;
    } else if (env->hflags & HF_LMA_MASK) {
        done = stream_walk(v, cr3 & PG_ADDRESS_MASK,
                           env->cr[4] & CR4_LA57_MASK ? 4 : 3, 8, linear, &page,
                           shift);
    } else if (env->cr[4] & CR4_PAE_MASK) {
        done = stream_entry(v, (cr3 & ~0x1full) + extract64(linear, 30, 2) * 8,
                            8, &page) &&
               stream_walk(v, page & PG_ADDRESS_MASK, 1, 8, linear, &page, shift);
    } else {
        done = stream_walk(v, cr3 & PG_ADDRESS_MASK, 1, 4, linear, &page, shift);
    }
    if (!done) {
        *shift = TARGET_PAGE_BITS;
        return linear & x86_get_a20_mask(env);
    }
    return page;
}

/* ---- set-up ---- */

typedef struct UarchName {
    const char *name;
    size_t offset;
} UarchName;

static const UarchName caches[] = {
    { "l1i", offsetof(struct vpmu_uarch_params, l1i) },
    { "l1d", offsetof(struct vpmu_uarch_params, l1d) },
    { "l2", offsetof(struct vpmu_uarch_params, l2) },
    { "llc", offsetof(struct vpmu_uarch_params, llc) },
    { "itlb", offsetof(struct vpmu_uarch_params, itlb) },
    { "dtlb", offsetof(struct vpmu_uarch_params, dtlb) },
    { "stlb", offsetof(struct vpmu_uarch_params, stlb) },
};

#define UARCH_WORD(field) \
    { #field, offsetof(struct vpmu_uarch_params, field) }
static const UarchName words[] = {
    UARCH_WORD(window), UARCH_WORD(fills), UARCH_WORD(stores),
    UARCH_WORD(l1d_cycles), UARCH_WORD(l2_cycles), UARCH_WORD(llc_cycles),
    UARCH_WORD(dram_cycles), UARCH_WORD(line_cycles), UARCH_WORD(stlb_cycles),
    UARCH_WORD(walk_cycles), UARCH_WORD(mispredict_cycles),
    UARCH_WORD(resteer_cycles), UARCH_WORD(clear_cycles),
    UARCH_WORD(divide_cycles),
};

static const UarchName bytes[] = {
    UARCH_WORD(width), UARCH_WORD(history_bits), UARCH_WORD(btb_bits),
    UARCH_WORD(returns), UARCH_WORD(prefetch),
};

static const UarchName *uarch_name(const UarchName *table, size_t n,
                                   const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(table[i].name, name)) {
            return &table[i];
        }
    }
    return NULL;
}

/* Parse sets times ways, or 0 */
static bool uarch_geometry(struct vpmu_uarch_geometry *g, const char *value)
{
    unsigned int sets, ways;
    const char *end;

    if (!strcmp(value, "0")) {
        g->ways = 0;
        return true;
    }
    if (qemu_strtoui(value, &end, 10, &sets) || *end != 'x' ||
        qemu_strtoui(end + 1, NULL, 10, &ways)) {
        return false;
    }
    g->sets = sets;
    g->ways = ways;
    return true;
}

static bool uarch_set(VPMUUarch *u, const char *name, const char *value)
{
    const UarchName *found;
    unsigned int n;

    if (!strcmp(name, "feed")) {
        u->user_only = !strcmp(value, "user");
        return u->user_only || !strcmp(value, "all");
    }
    if (!strcmp(name, "index")) {
        u->linear = !strcmp(value, "linear");
        return u->linear || !strcmp(value, "physical");
    }
    found = uarch_name(caches, ARRAY_SIZE(caches), name);
    if (found) {
        return uarch_geometry((void *)((char *)&u->params + found->offset),
                              value);
    }
    if (qemu_strtoui(value, NULL, 10, &n)) {
        return false;
    }
    found = uarch_name(words, ARRAY_SIZE(words), name);
    if (found && n <= UINT16_MAX) {
        *(uint16_t *)((char *)&u->params + found->offset) = n;
        return true;
    }
    found = uarch_name(bytes, ARRAY_SIZE(bytes), name);
    if (found && n <= UINT8_MAX) {
        *(uint8_t *)((char *)&u->params + found->offset) = n;
        return true;
    }
    return false;
}

static bool uarch_parse(VPMUUarch *u, const char *arg, Error **errp)
{
    g_auto(GStrv) parts = g_strsplit(arg ?: "", ":", -1);
    const char *wrong;

    for (char **p = parts; *p; p++) {
        char *value = strchr(*p, '=');

        if (value) {
            *value++ = 0;
        }
        if (!value || !uarch_set(u, *p, value)) {
            error_setg(errp, "pmu-uarch-params: '%s%s%s': needed: name=value, "
                       "joined by ':' (docs/UARCH.md has the names)", *p,
                       value ? "=" : "", value ?: "");
            return false;
        }
    }
    wrong = vpmu_uarch_check(&u->params);
    if (wrong) {
        error_setg(errp, "pmu-uarch-params=%s: %s", arg ?: "", wrong);
        return false;
    }
    return true;
}

VPMUUarch *vpmu_uarch_new(const char *mode, const char *params,
                          const struct vpmu_model *model, Error **errp)
{
    VPMUUarch *u;
    size_t size;

    u = g_new0(VPMUUarch, 1);
    u->params = *vpmu_uarch_params(model->name);
    u->always = !strcmp(mode, "always");
    /*
     * The thread reads the tables of the guest when it comes to them; with
     * -icount each count repeats, so they are read at an instruction.
     */
    u->threads = !icount_enabled() &&
                 g_get_num_processors() > current_machine->smp.max_cpus;
    if (!u->always && strcmp(mode, "on")) {
        error_setg(errp, "pmu-uarch=%s: needed: off, on or always", mode);
        g_free(u);
        return NULL;
    }
    if (!uarch_parse(u, params, errp)) {
        g_free(u);
        return NULL;
    }
    size = vpmu_uarch_llc_size(&u->params);
    u->llc = g_malloc0(size);
    if (vpmu_uarch_llc_init(u->llc, &u->params)) {
        g_assert_not_reached();
    }
    return u;
}

void vpmu_uarch_free(VPMUUarch *u)
{
    if (u) {
        g_free(u->llc);
        g_free(u);
    }
}

static void uarch_config(X86VPMU *v, struct vpmu_uarch_config *cfg)
{
    *cfg = (struct vpmu_uarch_config) {
        .size = sizeof(*cfg),
        .params = &v->vm->uarch->params,
        .llc = v->vm->uarch->llc,
        .translate = v->vm->uarch->linear ? NULL : stream_translate,
        .ctx = v,
    };
}

/* Its counts are kept */
void vpmu_uarch_cold(X86VPMU *v)
{
    const struct vpmu_uarch_counts *counts = vpmu_uarch_counts(v->uarch.model);
    struct vpmu_uarch_config cfg;

    stream_join(v);
    for (int c = 0; c < VPMU_UARCH_COUNTS; c++) {
        for (int b = 0; b < X86_VPMU_BANKS; b++) {
            v->uarch.before.word[c][b] += counts->word[c][b];
        }
    }
    uarch_config(v, &cfg);
    if (vpmu_uarch_llc_init(v->vm->uarch->llc, &v->vm->uarch->params) ||
        vpmu_uarch_init(v->uarch.model, &cfg)) {
        g_assert_not_reached();
    }
    vpmu_uarch_threshold(v->uarch.model, v->uarch.threshold);
}

void vpmu_uarch_threshold_set(X86VPMU *v, uint32_t cycles)
{
    v->uarch.threshold = cycles;
    if (v->uarch.model) {
        stream_join(v);
        vpmu_uarch_threshold(v->uarch.model, cycles);
    }
}

/* With user_only the stream lacks the kernel's branches */
void vpmu_uarch_lbr(X86VPMU *v, bool record)
{
    if (!v->uarch.model || v->vm->uarch->user_only ||
        record == v->uarch.recording) {
        return;
    }
    vpmu_stream_drain(v);
    v->uarch.recording = record;
    vpmu_uarch_record(v->uarch.model,
                      record ? vpmu_lbr_of(&v->cpu->env) : NULL);
    vpmu_arm(v);
}

void vpmu_uarch_lbr_finish(X86VPMU *v, struct vpmu_lbr_entry *const *entries,
                           unsigned int n)
{
    CPUX86State *env = &v->cpu->env;
    uint64_t base = env->segs[R_CS].base;

    if (!v->uarch.recording) {
        return;
    }
    vpmu_stream_drain(v);
    vpmu_uarch_finish(v->uarch.model, entries, n, base,
                      base + env->eip, env->hflags & HF_CPL_MASK);
}

/* A sample is taken when the stream has been run up to it. */
void vpmu_uarch_sample(const X86VPMU *v, struct vpmu_sample *s)
{
    const struct vpmu_uarch_access *last;

    if (!v->uarch.model) {
        return;
    }
    last = vpmu_uarch_last(v->uarch.model);
    if (!s->address || last->address != s->address) {
        return;
    }
    s->modelled = true;
    s->latency = last->cycles;
    s->level = last->level;
    s->tlb = last->tlb;
    s->store = last->store;
    s->locked = last->locked;
    s->split = last->split;
}

uint64_t vpmu_uarch_total(const X86VPMU *v, int count, int bank)
{
    return v->uarch.before.word[count][bank] +
           vpmu_uarch_counts(v->uarch.model)->word[count][bank];
}

void vpmu_uarch_pull(X86VPMU *v, uint64_t counts)
{
    const struct vpmu_uarch_counts *now = vpmu_uarch_counts(v->uarch.model);
    const struct vpmu_uarch_counts *before = &v->uarch.before;

    for (; counts; counts &= counts - 1) {
        int c = ctz64(counts);

        for (int b = 0; b < X86_VPMU_BANKS; b++) {
            v->total.word[VPMU_SIGNAL_UARCH + c][b] = before->word[c][b] +
                                                      now->word[c][b];
        }
    }
}

void vpmu_uarch_attach(X86VPMU *v)
{
    struct vpmu_uarch_config cfg;

    if (!v->vm->uarch) {
        return;
    }
    uarch_config(v, &cfg);
    v->uarch.model = qemu_memalign(64, vpmu_uarch_size(&cfg));
    if (vpmu_uarch_init(v->uarch.model, &cfg)) {
        g_assert_not_reached();
    }
    for (int i = 0; i < X86_STREAM_BUFFERS; i++) {
        v->uarch.buffer[i] = qemu_memalign(STREAM_BYTES, STREAM_BYTES);
    }
    v->uarch.batch = X86_STREAM_BATCH;
    stream_empty(v);
}

void vpmu_uarch_detach(X86VPMU *v)
{
    if (v->uarch.model) {
        CPU(v->cpu)->tcg_cflags &= ~CF_TARGET_3;
        stream_thread_end(v);
        for (int i = 0; i < X86_STREAM_BUFFERS; i++) {
            qemu_vfree(v->uarch.buffer[i]);
        }
        qemu_vfree(v->uarch.model);
        v->uarch.model = NULL;
    }
}

/* Start or stop feeding the model */
void vpmu_stream_switch(X86VPMU *v, bool on)
{
    CPUState *cs = CPU(v->cpu);

    if (!v->uarch.model || on == stream_on(v)) {
        return;
    }
    vpmu_stream_drain(v);
    if (on) {
        cs->tcg_cflags |= CF_TARGET_3;
        /* Pages that the guest has unmapped meanwhile are not known */
        x86_stream_unmap(&v->cpu->env, 0, true);
    } else {
        cs->tcg_cflags &= ~CF_TARGET_3;
    }
}
