#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# In an L1, sourced by nested-l1.sh: kvm_contention on its KVM. With KERNEL, the directory of a
# kernel with the series, which L1 is, the same kernel as L2, too: its perf tells what was lost.
#
#   linux-l1.sh CONTENTION [KERNEL]
contention=$1 kernel=${2:-} demo=$VPMU_BUILD/examples/demo

selftest() {
	local status=0
	"$contention" >contention.tap || status=$?
	sed -nE '/ # SKIP /d; s,^(ok|not ok) [0-9]+ ([^ ]+)( #.*)?,\1 \2,p' contention.tap
	case_of "the selftest's status" "${status#0}"
	[ $status = 0 ] || sed 's/^/# /' contention.tap
}

# The host takes all counters but those that the guest's perf has no events on, from "taken" on
# until "gone".
guest_told() {
	rm -f told-*
	cat >told.sh <<-'END'
	stat() { perf stat -x, -o "$1" -e "${2:-instructions:u,branches:u}" "$demo"; }
	record() { perf record -q -c 10000 -o data -e branches:u "$demo" && perf report --stats -i data >"$1"; }
	until_there() { until [ -e "$1" ]; do sleep 0.1; done; }
	demo=$1
	stat told-before
	record told-record-before
	touch told-ready
	until_there told-taken
	stat told-beside
	stat told-group '{instructions:u,branches:u}'
	record told-record
	perf stat -x, -o told-part -e branches:u sh -c '
		touch told-part-ready; until [ -e told-gone ]; do sleep 0.1; done; "$1"' sh "$demo"
	until_there told-gone
	stat told-alone
	END
	{
		wait_for 120 [ -e told-ready ]
		perf stat -a -x, -o told-host -e "$(printf 'branches:uD,%.0s' {1..16})instructions:uD" sh -c \
			'touch told-taken; until [ -e told-part-ready ]; do sleep 0.1; done'
		touch told-gone
	} &
	l2 guest --pmu arch --cpu host,migratable=off --kernel "$kernel/vmlinux" --modules "$kernel/modules" --memory 256M \
		--root -- sh ./told.sh "$demo"
	touch told-part-ready
	wait
	case_of 'guest/before' "$(exact told-before)"
	case_of 'guest/not counted beside the host' "$([ "$(grep -c '^<not counted>,.*,0.00,' told-beside)" = 2 ] ||
		shown told-beside)"
	case_of 'guest/nor in a group' "$([ "$(grep -c '^<not counted>,.*,0.00,' told-group)" = 2 ] || shown told-group)"
	case_of 'guest/for a part of the time' "$(awk -F, '/branches:u/ { found = $1 > 0 && $5 > 0 && $5 < 100 }
		END { exit !found }' told-part || shown told-part)"
	case_of 'guest/alone again' "$(exact told-alone)"
	case_of 'guest/no lost samples' "$(grep -q "cycles\|branches" told-record-before && ! grep LOST_SAMPLES told-record-before ||
		shown told-record-before)"
	case_of 'guest/lost samples' "$(grep -q LOST_SAMPLES told-record || shown told-record)"
}
# Intel's KVM has no PEBS for fixed counters, where Linux wants instructions:ppp. "precise OPTION..."
# says which samples perf in an L2 with these options has of that, and with as much precision as
# there is: a record is lost where perf switches tasks, so it tries again for all 30.
precise() {
	cat >precise.sh <<-'END'
	# A period of 99999 gives 30 samples, which are below perf's limits on a slow machine, too.
	for precision in ppp P; do
		found=' refused'
		for turn in 1 2 3 4 5; do
			chrt -f 1 perf record -q -m 1024 -o data -c 99999 -e "instructions:u$precision" "$1" >/dev/null 2>&1 || break
			found=$(perf script -i data -F ip | sort | uniq -c | tr '\n' ' ')
			[ $(echo "$found" | wc -w) != 2 ] || break
		done
		echo "$precision:$found" | tr -s ' '
	done
	END
	l2_run precise.log --pmu arch --cpu host,migratable=off --memory 512M --root "$@" -- sh ./precise.sh \
		"$VPMU_BUILD/guest/sample" 2>precise.err | paste -sd,
}
guest_precise() {
	local instruction series debian
	instruction=$(nm "$VPMU_BUILD/guest/sample" | sed -n 's/ T instruction$//p')
	instruction=$(printf '%x' $((0x$instruction - 2)))
	series=$(precise --kernel "$kernel/vmlinux" --modules "$kernel/modules")
	case_of precise "$([ "$series" = "ppp: refused,P: 30 $instruction " ] || echo "$series")"
	debian=$(precise --kernel trixie-backports)
	case_of 'precise without the series' "$([ "$debian" = ppp:,P: ] || echo "it has $debian")"
}
exact() {
	[ "$(grep -c -E '^(41020005|9007001),.*,100.00,' "$1")" = 2 ] || shown "$1"
}

selftest
if [ -z "$kernel" ]; then
	case_of 'says what is absent' \
		"$([ "$(grep -c '^ok .* told.* # SKIP .*KVM_FEATURE_PMU_LOST$' contention.tap)" = 3 ] ||
			grep told contention.tap)"
else
	case_of tells "$(! grep ' told.* # SKIP ' contention.tap && grep -q '^ok .* told' contention.tap || grep told contention.tap)"
	guest_told
	! grep -q '(SapphireRapids)' /proc/cpuinfo || guest_precise
fi
