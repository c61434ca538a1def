#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 240
#
# The form of the sources: licence lines, width, blanks, leftovers, comments that are
# sentences, scripts.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

# shellcheck disable=SC1091 # beside this folder
. tests/report.sh

if ! git rev-parse --git-dir >/dev/null 2>&1; then
	echo 'skip style: not a git checkout'
	exit 0
fi
mapfile -t code < <(git ls-files '*.[chS]' '*.py' '*.sh' '*meson.build' Makefile)
mapfile -t ours < <(git ls-files '*.[chS]' ':!qemu/vpmu' ':!qemu/vmx')
mapfile -t scripts < <(git ls-files | while read -r f; do
	read -r line 2>/dev/null <"$f" && [[ $line =~ ^'#!'/bin/(ba)?sh ]] && echo "$f"
done)

for f in "${code[@]}" "${scripts[@]}"; do
	[ ! -e "$f" ] || [[ $(head -n 10 "$f") == *'SPDX-License-Identifier: '* ]] || echo "$f: no SPDX line on top"
done | sort -u | report spdx

# The kernel has it so: an assembler and C90 know only the second form. QEMU differs.
for f in "${ours[@]}"; do
	[ -e "$f" ] || continue
	read -r line <"$f"
	case $f:$line in
	*.c:'// SPDX-License-Identifier: '* | *.[hS]:'/* SPDX-License-Identifier: '*' */') ;;
	*) echo "$f: the first line is '$line', needed // in .c, /* */ in .h and .S" ;;
	esac
done | report spdx-form

# A second header with the same guard is skipped wherever both are included.
mapfile -t headers < <(git ls-files '*.h' '*.hpp')
sed -nE 's/^#if(ndef | !defined\()([A-Z0-9_]+_H(PP)?)\b.*/\2/; T; F; p' "${headers[@]}" | paste -d: - - | sort -t: -k 2 |
	awk -F: '$2 == guard { print $1 ": " $2 " is the guard of " file " too" } { guard = $2; file = $1 }' |
	report header-guards

for f in "${ours[@]}"; do
	[ ! -e "$f" ] || expand -t 8 "$f" | awk -v f="$f" 'length > 100 { print f ":" NR ": " length " columns" }'
done | report width

grep -nE '[[:blank:]]+$' "${code[@]}" "${scripts[@]}" 2>/dev/null | report trailing-blanks

grep -nE '^[[:blank:]]*#[[:blank:]]*if 0|\b(TO''DO|FIX''ME|X''XX)\b' "${code[@]}" "${scripts[@]}" 2>/dev/null |
	report leftovers

# Nothing that was built is in the repository.
git ls-files -z | while IFS= read -r -d '' f; do
	[ ! -f "$f" ] || [ "$(head -c 4 "$f" | tr -d '\0')" != $'\x7fELF' ] || echo "$f: an ELF file"
done | report 'no built files'

# grep -q ends at the first match; whatever writes to it then may end by SIGPIPE, which pipefail
# makes the status: now and then, something that was found is missing.
mapfile -t strict < <(grep -l '^set .*pipefail' "${scripts[@]}")
grep -nE '[^|]\| *grep -[[:alpha:]]*q' "${strict[@]}" | sed 's/$/: in place of a pipe: grep -q ... < <(...)/' |
	report 'grep -q without a pipe'

if prose=$(tests/prose); then
	echo 'ok prose'
else
	echo "not ok prose: $(tail -n 1 <<<"$prose")"
fi
echo "$prose"

if command -v shellcheck >/dev/null; then
	printf '%s\0' "${scripts[@]}" | xargs -0 -n 4 -P "$(nproc)" shellcheck -S warning -f gcc |
		report shellcheck
else
	echo 'skip shellcheck: not installed (tools/setup)'
fi
