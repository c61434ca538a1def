// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Snapshots of a guest that has booted and waits for its first job, kept in the cache, so
 * that a run need not boot. They contain no data of a user; the time, randomness and
 * identity of a run come with its job.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <jansson.h>

#include "vpmu.h"

#define PREFIX		"snapshot-"
#define PART		".part" /* suffix of a snapshot being written, with the writer's pid */
#define KEPT		3
#define SAVE_MS		20000
#define LOAD_MS		10000
#define BOOT_MS		180000

/* FNV-1a by words. The input is this machine's and user's own, so a collision gains nothing. */
static void mix(uint64_t *hash, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		*hash = (*hash ^ word) * 0x100000001b3ull;
		/* Without this the upper bytes would not reach the lower ones. */
		*hash ^= *hash >> 32;
	}
	while (len--)
		*hash = (*hash ^ *p++) * 0x100000001b3ull;
}

static void mix_file(uint64_t *hash, const char *path)
{
	struct stat s = { 0 };

	stat(path, &s);
	mix(hash, &s.st_size, sizeof(s.st_size));
	mix(hash, &s.st_mtim, sizeof(s.st_mtim));
	mix(hash, &s.st_ino, sizeof(s.st_ino));
}

/*
 * The key has everything that a device or a page of the guest depends on, but not the
 * shared directories, only their number.
 */
static uint64_t key_of(const struct qemu *qemu, const struct kernel *kernel,
		       const struct machine *m, int initrd)
{
	struct qemu_fds fds = { .trace = -1 };
	struct machine any = *m; /* a seed is of the run */
	uint64_t hash = 0xcbf29ce484222325ull;
	char data[65536], **argv;
	off_t at = 0;
	ssize_t n;

	any.seed = 0;
	for (size_t i = 0; i < any.shares.n; i++)
		any.shares.list[i].fd = 0;
	for (argv = qemu_command(qemu, kernel, &any, &fds, NULL); *argv; argv++)
		mix(&hash, *argv, strlen(*argv) + 1);
	mix_file(&hash, qemu->binary);
	mix_file(&hash, kernel->vmlinux);
	while ((n = pread(initrd, data, sizeof(data), at)) > 0) {
		mix(&hash, data, n);
		at += n;
	}
	return hash;
}

char *snapshot_path(const struct qemu *qemu, const struct kernel *kernel,
		    const struct machine *m, int initrd)
{
	return xprintf("%s/" PREFIX "%016llx", cache_dir(),
		       (unsigned long long)key_of(qemu, kernel, m, initrd));
}

enum state { OTHER, WANTED, FAILED };

static enum state state_of(struct qmp *qmp, const char *command, const char *want)
{
	json_t *reply = qmp_ask(qmp, command, 1000);
	const char *state = json_string_value(json_object_get(reply, "status"));
	enum state of = !state ? OTHER : !strcmp(state, want) ? WANTED :
			!strcmp(state, "failed") ? FAILED : OTHER;

	json_decref(reply);
	return of;
}

/* Is a signal pending that ends vpmu? session.c blocks and reads it later. */
static bool ending(void)
{
	sigset_t set;

	return !sigpending(&set) &&
		(sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGINT) == 1 ||
		 sigismember(&set, SIGHUP) == 1 || sigismember(&set, SIGQUIT) == 1);
}

static bool await(struct qmp *qmp, const char *command, const char *want, int ms)
{
	const struct timespec step = { .tv_nsec = 2000000 };
	uint64_t end = now_ns() + ms * 1000000ull;
	enum state state = OTHER;

	while (qmp->fd >= 0 && now_ns() < end && !ending()) {
		state = state_of(qmp, command, want);
		if (state != OTHER)
			break;
		nanosleep(&step, NULL);
	}
	return state == WANTED;
}

static bool tell(struct qmp *qmp, const char *command, json_t *arguments)
{
	json_t *reply;
	char *error;

	reply = qmp_call(qmp, command, arguments, 5000, &error);
	free(error);
	json_decref(reply);
	return reply;
}

/* Is a live process writing it? */
static bool in_work(const char *name)
{
	const char *part = strstr(name, PART);
	long pid = part ? strtol(part + strlen(PART), NULL, 10) : 0;

	return pid > 0 && pid <= INT_MAX && (!kill((pid_t)pid, 0) || errno == EPERM);
}

