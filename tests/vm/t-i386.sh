#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1200
#
# 32-bit guests: Debian's linux-image-686-pae and its perf, on models that have
# versions 1 to 5 of perfmon and on AMD's; the paravirtual PMU's driver built for it,
# with both versions of the interface, the first in its 32-bit layout. Programs whose
# counts are known, and samples all at the one place.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
if ! command -v cpio >/dev/null; then
	echo 'skip i386: found no cpio, needed is package cpio'
	exit 0
fi
if ! debian=$("$VPMU_ROOT/tests/vm/i386"); then
	echo "skip i386: $debian"
	exit 0
fi
build_programs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs=$VPMU_BUILD/guest

address() { nm "$programs/sample32" | sed -n "s/^0*\([0-9a-f]*\) . $1\$/\1/p"; }
turns=300007 # value of sample.S

# initrd MODULE: what the guest runs, beside Debian's files, with the module or without.
initrd() {
	local files=$work/files
	rm -rf "$files"
	mkdir -p "$files/programs"
	cp "$VPMU_ROOT/tests/guest/i386" "$files/init"
	for name in compat branchy32 loop32 sample32; do
		cp "$programs/$name" "$files/programs/"
		echo "$name $("$programs/count" -x "$programs/$name" | cut -d' ' -f2-)"
	done >"$files/expected"
	cat >"$files/samples" <<-END
	sample instructions instructions:u 100000 $(((10 * turns + 4) / 100000)) $(address instruction)
	sample branches branches:u 40000 $(((4 * turns + 1) / 40000)) $(address branch)
	sample branches-short branches:u 4000 $(((4 * turns + 1) / 4000)) $(address branch)
	END
	[ -z "${1:-}" ] || cp "$1" "$files/vpmu_guest.ko"
	{ (cd "$debian/root" && find . | cpio -o -H newc --quiet) &&
		(cd "$files" && find . | cpio -o -H newc --quiet); } >"$work/initrd"
}

# guest NAME CPU DRIVER
guest() {
	local name=$1 cpu=$2 driver=$3 out
	out=$(timeout -k 5 180 "$VPMU_QEMU/bin/qemu-system-x86_64" -L "$VPMU_QEMU/share/qemu" \
		-nodefaults -no-user-config -display none -serial stdio -machine pc -m 512 \
		-accel tcg -cpu "$cpu,check=off" -kernel "$debian/vmlinuz" -initrd "$work/initrd" \
		-append "console=ttyS0 quiet panic=-1 nmi_watchdog=0 driver=$driver" -no-reboot \
		</dev/null 2>&1 | tr -d '\r')
	grep -E '^(ok|not ok) ' <<<"$out" | sed -E "s#^(ok|not ok) #\1 $name/#"
	grep -q '^\(not \)\?ok no trouble' <<<"$out" || echo "not ok $name: $(tail -n 1 <<<"$out")"
}

initrd
guest coreduo coreduo,pmu=on Core_events
guest core2duo core2duo,pmu=on Core2_events
guest n270 n270,pmu=on Atom_events
guest Icelake-Server-v6 Icelake-Server-v6,pmu=on Icelake_events
guest EPYC-Milan EPYC-Milan,pmu=on AMD_PMU_driver

status=0
KDIR=$(echo "$debian"/headers/usr/src/linux-headers-*-686-pae) \
	"$VPMU_ROOT/guest/build" "$work/module" >"$work/log" 2>&1 || status=$?
if [ $status = 77 ]; then
	echo "skip module: $(tail -n 1 "$work/log")"
	exit
elif [ $status != 0 ]; then
	tail -n 5 "$work/log"
	echo "not ok module: guest/build failed: $(grep -m 1 -i -e error -e '\*\*\*' "$work/log")"
	exit
fi
case_of 'module without a warning' "$(grep -i warning "$work/log" | head -n 1)"
initrd "$work/module/vpmu_guest.ko"
guest pv2 Icelake-Server-v6,pmu-pv=v2 version_2
guest pv1 Icelake-Server-v6,pmu-pv=v1 version_1
