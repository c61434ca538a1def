// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The paravirtual PMU of 2010: its text, and what docs/PV-ABI.md decides beside it. */
#include "unit.h"

#include "pv_rig.h"

static struct pv_rig *rig;

static void start(const struct vpmu_pv_config *cfg)
{
	rig = pv_rig_new(2, cfg);
	assert_non_null(rig);
}

static void finish(void)
{
	const char *bad = pv_rig_free(rig);

	if (bad)
		print_message("%s\n", bad);
	assert_null(bad);
}

static void must(unsigned int vcpu, unsigned int op, int id)
{
	assert_int_equal(pv_rig_do_1(rig, vcpu, op, id), 0);
}

static void test_layout(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct vpmu_pv1_attr), VPMU_PV1_ATTR_BYTES);
	assert_int_equal(offsetof(struct vpmu_pv1_attr, config), 8);
	assert_int_equal(offsetof(struct vpmu_pv1_attr, flags), 40);
	assert_int_equal(offsetof(struct vpmu_pv1_attr, bp_addr), 56);
	assert_int_equal(sizeof(struct vpmu_pv1_event), 16);
	assert_int_equal(offsetof(struct vpmu_pv1_event, overflows), 8);
	assert_int_equal(sizeof(struct vpmu_pv1_params), 24);
	assert_int_equal(offsetof(struct vpmu_pv1_params, id), 16);
}

static void test_count(void **state)
{
	(void)state;
	start(NULL);
	pv_rig_event_1(rig, 3)->count = 99;
	assert_int_equal(pv_rig_open_1(rig, 0, 3, PV_INSTRUCTIONS, 0, 0), 0);
	pv_rig_run(rig, 0, 50); /* disabled at first */
	must(0, VPMU_PV1_READ, 3);
	assert_int_equal(pv_rig_event_1(rig, 3)->count, 0);
	must(0, VPMU_PV1_ENABLE, 3);
	pv_rig_run(rig, 0, 100);
	must(0, VPMU_PV1_ENABLE, 3); /* no change */
	pv_rig_run(rig, 0, 1);
	assert_int_equal(pv_rig_event_1(rig, 3)->count, 0);
	must(0, VPMU_PV1_READ, 3);
	assert_int_equal(pv_rig_event_1(rig, 3)->count, 101);
	pv_rig_run(rig, 0, 9);
	must(0, VPMU_PV1_DISABLE, 3);
	assert_int_equal(pv_rig_event_1(rig, 3)->count, 110);
	pv_rig_run(rig, 0, 9);
	must(0, VPMU_PV1_DISABLE, 3);
	/* On another vCPU than the one that opened it. */
	must(1, VPMU_PV1_ENABLE, 3);
	pv_rig_run(rig, 1, 5);
	assert_int_equal(pv_rig_do_1(rig, 0, VPMU_PV1_ENABLE, 3), -VPMU_PV_EBUSY);
	assert_int_equal(pv_rig_do_1(rig, 0, VPMU_PV1_DISABLE, 3), -VPMU_PV_EBUSY);
	assert_int_equal(pv_rig_do_1(rig, 0, VPMU_PV1_READ, 3), -VPMU_PV_EBUSY);
	must(1, VPMU_PV1_DISABLE, 3);
	assert_int_equal(pv_rig_event_1(rig, 3)->count, 115);
	assert_int_equal(pv_rig_event_1(rig, 3)->overflows, 0);
	must(0, VPMU_PV1_CLOSE, 3);
	finish();
}

static void test_overflow(void **state)
{
	struct vpmu_pv1_event *ev;

	(void)state;
	start(NULL);
	ev = pv_rig_event_1(rig, 0);
	assert_int_equal(pv_rig_open_1(rig, 0, 0, PV_INSTRUCTIONS, 100, 0), 0);
	ev->overflows = -1; /* the host only ever adds */
	must(0, VPMU_PV1_ENABLE, 0);
	pv_rig_run(rig, 0, 99);
	assert_int_equal(rig->vcpu[0].n_nmi, 0);
	pv_rig_run(rig, 0, 1);
	assert_int_equal(rig->vcpu[0].n_nmi, 1);
	assert_int_equal(rig->vcpu[0].nmi_at, 100);
	assert_int_equal(ev->count, 100);
	assert_int_equal(ev->overflows, 0);
	pv_rig_run(rig, 0, 230);
	assert_int_equal(ev->overflows, 2);
	assert_int_equal(ev->count, 300);
	/* 70 are left, wherever it continues. */
	must(0, VPMU_PV1_DISABLE, 0);
	assert_int_equal(ev->count, 330);
	must(1, VPMU_PV1_ENABLE, 0);
	pv_rig_run(rig, 1, 69);
	assert_int_equal(rig->vcpu[1].n_nmi, 0);
	must(1, VPMU_PV1_ENABLE, 0);
	pv_rig_run(rig, 1, 1);
	assert_int_equal(rig->vcpu[1].n_nmi, 1);
	assert_int_equal(ev->count, 400);
	assert_int_equal(ev->overflows, 3);
	finish();
}

