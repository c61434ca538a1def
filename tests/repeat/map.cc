// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A table by pointers: its order is that of the addresses. */
#include <cstdio>
#include <unordered_map>

int main()
{
	std::unordered_map<void *, int> map;
	unsigned long sum = 0;

	for (int i = 0; i < 20000; i++)
		map[new int(i)] = i;
	for (auto &pair : map)
		sum = sum * 31 + pair.second;
	std::printf("%lx\n", sum);
}
