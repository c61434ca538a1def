#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# In an L1, sourced by nested-l1.sh: vpmu_kvm.ko and guests that use it.
#
#   kvm-l1.sh KVM GUEST SUITE CASE...
#
# KVM and GUEST are the modules of host and guest for SUITE's kernel, FAULTY is KVM with
# calls that can be made to fail; SEED and TURNS are
# the hostile guest's, PERF-CASES those of tests/guest/paravirtual. A vCPU does
# not retire the hypercall that it leaves by: counts of the kernel are one less than TCG's.
kvm=$1 guest=$2 suite=$3 seed=$4 turns=$5 perf_cases=$6
shift 6
# By VMMCALL on SVM and VMCALL on VMX: KVM would write the right one into the program.
maker=AMD hostile=hostile-amd
# shellcheck disable=SC2154 # nested-l1.sh's
[ "$vendor" = amd ] || maker=Intel hostile=hostile-intel
shares=$VPMU_BUILD/guest/shares
vms=/sys/kernel/debug/vpmu_kvm/vms
tracing=/sys/kernel/tracing
bare=("$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config
	-display none -machine pc -bios qboot.rom -m 64 -accel kvm -cpu host -smp 2
	-device 'isa-debug-exit,iobase=0xf4,iosize=4')
nothing='vms 0 of 256, counters 0 of 4096, events refused 0total calls 0 services 0 overflows 0 nmis 0'
nothing+=' lost 0 filtered 0 uncounted 0 throttles 0 rdmsr 0 wrmsr 0 rdpmc 0'
read -r _ shares_exact _ < <("$VPMU_BUILD/guest/count" -x "$shares")

said() { dmesg | sed -n 's/.*vpmu_kvm: //p' | tail -n 1; }

loaded() { grep -q '^vpmu_kvm ' /proc/modules; }
load() { loaded || insmod "$kvm"; }
n_vms() { awk '$1 == "vms" { print $2 }' $vms; }
gone() { [ "$(n_vms)" = 0 ] && grep -q ' counters 0 of' $vms; }
pv() { # NAME OPTION... -- COMMAND
	local name=$1
	shift
	l2 "$name" --pmu pv --root --kernel "$suite" --memory 256M "$@"
}

t_load() {
	local why=''
	[ ! -e /dev/kvm ] || load || why=$(said)
	[[ $(said) == "guests have a PMU ($maker "* ]] || why=${why:-$(said)}
	case_of load "$why"
	case_of load/statistics "$([ "$(tr -d '\n' <$vms)" = "$nothing" ] || shown $vms)"
}

# traced NAME PATTERN: all of that tracepoint's lines are like that, and there are some.
traced() {
	awk -v name=" vpmu_kvm_$1: " -v form="$2" '
		(i = index($0, name)) { n++; what = substr($0, i + length(name))
			if (what !~ ("^" form "$")) wrong = what }
		END { if (!n || wrong) printf "%d of %s%s; ", n, name, wrong }' trace
}

# shellcheck disable=SC2086 # words are meant
t_perf() {
	local of='vm [1-9][0-9]* vcpu [01]'
	load
	echo 8192 >$tracing/buffer_size_kb
	echo 1 >$tracing/events/vpmu_kvm/enable
	pv perf --smp 2 -- "$VPMU_ROOT/tests/guest/paravirtual" "$VPMU_BUILD/guest" "$guest" 2 \
		$perf_cases
	wait_for 60 gone
	case_of 'perf/nothing is left' "$(gone || head -n 3 $vms)"
	echo 0 >$tracing/events/vpmu_kvm/enable
	cat $tracing/trace >trace
	case_of perf/trace "$(traced attach "$of"; traced detach "$of"
		[[ " $perf_cases " != *' sampling '* ]] || { traced nmi "$of"; traced overflow "$of slot [0-9]+"; }
		traced call "$of op [0-9]+ at 0x[0-9a-f]+ result -?[0-9]+")"
	echo >$tracing/trace
}