static void test_close(void **state)
{
	struct vpmu_pv1_event *ev;

	(void)state;
	start(NULL);
	ev = pv_rig_event_1(rig, 1);
	assert_int_equal(pv_rig_do_1(rig, 0, VPMU_PV1_CLOSE, 1), -VPMU_PV_ENOENT);
	assert_int_equal(pv_rig_open_1(rig, 0, 1, PV_INSTRUCTIONS, 10, 0), 0);
	assert_int_equal(pv_rig_open_1(rig, 0, 1, PV_INSTRUCTIONS, 10, 0), -VPMU_PV_EEXIST);
	must(0, VPMU_PV1_ENABLE, 1);
	pv_rig_run(rig, 0, 5);
	must(1, VPMU_PV1_CLOSE, 1); /* from elsewhere, enabled */
	assert_int_equal(rig->n_maps, 0);
	ev->count = 1234;
	ev->overflows = 7;
	pv_rig_run(rig, 0, 100);
	assert_int_equal(ev->count, 1234);
	assert_int_equal(ev->overflows, 7);
	assert_int_equal(rig->vcpu[0].n_nmi, 0);
	assert_int_equal(pv_rig_do_1(rig, 0, VPMU_PV1_CLOSE, 1), -VPMU_PV_ENOENT);
	assert_int_equal(pv_rig_do_1(rig, 0, VPMU_PV1_ENABLE, 1), -VPMU_PV_ENOENT);
	assert_int_equal(pv_rig_do_1(rig, 0, VPMU_PV1_DISABLE, 1), -VPMU_PV_ENOENT);
	assert_int_equal(pv_rig_do_1(rig, 0, VPMU_PV1_READ, 1), -VPMU_PV_ENOENT);
	assert_int_equal(pv_rig_do_1(rig, 0, 6, 1), -VPMU_PV_ENOSYS);
	assert_int_equal(pv_rig_do_1(rig, 0, 0, 1), -VPMU_PV_ENOSYS);
	/* Any int is an id, and version 2's are others. */
	assert_int_equal(pv_rig_open_1(rig, 0, -1, PV_INSTRUCTIONS, 10, 0), 0);
	assert_int_equal(pv_rig_open_1(rig, 0, 1, PV_INSTRUCTIONS, 10, 0), 0);
	assert_int_equal(pv_rig_do(rig, 0, pv_rig_open(1, 0, PV_INSTRUCTIONS)), 0);
	must(0, VPMU_PV1_CLOSE, -1);
	must(0, VPMU_PV1_CLOSE, 1);
	assert_int_equal(pv_rig_do(rig, 0, pv_rig_op(VPMU_PV_CLOSE, 1)), 0);
	finish();
}

/* An open whose structs are at these places. */
static int64_t open_at(uint64_t params, uint64_t attr, uint64_t event)
{
	struct vpmu_pv1_params p = { .attr = attr, .event = event, .id = 77 };
	struct vpmu_pv1_attr a = { .type = VPMU_PV_TYPE_RAW, .config = PV_INSTRUCTIONS };

	if (params <= PV_RIG_RAM - sizeof(p))
		memcpy(rig->ram + params, &p, sizeof(p));
	if (attr <= PV_RIG_RAM - sizeof(a))
		memcpy(rig->ram + attr, &a, sizeof(a));
	return pv_rig_call(rig, 0, VPMU_PV1_HYPERCALL, VPMU_PV1_OPEN, (uint32_t)params,
			   params >> 32);
}

