#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 900
#
# `make install`: the installed files work without the source tree, which is hidden here.
# They build the guest's driver and would build the same QEMU.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"

dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT
if ! DESTDIR=$dest meson install -C "$VPMU_BUILD" --no-rebuild --quiet >"$dest/log" 2>&1; then
	echo "not ok install: $(tail -n 1 "$dest/log")"
	exit 1
fi
bin=$(cd "$dest" && find . -path '*/bin/vpmu')
share=$dest/${bin%/bin/vpmu}/share/vpmu

why=''
for part in lib qemu guest include/vpmu meson.build meson_options.txt \
		tools/{cache.sh,debian,guest-kernel,guest-module,packages,setup,timeline.html,toolchain.sh}; do
	diff -r "$VPMU_ROOT/$part" "$share/$part" >"$dest/diff" 2>&1 || why+="$(head -n 1 "$dest/diff"); "
done
case_of 'what is built later' "$why"

# Both name the same entry of the cache, if there is one.
mine=$("$VPMU_ROOT/qemu/build" --print 2>&1) other=$("$share/qemu/build" --print 2>&1)
case_of 'the same QEMU' "$([ "$mine" = "$other" ] || echo "$mine, installed: $other")"

if ! unshare -m true 2>/dev/null; then
	echo 'skip installed: unshare -m does not work here; it needs root'
	exit 0
fi

# alone COMMAND...: without source tree and build, with the installed vpmu first in PATH
alone() {
	# shellcheck disable=SC2016 # expanded there
	unshare -m sh -c '
		mkdir -p "$1/cache" && mount --bind "$1" /mnt && mount -t tmpfs none "$2" &&
		{ [ ! -d "$3" ] || mount -t tmpfs none "$3"; } || exit 99
		PATH=/mnt/$4:$PATH
		cd /mnt || exit 99
		shift 4
		unset VPMU_ROOT VPMU_BUILD
		exec "$@"' sh "$dest" "$VPMU_ROOT" "$VPMU_BUILD" "${bin%/vpmu}" "$@" 2>&1 </dev/null
}

succeeds() { # NAME WORDS COMMAND...
	local name=$1 words=$2 out status=0
	shift 2
	out=$(alone "$@") || status=$?
	case_of "$name" "$([ $status = 0 ] && [[ $out == *$words* ]] ||
		echo "status $status: $(tail -n 2 <<<"$out" | tr '\n' ' ')")"
}

case_of 'the source tree is out of reach' \
	"$(alone sh -c "ls '$VPMU_ROOT'/* '$VPMU_BUILD'/*" | grep -v 'No such file')"
succeeds counts instructions:u vpmu run -- perf stat -e instructions:u true
if ! kernel=$("$VPMU_ROOT/tools/guest-kernel" bookworm 2>"$dest/log"); then
	echo "skip paravirtual: $(tail -n 1 "$dest/log")"
	exit 0
fi
succeeds paravirtual instructions:u \
	vpmu run --pmu pv --kernel bookworm -- perf stat -e instructions:u true
# The cache has it from the source tree: once more, from what is installed.
succeeds 'the driver is built' /vpmu_guest.ko env XDG_CACHE_HOME=/mnt/cache \
	"/mnt/${bin%/bin/vpmu}/share/vpmu/tools/guest-module" "$kernel"
