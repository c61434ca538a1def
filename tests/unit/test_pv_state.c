// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The paravirtual PMU saved and loaded: what goes on does so identically. */
#include "unit.h"

#include "pv_rig.h"

#define STATE_MAX	8192

static struct vpmu_pv_config config = {
	.abi = VPMU_PV_ABI_1 | VPMU_PV_ABI_2, .n_events = 64, .n_slots = 8,
	.features = VPMU_PV_HAS_GROUPS | VPMU_PV_HAS_VECTOR, .overflows_max = 4, .alone = true,
};

struct image {
	uint8_t state[STATE_MAX];
	size_t bytes;
	uint8_t ram[PV_RIG_RAM];
};

static void done(struct pv_rig *r)
{
	const char *bad = pv_rig_free(r);

	if (bad)
		print_message("%s\n", bad);
	assert_null(bad);
}

static void must(struct pv_rig *r, unsigned int vcpu, struct vpmu_pv_op op)
{
	assert_int_equal(pv_rig_do(r, vcpu, op), 0);
}

static struct pv_rig *fresh(const struct vpmu_pv_config *cfg)
{
	struct pv_rig *r = pv_rig_new(4, cfg);

	assert_non_null(r);
	return r;
}

/*
 * A bit of everything: groups, both versions, throttled, lost, other vCPUs. What waits
 * for a counter does so in the order of ids, as it does after loading.
 */
static struct pv_rig *busy(void)
{
	struct pv_rig *r = fresh(&config);
	struct vpmu_pv_op op;
	uint32_t id;

	assert_int_equal(pv_rig_setup(r, 0, PV_RIG_SLOTS(0), 0), 0);
	assert_int_equal(pv_rig_setup(r, 1, PV_RIG_SLOTS(1), 77), 0);
	must(r, 0, pv_rig_open(1, 0, PV_INSTRUCTIONS));
	op = pv_rig_open(2, 0, PV_BRANCHES);
	op.u.open.leader = 1;
	must(r, 0, op);
	must(r, 0, pv_rig_open(4, 0, PV_INSTRUCTIONS));
	must(r, 0, pv_rig_open(9, 0, PV_INSTRUCTIONS));
	for (id = 10; id <= 12; id++)
		must(r, 0, pv_rig_open(id, VPMU_PV_EVENT_PINNED, PV_INSTRUCTIONS));
	assert_int_equal(pv_rig_do(r, 0, pv_rig_open(8, 0, PV_TOLD)), -VPMU_PV_ENOENT);
	assert_int_equal(pv_rig_open_1(r, 0, 5, PV_INSTRUCTIONS, 70, 0), 0);
	assert_int_equal(pv_rig_open_1(r, 0, 6, PV_BRANCHES, 0, 0), 0);
	must(r, 0, pv_rig_enable(9, 2, 1000, 10));
	pv_rig_run_branches(r, 0, 12);
	must(r, 0, pv_rig_op(VPMU_PV_DISABLE, 9));
	assert_true(vpmu_pv_slice(r->vcpu[0].pv));
	assert_false(vpmu_pv_slice(r->vcpu[0].pv));
	must(r, 0, pv_rig_enable(1, 7, 100, 60));
	must(r, 0, pv_rig_enable(2, 3, 0, 0));
	pv_rig_run_branches(r, 0, 33);
	for (id = 10; id <= 12; id++) /* the group waits from now on */
		must(r, 0, pv_rig_enable(id, id - 6, 0, 0));
	must(r, 1, pv_rig_enable(4, 1, 5, 6)); /* soon throttled */
	assert_int_equal(pv_rig_do_1(r, 1, VPMU_PV1_ENABLE, 6), 0);
	assert_int_equal(pv_rig_do_1(r, 1, VPMU_PV1_ENABLE, 5), 0);
	pv_rig_run_branches(r, 0, 12);
	pv_rig_run_branches(r, 1, 99);
	return r;
}

static void save(struct pv_rig *r, struct image *im)
{
	size_t need;

	assert_int_equal(vpmu_pv_vm_save(r->vm, NULL, 0, &need), 0);
	assert_true(need <= STATE_MAX);
	assert_int_equal(vpmu_pv_vm_save(r->vm, im->state, need - 1, &im->bytes), -VPMU_E2BIG);
	memset(im->state, 0xee, STATE_MAX);
	assert_int_equal(vpmu_pv_vm_save(r->vm, im->state, STATE_MAX, &im->bytes), 0);
	assert_int_equal(im->bytes, need);
	memcpy(im->ram, r->ram, PV_RIG_RAM);
}

