/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Compares counts with a baseline. */
#ifndef VPMU_TOOLS_VERDICT_H
#define VPMU_TOOLS_VERDICT_H

#include <stdbool.h>

#include "counts.h"
#include "growth.h"

/* The verbs that compare have this in common; a NULL is an option that is not given. */
struct verdict_options {
	const char *allow, *markdown, *json, *junit;
	bool github;
	/*
	 * NULL, or adds the functions that grew, when at least one row has. Those rows are @failed,
	 * of @n.
	 */
	void (*name_functions)(const struct verdict_options *o, const struct count *const *failed,
			       size_t n, struct growths *functions);
	const void *of_functions;	/* for that function */
};

/* Their rows of a table of options. */
#define VERDICT_OPTIONS(o) \
	{ "allow", 0, "PERCENT", "how much a count may grow (0)", &(o)->allow }, \
	{ "markdown", 0, "FILE", "write a table for a pull request's comment, too", \
	  &(o)->markdown }, \
	{ "json", 0, "FILE", "write the result as JSON, too", &(o)->json }, \
	{ "junit", 0, "FILE", "write the result as JUnit's XML, too", &(o)->junit }, \
	{ "github", 0, NULL, "print GitHub's annotations for what failed, too", &(o)->github }

/*
 * Print what became of each row, and write the files that are asked for. Returns the exit
 * status: 1 if a row failed.
 */
int verdict(const struct counts *base, const struct counts *now, const struct verdict_options *o);

#endif
