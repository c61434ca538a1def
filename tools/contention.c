// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu contention: shows which side gets a counter that host and guest both want. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "contention.h"
#include "vpmu.h"

static const char usage[] =
"Usage: vpmu contention [options]\n"
"\n"
"Prints who gets a counter that host and guest both want, for each policy,\n"
"resource, incumbent and newcomer, and by what the loser comes back; then the\n"
"cases with names. All of it is computed, by running the library.\n"
"CASE is an id or a cell such as shared/gp/CP/TP; --list prints them all.\n";

#define COLUMNS		100
#define CLASSES		VPMU_PERF_CLASSES

static const enum vpmu_policy policies[] = {
	VPMU_POLICY_SHARED, VPMU_POLICY_MEDIATED, VPMU_POLICY_DIRECT,
};

static const char *const resource_titles[CONTENTION_RESOURCES] = {
	[CONTENTION_GP] = "an event for any GP counter; the incumbents have all 8",
	[CONTENTION_FIXED] = "an event for one fixed counter alone; the incumbent has it",
	[CONTENTION_MOVABLE] = "an event for fixed counter 0 or a GP one; the former is taken",
	[CONTENTION_LBR] = "the branch records, each side with a filter of its own",
	[CONTENTION_METRICS] = "PERF_METRICS with the slots counter",
};

/* Iterates over cells, by policy, resource, incumbent and newcomer. */
#define for_each_cell_of(id, p, r) \
	for (unsigned int cell_ = 0; cell_ < CLASSES * CLASSES && \
	     ((id) = (struct contention_cell_id){ (p), (r), cell_ / CLASSES, \
						   cell_ % CLASSES }, true); cell_++)

static void run_cell(const struct contention_cell_id *id, struct contention_cell *cell,
		     struct contention_log *log)
{
	const char *broken = contention_cell_run(id, cell, log);
	char name[CONTENTION_NAME];

	contention_cell_name(id, name);
	if (broken)
		fail(EXIT_VPMU, "%s: %s; this is a fault of vpmu", name, broken);
}

static void run_case(const struct contention_case *c, struct contention_result *result,
		     struct contention_log *log)
{
	const char *broken = contention_case_run(c, result, log);

	if (broken)
		fail(EXIT_VPMU, "%s: %s; this is a fault of vpmu", c->id, broken);
}

static const char *error_name(int error)
{
	switch (error) {
	case 0:
		return NULL;
	case -VPMU_EBUSY:
		return "EBUSY";
	case -VPMU_EOPNOTSUPP:
		return "EOPNOTSUPP";
	default:
		return "EINVAL";
	}
}

/* Output as text ------------------------------------------------------------- */

static void print_wrapped(const char *text, unsigned int indent, unsigned int at)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		if (at > indent && at + 1 + len > COLUMNS) {
			printf("\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			putchar(' ');
			at++;
		}
		fwrite(text, 1, len, stdout);
		at += len;
		text += len + (text[len] == ' ');
	}
	putchar('\n');
}

static void print_labelled(const char *label, const char *text)
{
	printf("  %-8s  ", label);
	print_wrapped(text, 12, 12);
}

static void side_text(const struct contention_side *side, enum vpmu_perf_class class,
		      char *text, size_t size)
{
	int n = snprintf(text, size, "%s%s ", contention_class_name(class),
			 side->guest ? "*" : " ");

	if (side->n == 1) {
		snprintf(text + n, size - n, "%s", contention_state_name(side->state));
		return;
	}
	for (unsigned int s = 0, first = 1; s < CONTENTION_STATES && n < (int)size; s++) {
		if (!side->count[s])
			continue;
		n += snprintf(text + n, size - n, "%s%u %s", first ? "" : ", ",
			      side->count[s], contention_state_name(s));
		first = 0;
	}
}

static void back_text(const int8_t *back, char *text, size_t size)
{
	int n = 0;

	for (unsigned int t = 0; t < CONTENTION_TRIGGERS && n < (int)size; t++)
		if (back[t] == 1)
			n += snprintf(text + n, size - n, "%s%s", n ? " " : "",
				      contention_trigger_name(t));
	if (!n)
		snprintf(text, size, "-");
}

