// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Set-associative arrays of lines and of translations, with one of two policies. With
 * true LRU a set is a list, the most recent first, so that a key in frequent use is found
 * at once. Otherwise each way has a mark, which a use sets; a new key takes the first
 * unmarked way, and if there is none all marks are cleared. TLBs and instruction caches
 * can afford no more than that, and a second use changes nothing.
 *
 * Words are read and written one at a time, as another thread may do so too (a shared
 * last level); a set that two threads move at once may have a line twice or not at all.
 */
#include "uarch_internal.h"

/*
 * Relaxed: a whole word on 64-bit machines. On 32 bits half of it may be new, which
 * matches no line. No order is needed.
 */
static uint64_t ua_get(const uint64_t *p)
{
	return *(const volatile uint64_t *)p;
}

static void ua_set_word(uint64_t *p, uint64_t v)
{
	*(volatile uint64_t *)p = v;
}

size_t ua_array_words(const struct vpmu_uarch_geometry *g, bool values)
{
	return (size_t)g->sets * g->ways * (values ? 2 : 1);
}

uint64_t *ua_array_init(struct ua_array *a, const struct vpmu_uarch_geometry *g,
			bool values, uint64_t *words)
{
	size_t n = (size_t)g->sets * g->ways;

	a->set_mask = g->sets - 1;
	a->ways = g->ways;
	a->tag = words;
	a->value = values ? words + n : NULL;
	memset(words, 0, ua_array_words(g, values) * sizeof(*words));
	return words + ua_array_words(g, values);
}

static uint64_t *ua_set(const struct ua_array *a, uint64_t key)
{
	return a->tag + (size_t)(key & a->set_mask) * a->ways;
}

/* Make room at the front of a set for the key at @way, or for a new one. */
static void ua_shift(uint64_t *set, uint32_t way)
{
	for (; way; way--)
		ua_set_word(&set[way], ua_get(&set[way - 1]));
}

bool ua_array_find(struct ua_array *a, uint64_t key, bool *marked)
{
	uint64_t *set = ua_set(a, key), tag = 0;
	uint32_t way;

	for (way = 0; way < a->ways; way++) {
		tag = ua_get(&set[way]);
		if (tag >> 1 == key + 1)
			break;
	}
	if (way == a->ways)
		return false;
	if (way || (marked && tag & 1)) {
		ua_shift(set, way);
		ua_set_word(&set[0], marked ? tag & ~1ull : tag);
	}
	if (marked)
		*marked = tag & 1;
	return true;
}

bool ua_array_has(const struct ua_array *a, uint64_t key)
{
	uint64_t *set = ua_set(a, key);
	uint32_t way;

	for (way = 0; way < a->ways; way++)
		if (ua_get(&set[way]) >> 1 == key + 1)
			return true;
	return false;
}

void ua_array_put(struct ua_array *a, uint64_t key, bool marked)
{
	uint64_t *set = ua_set(a, key);

	if (!a->ways)
		return;
	ua_shift(set, a->ways - 1);
	ua_set_word(&set[0], (key + 1) << 1 | marked);
}

bool ua_marked_find(struct ua_array *a, uint64_t key, uint64_t *value)
{
	uint64_t *set = ua_set(a, key);
	uint32_t way;

	for (way = 0; way < a->ways; way++) {
		if (set[way] >> 1 != key + 1)
			continue;
		set[way] |= 1;
		if (value)
			*value = a->value[set - a->tag + way];
		return true;
	}
	return false;
}

void ua_marked_put(struct ua_array *a, uint64_t key, uint64_t value)
{
	uint64_t *set = ua_set(a, key);
	uint32_t way = 0, i;

	if (!a->ways)
		return;
	while (way < a->ways && set[way] & 1)
		way++;
	if (way == a->ways) {
		for (i = 0; i < a->ways; i++)
			set[i] &= ~1ull;
		way = 0;
	}
	set[way] = (key + 1) << 1 | 1;
	if (a->value)
		a->value[set - a->tag + way] = value;
}

void ua_array_drop(struct ua_array *a, uint64_t key)
{
	uint64_t *set = ua_set(a, key);
	uint32_t way;

	for (way = 0; way < a->ways; way++)
		if (ua_get(&set[way]) >> 1 == key + 1)
			ua_set_word(&set[way], 0);
}

void ua_array_clear(struct ua_array *a)
{
	memset(a->tag, 0, ((size_t)a->set_mask + 1) * a->ways * sizeof(*a->tag));
}
