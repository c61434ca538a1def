// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A jump's target is known from before, and may no longer be executed as it was: the code has
 * been mapped anew or written, it has a breakpoint, or the ring is another one. Each test jumps
 * to its target often, so that the target is in each cache of where jumps go.
 *
 * Command line: turns=N of each; count=1: with a counter of instructions.
 */
#include "bare.h"

#define ENTRIES	4000
#define WINDOW	510 /* an entry of 2 MiB that maps no RAM */
#define RF	(1u << 16)
#define DR7_L0	1u
#define DR6_B0	1u

static uint32_t n_breakpoints, n_faults;

/* Privileged, of one byte, and in a page of its own: breakpoints are looked for by page. */
void privileged(void);
asm(".pushsection .text\n"
    ".balign 4096\n"
    "privileged: cli\n"
    "ret\n"
    ".balign 4096\n"
    ".popsection");

bool on_trap(struct frame *f)
{
	uint64_t dr6;

	switch (f->vector) {
	case 1:
		asm volatile("mov %%dr6, %0" : "=r" (dr6));
		n_breakpoints += (dr6 & DR6_B0) && f->rip == (uintptr_t)privileged;
		asm volatile("mov %0, %%dr6" : : "r" (0xffff0ff0ull));
		f->rflags |= RF;
		return true;
	case 13:
		n_faults += f->rip == (uintptr_t)privileged;
		f->rip++;
		return true;
	default:
		return false;
	}
}

/* Not inlined: its call and its return are the same two jumps for all tests. */
static __attribute__((noinline)) uint32_t call(const void *f)
{
	uint32_t value;

	asm volatile("call *%1" : "=a" (value) : "r" (f) : "memory", "cc");
	return value;
}

static void call_often(uint64_t turns)
{
	while (turns--)
		call((const void *)privileged);
}

/* mov $value, %eax; ret */
static void write_code(uint8_t *at, uint8_t value)
{
	const uint8_t code[] = { 0xb8, value, 0, 0, 0, 0xc3 };

	for (size_t i = 0; i < sizeof(code); i++)
		((volatile uint8_t *)at)[i] = code[i];
}

static void reload_cr3(void)
{
	uint64_t cr3;

	asm volatile("mov %%cr3, %0; mov %0, %%cr3" : "=r" (cr3) : : "memory");
}

/* The sum of what was returned; each page returns its number, turn about. */
static uint64_t mapped_anew(uint32_t turns, bool by_cr3)
{
	static uint64_t table[512] __attribute__((aligned(4096)));
	static uint8_t pages[2][4096] __attribute__((aligned(4096)));
	uint8_t *const window = (uint8_t *)((uintptr_t)WINDOW << 21);
	uint64_t sum = 0;

	write_code(pages[0], 1);
	write_code(pages[1], 2);
	low[WINDOW] = (uintptr_t)table | 3;
	for (uint32_t i = 0; i < turns; i++) {
		table[0] = (uintptr_t)pages[i & 1] | 3;
		if (by_cr3)
			reload_cr3();
		else
			asm volatile("invlpg %0" : : "m" (*window) : "memory");
		for (int again = 0; again < 3; again++)
			sum += call(window);
	}
	return sum;
}

static uint64_t written(uint32_t turns)
{
	static uint8_t page[4096] __attribute__((aligned(4096)));
	uint64_t sum = 0;

	for (uint32_t i = 0; i < turns; i++) {
		write_code(page, i & 0x7f);
		for (int again = 0; again < 3; again++)
			sum += call(page) == (i & 0x7f);
	}
	return sum;
}

/* The sum of what eax is after a call of each of the @steps places in @code. */
static __attribute__((noinline)) uint64_t entered(const uint8_t *code, uint64_t steps)
{
	uint64_t sum = 0;

	asm volatile("jmp 2f\n"
		     "1: xor %%eax, %%eax\n"
		     "call *%0\n"
		     "add %%rax, %1\n"
		     "add $2, %0\n"
		     "dec %2\n"
		     "2: test %2, %2\n"
		     "jnz 1b"
		     : "+r" (code), "+r" (sum), "+r" (steps) : : "eax", "memory", "cc");
	return sum;
}

