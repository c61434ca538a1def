// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
const map = new Map();
let sum = 0;
for (let i = 0; i < 50000; i++)
	map.set({}, i);
for (let i = 0; i < 300000; i++)
	sum = (sum * 31 + i % 7) | 0;
console.log(sum, map.size, Math.random());
