/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The paravirtual performance monitoring unit of a VM under TCG: guest
 * memory, set-up and migration.
 */

#include "qemu/osdep.h"
#include "qemu/units.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qapi/error.h"
#include "hw/boards.h"
#include "hw/i386/apic.h"
#include "migration/vmstate.h"
#include "system/cpus.h"
#include "system/reset.h"
#include "system/runstate.h"
#include "vpmu-internal.h"

/* No saved state is longer, with any number of events */
#define VPMU_PV_STATE_MAX (8 * MiB)

/* KVM's block of CPUID leaves, which offers version 1 and nothing else */
#define VPMU_KVM_SIGNATURE_EBX 0x4b4d564bu /* "KVMK" */
#define VPMU_KVM_SIGNATURE_ECX 0x564b4d56u /* "VMKV" */
#define VPMU_KVM_SIGNATURE_EDX 0x0000004du /* "M" */

/*
 * Guest memory is RAM as devices see it, from any vCPU and in any mode, and
 * nothing that a device backs.
 */
#define VPMU_RAM ((MemTxAttrs) { .memory = 1 })

static int vpmu_op_gpa_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
    return address_space_read(&address_space_memory, gpa, VPMU_RAM, buf, size)
               ? -VPMU_EFAULT : 0;
}

static int vpmu_op_gpa_write(void *ctx, uint64_t gpa, const void *buf,
                             uint32_t size)
{
    return address_space_write(&address_space_memory, gpa, VPMU_RAM, buf, size)
               ? -VPMU_EFAULT : 0;
}

static void *vpmu_op_gpa_map(void *ctx, uint64_t gpa, uint32_t size)
{
    hwaddr at, len = size;
    MemoryRegion *mr;

    RCU_READ_LOCK_GUARD();
    mr = address_space_translate(&address_space_memory, gpa, &at, &len, true,
                                 VPMU_RAM);
    if (len < size || !memory_access_is_direct(mr, true, VPMU_RAM)) {
        return NULL;
    }
    memory_region_ref(mr);
    return qemu_map_ram_ptr(mr->ram_block, at);
}

/* This may drop the last reference, which needs the BQL. */
static void vpmu_op_gpa_unmap(void *ctx, void *at, uint32_t size)
{
    BQL_LOCK_GUARD();
    address_space_unmap(&address_space_memory, at, size, true, size);
}

static void vpmu_op_gpa_dirty(void *ctx, void *at, uint32_t size)
{
    MemoryRegion *mr;
    ram_addr_t start;
    uint8_t clean;

    RCU_READ_LOCK_GUARD();
    mr = memory_region_from_host(at, &start); /* never NULL: it is mapped */
    start += memory_region_get_ram_addr(mr);
    clean = memory_region_get_dirty_log_mask(mr);
    if (clean) {
        clean = physical_memory_range_includes_clean(start, size, clean);
    }
    if (clean & (1 << DIRTY_MEMORY_CODE)) {
        tb_invalidate_phys_range(NULL, start, start + size - 1);
        clean &= ~(1 << DIRTY_MEMORY_CODE);
    }
    physical_memory_set_dirty_range(start, size, clean);
}

static void vpmu_op_inject(void *ctx, uint8_t vector)
{
    X86VPMU *v = ctx;

    v->n_pmis++;
    BQL_LOCK_GUARD();
    if (!vector) {
        cpu_interrupt(CPU(v->cpu), CPU_INTERRUPT_NMI);
    } else if (v->cpu->apic_state) {
        apic_deliver_vector(v->cpu->apic_state, vector);
    }
}

static void vpmu_op_lock(void *ctx)
{
    X86VPMU *v = ctx;

    qemu_mutex_lock(&v->vm->pv_lock);
}

static void vpmu_op_unlock(void *ctx)
{
    X86VPMU *v = ctx;

    qemu_mutex_unlock(&v->vm->pv_lock);
}

void vpmu_pv_hooks(struct vpmu_ops *ops)
{
    ops->gpa_read = vpmu_op_gpa_read;
    ops->gpa_write = vpmu_op_gpa_write;
    ops->gpa_map = vpmu_op_gpa_map;
    ops->gpa_unmap = vpmu_op_gpa_unmap;
    ops->gpa_dirty = vpmu_op_gpa_dirty;
    ops->inject = vpmu_op_inject;
    ops->lock = vpmu_op_lock;
    ops->unlock = vpmu_op_unlock;
}

/* CPUID */

bool vpmu_pv_kvm_cpuid(const X86VPMU *v, uint32_t leaf, struct vpmu_cpuid *regs)
{
    if (!(v->vm->pv_abi & VPMU_PV_ABI_1)) {
        return false;
    }
    switch (leaf) {
    case X86_VPMU_CPUID_KVM:
        regs->eax = X86_VPMU_CPUID_KVM + 1;
        regs->ebx = VPMU_KVM_SIGNATURE_EBX;
        regs->ecx = VPMU_KVM_SIGNATURE_ECX;
        regs->edx = VPMU_KVM_SIGNATURE_EDX;
        return true;
    case X86_VPMU_CPUID_KVM + 1:
        regs->eax = 1u << VPMU_PV1_FEATURE;
        return true;
    default:
        return false;
    }
}

