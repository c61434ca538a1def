#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 4200
# takes: 250
#
# The paravirtual PMU on a real KVM without a module on its host: our QEMU in an L1
# serves the doorbell and counts by perf_event_open(2). Stock kernels below and above;
# unmodified perf in L2; two L2 at once; a hostile one. SOAK=1 does it all on both
# kernels and both vendors' CPUs, the newer kernel with every check of its memory; SEED=N and
# TURNS=N are of the hostile one.
set -uo pipefail
export L1_PMU=arch L1_LIMIT=2000 L2_LIMIT=1000
# A frequency costs two calls at each tick of a clock, and on a busy machine the guest
# would do nothing else.
export TOP='-c 1000003'
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/nested.sh"
build_programs
build_bare
work=$(mktemp -d "$TMPDIR/kvm-user.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
perf_cases=kvm
[ -z "${SOAK:-}" ] || perf_cases+=' loaded top default process ways reload hotplug' more=20000
export SEED=${SEED:-$RANDOM} TURNS=${TURNS:-${more:-300}}

cat >l1.sh <<'END'
suite=$1 driver=$2
shift 2
paravirtual=$VPMU_ROOT/tests/guest/paravirtual
# L1's perf stops an event of QEMU's until the next tick when it overflows too often for it,
# which is each time once it has lowered its limit to one in a tick: docs/VMM.md.
l2 perf --kernel "$suite" --pmu pv --smp 2 --root -- "$paravirtual" "$VPMU_BUILD/guest" "$driver" 2 "$@"

# Beside one that counts all the time there is another one, exact in each of its turns.
rm -f two-*
# shellcheck disable=SC2016 # L2's
l2 neighbour --kernel "$suite" --pmu pv --root -- sh -c '
	perf stat -a -e instructions,branches sh -c "touch two-counts; until [ -e two-done ]; do sleep 0.1; done" 2>out
	grep -q "^ *[1-9][0-9,]* *instructions" out && echo "ok counts" || echo "not ok counts: $(cat out)"' &
# shellcheck disable=SC2016 # L2's
l2 "two at once" --kernel "$suite" --pmu pv --root -- sh -c '
	until [ -e two-counts ]; do sleep 0.1; done
	"$@"' sh "$VPMU_BUILD/guest/count" -r 10 "$VPMU_BUILD/guest/shares"
touch two-done
wait

# In mid-count to another QEMU, whose events are others.
bare=("$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config
	-display none -machine pc -bios qboot.rom -m 64 -accel kvm -cpu host,pmu=off,pmu-pv=v2
	-device isa-debug-exit,iobase=0xf4,iosize=4)
moved() { # NAME
	local status=0 out
	out=$(timeout -k 5 200 python3 "$VPMU_ROOT/tests/vm/migrate.py" 3 "${bare[@]}" \
		-kernel "$VPMU_BUILD/bare/moved" -append turns=300000000 2>&1) || status=$?
	grep -E '^(ok|not ok) ' <<<"$out" | sed -E "s#^(ok|not ok) #\1 $1/#"
	[ $status = 67 ] && [ "$(sed -n 's/^moved //p' <<<"$out")" = 3 ] ||
		echo "not ok $1: status $status: $(tail -n 1 <<<"$out")"
}
moved moved
# At the least limits of sampling that perf has, it stops an event at each overflow.
for limit in ${SOAK:+1 250}; do
	limits 25 $limit
	moved "moved at $limit"
done
limits 25 "$rate"

# KVM on Intel would write VMCALL for VMMCALL into the program.
hostile=hostile
[ "$vendor" = amd ] || hostile=hostile-intel
# Between two doorbells, which KVM emulates, 1000 NOPs and two more instructions.
hostile() { # NAME TURNS COMMAND-LINE
	local status=0 out
	out=$(yes | timeout -k 5 $((300 + $2 / 20)) "${bare[@]}" -serial stdio -smp 2 \
		-kernel "$VPMU_BUILD/bare/$hostile" -append "seed=$SEED turns=$2 bell=1 known=1002 $3" 2>&1) ||
		status=$?
	grep -E '^(ok|not ok) ' <<<"$out" | sed -E "s#^(ok|not ok) hostile#\1 $1#"
	[[ $out != *"; 0 of the other vCPU"* ]] || echo "not ok $1: the other vCPU has not called"
	# Chance may leave none in a few hundred turns.
	[ "$2" -lt 3000 ] || [[ $out != *"; 0 NMIs"* ]] || echo "not ok $1: it took no NMI"
	[ $status = 67 ] || echo "not ok $1: QEMU's status is $status: $(tail -n 1 <<<"$out")"
}
hostile hostile "$TURNS" ''
hostile 'hostile, a vCPU goes' 1000 eject=1
END

# round NAME SUITE PARAMETERS: both storeys with SUITE's kernel.
round() {
	local suite=$2 driver
	driver=$(pv_guest "$suite") || { echo "$driver" && return; }
	# shellcheck disable=SC2086 # words are meant
	in_l1 "$1" --smp 2 --kernel "$suite" --append "$3" -- ./l1.sh "$suite" "$driver" $perf_cases
}
strict='kfence.sample_interval=1 slub_debug=FZPU panic_on_warn=1'
round 6.1 bookworm ''
if [ -n "${SOAK:-}" ]; then
	l1_cpu=SapphireRapids round 6.1/vmx bookworm ''
	round 6.12 bookworm-backports "$strict"
	l1_cpu=SapphireRapids round 6.12/vmx bookworm-backports "$strict"
fi
exit 0
