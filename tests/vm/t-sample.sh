#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1200
# takes: 200
#
# Sampling without skid, and perf's other commands as people use them. SOAK=1 takes all models.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
programs=$VPMU_BUILD/guest
scripts=$VPMU_ROOT/tests/guest
read -r sample instructions branches < <("$programs/count" -x "$programs/sample")

for model in SapphireRapids ${SOAK:+Icelake-Server-v6 Skylake-Server ClearwaterForest}; do
	in_guest "$model" --cpu "$model" --root -- "$scripts/sampling" "$sample" "$model"
done
# Two counters of 40 bits, fixed ones, no full-width writes; and no global control at all,
# so that the handler stops each counter by itself and looks at each for an overflow.
for model in core2duo Nehalem; do
	in_guest "$model" --cpu "$model" --root -- "$scripts/sampling" "$sample" "$model"
done
in_guest version1 --cpu Icelake-Server-v6,pmu-version=1 --root -- "$scripts/sampling" "$sample" Icelake
in_guest generic1 --cpu Icelake-Server,model=200,pmu-version=1 --root -- \
	"$scripts/sampling" "$sample" generic
in_guest smp2 --smp 2 --root -- "$scripts/sampling" "$sample" Icelake
in_guest call-graph --root -- "$scripts/sampling" "$sample" Icelake --call-graph fp
for model in Icelake-Server-v6 EPYC-Genoa; do
	in_guest "$model/group" --cpu "$model" --root -- "$scripts/group" "$sample"
done
in_guest tools --smp 2 --root -- "$scripts/tools" "$sample" "$instructions" "$branches"
in_guest watchdog --smp 2 --root -- "$scripts/watchdog"
