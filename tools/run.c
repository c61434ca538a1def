// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu run: runs a command in a guest that has a PMU. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <jansson.h>
#include <vpmu/arch.h>

#include "channel.h"
#include "vpmu.h"

static const char usage[] =
"Usage: vpmu run [options] [--] COMMAND [ARG]...\n"
"\n"
"Runs COMMAND in a guest that has a performance monitoring unit. The guest's\n"
"file system is this machine's: writes stay in the guest's memory, but for\n"
"those into the current directory, which are real, and into what --write names.\n"
"COMMAND runs as you, with your environment; its streams, signals and exit\n"
"status are vpmu's.\n"
"\n"
"  vpmu run -- perf stat -e instructions,branches ./program\n"
"  vpmu run --smp 2 -- sh -c 'perf record -g ./program && perf report --stdio'\n";

struct options {
	const char *accel, *cpu, *smp, *memory, *pmu, *kernel, *modules, *append, *uarch;
	const char *output, *stats, *policy, *filter, *trace, *console, *gdb, *qmp;
	const char *seed, *as;
	struct strings host_events, qemu_args, env, writes;
	bool root, nested, network, dry_run, verbose, no_snapshot, repeat, twice;
};

static struct options options;

static const struct option_def defs[] = {
	{ "accel", 0, "tcg|kvm", "what executes the guest: QEMU (default), or KVM with its PMU",
	  &options.accel },
	{ "cpu", 0, "MODEL", "the guest's CPU (Icelake-Server; with kvm, host)", &options.cpu },
	{ "smp", 0, "N", "number of its CPUs (1)", &options.smp },
	{ "memory", 'm', "SIZE", "its memory (1G)", &options.memory },
	{ "pmu", 0, "KIND", "arch (default), pv[,abi=2010], both or none", &options.pmu },
	{ "uarch", 0, "on|user|off", "model caches, TLBs, branch prediction, cycles; user: of "
	  "programs alone, so that runs repeat (off)", &options.uarch },
	{ "policy", 0, "POLICY", "who owns the counters: direct, shared (default), mediated",
	  &options.policy },
	{ "host-event", 0, "SPEC...", "an event of the host's own; may be repeated",
	  &options.host_events },
	{ "event-filter", 0, "SPEC", "which events the guest may count", &options.filter },
	{ "trace", 0, "FILE", "write who had which counter when, for vpmu timeline",
	  &options.trace },
	{ "kernel", 0, "FILE|SUITE", "its kernel (this Debian's own)", &options.kernel },
	{ "modules", 0, "DIR", "modules for --kernel FILE", &options.modules },
	{ "append", 0, "ARGS", "more options for its kernel", &options.append },
	{ "repeat", 0, NULL, "the same run each time, to the instruction: every count repeats",
	  &options.repeat },
	{ "seed", 0, "N", "with --repeat: another such run, N from 0 (0)", &options.seed },
	{ "env", 0, "NAME[=VALUE]...", "with --repeat: a variable for COMMAND; may be repeated",
	  &options.env },
	{ "twice", 0, NULL, "with --repeat: run it two times, and show where the runs part",
	  &options.twice },
	{ "as", 0, "DIR", "with --repeat: the current directory's path in the guest", &options.as },
	{ "write", 0, "DIR...", "COMMAND may write this directory of the machine, too; may be "
	  "repeated", &options.writes },
	{ "no-snapshot", 0, NULL, "boot, not from a booted guest in the cache, and keep none",
	  &options.no_snapshot },
	{ "root", 0, NULL, "run COMMAND as root of the guest", &options.root },
	{ "nested", 0, NULL, "the guest has KVM, with SVM or VMX, and 2G of memory",
	  &options.nested },
	{ "network", 0, NULL, "the guest reaches what you reach, this machine's 127.0.0.1 too",
	  &options.network },
	{ "gdb", 0, "[=PORT]", "wait for a debugger on 127.0.0.1 before the boot (1234)",
	  &options.gdb },
	{ "qmp", 0, "PATH", "a monitor (QMP) of your own, on a Unix socket", &options.qmp },
	{ "console", 0, "FILE", "write the guest kernel's log there", &options.console },
	{ "qemu-arg", 0, "ARG...", "an argument for QEMU, after vpmu's; may be repeated",
	  &options.qemu_args },
	{ "output", 'o', "FILE", "vpmu's own messages go there", &options.output },
	{ "stats", 0, "FILE", "write what is known of the run, as JSON", &options.stats },
	{ "dry-run", 0, NULL, "print a command for sh that boots the guest without vpmu",
	  &options.dry_run },
	{ "verbose", 'v', NULL, "show the guest kernel's log", &options.verbose },
	{ NULL, 0, NULL, NULL, NULL },
};