static struct pv_rig *load(const struct image *im)
{
	struct pv_rig *r = fresh(&config);

	memcpy(r->ram, im->ram, PV_RIG_RAM);
	assert_int_equal(vpmu_pv_vm_load(r->vm, im->state, im->bytes), 0);
	assert_memory_equal(r->ram, im->ram, PV_RIG_RAM); /* the guest sees nothing of it */
	return r;
}

static void assert_same(struct pv_rig *a, struct pv_rig *b, uint32_t nmi, uint32_t irq)
{
	assert_memory_equal(a->ram, b->ram, PV_RIG_RAM);
	assert_int_equal(a->vcpu[0].n_nmi + a->vcpu[1].n_nmi - nmi,
			 b->vcpu[0].n_nmi + b->vcpu[1].n_nmi);
	assert_int_equal(a->vcpu[1].n_irq - irq, b->vcpu[1].n_irq);
}

/* Things that a guest does. */
static void step(struct pv_rig *r, unsigned int i)
{
	unsigned int vcpu = i % 2;

	switch (i % 9) {
	case 0:
		(void)pv_rig_do(r, vcpu, pv_rig_op(VPMU_PV_READ, 1 + i % 4));
		break;
	case 1:
		(void)pv_rig_do(r, vcpu, pv_rig_enable(9, 2, 10 + i, 7));
		break;
	case 2:
		(void)pv_rig_do(r, vcpu, pv_rig_op(VPMU_PV_DISABLE, 1 + i % 9));
		break;
	case 3:
		(void)pv_rig_do_1(r, vcpu, VPMU_PV1_READ, 5 + (int)(i / 9 % 2));
		break;
	case 4:
		vpmu_pv_slice(r->vcpu[vcpu].pv);
		break;
	case 5:
		(void)pv_rig_do_1(r, vcpu, VPMU_PV1_DISABLE, 5 + (int)(i / 9 % 2));
		break;
	case 6:
		(void)pv_rig_do_1(r, vcpu, VPMU_PV1_ENABLE, 5 + (int)(i / 9 % 2));
		break;
	case 7:
		(void)pv_rig_do(r, 0, pv_rig_enable(1, 7, 31, 17));
		break;
	default:
		(void)pv_rig_do(r, 0, pv_rig_enable(2, 3, 0, 0));
		break;
	}
	pv_rig_run_branches(r, vcpu, 3 + i % 40);
}

static void test_goes_on(void **state)
{
	struct image *im = test_calloc(2, sizeof(*im));
	struct pv_rig *a = busy(), *b;
	uint32_t nmi = a->vcpu[0].n_nmi + a->vcpu[1].n_nmi, irq = a->vcpu[1].n_irq;
	uint32_t bytes;
	unsigned int i;

	(void)state;
	assert_true(pv_rig_slot(a, 0, 7)->flags & VPMU_PV_SLOT_LOST);
	assert_true(pv_rig_slot(a, 1, 1)->flags & VPMU_PV_SLOT_THROTTLED);
	save(a, &im[0]);
	b = load(&im[0]);
	save(b, &im[1]);
	assert_int_equal(im[0].bytes, im[1].bytes);
	assert_memory_equal(im[0].state, im[1].state, im[0].bytes);
	for (i = 0; i < 500; i++) {
		step(a, i);
		step(b, i);
		assert_same(a, b, nmi, irq);
	}
	save(a, &im[0]);
	save(b, &im[1]);
	memcpy(&bytes, im[0].state + 24, 4); /* of the VM's section, which comes first */
	assert_true(bytes > 9 * 96);
	assert_memory_equal(im[0].state + 16, im[1].state + 16, 16 + bytes);
	done(a);
	done(b);
	test_free(im);
}

