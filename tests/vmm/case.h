/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Cases are functions that return NULL, or what is wrong, and are written with these macros. The
 * text is in why[], which the next failure of the process overwrites.
 */
#ifndef CASE_H
#define CASE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern char why[400]; /* vmm.c's */

#define FAIL(...) return snprintf(why, sizeof(why), __VA_ARGS__), why
#define CHECK(what, want)						\
	do {								\
		int64_t got_ = (what), want_ = (want);			\
									\
		if (got_ != want_)					\
			FAIL("line %d: %s is %lld, not %lld", __LINE__, #what, \
			     (long long)got_, (long long)want_);	\
	} while (0)
#define TRY(call)							\
	do {								\
		const char *wrong_ = (call);				\
									\
		if (wrong_)						\
			FAIL("line %d: %s", __LINE__, strdup(wrong_));	\
	} while (0)

#endif
