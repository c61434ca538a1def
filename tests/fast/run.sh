#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# tests/run --junit, on a tree with tests of its own: each case, reason and duration is in the
# report, which parses whatever a test prints.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{tests/fast,tools,bin}
cp tests/run "$work/tests/"
cd "$work" || exit 1
printf '#!/bin/sh\nexit 0\n' >tools/setup
printf '#!/bin/sh\necho "[]"\n' >bin/meson
printf 'all:\n\t@test ! -e broken\n' >Makefile
file() { # NAME, with commands on stdin
	{ echo '#!/bin/bash' && cat; } >"tests/fast/$1.sh"
	chmod +x "tests/fast/$1.sh" tools/setup bin/meson
}
file good <<'END'
echo 'ok plain'
echo 'ok 2 - of TAP'
echo 'ok 3 - left out # SKIP by <TAP> & "us"'
echo 'skip machine: no KVM: here'
END
file bad <<'END'
printf 'some \377\033[1m output ]]>\nnot ok count: found 1 < 2: "so"\n'
END
file silent <<'END'
exit 0
END
file crashed <<'END'
printf 'ok before\nunfinished'
exit 3
END
file late <<'END'
# timeout: 1
echo 'ok in time'
sleep 20
END
run() {
	PATH=$work/bin:$PATH VPMU_BUILD=$work/build tests/run --fast "$@" >out 2>&1
}
# This prints a line for each case of the report.
cases() {
	python3 - "$1" 2>&1 <<'END'
import sys, xml.etree.ElementTree as tree
top = tree.parse(sys.argv[1]).getroot()
print(*(top.get(n) for n in ("tests", "failures", "skipped")))
for suite in sorted(top, key=lambda s: s.get("name")):
    found = suite.findall("testcase")
    if [len(found), len(suite.findall(".//failure")), len(suite.findall(".//skipped"))] != \
            [int(suite.get(n)) for n in ("tests", "failures", "skipped")] or float(suite.get("time")) < 0:
        print(suite.get("name"), "has other numbers")
    for case in found:
        print(case.get("classname").rpartition("/")[2], case.get("name"), *(f"{c.tag}: {c.get('message')}" for c in case), sep="|")
END
}
run --junit report.xml
status=$?
case_of 'the status is as ever' "$([ $status = 1 ] && [ "$(tail -n 1 out)" = '4 passed, 4 failed, 2 skipped' ] || tail -n 3 out)"
case_of cases "$(cases report.xml | diff - <(cat <<'END'
10 4 2
bad.sh|count|failure: found 1 < 2: "so"
crashed.sh|before
crashed.sh|tests/fast/crashed.sh|failure: exit status 3
good.sh|plain
good.sh|of TAP
good.sh|left out|skipped: by <TAP> & "us"
good.sh|machine|skipped: no KVM: here
late.sh|in time
late.sh|tests/fast/late.sh|failure: not done after 1 s
silent.sh|tests/fast/silent.sh|failure: no case reported
END
))"
case_of 'output of a failure' "$(grep -q '^<system-out>some \[1m output \]\]&gt;$' report.xml || cat report.xml)"
case_of duration "$(grep -q 'late.sh" .* time="[1-9][0-9]*[.]' report.xml || cat report.xml)"
run --junit "$work/report.xml" good
case_of 'none fails' "$([ $? = 0 ] && [ "$(cases report.xml | head -n 1)" = '4 0 2' ] || cat out report.xml)"
touch broken
run --junit report.xml good
case_of 'make fails' "$([ "$(cases report.xml)" = $'1 1 0\nbuild|build|failure: make failed' ] || cat report.xml)"
run --junit nowhere/report.xml good
status=$?
case_of 'no such directory' "$([ $status != 0 ] && grep -q 'nowhere/report.xml: No such file' out || cat out)"
