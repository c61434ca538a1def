// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The text form of host events and filters: what is accepted, and where an
 * error is reported.
 */
#include "unit.h"

#include <vpmu/filter.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>
#include <vpmu/spec.h>

#define BOTH	(VPMU_BANKS_USER | VPMU_BANKS_KERNEL)
#define N_CPUS	12

static const struct vpmu_model *icelake(void)
{
	return vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
}

/* The carets mark the error; a '|' is a place of no length. */
static void expect_place(const char *text, const struct vpmu_spec_error *err,
			 const char *carets, const char *what)
{
	size_t at = strspn(carets, " "), length = strspn(carets + at, "^");

	if (err->at != at || err->length != length || strcmp(err->what, what) ||
	    !err->needed || !*err->needed)
		fail_msg("\"%s\": at %zu, length %zu: %s; not at %zu, length %zu: %s", text,
			 err->at, err->length, err->what, at, length, what);
}

/* ---- host events */

struct good_event {
	const char *text;
	uint64_t select;
	int fixed;
	uint32_t cpu;
	uint8_t banks;
	char flags[8]; /* T task, P pinned, D disabled, X exclusive, G, H, L lbr, B pebs */
	uint64_t period, extra;
};

static const struct good_event good_event[] = {
	{ "cpu0:cycles", 0x3c, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:cpu-cycles", 0x3c, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:cycles:pinned", 0x3c, -1, 0, BOTH, "P", 0, 0 },
	{ "cpu11:instructions", 0xc0, -1, 11, BOTH, "", 0, 0 },
	{ "cpu011:instructions", 0xc0, -1, 11, BOTH, "", 0, 0 },
	{ "vcpu1:branches:u", 0xc4, -1, 1, VPMU_BANKS_USER, "T", 0, 0 },
	{ "vcpu1:branch-instructions:k", 0xc4, -1, 1, VPMU_BANKS_KERNEL, "T", 0, 0 },
	{ "cpu0:bus-cycles", 0x13c, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:ref-cycles", 0, 2, 0, BOTH, "", 0, 0 },
	{ "cpu0:CPU_CLK_UNHALTED.REF_TSC", 0, 2, 0, BOTH, "", 0, 0 },
	{ "cpu0:r300", 0, 2, 0, BOTH, "", 0, 0 },
	{ "cpu0:cache-references", 0x4f2e, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:cache-misses", 0x412e, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:branch-misses", 0xc5, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:br_inst_retired.near_call", 0x2c4, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:BR_INST_RETIRED.near_Call:pinned", 0x2c4, -1, 0, BOTH, "P", 0, 0 },
	{ "cpu0:rtm_retired.start", 0x1c9, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:r0", 0, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:r00000000000000000000c4", 0xc4, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:rC4", 0xc4, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:rff84ffff", 0xff84ffff, -1, 0, BOTH, "", 0, 0 },
	{ "cpu0:cycles:off:exclusive", 0x3c, -1, 0, BOTH, "DX", 0, 0 },
	{ "cpu0:cycles:G", 0x3c, -1, 0, BOTH, "G", 0, 0 },
	{ "cpu0:cycles:H:u:k", 0x3c, -1, 0, BOTH, "H", 0, 0 },
	{ "cpu0:cycles:uG:pinned", 0x3c, -1, 0, VPMU_BANKS_USER, "PG", 0, 0 },
	{ "cpu0:cycles:kuH", 0x3c, -1, 0, BOTH, "H", 0, 0 },
	{ "cpu0:cycles:period=1", 0x3c, -1, 0, BOTH, "", 1, 0 },
	{ "cpu0:cycles:period=9223372036854775807", 0x3c, -1, 0, BOTH, "", INT64_MAX, 0 },
	{ "vcpu0:cycles:pinned:lbr", 0x3c, -1, 0, BOTH, "TPL", 0, 0 },
	{ "vcpu0:cycles:lbr=1c3:u", 0x3c, -1, 0, VPMU_BANKS_USER, "TL", 0, 0x1c3 },
	{ "cpu0:cycles:lbr=3ff", 0x3c, -1, 0, BOTH, "L", 0, 0x3ff },
	{ "cpu0:cycles:pebs:pinned", 0x3c, -1, 0, BOTH, "PB", 0, 0 },
};

static bool has(const struct good_event *row, char flag)
{
	return strchr(row->flags, flag);
}

static void test_good_events(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(good_event); i++) {
		const struct good_event *row = &good_event[i];
		struct vpmu_host_event ev;
		struct vpmu_spec_error err = { 0 };
		const struct vpmu_perf_attr *a = &ev.attr;

		memset(&ev, 0xa5, sizeof(ev));
		if (vpmu_spec_host_event(row->text, icelake(), N_CPUS, &ev, &err))
			fail_msg("%s: %s at %zu", row->text, err.what, err.at);
		if (a->event.select != row->select || a->event.fixed != row->fixed ||
		    ev.cpu != row->cpu || a->event.banks != row->banks ||
		    a->event.period != row->period || a->event.extra != row->extra)
			fail_msg("%s: select %#llx, fixed %d, cpu %u, banks %#x", row->text,
				 (unsigned long long)a->event.select, a->event.fixed, ev.cpu,
				 a->event.banks);
		assert_int_equal(ev.task, has(row, 'T'));
		assert_int_equal(a->event.pinned, has(row, 'P'));
		assert_int_equal(a->disabled, has(row, 'D'));
		assert_int_equal(a->exclusive, has(row, 'X'));
		assert_int_equal(a->exclude_host, has(row, 'G'));
		assert_int_equal(a->exclude_guest, has(row, 'H'));
		assert_int_equal(a->event.shared, has(row, 'L') ? VPMU_SHARED_LBR :
						  has(row, 'B') ? VPMU_SHARED_PEBS
								: VPMU_SHARED_NONE);
		assert_int_equal(a->size, sizeof(*a));
		assert_int_equal(a->event.size, sizeof(a->event));
		assert_int_equal(a->event.slot, -1);
		assert_int_equal(a->cpu, -1);
		assert_int_equal(a->id, 0);
		assert_false(a->exclude_idle);
		assert_false(a->event.no_counter);
		assert_null(a->event.leader);
	}
}

