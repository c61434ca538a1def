// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Version 6 of perfmon without an operating system: leaf 23H, the registers from
 * 1900H on, UnitMask2 and EQ, RDPMC user disable from ring 3, and auto counter reload
 * around straight code whose instructions are counted by hand. Prints a line per
 * case, of the second and later times (turns=N) only what is wrong.
 */
#include "bare.h"

#define GP(n)		(0x1900u + 4 * (n))
#define FX(n)		(0x1980u + 4 * (n))
#define CFG_A		1
#define CFG_B		2
#define CFG_C		3
#define EN_OS		0x420000 /* EN, OS */
#define EN_ALL		0x430000 /* EN, OS, USR */
#define INT		0x100000
#define MASK48		0xffffffffffffull
#define BIT(n)		(1ull << (n))

static volatile struct {
	unsigned int n;
	uint64_t rip, status, counter[2];
} pmi;

bool on_trap(struct frame *f)
{
	if (f->vector != 2)
		return false;
	wrmsr(MSR_GLOBAL, 0);
	pmi.n++;
	pmi.rip = f->rip;
	pmi.status = rdmsr(MSR_STATUS);
	pmi.counter[0] = rdmsr(GP(0));
	pmi.counter[1] = rdmsr(GP(1));
	return true;
}

static void off(void)
{
	wrmsr(MSR_GLOBAL, 0);
	for (unsigned int i = 0; i < 8; i++) {
		wrmsr(GP(i) + CFG_A, 0);
		wrmsr(GP(i) + CFG_B, 0);
		wrmsr(GP(i), 0);
	}
	wrmsr(MSR_FIXED_CTRL, 0);
	wrmsr(FX(0) + CFG_B, 0);
	wrmsr(MSR_RESET, rdmsr(MSR_STATUS));
	pmi.n = 0;
	apic_write(APIC_LVTPC, LVT_NMI);
}

/*
 * With the counters @which on: the enabling WRMSR, which counts, 3 instructions, then
 * @turns times 5 instructions of which one, the last, is a branch, and 3 more.
 */
static void count(uint64_t which, uint32_t turns)
{
	asm volatile("wrmsr\n\t"
		     "mov %[turns], %%r8d\n\t"
		     "nop\n\t"
		     "nop\n"
		     "1: nop\n\t"
		     "nop\n\t"
		     "nop\n\t"
		     "dec %%r8d\n\t"
		     "jnz 1b\n\t"
		     "xor %%eax, %%eax\n\t"
		     "xor %%edx, %%edx\n\t"
		     "nop\n\t"
		     "wrmsr"
		     : "+a" (which)
		     : "c" (MSR_GLOBAL), "d" ((uint32_t)(which >> 32)), [turns] "r" (turns)
		     : "r8", "memory");
}

#define INSTRUCTIONS(turns)	(7 + 5 * (turns))
#define BRANCHES(turns)		(turns)

static void leaf(uint32_t subleaf, uint32_t *r)
{
	asm volatile("cpuid" : "=a" (r[0]), "=b" (r[1]), "=c" (r[2]), "=d" (r[3])
		     : "a" (0x23), "c" (subleaf));
}

static bool pebs;

static bool check_leaf(void)
{
	uint32_t r[4];
	uint64_t fixed;
	bool hides;

	leaf(0, r);
	pebs = r[0] >> 4 == 3; /* architectural PEBS: pebs.c's */
	expect("leaf 23H, sub-leaves", r[0] & ~(pebs ? 0x30u : 0u), 0xf);
	expect("leaf 23H, UnitMask2 and EQ", r[1] & 3, 3);
	hides = r[1] & 4;
	leaf(1, r);
	expect("leaf 23H.1, GP counters", r[0], 0xff);
	fixed = pebs ? 7 : 0xf; /* a model with PEBS of this kind counts no slots */
	expect("leaf 23H.1, fixed counters", r[1], fixed);
	leaf(2, r);
	expect("leaf 23H.2, reloaded", r[0] | (uint64_t)r[1] << 32, 0xff | fixed << 32);
	expect("leaf 23H.2, causes", r[2] | (uint64_t)r[3] << 32, 0xff | fixed << 32);
	leaf(3, r);
	expect("leaf 23H.3, events", r[0], pebs ? 0x27 : 0xa7);
	asm volatile("cpuid" : "=a" (r[0]), "=b" (r[1]), "=c" (r[2]), "=d" (r[3])
		     : "a" (7), "c" (1));
	expect("leaf 7.1 tells of it", r[0] >> 8 & 1, 1);
	return hides;
}

