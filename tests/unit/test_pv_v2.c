// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The paravirtual PMU, version 2, operation by operation. */
#include "unit.h"

#include "pv_rig.h"

#define WRONG(field)	offsetof(struct vpmu_pv_op, field)
#define RAW(id)		pv_rig_open(id, 0, PV_INSTRUCTIONS)

static struct pv_rig *rig;

/* With both vCPUs' pages. */
static struct pv_rig *start(unsigned int n_gp, const struct vpmu_pv_config *cfg)
{
	rig = pv_rig_new(n_gp, cfg);
	assert_non_null(rig);
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_SLOTS(0), 0), 0);
	assert_int_equal(pv_rig_setup(rig, 1, PV_RIG_SLOTS(1), 0), 0);
	return rig;
}

static void finish(void)
{
	const char *bad = pv_rig_free(rig);

	if (bad)
		print_message("%s\n", bad);
	assert_null(bad);
}

static void must(unsigned int vcpu, struct vpmu_pv_op op)
{
	assert_int_equal(pv_rig_do(rig, vcpu, op), 0);
}

/* Fails with @code, and says that @wrong was wrong. */
static void fails(unsigned int vcpu, struct vpmu_pv_op op, int code, size_t wrong)
{
	assert_int_equal(pv_rig_batch(rig, vcpu, &op, 1), 1);
	assert_int_equal(op.result, -code);
	assert_int_equal(op.wrong, wrong);
}

static const struct vpmu_pv_slot *slot(unsigned int vcpu, unsigned int s)
{
	const struct vpmu_pv_slot *sl = pv_rig_slot(rig, vcpu, s);

	assert_int_equal(sl->seq % 2, 0);
	assert_true(sl->running <= sl->enabled);
	return sl;
}

static void test_layout(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct vpmu_pv_setup), 16);
	assert_int_equal(sizeof(struct vpmu_pv_slot), 64);
	assert_int_equal(offsetof(struct vpmu_pv_slot, count), 8);
	assert_int_equal(offsetof(struct vpmu_pv_slot, running), 24);
	assert_int_equal(offsetof(struct vpmu_pv_slot, overflows), 32);
	assert_int_equal(offsetof(struct vpmu_pv_slot, flags), 36);
	assert_int_equal(sizeof(struct vpmu_pv_page), 4096);
	assert_int_equal(offsetof(struct vpmu_pv_page, overflowed), 8);
	assert_int_equal(offsetof(struct vpmu_pv_page, changed), 16);
	assert_int_equal(offsetof(struct vpmu_pv_page, slot), 64);
	assert_int_equal(sizeof(struct vpmu_pv_batch), 64);
	assert_int_equal(sizeof(struct vpmu_pv_op), 64);
	assert_int_equal(offsetof(struct vpmu_pv_op, result), 4);
	assert_int_equal(offsetof(struct vpmu_pv_op, slot), 12);
	assert_int_equal(offsetof(struct vpmu_pv_op, u), 16);
	assert_int_equal(WRONG(u.open.config), 24);
	assert_int_equal(WRONG(u.open.leader), 40);
	assert_int_equal(WRONG(u.enable.period), 24);
	assert_int_equal(sizeof(struct vpmu_pv_batch) +
			 VPMU_PV_BATCH_MAX * sizeof(struct vpmu_pv_op), 4096);
}

static int64_t version(uint64_t word)
{
	return pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_VERSION, word, 0);
}

static void test_discovery(void **state)
{
	struct vpmu_pv_config cfg = { .abi = VPMU_PV_ABI_2, .n_events = 100, .n_slots = 9,
				      .features = VPMU_PV_HAS_GROUPS };
	struct vpmu_cpuid regs = { 0, 0, 0, 0 };
	struct vpmu_pv *v = start(2, &cfg)->vcpu[0].pv;

	(void)state;
	assert_true(vpmu_pv_cpuid(v, 0x40000100, 0x40000100, &regs));
	assert_int_equal(regs.eax, 0x40000103);
	assert_memory_equal(&regs.ebx, "VPMUforGuest", 12);
	memset(&regs, 0, sizeof(regs));
	regs.eax = VPMU_CPUID_FEATURE_LOSS;
	assert_true(vpmu_pv_cpuid(v, 0x40000100, 0x40000101, &regs));
	assert_int_equal(regs.eax, 3);
	regs.eax = 0x1234;
	regs.ebx = 0x5678;
	assert_true(vpmu_pv_cpuid(v, 0x40000100, 0x40000102, &regs));
	assert_int_equal(regs.eax, 0x1234);
	assert_int_equal(regs.ebx, 0x5678);
	assert_int_equal(regs.ecx, 1000000000);
	assert_int_equal(regs.edx, 0);
	assert_true(vpmu_pv_cpuid(v, 0x40000100, 0x40000103, &regs));
	assert_int_equal(regs.eax, 2 | 9 << 8 | 2 << 16);
	assert_int_equal(regs.ebx, 1);
	assert_int_equal(regs.ecx, 100);
	assert_int_equal(regs.edx, 0x56504d55);
	assert_false(vpmu_pv_cpuid(v, 0x40000100, 0x40000104, &regs));
	assert_false(vpmu_pv_cpuid(v, 0x40000100, 0x40000000, &regs));

	assert_int_equal(version(0), 0x76504d32);
	assert_int_equal(version(1), 2 | 9 << 8 | 2 << 16);
	assert_int_equal(version(2), 1);
	assert_int_equal(version(3), 100);
	assert_int_equal(version(4), 1000000000);
	assert_int_equal(version(5), 0);
	assert_int_equal(version(6), -VPMU_PV_EINVAL);
	finish();
}

static void test_registers(void **state)
{
	struct vpmu_pv_config cfg = { .abi = VPMU_PV_ABI_2 };
	struct vpmu_hypercall call = { .nr = VPMU_PV_HYPERCALL, .cpl = 3 };
	struct vpmu_pv *v = start(2, &cfg)->vcpu[0].pv;

	(void)state;
	assert_int_equal(vpmu_pv_hypercall(v, &call), VPMU_HANDLED);
	assert_int_equal(call.result, -VPMU_PV_EPERM);
	call.cpl = 0;
	call.nr |= 1ull << 40; /* 32 bits count outside of 64-bit mode */
	call.arg[0] = 7ull << 32;
	assert_int_equal(vpmu_pv_hypercall(v, &call), VPMU_HANDLED);
	assert_int_equal(call.result, VPMU_PV_MAGIC);
	call.long_mode = true;
	assert_int_equal(vpmu_pv_hypercall(v, &call), VPMU_NOT_MINE);
	call.nr = VPMU_PV1_HYPERCALL; /* not offered */
	assert_int_equal(vpmu_pv_hypercall(v, &call), VPMU_NOT_MINE);
	call.nr = VPMU_PV_HYPERCALL;
	call.arg[0] = 4;
	assert_int_equal(vpmu_pv_hypercall(v, &call), VPMU_HANDLED);
	assert_int_equal(call.result, -VPMU_PV_ENOSYS);
	finish();
}

/* Rings with @call, put where the guest's batch is not; what is there afterwards. */
#define BELL	(PV_RIG_PAGE * 7)

static enum vpmu_result ring(uint64_t at, struct vpmu_pv_call *call)
{
	enum vpmu_result r;

	if (call)
		memcpy(rig->ram + at, call, sizeof(*call));
	r = vpmu_pv_doorbell(rig->vcpu[0].pv, at);
	vpmu_script_service(&rig->vcpu[0].script);
	if (call)
		memcpy(call, rig->ram + at, sizeof(*call));
	return r;
}

