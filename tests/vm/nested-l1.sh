#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# In an L1, as root: nested-l1.sh LOG SCRIPT [ARG...] loads KVM and sources SCRIPT, which
# has these functions, then writes the kernel's log to LOG and looks through it.
#
#   l2_run LOG OPTION... -- COMMAND...	runs COMMAND in an L2 with options of
#		`vpmu run`; streams and status are COMMAND's; L2's log goes to LOG
#   l2 NAME OPTION... -- COMMAND...	the same for a COMMAND that prints cases: NAME/
#		comes before them; and cases for its status and for NAME.l2.log. What it
#		writes to stderr, and L2's console, is shown when it fails
#   clean NAME LOG			a case: no trouble in a kernel's log
#   lifted COMMAND...			runs COMMAND without perf's limits of sampling, and says so
#   wait_for SECONDS COMMAND...	tries COMMAND again until it succeeds
#
# l2_run and l2 can run in the background, more than one at once.
set -uo pipefail
# shellcheck source=tests/case.sh
. "$VPMU_ROOT/tests/case.sh"

# Seconds; many times what it takes, but for perf record of 6.12, which reads the kernel's
# symbols more than once: a minute each in an L2.
l2_limit=${L2_LIMIT:-900}
trouble='WARNING:|BUG:|Oops|Call Trace|unchecked MSR|general protection|Broken BIOS'
trouble+='|irq loop stuck|Dazed and confused|NMI received for unknown|rcu: INFO'
trouble+='|blocked for more than|soft lockup|KFENCE|UBSAN|KASAN|Kernel panic|ODEBUG'
trouble+='|list_(add|del) corruption|suspected memory leak|INFO: trying to register'

clean() {
	local found
	if [ ! -s "$2" ]; then
		echo "not ok $1: no log"
	elif found=$(grep -E -m 1 "$trouble" "$2"); then
		echo "not ok $1: $found"
		grep -E -m 1 -A 40 "$trouble" "$2" | sed 's/^/# /'
	else
		echo "ok $1"
	fi
}

# log_of WHO FILE: a case for this kernel's log, which goes to FILE. A kernel that looks for
# leaks scans twice: a leaked object is at least 5 seconds old and no longer changes.
log_of() {
	local leaks=/sys/kernel/debug/kmemleak
	for _ in 1 2; do
		[ -e $leaks ] && sleep 6 && echo scan >$leaks 2>/dev/null || break
	done
	dmesg >"$2"
	cat $leaks >>"$2" 2>/dev/null
	clean "$1's log" "$2"
	if grep -qs 'debug_locks: *0' /proc/lockdep_stats; then
		echo "not ok $1's lockdep: it gave up on the way"
	fi
}

# ended NAME WHO STATUS FILE: a failure's status, and the end of what was said in FILE
ended() {
	[ "$3" != 0 ] || return 0
	echo "not ok $1: $2 ended with status $3"
	tail -n 40 "$4" | sed 's/^/# /'
}

l2_run() {
	local log=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	# shellcheck disable=SC2016 # for L2's shell
	timeout -k 5 "$l2_limit" "$VPMU_BUILD/vpmu" run --accel kvm "${options[@]}" -- \
		sh -c '"$@"; status=$?; dmesg >"$0"; exit $status' "$log" "$@" </dev/null
}

l2() {
	local name=$1 log status
	shift
	log=${name//\//-}.l2
	rm -f "$log".*
	l2_run "$log.log" -v --append loglevel=5 "$@" 2>"$log.err" |
		sed -u -E "s#^(ok|not ok|skip) #\1 $name/#"
	status=${PIPESTATUS[0]}
	ended "$name" L2 "$status" "$log.err"
	clean "$name/L2's log" "$log.log"
}

# wait_for SECONDS COMMAND...: false if it does not succeed in that time
wait_for() {
	local i=$((10 * $1))
	shift
	until "$@"; do
		[ $((i--)) -gt 0 ] || return 1
		sleep 0.1
	done
}

# limits PERCENT RATE: perf takes no rate while the share of time is 0.
limits() {
	echo 25 >/proc/sys/kernel/perf_cpu_time_max_percent
	echo "$2" >/proc/sys/kernel/perf_event_max_sample_rate
	echo "$1" >/proc/sys/kernel/perf_cpu_time_max_percent
}

# A test may need every sample: perf lets a number of them through for each tick of
# the clock, which comes late where the machine is busy.
lifted() {
	local status=0
	limits 0 10000000
	echo "# without perf's limits of sampling: $*"
	"$@" || status=$?
	limits 25 "$rate"
	return $status
}

[ "${BASH_SOURCE[0]}" = "$0" ] || return 0 # only the functions are wanted
l1_log=$1
shift
rate=${RATE:-100000}
limits 25 "$rate" # else the kernel's defaults, which vpmu run changes
# The part of KVM that vpmu run --nested has loaded
vendor=amd
! grep -q '^kvm_intel ' /proc/modules || vendor=intel
if [ ! -c /dev/kvm ]; then
	echo "not ok kvm: no /dev/kvm: $(dmesg | tail -n 1)"
	exit 1
fi
export vendor
script=$1
shift
# shellcheck disable=SC1090 # the test's
. "$script" "$@"
status=$?
log_of L1 "$l1_log"
exit $status
