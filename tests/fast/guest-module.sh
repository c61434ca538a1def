#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 240
#
# The guest's driver builds without a warning against every kernel whose headers are
# here (KDIRS names more), sparse's included, and from the folder that DKMS gets;
# tests/graph looks at its files' calls.
set -euo pipefail

root=${VPMU_ROOT:-$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# shellcheck disable=SC1091 # beside this file
. "$root/tests/sparse.sh"

# build_with KDIR: a case, and one for sparse.
build_with() {
	local kdir=$1 rc=0 release
	release=$(sed -n 's/^#define UTS_RELEASE "\(.*\)"/\1/p' "$kdir/include/generated/utsrelease.h")
	KDIR=$kdir "$root/guest/build" "$tmp/$release" >"$tmp/log" 2>&1 || rc=$?
	if [ $rc != 0 ] || [ ! -e "$tmp/$release/vpmu_guest.ko" ]; then
		cat "$tmp/log"
		echo "not ok guest-module builds for $release: exit status $rc"
	elif grep -iE 'warning|objtool' "$tmp/log"; then
		echo "not ok guest-module builds for $release without a warning: see above"
	elif ! grep -qF "$release " < <(modinfo -F vermagic "$tmp/$release/vpmu_guest.ko"); then
		echo "not ok guest-module builds for $release:" \
			"$(modinfo -F vermagic "$tmp/$release/vpmu_guest.ko")"
	else
		echo "ok guest-module builds for $release without a warning"
		last=$tmp/$release kdir_last=$kdir
	fi
	sparse_case "guest-module for $release" "$tmp/log" "$root"/guest/*.c
}

last=
declare -A seen
for kdir in ${KDIRS:-} /lib/modules/*/build /usr/src/linux-headers-*; do
	[ -e "$kdir/Module.symvers" ] || continue
	kdir=$(realpath "$kdir")
	[ -z "${seen[$kdir]:-}" ] || continue
	seen[$kdir]=1
	build_with "$kdir"
done
if [ ${#seen[@]} = 0 ]; then
	echo "skip guest-module: no kernel headers in /lib/modules/*/build or /usr/src" \
		"(apt-get install linux-headers-amd64)"
	exit 0
fi
[ -n "$last" ] || exit 1
"$root/tests/graph" --room guest "$last"

# Only Debian's headers name a compiler. Here is all else of them.
plain=$tmp/plain rc=0
mkdir "$plain"
find "$kdir_last/" -mindepth 1 -maxdepth 1 ! -name .kernelvariables -exec ln -s -t "$plain" {} +
KDIR=$plain "$root/guest/build" "$tmp/plain.d" >"$tmp/log" 2>&1 || rc=$?
if [ $rc = 0 ] && [ -e "$tmp/plain.d/vpmu_guest.ko" ]; then
	echo "ok guest-module builds for headers that name no compiler"
else
	cat "$tmp/log"
	echo "not ok guest-module builds for headers that name no compiler: exit status $rc"
fi

if [ "$(modinfo -F license "$last/vpmu_guest.ko")" = GPL ]; then
	echo "ok guest-module names its licence"
else
	echo "not ok guest-module names its licence: $(modinfo -F license "$last/vpmu_guest.ko")"
fi

# Nothing of this tree is reached from there.
"$root/guest/build" --source "$tmp/dkms"
if [ -e "$tmp/dkms/dkms.conf" ] && make -C "$kdir_last" --no-print-directory M="$tmp/dkms" \
	CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$tmp/log" 2>&1 &&
	! grep -rqF "$root" "$tmp/dkms" --include='*.cmd'; then
	echo "ok guest-module builds from the folder for DKMS"
else
	cat "$tmp/log"
	echo "not ok guest-module builds from the folder for DKMS"
fi