static void test_doorbell(void **state)
{
	struct vpmu_pv_config cfg = { .abi = VPMU_PV_ABI_2, .features = VPMU_PV_HAS_DOORBELL };
	struct vpmu_pv_call call = { .size = sizeof(call), .op = VPMU_PV_OP_VERSION };
	struct vpmu_hypercall by_register = { .nr = VPMU_PV_HYPERCALL, .long_mode = true };
	struct vpmu_pv_batch head = { .size = 64 + 2 * 64, .n_ops = 2 };
	struct vpmu_pv_op ops[2] = { RAW(1), pv_rig_enable(1, 3, 10, 0) };
	struct vpmu_cpuid regs = { 0, 0, 0, 0 };

	(void)state;
	assert_int_equal(sizeof(call), 32);
	assert_int_equal(offsetof(struct vpmu_pv_call, result), 16);
	rig = pv_rig_new(2, &cfg);
	assert_int_equal(ring(BELL, &call), VPMU_HANDLED);
	assert_int_equal(call.result, VPMU_PV_MAGIC);
	call.a1 = 2;
	assert_int_equal(ring(BELL + 32, &call), VPMU_HANDLED);
	assert_int_equal(call.result, VPMU_PV_HAS_DOORBELL);

	/* An error in the struct is answered; without a struct to write to, #GP. */
	call.zero = 1;
	assert_int_equal(ring(BELL, &call), VPMU_HANDLED);
	assert_int_equal(call.result, -VPMU_PV_EINVAL);
	call.zero = 0;
	call.size = 64;
	assert_int_equal(ring(BELL, &call), VPMU_HANDLED);
	assert_int_equal(call.result, -VPMU_PV_EINVAL);
	call.size = sizeof(call);
	assert_int_equal(ring(BELL + 16, NULL), VPMU_FAULT);
	assert_int_equal(ring(PV_RIG_ROM, NULL), VPMU_FAULT);
	assert_int_equal(ring(PV_RIG_RAM, NULL), VPMU_FAULT);
	assert_int_equal(ring(0ull - 32, NULL), VPMU_FAULT);

	/* Setup and a batch, which overflows at its instruction. */
	pv_rig_setup(rig, 0, PV_RIG_SLOTS(0), 0);
	call.op = VPMU_PV_OP_SETUP;
	call.a1 = PV_RIG_SETUP;
	assert_int_equal(ring(BELL, &call), VPMU_HANDLED);
	assert_int_equal(call.result, 0);
	memcpy(rig->ram + PV_RIG_BATCH(0), &head, sizeof(head));
	memcpy(rig->ram + PV_RIG_BATCH(0) + sizeof(head), ops, sizeof(ops));
	call.op = VPMU_PV_OP_BATCH;
	call.a1 = PV_RIG_BATCH(0);
	assert_int_equal(ring(BELL, &call), VPMU_HANDLED);
	assert_int_equal(call.result, 2);
	pv_rig_run(rig, 0, 9);
	assert_int_equal(rig->vcpu[0].n_nmi, 0);
	pv_rig_run(rig, 0, 1);
	assert_int_equal(rig->vcpu[0].n_nmi, 1);
	assert_int_equal(slot(0, 3)->count, 10);
	call.op = 77;
	assert_int_equal(ring(BELL, &call), VPMU_HANDLED);
	assert_int_equal(call.result, -VPMU_PV_ENOSYS);
	finish();

	cfg.no_hypercall = true;
	rig = pv_rig_new(2, &cfg);
	assert_int_equal(vpmu_pv_hypercall(rig->vcpu[0].pv, &by_register), VPMU_NOT_MINE);
	assert_true(vpmu_pv_cpuid(rig->vcpu[0].pv, 0x40000100, 0x40000103, &regs));
	assert_int_equal(regs.ebx, VPMU_PV_HAS_DOORBELL);
	assert_int_equal(regs.edx, 0);
	call.op = VPMU_PV_OP_RESET;
	assert_int_equal(ring(BELL, &call), VPMU_HANDLED);
	assert_int_equal(call.result, 0);
	finish();

	cfg.features = 0;
	assert_null(pv_rig_new(2, &cfg)); /* no way in at all */
	cfg.no_hypercall = false;
	rig = pv_rig_new(2, &cfg);
	assert_int_equal(ring(BELL, &call), VPMU_NOT_MINE);
	finish();
}

static void test_setup(void **state)
{
	(void)state;
	start(2, NULL);
	assert_int_equal(pv_rig_page(rig, 0)->version, 2);
	assert_int_equal(pv_rig_page(rig, 0)->n_slots, 63);
	assert_int_equal(pv_rig_setup(rig, 0, 0x1008, 0), -VPMU_PV_EADDRNOTAVAIL);
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_ROM, 0), -VPMU_PV_EADDRNOTAVAIL);
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_RAM, 0), -VPMU_PV_EADDRNOTAVAIL);
	assert_int_equal(pv_rig_setup(rig, 0, 0ull - 4096, 0), -VPMU_PV_EADDRNOTAVAIL);
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_SLOTS(0), 31), -VPMU_PV_ERANGE);
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_SLOTS(0), 256), -VPMU_PV_ERANGE);
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_SLOTS(0), 32), 0);
	assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP,
				     PV_RIG_SETUP + 4, 0), -VPMU_PV_EFAULT);
	assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP,
				     PV_RIG_RAM, 0), -VPMU_PV_EFAULT);
	assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP,
				     PV_RIG_SETUP, 1), -VPMU_PV_EFAULT);
	rig->ram[PV_RIG_SETUP] = 24;
	assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP,
				     PV_RIG_SETUP, 0), -VPMU_PV_EINVAL);
	/* Another page disables what is enabled; without one nothing can be. */
	must(0, RAW(1));
	must(0, pv_rig_enable(1, 0, 0, 0));
	assert_int_equal(pv_rig_setup(rig, 0, 0, 0), 0);
	assert_int_equal(slot(0, 0)->flags & VPMU_PV_SLOT_ENABLED, 0);
	fails(0, pv_rig_enable(1, 0, 0, 0), VPMU_PV_EINVAL, WRONG(slot));
	must(1, pv_rig_enable(1, 0, 0, 0));
	finish();
}

/* From enable to disable, and not one more. */
static void test_count(void **state)
{
	struct vpmu_pv_op ops[4];

	(void)state;
	start(2, NULL);
	ops[0] = RAW(1);
	ops[1] = pv_rig_open(2, VPMU_PV_EVENT_EXCLUDE_USER, PV_INSTRUCTIONS);
	ops[2] = pv_rig_enable(1, 5, 0, 0);
	ops[3] = pv_rig_enable(2, 62, 0, 0);
	pv_rig_run(rig, 0, 11);
	assert_int_equal(pv_rig_batch(rig, 0, ops, 4), 4);
	assert_int_equal(ops[0].result | ops[1].result | ops[2].result | ops[3].result, 0);
	assert_int_equal(slot(0, 5)->id, 1);
	assert_int_equal(slot(0, 5)->flags, VPMU_PV_SLOT_ENABLED);
	pv_rig_run(rig, 0, 1000);
	vpmu_script_run(&rig->vcpu[0].script, VPMU_BANK_KERNEL, 77);
	assert_int_equal(slot(0, 5)->count, 0); /* not written yet */
	must(0, pv_rig_op(VPMU_PV_READ, 1));
	assert_int_equal(slot(0, 5)->count, 1077);
	assert_int_equal(slot(0, 5)->enabled, 1077);
	assert_int_equal(slot(0, 5)->running, 1077);
	assert_int_equal(slot(0, 62)->count, 0);
	pv_rig_run(rig, 0, 3);
	ops[0] = pv_rig_op(VPMU_PV_DISABLE, 1);
	ops[1] = pv_rig_op(VPMU_PV_DISABLE, 2);
	assert_int_equal(pv_rig_batch(rig, 0, ops, 2), 2);
	assert_int_equal(slot(0, 5)->count, 1080);
	assert_int_equal(slot(0, 5)->flags, 0);
	assert_int_equal(slot(0, 62)->count, 77);
	assert_int_equal(slot(0, 62)->enabled, 1080);
	pv_rig_run(rig, 0, 500);
	/* It continues elsewhere; times are the event's. */
	must(1, pv_rig_enable(1, 0, 0, 0));
	pv_rig_run(rig, 1, 20);
	must(1, pv_rig_op(VPMU_PV_DISABLE, 1));
	assert_int_equal(slot(1, 0)->count, 1100);
	assert_int_equal(slot(1, 0)->enabled, 1100);
	/* And back, where its event is parked. */
	must(0, pv_rig_enable(1, 5, 0, 0));
	pv_rig_run(rig, 0, 7);
	must(0, pv_rig_op(VPMU_PV_DISABLE, 1));
	assert_int_equal(slot(0, 5)->count, 1107);
	assert_int_equal(slot(0, 5)->running, 1107);
	must(0, pv_rig_op(VPMU_PV_DISABLE, 1)); /* once more is nothing */
	assert_false(rig->vcpu[0].vcpu.hold); /* the clock is not needed */
	must(0, pv_rig_enable(1, 5, 0, 0));
	assert_true(rig->vcpu[0].vcpu.hold);
	finish();
}

static void test_overflow(void **state)
{
	(void)state;
	start(2, NULL);
	must(0, RAW(40));
	must(0, pv_rig_enable(40, 33, 10, 100));
	pv_rig_run(rig, 0, 9);
	assert_int_equal(rig->vcpu[0].n_nmi, 0);
	pv_rig_run(rig, 0, 1);
	assert_int_equal(rig->vcpu[0].n_nmi, 1);
	assert_int_equal(rig->vcpu[0].nmi_at, 10);
	assert_int_equal(slot(0, 33)->count, 10);
	assert_int_equal(slot(0, 33)->overflows, 1);
	assert_int_equal(pv_rig_page(rig, 0)->overflowed[0], 0);
	assert_int_equal(pv_rig_page(rig, 0)->overflowed[1], 2);
	pv_rig_run(rig, 0, 250);
	assert_int_equal(rig->vcpu[0].n_nmi, 3);
	assert_int_equal(rig->vcpu[0].nmi_at, 210);
	assert_int_equal(slot(0, 33)->overflows, 3);
	assert_int_equal(slot(0, 33)->count, 210);
	/* Another period from now on; the one that it was made with was 100. */
	{
		struct vpmu_pv_op op = pv_rig_enable(40, 0, 7, 30);

		op.op = VPMU_PV_PERIOD;
		must(0, op);
	}
	pv_rig_run(rig, 0, 6);
	assert_int_equal(rig->vcpu[0].n_nmi, 3);
	pv_rig_run(rig, 0, 1 + 30 + 30);
	assert_int_equal(rig->vcpu[0].n_nmi, 6);
	assert_int_equal(rig->vcpu[0].nmi_at, 260 + 67);
	/* Parked with a distance that the guest remembers; once only. */
	must(0, pv_rig_op(VPMU_PV_DISABLE, 40));
	pv_rig_run(rig, 0, 1000);
	must(0, pv_rig_enable(40, 33, 5, 0));
	pv_rig_run(rig, 0, 1000);
	assert_int_equal(rig->vcpu[0].n_nmi, 7);
	assert_int_equal(slot(0, 33)->overflows, 7);
	must(0, pv_rig_op(VPMU_PV_READ, 40));
	assert_int_equal(slot(0, 33)->count, 327 + 1000);
	/* And never, without a pause. */
	pv_rig_run(rig, 0, 10);
	must(0, pv_rig_enable(40, 33, 0, 0));
	pv_rig_run(rig, 0, 990);
	assert_int_equal(rig->vcpu[0].n_nmi, 7);
	must(0, pv_rig_op(VPMU_PV_READ, 40));
	assert_int_equal(slot(0, 33)->count, 327 + 2000);
	finish();
}