/* Overflows between the two halves. */
static void test_pending(void **state)
{
	struct image *im = test_calloc(1, sizeof(*im));
	struct pv_rig *a = fresh(&config), *b;

	(void)state;
	assert_int_equal(pv_rig_setup(a, 0, PV_RIG_SLOTS(0), 0), 0);
	must(a, 0, pv_rig_open(1, 0, PV_INSTRUCTIONS));
	assert_int_equal(pv_rig_open_1(a, 0, 2, PV_INSTRUCTIONS, 10, 0), 0);
	must(a, 0, pv_rig_enable(1, 0, 10, 10));
	assert_int_equal(pv_rig_do_1(a, 0, VPMU_PV1_ENABLE, 2), 0);
	a->vcpu[0].script.service = NULL;
	pv_rig_run(a, 0, 23);
	assert_int_equal(a->vcpu[0].n_nmi, 0);
	save(a, im);
	b = load(im);
	assert_true(b->vcpu[0].script.kicked);
	pv_rig_service(b, 0);
	assert_int_equal(b->vcpu[0].n_nmi, 1);
	assert_int_equal(pv_rig_page(b, 0)->overflowed[0], 1);
	assert_int_equal(pv_rig_slot(b, 0, 0)->overflows, 2);
	assert_int_equal(pv_rig_slot(b, 0, 0)->count, 23);
	assert_int_equal(pv_rig_event_1(b, 2)->overflows, 2);
	assert_int_equal(pv_rig_event_1(b, 2)->count, 23);
	pv_rig_run(b, 0, 7);
	assert_int_equal(b->vcpu[0].n_nmi, 2);
	assert_int_equal(pv_rig_slot(b, 0, 0)->overflows, 3);
	assert_int_equal(pv_rig_slot(b, 0, 0)->count, 30);
	done(a);
	done(b);
	test_free(im);
}

/* What nobody may count at the destination is lost there, and says so. */
static void test_elsewhere(void **state)
{
	static const uint64_t denied[] = { PV_INSTRUCTIONS };
	static const struct vpmu_filter filter = {
		.size = sizeof(filter), .action = VPMU_FILTER_DENY, .n_events = 1,
		.events = denied };
	const uint32_t lost = VPMU_PV_SLOT_ENABLED | VPMU_PV_SLOT_LOST |
			      VPMU_LOSS_FILTERED << VPMU_PV_SLOT_REASON_SHIFT;
	struct image *im = test_calloc(1, sizeof(*im));
	struct vpmu_pv_config cfg = config;
	struct pv_rig *a = busy(), *b;

	(void)state;
	save(a, im);
	cfg.filter = &filter;
	b = fresh(&cfg);
	memcpy(b->ram, im->ram, PV_RIG_RAM);
	assert_int_equal(vpmu_pv_vm_load(b->vm, im->state, im->bytes), 0);
	assert_int_equal(pv_rig_slot(b, 0, 4)->flags & 0xffff, lost);
	assert_true(pv_rig_page(b, 0)->changed[0] & 1u << 4);
	assert_int_equal(pv_rig_slot(b, 0, 7)->flags & 0xffff, lost);
	assert_true(pv_rig_slot(b, 0, 3)->flags & VPMU_PV_SLOT_LOST); /* with its leader */
	pv_rig_run(b, 0, 10);
	must(b, 0, pv_rig_op(VPMU_PV_READ, 10));
	assert_int_equal(pv_rig_slot(b, 0, 4)->count, 12);
	assert_int_equal(pv_rig_slot(b, 0, 4)->enabled, 22);
	assert_int_equal(pv_rig_slot(b, 0, 4)->running, 12);
	must(b, 0, pv_rig_enable(10, 4, 1, 1)); /* trying again does not help */
	pv_rig_run(b, 0, 10);
	assert_true(pv_rig_slot(b, 0, 4)->flags & VPMU_PV_SLOT_LOST);
	done(b);
	/* A smaller VM, or one without what is in use, is none to load it. */
	cfg = config;
	cfg.n_slots = 7;
	b = fresh(&cfg);
	assert_int_equal(vpmu_pv_vm_load(b->vm, im->state, im->bytes), -VPMU_EINVAL);
	done(b);
	cfg = config;
	cfg.abi = VPMU_PV_ABI_2;
	b = fresh(&cfg);
	assert_int_equal(vpmu_pv_vm_load(b->vm, im->state, im->bytes), -VPMU_EINVAL);
	done(b);
	cfg = config;
	cfg.features = VPMU_PV_HAS_GROUPS; /* vCPU 1 has a vector */
	b = fresh(&cfg);
	assert_int_equal(vpmu_pv_vm_load(b->vm, im->state, im->bytes), -VPMU_EINVAL);
	done(b);
	done(a);
	test_free(im);
}

