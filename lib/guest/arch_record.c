// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Records of PEBS. arch_pebs.c decides when one is written and where; here is what it
 * consists of, and how it gets into guest memory, page by page.
 *
 * Source: SDM vol. 3, "Processor Event Based Sampling (PEBS)", "Adaptive PEBS"; Linux,
 * arch/x86/events/intel/ds.c and arch/x86/include/asm/perf_event.h.
 */
#include <vpmu/pebs.h>
#include <vpmu/uarch.h>

#include "arch_event.h"
#include "arch_internal.h"
#include "arch_lbr.h"
#include "arch_record.h"

#define RECORD_FIXED_TAIL	0x90u	/* what formats 1 to 3 have more than 0 */

uint32_t arch_record_page_left(uint64_t address)
{
	return ARCH_RECORD_PAGE - (uint32_t)(address & (ARCH_RECORD_PAGE - 1));
}

bool arch_record_place(struct vpmu_arch *v, uint64_t address, uint32_t size,
		       struct arch_place *at)
{
	memset(at, 0, sizeof(*at));
	at->first = arch_record_page_left(address);
	if (address + size < address || v->ops.gva_to_gpa(v->ctx, address, true, &at->gpa[0]))
		return false;
	if (size <= at->first)
		return true;
	return !v->ops.gva_to_gpa(v->ctx, address + at->first, true, &at->gpa[1]);
}

void arch_record_physical(uint64_t gpa, struct arch_place *at)
{
	memset(at, 0, sizeof(*at));
	at->first = arch_record_page_left(gpa);
	at->gpa[0] = gpa;
	at->gpa[1] = gpa + at->first;
}

void arch_record_put(struct vpmu_arch *v, struct arch_place *at, const void *data,
		     uint32_t size)
{
	const uint8_t *from = data;

	while (size && !at->failed) {
		bool second = at->pos >= at->first;
		uint64_t gpa = second ? at->gpa[1] + at->pos - at->first
				      : at->gpa[0] + at->pos;
		uint32_t n = second || at->first - at->pos > size ? size
								  : at->first - at->pos;

		if (v->ops.gpa_write(v->ctx, gpa, from, n))
			at->failed = true;
		at->pos += n;
		from += n;
		size -= n;
	}
}

static uint32_t record_lbrs(uint64_t cfg)
{
	return (uint32_t)(cfg >> VPMU_PEBS_LBRS_SHIFT & 0xff) + 1;
}

static uint32_t record_adaptive_size(uint64_t cfg)
{
	return 32 + (cfg & VPMU_PEBS_MEMORY ? 32 : 0) + (cfg & VPMU_PEBS_GPRS ? 144 : 0) +
	       (cfg & VPMU_PEBS_XMMS ? 256 : 0) +
	       (cfg & VPMU_PEBS_LBRS ? 24 * record_lbrs(cfg) : 0);
}

/* Data sources in bits 3:0, and more bits of them. */
#define RECORD_LOCAL_DRAM	0xau
#define RECORD_STORE_L1		(1u << 0)	/* a store's, in place of a source */
#define RECORD_STLB_MISS	(1u << 4)
#define RECORD_LOCKED		(1u << 5)
#define RECORD_ARCH_STLB_MISS	(1u << 6)	/* sources have five bits */
#define RECORD_CACHE_LATENCY	32

/* True if an event of the record's counters counts stores. */
static bool record_about_stores(const struct vpmu_arch *v, uint64_t pmcs)
{
	const struct vpmu_event_def *def;
	unsigned int i;

	for (i = 0; i < v->n_gp; i++) {
		if (!(pmcs >> i & 1))
			continue;
		def = vpmu_event_find(v->model, v->r.evtsel[i] & v->select, -1);
		if (def && def->stores)
			return true;
	}
	return false;
}

static bool record_is_arch(const struct vpmu_arch *v)
{
	return v->pebs.format == ARCH_PEBS_FORMAT;
}

/* Architectural records say the same of stores as of loads, as Clearwater Forest does. */
static uint64_t record_source(const struct vpmu_arch *v, const struct vpmu_sample *s,
			      uint64_t pmcs)
{
	static const uint8_t of_level[] = {
		[VPMU_UARCH_AT_L1] = 1, [VPMU_UARCH_AT_FB] = 2, [VPMU_UARCH_AT_L2] = 3,
		[VPMU_UARCH_AT_LLC] = 4, [VPMU_UARCH_AT_DRAM] = RECORD_LOCAL_DRAM,
	};
	uint64_t source, miss = record_is_arch(v) ? RECORD_ARCH_STLB_MISS : RECORD_STLB_MISS;

	if (!s->modelled || s->level > VPMU_UARCH_AT_DRAM)
		return 0;
	if (!record_is_arch(v) && record_about_stores(v, pmcs))
		source = s->level == VPMU_UARCH_AT_L1 ? RECORD_STORE_L1 : 0;
	else
		source = of_level[s->level];
	return source | (s->tlb == 2 ? miss : 0) | (s->locked ? RECORD_LOCKED : 0);
}

