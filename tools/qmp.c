// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A question to QEMU's monitor and its answer. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>

#include "vpmu.h"

static void put(struct qmp *qmp, const char *text)
{
	/* Commands are shorter than a socket's buffer. */
	if (write(qmp->fd, text, strlen(text)) < 0)
		qmp->fd = -1;
}

void qmp_start(struct qmp *qmp, int fd)
{
	memset(qmp, 0, sizeof(*qmp));
	qmp->fd = fd;
	put(qmp, "{\"execute\": \"qmp_capabilities\", \"id\": \"start\"}\n");
}

/* A whole line, or NULL at the deadline or when QEMU has gone. */
static char *get_line(struct qmp *qmp, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = qmp->fd, .events = POLLIN };
	char text[4096], *end, *line;
	int64_t left_ms;
	ssize_t n;

	for (;;) {
		end = qmp->in.len ? memchr(qmp->in.data, '\n', qmp->in.len) : NULL;
		if (end) {
			line = strndup(qmp->in.data, end - qmp->in.data);
			buffer_drop(&qmp->in, end + 1 - qmp->in.data);
			return line;
		}
		left_ms = ((int64_t)(deadline_ns - now_ns()) + 999999) / 1000000;
		if (left_ms <= 0 || poll(&p, 1, left_ms) <= 0)
			return NULL;
		n = read(qmp->fd, text, sizeof(text));
		if (n <= 0 && errno != EINTR && errno != EAGAIN)
			return NULL;
		if (n > 0)
			buffer_add(&qmp->in, text, n);
	}
}

json_t *qmp_ask(struct qmp *qmp, const char *command, int timeout_ms)
{
	uint64_t deadline = now_ns() + timeout_ms * 1000000ull;
	json_t *reply, *value = NULL;
	bool mine = false;
	char *line;

	put(qmp, command);
	while (!mine && qmp->fd >= 0 && (line = get_line(qmp, deadline))) {
		reply = json_loads(line, JSON_DECODE_ANY, NULL);
		free(line);
		/* Greetings, events and the first answer carry other ids. */
		mine = json_is_string(json_object_get(reply, "id")) &&
			!strcmp(json_string_value(json_object_get(reply, "id")), "ask");
		if (mine)
			value = json_incref(json_object_get(reply, "return"));
		json_decref(reply);
	}
	return value;
}
