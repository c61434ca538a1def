/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host side of the paravirtual PMU on a stock kernel's KVM.
 *
 *	main.c      load and unload, limits
 *	hook.c      the entry points from KVM, by ftrace
 *	redirect.c  tables of such hooks
 *	serve.c     calls and services
 *	vm.c        VMs and vCPUs: created by their first hypercall, freed with KVM's
 *	table.c     where they are found
 *	request.c   requests of services
 *	lock.c      a VM stands still
 *	arch.c      the architectural PMU of a vCPU
 *	arch_amd.c, arch_intel.c  what differs between vendors
 *	arch_vm.c   VMs that have it
 *	arch_hook.c where it takes the place of KVM's own
 *	thread.c    threads: which vCPU's events each thread has
 *	filter.c    the limits that a VMM sets its guest
 *	memory.c    guest memory
 *	perf.c      the provider: the kernel's perf
 *	device.c    /dev/vpmu_kvm: which VMs have a PMU
 *	state.c     saving and loading of a VM's state, for /dev/vpmu_kvm
 *	stats.c     debugfs
 *	trace.h     tracepoints
 *	selftest.c  counts a few instructions at load
 *	core.c      lib/, in one unit
 *	faults.c    fault injection, in builds for tests
 *	compat.h    differences between kernels
 *
 * The state of a VM and its vCPUs is accessed by its vCPUs' threads in a hypercall or in
 * a service, both of which vk_enter() counts; by the end of the VM, when those threads
 * are gone; and by saving and loading, under the vCPUs' mutexes. Everything else (perf's
 * NMI, the slice timer, a kick from another vCPU) sets bits and requests a service of the
 * vCPU.
 *
 * Locks, outermost first. An access to guest memory may block a vCPU as long as its VMM
 * likes (userfaultfd), so no lock that another VM may want is held during one:
 *
 *	kvm->lock, vcpu->mutex  KVM's; a vCPU's calls and services are under its mutex
 *	vk_perf.lock            the vCPU's perf events; released while guest memory is
 *	                        read, written or mapped
 *	vk_vm.lock              vpmu_ops.lock
 *	vk_mutex                the list of VMs, held only for a look at it; and
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
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include <vpmu/arch.h>
#include <vpmu/pv.h>

struct perf_event;
struct vk_arch_filter;
struct vk_hook;
struct vk_vcpu;
struct vk_vendor;
struct vpmu_kvm_arch;
struct x86_pmu_capability;
struct vk_vm;
struct vpmu_kvm_state;

#define VK_SLICE_NS	(10 * NSEC_PER_MSEC)

/* perf.c: the provider of a vCPU. */
struct vk_perf {
	struct vpmu_provider provider;
	struct mutex lock;           /* protects all that follows, while the VM's vCPUs can run */
	struct hlist_nulls_node node; /* entry of vk_threads, while there is a task */
	/* Thread of the vCPU, to which its perf events are bound; NULL: to none. */
	struct task_struct *task;
	struct perf_event *clock;    /* counts nothing; its time enabled is the clock */
	bool held;                   /* the clock runs */
	u64 before;                  /* time of the clocks before this one */
	u64 now;                     /* clock as of the last look: it stands still in a batch */
	unsigned int depth;          /* nesting depth of batches */
	bool ticked;                 /* this batch has looked at the clock */
	unsigned int n_enabled;
	struct list_head events;     /* struct vk_event */
	struct list_head loans;      /* struct vk_loan; they stay as long as the vCPU */
	bool planned;                /* no vCPU's: it will have been lent all */
	/*
	 * The instructions that KVM executes in place of the guest are counted as well, as
	 * KVM's own PMU does: by kind, and in each kind user's and kernel's.
	 */
	bool emulates;
	u8 near;                     /* those of emulated that may bring about an overflow */
	u64 emulated[4];             /* written by the vCPU's thread alone, without the lock */
};

/* Indices into vk_perf.emulated, and + 1 in the kernel. */
#define VK_EMULATED_INSTRUCTIONS	0
#define VK_EMULATED_BRANCHES		2

/* A call writes its own page and the vCPU's slot page; SETUP changes the latter. */
#define VK_DIRTY	4

#define VK_SERVE	1 /* in vk_vcpu.pending: a first half has run */
#define VK_SLICE	2 /* in vk_vcpu.pending: a slice of time has passed */

