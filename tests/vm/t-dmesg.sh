#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1200
# takes: 100
#
# The messages of an unmodified kernel for each model and each version of perfmon, and
# with pmu=off. SOAK=1 takes all models.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
programs=$VPMU_BUILD/guest
scripts=$VPMU_ROOT/tests/guest
some=("$programs"/{loop,calls,rep,repfault,fault,traps,signals})

in_guest Icelake-Server-v6 --cpu Icelake-Server-v6 --root -- "$scripts/boot-log" \
	'Icelake events' 'full-width counters' 'Intel PMU driver'
in_guest SapphireRapids --cpu SapphireRapids --root -- "$scripts/boot-log" \
	'Sapphire Rapids events' 'full-width counters' 'Intel PMU driver'
in_guest Skylake-Server --cpu Skylake-Server --root -- "$scripts/boot-log" \
	'Skylake events' 'full-width counters' 'Intel PMU driver'

# driver MODEL TEXT: the tables that Linux takes for one of older_models.
driver() { in_guest "$1" --cpu "$1" --root -- "$scripts/boot-log" "$2 events" 'Intel PMU driver'; }
driver core2duo Core2
driver Nehalem Nehalem
driver Haswell Haswell
driver KnightsMill 'Knights Landing/Mill'
driver Snowridge Tremont
if [ -n "${SOAK:-}" ]; then
	driver Conroe Core2
	driver Penryn Core2
	driver Westmere Westmere
	driver SandyBridge SandyBridge
	driver IvyBridge IvyBridge
	driver Broadwell Broadwell
	driver Skylake-Client Skylake
	driver Cascadelake-Server Skylake
	driver Cooperlake Skylake
	driver Denverton Goldmont
fi

# A model that Linux does not know, of each version that has a driver of its own.
for version in 1 ${SOAK:+2} 5; do
	in_guest "unknown/$version" --cpu "Icelake-Server,model=200,pmu-version=$version" --root -- \
		"$scripts/boot-log" 'generic architected perfmon' ' PMU driver'
done

# Version 1 has neither fixed counters nor global control.
for version in 1 ${SOAK:+2 3} 4 5; do
	# shellcheck disable=SC2016 # for the guest's shell
	in_guest "version $version" --cpu "Icelake-Server-v6,pmu-version=$version" --root -- sh -c '
		version=$1 log=$2 count=$3
		shift 3
		if [ -n "$(dmesg | grep "\.\.\. version: *$version\$")" ]; then
			echo "ok told"
		else
			echo "not ok told: $(dmesg | grep "\.\.\. version:")"
		fi
		"$log" "full-width counters" " PMU driver"
		"$count" -r 5 "$@"' sh "$version" "$scripts/boot-log" "$programs/count" "${some[@]}"
done

# shellcheck disable=SC2016 # for the guest's shell
in_guest off --pmu none --root -- sh -c '
	if [ -n "$(dmesg | grep "no PMU driver, software events only")" ]; then
		echo "ok driver"
	else
		echo "not ok driver: $(dmesg | grep "Performance Events")"
	fi
	found=$(perf stat -x, -e instructions:u true 2>&1 | cut -d, -f1)
	if [ "$found" = "<not supported>" ]; then
		echo "ok not supported"
	else
		echo "not ok not supported: perf stat: $found"
	fi'
