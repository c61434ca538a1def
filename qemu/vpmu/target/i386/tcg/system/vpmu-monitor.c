/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring units of a VM under TCG: the monitor's queries
 * and changes. Each vCPU answers on its own thread, between two blocks.
 */

#include "qemu/osdep.h"
#include "hw/core/cpu.h"
#include "monitor/hmp.h"
#include "monitor/hmp-target.h"
#include "monitor/monitor.h"
#include "qapi/error.h"
#include "qobject/qdict.h"
#include "vpmu-internal.h"

QEMU_BUILD_BUG_ON((int)VPMU_HOST_POLICY_DIRECT != VPMU_POLICY_DIRECT ||
                  (int)VPMU_HOST_POLICY_SHARED != VPMU_POLICY_SHARED ||
                  (int)VPMU_HOST_POLICY_MEDIATED != VPMU_POLICY_MEDIATED);
QEMU_BUILD_BUG_ON((int)VPMU_EVENT_STATE_ACTIVE != VPMU_EVENT_ACTIVE ||
                  (int)VPMU_EVENT_STATE_INACTIVE != VPMU_EVENT_INACTIVE ||
                  (int)VPMU_EVENT_STATE_ERROR != VPMU_EVENT_ERROR);
QEMU_BUILD_BUG_ON((int)VPMU_LOSS_REASON_LOST != VPMU_LOSS_LOST ||
                  (int)VPMU_LOSS_REASON_FILTERED != VPMU_LOSS_FILTERED ||
                  (int)VPMU_LOSS_REASON_NOT_COUNTED != VPMU_LOSS_NOT_COUNTED);

typedef struct VPMUWork {
    void (*func)(X86VPMU *v, void *data);
    void *data;
} VPMUWork;

/* A vCPU that is halted has not noticed yet that others closed its events */
static void vpmu_work_on_cpu(CPUState *cs, run_on_cpu_data data)
{
    X86VPMU *v = X86_CPU(cs)->vpmu;
    const VPMUWork *work = data.host_ptr;

    vpmu_serve(v);
    work->func(v, work->data);
    vpmu_serve(v);
}

static void vpmu_do(X86VPMU *v, void (*func)(X86VPMU *v, void *data),
                    void *data)
{
    VPMUWork work = { func, data };

    run_on_cpu(CPU(v->cpu), vpmu_work_on_cpu, RUN_ON_CPU_HOST_PTR(&work));
}

/* The guest's side */

static VpmuCounter *vpmu_query_counter(X86VPMU *v, unsigned int pmc)
{
    static const char *const quality[] = {
        "none", "exact", "defined", "modelled"
    };
    struct vpmu_pmc_info info;
    VpmuCounter *c;

    if (!vpmu_arch_pmc_info(v->arch, pmc, &info)) {
        return NULL;
    }
    c = g_new0(VpmuCounter, 1);
    c->pmc = pmc;
    c->select = g_strdup_printf("0x%" PRIx64, info.select);
    c->value = info.value;
    c->enabled = info.enabled;
    c->state = (VpmuEventState)info.state;
    c->quality = g_strdup(quality[info.quality]);
    c->loss = (VpmuLossReason)info.loss;
    c->generation = info.generation;
    c->time_enabled = info.time_enabled;
    c->time_running = info.time_running;
    return c;
}

static VpmuSlot *vpmu_query_slot(X86VPMU *v, unsigned int slot)
{
    const struct vpmu_perf_event *host;
    const struct vpmu_event *ev = NULL;
    VpmuSlot *s = g_new0(VpmuSlot, 1);

    if (vpmu_is_direct(v)) {
        if (v->direct.enabled >> slot & 1) {
            ev = v->direct.event[slot];
        }
    } else {
        host = vpmu_perf_owner(&v->host, slot);
        ev = host ? &host->head : NULL;
    }
    s->slot = slot;
    if (ev) {
        /* Only the guest's events have a provider */
        s->owner = ev->provider ? VPMU_SLOT_OWNER_GUEST : VPMU_SLOT_OWNER_HOST;
        s->has_number = true;
        s->number = ev->index;
    }
    return s;
}

