#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 600
#
# QEMU's other features, with a PMU: counts stay right, or the two are refused together
# with a message; and without a PMU it is upstream's QEMU.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_bare
build_programs
here=$(dirname "$(readlink -f "$0")")
model=Icelake-Server-v6,check=off

qemu=("$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults
	-no-user-config -display none -machine pc -m 64)

refused() { # NAME WORDS OPTION...
	local name=$1 words=$2 out status=0
	shift 2
	out=$(timeout 20 "${qemu[@]}" -accel tcg "$@" 2>&1) || status=$?
	if [ $status = 1 ] && [[ $out = *"$words"* ]]; then
		echo "ok refused/$name"
	else
		echo "not ok refused/$name: status $status, $out"
	fi
}
refused vendor 'no PMU for this vendor' -cpu YongFeng,check=off,pmu=on
refused version 'asked 0x6, available 0x5' -cpu $model,pmu=on,pmu-version=6
refused counters 'asked 0x9, available 0x8' -cpu $model,pmu=on,pmu-gp=9
refused 'fixed counters' 'asked 0x5, available 0x4' -cpu $model,pmu=on,pmu-fixed=5
refused 'version without a PMU' 'pmu-version: found no PMU' -cpu $model,pmu=off,pmu-version=2
refused 'counters without a PMU' 'pmu-gp: found no PMU' -cpu $model,pmu=off,pmu-gp=2

# Every row of the exact guest, under NAME; one case for all of them.
same_rows() { # NAME OUTPUT STATUS
	local bad ok
	bad=$(grep -a '^not ok' <<<"$2" | head -3)
	ok=$(grep -ac '^ok' <<<"$2")
	if [ "$3" = 67 ] && [ -z "$bad" ] && [ "$ok" -ge 15 ]; then
		echo "ok $1"
	else
		echo "not ok $1: status $3, $ok rows, $bad"
	fi
}

plugin=$VPMU_QEMU/lib/plugins/libinsn.so
if [ -f "$plugin" ]; then
	status=0
	out=$(bare exact $model,pmu=on '' -plugin "$plugin,inline=on" -d plugin -D /dev/null 2>&1) ||
		status=$?
	same_rows 'beside a plugin' "$out" $status
else
	echo "skip beside a plugin: $plugin is missing"
fi

# With -icount both count the same instructions; and a PMU's run is recorded and replayed.
for clock in shift=0 shift=auto shift=3,sleep=off; do
	status=0
	out=$(bare exact $model,pmu=on '' -icount $clock -smp 2 2>&1) || status=$?
	same_rows "with -icount $clock" "$out" $status
done
traced=$(bare exact $model,pmu=on '' -trace 'x86_vpmu_*' 2>&1)
case_of 'trace events' "$(for event in rdmsr wrmsr pmi; do
	[[ $traced = *"x86_vpmu_$event CPU 0"* ]] || echo "none of x86_vpmu_$event"
done)"
# Upstream's reset of the APIC's ROM waits for a vCPU that waits for the log, now and then.
played() { # MODE
	bare "$program" $model,pmu=on 'cpus=1 host=0 turns=1' -global apic-common.vapic=off \
		-icount "shift=0,rr=$1,rrfile=$TMPDIR/rr.bin" 2>&1
}
for program in exact pebs lbr; do
	recorded=$(played record) replayed=$(played replay)
	case_of "$program is recorded and replayed" "$([[ $recorded != *'not ok'* && $recorded = *ok* ]] &&
		[ "$recorded" = "$replayed" ] || diff <(echo "$recorded") <(echo "$replayed") | head -n 3)"
done

# Blocks of one instruction make the guest last for all 12 moves and more; a
# machine four times as fast still moves it three times.
moved() { # NAME OPTION...
	local name=$1 status=0 out moved
	shift
	out=$(timeout 200 python3 "$here/migrate.py" 12 "$@" "${qemu[@]}" -bios qboot.rom \
		-accel tcg,one-insn-per-tb=on -cpu $model,pmu=on \
		-device isa-debug-exit,iobase=0xf4,iosize=4 \
		-kernel "$VPMU_BUILD/bare/exact" 2>&1) || status=$?
	moved=$(sed -n 's/^moved //p' <<<"$out")
	same_rows "$name" "$out" $status
	[ "${moved:-0}" -ge 3 ] || echo "not ok $name: $moved of 12 moves, at least 3 wanted"
}
moved 'moved to another QEMU in mid-count'
moved 'moved by savevm and loadvm in mid-count' --savevm

