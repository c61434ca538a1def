// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Records of PEBS. arch_pebs.c decides when one is written and where; here is what it
 * consists of, and how it gets into guest memory, page by page.
 *
 * Source: SDM vol. 3, "Processor Event Based Sampling (PEBS)", "Adaptive PEBS"; Linux,
 * arch/x86/events/intel/ds.c.
 */
#include <vpmu/uarch.h>

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
#define RECORD_LOCAL_DRAM		0xau
#define RECORD_STORE_L1		(1u << 0)	/* a store's, in place of a source */
#define RECORD_STLB_MISS		(1u << 4)
#define RECORD_LOCKED		(1u << 5)
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

static uint64_t record_source(const struct vpmu_arch *v, const struct vpmu_sample *s,
			      uint64_t pmcs)
{
	static const uint8_t of_level[] = {
		[VPMU_UARCH_AT_L1] = 1, [VPMU_UARCH_AT_FB] = 2, [VPMU_UARCH_AT_L2] = 3,
		[VPMU_UARCH_AT_LLC] = 4, [VPMU_UARCH_AT_DRAM] = RECORD_LOCAL_DRAM,
	};
	uint64_t source;

	if (!s->modelled || s->level > VPMU_UARCH_AT_DRAM)
		return 0;
	if (record_about_stores(v, pmcs))
		source = s->level == VPMU_UARCH_AT_L1 ? RECORD_STORE_L1 : 0;
	else
		source = of_level[s->level];
	return source | (s->tlb == 2 ? RECORD_STLB_MISS : 0) | (s->locked ? RECORD_LOCKED : 0);
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

static bool record_adaptive(const struct vpmu_arch *v)
{
	return v->pebs.format >= 4;
}

uint32_t arch_record_size(const struct vpmu_arch *v, uint64_t groups)
{
	return record_adaptive(v) ? record_adaptive_size(groups) : record_fixed_size(&v->pebs);
}

void arch_record_write(struct vpmu_arch *v, struct arch_place *at,
		       const struct vpmu_sample *s, uint64_t groups, uint64_t pmcs)
{
	uint64_t memory[4] = { s->address, record_source(v, s, pmcs), record_latency(v, s), 0 };

	if (record_adaptive(v))
		record_write_adaptive(v, at, s, memory, groups, pmcs);
	else
		record_write_fixed(v, at, s, memory, pmcs);
}
