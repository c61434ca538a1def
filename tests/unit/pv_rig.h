/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A guest with a paravirtual PMU: two vCPUs on scripted CPUs with lib/perf beneath,
 * a small memory, and short names for hypercalls. No test framework in here: the
 * fuzzer has it too.
 */
#ifndef PV_RIG_H
#define PV_RIG_H

#include <vpmu/direct.h>
#include <vpmu/pv.h>
#include <vpmu/vcpu.h>

#include "script.h"

#define PV_RIG_VCPUS	2
#define PV_RIG_PAGE	4096u
#define PV_RIG_PAGES	16u
#define PV_RIG_RAM	(PV_RIG_PAGES * PV_RIG_PAGE) /* from address 0 on */
#define PV_RIG_ROM	(PV_RIG_RAM - PV_RIG_PAGE)   /* its last page is read-only */
#define PV_RIG_MAPS	64

/* Addresses that the short names use. */
#define PV_RIG_BATCH(n)	(PV_RIG_PAGE * (1 + (n)))  /* batch of vCPU n */
#define PV_RIG_SLOTS(n)	(PV_RIG_PAGE * (3 + (n)))
#define PV_RIG_PARAMS	(PV_RIG_PAGE * 5)          /* version 1's structs */
#define PV_RIG_ATTR	(PV_RIG_PARAMS + 0x100)
#define PV_RIG_EVENT(n)	(PV_RIG_PARAMS + 0x200 + 16 * (n))
#define PV_RIG_SETUP	(PV_RIG_PAGE * 6)
#define PV_RIG_BRANCHES(n) (PV_RIG_PAGE * (7 + (n)))

struct pv_rig;

/* Not NULL: changes a vCPU's hooks before it is set up. */
extern void (*pv_rig_hooks)(struct vpmu_ops *ops);

struct pv_rig_vcpu {
	struct vpmu_script script; /* first: the ctx of all hooks is this */
	struct vpmu_ops ops;
	struct vpmu_perf_cpu cpu;
	struct vpmu_vcpu vcpu;
	struct vpmu_direct direct; /* instead of these two, if the rig is of that kind */
	struct vpmu_pv *pv;
	struct pv_rig *rig;
	uint32_t n_nmi, n_irq;
	uint8_t vector;            /* vector of the last interrupt */
	uint64_t nmi_at;           /* user instructions by then */
};

struct pv_rig {
	struct vpmu_model model;
	struct vpmu_perf_system sys;
	struct vpmu_pv_config cfg;
	struct vpmu_pv_vm *vm;
	struct pv_rig_vcpu vcpu[PV_RIG_VCPUS];
	uint8_t *ram; /* PV_RIG_RAM bytes, aligned to a page */
	struct {
		void *at;
		uint32_t size;
	} map[PV_RIG_MAPS];
	uint32_t n_maps;
	int32_t locked;
	bool direct;
	const char *broken; /* forbidden use of a hook, or NULL */
	uint8_t *shadow; /* if not NULL: as the memory has to be */
	void (*meddle)(struct pv_rig *r); /* if not NULL: called when a hook is left */
};

/* Event selects of the small model. */
#define PV_INSTRUCTIONS	0xc0u
#define PV_BRANCHES	0xc4u
#define PV_UNCOUNTED	0xc5u /* named, and not counted */

/*
 * @n_gp counters and no fixed one, unless @cfg has a model. What @cfg leaves 0 is filled
 * in; NULL: all. NULL is returned when the library refuses it.
 */
struct pv_rig *pv_rig_new(unsigned int n_gp, const struct vpmu_pv_config *cfg);

/* A rig over the direct provider, which keeps counters for parked events. */
struct pv_rig *pv_rig_new_direct(unsigned int n_gp, const struct vpmu_pv_config *cfg);

/* Returns what went wrong, in the hooks or in the scripted engine, or NULL. */
const char *pv_rig_free(struct pv_rig *r);

/* @n user instructions on vCPU @n; each a branch with @branches. */
void pv_rig_run(struct pv_rig *r, unsigned int vcpu, uint64_t n);
void pv_rig_run_branches(struct pv_rig *r, unsigned int vcpu, uint64_t n);
void pv_rig_service(struct pv_rig *r, unsigned int vcpu);

int64_t pv_rig_call(struct pv_rig *r, unsigned int vcpu, uint64_t nr, uint64_t a0,
		    uint64_t a1, uint64_t a2);

/* Version 2. */
int64_t pv_rig_setup(struct pv_rig *r, unsigned int vcpu, uint64_t page, uint32_t vector);

/* With a page for branch records, PV_RIG_BRANCHES(vcpu). */
int64_t pv_rig_setup_branches(struct pv_rig *r, unsigned int vcpu);
struct vpmu_pv_branches *pv_rig_branches(struct pv_rig *r, unsigned int vcpu);
struct vpmu_pv_op pv_rig_open(uint32_t id, uint32_t flags, uint64_t raw);
struct vpmu_pv_op pv_rig_enable(uint32_t id, uint32_t slot, uint64_t left, uint64_t period);
struct vpmu_pv_op pv_rig_op(enum vpmu_pv_op_code op, uint32_t id);

/* Do @n operations as a batch; results are in @op then. Returns the call's. */
int64_t pv_rig_batch(struct pv_rig *r, unsigned int vcpu, struct vpmu_pv_op *op,
		     unsigned int n);

/* One of them; returns its result, and -4096 when the batch failed. */
int pv_rig_do(struct pv_rig *r, unsigned int vcpu, struct vpmu_pv_op op);
struct vpmu_pv_page *pv_rig_page(struct pv_rig *r, unsigned int vcpu);
struct vpmu_pv_slot *pv_rig_slot(struct pv_rig *r, unsigned int vcpu, unsigned int slot);

/* Version 1, of a 64-bit guest: open an event with PV_RIG_EVENT(n), as id n. */
int64_t pv_rig_open_1(struct pv_rig *r, unsigned int vcpu, int n, uint64_t raw,
		      uint64_t period, uint64_t flags);
int64_t pv_rig_do_1(struct pv_rig *r, unsigned int vcpu, unsigned int op, int id);
struct vpmu_pv1_event *pv_rig_event_1(struct pv_rig *r, int n);

#endif /* PV_RIG_H */
