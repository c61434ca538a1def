// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <vpmu/model.h>
#include <vpmu/msr.h>
#include <vpmu/spec.h>

/* A piece of the text. */
struct spec_part {
	const char *s;
	size_t n;
};

struct spec {
	const char *text;
	const struct vpmu_model *model;
	struct vpmu_spec_error *err;
	const char *next; /* behind the last part: a colon, or the end */
};

/* What an event's name or number stands for. */
struct spec_event {
	uint64_t select; /* IA32_PERFEVTSEL image */
	int fixed;       /* only this fixed counter counts it, or -1 */
};

#define SPEC_EVENTS_NEEDED "an event of `vpmu list`, one of perf's generic names, or rHEX"

static int spec_wrong(struct spec *sp, struct spec_part at, const char *what,
		      const char *needed)
{
	sp->err->at = (size_t)(at.s - sp->text);
	sp->err->length = at.n;
	sp->err->what = what;
	sp->err->needed = needed;
	return -VPMU_EINVAL;
}

/* The next part between colons; false at the end of the text. */
static bool spec_next(struct spec *sp, struct spec_part *part)
{
	if (sp->next && !*sp->next)
		return false;
	part->s = sp->next ? sp->next + 1 : sp->text;
	for (part->n = 0; part->s[part->n] && part->s[part->n] != ':'; part->n++)
		;
	sp->next = part->s + part->n;
	return true;
}

static char spec_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool spec_is(struct spec_part part, const char *word)
{
	size_t i;

	for (i = 0; i < part.n; i++)
		if (word[i] != part.s[i])
			return false;
	return !word[i];
}

static bool spec_is_name(struct spec_part part, const char *name)
{
	size_t i;

	for (i = 0; i < part.n; i++)
		if (!name[i] || spec_lower(name[i]) != spec_lower(part.s[i]))
			return false;
	return !name[i];
}

/* Take @word off the front of @part. */
static bool spec_after(struct spec_part *part, const char *word)
{
	size_t i;

	for (i = 0; word[i]; i++)
		if (i == part->n || part->s[i] != word[i])
			return false;
	part->s += i;
	part->n -= i;
	return true;
}

static unsigned int spec_digit(char c)
{
	c = spec_lower(c);
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a') + 10;
	return 16;
}

/* The whole of @part as a number; false if it is none or above @max. */
static bool spec_number(struct spec_part part, unsigned int base, uint64_t max, uint64_t *n)
{
	uint64_t value = 0;
	unsigned int digit;
	size_t i;

	for (i = 0; i < part.n; i++) {
		digit = spec_digit(part.s[i]);
		if (digit >= base)
			return false;
		/* One digit more still fits in 64 bits. */
		if (value >> 60)
			return false;
		value = value * base + digit;
	}
	*n = value;
	return part.n && value <= max;
}

/* ---- events */

/* perf's generic names: the architectural event, and AMD's encoding or 0. */
static const struct {
	const char *name;
	uint8_t arch;
	uint16_t amd;
} spec_generic[] = {
	{ "cycles", 0, 0x0076 },           { "cpu-cycles", 0, 0x0076 },
	{ "instructions", 1, 0x00c0 },     { "bus-cycles", 2, 0 },
	{ "cache-references", 3, 0xff60 }, { "cache-misses", 4, 0x0964 },
	{ "branches", 5, 0x00c2 },         { "branch-instructions", 5, 0x00c2 },
	{ "branch-misses", 6, 0x00c3 },
};

/* Not an event of its own: what fixed counter 2 counts. */
#define SPEC_REF_CYCLES_FIXED 2

static void spec_row(const struct vpmu_event_def *row, struct spec_event *ev)
{
	ev->fixed = row->gp_mask ? -1 : row->fixed;
	ev->select = 0;
	if (row->gp_mask)
		ev->select = (row->select & 0xffu) | (uint64_t)row->umask << 8 |
			     (uint64_t)row->when << 16 | (uint64_t)(row->select & 0xf00u) << 24 |
			     (uint64_t)row->umask2 << 40;
}

