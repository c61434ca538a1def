/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside of the paravirtual PMU's host side.
 *
 *	pv_memory.c ranges of guest memory, pages of it that stay mapped
 *	pv_cpuid.c  CPUID
 *	pv_event.c  the VM's events by id, and what they count
 *	pv_branch.c branch records with overflows
 *	pv_counter.c the provider's events: made, read, parked, released
 *	pv_page.c   what the guest reads: the shared page, version 1's structs
 *	pv_slot.c   a vCPU's slots: events that are enabled there; overflows, losses
 *	pv_batch.c  begin and end of what happens at one instant; second halves
 *	pv_close.c  the end of events
 *	pv_v1.c     operations of the interface of 2010
 *	pv_v2.c     operations of its successor
 *	pv_call.c   hypercalls: registers, answers
 *	pv.c        configuration, RESET, queries
 *	pv_state.c  saving and loading
 *
 * An event that is enabled is attached to a slot of one vCPU, which alone changes
 * its numbers. Another vCPU may only detach it, to close it: from then on nothing is
 * written for it, and the owner gives the provider's event back at its next service.
 * Functions with an L in their comment are called with the lock held; provider's
 * calls that may block are made without it.
 */
#ifndef VPMU_PV_INTERNAL_H
#define VPMU_PV_INTERNAL_H

#include <vpmu/msr.h>
#include <vpmu/pv.h>
#include <vpmu/state.h>

#define PV_PAGE		VPMU_PV_PAGE_BYTES
#define PV_WORDS	2 /* of 32 slots each */

#define PV_EVENT_FLAGS	(VPMU_PV_EVENT_PINNED | VPMU_PV_EVENT_EXCLUDE_USER | \
			 VPMU_PV_EVENT_EXCLUDE_KERNEL | VPMU_PV_EVENT_EXCLUDE_HOST | \
			 VPMU_PV_EVENT_EXCLUDE_GUEST | VPMU_PV_EVENT_BRANCHES)

/* As good as never: farther than a guest may ask for, near enough for any host. */
#define PV_FAR		((uint64_t)1 << 62)

/* What to count, as the guest has put it and as the provider is asked. */
struct pv_what {
	uint32_t type;      /* VPMU_PV_TYPE_... */
	uint32_t flags;     /* VPMU_PV_EVENT_... */
	uint32_t suppress;  /* VPMU_PV_SUPPRESS_..., with EVENT_BRANCHES */
	uint64_t config;
	uint64_t select;    /* the model's encoding */
	int8_t fixed;       /* or the event of this fixed counter; -1 */
	uint8_t banks;
};

/* An event of the VM. All of it under the lock. */
struct pv_event {
	uint8_t abi;        /* VPMU_PV_ABI_...; 0: free */
	uint8_t slot;       /* where it is enabled */
	uint8_t reason;     /* enum vpmu_loss, for good: nobody here may count it */
	bool throttled;
	uint32_t vcpu;      /* where it is enabled, + 1; 0: nowhere */
	uint32_t id;        /* version 1: an int */
	uint64_t serial;    /* of this opening; never 0 */
	struct pv_what what;
	uint32_t leader;    /* index + 1; 0: none */
	uint64_t leader_serial; /* if that is not the leader's, it has been closed */
	uint64_t count;     /* totals, as of the last vpmu_pv_counter_fold() */
	uint64_t enabled, running;
	uint64_t stamp;     /* the vCPU's clock then, while enabled */
	uint64_t period, left; /* of overflows; left 0: none */
	uint32_t overflows;
	uint16_t generation;
	uint8_t loss;       /* enum vpmu_loss: what the guest was told, while enabled */
	uint8_t at_bytes;   /* version 1: the guest's struct */
	uint64_t gpa;
	void *at;
};

/* A slot of a vCPU. Its own, but for event, which is under the lock. */
struct pv_slot {
	uint32_t event;     /* index + 1 of what is attached; 0: nothing */
	uint32_t hits;      /* overflows to be serviced; atomics only */
	uint32_t seq;       /* of the guest's slot; even */
	uint32_t n_over;    /* overflows in this slice */
	uint32_t late;      /* overflows from a saved state, to be serviced */
	bool used;          /* attached, as far as the vCPU knows */
	bool made;          /* has an event of the provider, counting or parked */
	bool samples;       /* ... made with overflows */
	bool runs;          /* counts, where the provider does not say for how long */
	uint8_t why;        /* enum vpmu_loss: why it is used and not made */
	bool touched;       /* parked since the last slice */
	uint32_t index;     /* for whom it was made, and that one's serial */
	uint64_t serial;
	uint64_t make;      /* unique number of the making, and the leader's */
	uint64_t leader_make;
	uint64_t period;    /* that it was made with */
	uint64_t base;      /* its count, and running time, that the event has */
	uint64_t run_base;
	uint64_t next;      /* its count at the next overflow; 0: none */
};

