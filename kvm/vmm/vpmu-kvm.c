// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The paravirtual PMU for a VMM on KVM.
 *
 * An overflow is a signal to the vCPU's own thread, which the host's kernel sends while
 * the thread is in KVM_RUN. KVM_RUN then returns before the guest executes another
 * instruction. The NMI is injected by KVM_NMI on that thread, where the vCPU's mutex is
 * free.
 */
#include "vpmu-kvm.h"

#include <cpuid.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CPUID_BASE	0x40000100u
#define CPUID_LEAVES	(VPMU_CPUID_PV + 1)
#define CPUID_1_HYPERVISOR (1u << 31) /* ECX */
#define OVERFLOWS_MAX	250
#define PERIOD_MIN	1000
#define SLICE_NS	10000000

struct vpmu_kvm_vm {
	struct vpmu_kvm_config cfg;
	const struct vpmu_model *model;
	struct vpmu_ops ops;
	pthread_mutex_t lock;
	size_t vcpu_bytes;
	bool own_signal;
	struct vpmu_pv_vm *pv;
	struct vpmu_kvm_vcpu **vcpus; /* indexed by number */
};

struct vpmu_kvm_vcpu {
	struct vpmu_kvm_vm *vm;
	uint32_t number;
	struct vpmu_linux linux_perf;
	struct vpmu_pv *pv;
	struct kvm_run *run;
	int fd;
	pid_t tid;
	bool active;      /* there may be events, so vpmu_kvm_enter() has work to do */
	bool slicing;     /* the timer is armed */
	timer_t timer;
	struct timespec slice_end;
	struct vpmu_kvm_stats stats;
};

/* The running vCPU of this thread, for the library's own signal handler. */
static _Thread_local struct kvm_run *volatile this_run;

static void on_signal(int number)
{
	if (this_run)
		this_run->immediate_exit = 1;
}

static struct vpmu_kvm_vcpu *vcpu_of(void *ctx)
{
	return ctx;
}

/* Hooks: guest memory -------------------------------------------------------------- */

/* The address of guest memory that lies within one region, or NULL. */
static void *ram_at(const struct vpmu_kvm_vm *vm, uint64_t gpa, uint64_t size, bool write)
{
	size_t i;

	for (i = 0; i < vm->cfg.n_ram; i++) {
		const struct vpmu_kvm_ram *r = &vm->cfg.ram[i];

		if (gpa >= r->gpa && size <= r->size && gpa - r->gpa <= r->size - size)
			return write && r->readonly ? NULL : (char *)r->at + (gpa - r->gpa);
	}
	return NULL;
}

static int op_gpa_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	const void *at = ram_at(vcpu_of(ctx)->vm, gpa, size, false);

	if (!at)
		return -VPMU_EFAULT;
	memcpy(buf, at, size);
	return 0;
}

static int op_gpa_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size)
{
	void *at = ram_at(vcpu_of(ctx)->vm, gpa, size, true);

	if (!at)
		return -VPMU_EFAULT;
	memcpy(at, buf, size);
	return 0;
}

static void *op_gpa_map(void *ctx, uint64_t gpa, uint32_t size)
{
	return ram_at(vcpu_of(ctx)->vm, gpa, size, true);
}

static void op_gpa_unmap(void *ctx, void *at, uint32_t size)
{
}

/* These call the embedder's hooks, with its own context. */

static int their_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	const struct vpmu_kvm_config *cfg = &vcpu_of(ctx)->vm->cfg;

	return cfg->ops->gpa_read(cfg->ctx, gpa, buf, size);
}

static int their_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size)
{
	const struct vpmu_kvm_config *cfg = &vcpu_of(ctx)->vm->cfg;

	return cfg->ops->gpa_write(cfg->ctx, gpa, buf, size);
}

static void *their_map(void *ctx, uint64_t gpa, uint32_t size)
{
	const struct vpmu_kvm_config *cfg = &vcpu_of(ctx)->vm->cfg;

	return cfg->ops->gpa_map(cfg->ctx, gpa, size);
}