static void check_block(void)
{
	uint64_t value;

	off();
	wrmsr(GP(0) + CFG_A, EN_OS | 0xc0);
	wrmsr(GP(7) + CFG_A, EN_OS | 0xc4);
	wrmsr(GP(0), 1000);
	wrmsr(FX(0), 2000);
	wrmsr(MSR_FIXED_CTRL, 1);
	count(0x100000081, 10);
	expect("1900H counts instructions", rdmsr(GP(0)), 1000 + INSTRUCTIONS(10));
	expect("0C1H is the same", rdmsr(MSR_PMC0), 1000 + INSTRUCTIONS(10));
	expect("191CH counts branches", rdmsr(GP(7)), BRANCHES(10));
	expect("1980H counts instructions", rdmsr(FX(0)), 2000 + INSTRUCTIONS(10));
	expect("309H is the same", rdmsr(MSR_FIXED0), 2000 + INSTRUCTIONS(10));
	expect("186H is 1901H", rdmsr(MSR_EVTSEL0), EN_OS | 0xc0);
	expect("1900H wants 48 bits", try_wrmsr(GP(0), BIT(48)), 1);
	expect("1901H has no pin control", try_wrmsr(GP(0) + CFG_A, BIT(19)), 1);
	expect("1902H has these counters", try_wrmsr(GP(0) + CFG_B, BIT(8)), 1);
	expect("1903H has 32 bits", try_wrmsr(GP(0) + CFG_C, BIT(32)), 1);
	expect("1903H has PEBS above them, or not", try_wrmsr(GP(0) + CFG_C, BIT(62)), !pebs);
	wrmsr(GP(0) + CFG_C, 0);
	expect("1920H does not exist", try_rdmsr(GP(8), &value), 1);
	expect("1981H does not exist", try_rdmsr(FX(0) + CFG_A, &value), 1);
	expect("the next fixed counter does not exist", try_rdmsr(FX(pebs ? 3 : 4), &value), 1);
}

static void check_selectors(void)
{
	off();
	wrmsr(GP(0) + CFG_A, EN_OS | 0xc4 | 3ull << 40); /* not an event */
	wrmsr(GP(1) + CFG_A, EN_OS | 0xc4 | BIT(36) | BIT(24));
	wrmsr(GP(2) + CFG_A, EN_OS | 0xc4 | BIT(36) | BIT(25));
	wrmsr(GP(3) + CFG_A, EN_OS | 0xc4 | BIT(36));
	count(0xf, 10);
	expect("UnitMask2 names another event", rdmsr(GP(0)), 0);
	expect("equal to 1", rdmsr(GP(1)), BRANCHES(10));
	expect("equal to 2", rdmsr(GP(2)), 0);
	expect("equal to 0, which nobody counts", rdmsr(GP(3)), 0);
}

/* ---- RDPMC in ring 3 */

static volatile uint64_t seen[4];

static void read_all(uint64_t arg)
{
	static const uint32_t index[4] = { 0, 1, 0x40000000, 0x40000001 };

	(void)arg;
	for (unsigned int i = 0; i < 4; i++) {
		uint32_t a, d;

		asm volatile("rdpmc" : "=a" (a), "=d" (d) : "c" (index[i]));
		seen[i] = a | (uint64_t)d << 32;
	}
}

static void check_hidden(void)
{
	static const char *const name[4] = {
		"ring 3 reads counter 0", "ring 3 reads 0 of counter 1",
		"ring 3 reads 0 of fixed counter 0", "ring 3 reads fixed counter 1",
	};
	static const uint64_t want[4] = { 100, 0, 0, 401 };
	uint64_t cr4, value = 0;

	off();
	asm volatile("mov %%cr4, %0" : "=r" (cr4));
	asm volatile("mov %0, %%cr4" : : "r" (cr4 | 0x100));
	wrmsr(GP(0), 100);
	wrmsr(GP(1), 200);
	wrmsr(FX(0), 300);
	wrmsr(FX(1), 401);
	wrmsr(GP(1) + CFG_A, BIT(37) | 0xc0);
	wrmsr(MSR_FIXED_CTRL, BIT(33));
	user_call(read_all, 0);
	for (unsigned int i = 0; i < 4; i++)
		expect(name[i], seen[i], want[i]);
	expect("ring 0 reads counter 1", try_rdpmc(1, &value) ? 0 : value, 200);
	expect("ring 0 reads fixed counter 0", try_rdpmc(0x40000000, &value) ? 0 : value, 300);
	asm volatile("mov %0, %%cr4" : : "r" (cr4));
}

/* ---- auto counter reload */

