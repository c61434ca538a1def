// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Runs a guest operation on the library and on the reference model, and
 * compares what a guest can notice.
 */
#include "pair.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <vpmu/arch.h>
#include <vpmu/direct.h>

#include "script.h"

#define PMIS_MAX 4096 /* PMIs of one operation */

/* The instructions at which one side raised PMIs, in one operation. */
struct pmi_log {
	size_t n;
	uint64_t at[PMIS_MAX];
};

/* One instance of the library with an engine of its own. */
struct machine {
	struct vpmu_script script; /* first: hooks get a pointer to it */
	struct vpmu_direct direct;
	struct vpmu_arch *arch;
	struct pair *pair;
	uint64_t demanded;         /* by the core, without what we add */
	void (*demand)(void *ctx, uint64_t signals); /* the engine's own */
	void (*deadline)(void *ctx, const struct vpmu_signal_words *left);
};

struct pair {
	const struct pair_config *cfg;
	struct pair_failure *failure;
	bool failed;
	struct machine *machine;
	struct ref_pmu ref;
	bool in_smm;
	uint64_t instructions; /* retired on the library's side, on all machines */
	struct pmi_log lib_pmis, ref_pmis;
};

__attribute__((format(printf, 2, 3)))
static void differ(struct pair *p, const char *format, ...)
{
	va_list ap;

	if (p->failed)
		return;
	p->failed = true;
	va_start(ap, format);
	vsnprintf(p->failure->text, sizeof(p->failure->text), format, ap);
	va_end(ap);
}

/* The library's side --------------------------------------------------------- */

static void log_pmi(struct pmi_log *log, uint64_t at)
{
	if (log->n < PMIS_MAX)
		log->at[log->n] = at;
	log->n++;
}

static void machine_raise_pmi(void *ctx, bool mask)
{
	struct machine *m = ctx;
	struct pair *p = m->pair;

	if (!mask)
		differ(p, "a PMI that does not set LVTPC's mask bit");
	log_pmi(&p->lib_pmis, p->instructions);
}

/*
 * An engine may count more than is demanded. Here it always counts instructions,
 * because the phase of a scaled event is that of the total, and the reference
 * has no notion of demand.
 */
static void machine_set_demand(void *ctx, uint64_t signals)
{
	struct machine *m = ctx;

	m->script.demand = m->demanded;
	m->demand(ctx, signals);
	m->demanded = m->script.demand;
	m->script.demand |= VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS);
}

/* The engine's check of pulls is meant for words that have a deadline. */
static void machine_set_deadlines(void *ctx, const struct vpmu_signal_words *left)
{
	struct machine *m = ctx;
	unsigned int s, b;

	for (s = 0; s < VPMU_SIGNAL_COUNT; s++)
		for (b = 0; b < VPMU_BANK_COUNT; b++)
			if (left->word[s][b] == VPMU_NEVER)
				m->script.read.word[s][b] = m->script.total.word[s][b];
	m->deadline(ctx, left);
}

static void machine_service(void *arg)
{
	struct machine *m = arg;

	vpmu_arch_service(m->arch);
}

static void machine_free(struct machine *m)
{
	if (m)
		free(m->arch);
	free(m);
}

static struct machine *machine_new(struct pair *p)
{
	const struct pair_config *c = p->cfg;
	struct machine *m = calloc(1, sizeof(*m));
	struct vpmu_silicon_config silicon = { .size = sizeof(silicon) };
	struct vpmu_arch_config arch = { .size = sizeof(arch) };
	struct vpmu_error err = { .what = "" };
	size_t size;

