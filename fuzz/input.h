/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A target's input, which it takes byte by byte, and what it requires. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The rest of the input; a target sets both. */
extern const uint8_t *input;
extern size_t left;

/* The next byte; 0 after the end. */
uint8_t byte(void);

/* The next @bytes bytes, the most significant one first. */
uint64_t word(unsigned int bytes);

/* Aborts, and says which rule does not hold, unless @holds. */
void require(bool holds, const char *what);

#endif /* FUZZ_INPUT_H */
