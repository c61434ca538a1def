// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A question to QEMU's monitor and its answer. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <jansson.h>

#include "vpmu.h"

static void put(struct qmp *qmp, const char *text)
{
	/* Commands are shorter than a socket's buffer. */
	if (qmp->fd >= 0 && send(qmp->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
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

json_t *qmp_call(struct qmp *qmp, const char *command, json_t *arguments,
		 int timeout_ms, char **error)
{
	uint64_t deadline = now_ns() + timeout_ms * 1000000ull;
	json_t *reply, *value = NULL;
	const char *why = "no answer";
	bool mine = false;
	char *line, *text;

	text = xprintf("{\"execute\": \"%s\", \"id\": \"ask\"%s", command,
		       arguments ? ", \"arguments\": " : "}\n");
	put(qmp, text);
	free(text);
	if (arguments) {
		line = json_dumps(arguments, JSON_COMPACT);
		text = xprintf("%s}\n", line ? line : "{}");
		put(qmp, text);
		free(text);
		free(line);
		json_decref(arguments);
	}
	*error = NULL;
	while (!mine && qmp->fd >= 0 && (line = get_line(qmp, deadline))) {
		reply = json_loads(line, JSON_DECODE_ANY, NULL);
		free(line);
		/* Greetings, events and the first answer carry other ids. */
		mine = json_is_string(json_object_get(reply, "id")) &&
			!strcmp(json_string_value(json_object_get(reply, "id")), "ask");
		if (mine) {
			value = json_incref(json_object_get(reply, "return"));
			why = json_string_value(json_object_get(
				json_object_get(reply, "error"), "desc"));
			why = why ? why : "no reason given";
		}
		if (mine && !value)
			*error = xprintf("%s", why);
		json_decref(reply);
	}
	if (!mine)
		*error = xprintf("%s", why);
	return value;
}

json_t *qmp_ask(struct qmp *qmp, const char *command, int timeout_ms)
{
	char *error;
	json_t *value = qmp_call(qmp, command, NULL, timeout_ms, &error);

	free(error);
	return value;
}
