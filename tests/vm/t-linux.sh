#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 2400
#
# KVM with the Linux series of linux/: L1 is Debian's kernel with the modules that linux/build
# makes, on kvm_amd and on kvm_intel, and the series' own selftest is its VMM. With UPSTREAM=1, as
# make check-upstream has it: the modules take minutes to build.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/nested.sh"
if [ -z "${UPSTREAM:-}" ]; then
	echo "skip linux: the series' modules are built by make check-upstream"
	exit 0
fi
work=$(mktemp -d "$TMPDIR/linux.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
build_contention contention
if ! "$VPMU_ROOT/linux/build" --modules modules 2>log; then
	tail -n 5 log
	echo "not ok linux: $(tail -n 1 log)"
	exit 1
fi
for cpu in EPYC-Milan SapphireRapids; do
	l1_cpu=$cpu in_l1 "$cpu" --kernel "${VPMU_LINUX_SUITE:-trixie-backports}" --smp 2 -- \
		"$VPMU_ROOT/tests/vm/linux-l1.sh" "$work/contention" "$work/modules"
done
exit 0