static void their_unmap(void *ctx, void *at, uint32_t size)
{
	const struct vpmu_kvm_config *cfg = &vcpu_of(ctx)->vm->cfg;

	cfg->ops->gpa_unmap(cfg->ctx, at, size);
}

static void their_dirty(void *ctx, void *at, uint32_t size)
{
	const struct vpmu_kvm_config *cfg = &vcpu_of(ctx)->vm->cfg;

	cfg->ops->gpa_dirty(cfg->ctx, at, size);
}

/* Hooks: the rest ------------------------------------------------------------------ */

/* This thread will call vpmu_kvm_enter(); a kick from another thread needs a signal. */
static void op_kick(void *ctx)
{
	struct vpmu_kvm_vcpu *v = ctx;

	if ((pid_t)syscall(SYS_gettid) != v->tid)
		syscall(SYS_tgkill, getpid(), v->tid, v->vm->cfg.signal);
}

static void op_inject(void *ctx, uint8_t vector)
{
	struct vpmu_kvm_vcpu *v = ctx;

	v->stats.nmis++; /* only NMIs are offered, so @vector is 0 */
	ioctl(v->fd, KVM_NMI);
}

static void op_lock(void *ctx)
{
	pthread_mutex_lock(&vcpu_of(ctx)->vm->lock);
}

static void op_unlock(void *ctx)
{
	pthread_mutex_unlock(&vcpu_of(ctx)->vm->lock);
}

static void set_hooks(struct vpmu_kvm_vm *vm)
{
	struct vpmu_ops *ops = &vm->ops;
	bool own = vm->cfg.ram != NULL;

	ops->size = sizeof(*ops);
	ops->kick = op_kick;
	ops->inject = op_inject;
	ops->lock = op_lock;
	ops->unlock = op_unlock;
	ops->gpa_read = own ? op_gpa_read : their_read;
	ops->gpa_write = own ? op_gpa_write : their_write;
	ops->gpa_map = own ? op_gpa_map : their_map;
	ops->gpa_unmap = own ? op_gpa_unmap : their_unmap;
	if (!own && vm->cfg.ops->gpa_dirty)
		ops->gpa_dirty = their_dirty;
}

/* The VM --------------------------------------------------------------------------- */

static const struct vpmu_model *host_model(void)
{
	unsigned int a, b, c, d, family, model;
	enum vpmu_vendor vendor;

	__cpuid(0, a, b, c, d);
	vendor = b == signature_AMD_ebx || b == 0x6f677948 /* HygonGenuine */ ?
		 VPMU_VENDOR_AMD : VPMU_VENDOR_INTEL;
	__cpuid(1, a, b, c, d);
	family = a >> 8 & 0xf;
	model = a >> 4 & 0xf;
	if (family == 0xf)
		family += a >> 20 & 0xff;
	if (family >= 6)
		model |= a >> 12 & 0xf0;
	return vpmu_model_find(vendor, family, model);
}

/* Only accesses to the doorbell's MSR exit to user space. */
static int filter_msr(int vm_fd, char *why)
{
	static uint8_t none;
	struct kvm_msr_filter filter = { .flags = KVM_MSR_FILTER_DEFAULT_ALLOW };
	struct kvm_enable_cap cap = { .cap = KVM_CAP_X86_USER_SPACE_MSR,
		.args = { KVM_MSR_EXIT_REASON_FILTER } };

	filter.ranges[0].flags = KVM_MSR_FILTER_READ | KVM_MSR_FILTER_WRITE;
	filter.ranges[0].nmsrs = 1;
	filter.ranges[0].base = VPMU_PV_MSR_DOORBELL;
	filter.ranges[0].bitmap = &none;
	if (ioctl(vm_fd, KVM_ENABLE_CAP, &cap) < 0 ||
	    ioctl(vm_fd, KVM_X86_SET_MSR_FILTER, &filter) < 0) {
		int err = -errno;

		snprintf(why, VPMU_KVM_WHY, "KVM does not hand an MSR to user space: %s; needed: "
			 "KVM_CAP_X86_USER_SPACE_MSR and _MSR_FILTER, since Linux 5.10",
			 strerror(-err));
		return err;
	}
	return 0;
}

