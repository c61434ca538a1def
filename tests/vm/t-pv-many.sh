#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 900
# alone
#
# 200 events of a paravirtual guest on 8 counters, each within 5 % of the truth. How
# steady the load is that they share, and how often they take turns, depends on how much
# of the host's CPUs the guest gets, so this one is run beside nothing else.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
for suite in bookworm bookworm-backports; do
	driver=$(pv_guest "$suite") || { echo "$driver" && continue; }
	HOST_BUSY=$(awk -v cpus="$(nproc)" '$1 > cpus + 1 { print "the load here is " $1 }' /proc/loadavg) \
		in_guest "$suite" --pmu pv --kernel "$suite" --append vpmu_guest.counters=8 --root -- \
		"$VPMU_ROOT/tests/guest/paravirtual" "$VPMU_BUILD/guest" "$driver" 2 many
done