static const struct vpmu_event_def *spec_generic_row(const struct vpmu_model *m,
						     uint8_t arch, uint16_t amd)
{
	if (m->vendor == VPMU_VENDOR_AMD)
		return amd ? vpmu_event_find(m, amd, -1) : NULL;
	return arch < m->n_arch_events ? vpmu_event_find(m, vpmu_arch_event[arch], -1) : NULL;
}

static const struct vpmu_event_def *spec_named(const struct spec *sp, struct spec_part part)
{
	const struct vpmu_model *m = sp->model;
	unsigned int i;

	for (i = 0; i < m->n_events; i++)
		if (spec_is_name(part, m->events[i].name))
			return &m->events[i];
	if (spec_is(part, "ref-cycles") && m->n_fixed > SPEC_REF_CYCLES_FIXED)
		return vpmu_event_find(m, 0, SPEC_REF_CYCLES_FIXED);
	for (i = 0; i < sizeof(spec_generic) / sizeof(spec_generic[0]); i++)
		if (spec_is(part, spec_generic[i].name))
			return spec_generic_row(m, spec_generic[i].arch, spec_generic[i].amd);
	return NULL;
}

/* rHEX, of which only @bits may be set. */
static int spec_raw(struct spec *sp, struct spec_part part, uint64_t bits,
		    const char *needed, struct spec_event *ev)
{
	const struct vpmu_event_def *row;
	struct spec_part hex = part;

	spec_after(&hex, "r");
	if (!spec_number(hex, 16, UINT64_MAX, &ev->select))
		return spec_wrong(sp, hex, "more than 64 bits", needed);
	if (ev->select & ~bits)
		return spec_wrong(sp, hex, "bits that select no event", needed);
	ev->fixed = -1;
	row = vpmu_event_find(sp->model, ev->select, -1);
	if (!row || row->gp_mask)
		return 0;
	if (ev->select & ~vpmu_event_name_bits(sp->model))
		return spec_wrong(sp, hex, "a fixed counter's event with a condition",
				  "bits 7:0 and 15:8 for this event");
	spec_row(row, ev);
	return 0;
}

static bool spec_is_raw(struct spec_part part)
{
	size_t i;

	if (!spec_after(&part, "r") || !part.n)
		return false;
	for (i = 0; i < part.n; i++)
		if (spec_digit(part.s[i]) > 15)
			return false;
	return true;
}

static int spec_event(struct spec *sp, struct spec_part part, uint64_t bits,
		      const char *needed_raw, struct spec_event *ev)
{
	const struct vpmu_event_def *row = spec_named(sp, part);

	if (row) {
		spec_row(row, ev);
		return 0;
	}
	if (spec_is_raw(part))
		return spec_raw(sp, part, bits, needed_raw, ev);
	return spec_wrong(sp, part, part.n ? "no event of this CPU" : "no event",
			  SPEC_EVENTS_NEEDED);
}

/* ---- host events */

/* What has been said already. */
struct spec_said {
	bool pinned, off, exclusive, period, lbr, pebs, user, kernel, guest, host;
};

static int spec_target(struct spec *sp, uint32_t n_cpus, struct vpmu_host_event *out)
{
	struct spec_part part, number;
	uint64_t n;

	spec_next(sp, &part);
	number = part;
	out->task = spec_after(&number, "vcpu");
	if (!out->task && !spec_after(&number, "cpu"))
		return spec_wrong(sp, part, "no target", "cpuN or vcpuN");
	if (!spec_number(number, 10, UINT32_MAX, &n) || n >= n_cpus)
		return spec_wrong(sp, number, number.n ? "no such CPU" : "no CPU's number",
				  "a number below the guest's number of CPUs");
	out->cpu = (uint32_t)n;
	return 0;
}

static int spec_once(struct spec *sp, struct spec_part part, bool *said)
{
	if (*said)
		return spec_wrong(sp, part, "said twice", "each option once");
	*said = true;
	return 0;
}

