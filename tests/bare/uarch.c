// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The kernels of uarch.S, without an operating system, one after the other, each
 * twice: @n times and twice as often. Before and after each it waits for a byte on the
 * serial line, in a loop that accesses no memory.
 */
#include "bare.h"

struct kernel {
	void (*run)(uint64_t n);
	const char *name;
	uint64_t count[6];
};
extern const struct kernel kernels[], kernels_end[];

bool on_trap(struct frame *f)
{
	(void)f;
	return false;
}

static void wait(void)
{
	asm volatile("1: mov $0x3fd, %%edx\n\t"
		     "inb %%dx, %%al\n\t"
		     "test $1, %%al\n\t"
		     "jz 1b\n\t"
		     "mov $0x3f8, %%edx\n\t"
		     "inb %%dx, %%al" : : : "rax", "rdx", "cc");
}

/* 0x40021000 is translated by entry 33 of a table in the HPET: timer 0's comparator. */
static void table_in_device(void)
{
	static uint64_t directory[512] __attribute__((aligned(4096)));
	const uint64_t data = 0x1600000;
	volatile uint64_t *hpet = (void *)(0x40200000 + 0x100000);
	uint64_t *table;

	asm volatile("mov %%cr3, %0" : "=r" (table)); /* the page table is identity-mapped */
	table = (uint64_t *)(table[0] & ~0xfffull);
	directory[0] = 0xfed00000 | 0x63;
	directory[1] = 0xfec00000 | 0xfb; /* 2 MiB as they are, the HPET in them; uncached */
	table[1] = (uintptr_t)directory | 0x63;
	hpet[33] = data | 0x63; /* present, written, dirty */
}

int main(const char *line)
{
	uint64_t n = option(line, "n", 1000), cr4;
	const struct kernel *k;
	unsigned int twice, i;

	asm volatile("mov %%cr4, %0" : "=r" (cr4));
	asm volatile("mov %0, %%cr4" : : "r" (cr4 | 0x600)); /* OSFXSR, OSXMMEXCPT */
	table_in_device();
	for (k = kernels; k < kernels_end; k++) {
		for (twice = 1; twice <= 2; twice++) {
			print(k->name);
			print(" ");
			for (i = 0; i < 6; i++) {
				print_number(k->count[i], 10);
				print(" ");
			}
			print_number(n * twice, 10);
			print("\n");
			wait();
			k->run(n * twice);
			print("done\n");
			wait();
		}
	}
	print("end\n");
	return 0;
}
