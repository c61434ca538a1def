/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The trace: records of a fixed size that the core hands to ops->trace, and a
 * ring of them for embedders that have no storage of their own.
 */
#ifndef VPMU_TRACE_H
#define VPMU_TRACE_H

#include <vpmu/platform.h>

enum vpmu_trace_type {
	VPMU_TRACE_NONE,
	/*
	 * Counter `pmc` of the silicon got an owner: what = enum
	 * vpmu_trace_owner, a = its number (a guest's counter or slot, or a
	 * host event's id), b = its count so far.
	 */
	VPMU_TRACE_ASSIGN,
	VPMU_TRACE_RELEASE, /* counter `pmc` lost its owner; fields as above */
	VPMU_TRACE_EXIT,    /* the guest was served: what = enum vpmu_trace_exit,
			       a = register, b = value read or written */
	VPMU_TRACE_PMI,     /* the guest got an interrupt: a = GLOBAL_STATUS */
	VPMU_TRACE_LOST,    /* the guest's counter `pmc` is enabled and does not count:
			       what = enum vpmu_loss, a = time enabled, b = running */
	VPMU_TRACE_FOUND,   /* the counter counts again, or was disabled; a, b as above */
	VPMU_TRACE_ROTATE,  /* the host's multiplexing timer rotated */
	/* The paravirtual PMU's records; `pmc` is the slot on its vCPU. */
	/*
	 * The guest made a hypercall: what = operation (a0), pmc = number of
	 * operations (of a batch; else 0), a = number of the hypercall, b =
	 * result, sign-extended.
	 */
	VPMU_TRACE_HYPERCALL,
	VPMU_TRACE_PV_ENABLE,  /* an event is enabled: what = version of the ABI, a = id,
				  b = its count so far */
	/*
	 * An event is disabled; fields as above. a = 0: another vCPU closed it, and
	 * the id is unknown.
	 */
	VPMU_TRACE_PV_DISABLE,
	/* An event overflowed: what = how many times, a = id, b = in total. */
	VPMU_TRACE_PV_OVERFLOW,
	VPMU_TRACE_PV_LOST,    /* an enabled event does not count: fields as for LOST */
	VPMU_TRACE_PV_FOUND,   /* the event counts again, or was disabled */
	VPMU_TRACE_PV_THROTTLE, /* the event is throttled (what = 1), no longer (0); a = id */
	VPMU_TRACE_COUNT       /* types are only ever appended: readers skip unknown ones */
};

enum vpmu_trace_owner {
	VPMU_TRACE_GUEST,
	VPMU_TRACE_HOST,
};

enum vpmu_trace_exit {
	VPMU_TRACE_RDMSR,
	VPMU_TRACE_WRMSR,
	VPMU_TRACE_RDPMC,
	VPMU_TRACE_EXIT_COUNT
};

struct vpmu_trace_record {
	uint64_t time; /* the embedder's; modelled time under TCG */
	uint16_t type; /* enum vpmu_trace_type */
	uint16_t cpu;  /* vCPU or CPU, the embedder's number */
	uint16_t pmc;  /* counter or slot, see type */
	uint16_t what; /* see type */
	uint64_t a, b; /* see type */
};

/*
 * One writer and one reader, which may be different threads. A full ring drops
 * what is written, and counts it.
 */
struct vpmu_trace_ring {
	struct vpmu_trace_record *record; /* the caller's, `size` of them */
	uint32_t size;                    /* a power of two */
	uint32_t head, tail;              /* written and read so far, wrapping */
	uint64_t dropped;
};

/** Returns 0, or -VPMU_EINVAL when @size is not a power of two or @record is NULL. */
int vpmu_trace_init(struct vpmu_trace_ring *ring, struct vpmu_trace_record *record,
		    uint32_t size);

/** Writer's side; from anywhere, one at a time. False: the ring was full. */
bool vpmu_trace_put(struct vpmu_trace_ring *ring, const struct vpmu_trace_record *r);

/** Reader's side; false: the ring is empty, @r unchanged. */
bool vpmu_trace_get(struct vpmu_trace_ring *ring, struct vpmu_trace_record *r);

#endif /* VPMU_TRACE_H */