	if (!m)
		abort();
	m->pair = p;
	vpmu_script_init(&m->script, VPMU_SCRIPT_SUPPLIED);
	m->demand = m->script.ops.set_demand;
	m->deadline = m->script.ops.set_deadlines;
	m->script.ops.set_demand = machine_set_demand;
	m->script.ops.set_deadlines = machine_set_deadlines;
	m->script.ops.raise_pmi = machine_raise_pmi;
	m->script.demand = VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS);
	m->script.silicon = &m->direct.silicon;
	m->script.service = machine_service;
	m->script.arg = m;

	silicon.model = c->model;
	silicon.supplied = m->script.supplied;
	silicon.ops = &m->script.ops;
	silicon.ctx = m;
	if (vpmu_direct_init(&m->direct, &silicon)) {
		differ(p, "vpmu_direct_init() fails");
		goto err_free;
	}

	arch.model = c->model;
	arch.version = c->version;
	arch.n_gp = c->n_gp;
	arch.n_fixed = c->n_fixed;
	arch.capabilities = c->capabilities;
	arch.provider = &m->direct.provider;
	arch.ops = &m->script.ops;
	arch.ctx = m;
	if (vpmu_arch_size(&arch, &size, &err)) {
		differ(p, "vpmu_arch_size() fails: %s: asked %" PRIx64 ", available %" PRIx64,
		       err.what, err.asked, err.available);
		goto err_free;
	}
	m->arch = aligned_alloc(8, size);
	if (!m->arch)
		abort();
	memset(m->arch, 0x5a, size);
	if (vpmu_arch_init(m->arch, &arch, &err)) {
		differ(p, "vpmu_arch_init() fails: %s", err.what);
		goto err_free;
	}
	return m;

err_free:
	machine_free(m);
	return NULL;
}

/* Comparing ------------------------------------------------------------------ */

static void compare_access(struct pair *p, const char *what, uint32_t reg,
			   enum vpmu_result lib, uint64_t lib_value,
			   enum vpmu_result ref, uint64_t ref_value)
{
	static const char *const name[] = { "handled", "not mine", "fault" };

	if (lib != ref)
		differ(p, "%s %" PRIx32 ": library %s, reference %s", what, reg,
		       (unsigned int)lib < 3 ? name[lib] : "rubbish", name[ref]);
	else if (lib_value != ref_value)
		differ(p, "%s %" PRIx32 ": library %" PRIx64 ", reference %" PRIx64, what, reg,
		       lib_value, ref_value);
}

#define UNTOUCHED 0x0123456789abcdefull

static enum vpmu_result both_rdmsr(struct pair *p, uint32_t msr)
{
	uint64_t lib_value = UNTOUCHED, ref_value = UNTOUCHED;
	enum vpmu_result lib = vpmu_arch_rdmsr(p->machine->arch, msr, &lib_value);
	enum vpmu_result ref = ref_rdmsr(&p->ref, msr, &ref_value);

	compare_access(p, "RDMSR", msr, lib, lib_value, ref, ref_value);
	return ref;
}

static enum vpmu_result both_rdpmc(struct pair *p, uint32_t rdpmc_idx, bool user)
{
	uint64_t lib_value = UNTOUCHED, ref_value = UNTOUCHED;
	enum vpmu_result lib = vpmu_arch_rdpmc(p->machine->arch, rdpmc_idx, user, &lib_value);
	enum vpmu_result ref = ref_rdpmc(&p->ref, rdpmc_idx, user, &ref_value);

	compare_access(p, "RDPMC", rdpmc_idx, lib, lib_value, ref, ref_value);
	return ref;
}

static enum vpmu_result both_wrmsr(struct pair *p, uint32_t msr, uint64_t value)
{
	enum vpmu_result lib = vpmu_arch_wrmsr(p->machine->arch, msr, value);
	enum vpmu_result ref = ref_wrmsr(&p->ref, msr, value);

	vpmu_script_service(&p->machine->script);
	compare_access(p, "WRMSR", msr, lib, 0, ref, 0);
	return ref;
}