static void test_vector(void **state)
{
	(void)state;
	start(2, NULL);
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_SLOTS(0), 200), 0);
	must(0, RAW(1));
	must(0, pv_rig_enable(1, 0, 10, 10));
	pv_rig_run(rig, 0, 35);
	assert_int_equal(rig->vcpu[0].n_nmi, 0);
	assert_int_equal(rig->vcpu[0].n_irq, 3);
	assert_int_equal(rig->vcpu[0].vector, 200);
	finish();
}

static struct vpmu_trace_record traced[32];
static unsigned int n_traced;

/* Notes the first vCPU's records; other counters of silicon are ignored. */
static void note_trace(void *ctx, const struct vpmu_trace_record *r)
{
	if (ctx == &rig->vcpu[0] && r->type >= VPMU_TRACE_HYPERCALL && n_traced < 32)
		traced[n_traced++] = *r;
}

static void trace_hook(struct vpmu_ops *ops)
{
	ops->trace = note_trace;
}

static void assert_traced(unsigned int i, unsigned int type, unsigned int pmc,
			  unsigned int what, uint64_t a, uint64_t b)
{
	assert_true(i < n_traced);
	assert_int_equal(traced[i].type, type);
	assert_int_equal(traced[i].pmc, pmc);
	assert_int_equal(traced[i].what, what);
	assert_int_equal(traced[i].a, a);
	assert_int_equal(traced[i].b, b);
}

static void test_trace(void **state)
{
	struct vpmu_pv_config cfg = { .overflows_max = 2 };
	struct vpmu_pv_op ops[2];
	unsigned int i;

	(void)state;
	pv_rig_hooks = trace_hook;
	start(1, &cfg);
	pv_rig_hooks = NULL;
	n_traced = 0;
	ops[0] = RAW(7);
	ops[1] = pv_rig_enable(7, 3, 10, 10);
	assert_int_equal(pv_rig_batch(rig, 0, ops, 2), 2);
	assert_traced(0, VPMU_TRACE_PV_ENABLE, 3, VPMU_PV_ABI_2, 7, 0);
	assert_traced(1, VPMU_TRACE_HYPERCALL, 2, VPMU_PV_OP_BATCH, VPMU_PV_HYPERCALL, 2);
	pv_rig_run(rig, 0, 35);
	for (i = 0; i < 3; i++)
		assert_traced(2 + i, VPMU_TRACE_PV_OVERFLOW, 3, 1, 7, i + 1);
	assert_traced(5, VPMU_TRACE_PV_THROTTLE, 3, 1, 7, 0);
	must(0, pv_rig_op(VPMU_PV_DISABLE, 7));
	assert_traced(6, VPMU_TRACE_PV_DISABLE, 3, VPMU_PV_ABI_2, 7, 30);
	assert_traced(7, VPMU_TRACE_HYPERCALL, 1, VPMU_PV_OP_BATCH, VPMU_PV_HYPERCALL, 1);
	/* A second one finds no counter, and tells when it is disabled. */
	n_traced = 0;
	must(0, pv_rig_enable(7, 3, 0, 0));
	must(0, RAW(8));
	must(0, pv_rig_enable(8, 4, 0, 0));
	must(0, pv_rig_op(VPMU_PV_DISABLE, 8));
	assert_traced(0, VPMU_TRACE_PV_ENABLE, 3, VPMU_PV_ABI_2, 7, 30);
	assert_traced(3, VPMU_TRACE_PV_ENABLE, 4, VPMU_PV_ABI_2, 8, 0);
	assert_traced(4, VPMU_TRACE_PV_LOST, 4, VPMU_LOSS_LOST, 0, 0);
	assert_traced(6, VPMU_TRACE_PV_FOUND, 4, VPMU_LOSS_NONE, 0, 0);
	assert_traced(7, VPMU_TRACE_PV_DISABLE, 4, VPMU_PV_ABI_2, 8, 0);
	/* Closed by another vCPU: its owner hears of it later, and does not know whose. */
	n_traced = 0;
	must(1, pv_rig_op(VPMU_PV_CLOSE, 7));
	pv_rig_service(rig, 0);
	assert_traced(0, VPMU_TRACE_PV_DISABLE, 3, 0, 0, 0);
	assert_int_equal(pv_rig_call(rig, 0, VPMU_PV1_HYPERCALL, VPMU_PV1_CLOSE, 99, 0),
			 -VPMU_PV_ENOENT);
	assert_traced(1, VPMU_TRACE_HYPERCALL, 0, VPMU_PV1_CLOSE, VPMU_PV1_HYPERCALL,
		      (uint64_t)-VPMU_PV_ENOENT);
	finish();
}

static void late_service(void *arg)
{
	(void)arg;
}

/* An overflow right before SETUP or RESET is not reported: no interrupt either. */
static void test_overflow_forgotten(void **state)
{
	unsigned int how;

	(void)state;
	for (how = 0; how < 3; how++) {
		start(2, NULL);
		must(0, RAW(1));
		must(0, pv_rig_enable(1, 0, 10, 10));
		rig->vcpu[0].script.service = late_service;
		pv_rig_run(rig, 0, 10);
		if (how < 2)
			assert_int_equal(pv_rig_setup(rig, 0, how ? PV_RIG_SLOTS(0) : 0, 0), 0);
		else
			assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET,
						     0, 0), 0);
		assert_int_equal(rig->vcpu[0].n_nmi, 0);
		finish();
	}
}

static void test_minimum(void **state)
{
	struct vpmu_pv_config cfg = { .period_min = 50 };

	(void)state;
	start(2, &cfg);
	must(0, RAW(1));
	must(0, pv_rig_enable(1, 0, 3, 4));
	pv_rig_run(rig, 0, 3 + 50 * 2);
	assert_int_equal(slot(0, 0)->overflows, 3);
	assert_int_equal(slot(0, 0)->count, 103);
	finish();
}

static void test_throttle(void **state)
{
	struct vpmu_pv_config cfg = { .overflows_max = 3 };
	const uint32_t both = VPMU_PV_SLOT_ENABLED | VPMU_PV_SLOT_THROTTLED;

	(void)state;
	start(2, &cfg);
	must(0, RAW(1));
	must(0, pv_rig_enable(1, 0, 10, 10));
	pv_rig_run(rig, 0, 100);
	assert_int_equal(slot(0, 0)->overflows, 4);
	assert_int_equal(slot(0, 0)->flags, both | 1 << 16);
	assert_int_equal(pv_rig_page(rig, 0)->changed[0], 1);
	must(0, pv_rig_op(VPMU_PV_READ, 1));
	assert_int_equal(slot(0, 0)->count, 40);
	assert_int_equal(slot(0, 0)->enabled, 100);
	assert_int_equal(slot(0, 0)->running, 40);
	/* A slice ends it. */
	assert_true(vpmu_pv_slice(rig->vcpu[0].pv));
	assert_int_equal(slot(0, 0)->flags, VPMU_PV_SLOT_ENABLED | 2 << 16);
	pv_rig_run(rig, 0, 15);
	assert_int_equal(slot(0, 0)->overflows, 5);
	assert_int_equal(slot(0, 0)->count, 50);
	/* So does an enable, for one overflow. */
	pv_rig_run(rig, 0, 1000);
	assert_int_equal(slot(0, 0)->overflows, 8);
	{
		struct vpmu_pv_op op = pv_rig_enable(1, 0, 10, 10);

		op.op = VPMU_PV_PERIOD; /* and that does not */
		must(0, op);
		pv_rig_run(rig, 0, 1000);
		assert_int_equal(slot(0, 0)->overflows, 8);
	}
	must(0, pv_rig_enable(1, 0, 10, 10));
	pv_rig_run(rig, 0, 1000);
	assert_int_equal(slot(0, 0)->overflows, 9);
	finish();
}

/* A throttled leader stops its members, which are lost for that time. */
static void test_throttled_leader(void **state)
{
	struct vpmu_pv_config cfg = { .overflows_max = 3, .features = VPMU_PV_HAS_GROUPS };
	struct vpmu_pv_op op = RAW(2);

	(void)state;
	start(2, &cfg);
	must(0, RAW(1));
	op.u.open.leader = 1;
	must(0, op);
	must(0, pv_rig_enable(1, 0, 10, 10));
	must(0, pv_rig_enable(2, 1, 0, 0));
	pv_rig_run(rig, 0, 100);
	assert_true(slot(0, 0)->flags & VPMU_PV_SLOT_THROTTLED);
	assert_true(slot(0, 1)->flags & VPMU_PV_SLOT_LOST);
	assert_int_equal(slot(0, 1)->count, 40);
	(void)vpmu_pv_slice(rig->vcpu[0].pv);
	assert_false(slot(0, 0)->flags & VPMU_PV_SLOT_THROTTLED);
	assert_false(slot(0, 1)->flags & VPMU_PV_SLOT_LOST);
	pv_rig_run(rig, 0, 5);
	must(0, pv_rig_op(VPMU_PV_DISABLE, 1));
	assert_int_equal(slot(0, 0)->count, 45);
	assert_int_equal(slot(0, 1)->count, 45);
	finish();
}

