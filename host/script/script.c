// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The scripted engine: totals that advance when the caller says so, and checks
 * of every call that ops.h allows.
 */
#include "script.h"

#include <vpmu/result.h>

#define RUBBISH 0xa5a5a5a5a5a5a5a5ull

static void breach(struct vpmu_script *sc, const char *what)
{
	if (!sc->broken)
		sc->broken = what;
}

static void enter_hook(struct vpmu_script *sc)
{
	if (sc->in_hook)
		breach(sc, "a hook was called from a hook");
	sc->in_hook = true;
}

static void leave_hook(struct vpmu_script *sc)
{
	sc->in_hook = false;
}

static void script_read_totals(void *ctx, uint64_t signals, struct vpmu_signal_words *totals)
{
	struct vpmu_script *sc = ctx;
	unsigned int s, b;

	enter_hook(sc);
	sc->n_read++;
	if (signals & ~sc->supplied)
		breach(sc, "pull of a signal that is not supplied");
	for (s = 0; s < VPMU_SIGNAL_COUNT; s++)
		for (b = 0; b < VPMU_BANK_COUNT; b++)
			totals->word[s][b] = signals & VPMU_SIGNAL_BIT(s) ?
				sc->total.word[s][b] : RUBBISH;
	sc->read = sc->total;
	leave_hook(sc);
}

static void take_deadline(struct vpmu_script *sc, unsigned int s, unsigned int b,
			  uint64_t left)
{
	uint64_t total = sc->total.word[s][b];

	if (!left)
		breach(sc, "deadline of 0");
	if (left != VPMU_NEVER && !(sc->demand & VPMU_SIGNAL_BIT(s)))
		breach(sc, "deadline for a signal that is not demanded");
	if (sc->read.word[s][b] != total)
		breach(sc, "deadline without a pull at the same instant");
	sc->target.word[s][b] = left < VPMU_NEVER - total ? total + left : VPMU_NEVER;
}

static void script_set_deadlines(void *ctx, const struct vpmu_signal_words *left)
{
	struct vpmu_script *sc = ctx;
	unsigned int s, b;

	enter_hook(sc);
	sc->n_deadline++;
	for (s = 0; s < VPMU_SIGNAL_COUNT; s++)
		for (b = 0; b < VPMU_BANK_COUNT; b++)
			take_deadline(sc, s, b, left->word[s][b]);
	leave_hook(sc);
}

static void script_set_demand(void *ctx, uint64_t signals)
{
	struct vpmu_script *sc = ctx;

	enter_hook(sc);
	sc->n_demand++;
	if (signals & ~sc->supplied)
		breach(sc, "demand of a signal that is not supplied");
	if (signals == sc->demand)
		breach(sc, "demand did not change");
	sc->demand = signals;
	leave_hook(sc);
}

static void script_kick(void *ctx)
{
	struct vpmu_script *sc = ctx;

	enter_hook(sc);
	sc->n_kick++;
	sc->kicked = true;
	leave_hook(sc);
}

static uint64_t instructions(const struct vpmu_script *sc)
{
	const uint64_t *word = sc->truth.word[VPMU_SIGNAL_INSTRUCTIONS];

	return word[0] + word[1] + word[2] + word[3];
}

static void script_raise_pmi(void *ctx, bool mask)
{
	struct vpmu_script *sc = ctx;

	enter_hook(sc);
	if (sc->lvtpc_masked) {
		sc->n_pmi_lost++;
	} else {
		if (sc->n_pmi < VPMU_SCRIPT_PMIS)
			sc->pmi_at[sc->n_pmi] = instructions(sc);
		sc->n_pmi++;
		sc->lvtpc_masked = mask;
	}
	leave_hook(sc);
}

static struct vpmu_lbr *script_set_lbr(void *ctx, bool record)
{
	struct vpmu_script *sc = ctx;

	sc->record = record;
	return &sc->lbr;
}

/*
 * The engine has no memory, and its instructions no addresses; tests may have their own.
 */
static int script_gva_to_gpa(void *ctx, uint64_t address, bool write, uint64_t *gpa)
{
	*gpa = address;
	return -VPMU_EFAULT;
}

static int script_gpa_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	return -VPMU_EFAULT;
}

static int script_gpa_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size)
{
	return -VPMU_EFAULT;
}

static void script_set_sampling(void *ctx, bool on)
{
	struct vpmu_script *sc = ctx;

	if (on == sc->watch)
		breach(sc, "watch without a change");
	sc->watch = on;
}