static VpmuBranchRecords *vpmu_query_lbr(X86VPMU *v)
{
    const struct vpmu_perf_event *host = NULL;
    struct vpmu_lbr_info info;
    VpmuBranchRecords *r;

    if (!v->arch || !vpmu_arch_lbr_info(v->arch, &info)) {
        return NULL;
    }
    r = g_new0(VpmuBranchRecords, 1);
    if (!vpmu_is_direct(v)) {
        host = vpmu_perf_shared_owner(&v->host, VPMU_SHARED_LBR);
    }
    if (info.owned || (host && host->head.provider)) {
        r->owner = VPMU_SLOT_OWNER_GUEST;
    } else if (host) {
        r->owner = VPMU_SLOT_OWNER_HOST;
    }
    r->loss = (VpmuLossReason)info.loss;
    r->generation = info.generation;
    return r;
}

/* Selectors that are programmed but not counted, of all vCPUs together */
static void vpmu_query_uncounted(VpmuUncountedList **list, const struct vpmu_uncounted *row)
{
    g_autofree char *select = g_strdup_printf("0x%" PRIx64, row->select);
    VpmuUncounted *t;

    for (; *list; list = &(*list)->next) {
        if (!strcmp((*list)->value->select, select)) {
            (*list)->value->count += row->times;
            return;
        }
    }
    t = g_new0(VpmuUncounted, 1);
    t->select = g_steal_pointer(&select);
    t->name = g_strdup(row->name);
    t->cure = g_strdup(row->needs);
    t->count = row->times;
    QAPI_LIST_APPEND(list, t);
}

static VpmuHypercalls *vpmu_query_calls(const X86VPMU *v)
{
    VpmuHypercalls *h = g_new0(VpmuHypercalls, 1);

    h->version = v->n_calls[VPMU_CALL_VERSION];
    h->setup = v->n_calls[VPMU_CALL_SETUP];
    h->batch = v->n_calls[VPMU_CALL_BATCH];
    h->reset = v->n_calls[VPMU_CALL_RESET];
    h->open = v->n_calls[VPMU_CALL_OPEN];
    h->close = v->n_calls[VPMU_CALL_CLOSE];
    h->enable = v->n_calls[VPMU_CALL_ENABLE];
    h->disable = v->n_calls[VPMU_CALL_DISABLE];
    h->read = v->n_calls[VPMU_CALL_READ];
    h->other = v->n_calls[VPMU_CALL_OTHER];
    h->doorbell = v->n_calls[VPMU_CALL_DOORBELL];
    return h;
}

static VpmuUarchCountList *vpmu_query_uarch(X86VPMU *v)
{
    VpmuUarchCountList *list = NULL, **tail = &list;
    VpmuUarchCount *n;

    vpmu_stream_drain(v);
    for (int c = 0; c < VPMU_UARCH_COUNTS; c++) {
        n = g_new0(VpmuUarchCount, 1);
        n->name = g_strdup(vpmu_uarch_name(c));
        n->kernel = vpmu_uarch_total(v, c, VPMU_BANK_KERNEL);
        n->user = vpmu_uarch_total(v, c, VPMU_BANK_USER);
        n->nested_kernel = vpmu_uarch_total(v, c, VPMU_BANK_NESTED_KERNEL);
        n->nested_user = vpmu_uarch_total(v, c, VPMU_BANK_NESTED_USER);
        QAPI_LIST_APPEND(tail, n);
    }
    return list;
}

typedef struct VPMUQuery {
    VpmuInfo *info;
    VpmuCpu *cpu;
} VPMUQuery;

static void vpmu_query_cpu(X86VPMU *v, void *data)
{
    const struct vpmu_model *model = v->vm->system.model;
    VPMUQuery *q = data;
    VpmuCounterList **counters = &q->cpu->counters;
    VpmuSlotList **slots = &q->cpu->slots;
    struct vpmu_uncounted row;
    VpmuCounter *c;

    q->cpu->index = CPU(v->cpu)->cpu_index;
    q->cpu->pmis = v->n_pmis;
    q->cpu->deadlines = v->n_expired;
    q->cpu->exits = g_new0(VpmuExits, 1);
    q->cpu->exits->rdmsr = v->n_exits[VPMU_TRACE_RDMSR];
    q->cpu->exits->wrmsr = v->n_exits[VPMU_TRACE_WRMSR];
    q->cpu->exits->rdpmc = v->n_exits[VPMU_TRACE_RDPMC];
    q->cpu->exits->hypercall = vpmu_query_calls(v);
    for (unsigned int i = 0; i < model->n_gp + model->n_fixed; i++) {
        QAPI_LIST_APPEND(slots, vpmu_query_slot(v, i));
    }
    for (unsigned int i = 0; v->arch && (c = vpmu_query_counter(v, i)); i++) {
        QAPI_LIST_APPEND(counters, c);
        q->cpu->generation += c->generation;
    }
    for (size_t i = 0; v->arch && vpmu_arch_uncounted(v->arch, i, &row); i++) {
        vpmu_query_uncounted(&q->info->uncounted, &row);
    }
    q->cpu->branch_records = vpmu_query_lbr(v);
    if (v->uarch.model) {
        q->cpu->has_uarch = true;
        q->cpu->uarch = vpmu_query_uarch(v);
    }
}

