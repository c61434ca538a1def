#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# A guest that does to the PMU whatever it can, on each model and each version of
# perfmon: QEMU lives, says nothing and ends when the guest wants it to.
# SEED=N repeats a run, TURNS=N makes it longer.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_bare

seed=${SEED:-$RANDOM}
turns=${TURNS:-100000}

fuzz() { # NAME CPU OPTION...
	local name=$1 cpu=$2 status=0 out said
	shift 2
	out=$(bare fuzz "$cpu" "seed=$seed turns=$turns" "$@" 2>"$TMPDIR/stderr") || status=$?
	said=$(head -n 1 "$TMPDIR/stderr")
	if [ $status != 67 ]; then
		echo "not ok $name: seed $seed: QEMU's status is $status, not 67: ${said:-$out}"
	elif [ -n "$said" ]; then
		echo "not ok $name: seed $seed: QEMU says $(wc -l <"$TMPDIR/stderr") lines: $said"
	elif ! [[ $out =~ ^ok\ fuzz:\ $turns\ turns ]]; then
		echo "not ok $name: seed $seed: the guest says: $out"
	else
		echo "ok $name: seed $seed, ${out#ok fuzz: }"
	fi
	seed=$((seed + 1))
}

for model in $(models); do
	fuzz "$model" "$model,pmu=on"
done
for version in 1 2 3 4 5; do
	fuzz "version $version" "Icelake-Server-v6,pmu=on,pmu-version=$version"
done
fuzz 'one instruction a block' Icelake-Server-v6,pmu=on -accel tcg,one-insn-per-tb=on
fuzz off Icelake-Server-v6,pmu=off
