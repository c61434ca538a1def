// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Attacks on vpmu_kvm.ko, each of which once succeeded or would break a promise of
 * docs/KVM-HOST.md: attack [CASE...]. A line for each, "ok CASE" or "not ok CASE: why".
 * Each runs in a process of its own, which is killed when it takes too long.
 */
#define _GNU_SOURCE
#include "case.h"
#include "vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vpmu-kvm-module.h>

#define INSTRUCTIONS	1	/* config of VPMU_PV_TYPE_HARDWARE */
#define BRANCHES	4
#define AMD_INSTRUCTIONS 0xc0	/* raw event of instructions */
#define LONG_LOOP	20000000u /* turns; more than some slices of 10 ms on any machine */
#define RATE		"/proc/sys/kernel/perf_event_max_sample_rate"
#define SHARE		"/proc/sys/kernel/perf_cpu_time_max_percent"
#define OPT_IN		"/sys/module/vpmu_kvm/parameters/opt_in"

struct numbers {
	uint64_t count, enabled, running;
	uint32_t flags, overflows;
};

static struct numbers slot_of(struct vmm_vcpu *v, unsigned int slot)
{
	volatile struct vpmu_pv_slot *s = vmm_slot(v, slot);

	return (struct numbers){ s->count, s->enabled, s->running, s->flags, s->overflows };
}

static bool told(const struct numbers *n)
{
	return n->flags & (VPMU_PV_SLOT_LOST | VPMU_PV_SLOT_THROTTLED) || n->running < n->enabled;
}

/* Event 1 in slot 0 of @v counts instructions. */
static const char *count_on(struct vmm_vcpu *v, uint64_t period)
{
	CHECK(vmm_setup(v), 0);
	CHECK(vmm_open(v, 1, 1, INSTRUCTIONS), 0);
	CHECK(vmm_enable(v, 1, 1, period), 0);
	return NULL;
}

/* The slot of event 1 is exact; or its count is less, and the slot says so. */
static const char *exact(struct vmm_vcpu *v, uint64_t want)
{
	struct numbers n;

	CHECK(vmm_op(v, VPMU_PV_READ, 1, 1), 0);
	n = slot_of(v, 0);
	if (n.count == want || (n.count < want && told(&n)))
		return NULL;
	FAIL("count %llu, not %llu; flags %#x, enabled - running %lld", (unsigned long long)n.count,
	     (unsigned long long)want, n.flags, (long long)(n.enabled - n.running));
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

struct job {
	pthread_t thread;
	struct vmm_vcpu *v;
	uint64_t turns;
	int64_t ret;
	volatile bool done;
};

static void *calls(void *arg)
{
	struct job *j = arg;

	j->ret = vmm_call(j->v, VPMU_PV_OP_VERSION, 0);
	j->done = true;
	return NULL;
}

static void *loops(void *arg)
{
	struct job *j = arg;

	j->ret = vmm_loop(j->v, j->turns);
	j->done = true;
	return NULL;
}

static const char *begin(struct job *j, struct vmm_vcpu *v, void *(*run)(void *), uint64_t turns)
{
	j->v = v;
	j->turns = turns;
	j->done = false;
	CHECK(pthread_create(&j->thread, NULL, run, j), 0);
	return NULL;
}

/* ---- what counts is exact at all */

static const char *t_exact(void)
{
	struct vmm *vm = vmm_new(2, 0);
	const char *wrong;

	for (unsigned int i = 0; i < 2; i++) {
		struct vmm_vcpu *v = &vm->vcpu[i];

		CHECK(vmm_call(v, VPMU_PV_OP_VERSION, 0), VPMU_PV_MAGIC);
		wrong = count_on(v, 0);
		if (wrong)
			return wrong;
		CHECK(vmm_loop(v, 100000), 0);
		CHECK(vmm_op(v, VPMU_PV_READ, 1, 1), 0);
		CHECK(slot_of(v, 0).count, 200000);
		CHECK(vmm_op(v, VPMU_PV_CLOSE, 1, 1), 0);
	}
	vmm_free(vm);
	return NULL;
}

/* ---- stall: a page of VM A does not come */

enum missing { OF_BATCH, OF_SETUP, OF_SLOTS, OF_LOAD };

static uint8_t state[1 << 16];
static size_t state_bytes = sizeof(state);

static void *waits(void *arg)
{
	struct job *j = arg;
	struct vpmu_pv_setup *setup = (void *)(j->v->vm->mem + vmm_area(j->v) + VMM_SETUP);

	switch ((enum missing)j->turns) {
	case OF_BATCH:
		j->ret = vmm_call(j->v, VPMU_PV_OP_BATCH, VMM_SPARE);
		break;
	case OF_SETUP:
		j->ret = vmm_call(j->v, VPMU_PV_OP_SETUP, VMM_SPARE);
		break;
	case OF_SLOTS:
		*setup = (struct vpmu_pv_setup){ .size = sizeof(*setup), .page = VMM_SPARE };
		j->ret = vmm_call(j->v, VPMU_PV_OP_SETUP, vmm_area(j->v) + VMM_SETUP);
		break;
	case OF_LOAD:
		j->ret = vmm_load(j->v->vm, state, state_bytes);
	}
	j->done = true;
	return NULL;
}

static void make_missing(struct vmm *vm, uint64_t at)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register missing = {
		.range = { .start = (uintptr_t)vm->mem + at, .len = 4096 },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &missing))
		vmm_die("userfaultfd");
}

