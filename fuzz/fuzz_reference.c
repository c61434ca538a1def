// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Guest operations chosen by the fuzzer, on the library and the reference model. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sequence.h"

#define OPS_MAX 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void explain(const struct pair_config *cfg, struct pair_op *op, size_t n)
{
	struct pair_failure f = { 0 };

	n = pair_shrink(cfg, op, n);
	pair_run(cfg, op, n, &f);
	pair_print(stderr, cfg, op, n);
	fprintf(stderr, "after operation %zu: %s\n", f.op, f.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sequence s = { .data = data, .size = size };
	static struct pair_op op[OPS_MAX];
	struct pair_config cfg;
	struct pair_failure f;
	size_t n = 0;

	if (!size || !sequence_config(&s, &cfg))
		return 0;
	while (s.size && n < OPS_MAX)
		sequence_op(&s, &cfg, &op[n++]);
	if (!pair_run(&cfg, op, n, &f)) {
		explain(&cfg, op, n);
		abort();
	}
	return 0;
}
