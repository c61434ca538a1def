#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 900
#
# The paravirtual PMU without an operating system: counts and overflows to the very
# instruction in both versions, from 64 and from 32 bits; a host's events that take a
# counter away; a hostile guest of two vCPUs; a move to another QEMU.
# SEED=N repeats a run, TURNS=N makes it longer (TURNS=10000000: some minutes).
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_bare
here=$(dirname "$(readlink -f "$0")")
model=Icelake-Server-v6

seed=${SEED:-$RANDOM}
turns=${TURNS:-50000}

rows() { # NAME STATUS OUTPUT: the guest's cases, and one more if it did not end well
	sed -E "s#^(ok|not ok) #\1 $1/#" <<<"$3"
	[ "$2" = 67 ] || echo "not ok $1: QEMU's status is $2, not 67"
}

exact() { # NAME PROGRAM CPU COMMAND-LINE OPTION...
	local name=$1 status=0 out
	shift
	out=$(bare "$@" 2>&1) || status=$?
	rows "$name" $status "$out"
}

qemu=("$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults
	-no-user-config -display none -machine pc -bios qboot.rom -m 64 -accel tcg
	-device "isa-debug-exit,iobase=0xf4,iosize=4")

hosted() { # NAME SECONDS PROGRAM CPU COMMAND-LINE OPTION...
	local name=$1 seconds=$2 program=$3 cpu=$4 line=$5 status=0 out
	shift 5
	out=$(timeout -k 5 "$seconds" python3 "$here/pv_bare.py" "${qemu[@]}" -cpu "$cpu,check=off" \
		-kernel "$VPMU_BUILD/bare/$program" -append "$line" "$@" 2>&1) || status=$?
	rows "$name" $status "$out"
}

refused() { # NAME WORDS CPU
	local out status=0
	out=$(timeout 20 "${qemu[@]}" -serial none -cpu "$3,check=off" 2>&1 </dev/null) || status=$?
	if [ $status = 1 ] && [[ $out = *"$2"* ]]; then
		echo "ok refused/$1"
	else
		echo "not ok refused/$1: status $status, $out"
	fi
}
refused version 'pmu-pv=v3: needed: off, v2, v1 or both' $model,pmu-pv=v3
refused call 'pmu-pv-call=x: needed: hypercall, doorbell or both' $model,pmu-pv=v2,pmu-pv-call=x
refused events 'n_events: asked 0x2001, available 0x2000' $model,pmu-pv=v2,pmu-pv-events=8193
refused vendor 'pmu-pv: no PMU for this vendor' YongFeng,pmu-pv=v2

exact off pv $model,pmu-pv=off abi=0
exact 'off, PMU' pv $model,pmu=on abi=0
exact 'off, SVM' pv $model,svm=on abi=0
for m in $(models); do
	exact "v2, $m" pv "$m,pmu-pv=v2" abi=2
done
exact 'v2, doorbell too' pv $model,pmu-pv=v2,pmu-pv-call=both 'abi=2 bell=1'
exact 'doorbell alone' pv $model,pmu=on,pmu-pv=v2,pmu-pv-call=doorbell bell=2
exact v1 pv $model,pmu-pv=v1 abi=1
exact 'both, PMU' pv $model,pmu=on,pmu-pv=both abi=3
exact 'both, direct' pv $model,pmu-policy=direct,pmu-pv=both abi=3
exact 'one instruction a block' pv $model,pmu-pv=both abi=3 -accel tcg,one-insn-per-tb=on
exact both pv32 $model,pmu-pv=both ''
hosted host 60 pv $model,pmu-pv=v2 'abi=2 host=1'
hosted halted 60 pv $model,pmu-pv=v2 halted=1 -smp 2

hosted hostile $((120 + turns / 5000)) hostile $model,pmu-pv=both \
	"seed=$seed turns=$turns" -smp 2
hosted 'hostile, PMU' $((120 + turns / 5000)) hostile $model,pmu=on,pmu-pv=both \
	"seed=$seed turns=$((turns / 2))" -smp 2
hosted 'hostile, direct' $((120 + turns / 5000)) hostile \
	$model,pmu-policy=direct,pmu-pv=both "seed=$seed turns=$((turns / 2))" -smp 2
hosted 'hostile, a vCPU goes' $((120 + turns / 5000)) hostile $model,pmu-pv=both \
	"seed=$seed turns=$((turns / 4)) eject=1" -smp 2

# Moved while it counts, with and without events of the new host beside it.
status=0
out=$(timeout 200 python3 "$here/migrate.py" 8 "${qemu[@]}" -accel tcg,one-insn-per-tb=on \
	-cpu "$model,check=off,pmu-pv=both" -kernel "$VPMU_BUILD/bare/pv" \
	-append 'abi=3 turns=30' 2>&1) || status=$?
moved=$(sed -n 's/^moved //p' <<<"$out")
bad=$(grep '^not ok' <<<"$out" | head -n 3)
if [ $status = 67 ] && [ -z "$bad" ] && [ "${moved:-0}" -ge 3 ]; then
	echo 'ok moved to another QEMU'
else
	echo "not ok moved to another QEMU: status $status, $moved moves, at least 3 wanted; $bad"
fi
