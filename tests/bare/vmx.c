// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A hypervisor on VMX without an operating system. What the PMU counts of it and of its
 * guest, to the instruction, with and without EPT; and a hostile one, which enters guests by
 * any VMCS: nothing is expected of that but to live. Prints a line per case.
 *
 * Command line: rounds=N of the counts; saves=1: exits can save GLOBAL_CTRL; turns=N seed=N
 * of the hostile one. It may end before, by a reset, when a guest got at its memory;
 * "# turns N" lines tell how far it came.
 */
#include "bare.h"

#define MSR_FEATURE_CONTROL 0x3a
#define MSR_VMX_BASIC	0x480
#define MSR_TRUE_PIN	0x48d
#define MSR_TRUE_PROC	0x48e
#define MSR_PROC2	0x48b
#define MSR_TRUE_EXIT	0x48f
#define MSR_TRUE_ENTRY	0x490

#define PIN_INTERRUPT	(1u << 0)
#define PIN_NMI		(1u << 3)
#define PIN_TIMER	(1u << 6)
#define PROC_WINDOW	(1u << 2)
#define PROC_HLT	(1u << 7)
#define PROC_MSR_BITMAP	(1u << 28)
#define PROC_SECONDARY	(1u << 31)
#define PROC2_EPT	(1u << 1)
#define PROC2_UNRESTRICTED (1u << 7)
#define EXIT_64_BIT	(1u << 9)
#define EXIT_GLOBAL	(1u << 12)
#define EXIT_SAVE_GLOBAL (1u << 30)
#define ENTRY_64_BIT	(1u << 9)
#define ENTRY_GLOBAL	(1u << 13)

#define EXIT_EXCEPTION	0
#define EXIT_WINDOW	7
#define EXIT_VMCALL	18
#define EXIT_TIMER	52
#define EXIT_REASON	0x4402
#define EXIT_LENGTH	0x440c
#define GUEST_RIP	0x681e

#define PAGE		4096
#define LARGE		(2u << 20)

uint64_t vmx_enter(uint64_t resume);
void vmx_round(uint64_t on);
int vmx_try(unsigned int what, void *memory, uint64_t number);
enum {
	TRY_ON, TRY_CLEAR, TRY_LOAD, TRY_STORE, TRY_EPT, TRY_VPID, TRY_READ, TRY_WRITE, TRY_OFF,
	TRIES
};
extern char vmx_guest[], vmx_guest_length[], vmx_switch[], vmx_window[], vmx_wild[], vmx_wild_end[];
extern char vmx_bad[], vmx_bad_end[];
extern uint64_t vmx_gdt[5];

static uint8_t on_region[PAGE], vmcs[PAGE], msr_bitmap[PAGE] __attribute__((aligned(PAGE)));
static uint64_t ept[3][512], small[512] __attribute__((aligned(PAGE)));
/* Everything that a hostile guest can reach, while its tables are what we made them. */
static struct {
	uint64_t pml4[512], pdpt[512], pd[512];
	uint8_t code[8 * PAGE], stack[PAGE];
} area __attribute__((aligned(LARGE)));

bool on_trap(struct frame *f)
{
	if ((f->vector == 6 || f->vector == 14) && recover) {
		f->rip = recover;
		recover = 0;
		return true;
	}
	return f->vector == 2;
}

/* ---- the VMCS */

static void put(uint64_t field, uint64_t value)
{
	asm volatile("vmwrite %1, %0" : : "r" (field), "r" (value) : "cc");
}

static uint64_t get(uint64_t field)
{
	uint64_t value = 0;

	asm volatile("vmread %1, %0" : "+r" (value) : "r" (field) : "cc");
	return value;
}

/* Those wanted of the controls that there are, and those that must be. */
static uint32_t controls(uint32_t msr, uint32_t wanted)
{
	uint64_t may = rdmsr(msr);

	return (wanted & (uint32_t)(may >> 32)) | (uint32_t)may;
}

static void put_controls(uint32_t pin, uint32_t proc2, uint32_t global)
{
	put(0x4000, controls(MSR_TRUE_PIN, PIN_INTERRUPT | PIN_NMI | pin));
	put(0x4002, controls(MSR_TRUE_PROC, PROC_HLT | PROC_MSR_BITMAP | PROC_SECONDARY));
	put(0x401e, controls(MSR_PROC2, proc2));
	put(0x400c, controls(MSR_TRUE_EXIT, EXIT_64_BIT | (global ? EXIT_GLOBAL : 0)));
	put(0x4012, controls(MSR_TRUE_ENTRY, ENTRY_64_BIT | (global ? ENTRY_GLOBAL : 0)));
	put(0x4004, 0xffffffff); /* every exception exits */
	put(0x2004, (uintptr_t)msr_bitmap);
	put(0x201a, (uintptr_t)ept[0] | 3 << 3 | 6);
	put(0x2800, UINT64_MAX);
	put(0x482e, 4096);
}

