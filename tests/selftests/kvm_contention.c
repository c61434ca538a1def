// SPDX-License-Identifier: GPL-2.0-only
/*
 * The outcome when a guest of KVM counts and its host has perf events of its own.
 *
 * The guest's counter (K) is programmed by the guest, by WRMSR; it counts branches, which
 * no fixed counter does. This program is the guest's VMM: each of its steps is one entry
 * into a guest of four instructions, whose only branches are those of a LOOP that jumps
 * to itself, so that the value of K is known to the branch. Between two steps it opens
 * and closes events of the host, on the CPU and on its own thread, which is the vCPU's.
 *
 * K is active if it has moved by the number of retired branches, and otherwise in error.
 * The state of a host's event is derived from read(2), like in perf_contention.c. A
 * result counts if two runs in a row agree; each is compared with the kernel's rules. The
 * cases are those of the vPMU document of August 2023 and of its review. Where KVM hands the
 * counters themselves to guests (enable_mediated_pmu) there are other cases: an event of the
 * host counts outside of the guest, or is refused. The cases "lbr" need a KVM that gives its
 * guests Intel's branch records of a legacy format. The cases "told" need one that tells its
 * guests of lost counters (KVM_FEATURE_PMU_LOST); such a KVM also gives counters back.
 *
 * Needs root, /dev/kvm with a PMU for guests, AMD's or Intel's. Real processors of AMD
 * count each VMRUN as a branch of the guest; there K reads more than this expects. Builds
 * alone: gcc -O2 -Wall -pthread -o kvm_contention kvm_contention.c
 *
 *	kvm_contention [--json] [PREFIX]   cases whose names begin so; default: all
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/kvm_para.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define EXIT_PASS 0 /* as KSFT_PASS, KSFT_FAIL and KSFT_SKIP */
#define EXIT_FAIL 1
#define EXIT_SKIP 4

#define MSR_LOST 0x4b564d09 /* MSR_KVM_PMU_LOST */
#define FEATURE_LOST 18     /* KVM_FEATURE_PMU_LOST */
#define MSR_PERF_CAPABILITIES 0x345
#define LBR_FORMAT 0x3fu
#define LBR_FORMAT_ARCH 0x3fu
#define MSR_LBR_SELECT 0x1c8
#define MSR_LBR_TOS 0x1c9
#define MSR_LBR_FROM 0x680
#define MSR_DEBUGCTL 0x1d9

#define MAX_COUNTERS 32
#define TRIES 20
#define LONG_MS 10000
#define LIMIT_S 300 /* for everything */
#define NS_PER_MS 1000000ull

#define MUX "/sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms"
#define WATCHDOG "/proc/sys/kernel/nmi_watchdog"

static const char *prefix = "";
static bool json, mediated;
static bool tells, records; /* guests have MSR_LOST; branch records */
static unsigned int n_counters; /* the host's; the guest has the same number */
static char old_mux[32], old_watchdog[32];

/* ---- the end */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static void read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
}

static void restore(void)
{
	if (old_mux[0])
		write_file(MUX, old_mux);
	if (old_watchdog[0])
		write_file(WATCHDOG, old_watchdog);
}

static void __attribute__((noreturn, format(printf, 2, 3)))
end(int status, const char *format, ...)
{
	FILE *to = json ? stderr : stdout;
	va_list ap;

	va_start(ap, format);
	fprintf(to, status == EXIT_SKIP ? "1..0 # SKIP " : "Bail out! ");
	vfprintf(to, format, ap);
	fprintf(to, "\n");
	va_end(ap);
	exit(status);
}

static void on_alarm(int sig)
{
	static const char late[] = "Bail out! took too long\n";

	(void)sig;
	if (write(STDERR_FILENO, late, sizeof(late) - 1) < 0)
		_exit(EXIT_FAIL);
	restore();
	_exit(EXIT_FAIL);
}

/* ---- the guest */

#define CODE_WRMSR 0x1000
#define CODE_RDMSR 0x1010
#define CODE_LOOP 0x1020
#define CODE_FAULT 0x1030
#define PORT_DONE 0x10
#define PORT_FAULT 0x11

static const uint8_t code_wrmsr[] = {0x0f, 0x30, 0xe6, PORT_DONE};
static const uint8_t code_rdmsr[] = {0x0f, 0x32, 0xe6, PORT_DONE};
static const uint8_t code_loop[] = {0xe2, 0xfe, 0xe6, PORT_DONE}; /* CX times */
static const uint8_t code_fault[] = {0xe6, PORT_FAULT};

static int vcpu_fd;
static struct kvm_run *kvm_run;
static struct kvm_sregs real_mode;
static uint8_t *memory;

/* The PMU as the guest sees it. */
static uint32_t msr_select, msr_count, msr_step, msr_global;
static uint64_t select_branches, select_other; /* ring 0 and 3, enabled */

static void require(long result, const char *what)
{
	if (result < 0)
		end(EXIT_FAIL, "%s: %s", what, strerror(errno));
}

static void place(unsigned int address, const void *code, size_t size)
{
	memcpy(memory + address, code, size);
}

static void load_code(void)
{
	const uint16_t gp[2] = {CODE_FAULT, 0};

	place(CODE_WRMSR, code_wrmsr, sizeof(code_wrmsr));
	place(CODE_RDMSR, code_rdmsr, sizeof(code_rdmsr));
	place(CODE_LOOP, code_loop, sizeof(code_loop));
	place(CODE_FAULT, code_fault, sizeof(code_fault));
	place(13 * 4, gp, sizeof(gp));
}

