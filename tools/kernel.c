// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The guest's kernel in the cache, and the initramfs made of its modules. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel.h"
#include "vpmu.h"

/* The exit status of tools/guest-kernel --print for what is not cached. */
#define NOT_CACHED	1

/*
 * A path, whether or not there is such a file, or SUITE, SUITE/FLAVOUR or a release. A
 * directory is no kernel, and may have a suite's name.
 */
static bool names_file(const char *which)
{
	const char *slash = strchr(which, '/');
	struct stat s;

	if (!stat(which, &s) && !S_ISDIR(s.st_mode))
		return true;
	return slash && (!is_name(slash + 1) || *which == '/' || *which == '.');
}

/* Run tools/guest-kernel; it looks into the cache before anything else. */
static int ask_script(struct kernel *kernel, const char *which,
		      const char *modules, bool print)
{
	struct buffer out = { 0 };
	char *argv[8] = { 0 }, *script;
	bool file = which && names_file(which);
	int n = 0, status;

	if (!source_file("tools/guest-kernel", &script))
		fail(EXIT_VPMU, "%s is missing: is vpmu installed completely?", script);
	argv[n++] = script;
	if (print)
		argv[n++] = "--print";
	if (file)
		argv[n++] = "--from";
	if (which)
		argv[n++] = (char *)which;
	if (modules) {
		argv[n++] = "--modules";
		argv[n++] = (char *)modules;
	}
	status = run_script(argv, &out);
	free(script);
	if (status && status != NOT_CACHED)
		return status;
	kernel->dir = out.data;
	kernel->vmlinux = xprintf("%s/vmlinux", out.data);
	return status;
}

static char *read_text(const char *dir, const char *name)
{
	char *path = xprintf("%s/%s", dir, name), *text = NULL;
	FILE *f = fopen(path, "re");
	size_t cap = 0;

	free(path);
	if (!f)
		return NULL;
	if (getdelim(&text, &cap, 0, f) < 0) {
		free(text);
		text = NULL;
	}
	fclose(f);
	return text;
}

static void read_release(struct kernel *kernel)
{
	kernel->release = read_text(kernel->dir, "release");
	if (!kernel->release)
		fail(EXIT_VPMU, "%s is damaged; remove it", kernel->dir);
	kernel->release[strcspn(kernel->release, "\n")] = 0;
	if (!is_name(kernel->release))
		fail(EXIT_VPMU, "%s/release does not name a release of Linux: remove %s",
		     kernel->dir, kernel->dir);
}

/* A bundle has a kernel, which is taken if no other is asked for. */
static bool bundled(struct kernel *kernel, const char *which, const char *modules)
{
	char *beside = which || modules ? NULL : installed_beside("lib/vpmu/kernel");

	kernel->dir = beside ? realpath(beside, NULL) : NULL;
	free(beside);
	kernel->bundled = kernel->dir;
	if (!kernel->dir)
		return false;
	cache_make(); /* otherwise the script does */
	kernel->vmlinux = xprintf("%s/vmlinux", kernel->dir);
	read_release(kernel);
	return true;
}

void kernel_find(struct kernel *kernel, const char *which, const char *modules)
{
	int status;

	cache_dir();
	if (bundled(kernel, which, modules))
		return;
	status = ask_script(kernel, which, modules, false);
	if (status)
		exit(EXIT_VPMU);
	read_release(kernel);
}

bool kernel_cached(struct kernel *kernel, const char *which)
{
	if (bundled(kernel, which, NULL))
		return true;
	if (ask_script(kernel, which, NULL, true))
		return false;
	read_release(kernel);
	return true;
}

void kernel_find_dry(struct kernel *kernel, const char *which, const char *modules)
{
	int status;

	if (which && names_file(which)) {
		kernel_find(kernel, which, modules);
		return;
	}
	cache_dir();
	if (bundled(kernel, which, modules))
		return;
	status = ask_script(kernel, which, modules, true);
	if (status && status != NOT_CACHED)
		exit(EXIT_VPMU);
	kernel->release = NULL;
	if (!status)
		read_release(kernel);
}

