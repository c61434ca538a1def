# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by tests/deb and tests/chroot, which need root, network and mmdebstrap: a clean
# Debian, from the mirror that this machine's apt knows.

# shellcheck source=tests/case.sh
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"

tmp=$(mktemp -d)
clean=$tmp/clean
clean_unmount() {
	local at
	for at in cache apt proc sys dev; do
		! mountpoint -q "$clean/$at" || umount -R "$clean/$at"
	done
}
# Not while something of this machine's is in it.
clean_remove() { clean_unmount && rm -rf --one-file-system "$clean"; }
trap 'clean_remove && rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# clean_lacks: print why a chroot is impossible on this machine; nothing if it is
# possible.
clean_lacks() {
	command -v mmdebstrap >/dev/null || { echo 'found no mmdebstrap, needed it: apt-get install mmdebstrap' && return; }
	[ "$(id -u)" = 0 ] || echo "found user $(id -un), needed root, for a chroot with /proc and /dev"
}

# shellcheck disable=SC1091 # of the system
clean_suite() { (. /etc/os-release && echo "$VERSION_CODENAME"); }

# clean_make SUITE: $clean becomes one. False, after saying why, when it cannot.
clean_make() {
	local file sources=()
	# The entries that this machine has, for the other suite.
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
		[ -s "$file" ] || continue
		sources+=("$tmp/${file##*/}")
		sed "s/\\b$(clean_suite)\\b/$1/g" "$file" >"$tmp/${file##*/}"
	done
	if ! mmdebstrap --variant=apt --include=ca-certificates "$1" "$clean" "${sources[@]}" \
			>"$tmp/log" 2>&1; then
		echo "mmdebstrap made no $1: $(grep -m 1 '^E:' "$tmp/log")"
		return 1
	fi
	mkdir "$clean/cache" "$clean/apt"
	cp /etc/resolv.conf "$clean/etc/" 2>/dev/null
	cp -n /etc/apt/apt.conf.d/* "$clean/etc/apt/apt.conf.d/"
	mount --rbind --make-rslave /dev "$clean/dev"
	mount -t proc proc "$clean/proc"
	# mmdebstrap leaves no lists behind.
	inside apt-get -q update >"$tmp/log" && return
	echo "apt-get update in the chroot: $(tail -n 1 "$tmp/log")"
	return 1
}

# clean_cache DIR: what is in it is /root/.cache/vpmu there
clean_cache() {
	mount --bind "$1" "$clean/cache"
	mkdir -p "$clean/root/.cache"
	ln -s /cache "$clean/root/.cache/vpmu"
}

inside() { chroot "$clean" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
	DEBIAN_FRONTEND=noninteractive "$@" </dev/null 2>&1; }
install() { # NAME PACKAGE...
	local out
	out=$(inside apt-get -qy --no-install-recommends install "${@:2}")
	case_of "$1" "$([ $? = 0 ] || tail -n 2 <<<"$out" | paste -sd' ')"
}
