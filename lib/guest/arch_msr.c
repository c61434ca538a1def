// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * RDMSR and WRMSR. A table has the registers of all models, what each depends on,
 * and its handlers; a register that this configuration does not have is a fault.
 *
 * Every write handler reads alike: reserved bits, changed = old ^ new, store, mark by
 * what changed. arch_sync() follows the marks once, after the handler.
 * Source: SDM vol. 4, "Architectural MSRs"; vol. 3, "Architectural Performance
 * Monitoring"; AMD64 APM vol. 2, "Performance Monitoring Counters"; Linux,
 * arch/x86/include/asm/msr-index.h.
 */
#include "arch_event.h"
#include "arch_extra.h"
#include "arch_internal.h"
#include "arch_lbr.h"
#include "arch_loss.h"
#include "arch_pebs.h"
#include "arch_pmc.h"
#include "arch_topdown.h"

struct arch_msr {
	uint32_t first;
	uint8_t n;             /* registers of the largest model */
	uint8_t has;           /* enum arch_has: how many of them exist here */
	arch_read_fn *read;    /* NULL: write-only */
	arch_write_fn *write;  /* NULL: read-only */
};

static enum vpmu_result evtsel_read(struct vpmu_arch *v, unsigned int i,
				    uint64_t *value)
{
	*value = v->r.evtsel[i];
	return VPMU_HANDLED;
}

/*
 * Pin control and AnyThread are kept, and change nothing that is counted. Any
 * change tries again what has lost its counter.
 */
static void evtsel_store(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	uint64_t changed = v->r.evtsel[i] ^ value;

	v->touched |= 1u << i;
	v->marked.lbr |= arch_evtsel_logs(v, i, changed);
	v->r.evtsel[i] = value;
	if (changed == VPMU_EVTSEL_EN && arch_pmc_toggle(v, i))
		return;
	if (changed & (v->select | VPMU_EVTSEL_USR | VPMU_EVTSEL_OS | VPMU_EVTSEL_EN |
		       ARCH_EVTSEL_ONLY) || (changed && v->loss.lost >> i & 1))
		arch_mark(v, 1u << i);
}

static enum vpmu_result evtsel_write(struct vpmu_arch *v, unsigned int i,
				     uint64_t value)
{
	if (!arch_evtsel_valid(v, i, value))
		return VPMU_FAULT;
	evtsel_store(v, i, value);
	return VPMU_HANDLED;
}

static enum vpmu_result gp_read(struct vpmu_arch *v, unsigned int i,
				uint64_t *value)
{
	*value = arch_event_read(v, i);
	return VPMU_HANDLED;
}

/* The legacy address takes EAX, sign-extended, and ignores EDX. */
static enum vpmu_result gp_write_legacy(struct vpmu_arch *v, unsigned int i,
					uint64_t value)
{
	value &= UINT32_MAX;
	if (value >> 31)
		value |= ~(uint64_t)UINT32_MAX;
	arch_pmc_write(v, i, value & v->valid.counter);
	return VPMU_HANDLED;
}

static enum vpmu_result gp_write_full(struct vpmu_arch *v, unsigned int i,
				      uint64_t value)
{
	if (value & ~v->valid.counter)
		return VPMU_FAULT;
	arch_pmc_write(v, i, value);
	return VPMU_HANDLED;
}

static enum vpmu_result fixed_read(struct vpmu_arch *v, unsigned int i,
				   uint64_t *value)
{
	*value = arch_event_read(v, v->n_gp + i);
	return VPMU_HANDLED;
}

static enum vpmu_result fixed_write(struct vpmu_arch *v, unsigned int i,
				    uint64_t value)
{
	if (value & ~v->valid.counter)
		return VPMU_FAULT;
	arch_pmc_write(v, v->n_gp + i, value);
	return VPMU_HANDLED;
}

