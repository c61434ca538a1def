#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 900
# takes: 100
#
# The outcome when events contend, on real kernels (tests/selftests); `vpmu contention`
# computes the same, row by row.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
selftests=$VPMU_ROOT/tests/selftests
program=$VPMU_BUILD/guest/perf_contention
mkdir -p "$VPMU_BUILD/guest"
cd "$TMPDIR" || exit 1

if ! gcc -std=gnu11 -O2 -Wall -Wextra -Werror -static -o "$program" \
	"$selftests/perf_contention.c" 2>build.log; then
	echo "not ok perf_contention: $(head -n 1 build.log)"
	exit 1
fi
library=$TMPDIR/library.json
if ! "$VPMU_BUILD/vpmu" contention --json >"$library"; then
	echo 'not ok contention: vpmu contention --json failed'
	exit 1
fi

compare() { # NAME
	python3 "$selftests/same-rows" kernel.json "$library" "$selftests/differences.tsv" |
		sed -E "s#^(ok|not ok) #\1 $1/#"
	[ "${PIPESTATUS[0]}" = 0 ] || echo "not ok $1: no rows to compare"
	rm -f kernel.json
}

# The second run is with two CPUs, one of them busy; the third one's CPU counts slots.
for suite in bookworm trixie-backports ${SOAK:+trixie}; do
	if ! "$VPMU_ROOT/tools/guest-kernel" "$suite" >/dev/null 2>guest-kernel.log; then
		echo "skip $suite: $(tail -n 1 guest-kernel.log)"
		continue
	fi
	in_guest "$suite" --root --kernel "$suite" -- "$program"
	in_guest "$suite/json" --smp 2 --root --kernel "$suite" -- sh -c \
		'(while :; do :; done) & "$1" --json >kernel.json; status=$?; kill $!; exit $status' \
		sh "$program"
	compare "$suite"
	in_guest "$suite/topdown" --uarch on --cpu SapphireRapids --root --kernel "$suite" -- sh -c \
		'"$1" --json >kernel.json' sh "$program"
	case_of "$suite/topdown/metrics" "$([ "$(grep -c '"resource":"metrics"' kernel.json)" = 16 ] || echo 'no cells')"
	compare "$suite/topdown"
done
