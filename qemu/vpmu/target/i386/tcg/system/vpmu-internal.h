/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring unit of a vCPU under TCG: declarations that its
 * files share. vpmu.c counts, vpmu-cpu.c makes it a part of its CPU,
 * vpmu-vm.c has the state that all vCPUs share, vpmu-pv.c the paravirtual
 * PMU's guest memory and state, vpmu-uarch.c the modelled CPU, vpmu-monitor.c
 * the monitor's commands.
 */
#ifndef I386_VPMU_INTERNAL_H
#define I386_VPMU_INTERNAL_H

#include "qemu/queue.h"
#include "qemu/thread.h"
#include "cpu.h"
#include "tcg/release.h"

#include <vpmu/arch.h>
#include <vpmu/filter.h>
#include <vpmu/direct.h>
#include <vpmu/pv.h>
#include <vpmu/spec.h>
#include <vpmu/uarch.h>
#include <vpmu/vcpu.h>

/* Rate of the guest's TSC with a PMU; it follows the virtual clock */
#define VPMU_TSC_HZ 400000000ull

#define VPMU_SUPPLIED (VPMU_SIGNALS_ALL & ~VPMU_SIGNALS_UARCH)

#define VPMU_HOST_EVENTS_MAX 64

/* An event filter and the entries that it points to */
typedef struct VPMUFilter {
    struct vpmu_filter filter;
    uint64_t events[VPMU_FILTER_EVENTS_MAX];
    char *spec;
} VPMUFilter;

/* An event of the modelled host, which belongs to its vCPU's thread */
typedef struct VPMUHostEvent {
    struct vpmu_perf_event event;
    uint32_t id;
    char *spec;
    bool task;
    X86VPMU *v;
    QTAILQ_ENTRY(VPMUHostEvent) next;
} VPMUHostEvent;

/* Hypercalls by operation; version 1 has OPEN to READ */
typedef enum VPMUCall {
    VPMU_CALL_VERSION,
    VPMU_CALL_SETUP,
    VPMU_CALL_BATCH,
    VPMU_CALL_RESET,
    VPMU_CALL_OPEN,
    VPMU_CALL_CLOSE,
    VPMU_CALL_ENABLE,
    VPMU_CALL_DISABLE,
    VPMU_CALL_READ,
    VPMU_CALL_OTHER,
    VPMU_CALL_DOORBELL,
    VPMU_CALL_COUNT
} VPMUCall;

/*
 * Buffers of a vCPU's stream: enough that its thread and the model's seldom
 * wait
 */
#define X86_STREAM_BUFFERS 8

/* The modelled CPUs of a VM: pmu-uarch */
typedef struct VPMUUarch {
    struct vpmu_uarch_params params;
    struct vpmu_uarch_llc *llc;
    bool always;                       /* model even while nothing is counted */
    bool user_only;                    /* model CPL 3 only */
    bool linear;                       /* look caches up by linear address */
    /* The host has CPUs to spare for the models. */
    bool threads;
} VPMUUarch;

/* A VM's paravirtual PMU in migration */
typedef struct VPMUPvState {
    struct vpmu_pv_vm *pv;
    /* Load a state that another VM has saved, or allocate the reason */
    int (*load)(void *opaque, const void *data, size_t size, char **why);
    void *opaque;
    uint8_t *data;                     /* the state on the wire */
    uint32_t size;
} VPMUPvState;

/* State that all vCPUs of a VM share; under the BQL unless stated otherwise */
typedef struct VPMUVm {
    unsigned int n_cpus;
    VpmuHostPolicy policy;
    char *filter_arg, *trace_arg;      /* properties of the first vCPU */
    struct vpmu_ops ops;               /* unchanged after the first vCPU */
    struct vpmu_perf_system system;    /* libvpmu's own rules */
    VPMUFilter *filter;                /* in force, or NULL */
    QTAILQ_HEAD(, VPMUHostEvent) events;
    unsigned int n_events;
    uint32_t last_id;
    QemuMutex trace_lock;              /* protects the next two */
    FILE *trace;
    Notifier exit;
    VMChangeStateEntry *stop;
    bool arch;                         /* pmu=on */
    VPMUUarch *uarch;                  /* NULL: pmu-uarch=off */
    char *uarch_arg, *uarch_params_arg; /* properties of the first vCPU */
    /*
     * The paravirtual PMU, created with the first vCPU; without it pv is NULL
     */
    uint32_t pv_abi, pv_events, pv_slots;
    uint32_t pv_calls;                 /* VPMU_PV_CALL_... */
    uint64_t pv_period;
    struct vpmu_pv_vm *pv;
    size_t pv_vcpu_size;
    QemuMutex pv_lock;                 /* the BQL is not taken under it */
    VPMUPvState pv_state;
} VPMUVm;