static const struct bad {
	const char *text, *carets, *what;
} bad_event[] = {
	{ "", "|", "no target" },
	{ ":cycles", "|", "no target" },
	{ "cycles", "^^^^^^", "no target" },
	{ "CPU0:cycles", "^^^^", "no target" },
	{ " cpu0:cycles", "^^^^^", "no target" },
	{ "cpu:cycles", "   |", "no CPU's number" },
	{ "vcpu:cycles", "    |", "no CPU's number" },
	{ "cpu12:cycles", "   ^^", "no such CPU" },
	{ "cpu-1:cycles", "   ^^", "no such CPU" },
	{ "cpu1 :cycles", "   ^^", "no such CPU" },
	{ "vcpu1x:cycles", "    ^^", "no such CPU" },
	{ "cpu4294967296:cycles", "   ^^^^^^^^^^", "no such CPU" },
	{ "cpu18446744073709551616:cycles", "   ^^^^^^^^^^^^^^^^^^^^", "no such CPU" },
	{ "cpu0", "    |", "no event" },
	{ "cpu0:", "     |", "no event" },
	{ "cpu0::pinned", "     |", "no event" },
	{ "cpu0:cycle", "     ^^^^^", "no event of this CPU" },
	{ "cpu0:cycless", "     ^^^^^^^", "no event of this CPU" },
	{ "cpu0:Cycles", "     ^^^^^^", "no event of this CPU" },
	{ "cpu0:cycles ", "     ^^^^^^^", "no event of this CPU" },
	{ "cpu0:pinned", "     ^^^^^^", "no event of this CPU" },
	{ "cpu0:br_inst_retired", "     ^^^^^^^^^^^^^^^", "no event of this CPU" },
	{ "cpu0:r", "     ^", "no event of this CPU" },
	{ "cpu0:rxyz", "     ^^^^", "no event of this CPU" },
	{ "cpu0:R00c4", "     ^^^^^", "no event of this CPU" },
	{ "cpu0:r0x00c4", "     ^^^^^^^", "no event of this CPU" },
	{ "cpu0:r10000000000000000", "      ^^^^^^^^^^^^^^^^^", "more than 64 bits" },
	{ "cpu0:r4300c0", "      ^^^^^^", "bits that select no event" },
	{ "cpu0:r1000000c0", "      ^^^^^^^^^", "bits that select no event" },
	{ "cpu0:r1000300", "      ^^^^^^^", "a fixed counter's event with a condition" },
	{ "cpu0:cycles:", "            |", "nothing between colons" },
	{ "cpu0:cycles::pinned", "            |", "nothing between colons" },
	{ "cpu0:cycles:pinned:", "                   |", "nothing between colons" },
	{ "cpu0:cycles:pined", "            ^^^^^", "no such option" },
	{ "cpu0:cycles:Pinned", "            ^^^^^^", "no such option" },
	{ "cpu0:cycles:pinned=1", "            ^^^^^^^^", "no such option" },
	{ "cpu0:cycles:on", "            ^^", "no such option" },
	{ "cpu0:cycles:up", "            ^^", "no such option" },
	{ "cpu0:cycles:pinned:pinned", "                   ^^^^^^", "said twice" },
	{ "cpu0:cycles:off:u:off", "                  ^^^", "said twice" },
	{ "cpu0:cycles:exclusive:exclusive", "                      ^^^^^^^^^", "said twice" },
	{ "cpu0:cycles:u:u", "              ^", "said twice" },
	{ "cpu0:cycles:uku", "              ^", "said twice" },
	{ "cpu0:cycles:GuG", "              ^", "said twice" },
	{ "cpu0:cycles:GH", "             ^",
	  "guest only and host only: it would never count" },
	{ "cpu0:cycles:H:uG", "               ^",
	  "guest only and host only: it would never count" },
	{ "cpu0:cycles:period", "            ^^^^^^", "no such option" },
	{ "cpu0:cycles:period=", "                   |", "no period" },
	{ "cpu0:cycles:period=0", "                   ^", "not a period" },
	{ "cpu0:cycles:period=-1", "                   ^^", "not a period" },
	{ "cpu0:cycles:period=1e6", "                   ^^^", "not a period" },
	{ "cpu0:cycles:period=0x10", "                   ^^^^", "not a period" },
	{ "cpu0:cycles:period=9223372036854775808", "                   ^^^^^^^^^^^^^^^^^^^",
	  "not a period" },
	{ "cpu0:cycles:period=36893488147419103233", "                   ^^^^^^^^^^^^^^^^^^^^",
	  "not a period" },
	{ "cpu0:cycles:period=1:period=1", "                     ^^^^^^^^", "said twice" },
	{ "cpu0:cycles:lbr=", "                |", "no filter" },
	{ "cpu0:cycles:lbr=400", "                ^^^", "not a filter" },
	{ "cpu0:cycles:lbr=any", "                ^^^", "not a filter" },
	{ "cpu0:cycles:lbr:lbr=1", "                ^^^^^", "said twice" },
	{ "cpu0:cycles:lbr1", "            ^^^^", "no such option" },
	{ "cpu0:cycles:pebs:pebs", "                 ^^^^", "said twice" },
	{ "cpu0:cycles:pebs:u:lbr", "                   ^^^", "lbr and pebs in one event" },
};

