#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 9000
# takes: 90
#
# Hostile VMMs on a host with vpmu_kvm.ko (tests/vmm): directed attacks, then 20 s of random
# ones beside VMs that count exactly. SOAK=1: an hour of those on each of both kernels.
# SEED=N repeats a run's seeds.
set -uo pipefail
seed=${SEED:-$RANDOM} seconds=20 suites=bookworm parameters=''
if [ -n "${SOAK:-}" ]; then
	seconds=3600 suites='bookworm bookworm-backports'
	parameters='kfence.sample_interval=1 slub_debug=FZPU preempt=full'
fi
[ -z "${DEBUG_KERNEL:-}" ] || suites=${NAME:-debug} # l1_kernel's
export L1_LIMIT=${L1_LIMIT:-$((seconds + 600))}
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/nested.sh"
if ! log=$(make -s -C "$VPMU_ROOT/tests/vmm" O="$VPMU_BUILD/vmm" 2>&1); then
	echo "$log"
	echo 'not ok programs: make -C tests/vmm failed'
	exit 1
fi
work=$(mktemp -d "$TMPDIR/attack.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

for suite in $suites; do
	if ! l1_kernel "$suite" 2>log || ! kvm=$(l1_module 2>log); then
		echo "skip $suite: $(tail -n 1 log)"
		continue
	fi
	echo "# SEED=$seed"
	in_l1 "$suite" "${L1_OPTIONS[@]}" --smp 2 \
		--append "$L1_PARAMETERS $parameters" -- \
		"$VPMU_ROOT/tests/vm/attack-l1.sh" "$kvm" "$seed" "$seconds"
done
exit 0
