// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The direct provider: a guest owns the counters of a silicon of its own. */
#include "unit.h"

#include <script.h>

#include <vpmu/direct.h>
#include <vpmu/msr.h>

#define USER		VPMU_BANK_USER
#define N_SLOTS		12
#define EVENT_MAX	128 /* bytes */
#define CMASK(n)	((uint64_t)(n) << VPMU_EVTSEL_CMASK_SHIFT)

struct rig {
	struct vpmu_script sc;
	struct vpmu_direct d;
	union {
		struct vpmu_event head;
		uint64_t room[EVENT_MAX / 8];
	} event[N_SLOTS + 1];
	unsigned int n[N_SLOTS + 1]; /* overflows of each event */
};

static struct vpmu_event *ev(struct rig *r, unsigned int i)
{
	return &r->event[i].head;
}

static void on_overflow(struct vpmu_event *event)
{
	struct rig *r = event->owner;

	r->n[event->index]++;
}

static void rig_init(struct rig *r, uint64_t supplied)
{
	struct vpmu_silicon_config cfg = {
		.size = sizeof(cfg),
		.model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106),
		.supplied = supplied,
		.ops = &r->sc.ops,
		.ctx = &r->sc,
	};
	unsigned int i;

	memset(r, 0, sizeof(*r));
	vpmu_script_init(&r->sc, supplied);
	assert_int_equal(vpmu_direct_init(&r->d, &cfg), 0);
	r->sc.silicon = &r->d.silicon;
	for (i = 0; i < COUNT_OF(r->event); i++) {
		memset(&r->event[i], 0xee, sizeof(r->event[i]));
		ev(r, i)->overflowed = on_overflow;
		ev(r, i)->owner = r;
		ev(r, i)->index = i;
	}
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	rig_init(r, VPMU_SCRIPT_SUPPLIED);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;
	const char *broken = r->sc.broken;

	if (broken)
		print_error("against ops.h: %s\n", broken);
	free(r);
	return broken ? -1 : 0;
}

static struct vpmu_event_attr attr(uint64_t select, int fixed, int slot)
{
	struct vpmu_event_attr a = {
		.size = sizeof(a),
		.banks = VPMU_BANKS_USER,
		.pinned = true,
		.fixed = (int8_t)fixed,
		.slot = (int8_t)slot,
		.select = select,
		.period = (uint64_t)1 << 48,
	};

	return a;
}

static int create(struct rig *r, unsigned int i, uint64_t select, int fixed, int slot)
{
	struct vpmu_event_attr a = attr(select, fixed, slot);

	return vpmu_direct_ops.create(&r->d.provider, ev(r, i), &a);
}

static void test_ops_are_complete(void **state)
{
	const struct vpmu_provider_ops *o = &vpmu_direct_ops;
	struct rig *r = *state;

	assert_int_equal(o->size, sizeof(*o));
	assert_true(o->event_size >= sizeof(struct vpmu_event) && o->event_size <= EVENT_MAX);
	assert_int_equal(o->event_size % 8, 0);
	assert_true(o->name && o->quality && o->create && o->release && o->enable);
	assert_true(o->disable && o->read && o->arm && o->state && o->save && o->load);
	assert_ptr_equal(r->d.provider.ops, o);
	assert_string_equal(r->d.provider.model->name, "icelake-server");
	assert_int_equal(r->d.provider.n_gp, 8);
	assert_int_equal(r->d.provider.n_fixed, 4);
}

static void test_init_fails(void **state)
{
	struct rig *r = *state;
	struct vpmu_silicon_config cfg = r->d.silicon.cfg;
	struct vpmu_direct d;

	cfg.ops = NULL;
	assert_int_equal(vpmu_direct_init(&d, &cfg), -VPMU_EINVAL);
	/* The caller's overflow and owner are not used. */
	cfg.ops = &r->sc.ops;
	cfg.overflow = NULL, cfg.owner = NULL;
	assert_int_equal(vpmu_direct_init(&d, &cfg), 0);
	assert_ptr_equal(d.silicon.cfg.owner, &d);
}

