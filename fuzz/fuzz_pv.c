// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A guest that does to the paravirtual PMU whatever it can: hypercalls, random and
 * nearly right ones, on two vCPUs, while its memory changes under the host's hands
 * between any two accesses. Nothing is written that was not given, the lock is free
 * in the end, and nothing stays behind.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "pv_rig.h"

#define STATE_MAX	32768

static uint8_t shadow[PV_RIG_RAM];

/* A number at which something might change. */
static uint64_t number(void)
{
	uint8_t how = byte();

	switch (how % 8) {
	case 0:
		return word(8);
	case 1:
		return 0ull - byte();
	case 2:
		return VPMU_PV_LEFT_MAX - 1 + byte() % 3;
	case 3:
		return 1ull << byte() % 64;
	default:
		return how / 8;
	}
}

/* An address: of a page of its own, or anything. */
static uint64_t address(void)
{
	uint8_t how = byte();

	if (how % 8 == 0)
		return word(8);
	if (how % 8 == 1)
		return (uint64_t)byte() * 4 - 512 + PV_RIG_RAM; /* about the end */
	return (uint64_t)(how / 8 % PV_RIG_PAGES) * PV_RIG_PAGE +
	       (how & 4 ? byte() * 16u : 0);
}

/* The memory as the guest changes it. */
static void poke(struct pv_rig *r, uint64_t at, const void *from, size_t bytes)
{
	if (at > PV_RIG_RAM || bytes > PV_RIG_RAM - at)
		return;
	memcpy(r->ram + at, from, bytes);
	memcpy(r->shadow + at, from, bytes);
}

static void meddle(struct pv_rig *r)
{
	uint8_t value;
	uint64_t at;

	if (!left || input[0] & 3)
		return;
	(void)byte();
	at = word(2);
	value = byte();
	poke(r, at, &value, 1);
}

static struct vpmu_pv_op operation(void)
{
	static const uint64_t config[] = { PV_INSTRUCTIONS, PV_BRANCHES, PV_UNCOUNTED, 1, 4, 5 };
	struct vpmu_pv_op op;
	uint8_t how = byte();

	memset(&op, 0, sizeof(op));
	op.op = how % 8 ? how % 8 : byte() % 9;
	op.id = how & 8 ? byte() % 20 : byte();
	op.slot = how & 16 ? byte() % 8 : byte();
	if (op.op == VPMU_PV_OPEN) {
		op.u.open.type = how & 32 ? VPMU_PV_TYPE_RAW : byte() % 8;
		op.u.open.flags = byte() % 128;
		op.u.open.suppress = byte() % 4 ? 0 : (uint32_t)number();
		op.u.open.config = how & 64 ? config[byte() % 6] : number();
		op.u.open.leader = how & 128 ? byte() % 20 : 0;
	} else {
		op.u.enable.left = how & 32 ? 1 + byte() : number();
		op.u.enable.period = how & 64 ? 1 + byte() : number();
	}
	if (byte() == 255)
		op.u.enable.zero[byte() % 4] = byte();
	return op;
}

static void batch(struct pv_rig *r, unsigned int vcpu)
{
	uint64_t at = byte() % 16 ? PV_RIG_BATCH(vcpu) : address();
	struct vpmu_pv_batch head;
	struct vpmu_pv_op op;
	unsigned int i, n = 1 + byte() % 6;

	memset(&head, 0, sizeof(head));
	head.n_ops = byte() % 32 ? n : byte();
	head.size = (uint32_t)(sizeof(head) + head.n_ops * sizeof(op));
	poke(r, at, &head, sizeof(head));
	for (i = 0; i < n; i++) {
		op = operation();
		poke(r, at + sizeof(head) + i * sizeof(op), &op, sizeof(op));
	}
	(void)pv_rig_call(r, vcpu, VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, at & UINT32_MAX,
			  at >> 32);
}

static void setup(struct pv_rig *r, unsigned int vcpu)
{
	uint64_t at = byte() % 16 ? PV_RIG_SETUP : address();
	struct vpmu_pv_setup_branches more;
	struct vpmu_pv_setup s;

	memset(&more, 0, sizeof(more));
	s.size = byte() % 2 ? sizeof(more) : byte() % 16 ? sizeof(s) : byte();
	s.vector = byte() % 2 ? byte() : 0;
	s.page = byte() % 4 ? PV_RIG_SLOTS(vcpu) : address();
	more.setup = s;
	more.branches = byte() % 4 ? PV_RIG_BRANCHES(vcpu) : address();
	poke(r, at, &more, sizeof(more));
	(void)pv_rig_call(r, vcpu, VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, at & UINT32_MAX, at >> 32);
}

static void open_1(struct pv_rig *r, unsigned int vcpu)
{
	uint64_t at = byte() % 16 ? PV_RIG_PARAMS : address();
	struct vpmu_pv1_params p = { .id = byte() % 16 };
	struct vpmu_pv1_attr a;

	memset(&a, 0, sizeof(a));
	p.attr = byte() % 16 ? PV_RIG_ATTR : address();
	p.event = byte() % 4 ? PV_RIG_EVENT((unsigned int)p.id) : address();
	a.type = byte() % 8 ? VPMU_PV_TYPE_RAW : byte();
	a.config = byte() % 8 ? PV_INSTRUCTIONS : number();
	a.sample_period = number();
	a.flags = byte() % 4 ? 0 : number();
	poke(r, at, &p, sizeof(p));
	poke(r, p.attr, &a, sizeof(a));
	(void)pv_rig_call(r, vcpu, VPMU_PV1_HYPERCALL, VPMU_PV1_OPEN, at & UINT32_MAX, at >> 32);
}