bool run_has_option(const char *text)
{
	size_t len = text ? strcspn(text, " =") : 0;

	for (const struct option_def *d = defs; len > 2 && d->name; d++)
		if (strlen(d->name) == len - 2 && !strncmp(text + 2, d->name, len - 2))
			return true;
	return false;
}

/*
 * KIND[,abi=2010]: the version of the paravirtual PMU from the proposal of 2010 is
 * offered only if it is asked for.
 */
static void set_pmu(struct machine *m, const char *text)
{
	size_t len = strcspn(text, ",");
	bool pv = !strncmp(text, "pv", len) && len == 2;
	bool both = !strncmp(text, "both", len) && len == 4;
	bool arch = !strncmp(text, "arch", len) && len == 4;
	bool none = !strncmp(text, "none", len) && len == 4;

	if (!pv && !both && !arch && !none)
		fail(EXIT_VPMU, "--pmu %s: it is arch, pv, both or none", text);
	if (text[len] && !pv && !both)
		fail(EXIT_VPMU, "--pmu %s: %s has no options", text, arch ? "arch" : "none");
	if (text[len] && strcmp(text + len, ",abi=2010"))
		fail(EXIT_VPMU, "--pmu %s: found '%s', needed abi=2010 or nothing", text,
		     text + len + 1);
	m->pmu = text;
	m->arch = arch || both;
	m->pv = !pv && !both ? NULL : text[len] ? "v1" : "v2";
}

char *uarch_option(const char *text)
{
	const char *more = text ? strchrnul(text, ',') : "";
	size_t len = text ? (size_t)(more - text) : 0;
	bool user = len == 4 && !strncmp(text, "user", len);
	char *params, *p;

	if (!text || !strcmp(text, "off"))
		return NULL;
	if (!user && (len != 2 || strncmp(text, "on", len)))
		fail(EXIT_VPMU, "--uarch %s: it is on, user or off, on and user with "
		     "parameters after a comma", text);
	more += !user && *more;
	params = xprintf("%s%s", user ? "feed=user:index=linear" : "", more);
	for (p = strchr(params, ','); p; p = strchr(p, ','))
		*p = ':';
	return params;
}

static void set_machine(struct machine *m, const struct options *o)
{
	m->kvm = o->accel && !strcmp(o->accel, "kvm");
	m->cpu = o->cpu ? o->cpu : m->kvm ? "host" : "Icelake-Server";
	m->smp = o->smp ? option_number("smp", o->smp, 1, 255) : 1;
	m->nested = o->nested;
	m->network = o->network;
	m->repeat = o->repeat;
	m->seed = o->seed ? option_number("seed", o->seed, 0, INT_MAX) : 0;
	m->memory_bytes = option_size("memory", o->memory ? o->memory : o->nested ? "2G" : "1G");
	set_pmu(m, o->pmu ? o->pmu : "arch");
	m->append = o->append;
	m->policy = o->policy;
	m->filter = o->filter;
	m->uarch = uarch_option(o->uarch);
	m->trace = o->trace;
	m->console = o->console;
	m->qmp = o->qmp;
	m->qemu_args = o->qemu_args;
	if (o->gdb)
		m->gdb = option_number("gdb", *o->gdb ? o->gdb : "1234", 1, 65535);
	m->asks = m->kvm && m->arch && !m->pv && kvm_module_there();
	m->paused = o->host_events.n || m->asks || m->gdb;
	m->verbose = o->verbose;
}

/* These options need QEMU to execute the guest and to count. */
static void check_kvm(const struct options *o, const struct machine *m)
{
	if (o->accel && !m->kvm && strcmp(o->accel, "tcg"))
		fail(EXIT_VPMU, "--accel %s: it is tcg or kvm", o->accel);
	if (m->uarch && (m->kvm || !(m->arch || m->pv)))
		fail(EXIT_VPMU, "--uarch on models what QEMU executes, for the guest's PMU: "
		     "leave --%s away", m->kvm ? "accel kvm" : "pmu none");
	if (m->kvm && (o->policy || o->filter || o->trace || o->host_events.n))
		fail(EXIT_VPMU, "--policy, --host-event, --event-filter and --trace are of "
		     "--accel tcg: with kvm it is the host's perf that counts");
	if (m->kvm && m->pv && strchr(m->pmu, ','))
		fail(EXIT_VPMU, "--pmu %s: with --accel kvm the host says which versions "
		     "it has", m->pmu);
}

