// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A guest whose counter the host takes away for a while, and that is told. The
 * engine is the scripted one of the tests: it retires what it is told to.
 */
#include <stdio.h>

#include <vpmu/arch.h>
#include <vpmu/vcpu.h>

#include "script.h"

static struct vpmu_perf_cpu cpu;
static struct vpmu_vcpu vcpu;
static struct vpmu_arch *pmu;

static void service(void *arg)
{
	(void)arg;
	vpmu_perf_service(&cpu);
	vpmu_arch_service(pmu);
}

/* A guest's driver reads a count that may be incomplete. */
static void read_counter(const char *when)
{
	uint64_t count = 0, enabled = 0, running = 0, reason = 0;

	vpmu_arch_rdpmc(pmu, 0, true, &count);
	vpmu_arch_rdmsr(pmu, VPMU_MSR_LOSS_PMC(0) + VPMU_LOSS_ENABLED, &enabled);
	vpmu_arch_rdmsr(pmu, VPMU_MSR_LOSS_PMC(0) + VPMU_LOSS_RUNNING, &running);
	vpmu_arch_rdmsr(pmu, VPMU_MSR_LOSS_PMC(0) + VPMU_LOSS_REASON, &reason);
	printf("%s: count %d, enabled %d, running %d%s", when, (int)count, (int)enabled,
	       (int)running, (reason & 0xff) == VPMU_LOSS_LOST ? ", lost" : "");
	if (running && running != enabled)
		printf(": about %d", (int)((double)count * (double)enabled / (double)running));
	printf("\n");
}

int main(void)
{
	static uint64_t memory[4096];
	const struct vpmu_model *model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
	struct vpmu_perf_system host;
	struct vpmu_script engine;
	struct vpmu_arch_config arch = { .size = sizeof(arch), .model = model, .n_fixed = -1,
		.provider = &vcpu.provider, .ops = &engine.ops, .ctx = &engine,
		.cpuid_base = 0x40000100 };
	/* Taken branches: only GP counters count them. The host wants all eight. */
	struct vpmu_perf_attr attr = { .size = sizeof(attr), .cpu = -1, .event = {
		.size = sizeof(attr.event), .fixed = -1, .slot = -1, .select = 0x20c4,
		.banks = VPMU_BANKS_USER, .pinned = true } };
	static struct vpmu_perf_event taken[8];
	size_t size;

	vpmu_script_init(&engine, VPMU_SCRIPT_SUPPLIED);
	vpmu_perf_system_init(&host, model, engine.supplied, 400000000, 1600000);
	if (vpmu_perf_cpu_init(&cpu, &host, 0, &engine.ops, &engine) ||
	    vpmu_vcpu_init(&vcpu, &host, VPMU_POLICY_SHARED) ||
	    vpmu_arch_size(&arch, &size, NULL) || size > sizeof(memory) ||
	    vpmu_arch_init(pmu = (void *)memory, &arch, NULL))
		return 1;
	engine.silicon = &cpu.silicon;
	engine.service = service;
	vpmu_vcpu_load(&vcpu, &cpu);
	vpmu_vcpu_enter(&vcpu);

	vpmu_arch_wrmsr(pmu, VPMU_MSR_PERFEVTSEL0, 0x20c4 | VPMU_EVTSEL_USR | VPMU_EVTSEL_EN);
	vpmu_arch_wrmsr(pmu, VPMU_MSR_GLOBAL_CTRL, 1);
	for (int i = 0; i < 1000; i++)
		vpmu_script_step(&engine, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
	read_counter("alone");

	for (int i = 0; i < 8; i++)
		if (vpmu_perf_open(&taken[i], &attr, &cpu, NULL))
			return 1;
	for (int i = 0; i < 3000; i++)
		vpmu_script_step(&engine, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
	read_counter("with the host's eight");

	for (int i = 0; i < 8; i++)
		vpmu_perf_close(&taken[i]);
	vpmu_arch_wrmsr(pmu, VPMU_MSR_GLOBAL_CTRL, 0); /* a guest does this at a switch */
	/* The enable makes a failed event try again. */
	vpmu_arch_wrmsr(pmu, VPMU_MSR_GLOBAL_CTRL, 1);
	for (int i = 0; i < 1000; i++)
		vpmu_script_step(&engine, VPMU_BANK_USER, VPMU_SIGNAL_JMP);
	read_counter("alone again");
	return 0;
}