static struct vpmu_linux_config linux_config(const struct vpmu_kvm_vm *vm)
{
	struct vpmu_linux_config cfg = { .size = sizeof(cfg), .model = vm->model,
		.map = vm->cfg.map, .n_map = vm->cfg.n_map, .raw = !vm->cfg.map,
		.guest_only = true, .signal = vm->cfg.signal };

	return cfg;
}

static int make_pv(struct vpmu_kvm_vm *vm, char *why)
{
	struct vpmu_pv_config cfg = { .size = sizeof(cfg), .model = vm->model,
		.abi = VPMU_PV_ABI_2, .n_vcpus = vm->cfg.n_vcpus, .n_events = vm->cfg.n_events,
		.n_slots = vm->cfg.n_slots, .filter = vm->cfg.filter, .alone = true,
		.features = VPMU_PV_HAS_GROUPS | VPMU_PV_HAS_DOORBELL |
			    (vpmu_kvm_topdown() ? VPMU_PV_HAS_TOPDOWN : 0),
		.no_hypercall = true,
		.overflows_max = vm->cfg.overflows_max, .period_min = vm->cfg.period_min };
	struct vpmu_error err = { .what = "" };
	size_t bytes;
	int ret = vpmu_pv_size(&cfg, &vpmu_linux_ops, &bytes, &vm->vcpu_bytes, &err);

	if (!ret) {
		vm->pv = calloc(1, bytes);
		ret = vm->pv ? vpmu_pv_vm_init(vm->pv, &cfg, &vpmu_linux_ops, &err) : -ENOMEM;
	}
	if (ret)
		snprintf(why, VPMU_KVM_WHY, "%s: asked %llu, available %llu", err.what,
			 (unsigned long long)err.asked, (unsigned long long)err.available);
	return ret;
}

static int take_signal(struct vpmu_kvm_vm *vm)
{
	struct sigaction sa = { .sa_handler = on_signal }; /* no SA_RESTART: KVM_RUN returns */

	vm->own_signal = !vm->cfg.signal;
	if (!vm->own_signal)
		return 0;
	vm->cfg.signal = SIGRTMIN + 7;
	return sigaction(vm->cfg.signal, &sa, NULL) < 0 ? -errno : 0;
}

static bool config_ok(const struct vpmu_kvm_config *cfg)
{
	const struct vpmu_ops *ops = cfg->ops;

	if (cfg->size < sizeof(*cfg) || !cfg->n_vcpus)
		return false;
	return cfg->ram || (ops && ops->gpa_read && ops->gpa_write && ops->gpa_map &&
			    ops->gpa_unmap);
}

int vpmu_kvm_vm_new(const struct vpmu_kvm_config *cfg, struct vpmu_kvm_vm **out, char *why)
{
	struct vpmu_linux_config perf;
	struct vpmu_kvm_vm *vm;
	int err;

	if (!config_ok(cfg)) {
		snprintf(why, VPMU_KVM_WHY, "the configuration's size, vCPUs or guest memory");
		return -EINVAL;
	}
	vm = calloc(1, sizeof(*vm));
	if (!vm)
		return -ENOMEM;
	vm->cfg = *cfg;
	vm->model = cfg->model ? cfg->model : host_model();
	if (!vm->cfg.cpuid_base)
		vm->cfg.cpuid_base = CPUID_BASE;
	if (!vm->cfg.overflows_max)
		vm->cfg.overflows_max = OVERFLOWS_MAX;
	if (!vm->cfg.period_min)
		vm->cfg.period_min = PERIOD_MIN;
	set_hooks(vm);
	err = take_signal(vm);
	if (err)
		goto err_free;
	if (!vm->model) {
		snprintf(why, VPMU_KVM_WHY, "no table of events for this host's CPU; needed: "
			 "Intel's or AMD's");
		err = -ENODEV;
		goto err_free;
	}
	perf = linux_config(vm);
	err = vpmu_linux_check(&perf, why, VPMU_KVM_WHY);
	if (!err && !cfg->no_filter)
		err = filter_msr(cfg->vm_fd, why);
	if (!err)
		err = make_pv(vm, why);
	if (err)
		goto err_free;
	vm->vcpus = calloc(cfg->n_vcpus, sizeof(struct vpmu_kvm_vcpu *));
	if (!vm->vcpus) {
		err = -ENOMEM;
		goto err_free;
	}
	pthread_mutex_init(&vm->lock, NULL);
	*out = vm;
	return 0;

err_free:
	free(vm->pv);
	free(vm);
	return err;
}

