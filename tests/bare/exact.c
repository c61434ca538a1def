// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Counts and overflows to the very instruction, without an operating system:
 * block.S with an overflow at each of its instructions and branches in turn; the
 * LVTPC's modes and mask; HLT; what RESET and INIT do. Prints a line per case.
 */
#include "bare.h"

#define TSC			0x10
#define APIC_BASE		0x1b
#define APIC_BASE_EXTD		0x400
#define X2APIC_TIMER_COUNT	0x838
#define X2APIC_TIMER_NOW	0x839
#define CPUID_X2APIC		(1u << 21) /* 1:ECX */

struct step {
	uint64_t next, branch;
};
extern const struct step path[], path_end[];
extern uint64_t block_msr, block_on, block_bad;
extern char pf_stub[], gp_stub[], ud_stub[], int_stub[], leave_stub[], syscall_stub[];
extern char far_code[], far_code_end[];
void block(void);

static unsigned int version;	/* AMD: 2 with PerfMonV2, else 1 */
static bool amd, ext, fixed;	/* ext: AMD's PerfCtrExtCore */

/* The register that stands for one of Intel's. */
static uint32_t reg(uint32_t msr)
{
	uint32_t n;

	if (!amd)
		return msr;
	switch (msr) {
	case MSR_PMC0: case MSR_PMC0 + 1:
		n = msr - MSR_PMC0;
		return ext ? 0xc0010201 + 2 * n : 0xc0010004 + n;
	case MSR_EVTSEL0: case MSR_EVTSEL0 + 1:
		n = msr - MSR_EVTSEL0;
		return ext ? 0xc0010200 + 2 * n : 0xc0010000 + n;
	case MSR_STATUS: return 0xc0000300;
	case MSR_GLOBAL: return 0xc0000301;
	default: return 0xc0000302; /* MSR_RESET */
	}
}

static uint64_t get(uint32_t msr) { return rdmsr(reg(msr)); }
static void put(uint32_t msr, uint64_t value) { wrmsr(reg(msr), value); }

/* The value to write so that @k are left: Intel's old address extends the sign. */
static uint64_t minus(uint32_t msr, uint64_t k)
{
	return msr == MSR_PMC0 && !amd ? (uint32_t)-k : -k & 0xffffffffffff;
}
static volatile struct {
	unsigned int n;
	uint64_t rip, status, lvtpc, vector;
} pmi;

static void verdict(bool good, const char *name)
{
	print(good ? "ok " : "not ok ");
	print(name);
	if (good)
		print("\n");
	else
		print(": ");
}

static void found(const char *what, uint64_t value, uint64_t want)
{
	print(what);
	print(" is 0x");
	print_number(value, 16);
	print(", not 0x");
	print_number(want, 16);
	print("\n");
}

static void expect_in(const char *name, const char *what, uint64_t value, uint64_t want)
{
	verdict(value == want, name);
	if (value != want)
		found(what, value, want);
}

bool on_trap(struct frame *f)
{
	if (f->vector != 2 && f->vector != VECTOR_PMI)
		return false;
	pmi.n++;
	pmi.rip = f->rip;
	pmi.vector = f->vector;
	pmi.lvtpc = apic_read(APIC_LVTPC);
	if (version > 1)
		pmi.status = get(MSR_STATUS);
	if (f->vector == VECTOR_PMI)
		apic_write(APIC_EOI, 0);
	return true;
}

/* ---- block.S */

struct mode {
	const char *name;
	uint32_t counter, msr;	/* register of the counter; register that enables it */
	uint64_t on, event, fixed;
	uint64_t status;	/* its bit of GLOBAL_STATUS */
	bool branches;
	unsigned int version;	/* that it needs */
};

static const struct mode modes[] = {
	{ "instructions, fixed counter", MSR_FIXED0, MSR_GLOBAL, 1ull << 32, 0, 0xb,
	  1ull << 32, false, 2 },
	{ "instructions, GLOBAL_CTRL", MSR_PMC0, MSR_GLOBAL, 1, EVTSEL_ON | 0xc0, 0,
	  1, false, 2 },
	{ "instructions, PERFEVTSEL", MSR_PMC0, MSR_EVTSEL0, EVTSEL_ON | 0xc0, 0, 0,
	  1, false, 1 },
	{ "branches, GLOBAL_CTRL", MSR_PMC0, MSR_GLOBAL, 1, EVTSEL_ON | 0xc4, 0,
	  1, true, 2 },
	{ "branches, PERFEVTSEL", MSR_PMC0, MSR_EVTSEL0, EVTSEL_ON | 0xc4, 0, 0,
	  1, true, 1 },
};