static void test_addresses(void **state)
{
	const uint64_t p = PV_RIG_PARAMS, a = PV_RIG_ATTR, e = PV_RIG_EVENT(0);

	(void)state;
	start(NULL);
	assert_int_equal(open_at(p + 1, a, e), -VPMU_PV_EFAULT);
	assert_int_equal(open_at(PV_RIG_RAM - 16, a, e), -VPMU_PV_EFAULT);
	assert_int_equal(open_at(1ull << 32 | p, a, e), -VPMU_PV_EFAULT);
	assert_int_equal(open_at(0ull - 4, a, e), -VPMU_PV_EFAULT);
	assert_int_equal(open_at(p, a + 2, e), -VPMU_PV_ENXIO);
	assert_int_equal(open_at(p, PV_RIG_RAM - 64, e), -VPMU_PV_ENXIO);
	assert_int_equal(open_at(p, 0ull - 8, e), -VPMU_PV_ENXIO);
	assert_int_equal(open_at(p, a, e + 2), -VPMU_PV_EADDRNOTAVAIL);
	assert_int_equal(open_at(p, a, 4096 - 12), -VPMU_PV_EADDRNOTAVAIL); /* two pages */
	assert_int_equal(open_at(p, a, PV_RIG_ROM), -VPMU_PV_EADDRNOTAVAIL);
	assert_int_equal(open_at(p, a, PV_RIG_RAM), -VPMU_PV_EADDRNOTAVAIL);
	assert_int_equal(open_at(p, a, 0ull - 16), -VPMU_PV_EADDRNOTAVAIL);
	/* Params and attr are copied, and may be anywhere. */
	assert_int_equal(open_at(4096 - 8, 8192 - 8, 4096 - 16), 0);
	must(0, VPMU_PV1_CLOSE, 77);
	/* The text asks for 4. */
	assert_int_equal(open_at(p, a, e + 4), 0);
	must(0, VPMU_PV1_ENABLE, 77);
	pv_rig_run(rig, 0, 3);
	must(0, VPMU_PV1_DISABLE, 77);
	assert_int_equal(rig->ram[e + 4], 3);
	/* Two events in one place: the guest's own fault. */
	assert_int_equal(pv_rig_open_1(rig, 0, 0, PV_INSTRUCTIONS, 2, 0), 0);
	must(0, VPMU_PV1_ENABLE, 0);
	must(0, VPMU_PV1_ENABLE, 77);
	pv_rig_run(rig, 0, 10);
	finish();
}

static int64_t open_flags(uint64_t flags, uint64_t period, uint32_t type)
{
	struct vpmu_pv1_params p = { .attr = PV_RIG_ATTR, .event = PV_RIG_EVENT(0), .id = 5 };
	struct vpmu_pv1_attr a = { .type = type, .config = PV_INSTRUCTIONS, .flags = flags,
				   .sample_period = period };

	memcpy(rig->ram + PV_RIG_PARAMS, &p, sizeof(p));
	memcpy(rig->ram + PV_RIG_ATTR, &a, sizeof(a));
	return pv_rig_call(rig, 0, VPMU_PV1_HYPERCALL, VPMU_PV1_OPEN, PV_RIG_PARAMS, 0);
}

