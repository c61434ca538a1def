/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring units of a VM under TCG: state that its vCPUs
 * share; policy, event filter, trace.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/notify.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "qapi/util.h"
#include "system/runstate.h"
#include "system/system.h"
#include "vpmu-internal.h"

/* The multiplexing interval of the modelled host */
#define VPMU_MUX_CYCLES (VPMU_TSC_HZ / 1000 * 4)

/* There is one VM per process. */
static VPMUVm *the_vm;

VPMUVm *vpmu_vm(void)
{
    return the_vm;
}

/* Event filter */

void vpmu_spec_error_setg(Error **errp, const char *what, const char *spec,
                          const struct vpmu_spec_error *err)
{
    g_autofree char *caret = g_strnfill(MAX(err->length, 1), '^');

    error_setg(errp, "%s '%s': at character %zu: %s; needed: %s", what, spec,
               err->at + 1, err->what, err->needed);
    error_append_hint(errp, "%s\n%*s%s\n", spec, (int)err->at, "", caret);
}

VPMUFilter *vpmu_filter_parse(const char *spec, const struct vpmu_model *model,
                              Error **errp)
{
    VPMUFilter *f = g_new0(VPMUFilter, 1);
    struct vpmu_spec_error err = { };

    f->spec = g_strdup(spec);
    if (vpmu_spec_filter(spec, model, &f->filter, f->events, &err)) {
        vpmu_spec_error_setg(errp, "event filter", spec, &err);
        vpmu_filter_free(f);
        return NULL;
    }
    return f;
}

void vpmu_filter_free(VPMUFilter *f)
{
    if (f) {
        g_free(f->spec);
        g_free(f);
    }
}

/*
 * The trace's header: "VPMUTRC1", the size of a record, the format's version.
 * Then struct vpmu_trace_record up to the end of the file. Little-endian.
 */
typedef struct QEMU_PACKED VPMUTraceHeader {
    char magic[8];
    uint32_t record_size;
    uint32_t version;
} VPMUTraceHeader;

QEMU_BUILD_BUG_ON(sizeof(struct vpmu_trace_record) != 32);

/*
 * With the lock. A trace with a hole would be worse than none, so it ends
 * here.
 */
static void vpmu_trace_check(VPMUVm *vm, bool ok)
{
    if (!ok) {
        error_report("pmu-trace=%s: cannot write: %s; the trace ends here",
                     vm->trace_arg, strerror(errno));
        fclose(vm->trace);
        vm->trace = NULL;
    }
}

static void vpmu_trace_flush(VPMUVm *vm)
{
    QEMU_LOCK_GUARD(&vm->trace_lock);

    if (vm->trace) {
        vpmu_trace_check(vm, fflush(vm->trace) == 0);
    }
}

