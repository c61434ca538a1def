/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The only header that differs per world: fixed-width integers, bool, size_t,
 * the four mem functions, and the few atomic operations that the core needs.
 *
 * Worlds: user space and freestanding (stdint.h, the compiler's own headers),
 * QEMU after osdep.h (which has included them already), a Linux module (which
 * has neither stdint.h nor stdatomic.h).
 */
#ifndef VPMU_PLATFORM_H
#define VPMU_PLATFORM_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/nospec.h>
#include <linux/string.h>
#include <linux/types.h>
#ifndef UINT32_MAX
#define UINT32_MAX (~(uint32_t)0)
#endif
#ifndef UINT64_MAX
#define UINT64_MAX (~(uint64_t)0)
#endif
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if __STDC_HOSTED__
#include <string.h>
#else
void *memcpy(void *dst, const void *src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
#endif
#endif

/*
 * An index that a guest has chosen, after its bounds check: where a CPU speculates past
 * that check the index is 0, so that nothing out of bounds is read (Spectre, variant 1).
 * @size: 1 up to half of what a size_t holds
 */
#ifdef __KERNEL__
#define vpmu_index_nospec(index, size)	array_index_nospec((size_t)(index), (size_t)(size))
#else
static inline size_t vpmu_index_nospec(size_t index, size_t size)
{
	/* The compiler is not to conclude from the check that the mask is constant. */
	__asm__("" : "+r" (index));
	return index & ((size_t)0 - (((index - size) & ~index) >> (8 * sizeof(index) - 1)));
}
#endif

/*
 * Holds a contract between two functions of the core, or between the core and its embedder,
 * that no guest can break. Unit tests and fuzzers define VPMU_ASSERT and trap where one is
 * broken. Every other build compiles the condition and does not evaluate it.
 */
#ifdef VPMU_ASSERT
#define vpmu_assert(condition)	((condition) ? (void)0 : __builtin_trap())
#else
#define vpmu_assert(condition)	((void)(0 && (condition)))
#endif

/*
 * Functions that a host calls return negative errno values; those that act for a guest
 * return enum vpmu_result. The core cannot include errno.h in a freestanding world: these
 * are Linux's values of the few that it returns.
 */
#define VPMU_ENOENT	2	/* no provider counts this event */
#define VPMU_E2BIG	7	/* the caller's buffer is too small */
#define VPMU_EFAULT	14	/* no such guest memory */
#define VPMU_EBUSY	16	/* no free counter for it */
#define VPMU_EINVAL	22	/* an argument or a saved field is out of range */
#define VPMU_ENOSYS	38	/* a newer version than this library knows */
#define VPMU_EOPNOTSUPP	95	/* more capability than the model or provider has */

/* Relaxed 64-bit read-modify-write operations; safe from NMI and other threads. */
#define vpmu_atomic_or(p, v)	((void)__atomic_fetch_or((p), (v), __ATOMIC_RELAXED))
#define vpmu_atomic_take(p)	__atomic_exchange_n((p), 0, __ATOMIC_ACQUIRE)
#define vpmu_atomic_read(p)	__atomic_load_n((p), __ATOMIC_RELAXED)
/* Pair with each other: stores before the set are visible to the thread that gets its value. */
#define vpmu_atomic_get(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define vpmu_atomic_set(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)
/* For words that other threads read at any time: a relaxed store, and order between stores. */
#define vpmu_atomic_put(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define vpmu_atomic_fence()	__atomic_thread_fence(__ATOMIC_RELEASE)
#define vpmu_atomic_add(p, v)	((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))
/* Stores @new and is true if *@p equals *@old; otherwise loads *@p into *@old and is false. */
#define vpmu_atomic_cas(p, old, new) \
	__atomic_compare_exchange_n((p), (old), (new), false, \
				    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)

#endif /* VPMU_PLATFORM_H */
