// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The choice of a QEMU, and its command line. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "channel.h"
#include "vpmu.h"

/*
 * The kernel's options. The self-tests of its ciphers take a third of the
 * start, patching out every LOCK prefix a tenth; the watchdog would hold a
 * counter. The guest is told the rate of its TSC, since it cannot measure it
 * on a busy host.
 */
#define KERNEL_OPTIONS	"rdinit=/init console=ttyS0 quiet panic=-1 reboot=t " \
			"cryptomgr.notests mitigations=off noreplace-smp " \
			"nmi_watchdog=0 nowatchdog no_timer_check " \
			"tsc=reliable random.trust_cpu=on"

/*
 * A guest on AMD finds KVM's vPMU although CPUID has none (pmu=off), and would register
 * it as perf's PMU "cpu" instead of the paravirtual one. QEMU disables the vPMU only if
 * it serves the paravirtual PMU itself.
 */
#define NO_ARCH_PMU	" initcall_blacklist=init_hw_perf_events"

/* rate of the TSC in guests of our QEMU that have a PMU */
#define GUEST_TSC_KHZ	400000ull

static void set_prefix(struct qemu *qemu, const char *prefix)
{
	qemu->binary = xprintf("%s/bin/qemu-system-x86_64", prefix);
	qemu->firmware = xprintf("%s/share/qemu", prefix);
	if (access(qemu->firmware, R_OK)) {
		free(qemu->firmware);
		qemu->firmware = NULL;
	}
}

/* Is it the QEMU of the package qemu-vpmu? */
static bool find_packaged(struct qemu *qemu)
{
	char *beside = installed_beside("lib/vpmu/qemu");
	bool found;

	if (!beside)
		return false;
	set_prefix(qemu, beside);
	found = runs(qemu->binary);
	free(beside);
	qemu->patched = found;
	if (!found)
		qemu->binary = qemu->firmware = NULL;
	return found;
}

/* VPMU_QEMU is a program, or the directory with bin/ and share/. */
static bool find_given(struct qemu *qemu)
{
	const char *given = getenv("VPMU_QEMU");
	struct stat s;

	if (!given || !*given)
		return false;
	if (!stat(given, &s) && S_ISDIR(s.st_mode))
		set_prefix(qemu, given);
	else
		qemu->binary = strdup(given);
	if (!runs(qemu->binary))
		fail(EXIT_VPMU, "VPMU_QEMU: %s is no program that runs", qemu->binary);
	return true;
}

static char *build_script(void)
{
	char *script;

	cache_dir();
	if (!source_file("qemu/build", &script))
		fail(EXIT_VPMU, "%s is missing; set VPMU_QEMU to a qemu-system-x86_64", script);
	return script;
}

void qemu_look(struct qemu *qemu)
{
	char *argv[] = { NULL, "-sandbox", "on", "--version", NULL };

	memset(qemu, 0, sizeof(*qemu));
	qemu->sandbox = true;
	if (find_given(qemu)) {
		argv[0] = qemu->binary; /* ours names itself by its version */
	} else if (find_packaged(qemu)) {
		return;
	} else {
		argv[0] = build_script();
		argv[1] = "--print";
		argv[2] = NULL;
	}
	script_start(&qemu->look, argv);
}

/* A QEMU that was built without seccomp refuses -sandbox. */
static int ask_version(struct qemu *qemu, struct buffer *out)
{
	char *argv[] = { qemu->binary, "--version", NULL };

	say("%s has no sandbox: system calls that no guest needs stay allowed to it. Needed are a "
	    "kernel with CONFIG_SECCOMP_FILTER and a QEMU that was configured with "
	    "--enable-seccomp, as vpmu's own is", qemu->binary);
	qemu->sandbox = false;
	buffer_drop(out, out->len);
	return run_script(argv, out);
}

static int build(struct buffer *out)
{
	char *argv[] = { build_script(), NULL };

	buffer_drop(out, out->len);
	return run_script(argv, out);
}

bool qemu_found(struct qemu *qemu, bool cached)
{
	struct buffer out = { 0 };
	int status;

	if (!qemu->look.pid)
		return true;
	status = script_end(&qemu->look, &out);
	if (qemu->binary) {
		if (status)
			status = ask_version(qemu, &out);
		qemu->patched = !status && strstr(out.data, "(vpmu)");
		status = 0;
	} else {
		if (status && !cached)
			status = build(&out);
		if (status && !cached)
			exit(EXIT_VPMU);
		if (!status)
			set_prefix(qemu, out.data);
		qemu->patched = !status;
	}
	buffer_free(&out);
	return !status;
}

