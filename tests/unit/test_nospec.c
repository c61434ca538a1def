// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Indexes that a guest chooses are clamped behind their bounds checks. A CPU's
 * speculation cannot be seen from here; that each of these paths goes through the
 * clamp can, as this test is linked with lib's files that note it.
 */
#include "unit.h"

#include <vpmu/arch.h>

#include "pv_rig.h"

static size_t last_index, last_size;
static unsigned int n_noted;

size_t nospec_noted(size_t index, size_t size)
{
	last_index = index;
	last_size = size;
	n_noted++;
	return nospec_original(index, size);
}

static void test_clamp(void **state)
{
	static const size_t sizes[] = { 1, 2, 3, 63, 4096, SIZE_MAX / 2 };
	unsigned int i;
	size_t size;

	(void)state;
	for (i = 0; i < COUNT_OF(sizes); i++) {
		size = sizes[i];
		assert_int_equal(nospec_original(0, size), 0);
		assert_int_equal(nospec_original(size - 1, size), size - 1);
		assert_int_equal(nospec_original(size, size), 0);
		assert_int_equal(nospec_original(size + 1, size), 0);
		assert_int_equal(nospec_original(SIZE_MAX / 2 + 1, size), 0);
		assert_int_equal(nospec_original(SIZE_MAX / 2 + 1 + size, size), 0);
		assert_int_equal(nospec_original(SIZE_MAX, size), 0);
	}
}

#define noted(index, size, n, access) do { \
	n_noted = 0; \
	(void)(access); \
	assert_int_equal(n_noted, n); \
	assert_int_equal(last_index, index); \
	assert_int_equal(last_size, size); \
} while (0)

static void test_paravirtual(void **state)
{
	struct vpmu_pv_config cfg = { .n_events = 24, .n_slots = 6 };
	struct pv_rig *r = pv_rig_new(4, &cfg);
	struct vpmu_pv_op op = pv_rig_open(20, 0, 0);

	(void)state;
	assert_int_equal(pv_rig_setup(r, 0, PV_RIG_SLOTS(0), 0), 0);
	/* The id, when it is looked for and when it is taken; between them the event's code. */
	op.u.open.type = VPMU_PV_TYPE_HARDWARE;
	op.u.open.config = 1;
	noted(19, 24, 3, pv_rig_do(r, 0, op));
	op.id = 21;
	op.u.open.config = 9;
	n_noted = 0;
	assert_int_equal(pv_rig_do(r, 0, op), -VPMU_PV_ENOENT);
	assert_int_equal(last_index, 9);
	assert_int_equal(last_size, 10);
	assert_int_equal(n_noted, 1);
	/* The id, and the slot, when it is looked at and when it is taken. */
	noted(5, 6, 3, pv_rig_do(r, 0, pv_rig_enable(20, 5, 0, 0)));
	noted(19, 24, 1, pv_rig_do(r, 0, pv_rig_op(VPMU_PV_READ, 20)));
	assert_null(pv_rig_free(r));
}

static void test_registers(void **state)
{
	struct vpmu_arch_config cfg = { .size = sizeof(cfg), .n_fixed = -1 };
	struct vpmu_script script;
	struct vpmu_direct direct;
	struct vpmu_silicon_config silicon = { .size = sizeof(silicon) };
	struct vpmu_error err;
	struct vpmu_arch *v;
	uint64_t value;
	size_t size;

	(void)state;
	vpmu_script_init(&script, VPMU_SCRIPT_SUPPLIED);
	cfg.model = silicon.model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
	silicon.supplied = VPMU_SCRIPT_SUPPLIED;
	cfg.ops = silicon.ops = &script.ops;
	cfg.ctx = silicon.ctx = &script;
	assert_int_equal(vpmu_direct_init(&direct, &silicon), 0);
	script.silicon = &direct.silicon;
	cfg.provider = &direct.provider;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), 0);
	v = test_malloc(size);
	assert_int_equal(vpmu_arch_init(v, &cfg, &err), 0);

	noted(5, 8, 1, vpmu_arch_wrmsr(v, 0x186 + 5, 0));
	noted(7, 8, 1, vpmu_arch_rdmsr(v, 0xc1 + 7, &value));
	noted(3, 8, 1, vpmu_arch_rdpmc(v, 3, false, &value));
	noted(2, 4, 1, vpmu_arch_rdpmc(v, 1u << 30 | 2, false, &value));
	vpmu_arch_reset(v, false);
	test_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clamp),
		cmocka_unit_test(test_paravirtual),
		cmocka_unit_test(test_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