static enum vpmu_result fixed_ctrl_read(struct vpmu_arch *v, unsigned int i,
					uint64_t *value)
{
	*value = v->r.fixed_ctrl;
	return VPMU_HANDLED;
}

static enum vpmu_result fixed_ctrl_write(struct vpmu_arch *v, unsigned int i,
					 uint64_t value)
{
	uint64_t changed = v->r.fixed_ctrl ^ value;

	if (value & ~v->valid.fixed_ctrl)
		return VPMU_FAULT;
	v->r.fixed_ctrl = value;
	for (i = 0; i < v->n_fixed; i++) {
		uint32_t bit = 1u << (v->n_gp + i);

		if (!(changed >> (4 * i) & 0xf))
			continue;
		v->touched |= bit;
		if (changed >> (4 * i) & (VPMU_FIXED_OS | VPMU_FIXED_USR) ||
		    v->loss.lost & bit)
			arch_mark(v, bit);
	}
	return VPMU_HANDLED;
}

static enum vpmu_result global_ctrl_read(struct vpmu_arch *v, unsigned int i,
					 uint64_t *value)
{
	*value = v->r.global_ctrl;
	return VPMU_HANDLED;
}

static enum vpmu_result global_ctrl_write(struct vpmu_arch *v, unsigned int i,
					  uint64_t value)
{
	uint64_t changed = v->r.global_ctrl ^ value;

	if (value & ~v->valid.global_ctrl)
		return VPMU_FAULT;
	if (changed & VPMU_STATUS_METRICS)
		arch_topdown_look(v);
	v->r.global_ctrl = value;
	v->marked.gates |= changed != 0;
	return VPMU_HANDLED;
}

static enum vpmu_result status_read(struct vpmu_arch *v, unsigned int i,
				    uint64_t *value)
{
	*value = v->r.status;
	return VPMU_HANDLED;
}

static enum vpmu_result zero_read(struct vpmu_arch *v, unsigned int i,
				  uint64_t *value)
{
	*value = 0;
	return VPMU_HANDLED;
}

static void status_changed(struct vpmu_arch *v, uint64_t changed)
{
	v->marked.gates |= (changed & VPMU_STATUS_CTR_FRZ) != 0;
	v->marked.lbr |= (changed & VPMU_STATUS_LBR_FRZ) != 0;
}

static enum vpmu_result status_reset_write(struct vpmu_arch *v, unsigned int i,
					   uint64_t value)
{
	uint64_t changed = v->r.status & value;

	if (value & ~v->valid.status)
		return VPMU_FAULT;
	v->r.status &= ~value;
	status_changed(v, changed);
	return VPMU_HANDLED;
}

/*
 * Sets exactly these bits, for software that emulates or restores them: no
 * CondChgd, no PMI.
 */
static enum vpmu_result status_set_write(struct vpmu_arch *v, unsigned int i,
					 uint64_t value)
{
	uint64_t changed = value & ~v->r.status;

	if (value & ~v->valid.status_set)
		return VPMU_FAULT;
	v->r.status |= value;
	status_changed(v, changed);
	return VPMU_HANDLED;
}

/* Source: SDM vol. 3, "IA32_PERF_GLOBAL_INUSE MSR"; PMI_InUse is bit 63. */
static enum vpmu_result inuse_read(struct vpmu_arch *v, unsigned int i,
				   uint64_t *value)
{
	uint32_t pmcs = 0;

	for (i = 0; i < v->n_gp; i++)
		if (v->r.evtsel[i] & VPMU_EVTSEL_EVENT)
			pmcs |= 1u << i;
	for (i = 0; i < v->n_fixed; i++)
		if (arch_pmc_fixed_bits(v, i) &
		    (VPMU_FIXED_OS | VPMU_FIXED_USR))
			pmcs |= 1u << (v->n_gp + i);
	*value = arch_pmc_bits(v, pmcs);
	if (arch_pmc_interrupting(v) || v->pebs.enable)
		*value |= 1ull << 63;
	return VPMU_HANDLED;
}