/* vCPU 0 waits for a page; vCPU 1 calls for the first time, and its guest's PMU works. */
static const char *stalled_vm(enum missing of, int tell)
{
	struct vmm *vm = vmm_new(2, 0), *from;
	struct job j[2];
	const char *wrong;

	make_missing(vm, of == OF_LOAD ? vmm_area(&vm->vcpu[0]) + VMM_PAGE : VMM_SPARE);
	if (of == OF_LOAD) {
		from = vmm_new(2, 0);
		CHECK(vmm_setup(&from->vcpu[0]), 0);
		CHECK(vmm_save(from, state, &state_bytes), 0);
	} else {
		CHECK(vmm_call(&vm->vcpu[0], VPMU_PV_OP_VERSION, 0), VPMU_PV_MAGIC);
	}
	begin(&j[0], &vm->vcpu[0], waits, of);
	usleep(200000);
	if (j[0].done)
		FAIL("it does not wait for its page: %lld", (long long)j[0].ret);
	if (of == OF_LOAD) {
		CHECK(write(tell, "", 1), 1);
		pause();
	}
	begin(&j[1], &vm->vcpu[1], calls, 0);
	usleep(200000);
	CHECK(write(tell, "", 1), 1);
	for (unsigned int i = 0; i < 1000 && !j[1].done; i++)
		usleep(10000);
	if (!j[1].done)
		FAIL("its other vCPU waits, too");
	wrong = count_on(&vm->vcpu[1], 0);
	if (wrong)
		return wrong;
	CHECK(vmm_loop(&vm->vcpu[1], 1000), 0);
	wrong = exact(&vm->vcpu[1], 2000);
	if (wrong)
		return wrong;
	CHECK(vmm_save(vm, state, &state_bytes), EBUSY);
	CHECK(vmm_call(&vm->vcpu[1], VPMU_PV_OP_RESET, 0), 0);
	CHECK(write(tell, "", 1), 1);
	pause();
	return NULL;
}

