// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Parameters of CPUs: data only. Sizes and latencies in cycles are from Intel's "64 and
 * IA-32 Architectures Optimization Reference Manual" and AMD's "Software Optimization
 * Guide" of each family. The last level is the share of 16 cores.
 */
#include "uarch_internal.h"

static const struct vpmu_uarch_params ua_cpus[] = {
	{
		.size = sizeof(struct vpmu_uarch_params),
		.name = "icelake-server",
		.l1i = { 64, 8, 64 },         /* 32 KiB */
		.l1d = { 64, 12, 64 },        /* 48 KiB */
		.l2 = { 1024, 20, 64 },       /* 1.25 MiB */
		.llc = { 32768, 12, 64 },     /* 1.5 MiB a core: 24 MiB for 16 */
		.itlb = { 16, 8, 0 },
		.dtlb = { 16, 4, 0 },
		.stlb = { 256, 8, 0 },        /* 2048 */
		.width = 5, .window = 352, .fills = 12, .stores = 72,
		.l1d_cycles = 5, .l2_cycles = 14, .llc_cycles = 70, .dram_cycles = 250,
		.line_cycles = 8, .stlb_cycles = 7, .walk_cycles = 25,
		.mispredict_cycles = 17, .resteer_cycles = 6, .clear_cycles = 30,
		.divide_cycles = 14,
		.history_bits = 14, .btb_bits = 12, .returns = 16, .prefetch = 8,
	},
	{
		.size = sizeof(struct vpmu_uarch_params),
		.name = "sapphire-rapids",
		.l1i = { 64, 8, 64 },
		.l1d = { 64, 12, 64 },        /* 48 KiB */
		.l2 = { 2048, 16, 64 },       /* 2 MiB */
		.llc = { 32768, 15, 64 },     /* 1.875 MiB a core: 30 MiB for 16 */
		.itlb = { 32, 8, 0 },
		.dtlb = { 16, 6, 0 },         /* 96 */
		.stlb = { 256, 8, 0 },
		.width = 6, .window = 512, .fills = 16, .stores = 112,
		.l1d_cycles = 5, .l2_cycles = 15, .llc_cycles = 75, .dram_cycles = 280,
		.line_cycles = 7, .stlb_cycles = 7, .walk_cycles = 25,
		.mispredict_cycles = 17, .resteer_cycles = 6, .clear_cycles = 30,
		.divide_cycles = 10,
		.history_bits = 15, .btb_bits = 13, .returns = 16, .prefetch = 12,
	},
	{
		.size = sizeof(struct vpmu_uarch_params),
		.name = "amd-zen4",
		.l1i = { 64, 8, 64 },
		.l1d = { 64, 8, 64 },
		.l2 = { 2048, 8, 64 },        /* 1 MiB */
		.llc = { 32768, 16, 64 },     /* 32 MiB of a CCX */
		.itlb = { 8, 8, 0 },
		.dtlb = { 8, 9, 0 },          /* 72, fully associative on silicon */
		.stlb = { 128, 24, 0 },       /* 3072 */
		.width = 6, .window = 320, .fills = 16, .stores = 64,
		.l1d_cycles = 4, .l2_cycles = 14, .llc_cycles = 50, .dram_cycles = 260,
		.line_cycles = 7, .stlb_cycles = 7, .walk_cycles = 25,
		.mispredict_cycles = 13, .resteer_cycles = 5, .clear_cycles = 30,
		.divide_cycles = 10,
		.history_bits = 15, .btb_bits = 13, .returns = 32, .prefetch = 8,
	},
};

static bool ua_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

const struct vpmu_uarch_params *vpmu_uarch_params(const char *model)
{
	size_t i;

	for (i = 0; i < sizeof(ua_cpus) / sizeof(ua_cpus[0]); i++)
		if (ua_same(ua_cpus[i].name, model))
			return &ua_cpus[i];
	return &ua_cpus[0];
}
