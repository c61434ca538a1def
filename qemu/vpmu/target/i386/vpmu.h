/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring unit of a vCPU under TCG.
 */
#ifndef I386_VPMU_H
#define I386_VPMU_H

/* libvpmu's own CPUID leaves begin here, and behind them what KVM has */
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

/* What translated code does for the PMU: part of the key of a block */
typedef enum X86VPMUMode {
    X86_VPMU_OFF,
    X86_VPMU_COUNT,            /* instructions and branches */
    X86_VPMU_COUNT_KINDS,      /* and kinds of branches, no deadline is near */
    X86_VPMU_WATCH_KINDS,      /* and looks for a deadline at each of them */
} X86VPMUMode;

/*
 * The words that translated code updates.  At the start of a block left[bank]
 * goes down by its instructions in the high bits and up by its branch in the
 * low ones, in one addition; a negative result leaves the block before anything
 * of it has run.  A field cannot overflow in a slice of instructions.
 *
 * Without kinds the low bits are one field for branches of any kind.  With
 * kinds they are three for the frequent ones that are known when a block is
 * translated: conditional, direct call, return; the others, and which
 * conditional ones are taken, have words of their own.  Where kinds are watched
 * each has.
 */
/*
 * Branch records: libvpmu's struct vpmu_lbr.  What becomes of a branch is a
 * byte, by the ring that it ends in and its type, so that translated code,
 * which is made with CF_TARGET where records are made at all, stays the same
 * while filters change.
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

/* libvpmu's types of branches, which are architectural LBR's */
typedef enum X86VPMUBranch {
    X86_VPMU_BRANCH_JCC,
    X86_VPMU_BRANCH_JMP_INDIRECT,
    X86_VPMU_BRANCH_JMP,
    X86_VPMU_BRANCH_CALL_INDIRECT,
    X86_VPMU_BRANCH_CALL,
    X86_VPMU_BRANCH_RET,
    X86_VPMU_BRANCH_FAR,
} X86VPMUBranch;

#define X86_VPMU_LBR_INFO(type) ((type) << 16) /* not of FAR */
#define X86_VPMU_LBR_NEAR_BITS 27
/* Of a branch by so many bytes, in place of where it went */
#define X86_VPMU_LBR_NEAR(type, by)                       \
    (((by) >> 16) * (1 << 21) + (1 << 20) + ((type) << 16) + ((by) & 0xffff))

typedef struct X86VPMUHot {
    int64_t left[X86_VPMU_BANKS];
    int64_t kind[X86_VPMU_BANKS][X86_VPMU_KINDS]; /* counting down */
    X86VPMULbr lbr;
    /* Of the last instruction, in blocks with CF_TARGET_2: its linear address,
       and that of its first access to memory, or 0 */
    uint64_t sample_ip, sample_address;
    /* In blocks with CF_TARGET_3: where the next of the stream's words goes, and
       where the words of the block that runs begin; NULL: gone through already */
    uint64_t *stream_at, *stream_block;
} X86VPMUHot;

/*
 * The stream's buffer: a block begins below the address's bit X86_STREAM_FULL
 * and finds room for all of its words beyond: of 511 instructions at most, by
 * helpers at most as many as XSAVE has, which is the most.
 */
#define X86_STREAM_FULL  (1 << 19)
#define X86_STREAM_BATCH 8192                   /* words until it is full */
#define X86_STREAM_SPARE (512 * 80)             /* words beyond */
/* Iterations of a string instruction until its block ends */
#define X86_STREAM_REP_MAX 255
#define X86_STREAM_DIVIDES_MAX 250
/* The library leaves these bits of a block's second word alone */
#define X86_STREAM_B_WORDS(n) ((uint64_t)(n) << 52)

#define X86_VPMU_FIELD_BITS 16 /* with kinds */
#define X86_VPMU_FIELD(word, i) \
    (((word) >> ((i) * X86_VPMU_FIELD_BITS)) & 0xffff)

/* Of a block or of a CPU, from its hflags */
#define X86_VPMU_MODE(hflags) (((hflags) & HF_VPMU_MASK) >> HF_VPMU_SHIFT)
#define X86_VPMU_BANK(hflags)                             \
    ((((hflags) & HF_CPL_MASK) ? 1 : 0) |                 \
     (((hflags) & HF_GUEST_MASK) ? 2 : 0))

static inline int x86_vpmu_insn_shift(X86VPMUMode mode)
{
    return mode == X86_VPMU_COUNT_KINDS ? 3 * X86_VPMU_FIELD_BITS : 20;
}

/* Most instructions that a word can hold; no field overflows by them */
static inline int64_t x86_vpmu_slice(X86VPMUMode mode)
{
    return mode == X86_VPMU_COUNT_KINDS ? 0x7fff : 0xfffff;
}

/* Counted in left[] alone, with kinds */
static inline bool x86_vpmu_packed(X86VPMUKind kind)
{
    return kind == X86_VPMU_JCC_NOT_TAKEN || kind == X86_VPMU_CALL ||
           kind == X86_VPMU_RET;
}

/* What @insns instructions and @branch (kind + 1, or 0) add to left[] */
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
 * Properties of -cpu MODEL with pmu=on or pmu-pv; what they ask for beyond the
 * model fails.
 */
