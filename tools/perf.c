// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Finds a perf that works in the guest. On some systems /usr/bin/perf is a script that
 * refuses to run on a kernel that it was not packaged for. Then the program that it would
 * run is put over the script in the guest.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vpmu.h"

/* Read the beginning of a file, with a terminating NUL. */
static size_t peek(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	n = n > 0 ? n : 0;
	text[n] = 0;
	return n;
}

static bool is_elf(const char *path)
{
	char text[8];

	return peek(path, text, sizeof(text)) >= 4 && !memcmp(text, "\177ELF", 4);
}

/* A distribution's script asks for the kernel's release; a user's does not. */
static bool picks_by_kernel(const char *path)
{
	char text[8192];

	return peek(path, text, sizeof(text)) > 2 && !memcmp(text, "#!", 2) &&
		strstr(text, "uname");
}

/* The first in PATH after the @skip first ones. */
static char *in_path(const char *name, int skip)
{
	const char *path = getenv("PATH"), *end;
	char *file;

	for (path = path ? path : "/usr/bin:/bin"; *path; path = end + (*end == ':')) {
		end = strchrnul(path, ':');
		file = xprintf("%.*s/%s", (int)(end - path), path, name);
		if (runs(file) && !skip--)
			return file;
		free(file);
	}
	return NULL;
}

/* The newest of the programs that packages install for the script to run. */
static char *behind_script(void)
{
	static const char *const patterns[] = {
		"/usr/lib/linux-tools/*/perf", "/usr/lib/linux-tools-*/perf",
		"/usr/bin/perf_[0-9]*", "/usr/libexec/perf",
	};
	char *found = NULL;
	glob_t g;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		if (glob(patterns[i], 0, NULL, &g))
			continue;
		for (size_t j = 0; j < g.gl_pathc; j++) {
			if (!runs(g.gl_pathv[j]) || !is_elf(g.gl_pathv[j]))
				continue;
			if (found && strverscmp(g.gl_pathv[j], found) < 0)
				continue;
			free(found);
			found = strdup(g.gl_pathv[j]);
		}
		globfree(&g);
	}
	return found;
}

/* A bundle has one for machines that have none. */
static char *bundled(void)
{
	char *beside = installed_beside("lib/vpmu/perf/perf");
	char *found = beside && runs(beside) ? realpath(beside, NULL) : NULL;

	free(beside);
	return found;
}

void perf_find(struct perf *perf)
{
	char *first = in_path("perf", 0), *next;

	memset(perf, 0, sizeof(*perf));
	if (first && !picks_by_kernel(first)) {
		perf->path = first;
		return;
	}
	perf->over = first;
	perf->path = behind_script();
	for (int i = 1; first && !perf->path && (next = in_path("perf", i)); i++) {
		if (is_elf(next))
			perf->path = next;
		else
			free(next);
	}
	if (!perf->path) {
		perf->path = bundled();
		perf->first = perf->path && first;
		perf->over = NULL;
	}
}