static void test_attributes(void **state)
{
	const uint64_t guests_own = 1 | 2 | 8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x7800 | 0x60000;

	(void)state;
	start(NULL);
	assert_int_equal(open_flags(VPMU_PV1_FLAG_FREQ, 1, 4), -VPMU_PV_EINVAL);
	assert_int_equal(open_flags(1ull << 21, 1, 4), -VPMU_PV_EINVAL);
	assert_int_equal(open_flags(1ull << 63, 1, 4), -VPMU_PV_EINVAL);
	assert_int_equal(open_flags(1ull << 15, 1, 4), -VPMU_PV_EOPNOTSUPP);
	assert_int_equal(open_flags(VPMU_PV1_FLAG_EXCLUDE_HOST, 1, 4), -VPMU_PV_EOPNOTSUPP);
	assert_int_equal(open_flags(0x30, 1, 4), -VPMU_PV_EINVAL); /* no ring */
	assert_int_equal(open_flags(0, VPMU_PV_LEFT_MAX + 1, 4), -VPMU_PV_EINVAL);
	assert_int_equal(open_flags(0, 0, 1), -VPMU_PV_EOPNOTSUPP);
	assert_int_equal(open_flags(0, 0, 2), -VPMU_PV_EOPNOTSUPP);
	assert_int_equal(open_flags(0, 0, 5), -VPMU_PV_EOPNOTSUPP);
	assert_int_equal(open_flags(0, 0, 0), -VPMU_PV_EINVAL); /* config c0H */
	assert_int_equal(pv_rig_open_1(rig, 0, 5, PV_UNCOUNTED, 0, 0), -VPMU_PV_ENOENT);
	assert_int_equal(pv_rig_open_1(rig, 0, 5, 0x4300c0, 0, 0), -VPMU_PV_EINVAL);
	assert_int_equal(open_flags(guests_own | VPMU_PV1_FLAG_EXCLUDE_KERNEL, 0, 4), 0);
	must(0, VPMU_PV1_ENABLE, 5);
	pv_rig_run(rig, 0, 4);
	vpmu_script_run(&rig->vcpu[0].script, VPMU_BANK_KERNEL, 5);
	must(0, VPMU_PV1_DISABLE, 5);
	assert_int_equal(pv_rig_event_1(rig, 0)->count, 4);
	finish();
}

/* A 32-bit guest: no holes, and 32 bits of each register. */
static void test_32_bits(void **state)
{
	const uint64_t config = PV_INSTRUCTIONS, period = 10, flags = VPMU_PV1_FLAG_EXCLUDE_KERNEL;
	const uint64_t attr_at = PV_RIG_ATTR, event_at = 4096 - 12; /* 12 bytes fit there */
	const int32_t id = -3;
	const uint32_t type = VPMU_PV_TYPE_RAW, sentinel = 0xabcdef01;
	struct vpmu_hypercall call = { .nr = 0xffffffff00000003ull };
	uint8_t *p = NULL;
	uint64_t count;
	int32_t overflows;

	(void)state;
	start(NULL);
	p = rig->ram + PV_RIG_PARAMS;
	memcpy(p, &attr_at, 8);
	memcpy(p + 8, &event_at, 8);
	memcpy(p + 16, &id, 4);
	p = rig->ram + PV_RIG_ATTR;
	memcpy(p, &type, 4);
	memcpy(p + 4, &config, 8);
	memcpy(p + 12, &period, 8);
	memset(p + 20, 0xff, 16); /* sample_type, read_format */
	memcpy(p + 36, &flags, 8);
	memset(p + 44, 0xff, 20); /* breakpoints, which are ignored */
	memcpy(rig->ram + 4096, &sentinel, 4);
	call.arg[0] = VPMU_PV1_OPEN | 1ull << 60;
	call.arg[1] = PV_RIG_PARAMS | 1ull << 61;
	assert_int_equal(vpmu_pv_hypercall(rig->vcpu[0].pv, &call), VPMU_HANDLED);
	assert_int_equal(call.result, 0);
	call.arg[0] = VPMU_PV1_ENABLE;
	call.arg[1] = (uint32_t)id;
	assert_int_equal(vpmu_pv_hypercall(rig->vcpu[0].pv, &call), VPMU_HANDLED);
	assert_int_equal(call.result, 0);
	vpmu_script_run(&rig->vcpu[0].script, VPMU_BANK_KERNEL, 100);
	pv_rig_run(rig, 0, 25);
	assert_int_equal(rig->vcpu[0].n_nmi, 2);
	memcpy(&count, rig->ram + event_at, 8);
	memcpy(&overflows, rig->ram + event_at + 8, 4);
	assert_int_equal(count, 20);
	assert_int_equal(overflows, 2);
	assert_memory_equal(rig->ram + 4096, &sentinel, 4);
	must(0, VPMU_PV1_CLOSE, id);
	finish();
}