bool qemu_find(struct qemu *qemu, bool cached)
{
	qemu_look(qemu);
	return qemu_found(qemu, cached);
}

/* Our QEMU has KVM; any other that VPMU_QEMU names is asked. */
void qemu_need_kvm(const struct qemu *qemu)
{
	char *argv[] = { qemu->binary, "-accel", "help", NULL };
	struct buffer out = { 0 };

	if (access("/dev/kvm", R_OK | W_OK))
		fail(EXIT_VPMU, "--accel kvm: /dev/kvm: %s; needed is a host that has KVM. "
		     "vpmu run --nested gives one to a guest",
		     strerror(errno));
	if (!qemu->patched && (run_script(argv, &out) || !strstr(out.data, "kvm")))
		fail(EXIT_VPMU, "--accel kvm: found %s, which has no KVM; needed is vpmu's "
		     "own QEMU: unset VPMU_QEMU", qemu->binary);
	buffer_free(&out);
}

static void read_tsc(uint64_t *tsc, uint64_t *ns)
{
#ifdef __x86_64__
	*tsc = __rdtsc();
#endif
	*ns = now_ns();
}

/* Accurate to about 10 ppm: the earlier the first reading, the better. */
static uint64_t host_tsc_khz(void)
{
	const struct timespec wait = { .tv_nsec = 20000000 };
	uint64_t tsc0 = 0, tsc1 = 0, ns0, ns1;

	read_tsc(&tsc0, &ns0);
	nanosleep(&wait, NULL);
	read_tsc(&tsc1, &ns1);
	return tsc1 == tsc0 ? 1000000 : (tsc1 - tsc0) * 1000000 / (ns1 - ns0);
}

/* Version 1 of Icelake-Server has a model number that Linux does not take
 * for an Icelake. */
const char *qemu_cpu(const char *name)
{
	static const char *const alias[][2] = {
		{ "Icelake-Server", "Icelake-Server-v6" },
		{ "icelake-server", "Icelake-Server-v6" },
		{ "sapphirerapids", "SapphireRapids" },
		{ "graniterapids", "GraniteRapids" },
		{ "clearwaterforest", "ClearwaterForest" },
		{ "skylake-server", "Skylake-Server" },
	};

	for (size_t i = 0; i < sizeof(alias) / sizeof(alias[0]); i++)
		if (!strcmp(name, alias[i][0]))
			return alias[i][1];
	return name;
}

/* QEMU's models of AMD's and Hygon's CPUs. */
static bool is_amd(const char *cpu)
{
	static const char *const names[] = {
		"EPYC", "Dhyana", "Opteron", "phenom", "athlon", "qemu64", "max",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(cpu, names[i], strlen(names[i])))
			return true;
	return false;
}

/* ---- the command line */

struct args {
	char **list;
	size_t n;
};

static void add(struct args *args, char *arg)
{
	args->list = realloc(args->list, (args->n + 2) * sizeof(char *));
	if (!args->list)
		fail(EXIT_VPMU, "no memory");
	args->list[args->n++] = arg;
	args->list[args->n] = NULL;
}

static void option(struct args *args, const char *name, char *value)
{
	add(args, xprintf("-%s", name));
	add(args, value);
}

/* QEMU wants a comma within a value twice. */
static char *quoted_value(const char *text)
{
	struct buffer b = { 0 };

	for (; *text; text++)
		buffer_add(&b, *text == ',' ? ",," : text, *text == ',' ? 2 : 1);
	return b.data ? b.data : strdup("");
}

/* The user watches or changes the guest by these. */
static void add_own(struct args *args, const struct machine *m)
{
	char *path;

	if (m->gdb)
		option(args, "gdb", xprintf("tcp:127.0.0.1:%u", m->gdb));
	if (m->qmp) {
		path = quoted_value(m->qmp);
		option(args, "qmp", xprintf("unix:%s,server=on,wait=off", path));
		free(path);
	}
	for (size_t i = 0; i < m->qemu_args.n; i++)
		add(args, strdup(m->qemu_args.list[i]));
}

/* QEMU waits for the reader of a log, but for that of no other output. */
static void add_output(struct args *args, const char *id, int fd)
{
	option(args, "chardev", xprintf("file,id=%s,path=/dev/null,logfile=/dev/fd/%d,logappend=on",
					id, fd));
}