# The clock leaps for the guest, again and again: its QEMU is stopped by a signal. The guest
# needs less than 0.2 s, in which a busy machine may not run this shell: then once more.
leap() {
	local guest pid
	status=0 leaps=0
	timeout -k 5 200 "${qemu[@]}" -bios qboot.rom -accel tcg,one-insn-per-tb=on -cpu $model,pmu=on \
		-device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$VPMU_BUILD/bare/exact" \
		-serial stdio -pidfile "$TMPDIR/leap.pid" >"$TMPDIR/leap.out" 2>&1 </dev/null &
	guest=$!
	until [ -s "$TMPDIR/leap.pid" ] || ! kill -0 $guest 2>/dev/null; do sleep 0.01; done
	pid=$(cat "$TMPDIR/leap.pid" 2>/dev/null)
	while [ -n "$pid" ] && [ $leaps -lt 12 ] && kill -STOP "$pid" 2>/dev/null; do
		sleep 0.3
		kill -CONT "$pid"
		leaps=$((leaps + 1))
		sleep 0.02
	done
	wait $guest || status=$?
}
for _ in 1 2 3 4 5; do
	leap
	[ $leaps -lt 3 ] || break
done
same_rows 'the clock leaps in mid-count' "$(cat "$TMPDIR/leap.out")" "$status"
[ $leaps -ge 3 ] || echo "not ok the clock leaps in mid-count: $leaps of 12 times, at least 3 wanted"
rm -f "$TMPDIR/leap.out"

# A debugger steps through the guest, which takes its interrupts while it does.
if command -v gdb >/dev/null; then
	sock=$TMPDIR/gdb.$$
	status=0
	bare exact $model,pmu=on '' -gdb "unix:$sock,server=on,wait=off" -S >"$TMPDIR/gdb.out" 2>&1 &
	guest=$!
	for _ in $(seq 50); do
		[ ! -S "$sock" ] || break
		sleep 0.1
	done
	timeout 100 gdb -nx -batch -ex "target remote $sock" -ex 'maint packet Qqemu.sstep=1' \
		-ex 'break main' -ex 'continue' -ex 'stepi 20000' -ex 'delete' -ex 'continue' \
		"$VPMU_BUILD/bare/exact" >"$TMPDIR/gdb.log" 2>&1
	wait $guest || status=$?
	same_rows 'stepped by a debugger' "$(cat "$TMPDIR/gdb.out")" $status
	rm -f "$sock"
else
	echo 'skip stepped by a debugger: gdb is missing, apt-get install gdb'
fi

# A QEMU without patch fixes/0003 executes old code some hundred thousand times; one without fixes/0015
# hangs, so that only SIGKILL ends it.
status=0
out=$(bare smc $model 'turns=10000' -smp 2 2>&1) || status=$?
printf '%s\n' "$out"
[ $status = 67 ] || echo "not ok code changed by another CPU: QEMU's status is $status, not 67"

# A QEMU without patch fixes/0007 reads another device in seven to nine of the passes.
status=0
out=$(bare mmio $model 'turns=20000' -smp 2 2>&1) || status=$?
printf '%s\n' "$out"
[ $status = 67 ] || echo "not ok memory mapped by another CPU: QEMU's status is $status, not 67"

# Debian's kernel up to its panic without a root, recorded and replayed.
kernel=$("$VPMU_ROOT/tools/guest-kernel") || exit 1
replay() { # MODE
	timeout 200 "${qemu[@]}" -m 256 -accel tcg -cpu $model -no-reboot \
		-kernel "$kernel/vmlinux" -serial stdio -net none \
		-append 'console=ttyS0 panic=-1 reboot=t cryptomgr.notests mitigations=off' \
		-icount "shift=auto,rr=$1,rrfile=$TMPDIR/rr.bin" </dev/null 2>&1 | tr -d '\r'
}
recorded=$(replay record)
replayed=$(replay replay)
if [[ $recorded = *'Kernel panic'* ]] && [ "$recorded" = "$replayed" ]; then
	echo 'ok a boot without a PMU is recorded and replayed'
else
	echo "not ok a boot without a PMU is recorded and replayed: $(wc -l <<<"$recorded") lines, then $(wc -l <<<"$replayed")"
fi

# All results and exceptions of SSE's arithmetic as this machine's own CPU has them, whether
# QEMU leaves an operation to it or not.
native=$("$VPMU_BUILD/guest/floats" 20000)
guest=$("$VPMU_BUILD/vpmu" run --pmu none -- "$VPMU_BUILD/guest/floats" 20000 2>&1 </dev/null)
case_of 'floating point' "$([ "$(wc -l <<<"$native")" = 192 ] || echo "$native" | head -n 3
	diff <(echo "$native") <(echo "$guest") | head -n 4)"
