/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The text form of host events; that of event filters is in filter.h.
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
 * Grammar with examples: docs/HOST-EVENTS.md.
 */
#ifndef VPMU_SPEC_H
#define VPMU_SPEC_H

#include <vpmu/model.h>
#include <vpmu/perf.h>

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

#endif /* VPMU_SPEC_H */
