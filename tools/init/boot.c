// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The boot, from the first process's start to the control channel. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/module.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

void boot_mount(void)
{
	mkdir("/dev", 0755);
	mkdir("/proc", 0555);
	mkdir("/sys", 0555);
	if (mount("devtmpfs", "/dev", "devtmpfs", 0, "mode=0755") && errno != EBUSY)
		die("cannot mount /dev: %m");
	if (mount("proc", "/proc", "proc", 0, NULL))
		die("cannot mount /proc: %m");
	if (mount("sysfs", "/sys", "sysfs", 0, NULL))
		die("cannot mount /sys: %m");
}

/*
 * Collect the parameters that the kernel's command line has for a module: QEMU names its
 * virtio-mmio devices there.
 */
static char *module_parameters(const char *module)
{
	static char line[8192], out[8192];
	size_t n = strlen(module), used = 0;
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, line, sizeof(line) - 1);

	close(fd);
	line[len > 0 ? len : 0] = 0;
	out[0] = 0;
	for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
		if (strncmp(word, module, n) || word[n] != '.')
			continue;
		used += snprintf(out + used, sizeof(out) - used, "%s ", word + n + 1);
	}
	return out;
}

/* The name that the module in file @path has in the kernel: - is _ there. */
static void module_name(char name[64], const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	snprintf(name, 64, "%.*s", (int)strcspn(base, "."), base);
	for (char *p = name; *p; p++)
		if (*p == '-')
			*p = '_';
}

/* Returns false, with errno, if the kernel does not take it. */
static bool load_module(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), flags, err = errno;
	size_t len = strlen(path);
	char name[64];

	if (fd >= 0) {
		module_name(name, path);
		flags = strcmp(path + len - 3, ".ko") ? MODULE_INIT_COMPRESSED_FILE : 0;
		err = syscall(SYS_finit_module, fd, module_parameters(name), flags) ? errno : 0;
		close(fd);
	}
	errno = err;
	return !err || err == EEXIST || err == ENODEV;
}

void boot_modules(void)
{
	char line[512];
	FILE *order = fopen("/order", "re");

	if (!order)
		return;
	while (fgets(line, sizeof(line), order)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] && !load_module(line))
			die("%s: %m", line);
	}
	fclose(order);
}

/* The last line of the kernel's log that begins with @prefix, or "". */
static const char *kernel_said(const char *prefix)
{
	static char said[512];
	char record[1024], *text;
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;

	for (;;) {
		n = read(fd, record, sizeof(record) - 1);
		if (n < 0 && errno == EPIPE) /* overwritten meanwhile: read the next one */
			continue;
		if (n <= 0)
			break;
		record[n] = 0;
		text = strchr(record, ';');
		if (!text || strncmp(text + 1, prefix, strlen(prefix)))
			continue;
		snprintf(said, sizeof(said), "%.*s", (int)strcspn(text + 1, "\n"), text + 1);
	}
	close(fd);
	return said;
}

void boot_driver(void)
{
	int fd = open("/" CHANNEL_DRIVER, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return;
	if (syscall(SYS_finit_module, fd, module_parameters("vpmu_guest"), 0)) {
		err = errno;
		die("%s does not load: %s. %s", CHANNEL_DRIVER, strerror(err),
		    kernel_said("vpmu_guest: "));
	}
	close(fd);
}

/* The module that drives this CPU's virtualization, or NULL. */
static const char *kvm_module(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & 1 << 5 /* VMX */)
		return "kvm_intel";
	if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && ecx & 1 << 2 /* SVM */)
		return "kvm_amd";
	return NULL;
}

/*
 * Load the modules of a line of modules.dep, in @dir. In front stands the one that is
 * wanted, at the end the one that needs no other. Returns NULL, or why one is not loaded.
 */
static const char *load_line(const char *dir, char *line)
{
	char *files[64], path[PATH_MAX];
	int n = 0;

	for (char *file = strtok(line, ": \n"); file && n < 64; file = strtok(NULL, ": \n"))
		files[n++] = file;
	while (n--) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[n]);
		if (!load_module(path))
			return strerror(errno);
	}
	return NULL;
}

/*
 * Load @module as modprobe(8) does, which the user's root need not have. Its options there
 * are the user's, not this guest's. Returns NULL, or why the module is not loaded.
 */
