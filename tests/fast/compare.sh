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
gives 'what is allowed' 1 '(0.0001 %, of which 5e-05 % is allowed)' --allow 0.00005 base more
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
gives 'two programs' 1 'FAIL     instructions:u, row 2: grew by 499990, from 10 to 500000' two other
gives 'a second row' 1 'FAIL     instructions:u, row 2: a further row of this name' few other
gives 'another event' 0 'new      branches:u: 2000, which the baseline does not have' few base
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
gives 'no count' 125 'clock: found no count' clock base
echo '1.5,,instructions:u,1000,100.00,,' >fraction
gives 'a fraction' 125 "fraction:1: found '1.5', needed a whole number" fraction base
gives 'a bad allowance' 125 '--allow -1' --allow -1 base base
"$vpmu" compare --junit j.xml base more >/dev/null
if python3 -c '
import xml.etree.ElementTree as x
s = x.parse("j.xml").getroot()
assert [(c.get("name"), [f.get("message") for f in c]) for c in s] == [
	("instructions:u", ["grew by 1, from 1000000 to 1000001 (0.0001 %, of which 0 % is allowed)"]),
	("branches:u", []), ("big:u", [])]
' 2>errors; then echo 'ok junit'; else echo "not ok junit: $(tail -n 1 errors)"; fi

# perf stat writes this for people: two programs, numbers in groups, an estimate, times.
people() { # INSTRUCTIONS BRANCHES
	cat <<-END
	# started on Wed Nov 25 12:48:31 2026


	 Performance counter stats for './one a':

	             33.19 msec task-clock                       #    0.850 CPUs utilized
	         $1      instructions                     #    1.00  insn per cycle
	           $2      branches                         #  271.950 M/sec      ${3:-}
	   <not supported>      branch-misses

	       0.039031602 seconds time elapsed

	       0.030300000 seconds user

	 Performance counter stats for './two' (2 runs):

	            504361      instructions                              ( +-  0.02% )

	            0.1970 +- 0.0581 seconds time elapsed  ( +- 29.49% )
	END
}
people 41,117,572 9025571 >said
people 41,117,573 9,025,571 >said-more
people 41117572 9025571 '(66.67%)' >said-part
sed '/branch-misses/d' said >said-all
gives 'for people' 0 'ok       ./two: instructions: 504361' said-all said
gives 'for people, more' 1 'FAIL     ./one a: instructions: grew by 1, from 41117572 to 41117573' said-all said-more
gives 'for people, an estimate' 1 'FAIL     ./one a: branches: an estimate, counted for 66.67 % of' said-all said-part
gives 'for people, not counted' 1 'FAIL     ./one a: branch-misses: not counted in the baseline' said said
gives 'nothing for people' 125 'found no count' <(grep -v '[0-9]  *\(instr\|bran\)\|<not' said) said

object() { # VALUE EVENT SHARE
	echo "{\"counter-value\" : \"$1\", \"unit\" : \"\", \"event\" : \"$2\", \"event-runtime\" : 9, \"pcnt-running\" : $3, \"metric-value\" : 0.0}"
}
{
	object 1000000.000000 instructions:u 100.00
	object 2000.000000 branches:u 100.00
	echo '{"counter-value" : "29.305076", "unit" : "msec", "event" : "task-clock", "pcnt-running" : 100.00}'
	echo '{"metric-value" : 5.0, "metric-unit" : "tma"}'
} >json
gives JSON 0 'ok       branches:u: 2000' json json
gives 'JSON, held to a list' 1 'FAIL     big:u: missing' base json
gives 'JSON, an estimate' 1 'counted for 50.00 %' json <(object 1000000.000000 instructions:u 50.00)
gives 'JSON, not counted' 1 'instructions:u: not counted' json <(object '<not counted>' instructions:u 0.00)
gives 'JSON cut off' 125 ':1: found ' json <(object 1 x 100.00 | head -c 40)
gives 'JSON, a fraction' 125 "found '0.5', needed a whole number" json <(object 0.5 instructions:u 100.00)

# Forms for a pull request; what a program's name has is not taken for theirs.
sed 's/one a/one|<b>/' said-all >named
sed 's/one a/one|<b>/' said-more >named-more
"$vpmu" compare --markdown m.md --json j.json --github named named-more >github
grep -qF '| :x: | ./one&#124;&#60;b&#62;: instructions | 41117572 | 41117573 | grew by 1' m.md &&
	echo 'ok markdown' || echo "not ok markdown: $(cat m.md)"
grep -qx '::error title=vpmu::./one|<b>: instructions: grew by 1, .* (2.4.*e-06 %25, of which 0 %25 is allowed)' github &&
	echo 'ok annotations' || echo "not ok annotations: $(cat github)"
if python3 -c '
import json
r = json.load(open("j.json"))
assert r["ok"] is False and r["functions"] == []
assert [(c["verdict"], c["baseline"], c["now"]) for c in r["counts"]] == [
	("fail", "41117572", "41117573"), ("ok", "9025571", "9025571"), ("new", None, None),
	("ok", "504361", "504361")] or r["counts"]
' 2>errors; then echo 'ok JSON form'; else echo "not ok JSON form: $(tail -n 1 errors)"; fi

# Functions, by what perf script prints for a profile: those that grew by two periods at least,
# and by a quarter of the most.
mkdir bin
cat >bin/perf <<'END'
#!/bin/sh
while [ "$1" != -i ]; do shift; done
while read -r n function; do
	for _ in $(seq "$n"); do echo "  1000 instructions:u:  401000 $function"; done
done <"$2"
END
chmod +x bin/perf
printf '%s\n' '10 most (/bin/a)' '10 large (/bin/a)' '10 small (/bin/a)' '10 less (/bin/a)' '1 [unknown] (/lib/b)' >base.data
printf '%s\n' '30 most (/bin/b)' '15 large (/bin/a)' '14 small (/bin/a)' '4 less (/bin/a)' '7 [unknown] (/opt/b)' \
	'1 one (/bin/a)' '6 f(int) (.x) (/bin/a)' '6 a::operator()' >now.data
out=$(PATH=$PWD/bin:$PATH "$vpmu" compare --base-profile base.data --now-profile now.data --json j.json base more | grep ^grew)
[ "$out" = 'grew     instructions:u: most, by 20000, from 10000 to 30000
grew     instructions:u: [unknown] of b, by 6000, from 1000 to 7000
grew     instructions:u: a::operator(), by 6000, from 0 to 6000
grew     instructions:u: f(int) (.x), by 6000, from 0 to 6000
grew     instructions:u: large, by 5000, from 10000 to 15000' ] && echo 'ok functions' || echo "not ok functions: $out"
if python3 -c '
import json
f = json.load(open("j.json"))["functions"]
assert f[0] == {"count": "instructions:u", "name": "most", "baseline": 10000, "now": 30000}, f
' 2>errors; then echo 'ok functions in JSON'; else echo "not ok functions in JSON: $(tail -n 1 errors)"; fi
out=$(PATH=$PWD/bin:$PATH "$vpmu" compare --base-profile base.data --now-profile now.data --github base more | grep ^::error)
[[ $out == *'instructions:u: grew by '*'; most grew by 20000' ]] && echo 'ok a function in an annotation' ||
	echo "not ok a function in an annotation: $out"
gives 'a full disk' 125 '--json /dev/full: No space left on device' --json /dev/full base base
gives 'one profile' 125 'need each other' --base-profile x base base
gives 'no profile' 125 'x: perf script cannot read it' --base-profile x --now-profile y base more
