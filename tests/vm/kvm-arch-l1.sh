#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# In an L1, sourced by nested-l1.sh: the architectural PMU of vpmu_kvm.ko.
#
#   kvm-arch-l1.sh MODULE DRIVER SUITE CASE...
module=$1 driver=$2 suite=$3
shift 3
programs=$VPMU_BUILD/guest
vms=/sys/kernel/debug/vpmu_kvm/vms
demo=$VPMU_BUILD/examples/demo
# The PMU that guests find, the number of counters, and events by which the host takes them, so that
# two guest events at most are left a general counter; fixed ones do not count mine.
case $(grep -m 1 vendor_id /proc/cpuinfo) in
*AuthenticAMD) maker=AMD kvm=kvm_amd version=2 counters=6 general=6 took=4 mine=r00c0,r00c2,r0076,r00c3,r00c4 ;;
*) maker=Intel kvm=kvm_intel version=5 counters=11 general=8 took=7 mine=r00c4,r01c4,r02c4,r08c4,r10c4 ;;
esac
taken=$(printf ',branches:uHD%.0s' $(seq $took))
taken=${taken#,}

load() { # PARAMETER...
	! grep -q '^vpmu_kvm ' /proc/modules || unload
	insmod "$module" "$@" || echo "not ok load: $(dmesg | tail -n 1)"
}

# A VM holds the module until its memory is free.
unload() { wait_for 60 rmmod vpmu_kvm 2>/dev/null || echo 'not ok unload: it is in use'; }

gone() { grep -q '^vms 0 .* counters 0 of' $vms; }
nothing_left() { # NAME
	wait_for 60 gone
	case_of "$1/nothing is left" "$(gone || head -n 3 $vms)"
}

arch() { # NAME OPTION... -- COMMAND
	local name=$1
	shift
	l2 "$name" --pmu arch --root --kernel "$suite" --memory 256M "$@"
}

t_vmm() {
	load
	"$VPMU_BUILD/vmm/arch" | sed -E 's,^(ok|not ok) ,\1 vmm/,'
	nothing_left vmm
	load arch=1
	"$VPMU_BUILD/vmm/arch" arch=1 exact | sed -E 's,^(ok|not ok) ,\1 vmm/,'
	nothing_left 'vmm/arch=1'
	unload
	echo 'ok vmm/unload'
}

address() { nm "$programs/sample" | sed -n "s/^0*\([0-9a-f]*\) . $1$/\1/p"; }

# stock NAME VERSION LATE OPTION...: a stock guest, whose driver finds that version, and in which all
# programs count exactly and samples have no skid, but for LATE (0 or 1) that is one event late.
stock() {
	local name=$1 list=() source
	for source in "$VPMU_ROOT"/tests/guest/*.S; do
		list+=("$programs/$(basename "$source" .S)")
	done
	cat >guest.sh <<-'END'
	programs=$1 instruction=$2 branch=$3 demo=$4 maker=$5 version=$6 late=$7
	shift 7
	dmesg | grep -q "$maker PMU driver" && dmesg | grep -q "[.] version: *$version$" &&
		echo 'ok driver' || echo "not ok driver: $(dmesg | grep -A 3 'Performance Events')"
	"$programs/count" "$@"
	"$programs/rdpmc" >out 2>&1 && echo 'ok rdpmc' || echo "not ok rdpmc: $(tail -n 1 out)"
	# L1's perf starts no counter with 1 left, but with 2: when L1 takes the vCPU's thread off
	# its CPU just there, the sample is that of the next event, at NEXT. It is LATE at most.
	sample() { # NAME EVENT PERIOD PROGRAM ADDRESS WANTED NEXT
		chrt -f 1 perf record -q -e "$2:u" -c "$3" -o /tmp/data "$4" >/dev/null 2>&1
		found=$(perf script -i /tmp/data -G -F ip 2>/dev/null | sort | uniq -c | xargs)
		case $found in
		"$6 $5") echo "ok samples of $1" ;;
		"$(($6 - late)) $5 $late $7" | "$late $7 $(($6 - late)) $5") echo "ok samples of $1: one at the next event" ;;
		*) echo "not ok samples of $1: $found" ;;
		esac
	}
	sample instructions instructions 10000 "$programs/sample" "$instruction" 300 "$branch"
	sample branches branches 10000 "$programs/sample" "$branch" 120 "$(printf %x $((0x$branch + 4)))"
	for turn in 1 2 3; do
		sample "demo, $turn" instructions 41020 "$demo" 40100c 1000 40100e
	done
	found=$(awk '/^ *(NMI|PMI):/ { n = 0; for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i; print n }' /proc/interrupts | uniq | wc -l)
	[ "$found" = 1 ] && echo 'ok an NMI for each PMI' ||
		echo "not ok an NMI for each PMI: $(grep -E '^ *(NMI|PMI):' /proc/interrupts | xargs)"
	END
	lifted arch "$name" "${@:4}" -- sh ./guest.sh "$programs" "$(address instruction)" \
		"$(address branch)" "$demo" $maker "$2" "$3" "${list[@]}"
}

t_guest() {
	local cpus n=$counters
	[ ! -e /sys/bus/event_source/devices/cpu/events/slots ] || n=$((n + 1)) # lent
	load
	for cpus in 2 ${SOAK:+1}; do
		stock "guest-$cpus" $version 1 --smp "$cpus"
		case_of "guest-$cpus/vpmu run says which PMU" \
			"$(grep -q "architectural PMU of vpmu_kvm.ko: version $version, $n counters" \
			"guest-$cpus.l2.err" || head -n 3 "guest-$cpus.l2.err")"
		nothing_left "guest-$cpus"
	done
}

# Debian's QEMU, which knows nothing of the module.
# shellcheck disable=SC2016 # L2's
t_foreign() {
	local qemu
	if ! qemu=$(command -v qemu-system-x86_64); then
		echo 'skip foreign: no qemu-system-x86_64: apt-get install qemu-system-x86'
		return
	fi
	load arch=1
	mv /dev/vpmu_kvm /dev/elsewhere
	VPMU_QEMU=$qemu arch foreign -- sh -c '
		dmesg | grep -q "[.] version: *$2\$" && echo "ok driver" ||
			echo "not ok driver: $(dmesg | grep -A 3 "Performance Events")"
		perf stat -x, -o o -e instructions:u,branches:u "$1"; n=$(grep -c -E "^(41020005|9007001)," o)
		[ "$n" = 2 ] && echo "ok exact" || echo "not ok exact: $(cat o)"' sh "$demo" $version
	mv /dev/elsewhere /dev/vpmu_kvm
	nothing_left foreign
}

# Our QEMU asks by itself: -cpu host,pmu-arch=on.
by_property() {
	timeout -k 5 120 "$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config \
		-display none -serial stdio -machine pc -bios qboot.rom -m 64 -device isa-debug-exit,iobase=0xf4,iosize=4 \
		-kernel "$VPMU_BUILD/bare/fuzz" -append "seed=$SEED turns=10" "$@" </dev/null 2>&1
}
t_property() {
	local said qemu
	load
	fuzzing -S -cpu host,pmu-arch=on,pmu-gp=4
	case_of 'property/a guest has it' "$(wait_for 60 grep -q "^vm $qemu architectural" $vms || shown $vms)"
	said=$("$VPMU_BUILD/vpmu" kvm arch $qemu 2>&1)
	case_of 'property/with four counters' "$([[ $said == *", $((counters - general + 4)) counters"* ]] || echo "$said")"
	kill $qemu
	wait $qemu
	nothing_left property
	said=$(by_property -accel kvm -cpu host,pmu-arch=on,pmu-gp=60)
	case_of 'property/more than there is' "$([[ $said == *'pmu-arch: '*'asked for 60, available '* ]] || echo "$said")"
	said=$(by_property -accel kvm -cpu host,pmu-arch=on,pmu-pv=v2)
	case_of 'property/two PMUs' "$([[ $said == *'pmu-arch and pmu-pv: a guest has one of them'* ]] || echo "$said")"
	said=$(by_property -accel tcg -cpu max,pmu-arch=on)
	case_of 'property/no KVM' "$([[ $said == *'found no KVM, needed -accel kvm'* ]] || echo "$said")"
	unload
	said=$(by_property -accel kvm -cpu host,pmu-arch=on)
	case_of 'property/no module' "$([[ $said == *'pmu-arch: '*/dev/vpmu_kvm*'load that module'* ]] || echo "$said")"
}