static void test_quality(void **state)
{
	static const struct {
		uint64_t select;
		int fixed;
		uint8_t quality;
	} row[] = {
		{ 0x00c0, -1, VPMU_QUALITY_EXACT },
		{ 0x003c, -1, VPMU_QUALITY_DEFINED },
		{ 0, 0, VPMU_QUALITY_EXACT },
		{ 0, 2, VPMU_QUALITY_DEFINED },
		{ 0, 3, VPMU_QUALITY_DEFINED },
		{ 0x412e, -1, VPMU_QUALITY_NONE },
		{ 0x00c0 | CMASK(2), -1, VPMU_QUALITY_DEFINED },
		{ 0x1234, -1, VPMU_QUALITY_NONE },
	};
	struct rig *r = *state;
	size_t i;

	for (i = 0; i < COUNT_OF(row); i++) {
		struct vpmu_event_attr a = attr(row[i].select, row[i].fixed, -1);
		int err = create(r, 0, row[i].select, row[i].fixed, -1);

		assert_int_equal(vpmu_direct_ops.quality(&r->d.provider, &a), row[i].quality);
		assert_int_equal(err, row[i].quality ? 0 : -VPMU_ENOENT);
		if (!err) {
			assert_int_equal(ev(r, 0)->quality, row[i].quality);
			vpmu_direct_ops.release(ev(r, 0));
		}
	}
	assert_true(r->sc.demand == 0);
}

static void test_slots(void **state)
{
	struct rig *r = *state;
	struct vpmu_event_attr a = attr(0xc0, -1, 0);
	unsigned int i;

	assert_int_equal(create(r, 0, 0xc0, -1, 5), 0);
	assert_ptr_equal(r->d.event[5], ev(r, 0));
	assert_int_equal(create(r, 1, 0xc0, -1, 5), -VPMU_EBUSY);
	assert_int_equal(create(r, 1, 0xc0, -1, N_SLOTS), -VPMU_EINVAL);
	a.size--;
	assert_int_equal(vpmu_direct_ops.create(&r->d.provider, ev(r, 1), &a), -VPMU_EINVAL);
	vpmu_direct_ops.release(ev(r, 0));
	assert_null(r->d.event[5]);

	/* Any slot: GP first, then the fixed one that counts it, then none. */
	for (i = 0; i < 9; i++)
		assert_int_equal(create(r, i, 0xc0, -1, -1), 0);
	assert_ptr_equal(r->d.event[7], ev(r, 7));
	assert_ptr_equal(r->d.event[8], ev(r, 8));
	assert_int_equal(create(r, 9, 0xc0, -1, -1), -VPMU_EBUSY);
	assert_int_equal(create(r, 9, 0x3c | CMASK(1), -1, -1), -VPMU_EBUSY);
	assert_int_equal(create(r, 9, 0, 1, -1), 0);
	assert_ptr_equal(r->d.event[9], ev(r, 9));
	assert_int_equal(create(r, 10, 0, 2, -1), 0);
	assert_ptr_equal(r->d.event[10], ev(r, 10));
	for (i = 0; i <= 10; i++)
		vpmu_direct_ops.release(ev(r, i));
	assert_true(r->sc.demand == 0);
}

static void test_count(void **state)
{
	const struct vpmu_provider_ops *o = &vpmu_direct_ops;
	struct rig *r = *state;

	assert_int_equal(create(r, 0, 0, 0, 8), 0);
	assert_int_equal(o->state(ev(r, 0)), VPMU_EVENT_OFF);
	vpmu_script_run(&r->sc, USER, 3);
	assert_int_equal(o->read(ev(r, 0)), 0);
	assert_int_equal(o->enable(ev(r, 0)), 0);
	assert_int_equal(o->enable(ev(r, 0)), 0);
	assert_int_equal(o->state(ev(r, 0)), VPMU_EVENT_ACTIVE);
	vpmu_script_run(&r->sc, USER, 4);
	vpmu_script_run(&r->sc, VPMU_BANK_KERNEL, 100);
	assert_int_equal(o->read(ev(r, 0)), 4);
	o->disable(ev(r, 0));
	o->disable(ev(r, 0));
	assert_int_equal(o->state(ev(r, 0)), VPMU_EVENT_OFF);
	vpmu_script_run(&r->sc, USER, 5);
	assert_int_equal(o->read(ev(r, 0)), 4);
	assert_int_equal(r->n[0], 0);
}

