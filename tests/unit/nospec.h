/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Included before all else in what test_nospec is made of: indexes are noted. */
#ifndef NOSPEC_H
#define NOSPEC_H

#include <vpmu/platform.h>

size_t nospec_noted(size_t index, size_t size);
static inline size_t nospec_original(size_t index, size_t size)
{
	return vpmu_index_nospec(index, size);
}
#define vpmu_index_nospec(index, size) nospec_noted(index, size)

#endif /* NOSPEC_H */