/* The same while instructions are counted; returns these. */
static uint64_t counted(const uint8_t *code, uint64_t steps)
{
	wrmsr(MSR_FIXED0, 0);
	wrmsr(MSR_FIXED_CTRL, 3);
	wrmsr(MSR_GLOBAL, 1ull << 32);
	entered(code, steps);
	wrmsr(MSR_GLOBAL, 0);
	return rdmsr(MSR_FIXED0);
}

/*
 * The sum of calls of a block and of one that jumps to it. Both are forgotten when a code buffer
 * of 1 MiB is full, and then the first one's place is another block's sooner than the second's.
 */
static uint64_t jumped(const uint8_t *sled)
{
	static uint8_t page[4096] __attribute__((aligned(4096)));
	uint64_t sum = 0;

	write_code(page, 3);
	page[16] = 0xeb; /* jmp to the page's beginning */
	page[17] = 0xee;
	for (uint64_t steps = 0; steps < 320; steps += 8) {
		entered(sled + 2 * 1000, 300); /* more than the buffer */
		sum += call(page);
		entered(sled, 80);
		sum += call(page + 16) + call(page + 16);
		entered(sled + 2 * 2000, steps);
		sum += call(page + 16);
	}
	return sum;
}

/*
 * A sled of INC %eax, entered at each: what QEMU translates of it fills a code buffer of 1 MiB
 * again and again, and with each all that is known of jumps is gone.
 */
static void sled(bool count)
{
	static uint8_t code[2 * ENTRIES + 1] __attribute__((aligned(4096)));
	uint64_t sum = ENTRIES * (ENTRIES + 1ull) / 2;

	for (size_t i = 0; i < ENTRIES; i++) {
		code[2 * i] = 0xff;
		code[2 * i + 1] = 0xc0;
	}
	code[2 * ENTRIES] = 0xc3;
	for (int again = 0; again < 2; again++)
		expect("code entered everywhere", entered(code, ENTRIES), sum);
	expect("code that jumps to code that is gone", jumped(code), 40ull * 4 * 3);
	if (count)
		expect("code entered everywhere, counted",
		       counted(code, ENTRIES) - counted(code, 0), sum + 8ull * ENTRIES);
}

/*
 * The sum of calls in 64 states that QEMU tells blocks apart by: CR0's MP, EM and TS, and
 * RFLAGS' IOPL and AC. It has room for fewer lookups than that, and one takes another's place.
 */
static uint64_t in_states(const void *code)
{
	uint64_t cr0, flags, sum = 0;

	asm volatile("mov %%cr0, %0; pushfq; pop %1" : "=r" (cr0), "=r" (flags));
	for (uint64_t state = 0; state < 64; state++) {
		asm volatile("mov %0, %%cr0; push %1; popfq"
			     : : "r" (cr0 ^ (state & 7) << 1),
			     "r" (flags ^ (state >> 3 & 3) << 12 ^ (state >> 5) << 18) : "cc");
		sum += call(code);
	}
	asm volatile("mov %0, %%cr0; push %1; popfq" : : "r" (cr0), "r" (flags) : "cc");
	return sum;
}

static void breakpoint(bool on)
{
	asm volatile("mov %0, %%dr0" : : "r" (privileged));
	asm volatile("mov %0, %%dr7" : : "r" (on ? 0x400ull | DR7_L0 : 0x400ull));
}

int main(const char *line)
{
	static uint8_t returns_3[8];
	uint32_t turns = option(line, "turns", 1000) & ~1u;

	expect("code mapped anew, invlpg", mapped_anew(turns, false), 9ull * turns / 2);
	expect("code mapped anew, CR3", mapped_anew(turns, true), 9ull * turns / 2);
	expect("code written", written(turns), 3ull * turns);

	sled(option(line, "count", 0));
	write_code(returns_3, 3);
	for (int again = 0; again < 3; again++)
		expect("calls in 64 states", in_states(returns_3), 3 * 64);

	call_often(turns);
	expect("no breakpoint", n_breakpoints, 0);
	breakpoint(true);
	call_often(turns);
	expect("a breakpoint", n_breakpoints, turns);
	breakpoint(false);
	call_often(turns);
	expect("a breakpoint that is gone", n_breakpoints, turns);

	expect("a privileged instruction in ring 0", n_faults, 0);
	user_call(call_often, turns);
	expect("a privileged instruction in ring 3", n_faults, turns);
	call_often(turns);
	expect("a privileged instruction in ring 0 again", n_faults, turns);
	return 0x21;
}