/* The paravirtual PMU: of the VM, by the hooks of one of its vCPUs */

static VpmuPvEvent *vpmu_query_pv_event(const struct vpmu_pv_info *info)
{
    VpmuPvEvent *e = g_new0(VpmuPvEvent, 1);

    e->id = info->id;
    e->abi = info->abi == VPMU_PV_ABI_1 ? 1 : 2;
    e->type = info->type;
    e->config = g_strdup_printf("0x%" PRIx64, info->config);
    e->has_cpu = info->vcpu >= 0;
    e->cpu = info->vcpu;
    e->loss = (VpmuLossReason)info->loss;
    e->throttled = info->throttled;
    e->count = info->count;
    e->time_enabled = info->time_enabled;
    e->time_running = info->time_running;
    e->overflows = info->overflows;
    return e;
}

static void vpmu_query_pv(X86VPMU *v, VpmuInfo *info)
{
    static const char *const names[] = { "off", "v1", "v2", "both" };
    VpmuPvEventList **tail;
    struct vpmu_pv_info event;
    struct vpmu_uncounted row;

    info->pv = g_new0(VpmuPv, 1);
    info->pv->abi = g_strdup(names[v->vm->pv_abi]);
    info->pv->limit = v->vm->pv_events;
    tail = &info->pv->events;
    for (uint32_t i = 0; i < v->vm->pv_events; i++) {
        if (vpmu_pv_event_info(v->pv, i, &event)) {
            QAPI_LIST_APPEND(tail, vpmu_query_pv_event(&event));
        }
    }
    for (size_t i = 0; vpmu_pv_uncounted(v->pv, i, &row); i++) {
        vpmu_query_uncounted(&info->uncounted, &row);
    }
}

VpmuInfo *qmp_x_query_vpmu(Error **errp)
{
    VpmuInfo *info = g_new0(VpmuInfo, 1);
    VpmuCpuList **tail = &info->cpus;
    VPMUVm *vm = vpmu_vm();
    CPUState *cs;

    if (vm) {
        info->has_policy = info->has_clock_hz = true;
        info->policy = vm->policy;
        info->clock_hz = VPMU_TSC_HZ;
    }
    info->filter = g_strdup(vm && vm->filter ? vm->filter->spec : "none");
    CPU_FOREACH(cs) {
        if (X86_CPU(cs)->vpmu) {
            VPMUQuery q = { .info = info, .cpu = g_new0(VpmuCpu, 1) };

            vpmu_do(X86_CPU(cs)->vpmu, vpmu_query_cpu, &q);
            QAPI_LIST_APPEND(tail, q.cpu);
            if (X86_CPU(cs)->vpmu->pv && !info->pv) {
                vpmu_query_pv(X86_CPU(cs)->vpmu, info);
            }
        }
    }
    return info;
}

/* Host events */

static VPMUHostEvent *vpmu_host_event_find(uint32_t id, Error **errp)
{
    VPMUVm *vm = vpmu_vm();
    VPMUHostEvent *e;

    if (vm) {
        QTAILQ_FOREACH(e, &vm->events, next) {
            if (e->id == id) {
                return e;
            }
        }
    }
    error_setg(errp, "host event %" PRIu32 ": there is no such event; those "
               "that exist are told by x-query-vpmu-host-events", id);
    return NULL;
}

/* @n_cpus: highest index plus one */
static X86VPMU *vpmu_by_index(int index, int *n_cpus)
{
    X86VPMU *found = NULL;
    CPUState *cs;

    *n_cpus = 0;
    CPU_FOREACH(cs) {
        if (X86_CPU(cs)->vpmu) {
            *n_cpus = MAX(*n_cpus, cs->cpu_index + 1);
            if (cs->cpu_index == index) {
                found = X86_CPU(cs)->vpmu;
            }
        }
    }
    return found;
}

/* Arguments of an open on the vCPU's own thread */
typedef struct VPMUOpen {
    VPMUHostEvent *e;
    const struct vpmu_perf_attr *attr;
    int ret;
} VPMUOpen;

