#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Programs in the cache are executed: one that other users can write, or that is another
# user's, is refused by all that use it.
set -uo pipefail

root=${VPMU_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
vpmu=${VPMU_BUILD:-$root/build}/vpmu
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# shellcheck source=tests/case.sh
. "$root/tests/case.sh"
export XDG_CACHE_HOME=$work/base
unset VPMU_QEMU
umask 022
cache=$work/base/vpmu
format=$(sed -n "s,^format=\([0-9]*\).*,\1,p" "$root/tools/guest-kernel")

fill() {
	rm -rf base other
	mkdir -p "$cache/kernel-file" "$cache/qemu/$qemu/bin"
	echo 6.1.0 >"$cache/kernel-file/release"
	: >"$cache/kernel-file/vmlinux"
	ln -sfn kernel-file "$cache/kernel-bookworm.$format"
	echo 'exit 0' >"$cache/qemu/$qemu/bin/qemu-system-x86_64"
	chmod -R go-w,a+x base
}
kernel() { "$root/tools/guest-kernel" --print bookworm; }
build() { "$root/qemu/build" --print; }
run() { timeout 20 "$vpmu" run --kernel bookworm --dry-run; }

# The name of what qemu/build looks for: of any version of its first release.
qemu=$(bash -x "$root/qemu/build" --print 2>&1 | grep -oE 'patched-[0-9a-z._-]+-' | head -n 1)
qemu+=$(sed -n '0,/^release /s/^release .* //p' "$root/qemu/VERSION")

# taken NAME USER..., refused NAME PATH USER...: after fill and what was done to it
taken() {
	local name=$1 user out
	shift
	for user; do
		out=$($user 2>&1) || { case_of "$name: $user" "status $?, $(tail -n 1 <<<"$out")"; continue; }
		case_of "$name: $user" ''
	done
}
refused() {
	local name=$1 path=$2 user out rc
	shift 2
	for user; do
		out=$($user 2>&1)
		rc=$?
		case_of "$name: $user" "$([[ $rc != 0 && $out == *"found $path"*", which belongs to"*XDG_CACHE_HOME* ]] ||
			echo "status $rc, $(tail -n 1 <<<"$out")")"
	done
}

fill
taken 'a cache of its own' kernel build run
for mode in 775 757 1777; do
	fill
	chmod "$mode" "$cache"
	refused "mode $mode" "$cache" kernel build run
done
fill
mv "$cache" other
ln -s "$work/other" "$cache"
taken 'behind a link' kernel build run
chmod o+w other
refused 'open behind a link' "$cache" kernel build run
fill
chmod o+w "$cache/kernel-file"
refused 'an open kernel' "$cache/kernel-file" kernel run
fill
chmod o+w "$cache/kernel-file/vmlinux"
refused 'an open file of a kernel' "$cache/kernel-file/vmlinux" kernel run
for path in qemu "qemu/$qemu" "qemu/$qemu/bin" "qemu/$qemu/bin/qemu-system-x86_64"; do
	fill
	chmod g+w "$cache/$path"
	refused "an open ${path/$qemu/PREFIX}" "$cache/$path" build run
done
if [ "$(id -u)" = 0 ]; then
	for path in . qemu kernel-file "qemu/$qemu/bin/qemu-system-x86_64"; do
		fill
		chown 4321 "$cache/$path"
		refused "another user's ${path/$qemu/PREFIX}" "$cache" run
	done
	fill
	mv "$cache" other
	ln -s "$work/other" "$cache"
	chown -h 4321 "$cache"
	refused "another user's link" "$cache" kernel build run
else
	echo "skip another user's: it takes root to give a file away"
fi
# shellcheck disable=SC2154 # of case.sh
exit "$failed"
