// SPDX-License-Identifier: GPL-2.0-only
/*
 * The outcome when perf events contend for a counter, and the ways in which the loser
 * comes back.
 *
 * Every class of event (CPU or task, pinned or flexible) holds a resource, and one event
 * of every class arrives. The resources are all general-purpose counters, one fixed
 * counter that no other can replace, one that others can, and the topdown metrics, by a
 * group of slots and a class. The state of each side, and
 * what brings the loser back while the winner stays or after it has been closed, is
 * compared with the rule in rule(). Cases with a name follow.
 *
 * A state is derived from read(2): 0 bytes are the error state; otherwise both times
 * advance by the same amount (active), only the enabled one (inactive) or none (off).
 * Nothing here depends on how long something takes: the rotation's interval is made so
 * long that of two runs in a row at most one can meet it, an unplanned context switch
 * makes a run void, and a result counts when two runs in a row agree. Cases that wait for
 * rotation come last, with a short interval.
 *
 * Needs root and an x86 core PMU with fixed counters for the full table; builds alone:
 * gcc -O2 -Wall -o perf_contention perf_contention.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_PASS 0 /* as KSFT_PASS, KSFT_FAIL and KSFT_SKIP */
#define EXIT_FAIL 1
#define EXIT_SKIP 4

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define MAX_COUNTERS 32
#define MAX_EVENTS (2 * MAX_COUNTERS + 8)
#define TRIES 200
#define TRIES_S 20 /* at least: another VM may take the CPU for seconds */
#define LONG_MS 2000
#define SHORT_MS 4
#define ROTATIONS 8
#define NS_PER_MS 1000000ull
#define LIMIT_S 600 /* for everything */

#define PMU "/sys/bus/event_source/devices/cpu"
#define WATCHDOG "/proc/sys/kernel/nmi_watchdog"

enum class { CP, TP, CF, TF, CLASSES };
enum resource { GP, FIXED, MOVABLE, METRICS, RESOURCES, CYCLES = RESOURCES };
enum trigger { RELEASE, TIMER, SWITCH, ENABLE, CREATE, TRIGGERS };
enum state { ACTIVE, INACTIVE, ERROR, OFF, UNKNOWN, STATES };
enum loser { NOBODY, INCUMBENT, NEWCOMER, BOTH };

static const char *const class_name[] = {"CP", "TP", "CF", "TF"};
static const char *const resource_name[] = {"gp", "fixed", "movable", "metrics", "cycles"};
static const char *const trigger_name[] = {"release", "timer", "switch", "enable", "create"};
static const char *const state_name[] = {"active", "inactive", "error", "off", "unknown"};
static const char *const loser_name[] = {"none", "incumbent", "newcomer", "both"};

/* Events that ask for a resource: no fixed counter counts branches, only fixed
 * counter 2 counts reference cycles, and any counts instructions.
 */
static const uint64_t resource_event[] = {
	[GP] = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	[FIXED] = PERF_COUNT_HW_REF_CPU_CYCLES,
	[MOVABLE] = PERF_COUNT_HW_INSTRUCTIONS,
	[METRICS] = 0x400, /* slots, raw */
	[CYCLES] = PERF_COUNT_HW_CPU_CYCLES, /* fixed counter 1, or any */
};

static bool json;
static int cpu;
static unsigned int gp_counters;
static bool have[RESOURCES];
static char old_mux[32], old_watchdog[32];
static pid_t main_pid;
static unsigned int mux_ms;

/* ---- the end */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static void restore(void)
{
	if (getpid() != main_pid)
		return;
	if (old_mux[0])
		write_file(PMU "/perf_event_mux_interval_ms", old_mux);
	if (old_watchdog[0])
		write_file(WATCHDOG, old_watchdog);
}

static void on_signal(int sig)
{
	static const char late[] = "Bail out! took too long\n";

	if (sig == SIGALRM && write(STDERR_FILENO, late, sizeof(late) - 1) < 0)
		_exit(EXIT_FAIL);
	restore();
	_exit(EXIT_FAIL);
}

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fflush(stdout);
	fputs("Bail out! ", json ? stderr : stdout);
	vfprintf(json ? stderr : stdout, format, ap);
	fputs("\n", json ? stderr : stdout);
	va_end(ap);
	fflush(stdout);
	if (getpid() != main_pid)
		_exit(EXIT_FAIL);
	exit(EXIT_FAIL);
}

static void __attribute__((noreturn, format(printf, 1, 2))) skip_all(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (!json)
		printf("1..0 # SKIP ");
	vfprintf(json ? stderr : stdout, format, ap);
	fputs("\n", json ? stderr : stdout);
	va_end(ap);
	exit(EXIT_SKIP);
}

/* ---- context switches: a run with one that it did not plan is void */

static long switches_seen;
static bool run_void;

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void run_begin(void)
{
	run_void = false;
	switches_seen = switches();
}

static void run_check(void)
{
	if (switches() != switches_seen)
		run_void = true;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void planned_switch(void)
{
	const struct timespec t = {.tv_nsec = NS_PER_MS};
	struct rusage usage;
	long before;

	run_check();
	getrusage(RUSAGE_THREAD, &usage);
	before = usage.ru_nvcsw;
	nanosleep(&t, NULL);
	getrusage(RUSAGE_THREAD, &usage);
	if (usage.ru_nvcsw == before)
		run_void = true;
	switches_seen = switches();
}

/* ---- events; those left open are closed at the end of a run */

#define TOPDOWN_RETIRING 0x8000 /* raw */

static int open_fds[MAX_EVENTS], class_fds[MAX_EVENTS]; /* the latter of a slots event, or -1 */
static unsigned int n_open;

static int perf_open(enum class class, uint32_t type, uint64_t config, bool disabled, int group)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = disabled,
		.pinned = group < 0 && (class == CP || class == TP),
	};
	bool task = class == TP || class == TF;

	return syscall(SYS_perf_event_open, &attr, task ? 0 : -1, task ? -1 : cpu, group,
		       PERF_FLAG_FD_CLOEXEC);
}

/* Slots get a class beside them before they are enabled. Returns -1 if there is no such event. */
static int try_open(enum class class, enum resource resource, bool disabled, int group)
{
	bool topdown = resource == METRICS;
	int fd = perf_open(class, topdown ? PERF_TYPE_RAW : PERF_TYPE_HARDWARE,
			   resource_event[resource], disabled || topdown, group);
	int of_class = -1;

	if (fd < 0)
		return -1;
	if (n_open == MAX_EVENTS)
		die("more than %d events", MAX_EVENTS);
	if (topdown) {
		of_class = perf_open(class, PERF_TYPE_RAW, TOPDOWN_RETIRING, false, fd);
		if (of_class < 0 || (!disabled && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))) {
			close(fd);
			return -1;
		}
	}
	open_fds[n_open] = fd;
	class_fds[n_open++] = of_class;
	return fd;
}