static void print_cell(const struct contention_cell *cell)
{
	char incumbent[40], newcomer[40], held[48], released[64];

	side_text(&cell->incumbent, cell->id.incumbent, incumbent, sizeof(incumbent));
	side_text(&cell->newcomer, cell->id.newcomer, newcomer, sizeof(newcomer));
	back_text(cell->held, held, sizeof(held));
	back_text(cell->released, released, sizeof(released));
	printf("  %-24s  %-12s  %-9s  %-14s  %s\n", incumbent, newcomer,
	       contention_loser_name(cell->loser), held, released);
}

static void print_head(void)
{
	printf("  %-24s  %-12s  %-9s  %-14s  %s\n", "incumbent", "newcomer", "loser",
	       "back, held by", "back, released by");
}

/* A set of words, in the order in which they were added. */
static void note(struct buffer *words, const char *word)
{
	if (words->data && strstr(words->data, word))
		return;
	buffer_print(words, "%s%s", words->len ? ", " : "", word);
}

/* Classes of the sides of a block's cells, guest and host apart. */
struct block {
	struct buffer guest, host, refused_event, refused_vm;
	const char *kernel;
};

static void note_side(struct block *b, const struct contention_side *side)
{
	note(side->guest ? &b->guest : &b->host, contention_state_name(side->state));
}

static void note_refusal(struct block *b, int error)
{
	if (error == -VPMU_EBUSY)
		note(&b->refused_vm, error_name(error));
	else if (error)
		note(&b->refused_event, error_name(error));
}

static const char *words(const struct buffer *b)
{
	return b->len ? b->data : "none";
}

static void free_block(struct block *b)
{
	buffer_free(&b->guest);
	buffer_free(&b->host);
	buffer_free(&b->refused_event);
	buffer_free(&b->refused_vm);
}

/* With policy direct there is no contention: print what all cells have in common. */
static void print_direct(enum contention_resource r)
{
	struct contention_cell_id id;
	struct contention_cell cell;
	struct block b = { 0 };

	for_each_cell_of(id, VPMU_POLICY_DIRECT, r) {
		run_cell(&id, &cell, NULL);
		note_side(&b, &cell.incumbent);
		note_side(&b, &cell.newcomer);
	}
	printf("  in each cell the guest's: %s; the host's: %s, as it has no perf\n",
	       words(&b.guest), words(&b.host));
	free_block(&b);
}

static void print_contended(enum vpmu_policy policy, enum contention_resource r)
{
	struct contention_cell_id id;
	struct contention_cell cell;
	struct block b = { 0 };

	print_head();
	for_each_cell_of(id, policy, r) {
		run_cell(&id, &cell, NULL);
		print_cell(&cell);
		if (contention_cell_kernel(&id))
			b.kernel = contention_cell_kernel(&id);
		if (policy != VPMU_POLICY_MEDIATED)
			continue;
		note_side(&b, &cell.incumbent_guest);
		note_side(&b, &cell.newcomer_guest);
		note_refusal(&b, cell.incumbent_error);
		note_refusal(&b, cell.newcomer_error);
	}
	if (policy == VPMU_POLICY_MEDIATED) {
		printf("  while the guest runs the guest's: %s; the host's: %s\n",
		       words(&b.guest), words(&b.host));
		printf("  a host's that counts guests is refused (%s), or the VM, if it comes "
		       "after it (%s)\n", words(&b.refused_event), words(&b.refused_vm));
	}
	if (b.kernel)
		print_labelled("Linux, *", b.kernel);
	free_block(&b);
}