static void vpmu_open_on_cpu(X86VPMU *v, void *data)
{
    VPMUOpen *o = data;

    o->ret = vpmu_perf_open(&o->e->event, o->attr, &v->host,
                            o->e->task ? &v->vcpu.task : NULL);
}

static void vpmu_open_error(Error **errp, const char *spec, int ret)
{
    const char *why;

    switch (-ret) {
    case VPMU_EOPNOTSUPP:
        why = "it would count the guest, and with pmu-policy=mediated the "
              "guest owns all counters while it runs; needed: an event that "
              "excludes guests (option H), or pmu-policy=shared";
        break;
    case VPMU_ENOENT:
        why = "no counter here counts this event; needed: one that "
              "'vpmu list' calls exact";
        break;
    case VPMU_EINVAL:
        why = "its options exclude each other, or it fits on no counter";
        break;
    default:
        why = strerror(-ret);
        break;
    }
    error_setg(errp, "host event '%s': %s", spec, why);
}

static bool vpmu_host_event_parse(VPMUVm *vm, const char *spec,
                                  struct vpmu_host_event *out, X86VPMU **v,
                                  Error **errp)
{
    struct vpmu_spec_error err = { };
    int n_cpus;

    vpmu_by_index(0, &n_cpus);
    if (vpmu_spec_host_event(spec, vm->system.model, n_cpus, out, &err)) {
        vpmu_spec_error_setg(errp, "host event", spec, &err);
        return false;
    }
    *v = vpmu_by_index(out->cpu, &n_cpus);
    if (!*v) {
        error_setg(errp, "host event '%s': there is no vCPU %" PRIu32, spec,
                   out->cpu);
        return false;
    }
    return true;
}

VpmuHostEventId *qmp_x_vpmu_host_event_add(const char *spec, Error **errp)
{
    VPMUVm *vm = vpmu_vm();
    struct vpmu_host_event parsed = { };
    VPMUOpen o = { .attr = &parsed.attr };
    VpmuHostEventId *id;
    VPMUHostEvent *e;
    X86VPMU *v;

    if (!vm || vm->policy == VPMU_HOST_POLICY_DIRECT) {
        error_setg(errp, "host event '%s': found %s, needed a PMU with "
                   "pmu-policy=shared or mediated", spec,
                   vm ? "pmu-policy=direct, where the guest owns the counters"
                      : "no PMU");
        return NULL;
    }
    if (vm->n_events >= VPMU_HOST_EVENTS_MAX) {
        error_setg(errp, "host event '%s': there are %d already, the most; "
                   "remove one first", spec, VPMU_HOST_EVENTS_MAX);
        return NULL;
    }
    if (!vpmu_host_event_parse(vm, spec, &parsed, &v, errp)) {
        return NULL;
    }
    parsed.attr.id = vm->last_id + 1;
    e = g_new0(VPMUHostEvent, 1);
    e->v = v;
    e->id = e->event.head.index = parsed.attr.id;
    e->task = parsed.task;
    o.e = e;
    vpmu_do(v, vpmu_open_on_cpu, &o);
    if (o.ret) {
        vpmu_open_error(errp, spec, o.ret);
        g_free(e);
        return NULL;
    }
    e->spec = g_strdup(spec);
    vm->last_id = e->id;
    vm->n_events++;
    QTAILQ_INSERT_TAIL(&vm->events, e, next);

    id = g_new0(VpmuHostEventId, 1);
    id->id = e->id;
    return id;
}

static void vpmu_host_event_free(VPMUHostEvent *e)
{
    VPMUVm *vm = e->v->vm;

    QTAILQ_REMOVE(&vm->events, e, next);
    vm->n_events--;
    g_free(e->spec);
    g_free(e);
}

static void vpmu_close_on_cpu(X86VPMU *v, void *data)
{
    VPMUHostEvent *e = data;

    vpmu_perf_close(&e->event);
}

void qmp_x_vpmu_host_event_remove(uint32_t id, Error **errp)
{
    VPMUHostEvent *e = vpmu_host_event_find(id, errp);

    if (e) {
        vpmu_do(e->v, vpmu_close_on_cpu, e);
        vpmu_host_event_free(e);
    }
}

void vpmu_host_events_close(X86VPMU *v)
{
    VPMUHostEvent *e, *next;

    QTAILQ_FOREACH_SAFE(e, &v->vm->events, next, next) {
        if (e->v == v) {
            vpmu_perf_close(&e->event);
            vpmu_host_event_free(e);
        }
    }
}

