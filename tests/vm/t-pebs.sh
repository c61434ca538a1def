#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1800
# takes: 300
#
# PEBS in Debian guests: what the kernel says of it, and perf's precise samples of
# programs of which every instruction and every access is known. SOAK=1 takes each format.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck disable=SC1091 # beside this file
. "$here/guest.sh"
build_programs
build_bare
scripts=$VPMU_ROOT/tests/guest
programs=$VPMU_BUILD/guest

# guest NAME CPU TEXT KERNEL OPTION...: what the kernel says, and samples
guest() {
	local name=$1 cpu=$2 text=$3 kernel=$4
	shift 4
	# shellcheck disable=SC2016 # for the guest's shell
	in_guest "$name" --cpu "$cpu" --kernel "$kernel" --root -- sh -c \
		'"$1" "$2" && shift 2 && "$@"' sh "$scripts/boot-log" "$text" \
		"$scripts/precise" "$@" "$programs/sample" "$programs/precise"
}
[ -z "${SOAK:-}" ] || guest Icelake-Server Icelake-Server-v6 'PEBS fmt4+-baseline' bookworm
guest SapphireRapids SapphireRapids 'PEBS fmt4+-baseline' bookworm
[ -z "${SOAK:-}" ] || guest 'SapphireRapids with 6.12' SapphireRapids 'PEBS fmt4+-baseline' bookworm-backports
guest ClearwaterForest ClearwaterForest 'Architectural PEBS' trixie-backports --format 15
[ -z "${SOAK:-}" ] || guest Penryn Penryn 'PEBS fmt0+' bookworm --format 0
guest Nehalem Nehalem 'PEBS fmt1+' bookworm --format 1
# Linux believes no other stepping's, and no earlier microcode's.
[ -z "${SOAK:-}" ] || guest SandyBridge SandyBridge,stepping=7,ucode-rev=0x2800000000 'PEBS fmt1+' bookworm --format 1
[ -z "${SOAK:-}" ] || guest Haswell Haswell 'PEBS fmt2+' bookworm --format 2
guest Skylake-Server Skylake-Server 'PEBS fmt3+' bookworm --format 3
# Without an operating system: tests/bare/pebs.c says what; and moved in the middle of it,
# with records in a buffer that is not full yet.
run() { # NAME CPU OPTION...
	local name=$1 cpu=$2 status=0 out
	shift 2
	out=$(bare pebs "$cpu,pmu=on" cpus=2 -smp 2 "$@" 2>&1) || status=$?
	sed -E "s#^(ok|not ok|skip) #\1 $name/#" <<<"$out"
	[ $status = 67 ] || echo "not ok $name: QEMU's status is $status, not 67"
}
moved() { # NAME CPU
	local status=0 out n bad
	out=$(timeout 200 python3 "$here/migrate.py" 12 "$VPMU_QEMU/bin/qemu-system-x86_64" \
		-L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config -display none -machine pc \
		-m 64 -bios qboot.rom -accel tcg,one-insn-per-tb=on -cpu "$2,check=off,pmu=on" \
		-device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$VPMU_BUILD/bare/pebs" \
		-append turns=30 2>&1) || status=$?
	n=$(sed -n 's/^moved //p' <<<"$out")
	bad=$(grep '^not ok' <<<"$out" | head -n 3)
	case_of "$1/moved to another QEMU" "$(
		[ $status = 67 ] && [ -z "$bad" ] && [ "${n:-0}" -ge 3 ] ||
			echo "status $status, $n moves, at least 3 wanted; $bad")"
}
for model in ${SOAK:+Icelake-Server-v6} SapphireRapids ClearwaterForest; do
	run "bare $model" "$model"
	moved "bare $model" "$model"
done
run 'bare by one instruction a block' Icelake-Server-v6 -accel tcg,one-insn-per-tb=on

# Without DS there is nothing left of it, and what else there is still works; nor have
# kernels that do not know architectural PEBS any, in its place.
none() { # NAME OPTION...
	local name=$1
	shift
	# shellcheck disable=SC2016 # for the guest's shell
	in_guest "$name" "$@" --root -- sh -c '
		if dmesg | grep "PEBS"; then echo "not ok none"; else echo "ok none"; fi
		if perf record -q -o /dev/null -e instructions:ppp true 2>/dev/null; then
			echo "not ok refused"
		else
			echo "ok refused"
		fi'
}
none ds=off --cpu Icelake-Server-v6,ds=off
for suite in bookworm ${SOAK:+bookworm-backports}; do
	none "ClearwaterForest with $suite" --cpu ClearwaterForest --kernel $suite
done