/*
 * A provider that keeps counters for what is parked, and does not say how long its
 * events count: who comes takes from whom is parked, times are as with any other.
 */
static void test_direct(void **state)
{
	struct vpmu_pv_config cfg = { .overflows_max = 2 };
	uint32_t id;

	(void)state;
	rig = pv_rig_new_direct(2, &cfg);
	assert_non_null(rig);
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_SLOTS(0), 0), 0);
	for (id = 1; id <= 4; id++)
		must(0, RAW(id));
	must(0, pv_rig_enable(1, 1, 0, 0));
	must(0, pv_rig_enable(2, 2, 10, 10));
	pv_rig_run(rig, 0, 5);
	must(0, pv_rig_enable(3, 3, 0, 0)); /* there is no third counter */
	assert_int_equal(slot(0, 3)->flags & 0xffff, VPMU_PV_SLOT_ENABLED | VPMU_PV_SLOT_LOST |
			 VPMU_LOSS_LOST << VPMU_PV_SLOT_REASON_SHIFT);
	pv_rig_run(rig, 0, 5);
	must(0, pv_rig_op(VPMU_PV_DISABLE, 1));
	must(0, pv_rig_enable(3, 3, 0, 0));
	pv_rig_run(rig, 0, 3);
	must(0, pv_rig_op(VPMU_PV_DISABLE, 3));
	assert_int_equal(slot(0, 3)->count, 3);
	assert_int_equal(slot(0, 3)->enabled, 8);
	assert_int_equal(slot(0, 3)->running, 3);
	must(0, pv_rig_enable(1, 1, 0, 0));
	pv_rig_run(rig, 0, 87);
	must(0, pv_rig_op(VPMU_PV_READ, 1));
	assert_int_equal(slot(0, 1)->count, 97);
	assert_int_equal(slot(0, 1)->running, 97);
	must(0, pv_rig_op(VPMU_PV_READ, 2)); /* throttled at 30 */
	assert_int_equal(slot(0, 2)->count, 30);
	assert_int_equal(slot(0, 2)->enabled, 100);
	assert_int_equal(slot(0, 2)->running, 30);
	(void)vpmu_pv_slice(rig->vcpu[0].pv);
	pv_rig_run(rig, 0, 6);
	must(0, pv_rig_op(VPMU_PV_DISABLE, 2));
	assert_int_equal(slot(0, 2)->count, 36);
	assert_int_equal(slot(0, 2)->running, 36);
	must(0, pv_rig_op(VPMU_PV_CLOSE, 1));
	finish();
}

/* The host takes counters away: the guest knows, and by how much. */
static void test_lost(void **state)
{
	struct vpmu_perf_attr attr = { .size = sizeof(attr), .cpu = -1 };
	struct vpmu_perf_event host[2];
	uint32_t generation;

	(void)state;
	start(2, NULL);
	must(0, pv_rig_open(1, VPMU_PV_EVENT_PINNED, PV_INSTRUCTIONS));
	must(0, pv_rig_open(2, 0, PV_INSTRUCTIONS));
	must(0, pv_rig_enable(1, 0, 0, 0));
	must(0, pv_rig_enable(2, 1, 0, 0));
	pv_rig_run(rig, 0, 100);
	attr.event.size = sizeof(attr.event);
	attr.event.banks = VPMU_BANKS_KERNEL | VPMU_BANKS_USER;
	attr.event.fixed = -1;
	attr.event.slot = -1;
	attr.event.select = PV_BRANCHES;
	attr.event.pinned = true;
	memset(host, 0, sizeof(host));
	assert_int_equal(vpmu_perf_open(&host[0], &attr, &rig->vcpu[0].cpu, NULL), 0);
	pv_rig_service(rig, 0);
	assert_int_equal(slot(0, 0)->flags, VPMU_PV_SLOT_ENABLED);
	assert_int_equal(slot(0, 1)->flags, VPMU_PV_SLOT_ENABLED | VPMU_PV_SLOT_LOST |
			 VPMU_LOSS_LOST << VPMU_PV_SLOT_REASON_SHIFT | 1 << 16);
	assert_int_equal(pv_rig_page(rig, 0)->changed[0], 2);
	assert_int_equal(slot(0, 1)->count, 100);
	assert_int_equal(rig->vcpu[0].n_nmi, 0);
	pv_rig_run(rig, 0, 50);
	must(0, pv_rig_op(VPMU_PV_READ, 2));
	assert_int_equal(slot(0, 1)->count, 100);
	assert_int_equal(slot(0, 1)->enabled, 150);
	assert_int_equal(slot(0, 1)->running, 100);
	assert_int_equal(vpmu_perf_open(&host[1], &attr, &rig->vcpu[0].cpu, NULL), 0);
	pv_rig_service(rig, 0);
	assert_true(slot(0, 0)->flags & VPMU_PV_SLOT_LOST);
	/* An enable brings back what is there again. */
	vpmu_perf_close(&host[0]);
	vpmu_perf_close(&host[1]);
	pv_rig_run(rig, 0, 10);
	must(0, pv_rig_enable(1, 0, 0, 0));
	must(0, pv_rig_enable(2, 1, 0, 0));
	generation = slot(0, 0)->flags >> 16;
	assert_int_equal(generation, 2);
	assert_int_equal(slot(0, 0)->flags & 0xffff, VPMU_PV_SLOT_ENABLED);
	pv_rig_run(rig, 0, 5);
	must(0, pv_rig_op(VPMU_PV_READ, 1));
	assert_int_equal(slot(0, 0)->count, 155);
	assert_int_equal(slot(0, 0)->enabled, 165);
	assert_int_equal(slot(0, 0)->running, 155);
	finish();
}

/* More events than counters: one that waits is lost, one that counts is exact. */
static void test_too_many(void **state)
{
	uint32_t id, lost = 0;

	(void)state;
	start(2, NULL);
	for (id = 1; id <= 3; id++) {
		must(0, RAW(id));
		must(0, pv_rig_enable(id, id, 0, 0));
	}
	pv_rig_run(rig, 0, 10);
	for (id = 1; id <= 3; id++) {
		must(0, pv_rig_op(VPMU_PV_DISABLE, id));
		assert_int_equal(slot(0, id)->enabled, 10);
		assert_int_equal(slot(0, id)->running, slot(0, id)->count);
		lost += slot(0, id)->count == 0;
	}
	assert_int_equal(lost, 1);
	finish();
}

static struct vpmu_pv_op member(uint32_t id, uint32_t leader)
{
	struct vpmu_pv_op op = RAW(id);

	op.u.open.leader = leader;
	return op;
}

static void test_groups(void **state)
{
	struct vpmu_pv_op ops[3];

	(void)state;
	start(2, NULL);
	must(0, RAW(1));
	must(0, member(2, 1));
	must(0, member(3, 1));
	fails(0, member(4, 9), VPMU_PV_EINVAL, WRONG(u.open.leader));
	fails(0, member(4, 2), VPMU_PV_EINVAL, WRONG(u.open.leader));
	ops[0] = member(4, 1);
	ops[0].u.open.flags = VPMU_PV_EVENT_PINNED;
	fails(0, ops[0], VPMU_PV_EINVAL, WRONG(u.open.flags));
	/* Only with its leader. */
	fails(0, pv_rig_enable(2, 1, 0, 0), VPMU_PV_EINVAL, WRONG(id));
	must(1, pv_rig_enable(1, 0, 0, 0));
	fails(0, pv_rig_enable(2, 1, 0, 0), VPMU_PV_EBUSY, WRONG(id));
	must(1, pv_rig_op(VPMU_PV_DISABLE, 1));
	/* All or nothing: three do not fit on two counters, so the third cannot be made. */
	ops[0] = pv_rig_enable(1, 0, 0, 0);
	ops[1] = pv_rig_enable(2, 1, 0, 0);
	assert_int_equal(pv_rig_batch(rig, 0, ops, 2), 2);
	pv_rig_run(rig, 0, 10);
	must(0, pv_rig_enable(3, 2, 0, 0));
	assert_true(slot(0, 2)->flags & VPMU_PV_SLOT_LOST);
	/* From elsewhere neither leader nor members go as long as they are enabled. */
	fails(1, pv_rig_op(VPMU_PV_CLOSE, 1), VPMU_PV_EBUSY, WRONG(id));
	/* With the leader its members end, at the same instant. */
	must(0, pv_rig_op(VPMU_PV_DISABLE, 1));
	assert_int_equal(slot(0, 0)->count, 10);
	assert_int_equal(slot(0, 1)->count, 10);
	assert_int_equal(slot(0, 1)->flags & VPMU_PV_SLOT_ENABLED, 0);
	assert_int_equal(slot(0, 2)->flags & VPMU_PV_SLOT_ENABLED, 0);
	/* Again, with what is parked. */
	ops[0] = pv_rig_enable(1, 0, 0, 0);
	ops[1] = pv_rig_enable(2, 1, 0, 0);
	assert_int_equal(pv_rig_batch(rig, 0, ops, 2), 2);
	pv_rig_run(rig, 0, 10);
	must(0, pv_rig_op(VPMU_PV_CLOSE, 1));
	assert_int_equal(slot(0, 1)->count, 20);
	/* A member is on its own after its leader is closed. */
	must(0, pv_rig_enable(2, 1, 0, 0));
	pv_rig_run(rig, 0, 1);
	must(0, pv_rig_op(VPMU_PV_DISABLE, 2));
	assert_int_equal(slot(0, 1)->count, 21);
	finish();
}

