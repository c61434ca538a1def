#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The paravirtual PMU on this machine's own KVM, by examples/kvm-doorbell: MSR exits,
# an event of the host, overflows, NMIs in the guest.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
program=${VPMU_BUILD:-$PWD/build}/examples/kvm-doorbell

if [ ! -x "$program" ]; then
	echo "skip kvm: machine is $(uname -m), needed x86_64"
	exit 0
fi
for how in '' --clock; do
	name="kvm ${how:-as found}" status=0
	# shellcheck disable=SC2086 # none, or one
	out=$(timeout 20 "$program" $how 2>&1) || status=$?
	if [ $status = 77 ]; then
		echo "skip $name: ${out##*$'\n'}"
		continue
	fi
	grep -q '^CPUID: features 9, hypercall 0$' <<<"$out" &&
		grep -q '^doorbell: 0 2 2, open 0, enable 0, close 0$' <<<"$out" &&
		grep -q '^exits: 3 for the doorbell, ' <<<"$out" || status="$status, it said otherwise"
	# The 4th may come before the doorbell is rung that ends it.
	read -r nmis overflows bitmap count enabled running < <(sed -nE \
		's/^NMIs ([0-9]+), overflows ([0-9]+), bitmap ([0-9]+), count ([0-9]+), enabled ([0-9]+), running ([0-9]+) ns$/\1 \2 \3 \4 \5 \6/p' <<<"$out")
	if [ "$status" = 0 ] && [ "$nmis" -ge 3 ] && [ "$overflows" -ge "$nmis" ] && [ "$bitmap" = 1 ] &&
		[ "$count" -ge 6000000 ] && [ "$enabled" -gt 0 ] && [ "$running" -le "$enabled" ]; then
		echo "ok $name"
	else
		echo "not ok $name: status $status: $(tr '\n' '|' <<<"$out")"
	fi
done
