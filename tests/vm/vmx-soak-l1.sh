# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# In an L1 on VMX (nested-l1.sh sources this): for SECONDS, one after the other, a Debian L2
# that counts and samples on two CPUs, one that moves between QEMUs in mid-count, and one
# that is reset again and again.
#
#   vmx-soak-l1.sh SECONDS
programs=$VPMU_BUILD/guest
until_=$((SECONDS + $1)) rounds=0 samples=0 moves=0 resets=0
kvm=("$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config
	-display none -machine pc -bios qboot.rom -m 64 -accel kvm -smp 2
	-device 'isa-debug-exit,iobase=0xf4,iosize=4')

cat >soak-l2.sh <<'END'
perf stat -x, -e instructions:u,branches:u "$1/loop" 2>stat.csv
[ "$(cut -d, -f1 stat.csv | tr '\n' ' ')" = '200004 100001 ' ] || echo "counts: $(tr '\n' ' ' <stat.csv)"
chrt -f 1 perf record -q -e instructions:u -c 10000 -o /tmp/data "$1/sample" 2>/dev/null
perf script -i /tmp/data -F ip 2>/dev/null | grep -c . >samples
END

sampled() {
	local said
	rm -f samples
	said=$(lifted l2_run soak.log --smp 2 -- sh ./soak-l2.sh "$programs" 2>soak.err | grep -v '^#')
	clean "L2's log, round $rounds" soak.log | grep -v '^ok'
	if [ -n "$said" ] || [ "$(cat samples)" != 300 ]; then
		echo "not ok L2, round $rounds: $said; $(cat samples) samples, not 300: $(tail -n 2 soak.err)"
		return
	fi
	samples=$((samples + 300))
}

moved() {
	local out status=0 n
	out=$(timeout -k 5 300 python3 "$VPMU_ROOT/tests/vm/migrate.py" 3 "${kvm[@]}" \
		-cpu host,pmu=off,pmu-pv=v2 -kernel "$VPMU_BUILD/bare/moved" -append turns=100000000 2>&1) ||
		status=$?
	n=$(sed -n 's/^moved //p' <<<"$out")
	if [ $status != 67 ] || grep -q '^not ok' <<<"$out"; then
		echo "not ok moved, round $rounds: status $status: $(grep -v '^ok' <<<"$out" | tail -n 2)"
	fi
	moves=$((moves + ${n:-0}))
}

# The program starts again at each reset; the last time it comes to its end.
reset() {
	local status=0
	for _ in 1 2 3 4 5 6; do
		sleep "0.$((RANDOM % 9))"
		echo system_reset
	done | timeout -k 5 300 "${kvm[@]}" -cpu host -monitor stdio -serial file:reset.out \
		-kernel "$VPMU_BUILD/bare/smc" -append turns=2000 >/dev/null 2>reset.err || status=$?
	[ $status = 67 ] || [ $status = 0 ] || echo "not ok reset, round $rounds: status $status: $(cat reset.err)"
	! grep -a '^not ok' reset.out || echo "not ok reset, round $rounds"
	resets=$((resets + 6))
}

while [ $SECONDS -lt $until_ ]; do
	rounds=$((rounds + 1))
	sampled
	moved
	reset
done
echo "ok soak: $rounds rounds, $samples samples, $moves moves, $resets resets"
