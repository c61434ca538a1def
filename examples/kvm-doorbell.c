// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A virtual machine monitor in one file, whose guest has a paravirtual PMU: real mode,
 * one page of code, no interrupt controller. The guest finds the PMU by CPUID, rings
 * the doorbell to enable an event that overflows every 2 ms or 2 million cycles, waits
 * for three NMIs, closes it, and halts.
 *
 *	examples/kvm-doorbell [--clock]
 *
 * The event is the host's cycles or, where its PMU cannot be had or with --clock, the
 * vCPU thread's CPU time. Prints what has happened; 1: something else did; 77: it
 * cannot run here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vpmu-kvm.h"

/* The guest's memory: its words and structs are where this says. */
struct guest {
	uint32_t vector[1024];            /* 0: real mode's */
	uint8_t code[4096];               /* 1000H */
	struct vpmu_pv_page page;         /* 2000H */
	uint8_t stack[4096];              /* 3000H */
	struct vpmu_pv_call setup_call, start_call, stop_call; /* 4000H */
	struct vpmu_pv_setup setup;       /* 4060H */
	uint32_t ebx, edx, nmis, pad;     /* 4070H */
	struct { struct vpmu_pv_batch head; struct vpmu_pv_op op[2]; } start, stop;
};
#define AT(field)	((uint32_t)offsetof(struct guest, field))
#define NMIS		3u
#define PERIOD		2000000u
#define GUEST_BYTES	0x6000u

extern const char guest_code[], guest_nmi[], guest_end[];
__asm__(".pushsection .rodata\n"
	".code16\n"
	"guest_code:\n"
	"	mov $0x40000103, %eax\n"
	"	cpuid\n"
	"	mov %ebx, 0x4070\n"
	"	mov %edx, 0x4074\n"
	"	mov $0x56504d08, %ecx\n" /* the doorbell */
	"	xor %edx, %edx\n"
	"	mov $0x4000, %eax\n"
	"	wrmsr\n"
	"	mov $0x4020, %eax\n"
	"	wrmsr\n"
	"1:	cmpw $3, 0x4078\n"
	"	jb 1b\n"
	"	mov $0x4040, %eax\n"
	"	wrmsr\n"
	"	hlt\n"
	"guest_nmi:\n"
	"	incw 0x4078\n"
	"	iret\n"
	"guest_end:\n"
	".code64\n"
	".popsection\n");

static int failed(const char *what)
{
	fprintf(stderr, "kvm-doorbell: %s: %s\n", what, strerror(errno));
	return 1;
}

static void load_guest(struct guest *g)
{
	struct vpmu_pv_call call = { .size = sizeof(call), .op = VPMU_PV_OP_BATCH };

	_Static_assert(AT(setup_call) == 0x4000 && AT(ebx) == 0x4070, "as the code has them");
	memcpy(g->code, guest_code, (size_t)(guest_end - guest_code));
	g->vector[2] = AT(code) + (uint32_t)(guest_nmi - guest_code);
	g->setup.size = sizeof(g->setup);
	g->setup.page = AT(page);
	g->start_call = call;
	g->start_call.a1 = AT(start);
	g->stop_call = call;
	g->stop_call.a1 = AT(stop);
	call.op = VPMU_PV_OP_SETUP;
	call.a1 = AT(setup);
	g->setup_call = call;
	g->start.head.size = sizeof(g->start);
	g->start.head.n_ops = 2;
	g->start.op[0].op = VPMU_PV_OPEN;
	g->start.op[0].id = 1;
	g->start.op[0].u.open.type = VPMU_PV_TYPE_HARDWARE; /* config 0: cycles */
	g->start.op[1].op = VPMU_PV_ENABLE;
	g->start.op[1].id = 1;
	g->start.op[1].u.enable.left = PERIOD;
	g->start.op[1].u.enable.period = PERIOD;
	g->stop.head.size = sizeof(g->stop);
	g->stop.head.n_ops = 2;
	g->stop.op[0].op = VPMU_PV_DISABLE;
	g->stop.op[0].id = 1;
	g->stop.op[1].op = VPMU_PV_CLOSE;
	g->stop.op[1].id = 1;
}

/* Real mode at @ip, with the leaves that the guest looks for. */
static int set_cpu(int kvm, int fd, struct vpmu_kvm_vcpu *vcpu, uint32_t ip)
{
	static struct { struct kvm_cpuid2 head; struct kvm_cpuid_entry2 entry[100]; } cpuid;
	struct kvm_regs regs = { .rip = ip, .rsp = AT(stack) + 4096, .rflags = 2 };
	struct kvm_sregs sregs;

	cpuid.head.nent = 100;
	if (ioctl(kvm, KVM_GET_SUPPORTED_CPUID, &cpuid) < 0)
		return failed("KVM_GET_SUPPORTED_CPUID");
	if (vpmu_kvm_cpuid(vcpu, &cpuid.head, 100))
		return failed("CPUID leaves");
	if (ioctl(fd, KVM_SET_CPUID2, &cpuid) < 0 || ioctl(fd, KVM_GET_SREGS, &sregs) < 0)
		return failed("KVM_SET_CPUID2");
	sregs.cs.base = sregs.cs.selector = 0;
	if (ioctl(fd, KVM_SET_SREGS, &sregs) < 0 || ioctl(fd, KVM_SET_REGS, &regs) < 0)
		return failed("KVM_SET_REGS");
	return 0;
}

