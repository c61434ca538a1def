/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest driver of the paravirtual PMU.
 *
 *	main.c      load and unload, CPU hotplug, suspend, reboot
 *	detect.c    detection of the host
 *	call.c      the hypercall and the doorbell
 *	pmu.c       the interface to perf: struct pmu
 *	overflow.c  the NMI
 *	branch.c    branch records
 *	times.c     perf's time running, corrected by the host's times
 *	loss.c      the same for the kernel's own PMU, if it is an architectural one of vpmu
 *	host_v2.c   the host's interface, version 2: batches and the shared page
 *	host_v1.c   version 1, of 2010
 *	sysfs.c     format and events
 *	selftest.c  counts a known loop at load
 *	compat.c    differences between kernels
 *
 * Perf asks for changes between pmu_disable and pmu_enable. They are noted in the slots
 * of the CPU (the wanted state beside the host's) and the difference goes to the host as
 * one batch at pmu_enable. A CPU's slots are accessed on that CPU with interrupts off,
 * and from its NMI handler.
 */
#ifndef VPMU_GUEST_H
#define VPMU_GUEST_H

#include <linux/perf_event.h>
#include <linux/types.h>

#include <vpmu/pv_abi.h>

/*
 * The NMI handler has a batch page and dirty marks of its own, as it may interrupt a
 * flush.
 */
enum vg_context {
	VG_TASK, /* all code that runs with interrupts off */
	VG_NMI,
	VG_CONTEXTS
};

/* How long an event really counted. */
struct vg_times {
	u64 enabled, running; /* the host's times as of the last update */
	u64 more_enabled;     /* part of them that is not in perf's time running yet */
	u64 more_running;
	u64 seen;             /* perf's time running, as last corrected */
};

/* An event of perf on this PMU; perf_event.pmu_private points to it. */
struct vg_event {
	struct perf_event *event;
	u32 id;          /* id at the host */
	u32 leader;      /* id that it was opened under; 0: none */
	bool opened;
	bool stale;      /* the numbers in the slot are older than the event's last opening */
	bool far;        /* enabled with no overflow in reach: perf has stopped it */
	s8 slot;         /* slot on the event's CPU; -1: none */
	s8 last;         /* slot that it had last */
	u32 overflows;   /* overflows that were seen, modulo 2^32 */
	u64 period;      /* period that the host has; 0: one overflow, or none */
	u64 stretch;     /* distance by which the next overflow was put off beyond a period */
	struct vg_times times;
	unsigned long retry; /* jiffies at which to try to open it again */
	/* The host writes here, in version 1. */
	struct vpmu_pv1_event shared __aligned(sizeof(struct vpmu_pv1_event));
};

struct vg_slot {
	struct vg_event *ev;
	bool want;       /* perf has added the event */
	bool host;       /* the host has it enabled */
	bool reload;     /* the host needs another period */
	bool read;       /* its numbers are to be read */
	bool reopen;     /* the host no longer knows the event */
};

struct vg_cpu {
	struct vpmu_pv_page *page;            /* the host writes here, in version 2 */
	struct vpmu_pv_branches *branches;    /* likewise */
	struct perf_branch_stack *brstack;    /* branches in perf's form; the NMI handler's */
	u32 branch_seq;                       /* branches->seq as of the last look */
	bool frozen;                          /* the host records no branches until a RESUME */
	struct vpmu_pv_batch *batch[VG_CONTEXTS];
	struct vpmu_pv_call *call;            /* [VG_CONTEXTS], for the doorbell */
	u8 batch_slot[VG_CONTEXTS][VPMU_PV_BATCH_MAX]; /* slot of each operation */
	u32 batch_n[VG_CONTEXTS];
	u64 dirty[VG_CONTEXTS];               /* slots that differ from what the host has */
	u64 used;                             /* slots that have an event */
	u8 next;                              /* next slot for an event that has had none here */
	u64 added;                            /* slots added in the transaction */
	unsigned int txn;                     /* flags of the transaction */
	unsigned int n_want;
	/* Largest number of events that all counted at once. */
	unsigned int n_fit;
	unsigned int generation;              /* vg_generation at which n_fit was seen */
	unsigned long careful;                /* jiffies until which no group is assumed to fit */
	bool up;                              /* the CPU may have events */
	bool disabled;                        /* between pmu_disable and pmu_enable */
	bool fresh;                           /* all samplers were read in this bracket */
	bool nmi_busy;                        /* perf takes samples in the NMI handler */
	u64 nmi_read;                         /* slots that were read for the sample */
	bool lost;                            /* an enabled event found no counter */
	/* An NMI may arrive whose overflows are handled already. */
	bool late;
	/* Likewise, if it interrupts this instruction: the last NMI's. */
	unsigned long late_ip;
	u64 late_until;                       /* local clock, ns: end of both */
	u64 nmi_end, nmi_took;                /* end and duration of the last handler, ns */
	bool crowded;                         /* handlers follow each other too closely */
	struct vg_slot slot[VPMU_PV_SLOTS];
};

/* The host's numbers of an event. */
struct vg_numbers {
	u64 count;
	u64 enabled, running; /* 0 in version 1 */
	u32 flags;            /* VPMU_PV_SLOT_... */
};

/*
 * The operations of one version of the host's interface. All are called on the CPU @c
 * with interrupts off, or in its NMI handler.
 */
struct vg_abi {
	unsigned int version;
	int (*up)(struct vg_cpu *c);     /* the CPU may have events from now on */
	void (*down)(struct vg_cpu *c);  /* the host disables all of the CPU's events */
	void (*reset)(void);             /* the host closes everything */
	int (*open)(struct vg_cpu *c, struct vg_event *ev);
	int (*close)(struct vg_cpu *c, struct vg_event *ev);
	/* Make the host match the dirty slots. */
	void (*flush)(struct vg_cpu *c, enum vg_context x);
	/* Read those of @slots that the host has enabled. It is called in the NMI handler. */
	void (*read)(struct vg_cpu *c, u64 slots);
	/*
	 * Returns the slots that the host reports as overflowed; each overflow is
	 * reported once.
	 */
	u64 (*overflowed)(struct vg_cpu *c);
	/* Returns the number of overflows of @ev since the last call. */
	u32 (*take)(struct vg_cpu *c, struct vg_event *ev);
	/*
	 * Read the shared numbers, without a hypercall. Returns false if they are not
	 * known.
	 */
	bool (*look)(struct vg_cpu *c, struct vg_event *ev, struct vg_numbers *n);
};

/* The host's properties, found at load and constant from then on; only dead changes. */
struct vg {
	bool found;        /* there is a paravirtual PMU */
	const struct vg_abi *abi;
	struct pmu *pmu;
	u32 hypercall;     /* number of the hypercall; 0: use the doorbell */
	bool vmmcall;      /* the hypercall is AMD's instruction */
	u32 features;      /* VPMU_PV_HAS_... */
	u32 n_ids;
	u32 n_slots;
	u32 n_counters;    /* events that perf may have enabled at once on a CPU */
	u64 hz;            /* unit of the host's times; 0: unknown */
	bool raw;          /* there is no other PMU: generic events are ours too */
	bool dead;         /* the host has been told that this kernel is ending */
};

extern struct vg vg;
extern const struct vg_abi vg_abi_1, vg_abi_2;
extern struct vg_cpu __percpu *vg_cpus;

static inline enum vg_context vg_context(void)
{
	return in_nmi() ? VG_NMI : VG_TASK;
}

static inline struct vg_event *vg_event(struct perf_event *event)
{
	return event->pmu_private;
}

/* detect.c */
/* The first leaf of the hypervisors' block with this signature, or 0; *@last: its last. */
u32 vg_find(u32 ebx, u32 ecx, u32 edx, u32 *last);
/* Find the paravirtual PMU. Returns 0, or -ENODEV. */
int vg_detect(unsigned int counters);

/* call.c */
long vg_hypercall(u32 nr, unsigned long a0, unsigned long a1, unsigned long a2);
/* A hypercall with an address, in two halves as both versions expect it. */
long vg_hypercall_at(u32 nr, unsigned long op, const void *at);

/* An operation of version 2, by hypercall or doorbell. With interrupts off. */
long vg_call(u32 op, u64 address);

/* pmu.c */
int vg_pmu_register(void);
void vg_pmu_unregister(void);
void vg_mark(struct vg_cpu *c, enum vg_context x, unsigned int slot);
void vg_free_slot(struct vg_cpu *c, unsigned int slot);
/* Bring perf's count up to the host's. */
void vg_update(struct vg_cpu *c, struct vg_event *ev);
/* The host has opened the event again: its numbers begin at 0. */
void vg_begin(struct vg_event *ev);
/* The distance to the next overflow and the period, for the host; both 0: no sampling. */
void vg_distance(struct vg_event *ev, u64 *left, u64 *period);
/* Does the host need another period? */
bool vg_other_period(const struct vg_event *ev);
/* Mark the slot if the host needs another period. */
void vg_repeat(struct vg_cpu *c, struct vg_event *ev);
void vg_read(struct perf_event *event);
void vg_stop(struct perf_event *event, int flags);
/* The event's type and flags in the host's interface. */
u32 vg_type(const struct perf_event *event);
u32 vg_flags(const struct perf_event *event);

/* overflow.c */
int vg_overflow_init(void);
void vg_overflow_exit(void);

/* branch.c */
int vg_branch_init(const struct perf_event *event);
/* The VPMU_PV_SUPPRESS_... bits for records that the event does not need. */
u32 vg_branch_suppress(const struct perf_event *event);
/* The records of an event that overflowed just now, in its NMI handler. */
struct perf_branch_stack *vg_branch_read(struct vg_cpu *c, const struct perf_event *event);
/* Note whether the host has stopped recording and waits for a RESUME. */
void vg_branch_thaw(struct vg_cpu *c);

/* times.c */
/*
 * The host has @event enabled and running for so long by now. @lost: it does not count,
 * even if no time has passed. On the event's CPU with interrupts off, and not in an NMI.
 */
void vg_times_update(struct vg_times *t, struct perf_event *event, u64 enabled, u64 running,
		     bool lost);

/* loss.c */
/* Show losses of the architectural PMU. Returns -ENODEV if there is none that has any. */
int vg_loss_init(void);
void vg_loss_exit(void);

/* sysfs.c */
const struct attribute_group **vg_attr_groups(void);

/* selftest.c */
int vg_selftest(void);

#endif /* VPMU_GUEST_H */