static int open_member(enum class class, enum resource resource, bool disabled, int group)
{
	int fd = try_open(class, resource, disabled, group);

	if (fd < 0)
		die("perf_event_open, %s %s: %s", class_name[class], resource_name[resource],
		    strerror(errno));
	return fd;
}

static int open_event(enum class class, enum resource resource)
{
	return open_member(class, resource, false, -1);
}

static void close_event(int fd)
{
	unsigned int i;

	for (i = 0; i < n_open && open_fds[i] != fd; i++)
		;
	if (i == n_open)
		die("close of an event that is not open");
	if (class_fds[i] >= 0)
		close(class_fds[i]);
	open_fds[i] = open_fds[--n_open];
	class_fds[i] = class_fds[n_open];
	close(fd);
}

static void close_all(void)
{
	while (n_open)
		close_event(open_fds[n_open - 1]);
}

static void control(int fd, unsigned long request)
{
	if (ioctl(fd, request, 0))
		die("ioctl on an event: %s", strerror(errno));
}

static void enable(int fd)
{
	control(fd, PERF_EVENT_IOC_ENABLE);
}

static void disable(int fd)
{
	control(fd, PERF_EVENT_IOC_DISABLE);
}

struct reading {
	uint64_t value, enabled, running;
};

/* Returns false in the error state. */
static bool read_event(int fd, struct reading *r)
{
	ssize_t n = read(fd, r, sizeof(*r));

	if (n != 0 && n != sizeof(*r))
		die("read of an event: %zd, %s", n, n < 0 ? strerror(errno) : "short");
	return n != 0;
}

static enum state state_of(int fd)
{
	uint64_t end = now_ns() + 5 * NS_PER_MS;
	struct reading a, b;
	unsigned int i;

	if (!read_event(fd, &a))
		return ERROR;
	/* Time may pass without a single read in between. */
	for (i = 0; i < 100 || now_ns() < end; i++) {
		if (!read_event(fd, &b))
			return ERROR;
		if (b.enabled == a.enabled)
			continue;
		if (b.running == a.running)
			return INACTIVE;
		if (b.running - a.running == b.enabled - a.enabled)
			return ACTIVE;
		run_void = true;
		return UNKNOWN;
	}
	return OFF;
}

static void start_timer(int fd, unsigned int ms)
{
	const struct itimerspec t = {.it_value.tv_nsec = ms * NS_PER_MS};

	if (timerfd_settime(fd, 0, &t, NULL))
		die("timerfd_settime: %s", strerror(errno));
}

static bool timer_expired(int fd)
{
	uint64_t expirations;

	return read(fd, &expirations, sizeof(expirations)) == sizeof(expirations);
}

static bool runs_before(int timer, int fd, const struct reading *first, bool was_error)
{
	uint64_t end = now_ns() + 10000 * NS_PER_MS;
	struct reading r;
	bool expired;

	do {
		expired = timer_expired(timer);
		if (read_event(fd, &r) && (was_error || r.running > first->running))
			return true;
		if (now_ns() > end)
			die("a timer does not expire");
	} while (!expired);
	return false;
}

/*
 * Does the event run at some time during several rotations? A clock cannot tell that they
 * took place, since interrupts of a virtual CPU may come late; a timer of this CPU that
 * expires after the rotation's can.
 */
static bool runs(int fd)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct reading first;
	bool was_error, ran = false;
	unsigned int i;

	if (timer < 0)
		die("timerfd_create: %s", strerror(errno));
	was_error = !read_event(fd, &first);
	for (i = 0; i < ROTATIONS && !ran; i++) {
		start_timer(timer, SHORT_MS + 1);
		ran = runs_before(timer, fd, &first, was_error);
	}
	close(timer);
	return ran;
}

/* ---- cells */

struct side {
	enum class class;
	enum resource resource;
	unsigned int n;
	int fd[MAX_COUNTERS];
};

static void open_side(struct side *s, enum class class, enum resource resource, unsigned int n)
{
	unsigned int i;

	s->class = class;
	s->resource = resource;
	s->n = n;
	for (i = 0; i < n; i++)
		s->fd[i] = open_event(class, resource);
}

static void close_side(struct side *s)
{
	while (s->n)
		close_event(s->fd[--s->n]);
}

/* Number of events per state, and the last one in the worst state. */
struct census {
	unsigned int count[STATES], which;
};

static void take_census(const struct side *s, struct census *c)
{
	unsigned int i, state, worst = ACTIVE;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < s->n; i++) {
		state = state_of(s->fd[i]);
		c->count[state]++;
		if (state >= worst) {
			worst = state;
			c->which = i;
		}
	}
}

static enum state worst(const struct census *c)
{
	unsigned int state = STATES - 1;

	while (state > ACTIVE && !c->count[state])
		state--;
	return state;
}

struct cell {
	enum resource resource;
	enum class incumbent, newcomer;
	struct census incumbents, newcomers;
	enum loser loser;
	bool held[TRIGGERS], released[TRIGGERS];
};

static unsigned int incumbents(enum resource resource)
{
	return resource == GP ? gp_counters : 1;
}

static void fill(const struct cell *c, struct side *inc, struct side *new)
{
	open_side(inc, c->incumbent, c->resource, incumbents(c->resource));
	open_side(new, c->newcomer, c->resource, 1);
}

static void run_cell(struct cell *c)
{
	struct side inc, new;

	fill(c, &inc, &new);
	take_census(&inc, &c->incumbents);
	take_census(&new, &c->newcomers);
	c->loser = (worst(&c->incumbents) != ACTIVE ? INCUMBENT : NOBODY) |
		   (worst(&c->newcomers) != ACTIVE ? NEWCOMER : NOBODY);
}

/* Does the cell's loser come back? */
static bool run_trigger(const struct cell *c, bool released, enum trigger trigger)
{
	struct side inc, new, *lost, *won;
	int fd;

	fill(c, &inc, &new);
	lost = c->loser == INCUMBENT ? &inc : &new;
	won = c->loser == INCUMBENT ? &new : &inc;
	fd = lost->fd[c->loser == INCUMBENT ? c->incumbents.which : c->newcomers.which];
	if (trigger != TIMER && state_of(fd) == ACTIVE)
		run_void = true;
	if (released)
		close_side(won);
	switch (trigger) {
	case TIMER:
		return runs(fd);
	case SWITCH:
		planned_switch();
		break;
	case ENABLE:
		disable(fd);
		enable(fd);
		break;
	case CREATE:
		close_event(fd);
		fd = open_event(lost->class, c->resource);
		break;
	case RELEASE:
	case TRIGGERS:
		break;
	}
	return state_of(fd) == ACTIVE;
}