# moved NAME LINE MOVES MIN: tests/bare/moved.c, from one QEMU to another one. Its second vCPU
# never runs, and goes along.
moved() {
	local name=$1 line=$2 moves=$3 min=$4 status=0
	rm -f moved.out
	timeout -k 5 300 python3 "$VPMU_ROOT/tests/vm/migrate.py" "$moves" --module "${bare[@]}" \
		-kernel "$VPMU_BUILD/bare/moved" -append "bell=0 $line" >moved.out 2>&1 || status=$?
	grep -aE '^(ok|not ok) ' moved.out | sed -E "s#^(ok|not ok) #\1 $name/#"
	case_of "$name" "$([ $status = 67 ] && [ "$(sed -n 's/^moved //p' moved.out)" -ge "$min" ] ||
		echo "status $status: $(tail -n 1 moved.out | tr -d '\0')")"
	wait_for 60 gone
	case_of "$name/nothing is left" "$(gone || head -n 3 $vms)"
}

t_moved() {
	load
	moved moved turns=300000000 4 4
	COUNTERS=1 moved lost 'turns=300000000 lost=2' 1 1
}

# At perf's least limits of sampling, which some distributions set and perf comes to by itself
# on a slow host.
t_rates() {
	load
	for rate in 1 250; do
		limits 25 $rate
		moved "rate $rate" turns=300000000 1 1
	done
	rate=${RATE:-100000}
	limits 25 "$rate"
}

# More vCPUs than lockdep keeps locks of one task (48), all of which a save holds.
t_vcpus() {
	local more=("${bare[@]}" -smp 50) bare
	bare=("${more[@]}")
	load
	moved '50 vCPUs' turns=300000000 1 1
}

# state [--faults]: what the module refuses to save and to load, or cannot.
state() {
	local status=0
	rm -f state.out
	timeout -k 5 600 python3 "$VPMU_ROOT/tests/vm/kvm_state.py" "$seed" "$@" "${bare[@]}" \
		-kernel "$VPMU_BUILD/bare/moved" -append 'bell=0 turns=300000000' >state.out 2>&1 || status=$?
	grep -aE '^(ok|not ok) ' state.out | sed -E 's,^(ok|not ok) ,\1 state/,'
	case_of state "$([ $status = 67 ] || echo "status $status: $(tail -n 1 state.out | tr -d '\0')")"
	wait_for 60 gone
	case_of 'state/nothing is left' "$(gone || head -n 3 $vms)"
}

t_state() {
	local why=''
	load
	state
	for words in 'version of the format, 2 of 1' 'not known here, section, 77 of 0'; do
		grep -q "state of its guest's PMU is not loaded .*: .*$words" <(dmesg) ||
			why="no '$words' in the log"
	done
	case_of state/log "$why"
}

# With a module that was built for it, of which calls fail.
t_faults() {
	local status=0 kvm=$FAULTY
	t_unload >/dev/null
	refuse 'with a fault' "this host's perf cannot count instructions of guests (-28)" fail_nth=1
	load
	timeout -k 5 600 python3 "$VPMU_ROOT/tests/vm/kvm_faults.py" "${bare[@]}" \
		-kernel "$VPMU_BUILD/bare/faults" >faults.out 2>&1 || status=$?
	grep -aE '^(ok|not ok|#) ' faults.out | sed -E 's,^(ok|not ok) ,\1 faults/,'
	case_of faults "$([ $status = 0 ] || echo "status $status: $(tail -n 1 faults.out)")"
	wait_for 60 gone
	case_of 'faults/nothing is left' "$(gone || head -n 3 $vms)"
	state --faults
	# On the vCPU's thread, after a move: its clock, then event 2, then event 1.
	FAIL_NTH=1 moved 'no clock' 'turns=300000000 lost=3' 1 1
	FAIL_NTH=2 moved 'no event 2' 'turns=300000000 lost=2' 1 1
	FAIL_NTH=3 moved 'no event 1' 'turns=300000000 lost=1' 1 1
}

