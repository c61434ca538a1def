// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * PEBS without an operating system: no interrupt between a wrap and its record, a buffer
 * that interrupts at its threshold, and a second CPU that writes the DS save area
 * meanwhile. Architectural PEBS has none, but registers in its place. Of the second and
 * later times (turns=N) only what is wrong is said.
 *
 * Command line: turns=N; cpus=2 for the last one.
 */
#include "bare.h"

#define MSR_CAPABILITIES	0x345
#define PEBS_ENABLE	0x3f1
#define DATA_CFG	0x3f2
#define DS_AREA		0x600
#define PEBS_BASE	0x3f4
#define PEBS_INDEX	0x3f5
#define FX0_CFG_C	0x1983
#define BUFFER_FULL	(arch ? 1ull << 54 : 1ull << 62)
#define RECORD		(arch ? 64u : 32u) /* the basic group alone */
#define RECORD_MAX	64
#define USER_ONLY	2
#define BOTH_RINGS	3
#define PERIOD		1000

static uint64_t ds[64] __attribute__((aligned(4096)));
static uint64_t buffer[1024 * RECORD_MAX / 8] __attribute__((aligned(4096)));
static bool arch; /* PEBS is architectural */
enum { DS_BASE = 4, DS_INDEX, DS_MAX, DS_THRESHOLD, DS_RESET_FIXED = 16 };

static volatile unsigned int n_timer, n_between, n_full, n_wrong;

static void verdict(const char *name, uint64_t value, uint64_t want)
{
	if (value == want && quiet)
		return;
	print(value == want ? "ok " : "not ok ");
	print(name);
	if (value != want) {
		print(": ");
		print_number(value, 10);
		print(", not ");
		print_number(want, 10);
	}
	print("\n");
}

/* A multiple of PERIOD instructions after its first one it is at DEC. */
extern char loop_dec[];
void loop(uint64_t turns);
asm("loop: nop; nop; nop; nop; nop; nop; nop; nop\n"
    "loop_dec: dec %rdi; jnz loop; ret");

/* ---- fixed counter 0, of @rings: a record of each instruction number n * PERIOD */

#define HALF	48 /* records at which the buffer interrupts, of 64 */

static uint64_t last_tsc;

/* The records of fixed counter 0, on or off. */
static void enable(bool on)
{
	if (arch)
		wrmsr(FX0_CFG_C, on ? 1ull << 63 | (uint32_t)-(PERIOD - 1) : 0);
	else
		wrmsr(PEBS_ENABLE, on ? 1ull << 32 : 0);
}

static void set_arch_buffer(uint64_t records, uint64_t threshold)
{
	uint64_t size = 0;

	while (4096ull << size < records * RECORD)
		size++;
	wrmsr(PEBS_BASE, (uintptr_t)buffer | size);
	wrmsr(PEBS_INDEX, 1ull << 32 | (threshold * RECORD) << 32);
}

static void set_buffer(uint64_t records, uint64_t threshold)
{
	uint64_t base = (uintptr_t)buffer;

	if (arch) {
		set_arch_buffer(records, threshold);
		return;
	}
	ds[DS_BASE] = base;
	ds[DS_INDEX] = base;
	ds[DS_MAX] = base + records * RECORD;
	ds[DS_THRESHOLD] = base + threshold * RECORD;
	ds[DS_RESET_FIXED] = -(uint64_t)(PERIOD - 1);
	wrmsr(DS_AREA, (uintptr_t)ds);
	wrmsr(DATA_CFG, 0);
}

/* Bytes of records, and an empty buffer. */
static uint64_t filled(void)
{
	return arch ? rdmsr(PEBS_INDEX) & 0x7fffff0 : ds[DS_INDEX] - ds[DS_BASE];
}

static void empty(void)
{
	if (arch)
		wrmsr(PEBS_INDEX, rdmsr(PEBS_INDEX) & ~0x7fffff0ull);
	else
		ds[DS_INDEX] = ds[DS_BASE];
}

static void begin(uint64_t rings, uint64_t records, uint64_t threshold, uint64_t first)
{
	wrmsr(MSR_GLOBAL, 0);
	enable(false);
	wrmsr(MSR_RESET, rdmsr(MSR_STATUS));
	set_buffer(records, threshold);
	wrmsr(MSR_FIXED0, -first & 0xffffffffffff);
	wrmsr(MSR_FIXED_CTRL, rings);
	enable(true);
	n_wrong = 0;
	n_full = 0;
	last_tsc = 0;
	wrmsr(MSR_GLOBAL, 1ull << 32);
}

static void end(void)
{
	wrmsr(MSR_GLOBAL, 0);
	enable(false);
	wrmsr(MSR_FIXED_CTRL, 0);
	wrmsr(MSR_RESET, rdmsr(MSR_STATUS));
}

