// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The grammar of host events. Source: include/vpmu/spec.h. */
#include <vpmu/model.h>
#include <vpmu/msr.h>
#include <vpmu/spec.h>

#include "../silicon/words.h"

/* Options that have been given, each of which may stand once. */
struct spec_said {
	bool pinned, off, exclusive, period, lbr, pebs, user, kernel, guest, host;
};

static int spec_target(struct words *sp, uint32_t n_cpus, struct vpmu_host_event *out)
{
	struct word part, number;
	uint64_t n;

	vpmu_words_next(sp, &part);
	number = part;
	out->task = vpmu_word_after(&number, "vcpu");
	if (!out->task && !vpmu_word_after(&number, "cpu"))
		return vpmu_words_wrong(sp, part, "no target", "cpuN or vcpuN");
	if (!vpmu_word_number(number, 10, UINT32_MAX, &n) || n >= n_cpus)
		return vpmu_words_wrong(sp, number, number.n ? "no such CPU" : "no CPU's number",
					"a number below the guest's number of CPUs");
	out->cpu = (uint32_t)n;
	return 0;
}

static int spec_once(struct words *sp, struct word part, bool *said)
{
	if (*said)
		return vpmu_words_wrong(sp, part, "said twice", "each option once");
	*said = true;
	return 0;
}

/* Letters as after perf's colon: "u", "ukG". */
static int spec_letters(struct words *sp, struct word part, struct spec_said *said)
{
	struct word letter = { part.s, 1 };
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
			ret = vpmu_words_wrong(sp, letter, "guest only and host only: it would "
					       "never count", "G or H, or none for both");
	}
	return ret;
}

static bool spec_is_letters(struct word part)
{
	size_t i;

	for (i = 0; i < part.n; i++)
		if (part.s[i] != 'u' && part.s[i] != 'k' && part.s[i] != 'G' &&
		    part.s[i] != 'H')
			return false;
	return part.n;
}

/* The value after "NAME=", with which @part begins. */
static struct word spec_value(struct word part)
{
	size_t i = 0;

	while (part.s[i] != '=')
		i++;
	part.s += i + 1;
	part.n -= i + 1;
	return part;
}

#define SPEC_PERIOD_MAX (UINT64_MAX >> 1)

static int spec_period(struct words *sp, struct word part, struct spec_said *said,
		       struct vpmu_host_event *out)
{
	struct word value = spec_value(part);
	int ret = spec_once(sp, part, &said->period);

	if (ret)
		return ret;
	if (!vpmu_word_number(value, 10, SPEC_PERIOD_MAX, &out->attr.event.period) ||
	    !out->attr.event.period)
		return vpmu_words_wrong(sp, value, value.n ? "not a period" : "no period",
					"occurrences in decimal, from 1 to 9223372036854775807");
	return 0;
}

/* The bits of MSR_LBR_SELECT, CALL_STACK included. */
#define SPEC_LBR_FILTER_MAX 0x3ff

static int spec_lbr(struct words *sp, struct word part, bool filtered,
		    struct spec_said *said, struct vpmu_host_event *out)
{
	struct word value;
	int ret = spec_once(sp, part, &said->lbr);

	if (ret)
		return ret;
	out->attr.event.shared = VPMU_SHARED_LBR;
	if (!filtered)
		return 0;
	value = spec_value(part);
	if (!vpmu_word_number(value, 16, SPEC_LBR_FILTER_MAX, &out->attr.event.extra))
		return vpmu_words_wrong(sp, value, value.n ? "not a filter" : "no filter",
					"an image of MSR_LBR_SELECT in hex, 0 to 3ff");
	return 0;
}

static int spec_pebs(struct words *sp, struct word part, struct spec_said *said,
		     struct vpmu_host_event *out)
{
	out->attr.event.shared = VPMU_SHARED_PEBS;
	return spec_once(sp, part, &said->pebs);
}

static int spec_option(struct words *sp, struct word part, struct spec_said *said,
		       struct vpmu_host_event *out)
{
	struct word rest = part;

	if (vpmu_word_is(part, "pinned"))
		return spec_once(sp, part, &said->pinned);
	if (vpmu_word_is(part, "off"))
		return spec_once(sp, part, &said->off);
	if (vpmu_word_is(part, "exclusive"))
		return spec_once(sp, part, &said->exclusive);
	if (vpmu_word_after(&rest, "period="))
		return spec_period(sp, part, said, out);
	if (vpmu_word_is(part, "lbr") || vpmu_word_after(&rest, "lbr="))
		return spec_lbr(sp, part, rest.n != part.n, said, out);
	if (vpmu_word_is(part, "pebs"))
		return spec_pebs(sp, part, said, out);
	if (spec_is_letters(part))
		return spec_letters(sp, part, said);
	return vpmu_words_wrong(sp, part, part.n ? "no such option" : "nothing between colons",
				"pinned, off, exclusive, period=N, lbr[=FILTER], pebs, u, k, "
				"G or H");
}

static int spec_options(struct words *sp, struct vpmu_host_event *out)
{
	struct spec_said said = { 0 };
	struct vpmu_perf_attr *attr = &out->attr;
	struct word part;
	int ret = 0;

	while (!ret && vpmu_words_next(sp, &part)) {
		ret = spec_option(sp, part, &said, out);
		if (!ret && said.lbr && said.pebs)
			ret = vpmu_words_wrong(sp, part, "lbr and pebs in one event",
					       "one of them");
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
	struct words sp = { .text = text, .model = model, .err = err };
	struct vpmu_host_event found = {
		.attr = { .size = sizeof(found.attr), .cpu = -1 },
	};
	struct word_event ev;
	struct word part;
	int ret = spec_target(&sp, n_cpus, &found);

	if (ret)
		return ret;
	if (!vpmu_words_next(&sp, &part)) {
		part.s = sp.next;
		part.n = 0;
		return vpmu_words_wrong(&sp, part, "no event", WORDS_EVENTS_NEEDED);
	}
	ret = vpmu_words_event(&sp, part, bits,
			       "bits 7:0, 15:8, 18, 23 and 31:24, as perf has them", &ev);
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
