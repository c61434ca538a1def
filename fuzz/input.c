// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The reader of a fuzz target's input. */
#include <stdio.h>
#include <stdlib.h>

#include "input.h"

const uint8_t *input;
size_t left;

void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

uint8_t byte(void)
{
	if (!left)
		return 0;
	left--;
	return *input++;
}

uint64_t word(unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | byte();
	return value;
}
