// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * vpmu timeline: a trace as one page that only needs a browser. The events that trace.c
 * wrote, one per line, become tables of numbers, which timeline.html draws.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>

#include "vpmu.h"

static const char usage[] =
"Usage: vpmu timeline [options] TRACE\n"
"\n"
"Draws what vpmu run --trace wrote: who owned each counter when, what the guest\n"
"lost meanwhile, its interrupts and its exits by kind. The page is one file and\n"
"needs no network; it zooms (wheel, + and -), moves (drag, arrows) and explains\n"
"what the pointer is on.\n"
"\n"
"  vpmu run --trace trace.json -- perf stat ./program\n"
"  vpmu timeline trace.json -o timeline.html\n";

#define PAGE	"tools/timeline.html"
#define MARK	"@TRACE@"	/* place of the data in the page */
#define LINE	(1 << 20)	/* bytes of the longest line that is read */

/* Rows of the page's tables, in JSON; timeline.html describes them. */
struct tables {
	struct buffer tracks, spans, moments, exits, totals;
	json_t *names;		/* maps names to their numbers */
	struct buffer name_list;
	const char *path;	/* path of the trace */
	size_t line;
};

static void wrong(const struct tables *t, const char *found) __attribute__((noreturn));
static void wrong(const struct tables *t, const char *found)
{
	fail(EXIT_VPMU, "%s:%zu: found %s, needed a trace as vpmu run --trace FILE writes it",
	     t->path, t->line, found);
}

