// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu compare: compares the counts of perf stat -x, with a baseline, for CI. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "vpmu.h"

static const char usage[] =
"Usage: vpmu compare [options] BASELINE NOW\n"
"\n"
"Compares counts, of which each file has what perf stat -x, -o FILE wrote. Every event\n"
"of BASELINE has to be in NOW, counted all of the time, and may not have grown. Exit\n"
"status 1: something has, or is no count.\n"
"\n"
"  vpmu run -- perf stat -x, -e instructions:u -o now.csv ./program\n"
"  vpmu compare baseline.csv now.csv\n";

struct count {
	char *event;
	uint64_t value;
	bool counted;
	double share;		/* part of its time that it was on a counter, in percent */
};
struct counts {
	const char *path;
	struct count list[64];
	size_t n;
};

static const struct count *find(const struct counts *c, const char *event);

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
static void take_line(struct counts *c, const char *line, size_t number)
{
	const char *unit = strchr(line, ','), *event = unit ? strchr(unit + 1, ',') : NULL;
	struct count *one = &c->list[c->n];
	size_t bytes = event ? name_bytes(event + 1) : 0;
	char *end;

	if (!bytes || event[bytes + 1] != ',')
		fail(EXIT_VPMU, "%s:%zu: found no count, needed what perf stat -x, writes", c->path,
		     number);
	if (c->n == sizeof(c->list) / sizeof(c->list[0]))
		fail(EXIT_VPMU, "%s: more than %zu events", c->path, c->n);
	errno = 0;
	one->value = strtoull(line, &end, 10);
	one->counted = *line >= '0' && *line <= '9' && end == unit && !errno;
	if (!one->counted && *line != '<')
		fail(EXIT_VPMU, "%s:%zu: found '%.*s', needed a whole number", c->path, number,
		     (int)(unit - line), line);
	if (one->counted && !take_share(one, event + bytes + 2))
		fail(EXIT_VPMU, "%s:%zu: found no share of the time after the event, needed "
		     "what perf stat -x, writes", c->path, number);
	one->event = strndup(event + 1, bytes);
	if (find(c, one->event))
		fail(EXIT_VPMU, "%s:%zu: found a second row of %s, needed one program's counts "
		     "in each file", c->path, number, one->event);
	c->n++;
}

static void read_counts(struct counts *c, const char *path)
{
	char *line = NULL;
	size_t size = 0, number = 0;
	FILE *in = fopen(path, "re");

	c->path = path;
	if (!in)
		fail(EXIT_VPMU, "%s: %s; perf stat -x, -o %s writes one", path,
		     strerror(errno), path);
	while (getline(&line, &size, in) > 0) {
		number++;
		if (*line != '#' && *line != '\n')
			take_line(c, line, number);
	}
	free(line);
	fclose(in);
	if (!c->n)
		fail(EXIT_VPMU, "%s: found no count, needed what perf stat -x, writes", path);
}

static const struct count *find(const struct counts *c, const char *event)
{
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->list[i].event, event))
			return &c->list[i];
	return NULL;
}

/*
 * Return the reason why @now is a failure, as a new string, or NULL. @allow is in
 * thousandths of a percent.
 */
static char *judge(const struct count *base, const struct count *now, uint64_t allow)
{
	uint64_t more;

	if (!base->counted)
		return xprintf("not counted in the baseline");
	if (!(base->share >= 100))
		return xprintf("an estimate in the baseline, counted for %.2f %% of the time",
			       base->share);
	if (!now)
		return xprintf("missing");
	if (!now->counted)
		return xprintf("not counted");
	if (!(now->share >= 100))
		return xprintf("an estimate, counted for %.2f %% of the time", now->share);
	/* perf prints 0 for an event that the PMU does not count. */
	if (!now->value && base->value)
		return xprintf("0, from %" PRIu64 ": if vpmu run does not name it as not "
			       "counted, commit a new baseline", base->value);
	if (now->value <= base->value)
		return NULL;
	more = now->value - base->value;
	if (more <= (unsigned __int128)base->value * allow / 100000)
		return NULL;
	return xprintf("grew by %" PRIu64 ", from %" PRIu64 " to %" PRIu64, more, base->value,
		       now->value);
}

static void xml_text(FILE *out, const char *text)
{
	for (; *text; text++)
		if (strchr("<>&\"", *text))
			fprintf(out, "&#%d;", *text);
		else
			putc(*text, out);
}

static void junit_case(FILE *out, const char *event, const char *why)
{
	fputs("  <testcase classname=\"vpmu\" name=\"", out);
	xml_text(out, event);
	fputs(why ? "\"><failure message=\"" : "\"/>\n", out);
	if (!why)
		return;
	xml_text(out, why);
	fputs("\"/></testcase>\n", out);
}

/* "0.5" percent in thousandths of one. */
static uint64_t allowance(const char *text)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || *end || !(percent >= 0 && percent <= 1000))
		fail(EXIT_VPMU, "--allow %s: a percentage from 0 to 1000 is needed", text);
	return percent * 1000 + 0.5;
}

int verb_compare(int argc, char **argv)
{
	const char *allow = "0", *junit = NULL;
	const struct option_def defs[] = {
		{ "allow", 0, "PERCENT", "how much a count may grow (0)", &allow },
		{ "junit", 0, "FILE", "write the result as JUnit's XML, too", &junit },
		{ NULL, 0, NULL, NULL, NULL },
	};
	int at = options_parse(argc, argv, defs, usage);
	static struct counts base, now;
	size_t failed = 0;
	FILE *out = NULL;
	uint64_t most;

	if (argc - at != 2)
		fail(EXIT_VPMU, "compare takes a baseline and what is to be compared with it "
		     "(vpmu compare --help)");
	most = allowance(allow);
	read_counts(&base, argv[at]);
	read_counts(&now, argv[at + 1]);
	if (junit) {
		out = fopen(junit, "we");
		if (!out)
			fail(EXIT_VPMU, "--junit %s: %s", junit, strerror(errno));
		fprintf(out, "<testsuite name=\"vpmu\" tests=\"%zu\">\n", base.n);
	}
	for (size_t i = 0; i < base.n; i++) {
		const struct count *b = &base.list[i], *n = find(&now, b->event);
		char *why = judge(b, n, most);

		printf("%-8s %s: %s", why ? "FAIL" : "ok", b->event, why ? why : "");
		if (!why)
			printf("%" PRIu64 "%s", n->value, n->value < b->value ?
			       ", less than before: a new baseline would hold it there" : "");
		putchar('\n');
		if (out)
			junit_case(out, b->event, why);
		failed += why != NULL;
		free(why);
	}
	if (out) {
		fputs("</testsuite>\n", out);
		if (fclose(out))
			fail(EXIT_VPMU, "--junit %s: %s", junit, strerror(errno));
	}
	return fflush(stdout) ? EXIT_VPMU : failed != 0;
}