/* The architectural PMU that a VM is given. */
struct vk_arch {
	const struct vk_vendor *vendor;
	u8 version, n_gp, n_fixed;
	u8 topdown;                  /* classes that the host's CPUs count: 0, 4 or 8 */
	u64 capabilities;
};

/* @n registers from @first on; none: the end of a table. */
struct vk_msrs {
	u32 first, n;
};

/* AMD's and Intel's PMUs differ in these. */
struct vk_vendor {
	const struct vk_function *functions; /* of KVM, found once there is a VM */
	unsigned int n_functions;
	struct vk_hook *hooks;       /* registered before arch_hook.c's */
	unsigned int n_hooks;
	/* Does leaf 0's EBX belong to it? */
	bool (*is)(u32 ebx);
	/* Complete the model. Returns NULL, or why there is no PMU for guests. */
	const char *(*find_host)(const struct x86_pmu_capability *host, struct vpmu_model *m);
	/* The most that a guest can be given. */
	void (*most)(struct vk_arch *most, const struct x86_pmu_capability *host,
		     const struct vpmu_model *m);
	/* A VMM writes an MSR. Under vk_perf.lock. */
	enum vpmu_result (*host_wrmsr)(struct vk_vcpu *c, u32 index, u64 value);
	/* The registers that KVM's own PMU may have of a restored guest's, besides GLOBAL_CTRL. */
	const struct vk_msrs *msrs;
	u32 global_ctrl;
	/* Can KVM's own PMU have this guest's branch records? NULL, as the next: for none. */
	bool (*has_lbr)(struct kvm_vcpu *vcpu, u64 format);
	/* Have KVM record as vk_vcpu.lbr_told says, now or in the next service. */
	void (*settle_lbr)(struct vk_vcpu *c);
	/* The end of a service: has the guest lost its branch records? Under vk_perf.lock. */
	void (*look_lbr)(struct vk_vcpu *c);
	/* KVM is about to clean up: may it release the registers of branch records? */
	void (*release_lbr)(struct vk_vcpu *c);
	/* Registers of the library's that KVM's PMU is to have, too. NULL: none. */
	bool (*is_kvms)(const struct vk_vcpu *c, u32 index);
	/* The value that a guest's write has. */
	u64 (*guest_value)(const struct vk_vcpu *c, const struct msr_data *msr);
	/* Adds to a leaf what vpmu_arch_cpuid() leaves to its caller. */
	void (*cpuid)(const struct vk_arch *a, u32 leaf, struct vpmu_cpuid *regs);
};

struct vk_vcpu {
	struct vk_vm *vm;
	raw_spinlock_t lock;         /* protects vcpu */
	struct kvm_vcpu *vcpu;       /* NULL: it is being freed */
	unsigned int number;
	atomic_t pending;            /* VK_SERVE, VK_SLICE */
	bool wake;                   /* an overflow is to end a HLT */
	struct irq_work kick;
	struct hrtimer slice;
	bool paging;                 /* paging was on at the last hypercall */
	bool init;                   /* it has had an INIT, which arch is to be told */
	unsigned int filter_changes; /* vk_vm.filter_changes that the vCPU has applied */
	gfn_t dirty[VK_DIRTY];       /* pages to be logged at the end of a call or service */
	unsigned int n_dirty;
	struct vk_perf perf;
	struct vpmu_pv *pv;          /* one of both is NULL: a guest has one PMU */
	struct vpmu_arch *arch;
	struct vk_arch_filter *filter; /* in force for arch; NULL: none */
	bool has_lbr;                /* Intel's branch records; of these: */
	u64 lbr_told;                /* bits of DEBUGCTL: as the library has them, */
	u64 lbr_bits, lbr_set;       /* as KVM is to have them, and has them */
	unsigned int lbr_idle;       /* how often the vCPU came back to a CPU and did not record */
	bool lbr_lost;               /* KVM does not have them for the guest */
	bool lbr_again;              /* a try to get them is due */
	bool lbr_released;           /* KVM has no event, or will release it */
	struct rcu_head rcu;
	/* Statistics for debugfs; each has a single writer. */
	u64 n_calls, n_services, n_nmis;
	atomic64_t n_overflows;
	u64 n_rdmsr, n_wrmsr, n_rdpmc; /* of arch */
	u64 n_losses[VPMU_LOSS_NOT_COUNTED + 1]; /* by enum vpmu_loss */
	u64 n_throttles;
};

