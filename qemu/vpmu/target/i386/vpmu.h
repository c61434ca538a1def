/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring unit of a vCPU under TCG.
 */
#ifndef I386_VPMU_H
#define I386_VPMU_H

/* libvpmu's own CPUID leaves begin here, and KVM's follow */
#define X86_VPMU_CPUID_BASE 0x40000100
#define X86_VPMU_CPUID_KVM  0x40000200

#define X86_VPMU_BANKS 4       /* ring and nesting, enum vpmu_bank */

/* Kinds of branches, in the order of libvpmu's signals from JCC_TAKEN */
typedef enum X86VPMUKind {
    X86_VPMU_JCC_TAKEN,
    X86_VPMU_JCC_NOT_TAKEN,
    X86_VPMU_JMP,
    X86_VPMU_CALL,
    X86_VPMU_RET,
    X86_VPMU_JMP_INDIRECT,
    X86_VPMU_CALL_INDIRECT,
    X86_VPMU_FAR,
    X86_VPMU_KINDS
} X86VPMUKind;

/* The counting code in a block: part of the block's key */
typedef enum X86VPMUMode {
    X86_VPMU_OFF,
    X86_VPMU_COUNT,            /* instructions and branches */
    X86_VPMU_COUNT_KINDS,      /* and kinds of branches, no deadline is near */
    X86_VPMU_WATCH_KINDS,      /* and looks for a deadline at each of them */
} X86VPMUMode;

/*
 * Branch records, laid out as libvpmu's struct vpmu_lbr.  act[] says how a
 * branch is handled (dropped, pushed or popped), by the ring that it ends in
 * and its type.  Translated code, which has CF_TARGET while records are made
 * at all, looks that up and so stays the same while filters change.
 */
#define X86_VPMU_LBR_ENTRIES 32
#define X86_VPMU_LBR_POP 1

typedef struct X86VPMULbrEntry {
    uint64_t from, to, info, unused;
} X86VPMULbrEntry;

typedef struct X86VPMULbr {
    X86VPMULbrEntry entry[2 * X86_VPMU_LBR_ENTRIES];
    uint64_t ler[3];
    uint64_t next;
    uint8_t act[2][8];
    uint32_t on;
    uint32_t user;
    uint64_t more;
} X86VPMULbr;

/* libvpmu's types of branches, which are those of architectural LBRs */
typedef enum X86VPMUBranch {
    X86_VPMU_BRANCH_JCC,
    X86_VPMU_BRANCH_JMP_INDIRECT,
    X86_VPMU_BRANCH_JMP,
    X86_VPMU_BRANCH_CALL_INDIRECT,
    X86_VPMU_BRANCH_CALL,
    X86_VPMU_BRANCH_RET,
    X86_VPMU_BRANCH_FAR,
} X86VPMUBranch;

#define X86_VPMU_LBR_INFO(type) ((type) << 16) /* not for FAR */
#define X86_VPMU_LBR_NEAR_BITS 27
/* Encodes a branch by @by bytes; stored in place of its target */
#define X86_VPMU_LBR_NEAR(type, by)                       \
    (((by) >> 16) * (1 << 21) + (1 << 20) + ((type) << 16) + ((by) & 0xffff))

/*
 * The words that translated code updates.  left[bank] packs several counts, so
 * that a block counts itself with one addition when it is entered:
 *
 *    X86_VPMU_COUNT and X86_VPMU_WATCH_KINDS
 *     63                                    20 19            0
 *    +----------------------------------------+---------------+
 *    | instructions left, signed              | branches      |
 *    +----------------------------------------+---------------+
 *
 *    X86_VPMU_COUNT_KINDS
 *     63          48 47         32 31        16 15            0
 *    +--------------+-------------+------------+---------------+
 *    | instructions | returns     | direct     | conditional   |
 *    | left, signed |             | calls      | branches      |
 *    +--------------+-------------+------------+---------------+
 *
 * kind[bank] counts down the kinds of branches that left[] does not tell
 * apart: with COUNT_KINDS the rare ones, and the taken ones among the
 * conditional; with WATCH_KINDS all of them, as one is near its deadline.
 *
 * Invariant: between two blocks the words differ from what vpmu_arm() has set
 * (X86VPMU.armed, .kind_armed) by exactly what has retired since, and no field
 * has overflowed into its neighbour: a slice has at most x86_vpmu_slice()
 * instructions, each of which is at most one branch.
 *
 * A block breaks it, as it counts all of its instructions when it is entered.
 * If left[] becomes negative, the block takes that back and is left before any
 * of it runs (x86_vpmu_tb_expired()).  If the block ends early,
 * x86_vpmu_uncount() takes back what has not retired.  vpmu_fold() moves the
 * counts into the totals, and vpmu_arm() refills the words; both read them by
 * the mode in which they were filled, X86VPMU.mode.
 */
