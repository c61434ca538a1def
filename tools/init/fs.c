// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The guest's file system: the host's, with the permitted directories writable. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>
#include <linux/random.h>

#include "init.h"

/*
 * With cache=loose the kernel writes a file's pages later, so that only fsync(2), or
 * syncfs(2) at the end, reports a full disk. cache=mmap would report it to write(2), but
 * lets read(2) and write(2) bypass the pages of a mapped file.
 */
#define OPTIONS_9P	"trans=virtio,version=9p2000.L,msize=512000,cache=loose"

/* The upper layer's file system, opened before it is covered. */
static int upper = -1;

/* The shared directories, open since they were mounted: syncfs(2) reports errors since then. */
static struct {
	const char *path;
	int fd;
} shares[CHANNEL_SHARES];
static unsigned int n_shares;

static void must_mount(const char *source, const char *target,
		       const char *type, unsigned long flags, const char *data)
{
	if (!mount(source, target, type, flags, data))
		return;
	if (errno == ENODEV && type)
		die("the guest's kernel has no %s, built in or as a module: take another --kernel",
		    type);
	die("cannot mount %s: %m", target);
}

static void may_mount(const char *source, const char *target,
		      const char *type, unsigned long flags, const char *data)
{
	mkdir(target, 0755);
	mount(source, target, type, flags, data);
}

static void make_path(const char *path)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		mkdir(copy, 0755);
		*p = '/';
	}
	mkdir(copy, 0755);
}

static void mount_root(void)
{
	mkdir("/host", 0755);
	mkdir("/rw", 0755);
	mkdir("/new", 0755);
	must_mount(CHANNEL_TAG_ROOT, "/host", "9p", MS_RDONLY, OPTIONS_9P);
	/* 70 % of memory; a command that fills it is told to ask for more. */
	must_mount("overlay", "/rw", "tmpfs", 0, "mode=0755,size=70%");
	mkdir("/rw/upper", 0755);
	mkdir("/rw/work", 0755);
	upper = open("/rw", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must_mount("overlay", "/new", "overlay", 0,
		   "lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work");
}

static void move_mount_to(const char *from, const char *to)
{
	mkdir(to, 0755);
	must_mount(from, to, NULL, MS_MOVE, NULL);
}

static void enter_root(void)
{
	move_mount_to("/dev", "/new/dev");
	move_mount_to("/proc", "/new/proc");
	move_mount_to("/sys", "/new/sys");
	if (chdir("/new"))
		die("cannot enter the root: %m");
	must_mount(".", "/", NULL, MS_MOVE, NULL);
	if (chroot(".") || chdir("/"))
		die("cannot enter the root: %m");
}

static void mount_kernel_trees(void)
{
	may_mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		  "mode=0620,gid=5,ptmxmode=0666");
	if (symlink("/proc/self/fd", "/dev/fd") ||
	    symlink("/proc/self/fd/0", "/dev/stdin") ||
	    symlink("/proc/self/fd/1", "/dev/stdout") ||
	    symlink("/proc/self/fd/2", "/dev/stderr"))
		die("no /dev/fd: %m");
	may_mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, "mode=0755");
	may_mount("debugfs", "/sys/kernel/debug", "debugfs", 0, "mode=0755");
	may_mount("cgroup2", "/sys/fs/cgroup", "cgroup2",
		  MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL);
	/* If modprobe could be found, the kernel would run it for this one. */
	may_mount("bpf", "/sys/fs/bpf", "bpf", 0, "mode=0700");
}

