#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 600
#
# Static checks: clang-tidy with the checks of .clang-tidy, codespell except for the
# words of tests/spelling, sizes and stack of lib/. Files that clang-tidy has passed are
# remembered in vpmu's cache, by their content: the first run takes minutes, the next one seconds.
# tests/fast/style.sh and headers.sh are the rest of make lint; sparse runs where the
# modules are built.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${VPMU_BUILD:-$PWD/build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if ! git rev-parse --git-dir >/dev/null 2>&1; then
	echo 'skip lint: not a git checkout'
	exit 0
fi

# shellcheck disable=SC1091 # beside this folder
. tests/report.sh

# tidy FILE: print its findings. A stamp identifies the content that had none.
tidy() {
	local stamp=$stamps/${1//\//_} key
	key=$(cat "$1" "$others" | sha256sum)
	[ "$key" != "$(cat "$stamp" 2>/dev/null)" ] || return 0
	if clang-tidy -p "$build" --quiet "$1" >"$stamp.out" 2>"$stamp.err"; then
		echo "$key" >"$stamp"
	else
		grep -hE ': (warning|error): ' "$stamp.out" "$stamp.err" | sed -E "s,^($build/)?[.][.]/,," | sort -u |
			grep . || echo "$1: clang-tidy failed: $(tail -n 1 "$stamp.err")"
	fi
	rm -f "$stamp.out" "$stamp.err"
}

if command -v clang-tidy >/dev/null; then
	export build stamps=${XDG_CACHE_HOME:-$HOME/.cache}/vpmu/lint others=$tmp/others
	export -f tidy
	mkdir -p "$stamps"
	{ cat .clang-tidy && clang-tidy --version && git ls-files '*.h' | xargs cat; } >"$others" 2>/dev/null
	git ls-files {lib,host,tools,kvm/vmm}/'*.c' |
		xargs -P "$(nproc)" -I{} bash -c 'tidy {}' | report clang-tidy
else
	echo 'skip clang-tidy: not installed: apt-get install clang-tidy'
fi

if command -v codespell >/dev/null; then
	# Neither others' words nor data.
	git ls-files -z | grep -zvE '^(LICENSES|qemu/patches|linux/man|fuzz/corpus|tests/unit/golden)/|\.(tsv|json)$|^tests/spelling$' |
		xargs -0 codespell -I tests/spelling 2>&1 | report codespell
else
	echo 'skip codespell: not installed: apt-get install codespell'
fi

if tests/stack "$build" >"$tmp/stack" 2>&1; then
	echo 'ok stack'
else
	echo "not ok stack: $(tail -n 1 "$tmp/stack")"
fi
cat "$tmp/stack"
