#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 600
# takes: 250
#
# Eight pinned counters of a guest beside three events of the host: exactly the three
# youngest are lost, the guest is told, what it is told makes the counts right, and
# what never counted is not counted. PEBS goes the same way by itself; branch records,
# which the host has from the guest's boot, can be used when it gives them back. What is
# typed for all that is refused with its place when it is wrong; the trace is well formed.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
work=$(mktemp -d "$TMPDIR/lost.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
only=${1:-}			# t-lost.sh PATTERN: only these cases

# refused NAME OPTION TEXT CARETS: typed wrong, with the place below the text.
refused() {
	local name=$1 found status=0
	found=$("$VPMU_BUILD/vpmu" run "$2" "$3" -- true 2>&1) || status=$?
	if [ "$status" != 125 ]; then
		echo "not ok typed $name: status $status, not 125: $found"
	elif [ "$(tail -n 2 <<<"$found")" != "  $3"$'\n'"  $4" ]; then
		echo "not ok typed $name: $found"
	else
		echo "ok typed $name"
	fi
}

if [[ typed == *$only* ]]; then
	refused event --host-event cpu0:cyclez:pinned '     ^^^^^^'
	refused cpu --host-event cpu1:cycles '   ^'
	refused uncounted --host-event cpu0:cache-misses:pinned '     ^^^^^^^^^^^^'
	refused end --host-event cpu0:cycles: '            ^'
	refused twice --host-event cpu0:cycles:off:off '                ^^^'
	refused characters --host-event cpu0:zyklän:off '     ^^^^^^'
	refused filter --event-filter deny:mask=c4/f/10 '          ^^^^^^^'
	# The events that --uarch counts can be the host's, too.
	found=$("$VPMU_BUILD/vpmu" run --uarch on --host-event cpu0:branch-misses:pinned \
		--host-event cpu0:r01a4 -- true 2>&1)
	case_of 'typed modelled' "$([[ $found =~ branch-misses:pinned.*guest\ +[1-9].*r01a4.*guest\ +[1-9] ]] ||
		echo "$found")"
	shown=$("$VPMU_BUILD/vpmu" run --dry-run --policy shared --event-filter deny:fixed1 \
		--trace t --host-event cpu0:cycles -- true)
	for part in pmu-policy=shared pmu-filter=deny:fixed1 '# without --host-event --trace'; do
		missing=''
		[[ $shown == *"$part"* ]] || missing="not in the command line"
		case_of "typed dry run $part" "$missing"
	done
	for options in '--pmu none --policy shared' '--policy mine' \
			'--policy direct --host-event cpu0:cycles'; do
		status=0
		# shellcheck disable=SC2086 # these are words
		"$VPMU_BUILD/vpmu" run $options -- true 2>/dev/null || status=$?
		wrong=''
		[ $status = 125 ] || wrong="status $status"
		case_of "typed $options is refused" "$wrong"
	done
fi
for t in always switched back pebs lbr policies filter version1 command trace; do
	[[ $t != *$only* ]] || timeout -k 5 200 python3 "$VPMU_ROOT/tests/vm/lost.py" "$t"
done
exit 0
