// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The small VMM on KVM of these tests; vmm.h describes it. */
#include "case.h"
#include "vmm.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vpmu-kvm-module.h>

#define PML4		0x1000u
#define PDPT		0x2000u
#define PD		0x3000u
#define GDT		0x4000u
#define IDT		0x5000u
#define SMBASE		0x30000u
#define AREAS		0x100000u
#define AREA_BYTES	0x8000u
#define PORT_DONE	0x10
#define MSR_HSAVE	0xc0010117u

#define INTERCEPT_NMI	(1ull << 1)
#define INTERCEPT_VMRUN	(1ull << 32)
#define INTERCEPT_CALL	(1ull << 33)

bool vmm_quiet;
char why[400];

void vmm_die(const char *form, ...)
{
	int error = errno;
	va_list args;

	va_start(args, form);
	if (!vmm_quiet) {
		fputs("not ok vmm: ", stdout);
		vprintf(form, args);
		printf(": %s\n", strerror(error));
		fflush(stdout);
	}
	va_end(args);
	_exit(3);
}

static int must(int ret, const char *what)
{
	if (ret < 0)
		vmm_die("%s", what);
	return ret;
}

static int kvm(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = must(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	return fd;
}

uint64_t vmm_area(const struct vmm_vcpu *v)
{
	return AREAS + v->number * AREA_BYTES;
}

static void *at(struct vmm *vm, uint64_t address)
{
	return vm->mem + address;
}

static uint64_t address_of(const char *entry)
{
	return VMM_CODE + (entry - guest_code);
}

/* Memory */

static void gate(struct vmm *vm, unsigned int vector, const char *handler)
{
	uint64_t *g = at(vm, IDT + 16 * vector), to = address_of(handler);

	g[0] = (to & 0xffff) | 8u << 16 | 0x8e00ull << 32 | (to >> 16) << 48;
	g[1] = to >> 32;
}

static void fill(struct vmm *vm)
{
	uint64_t *pd = at(vm, PD), *gdt = at(vm, GDT);

	*(uint64_t *)at(vm, PML4) = PDPT | 3;
	*(uint64_t *)at(vm, PDPT) = PD | 3;
	for (unsigned int i = 0; i < 512; i++)
		pd[i] = (uint64_t)i << 21 | 0x83;
	gdt[1] = 0x00af9b000000ffff;
	gdt[2] = 0x00cf93000000ffff;
	for (unsigned int i = 0; i < 32; i++)
		gate(vm, i, i == 2 ? guest_nmi : guest_fault);
	memcpy(at(vm, VMM_CODE), guest_code, guest_code_end - guest_code);
	memcpy(at(vm, SMBASE + 0x8000), guest_smm, guest_smm_end - guest_smm);
	*(uint32_t *)at(vm, VMM_SMM_TURNS) = 1;
}

static int memory(struct vmm *vm, uint32_t slot, uint32_t flags, uint64_t bytes)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot, .flags = flags, .memory_size = bytes,
		.userspace_addr = (uintptr_t)vm->mem,
	};

	return ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &region) ? errno : 0;
}

int vmm_memory(struct vmm *vm, uint32_t flags, uint64_t bytes)
{
	return memory(vm, 0, flags, bytes);
}

/* vCPUs */

static struct kvm_segment segment(uint16_t selector, uint8_t type, bool code)
{
	return (struct kvm_segment){
		.limit = UINT32_MAX, .selector = selector, .type = type, .present = 1,
		.db = !code, .s = 1, .l = code, .g = 1,
	};
}

bool vmm_has_svm(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000001, &a, &b, &c, &d) && c & 1 << 2;
}