/* Records from the buffer's beginning on: how many, and are they of @ip? */
static unsigned int look(uintptr_t ip)
{
	uint64_t head = arch ? 1ull << 63 | 1ull << 30 | RECORD : (uint64_t)RECORD << 48;
	unsigned int n = filled() / RECORD;

	for (unsigned int i = 0; i < n; i++) {
		const uint64_t *r = buffer + i * RECORD / 8, *basic = r + 1 + arch;

		n_wrong += r[0] != head || basic[0] != ip || basic[1] != 1ull << 32 ||
			   basic[2] <= last_tsc;
		last_tsc = basic[2];
	}
	return n;
}

bool on_trap(struct frame *f)
{
	switch (f->vector) {
	case 2:
		n_full++;
		n_wrong += look((uintptr_t)loop_dec) != HALF ||
			   !(rdmsr(MSR_STATUS) & BUFFER_FULL);
		empty();
		wrmsr(MSR_RESET, BUFFER_FULL | 1ull << 63);
		apic_write(APIC_LVTPC, LVT_NMI);
		return true;
	case VECTOR_TIMER:
		n_timer++;
		n_between += !(rdmsr(MSR_FIXED0) >> 47);
		apic_write(APIC_EOI, 0);
		return true;
	}
	return false;
}

/* ---- a handler never finds a counter that has wrapped and waits for a record */

static void check_between(void)
{
	uint64_t turns = 100 * 1000;
	unsigned int wrong = 0;

	n_timer = 0;
	n_between = 0;
	apic_write(APIC_LVTPC, LVT_MASKED);
	apic_write(0x3e0, 0xb); /* divide by 1 */
	apic_write(APIC_LVT_TIMER, VECTOR_TIMER | 0x20000);
	apic_write(APIC_INITIAL, 20000);
	do {
		begin(USER_ONLY, 1024, 1024, PERIOD - 1 - 1);
		asm volatile("sti");
		user_call(loop, turns);
		asm volatile("cli");
		wrmsr(MSR_GLOBAL, 0);
		wrong += look((uintptr_t)loop_dec) != 10 * turns / PERIOD;
		wrong += n_wrong;
		end();
	} while (n_timer < 100);
	apic_write(APIC_LVT_TIMER, LVT_MASKED);
	verdict("interrupts between a wrap and its record", n_between, 0);
	verdict("interrupts, wrong records", wrong, 0);
}

/* ---- in two rings: NMIs at the threshold, and what is left in the buffer */

static void check_threshold(void)
{
	uint64_t turns = 10 * HALF * PERIOD / 10 + 300;

	apic_write(APIC_LVTPC, LVT_NMI);
	begin(USER_ONLY, 64, HALF, PERIOD - 1 - 1);
	user_call(loop, turns);
	wrmsr(MSR_GLOBAL, 0);
	verdict("threshold, interrupts", n_full, 10);
	verdict("threshold, records left", look((uintptr_t)loop_dec), 3);
	verdict("threshold, wrong records", n_wrong, 0);
	/* JNZ, RET and INT come after the last one. */
	verdict("threshold, the counter", -rdmsr(MSR_FIXED0) & 0xffff, PERIOD - 1 - 3);
	end();
	apic_write(APIC_LVTPC, LVT_MASKED);
}

/* ---- a second CPU writes the area: pages around the buffer, read-only, absent ones */

#define AP_DS		0xa000u
#define AP_TABLE	0xb000u /* 510 of {value, address} */
#define AP_PASSES	0xaf00u
#define AP_ENTRIES	510
#define ARENA		0x1800000u /* page tables' entry 12: guard, buffer, guard */
#define ARENA_BUFFER	(ARENA + 0x10000)
#define ARENA_END	(ARENA + 0x14000)
#define ARENA_SIZE	0x24000
#define READ_ONLY	0x1a00000u
#define ABSENT		0x1c00000u

extern char ap_code[], ap_code_end[];
asm(".pushsection .data\n"
    ".code16\n"
    "ap_code: xor %ax, %ax\n"
    "mov %ax, %ds\n"
    "1: mov $0xb000, %si\n"
    "2: mov (%si), %eax\n"
    "mov 4(%si), %di\n"
    "mov %eax, (%di)\n"
    "add $8, %si\n"
    "cmp $0xb000 + 510 * 8, %si\n"
    "jb 2b\n"
    "incl 0xaf00\n"
    "jmp 1b\n"
    ".code64\n"
    "ap_code_end: .popsection");

static uint32_t any_index(void)
{
	static const uint32_t place[] = {
		ARENA_BUFFER - 0xfff, ARENA_END - 0x1000, READ_ONLY, ABSENT, ABSENT - 40,
		0xfee00000, 0x3fffffe8,
	};

	if (below(2))
		return ARENA_BUFFER + below(ARENA_END - ARENA_BUFFER);
	return place[below(7)] + below(0x1000);
}