void vpmu_kvm_vm_free(struct vpmu_kvm_vm *vm)
{
	pthread_mutex_destroy(&vm->lock);
	free(vm->vcpus);
	free(vm->pv);
	free(vm);
}

void vpmu_kvm_vm_reset(struct vpmu_kvm_vm *vm)
{
	vpmu_pv_vm_reset(vm->pv);
}

/* vCPUs ---------------------------------------------------------------------------- */

static int make_timer(struct vpmu_kvm_vcpu *v)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = v->vm->cfg.signal };

#ifdef sigev_notify_thread_id
	ev.sigev_notify_thread_id = v->tid;
#else
	ev._sigev_un._tid = v->tid;
#endif
	return timer_create(CLOCK_MONOTONIC, &ev, &v->timer) < 0 ? -errno : 0;
}

int vpmu_kvm_vcpu_new(struct vpmu_kvm_vm *vm, uint32_t number, int vcpu_fd, struct kvm_run *run,
		      struct vpmu_kvm_vcpu **out)
{
	struct vpmu_linux_config perf = linux_config(vm);
	struct vpmu_kvm_vcpu *v = calloc(1, sizeof(*v));
	int err = -ENOMEM;

	if (!v)
		return err;
	v->vm = vm;
	v->number = number;
	v->fd = vcpu_fd;
	v->run = run;
	v->tid = (pid_t)syscall(SYS_gettid);
	v->pv = calloc(1, vm->vcpu_bytes);
	if (!v->pv)
		goto err_free;
	err = make_timer(v);
	if (err)
		goto err_free;
	err = vpmu_linux_init(&v->linux_perf, &perf);
	if (err)
		goto err_timer;
	err = vpmu_pv_init(v->pv, vm->pv, number, &v->linux_perf.provider, &vm->ops, v);
	if (err)
		goto err_linux;
	if (vm->own_signal)
		this_run = run;
	vm->vcpus[number] = v;
	*out = v;
	return 0;

err_linux:
	vpmu_linux_fini(&v->linux_perf);
err_timer:
	timer_delete(v->timer);
err_free:
	free(v->pv);
	free(v);
	return err;
}

void vpmu_kvm_vcpu_free(struct vpmu_kvm_vcpu *v)
{
	v->vm->vcpus[v->number] = NULL;
	timer_delete(v->timer);
	vpmu_pv_fini(v->pv);
	vpmu_linux_fini(&v->linux_perf);
	if (this_run == v->run)
		this_run = NULL;
	free(v->pv);
	free(v);
}

void vpmu_kvm_vcpu_reset(struct vpmu_kvm_vcpu *v)
{
	vpmu_pv_reset(v->pv);
}

/* Find the leaf's entry, or append one. */
static struct kvm_cpuid_entry2 *cpuid_entry(struct kvm_cpuid2 *cpuid, uint32_t leaf)
{
	struct kvm_cpuid_entry2 *e;
	uint32_t i;

	for (i = 0; i < cpuid->nent; i++)
		if (cpuid->entries[i].function == leaf)
			return &cpuid->entries[i];
	e = &cpuid->entries[cpuid->nent++];
	memset(e, 0, sizeof(*e));
	e->function = leaf;
	return e;
}

int vpmu_kvm_cpuid(struct vpmu_kvm_vcpu *v, struct kvm_cpuid2 *cpuid, uint32_t capacity)
{
	uint32_t base = v->vm->cfg.cpuid_base, i;

	/* Every machine has leaf 1. */
	if (capacity < CPUID_LEAVES + 1 || cpuid->nent > capacity - CPUID_LEAVES - 1)
		return -E2BIG;
	cpuid_entry(cpuid, 1)->ecx |= CPUID_1_HYPERVISOR;
	for (i = 0; i < CPUID_LEAVES; i++) {
		struct kvm_cpuid_entry2 *e = cpuid_entry(cpuid, base + i);
		struct vpmu_cpuid regs = { 0, 0, 0, 0 };

		vpmu_pv_cpuid(v->pv, base, base + i, &regs);
		e->eax = regs.eax;
		e->ebx = regs.ebx;
		e->ecx = regs.ecx;
		e->edx = regs.edx;
	}
	return 0;
}

