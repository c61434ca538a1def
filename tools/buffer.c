// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A growing array of bytes. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "vpmu.h"

void *xalloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		fail(EXIT_VPMU, "no memory for %zu bytes", size);
	return p;
}

char *xprintf(const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		fail(EXIT_VPMU, "no memory");
	va_end(ap);
	return text;
}

void buffer_add(struct buffer *b, const void *data, size_t len)
{
	size_t need = b->len + len + 1;

	if (need > b->cap) {
		char *more = realloc(b->data, need * 2);

		if (!more)
			fail(EXIT_VPMU, "no memory for %zu bytes", need * 2);
		b->data = more;
		b->cap = need * 2;
	}
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = 0;
}

void buffer_string(struct buffer *b, const char *text)
{
	buffer_add(b, text, strlen(text));
}

void buffer_print(struct buffer *b, const char *format, ...)
{
	char *text;
	va_list ap;
	int len;

	va_start(ap, format);
	len = vasprintf(&text, format, ap);
	va_end(ap);
	if (len < 0)
		fail(EXIT_VPMU, "no memory");
	buffer_add(b, text, len);
	free(text);
}

void buffer_drop(struct buffer *b, size_t len)
{
	memmove(b->data, b->data + len, b->len - len);
	b->len -= len;
}

void buffer_free(struct buffer *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}
