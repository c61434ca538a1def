// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Saved states of released versions of the format stay loadable (docs/STATE.md): for each
 * file in tests/unit/golden, a PMU with the history of the file's, and one that loads the
 * file, continue identically.
 *
 *	test_golden --write FOLDER	writes the files again, for a new version
 */
#include "unit.h"

#include <vpmu/lbr.h>
#include <vpmu/loss.h>
#include <vpmu/msr.h>
#include <vpmu/result.h>

#include "pebs_rig.h"
#include "pv_rig.h"

#define STATE_MAX	16384

static const char *folder;

/* An architectural PMU, on the rig that has memory for PEBS. */

struct row {
	const char *file;
	uint8_t vendor;
	uint16_t family;
	uint16_t model;
	uint8_t version;
	uint64_t without; /* capabilities that the model has got since */
};

static const struct row rows[] = {
	{ "core2", VPMU_VENDOR_INTEL, 6, 15, 2, VPMU_CAP_PEBS | VPMU_CAP_LBR },
	{ "skylake", VPMU_VENDOR_INTEL, 6, 85, 4, VPMU_CAP_PEBS },
	{ "icelake", VPMU_VENDOR_INTEL, 6, 106, 5, 0 },
	{ "sapphirerapids", VPMU_VENDOR_INTEL, 6, 143, 5, 0 },
	{ "clearwater-forest", VPMU_VENDOR_INTEL, 6, 221, 6, VPMU_CAP_PEBS },
	{ "clearwater-forest-pebs", VPMU_VENDOR_INTEL, 6, 221, 6, 0 },
	{ "milan", VPMU_VENDOR_AMD, 25, 1, 1, 0 },
	{ "genoa", VPMU_VENDOR_AMD, 25, 17, 2, VPMU_CAP_AMD_LBR },
};

static struct pebs_rig *machine_new(const struct row *row)
{
	const struct vpmu_model *model = vpmu_model_find(row->vendor, row->family, row->model);
	static struct vpmu_model then[COUNT_OF(rows)];

	assert_non_null(model);
	then[row - rows] = *model;
	then[row - rows].capabilities &= ~row->without;
	return pebs_rig_new_model(&then[row - rows], row->version, 0x40000100);
}

/* A register that this PMU lacks, or a value that it does not take, changes nothing. */
static void use(struct pebs_rig *r)
{
	static const struct {
		uint32_t msr;
		uint64_t value;
	} write[] = {
		{ 0x600, RIG_LINEAR },           { 0x3f2, 2 },
		{ 0x3f1, 2 },                    { 0x186, 0x5300c0 },
		{ 0x187, 0x4100c0 },             { 0x188, 0x43ffff },
		{ 0x0c1, 0xfffffff0 },           { 0x0c2, 0xffffffe3 },
		{ 0x309, 0xfffffffffff0 },       { 0x38d, 0x0bb },
		{ 0x1c8, 1 },                    { 0x1d9, 0x5001 },
		{ 0x1d9, 0x1001 },               { 0x1d9, 1 },
		{ 0x14ce, 0x7f0003 },            { VPMU_MSR_LOSS_CTRL, 1 },
		{ 0x38f, 0x300000007 },          { 0x190c, 0xfffff000 },
		{ 0x190d, 0x831000510c4 },       { 0x1902, 0x100000003 },
		{ 0x1903, 0xfffffffa },          { 0x1986, 1 },
		{ 0xc0010200, 0x200005300c0 },   { 0xc0010203, 0xfffffffffff0 },
		{ 0xc0010202, 0x004300c2 },      { 0xc0010204, 0x1004101c9 },
		{ 0xc0010002, 0xf004300ff },     { 0xc0000301, 0x3f },
		{ 0x3f4, 0x2001 },               { 0x3f5, 0x80100000000 },
		{ 0x1903, 0xe0020338fffffffa },  { 0x190f, 0x8ffffff00 },
	};
	unsigned int i;

	pebs_rig_store(r, RIG_LINEAR + 32, RIG_LINEAR + RIG_PAGE);
	pebs_rig_store(r, RIG_LINEAR + 40, RIG_LINEAR + RIG_PAGE);
	pebs_rig_store(r, RIG_LINEAR + 48, RIG_LINEAR + 2 * RIG_PAGE);
	pebs_rig_store(r, RIG_LINEAR + 56, RIG_LINEAR + 2 * RIG_PAGE);
	for (i = 0; i < COUNT_OF(write); i++) {
		(void)vpmu_arch_wrmsr(r->v, write[i].msr, write[i].value);
		vpmu_script_service(&r->script);
	}
}

