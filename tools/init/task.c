// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The command: its streams, its identity, and the process that leads its
 * session as a shell would. Without that leader the command's process group
 * would be an orphaned one, which cannot be stopped from a terminal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

/* The command's ends of the streams, and the pipe that closes with exec. */
struct ends {
	int in, out, err, slave;
	int failed[2];
};

static void report(int fd, int kind, int value)
{
	const struct task_report r = { .kind = kind, .value = value };

	if (write(fd, &r, sizeof(r)) != sizeof(r))
		_exit(1);
}

static void set_limits(const struct job *job)
{
	const struct channel_item *item = NULL;
	const struct channel_rlimit *l;
	struct rlimit limit;

	while ((item = job_item(job, CHANNEL_RLIMIT, item))) {
		l = (const struct channel_rlimit *)(item + 1);
		limit.rlim_cur = l->soft;
		limit.rlim_max = l->hard;
		setrlimit(l->resource, &limit);
	}
}

/* Ignored signals stay ignored, as across exec on the host; all others are reset. */
static void set_signals(const struct job *job)
{
	const struct channel_item *item = job_item(job, CHANNEL_SIGNALS, NULL);
	uint64_t ignored = item ? *(const uint64_t *)(item + 1) : 0;
	sigset_t none;

	for (int n = 1; n < NSIG; n++)
		signal(n, ignored >> (n - 1) & 1 ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int become(const struct job *job)
{
	const struct channel_item *mask = job_item(job, CHANNEL_UMASK, NULL);
	const struct channel_item *nice_ = job_item(job, CHANNEL_NICE, NULL);

	if (nice_)
		setpriority(PRIO_PROCESS, 0, *(const int32_t *)(nice_ + 1));
	set_limits(job);
	umask(mask ? *(const uint32_t *)(mask + 1) : 022);
	if (setgroups(job->n_ids - 2, (const gid_t *)job->ids + 2) ||
	    setresgid(job->ids[1], job->ids[1], job->ids[1]) ||
	    setresuid(job->ids[0], job->ids[0], job->ids[0]))
		return -1;
	if (chdir(job->cwd) && chdir("/"))
		return -1;
	set_signals(job);
	return 0;
}

static void take_stream(int fd, int number)
{
	if (fd != number)
		dup2(fd, number);
	else
		fcntl(fd, F_SETFD, 0);
}

/*
 * Start at a time that does not depend on what was done before, such as resolving a path, and
 * lies where the caller wants it among the ticks of the guest's clock.
 */
static void delay(const struct job *job)
{
	const struct channel_item *item = job_item(job, CHANNEL_DELAY, NULL);
	struct timespec t;

	if (!item || item->len != 4)
		return;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += 2;
	t.tv_nsec = *(const uint32_t *)(item + 1);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void run_command(const struct job *job, const struct ends *ends)
{
	int err;

	setpgid(0, 0);
	delay(job);
	if (job->tty && job->tty->flags & CHANNEL_TTY_CONTROLLING)
		tcsetpgrp(ends->slave, getpid());
	take_stream(ends->in, 0);
	take_stream(ends->out, 1);
	take_stream(ends->err, 2);
	if (!become(job)) {
		environ = job->envp;
		execvp(job->argv[0], job->argv);
	}
	err = errno;
	if (write(ends->failed[1], &err, sizeof(err)) < 0)
		_exit(126);
	_exit(err == ENOENT ? 127 : 126);
}

/* Close our copies of the command's ends, so that their end of file arrives. */
static void close_ends(const struct ends *ends)
{
	if (ends->in != ends->slave)
		close(ends->in);
	if (ends->out != ends->slave)
		close(ends->out);
	if (ends->err != ends->slave)
		close(ends->err);
}

static void lead(const struct job *job, struct ends *ends, int to)
{
	int status, err;
	pid_t pid;

	setsid();
	signal(SIGTTOU, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	if (job->tty && job->tty->flags & CHANNEL_TTY_CONTROLLING)
		ioctl(ends->slave, TIOCSCTTY, 0);
	if (pipe2(ends->failed, O_CLOEXEC))
		_exit(1);
	pid = fork();
	if (pid < 0)
		_exit(1);
	if (!pid)
		run_command(job, ends);
	setpgid(pid, pid);
	/* The leader keeps neither side of any stream open. */
	for (int fd = 3; fd < 256; fd++)
		if (fd != to && fd != ends->failed[0])
			close(fd);
	report(to, TASK_STARTED, pid);
	if (read(ends->failed[0], &err, sizeof(err)) == sizeof(err))
		report(to, TASK_NOEXEC, err);
	while (waitpid(pid, &status, WUNTRACED) == pid) {
		report(to, TASK_STATUS, status);
		if (!WIFSTOPPED(status))
			_exit(0);
	}
	_exit(1);
}

static void open_terminal(struct task *task, struct ends *ends,
			  const struct channel_tty *tty, const uint32_t *ids)
{
	struct winsize size = { tty->rows, tty->columns, tty->xpixel, tty->ypixel };
	struct termios t;
	int unlock = 0;

	task->terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (task->terminal < 0 || ioctl(task->terminal, TIOCSPTLCK, &unlock))
		die("no terminal in the guest: %m");
	ends->slave = ioctl(task->terminal, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (ends->slave < 0 || tcgetattr(ends->slave, &t))
		die("no terminal in the guest: %m");
	t.c_iflag = tty->iflag;
	t.c_oflag = tty->oflag;
	t.c_lflag = tty->lflag;
	memcpy(t.c_cc, tty->cc, sizeof(t.c_cc) < sizeof(tty->cc) ?
	       sizeof(t.c_cc) : sizeof(tty->cc));
	tcsetattr(ends->slave, TCSANOW, &t);
	ioctl(ends->slave, TIOCSWINSZ, &size);
	if (fchown(ends->slave, ids[0], 5) || fchmod(ends->slave, 0620))
		note("the terminal is not yours: %m");
}

/*
 * A pipe of which the caller owns the command's end, so that the command can open it
 * again through /dev/stdout, as on the host.
 */
static void open_pipe(int *reader, int *writer, int *ours, const uint32_t *ids)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		die("no pipe in the guest: %m");
	*reader = fds[0];
	*writer = fds[1];
	fcntl(*ours, F_SETFL, O_NONBLOCK);
	if (fchown(fds[0], ids[0], ids[1]))
		note("a stream is not yours: %m");
}

/* Standard input that came whole, with the job, as a file without a name. */
static int open_input(const struct job *job)
{
	const struct channel_item *item = job_item(job, CHANNEL_STDIN, NULL);
	int fd = item->len ? memfd_create("stdin", MFD_CLOEXEC)
			   : open("/dev/null", O_RDONLY | O_CLOEXEC);
	const char *at = (const char *)(item + 1), *end = at + item->len;
	ssize_t n;

	for (; fd >= 0 && at < end; at += n) {
		n = write(fd, at, end - at);
		if (n <= 0)
			die("no memory in the guest for standard input: %m");
	}
	if (fd < 0 || (item->len && lseek(fd, 0, SEEK_SET)))
		die("no standard input in the guest: %m");
	if (fchown(fd, job->ids[0], job->ids[1]) && item->len)
		note("a stream is not yours: %m");
	return fd;
}

void task_start(struct task *task, const struct job *job)
{
	uint32_t on_tty = job->tty ? job->tty->flags : 0;
	struct ends ends = { .slave = -1 };
	int reports[2];

	*task = (struct task){
		.in = -1, .out = -1, .err = -1, .terminal = -1, .slave = -1,
	};
	if (on_tty)
		open_terminal(task, &ends, job->tty, job->ids);
	ends.in = ends.out = ends.err = ends.slave;
	if (job_item(job, CHANNEL_STDIN, NULL))
		ends.in = open_input(job);
	else if (!(on_tty & CHANNEL_TTY_STDIN))
		open_pipe(&ends.in, &task->in, &task->in, job->ids);
	if (!(on_tty & CHANNEL_TTY_STDOUT))
		open_pipe(&task->out, &ends.out, &task->out, job->ids);
	if (!(on_tty & CHANNEL_TTY_STDERR))
		open_pipe(&task->err, &ends.err, &task->err, job->ids);
	if (pipe2(reports, O_CLOEXEC))
		die("no pipe in the guest: %m");
	task->leader = fork();
	if (task->leader < 0)
		die("no process in the guest: %m");
	if (!task->leader)
		lead(job, &ends, reports[1]);
	close_ends(&ends);
	task->slave = ends.slave;
	close(reports[1]);
	task->report = reports[0];
	if (on_tty & CHANNEL_TTY_STDIN)
		task->in = task->terminal;
	if (on_tty & CHANNEL_TTY_STDOUT)
		task->out = task->terminal;
	else if (on_tty & CHANNEL_TTY_STDERR)
		task->err = task->terminal;
}
