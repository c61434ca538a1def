/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The text form of host events and event filters.
 *
 *	host event:  TARGET:EVENT[:OPTION]...
 *	TARGET       cpuN   a CPU event of CPU N
 *	             vcpuN  a task event of vCPU N's thread
 *	EVENT        a name of the model's table in any case; one of perf's generic
 *	             names (cycles, instructions, branches, ref-cycles, ...); or rHEX,
 *	             like perf's: event select 7:0, unit mask 15:8, edge 18, inv 23,
 *	             counter mask 31:24
 *	OPTION       pinned | off | exclusive | period=N | lbr[=FILTER], or letters as
 *	             after perf's colon, each once: u k (user, kernel; both if neither
 *	             is there), G or H (guest only, host only)
 *
 *	filter:      allow|deny[:ENTRY]...
 *	ENTRY        EVENT (rHEX of event select and unit mask only) | fixedN |
 *	             mask=SELECT/MASK/MATCH, event selects and unit masks in hex |
 *	             except=SELECT/MASK/MATCH, behind an entry of the same select
 *
 * An event that only a fixed counter counts stands in a filter for that counter;
 * any other one for the general-purpose counters only, as in KVM.
 *
 * Grammar with examples: docs/HOST-EVENTS.md.
 */
#ifndef VPMU_SPEC_H
#define VPMU_SPEC_H

#include <vpmu/filter.h>
#include <vpmu/perf.h>

struct vpmu_spec_error {
	size_t at, length;  /* place of the error in the text: bytes, from 0 */
	const char *what;   /* description of the error */
	const char *needed; /* text that is allowed there */
};

struct vpmu_host_event {
	struct vpmu_perf_attr attr;
	uint32_t cpu;       /* CPU, or vCPU of the thread */
	bool task;
};

/**
 * Parse a host event.
 *
 * @text:   NUL-terminated
 * @model:  model whose event names are known
 * @n_cpus: CPU numbers must be below it
 * @out:    filled on success; its leader is NULL, its id 0
 * @err:    filled on failure
 *
 * The event need not be one that is counted. Pure. Returns 0, or -VPMU_EINVAL.
 */
int vpmu_spec_host_event(const char *text, const struct vpmu_model *model,
			 uint32_t n_cpus, struct vpmu_host_event *out,
			 struct vpmu_spec_error *err);

/**
 * Parse an event filter.
 *
 * @model:  model whose event names are known
 * @out:    filled on success
 * @events: room for VPMU_FILTER_EVENTS_MAX entries, used by @out afterwards
 * @err:    filled on failure
 *
 * Pure. Returns 0, or -VPMU_EINVAL.
 */
int vpmu_spec_filter(const char *text, const struct vpmu_model *model,
		     struct vpmu_filter *out, uint64_t *events,
		     struct vpmu_spec_error *err);

#endif /* VPMU_SPEC_H */