static const char *load_later(const char *module)
{
	const char *error = "this kernel does not have it";
	char dir[128], path[160], name[64], *line = NULL, *colon;
	struct utsname kernel;
	size_t cap = 0;
	FILE *dep;

	uname(&kernel);
	snprintf(dir, sizeof(dir), "/lib/modules/%s", kernel.release);
	snprintf(path, sizeof(path), "%s/modules.dep", dir);
	dep = fopen(path, "re");
	while (dep && getline(&line, &cap, dep) > 0) {
		colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = 0;
		module_name(name, line);
		if (strcmp(name, module))
			continue;
		*colon = ':';
		error = load_line(dir, line);
		break;
	}
	if (dep)
		fclose(dep);
	free(line);
	return error;
}

void boot_kvm(void)
{
	const char *module = kvm_module(), *error;

	if (!module)
		die("--nested: the guest's CPU has neither VMX nor SVM: take another --cpu");
	/* A kernel that has it built in may have no modules. */
	error = access("/dev/kvm", F_OK) ? load_later(module) : NULL;
	if (error || chmod("/dev/kvm", 0666))
		die("--nested: %s: %s. %s", module, error ? error : "no /dev/kvm",
		    kernel_said("kvm"));
}

/* ---- the network: QEMU's user network has these addresses */

#define CARD		"eth0"
#define ADDRESS		0x0a00020fu	/* 10.0.2.15 */
#define GATEWAY		0x0a000202u	/* 10.0.2.2, which is also the host's 127.0.0.1 */
#define NETMASK		0xffffff00u

static void set_address(struct sockaddr *to, uint32_t address)
{
	const struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(address),
	};

	memcpy(to, &in, sizeof(in));
}

void boot_network(void)
{
	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };
	struct ifreq card = { .ifr_name = CARD };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const char *error;

	if (access("/sys/class/net/" CARD, F_OK)) {
		error = load_later("virtio_net");
		if (error)
			die("--network: virtio_net: %s", error);
	}
	set_address(&card.ifr_addr, ADDRESS);
	if (ioctl(fd, SIOCSIFADDR, &card))
		die("--network: " CARD " takes no address: %m");
	set_address(&card.ifr_netmask, NETMASK);
	if (ioctl(fd, SIOCSIFNETMASK, &card))
		die("--network: " CARD " takes no netmask: %m");
	card.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &card))
		die("--network: " CARD " does not come up: %m");
	set_address(&route.rt_dst, 0);
	set_address(&route.rt_genmask, 0);
	set_address(&route.rt_gateway, GATEWAY);
	if (ioctl(fd, SIOCADDRT, &route))
		die("--network: no route: %m");
	close(fd);
}

/* The kernel counts what it had no route for, by IPv4: the twelfth number of the second line. */
bool boot_missed_network(void)
{
	static const char names[] = "Ip: Forwarding";
	unsigned long number = 0;
	char line[512], *next;
	FILE *f = fopen("/proc/net/snmp", "re");

	if (f && fgets(line, sizeof(line), f) && !strncmp(line, names, strlen(names)) &&
	    fgets(line, sizeof(line), f)) {
		next = line + strcspn(line, " ");
		for (int i = 0; i < 12; i++)
			number = strtoul(next, &next, 10);
	}
	if (f)
		fclose(f);
	return number > 0;
}

static int find_port(const char *name)
{
	static const char dir[] = "/sys/class/virtio-ports";
	char path[600], text[128];
	struct dirent *entry;
	DIR *ports = opendir(dir);
	int fd, found = -1;
	ssize_t len;

	while (ports && found < 0 && (entry = readdir(ports))) {
		snprintf(path, sizeof(path), "%s/%s/name", dir, entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		len = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[len > 0 ? len : 0] = 0;
		text[strcspn(text, "\n")] = 0;
		if (strcmp(text, name))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		found = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	}
	if (ports)
		closedir(ports);
	return found;
}

bool boot_option(const char *option)
{
	char line[8192];
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, line, sizeof(line) - 1);

	close(fd);
	line[n > 0 ? n : 0] = 0;
	for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
		if (!strcmp(word, option))
			return true;
	return false;
}

/* The ports appear when the device has answered, not when its module loads. */
int boot_port(const char *name)
{
	const struct timespec wait = { .tv_nsec = 500000 };
	int fd;

	for (int i = 0; i < 20000; i++) {
		fd = find_port(name);
		if (fd >= 0)
			return fd;
		nanosleep(&wait, NULL);
	}
	if (access("/sys/class/virtio-ports", F_OK))
		die("the guest's kernel has no virtio_console or virtio_pci, built in or as a "
		    "module: take another --kernel");
	die("no port %s", name);
}
