// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* CPU models by name, and their events as text. */
#define _GNU_SOURCE
#include <ctype.h>
#include <string.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>

#include "vpmu.h"

/* QEMU's suffixes of a model's variants: -vN, -IBRS, -noTSX. */
static bool is_variant(const char *s)
{
	return (!strncasecmp(s, "-v", 2) && isdigit(s[2])) ||
	       !strncasecmp(s, "-IBRS", 5) || !strncasecmp(s, "-IBPB", 5) ||
	       !strncasecmp(s, "-noTSX", 6);
}

/* QEMU's names differ from ours in case, hyphens and the variants' suffixes. */
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

/* QEMU names many models after products. */
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

/* An event as in the register, and as perf's rNNN expects it. */
uint64_t event_select(const struct vpmu_event_def *def)
{
	return (def->select & 0xff) | (uint64_t)def->umask << 8 |
	       (uint64_t)(def->select >> 8) << 32 | (uint64_t)def->umask2 << 40 |
	       (uint64_t)def->when << 16;
}

const char *event_quality(const struct vpmu_model *model, const struct vpmu_event_def *def,
			  uint64_t supplied)
{
	static const char *const names[] = {
		[VPMU_QUALITY_NONE] = "unavailable",
		[VPMU_QUALITY_EXACT] = "exact",
		[VPMU_QUALITY_DEFINED] = "defined",
		[VPMU_QUALITY_MODELLED] = "modelled",
	};
	struct vpmu_recipe recipe;

	vpmu_event_resolve(model, event_select(def), def->gp_mask ? -1 : def->fixed,
			   VPMU_BANKS_USER | VPMU_BANKS_KERNEL, supplied, &recipe);
	return recipe.quality < 4 ? names[recipe.quality] : "unavailable";
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