# A guest whose VMM has not asked has KVM's own PMU; beside it, one that has.
# shellcheck disable=SC2016 # L2's
t_own() {
	load
	rm -f own-*
	arch own/ours -- sh -c 'touch own-ours; until [ -e own-done ]; do
		perf stat -x, -e instructions:u -o o "$1"; n=$(sed -n "s/,.*instructions.*//p" o)
		[ "$n" = 41020005 ] || echo "not ok exact: $n"; done; echo "ok exact"' sh "$demo" >own.out 2>&1 &
	wait_for 120 [ -e own-ours ]
	case_of 'own/rmmod is refused' "$(! rmmod vpmu_kvm 2>/dev/null || echo 'it is not')"
	mv /dev/vpmu_kvm /dev/elsewhere
	arch own/not -- sh -c '[ -z "$(vpmu lost 2>/dev/null)" ] && echo "ok not asked"
		perf stat -x, -e instructions:u -o o "$1"; n=$(sed -n "s/,.*instructions.*//p" o)
		[ "$n" = 41020005 ] && echo "ok exact" || echo "not ok exact: $n"' sh "$demo"
	mv /dev/elsewhere /dev/vpmu_kvm
	touch own-done
	wait
	cat own.out
	nothing_left own
}

# The host takes most counters while the guest has five events: two at most are left, and it
# is told which of its own do not count. Afterwards they count again, without the guest
# doing anything to them.
# shellcheck disable=SC2016 # L2's
t_lost() {
	load
	rm -f lost-*
	arch lost -- sh -c '
		perf stat -a -e "$2" sh -c "touch lost-ready; until [ -e lost-told ]; do
			$1/vpmu lost >lost-now 2>&1; [ ! -e lost-taken ] || [ -e lost-seen ] || cp lost-now lost-seen; sleep 0.2; done
			for i in 1 2 3 4 5 6 7 8 9; do $1/vpmu lost -o lost-after -- sleep 1; grep -q lost lost-after || break; done" 2>/dev/null
		perf stat -x, -e instructions:u -o o "$1/examples/demo"; n=$(sed -n "s/,.*instructions.*//p" o)
		[ "$n" = 41020005 ] && echo "ok exact again" || echo "not ok exact again: $n"
	' sh "$VPMU_BUILD" $mine >lost.out 2>&1 &
	wait_for 120 [ -e lost-ready ]
	perf stat -a -o host.csv -x, -e "$taken" sh -c '
		sleep 1; touch lost-taken; for i in $(seq 100); do [ ! -e lost-seen ] || break; sleep 0.1; done' &
	wait $!
	touch lost-told
	wait
	cat lost.out
	case_of 'lost/told' "$([ "$(grep -c 'pmc.* lost ' lost-seen)" -ge 3 ] && [ "$(grep -c ' trust ' lost-seen)" -le 2 ] ||
		cat lost-seen)"
	case_of 'lost/come back' "$([ "$(grep -c 'pmc.* trust ' lost-after)" = 5 ] || shown lost-after)"
	case_of lost/metrics "$("$VPMU_BUILD/vpmu" kvm metrics | awk '/^vpmu_kvm_losses_total{reason="lost"}/ { lost = $2 }
		/^vpmu_kvm_register_accesses_total{instruction="wrmsr"}/ { written = $2 }
		END { if (lost < 3 || !written) print "lost " lost ", written " written }')"
	case_of "lost/the host's events count" "$([ "$(grep -c ',100.00,' host.csv)" = $took ] || shown host.csv)"
	nothing_left lost
}

