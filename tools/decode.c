// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu decode: prints the fields of a register's value in words. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include <vpmu/lbr.h>
#include <vpmu/loss.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>

#include "registers.h"
#include "vpmu.h"

static const char usage[] =
"Usage: vpmu decode [options] REGISTER=VALUE...\n"
"       vpmu decode [options] rEVENT...\n"
"       vpmu decode --list\n"
"\n"
"Explains a value of a PMU's register or CPUID leaf, or an event as perf takes it:\n"
"each field that is set, its event by name, and bits that have no meaning. A register\n"
"is named as the manuals do, with or without IA32_, MSR_ and PERF_, or by number.\n"
"\n"
"  vpmu decode PERFEVTSEL0=0x5300c0\n"
"  vpmu decode 0x38d=0x333 CPUID.0AH:EAX=0x08300805\n"
"  vpmu decode --cpu EPYC-Milan r5300c2\n";

struct decoded {
	const struct vpmu_model *model;
	const char *name;
	uint64_t value;
	json_t *fields;		/* objects with "bits", "name" and "meaning" */
	uint64_t known;		/* bits that fields have named */
};

/* ---- fields in words */

static void add(struct decoded *d, const struct field *f, char *name, char *meaning)
{
	char *bits = f->bits > 1 ? xprintf("%u:%u", f->low + f->bits - 1, f->low)
				 : xprintf("%u", f->low);

	json_array_append_new(d->fields, json_pack("{s:s, s:s, s:s}", "bits", bits,
						   "name", name, "meaning", meaning));
	free(bits);
	free(name);
	free(meaning);
}

static char *event_text(const struct vpmu_model *model, uint64_t value)
{
	const struct vpmu_event_def *def = vpmu_event_find(model, value, -1);
	char *gp, *fixed, *text;

	if (!def)
		return xprintf("no event of %s: it counts nothing", model->title);
	gp = mask_text(def->gp_mask);
	fixed = def->fixed >= 0 ? xprintf(", fixed counter %d", def->fixed) : strdup("");
	text = xprintf("%s: %s, on counters %s%s", def->name,
		       event_quality(model, def, TCG_SUPPLIED), gp, fixed);
	free(gp);
	free(fixed);
	return text;
}

static const char *fixed_event(const struct vpmu_model *model, unsigned int fixed)
{
	const struct vpmu_event_def *def = fixed < model->n_fixed ?
		vpmu_event_find(model, 0, fixed) : NULL;

	return def ? def->name : NULL;
}

/* Lists the counters of a mask, and those that this model does not have. */
static void add_counters(struct decoded *d, const struct field *f, uint64_t v)
{
	bool fixed = f->kind == FIELD_FIXED;
	unsigned int n = fixed ? d->model->n_fixed : d->model->n_gp;
	char *mask = mask_text(v), *beyond = mask_text(v >> n << n);

	add(d, f, xprintf("%s %s", f->name, mask),
	    *beyond ? xprintf("%s (%s does not have %s)", f->meaning, d->model->title, beyond)
		    : strdup(f->meaning));
	free(mask);
	free(beyond);
}

static void add_rings(struct decoded *d, const struct field *f, uint64_t v)
{
	static const char *const names[] = { "OS", "USR", "ANY", "PMI" };

	for (unsigned int i = 0; i < 4; i++) {
		struct field four = { f->low + 4 * i, 4, 0, NULL, NULL };
		struct buffer b = { 0 };
		const char *event = fixed_event(d->model, i);

		if (!(v >> 4 * i & 0xf))
			continue;
		for (int k = 0; k < 4; k++)
			if (v >> (4 * i + k) & 1)
				buffer_print(&b, "%s%s", b.len ? " " : "", names[k]);
		add(d, &four, xprintf("FIXED%u", i),
		    xprintf("%s: %s", b.data, event ? event : "this model does not have it"));
		buffer_free(&b);
	}
}

static void add_events(struct decoded *d, const struct field *f, uint64_t v)
{
	static const char *const names[VPMU_ARCH_EVENTS + 5] = {
		"core cycles", "instructions", "reference cycles", "LLC references",
		"LLC misses", "branches", "branch misses", "topdown slots",
		"topdown backend bound", "topdown bad speculation", "topdown frontend bound",
		"topdown retiring", "LBR inserts",
	};
	struct buffer b = { 0 };

	for (unsigned int i = 0; i < 32; i++)
		if (v >> i & 1)
			buffer_print(&b, "%s%s", b.len ? ", " : "",
				     i < sizeof(names) / sizeof(names[0]) ? names[i] : "unknown");
	add(d, f, strdup(f->name), b.data);
}