/* One entry, until the OUT. Returns false after a fault. */
static bool guest_enter(struct kvm_regs *regs)
{
	require(ioctl(vcpu_fd, KVM_SET_REGS, regs), "KVM_SET_REGS");
	while (ioctl(vcpu_fd, KVM_RUN, 0) < 0)
		if (errno != EINTR && errno != EAGAIN)
			end(EXIT_FAIL, "KVM_RUN: %s", strerror(errno));
	if (kvm_run->exit_reason != KVM_EXIT_IO)
		end(EXIT_FAIL, "the guest left with reason %u", kvm_run->exit_reason);
	require(ioctl(vcpu_fd, KVM_GET_REGS, regs), "KVM_GET_REGS");
	return kvm_run->io.port == PORT_DONE;
}

static bool guest_step(struct kvm_regs *regs, uint64_t rip)
{
	regs->rip = rip;
	regs->rsp = 0x8000;
	regs->rflags = 2;
	return guest_enter(regs);
}

static bool guest_wrmsr(uint32_t msr, uint64_t value)
{
	struct kvm_regs regs = {.rcx = msr, .rax = (uint32_t)value, .rdx = value >> 32};

	return guest_step(&regs, CODE_WRMSR);
}

static bool guest_rdmsr(uint32_t msr, uint64_t *value)
{
	struct kvm_regs regs = {.rcx = msr};

	if (!guest_step(&regs, CODE_RDMSR))
		return false;
	*value = (uint32_t)regs.rax | regs.rdx << 32;
	return true;
}

static void guest_branches(unsigned int n)
{
	struct kvm_regs regs = {.rcx = n};

	if (!guest_step(&regs, CODE_LOOP))
		end(EXIT_FAIL, "the guest's loop faults");
}

/* Run the branches in user mode, flat and unpaged. */
static void guest_user_branches(unsigned int n)
{
	const struct kvm_segment flat = {
		.limit = 0xffffffff, .selector = 3, .present = 1, .dpl = 3, .db = 1,
		.s = 1, .g = 1, .type = 3,
	};
	struct kvm_regs regs = {.rcx = n, .rip = CODE_LOOP, .rflags = 0x3002};
	struct kvm_sregs user = real_mode;

	user.cr0 |= 1;
	user.ds = user.es = user.ss = flat;
	user.cs = flat;
	user.cs.type = 11;
	require(ioctl(vcpu_fd, KVM_SET_SREGS, &user), "KVM_SET_SREGS");
	if (!guest_enter(&regs))
		end(EXIT_FAIL, "the guest's loop faults");
	require(ioctl(vcpu_fd, KVM_SET_SREGS, &real_mode), "KVM_SET_SREGS");
}

static struct kvm_cpuid2 *supported_cpuid(int kvm)
{
	struct kvm_cpuid2 *c = calloc(1, sizeof(*c) + 256 * sizeof(c->entries[0]));

	if (!c)
		end(EXIT_FAIL, "no memory");
	c->nent = 256;
	require(ioctl(kvm, KVM_GET_SUPPORTED_CPUID, c), "KVM_GET_SUPPORTED_CPUID");
	return c;
}

static const struct kvm_cpuid_entry2 *leaf(const struct kvm_cpuid2 *c, uint32_t function)
{
	unsigned int i;

	for (i = 0; i < c->nent; i++)
		if (c->entries[i].function == function)
			return &c->entries[i];
	return NULL;
}

/* Which registers the guest's counters have. Returns their number, 0: no PMU. */
static unsigned int learn_pmu(const struct kvm_cpuid2 *c)
{
	const struct kvm_cpuid_entry2 *vendor = leaf(c, 0), *l;
	bool core;

	if (vendor && vendor->ebx == signature_INTEL_ebx) {
		l = leaf(c, 0xa);
		if (!l || !(l->eax & 0xff))
			return 0;
		msr_select = 0x186;
		msr_count = 0xc1;
		msr_step = 1;
		msr_global = (l->eax & 0xff) > 1 ? 0x38f : 0;
		select_branches = 0x4300c4;
		select_other = 0x4300c0;
		return l->eax >> 8 & 0xff;
	}
	l = leaf(c, 0x80000001);
	core = l && l->ecx >> 23 & 1;
	msr_select = core ? 0xc0010200 : 0xc0010000;
	msr_count = core ? 0xc0010201 : 0xc0010004;
	msr_step = core ? 2 : 1;
	select_branches = 0x4300c2;
	select_other = 0x4300c0;
	l = leaf(c, 0x80000022);
	if (!l || !(l->eax & 1))
		return core ? 6 : 4;
	msr_global = 0xc0000301;
	return l->ebx & 0xf;
}

static bool vmm_msr(int fd, unsigned long request, uint32_t index, uint64_t *value)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry;
	} m = {.head = {.nmsrs = 1}, .entry = {.index = index, .data = *value}};

	if (ioctl(fd, request, &m) != 1)
		return false;
	*value = m.entry.data;
	return true;
}

/* KVM offers them in the host's format. Few guests have them: their VMM has to ask. */
static bool give_records(int kvm)
{
	uint64_t caps = 0;

	if (!vmm_msr(kvm, KVM_GET_MSRS, MSR_PERF_CAPABILITIES, &caps))
		return false;
	if (!(caps & LBR_FORMAT) || (caps & LBR_FORMAT) == LBR_FORMAT_ARCH)
		return false;
	return vmm_msr(vcpu_fd, KVM_SET_MSRS, MSR_PERF_CAPABILITIES, &caps);
}

/* The guest's vCPU, or -1 with errno. Its VM has a local APIC if KVM's mediated PMU wants one. */
static int create_vcpu(int kvm, int *vm)
{
	*vm = ioctl(kvm, KVM_CREATE_VM, 0);
	require(*vm, "KVM_CREATE_VM");
	if (mediated)
		require(ioctl(*vm, KVM_CREATE_IRQCHIP, 0), "KVM_CREATE_IRQCHIP");
	return ioctl(*vm, KVM_CREATE_VCPU, 0);
}

static int open_kvm(void)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (kvm < 0)
		end(EXIT_SKIP, "/dev/kvm: %s", strerror(errno));
	return kvm;
}

