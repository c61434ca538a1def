/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A slow and obvious model of the architectural PMU, versions 1 to 6, that the
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

/* Which unit masks event C4 (retired branches) has, or what is in its place. */
enum ref_umasks {
	REF_UMASKS_ARCH,    /* 0 only: the architectural event */
	REF_UMASKS_CORE_DUO, /* taken ones are event C9 */
	REF_UMASKS_CORE2,
	REF_UMASKS_BONNELL, /* as Core 2, and event 88 */
	REF_UMASKS_NEHALEM,
	REF_UMASKS_ATOM,    /* from Goldmont on, and Xeon Phi */
	REF_UMASKS_SKYLAKE, /* and those before it, from Sandy Bridge on */
	REF_UMASKS_ICELAKE, /* and Sapphire and Granite Rapids */
	REF_UMASKS_DARKMONT,
};

enum ref_lbr_kind {
	REF_LBR_NONE,
	REF_LBR_INFO, /* legacy ones with INFO */
	REF_LBR_ARCH,
};

#define REF_LBR_DEPTH	32

struct ref_lbr {
	uint64_t filter;   /* LBR_SELECT, or LBR_CTL */
	uint64_t from[REF_LBR_DEPTH], to[REF_LBR_DEPTH], info[REF_LBR_DEPTH];
	unsigned int tos;  /* index of the newest entry */
};

struct ref_config {
	unsigned int version;       /* 1 .. 6 */
	unsigned int n_gp;          /* 1 .. REF_GP_MAX */
	unsigned int n_fixed;       /* 0 .. REF_FIXED_MAX; 0 in version 1 */
	unsigned int width_bits;    /* width of each counter */
	unsigned int n_arch_events; /* length of CPUID.0AH:EBX */
	uint64_t capabilities;      /* IA32_PERF_CAPABILITIES; 0: not there */
	unsigned int crystal_shift; /* event 3C/01 counts every 2^n-th cycle */
	bool prec_dist;             /* C0/01 counts instructions */
	bool uops;                  /* C2/01 counts retired operations */
	bool all_taken;             /* C4/80 counts taken branches */
	enum ref_umasks umasks;
	enum ref_lbr_kind lbr;
	/* Features that only version 6 has */
	bool umask2;                /* UnitMask2; no event has any but 0 */
	bool eq;
	bool hides;                 /* RDPMC user disable */
	bool reloads;               /* auto counter reload */
};

struct ref_pmu {
	struct ref_config cfg;

	uint64_t evtsel[REF_GP_MAX];
	uint64_t pmc[REF_GP_MAX];
	uint64_t fixed[REF_FIXED_MAX];
	uint64_t gp_cfg_b[REF_GP_MAX], gp_cfg_c[REF_GP_MAX];
	uint64_t fixed_cfg_b[REF_FIXED_MAX], fixed_cfg_c[REF_FIXED_MAX];
	uint64_t fixed_ctrl;
	uint64_t global_ctrl;
	uint64_t global_status;
	uint64_t debugctl;
	struct ref_lbr lbr;

	bool in_smm;
	bool smm_frozen;          /* in SMM with FREEZE_WHILE_SMM */
	uint64_t smm_global_ctrl; /* value that leaving it restores */

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

/* A branch that is about to retire, with the ring that it ends in. ref_lbr.c */
void ref_lbr_branch(struct ref_pmu *p, enum ref_kind kind, bool user, uint64_t from,
		    uint64_t to);
bool ref_lbr_exists(const struct ref_pmu *p, uint32_t msr);
uint64_t ref_lbr_read(const struct ref_pmu *p, uint32_t msr);
bool ref_lbr_write(struct ref_pmu *p, uint32_t msr, uint64_t value); /* false: faults */

/* One instruction retires. */
void ref_instruction(struct ref_pmu *p, enum ref_kind kind, enum ref_bank bank);

/* Accesses; the instruction that makes them retires afterwards, by its own call. */
enum vpmu_result ref_rdmsr(const struct ref_pmu *p, uint32_t msr, uint64_t *value);
enum vpmu_result ref_wrmsr(struct ref_pmu *p, uint32_t msr, uint64_t value);
enum vpmu_result ref_rdpmc(const struct ref_pmu *p, uint32_t rdpmc_idx, bool user,
			   uint64_t *value);

/*
 * Leaves 0AH and 23H, bit 15 of leaf 1's ECX, bit 8 of leaf 7.1's EAX; false and
 * untouched for others.
 */
bool ref_cpuid(const struct ref_pmu *p, uint32_t leaf, uint32_t subleaf,
	       struct ref_cpuid *regs);

/* System management mode is entered or left; not nested. */
void ref_smm(struct ref_pmu *p, bool entered);

#endif /* REFERENCE_H */
