// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A modelled CPU: set-up, and access to its counts. */
#include "uarch_internal.h"

static bool ua_power(uint32_t n, uint32_t max)
{
	return n && n <= max && !(n & (n - 1));
}

static const char *ua_check_array(const struct vpmu_uarch_geometry *g, uint32_t unit)
{
	if (!ua_power(g->sets, 1u << 22) || g->ways > 32)
		return "sets are a power of two, ways at most 32";
	if (g->unit_bytes != unit)
		return "caches have lines of one size, TLBs none";
	return NULL;
}

const char *vpmu_uarch_check(const struct vpmu_uarch_params *p)
{
	const struct vpmu_uarch_geometry *const cache[] = { &p->l1i, &p->l1d, &p->l2, &p->llc };
	const struct vpmu_uarch_geometry *const tlb[] = { &p->itlb, &p->dtlb, &p->stlb };
	const char *wrong = NULL;
	uint32_t i;

	if (p->size < sizeof(*p))
		return "size";
	if (!ua_power(p->l1d.unit_bytes, 4096) || p->l1d.unit_bytes < 16)
		return "a line has 16 to 4096 bytes";
	for (i = 0; i < 4 && !wrong; i++)
		wrong = ua_check_array(cache[i], p->l1d.unit_bytes);
	for (i = 0; i < 3 && !wrong; i++)
		wrong = ua_check_array(tlb[i], 0);
	if (!wrong && !(p->l1i.ways && p->l1d.ways && p->itlb.ways && p->dtlb.ways))
		wrong = "only l2, llc and stlb can be without";
	if (wrong)
		return wrong;
	if (!p->width || p->width > 16 || !p->window || p->window < p->width)
		return "width is 1 to 16, the window not less";
	if (!p->fills || p->fills > UA_FILLS_MAX || !p->stores || p->stores > UA_STORES_MAX)
		return "fills are 1 to 32, stores 1 to 128";
	if (p->history_bits < 4 || p->history_bits > 20 || p->btb_bits < 4 || p->btb_bits > 16 ||
	    !ua_power(p->returns, 64))
		return "the predictor's tables";
	return NULL;
}

size_t vpmu_uarch_size(const struct vpmu_uarch_config *cfg)
{
	if (!cfg || cfg->size < sizeof(*cfg) || !cfg->params || vpmu_uarch_check(cfg->params))
		return 0;
	return sizeof(struct vpmu_uarch) +
	       (ua_memory_words(cfg->params, !cfg->llc) + ua_predict_words(cfg->params)) *
	       sizeof(uint64_t);
}

int vpmu_uarch_init(struct vpmu_uarch *u, const struct vpmu_uarch_config *cfg)
{
	uint64_t *words = (uint64_t *)(u + 1);

	if (!vpmu_uarch_size(cfg))
		return -VPMU_EINVAL;
	memset(u, 0, sizeof(*u));
	u->params = cfg->params;
	u->translate = cfg->translate;
	u->ctx = cfg->ctx;
	ua_account_init(u);
	words = ua_memory_init(u, cfg->llc, words);
	ua_predict_init(u, words);
	return 0;
}

size_t vpmu_uarch_llc_size(const struct vpmu_uarch_params *params)
{
	if (!params || vpmu_uarch_check(params))
		return 0;
	return sizeof(struct vpmu_uarch_llc) +
	       ua_array_words(&params->llc, false) * sizeof(uint64_t);
}

int vpmu_uarch_llc_init(struct vpmu_uarch_llc *llc, const struct vpmu_uarch_params *params)
{
	if (!vpmu_uarch_llc_size(params))
		return -VPMU_EINVAL;
	ua_array_init(&llc->array, &params->llc, false, (uint64_t *)(llc + 1));
	return 0;
}

const struct vpmu_uarch_counts *vpmu_uarch_counts(const struct vpmu_uarch *u)
{
	return &u->counts;
}

