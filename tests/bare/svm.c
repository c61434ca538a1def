// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A hypervisor and its guest, without an operating system: which instructions count
 * for whom with AMD's HostOnly and GuestOnly, to the very instruction; overflows in
 * either, and the NMI that ends the guest; intercepts before the PMU. Prints a line
 * per case.
 *
 * Command line: turns=N of all; or gif=N turns with another CPU, of the interrupt flag.
 */
#include "bare.h"

#define BRANCH	1
#define TAKEN	2
#define GUEST	4
#define USER	8

#define MSR_EFER	0xc0000080
#define MSR_HSAVE	0xc0010117
#define EFER_SVME	(1ull << 12)

#define EVTSEL_USR	(1ull << 16)
#define EVTSEL_OS	(1ull << 17)
#define GUEST_ONLY	(1ull << 40)
#define HOST_ONLY	(1ull << 41)

#define INTERCEPT_NMI	(1ull << 1)
#define INTERCEPT_RDPMC	(1ull << 15)
#define INTERCEPT_MSR	(1ull << 28)
#define INTERCEPT_VMRUN	(1ull << 32)
#define INTERCEPT_VMMCALL (1ull << 33)

#define EXIT_UD		0x46
#define EXIT_RDPMC	0x6f
#define EXIT_MSR	0x7c
#define EXIT_VMMCALL	0x81
#define EXIT_INVALID	UINT64_MAX

#define INJECT_INTR	0x80000000u
#define INJECT_SOFT	0x80000400u

#define VIRTUAL_TPR(n)	(n)
#define VIRTUAL_IRQ	(1u << 8)
#define VIRTUAL_PRIORITY(n) ((n) << 16)
#define VIRTUAL_MASKING	(1u << 24)

struct step {
	uint64_t next, what;
};
extern const struct step svm_path[], svm_path_end[];
extern uint64_t round_msr, round_on, round_exits, round_rip, round_wrong;
extern uint8_t vmcb[4096], hsave[4096], msrpm[8192], iopm[16384], guest_stack[];
extern char guest_1[], guest_inject[], guest_stores[], guest_int[], guest_ud[];
extern char guest_cr8[];
void svm_round(void);
void svm_once(void);
void svm_efer(uint32_t off, uint32_t on);

static uint32_t evtsel, counter;
static bool v2;
static volatile struct {
	unsigned int n;
	uint64_t rip;
} pmi;

static volatile uint32_t taken; /* an interrupt of VECTOR_TIMER */

bool on_trap(struct frame *f)
{
	if (f->vector == VECTOR_TIMER) {
		taken = 1;
		apic_write(APIC_EOI, 0);
		return true;
	}
	if (f->vector != 2)
		return false;
	pmi.n++;
	pmi.rip = f->rip;
	return true;
}

/* ---- the guest's control block */

static void put16(unsigned int at, uint16_t value) { *(volatile uint16_t *)(vmcb + at) = value; }
static void put32(unsigned int at, uint32_t value) { *(volatile uint32_t *)(vmcb + at) = value; }
static void put64(unsigned int at, uint64_t value) { *(volatile uint64_t *)(vmcb + at) = value; }
static uint64_t get64(unsigned int at) { return *(volatile uint64_t *)(vmcb + at); }

static void put_segment(unsigned int at, uint16_t selector, uint16_t attributes)
{
	put16(at, selector);
	put16(at + 2, attributes);
	put32(at + 4, UINT32_MAX);
	put64(at + 8, 0);
}

static void put_table(unsigned int at, const uint8_t *pointer)
{
	put32(at + 4, *(const uint16_t *)pointer);
	put64(at + 8, *(const uint64_t *)(pointer + 2));
}