char *kernel_driver(const struct kernel *kernel, bool cached)
{
	struct buffer out = { 0 };
	char *script = xprintf("%s/vpmu_guest.ko", kernel->dir), *argv[4] = { 0 };
	int status, n = 0;

	if (!access(script, R_OK))
		return script; /* a bundle's */
	free(script);
	if (!source_file("tools/guest-module", &script))
		fail(EXIT_VPMU, "%s is missing: is vpmu installed completely?", script);
	argv[n++] = script;
	if (cached)
		argv[n++] = "--print";
	argv[n++] = kernel->dir;
	status = run_script(argv, &out);
	free(script);
	if (status && !cached)
		exit(EXIT_VPMU);
	if (status)
		buffer_free(&out);
	return status ? NULL : out.data;
}

/* ---- the initramfs: cpio's "newc" format */

static void cpio_entry(struct buffer *b, const char *name, unsigned int mode,
		       const void *data, size_t len)
{
	static const char zeros[4];

	buffer_print(b, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		     0, mode, 0, 0, 1, 0, (unsigned int)len, 0, 0, 0, 0,
		     (unsigned int)strlen(name) + 1, 0);
	buffer_add(b, name, strlen(name) + 1);
	buffer_add(b, zeros, -b->len & 3);
	buffer_add(b, data, len);
	buffer_add(b, zeros, -b->len & 3);
}

static void cpio_file(struct buffer *b, const char *name, unsigned int mode,
		      const char *path)
{
	struct stat s;
	void *data;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &s) || !s.st_size)
		fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
	data = mmap(NULL, s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED)
		fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
	cpio_entry(b, name, S_IFREG | mode, data, s.st_size);
	munmap(data, s.st_size);
}

static void cpio_modules(struct buffer *b, const struct kernel *kernel)
{
	char *order = read_text(kernel->dir, "order"), *line, *path;

	if (!order)
		return;
	cpio_entry(b, "order", S_IFREG | 0444, order, strlen(order));
	cpio_entry(b, "modules", S_IFDIR | 0755, NULL, 0);
	for (line = strtok(order, "\n"); line; line = strtok(NULL, "\n")) {
		path = xprintf("%s/%s", kernel->dir, line);
		cpio_file(b, line, 0444, path);
		free(path);
	}
	free(order);
}

/* The init lies beside this program, or where it is installed. */
static char *find_init(void)
{
	char self[4096], *path;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = 0;
		*strrchr(self, '/') = 0;
		path = xprintf("%s/vpmu-init", self);
		if (runs(path))
			return path;
		free(path);
		path = xprintf("%s/tools/vpmu-init", self);
		if (runs(path))
			return path;
		free(path);
		path = xprintf("%s/../libexec/vpmu/vpmu-init", self);
		if (runs(path))
			return path;
		free(path);
	}
	fail(EXIT_VPMU, "vpmu-init is missing beside %s: run make", n > 0 ? self : "vpmu");
}

static bool write_initramfs(int fd, const struct kernel *kernel, const char *driver)
{
	struct buffer b = { 0 };
	char *init = find_init();
	size_t done = 0;
	ssize_t n = 1;
	bool written;

	cpio_file(&b, "init", 0755, init);
	cpio_modules(&b, kernel);
	if (driver)
		cpio_file(&b, CHANNEL_DRIVER, 0444, driver);
	cpio_entry(&b, "TRAILER!!!", 0, NULL, 0);
	while (fd >= 0 && n > 0 && done < b.len) {
		n = write(fd, b.data + done, b.len - done);
		done += n > 0 ? (size_t)n : 0;
	}
	written = fd >= 0 && done == b.len;
	free(init);
	buffer_free(&b);
	return written;
}

int kernel_initramfs(const struct kernel *kernel, const char *driver)
{
	int fd = memfd_create("vpmu-initramfs", 0);

	if (!write_initramfs(fd, kernel, driver))
		fail(EXIT_VPMU, "cannot write the initramfs: %s", strerror(errno));
	return fd;
}

/* It lies beside its kernel and goes with it; a bundle's directory may be read-only. */
char *kernel_initramfs_file(const struct kernel *kernel, const char *driver)
{
	char *path = xprintf("%s/initramfs%s", kernel->bundled ? cache_dir() : kernel->dir,
			     driver ? "-pv" : "");
	char *part = xprintf("%s.part%d", path, getpid());
	int fd;

	if (!kernel->release)
		return path;
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (!write_initramfs(fd, kernel, driver) || close(fd) || rename(part, path)) {
		unlink(part);
		fail(EXIT_VPMU, "--dry-run keeps an initramfs: %s: %s", path, strerror(errno));
	}
	free(part);
	return path;
}
