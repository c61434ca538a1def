#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 5400
#
# A budget of instructions in CI: a program with one instruction more in its loop is
# caught each time, the unchanged one never; SOAK runs each fifty times. vpmu bench does it for
# a file of commands, also by the files for GitHub, GitLab and Kubernetes, and for pull requests.
# t-bundle.sh executes the first two with a bundle.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
work=$(mktemp -d "$TMPDIR/ci.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
times=${SOAK:+50}
times=${times:-3}

cat >app.S <<'END'
	.globl _start
_start:	mov $100000, %ecx
	.globl work
work:	add $1, %eax
#ifdef GROWN
	nop
#endif
	dec %ecx
	jnz work
	mov $60, %eax
	xor %edi, %edi
	syscall
END
cc -nostdlib -static -Wl,--build-id=none app.S -o app &&
	cc -DGROWN -nostdlib -static -Wl,--build-id=none app.S -o grown || exit 1

# shellcheck disable=SC2016 # expanded in the guest
out=$("$VPMU_BUILD/vpmu" run -- sh -c '
	count() { perf stat -x, -e instructions:u,branches:u -o "$1" "./$2"; }
	count baseline app
	for i in app grown; do perf record -q -e instructions:u -c 1000 -o $i.data ./$i; done
	for i in $(seq "$1"); do count "app.$i" app; count "grown.$i" grown; done' \
	sh "$times" 2>&1 </dev/null) || { echo "not ok counted: $(tail -n 1 <<<"$out")" && exit 1; }

# 1 + 3 * 100000 + 3; the system call that ends it is a branch, too.
found=$(awk -F, '/^[0-9]/ { print $1 }' baseline | paste -sd' ')
case_of baseline "$([ "$found" = '300004 100001' ] || echo "$found")"
alarms=0 caught=0
for i in $(seq "$times"); do
	"$VPMU_BUILD/vpmu" compare baseline "app.$i" >"app.$i.log" || alarms=$((alarms + 1))
	"$VPMU_BUILD/vpmu" compare baseline "grown.$i" >"grown.$i.log" && continue
	grep -q 'instructions:u: grew by 100000, ' "grown.$i.log" && grep -q '^ok .*branches:u' "grown.$i.log" &&
		caught=$((caught + 1))
done
case_of "no false alarm in $times runs" "$([ $alarms = 0 ] || echo "$alarms, as $(grep -h FAIL app.*.log | head -n 1)")"
case_of "caught $times of $times" "$([ $caught = "$times" ] || echo "$caught")"
"$VPMU_BUILD/vpmu" compare --base-profile app.data --now-profile grown.data baseline grown.1 >function.log
case_of 'the function that grew' "$(grep -qx 'grew     instructions:u: work, by 100000, from 300000 to 400000' function.log ||
	cat function.log)"

# vpmu bench: a dynamic program, and those two, in one file; parts of it; what is not counted.
seq 1000 -1 1 >numbers
cat >bench <<'END'
# NAME: COMMAND
sort: sort -n numbers
app: ./app
quoted name: sh -c 'exit $((1 - 1))' "a b"
END
bench() { "$VPMU_BUILD/vpmu" bench "$@" </dev/null >bench.log 2>&1; }
bench --update -e instructions:u,branches:u bench
case_of 'bench, a baseline' "$(diff <(grep -A 2 ': app' bench.baseline) - <<'END' || shown bench.log
# vpmu bench: app
300004,,instructions:u,0,100.00,,
100001,,branches:u,0,100.00,,
END
)"
wrong=''
for i in $(seq "$times"); do
	A_LONG_VARIABLE=$(seq "$i") bench -e instructions:u,branches:u bench || wrong+=$(grep FAIL bench.log)