static unsigned int tries, void_tries; /* of the last steady() */

static const char *unsteady(void)
{
	static char why[80];

	snprintf(why, sizeof(why), "no two of %u runs agree, %u were void", tries, void_tries);
	return why;
}

/*
 * Run it until two runs in a row are not void, take less than the rotation's
 * interval together and agree. Leaves the result in @result; @run puts its own
 * into @scratch, and both are of @size.
 */
static bool steady(void (*run)(void *arg, void *scratch), void *arg, void *result,
		   void *scratch, size_t size)
{
	const struct timespec pause = {.tv_nsec = NS_PER_MS};
	uint64_t end = now_ns() + TRIES_S * 1000 * NS_PER_MS, start = 0, last = 0;
	bool agreed = false, have_last = false;

	tries = void_tries = 0;
	for (; (tries < TRIES || start < end) && !agreed; tries++) {
		nanosleep(&pause, NULL);
		start = now_ns();
		memset(scratch, 0, size);
		run_begin();
		run(arg, scratch);
		run_check();
		close_all();
		if (run_void || (mux_ms == LONG_MS && now_ns() - start > LONG_MS * NS_PER_MS)) {
			have_last = false;
			void_tries++;
			continue;
		}
		agreed = have_last && !memcmp(result, scratch, size) &&
			 (mux_ms != LONG_MS || now_ns() - last < LONG_MS * NS_PER_MS);
		memcpy(result, scratch, size);
		have_last = true;
		last = start;
	}
	return agreed;
}

static void cell_step(void *arg, void *scratch)
{
	struct cell *c = scratch;

	*c = *(struct cell *)arg;
	run_cell(c);
}

struct attempt {
	const struct cell *cell;
	bool released;
	enum trigger trigger;
};

static void attempt_step(void *arg, void *scratch)
{
	const struct attempt *a = arg;

	*(bool *)scratch = run_trigger(a->cell, a->released, a->trigger);
}

static bool attempt(struct cell *c, bool released, enum trigger trigger)
{
	struct attempt a = {c, released, trigger};
	bool *back = released ? &c->released[trigger] : &c->held[trigger];
	bool scratch;

	return steady(attempt_step, &a, back, &scratch, sizeof(scratch));
}

static void measure_cell(struct cell *c)
{
	struct cell start = *c, scratch;
	enum trigger t;

	if (!steady(cell_step, &start, c, &scratch, sizeof(scratch)))
		die("%s %s %s: %s", resource_name[c->resource], class_name[c->incumbent],
		    class_name[c->newcomer], unsteady());
	for (t = 0; t < TRIGGERS && c->loser != NOBODY; t++) {
		if (t != TIMER && (!attempt(c, false, t) || !attempt(c, true, t)))
			die("%s %s %s %s: %s", resource_name[c->resource], class_name[c->incumbent],
			    class_name[c->newcomer], trigger_name[t], unsteady());
	}
}

static void measure_timer(struct cell *c)
{
	if (c->loser == NOBODY)
		return;
	if (!attempt(c, false, TIMER) || !attempt(c, true, TIMER))
		die("%s %s %s timer: %s", resource_name[c->resource], class_name[c->incumbent],
		    class_name[c->newcomer], unsteady());
}

/*
 * The outcome of a cell by the documented order: CPU pinned, task pinned, CPU flexible,
 * task flexible; of two of a class the older wins. A pinned event that loses is in the
 * error state until it is enabled or opened again. A flexible one waits: for the
 * rotation; if it is the task's, also for its next switch to the CPU. Closing the winner
 * alone schedules no event.
 */
static void rule(struct cell *c)
{
	bool older = c->incumbent <= c->newcomer;
	enum class lost = older ? c->newcomer : c->incumbent;
	bool pinned = lost == CP || lost == TP;
	enum state state = pinned ? ERROR : INACTIVE;
	struct census *loser;

	c->incumbents.count[ACTIVE] = incumbents(c->resource);
	c->newcomers.count[ACTIVE] = 1;
	if (c->resource == MOVABLE)
		return; /* both run */
	c->loser = older ? NEWCOMER : INCUMBENT;
	loser = older ? &c->newcomers : &c->incumbents;
	loser->count[ACTIVE]--;
	loser->count[state]++;
	c->released[ENABLE] = true;
	c->released[CREATE] = true;
	if (pinned)
		return;
	c->released[TIMER] = true;
	c->released[SWITCH] = lost == TF;
	/* It takes turns with its like, be that the winner or further losers. */
	c->held[TIMER] = c->incumbent == c->newcomer || (!older && incumbents(c->resource) > 1);
}

/* ---- cases */

/* "KEY=VALUE; KEY=VALUE" */
struct text {
	char s[160];
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *format, ...)
{
	size_t n = strlen(t->s);
	va_list ap;

	if (n)
		n += snprintf(t->s + n, sizeof(t->s) - n, "; ");
	va_start(ap, format);
	vsnprintf(t->s + n, sizeof(t->s) - n, format, ap);
	va_end(ap);
}

static void add_state(struct text *t, const char *name, int fd)
{
	add(t, "%s=%s", name, state_name[state_of(fd)]);
}

static void add_side(struct text *t, const char *name, const struct side *s)
{
	struct census c;

	take_census(s, &c);
	add(t, "%s=%s", name, state_name[worst(&c)]);
}

static void list_census(const struct census *c, char *list, size_t size)
{
	unsigned int i, n = 0;

	for (i = 0, list[0] = '\0'; i < STATES; i++)
		if (c->count[i])
			n += snprintf(list + n, size - n, "%s%u %s", n ? ", " : "", c->count[i],
				      state_name[i]);
}

static void add_counts(struct text *t, const char *name, const struct side *s)
{
	struct census c;
	char list[80];

	take_census(s, &c);
	list_census(&c, list, sizeof(list));
	add(t, "%s=%s", name, list);
}

/* All counters but @free, by CPU-pinned events. */
static void take_all_but(struct side *s, unsigned int free)
{
	open_side(s, CP, GP, gp_counters - free);
}

/*
 * The situations of the vPMU document of 2023 and its review, K being a KVM
 * counter, which is a task-pinned event of the vCPU's thread.
 */
static void case_counter_1(enum class class, struct text *t)
{
	struct side cps;

	take_all_but(&cps, 0);
	add_state(t, "K", open_event(class, GP));
}

static void case_counter_2(enum class class, struct text *t)
{
	struct side cps;
	int k;

	take_all_but(&cps, 0);
	k = open_event(class, GP);
	close_side(&cps);
	add_state(t, "after_release", k);
	runs(k);
	add_state(t, "after_timer", k);
	planned_switch();
	add_state(t, "after_switch", k);
	disable(k);
	enable(k);
	add_state(t, "K", k);
}

