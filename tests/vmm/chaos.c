// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * VMMs that do at random what a VMM may do, and what it should not, beside others whose
 * counts have to be exact: chaos SEED SECONDS. Attackers are killed and begin again with
 * seeds that follow from SEED; which of them meets which is up to the machine.
 */
#define _GNU_SOURCE
#include "vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ATTACKERS	2
#define WITNESSES	2
#define WORKERS		3
#define VMS		3
#define VCPUS		4
#define PERIOD		500009u
#define RATE		"/proc/sys/kernel/perf_event_max_sample_rate"
#define SHARE		"/proc/sys/kernel/perf_cpu_time_max_percent"
#define DEBUG		"/sys/kernel/debug/vpmu_kvm/vms"

/* Memory that all processes share. */
static struct shared {
	volatile bool stop;
	uint64_t rounds, told, wrong, acts, done, deaths;
	char why[200];
} *shared;

static uint64_t next(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static unsigned int below(uint64_t *seed, unsigned int n)
{
	return next(seed) % n;
}

static void add(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- witnesses */

static void wrong(const char *what, uint64_t seed, uint64_t got, uint64_t want, uint32_t flags)
{
	if (__atomic_fetch_add(&shared->wrong, 1, __ATOMIC_RELAXED))
		return;
	snprintf(shared->why, sizeof(shared->why), "%s: %lld, not %lld; flags %#x; seed %#llx",
		 what, (long long)got, (long long)want, flags, (unsigned long long)seed);
}

static bool was_told(volatile struct vpmu_pv_slot *s, uint64_t unseen)
{
	return s->flags & (VPMU_PV_SLOT_LOST | VPMU_PV_SLOT_THROTTLED) ||
	       s->enabled - s->running != unseen;
}

/* Event 1 counts, event 2 overflows; both are enabled for one loop. */
static void round_of(struct vmm_vcpu *v, uint64_t *seed)
{
	uint64_t turns = 1 + below(seed, below(seed, 4) ? 100000 : 3000000), was[2], unseen[2];
	uint64_t nmis = vmm_nmis(v), want, got;
	struct vpmu_pv_op op[2];
	int64_t ret;

	for (unsigned int i = 0; i < 2; i++) {
		was[i] = vmm_slot(v, i)->count;
		unseen[i] = vmm_slot(v, i)->enabled - vmm_slot(v, i)->running;
		op[i] = (struct vpmu_pv_op){ .op = VPMU_PV_ENABLE, .id = 1 + i, .slot = i };
	}
	op[1].u.enable.left = op[1].u.enable.period = PERIOD;
	ret = vmm_batch(v, op, 2);
	if (ret != 2 || op[0].result || op[1].result)
		return wrong("ENABLE", *seed, ret == 2 ? op[0].result | op[1].result : ret, 0, 0);
	if (vmm_loop(v, turns))
		return wrong("the loop", *seed, 1, 0, 0);
	ret = vmm_op(v, VPMU_PV_DISABLE, 1, 2);
	if (ret)
		return wrong("DISABLE", *seed, ret, 0, 0);
	nmis = vmm_nmis(v) - nmis;
	add(&shared->rounds);
	for (unsigned int i = 0; i < 2; i++) {
		volatile struct vpmu_pv_slot *s = vmm_slot(v, i);

		got = s->count - was[i];
		want = 2 * turns + 4 * nmis; /* the handler has 4 instructions */
		if (got == want || (nmis && got == want - 4))
			continue; /* the last NMI may have come after the DISABLE */
		if (got < want && was_told(s, unseen[i]))
			add(&shared->told);
		else
			wrong(i ? "a witness' second event" : "a witness' event", *seed, got, want,
			      s->flags);
	}
	got = (2 * turns + 4 * nmis) / PERIOD;
	if (nmis > got && !was_told(vmm_slot(v, 1), unseen[1]))
		wrong("a witness' NMIs", *seed, nmis, got, 0);
}

static void witness(uint64_t seed)
{
	vmm_quiet = false;
	while (!shared->stop) {
		struct vmm *vm = vmm_new(1 + below(&seed, 2), 0);
		struct vmm_vcpu *v = &vm->vcpu[vm->n_vcpus - 1];

		if (vmm_setup(v) || vmm_open(v, 1, 2, 1))
			wrong("SETUP, OPEN", seed, 1, 0, 0);
		for (unsigned int i = 0; i < 30 && !shared->stop; i++)
			round_of(v, &seed);
		vmm_free(vm);
	}
}

/* ---- attackers */

static struct slot {
	pthread_rwlock_t lock;             /* write: another VM */
	pthread_mutex_t vcpu[VCPUS];       /* one enters at a time, as KVM has it anyway */
	struct vmm *vm;
	int faults;                        /* the userfaultfd of its spare memory */
} slots[VMS];

static uint8_t saved[1 << 18];
static size_t saved_bytes;
static pthread_mutex_t saved_lock = PTHREAD_MUTEX_INITIALIZER;

static void random_bytes(uint64_t *seed, void *to, size_t n)
{
	uint8_t *p = to;

	while (n--)
		*p++ = next(seed);
}

static struct vpmu_pv_op random_op(uint64_t *seed)
{
	struct vpmu_pv_op op = { };

	if (!below(seed, 20)) {
		random_bytes(seed, &op, sizeof(op));
		return op;
	}
	op.op = below(seed, 8);
	op.id = 1 + below(seed, 8) * below(seed, 9);
	if (op.op == VPMU_PV_OPEN) {
		op.u.open.type = below(seed, 3) ? VPMU_PV_TYPE_HARDWARE : VPMU_PV_TYPE_RAW;
		op.u.open.config = op.u.open.type ? 0xc0 + below(seed, 4) : below(seed, 7);
		op.u.open.flags = below(seed, 4) ? 0 : below(seed, 8);
	} else {
		op.slot = op.id % 64;
		if (!below(seed, 8))
			op.slot = below(seed, 64);
		if (below(seed, 2)) {
			op.u.enable.left = 1 + below(seed, 300000);
			op.u.enable.period = below(seed, 3) ? 1 + below(seed, 300000) : 0;
		}
	}
	return op;
}

static void act_batch(struct vmm_vcpu *v, uint64_t *seed)
{
	unsigned int n = below(seed, 2) ? 1 + below(seed, 4) : 1 + below(seed, VPMU_PV_BATCH_MAX);
	struct vpmu_pv_op op[VPMU_PV_BATCH_MAX];

	for (unsigned int i = 0; i < n; i++)
		op[i] = random_op(seed);
	if (vmm_batch(v, op, n) < 0)
		return;
	for (unsigned int i = 0; i < n; i++)
		if (!op[i].result)
			add(&shared->done);
}

static void act_guest(struct vmm_vcpu *v, uint64_t *seed)
{
	static const unsigned int turns[] = { 1, 1000, 100000, 5000000 };
	unsigned int n = 1 + below(seed, turns[below(seed, 4)]);

	switch (below(seed, 5)) {
	case 0:
		if (vmm_has_svm())
			(void)vmm_nested(v, below(seed, 2), n);
		break;
	case 1:
		(void)vmm_store(v, VMM_SPARE, 1 + below(seed, 300));
		break;
	case 2:
		(void)vmm_run(v, guest_halt, 0, 0, n, 0, 0);
		break;
	default:
		(void)vmm_loop(v, n);
	}
}

static void act_call(struct vmm_vcpu *v, uint64_t *seed)
{
	switch (below(seed, 8)) {
	case 0:
		(void)vmm_call(v, VPMU_PV_OP_RESET, 0);
		break;
	case 1:
		(void)vmm_call(v, below(seed, 6), next(seed) & 0x7ffff8);
		break;
	case 2: /* a page that does not come at once */
		(void)vmm_call(v, VPMU_PV_OP_BATCH, VMM_SPARE + below(seed, 16) * 4096);
		break;
	default:
		(void)vmm_setup(v);
	}
}

static void act_memory(struct slot *s, uint64_t *seed)
{
	struct vmm *vm = s->vm;
	uint32_t flags = below(seed, 2) ? KVM_MEM_LOG_DIRTY_PAGES : 0;
	uint64_t at;

	switch (below(seed, 4)) {
	case 0:
		(void)vmm_memory(vm, 0, 0);
		usleep(below(seed, 2000));
		(void)vmm_memory(vm, flags, VMM_BYTES);
		break;
	case 1:
		(void)vmm_memory(vm, flags, VMM_BYTES);
		break;
	case 2: /* any page is another one, those that are pinned too */
		at = vmm_area(&vm->vcpu[0]) + below(seed, 4) * 0x8000 + below(seed, 2) * 4096;
		madvise(vm->mem + at, 4096, MADV_DONTNEED);
		break;
	default:
		madvise(vm->mem + VMM_SPARE, 16 * 4096, MADV_DONTNEED);
	}
}

static void act_filter(struct vmm *vm, uint64_t *seed)
{
	uint64_t event[4];
	unsigned int n = below(seed, 5);

	for (unsigned int i = 0; i < n; i++)
		event[i] = 0xc0 + below(seed, 6);
	(void)vmm_filter(vm, below(seed, 2), n, event);
}

static void act_state(struct vmm *vm, uint64_t *seed)
{
	pthread_mutex_lock(&saved_lock);
	if (below(seed, 2)) {
		saved_bytes = sizeof(saved);
		if (vmm_save(vm, saved, &saved_bytes))
			saved_bytes = 0;
	} else if (saved_bytes) {
		if (!below(seed, 4))
			saved[below(seed, saved_bytes)] ^= 1 << below(seed, 8);
		(void)vmm_load(vm, saved, saved_bytes);
	}
	pthread_mutex_unlock(&saved_lock);
}

/* A VM's spare memory comes when serve() says so. */
static int missing(struct vmm *vm)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = {
		.range = { .start = (uintptr_t)vm->mem + VMM_SPARE, .len = 16 * 4096 },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &r))
		vmm_die("userfaultfd");
	return fd;
}

