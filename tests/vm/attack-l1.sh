#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# In an L1, sourced by nested-l1.sh: vpmu_kvm.ko and VMMs that are hostile to it.
#
#   attack-l1.sh KVM SEED SECONDS
kvm=$1 seed=$2 seconds=$3
programs=$VPMU_BUILD/vmm
vms=/sys/kernel/debug/vpmu_kvm/vms

nothing_left() { # NAME
	local i
	for ((i = 0; i < 100; i++)); do
		if grep -q '^vms 0 .* counters 0 of' $vms; then
			echo "ok $1"
			return
		fi
		sleep 0.1
	done
	echo "not ok $1: $(head -n 1 $vms)"
}

insmod "$kvm" || echo "not ok load: $(dmesg | tail -n 1)"
"$programs/attack" || echo "not ok attack: status $?"
nothing_left 'nothing is left'
rmmod vpmu_kvm || echo 'not ok unload'
insmod "$kvm" rate=1000 || echo "not ok load with rate=1000: $(dmesg | tail -n 1)"
"$programs/attack" slice || echo "not ok attack slice: status $?"
nothing_left 'nothing is left of slice'
rmmod vpmu_kvm || echo 'not ok unload'
dmesg >attacks.log
clean 'log of attacks' attacks.log

# The first warning ends it.
echo 1 >/sys/kernel/debug/clear_warn_once
echo 1 >/proc/sys/kernel/panic_on_warn
insmod "$kvm" || echo "not ok load: $(dmesg | tail -n 1)"
"$programs/chaos" "$seed" "$seconds" | sed -E 's,^(ok|not ok) ,\1 chaos/,'
rmmod vpmu_kvm || echo 'not ok chaos/unload'
