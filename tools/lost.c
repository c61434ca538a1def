// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * vpmu lost, in a guest: shows which counters of its PMU counted all the time, from the
 * block of registers that docs/GUEST-LOSS.md specifies.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <poll.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <jansson.h>
#include <vpmu/loss.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>

#include "vpmu.h"

static const char usage[] =
"Usage: vpmu lost [options] [-- COMMAND [ARG]...]\n"
"\n"
"Inside a guest, as root: how long each counter of its PMU was enabled and how\n"
"long it really counted, since the guest's boot or while COMMAND runs, and whether\n"
"its counts can be trusted. A host that uses its own counters takes them away from\n"
"the guest, which the guest cannot notice otherwise.\n"
"\n"
"  vpmu run --root --host-event cpu0:branches:pinned -- \\\n"
"      vpmu lost -- perf stat -e branches ./program\n";

#define PMCS_MAX	24	/* room of the block */
#define TRIES		100	/* tries to read a CPU's counters between two losses */

struct block {
	unsigned int n_gp, n_pmc;
	uint32_t msr;
	uint64_t hz;
	bool records;	/* it tells losses of branch records, too */
	const struct vpmu_model *model;	/* model whose events the guest has, or NULL */
	/* MSRs of the selectors: the first, and the distance of the next. */
	uint32_t evtsel, step;
};

struct pmc {
	uint64_t enabled, running, reason;
	uint64_t select;	/* selector of a general-purpose counter */
};

struct cpu {
	unsigned int number;
	int fd;
	struct pmc now[PMCS_MAX], before[PMCS_MAX];
	uint64_t records, records_before;	/* reason of the branch records' loss */
};

struct lost {
	struct block block;
	struct cpu *cpu;
	size_t n_cpus;
	bool json, command;
	uint64_t started_ns;
};

static struct {
	const char *interval, *output;
	bool json;
} options;

static const struct option_def defs[] = {
	{ "interval", 'I', "MS", "print every MS milliseconds what happened in them",
	  &options.interval },
	{ "json", 0, NULL, "for programs", &options.json },
	{ "output", 'o', "FILE", "the report goes there", &options.output },
	{ NULL, 0, NULL, NULL, NULL },
};

/* ---- the block */

#ifdef __x86_64__
#define SIGNATURE_HYGON_EBX	0x6f677948u	/* "Hygo" */
#define CPUID_PERFCTR_CORE	(1u << 23)	/* 80000001H:ECX */

static bool signature(uint32_t leaf, uint32_t *last)
{
	uint32_t ebx, ecx, edx;

	__cpuid(leaf, *last, ebx, ecx, edx);
	return ebx == VPMU_CPUID_SIGNATURE_EBX && ecx == VPMU_CPUID_SIGNATURE_ECX &&
		edx == VPMU_CPUID_SIGNATURE_EDX && *last > leaf && *last < leaf + 0x100;
}

/* Find the event names of this CPU's vendor, and the MSRs of its selectors. */
static void find_events(struct block *b)
{
	uint32_t eax, ebx, ecx, edx, family, model, vendor;

	__cpuid(0, eax, vendor, ecx, edx);
	__cpuid(1, eax, ebx, ecx, edx);
	family = (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
	model = (eax >> 4 & 0xf) | (eax >> 12 & 0xf0);
	b->evtsel = VPMU_MSR_PERFEVTSEL0;
	b->step = 1;
	if (vendor == signature_INTEL_ebx)
		b->model = vpmu_model_find(VPMU_VENDOR_INTEL, family, model);
	if (vendor != signature_AMD_ebx && vendor != SIGNATURE_HYGON_EBX)
		return;
	b->model = vpmu_model_find(VPMU_VENDOR_AMD, family, model);
	b->evtsel = VPMU_MSR_K7_EVTSEL0;
	if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && ecx & CPUID_PERFCTR_CORE) {
		b->evtsel = VPMU_MSR_AMD_PERF_CTL0;
		b->step = 2;
	}
}

