/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring unit of a vCPU under TCG: what its files share.
 * vpmu.c counts, vpmu-cpu.c makes it a part of its CPU, vpmu-vm.c has what all
 * vCPUs have in common, vpmu-pv.c has the paravirtual PMU's guest memory and state,
 * vpmu-uarch.c has the modelled CPU, vpmu-monitor.c is what a monitor sees.
 */
#ifndef I386_VPMU_INTERNAL_H
#define I386_VPMU_INTERNAL_H

#include "qemu/queue.h"
#include "qemu/thread.h"
#include "qapi/qapi-types-misc-target.h"
#include "cpu.h"

#include <vpmu/arch.h>
#include <vpmu/direct.h>
#include <vpmu/pv.h>
#include <vpmu/spec.h>
#include <vpmu/uarch.h>
#include <vpmu/vcpu.h>

/* The guest's TSC with a PMU: this rate, from the virtual clock */
#define VPMU_TSC_HZ 400000000ull

#define VPMU_SUPPLIED (VPMU_SIGNALS_ALL & ~VPMU_SIGNALS_UARCH)

#define VPMU_HOST_EVENTS_MAX 64

/* An event filter and the entries that it points to */
typedef struct VPMUFilter {
    struct vpmu_filter filter;
    uint64_t events[VPMU_FILTER_EVENTS_MAX];
    char *spec;
} VPMUFilter;

/* An event of the modelled host; the event is its vCPU's thread's */
typedef struct VPMUHostEvent {
    struct vpmu_perf_event event;
    uint32_t id;
    char *spec;
    bool task;
    X86VPMU *v;
    QTAILQ_ENTRY(VPMUHostEvent) next;
} VPMUHostEvent;

/* Of hypercalls, by what they ask for; version 1 has OPEN to READ */
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

/* Of a vCPU's stream, so that its thread and the model's seldom wait */
#define X86_STREAM_BUFFERS 8

/* The modelled CPUs of a VM: pmu-uarch */
typedef struct VPMUUarch {
    struct vpmu_uarch_params params;
    struct vpmu_uarch_llc *llc;
    bool always;                       /* whether or not anybody counts */
    bool user_only;                    /* only CPL 3 is modelled */
    bool linear;                       /* caches are looked up by linear
                                          addresses */
    bool threads;                      /* the host has CPUs for the models */
} VPMUUarch;

