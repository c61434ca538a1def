// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu compare: compares the counts of perf stat with a baseline, for CI. */
#include "counts.h"
#include "verdict.h"
#include "vpmu.h"

static const char usage[] =
"Usage: vpmu compare [options] BASELINE NOW\n"
"\n"
"Compares counts, of which each file has what perf stat -o FILE wrote: for people, with\n"
"-x, or with -j. Every row of BASELINE has to be in NOW, counted all of the time, and may\n"
"not have grown. Exit status 1: one has, or is no count.\n"
"\n"
"  vpmu run -- perf stat -x, -e instructions:u -o now.csv ./program\n"
"  vpmu compare baseline.csv now.csv\n";

struct profiles {
	const char *base, *now;
};

static void read_profiles(const struct verdict_options *o, const struct count *const *failed,
			  size_t n, struct growths *functions)
{
	const struct profiles *p = o->of_functions;

	(void)failed;
	(void)n;
	growth_add_profile(functions, p->base, true);
	growth_add_profile(functions, p->now, false);
}

int verb_compare(int argc, char **argv)
{
	struct verdict_options o = { 0 };
	struct profiles p = { 0 };
	const struct option_def defs[] = {
		VERDICT_OPTIONS(&o),
		{ "base-profile", 0, "FILE", "of perf record, then: name the functions that grew",
		  &p.base },
		{ "now-profile", 0, "FILE", "of perf record, now", &p.now },
		{ NULL, 0, NULL, NULL, NULL },
	};
	int at = options_parse(argc, argv, defs, usage);
	struct counts base = { 0 }, now = { 0 };

	if (argc - at != 2)
		fail(EXIT_VPMU, "compare takes a baseline and what is to be compared with it "
		     "(vpmu compare --help)");
	if (!p.base != !p.now)
		fail(EXIT_VPMU, "--base-profile and --now-profile need each other");
	if (p.base) {
		o.name_functions = read_profiles;
		o.of_functions = &p;
	}
	counts_read(&base, argv[at]);
	counts_read(&now, argv[at + 1]);
	return verdict(&base, &now, &o);
}
