#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 900
# takes: 200
#
# Branch records in Debian guests: what the kernel says of them, and what perf shows
# of a program of which every branch is known. In a guest without an operating
# system: a host that records branches, too, and moves from one QEMU to another.
# SOAK=1 takes all models and kernels.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
scripts=$VPMU_ROOT/tests/guest

# records NAME MODEL SUITE TEXT ENTRIES OPTION...: in one boot, what the kernel says,
# in which TEXT stands too, and what perf shows.
records() {
	# shellcheck disable=SC2016 # for the guest's shell
	in_guest "$1" --cpu "$2" --kernel "$3" --root -- sh -c '
		text=$1
		shift
		"$0/boot-log" "$2-deep LBR" "$text"
		"$0/brstack" "$@"' \
		"$scripts" "$4" "$VPMU_BUILD/guest/recurse" "${@:5}"
}

for model in Icelake-Server-v6 ${SOAK:+Skylake-Server}; do
	records "$model" "$model" bookworm LBR 32
done
for suite in ${SOAK:+bookworm} bookworm-backports; do
	records "SapphireRapids $suite" SapphireRapids "$suite" 'Architectural LBR' 32
done
records EPYC-Genoa EPYC-Genoa bookworm LBR 16 no-chain far=none
if [ -n "${SOAK:-}" ]; then
	records Nehalem Nehalem bookworm LBR 16 no-chain far=none
	records Haswell Haswell-v4 bookworm LBR 16
fi
# Counters in records: Linux has them from 6.8 on.
for suite in ${SOAK:+bookworm-backports} trixie-backports; do
	in_guest "counters $suite" --cpu ClearwaterForest --kernel "$suite" --root -- \
		"$scripts/logged" "$VPMU_BUILD/guest/recurse"
done
in_guest Conroe --cpu Conroe --root -- "$scripts/boot-log" '4-deep LBR'
if "$VPMU_QEMU/bin/qemu-system-x86_64" -device Icelake-Server-v6-x86_64-cpu,help 2>&1 |
	grep -q pmu-pv; then
	for suite in bookworm ${SOAK:+bookworm-backports}; do
		driver=$(pv_guest "$suite") || { echo "$driver" && continue; }
		in_guest "pv $suite" --pmu pv --kernel "$suite" --root -- \
			"$scripts/brstack" "$VPMU_BUILD/guest/recurse"
	done
else
	echo "skip pv: $VPMU_QEMU/bin/qemu-system-x86_64 has no property pmu-pv"
fi
# shellcheck disable=SC2016 # for the guest's shell
# With lbr-fmt=0 there are no branch records.
in_guest lbr-fmt=0 --cpu Icelake-Server-v6,lbr-fmt=0 --root -- sh -c '
	if [ -n "$(dmesg | grep LBR)" ]; then echo "not ok none"; else echo "ok none"; fi'

build_bare
here=$(dirname "$(readlink -f "$0")")

bare_by() { # NAME MODEL APPEND PYTHON ARGUMENT...
	local name=$1 model=$2 append=$3 out status=0
	shift 3
	out=$(timeout -k 5 200 python3 "$@" "$VPMU_QEMU/bin/qemu-system-x86_64" \
		-L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config -display none -machine pc \
		-bios qboot.rom -m 64 -accel tcg -cpu "$model,check=off,pmu=on" \
		-device isa-debug-exit,iobase=0xf4,iosize=4 \
		-kernel "$VPMU_BUILD/bare/lbr" -append "$append") || status=$?
	sed -E "s#^(ok|not ok) #\1 $name $model/#" <<<"$out"
	[ $status = 67 ] || echo "not ok $name $model: QEMU's status is $status, not 67"
}
for model in ${SOAK:+Icelake-Server-v6} SapphireRapids ClearwaterForest; do
	bare_by 'host beside' "$model" host=1 "$here/pv_bare.py"
	# The cases of t-bare.sh, exact to the branch, while the guest moves.
	bare_by 'moving' "$model" host=0 "$here/migrate.py" 8
done
