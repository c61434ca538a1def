// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Reads what perf stat writes: its default, which names the program; with -x, or -j, which do
 * not, but vpmu bench does by a comment. A file may have several runs, by perf stat --append.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "vpmu.h"

struct reader {
	struct counts *to;
	size_t line;		/* its number */
	char *program;		/* of the rows that follow; NULL: the file does not say */
};

static _Noreturn void refuse(const struct reader *r, const char *found, int bytes,
			     const char *needed)
{
	fail(EXIT_VPMU, "%s:%zu: found %s%.*s%s, needed %s", r->to->path, r->line,
	     bytes ? "'" : "", bytes ? bytes : (int)strlen(found), found, bytes ? "'" : "", needed);
}

const struct count *counts_find(const struct counts *c, const char *name, unsigned int turn)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i].turn == turn && !strcmp(c->list[i].name, name))
			return &c->list[i];
	return NULL;
}

/* Add a row; its name is @event, of @bytes. */
static void add(struct reader *r, struct count one, const char *event, size_t bytes)
{
	struct counts *c = r->to;

	one.event = xprintf("%.*s", (int)bytes, event);
	one.program = r->program ? xprintf("%s", r->program) : NULL;
	one.name = one.program ? xprintf("%s: %s", one.program, one.event) : one.event;
	while (counts_find(c, one.name, one.turn))
		one.turn++;
	c->list = reallocarray(c->list, c->n + 1, sizeof(*c->list));
	if (!c->list)
		fail(EXIT_VPMU, "out of memory");
	c->list[c->n++] = one;
}

/* ---- perf stat -x, */

/* Bytes of an event's name, in which slashes may enclose commas: "cpu/event=1,umask=2/u". */
static size_t name_bytes(const char *text)
{
	size_t plain = strcspn(text, ",/\n");
	const char *end = text[plain] == '/' ? strchr(text + plain + 1, '/') : NULL;

	return end ? (size_t)(end - text) + strcspn(end, ",\n") : strcspn(text, ",\n");
}

/* Read the share from "1000,66.67,..." or, with perf stat -r, "0.05%,1000,66.67,...". */
static bool take_share(struct count *one, const char *text)
{
	char *end;

	if (text[strcspn(text, ",%\n")] == '%')
		text = strchrnul(text, ',') + 1;
	text = strchr(text, ',');
	one->share = text ? strtod(text + 1, &end) : 0;
	return text && end != text + 1;
}

/* "41020005,,instructions:u,1000,100.00,,"; "<not counted>,,cycles,0,100.00,," */
static void take_fields(struct reader *r, const char *line)
{
	const char *unit = strchr(line, ','), *event = unit ? strchr(unit + 1, ',') : NULL;
	size_t bytes = event ? name_bytes(event + 1) : 0;
	struct count one = { 0 };
	char *end;

	if (!bytes || event[bytes + 1] != ',')
		refuse(r, "no count", 0, "what perf stat -x, writes");
	if (event - unit > 1 && *line != '<')
		return; /* a time, in msec */
	errno = 0;
	one.value = strtoull(line, &end, 10);
	one.counted = *line >= '0' && *line <= '9' && end == unit && !errno;
	if (!one.counted && *line != '<')
		refuse(r, line, unit - line, "a whole number");
	if (one.counted && !take_share(&one, event + bytes + 2))
		refuse(r, "no share of the time after the event", 0, "what perf stat -x, writes");
	add(r, one, event + 1, bytes);
}

/* ---- perf stat -j */

/* {"counter-value" : "41020005.000000", "event" : "instructions:u", "pcnt-running" : 100.00} */
static void take_object(struct reader *r, const char *line)
{
	json_error_t error;
	json_t *row = json_loads(line, 0, &error);
	const char *value = json_string_value(json_object_get(row, "counter-value"));
	const char *event = json_string_value(json_object_get(row, "event")), *unit;
	const json_t *share = json_object_get(row, "pcnt-running");
	struct count one = { .share = json_number_value(share) };
	char *end;

	if (!row)
		refuse(r, error.text, 0, "what perf stat -j writes");
	unit = json_string_value(json_object_get(row, "unit"));
	/* A metric that has a line of its own; a time, in msec. */
	if (!value || !event || (unit && *unit && *value != '<')) {
		json_decref(row);
		return;
	}
	errno = 0;
	one.value = strtoull(value, &end, 10);
	one.counted = isdigit((unsigned char)*value) && !errno && !end[strspn(end, ".0")];
	if (!one.counted && *value != '<')
		refuse(r, value, (int)strlen(value), "a whole number");
	if (one.counted && !json_is_number(share))
		refuse(r, "no pcnt-running", 0, "what perf stat -j writes");
	add(r, one, event, strlen(event));
	json_decref(row);
}