struct vk_vm {
	struct hlist_node node;      /* entry of vk_vms; RCU */
	/* Entry of vk_all, under vk_mutex; empty if the VM is refused. */
	struct list_head list;
	struct kvm *kvm;             /* key in vk_vms */
	pid_t pid;
	struct mutex lock;           /* vpmu_ops.lock; also protects maps, the filter and loans */
	DECLARE_HASHTABLE(maps, 6);
	struct work_struct end;
	/* One of both; neither: the VM is refused a PMU, and has no vCPUs. */
	struct vpmu_pv_vm *pv;
	struct vk_arch *arch;
	atomic_t n_own;              /* counters of its share that are in use */
	struct vpmu_filter filter;   /* KVM's filter as last seen, under lock */
	u64 filter_events[VPMU_FILTER_EVENTS_MAX];
	const void *filter_seen;     /* KVM's pointer to the filter at that time */
	unsigned int filter_changes;
	struct list_head loans;      /* struct vk_loan, of vCPUs to come; under lock */
	unsigned int n_vcpus;        /* 0: the VM is refused a PMU */
	struct vk_vcpu *vcpu[];      /* by vcpu_idx */
};

/* main.c: limits, which are read when an object is created */
extern unsigned int vk_max_vms, vk_max_events, vk_max_slots, vk_max_counters;
extern unsigned int vk_max_rate, vk_min_period, vk_share;
extern bool vk_opt_in, vk_regain, vk_pin;
extern const struct vpmu_model *vk_model;

/* Statistics of all VMs. */
extern atomic_t vk_n_counters;
extern atomic_t vk_n_common; /* those of them that are beyond the shares of their VMs */
extern atomic64_t vk_n_refused;

/* hook.c */

/** Start to take hypercalls. Returns 0, or a negative errno after a pr_err. */
int vk_hook(void);

/** Stop taking calls and services. None is in progress on return. May sleep. */
void vk_unhook(void);

/** Stop watching for VMs that are destroyed, after all are gone. May sleep. */
void vk_unwatch(void);

/* table.c */
extern struct hlist_head vk_vms[1 << 6]; /* by vk_vm.kvm; RCU protects readers */
extern spinlock_t vk_vms_lock;           /* protects writers */

/** The VM of @kvm, or NULL; the first under RCU, or without preemption. */
struct vk_vm *vk_vm_find(const struct kvm *kvm);
struct vk_vm *vk_vm_of(const struct kvm *kvm);

/**
 * The vCPU, or NULL; the first under RCU, or without preemption. It stays as long as its
 * thread is in the module.
 */
struct vk_vcpu *vk_find_vcpu(struct kvm_vcpu *vcpu);
struct vk_vcpu *vk_find(struct kvm_vcpu *vcpu);

/** Likewise, if its PMU is the architectural one. From anywhere. */
struct vk_vcpu *vk_arch_find(struct kvm_vcpu *vcpu);

/* request.c */
void vk_requests_init(struct vk_vcpu *c);

/**
 * Request a service. From anywhere but NMI. @wake: end a HLT, since an interrupt follows.
 */
void vk_ask(struct vk_vcpu *c, int why, bool wake);

/** Request a service: vpmu_ops.kick. From anywhere. */
void vk_kick(void *ctx);

/** Request one when a slice of time has passed. On the vCPU's thread. */
void vk_start_slice(struct vk_vcpu *c);

/** Is CR0 that of the vCPU's system? In SMM, and in a nested guest, it is not. */
bool vk_in_system(const struct kvm_vcpu *vcpu);

/* vm.c */
extern struct mutex vk_mutex;           /* protects vk_all */
extern struct list_head vk_all;
extern unsigned int vk_n_vms;

int vk_vms_init(void);

/**
 * End all VMs, and tell their guests. Only vk_on_destroy() may still be hooked. May
 * sleep.
 */
void vk_vms_exit(void);
void vk_vms_free(void);

/**
 * Find @kvm's VM and create what is missing of its vCPUs, none of which may run or be
 * created meanwhile. @make: create the VM too if there is none. May sleep. Returns the
 * VM, or an error pointer, with @why if a limit was reached: ENOENT, ENOSPC, ENOMEM;
 * EACCES: the VM is refused a PMU; EINVAL: a vCPU cannot have it.
 */
