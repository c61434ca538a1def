#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# vpmu compare: regressions and harmless differences, JUnit's form, invalid files.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
vpmu=${VPMU_BUILD:-$PWD/build}/vpmu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

counts() { # FILE VALUE EVENT...: as perf stat -x, writes them
	local file=$1
	shift
	echo '# started on Thu Jan  1 00:00:00 1970' >"$file"
	while [ $# -gt 0 ]; do
		echo "$1,,$2,1000,100.00,," >>"$file"
		shift 2
	done
}
gives() { # NAME STATUS WORDS ARGUMENT...
	local name=$1 want=$2 words=$3 out status=0
	shift 3
	out=$("$vpmu" compare "$@" 2>&1) || status=$?
	if [ $status = "$want" ] && [[ $out == *$words* ]]; then
		echo "ok $name"
	else
		echo "not ok $name: status $status: $out"
	fi
}
counts base 1000000 instructions:u 2000 'branches:u' 18446744073709551615 big:u
counts more 1000001 instructions:u 2000 'branches:u' 18446744073709551615 big:u
counts less 999999 instructions:u 2000 'branches:u' 7 big:u
counts none '<not counted>' instructions:u 2000 'branches:u' 7 big:u
counts few 1000000 instructions:u
gives same 0 'ok       instructions:u: 1000000' base base
gives 'one more' 1 'FAIL     instructions:u: grew by 1, from 1000000 to 1000001' base more
gives 'one more, allowed' 0 '' --allow 0.001 base more
gives less 0 'a new baseline' base less
gives 'not counted' 1 'FAIL     instructions:u: not counted' base none
gives 'no baseline' 1 'not counted in the baseline' none base
gives missing 1 'FAIL     branches:u: missing' base few
gives 'no such file' 125 'perf stat -x, -o nothing writes one' base nothing

# Rows that are no counts, or not of what they are compared with.
counts zero 0 instructions:u 2000 'branches:u' 7 big:u
counts zeros 0 instructions:u
gives 'a 0 that was counted before' 1 'FAIL     instructions:u: 0, from 1000000' base zero
gives 'a 0 as before' 0 'ok       instructions:u: 0' zeros zeros
gives 'more than a 0' 1 'grew by 1000000, from 0' zeros base
sed 's/^1000000,.*/900000,,instructions:u,1000,66.67,,/' base >estimate
gives estimate 1 'FAIL     instructions:u: an estimate, counted for 66.67 % of the time' base estimate
gives 'estimate, allowed' 1 'an estimate' --allow 50 base estimate
gives 'estimate in the baseline' 1 'an estimate in the baseline' estimate base
counts two 1000000 instructions:u 10 instructions:u
counts other 5 instructions:u 500000 instructions:u
gives 'two programs' 125 'two:3: found a second row of instructions:u' two other
gives 'a second row' 125 'other:3: found a second row of instructions:u' zeros other
echo '5,,instructions:u' >short
gives 'a row cut off' 125 'short:1: found no' short base
echo '5,,instructions:u,1000' >short
gives 'no share' 125 'short:1: found no share' short base
# perf stat -r has the variance before the time; slashes hold commas.
echo '1000001,,instructions:u,0.05%,1000,100.00,,' >repeated
gives 'repeated' 1 'grew by 1, from 1000000' base repeated
echo '1000001,,instructions:u,0.05%,1000,50.00,,' >repeated
gives 'repeated estimate' 1 'counted for 50.00 %' base repeated
counts slashes 5 cpu/event=0xc4,umask=1/u 6 cpu/event=0xc4,umask=2/u
gives 'commas in names' 0 'ok       cpu/event=0xc4,umask=2/u: 6' slashes slashes

echo text >text
gives 'another file' 125 'text:1: found no count' base text
echo 1.5,msec,task-clock,1 >clock
gives 'no count' 125 "found '1.5', needed a whole number" clock base
gives 'a bad allowance' 125 '--allow -1' --allow -1 base base
"$vpmu" compare --junit j.xml base more >/dev/null
if python3 -c '
import xml.etree.ElementTree as x
s = x.parse("j.xml").getroot()
assert [(c.get("name"), [f.get("message") for f in c]) for c in s] == [
	("instructions:u", ["grew by 1, from 1000000 to 1000001"]), ("branches:u", []), ("big:u", [])]
' 2>errors; then echo 'ok junit'; else echo "not ok junit: $(tail -n 1 errors)"; fi
