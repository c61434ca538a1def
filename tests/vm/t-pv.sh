#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1800
#
# The paravirtual PMU in stock Debian guests: unmodified perf on vpmu_guest.ko, alone
# and beside the architectural PMU, with both versions of the interface; and a host
# that has none.
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
		elif ! dmesg | grep -q "vpmu_guest: this host offers no paravirtual PMU"; then
			echo "not ok $2: it says $(dmesg | grep vpmu_guest: | tail -n 1)"
		else
			echo "ok $2"
		fi' sh "$driver" "$1"
}

for suite in bookworm bookworm-backports; do
	[ -z "$only" ] || [ "$suite" = "$only" ] || continue
	if ! kernel=$("$VPMU_ROOT/tools/guest-kernel" "$suite" 2>"$TMPDIR/log") ||
		! driver=$("$VPMU_ROOT/tools/guest-module" "$kernel" 2>"$TMPDIR/log"); then
		echo "skip $suite: $(tail -n 1 "$TMPDIR/log")"
		continue
	fi
	pv v2 pv 2 --smp 2 -- loaded default exact ways process sampling top limit reload hotplug
	HOST_BUSY=$(awk -v cpus="$(nproc)" '$1 > cpus + 1 { print "the load here is " $1 }' /proc/loadavg) \
		pv many pv 2 --append vpmu_guest.counters=8 -- many
	pv v1 pv,abi=2010 1 --smp 2 -- loaded default exact ways process sampling top reload hotplug
	pv both both 2 --smp 2 -- both
	refused none
	refused arch
done
