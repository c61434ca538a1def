// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The guest's first process. It boots the guest to the point from which any job can
 * start, says READY, and waits: a snapshot may be taken there. Then it does one job: the
 * host's file system, a command as the caller, its streams.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

/* One direction of one stream. */
struct pump {
	int from, to;		/* -1: closed */
	size_t have, done;	/* bytes in the buffer, and how many of them were passed on */
	uint64_t total;		/* bytes passed on */
	char buf[65536];
};

static int control = -1;
static struct pump in, out, err;
static uint64_t in_end = UINT64_MAX;	/* bytes of stdin before its end */
static int in_rest = -1;		/* the pipe's other end, once ours is closed */
static struct task task;
static int status;
static bool finishing, was_full;
static bool alone;	/* no one serves the control port */

/* The part of a message that has arrived on the control port. */
static struct channel_head head;
static char *payload;
static size_t head_have, payload_have;

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- streams */

static bool pump_idle(const struct pump *p)
{
	return p->from < 0 && p->done == p->have;
}

/* Returns false at the end of the input. */
static bool pump_fill(struct pump *p, size_t max)
{
	ssize_t n;

	if (max > sizeof(p->buf))
		max = sizeof(p->buf);
	n = read(p->from, p->buf, max);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return !finishing;
	if (n <= 0)
		return false;
	p->have = n;
	p->done = 0;
	return true;
}

/* Returns false when the reader has gone. */
static bool pump_drain(struct pump *p)
{
	ssize_t n = write(p->to, p->buf + p->done, p->have - p->done);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	p->done += n;
	p->total += n;
	return true;
}

static void pump_out(struct pump *p, short events)
{
	if (p->done < p->have) {
		if (!pump_drain(p))
			p->done = p->have;
	} else if (p->from >= 0 && (events || finishing) &&
		   !pump_fill(p, sizeof(p->buf))) {
		close_fd(&p->from);
	}
}

/*
 * The command may continue to read what is in the pipe, so the rest is counted when it
 * has ended. A read end of our own would hide that the command closed its end, so it is
 * opened only now, when there is nothing more to write.
 */
static void close_stdin(void)
{
	char path[32];

	if (in.to < 0)
		return;
	if (in.to != task.terminal) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", in.to);
		in_rest = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		close(in.to);
	}
	in.to = -1;
}

/* Bytes of standard input that no process has read. */
static uint64_t stdin_unread(void)
{
	int unread = 0;

	return in_rest >= 0 && !ioctl(in_rest, FIONREAD, &unread) ? (uint64_t)unread : 0;
}

/* Input that arrives after the reader has gone is discarded. */
static void pump_in(short events)
{
	if (in.done < in.have) {
		if (in.to >= 0 && !pump_drain(&in)) {
			close_stdin();
			send_message(CHANNEL_STDIN_CLOSED, NULL, 0);
		}
		if (in.to < 0)
			in.done = in.have;
	} else if (events & POLLIN) {
		pump_fill(&in, sizeof(in.buf));
	}
	if (in.done == in.have && in.total >= in_end)
		close_stdin();
}

/* A reader that goes while nothing is written shows up as an error. */
static void watch_reader(short events)
{
	if (in.to < 0 || in.to == task.terminal || !(events & POLLERR))
		return;
	close_stdin();
	send_message(CHANNEL_STDIN_CLOSED, NULL, 0);
}

/* ---- control */

static void signal_group(int sig)
{
	if (task.pgid > 0)
		kill(-task.pgid, sig);
}

static void handle_message(void)
{
	switch (head.type) {
	case CHANNEL_SIGNAL:
		if (head.len == sizeof(int32_t))
			signal_group(*(int32_t *)payload);
		break;
	case CHANNEL_KILL:
		kill(-1, SIGKILL);
		break;
	case CHANNEL_WINSIZE:
		if (head.len == sizeof(struct winsize) && task.terminal >= 0)
			ioctl(task.terminal, TIOCSWINSZ, payload);
		break;
	case CHANNEL_STDIN_EOF:
		if (head.len == sizeof(uint64_t))
			in_end = *(uint64_t *)payload;
		break;
	case CHANNEL_STDOUT_CLOSED:
		out.done = out.have;
		if (out.from != task.terminal)
			close_fd(&out.from);
		break;
	case CHANNEL_STDERR_CLOSED:
		err.done = err.have;
		if (err.from != task.terminal)
			close_fd(&err.from);
		break;
	}
}

/* Read what has arrived; returns true when a message is complete. */
static bool read_message(void)
{
	ssize_t n;

	if (head_have < sizeof(head)) {
		n = read(control, (char *)&head + head_have, sizeof(head) - head_have);
		if (n <= 0)
			return false;
		head_have += n;
		if (head_have < sizeof(head))
			return false;
		if (head.len > CHANNEL_MAX)
			die("a message of %u bytes", head.len);
		payload = malloc(head.len + 8);
		payload_have = 0;
		if (!payload)
			die("no memory for a message of %u bytes", head.len);
	}
	if (payload_have < head.len) {
		n = read(control, payload + payload_have, head.len - payload_have);
		if (n > 0)
			payload_have += n;
	}
	if (payload_have < head.len)
		return false;
	head_have = 0;
	return true;
}

static void serve_control(void)
{
	while (read_message()) {
		handle_message();
		free(payload);
	}
}

