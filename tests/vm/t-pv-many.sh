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

# CPU time that this test has not had, in ticks: other processes', and what a host of this
# machine has taken away. Beside nothing that is 1 % of a CPU; beside what spoils the turns
# it was 18 to 23 %.
others() {
	awk 'NR == FNR { all = $2 + $3 + $4 + $7 + $8 + $9; nextfile }
		{ printf "%d\n", all - $14 - $15 - $16 - $17 }' /proc/stat /proc/$$/stat
}

many() { # SUITE BUSY
	HOST_BUSY=$2 in_guest "$1" --pmu pv --kernel "$1" --append vpmu_guest.counters=8 --root -- \
		"$VPMU_ROOT/tests/guest/paravirtual" "$VPMU_BUILD/guest" "$driver" 2 many
}

for suite in bookworm bookworm-backports; do
	driver=$(pv_guest "$suite") || { echo "$driver" && continue; }
	busy=$(awk -v cpus="$(nproc)" '$1 > cpus + 1 { print "the load here is " $1 }' /proc/loadavg)
	taken=$(others) since=$SECONDS
	out=$(many "$suite" "$busy")
	if [ -z "$busy" ] && grep -q '^not ok .* are within 5 %' <<<"$out"; then
		busy=$(awk -v ticks=$(($(others) - taken)) -v hz="$(getconf CLK_TCK)" \
			-v s=$((SECONDS - since)) 'BEGIN { n = 100 * ticks / hz / s
			if (n > 2) printf "others took %.0f %% of a CPU", n }')
		[ -z "$busy" ] || out=$(many "$suite" "$busy")
	fi
	echo "$out"
done