done
case_of "bench, $times of $times the same, in another environment" "$wrong"
sed -i 's/\.\/app/.\/grown/' bench
bench -e instructions:u,branches:u --markdown bench.md bench
status=$?
case_of 'bench, more' "$([ $status = 1 ] && [ "$(grep -c ^FAIL bench.log)" = 1 ] &&
	grep -q 'FAIL     app: instructions:u: grew by 100000, from 300004' bench.log &&
	grep -q '| :x: | app: instructions:u | 300004 | 400004 |' bench.md || shown bench.log)"
sed -i 's/\.\/grown/.\/app/' bench
for part in 1 2; do bench -e instructions:u,branches:u --shard $part/2 -o "part.$part" bench || cat bench.log; done
cat part.1 part.2 >parts
"$VPMU_BUILD/vpmu" compare bench.baseline parts >parts.log
case_of 'bench, parts' "$([ $? = 0 ] && [ "$(grep -c ^ok parts.log)" = 6 ] && ! grep -q ': app' part.1 || shown parts.log)"

# A runner executes action.yml, GitLab's component and the Indexed Job. Its apt-get and git are
# left out: the packages are here, and so is vpmu.
if ! python3 -c 'import yaml' 2>/dev/null; then
	echo 'skip runners: no YAML in Python: apt-get install python3-yaml'
else
	mkdir bin runner
	ln -s "$VPMU_BUILD/vpmu" bin/
	printf '#!/bin/sh\nexit 0\n' | tee bin/apt-get >bin/git
	chmod +x bin/apt-get bin/git
	steps() { # KIND FILE [INPUT=VALUE...]
		PATH=$work/bin:$PATH GITHUB_ACTION_PATH=$VPMU_ROOT GITHUB_STEP_SUMMARY=$work/summary RUNNER_TEMP=$work/runner \
			CI_PROJECT_DIR=$work "$VPMU_ROOT/tests/vm/ci_steps.py" "$@" >steps.log 2>&1 </dev/null
	}
	both=instructions:u,branches:u
	steps github "$VPMU_ROOT/action.yml" file=bench events=$both
	case_of 'action, the same' "$([ $? = 0 ] && [ "$(grep -c '^| .*app: ' summary)" = 2 ] || shown steps.log)"
	counts=$(sed -n 's/^counts=//p' steps.log) junit=$(sed -n 's/^junit=//p' steps.log)
	case_of 'action, its outputs' "$("$VPMU_BUILD/vpmu" compare bench.baseline "$counts" 2>&1 | grep -v ^ok
		python3 -c 'import sys, xml.etree.ElementTree as x; x.parse(sys.argv[1])' "$junit" 2>&1)"
	sed -i 's/\.\/app/.\/grown/' bench
	rm summary
	steps github "$VPMU_ROOT/action.yml" file=bench events=$both shard=2/2
	status=$?
	case_of 'action, more' "$([ $status = 1 ] && grep -q '^::error.*app: instructions:u' steps.log &&
		grep -q 'app: instructions:u | 300004 | 400004' summary && ! grep -q sort summary || shown steps.log)"
	sed "s,/opt/vpmu,$VPMU_ROOT,g; s,CACHE_HOME: .*,CACHE_HOME: ${XDG_CACHE_HOME:-$HOME/.cache}," \
		"$VPMU_ROOT/templates/bench.yml" >component.yml
	# The matrix, of two machines with a command each; its last job compares the counts of both.
	mkdir project
	cp app grown numbers project/
	grep -v quoted bench >project/bench
	sed '/quoted/,$d' bench.baseline >project/bench.baseline
	echo 'all:' >project/Makefile
	sed 's/\[1, 2, 3, 4\]/[1, 2]/; s,}}/4,}}/2,; '"s/^\( *\)file: bench/&\n\1events: $both/" \
		"$VPMU_ROOT/examples/ci/github-matrix.yml" >matrix.yml
	(cd project && steps workflow ../matrix.yml)
	status=$?
	case_of 'matrix, more' "$([ $status = 1 ] && grep -E '^(count [12]|compare) ended' project/steps.log |
		diff <(printf '%s ended with %s\n' 'count 1' 0 'count 2' 1 compare 1) - || tail -n 20 project/steps.log)"
	case_of 'matrix, compared' "$(sed -n '1,/^count 2 ended/d; s/ (.*//; s/\(sort: .*:u\): .*/\1/; /^ok\|^FAIL/p' \
		project/steps.log | diff <(printf '%-8s %s:u%s\n' ok 'sort: instructions' '' ok 'sort: branches' '' \
			FAIL 'app: instructions' ': grew by 100000, from 300004 to 400004' ok 'app: branches' ': 100001') -)"
	CI_NODE_INDEX=2 CI_NODE_TOTAL=2 steps gitlab component.yml file=bench repository=here build=: machines=2 events=$both
	status=$?
	case_of 'component, more' "$([ $status = 1 ] && grep -q ':x: | app: instructions:u | 300004 | 400004' vpmu.md &&
		grep -q '<failure' vpmu.xml && ! grep -q sort vpmu.csv || shown steps.log)"
	sed -i 's/\.\/grown/.\/app/' bench
	sed -i '/branches:u/d' bench.baseline
	export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache} PODS=2
	for pod in 0 1; do
		JOB_COMPLETION_INDEX=$pod steps kubernetes "$VPMU_ROOT/examples/ci/kubernetes.yml" || cat steps.log
	done
	cat counts.? >counts
	"$VPMU_BUILD/vpmu" compare bench.baseline counts >steps.log 2>&1
	case_of 'Indexed Job' "$([ $? = 0 ] && [ "$(grep -c ^ok steps.log)" = 3 ] && grep -q app counts.1 || shown steps.log)"