static void both_cpuid(struct pair *p, uint32_t leaf, uint32_t subleaf)
{
	struct vpmu_cpuid lib = { 0xaa55, 2, 0xffffffff, 4 };
	struct ref_cpuid ref = { 0xaa55, 2, 0xffffffff, 4 };
	bool lib_has, ref_has;

	lib_has = vpmu_arch_cpuid(p->machine->arch, leaf, subleaf, &lib);
	ref_has = ref_cpuid(&p->ref, leaf, subleaf, &ref);
	/* without fixed counters their width says nothing */
	if (leaf == 0xa && !p->cfg->n_fixed) {
		lib.edx &= ~0x1fe0u;
		ref.edx &= ~0x1fe0u;
	}
	if (lib_has != ref_has || memcmp(&lib, &ref, sizeof(lib)))
		differ(p, "CPUID %" PRIx32 ".%" PRIx32 ": library %d %08x %08x %08x %08x, "
		       "reference %d %08x %08x %08x %08x", leaf, subleaf, lib_has, lib.eax, lib.ebx,
		       lib.ecx, lib.edx, ref_has, ref.eax, ref.ebx, ref.ecx, ref.edx);
}

static void compare_all(struct pair *p)
{
	static const struct {
		uint32_t first, n;
	} range[] = {
		{ 0x0c1, 8 }, { 0x186, 8 }, { 0x1d9, 1 }, { 0x309, 8 },
		{ 0x345, 1 }, { 0x38d, 6 }, { 0x4c1, 8 }, { 0x1900, 36 },
		{ 0x1980, 16 }, { 0x1c8, 2 }, { 0x680, 32 }, { 0x6c0, 32 }, { 0xdc0, 32 },
		{ 0x14ce, 2 }, { 0x1500, 32 }, { 0x1600, 32 }, { 0x1200, 32 },
	};
	uint32_t i, r;

	for (r = 0; r < sizeof(range) / sizeof(range[0]); r++)
		for (i = 0; i < range[r].n; i++)
			both_rdmsr(p, range[r].first + i);
	for (i = 0; i < 18; i++)
		both_rdpmc(p, i / 2, i & 1);
	for (i = 0; i < 8; i++)
		both_rdpmc(p, 0x40000000 + i / 2, i & 1);
	both_cpuid(p, 0x1, 0);
	both_cpuid(p, 0x7, 0);
	both_cpuid(p, 0x7, 1);
	both_cpuid(p, 0xa, 0);
	both_cpuid(p, 0x1c, 0);
	for (i = 0; i < 6; i++)
		both_cpuid(p, 0x23, i);
}

static void compare_pmis(struct pair *p)
{
	struct pmi_log *lib = &p->lib_pmis, *ref = &p->ref_pmis;
	size_t i;

	for (i = 0; i < lib->n && i < ref->n && i < PMIS_MAX; i++)
		if (lib->at[i] != ref->at[i])
			differ(p, "PMI: library after %" PRIu64 " instructions, reference %" PRIu64,
			       lib->at[i], ref->at[i]);
	if (lib->n > ref->n)
		differ(p, "PMI after %" PRIu64 " instructions: library only", lib->at[i]);
	if (ref->n > lib->n)
		differ(p, "PMI after %" PRIu64 " instructions: reference only", ref->at[i]);
	lib->n = 0;
	ref->n = 0;
}

/* Operations ----------------------------------------------------------------- */

static enum vpmu_signal signal_of(enum ref_kind kind)
{
	static const enum vpmu_signal signal[REF_KINDS] = {
		[REF_PLAIN] = VPMU_SIGNAL_INSTRUCTIONS,
		[REF_JCC_TAKEN] = VPMU_SIGNAL_JCC_TAKEN,
		[REF_JCC_NOT_TAKEN] = VPMU_SIGNAL_JCC_NOT_TAKEN,
		[REF_JMP] = VPMU_SIGNAL_JMP,
		[REF_CALL] = VPMU_SIGNAL_CALL,
		[REF_RET] = VPMU_SIGNAL_RET,
		[REF_JMP_INDIRECT] = VPMU_SIGNAL_JMP_INDIRECT,
		[REF_CALL_INDIRECT] = VPMU_SIGNAL_CALL_INDIRECT,
		[REF_FAR] = VPMU_SIGNAL_FAR,
	};

	return signal[kind];
}

