// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <vpmu/state.h>

#include "totals.h"

/*
 * A total that no CPU reaches: 9 years at a thousand million a second. A loaded
 * one must stay below it, so that no sum of totals ever wraps.
 */
#define TOTAL_MAX	((uint64_t)1 << 58)

/* Libraries before LBR_INSERTS go on reading what has none. */
static unsigned int n_saved(struct vpmu_silicon *s)
{
	unsigned int b;

	for (b = 0; b < VPMU_BANK_COUNT; b++)
		if (vpmu_silicon_total(s, VPMU_SIGNAL_LBR_INSERTS, b))
			return VPMU_SIGNAL_COUNT;
	return VPMU_SIGNAL_LBR_INSERTS;
}

int vpmu_totals_save(struct vpmu_silicon *s, void *buf, size_t size, size_t *used)
{
	struct vpmu_state_cursor c = { .data = buf, .size = size };
	unsigned int i, b, n = 0;

	if (s) {
		vpmu_silicon_begin(s);
		n = n_saved(s);
	}
	vpmu_state_put(&c, n, 4);
	vpmu_state_put(&c, s ? VPMU_BANK_COUNT : 0, 4);
	for (i = 0; i < n; i++)
		for (b = 0; b < VPMU_BANK_COUNT; b++)
			vpmu_state_put(&c, vpmu_silicon_total(s, i, b), 8);
	if (s)
		vpmu_silicon_commit(s);
	*used = c.pos;
	return c.error;
}

/* @c is after the head. @s: NULL: only check. */
static int totals_take(struct vpmu_silicon *s, struct vpmu_state_cursor c,
		       uint64_t n_signals, uint64_t n_banks)
{
	unsigned int i, b;
	uint64_t total;

	for (i = 0; i < VPMU_SIGNAL_COUNT; i++)
		for (b = 0; b < VPMU_BANK_COUNT; b++) {
			total = i < n_signals && b < n_banks ? vpmu_state_get(&c, 8) : 0;
			if (total > TOTAL_MAX)
				return -VPMU_EINVAL;
			if (s)
				vpmu_silicon_rebase(s, i, b, total);
		}
	return c.error || c.pos != c.size ? -VPMU_EINVAL : 0;
}

/* A library with fewer signals had them in the same order; the rest go on at 0. */
int vpmu_totals_load(struct vpmu_silicon *s, const void *buf, size_t size)
{
	struct vpmu_state_cursor c = { .data = (uint8_t *)buf, .size = size };
	uint64_t n_signals, n_banks;
	int err;

	n_signals = vpmu_state_get(&c, 4);
	n_banks = vpmu_state_get(&c, 4);
	if (c.error)
		return c.error;
	if (n_signals > VPMU_SIGNAL_COUNT || n_banks > VPMU_BANK_COUNT)
		return -VPMU_ENOSYS;
	err = totals_take(NULL, c, n_signals, n_banks);
	return err || !s ? err : totals_take(s, c, n_signals, n_banks);
}