static void script_get_sample(void *ctx, struct vpmu_sample *s)
{
	struct vpmu_script *sc = ctx;

	if (!sc->watch)
		breach(sc, "sample of what was not watched");
	memset(s, 0, sizeof(*s));
}

void vpmu_script_init(struct vpmu_script *sc, uint64_t supplied)
{
	memset(sc, 0, sizeof(*sc));
	memset(&sc->target, 0xff, sizeof(sc->target));
	sc->supplied = supplied;
	sc->ops.size = sizeof(sc->ops);
	sc->ops.read_totals = script_read_totals;
	sc->ops.set_deadlines = script_set_deadlines;
	sc->ops.set_demand = script_set_demand;
	sc->ops.kick = script_kick;
	sc->ops.raise_pmi = script_raise_pmi;
	sc->ops.set_lbr = script_set_lbr;
	sc->ops.gpa_read = script_gpa_read;
	sc->ops.gpa_write = script_gpa_write;
	sc->ops.gva_to_gpa = script_gva_to_gpa;
	sc->ops.set_sampling = script_set_sampling;
	sc->ops.get_sample = script_get_sample;
}

void vpmu_script_service(struct vpmu_script *sc)
{
	while (sc->kicked) {
		sc->kicked = false;
		if (sc->service)
			sc->service(sc->arg);
	}
}

/* Advance one word; returns whether a deadline was reached. */
static bool advance(struct vpmu_script *sc, unsigned int s, unsigned int b, uint64_t n)
{
	sc->truth.word[s][b] += n;
	if (!(sc->demand & VPMU_SIGNAL_BIT(s)))
		return false;
	sc->total.word[s][b] += n;
	return sc->total.word[s][b] >= sc->target.word[s][b];
}

static void expire(struct vpmu_script *sc)
{
	sc->n_expire++;
	if (sc->silicon)
		vpmu_silicon_expire(sc->silicon);
	vpmu_script_service(sc);
}

void vpmu_script_branch(struct vpmu_script *sc, enum vpmu_branch_type type, bool user,
			uint64_t from, uint64_t to)
{
	uint64_t seen = sc->lbr.next + sc->lbr.more;

	if (!sc->record)
		return;
	vpmu_lbr_record(&sc->lbr, type, user, from, to);
	if (advance(sc, VPMU_SIGNAL_LBR_INSERTS, user ? VPMU_BANK_USER : VPMU_BANK_KERNEL,
		    vpmu_lbr_inserted(&sc->lbr, &seen)))
		expire(sc);
}

void vpmu_script_retire(struct vpmu_script *sc, enum vpmu_signal signal,
			enum vpmu_bank bank, uint64_t n)
{
	while (n) {
		uint64_t left = VPMU_NEVER, step;

		if (sc->demand & VPMU_SIGNAL_BIT(signal))
			left = sc->target.word[signal][bank] - sc->total.word[signal][bank];
		step = n < left ? n : left;
		if (!step) {
			breach(sc, "a deadline was not replaced after it was reached");
			step = 1;
		}
		if (advance(sc, signal, bank, step))
			expire(sc);
		n -= step;
	}
}

void vpmu_script_step(struct vpmu_script *sc, enum vpmu_bank bank, enum vpmu_signal kind)
{
	bool hit = advance(sc, VPMU_SIGNAL_INSTRUCTIONS, bank, 1);

	if (kind >= VPMU_SIGNAL_JCC_TAKEN && kind <= VPMU_SIGNAL_FAR) {
		hit |= advance(sc, VPMU_SIGNAL_BRANCHES, bank, 1);
		hit |= advance(sc, kind, bank, 1);
	}
	if (hit)
		expire(sc);
	else
		vpmu_script_service(sc);
}

void vpmu_script_run(struct vpmu_script *sc, enum vpmu_bank bank, uint64_t n)
{
	vpmu_script_retire(sc, VPMU_SIGNAL_INSTRUCTIONS, bank, n);
}

uint64_t vpmu_script_truth(const struct vpmu_script *sc, const struct vpmu_recipe *r)
{
	unsigned int s, b;
	uint64_t sum = 0;

	for (s = 0; s < VPMU_SIGNAL_COUNT; s++)
		for (b = 0; b < VPMU_BANK_COUNT; b++)
			if (r->signals & VPMU_SIGNAL_BIT(s) && r->banks & VPMU_BANK_BIT(b))
				sum += sc->truth.word[s][b];
	return sum >> r->shift;
}
