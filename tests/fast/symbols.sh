#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 240
#
# The core is freestanding: for each architecture it compiles without a warning,
# without floating point, VLAs or big frames, and needs nothing from outside but
# the four mem functions.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

mapfile -t sources < <(find "$PWD/lib" -name '*.c' | sort)
if [ ${#sources[@]} = 0 ]; then
	echo 'skip symbols: lib/ has 0 .c files, needs 1'
	exit 0
fi

flags=(-std=c11 -O2 -ffreestanding -fno-stack-protector -fno-pie -Iinclude -Wall -Wextra -Werror
	-Wno-unused-parameter -Wvla -Wframe-larger-than=1024 -Wmissing-prototypes
	-Wstrict-prototypes -mgeneral-regs-only)
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

# As one translation unit, as a kernel module has it; compilers take their time to start.
compile() {
	local dir=$1
	shift
	mkdir "$dir"
	printf '#include "%s"\n' "${sources[@]}" >"$dir/all.c"
	"$@" "${flags[@]}" -c -o "$dir/all.o" "$dir/all.c" 2>"$dir/errors"
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

# Outline atomics are a user space library's; the kernel has none either.
targets=(
	'x86-64-gcc gcc -m64'
	'x86-64-clang clang -m64'
	'i386-gcc gcc -m32'
	'i386-clang clang -m32'
	'arm64-clang clang --target=aarch64-linux-gnu -mno-outline-atomics'
)
for target in "${targets[@]}"; do
	read -ra words <<<"$target"
	check "${words[@]}" >"$tmp/${words[0]}.report" &
done
wait
cat "$tmp"/*.report