static void case_counter_3(enum class class, struct text *t)
{
	struct side cps;
	int k = open_event(class, GP);

	take_all_but(&cps, 0);
	add_state(t, "K", k);
}

static void case_counter_4(enum class class, struct text *t)
{
	struct side cfs;
	int k;

	open_side(&cfs, CF, GP, gp_counters);
	k = open_event(class, GP);
	add_counts(t, "CF", &cfs);
	add_state(t, "K", k);
}

static void case_counter_5(enum class class, struct text *t)
{
	struct side cfs;
	int k = open_event(class, GP);

	open_side(&cfs, CF, GP, gp_counters);
	add_counts(t, "CF", &cfs);
	add_state(t, "K", k);
}

static void case_counter_6(enum class class, struct text *t)
{
	struct side k;

	open_side(&k, class, GP, gp_counters);
	add_state(t, "TP", open_event(TP, GP));
	add_side(t, "K", &k);
}

static void case_counter_7(enum class class, struct text *t)
{
	struct side tps;
	int k;

	open_side(&tps, TP, GP, gp_counters);
	k = open_event(class, GP);
	add_side(t, "TP", &tps);
	add_state(t, "K", k);
}

static void case_counter_9(enum class class, struct text *t)
{
	struct side cps;
	int k = open_event(class, GP);

	add_state(t, "on_cpu", k);
	planned_switch();
	add_state(t, "on_cpu_again", k);
	take_all_but(&cps, 0);
	add_state(t, "lost", k);
}

/* With an event as the NMI watchdog's. */
static void case_counter_11(enum class class, struct text *t)
{
	int watchdog = open_event(CP, CYCLES);
	struct side gp;
	int fixed;

	open_side(&gp, class, GP, gp_counters);
	fixed = open_event(class, CYCLES);
	add_state(t, "watchdog", watchdog);
	add_counts(t, "GP", &gp);
	add_state(t, "fixed1", fixed);
}

static void case_counter_12(enum class class, struct text *t)
{
	int cf = open_event(CF, GP);
	struct side k;

	open_side(&k, class, GP, gp_counters - 1);
	add_counts(t, "K", &k);
	add_state(t, "CF", cf);
	k.fd[0] = open_event(class, GP);
	add_state(t, "CF_when_full", cf);
	add_state(t, "last", k.fd[0]);
}

static void case_surplus_three(enum class class, struct text *t)
{
	struct side k, cps;

	open_side(&k, class, GP, gp_counters);
	open_side(&cps, CP, GP, 3);
	add_side(t, "CP", &cps);
	add_counts(t, "K", &k);
}

static void case_cascade(enum class class, struct text *t)
{
	int fixed = open_event(class, FIXED), gp = open_event(class, GP);

	open_event(CP, FIXED);
	add_state(t, "fixed2", fixed);
	add_state(t, "GP", gp);
}

static void case_reenable_error(enum class class, struct text *t)
{
	struct side cps;
	int k = open_event(class, GP);

	take_all_but(&cps, 0);
	disable(k);
	enable(k);
	add_state(t, "while_held", k);
	close_side(&cps);
	disable(k);
	enable(k);
	add_state(t, "K", k);
}

/* Two of a class. */
static void case_equal(enum class class, struct text *t)
{
	int older = open_event(class, FIXED), younger = open_event(class, FIXED);

	add_state(t, "older", older);
	add_state(t, "younger", younger);
	disable(younger);
	enable(younger);
	add_state(t, "younger_enabled_again", younger);
	close_event(older);
	older = open_event(class, FIXED);
	add_state(t, "older_recreated", older);
	add_state(t, "younger_left_in_error", younger);
	disable(younger);
	enable(younger);
	add_state(t, "recreated_then", older);
	add_state(t, "other_then", younger);
}

static void case_equal_flexible(enum class class, struct text *t)
{
	int older = open_event(class, FIXED), younger = open_event(class, FIXED);

	add_state(t, "older", older);
	add_state(t, "younger", younger);
}

static void case_reenable_fixed(enum class class, struct text *t)
{
	int tp = open_event(class, FIXED), k;

	disable(tp);
	k = open_event(class, FIXED);
	add_state(t, "K_before", k);
	enable(tp);
	add_state(t, "TP", tp);
	add_state(t, "K", k);
}

static void case_reenable_older(enum class class, struct text *t)
{
	struct side rest;
	int older, younger;

	older = open_event(class, GP);
	open_side(&rest, class, GP, gp_counters - 1);
	disable(older);
	younger = open_event(class, GP);
	add_state(t, "younger_before", younger);
	enable(older);
	add_state(t, "older", older);
	add_side(t, "rest", &rest);
	add_state(t, "younger", younger);
}

static void case_reenable_younger(enum class class, struct text *t)
{
	struct side older;
	int younger;

	open_side(&older, class, GP, gp_counters - 1);
	older.fd[older.n] = open_member(class, GP, true, -1);
	younger = open_event(class, GP);
	enable(older.fd[older.n++]);
	add_state(t, "younger", younger);
	disable(younger);
	enable(younger);
	add_state(t, "enabled", younger);
	add_side(t, "older", &older);
}

static void case_enable_arrives(enum class class, struct text *t)
{
	struct side tasks;
	int arrives;

	open_side(&tasks, TP, GP, gp_counters);
	arrives = open_member(class, GP, true, -1);
	add_side(t, "before", &tasks);
	enable(arrives);
	add_side(t, "after", &tasks);
	add_state(t, "enabled", arrives);
}

static void case_disable_of_error(enum class class, struct text *t)
{
	struct side cps;
	int lost;

	take_all_but(&cps, 0);
	lost = open_event(class, GP);
	add_state(t, "lost", lost);
	disable(lost);
	add_state(t, "disabled", lost);
	close_side(&cps);
	add_state(t, "released", lost);
	enable(lost);
	add_state(t, "enabled", lost);
}

static void case_enable_of_inactive(enum class class, struct text *t)
{
	struct side cps;
	int lost;

	take_all_but(&cps, 0);
	lost = open_event(class, GP);
	close_side(&cps);
	add_state(t, "released", lost);
	enable(lost);
	add_state(t, "enabled", lost);
	disable(lost);
	add_state(t, "disabled", lost);
	enable(lost);
	add_state(t, "enabled_then", lost);
}

/* A group that cannot go on takes the later ones of its list with it. */
static void case_list_blocked(enum class class, struct text *t)
{
	struct side cps;
	int unfit, fits;

	take_all_but(&cps, 1);
	unfit = open_event(class, GP);
	fits = open_event(class, FIXED);
	add_state(t, "fits", fits);
	open_event(CP, GP);
	add_state(t, "unfit", unfit);
	add_state(t, "fits_then", fits);
	enable(fits);
	add_state(t, "enabled", fits);
}

