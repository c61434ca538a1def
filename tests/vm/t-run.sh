#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1800
# takes: 400
# shellcheck disable=SC2317,SC2016 # cases are called by name; $ is for the guest
#
# vpmu run behaves like a local command: its streams, its exit status, its signals, its
# user and directory, and the files that it leaves.
set -uo pipefail

root=${VPMU_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
vpmu=${VPMU_BUILD:-$root/build}/vpmu
work=$(mktemp -d)
chmod 755 "$work"
trap 'umount "$work/small" "$work/around" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
only=${1:-}			# t-run.sh PATTERN: only these cases

ok() { echo "ok $1"; }
not_ok() { echo "not ok $1: $2"; }
skip() { echo "skip $1: $2"; }

# same NAME FOUND WANTED
same() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "found '$(head -c 300 <<<"$2" | tr '\n' ' ')', not '$(head -c 300 <<<"$3" | tr '\n' ' ')'"
	fi
}

# has NAME TEXT PATTERN
has() {
	# shellcheck disable=SC2053 # the pattern is meant as one
	if [[ $2 == *$3* ]]; then
		ok "$1"
	else
		not_ok "$1" "no '$3' in '$(head -c 300 <<<"$2" | tr '\n' ' ')'"
	fi
}

run() { timeout -k 5 120 "$vpmu" run "$@"; }
sum() { sha256sum | cut -c1-64; }

# outlives PID: the process still runs after five seconds. A zombie has ended: QEMU's
# end comes after that of a vpmu that a signal killed, and then it waits for init.
outlives() {
	for _ in {1..50}; do
		case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in '' | [ZX]*) return 1 ;; esac
		sleep 0.1
	done
}

# ---- without a guest

t_usage() {
	local out rc
	out=$("$vpmu" --help) && has help "$out" 'vpmu run'
	out=$("$vpmu" run --help) && has help-run "$out" '--memory'
	out=$("$vpmu" run --memroy 1G -- true 2>&1)
	rc=$?
	has unknown-option "$out" 'did you mean --memory'
	same unknown-option-status "$rc" 125
	out=$("$vpmu" run --nosuch -- true 2>&1)
	same nothing-like-it "$out" "vpmu: unknown option '--nosuch' (vpmu run --help lists them)"
	"$vpmu" run --uarch of -- true 2>/dev/null
	same bad-uarch $? 125
	has uarch "$("$vpmu" run --dry-run --uarch on 2>/dev/null)" 'pmu=on,pmu-uarch=on'
	out=$("$vpmu" rnu -- true 2>&1)
	has unknown-verb "$out" 'did you mean run'
	"$vpmu" run 2>/dev/null
	same no-command $? 125
	for out in 0 65536 12x; do
		has "bad-port $out" "$("$vpmu" run --gdb="$out" -- true 2>&1)" \
			"--gdb $out: a number from 1 to 65535 is needed"
	done
	has port-apart "$("$vpmu" run --gdb 5000 -- true 2>&1)" '--gdb=5000'
	has gdb-default "$("$vpmu" run --dry-run --gdb)" '-gdb tcp:127.0.0.1:1234'
	out=$("$vpmu" run --qmp "/tmp/$(printf %0120d 0)" -- true 2>&1)
	same long-socket-status $? 125
	has long-socket "$out" 'the path has 125 bytes, and that of a Unix socket has 1 to 107'
	out=$("$vpmu" run --memory 12X -- true 2>&1)
	has bad-size "$out" '--memory 12X'
	for out in pw pv,abi=2011 'pv,' arch,abi=2010 'both,'; do
		"$vpmu" run --pmu "$out" -- true 2>/dev/null
		same "bad-pmu $out" $? 125
	done
	for out in pv:pmu=off,pmu-pv=v2 pv,abi=2010:pmu=off,pmu-pv=v1 both:pmu=on,pmu-pv=v2; do
		has "pmu ${out%:*}" "$("$vpmu" run --dry-run --pmu "${out%:*}" 2>/dev/null)" "${out##*:}"
	done
	out=$("$vpmu" run --dry-run --smp 3 --memory 512M --append 'a=b c' -- true)
	has dry-run-smp "$out" '-smp 3'
	has dry-run-memory "$out" '-m 512M'
	has dry-run-append "$out" 'a=b c'
	has dry-run-cpu "$out" 'Icelake-Server-v6'
	out=$(env -u HOME -u XDG_CACHE_HOME -u VPMU_QEMU "$vpmu" run -- true 2>&1)
	same no-home-status $? 125
	has no-home "$out" XDG_CACHE_HOME
	out=$(VPMU_QEMU=/nonexistent "$vpmu" run -- true 2>&1)
	same no-qemu $? 125
}

# --dry-run prints a command for any sh, which needs no vpmu.
t_dry_run() {
	local shell
	mkdir -p "a 'dir'"
	printf '#!/bin/sh\n' >script
	cd "a 'dir'" || return
	"$vpmu" run --dry-run --write "$work" -- sh -c 'echo out; echo err >&2; pwd; cat; echo kept >"it is"
		head -c 300000 /dev/zero; exit 7' >../line
	for shell in sh bash; do
		rm -f 'it is'
		# Others write to the files before and after it.
		(echo before; PATH=/usr/bin:/bin timeout 120 $shell ../line; echo "status $?") >../out 2>../err </dev/null
		same "dry-run-$shell" "$(tr -d '\0' <../out)" $'before\nout\n'"$PWD"$'\nstatus 7'
		same "dry-run-$shell-bytes" "$(tr -cd '\0' <../out | wc -c)" 300000
		same "dry-run-$shell-stderr" "$(cat ../err)" err
		same "dry-run-$shell-file" "$(cat 'it is')" kept
	done
	cd ..
	"$vpmu" run --dry-run -- nosuch | timeout 120 sh 2>err
	same dry-run-not-found "$? $(grep -c 'vpmu: the command cannot be executed: No such file' err)" '127 1'
	"$vpmu" run --dry-run -- ./script | timeout 120 sh 2>err
	same dry-run-no-executable $? 126
	"$vpmu" run --dry-run -- sh -c 'kill -TERM $$' | timeout 120 sh 2>err
	same dry-run-signal $? 143
	"$vpmu" run --dry-run --qemu-arg -nosuch -- true | timeout 120 sh 2>err
	same dry-run-no-qemu "$? $(grep -c 'nosuch: invalid option' err)" '125 1'
	if ! grep -q '(vpmu)' < <("$vpmu" qemu --version) || ! command -v perf >/dev/null; then
		skip dry-run-count 'VPMU_QEMU has no PMU, or there is no perf'
		return
	fi
	set -- perf stat -x, -e instructions:u,branches:u -- "${vpmu%/*}/tools/vpmu-loop"
	same dry-run-count "$("$vpmu" run --dry-run -- "$@" | timeout 120 sh 2>&1 | cut -d, -f1-3)" \
		"$(run -- "$@" 2>&1 | cut -d, -f1-3)"
	# Runs that repeat have the same counts of any program.
	set -- perf stat -x, -e instructions,cycles ls /etc
	"$vpmu" run --repeat --dry-run -- "$@" >line
	for shell in 1 2; do timeout 120 sh line >out.$shell 2>&1; done
	same dry-run-repeats "$(cat out.1)" "$(cat out.2)"
	has dry-run-repeats-counts "$(cat out.1)" ,cycles,
}