struct table {
	uint16_t limit;
	uint64_t base;
} __attribute__((packed));

static uint64_t cr0, cr3, cr4;

static void put_host(void)
{
	struct table gdt, idt;
	uint8_t *tss;

	asm volatile("sgdt %0; sidt %1" : "=m" (gdt), "=m" (idt));
	tss = (uint8_t *)(uintptr_t)gdt.base + 0x30;
	for (unsigned int i = 0; i < 6; i++)
		put(0xc00 + 2 * i, i == 1 ? KERNEL_CS : KERNEL_SS);
	put(0xc0c, 0x30);
	put(0x6c00, cr0);
	put(0x6c02, cr3);
	put(0x6c04, cr4);
	put(0x6c0a, tss[2] | tss[3] << 8 | tss[4] << 16 | (uint64_t)tss[7] << 24);
	put(0x6c0c, gdt.base);
	put(0x6c0e, idt.base);
	put(0x2c02, rdmsr(0xc0000080));
}

static void put_guest(const void *rip, uint64_t tables, const void *stack)
{
	for (unsigned int i = 0; i < 8; i++) {
		put(0x800 + 2 * i, i == 1 ? KERNEL_CS : i < 6 ? KERNEL_SS : 0);
		put(0x4800 + 2 * i, i < 6 ? UINT32_MAX : 0xff);
		put(0x4814 + 2 * i, i == 1 ? 0xa09b : i < 6 ? 0xc093 : i == 6 ? 0x10000 : 0x8b);
		put(0x6806 + 2 * i, 0);
	}
	put(0x4810, 0);
	put(0x4812, 0);
	put(0x6816, 0);
	put(0x6818, 0);
	put(0x6800, cr0);
	put(0x6802, tables);
	put(0x6804, cr4);
	put(0x2806, rdmsr(0xc0000080));
	put(0x681a, 0x400);
	put(0x681c, (uintptr_t)stack);
	put(GUEST_RIP, (uintptr_t)rip);
	put(0x6820, 2);
	put(0x6822, 0);
	put(0x4824, 0);
	put(0x4826, 0);
	put(0x4016, 0);
	put(0x2802, 0);
}

/* Fields that are not put are 0, as a VMCS keeps them in its region. */
static void fresh(void)
{
	for (unsigned int i = 0; i < PAGE; i++)
		vmcs[i] = 0;
	*(uint32_t *)vmcs = rdmsr(MSR_VMX_BASIC);
	vmx_try(TRY_CLEAR, &(uint64_t){ (uintptr_t)vmcs }, 0);
	vmx_try(TRY_LOAD, &(uint64_t){ (uintptr_t)vmcs }, 0);
}

static bool vmx_on(void)
{
	uint64_t feature = rdmsr(MSR_FEATURE_CONTROL);

	if (!(feature & 1))
		wrmsr(MSR_FEATURE_CONTROL, 5);
	asm volatile("mov %%cr4, %0" : "=r" (cr4));
	cr4 |= 1 << 13;
	asm volatile("mov %0, %%cr4" : : "r" (cr4));
	asm volatile("mov %%cr0, %0; mov %%cr3, %1" : "=r" (cr0), "=r" (cr3));
	*(uint32_t *)on_region = rdmsr(MSR_VMX_BASIC);
	return !vmx_try(TRY_ON, &(uint64_t){ (uintptr_t)on_region }, 0);
}

/* ---- counts */

static uint64_t counted(void)
{
	return rdmsr(MSR_FIXED0);
}