static void test_overflow(void **state)
{
	const struct vpmu_provider_ops *o = &vpmu_direct_ops;
	struct vpmu_event_attr a = attr(0xc4, -1, 2);
	struct rig *r = *state;

	a.period = 10;
	assert_int_equal(o->create(&r->d.provider, ev(r, 0), &a), 0);
	a.slot = 3, a.period = 0;
	assert_int_equal(o->create(&r->d.provider, ev(r, 1), &a), 0);
	o->begin(&r->d.provider);
	o->arm(ev(r, 0), 3);
	o->arm(ev(r, 1), 3);
	o->enable(ev(r, 0));
	o->enable(ev(r, 1));
	assert_int_equal(o->commit(&r->d.provider), 0);
	vpmu_script_retire(&r->sc, VPMU_SIGNAL_BRANCHES, USER, 2);
	assert_int_equal(r->n[0], 0);
	vpmu_script_retire(&r->sc, VPMU_SIGNAL_BRANCHES, USER, 1);
	assert_int_equal(r->n[0], 1);
	vpmu_script_retire(&r->sc, VPMU_SIGNAL_BRANCHES, USER, 9);
	assert_int_equal(r->n[0], 1);
	vpmu_script_retire(&r->sc, VPMU_SIGNAL_BRANCHES, USER, 1);
	assert_int_equal(r->n[0], 2);
	assert_int_equal(r->n[1], 0); /* period 0: no overflow at all */
	/* An owner without a first half. */
	ev(r, 0)->overflowed = NULL;
	vpmu_script_retire(&r->sc, VPMU_SIGNAL_BRANCHES, USER, 10);
	o->release(ev(r, 0));
	vpmu_script_retire(&r->sc, VPMU_SIGNAL_BRANCHES, USER, 100);
	assert_int_equal(r->n[0], 2);
}

/* A guest with counters of all sorts, driven alike on two rigs. */
static const struct {
	uint64_t select;
	int fixed, slot;
	uint64_t period;
} guest[] = {
	{ 0x00c0, -1, 0, 97 }, { 0x013c, -1, 1, 11 }, { 0x20c4, -1, 2, 13 },
	{ 0x11c4, -1, 3, 7 }, { 0, 0, 8, 101 }, { 0, 2, 10, 89 },
};

static void guest_start(struct rig *r, const uint64_t left[])
{
	unsigned int i;

	for (i = 0; i < COUNT_OF(guest); i++) {
		struct vpmu_event_attr a = attr(guest[i].select, guest[i].fixed, guest[i].slot);

		a.period = guest[i].period;
		assert_int_equal(vpmu_direct_ops.create(&r->d.provider, ev(r, i), &a), 0);
		vpmu_direct_ops.enable(ev(r, i));
		vpmu_direct_ops.arm(ev(r, i), left ? left[i] : guest[i].period);
	}
}

static void guest_step(struct rig *r, uint64_t random)
{
	enum vpmu_signal kind = VPMU_SIGNAL_INSTRUCTIONS;

	if (random & 1)
		kind = (enum vpmu_signal)(VPMU_SIGNAL_JCC_TAKEN + (random >> 8) % 8);
	vpmu_script_step(&r->sc, USER, kind);
}

/* Saved, loaded beside another engine's totals: from then on the same, to the step. */
static void test_save_load_goes_on(void **state)
{
	struct rig *r = *state, *other = calloc(1, sizeof(*other));
	uint64_t seed = 11, left[COUNT_OF(guest)], base[COUNT_OF(guest)];
	unsigned int i, before[COUNT_OF(guest)], step;
	uint8_t buf[4096], again[4096];
	size_t used, used_again;

	guest_start(r, NULL);
	for (step = 0; step < 1234; step++)
		guest_step(r, random_next(&seed));
	for (i = 0; i < COUNT_OF(guest); i++) {
		base[i] = vpmu_direct_ops.read(ev(r, i));
		left[i] = guest[i].period - base[i] % guest[i].period;
		before[i] = r->n[i];
	}
	assert_int_equal(vpmu_direct_ops.save(&r->d.provider, NULL, 0, &used), 0);
	assert_in_range(used, 1, sizeof(buf));
	assert_int_equal(vpmu_direct_ops.save(&r->d.provider, buf, used, &used_again), 0);
	assert_int_equal(used, used_again);

	rig_init(other, VPMU_SCRIPT_SUPPLIED);
	for (i = 0; i < VPMU_SIGNAL_UARCH; i++)
		other->sc.total.word[i][USER] = 12345 + i;
	assert_int_equal(vpmu_direct_ops.load(&other->d.provider, buf, used), 0);
	assert_int_equal(vpmu_direct_ops.save(&other->d.provider, again, used, &used_again), 0);
	assert_int_equal(used, used_again);
	assert_memory_equal(buf, again, used);

	guest_start(other, left);
	for (step = 0; step < 5000; step++) {
		uint64_t random = random_next(&seed);

		guest_step(r, random);
		guest_step(other, random);
		for (i = 0; i < COUNT_OF(guest); i++) {
			assert_int_equal(r->n[i], before[i] + other->n[i]);
			assert_true(vpmu_direct_ops.read(ev(r, i)) ==
				    base[i] + vpmu_direct_ops.read(ev(other, i)));
		}
	}
	assert_null(other->sc.broken);
	free(other);
}

static void expect_load(struct rig *r, const uint8_t *buf, size_t size, int err)
{
	struct vpmu_silicon before = r->d.silicon;

	assert_int_equal(vpmu_direct_ops.load(&r->d.provider, buf, size), err);
	if (err)
		assert_memory_equal(&r->d.silicon.offset, &before.offset, sizeof(before.offset));
}