struct pv_uncounted {
	uint64_t select, times;
};

/* What the guest has registered for a vCPU; NULL: nothing. */
struct pv_pages {
	uint32_t *slots;    /* struct vpmu_pv_page */
	uint32_t *branches; /* struct vpmu_pv_branches */
};

/* Branch records of a vCPU. */
struct pv_branches {
	struct vpmu_lbr *stack; /* the engine's; NULL: they are not offered */
	uint32_t seq;           /* of the guest's page; even */
	bool on;                /* recorded for an event here, or frozen */
	bool chain;             /* ... in call-stack mode */
	bool frozen;            /* until the guest has looked */
	bool fresh;             /* begin anew */
	bool due;               /* in this batch an event overflowed that wants them */
};

struct vpmu_pv_vm {
	const struct vpmu_model *model;
	const struct pv_names *names; /* of generic events */
	uint64_t select;    /* what of a raw config chooses what is counted */
	const struct vpmu_filter *filter;
	const struct vpmu_provider_ops *provider;
	uint64_t period_min;
	uint32_t abi, features;
	uint32_t n_vcpus, n_events, n_slots;
	uint32_t overflows_max;
	bool alone;
	bool no_hypercall;  /* of version 2 */
	struct vpmu_error refused; /* by vpmu_pv_vm_load(), and why */
	/* Under the lock. */
	uint64_t serial;    /* the last one given away */
	uint32_t n_uncounted;
	struct pv_uncounted uncounted[VPMU_TOLD_MAX];
	/* struct vpmu_pv *[n_vcpus] and struct pv_event[n_events] follow. */
};

struct vpmu_pv {
	struct vpmu_pv_vm *vm;
	struct vpmu_provider *provider;
	const struct vpmu_ops *ops;
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
	uint32_t detached;  /* not 0: some slot was, by another vCPU */

