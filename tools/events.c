// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu run's host events and event filter: parsing, adding, and the report at the end. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include <vpmu/filter.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>
#include <vpmu/spec.h>

#include "vpmu.h"

/* Print the text on a line of its own, and carets below the error. */
static void refuse(const char *option, const char *text,
		   const struct vpmu_spec_error *err)
{
	struct buffer shown = { 0 }, carets = { 0 };
	size_t end = err->at + (err->length ? err->length : 1);

	for (size_t i = 0; text[i]; i++) {
		unsigned char c = text[i];

		buffer_print(&shown, "%c", c < 32 || c == 127 ? '?' : c);
	}
	/* A character of several bytes has one column. */
	for (size_t i = 0; i < end; i++)
		if ((text[i] & 0xc0) != 0x80 || i == err->at)
			buffer_string(&carets, i < err->at ? " " : "^");
	fail(EXIT_VPMU, "--%s: %s; needed: %s\n  %s\n  %s", option, err->what, err->needed,
	     shown.data, carets.data);
}

const struct vpmu_model *events_model(const char *cpu)
{
	char *name = strndup(cpu, strcspn(cpu, ","));
	const struct vpmu_model *model = name ? model_named(name) : NULL;

	/* QEMU checks again, and knows what this CPU is. */
	for (size_t i = 0; !model && vpmu_model_at(i); i++)
		if (!vpmu_model_at(i)->n_models)
			model = vpmu_model_at(i);
	free(name);
	return model;
}

static void check_counted(const char *text, const struct vpmu_model *model,
			  const struct vpmu_event_attr *attr, bool uarch)
{
	const char *event = strchr(text, ':') + 1;
	struct vpmu_spec_error err = {
		.at = event - text, .length = strcspn(event, ":"),
		.what = "no counter here counts this event",
		.needed = "one that `vpmu list` does not call unavailable",
	};
	struct vpmu_recipe recipe;

	if (vpmu_event_resolve(model, attr->select, attr->fixed, attr->banks,
			       uarch ? VPMU_SIGNALS_ALL : TCG_SUPPLIED, &recipe))
		refuse("host-event", text, &err);
}

void events_parse(struct host_events *events, const struct strings *specs,
		  const struct machine *m)
{
	const struct vpmu_model *model = events_model(m->cpu);
	struct vpmu_host_event parsed;
	struct vpmu_spec_error err;

	events->list = xalloc(specs->n * sizeof(*events->list));
	for (events->n = 0; events->n < specs->n; events->n++) {
		struct host_event *e = &events->list[events->n];

		e->spec = specs->list[events->n];
		if (vpmu_spec_host_event(e->spec, model, m->smp, &parsed, &err))
			refuse("host-event", e->spec, &err);
		check_counted(e->spec, model, &parsed.attr.event, m->uarch);
	}
}

void events_check_filter(const char *filter, const char *cpu)
{
	uint64_t entries[VPMU_FILTER_EVENTS_MAX];
	struct vpmu_spec_error err;
	struct vpmu_filter f;

	if (vpmu_spec_filter(filter, events_model(cpu), &f, entries, &err))
		refuse("event-filter", filter, &err);
}

bool events_add(struct host_events *events, struct qmp *qmp, bool go_on)
{
	char *error = NULL;
	json_t *reply;

	for (size_t i = 0; i < events->n; i++) {
		struct host_event *e = &events->list[i];

		reply = qmp_call(qmp, "x-vpmu-host-event-add",
				 json_pack("{s:s}", "spec", e->spec), QMP_PATIENCE_MS, &error);
		if (!reply) {
			say("--host-event %s: %s", e->spec, error);
			free(error);
			return false;
		}
		e->id = json_integer_value(json_object_get(reply, "id"));
		json_decref(reply);
	}
	if (!go_on)
		return true;
	reply = qmp_call(qmp, "cont", NULL, QMP_PATIENCE_MS, &error);
	if (!reply)
		say("the guest does not start: %s", error);
	free(error);
	json_decref(reply);
	return reply;
}

/* ---- at the end */

static uint64_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* Groups digits as perf does: 1,234,567. */
static char *grouped(uint64_t n)
{
	char digits[24];
	struct buffer b = { 0 };
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);

	for (int i = 0; i < len; i++)
		buffer_print(&b, "%s%c", i && (len - i) % 3 == 0 ? "," : "", digits[i]);
	return b.data;
}

