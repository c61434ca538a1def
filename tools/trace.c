// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Converts QEMU's trace, a header and records of a fixed size, to the Chrome JSON trace
 * format that the Perfetto UI opens: a process per CPU; a track per counter of the
 * silicon, per counter of the guest that did not count and per slot of its paravirtual
 * PMU; instants; and curves of the number of exits. It reads and writes a stream; memory
 * grows with the number of CPUs only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include <vpmu/loss.h>
#include <vpmu/model.h>
#include <vpmu/pv_abi.h>
#include <vpmu/silicon.h>
#include <vpmu/trace.h>

#include "registers.h"
#include "vpmu.h"

#define CPUS_MAX	1024
/*
 * A viewer holds the whole trace in memory: of further exits only the curve is written.
 */
#define EXITS_SHOWN	500000u
#define CURVE_NS	1000000u	/* between two points of the curve */

/* Tracks of a CPU, in the order in which a viewer shows them. */
enum track {
	TRACK_COUNTER = 1,	/* + the silicon's counter */
	TRACK_GUEST = TRACK_COUNTER + VPMU_SLOTS_MAX,	/* + the guest's counter */
	TRACK_SLOT = TRACK_GUEST + VPMU_SLOTS_MAX,	/* + the paravirtual PMU's slot */
	TRACK_SLOT_LOST = TRACK_SLOT + VPMU_PV_SLOTS,
	TRACK_MOMENTS = TRACK_SLOT_LOST + VPMU_PV_SLOTS,
	TRACK_EXITS,
	TRACKS
};

/* Exits: those of enum vpmu_trace_exit, and hypercalls. */
enum {
	EXIT_HYPERCALL = VPMU_TRACE_EXIT_COUNT,
	EXITS
};

/* The header as QEMU writes it; numbers are in this machine's byte order. */
struct trace_head {
	char magic[8];
	uint32_t record_bytes;
	uint32_t version;
};

/* Spans of a track: a counter's owner, or a loss and its reason. */
struct span {
	bool open;
	struct vpmu_trace_record from;
	uint64_t end;		/* end of the previous one: they do not overlap */
};

struct cpu {
	bool seen;
	bool named[TRACKS];
	struct span span[TRACK_MOMENTS];
	uint64_t exits[EXITS];
	uint64_t curve, drawn;	/* time and number of exits of the curve's last point */
	uint64_t last;		/* time of the last record */
};

struct convert {
	FILE *out;
	const struct vpmu_model *model;
	const struct host_events *events;
	struct cpu *cpu[CPUS_MAX];
	uint64_t written;	/* events of the output */
	uint64_t exits;
	uint64_t senseless;	/* records that make no sense */
};

static const char *const exit_names[EXITS] = {
	[VPMU_TRACE_RDMSR] = "rdmsr", [VPMU_TRACE_WRMSR] = "wrmsr",
	[VPMU_TRACE_RDPMC] = "rdpmc", [EXIT_HYPERCALL] = "hypercall",
};

static const char *const loss_names[] = {
	[VPMU_LOSS_NONE] = "counts", [VPMU_LOSS_LOST] = "lost",
	[VPMU_LOSS_FILTERED] = "filtered", [VPMU_LOSS_NOT_COUNTED] = "not counted",
};

/* ---- names */

static char *json_quoted(const char *text)
{
	json_t *s = json_string(text);
	char *quoted = s ? json_dumps(s, JSON_ENCODE_ANY) : NULL;

	json_decref(s);
	return quoted ? quoted : strdup("\"?\"");
}

/* "pmc 3", "fixed 0": the fixed counters follow the others. */
static char *counter_name(const struct convert *c, unsigned int pmc)
{
	return pmc < c->model->n_gp ? xprintf("pmc %u", pmc)
				    : xprintf("fixed %u", pmc - c->model->n_gp);
}

