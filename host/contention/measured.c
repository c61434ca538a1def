// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A record of KVM's behaviour in the cases that tests/selftests/kvm_contention.c runs.
 * tests/vm/t-nested.sh and t-kvm-arch.sh compare it with stock kernels. The machine had six
 * counters, AMD's; branch records, Intel's, are those of Ice Lake.
 */
#include <string.h>

#include "contention.h"

#define ALL "6.1 6.12 7.3" /* Debian's kernels */
#define MEDIATED "7.3"     /* with enable_mediated_pmu */

static const struct contention_measured measured[] = {
	{ "counter-1", ALL, "K: error; reads: 0; reads_written: 777" },
	{ "counter-2", ALL,
	  "after_release: error; after_timer: error; after_switch: error; K: active; reads: 1000" },
	{ "counter-3", ALL, "K: error; reads: 1000" },
	{ "counter-4", ALL, "CF: 5 active, 1 inactive; K: active; reads: 1000" },
	{ "counter-5", ALL, "CF: 5 active, 1 inactive; K: active; reads: 2000" },
	{ "counter-6", ALL, "TP: error; K: active; reads: 2000" },
	{ "counter-7", ALL, "TP: active; K: error; reads: 0" },
	{ "counter-10", ALL, "not_in_error: active; in_error: error" },
	{ "counter-12", ALL, "CF: active; CF_when_full: inactive; last: active" },
	{ "kept-older", ALL, "TP: 5 active, 1 error; K: active; reads: 1000" },
	{ "reenable-older", ALL, "K_before: active; TP: active; K: error; reads: 1000" },
	{ "reenable-error", ALL, "while_held: error; K: active; reads: 2000" },
	{ "switch-lost", ALL, "K: error; reads: 1000" },
	{ "lbr-1", ALL, "CP: active; V: active" },
	{ "lbr-2", ALL, "CF: active; V: active" },
	{ "lbr-3", ALL, "V_before: active; CP: active; V: active" },
	{ "lbr-4", ALL, "V_before: active; CF: active; V: active" },
	{ "lbr-5", ALL, "V_before: active; after_release: active; after_enable: active" },
	{ "lbr-6", ALL, "V_before: active; TP: active; V: active" },
	{ "lbr-7", ALL, "TP: active; V: active" },
	{ "lbr-cascade", ALL,
	  "V_before: active; K: error; V: error; after_enable: error; after_cleanup: active" },
	{ "mediated-vm", MEDIATED, "vm: EBUSY; vm_then: none" },
	{ "mediated-event", MEDIATED, "counting: EOPNOTSUPP; in_guest: inactive; in_host: active" },
	{ "mediated-keeps", MEDIATED,
	  "K: active; reads: 2000; reads_then: 2000; CP: 6 inactive; in_host: active" },
};

const struct contention_measured *contention_measured_at(const char *id, size_t i)
{
	for (size_t n = 0; n < sizeof(measured) / sizeof(measured[0]); n++)
		if (!strcmp(measured[n].id, id) && !i--)
			return &measured[n];
	return NULL;
}