/* The maximum's high half stays 0, so that no record may end beyond the buffer. */
static void fill_table(void)
{
	volatile uint32_t *at = (volatile uint32_t *)(uintptr_t)AP_TABLE;

	for (int i = 0; i < AP_ENTRIES; i++, at += 2) {
		switch (below(8)) {
		case 0: case 1: case 2:
			at[0] = any_index(), at[1] = AP_DS + 8 * DS_INDEX;
			break;
		case 3:
			at[0] = below(4) ? 0 : -below(2) ^ below(3) << 15;
			at[1] = AP_DS + 8 * DS_INDEX + 4;
			break;
		case 4: case 5:
			at[0] = below(4) ? ARENA_END : below(ARENA_END);
			at[1] = AP_DS + 8 * DS_MAX;
			break;
		case 6:
			at[0] = any_index(), at[1] = AP_DS + 8 * DS_THRESHOLD + 4 * below(2);
			break;
		default:
			at[0] = -below(100), at[1] = AP_DS + 8 * DS_RESET_FIXED + 4 * below(2);
		}
	}
}

static void arena_map(unsigned int i, uint64_t flags)
{
	low[i] = ((uint64_t)i << 21) | flags;
	asm volatile("invlpg (%0)" : : "r" ((uint64_t)i << 21) : "memory");
}

static bool in_buffer(const volatile uint64_t *p)
{
	return (uintptr_t)p >= ARENA_BUFFER - 0xfff && (uintptr_t)p < ARENA_END;
}

static uint64_t words_written(void)
{
	uint64_t n = 0;

	for (volatile uint64_t *p = (uint64_t *)(uintptr_t)ARENA_BUFFER;
	     p < (uint64_t *)(uintptr_t)ARENA_END; p++)
		n += *p != ~0ull;
	return n;
}

static void check_two(void)
{
	volatile uint64_t *arena = (volatile uint64_t *)(uintptr_t)ARENA;
	volatile uint64_t *fixed = (volatile uint64_t *)(uintptr_t)READ_ONLY;
	volatile uint32_t *passes = (volatile uint32_t *)(uintptr_t)AP_PASSES;
	uint64_t hurt = 0, n = 0;

	*(volatile uint64_t *)(uintptr_t)(AP_DS + 8 * DS_MAX) = 0;
	fill_table();
	for (unsigned int i = 0; i < ARENA_SIZE / 8; i++)
		arena[i] = ~0ull;
	for (unsigned int i = 0; i < 512; i++)
		fixed[i] = ~0ull;
	arena_map(READ_ONLY >> 21, 0x85);
	arena_map(ABSENT >> 21, 0);
	ap_start(0x8000, ap_code, ap_code_end);
	apic_write(APIC_LVTPC, LVT_MASKED);
	wrmsr(DS_AREA, AP_DS);
	wrmsr(PEBS_ENABLE, 1ull << 32);
	wrmsr(MSR_FIXED_CTRL, BOTH_RINGS | 1ull << 32);
	wrmsr(MSR_GLOBAL, 1ull << 32);
	/* Where the two share a processor, what the second one left may be of no use for long. */
	while (n < 30000 || *passes < 1000 || (n < 3000000 && words_written() <= 1000)) {
		for (int i = 0; i < 1000; i++, n++) {
			wrmsr(DATA_CFG, below(16) | below(32) << 24);
			wrmsr(MSR_FIXED0, -below(5) & 0xffffffffffff);
			loop(1 + below(30));
		}
	}
	end();
	ap_stop();
	for (volatile uint64_t *p = arena; p < arena + ARENA_SIZE / 8; p++)
		hurt += !in_buffer(p) && *p != ~0ull;
	for (unsigned int i = 0; i < 512; i++)
		hurt += fixed[i] != ~0ull;
	verdict("two CPUs, the second one wrote", *passes >= 1000, 1);
	verdict("two CPUs, records were written", words_written() > 1000, 1);
	verdict("two CPUs, words that no record may touch", hurt, 0);
	arena_map(READ_ONLY >> 21, 0x87);
	arena_map(ABSENT >> 21, 0x87);
}

int main(const char *line)
{
	uint64_t turns = option(line, "turns", 1);

	apic_write(APIC_SVR, 0x1ff);
	arch = (rdmsr(MSR_CAPABILITIES) & 0xf00) == 0xf00;
	for (uint64_t i = 0; i < turns; i++) {
		quiet = i;
		check_between();
		check_threshold();
	}
	quiet = false;
	if (option(line, "cpus", 1) > 1 && !arch)
		check_two();
	return 0x21;
}
