// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Client of QEMU's monitor: a question and its answer. */
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

/*
 * Returns a whole line; or NULL at the deadline, which may have passed, or if QEMU has
 * gone.
 */
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
		if (poll(&p, 1, left_ms > 0 ? left_ms : 0) <= 0)
			return NULL;
		n = read(qmp->fd, text, sizeof(text));
		if (!n || (n < 0 && errno != EINTR && errno != EAGAIN))
			return NULL;
		if (n > 0)
			buffer_add(&qmp->in, text, n);
	}
}

/* A line after which the guest may have stopped. */
static bool may_stop(const char *line)
{
	json_t *j = json_loads(line, 0, NULL);
	const char *event = json_string_value(json_object_get(j, "event"));
	const char *id = json_string_value(json_object_get(j, "id"));
	/* Events before the first reply were not sent. */
	bool may = (event && !strcmp(event, "STOP")) || (id && !strcmp(id, "start"));

	json_decref(j);
	return may;
}

enum qmp_stop qmp_stopped(struct qmp *qmp)
{
	enum qmp_stop stop = QMP_RUNS;
	const char *status;
	json_t *reply;
	char *line;

	while (!stop && (line = get_line(qmp, 0))) {
		if (may_stop(line)) {
			reply = qmp_ask(qmp, "query-status", QMP_PATIENCE_MS);
			status = json_string_value(json_object_get(reply, "status"));
			if (status && !strcmp(status, "internal-error"))
				stop = QMP_KVM_FAILED;
			if (status && !strcmp(status, "guest-panicked"))
				stop = QMP_STOPPED_ITSELF;
			json_decref(reply);
		}
		free(line);
	}
	return stop;
}

json_t *qmp_call(struct qmp *qmp, const char *command, json_t *arguments,
		 int timeout_ms, char **error)
{
	uint64_t deadline = now_ns() + timeout_ms * 1000000ull;
	json_t *reply, *value = NULL;
	json_int_t id = ++qmp->calls;
	const char *why;
	bool mine = false;
	char *line, *text;

	text = xprintf("{\"execute\": \"%s\", \"id\": %" JSON_INTEGER_FORMAT "%s", command, id,
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
		/* Greetings and events have no id; a reply to a call that timed out
		 * carries that call's. */
		mine = json_integer_value(json_object_get(reply, "id")) == id;
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
		*error = now_ns() < deadline ? xprintf("its monitor is closed") :
			 xprintf("no answer within %d ms", timeout_ms);
	return value;
}

json_t *qmp_ask(struct qmp *qmp, const char *command, int timeout_ms)
{
	char *error;
	json_t *value = qmp_call(qmp, command, NULL, timeout_ms, &error);

	free(error);
	return value;
}
