// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The encoding of saved state: sections, and truncated or damaged input. */
#include "unit.h"

#include <vpmu/state.h>

static void test_little_endian(void **state)
{
	static const uint8_t expect[] = {
		0x11, 0x22, 0x11, 0x44, 0x33, 0x22, 0x11,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	};
	uint8_t buf[sizeof(expect)];
	struct vpmu_state_cursor c = { .data = buf, .size = sizeof(buf) };

	(void)state;
	vpmu_state_put(&c, 0x11, 1);
	vpmu_state_put(&c, 0x1122, 2);
	vpmu_state_put(&c, 0x11223344, 4);
	vpmu_state_put(&c, 0x1122334455667788, 8);
	assert_int_equal(c.error, 0);
	assert_int_equal(c.pos, sizeof(expect));
	assert_memory_equal(buf, expect, sizeof(expect));

	c.pos = 0;
	assert_int_equal(vpmu_state_get(&c, 1), 0x11);
	assert_int_equal(vpmu_state_get(&c, 2), 0x1122);
	assert_int_equal(vpmu_state_get(&c, 4), 0x11223344);
	assert_true(vpmu_state_get(&c, 8) == 0x1122334455667788);
	assert_int_equal(c.error, 0);
}

static void test_measure(void **state)
{
	struct vpmu_state_cursor c = { 0 };
	size_t head = vpmu_state_section_begin(&c, 1, 1, 0);

	(void)state;
	vpmu_state_put(&c, 1, 4);
	vpmu_state_section_end(&c, head);
	assert_int_equal(c.pos, 16 + 8);
	assert_int_equal(c.error, 0);
}

/* For each size that is too small: an error, the whole size known, no byte beyond. */
static void test_too_small(void **state)
{
	size_t size;

	(void)state;
	for (size = 0; size < 24; size++) {
		uint8_t *buf = malloc(size + 1);
		struct vpmu_state_cursor c = { .data = buf, .size = size };
		size_t head;

		buf[size] = 0x5a;
		head = vpmu_state_section_begin(&c, 7, 1, VPMU_STATE_MANDATORY);
		vpmu_state_put(&c, 0x1122334455667788, 8);
		vpmu_state_section_end(&c, head);
		assert_int_equal(c.error, -VPMU_E2BIG);
		assert_int_equal(c.pos, 24);
		assert_int_equal(buf[size], 0x5a);
		free(buf);
	}
}

static void test_truncated(void **state)
{
	uint8_t buf[7] = { 1, 2, 3, 4, 5, 6, 7 };
	struct vpmu_state_cursor c = { .data = buf, .size = sizeof(buf) };

	(void)state;
	assert_int_equal(vpmu_state_get(&c, 8), 0);
	assert_int_equal(c.error, -VPMU_EINVAL);
	assert_int_equal(c.pos, 0);
	/* An error stays, also for what would fit. */
	assert_int_equal(vpmu_state_get(&c, 1), 0);
	assert_int_equal(c.error, -VPMU_EINVAL);
}

static void test_first_error_stays(void **state)
{
	uint8_t buf[4] = { 0 };
	struct vpmu_state_cursor c = { .data = buf, .size = sizeof(buf), .pos = 9 };

	(void)state;
	vpmu_state_put(&c, 1, 1);
	assert_int_equal(c.error, -VPMU_E2BIG);
	vpmu_state_get(&c, 1);
	assert_int_equal(c.error, -VPMU_E2BIG);
	assert_int_equal(buf[0], 0);
}

static void test_section(void **state)
{
	size_t body;

	(void)state;
	for (body = 0; body <= 17; body++) {
		uint8_t buf[64];
		struct vpmu_state_cursor c = { .data = buf, .size = sizeof(buf) };
		size_t head, i;

		memset(buf, 0xff, sizeof(buf));
		head = vpmu_state_section_begin(&c, 0x01020304, 0x0506, 0x0708);
		for (i = 0; i < body; i++)
			vpmu_state_put(&c, 0xee, 1);
		vpmu_state_section_end(&c, head);
		assert_int_equal(c.pos, 16 + (body + 7) / 8 * 8);
		assert_int_equal(c.error, 0);

		c.pos = 0;
		assert_int_equal(vpmu_state_get(&c, 4), 0x01020304);
		assert_int_equal(vpmu_state_get(&c, 2), 0x0506);
		assert_int_equal(vpmu_state_get(&c, 2), 0x0708);
		assert_int_equal(vpmu_state_get(&c, 4), body);
		assert_int_equal(vpmu_state_get(&c, 4), 0);
		for (i = body; i % 8; i++)
			assert_int_equal(buf[16 + i], 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_little_endian),
		cmocka_unit_test(test_measure),
		cmocka_unit_test(test_too_small),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_first_error_stays),
		cmocka_unit_test(test_section),
	};

	return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