/* Letters as after perf's colon: "u", "ukG". */
static int spec_letters(struct spec *sp, struct spec_part part, struct spec_said *said)
{
	struct spec_part letter = { part.s, 1 };
	int ret = 0;

	for (; !ret && letter.s < part.s + part.n; letter.s++) {
		switch (*letter.s) {
		case 'u':
			ret = spec_once(sp, letter, &said->user);
			break;
		case 'k':
			ret = spec_once(sp, letter, &said->kernel);
			break;
		case 'G':
			ret = spec_once(sp, letter, &said->guest);
			break;
		default:
			ret = spec_once(sp, letter, &said->host);
			break;
		}
		if (!ret && said->guest && said->host)
			ret = spec_wrong(sp, letter, "guest only and host only: it would "
					 "never count", "G or H, or none for both");
	}
	return ret;
}

static bool spec_is_letters(struct spec_part part)
{
	size_t i;

	for (i = 0; i < part.n; i++)
		if (part.s[i] != 'u' && part.s[i] != 'k' && part.s[i] != 'G' &&
		    part.s[i] != 'H')
			return false;
	return part.n;
}

/* The value behind "NAME=", which @part begins with. */
static struct spec_part spec_value(struct spec_part part)
{
	size_t i = 0;

	while (part.s[i] != '=')
		i++;
	part.s += i + 1;
	part.n -= i + 1;
	return part;
}

#define SPEC_PERIOD_MAX (UINT64_MAX >> 1)

static int spec_period(struct spec *sp, struct spec_part part, struct spec_said *said,
		       struct vpmu_host_event *out)
{
	struct spec_part value = spec_value(part);
	int ret = spec_once(sp, part, &said->period);

	if (ret)
		return ret;
	if (!spec_number(value, 10, SPEC_PERIOD_MAX, &out->attr.event.period) ||
	    !out->attr.event.period)
		return spec_wrong(sp, value, value.n ? "not a period" : "no period",
				  "occurrences in decimal, from 1 to 9223372036854775807");
	return 0;
}

/* The bits of MSR_LBR_SELECT, CALL_STACK included. */
#define SPEC_LBR_FILTER_MAX 0x3ff

static int spec_lbr(struct spec *sp, struct spec_part part, bool filtered,
		    struct spec_said *said, struct vpmu_host_event *out)
{
	struct spec_part value;
	int ret = spec_once(sp, part, &said->lbr);

	if (ret)
		return ret;
	out->attr.event.shared = VPMU_SHARED_LBR;
	if (!filtered)
		return 0;
	value = spec_value(part);
	if (!spec_number(value, 16, SPEC_LBR_FILTER_MAX, &out->attr.event.extra))
		return spec_wrong(sp, value, value.n ? "not a filter" : "no filter",
				  "an image of MSR_LBR_SELECT in hex, 0 to 3ff");
	return 0;
}

static int spec_pebs(struct spec *sp, struct spec_part part, struct spec_said *said,
		     struct vpmu_host_event *out)
{
	out->attr.event.shared = VPMU_SHARED_PEBS;
	return spec_once(sp, part, &said->pebs);
}

static int spec_option(struct spec *sp, struct spec_part part, struct spec_said *said,
		       struct vpmu_host_event *out)
{
	struct spec_part rest = part;

	if (spec_is(part, "pinned"))
		return spec_once(sp, part, &said->pinned);
	if (spec_is(part, "off"))
		return spec_once(sp, part, &said->off);
	if (spec_is(part, "exclusive"))
		return spec_once(sp, part, &said->exclusive);
	if (spec_after(&rest, "period="))
		return spec_period(sp, part, said, out);
	if (spec_is(part, "lbr") || spec_after(&rest, "lbr="))
		return spec_lbr(sp, part, rest.n != part.n, said, out);
	if (spec_is(part, "pebs"))
		return spec_pebs(sp, part, said, out);
	if (spec_is_letters(part))
		return spec_letters(sp, part, said);
	return spec_wrong(sp, part, part.n ? "no such option" : "nothing between colons",
			  "pinned, off, exclusive, period=N, lbr[=FILTER], pebs, u, k, G or H");
}