static void test_bad_events(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(bad_event); i++) {
		const struct bad *row = &bad_event[i];
		struct vpmu_host_event ev, before;
		struct vpmu_spec_error err = { 0 };

		memset(&ev, 0xa5, sizeof(ev));
		before = ev;
		if (vpmu_spec_host_event(row->text, icelake(), N_CPUS, &ev, &err) != -VPMU_EINVAL)
			fail_msg("\"%s\" is accepted", row->text);
		expect_place(row->text, &err, row->carets, row->what);
		assert_memory_equal(&ev, &before, sizeof(ev));
	}
}

/* A number that is one too many for this machine, and no other. */
static void test_cpus(void **state)
{
	struct vpmu_host_event ev;
	struct vpmu_spec_error err;

	(void)state;
	assert_int_equal(vpmu_spec_host_event("cpu0:cycles", icelake(), 1, &ev, &err), 0);
	assert_int_not_equal(vpmu_spec_host_event("cpu1:cycles", icelake(), 1, &ev, &err), 0);
	assert_int_not_equal(vpmu_spec_host_event("cpu0:cycles", icelake(), 0, &ev, &err), 0);
	assert_int_equal(vpmu_spec_host_event("cpu4294967294:cycles", icelake(), UINT32_MAX,
					      &ev, &err), 0);
	assert_int_equal(ev.cpu, UINT32_MAX - 1);
}