/*
 * Slices: a timer makes KVM_RUN return when a slice is over, even if the guest never
 * exits.
 */

static void arm_slice(struct vpmu_kvm_vcpu *v, bool again)
{
	struct itimerspec in = { .it_value = { .tv_nsec = again ? SLICE_NS : 0 } };

	v->slicing = again;
	timer_settime(v->timer, 0, &in, NULL);
	if (!again)
		return;
	clock_gettime(CLOCK_MONOTONIC, &v->slice_end);
	v->slice_end.tv_nsec += SLICE_NS;
	if (v->slice_end.tv_nsec >= 1000000000) {
		v->slice_end.tv_nsec -= 1000000000;
		v->slice_end.tv_sec++;
	}
}

static bool slice_over(const struct vpmu_kvm_vcpu *v)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > v->slice_end.tv_sec ||
	       (now.tv_sec == v->slice_end.tv_sec && now.tv_nsec >= v->slice_end.tv_nsec);
}

void vpmu_kvm_enter(struct vpmu_kvm_vcpu *v)
{
	uint64_t nmis = v->stats.nmis;

	/* A signal that arrives from here on makes the next KVM_RUN return at once. */
	if (v->vm->own_signal) {
		v->run->immediate_exit = 0;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	if (!v->active)
		return;
	vpmu_linux_poll(&v->linux_perf);
	if (v->slicing && slice_over(v)) {
		vpmu_linux_look(&v->linux_perf);
		arm_slice(v, vpmu_pv_slice(v->pv));
	}
	vpmu_pv_service(v->pv);
	v->stats.services += v->stats.nmis != nmis;
}

enum vpmu_result vpmu_kvm_doorbell(struct vpmu_kvm_vcpu *v, uint64_t value)
{
	v->stats.doorbells++;
	v->active = true;
	if (!v->slicing)
		arm_slice(v, true);
	return vpmu_pv_doorbell(v->pv, value);
}

bool vpmu_kvm_msr(struct vpmu_kvm_vcpu *v)
{
	struct kvm_run *run = v->run;

	if ((run->exit_reason != KVM_EXIT_X86_WRMSR && run->exit_reason != KVM_EXIT_X86_RDMSR) ||
	    run->msr.index != VPMU_PV_MSR_DOORBELL)
		return false;
	run->msr.error = run->exit_reason == KVM_EXIT_X86_RDMSR ||
			 vpmu_kvm_doorbell(v, run->msr.data) != VPMU_HANDLED;
	return true;
}

int vpmu_kvm_vm_load(struct vpmu_kvm_vm *vm, const void *buf, size_t size, char *why)
{
	int ret = vpmu_pv_vm_load(vm->pv, buf, size);
	const struct vpmu_error *refused = vpmu_pv_vm_refused(vm->pv);
	uint32_t i;

	if (ret)
		snprintf(why, VPMU_KVM_WHY, "%s: found %llu, available %llu",
			 refused->what, (unsigned long long)refused->asked,
			 (unsigned long long)refused->available);
	for (i = 0; i < vm->cfg.n_vcpus; i++) {
		if (!vm->vcpus[i])
			continue;
		vm->vcpus[i]->active = true;
		arm_slice(vm->vcpus[i], true);
	}
	return ret;
}

struct vpmu_pv_vm *vpmu_kvm_pv_vm(struct vpmu_kvm_vm *vm)
{
	return vm->pv;
}

struct vpmu_pv *vpmu_kvm_pv(struct vpmu_kvm_vcpu *v)
{
	return v->pv;
}

void vpmu_kvm_stats(const struct vpmu_kvm_vcpu *v, struct vpmu_kvm_stats *stats)
{
	*stats = v->stats;
}