/* Returns the reason why there is none, or NULL. */
static const char *find_block(struct block *b)
{
	uint32_t leaf, last = 0, eax, ebx, ecx, edx;

	__cpuid(1, eax, ebx, ecx, edx);
	if (!(ecx >> 31))
		return "this is no guest (CPUID.1:ECX bit 31 is 0)";
	for (leaf = 0x40000000; leaf < 0x40010000; leaf += 0x100)
		if (signature(leaf, &last))
			break;
	if (leaf == 0x40010000)
		return "no leaf of CPUID from 40000000H on says \"VPMUforGuest\": "
			"this guest's hypervisor is not vpmu's";
	__cpuid(leaf + VPMU_CPUID_FEATURES, eax, ebx, ecx, edx);
	if (!(eax & VPMU_CPUID_FEATURE_LOSS) || last < leaf + VPMU_CPUID_LOSS)
		return "this guest's PMU does not tell losses";
	b->records = eax & VPMU_CPUID_FEATURE_LOSS_LBR;
	__cpuid(leaf + VPMU_CPUID_LOSS, eax, ebx, ecx, edx);
	if ((eax & 0xff) != VPMU_LOSS_VERSION)
		return "this guest's PMU reports losses in a newer form than this vpmu knows";
	b->n_gp = eax >> 8 & 0xff;
	b->n_pmc = b->n_gp + (eax >> 16 & 0xff);
	b->msr = ebx;
	b->hz = ecx | (uint64_t)edx << 32;
	find_events(b);
	if (!b->n_pmc || b->n_pmc > PMCS_MAX)
		return "this guest's PMU reports losses of no counter, or of too many";
	return NULL;
}
#else
static const char *find_block(struct block *b)
{
	return "this is no x86 machine";
}
#endif

/*
 * End because there is nothing to read. 77 could be a command's own status, so that with a
 * command it is 125, which vpmu run has for its own failures.
 */
static void __attribute__((noreturn)) fail_absent(const struct lost *l, const char *why)
{
	if (l->command)
		fail(EXIT_VPMU, "%s; the command was not run", why);
	fail(EXIT_SKIP, "%s", why);
}

/* ---- registers */

static void load_module(void)
{
	char *const argv[] = { "/sbin/modprobe", "-q", "msr", NULL };
	struct buffer out = { 0 };

	if (runs(argv[0]))
		run_script(argv, &out);
	buffer_free(&out);
}

static int open_msr(unsigned int cpu)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/cpu/%u/msr", cpu);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void open_cpus(struct lost *l)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	int fd = open_msr(0);

	if (fd < 0 && geteuid())
		fail(EXIT_VPMU, "only root reads the registers: sudo vpmu lost, or "
		     "vpmu run --root");
	if (fd < 0)
		load_module();
	else
		close(fd);
	l->cpu = xalloc((n > 0 ? n : 1) * sizeof(*l->cpu));
	for (long i = 0; i < n; i++) {
		fd = open_msr(i);
		if (fd < 0 && (i == 0 || errno != ENXIO))
			fail_absent(l, xprintf("/dev/cpu/%ld/msr: %s; modprobe msr, or a "
					       "kernel with CONFIG_X86_MSR and without lockdown",
					       i, strerror(errno)));
		if (fd >= 0)
			l->cpu[l->n_cpus++] = (struct cpu){ .number = i, .fd = fd };
	}
}

static uint64_t rdmsr(const struct cpu *cpu, uint32_t msr)
{
	uint64_t value;

	if (pread(cpu->fd, &value, sizeof(value), msr) != sizeof(value))
		fail(EXIT_VPMU, "/dev/cpu/%u/msr: register 0x%x cannot be read: %s",
		     cpu->number, msr, strerror(errno));
	return value;
}

/*
 * Read running before enabled, so that it is not ahead. The generation shows whether a
 * counter was lost or found in between.
 */