	uint64_t last_clock; /* the clock, as it was last asked */
	uint64_t now;       /* the same, but that it never goes back */
	uint64_t makes;     /* how often an event was made */
	uint32_t n_used;    /* slots */
	bool look;          /* at all states, at the end */
	bool nmi;           /* for version 1, due at the end */
	struct pv_branches lbr;
	/* Sets of slots, of the call in progress. */
	uint64_t fresh;     /* enabled: their states are not known yet */
	uint64_t dirty;     /* to be written for the guest */
	uint64_t over;      /* ... which has to be told of an overflow */
	uint64_t news;      /* ... or of a change */
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

/* The provider's event of a slot. */
static inline struct vpmu_event *pv_slot_event(struct vpmu_pv *v, unsigned int s)
{
	return (struct vpmu_event *)(void *)
		((uint8_t *)(v + 1) + (size_t)s * v->vm->provider->event_size);
}

static inline void pv_lock(struct vpmu_pv *v)
{
	if (v->ops->lock)
		v->ops->lock(v->ctx);
}

static inline void pv_unlock(struct vpmu_pv *v)
{
	if (v->ops->unlock)
		v->ops->unlock(v->ctx);
}

#define PV_BIT(s)	((uint64_t)1 << (s))

static inline const struct vpmu_provider_ops *pv_ops(const struct vpmu_pv *v)
{
	return v->provider->ops;
}

/* The event that is enabled in a slot, or NULL. L */
static inline struct pv_event *pv_attached(struct vpmu_pv *v, unsigned int s)
{
	uint32_t event = v->slot[s].event;

	return event ? pv_event_at(v->vm, event - 1) : NULL;
}

static inline void pv_trace(struct vpmu_pv *v, unsigned int type, unsigned int s,
			    unsigned int what, uint64_t a, uint64_t b)
{
	vpmu_trace(v->ops, v->ctx, type, s, what, a, b);
}

static inline bool pv_here(const struct vpmu_pv *v, const struct pv_event *ev)
{
	return ev->vcpu == v->number + 1;
}

/* pv_event.c */

/** The vendor's encodings of generic events; NULL: unknown. */
const struct pv_names *vpmu_pv_event_names(const struct vpmu_model *model);

/**
 * What @what (type, config, flags) means on this model: fills in the rest. Pure.
 * Returns 0, or a negative result with the offset in struct vpmu_pv_op in @wrong.
 */
int vpmu_pv_event_translate(const struct vpmu_pv_vm *vm, struct pv_what *what, uint16_t *wrong);

/** Does the filter, as it is now, allow @what? L */
bool vpmu_pv_event_allowed(const struct vpmu_pv_vm *vm, const struct pv_what *what);

/**
 * VPMU_LOSS_NONE if the filter and @v's provider let @what count, or the reason why they
 * do not. Not under the lock.
 */
enum vpmu_loss vpmu_pv_event_refused(struct vpmu_pv *v, const struct pv_what *what);

/** The attributes of the provider's event for @what. */
void vpmu_pv_event_attr(const struct pv_what *what, struct vpmu_event_attr *attr);

/** Translate, and refuse what nobody counts, which is told. Results likewise. */
int vpmu_pv_event_check(struct vpmu_pv *v, struct pv_what *what, uint16_t *wrong);

/** Record that an event was not counted, for vpmu_pv_told(). L */
void vpmu_pv_event_uncounted(struct vpmu_pv_vm *vm, const struct pv_what *what);

/** The open event of @abi with @id, or NULL. L */
struct pv_event *vpmu_pv_event_find(struct vpmu_pv_vm *vm, uint32_t abi, uint32_t id);

/** An entry for a new one: its own in version 2, any free one in version 1. L */
struct pv_event *vpmu_pv_event_take(struct vpmu_pv_vm *vm, uint32_t abi, uint32_t id,
				    const struct pv_what *what);

/** The leader of a group member that is still open, or NULL. L */
struct pv_event *vpmu_pv_event_leader(struct vpmu_pv_vm *vm, const struct pv_event *ev);

static inline uint32_t pv_index(struct vpmu_pv_vm *vm, const struct pv_event *ev)
{
	return (uint32_t)(ev - pv_event_at(vm, 0));
}

/** A period that this VM may have. */
static inline uint64_t pv_period(const struct vpmu_pv_vm *vm, uint64_t period)
{
	return period && period < vm->period_min ? vm->period_min : period;
}

/**
 * Close an event wherever it is enabled. L; *@at, if not NULL, is to be unmapped
 * (*@bytes) when the lock is released. Returns 0; -VPMU_PV_EBUSY for the leader of
 * members that are enabled on another vCPU: then nothing has changed.
 */
int vpmu_pv_close(struct vpmu_pv *v, struct pv_event *ev, void **at, uint32_t *bytes);

/** Forget all pages and close all events; nothing is written. Not under the lock. */
void vpmu_pv_close_all(struct vpmu_pv *v);

/* pv_slot.c: all on the vCPU, or while it is stopped. */

/** Bracket changes, which happen at one instant; results are written at the end. */
void vpmu_pv_batch_begin(struct vpmu_pv *v);
void vpmu_pv_batch_end(struct vpmu_pv *v);

/**
 * Attach @ev to slot @s, or enable it anew where it is; @keep: a throttled one stays
 * so. Called with the lock held, which it releases and takes again, and in a batch.
 */
void vpmu_pv_slot_enable(struct vpmu_pv *v, struct pv_event *ev, unsigned int s, bool keep);

/** Detach @ev, which is enabled here, and before it the members that it leads; their
 * slots are written. L */
void vpmu_pv_slot_disable(struct vpmu_pv *v, struct pv_event *ev);

/** Whether members that @ev leads are enabled on @v. L */
bool vpmu_pv_slot_leads(struct vpmu_pv *v, const struct pv_event *ev);

/** The slot for a version 1 event, or -1. L */
int vpmu_pv_slot_choose(struct vpmu_pv *v, const struct pv_event *ev);

/** Write what a slot has at the end of the batch. */
static inline void pv_slot_dirty(struct vpmu_pv *v, unsigned int s)
{
	v->dirty |= (uint64_t)1 << s;
}

/** Write the numbers of a version 1 event, and more overflows, into its struct. L */
void vpmu_pv_page_write_1(struct vpmu_pv *v, struct pv_event *ev, uint32_t overflows);

/** Write the numbers of a version 2 event into its slot of the page. L */
void vpmu_pv_page_write_2(struct vpmu_pv *v, unsigned int s, const struct pv_event *ev,
			  bool enabled);

/** Write for the guest what the batch has changed. L */
void vpmu_pv_page_flush(struct vpmu_pv *v);

/** Find overflows. L */
void vpmu_pv_slot_collect(struct vpmu_pv *v);

/** Find out which events do not count. L */
void vpmu_pv_slot_settle(struct vpmu_pv *v);

void vpmu_pv_slot_throttle(struct vpmu_pv *v, struct pv_event *ev, bool throttled);
void vpmu_pv_slot_stop(struct vpmu_pv *v, unsigned int s, struct pv_event *ev);
void vpmu_pv_slot_abandon(struct vpmu_pv *v, unsigned int s);

/* What a slot's event has to be made for. */
struct pv_counter_job {
	struct pv_what what;
	uint64_t serial, period;
	uint32_t index;
	int leader;      /* its slot, or -1 */
	uint8_t refused; /* enum vpmu_loss: it must not be made at all */
	bool samples;
};

void vpmu_pv_counter_clock(struct vpmu_pv *v);
bool vpmu_pv_counter_overflows(const struct pv_slot *sl, const struct pv_event *ev, uint32_t hits);
uint32_t vpmu_pv_counter_advance(struct vpmu_pv *v, struct pv_event *ev, uint32_t hits);
void vpmu_pv_counter_release(struct vpmu_pv *v, unsigned int s);
bool vpmu_pv_counter_made_for(const struct vpmu_pv *v, const struct pv_slot *sl,
			      const struct pv_counter_job *job);
void vpmu_pv_counter_make(struct vpmu_pv *v, unsigned int s, const struct pv_counter_job *job);

/** Bring the totals of @ev, which is enabled here, up to now. L */
void vpmu_pv_counter_fold(struct vpmu_pv *v, struct pv_event *ev);

/** Occurrences until its next overflow; 0: none. It is enabled here. L */
uint64_t vpmu_pv_counter_left(struct vpmu_pv *v, const struct pv_event *ev);

/** Disable all events of @abi (both: all) that are enabled here. L */
void vpmu_pv_slot_disable_all(struct vpmu_pv *v, uint32_t abi);

/** Overflows of @ev that are not serviced yet; @left: as if they were. L */
uint32_t vpmu_pv_counter_late(struct vpmu_pv *v, const struct pv_event *ev, uint64_t *left);

/** What a saved state says of an event that was enabled here. */
struct pv_restore {
	uint32_t n_over, late;
	bool throttled;
	uint8_t loss;
};

/** Attach @ev to slot @s as it was. In a batch, with the lock as vpmu_pv_slot_enable(). */
void vpmu_pv_slot_restore(struct vpmu_pv *v, struct pv_event *ev, unsigned int s,
			  const struct pv_restore *was);

/** Give back all that is parked. Not under the lock. */
void vpmu_pv_counter_release_parked(struct vpmu_pv *v);

/* Pages that a guest registers, and what it asks for with them. */
struct pv_setup {
	struct pv_pages pages;
	uint64_t gpa, branches; /* 0: none */
	uint8_t vector;
};

/** Have other pages, which are cleared: returns what was there, for vpmu_pv_memory_unmap(). L */
struct pv_pages vpmu_pv_page_replace(struct vpmu_pv *v, const struct pv_setup *with);

/** Map both pages, or none: false. Not under the lock. */
bool vpmu_pv_memory_map(struct vpmu_pv *v, uint64_t gpa, uint64_t branches, struct pv_pages *pages);

/** The vCPU has no pages any more: what it had, for vpmu_pv_memory_unmap(). L */
struct pv_pages vpmu_pv_page_forget(struct vpmu_pv *whose);

/** Not under the lock. */
void vpmu_pv_memory_unmap(struct vpmu_pv *v, const struct pv_pages *pages);

/** @bytes of mapped memory were written. L */
void vpmu_pv_memory_dirtied(struct vpmu_pv *v, void *at, uint32_t bytes);

/* pv_branch.c: on the vCPU, or while it is stopped. */

static inline bool pv_wants_branches(const struct pv_event *ev)
{
	return ev->what.flags & VPMU_PV_EVENT_BRANCHES;
}

/** Write the records of an overflow for the guest, if one is due. L */
void vpmu_pv_branch_write(struct vpmu_pv *v);

/** Record what the events that count here want. L */
void vpmu_pv_branch_apply(struct vpmu_pv *v);

/** RESUME. L */
void vpmu_pv_branch_resume(struct vpmu_pv *v);

/** The state of the records; the layout is in pv_state.c. */
void vpmu_pv_branch_put(const struct vpmu_pv *v, struct vpmu_state_cursor *c);
bool vpmu_pv_branch_check(struct vpmu_state_cursor *c);

/** Load it behind what was attached; without data there was nothing. */
void vpmu_pv_branch_load(struct vpmu_pv *v, struct vpmu_state_cursor *c);

/* pv_v1.c, pv_v2.c: results. */
int64_t vpmu_pv1_call(struct vpmu_pv *v, const struct vpmu_hypercall *call);
int64_t vpmu_pv2_call(struct vpmu_pv *v, const struct vpmu_hypercall *call);

/* pv_memory.c */

/** Is [@gpa, @gpa + @size) a range, aligned to @align, a power of two? */
bool vpmu_pv_range(uint64_t gpa, uint32_t size, uint32_t align);

/** Is it in one page? */
bool vpmu_pv_in_page(uint64_t gpa, uint32_t size);

#endif /* VPMU_PV_INTERNAL_H */