/* Registers that exist beside a model of the micro-architecture. */
static void use_modelled(struct pebs_rig *r)
{
	(void)vpmu_arch_wrmsr(r->v, VPMU_MSR_OFFCORE_RSP_0, 0x10001);
	(void)vpmu_arch_wrmsr(r->v, VPMU_MSR_PEBS_LD_LAT, 30);
	(void)vpmu_arch_wrmsr(r->v, 0x189, 0x4301b7);
	(void)vpmu_arch_wrmsr(r->v, 0x30c, 0x10000);
	(void)vpmu_arch_wrmsr(r->v, 0x38d, 0xb0bb);
	(void)vpmu_arch_wrmsr(r->v, VPMU_MSR_PERF_METRICS, 0x40404040);
	(void)vpmu_arch_wrmsr(r->v, 0x38f, 0x100070000000f);
	vpmu_script_service(&r->script);
}

static void go(struct pebs_rig *r, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		vpmu_script_step(&r->script, i % 2 ? VPMU_BANK_USER : VPMU_BANK_KERNEL,
				 i % 3 ? VPMU_SIGNAL_INSTRUCTIONS : VPMU_SIGNAL_JCC_TAKEN);
		if (r->script.record && i % 3 == 0)
			vpmu_script_branch(&r->script, VPMU_BRANCH_JMP, i % 2, 0x1000 + i,
					   0x2000 + i);
	}
}

/* Every register of one is the other's. */
static void same(struct pebs_rig *a, struct pebs_rig *b, const char *file)
{
	static const struct {
		uint32_t first, n;
	} range[] = {
		{ 0, 0x2000 }, { 0xc0000300, 8 }, { 0xc0010000, 0x400 },
		{ VPMU_MSR_LOSS, 0x140 },
	};
	unsigned int i, n = 0;
	uint32_t msr;

	for (i = 0; i < COUNT_OF(range); i++)
		for (msr = range[i].first; msr < range[i].first + range[i].n; msr++) {
			uint64_t x = 0, y = 0;
			enum vpmu_result ra = vpmu_arch_rdmsr(a->v, msr, &x);
			enum vpmu_result rb = vpmu_arch_rdmsr(b->v, msr, &y);

			if (ra != rb || x != y)
				fail_msg("%s: MSR 0x%x: %llx and, loaded, %llx", file, msr,
					 (unsigned long long)x, (unsigned long long)y);
			n += ra == VPMU_HANDLED;
		}
	assert_true(n > 8);
	assert_int_equal(a->n_pmi, b->n_pmi);
	assert_memory_equal(a->ram, b->ram, RIG_RAM);
}

static size_t state_of(const struct row *row, uint8_t *state)
{
	struct pebs_rig *r = machine_new(row);
	size_t n;

	use(r);
	go(r, 40);
	assert_int_equal(vpmu_arch_save(r->v, state, STATE_MAX, &n), 0);
	pebs_rig_free(r);
	return n;
}

/* Files */

static FILE *open_golden(const char *file, const char *mode)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.v1", folder, file);
	f = fopen(path, mode);
	if (!f)
		fail_msg("%s cannot be opened", path);
	return f;
}

static size_t golden(const char *file, uint8_t *state)
{
	FILE *f = open_golden(file, "rb");
	size_t n = fread(state, 1, STATE_MAX, f);

	fclose(f);
	assert_true(n > 0 && n < STATE_MAX);
	return n;
}