struct vk_vm *vk_attach_all(struct kvm *kvm, bool make, struct vpmu_error *why);

/**
 * Decide whether @kvm's guest has a PMU, whatever the VMM's other settings say. May
 * sleep. Returns 0; -EBUSY if the opposite has been decided already, or the PMU is in
 * use; -ENOSPC or -ENOMEM, with @why if a limit was reached.
 */
int vk_decide(struct kvm *kvm, bool allow, struct vpmu_error *why);

/** Unbind all vCPUs, none of which can run, from their threads. May sleep. */
void vk_unbind_all(struct vk_vm *vm);

/**
 * Call this when a state has been loaded: the vCPUs are served before they enter their
 * guest.
 */
void vk_loaded(struct vk_vm *vm);

/**
 * Give a VM that is not known yet the architectural PMU @arch, which is the VM's from then
 * on. May sleep. Returns 0; -EEXIST: it is known; -ENOSPC or -ENOMEM, with @why if a limit
 * was reached; then @arch is still the caller's.
 */
int vk_vm_give(struct kvm *kvm, struct vk_arch *arch, struct vpmu_error *why);

/**
 * Create a vCPU, of either kind. @bind: the caller is on its thread. NULL, with @why if
 * a limit was reached. vcpu->mutex is held. May sleep.
 */
struct vk_vcpu *vk_vcpu_new(struct vk_vm *vm, struct kvm_vcpu *vcpu, bool bind,
			    struct vpmu_error *why);

/** Why a VM with KVM's mediated PMU (vk_is_mediated()) has none of ours. */
extern const char vk_mediated[];

/** May a VM that is not known yet have a PMU? If not, @why gives the reason. */
bool vk_may_have(const struct kvm *kvm, struct vpmu_error *why);

/** Complain that this process's guest gets no PMU. */
void vk_warn(const struct vpmu_error *why);

/** Create the vCPU, and its VM, that makes its first call. NULL: it has no PMU. */
struct vk_vcpu *vk_attach(struct kvm_vcpu *vcpu);

/** Undo what vk_arch_give() has done for a VM. */
void vk_arch_free(struct vk_arch *arch);

/** KVM is about to free @kvm, none of whose vCPUs can run. Does not sleep. */
void vk_vm_gone(struct kvm *kvm);

/* serve.c */

/** Handle a hypercall of ours. On the vCPU's thread, where KVM emulates it; may sleep. */
void vk_call(struct kvm_vcpu *vcpu, struct vpmu_hypercall *call);

/** KVM_RUN begins on this thread. Without preemption. */
void vk_run(struct kvm_vcpu *vcpu);

/** Is a service due? On the vCPU's thread, without preemption. */
bool vk_due(struct kvm_vcpu *vcpu);

/**
 * Run the second halves. On the vCPU's thread, where KVM handles requests; may sleep.
 * Returns whether KVM's own function has something to do.
 */
bool vk_serve(struct kvm_vcpu *vcpu);

/* thread.c */
void vk_threads_init(void);

/**
 * Make @p, which has a task, visible to lookups by that task until it leaves. Do not
 * sleep.
 */
void vk_thread_join(struct vk_perf *p);
void vk_thread_leave(struct vk_perf *p);

/**
 * Does the thread have the events of no vCPU, of @vcpu, or of another one? Without
 * preemption.
 */
enum vk_thread { VK_THREAD_FREE, VK_THREAD_OWN, VK_THREAD_TAKEN };
enum vk_thread vk_thread_has(const struct kvm_vcpu *vcpu);

/** The other vCPU that has this thread, or NULL. Its VM stays until kvm_put_kvm(). */
struct vk_vcpu *vk_thread_get(const struct kvm_vcpu *vcpu);

/* filter.c */

/** Has @kvm's VMM taken its guest's PMU away? */
bool vk_vmm_declines(const struct kvm *kvm);

void vk_filter_init(struct vk_vm *vm);

/** Has KVM been given another filter? Does not sleep. */
bool vk_filter_due(const struct vk_vm *vm);

/**
 * Take over KVM's filter. Under kvm->srcu; may sleep. Returns a number that changes with
 * the filter.
 */