# ---- streams

all_bytes() { printf '%b' "$(printf '\\x%02x' {0..255})"; }

t_streams() {
	local all
	all_bytes >all
	for _ in {1..40}; do cat all; done >in
	run -- sh -c 'cat; tac -s "" all >&2' <in >out 2>err
	same status-0 $? 0
	same stdin-to-stdout "$(sum <out)" "$(sum <in)"
	same stderr-apart "$(sum <err)" "$(tac -s '' all | sum)"
	all=$(run -- wc -c </dev/null)
	same stdin-null "$all" 0
	all=$(printf 'no newline' | run -- sh -c 'cat; echo "[$(cat | wc -c)]"')
	same stdin-end "$all" 'no newline[0]'
	all=$(run -- sh -c 'wc -c; exec 3>&1; echo closed' <&-)
	same stdin-closed "$all" $'0\nclosed'
	run -- sh -c 'echo to-stdout; echo to-stderr >&2' >both 2>&1
	same merged "$(sort both | tr '\n' ' ')" 'to-stderr to-stdout '
	all=$(run -- sh -c 'echo again >/dev/stdout; readlink /dev/fd/1')
	has dev-stdout "$all" again
}

t_large() {
	head -c 100000000 /dev/zero | openssl enc -aes-128-ctr -nosalt \
		-K 00 -iv 00 >large 2>/dev/null
	same large-stdout "$(run -- cat large | sum)" "$(sum <large)"
	rm -f copy
	run -- sh -c 'cp large copy && mkdir d && mv copy d/ && stat -c %a d/copy'
	same large-file "$(sum <d/copy)" "$(sum <large)"
	same large-file-owner "$(stat -c %u:%g d/copy)" "$(id -u):$(id -g)"
	same large-stdin "$(run -- sha256sum <large | cut -c1-64)" "$(sum <large)"
	rm -rf d large
	# Written through memory, and by one that has it open still, when all are ended.
	run -- python3 -c 'import mmap, os, signal
f = open("mapped", "wb+")
f.truncate(3 << 20)
m = mmap.mmap(f.fileno(), 3 << 20)
m[:] = bytes(range(256)) * (3 << 12)
if os.fork() == 0:
    signal.pause()
open("plain", "wb", 0).write(m[5:])
os.kill(os.getpid(), signal.SIGKILL)' 2>/dev/null
	python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * (3 << 12))' >wanted
	same mapped-file "$(sum <mapped)" "$(sum <wanted)"
	same plain-file "$(sum <plain)" "$(tail -c +6 wanted | sum)"
}

t_closed_stdout() {
	local start=$SECONDS
	run -- sh -c 'yes; echo $? >status' | head -n 2 >two
	same reader-gone "${PIPESTATUS[0]}" 0
	same reader-gone-sigpipe "$(cat status)" 141
	same reader-had "$(cat two)" $'y\ny'
	same reader-gone-ends $((SECONDS - start > 100)) 0
}

t_lines() {
	local n=0
	printf '%s\n' one two >lines
	while read -r _; do
		n=$((n + 1))
		run -- true
	done <lines
	same stdin-given-back "$n" 2
}

# A file on standard input: what the command has read is consumed, the rest is the next
# reader's, and no byte is read twice. The sizes are those around a pipe's 64 KiB.
t_stdin_rest() {
	local size name command
	seq 20000 >file
	for size in 0 1 65535 65536 65537 108894; do
		head -c "$size" file >some
		for command in 'all:cat' 'nothing:true' 'ten:head -c 10' 'line:read -r l && echo "$l" || printf %s "$l"' \
				'closed:exec <&-; sleep 0.2'; do
			name=${command%%:*}
			command=${command#*:}
			{ run -- sh -c "$command" >first; cat >rest; } <some
			same "stdin-rest $name of $size" "$(cat first rest | sum)" "$(sum <some)"
			case $name in
			all) same "stdin-rest $name of $size, first" "$(stat -c %s first)" "$size" ;;
			ten) same "stdin-rest $name of $size, first" "$(cat first)" "$(head -c 10 some)" ;;
			esac
		done
	done
	# A pipe cannot take anything back: what was read ahead is gone, but comes once.
	head -c 108894 file | { run -- head -c 10 >first; cat >rest; }
	same stdin-rest-pipe "$(cat first)" "$(head -c 10 file)"
	same stdin-rest-pipe-once "$(cat rest)" "$(tail -c "$(stat -c %s rest)" file)"
}

# ---- status and signals