fi
echo 'bad: false' >>bench
bench bench
status=$?
case_of 'bench, a command that fails' "$([ $status = 125 ] && grep -q 'vpmu: bad: status 1' bench.log || shown bench.log)"
# Whatever the program, with --repeat: threads, tables by pointers, an interpreter, and the kernel.
cp "$VPMU_ROOT"/tests/repeat/{mutex.c,map.cc,table.py} .
gcc -O1 -pthread -o mutex mutex.c && g++ -O1 -o map map.cc || echo 'not ok programs: they do not compile'
printf '%s\n' 'threads: ./mutex' 'pointers: ./map' 'python: /usr/bin/python3 table.py' >bench
bench --update --repeat -e instructions,instructions:u,cycles bench
case_of 'bench --repeat, a baseline' "$([ "$(grep -c ',,cycles,' bench.baseline)" = 3 ] || shown bench.log)"
wrong=''
for i in $(seq $(((times + 1) / 2))); do
	MORE=$(seq "$i") bench --repeat -e instructions,instructions:u,cycles bench || wrong+=$(grep FAIL bench.log)
done
case_of 'bench --repeat, each the same' "$wrong"
sed -i 's/i < 20000; i++)$/i < 20001; i++)/' map.cc
sed -i 's/range(5000)/range(5001)/' table.py
sed -i 's/i < 20000; i++) {/i < 20001; i++) {/' mutex.c
gcc -O1 -pthread -o mutex mutex.c && g++ -O1 -o map map.cc
bench --repeat -e instructions,instructions:u,cycles bench
status=$?
case_of 'bench --repeat, one turn more of each' "$([ $status = 1 ] && [ "$(grep -c '^FAIL.*instructions:u: grew' bench.log)" = 3 ] || shown bench.log)"