static void make(struct slot *s, uint64_t *seed)
{
	static const unsigned int flags[] = { 0, VMM_DIRTY_LOG, VMM_DIRTY_RING, VMM_NO_PMU };

	s->vm = vmm_new(1 + below(seed, VCPUS), flags[below(seed, 8) % 4 % (1 + below(seed, 4))]);
	for (unsigned int i = 0; i < s->vm->n_vcpus; i++)
		s->vm->vcpu[i].stop = true; /* any signal ends a run */
	s->faults = missing(s->vm);
}

static void act_again(struct slot *s, uint64_t *seed)
{
	if (pthread_rwlock_trywrlock(&s->lock))
		return;
	close(s->faults);
	vmm_free(s->vm);
	make(s, seed);
	pthread_rwlock_unlock(&s->lock);
}

static void act(struct slot *s, uint64_t *seed)
{
	struct vmm *vm = s->vm;
	unsigned int number = below(seed, vm->n_vcpus), what = below(seed, 40);
	struct vmm_vcpu *v = &vm->vcpu[number];

	switch (what) {
	case 0:
		act_memory(s, seed);
		return;
	case 1:
		act_filter(vm, seed);
		return;
	case 2:
		act_state(vm, seed);
		return;
	case 3:
		(void)vmm_msi(vm, number, below(seed, 4) ? VMM_MSI_NMI : VMM_MSI_INIT);
		return;
	}
	if (pthread_mutex_trylock(&s->vcpu[number]))
		return;
	/*
	 * A signal may have ended the run of an SMI's handler. What follows would execute in
	 * SMM, where a shutdown makes the KVM of 6.1 and 6.12 warn, with this module or not:
	 * its kvm_vcpu_reset() expects that the vCPU has left SMM.
	 */
	vmm_leave_smm(v);
	if (what < 6) {
		*(volatile uint32_t *)(vm->mem + VMM_SMM_TURNS) = 1 + below(seed, 1000000);
		(void)vmm_smi(v);
	} else if (what < 9) {
		vmm_long_mode(v);
	} else if (what < 15) {
		act_call(v, seed);
	} else if (what < 28) {
		act_batch(v, seed);
	} else {
		act_guest(v, seed);
	}
	pthread_mutex_unlock(&s->vcpu[number]);
}