t_status() {
	local out
	run -- sh -c 'exit 42'
	same status $? 42
	run -- sh -c 'exit 2'
	same status-2 $? 2
	run -- sh -c 'exit 77'
	same status-77 $? 77
	run --host-event nosuch -- true 2>/dev/null
	same status-event $? 125
	run --event-filter nosuch -- true 2>/dev/null
	same status-filter $? 125
	(run -- sh -c 'kill -TERM $$') 2>/dev/null
	same status-signal $? 143
	out=$(run -- nonexistent-command 2>&1)
	same status-not-found $? 127
	has not-found "$out" nonexistent-command
	out=$(run -- /etc/passwd 2>&1)
	same status-not-executable $? 126
	python3 - "$vpmu" <<-'END'
	import subprocess, sys
	p = subprocess.run([sys.argv[1], "run", "--", "sh", "-c", "kill -SEGV $$"])
	print("ok died-by-signal" if p.returncode == -11 else
	      "not ok died-by-signal: %d" % p.returncode)
	END
	out=$(run -- python3 -c 'import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(b"\x0f\x0b")
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()' 2>&1)
	same status-sigill $? 132
	has sigill-is-explained "$out" march=native
}

wait_until_ready() {
	local i
	for i in {1..600}; do
		grep -qs ready out && break
		sleep 0.1
	done
}

# signal_when_ready SIGNAL TIMES SCRIPT: sends it once the script said ready
signal_when_ready() {
	local sig=$1 times=$2 pid i
	rm -f out
	# A shell's background jobs ignore the keyboard's signals.
	env --default-signal=INT "$vpmu" run -- sh -c "$3" >out 2>&1 &
	pid=$!
	wait_until_ready
	for ((i = 0; i < times; i++)); do
		kill -"$sig" "$pid"
		sleep 0.3
	done
	wait "$pid"
}

t_signals() {
	local pid qemu i
	signal_when_ready TERM 1 'trap "echo got TERM; exit 3" TERM; echo ready; while :; do sleep 0.1; done'
	same term-status $? 3
	has term-forwarded "$(cat out)" 'got TERM'
	signal_when_ready HUP 1 'trap "exit 4" HUP; echo ready; while :; do sleep 0.1; done'
	same hup-forwarded $? 4
	signal_when_ready TERM 1 'echo ready; exec sleep 1000' 2>/dev/null
	same term-kills $? 143
	signal_when_ready INT 1 'head -c 10M /dev/zero >kept; echo ready; exec sleep 1000' 2>/dev/null
	same interrupted-file "$(stat -c %s kept)" 10485760
	signal_when_ready TERM 3 'trap "" TERM; echo ready >&2; while :; do sleep 1; done' 2>/dev/null
	same insisting-kills $? 137

	rm -f out
	"$vpmu" run -- sh -c 'echo ready; sleep 1000' >out 2>&1 &
	pid=$!
	wait_until_ready
	qemu=$(pgrep -P "$pid")
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	if outlives "$qemu"; then
		not_ok qemu-ends-with-vpmu "QEMU $qemu lives on"
		kill -KILL "$qemu"
	else
		ok qemu-ends-with-vpmu
	fi
}

# timeout(1) bounds a run from inside and from outside, and nothing of it remains.
t_timeout() {
	local pid vpmu_pid qemu
	run -- timeout 1 sleep 1000
	same timeout-inside $? 124
	run --repeat -- timeout 100 sleep 1000
	same timeout-inside-repeated $? 124
	rm -f out
	timeout 1000 "$vpmu" run -- sh -c 'trap "echo written >late; exit 5" TERM; echo ready; while :; do sleep 0.1; done' >out 2>err &
	pid=$!
	wait_until_ready
	vpmu_pid=$(pgrep -P "$pid")
	qemu=$(pgrep -P "$vpmu_pid")
	kill -ALRM "$pid" # timeout's own sign that the time is over
	wait "$pid"
	same timeout-outside $? 124
	same timeout-outside-file "$(cat late)" written
	same timeout-outside-rest "$(outlives "$qemu" && kill -KILL "$qemu" && echo "QEMU $qemu")$(kill -0 "$vpmu_pid" 2>/dev/null && echo vpmu)" ''
	rm -f out
	timeout -k 1 1000 "$vpmu" run -- sh -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done' >out 2>err &
	pid=$!
	wait_until_ready
	vpmu_pid=$(pgrep -P "$pid")
	qemu=$(pgrep -P "$vpmu_pid")
	kill -ALRM "$pid"
	wait "$pid" 2>/dev/null
	same timeout-killed $? 137
	same timeout-killed-rest "$(outlives "$qemu" && kill -KILL "$qemu" && echo "QEMU $qemu")$(outlives "$vpmu_pid" && echo vpmu)" ''
}

# ---- who, where, with what

t_environment() {
	local odd long found
	odd=$'new\nline \377\376 \\ "quoted" \e'
	long=$(head -c 120000 /dev/zero | tr '\0' a)
	env -i PATH="$PATH" HOME="$HOME" VPMU_QEMU="${VPMU_QEMU:-}" \
		XDG_CACHE_HOME="${XDG_CACHE_HOME:-$HOME/.cache}" ODD="$odd" EMPTY= \
		"$vpmu" run -- env -0 | sort -z >found
	env -i PATH="$PATH" HOME="$HOME" VPMU_QEMU="${VPMU_QEMU:-}" \
		XDG_CACHE_HOME="${XDG_CACHE_HOME:-$HOME/.cache}" ODD="$odd" EMPTY= \
		env -0 | sort -z >wanted
	same environment "$(sum <found)" "$(sum <wanted)"
	run -- printf '%s|' "$odd" '' "$long" "$long" 'a b' "$long" -- -x >found
	printf '%s|' "$odd" '' "$long" "$long" 'a b' "$long" -- -x >wanted
	same arguments "$(sum <found)" "$(sum <wanted)"

	mkdir -p "real dir" $'\377\376,=' && ln -sfn "real dir" link
	found=$(cd link && umask 027 && ulimit -n 123 &&
		run -- sh -c 'pwd -P; umask; ulimit -n; hostname; touch made; cat /proc/$$/stat | cut -d" " -f19')
	same where "$found" "$work/real dir"$'\n0027\n123\n'"$(hostname)"$'\n'"$(nice)"
	same umask "$(stat -c %a 'real dir/made')" 640
	(cd $'\377\376,=' && run -- sh -c 'echo x >"$(printf "\376")"')
	same odd-names "$(cat $'\377\376,=/\376')" x

	found=$(run -- sh -c 'touch /etc/vpmu-was-here && ls /etc/vpmu-was-here; ls /tmp | grep -c "^'"$(basename "$TMPDIR_OF")"'\$"')
	has overlay-writable "$found" /etc/vpmu-was-here
	same host-untouched "$(ls -d /etc/vpmu-was-here 2>/dev/null)" ''

	found=$(run --smp 2 --root -- sh -c 'id -u; nproc; cat /proc/sys/kernel/perf_event_paranoid /proc/sys/kernel/perf_event_max_sample_rate /proc/sys/kernel/perf_cpu_time_max_percent /proc/sys/kernel/kptr_restrict; cat /sys/class/net/lo/flags; ls -d /sys/kernel/tracing/events/sched; date +%Y; df /dev/shm | tail -n 1 | cut -d" " -f1; ls /dev/ptmx')
	same guest "$found" $'0\n2\n-1\n10000000\n0\n0\n0x9\n/sys/kernel/tracing/events/sched\n'"$(date +%Y)"$'\nshm\n/dev/ptmx'
}

t_perf() {
	local out
	mkdir -p bin
	printf '#!/bin/sh\nexec perf_$(uname -r) "$@"\n' >bin/perf
	chmod 755 bin/perf
	command -v perf >/dev/null || { skip perf "no perf on this machine"; return; }
	out=$(run -- perf stat -x, -e page-faults,sched:sched_switch true 2>&1)
	has perf-stat "$out" ,page-faults,
	has perf-tracepoint "$out" ,sched:sched_switch,
	out=$(PATH=$work/bin:$PATH run -- perf --version 2>&1)
	same perf-behind-script "$out" "$(perf --version)"
	out=$(PATH=$work/bin "$vpmu" run -- /bin/true 2>&1)
	if compgen -G '/usr/lib/linux-tools*' >/dev/null; then
		skip perf-missing "this machine has one behind the script"
	else
		has perf-missing "$out" 'apt-get install linux-perf'
	fi
}

# The guest's counters, if our QEMU is in use.
t_counters() {
	local out
	if ! grep -q '(vpmu)' < <("$vpmu" qemu --version); then
		skip counters "VPMU_QEMU has no PMU"
		return
	fi
	out=$("$vpmu" check)
	same check-status $? 0
	has check-counts "$out" '2000004 instructions was counted'
	out=$(run -- perf stat -x, -e r412e true 2>&1)
	has told-in-vain "$out" 'not counted; their 0 is not a count: 0x412e'
	out=$(run -- perf stat -x, -e r412e -e r1d0 -e r1c4 true 2>&1)
	has told-of-each "$out" 'not a count: 0x412e (LONGEST_LAT_CACHE.MISS), 0x1d0'
	has told-the-cure "$out" '; --uarch on counts 0x412e'
	out=$(run -- sh -c 'for i in 1 2 3 4 5 6; do perf stat -x, -e r${i}d0,r${i}d1,r${i}d2 true; done' 2>&1)
	has told-of-many "$out" ', and perhaps more'
	out=$(run -- perf mem record -o /dev/null true 2>&1)
	has perf-mem "$out" 'perf mem needs an address for each sample: --uarch on takes it'
	out=$(run -- "$(command -v perf)" c2c record -o /dev/null true 2>&1)
	has perf-c2c "$out" 'perf c2c needs an address for each sample: --uarch on takes it, but'
	out=$(run -- perf stat -x, -e instructions:u true 2>&1)
	[[ $out != *'not a count'* ]]
	same nothing-to-tell $? 0
	out=$(run --pmu none -- perf stat -x, -e instructions true 2>&1)
	has pmu-none "$out" '<not supported>'
}

# ---- how a developer of PMUs watches a guest

# first_said FILE WORDS: wait until it has them
first_said() {
	local i
	for i in {1..600}; do
		grep -qsF -- "$2" "$1" && return
		sleep 0.1
	done
	return 1
}

# A port of 127.0.0.1 that is free, below those that the kernel gives to connections.
free_port() {
	python3 -c 'import random, socket
for _ in range(1000):
    port = random.randrange(10000, 30000)
    with socket.socket() as s:
        if s.connect_ex(("127.0.0.1", port)):
            print(port)
            break'
}

t_gdb() {
	local out port pid
	command -v gdb >/dev/null || { skip gdb 'there is no gdb: apt-get install gdb'; return; }
	port=$(free_port)
	run --gdb="$port" --stats stats.json -- sh -c 'echo it runs; exit 3' >out 2>err &
	pid=$!
	first_said err "target remote 127.0.0.1:$port" || not_ok gdb-told "$(cat err)"
	same gdb-listens-on-loopback "$(awk -v port=":$(printf %04X "$port")" '$4 == "0A" && substr($2, length($2) - 4) == port {
		print $2 }' /proc/net/tcp /proc/net/tcp6)" "0100007F:$(printf %04X "$port")"
	out=$("$vpmu" run --gdb="$port" -- true 2>&1)
	same port-taken-status $? 125
	same port-taken "$out" "vpmu: --gdb: port $port of 127.0.0.1: Address already in use; name another one from 1024 up, as in --gdb=12345"
	same gdb-waits "$(cat out)" ''
	# The first instruction of all, one of Linux, and then the command.
	out=$(timeout 100 gdb -nx -batch -ex "target remote 127.0.0.1:$port" -ex 'info registers rip' -ex stepi \
		-ex 'info registers rip' -ex continue 2>&1)
	has gdb-reset-vector "$out" 'rip            0xfff0 '
	[ "$(grep -c '^rip ' <<<"$out")" = 2 ] && [ "$(grep '^rip ' <<<"$out" | sort -u | wc -l)" = 2 ]
	same gdb-steps $? 0
	wait "$pid"
	same gdb-status $? 3
	same gdb-output "$(cat out)" 'it runs'
	same gdb-boots "$(python3 -c 'import json; print(json.load(open("stats.json"))["from"])')" boot
}

