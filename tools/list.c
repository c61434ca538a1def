// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu list: what a guest can count, and what each number is worth. */
#define _GNU_SOURCE
#include <ctype.h>
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

/* What QEMU puts behind a model's name for a variant of it: -vN, -IBRS, -noTSX. */
static bool is_variant(const char *s)
{
	return (!strncasecmp(s, "-v", 2) && isdigit(s[2])) ||
	       !strncasecmp(s, "-IBRS", 5) || !strncasecmp(s, "-IBPB", 5) ||
	       !strncasecmp(s, "-noTSX", 6);
}

/* QEMU's names and ours differ in case and hyphens, and QEMU's in variants. */
static bool same_model(const char *a, const char *b)
{
	for (;; a++, b++) {
		while (*a == '-' && !is_variant(a))
			a++;
		while (*b == '-')
			b++;
		if (*a == '-')
			return !*b;
		if (tolower(*a) != tolower(*b))
			return false;
		if (!*a)
			return true;
	}
}

/* QEMU names many after products. */
static const char *model_alias(const char *name)
{
	static const char *const alias[][2] = {
		{ "Cascadelake-Server", "skylake-server" },
		{ "Conroe", "core2" },
		{ "Cooperlake", "skylake-server" },
		{ "core2duo", "core2" },
		{ "Denverton", "goldmont" },
		{ "KnightsMill", "knights" },
		{ "n270", "bonnell" },
		{ "Penryn", "core2" },
		{ "Snowridge", "tremont" },
		{ "EPYC-Rome", "zen2" },
		{ "EPYC-Milan", "zen3" },
		{ "EPYC-Genoa", "zen4" },
		{ "EPYC", "generic-amd" },
	};

	for (size_t i = 0; i < sizeof(alias) / sizeof(alias[0]); i++)
		if (same_model(name, alias[i][0]))
			return alias[i][1];
	return name;
}

const struct vpmu_model *model_named(const char *name)
{
	const struct vpmu_model *model;

	name = model_alias(name);
	for (size_t i = 0; (model = vpmu_model_at(i)); i++)
		if (same_model(name, model->name))
			break;
	return model;
}

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

/* An event as the register has it, and as perf's rNNN takes it. */
static uint64_t select_of(const struct vpmu_event_def *def)
{
	return (def->select & 0xff) | (uint64_t)def->umask << 8 |
	       (uint64_t)(def->select >> 8) << 32 | (uint64_t)def->umask2 << 40 |
	       (uint64_t)def->when << 16;
}

/* What the engine supplies: with --uarch on everything. */
static uint64_t supplied = TCG_SUPPLIED;

const char *event_quality(const struct vpmu_model *model, const struct vpmu_event_def *def)
{
	static const char *const names[] = {
		[VPMU_QUALITY_NONE] = "unavailable",
		[VPMU_QUALITY_EXACT] = "exact",
		[VPMU_QUALITY_DEFINED] = "defined",
		[VPMU_QUALITY_MODELLED] = "modelled",
	};
	struct vpmu_recipe recipe;

	vpmu_event_resolve(model, select_of(def), def->gp_mask ? -1 : def->fixed,
			   VPMU_BANKS_USER | VPMU_BANKS_KERNEL, supplied, &recipe);
	return recipe.quality < 4 ? names[recipe.quality] : "unavailable";
}

static bool available(const char *quality)
{
	return strcmp(quality, "unavailable");
}

/* What would count it, if this vpmu has that. */
static const char *needs_of(const struct vpmu_event_def *def, const char *quality)
{
	return !available(quality) && run_has_option(def->needs) ? def->needs : NULL;
}

char *mask_text(unsigned int mask)
{
	struct buffer b = { 0 };

	for (int i = 0, j; i < 32; i = j + 1) {
		j = i;
		if (!(mask >> i & 1))
			continue;
		while (j < 31 && mask >> (j + 1) & 1)
			j++;
		buffer_print(&b, "%s%d", b.len ? "," : "", i);
		if (j > i)
			buffer_print(&b, "-%d", j);
	}
	return b.data ? b.data : strdup("");
}

/* Columns of an event as perf takes it. */
static int perf_width(const struct vpmu_model *model)
{
	if (model->extensions & VPMU_EXT_UMASK2)
		return 13;
	return model->vendor == VPMU_VENDOR_AMD ? 10 : 5;
}

static void print_event(const struct vpmu_model *model,
			const struct vpmu_event_def *def)
{
	const char *quality = event_quality(model, def);
	const char *needs = needs_of(def, quality);
	char *gp = mask_text(def->gp_mask), fixed[16] = "-", event[20];

	if (def->fixed >= 0)
		snprintf(fixed, sizeof(fixed), "%d", def->fixed);
	snprintf(event, sizeof(event), "r%04llx", (unsigned long long)select_of(def));
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
	const char *quality = event_quality(model, def);
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