/* A guest at @rip in our own memory, with our own tables and page tables. */
static void make_guest(const void *rip, uint64_t intercepts)
{
	uint64_t cr0, cr3, cr4;
	uint8_t gdt[10], idt[10];

	asm volatile("mov %%cr0, %0; mov %%cr3, %1; mov %%cr4, %2; sgdt %3; sidt %4"
		     : "=r" (cr0), "=r" (cr3), "=r" (cr4), "=m" (gdt), "=m" (idt));
	for (unsigned int i = 0; i < sizeof(vmcb); i += 8)
		put64(i, 0);
	put64(0x00c, INTERCEPT_VMRUN | INTERCEPT_VMMCALL | intercepts);
	put64(0x040, (uintptr_t)iopm);
	put64(0x048, (uintptr_t)msrpm);
	put32(0x058, 1);
	put_segment(0x400, KERNEL_SS, 0xc93);
	put_segment(0x410, KERNEL_CS, 0xa9b);
	put_segment(0x420, KERNEL_SS, 0xc93);
	put_segment(0x430, KERNEL_SS, 0xc93);
	put_table(0x460, gdt);
	put_table(0x480, idt);
	put64(0x4d0, rdmsr(MSR_EFER));
	put64(0x548, cr4);
	put64(0x550, cr3);
	put64(0x558, cr0);
	put64(0x560, 0x400);
	put64(0x568, 0xffff0ff0);
	put64(0x570, 2);
	put64(0x578, (uintptr_t)rip);
	put64(0x5d8, (uintptr_t)guest_stack);
	put64(0x668, 0x0007040600070406);
}

/* ---- who counts what */

struct mode {
	const char *name;
	uint64_t select;
	uint64_t what;	/* that an instruction must be */
};

static const struct mode events[] = {
	{ "instructions", 0xc0, 0 },
	{ "branches", 0xc2, BRANCH },
	{ "taken", 0xc4, TAKEN },
};

static const struct side {
	const char *name;
	uint64_t bits;
} sides[] = {
	{ "", 0 }, { ", HostOnly", HOST_ONLY }, { ", GuestOnly", GUEST_ONLY },
	{ ", both", HOST_ONLY | GUEST_ONLY },
}, rings[] = {
	{ "", EVTSEL_USR | EVTSEL_OS }, { ", user", EVTSEL_USR }, { ", kernel", EVTSEL_OS },
};

static bool counts(const struct step *s, const struct mode *m, uint64_t select)
{
	uint64_t only = select & (HOST_ONLY | GUEST_ONLY);

	if ((s->what & m->what) != m->what)
		return false;
	if (only && !(only & (s->what & GUEST ? GUEST_ONLY : HOST_ONLY)))
		return false;
	return select & (s->what & USER ? EVTSEL_USR : EVTSEL_OS);
}

static void print_mode(const struct mode *m, const struct side *side, const struct side *ring)
{
	print(m->name);
	print(side->name);
	print(ring->name);
}

/* The counter at @start and off, for the next round. */
static void arm(uint64_t select, uint64_t start)
{
	wrmsr(evtsel, 0);
	if (v2) {
		wrmsr(0xc0000302, 0x3f);
		wrmsr(0xc0000301, 1);
	}
	wrmsr(counter, start & 0xffffffffffff);
	apic_write(APIC_LVTPC, LVT_NMI);
	pmi.n = 0;
	round_exits = 0;
	round_wrong = 0;
	round_msr = evtsel;
	round_on = select | 1ull << 20 | 1ull << 22;
}

static void check_count(const struct mode *m, const struct side *side, const struct side *ring)
{
	uint64_t select = m->select | side->bits | ring->bits, want = 0, value;

	for (const struct step *s = svm_path; s < svm_path_end; s++)
		want += counts(s, m, select);
	make_guest(guest_1, 0);
	arm(select, 0);
	svm_round();
	value = rdmsr(counter);
	if (value == want && !round_wrong && !pmi.n)
		return;
	print("not ok count, ");
	print_mode(m, side, ring);
	print(": ");
	print_number(value, 10);
	print(", not ");
	print_number(want, 10);
	print(round_wrong ? ", an exit not expected\n" : "\n");
}

/* An overflow at number @k, which leads to @next. */
static const char *overflow(uint64_t select, uint64_t k, const struct step *s,
			    uint64_t intercepts, uint64_t *value, uint64_t *want)
{
	bool entered = s->what & GUEST || s->next == (uintptr_t)guest_1;

	make_guest(guest_1, intercepts);
	arm(select, -k);
	svm_round();
	*value = pmi.n;
	*want = 1;
	if (pmi.n != 1)
		return "PMIs";
	*value = round_exits;
	/* The second VMRUN leads into the guest, too. */
	*want = intercepts && (entered || round_exits);
	if (round_exits != *want)
		return "exits by NMI";
	*value = round_exits ? round_rip : pmi.rip;
	*want = s->next;
	if (*value != *want)
		return "the address it found";
	*value = round_wrong;
	*want = 0;
	return round_wrong ? "other exits" : NULL;
}

