// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Functions that a compiler expects of any environment, in 64 and in 32 bits. */
#include <vpmu/platform.h>

void *memset(void *to, int c, size_t n)
{
	void *at = to;

	asm volatile("rep stosb" : "+D" (at), "+c" (n) : "a" (c) : "memory");
	return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
	void *at = to;

	asm volatile("rep movsb" : "+D" (at), "+S" (from), "+c" (n) : : "memory");
	return to;
}
