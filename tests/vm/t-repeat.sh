#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 3000
# takes: 250
#
# vpmu run --repeat: every count and all output of tests/repeat's programs are the same in each
# run, also on a busy machine, in another clone and after another boot of the guest; and what each
# of the measures is for differs without it. TIMES=N runs of each; SOAK=1: 100, and 100 with the
# modelled CPU. tests/vm/t-repeat.sh NAME...: only these programs (heap, heap-uarch, map, ...).
# KEPT=DIR holds the runs against those of an earlier call, which has left its counts there.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
times=${TIMES:-${SOAK:+100}}
times=${times:-2}
chosen=("$@")
work=$(mktemp -d "$TMPDIR/repeat.XXXXXX")
busy=()
# shellcheck disable=SC2317 # called by the trap
leave() {
	[ ${#busy[@]} = 0 ] || kill "${busy[@]}" 2>/dev/null
	rm -rf "$work"
}
trap leave EXIT
vpmu=$VPMU_BUILD/vpmu
events=instructions,instructions:u,instructions:k,cycles,branches
modelled=$events,branch-misses,cache-references,cache-misses,L1-dcache-load-misses,dTLB-load-misses

# The test removes snapshots, so it has a cache of its own.
mkdir -p "$work/cache/vpmu" "$work/tree" "$work/elsewhere/a/b"
if ! kernel=$("$VPMU_ROOT/tools/guest-kernel" 2>"$work/log"); then
	echo "skip repeat: $(tail -n 1 "$work/log")"
	exit 0
fi
cp -a "${XDG_CACHE_HOME:-$HOME/.cache}"/vpmu/kernel-* "$work/cache/vpmu/"
export XDG_CACHE_HOME=$work/cache
cd "$work/tree" || exit 1
cp "$VPMU_ROOT"/tests/repeat/* .
gcc -O1 -o heap heap.c && gcc -O1 -o guest guest.c && g++ -O1 -o map map.cc && gcc -O1 -pthread -o mutex mutex.c || {
	echo 'not ok programs: they do not compile'
	exit 1
}
mkdir made
for i in 0 1 2 3 4 5 6 7 8 9; do echo "int f$i(int x) { return x * $i + 1; }" >made/f$i.c; done
cat >made/Makefile <<'END'
all: $(patsubst %.c,%.o,$(wildcard *.c))
%.o: %.c
	gcc -O1 -c $< -o $@
END

# repeated OPTION... -- COMMAND...: prints its counts and its output, as one line.
repeated() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	timeout -k 10 "${GUEST_SECONDS:-300}" "$vpmu" run --repeat --memory 2G "${options[@]}" -- \
		perf stat -x, -e "$events" "$@" 2>&1 </dev/null | sed -E 's/^([^,]*),[^,]*,([^,]*),.*/\2=\1/' |
		paste -sd' '
}

# same NAME COMMAND...: as often as asked for; each second run of two, and each tenth of many,
# beside two busy processes. A program that leaves files finds them in its second run.
same() {
	local name=$1
	shift
	[[ $1 != ./compiles && $1 != ./inserts ]] || repeated -- "$@" >/dev/null
	equals "$name" -- "$@"
	[ -z "${SOAK:-}" ] || events=$modelled equals "$name-uarch" --uarch on -- "$@"
}
equals() { # NAME OPTION... -- COMMAND...
	local name=$1 kept=${KEPT:+$KEPT/$1} first='' found wrong='' n others=0
	shift
	[ ${#chosen[@]} = 0 ] || [[ " ${chosen[*]} " = *" $name "* ]] || return 0
	[ ! -s "$kept" ] || first=$(<"$kept")
	for ((n = 1; n <= times; n++)); do
		if [ $((n % (times > 2 ? 10 : 2))) = 0 ]; then
			for _ in 1 2; do timeout 300 sh -c 'while :; do :; done' & busy+=($!); done
		fi
		found=$(repeated "$@")
		[ ${#busy[@]} = 0 ] || { kill "${busy[@]}"; wait "${busy[@]}"; busy=(); } 2>/dev/null
		[ -n "$first" ] || first=$found
		[[ $found = *instructions:k=[1-9]* ]] || wrong="no counts: $found"
		[ "$found" != "$first" ] || continue
		others=$((others + 1))
		wrong=${wrong:-run $n: $found, not $first}
	done
	[ -z "$kept" ] || [ -n "$wrong" ] || echo "$first" >"$kept"
	case_of "$name" "${wrong:+$others of $times differ, $wrong}"
}
if_there() { # PROGRAM NAME COMMAND...
	if command -v "$1" >/dev/null; then
		same "${@:2}"
	else
		echo "skip $2: there is no $1"
	fi
}

same heap ./heap
same map ./map
same mutex ./mutex
same forks ./forks
same compiles ./compiles
same samples ./samples
if_there sqlite3 inserts ./inserts
if_there /usr/bin/python3 python /usr/bin/python3 table.py
# nested NAME OPTION...: a guest's guest, which has run to its end and counted exactly.
nested() {
	local name=$1 out
	shift
	equals "$name" --nested "$@" -- ./guest
	[ ${#chosen[@]} = 0 ] || [[ " ${chosen[*]} " = *" $name "* ]] || return 0
	out=$("$vpmu" run --repeat --nested "$@" -- perf stat -x, -e instructions:G ./guest 2>&1 </dev/null)
	case_of "$name/exact" "$([[ $out = *'300 left by OUT'* && $out = *6000901,,instructions:G* ]] || echo "$out")"
}
nested nested-intel
nested nested-amd --cpu EPYC-Milan
if [ -n "${SOAK:-}" ]; then
	! command -v rustc >/dev/null || rustc -O table.rs
	! command -v go >/dev/null || go build -o table-go table.go
	! command -v javac >/dev/null || javac Threads.java
	if_there node node node table.js
	if_there rustc rust ./table
	if_there go go ./table-go
	if_there javac java java -cp . Threads
fi
[ ${#chosen[@]} = 0 ] || exit 0

# All that the modelled CPU counts, of the kernel as well.
model() {
	local events=instructions,instructions:k,cycles,cycles:k,branch-misses,cache-references,cache-misses
	events+=,L1-dcache-load-misses,L1-icache-load-misses,dTLB-load-misses,iTLB-load-misses
	repeated --uarch on -- ./map
}
first=$(model)
second=$(model)
case_of 'the modelled CPU' "$([[ $first = *cycles:k=[1-9]* && $first = *iTLB-load-misses=* ]] && [ "$first" = "$second" ] ||
	echo "$second, not $first")"

# A run is no function of these.
base=$(repeated --as /work -- ./map)
equal() { # NAME OUTPUT
	case_of "$1" "$([ "$2" = "$base" ] || echo "$2, not $base")"
}
equal 'another variable of ours' "$(MORE=$RANDOM$RANDOM repeated --as /work -- ./map)"
equal 'limits, umask and niceness of ours' "$(ulimit -S -s 4096; umask 077; renice -n 3 $BASHPID >/dev/null; repeated --as /work -- ./map)"
equal 'a seed that is the default' "$(repeated --seed 0 --as /work -- ./map)"

# The guest's boot: its memory and what the saved state has from the guest's clock on are the
# same to the byte. What comes before are the host's clock, and empty rounds of saving.
booted() {
	rm -f "$work"/cache/vpmu/snapshot-*
	"$vpmu" run --repeat --memory 512M -- true >/dev/null 2>&1 </dev/null
	python3 -c 'import hashlib, sys
file = open(sys.argv[1], "rb")
file.seek(1 << 20)
memory = hashlib.sha256()
for _ in range(512):
    memory.update(file.read(1 << 20))
state = file.read()
print(memory.hexdigest(), hashlib.sha256(state[state.index(b"timer/icount"):]).hexdigest())' "$work"/cache/vpmu/snapshot-*
}
first=$(booted) wrong=''
for ((n = 1; n <= times + 2; n++)); do
	[ "$(booted)" = "$first" ] || wrong="boot $n differs"
done
case_of 'boots' "$([ -n "$first" ] || echo 'no snapshot')$wrong"
rm -f "$work"/cache/vpmu/snapshot-*
equal 'after another boot' "$(repeated --as /work -- ./map)"
cp -a map forks "$work/elsewhere/a/b/"
equal 'another place' "$(cd "$work/elsewhere/a/b" && repeated --as /work -- ./map)"
slow=$("$vpmu" run --repeat --memory 2G --as /work -- perf stat -x, -e $events ./map 2>&1 </dev/null | { sleep 3; cat; } |
	sed -E 's/^([^,]*),[^,]*,([^,]*),.*/\2=\1/' | paste -sd' ')
equal 'a slow reader' "$slow"

# A directory that was filled in another order, and files with other inodes, of another time, and
# with another link elsewhere, as perf's cache of what it has sampled makes of libraries.
lists() { "$vpmu" run --repeat --as /work "$@" -- sh -c 'ls -U; stat -c "%n %i %b %h %X %Z" *' 2>&1 </dev/null; }
fill() { for i in "$@"; do echo "$i" >"$i"; touch -d 2020-01-01 "$i"; done; }
mkdir "$work"/{one,other}
(cd "$work/one" && fill $(seq 1 60))
(cd "$work/other" && fill $(seq 60 -1 1) && ln 7 "$work/link")
one=$(cd "$work/one" && lists) other=$(cd "$work/other" && lists)
case_of 'inodes, links and the order of directories' "$([[ $one = *60*60* ]] || echo "$one"
	diff <(echo "$one") <(echo "$other") | head -n 3)"
links=$(cd "$work/other" && "$vpmu" run --repeat -- sh -c '
	ln 7 a; ln 7 b; rm a; stat -c %h 7; rm b; stat -c %h 7; echo >c; stat -c %h c; rm c' 2>&1 </dev/null)
case_of 'links that the guest makes' "$([ "$links" = $'2\n1\n1' ] || echo "$links")"

# Standard input from a pipe and a file, and output to a terminal and a file.
input() { rm -f counts; "$vpmu" run --repeat -o /dev/null -- perf stat -x, -e $events -o counts sort -n 2>&1; cat counts; }
seq 5000 -1 1 >numbers
piped=$(input <numbers | cat) filed=$(seq 5000 -1 1 | input)
case_of 'standard input' "$([[ $piped = *5000*instructions:k* ]] && [ "$piped" = "$filed" ] || echo "$(tail -n 5 <<<"$filed"), not $(tail -n 5 <<<"$piped")")"
rm -f counts out
"$vpmu" run --repeat -- perf stat -x, -e $events -o counts ./heap >out </dev/null
filed=$(cat counts)
rm counts out
script -qec "$vpmu run --repeat -- perf stat -x, -e $events -o counts ./heap" /dev/null >/dev/null </dev/null
case_of 'standard output' "$([ -n "$filed" ] && [ "$filed" = "$(cat counts)" ] || echo "$(cat counts), not $filed")"

# Without each of the measures.
differs() { # NAME OUTPUT
	case_of "$1 matters" "$([[ -n $2 && $2 != "$base" ]] || echo "the same: $2")"
}
differs 'the seed' "$(repeated --seed 1 --as /work -- ./map)"
differs 'the environment' "$(repeated --env MORE=1 --as /work -- ./map)"
differs 'the path' "$(repeated --as /work-with-a-longer-name -- ./map)"
turns() { "$vpmu" run --repeat --seed "$1" -- ./mutex 2>&1 </dev/null; }
case_of "a seed changes the threads' turns" "$([ "$(turns 1)" != "$(turns 2)" ] || echo 'it does not')"
raw=(--qemu-arg -set --qemu-arg fsdev.share0.repeatable=off)
one=$(cd "$work/one" && lists "${raw[@]}") other=$(cd "$work/other" && lists "${raw[@]}")
case_of 'the export matters' "$([ "$one" != "$other" ] || echo 'the same inodes and order')"
plain() {
	"$vpmu" run -- perf stat -x, -e instructions:k,cycles ./map 2>&1 </dev/null
}
case_of 'time matters' "$([ "$(plain)" != "$(plain)" ] || echo 'two runs with the time of the host have the same counts')"
clock=$("$vpmu" run --repeat -- sh -c 'date +%F; hostname; sleep 3600' </dev/null 2>&1)
case_of "the guest's date, name and sleep" "$([ "$clock" = $'2030-01-01\nvpmu' ] || echo "$clock")"

# Where two runs part: one finds what the other has left.
parts() { "$vpmu" run --repeat --twice -- sh -c 'cat left >/dev/null 2>&1; echo x >>left; exit 3' 2>&1 </dev/null; }
rm -f left
out=$(parts)
status=$?
case_of 'two runs that part' "$([ $status = 125 ] && [[ $out = *'the two runs part after'*'1st: '*'2nd: '* ]] || echo "status $status, $out")"
out=$(seq 9 | "$vpmu" run --repeat --twice -- sh -c 'sort -n; exit 3' 2>&1)
status=$?
case_of 'two runs that do not' "$([ $status = 3 ] && [[ $out = *'both runs are the same: '[0-9]* ]] || echo "status $status, $out")"

# Whoever ends vpmu ends its recorded run, too.
"$vpmu" run --repeat --twice -- sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null &
parent=$! child=''
for _ in $(seq 100); do
	child=$(pgrep -P $parent) && break
	sleep 0.1
done
kill $parent
wait $parent 2>/dev/null
for _ in $(seq 100); do
	kill -0 "$child" 2>/dev/null || break
	sleep 0.1
done
case_of 'a recorded run that is ended' "$([ -n "$child" ] || echo 'it has no child'
	! kill -0 "$child" 2>/dev/null || echo "$child goes on")"

refused() { # NAME WORDS OPTION...
	local status=0 out
	out=$("$vpmu" run "${@:3}" -- true 2>&1 </dev/null) || status=$?
	case_of "refused: $1" "$([ $status = 125 ] && [[ $out = *"$2"* ]] || echo "status $status, $out")"
}
refused 'two CPUs' 'needed is one CPU' --repeat --smp 2
refused 'a network' 'does not repeat' --repeat --network
refused 'the log of a boot' 'does not repeat' --repeat --verbose
refused 'twice alone' 'needs --repeat' --twice
refused 'a seed alone' 'needs --repeat' --seed 1
refused 'a path of the kernel' 'needed is an absolute path' --repeat --as /proc/x
out=$("$vpmu" run --repeat --root -- /usr/bin/python3 -c 'import os; os.pwrite(os.open("/dev/port", os.O_RDWR), b"\1", 0x505); input()' </dev/null 2>&1)
case_of 'a guest that stops itself' "$([[ $out = *'stopped its own machine'* ]] || echo "$out")"
# A full disk: the booted guest cannot be kept.
mkdir -m 700 "$work/full"
if unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016 # of the inner shell
	out=$(unshare -m sh -c 'mount -t tmpfs -o size=80M,mode=0700 none "$1/full" && mkdir -m 700 "$1/full/vpmu" &&
		cd "$1/cache/vpmu" && cp -a "$3" $(find . -type l -lname "$3") "$1/full/vpmu/" && cd / &&
		XDG_CACHE_HOME=$1/full "$2" run --repeat -- true; echo "status $?"; ls "$1/full/vpmu"' sh \
		"$work" "$vpmu" "${kernel##*/}" 2>&1 </dev/null)
	case_of 'a full disk' "$([[ $out = *'cannot be kept in '*'status 125'* && $out != *snapshot* ]] || echo "$out")"
else
	echo 'skip a full disk: needed are the rights to mount'
fi
out=$(head -c 20M /dev/zero | "$vpmu" run --repeat -- true 2>&1)
case_of 'refused: more input than it takes' "$([[ $out = *'at most 16M'* ]] || echo "$out")"
exit 0
