/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host side of the paravirtual PMU on a stock kernel's KVM.
 *
 *	main.c      load and unload, limits
 *	hook.c      where KVM is left and entered: ftrace
 *	vm.c        VMs and vCPUs: they come with their first hypercall and go with KVM's
 *	thread.c    threads: whose vCPU's events each one has
 *	filter.c    what the VMM allows its guest
 *	memory.c    guest memory
 *	perf.c      the provider: the kernel's perf
 *	device.c    /dev/vpmu_kvm: which VMs have a PMU
 *	state.c     ... and their state: saving and loading
 *	stats.c     debugfs
 *	trace.h     tracepoints
 *	selftest.c  counts a few instructions at load
 *	core.c      lib/, in one unit
 *	faults.c    of a build for tests: calls that fail
 *	compat.h    what differs between kernels
 *
 * A VM's and a vCPU's state is touched by its vCPUs' threads in a hypercall or in a
 * service, both of which vk_enter() counts; by the end of the VM, when there are no such
 * threads any more; and by saving and loading, under its vCPUs' mutexes. Everything else
 * (perf's NMI, the slice timer, a kick from another vCPU) sets bits and requests a service
 * of the vCPU.
 *
 * Locks, from the outside to the inside. A guest's memory may make its vCPU wait as long
 * as its VMM likes (userfaultfd), so no lock that another VM can want is held meanwhile:
 *
 *	kvm->lock, vcpu->mutex  KVM's; a vCPU's calls and services are under its mutex
 *	vk_perf.lock            the vCPU's events of perf; released while guest memory is
 *	                        read, written or mapped
 *	vk_vm.lock              vpmu_ops.lock
 *	vk_mutex                the list of VMs, for as long as it takes to look at it; and
 *	                        vk_vm.lock inside of it, for debugfs
 *	vk_vms_lock, vk_threads_lock, vk_vcpu.lock
 */
#ifndef VPMU_KVM_INTERNAL_H
#define VPMU_KVM_INTERNAL_H

#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kvm_host.h>
#include <linux/list_nulls.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include <vpmu/pv.h>

struct perf_event;
struct vk_vm;
struct vpmu_kvm_state;

#define VK_SLICE_NS	(10 * NSEC_PER_MSEC)

/* perf.c: the provider of a vCPU. */
struct vk_perf {
	struct vpmu_provider provider;
	struct mutex lock;           /* of all that follows, while the VM's vCPUs can run */
	struct hlist_nulls_node node; /* of vk_threads, while there is a task */
	struct task_struct *task;    /* the vCPU's thread, to which events of perf are bound;
					NULL: to none */
	struct perf_event *clock;    /* counts nothing; its time enabled is the clock */
	bool held;                   /* the clock goes */
	u64 before;                  /* time of the clocks before this one */
	u64 now;                     /* the clock, as of begin: it stands in a batch */
	unsigned int depth;          /* of batches */
	unsigned int n_enabled;
	struct list_head events;     /* struct vk_event */
};

/* A call writes its own page and the vCPU's page of slots; SETUP changes the latter. */
#define VK_DIRTY	4

#define VK_SERVE	1 /* of vk_vcpu.pending: a first half has run */
#define VK_SLICE	2 /* a slice of time has passed */

struct vk_vcpu {
	struct vk_vm *vm;
	raw_spinlock_t lock;         /* of the next */
	struct kvm_vcpu *vcpu;       /* NULL: it is going */
	unsigned int number;
	atomic_t pending;            /* VK_... */
	bool wake;                   /* an overflow is to end a HLT */
	struct irq_work kick;
	struct hrtimer slice;
	bool paging;                 /* was on at the last hypercall */
	unsigned int filter_changes; /* the VM's that the vCPU heeds */
	gfn_t dirty[VK_DIRTY];       /* pages to be logged at the end of a call or service */
	unsigned int n_dirty;
	struct vk_perf perf;
	struct vpmu_pv *pv;
	struct rcu_head rcu;
	/* Statistics for debugfs; each has a single writer. */
	u64 n_calls, n_services, n_nmis;
	atomic64_t n_overflows;
};

struct vk_vm {
	struct hlist_node node;      /* of vk_vms; RCU */
	struct list_head list;       /* of vk_all, under vk_mutex; empty if it is refused */
	struct kvm *kvm;             /* the key */
	pid_t pid;
	struct mutex lock;           /* vpmu_ops.lock, and of maps and the filter */
	DECLARE_HASHTABLE(maps, 6);
	struct work_struct end;
	struct vpmu_pv_vm *pv;       /* NULL: the VM is refused a PMU, and has no vCPUs */
	atomic_t n_own;              /* counters of its share that are in use */
	struct vpmu_filter filter;   /* KVM's, as it was last seen, under lock */
	u64 filter_events[VPMU_FILTER_EVENTS_MAX];
	const void *filter_seen;     /* where KVM had it then */
	unsigned int filter_changes;
	unsigned int n_vcpus;
	struct vk_vcpu *vcpu[];      /* by vcpu_idx */
};

/* main.c: limits, read when something is made */
extern unsigned int vk_max_vms, vk_max_events, vk_max_slots, vk_max_counters;
extern unsigned int vk_max_rate, vk_min_period, vk_share;
extern bool vk_opt_in;
extern const struct vpmu_model *vk_model;

/* Statistics of all VMs. */
extern atomic_t vk_n_counters;
extern atomic_t vk_n_common; /* of these, those beyond the shares of their VMs */
extern atomic64_t vk_n_refused;

/* hook.c */

/** Begin to take hypercalls. Returns 0, or a negative errno after a pr_err. */
int vk_hook(void);

/** No call or service is begun after it returns, and none is in progress. May sleep. */
void vk_unhook(void);

/** End to look at VMs that go; after all are gone. May sleep. */
void vk_unwatch(void);

/* vm.c */
extern struct mutex vk_mutex;           /* of vk_all */
extern struct list_head vk_all;
extern unsigned int vk_n_vms;

int vk_vms_init(void);

/** Ends all VMs: their guests are told. Nothing is hooked but VMs that go. May sleep. */
void vk_vms_exit(void);
void vk_vms_free(void);

/**
 * @kvm's, with all of its vCPUs, none of which runs or can be made meanwhile. @make: if need
 * be. May sleep. Or an error pointer, with @why if it was a limit: ENOENT, ENOSPC, ENOMEM;
 * EACCES: the VM is refused a PMU.
 */
struct vk_vm *vk_attach_all(struct kvm *kvm, bool make, struct vpmu_error *why);

/**
 * Decide whether @kvm's guest has a PMU, whatever the VMM's other settings say. May sleep.
 * Returns 0; -EBUSY for what has been decided otherwise, or is in use; -ENOSPC or -ENOMEM,
 * with @why if it was a limit.
 */
int vk_decide(struct kvm *kvm, bool allow, struct vpmu_error *why);

/** All vCPUs, none of which can run, are unbound from their threads. May sleep. */
void vk_unbind_all(struct vk_vm *vm);

/** A state has been loaded: vCPUs are served before they enter their guest. */
void vk_loaded(struct vk_vm *vm);

/** A hypercall of ours. On the vCPU's thread, where KVM emulates it; may sleep. */
void vk_call(struct kvm_vcpu *vcpu, struct vpmu_hypercall *call);

/** KVM_RUN begins, on this thread. Without preemption. */
void vk_run(struct kvm_vcpu *vcpu);

/** Is a service due? On the vCPU's thread, without preemption. */
bool vk_due(struct kvm_vcpu *vcpu);

/** Second halves. On the vCPU's thread, where KVM handles requests; may sleep. */
void vk_serve(struct kvm_vcpu *vcpu);

/** KVM is about to free @kvm, none of whose vCPUs runs any more. Does not sleep. */
void vk_vm_gone(struct kvm *kvm);

/* thread.c */
void vk_threads_init(void);

/** @p, which has a task, is found by it until it leaves. Do not sleep. */
void vk_thread_join(struct vk_perf *p);
void vk_thread_leave(struct vk_perf *p);

/** The thread has the events of no vCPU, of @vcpu, or of another one. Without preemption. */
enum vk_thread { VK_THREAD_FREE, VK_THREAD_OWN, VK_THREAD_TAKEN };
enum vk_thread vk_thread_has(const struct kvm_vcpu *vcpu);

/** The other vCPU, whose VM stays until kvm_put_kvm(); or NULL. */
struct vk_vcpu *vk_thread_get(const struct kvm_vcpu *vcpu);

/* filter.c */

/** Has @kvm's VMM taken its guest's PMU away? */
bool vk_vmm_declines(const struct kvm *kvm);

void vk_filter_init(struct vk_vm *vm);

/** Has KVM been given another filter? Does not sleep. */
bool vk_filter_due(const struct vk_vm *vm);

/**
 * Take over KVM's filter. Under kvm->srcu; may sleep. Returns a number that is another one
 * when the filter has changed.
 */
unsigned int vk_filter_sync(struct vk_vm *vm);

/* memory.c: hooks of struct vpmu_ops; ctx is a struct vk_vcpu. */
int vk_gpa_read(void *ctx, uint64_t gpa, void *buf, uint32_t size);
int vk_gpa_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size);
void *vk_gpa_map(void *ctx, uint64_t gpa, uint32_t size);
void vk_gpa_unmap(void *ctx, void *at, uint32_t size);
void vk_gpa_dirty(void *ctx, void *at, uint32_t size);

