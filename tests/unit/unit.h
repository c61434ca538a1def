/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Helpers that the unit tests share. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define COUNT_OF(table)	(sizeof(table) / sizeof((table)[0]))

/* xorshift64*: the same sequence everywhere. @state must not be 0. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
	return (random_next(state) >> 11) % n;
}

/* A number from the environment. */
static inline unsigned long long setting(const char *name, unsigned long long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

#endif /* UNIT_H */
