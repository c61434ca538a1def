#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1800
# takes: 450
#
# The paravirtual PMU in stock Debian guests: unmodified perf on vpmu_guest.ko, alone
# and beside the architectural PMU, with both versions of the interface; and a host
# that has none. SOAK=1 takes 6.12 as well.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
script=$VPMU_ROOT/tests/guest/paravirtual
only=${1:-}			# t-pv.sh SUITE: only this one

if ! "$VPMU_QEMU/bin/qemu-system-x86_64" -device Icelake-Server-v6-x86_64-cpu,help 2>&1 |
	grep -q pmu-pv; then
	echo "skip pv: $VPMU_QEMU/bin/qemu-system-x86_64 has no property pmu-pv"
	exit 0
fi

# pv NAME KIND VERSION OPTION... -- CASE...: cases of tests/guest/paravirtual.
pv() {
	local name=$1 kind=$2 version=$3 options=()
	shift 3
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	in_guest "$suite/$name" --pmu "$kind" --kernel "$suite" --root "${options[@]}" -- \
		"$script" "$VPMU_BUILD/guest" "$driver" "$version" "$@"
}

refused() {
	in_guest "$suite/no host" --pmu "$1" --kernel "$suite" --root -- sh -c '
		if insmod "$1" 2>/dev/null; then
			echo "not ok $2: it loads"
		elif [ -z "$(dmesg | grep "vpmu_guest: this host offers no paravirtual PMU")" ]; then
			echo "not ok $2: it says $(dmesg | grep vpmu_guest: | tail -n 1)"
		else
			echo "ok $2"
		fi' sh "$driver" "$1"
}

# Hypercalls and what they do are in the trace.
traced() {
	local out
	out=$("$VPMU_BUILD/vpmu" run --pmu pv --kernel "$suite" --trace "$TMPDIR/trace" -- \
		perf record -q -o /dev/null -e instructions:u -c 100000 true 2>&1 </dev/null) ||
		echo "not ok $suite/trace: status $?: $out"
	case_of "$suite/trace" "$(python3 - "$TMPDIR/trace" <<-'END'
		import json, re, sys
		names = [e["name"] for e in json.load(open(sys.argv[1]))["traceEvents"]
		         if e["ph"] in "iX"]
		for want in r"hypercall SETUP", r"hypercall BATCH of \d+", r"event \d+", \
		        r"overflow of event \d+":
		    if not any(re.fullmatch(want, n) for n in names):
		        print(f"no {want}", end=" ")
		END
	)"
}

for suite in bookworm ${SOAK:+bookworm-backports}; do
	[ -z "$only" ] || [ "$suite" = "$only" ] || continue
	driver=$(pv_guest "$suite") || { echo "$driver" && continue; }
	pv v2 pv 2 --smp 2 -- loaded default refused kinds exact ways process sampling top limit reload hotplug
	pv no-kprobes pv 2 --smp 2 --append vpmu_guest.kprobes=0 -- unthrottled sampling
	pv storm pv 2 --smp 2 -- sweep storm
	[ -z "${SOAK:-}" ] || pv storm-v1 pv,abi=2010 1 --smp 2 -- sweep storm
	traced
	# shellcheck disable=SC2086 # words are meant
	pv v1 pv,abi=2010 1 --smp 2 -- loaded refused kinds exact sampling reload ${SOAK:+default ways process top hotplug}
	pv doorbell pv 2 --cpu Icelake-Server-v6,pmu-pv-call=doorbell --smp 2 -- loaded exact sampling
	pv both both 2 --smp 2 -- both
	for kind in pv pv,abi=2010; do
		in_guest "$suite $kind" --pmu "$kind" --kernel "$suite" --root -- \
			"$VPMU_ROOT/tests/guest/group" "$VPMU_BUILD/guest/sample"
	done
	refused none
done
# The newest kernel, shortly.
suite=trixie-backports
if [ -z "$only" ] || [ "$suite" = "$only" ]; then
	driver=$(pv_guest "$suite") || { echo "$driver" && exit 0; }
	pv v2 pv 2 --smp 2 -- loaded exact sampling
	pv both both 2 -- both
	refused none
fi
