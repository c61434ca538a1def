# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
table = {str(i): object() for i in range(5000)}
print(sum(hash(k) & 1 for k in table), sum(id(v) & 0xFF0 for v in table.values()))
