// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The paravirtual PMU: branch records with overflows. */
#include "unit.h"

#include "pv_rig.h"

#define WRONG(field)	offsetof(struct vpmu_pv_op, field)
#define BRANCHES	VPMU_PV_EVENT_BRANCHES

static const struct vpmu_pv_config config = {
	.features = VPMU_PV_HAS_GROUPS | VPMU_PV_HAS_BRANCHES, .alone = true };
static struct pv_rig *rig;
static unsigned int turn;

static void start(void)
{
	rig = pv_rig_new(2, &config);
	assert_non_null(rig);
	assert_int_equal(pv_rig_setup_branches(rig, 0), 0);
	assert_int_equal(pv_rig_setup_branches(rig, 1), 0);
	turn = 0;
}

static void finish(void)
{
	const char *bad = pv_rig_free(rig);

	if (bad)
		print_message("%s\n", bad);
	assert_null(bad);
}

static void must(struct vpmu_pv_op op)
{
	assert_int_equal(pv_rig_do(rig, 0, op), 0);
}

static void fails(struct vpmu_pv_op op, int code, size_t wrong)
{
	assert_int_equal(pv_rig_batch(rig, 0, &op, 1), 1);
	assert_int_equal(op.result, -code);
	assert_int_equal(op.wrong, wrong);
}

static struct vpmu_pv_op opened(uint32_t id, uint32_t suppress)
{
	struct vpmu_pv_op op = pv_rig_open(id, BRANCHES, PV_BRANCHES);

	op.u.open.suppress = suppress;
	return op;
}

/* One branch, from 1000H * its number, which begins with 1. */
static void branch(enum vpmu_branch_type type, bool user)
{
	uint64_t at = 0x1000 * (uint64_t)++turn;

	vpmu_script_branch(&rig->vcpu[0].script, type, user, at, at + 1);
	vpmu_script_step(&rig->vcpu[0].script, user ? VPMU_BANK_USER : VPMU_BANK_KERNEL,
			 VPMU_SIGNAL_JMP);
}

static void jumps(unsigned int n)
{
	while (n--)
		branch(VPMU_BRANCH_JMP, true);
}

static const struct vpmu_pv_branches *told(void)
{
	const struct vpmu_pv_branches *b = pv_rig_branches(rig, 0);

	assert_int_equal(b->seq % 2, 0);
	return b;
}

/* The newest is branch number @newest; all are jumps, in order. */
static void read_jumps(unsigned int n, unsigned int newest, uint32_t flags)
{
	const struct vpmu_pv_branches *b = told();
	unsigned int i;

	assert_int_equal(b->n, n);
	assert_int_equal(b->flags, flags);
	for (i = 0; i < n; i++) {
		assert_int_equal(b->entry[i].from, 0x1000 * (uint64_t)(newest - i));
		assert_int_equal(b->entry[i].to, 0x1000 * (uint64_t)(newest - i) + 1);
		assert_int_equal(b->entry[i].info >> VPMU_PV_BRANCH_TYPE_SHIFT, 2);
	}
}

static void test_layout(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct vpmu_pv_setup_branches), 24);
	assert_int_equal(sizeof(struct vpmu_pv_branches), 64 + 32 * 24);
	assert_int_equal(offsetof(struct vpmu_pv_branches, flags), 8);
	assert_int_equal(offsetof(struct vpmu_pv_branches, entry), 64);
	assert_int_equal(WRONG(u.open.suppress), 44);
}

static void test_records(void **state)
{
	(void)state;
	start();
	must(opened(1, 0));
	assert_false(rig->vcpu[0].script.record);
	must(pv_rig_enable(1, 0, 5, 40));
	assert_true(rig->vcpu[0].script.record);
	jumps(4);
	assert_int_equal(told()->seq, 0);
	jumps(1);
	assert_int_equal(rig->vcpu[0].n_nmi, 1);
	read_jumps(5, 5, VPMU_PV_BRANCHES_FROZEN);
	jumps(3); /* the handler's */
	must(pv_rig_op(VPMU_PV_RESUME, 0));
	jumps(37);
	assert_int_equal(rig->vcpu[0].n_nmi, 2);
	read_jumps(32, 45, VPMU_PV_BRANCHES_FROZEN);
	/* The records were not read: they stay. */
	jumps(40);
	assert_int_equal(rig->vcpu[0].n_nmi, 3);
	read_jumps(32, 45, VPMU_PV_BRANCHES_FROZEN);
	must(pv_rig_op(VPMU_PV_DISABLE, 1));
	assert_false(rig->vcpu[0].script.record);
	/* An ENABLE begins with none. */
	must(pv_rig_enable(1, 0, 2, 0));
	jumps(2);
	read_jumps(2, 87, VPMU_PV_BRANCHES_FROZEN);
	finish();
}