static void case_list_before(enum class class, struct text *t)
{
	struct side cps;
	int unfit, fits;

	take_all_but(&cps, 1);
	fits = open_event(class, FIXED);
	unfit = open_event(class, GP);
	open_event(CP, GP);
	add_state(t, "fits", fits);
	add_state(t, "unfit", unfit);
}

/* ... but not those of another list. */
static void case_other_list(enum class class, struct text *t)
{
	struct side cps;
	int task, surplus;

	task = open_event(class, FIXED);
	take_all_but(&cps, 0);
	surplus = open_event(CP, GP);
	add_state(t, "surplus", surplus);
	add_state(t, "task", task);
}

/* A group in the error state is passed over and blocks no other. */
static void case_error_blocks_nobody(enum class class, struct text *t)
{
	struct side cps;
	int lost, fits;

	take_all_but(&cps, 0);
	lost = open_event(class, GP);
	fits = open_event(class, FIXED);
	add_state(t, "lost", lost);
	add_state(t, "fits", fits);
}

static void case_blocked_until_rotation(enum class class, struct text *t)
{
	struct side cps;
	int unfit, fits;

	take_all_but(&cps, 0);
	unfit = open_event(class, GP);
	fits = open_event(class, FIXED);
	add(t, "fits=%s", runs(fits) ? "runs" : "waits");
	add(t, "unfit=%s", runs(unfit) ? "runs" : "waits");
}

static void case_rotation(enum class class, struct text *t)
{
	struct side all;
	unsigned int i, ran = 0;

	open_side(&all, class, GP, gp_counters + 1);
	for (i = 0; i < all.n; i++)
		ran += runs(all.fd[i]);
	add(t, "all=%s", ran == all.n ? "run" : "wait");
}

static void case_surplus(enum class class, struct text *t)
{
	struct side first, surplus;

	open_side(&first, class, GP, gp_counters);
	open_side(&surplus, class, GP, 2);
	add_counts(t, "oldest", &first);
	add_counts(t, "surplus", &surplus);
}

/* Age goes by when they were opened, not enabled. */
static void case_surplus_backwards(enum class class, struct text *t)
{
	struct side first = {.n = gp_counters}, last = {.n = 2};
	unsigned int i;

	for (i = 0; i < first.n; i++)
		first.fd[i] = open_member(class, GP, true, -1);
	for (i = 0; i < last.n; i++)
		last.fd[i] = open_member(class, GP, true, -1);
	for (i = last.n; i-- > 0;)
		enable(last.fd[i]);
	add_counts(t, "surplus_first", &last);
	for (i = first.n; i-- > 0;)
		enable(first.fd[i]);
	add_counts(t, "oldest", &first);
	add_counts(t, "surplus", &last);
}

static void case_group(enum class class, struct text *t)
{
	struct side cps;
	int leader, single;

	take_all_but(&cps, 1);
	leader = open_member(class, GP, true, -1);
	open_member(class, GP, false, leader);
	enable(leader);
	add_state(t, "group", leader);
	single = open_event(class, GP);
	add_state(t, "single", single);
}

static void case_group_too_large(enum class class, struct text *t)
{
	unsigned int i;
	int leader = open_member(class, GP, true, -1), fd = leader;

	for (i = 1; i < MAX_COUNTERS && fd >= 0; i++)
		fd = try_open(class, GP, false, leader);
	add(t, "sibling=%s", fd >= 0 ? "opened" : errno == EINVAL ? "EINVAL" : strerror(errno));
	add(t, "group=%s", i - 1 >= gp_counters ? "all-counters" : "fewer");
}

static void case_count_kept(enum class class, struct text *t)
{
	struct reading before, after, in_error;
	struct side cps;
	uint64_t start, lost_ns, end;
	int fd = open_event(class, GP);

	state_of(fd);
	start = now_ns();
	if (!read_event(fd, &before))
		run_void = true;
	take_all_but(&cps, 0);
	add(t, "read=%s", read_event(fd, &in_error) ? "value" : "nothing");
	lost_ns = now_ns();
	for (end = lost_ns + 2 * NS_PER_MS; now_ns() < end;)
		;
	lost_ns = now_ns() - lost_ns;
	close_side(&cps);
	enable(fd);
	if (!read_event(fd, &after)) {
		add(t, "enabled=error");
		return;
	}
	add(t, "count=%s", before.value && after.value >= before.value ? "kept" : "lost");
	/* Both clocks are the TSC; half of it is far beyond what they differ by. */
	add(t, "time=%s", after.enabled - before.enabled < now_ns() - start - lost_ns / 2 ?
			  "stood" : "went-on");
}

/* A CPU event that waits is looked at when a task with pinned ones comes. */
static void case_switch_with_pinned(enum class class, struct text *t)
{
	struct side cps;
	int lost;

	take_all_but(&cps, 0);
	lost = open_event(class, GP);
	close_side(&cps);
	planned_switch();
	add_state(t, "without", lost);
	open_event(TF, FIXED);
	planned_switch();
	add_state(t, "flexible", lost);
	close_all();
	take_all_but(&cps, 0);
	open_event(TP, FIXED);
	lost = open_event(class, GP);
	close_side(&cps);
	add_state(t, "released", lost);
	planned_switch();
	add_state(t, "pinned", lost);
}

/* ---- cases with a second task on the same CPU */

struct child {
	pid_t pid;
	int to, from;
};

static char get_byte(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char c = 0;

	if (poll(&p, 1, 10000) != 1 || read(fd, &c, 1) != 1)
		die("the other task does not answer");
	return c;
}

static void put_byte(int fd, char c)
{
	if (write(fd, &c, 1) != 1)
		die("the other task is gone");
}

/* Calls @work in a child, which tells with put_byte(to) and waits on from. */
static struct child start_child(void (*work)(int to, int from))
{
	struct child c;
	int up[2], down[2];

	if (pipe2(up, O_CLOEXEC) || pipe2(down, O_CLOEXEC))
		die("pipe: %s", strerror(errno));
	run_check();
	c.pid = fork();
	if (c.pid < 0)
		die("fork: %s", strerror(errno));
	if (c.pid == 0) {
		n_open = 0; /* the parent's */
		close(up[0]);
		close(down[1]);
		work(up[1], down[0]);
		_exit(0);
	}
	close(up[1]);
	close(down[0]);
	c.from = up[0];
	c.to = down[1];
	return c;
}

static void end_child(struct child *c)
{
	int status;

	close(c->to);
	if (waitpid(c->pid, &status, 0) != c->pid || status)
		die("the other task failed");
	close(c->from);
	switches_seen = switches();
}

