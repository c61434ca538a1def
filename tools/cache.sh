# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by the scripts that keep something in vpmu's cache; they define die.

# check_name WHAT TEXT: end unless TEXT, read from a file, can be one component of a path.
check_name() {
	[[ $2 =~ ^[A-Za-z0-9][A-Za-z0-9._+~-]{0,63}$ ]] ||
		die "$1 is $(printf '%q' "${2:0:100}"), which is used as a file's name: needed are" \
			"at most 64 letters, digits, '.', '_', '+', '~' and '-', a letter or digit first"
}

# check_cache CACHE [PATH...]: end unless those that exist belong to the caller or to root
# and only their owner can write them: programs in the cache are executed. "/." is the
# directory behind a symbolic link, whose own owner counts as well.
check_cache() {
	local found
	found=$(find "$1" "${@/%//.}" "${@:2}" -maxdepth 0 \
		\( ! -uid "$EUID" ! -uid 0 -o ! -type l -perm /022 \) \
		-printf '%p, which belongs to %u and has mode %m\n' -quit 2>/dev/null) || :
	[ -z "$found" ] ||
		die "found $found; needed is a cache that belongs to you or root and that only its" \
			"owner can write: chmod go-w, remove it, or set XDG_CACHE_HOME"
}
