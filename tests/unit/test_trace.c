// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The ring of trace records, and what the front door writes to a trace. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "fake.h"

static void test_ring(void **state)
{
	struct vpmu_trace_record record[4], r = { 0 };
	struct vpmu_trace_ring ring;
	uint64_t i;

	(void)state;
	assert_int_equal(vpmu_trace_init(&ring, record, 0), -VPMU_EINVAL);
	assert_int_equal(vpmu_trace_init(&ring, record, 3), -VPMU_EINVAL);
	assert_int_equal(vpmu_trace_init(&ring, NULL, 4), -VPMU_EINVAL);
	assert_int_equal(vpmu_trace_init(&ring, record, 4), 0);
	r.a = 99;
	assert_false(vpmu_trace_get(&ring, &r));
	assert_int_equal(r.a, 99);
	ring.head = ring.tail = UINT32_MAX - 1; /* they wrap */
	for (i = 0; i < 4; i++) {
		r.a = i;
		assert_true(vpmu_trace_put(&ring, &r));
	}
	r.a = 7;
	assert_false(vpmu_trace_put(&ring, &r));
	assert_false(vpmu_trace_put(&ring, &r));
	assert_int_equal(ring.dropped, 2);
	for (i = 0; i < 100; i++) {
		assert_true(vpmu_trace_get(&ring, &r));
		assert_int_equal(r.a, i);
		r.a = i + 4;
		assert_true(vpmu_trace_put(&ring, &r));
	}
	assert_int_equal(ring.dropped, 2);
}

#define CROSSING 200000

static void *reader(void *arg)
{
	struct vpmu_trace_record r;
	uint64_t sum = 0, last = 0;

	while (last < CROSSING) {
		if (!vpmu_trace_get(arg, &r)) {
			sched_yield();
			continue;
		}
		if (r.a != last + 1 || r.b != ~r.a)
			return NULL;
		last = r.a;
		sum++;
	}
	return (void *)(uintptr_t)sum;
}

/* Two threads: what comes out is whole and in order. */
static void test_threads(void **state)
{
	struct vpmu_trace_record record[64], r = { 0 };
	struct vpmu_trace_ring ring;
	pthread_t thread;
	void *sum;

	(void)state;
	assert_int_equal(vpmu_trace_init(&ring, record, 64), 0);
	assert_int_equal(pthread_create(&thread, NULL, reader, &ring), 0);
	while (r.a < CROSSING) {
		r.a++;
		r.b = ~r.a;
		while (!vpmu_trace_put(&ring, &r))
			sched_yield();
	}
	pthread_join(thread, &sum);
	assert_int_equal((uintptr_t)sum, CROSSING);
}

static void expect(const struct fake *f, unsigned int i, unsigned int type,
		   unsigned int pmc, unsigned int what, uint64_t a, uint64_t b)
{
	const struct vpmu_trace_record *r = &f->trace[i];

	assert_true(i < f->n_trace);
	if (r->type != type || r->pmc != pmc || r->what != what || r->a != a || r->b != b ||
	    r->time || r->cpu)
		fail_msg("record %u: type %u pmc %u what %u a %llx b %llx", i, r->type, r->pmc,
			 r->what, (unsigned long long)r->a, (unsigned long long)r->b);
}