# The host takes most counters, and vpmu_guest.ko is in the guest: its own perf prints
# for how much of the time it has counted, or that it has not. Afterwards all count.
# shellcheck disable=SC2016 # L2's
t_told() {
	load
	rm -f told-*
	cat >told.sh <<-'END'
	stat() { perf stat -x, -o "$1" -e "instructions:u,branches:u,$others" "$demo"; }
	demo=$1 others=$3
	insmod "$2" || echo "not ok driver: $(dmesg | tail -n 1)"
	stat told-beside
	touch told-counted
	until [ -e told-gone ]; do sleep 0.1; done
	stat told-alone
	rmmod vpmu_guest || echo 'not ok rmmod'
	END
	{
		perf stat -a -o /dev/null -e "$taken" sh -c \
			'until [ -e told-counted ]; do sleep 0.1; done'
		touch told-gone
	} &
	arch told -- sh ./told.sh "$demo" "$driver" \
		"$(cut -d, -f 3-5 <<<"$mine" | sed 's/,/:u,/g; s/$/:u/')"
	touch told-counted
	wait
	# Two counters at most are left. On a busy machine they do not always count the same two.
	case_of 'told/beside the host' "$(awk -F, '/^[0-9<]/ { n++; sum += $5; if ($5 != "100.00") less++
		if ($1 == "<not counted>" && $5 != "0.00") wrong++ } END {
		exit !(n == 5 && less >= 3 && sum > 0 && sum <= 201 && !wrong) }' told-beside || shown told-beside)"
	case_of 'told/alone' "$([ "$(grep -c ',100.00,' told-alone)" = 5 ] &&
		grep -q '^41020005,' told-alone && grep -q '^9007001,' told-alone || shown told-alone)"
	nothing_left told
}