/* A group that the host interrupts is lost as a whole. */
static void test_group_lost(void **state)
{
	struct vpmu_pv_op ops[2];

	(void)state;
	start(2, NULL);
	must(0, pv_rig_open(1, VPMU_PV_EVENT_PINNED, PV_BRANCHES));
	must(0, RAW(2));
	must(0, member(3, 2));
	must(0, pv_rig_enable(1, 0, 0, 0));
	ops[0] = pv_rig_enable(2, 1, 0, 0);
	ops[1] = pv_rig_enable(3, 2, 0, 0);
	assert_int_equal(pv_rig_batch(rig, 0, ops, 2), 2);
	assert_false(slot(0, 0)->flags & VPMU_PV_SLOT_LOST);
	assert_true(slot(0, 1)->flags & VPMU_PV_SLOT_LOST);
	assert_true(slot(0, 2)->flags & VPMU_PV_SLOT_LOST);
	pv_rig_run(rig, 0, 10);
	must(0, pv_rig_op(VPMU_PV_DISABLE, 1));
	must(0, pv_rig_enable(2, 1, 0, 0));
	pv_rig_run(rig, 0, 5);
	must(0, pv_rig_op(VPMU_PV_READ, 2));
	must(0, pv_rig_op(VPMU_PV_READ, 3));
	assert_int_equal(slot(0, 1)->count, slot(0, 2)->count);
	assert_int_equal(slot(0, 1)->enabled, 15);
	/* Also when what was parked of its leader is gone meanwhile, and of it is not. */
	must(0, pv_rig_op(VPMU_PV_DISABLE, 2));
	must(0, pv_rig_enable(1, 1, 0, 0));
	ops[0] = pv_rig_enable(2, 5, 0, 0);
	assert_int_equal(pv_rig_batch(rig, 0, ops, 2), 2);
	assert_true(slot(0, 5)->flags & VPMU_PV_SLOT_LOST);
	assert_true(slot(0, 2)->flags & VPMU_PV_SLOT_LOST);
	finish();
}

static void test_other_vcpu(void **state)
{
	uint64_t before;

	(void)state;
	start(2, NULL);
	must(0, RAW(1));
	must(0, pv_rig_enable(1, 0, 10, 10));
	pv_rig_run(rig, 0, 5);
	fails(1, pv_rig_enable(1, 0, 0, 0), VPMU_PV_EBUSY, WRONG(id));
	fails(1, pv_rig_op(VPMU_PV_DISABLE, 1), VPMU_PV_EBUSY, WRONG(id));
	fails(1, pv_rig_op(VPMU_PV_READ, 1), VPMU_PV_EBUSY, WRONG(id));
	fails(1, pv_rig_op(VPMU_PV_PERIOD, 1), VPMU_PV_EBUSY, WRONG(id));
	must(1, pv_rig_op(VPMU_PV_CLOSE, 1));
	assert_true(rig->vcpu[0].script.kicked);
	/* Before its owner has serviced anything, no byte is written. */
	memset(pv_rig_page(rig, 0), 0x5a, 4096);
	must(1, RAW(1)); /* the id is free at once */
	pv_rig_run(rig, 0, 100);
	for (before = 0; before < 4096; before++)
		assert_int_equal(((uint8_t *)pv_rig_page(rig, 0))[before], 0x5a);
	assert_int_equal(rig->vcpu[0].n_nmi, 0);
	assert_int_equal(rig->vcpu[0].vcpu.task.ctx.groups[0].n_all, 0);
	must(0, pv_rig_enable(1, 0, 10, 10));
	pv_rig_run(rig, 0, 10);
	assert_int_equal(slot(0, 0)->count, 10);
	finish();
}

static void test_errors(void **state)
{
	struct vpmu_pv_config cfg = { .n_events = 20, .n_slots = 4 };
	struct vpmu_pv_op op;

	(void)state;
	start(2, &cfg);
	fails(0, RAW(0), VPMU_PV_EINVAL, WRONG(id));
	fails(0, RAW(21), VPMU_PV_EINVAL, WRONG(id));
	must(0, RAW(20));
	fails(0, RAW(20), VPMU_PV_EEXIST, WRONG(id));
	op = RAW(1);
	op.u.open.config1 = 1;
	fails(0, op, VPMU_PV_EINVAL, WRONG(u.open.config1));
	op = RAW(1);
	op.u.open.zero[3] = 1;
	fails(0, op, VPMU_PV_EINVAL, WRONG(u.open.zero));
	op = RAW(1);
	op.u.open.flags = 64;
	fails(0, op, VPMU_PV_EINVAL, WRONG(u.open.flags));
	op.u.open.flags = VPMU_PV_EVENT_BRANCHES;
	fails(0, op, VPMU_PV_EOPNOTSUPP, WRONG(u.open.flags));
	op.u.open.flags = 0;
	op.u.open.suppress = 1;
	fails(0, op, VPMU_PV_EINVAL, WRONG(u.open.suppress));
	op.u.open.suppress = 0;
	op.u.open.flags = VPMU_PV_EVENT_EXCLUDE_USER | VPMU_PV_EVENT_EXCLUDE_KERNEL;
	fails(0, op, VPMU_PV_EINVAL, WRONG(u.open.flags));
	op.u.open.flags = VPMU_PV_EVENT_EXCLUDE_HOST;
	fails(0, op, VPMU_PV_EOPNOTSUPP, WRONG(u.open.flags));
	op.u.open.flags = VPMU_PV_EVENT_EXCLUDE_GUEST;
	fails(0, op, VPMU_PV_EOPNOTSUPP, WRONG(u.open.flags));
	fails(0, member(1, 20), VPMU_PV_EOPNOTSUPP, WRONG(u.open.leader));
	op = RAW(1);
	op.u.open.type = 1; /* software */
	fails(0, op, VPMU_PV_EOPNOTSUPP, WRONG(u.open.type));
	op.u.open.type = 5; /* breakpoint */
	fails(0, op, VPMU_PV_EOPNOTSUPP, WRONG(u.open.type));
	/* EN, OS, USR, INT, ANY and PIN are not the guest's to choose. */
	fails(0, pv_rig_open(1, 0, 0x4100c0), VPMU_PV_EINVAL, WRONG(u.open.config));
	fails(0, pv_rig_open(1, 0, 1ull << 32 | 0xc0), VPMU_PV_EINVAL, WRONG(u.open.config));
	fails(0, pv_rig_open(1, 0, PV_UNCOUNTED), VPMU_PV_ENOENT, WRONG(u.open.config));
	fails(0, pv_rig_open(1, 0, 0xff), VPMU_PV_ENOENT, WRONG(u.open.config));
	fails(0, pv_rig_op(VPMU_PV_RESUME, 20), VPMU_PV_EOPNOTSUPP, 0);
	fails(0, pv_rig_op(8, 20), VPMU_PV_ENOSYS, 0);
	fails(0, pv_rig_op(0, 20), VPMU_PV_ENOSYS, 0);
	fails(0, pv_rig_op(VPMU_PV_CLOSE, 3), VPMU_PV_ENOENT, WRONG(id));
	fails(0, pv_rig_op(VPMU_PV_CLOSE, UINT32_MAX), VPMU_PV_ENOENT, WRONG(id));
	fails(0, pv_rig_enable(3, 0, 0, 0), VPMU_PV_ENOENT, WRONG(id));
	fails(0, pv_rig_enable(20, 4, 0, 0), VPMU_PV_EINVAL, WRONG(slot));
	fails(0, pv_rig_enable(20, 0, VPMU_PV_LEFT_MAX + 1, 0), VPMU_PV_EINVAL,
	      WRONG(u.enable.left));
	fails(0, pv_rig_enable(20, 0, 0, 5), VPMU_PV_EINVAL, WRONG(u.enable.left));
	fails(0, pv_rig_enable(20, 0, 5, UINT64_MAX), VPMU_PV_EINVAL, WRONG(u.enable.period));
	op = pv_rig_enable(20, 0, 0, 0);
	op.u.enable.zero[3] = 1;
	fails(0, op, VPMU_PV_EINVAL, WRONG(u.enable.zero));
	fails(0, pv_rig_op(VPMU_PV_READ, 20), VPMU_PV_EINVAL, WRONG(id));
	fails(0, pv_rig_op(VPMU_PV_PERIOD, 20), VPMU_PV_EINVAL, WRONG(id));
	must(0, pv_rig_enable(20, 3, 0, 0));
	fails(0, pv_rig_enable(20, 2, 0, 0), VPMU_PV_EBUSY, WRONG(slot));
	must(0, RAW(1));
	fails(0, pv_rig_enable(1, 3, 0, 0), VPMU_PV_EBUSY, WRONG(slot));
	must(0, pv_rig_enable(20, 3, 0, 0)); /* enabled where it is: no change */
	must(0, pv_rig_op(VPMU_PV_CLOSE, 20));
	fails(0, pv_rig_op(VPMU_PV_CLOSE, 20), VPMU_PV_ENOENT, WRONG(id));
	finish();
}