static void anything(struct pv_rig *r, unsigned int vcpu)
{
	struct vpmu_hypercall call = { .nr = byte() % 2 ? VPMU_PV_HYPERCALL : VPMU_PV1_HYPERCALL };
	uint8_t how = byte();

	call.long_mode = how & 1;
	call.cpl = how & 6 ? 0 : byte() % 4;
	if (how & 8)
		call.nr |= word(8) << 32;
	call.arg[0] = byte() % 8;
	call.arg[1] = how & 16 ? number() : address();
	call.arg[2] = how & 32 ? number() : 0;
	call.arg[3] = number();
	(void)vpmu_pv_hypercall(r->vcpu[vcpu].pv, &call);
	pv_rig_service(r, vcpu);
}

static void doorbell(struct pv_rig *r, unsigned int vcpu)
{
	struct vpmu_pv_call call = { .size = byte() % 16 ? sizeof(call) : byte() };
	uint64_t at = address();

	call.op = byte() % 8;
	call.a1 = (uint32_t)address();
	poke(r, at, &call, sizeof(call));
	(void)vpmu_pv_doorbell(r->vcpu[vcpu].pv, at);
	pv_rig_service(r, vcpu);
}

static void save_and_load(struct pv_rig *r)
{
	static uint8_t state[STATE_MAX], again[STATE_MAX];
	size_t n, m;

	r->meddle = NULL;
	require(!vpmu_pv_vm_save(r->vm, state, sizeof(state), &n), "it can be saved");
	if (byte() % 2) {
		require(!vpmu_pv_vm_load(r->vm, state, n), "what was saved can be loaded");
		require(!vpmu_pv_vm_save(r->vm, again, sizeof(again), &m) && m == n,
			"and saved again");
	} else {
		state[word(2) % n] ^= byte();
		(void)vpmu_pv_vm_load(r->vm, state, n);
	}
	r->meddle = meddle;
}

static uint32_t made(const struct pv_rig *r, unsigned int vcpu)
{
	const struct vpmu_perf_context *ctx = &r->vcpu[vcpu].vcpu.task.ctx;

	return ctx->groups[0].n_all + ctx->groups[1].n_all;
}

static void reset(struct pv_rig *r, unsigned int vcpu)
{
	(void)pv_rig_call(r, vcpu, VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0);
	require(!r->n_maps, "nothing is mapped after RESET");
	pv_rig_service(r, 1 - vcpu);
	require(!made(r, 0) && !made(r, 1), "no event is left after RESET");
}

/* Records of branches, from and to anywhere. */
static void branches(struct pv_rig *r, unsigned int vcpu)
{
	uint8_t n = byte() % 64;

	while (n--)
		vpmu_script_branch(&r->vcpu[vcpu].script, n % 7, n & 8, n + 1, n + 2);
}

static void step(struct pv_rig *r)
{
	uint8_t what = byte();
	unsigned int vcpu = what >> 7;

	switch (what % 16) {
	case 0:
	case 1:
	case 2:
	case 3:
		batch(r, vcpu);
		break;
	case 4:
		setup(r, vcpu);
		break;
	case 5:
		open_1(r, vcpu);
		break;
	case 6:
	case 7:
		(void)pv_rig_do_1(r, vcpu, 1 + byte() % 6, byte() % 16);
		break;
	case 8:
		anything(r, vcpu);
		break;
	case 9:
		doorbell(r, vcpu);
		break;
	case 10:
	case 11:
		branches(r, vcpu);
		pv_rig_run_branches(r, vcpu, byte());
		break;
	case 12:
		(void)vpmu_pv_slice(r->vcpu[vcpu].pv);
		break;
	case 13:
		if (byte() % 8 == 0)
			reset(r, vcpu);
		break;
	case 14:
		if (byte() % 8 == 0)
			vpmu_pv_reset(r->vcpu[vcpu].pv);
		break;
	default:
		save_and_load(r);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vpmu_pv_config cfg = { .n_events = 24, .n_slots = 6, .overflows_max = 20,
				      .alone = true };
	const char *bad;
	struct pv_rig *r;

	if (size < 8)
		return 0;
	input = data;
	left = size;
	cfg.features = byte() % 32;
	cfg.period_min = byte();
	r = pv_rig_new(1 + byte() % 4, &cfg);
	require(r, "the configuration is allowed");
	memset(shadow, 0, sizeof(shadow));
	r->shadow = shadow;
	(void)pv_rig_setup_branches(r, 0);
	(void)pv_rig_setup_branches(r, 1);
	memcpy(shadow, r->ram, sizeof(shadow));
	r->meddle = meddle;
	while (left && !r->broken) {
		step(r);
		require(!r->locked, "the lock is free");
		require(!memcmp(shadow, r->ram, sizeof(shadow)), "only what was given is written");
	}
	r->meddle = NULL;
	bad = pv_rig_free(r);
	if (bad)
		fprintf(stderr, "%s\n", bad);
	require(!bad, "all is well in the end");
	return 0;
}
