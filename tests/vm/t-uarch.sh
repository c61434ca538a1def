#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# takes: 150
#
# The modelled CPU is fed with every access and no other: loops of which each access is
# known, without an operating system; what it says of work of known behaviour in Debian
# guests; that runs repeat; that cachegrind agrees; and what cannot be asked for is refused.
set -euo pipefail
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"

build_bare
python3 "$VPMU_ROOT/tests/vm/uarch.py" "$VPMU_QEMU" "$VPMU_BUILD/bare/uarch" \
	Icelake-Server-v6,pmu=on,pmu-uarch=always

# refused NAME CPU WORDS: QEMU does not start, and says WORDS.
refused() {
	local out
	out=$("$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults \
		-display none -machine none -accel tcg -machine pc -cpu "$2" -S 2>&1 </dev/null) &&
		out="it started: $out"
	case $out in
	*"$3"*) case_of "refused/$1" "" ;;
	*) case_of "refused/$1" "found '${out:0:200}', needed '$3'" ;;
	esac
}

refused off Icelake-Server-v6,pmu-uarch=on 'found no PMU under TCG'
refused word Icelake-Server-v6,pmu=on,pmu-uarch=some 'needed: off, on or always'
refused alone Icelake-Server-v6,pmu=on,pmu-uarch-params=l2=0 'needed pmu-uarch=on'
refused name Icelake-Server-v6,pmu=on,pmu-uarch=on,pmu-uarch-params=l9=0 "'l9=0'"
refused number Icelake-Server-v6,pmu=on,pmu-uarch=on,pmu-uarch-params=l1d=63x8 'power of two'

build_programs
modelling=$VPMU_ROOT/tests/guest/modelling
work=$VPMU_BUILD/guest/modelled
# shellcheck disable=SC2016 # for the guest's shell
each='script=$1 program=$2; shift 2; for mode; do "$script" "$mode" "$program" || exit; done'
in_guest 'Icelake-Server' --uarch on --cpu Icelake-Server-v6 -- \
	sh -c "$each" sh "$modelling" "$work" topdown memory detailed
in_guest 'SapphireRapids with 6.12' --uarch on --cpu SapphireRapids --kernel bookworm-backports \
	-- sh -c "$each" sh "$modelling" "$work" topdown memory detailed records
in_guest 'SapphireRapids, paravirtual' --uarch on --pmu pv --cpu SapphireRapids -- "$modelling" slots "$work"
in_guest 'Skylake-Server' --uarch on --cpu Skylake-Server -- "$modelling" records "$work"
in_guest 'EPYC-Genoa' --uarch on --cpu EPYC-Genoa -- "$modelling" detailed "$work"
in_guest 'programs alone' --uarch user --cpu Icelake-Server-v6 -- \
	sh -c "$each" sh "$modelling" "$work" repeat bounds

# Use the caches of cachegrind, for a comparison: no L2, and no prefetcher. A program's
# start differs by some fifty lines, as glibc finds another CPU; so counts below 100,000
# are not compared.
jobs=('chase 100000 4096' 'store 2 4096' 'columns 8')
if ! command -v valgrind >/dev/null; then
	echo 'skip cachegrind: found no valgrind in PATH, needed: apt-get install valgrind'
	exit 0
fi
ours=$("$VPMU_BUILD/vpmu" run --uarch user,l1i=64x8,l1d=64x8,l2=0,llc=1024x16,prefetch=0 -- \
	"$modelling" counts "$work" "${jobs[@]}" </dev/null) || true
for job in "${jobs[@]}"; do
	# shellcheck disable=SC2086 # words
	theirs=$(env -i PATH="$PATH" setarch -R valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file=/dev/null \
		--I1=32768,8,64 --D1=32768,8,64 --LL=1048576,16,64 "$work" $job 2>&1 | tr -d ,)
	why=$(python3 - "$ours" "$theirs" "${job// /_}" <<-'END'
		import re, sys
		ours, theirs, job = sys.argv[1:]
		found = re.search(rf"counts {re.escape(job)} (\d+) (\d+)", ours)
		want = [re.search(rf"{what} misses: +(\d+)", theirs) for what in ("D1 ", "LL")]
		if not found or not all(want):
		    sys.exit(print(f"no counts: {ours[-200:]} {theirs[-200:]}"))
		for what, got, one in zip(("D1", "the last level"), found.groups(), want):
		    got, one = int(got), int(one.group(1))
		    if one >= 100000 and abs(got - one) > 0.001 * one:
		        print(f"{what}: {got}, cachegrind {one}: {100 * (got - one) / one:+.3f} %")
	END
	)
	case_of "cachegrind/${job%% *}" "$why"
done