static void counts(const char *name, uint32_t proc2)
{
	const uint64_t length = (uintptr_t)vmx_guest_length;

	if (!quiet) {
		print("# ");
		print(name);
		print("\n");
	}
	fresh();
	put_controls(0, proc2, 0);
	put_host();
	put_guest(vmx_guest, cr3, area.stack + sizeof(area.stack));
	wrmsr(MSR_FIXED_CTRL, 1);
	wrmsr(MSR_FIXED0, 0);
	vmx_round(1ull << 32);
	expect("exit", get(EXIT_REASON), EXIT_VMCALL);
	expect("host and guest", counted(), 5 + length);

	fresh();
	put_controls(0, proc2, 1);
	put_host();
	put(0x2c04, 0);
	put(0x2808, 1ull << 32);
	put_guest(vmx_guest, cr3, area.stack + sizeof(area.stack));
	wrmsr(MSR_FIXED0, 0);
	vmx_round(0);
	expect("guest alone", counted(), length);

	fresh();
	put_controls(0, proc2, 1);
	put_host();
	put(0x2c04, 1ull << 32);
	put(0x2808, 0);
	put_guest(vmx_guest, cr3, area.stack + sizeof(area.stack));
	wrmsr(MSR_FIXED0, 0);
	vmx_round(1ull << 32);
	expect("host alone", counted(), 5);

	/* A guest that writes GLOBAL_CTRL: a CPU that can save it at exits does so when told to. */
	for (uint32_t save = 0; save <= 1; save++) {
		uint32_t exit = controls(MSR_TRUE_EXIT, EXIT_64_BIT | EXIT_GLOBAL |
					 (save ? EXIT_SAVE_GLOBAL : 0));

		fresh();
		put_controls(0, proc2, 1);
		put(0x400c, exit);
		put_host();
		put(0x2808, 1ull << 32);
		put_guest(vmx_switch, cr3, area.stack + sizeof(area.stack));
		wrmsr(MSR_FIXED0, 0);
		vmx_round(0);
		expect("guest until it switches", counted(), 3);
		expect("GLOBAL_CTRL of the guest", get(0x2808),
		       exit & EXIT_SAVE_GLOBAL ? 1 : 1ull << 32);
		expect("GLOBAL_CTRL of the host", rdmsr(MSR_GLOBAL), 0);
	}

	/* A guest whose state is refused: VMLAUNCH has retired. */
	fresh();
	put_controls(0, proc2, 0);
	put_host();
	put_guest(vmx_guest, cr3, area.stack + sizeof(area.stack));
	put(0x6820, 0);
	wrmsr(MSR_FIXED0, 0);
	vmx_round(1ull << 32);
	expect("refused", get(EXIT_REASON), 1u << 31 | 33);
	expect("host of a refused one", counted(), 5);
	wrmsr(MSR_FIXED_CTRL, 0);
}

/* The guest's MOV to CR8 changes nothing about the exit that waits for its interrupt window. */
static void window(void)
{
	fresh();
	put_controls(0, 0, 0);
	put(0x4002, get(0x4002) | PROC_WINDOW);
	put_host();
	put_guest(vmx_window, cr3, area.stack + sizeof(area.stack));
	vmx_round(0);
	expect("interrupt window after MOV to CR8", get(EXIT_REASON), EXIT_WINDOW);
}

static void put_bad_guest(const void *rip)
{
	fresh();
	put_controls(0, 0, 0);
	put_host();
	put_guest(rip, cr3, area.stack + sizeof(area.stack));
	put(0x4810, sizeof(vmx_gdt) - 1);
	put(0x6816, (uintptr_t)vmx_gdt);
	put(0x6804, cr4 | 1 << 16);
}

static uint64_t exception(void)
{
	return get(EXIT_REASON) == EXIT_EXCEPTION ? get(0x4404) & 0xff : UINT64_MAX;
}

/*
 * An address that is not canonical is refused where it is loaded, and at a branch to it, so
 * that a guest cannot make a state of which it could not be entered again.
 */
static void not_canonical(void)
{
	const char *const name[] = {
		"LGDT", "LIDT", "WRFSBASE", "WRGSBASE", "JMP", "SYSENTER_ESP", "SYSENTER_EIP",
		"LSTAR", "CSTAR", "FS_BASE", "GS_BASE", "KERNEL_GS_BASE", "LTR", "LLDT",
	};
	unsigned int n = 0;

	for (const char *rip = vmx_bad; rip < vmx_bad_end; rip += 64, n++) {
		put_bad_guest(rip);
		vmx_enter(0);
		expect(name[n], exception(), 13);
		put(GUEST_RIP, (uintptr_t)vmx_bad_end);
		vmx_enter(1);
		expect("entered again", get(EXIT_REASON), EXIT_VMCALL);
	}
	expect("guests", n, sizeof(name) / sizeof(name[0]));
	/* Astray, and interrupted before it has fetched anything. */
	put_bad_guest((const void *)0xaaaaaaaaaaaaaaaa);
	put_controls(PIN_TIMER, 0, 0);
	put(0x482e, 0);
	vmx_enter(0);
	expect("astray, and the timer's exit", get(EXIT_REASON), EXIT_TIMER);
	put_controls(0, 0, 0);
	vmx_enter(1);
	expect("astray, and its fault", exception(), 13);
}