static char *owner_name(const struct convert *c, const struct vpmu_trace_record *r)
{
	char *name, *owner;

	if (r->what == VPMU_TRACE_GUEST) {
		name = counter_name(c, r->a < UINT16_MAX ? r->a : UINT16_MAX);
		owner = xprintf("guest %s", name);
		free(name);
		return owner;
	}
	for (size_t i = 0; i < c->events->n; i++)
		if (c->events->list[i].id == r->a)
			return xprintf("host #%" PRIu64 " %s", r->a, c->events->list[i].spec);
	return xprintf("host #%" PRIu64, r->a);
}

static char *hypercall_name(const struct vpmu_trace_record *r)
{
	static const char *const one[] = { NULL, "OPEN", "CLOSE", "ENABLE", "DISABLE", "READ" };
	static const char *const two[] = { "VERSION", "SETUP", "BATCH", "RESET" };

	if (r->a == VPMU_PV1_HYPERCALL && r->what && r->what < sizeof(one) / sizeof(one[0]))
		return strdup(one[r->what]);
	if (r->a == VPMU_PV_HYPERCALL && r->what < sizeof(two) / sizeof(two[0]))
		return r->pmc ? xprintf("%s of %u", two[r->what], r->pmc) : strdup(two[r->what]);
	return xprintf("operation %u", r->what);
}

/* ---- writing */

/* Begins an event; its own members follow, and "}". Times are in us. */
static void begin(struct convert *c, char phase, uint64_t time_ns, unsigned int cpu)
{
	fprintf(c->out, "%s\n{\"ph\":\"%c\",\"ts\":%" PRIu64 ".%03u,\"pid\":%u",
		c->written++ ? "," : "", phase, time_ns / 1000,
		(unsigned int)(time_ns % 1000), cpu + 1);
}

static void metadata(struct convert *c, unsigned int cpu, unsigned int track,
		     const char *what, const char *name)
{
	begin(c, 'M', 0, cpu);
	fprintf(c->out, ",\"tid\":%u,\"name\":\"%s_name\",\"args\":{\"name\":\"%s\"}}",
		track, what, name);
	begin(c, 'M', 0, cpu);
	fprintf(c->out, ",\"tid\":%u,\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%u}}",
		track, what, track ? track : cpu);
}

static void name_track(struct convert *c, unsigned int cpu, unsigned int track)
{
	char *name, *counter;

	if (c->cpu[cpu]->named[track])
		return;
	c->cpu[cpu]->named[track] = true;
	if (track == TRACK_MOMENTS) {
		metadata(c, cpu, track, "thread", "interrupts, losses");
		return;
	}
	if (track == TRACK_EXITS) {
		metadata(c, cpu, track, "thread", "exits");
		return;
	}
	if (track < TRACK_GUEST) {
		name = counter_name(c, track - TRACK_COUNTER);
	} else if (track >= TRACK_SLOT_LOST) {
		name = xprintf("slot %u, not counting", track - TRACK_SLOT_LOST);
	} else if (track >= TRACK_SLOT) {
		name = xprintf("slot %u", track - TRACK_SLOT);
	} else {
		counter = counter_name(c, track - TRACK_GUEST);
		name = xprintf("guest %s, not counting", counter);
		free(counter);
	}
	metadata(c, cpu, track, "thread", name);
	free(name);
}

