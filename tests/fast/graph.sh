#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# No file needs itself in a circle, and no room one above it: tests/graph on what is built,
# and on a small project that has one of each. The rooms of the kernel modules are looked
# at where those are built, by module.sh and guest-module.sh.
set -euo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${VPMU_BUILD:-$PWD/build}
# shellcheck source=tests/case.sh
. tests/case.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tests/graph "$build"

# put FILE TEXT: into the project, and its object.
put() {
	mkdir -p "$work/${1%/*}"
	echo "$2" >"$work/$1"
	if [[ $1 == *.c ]]; then
		cc -c -I "$work/include" -o "$work/build/${1//\//_}.o" "$work/$1"
	fi
}
compile_commands() {
	local f comma='['
	for f in $(cd "$work" && find lib -name '*.c'); do
		echo "$comma {\"directory\": \"$work/build\", \"file\": \"../$f\", \"output\": \"${f//\//_}.o\"}"
		comma=,
	done
	echo ']'
}
# finds NAME LINE: the project's findings have this line.
finds() {
	compile_commands >"$work/build/compile_commands.json"
	"$work/tests/graph" "$work/build" >"$work/out" || true
	case_of "$1" "$(grep -qF -- "$2" "$work/out" || paste -sd' ' "$work/out")"
}
mkdir -p "$work/tests" "$work/build" "$work/include/vpmu"
cp tests/graph "$work/tests/"
: >"$work/tests/graph.tsv"

put lib/perf/a.c 'void b(void); static void s(void) {} void a(void) { s(); b(); }'
put lib/perf/b.c 'static void s(void) {} void b(void) { s(); }'
put lib/guest/g.c 'void b(void); void g(void) { b(); }'
finds 'nothing wrong' 'ok calls without circles'
case_of 'nothing else' "$(grep '^not' "$work/out" || true)"
put lib/perf/b.c 'void a(void); void (*const b_table[])(void) = { a }; void b(void) { a(); }'
finds 'a circle' 'not ok calls without circles: lib/perf/a.c lib/perf/b.c'
printf 'circle\tlib/perf/a.c lib/perf/b.c\twanted\n' >"$work/tests/graph.tsv"
finds 'a row for it' 'ok calls without circles'
put lib/perf/b.c 'void g(void); void b(void) { g(); }'
finds 'a row that is not needed' 'are needed: circle lib/perf/a.c lib/perf/b.c: no longer there'
finds 'a call upwards' 'not ok calls lead down: lib/perf/b.c -> lib/guest/g.c: g'
: >"$work/tests/graph.tsv"
put include/vpmu/g.h '/* a public one */ void g(void);'
put lib/perf/b.c $'#include <vpmu/g.h>\nvoid b(void) {}'
finds 'a header of above' 'not ok includes lead down: lib/perf/b.c -> include/vpmu/g.h'
put lib/perf/p_internal.h ''
put lib/guest/g.c $'#include "../perf/p_internal.h"\nvoid g(void) {}'
finds "another room's header" 'lib/guest/g.c -> lib/perf/p_internal.h'
put lib/new/n.c 'int n;'
finds 'a room without a layer' 'not ok rooms have a layer: lib/new: none in tests/graph'