# Two guests sample; one is killed in the middle, and the other one goes on exactly.
# shellcheck disable=SC2016 # L2's
t_two() {
	load
	rm -f two-*
	arch two -- sh -c 'perf record -q -a -c 200003 -o /tmp/data sleep 1000 2>/dev/null & perf=$!; touch two-1
		until [ -e two-killed ]; do sleep 0.1; done
		for i in 1 2 3; do perf stat -x, -e instructions:u -o o "$1"; n=$(sed -n "s/,.*instructions.*//p" o)
		[ "$n" = 41020005 ] && echo "ok exact $i" || echo "not ok exact $i: $n"; done
		kill -INT $perf; wait' sh "$demo" >two.out 2>&1 &
	wait_for 200 [ -e two-1 ]
	l2_run two-killed.log --pmu arch --kernel "$suite" --memory 256M -- \
		sh -c 'touch two-2; perf record -q -a -c 200003 -o /tmp/data sleep 1000' >killed.out 2>&1 &
	wait_for 200 [ -e two-2 ]
	sleep 2
	kill -9 "$(awk '$1 == "vm" { pid = $2 } END { print pid }' $vms)"
	touch two-killed
	wait
	cat two.out
	nothing_left two
}

# A guest that is a hypervisor itself: its guest counts by its KVM, on the PMU that mine
# serves it, and so does the guest beside it. AMD's has no SVM. Its guest is of 6.1, which boots
# faster than later ones.
# shellcheck disable=SC2016 # L2's
t_deep() {
	[ $maker = Intel ] || return 0
	load
	arch deep --memory 1G -- sh -c '
		grep -q " vmx " /proc/cpuinfo && modprobe kvm_intel && echo "ok a hypervisor" ||
			echo "not ok a hypervisor: $(dmesg | tail -n 1)"
		"$1/vpmu" run --accel kvm --kernel bookworm --memory 256M -- sh -c '\''
			perf stat -x, -e instructions:u,branches:u -o deep-l3 "$1"'\'' sh "$2" 2>deep-err &
		while kill -0 $! 2>/dev/null && ! [ -e deep-l3 ]; do
			perf stat -x, -e instructions:u,branches:u -o deep-l2 "$2"
			n=$(grep -c -E "^(41020005|9007001)," deep-l2)
			[ "$n" = 2 ] || { echo "not ok beside its guest: $(cat deep-l2)"; break; }
			sleep 5 # its guest boots
		done
		wait
		n=$(grep -c -E "^(41020005|9007001)," deep-l3)
		[ "$n" = 2 ] && echo "ok its guest" || echo "not ok its guest: $(tail -n 2 deep-err; cat deep-l3)"
	' sh "$VPMU_BUILD" "$demo"
	nothing_left deep
}

# kvm_contention's cases: on mine as on KVM's own PMU, but that an event which is off is not
# kept, and that a counter comes back as soon as there is room, if "regain" is on.
t_contention() {
	local kept='TP: [0-9]+ active; K: error; reads: 0' back='after_timer: active; after_switch: active'
	others_than_kvm regain=0 kept-older
	case_of 'contention/kept-older' "$(grep -qE "^# $kept$" contention.out || paste -sd' ' contention.out)"
	others_than_kvm regain=1 counter-2 kept-older
	case_of 'contention/counter-2 comes back' "$(grep -q "$back; K: active" contention.out || paste -sd' ' contention.out)"
}
others_than_kvm() { # PARAMETER CASE...
	local found untold=''
	load arch=1 "$1"
	"$programs/kvm_contention" >contention.out
	# With regain it is a matter of time if counter-10 is back already when it is looked at.
	[ "$1" = regain=0 ] || untold='/counter-10$/d; '
	found=$(sed -nE "$untold"'s/^(not ok [0-9]+|Bail out!|1\.\.0) ([^ ]*).*/\2/p' contention.out | paste -sd' ')
	case_of "contention/$1 is otherwise as KVM's" "$([ "$found" = "${*:2}" ] || paste -sd' ' contention.out)"
	nothing_left "contention/$1"
}