static void vpmu_enable_on_cpu(X86VPMU *v, void *data)
{
    VPMUHostEvent *e = data;

    vpmu_perf_enable(&e->event); /* the event's state shows the outcome */
}

static void vpmu_disable_on_cpu(X86VPMU *v, void *data)
{
    VPMUHostEvent *e = data;

    vpmu_perf_disable(&e->event);
}

void qmp_x_vpmu_host_event_set(uint32_t id, bool enabled, Error **errp)
{
    VPMUHostEvent *e = vpmu_host_event_find(id, errp);

    if (e) {
        vpmu_do(e->v, enabled ? vpmu_enable_on_cpu : vpmu_disable_on_cpu, e);
    }
}

typedef struct VPMURead {
    VPMUHostEvent *e;
    struct vpmu_perf_value value;
} VPMURead;

static void vpmu_read_on_cpu(X86VPMU *v, void *data)
{
    VPMURead *r = data;

    vpmu_perf_read(&r->e->event, &r->value);
}

VpmuHostEventList *qmp_x_query_vpmu_host_events(Error **errp)
{
    VpmuHostEventList *list = NULL, **tail = &list;
    VPMUVm *vm = vpmu_vm();
    VPMUHostEvent *e;

    if (!vm) {
        return NULL;
    }
    QTAILQ_FOREACH(e, &vm->events, next) {
        VpmuHostEvent *out = g_new0(VpmuHostEvent, 1);
        VPMURead r = { .e = e };

        vpmu_do(e->v, vpmu_read_on_cpu, &r);
        out->id = e->id;
        out->spec = g_strdup(e->spec);
        out->cpu = CPU(e->v->cpu)->cpu_index;
        out->task = e->task;
        out->state = (VpmuEventState)r.value.state;
        out->count = r.value.count;
        out->time_enabled = r.value.enabled;
        out->time_running = r.value.running;
        out->overflows = r.value.overflows;
        QAPI_LIST_APPEND(tail, out);
    }
    return list;
}

/* Event filter */

static void vpmu_filter_on_cpu(X86VPMU *v, void *data)
{
    const VPMUFilter *f = data;

    /* The parsed filter has been checked */
    if (vpmu_arch_filter(v->arch, f ? &f->filter : NULL)) {
        g_assert_not_reached();
    }
}

void qmp_x_vpmu_filter(const char *spec, Error **errp)
{
    VPMUVm *vm = vpmu_vm();
    VPMUFilter *f = NULL;
    CPUState *cs;

    if (!vm) {
        error_setg(errp, "event filter '%s': found no PMU, needed pmu=on",
                   spec);
        return;
    }
    if (vm->pv) {
        error_setg(errp, "event filter '%s': that of a paravirtual PMU stays "
                   "as long as the VM: give it with -cpu ...,pmu-filter",
                   spec);
        return;
    }
    if (strcmp(spec, "none")) {
        f = vpmu_filter_parse(spec, vm->system.model, errp);
        if (!f) {
            return;
        }
    }
    CPU_FOREACH(cs) {
        if (X86_CPU(cs)->vpmu) {
            vpmu_do(X86_CPU(cs)->vpmu, vpmu_filter_on_cpu, f);
        }
    }
    vpmu_filter_free(vm->filter);
    vm->filter = f;
}

/* HMP */

static uint64_t vpmu_calls(const VpmuHypercalls *h)
{
    return h->version + h->setup + h->batch + h->reset + h->open + h->close +
           h->enable + h->disable + h->read + h->other +
           h->doorbell;
}

static void vpmu_print_pv(Monitor *mon, const VpmuPv *pv)
{
    monitor_printf(mon, "paravirtual PMU %s, %" PRIu32 " events at most\n",
                   pv->abi, pv->limit);
    for (VpmuPvEventList *l = pv->events; l; l = l->next) {
        const VpmuPvEvent *e = l->value;

        monitor_printf(mon, "  %6u type %u config %s vCPU %" PRId64 ": %" PRIu64
                       ", %u overflows, %s%s, %" PRIu64 "/%" PRIu64 "\n",
                       e->id, e->type, e->config, e->has_cpu ? e->cpu : -1,
                       e->count, e->overflows, VpmuLossReason_str(e->loss),
                       e->throttled ? ", throttled" : "", e->time_running,
                       e->time_enabled);
    }
}

