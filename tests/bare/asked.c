// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A CPU leaves what QEMU has translated when it is asked to. An interrupt ends each kind of
 * loop. If an instruction is the reason, the CPU leaves before the next one: an interrupt that it
 * sends to its own CPU arrives there, and memory that it maps is there. Each is a store to a
 * device, by one instruction among others and by the last of a block.
 *
 * Command line: turns=N of each; count=1: with a counter of instructions. With -machine q35.
 */
#include "bare.h"

#define WINDOW		511	/* an entry of 2 MiB that maps no RAM */
#define CONFIG		((uint32_t)WINDOW << 21)
#define PCI_ADDRESS	0xcf8
#define PCI_DATA	0xcfc
#define PCIEXBAR	0x80000060
#define ECAM		0xb0000000
#define PAM0		0x90	/* of the host bridge: who is at F0000 */
#define PAM0_RAM	0x30
#define SEGMENT		0xf0000
#define MARK		0x5a5aa5a5
#define APIC		0xfee00000
#define ICR_SELF	0x40000

static volatile uintptr_t way_out; /* where the interrupt returns to, if not 0 */
static volatile uintptr_t came_from;
static volatile uint64_t n_taken;

bool on_trap(struct frame *f)
{
	if (f->vector != VECTOR_TIMER)
		return false;
	apic_write(APIC_EOI, 0);
	came_from = f->rip;
	n_taken++;
	if (way_out)
		f->rip = way_out;
	return true;
}

/* Only the timer ends @body, with whatever is on the stack then. */
#define SPIN(body)						\
	asm volatile("movq $9f, %0\n"				\
		     "mov %%rsp, %%rdx\n"			\
		     "sti\n"					\
		     body "\n"					\
		     "9: cli\n"					\
		     "mov %%rdx, %%rsp"				\
		     : "=m" (way_out) : : "rax", "rcx", "rdx", "memory", "cc")

static void spin(int kind)
{
	switch (kind) {
	case 0: SPIN("1: jmp 1b"); break;
	case 1: SPIN("1: test %%eax, %%eax\n" "jz 2f\n" "nop\n" "2: nop\n" "jmp 1b"); break;
	case 2: SPIN("1: xor %%eax, %%eax\n" "jz 1b"); break;
	case 3: SPIN("1: mov $-1, %%ecx\n" "2: loop 2b\n" "jmp 1b"); break;
	case 4: SPIN("mov $1f, %%eax\n" "1: jmp *%%rax"); break;
	case 5: SPIN("1: push $1b\n" "ret"); break;
	case 6: SPIN("1: call 2f\n" "jmp 1b\n" "2: ret"); break;
	case 7: SPIN("1: jmp 2f\n"
		     ".pushsection .text\n"
		     ".balign 4096\n"
		     "2: jmp 1b\n"
		     ".balign 4096\n"
		     ".popsection"); break;
	case 8: SPIN("1: pushfq\n" "popfq\n" "jmp 1b"); break;
	}
}

/* Returns how many interrupts were taken: one in each loop, which does not end without. */
static uint64_t spins(uint32_t turns)
{
	for (uint32_t i = 0; i < turns; i++)
		for (int kind = 0; kind < 9; kind++) {
			apic_write(APIC_INITIAL, 1000 + below(20000));
			spin(kind);
		}
	way_out = 0;
	return n_taken;
}

/*
 * Store to a device's register and go on; if @last, the store is a block's last instruction.
 * What is behind it is chained to it by a store that asks for nothing, so that comes first.
 */
static __attribute__((noinline)) uintptr_t send(uintptr_t at, uint32_t value, bool last)
{
	uintptr_t next;
	uint32_t one = 1;

	if (last)
		asm volatile("sti\n" "nop\n" "mov $1f, %0\n"
			     "rep stosl\n"
			     "1: nop\n" "test %%ecx, %%ecx\n" "jz 2f\n" "nop\n" "2: nop\n" "cli"
			     : "=&r" (next), "+D" (at), "+c" (one) : "a" (value) : "memory", "cc");
	else
		asm volatile("sti\n" "nop\n" "mov $1f, %0\n"
			     "mov %2, (%1)\n"
			     "1: nop\n" "nop\n" "cli"
			     : "=&r" (next) : "r" (at), "r" (value) : "memory", "cc");
	return next;
}

/* How many interrupts came from the instruction behind the store that sent them. */
static uint64_t sent(uint32_t turns, bool last)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < turns; i++) {
		came_from = 0;
		send(APIC + APIC_ICR_HIGH, 0, last);
		n += came_from == 0;
		n += send(APIC + APIC_ICR, ICR_SELF | VECTOR_TIMER, last) == came_from;
	}
	return n;
}

/* Returns what a read of the segment finds behind the store that maps it. */
static __attribute__((noinline)) uint32_t map(uint8_t pam, bool last)
{
	uint64_t at = CONFIG + PAM0;
	uint32_t value, one = 1;

	if (last)
		asm volatile("rep stosb\n"
			     "mov (%4), %0"
			     : "=&r" (value), "+D" (at), "+c" (one)
			     : "a" (pam), "r" ((uint64_t)SEGMENT) : "memory");
	else
		asm volatile("mov %2, (%1)\n"
			     "mov (%3), %0"
			     : "=&r" (value)
			     : "r" (at), "q" (pam), "r" ((uint64_t)SEGMENT) : "memory");
	return value;
}

/* How many reads saw what the store before them has mapped: RAM, or the firmware. */
static uint64_t mapped(uint32_t turns, bool last, uint32_t firmware)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < turns; i++)
		for (int again = 0; again < 2; again++)
			n += map(i & 1 ? PAM0_RAM : 0, last) == (i & 1 ? MARK : firmware);
	return n;
}

static void maps(uint32_t turns)
{
	volatile uint8_t *pam = (uint8_t *)(uintptr_t)(CONFIG + PAM0);
	uint32_t firmware;

	outl(PCI_ADDRESS, PCIEXBAR);
	outl(PCI_DATA, ECAM | 1);
	low[WINDOW] = ECAM | 0x9b; /* uncached */
	asm volatile("invlpg %0" : : "m" (*pam) : "memory");
	*pam = 0;
	firmware = *word(SEGMENT);
	*pam = PAM0_RAM;
	*word(SEGMENT) = MARK;
	expect("memory mapped by a store", mapped(turns, false, firmware), 2 * turns);
	expect("memory mapped by a store that is a block's last", mapped(turns, true, firmware),
	       2 * turns);
}

int main(const char *line)
{
	uint32_t turns = option(line, "turns", 500);

	apic_write(APIC_SVR, 0x1ff);
	apic_write(APIC_LVT_TIMER, VECTOR_TIMER);
	if (option(line, "count", 0)) {
		wrmsr(MSR_FIXED_CTRL, 3);
		wrmsr(MSR_GLOBAL, 1ull << 32);
	}
	expect("loops that an interrupt ends", spins(turns), 9ull * turns);
	expect("an interrupt to oneself", sent(turns, false), 2 * turns);
	expect("an interrupt to oneself by a block's last", sent(turns, true), 2 * turns);
	maps(turns);
	return 0x21;
}