static void read_statistics(void)
{
	char text[4096];
	int fd = open("/sys/kernel/debug/vpmu_kvm/vms", O_RDONLY);

	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

static const char *stall(enum missing of)
{
	int tell[2], status;
	bool done, killed = true;
	pid_t a, b;
	char c = 0;

	CHECK(pipe(tell), 0);
	a = fork();
	if (!a) {
		const char *wrong = stalled_vm(of, tell[1]);

		printf("# the VM that waits: %s\n", wrong ?: "");
		fflush(stdout);
		_exit(1);
	}
	close(tell[1]);
	CHECK(read(tell[0], &c, 1), 1);
	b = fork();
	if (!b) {
		struct vmm *vm = vmm_new(1, 0);

		if (vmm_call(&vm->vcpu[0], VPMU_PV_OP_VERSION, 0) != VPMU_PV_MAGIC)
			_exit(1);
		vmm_free(vm);
		read_statistics();
		_exit(0);
	}
	done = ends(b, 10, &status);
	if (!done) {
		kill(b, SIGKILL);
		killed = ends(b, 5, &status);
	}
	/* Every vCPU of its own VM except the one that waits continues. */
	if (done && of != OF_LOAD && read(tell[0], &c, 1) != 1)
		c = 1;
	kill(a, SIGKILL);
	if (!ends(a, 10, NULL))
		FAIL("the VM whose page does not come cannot be killed");
	if (!done)
		FAIL("another process' VM waits for a page of this one%s",
		     killed ? "" : ", and cannot be killed");
	CHECK(status, 0);
	if (c)
		FAIL("the VM's other vCPU does not go on");
	return NULL;
}

static const char *t_stall(void) { return stall(OF_BATCH); }
static const char *t_stall_setup(void) { return stall(OF_SETUP); }
static const char *t_stall_slots(void) { return stall(OF_SLOTS); }
static const char *t_stall_load(void) { return stall(OF_LOAD); }

/* ---- nested, smm: CR0 is another one's meanwhile */

static const char *nested(unsigned int number, bool paging)
{
	struct vmm *vm = vmm_new(2, 0);
	struct vmm_vcpu *v = &vm->vcpu[number];
	const char *wrong = count_on(v, 0);
	uint64_t few;

	if (wrong)
		return wrong;
	CHECK(vmm_nested(v, paging, 1000), 0);
	CHECK(vmm_op(v, VPMU_PV_READ, 1, 1), 0);
	few = slot_of(v, 0).count - 2 * 1000;
	if (few > 20)
		FAIL("a short guest counts %llu", (unsigned long long)few + 2000);
	CHECK(vmm_nested(v, paging, LONG_LOOP), 0);
	wrong = exact(v, 2 * few + 2 * 1000 + 2ull * LONG_LOOP);
	vmm_free(vm);
	return wrong;
}

static const char *t_nested_paged(void) { return nested(0, true); }
static const char *t_nested_real(void) { return nested(0, false); }
static const char *t_nested_real_ap(void) { return nested(1, false); }

static const char *smm(struct vmm_vcpu *v, uint32_t turns, uint32_t n)
{
	volatile uint32_t *mem = (volatile uint32_t *)v->vm->mem;

	mem[VMM_SMM_TURNS / 4] = turns;
	CHECK(vmm_smi(v), 0);
	CHECK(vmm_loop(v, 1000), 0);
	CHECK(mem[VMM_SMM_COUNT / 4], n);
	return NULL;
}

static const char *t_smm(void)
{
	struct vmm *vm = vmm_new(1, 0);
	struct vmm_vcpu *v = &vm->vcpu[0];
	const char *wrong = count_on(v, 0);
	uint64_t few;

	wrong = wrong ?: smm(v, 1000, 1);
	if (wrong)
		return wrong;
	CHECK(vmm_op(v, VPMU_PV_READ, 1, 1), 0);
	few = slot_of(v, 0).count;
	wrong = smm(v, LONG_LOOP, 2);
	wrong = wrong ?: exact(v, 2 * few + 2ull * (LONG_LOOP - 1000));
	vmm_free(vm);
	return wrong;
}

/* ---- throttle: perf's own limits of sampling */

static bool set(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY);
	bool done = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	close(fd);
	return done;
}

static void get(const char *file, char *value, size_t size)
{
	int fd = open(file, O_RDONLY);
	ssize_t n = read(fd, value, size - 1);

	value[n > 0 ? n : 0] = '\0';
	close(fd);
}

static const char *throttle(const char *rate)
{
	const uint64_t period = 100003;
	struct vmm *vm = vmm_new(1, 0);
	struct vmm_vcpu *v = &vm->vcpu[0];
	char rate_before[32], share_before[32];
	const char *wrong;
	struct numbers n;

	/* The kernel takes no rate while the share is 0 or 100. */
	get(RATE, rate_before, sizeof(rate_before));
	get(SHARE, share_before, sizeof(share_before));
	if (!set(SHARE, "25") || !set(RATE, rate ?: rate_before))
		FAIL("%s cannot be set: %s", RATE, strerror(errno));
	wrong = count_on(v, period);
	if (!wrong && (vmm_loop(v, LONG_LOOP) || vmm_op(v, VPMU_PV_READ, 1, 1)))
		wrong = "the loop, or READ";
	if (!set(RATE, rate_before) || !set(SHARE, share_before))
		FAIL("%s cannot be put back: %s", RATE, strerror(errno));
	if (wrong)
		return wrong;
	n = slot_of(v, 0);
	vmm_free(vm);
	/* The handler of each NMI is four instructions. */
	if (n.count >= 2ull * LONG_LOOP && n.count <= 2ull * LONG_LOOP + 4 * (n.overflows + 1) &&
	    n.overflows == n.count / period)
		return NULL;
	if (n.count < 2ull * LONG_LOOP && told(&n))
		return NULL;
	FAIL("count %llu, not %u; %u overflows; flags %#x, enabled - running %lld",
	     (unsigned long long)n.count, 2 * LONG_LOOP, n.overflows, n.flags,
	     (long long)(n.enabled - n.running));
}