unsigned int vk_filter_sync(struct vk_vm *vm);

/* memory.c: hooks of struct vpmu_ops; ctx is a struct vk_vcpu. */
int vk_gpa_read(void *ctx, uint64_t gpa, void *buf, uint32_t size);
int vk_gpa_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size);
void *vk_gpa_map(void *ctx, uint64_t gpa, uint32_t size);
void vk_gpa_unmap(void *ctx, void *at, uint32_t size);
void vk_gpa_dirty(void *ctx, void *at, uint32_t size);

/** Report the written pages to KVM's dirty log, once each. On the vCPU's thread. */
void vk_flush_dirty(struct vk_vcpu *c);

/* loan.c; the rest is in loan.h */
struct vpmu_kvm_lend;

/** VPMU_KVM_LEND. May sleep. */
int vk_lend(struct kvm *kvm, const struct vpmu_kvm_lend *io, struct vpmu_error *why);

/* perf.c */
extern const struct vpmu_provider_ops vk_perf_ops;

/** Do the host's CPUs count slots and topdown classes? */
bool vk_counts_slots(void);

void vk_perf_init(struct vk_perf *p);
void vk_perf_fini(struct vk_perf *p);

/** vk_perf_bind() calls this where there is something to do. */
int vk_perf_move(struct vk_perf *p);

/**
 * Bind events to this thread, which is the vCPU's: it gets a clock, and perf events are
 * created. Returns 0, or perf's error; then enabled events are in error until the next
 * try. The lock is vk_perf.lock, for this function and the next two, unless no other
 * thread can find @p yet.
 */
static inline int vk_perf_bind(struct vk_perf *p)
{
	return p->task == current && p->clock ? 0 : vk_perf_move(p);
}

/**
 * End the perf events; counts, times and periods stay as they are until the next bind.
 */
void vk_perf_unbind(struct vk_perf *p);

/**
 * Unbind another vCPU's events from this thread. Without vk_perf.lock; may sleep, but not
 * for what a guest or a VMM does.
 */
void vk_perf_evict(const struct kvm_vcpu *vcpu);

/**
 * Tell the owners of events that have overflowed unseen, or have gained or lost their
 * counter. On the vCPU's thread.
 */
void vk_perf_poll(struct vk_perf *p);

/** Can this host count instructions of guests at all? Returns 0, or perf's error. */
int vk_perf_probe(void);

/** KVM has executed an instruction for the guest. Returns whether a service has to follow. */
bool vk_perf_emulated(struct vk_perf *p, bool branch, bool kernel);

/** Let these instructions bring overflows nearer. In a service. */
void vk_perf_settle(struct vk_perf *p);

/* arch_vm.c. All may sleep, unless noted. */
extern bool vk_arch_default; /* VMs whose VMM does not ask have it too */

/** Find out what this host can offer. Returns 0, or a negative errno after a pr_err. */
int vk_arch_init(void);

/** From now on VMs are given it by the module's parameter: loading cannot fail any more. */
void vk_arch_begin(void);
void vk_arch_exit(void);

/** Answer the ioctl of this name. Returns 0, or a negative errno with @why. */
int vk_arch_decide(struct kvm *kvm, struct vpmu_kvm_arch *io, struct vpmu_error *why);

/**
 * Give it to a VM that the module does not know and whose vCPUs are locked, if the parameter
 * says so. Returns 0, or a negative errno with @why.
 */
int vk_arch_give_default(struct kvm *kvm, struct vpmu_error *why);

/** Is this vCPU, which the module does not know, still to get its PMU? Does not sleep. */
bool vk_arch_wanted(const struct vk_vm *vm, const struct kvm_vcpu *vcpu);

/** Give it to it, before it first enters its guest. On its thread. Or returns NULL. */
struct vk_vcpu *vk_arch_attach(struct kvm_vcpu *vcpu);

/* arch_amd.c, arch_intel.c */
extern const struct vk_vendor vk_amd, vk_intel;

/* arch.c: the architectural PMU. All may sleep, unless noted. */

/** The host's, once vk_arch_find_host() has returned NULL. Does not sleep. */
const struct vk_vendor *vk_arch_vendor(void);

/** Find out what this host, of @vendor, can offer. Returns NULL, or why that is nothing. */
const char *vk_arch_find_host(const struct vk_vendor *vendor);

