// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Work for a guest, the same on every machine:
 *
 *   work hash MB    SHA-256 of MB million zero bytes
 *   work chase N    N steps in a ring of 32 MB, whose order is random
 *   work calls N    Fibonacci's Nth number by recursion
 *   work switch N   two tasks, whose numbers it prints, hand each other a byte N times
 *                   there and back, after a line of input
 */
#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

uint64_t calls(uint32_t n);

static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void expand(uint32_t w[64], const uint8_t *block)
{
	uint32_t a, b;

	for (int i = 0; i < 16; i++, block += 4)
		w[i] = (uint32_t)block[0] << 24 | block[1] << 16 | block[2] << 8 | block[3];
	for (int i = 16; i < 64; i++) {
		a = w[i - 15];
		b = w[i - 2];
		w[i] = w[i - 16] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) +
			w[i - 7] + (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
	}
}

static void compress(uint32_t state[8], const uint8_t *block)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
	uint32_t w[64], t, u;

	expand(w, block);
	for (int i = 0; i < 64; i++) {
		t = h + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) +
			((e & f) ^ (~e & g)) + k[i] + w[i];
		u = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) +
			((a & b) ^ (a & c) ^ (b & c));
		h = g, g = f, f = e, e = d + t;
		d = c, c = b, b = a, a = t + u;
	}
	state[0] += a, state[1] += b, state[2] += c, state[3] += d;
	state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

/* A million bytes are whole blocks, so the last one holds the length only. */
static void hash(uint64_t bytes)
{
	uint32_t h[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};
	static uint8_t data[64000];
	uint8_t last[64] = { 0x80 };

	for (uint64_t done = 0; done < bytes; done += 64)
		compress(h, data + done % sizeof(data));
	for (int i = 0; i < 8; i++)
		last[63 - i] = bytes * 8 >> 8 * i;
	compress(h, last);
	for (int i = 0; i < 8; i++)
		printf("%08" PRIx32, h[i]);
	printf("\n");
}

/* One node for each cache line, each visited before one is visited again (Sattolo). */
static int chase(unsigned long steps)
{
	enum { NODES = 1 << 19, LINE = 64 };
	char *nodes = aligned_alloc(LINE, (size_t)NODES * LINE);
	uint32_t *order = malloc(NODES * sizeof(*order)), at = 0, random = 1, swapped;

	if (!nodes || !order)
		return 1;
	for (uint32_t i = 0; i < NODES; i++)
		order[i] = i;
	for (uint32_t i = NODES - 1; i; i--) {
		random = random * 1664525 + 1013904223;
		at = (uint64_t)random * i >> 32;
		swapped = order[i], order[i] = order[at], order[at] = swapped;
	}
	for (uint32_t i = 0; i < NODES; i++)
		memcpy(nodes + (size_t)i * LINE, &order[i], sizeof(*order));
	for (at = 0; steps--;)
		memcpy(&at, nodes + (size_t)at * LINE, sizeof(at));
	printf("%" PRIu32 "\n", at);
	free(order);
	free(nodes);
	return 0;
}

static int hand_over(int from, int to, unsigned long times, int first)
{
	char byte = 0;

	if (first && write(to, &byte, 1) != 1)
		return 1;
	while (times--)
		if (read(from, &byte, 1) != 1 ||
		    ((times || !first) && write(to, &byte, 1) != 1))
			return 1;
	return 0;
}

static int switch_tasks(unsigned long times)
{
	struct sched_param first = { .sched_priority = 1 };
	int there[2], back[2], status;
	char line[16];
	pid_t child;

	if (pipe(there) || pipe(back))
		return 1;
	/* Then no other task has a turn between, if the user may have that. */
	sched_setscheduler(0, SCHED_FIFO, &first);
	child = fork();
	if (child < 0)
		return 1;
	if (!child)
		_exit(hand_over(there[0], back[1], times, 0));
	printf("%d %d\n", getpid(), child);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) || hand_over(back[0], there[1], times, 1))
		return 1;
	return waitpid(child, &status, 0) != child || status;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "hash"))
		hash(strtoul(argv[2], NULL, 10) * 1000000);
	else if (argc == 3 && !strcmp(argv[1], "calls"))
		printf("%" PRIu64 "\n", calls(strtoul(argv[2], NULL, 10)));
	else if (argc == 3 && !strcmp(argv[1], "chase"))
		return chase(strtoul(argv[2], NULL, 10));
	else if (argc == 3 && !strcmp(argv[1], "switch"))
		return switch_tasks(strtoul(argv[2], NULL, 10));
	else
		return 2;
	return 0;
}
