#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The core is freestanding: for each architecture it compiles without a warning,
# without floating point, VLAs or big frames, and needs nothing from outside but
# the four mem functions.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

mapfile -t sources < <(find lib -name '*.c' | sort)
if [ ${#sources[@]} = 0 ]; then
	echo 'skip symbols: lib/ has 0 .c files, needs 1'
	exit 0
fi

flags=(-std=c11 -O2 -ffreestanding -fno-stack-protector -fno-pie -Iinclude -Wall -Wextra -Werror
	-Wvla -Wframe-larger-than=1024 -Wmissing-prototypes -Wstrict-prototypes
	-mgeneral-regs-only)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# readelf, unlike nm and ld, reads every architecture's objects.
undefined() {
	readelf -sW "$1"/*.o | awk '
		$5 != "GLOBAL" && $5 != "WEAK" { next }
		$7 == "UND" { needed[$8]; next }
		{ defined[$8] }
		END { for (s in needed) if (!(s in defined)) print s }' |
		grep -vxE 'memcpy|memmove|memset|memcmp' | sort
}

compile() {
	local dir=$1 source object
	shift
	mkdir "$dir"
	for source in "${sources[@]}"; do
		object=${source#lib/}
		echo "$source -o $dir/${object//\//-}.o"
	done | xargs -P "$(nproc)" -L 1 "$@" "${flags[@]}" -c 2>"$dir/errors"
}

check() {
	local name=$1 dir="$tmp/$1" extra
	shift
	command -v "$1" >/dev/null || { echo "skip $name: $1 is not installed (tools/setup)" && return; }
	if ! compile "$dir" "$@"; then
		echo "not ok $name: $(grep -m 1 -E 'error|cannot' "$dir/errors")"
		cat "$dir/errors"
		return
	fi
	echo "ok $name compiles"
	extra=$(undefined "$dir")
	if [ -z "$extra" ]; then
		echo "ok $name symbols"
	else
		echo "not ok $name symbols: needs ${extra//$'\n'/ }"
	fi
}

check x86-64-gcc gcc -m64
check x86-64-clang clang -m64
check i386-gcc gcc -m32
check i386-clang clang -m32
# Outline atomics are a user space library's; the kernel has none either.
check arm64-clang clang --target=aarch64-linux-gnu -mno-outline-atomics