/* Refuse devices by which something comes at an instruction that depends on the host. */
static void check_repeat(const struct options *o, const struct machine *m)
{
	const char *other = m->kvm ? "accel kvm" : o->network ? "network" :
			    m->gdb ? "gdb" : o->qmp ? "qmp" :
			    o->console ? "console" : o->verbose ? "verbose" :
			    o->trace ? "trace" : o->host_events.n ? "host-event" : NULL;

	if (!o->repeat && (o->seed || o->env.n || o->as || o->twice))
		fail(EXIT_VPMU, "--%s needs --repeat",
		     o->seed ? "seed" : o->as ? "as" : o->twice ? "twice" : "env");
	if (!o->repeat)
		return;
	if (o->as && (*o->as != '/' || !strcmp(o->as, "/") || of_kernel(o->as)))
		fail(EXIT_VPMU, "--as %s: needed is an absolute path, and none of /proc, /sys and "
		     "/dev", o->as);
	if (other)
		fail(EXIT_VPMU, "--repeat: a run with --%s does not repeat", other);
	if (m->smp > 1)
		fail(EXIT_VPMU, "--repeat: found --smp %u, needed is one CPU, on which threads "
		     "take turns", m->smp);
}

static void check_options(const struct options *o, const struct machine *m)
{
	check_kvm(o, m);
	if (m->memory_bytes < 128 << 20)
		fail(EXIT_VPMU, "--memory %s: a guest needs at least 128M", o->memory);
	if (!m->arch && !m->pv && (o->policy || o->filter || o->trace ||
					o->host_events.n))
		fail(EXIT_VPMU, "--policy, --host-event, --event-filter and --trace need "
		     "a PMU, and --pmu none has none");
	if (o->policy && strcmp(o->policy, "direct") && strcmp(o->policy, "shared") &&
	    strcmp(o->policy, "mediated"))
		fail(EXIT_VPMU, "--policy %s: it is direct, shared or mediated", o->policy);
	if (o->policy && !strcmp(o->policy, "direct") && o->host_events.n)
		fail(EXIT_VPMU, "--policy direct: there is no perf subsystem of the host "
		     "that could count a --host-event");
	if (strchr(m->cpu, ' '))
		fail(EXIT_VPMU, "--cpu '%s': not a model's name", m->cpu);
	if (o->modules && !o->kernel)
		fail(EXIT_VPMU, "--modules needs --kernel FILE");
	check_repeat(o, m);
}

/* ---- what the user watches the guest by: all of it is refused before the guest runs */

static void check_port(unsigned int port)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	/* QEMU sets it too: connections of an earlier run may still be closing. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		fail(EXIT_VPMU, "--gdb: port %u of 127.0.0.1: %s; name another one from 1024 up, "
		     "as in --gdb=12345", port, strerror(errno));
	close(fd);
}

static void check_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (!*path || strlen(path) >= sizeof(address.sun_path))
		fail(EXIT_VPMU, "--qmp: the path has %zu bytes, and that of a Unix socket has 1 to "
		     "%zu: name one in a directory such as /tmp", strlen(path),
		     sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		fail(EXIT_VPMU, "--qmp %s: %s", path, errno == EADDRINUSE ?
		     "there is such a file: remove it, or name another one" : strerror(errno));
	close(fd);
	unlink(path);
}

static void check_console(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		fail(EXIT_VPMU, "--console %s: %s", path, strerror(errno));
	fclose(file);
}

static void check_watching(const struct machine *m)
{
	if (m->gdb)
		check_port(m->gdb);
	if (m->console)
		check_console(m->console);
	if (m->qmp)
		check_socket(m->qmp);
}

/* ---- after the command */

/* "; --uarch on counts 0x412e, 0x1d0": the option that counts some of them. */
static void add_cure(struct buffer *line, const json_t *list)
{
	const char *cure = NULL, *of;
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one) {
		of = json_string_value(json_object_get(one, "cure"));
		if (!run_has_option(of) || (cure && strcmp(of, cure)))
			continue;
		buffer_print(line, cure ? ", %s%s" : "; %s counts %s", cure ? "" : of,
			     json_string_value(json_object_get(one, "select")));
		cure = of;
	}
}