/* A group of kinds of which the selected ones are recorded. */
static void test_filters(void **state)
{
	static const struct {
		uint32_t suppress;
		enum vpmu_branch_type type;
		bool user;
	} each[] = {
		{ VPMU_PV_SUPPRESS_COND, VPMU_BRANCH_JCC, true },
		{ VPMU_PV_SUPPRESS_CALL, VPMU_BRANCH_CALL, true },
		{ VPMU_PV_SUPPRESS_IND_CALL, VPMU_BRANCH_CALL_INDIRECT, true },
		{ VPMU_PV_SUPPRESS_RET, VPMU_BRANCH_RET, true },
		{ VPMU_PV_SUPPRESS_IND_JMP, VPMU_BRANCH_JMP_INDIRECT, true },
		{ VPMU_PV_SUPPRESS_JMP, VPMU_BRANCH_JMP, true },
		{ VPMU_PV_SUPPRESS_FAR, VPMU_BRANCH_FAR, true },
		{ VPMU_PV_SUPPRESS_KERNEL, VPMU_BRANCH_JMP, false },
	};
	unsigned int i, k, n;

	(void)state;
	for (i = 0; i < COUNT_OF(each); i++) {
		start();
		must(opened(1, each[i].suppress));
		must(pv_rig_enable(1, 0, COUNT_OF(each), 0));
		for (k = 0; k < COUNT_OF(each); k++)
			branch(each[k].type, each[k].user);
		for (k = COUNT_OF(each), n = 0; k-- > 0;) {
			if (each[i].user ? each[k].type == each[i].type : !each[k].user)
				continue;
			assert_int_equal(told()->entry[n].from, 0x1000 * (k + 1));
			n++;
		}
		assert_int_equal(told()->n, n);
		finish();
	}
}

static void test_call_stack(void **state)
{
	(void)state;
	start();
	must(opened(1, VPMU_PV_CALL_STACK | 0x1c5));
	must(pv_rig_enable(1, 0, 4, 2));
	branch(VPMU_BRANCH_CALL, true);
	branch(VPMU_BRANCH_CALL_INDIRECT, true);
	branch(VPMU_BRANCH_CALL, true);
	branch(VPMU_BRANCH_RET, true);
	assert_int_equal(told()->n, 2);
	assert_int_equal(told()->flags, 0); /* recording continues */
	assert_int_equal(told()->entry[0].from, 0x2000);
	assert_int_equal(told()->entry[0].info >> VPMU_PV_BRANCH_TYPE_SHIFT, 3);
	branch(VPMU_BRANCH_RET, true);
	branch(VPMU_BRANCH_JMP, true);
	assert_int_equal(told()->n, 1);
	assert_int_equal(told()->entry[0].from, 0x1000);
	finish();
}

/* Another event's filter keeps it away; so does a host's. */
static void test_shared(void **state)
{
	struct pv_rig *r;

	(void)state;
	start();
	r = rig;
	must(opened(1, 0));
	must(opened(2, 0));
	must(opened(3, VPMU_PV_SUPPRESS_KERNEL));
	must(pv_rig_enable(1, 0, 3, 0));
	must(pv_rig_enable(3, 1, 3, 0));
	assert_int_equal(pv_rig_slot(r, 0, 1)->flags & VPMU_PV_SLOT_LOST, VPMU_PV_SLOT_LOST);
	must(pv_rig_op(VPMU_PV_DISABLE, 3));
	must(pv_rig_enable(2, 1, 3, 0));
	assert_int_equal(pv_rig_slot(r, 0, 1)->flags & VPMU_PV_SLOT_LOST, 0);
	jumps(3);
	read_jumps(3, 3, VPMU_PV_BRANCHES_FROZEN);
	/* A lost event records nothing. */
	must(pv_rig_op(VPMU_PV_CLOSE, 2));
	must(pv_rig_op(VPMU_PV_DISABLE, 1));
	assert_int_equal(r->vcpu[0].script.lbr.on, 0);
	jumps(3);
	assert_int_equal(told()->seq, 2);
	finish();
}

static void test_errors(void **state)
{
	struct vpmu_pv_setup_branches s = { .setup = { .size = 24, .page = PV_RIG_SLOTS(0) } };
	struct vpmu_pv_op op = opened(1, 0x400);

	(void)state;
	start();
	fails(op, VPMU_PV_EINVAL, WRONG(u.open.suppress));
	op = pv_rig_open(1, 0, PV_BRANCHES);
	op.u.open.suppress = 1;
	fails(op, VPMU_PV_EINVAL, WRONG(u.open.suppress));
	s.branches = 0x10;
	memcpy(rig->ram + PV_RIG_SETUP, &s, sizeof(s));
	assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, 1, PV_RIG_SETUP, 0),
			 -VPMU_PV_EADDRNOTAVAIL);
	s.branches = PV_RIG_ROM;
	memcpy(rig->ram + PV_RIG_SETUP, &s, sizeof(s));
	assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, 1, PV_RIG_SETUP, 0),
			 -VPMU_PV_EADDRNOTAVAIL);
	assert_int_equal(rig->n_maps, 4); /* the old ones */
	memcpy(rig->ram + PV_RIG_RAM - 16, &s, 16);
	assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, 1, PV_RIG_RAM - 16, 0),
			 -VPMU_PV_EFAULT);
	/* Without a page there is nothing to be written. */
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_SLOTS(0), 0), 0);
	must(opened(1, 0));
	must(pv_rig_enable(1, 0, 2, 0));
	memset(rig->ram + PV_RIG_BRANCHES(0), 0xaa, 64);
	jumps(2);
	assert_int_equal(rig->ram[PV_RIG_BRANCHES(0)], 0xaa);
	finish();
}

