// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The caller's terminal: modes and size. */
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "channel.h"
#include "vpmu.h"

static struct termios saved;
static bool is_raw;

/*
 * If both input and output are on a terminal, the command gets a terminal of its own that
 * stands for it. Otherwise only the outputs that are on one do: a pager at the other end
 * of a pipe may be reading its keys from the terminal, and must not lose them to us.
 */
uint32_t terminal_streams(void)
{
	uint32_t flags = 0;

	if (isatty(1))
		flags |= CHANNEL_TTY_STDOUT;
	if (isatty(2))
		flags |= CHANNEL_TTY_STDERR;
	if (isatty(0) && isatty(1))
		flags |= CHANNEL_TTY_STDIN | CHANNEL_TTY_CONTROLLING;
	return flags;
}

bool terminal_is_raw(void)
{
	return is_raw;
}

bool terminal_foreground(int fd)
{
	return tcgetpgrp(fd) == getpgrp();
}

/* A program that reads keys one by one has switched this off. */
bool terminal_cooked(int fd)
{
	struct termios t;

	return !tcgetattr(fd, &t) && t.c_lflag & ICANON;
}

void terminal_raw(void)
{
	static bool registered;
	struct termios t;

	if (is_raw || !terminal_foreground(0) || tcgetattr(0, &saved))
		return;
	if (!registered)
		registered = !atexit(terminal_restore);
	t = saved;
	cfmakeraw(&t);
	is_raw = !tcsetattr(0, TCSADRAIN, &t);
}

void terminal_restore(void)
{
	if (!is_raw)
		return;
	is_raw = false;
	if (terminal_foreground(0))
		tcsetattr(0, TCSADRAIN, &saved);
}
