#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 5400
# takes: 100
#
# QEMU with a thread for each CPU: exact counts while the whole machine is recorded and CPUs
# go and come. SECONDS_EACH=N for each number of CPUs; SOAK=1: half an hour.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
seconds=${SECONDS_EACH:-${SOAK:+900}}
seconds=${seconds:-10}
export GUEST_SECONDS=$((600 + 2 * seconds))

list=()
for program in branchy calls far loop rep signals smc syscalls; do
	list+=("$VPMU_BUILD/guest/$program")
done
for cpus in 2 4; do
	in_guest "$cpus CPUs" --smp $cpus --root -- "$VPMU_ROOT/tests/guest/crowd" "$seconds" \
		"$VPMU_BUILD/guest/count" "${list[@]}"
done
exit 0