void vmm_long_mode(struct vmm_vcpu *v)
{
	struct kvm_mp_state runnable = { .mp_state = KVM_MP_STATE_RUNNABLE };
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry;
	} hsave = {
		.head.nmsrs = 1,
		.entry = { .index = MSR_HSAVE, .data = vmm_area(v) + VMM_HSAVE },
	};
	struct kvm_vcpu_events events;
	struct kvm_sregs s;

	must(ioctl(v->fd, KVM_GET_SREGS, &s), "KVM_GET_SREGS");
	s.cs = segment(8, 11, true);
	s.ds = s.es = s.fs = s.gs = s.ss = segment(16, 3, false);
	s.gs.base = vmm_area(v) + VMM_GS;
	s.gdt.base = GDT;
	s.gdt.limit = 23;
	s.idt.base = IDT;
	s.idt.limit = 32 * 16 - 1;
	s.cr0 = 0x80000031;
	s.cr3 = PML4;
	s.cr4 = 0x20;
	s.efer = vmm_has_svm() ? 0x1500 : 0x500; /* LME, LMA, SVME */
	must(ioctl(v->fd, KVM_SET_SREGS, &s), "KVM_SET_SREGS");
	(void)ioctl(v->fd, KVM_SET_MSRS, &hsave); /* there may be no SVM */
	must(ioctl(v->fd, KVM_SET_MP_STATE, &runnable), "KVM_SET_MP_STATE");
	must(ioctl(v->fd, KVM_GET_VCPU_EVENTS, &events), "KVM_GET_VCPU_EVENTS");
	events.nmi.masked = 0;
	must(ioctl(v->fd, KVM_SET_VCPU_EVENTS, &events), "KVM_SET_VCPU_EVENTS");
}