/*
 * Reports what the guest programmed and no counter counted. QEMU lists it under "uncounted";
 * one without our patches does not know the query. A paravirtual PMU has refused such
 * events, while an architectural one counts 0.
 */
static void report_uncounted(const json_t *query, const struct machine *m)
{
	/* Version 1 cannot report to the guest that an event lost its counter. */
	bool v1 = m->pv && !strcmp(m->pv, "v1");
	const json_t *list = json_object_get(query, "uncounted");
	struct buffer line = { 0 };
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one) {
		const char *name = json_string_value(json_object_get(one, "name"));

		buffer_print(&line, "%s%s", i ? ", " : "",
			     json_string_value(json_object_get(one, "select")));
		if (name)
			buffer_print(&line, " (%s)", name);
	}
	if (i >= VPMU_UNCOUNTED_MAX)
		buffer_string(&line, ", and perhaps more");
	add_cure(&line, list);
	if (i)
		say("these events were not counted%s%s: %s",
		    v1 ? ", or not all of the time" : "",
		    m->arch ? "; their 0 is not a count" : "", line.data);
	buffer_free(&line);
}

/* perf says no more than "No such device or address". */
static void tell_memory(char **command)
{
	const char *slash = strrchr(command[0], '/');

	if (strcmp(slash ? slash + 1 : command[0], "perf") || !command[1])
		return;
	if (!strcmp(command[1], "mem"))
		say("perf mem needs an address for each sample: --uarch on takes it; a period, as "
		    "in perf mem record -c 1000, makes that faster");
	else if (!strcmp(command[1], "c2c"))
		say("perf c2c needs an address for each sample: --uarch on takes it, but no cache "
		    "of the model knows of another CPU's, so it finds no line that two CPUs write");
}

static void tell_outcome(const struct outcome *out, char **command,
			 const struct machine *m)
{
	unsigned long long mib = m->memory_bytes >> 20;

	if (out->noexec)
		say("%s: %s", command[0], strerror(out->noexec));
	if (out->flags & CHANNEL_EXIT_FULL)
		say("the guest's writable overlay was full: files outside the "
		    "current directory are kept in memory; --write DIR keeps those in DIR on "
		    "this machine, and more than %lluM fit with --memory %lluM", mib, 2 * mib);
	if (out->flags & CHANNEL_EXIT_OOM)
		say("the guest had too little memory and its kernel killed a "
		    "process; more than %lluM with --memory %lluM", mib, 2 * mib);
	if (out->exited && WIFSIGNALED(out->status) && WTERMSIG(out->status) == SIGILL)
		say("%s ended by an illegal instruction: programs built with "
		    "-march=native for what the guest's CPU lacks (as AVX-512) "
		    "cannot run in it", command[0]);
	if (out->exited && out->status && out->flags & CHANNEL_EXIT_NETWORK)
		say("the guest has no network but its own loopback: --network gives it one");
	if (out->exited && out->status && !m->uarch)
		tell_memory(command);
}

/* ---- this machine's memory, of which a guest takes what it has used once */

/* MiB of a guest: QEMU's translations and its own data need some of @there, too. */
static unsigned long long fitting(uint64_t there)
{
	unsigned long long mib = there >> 20, own = 256 + mib / 8;

	return mib < own + 128 ? 128 : mib - own;
}

static void check_memory(const struct machine *m)
{
	const char *whose;
	uint64_t there = memory_there(&whose);

	if (m->memory_bytes > there)
		say("--memory asks for %lluM, and there are %lluM (%s): a guest that uses more is "
		    "killed; --memory %lluM fits", (unsigned long long)m->memory_bytes >> 20,
		    (unsigned long long)there >> 20, whose, fitting(there));
}

/* The kernel does not say which process it has killed. */
static void tell_killed(const struct outcome *out, const struct machine *m, uint64_t kills)
{
	const char *whose;
	uint64_t there;

	if (out->qemu_killed_by != SIGKILL || memory_kills() == kills)
		return;
	there = memory_there(&whose);
	say("this machine's kernel has killed for memory meanwhile (OOM killer): the guest may use "
	    "%lluM, and there are %lluM (%s); needed is more, or a guest that fits: --memory %lluM",
	    (unsigned long long)m->memory_bytes >> 20, (unsigned long long)there >> 20, whose,
	    fitting(there < m->memory_bytes ? there : m->memory_bytes));
}

