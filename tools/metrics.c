// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * vpmu kvm metrics: the statistics of vpmu_kvm.ko, which debugfs shows, as OpenMetrics text.
 * The words before the numbers are those of kvm/module/stats.c; words that are not known
 * here are left out, so that a newer module can have more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vpmu.h"

#define STATISTICS	"/sys/kernel/debug/vpmu_kvm/vms"

enum number {
	CALLS, SERVICES, OVERFLOWS, NMIS, TAKEN, FILTERED, NOT_COUNTED, THROTTLES, RDMSR, WRMSR,
	RDPMC,
	N_WORDS, VCPUS = N_WORDS, EVENTS, LOST, THROTTLED,
	N_NUMBERS,
};

/* The module prints text before the number; label is NULL for a number without one. */
static const struct word {
	const char *text, *label;
} words[N_WORDS] = {
	[CALLS] = { "calls", NULL },
	[SERVICES] = { "services", NULL },
	[OVERFLOWS] = { "overflows", NULL },
	[NMIS] = { "nmis", NULL },
	[TAKEN] = { "lost", "lost" },
	[FILTERED] = { "filtered", "filtered" },
	[NOT_COUNTED] = { "uncounted", "not_counted" },
	[THROTTLES] = { "throttles", NULL },
	[RDMSR] = { "rdmsr", "rdmsr" },
	[WRMSR] = { "wrmsr", "wrmsr" },
	[RDPMC] = { "rdpmc", "rdpmc" },
};

/* Each is printed for all VMs, and with the prefix vm_ for each. */
static const struct family {
	const char *name, *help, *label;
	enum number first, last;
} families[] = {
	{ "hypercalls", "Hypercalls to the paravirtual PMU", NULL, CALLS, CALLS },
	{ "register_accesses", "Accesses to registers of the architectural PMU", "instruction",
	  RDMSR, RDPMC },
	{ "services", "Times that a vCPU was served before it entered its guest", NULL,
	  SERVICES, SERVICES },
	{ "overflows", "Overflows of perf events that count for guests", NULL,
	  OVERFLOWS, OVERFLOWS },
	{ "nmis", "PMU interrupts that guests were given", NULL, NMIS, NMIS },
	{ "losses", "Times that an enabled event of a guest ceased to count", "reason",
	  TAKEN, NOT_COUNTED },
	{ "throttles", "Times that an event of a guest was stopped since it overflowed too often",
	  NULL, THROTTLES, THROTTLES },
	{ "vcpus", "vCPUs that have used their PMU", NULL, VCPUS, VCPUS },
	{ "events", "Events that guests have open on the paravirtual PMU", NULL, EVENTS, EVENTS },
	{ "events_lost", "Open events that are enabled and do not count", NULL, LOST, LOST },
	{ "events_throttled", "Open events that are throttled", NULL, THROTTLED, THROTTLED },
};

/* VMs of one process with the same kind of PMU are one, since labels cannot tell them apart. */
struct vm {
	long pid;
	bool arch;
	uint64_t n[N_NUMBERS];
};

struct statistics {
	uint64_t vms, vms_max, counters, counters_max, refused;
	uint64_t n[N_NUMBERS];	/* sums over all VMs; those of words include VMs that have ended */
	bool has_total;
	struct vm *vm;
	size_t n_vms;
};

static struct vm *vm_of(struct statistics *s, long pid, bool arch)
{
	for (size_t i = 0; i < s->n_vms; i++)
		if (s->vm[i].pid == pid && s->vm[i].arch == arch)
			return &s->vm[i];
	s->vm = reallocarray(s->vm, s->n_vms + 1, sizeof(*s->vm));
	if (!s->vm)
		fail(EXIT_VPMU, "out of memory");
	s->vm[s->n_vms] = (struct vm){ .pid = pid, .arch = arch };
	return &s->vm[s->n_vms++];
}

