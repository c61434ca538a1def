/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The performance monitoring units of a VM under KVM: the paravirtual one, which
 * is libvpmu-kvm in QEMU with a filtered MSR as doorbell and the host's perf; and
 * the architectural one, which vpmu_kvm.ko serves in place of KVM's own.
 */

#include "qemu/osdep.h"
#include <sys/ioctl.h>
#include "qemu/error-report.h"
#include "qapi/error.h"
#include "hw/boards.h"
#include "system/cpus.h"
#include "system/kvm_int.h"
#include "system/reset.h"
#include "system/runstate.h"
#include "kvm/vpmu-kvm-glue.h"
#include "tcg/system/vpmu-internal.h"

#include <vpmu-kvm.h>
#include <vpmu-kvm-module.h>

/* There is one VM per process; under the BQL. */
static struct {
    struct vpmu_kvm_vm *vm;
    struct vpmu_ops memory;
    VPMUPvState state;
    int module;          /* file of the device, while vCPUs are to be lent events */
} the_vm = { .module = -1 };

QEMU_BUILD_BUG_ON(X86_VPMU_KVM_DOORBELL != VPMU_PV_MSR_DOORBELL);

static void vpmu_kvm_reset_all(void *opaque)
{
    vpmu_kvm_vm_reset(the_vm.vm);
}

/*
 * Events are created again on the new host; one that it does not have is lost
 */
static int vpmu_kvm_load(void *opaque, const void *data, size_t size,
                         char **why)
{
    *why = g_malloc0(VPMU_KVM_WHY);
    return vpmu_kvm_vm_load(the_vm.vm, data, size, *why);
}

static bool vpmu_kvm_vm_make(CPUState *cs, const X86VPMUProps *p, Error **errp)
{
    struct vpmu_kvm_config cfg = {
        .size = sizeof(cfg),
        .vm_fd = cs->kvm_state->vmfd,
        .n_vcpus = MACHINE(qdev_get_machine())->smp.max_cpus,
        .ops = &the_vm.memory,
        .cpuid_base = X86_VPMU_CPUID_BASE,
        .no_filter = true,
        .signal = SIG_IPI,
        .n_events = p->pv_events,
        .n_slots = p->pv_slots,
        .period_min = p->pv_period > 1 ? p->pv_period : 0,
    };
    char why[VPMU_KVM_WHY];

    the_vm.memory.size = sizeof(the_vm.memory);
    vpmu_pv_hooks(&the_vm.memory);
    if (vpmu_kvm_vm_new(&cfg, &the_vm.vm, why)) {
        error_setg(errp, "pmu-pv: %s", why);
        return false;
    }
    the_vm.state = (VPMUPvState) {
        .pv = vpmu_kvm_pv_vm(the_vm.vm),
        .load = vpmu_kvm_load,
    };
    qemu_register_reset(vpmu_kvm_reset_all, NULL);
    return true;
}

static void vpmu_kvm_refused(const struct vpmu_kvm_arch *a, int error,
                              Error **errp)
{
    if (error == ENOTTY) {
        error_setg(errp, "pmu-arch: found an older vpmu_kvm.ko, needed one "
                   "that has VPMU_KVM_ARCH");
    } else if (a->asked || a->available) {
        error_setg(errp, "pmu-arch: %s: asked for %llu, available %llu", a->why,
                   (unsigned long long)a->asked,
                   (unsigned long long)a->available);
    } else {
        error_setg(errp, "pmu-arch: %s", a->why[0] ? a->why : strerror(error));
    }
}

/* All fixed counters are four where this host's perf counts slots */
static bool vpmu_kvm_give(int fd, struct vpmu_kvm_arch *a)
{
    struct vpmu_kvm_arch most = *a;

    most.n_fixed = 4;
    if (!a->n_fixed && vpmu_kvm_topdown() && !ioctl(fd, VPMU_KVM_ARCH, &most)) {
        *a = most;
        return true;
    }
    return !ioctl(fd, VPMU_KVM_ARCH, a);
}