static void write_golden(const char *file, const uint8_t *state, size_t n)
{
	FILE *f = open_golden(file, "wb");

	assert_int_equal(fwrite(state, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void test_arch(void **unused)
{
	static uint8_t state[STATE_MAX];
	unsigned int i;
	size_t n;

	(void)unused;
	for (i = 0; i < COUNT_OF(rows); i++) {
		struct pebs_rig *lived = machine_new(&rows[i]), *loaded = machine_new(&rows[i]);

		use(lived);
		go(lived, 40);
		n = golden(rows[i].file, state);
		if (vpmu_arch_load(loaded->v, state, n))
			fail_msg("%s: %s", rows[i].file, vpmu_arch_refused(loaded->v)->what);
		/* Memory and interrupts are not the PMU's to carry. */
		memcpy(loaded->ram, lived->ram, RIG_RAM);
		loaded->n_pmi = lived->n_pmi;
		memcpy(&loaded->script.truth, &lived->script.truth, sizeof(lived->script.truth));
		same(lived, loaded, rows[i].file);
		go(lived, 100);
		go(loaded, 100);
		same(lived, loaded, rows[i].file);
		pebs_rig_free(lived);
		pebs_rig_free(loaded);
	}
}

/* The bytes that a PMU saves, and the loads of them with one bit of each byte turned. */
struct saved {
	uint32_t bytes, hash;                    /* hash: FNV-1a */
	uint32_t loaded, damaged, named, newer;  /* sum: bytes */
};

static uint32_t hash_of(const uint8_t *data, size_t n)
{
	uint32_t hash = 0x811c9dc5;

	while (n--)
		hash = (hash ^ *data++) * 0x01000193;
	return hash;
}

static void damage(struct pebs_rig *r, const uint8_t *state, size_t n, struct saved *s)
{
	static uint8_t changed[STATE_MAX];
	size_t i;

	for (i = 0; i < n; i++) {
		memcpy(changed, state, n);
		changed[i] ^= (uint8_t)(1u << (i * 5 + i / 8) % 8);
		switch (vpmu_arch_load(r->v, changed, n)) {
		case 0:
			s->loaded++;
			break;
		case -VPMU_ENOSYS:
			s->newer++;
			break;
		default:
			if (strstr(vpmu_arch_refused(r->v)->what, "damaged"))
				s->damaged++;
			else
				s->named++;
			break;
		}
	}
}

static void check_saved(struct pebs_rig *r, const char *file, const struct saved *expected)
{
	static uint8_t state[STATE_MAX];
	struct saved s = { 0 };
	size_t n;

	use(r);
	use_modelled(r);
	go(r, 40);
	assert_int_equal(vpmu_arch_save(r->v, state, STATE_MAX, &n), 0);
	s.bytes = (uint32_t)n;
	s.hash = hash_of(state, n);
	damage(r, state, n, &s);
	if (memcmp(&s, expected, sizeof(s)))
		fail_msg("%s: { %u, 0x%08x, %u, %u, %u, %u }", file, s.bytes, s.hash, s.loaded,
			 s.damaged, s.named, s.newer);
	pebs_rig_free(r);
}

/*
 * Saved bytes, and the answers to damaged ones, change only with the version of a section,
 * or with a new one. A failure prints the numbers that it found.
 */
static void test_bytes(void **unused)
{
	static const struct saved expected[COUNT_OF(rows)] = {
		{ 2392, 0x8c5fa84b, 1951, 389, 22, 30 },
		{ 3360, 0x18eca8c5, 2654, 637, 34, 35 },
		{ 3744, 0x5608449e, 2850, 816, 30, 48 },
		{ 3744, 0xf774bdb0, 2859, 807, 30, 48 },
		{ 3760, 0x8bdc8416, 2825, 859, 35, 41 },
		{ 3904, 0x47354609, 2856, 968, 33, 47 },
		{ 2496, 0x8262e092, 2014, 431, 21, 30 },
		{ 2496, 0x08322fe1, 2017, 429, 20, 30 },
	};
	static const struct {
		uint8_t model;
		struct saved expected;
	} modelled[] = {
		{ 106, { 3440, 0xe85a08cd, 2694, 667, 32, 47 } },
		{ 143, { 3456, 0xdf71562a, 2719, 663, 30, 44 } },
	};
	unsigned int i;

	(void)unused;
	for (i = 0; i < COUNT_OF(rows); i++)
		check_saved(machine_new(&rows[i]), rows[i].file, &expected[i]);
	for (i = 0; i < COUNT_OF(modelled); i++)
		check_saved(pebs_rig_new_uarch(modelled[i].model), "with a model",
			    &modelled[i].expected);
}

/* A missing feature is named. */
static void test_names(void **unused)
{
	static const struct {
		const char *file;
		uint64_t without; /* capabilities of an Icelake's */
		uint8_t version;
		uint32_t base;
		const char *what;
	} row[] = {
		{ "genoa", 0, 5, 0x40000100, "vendor" },
		{ "skylake", 0, 5, 0x40000100, "version of perfmon" },
		{ "sapphirerapids", 0, 5, 0x40000100, "branch records" },
		{ "icelake", VPMU_CAP_LBR, 5, 0x40000100, "branch records" },
		{ "icelake", VPMU_CAP_PEBS, 5, 0x40000100, "PEBS" },
		{ "icelake", VPMU_CAP_FULL_WIDTH, 5, 0x40000100, "full-width" },
		{ "icelake", 0, 5, 0, "tells the guest of losses" },
		{ "icelake", 0, 4, 0x40000100, "version of perfmon" },
	};
	static uint8_t state[STATE_MAX];
	struct vpmu_model model;
	unsigned int i;
	size_t n;

	(void)unused;
	for (i = 0; i < COUNT_OF(row); i++) {
		struct pebs_rig *r;
		const char *what;

		model = *vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
		model.capabilities &= ~row[i].without;
		r = pebs_rig_new_model(&model, row[i].version, row[i].base);
		n = golden(row[i].file, state);
		assert_int_equal(vpmu_arch_load(r->v, state, n), -VPMU_EINVAL);
		what = vpmu_arch_refused(r->v)->what;
		if (!strstr(what, row[i].what))
			fail_msg("row %u: %s, not %s", i, what, row[i].what);
		pebs_rig_free(r);
	}
}

/* The paravirtual PMU. */

static const struct vpmu_pv_config pv_config = {
	.abi = VPMU_PV_ABI_1 | VPMU_PV_ABI_2, .n_events = 16, .n_slots = 4,
	.features = VPMU_PV_HAS_GROUPS | VPMU_PV_HAS_VECTOR, .alone = true,
};

static struct pv_rig *pv_new(void)
{
	struct pv_rig *r = pv_rig_new(4, &pv_config);

	assert_non_null(r);
	assert_int_equal(pv_rig_setup(r, 0, PV_RIG_SLOTS(0), 77), 0);
	assert_int_equal(pv_rig_do(r, 0, pv_rig_open(1, 0, PV_INSTRUCTIONS)), 0);
	assert_int_equal(pv_rig_do(r, 0, pv_rig_open(2, 0, PV_BRANCHES)), 0);
	assert_int_equal(pv_rig_do(r, 0, pv_rig_enable(1, 0, 30, 50)), 0);
	assert_int_equal(pv_rig_do(r, 0, pv_rig_enable(2, 1, 0, 0)), 0);
	assert_true(pv_rig_open_1(r, 0, 5, PV_INSTRUCTIONS, 0, 0) >= 0);
	assert_int_equal(pv_rig_do_1(r, 0, VPMU_PV1_ENABLE, 5), 0);
	pv_rig_run_branches(r, 0, 37);
	return r;
}

static void test_pv(void **unused)
{
	static uint8_t state[STATE_MAX];
	struct pv_rig *lived = pv_new(), *loaded = pv_rig_new(4, &pv_config);
	size_t n = golden("pv", state);

	(void)unused;
	memcpy(loaded->ram, lived->ram, PV_RIG_RAM);
	if (vpmu_pv_vm_load(loaded->vm, state, n))
		fail_msg("pv: %s", vpmu_pv_vm_refused(loaded->vm)->what);
	pv_rig_run_branches(lived, 0, 200);
	pv_rig_run_branches(loaded, 0, 200);
	/* A serviced NMI and a read: memory of the guest is what it sees. */
	assert_int_equal(pv_rig_do(lived, 0, pv_rig_op(VPMU_PV_DISABLE, 1)), 0);
	assert_int_equal(pv_rig_do(loaded, 0, pv_rig_op(VPMU_PV_DISABLE, 1)), 0);
	assert_memory_equal(lived->ram, loaded->ram, PV_RIG_RAM);
	assert_null(pv_rig_free(lived));
	assert_null(pv_rig_free(loaded));
}

static void write_all(void **unused)
{
	static uint8_t state[STATE_MAX];
	struct pv_rig *r = pv_new();
	unsigned int i;
	size_t n;

	(void)unused;
	for (i = 0; i < COUNT_OF(rows); i++) {
		n = state_of(&rows[i], state);
		write_golden(rows[i].file, state, n);
	}
	assert_int_equal(vpmu_pv_vm_save(r->vm, state, sizeof(state), &n), 0);
	write_golden("pv", state, n);
	assert_null(pv_rig_free(r));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arch),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_pv),
	};
	const struct CMUnitTest writing[] = { cmocka_unit_test(write_all) };

	if (argc == 3 && !strcmp(argv[1], "--write")) {
		folder = argv[2];
		return cmocka_run_group_tests_name("golden", writing, NULL, NULL);
	}
	folder = getenv("VPMU_GOLDEN");
	if (!folder)
		folder = GOLDEN;
	return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
