// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Options from a table, the help that they make, and the nearest name for a
 * typing error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "vpmu.h"

#define MAX_OPTIONS	48

/* Levenshtein's distance; words are short, so speed does not matter. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[64], above_left, above, best;
	size_t n = strnlen(b, 63);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		above_left = row[0]++;
		for (size_t j = 0; j < n; j++) {
			above = row[j + 1];
			best = above_left + (a[i] != b[j]);
			if (above + 1 < best)
				best = above + 1;
			if (row[j] + 1 < best)
				best = row[j] + 1;
			row[j + 1] = best;
			above_left = above;
		}
	}
	return row[n];
}

const char *nearest(const char *word, const char *const *candidates)
{
	const char *found = NULL;
	unsigned int best = (strlen(word) + 1) / 2 + 1, d;

	for (; *candidates; candidates++) {
		d = distance(word, *candidates);
		if (!strncmp(word, *candidates, strlen(word)))
			d = 0;
		if (d < best) {
			best = d;
			found = *candidates;
		}
	}
	return found;
}

/* The argument may be left out, and stands behind an equals sign. */
static bool optional(const struct option_def *def)
{
	return def->arg && def->arg[0] == '[';
}

static void print_help(const struct option_def *defs, const char *usage)
{
	char left[64];
	int n;

	printf("%s\n", usage);
	for (; defs->name; defs++) {
		n = defs->letter ? snprintf(left, sizeof(left), "  -%c, ", defs->letter)
				 : snprintf(left, sizeof(left), "      ");
		snprintf(left + n, sizeof(left) - n, "--%s%s%s", defs->name,
			 defs->arg && !optional(defs) ? " " : "", defs->arg ? defs->arg : "");
		printf("%-27s %s\n", left, defs->help);
	}
	printf("  -h, --help                 this\n");
}

static void unknown_option(const char *arg, const struct option_def *defs,
			   const char *verb)
{
	const char *names[MAX_OPTIONS + 1], *found = NULL;
	size_t n = 0;

	for (; defs->name && n < MAX_OPTIONS; defs++)
		names[n++] = defs->name;
	names[n] = NULL;
	if (!strncmp(arg, "--", 2)) {
		char *word = strndup(arg + 2, strcspn(arg + 2, "="));

		found = word ? nearest(word, names) : NULL;
		free(word);
	}
	if (found)
		fail(EXIT_VPMU, "unknown option '%s'; did you mean --%s? (%s --help lists them)",
		     arg, found, verb);
	fail(EXIT_VPMU, "unknown option '%s' (%s --help lists them)", arg, verb);
}

static bool repeatable(const struct option_def *def)
{
	size_t n = def->arg ? strlen(def->arg) : 0;

	return n > 3 && !strcmp(def->arg + n - 3, "...");
}

static void add_string(struct strings *s, const char *text)
{
	const char **list = realloc(s->list, (s->n + 1) * sizeof(*list));

	if (!list)
		fail(EXIT_VPMU, "no memory");
	list[s->n++] = text;
	s->list = list;
}

static void set_option(const struct option_def *def, const char *arg)
{
	if (repeatable(def))
		add_string(def->to, arg);
	else if (def->arg)
		*(const char **)def->to = arg ? arg : strdup("");
	else
		*(bool *)def->to = true;
}

int options_parse(int argc, char **argv, const struct option_def *defs,
		  const char *usage)
{
	struct option longs[MAX_OPTIONS + 2] = { { 0 } };
	char shorts[2 * MAX_OPTIONS + 4] = "+:h", *s = shorts + 3;
	char *verb = xprintf("vpmu %s", argv[0]);
	int c, n = 0, i, at;

	for (; defs[n].name; n++) {
		longs[n].name = defs[n].name;
		longs[n].has_arg = optional(&defs[n]) ? optional_argument :
				   defs[n].arg ? required_argument : no_argument;
		longs[n].val = 1000 + n;
		if (!defs[n].letter)
			continue;
		*s++ = defs[n].letter;
		if (defs[n].arg)
			*s++ = ':';
	}
	longs[n] = (struct option){ "help", no_argument, NULL, 'h' };
	opterr = 0;
	optind = 1;
	for (;;) {
		at = optind;
		c = getopt_long(argc, argv, shorts, longs, NULL);
		if (c < 0)
			break;
		if (c == 'h') {
			print_help(defs, usage);
			exit(0);
		}
		if (c == ':')
			fail(EXIT_VPMU, "option '%s' takes an argument (%s --help)",
			     argv[at], verb);
		for (i = 0; i < n; i++)
			if (c == 1000 + i || (c == defs[i].letter && c))
				break;
		if (c == '?' || i == n)
			unknown_option(argv[at], defs, verb);
		set_option(&defs[i], optarg);
	}
	free(verb);
	return optind;
}

long option_number(const char *name, const char *text, long min, long max)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < min || n > max)
		fail(EXIT_VPMU, "--%s %s: a number from %ld to %ld is needed",
		     name, text, min, max);
	return n;
}

uint64_t option_size(const char *name, const char *text)
{
	static const char suffixes[] = "KMGT";
	unsigned int shift = 20;
	const char *s;
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (end != text && *end) {
		s = strchr(suffixes, *end & ~0x20);
		shift = s ? 10 * (s - suffixes + 1) : 64;
		end++;
		if (*end == 'i')
			end++;
		if (*end == 'B')
			end++;
	}
	if (errno || end == text || *end || shift > 40 || *text == '-' ||
	    n > UINT64_MAX >> (shift + 1))
		fail(EXIT_VPMU, "--%s %s: a size such as 512M or 2G is needed",
		     name, text);
	return n << shift;
}