static void check_overflows(const struct mode *m, const struct side *side, const struct side *ring,
			    uint64_t intercepts)
{
	uint64_t select = m->select | side->bits | ring->bits, k = 0, value, want;
	const char *what = NULL;

	for (const struct step *s = svm_path; s < svm_path_end && !what; s++)
		if (counts(s, m, select))
			what = overflow(select, ++k, s, intercepts, &value, &want);
	print(what ? "not ok overflows, " : "ok overflows, ");
	print_mode(m, side, ring);
	if (intercepts)
		print(", NMI intercepted");
	if (what) {
		print(": at event ");
		print_number(k, 10);
		print(", ");
		print(what);
		print(" 0x");
		print_number(value, 16);
		print(", not 0x");
		print_number(want, 16);
	}
	print("\n");
}

static void check_all_counts(void)
{
	for (size_t e = 0; e < sizeof(events) / sizeof(events[0]); e++)
		for (size_t s = 0; s < 4; s++)
			for (size_t r = 0; r < 3; r++)
				check_count(&events[e], &sides[s], &rings[r]);
	print("ok counts: instructions, branches, taken ones, of whom, in which ring\n");
}

/* Nothing has ever run in a guest yet: its second taken branch. */
static void check_first_overflow(void)
{
	const struct step *s = svm_path;
	const char *what;
	uint64_t value, want;

	for (unsigned int k = 0; k < 2; s++)
		k += (s->what & (TAKEN | GUEST)) == (TAKEN | GUEST);
	what = overflow(0xc4 | GUEST_ONLY | EVTSEL_USR | EVTSEL_OS, 2, s - 1, INTERCEPT_NMI,
			&value, &want);
	print(what ? "not ok the very first overflow: " : "ok the very first overflow");
	print(what ? what : "");
	print("\n");
}

static void check_all_overflows(void)
{
	for (size_t e = 0; e < sizeof(events) / sizeof(events[0]); e++)
		for (size_t s = 0; s < 4; s++) {
			check_overflows(&events[e], &sides[s], &rings[0], 0);
			check_overflows(&events[e], &sides[s], &rings[0], INTERCEPT_NMI);
		}
}

/* ---- VMRUN's own */

static uint64_t once(uint64_t select)
{
	arm(select | EVTSEL_USR | EVTSEL_OS, 0);
	svm_once();
	return rdmsr(counter);
}

static void inject(const void *guest, uint32_t type)
{
	make_guest(guest, 0);
	put64(0x5d8, (uintptr_t)guest_stack - 256);
	put32(0x0a8, type | 0x90);
}

static void check_entries(void)
{
	inject(guest_inject, INJECT_SOFT);
	expect("injected interrupt, instructions", once(0xc0 | GUEST_ONLY), 3);
	expect("injected interrupt, exit", get64(0x70), EXIT_VMMCALL);
	expect("injected interrupt, EXITINTINFO", get64(0x88), 0);
	inject(guest_inject, INJECT_SOFT);
	expect("injected interrupt, branches", once(0xc2 | GUEST_ONLY), 1);
	inject(guest_inject, INJECT_SOFT);
	expect("injected interrupt, taken branches", once(0xc4), 1);
	inject(guest_inject, INJECT_SOFT);
	expect("injected interrupt, host", once(0xc0 | HOST_ONLY), 8);
	inject(guest_stores, INJECT_INTR);
	expect("external interrupt injected, once", once(0xc0 | GUEST_ONLY), 2 + 1 + 3 * 1000);

	make_guest(guest_cr8, 0);
	put64(0x5d8, (uintptr_t)guest_stack - 256);
	put64(0x060, VIRTUAL_MASKING | VIRTUAL_PRIORITY(3) | VIRTUAL_IRQ | VIRTUAL_TPR(5) |
			     (uint64_t)0x90 << 32);
	expect("virtual interrupt after MOV to CR8", once(0xc0 | GUEST_ONLY), 4 + 2);
	expect("virtual interrupt after MOV to CR8, exit", get64(0x70), EXIT_VMMCALL);

	make_guest(guest_1, 0);
	put32(0x058, 0); /* no ASID */
	expect("VMRUN refused", once(0xc0 | HOST_ONLY), 8);
	expect("VMRUN refused, exit", get64(0x70), EXIT_INVALID);
	make_guest(guest_1, 0);
	put64(0x4d0, rdmsr(MSR_EFER) & ~EFER_SVME);
	expect("VMRUN refused late", once(0xc0 | HOST_ONLY), 8);
	expect("VMRUN refused late, exit", get64(0x70), EXIT_INVALID);
	make_guest(guest_1, 0);
	put32(0x058, 0);
	expect("VMRUN refused, guest", once(0xc0 | GUEST_ONLY), 0);
}

