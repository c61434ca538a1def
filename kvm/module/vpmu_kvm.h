/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host side of the paravirtual PMU on a stock kernel's KVM.
 *
 *	main.c      load and unload, limits
 *	hook.c      where KVM is left and entered: ftrace
 *	vm.c        VMs and vCPUs: they come with their first hypercall and go with KVM's
 *	memory.c    guest memory
 *	perf.c      the provider: the kernel's perf
 *	state.c     /dev/vpmu_kvm: saving and loading
 *	stats.c     debugfs
 *	trace.h     tracepoints
 *	selftest.c  counts a few instructions at load
 *	core.c      lib/, in one unit
 *	faults.c    of a build for tests: calls that fail
 *	compat.h    what differs between kernels
 *
 * A VM's and a vCPU's state is touched by its vCPUs' threads in a hypercall or in a
 * service, both of which vk_enter() counts; by whoever ends it, when there are
 * none any more; and by whoever saves or loads it, who has its vCPUs' mutexes. What else
 * comes (perf's NMI, the slice timer, a kick from another vCPU) sets bits and asks the
 * vCPU for a service.
 */
#ifndef VPMU_KVM_H
#define VPMU_KVM_H

#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kvm_host.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/workqueue.h>

#include <vpmu/pv.h>

struct perf_event;
struct vk_vm;

#define VK_SLICE_NS	(10 * NSEC_PER_MSEC)

/* perf.c: the provider of a vCPU. */
struct vk_perf {
	struct vpmu_provider provider;
	struct task_struct *task;    /* the vCPU's thread: whose events they are. NULL: it
					is not known yet */
	bool here;                   /* it is the thread that calls, not one that loads */
	struct perf_event *clock;    /* counts nothing; its time enabled is the clock */
	bool held;                   /* the clock goes */
	u64 now;                     /* the clock, as of begin: it stands in a batch */
	unsigned int depth;          /* of batches */
	unsigned int n_enabled;
	struct list_head events;     /* struct vk_event */
};

#define VK_SERVE	1 /* of vk_vcpu.pending: a first half has run */
#define VK_SLICE	2 /* a slice of time has passed */

struct vk_vcpu {
	struct vk_vm *vm;
	raw_spinlock_t lock;         /* of the next */
	struct kvm_vcpu *vcpu;       /* NULL: it is going */
	unsigned int number;
	atomic_t pending;            /* VK_... */
	struct irq_work kick;
	struct hrtimer slice;
	bool paging;                 /* was on at the last hypercall */
	struct vk_perf perf;
	struct vpmu_pv *pv;
	/* For people; each is written by one thread. */
	u64 n_calls, n_services, n_nmis;
	atomic64_t n_overflows;
};

struct vk_vm {
	struct hlist_node node;      /* of vk_vms; RCU */
	struct list_head list;       /* of all, for people; under vk_mutex */
	struct kvm *kvm;             /* the key; nothing is taken from there */
	pid_t pid;
	struct rw_semaphore sem;     /* read: its vCPUs' calls; write: another vCPU */
	struct mutex lock;           /* vpmu_ops.lock, and of maps */
	DECLARE_HASHTABLE(maps, 6);
	struct work_struct end;
	struct vpmu_pv_vm *pv;
	unsigned int n_vcpus;
	struct vk_vcpu *vcpu[];      /* by vcpu_idx */
};

/* main.c: limits, read when something is made */
extern unsigned int vk_max_vms, vk_max_events, vk_max_slots, vk_max_counters;
extern unsigned int vk_max_rate, vk_min_period;
extern const struct vpmu_model *vk_model;

/* Of all VMs; for people. */
extern atomic_t vk_n_counters;
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
 * be. May sleep. Or an error pointer, with @why if it was a limit: ENOENT, ENOSPC, ENOMEM.
 */
struct vk_vm *vk_attach_all(struct kvm *kvm, bool make, struct vpmu_error *why);

/** Around the load of a state: its vCPUs are served before they enter their guest. */
void vk_loading(struct vk_vm *vm);
void vk_loaded(struct vk_vm *vm);

/** A hypercall of ours. On the vCPU's thread, where KVM emulates it; may sleep. */
void vk_call(struct kvm_vcpu *vcpu, struct vpmu_hypercall *call);

/** Whether a service is due. From anywhere that cannot sleep. */
bool vk_due(struct kvm_vcpu *vcpu);

/** Second halves. On the vCPU's thread, where KVM handles requests; may sleep. */
void vk_serve(struct kvm_vcpu *vcpu);

/** KVM is about to free @kvm, none of whose vCPUs runs any more. Does not sleep. */
void vk_vm_gone(struct kvm *kvm);

/* memory.c: hooks of struct vpmu_ops; ctx is a struct vk_vcpu. */
int vk_gpa_read(void *ctx, uint64_t gpa, void *buf, uint32_t size);
int vk_gpa_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size);
void *vk_gpa_map(void *ctx, uint64_t gpa, uint32_t size);
void vk_gpa_unmap(void *ctx, void *at, uint32_t size);
void vk_gpa_dirty(void *ctx, void *at, uint32_t size);

/* perf.c */
extern const struct vpmu_provider_ops vk_perf_ops;

void vk_perf_init(struct vk_perf *p);
void vk_perf_fini(struct vk_perf *p);

/**
 * On the vCPU's thread: its clock, and what was made before is made of perf. Nothing where
 * that is done. Returns 0; or perf's error, and then what is on is in error until the next
 * try.
 */
int vk_perf_bind(struct vk_perf *p);

/** What is made from now on waits to be bound; what there is stays. */
void vk_perf_unbind(struct vk_perf *p);

/** Tell the owners of events that have won or lost their counter. On the thread. */
void vk_perf_poll(struct vk_perf *p);

/** Can this host count instructions of guests at all? Returns 0, or perf's error. */
int vk_perf_probe(void);

/* state.c */

/** The node in /dev. Returns 0, or a negative errno after a pr_err. */
int vk_state_init(void);

void vk_state_exit(void);

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

#endif /* VPMU_KVM_H */
