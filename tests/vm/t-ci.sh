#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 900
#
# A budget of instructions in CI: a program with one instruction more in its loop is
# caught each time, the unchanged one never; SOAK runs each fifty times.
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
