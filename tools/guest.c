// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* QEMU as a child process: its descriptors, and its end when vpmu ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vpmu.h"

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void guest_ports(struct guest *guest, struct qemu_fds *fds)
{
	int pair[2], large = 1 << 20;

	for (int i = 0; i < PORTS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
			fail(EXIT_VPMU, "no socket: %s", strerror(errno));
		guest->port[i] = pair[0];
		fds->port[i] = pair[1];
		fcntl(pair[0], F_SETFL, O_NONBLOCK);
		/* A serial line drops output that it cannot write. */
		if (i == PORT_CONSOLE)
			setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &large, sizeof(large));
	}
}

static void keep(int fd)
{
	if (fd >= 0)
		fcntl(fd, F_SETFD, 0);
}

/* The caller's soft limits apply to the command, not to QEMU. */
static void lift_limits(void)
{
	struct rlimit l;

	for (int i = 0; i < RLIM_NLIMITS; i++) {
		if (i == RLIMIT_STACK || getrlimit(i, &l))
			continue;
		l.rlim_cur = i == RLIMIT_CORE ? 0 : l.rlim_max;
		setrlimit(i, &l);
	}
}

static void become_qemu(char **argv, const struct qemu_fds *fds, const struct shares *shares,
			int errors, pid_t parent)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	/* The terminal's signals are for vpmu; QEMU ends when vpmu does. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (int n = 1; n < NSIG; n++)
		signal(n, SIG_DFL);
	/* A file that exceeds its limit is the command's error, and not QEMU's end. */
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	lift_limits();
	dup2(null, 0);
	dup2(errors, 1);
	dup2(errors, 2);
	for (int i = 0; i < PORTS; i++)
		keep(fds->port[i]);
	keep(fds->initrd);
	for (size_t i = 0; i < shares->n; i++)
		keep(shares->list[i].fd);
	keep(fds->trace);
	keep(fds->job);
	execv(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(1);
}

void guest_start(struct guest *guest, char **argv, const struct qemu_fds *fds,
		 const struct shares *shares)
{
	pid_t parent = getpid();
	int errors[2];

	if (pipe2(errors, O_CLOEXEC))
		fail(EXIT_VPMU, "no pipe: %s", strerror(errno));
	guest->started_ns = now_ns();
	guest->pid = fork();
	if (guest->pid < 0)
		fail(EXIT_VPMU, "no process: %s", strerror(errno));
	if (!guest->pid)
		become_qemu(argv, fds, shares, errors[1], parent);
	setpgid(guest->pid, guest->pid);
	close(errors[1]);
	guest->errors = errors[0];
	fcntl(guest->errors, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < PORTS; i++)
		close(fds->port[i]);
	close(fds->initrd);
	if (fds->job >= 0)
		close(fds->job);
}

void guest_wait(struct guest *guest, int ms)
{
	const struct timespec step = { .tv_nsec = 5000000 };

	for (uint64_t end = now_ns() + ms * 1000000ull; guest->pid > 0 && now_ns() < end;) {
		if (waitpid(guest->pid, NULL, WNOHANG) == guest->pid)
			guest->pid = 0;
		else
			nanosleep(&step, NULL);
	}
}

void guest_stop(struct guest *guest)
{
	if (guest->pid <= 0)
		return;
	kill(guest->pid, SIGKILL);
	while (waitpid(guest->pid, NULL, 0) < 0 && errno == EINTR)
		;
	guest->pid = 0;
}
