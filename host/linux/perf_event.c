/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The provider on perf_event_open(2).
 *
 * An event with a period has a ring of one page, and a thread sleeps in epoll on
 * all of them. The kernel's period only says when to look: what decides is the
 * count, compared with `next`, so a wakeup too many is harmless.
 *
 * The kernel knows one period and the interface two, `left` and then `period`.
 * Changing it under a running event loses occurrences of software events, so it
 * is changed by the counted thread, in its next call after the overflow.
 */
#include "perf_event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST_PERIOD	((uint64_t)1 << 62) /* the kernel refuses bit 63 */
#define NO_EVENT	UINT64_MAX          /* epoll's datum of stop_fd */

struct vpmu_linux_event {
	struct vpmu_event head;
	int fd;
	uint32_t place;   /* in vpmu_linux.event */
	bool enabled;
	bool rearm;       /* the kernel's period must be set from next */
	uint64_t period;  /* 0: no overflow, no ring */
	uint64_t next;    /* count of the next overflow, VPMU_NEVER: not armed */
	uint64_t last;    /* count last seen; read(2) has none in the error state */
	uint64_t time_enabled, time_running; /* at the last enable, ns */
	struct perf_event_mmap_page *ring;
};

/* What read(2) returns, by read_format. */
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

static size_t ring_bytes(void)
{
	return 2 * (size_t)sysconf(_SC_PAGESIZE); /* head and one page of data */
}

/* The selector's host event, or false. */
static bool map_event(const struct vpmu_linux *p, const struct vpmu_event_attr *attr,
		      struct perf_event_attr *pe, enum vpmu_quality *quality)
{
	static const uint64_t fixed[] = { PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES,
					  PERF_COUNT_HW_REF_CPU_CYCLES };
	size_t i;

	for (i = 0; i < p->cfg.n_map; i++) {
		const struct vpmu_linux_map *m = &p->cfg.map[i];

		if (attr->fixed >= 0 ? m->fixed != attr->fixed :
				       m->fixed >= 0 || m->select != attr->select)
			continue;
		pe->type = m->type;
		pe->config = m->config;
		*quality = m->quality;
		return true;
	}
	if (!p->cfg.raw || attr->fixed >= (int)(sizeof(fixed) / sizeof(fixed[0])))
		return false;
	pe->type = attr->fixed >= 0 ? PERF_TYPE_HARDWARE : PERF_TYPE_RAW;
	pe->config = attr->fixed >= 0 ? fixed[attr->fixed] : attr->select;
	pe->config1 = attr->extra;
	*quality = VPMU_QUALITY_EXACT;
	return true;
}

/* Returns a file descriptor or a negative errno. */
static int open_event(const struct vpmu_linux *p, const struct vpmu_event_attr *attr,
		      enum vpmu_quality *quality)
{
	struct perf_event_attr pe = { .size = sizeof(pe) };
	int group = attr->leader ? event_of(attr->leader)->fd : -1;
	int fd;