static const char *t_throttle(void) { return throttle(NULL); }
static const char *t_throttle_1(void) { return throttle("1"); }
static const char *t_throttle_250(void) { return throttle("250"); }

/* ---- ring, log: what the guest's memory gets is logged */

static uint8_t shadow[VMM_BYTES];

/* Each page that has changed since the last time is in vm->logged. */
static const char *logged(struct vmm *vm, const char *after)
{
	for (unsigned int i = 0; i < VMM_BYTES / 4096; i++)
		if (memcmp(shadow + i * 4096, vm->mem + i * 4096, 4096) && !vm->logged[i])
			FAIL("page %#x has changed and is not logged, after %s", i * 4096, after);
	return NULL;
}

static void forget(struct vmm *vm)
{
	memcpy(shadow, vm->mem, VMM_BYTES);
	memset(vm->logged, 0, sizeof(vm->logged));
}

static const char *log_step(struct vmm_vcpu *v, uint16_t code, unsigned int before)
{
	const unsigned int n = 61;
	struct vmm *vm = v->vm;
	char after[40];

	snprintf(after, sizeof(after), "%u stores and operation %u", before, code);
	/* Writes of this side are not logged, and are no change of the guest's. */
	memset(vm->mem + vmm_area(v) + VMM_BATCH, 0, 4096);
	forget(vm);
	if (before)
		CHECK(vmm_store(v, VMM_SPARE, before), 0);
	CHECK(code == VPMU_PV_OPEN ? vmm_open(v, 1, n, INSTRUCTIONS) :
	      code == VPMU_PV_ENABLE ? vmm_enable(v, 1, n, 0) : vmm_op(v, code, 1, n), 0);
	if (v->ring) {
		vmm_reap(v);
		vmm_reset_rings(vm);
	} else {
		vmm_dirty_log(vm);
	}
	if (code == VPMU_PV_READ && !vm->logged[(vmm_area(v) + VMM_PAGE) / 4096])
		FAIL("the page of slots is not logged after a READ");
	if (!vm->logged[(vmm_area(v) + VMM_BATCH) / 4096])
		FAIL("the batch is not logged after operation %u", code);
	/* The rest of the batch's page is this side's. */
	return logged(vm, after);
}

static const char *dirty(unsigned int flags)
{
	static const uint16_t code[] = { VPMU_PV_OPEN, VPMU_PV_ENABLE, VPMU_PV_READ, VPMU_PV_READ,
					 VPMU_PV_DISABLE, VPMU_PV_ENABLE, VPMU_PV_CLOSE };
	struct vmm *vm = vmm_new(1, flags);
	struct vmm_vcpu *v = &vm->vcpu[0];
	const char *wrong = NULL;

	CHECK(vmm_setup(v), 0);
	/* As many stores as leave KVM's reserve of 64 entries, and a few less. */
	for (unsigned int before = 0; !wrong && before <= 186; before += 186) {
		if (v->ring) {
			vmm_reap(v);
			vmm_reset_rings(vm);
		} else {
			vmm_dirty_log(vm);
		}
		for (unsigned int i = 0; !wrong && i < sizeof(code) / sizeof(code[0]); i++)
			wrong = log_step(v, code[i], before);
	}
	vmm_free(vm);
	return wrong;
}

static const char *t_log(void) { return dirty(VMM_DIRTY_LOG); }
static const char *t_ring(void) { return dirty(VMM_DIRTY_RING); }

/* ---- filter: what the VMM denies */

static bool denied(int64_t ret)
{
	return ret == -VPMU_PV_EACCES || ret == -VPMU_PV_ENOENT;
}

/* Event 2 in slot 0: it is refused, or counts nothing and is LOST. */
static const char *denies(struct vmm_vcpu *v, uint64_t config)
{
	int64_t ret = vmm_open(v, 2, 1, config);
	struct numbers n;

	if (denied(ret))
		return NULL;
	CHECK(ret, 0);
	ret = vmm_enable(v, 2, 1, 0);
	CHECK(vmm_loop(v, 100000), 0);
	CHECK(vmm_op(v, VPMU_PV_CLOSE, 2, 1), 0);
	n = slot_of(v, 0);
	if (!denied(ret) && !(n.flags & VPMU_PV_SLOT_LOST))
		FAIL("an event that is denied opens, and counts %llu", (unsigned long long)n.count);
	if (n.count)
		FAIL("an event that is denied counts %llu", (unsigned long long)n.count);
	return NULL;
}