struct worker {
	pthread_t thread;
	uint64_t seed;
	bool runs;
	volatile bool ended;
};

/* Some hundred acts, and then another thread takes its place. */
static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned int n = 20 + below(&w->seed, 300);

	while (n-- && !shared->stop) {
		struct slot *s = &slots[below(&w->seed, VMS)];

		add(&shared->acts);
		if (!below(&w->seed, 100)) {
			act_again(s, &w->seed);
			continue;
		}
		pthread_rwlock_rdlock(&s->lock);
		act(s, &w->seed);
		pthread_rwlock_unlock(&s->lock);
	}
	w->ended = true;
	return NULL;
}

static void serve(uint64_t *seed)
{
	struct uffd_msg m;

	for (unsigned int i = 0; i < VMS; i++) {
		if (pthread_rwlock_tryrdlock(&slots[i].lock))
			continue;
		while (read(slots[i].faults, &m, sizeof(m)) == sizeof(m)) {
			struct uffdio_zeropage z = {
				.range.start = m.arg.pagefault.address & ~4095ull,
				.range.len = 4096,
			};

			usleep(below(seed, 20000));
			if (m.event == UFFD_EVENT_PAGEFAULT)
				(void)ioctl(slots[i].faults, UFFDIO_ZEROPAGE, &z);
		}
		pthread_rwlock_unlock(&slots[i].lock);
	}
}

static void nothing(int signal)
{
	(void)signal;
}