/* What the vCPUs have in common; under the BQL unless it says otherwise */
/* A VM's paravirtual PMU in migration */
typedef struct VPMUPvState {
    struct vpmu_pv_vm *pv;
    /* Puts what another one has saved into it, or allocates the reason */
    int (*load)(void *opaque, const void *data, size_t size, char **why);
    void *opaque;
    uint8_t *data;                     /* on the wire */
    uint32_t size;
} VPMUPvState;

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
    QemuMutex trace_lock;              /* of these two */
    FILE *trace;
    Notifier exit;
    VMChangeStateEntry *stop;
    bool arch;                         /* pmu=on */
    VPMUUarch *uarch;                  /* NULL: pmu-uarch=off */
    char *uarch_arg, *uarch_params_arg; /* properties of the first vCPU */
    /* The paravirtual PMU, made with the first vCPU; pv is NULL without */
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
    /* What counts: direct of policy direct, the other two of the others */
    struct vpmu_direct direct;
    struct vpmu_perf_cpu host;         /* of the modelled host, this vCPU's */
    struct vpmu_vcpu vcpu;
    struct vpmu_silicon *silicon;      /* in direct, or in host */
    struct vpmu_arch *arch;            /* NULL without pmu=on */
    struct vpmu_pv *pv;                /* NULL without pmu-pv */
    struct vpmu_signal_words total;    /* as of the last fold */
    struct vpmu_signal_words until;    /* totals that silicon waits for */
    uint64_t waited;                   /* of these signals; others' are never */
    /* of the hot words; hflags has it too, but not while being reset */
    X86VPMUMode mode;
    int64_t armed[X86_VPMU_BANKS];     /* instructions when last armed */
    int64_t kind_armed[X86_VPMU_BANKS][X86_VPMU_KINDS];
    uint64_t lbr_seen;                 /* of vpmu_lbr_inserted() */
    int lbr_bank;                      /* in which they are made now */
    bool due;                          /* the next boundary has to look */
    bool service;                      /* libvpmu kicked */
    bool slicing;                      /* libvpmu wants to hear of slices */
    uint64_t slice_start;              /* instructions */
    struct {
        struct vpmu_uarch *model;      /* NULL: there is none */
        uint64_t *buffer[X86_STREAM_BUFFERS]; /* STREAM_BYTES, aligned */
        unsigned int filled;           /* which of them: @start is in it */
        struct X86StreamThread *thread; /* goes through full ones; made when needed */
        uint64_t handed;               /* words; if any, the model is the thread's */
        uint64_t *start;               /* where this batch's words begin */
        uint32_t batch;                /* words until it is full */
        bool in_progress;              /* an instruction has not retired yet */
        uint64_t cr3;                  /* of the program that is modelled */
        struct vpmu_uarch_counts before; /* it was last made cold */
        uint32_t threshold;            /* cycles: ops->threshold */
        uint64_t waited;               /* counts that have a deadline, a bit each */
        bool anew;                     /* what comes is another measurement's */
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

/* With a modelled CPU cycles are its, else instructions stand for them */
static inline uint64_t vpmu_supplied(const VPMUVm *vm)
{
    return vm->uarch ? VPMU_SIGNALS_ALL : VPMU_SUPPLIED;
}

/* A property that was not given reads as NULL or, where it was copied, "" */
static inline const char *vpmu_given(const char *property)
{
    return property && *property ? property : NULL;
}

/* libvpmu's hooks, but for those of the paravirtual one */
extern const struct vpmu_ops vpmu_tcg_ops;

/* Serve what libvpmu kicked for: after all calls that may have kicked */
void vpmu_serve(X86VPMU *v);

/* The VM, made by its first vCPU; NULL when this one does not fit to it */
VPMUVm *vpmu_vm_get(X86CPU *cpu, const struct vpmu_model *model,
                    const struct vpmu_ops *ops, Error **errp);
void vpmu_vm_put(VPMUVm *vm);
/* Of the vCPUs that have a PMU, or NULL */
VPMUVm *vpmu_vm(void);

/* Occurrences until a deadline, as of the last fold */
uint64_t vpmu_left(const X86VPMU *v, int signal, int bank);

/*
 * In a nested bank where nothing has happened yet a deadline of 1 is only
 * libvpmu's way to hear of it. So no code has to watch for that, and its first
 * instruction is one to look at.
 */
static inline bool vpmu_asleep(const X86VPMU *v, int bank)
{
    return bank >= VPMU_BANK_NESTED_KERNEL &&
           !v->total.word[VPMU_SIGNAL_INSTRUCTIONS][bank];
}

/* The hot words again as the demand is, after CPU reset or load */
void vpmu_arm(X86VPMU *v);

/* Ways in of version 2 */
#define VPMU_PV_CALL_HYPERCALL 1u
#define VPMU_PV_CALL_DOORBELL  2u
bool vpmu_pv_parse_calls(const char *arg, uint32_t *calls, Error **errp);

/* Versions that pmu-pv asks for, 0 for none */
bool vpmu_pv_parse(const char *arg, uint32_t *abi, Error **errp);
/* Hooks for guest memory, interrupts and the lock */
void vpmu_pv_hooks(struct vpmu_ops *ops);
/* It travels behind what has been registered so far; again for each new vCPU */
void vpmu_pv_state_register(VPMUPvState *s);
void vpmu_pv_state_unregister(VPMUPvState *s);
/* The VM's part with the first vCPU, and this vCPU's part */
bool vpmu_pv_attach(X86VPMU *v, struct vpmu_provider *provider, Error **errp);
void vpmu_pv_detach(X86VPMU *v);
/* The last vCPU has gone */
void vpmu_pv_vm_free(VPMUVm *vm);
VPMUCall vpmu_pv_call(const struct vpmu_hypercall *call);
/* The leaves under KVM's signature; true when it is one of them */
bool vpmu_pv_kvm_cpuid(const X86VPMU *v, uint32_t leaf,
                       struct vpmu_cpuid *regs);

VPMUFilter *vpmu_filter_parse(const char *spec, const struct vpmu_model *model,
                              Error **errp);
void vpmu_filter_free(VPMUFilter *f);
/* @what: the word for what was typed */
void vpmu_spec_error_setg(Error **errp, const char *what, const char *spec,
                          const struct vpmu_spec_error *err);

/* The modelled CPU: the VM's part, or NULL with an error; the vCPU's */
VPMUUarch *vpmu_uarch_new(const char *mode, const char *params,
                          const struct vpmu_model *model, Error **errp);
void vpmu_uarch_free(VPMUUarch *u);
void vpmu_uarch_attach(X86VPMU *v);
void vpmu_uarch_detach(X86VPMU *v);
/* As after power-on, but for what it has counted */
void vpmu_uarch_cold(X86VPMU *v);
/* As of the last drain: of one, and of @counts, a bit each, into v->total */
uint64_t vpmu_uarch_total(const X86VPMU *v, int count, int bank);
void vpmu_uarch_pull(X86VPMU *v, uint64_t counts);
/* What is counted from now on is another measurement */
void vpmu_uarch_restart(X86VPMU *v);
/* What it knows of the access that a sample names */
void vpmu_uarch_sample(const X86VPMU *v, struct vpmu_sample *s);
void vpmu_uarch_threshold_set(X86VPMU *v, uint32_t cycles);
/* Its stream */
void vpmu_stream_switch(X86VPMU *v, bool on);
void vpmu_stream_drain(X86VPMU *v);
/* By the nearest deadline of what it counts */
void vpmu_stream_arm(X86VPMU *v);
/* Between two blocks, when it is full; false: a deadline has come */
bool vpmu_stream_full(X86VPMU *v);
/* Has a deadline come of what it counts, as of the last drain? */
bool vpmu_stream_reached(const X86VPMU *v);
void vpmu_stream_cut(X86VPMU *v, const TranslationBlock *tb, int insns_left,
                     const uint64_t *data);
void vpmu_stream_event(X86VPMU *v);

/* Close all host events of a vCPU that is stopped. */
void vpmu_host_events_close(X86VPMU *v);

#endif /* I386_VPMU_INTERNAL_H */