/*
 * Only the guest is executed here, so nothing of the host is counted; and an event that
 * never had a counter has counted nothing at all.
 */
static void tell_event(const json_t *e, int width)
{
	const char *spec = json_string_value(json_object_get(e, "spec"));
	const char *state = json_string_value(json_object_get(e, "state"));
	uint64_t enabled = number(e, "time-enabled"), running = number(e, "time-running");
	char *count = running ? grouped(number(e, "count")) : strdup("<not counted>");

	say("  %-*s  host %s  guest %17s  (%.2f%%)%s", width, spec ? spec : "?",
	    "<not counted>", count, enabled ? 100.0 * running / enabled : 0.0,
	    state && !strcmp(state, "error") ? "  in error: it found no counter" : "");
	free(count);
}

void events_tell(json_t *list)
{
	json_t *e;
	size_t i, n;
	int width = 0;

	json_array_foreach(list, i, e) {
		n = json_string_length(json_object_get(e, "spec"));
		width = (int)n > width ? (int)n : width;
	}
	if (json_array_size(list))
		say("host events:");
	json_array_foreach(list, i, e)
		tell_event(e, width);
}

/* ---- what the guest lost */

/* Is the counter's event listed as uncounted? Those are reported apart. */
static bool is_uncounted(const json_t *query, const json_t *counter)
{
	const uint64_t bits = VPMU_EVTSEL_EVENT | VPMU_EVTSEL_UMASK | VPMU_EVTSEL_EDGE |
			      VPMU_EVTSEL_INV | VPMU_EVTSEL_CMASK |
			      /* Intel CPUs have no event select in these bits. */
			      VPMU_EVTSEL_EVENT_HIGH |
			      VPMU_EVTSEL_EQ;
	const char *select = json_string_value(json_object_get(counter, "select")), *one_select;
	const json_t *one;
	uint64_t row;
	size_t i;

	json_array_foreach(json_object_get(query, "uncounted"), i, one) {
		one_select = json_string_value(json_object_get(one, "select"));
		if (!select || !one_select)
			continue;
		row = strtoull(one_select, NULL, 16);
		/* on AMD, UnitMask2's bits that the row lacks name no event */
		if (!((strtoull(select, NULL, 16) ^ row) &
		      (bits | (row & VPMU_EVTSEL_UMASK2))))
			return true;
	}
	return false;
}

static void tell_cpu_losses(const json_t *query, const json_t *cpu, const char *what)
{
	uint64_t all = 0, ran = 0, enabled, running;
	unsigned int on = 0, lost = 0;
	struct buffer pmcs = { 0 };
	const json_t *c;
	size_t i;

	json_array_foreach(json_object_get(cpu, "counters"), i, c) {
		enabled = number(c, "time-enabled");
		running = number(c, "time-running");
		on += enabled > 0;
		if (running >= enabled || is_uncounted(query, c))
			continue;
		all += enabled;
		ran += running;
		buffer_print(&pmcs, "%s%" PRIu64, lost++ ? ", " : "", number(c, "pmc"));
	}
	if (lost)
		say("cpu%" PRIu64 ": %u of %u counters %s for %.1f %% of the time they were "
		    "enabled (pmc %s); `vpmu lost` inside the guest tells which counts to "
		    "trust", number(cpu, "index"), lost, on, what,
		    100.0 * (all - ran) / all, pmcs.data);
	buffer_free(&pmcs);
}

void events_tell_losses(json_t *query, bool hosts, bool filtered)
{
	const char *what = "lost their hardware to the host";
	json_t *cpu;
	size_t i;

	/*
	 * An uncounted event that shares a counter with others would look like a loss of
	 * it.
	 */
	if (!hosts && !filtered && json_array_size(json_object_get(query, "uncounted")))
		return;
	/* Only the guest is told which of the two it was at a given time. */
	if (filtered)
		what = hosts ? "lost their hardware to the host, or were filtered,"
			     : "were filtered";
	json_array_foreach(json_object_get(query, "cpus"), i, cpu)
		tell_cpu_losses(query, cpu, what);
}