# Here an overflow takes milliseconds, and the shortest periods leave none between two ticks of
# the clock. So L2's perf has the kernel's own limits, as it is with other VMMs; vpmu run lifts them.
# The backtraces in L2's log are those that the storm asks for. Since 6.16 an event that is throttled
# stops its group, and the kernel's handler for AMD warns of those that have overflowed with it.
# shellcheck disable=SC2016,SC2154 # L2's; nested-l1.sh's
t_storm() {
	load
	arch storm --smp 2 -- sh -c 'echo 25 >/proc/sys/kernel/perf_cpu_time_max_percent
		echo 100000 >/proc/sys/kernel/perf_event_max_sample_rate
		"$1" 8 4711 || echo "not ok it ended with status $?"
		found=$(dmesg | grep -v " amd_pmu_v2_handle_irq+" | grep -E -m 1 "$2") && echo "not ok no trouble: $found" || echo "ok no trouble"
		dmesg -C; echo "the storm is over" >/dev/kmsg' sh "$programs/storm" "${trouble/|Call Trace/}"
	nothing_left storm
}

# flat FILE: kvm-unit-tests' PMU test on KVM, what fails of it.
flat() {
	timeout -k 5 600 "$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults \
		-no-user-config -display none -serial stdio -accel kvm -cpu host,migratable=off \
		-device pc-testdev -device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$KUT/x86/pmu.flat" \
		</dev/null 2>&1 | tr -d '\r\0' >"$1"
	grep -q '^SUMMARY' "$1" || echo "FAIL: no summary: $(tail -n 1 "$1")"
	grep '^FAIL' "$1" | sed -E 's/0x[0-9a-f]+|[0-9]{3,}/N/g'
}

# Nothing fails with mine that passes with KVM's own.
t_kut() {
	if ! [ -f "${KUT:-}/x86/pmu.flat" ]; then
		echo 'skip kut: no built checkout of kvm-unit-tests given (KUT=DIR)'
		return
	fi
	load
	flat kut-own.out | sort -u >kut-own
	load arch=1
	flat kut-mine.out | sort -u >kut-mine
	echo "# KVM's own: $(grep '^SUMMARY' kut-own.out), mine: $(grep '^SUMMARY' kut-mine.out)"
	case_of 'kut/pmu' "$(comm -13 kut-own kut-mine)"
	case_of 'kut/fewer fail' "$([ ! -s kut-own ] || [ "$(wc -l <kut-mine)" -lt "$(wc -l <kut-own)" ] || shown kut-mine)"
	nothing_left kut
}

# fuzzing OPTION...: leaves in $qemu a QEMU that has a vCPU and will be killed.
fuzzing() {
	"$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config -display none \
		-machine pc -bios qboot.rom -m 64 -accel kvm -cpu host -kernel "$VPMU_BUILD/bare/fuzz" "$@" &
	qemu=$!
	wait_for 60 sh -c "ls -l /proc/$qemu/fd | grep -q kvm-vcpu"
	sleep 1
}

t_tool() {
	local qemu said
	load
	fuzzing -S
	said=$("$VPMU_BUILD/vpmu" kvm arch $qemu 2>&1)
	case_of tool/arch "$([[ $said == *"an architectural PMU: version $version, $counters counters"* ]] || echo "$said")"
	said=$("$VPMU_BUILD/vpmu" kvm refuse $qemu 2>&1)
	case_of 'tool/refuse is late' "$([[ $said == *'has an architectural PMU already'* ]] || echo "$said")"
	kill $qemu
	wait $qemu
	nothing_left tool
}

# objects: what the module's functions have allocated, as "COUNT SIZE" lines. Kernels keep that
# with slub_debug=U; they take seconds for each cache.
objects() {
	local cache
	for cache in /sys/kernel/slab/kmalloc-* /sys/kernel/slab/perf_event; do
		awk -v size="$(<"$cache/object_size")" '/^ *[0-9]/ { n = $1 } /\[vpmu_kvm\]/ { sum += n; n = 0 }
			END { if (sum) print sum, size }' "/sys/kernel/debug/slab/${cache##*/}/alloc_traces"
	done
}
as_at_load() { objects >memory-now; cmp -s memory-at-load memory-now; }
# RCU frees later what loading made for a while: two looks in a row find the same.
settled() { mv memory-now memory-at-load && as_at_load; }

