// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The provider on perf_event_open(2).
 *
 * The kernel's period only says when to look. The count, compared with `next`, decides,
 * so a spurious wakeup is harmless. The wakeups go to a thread that sleeps in epoll on
 * the rings of all events with a period, or, with a signal, to the counted thread itself:
 * then there is no thread and no ring.
 *
 * The kernel knows one period and the interface two, `left` and then `period`. Changing
 * it under a running event loses occurrences of software events, so the counted thread
 * changes it, in its next call after the overflow.
 *
 * Each event's first page is mapped if the user's limit of locked memory allows that:
 * while the event is on a counter of this CPU, the page and RDPMC give count and times
 * without a system call. A disabled event is not read, so switching a guest's task costs
 * one system call per event and direction.
 */
#include "perf_event.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST_PERIOD	((uint64_t)1 << 62) /* the kernel refuses bit 63 */
#define NO_EVENT	UINT64_MAX          /* epoll's datum of stop_fd */
#define HITS_MAX	64                  /* overflows that are reported at once */
#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"

struct vpmu_linux_event {
	struct vpmu_event head;
	int fd;
	uint32_t place;   /* index in vpmu_linux.event */
	bool enabled;
	bool rearm;       /* the kernel's period must be set from next */
	bool in_error;    /* error state, as of the last look */
	bool told;        /* `changed` has reported that it does not count */
	uint64_t period;  /* 0: no overflow */
	uint64_t kernel_period;
	uint64_t next;    /* count of the next overflow, VPMU_NEVER: not armed */
	uint64_t last;    /* count last seen, as read(2) has none in the error state */
	uint64_t time_enabled, time_running; /* kernel's times, at the last look at the state */
	/* On the provider's clock: */
	uint64_t since;   /* time when it was enabled */
	uint64_t before;  /* time that it was enabled before that */
	/* Part of the enabled time in which it did not count, as the kernel reports. */
	uint64_t waited;
	uint64_t failed;  /* part that the kernel does not report, in the error state */
	uint64_t ran;     /* running time that was reported last */
	volatile struct perf_event_mmap_page *page; /* mapped page, or NULL */
	size_t mapped;    /* bytes mapped */
	bool records;     /* a ring follows the page */
};

/* The result of read(2), by read_format. */
struct reading {
	uint64_t count, time_enabled, time_running;
};

static struct vpmu_linux *linux_of(struct vpmu_provider *p)
{
	return (struct vpmu_linux *)p;
}

static struct vpmu_linux_event *event_of(const struct vpmu_event *ev)
{
	return (struct vpmu_linux_event *)ev;
}

/* Find the selector's host event; false if there is none. */
static bool map_event(const struct vpmu_linux_config *cfg, const struct vpmu_event_attr *attr,
		      struct perf_event_attr *pe, enum vpmu_quality *quality)
{
	static const uint64_t fixed[] = { PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES,
					  PERF_COUNT_HW_REF_CPU_CYCLES };
	size_t i;

	for (i = 0; i < cfg->n_map; i++) {
		const struct vpmu_linux_map *m = &cfg->map[i];

		if (attr->fixed >= 0 ? m->fixed != attr->fixed :
				       m->fixed >= 0 || m->select != attr->select)
			continue;
		pe->type = m->type;
		pe->config = m->config;
		*quality = m->quality;
		return true;
	}
	if (!cfg->raw || attr->fixed >= (int)(sizeof(fixed) / sizeof(fixed[0])))
		return false;
	pe->type = attr->fixed >= 0 ? PERF_TYPE_HARDWARE : PERF_TYPE_RAW;
	pe->config = attr->fixed >= 0 ? fixed[attr->fixed] : attr->select;
	pe->config1 = attr->extra;
	*quality = VPMU_QUALITY_EXACT;
	return true;
}

/* Returns a file descriptor or a negative errno. */
static int open_event(const struct vpmu_linux_config *cfg, const struct vpmu_event_attr *attr,
		      enum vpmu_quality *quality)
{
	struct perf_event_attr pe = { .size = sizeof(pe) };
	int group = attr->leader ? event_of(attr->leader)->fd : -1;
	bool rings;
	int fd;