/* Each row of each model is found by its name, and what it needs is right. */
static void test_every_name(void **state)
{
	const struct vpmu_model *m;
	struct vpmu_host_event ev;
	struct vpmu_spec_error err;
	char text[128];
	size_t i;
	int j;

	(void)state;
	for (i = 0; (m = vpmu_model_at(i)); i++) {
		for (j = 0; j < m->n_events; j++) {
			snprintf(text, sizeof(text), "cpu0:%s", m->events[j].name);
			assert_int_equal(vpmu_spec_host_event(text, m, 1, &ev, &err), 0);
			assert_ptr_equal(vpmu_event_find(m, ev.attr.event.select,
							 ev.attr.event.fixed), &m->events[j]);
			assert_true(m->events[j].gp_mask || ev.attr.event.fixed >= 0);
		}
	}
}

/* The generic model's table has fewer names; AMD has wider selects and its own encodings. */
static void test_models(void **state)
{
	static const struct vpmu_event_def events[] = {
		{ "EX_RET_INSTR", 0xc0, 0, 0, -1, 0, VPMU_QUALITY_EXACT, 0x3f, 2, NULL, 0, 0, 0 },
		{ "EX_RET_FUSED_INSTR", 0x1d0, 0, 0, -1, 0, VPMU_QUALITY_EXACT,
		  0x3f, 4, NULL, 0, 0, 0 },
	};
	const struct vpmu_model amd = {
		.name = "zen", .title = "Zen", .vendor = VPMU_VENDOR_AMD, .family = 25,
		.version = 2, .n_gp = 6, .width_bits = 48, .events = events, .n_events = 2,
	};
	const struct vpmu_model *generic = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 1);
	const struct vpmu_model *zen3 = vpmu_model_find(VPMU_VENDOR_AMD, 25, 1);
	uint64_t entries[VPMU_FILTER_EVENTS_MAX];
	struct vpmu_host_event ev;
	struct vpmu_spec_error err;
	struct vpmu_filter f;

	(void)state;
	assert_int_equal(vpmu_spec_host_event("cpu0:branches", generic, 1, &ev, &err), 0);
	assert_int_not_equal(vpmu_spec_host_event("cpu0:br_inst_retired.near_call", generic, 1,
						  &ev, &err), 0);
	assert_int_equal(vpmu_spec_host_event("cpu0:ex_ret_fused_instr", &amd, 1, &ev, &err), 0);
	assert_int_equal(ev.attr.event.select, 0x1000000d0);
	assert_int_equal(vpmu_spec_host_event("cpu0:rf000000d0", &amd, 1, &ev, &err), 0);
	assert_int_equal(ev.attr.event.select, 0xf000000d0);
	assert_int_not_equal(vpmu_spec_host_event("cpu0:cycles", &amd, 1, &ev, &err), 0);
	assert_int_equal(vpmu_spec_host_event("cpu0:cycles", zen3, 1, &ev, &err), 0);
	assert_int_equal(ev.attr.event.select, 0x76);
	assert_int_equal(vpmu_spec_host_event("cpu0:branches", zen3, 1, &ev, &err), 0);
	assert_int_equal(ev.attr.event.select, 0xc2);
	assert_int_equal(vpmu_spec_host_event("cpu0:cache-misses", zen3, 1, &ev, &err), 0);
	assert_int_equal(ev.attr.event.select, 0x964);
	assert_int_not_equal(vpmu_spec_host_event("cpu0:bus-cycles", zen3, 1, &ev, &err), 0);
	assert_int_not_equal(vpmu_spec_host_event("cpu0:ref-cycles", &amd, 1, &ev, &err), 0);
	assert_int_equal(vpmu_spec_filter("deny:ex_ret_fused_instr:mask=fff/1/1", &amd, &f,
					  entries, &err), 0);
	assert_int_equal(entries[0], VPMU_FILTER_ENTRY(0x1d0, 0xff, 0, 0));
	assert_int_equal(entries[1], VPMU_FILTER_ENTRY(0xfff, 1, 1, 0));
}

