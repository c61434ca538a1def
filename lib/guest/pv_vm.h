/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A VM and its vCPUs, as all files of the paravirtual PMU see them. From the bottom to the
 * top; a file calls only files above it in this list:
 *
 *	pv_memory.c   ranges of guest memory, pages of it that stay mapped
 *	pv_cpuid.c    CPUID
 *	pv_event.c    the VM's events by id, and what they count
 *	pv_counter.c  the provider's events: made, read, parked, released
 *	pv_branch.c   branch records with overflows
 *	pv_page.c     memory that the guest reads: the page of slots, version 1's structs
 *	pv_slot.c     a vCPU's slots: events that are enabled there; overflows, losses
 *	pv_close.c    the end of events
 *	pv_batch.c    the bracket of one instant; second halves
 *	pv_v1.c       operations of the interface of 2010
 *	pv_v2.c       operations of its successor
 *	pv_call.c     hypercalls: registers, answers
 *	pv.c          configuration, RESET, queries
 *	pv_state.c    saving and loading
 *
 * A slot is one of the places of a vCPU where an event can be enabled: struct pv_slot is our
 * side of it, struct vpmu_pv_slot its entry in the page that the guest reads.
 *
 * An enabled event is attached to a slot of one vCPU, which alone changes its numbers. Another
 * vCPU may only detach it, to close it: from then on nothing is written for it, and the owner
 * releases the provider's event at its next service.
 *
 * A function that has to be called under the lock says so and asserts it. The provider's
 * calls that may block are made without the lock.
 */
#ifndef VPMU_PV_VM_H
#define VPMU_PV_VM_H

#include <vpmu/msr.h>
#include <vpmu/pv.h>
#include <vpmu/state.h>

#define PV_PAGE		VPMU_PV_PAGE_BYTES
#define PV_WORDS	2 /* of 32 slots each */
#define PV_BIT(s)	((uint64_t)1 << (s))

#define PV_EVENT_FLAGS	(VPMU_PV_EVENT_PINNED | VPMU_PV_EVENT_EXCLUDE_USER | \
			 VPMU_PV_EVENT_EXCLUDE_KERNEL | VPMU_PV_EVENT_EXCLUDE_HOST | \
			 VPMU_PV_EVENT_EXCLUDE_GUEST | VPMU_PV_EVENT_BRANCHES)

/* The thing to count, in the guest's terms and in the provider's. */
struct pv_what {
	uint32_t type;      /* VPMU_PV_TYPE_... */
	uint32_t flags;     /* VPMU_PV_EVENT_... */
	uint32_t suppress;  /* VPMU_PV_SUPPRESS_..., with EVENT_BRANCHES */
	uint64_t config;
	uint64_t select;    /* the model's encoding */
	int8_t fixed;       /* or the event of this fixed counter; -1 */
	uint8_t banks;
};

/* An event of the VM. All of it is under the lock. */
struct pv_event {
	uint8_t abi;        /* VPMU_PV_ABI_...; 0: free */
	uint8_t slot;       /* where it is enabled */
	uint8_t reason;     /* enum vpmu_loss: why it can never be counted here */
	bool throttled;
	uint32_t vcpu;      /* number of the vCPU where it is enabled, + 1; 0: disabled */
	uint32_t id;        /* version 1: an int */
	uint64_t serial;    /* unique to this opening; never 0 */
	struct pv_what what;
	uint32_t leader;    /* index + 1; 0: none */
	uint64_t leader_serial; /* differs from the leader's serial if that one is closed */
	uint64_t count;     /* totals, as of the last vpmu_pv_counter_fold() */
	uint64_t enabled, running;
	uint64_t stamp;     /* the vCPU's clock then, while enabled */
	uint64_t period, left; /* occurrences between overflows, and to the next; left 0: none */
	uint32_t overflows;
	uint16_t generation;
	uint8_t loss;       /* enum vpmu_loss that the guest knows of, while enabled */
	uint8_t at_bytes;   /* version 1: the guest's struct */
	uint64_t gpa;
	void *at;
};