static void read_cpu(struct cpu *cpu, const struct block *b)
{
	const uint32_t first = b->msr + (VPMU_MSR_LOSS_PMC(0) - VPMU_MSR_LOSS);
	const uint32_t generation = b->msr + (VPMU_MSR_LOSS_GENERATION - VPMU_MSR_LOSS);
	uint64_t before;

	for (int i = 0; i < TRIES; i++) {
		before = rdmsr(cpu, generation);
		for (unsigned int pmc = 0; pmc < b->n_pmc; pmc++) {
			uint32_t msr = first + 4 * pmc;

			cpu->now[pmc].running = rdmsr(cpu, msr + VPMU_LOSS_RUNNING);
			cpu->now[pmc].enabled = rdmsr(cpu, msr + VPMU_LOSS_ENABLED);
			cpu->now[pmc].reason = rdmsr(cpu, msr + VPMU_LOSS_REASON);
			if (b->model && pmc < b->n_gp)
				cpu->now[pmc].select = rdmsr(cpu, b->evtsel + pmc * b->step);
		}
		if (rdmsr(cpu, generation) == before)
			return;
	}
	say("cpu%u: its counters are lost and found faster than they can be read", cpu->number);
}

static void read_all(struct lost *l)
{
	for (size_t i = 0; i < l->n_cpus; i++) {
		read_cpu(&l->cpu[i], &l->block);
		if (l->block.records)
			l->cpu[i].records = rdmsr(&l->cpu[i], l->block.msr +
						  (VPMU_MSR_LOSS_LBR - VPMU_MSR_LOSS));
	}
}

static void keep_all(struct lost *l)
{
	for (size_t i = 0; i < l->n_cpus; i++) {
		memcpy(l->cpu[i].before, l->cpu[i].now, sizeof(l->cpu[i].now));
		l->cpu[i].records_before = l->cpu[i].records;
	}
}

/* ---- judgement */

/* A part of the time below this is too small to scale from. */
#define LEAST_PERCENT	1

struct verdict {
	uint64_t enabled, running;
	const char *reason;	/* reason of the last loss, or NULL */
	double factor;		/* to scale counts by; 0: not counted */
	const char *what;	/* advice about the count */
};

static const char *advice(const struct verdict *v)
{
	if (!v->running)
		return "not counted";
	if (v->running * 100.0 < (double)v->enabled * LEAST_PERCENT)
		return "too little";
	/* Two decimals of the factor are shown. */
	return v->factor < 1.005 ? "trust" : "scale";
}

static struct verdict judge(const struct pmc *now, const struct pmc *before)
{
	static const char *const names[] = { NULL, "lost", "filtered", "not counted" };
	struct verdict v = {
		.enabled = now->enabled - before->enabled,
		.running = now->running - before->running,
	};
	unsigned int reason = now->reason & 0xff, last = now->reason >> 8 & 0xff;
	bool changed = (now->reason ^ before->reason) >> 32;

	/* The difference of the two times is then the time between two reads. */
	if (!changed && !reason) {
		v.running = v.enabled;
		v.factor = 1;
		v.what = "trust";
		return v;
	}
	reason = reason ? reason : last;
	v.reason = reason < 4 ? names[reason] : "unknown";
	if (v.running > v.enabled)
		v.running = v.enabled;
	v.factor = v.running ? (double)v.enabled / v.running : 0;
	v.what = advice(&v);
	return v;
}

/* Count the losses of branch records; one that goes on counts, too. */
static uint32_t records_losses(const struct cpu *cpu)
{
	uint32_t changes = (cpu->records >> 32) - (cpu->records_before >> 32);
	unsigned int now = cpu->records & 0xff, before = cpu->records_before & 0xff;

	return changes / 2 + (now || before);
}

static char *counter_name(const struct block *b, unsigned int pmc)
{
	return pmc < b->n_gp ? xprintf("pmc %u", pmc) : xprintf("fixed %u", pmc - b->n_gp);
}