static void vpmu_op_trace(void *ctx, const struct vpmu_trace_record *r)
{
    X86VPMU *v = ctx;
    VPMUVm *vm = v->vm;
    struct vpmu_trace_record le = {
        .type = cpu_to_le16(r->type),
        .cpu = cpu_to_le16(CPU(v->cpu)->cpu_index),
        .pmc = cpu_to_le16(r->pmc),
        .what = cpu_to_le16(r->what),
        .a = cpu_to_le64(r->a),
        .b = cpu_to_le64(r->b),
    };
    QEMU_LOCK_GUARD(&vm->trace_lock);

    if (vm->trace) {
        /* With the lock, so that the records are ordered by time */
        le.time = cpu_to_le64(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
        vpmu_trace_check(vm, fwrite(&le, sizeof(le), 1, vm->trace) == 1);
    }
}

static void vpmu_vm_stopped(void *opaque, bool running, RunState state)
{
    if (!running) {
        vpmu_trace_flush(opaque);
    }
}

static void vpmu_exit(Notifier *n, void *unused)
{
    vpmu_trace_flush(container_of(n, VPMUVm, exit));
}

static bool vpmu_trace_open(VPMUVm *vm, Error **errp)
{
    VPMUTraceHeader header = {
        .magic = "VPMUTRC1",
        .record_size = cpu_to_le32(sizeof(struct vpmu_trace_record)),
        .version = cpu_to_le32(1),
    };

    vm->trace = fopen(vm->trace_arg, "wbe");
    if (!vm->trace || fwrite(&header, sizeof(header), 1, vm->trace) != 1) {
        error_setg_errno(errp, errno, "pmu-trace=%s: needs a file that can be "
                         "written", vm->trace_arg);
        return false;
    }
    vm->ops.trace = vpmu_op_trace;
    vm->exit.notify = vpmu_exit;
    qemu_add_exit_notifier(&vm->exit);
    vm->stop = qemu_add_vm_change_state_handler(vpmu_vm_stopped, vm);
    return true;
}

static void vpmu_trace_close(VPMUVm *vm)
{
    if (vm->stop) {
        qemu_del_vm_change_state_handler(vm->stop);
        qemu_remove_exit_notifier(&vm->exit);
    }
    vpmu_trace_flush(vm);
    if (vm->trace) {
        fclose(vm->trace);
    }
}

/* The VM */

static void vpmu_vm_free(VPMUVm *vm)
{
    vpmu_pv_vm_free(vm);
    vpmu_trace_close(vm);
    qemu_mutex_destroy(&vm->trace_lock);
    vpmu_filter_free(vm->filter);
    g_free(vm->filter_arg);
    g_free(vm->trace_arg);
    vpmu_uarch_free(vm->uarch);
    g_free(vm->uarch_arg);
    g_free(vm->uarch_params_arg);
    g_free(vm);
}

static bool vpmu_policy_of(const char *arg, VpmuHostPolicy *policy,
                           Error **errp)
{
    int value = VPMU_HOST_POLICY_SHARED;

    if (arg) {
        value = qapi_enum_parse(&VpmuHostPolicy_lookup, arg, -1, NULL);
    }
    if (value < 0) {
        error_setg(errp, "pmu-policy=%s: needed: direct, shared or mediated",
                   arg);
        return false;
    }
    *policy = value;
    return true;
}

/* A property that must be the same on all vCPUs */
typedef struct VPMUSame {
    VpmuHostPolicy policy;
    uint32_t pv_abi;
    uint32_t pv_calls;
} VPMUSame;

/* Create a modelled CPU if one was asked for */
static bool vpmu_uarch_given(VPMUVm *vm, const struct vpmu_model *model,
                             Error **errp)
{
    const char *mode = vm->uarch_arg ?: "off";
    bool off = !strcmp(mode, "off");

    if (off && vm->uarch_params_arg) {
        error_setg(errp, "pmu-uarch-params: found pmu-uarch=off, needed "
                   "pmu-uarch=on");
        return false;
    }
    if (!off) {
        vm->uarch = vpmu_uarch_new(mode, vm->uarch_params_arg, model,
                                   errp);
    }
    return off || vm->uarch;
}

static VPMUVm *vpmu_vm_new(X86CPU *cpu, const VPMUSame *same,
                           const struct vpmu_model *model,
                           const struct vpmu_ops *ops, Error **errp)
{
    VPMUVm *vm = g_new0(VPMUVm, 1);

    vm->policy = same->policy;
    vm->arch = cpu->enable_pmu;
    vm->pv_abi = same->pv_abi;
    vm->pv_calls = same->pv_calls;
    vm->pv_events = cpu->vpmu_props.pv_events;
    vm->pv_slots = cpu->vpmu_props.pv_slots;
    vm->pv_period = cpu->vpmu_props.pv_period;
    vm->filter_arg = g_strdup(vpmu_given(cpu->vpmu_props.filter));
    vm->trace_arg = g_strdup(vpmu_given(cpu->vpmu_props.trace));
    vm->uarch_arg = g_strdup(vpmu_given(cpu->vpmu_props.uarch));
    vm->uarch_params_arg = g_strdup(vpmu_given(cpu->vpmu_props.uarch_params));
    vm->ops = *ops;
    vpmu_pv_hooks(&vm->ops);
    QTAILQ_INIT(&vm->events);
    qemu_mutex_init(&vm->trace_lock);
    if (!vpmu_uarch_given(vm, model, errp)) {
        goto fail;
    }
    if (!vm->uarch || vm->uarch->user_only) {
        vm->ops.finish_lbr = NULL;
    }
    vpmu_perf_system_init(&vm->system, model, vpmu_supplied(vm),
                          VPMU_TSC_HZ, VPMU_MUX_CYCLES);
    if (vm->filter_arg && strcmp(vm->filter_arg, "none")) {
        vm->filter = vpmu_filter_parse(vm->filter_arg, model, errp);
        if (!vm->filter) {
            goto fail;
        }
    }
    if (vm->trace_arg && !vpmu_trace_open(vm, errp)) {
        goto fail;
    }
    return vm;
fail:
    vpmu_vm_free(vm);
    return NULL;
}

/* Compare a property of the first vCPU with that of another one */
static bool vpmu_same(const char *name, const char *found, const char *needed,
                      Error **errp)
{
    if (!g_strcmp0(found, needed)) {
        return true;
    }
    error_setg(errp, "%s: found %s, needed %s as on the other vCPUs: give it "
               "with -cpu, for all", name, found ? found : "none",
               needed ? needed : "none");
    return false;
}

static bool vpmu_same_number(const char *name, uint64_t found, uint64_t needed,
                             Error **errp)
{
    g_autofree char *a = g_strdup_printf("%" PRIu64, found);
    g_autofree char *b = g_strdup_printf("%" PRIu64, needed);

    return vpmu_same(name, a, b, errp);
}

static bool vpmu_same_pv(const VPMUVm *vm, X86CPU *cpu, uint32_t abi,
                         Error **errp)
{
    static const char *const names[] = { "off", "v1", "v2", "both" };
    X86VPMUProps *p = &cpu->vpmu_props;

    return vpmu_same("pmu", cpu->enable_pmu ? "on" : "off",
                     vm->arch ? "on" : "off", errp) &&
           vpmu_same("pmu-pv", names[abi], names[vm->pv_abi], errp) &&
           vpmu_same_number("pmu-pv-events", p->pv_events, vm->pv_events,
                            errp) &&
           vpmu_same_number("pmu-pv-slots", p->pv_slots, vm->pv_slots, errp) &&
           vpmu_same_number("pmu-pv-period", p->pv_period, vm->pv_period,
                            errp);
}

VPMUVm *vpmu_vm_get(X86CPU *cpu, const struct vpmu_model *model,
                    const struct vpmu_ops *ops, Error **errp)
{
    X86VPMUProps *p = &cpu->vpmu_props;
    VPMUVm *vm = the_vm;
    VPMUSame same;

    if (!vpmu_policy_of(vpmu_given(p->policy), &same.policy, errp) ||
        !vpmu_pv_parse(vpmu_given(p->pv), &same.pv_abi, errp) ||
        !vpmu_pv_parse_calls(vpmu_given(p->pv_call), &same.pv_calls, errp)) {
        return NULL;
    }
    if (!vm) {
        vm = vpmu_vm_new(cpu, &same, model, ops, errp);
        if (!vm) {
            return NULL;
        }
        the_vm = vm;
    } else if (!vpmu_same("pmu-policy", VpmuHostPolicy_str(same.policy),
                          VpmuHostPolicy_str(vm->policy), errp) ||
               !vpmu_same_pv(vm, cpu, same.pv_abi, errp) ||
               !vpmu_same_number("pmu-pv-call", same.pv_calls, vm->pv_calls,
                                 errp) ||
               !vpmu_same("pmu-filter", vpmu_given(p->filter),
                          vm->filter_arg, errp) ||
               !vpmu_same("pmu-trace", vpmu_given(p->trace),
                          vm->trace_arg, errp) ||
               !vpmu_same("pmu-uarch", vpmu_given(p->uarch), vm->uarch_arg,
                          errp) ||
               !vpmu_same("pmu-uarch-params", vpmu_given(p->uarch_params),
                          vm->uarch_params_arg, errp) ||
               !vpmu_same("the PMU's model", model->name,
                          vm->system.model->name, errp)) {
        return NULL;
    }
    vm->n_cpus++;
    return vm;
}

void vpmu_vm_put(VPMUVm *vm)
{
    if (--vm->n_cpus == 0) {
        the_vm = NULL;
        vpmu_vm_free(vm);
    }
}