/** Tell KVM's dirty log of the pages that were written, once each. On the thread. */
void vk_flush_dirty(struct vk_vcpu *c);

/* perf.c */
extern const struct vpmu_provider_ops vk_perf_ops;

void vk_perf_init(struct vk_perf *p);
void vk_perf_fini(struct vk_perf *p);

/**
 * Bind events to this thread, which is the vCPU's: it gets a clock, and events of perf are
 * made. Returns 0; or perf's error, and then events that are enabled are in error until the
 * next try. Under vk_perf.lock, or before others can find @p; so are the others.
 */
int vk_perf_bind(struct vk_perf *p);

/** End the events of perf; counts, times and periods stay as they are until the next bind. */
void vk_perf_unbind(struct vk_perf *p);

/**
 * Unbind the events that this thread has of another vCPU than @vcpu. Without vk_perf.lock;
 * may sleep, not for what a guest or a VMM does.
 */
void vk_perf_evict(const struct kvm_vcpu *vcpu);

/** Tell the owners of events that have won or lost their counter. On the thread. */
void vk_perf_poll(struct vk_perf *p);

/** Can this host count instructions of guests at all? Returns 0, or perf's error. */
int vk_perf_probe(void);

/* device.c */

/** The node in /dev. Returns 0, or a negative errno after a pr_err. */
int vk_device_init(void);

void vk_device_exit(void);

/* state.c: the ioctls of these names. May sleep. A negative errno, and then perhaps @why. */
int vk_save(struct kvm *kvm, struct vpmu_kvm_state *io, struct vpmu_error *why);
int vk_load(struct kvm *kvm, const struct vpmu_kvm_state *io, struct vpmu_error *why);

/* faults.c */
#ifdef VPMU_KVM_FAULTS
/** Whether this call is to fail in place of what it asks for. From anywhere that can sleep. */
bool vk_fails(void);
#else
static inline bool vk_fails(void)
{
	return false;
}
#endif

/* stats.c */
void vk_stats_init(void);
void vk_stats_exit(void);

#endif /* VPMU_KVM_INTERNAL_H */