static uint64_t grown(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static bool is_loss(unsigned int track)
{
	return track >= TRACK_SLOT_LOST || (track >= TRACK_GUEST && track < TRACK_SLOT);
}

/* @end: the record that ended it, or NULL if that is missing. */
static void span_write(struct convert *c, unsigned int cpu, unsigned int track,
		       uint64_t until, const struct vpmu_trace_record *end)
{
	struct span *s = &c->cpu[cpu]->span[track];
	const struct vpmu_trace_record *r = &s->from;
	uint64_t from = r->time > s->end ? r->time : s->end;
	char *name, *quoted;

	until = until > from ? until : from;
	if (track >= TRACK_SLOT && track < TRACK_SLOT_LOST)
		name = xprintf("event %d", (int32_t)r->a);
	else
		name = track >= TRACK_GUEST ? strdup(loss_names[r->what]) : owner_name(c, r);
	quoted = json_quoted(name);
	name_track(c, cpu, track);
	begin(c, 'X', from, cpu);
	fprintf(c->out, ",\"dur\":%" PRIu64 ".%03u,\"tid\":%u,\"name\":%s,\"args\":{",
		(until - from) / 1000, (unsigned int)((until - from) % 1000), track, quoted);
	if (end && is_loss(track))
		fprintf(c->out, "\"enabled\":%" PRIu64 ",\"running\":%" PRIu64,
			grown(r->a, end->a), grown(r->b, end->b));
	else if (end && (track < TRACK_SLOT || end->a == r->a))
		fprintf(c->out, "\"count\":%" PRIu64, grown(r->b, end->b));
	fprintf(c->out, "}}");
	free(quoted);
	free(name);
	s->open = false;
	s->end = until;
}

/* If a span begins before the last has ended, the end is missing. */
static void span_begin(struct convert *c, const struct vpmu_trace_record *r,
		       unsigned int track)
{
	struct span *s = &c->cpu[r->cpu]->span[track];

	if (s->open)
		span_write(c, r->cpu, track, r->time, NULL);
	s->open = true;
	s->from = *r;
}

static void span_end(struct convert *c, const struct vpmu_trace_record *r,
		     unsigned int track)
{
	if (c->cpu[r->cpu]->span[track].open)
		span_write(c, r->cpu, track, r->time, r);
	else
		c->senseless++;
}

static void moment(struct convert *c, const struct vpmu_trace_record *r, const char *name)
{
	name_track(c, r->cpu, TRACK_MOMENTS);
	begin(c, 'i', r->time, r->cpu);
	fprintf(c->out, ",\"s\":\"t\",\"tid\":%d,\"name\":\"%s\",\"args\":{", TRACK_MOMENTS,
		name);
}

static void loss(struct convert *c, const struct vpmu_trace_record *r, bool lost, bool slot)
{
	char *counter = slot ? xprintf("slot %u", r->pmc) : counter_name(c, r->pmc);
	unsigned int track = (slot ? TRACK_SLOT_LOST : TRACK_GUEST) + r->pmc;
	char *name = xprintf("%s %s", counter, lost ? loss_names[r->what] : "found");

	moment(c, r, name);
	fprintf(c->out, "\"enabled\":%" PRIu64 ",\"running\":%" PRIu64 "}}", r->a, r->b);
	if (lost)
		span_begin(c, r, track);
	else
		span_end(c, r, track);
	free(name);
	free(counter);
}

static void curve(struct convert *c, unsigned int cpu, uint64_t time)
{
	struct cpu *p = c->cpu[cpu];

	begin(c, 'C', time, cpu);
	fprintf(c->out, ",\"name\":\"exits\",\"args\":{");
	p->drawn = 0;
	for (int i = 0; i < EXITS; i++) {
		fprintf(c->out, "%s\"%s\":%" PRIu64, i ? "," : "", exit_names[i], p->exits[i]);
		p->drawn += p->exits[i];
	}
	fprintf(c->out, "}}");
	p->curve = time;
}

/* Returns false if the exit is not to be shown by itself. */
static bool one_exit(struct convert *c, const struct vpmu_trace_record *r, unsigned int kind)
{
	struct cpu *p = c->cpu[r->cpu];

	p->exits[kind]++;
	if (!p->drawn || r->time - p->curve >= CURVE_NS)
		curve(c, r->cpu, r->time);
	return ++c->exits <= EXITS_SHOWN;
}

static void hypercall(struct convert *c, const struct vpmu_trace_record *r)
{
	char *name;

	if (!one_exit(c, r, EXIT_HYPERCALL))
		return;
	name = hypercall_name(r);
	name_track(c, r->cpu, TRACK_EXITS);
	begin(c, 'i', r->time, r->cpu);
	fprintf(c->out, ",\"s\":\"t\",\"tid\":%d,\"name\":\"hypercall %s\",\"args\":"
		"{\"number\":\"0x%" PRIx64 "\",\"answer\":%" PRId64 "}}", TRACK_EXITS,
		name, r->a, (int64_t)r->b);
	free(name);
}

static void paravirtual(struct convert *c, const struct vpmu_trace_record *r)
{
	char *name;

	if (r->type == VPMU_TRACE_PV_OVERFLOW)
		name = xprintf("overflow of event %d", (int32_t)r->a);
	else
		name = xprintf("event %d %s", (int32_t)r->a, r->what ? "throttled" : "goes on");
	moment(c, r, name);
	if (r->type == VPMU_TRACE_PV_OVERFLOW)
		fprintf(c->out, "\"slot\":%u,\"overflows\":%u,\"in all\":%" PRIu64 "}}",
			r->pmc, r->what, r->b);
	else
		fprintf(c->out, "\"slot\":%u}}", r->pmc);
	free(name);
}

static void served(struct convert *c, const struct vpmu_trace_record *r)
{
	char *name;

	if (!one_exit(c, r, r->what))
		return;
	name = r->what == VPMU_TRACE_RDPMC ? strdup("") : register_name(r->a);
	name_track(c, r->cpu, TRACK_EXITS);
	begin(c, 'i', r->time, r->cpu);
	fprintf(c->out, ",\"s\":\"t\",\"tid\":%d,\"name\":\"%s%s%s\",\"args\":"
		"{\"register\":\"0x%" PRIx64 "\",\"value\":\"0x%" PRIx64 "\"}}", TRACK_EXITS,
		exit_names[r->what], *name ? " " : "", name, r->a, r->b);
	free(name);
}

/* ---- reading */

/* Are its fields within their bounds? QEMU may be of another version. */
static bool sensible(const struct vpmu_trace_record *r)
{
	if (r->cpu >= CPUS_MAX)
		return false;
	switch (r->type) {
	case VPMU_TRACE_ASSIGN:
	case VPMU_TRACE_RELEASE:
		return r->pmc < VPMU_SLOTS_MAX && r->what <= VPMU_TRACE_HOST;
	case VPMU_TRACE_LOST:
	case VPMU_TRACE_FOUND:
		return r->pmc < VPMU_SLOTS_MAX && r->what <= VPMU_LOSS_NOT_COUNTED;
	case VPMU_TRACE_EXIT:
		return r->what < VPMU_TRACE_EXIT_COUNT;
	case VPMU_TRACE_PV_LOST:
	case VPMU_TRACE_PV_FOUND:
		return r->pmc < VPMU_PV_SLOTS && r->what <= VPMU_LOSS_NOT_COUNTED;
	case VPMU_TRACE_PV_ENABLE:
	case VPMU_TRACE_PV_DISABLE:
	case VPMU_TRACE_PV_OVERFLOW:
	case VPMU_TRACE_PV_THROTTLE:
		return r->pmc < VPMU_PV_SLOTS;
	case VPMU_TRACE_PMI:
	case VPMU_TRACE_ROTATE:
	case VPMU_TRACE_HYPERCALL:
		return true;
	}
	return false;
}

static void take_cpu(struct convert *c, unsigned int cpu)
{
	char *name = xprintf("cpu%u PMU", cpu);

	c->cpu[cpu] = xalloc(sizeof(**c->cpu));
	metadata(c, cpu, 0, "process", name);
	free(name);
}

static void take(struct convert *c, const struct vpmu_trace_record *r)
{
	if (!sensible(r)) {
		c->senseless++;
		return;
	}
	if (!c->cpu[r->cpu])
		take_cpu(c, r->cpu);
	if (r->time > c->cpu[r->cpu]->last)
		c->cpu[r->cpu]->last = r->time;
	switch (r->type) {
	case VPMU_TRACE_ASSIGN:
		span_begin(c, r, TRACK_COUNTER + r->pmc);
		break;
	case VPMU_TRACE_RELEASE:
		span_end(c, r, TRACK_COUNTER + r->pmc);
		break;
	case VPMU_TRACE_EXIT:
		served(c, r);
		break;
	case VPMU_TRACE_PMI:
		moment(c, r, "PMI");
		fprintf(c->out, "\"global_status\":\"0x%" PRIx64 "\"}}", r->a);
		break;
	case VPMU_TRACE_LOST:
	case VPMU_TRACE_FOUND:
		loss(c, r, r->type == VPMU_TRACE_LOST, false);
		break;
	case VPMU_TRACE_PV_LOST:
	case VPMU_TRACE_PV_FOUND:
		loss(c, r, r->type == VPMU_TRACE_PV_LOST, true);
		break;
	case VPMU_TRACE_PV_ENABLE:
		span_begin(c, r, TRACK_SLOT + r->pmc);
		break;
	case VPMU_TRACE_PV_DISABLE:
		span_end(c, r, TRACK_SLOT + r->pmc);
		break;
	case VPMU_TRACE_PV_OVERFLOW:
	case VPMU_TRACE_PV_THROTTLE:
		paravirtual(c, r);
		break;
	case VPMU_TRACE_HYPERCALL:
		hypercall(c, r);
		break;
	case VPMU_TRACE_ROTATE:
		moment(c, r, "rotation");
		fprintf(c->out, "}}");
		break;
	}
}

/* Spans that are still open end with the trace. */
static void finish(struct convert *c)
{
	for (unsigned int i = 0; i < CPUS_MAX; i++) {
		struct cpu *p = c->cpu[i];
		uint64_t exits = 0;

		if (!p)
			continue;
		for (unsigned int t = 0; t < TRACK_MOMENTS; t++)
			if (p->span[t].open)
				span_write(c, i, t, p->last, NULL);
		for (int k = 0; k < EXITS; k++)
			exits += p->exits[k];
		if (exits != p->drawn)
			curve(c, i, p->last);
		free(p);
	}
	if (c->exits > EXITS_SHOWN)
		say("--trace: of %" PRIu64 " exits the first %u are shown one by one; the "
		    "curves have all", c->exits, EXITS_SHOWN);
	if (c->senseless)
		say("--trace: %" PRIu64 " records make no sense and were left out",
		    c->senseless);
}

/* Returns false at the end, and if the last record was cut. */
static bool read_record(FILE *in, uint32_t bytes, struct vpmu_trace_record *r)
{
	if (fread(r, sizeof(*r), 1, in) != 1)
		return false;
	/* A newer QEMU may have appended fields. */
	for (uint32_t i = sizeof(*r); i < bytes; i++)
		if (getc_unlocked(in) == EOF)
			return false;
	return true;
}

int trace_convert(FILE *in, FILE *out, const struct vpmu_model *model,
		  const struct host_events *events)
{
	struct convert *c = xalloc(sizeof(*c));
	struct vpmu_trace_record r;
	struct trace_head head;
	int ret = 0;

	*c = (struct convert){ .out = out, .model = model, .events = events };
	rewind(in);
	fprintf(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	if (fread(&head, sizeof(head), 1, in) != 1 || memcmp(head.magic, "VPMUTRC1", 8) ||
	    head.version != 1 || head.record_bytes < sizeof(r) || head.record_bytes > 4096)
		say("--trace: QEMU wrote none");
	else
		while (read_record(in, head.record_bytes, &r))
			take(c, &r);
	finish(c);
	fprintf(out, "\n]}\n");
	if (fflush(out) || ferror(out))
		ret = errno ? -errno : -EIO;
	free(c);
	return ret;
}
