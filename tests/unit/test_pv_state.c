// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Saving and loading the paravirtual PMU: all of it continues identically. */
#include "unit.h"

#include <vpmu/state.h>

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
	assert_int_equal(pv_rig_do(r, 0, pv_rig_open(8, 0, PV_UNCOUNTED)), -VPMU_PV_ENOENT);
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
	memcpy(&bytes, im[0].state + 24, 4); /* length of the VM's section, which comes first */
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

/* Likewise, after the guest has changed the period: places of its own from then on. */
static void test_pending_period(void **state)
{
	struct image *im = test_calloc(1, sizeof(*im));
	struct pv_rig *a = fresh(&config), *b;
	struct vpmu_pv_op op;
	unsigned int once;

	(void)state;
	assert_int_equal(pv_rig_setup(a, 0, PV_RIG_SLOTS(0), 0), 0);
	for (once = 0; once < 2; once++) {
		must(a, 0, pv_rig_open(1, 0, PV_INSTRUCTIONS));
		must(a, 0, pv_rig_enable(1, 0, 10, 10));
		op = pv_rig_op(VPMU_PV_PERIOD, 1);
		op.u.enable.left = 3;
		op.u.enable.period = once ? 0 : 3;
		must(a, 0, op);
		a->vcpu[0].script.service = NULL;
		pv_rig_run(a, 0, 20);
		save(a, im);
		b = load(im);
		pv_rig_service(b, 0);
		assert_int_equal(b->vcpu[0].n_nmi, 1);
		assert_int_equal(pv_rig_slot(b, 0, 0)->count, 20);
		assert_int_equal(pv_rig_slot(b, 0, 0)->overflows, once ? 1 : 6);
		assert_true(once || pv_rig_slot(b, 0, 0)->flags & VPMU_PV_SLOT_THROTTLED);
		assert_false(vpmu_pv_slice(b->vcpu[0].pv) && once);
		pv_rig_run(b, 0, 1);
		assert_int_equal(b->vcpu[0].n_nmi, once ? 1 : 2);
		done(b);
		must(a, 0, pv_rig_op(VPMU_PV_CLOSE, 1));
		a->vcpu[0].script.service = a->vcpu[1].script.service;
	}
	done(a);
	test_free(im);
}

/* A host that is very late counts 64 of them, and goes on from there. */
static void test_late(void **state)
{
	struct vpmu_pv_config cfg = config;
	struct pv_rig *r;
	struct vpmu_pv_op op = pv_rig_op(VPMU_PV_PERIOD, 1);

	(void)state;
	cfg.overflows_max = 1000;
	r = fresh(&cfg);
	assert_int_equal(pv_rig_setup(r, 0, PV_RIG_SLOTS(0), 0), 0);
	must(r, 0, pv_rig_open(1, 0, PV_INSTRUCTIONS));
	must(r, 0, pv_rig_enable(1, 0, 10, 10));
	op.u.enable.left = 3;
	op.u.enable.period = 3;
	must(r, 0, op);
	r->vcpu[0].script.service = NULL;
	pv_rig_run(r, 0, 300);
	r->vcpu[0].script.service = r->vcpu[1].script.service;
	r->vcpu[0].script.kicked = true;
	pv_rig_service(r, 0);
	assert_int_equal(pv_rig_slot(r, 0, 0)->overflows, 64);
	assert_int_equal(pv_rig_slot(r, 0, 0)->count, 300);
	pv_rig_run(r, 0, 2);
	assert_int_equal(r->vcpu[0].n_nmi, 1);
	pv_rig_run(r, 0, 1);
	assert_int_equal(r->vcpu[0].n_nmi, 2);
	assert_int_equal(pv_rig_slot(r, 0, 0)->overflows, 65);
	done(r);
}

/* An event that cannot be counted at the destination is lost there, and says so. */
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

