#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 5400
#
# Linux with the series of linux/: as L1, on kvm_amd and on kvm_intel, whose KVM runs the series'
# own selftest; and as L2, whose perf says what was lost, beside a Debian kernel of the same
# release. With UPSTREAM=1, as make check-upstream has it: that kernel takes half an hour to build.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/nested.sh"
if [ -z "${UPSTREAM:-}" ]; then
	echo "skip linux: make check-upstream builds a kernel with the series"
	exit 0
fi
work=$(mktemp -d "$TMPDIR/linux.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
build_contention contention
if ! series=${SERIES_KERNEL:-$("$VPMU_ROOT/tests/kernel/build" 7.3 series 2>log)}; then
	tail -n 5 log
	echo "not ok linux: $(tail -n 1 log)"
	exit 1
fi
for cpu in EPYC-Milan SapphireRapids; do
	l1_kernel trixie-backports
	l1_cpu=$cpu in_l1 "$cpu/stock" "${L1_OPTIONS[@]}" --smp 2 -- \
		"$VPMU_ROOT/tests/vm/linux-l1.sh" "$work/contention"
	DEBUG_KERNEL=$series l1_kernel trixie-backports
	l1_cpu=$cpu in_l1 "$cpu/series" "${L1_OPTIONS[@]}" --smp 2 -- \
		"$VPMU_ROOT/tests/vm/linux-l1.sh" "$work/contention" "$series"
done
exit 0