/* The first serial line; QEMU itself copies it to the user's file. */
static void add_console(struct args *args, const struct machine *m, const struct qemu_fds *fds)
{
	char *file = m->console ? quoted_value(m->console) : NULL;

	if (fds->alone && !file)
		add_output(args, "console", 2);
	else if (fds->alone)
		option(args, "chardev", xprintf("file,id=console,path=/dev/null,logfile=%s", file));
	else
		option(args, "chardev", xprintf("socket,id=console,fd=%d%s%s",
						fds->port[PORT_CONSOLE],
						file ? ",logfile=" : "", file ? file : ""));
	option(args, "serial", strdup("chardev:console"));
	free(file);
}

static void add_ports(struct args *args, const struct qemu_fds *fds)
{
	static const struct {
		const char *id;
		int alone;
	} ports[] = {
		[PORT_CONTROL] = { "control", 6 }, [PORT_STDIN] = { "stdin", -1 },
		[PORT_STDOUT] = { "stdout", 1 }, [PORT_STDERR] = { "stderr", 2 },
	};
	const char *id;

	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		id = ports[i].id;
		if (!fds->alone)
			option(args, "chardev", xprintf("socket,id=%s,fd=%d", id, fds->port[i]));
		else if (ports[i].alone < 0)
			option(args, "chardev", xprintf("file,id=%s,path=/dev/null", id));
		else
			add_output(args, id, ports[i].alone);
		option(args, "device", xprintf("virtserialport,chardev=%s,name=vpmu.%s", id, id));
	}
}

static void add_9p(struct args *args, const struct machine *m, const char *id,
		   const char *path, const char *tag, bool readonly)
{
	char *quoted = quoted_value(path);

	option(args, "fsdev", xprintf("local,id=%s,path=%s,security_model=none,"
				      "multidevs=remap%s%s", id, quoted,
				      readonly ? ",readonly=on" : "",
				      m->repeat ? ",repeatable=on" : ""));
	option(args, "device", xprintf("virtio-9p-pci,fsdev=%s,mount_tag=%s%s", id, tag,
				       m->repeat ? ",ioeventfd=off" : ""));
	free(quoted);
}

static void add_share(struct args *args, const struct machine *m, unsigned int n)
{
	const struct share *s = &m->shares.list[n];
	char *id = xprintf("share%u", n), *tag = xprintf(CHANNEL_TAG_SHARE, n);
	char *path = s->fd < 0 ? strdup(s->from) : xprintf("/proc/self/fd/%d", s->fd);

	add_9p(args, m, id, path, tag, false);
	free(path);
	free(tag);
	free(id);
}

/*
 * Time is instructions, and what is random has a seed. The guest stops itself where it
 * reads its job, and no one would continue it when it is alone; devices answer a request before
 * it executes another instruction.
 */
static void add_repeat(struct args *args, const struct machine *m, const struct qemu_fds *fds)
{
	if (m->repeat || fds->alone)
		option(args, "fw_cfg", xprintf("name=" CHANNEL_JOB_FILE ",file=/proc/self/fd/%d",
					       fds->alone ? 0 : fds->job));
	if (!m->repeat)
		return;
	option(args, "icount", strdup("shift=0,sleep=off"));
	option(args, "seed", xprintf("%u", m->seed));
	option(args, "rtc", strdup("base=" REPEAT_DATE ",clock=vm"));
	option(args, "device", strdup("pvpanic"));
	option(args, "action", strdup(fds->alone ? "panic=none" : "panic=pause"));
}

/* Does a module of the host serve the paravirtual PMU? If not, QEMU does. */
static bool host_serves(const struct machine *m)
{
	return m->kvm && m->pv && !access("/sys/module/vpmu_kvm", F_OK);
}

/* The CPU with its PMU. check=off: features that TCG lacks are switched off silently. */
static char *cpu_option(const struct machine *m, bool patched, int trace)
{
	struct buffer b = { 0 };
	char *filter = m->filter ? quoted_value(m->filter) : NULL;

	buffer_print(&b, "%s,check=off,pmu=%s", qemu_cpu(m->cpu), m->arch ? "on" : "off");
	if (m->pv && (!m->kvm || (patched && !host_serves(m))))
		buffer_print(&b, ",pmu-pv=%s", m->pv);
	if (m->nested && !m->kvm)
		buffer_print(&b, ",%s=on", is_amd(m->cpu) ? "svm" : "vmx");
	if (m->uarch)
		buffer_print(&b, ",pmu-uarch=on%s%s", *m->uarch ? ",pmu-uarch-params=" : "",
			     m->uarch);
	if (m->policy)
		buffer_print(&b, ",pmu-policy=%s", m->policy);
	if (filter)
		buffer_print(&b, ",pmu-filter=%s", filter);
	if (m->trace)
		buffer_print(&b, ",pmu-trace=/proc/self/fd/%d", trace);
	free(filter);
	return b.data;
}

