// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A guest of this guest's KVM, which leaves by I/O and whenever the timer of its VMM
 * interrupts it: prints how often it left in which way.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>

#define EXITS 300

/*
 * Real mode: 300 times OUT, with 20,000 rounds of a loop before each; then HLT. KVM executes
 * OUT and HLT, so the guest itself has 1 + 300 * 20,003 = 6,000,901 instructions.
 */
static const unsigned char code[] = {
	0xbb, EXITS & 0xff, EXITS >> 8,	/* mov bx, EXITS */
	0xb9, 0x20, 0x4e,		/* mov cx, 20000 */
	0xe2, 0xfe,			/* loop $ */
	0xe6, 0x10,			/* out 10h, al */
	0x4b,				/* dec bx */
	0x75, 0xf6,			/* jnz, to mov cx */
	0xf4,				/* hlt */
};

static void tick(int sig)
{
	(void)sig;
}

static int must(int ret, const char *what)
{
	if (ret < 0) {
		perror(what);
		exit(1);
	}
	return ret;
}

int main(void)
{
	int kvm = must(open("/dev/kvm", O_RDWR), "/dev/kvm");
	int vm = must(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
	int vcpu = must(ioctl(vm, KVM_CREATE_VCPU, 0), "KVM_CREATE_VCPU");
	size_t size = (size_t)must(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");
	void *ram = mmap(NULL, 0x1000, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kvm_run *run = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
	struct kvm_userspace_memory_region region = {
		.guest_phys_addr = 0x1000, .memory_size = 0x1000,
		.userspace_addr = (unsigned long)ram,
	};
	struct kvm_regs regs = { .rip = 0x1000, .rflags = 2 };
	struct itimerval each_ms = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction on_tick = { .sa_handler = tick };
	unsigned int outs = 0, ticks = 0;
	struct kvm_sregs sregs;

	if (ram == MAP_FAILED || run == MAP_FAILED)
		must(-1, "mmap");
	memcpy(ram, code, sizeof(code));
	must(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	must(ioctl(vcpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	must(ioctl(vcpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	must(ioctl(vcpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");
	must(sigaction(SIGALRM, &on_tick, NULL), "sigaction");
	must(setitimer(ITIMER_REAL, &each_ms, NULL), "setitimer");
	do {
		run->exit_reason = KVM_EXIT_INTR;
		if (ioctl(vcpu, KVM_RUN, 0) && errno != EINTR) /* which it is at a tick */
			must(-1, "KVM_RUN");
		outs += run->exit_reason == KVM_EXIT_IO;
		ticks += run->exit_reason == KVM_EXIT_INTR;
	} while (run->exit_reason == KVM_EXIT_IO || run->exit_reason == KVM_EXIT_INTR);
	printf("%u left by OUT, %u by the timer, then reason %u\n", outs, ticks, run->exit_reason);
	return outs != EXITS || !ticks || run->exit_reason != KVM_EXIT_HLT;
}
