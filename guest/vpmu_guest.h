/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest driver of the paravirtual PMU.
 *
 *	main.c      load and unload, CPUs that come and go, suspend, reboot
 *	detect.c    which host this is
 *	call.c      the hypercall, and the doorbell
 *	pmu.c       perf's side: struct pmu
 *	overflow.c  the NMI
 *	branch.c    branch records
 *	host_v2.c   the host's side, version 2: batches and the shared page
 *	host_v1.c   the same for version 1, of 2010
 *	sysfs.c     format and events
 *	selftest.c  counts a known loop at load
 *	compat.c    what differs between kernels
 *
 * Perf asks for changes between pmu_disable and pmu_enable. They are noted in the
 * slots of the CPU (what is wanted, beside what the host does) and the difference
 * goes to the host as one batch at pmu_enable. A CPU's slots are touched on that CPU
 * with interrupts off, and from its NMI handler.
 */
#ifndef VPMU_GUEST_H
#define VPMU_GUEST_H

#include <linux/perf_event.h>
#include <linux/types.h>

#include <vpmu/pv_abi.h>

/* Whose batch page and marks: those of the NMI handler are its own. */
enum vg_context {
	VG_TASK, /* anything with interrupts off */
	VG_NMI,
	VG_CONTEXTS
};

/* An event of perf that is ours; its pmu_private. */
struct vg_event {
	struct perf_event *event;
	u32 id;          /* at the host */
	u32 leader;      /* id that it was opened under; 0: none */
	bool opened;
	bool stale;      /* what the host says of it is of before it was opened again */
	bool far;        /* enabled with no overflow in reach: perf has stopped it */
	s8 slot;         /* of the CPU where it is; -1: none */
	s8 last;         /* slot that it had last */
	u32 overflows;   /* that were seen, modulo 2^32 */
	u64 period;      /* between overflows, as the host has it; 0: once, or never */
	u64 stretch;     /* so much farther than a period the next overflow was put */
	u64 enabled;     /* the host's times that were seen */
	u64 running;
	u64 more_enabled; /* of them, what is not in perf's time running yet */
	u64 more_running;
	u64 seen;        /* perf's time running, as it was corrected last */
	unsigned long retry; /* jiffies: when to try to open it again */
	/* The host writes here, in version 1. */
	struct vpmu_pv1_event shared __aligned(sizeof(struct vpmu_pv1_event));
};

struct vg_slot {
	struct vg_event *ev;
	bool want;       /* perf has added it */
	bool host;       /* the host has it enabled */
	bool reload;     /* the host has to be told another period */
	bool read;       /* its numbers are wanted */
	bool reopen;     /* the host does not know it any more */
};

struct vg_cpu {
	struct vpmu_pv_page *page;            /* the host writes here, in version 2 */
	struct vpmu_pv_branches *branches;    /* likewise */
	struct perf_branch_stack *brstack;    /* the same for perf; the NMI handler's */
	u32 branch_seq;                       /* of branches, as it was last */
	bool frozen;                          /* the host waits with recording for a RESUME */
	struct vpmu_pv_batch *batch[VG_CONTEXTS];
	struct vpmu_pv_call *call;            /* [VG_CONTEXTS], for the doorbell */
	u8 batch_slot[VG_CONTEXTS][VPMU_PV_BATCH_MAX]; /* whose operation it is */
	u32 batch_n[VG_CONTEXTS];
	u64 dirty[VG_CONTEXTS];               /* slots to be brought in line */
	u64 used;                             /* slots that have an event */
	u8 next;                              /* slot for the next that never had one here */
	u64 added;                            /* slots of the transaction */
	unsigned int txn;                     /* its flags */
	unsigned int n_want;
	unsigned int n_fit;                   /* so many have all counted at once */
	unsigned int generation;              /* of n_fit */
	unsigned long careful;                /* jiffies until which nothing is believed to fit */
	bool up;                              /* may have events */
	bool disabled;                        /* between pmu_disable and pmu_enable */
	bool fresh;                           /* all samplers were read in this bracket */
	bool nmi_busy;
	bool lost;                            /* what was enabled found no counter */
	bool late;                            /* an NMI may come whose reason is done with */
	unsigned long late_ip;                /* ... at once: what the last one interrupted */
	u64 late_until;                       /* local clock, ns */
	u64 nmi_end, nmi_took;                /* of the last handler; ns */
	bool crowded;                         /* handlers leave too little time between them */
	struct vg_slot slot[VPMU_PV_SLOTS];
};

