// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu's own messages. The command's streams are never written to here. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "vpmu.h"

FILE *say_to;

static void write_line(const char *format, va_list ap)
{
	FILE *to = say_to ? say_to : stderr;
	char text[8192];

	/* One write: others may be on the same terminal. */
	vsnprintf(text, sizeof(text), format, ap);
	fprintf(to, "vpmu: %s%s\n", text, terminal_is_raw() ? "\r" : "");
	fflush(to);
}

void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	write_line(format, ap);
	va_end(ap);
}

void fail(int status, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	write_line(format, ap);
	va_end(ap);
	exit(status);
}

int say_open(const char *path)
{
	say_to = fopen(path, "we");
	return say_to ? 0 : -errno;
}