static void row(struct buffer *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void row(struct buffer *b, const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		fail(EXIT_VPMU, "no memory");
	va_end(ap);
	buffer_print(b, "%s%s", b->len ? ",\n" : "", text);
	free(text);
}

/* In a page, where "</script>" and "<!--" would end or change it. */
static char *quoted(json_t *j)
{
	char *text = json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
	struct buffer b = { 0 };

	if (!text)
		fail(EXIT_VPMU, "no memory");
	buffer_string(&b, "");
	for (const char *s = text; *s; s++)
		buffer_add(&b, *s == '<' ? "\\u003c" : s, *s == '<' ? 6 : 1);
	free(text);
	return b.data;
}

static int name_number(struct tables *t, json_t *name)
{
	json_t *known = json_object_get(t->names, json_string_value(name));
	int number = json_object_size(t->names);
	char *text;

	if (known)
		return json_integer_value(known);
	json_object_set_new(t->names, json_string_value(name), json_integer(number));
	text = quoted(name);
	row(&t->name_list, "%s", text);
	free(text);
	return number;
}

static double number(struct tables *t, json_t *event, const char *key)
{
	json_t *j = json_object_get(event, key);

	if (!json_is_number(j))
		wrong(t, "an event without a number where there is one");
	return json_number_value(j);
}

static bool is_named(json_t *event, const char *name)
{
	return !strcmp(json_string_value(json_object_get(event, "name")), name);
}

static void take_track(struct tables *t, json_t *event, int pid)
{
	json_t *name = json_object_get(json_object_get(event, "args"), "name");
	bool process = is_named(event, "process_name");

	if (!process && !is_named(event, "thread_name"))
		return;
	if (!json_is_string(name))
		wrong(t, "a track without a name");
	row(&t->tracks, "[%d,%d,%d]", pid, process ? 0 : (int)number(t, event, "tid"),
	    name_number(t, name));
}

/* Exits are moments and frequent: their register and value are left out. */
static void take_moment(struct tables *t, json_t *event, int pid)
{
	static const char *const exits[] = { "rdmsr", "wrmsr", "rdpmc", "hypercall" };
	json_t *j = json_object_get(event, "name");
	const char *name = json_string_value(j);
	char *args;

	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
		if (!strncmp(name, exits[i], strlen(exits[i]))) {
			row(&t->exits, "[%d,%zu,%.3f,%d]", pid, i, number(t, event, "ts"),
			    name_number(t, j));
			return;
		}
	args = quoted(json_object_get(event, "args"));
	row(&t->moments, "[%d,%.3f,%d,%s]", pid, number(t, event, "ts"), name_number(t, j),
	    args);
	free(args);
}

static void take_event(struct tables *t, json_t *event)
{
	const char *phase = json_string_value(json_object_get(event, "ph"));
	json_t *name = json_object_get(event, "name"), *args = json_object_get(event, "args");
	char *text;
	int pid;

	if (!phase || !json_is_string(name) || !json_is_object(args))
		wrong(t, "an event without phase, name and arguments");
	pid = number(t, event, "pid");
	switch (*phase) {
	case 'M':
		take_track(t, event, pid);
		break;
	case 'X':
		text = quoted(args);
		row(&t->spans, "[%d,%d,%.3f,%.3f,%d,%s]", pid, (int)number(t, event, "tid"),
		    number(t, event, "ts"), number(t, event, "dur"),
		    name_number(t, name), text);
		free(text);
		break;
	case 'i':
		take_moment(t, event, pid);
		break;
	case 'C':
		text = quoted(args);
		row(&t->totals, "[%d,%s]", pid, text);
		free(text);
		break;
	}
}

static void read_trace(struct tables *t, FILE *in)
{
	char *line = xalloc(LINE);
	json_t *event;
	size_t len;

	while (t->line++, fgets(line, LINE, in)) {
		len = strcspn(line, "\n");
		if (!len || (*line == ']' && t->line > 1))
			continue;
		if (t->line == 1) {
			if (!strstr(line, "\"traceEvents\":["))
				wrong(t, "something else");
			continue;
		}
		len -= line[len - 1] == ',';
		event = json_loadb(line, len, 0, NULL);
		if (!json_is_object(event))
			wrong(t, "no event");
		take_event(t, event);
		json_decref(event);
	}
	if (ferror(in))
		fail(EXIT_VPMU, "%s: %s", t->path, strerror(errno));
	free(line);
	if (!t->tracks.len)
		wrong(t, "no event at all");
}

static void write_table(FILE *out, const char *name, const struct buffer *b)
{
	fprintf(out, "%s\"%s\":[\n%s]", *name == 'n' ? "" : ",\n", name, b->len ? b->data : "");
}

static void write_page(FILE *out, const char *page, const struct tables *t)
{
	const char *mark = strstr(page, MARK);

	if (!mark)
		fail(EXIT_VPMU, "%s has no %s", PAGE, MARK);
	fwrite(page, mark - page, 1, out);
	fprintf(out, "{");
	write_table(out, "names", &t->name_list);
	write_table(out, "tracks", &t->tracks);
	write_table(out, "spans", &t->spans);
	write_table(out, "moments", &t->moments);
	write_table(out, "exits", &t->exits);
	write_table(out, "totals", &t->totals);
	fprintf(out, "}%s", mark + strlen(MARK));
}

static char *read_page(void)
{
	struct buffer b = { 0 };
	char text[4096], *path;
	size_t n;
	FILE *in;

	in = source_file(PAGE, &path) ? fopen(path, "re") : NULL;
	if (!in)
		fail(EXIT_VPMU, "%s is missing; make install puts it beside vpmu", PAGE);
	while ((n = fread(text, 1, sizeof(text), in)) > 0)
		buffer_add(&b, text, n);
	buffer_add(&b, "", 1);
	fclose(in);
	free(path);
	return b.data;
}

int verb_timeline(int argc, char **argv)
{
	const char *output = NULL;
	const struct option_def defs[] = {
		{ "output", 'o', "FILE", "where the page goes (standard output)", &output },
		{ NULL, 0, NULL, NULL, NULL },
	};
	int at = options_parse(argc, argv, defs, usage);
	struct tables t = { .names = json_object() };
	FILE *in, *out = stdout;
	char *page;

	/* Options may follow the trace, as users type them. */
	if (at < argc) {
		t.path = argv[at];
		argv[at] = argv[0];
		at += options_parse(argc - at, argv + at, defs, usage);
	}
	if (!t.path || at < argc)
		fail(EXIT_VPMU, "timeline takes one trace (vpmu timeline --help)");
	if (!output && isatty(STDOUT_FILENO))
		fail(EXIT_VPMU, "the page is not written to a terminal: add -o FILE.html");
	in = fopen(t.path, "re");
	if (!in)
		fail(EXIT_VPMU, "%s: %s; vpmu run --trace FILE writes one", t.path,
		     strerror(errno));
	page = read_page();
	read_trace(&t, in);
	fclose(in);
	if (output)
		out = fopen(output, "we");
	if (!out)
		fail(EXIT_VPMU, "%s: %s", output, strerror(errno));
	write_page(out, page, &t);
	if (fflush(out) || ferror(out))
		fail(EXIT_VPMU, "%s: %s", output ? output : "standard output", strerror(errno));
	return 0;
}
