// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The provider on perf_event_open(2), with an event that every machine has and
 * whose count a program can choose: page faults.
 */
#include "unit.h"

#include <errno.h>
#include <link.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <vpmu/arch.h>

#include "perf_event.h"

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

#define EVENT_FAULTS	0x17 /* selectors that no model has */
#define EVENT_CLOCK	0x18
#define EVENT_NOWHERE	0x19
#define EVENT_UNMAPPED	0x1a

#define BUSY_NS		3000000 /* far above the clock's resolution, far below a minute */

static const struct vpmu_linux_map map[] = {
	{ EVENT_FAULTS, -1, VPMU_QUALITY_EXACT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ EVENT_CLOCK, -1, VPMU_QUALITY_DEFINED, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
	{ EVENT_NOWHERE, -1, VPMU_QUALITY_EXACT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_MAX + 1000 },
	{ 0, 0, VPMU_QUALITY_EXACT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
};

#define PAGES_MAX 1000

static char *pages;
static size_t page_bytes;

/*
 * Let exactly @n page faults happen in user mode. Always the same pages, so that
 * those of a sanitizer's shadow are there from the first call on.
 */
static void fault(size_t n)
{
	size_t i;

	assert_true(n <= PAGES_MAX);
	for (i = 0; i < n; i++)
		*(volatile char *)(pages + i * page_bytes) = 1;
	assert_int_equal(madvise(pages, n * page_bytes, MADV_DONTNEED), 0);
}

static struct vpmu_linux provider;
static const struct vpmu_provider_ops *ops = &vpmu_linux_ops;

static int start(int signal)
{
	struct vpmu_linux_config cfg = {
		.size = sizeof(cfg), .model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106),
		.map = map, .n_map = COUNT_OF(map),
		.signal = signal,
	};

	return vpmu_linux_init(&provider, &cfg);
}

/* As a system call, since AddressSanitizer's mlock() and mlockall() do nothing. */
static int lock(struct dl_phdr_info *object, size_t size, void *unused)
{
	int i;

	(void)size;
	(void)unused;
	for (i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_LOAD)
			syscall(SYS_mlock, object->dlpi_addr + part->p_vaddr, part->p_memsz);
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, PAGES_MAX * page_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return -1;
	madvise(pages, PAGES_MAX * page_bytes, MADV_NOHUGEPAGE); /* fails without THP */
	/* Nothing else faults between two reads, such as code that is executed first there. It
	 * fails for a user who may not lock so much. */
	if (!mlockall(MCL_CURRENT | MCL_FUTURE))
		munlock(pages, PAGES_MAX * page_bytes);
	dl_iterate_phdr(lock, NULL);
	fault(PAGES_MAX);
	return start(0);
}

static int teardown(void **state)
{
	(void)state;
	vpmu_linux_fini(&provider);
	munmap(pages, PAGES_MAX * page_bytes);
	return 0;
}

/* An event that tells of its overflows. */
struct told {
	uint32_t overflows; /* atomic */
	pthread_t by;       /* calling thread, valid once overflows is not 0 */
	struct vpmu_event *ev;
};

static void overflowed(struct vpmu_event *ev)
{
	struct told *t = ev->owner;

	t->by = pthread_self();
	__atomic_fetch_add(&t->overflows, 1, __ATOMIC_RELEASE);
}

static struct vpmu_event_attr attr_of(uint64_t select, uint64_t period, struct vpmu_event *leader)
{
	struct vpmu_event_attr attr = {
		.size = sizeof(attr), .banks = VPMU_BANKS_USER, .pinned = true, .fixed = -1,
		.slot = -1, .select = select, .period = period, .leader = leader,
	};

	return attr;
}

static int try_create(struct told *t, uint64_t select, uint64_t period, struct vpmu_event *leader)
{
	struct vpmu_event_attr attr = attr_of(select, period, leader);
	int err;

	memset(t, 0, sizeof(*t));
	t->ev = calloc(1, ops->event_size);
	assert_non_null(t->ev);
	t->ev->overflowed = overflowed;
	t->ev->owner = t;
	t->ev->index = 7;
	err = ops->create(&provider.provider, t->ev, &attr);
	if (err) {
		free(t->ev);
		t->ev = NULL;
	}
	return err;
}

static void create(struct told *t, uint64_t select, uint64_t period, struct vpmu_event *leader)
{
	assert_int_equal(try_create(t, select, period, leader), 0);
	assert_ptr_equal(t->ev->provider, &provider.provider);
	assert_ptr_equal(t->ev->owner, t);
	assert_int_equal(t->ev->index, 7);
	assert_int_equal(ops->state(t->ev), VPMU_EVENT_OFF);
	assert_int_equal(ops->read(t->ev), 0);
}

static void destroy(struct told *t)
{
	ops->release(t->ev);
	free(t->ev);
}

/* The test's time limit ends a wait for an event that does not come. */
static void wait_for(uint32_t *n, uint32_t wanted)
{
	while (__atomic_load_n(n, __ATOMIC_ACQUIRE) < wanted)
		sched_yield();
}

static void test_counts_exactly(void **state)
{
	struct told t;

	(void)state;
	create(&t, EVENT_FAULTS, 0, NULL);
	fault(5);
	assert_int_equal(ops->read(t.ev), 0);
	assert_int_equal(ops->enable(t.ev), 0);
	assert_int_equal(ops->state(t.ev), VPMU_EVENT_ACTIVE);
	fault(1000);
	assert_int_equal(ops->read(t.ev), 1000);
	assert_int_equal(ops->enable(t.ev), 0); /* again: nothing changes */
	fault(7);
	ops->disable(t.ev);
	ops->disable(t.ev);
	fault(3);
	assert_int_equal(ops->state(t.ev), VPMU_EVENT_OFF);
	assert_int_equal(ops->read(t.ev), 1007);
	assert_int_equal(t.overflows, 0);
	destroy(&t);
}

static void test_banks(void **state)
{
	struct vpmu_event_attr attr = attr_of(EVENT_FAULTS, 0, NULL);
	struct vpmu_event *ev = calloc(1, ops->event_size);

	(void)state;
	attr.banks = 0;
	assert_non_null(ev);
	assert_int_equal(ops->create(&provider.provider, ev, &attr), 0);
	assert_int_equal(ops->enable(ev), 0);
	fault(5);
	assert_int_equal(ops->read(ev), 0);
	ops->release(ev);
	free(ev);
}

static void test_quality(void **state)
{
	struct vpmu_event_attr faults = attr_of(EVENT_FAULTS, 0, NULL);
	struct vpmu_event_attr clock = attr_of(EVENT_CLOCK, 0, NULL);
	struct vpmu_event_attr nowhere = attr_of(EVENT_NOWHERE, 0, NULL);
	struct vpmu_event_attr edge = attr_of(EVENT_FAULTS | VPMU_EVTSEL_EDGE, 0, NULL);
	struct vpmu_event_attr fixed = attr_of(0, 0, NULL);
	struct vpmu_provider *p = &provider.provider;
	struct told t;

	(void)state;
	fixed.fixed = 0;
	assert_int_equal(ops->quality(p, &faults), VPMU_QUALITY_EXACT);
	assert_int_equal(ops->quality(p, &clock), VPMU_QUALITY_DEFINED);
	assert_int_equal(ops->quality(p, &fixed), VPMU_QUALITY_EXACT);
	assert_int_equal(ops->quality(p, &edge), VPMU_QUALITY_NONE);
	assert_int_equal(ops->quality(p, &nowhere), VPMU_QUALITY_NONE);
	fixed.fixed = 1;
	assert_int_equal(ops->quality(p, &fixed), VPMU_QUALITY_NONE);

	assert_int_equal(try_create(&t, EVENT_UNMAPPED, 0, NULL), -ENOENT);
	assert_true(try_create(&t, EVENT_NOWHERE, 0, NULL) < 0);
}

static void test_overflow_comes_from_another_thread(void **state)
{
	struct told t;

	(void)state;
	create(&t, EVENT_FAULTS, 100, NULL);
	ops->arm(t.ev, 10);
	ops->enable(t.ev);
	fault(9);
	assert_int_equal(ops->read(t.ev), 9);
	assert_int_equal(__atomic_load_n(&t.overflows, __ATOMIC_ACQUIRE), 0);
	fault(1);
	wait_for(&t.overflows, 1);
	assert_false(pthread_equal(t.by, pthread_self()));
	assert_int_equal(ops->read(t.ev), 10);

	/* and then every period: at 110 */
	fault(99);
	assert_int_equal(ops->read(t.ev), 109);
	assert_int_equal(__atomic_load_n(&t.overflows, __ATOMIC_ACQUIRE), 1);
	fault(1);
	wait_for(&t.overflows, 2);
	assert_int_equal(ops->read(t.ev), 110);
	destroy(&t);
}

static void test_arm_again(void **state)
{
	struct told t;

	(void)state;
	create(&t, EVENT_FAULTS, 1000, NULL);
	ops->enable(t.ev);
	fault(20); /* not armed */
	ops->arm(t.ev, 1000);
	fault(3);
	ops->arm(t.ev, 5); /* while it counts */
	fault(4);
	ops->disable(t.ev);
	fault(9); /* not counted, so nearer to no overflow */
	ops->enable(t.ev);
	assert_int_equal(ops->read(t.ev), 27);
	assert_int_equal(__atomic_load_n(&t.overflows, __ATOMIC_ACQUIRE), 0);
	fault(1);
	wait_for(&t.overflows, 1);
	assert_int_equal(ops->read(t.ev), 28);
	destroy(&t);
}

static void test_group_counts_all_or_nothing(void **state)
{
	struct told leader, follower, stranger;

	(void)state;
	create(&leader, EVENT_FAULTS, 0, NULL);
	create(&follower, EVENT_FAULTS, 50, leader.ev);
	assert_true(try_create(&stranger, EVENT_UNMAPPED, 0, leader.ev) < 0);

	ops->enable(follower.ev);
	fault(5); /* the leader is off, and with it the group */
	assert_int_equal(ops->read(follower.ev), 0);
	ops->enable(leader.ev);
	fault(11);
	ops->disable(leader.ev);
	fault(5);
	assert_int_equal(ops->read(leader.ev), 11);
	assert_int_equal(ops->read(follower.ev), 11);
	destroy(&follower);
	destroy(&leader);
}

static void test_release_ends_first_halves(void **state)
{
	struct told t;
	unsigned int i;

	(void)state;
	for (i = 0; i < 200; i++) {
		uint32_t after;

		create(&t, EVENT_FAULTS, 1, NULL);
		ops->arm(t.ev, 1);
		ops->enable(t.ev);
		fault(3);
		ops->release(t.ev);
		after = t.overflows;
		memset(t.ev, 0xa5, ops->event_size); /* a late call crashes */
		sched_yield();
		assert_int_equal(t.overflows, after);
		free(t.ev);
	}
}

static void test_events_are_limited(void **state)
{
	static struct told t[VPMU_LINUX_EVENTS_MAX + 1];
	unsigned int i;

	(void)state;
	for (i = 0; i < VPMU_LINUX_EVENTS_MAX; i++)
		create(&t[i], EVENT_FAULTS, 0, NULL);
	assert_int_equal(try_create(&t[i], EVENT_FAULTS, 0, NULL), -EBUSY);
	while (i--)
		destroy(&t[i]);
}

/* Not exact, so only its direction is asked for. */
static void test_clock_overflows(void **state)
{
	struct told t;

	(void)state;
	create(&t, EVENT_CLOCK, BUSY_NS, NULL);
	ops->arm(t.ev, BUSY_NS);
	ops->enable(t.ev);
	wait_for(&t.overflows, 1);
	assert_true(ops->read(t.ev) >= BUSY_NS);
	destroy(&t);
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

/* The counted thread is told by a signal, and looks itself: no other thread is there. */
static void test_overflow_by_signal(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal }, old;
	struct told t;

	(void)state;
	vpmu_linux_fini(&provider);
	assert_int_equal(start(SIGRTMIN + 3), 0);
	assert_int_equal(sigaction(SIGRTMIN + 3, &sa, &old), 0);
	/*
	 * One run for warming up: first accesses to the program's own pages are faults,
	 * too.
	 */
	create(&t, EVENT_FAULTS, 100, NULL);
	ops->arm(t.ev, 10);
	assert_int_equal(ops->enable(t.ev), 0);
	fault(20);
	vpmu_linux_poll(&provider);
	destroy(&t);
	signals = 0;
	create(&t, EVENT_FAULTS, 100, NULL);
	ops->arm(t.ev, 10);
	assert_int_equal(ops->enable(t.ev), 0);
	fault(9);
	vpmu_linux_poll(&provider);
	assert_int_equal(t.overflows, 0);
	assert_int_equal(signals, 0);
	fault(1);
	assert_int_equal(signals, 1); /* at once */
	assert_int_equal(t.overflows, 0);
	vpmu_linux_poll(&provider);
	assert_int_equal(t.overflows, 1);
	assert_true(pthread_equal(t.by, pthread_self()));
	vpmu_linux_poll(&provider);
	assert_int_equal(t.overflows, 1);
	fault(99);
	vpmu_linux_poll(&provider);
	assert_int_equal(t.overflows, 1);
	fault(1);
	assert_int_equal(signals, 2);
	vpmu_linux_poll(&provider);
	assert_int_equal(t.overflows, 2);
	fault(350); /* several at once are told as many */
	vpmu_linux_poll(&provider);
	assert_int_equal(t.overflows, 5);
	assert_int_equal(ops->read(t.ev), 460);
	destroy(&t);
	sigaction(SIGRTMIN + 3, &old, NULL);
	vpmu_linux_fini(&provider);
	assert_int_equal(start(0), 0);
}

static void burn(uint64_t ns)
{
	struct timespec from, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((uint64_t)(now.tv_sec - from.tv_sec) * 1000000000u +
	       (uint64_t)now.tv_nsec - (uint64_t)from.tv_nsec < ns);
}

/*
 * An event that was never without a counter has run as long as it was enabled, to the ns.
 */
static void test_times(void **state)
{
	struct vpmu_provider *p = &provider.provider;
	uint64_t from, to, before;
	struct told t;

	(void)state;
	create(&t, EVENT_FAULTS, 0, NULL);
	assert_int_equal(ops->running(t.ev), 0);
	ops->begin(p);
	from = ops->clock(p, true);
	assert_int_equal(ops->enable(t.ev), 0);
	ops->commit(p);
	burn(BUSY_NS);
	ops->begin(p);
	to = ops->clock(p, true);
	burn(BUSY_NS / 10); /* a batch is one instant */
	ops->disable(t.ev);
	assert_int_equal(ops->clock(p, true), to);
	assert_int_equal(ops->running(t.ev), to - from);
	ops->commit(p);
	assert_true(to - from >= BUSY_NS);
	burn(BUSY_NS / 10);
	before = ops->running(t.ev);
	assert_int_equal(before, to - from);
	ops->begin(p);
	from = ops->clock(p, true);
	assert_true(from > to);
	ops->enable(t.ev);
	ops->commit(p);
	burn(BUSY_NS / 10);
	ops->begin(p);
	to = ops->clock(p, true);
	assert_int_equal(ops->running(t.ev), before + to - from);
	ops->commit(p);
	destroy(&t);
}

/* An unsupported configuration is reported with the cure. */
static void test_check(void **state)
{
	static const struct vpmu_linux_map nowhere = { EVENT_NOWHERE, -1, VPMU_QUALITY_EXACT,
		PERF_TYPE_SOFTWARE, PERF_COUNT_SW_MAX + 1000 };
	struct vpmu_linux_config cfg = { .size = sizeof(cfg),
		.model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106),
		.map = map, .n_map = COUNT_OF(map), .guest_only = true };
	char why[256] = "";

	(void)state;
	assert_int_equal(vpmu_linux_check(&cfg, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	cfg.map = &nowhere;
	cfg.n_map = 1;
	assert_int_equal(vpmu_linux_check(&cfg, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "needed: "));
}

/* The architectural PMU on it ---------------------------------------------------- */

struct guest {
	struct vpmu_ops ops;
	struct vpmu_arch *arch;
	uint32_t kicks; /* atomic */
	uint32_t pmis;
	pthread_t kicked_by;
};

static void guest_kick(void *ctx)
{
	struct guest *g = ctx;

	g->kicked_by = pthread_self();
	__atomic_fetch_add(&g->kicks, 1, __ATOMIC_RELEASE);
}

static void guest_raise_pmi(void *ctx, bool mask)
{
	struct guest *g = ctx;

	assert_true(mask);
	g->pmis++;
}

static void guest_init(struct guest *g)
{
	struct vpmu_arch_config cfg = {
		.size = sizeof(cfg), .model = provider.provider.model, .version = 2, .n_fixed = 1,
		.provider = &provider.provider, .ops = &g->ops, .ctx = g,
	};
	struct vpmu_error err = { .what = "" };
	size_t size;

	memset(g, 0, sizeof(*g));
	g->ops.size = sizeof(g->ops);
	g->ops.kick = guest_kick;
	g->ops.raise_pmi = guest_raise_pmi;
	if (vpmu_arch_size(&cfg, &size, &err))
		fail_msg("%s: asked %llx, available %llx", err.what, (unsigned long long)err.asked,
			 (unsigned long long)err.available);
	g->arch = calloc(1, size);
	assert_non_null(g->arch);
	assert_int_equal(vpmu_arch_init(g->arch, &cfg, &err), 0);
}

static void wrmsr(struct guest *g, uint32_t msr, uint64_t value)
{
	assert_int_equal(vpmu_arch_wrmsr(g->arch, msr, value), VPMU_HANDLED);
}

static uint64_t rdmsr(struct guest *g, uint32_t msr)
{
	uint64_t value = 0;

	assert_int_equal(vpmu_arch_rdmsr(g->arch, msr, &value), VPMU_HANDLED);
	return value;
}

/* Counter 0, 8 before its wrap, counter 1 and fixed counter 0 count faults. */
static void count_faults(struct guest *g)
{
	const uint64_t evtsel = EVENT_FAULTS | VPMU_EVTSEL_USR | VPMU_EVTSEL_EN;

	guest_init(g);
	wrmsr(g, VPMU_MSR_GLOBAL_CTRL, 0);
	wrmsr(g, VPMU_MSR_PMC0, 0xfffffff8);
	wrmsr(g, VPMU_MSR_PERFEVTSEL0, evtsel | VPMU_EVTSEL_INT);
	wrmsr(g, VPMU_MSR_PMC0 + 1, 0);
	wrmsr(g, VPMU_MSR_PERFEVTSEL0 + 1, evtsel);
	wrmsr(g, VPMU_MSR_FIXED_CTR_CTRL, 0x2);
	fault(4);
	wrmsr(g, VPMU_MSR_GLOBAL_CTRL, 0x100000003);
}

static void test_arch_counts_by_perf_event_open(void **state)
{
	const uint64_t changed = 1ull << 63;
	struct guest g;

	(void)state;
	/*
	 * One run for warming up: first accesses to the program's own pages are faults,
	 * too.
	 */
	count_faults(&g);
	fault(1);
	rdmsr(&g, VPMU_MSR_PMC0);
	vpmu_arch_reset(g.arch, false);
	free(g.arch);

	count_faults(&g);
	fault(7);
	assert_int_equal(rdmsr(&g, VPMU_MSR_PMC0), 0xffffffffffff);
	assert_int_equal(rdmsr(&g, VPMU_MSR_GLOBAL_STATUS), 0);
	assert_int_equal(__atomic_load_n(&g.kicks, __ATOMIC_ACQUIRE), 0);

	fault(1);
	wait_for(&g.kicks, 1);
	assert_false(pthread_equal(g.kicked_by, pthread_self()));
	assert_int_equal(g.pmis, 0); /* the second half is the vCPU's */
	vpmu_arch_service(g.arch);
	assert_int_equal(g.pmis, 1);
	assert_int_equal(rdmsr(&g, VPMU_MSR_GLOBAL_STATUS), changed | 1);

	fault(3);
	wrmsr(&g, VPMU_MSR_GLOBAL_CTRL, 0);
	fault(2);
	assert_int_equal(rdmsr(&g, VPMU_MSR_PMC0), 3);
	assert_int_equal(rdmsr(&g, VPMU_MSR_PMC0 + 1), 11);
	assert_int_equal(rdmsr(&g, VPMU_MSR_FIXED_CTR0), 11);

	wrmsr(&g, VPMU_MSR_GLOBAL_OVF_CTRL, changed | 1);
	assert_int_equal(rdmsr(&g, VPMU_MSR_GLOBAL_STATUS), 0);
	vpmu_arch_service(g.arch);
	assert_int_equal(g.pmis, 1);
	vpmu_arch_reset(g.arch, false); /* gives the events back */
	free(g.arch);
}

/* Why this cannot run here, or NULL. */
static const char *obstacle(void)
{
	struct perf_event_attr pe = {
		.size = sizeof(pe), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS,
		.disabled = 1, .exclude_kernel = 1, .exclude_hv = 1,
	};
	int fd = syscall(SYS_perf_event_open, &pe, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	static char why[160];
	char found[16] = "";
	int err = errno;
	FILE *f;

	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	f = fopen(PARANOID, "r");
	if (f) {
		if (fgets(found, sizeof(found), f))
			found[strcspn(found, "\n")] = 0;
		fclose(f);
	}
	if (!*found)
		snprintf(why, sizeof(why), "perf_event_open: %s; no " PARANOID, strerror(err));
	else
		snprintf(why, sizeof(why), "perf_event_open: %s; " PARANOID " is %s, needed: "
			 "at most 2 (or CAP_PERFMON) and no seccomp filter", strerror(err), found);
	return why;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_exactly),
		cmocka_unit_test(test_banks),
		cmocka_unit_test(test_quality),
		cmocka_unit_test(test_overflow_comes_from_another_thread),
		cmocka_unit_test(test_arm_again),
		cmocka_unit_test(test_group_counts_all_or_nothing),
		cmocka_unit_test(test_release_ends_first_halves),
		cmocka_unit_test(test_events_are_limited),
		cmocka_unit_test(test_clock_overflows),
		cmocka_unit_test(test_overflow_by_signal),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_arch_counts_by_perf_event_open),
	};
	const char *why = obstacle();

	if (why) {
		printf("1..1\nok 1 perf_event # SKIP %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests_name("perf_event", tests, setup, teardown);
}
