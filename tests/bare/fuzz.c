// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Does to the PMU whatever a guest can: any register with any value, any RDPMC
 * index, in both rings, with instructions of all sorts counted in between and
 * PMIs of all delivery modes. Nothing is expected but to live.
 *
 * Command line: seed=N turns=N shadow=0|1, the latter (default): some interrupts are shadowed.
 */
#include "bare.h"

static uint64_t n_pmis, n_faults, n_done, n_accesses;

static void put(uint32_t msr, uint64_t value)
{
	n_accesses++;
	try_wrmsr(msr, value);
}

static void get(uint32_t msr, uint64_t *value)
{
	n_accesses++;
	try_rdmsr(msr, value);
}

static uint32_t pmu_msr(void)
{
	static const struct { uint32_t first, n; } ranges[] = {
		{ 0x0c1, 10 }, { 0x186, 10 }, { 0x309, 6 }, { 0x38d, 6 }, { 0x345, 1 },
		{ 0x4c1, 10 }, { 0x1d9, 1 }, { 0x1a0, 1 }, { 0x1a6, 2 }, { 0x329, 1 },
		{ 0x3f1, 8 }, { 0x600, 1 }, { 0x1c8, 2 }, { 0x680, 64 }, { 0x14ce, 2 },
		{ 0x1200, 800 }, { 0xdc0, 32 }, { 0x1900, 160 }, { 0x38e, 3 }, { 0x38f, 1 },
		{ 0xc0010000, 8 }, { 0xc0010200, 12 }, { 0xc0000300, 4 }, { 0x40, 64 },
		{ 0x56504d00, 0x50 },
	};
	uint32_t i = below(sizeof(ranges) / sizeof(ranges[0]));

	return ranges[i].first + below(ranges[i].n);
}

/* Those that this guest itself stands on. */
static bool own(uint32_t msr)
{
	return msr == 0x1b || msr == 0xc0000080 || (msr >= 0xc0000081 && msr <= 0xc0000084) ||
	       (msr >= 0x800 && msr < 0x900);
}

static uint32_t any_msr(void)
{
	uint32_t msr;

	switch (below(8)) {
	case 0: msr = any(); break;
	case 1: msr = below(0x2000); break;
	case 2: msr = 0xc0000000 + below(0x400); break;
	default: msr = pmu_msr(); break;
	}
	return msr;
}

/*
 * A DS save area: what PEBS writes goes to records, or where there is nothing, or a
 * device; never to what this guest stands on. Each place has an area of its own: an NMI
 * that comes between the stores may choose as well, and no index of the one ever stands
 * beside a limit of the other.
 */
static uint64_t any_ds(void)
{
	static uint64_t areas[2][512] __attribute__((aligned(4096)));
	static char records[16384] __attribute__((aligned(4096)));
	static const uint64_t nowhere[] = {
		1ull << 46, -16ull, -4096ull, 0xfee00000, 0xfed00000, 1ull << 63,
	};
	uint64_t index = nowhere[below(6)], max = -1ull;
	uint64_t *ds = areas[0];

	if (below(4)) {
		ds = areas[1];
		index = (uintptr_t)records + below(8192);
		max = (uintptr_t)records + (below(4) ? sizeof(records) : below(9000));
	}
	ds[5] = index;
	ds[6] = max;
	ds[7] = index + below(600);
	for (int i = 8; i < 64; i++)
		ds[i] = -(uint64_t)below(300);
	return below(4) ? (uintptr_t)ds : nowhere[below(6)];
}

/* Likewise a buffer of architectural PEBS, whose size is no more than its memory. */
static uint64_t any_buffer(void)
{
	static char records[16384] __attribute__((aligned(4096)));
	static const uint64_t nowhere[] = { 0xfee00000, 0x3ffffff000, 0x8000000000, 1ull << 62 };

	return below(4) ? (uintptr_t)records | below(3) : nowhere[below(4)] | below(16);
}

/* Registers with addresses of memory that the PMU writes to. */
static bool is_address(uint32_t msr)
{
	return msr == 0x600 || msr == 0x3f4;
}