/* A slot of a vCPU. Only that vCPU touches it, but for event, which is under the lock. */
struct pv_slot {
	uint32_t event;     /* index + 1 of the event that is attached; 0: none */
	uint32_t hits;      /* overflows to be serviced; atomics only */
	uint32_t seq;       /* the guest's entry's; even */
	uint32_t n_over;    /* overflows in this slice */
	uint32_t late;      /* overflows from a saved state, to be serviced */
	bool used;          /* attached, as far as the vCPU knows */
	bool made;          /* has an event of the provider, counting or parked */
	bool samples;       /* ... made with overflows */
	bool runs;          /* counts; for providers that do not say for how long */
	uint8_t why;        /* enum vpmu_loss: why it is used and not made */
	bool touched;       /* parked since the last slice */
	uint32_t index;     /* the event that it was made for, and that one's serial */
	uint64_t serial;
	uint64_t make;      /* unique number of the making, and the leader's */
	uint64_t leader_make;
	uint64_t period;    /* that it was made with */
	uint64_t base;      /* the count and running time that the totals have already */
	uint64_t run_base;
	uint64_t next;      /* its count at the next overflow; 0: none */
};

struct pv_uncounted {
	uint64_t select, times;
};

/* The pages that the guest has registered for a vCPU; NULL: none. */
struct pv_pages {
	uint32_t *slots;    /* struct vpmu_pv_page */
	uint32_t *branches; /* struct vpmu_pv_branches */
};

/* Branch records of a vCPU. */
struct pv_branches {
	struct vpmu_lbr *stack; /* the engine's; NULL: they are not offered */
	uint32_t seq;           /* the guest's page's; even */
	bool on;                /* recorded for an event here, or frozen */
	bool chain;             /* ... in call-stack mode */
	bool frozen;            /* until the guest has looked */
	bool fresh;             /* an event was enabled: older records go */
	bool due;               /* in this batch an event overflowed that wants them */
};

struct vpmu_pv_vm {
	const struct vpmu_model *model;
	const struct pv_names *names; /* names of generic events */
	uint64_t select;    /* the bits of a raw config that select an event */
	const struct vpmu_filter *filter;
	const struct vpmu_provider_ops *provider;
	uint64_t period_min;
	uint32_t abi, features;
	uint32_t n_vcpus, n_events, n_slots;
	uint32_t overflows_max;
	bool alone;
	bool no_hypercall;  /* version 2 is offered without it */
	struct vpmu_error refused; /* by vpmu_pv_vm_load(), and why */
	/* Under the lock. */
#ifdef VPMU_ASSERT
	const struct vpmu_pv *holder; /* by whose hooks the lock is held, or NULL */
	bool stopped;       /* all vCPUs are: not under the lock */
#endif
	uint64_t serial;    /* the last one given away */
	uint32_t n_uncounted;
	struct pv_uncounted uncounted[VPMU_UNCOUNTED_MAX];
	/* struct vpmu_pv *[n_vcpus] and struct pv_event[n_events] follow. */
};

struct vpmu_pv {
	struct vpmu_pv_vm *vm;
	struct vpmu_provider *provider;
	struct vpmu_ops ops;
	void *ctx;
	uint32_t number;
	/* The provider's, or NULL. */
	uint64_t (*clock)(struct vpmu_provider *p, bool hold);
	uint64_t (*running)(struct vpmu_event *ev);

	/* Under the lock. */
	struct pv_pages page;
	uint64_t page_gpa, branches_gpa;
	uint8_t vector;

	/* Atomics only, any thread: slots that overflowed, or changed their state. */
	uint32_t pending[PV_WORDS], changed[PV_WORDS];
	uint32_t detached;  /* not 0: another vCPU has closed an event that was enabled here */

	uint64_t last_clock; /* the clock, as it was last asked */
	uint64_t now;       /* the same, but it never goes back */
	uint64_t makes;     /* how often an event was made */
	uint32_t n_used;    /* slots */
	bool look;          /* the end of the batch looks at the state of all slots */
	bool nmi;           /* for version 1, due at the end of the batch */
	struct pv_branches lbr;
	/* Sets of slots, of the call in progress. */
	uint64_t fresh;     /* enabled: their states are not known yet */
	uint64_t dirty;     /* to be written for the guest */
	uint64_t over;      /* ... and to be marked in its bitmap of overflows */
	uint64_t news;      /* ... and in its bitmap of changes */
	struct pv_slot slot[VPMU_PV_SLOTS];
	/* The provider's events follow, n_slots times event_size bytes. */
};