/* The offset of the first vCPU's fields. */
static size_t vcpu_section(const struct image *im)
{
	size_t at = 16;

	while (im->state[at] != VPMU_STATE_PV_VCPU) {
		at += 16 + (im->state[at + 8] + 256u * im->state[at + 9] + 7) / 8 * 8;
		assert_true(at < im->bytes);
	}
	return at + 16;
}

static void refused_with(struct image *im, size_t at, const void *with, size_t bytes, int ret)
{
	struct pv_rig *r = fresh(&config);
	uint8_t was[8];

	memcpy(was, im->state + at, bytes);
	assert_memory_not_equal(was, with, bytes);
	memcpy(im->state + at, with, bytes);
	if (vpmu_pv_vm_load(r->vm, im->state, im->bytes) != ret)
		fail_msg("at %zu: not refused with %d", at, ret);
	assert_non_null(vpmu_pv_vm_refused(r->vm)->what);
	memcpy(im->state + at, was, bytes);
	done(r);
}

static void refused(struct image *im, size_t at, const void *with, size_t bytes)
{
	refused_with(im, at, with, bytes, -VPMU_EINVAL);
}

/* Fields that are right by themselves, and wrong together or beyond what can be. */
static void test_fields(void **state)
{
	struct image *im = test_calloc(1, sizeof(*im));
	const uint64_t long_time = (uint64_t)1 << 63, far = VPMU_PV_LEFT_MAX + 1, none = 0;
	struct pv_rig *a = busy();
	const uint64_t at_end = PV_RIG_PAGE - 4;
	const uint32_t id = 5, one = 1, two = 2, odd = 77, rings = 6, whose = 24, all = UINT32_MAX,
		       pinned = VPMU_PV_EVENT_PINNED, version_1 = 7;
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
	refused(im, EVENT(0) + 80, &far, 8);                /* an address, in version 2 */
	refused(im, EVENT(0) + 90, &odd, 1);
	refused(im, EVENT(7) + 90, &odd, 1);                /* bytes of a struct */
	refused(im, EVENT(7) + 32, &one, 4);                /* version 1 has no groups */
	refused(im, EVENT(7) + 80, &at_end, 8);             /* not within a page */
	refused(im, EVENT(0) + 10, &two, 1);                /* throttled */
	refused(im, EVENT(0) + 91, &odd, 1);                /* reserved */
	refused(im, EVENT(0) + 16, &odd, 4);                /* type */
	refused(im, EVENT(0) + 20, &rings, 4);
	refused(im, EVENT(0) + 20, &whose, 4);
	refused(im, EVENT(0) + 20, &all, 4);
	refused(im, EVENT(1) + 20, &pinned, 4);             /* a member */
	refused(im, EVENT(1) + 32, &two, 4);                /* a member of itself */
	refused(im, EVENT(1) + 32, &version_1, 4);          /* ... of version 1's */
	refused(im, EVENT(0) + 12, &all, 4);                /* a vCPU that cannot be */
	refused(im, EVENT(0) + 9, &odd, 1);                 /* a slot that cannot be */
	refused(im, EVENT(0) + 0, &all, 4);
	done(a);
	test_free(im);
}