static void test_load_malformed(void **state)
{
	const struct vpmu_provider_ops *o = &vpmu_direct_ops;
	struct rig *r = *state;
	uint8_t buf[4096] = { 0 }, *cut;
	size_t used, size;

	assert_int_equal(create(r, 0, 0xc0, -1, 0), 0);
	vpmu_direct_ops.enable(ev(r, 0));
	vpmu_script_run(&r->sc, USER, 42);
	assert_int_equal(o->save(&r->d.provider, buf, sizeof(buf), &used), 0);
	expect_load(r, buf, used, -VPMU_EBUSY);
	o->release(ev(r, 0));

	for (size = 0; size < used; size++) {
		size_t needed;

		cut = malloc(size + 1);
		memcpy(cut, buf, size);
		expect_load(r, cut, size, -VPMU_EINVAL);
		assert_int_equal(o->save(&r->d.provider, cut, size, &needed), -VPMU_E2BIG);
		assert_int_equal(needed, used);
		free(cut);
	}
	expect_load(r, buf, used + 1, -VPMU_EINVAL);
	buf[0] = VPMU_SIGNAL_COUNT + 1;
	expect_load(r, buf, used, -VPMU_ENOSYS);
	buf[0] = VPMU_SIGNAL_LBR_INSERTS, buf[4]++;
	expect_load(r, buf, used, -VPMU_ENOSYS);
	buf[4]--, buf[8 + 7] = 0x80;
	expect_load(r, buf, used, -VPMU_EINVAL);
	buf[8 + 7] = 0;
	expect_load(r, buf, used, 0);
}

/* A state that an earlier library saved, with fewer signals: the others continue at 0. */
static void test_load_fewer_signals(void **state)
{
	struct rig *r = *state;
	uint8_t buf[8 + 4 * 8] = { 1, 0, 0, 0, 4, 0, 0, 0, 77 };

	expect_load(r, buf, sizeof(buf), 0);
	assert_int_equal(vpmu_silicon_total(&r->d.silicon, VPMU_SIGNAL_INSTRUCTIONS, 0), 77);
	assert_int_equal(vpmu_silicon_total(&r->d.silicon, VPMU_SIGNAL_BRANCHES, 0), 0);
}

/* Signals that earlier libraries lack are saved once they have occurred. */
static void test_load_inserts(void **state)
{
	struct rig *r = *state;
	uint8_t buf[4096];
	size_t used, less;

	assert_int_equal(vpmu_direct_ops.save(&r->d.provider, buf, sizeof(buf), &less), 0);
	assert_int_equal(buf[0], VPMU_SIGNAL_LBR_INSERTS);
	vpmu_silicon_rebase(&r->d.silicon, VPMU_SIGNAL_LBR_INSERTS, USER, 7);
	assert_int_equal(vpmu_direct_ops.save(&r->d.provider, buf, sizeof(buf), &used), 0);
	assert_int_equal(used, less + 8 * VPMU_BANK_COUNT);
	vpmu_silicon_rebase(&r->d.silicon, VPMU_SIGNAL_LBR_INSERTS, USER, 5);
	expect_load(r, buf, used, 0);
	assert_int_equal(vpmu_silicon_total(&r->d.silicon, VPMU_SIGNAL_LBR_INSERTS, USER), 7);
}

/* An engine that cannot tell the kinds apart counts the rest all the same. */
static void test_poor_engine(void **state)
{
	struct rig *r = *state;

	rig_init(r, VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS));
	assert_int_equal(create(r, 0, 0xc0, -1, 0), 0);
	assert_int_equal(create(r, 1, 0x3c, -1, 1), 0);
	assert_int_equal(create(r, 2, 0xc4, -1, 2), -VPMU_ENOENT);
	assert_int_equal(create(r, 2, 0x20c4, -1, 2), -VPMU_ENOENT);
	vpmu_direct_ops.enable(ev(r, 1));
	vpmu_script_run(&r->sc, USER, 10);
	assert_int_equal(vpmu_direct_ops.read(ev(r, 1)), 10);
}

#define CASE(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_ops_are_complete),
		CASE(test_init_fails),
		CASE(test_quality),
		CASE(test_slots),
		CASE(test_count),
		CASE(test_overflow),
		CASE(test_save_load_goes_on),
		CASE(test_load_malformed),
		CASE(test_load_fewer_signals),
		CASE(test_load_inserts),
		CASE(test_poor_engine),
	};

	return cmocka_run_group_tests_name("direct", tests, NULL, NULL);
}
