// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Messages to the host over the control port, or to the kernel's log before there is one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "init.h"

static int control = -1;

void say_on(int port)
{
	control = port;
}

void wait_fd(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	poll(&p, 1, -1);
}

static void write_control(const void *data, size_t len)
{
	const char *at = data;
	ssize_t n;

	while (len) {
		n = write(control, at, len);
		if (n < 0 && errno == EAGAIN)
			wait_fd(control, POLLOUT);
		else if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			at += n;
			len -= n;
		}
	}
}

void send_message(uint32_t type, const void *data, size_t len)
{
	const struct channel_head h = { .type = type, .len = len };

	write_control(&h, sizeof(h));
	write_control(data, len);
}

int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -errno : 0;
}

void die(const char *format, ...)
{
	char text[1024] = "<0>vpmu: ";
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, format);
	vsnprintf(text + used, sizeof(text) - used, format, ap);
	va_end(ap);
	if (control < 0) {
		write_file("/dev/kmsg", text);
		_exit(1);
	}
	send_message(CHANNEL_FAILED, text + used, strlen(text + used));
	for (;;)
		pause();
}

void note(const char *format, ...)
{
	char text[1024] = "<0>vpmu: ";
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, format);
	vsnprintf(text + used, sizeof(text) - used - 1, format, ap);
	va_end(ap);
	if (control >= 0) {
		send_message(CHANNEL_NOTE, text + used, strlen(text + used));
		return;
	}
	/* The kernel prints a line when it is complete. */
	strcat(text, "\n");
	write_file("/dev/kmsg", text);
}
