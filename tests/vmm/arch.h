/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Of the program "arch": the guest's PMU, and what its cases have in common. A case, t_...,
 * returns NULL, or what is wrong.
 */
#ifndef ARCH_H
#define ARCH_H

#include <stdio.h>
#include <string.h>

#include <vpmu-kvm-module.h>
#include <vpmu/msr.h>

#include "case.h"
#include "vmm.h"

/* Registers of the host's vendor, which is the guest's. */
struct pmu {
	bool intel;
	uint32_t ctl, ctr, step, global, status, clear;
	uint64_t branches;
	unsigned int n, version;
	uint32_t none;       /* no guest has this register */
	uint32_t lacks;      /* nor this one, which other PMUs have */
	uint32_t random[8];  /* the first of 16 each, some of which are a PMU's */
};
extern const struct pmu *pmu;

#define CTL(i)		(pmu->ctl + pmu->step * (i))
#define CTR(i)		(pmu->ctr + pmu->step * (i))
#define GLOBAL		pmu->global
#define STATUS		pmu->status
#define INSTRUCTIONS	0x4300c0ull /* both rings, enabled */
#define BRANCHES	pmu->branches
#define LOSS_REASON(i)	(0x56504d10u + 4 * (i) + 2)

/* @capabilities: 0 for all that there are. */
struct vmm *given_of(unsigned int n_vcpus, uint64_t capabilities);
struct vmm *given(unsigned int n_vcpus);
uint64_t msr(struct vmm_vcpu *v, uint32_t index); /* all ones if it cannot be read */
/* Counter @i counts @select in a loop of @turns. */
const char *loop(struct vmm_vcpu *v, unsigned int i, uint64_t select, uint64_t turns,
		 uint64_t want);

/* The enabling WRMSR, the OUTs after it and after the loop. */
#define AROUND 3

/* arch_intel.c */
const char *t_intel(void), *t_intel_faults(void), *t_intel_init(void), *t_intel_older(void),
	   *t_vmx(void);

/* arch_lbr.c */
const char *t_intel_records(void), *t_intel_lost_records(void);

/* arch_topdown.c */
const char *t_topdown(void);

#endif
