#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 900
# takes: 100
#
# AMD's PMUs: the driver that an unmodified kernel finds for each kind, exact counts and
# samples there, nothing precise without IBS; and, without an operating system, the counts
# while a guest runs a guest of its own.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
build_bare
programs=$VPMU_BUILD/guest
scripts=$VPMU_ROOT/tests/guest
here=$(dirname "$(readlink -f "$0")")
some=("$programs"/{loop,calls,far,fork,indirect,rep,repfault,fault,traps,signals})

# driver NAME CPU COUNTERS PATTERN [-k]: also counts, with -k all kinds of branches.
driver() {
	# shellcheck disable=SC2016 # for the guest's shell
	in_guest "$1" --cpu "$2" --smp 2 --root -- sh -c '
		counters=$1 pattern=$2 log=$3 count=$4 kinds=$5
		shift 5
		found=$(dmesg | sed -n "s/.*\.\.\. generic registers: *//p")
		if [ "$found" = "$counters" ]; then
			echo "ok counters"
		else
			echo "not ok counters: $found, not $counters"
		fi
		"$log" "$pattern" "AMD PMU driver"
		"$count" -r 5 $kinds "$@"' sh "$3" "$4" "$scripts/boot-log" "$programs/count" "${5:-}" "${some[@]}"
}
driver Zen EPYC 6 'Fam17h+ core perfctr'
driver 'Zen 2' EPYC-Rome 6 'Fam17h+ core perfctr' -k
driver 'Zen 3' EPYC-Milan 6 'Fam17h+ core perfctr' -k
driver 'Zen 4' EPYC-Genoa 6 'Fam17h+ 16-deep LBR, core perfctr' -k
driver 'Zen 4 without PerfMonV2' EPYC-Genoa,perfmon-v2=off 6 'Fam17h+ core perfctr'
driver 'Zen 4 with four' EPYC-Genoa,pmu-gp=4 4 'Fam17h+ 16-deep LBR, core perfctr'
driver K7 phenom 4 'Performance Events: AMD'

read -r sample _ < <("$programs/count" -x "$programs/sample")
for model in EPYC-Milan EPYC-Genoa; do
	in_guest "samples on $model" --cpu "$model" --root -- "$scripts/sampling" "$sample" "$model"
done

# shellcheck disable=SC2016 # for the guest's shell
in_guest IBS --cpu EPYC-Milan --root -- sh -c '
	cd "$(mktemp -d)" || exit 1
	found=$(perf stat -x, -e cycles:p true 2>&1 | cut -d, -f1)
	if [ "$found" = "<not supported>" ]; then
		echo "ok cycles:p is not supported"
	else
		echo "not ok cycles:p is not supported: perf stat: $found"
	fi
	if out=$(perf mem record true 2>&1); then
		echo "not ok perf mem is refused: it records"
	else
		echo "ok perf mem is refused: $(echo "$out" | tail -n 1)"
	fi
	if perf record -q -o data "$1" && [ -n "$(perf script -i data)" ]; then
		echo "ok perf record does without"
	else
		echo "not ok perf record does without"
	fi' sh "$sample"

qemu=("$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults
	-no-user-config -display none -machine pc -m 64)
refused() { # NAME WORDS CPU
	local out status=0
	out=$(timeout 20 "${qemu[@]}" -accel tcg -cpu "$3,check=off,pmu=on" 2>&1 </dev/null) || status=$?
	if [ $status = 1 ] && [[ $out = *"$2"* ]]; then
		echo "ok refused/$1"
	else
		echo "not ok refused/$1: status $status, $out"
	fi
}
refused 'PerfMonV2 alone' 'which needs PerfCtrExtCore' EPYC-Genoa,perfctr-core=off,perfmon-v2=on
refused 'PerfMonV2 of Zen 3' 'asked 0x2, available 0x1' EPYC-Milan,pmu-version=2
refused 'fixed counters' 'asked 0x1, available 0x0' EPYC-Genoa,pmu-fixed=1

nested() { # NAME CPU OPTION...
	local name=$1 cpu=$2 status=0 out
	shift 2
	out=$(bare svm "$cpu,pmu=on" '' "$@" 2>&1) || status=$?
	sed -E "s#^(ok|not ok) #\1 nested, $name/#" <<<"$out"
	[ $status = 67 ] || echo "not ok nested, $name: QEMU's status is $status, not 67"
}
nested 'Zen 3' EPYC-Milan
nested 'Zen 4' EPYC-Genoa
nested 'Zen 4, direct' EPYC-Genoa,pmu-policy=direct
nested 'four counters' EPYC-Rome,perfctr-core=off
# The only one in which QEMU's loop is left while the guest's guest executes.
nested 'two CPUs' EPYC-Milan -smp 2
nested 'one instruction a block' EPYC-Milan -accel tcg,one-insn-per-tb=on

# A QEMU without patch fixes/0006 takes some without GIF, and loses some.
status=0
out=$(bare svm EPYC-Milan,pmu=on 'gif=500000' -smp 2 2>&1) || status=$?
grep -E '^(ok|not ok) interrupts' <<<"$out"
[ $status = 67 ] || echo "not ok interrupts: QEMU's status is $status, not 67"

# Six moves of a guest that lasts for three times as many, also in mid-guest.
status=0
out=$(timeout 200 python3 "$here/migrate.py" 6 "${qemu[@]}" -bios qboot.rom \
	-accel tcg,one-insn-per-tb=on -cpu EPYC-Genoa,pmu=on,check=off \
	-device isa-debug-exit,iobase=0xf4,iosize=4 \
	-kernel "$VPMU_BUILD/bare/svm" -append turns=12 2>&1) || status=$?
moved=$(sed -n 's/^moved //p' <<<"$out")
bad=$(grep -a '^not ok' <<<"$out" | head -n 3)
[ $status = 67 ] || bad="$bad $(grep -av '^ok' <<<"$out" | tail -n 4 | tr '\n' ' ')"
if [ $status = 67 ] && [ -z "$bad" ] && [ "${moved:-0}" -ge 3 ]; then
	echo 'ok nested, moved to another QEMU'
else
	echo "not ok nested, moved to another QEMU: status $status, $moved moves, at least 3 wanted; $bad"
fi
