// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Dynamically linked; what it executes depends on the addresses that it gets. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	char *p[1000];
	unsigned long sum = 0;

	for (int i = 0; i < 1000; i++) {
		p[i] = malloc(i * 7 + 1);
		for (unsigned long n = (unsigned long)p[i] >> 12 & 63; n; n--)
			sum = sum * 31 + n;
	}
	for (int i = 0; i < 1000; i++)
		free(p[i]);
	printf("%lx\n", sum);
	return 0;
}