static const char *allows(struct vmm_vcpu *v, uint64_t config, uint64_t want)
{
	CHECK(vmm_open(v, 2, 1, config), 0);
	CHECK(vmm_enable(v, 2, 1, 0), 0);
	CHECK(vmm_loop(v, 100000), 0);
	CHECK(vmm_op(v, VPMU_PV_DISABLE, 2, 1), 0);
	CHECK(slot_of(v, 0).count, want);
	CHECK(vmm_op(v, VPMU_PV_CLOSE, 2, 1), 0);
	return NULL;
}

static const char *t_filter_none(void)
{
	struct vmm *vm = vmm_new(1, 0);
	struct vmm_vcpu *v = &vm->vcpu[0];
	const char *wrong;

	CHECK(vmm_filter(vm, KVM_PMU_EVENT_ALLOW, 0, NULL), 0);
	if (vmm_call(v, VPMU_PV_OP_VERSION, 0) == -VPMU_PV_ENOSYS)
		return NULL;
	CHECK(vmm_setup(v), 0);
	wrong = denies(v, INSTRUCTIONS);
	wrong = wrong ?: denies(v, BRANCHES);
	vmm_free(vm);
	return wrong;
}

static const char *filter_list(uint32_t action, uint64_t is_denied, uint64_t is_allowed)
{
	static const uint64_t event = AMD_INSTRUCTIONS;
	struct vmm *vm = vmm_new(1, 0);
	struct vmm_vcpu *v = &vm->vcpu[0];
	const char *wrong;

	CHECK(vmm_filter(vm, action, 1, &event), 0);
	CHECK(vmm_setup(v), 0);
	wrong = denies(v, is_denied);
	wrong = wrong ?: allows(v, is_allowed, is_allowed == BRANCHES ? 100000 : 200000);
	vmm_free(vm);
	return wrong;
}

static const char *t_filter_deny(void)
{
	return filter_list(KVM_PMU_EVENT_DENY, INSTRUCTIONS, BRANCHES);
}

static const char *t_filter_allow(void)
{
	return filter_list(KVM_PMU_EVENT_ALLOW, BRANCHES, INSTRUCTIONS);
}

/* Behind the first calls, and while an event counts. */
static const char *t_filter_late(void)
{
	static const uint64_t event = AMD_INSTRUCTIONS;
	struct vmm *vm = vmm_new(1, 0);
	struct vmm_vcpu *v = &vm->vcpu[0];
	const char *wrong;
	struct numbers n;
	uint64_t before;

	CHECK(vmm_setup(v), 0);
	wrong = allows(v, INSTRUCTIONS, 200000);
	if (wrong)
		return wrong;
	CHECK(vmm_open(v, 1, 1, INSTRUCTIONS), 0);
	CHECK(vmm_enable(v, 1, 1, 0), 0);
	CHECK(vmm_loop(v, 100000), 0);
	CHECK(vmm_filter(vm, KVM_PMU_EVENT_DENY, 1, &event), 0);
	CHECK(vmm_op(v, VPMU_PV_DISABLE, 1, 1), 0);
	before = slot_of(v, 0).count;
	CHECK(before, 200000);
	if (!denied(vmm_enable(v, 1, 1, 0))) {
		CHECK(vmm_loop(v, 100000), 0);
		CHECK(vmm_op(v, VPMU_PV_READ, 1, 1), 0);
		n = slot_of(v, 0);
		if (n.count != before || !(n.flags & VPMU_PV_SLOT_LOST))
			FAIL("enabled behind the filter it counts %llu more, flags %#x",
			     (unsigned long long)(n.count - before), n.flags);
		CHECK(vmm_op(v, VPMU_PV_DISABLE, 1, 1), 0);
	}
	wrong = denies(v, INSTRUCTIONS);
	if (wrong)
		return wrong;
	/* It is taken away again. */
	CHECK(vmm_filter(vm, KVM_PMU_EVENT_DENY, 0, NULL), 0);
	wrong = allows(v, INSTRUCTIONS, 200000);
	vmm_free(vm);
	return wrong;
}