static int spec_options(struct spec *sp, struct vpmu_host_event *out)
{
	struct spec_said said = { 0 };
	struct vpmu_perf_attr *attr = &out->attr;
	struct spec_part part;
	int ret = 0;

	while (!ret && spec_next(sp, &part)) {
		ret = spec_option(sp, part, &said, out);
		if (!ret && said.lbr && said.pebs)
			ret = spec_wrong(sp, part, "lbr and pebs in one event", "one of them");
	}
	attr->event.pinned = said.pinned;
	attr->disabled = said.off;
	attr->exclusive = said.exclusive;
	attr->exclude_host = said.guest;
	attr->exclude_guest = said.host;
	if (said.user || !said.kernel)
		attr->event.banks |= VPMU_BANKS_USER;
	if (said.kernel || !said.user)
		attr->event.banks |= VPMU_BANKS_KERNEL;
	return ret;
}

int vpmu_spec_host_event(const char *text, const struct vpmu_model *model,
			 uint32_t n_cpus, struct vpmu_host_event *out,
			 struct vpmu_spec_error *err)
{
	const uint64_t bits = vpmu_event_name_bits(model) | VPMU_EVTSEL_CONDITION;
	struct spec sp = { .text = text, .model = model, .err = err };
	struct vpmu_host_event found = {
		.attr = { .size = sizeof(found.attr), .cpu = -1 },
	};
	struct spec_event ev;
	struct spec_part part;
	int ret = spec_target(&sp, n_cpus, &found);

	if (ret)
		return ret;
	if (!spec_next(&sp, &part)) {
		part.s = sp.next;
		part.n = 0;
		return spec_wrong(&sp, part, "no event", SPEC_EVENTS_NEEDED);
	}
	ret = spec_event(&sp, part, bits, "bits 7:0, 15:8, 18, 23 and 31:24, as perf has them",
			 &ev);
	if (!ret)
		ret = spec_options(&sp, &found);
	if (ret)
		return ret;
	found.attr.event.size = sizeof(found.attr.event);
	found.attr.event.select = ev.select;
	found.attr.event.fixed = (int8_t)ev.fixed;
	found.attr.event.slot = -1;
	*out = found;
	return 0;
}

/* ---- filters */

struct spec_filter {
	struct spec sp;
	uint64_t *events; /* as masked entries until the end */
	uint32_t n;
	uint32_t fixed;
	bool masked;
};

/* The bits of an entry that say which event select it is about. */
#define SPEC_ENTRY_SELECT (0xffull | 0xfull << 32)
#define SPEC_ENTRY_EXCLUDE (1ull << 55)

static int spec_add_entry(struct spec_filter *f, struct spec_part part, uint64_t entry)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (f->events[i] == entry)
			return spec_wrong(&f->sp, part, "listed twice", "each entry once");
	if (f->n == VPMU_FILTER_EVENTS_MAX)
		return spec_wrong(&f->sp, part, "too many entries", "at most 300");
	f->events[f->n++] = entry;
	return 0;
}

static int spec_add_fixed(struct spec_filter *f, struct spec_part part, unsigned int fixed)
{
	if (f->fixed >> fixed & 1)
		return spec_wrong(&f->sp, part, "listed twice", "each entry once");
	f->fixed |= 1u << fixed;
	return 0;
}

static int spec_fixed(struct spec_filter *f, struct spec_part part, struct spec_part number)
{
	uint64_t n;

	if (!spec_number(number, 10, UINT32_MAX, &n) || n >= f->sp.model->n_fixed)
		return spec_wrong(&f->sp, number, "no such fixed counter",
				  "fixedN, N below the CPU's number of fixed counters");
	return spec_add_fixed(f, part, (unsigned int)n);
}

/* "SELECT/MASK/MATCH": the next number in hex, up to a slash or the end. */
static int spec_field(struct spec_filter *f, struct spec_part *rest, bool last, uint64_t max,
		      uint64_t *n)
{
	static const char needed[] = "SELECT/MASK/MATCH in hex: an event select and two "
				     "unit masks";
	struct spec_part field = { rest->s, 0 };

	while (field.n < rest->n && rest->s[field.n] != '/')
		field.n++;
	rest->s += field.n;
	rest->n -= field.n;
	if (!spec_number(field, 16, UINT64_MAX, n))
		return spec_wrong(&f->sp, field, field.n ? "not a number" : "a number is missing",
				  needed);
	if (*n > max)
		return spec_wrong(&f->sp, field, "too large", needed);
	if (last && rest->n)
		return spec_wrong(&f->sp, *rest, "more than three numbers", needed);
	if (!last && !rest->n)
		return spec_wrong(&f->sp, *rest, "a number is missing", needed);
	if (!last) {
		rest->s++;
		rest->n--;
	}
	return 0;
}

