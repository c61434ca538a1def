// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * One CPU maps the top of the first MiB again and again, by a PAM register of the host
 * bridge, while another one compares a device's registers with their first values. Each
 * access must reach that device; the first register, which cannot be changed, also in a
 * LOCKed instruction, for which QEMU stops all other CPUs.
 *
 * Command line: turns=N. With -smp 2.
 */
#include "bare.h"

#define WINDOW		511	/* an entry of 2 MiB that maps no RAM */
#define HPET		((uint32_t)WINDOW << 21 | 0x100000)
#define PCI_ADDRESS	0xcf8
#define PCI_DATA	0xcfc
#define PAM		0x80000058	/* the words with PAM1 */
#define PAM1		2		/* its byte in them */

#define AP_CODE		0x8000
#define AP_REGISTERS	0x9000
#define AP_PASSES	0xa000
#define AP_WRONG	0xa004

extern char ap_code[], ap_code_end[];
asm(".pushsection .data\n"
    ".code16\n"
    "ap_code: cli\n"
    "cld\n"
    "xor %ax, %ax\n"
    "mov %ax, %ds\n"
    "mov %ax, %es\n"
    "lgdtl 0x8000 + 4f - ap_code\n"
    "mov %cr0, %eax\n"
    "or $1, %al\n"
    "mov %eax, %cr0\n"
    "mov $8, %bx\n"
    "mov %bx, %fs\n" /* 4 GiB, and stays so in real mode */
    "and $0xfe, %al\n"
    "mov %eax, %cr0\n"
    "1: mov $0xfed00000, %esi\n"
    "mov $0x9000, %edi\n"
    "mov $256, %ecx\n"
    "repe cmpsl %es:(%edi), %fs:(%esi)\n"
    "je 2f\n"
    "incl 0xa004\n"
    "2: mov $0xfed00000, %esi\n"
    "xor %eax, %eax\n"
    "lock xaddl %eax, %fs:(%esi)\n"
    "cmp %eax, 0x9000\n"
    "je 5f\n"
    "incl 0xa004\n"
    "5: incl 0xa000\n"
    "jmp 1b\n"
    "3: .quad 0, 0x00cf92000000ffff\n"
    "4: .word 15\n"
    ".long 0x8000 + 3b - ap_code\n"
    ".code64\n"
    "ap_code_end: .popsection");

bool on_trap(struct frame *f)
{
	(void)f;
	return false;
}

int main(const char *line)
{
	uint32_t turns = option(line, "turns", 1000), wrong, passes;

	apic_write(APIC_SVR, 0x1ff);
	low[WINDOW] = 0xfec00000 | 0x9b; /* uncached */
	for (uint32_t i = 0; i < 1024; i += 4)
		*word(AP_REGISTERS + i) = *word(HPET + i);
	*word(AP_PASSES) = 0;
	*word(AP_WRONG) = 0;
	ap_start(AP_CODE, ap_code, ap_code_end);
	for (int i = 0; i < 10000000 && !*word(AP_PASSES); i++)
		asm volatile("pause");
	outl(PCI_ADDRESS, PAM);
	for (uint32_t i = 0; i < turns; i++)
		outb(PCI_DATA + PAM1, i & 1 ? 0x33 : 0); /* RAM as what is around it, or not */
	ap_stop();
	wrong = *word(AP_WRONG);
	passes = *word(AP_PASSES);
	print(wrong || !passes ? "not ok " : "ok ");
	print("a device's registers while another CPU maps memory");
	if (wrong || !passes) {
		print(": wrong ");
		print_number(wrong, 10);
		print(" of ");
		print_number(passes, 10);
	}
	print("\n");
	return 0x21;
}