VPMUCall vpmu_pv_call(const struct vpmu_hypercall *call)
{
    static const VPMUCall version_1[] = {
        [VPMU_PV1_OPEN] = VPMU_CALL_OPEN,
        [VPMU_PV1_CLOSE] = VPMU_CALL_CLOSE,
        [VPMU_PV1_ENABLE] = VPMU_CALL_ENABLE,
        [VPMU_PV1_DISABLE] = VPMU_CALL_DISABLE,
        [VPMU_PV1_READ] = VPMU_CALL_READ,
    };
    static const VPMUCall version_2[] = {
        [VPMU_PV_OP_VERSION] = VPMU_CALL_VERSION,
        [VPMU_PV_OP_SETUP] = VPMU_CALL_SETUP,
        [VPMU_PV_OP_BATCH] = VPMU_CALL_BATCH,
        [VPMU_PV_OP_RESET] = VPMU_CALL_RESET,
    };
    uint32_t op = call->arg[0];

    switch ((uint32_t)call->nr) {
    case VPMU_PV1_HYPERCALL:
        return op >= VPMU_PV1_OPEN && op < ARRAY_SIZE(version_1)
                   ? version_1[op] : VPMU_CALL_OTHER;
    case VPMU_PV_HYPERCALL:
        return op < ARRAY_SIZE(version_2) ? version_2[op] : VPMU_CALL_OTHER;
    default:
        return VPMU_CALL_OTHER;
    }
}

/* Configuration */

typedef struct VPMUName {
    const char *name;
    uint32_t value;
} VPMUName;

static bool vpmu_pv_parse_names(const char *what, const char *arg,
                                const VPMUName *names, int n,
                                const char *needed, uint32_t *value,
                                Error **errp)
{
    *value = names[0].value;
    if (!arg) {
        return true;
    }
    for (int i = 0; i < n; i++) {
        if (!strcmp(arg, names[i].name)) {
            *value = names[i].value;
            return true;
        }
    }
    error_setg(errp, "%s=%s: needed: %s", what, arg, needed);
    return false;
}

bool vpmu_pv_parse(const char *arg, uint32_t *abi, Error **errp)
{
    static const VPMUName names[] = {
        { "off", 0 },
        { "v2", VPMU_PV_ABI_2 },
        { "v1", VPMU_PV_ABI_1 },
        { "both", VPMU_PV_ABI_1 | VPMU_PV_ABI_2 },
    };

    return vpmu_pv_parse_names("pmu-pv", arg, names, ARRAY_SIZE(names),
                               "off, v2, v1 or both", abi, errp);
}

bool vpmu_pv_parse_calls(const char *arg, uint32_t *calls, Error **errp)
{
    static const VPMUName names[] = {
        { "hypercall", VPMU_PV_CALL_HYPERCALL },
        { "doorbell", VPMU_PV_CALL_DOORBELL },
        { "both", VPMU_PV_CALL_HYPERCALL | VPMU_PV_CALL_DOORBELL },
    };

    return vpmu_pv_parse_names("pmu-pv-call", arg, names, ARRAY_SIZE(names),
                               "hypercall, doorbell or both", calls, errp);
}

static void vpmu_pv_reset_vm(void *opaque)
{
    VPMUVm *vm = opaque;

    vpmu_pv_vm_reset(vm->pv);
}

/* ---- migration ---- */

static int vpmu_pv_pre_save(void *opaque)
{
    VPMUPvState *s = opaque;
    size_t size;

    vpmu_pv_vm_save(s->pv, NULL, 0, &size);
    g_free(s->data);
    s->data = g_malloc0(size);
    s->size = size;
    return vpmu_pv_vm_save(s->pv, s->data, size, &size);
}

static bool vpmu_pv_size_ok(void *opaque, int version_id)
{
    VPMUPvState *s = opaque;

    return s->size <= VPMU_PV_STATE_MAX;
}

static int vpmu_pv_post_load(void *opaque, int version_id)
{
    VPMUPvState *s = opaque;
    g_autofree char *why = NULL;
    int ret = s->load(s->opaque, s->data, s->size, &why);

    if (ret) {
        error_report("vpmu: the guest's paravirtual PMU does not fit this one "
                     "(pmu-pv, pmu-pv-events, pmu-pv-slots): %s", why);
    }
    return ret;
}

static const VMStateDescription vmstate_vpmu_pv = {
    .name = "vpmu-pv",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = vpmu_pv_pre_save,
    .post_load = vpmu_pv_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(size, VPMUPvState),
        VMSTATE_VALIDATE("vpmu-pv state size", vpmu_pv_size_ok),
        VMSTATE_VBUFFER_ALLOC_UINT32(data, VPMUPvState, 1, NULL, size),
        VMSTATE_END_OF_LIST()
    }
};

void vpmu_pv_state_register(VPMUPvState *s)
{
    vmstate_unregister(NULL, &vmstate_vpmu_pv, s);
    vmstate_register(NULL, 0, &vmstate_vpmu_pv, s);
}

