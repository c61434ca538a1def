/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring unit of a vCPU under TCG.
 */
#ifndef I386_VPMU_H
#define I386_VPMU_H

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

/*
 * The words that generated code updates.  At the start of a translation block
 * left[bank] goes down by its instructions in the high bits and up by its
 * branches in the low ones, in one addition; a negative result leaves the block
 * before anything of it has run.
 */
#define X86_VPMU_INSN_SHIFT 20
#define X86_VPMU_INSN       (1ll << X86_VPMU_INSN_SHIFT)
#define X86_VPMU_SLICE      (X86_VPMU_INSN - 1)

typedef struct X86VPMUHot {
    int64_t left[X86_VPMU_BANKS];
    int64_t kind[X86_VPMU_BANKS][X86_VPMU_KINDS]; /* counting down */
} X86VPMUHot;

typedef struct X86VPMU X86VPMU;

/* Properties of -cpu MODEL,pmu=on; what they ask for beyond the model fails. */
typedef struct X86VPMUProps {
    uint8_t version;           /* pmu-version, 0: the model's */
    uint8_t n_gp;              /* pmu-gp, 0: the model's */
    uint8_t n_fixed;           /* pmu-fixed, 255: the model's */
} X86VPMUProps;

/* Bank of a block or of a CPU, from its hflags */
#define X86_VPMU_BANK(hflags)                             \
    ((((hflags) & HF_CPL_MASK) ? 1 : 0) |                 \
     (((hflags) & HF_GUEST_MASK) ? 2 : 0))

#if defined(CONFIG_TCG) && !defined(CONFIG_USER_ONLY)
/* What pmu=on adds to the features of a model, where the user did not choose */
uint64_t x86_vpmu_features(X86CPU *cpu, FeatureWord w);
bool x86_vpmu_realize(X86CPU *cpu, Error **errp);
void x86_vpmu_unrealize(X86CPU *cpu);
void x86_vpmu_reset(X86CPU *cpu, bool init);
void x86_vpmu_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t subleaf,
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

/* A software interrupt was delivered: only then has its instruction retired */
void x86_vpmu_retire_int(CPUArchState *env, int bank);

/* Take back an instruction of the current block that did not retire */
void x86_vpmu_uncount_insn(CPUArchState *env);

/*
 * Between two instructions: serve what is due.  True when the PMU has just
 * raised a non-maskable interrupt that the CPU can take now.
 */
bool x86_vpmu_boundary(CPUArchState *env);
void x86_vpmu_exec_boundary(CPUState *cs);
bool x86_vpmu_tb_expired(CPUState *cs, const TranslationBlock *tb);
void x86_vpmu_uncount(CPUState *cs, const TranslationBlock *tb,
                      int insns_left);
void x86_vpmu_smm(CPUArchState *env, bool entered);

extern const VMStateDescription vmstate_x86_vpmu;
#endif

#endif /* I386_VPMU_H */
