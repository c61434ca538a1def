// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * vpmu flame: call chains as one picture. Each box is a function in the place where it was
 * called; it is as wide as the sum of the periods of the samples that were taken in it and in
 * what it called.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "growth.h"
#include "vpmu.h"

static const char usage[] =
"Usage: vpmu flame [options] PERF.DATA\n"
"\n"
"Draws the call chains that perf record -g wrote as a flame graph: one picture in SVG, for\n"
"any browser, without a script. The pointer shows a box's function, sum and share; blue\n"
"functions are the kernel's.\n"
"\n"
"  vpmu run -- perf record -g -o p.data ./program\n"
"  vpmu flame -o flame.svg p.data\n";

#define DEEPEST		1024		/* functions of a call chain */
#define PERF_DEEPEST	"1025"		/* one more: perf leaves out the rest silently */
#define MAX_BYTES	(256u << 20)	/* memory for the boxes */
#define MAX_NAME	4096		/* bytes of a function's name */
#define MAX_COMM	15		/* bytes of a thread's name */
#define HEAD		"^(.*[^ ]|) +([0-9]+) +(.+): *$"

#define WIDTH		1200.0		/* pixels */
#define LEAST		0.1		/* narrower boxes are left out */
#define ROW		16
#define TOP		32		/* height of the heading */
#define LETTER		7.3		/* width of a character */
#define STYLE "<style>text { font: 12px monospace; fill: #000; pointer-events: none }\n" \
	"svg > svg:hover rect { stroke: #000; stroke-width: 2 } .ground { fill: #fff }\n" \
	"@media (prefers-color-scheme: dark) { :root { background: #15171a }\n" \
	".ground { fill: #15171a } .title { fill: #e6e6e6 } }</style>\n" \
	"<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n"

struct box {
	struct box *parent;	/* the one below it, or NULL */
	char *name;
	uint64_t sum;
	uint64_t at;		/* sum of all that is left of it */
	uint64_t taken;		/* sum of the boxes that lie on it so far */
	uint32_t number, depth;
	bool kernel;
};

struct flame {
	const char *path;
	const char *wanted;	/* event of --event, or NULL */
	char *event;		/* event of the samples */
	void *tree;		/* the boxes, for tsearch() */
	struct box **box;
	size_t n, room, bytes;
	regex_t head;		/* matches a sample's first line */
};

struct sample {
	char *comm, *event;	/* NULL: its first line is still to come */
	uint64_t period;
	char *function[DEEPEST];	/* the innermost is the first */
	bool kernel[DEEPEST];
	size_t n;
};

