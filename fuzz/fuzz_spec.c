// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Host events and filters as a user may type them: a refusal names a place in the text,
 * and an accepted text has all fields within their bounds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vpmu/filter.h>
#include <vpmu/model.h>
#include <vpmu/spec.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

static void check_error(const char *text, const struct vpmu_spec_error *err)
{
	size_t n = strlen(text);

	require(err->at <= n && err->length <= n - err->at, "the place is in the text");
	require(err->what && *err->what && err->needed && *err->needed, "it says what");
}

static void check_event(const struct vpmu_model *model, const struct vpmu_host_event *ev,
			uint32_t n_cpus)
{
	const struct vpmu_event_attr *a = &ev->attr.event;

	require(ev->cpu < n_cpus, "there is such a CPU");
	require(a->banks && !(a->banks & ~(VPMU_BANKS_USER | VPMU_BANKS_KERNEL)), "banks");
	require(a->fixed >= -1 && a->fixed < model->n_fixed, "fixed counter");
	require(a->fixed < 0 || !a->select, "one event, not two");
	require(a->period <= INT64_MAX, "period");
	require(!ev->attr.exclude_host || !ev->attr.exclude_guest, "it may count");
}

static void check_filter(const struct vpmu_model *model, const struct vpmu_filter *f)
{
	uint32_t i, j;

	require(f->action == VPMU_FILTER_ALLOW || f->action == VPMU_FILTER_DENY, "action");
	require(!(f->fixed_bitmap >> model->n_fixed), "fixed counters");
	require(f->n_events <= VPMU_FILTER_EVENTS_MAX, "number of entries");
	for (i = 0; i < f->n_events; i++) {
		require(f->flags == VPMU_FILTER_MASKED ||
			!(f->events[i] & ~0xf0000ffffull), "plain entries are plain");
		for (j = 0; j < i; j++)
			require(f->events[i] != f->events[j], "no entry twice");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t events[VPMU_FILTER_EVENTS_MAX];
	struct vpmu_spec_error err = { 0 };
	const struct vpmu_model *model;
	struct vpmu_host_event ev;
	struct vpmu_filter f;
	uint32_t n_cpus;
	size_t n = 0;
	char *text;

	if (size < 2)
		return 0;
	while (vpmu_model_at(n))
		n++;
	model = vpmu_model_at(data[0] % n);
	n_cpus = data[1];
	/* A buffer of exactly its size, so that reading past its end is noticed. */
	text = strndup((const char *)data + 2, size - 2);
	if (!text)
		return 0;
	if (vpmu_spec_host_event(text, model, n_cpus, &ev, &err))
		check_error(text, &err);
	else
		check_event(model, &ev, n_cpus);
	if (vpmu_spec_filter(text, model, &f, events, &err))
		check_error(text, &err);
	else
		check_filter(model, &f);
	free(text);
	return 0;
}