static void check_reload(void)
{
	uint64_t n = INSTRUCTIONS(1000);

	/* a period of 7 by itself */
	off();
	wrmsr(GP(0) + CFG_A, EN_OS | 0xc0);
	wrmsr(GP(0) + CFG_B, BIT(0));
	wrmsr(GP(0) + CFG_C, (uint32_t)-7);
	wrmsr(GP(0), MASK48 + 1 - 7);
	count(1, 1000);
	expect("reload by itself", rdmsr(GP(0)), MASK48 + 1 - 7 + n % 7);
	expect("... sets no status", rdmsr(MSR_STATUS), 0);
	expect("... and raises no PMI", pmi.n, 0);

	/* each overflow of counter 0 at 13 instructions puts 50 into counter 1 */
	off();
	wrmsr(GP(0) + CFG_A, EN_OS | 0xc0);
	wrmsr(GP(0) + CFG_B, BIT(0));
	wrmsr(GP(0) + CFG_C, (uint32_t)-13);
	wrmsr(GP(0), MASK48 + 1 - 13);
	wrmsr(GP(1) + CFG_A, EN_OS | 0xc0);
	wrmsr(GP(1) + CFG_B, BIT(0));
	wrmsr(GP(1) + CFG_C, 50);
	wrmsr(FX(0) + CFG_B, BIT(0));
	wrmsr(FX(0) + CFG_C, 0x80000000);
	wrmsr(MSR_FIXED_CTRL, 1);
	count(0x100000003, 1000);
	expect("reload by another one", rdmsr(GP(1)), 50 + n % 13);
	expect("reload of a fixed one", rdmsr(FX(0)), 0xffff80000000 + n % 13);

	/* branches cause it, at each 4th: instructions since the last of them */
	off();
	wrmsr(GP(0) + CFG_A, EN_OS | 0xc4);
	wrmsr(GP(0) + CFG_B, BIT(0));
	wrmsr(GP(0) + CFG_C, (uint32_t)-4);
	wrmsr(GP(0), MASK48 + 1 - 4);
	wrmsr(GP(1) + CFG_A, EN_OS | 0xc0);
	wrmsr(GP(1) + CFG_B, BIT(0));
	wrmsr(GP(1) + CFG_C, 0);
	count(3, 1001);
	expect("reload by branches", rdmsr(GP(0)), MASK48 + 1 - 3);
	expect("instructions since", rdmsr(GP(1)), 5 + 3);
}

/*
 * The purpose of reloading: a PMI when 20 branches come before @instructions are over.
 * Branches reload the instructions, and these reload both.
 */
static void rate(uint32_t instructions)
{
	off();
	wrmsr(GP(0) + CFG_A, EN_OS | INT | 0xc4);
	wrmsr(GP(0) + CFG_B, BIT(1));
	wrmsr(GP(0) + CFG_C, (uint32_t)-20);
	wrmsr(GP(0), MASK48 + 1 - 20);
	wrmsr(GP(1) + CFG_A, EN_OS | 0xc0);
	wrmsr(GP(1) + CFG_B, BIT(0) | BIT(1));
	wrmsr(GP(1) + CFG_C, -instructions);
	wrmsr(GP(1), MASK48 + 1 - instructions);
	wrmsr(MSR_DEBUGCTL, BIT(12)); /* counters stand still from the PMI on */
	count(3, 1000);
	wrmsr(MSR_DEBUGCTL, 0);
}

/*
 * Any 95 instructions of the turns have 19 branches, and the first 95 with the 4 before
 * them 18. Of 101 the first have 19, as they end 2 instructions into a turn; the 20th
 * of the next ones is their 98th.
 */
static void check_rate(void)
{
	rate(95);
	expect("too low a rate: PMIs", pmi.n, 0);
	expect("too low a rate: status", rdmsr(MSR_STATUS), 0);
	expect("too low a rate: instructions", rdmsr(GP(1)),
	       MASK48 + 1 - 95 + INSTRUCTIONS(1000) % 95);
	rate(101);
	expect("a high rate: PMIs", pmi.n, 1);
	expect("a high rate: status", pmi.status, BIT(0) | BIT(59) | BIT(63));
	expect("a high rate: branches", pmi.counter[0], 0);
	expect("a high rate: instructions", pmi.counter[1], MASK48 + 1 - 101);
}

int main(const char *line)
{
	uint64_t turns = option(line, "turns", 1);

	apic_write(APIC_SVR, 0x1ff);
	for (; turns; turns--) {
		bool hides = check_leaf();

		check_block();
		check_selectors();
		if (hides)
			check_hidden();
		check_reload();
		check_rate();
		quiet = true;
	}
	return 0x21;
}