/* A box comes after the one that it lies on, which has a lower number. */
static int by_place(const void *a, const void *b)
{
	const struct box *x = a, *y = b;
	uint32_t below_x = x->parent ? x->parent->number + 1 : 0;
	uint32_t below_y = y->parent ? y->parent->number + 1 : 0;

	return below_x != below_y ? (below_x < below_y ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_place_of(const void *a, const void *b)
{
	return by_place(*(struct box *const *)a, *(struct box *const *)b);
}

static struct box *new_box(struct flame *f, const struct box *key)
{
	struct box *box = xalloc(sizeof(*box));

	f->bytes += strlen(key->name) + 2 * sizeof(*box);
	if (f->bytes > MAX_BYTES)
		fail(EXIT_VPMU, "%s: found call chains of more than %u MiB, needed fewer samples: "
		     "perf record -c with a longer period", f->path, MAX_BYTES >> 20);
	if (f->n == f->room) {
		f->room = 2 * f->room + 1024;
		f->box = reallocarray(f->box, f->room, sizeof(struct box *));
	}
	*box = *key;
	box->name = xprintf("%s", key->name);
	box->number = f->n;
	if (!f->box || !tsearch(box, &f->tree, by_place))
		fail(EXIT_VPMU, "out of memory");
	return f->box[f->n++] = box;
}

static struct box *add(struct flame *f, struct box *parent, char *name, bool kernel,
		       uint64_t period)
{
	struct box key = { .parent = parent, .name = name, .kernel = kernel,
			   .depth = parent ? parent->depth + 1 : 0 };
	struct box **found = tfind(&key, &f->tree, by_place);
	struct box *box = found ? *found : new_box(f, &key);

	if (__builtin_add_overflow(box->sum, period, &box->sum))
		fail(EXIT_VPMU, "%s: found periods whose sum exceeds 64 bits", f->path);
	return box;
}

static void forget(struct sample *s)
{
	while (s->n)
		free(s->function[--s->n]);
	free(s->comm);
	free(s->event);
	s->comm = s->event = NULL;
}

static void add_sample(struct flame *f, struct sample *s)
{
	struct box *box;

	if (!s->event || (f->wanted && strcmp(s->event, f->wanted)))
		return;
	if (!f->event)
		f->event = xprintf("%s", s->event);
	if (strcmp(s->event, f->event))
		fail(EXIT_VPMU, "%s: found samples of %s and %s, needed those of one event: "
		     "--event %s", f->path, f->event, s->event, f->event);
	box = add(f, add(f, NULL, "all", false, s->period), s->comm, false, s->period);
	for (size_t i = s->n; i--; )
		box = add(f, box, s->function[i], s->kernel[i], s->period);
}

/* "demo       7163 cycles:u: " */
static void take_head(struct flame *f, struct sample *s, const char *line, size_t number)
{
	regmatch_t m[4];

	forget(s);
	if (!regexec(&f->head, line, 4, m, 0)) {
		s->comm = strndup(line, m[1].rm_eo);
		s->period = strtoull(line + m[2].rm_so, NULL, 10);
		s->event = strndup(line + m[3].rm_so, m[3].rm_eo - m[3].rm_so);
		if (!s->comm || !s->event)
			fail(EXIT_VPMU, "out of memory");
	} else if (strlen(line) > MAX_COMM) {
		/* A shorter line is the beginning of a thread's name that has a newline. */
		fail(EXIT_VPMU, "%s: line %zu of perf script has no call chain, needed one for "
		     "each sample: perf record -g", f->path, number);
	}
}

/* "	          1046 swap (/usr/bin/app)" */
static void take_function(struct flame *f, struct sample *s, char *line)
{
	char *name;

	if (s->n == DEEPEST)
		fail(EXIT_VPMU, "%s: found a call chain of more than %d functions, needed shorter "
		     "ones: perf record --call-graph fp", f->path, DEEPEST);
	s->kernel[s->n] = strtoull(line, &name, 16) >> 63;
	name += strspn(name, " ");
	name[strnlen(name, MAX_NAME)] = '\0';
	s->function[s->n++] = growth_function(name);
}

static void read_samples(struct flame *f, FILE *in)
{
	struct sample *s = xalloc(sizeof(*s));
	size_t room = 0, number = 0;
	char *line = NULL;

	while (number++, getline(&line, &room, in) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (*line == '\t' && s->event) {
			take_function(f, s, line);
		} else if (*line) {
			take_head(f, s, line, number);
		} else {
			add_sample(f, s);
			forget(s);
		}
	}
	free(line);
	free(s);
}

static void read_profile(struct flame *f)
{
	struct perf perf;
	char *argv[] = { NULL, "script", "-F", "comm,event,period,ip,sym,dso", "--max-stack",
			 PERF_DEEPEST, "-i", (char *)f->path, NULL };
	struct buffer rest = { 0 };
	struct script script;
	FILE *in;

	perf_find(&perf);
	if (!perf.path)
		fail(EXIT_VPMU, "found no perf, needed it to read %s: " PERF_CURE, f->path);
	argv[0] = perf.path;
	script_start(&script, argv);
	in = fdopen(script.out, "r");
	if (!in || regcomp(&f->head, HEAD, REG_EXTENDED))
		fail(EXIT_VPMU, "out of memory");
	read_samples(f, in);
	if (script_end(&script, &rest))
		fail(EXIT_VPMU, "%s: perf script cannot read it; perf record -g -o %s writes one",
		     f->path, f->path);
	if (!f->n || !f->box[0]->sum)
		fail(EXIT_VPMU, "%s: found no sample%s%s", f->path, f->wanted ? " of " : "",
		     f->wanted ? f->wanted : "");
}

/* ---- drawing */

/* Return the bytes of the printable character of UTF-8 that @text begins with, or 0. */
static size_t character(const char *text)
{
	static const uint32_t least[] = { 0, ' ', 0xa0, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	size_t n = *s < 0x7f ? 1 : *s < 0xc2 || *s > 0xf4 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : 4;
	uint32_t c = n == 1 ? *s : *s & 0x7f >> n;

	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* XML has no surrogates and noncharacters; marks of direction reorder the text. */
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || (c & 0xfffe) == 0xfffe)
		return 0;
	if ((c >= 0x200b && c < 0x2010) || (c >= 0x2028 && c < 0x202f) || c >> 4 == 0x206)
		return 0;
	return n;
}

static void put_text(FILE *out, const char *text, size_t most)
{
	for (size_t n; *text && most; text += n ? n : 1, most--) {
		n = character(text);
		if (!n)
			fprintf(out, "\\x%02x", (unsigned char)*text);
		else if (strchr("<>&\"'", *text))
			fprintf(out, "&#%d;", *text);
		else
			fwrite(text, n, 1, out);
	}
	fputs(*text ? ".." : "", out);
}

/* A function has the same colour in each picture. */
static void put_box(FILE *out, const struct flame *f, const struct box *box, unsigned int bottom)
{
	uint64_t all = f->box[0]->sum;
	double width = WIDTH / all * box->sum;
	size_t letters = width / LETTER, length = strlen(box->name);
	uint32_t hash = 2166136261;

	for (const char *s = box->name; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 16777619;
	fprintf(out, "<svg x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\"><title>",
		WIDTH / all * box->at, bottom - box->depth * ROW, width, ROW - 1);
	put_text(out, box->name, SIZE_MAX);
	fprintf(out, ": %" PRIu64 " ", box->sum);
	put_text(out, f->event, SIZE_MAX);
	fprintf(out, " (%.2f %%)</title><rect width=\"100%%\" height=\"100%%\" "
		"fill=\"#%02x%02x%02x\"/>", 100.0 / all * box->sum, (box->kernel ? 130 : 225) +
		hash % 30, 150 + hash / 32 % 70, (box->kernel ? 225 : 60) + hash / 4096 % 30);
	if (letters > 3) {
		fputs("<text x=\"3\" y=\"11\">", out);
		put_text(out, box->name, length < letters ? length : letters - 3);
		fputs("</text>", out);
	}
	fputs("</svg>\n", out);
}

static void draw(FILE *out, const struct flame *f, const char *title)
{
	double least = LEAST / WIDTH * f->box[0]->sum;
	unsigned int deepest = 0, height;

	qsort(f->box, f->n, sizeof(struct box *), by_place_of);
	for (size_t i = 0; i < f->n; i++) {
		struct box *box = f->box[i], *below = box->parent;

		box->at = below ? below->at + below->taken : 0;
		if (below)
			below->taken += box->sum;
		if (box->sum >= least && deepest < box->depth)
			deepest = box->depth;
	}
	height = TOP + (deepest + 1) * ROW;
	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%u\" "
		"viewBox=\"0 0 %.0f %u\">\n<title>", WIDTH, height, WIDTH, height);
	put_text(out, title, SIZE_MAX);
	fputs("</title>\n" STYLE "<text class=\"title\" x=\"3\" y=\"20\">", out);
	put_text(out, title, SIZE_MAX);
	fputs("</text>\n", out);
	for (size_t i = 0; i < f->n; i++)
		if (f->box[i]->sum >= least)
			put_box(out, f, f->box[i], height - ROW);
	fputs("</svg>\n", out);
}

int verb_flame(int argc, char **argv)
{
	const char *output = NULL, *title = NULL;
	struct flame f = { 0 };
	const struct option_def defs[] = {
		{ "output", 'o', "FILE", "where the picture goes (standard output)", &output },
		{ "title", 0, "TEXT", "heading (the event)", &title },
		{ "event", 'e', "EVENT", "draw the samples of this one of several events",
		  &f.wanted },
		{ NULL, 0, NULL, NULL, NULL },
	};
	int at = options_parse(argc, argv, defs, usage);
	FILE *out = stdout;

	/* Options may follow the file, as users type them. */
	if (at < argc) {
		f.path = argv[at];
		argv[at] = argv[0];
		at += options_parse(argc - at, argv + at, defs, usage);
	}
	if (!f.path || at < argc)
		fail(EXIT_VPMU, "flame takes one file of perf record -g (vpmu flame --help)");
	if (!output && isatty(STDOUT_FILENO))
		fail(EXIT_VPMU, "the picture is not written to a terminal: add -o FILE.svg");
	read_profile(&f);
	if (output)
		out = fopen(output, "we");
	if (!out)
		fail(EXIT_VPMU, "%s: %s", output, strerror(errno));
	draw(out, &f, title ? title : f.event);
	if (fflush(out) || ferror(out))
		fail(EXIT_VPMU, "%s: %s", output ? output : "standard output", strerror(errno));
	return 0;
}