static void create_guest(void)
{
	int kvm = open_kvm(), vm;
	struct kvm_userspace_memory_region region = {.memory_size = 0x10000};
	const struct kvm_cpuid_entry2 *features;
	struct kvm_cpuid2 *cpuid;
	unsigned int n;
	uint64_t value;

	vcpu_fd = create_vcpu(kvm, &vm);
	require(vcpu_fd, "KVM_CREATE_VCPU");
	memory = mmap(NULL, region.memory_size, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		end(EXIT_FAIL, "no memory");
	region.userspace_addr = (uintptr_t)memory;
	require(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	cpuid = supported_cpuid(kvm);
	n = learn_pmu(cpuid);
	features = leaf(cpuid, KVM_CPUID_FEATURES);
	tells = features && features->eax >> FEATURE_LOST & 1;
	require(ioctl(vcpu_fd, KVM_SET_CPUID2, cpuid), "KVM_SET_CPUID2");
	free(cpuid);
	records = give_records(kvm);
	kvm_run = mmap(NULL, ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE,
		       MAP_SHARED, vcpu_fd, 0);
	if (kvm_run == MAP_FAILED)
		end(EXIT_FAIL, "the vCPU cannot be mapped");
	require(ioctl(vcpu_fd, KVM_GET_SREGS, &real_mode), "KVM_GET_SREGS");
	real_mode.cs.base = 0;
	real_mode.cs.selector = 0;
	require(ioctl(vcpu_fd, KVM_SET_SREGS, &real_mode), "KVM_SET_SREGS");
	load_code();
	if (!n || !guest_wrmsr(msr_count, 0x55) || !guest_rdmsr(msr_count, &value) ||
	    value != 0x55)
		end(EXIT_SKIP, "KVM gives its guests no PMU");
	if (n < n_counters)
		end(EXIT_SKIP, "the guest has %u counters, the host %u", n, n_counters);
	if (msr_global && !guest_wrmsr(msr_global, (1ull << n_counters) - 1))
		end(EXIT_FAIL, "the guest's global control faults");
}

/* ---- the guest's counters: K is one, or several, from the first on */

struct k {
	unsigned int first, n;
	bool active; /* moved by all that retired last */
};

static void k_select(unsigned int i, uint64_t value)
{
	if (!guest_wrmsr(msr_select + i * msr_step, value))
		end(EXIT_FAIL, "a write to the event select of counter %u faults", i);
}

static void k_write(unsigned int i, uint64_t value)
{
	if (!guest_wrmsr(msr_count + i * msr_step, value))
		end(EXIT_FAIL, "a write to counter %u faults", i);
}

static uint64_t k_read(unsigned int i)
{
	uint64_t value;

	if (!guest_rdmsr(msr_count + i * msr_step, &value))
		end(EXIT_FAIL, "a read of counter %u faults", i);
	return value;
}

static void k_enable(const struct k *k)
{
	unsigned int i;

	for (i = k->first; i < k->first + k->n; i++)
		k_select(i, select_branches);
}

static void k_disable(const struct k *k)
{
	unsigned int i;

	for (i = k->first; i < k->first + k->n; i++)
		k_select(i, 0);
}

static void k_enable_again(const struct k *k)
{
	k_disable(k);
	k_enable(k);
}

/*
 * KVM keeps the event of a counter that is off, and its age, for the next enable with
 * the same select: with another one in between it makes a new one.
 */
static void k_reset(void)
{
	unsigned int i;

	for (i = 0; i < n_counters; i++) {
		k_select(i, select_other);
		k_select(i, 0);
		k_write(i, 0);
	}
}

/* ---- the host's events */

enum class { CP, TP, CF };
enum state { ACTIVE, INACTIVE, ERROR, OFF, STATES };

static const char *const state_name[] = {"active", "inactive", "error", "off"};

struct side {
	unsigned int n;
	int fd[MAX_COUNTERS + 1];
};

struct reading {
	uint64_t value, enabled, running;
};

static struct perf_event_attr branches_as(enum class class)
{
	return (struct perf_event_attr) {
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.pinned = class != CF,
	};
}

static int open_as(struct perf_event_attr *attr, enum class class)
{
	bool task = class == TP;

	return syscall(SYS_perf_event_open, attr, task ? 0 : -1, task ? -1 : 0, -1,
		       PERF_FLAG_FD_CLOEXEC);
}

static int open_event(enum class class, bool exclude_guest)
{
	struct perf_event_attr attr = branches_as(class);

	attr.exclude_guest = exclude_guest;
	return open_as(&attr, class);
}

static void come_as(struct side *s, enum class class, unsigned int n, bool exclude_guest)
{
	for (s->n = 0; s->n < n; s->n++) {
		s->fd[s->n] = open_event(class, exclude_guest);
		require(s->fd[s->n], "perf_event_open");
	}
}

static void come(struct side *s, enum class class, unsigned int n)
{
	come_as(s, class, n, false);
}

static void go(struct side *s)
{
	while (s->n)
		close(s->fd[--s->n]);
}

/* Returns false in the error state. */
static bool read_event(int fd, struct reading *r)
{
	ssize_t n = read(fd, r, sizeof(*r));

	if (n != 0 && n != sizeof(*r))
		end(EXIT_FAIL, "read of an event: %zd, %s", n, n < 0 ? strerror(errno) : "short");
	return n != 0;
}

static enum state state_of(int fd)
{
	struct reading a, b;
	unsigned int i;

	if (!read_event(fd, &a))
		return ERROR;
	for (i = 0; i < 1000; i++) {
		if (!read_event(fd, &b))
			return ERROR;
		if (b.enabled != a.enabled)
			return b.running == a.running ? INACTIVE : ACTIVE;
	}
	return OFF;
}

static unsigned int count_counters(void)
{
	struct side s;
	unsigned int n = 0;

	come(&s, CP, MAX_COUNTERS);
	while (n < s.n && state_of(s.fd[n]) == ACTIVE)
		n++;
	go(&s);
	return n;
}

/* ---- the thread: what happens while the vCPU's is off the CPU */

static void nothing(void *arg)
{
	(void)arg;
}

struct meanwhile {
	void (*what)(void *arg);
	void *arg;
};

static void *other_thread(void *arg)
{
	const struct meanwhile *m = arg;
	const struct timespec t = {.tv_nsec = 2 * NS_PER_MS};

	nanosleep(&t, NULL); /* the vCPU's thread waits for this one now */
	m->what(m->arg);
	return NULL;
}

/* The vCPU's thread leaves the CPU, @what(@arg) happens, and it returns. */
static void switched_out(void (*what)(void *arg), void *arg)
{
	struct meanwhile m = {what, arg};
	pthread_t thread;

	if (pthread_create(&thread, NULL, other_thread, &m) || pthread_join(thread, NULL))
		end(EXIT_FAIL, "no thread");
}

/* Another thread on this CPU, which takes turns with the vCPU's. */
static pthread_t spinning;
static bool stop_spinning;

static void *spin(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop_spinning, __ATOMIC_RELAXED))
		;
	return NULL;
}

