// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A saved state that an attacker has changed: loading it is refused, or leaves a
 * PMU that the guest could have reached by itself.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vpmu/arch.h>
#include <vpmu/direct.h>

#include "script.h"

#define STATE_MAX	8192
#define ALIGNED		__attribute__((aligned(8)))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct machine {
	struct vpmu_script script;
	struct vpmu_direct direct;
	uint8_t memory[STATE_MAX] ALIGNED;
} machine;

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

static struct vpmu_arch *arch(void)
{
	return (struct vpmu_arch *)(void *)machine.memory;
}

static void service(void *arg)
{
	(void)arg;
	vpmu_arch_service(arch());
}

/* Guest memory that does not exist: PEBS is offered, and its buffer is never there. */
static int absent(void *ctx, uint64_t address, bool write, uint64_t *gpa)
{
	(void)ctx;
	(void)address;
	(void)write;
	(void)gpa;
	return -VPMU_EFAULT;
}

static int absent_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	(void)ctx;
	(void)gpa;
	(void)buf;
	(void)size;
	return -VPMU_EFAULT;
}

static int absent_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size)
{
	(void)ctx;
	(void)gpa;
	(void)buf;
	(void)size;
	return -VPMU_EFAULT;
}

static void no_sample(void *ctx, struct vpmu_sample *s)
{
	(void)ctx;
	memset(s, 0, sizeof(*s));
}

static void unwatched(void *ctx, bool on)
{
	(void)ctx;
	(void)on;
}

static void start(uint8_t choice)
{
	struct vpmu_silicon_config silicon = { .size = sizeof(silicon) };
	struct vpmu_arch_config cfg = { .size = sizeof(cfg), .n_fixed = -1 };
	struct vpmu_error err;
	size_t size, n = 0;
	uint64_t pebs;
	uint8_t most;

	while (vpmu_model_at(n))
		n++;
	memset(&machine, 0, sizeof(machine));
	vpmu_script_init(&machine.script, VPMU_SCRIPT_SUPPLIED);
	machine.script.ops.gva_to_gpa = absent;
	machine.script.ops.gpa_read = absent_read;
	machine.script.ops.gpa_write = absent_write;
	machine.script.ops.get_sample = no_sample;
	machine.script.ops.watch_lbr = unwatched;
	silicon.model = vpmu_model_at(choice % n);
	silicon.supplied = VPMU_SCRIPT_SUPPLIED;
	silicon.ops = &machine.script.ops;
	silicon.ctx = &machine.script;
	require(!vpmu_direct_init(&machine.direct, &silicon), "direct is set up");
	machine.script.silicon = &machine.direct.silicon;
	machine.script.service = service;

	cfg.model = silicon.model;
	most = cfg.model->version_most ? cfg.model->version_most : cfg.model->version;
	cfg.version = (uint8_t)(most - choice / n % most);
	cfg.n_fixed = cfg.version == 1 ? 0 : -1;
	cfg.capabilities = cfg.model->capabilities;
	pebs = cfg.capabilities & VPMU_CAP_PEBS;
	if (cfg.version < 2 || (cfg.version > 5) != (pebs == VPMU_CAP_PEBS_ARCH))
		cfg.capabilities &= ~pebs;
	if (cfg.version < 2)
		cfg.capabilities &= ~VPMU_CAP_AMD_LBR;
	cfg.cpuid_base = choice & 0x80 ? 0x40000100 : 0;
	cfg.provider = &machine.direct.provider;
	cfg.ops = &machine.script.ops;
	cfg.ctx = &machine.script;
	require(!vpmu_arch_size(&cfg, &size, &err), "the configuration is allowed");
	require(size <= sizeof(machine.memory), "it fits");
	require(!vpmu_arch_init(arch(), &cfg, &err), "the PMU is set up");
}

/* Something worth saving. Registers that a version lacks fault, and that is fine. */
static void use(void)
{
	static const struct {
		uint32_t msr;
		uint64_t value;
	} write[] = {
		{ VPMU_MSR_PERFEVTSEL0, 0x5300c0 },   { VPMU_MSR_PERFEVTSEL0 + 1, 0x4101c4 },
		{ VPMU_MSR_PERFEVTSEL0 + 2, 0x43ffff }, { VPMU_MSR_PMC0, 0xfffffff0 },
		{ VPMU_MSR_FIXED_CTR0, 0xfffffffffff0 }, { VPMU_MSR_FIXED_CTR_CTRL, 0x0bb },
		{ VPMU_MSR_DEBUGCTL, 0x5000 },        { VPMU_MSR_GLOBAL_CTRL, 0x300000003 },
		{ VPMU_MSR_DEBUGCTL, 0x1000 },        { VPMU_MSR_AMD_PERF_CTL0, 0x200005300c0 },
		{ VPMU_MSR_AMD_PERF_CTL0 + 1, 0xfffffffffff0 },
		{ VPMU_MSR_AMD_PERF_CTL0 + 2, 0x1004101c9 },
		{ VPMU_MSR_K7_EVTSEL0 + 2, 0x100004300c2 },
		{ VPMU_MSR_K7_EVTSEL0 + 3, 0xf004300ff },
		{ VPMU_MSR_PMC_GP(3) + VPMU_PMC_CFG_A, 0x831000510c4 },
		{ VPMU_MSR_PMC_GP(0) + VPMU_PMC_CFG_B, 0x100000003 },
		{ VPMU_MSR_ARCH_LBR_CTL, 0x7f0007 },
		{ VPMU_MSR_PMC_GP(2) + VPMU_PMC_CFG_A, 0x8005300c4 },
		{ VPMU_MSR_PMC_GP(0) + VPMU_PMC_CFG_C, 0xfffffffa },
		{ VPMU_MSR_PMC_FX(1) + VPMU_PMC_CFG_B, 1 },
	};
	size_t i;

	for (i = 0; i < sizeof(write) / sizeof(write[0]); i++)
		vpmu_arch_wrmsr(arch(), write[i].msr, write[i].value);
	vpmu_arch_svme(arch(), true);
	for (i = 0; i < 20; i++)
		vpmu_script_step(&machine.script, i % 2, VPMU_SIGNAL_JCC_TAKEN);
}

