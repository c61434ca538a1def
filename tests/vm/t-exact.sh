#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1800
# takes: 350
#
# Programs whose counts are known by construction, a hundred times each alone on one CPU, and
# on two beside processes that keep them busy: ten times, a hundred with SOAK=1. All kinds of
# branches on each model, fewer times on the older ones; by ptrace step by step; and by perf
# itself.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs

runs=${RUNS:-100}
busy_runs=${RUNS:-${SOAK:+100}}
kinds_runs=$([ -n "${SOAK:-}" ] && echo 10 || echo 3)
programs=$VPMU_BUILD/guest
list=()
for source in "$VPMU_ROOT"/tests/guest/*.S; do
	[ "${source##*/}" != long.S ] || continue # t-migrate's: as much as all others in 50 runs
	list+=("$programs/$(basename "$source" .S)")
done
list+=("$programs"/{branchy,loop,sample}32)

in_guest smp1 --smp 1 -- "$programs/count" -r "$runs" "${list[@]}"
in_guest smp2 --smp 2 -- "$programs/count" -r "${busy_runs:-10}" -b 2 "${list[@]}"
in_guest step --smp 2 -- "$programs/count" -r "$runs" -s "$programs/step"
for model in $(models); do
	in_guest "kinds/$model" --cpu "$model" --smp 2 -- "$programs/count" -r "$kinds_runs" -k "${list[@]}"
done

number=0
for model in $(older_models); do # every fifth of them, but for SOAK=1
	number=$((number + 1))
	[ -n "${SOAK:-}" ] || [ $((number % 5)) = 1 ] || continue
	# shellcheck disable=SC2016 # for the guest's shell
	in_guest "${model%%,*}" --cpu "$model" -- sh -c '"$0" -r 2 "$@"; "$0" -r 2 -k "$@"' \
		"$programs/count" "${list[@]}"
done

# shellcheck disable=SC2016 # for the guest's shell
in_guest perf -- sh -c '
	"$@" | while read -r program instructions branches; do
		name=$(basename "$program")
		found=$(perf stat -x, -e instructions:u,branches:u "$program" 2>&1 | cut -d, -f1 |
			tr "\n" " ")
		if [ "$found" = "$instructions $branches " ]; then
			echo "ok $name"
		else
			echo "not ok $name: perf stat: $found, not $instructions $branches"
		fi
		found=$(perf stat -x, -e "{slots:u,topdown-retiring:u,topdown-bad-spec:u,topdown-fe-bound:u,topdown-be-bound:u}" \
			"$program" 2>&1 | cut -d, -f1 | tr "\n" " ")
		# Linux does not clear slots for a task whose group counted none when it last
		# ran, so such a task counts from what another one had: see docs/EVENTS.md.
		slots=$instructions
		if [ "$name" = fork ] && [ "${found%% *}" -gt "$slots" ]; then
			slots=${found%% *}
		fi
		if [ "$found" = "$slots $slots 0 0 0 " ]; then
			echo "ok $name, slots"
		else
			echo "not ok $name, slots: perf stat: $found, not $instructions"
		fi
	done' sh "$programs/count" -x "${list[@]}"
