#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 2500
# takes: 250
#
# vpmu run in vpmu run: a stock Debian kernel with its own KVM, on SVM and on VMX, as L1,
# stock guests as L2.
# Counts in L2, through KVM's vPMU, are exact; L1's perf tells guest from host; the
# outcome when both count is the one that `vpmu contention` computes. SOAK=1 takes both kernels
# on both.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/nested.sh"
work=$(mktemp -d "$TMPDIR/nested.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

build_programs
selftest=$VPMU_BUILD/guest/kvm_contention
build_contention "$selftest"
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
# round SUITE CPU CPUS [DIFFERENCES]: these are from the rows that `vpmu contention` computes.
round() {
	local suite=$1 cpus=$3 name=$1/$2 wrong=''
	if ! "$VPMU_ROOT/tools/guest-kernel" "$suite" >/dev/null 2>log; then
		echo "skip $name: $(tail -n 1 log)"
		return
	fi
	rm -f from-l2 kvm.json
	l1_cpu=$2 in_l1 "$name" --smp "$cpus" --kernel "$suite" -- \
		"$VPMU_ROOT/tests/vm/nested-counts.sh" "$selftest" "$cpus"
	[ "$(cat from-l2)" = "$cpus CPUs" ] || wrong="L2 wrote '$(cat from-l2)'"
	case_of "$name/files" "$wrong"
	python3 "$VPMU_ROOT/tests/selftests/same-rows" kvm.json library.json "${@:4}" |
		sed -E "s#^(ok|not ok) #\1 $name/same as vpmu contention/#"
	[ "${PIPESTATUS[0]}" = 0 ] || echo "not ok $name: no rows to compare"
}
# AMD's SVM, where a CPU has six counters, then Intel's VMX, where it has the library's eight, and
# Ice Lake has branch records that KVM gives to guests
six=$VPMU_ROOT/tests/selftests/differences-kvm.tsv
round bookworm EPYC-Milan 2 "$six"
if [ -n "${SOAK:-}" ]; then
	round bookworm Icelake-Server 1 "$VPMU_ROOT/tests/selftests/differences-lbr.tsv"
	round bookworm-backports EPYC-Milan 1 "$six"
	round bookworm-backports SapphireRapids 2
	round trixie-backports EPYC-Milan 1 "$six"
	round trixie-backports SapphireRapids 2
fi
exit 0
