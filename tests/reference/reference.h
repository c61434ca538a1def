/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A slow and obvious model of the architectural PMU, versions 1 to 5, that the
 * library is compared with. It is written apart from lib/ and shares no code, no
 * table and no constant with it, only the names of the three results.
 *
 * It knows neither deadlines nor differences: every instruction is a call, and
 * each counter that should count it is looked at and incremented.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include <vpmu/result.h>

#define REF_GP_MAX	8
#define REF_FIXED_MAX	3

enum ref_kind {
	REF_PLAIN, /* no branch */
	REF_JCC_TAKEN,
	REF_JCC_NOT_TAKEN,
	REF_JMP,
	REF_CALL,
	REF_RET,
	REF_JMP_INDIRECT,
	REF_CALL_INDIRECT,
	REF_FAR,
	REF_KINDS
};

enum ref_bank {
	REF_KERNEL,
	REF_USER,
	REF_NESTED_KERNEL,
	REF_NESTED_USER,
	REF_BANKS
};

/* Which unit masks event C4 (retired branches) has. */
enum ref_umasks {
	REF_UMASKS_ARCH,    /* 0 only: the architectural event */
	REF_UMASKS_SKYLAKE,
	REF_UMASKS_ICELAKE, /* and Sapphire Rapids */
};

struct ref_config {
	unsigned int version;       /* 1 .. 5 */
	unsigned int n_gp;          /* 1 .. REF_GP_MAX */
	unsigned int n_fixed;       /* 0 .. REF_FIXED_MAX; 0 in version 1 */
	unsigned int width_bits;    /* of each counter */
	unsigned int n_arch_events; /* length of CPUID.0AH:EBX */
	uint64_t capabilities;      /* IA32_PERF_CAPABILITIES; 0: not there */
	unsigned int crystal_shift; /* event 3C/01 counts every 2^n-th cycle */
	bool prec_dist;             /* C0/01 counts instructions */
	enum ref_umasks umasks;
};

struct ref_pmu {
	struct ref_config cfg;

	uint64_t evtsel[REF_GP_MAX];
	uint64_t pmc[REF_GP_MAX];
	uint64_t fixed[REF_FIXED_MAX];
	uint64_t fixed_ctrl;
	uint64_t global_ctrl;
	uint64_t global_status;
	uint64_t debugctl;

	bool smm_frozen;          /* in SMM with FREEZE_WHILE_SMM */
	uint64_t smm_global_ctrl; /* what leaving it restores */

	uint64_t cycles[REF_BANKS]; /* since power-on; a reset does not touch it */
	uint64_t instructions;      /* retired since power-on */
	uint64_t pmis;              /* raised since power-on */
	uint64_t pmi_at;            /* value of instructions at the last one */
};

struct ref_cpuid {
	uint32_t eax, ebx, ecx, edx;
};

/* The state after power-on. */
void ref_init(struct ref_pmu *p, const struct ref_config *cfg);

/* RESET, or INIT. */
void ref_reset(struct ref_pmu *p, bool init);

/* One instruction retires. */
void ref_instruction(struct ref_pmu *p, enum ref_kind kind, enum ref_bank bank);

/* Accesses; the instruction that makes them retires afterwards, by its own call. */
enum vpmu_result ref_rdmsr(const struct ref_pmu *p, uint32_t msr, uint64_t *value);
enum vpmu_result ref_wrmsr(struct ref_pmu *p, uint32_t msr, uint64_t value);
enum vpmu_result ref_rdpmc(const struct ref_pmu *p, uint32_t rdpmc_idx, uint64_t *value);

/* Leaf 0AH and bit 15 of leaf 1's ECX; false and untouched for other leaves. */
bool ref_cpuid(const struct ref_pmu *p, uint32_t leaf, struct ref_cpuid *regs);

/* System management mode is entered or left; not nested. */
void ref_smm(struct ref_pmu *p, bool entered);

#endif /* REFERENCE_H */