/* AMD's branches are C2H. */
static uint64_t selector(uint64_t intel)
{
	return amd && (intel & 0xff) == 0xc4 ? intel ^ 0xc4 ^ 0xc2 : intel;
}

static void off(void)
{
	put(MSR_EVTSEL0, 0);
	if (version < 2)
		return;
	put(MSR_GLOBAL, 0);
	if (fixed)
		put(MSR_FIXED_CTRL, 0);
	put(MSR_RESET, get(MSR_STATUS));
}

/* The block, with the counter at @start; returns what it is afterwards. */
static uint64_t run(const struct mode *m, uint64_t start)
{
	off();
	for (int i = 8; i <= 10; i++) {
		low[i] &= ~1ull;
		asm volatile("invlpg (%0)" : : "r" ((uint64_t)i << 21) : "memory");
	}
	pmi.n = 0;
	apic_write(APIC_LVTPC, LVT_NMI);
	put(m->counter, start);
	if (m->event)
		put(MSR_EVTSEL0, selector(m->event));
	if (m->fixed)
		put(MSR_FIXED_CTRL, m->fixed);
	if (version > 1 && m->msr != MSR_GLOBAL)
		put(MSR_GLOBAL, 1);
	block_msr = reg(m->msr);
	block_on = m->msr == MSR_EVTSEL0 ? selector(m->on) : m->on;
	block();
	return get(m->counter);
}

/* AMD's APIC leaves LVTPC as it is. */
static uint32_t masked(void) { return amd ? 0 : LVT_MASKED; }

/* Returns what is wrong with the overflow at number @k, after which @next follows. */
static const char *overflow(const struct mode *m, uint64_t k, uint64_t next,
			    uint64_t *value, uint64_t *want)
{
	run(m, minus(m->counter, k));
	*value = pmi.n;
	*want = 1;
	if (pmi.n != 1)
		return "the number of PMIs";
	*value = pmi.rip;
	*want = next;
	if (pmi.rip != next)
		return "the address it found";
	*value = pmi.lvtpc;
	*want = LVT_NMI | masked();
	if (pmi.lvtpc != *want)
		return "LVTPC in the handler";
	*value = pmi.status & m->status;
	*want = m->status;
	if (version > 1 && !(pmi.status & m->status))
		return "the counter's status bit";
	return NULL;
}

static void check_mode(const struct mode *m)
{
	const char *what = NULL;
	uint64_t n = 0, k = 0, value, want, next = 0;

	for (const struct step *s = path; s < path_end; s++)
		n += m->branches ? s->branch : 1;
	print("# ");
	print_number(n, 10);
	print(" events\n");
	expect_in(m->name, "the count", run(m, 0), n);

	for (const struct step *s = path; s < path_end && !what; s++) {
		if (m->branches && !s->branch)
			continue;
		next = s->next;
		what = overflow(m, ++k, next, &value, &want);
	}
	print(what ? "not ok " : "ok ");
	print(m->name);
	print(", overflows");
	if (!what) {
		print("\n");
		return;
	}
	print(": at event ");
	print_number(k, 10);
	print(", ");
	found(what, value, want);
}

/* ---- LVTPC, HLT */

/* Ten NOPs of which the last @n - 1 are counted, after WRMSR; their address. */
static uint64_t nops(uint32_t lvtpc, uint32_t k)
{
	uint64_t at;

	off();
	pmi.n = 0;
	apic_write(APIC_LVTPC, lvtpc);
	put(MSR_PMC0, minus(MSR_PMC0, k));
	if (version > 1)
		put(MSR_GLOBAL, 1);
	asm volatile("lea 1f(%%rip), %0\n\t"
		     "sti\n\t"
		     "nop\n\t"
		     "wrmsr\n"
		     "1: nop; nop; nop; nop; nop; nop; nop; nop; nop; nop\n\t"
		     "cli"
		     : "=&r" (at)
		     : "c" (reg(MSR_EVTSEL0)), "a" (EVTSEL_ON | 0xc0), "d" (0) : "memory");
	return at;
}