static void spin_start(void)
{
	stop_spinning = false;
	if (pthread_create(&spinning, NULL, spin, NULL))
		end(EXIT_FAIL, "no thread");
}

static void spin_stop(void)
{
	__atomic_store_n(&stop_spinning, true, __ATOMIC_RELAXED);
	pthread_join(spinning, NULL);
}

static void cp_come(void *arg)
{
	come(arg, CP, n_counters);
}

static void cp_go(void *arg)
{
	go(arg);
}

static void cp_come_and_go(void *arg)
{
	come(arg, CP, n_counters);
	go(arg);
}

static void timer_turns(void)
{
	uint64_t until;
	struct timespec t;

	/* Long enough for several, without leaving the CPU. */
	write_file(MUX, "2");
	clock_gettime(CLOCK_MONOTONIC, &t);
	until = t.tv_sec * 1000000000ull + t.tv_nsec + 20 * NS_PER_MS;
	do
		clock_gettime(CLOCK_MONOTONIC, &t);
	while (t.tv_sec * 1000000000ull + t.tv_nsec < until);
	write_file(MUX, "10000");
}

/* ---- results: "KEY: VALUE; KEY: VALUE" */

struct text {
	char s[240];
};

static void __attribute__((format(printf, 3, 4)))
add(struct text *t, const char *key, const char *format, ...)
{
	size_t n = strlen(t->s);
	va_list ap;

	n += snprintf(t->s + n, sizeof(t->s) - n, "%s%s: ", n ? "; " : "", key);
	va_start(ap, format);
	vsnprintf(t->s + n, sizeof(t->s) - n, format, ap);
	va_end(ap);
}

/* As "5 active, 1 inactive". */
static void add_states(struct text *t, const char *key, const struct side *s)
{
	unsigned int count[STATES] = {0}, i, n = 0;
	char list[80] = "";

	for (i = 0; i < s->n; i++)
		count[state_of(s->fd[i])]++;
	for (i = 0; i < STATES; i++)
		if (count[i])
			n += snprintf(list + n, sizeof(list) - n, "%s%u %s", n ? ", " : "",
				      count[i], state_name[i]);
	add(t, key, "%s", list);
}

/* The worst state of them all. */
static void add_side(struct text *t, const char *key, const struct side *s)
{
	enum state worst = ACTIVE, state;
	unsigned int i;

	for (i = 0; i < s->n; i++) {
		state = state_of(s->fd[i]);
		worst = state > worst ? state : worst;
	}
	add(t, key, "%s", state_name[worst]);
}

/* @n branches retire in the guest; which of K's counters they move. */
static void run(struct k *k, unsigned int n)
{
	uint64_t before[MAX_COUNTERS], moved;
	unsigned int i;

	for (i = 0; i < k->n; i++)
		before[i] = k_read(k->first + i);
	guest_branches(n);
	k->active = true;
	for (i = 0; i < k->n; i++) {
		moved = k_read(k->first + i) - before[i];
		if (moved != n)
			k->active = false;
	}
}

/* The state of K, by a few more branches. */
static const char *k_state(struct k *k)
{
	run(k, 16);
	return k->active ? "active" : "error";
}

static void report(struct text *t, const struct k *k)
{
	add(t, "K", "%s", k->active ? "active" : "error");
	add(t, "reads", "%llu", (unsigned long long)k_read(k->first));
}

/* ---- cases, with the names of vpmu contention; "modes" is none of these */

static void counter_1(struct text *t)
{
	struct k k = {0, 1, false};
	struct side cp;

	come(&cp, CP, n_counters);
	k_enable(&k);
	run(&k, 1000);
	report(t, &k);
	k_disable(&k);
	k_write(0, 777);
	k_enable(&k);
	run(&k, 1000);
	add(t, "reads_written", "%llu", (unsigned long long)k_read(0));
	go(&cp);
}

static void counter_2(struct text *t)
{
	struct k k = {0, 1, false};
	struct side cp;

	come(&cp, CP, n_counters);
	k_enable(&k);
	run(&k, 1000);
	go(&cp);
	add(t, "after_release", "%s", k_state(&k));
	timer_turns();
	add(t, "after_timer", "%s", k_state(&k));
	switched_out(nothing, NULL);
	add(t, "after_switch", "%s", k_state(&k));
	k_enable_again(&k);
	run(&k, 1000);
	report(t, &k);
}

static void counter_3(struct text *t)
{
	struct k k = {0, 1, false};
	struct side cp;

	k_enable(&k);
	run(&k, 1000);
	come(&cp, CP, n_counters);
	run(&k, 1000);
	report(t, &k);
	go(&cp);
}

static void counter_4(struct text *t)
{
	struct k k = {0, 1, false};
	struct side cf;

	come(&cf, CF, n_counters);
	k_enable(&k);
	add_states(t, "CF", &cf);
	run(&k, 1000);
	report(t, &k);
	go(&cf);
}