/* Mounted for each job, since tmpfs keeps times. */
static void mount_memory(void)
{
	may_mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	may_mount("run", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755");
	mkdir("/run/lock", 01777);
}

/* perf reads the tracepoints' numbers and formats as the caller. */
static void give_tracepoints(const struct job *job)
{
	char options[64];

	if (!job->ids[1])
		return;
	snprintf(options, sizeof(options), "mode=0755,gid=%u", job->ids[1]);
	mount(NULL, "/sys/kernel/tracing", NULL, MS_REMOUNT, options);
}

/*
 * Name QEMU's name server, which asks the host's. The host's own file may be a link into
 * /run, or name a server on its 127.0.0.1. The shares are not mounted yet.
 */
static void name_server(void)
{
	static const char path[] = "/etc/resolv.conf", text[] = "nameserver 10.0.2.3\n";
	int fd;

	mkdir("/etc", 0755);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		note("--network: names are not resolved: %s: %m", path);
	close(fd);
}

/*
 * With cache=loose kernels that know the option keep for good that a file was not there; the
 * host may have made it since.
 */
static void mount_share(const char *tag, const char *path)
{
	if (mount(tag, path, "9p", 0, OPTIONS_9P ",negtimeout=0"))
		must_mount(tag, path, "9p", 0, OPTIONS_9P);
}

static void mount_shares(const struct job *job)
{
	const struct channel_item *item = NULL;
	const char *path;
	char tag[32];

	while (n_shares < CHANNEL_SHARES && (item = job_item(job, CHANNEL_SHARE, item))) {
		path = (const char *)(item + 1);
		snprintf(tag, sizeof(tag), CHANNEL_TAG_SHARE, n_shares);
		make_path(path);
		mount_share(tag, path);
		shares[n_shares].path = path;
		shares[n_shares++].fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
}

static void bind_files(const struct job *job)
{
	const struct channel_item *item = NULL;
	const char *from, *to;

	while ((item = job_item(job, CHANNEL_BIND, item))) {
		from = (const char *)(item + 1);
		to = from + strlen(from) + 1;
		if (mount(from, to, NULL, MS_BIND, NULL))
			note("cannot put %s over %s: %m", from, to);
	}
}

static void make_links(const struct job *job)
{
	const struct channel_item *item = NULL;
	const char *to, *link;
	char dir[PATH_MAX];

	while ((item = job_item(job, CHANNEL_LINK, item))) {
		to = (const char *)(item + 1);
		link = to + strlen(to) + 1;
		snprintf(dir, sizeof(dir), "%s", link);
		make_path(dirname(dir));
		if (symlink(to, link) && errno != EEXIST)
			note("cannot make %s: %m", link);
	}
}

/*
 * Allow perf to all users, and without a throttle: a slow host must not cost a guest its
 * overflows. Set the rate before the percentage, as the kernel refuses the rate after
 * that.
 */
static void set_sysctls(void)
{
	static const char *const table[][2] = {
		{ "kernel/perf_event_max_sample_rate", "10000000" },
		{ "kernel/perf_cpu_time_max_percent", "0" },
		{ "kernel/perf_event_paranoid", "-1" },
		{ "kernel/kptr_restrict", "0" },
		{ "kernel/dmesg_restrict", "0" },
		{ "kernel/yama/ptrace_scope", "0" },
		{ "net/ipv4/ping_group_range", "0 2147483647" },
	};
	char path[128];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		snprintf(path, sizeof(path), "/proc/sys/%s", table[i][0]);
		write_file(path, table[i][1]);
	}
}

static void loopback_up(void)
{
	struct ifreq req = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (!ioctl(fd, SIOCGIFFLAGS, &req)) {
		req.ifr_flags |= IFF_UP;
		ioctl(fd, SIOCSIFFLAGS, &req);
	}
	close(fd);
}

/*
 * Prepare what is the same for every job: done here it costs a guest from a snapshot
 * nothing, while everything later is translated again in each run.
 */
void fs_prepare(void)
{
	mount_kernel_trees();
	set_sysctls();
	loopback_up();
}

static void set_clock(const struct job *job)
{
	const struct channel_item *item = job_item(job, CHANNEL_TIME, NULL);
	struct timespec now;

	if (!item || item->len != 16)
		return;
	now.tv_sec = ((const int64_t *)(item + 1))[0];
	now.tv_nsec = ((const int64_t *)(item + 1))[1];
	clock_settime(CLOCK_REALTIME, &now);
}

static void set_random(const struct job *job)
{
	const struct channel_item *item = job_item(job, CHANNEL_SEED, NULL);
	struct rand_pool_info *pool;
	int fd;

	if (!item)
		return;
	pool = malloc(sizeof(*pool) + item->len);
	fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
	if (pool && fd >= 0) {
		pool->entropy_count = item->len * 8;
		pool->buf_size = item->len;
		memcpy(pool->buf, item + 1, item->len);
		ioctl(fd, RNDADDENTROPY, pool);
		ioctl(fd, RNDRESEEDCRNG);
	}
	close(fd);
	free(pool);
}

void fs_enter(const struct job *job)
{
	const struct channel_item *name = job_item(job, CHANNEL_HOSTNAME, NULL);

	set_clock(job);
	set_random(job);
	if (name && name->len)
		sethostname((const char *)(name + 1), name->len - 1);
	mount_root();
	enter_root();
	mount_memory();
	give_tracepoints(job);
	if (job_item(job, CHANNEL_NETWORK, NULL))
		name_server();
	mount_shares(job);
	bind_files(job);
	make_links(job);
}

bool fs_overlay_full(void)
{
	struct statfs s;

	return upper >= 0 && !fstatfs(upper, &s) &&
		(s.f_bfree < 2 || s.f_ffree < 2);
}

bool fs_out_of_memory(void)
{
	static const char name[] = "oom_kill ";
	char line[256];
	unsigned long kills = 0;
	FILE *f = fopen("/proc/vmstat", "re");

	while (f && !kills && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kills = strtoul(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return kills > 0;
}

bool fs_leave(void)
{
	bool written = true;

	for (unsigned int i = 0; i < n_shares; i++) {
		if (!syncfs(shares[i].fd))
			continue;
		note("not everything could be written into %s: %m", shares[i].path);
		written = false;
	}
	return written;
}
