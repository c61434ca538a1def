#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1200
# takes: 100
#
# Version 6 of perfmon: without an operating system (tests/bare/v6.c) under each
# policy, by blocks of one instruction and moved in mid-count; in Debian's 6.12, the
# first that uses the registers from 1900H on, exact counts and samples.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck disable=SC1091 # beside this file
. "$here/guest.sh"
build_bare
build_programs
programs=$VPMU_BUILD/guest
scripts=$VPMU_ROOT/tests/guest
suite=bookworm-backports
list=()
for source in "$VPMU_ROOT"/tests/guest/*.S; do
	list+=("$programs/$(basename "$source" .S)")
done
read -r sample _ < <("$programs/count" -x "$programs/sample")

# Granite Rapids with all that there is, and a CPU that has version 6 by itself.
cpu() { if [ "$1" = GraniteRapids ]; then echo GraniteRapids,pmu-version=6; else echo "$1"; fi; }

v6() { # NAME CPU OPTION...
	local name=$1 cpu=$2 status=0 out
	shift 2
	out=$(bare v6 "$cpu" turns=20 "$@" 2>&1) || status=$?
	sed -E "s#^(ok|not ok) #\1 $name/#" <<<"$out"
	[ $status = 67 ] || echo "not ok $name: QEMU's status is $status, not 67"
}

moved() { # NAME CPU
	local status=0 out n bad
	out=$(timeout 200 python3 "$here/migrate.py" 12 "$VPMU_QEMU/bin/qemu-system-x86_64" \
		-L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config -display none -machine pc \
		-m 64 -bios qboot.rom -accel tcg,one-insn-per-tb=on -cpu "$2,check=off,pmu=on" \
		-device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$VPMU_BUILD/bare/v6" \
		-append turns=300 2>&1) || status=$?
	n=$(sed -n 's/^moved //p' <<<"$out")
	bad=$(grep '^not ok' <<<"$out" | head -n 3)
	case_of "$1/moved to another QEMU" "$(
		[ $status = 67 ] && [ -z "$bad" ] && [ "${n:-0}" -ge 3 ] ||
			echo "status $status, $n moves, at least 3 wanted; $bad")"
}

# Its driver takes the new addresses, and the guest is told nothing else. Auto counter
# reload, RDPMC user disable and UnitMask2 it does not know; they are tests/bare's.
traced() { # NAME
	local out
	out=$("$VPMU_BUILD/vpmu" run --cpu "$(cpu "$1")" --kernel $suite --trace "$TMPDIR/trace" -- \
		perf stat -e instructions:u,branches:u true 2>&1 </dev/null) ||
		echo "not ok $1/trace: status $?: $out"
	case_of "$1/registers" "$(python3 - "$TMPDIR/trace" <<-'END'
		import json, re, sys
		names = {e["name"] for e in json.load(open(sys.argv[1]))["traceEvents"]}
		for want in r"wrmsr IA32_PMC_GP\d_CTR", r"wrmsr IA32_PMC_GP\d_CFG_A", \
		        r"wrmsr IA32_PMC_FX0_CTR":
		    if not any(re.fullmatch(want, n) for n in names):
		        print(f"no {want}", end=" ")
		old = [n for n in names if re.match(r"(rd|wr)msr IA32_(A_PMC|PMC\d|PERFEVTSEL|FIXED_CTR\d)", n)]
		if old:
		    print("old ones:", *old[:3])
	END
	)"
}

for model in GraniteRapids ClearwaterForest; do
	for policy in direct ${SOAK:+shared mediated}; do
		v6 "$model/$policy" "$(cpu $model),pmu=on,pmu-policy=$policy"
	done
	v6 "$model/one instruction a block" "$(cpu $model),pmu=on" -accel tcg,one-insn-per-tb=on
	moved $model "$(cpu $model)"
done

if ! "$VPMU_ROOT/tools/guest-kernel" $suite >/dev/null 2>"$TMPDIR/log"; then
	echo "skip $suite: $(tail -n 1 "$TMPDIR/log")"
	exit 0
fi
driver() { # NAME CPU TABLES
	in_guest "$1" --cpu "$2" --kernel $suite --root -- "$scripts/boot-log" "$3" \
		'full-width counters' 'Intel PMU driver'
}
driver 'GraniteRapids/version 5' GraniteRapids 'Granite Rapids events'
driver GraniteRapids GraniteRapids,pmu-version=6 'Granite Rapids events'
driver ClearwaterForest ClearwaterForest 'generic architected perfmon'
for model in GraniteRapids ClearwaterForest; do
	traced $model
	in_guest "$model/kinds" --cpu "$(cpu $model)" --kernel $suite --smp 2 -- \
		"$programs/count" -r 10 -k "${list[@]}"
	in_guest "$model/samples" --cpu "$(cpu $model)" --kernel $suite --root -- \
		"$scripts/sampling" "$sample" $model
done