static enum vpmu_bank bank_of(enum ref_bank bank)
{
	static const enum vpmu_bank to[REF_BANKS] = {
		[REF_KERNEL] = VPMU_BANK_KERNEL,
		[REF_USER] = VPMU_BANK_USER,
		[REF_NESTED_KERNEL] = VPMU_BANK_NESTED_KERNEL,
		[REF_NESTED_USER] = VPMU_BANK_NESTED_USER,
	};

	return to[bank];
}

/* Each from another address, and by another distance. */
static void record(struct pair *p, enum ref_kind kind, bool user)
{
	static const enum vpmu_branch_type type[REF_KINDS] = {
		[REF_JCC_TAKEN] = VPMU_BRANCH_JCC,
		[REF_JMP] = VPMU_BRANCH_JMP,
		[REF_CALL] = VPMU_BRANCH_CALL,
		[REF_RET] = VPMU_BRANCH_RET,
		[REF_JMP_INDIRECT] = VPMU_BRANCH_JMP_INDIRECT,
		[REF_CALL_INDIRECT] = VPMU_BRANCH_CALL_INDIRECT,
		[REF_FAR] = VPMU_BRANCH_FAR,
	};
	uint64_t from = p->instructions * 4, to = p->instructions * 7;

	if (kind == REF_PLAIN || kind == REF_JCC_NOT_TAKEN)
		return;
	vpmu_script_branch(&p->machine->script, type[kind], user, from, to);
	ref_lbr_branch(&p->ref, kind, user, from, to);
}

static void retire(struct pair *p, enum ref_kind kind, enum ref_bank bank)
{
	uint64_t before = p->ref.pmis;

	p->instructions++;
	record(p, kind, bank == REF_USER || bank == REF_NESTED_USER);
	vpmu_script_step(&p->machine->script, bank_of(bank), signal_of(kind));
	ref_instruction(&p->ref, kind, bank);
	if (p->ref.pmis != before)
		log_pmi(&p->ref_pmis, p->ref.pmi_at);
}

/* The instruction that made an access retires unless it faulted. */
static void retire_access(struct pair *p, enum vpmu_result result, enum ref_bank bank)
{
	if (result != VPMU_FAULT)
		retire(p, REF_PLAIN, bank);
}

static void run(struct pair *p, const struct pair_op *op)
{
	uint64_t digits = op->value;
	unsigned int i;

	for (i = 0; i < op->count && !p->failed; i++) {
		retire(p, digits % 16 < REF_KINDS ? digits % 16 : REF_PLAIN, op->bank);
		digits = digits >> 4 | digits << 60;
	}
}

static void migrate(struct pair *p)
{
	struct machine *from = p->machine, *to;
	size_t size = 0, used = 0, again = 0;
	uint8_t *saved, *saved_again;
	int err;

	err = vpmu_arch_save(from->arch, NULL, 0, &size);
	if (err || !size) {
		differ(p, "measuring the state: %d, %zu bytes", err, size);
		return;
	}
	saved = malloc(size);
	saved_again = malloc(size);
	to = machine_new(p);
	if (!saved || !saved_again || !to)
		goto out;
	err = vpmu_arch_save(from->arch, saved, size, &used);
	if (err || used != size)
		differ(p, "save: %d, %zu bytes of %zu", err, used, size);
	else if ((err = vpmu_arch_load(to->arch, saved, size)))
		differ(p, "load: %d", err);
	else if ((err = vpmu_arch_save(to->arch, saved_again, size, &again)))
		differ(p, "save after load: %d", err);
	else if (again != used || memcmp(saved, saved_again, used))
		differ(p, "save, load, save is not equal");
	p->machine = to;
	to = from;
out:
	machine_free(to);
	free(saved_again);
	free(saved);
}

static void reset(struct pair *p, bool init)
{
	vpmu_arch_reset(p->machine->arch, init);
	ref_reset(&p->ref, init);
	if (!init)
		p->in_smm = false;
}

