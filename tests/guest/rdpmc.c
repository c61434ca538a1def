// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * In a guest: a counter that is read with RDPMC from user space, by the rules of
 * perf's mmapped page. Prints one case.
 */
#define _GNU_SOURCE
#include <err.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS	1000
#define TURNS	1000
/* RDPMC, its result moved away, the loop; the second RDPMC is not in its own count */
#define BETWEEN	(1 + 2 + 2 * TURNS)

static uint64_t between(uint32_t counter)
{
	uint32_t low, low2;

	asm volatile("rdpmc\n\t"
		     "mov %%eax, %%esi\n\t"
		     "mov %[turns], %%edi\n\t"
		     "1: dec %%edi\n\t"
		     "jnz 1b\n\t"
		     "rdpmc\n\t"
		     : "=a" (low2), "=&S" (low)
		     : "c" (counter), [turns] "i" (TURNS)
		     : "rdx", "rdi", "cc");
	return low2 - low;
}

int main(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
		.pinned = 1,
	};
	volatile struct perf_event_mmap_page *page;
	uint32_t seq, index;
	uint64_t n = 0;
	int fd;

	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd < 0)
		err(1, "perf_event_open");
	page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		err(1, "mmap");
	if (!page->cap_user_rdpmc) {
		puts("not ok rdpmc: the page does not offer it");
		return 0;
	}
	for (int i = 0; i < ROUNDS; i++) {
		do {
			seq = page->lock;
			asm volatile("" : : : "memory");
			index = page->index;
			if (!index) {
				puts("not ok rdpmc: the event is not on a counter");
				return 0;
			}
			n = between(index - 1);
			asm volatile("" : : : "memory");
		} while (page->lock != seq);
		if (n != BETWEEN) {
			printf("not ok rdpmc: round %d: %llu instructions, not %d\n", i,
			       (unsigned long long)n, BETWEEN);
			return 0;
		}
	}
	printf("ok rdpmc: %d rounds of %d instructions\n", ROUNDS, BETWEEN);
	return 0;
}