# The last VM to go leaves not a byte behind.
t_memory() {
	local qemu
	if ! grep -q slub_debug=FZPU /proc/cmdline; then
		echo 'skip memory: slub_debug=FZPU is not on'
		return
	fi
	load arch=1
	objects >memory-now
	wait_for 20 settled
	fuzzing -append "turns=1000000000"
	wait_for 60 grep -q '^vm ' $vms
	objects >memory-used
	case_of 'memory/of a VM is seen' "$(! cmp -s memory-at-load memory-used || paste -sd, memory-used)"
	kill $qemu
	wait $qemu
	nothing_left memory
	case_of 'memory/is back' "$(wait_for 20 as_at_load || paste -sd, memory-at-load memory-now)"
}

# From one QEMU to another one, in mid-count.
t_carried() {
	local status=0
	load arch=1
	timeout -k 5 900 python3 "$VPMU_ROOT/tests/vm/migrate.py" "$MOVES" --module \
		"$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config \
		-display none -machine pc -bios qboot.rom -m 64 -accel kvm -cpu host,migratable=off \
		-device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$VPMU_BUILD/bare/carried" \
		-append "turns=300000000 overflows=1000 rounds=$MOVES" >carried.out 2>&1 || status=$?
	grep -aE '^(ok|not ok) ' carried.out | sed -E 's,^(ok|not ok) ,\1 carried/,'
	case_of "carried/$MOVES moves" "$([ $status = 67 ] && [ "$(sed -n 's/^moved //p' carried.out)" = "$MOVES" ] ||
		echo "status $status: $(tail -n 2 carried.out | tr -d '\0')")"
	nothing_left carried
}

# Branch records are KVM's own, of a CPU whose records have a legacy format.
# shellcheck disable=SC2016 # L2's
t_records() {
	load
	arch records --memory 512M -- sh -c '"$0/boot-log"; "$0/brstack" "$1" 32 nested' "$VPMU_ROOT/tests/guest" "$programs/recurse"
	nothing_left records
	records_beside_a_full_host
	unload
	records_contention
}
# A guest that boots while the host has all counters: Linux writes the registers and reads them
# back, and has no branch records until its next boot if they do not hold that.
# shellcheck disable=SC2016,SC2046 # L2's; words are meant
records_beside_a_full_host() {
	local holder
	rm -f records-*
	perf stat -a -o records-held $(printf -- '-e %s:D ' ref-cycles cycles $(yes instructions | head -n 9)) \
		sh -c 'touch records-held-all; exec sleep 900' &
	holder=$!
	wait_for 60 [ -e records-held-all ]
	arch records/full --memory 512M -- sh -c '"$0/boot-log"
		touch records-booted; until [ -e records-free ]; do sleep 0.1; done
		"$0/brstack" "$1" 32 nested' "$VPMU_ROOT/tests/guest" "$programs/recurse" >records-out 2>&1 &
	wait_for 200 [ -e records-booted ]
	pkill -INT -P $holder sleep
	touch records-free
	wait
	cat records-out
	nothing_left records/full
}
# KVM's own rules say who has them; with mine an enable brings V back.
records_contention() {
	local comes='V: error; after_enable: active; after_cleanup: active'
	"$programs/kvm_contention" --json lbr >contention.json
	case_of 'records/contention' "$([ $? = 0 ] || paste -sd' ' contention.json)"
	"$VPMU_BUILD/vpmu" contention --json >library.json
	python3 "$VPMU_ROOT/tests/selftests/same-rows" contention.json library.json \
		"$VPMU_ROOT/tests/selftests/differences-lbr.tsv" |
		sed -E 's#^(ok|not ok) #\1 records/same as vpmu contention/#'
	load arch=1 regain=0
	"$programs/kvm_contention" lbr >contention.out
	case_of 'records/contention with mine' "$([ "$(grep -c '^ok' contention.out)" = 7 ] &&
		grep -q "$comes\$" contention.out && grep -q '^# begins: empty$' contention.out ||
		paste -sd' ' contention.out)"
	nothing_left records/contention
	unload
}

# Records of PEBS are KVM's own to give, to guests that have not asked for the module's PMU, which
# has none and does not say otherwise.
# shellcheck disable=SC2016 # L2's
t_precise() {
	load
	mv /dev/vpmu_kvm /dev/elsewhere
	arch precise/own --cpu host,migratable=off --memory 512M -- "$VPMU_ROOT/tests/guest/precise" --format 40 \
		"$programs/sample" "$programs/precise"
	mv /dev/elsewhere /dev/vpmu_kvm
	arch precise/ours --cpu host,migratable=off -- sh -c 'said=$(perf record -o data -e instructions:up "$1" 2>&1)
		case $said in *"support sampling"*) echo "ok refused" ;; *) echo "not ok refused: $said" ;; esac' sh "$demo"
	nothing_left precise
	unload
}

