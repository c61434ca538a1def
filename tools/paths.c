// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Paths of the cache and of the project's own files. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vpmu.h"

#ifndef VPMU_SRCDIR
#error "VPMU_SRCDIR: where the source tree is"
#endif
#ifndef VPMU_DATADIR
#define VPMU_DATADIR "/usr/share/vpmu"
#endif

bool only_ours(const struct stat *s)
{
	return (s->st_uid == geteuid() || !s->st_uid) &&
		(S_ISLNK(s->st_mode) || !(s->st_mode & (S_IWGRP | S_IWOTH)));
}

/* Like check_cache in cache.sh: programs in the cache are executed. */
static void check_cache(const char *dir)
{
	struct stat s;

	if (lstat(dir, &s) || (only_ours(&s) && (stat(dir, &s) || only_ours(&s))))
		return;
	fail(EXIT_VPMU, "found %s, which belongs to user %u and has mode %o; needed is a cache "
	     "that belongs to you or root and that only its owner can write: chmod go-w, "
	     "remove it, or set XDG_CACHE_HOME", dir, s.st_uid, s.st_mode & 07777);
}

const char *cache_dir(void)
{
	static char *dir;
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (dir)
		return dir;
	if (base && *base == '/')
		dir = xprintf("%s/vpmu", base);
	else if (home && *home == '/')
		dir = xprintf("%s/.cache/vpmu", home);
	else
		fail(EXIT_VPMU, "no place for the cache: HOME is not set; "
		     "set XDG_CACHE_HOME to a directory that you can write");
	check_cache(dir);
	return dir;
}

void cache_make(void)
{
	char *path = strdup(cache_dir()), *slash = path;

	while (slash) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = 0;
		/* Later steps report a directory that is missing. */
		(void)mkdir(path, 0755);
		if (slash)
			*slash = '/';
	}
	free(path);
}

/* A prefix may have been moved since the build, or installed with DESTDIR. */
char *installed_beside(const char *name)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return NULL;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	return xprintf("%s/../%s", self, name);
}

/*
 * Look beside the installed program, then in the source tree that it was built from, then
 * in the configured prefix.
 */
const char *source_file(const char *name, char **out)
{
	char *share = xprintf("share/vpmu/%s", name);

	*out = installed_beside(share);
	free(share);
	if (*out && !access(*out, R_OK))
		return *out;
	free(*out);
	*out = xprintf("%s/%s", VPMU_SRCDIR, name);
	if (!access(*out, R_OK))
		return *out;
	free(*out);
	*out = xprintf("%s/%s", VPMU_DATADIR, name);
	return access(*out, R_OK) ? NULL : *out;
}

bool is_name(const char *text)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789";
	size_t n = strspn(text, first);

	if (!n)
		return false;
	while (text[n] && (strchr("._+~-", text[n]) || strchr(first, text[n])))
		n++;
	return n <= 64 && !text[n];
}

bool runs(const char *path)
{
	struct stat s;

	return !stat(path, &s) && S_ISREG(s.st_mode) && !access(path, X_OK);
}

static void read_all(int fd, struct buffer *out)
{
	char text[4096];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0 ||
	       (n < 0 && errno == EINTR))
		if (n > 0)
			buffer_add(out, text, n);
	while (out->len && out->data[out->len - 1] == '\n')
		out->data[--out->len] = 0;
}

/* Its messages go to our standard error; it must not read the command's input. */
void script_start(struct script *script, char *const *argv)
{
	int fds[2], null;

	if (pipe2(fds, O_CLOEXEC))
		fail(EXIT_VPMU, "no pipe: %s", strerror(errno));
	script->pid = fork();
	if (script->pid < 0)
		fail(EXIT_VPMU, "no process: %s", strerror(errno));
	if (!script->pid) {
		null = open("/dev/null", O_RDONLY);
		dup2(null, 0);
		dup2(fds[1], 1);
		if (say_to)
			dup2(fileno(say_to), 2);
		execv(argv[0], argv);
		fprintf(stderr, "vpmu: %s: %s\n", argv[0], strerror(errno));
		_exit(EXIT_VPMU);
	}
	close(fds[1]);
	script->out = fds[0];
}

int script_end(struct script *script, struct buffer *out)
{
	int status;

	buffer_add(out, "", 0);
	read_all(script->out, out);
	close(script->out);
	while (waitpid(script->pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_VPMU;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_script(char *const *argv, struct buffer *out)
{
	struct script script;

	script_start(&script, argv);
	return script_end(&script, out);
}
