// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include "words.h"

#include <vpmu/model.h>
#include <vpmu/msr.h>

int vpmu_words_wrong(struct words *w, struct word at, const char *what,
		     const char *needed)
{
	w->err->at = (size_t)(at.s - w->text);
	w->err->length = at.n;
	w->err->what = what;
	w->err->needed = needed;
	return -VPMU_EINVAL;
}

bool vpmu_words_next(struct words *w, struct word *part)
{
	if (w->next && !*w->next)
		return false;
	part->s = w->next ? w->next + 1 : w->text;
	for (part->n = 0; part->s[part->n] && part->s[part->n] != ':'; part->n++)
		;
	w->next = part->s + part->n;
	return true;
}

static char words_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool vpmu_word_is(struct word part, const char *word)
{
	size_t i;

	for (i = 0; i < part.n; i++)
		if (word[i] != part.s[i])
			return false;
	return !word[i];
}

static bool words_is_name(struct word part, const char *name)
{
	size_t i;

	for (i = 0; i < part.n; i++)
		if (!name[i] || words_lower(name[i]) != words_lower(part.s[i]))
			return false;
	return !name[i];
}

bool vpmu_word_after(struct word *part, const char *word)
{
	size_t i;

	for (i = 0; word[i]; i++)
		if (i == part->n || part->s[i] != word[i])
			return false;
	part->s += i;
	part->n -= i;
	return true;
}

static unsigned int words_digit(char c)
{
	c = words_lower(c);
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a') + 10;
	return 16;
}

bool vpmu_word_number(struct word part, unsigned int base, uint64_t max, uint64_t *n)
{
	uint64_t value = 0;
	unsigned int digit;
	size_t i;

	for (i = 0; i < part.n; i++) {
		digit = words_digit(part.s[i]);
		if (digit >= base)
			return false;
		/* One digit more still fits in 64 bits. */
		if (value >> 60)
			return false;
		value = value * base + digit;
	}
	*n = value;
	return part.n && value <= max;
}

/* perf's generic names: the architectural event, and AMD's encoding or 0. */
static const struct {
	const char *name;
	uint8_t arch;
	uint16_t amd;
} words_generic[] = {
	{ "cycles", 0, 0x0076 },           { "cpu-cycles", 0, 0x0076 },
	{ "instructions", 1, 0x00c0 },     { "bus-cycles", 2, 0 },
	{ "cache-references", 3, 0xff60 }, { "cache-misses", 4, 0x0964 },
	{ "branches", 5, 0x00c2 },         { "branch-instructions", 5, 0x00c2 },
	{ "branch-misses", 6, 0x00c3 },
};

/* perf's ref-cycles has no selector of its own: fixed counter 2 counts them. */
#define WORDS_REF_CYCLES_FIXED 2

static void words_row(const struct vpmu_event_def *row, struct word_event *ev)
{
	ev->fixed = row->gp_mask ? -1 : row->fixed;
	ev->select = 0;
	if (row->gp_mask)
		ev->select = (row->select & 0xffu) | (uint64_t)row->umask << 8 |
			     (uint64_t)row->when << 16 | (uint64_t)(row->select & 0xf00u) << 24 |
			     (uint64_t)row->umask2 << 40;
}

static const struct vpmu_event_def *words_generic_row(const struct vpmu_model *m,
						      uint8_t arch, uint16_t amd)
{
	if (m->vendor == VPMU_VENDOR_AMD)
		return amd ? vpmu_event_find(m, amd, -1) : NULL;
	return arch < m->n_arch_events ? vpmu_event_find(m, vpmu_arch_event[arch], -1) : NULL;
}

static const struct vpmu_event_def *words_named(const struct words *w, struct word part)
{
	const struct vpmu_model *m = w->model;
	unsigned int i;

	for (i = 0; i < m->n_events; i++)
		if (words_is_name(part, m->events[i].name))
			return &m->events[i];
	if (vpmu_word_is(part, "ref-cycles") && m->n_fixed > WORDS_REF_CYCLES_FIXED)
		return vpmu_event_find(m, 0, WORDS_REF_CYCLES_FIXED);
	for (i = 0; i < sizeof(words_generic) / sizeof(words_generic[0]); i++)
		if (vpmu_word_is(part, words_generic[i].name))
			return words_generic_row(m, words_generic[i].arch, words_generic[i].amd);
	return NULL;
}

/* rHEX, in which only @bits may be set. */
static int words_raw(struct words *w, struct word part, uint64_t bits,
		     const char *needed, struct word_event *ev)
{
	const struct vpmu_event_def *row;
	struct word hex = part;

	vpmu_word_after(&hex, "r");
	if (!vpmu_word_number(hex, 16, UINT64_MAX, &ev->select))
		return vpmu_words_wrong(w, hex, "more than 64 bits", needed);
	if (ev->select & ~bits)
		return vpmu_words_wrong(w, hex, "bits that select no event", needed);
	ev->fixed = -1;
	row = vpmu_event_find(w->model, ev->select, -1);
	if (!row || row->gp_mask)
		return 0;
	if (ev->select & ~vpmu_event_name_bits(w->model))
		return vpmu_words_wrong(w, hex, "a fixed counter's event with a condition",
					"bits 7:0 and 15:8 for this event");
	words_row(row, ev);
	return 0;
}

static bool words_is_raw(struct word part)
{
	size_t i;

	if (!vpmu_word_after(&part, "r") || !part.n)
		return false;
	for (i = 0; i < part.n; i++)
		if (words_digit(part.s[i]) > 15)
			return false;
	return true;
}

int vpmu_words_event(struct words *w, struct word part, uint64_t bits,
		     const char *needed_raw, struct word_event *ev)
{
	const struct vpmu_event_def *row = words_named(w, part);

	if (row) {
		words_row(row, ev);
		return 0;
	}
	if (words_is_raw(part))
		return words_raw(w, part, bits, needed_raw, ev);
	return vpmu_words_wrong(w, part, part.n ? "no event of this CPU" : "no event",
				WORDS_EVENTS_NEEDED);
}