	if (attr->no_counter || attr->shared == VPMU_SHARED_PEBS ||
	    !map_event(cfg, attr, &pe, quality))
		return -VPMU_ENOENT;
	/*
	 * The kernel's clocks count a running guest as kernel time, and have no notion of
	 * guests.
	 */
	rings = pe.type != PERF_TYPE_SOFTWARE || !cfg->guest_only;
	pe.disabled = 1;
	pe.pinned = attr->pinned && !attr->leader; /* the leader's setting applies to the group */
	pe.exclude_user = rings && !(attr->banks & VPMU_BANKS_USER);
	pe.exclude_kernel = rings && !(attr->banks & VPMU_BANKS_KERNEL);
	pe.exclude_hv = 1;
	pe.exclude_host = rings && cfg->guest_only;
	pe.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (attr->period) {
		pe.sample_period = LONGEST_PERIOD;
		pe.wakeup_events = 1;
	}
	fd = syscall(SYS_perf_event_open, &pe, cfg->tid, -1, group, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static enum vpmu_quality linux_quality(struct vpmu_provider *p,
				       const struct vpmu_event_attr *attr)
{
	enum vpmu_quality quality;
	int fd = open_event(&linux_of(p)->cfg, attr, &quality);

	if (fd < 0)
		return VPMU_QUALITY_NONE;
	close(fd);
	return quality;
}

/* Counts and times, without a system call ----------------------------------------- */

#if defined(__x86_64__) || defined(__i386__)
static uint64_t rdpmc(uint32_t counter)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (counter));
	return low | (uint64_t)high << 32;
}
#endif

static bool own_thread(const struct vpmu_linux *p)
{
	static _Thread_local pid_t me;

	if (!me)
		me = (pid_t)syscall(SYS_gettid);
	return me == p->cfg.tid;
}

/* Returns true if the event is on a counter, with its values. On the counted thread. */
static bool read_page(const struct vpmu_linux_event *e, struct reading *r)
{
#if defined(__x86_64__) || defined(__i386__)
	volatile struct perf_event_mmap_page *page = e->page;
	uint32_t seq, index;
	unsigned int shift;

	if (!page || !page->cap_user_rdpmc || !own_thread(linux_of(e->head.provider)))
		return false;
	do {
		seq = page->lock;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		index = page->index;
		if (!index)
			return false;
		shift = 64u - page->pmc_width;
		r->count = (uint64_t)page->offset +
			   (uint64_t)((int64_t)(rdpmc(index - 1) << shift) >> shift);
		/* Times as of when it got the counter: it has not waited since. */
		r->time_enabled = page->time_enabled;
		r->time_running = page->time_running;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (page->lock != seq);
	return true;
#else
	return false;
#endif
}

/* Returns false in the error state, which read(2) shows as an end of file. */
static bool read_file(const struct vpmu_linux_event *e, struct reading *r)
{
	return read(e->fd, r, sizeof(*r)) == sizeof(*r);
}

static bool read_event(const struct vpmu_linux_event *e, struct reading *r)
{
	return read_page(e, r) || read_file(e, r);
}

/* Time that it was enabled, on the provider's clock as it was reported last. */
static uint64_t time_enabled(const struct vpmu_linux_event *e)
{
	const struct vpmu_linux *p = linux_of(e->head.provider);

	return e->before + (e->enabled ? p->now - e->since : 0);
}

/* Update the times by a reading; NULL: the event is in the error state. */
static void learn(struct vpmu_linux_event *e, const struct reading *r)
{
	uint64_t t = time_enabled(e), idle;

	e->in_error = !r;
	if (r) {
		e->last = r->count;
		e->waited = r->time_enabled - r->time_running;
	}
	idle = e->waited + e->failed;
	if (e->in_error)
		e->failed = t - e->waited - e->ran; /* all time since it ran last */
	else if (t > idle && t - idle > e->ran)
		e->ran = t - idle;
}

/* Returns the count; a disabled event keeps the one that it had. */
static uint64_t refresh(struct vpmu_linux_event *e)
{
	struct reading r;

	if (e->enabled)
		learn(e, read_event(e, &r) ? &r : NULL);
	return e->last;
}

/* Events ------------------------------------------------------------------------- */

/* Map one page, and a page of records if the thread has to be woken up. */
static int map_pages(struct vpmu_linux_event *e, bool records)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE) * (records ? 2 : 1);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	e->page = at;
	(void)e->page->lock; /* take the fault here, and not later where it might be counted */
	e->mapped = bytes;
	e->records = records;
	return 0;
}

