/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SELFTEST_H
#define SELFTEST_H

/**
 * Count a few instructions on the core and look at every register that should
 * have noticed. May sleep. Returns 0, or a negative errno after a pr_err.
 */
int vpmu_selftest(void);

#endif /* SELFTEST_H */
