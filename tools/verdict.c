// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Compares counts with a baseline, and writes what came of it in several forms. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"
#include "vpmu.h"

/* This is what became of a row. */
struct verdict {
	const struct count *base, *now;	/* either may be NULL */
	char *why;			/* it failed; or NULL */
};

/*
 * Return the reason why @now is a failure, as a new string, or NULL. @allow is in
 * thousandths of a percent.
 */
static char *judge(const struct count *base, const struct count *now, uint64_t allow)
{
	uint64_t more;

	if (!base)
		return xprintf("a further row of this name, of which the baseline has none");
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
	if (!base->value)
		return xprintf("grew by %" PRIu64 ", from 0", more);
	return xprintf("grew by %" PRIu64 ", from %" PRIu64 " to %" PRIu64 " (%.4g %%, of which "
		       "%g %% is allowed)", more, base->value, now->value,
		       100.0 * more / base->value, allow / 1000.0);
}

/* Rows of the baseline, and then those that only @now has. Returns their number. */
static size_t compare(const struct counts *base, const struct counts *now, uint64_t allow,
		      struct verdict *v)
{
	size_t n = 0;

	for (const struct count *b = base->list; b < base->list + base->n; b++, n++) {
		v[n].base = b;
		v[n].now = counts_find(now, b->name, b->turn);
		v[n].why = judge(b, v[n].now, allow);
	}
	for (const struct count *c = now->list; c < now->list + now->n; c++) {
		if (counts_find(base, c->name, c->turn))
			continue;
		v[n].now = c;
		/* An event that the baseline does not have is compared with nothing. */
		if (counts_find(base, c->name, 0))
			v[n].why = judge(NULL, c, allow);
		n++;
	}
	return n;
}

static char *name_of(const struct verdict *v)
{
	const struct count *c = v->base ? v->base : v->now;

	return c->turn ? xprintf("%s, row %u", c->name, c->turn + 1) : xprintf("%s", c->name);
}

/* All forms are written from this. */
struct result {
	const struct verdict *row;
	size_t n, failed;
	struct growths functions;	/* those that grew, most first */
};
#define MOST_FUNCTIONS 10

/* ---- forms */

static void write_lines(FILE *out, const struct result *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct verdict *v = &r->row[i];
		char *name = name_of(v);

		if (v->why)
			fprintf(out, "%-8s %s: %s\n", "FAIL", name, v->why);
		else if (!v->base && v->now->counted)
			fprintf(out, "%-8s %s: %" PRIu64 ", which the baseline does not have\n",
				"new", name, v->now->value);
		else if (!v->base)
			fprintf(out, "%-8s %s: not counted\n", "new", name);
		else
			fprintf(out, "%-8s %s: %" PRIu64 "%s\n", "ok", name, v->now->value,
				v->now->value < v->base->value ?
				"; improved: commit a new baseline to lock this in" : "");
		free(name);
	}
	for (size_t i = 0; i < r->functions.n && i < MOST_FUNCTIONS; i++) {
		const struct growth *f = &r->functions.list[i];

		fprintf(out, "%-8s %s: %s, by %" PRIu64 ", from %" PRIu64 " to %" PRIu64 "\n",
			"grew", f->count, f->function, f->now - f->base, f->base, f->now);
	}
}

static void escaped(FILE *out, const char *text, const char *special, const char *form)
{
	for (; *text; text++)
		if (strchr(special, *text))
			fprintf(out, form, *text);
		else
			putc(*text, out);
}

/* JUnit's XML. */
static void write_junit(FILE *out, const struct result *r)
{
	static const char special[] = "<>&\"\n";

	fprintf(out, "<testsuite name=\"vpmu\" tests=\"%zu\" failures=\"%zu\">\n", r->n, r->failed);
	for (size_t i = 0; i < r->n; i++) {
		char *name = name_of(&r->row[i]);

		fputs("  <testcase classname=\"vpmu\" name=\"", out);
		escaped(out, name, special, "&#%d;");
		if (r->row[i].why) {
			fputs("\"><failure message=\"", out);
			escaped(out, r->row[i].why, special, "&#%d;");
			fputs("\"/></testcase>\n", out);
		} else {
			fputs("\"/>\n", out);
		}
		free(name);
	}
	fputs("</testsuite>\n", out);
}

static void markdown_count(FILE *out, const struct count *c)
{
	if (c && c->counted)
		fprintf(out, " %" PRIu64 " |", c->value);
	else
		fputs(c ? " not counted |" : " |", out);
}

