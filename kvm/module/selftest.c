// SPDX-License-Identifier: GPL-2.0-only
/*
 * A self-test at load: a guest of a few instructions, on an engine that is only a number.
 * A core that was miscompiled must not get near a real guest.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/slab.h>

#include <vpmu/arch.h>
#include <vpmu/direct.h>

#include "selftest.h"

struct guest {
	struct vpmu_direct direct;
	struct vpmu_arch *arch;
	u64 instructions; /* retired */
	u64 deadline;     /* value of instructions, VPMU_NEVER: none */
	u32 pmis;
	bool kicked;
	int err;
};

static void guest_read_totals(void *ctx, u64 signals, struct vpmu_signal_words *totals)
{
	struct guest *g = ctx;

	memset(totals, 0, sizeof(*totals));
	totals->word[VPMU_SIGNAL_INSTRUCTIONS][VPMU_BANK_KERNEL] = g->instructions;
}

static void guest_set_deadlines(void *ctx, const struct vpmu_signal_words *left)
{
	u64 n = left->word[VPMU_SIGNAL_INSTRUCTIONS][VPMU_BANK_KERNEL];
	struct guest *g = ctx;

	g->deadline = n == VPMU_NEVER ? n : g->instructions + n;
}

static void guest_kick(void *ctx)
{
	struct guest *g = ctx;

	g->kicked = true;
}

static void guest_raise_pmi(void *ctx, bool mask)
{
	struct guest *g = ctx;

	g->pmis++;
}

static const struct vpmu_ops guest_ops = {
	.size = sizeof(guest_ops),
	.read_totals = guest_read_totals,
	.set_deadlines = guest_set_deadlines,
	.kick = guest_kick,
	.raise_pmi = guest_raise_pmi,
};

static void retire(struct guest *g, unsigned int n)
{
	while (n--) {
		if (++g->instructions == g->deadline)
			vpmu_silicon_expire(&g->direct.silicon);
		if (g->kicked) {
			g->kicked = false;
			vpmu_arch_service(g->arch);
		}
	}
}

static void expect(struct guest *g, const char *what, u64 found, u64 wanted)
{
	if (found == wanted)
		return;
	pr_err("self-test: %s is %#llx, not %#llx\n", what, found, wanted);
	g->err = -EINVAL;
}

static void wrmsr_expect(struct guest *g, u32 msr, u64 value, enum vpmu_result wanted)
{
	expect(g, "result of WRMSR", vpmu_arch_wrmsr(g->arch, msr, value), wanted);
	if (wanted == VPMU_HANDLED)
		retire(g, 1);
}

static void rdmsr_expect(struct guest *g, const char *what, u32 msr, u64 wanted)
{
	u64 value = 0;

	expect(g, "result of RDMSR", vpmu_arch_rdmsr(g->arch, msr, &value), VPMU_HANDLED);
	expect(g, what, value, wanted);
}

/*
 * PMC0 begins 5 instructions before its wrap; the WRMSR that enables it is the first of
 * them.
 */
static void run(struct guest *g)
{
	const u64 evtsel = 0xc0 | VPMU_EVTSEL_OS | VPMU_EVTSEL_INT | VPMU_EVTSEL_EN;

	wrmsr_expect(g, VPMU_MSR_GLOBAL_CTRL, 0, VPMU_HANDLED);
	wrmsr_expect(g, VPMU_MSR_PERFEVTSEL0, evtsel, VPMU_HANDLED);
	wrmsr_expect(g, VPMU_MSR_PERFEVTSEL0, evtsel | 1ull << 40, VPMU_FAULT);
	wrmsr_expect(g, VPMU_MSR_PMC0, (u32)-5, VPMU_HANDLED);
	wrmsr_expect(g, VPMU_MSR_FIXED_CTR_CTRL, VPMU_FIXED_OS, VPMU_HANDLED);
	wrmsr_expect(g, VPMU_MSR_GLOBAL_CTRL, 1ull << 32 | 1, VPMU_HANDLED);
	retire(g, 3);
	rdmsr_expect(g, "PMC0 before its wrap", VPMU_MSR_PMC0, 0xffffffffffff);
	rdmsr_expect(g, "GLOBAL_STATUS before the wrap", VPMU_MSR_GLOBAL_STATUS, 0);
	expect(g, "PMIs before the wrap", g->pmis, 0);
	retire(g, 1);
	expect(g, "PMIs", g->pmis, 1);
	rdmsr_expect(g, "GLOBAL_STATUS", VPMU_MSR_GLOBAL_STATUS, VPMU_STATUS_CHANGED | 1);
	retire(g, 7);
	wrmsr_expect(g, VPMU_MSR_GLOBAL_CTRL, 0, VPMU_HANDLED);
	rdmsr_expect(g, "PMC0", VPMU_MSR_PMC0, 7);
	rdmsr_expect(g, "FIXED_CTR0", VPMU_MSR_FIXED_CTR0, 12);
	wrmsr_expect(g, VPMU_MSR_GLOBAL_OVF_CTRL, VPMU_STATUS_CHANGED | 1, VPMU_HANDLED);
	rdmsr_expect(g, "GLOBAL_STATUS after its reset", VPMU_MSR_GLOBAL_STATUS, 0);
	expect(g, "PMIs at the end", g->pmis, 1);
}

static int prepare(struct guest *g)
{
	struct vpmu_silicon_config silicon = { .size = sizeof(silicon) };
	struct vpmu_arch_config arch = { .size = sizeof(arch) };
	struct vpmu_error why = { };
	size_t size;
	int err;

	g->deadline = VPMU_NEVER;
	silicon.model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
	silicon.supplied = VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS);
	silicon.ops = &guest_ops;
	silicon.ctx = g;
	err = vpmu_direct_init(&g->direct, &silicon);
	if (err)
		return err;

	arch.model = silicon.model;
	arch.version = 2;
	arch.n_fixed = 1;
	arch.provider = &g->direct.provider;
	arch.ops = &guest_ops;
	arch.ctx = g;
	err = vpmu_arch_size(&arch, &size, &why);
	if (err) {
		pr_err("self-test: %s\n", why.what);
		return err;
	}
	g->arch = kzalloc(size, GFP_KERNEL);
	if (!g->arch)
		return -ENOMEM;
	return vpmu_arch_init(g->arch, &arch, &why);
}

int vpmu_selftest(void)
{
	struct guest *g = kzalloc(sizeof(*g), GFP_KERNEL);
	int err;

	if (!g)
		return -ENOMEM;
	err = prepare(g);
	if (!err) {
		run(g);
		err = g->err;
	}
	kfree(g->arch);
	kfree(g);
	return err;
}