static void check_lvtpc(void)
{
	uint64_t at = nops(VECTOR_PMI, 5);

	expect_in("fixed vector, number", "PMIs", pmi.n, 1);
	expect_in("fixed vector, address", "RIP", pmi.rip, at + 4);
	expect_in("fixed vector, mask", "LVTPC", pmi.lvtpc, VECTOR_PMI | masked());
	nops(LVT_NMI | LVT_MASKED, 5);
	expect_in("masked", "PMIs", pmi.n, 0);
	if (version > 1)
		expect_in("masked, status", "GLOBAL_STATUS", get(MSR_STATUS) & 1, 1);
	apic_write(APIC_LVTPC, LVT_NMI);
	asm volatile("nop; nop; nop");
	expect_in("masked, not kept", "PMIs", pmi.n, 0);
	nops(VECTOR_PMI, 5000);
	expect_in("no overflow", "PMIs", pmi.n, 0);
	off();
}

static void check_hlt(void)
{
	uint64_t at;

	off();
	pmi.n = 0;
	apic_write(APIC_LVTPC, LVT_NMI);
	put(MSR_PMC0, minus(MSR_PMC0, 3));
	if (version > 1)
		put(MSR_GLOBAL, 1);
	asm volatile("lea 1f(%%rip), %0\n\t"
		     "wrmsr\n\t"
		     "nop\n\t"
		     "hlt\n"
		     "1:"
		     : "=&r" (at)
		     : "c" (reg(MSR_EVTSEL0)), "a" (EVTSEL_ON | 0xc0), "d" (0) : "memory");
	expect_in("HLT, number", "PMIs", pmi.n, 1);
	expect_in("HLT, address", "RIP", pmi.rip, at);
	off();
}

/* ---- RESET, INIT */

#define CMOS_OURS	0x50	/* a byte of the clock's memory, which RESET keeps */

static uint8_t cmos(bool write, uint8_t value)
{
	outb(0x70, CMOS_OURS);
	if (write)
		outb(0x71, value);
	return inb(0x71);
}

static void check_after_reset(void)
{
	expect_in("RESET, PERFEVTSEL0", "it", get(MSR_EVTSEL0), 0);
	expect_in("RESET, PMC0", "it", get(MSR_PMC0), 0);
	if (fixed) {
		expect_in("RESET, FIXED_CTR_CTRL", "it", get(MSR_FIXED_CTRL), 0);
		expect_in("RESET, FIXED_CTR0", "it", get(MSR_FIXED0), 0);
	}
	if (version > 1)
		expect_in("RESET, GLOBAL_STATUS", "it", get(MSR_STATUS), 0);
}

static void reset(void)
{
	if (fixed)
		put(MSR_FIXED_CTRL, 0xb);
	put(MSR_EVTSEL0, EVTSEL_ON | 0xc0);
	put(MSR_PMC0, 0x1234);
	if (fixed)
		put(MSR_FIXED0, 0x5678);
	if (version > 1)
		put(MSR_GLOBAL, fixed ? 0x100000001 : 1);
	cmos(true, 0xa5);
	outb(0xcf9, 2);
	outb(0xcf9, 6);
	for (;;)
		;
}

/* The second CPU, in real mode: {request, msr, eax, edx} at 0x9000. */
extern char ap_code[], ap_code_end[];
asm(".pushsection .data\n"
    ".code16\n"
    "ap_code: xor %ax, %ax\n"
    "mov %ax, %ds\n"
    "1: pause\n"
    "mov 0x9000, %bl\n"
    "cmp $0, %bl\n"
    "je 1b\n"
    "mov 0x9004, %ecx\n"
    "mov 0x9008, %eax\n"
    "mov 0x900c, %edx\n"
    "cmp $1, %bl\n"
    "je 2f\n"
    "wrmsr\n"
    "jmp 3f\n"
    "2: rdmsr\n"
    "mov %eax, 0x9008\n"
    "mov %edx, 0x900c\n"
    "3: movb $0, 0x9000\n"
    "jmp 1b\n"
    ".code64\n"
    "ap_code_end: .popsection");