/* Accesses that were served are traced, and only these. */
static void test_exits(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);
	struct vpmu_arch_config cfg;
	uint64_t value;

	(void)state;
	fake_wr(f, PMC, 5); /* not noted yet */
	fake_trace(f);
	fake_wr(f, A_PMC + 1, 0x123456789a);
	fake_rd(f, PMC);
	assert_int_equal(vpmu_arch_rdpmc(f->v, 1, false, &value), VPMU_HANDLED);
	assert_int_equal(vpmu_arch_rdpmc(f->v, 0x40000001, false, &value), VPMU_HANDLED);
	assert_int_equal(vpmu_arch_rdmsr(f->v, 0x10, &value), VPMU_NOT_MINE);
	assert_int_equal(vpmu_arch_wrmsr(f->v, 0x10, 0), VPMU_NOT_MINE);
	assert_int_equal(vpmu_arch_rdmsr(f->v, 0x600, &value), VPMU_FAULT);
	assert_int_equal(vpmu_arch_wrmsr(f->v, GLOBAL, BIT(60)), VPMU_FAULT);
	assert_int_equal(vpmu_arch_wrmsr(f->v, STATUS, 0), VPMU_FAULT);
	assert_int_equal(vpmu_arch_rdpmc(f->v, 9, false, &value), VPMU_FAULT);
	assert_int_equal(f->n_trace, 4);
	expect(f, 0, VPMU_TRACE_EXIT, 0, VPMU_TRACE_WRMSR, A_PMC + 1, 0x123456789a);
	expect(f, 1, VPMU_TRACE_EXIT, 0, VPMU_TRACE_RDMSR, PMC, 5);
	expect(f, 2, VPMU_TRACE_EXIT, 0, VPMU_TRACE_RDPMC, 1, 0x123456789a);
	expect(f, 3, VPMU_TRACE_EXIT, 0, VPMU_TRACE_RDPMC, 0x40000001, 0);
	/* Only the kinds that are wanted. */
	f->ops.traced = BIT(VPMU_TRACE_LOST);
	fake_config(f, &cfg);
	assert_int_equal(vpmu_arch_init(f->v, &cfg, NULL), 0);
	fake_rd(f, PMC);
	assert_int_equal(f->n_trace, 4);
	f->ops.traced |= BIT(VPMU_TRACE_EXIT);
	assert_int_equal(vpmu_arch_init(f->v, &cfg, NULL), 0);
	fake_rd(f, PMC);
	assert_int_equal(f->n_trace, 5);
	f->n_trace = 4;
	/* Whatever stands beyond the size of an earlier embedder's ops is no hook. */
	f->ops.size = offsetof(struct vpmu_ops, trace);
	fake_config(f, &cfg);
	assert_int_equal(vpmu_arch_init(f->v, &cfg, NULL), 0);
	memset(&f->ops, 0x5a, sizeof(f->ops)); /* the PMU has its own copy */
	fake_rd(f, PMC);
	assert_int_equal(f->n_trace, 4);
	fake_free(f);
}

static void test_interrupts_and_losses(void **state)
{
	struct fake *f = fake_new_loss(5, 8, 3, true);

	(void)state;
	fake_wr(f, GLOBAL, 0x7);
	fake_wr(f, PMC, 0xffffffff);
	fake_trace(f);
	f->n_trace = 0;
	fake_wr(f, EVTSEL, INSTRUCTIONS | EN_ALL | INT);
	fake_tick(f, VPMU_BANK_USER, 10);
	expect(f, 0, VPMU_TRACE_EXIT, 0, VPMU_TRACE_WRMSR, EVTSEL, INSTRUCTIONS | EN_ALL | INT);
	expect(f, 1, VPMU_TRACE_PMI, 0, 0, BIT(63) | 1, 0);
	assert_int_equal(f->n_trace, 2);

	fake_lose(f, 0, VPMU_EVENT_ERROR);
	assert_int_equal(f->n_trace, 2); /* the first half only notes it */
	fake_service(f);
	fake_tick(f, VPMU_BANK_USER, 7);
	fake_lose(f, 0, VPMU_EVENT_ACTIVE);
	fake_service(f);
	fake_lose(f, 0, VPMU_EVENT_INACTIVE);
	fake_service(f);
	expect(f, 2, VPMU_TRACE_LOST, 0, VPMU_LOSS_LOST, 10, 10);
	expect(f, 3, VPMU_TRACE_FOUND, 0, VPMU_LOSS_NONE, 17, 10);
	expect(f, 4, VPMU_TRACE_LOST, 0, VPMU_LOSS_LOST, 17, 10);
	fake_tick(f, VPMU_BANK_USER, 3);
	fake_wr(f, GLOBAL, 0x0);
	expect(f, 5, VPMU_TRACE_FOUND, 0, VPMU_LOSS_NONE, 20, 10);
	expect(f, 6, VPMU_TRACE_EXIT, 0, VPMU_TRACE_WRMSR, GLOBAL, 0);

	/* a counter lost at a reset is not lost after it */
	fake_wr(f, GLOBAL, 0x2);
	fake_wr(f, EVTSEL + 1, LLC_MISS | EN_ALL);
	fake_tick(f, VPMU_BANK_USER, 4);
	expect(f, 8, VPMU_TRACE_LOST, 1, VPMU_LOSS_NOT_COUNTED, 0, 0);
	f->n_trace = 0;
	vpmu_arch_reset(f->v, false);
	expect(f, 0, VPMU_TRACE_FOUND, 1, VPMU_LOSS_NONE, 4, 0);
	assert_int_equal(f->n_trace, 1);
	fake_free(f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_interrupts_and_losses),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