/* Saved in the middle, and with records that the guest has not looked at. */
static void test_state(void **state)
{
	static uint8_t buf[16384], again[16384];
	struct pv_rig *from;
	size_t n, m, i;
	uint8_t *ram;

	(void)state;
	start();
	must(opened(1, VPMU_PV_SUPPRESS_KERNEL));
	must(pv_rig_enable(1, 0, 40, 40));
	jumps(39);
	from = rig;
	assert_int_equal(vpmu_pv_vm_save(from->vm, buf, sizeof(buf), &n), 0);
	ram = test_malloc(PV_RIG_RAM);
	memcpy(ram, from->ram, PV_RIG_RAM);
	start();
	turn = 39;
	memcpy(rig->ram, ram, PV_RIG_RAM);
	test_free(ram);
	assert_int_equal(vpmu_pv_vm_load(rig->vm, buf, n), 0);
	assert_int_equal(vpmu_pv_vm_save(rig->vm, again, sizeof(again), &m), 0);
	assert_int_equal(m, n);
	assert_memory_equal(buf, again, n);
	jumps(1);
	read_jumps(32, 40, VPMU_PV_BRANCHES_FROZEN);
	/* Frozen stays frozen. */
	assert_int_equal(vpmu_pv_vm_save(rig->vm, buf, sizeof(buf), &n), 0);
	assert_int_equal(vpmu_pv_vm_load(rig->vm, buf, n), 0);
	jumps(40);
	read_jumps(32, 40, VPMU_PV_BRANCHES_FROZEN);
	must(pv_rig_op(VPMU_PV_RESUME, 0));
	jumps(40);
	read_jumps(32, 120, VPMU_PV_BRANCHES_FROZEN);
	/* A truncated or overlong state is refused, and nothing changes. */
	for (i = 0; i < n; i += 8)
		assert_int_not_equal(vpmu_pv_vm_load(rig->vm, buf, i), 0);
	finish();
	rig = from;
	finish();
}

/* Fields of a vCPU's records that cannot have been saved. */
static void test_fields(void **state)
{
	static const struct vpmu_pv_config without = {
		.features = VPMU_PV_HAS_GROUPS, .alone = true };
	enum { TAIL = 16 + 32 * 24 }; /* address, seq, flags, 32 records */
	static const struct {
		unsigned int at, bytes;
		uint64_t value;
	} row[] = {
		{ 0, 8, 0 }, { 0, 8, PV_RIG_BRANCHES(0) + 8 }, { 8, 4, 1 }, { 12, 4, 4 },
		{ 12, 4, 2 }, { 12, 4, 0 }, { 32, 8, 1 }, { 32 + 24, 8, 1ull << 63 },
	};
	static uint8_t buf[16384];
	struct pv_rig *other;
	size_t n, at = 16, end;
	unsigned int i;
	uint32_t word;

	(void)state;
	start();
	must(opened(1, 0));
	must(pv_rig_enable(1, 0, 0, 0));
	jumps(9);
	assert_int_equal(vpmu_pv_vm_save(rig->vm, buf, sizeof(buf), &n), 0);
	memcpy(&word, buf + at + 8, 4); /* vCPU 0's section follows the VM's */
	at += 16 + (word + 7) / 8 * 8;
	memcpy(&word, buf + at + 8, 4);
	end = at + 16 + word;
	for (i = 0; i < COUNT_OF(row); i++) {
		uint8_t was[8], *field = buf + end - TAIL + row[i].at;

		memcpy(was, field, row[i].bytes);
		memcpy(field, &row[i].value, row[i].bytes);
		if (vpmu_pv_vm_load(rig->vm, buf, n) != -VPMU_EINVAL)
			fail_msg("row %u is not refused", i);
		memcpy(field, was, row[i].bytes);
	}
	other = pv_rig_new(2, &without);
	assert_int_equal(vpmu_pv_vm_load(other->vm, buf, n), -VPMU_EINVAL);
	assert_null(pv_rig_free(other));
	assert_int_equal(vpmu_pv_vm_load(rig->vm, buf, n), 0);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout), cmocka_unit_test(test_records),
		cmocka_unit_test(test_filters), cmocka_unit_test(test_call_stack),
		cmocka_unit_test(test_shared), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_state), cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