static void counter_5(struct text *t)
{
	struct k k = {0, 1, false};
	struct side cf;

	k_enable(&k);
	run(&k, 1000);
	come(&cf, CF, n_counters);
	add_states(t, "CF", &cf);
	run(&k, 1000);
	report(t, &k);
	go(&cf);
}

static void counter_6(struct text *t)
{
	struct k k = {0, n_counters, false};
	struct side tp;

	k_enable(&k);
	run(&k, 1000);
	come(&tp, TP, 1);
	run(&k, 1000);
	add_side(t, "TP", &tp);
	report(t, &k);
	go(&tp);
}

static void counter_7(struct text *t)
{
	struct k k = {0, 1, false};
	struct side tp;

	come(&tp, TP, n_counters);
	k_enable(&k);
	run(&k, 1000);
	add_side(t, "TP", &tp);
	report(t, &k);
	go(&tp);
}

/* K was on and off before they came, and its event is the older one. */
static void kept_older(struct text *t)
{
	struct k k = {0, 1, false};
	struct side tp;

	k_enable(&k);
	k_disable(&k);
	come(&tp, TP, n_counters);
	k_enable(&k);
	run(&k, 1000);
	add_states(t, "TP", &tp);
	report(t, &k);
	go(&tp);
}

static void counter_10(struct text *t)
{
	struct k k = {0, 1, false};
	struct side cp;

	k_enable(&k);
	run(&k, 1000);
	switched_out(cp_come_and_go, &cp);
	add(t, "not_in_error", "%s", k_state(&k));
	come(&cp, CP, n_counters);
	switched_out(cp_go, &cp);
	add(t, "in_error", "%s", k_state(&k));
}

/* CF counts the host alone, and holds a counter while the guest runs all the same. */
static void counter_12(struct text *t)
{
	struct k k = {0, n_counters - 1, false}, last = {n_counters - 1, 1, false};
	struct side cf = {.n = 1};

	cf.fd[0] = open_event(CF, true);
	require(cf.fd[0], "perf_event_open");
	k_enable(&k);
	run(&k, 1000);
	add_side(t, "CF", &cf);
	k_enable(&last);
	add_side(t, "CF_when_full", &cf);
	add(t, "last", "%s", k_state(&last));
	go(&cf);
}

static void reenable_older(struct text *t)
{
	struct k k = {0, 1, false};
	struct side tp;
	unsigned int i;

	come(&tp, TP, n_counters);
	for (i = 0; i < tp.n; i++)
		require(ioctl(tp.fd[i], PERF_EVENT_IOC_DISABLE, 0), "disable");
	k_enable(&k);
	run(&k, 1000);
	add(t, "K_before", "%s", k.active ? "active" : "error");
	for (i = 0; i < tp.n; i++)
		require(ioctl(tp.fd[i], PERF_EVENT_IOC_ENABLE, 0), "enable");
	run(&k, 1000);
	add_side(t, "TP", &tp);
	report(t, &k);
	go(&tp);
}

static void reenable_error(struct text *t)
{
	struct k k = {0, 1, false};
	struct side cp;

	k_enable(&k);
	run(&k, 1000);
	come(&cp, CP, n_counters);
	run(&k, 1000);
	k_enable_again(&k);
	add(t, "while_held", "%s", k_state(&k));
	go(&cp);
	k_enable_again(&k);
	run(&k, 1000);
	report(t, &k);
}

static void switch_lost(struct text *t)
{
	struct k k = {0, 1, false};
	struct side cp;

	k_enable(&k);
	run(&k, 1000);
	switched_out(cp_come, &cp);
	run(&k, 1000);
	report(t, &k);
	go(&cp);
}

/*
 * Events of the host that count the guest, the host or both, here in user mode: in
 * one group, and started and stopped in kernel mode, so that they see the same.
 */
static void modes(struct text *t)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.read_format = PERF_FORMAT_GROUP,
		.exclude_kernel = 1,
	};
	struct {
		uint64_t n, both, guest, host;
	} got;
	struct side s = {.n = 3};
	unsigned int i;

	for (i = 0; i < 3; i++) {
		attr.disabled = !i;
		attr.exclude_host = i == 1;
		attr.exclude_guest = i == 2;
		s.fd[i] = syscall(SYS_perf_event_open, &attr, 0, -1, i ? s.fd[0] : -1,
				  PERF_FLAG_FD_CLOEXEC);
		require(s.fd[i], "perf_event_open");
	}
	require(ioctl(s.fd[0], PERF_EVENT_IOC_ENABLE, 0), "enable");
	for (i = 0; i < 10; i++)
		guest_user_branches(1000);
	require(ioctl(s.fd[0], PERF_EVENT_IOC_DISABLE, 0), "disable");
	if (read(s.fd[0], &got, sizeof(got)) != sizeof(got))
		end(EXIT_FAIL, "read of a group");
	add(t, "guest", "%llu", (unsigned long long)got.guest);
	add(t, "host", "%s", got.host ? "counts" : "0");
	add(t, "both", "guest + host %+lld",
	    (long long)(got.both - got.guest - got.host));
	go(&s);
}

/* ---- cases of a KVM that tells guests of lost counters */

static uint64_t lost(void)
{
	uint64_t value;

	if (!guest_rdmsr(MSR_LOST, &value))
		end(EXIT_FAIL, "a read of MSR_KVM_PMU_LOST faults");
	return value;
}

static void lost_clear(void)
{
	if (!guest_wrmsr(MSR_LOST, (1ull << n_counters) - 1))
		end(EXIT_FAIL, "a write to MSR_KVM_PMU_LOST faults");
}

static void add_lost(struct text *t, const char *key)
{
	add(t, key, "%llx", (unsigned long long)lost());
}

