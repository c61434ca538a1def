// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A run of the guest in a process of its own, whose output is kept: vpmu bench, --twice. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vpmu.h"

/* A terminal sends the first two to the child, too; the others are passed on. */
static const int signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
#define SIGNALS		(sizeof(signals) / sizeof(signals[0]))

static pid_t child;

static void forward(int sig)
{
	kill(child, sig);
}

static void handle_signals(struct sigaction *before)
{
	for (size_t i = 0; i < SIGNALS; i++) {
		struct sigaction now = { .sa_handler = i < 2 ? SIG_IGN : forward };

		sigaction(signals[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN) /* nohup's stays ignored */
			sigaction(signals[i], &now, NULL);
	}
}

int in_child(int (*run)(void *ctx), void *ctx, FILE *input, FILE *output)
{
	struct sigaction before[SIGNALS];
	pid_t parent = getpid();
	int status;

	child = fork();
	if (!child) {
		/* Its guest ends with us, however we end. */
		if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent)
			_exit(EXIT_VPMU);
		if (input)
			dup2(fileno(input), 0);
		dup2(fileno(output), 1);
		exit(run(ctx));
	}
	if (child < 0)
		fail(EXIT_VPMU, "no process: %s", strerror(errno));
	handle_signals(before);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail(EXIT_VPMU, "waiting for vpmu run: %s", strerror(errno));
	/* The next child inherits them, and hands those that are ignored to its guest. */
	for (size_t i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &before[i], NULL);
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return EXIT_VPMU;
}
