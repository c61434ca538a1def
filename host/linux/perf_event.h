/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A provider on perf_event_open(2): the events of a thread, counted by the host's
 * kernel. Overflows arrive on a thread of the provider's own, or by a signal to the
 * counted thread, which then polls: no other thread wakes up, and a guest that runs by
 * KVM does not execute another instruction.
 *
 * Whatever the host can count can be offered: hardware events where the host has
 * a PMU and is of the guest's model, software events (page faults, task clock)
 * anywhere.
 */
#ifndef VPMU_HOST_LINUX_PERF_EVENT_H
#define VPMU_HOST_LINUX_PERF_EVENT_H

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include <vpmu/provider.h>

#define VPMU_LINUX_EVENTS_MAX 64

/* One selector of the guest and the host's event that counts it. */
struct vpmu_linux_map {
	uint16_t select; /* event select in bits 7:0, unit mask in bits 15:8 */
	int8_t fixed;    /* fixed counter that is meant instead, or -1 */
	uint8_t quality; /* enum vpmu_quality of the host's count */
	uint32_t type;   /* PERF_TYPE_*: type and config as in perf_event_attr */
	uint64_t config;
};

struct vpmu_linux_config {
	uint32_t size;                    /* sizeof(struct vpmu_linux_config) */
	const struct vpmu_model *model;   /* whose event encodings the guest uses */
	const struct vpmu_linux_map *map; /* looked up first */
	size_t n_map;
	bool raw;        /* what the map lacks goes to the host's PMU as it is: the
			    host's CPU is of @model */
	bool guest_only; /* the thread runs a guest by KVM, and only that counts */
	pid_t tid;       /* thread whose events are counted; 0: the one that calls
			    vpmu_linux_init(). All calls come from it, or it is stopped */
	int signal;      /* not 0: sent to that thread when something may have overflowed;
			    it then calls vpmu_linux_poll(). Who handles it is the
			    embedder's business */
};

/* The caller owns the memory; fields are private to perf_event.c. */
struct vpmu_linux {
	struct vpmu_provider provider;
	struct vpmu_linux_config cfg;
	pthread_mutex_t lock;   /* the events below, and all first halves */
	pthread_t thread;
	int epoll_fd, stop_fd;
	clockid_t clock;        /* CPU time of the counted thread */
	unsigned int depth;     /* of batches */
	bool stamped;           /* the clock has been asked in this one */
	uint64_t now;           /* that clock, as it was told last; ns */
	struct vpmu_linux_event *event[VPMU_LINUX_EVENTS_MAX];
	uint32_t generation[VPMU_LINUX_EVENTS_MAX]; /* of each place in event */
};

extern const struct vpmu_provider_ops vpmu_linux_ops; /* its clock: CPU time, ns */

/**
 * Why the events of @cfg cannot be counted here: what was found, what is needed, and
 * what to do about it, in @why. Returns 0 when an event can be opened, or the negative
 * errno that the host's kernel gave. Opens an event, and changes nothing.
 */
int vpmu_linux_check(const struct vpmu_linux_config *cfg, char *why, size_t size);

/**
 * Set up a provider and start its overflow thread.
 *
 * May block. Returns 0 or a negative errno; @p is then unusable.
 */
int vpmu_linux_init(struct vpmu_linux *p, const struct vpmu_linux_config *cfg);

/**
 * After the signal, on the counted thread: first halves of what has overflowed since.
 * Looks at each event with a period; without a system call where RDPMC is allowed.
 */
void vpmu_linux_poll(struct vpmu_linux *p);

/** Now and then, likewise: tells (`changed`) of events that lost their counter, or
 * have it again, of which the kernel does not send word. */
void vpmu_linux_look(struct vpmu_linux *p);

/** Stop the thread; every event has been released. May block. */
void vpmu_linux_fini(struct vpmu_linux *p);

#endif /* VPMU_HOST_LINUX_PERF_EVENT_H */