static const char *t_no_pmu(void)
{
	struct vmm *vm = vmm_new(2, VMM_NO_PMU);

	for (unsigned int i = 0; i < 2; i++) {
		CHECK(vmm_call(&vm->vcpu[i], VPMU_PV_OP_VERSION, 0), -VPMU_PV_ENOSYS);
		CHECK(vmm_setup(&vm->vcpu[i]), -VPMU_PV_ENOSYS);
	}
	vmm_free(vm);
	return NULL;
}

#ifdef VPMU_KVM_REFUSE

static const char *t_refused(void)
{
	struct vmm *vm = vmm_new(2, 0);
	static uint8_t data[1 << 16];
	size_t bytes = sizeof(data);

	CHECK(vmm_decide(vm, VPMU_KVM_REFUSE), 0);
	CHECK(vmm_decide(vm, VPMU_KVM_REFUSE), 0);
	CHECK(vmm_decide(vm, VPMU_KVM_ALLOW), EBUSY);
	for (unsigned int i = 0; i < 2; i++)
		CHECK(vmm_call(&vm->vcpu[i], VPMU_PV_OP_VERSION, 0), -VPMU_PV_ENOSYS);
	CHECK(!vmm_save(vm, data, &bytes), false);
	CHECK(!vmm_load(vm, data, sizeof(data)), false);
	CHECK(vmm_setup(&vm->vcpu[0]), -VPMU_PV_ENOSYS);
	vmm_free(vm);
	return NULL;
}

static const char *opt_in(void)
{
	struct vmm *not = vmm_new(1, 0), *asks = vmm_new(1, VMM_NO_PMU), *none = vmm_new(1, 0);
	struct vmm_vcpu *v = &asks->vcpu[0];

	CHECK(vmm_decide(asks, VPMU_KVM_ALLOW), 0);
	CHECK(vmm_decide(asks, VPMU_KVM_REFUSE), EBUSY);
	CHECK(vmm_decide(none, VPMU_KVM_REFUSE), 0);
	CHECK(vmm_call(&not->vcpu[0], VPMU_PV_OP_VERSION, 0), -VPMU_PV_ENOSYS);
	CHECK(vmm_call(&none->vcpu[0], VPMU_PV_OP_VERSION, 0), -VPMU_PV_ENOSYS);
	CHECK(vmm_call(v, VPMU_PV_OP_VERSION, 0), VPMU_PV_MAGIC);
	CHECK(vmm_setup(v), 0);
	return allows(v, INSTRUCTIONS, 200000);
}

static const char *t_opt_in(void)
{
	const char *wrong;

	if (!set(OPT_IN, "1"))
		FAIL("%s cannot be set: %s", OPT_IN, strerror(errno));
	wrong = opt_in();
	(void)set(OPT_IN, "0");
	return wrong;
}

#endif

/* ---- pool, thread: threads that are not always the same vCPU's */

static const char *t_pool(void)
{
	struct vmm *a = vmm_new(1, 0), *b = vmm_new(1, 0);
	const char *wrong = count_on(&a->vcpu[0], 0);

	if (wrong)
		return wrong;
	CHECK(vmm_loop(&a->vcpu[0], 1000), 0);
	CHECK(vmm_loop(&b->vcpu[0], 1000000), 0);
	wrong = exact(&a->vcpu[0], 2000);
	wrong = wrong ?: count_on(&b->vcpu[0], 0);
	if (wrong)
		return wrong;
	CHECK(vmm_loop(&a->vcpu[0], 100000), 0);
	CHECK(vmm_loop(&b->vcpu[0], 1000), 0);
	wrong = exact(&a->vcpu[0], 202000);
	wrong = wrong ?: exact(&b->vcpu[0], 2000);
	vmm_free(a);
	vmm_free(b);
	return wrong;
}

static const char *t_thread(void)
{
	struct vmm *vm = vmm_new(1, 0);
	struct vmm_vcpu *v = &vm->vcpu[0];
	const char *wrong = count_on(v, 0);
	uint64_t before;
	struct job j;

	if (wrong)
		return wrong;
	CHECK(vmm_loop(v, 1000), 0);
	wrong = begin(&j, v, loops, 1000000);
	if (wrong)
		return wrong;
	CHECK(pthread_join(j.thread, NULL), 0);
	CHECK(j.ret, 0);
	wrong = exact(v, 2002000);
	if (wrong)
		return wrong;
	/* Enabled again all is well in any case. */
	CHECK(vmm_op(v, VPMU_PV_DISABLE, 1, 1), 0);
	CHECK(vmm_enable(v, 1, 1, 0), 0);
	before = slot_of(v, 0).count;
	CHECK(vmm_loop(v, 1000), 0);
	CHECK(vmm_op(v, VPMU_PV_READ, 1, 1), 0);
	CHECK(slot_of(v, 0).count - before, 2000);
	vmm_free(vm);
	return NULL;
}