typedef struct X86VPMUHot {
    int64_t left[X86_VPMU_BANKS];
    /* Occurrences until the deadline. */
    int64_t kind[X86_VPMU_BANKS][X86_VPMU_KINDS];
    X86VPMULbr lbr;
    /*
     * Blocks with CF_TARGET_2 store the last instruction's linear address,
     * and that of its first access to memory, or 0
     */
    uint64_t sample_ip, sample_address;
    /*
     * Blocks with CF_TARGET_3: position of the stream's next word, and the
     * first word of the block that runs; NULL: the model has run it already
     */
    uint64_t *stream_at, *stream_block;
} X86VPMUHot;

/*
 * The stream's buffer.  A block begins where the address's bit
 * X86_STREAM_FULL is clear, and finds room for all of its words beyond: it
 * has at most 511 instructions, each with the accesses of at most one helper,
 * of which XSAVE has most.
 */
#define X86_STREAM_FULL  (1 << 19)
#define X86_STREAM_BATCH 8192                   /* words until it is full */
#define X86_STREAM_SPARE (512 * 80)             /* words beyond that */
/* Iterations of a string instruction until its block ends */
#define X86_STREAM_REP_MAX 255
#define X86_STREAM_DIVIDES_MAX 250
/*
 * These bits of a block's second word are free for QEMU; libvpmu ignores them
 */
#define X86_STREAM_B_WORDS(n) ((uint64_t)(n) << 52)

#define X86_VPMU_FIELD_BITS 16 /* with kinds */
#define X86_VPMU_FIELD(word, i) \
    (((word) >> ((i) * X86_VPMU_FIELD_BITS)) & 0xffff)

/* Mode and bank of a block or of a CPU, from its hflags */
#define X86_VPMU_MODE(hflags) (((hflags) & HF_VPMU_MASK) >> HF_VPMU_SHIFT)
#define X86_VPMU_BANK(hflags)                             \
    ((((hflags) & HF_CPL_MASK) ? 1 : 0) |                 \
     (((hflags) & HF_GUEST_MASK) ? 2 : 0))

static inline int x86_vpmu_insn_shift(X86VPMUMode mode)
{
    return mode == X86_VPMU_COUNT_KINDS ? 3 * X86_VPMU_FIELD_BITS : 20;
}

/* Maximum instructions that a word can hold, so that no field overflows */
static inline int64_t x86_vpmu_slice(X86VPMUMode mode)
{
    return mode == X86_VPMU_COUNT_KINDS ? 0x7fff : 0xfffff;
}

/* Is the kind counted in left[] alone, with kinds? */
static inline bool x86_vpmu_packed(X86VPMUKind kind)
{
    return kind == X86_VPMU_JCC_NOT_TAKEN || kind == X86_VPMU_CALL ||
           kind == X86_VPMU_RET;
}

/* The change of left[] by @insns instructions and @branch (kind + 1, or 0) */
static inline int64_t x86_vpmu_words(uint32_t hflags, int insns, int branch)
{
    X86VPMUMode mode = X86_VPMU_MODE(hflags);
    int64_t n = -((int64_t)insns << x86_vpmu_insn_shift(mode));

    if (mode != X86_VPMU_COUNT_KINDS) {
        return n + !!branch;
    }
    switch (branch - 1) {
    case X86_VPMU_JCC_TAKEN:
    case X86_VPMU_JCC_NOT_TAKEN:
        return n + 1;
    case X86_VPMU_CALL:
        return n + (1ll << X86_VPMU_FIELD_BITS);
    case X86_VPMU_RET:
        return n + (1ll << 2 * X86_VPMU_FIELD_BITS);
    default:
        return n;
    }
}

typedef struct X86VPMU X86VPMU;

/*
 * Properties of -cpu MODEL with pmu=on or pmu-pv; one that asks for more than
 * the model has fails.
 */
typedef struct X86VPMUProps {
    bool regain;               /* pmu-regain: lost counters come back */
    uint8_t version;           /* pmu-version, 0: the model's */
    uint8_t n_gp;              /* pmu-gp, 0: the model's */
    uint8_t n_fixed;           /* pmu-fixed, 255: the model's */
    bool arch;                 /* pmu-arch: vpmu_kvm.ko serves the PMU */
    /* Properties of the paravirtual PMU */
    char *pv;                  /* pmu-pv: off, v2, v1 or both */
    uint32_t pv_events;        /* pmu-pv-events: open in the VM at once */
    uint8_t pv_slots;          /* pmu-pv-slots: enabled on a vCPU at once */
    char *pv_call;             /* pmu-pv-call: hypercall, doorbell or both */
    uint64_t pv_period;        /* pmu-pv-period: shorter ones are lengthened */
    /* Properties that are the same for the whole VM; NULL if not given */
    char *policy;              /* pmu-policy: direct, shared or mediated */
    char *filter;              /* pmu-filter: see <vpmu/filter.h>; or none */
    char *trace;               /* pmu-trace: a file */
    char *uarch;               /* pmu-uarch: off, on or always */
    char *uarch_params;        /* pmu-uarch-params: see docs/UARCH.md */
} X86VPMUProps;