static int64_t batch_at(uint64_t gpa, uint32_t size, uint32_t n, uint64_t zero)
{
	struct vpmu_pv_batch head = { .size = size, .n_ops = n };

	head.zero[6] = zero;
	if (gpa <= PV_RIG_RAM - sizeof(head))
		memcpy(rig->ram + gpa, &head, sizeof(head));
	return pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, (uint32_t)gpa, gpa >> 32);
}

static void test_batches(void **state)
{
	struct vpmu_pv_op ops[VPMU_PV_BATCH_MAX];
	uint64_t at = PV_RIG_BATCH(0);
	unsigned int i;

	(void)state;
	start(2, NULL);
	assert_int_equal(batch_at(at, 64, 0, 0), -VPMU_PV_E2BIG);
	assert_int_equal(batch_at(at, 64 + 64 * 64, 64, 0), -VPMU_PV_E2BIG);
	assert_int_equal(batch_at(at, 64 + 63, 1, 0), -VPMU_PV_EINVAL);
	assert_int_equal(batch_at(at, 64 + 64, 1, 1), -VPMU_PV_EINVAL);
	assert_int_equal(batch_at(at + 4, 64 + 64, 1, 0), -VPMU_PV_EFAULT);
	assert_int_equal(batch_at(at + 64, 64 + 63 * 64, 63, 0), -VPMU_PV_EFAULT);
	assert_int_equal(batch_at(at + 4096 - 32, 64 + 64, 1, 0), -VPMU_PV_EFAULT);
	assert_int_equal(batch_at(PV_RIG_RAM, 128, 1, 0), -VPMU_PV_EFAULT);
	assert_int_equal(batch_at(0ull - 64, 128, 1, 0), -VPMU_PV_EFAULT);
	assert_int_equal(batch_at(1ull << 40, 128, 1, 0), -VPMU_PV_EFAULT);
	ops[0] = RAW(1);
	memcpy(rig->ram + PV_RIG_ROM + 64, ops, sizeof(ops[0]));
	assert_int_equal(batch_at(PV_RIG_ROM, 128, 1, 0), -VPMU_PV_EFAULT);
	for (i = 0; i < VPMU_PV_BATCH_MAX; i++)
		ops[i] = RAW(i / 2 + 1); /* each second one fails, and ends nothing */
	assert_int_equal(pv_rig_batch(rig, 0, ops, VPMU_PV_BATCH_MAX), VPMU_PV_BATCH_MAX);
	for (i = 0; i < VPMU_PV_BATCH_MAX; i++)
		assert_int_equal(ops[i].result, i % 2 ? -VPMU_PV_EEXIST : 0);
	/* The page of slots as a batch, and vice versa, harms only the guest. */
	assert_int_equal(batch_at(PV_RIG_SLOTS(0), 64 + 64, 1, 0), 1);
	assert_int_equal(pv_rig_setup(rig, 0, at, 0), 0);
	(void)pv_rig_do(rig, 0, pv_rig_enable(1, 0, 10, 10)); /* the slot is over it */
	pv_rig_run(rig, 0, 30);
	assert_int_equal(rig->vcpu[0].n_nmi, 3);
	finish();
}

static void test_generic(void **state)
{
	static const struct {
		uint64_t config;
		int result;
		uint32_t type;
	} row[] = {
		{ 1, 0, VPMU_PV_TYPE_HARDWARE },                 /* instructions */
		{ 4, 0, VPMU_PV_TYPE_HARDWARE },                 /* branches */
		{ 5, -VPMU_PV_ENOENT, VPMU_PV_TYPE_HARDWARE },   /* branch misses */
		{ 7, -VPMU_PV_ENOENT, VPMU_PV_TYPE_HARDWARE },   /* stalled cycles */
		{ 10, -VPMU_PV_EINVAL, VPMU_PV_TYPE_HARDWARE },
		{ 1ull << 32, -VPMU_PV_EINVAL, VPMU_PV_TYPE_HARDWARE },
		{ 0x000005, 0, VPMU_PV_TYPE_HW_CACHE },          /* BPU reads: branches */
		{ 0x010005, -VPMU_PV_ENOENT, VPMU_PV_TYPE_HW_CACHE },
		{ 0x000000, -VPMU_PV_ENOENT, VPMU_PV_TYPE_HW_CACHE }, /* no row in this model */
		{ 0x000007, -VPMU_PV_EINVAL, VPMU_PV_TYPE_HW_CACHE },
		{ 0x000305, -VPMU_PV_EINVAL, VPMU_PV_TYPE_HW_CACHE },
		{ 0x020005, -VPMU_PV_EINVAL, VPMU_PV_TYPE_HW_CACHE },
		{ 0x1000005, -VPMU_PV_EINVAL, VPMU_PV_TYPE_HW_CACHE },
	};
	struct vpmu_uncounted uncounted;
	struct vpmu_pv_op op;
	unsigned int i;

	(void)state;
	start(2, NULL);
	for (i = 0; i < COUNT_OF(row); i++) {
		op = pv_rig_open(i + 1, 0, row[i].config);
		op.u.open.type = row[i].type;
		assert_int_equal(pv_rig_do(rig, 0, op), row[i].result);
	}
	must(0, pv_rig_enable(2, 0, 0, 0));
	must(0, pv_rig_enable(7, 1, 0, 0));
	pv_rig_run(rig, 0, 10);
	pv_rig_run_branches(rig, 0, 4);
	must(0, pv_rig_op(VPMU_PV_READ, 2));
	must(0, pv_rig_op(VPMU_PV_READ, 7));
	assert_int_equal(slot(0, 0)->count, 4);
	assert_int_equal(slot(0, 1)->count, 4);
	assert_true(vpmu_pv_uncounted(rig->vcpu[1].pv, 0, &uncounted));
	assert_int_equal(uncounted.select, PV_UNCOUNTED);
	assert_int_equal(uncounted.times, 2);
	assert_string_equal(uncounted.needs, "--uarch on");
	assert_false(vpmu_pv_uncounted(rig->vcpu[1].pv, 1, &uncounted));
	finish();
}

/* Zen 4's table has reference cycles, Zen 3's has not; bus cycles are Intel's. */
static void test_generic_amd(void **state)
{
	static const struct {
		uint8_t model; /* model of family 25 */
		uint32_t type;
		uint64_t config;
		int result;
		uint64_t uncounted; /* the selector then; 0: none */
	} row[] = {
		{ 1, VPMU_PV_TYPE_HARDWARE, 0, 0, 0 },
		{ 1, VPMU_PV_TYPE_HARDWARE, 1, 0, 0 },
		{ 1, VPMU_PV_TYPE_HARDWARE, 2, -VPMU_PV_ENOENT, 0xff60 },
		{ 1, VPMU_PV_TYPE_HARDWARE, 3, -VPMU_PV_ENOENT, 0x0964 },
		{ 1, VPMU_PV_TYPE_HARDWARE, 4, 0, 0 },
		{ 1, VPMU_PV_TYPE_HARDWARE, 5, -VPMU_PV_ENOENT, 0x00c3 },
		{ 1, VPMU_PV_TYPE_HARDWARE, 6, -VPMU_PV_ENOENT, 0 },
		{ 1, VPMU_PV_TYPE_HARDWARE, 7, -VPMU_PV_ENOENT, 0 },
		{ 1, VPMU_PV_TYPE_HARDWARE, 9, -VPMU_PV_ENOENT, 0x100000120 },
		{ 17, VPMU_PV_TYPE_HARDWARE, 9, 0, 0 },
		{ 1, VPMU_PV_TYPE_HARDWARE, 10, -VPMU_PV_EINVAL, 0 },
		{ 1, VPMU_PV_TYPE_HW_CACHE, 0x000000, -VPMU_PV_ENOENT, 0x0040 },
		{ 1, VPMU_PV_TYPE_HW_CACHE, 0x010003, -VPMU_PV_ENOENT, 0xf045 },
		{ 1, VPMU_PV_TYPE_HW_CACHE, 0x000005, 0, 0 },
		{ 1, VPMU_PV_TYPE_HW_CACHE, 0x000002, -VPMU_PV_ENOENT, 0 },
		{ 1, VPMU_PV_TYPE_RAW, 0x1000000c9, -VPMU_PV_ENOENT, 0x1000000c9 },
		{ 17, VPMU_PV_TYPE_RAW, 0x1000000c9, 0, 0 },
		{ 17, VPMU_PV_TYPE_RAW, 0x10000000c0, -VPMU_PV_EINVAL, 0 },
		{ 17, VPMU_PV_TYPE_RAW, 0x4100c0, -VPMU_PV_EINVAL, 0 },
	};
	struct vpmu_pv_config cfg = { 0 };
	struct vpmu_uncounted uncounted;
	struct vpmu_pv_op op;
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		cfg.model = vpmu_model_find(VPMU_VENDOR_AMD, 25, row[i].model);
		start(0, &cfg);
		op = pv_rig_open(1, 0, row[i].config);
		op.u.open.type = row[i].type;
		assert_int_equal(pv_rig_do(rig, 0, op), row[i].result);
		assert_int_equal(vpmu_pv_uncounted(rig->vcpu[0].pv, 0, &uncounted),
				 row[i].uncounted != 0);
		if (row[i].uncounted)
			assert_int_equal(uncounted.select, row[i].uncounted);
		finish();
	}
}

/*
 * Linux's encodings of slots and topdown classes stand for events of the model, if it has one
 * for each: Ice Lake has none for bad speculation. This engine counts none of them, and says
 * which one was meant.
 */