static enum vpmu_result debugctl_read(struct vpmu_arch *v, unsigned int i,
				      uint64_t *value)
{
	*value = v->r.debugctl;
	return VPMU_HANDLED;
}

/*
 * FREEZE_WHILE_SMM acts at the next entry to SMM. BTF, and LBR where there are no
 * legacy branch records, are dropped, as on a CPU that lacks them; guests clear
 * and set them without asking.
 */
static enum vpmu_result debugctl_write(struct vpmu_arch *v, unsigned int i,
				       uint64_t value)
{
	if (value & ~(v->valid.debugctl | v->valid.debugctl_dropped))
		return VPMU_FAULT;
	v->r.debugctl = value & v->valid.debugctl;
	arch_lbr_debugctl(v, v->r.debugctl);
	return VPMU_HANDLED;
}

/*
 * Version 6's block: a counter, what configures it, and what it is reloaded with, by
 * auto counter reload or by PEBS, to which CFG_C's upper half belongs.
 */
static uint64_t reload_valid(const struct vpmu_arch *v, unsigned int which)
{
	return which == VPMU_PMC_CFG_B ? v->valid.reload_by
				       : v->valid.reload | v->pebs.valid_groups;
}

static enum vpmu_result reload_read(struct vpmu_arch *v, unsigned int pmc,
				    unsigned int which, uint64_t *value)
{
	if (!reload_valid(v, which))
		return VPMU_FAULT;
	if (which == VPMU_PMC_CFG_B)
		*value = arch_pmc_bits(v, v->reload.by[pmc]);
	else
		*value = v->reload.value[pmc] | v->pebs.groups[pmc];
	return VPMU_HANDLED;
}

/* These take effect when a counter overflows: nothing changes now, but PEBS' enable. */
static enum vpmu_result reload_write(struct vpmu_arch *v, unsigned int pmc,
				     unsigned int which, uint64_t value)
{
	uint64_t valid = reload_valid(v, which);

	if (!valid || value & ~valid)
		return VPMU_FAULT;
	if (which == VPMU_PMC_CFG_B) {
		v->reload.by[pmc] = arch_pmc_set(v, value);
		return VPMU_HANDLED;
	}
	v->reload.value[pmc] = (uint32_t)value;
	arch_pebs_configure(v, pmc, value & v->pebs.valid_groups);
	return VPMU_HANDLED;
}

static enum vpmu_result block_gp_read(struct vpmu_arch *v, unsigned int i,
				      uint64_t *value)
{
	switch (i % VPMU_PMC_STRIDE) {
	case VPMU_PMC_CTR:
		return gp_read(v, i / VPMU_PMC_STRIDE, value);
	case VPMU_PMC_CFG_A:
		return evtsel_read(v, i / VPMU_PMC_STRIDE, value);
	default:
		return reload_read(v, i / VPMU_PMC_STRIDE, i % VPMU_PMC_STRIDE, value);
	}
}

static enum vpmu_result block_gp_write(struct vpmu_arch *v, unsigned int i,
				       uint64_t value)
{
	switch (i % VPMU_PMC_STRIDE) {
	case VPMU_PMC_CTR:
		return gp_write_full(v, i / VPMU_PMC_STRIDE, value);
	case VPMU_PMC_CFG_A:
		return evtsel_write(v, i / VPMU_PMC_STRIDE, value);
	default:
		return reload_write(v, i / VPMU_PMC_STRIDE, i % VPMU_PMC_STRIDE, value);
	}
}

static enum vpmu_result block_fixed_read(struct vpmu_arch *v, unsigned int i,
					 uint64_t *value)
{
	unsigned int fixed = i / VPMU_PMC_STRIDE;

	switch (i % VPMU_PMC_STRIDE) {
	case VPMU_PMC_CTR:
		return fixed_read(v, fixed, value);
	case VPMU_PMC_CFG_A:
		return VPMU_FAULT;
	default:
		return reload_read(v, v->n_gp + fixed, i % VPMU_PMC_STRIDE, value);
	}
}