struct X86VPMU {
    X86CPU *cpu;
    VPMUVm *vm;
    /* The counting part: direct with policy direct, else host and vcpu */
    struct vpmu_direct direct;
    struct vpmu_perf_cpu host;         /* this vCPU's part of the host's perf */
    struct vpmu_vcpu vcpu;
    struct vpmu_silicon *silicon;      /* points into direct, or into host */
    struct vpmu_arch *arch;            /* NULL without pmu=on */
    struct vpmu_pv *pv;                /* NULL without pmu-pv */
    struct vpmu_signal_words total;    /* totals as of the last fold */
    /* Totals at which silicon has a deadline. */
    struct vpmu_signal_words until;
    /* Signals that have one; all others never do. */
    uint64_t waited;
    /* mode of the hot words; hflags has it too, but not during a reset */
    X86VPMUMode mode;
    int64_t armed[X86_VPMU_BANKS];     /* instructions when last armed */
    int64_t kind_armed[X86_VPMU_BANKS][X86_VPMU_KINDS];
    uint64_t lbr_seen;                 /* state of vpmu_lbr_inserted() */
    bool lbr_watched;                  /* libvpmu looks at each new record */
    int lbr_bank;                      /* bank to which new records belong */
    bool due;                          /* the next boundary has work */
    bool service;                      /* libvpmu asked for a service */
    bool record_awaited;               /* VMX has not checked where it goes */
    /* libvpmu asked for the ends of slices. */
    bool slicing;
    uint64_t slice_start;              /* instructions at the slice's begin */
    struct {
        struct vpmu_uarch *model;      /* NULL: there is none */
        uint64_t *buffer[X86_STREAM_BUFFERS]; /* STREAM_BYTES each, aligned */
        /* Index of the buffer that @start is in. */
        unsigned int filled;
        /* Runs full buffers; created on demand. */
        struct X86StreamThread *thread;
        /* Words at the thread; if any, the model is the thread's. */
        uint64_t handed;
        uint64_t *start;               /* begin of this batch's words */
        uint32_t batch;                /* words until it is full */
        bool in_progress;              /* an instruction has not retired yet */
        uint64_t cr3;                  /* CR3 of the program that is modelled */
        struct vpmu_uarch_counts before; /* counts up to the last cold start */
        uint32_t threshold;            /* from ops->set_load_latency, in cycles */
        /* Counts that have a deadline, a bit each. */
        uint64_t waited;
        bool anew;                     /* a new measurement begins */
        bool recording;                /* notes predictions of branch records */
        uint64_t n_lost;
    } uarch;
    uint64_t n_pmis;                   /* statistics of x-query-vpmu */
    uint64_t n_expired;
    uint64_t n_exits[VPMU_TRACE_EXIT_COUNT];
    uint64_t n_calls[VPMU_CALL_COUNT];
};

static inline bool vpmu_is_direct(const X86VPMU *v)
{
    return v->vm->policy == VPMU_HOST_POLICY_DIRECT;
}

/* A modelled CPU supplies cycles; without one instructions stand for them */
static inline uint64_t vpmu_supplied(const VPMUVm *vm)
{
    return vm->uarch ? VPMU_SIGNALS_ALL : VPMU_SUPPLIED;
}

/* Read a property that was not given: NULL or, after a copy, "" */
static inline const char *vpmu_given(const char *property)
{
    return property && *property ? property : NULL;
}

/* libvpmu's hooks, except the paravirtual PMU's */
extern const struct vpmu_ops vpmu_tcg_ops;

/* Serve libvpmu's request; after each call that may have made one */
void vpmu_serve(X86VPMU *v);

/*
 * The VM, created by its first vCPU; NULL if this one does not match the
 * first
 */
VPMUVm *vpmu_vm_get(X86CPU *cpu, const struct vpmu_model *model,
                    const struct vpmu_ops *ops, Error **errp);
void vpmu_vm_put(VPMUVm *vm);
/* The VM of the vCPUs that have a PMU, or NULL */
VPMUVm *vpmu_vm(void);

/* Occurrences until a deadline, as of the last fold */
uint64_t vpmu_left(const X86VPMU *v, int signal, int bank);

/*
 * In a nested bank that has not run, a deadline of 1 is only libvpmu's way to
 * be told when it runs. So no code has to watch for that; the bank's first
 * instruction is noticed.
 */