	if (!map_event(p, attr, &pe, quality))
		return -VPMU_ENOENT;
	pe.disabled = 1;
	pe.pinned = attr->pinned && !attr->leader; /* the leader's goes for all */
	pe.exclude_user = !(attr->banks & VPMU_BANKS_USER);
	pe.exclude_kernel = !(attr->banks & VPMU_BANKS_KERNEL);
	pe.exclude_hv = 1;
	pe.exclude_host = p->cfg.guest_only;
	pe.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (attr->period) {
		pe.sample_period = LONGEST_PERIOD;
		pe.wakeup_events = 1;
	}
	fd = syscall(SYS_perf_event_open, &pe, p->cfg.tid, -1, group, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static enum vpmu_quality linux_quality(struct vpmu_provider *p,
				       const struct vpmu_event_attr *attr)
{
	enum vpmu_quality quality;
	int fd = open_event(linux_of(p), attr, &quality);

	if (fd < 0)
		return VPMU_QUALITY_NONE;
	close(fd);
	return quality;
}

/* False: the event is in the error state, which read(2) shows as an end of file. */
static bool read_event(const struct vpmu_linux_event *e, struct reading *r)
{
	return read(e->fd, r, sizeof(*r)) == sizeof(*r);
}

static int attach_ring(struct vpmu_linux *p, struct vpmu_linux_event *e)
{
	/* edges only: once the counted thread has exited the file hangs up for good */
	struct epoll_event ee = { .events = EPOLLIN | EPOLLET };

	e->ring = mmap(NULL, ring_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	if (e->ring == MAP_FAILED)
		return -errno;
	ee.data.u64 = (uint64_t)p->generation[e->place] << 32 | e->place;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, e->fd, &ee) < 0) {
		int err = -errno;

		munmap(e->ring, ring_bytes());
		return err;
	}
	return 0;
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
	e->fd = open_event(p, attr, &quality);
	if (e->fd < 0)
		return e->fd;
	e->head.provider = provider;
	e->head.quality = quality;
	e->place = place;
	e->period = attr->period;
	e->next = VPMU_NEVER;
	if (e->period) {
		err = attach_ring(p, e);
		if (err)
			goto err_close;
	}
	pthread_mutex_lock(&p->lock);
	p->event[place] = e;
	pthread_mutex_unlock(&p->lock);
	return 0;

err_close:
	close(e->fd);
	return err;
}

static void linux_release(struct vpmu_event *ev)
{
	struct vpmu_linux_event *e = event_of(ev);
	struct vpmu_linux *p = linux_of(ev->provider);

	/* who finds the event in its place holds the lock until its first half ends */
	pthread_mutex_lock(&p->lock);
	p->event[e->place] = NULL;
	p->generation[e->place]++;
	pthread_mutex_unlock(&p->lock);

	if (e->period)
		munmap(e->ring, ring_bytes());
	close(e->fd);
}

/* On the counted thread; the lock is held. */
static void set_period(struct vpmu_linux_event *e)
{
	struct reading r;
	uint64_t left;

	e->rearm = false;
	if (!read_event(e, &r))
		return;
	left = e->next > r.count ? e->next - r.count : 1;
	if (left > LONGEST_PERIOD)
		left = LONGEST_PERIOD;
	/* a running software event would overflow at once under its new period */
	if (e->enabled)
		ioctl(e->fd, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(e->fd, PERF_EVENT_IOC_PERIOD, &left);
	if (e->enabled)
		ioctl(e->fd, PERF_EVENT_IOC_ENABLE, 0);
}

/* Bring everything up to date; returns the count. On the counted thread. */
static uint64_t refresh(struct vpmu_linux_event *e)
{
	struct vpmu_linux *p = linux_of(e->head.provider);
	struct reading r;

	pthread_mutex_lock(&p->lock);
	if (e->rearm)
		set_period(e);
	if (read_event(e, &r))
		e->last = r.count;
	pthread_mutex_unlock(&p->lock);
	return e->last;
}

static int linux_enable(struct vpmu_event *ev)
{
	struct vpmu_linux_event *e = event_of(ev);
	struct reading r;

	refresh(e);
	if (read_event(e, &r)) {
		if (e->enabled)
			return 0;
		e->time_enabled = r.time_enabled;
		e->time_running = r.time_running;
	}
	if (ioctl(e->fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	e->enabled = true;
	return read_event(e, &r) ? 0 : -VPMU_EBUSY;
}

static void linux_disable(struct vpmu_event *ev)
{
	struct vpmu_linux_event *e = event_of(ev);

	ioctl(e->fd, PERF_EVENT_IOC_DISABLE, 0);
	e->enabled = false;
	refresh(e);
}

static uint64_t linux_read(struct vpmu_event *ev)
{
	return refresh(event_of(ev));
}

static void linux_arm(struct vpmu_event *ev, uint64_t left)
{
	struct vpmu_linux_event *e = event_of(ev);
	struct vpmu_linux *p = linux_of(ev->provider);
	struct reading r;

	if (!e->period || !read_event(e, &r))
		return;
	pthread_mutex_lock(&p->lock);
	e->next = left < VPMU_NEVER - r.count ? r.count + left : VPMU_NEVER;
	set_period(e);
	pthread_mutex_unlock(&p->lock);
}

static enum vpmu_event_state linux_state(const struct vpmu_event *ev)
{
	const struct vpmu_linux_event *e = event_of(ev);
	struct reading r;

	if (!e->enabled)
		return VPMU_EVENT_OFF;
	if (!read_event(e, &r))
		return VPMU_EVENT_ERROR;
	if (r.time_enabled > e->time_enabled && r.time_running == e->time_running)
		return VPMU_EVENT_INACTIVE;
	return VPMU_EVENT_ACTIVE;
}

/* The lock is held. */
static void look(struct vpmu_linux_event *e)
{
	struct reading r;

	/* the records themselves say nothing that the count does not */
	__atomic_store_n(&e->ring->data_tail,
			 __atomic_load_n(&e->ring->data_head, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
	if (!read_event(e, &r) || r.count < e->next)
		return;
	e->next += e->period * ((r.count - e->next) / e->period + 1);
	e->rearm = true;
	if (e->head.overflowed)
		e->head.overflowed(&e->head);
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
			look(p->event[place]);
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
};

/* The embedder's signals are not for this thread. */
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

int vpmu_linux_init(struct vpmu_linux *p, const struct vpmu_linux_config *cfg)
{
	struct epoll_event ee = { .events = EPOLLIN, .data.u64 = NO_EVENT };
	int err;

	if (cfg->size < sizeof(*cfg) || !cfg->model || (cfg->n_map && !cfg->map))
		return -VPMU_EINVAL;
	memset(p, 0, sizeof(*p));
	p->cfg = *cfg;
	p->provider.ops = &vpmu_linux_ops;
	p->provider.model = cfg->model;
	p->provider.n_gp = UINT32_MAX;
	p->provider.n_fixed = UINT32_MAX;

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
	pthread_mutex_init(&p->lock, NULL);
	err = start_thread(p);
	if (err)
		goto err_lock;
	return 0;

err_lock:
	pthread_mutex_destroy(&p->lock);
err_stop:
	close(p->stop_fd);
err_epoll:
	close(p->epoll_fd);
	return err;
}

void vpmu_linux_fini(struct vpmu_linux *p)
{
	uint64_t one = 1;

	while (write(p->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(p->thread, NULL);
	pthread_mutex_destroy(&p->lock);
	close(p->stop_fd);
	close(p->epoll_fd);
}