# Each counts the same again and again while the other one does, and would lose what it
# has open by the other's RESET.
# shellcheck disable=SC2016 # L2's
t_two() {
	local one='for i in 1 2 3 4 5 6 7 8; do
		perf stat -x, -e instructions:u -o o "$1" 1 1 1 1 1 1 1 1 1 1
		n=$(sed -n "s/,.*instructions.*//p" o); [ "$n" = "$2" ] || echo "not ok turn $i: $n"
	done; echo "ok 8 turns"'
	local n=$((11 * (shares_exact - 5) + 5)) most=0 now
	load
	mkdir two-1 two-2
	(cd two-1 && pv 'two/1' -- sh -c "$one" sh "$shares" $n) >two-1.out 2>&1 &
	(cd two-2 && pv 'two/2' -- sh -c "$one" sh "$shares" $n) >two-2.out 2>&1 &
	while [ -n "$(jobs -rp)" ]; do
		now=$(n_vms)
		[ "${now:-0}" -le "$most" ] || most=$now
		sleep 0.2
	done
	wait
	cat two-1.out two-2.out
	case_of 'two/at once' "$([ "$most" = 2 ] || echo "there were $most VMs")"
	wait_for 60 gone
	case_of 'two/nothing is left' "$(gone || head -n 3 $vms)"
}

# statistics: debugfs' numbers of one VM: calls, overflows, NMIs.
statistics() {
	awk '$1 == "vcpu" { calls += $4; overflows += $8; nmis += $10 }
		END { print calls, overflows, nmis }' "$1"
}

# The tracepoints' own counts are what debugfs has.
t_hostile() {
	local status=0 points=vpmu_kvm:vpmu_kvm_ limit=$((300 + turns / 20)) perf qemu
	load
	rm -f hostile.*
	mkfifo hostile.in
	exec 7<>hostile.in
	perf stat -a -x, -o hostile.csv -e "${points}call,${points}overflow,${points}nmi" \
		sh -c 'touch hostile.counts; until [ -e hostile.end ]; do sleep 0.1; done' &
	perf=$!
	wait_for 60 [ -e hostile.counts ]
	timeout -k 5 $limit "${bare[@]}" -serial stdio -kernel "$VPMU_BUILD/bare/$hostile" -append "seed=$seed turns=$turns known=1002" \
		<&7 >hostile.out 2>&1 &
	qemu=$!
	until grep -qa '^done' hostile.out || ! kill -0 $qemu 2>/dev/null; do sleep 0.1; done
	cat $vms >hostile.vms
	touch hostile.end
	wait $perf
	echo >&7
	wait $qemu || status=$?
	exec 7>&-
	grep -aE '^(ok|not ok) ' hostile.out
	# In a few hundred turns chance may leave none: 0 to 61 were seen in 300, 445 in 3000.
	if [ "$turns" -ge 3000 ] && grep -qa '; 0 NMIs' hostile.out; then
		echo 'not ok hostile: it took no NMI'
	fi
	[ $status = 67 ] || echo "not ok hostile: QEMU's status is $status: $(tail -n 2 hostile.out | tr -d '\0')"
	case_of 'hostile/statistics' "$([ "$(statistics hostile.vms)" = "$(grep -o '^[0-9]*' hostile.csv | xargs)" ] ||
		echo "$(statistics hostile.vms), of tracepoints $(grep -o '^[0-9]*' hostile.csv | xargs)")"
	wait_for 60 gone
	case_of 'hostile/nothing is left' "$(gone || head -n 3 $vms)"
}