/* ---- EFER.SVME */

/* From @from, then @off and @on; what is counted with @select. */
static uint64_t efer(uint64_t select, uint64_t from, uint64_t off, uint64_t on)
{
	uint64_t was = rdmsr(MSR_EFER), bits = was & ~EFER_SVME;

	arm(select | EVTSEL_USR | EVTSEL_OS, 0);
	wrmsr(MSR_EFER, bits | from);
	svm_efer(bits | off, bits | on);
	wrmsr(MSR_EFER, was);
	return rdmsr(counter);
}

static void check_efer(void)
{
	const uint64_t both = HOST_ONLY | GUEST_ONLY, on = EFER_SVME;

	expect("EFER.SVME off, HostOnly", efer(0xc0 | HOST_ONLY, on, 0, 0), 5);
	expect("EFER.SVME on, HostOnly", efer(0xc0 | HOST_ONLY, 0, 0, on), 5);
	expect("EFER.SVME off and on, both", efer(0xc0 | both, on, 0, on), 10);
	expect("EFER.SVME off and on, GuestOnly", efer(0xc0 | GUEST_ONLY, on, 0, on), 0);
	expect("EFER.SVME off and on, neither", efer(0xc0, on, 0, on), 14);
}

/* ---- intercepts come first */

extern char guest_rdpmc[], guest_wrmsr[], guest_rdmsr[], guest_call[];
asm(".pushsection .text.guest, \"ax\"\n"
    "guest_rdpmc: xor %ecx, %ecx\n"
    "rdpmc\n"
    "vmmcall\n"
    "guest_wrmsr: mov counter, %ecx\n"
    "mov $0x5a5a, %eax\n"
    "xor %edx, %edx\n"
    "wrmsr\n"
    "vmmcall\n"
    "guest_rdmsr: mov counter, %ecx\n"
    "rdmsr\n"
    "vmmcall\n"
    "guest_call: mov $13, %eax\n"
    "xor %ebx, %ebx\n"
    "vmmcall\n"
    "hlt\n"
    ".popsection");

static uint64_t exit_of(const void *guest, uint64_t intercepts)
{
	make_guest(guest, intercepts);
	arm(0xc0 | GUEST_ONLY | EVTSEL_USR | EVTSEL_OS, 0);
	svm_once();
	return get64(0x70);
}

static void permit(uint32_t msr, uint8_t bits)
{
	uint32_t at = 2 * (msr - 0xc0010000 + 0x4000);

	msrpm[at / 8] = (msrpm[at / 8] & ~(3 << at % 8)) | bits << at % 8;
}