/* The frame, the VM's own fields and those of a vCPU. */
static void test_frame(void **state)
{
	struct image *im = test_calloc(1, sizeof(*im));
	const uint64_t none = 0;
	const uint32_t one = 1, two = 2, low = 6, odd = 77, all = UINT32_MAX;
	struct pv_rig *a = busy();
	size_t at;

	(void)state;
	save(a, im);
	refused(im, 32 + 8, &all, 4);
	refused(im, 32 + 12, &all, 4);
	at = vcpu_section(im);
	refused(im, at, &odd, 4);                           /* number */
	refused(im, at + 4, &low, 4);                       /* vector */
	refused(im, at + 4, &all, 4);
	refused(im, at + 8, &odd, 4);                       /* its page */
	refused(im, at + 8, &none, 8);                      /* none, and events need it */
	refused(im, at + 16, &odd, 4);
	refused(im, at + 20, &odd, 4);
	refused(im, at + 24, &one, 4);                      /* an odd sequence */
	refused(im, at + 36, &one, 4);                      /* reserved */
	refused_with(im, at - 16 + 4, &odd, 2, -VPMU_ENOSYS); /* the section's version */
	refused_with(im, at - 16, &odd, 4, -VPMU_ENOSYS);   /* another section */
	refused_with(im, 4, &odd, 4, -VPMU_ENOSYS);
	refused(im, 4, &none, 4);
	refused(im, 8, &odd, 4);
	refused(im, 8, &all, 4);
	refused(im, 12, &all, 4);
	refused(im, 12, &two, 4);
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

/*
 * A selector of 12 bits, open and uncounted: AMD keeps it, and it is no selector of
 * Intel's.
 */
static void test_amd(void **state)
{
	struct image *im = test_malloc(sizeof(*im));
	struct vpmu_pv_config cfg = config;
	struct vpmu_pv_info info;
	struct vpmu_uncounted told;
	struct pv_rig *a, *b;

	(void)state;
	cfg.model = vpmu_model_find(VPMU_VENDOR_AMD, 25, 17);
	a = fresh(&cfg);
	must(a, 0, pv_rig_open(1, 0, 0x1000000c9));
	assert_int_equal(pv_rig_do(a, 0, pv_rig_open(2, 0, 0xf000000ff)), -VPMU_PV_ENOENT);
	save(a, im);
	b = fresh(&cfg);
	assert_int_equal(vpmu_pv_vm_load(b->vm, im->state, im->bytes), 0);
	assert_true(vpmu_pv_event_info(b->vcpu[0].pv, 0, &info));
	assert_int_equal(info.config, 0x1000000c9);
	assert_int_equal(info.loss, VPMU_LOSS_NONE);
	assert_true(vpmu_pv_uncounted(b->vcpu[0].pv, 0, &told));
	assert_int_equal(told.select, 0xf000000ff);
	done(b);
	b = fresh(&config);
	assert_int_equal(vpmu_pv_vm_load(b->vm, im->state, im->bytes), -VPMU_EINVAL);
	done(a);
	done(b);
	test_free(im);
}

struct saved {
	unsigned int line;
	struct vpmu_pv_config cfg;
	unsigned int n_gp;
	bool direct;
	size_t bytes;
	uint64_t hash; /* FNV-1a */
};

static uint64_t hash_of(const struct image *im)
{
	uint64_t hash = 0xcbf29ce484222325;
	size_t i;

	for (i = 0; i < im->bytes; i++)
		hash = (hash ^ im->state[i]) * 0x100000001b3;
	return hash;
}

static struct vpmu_pv_op random_open(uint32_t id, uint64_t *seed, bool branches)
{
	uint32_t flags = random_below(seed, 4) ? 0 : VPMU_PV_EVENT_PINNED;
	struct vpmu_pv_op op;

	if (branches && random_below(seed, 2))
		flags |= VPMU_PV_EVENT_BRANCHES;
	op = pv_rig_open(id, flags, random_below(seed, 2) ? PV_INSTRUCTIONS : PV_BRANCHES);
	if (id > 1 && !random_below(seed, 3))
		op.u.open.leader = id - 1;
	return op;
}

/* A guest of both versions, of which a configuration takes what it knows. */
static void random_step_of(struct pv_rig *r, uint64_t *seed, bool branches)
{
	unsigned int vcpu = (unsigned int)random_below(seed, 2);
	uint32_t id = 1 + (uint32_t)random_below(seed, 9);
	uint32_t slot = (uint32_t)random_below(seed, 8);

	switch (random_below(seed, 8)) {
	case 0:
		(void)pv_rig_do(r, vcpu, random_open(id, seed, branches));
		break;
	case 1:
		(void)pv_rig_open_1(r, vcpu, (int)id, PV_INSTRUCTIONS, slot * 9, 0);
		break;
	case 2:
		(void)pv_rig_do_1(r, vcpu, 1 + (unsigned int)random_below(seed, 5), (int)id);
		break;
	case 3:
		(void)pv_rig_do(r, vcpu, pv_rig_op(VPMU_PV_DISABLE, id));
		break;
	case 4:
		(void)pv_rig_do(r, vcpu, pv_rig_open(id, 0, PV_UNCOUNTED + (slot << 8)));
		break;
	case 5:
		(void)vpmu_pv_slice(r->vcpu[vcpu].pv);
		break;
	default:
		(void)pv_rig_do(r, vcpu, pv_rig_enable(id, slot, 1 + slot * 5,
						       random_below(seed, 90)));
		break;
	}
	if (branches)
		vpmu_script_branch(&r->vcpu[vcpu].script, VPMU_BRANCH_JMP, true, id, slot);
	pv_rig_run_branches(r, vcpu, random_below(seed, 40));
}

static struct pv_rig *lived(const struct saved *row)
{
	bool branches = row->cfg.features & VPMU_PV_HAS_BRANCHES;
	struct pv_rig *r = row->direct ? pv_rig_new_direct(row->n_gp, &row->cfg) :
					 pv_rig_new(row->n_gp, &row->cfg);
	uint64_t seed = 1;
	unsigned int i;

	(void)pv_rig_setup(r, 1, PV_RIG_SLOTS(1), row->cfg.features & VPMU_PV_HAS_VECTOR ? 77 : 0);
	if (branches)
		(void)pv_rig_setup_branches(r, 0);
	else
		(void)pv_rig_setup(r, 0, PV_RIG_SLOTS(0), 0);
	for (i = 0; i < 300; i++)
		random_step_of(r, &seed, branches);
	r->vcpu[0].script.service = NULL; /* an overflow may wait for its second half */
	for (; i < 320; i++)
		random_step_of(r, &seed, branches);
	return r;
}

#define GROUPS	VPMU_PV_HAS_GROUPS
#define VECTOR	VPMU_PV_HAS_VECTOR
#define RECORDS	VPMU_PV_HAS_BRANCHES

/* The saved bytes are a format (docs/STATE.md): the code that writes them may change, they not. */
static void test_bytes(void **state)
{
	static const struct saved rows[] = {
		{ __LINE__, { .abi = 3, .n_events = 24, .n_slots = 8, .features = GROUPS | VECTOR,
			      .overflows_max = 4, .alone = true },
		  4, false, 6256, 0xe7bd54582fc15d8a },
		{ __LINE__, { .abi = 3, .n_events = 24, .n_slots = 8, .features = GROUPS },
		  2, false, 2272, 0x4060e73170055037 },
		{ __LINE__, { .abi = 2, .n_slots = 8, .features = GROUPS | RECORDS, .alone = true },
		  3, false, 5376, 0x5fd572da32bc117b },
		{ __LINE__, { .abi = 3, .features = GROUPS | VECTOR | RECORDS },
		  3, false, 3952, 0xcedd45fb264e726d },
		{ __LINE__, { .abi = 1, .n_slots = 3, .alone = true },
		  4, false, 5088, 0x4c629fb042958baf },
		{ __LINE__, { .abi = 3, .n_events = 24, .n_slots = 8, .features = VECTOR,
			      .period_min = 20, .alone = true },
		  4, true, 6160, 0xa75a1022eeee1f1a },
	};
	struct image *im = test_calloc(1, sizeof(*im));
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++) {
		struct pv_rig *r = lived(&rows[i]);

		save(r, im);
		if (im->bytes != rows[i].bytes || hash_of(im) != rows[i].hash)
			fail_msg("line %u: %zu bytes, 0x%llx", rows[i].line, im->bytes,
				 (unsigned long long)hash_of(im));
		done(r);
	}
	test_free(im);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_on), cmocka_unit_test(test_pending),
		cmocka_unit_test(test_pending_period), cmocka_unit_test(test_late),
		cmocka_unit_test(test_elsewhere), cmocka_unit_test(test_fields),
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_malformed), cmocka_unit_test(test_amd),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
