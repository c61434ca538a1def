#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 5400
# takes: 150
#
# The architectural PMU that vpmu_kvm.ko serves in place of KVM's own: L1 is Debian's kernel
# with the module, L2 Debian's kernel without any driver, and unmodified perf. SOAK=1 does
# all of it on both kernels, with every check of their memory; SEED=N and TURNS=N are of the
# hostile guest.
set -uo pipefail
export L1_LIMIT=${L1_LIMIT:-2500} L2_LIMIT=${L2_LIMIT:-900}
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/nested.sh"
build_programs
build_bare
if ! log=$(make -s -C "$VPMU_ROOT/tests/vmm" O="$VPMU_BUILD/vmm" 2>&1); then
	echo "$log"
	echo 'not ok programs: make -C tests/vmm failed'
	exit 1
fi
work=$(mktemp -d "$TMPDIR/kvm-arch.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export SEED=${SEED:-$RANDOM}
echo "# SEED=$SEED"

# round SUITE PARAMETERS TURNS CASE...
round() {
	local suite=$1 parameters=$2 module driver
	export TURNS=${TURNS:-$3}
	shift 3
	if ! l1_kernel "$suite" 2>log || ! module=$(l1_module 2>log); then
		echo "skip $suite: $(tail -n 1 log)"
		return
	fi
	driver=$(pv_guest "$suite") || { echo "$driver"; return; }
	in_l1 "$suite" "${L1_OPTIONS[@]}" --smp 2 --append "$L1_PARAMETERS $parameters" -- \
		"$VPMU_ROOT/tests/vm/kvm-arch-l1.sh" "$module" "$driver" "$suite" "$@"
	unset TURNS
}

if [ -z "${SOAK:-}" ]; then
	# shellcheck disable=SC2086 # words are meant
	round bookworm panic_on_warn=1 3000 ${CASES:-vmm tool guest foreign lost told fuzz}
	exit 0
fi
all='vmm tool guest own foreign lost told two storm fuzz'
strict='kfence.sample_interval=1 slub_debug=FZPU panic_on_warn=1'
for suite in bookworm bookworm-backports; do
	# shellcheck disable=SC2086 # words are meant
	round "$suite" "$strict" 100000 ${CASES:-$all}
done
exit 0