static void add_machine(struct args *args, const struct qemu *qemu,
			const struct machine *m, int trace)
{
	if (qemu->sandbox)
		option(args, "sandbox", strdup("on,obsolete=deny,elevateprivileges=deny,"
					       "spawn=deny,resourcecontrol=deny"));
	if (qemu->firmware)
		option(args, "L", strdup(qemu->firmware));
	add(args, strdup("-nodefaults"));
	add(args, strdup("-no-user-config"));
	add(args, strdup("-no-reboot"));
	option(args, "display", strdup("none"));
	option(args, "machine", strdup("pc,acpi=off,usb=off,i8042=off,hpet=off,vmport=off"));
	option(args, "accel", strdup(m->kvm ? "kvm" : "tcg"));
	if (m->asks)
		option(args, "name", strdup("vpmu,debug-threads=on")); /* lend.c finds them */
	option(args, "bios", strdup("qboot.rom"));
	if (m->paused)
		add(args, strdup("-S"));
	option(args, "cpu", cpu_option(m, qemu->patched, trace));
	option(args, "smp", xprintf("%u", m->smp));
	option(args, "m", xprintf("%lluM", (unsigned long long)(m->memory_bytes >> 20)));
}

static void add_kernel(struct args *args, const struct qemu *qemu,
		       const struct kernel *kernel, const struct machine *m,
		       const struct qemu_fds *fds)
{
	bool ours = qemu->patched && (m->arch || m->pv);
	char *tsc;

	/*
	 * With a PMU, CPUID.15H gives an Intel guest the rate; KVM has its own way.
	 * Otherwise measuring the rate takes long, and fails on a busy host.
	 */
	if (m->kvm || (ours && !is_amd(m->cpu)))
		tsc = strdup("");
	else
		tsc = xprintf(" tsc_early_khz=%llu", ours ? GUEST_TSC_KHZ :
			      (unsigned long long)host_tsc_khz());
	option(args, "kernel", strdup(kernel->vmlinux));
	option(args, "initrd", fds->alone ? strdup(fds->alone)
					  : xprintf("/proc/self/fd/%d", fds->initrd));
	option(args, "append", xprintf("%s%s%s%s%s%s%s%s", KERNEL_OPTIONS, tsc,
				       m->repeat ? " " CHANNEL_REPEAT : "",
				       fds->alone ? " " CHANNEL_ALONE : "",
				       host_serves(m) && !m->arch ? NO_ARCH_PMU : "",
				       m->verbose || m->console ? " loglevel=7" : " loglevel=1",
				       m->append ? " " : "", m->append ? m->append : ""));
	free(tsc);
}

char **qemu_command(const struct qemu *qemu, const struct kernel *kernel,
		    const struct machine *m, const struct qemu_fds *fds,
		    const char *snapshot)
{
	struct args args = { 0 };

	add(&args, strdup(qemu->binary));
	add_machine(&args, qemu, m, fds->trace);
	add_kernel(&args, qemu, kernel, m, fds);
	if (!fds->alone) {
		option(&args, "chardev", xprintf("socket,id=qmp,fd=%d", fds->port[PORT_QMP]));
		option(&args, "mon", strdup("chardev=qmp,mode=control"));
	}
	add_console(&args, m, fds);
	add_repeat(&args, m, fds);
	/* A guest that is alone may end when a port has taken what it wrote. */
	option(&args, "device", xprintf("virtio-serial-pci,max_ports=8%s",
					m->repeat || fds->alone ? ",ioeventfd=off" : ""));
	add_ports(&args, fds);
	add_9p(&args, m, "root", "/", CHANNEL_TAG_ROOT, true);
	for (unsigned int i = 0; i < m->shares.n; i++)
		add_share(&args, m, i);
	if (m->network) {
		option(&args, "netdev", strdup("user,id=net,ipv6=off"));
		option(&args, "device", strdup("virtio-net-pci,netdev=net,romfile="));
	}
	if (snapshot) {
		option(&args, "global", strdup("migration.mapped-ram=on"));
		option(&args, "incoming", xprintf("file:%s", snapshot));
	}
	add_own(&args, m);
	return args.list;
}