/* ---- share: some take all that they can get */

static const char *greedy(struct vmm *vm)
{
	const unsigned int each = 57; /* events of each of 9 vCPUs: more than the VM may have */
	uint32_t id = 1;

	for (unsigned int i = 0; i < vm->n_vcpus; i++, id += each) {
		CHECK(vmm_setup(&vm->vcpu[i]), 0);
		(void)vmm_open(&vm->vcpu[i], id, each, INSTRUCTIONS);
		(void)vmm_enable(&vm->vcpu[i], id, each, 0);
	}
	return NULL;
}

static const char *t_share(void)
{
	struct vmm *vm[9];
	struct vmm_vcpu *v;
	const char *wrong;
	struct numbers n;

	for (unsigned int i = 0; i < 8; i++) {
		vm[i] = vmm_new(9, 0);
		wrong = greedy(vm[i]);
		if (wrong)
			return wrong;
	}
	vm[8] = vmm_new(1, 0);
	v = &vm[8]->vcpu[0];
	CHECK(vmm_setup(v), 0);
	CHECK(vmm_open(v, 1, 2, INSTRUCTIONS), 0);
	CHECK(vmm_enable(v, 1, 2, 0), 0);
	CHECK(vmm_loop(v, 100000), 0);
	CHECK(vmm_op(v, VPMU_PV_READ, 1, 2), 0);
	for (unsigned int i = 0; i < 2; i++) {
		n = slot_of(v, i);
		if (n.flags & VPMU_PV_SLOT_LOST || n.count != 200000)
			FAIL("behind eight greedy VMs a ninth counts %llu, flags %#x",
			     (unsigned long long)n.count, n.flags);
	}
	for (unsigned int i = 0; i < 9; i++)
		vmm_free(vm[i]);
	return NULL;
}

/* ---- halt: the last instructions before HLT overflow */

static const char *t_halt(void)
{
	struct vmm *vm = vmm_new(1, 0);
	struct vmm_vcpu *v = &vm->vcpu[0];
	const uint64_t turns = 1000;

	CHECK(vmm_setup(v), 0);
	CHECK(vmm_open(v, 1, 1, INSTRUCTIONS), 0);
	for (unsigned int i = 0; i < 50; i++) {
		struct vpmu_pv_op op = { .op = VPMU_PV_ENABLE, .id = 1 };

		op.u.enable.left = 2 * turns;
		CHECK(vmm_batch(v, &op, 1), 1);
		CHECK(op.result, 0);
		/* If its NMI does not come this does not return. */
		CHECK(vmm_run(v, guest_halt, 0, 0, turns, 0, 0), 0);
		CHECK(vmm_nmis(v), i + 1);
		CHECK(vmm_op(v, VPMU_PV_DISABLE, 1, 1), 0);
	}
	vmm_free(vm);
	return NULL;
}

/* ---- slice: an event that stood still for a slice continues, wherever its vCPU is */

static volatile bool end_moves;

static void *moves(void *arg)
{
	pid_t tid = *(pid_t *)arg;
	cpu_set_t one;

	for (unsigned int i = 0; !end_moves; i++) {
		CPU_ZERO(&one);
		CPU_SET(i % 2, &one);
		(void)sched_setaffinity(tid, sizeof(one), &one);
		usleep(500 + i % 7 * 300);
	}
	return NULL;
}

/* The timer of a slice may be late: on a CPU that this host's own host does not run meanwhile. */
static const char *goes_on(struct vmm_vcpu *v, uint32_t last)
{
	for (unsigned int i = 0; i < 100; i++) {
		CHECK(vmm_loop(v, LONG_LOOP / 4), 0);
		if (slot_of(v, 0).overflows != last)
			return NULL;
	}
	return "an event that was throttled stands still for ever";
}