static void test_topdown(void **state)
{
	const uint32_t topdown = VPMU_PV_HAS_TOPDOWN;
	const struct {
		uint8_t vendor;
		uint16_t family, model;
		uint32_t asked, has;
		uint64_t config, meant;
	} row[] = {
		{ VPMU_VENDOR_INTEL, 6, 143, topdown, topdown, 0x8000, 0x02c2 },
		{ VPMU_VENDOR_INTEL, 6, 143, topdown, topdown, 0x8100, 0x04a4 },
		{ VPMU_VENDOR_INTEL, 6, 143, topdown, topdown, 0x8200, 0x019c },
		{ VPMU_VENDOR_INTEL, 6, 143, topdown, topdown, 0x8300, 0x02a4 },
		{ VPMU_VENDOR_INTEL, 6, 143, topdown, topdown, 0x8400, 0x8400 },
		{ VPMU_VENDOR_INTEL, 6, 143, 0, 0, 0x8000, 0x8000 },
		{ VPMU_VENDOR_INTEL, 6, 106, topdown, 0, 0x8000, 0x8000 },
		{ VPMU_VENDOR_AMD, 25, 17, topdown, 0, 0x8000, 0x8000 },
	};
	struct vpmu_pv_config cfg = { 0 };
	struct vpmu_uncounted uncounted;
	unsigned int i;

	(void)state;
	for (i = 0; i < COUNT_OF(row); i++) {
		cfg.model = vpmu_model_find(row[i].vendor, row[i].family, row[i].model);
		cfg.features = row[i].asked;
		start(0, &cfg);
		assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_VERSION, 2, 0),
				 row[i].has);
		assert_int_equal(pv_rig_do(rig, 0, pv_rig_open(1, 0, row[i].config)),
				 -VPMU_PV_ENOENT);
		assert_true(vpmu_pv_uncounted(rig->vcpu[0].pv, 0, &uncounted));
		assert_int_equal(uncounted.select, row[i].meant);
		finish();
	}
	/* Slots need no model. */
	cfg.model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 143);
	cfg.features = topdown;
	start(0, &cfg);
	assert_int_equal(pv_rig_do(rig, 0, pv_rig_open(1, 0, 0x0400)), 0);
	finish();
}

/* Branches are C2H, where Intel has C4H; one instruction is one cycle. */
static void test_count_amd(void **state)
{
	struct vpmu_pv_config cfg = { 0 };
	struct vpmu_pv_op op = pv_rig_open(1, 0, 4);

	(void)state;
	cfg.model = vpmu_model_find(VPMU_VENDOR_AMD, 25, 17);
	start(0, &cfg);
	op.u.open.type = VPMU_PV_TYPE_HARDWARE;
	must(0, op);
	must(0, pv_rig_open(2, 0, 0x76));
	must(0, pv_rig_enable(1, 0, 0, 0));
	must(0, pv_rig_enable(2, 1, 0, 0));
	pv_rig_run(rig, 0, 10);
	pv_rig_run_branches(rig, 0, 4);
	must(0, pv_rig_op(VPMU_PV_READ, 1));
	must(0, pv_rig_op(VPMU_PV_READ, 2));
	assert_int_equal(slot(0, 0)->count, 4);
	assert_int_equal(slot(0, 1)->count, 14);
	finish();
}

static void test_nested(void **state)
{
	struct vpmu_pv_config cfg = { .features = VPMU_PV_HAS_NESTED };
	struct vpmu_script *sc = &start(4, &cfg)->vcpu[0].script;
	uint32_t id;

	(void)state;
	must(0, pv_rig_open(1, VPMU_PV_EVENT_EXCLUDE_HOST, PV_INSTRUCTIONS));
	must(0, pv_rig_open(2, VPMU_PV_EVENT_EXCLUDE_GUEST, PV_INSTRUCTIONS));
	must(0, pv_rig_open(3, 0, PV_INSTRUCTIONS));
	must(0, pv_rig_open(4, VPMU_PV_EVENT_EXCLUDE_HOST | VPMU_PV_EVENT_EXCLUDE_USER,
			    PV_INSTRUCTIONS));
	fails(0, pv_rig_open(5, VPMU_PV_EVENT_EXCLUDE_HOST | VPMU_PV_EVENT_EXCLUDE_GUEST,
			     PV_INSTRUCTIONS), VPMU_PV_EINVAL, WRONG(u.open.flags));
	for (id = 1; id <= 4; id++)
		must(0, pv_rig_enable(id, id, 0, 0));
	vpmu_script_run(sc, VPMU_BANK_KERNEL, 1);
	vpmu_script_run(sc, VPMU_BANK_USER, 10);
	vpmu_script_run(sc, VPMU_BANK_NESTED_KERNEL, 100);
	vpmu_script_run(sc, VPMU_BANK_NESTED_USER, 1000);
	for (id = 1; id <= 4; id++)
		must(0, pv_rig_op(VPMU_PV_DISABLE, id));
	assert_int_equal(slot(0, 1)->count, 1100);
	assert_int_equal(slot(0, 2)->count, 11);
	assert_int_equal(slot(0, 3)->count, 1111);
	assert_int_equal(slot(0, 4)->count, 100);
	finish();
}

static void test_filter(void **state)
{
	static const uint64_t denied[] = { PV_BRANCHES };
	static const struct vpmu_filter filter = {
		.size = sizeof(filter), .action = VPMU_FILTER_DENY, .n_events = 1,
		.events = denied };
	struct vpmu_pv_config cfg = { .filter = &filter };
	struct vpmu_pv_op op;

	(void)state;
	start(2, &cfg);
	fails(0, pv_rig_open(1, 0, PV_BRANCHES), VPMU_PV_EACCES, WRONG(u.open.config));
	op = pv_rig_open(1, 0, 4);
	op.u.open.type = VPMU_PV_TYPE_HARDWARE;
	fails(0, op, VPMU_PV_EACCES, WRONG(u.open.config));
	must(0, RAW(1));
	finish();
}

/* Flags of an event that is LOST for @reason, after @changes of that. */
static uint32_t lost_for(enum vpmu_loss reason, uint32_t changes)
{
	return VPMU_PV_SLOT_ENABLED | VPMU_PV_SLOT_LOST | reason << VPMU_PV_SLOT_REASON_SHIFT |
	       changes << VPMU_PV_SLOT_GENERATION_SHIFT;
}

/* The host changes the filter while the guest counts, on each vCPU in turn. */
static void test_refilter(void **state)
{
	static const uint64_t entries[] = { PV_BRANCHES };
	struct vpmu_filter filter = { .size = sizeof(filter), .action = VPMU_FILTER_DENY,
				      .events = entries };
	struct vpmu_pv_config cfg = { .filter = &filter };
	unsigned int i;

	(void)state;
	start(2, &cfg);
	must(0, pv_rig_open(1, 0, PV_BRANCHES));
	must(0, RAW(2));
	must(0, pv_rig_open(3, 0, PV_BRANCHES));
	must(0, pv_rig_enable(1, 0, 0, 0));
	must(0, pv_rig_enable(2, 1, 0, 0));
	must(1, pv_rig_enable(3, 5, 0, 0));
	pv_rig_run_branches(rig, 0, 100);
	pv_rig_run_branches(rig, 1, 10);
	filter.n_events = 1;
	for (i = 0; i < 2; i++)
		vpmu_pv_refilter(rig->vcpu[i].pv);
	assert_int_equal(slot(0, 0)->flags, lost_for(VPMU_LOSS_FILTERED, 1));
	assert_int_equal(slot(1, 5)->flags, lost_for(VPMU_LOSS_FILTERED, 1));
	assert_int_equal(slot(0, 1)->flags, VPMU_PV_SLOT_ENABLED);
	pv_rig_run_branches(rig, 0, 1000);
	must(0, pv_rig_enable(1, 0, 0, 0));
	must(0, pv_rig_op(VPMU_PV_READ, 2));
	assert_int_equal(slot(0, 0)->count, 100);
	assert_int_equal(slot(0, 0)->flags, lost_for(VPMU_LOSS_FILTERED, 1));
	assert_true(slot(0, 0)->running < slot(0, 0)->enabled);
	assert_int_equal(slot(0, 1)->count, 1100);
	fails(0, pv_rig_open(4, 0, PV_BRANCHES), VPMU_PV_EACCES, WRONG(u.open.config));

	/* It is allowed again: from the next ENABLE on. */
	filter.n_events = 0;
	vpmu_pv_refilter(rig->vcpu[0].pv);
	pv_rig_run_branches(rig, 0, 10000);
	must(0, pv_rig_enable(1, 0, 0, 0));
	assert_int_equal(slot(0, 0)->flags & VPMU_PV_SLOT_LOST, 0);
	pv_rig_run_branches(rig, 0, 7);
	must(0, pv_rig_op(VPMU_PV_DISABLE, 1));
	assert_int_equal(slot(0, 0)->count, 107);
	finish();
}

static uint32_t made(unsigned int vcpu)
{
	return rig->vcpu[vcpu].vcpu.task.ctx.groups[0].n_all +
	       rig->vcpu[vcpu].vcpu.task.ctx.groups[1].n_all;
}