# shellcheck disable=SC2016 # L2's
# The module is unloaded and loaded while a guest samples. That guest's driver has to live
# with it, and counts exactly after it has been loaded again.
t_leave() {
	local why='' l2
	load
	rm -f leave-*
	(pv leave -- sh -c '
		perf record -q -a -e cycles -c 100003 -o /tmp/data sleep 1000 2>/dev/null &
		perf=$!
		perf stat -x, -e instructions:u -o o1 "$1" $(seq 1 30000) &
		stat=$!
		until [ -e leave-now ] || ! touch leave-ready; do sleep 0.1; done
		until [ -e leave-gone ]; do sleep 0.1; done
		perf stat -x, -e instructions:u "$1" 2>leave-said
		kill -INT $perf; kill $stat; wait $perf; wait $stat
		echo "ok guest lives on"
		touch leave-done
		until [ -e leave-back ]; do sleep 0.1; done
		rmmod vpmu_guest && insmod "$2" || echo "not ok driver again"
		perf stat -x, -e instructions:u -o o "$1"
		n=$(sed -n "s/,.*instructions.*//p" o)
		[ "$n" = "$3" ] && echo "ok exact again" || echo "not ok exact again: $n"
	' sh "$shares" "$guest" "$shares_exact") >leave.out 2>&1 &
	l2=$!
	if ! wait_for 300 [ -e leave-ready ]; then
		echo "not ok leave: L2 did not begin"
	else
		touch leave-now
		wait_for 100 grep -qE 'vcpu .* overflows [1-9]' $vms || why="nothing samples: $(head -n 3 $vms)"
		rmmod vpmu_kvm || why='rmmod fails'
		case_of 'leave/rmmod while it samples' "$why"
		touch leave-gone
		wait_for 300 [ -e leave-done ]
		load
		touch leave-back
	fi
	wait $l2
	cat leave.out
	case_of 'leave/perf says so' "$(grep -qE '<not (counted|supported)>' leave-said || shown leave-said)"
	wait_for 60 gone
	case_of 'leave/nothing is left' "$(gone || head -n 3 $vms)"
}

t_unload() {
	local why=''
	! loaded || rmmod vpmu_kvm || why='rmmod fails'
	! loaded || why='it is still there'
	case_of unload "$why"
}

# refuse NAME WORDS OPTION...: it does not load, and says why.
refuse() {
	local name=$1 words=$2 status=0
	shift 2
	insmod "$kvm" "$@" 2>refused || status=$?
	if [ $status = 0 ]; then
		rmmod vpmu_kvm
		echo "not ok refused/$name: it loads"
	else
		case_of "refused/$name" "$(dmesg | tail -n 3 | grep -qF "$words" || said)"
	fi
}

t_refused() {
	t_unload >/dev/null
	refuse slots 'n_slots is 64, and can be at most 63' slots=64
	refuse events 'n_events is 8193, and can be at most 8192' events=8193
	sysctl -qw kernel.ftrace_enabled=0
	refuse ftrace 'or ftrace is off (sysctl kernel.ftrace_enabled)'
	sysctl -qw kernel.ftrace_enabled=1
	# Another one that redirects the same functions: the module by another name.
	sed s/vpmu_kvm/vpmu_kv2/g "$kvm" >other.ko
	insmod other.ko || echo 'not ok refused/other: the copy does not load'
	refuse other 'something else has redirected it'
	rmmod vpmu_kv2
}

t_locked() {
	insmod "$kvm" 2>/dev/null && echo 'not ok locked: it loads'
	case_of locked "$(dmesg | grep -q 'unsigned module loading is restricted' || said)"
}

t_no_pmu() {
	refuse PMU "this host's perf cannot count instructions of guests (-2)"
}

# L1's KVM has a vPMU; a guest with --pmu pv has ours alone, as perf's PMU "cpu".
# shellcheck disable=SC2016 # L2's
t_alone() {
	load
	pv alone -- sh -c '
		perf stat -x, -e instructions:u -o o "$1"
		n=$(sed -n "s/,.*instructions.*//p" o)
		[ "$n" = "$2" ] && echo "ok exact" || echo "not ok exact: $n, not $2"
		found=$(dmesg | grep -E "(AMD|Intel) PMU driver"; ls -d /sys/bus/event_source/devices/vpmu 2>/dev/null)
		[ -z "$found" ] && echo "ok one PMU" || echo "not ok one PMU: $found"
	' sh "$shares" "$shares_exact"
	wait_for 60 gone
}

metric() { sed -n "s/^vpmu_kvm_$1 //p" vpmu.prom; }

# The host takes all counters, so that a guest's event is lost; one that overflows more often
# than once in a slice is throttled. What the VM has done stays in the totals when it has ended.
# shellcheck disable=SC2016 # L2's
t_metrics() {
	local qemu total taken vpmu=$VPMU_BUILD/vpmu
	taken=$(printf ',branches:uHD%.0s' 1 2 3 4 5 6)
	t_unload >/dev/null
	"$vpmu" kvm metrics -o vpmu.prom 2>said
	case_of 'metrics/no module' "$([ $? = 77 ] && [ "$(metric up)" = 0 ] && grep -q insmod said || shown said vpmu.prom)"
	insmod "$kvm" rate=100
	rm -f metrics-*
	pv metrics -- sh -c '
		perf record -q -e instructions:u -c 1000 -o /tmp/data "$1" $(seq 1 200)
		perf stat -a -e branches:u sh -c "touch metrics-counts; until [ -e metrics-done ]; do sleep 0.1; done"
		' sh "$shares" >metrics.out 2>&1 &
	wait_for 300 [ -e metrics-counts ]
	perf stat -a -e "${taken:1}" sh -c 'until [ -e metrics-done ]; do sleep 0.1; done' 2>/dev/null &
	wait_for 60 grep -qE 'event .* lost ' $vms
	qemu=$(awk '$1 == "vm" { print $2 }' $vms)
	"$vpmu" kvm metrics -o vpmu.prom
	touch metrics-done
	case_of metrics/gauges "$([ "$(metric up) $(metric vms) $(metric counters_limit)" = '1 1 4096' ] &&
		[ "$(metric "vm_vcpus{pid=\"$qemu\",pmu=\"paravirtual\"}")" = 1 ] &&
		[ "$(metric events_lost)" -ge 1 ] && [ "$(tail -n 1 vpmu.prom)" = '# EOF' ] || shown vpmu.prom $vms)"
	case_of metrics/counters "$([ "$(metric hypercalls_total)" -ge 1 ] && [ "$(metric throttles_total)" -ge 1 ] &&
		[ "$(metric 'losses_total{reason="lost"}')" -ge 1 ] &&
		[ "$(metric hypercalls_total)" = "$(metric "vm_hypercalls_total{pid=\"$qemu\",pmu=\"paravirtual\"}")" ] ||
		cat vpmu.prom)"
	total=$(metric hypercalls_total)
	wait
	cat metrics.out
	wait_for 60 gone
	"$vpmu" kvm metrics -o vpmu.prom
	case_of 'metrics/of VMs that have ended' "$([ "$(metric vms)" = 0 ] && ! grep -q pid= vpmu.prom &&
		[ "$(metric hypercalls_total)" -ge "$total" ] && [ "$(metric throttles_total)" -ge 1 ] || shown vpmu.prom)"
}