/* The VM's PMU is that of its first CPU */
static bool vpmu_kvm_ask_arch(const X86VPMUProps *p, Error **errp)
{
    static bool given;
    struct vpmu_kvm_arch a = {
        .size = sizeof(a),
        .vm = kvm_state->vmfd,
        .version = p->version,
        .n_gp = p->n_gp,
        .n_fixed = p->n_fixed != UINT8_MAX ? p->n_fixed : 0,
    };
    int fd;

    if (given) {
        return true;
    }
    fd = qemu_open(VPMU_KVM_DEVICE, O_RDWR, errp);
    if (fd < 0) {
        error_prepend(errp, "pmu-arch: ");
        error_append_hint(errp, "The PMU is vpmu_kvm.ko's: load that module, "
                          "and give this user access to its device.\n");
        return false;
    }
    given = vpmu_kvm_give(fd, &a);
    if (!given) {
        vpmu_kvm_refused(&a, errno, errp);
    } else if (a.n_fixed > 3) {
        the_vm.module = fd;
        return true;
    }
    qemu_close(fd);
    return given;
}

/* An AMD guest looks for KVM's vPMU whatever CPUID says */
bool x86_vpmu_kvm_realize(X86CPU *cpu, Error **errp)
{
    const char *pv = vpmu_given(cpu->vpmu_props.pv);
    bool pv_on = pv && strcmp(pv, "off");

    if (cpu->vpmu_props.arch) {
        if (pv_on) {
            error_setg(errp, "pmu-arch and pmu-pv: a guest has one of them");
            return false;
        }
        return vpmu_kvm_ask_arch(&cpu->vpmu_props, errp);
    }
    if (pv_on && !cpu->enable_pmu && !the_vm.vm &&
        kvm_vm_check_extension(kvm_state, KVM_CAP_PMU_CAPABILITY) > 0) {
        kvm_vm_enable_cap(kvm_state, KVM_CAP_PMU_CAPABILITY, 0,
                          KVM_PMU_CAP_DISABLE);
    }
    return true;
}

/* On the vCPU's thread. Without it this vCPU has three fixed counters */
static void vpmu_kvm_lend_slots(CPUState *cs)
{
    char why[VPMU_KVM_WHY];
    int ret = vpmu_kvm_lend(the_vm.module, kvm_state->vmfd,
                            kvm_arch_vcpu_id(cs), 0, why);

    if (ret) {
        warn_report("pmu-arch: no topdown metrics for CPU %d: %s",
                    cs->cpu_index, why[0] ? why : strerror(-ret));
    }
}

int x86_vpmu_kvm_init(X86CPU *cpu, struct kvm_cpuid2 *cpuid, uint32_t capacity)
{
    const char *pv = vpmu_given(cpu->vpmu_props.pv);
    CPUState *cs = CPU(cpu);
    Error *err = NULL;
    bool first = !the_vm.vm;
    int ret;

    if (the_vm.module >= 0) {
        vpmu_kvm_lend_slots(cs);
    }
    if (!pv || !strcmp(pv, "off")) {
        return 0;
    }
    if (first && !vpmu_kvm_vm_make(cs, &cpu->vpmu_props, &err)) {
        error_report_err(err);
        return -ENODEV;
    }
    ret = vpmu_kvm_vcpu_new(the_vm.vm, cs->cpu_index, cs->kvm_fd, cs->kvm_run,
                            &cpu->vpmu_kvm);
    if (!ret) {
        vpmu_pv_state_register(&the_vm.state);
        ret = vpmu_kvm_cpuid(cpu->vpmu_kvm, cpuid, capacity);
    }
    return ret ? ret : first;
}

void x86_vpmu_kvm_destroy(X86CPU *cpu)
{
    bool paused;

    if (!cpu->vpmu_kvm) {
        return;
    }
    paused = vpmu_pv_pause(CPU(cpu));
    vpmu_kvm_vcpu_free(cpu->vpmu_kvm);
    cpu->vpmu_kvm = NULL;
    if (paused) {
        resume_all_vcpus();
    }
}

void x86_vpmu_kvm_reset(X86CPU *cpu)
{
    if (cpu->vpmu_kvm) {
        vpmu_kvm_vcpu_reset(cpu->vpmu_kvm);
    }
}

void x86_vpmu_kvm_enter(X86CPU *cpu)
{
    if (cpu->vpmu_kvm) {
        vpmu_kvm_enter(cpu->vpmu_kvm);
    }
}

bool x86_vpmu_kvm_rdmsr(X86CPU *cpu, uint32_t msr, uint64_t *val)
{
    return false;
}

bool x86_vpmu_kvm_wrmsr(X86CPU *cpu, uint32_t msr, uint64_t val)
{
    return vpmu_kvm_doorbell(cpu->vpmu_kvm, val) == VPMU_HANDLED;
}