static int run_guest(int fd, struct kvm_run *run, struct vpmu_kvm_vcpu *vcpu)
{
	for (;;) {
		vpmu_kvm_enter(vcpu);
		if (ioctl(fd, KVM_RUN, 0) < 0) {
			if (errno != EINTR && errno != EAGAIN)
				return failed("KVM_RUN");
			continue; /* an overflow: see vpmu_kvm_enter() */
		}
		if (vpmu_kvm_msr(vcpu))
			continue;
		if (run->exit_reason == KVM_EXIT_HLT)
			return 0;
		fprintf(stderr, "kvm-doorbell: the guest's exit reason is %u\n", run->exit_reason);
		return 1;
	}
}

static int report(const struct guest *g, struct vpmu_kvm_vcpu *vcpu)
{
	const struct vpmu_pv_slot *slot = &g->page.slot[0];
	struct vpmu_kvm_stats stats;

	vpmu_kvm_stats(vcpu, &stats);
	printf("CPUID: features %u, hypercall %u\n", g->ebx, g->edx);
	printf("doorbell: %d %d %d, open %d, enable %d, close %d\n", (int)g->setup_call.result,
	       (int)g->start_call.result, (int)g->stop_call.result, g->start.op[0].result,
	       g->start.op[1].result, g->stop.op[1].result);
	printf("NMIs %u, overflows %u, bitmap %u, count %llu, enabled %llu, running %llu ns\n",
	       g->nmis, slot->overflows, g->page.overflowed[0], (unsigned long long)slot->count,
	       (unsigned long long)slot->enabled, (unsigned long long)slot->running);
	printf("exits: %llu for the doorbell, %llu for overflows\n",
	       (unsigned long long)stats.doorbells, (unsigned long long)stats.services);
	return g->nmis < NMIS || slot->count < (uint64_t)NMIS * PERIOD;
}

int main(int argc, char **argv)
{
	/* Any selector of the guest's: a host without a PMU has but this to count. */
	static struct vpmu_linux_map clock[] = {
		{ 0x003c, -1, VPMU_QUALITY_DEFINED, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		{ 0x0076, -1, VPMU_QUALITY_DEFINED, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		{ 0, 1, VPMU_QUALITY_DEFINED, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
	};
	struct vpmu_kvm_config cfg = { .size = sizeof(cfg), .n_vcpus = 1, .n_ram = 1 };
	struct kvm_userspace_memory_region region = { .memory_size = GUEST_BYTES };
	struct vpmu_kvm_ram ram = { .size = GUEST_BYTES };
	char why[VPMU_KVM_WHY] = "--clock";
	struct vpmu_kvm_vcpu *vcpu;
	struct vpmu_kvm_vm *vm;
	struct kvm_run *run;
	int kvm, fd, ret;

	kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (kvm < 0)
		return failed("/dev/kvm"), 77;
	cfg.vm_fd = ioctl(kvm, KVM_CREATE_VM, 0);
	ram.at = mmap(NULL, GUEST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	region.userspace_addr = (uintptr_t)ram.at;
	if (cfg.vm_fd < 0 || ram.at == MAP_FAILED ||
	    ioctl(cfg.vm_fd, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		return failed("KVM_CREATE_VM");
	fd = ioctl(cfg.vm_fd, KVM_CREATE_VCPU, 0);
	run = mmap(NULL, (size_t)ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE,
		   MAP_SHARED, fd, 0);
	if (fd < 0 || run == MAP_FAILED)
		return failed("KVM_CREATE_VCPU");

	cfg.ram = &ram;
	if ((argc > 1 && !strcmp(argv[1], "--clock")) || vpmu_kvm_vm_new(&cfg, &vm, why)) {
		printf("the CPU time of the thread: %s\n", why);
		cfg.map = clock;
		cfg.n_map = sizeof(clock) / sizeof(clock[0]);
		if (vpmu_kvm_vm_new(&cfg, &vm, why)) {
			fprintf(stderr, "kvm-doorbell: %s\n", why);
			return 77;
		}
	}
	errno = -vpmu_kvm_vcpu_new(vm, 0, fd, run, &vcpu);
	if (errno)
		return failed("vCPU");
	load_guest(ram.at);
	ret = set_cpu(kvm, fd, vcpu, AT(code)) || run_guest(fd, run, vcpu) ||
	      report(ram.at, vcpu);
	vpmu_kvm_vcpu_free(vcpu);
	vpmu_kvm_vm_free(vm);
	return ret;
}