static void vpmu_print_cpu(Monitor *mon, const VpmuCpu *c)
{
    monitor_printf(mon, "vCPU %" PRId64 ": %" PRIu64 " PMIs, %" PRIu64
                   " deadlines, %" PRIu64 " RDMSR, %" PRIu64 " WRMSR, %" PRIu64
                   " RDPMC, %" PRIu64 " hypercalls\n", c->index, c->pmis,
                   c->deadlines, c->exits->rdmsr, c->exits->wrmsr,
                   c->exits->rdpmc, vpmu_calls(c->exits->hypercall));
    monitor_printf(mon, "  %3s %10s %20s %-8s %-8s %-11s %s\n", "pmc", "select",
                   "value", "state", "quality", "loss", "running/enabled");
    for (VpmuCounterList *l = c->counters; l; l = l->next) {
        const VpmuCounter *p = l->value;

        monitor_printf(mon, "  %3u %10s %20" PRIu64 " %-8s %-8s %-11s %" PRIu64
                       "/%" PRIu64 "\n", p->pmc, p->select, p->value,
                       VpmuEventState_str(p->state), p->quality,
                       VpmuLossReason_str(p->loss), p->time_running,
                       p->time_enabled);
    }
    monitor_printf(mon, "  counters of its CPU:");
    for (VpmuSlotList *l = c->slots; l; l = l->next) {
        const VpmuSlot *s = l->value;

        if (s->has_number) {
            monitor_printf(mon, " %s:%u", VpmuSlotOwner_str(s->owner),
                           s->number);
        } else {
            monitor_printf(mon, " -");
        }
    }
    if (c->branch_records) {
        const VpmuBranchRecords *r = c->branch_records;

        monitor_printf(mon, "\n  branch records: %s, %s, generation %u",
                       VpmuSlotOwner_str(r->owner), VpmuLossReason_str(r->loss),
                       r->generation);
    }
    monitor_printf(mon, "\n");
}

void hmp_info_vpmu(Monitor *mon, const QDict *qdict)
{
    g_autoptr(VpmuInfo) info = qmp_x_query_vpmu(&error_abort);

    if (!info->has_policy) {
        monitor_printf(mon, "no vCPU has a PMU under TCG (pmu=on, pmu-pv)\n");
        return;
    }
    monitor_printf(mon, "policy %s, filter %s, times at %" PRIu64 " Hz\n",
                   VpmuHostPolicy_str(info->policy), info->filter,
                   info->clock_hz);
    for (VpmuCpuList *l = info->cpus; l; l = l->next) {
        vpmu_print_cpu(mon, l->value);
    }
    if (info->pv) {
        vpmu_print_pv(mon, info->pv);
    }
    for (VpmuUncountedList *l = info->uncounted; l; l = l->next) {
        monitor_printf(mon, "not counted: %s %s, enabled %" PRIu64 " times\n",
                       l->value->select, l->value->name ?: "",
                       l->value->count);
    }
}

void hmp_info_vpmu_host_events(Monitor *mon, const QDict *qdict)
{
    g_autoptr(VpmuHostEventList) list =
        qmp_x_query_vpmu_host_events(&error_abort);

    monitor_printf(mon, "%4s %-8s %20s %9s %s\n", "id", "state", "count",
                   "overflows", "spec, running/enabled");
    for (VpmuHostEventList *l = list; l; l = l->next) {
        const VpmuHostEvent *e = l->value;

        monitor_printf(mon, "%4u %-8s %20" PRIu64 " %9" PRIu64 " %s, %" PRIu64
                       "/%" PRIu64 "\n", e->id, VpmuEventState_str(e->state),
                       e->count, e->overflows, e->spec, e->time_running,
                       e->time_enabled);
    }
}

void hmp_vpmu_host_event_add(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;
    g_autoptr(VpmuHostEventId) id =
        qmp_x_vpmu_host_event_add(qdict_get_str(qdict, "spec"), &err);

    if (id) {
        monitor_printf(mon, "%u\n", id->id);
    }
    hmp_handle_error(mon, err);
}

void hmp_vpmu_host_event_remove(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;

    qmp_x_vpmu_host_event_remove(qdict_get_int(qdict, "id"), &err);
    hmp_handle_error(mon, err);
}

void hmp_vpmu_host_event_set(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;

    qmp_x_vpmu_host_event_set(qdict_get_int(qdict, "id"),
                              qdict_get_bool(qdict, "enabled"), &err);
    hmp_handle_error(mon, err);
}

void hmp_vpmu_filter(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;

    qmp_x_vpmu_filter(qdict_get_str(qdict, "spec"), &err);
    hmp_handle_error(mon, err);
}
