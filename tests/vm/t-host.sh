#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 600
#
# A host that counts too: its events beside a real guest's under each policy, at
# run time; which of the guest's counters that freezes, and who is told.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
here=$(dirname "$(readlink -f "$0")")
model=Icelake-Server-v6,check=off

qemu=("$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults
	-no-user-config -display none -machine pc -m 64 -accel tcg)

refused() { # NAME WORDS CPU
	local out status=0
	out=$(timeout 20 "${qemu[@]}" -cpu "$model,$3" 2>&1) || status=$?
	if [ $status = 1 ] && [[ $out = *"$2"* ]]; then
		echo "ok option/$1"
	else
		echo "not ok option/$1: status $status, $out"
	fi
}
refused policy 'needed: direct, shared or mediated' pmu=on,pmu-policy=both
refused filter "at character 6:" pmu=on,pmu-filter=deny:cicles
refused trace 'needs a file that can be written' pmu=on,pmu-trace=/nowhere/trace
refused 'no PMU' 'needed pmu=on with -accel tcg' pmu=off,pmu-policy=direct
# A second vCPU that is plugged in must have the first one's.
out=$(timeout 20 "${qemu[@]}" -smp 1,sockets=2,maxcpus=2 -cpu "$model,pmu=on" -device \
	Icelake-Server-v6-x86_64-cpu,check=off,pmu=on,pmu-policy=direct,socket-id=1,core-id=0,thread-id=0 2>&1)
case_of 'option/two policies' "$([[ $out = *'found direct, needed shared'* ]] || echo "$out")"

for policy in shared mediated direct; do
	timeout 150 python3 "$here/host.py" $policy | sed -E "s,^(ok|not ok|skip) ,\1 $policy/,"
	[ "${PIPESTATUS[0]}" = 0 ] || echo "not ok $policy: host.py did not end well"
done