/* With the module's rate=1000 an event is throttled at its 10th overflow in a slice. */
static const char *t_slice(void)
{
	struct vmm *vm = vmm_new(1, 0);
	struct vmm_vcpu *v = &vm->vcpu[0];
	const char *wrong = count_on(v, 1000);
	pid_t tid = gettid();
	uint32_t last = 0;
	pthread_t mover;

	if (wrong)
		return wrong;
	CHECK(pthread_create(&mover, NULL, moves, &tid), 0);
	for (unsigned int i = 0; !wrong && i < 30; i++) {
		wrong = goes_on(v, last);
		last = slot_of(v, 0).overflows;
	}
	if (!wrong && !(slot_of(v, 0).flags & VPMU_PV_SLOT_GENERATION))
		wrong = "it was never throttled";
	end_moves = true;
	pthread_join(mover, NULL);
	vmm_free(vm);
	return wrong;
}

/* ---- many: a VM of many vCPUs is saved and loaded */

static const char *t_many(void)
{
	static uint8_t data[1 << 20];
	struct vmm *from = vmm_new(64, 0), *to = vmm_new(64, 0);
	size_t bytes = sizeof(data);
	const char *wrong = count_on(&from->vcpu[63], 0);

	wrong = wrong ?: vmm_loop(&from->vcpu[63], 1000) ? "the loop" : NULL;
	if (wrong)
		return wrong;
	CHECK(vmm_save(from, data, &bytes), 0);
	memcpy(to->mem, from->mem, VMM_BYTES);
	CHECK(vmm_load(to, data, bytes), 0);
	CHECK(vmm_loop(&to->vcpu[63], 1000), 0);
	CHECK(vmm_op(&to->vcpu[63], VPMU_PV_READ, 1, 1), 0);
	CHECK(slot_of(&to->vcpu[63], 0).count, 4000);
	vmm_free(from);
	vmm_free(to);
	return NULL;
}

/* ---- */

static const struct {
	const char *name;
	const char *(*run)(void);
	unsigned int seconds;
	bool named; /* it runs only when it is named: the module needs an option */
} cases[] = {
	{ "exact", t_exact, 30, false },
	{ "stall", t_stall, 60, false },
	{ "stall, struct of SETUP", t_stall_setup, 60, false },
	{ "stall, page of slots", t_stall_slots, 60, false },
	{ "stall, LOAD", t_stall_load, 60, false },
	{ "nested, paged", t_nested_paged, 60, false },
	{ "nested, real mode", t_nested_real, 60, false },
	{ "nested, real mode, second vCPU", t_nested_real_ap, 60, false },
	{ "smm", t_smm, 60, false },
	{ "throttle", t_throttle, 60, false },
	{ "throttle at 1", t_throttle_1, 60, false },
	{ "throttle at 250", t_throttle_250, 60, false },
	{ "dirty log", t_log, 60, false },
	{ "dirty ring", t_ring, 60, false },
	{ "filter, nothing allowed", t_filter_none, 30, false },
	{ "filter, denied", t_filter_deny, 30, false },
	{ "filter, allowed", t_filter_allow, 30, false },
	{ "filter, late", t_filter_late, 30, false },
	{ "no PMU", t_no_pmu, 30, false },
#ifdef VPMU_KVM_REFUSE
	{ "refused", t_refused, 30, false },
	{ "opt in", t_opt_in, 30, false },
#endif
	{ "pool", t_pool, 30, false },
	{ "thread", t_thread, 30, false },
	{ "share", t_share, 120, false },
	{ "halt", t_halt, 30, false },
	{ "slice", t_slice, 400, true },
	{ "many", t_many, 60, false },
};

static void run(unsigned int i)
{
	const char *wrong;
	int status;
	pid_t pid;

	if (!strncmp(cases[i].name, "nested", 6) && !vmm_has_svm()) {
		printf("skip %s: found VMX, needed SVM, by which it runs a guest's guest\n",
		       cases[i].name);
		return;
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		wrong = cases[i].run();
		if (wrong)
			printf("not ok %s: %s\n", cases[i].name, wrong);
		else
			printf("ok %s\n", cases[i].name);
		fflush(stdout);
		_exit(0);
	}
	if (!ends(pid, cases[i].seconds, &status)) {
		kill(pid, SIGKILL);
		printf("not ok %s: not done after %u s%s\n", cases[i].name, cases[i].seconds,
		       ends(pid, 10, &status) ? "" : ", and cannot be killed");
	} else if (status) {
		printf("not ok %s: its process ended with %#x\n", cases[i].name, status);
	}
}

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool wanted = argc == 1 && !cases[i].named;

		for (int a = 1; a < argc; a++)
			wanted |= !strncmp(cases[i].name, argv[a], strlen(argv[a]));
		if (wanted)
			run(i);
	}
	return 0;
}
