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
build_programs
if ! kernel=${SERIES_KERNEL:-$("$VPMU_ROOT/tests/kernel/build" 7.3 series 2>log)}; then
	tail -n 5 log
	echo "not ok linux: $(tail -n 1 log)"
	exit 1
fi
# throttled CPU OPTION...: nothing, or why the samples of two counters of the same event, in a group
# that is throttled, differ by more than one each time, or what the kernel has to say.
throttled() {
	local cpu=$1
	shift
	# shellcheck disable=SC2016 # the guest's
	"$VPMU_BUILD/vpmu" run --root --cpu "$cpu" "$@" -- sh -c 'echo 25 >/proc/sys/kernel/perf_cpu_time_max_percent
		echo 10000 >/proc/sys/kernel/perf_event_max_sample_rate
		perf record -q -c 1009 -e "{instructions:u,branches:u,instructions:u}" -o throttled "$1"
		perf report --stats -i throttled; dmesg | grep WARNING:' sh "$VPMU_BUILD/examples/demo" >throttled.out 2>&1
	awk '/ THROTTLE events:/ { n = $3 } /^[a-z]+:u stats:/ { which++ } which && /SAMPLE events:/ { samples[which] = $3 }
		/WARNING:/ { print } END { d = samples[1] - samples[3]; if (!n || which != 3 || d > n || d < -n)
			print samples[1] ", " samples[2] " and " samples[3] " samples, throttled " n " times" }' throttled.out
}

# Debian's kernel of the series' release shows that there is something to mend.
for cpu in SapphireRapids EPYC-Genoa; do
	case_of "$cpu/throttled" "$(throttled $cpu --kernel "$kernel/vmlinux" --modules "$kernel/modules")"
	case_of "$cpu/throttled without the series" "$([ -n "$(throttled $cpu --kernel trixie-backports)" ] ||
		echo 'nothing is wrong there')"
done
# Icelake-Server has branch records that KVM can give to guests.
for cpu in EPYC-Milan SapphireRapids Icelake-Server; do
	l1_kernel trixie-backports
	l1_cpu=$cpu in_l1 "$cpu/stock" "${L1_OPTIONS[@]}" --smp 2 -- \
		"$VPMU_ROOT/tests/vm/linux-l1.sh" "$work/contention"
	DEBUG_KERNEL=$kernel l1_kernel trixie-backports
	l1_cpu=$cpu in_l1 "$cpu/series" "${L1_OPTIONS[@]}" --smp 2 -- \
		"$VPMU_ROOT/tests/vm/linux-l1.sh" "$work/contention" "$kernel"
done
exit 0