static void unmap_pages(struct vpmu_linux_event *e)
{
	if (e->page)
		munmap((void *)(uintptr_t)e->page, e->mapped);
	e->page = NULL;
}

/* A signal to the counted thread at each overflow. */
static int attach_signal(const struct vpmu_linux *p, const struct vpmu_linux_event *e)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = p->cfg.tid };

	if (fcntl(e->fd, F_SETOWN_EX, &owner) < 0 || fcntl(e->fd, F_SETSIG, p->cfg.signal) < 0 ||
	    fcntl(e->fd, F_SETFL, O_ASYNC) < 0)
		return -errno;
	return 0;
}

static int attach_thread(struct vpmu_linux *p, struct vpmu_linux_event *e)
{
	/* only edges: once the counted thread has exited the file hangs up for good */
	struct epoll_event ee = { .events = EPOLLIN | EPOLLET };
	int err = map_pages(e, true);

	if (err)
		return err;
	ee.data.u64 = (uint64_t)p->generation[e->place] << 32 | e->place;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, e->fd, &ee) < 0)
		return -errno;
	return 0;
}

static int attach(struct vpmu_linux *p, struct vpmu_linux_event *e)
{
	if (e->period && !p->cfg.signal)
		return attach_thread(p, e);
	(void)map_pages(e, false); /* without the page, use read(2) */
	return e->period ? attach_signal(p, e) : 0;
}

static int linux_create(struct vpmu_provider *provider, struct vpmu_event *ev,
			const struct vpmu_event_attr *attr)
{
	struct vpmu_linux *p = linux_of(provider);
	struct vpmu_linux_event *e = event_of(ev);
	enum vpmu_quality quality;
	uint32_t place = 0;
	int err;

	/* only the thread that creates and releases writes here */
	while (place < VPMU_LINUX_EVENTS_MAX && p->event[place])
		place++;
	if (place == VPMU_LINUX_EVENTS_MAX)
		return -VPMU_EBUSY;

	memset((char *)e + sizeof(e->head), 0, sizeof(*e) - sizeof(e->head));
	e->fd = open_event(&p->cfg, attr, &quality);
	if (e->fd < 0)
		return e->fd;
	e->head.provider = provider;
	e->head.quality = quality;
	e->place = place;
	e->period = attr->period;
	e->next = VPMU_NEVER;
	err = attach(p, e);
	if (err)
		goto err_close;
	pthread_mutex_lock(&p->lock);
	p->event[place] = e;
	pthread_mutex_unlock(&p->lock);
	return 0;

err_close:
	unmap_pages(e);
	close(e->fd);
	return err;
}

static void linux_release(struct vpmu_event *ev)
{
	struct vpmu_linux_event *e = event_of(ev);
	struct vpmu_linux *p = linux_of(ev->provider);

	/* a first half that found the event in its place holds the lock until it ends */
	pthread_mutex_lock(&p->lock);
	p->event[e->place] = NULL;
	p->generation[e->place]++;
	pthread_mutex_unlock(&p->lock);
	unmap_pages(e);
	close(e->fd);
}

/*
 * On the counted thread, with the lock held. Soon after an overflow the kernel is given
 * the whole period, beginning here instead of at the overflow, so that it continues by
 * itself.
 */