static void check_intercepts(void)
{
	expect("RDPMC", exit_of(guest_rdpmc, 0), EXIT_VMMCALL);
	expect("RDPMC, counts", rdmsr(counter), 2);
	expect("RDPMC intercepted", exit_of(guest_rdpmc, INTERCEPT_RDPMC), EXIT_RDPMC);
	expect("RDPMC intercepted, counts", rdmsr(counter), 1);
	expect("WRMSR", exit_of(guest_wrmsr, INTERCEPT_MSR), EXIT_VMMCALL);
	expect("WRMSR, value", rdmsr(counter), 0x5a5b); /* it counts itself */
	permit(counter, 2);
	expect("WRMSR intercepted", exit_of(guest_wrmsr, INTERCEPT_MSR), EXIT_MSR);
	expect("WRMSR intercepted, counts", rdmsr(counter), 3);
	expect("RDMSR", exit_of(guest_rdmsr, INTERCEPT_MSR), EXIT_VMMCALL);
	permit(counter, 1);
	expect("RDMSR intercepted", exit_of(guest_rdmsr, INTERCEPT_MSR), EXIT_MSR);
	expect("RDMSR intercepted, counts", rdmsr(counter), 1);
	permit(counter, 0);
	make_guest(guest_call, 0);
	put64(0x00c, INTERCEPT_VMRUN);
	put32(0x008, 1 << 6);
	arm(0xc0 | GUEST_ONLY | EVTSEL_USR | EVTSEL_OS, 0);
	svm_once();
	expect("VMMCALL is nobody's", get64(0x70), EXIT_UD);
	expect("VMMCALL is nobody's, counts", rdmsr(counter), 2);
}

/* ---- the global interrupt flag, while another CPU loads its FPU's state */

extern char ap_code[], ap_code_end[];
asm(".pushsection .data\n"
    ".code16\n"
    "ap_code: xor %ax, %ax\n"
    "mov %ax, %ds\n"
    "1: fxrstor 0x9000\n"
    "jmp 1b\n"
    ".code64\n"
    "ap_code_end: .popsection");

static void wait_taken(unsigned int turns)
{
	while (turns-- && !taken)
		asm volatile("pause");
}

static void check_gif(uint64_t turns)
{
	uint64_t early = 0, lost = 0;

	for (size_t i = 0; i < 512; i++)
		((volatile char *)0x9000)[i] = 0;
	ap_start(0x8000, ap_code, ap_code_end);
	asm volatile("sti");
	while (turns--) {
		taken = 0;
		asm volatile("clgi" ::: "memory");
		apic_write(APIC_ICR, 0x40000 | VECTOR_TIMER); /* to itself */
		wait_taken(5); /* a few instructions, before each of which it could come */
		early += taken;
		asm volatile("stgi" ::: "memory");
		wait_taken(100000); /* or it never comes: there is nothing before it */
		lost += !taken;
	}
	asm volatile("cli");
	ap_stop();
	expect("interrupts taken without GIF", early, 0);
	expect("interrupts not taken with it", lost, 0);
}

static bool set_up(void)
{
	uint32_t a, b, c, d;

	cpuid(0x80000001, &a, &b, &c, &d);
	if (!(c & 4)) {
		print("not ok SVM: this CPU has none\n");
		return false;
	}
	evtsel = c & 1u << 23 ? 0xc0010200 : 0xc0010000;
	counter = c & 1u << 23 ? 0xc0010201 : 0xc0010004;
	cpuid(0x80000000, &a, &b, &c, &d);
	if (a >= 0x80000022) {
		cpuid(0x80000022, &a, &b, &c, &d);
		v2 = a & 1;
	}
	gate(0x90, guest_int);
	gate(6, guest_ud);
	apic_write(APIC_SVR, 0x1ff);
	return true;
}

/* Without SVM neither of the two bits counts anything. */
static void check_without(void)
{
	uint64_t select = 0xc0 | EVTSEL_USR | EVTSEL_OS | 1ull << 22;

	for (size_t s = 0; s < 4; s++) {
		wrmsr(counter, 0);
		wrmsr(evtsel, select | sides[s].bits);
		asm volatile("nop; nop; nop");
		wrmsr(evtsel, 0);
		expect(sides[s].bits ? "without SVM, with a side" : "without SVM",
		       rdmsr(counter) > 0, !sides[s].bits);
	}
}

int main(const char *line)
{
	uint64_t turns = option(line, "turns", 1), gif = option(line, "gif", 0);

	if (!set_up())
		return 0x21;
	if (v2)
		wrmsr(0xc0000301, 1);
	check_without();
	wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME);
	wrmsr(MSR_HSAVE, (uintptr_t)hsave);
	if (gif) {
		check_gif(gif);
		return 0x21;
	}
	check_first_overflow();
	while (turns--) {
		check_all_overflows();
		check_all_counts();
		check_entries();
		check_efer();
		check_intercepts();
	}
	return 0x21;
}