static unsigned int child_answer(const struct child *c)
{
	char answer = get_byte(c->from);

	switches_seen = switches();
	return answer;
}

static void wait_end(int from)
{
	struct pollfd p = {.fd = from};

	/* POLLHUP; the parent ends it. */
	if (poll(&p, 1, 10000) != 1)
		_exit(EXIT_FAIL);
}

/* Says how many of its events are active. */
static void child_takes(enum class class, int to, int from)
{
	struct census c;
	struct side s;

	open_side(&s, class, GP, gp_counters);
	take_census(&s, &c);
	put_byte(to, c.count[ACTIVE]);
	wait_end(from);
}

static void child_pinned(int to, int from)
{
	child_takes(TP, to, from);
}

static void child_cpu(int to, int from)
{
	child_takes(CP, to, from);
}

static void child_cpu_leaves(int to, int from)
{
	struct census c;
	struct side s;

	open_side(&s, CP, GP, gp_counters);
	take_census(&s, &c);
	close_side(&s);
	put_byte(to, c.count[ACTIVE]);
	wait_end(from);
}

/* Keeps what the parent has open, and takes it away while the parent is. */
static void child_keeps(int to, int from)
{
	put_byte(to, 0);
	wait_end(from);
}

static struct child with_child(struct text *t, void (*work)(int to, int from), const char *name)
{
	struct child c = start_child(work);

	add(t, "%s=%u active", name, child_answer(&c));
	return c;
}

static void case_two_tasks(enum class class, struct text *t)
{
	struct child other;
	struct side mine;

	open_side(&mine, class, GP, gp_counters);
	add_counts(t, "before", &mine);
	other = with_child(t, child_pinned, "K1");
	add_counts(t, "K0", &mine);
	run_check();
	end_child(&other);
}

static void case_taken_while_away(enum class class, struct text *t)
{
	int k = open_event(class, GP);
	struct child other = with_child(t, child_cpu, "other");

	add_state(t, "K", k);
	run_check();
	end_child(&other);
}

static void case_gone_again(enum class class, struct text *t)
{
	int k = open_event(class, GP);
	struct child other = with_child(t, child_cpu_leaves, "other");
	struct side cps;

	add_state(t, "not_in_error", k);
	run_check();
	end_child(&other);
	take_all_but(&cps, 0);
	run_check();
	other = start_child(child_keeps);
	child_answer(&other);
	close_side(&cps);
	add_state(t, "held", k);
	run_check();
	end_child(&other);
	add_state(t, "in_error", k);
}

static const struct test_case {
	const char *id;
	void (*run)(enum class class, struct text *t);
	enum class class;
	const char *expected;
	bool timer, fixed; /* needs the short interval; an event of its own counter */
} cases[] = {
	{"counter-1", case_counter_1, TP, "K=error", 0, 0},
	{"counter-2", case_counter_2, TP,
	 "after_release=error; after_timer=error; after_switch=error; K=active", 1, 0},
	{"counter-3", case_counter_3, TP, "K=error", 0, 0},
	{"counter-4", case_counter_4, TP, "CF=#1 active, 1 inactive; K=active", 0, 0},
	{"counter-5", case_counter_5, TP, "CF=#1 active, 1 inactive; K=active", 0, 0},
	{"counter-6", case_counter_6, TP, "TP=error; K=active", 0, 0},
	{"counter-7", case_counter_7, TP, "TP=active; K=error", 0, 0},
	{"counter-9", case_counter_9, TP, "on_cpu=active; on_cpu_again=active; lost=error", 0, 0},
	{"counter-11", case_counter_11, TP, "watchdog=active; GP=#0 active; fixed1=error", 0, 1},
	{"counter-12", case_counter_12, TP,
	 "K=#1 active; CF=active; CF_when_full=inactive; last=active", 0, 0},
	{"surplus-three", case_surplus_three, TP, "CP=active; K=#3 active, 3 error", 0, 0},
	{"cascade", case_cascade, TP, "fixed2=error; GP=error", 0, 1},
	{"reenable-error", case_reenable_error, TP, "while_held=error; K=active", 0, 0},
	{"reenable-older", case_reenable_fixed, TP, "K_before=active; TP=active; K=error", 0, 1},
	{"equal-pinned", case_equal, CP,
	 "older=active; younger=error; younger_enabled_again=error; older_recreated=active; "
	 "younger_left_in_error=error; recreated_then=error; other_then=active", 0, 1},
	{"equal-pinned-TP", case_equal, TP,
	 "older=active; younger=error; younger_enabled_again=error; older_recreated=active; "
	 "younger_left_in_error=error; recreated_then=error; other_then=active", 0, 1},
	{"equal-flexible", case_equal_flexible, CF, "older=active; younger=inactive", 0, 1},
	{"equal-flexible-TF", case_equal_flexible, TF, "older=active; younger=inactive", 0, 1},
	{"reenable-older-CP", case_reenable_older, CP,
	 "younger_before=active; older=active; rest=active; younger=error", 0, 0},
	{"reenable-older-TP", case_reenable_older, TP,
	 "younger_before=active; older=active; rest=active; younger=error", 0, 0},
	{"reenable-older-CF", case_reenable_older, CF,
	 "younger_before=active; older=active; rest=active; younger=inactive", 0, 0},
	{"reenable-older-TF", case_reenable_older, TF,
	 "younger_before=active; older=active; rest=active; younger=inactive", 0, 0},
	{"reenable-younger-CP", case_reenable_younger, CP,
	 "younger=error; enabled=error; older=active", 0, 0},
	{"reenable-younger-TP", case_reenable_younger, TP,
	 "younger=error; enabled=error; older=active", 0, 0},
	{"enable-arrives-CP", case_enable_arrives, CP,
	 "before=active; after=error; enabled=active", 0, 0},
	{"enable-arrives-TP", case_enable_arrives, TP,
	 "before=active; after=active; enabled=error", 0, 0},
	{"enable-arrives-CF", case_enable_arrives, CF,
	 "before=active; after=active; enabled=inactive", 0, 0},
	{"enable-arrives-TF", case_enable_arrives, TF,
	 "before=active; after=active; enabled=inactive", 0, 0},
	{"disable-of-error-CP", case_disable_of_error, CP,
	 "lost=error; disabled=error; released=error; enabled=active", 0, 0},
	{"disable-of-error-TP", case_disable_of_error, TP,
	 "lost=error; disabled=error; released=error; enabled=active", 0, 0},
	{"enable-of-inactive-CF", case_enable_of_inactive, CF,
	 "released=inactive; enabled=inactive; disabled=off; enabled_then=active", 0, 0},
	{"enable-of-inactive-TF", case_enable_of_inactive, TF,
	 "released=inactive; enabled=inactive; disabled=off; enabled_then=active", 0, 0},
	{"list-blocked-TP", case_list_blocked, TP,
	 "fits=active; unfit=error; fits_then=error; enabled=active", 0, 1},
	{"list-blocked-CF", case_list_blocked, CF,
	 "fits=active; unfit=inactive; fits_then=inactive; enabled=inactive", 0, 1},
	{"list-blocked-TF", case_list_blocked, TF,
	 "fits=active; unfit=inactive; fits_then=inactive; enabled=inactive", 0, 1},
	{"list-before-TP", case_list_before, TP, "fits=active; unfit=error", 0, 1},
	{"list-before-CF", case_list_before, CF, "fits=active; unfit=inactive", 0, 1},
	{"list-before-TF", case_list_before, TF, "fits=active; unfit=inactive", 0, 1},
	{"other-list-TP", case_other_list, TP, "surplus=error; task=active", 0, 1},
	{"other-list-TF", case_other_list, TF, "surplus=error; task=active", 0, 1},
	{"error-blocks-nobody-CP", case_error_blocks_nobody, CP, "lost=error; fits=active", 0, 1},
	{"error-blocks-nobody-TP", case_error_blocks_nobody, TP, "lost=error; fits=active", 0, 1},
	{"surplus-CP", case_surplus, CP, "oldest=#0 active; surplus=2 error", 0, 0},
	{"surplus-TP", case_surplus, TP, "oldest=#0 active; surplus=2 error", 0, 0},
	{"surplus-backwards-CP", case_surplus_backwards, CP,
	 "surplus_first=2 active; oldest=#0 active; surplus=2 error", 0, 0},
	{"surplus-backwards-TP", case_surplus_backwards, TP,
	 "surplus_first=2 active; oldest=#0 active; surplus=2 error", 0, 0},
	{"group-CP", case_group, CP, "group=error; single=active", 0, 0},
	{"group-TP", case_group, TP, "group=error; single=active", 0, 0},
	{"group-CF", case_group, CF, "group=inactive; single=inactive", 0, 0},
	{"group-TF", case_group, TF, "group=inactive; single=inactive", 0, 0},
	{"group-too-large", case_group_too_large, TF, "sibling=EINVAL; group=all-counters", 0, 0},
	{"count-kept", case_count_kept, TP, "read=nothing; count=kept; time=stood", 0, 0},
	{"switch-with-pinned", case_switch_with_pinned, CF,
	 "without=inactive; flexible=inactive; released=inactive; pinned=active", 0, 1},
	{"counter-8", case_two_tasks, TP, "before=#0 active; K1=#0 active; K0=#0 active", 0, 0},
	{"counter-10", case_gone_again, TP,
	 "other=#0 active; not_in_error=active; held=error; in_error=error", 0, 0},
	{"switch-lost", case_taken_while_away, TP, "other=#0 active; K=error", 0, 0},
	{"switch-lost-TF", case_taken_while_away, TF, "other=#0 active; K=inactive", 0, 0},
	{"blocked-until-rotation-CF", case_blocked_until_rotation, CF,
	 "fits=runs; unfit=waits", 1, 1},
	{"blocked-until-rotation-TF", case_blocked_until_rotation, TF,
	 "fits=runs; unfit=waits", 1, 1},
	{"rotation-CF", case_rotation, CF, "all=run", 1, 0},
	{"rotation-TF", case_rotation, TF, "all=run", 1, 0},
};