/* Take the number behind @word, with which @text has to begin. */
static bool take(char **text, const char *word, uint64_t *value)
{
	size_t n = strlen(word);
	char *end;

	if (strncmp(*text, word, n))
		return false;
	*value = strtoull(*text + n, &end, 10);
	if (end == *text + n)
		return false;
	*text = end;
	return true;
}

/* The text is like "calls 12 services 4". */
static void add_words(uint64_t *n, char *text)
{
	char *rest = NULL, *word = strtok_r(text, " \n", &rest), *value;

	for (; word; word = strtok_r(NULL, " \n", &rest)) {
		value = strtok_r(NULL, " \n", &rest);
		for (int i = 0; value && i < N_WORDS; i++)
			if (!strcmp(word, words[i].text))
				n[i] += strtoull(value, NULL, 10);
	}
}

static void add_one(struct statistics *s, struct vm *vm, enum number number)
{
	vm->n[number]++;
	s->n[number]++;
}

/* The line stands below that of @vm. */
static void take_part(struct statistics *s, struct vm *vm, char *line)
{
	uint64_t number;

	if (take(&line, "  vcpu ", &number)) {
		add_one(s, vm, VCPUS);
		add_words(vm->n, line);
	} else if (!strncmp(line, "  event ", 8)) {
		add_one(s, vm, EVENTS);
		if (strstr(line, " lost "))
			add_one(s, vm, LOST);
		if (strstr(line, " throttled "))
			add_one(s, vm, THROTTLED);
	}
}

static void read_statistics(struct statistics *s, FILE *in, const char *path)
{
	struct vm *vm = NULL;
	char *line = NULL, *at;
	size_t size = 0;
	uint64_t pid;

	if (getline(&line, &size, in) < 0)
		fail(EXIT_VPMU, "%s: found nothing, needed what vpmu_kvm.ko writes", path);
	at = line;
	if (!take(&at, "vms ", &s->vms) || !take(&at, " of ", &s->vms_max) ||
	    !take(&at, ", counters ", &s->counters) || !take(&at, " of ", &s->counters_max) ||
	    !take(&at, ", events refused ", &s->refused))
		fail(EXIT_VPMU, "%s: this is not what vpmu_kvm.ko writes", path);
	while (getline(&line, &size, in) > 0) {
		at = line;
		if (!strncmp(line, "total ", 6)) {
			add_words(s->n, line + 6);
			s->has_total = true;
		} else if (take(&at, "vm ", &pid)) {
			vm = vm_of(s, (long)pid, strstr(at, " architectural"));
		} else if (vm) {
			take_part(s, vm, line);
		}
	}
	if (ferror(in))
		fail(EXIT_VPMU, "%s: %s", path, strerror(errno));
	if (!s->has_total)
		fail(EXIT_VPMU, "%s has no totals: the vpmu_kvm.ko that is loaded is older than "
		     "this command; load this one's, which make modules builds", path);
	free(line);
}

/* ---- the text */

static void add_family(struct buffer *b, const char *name, bool counts, const char *help)
{
	buffer_print(b, "# TYPE vpmu_kvm_%s %s\n# HELP vpmu_kvm_%s %s.\n", name,
		     counts ? "counter" : "gauge", name, help);
}

static void add_number(struct buffer *b, const char *name, bool counts, const char *help,
		       uint64_t value)
{
	add_family(b, name, counts, help);
	buffer_print(b, "vpmu_kvm_%s%s %" PRIu64 "\n", name, counts ? "_total" : "", value);
}

/* @n belongs to @vm, or if that is NULL to all VMs. */
static void add_samples(struct buffer *b, const struct family *f, const char *name,
			const uint64_t *n, const struct vm *vm)
{
	char *owner = vm ? xprintf("pid=\"%ld\",pmu=\"%s\"", vm->pid,
				   vm->arch ? "architectural" : "paravirtual") : strdup("");

	for (unsigned int i = f->first; i <= f->last; i++) {
		char *label = f->label ? xprintf("%s%s=\"%s\"", vm ? "," : "", f->label,
						 words[i].label) : strdup("");
		bool bare = !*owner && !*label;

		buffer_print(b, "vpmu_kvm_%s%s%s%s%s%s %" PRIu64 "\n", name,
			     i < N_WORDS ? "_total" : "", bare ? "" : "{", owner, label,
			     bare ? "" : "}", n[i]);
		free(label);
	}
	free(owner);
}

