/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The trace: records of a fixed size that the core hands to ops->trace, and a
 * ring of them for embedders that have nothing better.
 */
#ifndef VPMU_TRACE_H
#define VPMU_TRACE_H

#include <vpmu/platform.h>

enum vpmu_trace_type {
	VPMU_TRACE_NONE,
	VPMU_TRACE_ASSIGN,  /* counter `pmc` of the silicon counts for somebody:
			       what = enum vpmu_trace_owner, a = its number (a guest's
			       counter or slot, or a host event's id), b = its count
			       so far */
	VPMU_TRACE_RELEASE, /* ... does not any more; fields as above */
	VPMU_TRACE_EXIT,    /* the guest was served: what = enum vpmu_trace_exit,
			       a = register, b = value read or written */
	VPMU_TRACE_PMI,     /* the guest got an interrupt: a = GLOBAL_STATUS */
	VPMU_TRACE_LOST,    /* the guest's counter `pmc` is enabled and does not count:
			       what = enum vpmu_loss, a = time enabled, b = running */
	VPMU_TRACE_FOUND,   /* ... counts again, or was disabled; a, b as above */
	VPMU_TRACE_ROTATE,  /* the host's multiplexing timer rotated */
	/* Of the paravirtual PMU; `pmc` is the slot of its vCPU. */
	VPMU_TRACE_HYPERCALL, /* the guest called: what = operation (a0), pmc = how many
				 operations it was (of a batch; else 0), a = number of
				 the hypercall, b = answer, sign-extended */
	VPMU_TRACE_PV_ENABLE,  /* an event is enabled: what = version of the ABI, a = id,
				  b = its count so far */
	VPMU_TRACE_PV_DISABLE, /* ... is disabled; fields as above. a = 0: it was closed
				  by another vCPU, and is not known any more */
	VPMU_TRACE_PV_OVERFLOW, /* it overflowed: what = how often, a = id, b = in all */
	VPMU_TRACE_PV_LOST,    /* it is enabled and does not count: fields as of LOST */
	VPMU_TRACE_PV_FOUND,   /* ... counts again, or was disabled */
	VPMU_TRACE_PV_THROTTLE, /* it stands still (what = 1), goes on (0); a = id */
	VPMU_TRACE_COUNT       /* types are only ever appended: readers leave out what
				  they do not know */
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