/* The value as it is, and as the distance to the counter's overflow. */
static char *count_text(const struct vpmu_model *model, uint64_t v)
{
	uint64_t range = model->width_bits < 64 ? 1ull << model->width_bits : 0;

	if (range && v < range && v >= range / 2)
		return xprintf("%" PRIu64 ", %" PRIu64 " before it overflows (%u bits)", v,
			       range - v, model->width_bits);
	return xprintf("%" PRIu64, v);
}

static char *depths_text(uint64_t v, const char *meaning)
{
	struct buffer b = { 0 };

	for (unsigned int i = 0; i < 8; i++)
		if (v >> i & 1)
			buffer_print(&b, "%s%u", b.len ? ", " : "", 8 * (i + 1));
	buffer_print(&b, ": %s", meaning);
	return b.data;
}

static void add_value(struct decoded *d, const struct field *f, uint64_t v)
{
	static const char *const branches[16] = {
		[VPMU_BRANCH_JCC] = "conditional", [VPMU_BRANCH_JMP_INDIRECT] = "indirect jump",
		[VPMU_BRANCH_JMP] = "direct jump", [VPMU_BRANCH_CALL_INDIRECT] = "indirect call",
		[VPMU_BRANCH_CALL] = "direct call", [VPMU_BRANCH_RET] = "return",
		[VPMU_LBR_TYPE_OTHER] = "far branch, interrupt or exception",
	};
	static const char *const losses[] = {
		[VPMU_LOSS_NONE] = "counts, or is disabled",
		[VPMU_LOSS_LOST] = "lost: the host has its counter",
		[VPMU_LOSS_FILTERED] = "filtered: the VM's event filter denies its event",
		[VPMU_LOSS_NOT_COUNTED] = "not counted: no counter counts its event",
	};
	char *text;

	switch (f->kind) {
	case FIELD_HEX:
		text = xprintf("0x%" PRIx64 "%s%s", v, f->meaning ? ": " : "",
			       f->meaning ? f->meaning : "");
		break;
	case FIELD_PERCENT:
		text = xprintf("%" PRIu64 ".%" PRIu64 " %% %s", v * 1000 / 255 / 10,
			       v * 1000 / 255 % 10, f->meaning);
		break;
	case FIELD_COUNT:
		text = count_text(d->model, v);
		break;
	case FIELD_BRANCH:
		text = strdup(branches[v] ? branches[v] : "reserved");
		break;
	case FIELD_LOSS:
		text = strdup(v < sizeof(losses) / sizeof(losses[0]) ? losses[v] : "unknown");
		break;
	case FIELD_DEPTHS:
		text = depths_text(v, f->meaning);
		break;
	default:
		text = xprintf("%" PRIu64 "%s%s", v + (f->kind == FIELD_LESS_ONE),
			       f->meaning ? ": " : "", f->meaning ? f->meaning : "");
	}
	add(d, f, strdup(f->name), text);
}

/* A field that is 0 is omitted, unless it is a number of its own. */
static bool shown(const struct field *f, uint64_t v)
{
	return v || f->bits == 64 || f->kind == FIELD_EVENT || f->kind == FIELD_LOSS ||
	       f->kind == FIELD_BRANCH;
}

static void take_field(struct decoded *d, const struct field *f)
{
	uint64_t mask = f->bits < 64 ? (1ull << f->bits) - 1 : ~0ull;
	uint64_t v = d->value >> f->low & mask;

	d->known |= mask << f->low;
	if (!shown(f, v))
		return;
	switch (f->kind) {
	case FIELD_FLAG:
		add(d, f, strdup(f->name), strdup(f->meaning));
		break;
	case FIELD_EVENT:
		add(d, f, strdup(f->name), event_text(d->model, d->value));
		break;
	case FIELD_COUNTERS:
	case FIELD_FIXED:
		add_counters(d, f, v);
		break;
	case FIELD_RINGS:
		add_rings(d, f, v);
		break;
	case FIELD_EVENTS:
	case FIELD_EVENTS_NOT:
		add_events(d, f, v);
		break;
	default:
		add_value(d, f, v);
	}
}