static volatile uint32_t *const mailbox = (volatile uint32_t *)0x9000;

static void start_ap(void)
{
	mailbox[0] = 0;
	ap_start(0x8000, ap_code, ap_code_end);
}

static uint64_t ap(uint8_t request, uint32_t msr, uint64_t value)
{
	mailbox[1] = msr;
	mailbox[2] = value;
	mailbox[3] = value >> 32;
	mailbox[0] = request;
	for (uint64_t i = 0; mailbox[0]; i++) {
		asm volatile("pause" : : : "memory");
		if (i > 100000000)
			return ~0ull;
	}
	return mailbox[2] | (uint64_t)mailbox[3] << 32;
}

static void check_init(void)
{
	start_ap();
	ap(2, reg(MSR_PMC0 + 1), 0x1234567);
	ap(2, reg(MSR_EVTSEL0 + 1), 0x130000 | 0xc0);
	if (fixed)
		ap(2, MSR_FIXED0 + 1, 0x7654321);
	start_ap();
	expect_in("INIT keeps PMC1", "it", ap(1, reg(MSR_PMC0 + 1), 0), 0x1234567);
	expect_in("INIT keeps PERFEVTSEL1", "it", ap(1, reg(MSR_EVTSEL0 + 1), 0), 0x130000 | 0xc0);
	if (fixed)
		expect_in("INIT keeps FIXED_CTR1", "it", ap(1, MSR_FIXED0 + 1, 0), 0x7654321);
}

static void set_up(void)
{
	gate(13, gp_stub);
	gate(6, ud_stub);
	gate(14, pf_stub);
	gate(0x90, int_stub);
	gate(0x91, leave_stub);
	wrmsr(0xc0000081, (uint64_t)0x1b << 48 | (uint64_t)KERNEL_CS << 32);
	wrmsr(0xc0000082, (uintptr_t)syscall_stub);
	wrmsr(0xc0000084, 0x700);
	apic_write(APIC_SVR, 0x1ff);
	for (char *c = far_code, *to = (char *)0x11ffffe; c < far_code_end; c++)
		*to++ = *c;
}

static void find_version(void)
{
	uint32_t a, b, c, d;

	cpuid(0, &a, &b, &c, &d);
	amd = b == 0x68747541; /* "Auth" */
	cpuid(10, &a, &b, &c, &d);
	version = a & 0xff;
	fixed = version > 1;
	if (!amd)
		return;
	cpuid(0x80000001, &a, &b, &c, &d);
	ext = c >> 23 & 1;
	cpuid(0x80000000, &a, &b, &c, &d);
	version = 1;
	if (a >= 0x80000022) {
		cpuid(0x80000022, &a, &b, &c, &d);
		version += a & 1;
	}
	block_bad = 0xc0010230; /* a counter of the L3 */
}

/* With -icount, what looks at the clock begins a block, and RDMSR and WRMSR may. */
static void check_clock(void)
{
	uint64_t before = rdmsr(TSC), after = rdmsr(TSC);
	uint32_t a, b, c, d;

	verdict(after >= before, "the TSC by RDMSR");
	cpuid(1, &a, &b, &c, &d);
	if (!(c & CPUID_X2APIC))
		return;
	wrmsr(APIC_BASE, rdmsr(APIC_BASE) | APIC_BASE_EXTD);
	wrmsr(X2APIC_TIMER_COUNT, ~0u);
	verdict(rdmsr(X2APIC_TIMER_NOW), "a timer by WRMSR");
}

int main(const char *line)
{
	find_version();
	if (cmos(false, 0) != 0xa5)
		reset();
	cmos(true, 0);
	check_after_reset();
	set_up();
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (modes[i].version <= version && (fixed || !modes[i].fixed))
			check_mode(&modes[i]);
	check_lvtpc();
	check_hlt();
	if (option(line, "cpus", 1) > 1)
		check_init();
	check_clock(); /* there is no way back from an x2APIC */
	return 0x21;
}