static void attacker(uint64_t seed)
{
	static struct worker worker[WORKERS];
	struct sigaction ignore = { .sa_handler = nothing };

	vmm_quiet = true;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &ignore, NULL);
	for (unsigned int i = 0; i < VMS; i++) {
		pthread_rwlock_init(&slots[i].lock, NULL);
		for (unsigned int j = 0; j < VCPUS; j++)
			pthread_mutex_init(&slots[i].vcpu[j], NULL);
		make(&slots[i], &seed);
	}
	while (!shared->stop) {
		for (unsigned int i = 0; i < WORKERS; i++) {
			struct worker *w = &worker[i];

			if (w->runs && w->ended)
				w->runs = pthread_join(w->thread, NULL);
			if (!w->runs) {
				w->seed = next(&seed);
				w->ended = false;
				w->runs = !pthread_create(&w->thread, NULL, work, w);
			} else if (!below(&seed, 10)) {
				pthread_kill(w->thread, SIGUSR1);
			}
		}
		serve(&seed);
		usleep(2000);
	}
}

/* ---- */

static pid_t begin(void (*what)(uint64_t), uint64_t seed)
{
	pid_t pid = fork();

	if (!pid) {
		what(seed);
		_exit(0);
	}
	return pid;
}

static bool ends(pid_t pid, unsigned int seconds, int *status)
{
	for (unsigned int i = 0; i < 100 * seconds; i++) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
		usleep(10000);
	}
	return false;
}

static void set(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY);

	if (fd >= 0 && write(fd, value, strlen(value)) < 0)
		printf("# %s: %s\n", file, strerror(errno));
	close(fd);
}

static bool nothing_left(char *line, size_t size)
{
	for (unsigned int i = 0; i < 300; i++) {
		int fd = open(DEBUG, O_RDONLY);
		ssize_t n = read(fd, line, size - 1);

		close(fd);
		line[n > 0 ? n : 0] = '\0';
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "vms 0 ", 6) && strstr(line, " counters 0 "))
			return true;
		usleep(100000);
	}
	return false;
}

int main(int argc, char **argv)
{
	static const char *const rates[] = { "1", "250", "1000", "100000" };
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 20);
	pid_t attackers[ATTACKERS], witnesses[WITNESSES];
	unsigned int left = 0;
	char line[200];
	int status;

	printf("# chaos %#llx\n", (unsigned long long)seed);
	fflush(stdout);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		vmm_die("mmap");
	set(SHARE, "25"); /* else no rate is taken */
	for (unsigned int i = 0; i < WITNESSES; i++)
		witnesses[i] = begin(witness, next(&seed));
	for (unsigned int i = 0; i < ATTACKERS; i++)
		attackers[i] = begin(attacker, next(&seed));
	while (time(NULL) < end && !shared->wrong) {
		unsigned int i = below(&seed, ATTACKERS);

		usleep(10000 + below(&seed, 700000));
		set(RATE, rates[below(&seed, 4)]);
		if (below(&seed, 2))
			kill(attackers[i], SIGKILL);
		else if (waitpid(attackers[i], &status, WNOHANG) != attackers[i])
			continue;
		else
			add(&shared->deaths);
		(void)ends(attackers[i], 20, &status);
		attackers[i] = begin(attacker, next(&seed));
	}
	shared->stop = true;
	for (unsigned int i = 0; i < ATTACKERS; i++) {
		kill(attackers[i], SIGKILL);
		left += !ends(attackers[i], 30, &status);
	}
	for (unsigned int i = 0; i < WITNESSES; i++) {
		if (ends(witnesses[i], 30, &status))
			continue;
		kill(witnesses[i], SIGKILL);
		left += 1;
	}
	set(RATE, "100000");
	printf("# %llu rounds of witnesses, %llu counts less, as they were told; %llu acts of "
	       "attackers, %llu operations were done; %llu ended by themselves\n",
	       (unsigned long long)shared->rounds, (unsigned long long)shared->told,
	       (unsigned long long)shared->acts, (unsigned long long)shared->done,
	       (unsigned long long)shared->deaths);
	if (left)
		printf("not ok processes: %u do not end\n", left);
	else
		printf("ok processes\n");
	if (shared->wrong)
		printf("not ok witnesses: %llu wrong, the first: %s\n",
		       (unsigned long long)shared->wrong, shared->why);
	else if (shared->told >= shared->rounds)
		printf("not ok witnesses: no count was exact\n");
	else
		printf("ok witnesses\n");
	if (nothing_left(line, sizeof(line)))
		printf("ok nothing is left\n");
	else
		printf("not ok nothing is left: %s\n", line);
	return 0;
}
