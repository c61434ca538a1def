#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# What the documents name exists: files and headings that they link to, make's
# verbs and variables, vpmu's verbs and options, scripts, patterns of tests. Of
# commands only those in blocks marked sh are looked at; none is run.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${VPMU_BUILD:-$PWD/build}
documents=(README.md CONTRIBUTING.md SECURITY.md docs/*.md)

# report NAME: a case from the findings on stdin, one per line.
report() {
	local findings
	findings=$(cat)
	if [ -z "$findings" ]; then
		echo "ok $1"
	else
		echo "not ok $1: $(head -n 1 <<<"$findings")"
		echo "$findings"
	fi
}

# As GitHub makes an anchor of a heading.
has_heading() {
	sed -n 's/^##* *//p' "$1" | tr '[:upper:]' '[:lower:]' | tr -cd 'a-z0-9 _\n-' | tr ' ' '-' |
		grep -qxF -- "$2"
}

links() {
	local doc=$1 link file
	grep -oE '\]\([^)]+\)' "$doc" | sed 's/^](//; s/)$//' | while read -r link; do
		[[ $link != *://* ]] || continue
		file=$(dirname "$doc")/${link%%#*}
		[[ $link != '#'* ]] || file=$doc
		if [ ! -e "$file" ]; then
			echo "$doc: $link: no such file"
		elif [[ $link == *'#'* ]] && ! has_heading "$file" "${link#*#}"; then
			echo "$doc: $link: no such heading"
		fi
	done
}

# Paths in `code` and in tables: folders of ours, without patterns.
paths() {
	local doc=$1 path
	grep -oE '`[^` ]+`' "$doc" | tr -d '`' |
		grep -E '^(include|lib|host|qemu|kvm|tools|tests|fuzz|bench|examples|docs|man)/[A-Za-z0-9_./-]*$' |
		sort -u | while read -r path; do
		[ -e "$path" ] || [ -e "$path.c" ] || echo "$doc: $path: no such file"
	done
}

commands() { # the lines of a document's sh blocks, without comments
	sed -n '/^```sh$/,/^```$/p' "$1" | sed '/^```/d; s/ *#.*//; /^$/d'
}

make_word() { # DOCUMENT WORD...: verbs and settings
	local doc=$1 word pattern
	shift
	for word; do
		case $word in
		-* | [./]*) ;;
		TESTS=*)
			pattern=${word#TESTS=}
			compgen -G "tests/vm/*$pattern*" >/dev/null || compgen -G "tests/fast/*$pattern*" >/dev/null ||
				compgen -G "tests/unit/test_*$pattern*" >/dev/null ||
				echo "$doc: make $word: matches no test"
			;;
		*=*)
			grep -q "\\b${word%%=*}\\b" Makefile tests/guest/Makefile || echo "$doc: make: no setting ${word%%=*}"
			;;
		*)
			grep -qE "^$word:" Makefile || echo "$doc: make $word: no such verb"
			;;
		esac
	done
}

vpmu_word() { # DOCUMENT VERB WORD...: options up to the command
	local doc=$1 verb=$2 help word
	shift 2
	if ! "$build/vpmu" --help | grep -q "^  vpmu $verb "; then
		echo "$doc: vpmu $verb: no such verb"
		return
	fi
	help=$("$build/vpmu" "$verb" --help)
	for word; do
		[ "$word" != -- ] || break
		[[ $word == -* ]] || continue
		grep -qE -- "^ .*(^|[ ,])$word\b" <<<"$help" || echo "$doc: vpmu $verb $word: no such option"
	done
}

command_line() { # DOCUMENT WORD...
	local doc=$1
	shift
	while [[ ${1:-} == *=* || ${1:-} == sudo ]]; do shift; done
	case ${1:-} in
	make)
		[[ " $* " == *' -C '* ]] || make_word "$doc" "${@:2}"
		;;
	build/vpmu) vpmu_word "$doc" "${@:2}" ;;
	build/*) [ -x "$build/${1#build/}" ] || echo "$doc: $1: not built" ;;
	*/*) [ -x "$1" ] || echo "$doc: $1: not a program" ;;
	*) command -v "${1:-}" >/dev/null || echo "$doc: ${1:-}: not a command" ;;
	esac
}

named() {
	local doc=$1 line words
	commands "$doc" | while IFS= read -r line; do
		read -ra words <<<"$line"
		command_line "$doc" "${words[@]}"
	done
}

for doc in "${documents[@]}"; do
	links "$doc" | report "links $doc"
	paths "$doc" | report "paths $doc"
	if [ -x "$build/vpmu" ]; then
		named "$doc" | report "commands $doc"
	else
		echo "skip commands $doc: $build/vpmu is not built"
	fi
done

{ grep -lE '/(root|home)/' "${documents[@]}" || true; } | report 'no private paths'