static void smm(struct pair *p)
{
	p->in_smm = !p->in_smm;
	vpmu_arch_smm(p->machine->arch, p->in_smm);
	ref_smm(&p->ref, p->in_smm);
}

static void perform(struct pair *p, const struct pair_op *op)
{
	switch ((enum pair_kind)op->kind) {
	case PAIR_WRMSR:
		retire_access(p, both_wrmsr(p, op->reg, op->value), REF_KERNEL);
		break;
	case PAIR_RDMSR:
		retire_access(p, both_rdmsr(p, op->reg), REF_KERNEL);
		break;
	case PAIR_RDPMC:
		retire_access(p, both_rdpmc(p, op->reg, op->bank & 1), op->bank);
		break;
	case PAIR_CPUID:
		both_cpuid(p, op->reg, (uint32_t)op->value);
		break;
	case PAIR_RUN:
		run(p, op);
		break;
	case PAIR_SMM:
		smm(p);
		break;
	case PAIR_RESET:
		reset(p, false);
		break;
	case PAIR_INIT:
		if (!p->in_smm) /* INIT is blocked in SMM */
			reset(p, true);
		break;
	case PAIR_MIGRATE:
		migrate(p);
		break;
	case PAIR_COMPARE:
	case PAIR_KINDS:
		compare_all(p);
		break;
	}
}

static void configure_reference(struct pair *p)
{
	const struct pair_config *c = p->cfg;
	struct ref_config ref = {
		.version = c->version,
		.n_gp = c->n_gp,
		.n_fixed = c->n_fixed,
		.width_bits = 48,
		.capabilities = c->capabilities,
	};

	if (c->capabilities & VPMU_CAP_LBR)
		ref.lbr = (c->capabilities & VPMU_CAP_LBR) == VPMU_CAP_LBR_ARCH ? REF_LBR_ARCH
										: REF_LBR_INFO;
	ref.n_arch_events = 7;
	switch (c->model->n_models ? c->model->models[0] : 0) {
	case 14: /* Core Duo: 3C/01 counts the bus clock */
		ref.width_bits = 40;
		ref.crystal_shift = 2;
		ref.umasks = REF_UMASKS_CORE_DUO;
		break;
	case 15: /* Core 2 */
		ref.width_bits = 40;
		ref.crystal_shift = 2;
		ref.umasks = REF_UMASKS_CORE2;
		break;
	case 28: /* Bonnell */
		ref.width_bits = 40;
		ref.crystal_shift = 2;
		ref.umasks = REF_UMASKS_BONNELL;
		break;
	case 26: /* Nehalem */
	case 37: /* Westmere */
		ref.crystal_shift = 2;
		ref.prec_dist = true;
		ref.uops = true;
		ref.umasks = REF_UMASKS_NEHALEM;
		break;
	case 42: /* Sandy Bridge */
	case 58: /* Ivy Bridge */
	case 60: /* Haswell */
	case 61: /* Broadwell */
		ref.crystal_shift = 2;
		ref.prec_dist = true;
		ref.uops = true;
		ref.umasks = REF_UMASKS_SKYLAKE;
		break;
	case 87: /* Knights Landing */
		ref.width_bits = 40;
		ref.crystal_shift = 2;
		ref.umasks = REF_UMASKS_ATOM;
		break;
	case 92: /* Goldmont */
		ref.crystal_shift = 2;
		ref.all_taken = true;
		ref.umasks = REF_UMASKS_ATOM;
		break;
	case 134: /* Tremont: 3C/01 counts at the TSC's rate */
		ref.umasks = REF_UMASKS_ATOM;
		break;
	case 78: /* Skylake */
	case 85: /* Skylake-SP: 25 MHz crystal */
		ref.crystal_shift = 4;
		ref.prec_dist = true;
		ref.umasks = REF_UMASKS_SKYLAKE;
		break;
	case 106: /* Ice Lake-SP: 25 MHz crystal */
		ref.n_arch_events = 8;
		ref.crystal_shift = 4;
		ref.prec_dist = true;
		ref.umasks = REF_UMASKS_ICELAKE;
		break;
	case 143: /* Sapphire Rapids: 3C/01 counts at the TSC's rate */
	case 173: /* Granite Rapids, with all that version 6 has */
		ref.n_arch_events = 8;
		ref.uops = true;
		ref.umasks = REF_UMASKS_ICELAKE;
		ref.umask2 = true;
		ref.eq = true;
		ref.hides = true;
		ref.reloads = true;
		break;
	case 221: /* Clearwater Forest: likewise; version 6 without RDPMC user disable */
		ref.n_arch_events = 7;
		ref.umasks = REF_UMASKS_DARKMONT;
		ref.umask2 = true;
		ref.eq = true;
		ref.reloads = true;
		break;
	default:
		ref.n_arch_events = 8;
		ref.umasks = REF_UMASKS_ARCH;
		break;
	}
	ref_init(&p->ref, &ref);
}

