/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A PMU with PEBS on the scripted engine, and memory behind a page table whose even
 * and odd pages have changed places, so that what takes a linear address for a
 * physical one, or pages for contiguous, is seen.
 */
#ifndef PEBS_RIG_H
#define PEBS_RIG_H

#include "unit.h"

#include <vpmu/arch.h>
#include <vpmu/direct.h>

#include "script.h"

#define RIG_PAGE	4096u
#define RIG_PAGES	8u
#define RIG_RAM		(RIG_PAGES * RIG_PAGE)
#define RIG_LINEAR	0xffff800012340000ull /* begin of its linear addresses */
#define RIG_CODE	0x401000ull /* address of instruction 0; each has four bytes */

enum rig_map { RIG_WRITABLE, RIG_READ_ONLY, RIG_UNMAPPED, RIG_MMIO };

struct pebs_rig {
	struct vpmu_script script; /* first: hooks get a pointer to it */
	struct vpmu_direct direct;
	struct vpmu_model model;
	struct vpmu_arch *v;
	size_t size;               /* size of *v */
	uint8_t ram[RIG_RAM];      /* by linear address */
	uint8_t map[RIG_PAGES];    /* enum rig_map, by linear address */
	bool uarch;                /* the engine has a model: its signals, and of the
				      last access: */
	struct { uint32_t latency; uint8_t level, tlb; bool store, locked; } access;
	uint32_t threshold;        /* threshold of the model */
	uint32_t n_restarted;      /* calls of ops->counter_restarted */
	unsigned int n_pmi, n_hook; /* n_hook: accesses to memory, translations */
};

/* Not NULL: changes the hooks before a machine is set up. */
extern void (*pebs_rig_hooks)(struct vpmu_ops *ops);

/*
 * Like an Icelake, with PEBS of @format and version @version (0: 5).
 */
struct pebs_rig *pebs_rig_new(unsigned int format, uint8_t version,
			      const struct vpmu_filter *filter);

/* Any model, with all that it has; @cpuid_base: of the loss block's leaves, or 0. */
struct pebs_rig *pebs_rig_new_model(const struct vpmu_model *model, uint8_t version,
				    uint32_t cpuid_base);
/* A rig of the model of that number, with a model of the micro-architecture. */
struct pebs_rig *pebs_rig_new_uarch(uint8_t model);
void pebs_rig_free(struct pebs_rig *r);

/* @n instructions, none of them a branch, in ring 0. */
void pebs_rig_run(struct pebs_rig *r, unsigned int n);

/* Linear accesses by the guest, which the page table does not stop. */
uint64_t pebs_rig_load(const struct pebs_rig *r, uint64_t address);
void pebs_rig_store(struct pebs_rig *r, uint64_t address, uint64_t value);

/* Instructions retired so far, and what a record says of the last one. */
uint64_t pebs_rig_count(const struct pebs_rig *r);
void pebs_rig_sample(const struct pebs_rig *r, struct vpmu_sample *s);

/*
 * The guest accesses a register, which must not fault; or it must. After a write its overflows
 * are served.
 */
static inline void wr(struct pebs_rig *r, uint32_t msr, uint64_t value)
{
	if (vpmu_arch_wrmsr(r->v, msr, value) != VPMU_HANDLED)
		fail_msg("WRMSR %x %llx faults", msr, (unsigned long long)value);
	vpmu_script_service(&r->script);
}

static inline uint64_t rd(struct pebs_rig *r, uint32_t msr)
{
	uint64_t value = 0;

	if (vpmu_arch_rdmsr(r->v, msr, &value) != VPMU_HANDLED)
		fail_msg("RDMSR %x faults", msr);
	return value;
}

static inline bool wr_faults(struct pebs_rig *r, uint32_t msr, uint64_t value)
{
	return vpmu_arch_wrmsr(r->v, msr, value) == VPMU_FAULT;
}

/* The rig goes; the engine found nothing wrong with how it was called. */
static inline void done(struct pebs_rig *r)
{
	if (r->script.broken)
		fail_msg("%s", r->script.broken);
	pebs_rig_free(r);
}

#endif /* PEBS_RIG_H */
