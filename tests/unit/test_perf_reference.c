// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Random sequences of what happens to a host's events, on lib/perf and on its
 * model. VPMU_PERF_SEQUENCES=N runs more, VPMU_PERF_SEED=S others; a failure
 * prints the seed of its sequence, which alone repeats it.
 */
#include "unit.h"

#include "perf_pair.h"

#define OPS_MAX		64
#define SEQUENCES	10000

static void explain(const struct perf_config *cfg, struct perf_op *op, size_t n,
		    unsigned long long seed)
{
	struct perf_failure f = { 0 };

	n = perf_pair_shrink(cfg, op, n);
	perf_pair_run(cfg, op, n, &f);
	fprintf(stderr, "VPMU_PERF_SEED=%llu VPMU_PERF_SEQUENCES=1 shows: ", seed);
	perf_pair_print(stderr, cfg, op, n);
	fprintf(stderr, "after operation %zu: %s\n", f.op, f.text);
}

static void test_random_sequences(void **state)
{
	unsigned long long seed = setting("VPMU_PERF_SEED", 1);
	unsigned long long n = setting("VPMU_PERF_SEQUENCES", SEQUENCES), i;
	static struct perf_op op[OPS_MAX];

	(void)state;
	for (i = 0; i < n; i++) {
		struct perf_source s = { .seed = (seed + i) << 20 };
		struct perf_config cfg;
		struct perf_failure f;
		size_t k, length;

		perf_source_config(&s, &cfg);
		length = 24 + (size_t)((seed + i) % (OPS_MAX - 23));
		for (k = 0; k < length; k++)
			perf_source_op(&s, &cfg, &op[k]);
		if (!perf_pair_run(&cfg, op, length, &f)) {
			explain(&cfg, op, length, seed + i);
			fail();
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_sequences),
	};

	return cmocka_run_group_tests_name("perf_reference", tests, NULL, NULL);
}