t_qmp() {
	local out
	run --qmp monitor,1 -- sh -c 'echo ready; while [ ! -e asked ]; do sleep 0.1; done' >out 2>err &
	wait_until_ready
	out=$(python3 -c 'import json, socket
s = socket.socket(socket.AF_UNIX)
s.connect("monitor,1")
f = s.makefile("rw")
for command in "qmp_capabilities", "query-status", "x-query-vpmu":
    print(json.dumps({"execute": command}), file=f, flush=True)
    reply = f.readline() if command != "qmp_capabilities" else f.readline() and f.readline()
    reply = json.loads(reply)["return"]
    print(reply.get("status"), len(reply.get("cpus", [])))' 2>&1)
	touch asked
	wait $!
	same qmp-status $? 0
	same qmp "$out" $'None 0\nrunning 0\nNone 1'
	same qmp-gone "$(ls monitor* 2>&1)" "ls: cannot access 'monitor*': No such file or directory"
	echo mine >file
	out=$(run --qmp file -- true 2>&1)
	same qmp-file "$? $out" '125 vpmu: --qmp file: there is such a file: remove it, or name another one'
	same qmp-file-stays "$(cat file)" mine
	out=$(run --qmp nowhere/monitor -- true 2>&1)
	same qmp-nowhere "$? $out" '125 vpmu: --qmp nowhere/monitor: No such file or directory'
	rm -f asked file
}

t_console() {
	local out
	run --console log,1 -- true
	run --console log,1 --stats stats.json -- true
	same console-status $? 0
	has console "$(cat log,1)" 'Linux version'
	same console-boots "$(python3 -c 'import json; print(json.load(open("stats.json"))["from"])')" boot
	out=$(run --console nowhere/log -- true 2>&1)
	same console-nowhere "$? $out" '125 vpmu: --console nowhere/log: No such file or directory'
}

# One argument that changes nothing of the machine, and one that gives the guest a disk.
t_qemu_arg() {
	local out
	truncate -s 3M disk
	for _ in 1 2; do
		out=$(run --qemu-arg -D --qemu-arg 'a b' --qemu-arg=-d --qemu-arg in_asm --qemu-arg -drive \
			--qemu-arg if=virtio,format=raw,file=disk --stats stats.json -- sh -c \
			'cat /sys/bus/virtio/devices/*/device | grep -c 0x0002')
		same qemu-arg-device "$out" 1
	done
	has qemu-arg-file "$(head -c 4096 'a b')" IN:
	same qemu-arg-boots "$(python3 -c 'import json; print(json.load(open("stats.json"))["from"])')" boot
	out=$(run --qemu-arg -nosuch -- true 2>&1)
	same qemu-arg-wrong-status $? 125
	has qemu-arg-wrong "$out" '-nosuch: invalid option'
	rm -f 'a b'
}

# QEMU that answers late, and one without a monitor: the uncounted events are named, or
# the run fails.
t_monitor() {
	local out real=${VPMU_QEMU:-$("$root/qemu/build" --print)}
	if ! grep -q '(vpmu)' < <("$vpmu" qemu --version) || [ ! -d "$real" ]; then
		skip monitor "VPMU_QEMU is not the prefix of a QEMU that has a PMU"
		return
	fi
	local -x XDG_CACHE_HOME REAL_QEMU=$real VPMU_QEMU=$work/qemu-late
	XDG_CACHE_HOME=$(own_cache)
	# Its first call of the monitor has timed out before it goes on.
	cat >qemu-late <<-'END'
		#!/bin/bash
		if [[ $* == *' -incoming '* ]]; then
			(sleep 1.6; kill -CONT $$) &
			kill -STOP $$
		fi
		exec "$REAL_QEMU/bin/qemu-system-x86_64" "$@"
	END
	cat >qemu-mute <<-'END'
		#!/usr/bin/python3
		import os, re, sys
		args = sys.argv
		for i, a in enumerate(args):
		    if m := re.match(r"socket,id=qmp,fd=(\d+)$", a):
		        os.close(int(m[1]))
		        args[i] = "null,id=qmp"
		os.execv(os.environ["REAL_QEMU"] + "/bin/qemu-system-x86_64", args)
	END
	chmod 755 qemu-late qemu-mute
	run -- true
	out=$(run --stats late.json -- perf stat -x, -e r412e true 2>&1)
	same late-status $? 0
	has late-monitor "$out" 'not counted; their 0 is not a count: 0x412e'
	same late-from "$(python3 -c 'import json
j = json.load(open("late.json"))
print(j["from"], len(j["vpmu"]["cpus"]))')" 'snapshot 1'
	VPMU_QEMU=$work/qemu-mute
	out=$(run --no-snapshot --stats mute.json -- true 2>&1)
	same no-monitor-status $? 125
	has no-monitor "$out" 'do not rely on a count: x-query-vpmu'
	has no-monitor-stats "$(cat mute.json)" '"vpmu_error": "x-query-vpmu'
	run --no-snapshot -- sh -c 'exit 3' 2>/dev/null
	same no-monitor-own-status $? 3
}

t_stats() {
	local out
	out=$(run --stats /nonexistent/x -- sh -c 'echo it runs' 2>&1)
	same stats-no-folder-status $? 125
	same stats-no-folder "$out" 'vpmu: --stats /nonexistent/x: No such file or directory'
	out=$(run --stats /dev/full -- true 2>&1)
	same stats-full-status $? 125
	has stats-full "$out" '--stats /dev/full: No space left on device'
}

t_kvm_error() {
	if [ ! -w /dev/kvm ]; then
		skip kvm-error "/dev/kvm is not there, or not writable; t-kvm.sh runs it in an L1"
		return
	fi
	make -s -C "$root/tests/bare" O="${VPMU_BUILD:-$root/build}/bare" \
		"${VPMU_BUILD:-$root/build}/bare/astray" &&
		VPMU_BUILD=${VPMU_BUILD:-$root/build} VPMU_QEMU=${VPMU_QEMU:-$("$root/qemu/build" --print)} \
			"$root/tests/vm/kvm-error.sh"
}

t_directories() {
	local out
	out=$(cd / && run -- sh -c 'pwd; touch /vpmu-was-here' 2>&1)
	has root-is-not-shared "$out" 'not shared'
	same root-untouched "$(ls -d /vpmu-was-here 2>/dev/null)" ''
	out=$(mkdir gone && cd gone && rmdir ../gone && run -- pwd 2>&1)
	has deleted-directory "$out" '/'
	out=$(cd /proc && run -- sh -c 'pwd; ls self/comm' 2>&1)
	has in-proc "$out" self/comm
	out=$(cd /dev/shm && d=$(mktemp -d) && cd "$d" && run -- sh -c 'echo kept >f; pwd' 2>&1 && cat f && rm -r "$d")
	has in-dev-shm "$out" kept
	# The guest's link to vpmu is put into none of the directories that it shares, /bin being one by a link.
	if [ "$(id -u)" = 0 ] && [ -L /bin ] && [ ! -e /usr/bin/vpmu ] && [ ! -L /usr/bin/vpmu ]; then
		(cd /usr/bin && PATH=/bin run -- true)
		same shared-by-a-link "$(ls /usr/bin/vpmu 2>/dev/null)" ''
		[ ! -L /usr/bin/vpmu ] || rm /usr/bin/vpmu
	fi
}

t_full() {
	local out
	out=$(run --memory 256M -- sh -c 'head -c 400M /dev/zero >/var/tmp/big' 2>&1)
	has full-overlay "$out" '--memory'
}

# The guest asks for more than there is, and QEMU is killed because it took it.
t_memory() {
	local out group limit
	out=$(run --no-snapshot --memory 100T -- true 2>&1)
	same memory-asked-status $? 125
	has memory-asked "$out" "vpmu: --memory asks for 104857600M, and there are "
	has memory-asked-cure "$out" 'a guest that uses more is killed; --memory '
	for group in '' /memory; do
		group=/sys/fs/cgroup$group/vpmu-test.$$
		mkdir "$group" 2>/dev/null
		# Version 2 has the file where the controller is on, and version 1 has another name.
		for limit in "$group"/memory.max "$group"/memory.limit_in_bytes; do
			[ -e "$limit" ] && echo 300M >"$limit" && break 2
		done
		rmdir "$group" 2>/dev/null
	done
	if [ ! -e "$limit" ]; then
		skip memory-killed 'no cgroup with a limit of memory can be made here'
		return
	fi
	out=$(echo "$BASHPID" >"$group/cgroup.procs"; run --no-snapshot -- sh -c 'head -c 600M /dev/zero >/dev/shm/x' 2>&1)
	same memory-killed-status $? 125
	has memory-killed "$out" 'has killed for memory meanwhile (OOM killer): the guest may use 1024M, and there are 300M (the limit of its cgroup)'
	has memory-killed-cure "$out" 'or a guest that fits: --memory 128M'
	rmdir "$group"
}

# A full disk under the current directory: the guest writes a file's pages when the
# command may have closed it, so that a command that succeeded must not look so.
t_full_share() {
	local out
	mkdir -p small
	if ! mount -t tmpfs -o size=1m tmpfs small 2>/dev/null; then
		skip full-share "mount -t tmpfs: not permitted here"
		return
	fi
	out=$(cd small && run -- sh -c 'head -c 3000000 /dev/zero >f' 2>&1)
	same full-share-status $? 125
	has full-share "$out" "could be written into $work/small: No space left on device"
	out=$(cd small && rm f && run -- sh -c 'head -c 3000000 /dev/zero >f; exit 3' 2>&1)
	same full-share-own-status $? 3
	out=$(cd small && rm f && run -- dd if=/dev/zero of=f bs=64k count=40 conv=fsync 2>&1)
	same full-share-fsync-status $? 1
	has full-share-fsync "$out" "fsync failed for 'f': No space left on device"
	# The error is not forgotten when the command has seen it.
	(cd small && rm f && run -- sh -c 'head -c 3000000 /dev/zero >f; sync -f .; :') 2>/dev/null
	same full-share-seen-status $? 125
	out=$(cd small && rm f && run -- sh -c 'head -c 900000 /dev/zero >f' 2>&1)
	same full-share-fits "$?$out" 0
	umount small
}

# Directories besides the current one: by their own paths, however they are named, and once.
t_write() {
	local odd out seen=() own name
	odd=$work/$'o d,"q\'=\n'
	own=$(own_cache)
	local -x XDG_CACHE_HOME=$own
	rm -f "$own"/vpmu/snapshot-*
	mkdir -p small here/in "$odd/sub" around/here "$odd link"
	ln -sfn "$odd" other
	for name in boot snapshot; do
		(cd here && run --stats ../stats.json --write ../other --write in --write "$odd" --write "$odd/sub" -- sh -c '
			echo "$2" >>"$1/f" && echo 1 >"$1/sub/f" && mv "$1/sub/f" "$1/g" && echo "$2" >in/f
			echo lost >"$1 link/f"; grep -c ^vpmu.share /proc/mounts' - "$odd" $name) >out
		same "write-$name-mounts" "$(cat out)" 2
		same "write-$name" "$(cat other/g here/in/f)" "1"$'\n'"$name"
		same "write-$name-from" "$(python3 -c 'import json; print(json.load(open("stats.json"))["from"])')" $name
	done
	same write-appended "$(cat "$odd/f")" $'boot\nsnapshot'
	same write-others-stay "$(ls "$odd link")" ''
	# The current directory is a part of what is shared.
	out=$(cd around/here && run --write .. -- sh -c 'echo x >f && mv f .. && ln ../f g && pwd; grep -c ^vpmu.share /proc/mounts')
	same write-around "$out $(cat around/f around/here/g)" "$work/around/here"$'\n1 x\nx'

	for name in / /proc/self /dev nowhere /etc/passwd ''; do
		out=$("$vpmu" run --write "$name" -- true 2>&1)
		same "write-refused-status '$name'" $? 125
		has "write-refused '$name'" "$out" "vpmu: --write $name: "
	done
	has write-refused-cure "$out" 'needed is a directory that is there and that you can write'
	if mount --bind "$odd" around 2>/dev/null && mount -o remount,bind,ro around; then
		has write-readonly "$("$vpmu" run --write around -- true 2>&1)" '--write around: Read-only file system'
	else
		skip write-readonly 'mount --bind: not permitted here'
	fi
	umount around 2>/dev/null
	for name in . .. in /src /src/in; do
		[[ $name != /* ]] || mkdir -p "$work$name"
		out=$(cd here && "$vpmu" run --repeat --as "$work/src" --write "${name/\/src/$work/src}" -- true 2>&1)
		has "write-as $name" "$out" 'which --as makes one'
	done
	for name in {0..16}; do mkdir -p "many/$name"; seen+=(--write "many/$name"); done
	has write-many "$(cd here && "$vpmu" run "${seen[@]/many/../many}" -- true 2>&1)" 'more than 16 directories'

	# It is input as the current directory is: the run repeats when its files are the same.
	seen=()
	for _ in 1 2 3; do
		seen+=("$(cd here && run --repeat --write ../other -- perf stat -x, -e instructions,instructions:u \
			sh -c 'echo x >"$1/h"; ls -l "$1"; stat -c %d,%i,%y "$1"/*' - "$odd" 2>&1)")
	done
	same write-repeats "${seen[1]}" "${seen[2]}"
	has write-repeats-counts "${seen[1]}" ,instructions:u,

	if mount -t tmpfs -o size=1m tmpfs small 2>/dev/null; then
		out=$(cd here && run --write ../small -- sh -c 'head -c 3000000 /dev/zero >../small/f' 2>&1)
		same write-full-status $? 125
		has write-full "$out" "could be written into $work/small: No space left on device"
		umount small
	else
		skip write-full 'mount -t tmpfs: not permitted here'
	fi
}

# ---- others at the same time, no network, nothing left behind

t_two() {
	local a b
	run -- sh -c 'sleep 1; echo a >a; cat a' >out.a &
	a=$!
	run -- sh -c 'sleep 1; echo b >b; cat b' >out.b &
	b=$!
	wait "$a" && wait "$b"
	same two-at-once "$(cat out.a out.b a b | tr '\n' ' ')" 'a b a b '
}

t_no_network() {
	local out
	if ! unshare -n true 2>/dev/null; then
		skip no-network "unshare -n: not permitted here"
		return
	fi
	out=$(unshare -n "$vpmu" run -- echo alone 2>&1)
	same no-network "$out" alone
}

# A server of this machine's own, reached by 10.0.2.2; from a guest that boots, and from its
# snapshot, whose machine is not that of a guest without a network.
t_network() {
	local out port server file own reach
	own=$(own_cache)
	local -x XDG_CACHE_HOME=$own
	rm -f "$own"/vpmu/snapshot-*
	mkdir -p served empty
	echo 'from the host' >served/page
	port=$(free_port)
	python3 -m http.server --bind 127.0.0.1 --directory served "$port" >log 2>&1 &
	server=$!
	reach="exec 3<>/dev/tcp/10.0.2.2/$port; printf 'GET /page HTTP/1.0\r\n\r\n' >&3; tail -n 1 <&3"
	out=$(run -- bash -c "ls /sys/class/net; $reach" 2>&1)
	has network-none "$out" 'Network is unreachable'
	has network-none-cure "$out" 'no network but its own loopback: --network gives it one'
	same network-none-card "${out%%$'\n'*}" lo
	for file in boot snapshot; do
		out=$(run --network --stats stats.json -- bash -c \
			"$reach; cat /etc/resolv.conf; cut -f 1-3 /proc/net/route | tail -n +2" 2>&1)
		same "network-$file" "$out" \
			$'from the host\nnameserver 10.0.2.3\neth0\t00000000\t0202000A\neth0\t0002000A\t00000000'
		same "network-$file-from" "$(python3 -c 'import json; print(json.load(open("stats.json"))["from"])')" $file
	done
	same network-snapshots "$(ls "$own"/vpmu/snapshot-* | wc -l)" 2
	same network-host-file "$(grep -c '10\.0\.2\.3' /etc/resolv.conf)" 0
	kill "$server"
	wait "$server" 2>/dev/null
}

# Processes that are killed in the middle of a request of the shared directory: the kernel takes
# the request back.
t_killed() {
	local out
	# shellcheck disable=SC2016 # the guest's
	out=$(run -- sh -c 'i=0
		while [ $i -lt 60 ]; do
			find /usr/share/doc -type f >/dev/null 2>&1 & a=$!
			grep -r nosuch /usr/include >/dev/null 2>&1 & b=$!
			sleep 0.0$((i % 10))
			kill -9 $a $b
			wait $a $b
			i=$((i + 1))
		done
		echo survived' 2>/dev/null)
	same killed-in-a-request "$out" survived
}

# A cache whose snapshots are nobody else's: other tests run beside this one.
own_cache() {
	local shared=${XDG_CACHE_HOME:-$HOME/.cache}/vpmu file
	mkdir -p "$work/cache/vpmu"
	for file in "$shared"/*; do
		[[ $file == */snapshot-* ]] || ln -sfn "$file" "$work/cache/vpmu/"
	done
	echo "$work/cache"
}

t_leftovers() {
	local before own
	own=$(own_cache)
	local -x XDG_CACHE_HOME=$own
	local cache=$own/vpmu
	mkdir tmpdir
	run -- true
	before=$(ls -A "$cache" 2>/dev/null)
	TMPDIR=$work/tmpdir run -- true
	same no-temporary-files "$(ls -A tmpdir)" ''
	same cache-unchanged "$(ls -A "$cache" 2>/dev/null)" "$before"
	run --stats stats.json -o messages -- sh -c 'exit 9'
	same stats "$(python3 -c 'import json
j = json.load(open("stats.json"))
print(j["exit_status"], j["boot_ms"] > 0, j["kernel"] != "")')" '9 True True'
	same messages "$(cat messages)" ''
}

# The second one does not boot, counts the same, and shares nothing with the first.
# The clock is set when the guest is ready, not when QEMU starts.
t_clock() {
	local before after found
	before=$(date +%s%N)
	found=$(run --no-snapshot --stats stats.json -- date +%s%N)
	after=$(date +%s%N)
	same clock "$(python3 - "$before" "$found" "$after" <<-'END'
		import json, sys
		before, found, after = map(int, sys.argv[1:])
		boot = int(json.load(open("stats.json"))["boot_ms"] * 1e6)
		print(f"{found - before - boot} ns after it was ready, {after - found} ns before the end"
		      if not before + boot <= found <= after else "")
	END
	)" ''
}

t_snapshot() {
	local i seen=() found=() from=() mounts=() old=() file part own
	own=$(own_cache)
	local -x XDG_CACHE_HOME=$own
	local cache=$own/vpmu
	rm -f "$cache"/snapshot-*
	part=$cache/snapshot-0.part$(sh -c 'echo $$') # of one that was killed
	touch "$part"
	for i in 1 2 3 4; do
		touch started
		# One that was cut off is not believed.
		[ "$i" != 4 ] || for file in "$cache"/snapshot-*; do truncate -s 30M "$file"; done
		found+=("$(run --stats stats.json -- sh -c '
			cat /proc/sys/kernel/random/boot_id; od -An -N16 -tx1 /dev/urandom; date +%s; hostname
			cut -d" " -f2- /proc/mounts | sort >mounts
			find /run /dev/shm ! -newer started >old
			setarch -R perf stat -x, -e instructions:u -o count seq 100000 >/dev/null
			grep instr count | cut -d, -f1')")
		mounts+=("$(<mounts)") old+=("$(<old)")
		from+=("$(python3 -c 'import json; print(json.load(open("stats.json"))["from"])')")
	done
	same snapshot-rest "$(ls "$part" 2>/dev/null)" ''
	same snapshot-mounts "${mounts[0]}" "${mounts[1]}"
	has snapshot-has-trees "${mounts[1]}" '/sys/kernel/tracing tracefs'
	same snapshot-old-files "$(printf %s "${old[@]}")" ''
	same snapshot-used "${from[*]}" 'boot snapshot snapshot boot'
	same snapshot-alone "$(printf '%s\n' "${found[@]}" | sed -n '1~5p;2~5p' | sort -u | wc -l)" 8
	same snapshot-host "$(printf '%s\n' "${found[@]}" | sed -n '4~5p' | sort -u)" "$(hostname)"
	for i in "${found[@]}"; do
		i=$(($(date +%s) - $(sed -n 3p <<<"$i")))
		[ "$i" -ge 0 ] && [ "$i" -lt 600 ] && seen+=(now)
	done
	same snapshot-time "${seen[*]}" 'now now now now'
	# Not of a shell, which executes more where its parent has a number of more digits.
	same snapshot-counts "$(printf '%s\n' "${found[@]}" | sed -n '5~5p' | sort -u | grep -c .)" 1
	file=$(echo "$cache"/snapshot-*)
	run -m 400M -- true
	run -m 500M -- true
	run -- true # used last
	run -m 600M -- true
	same snapshot-kept "$(ls "$cache"/snapshot-* | wc -l), $(ls "$file")" "3, $file"
	rm -f "$cache"/snapshot-*
	run --no-snapshot -- true
	VPMU_SNAPSHOT=0 run -- true
	same snapshot-none "$(ls "$cache"/snapshot-* 2>/dev/null)" ''
}

# spoil random|zeros|open FILE: its pages, as a disk's fault or a power cut leaves them, or its mode
spoil() {
	python3 - "$@" <<-'END'
		import os, random, sys
		how, name = sys.argv[1:]
		random.seed(1)
		f = os.open(name, os.O_RDWR)
		if how == "open":
		    os.fchmod(f, 0o666)
		elif how == "random":
		    # Only pages with data: a guest may go on without those that it does not use.
		    pages, at, size = [], 8 << 20, os.fstat(f).st_size
		    os.pwrite(f, b"x", size - 1) # data at the end, for the loop's
		    while at < size:
		        start = os.lseek(f, at, os.SEEK_DATA)
		        at = os.lseek(f, start, os.SEEK_HOLE)
		        pages += range(start, at - 64, 4096)
		    for at in random.sample(pages, len(pages) // 4):
		        os.pwrite(f, random.randbytes(64), at)
		else:
		    at, left = 8 << 20, 20 << 20
		    while left:
		        at = os.lseek(f, at, os.SEEK_DATA)
		        n = min(os.lseek(f, at, os.SEEK_HOLE) - at, left)
		        os.pwrite(f, bytes(n), at)
		        at, left = at + n, left - n
	END
}

# A snapshot that was damaged behind its header is dropped, and the guest boots; signals
# end vpmu while such a guest says nothing.
t_spoilt() {
	local how out file own pid qemu start
	own=$(own_cache)
	local -x XDG_CACHE_HOME=$own
	rm -f "$own"/vpmu/snapshot-*
	run -- true
	out=$(run --root -- sh -c 'echo b >/proc/sysrq-trigger; sleep 60' 2>&1)
	has restored-guest-ends "$out" "before the command did (QEMU's exit status 0); with --no-snapshot a new guest boots"
	file=$(echo "$own"/vpmu/snapshot-*)
	cp --sparse=always "$file" whole
	for how in random zeros open; do
		spoil $how "$file"
		out=$(run --stats stats.json -- cat <<<input 2>&1)
		same "spoilt-$how" "$? $out" '0 input'
		same "spoilt-$how-boots" "$(python3 -c 'import json; print(json.load(open("stats.json"))["from"])')" boot
		same "spoilt-$how-replaced" "$(stat -c %a "$file")" 600
	done
	run --stats stats.json -- true
	same spoilt-then-whole "$(python3 -c 'import json; print(json.load(open("stats.json"))["from"])')" snapshot
	for how in TERM HUP INT; do
		spoil zeros "$file"
		env --default-signal=INT "$vpmu" run -- true 2>/dev/null &
		pid=$!
		sleep 3 # the guest is restored, or is about to be
		kill -$how "$pid"
		timeout 10 tail --pid="$pid" -f /dev/null
		same "silent-$how-ends" "$(kill -0 "$pid" 2>/dev/null && kill -KILL "$pid" && echo lives)" ''
		wait "$pid" 2>/dev/null
		same "silent-$how-status" $? $((128 + $(kill -l $how)))
		cp --sparse=always whole "$file"
	done
	# A QEMU that does not answer while a guest boots.
	"$vpmu" run --no-snapshot -- true 2>/dev/null &
	pid=$!
	qemu=''
	for ((start = SECONDS; SECONDS - start < 20;)); do
		qemu=$(pgrep -P "$pid" -f 'qemu-system.* -nodefaults') && break # not --version
	done
	kill -STOP "$qemu"
	sleep 1
	kill -TERM "$pid"
	wait "$pid" 2>/dev/null
	same stopped-qemu-status $? 143
	same stopped-qemu-ends "$(outlives "$qemu" && kill -KILL "$qemu" && echo lives)" ''
}

t_cache() {
	local out
	out=$(XDG_CACHE_HOME=/proc/nowhere "$vpmu" run -- true 2>&1)
	same cache-impossible-status $? 125
	has cache-impossible "$out" XDG_CACHE_HOME
	if unshare -n true 2>/dev/null; then
		out=$(XDG_CACHE_HOME=$work/empty unshare -n "$vpmu" run -- true 2>&1)
		same fetch-fails-status $? 125
		has fetch-fails "$out" '--kernel FILE'
	else
		skip fetch-fails "unshare -n: not permitted here"
	fi
}

# As a user without any rights, who has only the cache.
t_user() {
	local id=4321 out
	if [ "$(id -u)" != 0 ]; then
		skip user "all cases run as an ordinary user already"
		return
	fi
	if ! setpriv --reuid="$id" --regid="$id" --clear-groups test -x "$vpmu"; then
		skip user "an ordinary user cannot reach $vpmu"
		return
	fi
	mkdir -p home/.cache/vpmu home/w
	cp -a "${XDG_CACHE_HOME:-$HOME/.cache}"/vpmu/kernel-* home/.cache/vpmu/
	cp -aL "${VPMU_QEMU:-$("$root"/qemu/build --print)}" qemu
	chown -R "$id:$id" home
	chmod -R a+rX qemu
	out=$(cd home/w && HOME=$work/home XDG_CACHE_HOME='' VPMU_QEMU=$work/qemu \
		setpriv --reuid="$id" --regid="$id" --groups 4000,4001 \
		"$vpmu" run -- sh -c 'id -u; id -g; id -G; echo x >f; mkdir d; : >"$(mktemp)"; cat /root/x 2>/dev/null || echo denied; stat -c %u f; grep Cap[EPB] /proc/self/status | sort -u -k2 | wc -l; ls /sys/kernel/tracing/events/sched/sched_switch/id' 2>&1)
	same user "$out" $'4321\n4321\n4321 4000 4001\ndenied\n4321\n2\n/sys/kernel/tracing/events/sched/sched_switch/id'
	same user-file "$(stat -c %u:%g:%s home/w/f)" "$id:$id:2"
}

t_terminal() {
	python3 "$root/tests/vm/terminal.py" "$vpmu"
}

TMPDIR_OF=$work
for t in usage dry_run streams large closed_stdout lines stdin_rest status signals timeout environment \
		perf counters gdb qmp console qemu_arg monitor stats kvm_error directories full memory full_share write two killed no_network network leftovers clock snapshot spoilt cache user \
		terminal; do
	[[ $t == *$only* ]] && "t_$t"
done
exit 0
