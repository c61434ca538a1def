#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# vpmu flame: the boxes of call chains to scale, hostile names, invalid and endless profiles.
# The perf of this test prints the profile itself, which is the text of perf script.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
vpmu=${VPMU_BUILD:-$PWD/build}/vpmu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

mkdir bin
cat >bin/perf <<'END'
#!/bin/sh
echo "$*" >arguments
while [ "$1" != -i ]; do shift; done
[ "$2" = huge ] || exec cat "$2"
exec python3 -c '
for i in range(75000):
    print("app 1 cycles: \n\t1 f%d%s (/app)\n" % (i, "x" * 4000))'
END
chmod +x bin/perf
PATH=$PWD/bin:$PATH

sample() { # COMM PERIOD EVENT FUNCTION...: from the innermost on
	printf '%s %10s %s: \n' "$1" "$2" "$3"
	shift 3
	[ $# = 0 ] || printf '\t          40100c %s (/bin/app)\n' "$@"
	echo
}

cat >boxes.py <<'END'
import sys
import xml.etree.ElementTree as xml
SVG = "{http://www.w3.org/2000/svg}"

def boxes(path):
    """The boxes of a picture: level, left edge, width, text under the pointer, text inside, colour."""
    found = []
    picture = xml.parse(path).getroot()
    for box in picture.findall(SVG + "svg"):
        level = (int(picture.get("height")) - 16 - int(box.get("y"))) // 16
        text = box.find(SVG + "text")
        found.append((level, float(box.get("x")), float(box.get("width")), box.find(SVG + "title").text,
                      None if text is None else text.text, box.find(SVG + "rect").get("fill")))
    return picture, sorted(found)

def same(found, wanted):
    if found != wanted:
        sys.exit(f"found {found}, not {wanted}")
END

draws() { # NAME PROFILE OPTION... <<<PYTHON: what is to hold of the picture
	local name=$1 profile=$2 why code
	shift 2
	code=$(cat)
	why=$("$vpmu" flame "$@" "$profile" 2>&1 >picture.svg) && why=$(python3 -c "from boxes import *
picture, found = boxes('picture.svg')
$code" 2>&1 | tail -n 1)
	case_of "$name" "$why"
}
refuses() { # NAME WORDS ARGUMENT...
	local name=$1 words=$2 out status=0
	shift 2
	out=$("$vpmu" flame "$@" 2>&1 >out) || status=$?
	case_of "$name" "$([ $status = 125 ] && [[ $out == *"$words"* ]] && [ ! -s out ] || echo "status $status: $out")"
}

{
	sample app 1000 cycles:u hash turn _start
	sample app 3000 cycles:u 'swap(int, char*)' turn _start
	sample app 500 cycles:u hash turn _start
	sample 'my sh' 500 cycles:u _start
	sample app 1000 cycles:u
} >profile
draws 'to scale' profile <<'END'
same([b[:5] for b in found], [
    (0, 0, 1200, "all: 6000 cycles:u (100.00 %)", "all"),
    (1, 0, 1100, "app: 5500 cycles:u (91.67 %)", "app"),
    (1, 1100, 100, "my sh: 500 cycles:u (8.33 %)", "my sh"),
    (2, 0, 900, "_start: 4500 cycles:u (75.00 %)", "_start"),
    (2, 1100, 100, "_start: 500 cycles:u (8.33 %)", "_start"),
    (3, 0, 900, "turn: 4500 cycles:u (75.00 %)", "turn"),
    (4, 0, 300, "hash: 1500 cycles:u (25.00 %)", "hash"),
    (4, 300, 600, "swap(int, char*): 3000 cycles:u (50.00 %)", "swap(int, char*)")])
same(picture.get("height"), "112")
same(picture.find(SVG + "title").text, "cycles:u")
END
case_of 'the same bytes again' "$("$vpmu" flame profile -o again.svg 2>&1; cmp picture.svg again.svg 2>&1)"
case_of self-contained "$(sed 's,http://www.w3.org/2000/svg,,' picture.svg |
	grep -oiE -m 1 'href|src=|https?:|<script|@import|url\(')"
case_of 'perf leaves out no function silently' "$(grep -vF -- '--max-stack 1025' arguments)"

sample app 7 cycles f f f g f main >deeper
sample app 3 cycles f f g f main >>deeper
draws recursion deeper <<'END'
same([(b[0], b[2], b[3]) for b in found[2:]], [
    (2, 1200, "main: 10 cycles (100.00 %)"), (3, 1200, "f: 10 cycles (100.00 %)"),
    (4, 1200, "g: 10 cycles (100.00 %)"), (5, 1200, "f: 10 cycles (100.00 %)"),
    (6, 1200, "f: 10 cycles (100.00 %)"), (7, 840, "f: 7 cycles (70.00 %)")])
END

# A thread's name may have a newline; its last line is shown.
{
	sample $'x\nz' 10 cycles '</title><script>"&' $'\e[2J\b\x7f' 'größe' $'\xff\xc0\xaf\xed\xa0\x80\xc3' \
		$'\xe2\x80\xae\xc2\x9b\xef\xbf\xbf\xf4\x90\x80\x80' ''
	printf 'y 10 cycles: \n\tffffffff81000000 do_it ([kernel.kallsyms])\n\t0 [unknown] (/lib/lib.so (deleted))\n\n'
} >hostile
draws 'hostile names' hostile --title '<b>&' <<'END'
same(picture.find(SVG + "title").text, "<b>&")
same([b[3].split(": ")[0] for b in found[1:]], ["y", "z", "[unknown] of lib.so", "(/bin/app)", "do_it",
    r"\xe2\x80\xae\xc2\x9b\xef\xbf\xbf\xf4\x90\x80\x80", r"\xff\xc0\xaf\xed\xa0\x80\xc3", "größe",
    r"\x1b[2J\x08\x7f", '</title><script>"&'])
same([b[3][:5] for b in found if b[5] > "#8" and b[5] < "#a"], ["do_it"])
END

{
	sample app 11999 cycles narrow
	sample app 1 cycles narrower
	sample app 119988000 cycles wide
} >narrow
draws 'narrow boxes are left out' narrow <<'END'
same([(b[0], b[3]) for b in found], [(0, "all: 120000000 cycles (100.00 %)"), (1, "app: 120000000 cycles (100.00 %)"),
                                     (2, "narrow: 11999 cycles (0.01 %)"), (2, "wide: 119988000 cycles (99.99 %)")])
END
sample app 100 cycles "long$(printf '%0200d' 0)" >long
sample app 1100 cycles g >>long
draws 'a name that is too long for its box' long <<'END'
same([b[4] for b in found[2:]], ["g", "long000000.."])
END
sample app 1 cycles "$(printf 'x%05000d' 0)" >long
draws 'a name of over 4096 bytes' long <<'END'
same(found[2][3], "x" + 4095 * "0" + ": 1 cycles (100.00 %)")
END

{
	sample app 10 cycles f
	sample app 20 branches g
} >two
refuses 'two events' 'two: found samples of cycles and branches, needed those of one event: --event cycles' two
draws 'one of two' two --event branches <<'END'
same([b[3] for b in found], [f"{name}: 20 branches (100.00 %)" for name in ("all", "app", "g")])
END
refuses 'another event' 'two: found no sample of misses' -e misses two

: >empty
refuses 'an empty profile' 'empty: found no sample' empty
sample app 0 cycles f >zero
refuses 'no period' 'zero: found no sample' zero
echo 'app  1000 cycles:            40100c _start (/bin/app)' >flat
refuses 'no call chain' 'flat: line 1 of perf script has no call chain, needed one for each sample: perf record -g' flat
refuses 'no file' 'nothing: perf script cannot read it; perf record -g -o nothing writes one' nothing
refuses 'two files' 'flame takes one file' profile profile
for _ in 1 2; do sample app 9223372036854775808 cycles f; done >sum
refuses 'a sum that is too large' 'sum: found periods whose sum exceeds 64 bits' sum
mapfile -t chain < <(seq 1025)
sample app 1 cycles "${chain[@]}" >deep
refuses 'a chain that is too deep' 'deep: found a call chain of more than 1024 functions' deep
sample app 1 cycles "${chain[@]:1}" >deep
draws 'the deepest chain' deep <<'END'
same((len(found), *found[-1][::3]), (1026, 1025, "2: 1 cycles (100.00 %)"))
END
refuses 'too much' 'huge: found call chains of more than 256 MiB' huge
cp profile kept
refuses 'a failure leaves the file' 'found no sample' -o kept empty
case_of 'which is as before' "$(cmp profile kept 2>&1)"
refuses 'a full disk' '/dev/full: No space left on device' -o /dev/full profile
case_of 'a full disk on standard output' "$("$vpmu" flame profile 2>&1 >/dev/full |
	grep -v '^vpmu: standard output: No space left on device$')"