static void make_vcpu(struct vmm *vm, unsigned int number, unsigned int flags)
{
	static struct {
		struct kvm_cpuid2 head;
		struct kvm_cpuid_entry2 entry[256];
	} cpuid;
	struct kvm_cpuid_entry2 *leaf, own;
	struct kvm_lapic_state apic;
	struct vmm_vcpu *v = &vm->vcpu[number];
	int bytes = must(ioctl(kvm(), KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");

	v->vm = vm;
	v->number = number;
	v->fd = must(ioctl(vm->fd, KVM_CREATE_VCPU, number), "KVM_CREATE_VCPU");
	v->run = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	if (v->run == MAP_FAILED)
		vmm_die("mmap of a vCPU");
	if (flags & VMM_DIRTY_RING) {
		v->ring = mmap(NULL, VMM_RING, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd,
			       KVM_DIRTY_LOG_PAGE_OFFSET * 4096);
		if (v->ring == MAP_FAILED)
			vmm_die("mmap of a dirty ring");
	}
	if (!cpuid.head.nent) {
		cpuid.head.nent = 256;
		must(ioctl(kvm(), KVM_GET_SUPPORTED_CPUID, &cpuid), "KVM_GET_SUPPORTED_CPUID");
	}
	leaf = cpuid.entry;
	while (leaf->function)
		leaf++;
	own = *leaf;
	if (flags & VMM_FOREIGN)
		memcpy(&leaf->ebx, "CentaulsaurH", 12); /* EBX, ECX, EDX */
	must(ioctl(v->fd, KVM_SET_CPUID2, &cpuid), "KVM_SET_CPUID2");
	*leaf = own;
	/* KVM sends a new vCPU interrupts once it has been told its APIC's state. */
	must(ioctl(v->fd, KVM_GET_LAPIC, &apic), "KVM_GET_LAPIC");
	must(ioctl(v->fd, KVM_SET_LAPIC, &apic), "KVM_SET_LAPIC");
	vmm_long_mode(v);
}

static void capability(struct vmm *vm, uint32_t which, uint64_t arg)
{
	struct kvm_enable_cap cap = { .cap = which, .args = { arg } };

	if (ioctl(vm->fd, KVM_ENABLE_CAP, &cap))
		vmm_die("KVM_ENABLE_CAP %u", which);
}

struct vmm *vmm_new(unsigned int n_vcpus, unsigned int flags)
{
	struct vmm *vm = calloc(1, sizeof(*vm) + n_vcpus * sizeof(vm->vcpu[0]));

	if (!vm)
		vmm_die("memory");
	vm->n_vcpus = n_vcpus;
	vm->mem = mmap(NULL, VMM_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (vm->mem == MAP_FAILED)
		vmm_die("guest memory");
	/* A page that is missing, or dirty, is one of 4 KiB. */
	madvise(vm->mem, VMM_BYTES, MADV_NOHUGEPAGE);
	fill(vm);
	vm->fd = must(ioctl(kvm(), KVM_CREATE_VM, 0), "KVM_CREATE_VM");
	if (flags & VMM_NO_PMU)
		capability(vm, KVM_CAP_PMU_CAPABILITY, KVM_PMU_CAP_DISABLE);
	if (flags & VMM_DIRTY_RING)
		capability(vm, KVM_CAP_DIRTY_LOG_RING, VMM_RING);
	must(ioctl(vm->fd, KVM_CREATE_IRQCHIP), "KVM_CREATE_IRQCHIP");
	/* System management mode sees the same memory. */
	if (vmm_memory(vm, flags & (VMM_DIRTY_LOG | VMM_DIRTY_RING) ? KVM_MEM_LOG_DIRTY_PAGES : 0,
		       VMM_BYTES) || memory(vm, 1 << 16, 0, VMM_BYTES))
		vmm_die("KVM_SET_USER_MEMORY_REGION");
	for (unsigned int i = 0; i < n_vcpus; i++)
		make_vcpu(vm, i, flags);
	return vm;
}

void vmm_free(struct vmm *vm)
{
	int bytes = ioctl(kvm(), KVM_GET_VCPU_MMAP_SIZE, 0);

	for (unsigned int i = 0; i < vm->n_vcpus; i++) {
		if (vm->vcpu[i].ring)
			munmap(vm->vcpu[i].ring, VMM_RING);
		munmap(vm->vcpu[i].run, bytes);
		close(vm->vcpu[i].fd);
	}
	close(vm->fd);
	munmap(vm->mem, VMM_BYTES);
	free(vm);
}

/* Running */

int vmm_resume(struct vmm_vcpu *v)
{
	for (;;) {
		if (ioctl(v->fd, KVM_RUN, 0)) {
			if (errno == EINTR && !v->stop)
				continue;
			return errno;
		}
		switch (v->run->exit_reason) {
		case KVM_EXIT_IO:
			if (v->run->io.port == PORT_DONE)
				return 0;
			if (!vmm_quiet)
				puts("# the guest has taken an exception");
			return EIO;
		case KVM_EXIT_DIRTY_RING_FULL:
			vmm_reap(v);
			vmm_reset_rings(v->vm);
			continue;
		default:
			if (!vmm_quiet)
				printf("# exit %u of KVM\n", v->run->exit_reason);
			return EIO;
		}
	}
}

int vmm_run(struct vmm_vcpu *v, const char *entry, uint64_t rax, uint64_t rbx, uint64_t rcx,
	    uint64_t rdx, uint64_t rdi)
{
	struct kvm_regs regs = {
		.rax = rax, .rbx = rbx, .rcx = rcx, .rdx = rdx, .rdi = rdi, .rflags = 2,
		.rsp = vmm_area(v) + VMM_STACK, .rip = address_of(entry),
	};

	/* Complete the rest of the last exit before registers change. */
	v->run->immediate_exit = 1;
	(void)ioctl(v->fd, KVM_RUN, 0);
	v->run->immediate_exit = 0;
	if (ioctl(v->fd, KVM_SET_REGS, &regs))
		return errno;
	return vmm_resume(v);
}

int64_t vmm_call(struct vmm_vcpu *v, uint32_t op, uint64_t arg)
{
	struct kvm_regs regs;
	int ret = vmm_run(v, guest_call, VPMU_PV_HYPERCALL, op, (uint32_t)arg, arg >> 32, 0);

	if (ret)
		return -100000 - ret;
	must(ioctl(v->fd, KVM_GET_REGS, &regs), "KVM_GET_REGS");
	return (int64_t)regs.rax;
}

int vmm_loop(struct vmm_vcpu *v, uint64_t turns)
{
	return vmm_run(v, guest_loop, 0, 0, turns, 0, 0);
}

int vmm_store(struct vmm_vcpu *v, uint64_t address, uint64_t pages)
{
	return vmm_run(v, guest_store, 0, 0, pages, 0, address);
}

static void put_segment(uint8_t *vmcb, unsigned int to, uint16_t selector, uint16_t attributes,
			uint32_t limit)
{
	memcpy(vmcb + to, &selector, 2);
	memcpy(vmcb + to + 2, &attributes, 2);
	memcpy(vmcb + to + 4, &limit, 4);
}

static void put(uint8_t *vmcb, unsigned int to, uint64_t value)
{
	memcpy(vmcb + to, &value, 8);
}

int vmm_nested(struct vmm_vcpu *v, bool paging, uint64_t turns)
{
	uint8_t *vmcb = at(v->vm, vmm_area(v) + VMM_VMCB);

	memset(vmcb, 0, 4096);
	put(vmcb, 0x00c, INTERCEPT_NMI | INTERCEPT_VMRUN | INTERCEPT_CALL);
	put(vmcb, 0x058, 1);
	for (unsigned int i = 0; i < 4; i++) {
		if (paging)
			put_segment(vmcb, 0x400 + 16 * i, i == 1 ? 8 : 16,
				    i == 1 ? 0xa9b : 0xc93, UINT32_MAX);
		else
			put_segment(vmcb, 0x400 + 16 * i, 0, i == 1 ? 0x09b : 0x093, 0xffff);
	}
	put(vmcb, 0x4d0, paging ? 0x1500 : 0x1000);
	put(vmcb, 0x548, paging ? 0x20 : 0);
	put(vmcb, 0x550, paging ? PML4 : 0);
	put(vmcb, 0x558, paging ? 0x80000031 : 0x10);
	put(vmcb, 0x560, 0x400);
	put(vmcb, 0x568, 0xffff0ff0);
	put(vmcb, 0x570, 2);
	put(vmcb, 0x578, address_of(paging ? guest_paged : guest_real));
	put(vmcb, 0x668, 0x0007040600070406);
	return vmm_run(v, guest_nested, vmm_area(v) + VMM_VMCB, 0, turns, 0, 0);
}

/* The paravirtual PMU */

int64_t vmm_setup(struct vmm_vcpu *v)
{
	struct vpmu_pv_setup *setup = at(v->vm, vmm_area(v) + VMM_SETUP);

	*setup = (struct vpmu_pv_setup){ .size = sizeof(*setup), .page = vmm_area(v) + VMM_PAGE };
	return vmm_call(v, VPMU_PV_OP_SETUP, vmm_area(v) + VMM_SETUP);
}

int64_t vmm_batch(struct vmm_vcpu *v, struct vpmu_pv_op *op, unsigned int n)
{
	struct vpmu_pv_batch *batch = at(v->vm, vmm_area(v) + VMM_BATCH);
	int64_t ret;

	memset(batch, 0, sizeof(*batch));
	batch->size = sizeof(*batch) + n * sizeof(*op);
	batch->n_ops = n;
	memcpy(batch + 1, op, n * sizeof(*op));
	ret = vmm_call(v, VPMU_PV_OP_BATCH, vmm_area(v) + VMM_BATCH);
	memcpy(op, batch + 1, n * sizeof(*op));
	return ret;
}

static int64_t first_of(struct vmm_vcpu *v, struct vpmu_pv_op *op, unsigned int n)
{
	int64_t ret = vmm_batch(v, op, n);

	if (ret != n)
		return ret < 0 ? ret : -200000;
	for (unsigned int i = 0; i < n; i++)
		if (op[i].result)
			return op[i].result;
	return 0;
}

int64_t vmm_op(struct vmm_vcpu *v, uint16_t code, uint32_t id, unsigned int n)
{
	struct vpmu_pv_op op[VPMU_PV_BATCH_MAX] = { };

	for (unsigned int i = 0; i < n; i++)
		op[i] = (struct vpmu_pv_op){ .op = code, .id = id + i };
	return first_of(v, op, n);
}

int64_t vmm_open(struct vmm_vcpu *v, uint32_t id, unsigned int n, uint64_t config)
{
	struct vpmu_pv_op op[VPMU_PV_BATCH_MAX] = { };

	for (unsigned int i = 0; i < n; i++) {
		op[i] = (struct vpmu_pv_op){ .op = VPMU_PV_OPEN, .id = id + i };
		op[i].u.open.config = config;
	}
	return first_of(v, op, n);
}

int64_t vmm_enable(struct vmm_vcpu *v, uint32_t id, unsigned int n, uint64_t period)
{
	struct vpmu_pv_op op[VPMU_PV_BATCH_MAX] = { };

	for (unsigned int i = 0; i < n; i++) {
		op[i] = (struct vpmu_pv_op){ .op = VPMU_PV_ENABLE, .id = id + i, .slot = i };
		op[i].u.enable.left = period;
		op[i].u.enable.period = period;
	}
	return first_of(v, op, n);
}

volatile struct vpmu_pv_slot *vmm_slot(struct vmm_vcpu *v, unsigned int slot)
{
	struct vpmu_pv_page *page = at(v->vm, vmm_area(v) + VMM_PAGE);

	return &page->slot[slot];
}

uint64_t vmm_nmis(struct vmm_vcpu *v)
{
	return *(volatile uint64_t *)at(v->vm, vmm_area(v) + VMM_GS);
}

/* Dirty pages */

unsigned int vmm_reap(struct vmm_vcpu *v)
{
	const unsigned int entries = VMM_RING / sizeof(*v->ring);
	unsigned int n = 0;

	for (;;) {
		struct kvm_dirty_gfn *e = &v->ring[v->reaped % entries];

		if (n == entries ||
		    __atomic_load_n(&e->flags, __ATOMIC_ACQUIRE) != KVM_DIRTY_GFN_F_DIRTY)
			return n;
		if (e->offset < VMM_BYTES / 4096)
			v->vm->logged[e->offset] = 1;
		__atomic_store_n(&e->flags, KVM_DIRTY_GFN_F_RESET, __ATOMIC_RELEASE);
		v->reaped++;
		n++;
	}
}

void vmm_reset_rings(struct vmm *vm)
{
	must(ioctl(vm->fd, KVM_RESET_DIRTY_RINGS), "KVM_RESET_DIRTY_RINGS");
}

void vmm_dirty_log(struct vmm *vm)
{
	uint64_t bits[VMM_BYTES / 4096 / 64];
	struct kvm_dirty_log log = { .dirty_bitmap = bits };

	must(ioctl(vm->fd, KVM_GET_DIRTY_LOG, &log), "KVM_GET_DIRTY_LOG");
	for (unsigned int i = 0; i < VMM_BYTES / 4096; i++)
		vm->logged[i] |= bits[i / 64] >> i % 64 & 1;
}

/* A VMM's limits for a guest */

int vmm_filter(struct vmm *vm, uint32_t action, unsigned int n, const uint64_t *event)
{
	struct {
		struct kvm_pmu_event_filter head;
		uint64_t event[16];
	} f = { .head = { .action = action, .nevents = n } };

	if (n)
		memcpy(f.event, event, n * sizeof(*event));
	return ioctl(vm->fd, KVM_SET_PMU_EVENT_FILTER, &f) ? errno : 0;
}

int vmm_smi(struct vmm_vcpu *v)
{
	return ioctl(v->fd, KVM_SMI) ? errno : 0;
}

void vmm_leave_smm(struct vmm_vcpu *v)
{
	struct kvm_vcpu_events events;

	if (ioctl(v->fd, KVM_GET_VCPU_EVENTS, &events) || !events.smi.smm)
		return;
	events.flags = KVM_VCPUEVENT_VALID_SMM;
	events.smi.smm = 0;
	(void)ioctl(v->fd, KVM_SET_VCPU_EVENTS, &events);
}

int vmm_msi(struct vmm *vm, unsigned int vcpu, uint32_t data)
{
	struct kvm_msi msi = { .address_lo = 0xfee00000 | vcpu << 12, .data = data };

	return ioctl(vm->fd, KVM_SIGNAL_MSI, &msi) < 0 ? errno : 0;
}

static int state(unsigned long what, struct vmm *vm, const void *data, size_t *bytes)
{
	struct vpmu_kvm_state io = {
		.size = sizeof(io), .vm = vm->fd, .data = (uintptr_t)data, .bytes = *bytes,
	};
	int fd = open(VPMU_KVM_DEVICE, O_RDWR | O_CLOEXEC), ret;

	if (fd < 0)
		return errno;
	ret = ioctl(fd, what, &io) ? errno : 0;
	*bytes = io.bytes;
	close(fd);
	return ret;
}

int vmm_save(struct vmm *vm, void *data, size_t *bytes)
{
	return state(VPMU_KVM_SAVE, vm, data, bytes);
}

int vmm_load(struct vmm *vm, const void *data, size_t bytes)
{
	return state(VPMU_KVM_LOAD, vm, data, &bytes);
}

int vmm_decide(struct vmm *vm, unsigned long what)
{
	size_t bytes = 0;

	return state(what, vm, NULL, &bytes);
}

/* The architectural PMU */

static int module(unsigned long what, void *io)
{
	int fd = open(VPMU_KVM_DEVICE, O_RDWR | O_CLOEXEC), ret;

	if (fd < 0)
		return errno;
	ret = ioctl(fd, what, io) ? errno : 0;
	close(fd);
	return ret;
}

int vmm_lend(struct vmm *vm, struct vpmu_kvm_lend *l)
{
	l->size = sizeof(*l);
	l->vm = vm->fd;
	return module(VPMU_KVM_LEND, l);
}

int vmm_arch(struct vmm *vm, struct vpmu_kvm_arch *a)
{
	a->size = sizeof(*a);
	a->vm = vm->fd;
	return module(VPMU_KVM_ARCH, a);
}

static int instruction(struct vmm_vcpu *v, const char *code, struct kvm_regs *regs)
{
	int ret = vmm_run(v, code, regs->rax, regs->rbx, regs->rcx, regs->rdx, 0);

	must(ioctl(v->fd, KVM_GET_REGS, regs), "KVM_GET_REGS");
	return ret;
}

int vmm_wrmsr(struct vmm_vcpu *v, uint32_t msr, uint64_t value)
{
	struct kvm_regs regs = { .rcx = msr, .rax = (uint32_t)value, .rdx = value >> 32 };

	return instruction(v, guest_wrmsr, &regs);
}

static int read64(struct vmm_vcpu *v, const char *code, uint32_t rcx, uint64_t *value)
{
	struct kvm_regs regs = { .rcx = rcx };
	int ret = instruction(v, code, &regs);

	*value = (uint32_t)regs.rax | regs.rdx << 32;
	return ret;
}

int vmm_rdmsr(struct vmm_vcpu *v, uint32_t msr, uint64_t *value)
{
	return read64(v, guest_rdmsr, msr, value);
}

int vmm_rdpmc(struct vmm_vcpu *v, uint32_t index, uint64_t *value)
{
	return read64(v, guest_rdpmc, index, value);
}

int vmm_cpuid(struct vmm_vcpu *v, uint32_t leaf, uint32_t out[4])
{
	struct kvm_regs regs = { .rax = leaf };
	int ret = instruction(v, guest_cpuid, &regs);

	out[0] = regs.rax;
	out[1] = regs.rbx;
	out[2] = regs.rcx;
	out[3] = regs.rdx;
	return ret;
}

struct one_msr {
	struct kvm_msrs head;
	struct kvm_msr_entry entry;
};

int vmm_set_msr(struct vmm_vcpu *v, uint32_t msr, uint64_t value)
{
	struct one_msr m = { { .nmsrs = 1 }, { .index = msr, .data = value } };

	return ioctl(v->fd, KVM_SET_MSRS, &m) == 1 ? 0 : EIO;
}

int vmm_get_msr(struct vmm_vcpu *v, uint32_t msr, uint64_t *value)
{
	struct one_msr m = { { .nmsrs = 1 }, { .index = msr } };
	int ret = ioctl(v->fd, KVM_GET_MSRS, &m);

	*value = m.entry.data;
	return ret == 1 ? 0 : EIO;
}
