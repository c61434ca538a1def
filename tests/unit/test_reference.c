// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Random sequences of guest operations on the library and on the reference
 * model. VPMU_REFERENCE_SEQUENCES=N runs more, VPMU_REFERENCE_SEED=S others; a
 * failure prints the seed of its sequence, which alone repeats it.
 */
#include "unit.h"

#include "sequence.h"

#define OPS_PER_SEQUENCE	400
#define SEQUENCES		800

static void explain(const struct pair_config *cfg, struct pair_op *op, size_t n,
		    unsigned long long seed)
{
	struct pair_failure f = { 0 };

	n = pair_shrink(cfg, op, n);
	pair_run(cfg, op, n, &f);
	fprintf(stderr, "VPMU_REFERENCE_SEED=%llu VPMU_REFERENCE_SEQUENCES=1 shows: ", seed);
	pair_print(stderr, cfg, op, n);
	fprintf(stderr, "after operation %zu: %s\n", f.op, f.text);
}

static void test_random_sequences(void **state)
{
	unsigned long long seed = setting("VPMU_REFERENCE_SEED", 1);
	unsigned long long n = setting("VPMU_REFERENCE_SEQUENCES", SEQUENCES);
	static struct pair_op op[OPS_PER_SEQUENCE];
	unsigned long long i;
	size_t k;

	(void)state;
	for (i = 0; i < n; i++) {
		struct sequence s = { .seed = (seed + i) << 20 };
		struct pair_config cfg;
		struct pair_failure f;

		assert_true(sequence_config(&s, &cfg));
		for (k = 0; k < OPS_PER_SEQUENCE; k++)
			sequence_op(&s, &cfg, &op[k]);
		if (!pair_run(&cfg, op, OPS_PER_SEQUENCE, &f)) {
			explain(&cfg, op, OPS_PER_SEQUENCE, seed + i);
			fail();
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_sequences),
	};

	return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