static void case_step(void *arg, void *scratch)
{
	const struct test_case *c = arg;

	c->run(c->class, scratch);
}

static void measure_case(const struct test_case *c, struct text *result)
{
	struct text scratch;

	if (!steady(case_step, (void *)c, result, &scratch, sizeof(scratch)))
		die("%s: %s", c->id, unsteady());
}

/* ---- what this machine has */

static void set_interval(unsigned int ms)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", ms);
	if (!write_file(PMU "/perf_event_mux_interval_ms", text))
		die("cannot write %s/perf_event_mux_interval_ms", PMU);
	mux_ms = ms;
}

/* The interval that runs now was set before; a rotation shows that it is over. */
static void wait_for_rotation(void)
{
	uint64_t end = now_ns() + 20ull * 1000 * NS_PER_MS;
	unsigned int i, ran;
	struct side all;

	do {
		open_side(&all, TF, GP, gp_counters + 1);
		for (i = ran = 0; i < all.n; i++)
			ran += runs(all.fd[i]);
		close_all();
		if (now_ns() > end)
			die("events of one class do not take turns");
	} while (ran != gp_counters + 1);
}

static void set_up(void)
{
	const struct sched_param fifo = {.sched_priority = 1};
	struct sigaction action = {.sa_handler = on_signal};
	cpu_set_t set;

	main_pid = getpid();
	if (geteuid())
		skip_all("needs root");
	if (access(PMU, F_OK))
		skip_all("no %s", PMU);
	cpu = sched_getcpu();
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu < 0 || sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity: %s", strerror(errno));
	sched_setscheduler(0, SCHED_FIFO, &fifo); /* fewer void runs */
	atexit(restore);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	alarm(LIMIT_S);
	if (!read_file(PMU "/perf_event_mux_interval_ms", old_mux, sizeof(old_mux)))
		skip_all("no %s/perf_event_mux_interval_ms", PMU);
	if (read_file(WATCHDOG, old_watchdog, sizeof(old_watchdog))) {
		if (old_watchdog[0] == '0')
			old_watchdog[0] = '\0';
		else
			write_file(WATCHDOG, "0");
	}
}

/* The number of events of a kind that are active together, up to MAX_COUNTERS. */
static unsigned int count_counters(enum resource resource)
{
	unsigned int n;
	int fd;

	for (n = 0; n < MAX_COUNTERS; n++) {
		fd = try_open(CP, resource, false, -1);
		if (fd < 0 || state_of(fd) != ACTIVE)
			break;
	}
	close_all();
	return n;
}

static void probe(void)
{
	gp_counters = count_counters(GP);
	if (gp_counters < 4 || gp_counters >= MAX_COUNTERS)
		skip_all("%u counters count branches; 4 to %d are needed", gp_counters,
			 MAX_COUNTERS - 1);
	have[GP] = true;
	have[FIXED] = count_counters(FIXED) == 1;
	have[MOVABLE] = count_counters(MOVABLE) > gp_counters;
	have[METRICS] = count_counters(METRICS) == 1;
}

/* ---- output */

#define CELLS (RESOURCES * CLASSES * CLASSES)

static struct cell cells[CELLS];
static struct text results[ARRAY_SIZE(cases)];
static unsigned int passed, failed, skipped;

static void print_back(const char *name, const bool *back, const char *end)
{
	enum trigger t;

	printf("\"%s\":{", name);
	for (t = 0; t < TRIGGERS; t++)
		printf("%s\"%s\":%s", t ? "," : "", trigger_name[t], back[t] ? "true" : "false");
	printf("}%s", end);
}

