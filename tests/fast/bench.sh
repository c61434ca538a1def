#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# vpmu bench, as far as it needs no guest: its file, its options. t-ci.sh has the rest.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
vpmu=${VPMU_BUILD:-$PWD/build}/vpmu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

refused() { # NAME WORDS LINES OPTION...: LINES is the file
	local name=$1 words=$2 out status=0
	printf '%b' "$3" >bench
	shift 3
	out=$("$vpmu" bench "$@" bench 2>&1) || status=$?
	if [ $status = 125 ] && [[ $out == *$words* ]]; then
		echo "ok $name"
	else
		echo "not ok $name: status $status: $out"
	fi
}
refused 'no baseline' 'bench.baseline: No such file or directory; vpmu bench --update bench writes it' 'a: true\n'
refused 'no command' 'bench: found no command' '# none\n\n'
refused 'no colon' "bench:2: found 'true', needed a name, a colon and a command" 'a: true\ntrue\n'
refused 'no name' 'bench:1: found' ': true\n'
refused 'an empty command' 'bench:1: found' 'a:  \n'
refused 'a name twice' 'bench:3: found a second a' 'a: true\n# b\na: false\n'
refused 'part 0' '--shard 0/2: K/N is needed' 'a: true\n' --shard 0/2
refused 'part 3 of 2' '--shard 3/2: K/N is needed' 'a: true\n' --shard 3/2
refused 'no part' '--shard half: K/N is needed' 'a: true\n' --shard half
refused 'a part of the baseline' 'needed: no --shard' 'a: true\n' --shard 1/2 --update
refused 'functions of a comparison' 'needs --update' 'a: true\n' --functions
for mark in ';' '|' '&'; do
	refused "two commands by $mark" "bench:1: found '$mark' outside of quotes" "a: true 'x;|&' \"y;\\\\\"|\" z\\\\; 2>&1 $mark true\n" --update
done
out=$("$vpmu" bench none 2>&1)
[[ $out == *'none: No such file'* ]] && echo 'ok no file' || echo "not ok no file: $out"
[ -z "$(ls .vpmu* 2>/dev/null)" ] && echo 'ok nothing is left' || echo 'not ok nothing is left'
