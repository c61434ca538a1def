#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 900
#
# Each target of fuzz/run for a few seconds, from its corpus: nothing that could be
# reached before is broken, and a little more is tried. EACH=SECONDS (3). No guest.
set -uo pipefail
root=${VPMU_ROOT:-$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)}
status=0
out=$("$root/fuzz/run" "${EACH:-3}" 2>&1) || status=$?
if [ $status = 77 ]; then
	echo "skip fuzz: $(tail -n 1 <<<"$out")"
	exit 0
fi
grep -v '^fuzz_[a-z]*: [0-9]* s \.\.\.$' <<<"$out" |
	sed -E 's/^fuzz_([a-z]+): ok, (.*)/ok \1: \2/; s/^fuzz_([a-z]+): FAILED; (.*)/not ok \1: \2/'
if [ $status != 0 ] && ! grep -q '^fuzz_[a-z]*: FAILED' <<<"$out"; then
	echo "not ok fuzz: fuzz/run ended with status $status"
fi
