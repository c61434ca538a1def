#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 5400
# takes: 450
#
# The paravirtual PMU on a stock KVM: L1 is Debian's kernel with vpmu_kvm.ko, whose perf
# counts on the PMU that QEMU executes; L2 is Debian's kernel with vpmu_guest.ko, and
# unmodified perf. SOAK=1 does it all on 6.1, 6.12 and the newest kernel, these with every check
# of their memory; TURNS=N and SEED=N are of the hostile guest.
set -uo pipefail
# t-kvm-user.sh explains the limits.
export L1_LIMIT=${L1_LIMIT:-3000} L2_LIMIT=${L2_LIMIT:-1000} TOP='-c 1000003'
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/nested.sh"
build_programs
build_bare
seed=${SEED:-$RANDOM}
work=$(mktemp -d "$TMPDIR/kvm.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# round NAME PMU SUITE PARAMETERS TURNS PERF-CASES CASE...: L1 with kernel parameters.
round() {
	local name=$1 pmu=$2 suite=$3 parameters=$4 turns=${TURNS:-$5} perf_cases=$6 kernel guest host
	shift 6
	if ! kernel=$("$VPMU_ROOT/tools/guest-kernel" "$suite" 2>log) ||
		! guest=$("$VPMU_ROOT/tools/guest-module" "$kernel" 2>log) ||
		! l1_kernel "$suite" 2>log || ! host=$(l1_module 2>log) ||
		! FAULTY=$(VPMU_KVM_FAULTS=1 l1_module 2>log); then
		echo "skip $name: $(tail -n 1 log)"
		return
	fi
	export FAULTY
	# KVM has a PMU of its own for guests, which is there only where PARAMETERS ask for it.
	L1_PMU=$pmu in_l1 "$name" "${L1_OPTIONS[@]}" --smp 2 \
		--append "kvm.enable_pmu=0 $L1_PARAMETERS $parameters" -- "$VPMU_ROOT/tests/vm/kvm-l1.sh" "$host" \
		"$guest" "$suite" "$seed" "$turns" "$perf_cases" "$@"
	rm -rf two-1 two-2
}

if [ -n "${DEBUG_KERNEL:-}" ]; then # of SUITE's version
	export PERIOD=100003
	round "${NAME:-debug}" arch "${SUITE:-bookworm}" '' 300 'loaded exact sampling' \
		${CASES:-load perf hostile state moved vcpus leave faults unload}
	exit 0
fi
if [ -z "${SOAK:-}" ]; then
	export PERIOD=100003
	round none none bookworm '' 0 '' no_pmu error
	round 6.1 arch bookworm '' 300 'exact sampling' load perf hostile state moved leave faults pin unload
	exit 0
fi
all='loaded default exact ways process sampling top reload hotplug'
# L1 has its PMU by hypercalls too.
round third pv bookworm '' 0 'loaded exact' load perf unload
round vpmu arch bookworm kvm.enable_pmu=1 0 '' alone metrics pin
round locked arch bookworm lockdown=integrity 0 '' locked
for rate in 1 250; do
	RATE=$rate round "rate $rate" arch bookworm '' 300 'loaded exact sampling' load perf hostile state moved unload
done
strict='kfence.sample_interval=1 slub_debug=FZPU panic_on_warn=1'
round 6.1 arch bookworm '' 20000 "$all" load perf two hostile state moved leave refused faults unload
l1_cpu=SapphireRapids round 6.1/vmx arch bookworm '' 20000 "$all" load perf two hostile state moved leave refused faults unload
l1_cpu=Icelake-Server round 6.12/vmx arch bookworm-backports "$strict" 20000 "$all" load perf two hostile state moved leave refused faults unload
round 6.12 arch bookworm-backports "$strict" 20000 "$all" load perf two hostile state moved leave refused faults unload
round 7.x arch trixie-backports "$strict" 20000 "$all" load perf two hostile state moved leave refused faults unload
l1_cpu=SapphireRapids round 7.x/vmx arch trixie-backports '' 20000 "$all" load perf two hostile state moved leave refused faults unload
exit 0
