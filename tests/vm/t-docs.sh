#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 900
#
# What the README's first screen shows is what its command prints: its layout, and the
# counts that are the same in every run. And what the documents tell to type works.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
work=$(mktemp -d "$TMPDIR/docs.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
ln -s "$VPMU_BUILD" build
ln -s "$VPMU_ROOT"/{examples,tools} .

# Numbers of user mode stay; of others, of the kernel and of time, only that they are there.
layout() {
	sed -E 's/[[:blank:]]+$//; /:u$/!s/[0-9]+(\.[0-9]+)?/N/g; s/[[:blank:]]+/ /g; s/^ | $//g; /^$/d'
}

shown=$(sed -n '/^\$ build\/vpmu run -- perf stat/,/^```$/p' "$VPMU_ROOT/README.md" | sed '/^```$/,$d')
command=$(sed -n '1s/^\$ //p' <<<"$shown")
found=$(bash -c "$command" 2>&1 </dev/null)
case_of transcript "$(diff <(sed 1d <<<"$shown" | layout) <(layout <<<"$found") | grep '^[<>]' | head -n 4 | paste -sd' ')"

# commands DOCUMENT: lines of its sh blocks, but for what another test runs or never ends
commands() {
	sed -n '/^```sh$/,/^```$/p' "$VPMU_ROOT/$1" | sed '/^```/d; s/  *#.*//; /^$/d' |
		grep '^build/' | grep -vE 'perf top|your-program|contention|abi=2010|--pmu (pv|both)'
}
for doc in README.md docs/CI.md docs/PROFILE.md docs/DRIVERS.md; do
	while IFS= read -r line; do
		out=$(timeout -k 5 200 bash -c "$line" 2>&1 </dev/null)
		status=$?
		case_of "$doc: ${line:0:60}" "$([ $status = 0 ] || echo "status $status: $(tail -n 2 <<<"$out" | paste -sd' ')")"
	done < <(commands $doc)
done