# Pull requests: in a clone of its own, each with one instruction more in a loop of a dynamic
# program of C, of one of Rust that has a table by random hashes, or of Python. The table names
# program, event, growth and function; without the change nothing has grown.
mkdir origin
cat >origin/app.c <<'END'
#include <stdio.h>
static volatile unsigned sum;
__attribute__((noinline)) static void turn_c(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
#ifdef GROWN
		__asm__("nop");
#endif
		sum ^= i;
	}
}
int main(void)
{
	turn_c(100000);
	return puts("done") < 0;
}
END
cat >origin/app.rs <<'END'
use std::collections::HashMap;
#[inline(never)]
fn turn_rust(table: &mut HashMap<u64, u64>, n: u64) {
    for i in 0..n {
        *table.entry(i % 500).or_insert(0) ^= i;
        // unsafe { std::arch::asm!("nop") };
    }
}
fn main() {
    let mut table = HashMap::new();
    turn_rust(&mut table, 50000);
    std::process::exit((table.len() != 500) as i32);
}
END
cat >origin/app.py <<'END'
def turn(n):
    total = 0
    for i in range(n):
        total ^= i
        # total
    return total
turn(100000)
END
printf '%s\n' 'all:' '	gcc -O1 -o app-c app.c' '	! command -v rustc || rustc -O -o app-rust app.rs' >origin/Makefile
printf '%s\n' 'app-*' >origin/.gitignore
printf '%s\n' 'c: ./app-c' 'python: /usr/bin/python3 app.py' >origin/bench
functions=$(printf '%s\n' 'c turn&#95;c' 'python EvalFrame')
if command -v rustc >/dev/null; then
	echo 'rust: ./app-rust' >>origin/bench
	functions+=$'\nrust turn&#95;rust'
fi
repository() { git -C "$1" -c user.name=a -c user.email=a@example.org "${@:2}" >/dev/null 2>&1; }
# In a clone of a branch: leaves bench.log and comment.md.
in_clone() {
	rm -rf clone comment.md
	git clone -q -b "$1" origin clone && make -s -C clone >/dev/null 2>&1 || return 99
	(cd clone && "$VPMU_BUILD/vpmu" bench --repeat --markdown ../comment.md "${@:2}" bench --as /work) >bench.log 2>&1 </dev/null
}
repository origin init -b main
repository origin add .
repository origin commit -m 'The programs'
in_clone main --update --functions || cat bench.log
cp clone/bench.baseline clone/bench.functions origin/
repository origin add .
repository origin commit -m 'The baseline'
repository origin checkout -b request
sed -i 's/#ifdef GROWN/#ifndef GROWN/' origin/app.c
sed -i 's,// unsafe,unsafe,' origin/app.rs
sed -i 's/# total/total/' origin/app.py
repository origin commit -am 'More work'
alarms='' missed=''
for _ in $(seq "$times"); do
	in_clone main || alarms+=$(cat bench.log)
	in_clone request
	[ $? = 1 ] || missed+=$(cat bench.log)
	while read -r language function; do
		grep -q "^| :x: | $language: instructions:u .* grew by [0-9]" comment.md &&
			grep -q "$function" < <(grep -m 1 "^| $language: instructions:u: " comment.md) ||
			missed+="$language: $(cat comment.md)"
	done <<<"$functions"
done
case_of "pull requests, $times of $times without growth" "$alarms"
case_of "pull requests, $times of $times with program, event, growth and function" "$missed"

# A name is only a name; and a signal leaves no file.
# shellcheck disable=SC2016 # a name
printf '%s\n' 'a\nb $HOME: ./app' >bench
bench --update bench
case_of 'bench, a name with marks' "$(grep -qxF '# vpmu bench: a\nb $HOME' bench.baseline || shown bench.log bench.baseline)"
echo "endless: sh -c 'echo >started; tail -f numbers'" >bench
before=$(ls -A . "$TMPDIR")
"$VPMU_BUILD/vpmu" bench bench </dev/null >bench.log 2>&1 &
for _ in $(seq 600); do
	[ ! -e started ] || break
	sleep 0.1
done
case_of 'bench, a command without an end runs' "$([ -e started ] || shown bench.log)"
kill $!
wait $!
rm -f started
case_of 'bench, nothing is left' "$(diff <(echo "$before") <(ls -A . "$TMPDIR") | head -n 3)"