/* ---- filters */

static const struct {
	const char *text;
	uint32_t action, flags, fixed, n;
	uint64_t entry[4];
} good_filter[] = {
	{ "allow", VPMU_FILTER_ALLOW, 0, 0, 0, { 0 } },
	{ "deny", VPMU_FILTER_DENY, 0, 0, 0, { 0 } },
	{ "deny:cycles", VPMU_FILTER_DENY, 0, 0, 1, { 0x3c } },
	{ "deny:cycles:fixed1", VPMU_FILTER_DENY, 0, 2, 1, { 0x3c } },
	{ "allow:ref-cycles:fixed0", VPMU_FILTER_ALLOW, 0, 5, 0, { 0 } },
	{ "allow:br_inst_retired.near_call:r00c0:branches", VPMU_FILTER_ALLOW, 0, 0, 3,
	  { 0x2c4, 0xc0, 0xc4 } },
	{ "allow:r1234", VPMU_FILTER_ALLOW, 0, 0, 1, { 0x1234 } },
	{ "deny:mask=c4/ff/2", VPMU_FILTER_DENY, VPMU_FILTER_MASKED, 0, 1,
	  { VPMU_FILTER_ENTRY(0xc4, 0xff, 2, 0) } },
	{ "deny:mask=C4/0/0:except=c4/Ff/2:cycles:fixed2", VPMU_FILTER_DENY, VPMU_FILTER_MASKED,
	  4, 3, { VPMU_FILTER_ENTRY(0xc4, 0, 0, 0), VPMU_FILTER_ENTRY(0xc4, 0xff, 2, 1),
		  VPMU_FILTER_ENTRY(0x3c, 0xff, 0, 0) } },
};

static void test_good_filters(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(good_filter); i++) {
		uint64_t events[VPMU_FILTER_EVENTS_MAX];
		struct vpmu_spec_error err = { 0 };
		struct vpmu_filter f;

		if (vpmu_spec_filter(good_filter[i].text, icelake(), &f, events, &err))
			fail_msg("%s: %s at %zu", good_filter[i].text, err.what, err.at);
		assert_int_equal(f.size, sizeof(f));
		assert_int_equal(f.action, good_filter[i].action);
		assert_int_equal(f.flags, good_filter[i].flags);
		assert_int_equal(f.fixed_bitmap, good_filter[i].fixed);
		assert_int_equal(f.n_events, good_filter[i].n);
		assert_ptr_equal(f.events, events);
		assert_memory_equal(events, good_filter[i].entry,
				    good_filter[i].n * sizeof(events[0]));
	}
}