static inline struct vpmu_pv **pv_vcpus(struct vpmu_pv_vm *vm)
{
	return (struct vpmu_pv **)(void *)(vm + 1);
}

static inline size_t pv_vcpus_bytes(uint32_t n_vcpus)
{
	return (n_vcpus * sizeof(struct vpmu_pv *) + 7) & ~(size_t)7;
}

static inline struct pv_event *pv_event_at(struct vpmu_pv_vm *vm, uint32_t index)
{
	uint8_t *events = (uint8_t *)(vm + 1) + pv_vcpus_bytes(vm->n_vcpus);

	return (struct pv_event *)(void *)events + index;
}

static inline uint32_t pv_index(struct vpmu_pv_vm *vm, const struct pv_event *ev)
{
	return (uint32_t)(ev - pv_event_at(vm, 0));
}

static inline bool pv_here(const struct vpmu_pv *v, const struct pv_event *ev)
{
	return ev->vcpu == v->number + 1;
}

static inline bool pv_wants_branches(const struct pv_event *ev)
{
	return ev->what.flags & VPMU_PV_EVENT_BRANCHES;
}

static inline const struct vpmu_provider_ops *pv_ops(const struct vpmu_pv *v)
{
	return v->provider->ops;
}

/* The provider's event of a slot. */
static inline struct vpmu_event *pv_slot_event(struct vpmu_pv *v, unsigned int s)
{
	return (struct vpmu_event *)(void *)
		((uint8_t *)(v + 1) + (size_t)s * v->vm->provider->event_size);
}

/* The end of the batch writes the slot for the guest. */
static inline void pv_slot_dirty(struct vpmu_pv *v, unsigned int s)
{
	v->dirty |= PV_BIT(s);
}

static inline void pv_trace(struct vpmu_pv *v, unsigned int type, unsigned int s,
			    unsigned int what, uint64_t a, uint64_t b)
{
	vpmu_trace(&v->ops, v->ctx, type, s, what, a, b);
}

/*
 * With assertions, the VM records by whose hooks its lock is held. While all vCPUs are stopped
 * there is no need for the lock: vpmu_pv_vm_save() takes none.
 */
#ifdef VPMU_ASSERT
static inline void pv_set_holder(struct vpmu_pv_vm *vm, const struct vpmu_pv *holder)
{
	vm->holder = holder;
}

static inline void pv_set_stopped(struct vpmu_pv_vm *vm, bool stopped)
{
	vm->stopped = stopped;
}

/* @v, in the call that it is in, has the lock. */
static inline void pv_assert_locked(const struct vpmu_pv *v)
{
	vpmu_assert(v->vm->holder == v || v->vm->stopped);
}

/* Some vCPU of the VM has it: for what a vCPU does to another one's events. */
static inline void pv_assert_vm_locked(const struct vpmu_pv_vm *vm)
{
	vpmu_assert(vm->holder || vm->stopped);
}
#else
static inline void pv_set_holder(struct vpmu_pv_vm *vm, const struct vpmu_pv *holder)
{
}

static inline void pv_set_stopped(struct vpmu_pv_vm *vm, bool stopped)
{
}

static inline void pv_assert_locked(const struct vpmu_pv *v)
{
}

static inline void pv_assert_vm_locked(const struct vpmu_pv_vm *vm)
{
}
#endif

static inline void pv_lock(struct vpmu_pv *v)
{
	if (v->ops.lock)
		v->ops.lock(v->ctx);
	pv_set_holder(v->vm, v);
}

static inline void pv_unlock(struct vpmu_pv *v)
{
	pv_assert_locked(v);
	pv_set_holder(v->vm, NULL);
	if (v->ops.unlock)
		v->ops.unlock(v->ctx);
}

/* The event that is attached to a slot, or NULL. Under the lock, from any vCPU. */
static inline struct pv_event *pv_attached(struct vpmu_pv *v, unsigned int s)
{
	uint32_t event = v->slot[s].event;

	pv_assert_vm_locked(v->vm);
	return event ? pv_event_at(v->vm, event - 1) : NULL;
}

#endif /* VPMU_PV_VM_H */