static const char legend[] =
"Who gets a counter that host and guest both want\n"
"\n"
"CP, TP, CF, TF  events of a CPU or task, pinned or flexible\n"
"TP*             the guest's own: a pinned event of its vCPU's thread\n"
"active          it counts\n"
"inactive        it waits, and will count when there is room and its turn\n"
"error           only an enable or a new event brings it back\n"
"none            there can be no such event\n"
"back            what brings the loser back, held: while the winner is there, released:\n"
"                after it has gone\n"
"  release       nothing beside that\n"
"  timer         the multiplexing timer\n"
"  switch        the thread is switched out and in\n"
"  enable        the loser is disabled and enabled\n"
"  create        the loser is closed and opened again\n"
"  exit          the CPU leaves the guest\n";

static void print_table(void)
{
	fputs(legend, stdout);
	for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++)
		for (unsigned int r = 0; r < CONTENTION_RESOURCES; r++) {
			printf("\n%s/%s: %s\n", contention_policy_name(policies[p]),
			       contention_resource_name(r), resource_titles[r]);
			if (policies[p] == VPMU_POLICY_DIRECT)
				print_direct(r);
			else
				print_contended(policies[p], r);
		}
}

static void print_result(const struct contention_result *result)
{
	struct buffer b = { 0 };

	for (unsigned int i = 0; i < result->n; i++)
		buffer_print(&b, "%s%s: %s", i ? "; " : "", result->row[i].key,
			     result->row[i].value);
	print_labelled("result", b.len ? b.data : "");
	buffer_free(&b);
}

static void print_measured(const struct contention_case *c)
{
	const struct contention_measured *m;
	char label[16];

	for (size_t i = 0; (m = contention_measured_at(c->id, i)); i++) {
		snprintf(label, sizeof(label), "KVM %s", strchr(m->kernels, ' ') ? "" : m->kernels);
		print_labelled(label, m->result);
	}
}

static void print_case(const struct contention_case *c, struct contention_log *log)
{
	struct contention_result result;

	run_case(c, &result, log);
	printf("\n%s: %s\n", c->id, c->title);
	print_result(&result);
	if (log)
		print_measured(c);
	print_labelled("expected", c->source);
	if (c->kernel)
		print_labelled("Linux", c->kernel);
}

static int print_all(void)
{
	const struct contention_case *c;

	print_table();
	for (size_t i = 0; (c = contention_case_at(i)); i++)
		print_case(c, NULL);
	printf("\nvpmu contention --explain CASE prints the steps of a case or cell.\n");
	return fflush(stdout) ? EXIT_VPMU : 0;
}

static void print_steps(const struct contention_log *log)
{
	char number[16];

	for (unsigned int i = 0; i < log->n; i++) {
		if (i && i == log->base)
			printf("     each of the following starts again from step 2:\n");
		snprintf(number, sizeof(number), "%u.", i + 1);
		printf("%4s ", number);
		print_wrapped(log->step[i].done, 5, 5);
		if (log->step[i].after[0]) {
			printf("%8s", "");
			print_wrapped(log->step[i].after, 8, 8);
		}
	}
}

/* Output as JSON ------------------------------------------------------------- */

static json_t *steps_json(const struct contention_log *log)
{
	json_t *steps = json_array();

	for (unsigned int i = 0; i < log->n; i++)
		json_array_append_new(steps, json_pack("{s:s, s:s}", "do", log->step[i].done,
						       "after", log->step[i].after));
	return steps;
}

static json_t *back_json(const struct contention_cell *cell, const int8_t *back)
{
	json_t *j = json_object();

	for (unsigned int t = 0; t < CONTENTION_TRIGGERS; t++)
		if (t != CONTENTION_EXIT || cell->id.policy == VPMU_POLICY_MEDIATED)
			json_object_set_new(j, contention_trigger_name(t),
					    json_boolean(back[t] == 1));
	return j;
}

static json_t *side_json(const struct contention_side *side)
{
	json_t *j = json_object();

	for (unsigned int s = 0; s < CONTENTION_STATES; s++)
		if (side->count[s])
			json_object_set_new(j, contention_state_name(s),
					    json_integer(side->count[s]));
	return j;
}