/* The event that a counter selected last, even if it is disabled by now; or NULL. */
static char *event_name(const struct block *b, const struct cpu *cpu, unsigned int pmc)
{
	uint64_t select = cpu->now[pmc].select;
	const struct vpmu_event_def *row;

	if (!b->model)
		return NULL;
	row = vpmu_event_find(b->model, select, pmc < b->n_gp ? -1 : (int)(pmc - b->n_gp));
	if (row)
		return strdup(row->name);
	return pmc < b->n_gp ? xprintf("r%04" PRIx64, select & vpmu_event_name_bits(b->model))
			       : NULL;
}

static double share(const struct verdict *v)
{
	return v->enabled ? 100.0 * v->running / v->enabled : 0;
}

/* In seconds if the rate of the unit is known. */
static char *time_text(const struct block *b, uint64_t units)
{
	return b->hz ? xprintf("%.6f s", (double)units / b->hz) : xprintf("%" PRIu64, units);
}

static void print_counter(FILE *to, const struct block *b, const struct cpu *cpu,
			  unsigned int pmc, const struct verdict *v)
{
	char *name = counter_name(b, pmc), *enabled = time_text(b, v->enabled);
	char *running = time_text(b, v->running), *what;
	char *event = event_name(b, cpu, pmc);

	if (!strcmp(v->what, "scale"))
		what = xprintf("scale by %.2f", v->factor);
	else
		what = strdup(v->factor ? v->what : "<not counted>");
	fprintf(to, "%4u  %-8s %14s %14s  %6.2f %%  %-12s %-15s  %s\n", cpu->number, name,
		enabled, running, share(v), v->reason ? v->reason : "-", what,
		event ? event : "-");
	free(event);
	free(what);
	free(running);
	free(enabled);
	free(name);
}

static void print_records(FILE *to, const struct cpu *cpu)
{
	uint32_t losses = records_losses(cpu);

	if (losses)
		fprintf(to, "CPU %u lost its branch records %" PRIu32 " time%s%s.\n", cpu->number,
			losses, losses == 1 ? "" : "s",
			cpu->records & 0xff ? " and has none now" : "");
}

static void print_table(FILE *to, const struct lost *l)
{
	bool any = false;

	for (size_t i = 0; i < l->n_cpus; i++) {
		const struct cpu *cpu = &l->cpu[i];

		for (unsigned int pmc = 0; pmc < l->block.n_pmc; pmc++) {
			struct verdict v = judge(&cpu->now[pmc], &cpu->before[pmc]);

			if (!v.enabled)
				continue;
			if (!any)
				fprintf(to, "%4s  %-8s %14s %14s  %8s  %-12s %-15s  %s\n", "CPU",
					"COUNTER", "ENABLED", "COUNTED", "", "REASON", "VERDICT",
					"LAST EVENT");
			any = true;
			print_counter(to, &l->block, cpu, pmc, &v);
		}
	}
	if (!any)
		fprintf(to, "No counter was enabled.\n");
	for (size_t i = 0; i < l->n_cpus; i++)
		print_records(to, &l->cpu[i]);
}

static json_t *counter_json(const struct block *b, const struct cpu *cpu,
			    unsigned int pmc, const struct verdict *v)
{
	char *name = counter_name(b, pmc), *event = event_name(b, cpu, pmc);
	json_t *j = json_pack("{s:i, s:i, s:s, s:I, s:I, s:f}", "cpu", (int)cpu->number,
			      "pmc", (int)pmc, "counter", name,
			      "enabled", (json_int_t)v->enabled,
			      "running", (json_int_t)v->running, "running_percent", share(v));

	json_object_set_new(j, "reason", v->reason ? json_string(v->reason) : json_null());
	json_object_set_new(j, "scale", v->factor ? json_real(v->factor) : json_null());
	json_object_set_new(j, "verdict", json_string(v->what));
	json_object_set_new(j, "event", event ? json_string(event) : json_null());
	free(event);
	free(name);
	return j;
}

static json_t *records_json(const struct cpu *cpu)
{
	return json_pack("{s:i, s:I, s:b}", "cpu", (int)cpu->number,
			 "losses", (json_int_t)records_losses(cpu), "lost_now",
			 (int)(cpu->records & 0xff));
}