static enum vpmu_result block_fixed_write(struct vpmu_arch *v, unsigned int i,
					  uint64_t value)
{
	unsigned int fixed = i / VPMU_PMC_STRIDE;

	switch (i % VPMU_PMC_STRIDE) {
	case VPMU_PMC_CTR:
		return fixed_write(v, fixed, value);
	case VPMU_PMC_CFG_A:
		return VPMU_FAULT;
	default:
		return reload_write(v, v->n_gp + fixed, i % VPMU_PMC_STRIDE, value);
	}
}

/* AMD's registers ignore reserved bits, and so do the handlers from here on. */
static enum vpmu_result amd_evtsel_write(struct vpmu_arch *v, unsigned int i,
					 uint64_t value)
{
	evtsel_store(v, i, value & v->valid.evtsel);
	return VPMU_HANDLED;
}

/* All of a counter's width, no sign extension. */
static enum vpmu_result amd_gp_write(struct vpmu_arch *v, unsigned int i,
				     uint64_t value)
{
	arch_pmc_write(v, i, value & v->valid.counter);
	return VPMU_HANDLED;
}

/* PERF_CTL and PERF_CTR, by turns. */
static enum vpmu_result amd_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	return i & 1 ? gp_read(v, i / 2, value) : evtsel_read(v, i / 2, value);
}

static enum vpmu_result amd_write(struct vpmu_arch *v, unsigned int i, uint64_t value)
{
	return i & 1 ? amd_gp_write(v, i / 2, value) : amd_evtsel_write(v, i / 2, value);
}

/* Read-only, but no fault. */
static enum vpmu_result amd_status_write(struct vpmu_arch *v, unsigned int i,
					 uint64_t value)
{
	return VPMU_HANDLED;
}

static enum vpmu_result amd_global_ctrl_write(struct vpmu_arch *v, unsigned int i,
					      uint64_t value)
{
	return global_ctrl_write(v, i, value & v->valid.global_ctrl);
}

static enum vpmu_result amd_status_clear_write(struct vpmu_arch *v, unsigned int i,
					       uint64_t value)
{
	return status_reset_write(v, i, value & v->valid.status);
}

static enum vpmu_result amd_status_set_write(struct vpmu_arch *v, unsigned int i,
					     uint64_t value)
{
	return status_set_write(v, i, value & v->valid.status_set);
}

static enum vpmu_result capabilities_read(struct vpmu_arch *v, unsigned int i,
					  uint64_t *value)
{
	*value = v->capabilities;
	return VPMU_HANDLED;
}

/* GENERATION and STATUS. */
static enum vpmu_result loss_read(struct vpmu_arch *v, unsigned int i, uint64_t *value)
{
	struct arch_loss *l = &v->loss;

	arch_loss_poll(v);
	arch_lbr_look(v);
	if (i == 0)
		*value = l->generation;
	else
		*value = arch_pmc_bits(v, l->lost | l->filtered | l->uncounted) |
			 (v->lbr.reason ? VPMU_LOSS_STATUS_LBR : 0);
	return VPMU_HANDLED;
}

/*
 * Sorted by number. Registers of features that are not offered are named, so
 * that a guest that probes for them gets a fault.
 */
