// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Work with a known effect on a CPU: modelled KIND NUMBER [KIB].
 *
 *   chase N KIB    N loads, each of which gives the address of the next one, along all lines
 *                  of KIB KiB, in an order without a pattern; one instruction, `link`
 *   read N KIB     KIB KiB, 8 bytes at a time, N times
 *   store N KIB    KIB KiB written likewise
 *   branch N       N branches that a random bit decides
 *   steady N       N branches that go the same way
 *   code N KIB     N times through KIB KiB of code, a jump in each line
 *   plain N        N independent instructions
 *   rows N, columns N   N rows of a product of two matrices of 128 times 128, along rows
 *                  of the second or down its columns
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE 64

static uint64_t area[4 << 17] __attribute__((aligned(4096))); /* 4 MiB */
static uint32_t order[4 << 14];

static void chase(uint64_t n, uint64_t kib)
{
	uint32_t lines = kib * 1024 / LINE, x = 1, i, j, t;
	void *at = area;

	for (i = 0; i < lines; i++)
		order[i] = i;
	for (i = lines - 1; i > 0; i--) {
		x = x * 1664525 + 1013904223;
		j = (x >> 8) % (i + 1);
		t = order[i];
		order[i] = order[j];
		order[j] = t;
	}
	for (i = 0; i < lines; i++)
		area[order[i] * 8] = (uintptr_t)&area[order[(i + 1) % lines] * 8];
	asm volatile("1:\n\t"
		     ".globl link\n"
		     "link:	mov (%0), %0\n\t"
		     "dec %1\n\t"
		     "jnz 1b" : "+r" (at), "+r" (n) : : "memory");
}

static void pass(uint64_t n, uint64_t kib, int store)
{
	for (; n; n--) {
		uint64_t *p = area, *end = area + kib * 128;

		if (store)
			asm volatile("1: movq %0, (%0)\n\tadd $8, %0\n\tcmp %1, %0\n\tjb 1b"
				     : "+r" (p) : "r" (end) : "memory", "cc");
		else
			asm volatile("1: movq (%0), %%rax\n\tadd $8, %0\n\tcmp %1, %0\n\tjb 1b"
				     : "+r" (p) : "r" (end) : "rax", "memory", "cc");
	}
}

/* A linear feedback shift register's low bit is what the branch looks at. */
static void branch(uint64_t n, uint64_t mask)
{
	uint64_t x = 0x123456789abcdef1, y;

	asm volatile("1:	mov %0, %2\n\t"
		     "shl $13, %2\n\txor %2, %0\n\t"
		     "mov %0, %2\n\tshr $7, %2\n\txor %2, %0\n\t"
		     "mov %0, %2\n\tshl $17, %2\n\txor %2, %0\n\t"
		     "test %3, %0\n\t"
		     "jz 2f\n\t"
		     "nop\n"
		     "2:	dec %1\n\t"
		     "jnz 1b"
		     : "+r" (x), "+r" (n), "=&r" (y) : "r" (mask) : "cc");
}

static void code(uint64_t n, uint64_t kib)
{
	uint64_t lines = kib * 1024 / LINE, i;
	uint8_t *p = mmap(NULL, kib * 1024, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	for (i = 0; i + 1 < lines; i++)
		memcpy(p + i * LINE, "\xeb\x3e", 2);    /* jmp to the next line */
	p[i * LINE] = 0xc3;                             /* ret */
	for (; n; n--)
		((void (*)(void))(uintptr_t)p)();
}

static void plain(uint64_t n)
{
	asm volatile("1: .rept 62\n\tmov $1, %%eax\n\t.endr\n\tsub $64, %0\n\tjnz 1b"
		     : "+r" (n) : : "rax", "cc");
}

static void product(uint32_t n, int rows)
{
	uint32_t *a = (uint32_t *)area, *b = a + 128 * 128, *c = b + 128 * 128;
	uint32_t i, j, k;

	for (i = 0; i < n; i++)
		for (j = 0; j < 128; j++)
			for (k = 0; k < 128; k++) {
				uint32_t in = rows ? j : k, out = rows ? k : j;

				c[i * 128 + out] += a[i * 128 + in] * b[in * 128 + out];
			}
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[1] : "";
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t kib = argc > 3 ? strtoull(argv[3], NULL, 10) : 4096;

	if (kib > 4096 || !kib)
		return 2;
	if (!strcmp(kind, "chase"))
		chase(n, kib);
	else if (!strcmp(kind, "read") || !strcmp(kind, "store"))
		pass(n, kib, *kind == 's');
	else if (!strcmp(kind, "branch"))
		branch(n, 1 << 20);
	else if (!strcmp(kind, "steady"))
		branch(n, 0);
	else if (!strcmp(kind, "code"))
		code(n, kib);
	else if (!strcmp(kind, "plain"))
		plain(n & ~63ull);
	else if (!strcmp(kind, "rows") || !strcmp(kind, "columns"))
		product((uint32_t)n, *kind == 'r');
	else
		return 2;
	return 0;
}