static void print_json(FILE *to, const struct lost *l)
{
	json_t *counters = json_array(), *records = json_array(), *j;

	for (size_t i = 0; i < l->n_cpus; i++) {
		for (unsigned int pmc = 0; pmc < l->block.n_pmc; pmc++) {
			const struct cpu *cpu = &l->cpu[i];
			struct verdict v = judge(&cpu->now[pmc], &cpu->before[pmc]);

			if (v.enabled)
				json_array_append_new(counters, counter_json(&l->block, cpu,
									     pmc, &v));
		}
		if (records_losses(&l->cpu[i]))
			json_array_append_new(records, records_json(&l->cpu[i]));
	}
	j = json_pack("{s:I, s:f, s:o, s:o}", "hz", (json_int_t)l->block.hz,
		      "time_ms", (now_ns() - l->started_ns) / 1e6, "counters", counters,
		      "branch_records", records);
	json_dumpf(j, to, JSON_COMPACT);
	fputc('\n', to);
	json_decref(j);
}

static void report(FILE *to, const struct lost *l)
{
	if (l->json)
		print_json(to, l);
	else
		print_table(to, l);
	if (fflush(to))
		fail(EXIT_VPMU, "the report cannot be written: %s", strerror(errno));
}

/* ---- a command, and intervals */

static pid_t start(char **command, const sigset_t *mask)
{
	pid_t pid = fork();

	if (pid < 0)
		fail(EXIT_VPMU, "no process: %s", strerror(errno));
	if (pid)
		return pid;
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(command[0], command);
	say("%s: %s", command[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOTFOUND : EXIT_NOEXEC);
}

/* SIGINT and SIGQUIT come to the command as well; others are passed on. */
static bool handle(const struct signalfd_siginfo *info, pid_t pid, int *status)
{
	if (info->ssi_signo == SIGCHLD)
		return pid && waitpid(pid, status, WNOHANG) == pid;
	if (pid && info->ssi_code <= 0)
		kill(pid, info->ssi_signo);
	return !pid;
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Watch until the command ends, or without one until a signal. */
static int watch(struct lost *l, FILE *to, char **command, int interval_ms)
{
	struct signalfd_siginfo info;
	struct pollfd p = { .events = POLLIN };
	uint64_t next = now_ns() + interval_ms * 1000000ull, now;
	sigset_t set, old;
	int status = 0, wait_ms;
	bool done = false;
	pid_t pid;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &old);
	p.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	pid = command ? start(command, &old) : 0;
	while (!done) {
		now = now_ns();
		wait_ms = next > now ? (int)((next - now + 999999) / 1000000) : 0;
		poll(&p, 1, interval_ms ? wait_ms : -1);
		while (!done && read(p.fd, &info, sizeof(info)) == sizeof(info))
			done = handle(&info, pid, &status);
		if (!done && interval_ms && now_ns() >= next) {
			read_all(l);
			report(to, l);
			keep_all(l);
			next += interval_ms * 1000000ull;
		}
	}
	read_all(l);
	report(to, l);
	return pid ? exit_status(status) : 0;
}

int verb_lost(int argc, char **argv)
{
	struct lost l = { .started_ns = now_ns() };
	int first = options_parse(argc, argv, defs, usage), interval_ms = 0;
	char **command = first < argc ? argv + first : NULL;
	FILE *to = command ? stderr : stdout;
	const char *why = find_block(&l.block);

	if (options.interval)
		interval_ms = option_number("interval", options.interval, 10, 86400000);
	l.json = options.json;
	l.command = command;
	if (why)
		fail_absent(&l, why);
	if (options.output)
		to = fopen(options.output, "we");
	if (!to)
		fail(EXIT_VPMU, "-o %s: %s", options.output, strerror(errno));
	open_cpus(&l);
	read_all(&l);
	if (!command && !interval_ms) {
		report(to, &l);
		return 0;
	}
	keep_all(&l);
	return watch(&l, to, command, interval_ms);
}
