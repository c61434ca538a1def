// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A PMU on the simplest of engines: it retires one instruction at a time. */
#include <stdio.h>

#include <vpmu/arch.h>
#include <vpmu/direct.h>

struct cpu {
	uint64_t retired[VPMU_BANK_COUNT], until[VPMU_BANK_COUNT];
	bool service;
	struct vpmu_direct direct;
	struct vpmu_arch *pmu;
};

static void read_totals(void *ctx, uint64_t signals, struct vpmu_signal_words *totals)
{
	if (signals & VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS))
		memcpy(totals->word[VPMU_SIGNAL_INSTRUCTIONS], ((struct cpu *)ctx)->retired,
		       sizeof(totals->word[0]));
}

static void set_deadlines(void *ctx, const struct vpmu_signal_words *left)
{
	const uint64_t *more = left->word[VPMU_SIGNAL_INSTRUCTIONS];
	struct cpu *c = ctx;

	for (int b = 0; b < VPMU_BANK_COUNT; b++)
		c->until[b] = more[b] == VPMU_NEVER ? VPMU_NEVER : c->retired[b] + more[b];
}

static void kick(void *ctx) { ((struct cpu *)ctx)->service = true; }

static void raise_pmi(void *ctx, bool mask)
{
	printf("PMI after instruction %d%s\n", (int)((struct cpu *)ctx)->retired[VPMU_BANK_USER],
	       mask ? "; LVTPC masks itself" : "");
}

static void retire(struct cpu *c, enum vpmu_bank bank)
{
	if (++c->retired[bank] == c->until[bank])
		vpmu_silicon_expire(&c->direct.silicon);
	if (c->service) {
		c->service = false;
		vpmu_arch_service(c->pmu);
	}
}

static void wrmsr(struct cpu *c, uint32_t msr, uint64_t value)
{
	if (vpmu_arch_wrmsr(c->pmu, msr, value) == VPMU_HANDLED) /* else: #GP(0) */
		retire(c, VPMU_BANK_KERNEL); /* under what it has set */
}

int main(void)
{
	static struct cpu c = { .until = { VPMU_NEVER, VPMU_NEVER, VPMU_NEVER, VPMU_NEVER } };
	static uint64_t memory[1024], value;
	const struct vpmu_ops ops = { .size = sizeof(ops), .read_totals = read_totals,
		.set_deadlines = set_deadlines, .kick = kick, .raise_pmi = raise_pmi };
	const struct vpmu_model *model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
	struct vpmu_silicon_config silicon = { .size = sizeof(silicon), .model = model,
		.supplied = VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS), .ops = &ops, .ctx = &c };
	struct vpmu_arch_config arch = { .size = sizeof(arch), .model = model, .n_fixed = -1,
		.provider = &c.direct.provider, .ops = &ops, .ctx = &c };
	size_t size;

	if (vpmu_direct_init(&c.direct, &silicon) || vpmu_arch_size(&arch, &size, NULL) ||
	    size > sizeof(memory) || vpmu_arch_init(c.pmu = (void *)memory, &arch, NULL))
		return 1;
	wrmsr(&c, VPMU_MSR_PMC0, (uint32_t)-1000);
	wrmsr(&c, VPMU_MSR_PERFEVTSEL0, 0xc0 | VPMU_EVTSEL_USR | VPMU_EVTSEL_INT | VPMU_EVTSEL_EN);
	wrmsr(&c, VPMU_MSR_GLOBAL_CTRL, 1);
	for (int i = 0; i < 2500; i++)
		retire(&c, VPMU_BANK_USER);
	vpmu_arch_rdpmc(c.pmu, 0, true, &value);
	printf("counter 0: %d\n", (int)value);
	return 0;
}
