#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Counts, overflows and branch records to the very instruction without an operating
# system: on each model, with each version of perfmon, and with blocks of one
# instruction. And what is executed where jumps go, and when the CPU is asked to leave.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_bare

# The program's own options are in $line.
run() { # PROGRAM NAME CPU OPTION...
	local program=$1 name=$2 cpu=$3 status=0 out
	shift 3
	out=$(bare "$program" "$cpu" "cpus=2 ${line:-}" -smp 2 "$@" 2>&1) || status=$?
	sed -E "s#^(ok|not ok) #\1 $name/#" <<<"$out"
	[ $status = 67 ] || echo "not ok $name: QEMU's status is $status, not 67"
}

for model in $(models); do
	run exact "$model" "$model,pmu=on"
	run lbr "branch records of $model" "$model,pmu=on"
done
# bench/run --only-engine relies on the instructions of each turn.
for work in {0..6}; do
	out=$(bare engine Icelake-Server-v6,pmu=on "work=$work instructions=70000 events=8" 2>&1)
	status=$?
	case_of "the engine's work $work" "$([ $status = 67 ] && [ -n "$out" ] || echo "status $status: $out")"
done
for version in 1 2 3 4; do
	run exact "version $version" "Icelake-Server-v6,pmu=on,pmu-version=$version"
done
for program in exact lbr; do
	run $program "$program by one instruction a block" Icelake-Server-v6,pmu=on \
		-accel tcg,one-insn-per-tb=on
done
run lookup 'jumps to known targets' Icelake-Server-v6,pmu=off
line=count=1 run lookup 'jumps to known targets, counted' Icelake-Server-v6,pmu=on
run lookup 'jumps to known targets by one instruction a block' Icelake-Server-v6,pmu=on \
	-accel tcg,one-insn-per-tb=on
for threads in single multi; do
	line=count=1 run lookup "jumps to known targets, 1 MiB of code, thread=$threads" \
		Icelake-Server-v6,pmu=on -accel "tcg,tb-size=1,thread=$threads"
done
run asked 'asked to leave' Icelake-Server-v6,pmu=off -machine q35
line=count=1 run asked 'asked to leave, counted' Icelake-Server-v6,pmu=on -machine q35
line=count=1 run asked 'asked to leave, -icount' Icelake-Server-v6,pmu=on -machine q35 -icount shift=0
run asked 'asked to leave by one instruction a block' Icelake-Server-v6,pmu=on \
	-machine q35 -accel tcg,one-insn-per-tb=on
for model in EPYC-Milan EPYC-Genoa EPYC-Rome,perfctr-core=off; do
	run exact "${model/,*/ with four}" "$model,pmu=on"
done
