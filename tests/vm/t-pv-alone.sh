#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 600
#
# The paravirtual PMU in a Debian kernel that has nothing but an initramfs: suspend in
# its levels while events count, and kexec into the same kernel, which the host tells
# apart from the old one.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
build_programs
here=$(dirname "$(readlink -f "$0")")
kexec=$(PATH=$PATH:/sbin:/usr/sbin command -v kexec) ||
	echo 'skip kexec: there is no kexec here: apt-get install kexec-tools'

# initramfs FILE: of the current folder
initramfs() { find . | cpio -o -H newc --quiet >"$1"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for suite in bookworm bookworm-backports; do
	driver=$(pv_guest "$suite") || { echo "$driver" && continue; }
	kernel=$("$VPMU_ROOT/tools/guest-kernel" "$suite") || exit 1
	rm -rf "$work/root"
	mkdir "$work/root"
	cd "$work/root" || exit 1
	cp "$driver" .
	cp "$VPMU_BUILD/guest/lone" init
	initramfs "$work/second"
	if [ -n "$kexec" ]; then
		cp "$kexec" "$kernel/vmlinux" "$work/second" .
		ldd "$kexec" | grep -o '/[^ ]*' | xargs cp -L --parents -t .
	fi
	initramfs "$work/first"
	status=0
	out=$(timeout -k 5 200 python3 "$here/pv_bare.py" "$VPMU_QEMU/bin/qemu-system-x86_64" \
		-L "$VPMU_QEMU/share/qemu" -nodefaults -no-user-config -display none -machine pc \
		-bios bios-256k.bin -m 1024 -smp 2 -accel tcg -no-reboot \
		-cpu Icelake-Server-v6,check=off,pmu-pv=v2 -kernel "$kernel/vmlinux" \
		-initrd "$work/first" -append 'console=ttyS0 panic=-1 mitigations=off tsc=reliable suspend.pm_test_delay=1' \
		2>&1) || status=$?
	out=$(tr -d '\r' <<<"$out")
	grep -E '^(ok|not ok|skip) ' <<<"$out" | sed -E "s#^(ok|not ok|skip) #\1 $suite/#"
	case_of "$suite/ends" "$(grep -qx end <<<"$out" && [ $status = 0 ] ||
		echo "status $status: $(tail -n 2 <<<"$out" | tr '\n' ' ')")"
	case_of "$suite/quiet" "$(grep -E 'vpmu_guest: (the host|a batch)|WARNING:|BUG:|Oops|Uhhuh' \
		<<<"$out" | head -n 1)"
done
