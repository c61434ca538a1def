// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Two VMs whose guests do the same to the paravirtual PMU, on two vCPUs. One of them is
 * saved now and then and loaded on another host. Their memory, the answers to their
 * hypercalls and their interrupts are the same after each step.
 *
 * A vCPU that has been asked to serve does so at once, or later, when the input says so:
 * a VM moves also between an overflow and what the guest is told of it. There is a
 * counter for each event, since each host decides by itself which of several waits.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "pv_rig.h"

#define STATE_MAX	32768
#define OPERATIONS_MAX	4
#define IDS		3   /* number of version 2's; version 1 has one */
#define COUNTERS	(IDS + 1)

int LLVMFuzzerInitialize(int *argc, char ***argv);

struct vm {
	struct pv_rig *rig;
	bool held;                 /* kicks are noted, and not followed */
	bool kicked[PV_RIG_VCPUS];
	struct {
		uint32_t n_nmi, n_irq; /* on the hosts before */
	} before[PV_RIG_VCPUS];
	int64_t answer[1 + OPERATIONS_MAX]; /* results of the last call and its operations */
};

static struct vm stays, moves;

static struct vm *vm_of(const struct pv_rig *r)
{
	return stays.rig == r ? &stays : &moves;
}

/* Kicked: instead of the rig's own way to serve. */
static void service(void *arg)
{
	struct pv_rig_vcpu *v = arg;
	struct vm *vm = vm_of(v->rig);

	if (vm->held) {
		vm->kicked[v - v->rig->vcpu] = true;
		return;
	}
	vpmu_perf_service(&v->cpu);
	vpmu_pv_service(v->pv);
}

static struct pv_rig *host(const struct vpmu_pv_config *cfg)
{
	struct pv_rig *r = pv_rig_new(COUNTERS, cfg);
	unsigned int i;

	require(r, "the configuration is allowed");
	for (i = 0; i < PV_RIG_VCPUS; i++)
		r->vcpu[i].script.service = service;
	return r;
}

static void release(struct pv_rig *r)
{
	const char *bad = pv_rig_free(r);

	require(!bad, bad);
}

static void hold(struct vm *vm, bool held)
{
	unsigned int i;

	vm->held = held;
	for (i = 0; !held && i < PV_RIG_VCPUS; i++) {
		if (vm->kicked[i])
			service(&vm->rig->vcpu[i]);
		vm->kicked[i] = false;
		pv_rig_service(vm->rig, i);
	}
}

/* To a host that has never had a guest; with all its memory. */
static void move(struct vm *vm)
{
	struct pv_rig *from = vm->rig, *to = host(&from->cfg);
	static uint8_t state[STATE_MAX], again[STATE_MAX];
	size_t n, m;
	unsigned int i;

	memcpy(to->ram, from->ram, PV_RIG_RAM);
	require(!vpmu_pv_vm_save(from->vm, state, sizeof(state), &n), "it can be saved");
	vm->rig = to;
	require(!vpmu_pv_vm_load(to->vm, state, n), "what was saved can be loaded");
	require(!vpmu_pv_vm_save(to->vm, again, sizeof(again), &m) && m == n,
		"what was loaded can be saved");
	for (i = 0; i < PV_RIG_VCPUS; i++) {
		vm->before[i].n_nmi += from->vcpu[i].n_nmi;
		vm->before[i].n_irq += from->vcpu[i].n_irq;
	}
	release(from);
	for (i = 0; i < PV_RIG_VCPUS; i++)
		pv_rig_service(to, i);
}

static struct vpmu_pv_op operation(void)
{
	static const uint16_t often[] = { VPMU_PV_OPEN, VPMU_PV_ENABLE, VPMU_PV_ENABLE,
					  VPMU_PV_DISABLE, VPMU_PV_READ };
	uint8_t how = byte();
	struct vpmu_pv_op op = pv_rig_op(how & 7 ? often[how % 5] : byte() % 9, 1 + byte() % IDS);

	if (op.op == VPMU_PV_OPEN) {
		op.u.open.type = VPMU_PV_TYPE_RAW;
		op.u.open.config = how & 8 ? PV_BRANCHES : PV_INSTRUCTIONS;
		op.u.open.flags = byte() % 64;
		op.u.open.leader = how & 16 ? byte() % (IDS + 1) : 0;
	} else {
		op.slot = byte() % 8;
		op.u.enable.left = how & 8 ? 1 + byte() % 64 : 0;
		op.u.enable.period = how & 16 ? 1 + byte() % 64 : 0;
	}
	return op;
}

static void batch(struct vm *vm, unsigned int vcpu)
{
	struct vpmu_pv_op op[OPERATIONS_MAX];
	unsigned int i, n = 1 + byte() % OPERATIONS_MAX;

	for (i = 0; i < n; i++)
		op[i] = operation();
	vm->answer[0] = pv_rig_batch(vm->rig, vcpu, op, n);
	for (i = 0; i < n; i++)
		vm->answer[1 + i] = op[i].result | (int64_t)op[i].wrong << 32;
}

