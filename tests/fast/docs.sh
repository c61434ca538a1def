#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 240
#
# The documents name only things that exist: files and headings that they link to, make's
# verbs and variables, vpmu's verbs and options, scripts, patterns of tests. No command is
# run here: t-docs.sh types those in blocks marked sh, except for the ones in
# documents.tsv, each row of which is compared with the document and the test it names. So
# no other block may have a command. The first words of a page say who it is for; it has
# lines of at most 120 columns, and docs/README.md links to it.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${VPMU_BUILD:-$PWD/build}
# shellcheck disable=SC1091 # beside this folder
. tests/documents.sh

# shellcheck disable=SC1091 # beside this folder
. tests/report.sh

# GitHub's anchor of a heading.
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
	if ! grep -q "^  vpmu $verb " < <("$build/vpmu" --help); then
		echo "$doc: vpmu $verb: no such verb"
		return
	fi
	help=$("$build/vpmu" "$verb" --help)
	for word; do
		[ "$word" != -- ] || break
		[[ $word == -* ]] || continue
		grep -qE -- "^ .*(^|[ ,])${word%%=*}\b" <<<"$help" || echo "$doc: vpmu $verb $word: no such option"
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
	podman) ;; # t-bundle.sh types it where there is one
	build/vpmu | vpmu-*/bin/vpmu) vpmu_word "$doc" "${@:2}" ;;
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

# unmarked DOCUMENT: lines that look like commands and are neither in a block marked sh
# nor after "$ ".
unmarked() {
	local typed='make|sudo|git|gcc|cc|insmod|modprobe|perf|vpmu|(\./)?(build|tests|tools|qemu|guest|bench|fuzz)/[a-z][^ ]*'
	awk -v typed="^(    )?([A-Z_]+=[^ ]* )*($typed)( |\$)" '/^```/ { plain = !fence && $0 == "```"; fence = !fence; told = 0; next }
		plain && /^\$ / { told = 1 }
		((plain && !told) || (!fence && /^    /)) && $0 ~ typed { print FILENAME ":" FNR ": " $0 }' "$1"
}

# row DOCUMENT COMMAND HOW WHY: what is wrong with a row of documents.tsv
row() {
	local doc=$1 line=$2 how=$3 why=$4 place="documents.tsv: $1: $2"
	if [ -z "$why" ]; then
		echo "$place: four columns are needed"
	elif ! [ -f "$doc" ] || ! grep -qxF -- "$line" <(commands "$doc"); then
		echo "$place: no such command there"
	fi
	case $how in
	fails | host | guest | soak | never) ;;
	check) [[ $line == 'make check'* ]] || echo "$place: make check does not begin it" ;;
	tests/*)
		if ! [ -x "$how" ]; then
			echo "$place: $how: no such test"
		elif ! grep -qF -- "$why" "$how"; then
			echo "$place: $how: no '$why' there"
		fi
		;;
	*) echo "$place: $how: neither a test nor a kind" ;;
	esac
}

rows() {
	local doc line how why
	commands_listed | while IFS=$'\t' read -r doc line how why; do
		row "$doc" "$line" "$how" "$why"
	done
	commands_listed | cut -f1,2 | sort | uniq -d | sed 's/^/documents.tsv: twice: /'
}

sources() { # sources of COMPARE.md: each cell about another system names one, and each is named
	awk '/^## Sources/ { listed = 1 }
		/^\| \| / {
			own = 0
			n = split($0, cell, / *\| */)
			for (i = 3; i < n; i++) if (cell[i] ~ /^vpmu/) own = i
		}
		!listed && /^\| [a-z]/ {
			n = split($0, cell, / *\| */)
			for (i = 3; i < n; i++) {
				if (i == own || cell[i] == "not documented") continue
				if (cell[i] !~ /\[[0-9][0-9, ]*\]$/) print "COMPARE.md: " cell[2] ": no source: " cell[i]
				while (match(cell[i], /\[[0-9][0-9, ]*\]/)) {
					m = split(substr(cell[i], RSTART + 1, RLENGTH - 2), number, / *, */)
					for (j = 1; j <= m; j++) used[number[j]] = 1
					cell[i] = substr(cell[i], RSTART + RLENGTH)
				}
			}
		}
		listed && /^[0-9]+\. / { if ($1 + 0 != ++last) print "COMPARE.md: source " last " is numbered " $1 }
		END {
			for (i = 1; i <= last; i++) if (!(i in used)) print "COMPARE.md: source " i " is for no cell"
			for (i in used) if (i + 0 > last) print "COMPARE.md: no source " i
		}' docs/COMPARE.md
}

index() { # docs/README.md links to all pages, and README.md to it
	local doc
	for doc in docs/*.md; do
		[ "$doc" = docs/README.md ] || grep -qF "](${doc#docs/})" docs/README.md ||
			echo "docs/README.md: no link to $doc"
	done
	grep -qF '](docs/README.md)' README.md || echo 'README.md: no link to docs/README.md'
}

# Code blocks stay as they are typed or printed, and the target of a link cannot be broken. The
# tables of bench/page.py have a column for each of six programs.
width() {
	local rows='^$'
	[ "$1" != docs/BENCHMARKS.md ] || rows='^[|]'
	awk -v rows="$rows" '/^```/ { fence = !fence; next } !fence && $0 !~ rows { print FNR ": " $0 }' "$1" | sed -E 's/\(https:[^)]*\)//g' |
		LC_ALL=C.UTF-8 grep -E '^[0-9]+: .{121}' | sed -E "s,^([0-9]+):.*,$1:\1: over 120 columns,"
}

audience() { # the first paragraph below the title
	[ "$1" = README.md ] || awk 'NR > 1 && NF { exit !/^For / } END { if (NR < 2) exit 1 }' "$1" ||
		echo "$1: the first paragraph does not begin with \"For\" and a reader"
}

for doc in $(documents); do
	unmarked "$doc" | report "blocks $doc"
	links "$doc" | report "links $doc"
	paths "$doc" | report "paths $doc"
	width "$doc" | report "width $doc"
	audience "$doc" | report "audience $doc"
	if [ -x "$build/vpmu" ]; then
		named "$doc" | report "commands $doc"
	else
		echo "skip commands $doc: $build/vpmu is not built"
	fi
done

# A program that ends after milliseconds has no sample by perf record -F 99.
periods() {
	grep -q -- ' -c [0-9]' < <(grep -m 1 '^build/vpmu.*perf record' docs/PROFILE.md) ||
		echo 'docs/PROFILE.md: the first perf record has no -c'
}

rows | report 'documents.tsv'
periods | report 'a period first'
sources | report 'sources of COMPARE.md'
index | report 'index'
documents | { xargs grep -lE '/(root|home)/' || true; } | report 'no private paths'