/* ---- the default output */

/* A number in groups of three, as locales write them. False: it is none, or has a fraction. */
static bool grouped(const char *text, size_t bytes, uint64_t *value)
{
	size_t digits = 0;

	*value = 0;
	for (size_t i = 0; i < bytes; i++) {
		if (isdigit((unsigned char)text[i])) {
			digits++;
			if (__builtin_mul_overflow(*value, 10, value) ||
			    __builtin_add_overflow(*value, text[i] - '0', value))
				return false;
		} else if (i && isdigit((unsigned char)text[i - 1])) {
			if (bytes - i < 4 || (i > 3 && digits != 3) || digits > 3)
				return false;
			digits = 0;
		}
	}
	return digits == bytes || digits == 3;
}

/* The share is in brackets at the end, "(66.67%)"; none if it is all of the time. */
static double share_of(const char *line)
{
	const char *open = strrchr(line, '(');
	char *end = NULL;
	double share = open ? strtod(open + 1, &end) : 0;

	return open && end > open + 1 && !strncmp(end, "%)", 2) ? share : 100;
}

/* "   41,020,005      instructions:u     #    1.00  insn per cycle     (66.67%)" */
static void take_words(struct reader *r, const char *line)
{
	static const char title[] = "Performance counter stats for ", none[] = "<not ";
	const char *word = line + strspn(line, " "), *event, *end;
	struct count one = { .share = share_of(line) };

	if (!strncmp(word, title, sizeof(title) - 1)) {
		word += sizeof(title) - 1;
		end = *word == '\'' ? strrchr(word, '\'') : strrchr(word, ':');
		if (*word == '\'')
			word++;
		if (!end || end < word)
			refuse(r, "a title without a program", 0, "what perf stat writes");
		free(r->program);
		r->program = xprintf("%.*s", (int)(end - word), word);
		return;
	}
	if (!strncmp(word, none, sizeof(none) - 1)) {
		event = strchrnul(word, '>');
		event += *event != '\0';
	} else {
		event = word + strcspn(word, " \n");
		one.counted = isdigit((unsigned char)*word) &&
			      grouped(word, event - word, &one.value);
		if (!one.counted)
			return; /* times, metrics, blank lines */
	}
	event += strspn(event, " ");
	end = event + strcspn(event, " \n");
	if (end == event)
		refuse(r, "no event after the count", 0, "what perf stat writes");
	add(r, one, event, end - event);
}

/* ---- the file */

static void read_rows(struct reader *r, FILE *in)
{
	bool words = false;
	size_t size = 0;
	char *line = NULL;

	while (getline(&line, &size, in) > 0) {
		r->line++;
		if (!strncmp(line, COUNTS_TITLE, strlen(COUNTS_TITLE))) {
			const char *title = line + strlen(COUNTS_TITLE);

			free(r->program);
			r->program = xprintf("%.*s", (int)strcspn(title, "\n"), title);
		}
		words |= strstr(line, "Performance counter stats for ") != NULL;
		if (*line == '#' || *line == '\n')
			continue;
		if (words)
			take_words(r, line);
		else if (*line == '{')
			take_object(r, line);
		else
			take_fields(r, line);
	}
	if (ferror(in))
		fail(EXIT_VPMU, "%s: %s", r->to->path, strerror(errno));
	free(line);
}

void counts_read(struct counts *c, const char *path)
{
	struct reader r = { .to = c };
	FILE *in = fopen(path, "re");

	c->path = path;
	if (!in)
		fail(EXIT_VPMU, "%s: %s; perf stat -x, -o %s writes one", path, strerror(errno),
		     path);
	read_rows(&r, in);
	fclose(in);
	free(r.program);
	if (!c->n)
		fail(EXIT_VPMU, "%s: found no count, needed what perf stat writes", path);
}
