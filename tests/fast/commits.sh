#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# tests/commits, as make check-commits BASE=HEAD~3 runs it, finds the one commit of a small
# project that does not build, and leaves nothing behind. And each commit here has the form
# that CONTRIBUTING.md asks for: signed off by its author, a subject of at most 72 columns.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
# shellcheck source=tests/report.sh
. tests/report.sh
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

commits() { make -s -C "$work" check-commits TESTS= "$@" 2>&1; }
out=$(commits BASE=HEAD~3)
case_of 'a range' "$([ "$(grep -cE '^ok [0-9a-f]+ a: is (one|three)$' <<<"$out")" = 2 ] &&
	grep -qE '^not ok [0-9a-f]+ a: warns: does not build$' <<<"$out" &&
	grep -q "unused variable 'b'\|unused variable ‘b’" <<<"$out" || paste -sd' ' <<<"$out")"
commits BASE=HEAD~1 >"$work/out"
case_of 'status 0' "$([ $? = 0 ] || paste -sd' ' "$work/out")"
out=$(commits BASE=nothing)
case_of 'no such commit' "$([[ $out == *"found 'nothing', needed a commit"* ]] || echo "$out")"
case_of 'no worktree is left' "$(git -C "$work" worktree list | tail -n +2)"

# Up to this commit the history is not signed off and has longer subjects.
kept_since=2b4fb191d128c0815b5a602e768112c7108581be

# unsigned DIR BASE, long DIR BASE: the commits from BASE on, exclusive, that are so.
unsigned() {
	git -C "$1" log --no-merges "$2.." \
		--format='%h %s%x09%an <%ae>%x09%(trailers:key=Signed-off-by,valueonly,separator=%x09)' |
		awk -F'\t' '{ for (i = 3; i <= NF; i++) if ($i == $2) next; print $1 ": not signed off by " $2 }'
}
long() {
	git -C "$1" log --no-merges --format='%h %s' "$2.." |
		awk '{ n = length(substr($0, index($0, " ") + 1)) } n > 72 { print $0 ": " n " columns" }'
}
# kept NAME BASE FUNCTION
kept() {
	if git rev-parse -q --verify "$2^{commit}" >/dev/null 2>&1; then
		"$3" . "$2" | report "$1"
	else
		echo "skip $1: this clone has no commit ${2:0:12}, after which it is kept"
	fi
}
kept 'sign-offs' $kept_since unsigned
kept 'subjects' $kept_since long

"${git[@]}" commit -q --allow-empty -s -m 'a: is signed off'
case_of 'a sign-off' "$(unsigned "$work" HEAD~1)"
"${git[@]}" commit -q --allow-empty -m 'a: is not' -m 'Signed-off-by: other <other@localhost>'
case_of "another one's sign-off" "$([[ $(unsigned "$work" HEAD~1) == *': not signed off by test <'* ]] || echo passes)"
subject="a: $(printf %069d 0)"
"${git[@]}" commit -q --allow-empty -m "$subject"
case_of '72 columns' "$(long "$work" HEAD~1)"
"${git[@]}" commit -q --allow-empty -m "${subject}0"
case_of '73 columns' "$([[ $(long "$work" HEAD~1) == *': 73 columns' ]] || echo pass)"
