// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A CPU changes code that another one is executing, again and again, and then tells it. From
 * there on the other one must execute what is written, as the kernel's text_poke() expects:
 * in a page that has other code too, and in one that has none.
 *
 * And code in a page table, whose last instruction goes on in the page that the table maps
 * next: fetching that part sets the accessed flag in the page of the first one.
 *
 * Command line: turns=N in each.
 */
#include "bare.h"

#define AP_CODE		0x8000u
#define CHANGED_BESIDE	0x8800u
#define CHANGED_ALONE	0x9800u
#define AP_TOLD		0xaf00u
#define AP_CALLS	0xaf08u
#define AP_STALE	0xaf10u
#define AP_PASSES	0xaf20u

extern char ap_code[], ap_code_end[];
asm(".pushsection .data\n"
    ".code16\n"
    "ap_code: xor %ax, %ax\n"
    "mov %ax, %ds\n"
    "mov %ax, %ss\n"
    "mov $0xae00, %sp\n"
    "1: mov 0xaf00, %esi\n"
    "xor %eax, %eax\n"
    "cpuid\n" /* serializes, as a CPU must that executes changed code */
    "callw *0xaf08\n"
    "cmp %esi, %eax\n"
    "jae 2f\n"
    "incl 0xaf10\n"
    "2: incl 0xaf20\n"
    "jmp 1b\n"
    ".code64\n"
    "ap_code_end: .popsection");

bool on_trap(struct frame *f)
{
	(void)f;
	return false;
}

static void change(const char *where, uint32_t at, uint32_t turns)
{
	static const uint8_t code[] = { 0x66, 0xb8, 0, 0, 0, 0, 0xc3 }; /* mov $0, %eax; ret */
	uint32_t n, passes;

	for (size_t i = 0; i < sizeof(code); i++)
		((volatile uint8_t *)(uintptr_t)at)[i] = code[i];
	*word(AP_TOLD) = 0;
	*word(AP_CALLS) = at - AP_CODE; /* CS begins there */
	*word(AP_STALE) = 0;
	*word(AP_PASSES) = 0; /* none of before stand for this one's */
	ap_start(AP_CODE, ap_code, ap_code_end);
	for (n = 1; n <= turns; n++) {
		*word(at + 2) = n;
		*word(AP_TOLD) = n;
		passes = *word(AP_PASSES);
		for (int i = 0; i < 1000 && *word(AP_PASSES) - passes < 2; i++)
			asm volatile("pause");
	}
	ap_stop();
	print(*word(AP_STALE) || !*word(AP_PASSES) ? "not ok " : "ok ");
	print("code changed by another CPU, ");
	print(where);
	if (*word(AP_STALE)) {
		print(": old one, times ");
		print_number(*word(AP_STALE), 10);
	}
	print("\n");
}

#define ACCESSED	0x20
#define WINDOW		510 /* an entry of 2 MiB that maps no RAM */

static void in_a_table(uint32_t turns)
{
	static uint64_t table[512] __attribute__((aligned(4096)));
	static const uint8_t rest[4096] __attribute__((aligned(4096))) = { 3, 4, 0xc3 }; /* ret */
	uint8_t *const window = (uint8_t *)((uintptr_t)WINDOW << 21);
	uint32_t n, found = 0x4030201;

	table[0] = (uintptr_t)table | 3;
	table[511] = 0x0201b89090909090; /* nop, mov $0x....0201, %eax; not present as an entry */
	low[WINDOW] = (uintptr_t)table | 3;
	for (n = 0; n < turns && found == 0x4030201; n++) {
		table[1] = (uintptr_t)rest | 3;
		asm volatile("invlpg %0" : : "m" (window[4096]) : "memory");
		asm volatile("call *%1" : "=a" (found) : "r" (window + 4088) : "memory");
		if (!(table[1] & ACCESSED))
			break;
	}
	print(n == turns ? "ok " : "not ok ");
	print("code in a page table\n");
}

int main(const char *line)
{
	uint32_t turns = option(line, "turns", 10000);

	apic_write(APIC_SVR, 0x1ff);
	change("beside other code", CHANGED_BESIDE, turns);
	change("in a page of its own", CHANGED_ALONE, turns);
	in_a_table(turns);
	return 0x21;
}