/* Resources that QEMU is started with. */
struct start {
	struct qemu qemu;
	struct kernel kernel;
	char *driver;		/* driver of the paravirtual PMU, for the guest's kernel, or NULL */
	int job;		/* the job of a run that repeats, or -1 */
};

/* QEMU's answers about the run when the command has ended; NULL if unknown. */
struct report {
	json_t *version;	/* query-version */
	json_t *vpmu;		/* x-query-vpmu */
	json_t *host_events;	/* x-query-vpmu-host-events */
	char *error;		/* why one of the last two is missing */
	char *arch;		/* the architectural PMU that the host's module serves, or NULL */
};

static json_t *ask(struct report *r, struct qmp *qmp, const char *command)
{
	char *error;
	json_t *reply = qmp_call(qmp, command, NULL, QMP_PATIENCE_MS, &error);

	if (!reply && !r->error)
		r->error = xprintf("%s: %s", command, error);
	free(error);
	return reply;
}

static void ask_qemu(struct report *r, struct qmp *qmp, const struct options *o)
{
	r->vpmu = ask(r, qmp, "x-query-vpmu");
	if (o->host_events.n)
		r->host_events = ask(r, qmp, "x-query-vpmu-host-events");
	if (o->stats)
		r->version = qmp_ask(qmp, "query-version", QMP_PATIENCE_MS);
}

/* An unwritable file is refused before the guest runs. */
static FILE *open_stats(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		fail(EXIT_VPMU, "--stats %s: %s", path, strerror(errno));
	return file;
}

/* Returns false after saying why it could not write all of it. */
static bool write_stats(FILE *file, const char *path, const struct outcome *out,
			const struct machine *m, const struct start *s,
			const struct report *report, bool restored)
{
	bool written;
	json_t *j = json_pack(
		"{s:b, s:f, s:f, s:f, s:f, s:s, s:s, s:s, s:i, s:I, s:s, s:s, s:I, s:I, s:O*, s:O*,"
		" s:O*, s:s*, s:s*, s:s*, s:s*, s:s}",
		"exited", out->exited,
		"boot_ms", out->boot_ns / 1e6,
		"start_ms", out->start_ns / 1e6,
		"end_ms", out->end_ns / 1e6,
		"guest_ms", out->wall_ns / 1e6,
		"accel", m->kvm ? "kvm" : "tcg",
		"cpu", qemu_cpu(m->cpu), "pmu", m->pmu,
		"smp", (int)m->smp, "memory_bytes", (json_int_t)m->memory_bytes,
		"kernel", s->kernel.release, "qemu", s->qemu.binary,
		"stdout_bytes", (json_int_t)out->out_bytes,
		"stderr_bytes", (json_int_t)out->err_bytes,
		"qemu_version", report->version, "vpmu", report->vpmu,
		"host_events", report->host_events, "vpmu_error", report->error,
		"module_pmu", report->arch, "policy", m->policy, "event_filter", m->filter,
		"from", restored ? "snapshot" : "boot");

	if (out->exited && WIFEXITED(out->status))
		json_object_set_new(j, "exit_status", json_integer(WEXITSTATUS(out->status)));
	if (out->exited && WIFSIGNALED(out->status))
		json_object_set_new(j, "signal", json_integer(WTERMSIG(out->status)));
	written = !json_dumpf(j, file, JSON_INDENT(2));
	if (fclose(file) || !written) {
		say("--stats %s: %s", path, strerror(errno));
		written = false;
	}
	json_decref(j);
	return written;
}

/* End as the command did; its core, if any, is in the guest's hands. */
static int die_by(int sig)
{
	const struct rlimit none = { 0 };
	sigset_t set;

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return 128 + sig;
}

static int exit_status(const struct outcome *out)
{
	if (out->killed_by)
		return die_by(out->killed_by);
	if (out->own_failure)
		return out->own_failure;
	if (!out->exited)
		return EXIT_VPMU;
	if (out->noexec)
		return out->noexec == ENOENT ? EXIT_NOTFOUND : EXIT_NOEXEC;
	if (WIFSIGNALED(out->status))
		return die_by(WTERMSIG(out->status));
	/* A command that succeeded must not hide that its results are incomplete. */
	return out->incomplete && !WEXITSTATUS(out->status) ? EXIT_VPMU :
	       WEXITSTATUS(out->status);
}

static void open_standard_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			exit(EXIT_VPMU);
}

/* ---- the trace */

struct trace_files {
	FILE *raw;	/* QEMU's, without a name */
	FILE *out;
};

