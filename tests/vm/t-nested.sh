#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 2500
# takes: 150
#
# vpmu run in vpmu run: a stock Debian kernel with its own KVM as L1, stock guests as L2.
# Counts in L2, through KVM's vPMU, are exact; L1's perf tells guest from host; the
# outcome when both count is the one that `vpmu contention` computes.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/nested.sh"
work=$(mktemp -d "$TMPDIR/nested.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

build_programs
selftest=$VPMU_BUILD/guest/kvm_contention
if ! gcc -std=gnu11 -O2 -Wall -Wextra -Werror -static -pthread -o "$selftest" \
	"$VPMU_ROOT/tests/selftests/kvm_contention.c" 2>log; then
	echo "not ok kvm_contention: $(head -n 1 log)"
	exit 1
fi
if ! "$VPMU_BUILD/vpmu" contention --json >library.json; then
	echo 'not ok contention: vpmu contention --json failed'
	exit 1
fi
for options in '--accel xen' '--accel kvm --policy shared' '--accel kvm --trace t' \
		'--accel kvm --host-event cpu0:cycles' '--accel kvm --pmu pv,abi=2010'; do
	status=0 wrong=''
	# shellcheck disable=SC2086 # these are words
	"$VPMU_BUILD/vpmu" run $options -- true 2>/dev/null || status=$?
	[ $status = 125 ] || wrong="status $status"
	case_of "typed $options is refused" "$wrong"
done
cpus=2
cpus=2
for suite in bookworm bookworm-backports; do
	if ! "$VPMU_ROOT/tools/guest-kernel" "$suite" >/dev/null 2>log; then
		echo "skip $suite: $(tail -n 1 log)"
		continue
	fi
	rm -f from-l2 kvm.json
	in_l1 "$suite" --smp $cpus --kernel "$suite" -- "$VPMU_ROOT/tests/vm/nested-counts.sh" \
		"$selftest" $cpus
	wrong=''
	[ "$(cat from-l2)" = "$cpus CPUs" ] || wrong="L2 wrote '$(cat from-l2)'"
	case_of "$suite/files" "$wrong"
	python3 "$VPMU_ROOT/tests/selftests/same-rows" kvm.json library.json \
		"$VPMU_ROOT/tests/selftests/differences-kvm.tsv" |
		sed -E "s,^(ok|not ok) ,\1 $suite/same as vpmu contention/,"
	[ "${PIPESTATUS[0]}" = 0 ] || echo "not ok $suite: no rows to compare"
	cpus=1
done
exit 0
