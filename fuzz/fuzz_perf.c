// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A host's events as the fuzzer likes, on lib/perf and on its model. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "perf_pair.h"

#define OPS_MAX 300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void explain(const struct perf_config *cfg, struct perf_op *op, size_t n)
{
	struct perf_failure f = { 0 };

	n = perf_pair_shrink(cfg, op, n);
	perf_pair_run(cfg, op, n, &f);
	perf_pair_print(stderr, cfg, op, n);
	fprintf(stderr, "after operation %zu: %s\n", f.op, f.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_source s = { .data = data, .size = size };
	static struct perf_op op[OPS_MAX];
	struct perf_config cfg;
	struct perf_failure f;
	size_t n = 0;

	if (!size)
		return 0;
	perf_source_config(&s, &cfg);
	while (s.size && n < OPS_MAX)
		perf_source_op(&s, &cfg, &op[n++]);
	if (!perf_pair_run(&cfg, op, n, &f)) {
		explain(&cfg, op, n);
		abort();
	}
	return 0;
}
