// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A record of KVM's behaviour in the cases that tests/selftests/kvm_contention.c runs.
 * tests/vm/t-nested.sh compares it with stock kernels. The machine had six counters,
 * AMD's.
 */
#include <string.h>

#include "contention.h"

#define BOTH "6.1 6.12" /* Debian's kernels */

static const struct contention_measured measured[] = {
	{ "counter-1", BOTH, "K: error; reads: 0; reads_written: 777" },
	{ "counter-2", BOTH,
	  "after_release: error; after_timer: error; after_switch: error; K: active; reads: 1000" },
	{ "counter-3", BOTH, "K: error; reads: 1000" },
	{ "counter-4", BOTH, "CF: 5 active, 1 inactive; K: active; reads: 1000" },
	{ "counter-5", BOTH, "CF: 5 active, 1 inactive; K: active; reads: 2000" },
	{ "counter-6", BOTH, "TP: error; K: active; reads: 2000" },
	{ "counter-7", BOTH, "TP: active; K: error; reads: 0" },
	{ "counter-10", BOTH, "not_in_error: active; in_error: error" },
	{ "counter-12", BOTH, "CF: active; CF_when_full: inactive; last: active" },
	{ "kept-older", BOTH, "TP: 5 active, 1 error; K: active; reads: 1000" },
	{ "reenable-older", BOTH, "K_before: active; TP: active; K: error; reads: 1000" },
	{ "reenable-error", BOTH, "while_held: error; K: active; reads: 2000" },
	{ "switch-lost", BOTH, "K: error; reads: 1000" },
};

const struct contention_measured *contention_measured_at(const char *id, size_t i)
{
	for (size_t n = 0; n < sizeof(measured) / sizeof(measured[0]); n++)
		if (!strcmp(measured[n].id, id) && !i--)
			return &measured[n];
	return NULL;
}
