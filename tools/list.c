// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu list: shows what a guest can count, and the quality of each number. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>

#include "vpmu.h"

static const char usage[] =
"Usage: vpmu list [options]\n"
"\n"
"Lists the events that a guest's CPU model knows, their encodings, and whether\n"
"their counts are exact, defined (exact by a documented definition), modelled or\n"
"unavailable. An unavailable event reads 0, and vpmu run says so at its end.\n"
"rUUEE is an event as perf takes it: perf stat -e r00c0. AMD's event selects of\n"
"more than two digits are split, as in the register: 1C9H is r1000000c9.\n";

static const struct vpmu_model *find_model(const char *name)
{
	const struct vpmu_model *model = model_named(name);
	struct buffer known = { 0 };

	if (model)
		return model;
	for (size_t i = 0; (model = vpmu_model_at(i)); i++)
		buffer_print(&known, "%s%s", i ? ", " : "", model->name);
	fail(EXIT_VPMU, "--cpu %s: no table of its events; there are %s", name, known.data);
}

/* Signals that the engine supplies: all of them with --uarch on. */
static uint64_t supplied = TCG_SUPPLIED;

static bool available(const char *quality)
{
	return strcmp(quality, "unavailable");
}

/* Names the requirement of the event, if this vpmu can meet it. */
static const char *needs_of(const struct vpmu_event_def *def, const char *quality)
{
	return !available(quality) && run_has_option(def->needs) ? def->needs : NULL;
}

/* Width of the column with perf's name of an event. */
static int perf_width(const struct vpmu_model *model)
{
	if (model->extensions & VPMU_EXT_UMASK2)
		return 13;
	return model->vendor == VPMU_VENDOR_AMD ? 10 : 5;
}

static void print_event(const struct vpmu_model *model,
			const struct vpmu_event_def *def)
{
	const char *quality = event_quality(model, def, supplied);
	const char *needs = needs_of(def, quality);
	char *gp = mask_text(def->gp_mask), fixed[16] = "-", event[20];

	if (def->fixed >= 0)
		snprintf(fixed, sizeof(fixed), "%d", def->fixed);
	snprintf(event, sizeof(event), "r%04llx", (unsigned long long)event_select(def));
	printf("%-42s %-*s  %-8s %-5s  %-11s  %-4s %s\n", def->name, perf_width(model), event,
	       *gp ? gp : "-", fixed, quality,
	       available(quality) ? "0" : "-", needs ? needs : "");
	free(gp);
}

static int print_model(const struct vpmu_model *model)
{
	printf("%s: %d counters and %d fixed ones of %d bits, perfmon version %d",
	       model->title, model->n_gp, model->n_fixed, model->width_bits, model->version);
	if (model->version_most)
		printf(", %d by pmu-version=%d", model->version_most, model->version_most);
	printf("\n\n");
	printf("%-42s %-*s  %-8s %-5s  %-11s  %-4s %s\n", "EVENT", perf_width(model), "PERF",
	       "COUNTERS", "FIXED", "COUNT", "SKID", "NEEDS");
	for (int i = 0; i < model->n_events; i++)
		print_event(model, &model->events[i]);
	return fflush(stdout) ? EXIT_VPMU : 0;
}

static json_t *event_json(const struct vpmu_model *model,
			  const struct vpmu_event_def *def)
{
	const char *quality = event_quality(model, def, supplied);
	const char *needs = needs_of(def, quality);
	json_t *j = json_pack("{s:s, s:i, s:i, s:i, s:i, s:s}", "name", def->name,
			      "event", def->select, "umask", def->umask,
			      "umask2", def->umask2,
			      "counters", def->gp_mask, "count", quality);

	json_object_set_new(j, "fixed", def->fixed < 0 ? json_null()
							: json_integer(def->fixed));
	json_object_set_new(j, "skid", available(quality) ? json_integer(0) : json_null());
	json_object_set_new(j, "needs", needs ? json_string(needs) : json_null());
	return j;
}

static int dump_model(const struct vpmu_model *model)
{
	json_t *events = json_array(), *j;

	for (int i = 0; i < model->n_events; i++)
		json_array_append_new(events, event_json(model, &model->events[i]));
	j = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:o}", "model", model->name,
		      "title", model->title, "version", model->version,
		      "counters", model->n_gp, "fixed", model->n_fixed,
		      "width_bits", model->width_bits, "events", events);
	json_dumpf(j, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(j);
	return fflush(stdout) ? EXIT_VPMU : 0;
}

int verb_list(int argc, char **argv)
{
	const char *cpu = "Icelake-Server", *uarch = NULL;
	bool json = false;
	const struct option_def defs[] = {
		{ "cpu", 0, "MODEL", "whose events (Icelake-Server)", &cpu },
		{ "uarch", 0, "on|off", "with what --uarch of vpmu run counts (off)", &uarch },
		{ "json", 0, NULL, "for programs", &json },
		{ NULL, 0, NULL, NULL, NULL },
	};
	const struct vpmu_model *model;

	if (options_parse(argc, argv, defs, usage) < argc)
		fail(EXIT_VPMU, "list takes no arguments (vpmu list --help)");
	if (uarch && strcmp(uarch, "on") && strcmp(uarch, "off"))
		fail(EXIT_VPMU, "--uarch %s: it is on or off", uarch);
	if (uarch && !strcmp(uarch, "on"))
		supplied = VPMU_SIGNALS_ALL;
	model = find_model(cpu);
	return json ? dump_model(model) : print_model(model);
}
