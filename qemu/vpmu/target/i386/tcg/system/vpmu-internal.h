/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring unit of a vCPU under TCG: what its files share.
 * vpmu.c counts, vpmu-vm.c has what all vCPUs have in common, vpmu-pv.c has the
 * paravirtual PMU's guest memory and state, vpmu-monitor.c is what a monitor
 * sees.
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
#include <vpmu/vcpu.h>

/* The guest's TSC with a PMU: this rate, from the virtual clock */
#define VPMU_TSC_HZ 400000000ull

#define VPMU_SUPPLIED (VPMU_SIGNALS_ALL & ~VPMU_SIGNAL_BIT(VPMU_SIGNAL_CYCLES))

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

/* Of hypercalls, by what they ask for; version 1 has the last five of them */
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
    VPMU_CALL_COUNT
} VPMUCall;

/* What the vCPUs have in common; under the BQL unless it says otherwise */
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
    /* The paravirtual PMU, made with the first vCPU; pv is NULL without */
    uint32_t pv_abi, pv_events, pv_slots;
    uint64_t pv_period;
    struct vpmu_pv_vm *pv;
    size_t pv_vcpu_size;
    QemuMutex pv_lock;                 /* the BQL is not taken under it */
    uint8_t *pv_state;                 /* on the wire */
    uint32_t pv_state_size;
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
    /* of the hot words; hflags has it too, but not while being reset */
    X86VPMUMode mode;
    int64_t armed[X86_VPMU_BANKS];     /* instructions when last armed */
    int64_t kind_armed[X86_VPMU_BANKS][X86_VPMU_KINDS];
    bool due;                          /* the next boundary has to look */
    bool service;                      /* libvpmu kicked */
    bool slicing;                      /* libvpmu wants to hear of slices */
    uint64_t slice_start;              /* instructions */
    uint64_t n_pmis;                   /* statistics of x-query-vpmu */
    uint64_t n_expired;
    uint64_t n_exits[VPMU_TRACE_EXIT_COUNT];
    uint64_t n_calls[VPMU_CALL_COUNT];
};

static inline bool vpmu_is_direct(const X86VPMU *v)
{
    return v->vm->policy == VPMU_HOST_POLICY_DIRECT;
}

/* A property that was not given reads as NULL or, where it was copied, "" */
static inline const char *vpmu_given(const char *property)
{
    return property && *property ? property : NULL;
}

/* Serve what libvpmu kicked for: after all calls that may have kicked */
void vpmu_serve(X86VPMU *v);

/* The VM, made by its first vCPU; NULL when this one does not fit to it */
VPMUVm *vpmu_vm_get(X86CPU *cpu, const struct vpmu_model *model,
                    const struct vpmu_ops *ops, Error **errp);
void vpmu_vm_put(VPMUVm *vm);
/* Of the vCPUs that have a PMU, or NULL */
VPMUVm *vpmu_vm(void);

/* The hot words again as the demand is, after CPU reset or load */
void vpmu_arm(X86VPMU *v);

/* Versions that pmu-pv asks for, 0 for none */
bool vpmu_pv_parse(const char *arg, uint32_t *abi, Error **errp);
/* Hooks for guest memory, interrupts and the lock */
void vpmu_pv_hooks(struct vpmu_ops *ops);
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

/* Close all host events of a vCPU that is stopped. */
void vpmu_host_events_close(X86VPMU *v);

#endif /* I386_VPMU_INTERNAL_H */
