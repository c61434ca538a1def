/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The interface between what a guest sees (lib/guest) and what counts for it:
 * the direct provider (direct.h), the host's perf subsystem, perf_event_open(2)
 * (host/linux), the kernel's perf (kvm/module). One provider object serves one
 * vCPU. Events live in memory of the front door that owns them.
 *
 * Contexts: create and release may block and are called on the CPU of the vCPU
 * that enables, or while it is stopped; all other calls may not block and are
 * made from the same place. `overflowed` (a first half) may come from anywhere,
 * NMI and other threads included.
 */
#ifndef VPMU_PROVIDER_H
#define VPMU_PROVIDER_H

#include <vpmu/event.h>

struct vpmu_event;
struct vpmu_provider;

enum vpmu_event_state {
	VPMU_EVENT_OFF,      /* disabled by its owner */
	VPMU_EVENT_ACTIVE,   /* counts whenever the vCPU runs in its banks */
	VPMU_EVENT_INACTIVE, /* enabled, waiting for a counter */
	VPMU_EVENT_ERROR,    /* lost its counter; only an enable brings it back */
};

struct vpmu_event_attr {
	uint32_t size;             /* sizeof(struct vpmu_event_attr) */
	uint8_t banks;             /* bitmap of VPMU_BANK_BIT to count in */
	bool pinned;               /* must be on a counter whenever enabled */
	int8_t fixed;              /* fixed counter whose event is requested, or -1 */
	int8_t slot;               /* the guest's own counter number (fixed ones after
				      the GP ones), for providers whose counters are
				      the guest's; -1: any */
	uint64_t select;           /* IA32_PERFEVTSEL image in the model's encoding:
				      select, umask, edge, inv, cmask; 0 if fixed */
	uint64_t extra;            /* value of the shared resource, or VPMU_SHARED_ALONE */
	uint64_t period;           /* occurrences between overflows after the first,
				      1 or more; 0: no overflow at all */
	/*
	 * Group leader, created before; NULL: own group. A group counts as a
	 * whole or not at all.
	 */
	struct vpmu_event *leader;
	uint8_t shared;            /* enum vpmu_shared: resource that it needs besides a counter */
	/*
	 * It needs no counter: select and fixed are not used (a guest's branch
	 * records).
	 */
	bool no_counter;
};

/* The head of every event; a provider's own event struct begins with it. */
struct vpmu_event {
	struct vpmu_provider *provider; /* set by create */
	void (*overflowed)(struct vpmu_event *ev); /* the owner's first half, or NULL */
	void *owner;                    /* the owner's, unused by providers */
	uint32_t index;                 /* the owner's, unused by providers */
	uint8_t quality;                /* enum vpmu_quality, set by create */
	/*
	 * The owner's first half, or NULL: an enabled event no longer counts,
	 * could not be placed, or counts again. The owner asks for the state
	 * later, in its second half.
	 */
	void (*changed)(struct vpmu_event *ev);
};

struct vpmu_provider_ops {
	uint32_t size;       /* sizeof(struct vpmu_provider_ops) */
	uint32_t event_size; /* bytes that one event needs, struct vpmu_event included,
				a multiple of 8; known before any instance exists */
	const char *name;    /* "direct", "perf_event_open", ... */

	/*
	 * The quality with which this event would be counted (enum
	 * vpmu_quality). Changes nothing. Used for CPUID.0AH:EBX and `vpmu
	 * list`.
	 */
	enum vpmu_quality (*quality)(struct vpmu_provider *p,
				     const struct vpmu_event_attr *attr);

	/*
	 * Create an event, disabled, count 0, not armed. @ev is memory of
	 * event_size bytes whose head (overflowed, owner, index) the owner has
	 * filled. Returns 0; -VPMU_ENOENT if no counter counts it, -VPMU_EBUSY
	 * if there is no counter, or another negative errno of the host; @ev is
	 * then free again.
	 */
	int (*create)(struct vpmu_provider *p, struct vpmu_event *ev,
		      const struct vpmu_event_attr *attr);

	/* Release an event. On return no first half of @ev runs anywhere. */
	void (*release)(struct vpmu_event *ev);

	/* Idempotent. Enable returns 0, or negative: the event is in ERROR. */
	int (*enable)(struct vpmu_event *ev);
	void (*disable)(struct vpmu_event *ev);

	/* Occurrences since create, 64 bits, monotone; also while disabled. */
	uint64_t (*read)(struct vpmu_event *ev);

	/* Next overflow after @left more occurrences, >= 1; then every period. */
	void (*arm)(struct vpmu_event *ev, uint64_t left);

	enum vpmu_event_state (*state)(const struct vpmu_event *ev);

	/*
	 * A batch: all operations between begin and commit happen at one
	 * instant, and the provider schedules once, at commit. Batches nest.
	 * NULL: not needed. Commit returns 0, or negative if some event could
	 * not be placed (its state shows which).
	 */
	void (*begin)(struct vpmu_provider *p);
	int (*commit)(struct vpmu_provider *p);

	/*
	 * Save and load what the provider must keep beyond its events' counts
	 * (phases of scaled events); section bodies of state.h. No event exists
	 * during load. NULL: nothing.
	 */
	int (*save)(struct vpmu_provider *p, void *buf, size_t size, size_t *used);
	int (*load)(struct vpmu_provider *p, const void *buf, size_t size);

	/*
	 * The vCPU's clock, in unhalted reference cycles or in the unit of
	 * time_hz; it may stand still while it is not held. @hold: it must run
	 * from now on; false: it need not. Idempotent. Returns the time now; a
	 * time before the last one counts as no time passed. NULL: the provider
	 * has no clock, and guests are told no times.
	 */
	uint64_t (*clock)(struct vpmu_provider *p, bool hold);

	/*
	 * The time for which @ev has counted since create, on that clock;
	 * monotone. NULL: an event always counts while it is enabled.
	 */
	uint64_t (*running)(struct vpmu_event *ev);

	/*
	 * Split the slots that @ev, which has VPMU_SHARED_METRICS, has counted
	 * since create by topdown class (VPMU_TOPDOWN words); monotone. NULL:
	 * unknown.
	 */
	void (*topdown)(struct vpmu_event *ev, uint64_t *classes);
};

/**
 * The recipe by which silicon with @supplied signals counts an event: that of
 * vpmu_event_resolve(), and the value of the shared resource. Pure. Returns and
 * fails like vpmu_event_resolve().
 */
int vpmu_attr_resolve(const struct vpmu_model *model, const struct vpmu_event_attr *attr,
		      uint64_t supplied, struct vpmu_recipe *recipe);

/* The head of every provider instance. */
struct vpmu_provider {
	const struct vpmu_provider_ops *ops;
	const struct vpmu_model *model; /* model whose event encodings it understands */
	uint32_t n_gp, n_fixed;         /* counters it can keep at once; UINT32_MAX:
					   it multiplexes */
	uint64_t time_hz;               /* rate of its clock; 0: unknown */
};

#endif /* VPMU_PROVIDER_H */
