#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 7200
# takes: 100
#
# Intel's VMX, without an operating system (tests/bare/vmx.c): what the PMU counts of a
# hypervisor and its guest, there and after moves to another QEMU; and hypervisors that enter
# guests by whatever VMCS. SOAK=1: an hour of guests on kvm_intel that count, sample, move
# and are reset. TURNS=N turns of the hostile ones, from seed SEED; CASES=hostile: only these.
# What kvm_intel makes of it is t-nested.sh.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/nested.sh"
build_bare
here=$(dirname "$(readlink -f "$0")")

# A guest that gets at its hypervisor's memory may end it by a reset, with status 0, or by any
# byte that is written to the exit port, with an odd status; the next seed goes on. QEMU itself
# does not end: it would say why, or be killed by a signal (132 to 139).
hostile() { # CPU
	local turns=${TURNS:-20000} seed=${SEED:-$RANDOM} first status out said n=0 runs=0
	first=$seed
	while [ "$n" -lt "$turns" ] && [ $((runs++)) -lt $((50 + turns / 500)) ]; do
		status=0
		out=$(BARE_SECONDS=${BARE_SECONDS:-120} bare vmx "$1" "turns=$((turns - n)) seed=$seed" \
			-no-reboot 2>"$TMPDIR/stderr" | tr -d '\0') || status=$?
		said=$(head -n 3 "$TMPDIR/stderr" | tr '\n' '|')
		case $status in
		13[2-9]) said+='a signal' ;;
		0 | *[13579]) ;;
		124) said='' ;; # a guest that never exits: QEMU ended when it was asked to
		*) said+='no status of a guest' ;;
		esac
		if [ -n "$said" ]; then
			echo "not ok hostile, $1: seed $seed: status $status: $said"
			return
		fi
		n=$((n + $(grep -a '^# turns' <<<"$out" | tail -n 1 | cut -d' ' -f3)))
		seed=$((seed + 1))
	done
	if [ "$n" -ge "$turns" ]; then
		echo "ok hostile, $1: $n turns from seed $first, $runs runs"
	else
		echo "not ok hostile, $1: $n turns of $turns from seed $first in $runs runs"
	fi
}
if [ "${CASES:-}" = hostile ]; then
	hostile SapphireRapids,vmx=on,pmu=on
	exit 0
fi

counts() { # NAME CASES CPU OPTION...
	local name=$1 cases=$2 cpu=$3 status=0 saves=0 out n
	shift 3
	[[ $cpu != *save-perf-global-ctrl* ]] || saves=1
	out=$(bare vmx "$cpu" "saves=$saves" "$@" 2>&1) || status=$?
	n=$(grep -c '^ok ' <<<"$out")
	if [ $status = 67 ] && [ "$n" = "$cases" ] && ! grep -q '^not ok' <<<"$out"; then
		echo "ok counts, $name"
	else
		echo "not ok counts, $name: status $status, $n cases ok of $cases: $(grep -v '^ok ' <<<"$out" | tail -n 3 | tr '\n' '|')"
	fi
}
counts 'Sapphire Rapids' 66 SapphireRapids,vmx=on,pmu=on
counts 'GLOBAL_CTRL saved at exits' 66 SapphireRapids,vmx=on,vmx-exit-save-perf-global-ctrl=on,pmu=on
counts 'Ice Lake, two CPUs' 66 Icelake-Server-v6,vmx=on,pmu=on -smp 2
counts 'one instruction a block' 66 SapphireRapids,vmx=on,pmu=on -accel tcg,one-insn-per-tb=on
counts 'a direct PMU' 66 SapphireRapids,vmx=on,pmu=on,pmu-policy=direct
counts 'without EPT' 46 SapphireRapids,vmx=on,vmx-ept=off,pmu=on
counts 'a model that describes no VMX' 66 Icelake-Server-v6,vmx=on,pmu=on,vmx-mtf=off

# A feature that TCG does not have is refused as any other is.
out=$(timeout 20 "$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults \
	-display none -machine pc -accel tcg -cpu SapphireRapids,vmx=on,vmx-apicv-vid=on,enforce \
	-S 2>&1 </dev/null)
[[ $out == *"TCG doesn't support requested feature"*vmx-apicv-vid* ]] && echo 'ok enforce' ||
	echo "not ok enforce: $(tail -n 2 <<<"$out" | tr '\n' '|')"

# Moves of a hypervisor, in mid-guest too.
status=0
out=$(timeout 300 python3 "$here/migrate.py" 6 "$VPMU_QEMU/bin/qemu-system-x86_64" \
	-L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config -display none -machine pc -m 64 \
	-bios qboot.rom -accel tcg,one-insn-per-tb=on -cpu SapphireRapids,vmx=on,pmu=on,check=off \
	-device isa-debug-exit,iobase=0xf4,iosize=4 \
	-kernel "$VPMU_BUILD/bare/vmx" -append rounds=800 2>&1) || status=$?
moved=$(sed -n 's/^moved //p' <<<"$out")
bad=$(grep -a '^not ok' <<<"$out" | head -n 3)
if [ $status = 67 ] && [ -z "$bad" ] && [ "${moved:-0}" -ge 3 ]; then
	echo 'ok moved to another QEMU'
else
	echo "not ok moved to another QEMU: status $status, $moved moves, at least 3 wanted; $bad $(tail -n 2 <<<"$out")"
fi

hostile SapphireRapids,vmx=on,pmu=on
hostile max,vmx=on,pmu=off

if [ -n "${SOAK:-}" ]; then
	build_programs
	soak=$(mktemp -d "$TMPDIR/vmx.XXXXXX")
	cd "$soak" || exit 1
	l1_cpu=SapphireRapids L1_LIMIT=5400 l1_limit=5400 in_l1 soak --smp 2 --kernel bookworm-backports \
		--memory 3G -- "$VPMU_ROOT/tests/vm/vmx-soak-l1.sh" "${SOAK_SECONDS:-3600}"
	cd / && rm -rf "$soak"
fi
exit 0
