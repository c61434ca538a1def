#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1800
# takes: 60
#
# A guest's own perf tells of counters that it has lost: vpmu_guest.ko in a guest with an
# architectural PMU, beside pinned events of the host. SOAK=1 takes 6.12 and 7.x as well.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
work=$(mktemp -d "$TMPDIR/told.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
demo=$VPMU_BUILD/examples/demo
script=$VPMU_ROOT/tests/guest/told

# told NAME KEPT LOST HOST-EVENT OPTION... -- CASE...: three events of the host on each CPU.
told() {
	local name=$1 kept=$2 lost=$3 event=$4 options=()
	shift 4
	while [ "$1" != -- ]; do
		options+=("$1")
		[ "$1" != 2 ] || options+=(--host-event "cpu1:$event:pinned" --host-event "cpu1:$event:pinned" \
			--host-event "cpu1:$event:pinned")
		shift
	done
	shift
	in_guest "$suite/$name" --kernel "$suite" --root --host-event "cpu0:$event:pinned" \
		--host-event "cpu0:$event:pinned" --host-event "cpu0:$event:pinned" "${options[@]}" -- \
		"$script" "$demo" "$driver" "$kept" "$lost" "$@"
}

for suite in bookworm ${SOAK:+bookworm-backports trixie-backports}; do
	driver=$(pv_guest "$suite") || { echo "$driver"; continue; }
	b=br_inst_retired
	told Intel "branches:u,$b.cond:u,$b.near_call:u,$b.near_return:u,$b.cond_taken:u" \
		"$b.near_taken:u,$b.indirect:u" branches -- stat all record
	told AMD instructions:u,branches:u,r00c4:u r00c8:u,r00c6:u branches --cpu EPYC-Genoa -- stat all record
	told busy "branches:u,$b.cond:u,$b.near_call:u,$b.near_return:u,$b.cond_taken:u" \
		"$b.near_taken:u,$b.indirect:u" branches --smp 2 -- busy
done
exit 0