/* A loss is told while it lasts and afterwards, and no loss is told where there is none. */
static void told(struct text *t)
{
	struct k k = {0, 1, false}, second = {1, 1, false};
	struct side cp;

	lost_clear();
	k_enable(&k);
	k_enable(&second);
	run(&k, 1000);
	add_lost(t, "active");
	k_disable(&second);
	come(&cp, CP, n_counters);
	add_lost(t, "error");
	lost_clear();
	add_lost(t, "still");
	k_disable(&k);
	add_lost(t, "disabled");
	go(&cp);
	k_enable(&k);
	add_lost(t, "again");
	lost_clear();
	run(&k, 1000);
	add_lost(t, "since");
	report(t, &k);
}

/* The guest's only step is to run; another thread on the CPU takes turns with it. */
static void told_retry(struct text *t)
{
	struct k k = {0, 1, false};
	struct side cp;
	unsigned int i;

	lost_clear();
	k_enable(&k);
	come(&cp, CP, n_counters);
	run(&k, 1000);
	add(t, "before", "%s", k.active ? "active" : "error");
	go(&cp);
	spin_start();
	for (i = 0; i < 20000 && !k.active; i++)
		run(&k, 60000);
	spin_stop();
	add(t, "after", "%s", k.active ? "active" : "error");
	add_lost(t, "lost");
}

/* The guest can clear bits of counters that it has; its VMM loads and saves them. */
static void told_registers(struct text *t)
{
	uint64_t value = 2;

	lost_clear();
	add(t, "set", "%d", vmm_msr(vcpu_fd, KVM_SET_MSRS, MSR_LOST, &value));
	add_lost(t, "guest");
	add(t, "too_many", "%s", guest_wrmsr(MSR_LOST, 1ull << 63) ? "written" : "faults");
	value = 0;
	add(t, "get", "%d", vmm_msr(vcpu_fd, KVM_GET_MSRS, MSR_LOST, &value));
	add(t, "value", "%llx", (unsigned long long)value);
}

/* ---- the guest's branch records: V is the event that KVM has for them */

static void v_write(uint32_t msr, uint64_t value)
{
	if (!guest_wrmsr(msr, value))
		end(EXIT_FAIL, "a write to MSR %#x faults", msr);
}

static uint64_t v_read(uint32_t msr)
{
	uint64_t value;

	if (!guest_rdmsr(msr, &value))
		end(EXIT_FAIL, "a read of MSR %#x faults", msr);
	return value;
}

/*
 * KVM leaves a new V the LBR_SELECT of the host's last event; and while a guest does not record
 * KVM may release V, and what was written with it.
 */
static void v_enable(void)
{
	v_write(MSR_DEBUGCTL, 1);
	v_write(MSR_LBR_SELECT, 0);
}

static void v_disable(void)
{
	v_write(MSR_DEBUGCTL, 0);
}

/* V is active if the branches of a loop are recorded; the last one is not taken. */
static const char *v_state(void)
{
	uint64_t before = v_read(MSR_LBR_TOS), after;

	guest_branches(6);
	after = v_read(MSR_LBR_TOS);
	return ((after - before) & 7) == 5 &&
	       (uint32_t)v_read(MSR_LBR_FROM + after) == CODE_LOOP ? "active" : "error";
}

/* While a guest does not record, KVM releases V when a thread comes back to a CPU in KVM_RUN. */
static void v_release(void)
{
	struct rusage before, now;
	unsigned int i;

	v_disable();
	getrusage(RUSAGE_THREAD, &before);
	now = before;
	spin_start();
	for (i = 0; i < 20000 && now.ru_nivcsw < before.ru_nivcsw + 40; i++) {
		guest_branches(60000);
		getrusage(RUSAGE_THREAD, &now);
	}
	spin_stop();
}

/* An event of the host's with branch records, in @s. */
static void come_recording(struct side *s, enum class class)
{
	struct perf_event_attr attr = branches_as(class);

	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_USER;
	attr.sample_period = 1ull << 40; /* never */
	s->n = 1;
	s->fd[0] = open_as(&attr, class);
	require(s->fd[0], "perf_event_open with branch records");
}

/* Perf empties them for the first event of a CPU's with branch records alone. */
static void lbr_begin(struct text *t)
{
	struct side cp;
	unsigned int i, turn, found = 0;
	uint64_t from;

	/* A switch of tasks empties them, too. */
	for (turn = 0; turn < 10 && !found; turn++) {
		come_recording(&cp, CP); /* of calls, such as those of the next lines */
		for (i = 0; i < 32 && guest_rdmsr(MSR_LBR_FROM + i, &from); i++)
			found += from != 0;
		go(&cp);
		v_release();
	}
	add(t, "begins", "%s", found ? "with the host's records" : "empty");
}

/* The host's is the first. */
static void host_first(struct text *t, enum class class, const char *name)
{
	struct side host;

	come_recording(&host, class);
	v_enable();
	add_side(t, name, &host);
	add(t, "V", "%s", v_state());
	go(&host);
}

static void guest_first(struct text *t, enum class class, const char *name)
{
	struct side host;

	v_enable();
	add(t, "V_before", "%s", v_state());
	come_recording(&host, class);
	add_side(t, name, &host);
	add(t, "V", "%s", v_state());
	go(&host);
}

static void lbr_1(struct text *t)
{
	host_first(t, CP, "CP");
}

static void lbr_2(struct text *t)
{
	host_first(t, CF, "CF");
}

static void lbr_3(struct text *t)
{
	guest_first(t, CP, "CP");
}

static void lbr_4(struct text *t)
{
	guest_first(t, CF, "CF");
}

static void lbr_5(struct text *t)
{
	struct side cp;

	come_recording(&cp, CP);
	v_enable();
	add(t, "V_before", "%s", v_state());
	go(&cp);
	add(t, "after_release", "%s", v_state());
	v_disable();
	v_enable();
	add(t, "after_enable", "%s", v_state());
}

static void lbr_6(struct text *t)
{
	guest_first(t, TP, "TP");
}

static void lbr_7(struct text *t)
{
	host_first(t, TP, "TP");
}