static void add_metrics(struct buffer *b, const struct statistics *s)
{
	const size_t n = sizeof(families) / sizeof(families[0]);

	add_number(b, "vms", false, "VMs that have a PMU", s->vms);
	add_number(b, "vms_limit", false, "VMs that can have one", s->vms_max);
	add_number(b, "counters", false, "Events of perf that count for guests", s->counters);
	add_number(b, "counters_limit", false, "Events of perf that guests can have",
		   s->counters_max);
	add_number(b, "events_refused", true, "Events of guests that perf did not create",
		   s->refused);
	for (const struct family *f = families; f < families + n; f++) {
		add_family(b, f->name, f->first < N_WORDS, f->help);
		add_samples(b, f, f->name, s->n, NULL);
	}
	for (const struct family *f = families; f < families + n && s->n_vms; f++) {
		char *name = xprintf("vm_%s", f->name), *help = xprintf("%s, by VMM", f->help);

		add_family(b, name, f->first < N_WORDS, help);
		for (size_t i = 0; i < s->n_vms; i++)
			add_samples(b, f, name, s->vm[i].n, &s->vm[i]);
		free(name);
		free(help);
	}
}

/* ---- where it goes */

/* A reader of @path finds the old text or the new one, never a part. */
static void replace(const char *path, const struct buffer *b)
{
	char *part = xprintf("%s.XXXXXX", path);
	int fd = mkostemp(part, O_CLOEXEC), error = 0;
	FILE *out;

	if (fd < 0)
		fail(EXIT_VPMU, "%s: a file beside it: %s", path, strerror(errno));
	out = fdopen(fd, "w");
	/* The collector runs as another user. */
	if (!out || fchmod(fd, 0644) || fwrite(b->data, 1, b->len, out) != b->len || fflush(out))
		error = errno;
	if (out && fclose(out) && !error)
		error = errno;
	if (!error && rename(part, path))
		error = errno;
	if (error) {
		unlink(part);
		fail(EXIT_VPMU, "%s: %s; it is as it was", path, strerror(error));
	}
	free(part);
}

static void put_metrics(struct buffer *b, const char *output)
{
	buffer_string(b, "# EOF\n");
	if (output)
		replace(output, b);
	else if (fwrite(b->data, 1, b->len, stdout) != b->len || fflush(stdout))
		fail(EXIT_VPMU, "standard output: %s", strerror(errno));
	buffer_free(b);
}

/* Returns NULL with errno if there is no module. */
static FILE *open_statistics(void)
{
	FILE *in = fopen(STATISTICS, "re");

	if (in || (errno == ENOENT && access("/sys/module/vpmu_kvm", F_OK)))
		return in;
	if (errno == ENOENT)
		fail(EXIT_VPMU, STATISTICS " is not there: "
		     "mount -t debugfs none /sys/kernel/debug");
	fail(EXIT_VPMU, STATISTICS ": %s; sudo vpmu kvm metrics", strerror(errno));
}

int kvm_metrics(const char *from, const char *output)
{
	FILE *in = from ? fopen(from, "re") : open_statistics();
	struct statistics s = { 0 };
	struct buffer b = { 0 };

	if (from && !in)
		fail(EXIT_VPMU, "%s: %s", from, strerror(errno));
	add_number(&b, "up", false, "Whether vpmu_kvm.ko is loaded", in != NULL);
	if (in) {
		read_statistics(&s, in, from ? from : STATISTICS);
		fclose(in);
		add_metrics(&b, &s);
		free(s.vm);
	}
	put_metrics(&b, output);
	if (in)
		return 0;
	say("vpmu_kvm.ko is not loaded, so vpmu_kvm_up is 0: on a host whose guests count, "
	    "insmod vpmu_kvm.ko");
	return EXIT_SKIP;
}
