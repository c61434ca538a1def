// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The caller's state (environment, identity, limits, terminal), packed for the guest. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"
#include "vpmu.h"

static void item(struct buffer *out, uint32_t tag, const void *data, size_t len)
{
	static const char zeros[8];
	const struct channel_item i = { .tag = tag, .len = len };

	buffer_add(out, &i, sizeof(i));
	buffer_add(out, data, len);
	buffer_add(out, zeros, -len & 7);
}

static void string(struct buffer *out, uint32_t tag, const char *text)
{
	item(out, tag, text, strlen(text) + 1);
}

static void add_identity(struct buffer *out, bool root)
{
	uint32_t ids[2 + 65536];
	int n = 0;

	if (root) {
		item(out, CHANNEL_IDS, (uint32_t[]){ 0, 0 }, 8);
		return;
	}
	ids[0] = geteuid();
	ids[1] = getegid();
	n = getgroups(65536, ids + 2);
	item(out, CHANNEL_IDS, ids, 4 * (2 + (n > 0 ? (size_t)n : 0)));
}

static void add_limits(struct buffer *out)
{
	struct channel_rlimit l = { 0 };
	struct rlimit r;

	for (l.resource = 0; l.resource < RLIM_NLIMITS; l.resource++) {
		if (getrlimit(l.resource, &r))
			continue;
		l.soft = r.rlim_cur;
		l.hard = r.rlim_max;
		item(out, CHANNEL_RLIMIT, &l, sizeof(l));
	}
}

static void add_signals(struct buffer *out)
{
	uint64_t ignored = 0;
	struct sigaction a;

	for (int n = 1; n < NSIG; n++)
		if (!sigaction(n, NULL, &a) && a.sa_handler == SIG_IGN)
			ignored |= 1ull << (n - 1);
	item(out, CHANNEL_SIGNALS, &ignored, sizeof(ignored));
}

static void add_terminal(struct buffer *out, uint32_t flags)
{
	struct channel_tty tty = { .flags = flags };
	int fd = flags & CHANNEL_TTY_STDOUT ? 1 : 2;
	struct winsize size = { 0 };
	struct termios t;

	if (!flags || tcgetattr(fd, &t))
		return;
	ioctl(fd, TIOCGWINSZ, &size);
	tty.rows = size.ws_row;
	tty.columns = size.ws_col;
	tty.xpixel = size.ws_xpixel;
	tty.ypixel = size.ws_ypixel;
	tty.iflag = t.c_iflag;
	tty.oflag = t.c_oflag;
	tty.cflag = t.c_cflag;
	tty.lflag = t.c_lflag;
	/* The caller's own terminal does this unless it is raw. */
	if (!(flags & CHANNEL_TTY_STDIN)) {
		tty.oflag &= ~OPOST;
		tty.lflag &= ~ECHO;
	}
	memcpy(tty.cc, t.c_cc, sizeof(t.c_cc) < sizeof(tty.cc) ?
	       sizeof(t.c_cc) : sizeof(tty.cc));
	item(out, CHANNEL_TTY, &tty, sizeof(tty));
}

/* Bytes: a name of up to 255, a seed of 64, a time of 16, and the heads of the three. */
#define MOMENT_MAX 512

void job_moment(struct buffer *out)
{
	char name[256] = "", seed[64];
	struct timespec t;
	int64_t time[2];

	if (!gethostname(name, sizeof(name) - 1))
		string(out, CHANNEL_HOSTNAME, name);
	if (getrandom(seed, sizeof(seed), 0) == sizeof(seed))
		item(out, CHANNEL_SEED, seed, sizeof(seed));
	clock_gettime(CLOCK_REALTIME, &t);
	time[0] = t.tv_sec;
	time[1] = t.tv_nsec;
	item(out, CHANNEL_TIME, time, sizeof(time));
}

/* ---- a run that repeats */

/* Bytes of standard input that such a run takes. */
#define INPUT_MAX	(16u << 20)
#define TICK_NS		4000000u	/* the longest between two of a kernel's clock */

/* Says so if the end of the input is long in coming. */
static void await_input(bool *told)
{
	struct pollfd p = { .fd = 0, .events = POLLIN };

	if (!*told && !poll(&p, 1, 2000)) {
		say("--repeat reads standard input to its end before COMMAND starts (Ctrl-D ends "
		    "it; </dev/null for none)");
		*told = true;
	}
}