#define EVENT(n)	(48 + (n) * 96u) /* number @n of a saved state's events */

static void refused(struct image *im, size_t at, const void *with, size_t bytes)
{
	struct pv_rig *r = fresh(&config);
	uint8_t was[8];

	memcpy(was, im->state + at, bytes);
	assert_memory_not_equal(was, with, bytes);
	memcpy(im->state + at, with, bytes);
	assert_int_equal(vpmu_pv_vm_load(r->vm, im->state, im->bytes), -VPMU_EINVAL);
	memcpy(im->state + at, was, bytes);
	done(r);
}

/* Fields that are right by themselves, and wrong together or beyond what can be. */
static void test_fields(void **state)
{
	struct image *im = test_calloc(1, sizeof(*im));
	const uint64_t long_time = (uint64_t)1 << 63, far = VPMU_PV_LEFT_MAX + 1, none = 0;
	struct pv_rig *a = busy();
	const uint32_t id = 5;
	uint8_t slot;

	(void)state;
	save(a, im);
	/* In order: 1 and its member 2, 4, 9, 10, 11, 12, then version 1's 6 and 5. */
	slot = im->state[EVENT(4) + 9];
	refused(im, EVENT(5) + 9, &slot, 1);                /* a slot twice */
	refused(im, EVENT(7) + 4, &id, 4);                  /* an id twice */
	refused(im, EVENT(2) + 4, &id, 4);                  /* another id than its place */
	refused(im, EVENT(0) + 48, &long_time, 8);          /* enabled */
	refused(im, EVENT(0) + 56, &long_time, 8);          /* running, more than that */
	refused(im, EVENT(0) + 64, &far, 8);                /* period */
	refused(im, EVENT(0) + 72, &far, 8);                /* left */
	refused(im, EVENT(0) + 72, &none, 8);               /* a period, and none is left */
	refused(im, EVENT(8) + 80, &far, 8);                /* no address of a struct */
	refused(im, EVENT(0) + 12, &none, 4);               /* a member without its leader */
	done(a);
	test_free(im);
}

/* Whatever is wrong with a state, loading it ends well. The provider's part is its own. */
static void test_malformed(void **state)
{
	struct image *im = test_calloc(3, sizeof(*im));
	struct pv_rig *a, *b;
	unsigned int refused = 0;
	uint64_t seed = 1;
	size_t i;
	int ret;

	(void)state;
	config.alone = false;
	a = busy();
	save(a, &im[0]);
	b = load(&im[0]);
	for (i = 0; i < im[0].bytes; i += 7)
		assert_true(vpmu_pv_vm_load(b->vm, im[0].state, i) < 0);
	save(b, &im[1]); /* and nothing has changed */
	assert_memory_equal(im[0].state, im[1].state, im[0].bytes);
	for (i = 0; i < im[0].bytes; i++) {
		uint8_t was = im[0].state[i];

		im[0].state[i] ^= (uint8_t)(1u << random_below(&seed, 8));
		ret = vpmu_pv_vm_load(b->vm, im[0].state, im[0].bytes);
		im[0].state[i] = was;
		refused += ret != 0;
		if (ret == -VPMU_EINVAL || ret == -VPMU_ENOSYS) {
			save(b, &im[2]);
			assert_int_equal(im[2].bytes, im[1].bytes);
			assert_memory_equal(im[2].state, im[1].state, im[1].bytes);
			continue;
		}
		pv_rig_run_branches(b, 0, 5);
		pv_rig_run_branches(b, 1, 5);
		assert_int_equal(vpmu_pv_vm_load(b->vm, im[0].state, im[0].bytes), 0);
		save(b, &im[1]);
	}
	assert_true(refused > 200);
	done(a);
	done(b);
	config.alone = true;
	test_free(im);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_on), cmocka_unit_test(test_pending),
		cmocka_unit_test(test_elsewhere), cmocka_unit_test(test_fields),
		cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