static uint64_t any_value(uint32_t msr)
{
	static const uint16_t events[] = {
		0x003c, 0x00c0, 0x013c, 0x4f2e, 0x412e, 0x00c4, 0x00c5, 0x01a4, 0x01c4, 0x02c4,
		0x08c4, 0x10c4, 0x11c4, 0x20c4, 0x40c4, 0x80c4, 0x01c0, 0x81d0,
	};
	uint64_t v = 0;

	if (is_address(msr))
		return msr == 0x600 ? any_ds() : any_buffer();
	if (msr >= 0x1900 && msr < 0x19a0 && msr % 4 == 3 && below(2)) /* CFG_C */
		return (any() & 0xe002033800000000) | (uint32_t)-below(300);
	if (msr == 0x3f5 && below(2))
		return (below(16384) & ~15ull) << 32 | 1ull << 32 |
		       (below(4) ? 0 : below(16384) & ~15ull);
	switch (below(9)) {
	case 0: return any();
	case 1: return 1ull << below(64);
	case 2: return -1ull << below(64);
	case 3: return -(uint64_t)below(300);
	case 4: return (-(uint64_t)below(300)) & 0xffffffffffff;
	case 5: return 0x7000000ff;
	case 6: get(msr, &v); return v ^ 1ull << below(64);
	case 7: return any() & any() & any();
	default:
		v = events[below(sizeof(events) / sizeof(events[0]))];
		return v | 0x400000 | (any() & 0x130000) | (below(8) ? 0 : any() & 0xff840000);
	}
}

/* ---- work */

/* 64 KiB and a bit */
static volatile uint64_t memory[8200] __attribute__((aligned(4096)));

extern char syscall_entry[];
asm("syscall_entry: push %rcx; push %r11; pop %r11; pop %rcx; sysretq");

static void compute(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		memory[i & 1023] += i;
}

static void instructions(bool user)
{
	uint64_t n = 1 + below(200);
	uint64_t count = below(4) ? below(100) : 65536 + below(3);

	switch (below(8)) {
	case 0: compute(n); break;
	case 1: {
		volatile void *d = memory;

		asm volatile("rep stosb" : "+c" (count), "+D" (d) : "a" (0) : "memory");
		break;
	}
	case 2: {
		const volatile void *s = memory;

		asm volatile("1: lodsb; sub $7, %%rsi; loop 1b; repe scasb"
			     : "+S" (s), "+c" (n) : "D" (memory) : "rax", "memory");
		break;
	}
	case 3: asm volatile("int3"); break;
	case 4: asm volatile("int $0x90"); break;
	case 5: asm volatile("ud2"); break;
	case 6: /* across pages */
		asm volatile("lock incl (%0)" : : "r" ((char *)memory + 4094) : "memory");
		break;
	case 7:
		if (user)
			asm volatile("syscall" : : : "rcx", "r11", "memory");
		else
			asm volatile("pushf; andl $~0x100, (%%rsp); popf" : : : "cc");
		break;
	}
}

static void in_user(uint64_t what)
{
	n_accesses += (what & 3) < 3;
	switch (what & 3) {
	case 0:
		asm volatile("rdpmc" : : "c" ((uint32_t)(what >> 8)) : "rax", "rdx");
		break;
	case 1:
		asm volatile("wrmsr" : : "c" ((uint32_t)(what >> 8)), "a" (0), "d" (0));
		break;
	case 2:
		asm volatile("rdmsr" : : "c" ((uint32_t)(what >> 8)) : "rax", "rdx");
		break;
	}
	for (int i = 0; i < 3; i++)
		instructions(true);
}

/* ---- traps */

static uint32_t any_lvtpc(void)
{
	static const uint32_t modes[] = {
		VECTOR_PMI, LVT_NMI, LVT_NMI | VECTOR_PMI, LVT_SMI, 0x10
	};

	return modes[below(5)] | (below(4) ? 0 : LVT_MASKED);
}

static void on_pmi(void)
{
	n_pmis++;
	if (below(2))
		put(MSR_RESET, any_value(MSR_RESET));
	if (below(2))
		put(MSR_RESET, rdmsr(MSR_STATUS));
	if (below(3))
		apic_write(APIC_LVTPC, any_lvtpc());
	if (!below(4)) {
		uint32_t msr = pmu_msr();

		put(msr, any_value(is_address(msr) ? msr : MSR_PMC0));
	}
}

static uint32_t skipped(uint64_t vector)
{
	n_faults++;
	return vector == 6 || vector == 13 ? 2 : 0; /* UD2; RDPMC, RDMSR, WRMSR */
}