/* ---- finding the register */

static const char *without_prefix(const char *name)
{
	static const char *const prefixes[] = { "IA32_", "MSR_", "PERF_" };

	for (size_t i = 0; i < 3; i++)
		if (!strncasecmp(name, prefixes[i], strlen(prefixes[i])))
			name += strlen(prefixes[i]);
	return name;
}

/* "CPUID.0AH.0:EAX" and "cpuid.0xa.eax" to "A.EAX". */
static char *plain_leaf(const char *name)
{
	struct buffer b = { 0 };
	bool start = true;

	buffer_string(&b, "");
	for (const char *s = name + strlen("CPUID."); *s; s++) {
		char c = toupper(*s);

		if (start && (c == '0' || (c == 'X' && s[-1] == '0')))
			continue;
		if (c == 'H')
			continue;
		if (c == ':')
			c = '.';
		if (start && c == '.') /* a subleaf of 0 */
			continue;
		start = c == '.';
		buffer_add(&b, &c, 1);
	}
	return b.data;
}

static bool same_leaf(const char *a, const char *b)
{
	char *x, *y;
	bool same;

	if (strncasecmp(a, "CPUID.", 6) || strncasecmp(b, "CPUID.", 6))
		return false;
	x = plain_leaf(a);
	y = plain_leaf(b);
	same = !strcmp(x, y);
	free(x);
	free(y);
	return same;
}

static bool is_reg(const struct reg *r, const char *name, uint32_t *index)
{
	const char *own = without_prefix(r->name);
	char *end;

	*index = 0;
	if (!r->n)
		return same_leaf(r->name, name);
	name = without_prefix(name);
	if (strncasecmp(name, own, strlen(own)))
		return false;
	name += strlen(own);
	if (r->n == 1)
		return !*name;
	if (!isdigit(*name))
		return false;
	*index = strtoul(name, &end, 10);
	return *index < r->n && !strcasecmp(end, r->tail ? r->tail : "");
}

/* Parses all of @text: decimal, or hexadecimal with a leading 0x or a trailing H. */
static bool parse_number(const char *text, uint64_t *value)
{
	size_t len = strlen(text);
	bool hex = len > 1 && toupper(text[len - 1]) == 'H';
	char *end;

	if (!isxdigit(*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, hex ? 16 : !strncasecmp(text, "0x", 2) ? 16 : 10);
	return !errno && end == text + len - hex;
}

static const struct reg *find(const char *name, uint32_t *index)
{
	const char **names = xalloc((n_registers + 1) * sizeof(*names)), *close;
	const struct reg *r;
	uint64_t msr;

	if (parse_number(name, &msr)) {
		r = msr <= UINT32_MAX ? register_at(msr, index) : NULL;
		if (!r)
			fail(EXIT_VPMU, "decode %s: no MSR of a PMU (vpmu decode --list "
			     "prints them)", name);
		free(names);
		return r;
	}
	for (size_t i = 0; i < n_registers; i++) {
		if (is_reg(&registers[i], name, index)) {
			free(names);
			return &registers[i];
		}
		names[i] = without_prefix(registers[i].name);
	}
	close = nearest(without_prefix(name), names);
	fail(EXIT_VPMU, "decode %s: no register of a PMU; %s%s%s(vpmu decode --list prints them)",
	     name, close ? "did you mean " : "", close ? close : "", close ? "? " : "");
}

/* ---- output */

static void print_text(const struct decoded *d)
{
	json_t *f;
	size_t i;

	printf("%s = 0x%" PRIx64 "\n", d->name, d->value);
	json_array_foreach(d->fields, i, f)
		printf("  %-6s %-22s %s\n", json_string_value(json_object_get(f, "bits")),
		       json_string_value(json_object_get(f, "name")),
		       json_string_value(json_object_get(f, "meaning")));
	if (!json_array_size(d->fields))
		printf("  nothing is set\n");
}

static void decode_value(const char *name, const struct reg *r, uint64_t value,
			 const struct vpmu_model *model, json_t *out)
{
	struct decoded d = { .model = model, .name = name, .value = value,
			     .fields = json_array() };
	json_t *j;

	for (const struct field *f = r->fields; f->name; f++)
		take_field(&d, f);
	for (unsigned int i = 0; i < 64; i++) {
		struct field bit = { i, 1, 0, NULL, NULL };

		if (value & ~d.known & 1ull << i)
			add(&d, &bit, strdup("reserved"),
			    strdup(r->n ? "writing it is a #GP" : "has no meaning"));
	}
	if (!out) {
		print_text(&d);
		json_decref(d.fields);
		return;
	}
	j = json_pack("{s:s, s:o}", "register", name, "fields", d.fields);
	json_object_set_new(j, "value", json_sprintf("0x%" PRIx64, value));
	json_array_append_new(out, j);
}

static const struct vpmu_model *model_of(const char *cpu, bool amd)
{
	const struct vpmu_model *model = model_named(cpu ? cpu : amd ? "EPYC-Milan"
								     : "Icelake-Server");

	if (!model)
		fail(EXIT_VPMU, "--cpu %s: no table of its events (docs/MODELS.md lists them)",
		     cpu);
	if (cpu && amd && model->vendor != VPMU_VENDOR_AMD)
		fail(EXIT_VPMU, "--cpu %s: found a model of Intel's, needed one of AMD's, whose "
		     "register this is", cpu);
	return model;
}

/* perf's rNNN is a selector, without the bits that perf sets itself. */
static void decode_event(const char *text, const char *cpu, json_t *out)
{
	const struct vpmu_model *model = model_of(cpu, false);
	bool amd = model->vendor == VPMU_VENDOR_AMD;
	uint32_t index;
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text + 1, &end, 16);
	if (!isxdigit(text[1]) || *end || errno)
		fail(EXIT_VPMU, "decode %s: found no '=', needed REGISTER=VALUE, or rNNNN as perf "
		     "takes it (vpmu decode --help)", text);
	decode_value(text, register_at(amd ? VPMU_MSR_AMD_PERF_CTL0 : VPMU_MSR_PERFEVTSEL0,
				       &index), value, model, out);
}