typedef struct X86VPMUProps {
    uint8_t version;           /* pmu-version, 0: the model's */
    uint8_t n_gp;              /* pmu-gp, 0: the model's */
    uint8_t n_fixed;           /* pmu-fixed, 255: the model's */
    /* Of the paravirtual PMU */
    char *pv;                  /* pmu-pv: off, v2, v1 or both */
    uint32_t pv_events;        /* pmu-pv-events: open in the VM at once */
    uint8_t pv_slots;          /* pmu-pv-slots: enabled on a vCPU at once */
    char *pv_call;             /* pmu-pv-call: hypercall, doorbell or both */
    uint64_t pv_period;        /* pmu-pv-period: shorter ones are lengthened */
    /* The same for all of a VM; NULL where not given */
    char *policy;              /* pmu-policy: direct, shared or mediated */
    char *filter;              /* pmu-filter: see <vpmu/spec.h>; or none */
    char *trace;               /* pmu-trace: a file */
    char *uarch;               /* pmu-uarch: off, on or always */
    char *uarch_params;        /* pmu-uarch-params: see docs/UARCH.md */
} X86VPMUProps;

#if defined(CONFIG_TCG) && !defined(CONFIG_USER_ONLY)
/* Whether this CPU is to have a PMU under TCG, of whichever kind */
bool x86_vpmu_wanted(const X86CPU *cpu);
/* What of a feature word this CPU can have because of pmu=on */
uint64_t x86_vpmu_features(X86CPU *cpu, FeatureWord w);
/* What of that it gets where the user did not choose, as its silicon has it */
uint64_t x86_vpmu_defaults(X86CPU *cpu, FeatureWord w);
/* CPUID's highest basic and extended leaf, as far as the PMU needs them */
uint32_t x86_vpmu_level(const X86CPU *cpu);
uint32_t x86_vpmu_xlevel(const X86CPU *cpu);
bool x86_vpmu_realize(X86CPU *cpu, Error **errp);
void x86_vpmu_unrealize(X86CPU *cpu);
void x86_vpmu_reset(X86CPU *cpu, bool init);
/* Fills in its part of a leaf; false: the leaf is not the PMU's */
bool x86_vpmu_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t subleaf,
                    uint32_t *eax, uint32_t *ebx,
                    uint32_t *ecx, uint32_t *edx);
uint64_t x86_vpmu_tsc(void);

/* MSR accesses: false when the register is not the PMU's */
bool x86_vpmu_rdmsr(CPUArchState *env, uint32_t msr, uint64_t *val,
                    uintptr_t ra);
bool x86_vpmu_wrmsr(CPUArchState *env, uint32_t msr, uint64_t val,
                    uintptr_t ra);
uint64_t x86_vpmu_misc_enable(CPUArchState *env);
bool x86_vpmu_rdpmc(CPUArchState *env, uint32_t idx, uint64_t *val,
                    uintptr_t ra);

/*
 * VMCALL or VMMCALL: false where it is none, as there is no paravirtual PMU, or
 * as it comes from a guest's guest.
 */
bool x86_vpmu_hypercall(CPUArchState *env);

/* An interrupt or exception was delivered, or is about to be */
void x86_vpmu_interrupted(CPUArchState *env, int intno, uint64_t from);
void x86_vpmu_interrupting(CPUArchState *env, int intno);

/*
 * A software interrupt was delivered: only then has its instruction retired, in
 * the bank that was asked for before; -1: there is none.
 */
int x86_vpmu_int_bank(CPUArchState *env);
void x86_vpmu_retire_int(CPUArchState *env, int bank);
/* VMRUN has ended with #VMEXIT(INVALID) */
void x86_vpmu_retire_vmrun(CPUArchState *env);

/* Take back an instruction of the current block that did not retire (yet) */
void x86_vpmu_uncount_insn(CPUArchState *env);
/* It has: of the bank and under the setting that are in force by now */
void x86_vpmu_retire_insn(CPUArchState *env);

/* Between two instructions: serve what is due. */
void x86_vpmu_boundary(CPUArchState *env);
/* The same; true when blocks are looked up by another mode now */
bool x86_vpmu_exec_boundary(CPUState *cs);
/*
 * The same; true when a non-maskable interrupt is pending that the CPU takes
 * before a fault of fetching the next instruction.
 */
bool x86_vpmu_fetch_boundary(CPUArchState *env);
bool x86_vpmu_tb_expired(CPUState *cs, const TranslationBlock *tb);
void x86_vpmu_uncount(CPUState *cs, const TranslationBlock *tb,
                      int insns_left, const uint64_t *data);
void x86_vpmu_smm(CPUArchState *env, bool entered);
/* EFER has changed, with no instruction counted that has not retired */
void x86_vpmu_efer(CPUArchState *env);


/* The stream that the modelled CPU is fed with, by CF_TARGET_3 */
bool x86_stream_wanted(CPUArchState *env, int cpl);
void x86_stream_accessed(CPUState *cs, vaddr addr, unsigned size,
                         MMUAccessType type, uintptr_t ra);
/* The same of many bytes within a page or two */
void x86_stream_area(CPUArchState *env, vaddr addr, unsigned size,
                     MMUAccessType type, uintptr_t ra);
/* The guest has changed its paging, or, of one page, says so */
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