void vpmu_pv_state_unregister(VPMUPvState *s)
{
    vmstate_unregister(NULL, &vmstate_vpmu_pv, s);
    g_free(s->data);
}

static int vpmu_pv_load(void *opaque, const void *data, size_t size, char **why)
{
    VPMUVm *vm = opaque;
    int ret = vpmu_pv_vm_load(vm->pv, data, size);
    CPUState *cs;

    if (ret) {
        const struct vpmu_error *refused = vpmu_pv_vm_refused(vm->pv);

        *why = g_strdup_printf("%s: found 0x%" PRIx64 ", available 0x%" PRIx64,
                               refused->what, refused->asked,
                               refused->available);
        return ret;
    }
    CPU_FOREACH(cs) {
        if (X86_CPU(cs)->vpmu) {
            /* The incoming hflags lack the PMU's bits */
            vpmu_arm(X86_CPU(cs)->vpmu);
        }
    }
    return 0;
}

/* ---- set-up ---- */

static bool vpmu_pv_vm_new(VPMUVm *vm, const struct vpmu_provider *provider,
                           Error **errp)
{
    struct vpmu_pv_config cfg = {
        .size = sizeof(cfg),
        .model = vm->system.model,
        .abi = vm->pv_abi,
        .n_vcpus = MACHINE(qdev_get_machine())->smp.max_cpus,
        .n_events = vm->pv_events,
        .n_slots = vm->pv_slots,
        .features = VPMU_PV_HAS_VECTOR | VPMU_PV_HAS_NESTED,
        .period_min = vm->pv_period,
        .filter = vm->filter ? &vm->filter->filter : NULL,
        .alone = !vm->arch,
        .no_hypercall = !(vm->pv_calls & VPMU_PV_CALL_HYPERCALL),
    };
    struct vpmu_error err = { };
    size_t size;

    if (vm->uarch) {
        cfg.features |= VPMU_PV_HAS_TOPDOWN;
    }
    if (vm->pv_calls & VPMU_PV_CALL_DOORBELL) {
        cfg.features |= VPMU_PV_HAS_DOORBELL;
    }
    /* Only a scheduler supports groups and shares the branch records */
    if (vm->policy != VPMU_HOST_POLICY_DIRECT) {
        cfg.features |= VPMU_PV_HAS_GROUPS | VPMU_PV_HAS_BRANCHES;
    }
    if (vpmu_pv_size(&cfg, provider->ops, &size, &vm->pv_vcpu_size, &err)) {
        error_setg(errp, "pmu-pv: %s: asked 0x%" PRIx64 ", available 0x%"
                   PRIx64, err.what, err.asked, err.available);
        return false;
    }
    vm->pv = g_malloc0(size);
    if (vpmu_pv_vm_init(vm->pv, &cfg, provider->ops, &err)) {
        g_assert_not_reached();
    }
    vm->pv_state = (VPMUPvState) {
        .pv = vm->pv,
        .load = vpmu_pv_load,
        .opaque = vm,
    };
    qemu_mutex_init(&vm->pv_lock);
    qemu_register_reset(vpmu_pv_reset_vm, vm);
    return true;
}

void vpmu_pv_vm_free(VPMUVm *vm)
{
    if (vm->pv) {
        vpmu_pv_state_unregister(&vm->pv_state);
        qemu_unregister_reset(vpmu_pv_reset_vm, vm);
        qemu_mutex_destroy(&vm->pv_lock);
        g_free(vm->pv);
    }
}

bool vpmu_pv_attach(X86VPMU *v, struct vpmu_provider *provider, Error **errp)
{
    VPMUVm *vm = v->vm;
    struct vpmu_pv *pv;

    if (!vm->pv && !vpmu_pv_vm_new(vm, provider, errp)) {
        return false;
    }
    pv = g_malloc0(vm->pv_vcpu_size);
    /*
     * Other vCPUs may run already: they find this one complete, or not at all
     */
    if (vpmu_pv_init(pv, vm->pv, CPU(v->cpu)->cpu_index, provider, &vm->ops,
                     v)) {
        error_setg(errp, "pmu-pv: vCPU %d: found a machine of %" PRIu32
                   " vCPUs at most", CPU(v->cpu)->cpu_index,
                   MACHINE(qdev_get_machine())->smp.max_cpus);
        g_free(pv);
        return false;
    }
    v->pv = pv;
    /* Load it after all vCPUs' own state: the last vCPU may be this one */
    vpmu_pv_state_register(&vm->pv_state);
    return true;
}

bool vpmu_pv_pause(CPUState *gone)
{
    if (!runstate_is_running()) {
        return false;
    }
    /*
     * Its thread has ended, from 10.2 on without a word that it stopped, and
     * must not get a signal
     */
    gone->stopped = true;
    gone->thread_kicked = true;
    pause_all_vcpus();
    return true;
}

void vpmu_pv_detach(X86VPMU *v)
{
    bool paused = vpmu_pv_pause(CPU(v->cpu));

    vpmu_pv_fini(v->pv);
    if (paused) {
        resume_all_vcpus();
    }
    g_free(v->pv);
    v->pv = NULL;
}
