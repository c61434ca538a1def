#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Counts and overflows to the very instruction without an operating system: on
# each model, with each version of perfmon, and with blocks of one instruction.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_bare

exact() { # NAME CPU OPTION...
	local name=$1 cpu=$2 status=0 out
	shift 2
	out=$(bare exact "$cpu" cpus=2 -smp 2 "$@" 2>&1) || status=$?
	sed -E "s,^(ok|not ok) ,\1 $name/," <<<"$out"
	[ $status = 67 ] || echo "not ok $name: QEMU's status is $status, not 67"
}

for model in $(models); do
	exact "$model" "$model,pmu=on"
done
for version in 1 2 3 4; do
	exact "version $version" "Icelake-Server-v6,pmu=on,pmu-version=$version"
done
exact 'one instruction a block' Icelake-Server-v6,pmu=on -accel tcg,one-insn-per-tb=on