/*
 * The guest's counter wraps, and the record of its next instruction goes to pages that EPT
 * does not have: it exits for each of them, before that instruction, and loses no record.
 */
static void precise(void)
{
	static uint8_t ds[PAGE], records[PAGE] __attribute__((aligned(PAGE)));
	uint64_t *save = (uint64_t *)ds, at = (uintptr_t)ds / LARGE;
	unsigned int n = 0;

	if (!(rdmsr(MSR_PROC2) >> 32 & PROC2_EPT))
		return;
	/* The pages of this program one by one, so that two of them can be missing. */
	for (unsigned int i = 0; i < 512; i++)
		small[i] = (at * LARGE + i * PAGE) | 0x37;
	small[(uintptr_t)ds / PAGE % 512] = 0;
	small[(uintptr_t)records / PAGE % 512] = 0;
	ept[2][at] = (uintptr_t)small | 7;
	save[4] = save[5] = (uintptr_t)records;
	save[6] = save[7] = (uintptr_t)records + PAGE;
	save[8] = -(uint64_t)1000000;
	fresh();
	put_controls(0, PROC2_EPT, 1);
	put_host();
	put(0x2c04, 0);
	put(0x2808, 1);
	put_guest(vmx_guest, cr3, area.stack + sizeof(area.stack));
	wrmsr(0x600, (uintptr_t)ds);
	try_wrmsr(0x3f2, 0);
	wrmsr(MSR_EVTSEL0, 0x4200c0);
	wrmsr(MSR_PMC0, -(uint64_t)100);
	wrmsr(0x3f1, 1);
	while (!vmx_enter(n) && (uint32_t)get(EXIT_REASON) == 48 && n < 8) {
		uint64_t gpa = get(0x2400);

		expect("asynchronous", get(0x6400) >> 16 & 1, 1);
		expect("the DS save area, then the record", gpa / PAGE,
		       (n ? (uintptr_t)records : (uintptr_t)ds) / PAGE);
		small[gpa / PAGE % 512] = (gpa & -(uint64_t)PAGE) | 0x37;
		vmx_try(TRY_EPT, (uint64_t[]){ get(0x201a), 0 }, 1);
		n++;
	}
	wrmsr(0x3f1, 0);
	wrmsr(MSR_EVTSEL0, 0);
	expect("exits", n, 2);
	expect("exit after the samples", get(EXIT_REASON), EXIT_VMCALL);
	expect("a record", save[5] > (uintptr_t)records, 1);
	expect("one record", save[5] <= (uintptr_t)records + 400, 1);
	ept[2][at] = at * LARGE | 0xb7;
}

static void map(bool all)
{
	const uint64_t at = (uintptr_t)&area;

	for (unsigned int i = 0; i < 512; i++)
		ept[2][i] = all ? (uint64_t)i * LARGE | 0xb7 : 0;
	if (!all)
		ept[2][at / LARGE] = at | 0xb7;
	ept[1][0] = (uintptr_t)ept[2] | 7;
	ept[0][0] = (uintptr_t)ept[1] | 7;
}

/* ---- a hostile hypervisor */

static uint64_t any_value(uint64_t old)
{
	switch (below(8)) {
	case 0: return any();
	case 1: return 1ull << below(64);
	case 2: return ~(1ull << below(64));
	case 3: return old + below(64) - 32;
	case 4: return (uintptr_t)&area + (any() & 0x1fffff);
	case 5: return any() & any() & any();
	default: return old ^ 1ull << below(below(4) ? 64 : 12);
	}
}

static uint64_t any_field(void)
{
	uint64_t field = below(4) << 13 | below(4) << 10 | below(below(8) ? 24 : 512) << 1;

	return field | !below(64) | (below(200) ? 0 : any());
}

/*
 * Without these the way back is lost, or all of memory in reach; so they change seldom, or
 * to what an entry refuses.
 */
static bool dangerous(uint64_t field)
{
	return (field & 0xc00) == 0xc00 || field == 0x201a || field == 0x401e || field == 0x4002 ||
	       field == 0x4000 || (field >= 0x400c && field <= 0x4010) ||
	       (field >= 0x2006 && field <= 0x2009);
}

static void mutate(void)
{
	for (uint32_t n = below(5); n; n--) {
		uint64_t field = any_field();

		if (!dangerous(field) || !below(400))
			put(field, any_value(get(field)));
	}
	/* Behind the CPU's back, as another CPU could */
	if (!below(300))
		*(uint64_t *)(vmcs + 256 + (any() & 0x7f8)) = any();
}

