#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 600
#
# A Debian guest moves from one QEMU to the next, again and again, while perf counts and
# samples in it: counts are exact, samples all there and in their place, branch records
# and PEBS buffers go along. What cannot be loaded is refused by name.
#
# MIGRATIONS=N moves (3). By hand it ends with status 1 when a case has failed.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! kernel=$("$VPMU_ROOT/tools/guest-kernel" bookworm 2>"$work/log"); then
	echo "skip kernel: $(tail -n 1 "$work/log")"
	exit 0
fi
build_programs
long=$VPMU_BUILD/guest/long

# The guest's programs with their libraries, those of this machine.
programs=(sh mount chrt taskset perf cut tr sort uniq tail sed awk sleep)
mkdir -p "$work/root"/{dev,proc,sys,tmp,usr/bin}
cd "$work/root" || exit 1
ln -s usr/bin bin
for name in "${programs[@]}"; do
	path=$(PATH=/usr/bin:/bin:/usr/sbin:/sbin command -v "$name") || {
		echo "skip $name: found no $name"
		exit 0
	}
	cp -L "$path" "usr/bin/$name"
	ldd "$path" | grep -o '/[^ ]*'
done | sort -u >"$work/libraries"
while read -r library; do
	mkdir -p "./$(dirname "$library")"
	cp -L "$library" "./$library"
done <"$work/libraries"
cp "$long" .
cp "$VPMU_ROOT/tests/guest/migrating" init

symbol() { nm "$long" | sed -n "s/^0*\([0-9a-f]*\) . $1\$/\1/p"; }
at=$(symbol instruction)
read -r _ instructions branches < <("$VPMU_BUILD/guest/count" -x "$long")

# guest KINDS: what it samples with
guest() {
	cat >settings <<-END
	instructions=$instructions branches=$branches kinds="$*"
	at=$at precisely=$(printf %x $((0x$at - 2)))
	END
	find . | cpio -o -H newc --quiet >"$work/initrd"
}
qemu=("$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config
	-display none -machine pc -bios bios-256k.bin -m 512 -accel tcg -no-reboot
	-kernel "$kernel/vmlinux" -initrd "$work/initrd"
	-append 'console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable nmi_watchdog=0')

# A state that does not fit is refused by name; no guest has to run for that.
tiny=("$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config
	-display none -machine pc -m 32 -accel tcg -S)
saved() { # FILE CPU
	printf 'migrate file:%s\nquit\n' "$work/$1" |
		timeout -k 5 60 "${tiny[@]}" -cpu "$2,check=off" -monitor stdio >"$work/log" 2>&1 ||
		echo "not ok saved $1: $(tail -n 1 "$work/log")"
}
refused() { # NAME FILE CPU WORDS
	local out status=0
	out=$(timeout -k 5 60 "${tiny[@]}" -cpu "$3,check=off" -incoming "file:$work/$2" \
		</dev/null 2>&1) || status=$?
	case_of "refused/$1" "$([[ $status = 1 && $out == *"$4"* ]] || echo "status $status, $out")"
}
model=Icelake-Server-v6
saved arch $model,pmu=on
refused 'no PMU' arch $model,pmu=off 'needed: pmu=on'
refused 'general-purpose counters' arch $model,pmu=on,pmu-gp=4 'general-purpose counters: found 0x8, available 0x4'
refused 'fixed counters' arch $model,pmu=on,pmu-fixed=2 'fixed counters: found 0x4, available 0x2'
refused version arch $model,pmu=on,pmu-version=4 'version of perfmon: found 0x5, available 0x4'
refused PEBS arch $model,pmu=on,ds=off PEBS
refused 'another model' arch Skylake-Server,pmu=on 'version of perfmon'
refused 'another vendor' arch EPYC-Milan,pmu=on 'vendor'
saved pv $model,pmu-pv=both
refused 'no paravirtual PMU' pv $model 'vpmu-pv'
refused 'events' pv $model,pmu-pv=both,pmu-pv-events=16 'events of a VM'

# A truncated or damaged state is refused too.
for state in arch,pmu=on pv,pmu-pv=both; do
	timeout -k 5 200 python3 "$here/spoiled.py" "$work/${state%%,*}" "${tiny[@]}" \
		-cpu "$model,check=off,${state#*,}" >"$work/log" 2>&1 ||
		echo "not ok ${state%%,*}: $(tail -n 1 "$work/log")"
	sed -nE "s,^(ok|not ok) spoilt/,\\1 spoilt ${state%%,*}/,p" "$work/log"
done

guest plain precise records
python3 "$here/migrations.py" "${MIGRATIONS:-3}" one,two,plain,precise,records "${qemu[@]}" -smp 2 \
	-cpu Icelake-Server-v6,check=off,pmu=on | tee "$work/out"
! grep -q '^not ok' "$work/out"