/* Does an entry before select events of which @entry could be an exception? */
static bool spec_has_select(const struct spec_filter *f, uint64_t entry)
{
	uint32_t i;

	for (i = 0; i < f->n; i++)
		if (!((f->events[i] ^ entry) & SPEC_ENTRY_SELECT) &&
		    !(f->events[i] & SPEC_ENTRY_EXCLUDE))
			return true;
	return false;
}

static int spec_masked(struct spec_filter *f, struct spec_part part, struct spec_part value,
		       bool exclude)
{
	uint64_t max = f->sp.model->vendor == VPMU_VENDOR_AMD ? 0xfff : 0xff;
	uint64_t select, mask, match, entry;
	struct spec_part rest = value;
	int ret = spec_field(f, &rest, false, max, &select);

	if (!ret)
		ret = spec_field(f, &rest, false, 0xff, &mask);
	if (!ret)
		ret = spec_field(f, &rest, true, 0xff, &match);
	if (ret)
		return ret;
	if (match & ~mask)
		return spec_wrong(&f->sp, value, "matches no unit mask",
				  "MATCH without bits that MASK takes away");
	entry = VPMU_FILTER_ENTRY(select, mask, match, exclude);
	if (exclude && !spec_has_select(f, entry))
		return spec_wrong(&f->sp, part, "an exception from nothing",
				  "an entry of the same event select before it");
	f->masked = true;
	return spec_add_entry(f, part, entry);
}

static int spec_entry(struct spec_filter *f, struct spec_part part)
{
	struct spec_part rest = part;
	struct spec_event ev;
	uint64_t select;
	int ret;

	if (spec_after(&rest, "fixed"))
		return spec_fixed(f, part, rest);
	if (spec_after(&rest, "mask="))
		return spec_masked(f, part, rest, false);
	if (spec_after(&rest, "except="))
		return spec_masked(f, part, rest, true);
	ret = spec_event(&f->sp, part, vpmu_event_name_bits(f->sp.model),
			 "bits 7:0 and 15:8: a filter looks at nothing else", &ev);
	if (ret)
		return ret;
	if (ev.fixed >= 0)
		return spec_add_fixed(f, part, (unsigned int)ev.fixed);
	select = (ev.select & 0xff) | (ev.select >> 24 & 0xf00);
	return spec_add_entry(f, part, VPMU_FILTER_ENTRY(select, 0xff, ev.select >> 8, 0));
}

int vpmu_spec_filter(const char *text, const struct vpmu_model *model,
		     struct vpmu_filter *out, uint64_t *events,
		     struct vpmu_spec_error *err)
{
	struct spec_filter f = {
		.sp = { .text = text, .model = model, .err = err },
		.events = events,
	};
	struct spec_part part;
	uint32_t action, i;
	int ret = 0;

	spec_next(&f.sp, &part);
	if (spec_is(part, "allow"))
		action = VPMU_FILTER_ALLOW;
	else if (spec_is(part, "deny"))
		action = VPMU_FILTER_DENY;
	else
		return spec_wrong(&f.sp, part, "no action", "allow or deny");
	while (!ret && spec_next(&f.sp, &part))
		ret = spec_entry(&f, part);
	if (ret)
		return ret;
	for (i = 0; i < f.n && !f.masked; i++)
		events[i] &= SPEC_ENTRY_SELECT | VPMU_EVTSEL_UMASK;
	*out = (struct vpmu_filter){
		.size = sizeof(*out),
		.action = action,
		.flags = f.masked ? VPMU_FILTER_MASKED : 0,
		.fixed_bitmap = f.fixed,
		.n_events = f.n,
		.events = events,
	};
	return 0;
}
