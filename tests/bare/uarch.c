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
	uint64_t loads, stores, locked;
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

int main(const char *line)
{
	uint64_t n = option(line, "n", 1000), cr4;
	const struct kernel *k;
	unsigned int twice;

	asm volatile("mov %%cr4, %0" : "=r" (cr4));
	asm volatile("mov %0, %%cr4" : : "r" (cr4 | 0x600)); /* OSFXSR, OSXMMEXCPT */
	for (k = kernels; k < kernels_end; k++) {
		for (twice = 1; twice <= 2; twice++) {
			print(k->name);
			print(" ");
			print_number(k->loads, 10);
			print(" ");
			print_number(k->stores, 10);
			print(" ");
			print_number(k->locked, 10);
			print(" ");
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