static bool before(struct timespec a, struct timespec b)
{
	return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

/*
 * Remove the least recently used of more than are kept. Returns false if there are no
 * more.
 */
static bool drop_one(int dir, DIR *names)
{
	struct timespec oldest = { 0 };
	char name[256] = "";
	struct dirent *e;
	struct stat s;
	int n = 0;

	while ((e = readdir(names))) {
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) || in_work(e->d_name))
			continue;
		if (strstr(e->d_name, PART)) {
			unlinkat(dir, e->d_name, 0);
			continue;
		}
		if (fstatat(dir, e->d_name, &s, 0))
			continue;
		if (!n++ || before(s.st_mtim, oldest)) {
			oldest = s.st_mtim;
			snprintf(name, sizeof(name), "%s", e->d_name);
		}
	}
	return n > KEPT && !unlinkat(dir, name, 0);
}

static void drop_old(void)
{
	DIR *dir = opendir(cache_dir());

	while (dir && drop_one(dirfd(dir), dir))
		rewinddir(dir);
	if (dir)
		closedir(dir);
}

/*
 * Each page has its place in the file: pages of zeros, which most are, are not stored,
 * and the others are read in large pieces.
 */
static json_t *mapped_ram(void)
{
	return json_pack("{s:[{s:s, s:b}]}", "capabilities", "capability", "mapped-ram",
			 "state", 1);
}

static bool sync_path(const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags | O_CLOEXEC);
	bool done = fd >= 0 && (!mode || !fchmod(fd, mode)) && !fsync(fd);

	if (fd >= 0)
		close(fd);
	return done;
}

/*
 * A name in the cache is that of a complete snapshot, even after a power failure: the
 * file is renamed when the data is on the disk.
 */
static bool publish(const char *part, const char *path)
{
	return sync_path(part, O_RDWR, 0600) && !rename(part, path) &&
		sync_path(cache_dir(), O_RDONLY | O_DIRECTORY, 0);
}

bool snapshot_there(const char *path)
{
	struct stat s;

	return !access(path, R_OK) && !stat(path, &s) && only_ours(&s);
}

/* While a guest is being saved QEMU refuses it its files, with EBUSY. */
static bool saved_in_time(struct qmp *qmp)
{
	if (await(qmp, "query-migrate", "completed", SAVE_MS))
		return true;
	if (tell(qmp, "migrate_cancel", NULL))
		await(qmp, "query-migrate", "cancelled", SAVE_MS);
	return false;
}

/* Save a stopped guest. */
static bool save(struct qmp *qmp, const char *path)
{
	char *part = xprintf("%s" PART "%d", path, getpid()), *uri = xprintf("file:%s", part);
	bool saved;

	saved = tell(qmp, "migrate-set-capabilities", mapped_ram()) &&
		tell(qmp, "migrate-set-parameters", json_pack("{s:i}", "max-bandwidth", 0)) &&
		tell(qmp, "migrate", json_pack("{s:s}", "uri", uri)) &&
		saved_in_time(qmp) && publish(part, path);
	if (saved)
		drop_old();
	else
		unlink(part);
	free(part);
	free(uri);
	return saved;
}

bool snapshot_go_on(struct qmp *qmp)
{
	return tell(qmp, "cont", NULL);
}

bool snapshot_save(struct qmp *qmp, const char *path)
{
	if (tell(qmp, "stop", NULL))
		save(qmp, path);
	return snapshot_go_on(qmp);
}

/* The state of a guest that has written to CHANNEL_STOP_PORT. */
#define STOPPED_ITSELF	"guest-panicked"

bool snapshot_stopped(struct qmp *qmp)
{
	return await(qmp, "query-status", STOPPED_ITSELF, BOOT_MS);
}

bool snapshot_take(struct qmp *qmp, const char *path)
{
	return snapshot_stopped(qmp) && save(qmp, path);
}

/* It continues from the state in which it was saved. */
bool snapshot_loaded(struct qmp *qmp, bool repeats)
{
	return await(qmp, "query-status", repeats ? STOPPED_ITSELF : "paused", LOAD_MS) &&
		snapshot_go_on(qmp);
}