/* What the host says of an event. */
struct vg_numbers {
	u64 count;
	u64 enabled, running; /* 0 in version 1 */
	u32 flags;            /* VPMU_PV_SLOT_... */
};

/*
 * A version of the host's interface. All on the CPU @c with interrupts off, or in
 * its NMI handler.
 */
struct vg_abi {
	unsigned int version;
	int (*up)(struct vg_cpu *c);     /* the CPU may have events from now on */
	void (*down)(struct vg_cpu *c);  /* the host disables them all */
	void (*reset)(void);             /* the host closes everything */
	int (*open)(struct vg_cpu *c, struct vg_event *ev);
	int (*close)(struct vg_cpu *c, struct vg_event *ev);
	/* Bring the dirty slots in line. */
	void (*flush)(struct vg_cpu *c, enum vg_context x);
	/* Slots of which the host says that they overflowed; each is said once. */
	u64 (*overflowed)(struct vg_cpu *c);
	/* How often @ev has overflowed since the last call. */
	u32 (*take)(struct vg_cpu *c, struct vg_event *ev);
	/* False: nothing is known. Does not ask the host. */
	bool (*look)(struct vg_cpu *c, struct vg_event *ev, struct vg_numbers *n);
};

/* What was found at load; constant from then on, but for dead. */
struct vg {
	const struct vg_abi *abi;
	struct pmu *pmu;
	u32 hypercall;     /* 0: there is none, the doorbell is rung */
	bool vmmcall;      /* a hypercall is AMD's instruction */
	u32 features;      /* VPMU_PV_HAS_... */
	u32 n_ids;
	u32 n_slots;
	u32 n_counters;    /* events that perf may have enabled at once on a CPU */
	u64 hz;            /* unit of the host's times; 0: unknown */
	bool raw;          /* there is no other PMU: generic events are ours too */
	bool dead;         /* the host has been told that all is over */
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
int vg_detect(unsigned int counters);

/* call.c */
long vg_hypercall(u32 nr, unsigned long a0, unsigned long a1, unsigned long a2);
/* With an address in two halves, as both versions want it. */
long vg_hypercall_at(u32 nr, unsigned long op, const void *at);

/* An operation of version 2, by whichever way there is. With interrupts off. */
long vg_call(u32 op, u64 address);

/* pmu.c */
int vg_pmu_register(void);
void vg_pmu_unregister(void);
void vg_mark(struct vg_cpu *c, enum vg_context x, unsigned int slot);
void vg_free_slot(struct vg_cpu *c, unsigned int slot);
/* Bring perf's count up to what the host has said. */
void vg_update(struct vg_cpu *c, struct vg_event *ev);
/* The host has opened it anew: it begins at 0. */
void vg_begin(struct vg_event *ev);
/* Left and period for the host; both 0: it does not sample. */
void vg_distance(struct vg_event *ev, u64 *left, u64 *period);
/* Does the host need another period? */
bool vg_other_period(const struct vg_event *ev);
/* If so, mark it. */
void vg_repeat(struct vg_cpu *c, struct vg_event *ev);
void vg_read(struct perf_event *event);
void vg_stop(struct perf_event *event, int flags);
/* Of an event's attributes, for the host. */
u32 vg_type(const struct perf_event *event);
u32 vg_flags(const struct perf_event *event);

/* overflow.c */
int vg_overflow_init(void);
void vg_overflow_exit(void);

/* branch.c */
int vg_branch_init(const struct perf_event *event);
/* What the host need not record for it. */
u32 vg_branch_suppress(const struct perf_event *event);
/* Of an event that overflowed just now, in its NMI handler. */
struct perf_branch_stack *vg_branch_read(struct vg_cpu *c, const struct perf_event *event);
/* Find out whether the host waits. */
void vg_branch_thaw(struct vg_cpu *c);

/* sysfs.c */
const struct attribute_group **vg_attr_groups(void);

/* selftest.c */
int vg_selftest(void);

#endif /* VPMU_GUEST_H */