bool pair_run(const struct pair_config *cfg, const struct pair_op *op, size_t n,
	      struct pair_failure *f)
{
	struct pair p = { .cfg = cfg, .failure = f };
	size_t i;

	f->op = 0;
	configure_reference(&p);
	p.machine = machine_new(&p);
	for (i = 0; i < n && !p.failed; i++) {
		f->op = i;
		perform(&p, &op[i]);
		compare_pmis(&p);
		if (p.machine->script.broken)
			differ(&p, "ops.h is broken: %s", p.machine->script.broken);
	}
	if (!p.failed)
		compare_all(&p);
	machine_free(p.machine);
	return !p.failed;
}

/* Showing -------------------------------------------------------------------- */

size_t pair_shrink(const struct pair_config *cfg, struct pair_op *op, size_t n)
{
	struct pair_op *trial = malloc(n * sizeof(*op));
	struct pair_failure f;
	size_t part, at;

	if (!trial || pair_run(cfg, op, n, &f))
		goto out;
	n = f.op < n ? f.op + 1 : n;
	for (part = n / 2; part; part /= 2) {
		for (at = 0; at + part <= n;) {
			memcpy(trial, op, at * sizeof(*op));
			memcpy(trial + at, op + at + part, (n - at - part) * sizeof(*op));
			if (pair_run(cfg, trial, n - part, &f)) {
				at += part;
				continue;
			}
			n -= part;
			memcpy(op, trial, n * sizeof(*op));
		}
	}
out:
	free(trial);
	return n;
}

void pair_print(FILE *to, const struct pair_config *cfg, const struct pair_op *op, size_t n)
{
	static const char *const name[] = {
		"wrmsr", "rdmsr", "rdpmc", "cpuid", "run", "smm", "reset", "init",
		"migrate", "compare", "compare",
	};
	static const char *const bank[] = { "kernel", "user", "nested kernel", "nested user" };
	size_t i;

	fprintf(to, "%s, version %u, %u GP, %u fixed, capabilities %" PRIx64 "\n",
		cfg->model->name, cfg->version, cfg->n_gp, cfg->n_fixed, cfg->capabilities);
	for (i = 0; i < n; i++) {
		fprintf(to, "%4zu %s", i, name[op[i].kind]);
		switch (op[i].kind) {
		case PAIR_WRMSR:
			fprintf(to, " %" PRIx32 " %" PRIx64, op[i].reg, op[i].value);
			break;
		case PAIR_CPUID:
			fprintf(to, " %" PRIx32 ".%" PRIx64, op[i].reg, op[i].value);
			break;
		case PAIR_RDMSR:
			fprintf(to, " %" PRIx32, op[i].reg);
			break;
		case PAIR_RDPMC:
			fprintf(to, " %" PRIx32 " %s", op[i].reg, bank[op[i].bank]);
			break;
		case PAIR_RUN:
			fprintf(to, " %u %s kinds %016" PRIx64, op[i].count, bank[op[i].bank],
				op[i].value);
			break;
		}
		fprintf(to, "\n");
	}
}