static uint64_t record_latency(const struct vpmu_arch *v, const struct vpmu_sample *s)
{
	uint64_t latency = s->modelled ? s->latency : 0;

	if (!v->model->two_latencies)
		return latency;
	if (latency > 0xffff)
		latency = 0xffff;
	return latency | latency << RECORD_CACHE_LATENCY;
}

/*
 * @memory: address, data source and latency of the access, and the transaction, of which
 * there are none. Without a model of the micro-architecture all but the address are 0.
 */
static void record_write_adaptive(struct vpmu_arch *v, struct arch_place *at,
				  const struct vpmu_sample *s, const uint64_t memory[4],
				  uint64_t cfg, uint64_t pmcs)
{
	uint64_t basic[4] = { 0, s->ip, pmcs, s->tsc };
	uint64_t head[2] = { s->flags, s->next_ip };
	uint64_t entry[3];
	uint32_t i;

	basic[0] = cfg | (uint64_t)record_adaptive_size(cfg) << 48;
	arch_record_put(v, at, basic, sizeof(basic));
	if (cfg & VPMU_PEBS_MEMORY)
		arch_record_put(v, at, memory, 4 * sizeof(memory[0]));
	if (cfg & VPMU_PEBS_GPRS) {
		arch_record_put(v, at, head, sizeof(head));
		arch_record_put(v, at, s->gpr, sizeof(s->gpr));
	}
	if (cfg & VPMU_PEBS_XMMS)
		arch_record_put(v, at, s->xmm, sizeof(s->xmm));
	if (cfg & VPMU_PEBS_LBRS)
		arch_lbr_finish(v);
	for (i = 0; cfg & VPMU_PEBS_LBRS && i < record_lbrs(cfg); i++) {
		arch_lbr_entry(v, i, entry);
		arch_record_put(v, at, entry, sizeof(entry));
	}
}

static uint32_t record_fixed_size(const struct arch_pebs *p)
{
	static const uint8_t words[] = { 18, 22, 24, 25 };

	return 8u * words[p->format];
}

static void record_write_fixed(struct vpmu_arch *v, struct arch_place *at,
			       const struct vpmu_sample *s, const uint64_t memory[4],
			       uint64_t pmcs)
{
	/* AX, BX, CX, DX, SI, DI, BP, SP, and the others in order */
	static const uint8_t order[] = { 0, 3, 1, 2, 6, 7, 5, 4 };
	uint64_t status = v->pebs.format < 3 ? v->r.status | pmcs : pmcs;
	uint64_t head[2] = { s->flags, s->next_ip };
	uint64_t tail[7] = { status, memory[0], memory[1], memory[2], s->ip, memory[3], s->tsc };
	unsigned int i;

	arch_record_put(v, at, head, sizeof(head));
	for (i = 0; i < VPMU_SAMPLE_GPRS; i++)
		arch_record_put(v, at, &s->gpr[i < 8 ? order[i] : i], 8);
	arch_record_put(v, at, tail, record_fixed_size(&v->pebs) - RECORD_FIXED_TAIL);
}

/*
 * Architectural records: a header of two words, and the groups in this order. Each is a
 * multiple of 16 bytes, and so is a record, whose end may be padding.
 */
#define RECORD_ARCH_CODE64	(1ull << 30)	/* in the first word, as is the size, in 15:0 */
#define RECORD_ARCH_MAX		(16 + 48 + 64 + 160 + 272 + 48 + 24 * VPMU_LBR_ENTRIES + \
				 16 + 8 * ARCH_PMC_MAX + 8)
#define RECORD_XSTATE_SSE	2u

_Static_assert(RECORD_ARCH_MAX <= ARCH_RECORD_PAGE, "a record is within two pages");

static uint32_t record_arch_lbrs(const struct vpmu_arch *v, uint64_t groups)
{
	uint32_t code = (uint32_t)((groups & VPMU_CFG_C_LBR) >> VPMU_CFG_C_LBR_SHIFT);

	return code == 3 ? v->lbr.depth : 8 * code;
}

/* Counters whose values are in a record. */
static uint32_t record_arch_counters(const struct vpmu_arch *v, uint64_t groups)
{
	uint32_t pmcs = 0;
	unsigned int pmc;

	for (pmc = 0; pmc < v->n_pmc; pmc++)
		if (v->pebs.groups[pmc] & VPMU_CFG_C_ALLOW &&
		    groups & (pmc < v->n_gp ? VPMU_CFG_C_CNTR_GP : VPMU_CFG_C_CNTR_FIXED))
			pmcs |= 1u << pmc;
	return pmcs;
}