static void print_side(const char *name, const struct census *c)
{
	const char *separator = "";
	unsigned int i;

	printf("\"%s_state\":\"%s\",\"%s_events\":{", name, state_name[worst(c)], name);
	for (i = 0; i < STATES; i++) {
		if (!c->count[i])
			continue;
		printf("%s\"%s\":%u", separator, state_name[i], c->count[i]);
		separator = ",";
	}
	printf("},");
}

/* "KEY=VALUE; KEY=VALUE" */
static void print_rows(const char *s)
{
	for (putchar('"'); *s; s++) {
		if (*s == '=')
			printf("\":\"");
		else if (!strncmp(s, "; ", 2))
			printf("\",\""), s++;
		else
			putchar(*s);
	}
	putchar('"');
}

static void print_json(void)
{
	struct utsname u;
	const char *separator = "";
	unsigned int i;

	uname(&u);
	printf("{\"version\":1,\"kernel\":\"%s\",\"gp\":%u,\"cells\":[", u.release, gp_counters);
	for (i = 0; i < CELLS; i++) {
		const struct cell *c = &cells[i];

		if (!have[c->resource])
			continue;
		printf("%s\n{\"policy\":\"shared\",\"resource\":\"%s\",", separator,
		       resource_name[c->resource]);
		printf("\"incumbent\":\"%s\",\"newcomer\":\"%s\",", class_name[c->incumbent],
		       class_name[c->newcomer]);
		print_side("incumbent", &c->incumbents);
		print_side("newcomer", &c->newcomers);
		printf("\"loser\":\"%s\",\"back\":{", loser_name[c->loser]);
		print_back("held", c->held, ",");
		print_back("released", c->released, "}}");
		separator = ",";
	}
	printf("],\n\"cases\":[");
	separator = "";
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		if (cases[i].fixed && !have[FIXED])
			continue;
		printf("%s\n{\"id\":\"%s\",\"result\":{", separator, cases[i].id);
		print_rows(results[i].s);
		printf("}}");
		separator = ",";
	}
	printf("]}\n");
}

static void tap(const char *why, const char *name)
{
	static unsigned int number;

	*(why ? &failed : &passed) += 1;
	printf("%s %u %s\n", why ? "not ok" : "ok", ++number, name);
	if (why)
		printf("# %s\n", why);
}

static void tap_skip(const char *name, const char *why)
{
	skipped++;
	printf("ok %u %s # SKIP %s\n", passed + failed + skipped, name, why);
}

static void describe(const struct cell *c, char *out, size_t size)
{
	char list[80];
	enum trigger t;
	size_t n;

	list_census(&c->incumbents, list, sizeof(list));
	n = snprintf(out, size, "incumbents %s, ", list);
	list_census(&c->newcomers, list, sizeof(list));
	n += snprintf(out + n, size - n, "newcomer %s; back while held:", list);
	for (t = 0; t < TRIGGERS; t++)
		n += snprintf(out + n, size - n, "%s%s", c->held[t] ? " " : "",
			      c->held[t] ? trigger_name[t] : "");
	n += snprintf(out + n, size - n, "; when released:");
	for (t = 0; t < TRIGGERS; t++)
		n += snprintf(out + n, size - n, "%s%s", c->released[t] ? " " : "",
			      c->released[t] ? trigger_name[t] : "");
}

static void tap_cell(const struct cell *c)
{
	struct cell expected = {
		.resource = c->resource, .incumbent = c->incumbent, .newcomer = c->newcomer,
	};
	char name[64], is[256], should[256], why[560];

	snprintf(name, sizeof(name), "%s: %s holds, %s arrives", resource_name[c->resource],
		 class_name[c->incumbent], class_name[c->newcomer]);
	if (!have[c->resource]) {
		tap_skip(name, "no such counter");
		return;
	}
	rule(&expected);
	describe(c, is, sizeof(is));
	describe(&expected, should, sizeof(should));
	snprintf(why, sizeof(why), "%s\n# expected %s", is, should);
	tap(strcmp(is, should) ? why : NULL, name);
}

/* "#" and a digit is the number of GP counters, less that many. */
static void expand(const char *s, char *out, size_t size)
{
	size_t n = 0;

	for (out[0] = '\0'; *s && n + 1 < size; s++) {
		if (*s == '#')
			n += snprintf(out + n, size - n, "%u", gp_counters - (*++s - '0'));
		else
			n += snprintf(out + n, size - n, "%c", *s);
	}
}

static void tap_case(const struct test_case *c, const struct text *result)
{
	char expected[sizeof(*result)], why[400];

	if (c->fixed && !have[FIXED]) {
		tap_skip(c->id, "no counter of that kind alone");
		return;
	}
	expand(c->expected, expected, sizeof(expected));
	snprintf(why, sizeof(why), "%s\n# expected %s", result->s, expected);
	tap(strcmp(result->s, expected) ? why : NULL, c->id);
}

static void print_tap(void)
{
	unsigned int i;

	for (i = 0; i < CELLS; i++)
		tap_cell(&cells[i]);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		tap_case(&cases[i], &results[i]);
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0\n", passed, failed,
	       skipped);
}

static void measure_cases(bool timer)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (cases[i].timer == timer && (!cases[i].fixed || have[FIXED]))
			measure_case(&cases[i], &results[i]);
}

int main(int argc, char **argv)
{
	unsigned int i;

	json = argc == 2 && !strcmp(argv[1], "--json");
	if (argc > 1 && !json) {
		fprintf(stderr, "Usage: %s [--json]\n", argv[0]);
		return EXIT_FAIL;
	}
	if (!json)
		printf("TAP version 13\n");
	set_up();
	set_interval(LONG_MS);
	probe();
	if (!json) {
		printf("1..%zu\n", CELLS + ARRAY_SIZE(cases));
		printf("# CPU %d, %u counters that count branches%s\n", cpu, gp_counters,
		       old_watchdog[0] ? "; the NMI watchdog is off meanwhile" : "");
		fflush(stdout);
	}
	for (i = 0; i < CELLS; i++) {
		cells[i].resource = i / (CLASSES * CLASSES);
		cells[i].incumbent = i / CLASSES % CLASSES;
		cells[i].newcomer = i % CLASSES;
		if (have[cells[i].resource])
			measure_cell(&cells[i]);
	}
	measure_cases(false);

	set_interval(SHORT_MS);
	wait_for_rotation();
	for (i = 0; i < CELLS; i++)
		if (have[cells[i].resource])
			measure_timer(&cells[i]);
	measure_cases(true);

	if (json)
		print_json();
	else
		print_tap();
	return failed ? EXIT_FAIL : EXIT_PASS;
}