/* An older K that finds no counter displaces V. Then: does an enable bring V back? */
static void lbr_cascade(struct text *t)
{
	struct k k = {0, 1, false};
	struct side cp;

	k_enable(&k);
	v_enable();
	add(t, "V_before", "%s", v_state());
	come(&cp, CP, n_counters);
	add(t, "K", "%s", k_state(&k));
	add(t, "V", "%s", v_state());
	go(&cp);
	v_disable();
	v_enable();
	add(t, "after_enable", "%s", v_state());
	v_release();
	v_enable();
	add(t, "after_cleanup", "%s", v_state());
}

/* ---- cases of the mediated PMU */

static int vm_beside_counting, vm_then; /* errors of KVM_CREATE_VCPU */

static const char *error_name(int error)
{
	switch (error) {
	case 0:
		return "none";
	case EBUSY:
		return "EBUSY";
	case EOPNOTSUPP:
		return "EOPNOTSUPP";
	default:
		return strerror(error);
	}
}

static int try_vm(void)
{
	int kvm = open_kvm(), vm, vcpu = create_vcpu(kvm, &vm), error = vcpu < 0 ? errno : 0;

	if (vcpu >= 0)
		close(vcpu);
	close(vm);
	close(kvm);
	return error;
}

/* Before there is a guest. */
static void try_vms(void)
{
	int fd = open_event(CP, false);

	require(fd, "perf_event_open");
	vm_beside_counting = try_vm();
	close(fd);
	vm_then = try_vm();
}

static void mediated_vm(struct text *t)
{
	add(t, "vm", "%s", error_name(vm_beside_counting));
	add(t, "vm_then", "%s", error_name(vm_then));
}

static uint64_t count_of(int fd)
{
	struct reading r;

	if (!read_event(fd, &r))
		end(EXIT_FAIL, "an event is in error");
	return r.value;
}

/*
 * Returns the number of these events that have counted the guest's branches. One that counts the
 * host alone moves too, by the way in and out; the guest makes so many that this is less.
 */
static unsigned int counting_guest(const struct side *s)
{
	enum { ENTRIES = 40, BRANCHES = 60000 };
	uint64_t before[MAX_COUNTERS];
	unsigned int i, n = 0;

	for (i = 0; i < s->n; i++)
		before[i] = count_of(s->fd[i]);
	for (i = 0; i < ENTRIES; i++)
		guest_branches(BRANCHES);
	for (i = 0; i < s->n; i++)
		n += count_of(s->fd[i]) - before[i] >= ENTRIES * BRANCHES;
	return n;
}

static void mediated_event(struct text *t)
{
	int fd = open_event(CP, false);
	struct side excluding;

	add(t, "counting", "%s", error_name(fd < 0 ? errno : 0));
	if (fd >= 0)
		close(fd);
	come_as(&excluding, CP, 1, true);
	add(t, "in_guest", "%s", counting_guest(&excluding) ? "active" : "inactive");
	add_side(t, "in_host", &excluding);
	go(&excluding);
}

static void mediated_keeps(struct text *t)
{
	struct k k = {0, n_counters, false};
	struct side cp;
	unsigned int counting;

	k_enable(&k);
	run(&k, 1000);
	come_as(&cp, CP, n_counters, true);
	run(&k, 1000);
	report(t, &k);
	add(t, "reads_then", "%llu", (unsigned long long)k_read(0));
	counting = counting_guest(&cp);
	add(t, "CP", "%u inactive", cp.n - counting);
	add_side(t, "in_host", &cp);
	go(&cp);
}

/* %1$u: all counters but one; %2$u: all of them. */
struct kvm_case {
	const char *id;
	void (*run)(struct text *t);
	const char *expected;
};

static const struct kvm_case mediated_cases[] = {
	{"mediated-vm", mediated_vm, "vm: EBUSY; vm_then: none"},
	{"mediated-event", mediated_event,
	 "counting: EOPNOTSUPP; in_guest: inactive; in_host: active"},
	{"mediated-keeps", mediated_keeps,
	 "K: active; reads: 2000; reads_then: 2000; CP: %2$u inactive; in_host: active"},
};

static const struct kvm_case emulated_cases[] = {
	{"counter-1", counter_1, "K: error; reads: 0; reads_written: 777"},
	{"counter-2", counter_2,
	 "after_release: error; after_timer: error; after_switch: error; K: active; reads: 1000"},
	{"counter-3", counter_3, "K: error; reads: 1000"},
	{"counter-4", counter_4, "CF: %1$u active, 1 inactive; K: active; reads: 1000"},
	{"counter-5", counter_5, "CF: %1$u active, 1 inactive; K: active; reads: 2000"},
	{"counter-6", counter_6, "TP: error; K: active; reads: 2000"},
	{"counter-7", counter_7, "TP: active; K: error; reads: 0"},
	{"counter-10", counter_10, "not_in_error: active; in_error: error"},
	{"counter-12", counter_12, "CF: active; CF_when_full: inactive; last: active"},
	{"kept-older", kept_older, "TP: %1$u active, 1 error; K: active; reads: 1000"},
	{"reenable-older", reenable_older,
	 "K_before: active; TP: active; K: error; reads: 1000"},
	{"reenable-error", reenable_error, "while_held: error; K: active; reads: 2000"},
	{"switch-lost", switch_lost, "K: error; reads: 1000"},
	{"modes", modes, "guest: 10000; host: counts; both: guest + host +0"},
};

static const struct kvm_case record_cases[] = {
	{"lbr-begin", lbr_begin, "begins: with the host's records"},
	{"lbr-1", lbr_1, "CP: active; V: active"},
	{"lbr-2", lbr_2, "CF: active; V: active"},
	{"lbr-3", lbr_3, "V_before: active; CP: active; V: active"},
	{"lbr-4", lbr_4, "V_before: active; CF: active; V: active"},
	{"lbr-5", lbr_5, "V_before: active; after_release: active; after_enable: active"},
	{"lbr-6", lbr_6, "V_before: active; TP: active; V: active"},
	{"lbr-7", lbr_7, "TP: active; V: active"},
	{"lbr-cascade", lbr_cascade,
	 "V_before: active; K: error; V: error; after_enable: error; after_cleanup: active"},
};

