// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The grammar of event filters. Source: include/vpmu/filter.h. */
#include <vpmu/filter.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>

#include "../silicon/words.h"

struct filter_text {
	struct words words;
	uint64_t *events; /* as masked entries until the end */
	uint32_t n;
	uint32_t fixed;
	bool masked;
};

/* The bits of an entry that hold its event select. */
#define FILTER_ENTRY_SELECT (0xffull | 0xfull << 32)
#define FILTER_ENTRY_EXCLUDE (1ull << 55)

static int filter_add_entry(struct filter_text *f, struct word part, uint64_t entry)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (f->events[i] == entry)
			return vpmu_words_wrong(&f->words, part, "listed twice", "each entry once");
	if (f->n == VPMU_FILTER_EVENTS_MAX)
		return vpmu_words_wrong(&f->words, part, "too many entries", "at most 300");
	f->events[f->n++] = entry;
	return 0;
}

static int filter_add_fixed(struct filter_text *f, struct word part, unsigned int fixed)
{
	if (f->fixed >> fixed & 1)
		return vpmu_words_wrong(&f->words, part, "listed twice", "each entry once");
	f->fixed |= 1u << fixed;
	return 0;
}

static int filter_fixed(struct filter_text *f, struct word part, struct word number)
{
	uint64_t n;

	if (!vpmu_word_number(number, 10, UINT32_MAX, &n) || n >= f->words.model->n_fixed)
		return vpmu_words_wrong(&f->words, number, "no such fixed counter",
					"fixedN, N below the CPU's number of fixed counters");
	return filter_add_fixed(f, part, (unsigned int)n);
}

/* "SELECT/MASK/MATCH": the next number in hex, up to a slash or the end. */
static int filter_field(struct filter_text *f, struct word *rest, bool last, uint64_t max,
			uint64_t *n)
{
	static const char needed[] = "SELECT/MASK/MATCH in hex: an event select and two "
				     "unit masks";
	struct word field = { rest->s, 0 };

	while (field.n < rest->n && rest->s[field.n] != '/')
		field.n++;
	rest->s += field.n;
	rest->n -= field.n;
	if (!vpmu_word_number(field, 16, UINT64_MAX, n))
		return vpmu_words_wrong(&f->words, field,
					field.n ? "not a number" : "a number is missing",
					needed);
	if (*n > max)
		return vpmu_words_wrong(&f->words, field, "too large", needed);
	if (last && rest->n)
		return vpmu_words_wrong(&f->words, *rest, "more than three numbers", needed);
	if (!last && !rest->n)
		return vpmu_words_wrong(&f->words, *rest, "a number is missing", needed);
	if (!last) {
		rest->s++;
		rest->n--;
	}
	return 0;
}

/* Does an earlier entry select events of which @entry could be an exception? */
static bool filter_has_select(const struct filter_text *f, uint64_t entry)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (!((f->events[i] ^ entry) & FILTER_ENTRY_SELECT) &&
		    !(f->events[i] & FILTER_ENTRY_EXCLUDE))
			return true;
	return false;
}

static int filter_masked(struct filter_text *f, struct word part, struct word value,
			 bool exclude)
{
	uint64_t max = f->words.model->vendor == VPMU_VENDOR_AMD ? 0xfff : 0xff;
	uint64_t select, mask, match, entry;
	struct word rest = value;
	int ret = filter_field(f, &rest, false, max, &select);

	if (!ret)
		ret = filter_field(f, &rest, false, 0xff, &mask);
	if (!ret)
		ret = filter_field(f, &rest, true, 0xff, &match);
	if (ret)
		return ret;
	if (match & ~mask)
		return vpmu_words_wrong(&f->words, value, "matches no unit mask",
					"MATCH without bits that MASK takes away");
	entry = VPMU_FILTER_ENTRY(select, mask, match, exclude);
	if (exclude && !filter_has_select(f, entry))
		return vpmu_words_wrong(&f->words, part, "an exception from nothing",
					"an entry of the same event select before it");
	f->masked = true;
	return filter_add_entry(f, part, entry);
}

static int filter_entry(struct filter_text *f, struct word part)
{
	struct word rest = part;
	struct word_event ev;
	uint64_t select;
	int ret;

	if (vpmu_word_after(&rest, "fixed"))
		return filter_fixed(f, part, rest);
	if (vpmu_word_after(&rest, "mask="))
		return filter_masked(f, part, rest, false);
	if (vpmu_word_after(&rest, "except="))
		return filter_masked(f, part, rest, true);
	ret = vpmu_words_event(&f->words, part, vpmu_event_name_bits(f->words.model),
			       "bits 7:0 and 15:8: a filter looks at nothing else", &ev);
	if (ret)
		return ret;
	if (ev.fixed >= 0)
		return filter_add_fixed(f, part, (unsigned int)ev.fixed);
	select = (ev.select & 0xff) | (ev.select >> 24 & 0xf00);
	return filter_add_entry(f, part, VPMU_FILTER_ENTRY(select, 0xff, ev.select >> 8, 0));
}

int vpmu_spec_filter(const char *text, const struct vpmu_model *model,
		     struct vpmu_filter *out, uint64_t *events,
		     struct vpmu_spec_error *err)
{
	struct filter_text f = {
		.words = { .text = text, .model = model, .err = err },
		.events = events,
	};
	struct word part;
	uint32_t action, i;
	int ret = 0;

	vpmu_words_next(&f.words, &part);
	if (vpmu_word_is(part, "allow"))
		action = VPMU_FILTER_ALLOW;
	else if (vpmu_word_is(part, "deny"))
		action = VPMU_FILTER_DENY;
	else
		return vpmu_words_wrong(&f.words, part, "no action", "allow or deny");
	while (!ret && vpmu_words_next(&f.words, &part))
		ret = filter_entry(&f, part);
	if (ret)
		return ret;
	for (i = 0; i < f.n && !f.masked; i++)
		events[i] &= FILTER_ENTRY_SELECT | VPMU_EVTSEL_UMASK;
	*out = (struct vpmu_filter){
		.size = sizeof(*out),
		.action = action,
		.flags = f.masked ? VPMU_FILTER_MASKED : 0,
		.fixed_bitmap = f.fixed,
		.n_events = f.n,
		.events = events,
	};
	return 0;
}