static void setup(struct vm *vm, unsigned int vcpu)
{
	uint8_t how = byte();

	vm->answer[0] = how & 1 ? pv_rig_setup_branches(vm->rig, vcpu) :
		pv_rig_setup(vm->rig, vcpu, how & 2 ? PV_RIG_SLOTS(vcpu) : 0, how & 4 ? how : 0);
}

static void branches(struct vm *vm, unsigned int vcpu)
{
	uint8_t n = byte() % 64;

	while (n--)
		vpmu_script_branch(&vm->rig->vcpu[vcpu].script, n % 7, n & 8, n + 1, n + 2);
}

static void step(struct vm *vm)
{
	uint8_t what = byte();
	unsigned int vcpu = what >> 7;

	memset(vm->answer, 0, sizeof(vm->answer));
	switch (what % 16) {
	case 0:
	case 1:
	case 2:
		batch(vm, vcpu);
		break;
	case 3:
		setup(vm, vcpu);
		break;
	case 4:
		vm->answer[0] = pv_rig_open_1(vm->rig, vcpu, 0, PV_INSTRUCTIONS, byte() % 64, 0);
		break;
	case 5:
		vm->answer[0] = pv_rig_do_1(vm->rig, vcpu, 1 + byte() % 6, 0);
		break;
	case 6:
	case 7:
	case 8:
		pv_rig_run_branches(vm->rig, vcpu, byte());
		break;
	case 9:
		branches(vm, vcpu);
		break;
	case 10:
		(void)vpmu_pv_slice(vm->rig->vcpu[vcpu].pv); /* a parked event does not move */
		break;
	case 11:
		hold(vm, true);
		break;
	case 12:
		hold(vm, false);
		break;
	default:
		if (vm == &moves)
			move(vm);
		break;
	}
}

/* So that few bytes do much: events that count and overflow. */
static void prelude(struct vm *vm)
{
	unsigned int i, vcpu;
	struct pv_rig *r = vm->rig;

	for (vcpu = 0; vcpu < PV_RIG_VCPUS; vcpu++)
		(void)pv_rig_setup(r, vcpu, PV_RIG_SLOTS(vcpu), 0);
	for (i = 1; i <= IDS; i++) {
		uint8_t overflow = byte();

		(void)pv_rig_do(r, i & 1, pv_rig_open(i, 0, PV_INSTRUCTIONS));
		(void)pv_rig_do(r, i & 1, pv_rig_enable(i, i, 1 + overflow % 16,
							 1 + overflow / 16));
	}
}

static void compare(void)
{
	unsigned int i;

	require(!memcmp(stays.rig->ram, moves.rig->ram, PV_RIG_RAM), "the memory is the same");
	require(!memcmp(stays.answer, moves.answer, sizeof(stays.answer)),
		"the answers are the same");
	for (i = 0; i < PV_RIG_VCPUS; i++) {
		const struct pv_rig_vcpu *a = &stays.rig->vcpu[i], *b = &moves.rig->vcpu[i];

		require(a->n_nmi == b->n_nmi + moves.before[i].n_nmi, "NMIs are the same");
		require(a->n_irq == b->n_irq + moves.before[i].n_irq, "interrupts are the same");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vpmu_pv_config cfg = { .n_events = 8, .n_slots = 6, .alone = true };
	void (*next)(struct vm *vm) = prelude;
	const uint8_t *at;
	size_t rest;

	if (size < 8)
		return 0;
	input = data;
	left = size;
	cfg.features = byte() % 32;
	cfg.overflows_max = 1 + byte() % 20;
	memset(&stays, 0, sizeof(stays));
	memset(&moves, 0, sizeof(moves));
	stays.rig = host(&cfg);
	moves.rig = host(&cfg);
	for (; left; next = step) {
		at = input;
		rest = left;
		next(&stays);
		input = at;
		left = rest;
		next(&moves);
		compare();
	}
	hold(&stays, false);
	hold(&moves, false);
	compare();
	release(stays.rig);
	release(moves.rig);
	return 0;
}

/* Inputs that chance takes long to find: features, a limit, three overflows, then steps. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	/* 50 instructions while kicks are held, a move, and then it serves. */
	static const uint8_t late[] = { 0x1f, 19, 0x93, 0x93, 0x93, 11, 0x86, 50, 13, 12 };
	/* Within one slice 15 overflows, a move, and as many: 20 are allowed. */
	static const uint8_t over[] = { 0x1f, 19, 0, 0, 0, 0x86, 15, 13, 0x86, 15 };

	(void)argc;
	(void)argv;
	(void)LLVMFuzzerTestOneInput(late, sizeof(late));
	return LLVMFuzzerTestOneInput(over, sizeof(over));
}