/* An unwritable file is refused before the guest runs. */
static void trace_open(struct trace_files *t, const char *path)
{
	t->out = fopen(path, "we");
	if (!t->out)
		fail(EXIT_VPMU, "--trace %s: %s", path, strerror(errno));
	t->raw = tmpfile();
	if (!t->raw)
		fail(EXIT_VPMU, "--trace: no temporary file: %s", strerror(errno));
}

static bool trace_finish(struct trace_files *t, const struct options *o,
			 const struct machine *m, const struct host_events *events)
{
	int err;

	if (!t->out)
		return true;
	err = trace_convert(t->raw, t->out, events_model(m->cpu), events);
	if (fclose(t->out) && !err)
		err = -errno;
	if (err)
		say("--trace %s: %s", o->trace, strerror(-err));
	fclose(t->raw);
	return !err;
}

/* ---- the run */

struct run {
	char **command;
	struct machine *machine;
	struct host_events events;
	struct trace_files trace;
	struct guest guest;
	struct qmp qmp;
	struct outcome out;
	struct report report;
};

/* Options of a dry run that vpmu itself serves while the guest runs. */
static char *not_alone(const struct options *o, struct machine *m)
{
	char *without = xprintf("%s%s%s%s%s", o->host_events.n ? " --host-event" : "",
				o->trace ? " --trace" : "", o->stats ? " --stats" : "",
				o->twice ? " --twice" : "", m->asks ? " /dev/vpmu_kvm" : "");

	m->trace = m->asks = false;
	m->paused = m->gdb;
	return without;
}

static void say_errors(const struct guest *guest)
{
	char text[4096];
	ssize_t n = read(guest->errors, text, sizeof(text) - 1);

	if (n > 0)
		say("QEMU says:\n%.*s", (int)n, text);
}

static void start_guest(struct run *r, const struct start *s, int initrd, const char *snapshot)
{
	struct qemu_fds fds = {
		.initrd = fcntl(initrd, F_DUPFD_CLOEXEC, 3),
		.trace = r->trace.raw ? fileno(r->trace.raw) : -1,
		.job = s->job < 0 ? -1 : fcntl(s->job, F_DUPFD_CLOEXEC, 3),
	};

	guest_ports(&r->guest, &fds);
	r->guest.debugged = r->machine->gdb;
	guest_start(&r->guest, qemu_command(&s->qemu, &s->kernel, r->machine, &fds, snapshot),
		    &fds, &r->machine->shares);
	qmp_start(&r->qmp, r->guest.port[PORT_QMP]);
	r->guest.qmp = &r->qmp;
}

static void stop_guest(struct run *r)
{
	guest_stop(&r->guest);
	for (int i = 0; i < PORTS; i++)
		close(r->guest.port[i]);
	close(r->guest.errors);
}

/*
 * Stop a guest and remove the snapshot that it came from; returns false if it could not
 * be removed.
 */
static bool drop_guest(struct run *r)
{
	stop_guest(r);
	r->guest.restored = false;
	r->out = (struct outcome){ 0 };
	return !unlink(r->guest.from);
}

/*
 * A run with host events, a trace, a model, a debugger, a monitor of the user's or a log
 * follows the guest from its boot. The user's own arguments for QEMU may add a device whose
 * state depends on a file.
 */
static bool must_boot(const struct machine *m)
{
	/* A model that is cold when the run starts is so each time. */
	return m->paused || m->trace || (m->uarch && !m->repeat) || m->verbose || m->console ||
		m->qmp || m->qemu_args.n;
}

/*
 * The guest boots, and goes on from where it stops itself; or, where a snapshot is allowed,
 * another one does that starts from the first one's: so the first run is as all others.
 */
static void begin_repeat(struct run *r, const struct start *s, int initrd, char *path)
{
	bool ready = path ? snapshot_take(&r->qmp, path) : snapshot_stopped(&r->qmp);

	if (ready && path) {
		stop_guest(r);
		start_guest(r, s, initrd, path);
		r->guest.from = path;
		ready = r->guest.restored = snapshot_loaded(&r->qmp, true);
	} else if (ready) {
		ready = snapshot_go_on(&r->qmp);
	}
	if (!ready) {
		say_errors(&r->guest);
		fail(EXIT_VPMU, "--repeat: the guest has not come up, or its state of 100 MB "
		     "cannot be kept in %s", cache_dir());
	}
}