# The host has more flexible events on each CPU than there are counters, so that a guest's
# flexible event gets none; with pin=1 it goes before them.
# shellcheck disable=SC2016 # L2's
t_pin() {
	local busy
	busy=$(printf ',branches:u%.0s' 1 2 3 4 5 6 7 8)
	t_unload >/dev/null
	insmod "$kvm" pin=1
	rm -f pin-*
	perf stat -a -o pin-host -x, -e "${busy:1}" sh -c 'touch pin-busy; until [ -e pin-done ]; do sleep 0.1; done' &
	wait_for 60 [ -e pin-busy ]
	pv pin -- sh -c 'perf stat -x, -e instructions:u -o pin-1 "$1"; echo 0 >pin-off
		until [ -e pin-is-off ]; do sleep 0.1; done
		perf stat -x, -e instructions:u -o pin-0 "$1"' sh "$shares" &
	wait_for 300 [ -e pin-off ]
	echo 0 >/sys/module/vpmu_kvm/parameters/pin
	touch pin-is-off
	wait $!
	touch pin-done
	wait
	case_of 'pin/exact beside as many events as there are counters' \
		"$(grep -q "^$shares_exact,.*,100.00," pin-1 || shown pin-1)"
	case_of 'pin/without it' "$(grep -q '^<not counted>' pin-0 || shown pin-0)"
	case_of "pin/the host's events had the rest" "$(awk -F, '/^[0-9<]/ { n++; if ($5 == "100.00") all++ }
		END { exit !(n == 8 && all < 8) }' pin-host || shown pin-host)"
}

t_error() {
	"$VPMU_ROOT/tests/vm/kvm-error.sh" "$suite"
}

for t; do t_"$t"; done