static json_t *mode_json(const struct contention_side *incumbent,
			 const struct contention_side *newcomer)
{
	return json_pack("{s:s, s:s}",
			 "incumbent_state", contention_state_name(incumbent->state),
			 "newcomer_state", contention_state_name(newcomer->state));
}

static json_t *string_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *error_json(int error)
{
	return string_or_null(error_name(error));
}

static json_t *cell_json(const struct contention_cell *cell)
{
	const struct contention_cell_id *id = &cell->id;
	const char *guest = cell->incumbent.guest ? "incumbent" :
			    cell->newcomer.guest ? "newcomer" : NULL;
	json_t *j;

	j = json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:s, s:{s:o, s:o}, s:o}",
		      "policy", contention_policy_name(id->policy),
		      "resource", contention_resource_name(id->resource),
		      "incumbent", contention_class_name(id->incumbent),
		      "newcomer", contention_class_name(id->newcomer),
		      "guest", string_or_null(guest),
		      "incumbent_state", contention_state_name(cell->incumbent.state),
		      "newcomer_state", contention_state_name(cell->newcomer.state),
		      "incumbent_events", side_json(&cell->incumbent),
		      "newcomer_events", side_json(&cell->newcomer),
		      "loser", contention_loser_name(cell->loser),
		      "back", "held", back_json(cell, cell->held),
		      "released", back_json(cell, cell->released),
		      "kernel", string_or_null(contention_cell_kernel(id)));
	if (id->policy != VPMU_POLICY_MEDIATED)
		return j;
	json_object_set_new(j, "in_guest", mode_json(&cell->incumbent_guest,
						      &cell->newcomer_guest));
	json_object_set_new(j, "in_host", mode_json(&cell->incumbent_host,
						     &cell->newcomer_host));
	json_object_set_new(j, "counting_guests",
			    json_pack("{s:o, s:o}",
				      "incumbent", error_json(cell->incumbent_error),
				      "newcomer", error_json(cell->newcomer_error)));
	return j;
}

/* "KEY: VALUE; KEY: VALUE" as an object. */
static json_t *pairs_json(const char *text)
{
	json_t *j = json_object();
	char *copy = strdup(text), *save, *value;

	for (char *pair = copy ? strtok_r(copy, ";", &save) : NULL; pair;
	     pair = strtok_r(NULL, ";", &save)) {
		pair += *pair == ' ';
		value = strstr(pair, ": ");
		*value = 0;
		json_object_set_new(j, pair, json_string(value + 2));
	}
	free(copy);
	return j;
}

static json_t *measured_json(const char *id)
{
	const struct contention_measured *m;
	json_t *list = json_array();

	for (size_t i = 0; (m = contention_measured_at(id, i)); i++)
		json_array_append_new(list, json_pack("{s:s, s:o}", "kernels", m->kernels,
						      "result", pairs_json(m->result)));
	return list;
}

static json_t *case_json(const struct contention_case *c, struct contention_log *log)
{
	struct contention_result result;
	json_t *values = json_object();

	run_case(c, &result, log);
	for (unsigned int i = 0; i < result.n; i++)
		json_object_set_new(values, result.row[i].key, json_string(result.row[i].value));
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "id", c->id, "title", c->title,
			 "policy", contention_policy_name(c->policy), "source", c->source,
			 "kernel", string_or_null(c->kernel), "result", values,
			 "measured", measured_json(c->id),
			 "steps", steps_json(log));
}

static int dump(json_t *cells, json_t *cases)
{
	json_t *j = json_pack("{s:i, s:o, s:o}", "version", 1, "cells", cells, "cases", cases);

	json_dumpf(j, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(j);
	return fflush(stdout) ? EXIT_VPMU : 0;
}

static int dump_all(struct contention_log *log)
{
	json_t *cells = json_array(), *cases = json_array();
	const struct contention_case *c;
	struct contention_cell_id id;
	struct contention_cell cell;

	for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++)
		for (unsigned int r = 0; r < CONTENTION_RESOURCES; r++)
			for_each_cell_of(id, policies[p], r) {
				run_cell(&id, &cell, NULL);
				json_array_append_new(cells, cell_json(&cell));
			}
	for (size_t i = 0; (c = contention_case_at(i)); i++)
		json_array_append_new(cases, case_json(c, log));
	return dump(cells, cases);
}

