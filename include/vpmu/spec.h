/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What people type: host events and event filters.
 *
 *	host event:  TARGET:EVENT[:OPTION]...
 *	TARGET       cpuN   a CPU event of CPU N
 *	             vcpuN  a task event of vCPU N's thread
 *	EVENT        a name of the model's table in any case, perf's generic names
 *	             (cycles, instructions, branches, ref-cycles), or rHEX (unit mask
 *	             and event select, as perf has it)
 *	OPTION       pinned | off | u | k | G (guest only) | H (host only) |
 *	             exclusive | period=N | id of shared: lbr[=FILTER]
 *
 *	filter:      allow|deny[:ENTRY]...
 *	ENTRY        EVENT | fixedN | mask=SELECT/MASK/MATCH | except=SELECT/MASK/MATCH
 *
 * Grammar with examples: docs/HOST-EVENTS.md.
 */
#ifndef VPMU_SPEC_H
#define VPMU_SPEC_H

#include <vpmu/filter.h>
#include <vpmu/perf.h>

struct vpmu_spec_error {
	size_t at, length;  /* what is wrong in the text: characters, from 0 */
	const char *what;   /* what is wrong with it */
	const char *needed; /* what could stand there */
};

struct vpmu_host_event {
	struct vpmu_perf_attr attr;
	uint32_t cpu;       /* of a CPU, or of a vCPU's thread */
	bool task;
};

/**
 * Parse a host event.
 *
 * @text:   NUL-terminated
 * @model:  whose event names
 * @n_cpus: CPU numbers must be below it
 * @out:    filled on success
 * @err:    filled on failure
 *
 * Pure. Returns 0, or -VPMU_EINVAL.
 */
int vpmu_spec_host_event(const char *text, const struct vpmu_model *model,
			 uint32_t n_cpus, struct vpmu_host_event *out,
			 struct vpmu_spec_error *err);

/**
 * Parse an event filter.
 *
 * @events: room for VPMU_FILTER_EVENTS_MAX entries, used by @out afterwards
 *
 * Pure. Returns 0, or -VPMU_EINVAL.
 */
int vpmu_spec_filter(const char *text, const struct vpmu_model *model,
		     struct vpmu_filter *out, uint64_t *events,
		     struct vpmu_spec_error *err);

#endif /* VPMU_SPEC_H */