/* A table for a comment of a pull request. */
static void write_markdown(FILE *out, const struct result *r)
{
	static const char special[] = "|<>&\n`*_[]\\";

	fputs("| | count | baseline | now | |\n|---|---|---:|---:|---|\n", out);
	for (size_t i = 0; i < r->n; i++) {
		const struct verdict *v = &r->row[i];
		char *name = name_of(v);

		fprintf(out, "| %s | ", v->why ? ":x:" : v->base ? ":white_check_mark:" : "new");
		escaped(out, name, special, "&#%d;");
		fputs(" |", out);
		markdown_count(out, v->base);
		markdown_count(out, v->now);
		putc(' ', out);
		escaped(out, v->why ? v->why : "", special, "&#%d;");
		fputs(" |\n", out);
		free(name);
	}
	if (!r->functions.n)
		return;
	fputs("\n| function that grew | baseline | now | by |\n|---|---:|---:|---:|\n", out);
	for (size_t i = 0; i < r->functions.n && i < MOST_FUNCTIONS; i++) {
		const struct growth *f = &r->functions.list[i];

		fputs("| ", out);
		escaped(out, f->count, special, "&#%d;");
		fputs(": ", out);
		escaped(out, f->function, special, "&#%d;");
		fprintf(out, " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " |\n", f->base, f->now,
			f->now - f->base);
	}
}

/* Counts are strings: they may have 64 bits, and JSON's readers take numbers of 53. */
static json_t *json_count(const struct count *c)
{
	char text[24];

	if (!c || !c->counted)
		return json_null();
	snprintf(text, sizeof(text), "%" PRIu64, c->value);
	return json_string(text);
}

static void write_json(FILE *out, const struct result *r)
{
	json_t *rows = json_array(), *functions = json_array(), *all;

	for (size_t i = 0; i < r->n; i++) {
		const struct verdict *v = &r->row[i];
		char *name = name_of(v);

		json_array_append_new(rows, json_pack("{s:s, s:s, s:o, s:o, s:s?}", "name", name,
			"verdict", v->why ? "fail" : v->base ? "ok" : "new",
			"baseline", json_count(v->base), "now", json_count(v->now),
			"why", v->why));
		free(name);
	}
	for (size_t i = 0; i < r->functions.n; i++) {
		const struct growth *f = &r->functions.list[i];

		json_array_append_new(functions, json_pack("{s:s, s:s, s:I, s:I}", "count",
			f->count, "name", f->function, "baseline", (json_int_t)f->base,
			"now", (json_int_t)f->now));
	}
	all = json_pack("{s:b, s:o, s:o}", "ok", !r->failed, "counts", rows, "functions",
			functions);
	json_dumpf(all, out, JSON_INDENT(1));
	putc('\n', out);
	json_decref(all);
}

/* The function that grew most of what a row counts; NULL: not known. */
static const struct growth *function_of(const struct result *r, const char *name)
{
	for (size_t i = 0; i < r->functions.n; i++)
		if (!strcmp(r->functions.list[i].count, name))
			return &r->functions.list[i];
	return NULL;
}

/* GitHub's annotations, which it takes from the job's output. */
static void write_github(FILE *out, const struct result *r)
{
	for (size_t i = 0; i < r->n; i++) {
		static const char special[] = "%\r\n";
		char *name = name_of(&r->row[i]);
		const struct growth *f = function_of(r, name);

		if (r->row[i].why) {
			fputs("::error title=vpmu::", out);
			escaped(out, name, special, "%%%02X");
			fputs(": ", out);
			escaped(out, r->row[i].why, special, "%%%02X");
			if (f) {
				fputs("; ", out);
				escaped(out, f->function, special, "%%%02X");
				fprintf(out, " grew by %" PRIu64, f->now - f->base);
			}
			putc('\n', out);
		}
		free(name);
	}
}

static void write_to(const char *option, const char *path, const struct result *r,
		     void (*form)(FILE *out, const struct result *r))
{
	FILE *out;

	if (!path)
		return;
	out = fopen(path, "we");
	if (out)
		form(out, r);
	if (!out || ferror(out) | fclose(out))
		fail(EXIT_VPMU, "--%s %s: %s", option, path, strerror(errno));
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

int verdict(const struct counts *base, const struct counts *now, const struct verdict_options *o)
{
	uint64_t most = allowance(o->allow ? o->allow : "0");
	struct verdict *row = xalloc((base->n + now->n) * sizeof(*row));
	const struct count **grew = xalloc((base->n + now->n) * sizeof(const struct count *));
	struct result r = { .row = row };
	size_t n_grew = 0;

	r.n = compare(base, now, most, row);
	for (size_t i = 0; i < r.n; i++) {
		r.failed += row[i].why != NULL;
		if (row[i].why && row[i].base && row[i].now)
			grew[n_grew++] = row[i].now;
	}
	if (n_grew && o->name_functions) {
		o->name_functions(o, grew, n_grew, &r.functions);
		growth_sum(&r.functions);
		growth_leave_grown(&r.functions);
	}
	write_lines(stdout, &r);
	if (o->github)
		write_github(stdout, &r);
	write_to("junit", o->junit, &r, write_junit);
	write_to("markdown", o->markdown, &r, write_markdown);
	write_to("json", o->json, &r, write_json);
	return fflush(stdout) ? EXIT_VPMU : r.failed != 0;
}