/* A single cell or case ------------------------------------------------------ */

static int explain_case(const struct contention_case *c, struct contention_log *log, bool json)
{
	if (json)
		return dump(json_array(), json_pack("[o]", case_json(c, log)));
	print_case(c, log);
	putchar('\n');
	print_steps(log);
	return fflush(stdout) ? EXIT_VPMU : 0;
}

static int explain_cell(const struct contention_cell_id *id, struct contention_log *log,
			bool json)
{
	struct contention_cell cell;
	json_t *j;

	run_cell(id, &cell, log);
	if (json) {
		j = cell_json(&cell);
		json_object_set_new(j, "steps", steps_json(log));
		return dump(json_pack("[o]", j), json_array());
	}
	printf("%s: %s\n", contention_policy_name(id->policy), resource_titles[id->resource]);
	print_head();
	print_cell(&cell);
	if (contention_cell_kernel(id))
		print_labelled("Linux", contention_cell_kernel(id));
	putchar('\n');
	print_steps(log);
	return fflush(stdout) ? EXIT_VPMU : 0;
}

/* All names, NULL-ended; the caller leaks them at exit. */
static const char **all_names(void)
{
	size_t n = 0, i, max = (size_t)3 * CONTENTION_RESOURCES * CLASSES * CLASSES;
	const struct contention_case *c;
	struct contention_cell_id id;
	const char **names;

	for (i = 0; contention_case_at(i); i++)
		max++;
	names = xalloc((max + 1) * sizeof(*names));
	for (i = 0; (c = contention_case_at(i)); i++)
		names[n++] = c->id;
	for (i = 0; i < 3; i++)
		for (unsigned int r = 0; r < CONTENTION_RESOURCES; r++)
			for_each_cell_of(id, policies[i], r) {
				char *name = xalloc(CONTENTION_NAME);

				contention_cell_name(&id, name);
				names[n++] = name;
			}
	return names;
}

static int explain(const char *name, bool json)
{
	struct contention_log *log = xalloc(sizeof(*log));
	const struct contention_case *c;
	struct contention_cell_id id;
	const char *found;

	if (contention_cell_find(name, &id))
		return explain_cell(&id, log, json);
	for (size_t i = 0; (c = contention_case_at(i)); i++)
		if (!strcmp(c->id, name))
			return explain_case(c, log, json);
	found = nearest(name, all_names());
	if (found)
		fail(EXIT_VPMU, "--explain %s: no such case; did you mean %s? "
		     "(vpmu contention --list prints them)", name, found);
	fail(EXIT_VPMU, "--explain %s: no such case (vpmu contention --list prints them)", name);
}

static int list_names(void)
{
	const struct contention_case *c;
	const char **names = all_names();
	size_t i;

	for (i = 0; (c = contention_case_at(i)); i++)
		printf("%-15s %s\n", c->id, c->title);
	for (; names[i]; i++)
		puts(names[i]);
	return fflush(stdout) ? EXIT_VPMU : 0;
}

int verb_contention(int argc, char **argv)
{
	const char *name = NULL;
	bool json = false, list = false;
	const struct option_def defs[] = {
		{ "json", 0, NULL, "for programs", &json },
		{ "explain", 0, "CASE", "its steps, and the states after each", &name },
		{ "list", 0, NULL, "the names of all cases and cells", &list },
		{ NULL, 0, NULL, NULL, NULL },
	};

	if (options_parse(argc, argv, defs, usage) < argc)
		fail(EXIT_VPMU, "contention takes no arguments (vpmu contention --help)");
	if (list)
		return list_names();
	if (name)
		return explain(name, json);
	if (json)
		return dump_all(xalloc(sizeof(struct contention_log)));
	return print_all();
}