static void read_input(struct buffer *input)
{
	char data[65536];
	bool told = false;
	ssize_t n = 1;

	while (n) {
		await_input(&told);
		n = read(0, data, sizeof(data));
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			fail(EXIT_VPMU, "standard input: %s", strerror(errno));
		if (n > 0)
			buffer_add(input, data, n);
		if (input->len > INPUT_MAX)
			fail(EXIT_VPMU, "--repeat takes at most %uM of standard input: name a file "
			     "in the command", INPUT_MAX >> 20);
	}
}

/* Bytes that are random to the eye and the same for the same seed (splitmix64). */
static uint64_t next_word(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void job_same_moment(struct buffer *out, unsigned int seed, bool alone)
{
	const int64_t time[2] = { REPEAT_TIME };
	struct buffer input = { 0 };
	uint64_t state = seed, words[8];
	uint32_t delay;

	/* Nothing comes from a terminal. */
	if (!alone && !isatty(0))
		read_input(&input);
	if (input.len)
		say("%zu bytes of standard input belong to what this run repeats", input.len);
	item(out, CHANNEL_STDIN, input.data, input.len);
	buffer_free(&input);
	string(out, CHANNEL_HOSTNAME, "vpmu");
	for (int i = 0; i < 8; i++)
		words[i] = next_word(&state);
	item(out, CHANNEL_SEED, words, sizeof(words));
	item(out, CHANNEL_TIME, time, sizeof(time));
	delay = next_word(&state) % TICK_NS;
	item(out, CHANNEL_DELAY, &delay, sizeof(delay));
}

void job_alone(struct buffer *out)
{
	char name[256] = "";

	item(out, CHANNEL_STDIN, NULL, 0);
	if (!gethostname(name, sizeof(name) - 1))
		string(out, CHANNEL_HOSTNAME, name);
}

int job_file(const struct buffer *job)
{
	int fd = memfd_create("vpmu-job", MFD_CLOEXEC);
	size_t done = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && done < job->len) {
		n = write(fd, job->data + done, job->len - done);
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || done < job->len)
		fail(EXIT_VPMU, "no memory for the job: %s", strerror(errno));
	return fd;
}

/* The caller's PATH, with perf's directory if it is in none of PATH. */
static char *path_with(const struct perf *perf)
{
	const char *path = getenv("PATH"), *slash = perf->path ? strrchr(perf->path, '/') : NULL;
	int len = slash ? (int)(slash - perf->path) : 0;

	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	if (!slash || perf->over || !strncmp(perf->path, "/usr/bin/", 9))
		return xprintf("PATH=%s", path);
	if (perf->first)
		return xprintf("PATH=%.*s:%s", len, perf->path, path);
	return xprintf("PATH=%s:%.*s", path, len, perf->path);
}

/* Is @entry, NAME=VALUE, the variable @name? */
static bool names(const char *entry, const char *name)
{
	size_t n = strcspn(name, "=");

	return !strncmp(entry, name, n) && entry[n] == '=';
}

/*
 * PATH is the caller's, since it says which files the command is; and what --env names.
 * All the rest is the same for everybody.
 */
static void add_same_environment(struct buffer *out, const struct strings *env,
				 const struct perf *perf)
{
	static const char *const same[] = {
		"HOME=/", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "SHELL=/bin/sh", "TERM=dumb", "TZ=UTC0",
	};
	const char *value;
	bool given;
	char *text;

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		given = false;
		for (size_t j = 0; j < env->n; j++)
			given |= names(same[i], env->list[j]);
		if (!given)
			string(out, CHANNEL_ENV, same[i]);
	}
	text = path_with(perf);
	string(out, CHANNEL_ENV, text);
	free(text);
	for (size_t j = 0; j < env->n; j++) {
		value = getenv(env->list[j]);
		if (strchr(env->list[j], '=')) {
			string(out, CHANNEL_ENV, env->list[j]);
		} else if (value) {
			text = xprintf("%s=%s", env->list[j], value);
			string(out, CHANNEL_ENV, text);
			free(text);
		}
	}
}

/* ---- of any run */

static void add_environment(struct buffer *out, const struct perf *perf)
{
	char *path = path_with(perf);

	for (char **e = environ; *e; e++)
		string(out, CHANNEL_ENV, strncmp(*e, "PATH=", 5) ? *e : path);
	free(path);
}