static void set_period(struct vpmu_linux_event *e)
{
	uint64_t count = refresh(e), left;

	if (e->in_error)
		return;
	left = e->next > count ? e->next - count : 1;
	if (e->rearm && left < e->period && e->period - left < e->period / 16) {
		left = e->period;
		e->next = count + left;
	}
	e->rearm = false;
	if (left > LONGEST_PERIOD)
		left = LONGEST_PERIOD;
	e->kernel_period = left;
	/* a running software event would overflow at once under its new period */
	if (e->enabled)
		ioctl(e->fd, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(e->fd, PERF_EVENT_IOC_PERIOD, &left);
	if (e->enabled)
		ioctl(e->fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void rearm(struct vpmu_linux_event *e)
{
	struct vpmu_linux *p = linux_of(e->head.provider);

	if (!__atomic_load_n(&e->rearm, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&p->lock);
	set_period(e);
	pthread_mutex_unlock(&p->lock);
}

static uint64_t linux_clock(struct vpmu_provider *provider, bool hold)
{
	struct vpmu_linux *p = linux_of(provider);
	struct timespec ts;

	if (!p->stamped && !clock_gettime(p->clock, &ts))
		p->now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	p->stamped = p->depth != 0; /* in a batch time stands still */
	return p->now;
}

static int linux_enable(struct vpmu_event *ev)
{
	struct vpmu_linux_event *e = event_of(ev);
	struct reading r;

	linux_clock(ev->provider, true);
	rearm(e);
	refresh(e);
	if (e->enabled && !e->in_error)
		return 0;
	if (ioctl(e->fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	if (!e->enabled)
		e->since = linux_of(ev->provider)->now;
	e->enabled = true;
	if (!read_event(e, &r))
		return -VPMU_EBUSY;
	e->in_error = false;
	e->time_enabled = r.time_enabled;
	e->time_running = r.time_running;
	return 0;
}

static void linux_disable(struct vpmu_event *ev)
{
	struct vpmu_linux_event *e = event_of(ev);
	struct reading r;
	bool ok;

	if (!e->enabled)
		return;
	linux_clock(ev->provider, true);
	rearm(e);
	/*
	 * A guest's events do not count here, and while on a counter the page has all
	 * values.
	 */
	ok = linux_of(ev->provider)->cfg.guest_only && read_page(e, &r);
	ioctl(e->fd, PERF_EVENT_IOC_DISABLE, 0);
	learn(e, ok || read_file(e, &r) ? &r : NULL);
	e->before = time_enabled(e);
	e->enabled = false;
	e->told = false;
}

static uint64_t linux_read(struct vpmu_event *ev)
{
	struct vpmu_linux_event *e = event_of(ev);

	rearm(e);
	return refresh(e);
}

static uint64_t linux_running(struct vpmu_event *ev)
{
	struct vpmu_linux_event *e = event_of(ev);

	refresh(e);
	return e->ran;
}

static void linux_arm(struct vpmu_event *ev, uint64_t left)
{
	struct vpmu_linux_event *e = event_of(ev);
	struct vpmu_linux *p = linux_of(ev->provider);
	uint64_t count, next;

	if (!e->period)
		return;
	count = refresh(e);
	next = left < VPMU_NEVER - count ? count + left : VPMU_NEVER;
	/* If the period just continues, the kernel has it already. */
	if (next == e->next && !__atomic_load_n(&e->rearm, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&p->lock);
	e->next = next;
	e->rearm = e->in_error; /* set it when the event counts again */
	if (!e->rearm)
		set_period(e);
	pthread_mutex_unlock(&p->lock);
}

/* An event counts if its running time advances, not just its time enabled. */
static enum vpmu_event_state linux_state(const struct vpmu_event *ev)
{
	struct vpmu_linux_event *e = event_of(ev);
	enum vpmu_event_state state;
	struct reading r;

	if (!e->enabled)
		return VPMU_EVENT_OFF;
	if (read_page(e, &r))
		return VPMU_EVENT_ACTIVE;
	if (!read_file(e, &r))
		return VPMU_EVENT_ERROR;
	state = r.time_enabled > e->time_enabled && r.time_running == e->time_running ?
		VPMU_EVENT_INACTIVE : VPMU_EVENT_ACTIVE;
	e->time_enabled = r.time_enabled;
	e->time_running = r.time_running;
	return state;
}

static void linux_begin(struct vpmu_provider *provider)
{
	linux_of(provider)->depth++;
}

static int linux_commit(struct vpmu_provider *provider)
{
	struct vpmu_linux *p = linux_of(provider);

	if (--p->depth == 0)
		p->stamped = false;
	return 0;
}

/* Overflows ---------------------------------------------------------------------- */

/* The lock is held. Returns whether the event has overflowed. */
static bool look(struct vpmu_linux_event *e)
{
	struct reading r;
	uint64_t hits;

	/* the records contain nothing that the count does not */
	if (e->records)
		__atomic_store_n(&e->page->data_tail,
				 __atomic_load_n(&e->page->data_head, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	if (!read_event(e, &r) || r.count < e->next)
		return false;
	hits = (r.count - e->next) / e->period + 1;
	e->next += e->period * hits;
	if (e->kernel_period != e->period)
		__atomic_store_n(&e->rearm, true, __ATOMIC_RELAXED);
	for (hits = hits < HITS_MAX ? hits : HITS_MAX; hits && e->head.overflowed; hits--)
		e->head.overflowed(&e->head);
	return true;
}

/*
 * The kernel stops an event that overflows more often than perf_event_max_sample_rate,
 * until its next tick, and a read of the event does not show that. Enabling it again ends
 * that; no guest has run since the overflow, so no occurrence is lost.
 */
static void restart(const struct vpmu_linux_event *e)
{
	ioctl(e->fd, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(e->fd, PERF_EVENT_IOC_ENABLE, 0);
}

void vpmu_linux_poll(struct vpmu_linux *p)
{
	uint32_t place;

	bool overflowed;

	/* The events belong to this thread: no other thread touches them. */
	for (place = 0; place < VPMU_LINUX_EVENTS_MAX; place++) {
		struct vpmu_linux_event *e = p->event[place];

		if (!e || !e->period || !e->enabled || e->next == VPMU_NEVER)
			continue;
		overflowed = look(e);
		rearm(e);
		if (overflowed && p->cfg.guest_only)
			restart(e);
	}
}

void vpmu_linux_look(struct vpmu_linux *p)
{
	uint32_t place;

	for (place = 0; place < VPMU_LINUX_EVENTS_MAX; place++) {
		struct vpmu_linux_event *e = p->event[place];
		bool lost;

		if (!e || !e->enabled || !e->head.changed)
			continue;
		lost = linux_state(&e->head) != VPMU_EVENT_ACTIVE;
		if (lost != e->told)
			e->head.changed(&e->head);
		e->told = lost;
	}
}

static void *overflow_thread(void *arg)
{
	struct vpmu_linux *p = arg;
	struct epoll_event ee;

	for (;;) {
		uint32_t place, generation;

		if (epoll_wait(p->epoll_fd, &ee, 1, -1) != 1)
			continue;
		if (ee.data.u64 == NO_EVENT)
			return NULL;
		place = (uint32_t)ee.data.u64;
		generation = ee.data.u64 >> 32;
		pthread_mutex_lock(&p->lock);
		if (p->event[place] && p->generation[place] == generation)
			(void)look(p->event[place]);
		pthread_mutex_unlock(&p->lock);
	}
}

const struct vpmu_provider_ops vpmu_linux_ops = {
	.size = sizeof(vpmu_linux_ops),
	.event_size = sizeof(struct vpmu_linux_event),
	.name = "perf_event_open",
	.quality = linux_quality,
	.create = linux_create,
	.release = linux_release,
	.enable = linux_enable,
	.disable = linux_disable,
	.read = linux_read,
	.arm = linux_arm,
	.state = linux_state,
	.begin = linux_begin,
	.commit = linux_commit,
	.clock = linux_clock,
	.running = linux_running,
};

/* Set up ------------------------------------------------------------------------- */

static void read_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "r");

	snprintf(line, size, "not there");
	if (!f)
		return;
	if (fgets(line, (int)size, f))
		line[strcspn(line, "\n")] = 0;
	fclose(f);
}

int vpmu_linux_check(const struct vpmu_linux_config *cfg, char *why, size_t size)
{
	struct vpmu_event_attr attr = { .size = sizeof(attr), .fixed = -1, .slot = -1,
		.banks = VPMU_BANKS_USER | VPMU_BANKS_KERNEL, .select = 0xc0 };
	enum vpmu_quality quality;
	char found[32];
	int fd;

	if (cfg->n_map && cfg->map[0].fixed >= 0)
		attr.fixed = cfg->map[0].fixed;
	else if (cfg->n_map)
		attr.select = cfg->map[0].select;
	fd = open_event(cfg, &attr, &quality);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	read_line(PARANOID, found, sizeof(found));
	switch (-fd) {
	case EACCES:
	case EPERM:
		snprintf(why, size,
			 "perf_event_open: %s; " PARANOID " is %s, needed: at most 1, "
			 "or CAP_PERFMON (sysctl kernel.perf_event_paranoid=1)", strerror(-fd),
			 found);
		break;
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		snprintf(why, size,
			 "perf_event_open: %s; this machine's kernel has no PMU, needed: "
			 "one (in a virtual machine its host has to offer it)", strerror(-fd));
		break;
	case ENOSYS:
		snprintf(why, size, "perf_event_open: %s; needed: a kernel with "
			 "CONFIG_PERF_EVENTS and no seccomp filter against it", strerror(-fd));
		break;
	default:
		snprintf(why, size, "perf_event_open: %s; " PARANOID " is %s", strerror(-fd),
			 found);
		break;
	}
	return fd;
}

/* The embedder's signals must not be delivered to this thread. */
static int start_thread(struct vpmu_linux *p)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&p->thread, NULL, overflow_thread, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

static int start_epoll(struct vpmu_linux *p)
{
	struct epoll_event ee = { .events = EPOLLIN, .data.u64 = NO_EVENT };
	int err;

	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		return -errno;
	p->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (p->stop_fd < 0) {
		err = -errno;
		goto err_epoll;
	}
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->stop_fd, &ee) < 0) {
		err = -errno;
		goto err_stop;
	}
	err = start_thread(p);
	if (err)
		goto err_stop;
	return 0;

err_stop:
	close(p->stop_fd);
err_epoll:
	close(p->epoll_fd);
	return err;
}

int vpmu_linux_init(struct vpmu_linux *p, const struct vpmu_linux_config *cfg)
{
	int err;

	if (cfg->size < sizeof(*cfg) || !cfg->model || (cfg->n_map && !cfg->map))
		return -VPMU_EINVAL;
	memset(p, 0, sizeof(*p));
	p->cfg = *cfg;
	if (!p->cfg.tid)
		p->cfg.tid = (pid_t)syscall(SYS_gettid);
	p->provider.ops = &vpmu_linux_ops;
	p->provider.model = cfg->model;
	p->provider.n_gp = UINT32_MAX;
	p->provider.n_fixed = UINT32_MAX;
	p->provider.time_hz = 1000000000;
	/* The clock that pthread_getcpuclockid(3) returns, of a thread by its number. */
	p->clock = (clockid_t)((~(unsigned int)p->cfg.tid << 3) | 6);
	pthread_mutex_init(&p->lock, NULL);
	err = cfg->signal ? 0 : start_epoll(p);
	if (err)
		pthread_mutex_destroy(&p->lock);
	return err;
}

void vpmu_linux_fini(struct vpmu_linux *p)
{
	uint64_t one = 1;

	if (!p->cfg.signal) {
		while (write(p->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
		pthread_join(p->thread, NULL);
		close(p->stop_fd);
		close(p->epoll_fd);
	}
	pthread_mutex_destroy(&p->lock);
}