static uint32_t record_arch_size(const struct vpmu_arch *v, uint64_t groups)
{
	uint32_t size = 16 + 48, pmcs;

	size += (groups & VPMU_CFG_C_AUX ? 64 : 0) + (groups & VPMU_CFG_C_GPR ? 160 : 0) +
		(groups & VPMU_CFG_C_XMM ? 272 : 0) +
		(groups & VPMU_CFG_C_LBR ? 48 + 24 * record_arch_lbrs(v, groups) : 0);
	if (!(groups & (VPMU_CFG_C_CNTR_GP | VPMU_CFG_C_CNTR_FIXED)))
		return size;
	size += 16;
	for (pmcs = record_arch_counters(v, groups); pmcs; pmcs &= pmcs - 1)
		size += 8;
	return (size + 15) / 16 * 16;
}

static void record_arch_put_lbrs(struct vpmu_arch *v, struct arch_place *at, uint32_t n)
{
	uint64_t head[6] = { 0 }, entry[3];
	uint32_t i;

	arch_lbr_finish(v);
	arch_lbr_words(v, head + 1);
	arch_record_put(v, at, head, sizeof(head));
	for (i = 0; i < n; i++) {
		arch_lbr_entry(v, i, entry);
		arch_record_put(v, at, entry, sizeof(entry));
	}
}

/* Values are those after the occurrence that the record is of, before any new one. */
static void record_arch_put_counters(struct vpmu_arch *v, struct arch_place *at,
				     uint64_t groups)
{
	uint32_t pmcs = record_arch_counters(v, groups);
	uint64_t head[2] = { arch_pmc_bits(v, pmcs), 0 }, value;
	unsigned int pmc;

	arch_record_put(v, at, head, sizeof(head));
	for (pmc = 0; pmc < v->n_pmc; pmc++) {
		if (!(pmcs >> pmc & 1))
			continue;
		value = arch_event_read(v, pmc);
		arch_record_put(v, at, &value, sizeof(value));
	}
}

/* The latency of retiring is not known, nor is there a shadow stack. */
static void record_write_arch(struct vpmu_arch *v, struct arch_place *at,
			      const struct vpmu_sample *s, const uint64_t memory[4],
			      uint64_t groups, uint64_t pmcs)
{
	uint32_t size = record_arch_size(v, groups);
	uint64_t head[8] = { groups | size | (s->code64 ? RECORD_ARCH_CODE64 : 0), 0,
			     s->ip, pmcs, s->tsc };
	uint64_t aux[8] = { memory[0], 0, 0, 0, 0, memory[1], memory[2], memory[3] };
	uint64_t regs[2] = { s->flags, s->next_ip };
	uint64_t xmm[2] = { RECORD_XSTATE_SSE, 0 };
	static const uint64_t zero[2];

	arch_record_put(v, at, head, sizeof(head));
	if (groups & VPMU_CFG_C_AUX)
		arch_record_put(v, at, aux, sizeof(aux));
	if (groups & VPMU_CFG_C_GPR) {
		arch_record_put(v, at, regs, sizeof(regs));
		arch_record_put(v, at, s->gpr, sizeof(s->gpr));
		arch_record_put(v, at, zero, sizeof(zero));
	}
	if (groups & VPMU_CFG_C_XMM) {
		arch_record_put(v, at, xmm, sizeof(xmm));
		arch_record_put(v, at, s->xmm, sizeof(s->xmm));
	}
	if (groups & VPMU_CFG_C_LBR)
		record_arch_put_lbrs(v, at, record_arch_lbrs(v, groups));
	if (groups & (VPMU_CFG_C_CNTR_GP | VPMU_CFG_C_CNTR_FIXED))
		record_arch_put_counters(v, at, groups);
	arch_record_put(v, at, zero, size - at->pos);
}

static bool record_adaptive(const struct vpmu_arch *v)
{
	return v->pebs.format >= 4;
}

uint32_t arch_record_size(const struct vpmu_arch *v, uint64_t groups)
{
	if (record_is_arch(v))
		return record_arch_size(v, groups);
	return record_adaptive(v) ? record_adaptive_size(groups) : record_fixed_size(&v->pebs);
}

void arch_record_write(struct vpmu_arch *v, struct arch_place *at,
		       const struct vpmu_sample *s, uint64_t groups, uint64_t pmcs)
{
	uint64_t memory[4] = { s->address, record_source(v, s, pmcs), record_latency(v, s), 0 };

	if (record_is_arch(v))
		record_write_arch(v, at, s, memory, groups, pmcs);
	else if (record_adaptive(v))
		record_write_adaptive(v, at, s, memory, groups, pmcs);
	else
		record_write_fixed(v, at, s, memory, pmcs);
}