static void test_limits(void **state)
{
	struct vpmu_pv_config cfg = { .n_events = 5, .n_slots = 3, .overflows_max = 2,
				      .period_min = 20 };
	int i;

	(void)state;
	start(&cfg);
	for (i = 0; i < 5; i++)
		assert_int_equal(pv_rig_open_1(rig, 0, i, PV_INSTRUCTIONS, i ? 0 : 10, 0), 0);
	assert_int_equal(pv_rig_open_1(rig, 0, 5, PV_INSTRUCTIONS, 0, 0), -VPMU_PV_ENOSPC);
	assert_int_equal(rig->n_maps, 5);
	for (i = 0; i < 3; i++)
		must(0, VPMU_PV1_ENABLE, i);
	assert_int_equal(pv_rig_do_1(rig, 0, VPMU_PV1_ENABLE, 3), -VPMU_PV_ENOSPC);
	/* The period is lengthened; after three overflows it stands still for a slice. */
	pv_rig_run(rig, 0, 1000);
	assert_int_equal(pv_rig_event_1(rig, 0)->overflows, 3);
	assert_int_equal(pv_rig_event_1(rig, 0)->count, 60);
	assert_true(vpmu_pv_slice(rig->vcpu[0].pv));
	pv_rig_run(rig, 0, 1000);
	assert_int_equal(pv_rig_event_1(rig, 0)->overflows, 6);
	must(0, VPMU_PV1_DISABLE, 2);
	must(0, VPMU_PV1_ENABLE, 3);
	finish();
}

/* The guest of version 1 is not notified of a lost counter: the query names the event. */
static void test_lost(void **state)
{
	struct vpmu_perf_attr attr = { .size = sizeof(attr), .cpu = -1 };
	struct vpmu_perf_event host[2];
	struct vpmu_uncounted told;
	int i;

	(void)state;
	start(NULL);
	attr.event.size = sizeof(attr.event);
	attr.event.banks = VPMU_BANKS_KERNEL | VPMU_BANKS_USER;
	attr.event.fixed = -1;
	attr.event.slot = -1;
	attr.event.select = PV_BRANCHES;
	attr.event.pinned = true;
	memset(host, 0, sizeof(host));
	assert_int_equal(pv_rig_open_1(rig, 0, 0, PV_INSTRUCTIONS, 0, 0), 0);
	must(0, VPMU_PV1_ENABLE, 0);
	pv_rig_run(rig, 0, 100);
	must(0, VPMU_PV1_DISABLE, 0);
	assert_false(vpmu_pv_uncounted(rig->vcpu[0].pv, 0, &told));
	for (i = 0; i < 2; i++)
		assert_int_equal(vpmu_perf_open(&host[i], &attr, &rig->vcpu[0].cpu, NULL), 0);
	must(0, VPMU_PV1_ENABLE, 0);
	pv_rig_run(rig, 0, 100);
	must(0, VPMU_PV1_DISABLE, 0);
	assert_int_equal(pv_rig_event_1(rig, 0)->count, 100);
	must(0, VPMU_PV1_CLOSE, 0);
	assert_true(vpmu_pv_uncounted(rig->vcpu[0].pv, 0, &told));
	assert_int_equal(told.select, PV_INSTRUCTIONS);
	assert_int_equal(told.times, 1);
	assert_false(vpmu_pv_uncounted(rig->vcpu[0].pv, 1, &told));
	for (i = 0; i < 2; i++)
		vpmu_perf_close(&host[i]);
	finish();
}

static void test_privilege(void **state)
{
	struct vpmu_pv_config cfg = { .abi = VPMU_PV_ABI_1 };
	struct vpmu_hypercall call = { .nr = VPMU_PV1_HYPERCALL, .long_mode = true, .cpl = 1 };
	struct vpmu_cpuid regs = { 0, 0, 0, 0 };

	(void)state;
	start(&cfg);
	assert_int_equal(vpmu_pv_hypercall(rig->vcpu[0].pv, &call), VPMU_HANDLED);
	assert_int_equal(call.result, -VPMU_PV_EPERM);
	call.cpl = 0;
	call.nr = VPMU_PV_HYPERCALL;
	assert_int_equal(vpmu_pv_hypercall(rig->vcpu[0].pv, &call), VPMU_NOT_MINE);
	call.nr = 1;
	assert_int_equal(vpmu_pv_hypercall(rig->vcpu[0].pv, &call), VPMU_NOT_MINE);
	assert_false(vpmu_pv_cpuid(rig->vcpu[0].pv, 0x40000100, 0x40000100, &regs));
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout), cmocka_unit_test(test_count),
		cmocka_unit_test(test_overflow), cmocka_unit_test(test_close),
		cmocka_unit_test(test_addresses), cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_32_bits), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_lost), cmocka_unit_test(test_privilege),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
