#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# tests/commits, as make check-commits BASE=HEAD~3 runs it, finds the one commit of a small
# project that does not build, and leaves nothing behind.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git=(git -C "$work" -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false)
commit() { # SUBJECT C-SOURCE
	echo "$2" >"$work/a.c"
	"${git[@]}" add -A && "${git[@]}" commit -q -m "$1"
}
mkdir "$work/tests"
cp tests/commits "$work/tests/"
cp Makefile "$work/"
printf "project('a', 'c', default_options: ['warning_level=2'])\nstatic_library('a', 'a.c')\n" >"$work/meson.build"
git init -q "$work"
commit 'a: begins' 'int a(void); int a(void) { return 0; }'
commit 'a: is one' 'int a(void); int a(void) { return 1; }'
commit 'a: warns' 'int a(void); int a(void) { int b; return 2; }'
commit 'a: is three' 'int a(void); int a(void) { return 3; }'

commits() { make -s -C "$work" check-commits "$@" 2>&1; }
out=$(commits BASE=HEAD~3)
case_of 'a range' "$([ "$(grep -cE '^ok [0-9a-f]+ a: is (one|three)$' <<<"$out")" = 2 ] &&
	grep -qE '^not ok [0-9a-f]+ a: warns: does not build$' <<<"$out" &&
	grep -q "unused variable 'b'\|unused variable ‘b’" <<<"$out" || paste -sd' ' <<<"$out")"
commits BASE=HEAD~1 >"$work/out"
case_of 'status 0' "$([ $? = 0 ] || paste -sd' ' "$work/out")"
out=$(commits BASE=nothing)
case_of 'no such commit' "$([[ $out == *"found 'nothing', needed a commit"* ]] || echo "$out")"
case_of 'no worktree is left' "$(git -C "$work" worktree list | tail -n +2)"
