#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# In an L1, sourced by nested-l1.sh: kvm_contention on its KVM, then on KVM with the series.
#
#   linux-l1.sh CONTENTION MODULES
maker=intel
! grep -q AuthenticAMD /proc/cpuinfo || maker=amd

# cases PROGRAM NAME: its cases, and all that it wrote if one fails
cases() {
	local status=0
	"$1" >"$2.tap" || status=$?
	sed -nE "/ # SKIP /d; s,^(ok|not ok) [0-9]+ ([^ ]+)( #.*)?,\1 $2/\2,p" "$2.tap"
	if [ $status != 0 ]; then
		echo "not ok $2: kvm_contention's status is $status"
		sed 's/^/# /' "$2.tap"
	fi
}

cases "$1" stock
absent=$(grep -c '^ok .* told.* # SKIP .*KVM_FEATURE_PMU_LOST$' stock.tap)
if [ "$absent" = 3 ]; then
	echo 'ok stock/says what is absent'
else
	echo "not ok stock/says what is absent: $absent of 3 cases do"
fi
rmmod kvm_$maker kvm
if insmod "$2/kvm.ko" && insmod "$2/kvm-$maker.ko"; then
	cases "$1" series
	if grep -q SKIP series.tap || ! grep -q '^ok .* told' series.tap; then
		echo "not ok series/tells: $(grep -m 1 told series.tap)"
	else
		echo 'ok series/tells'
	fi
else
	echo "not ok series: KVM's modules cannot be loaded: $(dmesg | tail -n 1)"
fi
