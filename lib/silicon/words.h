/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Words of a text that a person has typed: parts between colons, numbers, and the names of
 * a model's events. Host events (lib/perf) and event filters (lib/guest) are made of them.
 */
#ifndef VPMU_WORDS_H
#define VPMU_WORDS_H

#include <vpmu/model.h>

/* A piece of the text. */
struct word {
	const char *s;
	size_t n;
};

struct words {
	const char *text;
	const struct vpmu_model *model; /* whose event names */
	struct vpmu_spec_error *err;
	const char *next; /* after the last part: a colon, or the end; NULL: no part yet */
};

/* The meaning of an event's name or number. */
struct word_event {
	uint64_t select; /* IA32_PERFEVTSEL image */
	int fixed;       /* only this fixed counter counts it, or -1 */
};

#define WORDS_EVENTS_NEEDED "an event of `vpmu list`, one of perf's generic names, or rHEX"

/** Fill in the error. Returns -VPMU_EINVAL. */
int vpmu_words_wrong(struct words *w, struct word at, const char *what, const char *needed);

/** The next part between colons; false at the end of the text. */
bool vpmu_words_next(struct words *w, struct word *part);

bool vpmu_word_is(struct word part, const char *word);

/** Take @word off the front of @part; false if @part begins with something else. */
bool vpmu_word_after(struct word *part, const char *word);

/** The whole of @part as a number; false if it is none or above @max. */
bool vpmu_word_number(struct word part, unsigned int base, uint64_t max, uint64_t *n);

/**
 * The event that @part names: by the model's table, by one of perf's generic names, or as
 * rHEX, in which only @bits may be set; @needed_raw says that to the person.
 */
int vpmu_words_event(struct words *w, struct word part, uint64_t bits,
		     const char *needed_raw, struct word_event *ev);

#endif /* VPMU_WORDS_H */