static const char *const ua_names[VPMU_UARCH_COUNTS] = {
	[VPMU_UARCH_CYCLES] = "cycles",
	[VPMU_UARCH_RETIRING] = "retiring",
	[VPMU_UARCH_BAD_SPECULATION] = "bad-speculation",
	[VPMU_UARCH_FRONTEND_BOUND] = "frontend-bound",
	[VPMU_UARCH_BACKEND_BOUND] = "backend-bound",
	[VPMU_UARCH_HEAVY] = "heavy",
	[VPMU_UARCH_MISPREDICT] = "mispredict",
	[VPMU_UARCH_FETCH_LATENCY] = "fetch-latency",
	[VPMU_UARCH_MEMORY_BOUND] = "memory-bound",
	[VPMU_UARCH_STALLS] = "stalls",
	[VPMU_UARCH_STALL_L1D] = "stall-l1d",
	[VPMU_UARCH_STALL_L2] = "stall-l2",
	[VPMU_UARCH_STALL_LLC] = "stall-llc",
	[VPMU_UARCH_STALL_STORES] = "stall-stores",
	[VPMU_UARCH_STALL_DIVIDER] = "stall-divider",
	[VPMU_UARCH_STALL_FETCH] = "stall-fetch",
	[VPMU_UARCH_RECOVERY] = "recovery",
	[VPMU_UARCH_CLEARS] = "clears",
	[VPMU_UARCH_MISP_TAKEN] = "misp-taken",
	[VPMU_UARCH_MISP_NOT_TAKEN] = "misp-not-taken",
	[VPMU_UARCH_MISP_RET] = "misp-ret",
	[VPMU_UARCH_MISP_JMP] = "misp-jmp",
	[VPMU_UARCH_MISP_CALL] = "misp-call",
	[VPMU_UARCH_RESTEER] = "resteer",
	[VPMU_UARCH_LOADS] = "loads",
	[VPMU_UARCH_STORES] = "stores",
	[VPMU_UARCH_LOCKED] = "locked",
	[VPMU_UARCH_SPLIT_LOADS] = "split-loads",
	[VPMU_UARCH_SPLIT_STORES] = "split-stores",
	[VPMU_UARCH_LOAD_SLOW] = "load-slow",
	[VPMU_UARCH_LOAD_L1] = "load-l1",
	[VPMU_UARCH_LOAD_FB] = "load-fb",
	[VPMU_UARCH_LOAD_L2] = "load-l2",
	[VPMU_UARCH_LOAD_LLC] = "load-llc",
	[VPMU_UARCH_LOAD_DRAM] = "load-dram",
	[VPMU_UARCH_L1I_HIT] = "l1i-hit",
	[VPMU_UARCH_READ_L2] = "read-l2",
	[VPMU_UARCH_READ_LLC] = "read-llc",
	[VPMU_UARCH_READ_DRAM] = "read-dram",
	[VPMU_UARCH_RFO_L2] = "rfo-l2",
	[VPMU_UARCH_RFO_LLC] = "rfo-llc",
	[VPMU_UARCH_RFO_DRAM] = "rfo-dram",
	[VPMU_UARCH_CODE_L2] = "code-l2",
	[VPMU_UARCH_CODE_LLC] = "code-llc",
	[VPMU_UARCH_CODE_DRAM] = "code-dram",
	[VPMU_UARCH_PREFETCH] = "prefetch",
	[VPMU_UARCH_DTLB_LOAD_L2] = "dtlb-load-l2",
	[VPMU_UARCH_DTLB_LOAD_WALK] = "dtlb-load-walk",
	[VPMU_UARCH_DTLB_STORE_L2] = "dtlb-store-l2",
	[VPMU_UARCH_DTLB_STORE_WALK] = "dtlb-store-walk",
	[VPMU_UARCH_ITLB_L2] = "itlb-l2",
	[VPMU_UARCH_ITLB_WALK] = "itlb-walk",
};

const char *vpmu_uarch_name(enum vpmu_uarch_count count)
{
	return (unsigned int)count < VPMU_UARCH_COUNTS ? ua_names[count] : NULL;
}

void vpmu_uarch_threshold(struct vpmu_uarch *u, uint32_t cycles)
{
	u->threshold = cycles;
}

const struct vpmu_uarch_access *vpmu_uarch_last(const struct vpmu_uarch *u)
{
	return &u->last;
}

enum vpmu_bank vpmu_uarch_bank(const struct vpmu_uarch *u)
{
	return u->bank;
}