bool on_trap(struct frame *f)
{
	uint64_t saved = recover;

	recover = 0;
	switch (f->vector) {
	case 2:
		on_pmi();
		break;
	case VECTOR_PMI:
		on_pmi();
		apic_write(APIC_EOI, 0);
		break;
	case 1: case 3: case 6: case 13: case 0x90:
		f->rip += skipped(f->vector);
		break;
	case 0x10: case VECTOR_TIMER:
		apic_write(APIC_EOI, 0);
		break;
	default:
		if (f->vector < 0x20)
			return false;
		apic_write(APIC_EOI, 0);
	}
	recover = saved;
	return true;
}

/* ---- turns */

static bool amd, shadow;

/* Interrupts are on for an instruction, which STI shadows and POPF does not. */
static void interrupts(void)
{
	if (shadow)
		asm volatile("sti; nop; cli");
	else
		asm volatile("pushf; orl $0x200, (%%rsp); popf; nop; cli" : : : "cc");
}

/* Something likely to overflow soon. */
static void overflow_soon(void)
{
	uint32_t i = below(4);
	uint64_t select = EVTSEL_ON | (below(2) ? 0xc0 : any_value(0) & 0xffff);

	if (amd) {
		put(0xc0010201 + 2 * i, -(uint64_t)below(100) & 0xffffffffffff);
		put(0xc0010200 + 2 * i, select);
		put(0xc0000302, 0x3f);
		put(0xc0000301, any() & 0x3f);
		put(0xc0000301, 0xf);
		return;
	}
	put(MSR_PMC0 + i, -(uint64_t)below(100));
	put(MSR_EVTSEL0 + i, select);
	put(MSR_FIXED_CTRL, any() & 0xbbb);
	put(MSR_GLOBAL, 0x7000000ffull & any());
	put(MSR_GLOBAL, 0x70000000full);
	put(MSR_RESET, 0x7000000ffull | (below(2) ? 1ull << 59 : 0));
}

static void turn(void)
{
	uint32_t msr;
	uint64_t v;

	switch (below(8)) {
	case 0: case 1: case 2:
		msr = any_msr();
		if (!own(msr))
			put(msr, any_value(msr));
		break;
	case 3:
		get(any_msr(), &v);
		break;
	case 4:
		n_accesses++;
		try_rdpmc(below(2) ? any() : (any() & 0xe0000007), &v);
		break;
	case 5:
		if (below(4)) {
			instructions(false);
		} else {
			asm volatile("mov %%cr4, %0; xor $0x100, %0; mov %0, %%cr4" : "=&r" (v));
			user_call(in_user, any());
		}
		break;
	case 6:
		apic_write(APIC_LVTPC, any_lvtpc());
		break;
	case 7:
		overflow_soon();
		apic_write(APIC_LVTPC, any_lvtpc());
		instructions(false);
		break;
	}
	if (below(2))
		interrupts();
	n_done++;
}

int main(const char *line)
{
	uint64_t turns = option(line, "turns", 10000);
	uint32_t eax = 0, ebx, ecx = 0, edx;

	shadow = option(line, "shadow", 1);
	asm volatile("cpuid" : "+a" (eax), "=b" (ebx), "+c" (ecx), "=d" (edx));
	amd = ebx == 0x68747541; /* "Auth" */
	any_from(option(line, "seed", 1));
	/* A handler's faults end the blocking of NMIs: they nest, on one stack. */
	own_stack(2, false);
	*(volatile uint16_t *)0x38000 = 0xaa0f; /* an SMI finds RSM */
	put(0x600, any_ds());
	put(0x3f4, any_buffer());
	wrmsr(0xc0000081, (uint64_t)0x1b << 48 | (uint64_t)KERNEL_CS << 32);
	wrmsr(0xc0000082, (uintptr_t)syscall_entry);
	wrmsr(0xc0000084, 0x700);
	apic_write(APIC_SVR, 0x1ff);
	while (n_done < turns)
		turn();
	print("ok fuzz: ");
	print_number(n_done, 10);
	print(" turns, ");
	print_number(n_accesses, 10);
	print(" accesses, ");
	print_number(n_pmis, 10);
	print(" PMIs, ");
	print_number(n_faults, 10);
	print(" faults\n");
	return 0x21;
}
