// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <vpmu/state.h>

#include "totals.h"

/*
 * A total that no CPU reaches: 9 years at a thousand million a second. A loaded
 * one must stay below it, so that no sum of totals ever wraps.
 */
#define TOTAL_MAX	((uint64_t)1 << 58)

int vpmu_totals_save(struct vpmu_silicon *s, void *buf, size_t size, size_t *used)
{
	struct vpmu_state_cursor c = { .data = buf, .size = size };
	struct vpmu_signal_words totals;
	unsigned int i, b;

	vpmu_state_put(&c, s ? VPMU_SIGNAL_COUNT : 0, 4);
	vpmu_state_put(&c, s ? VPMU_BANK_COUNT : 0, 4);
	if (s) {
		vpmu_silicon_totals(s, &totals);
		for (i = 0; i < VPMU_SIGNAL_COUNT; i++)
			for (b = 0; b < VPMU_BANK_COUNT; b++)
				vpmu_state_put(&c, totals.word[i][b], 8);
	}
	*used = c.pos;
	return c.error;
}

/* A library with fewer signals had them in the same order; the rest go on at 0. */
int vpmu_totals_load(struct vpmu_silicon *s, const void *buf, size_t size)
{
	struct vpmu_state_cursor c = { .data = (uint8_t *)buf, .size = size };
	struct vpmu_signal_words totals;
	uint64_t n_signals, n_banks;
	unsigned int i, b;

	n_signals = vpmu_state_get(&c, 4);
	n_banks = vpmu_state_get(&c, 4);
	if (c.error)
		return c.error;
	if (n_signals > VPMU_SIGNAL_COUNT || n_banks > VPMU_BANK_COUNT)
		return -VPMU_ENOSYS;
	memset(&totals, 0, sizeof(totals));
	for (i = 0; i < n_signals; i++)
		for (b = 0; b < n_banks; b++) {
			totals.word[i][b] = vpmu_state_get(&c, 8);
			if (totals.word[i][b] > TOTAL_MAX)
				return -VPMU_EINVAL;
		}
	if (c.error || c.pos != size)
		return -VPMU_EINVAL;
	if (s)
		vpmu_silicon_rebase(s, &totals);
	return 0;
}