/**
 * What a VM that wants @want is given. Returns 0, or -EOPNOTSUPP with @why. The VM exists,
 * so KVM's module for this CPU stays.
 */
int vk_arch_plan(struct vk_arch *a, const struct vpmu_kvm_arch *want, struct vpmu_error *why);

/** The part of vk_vcpu_new() and of its end. */
int vk_arch_vcpu_init(struct vk_vcpu *c, struct vpmu_error *why);

/** Can this vCPU have it? If not, @why gives the reason. vcpu->mutex is held. */
bool vk_arch_fits(struct kvm_vcpu *vcpu, struct vpmu_error *why);

/** Save the vCPU's state as vpmu_arch_save() does. vcpu->mutex is held. May sleep. */
int vk_arch_save(struct vk_vcpu *c, void *state, size_t room, size_t *bytes);
void vk_arch_vcpu_fini(struct vk_vcpu *c);

/** Is a service due besides what is pending? Does not sleep. */
bool vk_arch_due(const struct vk_vcpu *c);

/** The part of vk_serve(), under vk_perf.lock. Returns whether to start a slice. */
bool vk_arch_serve(struct vk_vcpu *c, int why);

/** Has KVM's own PMU nothing to do? May sleep. */
bool vk_arch_quiet(struct vk_vcpu *c);

/* In place of KVM's functions; @c is found by vk_arch_find(). */
int vk_arch_rdmsr(struct vk_vcpu *c, struct msr_data *msr);
int vk_arch_wrmsr(struct vk_vcpu *c, struct msr_data *msr);
int vk_arch_rdpmc(struct vk_vcpu *c, unsigned int idx, u64 *data);
void vk_arch_cpuid(struct vk_vcpu *c, u32 leaf, u32 subleaf, struct vpmu_cpuid *regs,
		   bool *found);

/** KVM has executed an instruction. Does not sleep; perhaps with interrupts off. */
void vk_arch_emulated(struct vk_vcpu *c, bool branch);

/* arch_handover.c: what the VMM has written to KVM's own PMU. vcpu->mutex is held; may sleep. */
struct vk_own {
	unsigned int n;
	struct {
		u32 index;
		u64 value;
	} msr[42]; /* the most that vk_vendor.msrs has, and GLOBAL_CTRL */
};

void vk_own_find(struct kvm_vcpu *vcpu, const struct vk_vendor *vendor, struct vk_own *own);
void vk_own_clear(struct kvm_vcpu *vcpu, const struct vk_own *own);

/* arch_hook.c */

/** Hook what the architectural PMU needs, for one more user. Returns 0, or an errno. */
int vk_arch_hooks_get(void);
void vk_arch_hooks_put(void);

/* lock.c */

/**
 * Lock all vCPUs of @kvm, so that none runs and none is created. Returns 0; -EINTR; -EBUSY
 * with @why: one runs.
 */
int vk_lock_vcpus(struct kvm *kvm, struct vpmu_error *why);

/** Unlock the first @n, or all with ULONG_MAX. */
void vk_unlock_vcpus(struct kvm *kvm, unsigned long n);

/* device.c */

/** Create the node in /dev. Returns 0, or a negative errno after a pr_err. */
int vk_device_init(void);

void vk_device_exit(void);

/*
 * state.c: the ioctls of these names. May sleep. Return 0, or a negative errno and, for
 * some, @why.
 */
int vk_save(struct kvm *kvm, struct vpmu_kvm_state *io, struct vpmu_error *why);
int vk_load(struct kvm *kvm, const struct vpmu_kvm_state *io, struct vpmu_error *why);

/* faults.c */
#ifdef VPMU_KVM_FAULTS
/** Is this call to fail, instead of what it asks for? From anywhere that can sleep. */
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

/** vpmu_ops.trace: counts losses and throttles. */
#define VK_STATS_TRACED \
	(1u << VPMU_TRACE_LOST | 1u << VPMU_TRACE_PV_LOST | 1u << VPMU_TRACE_PV_THROTTLE)
void vk_stats_trace(void *ctx, const struct vpmu_trace_record *r);

/** Keep the numbers of a VM that ends, for the totals. Under vk_mutex. */
void vk_stats_keep(const struct vk_vm *vm);

#endif /* VPMU_KVM_INTERNAL_H */