static const struct bad bad_filter[] = {
	{ "", "|", "no action" },
	{ "Allow", "^^^^^", "no action" },
	{ "cycles", "^^^^^^", "no action" },
	{ ":cycles", "|", "no action" },
	{ "allow:", "      |", "no event" },
	{ "allow::cycles", "      |", "no event" },
	{ "allow:cycles:", "             |", "no event" },
	{ "allow:cycle", "      ^^^^^", "no event of this CPU" },
	{ "allow:cycles:cycles", "             ^^^^^^", "listed twice" },
	{ "allow:cycles:cpu_clk_unhalted.thread_p", "             ^^^^^^^^^^^^^^^^^^^^^^^^^",
	  "listed twice" },
	{ "allow:cycles:r003c", "             ^^^^^", "listed twice" },
	{ "allow:cycles:mask=3c/ff/0", "             ^^^^^^^^^^^^", "listed twice" },
	{ "allow:r84003c", "       ^^^^^^", "bits that select no event" },
	{ "allow:fixed", "           |", "no such fixed counter" },
	{ "allow:fixed4", "           ^", "no such fixed counter" },
	{ "allow:fixed-1", "           ^^", "no such fixed counter" },
	{ "allow:fixed4294967296", "           ^^^^^^^^^^", "no such fixed counter" },
	{ "allow:fixed1:fixed1", "             ^^^^^^", "listed twice" },
	{ "allow:fixed2:ref-cycles", "             ^^^^^^^^^^", "listed twice" },
	{ "deny:mask", "     ^^^^", "no event of this CPU" },
	{ "deny:mask=", "          |", "a number is missing" },
	{ "deny:mask=c4", "            |", "a number is missing" },
	{ "deny:mask=c4/", "             |", "a number is missing" },
	{ "deny:mask=c4/ff", "               |", "a number is missing" },
	{ "deny:mask=c4//2", "             |", "a number is missing" },
	{ "deny:mask=/ff/2", "          |", "a number is missing" },
	{ "deny:mask=c4/ff/", "                |", "a number is missing" },
	{ "deny:mask=c4/ff/2/", "                 ^", "more than three numbers" },
	{ "deny:mask=c4/ff/2/1", "                 ^^", "more than three numbers" },
	{ "deny:mask=xx/ff/2", "          ^^", "not a number" },
	{ "deny:mask=c4/0xff/2", "             ^^^^", "not a number" },
	{ "deny:mask=1c4/ff/2", "          ^^^", "too large" },
	{ "deny:mask=c4/100/2", "             ^^^", "too large" },
	{ "deny:mask=c4/ff/102", "                ^^^", "too large" },
	{ "deny:mask=c4/f/12", "          ^^^^^^^", "matches no unit mask" },
	{ "deny:mask=c4/ff/2:mask=c4/ff/2", "                  ^^^^^^^^^^^^", "listed twice" },
	{ "deny:except=c4/ff/2", "     ^^^^^^^^^^^^^^", "an exception from nothing" },
	{ "deny:mask=c5/0/0:except=c4/ff/2", "                 ^^^^^^^^^^^^^^",
	  "an exception from nothing" },
	{ "deny:mask=c4/0/0:except=c4/ff/2:except=c4/ff/2", "                                "
	  "^^^^^^^^^^^^^^", "listed twice" },
};

static void test_bad_filters(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(bad_filter); i++) {
		const struct bad *row = &bad_filter[i];
		uint64_t events[VPMU_FILTER_EVENTS_MAX];
		struct vpmu_spec_error err = { 0 };
		struct vpmu_filter f, before;

		memset(&f, 0xa5, sizeof(f));
		before = f;
		if (vpmu_spec_filter(row->text, icelake(), &f, events, &err) != -VPMU_EINVAL)
			fail_msg("\"%s\" is accepted", row->text);
		expect_place(row->text, &err, row->carets, row->what);
		assert_memory_equal(&f, &before, sizeof(f));
	}
}

/* The last entry that fits, and the first that does not. */
static void test_full_filter(void **state)
{
	static char text[VPMU_FILTER_EVENTS_MAX * 8 + 64];
	uint64_t events[VPMU_FILTER_EVENTS_MAX];
	struct vpmu_spec_error err;
	struct vpmu_filter f;
	size_t used;
	int i;

	(void)state;
	used = (size_t)snprintf(text, sizeof(text), "allow");
	for (i = 0; i < (int)VPMU_FILTER_EVENTS_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, ":r%x", 0x1000 + i);
	assert_int_equal(vpmu_spec_filter(text, icelake(), &f, events, &err), 0);
	assert_int_equal(f.n_events, VPMU_FILTER_EVENTS_MAX);
	strcat(text, ":fixed0");
	assert_int_equal(vpmu_spec_filter(text, icelake(), &f, events, &err), 0);
	strcat(text, ":rc4");
	assert_int_equal(vpmu_spec_filter(text, icelake(), &f, events, &err), -VPMU_EINVAL);
	assert_string_equal(err.what, "too many entries");
	assert_int_equal(err.at, strlen(text) - 3);
	assert_int_equal(err.length, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_events),
		cmocka_unit_test(test_bad_events),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_every_name),
		cmocka_unit_test(test_models),
		cmocka_unit_test(test_good_filters),
		cmocka_unit_test(test_bad_filters),
		cmocka_unit_test(test_full_filter),
	};

	return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