static const struct arch_msr arch_msrs[] = {
	/* LBR, FROM and TO of the first formats */
	{ 0x040, 8, ARCH_HAS_LBR_OLD, arch_lbr_from_read, arch_lbr_from_write },
	{ 0x060, 8, ARCH_HAS_LBR_OLD, arch_lbr_to_read, arch_lbr_to_write },
	{ VPMU_MSR_PMC0, 8, ARCH_HAS_GP, gp_read, gp_write_legacy },
	{ VPMU_MSR_PERFEVTSEL0, 8, ARCH_HAS_GP, evtsel_read, evtsel_write },
	{ VPMU_MSR_OFFCORE_RSP_0, 2, ARCH_HAS_OFFCORE,
	  arch_extra_offcore_read, arch_extra_offcore_write },
	{ VPMU_MSR_LBR_SELECT, 1, ARCH_HAS_LBR_SELECT,
	  arch_lbr_select_read, arch_lbr_select_write },
	{ VPMU_MSR_LBR_TOS, 1, ARCH_HAS_LBR_TOS, arch_lbr_tos_read, arch_lbr_tos_write },
	{ VPMU_MSR_DEBUGCTL, 1, ARCH_HAS_ALWAYS, debugctl_read, debugctl_write },
	{ VPMU_MSR_LER_FROM, 2, ARCH_HAS_LER, arch_lbr_ler_read, arch_lbr_ler_write },
	{ VPMU_MSR_LER_INFO, 1, ARCH_HAS_LER_INFO,
	  arch_lbr_ler_info_read, arch_lbr_ler_info_write },
	{ VPMU_MSR_FIXED_CTR0, 16, ARCH_HAS_FIXED, fixed_read, fixed_write },
	{ VPMU_MSR_PERF_METRICS, 1, ARCH_HAS_METRICS, arch_topdown_read, arch_topdown_write },
	{ VPMU_MSR_PERF_CAPABILITIES, 1, ARCH_HAS_CAPABILITIES,
	  capabilities_read, NULL },
	{ VPMU_MSR_FIXED_CTR_CTRL, 1, ARCH_HAS_GLOBAL,
	  fixed_ctrl_read, fixed_ctrl_write },
	{ VPMU_MSR_GLOBAL_STATUS, 1, ARCH_HAS_GLOBAL, status_read, NULL },
	{ VPMU_MSR_GLOBAL_CTRL, 1, ARCH_HAS_GLOBAL,
	  global_ctrl_read, global_ctrl_write },
	{ VPMU_MSR_GLOBAL_OVF_CTRL, 1, ARCH_HAS_GLOBAL,
	  zero_read, status_reset_write },
	{ VPMU_MSR_GLOBAL_STATUS_SET, 1, ARCH_HAS_STREAMLINED,
	  zero_read, status_set_write },
	{ VPMU_MSR_GLOBAL_INUSE, 1, ARCH_HAS_STREAMLINED, inuse_read, NULL },
	{ VPMU_MSR_PEBS_ENABLE, 2, ARCH_HAS_PEBS, arch_pebs_read, arch_pebs_write },
	{ VPMU_MSR_PEBS_BASE, 2, ARCH_HAS_ARCH_PEBS,
	  arch_pebs_arch_read, arch_pebs_arch_write },
	{ VPMU_MSR_PEBS_LD_LAT, 1, ARCH_HAS_LDLAT,
	  arch_extra_ldlat_read, arch_extra_ldlat_write },
	/* PEBS_FRONTEND */
	{ 0x3f7, 1, ARCH_HAS_NONE, NULL, NULL },
	{ VPMU_MSR_A_PMC0, 8, ARCH_HAS_GP_FULL, gp_read, gp_write_full },
	{ VPMU_MSR_DS_AREA, 1, ARCH_HAS_DS, arch_pebs_ds_read, arch_pebs_ds_write },
	{ VPMU_MSR_LBR_FROM, 32, ARCH_HAS_LBR, arch_lbr_from_read, arch_lbr_from_write },
	{ VPMU_MSR_LBR_TO, 32, ARCH_HAS_LBR, arch_lbr_to_read, arch_lbr_to_write },
	{ VPMU_MSR_LBR_INFO, 32, ARCH_HAS_LBR_INFO, arch_lbr_info_read, arch_lbr_info_write },
	{ VPMU_MSR_ARCH_LBR_INFO, 32, ARCH_HAS_ARCH_LBR,
	  arch_lbr_info_read, arch_lbr_info_write },
	{ VPMU_MSR_ARCH_LBR_CTL, 2, ARCH_HAS_ARCH_LBR_CTL,
	  arch_lbr_ctl_read, arch_lbr_ctl_write },
	{ VPMU_MSR_ARCH_LBR_FROM, 32, ARCH_HAS_ARCH_LBR,
	  arch_lbr_from_read, arch_lbr_from_write },
	{ VPMU_MSR_ARCH_LBR_TO, 32, ARCH_HAS_ARCH_LBR,
	  arch_lbr_to_read, arch_lbr_to_write },
	{ VPMU_MSR_PMC_GP(0), 128, ARCH_HAS_BLOCK_GP, block_gp_read, block_gp_write },
	{ VPMU_MSR_PMC_FX(0), 64, ARCH_HAS_BLOCK_FIXED,
	  block_fixed_read, block_fixed_write },
	{ VPMU_MSR_LOSS_GENERATION, 2, ARCH_HAS_LOSS, loss_read, NULL },
	{ VPMU_MSR_LOSS_CTRL, 1, ARCH_HAS_LOSS,
	  arch_loss_ctrl_read, arch_loss_ctrl_write },
	{ VPMU_MSR_LOSS_LBR, 1, ARCH_HAS_LOSS_LBR, arch_lbr_loss_read, NULL },
	{ VPMU_MSR_LOSS_LBR + 1, 12, ARCH_HAS_LOSS_NONE, NULL, NULL },
	{ VPMU_MSR_LOSS_PMC(0), 240, ARCH_HAS_LOSS_PMC, arch_loss_pmc_read, NULL },
	{ VPMU_MSR_AMD_LBR_SELECT, 2, ARCH_HAS_AMD_LBR_CTL,
	  arch_lbr_amd_ctl_read, arch_lbr_amd_ctl_write },
	{ VPMU_MSR_AMD_GLOBAL_STATUS, 1, ARCH_HAS_AMD_GLOBAL,
	  status_read, amd_status_write },
	{ VPMU_MSR_AMD_GLOBAL_CTRL, 1, ARCH_HAS_AMD_GLOBAL,
	  global_ctrl_read, amd_global_ctrl_write },
	{ VPMU_MSR_AMD_GLOBAL_STATUS_CLR, 1, ARCH_HAS_AMD_GLOBAL,
	  zero_read, amd_status_clear_write },
	{ VPMU_MSR_AMD_GLOBAL_STATUS_SET, 1, ARCH_HAS_AMD_GLOBAL,
	  zero_read, amd_status_set_write },
	{ VPMU_MSR_K7_EVTSEL0, ARCH_K7_PMCS, ARCH_HAS_K7,
	  evtsel_read, amd_evtsel_write },
	{ VPMU_MSR_K7_PERFCTR0, ARCH_K7_PMCS, ARCH_HAS_K7, gp_read, amd_gp_write },
	{ VPMU_MSR_AMD_PERF_CTL0, 2 * ARCH_GP_MAX, ARCH_HAS_AMD, amd_read, amd_write },
	/* counters of the L3 and of the northbridge */
	{ 0xc0010230, 12, ARCH_HAS_AMD_NONE, NULL, NULL },
	{ 0xc0010240, 8, ARCH_HAS_AMD_NONE, NULL, NULL },
	{ VPMU_MSR_AMD_LBR_FROM, 32, ARCH_HAS_AMD_LBR, arch_lbr_amd_read, arch_lbr_amd_write },
	/* IBS */
	{ 0xc0011030, 14, ARCH_HAS_AMD_NONE, NULL, NULL },
};