static void decode(const char *text, const char *cpu, json_t *out)
{
	const char *equal = strchr(text, '=');
	const struct reg *r;
	uint64_t value;
	uint32_t index;
	char *name;

	if (!equal) {
		decode_event(text, cpu, out);
		return;
	}
	name = strndup(text, equal - text);
	r = find(name, &index);
	if (!parse_number(equal + 1, &value))
		fail(EXIT_VPMU, "decode %s: found '%s', needed a number of at most 64 bits: "
		     "0x4300c0, 4300c0H or decimal", text, equal + 1);
	if (!r->n && value > UINT32_MAX)
		fail(EXIT_VPMU, "decode %s: found more than the 32 bits that %s has", text,
		     r->name);
	free(name);
	name = r->n ? register_name(r->first + index * r->stride) : strdup(r->name);
	decode_value(name, r, value, model_of(cpu, r->amd), out);
	free(name);
}

static int list_registers(void)
{
	for (size_t i = 0; i < n_registers; i++) {
		const struct reg *r = &registers[i];

		if (!r->n)
			printf("%-10s %s\n", "", r->name);
		else if (r->n == 1)
			printf("0x%-8x %s\n", r->first, r->name);
		else
			printf("0x%-8x %s0%s to %u\n", r->first, r->name, r->tail ? r->tail : "",
			       r->n - 1);
	}
	return fflush(stdout) ? EXIT_VPMU : 0;
}

int verb_decode(int argc, char **argv)
{
	bool json = false, list = false;
	const char *cpu = NULL;
	const struct option_def defs[] = {
		{ "cpu", 0, "MODEL", "whose events (Icelake-Server; AMD's registers: EPYC-Milan)",
		  &cpu },
		{ "json", 0, NULL, "for programs", &json },
		{ "list", 0, NULL, "the registers that it knows", &list },
		{ NULL, 0, NULL, NULL, NULL },
	};
	int at = options_parse(argc, argv, defs, usage);
	json_t *out;

	if (list)
		return list_registers();
	if (at == argc)
		fail(EXIT_VPMU, "decode what? REGISTER=VALUE (vpmu decode --help)");
	out = json ? json_array() : NULL;
	for (; at < argc; at++)
		decode(argv[at], cpu, out);
	if (json) {
		json_dumpf(out, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(out);
	}
	return fflush(stdout) ? EXIT_VPMU : 0;
}
