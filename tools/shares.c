// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The directories that the guest shares with this machine: what is written there stays. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vpmu.h"

static bool below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

bool of_kernel(const char *path)
{
	return (below(path, "/proc") || below(path, "/sys") || below(path, "/dev")) &&
		!below(path, "/dev/shm");
}

/* Returns the reason why the guest has a tree of its own at @path, or NULL. */
static const char *taken(const char *path)
{
	if (!strcmp(path, "/"))
		return "it is the root";
	if (of_kernel(path))
		return "it belongs to this machine's kernel";
	return NULL;
}

/* ---- the current directory */

/* Returns the reason why the current directory cannot be shared, or NULL. */
static const char *not_shared(const char *path)
{
	const char *why = taken(path);
	struct stat here, there;

	if (why)
		return why;
	if (stat(".", &here) || stat(path, &there))
		return strerror(errno);
	if (here.st_ino != there.st_ino || here.st_dev != there.st_dev)
		return "another directory is in its place";
	return NULL;
}

static void add_current(struct shares *s, const char *as)
{
	char *path = getcwd(NULL, 0);
	const char *why;
	int fd = -1;

	s->cwd = "/";
	if (!path || *path != '/') {
		say("the current directory is not shared: %s; COMMAND starts in /",
		    path ? "it cannot be reached" : strerror(errno));
		return;
	}
	why = not_shared(path);
	if (!why) {
		fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		why = fd < 0 ? strerror(errno) : NULL;
	}
	s->cwd = as && !why ? as : path;
	if (why)
		say("%s is not shared: %s; what COMMAND writes stays in the guest",
		    path, why);
	else
		s->list[s->n++] = (struct share){ s->cwd, path, fd };
}

/* ---- others */

/*
 * One directory at two places would be two file systems of the guest's, each with its own
 * cache of it; and a place in a shared directory would be made there.
 */
static void check_apart(const struct share *as, const char *dir, const char *path)
{
	if (below(path, as->from) || below(as->from, path) || below(path, as->path) ||
	    below(as->path, path))
		fail(EXIT_VPMU, "--write %s: it is in or around %s or %s, which --as makes one: "
		     "name another directory, or leave --write away", dir, as->from, as->path);
}

/* Drop those that are in @path, and say whether one has @path in it. */
static bool held(struct shares *s, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (below(path, s->list[i].from))
			return true;
		if (below(s->list[i].from, path))
			close(s->list[i].fd);
		else
			s->list[n++] = s->list[i];
	}
	s->n = n;
	return false;
}

static void __attribute__((noreturn)) refuse(const char *dir, const char *why)
{
	fail(EXIT_VPMU, "--write %s: %s; needed is a directory that is there and that you can "
	     "write, but /, /proc, /sys or /dev", dir, why);
}

static void add_other(struct shares *s, const char *dir, bool as)
{
	char *path = realpath(dir, NULL);
	int fd;

	if (!path)
		refuse(dir, strerror(errno));
	if (taken(path))
		refuse(dir, taken(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || faccessat(fd, ".", W_OK, AT_EACCESS))
		refuse(dir, strerror(errno));
	if (as)
		check_apart(&s->list[0], dir, path);
	if (held(s, path)) {
		close(fd);
		return;
	}
	if (s->n == CHANNEL_SHARES)
		fail(EXIT_VPMU, "--write %s: more than %d directories: name one that holds several",
		     dir, CHANNEL_SHARES);
	s->list[s->n++] = (struct share){ path, path, fd };
}

void shares_choose(struct shares *s, const struct strings *dirs, const char *as)
{
	*s = (struct shares){ 0 };
	add_current(s, as);
	if (as && !s->n)
		fail(EXIT_VPMU, "--as %s: the current directory is not shared", as);
	for (size_t i = 0; i < dirs->n; i++)
		add_other(s, dirs->list[i], as);
}

static bool in_one(const struct shares *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++)
		if (below(path, s->list[i].path))
			return true;
	return false;
}

bool shares_hold(const struct shares *s, const char *path)
{
	char *dir = strdup(path), *real, *full;
	size_t n = strlen(dir);
	bool found = in_one(s, path);

	/* A link to a directory, as /bin may be one, leads to where its files are. */
	while (!(real = realpath(dir, NULL)) && n > 1) {
		while (dir[--n] != '/')
			;
		dir[n] = 0;
	}
	full = real ? xprintf("%s%s", real, path + n) : NULL;
	if (full)
		found |= in_one(s, full);
	free(full);
	free(real);
	free(dir);
	return found;
}