#if defined(CONFIG_TCG) && !defined(CONFIG_USER_ONLY)
/* Is this CPU to have a PMU under TCG, of either kind? */
bool x86_vpmu_wanted(const X86CPU *cpu);
/* The bits of a feature word that this CPU can have because of pmu=on */
uint64_t x86_vpmu_features(X86CPU *cpu, FeatureWord w);
/* The bits of these that its silicon has, set where the user did not choose */
uint64_t x86_vpmu_defaults(X86CPU *cpu, FeatureWord w);
/* CPUID's highest basic and extended leaf, as far as the PMU needs them */
uint32_t x86_vpmu_level(const X86CPU *cpu);
uint32_t x86_vpmu_xlevel(const X86CPU *cpu);
bool x86_vpmu_realize(X86CPU *cpu, Error **errp);
void x86_vpmu_unrealize(X86CPU *cpu);
void x86_vpmu_reset(X86CPU *cpu, bool init);
/* Fill in the PMU's part of a leaf; false: the leaf is not the PMU's */
bool x86_vpmu_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t subleaf,
                    uint32_t *eax, uint32_t *ebx,
                    uint32_t *ecx, uint32_t *edx);
uint64_t x86_vpmu_tsc(void);

/* MSR accesses: false when the register is not the PMU's */
bool x86_vpmu_rdmsr(CPUArchState *env, uint32_t msr, uint64_t *val,
                    uintptr_t ra);
bool x86_vpmu_wrmsr(CPUArchState *env, uint32_t msr, uint64_t val,
                    uintptr_t ra);
/*
 * A VM entry or exit does the same; it has no instruction of its own that is
 * about to retire.  load: 0 not the PMU's, 1 done, -1 a value that WRMSR
 * refuses.
 */
int x86_vpmu_load_msr(CPUArchState *env, uint32_t msr, uint64_t val);
bool x86_vpmu_save_msr(CPUArchState *env, uint32_t msr, uint64_t *val);
/* See vpmu_arch_record_places() */
unsigned x86_vpmu_record_places(CPUArchState *env, uint64_t linear[4]);
uint64_t x86_vpmu_misc_enable(CPUArchState *env);
bool x86_vpmu_rdpmc(CPUArchState *env, uint32_t idx, uint64_t *val,
                    uintptr_t ra);

/*
 * VMCALL or VMMCALL; false if it is not a hypercall, since there is no
 * paravirtual PMU or it comes from a nested guest.
 */
bool x86_vpmu_hypercall(CPUArchState *env);

/* An interrupt or exception was delivered, or is about to be */
void x86_vpmu_interrupted(CPUArchState *env, int intno, uint64_t from);
void x86_vpmu_interrupting(CPUArchState *env, int intno);

/*
 * A software interrupt was delivered: only then has its instruction retired,
 * in the bank that x86_vpmu_int_bank() returned before delivery; -1: it is no
 * instruction.
 */
int x86_vpmu_int_bank(CPUArchState *env);
void x86_vpmu_retire_int(CPUArchState *env, int bank);
/* VMRUN has ended with #VMEXIT(INVALID) */
void x86_vpmu_retire_vmrun(CPUArchState *env);

/* Take back an instruction of the current block that did not retire (yet) */
void x86_vpmu_uncount_insn(CPUArchState *env);
/* Retire it after all, in the bank and under the setting now in force */
void x86_vpmu_retire_insn(CPUArchState *env);

/* Between two instructions: serve whatever is due. */
void x86_vpmu_boundary(CPUArchState *env);
/*
 * In the main loop: x86_vpmu_boundary(); true if blocks have another mode now
 */
bool x86_vpmu_exec_boundary(CPUState *cs);
/*
 * Before a fetch fault: x86_vpmu_boundary(); true if an NMI is pending, which
 * the CPU takes before the fault.
 */
bool x86_vpmu_fetch_boundary(CPUArchState *env);
bool x86_vpmu_tb_expired(CPUState *cs, const TranslationBlock *tb);
void x86_vpmu_uncount(CPUState *cs, const TranslationBlock *tb,
                      int insns_left, const uint64_t *data);
void x86_vpmu_smm(CPUArchState *env, bool entered);
/* EFER has changed; every instruction that has been counted has retired */
void x86_vpmu_efer(CPUArchState *env);


/* The modelled CPU's stream, with CF_TARGET_3 */
bool x86_stream_wanted(CPUArchState *env, int cpl);
void x86_stream_accessed(CPUState *cs, vaddr addr, unsigned size,
                         MMUAccessType type, uintptr_t ra);
/* Like x86_stream_accessed(), for many bytes within a page or two */
void x86_stream_area(CPUArchState *env, vaddr addr, unsigned size,
                     MMUAccessType type, uintptr_t ra);
/* The guest has changed its paging, or invalidated one page */
void x86_stream_unmap(CPUArchState *env, vaddr addr, bool all);

extern const VMStateDescription vmstate_x86_vpmu;
#else
static inline bool x86_stream_wanted(CPUArchState *env, int cpl)
{
    return false;
}
static inline void x86_stream_unmap(CPUArchState *env, vaddr addr, bool all)
{
}
#endif

#endif /* I386_VPMU_H */