static const struct kvm_case told_cases[] = {
	{"told", told,
	 "active: 0; error: 1; still: 1; disabled: 1; again: 1; since: 0; K: active; reads: 2000"},
	{"told-retry", told_retry, "before: error; after: active; lost: 1"},
	{"told-registers", told_registers,
	 "set: 1; guest: 2; too_many: faults; get: 1; value: 2"},
};

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* In this order; @skip: why none of them is run. */
static struct part {
	const struct kvm_case *cases;
	unsigned int n;
	const char *skip;
} parts[] = {
	{emulated_cases, COUNT_OF(emulated_cases), NULL},
	{record_cases, COUNT_OF(record_cases), NULL},
	{told_cases, COUNT_OF(told_cases), NULL},
};

/* Two runs in a row agree: nothing else has come in between. */
static bool measure(const struct kvm_case *c, struct text *result)
{
	struct text last;
	unsigned int i;

	for (i = 0; i < TRIES; i++) {
		last = *result;
		k_reset();
		if (records)
			v_release();
		memset(result, 0, sizeof(*result));
		c->run(result);
		if (i && !strcmp(last.s, result->s))
			return true;
	}
	return false;
}

static void print_json(const struct kvm_case *c, const struct text *t, bool first)
{
	char copy[sizeof(t->s)], *pair, *save, *value;
	const char *comma = "";

	printf("%s\n  {\"id\": \"%s\", \"result\": {", first ? "" : ",", c->id);
	strcpy(copy, t->s);
	for (pair = strtok_r(copy, ";", &save); pair; pair = strtok_r(NULL, ";", &save)) {
		pair += *pair == ' ';
		value = strchr(pair, ':');
		*value = '\0';
		printf("%s\"%s\": \"%s\"", comma, pair, value + 2);
		comma = ", ";
	}
	printf("}}");
}

/* Case @c is number @i of those that are asked for. @skip: why it is not run, or NULL. */
static bool run_case(const struct kvm_case *c, unsigned int i, const char *skip)
{
	const char *format = c->expected;
	struct text t = {""}, expected;
	bool steady, good;

	if (skip) {
		if (!json)
			printf("ok %u %s # SKIP %s\n", i, c->id, skip);
		return true;
	}
	steady = measure(c, &t);
	if (tells && c->run == lbr_begin) /* the series that tells mends this, too */
		format = "begins: empty";

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
	snprintf(expected.s, sizeof(expected.s), format, n_counters - 1, n_counters);
#pragma GCC diagnostic pop
	good = steady && !strcmp(t.s, expected.s);
	if (json) {
		print_json(c, &t, i == 1);
		return good;
	}
	printf("%sok %u %s%s\n", good ? "" : "not ", i, c->id,
	       steady ? "" : " # no two runs agree");
	printf("# %s\n", t.s);
	if (!good)
		printf("# expected: %s\n", expected.s);
	return good;
}

static bool is_mediated(const char *module)
{
	char path[80], is[8] = "";

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/enable_mediated_pmu", module);
	read_file(path, is, sizeof(is));
	return is[0] == 'Y';
}

static void prepare(void)
{
	cpu_set_t set;
	int fd;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	require(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
	signal(SIGALRM, on_alarm);
	alarm(LIMIT_S);
	fd = open_event(CP, false);
	if (fd < 0)
		end(EXIT_SKIP, "the host's perf counts no branches: %s", strerror(errno));
	close(fd);
	read_file(MUX, old_mux, sizeof(old_mux));
	read_file(WATCHDOG, old_watchdog, sizeof(old_watchdog));
	atexit(restore);
	write_file(WATCHDOG, "0");
	write_file(MUX, "10000");
	n_counters = count_counters();
	if (n_counters < 2)
		end(EXIT_SKIP, "%u counters are free", n_counters);
	mediated = is_mediated("kvm_intel") || is_mediated("kvm_amd");
	if (mediated) {
		parts[0].cases = mediated_cases;
		parts[0].n = COUNT_OF(mediated_cases);
		try_vms();
	}
	create_guest();
	if (!records)
		parts[1].skip = "KVM gives its guests no branch records of a legacy format";
	if (mediated)
		parts[2].skip = "counters of a mediated PMU are not lost";
	else if (!tells)
		parts[2].skip = "KVM lacks KVM_FEATURE_PMU_LOST";
}

static bool asked_for(const struct kvm_case *c)
{
	return !strncmp(c->id, prefix, strlen(prefix));
}

static unsigned int count_cases(void)
{
	unsigned int i, j, n = 0;

	for (i = 0; i < COUNT_OF(parts); i++)
		for (j = 0; j < parts[i].n; j++)
			n += asked_for(&parts[i].cases[j]);
	return n;
}

int main(int argc, char **argv)
{
	struct utsname name;
	bool good = true;
	unsigned int i, j, n = 0;

	json = argc > 1 && !strcmp(argv[1], "--json");
	if (argc > 1 + json)
		prefix = argv[1 + json];
	setbuf(stdout, NULL);
	uname(&name);
	prepare();
	if (json)
		printf("{\"kernel\": \"%s\", \"kvm\": true, \"counters\": %u,\n"
		       " \"cells\": [], \"cases\": [",
		       name.release, n_counters);
	else
		printf("TAP version 13\n1..%u\n", count_cases());
	for (i = 0; i < COUNT_OF(parts); i++)
		for (j = 0; j < parts[i].n; j++)
			if (asked_for(&parts[i].cases[j]))
				good &= run_case(&parts[i].cases[j], ++n, parts[i].skip);
	if (json)
		printf("]}\n");
	return good ? EXIT_PASS : EXIT_FAIL;
}
