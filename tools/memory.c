// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The memory that this machine has for a guest. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vpmu.h"

/* The number after @name at the start of a line of @path; UINT64_MAX if there is none. */
static uint64_t number_in(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	uint64_t found = UINT64_MAX;
	size_t n = strlen(name);
	char line[256], *end;

	while (file && found == UINT64_MAX && fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, n))
			continue;
		found = strtoull(line + n, &end, 10);
		if (end == line + n) /* "max" */
			found = UINT64_MAX;
	}
	if (file)
		fclose(file);
	return found;
}

/*
 * The smallest limit of the cgroup @group and of those above it. A container sees its own group
 * as the root, whatever /proc/self/cgroup calls it.
 */
static uint64_t limit_of(const char *root, char *group, const char *name)
{
	uint64_t least = UINT64_MAX, limit;
	char *path, *slash;

	for (;;) {
		path = xprintf("%s%s/%s", root, group, name);
		limit = number_in(path, "");
		least = limit < least ? limit : least;
		free(path);
		slash = strrchr(group, '/');
		if (!slash)
			return least;
		*slash = 0;
	}
}

/* The limit by the version of cgroups that has the memory controller. */
static uint64_t cgroup_limit(void)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	uint64_t least = UINT64_MAX, limit = UINT64_MAX;
	char line[4096], *group;

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		group = strchr(line, '/');
		if (!group)
			continue;
		if (!strncmp(line, "0::", 3))
			limit = limit_of("/sys/fs/cgroup", group, "memory.max");
		else if (strstr(line, ":memory:"))
			limit = limit_of("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
		least = limit < least ? limit : least;
	}
	if (file)
		fclose(file);
	return least;
}

uint64_t memory_there(const char **whose)
{
	uint64_t kb = number_in("/proc/meminfo", "MemAvailable:"), limit = cgroup_limit();
	uint64_t there = kb > UINT64_MAX >> 10 ? UINT64_MAX : kb << 10;

	*whose = limit < there ? "the limit of its cgroup" : "MemAvailable of this machine";
	return limit < there ? limit : there;
}

uint64_t memory_kills(void)
{
	uint64_t kills = number_in("/proc/vmstat", "oom_kill ");

	return kills == UINT64_MAX ? 0 : kills;
}