/*
 * Start from a snapshot, if that is allowed, one exists, and QEMU accepts it. A guest
 * without a PMU is told the rate of its clock, which is measured each time.
 */
static void boot(struct run *r, const struct start *s, bool snapshot)
{
	const struct machine *m = r->machine;
	int initrd = kernel_initramfs(&s->kernel, s->driver);
	char *path = NULL;

	if (snapshot && (m->arch || m->pv) && s->qemu.patched && !m->kvm && !must_boot(m))
		path = snapshot_path(&s->qemu, &s->kernel, m, initrd);
	if (path && snapshot_there(path)) {
		utimensat(AT_FDCWD, path, NULL, 0); /* used last */
		start_guest(r, s, initrd, path);
		r->guest.from = path;
		r->guest.restored = snapshot_loaded(&r->qmp, m->repeat);
		if (!r->guest.restored)
			drop_guest(r);
	}
	if (!r->guest.restored) {
		start_guest(r, s, initrd, NULL);
		r->guest.keep = path;
		if (m->repeat)
			begin_repeat(r, s, initrd, path);
	}
	r->guest.repeats = m->repeat;
	close(initrd);
}

/* A guest that gets no PMU of the module's has KVM's own. */
static void give_arch(struct run *r, bool verbose)
{
	/* A reply says that QEMU has made the VM. */
	json_t *status = qmp_ask(&r->qmp, "query-status", QMP_PATIENCE_MS);
	char *error = NULL, *given = kvm_give_arch(r->guest.pid, &error);

	if (!given)
		say("the guest has KVM's own PMU, as vpmu_kvm.ko gives it none: %s", error);
	else if (verbose)
		say("the guest has the architectural PMU of vpmu_kvm.ko: %s", given);
	r->report.arch = given;
	free(error);
	json_decref(status);
}

/* QEMU listens when it answers. */
static void tell_debugger(struct run *r, unsigned int port)
{
	json_t *status = qmp_ask(&r->qmp, "query-status", QMP_PATIENCE_MS);

	if (status)
		say("the guest waits for a debugger: gdb -ex 'target remote 127.0.0.1:%u'; its "
		    "'continue' boots it", port);
	json_decref(status);
}

static void run_guest(struct run *r, const struct options *o, const struct buffer *job,
		      uint32_t tty)
{
	if (r->machine->asks)
		give_arch(r, o->verbose);
	if (r->machine->paused && !events_add(&r->events, &r->qmp, !r->machine->gdb)) {
		say_errors(&r->guest);
		r->out.own_failure = EXIT_VPMU;
	} else {
		if (r->machine->gdb)
			tell_debugger(r, r->machine->gdb);
		session_run(&r->guest, job, tty, o->verbose, &r->out);
	}
	if (r->out.exited && r->guest.pid)
		ask_qemu(&r->report, &r->qmp, o);
	/* The writer of a trace writes the rest of it when it ends. */
	if (o->trace && r->guest.pid) {
		json_decref(qmp_ask(&r->qmp, "quit", QMP_PATIENCE_MS));
		guest_wait(&r->guest, QMP_PATIENCE_MS);
	}
	guest_stop(&r->guest);
}

static void tell(struct run *r, const struct options *o, char **command, bool patched)
{
	const struct machine *m = r->machine;

	/* Another QEMU does not know the query, and has no such PMU. */
	if (r->report.error && patched && (m->arch || m->pv)) {
		say("QEMU does not say which events were not counted, so do not rely on a "
		    "count: %s", r->report.error);
		r->out.incomplete = true;
	}
	if (m->kvm && !r->out.exited && !r->out.killed_by)
		say("the guest does not run on this machine's /dev/kvm, which may be incomplete "
		    "where this is a virtual machine: leave --accel kvm away, or try another "
		    "--cpu");
	report_uncounted(r->report.vpmu, m);
	events_tell(r->report.host_events);
	events_tell_losses(r->report.vpmu, r->events.n, o->filter);
	tell_outcome(&r->out, command, m);
	if (!trace_finish(&r->trace, o, m, &r->events) || r->out.flags & CHANNEL_EXIT_UNSAVED)
		r->out.incomplete = true;
}

static void look_for_kernel(struct kernel *kernel, const struct options *o)
{
	const char *which = o->kernel ? o->kernel : getenv("VPMU_KERNEL");

	if (o->dry_run)
		kernel_find_dry(kernel, which, o->modules);
	else
		kernel_find(kernel, which, o->modules);
}

