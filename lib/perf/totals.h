/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The section that every provider over a silicon saves, so that a guest can move
 * from one to another: u32 signals, u32 banks, then a u64 for each signal and bank.
 */
#ifndef VPMU_TOTALS_H
#define VPMU_TOTALS_H

#include <vpmu/silicon.h>

/** Provider's save. @s: NULL for one that is on no CPU: no totals. */
int vpmu_totals_save(struct vpmu_silicon *s, void *buf, size_t size, size_t *used);

/**
 * Provider's load. @s: with all slots but the clock's free; NULL: only check.
 * Returns 0; -VPMU_ENOSYS for more signals than there are; -VPMU_EINVAL.
 */
int vpmu_totals_load(struct vpmu_silicon *s, const void *buf, size_t size);

#endif /* VPMU_TOTALS_H */
