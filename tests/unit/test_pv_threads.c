// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Two vCPUs at once, each on a thread of its own, that open, enable and close the
 * same events. Under ThreadSanitizer: this, pv_rig.c, script.c and lib, compiled with
 * -fsanitize=thread.
 */
#include <pthread.h>

#include "unit.h"

#include "pv_rig.h"

#define STEPS	20000
#define IDS	6

static struct pv_rig *rig;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t kicked[PV_RIG_VCPUS];
static int32_t maps;
static uint64_t closed_elsewhere;

static unsigned int number_of(const void *ctx)
{
	return (unsigned int)((const struct pv_rig_vcpu *)ctx - rig->vcpu);
}

static void both_lock(void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&lock);
}

static void both_unlock(void *ctx)
{
	(void)ctx;
	pthread_mutex_unlock(&lock);
}

static void kick(void *ctx)
{
	vpmu_atomic_or(&kicked[number_of(ctx)], 1u);
}

static int read_ram(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	(void)ctx;
	memcpy(buf, rig->ram + gpa, size);
	return 0;
}

static int write_ram(void *ctx, uint64_t gpa, const void *buf, uint32_t size)
{
	(void)ctx;
	memcpy(rig->ram + gpa, buf, size);
	return 0;
}

static void *map_ram(void *ctx, uint64_t gpa, uint32_t size)
{
	(void)ctx;
	(void)size;
	__atomic_fetch_add(&maps, 1, __ATOMIC_RELAXED);
	return rig->ram + gpa;
}

static void unmap_ram(void *ctx, void *at, uint32_t size)
{
	(void)ctx;
	(void)at;
	(void)size;
	__atomic_fetch_add(&maps, -1, __ATOMIC_RELAXED);
}

static void interrupt(void *ctx, uint8_t vector)
{
	(void)ctx;
	(void)vector;
}

static void service(unsigned int vcpu)
{
	if (vpmu_atomic_take(&kicked[vcpu]))
		vpmu_pv_service(rig->vcpu[vcpu].pv);
}

/* The version 1 events are vCPU 0's to open, and anybody's after that. */
static void random_step(unsigned int vcpu, uint64_t *seed)
{
	uint32_t id = 1 + (uint32_t)random_below(seed, IDS);
	struct vpmu_pv_info info;

	switch (random_below(seed, 10)) {
	case 0:
		(void)pv_rig_do(rig, vcpu, pv_rig_open(id, 0, PV_INSTRUCTIONS));
		break;
	case 1:
		if (!pv_rig_do(rig, vcpu, pv_rig_op(VPMU_PV_CLOSE, id)))
			__atomic_fetch_add(&closed_elsewhere, 1, __ATOMIC_RELAXED);
		break;
	case 2:
	case 3:
		(void)pv_rig_do(rig, vcpu, pv_rig_enable(id, id, 20, 50));
		break;
	case 4:
		(void)pv_rig_do(rig, vcpu, pv_rig_op(VPMU_PV_DISABLE, id));
		break;
	case 5:
		(void)pv_rig_do(rig, vcpu, pv_rig_op(VPMU_PV_READ, id));
		break;
	case 6:
		if (vcpu == 0)
			(void)pv_rig_open_1(rig, 0, (int)id, PV_INSTRUCTIONS, 30, 0);
		else
			(void)pv_rig_do_1(rig, vcpu, VPMU_PV1_CLOSE, (int)id);
		break;
	case 7:
		(void)pv_rig_do_1(rig, vcpu, 3 + (unsigned int)random_below(seed, 3), (int)id);
		break;
	case 8:
		(void)vpmu_pv_slice(rig->vcpu[vcpu].pv);
		(void)vpmu_pv_event_info(rig->vcpu[vcpu].pv, id - 1, &info);
		break;
	default:
		if (!random_below(seed, 50))
			(void)pv_rig_call(rig, vcpu, VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0);
		break;
	}
}

static void *vcpu_thread(void *arg)
{
	unsigned int vcpu = number_of(arg), i;
	struct vpmu_pv_setup setup = { .size = sizeof(setup), .page = PV_RIG_SLOTS(vcpu) };
	uint64_t seed = 77 + vcpu, at = PV_RIG_SETUP + 64 * vcpu;

	memcpy(rig->ram + at, &setup, sizeof(setup));
	for (i = 0; i < STEPS; i++) {
		if (i % 64 == 0) /* RESET takes it away */
			(void)pv_rig_call(rig, vcpu, VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, at, 0);
		random_step(vcpu, &seed);
		pv_rig_run(rig, vcpu, random_below(&seed, 30));
		service(vcpu);
	}
	return NULL;
}

static void thread_hooks(struct vpmu_ops *ops)
{
	ops->lock = both_lock;
	ops->unlock = both_unlock;
	ops->kick = kick;
	ops->gpa_read = read_ram;
	ops->gpa_write = write_ram;
	ops->gpa_map = map_ram;
	ops->gpa_unmap = unmap_ram;
	ops->gpa_dirty = NULL;
	ops->inject = interrupt;
}

static void test_two_vcpus(void **state)
{
	struct vpmu_pv_config cfg = { .n_events = 20, .n_slots = 12, .overflows_max = 100 };
	pthread_t thread[PV_RIG_VCPUS];
	const char *bad;
	unsigned int i;

	(void)state;
	pv_rig_hooks = thread_hooks;
	rig = pv_rig_new(4, &cfg);
	pv_rig_hooks = NULL;
	for (i = 0; i < PV_RIG_VCPUS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, vcpu_thread, &rig->vcpu[i]), 0);
	for (i = 0; i < PV_RIG_VCPUS; i++)
		pthread_join(thread[i], NULL);
	assert_true(closed_elsewhere > 100);
	bad = pv_rig_free(rig);
	if (bad)
		print_message("%s\n", bad);
	assert_null(bad);
	assert_int_equal(maps, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_vcpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
