// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <stdio.h>
#include <string.h>

#include "contention.h"

#define COUNT_OF(table)	(sizeof(table) / sizeof((table)[0]))

static const char *const policies[] = {
	[VPMU_POLICY_DIRECT] = "direct",
	[VPMU_POLICY_SHARED] = "shared",
	[VPMU_POLICY_MEDIATED] = "mediated",
};
static const char *const resources[] = {
	[CONTENTION_GP] = "gp",
	[CONTENTION_FIXED] = "fixed",
	[CONTENTION_MOVABLE] = "movable",
	[CONTENTION_LBR] = "lbr",
	[CONTENTION_METRICS] = "metrics",
};
static const char *const classes[] = {
	[VPMU_CPU_PINNED] = "CP",
	[VPMU_TASK_PINNED] = "TP",
	[VPMU_CPU_FLEXIBLE] = "CF",
	[VPMU_TASK_FLEXIBLE] = "TF",
};
static const char *const triggers[] = {
	[CONTENTION_RELEASE] = "release",
	[CONTENTION_TIMER] = "timer",
	[CONTENTION_SWITCH] = "switch",
	[CONTENTION_ENABLE] = "enable",
	[CONTENTION_CREATE] = "create",
	[CONTENTION_EXIT] = "exit",
};
static const char *const states[] = {
	[CONTENTION_ACTIVE] = "active",
	[CONTENTION_INACTIVE] = "inactive",
	[CONTENTION_ERROR] = "error",
	[CONTENTION_OFF] = "off",
	[CONTENTION_REFUSED] = "refused",
	[CONTENTION_NONE] = "none",
};
static const char *const losers[] = {
	[CONTENTION_NOBODY] = "none",
	[CONTENTION_INCUMBENT] = "incumbent",
	[CONTENTION_NEWCOMER] = "newcomer",
	[CONTENTION_BOTH] = "both",
};

const char *contention_policy_name(enum vpmu_policy policy)
{
	return policies[policy];
}

const char *contention_resource_name(enum contention_resource resource)
{
	return resources[resource];
}

const char *contention_class_name(enum vpmu_perf_class class)
{
	return classes[class];
}

const char *contention_trigger_name(enum contention_trigger trigger)
{
	return triggers[trigger];
}

const char *contention_state_name(enum contention_state state)
{
	return states[state];
}

const char *contention_loser_name(enum contention_loser loser)
{
	return losers[loser];
}

void contention_cell_name(const struct contention_cell_id *id, char name[CONTENTION_NAME])
{
	snprintf(name, CONTENTION_NAME, "%s/%s/%s/%s", policies[id->policy],
		 resources[id->resource], classes[id->incumbent], classes[id->newcomer]);
}

/* The next part of a name, up to a slash or the end: its number, or -1. */
static int name_part(const char **name, const char *const *table, size_t n)
{
	size_t i, len = strcspn(*name, "/");

	for (i = 0; i < n; i++)
		if (strlen(table[i]) == len && !memcmp(table[i], *name, len))
			break;
	*name += len + ((*name)[len] == '/');
	return i < n ? (int)i : -1;
}

bool contention_cell_find(const char *name, struct contention_cell_id *id)
{
	char back[CONTENTION_NAME];
	const char *at = name;
	int policy = name_part(&at, policies, COUNT_OF(policies));
	int resource = name_part(&at, resources, COUNT_OF(resources));
	int incumbent = name_part(&at, classes, COUNT_OF(classes));
	int newcomer = name_part(&at, classes, COUNT_OF(classes));

	if (policy < 0 || resource < 0 || incumbent < 0 || newcomer < 0)
		return false;
	id->policy = (enum vpmu_policy)policy;
	id->resource = (enum contention_resource)resource;
	id->incumbent = (enum vpmu_perf_class)incumbent;
	id->newcomer = (enum vpmu_perf_class)newcomer;
	contention_cell_name(id, back);
	return !strcmp(back, name);
}
