/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A provider on perf_event_open(2): the events of a thread, counted by the host's kernel.
 * Overflows arrive on a thread of the provider's own, or by a signal to the counted
 * thread, which then polls: no other thread wakes up, and a guest under KVM does not
 * execute another instruction.
 *
 * All events that the host can count can be offered: hardware events if the host has a
 * PMU of the guest's model, software events (page faults, task clock) anywhere.
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
	int8_t fixed;    /* fixed counter that is requested instead, or -1 */
	uint8_t quality; /* enum vpmu_quality of the host's count */
	uint32_t type;   /* PERF_TYPE_*: type and config as in perf_event_attr */
	uint64_t config;
};

struct vpmu_linux_config {
	uint32_t size;                    /* sizeof(struct vpmu_linux_config) */
	const struct vpmu_model *model;   /* model whose event encodings the guest uses */
	const struct vpmu_linux_map *map; /* map that is consulted first */
	size_t n_map;
	/*
	 * Pass selectors that the map lacks to the host's PMU unchanged: the host's CPU
	 * is of @model.
	 */
	bool raw;
	bool guest_only; /* the thread runs a guest by KVM, and only the guest is counted */
	/*
	 * Thread whose events are counted; 0: the one that calls vpmu_linux_init(). All
	 * calls come from it, or it is stopped.
	 */
	pid_t tid;
	/*
	 * Not 0: sent to that thread when an event may have overflowed; it then calls
	 * vpmu_linux_poll(). The embedder installs the handler.
	 */
	int signal;
};

/* The caller owns the memory; fields are private to perf_event.c. */
struct vpmu_linux {
	struct vpmu_provider provider;
	struct vpmu_linux_config cfg;
	pthread_mutex_t lock;   /* protects the events below, and all first halves */
	pthread_t thread;
	int epoll_fd, stop_fd;
	clockid_t clock;        /* CPU time of the counted thread */
	unsigned int depth;     /* nesting depth of batches */
	bool stamped;           /* the clock has been read in this batch */
	uint64_t now;           /* clock as it was reported last; ns */
	struct vpmu_linux_event *event[VPMU_LINUX_EVENTS_MAX];
	uint32_t generation[VPMU_LINUX_EVENTS_MAX]; /* generation of each place in event */
};

extern const struct vpmu_provider_ops vpmu_linux_ops; /* clock: CPU time, ns */

/**
 * Check whether the events of @cfg can be counted here. On failure @why gets the cause,
 * the requirement and the cure. Returns 0 if an event can be opened, or the negative
 * errno of the host's kernel. Opens an event temporarily; nothing else changes.
 */
int vpmu_linux_check(const struct vpmu_linux_config *cfg, char *why, size_t size);

/**
 * Set up a provider and start its overflow thread.
 *
 * May block. Returns 0 or a negative errno; @p is then unusable.
 */
int vpmu_linux_init(struct vpmu_linux *p, const struct vpmu_linux_config *cfg);

/**
 * After the signal, on the counted thread: run the first halves of what has overflowed
 * since. Looks at each event with a period; without a system call if RDPMC is allowed.
 */
void vpmu_linux_poll(struct vpmu_linux *p);

/**
 * Call this from time to time, likewise: reports (`changed`) events that lost their
 * counter, or have it again, of which the kernel sends no notice.
 */
void vpmu_linux_look(struct vpmu_linux *p);

/** Stop the thread, after every event has been released. May block. */
void vpmu_linux_fini(struct vpmu_linux *p);

#endif /* VPMU_HOST_LINUX_PERF_EVENT_H */
