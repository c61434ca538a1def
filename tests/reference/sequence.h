/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Guest operations out of random numbers or of a fuzzer's bytes, biased to
 * registers that exist and values that matter.
 */
#ifndef SEQUENCE_H
#define SEQUENCE_H

#include "pair.h"

struct sequence {
	uint64_t seed;       /* state of the generator, if data is NULL */
	const uint8_t *data; /* a fuzzer's bytes; zeros follow them */
	size_t size;
};

/** Choose a configuration. Returns false when there is no model. */
bool sequence_config(struct sequence *s, struct pair_config *cfg);

/** Choose the next operation. */
void sequence_op(struct sequence *s, const struct pair_config *cfg, struct pair_op *op);

#endif /* SEQUENCE_H */