static bool arch_row_has(const struct arch_msr *row, uint32_t msr)
{
	return msr - row->first < row->n;
}

/* The last row that starts at or before @msr, or the first. */
static size_t arch_row_search(uint32_t msr)
{
	size_t lo = 0, hi = sizeof(arch_msrs) / sizeof(arch_msrs[0]);

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (arch_msrs[mid].first <= msr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : 0;
}

/* A guest accesses few registers, whose numbers differ in these bits: AMD has two groups. */
static unsigned int arch_row_of(uint32_t msr)
{
	return (msr ^ msr >> 12) % ARCH_ROWS;
}

/* It is a function of its own, so that arch_msr_find() need not save registers for it. */
static __attribute__((__noinline__)) const struct arch_msr *
arch_msr_search(const struct vpmu_arch *v, uint32_t msr)
{
	const struct arch_msr *row = &arch_msrs[arch_row_search(msr)];

	return arch_row_has(row, msr) && v->known >> row->has & 1 ? row : NULL;
}

static const struct arch_msr *arch_msr_find(const struct vpmu_arch *v, uint32_t msr)
{
	const struct arch_msr *row = vpmu_atomic_read(&v->row[arch_row_of(msr)]);

	return row && arch_row_has(row, msr) ? row : arch_msr_search(v, msr);
}

/* This is arch_msr_find(), and saves its next search for @msr. */
static const struct arch_msr *arch_msr_access(struct vpmu_arch *v, uint32_t msr)
{
	const struct arch_msr *row = arch_msr_find(v, msr);

	if (row)
		vpmu_atomic_put(&v->row[arch_row_of(msr)], row);
	return row;
}

bool vpmu_arch_knows(const struct vpmu_arch *v, uint32_t msr)
{
	return arch_msr_find(v, msr) != NULL;
}

/* The number of @msr in @row, after the check that the row has it. */
static unsigned int arch_index(const struct vpmu_arch *v, const struct arch_msr *row,
			       uint32_t msr)
{
	return (unsigned int)vpmu_index_nospec(msr - row->first, v->has[row->has]);
}

enum vpmu_result vpmu_arch_rdmsr(struct vpmu_arch *v, uint32_t msr,
				 uint64_t *value)
{
	const struct arch_msr *row = arch_msr_access(v, msr);
	enum vpmu_result result;

	if (!row)
		return VPMU_NOT_MINE;
	if (msr - row->first >= v->has[row->has] || !row->read)
		return VPMU_FAULT;
	vpmu_assert(arch_at_rest(v));
	result = row->read(v, arch_index(v, row, msr), value);
	if (result == VPMU_HANDLED)
		vpmu_trace(&v->ops, v->ctx, VPMU_TRACE_EXIT, 0, VPMU_TRACE_RDMSR,
			   msr, *value);
	return result;
}

enum vpmu_result vpmu_arch_wrmsr(struct vpmu_arch *v, uint32_t msr,
				 uint64_t value)
{
	const struct arch_msr *row = arch_msr_access(v, msr);
	enum vpmu_result result;

	if (!row)
		return VPMU_NOT_MINE;
	if (msr - row->first >= v->has[row->has] || !row->write)
		return VPMU_FAULT;
	vpmu_assert(arch_at_rest(v));
	result = row->write(v, arch_index(v, row, msr), value);
	vpmu_assert(result == VPMU_HANDLED || arch_at_rest(v)); /* a fault changes nothing */
	arch_sync(v);
	if (result == VPMU_HANDLED)
		vpmu_trace(&v->ops, v->ctx, VPMU_TRACE_EXIT, 0, VPMU_TRACE_WRMSR,
			   msr, value);
	return result;
}

enum vpmu_result vpmu_arch_restore_status(struct vpmu_arch *v, uint64_t value)
{
	uint64_t changed = v->r.status ^ value;

	if (value & ~v->valid.status)
		return VPMU_FAULT;
	vpmu_assert(arch_at_rest(v));
	v->r.status = value;
	status_changed(v, changed);
	arch_sync(v);
	return VPMU_HANDLED;
}
