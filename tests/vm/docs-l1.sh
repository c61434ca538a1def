#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# In an L1, sourced by nested-l1.sh: docs-l1.sh host types what host.tsv has, rows of
# documents.tsv, and then has an L2 run docs-l1.sh guest, which types those of guest.tsv;
# perf has to count there then.

# typed FILE: a case for each row
typed() {
	local doc line
	while IFS=$'\t' read -r doc line _; do
		# Another document has loaded it already.
		[[ $line != insmod* ]] || rmmod "$(basename "${line##* }" .ko)" 2>/dev/null
		if bash -c "$line" >typed.out 2>&1 </dev/null; then
			echo "ok $doc: ${line:0:72}"
		else
			echo "not ok $doc: ${line:0:72}: status $?: $(tail -n 2 typed.out | paste -sd' ')"
		fi
	done <"$1"
}

typed "$1.tsv"
if [ "$1" = host ]; then
	l2 guest --pmu none --root --kernel bookworm --memory 256M -- \
		bash "$VPMU_ROOT/tests/vm/docs-l1.sh" guest
elif ! perf stat -x, -e instructions:u -o counted true || ! grep -q '^[1-9][0-9]*,,instructions:u' counted; then
	echo "not ok counted: $(grep instructions counted)"
fi