/* The copy in the area of one of the instructions of vmx_wild */
static uintptr_t any_wild(void)
{
	return (uintptr_t)area.code + 8 * below((vmx_wild_end - vmx_wild) / 8);
}

static uint64_t n_entries, n_refused[32], n_exits[64];

static void go(void)
{
	for (uint32_t n = 1 + below(6); n; n--) {
		uint64_t failed = vmx_enter(below(30) ? n_entries & 1 : below(2));

		if (failed) {
			n_refused[failed & 1 ? 0 : get(0x4400) & 31]++;
			n_entries ^= 1;
			continue;
		}
		n_exits[get(EXIT_REASON) & 63]++;
		n_entries |= 1;
		put(GUEST_RIP, get(GUEST_RIP) + get(EXIT_LENGTH));
		if (!below(3))
			put(GUEST_RIP, any_wild());
		mutate();
		put_host();
	}
}

static void odd_instruction(void)
{
	static uint64_t memory[4];
	uint32_t what = below(TRIES);

	for (unsigned int i = 0; i < 4; i++)
		memory[i] = below(2) ? any_value(0) : below(4);
	if (what == TRY_ON || what == TRY_CLEAR || what == TRY_LOAD)
		memory[0] = below(2) ? (uintptr_t)area.stack & -PAGE : any_value(0) | 1;
	if (what == TRY_OFF && below(4))
		return;
	vmx_try(what, memory, below(2) ? any_field() : any_value(0));
	if (what == TRY_OFF)
		vmx_on();
}

static void make_area(void)
{
	const uint64_t at = (uintptr_t)&area;

	for (unsigned int i = 0; i < sizeof(area.code); i++)
		area.code[i] = 0x90;
	for (unsigned int i = 0; i < vmx_wild_end - vmx_wild; i++)
		area.code[i] = vmx_wild[i];
	for (unsigned int i = 0; i < 512; i++)
		area.pml4[i] = area.pdpt[i] = area.pd[i] = 0;
	area.pml4[0] = (uintptr_t)area.pdpt | 0x67;
	area.pdpt[0] = (uintptr_t)area.pd | 0x67;
	area.pd[at / LARGE] = at | 0xe7;
}

static void print_list(const char *name, const uint64_t *list, unsigned int n)
{
	print(name);
	for (unsigned int i = 0; i < n; i++) {
		if (!list[i])
			continue;
		print(" ");
		print_number(i, 10);
		print(":");
		print_number(list[i], 10);
	}
}

static void hostile(uint64_t turns)
{
	map(false);
	for (unsigned int i = 0; i < PAGE; i++)
		msr_bitmap[i] = 0xff;
	for (uint64_t n = 0; n < turns; n++) {
		if (n % 1000 == 0) {
			print("# turns ");
			print_number(n, 10);
			print("\n");
		}
		make_area();
		if (!below(10))
			odd_instruction();
		fresh();
		put_controls(PIN_TIMER, PROC2_EPT | (below(2) ? PROC2_UNRESTRICTED : 0), below(2));
		put_host();
		put(0x2c04, 0);
		put(0x2808, 0);
		put_guest((void *)any_wild(), (uintptr_t)area.pml4,
			  area.stack + sizeof(area.stack));
		n_entries = 0;
		mutate();
		go();
	}
	print("# turns ");
	print_number(turns, 10);
	print_list("\n# refused by error", n_refused, 32);
	print_list("\n# exits by reason", n_exits, 64);
	print("\nok hostile\n");
}

int main(const char *line)
{
	uint64_t turns = option(line, "turns", 0);

	any_from(option(line, "seed", 1));
	own_stack(2, false);
	if (!vmx_on()) {
		print("not ok VMXON\n");
		return 0x21;
	}
	if (turns) {
		hostile(turns);
		return 0x21;
	}
	expect("GLOBAL_CTRL can be saved", !!(rdmsr(MSR_TRUE_EXIT) >> 32 & EXIT_SAVE_GLOBAL),
	       option(line, "saves", 0));
	map(true);
	for (uint64_t n = 0; n < option(line, "rounds", 1); n++) {
		quiet = n;
		counts("without EPT", 0);
		if (rdmsr(MSR_PROC2) >> 32 & PROC2_EPT)
			counts("with EPT", PROC2_EPT);
		window();
		precise();
	}
	quiet = false;
	not_canonical();
	vmx_try(TRY_OFF, NULL, 0);
	expect("VMPTRLD after VMXOFF is #UD", vmx_try(TRY_LOAD, on_region, 0), 1);
	return 0x21;
}
