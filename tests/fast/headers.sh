#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Each public header stands alone, for gcc and clang, as C11 and as C++.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

for header in include/vpmu/*.h; do
	name=${header#include/}
	for cc in gcc clang; do
		command -v $cc >/dev/null || { echo "skip $name $cc: not installed (tools/setup)" && continue; }
		for std in c11 c++17; do
			lang=c
			[ $std = c11 ] || lang=c++
			if errors=$(printf '#include <%s>\n#include <%s>\n' "$name" "$name" |
				$cc -x $lang -std=$std -Iinclude -Wall -Wextra -Wpedantic -Werror \
					-Wno-unused-function -fsyntax-only - 2>&1); then
				echo "ok $name $cc $std"
			else
				echo "not ok $name $cc $std: $(grep -m 1 error <<<"$errors")"
				echo "$errors"
			fi
		done
	done
done