static void add_perf(struct buffer *out, const struct perf *perf)
{
	struct buffer b = { 0 };

	if (!perf->path || !perf->over)
		return;
	buffer_add(&b, perf->path, strlen(perf->path) + 1);
	buffer_add(&b, perf->over, strlen(perf->over) + 1);
	item(out, CHANNEL_BIND, b.data, b.len);
	buffer_free(&b);
}

/* Is @dir one of those in PATH? */
static bool in_path(const char *dir)
{
	const char *path = getenv("PATH"), *end;
	size_t n = strlen(dir);

	for (; path && *path; path = end + (*end == ':')) {
		end = strchrnul(path, ':');
		if ((size_t)(end - path) == n && !strncmp(path, dir, n))
			return true;
	}
	return false;
}

/* Add @to at @path in the guest's overlay, unless it would be made in a shared directory. */
static void add_place(struct buffer *out, uint32_t tag, const char *to,
		      const char *path, const struct shares *shares)
{
	struct buffer b = { 0 };

	if (shares_hold(shares, path))
		return;
	buffer_add(&b, to, strlen(to) + 1);
	buffer_add(&b, path, strlen(path) + 1);
	item(out, tag, b.data, b.len);
	buffer_free(&b);
}

/* Add modprobe's directory, unless this machine runs the same kernel. */
static void add_modules(struct buffer *out, const struct shares *shares,
			const struct kernel *kernel)
{
	char *to = xprintf("%s/modules", kernel->dir);
	char *path = xprintf("/lib/modules/%s", kernel->release);
	char *dep = xprintf("%s/modules.dep", path);

	if (access(dep, R_OK))
		add_place(out, access(path, F_OK) ? CHANNEL_LINK : CHANNEL_BIND,
			  to, path, shares);
	free(dep);
	free(path);
	free(to);
}

/* Add the link in /run by which NixOS and Guix have their programs in PATH. */
static void add_system(struct buffer *out, const struct shares *shares)
{
	static const char path[] = "/run/current-system";
	char to[4096];
	ssize_t n = readlink(path, to, sizeof(to) - 1);

	if (n <= 0)
		return;
	to[n] = 0;
	add_place(out, CHANNEL_LINK, to, path, shares);
}

/* Add this program, for vpmu lost, in a directory of PATH. */
static void add_vpmu(struct buffer *out, const struct shares *shares)
{
	static const char *const dirs[] = { "/usr/local/bin", "/usr/bin", "/bin" };
	char self[4096], *path;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i = 0;

	while (i < 3 && (!in_path(dirs[i]) || shares_hold(shares, dirs[i])))
		i++;
	if (n <= 0 || i == 3)
		return;
	self[n] = 0;
	path = xprintf("%s/vpmu", dirs[i]);
	add_place(out, CHANNEL_LINK, self, path, shares);
	free(path);
}

static void add_state(struct buffer *out)
{
	uint32_t mask = umask(0);
	int32_t nice_ = getpriority(PRIO_PROCESS, 0);

	umask(mask);
	item(out, CHANNEL_UMASK, &mask, sizeof(mask));
	item(out, CHANNEL_NICE, &nice_, sizeof(nice_));
	add_limits(out);
	add_signals(out);
}

void job_message(struct buffer *out, char **command, const struct job_extra *extra)
{
	while (*command)
		string(out, CHANNEL_ARG, *command++);
	if (extra->repeat || extra->alone)
		add_same_environment(out, extra->env, extra->perf);
	else
		add_environment(out, extra->perf);
	add_perf(out, extra->perf);
	/* A run that repeats does not know where vpmu lies. */
	if (!extra->repeat)
		add_vpmu(out, extra->shares);
	add_modules(out, extra->shares, extra->kernel);
	add_system(out, extra->shares);
	string(out, CHANNEL_CWD, extra->shares->cwd);
	for (size_t i = 0; i < extra->shares->n; i++)
		string(out, CHANNEL_SHARE, extra->shares->list[i].path);
	add_identity(out, extra->root);
	if (!extra->repeat)
		add_state(out);
	if (extra->nested)
		item(out, CHANNEL_KVM, "", 0);
	if (extra->network)
		item(out, CHANNEL_NETWORK, "", 0);
	add_terminal(out, extra->tty);
	if (out->len > CHANNEL_MAX - MOMENT_MAX)
		fail(EXIT_NOEXEC, "arguments and environment of %zu bytes: %s",
		     out->len, strerror(E2BIG));
}