static void test_slices(void **state)
{
	struct vpmu_pv *v = start(2, NULL)->vcpu[0].pv;

	(void)state;
	assert_false(vpmu_pv_slice(v));
	must(0, RAW(1));
	must(0, pv_rig_enable(1, 0, 0, 0));
	assert_false(vpmu_pv_slice(v)); /* nothing to do as long as it counts */
	must(0, pv_rig_op(VPMU_PV_DISABLE, 1));
	assert_true(vpmu_pv_slice(v));
	assert_int_equal(made(0), 1);
	must(0, pv_rig_enable(1, 0, 0, 0));
	must(0, pv_rig_op(VPMU_PV_DISABLE, 1));
	assert_true(vpmu_pv_slice(v)); /* it was in use since */
	assert_int_equal(made(0), 1);
	assert_false(vpmu_pv_slice(v));
	assert_int_equal(made(0), 0);
	must(0, pv_rig_enable(1, 0, 10, 10));
	assert_true(vpmu_pv_slice(v)); /* it may be throttled */
	finish();
}

static void test_reset(void **state)
{
	struct vpmu_pv_info info;

	(void)state;
	start(2, NULL);
	must(0, RAW(1));
	must(0, RAW(2));
	must(0, pv_rig_enable(1, 0, 10, 10));
	must(1, pv_rig_enable(2, 0, 10, 10));
	assert_int_equal(pv_rig_open_1(rig, 1, 7, PV_INSTRUCTIONS, 10, 0), 0);
	assert_int_equal(pv_rig_do_1(rig, 1, VPMU_PV1_ENABLE, 7), 0);
	/* One vCPU's RESET disables its events; the other's continue. */
	pv_rig_run(rig, 0, 5);
	vpmu_pv_reset(rig->vcpu[0].pv);
	assert_int_equal(made(0), 0);
	assert_true(vpmu_pv_event_info(rig->vcpu[0].pv, 0, &info));
	assert_int_equal(info.vcpu, -1);
	assert_int_equal(info.count, 5);
	assert_true(vpmu_pv_event_info(rig->vcpu[0].pv, 1, &info));
	assert_int_equal(info.vcpu, 1);
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_SLOTS(0), 0), 0);
	must(0, pv_rig_enable(1, 0, 10, 10));
	/* The guest's RESET: all events and pages, from one vCPU; nothing is written. */
	assert_int_equal(pv_rig_open_1(rig, 0, 8, PV_INSTRUCTIONS, 10, 0), 0);
	assert_int_equal(pv_rig_do_1(rig, 0, VPMU_PV1_ENABLE, 8), 0);
	memset(rig->ram, 0xa5, PV_RIG_RAM);
	assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0), 0);
	assert_int_equal(rig->n_maps, 0);
	assert_int_equal(made(0), 0);
	pv_rig_run(rig, 0, 100);
	pv_rig_run(rig, 1, 100);
	assert_int_equal(made(1), 0);
	{
		uint32_t i;

		for (i = 0; i < PV_RIG_RAM; i++)
			assert_int_equal(rig->ram[i], 0xa5);
	}
	assert_false(vpmu_pv_event_info(rig->vcpu[0].pv, 0, &info));
	assert_int_equal(pv_rig_setup(rig, 0, PV_RIG_SLOTS(0), 0), 0);
	must(0, RAW(1));
	finish();
}

/* The host leaves: numbers are final, and say so; a RESET then writes nothing. */
static void test_withdraw(void **state)
{
	struct vpmu_pv_page before;

	(void)state;
	start(2, NULL);
	must(0, RAW(1));
	must(0, RAW(2));
	must(0, pv_rig_enable(1, 0, 50, 50));
	pv_rig_run(rig, 0, 120);
	vpmu_pv_withdraw(rig->vcpu[0].pv);
	assert_int_equal(rig->vcpu[0].n_nmi, 2);
	assert_int_equal(slot(0, 0)->count, 120);
	assert_int_equal(slot(0, 0)->flags, VPMU_PV_SLOT_ENABLED | VPMU_PV_SLOT_LOST |
			 VPMU_LOSS_NOT_COUNTED << VPMU_PV_SLOT_REASON_SHIFT | 1 << 16);
	assert_int_equal(pv_rig_page(rig, 0)->changed[0], 1);
	pv_rig_run(rig, 0, 100);
	before = *pv_rig_page(rig, 0);
	vpmu_pv_vm_reset(rig->vm);
	assert_memory_equal(&before, pv_rig_page(rig, 0), sizeof(before));
	finish();
}

static void (*rig_unlock)(void *ctx);
static unsigned int unlocks_left;

/* After the Nth release of the lock the other vCPU closes the event. */
static void unlock_and_close(void *ctx)
{
	rig_unlock(ctx);
	if (ctx != &rig->vcpu[0] || !unlocks_left || --unlocks_left)
		return;
	must(1, pv_rig_op(VPMU_PV_CLOSE, 1));
	must(1, RAW(1));
	must(1, pv_rig_enable(1, 7, 3, 3));
	memset(pv_rig_page(rig, 0), 0x5a, 4096);
}

static void unlock_hook(struct vpmu_ops *ops)
{
	rig_unlock = ops->unlock;
	ops->unlock = unlock_and_close;
}

/* The other vCPU closes and reopens the event at each moment of an ENABLE. */
static void test_closed_meanwhile(void **state)
{
	unsigned int n, i, closed = 0;

	(void)state;
	for (n = 1; n < 12; n++) {
		pv_rig_hooks = unlock_hook;
		start(2, NULL);
		pv_rig_hooks = NULL;
		must(0, RAW(1));
		unlocks_left = n;
		(void)pv_rig_do(rig, 0, pv_rig_enable(1, 0, 3, 3));
		if (!unlocks_left &&
		    pv_rig_do(rig, 0, pv_rig_op(VPMU_PV_READ, 1)) == -VPMU_PV_EBUSY) {
			closed++;
			pv_rig_run(rig, 0, 10);
			assert_int_equal(rig->vcpu[0].n_nmi, 0);
			assert_int_equal(made(0), 0);
			for (i = 64; i < 4096; i++)
				assert_int_equal(((uint8_t *)pv_rig_page(rig, 0))[i], 0x5a);
			pv_rig_run(rig, 1, 10);
			assert_int_equal(slot(1, 7)->overflows, 3);
			assert_int_equal(slot(1, 7)->count, 9);
		}
		unlocks_left = 0;
		finish();
	}
	assert_true(closed >= 3);
}

/* The slot becomes free at each moment of an ENABLE into it. */
static void test_freed_meanwhile(void **state)
{
	unsigned int n, enabled = 0;

	(void)state;
	for (n = 1; n < 12; n++) {
		pv_rig_hooks = unlock_hook;
		start(2, NULL);
		pv_rig_hooks = NULL;
		must(0, RAW(1));
		must(0, RAW(2));
		must(0, pv_rig_enable(1, 0, 0, 0));
		unlocks_left = n;
		if (!pv_rig_do(rig, 0, pv_rig_enable(2, 0, 0, 0)))
			enabled++;
		unlocks_left = 0;
		pv_rig_run(rig, 0, 10);
		must(0, pv_rig_op(VPMU_PV_DISABLE, 2));
		if (made(1)) /* 1 has been closed */
			assert_false(rig->vcpu[0].vcpu.hold);
		finish();
	}
	assert_true(enabled >= 1);
}

static void test_limits(void **state)
{
	struct vpmu_pv_config cfg = { .n_events = 70, .abi = VPMU_PV_ABI_2 };
	uint32_t id;

	(void)state;
	start(4, &cfg);
	for (id = 1; id <= 70; id++)
		must(0, RAW(id));
	for (id = 1; id <= 63; id++)
		must(0, pv_rig_enable(id, id - 1, 0, 0));
	fails(0, pv_rig_enable(64, 63, 0, 0), VPMU_PV_EINVAL, WRONG(slot));
	pv_rig_run(rig, 0, 10);
	assert_int_equal(pv_rig_call(rig, 0, VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0), 0);
	assert_int_equal(made(0), 0);
	finish();
}

static void test_config(void **state)
{
	struct vpmu_pv_config cfg = { .n_slots = 64 };

	(void)state;
	assert_null(pv_rig_new(2, &cfg));
	cfg = (struct vpmu_pv_config){ .abi = 4 };
	assert_null(pv_rig_new(2, &cfg));
	cfg = (struct vpmu_pv_config){ .features = 64 };
	assert_null(pv_rig_new(2, &cfg));
	cfg = (struct vpmu_pv_config){ .n_events = VPMU_PV_EVENTS_MAX + 1 };
	assert_null(pv_rig_new(2, &cfg));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout), cmocka_unit_test(test_discovery),
		cmocka_unit_test(test_registers), cmocka_unit_test(test_doorbell),
		cmocka_unit_test(test_setup),
		cmocka_unit_test(test_count), cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_vector), cmocka_unit_test(test_minimum),
		cmocka_unit_test(test_overflow_forgotten), cmocka_unit_test(test_trace),
		cmocka_unit_test(test_throttle), cmocka_unit_test(test_throttled_leader),
		cmocka_unit_test(test_direct), cmocka_unit_test(test_lost),
		cmocka_unit_test(test_too_many), cmocka_unit_test(test_groups),
		cmocka_unit_test(test_group_lost), cmocka_unit_test(test_other_vcpu),
		cmocka_unit_test(test_errors), cmocka_unit_test(test_batches),
		cmocka_unit_test(test_generic), cmocka_unit_test(test_generic_amd),
		cmocka_unit_test(test_count_amd), cmocka_unit_test(test_topdown),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_filter), cmocka_unit_test(test_refilter),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_reset), cmocka_unit_test(test_closed_meanwhile),
		cmocka_unit_test(test_freed_meanwhile), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_config), cmocka_unit_test(test_withdraw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