# Slots and their classes, from groups that the VMM lends, on an L1 with a modelled CPU.
t_lent() {
	load
	case_of lent/slots "$([ -e /sys/bus/event_source/devices/cpu/events/slots ] || echo 'L1 has none')"
	"$VPMU_BUILD/vmm/arch" topdown | sed -E 's,^(ok|not ok) ,\1 lent/,'
	nothing_left lent
	unload
}

# A stock guest does the same. L1's own event of the slots, pinned to the CPUs, takes them from the
# guest, which is told.
# shellcheck disable=SC2016 # L2's
t_topdown() {
	load
	rm -f topdown-*
	cat >topdown.sh <<-'GUEST'
	demo=$1 vpmu=$2
	# Perf saves the classes in 255ths at each switch of tasks, of which there are few in real time.
	chrt -f 1 perf stat -x, -o own -e '{slots:u,topdown-retiring:u}' "$demo"
	awk -F, '/slots/ { all = $1 } /retiring/ { n = $1 }
		END { far = n > 41020005 ? n - 41020005 : 41020005 - n; right = all && far <= 4 * all / 255
			print right ? "ok demo" : "not ok demo: " n " of " all }' own
	for options in --topdown '-M TopdownL1,TopdownL2'; do
		if perf stat -a $options sleep 1 2>all && ! grep '<not' all; then
			echo "ok perf stat $options"
		else
			echo "not ok perf stat $options: $(grep -m 1 '<not' all)"
		fi
	done
	perf stat -a -e slots sh -c 'touch topdown-ready; until [ -e topdown-told ]; do
		"$0" lost >topdown-now 2>&1; [ ! -e topdown-taken ] || [ -e topdown-seen ] || cp topdown-now topdown-seen
		sleep 0.2; done' "$vpmu" 2>/dev/null
	GUEST
	arch topdown --smp 2 -- sh ./topdown.sh "$demo" "$VPMU_BUILD/vpmu" >topdown.out 2>&1 &
	wait_for 800 [ -e topdown-ready ]
	perf stat -a -o topdown-host -x, -e slots:D sh -c '
		sleep 1; touch topdown-taken; for i in $(seq 100); do [ ! -e topdown-seen ] || break; sleep 0.1; done' &
	wait $!
	touch topdown-told
	wait
	cat topdown.out
	case_of topdown/told "$(grep -q 'fixed 3.* lost ' topdown-seen || shown topdown-seen)"
	case_of "topdown/the host's event counts" "$(grep -q ',100.00,' topdown-host || shown topdown-host)"
	nothing_left topdown
	# The paravirtual PMU has counters for the classes: all slots are in one, and those of the demo's
	# instructions retire.
	l2 topdown-pv --pmu pv --root --kernel "$suite" --memory 256M -- sh -c '
		perf stat -x, -o own -e "{slots:u,topdown-retiring:u,topdown-bad-spec:u,topdown-fe-bound:u,topdown-be-bound:u}" "$0"
		awk -F, "/slots/ { all = \$1 } /retiring/ { n = \$1 } /topdown/ { sum += \$1 }
			END { print n == 41020005 && sum == all ? \"ok demo\" : \"not ok demo: \" n \", \" sum \" of \" all }" own
		perf stat --topdown -a "$0" 2>all && ! grep "<not" all && echo "ok perf stat --topdown" ||
			echo "not ok perf stat --topdown: $(head -c 300 all)"' "$demo"
	nothing_left topdown-pv
	unload
}

# QEMU keeps a guest that KVM has given up.
fuzz_over() { # PID
	! kill -0 "$1" 2>/dev/null || grep -qsE '^KVM(: entry failed| internal error)' fuzz.err
}

# A guest that does to the PMU whatever it can, beside a host that counts itself.
t_fuzz() {
	local status=0 out vm limit=$((900 + TURNS / 200)) shadow=1
	# KVM before 6.2 keeps STI's shadow in SMM, where interrupts are off: Intel's CPUs do not enter that.
	[[ $maker/$(uname -r) != Intel/6.1.* ]] || shadow=0
	load arch=1
	rm -f fuzz-own fuzz-done
	perf stat -a -x, -o fuzz.csv -e instructions:uHD,branches:uHD sh -c \
		'until [ -e fuzz-done ]; do sleep 0.1; done' &
	until [ -e fuzz-done ]; do
		perf stat -x, --append -o fuzz-own -e instructions:uD "$demo" >/dev/null
	done &
	timeout -k 5 $limit "$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults \
		-no-user-config -display none -serial stdio -machine pc -bios qboot.rom -m 64 -accel kvm \
		-cpu host -device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$VPMU_BUILD/bare/fuzz" \
		-append "seed=$SEED turns=$TURNS shadow=$shadow" </dev/null >fuzz.out 2>fuzz.err &
	vm=$!
	wait_for $limit fuzz_over $vm
	kill $vm 2>/dev/null
	wait $vm || status=$?
	out=$(<fuzz.out)
	touch fuzz-done
	wait
	if [ $status = 67 ] && [[ $out == "ok fuzz: $TURNS turns, "* ]]; then
		echo "ok fuzz: seed $SEED, ${out#ok fuzz: }"
	else
		echo "not ok fuzz: seed $SEED, status $status: $out $(head -n 2 fuzz.err)"
	fi
	case_of "fuzz/the host's events count" "$([ "$(grep -c ',100.00,' fuzz.csv)" = 2 ] || shown fuzz.csv)"
	# A pinned event counts all of the time or not at all.
	case_of "fuzz/the host's own program" "$(grep '^[0-9<]' fuzz-own | sort | uniq -c | awk -F'[ ,]+' '
		$3 == 41020005 { exact++; next } $3 !~ /^<not/ { print } END { if (!exact) print "never counted" }')"
	nothing_left fuzz
	unload
}

# Modules that take this kernel for another one do not load, and say what differs.
t_others() {
	local name
	for name in kvm_emulate_hypercall kvm_vcpu_reset kvm_x86_pmu_event_filter; do
		dmesg -C
		case_of "others/$name" "$(! insmod $name/out/vpmu_kvm.ko arch=1 2>/dev/null || { echo 'it loads'; rmmod vpmu_kvm; }
			dmesg | grep -q "vpmu_kvm: this kernel's KVM has .*$name" || dmesg | tail -n 2)"
	done
}