/* A register's value could have been written there. */
static void check_register(uint32_t msr, uint32_t by)
{
	uint64_t value;

	if (vpmu_arch_rdmsr(arch(), msr, &value) == VPMU_HANDLED)
		require(vpmu_arch_wrmsr(arch(), by, value) == VPMU_HANDLED,
			"a loaded register holds what a guest may write");
}

/* AMD's registers take everything, and keep all that they had. */
static void check_amd(uint32_t msr)
{
	uint64_t value, after = 0;

	if (vpmu_arch_rdmsr(arch(), msr, &value) != VPMU_HANDLED)
		return;
	vpmu_arch_wrmsr(arch(), msr, value);
	vpmu_arch_rdmsr(arch(), msr, &after);
	require(after == value, "a loaded register of AMD's keeps its value");
}

static void check(void)
{
	size_t size, used, i;
	static uint8_t again[STATE_MAX];

	require(!vpmu_arch_save(arch(), NULL, 0, &size), "a loaded state can be saved");
	require(size <= sizeof(again) && !vpmu_arch_save(arch(), again, size, &used) &&
		used == size, "as large as it says");
	for (i = 0; i < 100; i++) {
		vpmu_script_step(&machine.script, i % 4, VPMU_SIGNAL_CALL);
		vpmu_script_branch(&machine.script, VPMU_BRANCH_CALL, i & 1, i, i + 1);
		vpmu_arch_branched(arch());
	}
	for (i = 0; i < 8; i++) {
		check_register(VPMU_MSR_PERFEVTSEL0 + i, VPMU_MSR_PERFEVTSEL0 + i);
		check_register(VPMU_MSR_A_PMC0 + i, VPMU_MSR_A_PMC0 + i);
		check_register(VPMU_MSR_FIXED_CTR0 + i, VPMU_MSR_FIXED_CTR0 + i);
	}
	for (i = 0; i < 32; i++) {
		check_register(VPMU_MSR_PMC_GP(0) + (uint32_t)i, VPMU_MSR_PMC_GP(0) + (uint32_t)i);
		check_register(VPMU_MSR_PMC_FX(0) + (uint32_t)i, VPMU_MSR_PMC_FX(0) + (uint32_t)i);
	}
	for (i = 0; i < 16; i++)
		check_amd(VPMU_MSR_AMD_PERF_CTL0 + (uint32_t)i);
	for (i = 0; i < 8; i++)
		check_amd(VPMU_MSR_K7_EVTSEL0 + (uint32_t)i);
	check_amd(VPMU_MSR_AMD_GLOBAL_CTRL);
	vpmu_arch_svme(arch(), false);
	check_register(VPMU_MSR_FIXED_CTR_CTRL, VPMU_MSR_FIXED_CTR_CTRL);
	check_register(VPMU_MSR_GLOBAL_CTRL, VPMU_MSR_GLOBAL_CTRL);
	check_register(VPMU_MSR_DEBUGCTL, VPMU_MSR_DEBUGCTL);
	check_register(VPMU_MSR_GLOBAL_STATUS, VPMU_MSR_GLOBAL_OVF_CTRL);
	vpmu_arch_smm(arch(), false);
	check_register(VPMU_MSR_GLOBAL_CTRL, VPMU_MSR_GLOBAL_CTRL);
	if (machine.script.broken)
		fprintf(stderr, "%s\n", machine.script.broken);
	require(!machine.script.broken, "the core keeps to ops.h");
	vpmu_arch_reset(arch(), false);
}

/* Three bytes of the input change one byte of the state. */
static void change(uint8_t *state, size_t n, const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3)
		state[(data[0] | data[1] << 8) % n] ^= data[2];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t state[STATE_MAX];
	size_t n;

	if (size < 2)
		return 0;
	start(data[0]);
	use();
	require(!vpmu_arch_save(arch(), state, sizeof(state), &n), "saved");
	if (data[1] & 1) {
		n = size - 2 < n ? size - 2 : n;
		memcpy(state, data + 2, n);
	} else {
		change(state, n, data + 2, size - 2);
	}
	start(data[1] & 2 ? data[0] : data[1] / 4); /* or another configuration */
	if (!vpmu_arch_load(arch(), state, n))
		check();
	return 0;
}