static int run(const struct options *o, struct run *r)
{
	struct job_extra extra = {
		.root = o->root, .nested = o->nested, .network = o->network,
		.repeat = o->repeat, .env = &o->env, .alone = o->dry_run,
		.tty = o->repeat || o->dry_run ? 0 : terminal_streams(),
	};
	const char *snapshot = getenv("VPMU_SNAPSHOT");
	struct machine *m = r->machine;
	char **command = r->command;
	struct start s = { .job = -1 };
	struct buffer job = { 0 };
	FILE *stats = NULL;
	struct perf perf;
	uint64_t kills;

	qemu_look(&s.qemu);
	look_for_kernel(&s.kernel, o);
	shares_choose(&m->shares, &o->writes, o->as);
	extra.shares = &m->shares;
	perf_find(&perf);
	if (!perf.path && !o->dry_run)
		say("there is no perf on this machine for the guest to run: " PERF_CURE);
	extra.perf = &perf;
	extra.kernel = &s.kernel;
	if (!qemu_found(&s.qemu, o->dry_run))
		fail(EXIT_VPMU, "QEMU is not built yet, and --dry-run builds nothing: make qemu");
	if (m->kvm)
		qemu_need_kvm(&s.qemu);
	if (m->pv && !m->kvm && !s.qemu.patched)
		fail(EXIT_VPMU, "--pmu %s: found %s, which has no paravirtual PMU; needed is "
		     "vpmu's own QEMU: unset VPMU_QEMU", m->pmu, s.qemu.binary);
	if (m->repeat && !s.qemu.patched)
		fail(EXIT_VPMU, "--repeat: found %s, whose runs do not repeat; needed is "
		     "vpmu's own QEMU: unset VPMU_QEMU", s.qemu.binary);
	if (m->pv && s.kernel.release)
		s.driver = kernel_driver(&s.kernel, o->dry_run);
	if (o->dry_run && !s.kernel.release)
		return dry_print(&s.qemu, &s.kernel, m, s.driver, NULL, not_alone(o, m));
	job_message(&job, command, &extra);
	if (m->repeat)
		job_same_moment(&job, m->seed, o->dry_run);
	else if (o->dry_run)
		job_alone(&job);
	if (o->dry_run)
		return dry_print(&s.qemu, &s.kernel, m, s.driver, &job, not_alone(o, m));
	if (m->repeat)
		s.job = job_file(&job);
	check_watching(m);
	if (o->memory)
		check_memory(m);
	if (o->trace)
		trace_open(&r->trace, o->trace);
	if (o->stats)
		stats = open_stats(o->stats);
	kills = memory_kills();
	boot(r, &s, !o->no_snapshot && !(snapshot && !strcmp(snapshot, "0")));
	run_guest(r, o, &job, extra.tty);
	if (r->out.spoilt) {
		boot(r, &s, drop_guest(r));
		run_guest(r, o, &job, extra.tty);
	}
	if (m->qmp)
		unlink(m->qmp);
	tell(r, o, command, s.qemu.patched);
	tell_killed(&r->out, m, kills);
	if (stats && !write_stats(stats, o->stats, &r->out, m, &s, &r->report,
				  r->guest.restored))
		r->out.incomplete = true;
	return exit_status(&r->out);
}

static int run_again(void *ctx)
{
	return run(&options, ctx);
}

int verb_run(int argc, char **argv)
{
	struct options *o = &options;
	struct machine m = { 0 };
	struct run r = { .machine = &m };
	char *nothing[] = { "true", NULL };
	int first;

	open_standard_streams();
	first = options_parse(argc, argv, defs, usage);
	set_machine(&m, o);
	if (o->output && say_open(o->output))
		fail(EXIT_VPMU, "-o %s: %s", o->output, strerror(errno));
	check_options(o, &m);
	if (first == argc && !o->dry_run)
		fail(EXIT_VPMU, "no command (vpmu run --help)");
	if (o->gdb && !*o->gdb && first < argc && !argv[first][strspn(argv[first], "0123456789")])
		fail(EXIT_VPMU, "--gdb %s: the port stands behind an equals sign: --gdb=%s",
		     argv[first], argv[first]);
	events_parse(&r.events, &o->host_events, &m);
	if (o->filter)
		events_check_filter(o->filter, m.cpu);
	r.command = first == argc ? nothing : argv + first;
	if (!o->twice || o->dry_run)
		return run(o, &r);
	r.command = twice_command(r.command);
	return twice(run_again, &r);
}
