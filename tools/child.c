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

static const int ours[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
static pid_t child;

static void forward(int sig)
{
	kill(child, sig);
}

int in_child(int (*run)(void *ctx), void *ctx, FILE *input, FILE *output)
{
	pid_t parent = getpid();
	int status;

	child = fork();
	if (!child) {
		/* The run before this one has changed them. */
		for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
			signal(ours[i], SIG_DFL);
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
	/* A terminal sends these to the child, too. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTERM, forward);
	signal(SIGHUP, forward);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail(EXIT_VPMU, "waiting for vpmu run: %s", strerror(errno));
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return EXIT_VPMU;
}