static void wait_for_job(struct job *job)
{
	const struct channel_ready ready = {
		.version = CHANNEL_VERSION, .uptime_ns = clock_ns(),
	};

	send_message(CHANNEL_READY, &ready, sizeof(ready));
	if (alone || boot_option(CHANNEL_REPEAT)) {
		payload = repeat_job(&payload_have);
	} else {
		while (!read_message())
			wait_fd(control, POLLIN);
		if (head.type != CHANNEL_JOB)
			die("not a job");
	}
	if (job_parse(job, payload, payload_have))
		die("not a job");
}

/* ---- the command */

static void serve_report(void)
{
	struct task_report r;
	ssize_t n = read(task.report, &r, sizeof(r));

	if (n != sizeof(r)) {
		/* kill(-1) of a killed command reaches its leader too. */
		close_fd(&task.report);
		status = SIGKILL;
		finishing = true;
		return;
	}
	switch (r.kind) {
	case TASK_STARTED:
		task.pgid = r.value;
		send_message(CHANNEL_STARTED, NULL, 0);
		break;
	case TASK_NOEXEC:
		if (alone)
			note("the command cannot be executed: %s", strerror(r.value));
		send_message(CHANNEL_NOEXEC, &r.value, sizeof(r.value));
		break;
	case TASK_STATUS:
		if (WIFSTOPPED(r.value)) {
			r.value = WSTOPSIG(r.value);
			send_message(CHANNEL_STOPPED, &r.value, sizeof(r.value));
			break;
		}
		close_fd(&task.report);
		status = r.value;
		finishing = true;
		break;
	}
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* No other process is left, so every stream has its end. */
static void end_processes(void)
{
	was_full |= fs_overlay_full();
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

static void on_child(int sig)
{
}

static short wants(const struct pump *p, bool reading)
{
	bool full = p->done < p->have;

	return reading ? (full ? 0 : POLLIN) : (full ? POLLOUT : 0);
}

static void serve_once(void)
{
	struct pollfd p[] = {
		{ control, POLLIN, 0 },
		{ task.report, POLLIN, 0 },
		{ in.from, wants(&in, true), 0 },
		{ in.to, wants(&in, false), 0 },
		{ out.from, wants(&out, true), 0 },
		{ out.to, wants(&out, false), 0 },
		{ err.from, wants(&err, true), 0 },
		{ err.to, wants(&err, false), 0 },
	};

	/*
	 * Poll reports the end of a descriptor even if nothing is asked for; for the pipe
	 * to the command's standard input that is wanted.
	 */
	for (size_t i = 2; i < sizeof(p) / sizeof(p[0]); i++)
		if (!p[i].events && (i != 3 || in.to == task.terminal))
			p[i].fd = -1;
	poll(p, sizeof(p) / sizeof(p[0]), finishing ? 1 : 250);
	reap();
	was_full |= fs_overlay_full();
	if (p[0].revents)
		serve_control();
	if (p[1].revents && task.report >= 0)
		serve_report();
	watch_reader(p[3].revents);
	if (p[2].revents || p[3].revents || in.total >= in_end)
		pump_in(p[2].revents);
	pump_out(&out, p[4].revents);
	pump_out(&err, p[6].revents);
}

static void open_pumps(void)
{
	in.from = boot_port(CHANNEL_PORT_STDIN);
	out.to = boot_port(CHANNEL_PORT_STDOUT);
	err.to = boot_port(CHANNEL_PORT_STDERR);
	in.to = out.from = err.from = -1;
}

/* End the machine. Its kernel's own word on that is none for the user. */
static void end_alone(bool saved)
{
	int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

	dprintf(boot_port(CHANNEL_PORT_CONTROL), "%d\n", code || saved ? code : 125);
	write_file("/proc/sys/kernel/printk", "0");
	reboot(RB_AUTOBOOT);
}

static void do_job(const struct job *job)
{
	struct channel_exit e = { 0 };
	uint64_t start;

	fs_enter(job);
	if (job_item(job, CHANNEL_KVM, NULL))
		boot_kvm();
	if (job_item(job, CHANNEL_NETWORK, NULL))
		boot_network();
	start = clock_ns();
	task_start(&task, job);
	in.to = task.in;
	out.from = task.out;
	err.from = task.err;
	while (!finishing)
		serve_once();
	e.wall_ns = clock_ns() - start;
	end_processes();
	close_fd(&task.slave);
	while (!pump_idle(&out) || !pump_idle(&err))
		serve_once();
	close_stdin();
	if (!fs_leave())
		e.flags |= CHANNEL_EXIT_UNSAVED;
	if (was_full)
		e.flags |= CHANNEL_EXIT_FULL;
	if (fs_out_of_memory())
		e.flags |= CHANNEL_EXIT_OOM;
	if (!job_item(job, CHANNEL_NETWORK, NULL) && boot_missed_network())
		e.flags |= CHANNEL_EXIT_NETWORK;
	if (alone)
		end_alone(!(e.flags & CHANNEL_EXIT_UNSAVED));
	e.status = status;
	e.out_bytes = out.total;
	e.err_bytes = err.total;
	e.in_bytes = in.total - stdin_unread();
	send_message(CHANNEL_EXIT, &e, sizeof(e));
}

int main(void)
{
	struct sigaction child = { .sa_handler = on_child };
	struct job job;
	int null;

	boot_mount();
	/* The kernel gave us its console, or nothing at all. */
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGCHLD, &child, NULL);
	boot_modules();
	fs_prepare();
	alone = boot_option(CHANNEL_ALONE);
	if (!alone) {
		control = boot_port(CHANNEL_PORT_CONTROL);
		say_on(control);
	}
	open_pumps();
	boot_driver();
	wait_for_job(&job);
	do_job(&job);
	for (;;)
		pause();
}