static inline bool vpmu_asleep(const X86VPMU *v, int bank)
{
    return bank >= VPMU_BANK_NESTED_KERNEL &&
           !v->total.word[VPMU_SIGNAL_INSTRUCTIONS][bank];
}

/* Set the hot words by the demand, also after CPU reset or load */
void vpmu_arm(X86VPMU *v);

static inline struct vpmu_lbr *vpmu_lbr_of(CPUX86State *env)
{
    return (struct vpmu_lbr *)&env->vpmu.lbr;
}

/* Entry points of version 2 */
#define VPMU_PV_CALL_HYPERCALL 1u
#define VPMU_PV_CALL_DOORBELL  2u
bool vpmu_pv_parse_calls(const char *arg, uint32_t *calls, Error **errp);

/* Parse pmu-pv into the versions that it asks for, 0 for none */
bool vpmu_pv_parse(const char *arg, uint32_t *abi, Error **errp);
/* Hooks for guest memory, interrupts and the lock */
void vpmu_pv_hooks(struct vpmu_ops *ops);
/* Move it after all state registered so far; again for each new vCPU */
void vpmu_pv_state_register(VPMUPvState *s);
void vpmu_pv_state_unregister(VPMUPvState *s);
/* Create the VM's part with the first vCPU, and this vCPU's part */
bool vpmu_pv_attach(X86VPMU *v, struct vpmu_provider *provider, Error **errp);
void vpmu_pv_detach(X86VPMU *v);
/*
 * When @gone is unplugged, after its thread has ended: let no vCPU run. Returns
 * false if none did, else the caller resumes them. It gives up the BQL
 */
bool vpmu_pv_pause(CPUState *gone);
/* Free the VM's part with its last vCPU */
void vpmu_pv_vm_free(VPMUVm *vm);
VPMUCall vpmu_pv_call(const struct vpmu_hypercall *call);
/* The leaves under KVM's signature; returns true for one of them */
bool vpmu_pv_kvm_cpuid(const X86VPMU *v, uint32_t leaf,
                       struct vpmu_cpuid *regs);

VPMUFilter *vpmu_filter_parse(const char *spec, const struct vpmu_model *model,
                              Error **errp);
void vpmu_filter_free(VPMUFilter *f);
/* @what: the name of what was typed */
void vpmu_spec_error_setg(Error **errp, const char *what, const char *spec,
                          const struct vpmu_spec_error *err);

/* The modelled CPU: the VM's part, or NULL with an error; then the vCPU's */
VPMUUarch *vpmu_uarch_new(const char *mode, const char *params,
                          const struct vpmu_model *model, Error **errp);
void vpmu_uarch_free(VPMUUarch *u);
void vpmu_uarch_attach(X86VPMU *v);
void vpmu_uarch_detach(X86VPMU *v);
/* Reset the model to power-on, except for its counts */
void vpmu_uarch_cold(X86VPMU *v);
/*
 * Counts as of the last drain: one, or those in @counts, a bit each, into
 * v->total
 */
uint64_t vpmu_uarch_total(const X86VPMU *v, int count, int bank);
void vpmu_uarch_pull(X86VPMU *v, uint64_t counts);
/* Begin another measurement */
void vpmu_uarch_restart(X86VPMU *v);
/* Add what the model knows of the access that a sample names */
void vpmu_uarch_sample(const X86VPMU *v, struct vpmu_sample *s);
void vpmu_uarch_threshold_set(X86VPMU *v, uint32_t cycles);
/* From ops->set_lbr and ops->finish_lbr */
void vpmu_uarch_lbr(X86VPMU *v, bool record);
void vpmu_uarch_lbr_finish(X86VPMU *v, struct vpmu_lbr_entry *const *entries,
                           unsigned int n);
/* The modelled CPU's stream */
void vpmu_stream_switch(X86VPMU *v, bool on);
void vpmu_stream_drain(X86VPMU *v);
/* Set the batch's length by the nearest deadline of the model's counts */
void vpmu_stream_arm(X86VPMU *v);
/* Handle a full buffer, between two blocks; false: a deadline has come */
bool vpmu_stream_full(X86VPMU *v);
/* Has a deadline of the model's counts come, as of the last drain? */
bool vpmu_stream_reached(const X86VPMU *v);
void vpmu_stream_cut(X86VPMU *v, const TranslationBlock *tb, int insns_left,
                     const uint64_t *data);
void vpmu_stream_event(X86VPMU *v);

/* Close all host events of a vCPU that is stopped. */
void vpmu_host_events_close(X86VPMU *v);

#endif /* I386_VPMU_INTERNAL_H */