# Since 7.0 KVM can hand the CPU's own counters to a guest, and such a one gets none of ours.
# While it is there the host counts no guests, and who counts guests keeps it out. Without
# modifiers perf counts the host alone.
# shellcheck disable=SC2016 # L2's
t_mediated() {
	local said known=()
	[ $maker = Intel ] || known=("$VPMU_ROOT/tests/selftests/differences-mediated.tsv")
	rmmod $kvm && modprobe $kvm enable_mediated_pmu=1
	load
	stock mediated 2 0 --smp 2 # L1's perf counts nothing
	case_of 'mediated/it gets none of ours' "$(grep -q 'has given it the mediated PMU' mediated.l2.err ||
		head -n 5 mediated.l2.err)"
	rm -f mediated-*
	arch mediated/held -- sh -c 'touch mediated-runs; until [ -e mediated-seen ]; do
		perf stat -x, -e instructions:u -o o "$1"; n=$(sed -n "s/,.*instructions.*//p" o)
		[ "$n" = 41020005 ] || echo "not ok exact: $n"; done; echo "ok exact"' sh "$demo" >mediated-out 2>&1 &
	wait_for 200 [ -e mediated-runs ]
	said=$(perf stat -a -e instructions:GH true 2>&1)
	case_of 'mediated/an event of guests is refused' "$([[ $said == *'not support'* ]] || echo "$said")"
	perf stat -x, -o mediated-own -e instructions:uH "$demo"
	case_of 'mediated/the host counts itself' "$(grep -q '^41020005,' mediated-own || shown mediated-own)"
	touch mediated-seen
	wait
	cat mediated-out
	perf stat -a -o /dev/null -e instructions:GH sh -c 'touch mediated-first; until [ -e mediated-tried ]; do sleep 0.1; done' &
	wait_for 60 [ -e mediated-first ]
	said=$(l2_run mediated-tried.log --pmu arch --kernel "$suite" --memory 256M -- true 2>&1)
	case_of 'mediated/an event of guests keeps it out' "$([[ $said == *'resource busy'* ]] || echo "$said")"
	touch mediated-tried
	wait
	"$programs/kvm_contention" --json >contention.json
	case_of 'mediated/contention' "$([ $? = 0 ] || tail -n 5 contention.json)"
	"$VPMU_BUILD/vpmu" contention --json >library.json
	python3 "$VPMU_ROOT/tests/selftests/same-rows" contention.json library.json "${known[@]}" |
		sed -E 's#^(ok|not ok) #\1 mediated/same as vpmu contention/#'
	nothing_left mediated
	unload
}

for t; do t_"$t"; done
